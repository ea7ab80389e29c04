//! The store against a simple model: random changes, snapshots, aggregations and openings.

use std::collections::BTreeMap;

use crate::Checksum;
use proptest::prelude::*;

use super::support::{Fixture, Ground, MIB, content};
use crate::model::Epoch;
use crate::{Ack, Anchor, KeyPath, Punch, Read, StoreError, Write};

#[derive(Clone, Debug)]
enum Step {
    Single { key: u8, bytes: usize },
    Extent { key: u8, offset: u64, bytes: usize },
    PunchExtent { key: u8, offset: u64, bytes: u64 },
    PunchAkey { key: u8 },
    PunchDkey { key: u8 },
    PunchObject { key: u8 },
    Snapshot,
    DropSnapshot,
    Aggregate { is_full: bool },
    Reopen { is_clean: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u8..12;
    let bytes = prop_oneof![0usize..200, 4000usize..4200, 30_000usize..70_000];
    prop_oneof![
        6 => (key.clone(), bytes.clone()).prop_map(|(key, bytes)| Step::Single { key, bytes }),
        6 => (key.clone(), 0u64..50_000, bytes).prop_map(|(key, offset, bytes)| Step::Extent { key, offset, bytes }),
        2 => (key.clone(), 0u64..50_000, 0u64..30_000)
            .prop_map(|(key, offset, bytes)| Step::PunchExtent { key, offset, bytes }),
        2 => key.clone().prop_map(|key| Step::PunchAkey { key }),
        2 => key.clone().prop_map(|key| Step::PunchDkey { key }),
        1 => key.prop_map(|key| Step::PunchObject { key }),
        1 => Just(Step::Snapshot),
        1 => Just(Step::DropSnapshot),
        2 => any::<bool>().prop_map(|is_full| Step::Aggregate { is_full }),
        2 => any::<bool>().prop_map(|is_clean| Step::Reopen { is_clean }),
    ]
}

/// Values by object, dkey and akey: a single value, or the bytes of an array (none: a hole).
type State = BTreeMap<(u64, u8, u8), Value>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Single(Vec<u8>),
    Array(Vec<Option<u8>>),
}

/// Object, dkey and akey of a key; even akeys hold single values.
fn parts(key: u8) -> (u64, u8, u8) {
    (u64::from(key % 2), key / 2 % 3, key / 6)
}

fn place_of(at: (u64, u8, u8), is_array: bool) -> (u64, [u8; 1], Vec<u8>) {
    (at.0, [at.1], vec![at.2, u8::from(is_array)])
}

/// Removes what a punch removes; whether there was anything.
fn remove(state: &mut State, matches: impl Fn(&(u64, u8, u8)) -> bool) -> bool {
    let gone: Vec<_> = state.keys().filter(|at| matches(at)).copied().collect();
    let is_there = |value: &Value| match value {
        Value::Single(_) => true,
        Value::Array(bytes) => bytes.iter().any(Option::is_some),
    };
    gone.into_iter().filter_map(|at| state.remove(&at)).filter(is_there).count() > 0
}

struct Run {
    fixture: Fixture,
    state: State,
    snapshots: Vec<(Epoch, State)>,
    number: u64,
}

impl Run {
    fn step(&mut self, step: &Step) {
        self.number += 1;
        let fixture = &mut self.fixture;
        match *step {
            Step::Single { key, bytes } => {
                let at = {
                    let (object, dkey, akey) = parts(key);
                    (object, dkey, akey * 2)
                };
                let (object, dkey, akey) = place_of(at, false);
                let data = content(self.number, bytes);
                let place = fixture.place(object, &dkey, &akey);
                fixture.target().update(&place, Write::Single, &data, Ack::AsConfigured).expect("updated");
                self.state.insert(at, Value::Single(data));
            }
            Step::Extent { key, offset, bytes } => {
                let at = array_of(key);
                let (object, dkey, akey) = place_of(at, true);
                let data = content(self.number, bytes);
                let place = fixture.place(object, &dkey, &akey);
                let write = Write::Extent { offset_bytes: offset };
                fixture.target().update(&place, write, &data, Ack::AsConfigured).expect("updated");
                let Value::Array(array) = self.state.entry(at).or_insert(Value::Array(Vec::new())) else {
                    unreachable!()
                };
                let end = offset as usize + bytes;
                if array.len() < end {
                    array.resize(end, None);
                }
                for (own, byte) in array[offset as usize..].iter_mut().zip(data) {
                    *own = Some(byte);
                }
            }
            Step::PunchExtent { key, offset, bytes } => {
                let at = array_of(key);
                let (object, dkey, akey) = place_of(at, true);
                let place = fixture.place(object, &dkey, &akey);
                let punch = Punch::Record { offset_bytes: offset, bytes };
                let done = fixture.target().punch(&place, punch, Ack::AsConfigured);
                if done.is_ok()
                    && let Some(Value::Array(array)) = self.state.get_mut(&at)
                {
                    array.iter_mut().skip(offset as usize).take(bytes as usize).for_each(|own| *own = None);
                }
            }
            Step::PunchAkey { key } => {
                let at = array_of(key);
                self.punch(at, Punch::Akey, &|other| *other == at);
            }
            Step::PunchDkey { key } => {
                let at = array_of(key);
                self.punch(at, Punch::Dkey, &|other| (other.0, other.1) == (at.0, at.1));
            }
            Step::PunchObject { key } => {
                let at = array_of(key);
                self.punch(at, Punch::Object, &|other| other.0 == at.0);
            }
            Step::Snapshot => {
                let epoch = fixture.pool().snapshot(fixture.container).expect("a snapshot");
                self.snapshots.push((epoch, self.state.clone()));
            }
            Step::DropSnapshot => {
                if !self.snapshots.is_empty() {
                    let (epoch, _) = self.snapshots.remove(self.number as usize % self.snapshots.len());
                    fixture.pool().destroy_snapshot(fixture.container, epoch).expect("destroyed");
                }
            }
            Step::Aggregate { is_full } => {
                fixture.target().aggregate(fixture.container, None, is_full).expect("aggregated");
            }
            Step::Reopen { is_clean } => {
                fixture.reopen(is_clean);
                assert_eq!(fixture.pool().findings(), [""; 0]);
            }
        }
    }

    fn punch(&mut self, at: (u64, u8, u8), what: Punch, matches: &dyn Fn(&(u64, u8, u8)) -> bool) {
        let (object, dkey, akey) = place_of(at, true);
        let place = self.fixture.place(object, &dkey, &akey);
        let done = self.fixture.target().punch(&place, what, Ack::AsConfigured);
        let was_there = remove(&mut self.state, matches);
        assert_eq!(done.map(|_| ()), if was_there { Ok(()) } else { Err(StoreError::NotFound) });
    }

    fn check(&self) {
        self.check_state(None, &self.state);
        for (epoch, state) in &self.snapshots {
            self.check_state(Some(*epoch), state);
        }
    }

    fn check_state(&self, epoch: Option<Epoch>, state: &State) {
        let target = self.fixture.target();
        let mut buffer = vec![0xee; 150_000];
        for key in 0..12 {
            let (object, dkey, akey) = parts(key);
            for (at, is_array) in [((object, dkey, akey * 2), false), (array_of(key), true)] {
                let (object, dkey, akey) = place_of(at, is_array);
                let place: KeyPath<'_> = self.fixture.place(object, &dkey, &akey);
                let read = if is_array { Read::Extent { offset_bytes: 0 } } else { Read::Single };
                let found = target.fetch(&place, read, epoch, &mut buffer);
                match state.get(&at) {
                    None => assert!(found.is_err() || found.is_ok_and(|found| found.bytes == 0), "{at:?}"),
                    Some(Value::Single(data)) => {
                        let found = found.expect("there");
                        assert_eq!(buffer[..found.bytes as usize], data[..]);
                    }
                    Some(Value::Array(bytes)) => {
                        let stored = bytes.iter().flatten().count() as u64;
                        assert_eq!(found.map_or(0, |found| found.bytes), stored, "{at:?}");
                        if stored > 0 {
                            let all = bytes.iter().map(|byte| byte.unwrap_or(0));
                            assert!(all.eq(buffer[..bytes.len()].iter().copied()), "{at:?}");
                        }
                    }
                }
            }
        }
        self.check_listing(epoch, state);
    }

    /// Dkeys that are listed are those with something visible.
    fn check_listing(&self, epoch: Option<Epoch>, state: &State) {
        for object in 0..2 {
            let mut expected: Vec<u8> = state
                .iter()
                .filter(|(at, _)| at.0 == object)
                .filter(
                    |(_, value)| !matches!(value, Value::Array(bytes) if bytes.iter().all(Option::is_none)),
                )
                .map(|(at, _)| at.1)
                .collect();
            expected.dedup();
            let mut listed = Vec::new();
            let place = self.fixture.place(object, b"", b"");
            let mut anchor = Anchor::START;
            let mut show = |dkey: &[u8]| listed.push(dkey[0]);
            let done = self.fixture.target().list_dkeys(
                place.container,
                place.object,
                epoch,
                &mut anchor,
                9,
                &mut show,
            );
            assert!(done.is_ok() || expected.is_empty());
            listed.sort_unstable();
            assert_eq!(listed, expected, "object {object} at {epoch:?}");
        }
    }
}

fn array_of(key: u8) -> (u64, u8, u8) {
    let (object, dkey, akey) = parts(key);
    (object, dkey, akey * 2 + 1)
}

fn run(ground: Ground, nvme_bytes: u64, steps: &[Step]) {
    let fixture = Fixture::new(ground, 16 * MIB, nvme_bytes, Checksum::Crc32);
    let mut run = Run { fixture, state: State::new(), snapshots: Vec::new(), number: 0 };
    for step in steps {
        run.step(step);
        if matches!(step, Step::Aggregate { .. } | Step::Reopen { .. }) {
            run.check();
        }
    }
    run.check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn on_memory(steps in prop::collection::vec(step(), 1..60), has_data_file in any::<bool>()) {
        run(Ground::Memory, if has_data_file { 8 * MIB } else { 0 }, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn on_disk(steps in prop::collection::vec(step(), 1..40), has_data_file in any::<bool>()) {
        run(Ground::Disk, if has_data_file { 8 * MIB } else { 0 }, &steps);
    }
}
