//! Doubts of the network layer, and the general ones on its phases.

use host::topology::NumaNode;
use report::doubts::Evidence;
use report::record::{Doubt, LinkActivity, Observations, Record, ServerActivity};
use rpc::Poll;
use statistics::TallySample;

use crate::{NetworkPlan, sample as records};

/// Doubts of a phase, with those of the network.
fn find(evidence: &Evidence<'_>) -> Vec<Doubt> {
    report::view::add(crate::VIEW);
    report::doubts::find(evidence)
}

/// Doubts of a sound phase, 1 MiB to two endpoints, after a change.
fn doubts(change: impl FnOnce(&mut Record)) -> Vec<Doubt> {
    let mut record = records::two_endpoints();
    change(&mut record);
    find(&Evidence::of(&record, &record.phases[0]))
}

fn kinds_of(change: impl FnOnce(&mut Record)) -> Vec<String> {
    doubts(change).into_iter().map(|doubt| doubt.kind).collect()
}

fn detail_of(kind: &str, change: impl FnOnce(&mut Record)) -> Option<String> {
    doubts(change).into_iter().find(|doubt| doubt.kind == kind).map(|doubt| doubt.detail)
}

fn plan(record: &mut Record) -> &mut NetworkPlan {
    record.phases[0].plan.of_mut().expect("the sample measures a network")
}

fn seen(record: &mut Record) -> &mut Observations {
    &mut record.phases[0].observations
}

#[test]
fn a_sound_network_phase_raises_none() {
    assert_eq!(kinds_of(|_| ()), [""; 0]);
    let matrix = records::matrix(4, &[]);
    assert_eq!(find(&Evidence::of(&matrix, &matrix.phases[0])), []);
}

#[test]
fn loopback() {
    let found = detail_of("loopback", |record| plan(record).interface = Some(records::loopback()));
    assert_eq!(found.unwrap(), "RPCs use lo: this tested loopback (a kernel memory copy), not a link");
    let shm = |record: &mut Record| plan(record).provider = "ofi+shm".to_owned();
    assert!(detail_of("loopback", shm).unwrap().contains("shm"));
    let null = |record: &mut Record| {
        plan(record).interface = Some(records::loopback());
        plan(record).engine = "null".to_owned();
    };
    assert_eq!(detail_of("loopback", null), None, "strata itself is measured");
}

fn busy_worker(poll: Poll, request_bytes_small: bool) -> impl FnOnce(&mut Record) {
    move |record: &mut Record| {
        plan(record).poll = poll;
        let worker = &mut record.phases[0].samples.workers[0];
        worker.cpu_system_ns = worker.finished_ns;
        if request_bytes_small {
            worker.classes[0].operations = 1_000_000;
        }
    }
}

#[test]
fn cpu_bound() {
    let found = detail_of("cpu_bound", busy_worker(Poll::Block, false)).unwrap();
    assert_eq!(found, "a worker used 100% of a CPU: the network waited for it");
    assert!(detail_of("cpu_bound", busy_worker(Poll::Adaptive, false)).is_some());
    assert_eq!(detail_of("cpu_bound", busy_worker(Poll::Adaptive, true)), None, "it may only poll");
    assert_eq!(detail_of("cpu_bound", busy_worker(Poll::Spin, false)), None, "it is there on purpose");
    let server = |poll| {
        detail_of("cpu_bound", move |record: &mut Record| {
            let elapsed_ns = record.phases[0].samples.elapsed_ns;
            let server: &mut ServerActivity = &mut seen(record).servers[1];
            (server.cpu_system_ns, server.poll) = (elapsed_ns, poll);
        })
    };
    assert_eq!(server(Some(Poll::Block)).unwrap(), "the thread of endpoint 1:2 used 100% of a CPU");
    assert_eq!((server(Some(Poll::Spin)), server(None)), (None, None));
    let crowd = |cores| {
        detail_of("cpu_bound", move |record: &mut Record| {
            plan(record).interface = Some(records::loopback());
            record.environment.processor.logical_cores = Some(cores);
            seen(record).machine_cpus_busy = Some(f64::from(cores));
        })
    };
    assert_eq!(crowd(2).unwrap(), "1 worker and 2 service threads share 2 processors");
    assert_eq!(crowd(3), None);
    let tool = |record: &mut Record| record.phases[0].summary.tool_share_max = 0.4;
    assert_eq!(detail_of("cpu_bound", tool).unwrap(), "strata itself took 40.0% of a worker's time");
}

fn two_nodes(record: &mut Record, core: Option<usize>) {
    let node = |node, cores: &[u32]| NumaNode { node, cores: cores.to_vec(), memory_bytes: None };
    record.environment.numa_nodes = vec![node(0, &[0, 1]), node(1, &[2, 3])];
    record.phases[0].samples.workers[0].core = core;
}

#[test]
fn remote_numa() {
    let found = detail_of("remote_numa", |record| two_nodes(record, Some(1)));
    assert_eq!(
        found.unwrap(),
        "eth0 is on NUMA node 1, but 1 of 1 worker on node 0: data crosses NUMA nodes"
    );
    for core in [Some(3), None] {
        assert_eq!(detail_of("remote_numa", |record| two_nodes(record, core)), None, "{core:?}");
    }
}

#[test]
fn mtu_mismatch() {
    let path = |bytes| move |record: &mut Record| seen(record).links[0].path_mtu_bytes = Some(bytes);
    assert_eq!(
        detail_of("mtu_mismatch", path(1500)).unwrap(),
        "packets of only 1500 bytes reach the other side, but the interface would send 9000"
    );
    let other = |bytes| {
        move |record: &mut Record| {
            let link = LinkActivity { owner: Some("1:2".to_owned()), ..seen(record).links[0].clone() };
            seen(record).links.push(LinkActivity { mtu_bytes: Some(bytes), ..link });
        }
    };
    assert_eq!(
        detail_of("mtu_mismatch", other(1500)).unwrap(),
        "the MTU is 9000 bytes at this machine but 1500 at 1:2"
    );
    assert_eq!(detail_of("mtu_mismatch", other(9000)), None);
    assert_eq!(detail_of("mtu_mismatch", |record| seen(record).links.clear()), None, "nothing is known");
    // Where masters drive, this machine's own interface carries nothing.
    let masters = |second| {
        move |record: &mut Record| {
            plan(record).interface = None;
            let link = seen(record).links[0].clone();
            let of = |owner: &str, bytes| LinkActivity {
                owner: Some(owner.to_owned()),
                mtu_bytes: Some(bytes),
                ..link.clone()
            };
            seen(record).links = vec![of("0:2", 9000), of("1:2", second)];
        }
    };
    assert_eq!(
        detail_of("mtu_mismatch", masters(1500)).unwrap(),
        "the MTU is 9000 bytes at 0:2 but 1500 at 1:2"
    );
    assert_eq!(detail_of("mtu_mismatch", masters(9000)), None);
}

#[test]
fn retransmits() {
    let again = |value| {
        move |record: &mut Record| {
            let name = "tcp_retransmits".to_owned();
            record.phases[0].samples.workers[0].tallies = vec![TallySample { part: 0, name, value }];
        }
    };
    let found = detail_of("retransmits", again(40_000.0)).unwrap();
    assert!(found.starts_with("40000 segments were retransmitted, 2.2"), "{found}");
    assert_eq!(detail_of("retransmits", again(100.0)), None, "a few are nothing");
    assert_eq!(detail_of("retransmits", |record| record.phases[0].samples.workers[0].tallies.clear()), None);
}

#[test]
fn link_shared() {
    let more = |bytes| move |record: &mut Record| seen(record).links[0].received_bytes += bytes;
    let found = detail_of("link_shared", more(8 << 30)).unwrap();
    assert_eq!(found, "eth0 moved 8.00 GiB in addition to the 14.8 GiB of this load");
    assert_eq!(detail_of("link_shared", more(1 << 30)), None);
    let small = |record: &mut Record| {
        more(8 << 30)(record);
        plan(record).request.size_bytes = 64;
    };
    assert_eq!(detail_of("link_shared", small), None, "headers are most of it");
}

#[test]
fn uneven_endpoints() {
    let slow = |latency_ns| {
        let pair = |endpoint, latency_ns| records::Pair {
            master: 0,
            endpoint,
            operations_per_second: 1000,
            latency_ns,
            refused: 0,
        };
        let pairs = [pair(0, 1_000_000), pair(1, 1_100_000), pair(2, latency_ns)];
        let mut record = records::two_endpoints();
        let plan = records::network_plan(records::MIB, records::EMPTY, 3);
        record.phases = vec![records::network_phase(plan, &pairs)];
        let doubts = find(&Evidence::of(&record, &record.phases[0]));
        doubts.into_iter().find(|doubt| doubt.kind == "uneven_endpoints").map(|doubt| doubt.detail)
    };
    assert_eq!(slow(3_000_000).unwrap(), "endpoint 2:2 takes 3.09 ms on average, but the others 1.13 ms");
    assert_eq!(slow(1_500_000), None);
}

#[test]
fn service_threads_of_this_machine_are_no_others() {
    let served = |other: f64, user: f64| {
        move |record: &mut Record| {
            plan(record).interface = Some(records::loopback());
            let elapsed_ns = record.phases[0].samples.elapsed_ns;
            (seen(record).other_cpus_busy, seen(record).other_cpus_user) = (Some(other), Some(user));
            for server in &mut seen(record).servers {
                (server.cpu_user_ns, server.cpu_system_ns) = (elapsed_ns / 4, elapsed_ns / 2);
            }
        }
    };
    assert_eq!(kinds_of(served(1.5, 0.5)), ["loopback"]);
    assert_eq!(kinds_of(served(2.5, 1.5)), ["loopback", "other_load"]);
    let silent = |record: &mut Record| {
        served(1.5, 0.5)(record);
        seen(record).servers.clear();
    };
    assert_eq!(kinds_of(silent), ["loopback"], "nobody said what the service threads took");
}

#[test]
fn who_spins_keeps_processors_busy_on_purpose() {
    let spinning = |poll, threads: u32| {
        kinds_of(|record| {
            (plan(record).poll, plan(record).load.threads) = (poll, threads);
            (seen(record).machine_cpus_busy, seen(record).other_cpus_busy) = (Some(8.0), Some(0.0));
            seen(record).other_cpus_user = Some(0.0);
        })
    };
    assert_eq!(spinning(Poll::Spin, 8), [""; 0]);
    assert_eq!(spinning(Poll::Spin, 9), ["all_processors_busy"]);
    assert_eq!(spinning(Poll::Block, 8), ["all_processors_busy"]);
}

#[test]
fn this_machine_does_not_matter_where_engines_drive() {
    let mut record = records::matrix(4, &[]);
    let seen = &mut record.phases[0].observations;
    (seen.machine_cpus_busy, seen.other_cpus_busy, seen.other_cpus_user) = (Some(8.0), Some(4.0), Some(4.0));
    record.environment.processor.governors = vec!["powersave".to_owned()];
    assert_eq!(find(&Evidence::of(&record, &record.phases[0])), []);
    record.phases[0].summary.window_end_ns = 1000;
    let kinds: Vec<_> =
        find(&Evidence::of(&record, &record.phases[0])).into_iter().map(|one| one.kind).collect();
    assert_eq!(kinds, ["too_short"]);
}
