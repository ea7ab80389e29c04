//! Doubts of the object layer.

use crate::sample::{KV, object_phase};
use report::doubts::{Evidence, find};
use report::record::{Doubt, Record};
use vos::Durability;

use crate::plan::{ObjectOp, ObjectPlan, OpShare};

/// Doubts of the first phase of a record.
fn doubts(record: &Record) -> Vec<Doubt> {
    report::view::add(crate::VIEW);
    find(&Evidence::of(record, &record.phases[0]))
}

fn plan(record: &mut Record) -> &mut ObjectPlan {
    record.phases[0].plan.of_mut().expect("the sample measures objects")
}

/// The detail of a kind on 4 KiB gets of a sound store, after a change.
fn detail_of(kind: &str, change: impl FnOnce(&mut Record)) -> Option<String> {
    let mut record = report::sample::record(vec![object_phase(&KV)]);
    change(&mut record);
    doubts(&record).into_iter().find(|doubt| doubt.kind == kind).map(|doubt| doubt.detail)
}

#[test]
fn a_sound_object_phase_raises_none() {
    let record = report::sample::record(vec![object_phase(&KV)]);
    assert_eq!(doubts(&record), []);
}

#[test]
fn not_durable() {
    let puts = |durability: Durability| {
        move |record: &mut Record| {
            plan(record).mix = vec![OpShare { operation: ObjectOp::Put, percent: 100 }];
            plan(record).options.durability = durability;
        }
    };
    assert!(detail_of("not_durable", puts(Durability::Batch)).unwrap().contains("10 ms"));
    assert!(detail_of("not_durable", puts(Durability::None)).is_some());
    assert_eq!(detail_of("not_durable", puts(Durability::Sync)), None);
    let gets = |record: &mut Record| plan(record).options.durability = Durability::None;
    assert_eq!(detail_of("not_durable", gets), None, "gets change nothing");
}

#[test]
fn paging() {
    let faults = |record: &mut Record| record.phases[0].observations.major_faults = 1_000_000;
    assert!(detail_of("paging", faults).unwrap().contains("1.00M page faults"));
    let few = |record: &mut Record| record.phases[0].observations.major_faults = 99;
    assert_eq!(detail_of("paging", few), None);
}

#[test]
fn store_grew() {
    let grown = |bytes: u64, operation: ObjectOp, class: &'static str| {
        move |record: &mut Record| {
            plan(record).mix = vec![OpShare { operation, percent: 100 }];
            let phase = &mut record.phases[0];
            phase.summary.classes.iter_mut().for_each(|own| {
                own.class = class.to_owned();
                own.bytes = 1 << 30;
            });
            phase.observations.store.as_mut().unwrap().after.as_mut().unwrap().grown_bytes = bytes;
        }
    };
    let found = detail_of("store_grew", grown(256 << 20, ObjectOp::Put, "put")).unwrap();
    assert!(found.contains("allocated 256 MiB from the file system during the measurement"), "{found}");
    assert_eq!(
        detail_of("store_grew", grown(100 << 20, ObjectOp::Put, "put")),
        None,
        "a tenth of what was written"
    );
    assert_eq!(detail_of("store_grew", grown(63 << 20, ObjectOp::Put, "put")), None);
}

#[test]
fn found_nothing() {
    let short = |record: &mut Record| plan(record).short_read_bytes = Some(1 << 20);
    assert!(detail_of("found_nothing", short).unwrap().contains("reads found 0.39%"));
    let enough = |record: &mut Record| plan(record).short_read_bytes = Some(8192);
    assert_eq!(detail_of("found_nothing", enough), None);
}

#[test]
fn loopback_and_a_busy_client() {
    let target = |target: &'static str| move |record: &mut Record| plan(record).target = target.to_owned();
    let found = detail_of("loopback", target("engine://127.0.0.1:31416/pool/c"));
    assert_eq!(
        found.unwrap(),
        "the store is at 127.0.0.1:31416: this tested loopback (a kernel memory copy), not a link"
    );
    assert_eq!(detail_of("loopback", target("engine://store1:31416/pool/c")), None);
    assert_eq!(detail_of("loopback", target("s3://bucket")), None);
    let busy = |record: &mut Record| record.phases[0].summary.tool_share_max = 0.5;
    assert_eq!(detail_of("client_saturated", busy).unwrap(), "strata itself took 50.0% of a worker's time");
}
