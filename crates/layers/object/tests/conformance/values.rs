//! Objects under dkeys and akeys: single values, extents, punch, query, iterate, and what becomes of versions.

use std::sync::Arc;

use libc::ENOENT;
use object::Backend;
use object::plan::ObjectOp::{
    self, Aggregate, AllocateIds, Collect, Discard, Fetch, Iterate, OpenContainer, Punch, Query, Update,
};
use object::plan::{PunchScope, ValueKind};
use vos::{ObjectType, Redundancy};
use workload::random::Random;

use super::harness::{Entry, keepers};
use super::rig::{ROOM_BYTES, Rig, What, array, errno, keys, number, pattern, plan_of};

fn open(entry: &Entry, backend: &Arc<dyn Backend>, value: ValueKind, punch: PunchScope) -> Rig {
    let all = [Update, Fetch, Punch, Query, Iterate, Aggregate, Discard, Collect, OpenContainer, AllocateIds];
    let operations: Vec<ObjectOp> = all.into_iter().filter(|&operation| entry.can(&[operation])).collect();
    let mut plan = plan_of(entry, &operations, ObjectType::MultiHashed, value);
    plan.punch = punch;
    Rig::open(backend, &plan)
}

fn single(entry: &Entry, backend: &Arc<dyn Backend>) -> Rig {
    open(entry, backend, ValueKind::Single, PunchScope::Record)
}

#[test]
fn single_values_lie_under_object_dkey_and_akey() {
    for entry in keepers(&[Update, Fetch]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = single(&entry, &backend);
        let places: Vec<What> = (1..3)
            .flat_map(|object| ["d", "dd", "e"].map(|dkey| (object, dkey)))
            .flat_map(|(object, dkey)| ["a", "aa", "b"].map(|akey| keys(object, dkey, akey)))
            .chain((0..5).map(|dkey| number(1, dkey, "a")))
            .collect();
        for (seed, &place) in (0..).zip(&places) {
            let size = 1 + 977 * seed as usize;
            assert_eq!(rig.store(Update, place, &pattern(seed, size)), size as i64, "{}", entry.name);
        }
        for (seed, &place) in (0..).zip(&places) {
            let (result, found) = rig.load(Fetch, place, ROOM_BYTES);
            let value = pattern(seed, 1 + 977 * seed as usize);
            assert!(result == value.len() as i64 && found == value, "{}: {seed}", entry.name);
        }
        for place in [keys(1, "d", "c"), keys(1, "f", "a"), keys(3, "d", "a"), number(1, 9, "a")] {
            assert_eq!(rig.load(Fetch, place, 100).0, errno(ENOENT), "{}", entry.name);
        }
    }
}

#[test]
fn random_extents_agree_with_an_array_in_memory() {
    for entry in keepers(&[Update, Fetch]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend, ValueKind::Array, PunchScope::Record);
        let mut random = Random::new(7);
        let place = keys(1, "d", "a");
        assert_eq!(rig.load(Fetch, place, 100).0, errno(ENOENT), "{}", entry.name);
        let mut bytes: Vec<Option<u8>> = vec![None; 120_000];
        for turn in 0..300 {
            let from = random.below(90_000) as usize;
            let size = 1 + random.below(if turn % 4 == 0 { 30_000 } else { 3_000 }) as usize;
            let choice = if turn == 0 { 0 } else { random.below(5) };
            let what = place.at(from as u64);
            let range = from..from + size;
            if choice < 2 {
                let value = pattern(turn, size);
                assert_eq!(rig.store(Update, what, &value), size as i64, "{}", entry.name);
                bytes[range].iter_mut().zip(&value).for_each(|(byte, &new)| *byte = Some(new));
            } else if choice == 2 && entry.can(&[Punch]) {
                let punched = rig.run(Punch, what, size);
                assert!(punched >= 0 || punched == errno(ENOENT), "{}: {punched}", entry.name);
                bytes[range].fill(None);
            } else {
                let (result, found) = rig.load(Fetch, what, size);
                let known = &bytes[range];
                let end = known.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                let is_gone = bytes.iter().all(Option::is_none) && result == errno(ENOENT);
                // To RADOS a hole in an object that goes on is as good as zeros.
                let is_zeros = entry.registration.name == "rados" && result > end as i64;
                assert!(
                    is_gone || is_zeros || result == end as i64,
                    "{}: turn {turn}: {result} for {end}",
                    entry.name
                );
                let zeroed: Vec<u8> = known[..found.len()].iter().map(|byte| byte.unwrap_or(0)).collect();
                assert!(found == zeroed, "{}: turn {turn}, {size} at {from}", entry.name);
            }
        }
    }
}

#[test]
fn a_punch_removes_what_its_scope_says() {
    let scopes = [PunchScope::Record, PunchScope::Akey, PunchScope::Dkey, PunchScope::Object];
    for entry in keepers(&[Update, Fetch, Punch]) {
        for (scope, gone) in scopes.into_iter().zip([1, 1, 2, 3]) {
            let Some(stand) = entry.start() else { continue };
            let backend = stand.connect();
            let mut rig = open(&entry, &backend, ValueKind::Single, scope);
            let places = [keys(1, "d", "a"), keys(1, "d", "b"), keys(1, "e", "a"), keys(2, "d", "a")];
            for place in places {
                assert_eq!(rig.store(Update, place, b"value"), 5, "{}", entry.name);
            }
            assert!(rig.run(Punch, places[0], 0) >= 0, "{}: {scope:?}", entry.name);
            let found: Vec<_> = places.iter().map(|&place| rig.load(Fetch, place, 5).0).collect();
            let expected: Vec<_> = (0..4).map(|at| if at < gone { errno(ENOENT) } else { 5 }).collect();
            assert_eq!(found, expected, "{}: {scope:?}", entry.name);
            assert_eq!(rig.store(Update, places[0], b"again"), 5, "{}: {scope:?}", entry.name);
            assert_eq!(rig.load(Fetch, places[0], 5).1, b"again", "{}: {scope:?}", entry.name);
        }
    }
}

#[test]
fn a_query_finds_the_largest_dkey() {
    for entry in keepers(&[Update, Query]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend, ValueKind::Array, PunchScope::Dkey);
        assert_eq!(rig.run(Query, keys(1, "", "a"), 0), errno(ENOENT), "{}", entry.name);
        for (dkey, largest) in [(5, 5), (3, 5), (70_000, 70_000), (256, 70_000)] {
            assert_eq!(rig.store(Update, number(1, dkey, "a"), b"value"), 5, "{}", entry.name);
            assert_eq!(rig.run(Query, keys(1, "", "a"), 0), largest, "{}", entry.name);
        }
        if entry.can(&[Punch]) {
            assert!(rig.run(Punch, number(1, 70_000, "a"), 0) >= 0, "{}", entry.name);
            assert_eq!(rig.run(Query, keys(1, "", "a"), 0), 256, "{}", entry.name);
        }
    }
}

#[test]
fn an_iteration_visits_every_record() {
    for entry in keepers(&[Update, Iterate]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = single(&entry, &backend);
        for (dkey, akey) in (0..20).flat_map(|dkey| ["a", "b", "c"].map(|akey| (dkey, akey))) {
            assert_eq!(rig.store(Update, number(1, dkey, akey), b"value"), 5, "{}", entry.name);
        }
        assert_eq!(rig.run(Iterate, keys(1, "", ""), 0), 60, "{}", entry.name);
        assert_eq!(rig.run(Iterate, keys(2, "", ""), 0), errno(ENOENT), "{}", entry.name);
    }
}

#[test]
fn containers_are_opened_and_ids_given_once() {
    for entry in keepers(&[OpenContainer, AllocateIds]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = single(&entry, &backend);
        let mut other = single(&entry, &backend);
        assert!(rig.run(OpenContainer, array(0, 0), 0) >= 0, "{}", entry.name);
        let block = i64::from(rig.plan.ids_per_call);
        let mut firsts: Vec<i64> = (0..10)
            .flat_map(|_| [rig.run(AllocateIds, array(0, 0), 0), other.run(AllocateIds, array(0, 0), 0)])
            .collect();
        firsts.sort_unstable();
        assert!(firsts[0] >= 0 && firsts.windows(2).all(|pair| pair[1] - pair[0] >= block), "{firsts:?}");
    }
}

#[test]
fn old_versions_go_and_the_last_ones_stay() {
    for entry in keepers(&[Update, Fetch, Aggregate]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = single(&entry, &backend);
        for version in 0..10 {
            for dkey in 0..20 {
                assert_eq!(
                    rig.store(Update, number(1, dkey, "a"), &pattern(version, 5000)),
                    5000,
                    "{}",
                    entry.name
                );
            }
        }
        let dropped = rig.run(Aggregate, array(0, 0), 0);
        let at_least = if entry.class.redundancy == Redundancy::None { 180 } else { 1 };
        assert!(dropped >= at_least, "{}: {dropped}", entry.name);
        if entry.can(&[Collect]) {
            assert!(rig.run(Collect, array(0, 0), 0) >= 0, "{}", entry.name);
        }
        for dkey in 0..20 {
            let (result, found) = rig.load(Fetch, number(1, dkey, "a"), 5000);
            assert!(result == 5000 && found == pattern(9, 5000), "{}: {result}", entry.name);
        }
        if entry.can(&[Discard]) {
            assert!(rig.run(Discard, array(0, 0), 0) >= 1, "{}", entry.name);
            assert_eq!(rig.load(Fetch, number(1, 3, "a"), 5000).0, errno(ENOENT), "{}", entry.name);
        }
    }
}
