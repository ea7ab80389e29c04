//! Promises of drivers to a worker: every operation completes once, waits end, drivers of one store do not disturb each other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::{Operation, Wait};
use object::ObjectOperation;
use object::plan::ObjectOp::{self, Get, Put};
use object::plan::{Scope, ValueKind};
use vos::ObjectType;
use workload::random::Random;

use super::harness::{Entry, everyone, keepers};
use super::rig::{Rig, array, key, pattern, plan_of};

fn open(entry: &Entry, backend: &Arc<dyn object::Backend>) -> Rig {
    Rig::open(backend, &plan_of(entry, &[Put, Get], ObjectType::KvHashed, ValueKind::Single))
}

#[test]
fn a_batch_is_carried_out_and_each_slot_completes_once() {
    for entry in everyone().filter(|entry| entry.can(&[Put, Get])) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        let depth = rig.plan.load.depth;
        for round in 0..20_u64 {
            for operation in [Put, Get] {
                let name = |slot: u32| key(1, &format!("key-{slot}"));
                let size = |slot: u32| 10 + 500 * slot as usize;
                let batch: Vec<_> =
                    (0..depth).map(|slot| rig.operation(slot, operation, name(slot), size(slot))).collect();
                if operation == Put {
                    (0..depth)
                        .for_each(|slot| rig.fill(slot, &pattern(round * 100 + u64::from(slot), size(slot))));
                }
                let finished = rig.run_all(&batch);
                let mut slots: Vec<_> = finished.iter().map(|completion| completion.slot).collect();
                slots.sort_unstable();
                assert_eq!(slots, (0..depth).collect::<Vec<_>>(), "{}", entry.name);
                for completion in finished {
                    assert_eq!(
                        completion.result,
                        batch[completion.slot as usize].bytes() as i64,
                        "{}",
                        entry.name
                    );
                }
                (0..depth).for_each(|slot| {
                    let value = pattern(round * 100 + u64::from(slot), size(slot));
                    assert!(rig.buffer(slot, size(slot)) == value, "{}: slot {slot}", entry.name);
                });
                // Buffers hold something else when the values come back.
                if operation == Put && !entry.registration.capabilities.targetless {
                    (0..depth).for_each(|slot| rig.fill(slot, &[0; 4096]));
                }
            }
        }
    }
}

#[test]
fn no_completion_is_lost_or_doubled() {
    for entry in everyone().filter(|entry| entry.can(&[Put, Get])) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        let depth = rig.plan.load.depth;
        for slot in 0..depth {
            assert_eq!(
                rig.store(Put, key(1, &format!("key-{slot}")), &pattern(1, 300)),
                300,
                "{}",
                entry.name
            );
        }
        let mut free: Vec<u32> = (0..depth).collect();
        let mut random = Random::new(3);
        let (mut started, mut finished) = (0, 0);
        while finished < 1000 {
            let room = free.len().min(1000 - started);
            let mut batch: Vec<ObjectOperation> = Vec::new();
            for _ in 0..random.below(room as u64 + 1) {
                let slot = free.swap_remove(random.below(free.len() as u64) as usize);
                let operation = if random.below(2) == 0 { Put } else { Get };
                batch.push(rig.operation(slot, operation, key(1, &format!("key-{slot}")), 300));
            }
            rig.done.clear();
            let accepted = rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted;
            free.extend(batch[accepted..].iter().map(|operation| operation.slot));
            started += accepted;
            let wait = match random.below(3) {
                0 => Wait::None,
                1 => Wait::AtLeast(random.below(3) as u32),
                _ => Wait::Timeout { count: random.below(9) as u32, timeout_ns: random.below(100_000) },
            };
            rig.driver.reap(wait, &mut rig.done).expect("reap");
            for completion in rig.done.as_slice() {
                assert_eq!(completion.result, 300, "{}", entry.name);
                assert!(!free.contains(&completion.slot), "{}: slot {} twice", entry.name, completion.slot);
                free.push(completion.slot);
            }
            finished += rig.done.len();
            assert!(finished <= started, "{}", entry.name);
        }
        assert_eq!(free.len(), depth as usize, "{}", entry.name);
    }
}

#[test]
fn a_wait_for_nothing_ends() {
    for entry in everyone().filter(|entry| entry.can(&[Put])) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        let began = Instant::now();
        let timed = Wait::Timeout { count: 3, timeout_ns: 1_000_000 };
        for wait in [Wait::None, Wait::AtLeast(1), timed] {
            rig.driver.reap(wait, &mut rig.done).expect("reap");
            assert!(rig.done.is_empty(), "{}", entry.name);
        }
        assert!(rig.driver.submit(&[], &mut rig.done).expect("submit").accepted == 0 && rig.done.is_empty());
        assert!(began.elapsed() < Duration::from_secs(5), "{}", entry.name);
        // What it counted and found can be asked for, and nothing was found.
        rig.driver.tallies();
        assert_eq!(rig.driver.findings(), Vec::<String>::new(), "{}", entry.name);
    }
}

#[test]
fn operations_that_it_does_not_name_are_not_done() {
    for entry in everyone() {
        let Some(stand) = entry.start() else { continue };
        let foreign: Vec<_> =
            ObjectOp::ALL.iter().copied().filter(|&operation| !entry.can(&[operation])).collect();
        if foreign.is_empty() {
            continue;
        }
        let backend = stand.connect();
        let own = ObjectOp::ALL.iter().copied().find(|&operation| entry.can(&[operation])).expect("one");
        let mut rig =
            Rig::open(&backend, &plan_of(&entry, &[own], ObjectType::MultiHashed, ValueKind::Single));
        for operation in foreign {
            let result = rig.run(operation, array(1, 0), 0);
            assert!(result < 0, "{}: {}: {result}", entry.name, operation.name());
        }
    }
}

#[test]
fn what_one_driver_stores_another_sees() {
    for entry in keepers(&[Put, Get]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let (mut one, mut other) = (open(&entry, &backend), open(&entry, &backend));
        for turn in 0..10 {
            let value = pattern(turn, 5000);
            assert_eq!(one.store(Put, key(1, "shared"), &value), 5000, "{}", entry.name);
            assert_eq!(other.load(Get, key(1, "shared"), 5000), (5000, value), "{}", entry.name);
        }
    }
}

#[test]
fn workers_on_their_own_threads_share_a_store() {
    for entry in keepers(&[Put, Get]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let plan = plan_of(&entry, &[Put, Get], ObjectType::KvHashed, ValueKind::Single);
        backend.prepare(&plan).expect("prepared");
        std::thread::scope(|scope| {
            for worker in 0..4_u32 {
                let (backend, plan, name) = (&backend, &plan, entry.name);
                scope.spawn(move || {
                    let mut rig = Rig::of_worker(backend, plan, worker).expect("a driver");
                    for turn in 0..50 {
                        let value = pattern(u64::from(worker) << 20 | turn, 700 * (turn as usize % 9) + 1);
                        let what = key(1, &format!("worker-{worker}-{}", turn % 7));
                        assert_eq!(rig.store(Put, what, &value), value.len() as i64, "{name}");
                        assert_eq!(rig.load(Get, what, 8000), (value.len() as i64, value), "{name}");
                    }
                });
            }
        });
    }
}

#[test]
fn private_containers_are_apart() {
    let honours = |entry: &Entry| entry.registration.capabilities.options.contains(&"containers");
    for entry in keepers(&[Put, Get]).filter(honours) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut plan = plan_of(&entry, &[Put, Get], ObjectType::KvHashed, ValueKind::Single);
        (plan.containers, plan.load.threads) = (Scope::Private, 2);
        backend.prepare(&plan).expect("prepared");
        let mut rigs: Vec<_> =
            (0..2).map(|worker| Rig::of_worker(&backend, &plan, worker).expect("a driver")).collect();
        for (rig, value) in rigs.iter_mut().zip([b"one", b"two"]) {
            assert_eq!(rig.store(Put, key(1, "same"), value), 3, "{}", entry.name);
        }
        for (rig, value) in rigs.iter_mut().zip([b"one", b"two"]) {
            assert_eq!(rig.load(Get, key(1, "same"), 3).1, value, "{}", entry.name);
        }
    }
}
