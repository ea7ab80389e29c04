//! Operations where nothing goes wrong.

use std::collections::BTreeSet;

use object::ObjectOperation;
use object::plan::{Addressing, ObjectOp, Signing};
use proptest::prelude::*;
use vos::model::Key;

use crate::bed::{BUCKET, Bed, content, operation, server};

fn ways() -> Vec<(Addressing, Signing, bool)> {
    let addressing = [Addressing::Path, Addressing::VirtualHost];
    let signing = [Signing::Payload, Signing::Headers];
    addressing
        .into_iter()
        .flat_map(|a| signing.into_iter().flat_map(move |s| [true, false].map(|zero_copy| (a, s, zero_copy))))
        .collect()
}

#[test]
fn values_come_back_in_every_way() {
    let server = server();
    for (addressing, signing, zero_copy) in ways() {
        let bed = Bed::new(&server, |plan| {
            plan.options.s3_addressing = addressing;
            plan.options.s3_signing = signing;
            plan.options.zero_copy = zero_copy;
        });
        bed.prepare().expect("prepared");
        let mut worker = bed.worker(1);
        for (number, bytes) in [(1, 0), (2, 1), (3, 4096), (4, 65_536), (3, 4096), (2, 1)] {
            assert_eq!(worker.put(number, bytes), bytes as i64, "{addressing:?} {signing:?} {bytes}");
            assert_eq!(server.store().data(BUCKET, &format!("blade-{number}")), Some(content(number, bytes)));
            assert_eq!(worker.get(number, bytes), bytes as i64, "{addressing:?} {signing:?} {bytes}");
        }
        assert_eq!(worker.findings(), "");
        assert_eq!(worker.tally("s3_connections") as u64, 1, "one connection carries them all");
        drop(worker);
        bed.clean();
    }
}

#[test]
fn many_are_in_flight_at_once_on_several_servers() {
    let (first, second) = (server(), server());
    let bed = Bed::new(&first, |plan| {
        plan.options.s3_endpoints.push(second.endpoint());
        plan.dataset.value_size_bytes_max = 4096;
    });
    bed.prepare().expect("prepared");
    let mut worker = bed.worker(64);
    let batch = |op: ObjectOp| -> Vec<ObjectOperation> {
        (0..64).map(|slot| ObjectOperation { slot, ..operation(op, u64::from(slot), 4096) }).collect()
    };
    for slot in 0..64 {
        worker.fill(slot, &content(u64::from(slot), 4096));
    }
    assert!(worker.run(&batch(ObjectOp::Put)).iter().all(|&(_, result)| result == 4096));
    assert_eq!((first.store().keys(BUCKET).len(), second.store().keys(BUCKET).len()), (32, 32));
    (0..64).for_each(|slot| worker.fill(slot, &[0; 4096]));
    let results = worker.run(&batch(ObjectOp::Get));
    assert_eq!(results.iter().map(|&(slot, _)| slot).collect::<BTreeSet<_>>().len(), 64);
    for (slot, result) in results {
        assert_eq!(result, 4096);
        assert!(worker.read(slot, 4096) == content(u64::from(slot), 4096), "slot {slot}");
    }
    assert_eq!(worker.tally("s3_connections") as u64, 64);
}

#[test]
fn ranges_are_parts_of_the_value() {
    let server = server();
    let whole = content(9, 10_000);
    server.store().insert(BUCKET, "blade-9", whole.clone());
    let bed = Bed::new(&server, |_| {});
    let mut worker = bed.worker(1);
    let read = |offset_bytes, value_bytes, is_short_good| ObjectOperation {
        offset_bytes,
        is_short_good,
        ..operation(ObjectOp::Read, 9, value_bytes)
    };
    assert_eq!(worker.one(read(4096, 4096, false)), 4096);
    assert_eq!(worker.read(0, 4096), whole[4096..8192]);
    assert_eq!(worker.one(read(8192, 4096, true)), 1808, "what there is");
    assert_eq!(worker.read(0, 1808), whole[8192..]);
    assert_eq!(worker.one(read(20_000, 4096, true)), 0, "nothing beyond the end");
    assert_eq!(worker.one(operation(ObjectOp::Read, 10, 16)), -i64::from(libc::ENOENT));
}

#[test]
fn a_value_of_another_length_is_told() {
    let server = server();
    server.store().insert(BUCKET, "blade-1", vec![7; 5000]);
    let bed = Bed::new(&server, |_| {});
    let mut worker = bed.worker(1);
    assert_eq!(worker.one(operation(ObjectOp::Get, 1, 6000)), 5000, "fewer bytes are never called more");
    assert_eq!(worker.one(operation(ObjectOp::Get, 1, 4096)), -i64::from(libc::EMSGSIZE));
    assert_eq!(worker.one(operation(ObjectOp::Stat, 1, 0)), 5000);
    assert!(worker.findings().contains("the object has 5000 bytes, but 4096 were requested"));
}

#[test]
fn what_is_not_there_or_removed() {
    let server = server();
    let bed = Bed::new(&server, |_| {});
    let mut worker = bed.worker(1);
    assert_eq!(worker.one(operation(ObjectOp::Get, 1, 16)), -i64::from(libc::ENOENT));
    assert_eq!(worker.one(operation(ObjectOp::Stat, 1, 0)), -i64::from(libc::ENOENT));
    assert_eq!(worker.put(1, 16), 16);
    assert_eq!(worker.one(operation(ObjectOp::Remove, 1, 0)), 0);
    assert_eq!(worker.one(operation(ObjectOp::Get, 1, 16)), -i64::from(libc::ENOENT));
    let findings = worker.findings();
    assert!(findings.contains("404 NoSuchKey: 2 failed (The specified key does not exist.)"), "{findings}");
    assert!(findings.contains("404 Not Found: 1 failed"), "{findings}");
    assert_eq!(worker.one(operation(ObjectOp::Write, 1, 16)), -i64::from(libc::EOPNOTSUPP));
    assert_eq!(worker.tally("s3_connections") as u64, 1, "refusals keep the connection");
}

#[test]
fn lists_go_on_where_they_ended() {
    let server = server();
    for number in 0..2500 {
        server.store().insert(BUCKET, &format!("p&/blade-{number:04}"), Vec::new());
    }
    server.store().insert(BUCKET, "other", Vec::new());
    let mut bed = Bed::new(&server, |plan| plan.list_max = 900);
    let mut connect = crate::bed::request(&bed.plan.options, crate::bed::key(&Default::default()));
    connect.target = format!("s3://{BUCKET}/p&/");
    bed.backend = object::connect(&connect).expect("a store");
    let mut worker = bed.worker(1);
    let list = |worker: &mut crate::bed::Worker| worker.one(operation(ObjectOp::List, 0, 0));
    assert_eq!([0; 4].map(|_| list(&mut worker)), [900, 900, 700, 900]);
    // More than a server brings in one page are several requests.
    bed.plan.list_max = 2200;
    let mut worker = bed.worker(1);
    server.faults().inject(testkit::s3::Fault::None, 1);
    assert_eq!([0; 2].map(|_| list(&mut worker)), [2200, 300]);
    assert_eq!(server.faults().requests(), 4);
}

#[test]
fn objects_have_names_of_their_own() {
    let server = server();
    let bed = Bed::new(&server, |plan| {
        plan.dataset.objects = 3;
        plan.dataset.integer_dkeys = true;
    });
    let mut worker = bed.worker(1);
    let mut put = operation(ObjectOp::Put, 0, 4);
    put.object.lo = 2;
    put.dkey = Key::integer(513);
    assert_eq!(worker.one(put), 4);
    assert_eq!(server.store().keys(BUCKET), ["o2/513"]);
    let mut list = operation(ObjectOp::List, 0, 0);
    list.object.lo = 2;
    assert_eq!(worker.one(list), 1);
    list.object.lo = 1;
    assert_eq!(worker.one(list), 0);
}

#[test]
fn keys_of_any_text_are_signed_and_found() {
    let server = server();
    let bed = Bed::new(&server, |_| {});
    let worker = std::cell::RefCell::new(bed.worker(1));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
    // Not `.` and `..` between slashes, which are no keys to some servers.
    let keys = "[ -\\-0-~äß€✓\\t\\n]{1,10}/?[a-z+%?#&=;,$@ ]{1,10}";
    let checked = runner.run(&keys.prop_filter("fits", |key| key.len() <= 47), |key| {
        let mut worker = worker.borrow_mut();
        let named = |op, bytes| ObjectOperation {
            dkey: Key::new(key.as_bytes()).expect("short"),
            ..operation(op, 0, bytes)
        };
        worker.fill(0, b"data");
        prop_assert_eq!(worker.one(named(ObjectOp::Put, 4)), 4, "{:?}", worker.findings());
        prop_assert_eq!(server.store().data(BUCKET, &key), Some(b"data".to_vec()));
        prop_assert_eq!(worker.one(named(ObjectOp::Get, 4)), 4);
        prop_assert_eq!(worker.one(operation(ObjectOp::List, 0, 0)), 1);
        prop_assert_eq!(worker.one(named(ObjectOp::Remove, 0)), 0);
        prop_assert!(server.store().keys(BUCKET).is_empty());
        Ok(())
    });
    checked.expect("every key");
}
