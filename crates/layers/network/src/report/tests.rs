mod charts;
mod compare;
mod csv;

use report::record::Record;
use rpc::EndpointPlan;
use workload::plan::LayerPlan as _;

use super::matrix::Matrix;
use super::words::places;
use crate::sample::*;
use crate::{NetworkPlan, Payload, PayloadKind, Traffic};

/// The text of a record, with the report of the network.
fn render(record: &Record, width: usize, colour: bool) -> String {
    report::view::add(super::VIEW);
    report::render(record, width, colour)
}

fn plan_of(record: &mut Record) -> &mut NetworkPlan {
    record.phases[0].plan.of_mut().expect("the sample measures a network")
}

fn links(record: &Record) -> Vec<String> {
    Matrix::of(&record.phases[0]).expect("masters drive").sentences()
}

#[test]
fn a_phase_says_where_what_and_how_much() {
    let text = render(&two_endpoints(), 100, false);
    let expected = "\
what      network, RPCs, 1MiB bulk out, nothing back, 1 thread x 16 in flight, tcp, poll adaptive,
          4.00 s
on        0:2 at tcp://10.0.0.1:31416
          1:2 at tcp://10.0.0.2:31416, group daos_server
through   eth0 (mlx5_0): 100 Gbit/s, MTU 9000, NUMA node 1; on the NUMA node of the workers
";
    assert!(text.contains(expected), "{text}");
    let expected = "
out       3.71 GiB/s, 31.9 Gbit/s, 31.9% of the link's 100 Gbit/s
precision ";
    assert!(text.contains(expected), "{text}");
    let expected = "
CPU       client 2.00 us per RPC, 2.05 ms per GiB; servers 1.60 us per RPC, 1.64 ms per GiB (2
          endpoints, 0.01 CPUs busy)
TCP       2 connections, round trip 31.0 us, congestion window 10 packets (640 KiB), 6 retransmits,
          3 segments retransmitted by this machine (0.00% of 10.0M)

by endpoint     rate   bandwidth     mean      p50      p99  errors
0:2          2.00k/s  1.95 GiB/s  4.12 ms  4.00 ms  4.80 ms       -
1:2          1.80k/s  1.76 GiB/s  4.53 ms  4.40 ms  5.28 ms       -
";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("by master") && !text.contains("links  "), "{text}");
    let line = report::summary_line(&two_endpoints().phases[0]);
    assert!(line.starts_with("rpc: 3.80k/s") && line.contains("3.71 GiB/s, p50 "), "{line}");
}

#[test]
fn failures_are_told_by_endpoint_and_cause() {
    let text = render(&failing_endpoint(), 100, false);
    assert!(text.contains("errors    7 rpc: Connection refused (errno 111), first after 1.00 s\n"), "{text}");
    assert!(text.contains("failures  1:2: 7 Connection refused\n"), "{text}");
    assert!(
        text.contains("1:2            100/s   100 MiB/s  4.12 ms  4.00 ms        -       7\n"),
        "100 operations have no p99: {text}"
    );
}

#[test]
fn many_endpoints_show_the_slowest_and_the_fastest() {
    let pair = |endpoint: usize| Pair {
        master: 0,
        endpoint,
        operations_per_second: 1000,
        latency_ns: 1_000_000 + 10_000 * endpoint as u64,
        refused: 0,
    };
    let pairs: Vec<Pair> = (0..40).map(pair).collect();
    let mut record = two_endpoints();
    record.phases = vec![network_phase(network_plan(MIB, MIB, 40), &pairs)];
    let text = render(&record, 100, false);
    assert!(text.contains("the 8 slowest of 40, by mean latency\n39:2 "), "{text}");
    assert!(text.contains("the 8 fastest\n0:2 "), "{text}");
    assert!(!text.contains("\n20:2 "), "{text}");
    assert!(text.contains("\nout       ") && text.contains("\nin        "), "{text}");
    assert!(text.contains("          and 37 more, 40 endpoints in total, group daos_server\n"), "{text}");
}

#[test]
fn endpoints_of_a_rank_stand_together() {
    let mut plan = network_plan(EMPTY, EMPTY, 1);
    let one = plan.endpoints[0].clone();
    plan.endpoints =
        [2, 3, 4, 9].map(|tag| EndpointPlan { tag, label: format!("0:{tag}"), ..one.clone() }).to_vec();
    assert_eq!(places(&plan), ["0:2-4,9 at tcp://10.0.0.1:31416, group daos_server"]);
    plan.group = None;
    plan.endpoints.truncate(1);
    plan.endpoints[0].label = "node01:1611".to_owned();
    assert_eq!(places(&plan), ["node01:1611 at tcp://10.0.0.1:31416"]);
}

#[test]
fn payloads_have_words() {
    let iov = |size_bytes| Payload { kind: PayloadKind::Iov, size_bytes };
    let words = |request, reply| network_plan(request, reply, 1).operation_words();
    assert_eq!(words(EMPTY, EMPTY), "empty RPCs");
    assert_eq!(words(iov(2048), iov(2048)), "RPCs, 2KiB inline out, 2KiB inline back");
    assert_eq!(words(EMPTY, MIB), "RPCs, nothing out, 1MiB bulk back");
}

#[test]
fn the_slow_link_is_named() {
    let record = matrix(4, &[(1, 3, 3)]);
    let found = links(&record);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("link 1 → 3 is slow: its RPCs take 2."), "{found:?}");
    let text = render(&record, 100, false);
    let expected = "
bandwidth in MiB/s, rows send to columns (ranks)
→      0      1     2     3
0   1000    925   934   943
1    952    961   970   326
2    990   1000   925   934
3    943    952   961   970
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\np99 in ms, rows send to columns (ranks)\n"), "{text}");
    assert!(text.contains("\nfrom      4 masters (0:0, 1:0, 2:0, ...), each to every endpoint\n"), "{text}");
    assert!(text.contains("\nby master     rate"), "{text}");
    let coloured = render(&record, 100, true);
    assert!(coloured.contains("\x1b[38;5;231;48;5;17m 326\x1b[0m"), "the lowest level is dark: {coloured}");
    let plain: String = coloured
        .split('\x1b')
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { part.split_once('m').unwrap().1 })
        .collect();
    assert_eq!(plain, text);
}

#[test]
fn the_slow_host_is_named_with_its_side() {
    let receiver: Vec<_> = (0..6).filter(|from| *from != 2).map(|from| (from, 2, 4)).collect();
    let found = links(&matrix(6, &receiver));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("rank 2 (10.0.0.3) is slow as a receiver: RPCs to it take 3.9"),
        "{found:?}"
    );
    let sender: Vec<_> = (0..6).filter(|to| *to != 5).map(|to| (5, to, 4)).collect();
    let found = links(&matrix(6, &sender));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("rank 5 (10.0.0.6) is slow as a sender: RPCs from it take "), "{found:?}");
}

#[test]
fn nothing_is_named_where_nothing_stands_out() {
    assert!(links(&matrix(5, &[]))[0].starts_with("no host or link is significantly slower"));
    assert!(links(&matrix(2, &[(0, 1, 9)]))[0].starts_with("too few pairs to distinguish"));
}

#[test]
fn a_dead_link_is_named_first() {
    let mut record = matrix(5, &[]);
    let dead = &mut record.phases[0].samples.workers[1].parts[3];
    (dead.operations, dead.errors, dead.latency) = (0, 12, Default::default());
    assert_eq!(links(&record)[0], "link 1 → 3: nothing completed, 12 errors");
    assert!(render(&record, 100, false).contains(" failed"));
}

#[test]
fn large_matrices_are_joined_by_rank() {
    let joined = Matrix::of(&matrix(40, &[]).phases[0]).unwrap();
    assert_eq!((joined.rows.len(), joined.lines.as_str()), (20, "groups of 2 ranks"));
    assert_eq!((joined.rows[0].as_str(), joined.rows[19].as_str()), ("0-1", "38-39"));
    let alone = matrix(20, &[]);
    let all: u64 = alone.phases[0].samples.workers.iter().map(statistics::WorkerSamples::operations).sum();
    let whole = Matrix::of(&alone.phases[0]).unwrap();
    assert_eq!(whole.rows.len(), 20);
    let sum: u64 = whole.pairs.iter().flatten().flatten().map(|pair| pair.operations).sum();
    assert_eq!(sum, all);
}

#[test]
fn pairs_outside_of_the_traffic_stay_empty() {
    let mut record = matrix(6, &[]);
    let plan = plan_of(&mut record);
    plan.traffic = Traffic::Ring;
    for (at, master) in plan.masters.iter_mut().enumerate() {
        master.endpoints = vec![(at as u32 + 1) % 6];
    }
    for (at, worker) in record.phases[0].samples.workers.iter_mut().enumerate() {
        worker.parts.retain(|part| part.part == (at + 1) % 6);
    }
    let ring = Matrix::of(&record.phases[0]).unwrap();
    assert_eq!(ring.pairs.iter().flatten().flatten().count(), 6);
    assert!(
        ring.sentences()[0].starts_with("no host or link is significantly slower"),
        "{:?}",
        ring.sentences()
    );
}

#[test]
fn a_ladder_counts_rpcs_in_flight() {
    let text = render(&in_flight_ladder(&[1, 4, 8, 16], 30_000.0, 200_000.0), 100, false);
    assert!(text.contains(
        "rpc over RPCs in flight\nwhat      network, empty RPCs, 1 thread, tcp, poll adaptive, 4.00 s each"
    ));
    assert!(text.contains("\nin flight     rate"), "{text}");
    assert!(
        text.contains("\nknee      8 in flight: 200k/s, mean 40.0 us; beyond it, latency grows"),
        "{text}"
    );
}

#[test]
fn hostile_names_do_not_steer_the_terminal() {
    let mut record = matrix(3, &[]);
    let plan = plan_of(&mut record);
    for endpoint in &mut plan.endpoints {
        endpoint.label = "e\x1b[2J\n".to_owned();
        endpoint.uri = "tcp://\x1b[2J".to_owned();
    }
    for master in &mut plan.masters {
        (master.label, master.rank) = ("m\x1b[2J".to_owned(), None);
    }
    plan.group = Some("\x07".to_owned());
    if let Some(through) = &mut plan.interface {
        (through.name, through.chosen) = ("\x1b".to_owned(), "\x1b".to_owned());
    }
    for worker in &mut record.phases[0].samples.workers {
        worker.origin = Some("m\x1b[2J".to_owned());
    }
    let text = render(&record, 80, false);
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    for width in [40, 60, 80] {
        for line in render(&matrix(12, &[]), width, false).lines() {
            assert_eq!(line, line.trim_end(), "{width}");
        }
    }
}
