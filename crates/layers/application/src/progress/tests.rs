//! Waits between processes of several hosts, in one process.

use std::time::{Duration, Instant};

use layer::storage::StorageFacts;
use layer::{Hosts, Met, Together};
use workload::plan::HostPlace;
use workload::spec::Spec;

use crate::builtin;
use crate::description::resolve;
use crate::planning::stage_plan;

use super::*;

/// The last stage of an application, as the host of this rank plans it.
fn plan_of(name: &str, settings: &str, place: (u32, u32)) -> AppPlan {
    stage_of(name, settings, place, usize::MAX).unwrap()
}

/// A stage of an application, or its last, as the host of this rank plans it.
fn stage_of(name: &str, settings: &str, (rank, hosts): (u32, u32), at: usize) -> Result<AppPlan, Error> {
    let settings: Vec<(String, String)> = settings
        .split(' ')
        .map(|setting| {
            setting.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap()
        })
        .collect();
    let (description, settings) = builtin::load(name, &settings).unwrap();
    let application = resolve(&description, settings).unwrap();
    let at = at.min(application.stages.len() - 1);
    let place = Some(HostPlace { rank, hosts, ..HostPlace::default() });
    let spec = Spec { place, ..Spec::default() };
    stage_plan(&spec, &application, at, &StorageFacts::default(), (1, 2))
}

fn await_that(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never became so");
        std::thread::yield_now();
    }
}

const B: &str = "pattern=B steps=3 writers=4 readers=2";
/// The step that the readers of pattern B wait for.
const WRITTEN: (usize, usize) = (0, 0);

#[test]
fn each_host_has_as_many_of_each_group_where_that_goes() {
    let all = |settings: &str, hosts| {
        (0..hosts)
            .map(|rank| {
                let plan = plan_of("fdb-hammer", settings, (rank, hosts));
                (0..plan.groups.len())
                    .map(|group| plan.processes_here(group).collect::<Vec<_>>())
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(all(B, 2), [[vec![0, 1], vec![0]], [vec![2, 3], vec![1]]]);
    assert_eq!(all(B, 1), [[vec![0, 1, 2, 3], vec![0, 1]]]);
    // Two readers are none for each of three hosts: the processes are dealt out in their order.
    assert_eq!(all(B, 3), [[vec![0, 1], vec![]], [vec![2, 3], vec![]], [vec![], vec![0, 1]]]);
    // The last hosts may have fewer, or none.
    assert_eq!(
        all("pattern=B steps=3 writers=1 readers=1", 3),
        [[vec![0], vec![]], [vec![], vec![0]], [vec![], vec![]]]
    );
    let plan = plan_of("fdb-hammer", B, (0, 2));
    assert_eq!((plan.process(5), plan.process(6)), (Some((1, 1)), None));
}

#[test]
fn what_a_rank_stages_is_flushed_on_its_own_host() {
    let words = "flush=async files=one ranks=4 steps=2 size=1KiB";
    let all: Vec<_> = (0..2)
        .map(|rank| {
            let plan = stage_of("checkpoint", words, (rank, 2), 0).unwrap();
            (0..3).map(|group| plan.processes_here(group).collect::<Vec<_>>()).collect::<Vec<_>>()
        })
        .collect();
    // The one that renames takes a place that is left.
    assert_eq!(all, [[vec![0, 1], vec![0, 1], vec![0]], [vec![2, 3], vec![2, 3], vec![]]]);
    let error = stage_of("checkpoint", words, (0, 3), 0).unwrap_err().to_string();
    assert!(error.contains("ranks=6") && error.contains("flush=sync"), "{error}");
    let huge = "flush=async size=1TiB transfer=4MiB";
    let error = stage_of("checkpoint", huge, (0, 1), 0).unwrap_err().to_string();
    assert!(error.contains("more than half of the memory"), "{error}");
    assert!(stage_of("checkpoint", "flush=sync size=1TiB", (0, 3), 0).is_ok());
}

#[test]
fn processes_wait_for_those_of_other_hosts() {
    let together = Together::new(3);
    let hosts: Vec<(AppPlan, Progress)> = (0..3)
        .map(|rank| {
            let plan = plan_of("fdb-hammer", B, (rank, 3));
            let progress = Progress::with_hosts(&plan, "app.1.0", Some(&together.seen_by(rank))).unwrap();
            (plan, progress)
        })
        .collect();
    let reach = |process: u32, iterations| {
        let is_its = |(plan, _): &&(AppPlan, Progress)| plan.processes_here(0).any(|here| here == process);
        hosts.iter().find(is_its).unwrap().1.reach(WRITTEN, process, iterations);
    };
    let is_reached = |iterations| hosts.iter().all(|(_, progress)| progress.is_reached(WRITTEN, iterations));
    [0, 1, 2].into_iter().for_each(|process| reach(process, 2));
    std::thread::sleep(Duration::from_millis(50));
    assert!(hosts.iter().all(|(_, progress)| !progress.is_reached(WRITTEN, 1)), "process 3 has done nothing");
    reach(3, 1);
    await_that(|| is_reached(1));
    assert!(hosts.iter().all(|(_, progress)| !progress.is_reached(WRITTEN, 2)));
    reach(3, 3);
    await_that(|| is_reached(2));
    [0, 1, 2].into_iter().for_each(|process| reach(process, 3));
    await_that(|| is_reached(3));
    assert!(hosts.iter().all(|(_, progress)| !progress.is_abandoned()));
}

#[test]
fn a_host_that_is_gone_holds_nobody_up_and_a_stopped_run_ends_all_waits() {
    let together = Together::new(2);
    let plan = |rank| plan_of("fdb-hammer", B, (rank, 2));
    let [first, second] = [0, 1]
        .map(|rank| Progress::with_hosts(&plan(rank), "app.1.0", Some(&together.seen_by(rank))).unwrap());
    [0, 1].into_iter().for_each(|process| first.reach(WRITTEN, process, 1));
    together.gone(1);
    await_that(|| first.is_reached(WRITTEN, 1));
    [0, 1].into_iter().for_each(|process| first.reach(WRITTEN, process, 2));
    await_that(|| first.is_reached(WRITTEN, 2));
    together.stop();
    [2, 3].into_iter().for_each(|process| second.reach(WRITTEN, process, 1));
    await_that(|| second.is_abandoned());
}

#[test]
fn no_thread_is_left_behind_and_a_step_that_nobody_waits_for_has_none() {
    struct Tells(std::sync::mpsc::Sender<()>);
    impl HostLink for Tells {
        fn meet(&self, _: &str, _: &[u64]) -> Result<Met, Error> {
            let _ = self.0.send(());
            Err(Error::usage("test", "nobody came"))
        }
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let place = HostPlace { rank: 0, hosts: 2, ..HostPlace::default() };
    let hosts = Hosts { place, link: Arc::new(Tells(sender)) };
    let plan = plan_of("fdb-hammer", B, (0, 2));
    assert_eq!(waited_for(&plan), [WRITTEN]);
    drop(Progress::with_hosts(&plan, "app.1.0", Some(&hosts)).unwrap());
    drop(hosts);
    assert!(receiver.recv().is_err(), "the thread has let its link go");
}
