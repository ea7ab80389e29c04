//! Pools over several targets and engines, and engines that die.

use std::time::{Duration, Instant};

use driver::{Completions, Wait};

use super::*;

/// Begins operations, waits until `count` of them have come back, and looks once more; how many came back.
fn run_until(rig: &mut Rig, operations: &[ObjectOperation], count: usize) -> usize {
    let mut done = Completions::with_depth(32);
    rig.driver.submit(operations, &mut done).expect("submitted");
    while done.len() < count {
        rig.driver.reap(Wait::Timeout { count: 1, timeout_ns: 10_000_000 }, &mut done).expect("reaped");
    }
    rig.driver.reap(Wait::Timeout { count: 1, timeout_ns: 10_000_000 }, &mut done).expect("reaped");
    done.len()
}

#[test]
fn the_pool_says_what_it_is_over() {
    let (fake, _turn) = fake();
    let facts = |name: &str| backend(name).facts();
    assert_eq!(facts("facts").targets, 2);
    fake.set("targets", 8);
    fake.set("disabled", 1);
    let told = facts("facts");
    assert_eq!((told.targets, told.notes.len()), (7, 1), "{told:?}");
    let backend = backend("facts");
    let space = backend.pool().expect("asked").expect("told");
    assert_eq!((space.targets, space.scm_bytes, space.nvme_free_bytes), (8, 1 << 30, 1 << 29));
    end(fake, backend);
}

#[test]
fn classes_over_several_targets_are_kept_in() {
    let (fake, _turn) = fake();
    fake.set("targets", 8);
    let backend = backend("classes");
    let mut plan = typed(ObjectOp::Put, ObjectType::KvHashed);
    let mut refusal = |class: &str| {
        plan.class = class.parse().expect("a class");
        backend.prepare(&plan).expect("prepared");
        open(&backend, plan.clone()).err().unwrap_or_default()
    };
    for class in ["S1", "S2", "S8", "SX"] {
        assert_eq!(refusal(class), "");
    }
    let error = refusal("RP_2G1");
    assert!(error.contains("engines=1") && error.contains("need 2 engines"), "{error}");
    fake.set("engines", 4);
    for class in ["RP_2G1", "RP_2GX", "EC_2P1G1"] {
        assert_eq!(refusal(class), "");
    }
    fake.set("nodes", 1);
    let error = refusal("RP_2G1");
    assert!(error.contains("engines=4") && error.contains("rd_lvl:1"), "{error}");
    fake.set("nodes", 0);
    let error = refusal("RP_2G8");
    assert!(error.contains("targets=8") && !error.contains("rd_lvl"), "{error}");
    let error = refusal("S16");
    assert!(error.contains("targets=8"), "{error}");
    fake.set("redundancy", 1);
    let error = refusal("S1");
    assert!(
        error.contains("the container does not support objects of class S1") && error.contains("rd_fac"),
        "{error}"
    );
    assert_eq!(refusal("RP_2GX"), "");
    end(fake, backend);
}

#[test]
fn lists_go_on_over_pages_without_keys() {
    let (fake, _turn) = fake();
    let backend = backend("pages");
    let mut plan = typed(ObjectOp::Put, ObjectType::KvHashed);
    plan.class = "S2".parse().expect("a class");
    let mut rig = Rig::open(&backend, plan.clone());
    let of = |what| ObjectOperation {
        object: ObjectId::new(ObjectType::KvHashed, plan.class, 7),
        dkey: key("key"),
        ..operation(what, 100)
    };
    assert_eq!(rig.run(of(ObjectOp::Put)), 100);
    let list = ObjectOperation { value_bytes: 0, dkey: Key::EMPTY, ..of(ObjectOp::List) };
    assert_eq!([rig.run(list), rig.run(list), rig.run(list)], [0, 1, 0]);
    drop(rig);
    end(fake, backend);
}

/// Engines that died leave operations unanswered for ever. They are given back as in flight, and the end does not wait for them.
#[test]
fn engines_that_die_hang_nobody() {
    let (fake, _turn) = fake();
    let backend = backend("dying");
    let mut rig = Rig::open(&backend, typed(ObjectOp::Put, ObjectType::KvHashed));
    let put = |slot| ObjectOperation {
        slot,
        object: object(ObjectType::KvHashed),
        dkey: key("key-").followed_by(u64::from(slot)),
        ..operation(ObjectOp::Put, 100)
    };
    let before = fake.open_handles();
    fake.set("dies_after", 5);
    let done = run_until(&mut rig, &(0..8).map(put).collect::<Vec<_>>(), 5);
    assert_eq!(done, 5, "three hang");
    let begun = Instant::now();
    drop(rig);
    let error = backend.clean(&|_| ()).expect_err("nobody answers").to_string();
    assert!(error.contains("DER_TIMEDOUT") && error.contains("engines do not answer"), "{error}");
    assert!(backend.pool().is_err(), "not asked again");
    backend.close().expect("closed");
    drop(backend);
    // Two waits of 5 s at most, and one of 1 s: nothing waits for ever.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(fake.open_handles() <= before);
}

/// One who interrupts a run does not wait for engines that are gone.
#[test]
fn an_interrupt_ends_the_wait_for_a_pool() {
    let (fake, _turn) = fake();
    // The library has been started already: it does not see by itself that nobody answers.
    let other = backend("early");
    fake.set("dies_after", 0);
    let asked = request("daos://pool/late");
    asked.interrupt.store(true, Ordering::Relaxed);
    let error = object::connect(&asked).err().expect("interrupted").to_string();
    assert!(error.contains("cannot connect to the pool") && error.contains("DER_TIMEDOUT"), "{error}");
    fake.set("dies_after", -1);
    drop(other);
}
