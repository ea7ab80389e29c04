//! An agent whose jobs do nothing but what a test asks for, and a diary of what they did.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use statistics::{PhaseSamples, Series, Snapshot, WorkerSamples};

use super::{PATIENCE, SCHEMA};
use crate::{Agent, Description, OutcomeMessage, PlanMessage, Prepared, ProgressReport, Role, StartGate};

/// Task of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Task {
    /// Works until so many jobs have begun.
    UntilBegun(usize),
    /// Works until it is stopped.
    UntilStopped,
    /// Begins and says nothing until it is stopped.
    Silent,
    /// Does not get ready until it is stopped.
    NeverReady,
    Refuse,
    Fail,
    Panic,
}

/// Record of the jobs' actions, in their order.
#[derive(Debug, Default)]
pub(super) struct Diary(Mutex<Vec<&'static str>>);

impl Diary {
    fn write(&self, what: &'static str) {
        self.0.lock().expect("no panic").push(what);
    }

    pub(super) fn read(&self) -> Vec<&'static str> {
        self.0.lock().expect("no panic").clone()
    }

    pub(super) fn count(&self, what: &str) -> usize {
        self.read().iter().filter(|entry| **entry == what).count()
    }

    pub(super) fn wait_for(&self, what: &str) {
        wait_until(what, || self.count(what) > 0);
    }
}

pub(super) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(super) struct Simulated {
    pub(super) diary: Arc<Diary>,
    pub(super) may_interrupt: bool,
    pub(super) may_quit: bool,
}

impl Simulated {
    pub(super) fn new(diary: &Arc<Diary>) -> Self {
        Self { diary: Arc::clone(diary), may_interrupt: true, may_quit: false }
    }
}

pub(super) fn description() -> Description {
    Description {
        role: Role::Engine,
        strata_version: "1.2.3".to_owned(),
        schema_version: SCHEMA,
        host_name: "simulated".to_owned(),
        pid: 42,
        rank: Some(3),
        group: Some("daos_server".to_owned()),
        data_uri: None,
        tags: 22,
        targets: 16,
        environment: serde_json::json!({ "cores": 2 }),
    }
}

/// Samples with something in every sort of field.
pub(super) fn samples() -> PhaseSamples {
    PhaseSamples {
        classes: vec!["rpc".to_owned()],
        window_ns: Some(1_000_000_000),
        started_ns: 5,
        elapsed_ns: u64::MAX,
        workers: vec![WorkerSamples { worker: 1, cpu_user_ns: 7, ..WorkerSamples::default() }],
        series: Series::new(1_000_000, 4, 1),
        interrupted: None,
        process_cpu_user_ns: 1,
        process_cpu_system_ns: 2,
    }
}

pub(super) fn report() -> ProgressReport {
    ProgressReport::Running(Snapshot {
        phase: "p".to_owned(),
        done_fraction: Some(0.25),
        operations: 9,
        ..Snapshot::default()
    })
}

impl Agent for Simulated {
    fn describe(&self) -> Description {
        description()
    }

    fn prepare(&self, plan: PlanMessage, stop: &Arc<AtomicBool>) -> Result<Box<dyn Prepared>, Error> {
        assert_eq!(std::thread::current().name(), Some("job"), "jobs have threads of their own");
        let task: Task = plan.decode()?;
        match task {
            Task::Refuse => return Err(Error::usage("prepare", "no such device").remedy("name another")),
            Task::NeverReady => {
                self.diary.write("preparing");
                wait_until("stop while preparing", || stop.load(Ordering::Relaxed));
                self.diary.write("given up");
                return Err(Error::new(ErrorKind::Run, "prepare", "stopped"));
            }
            _ => {}
        }
        Ok(Box::new(SimulatedJob { task, diary: Arc::clone(&self.diary) }))
    }

    fn may_interrupt(&self) -> bool {
        self.may_interrupt
    }

    fn quit(&self) -> Result<(), Error> {
        if self.may_quit {
            self.diary.write("quit");
            return Ok(());
        }
        Err(Error::new(ErrorKind::Unsupported, "quit", "not on demand"))
    }
}

struct SimulatedJob {
    task: Task,
    diary: Arc<Diary>,
}

impl Prepared for SimulatedJob {
    fn run(
        self: Box<Self>,
        gate: StartGate,
        observe: &mut dyn FnMut(ProgressReport),
        stop: Arc<AtomicBool>,
    ) -> Result<OutcomeMessage, Error> {
        let is_stopped = || stop.load(Ordering::Relaxed);
        self.diary.write("ready");
        gate.wait(vec!["all set".to_owned()])?;
        self.diary.write("begun");
        match self.task {
            Task::UntilBegun(jobs) => wait_until("the other jobs", || {
                observe(report());
                self.diary.count("begun") >= jobs || is_stopped()
            }),
            Task::UntilStopped => wait_until("stop", || {
                observe(report());
                is_stopped()
            }),
            Task::Silent => wait_until("stop of a silent job", is_stopped),
            Task::Panic => panic!("as the test asked"),
            _ => {
                self.diary.write("ended");
                return Err(Error::new(ErrorKind::Run, "work", "the device is gone"));
            }
        }
        self.diary.write("ended");
        let failure = is_stopped().then(|| "stopped early".to_owned());
        Ok(OutcomeMessage { samples: vec![samples()], failure, ..OutcomeMessage::default() })
    }
}
