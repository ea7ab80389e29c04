//! Words of plans that are built in place, lines of phases, and the store in a stack.

use crate::sample::{KV, object_phase, object_plan};
use report::record::{Record, StoreActivity, StoreSpace};
use report::sample;
use workload::plan::{LayerPlan as _, Pattern};

use super::words::{data, place, store};
use crate::plan::{ObjectOp, ObjectPlan, OpShare};

/// The text of a record, with the reports of the network and of objects.
fn render(record: &Record, width: usize, colour: bool) -> String {
    [network::VIEW, super::VIEW].into_iter().for_each(report::view::add);
    report::render(record, width, colour)
}

#[test]
fn operations_and_data_in_words() {
    let mut plan = object_plan(&KV);
    assert_eq!(plan.operation_words(), "4KiB get");
    assert_eq!(data(&plan), "1 object x 1000 dkeys: 1000 single values of 4KiB");
    assert_eq!(place(&plan), "vos:/mnt/pmem, container strata, checksum crc32");
    plan.mix.push(OpShare { operation: ObjectOp::Put, percent: 30 });
    plan.mix[0].percent = 70;
    plan.pattern = Pattern::Zipf { theta: 0.9 };
    assert_eq!(plan.operation_words(), "4KiB 70% get, 30% put, zipf:0.9");
    plan.sequence = vec![ObjectOp::OpenWithAttr, ObjectOp::Size];
    assert_eq!(plan.operation_words(), "open-with-attr then size, zipf:0.9");
}

#[test]
fn space_says_what_a_phase_took() {
    let space = |free: u64| StoreSpace {
        scm_bytes: 2 << 30,
        scm_free_bytes: free,
        index_bytes: 1 << 20,
        containers: 1,
        ..StoreSpace::default()
    };
    let seen = StoreActivity {
        targets: 1,
        durable_by: "msync".to_owned(),
        before: Some(space(2 << 30)),
        after: Some(space((2 << 30) - (64 << 20))),
        acknowledged: None,
    };
    let text = store(&seen);
    assert!(text.starts_with("1 target, durable by msync; SCM 64 MiB of 2 GiB used (+64 MiB)"), "{text}");
    assert!(text.ends_with("index uses 1 MiB of memory") && !text.contains("NVMe"), "{text}");
}

#[test]
fn what_was_stored_before_stands_in_a_line() {
    let mut fill = object_phase(&KV);
    if let Some(plan) = fill.plan.of_mut::<ObjectPlan>() {
        (plan.is_fill, plan.name) = (true, "fill: put".to_owned());
    }
    let page = render(&sample::record(vec![fill.clone(), object_phase(&KV)]), 120, false);
    assert!(page.contains("filled    get: 3600000 operations in 4.00 s, 13.7 GiB (3.43 GiB/s)"), "{page}");
    assert!(page.contains("on        vos:/mnt/pmem, container strata, checksum crc32"), "{page}");
    assert_eq!(page.matches("confidence").count() + page.matches("95 % CI").count(), 1, "{page}");
    fill.failure = Some("no space left".to_owned());
    let page = render(&sample::record(vec![fill]), 120, false);
    assert!(page.contains("failed    no space left"), "{page}");
}
