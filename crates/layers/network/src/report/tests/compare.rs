//! Records of the network against each other.

use report::compare::{FigureName, Operand, compare, render};
use report::sample::record;
use statistics::Verdict;

use crate::sample::{EMPTY, MIB, Pair, network_phase, network_plan};

#[test]
fn networks_are_compared_too() {
    let side = |label: &str, operations_per_second: u64, connections: u32| {
        let pair = Pair { master: 0, endpoint: 0, operations_per_second, latency_ns: 4_000_000, refused: 0 };
        let mut plan = network_plan(MIB, EMPTY, 1);
        plan.connections = connections;
        let made = record(vec![network_phase(plan, &[pair])]);
        Operand { label: label.to_owned(), records: vec![(format!("{label}-1"), made)] }
    };
    let found = compare(&side("a", 2000, 1), &side("b", 3000, 2), false, &[]).unwrap();
    let phase = &found.phases[0];
    let rate = &phase.classes[0].figures[0];
    assert_eq!((rate.figure, rate.verdict), (FigureName::Rate, Verdict::Faster));
    let fields: Vec<_> = phase.differs.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(fields, ["connections"]);
    let text = render(&found, 100, false);
    assert!(text.contains("connections: 1 → 2"), "{text}");
}

#[test]
fn servers_are_told_apart_in_a_history() {
    // The label of an endpoint is the same in every group: `0:2`.
    let record = crate::sample::two_endpoints();
    let series = report::history::series_of(&record);
    let network = record.phases[0].plan.of::<crate::plan::NetworkPlan>().unwrap();
    assert!(network.endpoints.iter().all(|endpoint| series.contains(&endpoint.uri)), "{series}");
}
