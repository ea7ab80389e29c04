//! Ends that nobody planned: of jobs, agents, coordinators and the way between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::agent::{Task, report, samples};
use super::proxy::Proxy;
use super::{Stand, connect, plan, policy, run, run_watched};
use crate::{HostEnd, HostProgress, OnRefusal, RunPolicy};

/// A dead peer is found within 8 s; the rest is for a busy machine.
const FOUND: Duration = Duration::from_secs(15);

#[test]
fn a_job_that_fails_or_panics_is_told_and_frees_its_agent() {
    let stand = Stand::plain();
    let fleet = connect(&[stand.address], None, false);
    for (task, said) in [(Task::Fail, "the device is gone"), (Task::Panic, "panicked: as the test asked")] {
        let outcomes = run(&fleet, &[task], OnRefusal::StopAll);
        let HostEnd::Failed(line) = &outcomes[0].end else { panic!("{:?}", outcomes[0].end) };
        assert!(line.contains(said), "{line}");
    }
    assert_eq!(run(&fleet, &[Task::UntilBegun(1)], OnRefusal::StopAll)[0].failure(), None);
}

#[test]
fn a_silent_job_counts_as_hung_and_is_stopped() {
    let stands = [Stand::plain(), Stand::plain()];
    let fleet = connect(&[stands[0].address, stands[1].address], None, false);
    let plans = vec![(0, plan(&Task::Silent)), (1, plan(&Task::UntilBegun(1)))];
    let policy = RunPolicy { silence_timeout: Duration::from_millis(300), ..policy(OnRefusal::StopAll) };
    let outcomes = fleet.run(plans, &policy, &mut |_| {}, &AtomicBool::new(false)).expect("hosts");
    assert!(outcomes[0].failure().expect("it hung").contains("silent for 300ms"));
    assert_eq!(outcomes[1].failure(), None);
    stands[0].diary.wait_for("ended");
}

/// Runs two hosts, the first through a proxy on which `strike` is worked once both report; the second goes on until
/// the first has ended.
fn struck(strike: impl Fn(&mut Proxy)) -> (Vec<crate::HostOutcome>, Stand) {
    let stands = [Stand::plain(), Stand::plain()];
    let proxy = Mutex::new(Proxy::start(stands[0].address, None));
    let addresses = [proxy.lock().expect("no panic").address, stands[1].address];
    let fleet = connect(&addresses, None, false);
    let (interrupt, mut is_struck) = (AtomicBool::new(false), false);
    let mut observe = |hosts: &[HostProgress]| {
        if !is_struck && hosts.iter().all(|host| host.report.is_some()) {
            strike(&mut proxy.lock().expect("no panic"));
            is_struck = true;
        }
        interrupt.fetch_or(hosts[0].stage == crate::HostStage::Ended, Ordering::Relaxed);
    };
    let tasks = [Task::UntilStopped, Task::UntilStopped];
    let outcomes = run_watched(&fleet, &tasks, OnRefusal::StopAll, &mut observe, &interrupt);
    let [first, _] = stands;
    (outcomes, first)
}

fn assert_first_lost(outcomes: &[crate::HostOutcome]) {
    let HostEnd::Failed(line) = &outcomes[0].end else { panic!("{:?}", outcomes[0].end) };
    assert!(line.contains(&outcomes[0].address.to_string()), "{line}");
    assert_eq!(outcomes[0].progress, Some(report()), "what had come is kept");
    let HostEnd::Finished(brought) = &outcomes[1].end else { panic!("{:?}", outcomes[1].end) };
    assert_eq!(brought.samples, [samples()]);
}

#[test]
fn a_host_that_is_cut_off_fails_alone_and_its_job_ends() {
    let (outcomes, stand) = struck(Proxy::cut);
    assert_first_lost(&outcomes);
    stand.diary.wait_for("ended");
    stand.wait_for_line("disconnected, its job is stopped");
    // The agent is free for the next.
    let fleet = connect(&[stand.address], None, false);
    assert_eq!(run(&fleet, &[Task::UntilBegun(1)], OnRefusal::StopAll)[0].failure(), None);
}

#[test]
fn a_host_that_falls_silent_is_found_by_both_sides() {
    let since = Instant::now();
    let (outcomes, stand) = struck(|proxy| proxy.freeze());
    assert_first_lost(&outcomes);
    stand.diary.wait_for("ended");
    assert!(since.elapsed() < FOUND, "found after {:?}", since.elapsed());
}

#[test]
fn an_agent_that_is_stopped_still_brings_what_it_has() {
    let mut stand = Stand::plain();
    let fleet = connect(&[stand.address], None, false);
    let mut server = stand.server.take();
    let mut observe = |hosts: &[HostProgress]| {
        if hosts[0].report.is_some() {
            drop(server.take());
        }
    };
    let outcomes =
        run_watched(&fleet, &[Task::UntilStopped], OnRefusal::StopAll, &mut observe, &AtomicBool::new(false));
    assert_eq!(outcomes[0].failure(), Some("stopped early"));
    let HostEnd::Finished(brought) = &outcomes[0].end else { panic!("{:?}", outcomes[0].end) };
    assert_eq!(brought.samples, [samples()]);
    let gone = fleet.describe().remove(0).expect_err("the server is gone").to_string();
    assert!(gone.contains(&stand.address.to_string()), "{gone}");
}

#[test]
fn a_coordinator_that_is_gone_stops_its_job() {
    let stand = Stand::plain();
    let fleet = Arc::new(connect(&[stand.address], None, false));
    let doomed = Arc::clone(&fleet);
    // The thread ends by a panic in its view of the run, which drops the run.
    let running = std::thread::spawn(move || {
        let mut observe = |hosts: &[HostProgress]| assert!(hosts[0].report.is_none(), "as the test wants");
        run_watched(&doomed, &[Task::UntilStopped], OnRefusal::StopAll, &mut observe, &AtomicBool::new(false))
    });
    assert!(running.join().is_err());
    stand.diary.wait_for("ended");
    assert_eq!(run(&fleet, &[Task::UntilBegun(1)], OnRefusal::StopAll)[0].failure(), None);
}
