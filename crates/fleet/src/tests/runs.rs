//! Runs as they should be, and hosts that do not begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::agent::{Diary, Simulated, Task, description, report, samples};
use super::{Stand, connect, failure, plan, policy, run, run_watched, secret};
use crate::limits::PLAN_BYTES_MAX;
use crate::{
    ConnectRequest, Fleet, HostAddress, HostEnd, HostStage, OnRefusal, PlanMessage, RefusalKind, RunPolicy,
};

#[test]
fn four_agents_begin_together_and_bring_what_they_measured() {
    let diary = Arc::<Diary>::default();
    let stands: Vec<_> = (0..4).map(|_| Stand::new(None, false, &diary)).collect();
    let addresses: Vec<_> = stands.iter().map(|stand| stand.address).collect();
    let fleet = connect(&addresses, None, false);
    assert_eq!(fleet.failures().count(), 0);
    for described in fleet.describe() {
        assert_eq!(described.expect("a description"), description());
    }
    let mut stages = Vec::new();
    let outcomes = run_watched(
        &fleet,
        &[Task::UntilBegun(4), Task::UntilBegun(4), Task::UntilBegun(4), Task::UntilBegun(4)],
        OnRefusal::StopAll,
        &mut |hosts| stages.push(hosts[3].stage),
        &AtomicBool::new(false),
    );
    let entries = diary.read();
    assert_eq!(entries[..4], ["ready"; 4], "nobody begins before all are ready");
    assert_eq!((diary.count("begun"), diary.count("ended")), (4, 4));
    assert_eq!(stages.last(), Some(&HostStage::Ended));
    for (number, outcome) in outcomes.iter().enumerate() {
        assert_eq!((outcome.host, &outcome.address), (number, &HostAddress::from(addresses[number])));
        let HostEnd::Finished(brought) = &outcome.end else { panic!("{:?}", outcome.end) };
        assert_eq!((brought.samples.as_slice(), outcome.failure()), (&[samples()][..], None));
        assert_eq!(outcome.notes, ["all set"]);
        let clock = outcome.clock.expect("the host was reached");
        assert!(clock.offset_ns.unsigned_abs() <= clock.uncertainty_ns, "it is the same clock: {clock:?}");
        assert!(outcome.start_lateness_ns.is_some());
    }
}

#[test]
fn a_fleet_runs_again_and_again_on_any_of_its_hosts() {
    let stands = [Stand::plain(), Stand::plain()];
    let fleet = connect(&[stands[0].address, stands[1].address], None, false);
    for number in [1, 0, 1] {
        let plans = vec![(number, plan(&Task::UntilBegun(1)))];
        let outcomes = fleet
            .run(plans, &policy(OnRefusal::StopAll), &mut |_| {}, &AtomicBool::new(false))
            .expect("the host is in the fleet");
        assert_eq!((outcomes[0].host, outcomes[0].failure()), (number, None));
    }
    assert_eq!((stands[0].diary.count("ended"), stands[1].diary.count("ended")), (1, 2));
    for numbers in [vec![2], vec![0, 0]] {
        let plans = numbers.into_iter().map(|number| (number, plan(&Task::UntilBegun(1)))).collect();
        let refused = fleet.run(plans, &policy(OnRefusal::GoOn), &mut |_| {}, &AtomicBool::new(false));
        assert_eq!(refused.expect_err("no such host, or twice").exit_code(), 2);
    }
}

#[test]
fn those_that_refuse_are_left_behind_or_hold_all_back() {
    let stands = [Stand::plain(), Stand::plain()];
    let fleet = connect(&[stands[0].address, stands[1].address], None, false);
    let tasks = [Task::UntilBegun(1), Task::Refuse];
    let outcomes = run(&fleet, &tasks, OnRefusal::GoOn);
    assert_eq!(outcomes[0].failure(), None);
    let HostEnd::Refused(refusal) = &outcomes[1].end else { panic!("{:?}", outcomes[1].end) };
    assert_eq!((refusal.kind, &*refusal.line), (RefusalKind::Usage, "prepare: no such device; name another"));

    let outcomes = run(&fleet, &tasks, OnRefusal::StopAll);
    let said = outcomes[0].failure().expect("it was held back");
    assert!(said.contains("not started") && said.contains(&stands[1].address.to_string()), "{said}");
    assert_eq!(stands[0].diary.count("begun"), 1, "it began the first time only");
}

#[test]
fn a_host_that_cannot_be_reached_is_named_and_hides_no_other() {
    let stand = Stand::plain();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let fleet = connect(&[free, stand.address], None, false);
    let failures: Vec<_> = fleet.failures().map(|(number, error)| (number, error.to_string())).collect();
    assert_eq!(failures.len(), 1);
    let (number, said) = &failures[0];
    assert!(*number == 0 && said.contains(&free.to_string()) && said.contains("refused"), "{said}");
    let described = fleet.describe();
    let repeated = described[0].as_ref().expect_err("it was not reached").to_string();
    assert_eq!(&repeated, said);
    assert!(described[1].is_ok());
    let outcomes = run(&fleet, &[Task::UntilBegun(1), Task::UntilBegun(1)], OnRefusal::GoOn);
    assert_eq!((outcomes[0].failure(), outcomes[1].failure()), (Some(&**said), None));
}

#[test]
fn a_name_that_does_not_exist_is_told() {
    let hosts = crate::parse_hosts("no-such-host.invalid", 1611).expect("a name");
    let timeout = Duration::from_secs(10);
    let fleet =
        Fleet::connect(ConnectRequest { hosts, secret: None, tls: false, timeout }).expect("a thread");
    let said = failure(&fleet);
    assert!(said.contains("no-such-host.invalid:1611"), "{said}");
}

#[test]
fn a_peer_that_says_nothing_is_given_up_on() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    for (secret, tls) in [(None, false), (secret("sixteen bytes..."), true)] {
        let timeout = Duration::from_millis(200);
        let request = ConnectRequest { hosts: vec![address.into()], secret, tls, timeout };
        let said = failure(&Fleet::connect(request).expect("a thread"));
        assert!(said.contains("in time") && said.contains(&address.to_string()), "{said}");
    }
}

#[test]
fn a_host_that_is_not_ready_in_time_is_stopped() {
    let stands = [Stand::plain(), Stand::plain()];
    let fleet = connect(&[stands[0].address, stands[1].address], None, false);
    let plans = vec![(0, plan(&Task::NeverReady)), (1, plan(&Task::UntilBegun(1)))];
    let policy = RunPolicy { ready_timeout: Duration::from_millis(300), ..policy(OnRefusal::GoOn) };
    let outcomes = fleet.run(plans, &policy, &mut |_| {}, &AtomicBool::new(false)).expect("hosts");
    let said = outcomes[0].failure().expect("it was not ready");
    assert!(said.contains("not ready within 300ms"), "{said}");
    assert_eq!(outcomes[1].failure(), None);
    stands[0].diary.wait_for("given up");
}

#[test]
fn plans_of_another_version_are_refused_with_both_versions() {
    let stand = Stand::plain();
    let fleet = connect(&[stand.address], None, false);
    let other = PlanMessage { schema_version: 8, ..plan(&Task::UntilBegun(1)) };
    let outcomes = fleet
        .run(vec![(0, other)], &policy(OnRefusal::StopAll), &mut |_| {}, &AtomicBool::new(false))
        .expect("the host");
    let HostEnd::Refused(refusal) = &outcomes[0].end else { panic!("{:?}", outcomes[0].end) };
    assert_eq!(refusal.kind, RefusalKind::Version);
    assert!(refusal.line.contains("version 7") && refusal.line.contains("version 8"), "{}", refusal.line);
}

#[test]
fn a_plan_that_is_too_large_does_not_leave() {
    let stand = Stand::plain();
    let fleet = connect(&[stand.address], None, false);
    let large = PlanMessage { plan: vec![b' '; PLAN_BYTES_MAX + 1], ..plan(&Task::Refuse) };
    let hasty = PlanMessage { progress_interval: Duration::from_millis(1), ..plan(&Task::Refuse) };
    for (plan, kind, part) in
        [(large, RefusalKind::Size, "16777217"), (hasty, RefusalKind::Usage, "10ms to 60s")]
    {
        let outcomes = fleet
            .run(vec![(0, plan)], &policy(OnRefusal::StopAll), &mut |_| {}, &AtomicBool::new(false))
            .expect("the host");
        let HostEnd::Refused(refusal) = &outcomes[0].end else { panic!("{:?}", outcomes[0].end) };
        assert!(refusal.kind == kind && refusal.line.contains(part), "{}", refusal.line);
    }
}

#[test]
fn a_second_coordinator_is_told_who_has_the_agent() {
    let stand = Stand::plain();
    let (first, second) = (connect(&[stand.address], None, false), connect(&[stand.address], None, false));
    let interrupt = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            run_watched(&first, &[Task::UntilStopped], OnRefusal::StopAll, &mut |_| {}, &interrupt)
        });
        stand.diary.wait_for("begun");
        let outcomes = run(&second, &[Task::UntilBegun(1)], OnRefusal::StopAll);
        let HostEnd::Refused(refusal) = &outcomes[0].end else { panic!("{:?}", outcomes[0].end) };
        assert_eq!(refusal.kind, RefusalKind::Busy);
        assert!(
            refusal.line.contains("in use by ")
                && refusal.line.contains("(127.0.0.1:")
                && refusal.line.contains("\"a job\""),
            "{}",
            refusal.line
        );
        interrupt.store(true, Ordering::Relaxed);
        let outcomes = running.join().expect("no panic");
        assert_eq!(outcomes[0].failure(), Some("stopped early"));
    });
    assert_eq!(run(&second, &[Task::UntilBegun(1)], OnRefusal::StopAll)[0].failure(), None);
}

#[test]
fn an_interrupt_stops_all_and_still_brings_results() {
    let stands = [Stand::plain(), Stand::plain()];
    let fleet = connect(&[stands[0].address, stands[1].address], None, false);
    let interrupt = AtomicBool::new(false);
    let mut observe = |hosts: &[crate::HostProgress]| {
        let are_reporting = hosts.iter().all(|host| host.report == Some(report()));
        interrupt.fetch_or(are_reporting, Ordering::Relaxed);
    };
    let tasks = [Task::UntilStopped, Task::UntilStopped];
    for outcome in run_watched(&fleet, &tasks, OnRefusal::StopAll, &mut observe, &interrupt) {
        let HostEnd::Finished(brought) = outcome.end else { panic!("{:?}", outcome.end) };
        assert_eq!(brought.samples, [samples()]);
        assert_eq!(outcome.progress, Some(report()));
    }
    let outcomes = run_watched(&fleet, &tasks, OnRefusal::StopAll, &mut |_| {}, &interrupt);
    assert!(outcomes[0].failure().expect("not started").contains("interrupted"));
}

#[test]
fn anybody_who_may_ends_the_job_of_another() {
    let stand = Stand::plain();
    let (first, second) = (connect(&[stand.address], None, false), connect(&[stand.address], None, false));
    let nothing = second.interrupt().remove(0).expect("it answers");
    assert_eq!(nothing, None);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&first, &[Task::UntilStopped], OnRefusal::StopAll));
        stand.diary.wait_for("begun");
        assert_eq!(second.interrupt().remove(0).expect("it answers").as_deref(), Some("a job"));
        let HostEnd::Finished(brought) = running.join().expect("no panic").remove(0).end else {
            panic!("no end")
        };
        assert!(
            brought.notes[0].contains("interrupted by ") && brought.notes[0].contains("(127.0.0.1:"),
            "{:?}",
            brought.notes
        );
    });
    let mut agent = Simulated::new(&Arc::default());
    agent.may_interrupt = false;
    let stand = Stand::with(agent, "127.0.0.1:0", None, false);
    let refused =
        connect(&[stand.address], None, false).interrupt().remove(0).expect_err("it is not allowed");
    assert!(refused.to_string().contains("only its coordinators can end"), "{refused}");
}

#[test]
fn a_process_quits_only_if_it_wants_to() {
    let stand = Stand::plain();
    let refused = connect(&[stand.address], None, false).quit().remove(0).expect_err("it does not");
    assert!(refused.to_string().contains("not on demand"), "{refused}");
    let mut agent = Simulated::new(&Arc::default());
    agent.may_quit = true;
    let stand = Stand::with(agent, "localhost:0", None, false);
    connect(&[stand.address], None, false).quit().remove(0).expect("it does");
    assert_eq!(stand.diary.read(), ["quit"]);
}
