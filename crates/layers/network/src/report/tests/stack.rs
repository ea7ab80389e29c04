use report::record::{Doubt, Record};
use report::sample::{self, StackShape};
use report::stack::Verdict;
use workload::spec::Operation::{RandRead, Read};

use crate::NetworkPlan;
use crate::sample::{EMPTY, MIB as BULK, loopback, stack_row};

const MIB: u64 = 1 << 20;

fn doubt(kind: &str) -> Doubt {
    Doubt { kind: kind.to_owned(), detail: "seen".to_owned(), remedy: "do".to_owned() }
}

/// Memory, drive and file at one load, with these rates.
fn three(operation: workload::spec::Operation, block: u64, rates: [f64; 3]) -> Vec<StackShape> {
    let layers = ["memory", "media", "file"];
    layers.iter().zip(rates).map(|(layer, rate)| (*layer, operation, block, rate)).collect()
}

fn verdict(record: &Record) -> Verdict {
    report::view::add(crate::VIEW);
    report::verdict(record)
}

fn network(verdict: &Verdict) -> &[String] {
    &verdict.outlooks.iter().find(|outlook| outlook.label == "network").expect("it has an outlook").sentences
}

#[test]
fn the_network_is_compared_with_the_storage_behind_it() {
    let rows = [three(Read, MIB, [9800.0, 2000.0, 1900.0]), three(RandRead, 4096, [1e6, 10_000.0, 9500.0])];
    registry::register();
    let mut record = sample::stack(&rows.concat());
    let before = verdict(&record);
    assert_eq!(network(&before), &[""; 0]);
    stack_row(&mut record, "1 MiB sequential read", (EMPTY, BULK), 1000);
    stack_row(&mut record, "empty RPC", (EMPTY, EMPTY), 40_000);
    let found = verdict(&record);
    assert_eq!(
        (&found.sentence, &found.loads),
        (&before.sentence, &before.loads),
        "it is no layer of the stack"
    );
    assert_eq!(
        network(&found),
        [
            "1 MiB sequential read: the network gives 1000 MiB/s, the drive 1.95 GiB/s: behind an engine the network \
             would hold it back, 2.00 times (sure)",
            "4 KiB random read: the network carries empty RPCs at 40.0k/s, the drive 10.0k/s: behind an engine it stays \
             the limit, the network has 4.00 times as much (sure)",
        ]
    );
    assert_eq!(
        found.try_lines.last().unwrap(),
        "more in flight on the network, then a faster link or several of them"
    );
    let text = super::render(&record, 200, false);
    assert!(text.contains("network   1 MiB sequential read: the network gives"), "{text}");
    let at = record.phases.len() - 2;
    if let Some(plan) = record.phases[at].plan.of_mut::<NetworkPlan>() {
        plan.interface = Some(loopback());
    }
    record.phases[at].doubts.push(doubt("loopback"));
    let found = verdict(&record);
    assert!(network(&found)[0].contains("read: loopback (a copy, no link) gives"), "{:?}", network(&found));
    assert!(network(&found)[0].ends_with("(likely)"), "{:?}", network(&found));
    assert!(found.try_lines.last().unwrap().starts_with("loopback is the kernel's memory copy and no link"));
}
