//! Every operation, over loopback.

use std::time::Duration;

use driver::{Error, Secret};
use object::ObjectOperation;
use object::plan::{ObjectOp, PunchScope, Scope, ValueKind};
use object_service::{Engine as Control, Location};
use vos::model::Key;
use vos::{Ack, Checksum, KeyPath, ObjectClass, ObjectType, PoolOptions, Punch};

use crate::support::{Rig, object, operation, pool_in, request, scratch, serve, small, url};

const BORDERS: &[u64] = &[0, 1, 100, 4096, 16_383, 16_384, 16_385, 70_000, 1 << 20];
const ENOENT: i64 = -(libc::ENOENT as i64);

fn class(name: &str) -> ObjectClass {
    name.parse().expect("a class")
}

#[test]
fn values_of_any_size_come_back() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(2)), None);
    for (kind, zero_copy, class_name) in [
        (ValueKind::Single, true, "SX"),
        (ValueKind::Array, false, "S1"),
        (ValueKind::Single, false, "RP_2G1"),
        (ValueKind::Array, true, "RP_2G1"),
    ] {
        let mut plan = Rig::plan(&[ObjectOp::Update, ObjectOp::Fetch], 1 << 20, 4);
        (plan.dataset.value, plan.options.zero_copy, plan.class) = (kind, zero_copy, class(class_name));
        let id = object(&plan, 1);
        let mut rig = Rig::open(&url(&engine, &format!("{class_name}-{kind:?}")), plan).expect("a driver");
        for (number, &bytes) in
            (0..).zip(BORDERS.iter().filter(|&&bytes| bytes > 0 || kind == ValueKind::Single))
        {
            let update = operation(ObjectOp::Update, id, number, bytes);
            rig.fill(&update, number);
            assert_eq!(rig.run(&update), bytes as i64, "{class_name} {kind:?} {bytes}");
            rig.buffer(0).fill(0xee);
            let fetch = ObjectOperation { operation: ObjectOp::Fetch, ..update };
            assert_eq!(rig.run(&fetch), bytes as i64, "{class_name} {kind:?} {bytes}");
            assert!(rig.has(&fetch, number), "{class_name} {kind:?} {bytes}");
        }
        let nothing = operation(ObjectOp::Fetch, id, 1000, 100);
        assert_eq!(rig.run(&nothing), ENOENT);
    }
}

#[test]
fn a_value_that_is_larger_than_asked_for_is_no_value() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(1)), None);
    let plan = Rig::plan(&[ObjectOp::Update, ObjectOp::Fetch], 100_000, 1);
    let id = object(&plan, 1);
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    for (stored, asked) in [(100, 99), (20_000, 10), (20_000, 17_000)] {
        let update = operation(ObjectOp::Update, id, stored, stored);
        assert_eq!(rig.run(&update), stored as i64);
        let fetch = ObjectOperation { operation: ObjectOp::Fetch, value_bytes: asked, ..update };
        assert_eq!(rig.run(&fetch), -i64::from(libc::EOVERFLOW), "{stored} into {asked}");
        let fetch = ObjectOperation { operation: ObjectOp::Fetch, value_bytes: 90_000, ..update };
        assert_eq!(rig.run(&fetch), stored as i64, "a larger buffer is good");
    }
}

#[test]
fn many_are_in_flight_over_all_targets() {
    let dir = scratch();
    let pool = pool_in(dir.path(), &small(4));
    let engine = serve(pool, None);
    let mut plan = Rig::plan(&[ObjectOp::Put, ObjectOp::Get], 40_000, 16);
    plan.class = ObjectClass::SX;
    let id = object(&plan, 7);
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    for round in 0..20_u64 {
        let put: Vec<_> = (0..16)
            .map(|slot| {
                let number = round * 16 + u64::from(slot);
                ObjectOperation { slot, ..operation(ObjectOp::Put, id, number, 1 + number * 117) }
            })
            .collect();
        put.iter().for_each(|put| rig.fill(put, put.record));
        assert!(rig.run_all(&put).iter().zip(&put).all(|(&result, put)| result == put.value_bytes as i64));
        (0..16).for_each(|slot| rig.buffer(slot).fill(0));
        let get: Vec<_> =
            put.iter().map(|put| ObjectOperation { operation: ObjectOp::Get, ..*put }).collect();
        assert!(rig.run_all(&get).iter().zip(&get).all(|(&result, get)| result == get.value_bytes as i64));
        assert!(get.iter().all(|get| rig.has(get, get.record)));
    }
    let counted = |tag| engine.counters(tag).expect("a tag").rpcs.load(std::sync::atomic::Ordering::Relaxed);
    assert!((2..6).all(|tag| counted(tag) > 50), "all targets had some of it");
    assert!(rig.driver.findings().is_empty());
}

#[test]
fn key_value_objects_list_stat_and_remove() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(3)), None);
    let operations = [ObjectOp::Put, ObjectOp::List, ObjectOp::Stat, ObjectOp::Remove];
    let mut plan = Rig::plan(&operations, 100, 1);
    (plan.class, plan.list_max) = (ObjectClass::SX, 10);
    let id = object(&plan, 3);
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    let list = operation(ObjectOp::List, id, 0, 0);
    assert_eq!(rig.run(&list), ENOENT);
    for number in 0..25 {
        let put = ObjectOperation { akey: Key::EMPTY, ..operation(ObjectOp::Put, id, number, 10 + number) };
        assert_eq!(rig.run(&put), 10 + number as i64);
    }
    for _ in 0..2 {
        let lists: Vec<_> = (0..3).map(|_| rig.run(&list)).collect();
        assert_eq!(lists, [10, 10, 5]);
    }
    let at = |kind, number| ObjectOperation { akey: Key::EMPTY, ..operation(kind, id, number, 0) };
    assert_eq!(rig.run(&at(ObjectOp::Stat, 7)), 17);
    assert_eq!(rig.run(&at(ObjectOp::Remove, 7)), 0);
    assert_eq!(rig.run(&at(ObjectOp::Stat, 7)), ENOENT);
    assert_eq!(rig.run(&at(ObjectOp::Remove, 7)), ENOENT);
    assert_eq!((0..3).map(|_| rig.run(&list)).sum::<i64>(), 24);
}

#[test]
fn arrays_are_written_over_chunks_and_read_short() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(3)), None);
    let operations = [
        ObjectOp::Create,
        ObjectOp::Open,
        ObjectOp::OpenWithAttr,
        ObjectOp::Write,
        ObjectOp::Read,
        ObjectOp::Size,
        ObjectOp::Query,
        ObjectOp::Destroy,
    ];
    let mut plan = Rig::plan(&operations, 100_000, 1);
    (plan.class, plan.cell_size_bytes, plan.chunk_size_cells) = (ObjectClass::SX, 1, 30_000);
    let id = object(&plan, 3);
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    let at = |kind, offset_bytes, bytes| ObjectOperation { offset_bytes, ..operation(kind, id, 0, bytes) };
    assert_eq!(rig.run(&at(ObjectOp::Open, 0, 0)), ENOENT);
    assert_eq!(rig.run(&at(ObjectOp::Create, 0, 0)), 0);
    assert_eq!(rig.run(&at(ObjectOp::Open, 0, 0)), 0);
    assert_eq!(rig.run(&at(ObjectOp::OpenWithAttr, 0, 0)), 0);
    assert_eq!(rig.run(&at(ObjectOp::Size, 0, 0)), 0);
    let write = at(ObjectOp::Write, 12_345, 87_655);
    rig.fill(&write, 5);
    assert_eq!(rig.run(&write), 87_655);
    let read = ObjectOperation { operation: ObjectOp::Read, ..write };
    rig.buffer(0).fill(0xee);
    assert_eq!((rig.run(&read), rig.has(&read, 5)), (87_655, true));
    assert_eq!(rig.run(&at(ObjectOp::Size, 0, 0)), 100_000);
    assert_eq!(rig.run(&at(ObjectOp::Query, 0, 0)), 4);
    // Before it is a hole, behind it nothing.
    rig.buffer(0).fill(0xee);
    assert_eq!(rig.run(&at(ObjectOp::Read, 0, 12_400)), 12_400);
    assert!(rig.buffer(0)[..12_345].iter().all(|&byte| byte == 0));
    assert_eq!(rig.run(&at(ObjectOp::Read, 99_000, 50_000)), 1000);
    assert_eq!(rig.run(&at(ObjectOp::Read, 500_000, 50_000)), 0);
    assert_eq!(rig.run(&at(ObjectOp::Destroy, 0, 0)), 0);
    assert_eq!(rig.run(&at(ObjectOp::Size, 0, 0)), ENOENT);
}

#[test]
fn arrays_that_are_opened_each_time_must_be_there() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(2)), None);
    let mut plan = Rig::plan(&[ObjectOp::Create, ObjectOp::Write, ObjectOp::Read], 1000, 1);
    (plan.keeps_handles, plan.object_type) = (false, ObjectType::Array);
    let id = object(&plan, 3);
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    let write = operation(ObjectOp::Write, id, 0, 1000);
    assert_eq!(rig.run(&write), ENOENT);
    assert_eq!(rig.run(&operation(ObjectOp::Create, id, 0, 0)), 0);
    rig.fill(&write, 2);
    assert_eq!(rig.run(&write), 1000);
    rig.buffer(0).fill(0);
    let read = operation(ObjectOp::Read, id, 0, 1000);
    assert_eq!((rig.run(&read), rig.has(&read, 2)), (1000, true));
}

#[test]
fn punches_remove_what_they_say() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(2)), None);
    for scope in [PunchScope::Record, PunchScope::Akey, PunchScope::Dkey, PunchScope::Object] {
        let mut plan = Rig::plan(&[ObjectOp::Update, ObjectOp::Punch, ObjectOp::Fetch], 100, 1);
        (plan.punch, plan.class) = (scope, class("RP_2G1"));
        let id = object(&plan, 3);
        let mut rig = Rig::open(&url(&engine, &format!("{scope:?}")), plan).expect("a driver");
        let other =
            |kind| ObjectOperation { akey: Key::new(b"b").expect("short"), ..operation(kind, id, 0, 100) };
        assert_eq!(rig.run(&operation(ObjectOp::Punch, id, 0, 100)), ENOENT);
        for update in [
            operation(ObjectOp::Update, id, 0, 100),
            operation(ObjectOp::Update, id, 1, 100),
            other(ObjectOp::Update),
        ] {
            assert_eq!(rig.run(&update), 100);
        }
        assert_eq!(rig.run(&operation(ObjectOp::Punch, id, 0, 100)), 0, "{scope:?}");
        let left = [
            rig.run(&operation(ObjectOp::Fetch, id, 0, 100)),
            rig.run(&other(ObjectOp::Fetch)),
            rig.run(&operation(ObjectOp::Fetch, id, 1, 100)),
        ];
        let expected = match scope {
            PunchScope::Record | PunchScope::Akey => [ENOENT, 100, 100],
            PunchScope::Dkey => [ENOENT, ENOENT, 100],
            PunchScope::Object => [ENOENT; 3],
        };
        assert_eq!(left, expected, "{scope:?}");
    }
}

#[test]
fn containers_ids_and_maintenance_are_operations_too() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(2)), None);
    let operations = [
        ObjectOp::Update,
        ObjectOp::OpenContainer,
        ObjectOp::AllocateIds,
        ObjectOp::Iterate,
        ObjectOp::Aggregate,
        ObjectOp::Discard,
        ObjectOp::Collect,
    ];
    let plan = Rig::plan(&operations, 100, 1);
    let (id, step) = (object(&plan, 3), i64::from(plan.ids_per_call));
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    for number in 0..5 {
        for _ in 0..2 {
            assert_eq!(rig.run(&operation(ObjectOp::Update, id, number, 100)), 100);
        }
    }
    let just = |kind| operation(kind, id, 0, 0);
    assert!(rig.run(&just(ObjectOp::OpenContainer)) >= 0);
    let first = rig.run(&just(ObjectOp::AllocateIds));
    assert!(first >= 0);
    assert_eq!(rig.run(&just(ObjectOp::AllocateIds)), first + step);
    assert_eq!(rig.run(&just(ObjectOp::Iterate)), 5);
    assert_eq!(rig.run(&just(ObjectOp::Aggregate)), 5, "of each value one version is older");
    assert!(rig.run(&just(ObjectOp::Collect)) >= 0);
    assert!(rig.run(&just(ObjectOp::Discard)) >= 5);
    assert_eq!(rig.run(&just(ObjectOp::Iterate)), ENOENT);
}

#[test]
fn containers_are_made_listed_and_cleaned() {
    let dir = scratch();
    let pool = pool_in(dir.path(), &small(1));
    let engine = serve(pool, None);
    let location = Location::parse(&url(&engine, "c")).expect("a URL");
    let never = std::sync::atomic::AtomicBool::new(false);
    let connect = || Control::connect(&location, None, Duration::from_secs(10), &never).expect("an engine");
    let mut control = connect();
    assert_eq!(control.pools().expect("pools"), ["tank"]);
    let facts = control.pool("tank").expect("a pool");
    assert!(facts.info.targets == 1 && facts.info.scm_bytes == 64 << 20 && !facts.durable_by.is_empty());
    let made = control.create_container("tank", "mine", Checksum::Sha256, None).expect("made");
    assert_eq!((made.label.as_str(), made.checksum), ("mine", Checksum::Sha256));
    let error = control.create_container("tank", "mine", Checksum::Off, None).expect_err("taken").to_string();
    assert!(error.contains("\"mine\"") && error.contains("already"), "{error}");
    let epoch = control.create_snapshot("tank", "mine").expect("a snapshot");
    assert_eq!(control.container("tank", "mine").expect("there").snapshots, [epoch]);
    control.destroy_snapshot("tank", "mine", epoch).expect("destroyed");
    let mut plan = Rig::plan(&[ObjectOp::Update], 100, 1);
    (plan.containers, plan.load.threads) = (Scope::Private, 2);
    let rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    let labels = |control: &mut Control| -> Vec<String> {
        control.containers("tank").expect("a list").into_iter().map(|info| info.label).collect()
    };
    assert_eq!(labels(&mut control), ["c.0", "c.1", "mine"]);
    assert_eq!(rig.backend.pool().expect("asked").expect("told").containers, 3);
    rig.backend.clean(&|_| ()).expect("cleaned");
    assert_eq!(labels(&mut control), ["mine"], "only what the run made is destroyed");
    control.destroy_container("tank", "mine").expect("destroyed");
    assert!(labels(&mut control).is_empty());
}

fn refusal(target: &str, creates: bool) -> Error {
    let mut request = request(target);
    request.creates = creates;
    let plan = Rig::plan(&[ObjectOp::Fetch], 100, 1);
    let prepared = object::connect(&request).and_then(|backend| backend.prepare(&plan));
    prepared.expect_err("refused")
}

#[test]
fn wrong_names_are_one_clear_line() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(2)), None);
    let whole = url(&engine, "c");
    let cases = [
        (whole.replace("/tank/", "/lake/"), "pool \"lake\" does not exist; the engine has tank"),
        (whole.clone(), "pool \"tank\" has no container \"c\""),
        (whole.replace("/tank/c", ""), "does not name a pool"),
    ];
    for (target, expected) in cases {
        let error = refusal(&target, false);
        let text = error.to_string();
        assert!(text.contains(expected) && !text.contains('\n') && error.exit_code() == 2, "{text}");
    }
    let mut plan = Rig::plan(&[ObjectOp::Fetch], 100, 1);
    plan.class = class("RP_3G1");
    let text = Rig::open(&whole, plan).map(drop).expect_err("too few targets").to_string();
    assert!(text.contains("needs 3 targets, but the store has 2"), "{text}");
}

#[test]
fn a_token_is_demanded_of_control_and_load() {
    let dir = scratch();
    let secret = Secret::new(&[7; 32]).expect("long enough");
    let engine = serve(pool_in(dir.path(), &small(1)), Some(secret.clone()));
    let mut request = request(&url(&engine, "c"));
    assert_eq!(object::connect(&request).map(drop).expect_err("no token").errno(), Some(libc::EACCES));
    request.secret = Some(secret);
    let backend = object::connect(&request).expect("the token");
    let plan = Rig::plan(&[ObjectOp::Update], 100, 1);
    let id = object(&plan, 1);
    backend.prepare(&plan).expect("prepared");
    let mut rig = Rig::open_on(backend, plan).expect("a driver");
    assert_eq!(rig.run(&operation(ObjectOp::Update, id, 0, 100)), 100);
}

#[test]
fn a_full_store_says_so_and_keeps_what_it_has() {
    let dir = scratch();
    let options = PoolOptions { scm_bytes: 16 << 20, ..small(1) };
    let engine = serve(pool_in(dir.path(), &options), None);
    let plan = Rig::plan(&[ObjectOp::Update, ObjectOp::Fetch], 100_000, 1);
    let id = object(&plan, 1);
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    let mut stored = 0;
    loop {
        let update = operation(ObjectOp::Update, id, stored, if stored % 2 == 0 { 100_000 } else { 8000 });
        rig.fill(&update, stored);
        match rig.run(&update) {
            result if result == update.value_bytes as i64 => stored += 1,
            result => {
                assert_eq!(result, -i64::from(libc::ENOSPC));
                break;
            }
        }
        assert!(stored < 1000, "16 MiB take no more");
    }
    assert!(stored > 100);
    for number in 0..stored {
        let fetch = operation(ObjectOp::Fetch, id, number, if number % 2 == 0 { 100_000 } else { 8000 });
        assert!(rig.run(&fetch) == fetch.value_bytes as i64 && rig.has(&fetch, number), "{number}");
    }
}

#[test]
fn coded_values_come_back_with_a_cell_lost() {
    let dir = scratch();
    let pool = pool_in(dir.path(), &small(4));
    let engine = serve(std::sync::Arc::clone(&pool), None);
    for (kind, sizes) in [(ValueKind::Single, BORDERS), (ValueKind::Array, &[2048, 65_536, 1 << 20][..])] {
        let mut plan = Rig::plan(&[ObjectOp::Update, ObjectOp::Fetch, ObjectOp::Stat], 1 << 20, 2);
        (plan.class, plan.dataset.value) = (class("EC_2P2G1"), kind);
        (plan.dataset.value_size, plan.punch) = ("1m".to_owned(), PunchScope::Dkey);
        let id = object(&plan, 1);
        let label = format!("{kind:?}");
        let mut rig = Rig::open(&url(&engine, &label), plan).expect("a driver");
        let container = pool.find_container(&label).expect("made").id;
        for (number, &bytes) in (0..).zip(sizes) {
            let update = operation(ObjectOp::Update, id, number, bytes);
            rig.fill(&update, number);
            assert_eq!(rig.run(&update), bytes as i64, "{kind:?} {bytes}");
            let fetch = ObjectOperation { operation: ObjectOp::Fetch, ..update };
            for lost in 0..3 {
                rig.buffer(0).fill(0xee);
                assert_eq!(rig.run(&fetch), bytes as i64, "{kind:?} {bytes} without {lost}");
                assert!(rig.has(&fetch, number), "{kind:?} {bytes} without {lost}");
                if lost == 0 && kind == ValueKind::Single {
                    let stat = ObjectOperation { operation: ObjectOp::Stat, ..update };
                    assert_eq!(rig.run(&stat), bytes as i64);
                }
                // A cell less, up to as many as there is parity.
                let mut targets = pool.targets().iter();
                let place = KeyPath { container, object: id, dkey: update.dkey.as_bytes(), akey: b"a" };
                assert!(
                    lost == 2
                        || targets.any(|target| target.punch(&place, Punch::Akey, Ack::AsConfigured).is_ok())
                );
            }
        }
    }
}

#[test]
fn coded_arrays_are_written_and_read_as_they_come() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(3)), None);
    let operations = [
        ObjectOp::Create,
        ObjectOp::Open,
        ObjectOp::Write,
        ObjectOp::Read,
        ObjectOp::Size,
        ObjectOp::Destroy,
    ];
    let mut plan = Rig::plan(&operations, 1 << 17, 1);
    plan.class = class("EC_2P1G1");
    (plan.dataset.value_size, plan.chunk_size_cells) = ("128k".to_owned(), 1 << 15);
    let id = object(&plan, 1);
    let mut rig = Rig::open(&url(&engine, "c"), plan).expect("a driver");
    let at = |kind, offset_bytes, bytes| ObjectOperation { offset_bytes, ..operation(kind, id, 0, bytes) };
    assert_eq!(rig.run(&at(ObjectOp::Open, 0, 0)), ENOENT);
    assert_eq!(rig.run(&at(ObjectOp::Create, 0, 0)), 0);
    assert_eq!(rig.run(&at(ObjectOp::Open, 0, 0)), 0);
    let write = at(ObjectOp::Write, 2048, 1 << 17);
    rig.fill(&write, 5);
    assert_eq!(rig.run(&write), 1 << 17);
    assert_eq!(rig.run(&at(ObjectOp::Size, 0, 0)), 2048 + (1 << 17));
    let all = crate::support::content(5, 1 << 17);
    for (from, bytes) in [(0, 1 << 17), (1, 100), (1000, 100), (2047, 70_000), (131_000, 72)] {
        rig.buffer(0).fill(0xee);
        let read = at(ObjectOp::Read, 2048 + from, bytes);
        assert_eq!(rig.run(&read), bytes as i64, "{from} {bytes}");
        let expected = &all[from as usize..(from + bytes) as usize];
        assert!(&rig.buffer(0)[..bytes as usize] == expected, "{from} {bytes}");
    }
    assert_eq!(rig.run(&at(ObjectOp::Read, 2048 + 131_000, 10_000)), 72, "short");
    // A part of a stripe, before what is there.
    assert_eq!(rig.run(&at(ObjectOp::Write, 0, 100)), 100);
    assert_eq!(rig.run(&at(ObjectOp::Read, 2048 + 131_000, 72)), 72);
    assert!(rig.buffer(0)[..72] == all[131_000..]);
    assert_eq!(rig.run(&at(ObjectOp::Destroy, 0, 0)), 0);
    assert_eq!(rig.run(&at(ObjectOp::Size, 0, 0)), ENOENT);
}
