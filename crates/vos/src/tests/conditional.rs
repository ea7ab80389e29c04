//! Changes that depend on what is there.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use super::support::{Fixture, GROUNDS, MIB};
use crate::model::ObjectId;
use crate::{Ack, Action, Checksum, Condition, ObjectClass, ObjectType, Punch, Read, Step, StoreError};

fn directory(number: u64) -> ObjectId {
    ObjectId::new(ObjectType::MultiHashed, ObjectClass::S1, number)
}

fn step<'a>(object: ObjectId, dkey: &'a [u8], condition: Condition, action: Action<'a>) -> Step<'a> {
    Step { object, dkey, akey: b"inode", condition, action }
}

impl Fixture {
    fn apply(&self, steps: &[Step<'_>]) -> Result<(), StoreError> {
        self.pool().apply(self.container, steps, Ack::AsConfigured)
    }

    /// The value of a dkey of a directory and its version; none where there is none.
    fn entry(&self, object: ObjectId, dkey: &[u8]) -> Option<(Vec<u8>, u64)> {
        let place = crate::KeyPath { container: self.container, object, dkey, akey: b"inode" };
        let mut value = [0; 64];
        match self.target().fetch(&place, Read::Single, None, &mut value) {
            Ok(found) => Some((value[..found.bytes as usize].to_vec(), found.epoch)),
            Err(StoreError::NotFound) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn conditions_are_held_against_what_is_there() {
    for ground in GROUNDS {
        let fixture = Fixture::new(ground, 64 * MIB, 0, Checksum::Crc32);
        let one = |condition, action| fixture.apply(&[step(directory(9), b"name", condition, action)]);
        let (update, punch) = (Action::Update(b"first"), Action::Punch(Punch::Dkey));
        assert_eq!(one(Condition::Present, update), Err(StoreError::NotFound));
        assert_eq!(one(Condition::Version(1), update), Err(StoreError::NotFound));
        assert_eq!(one(Condition::Absent, update), Ok(()));
        assert_eq!(one(Condition::Absent, Action::Update(b"second")), Err(StoreError::Exists));
        let (value, first) = fixture.entry(directory(9), b"name").expect("made");
        assert_eq!(value, b"first");
        assert_eq!(one(Condition::Version(first), Action::Update(b"second")), Ok(()));
        assert_eq!(one(Condition::Version(first), Action::Update(b"third")), Err(StoreError::Changed));
        assert_eq!(one(Condition::Version(first), punch), Err(StoreError::Changed));
        let (value, second) = fixture.entry(directory(9), b"name").expect("replaced");
        assert_eq!(value, b"second");
        assert_eq!(one(Condition::Version(second), punch), Ok(()));
        assert_eq!(fixture.entry(directory(9), b"name"), None);
        assert_eq!(one(Condition::Present, punch), Err(StoreError::NotFound));
        assert_eq!(one(Condition::Any, punch), Ok(()), "nothing to remove");
        assert_eq!(one(Condition::Absent, update), Ok(()), "made again");
    }
}

#[test]
fn several_steps_are_made_together_or_not_at_all() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 64 * MIB, 0, Checksum::Crc32);
        let (here, there) = (directory(9), directory(10));
        fixture.apply(&[step(here, b"old", Condition::Absent, Action::Update(b"file"))]).expect("made");
        fixture.apply(&[step(there, b"new", Condition::Absent, Action::Update(b"other"))]).expect("made");
        let (_, version) = fixture.entry(here, b"old").expect("there");
        let (_, replaced) = fixture.entry(there, b"new").expect("there");
        let moving = |is_alive: &'static [u8]| {
            [
                step(there, b"new", Condition::Version(replaced), Action::Update(b"file")),
                step(there, is_alive, Condition::Present, Action::Check),
                step(here, b"old", Condition::Version(version), Action::Punch(Punch::Dkey)),
            ]
        };
        let error = fixture.apply(&moving(b"missing")).expect_err("the last check fails");
        assert_eq!(error, StoreError::NotFound);
        assert_eq!(fixture.entry(there, b"new"), Some((b"other".to_vec(), replaced)), "taken back");
        assert_eq!(fixture.entry(here, b"old"), Some((b"file".to_vec(), version)));
        fixture.apply(&moving(b"new")).expect("moved");
        fixture.reopen(false);
        assert_eq!(fixture.entry(there, b"new").map(|(value, _)| value), Some(b"file".to_vec()));
        assert_eq!(fixture.entry(here, b"old"), None);
    }
}

#[test]
fn of_those_that_make_the_same_name_one_does() {
    const THREADS: u32 = 4;
    const NAMES: u32 = 200;
    let fixture = Fixture::new(super::support::Ground::Memory, 64 * MIB, 0, Checksum::Crc32);
    let (made, barrier) = (AtomicU32::new(0), Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (fixture, made, barrier) = (&fixture, &made, &barrier);
            scope.spawn(move || {
                for name in 0..NAMES {
                    barrier.wait();
                    let (dkey, value) = (name.to_string(), thread.to_string());
                    let action = Action::Update(value.as_bytes());
                    match fixture.apply(&[step(directory(9), dkey.as_bytes(), Condition::Absent, action)]) {
                        Ok(()) => made.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            assert_eq!(error, StoreError::Exists);
                            0
                        }
                    };
                }
            });
        }
    });
    assert_eq!(made.into_inner(), NAMES);
}

#[test]
fn objects_with_copies_are_refused() {
    let fixture = Fixture::new(super::support::Ground::Memory, 64 * MIB, 0, Checksum::Crc32);
    let class = "RP_2G1".parse().expect("a class");
    let object = ObjectId::new(ObjectType::MultiHashed, class, 9);
    let refused = fixture.apply(&[step(object, b"name", Condition::Absent, Action::Update(b"x"))]);
    assert_eq!(refused, Err(StoreError::InvalidKey));
}
