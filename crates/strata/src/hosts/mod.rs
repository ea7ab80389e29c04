//! A run that several hosts carry out together (`--hosts`): this process leads it. It plans nothing itself; it collects, merges and writes the record.

mod apart;
mod descriptors;
mod gather;
mod gathering;
pub(crate) mod launcher;
mod local;
mod messages;
mod own_options;
mod serve;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use driver::{Clock as _, Error, ErrorKind, HostClock};
use fleet::{ProgressReport, SessionProgress, Sessions, StageOutcome, StageRequest, StageTasks};
use layer::Seen;
use layer::server::SharedStores;
use report::record::{HostRecord, HostStart};
use statistics::{Event, Snapshot, join_hosts};
use workload::plan::HostTargets;
use workload::spec::Spec;

use crate::planning::{self, Layers, Planned, Programme};
use crate::session::Session;
use apart::Apart;
use launcher::Crew;
use local::LocalHosts;
use messages::{StageAsked, StepAsked, written};

use gathering::gather;
pub(crate) use gathering::{are_asked, named as named_hosts};
pub use local::Program;
pub(crate) use local::start_by;
pub(crate) use serve::ThisHost;

/// Who carries a run out.
pub(crate) enum Carriers {
    /// This process.
    Here(Layers),
    /// Other processes, which this one leads.
    Hosts(Box<Leader>),
}

impl Carriers {
    /// Plans the specs: here, by the hosts that they name, or by the processes that a launcher has started, of which only so many `ranks` may take part.
    ///
    /// # Errors
    /// Bad usage, and hosts that do not take part. Nothing was touched.
    pub(crate) fn plan(
        specs: &[Spec],
        run: u64,
        seed: u64,
        ranks: Option<u32>,
    ) -> Result<(Programme, Self), Error> {
        let launched = launcher::launched()?;
        if launched.is_some() && are_asked(specs) {
            return Err(Error::usage(
                "hosts",
                "a launcher has started several processes, and these are the hosts",
            )
            .remedy("leave out --hosts, or start one process"));
        }
        if launched.is_some() || are_asked(specs) {
            let crew = launched.map(|launched| Crew::meet(&launched)).transpose()?;
            let (programme, leader) = gather(specs, run, seed, crew, ranks)?;
            return Ok((programme, Self::Hosts(Box::new(leader))));
        }
        let (programme, layers) = planning::plan(specs, seed)?;
        Ok((programme, Self::Here(layers)))
    }

    /// Lets hosts that have planned go again: nothing was touched.
    ///
    /// # Errors
    /// Data that hosts could not remove.
    pub(crate) fn leave(self) -> Result<(), Error> {
        match self {
            Self::Here(_) => Ok(()),
            Self::Hosts(mut leader) => leader.end(&Arc::default()),
        }
    }

    /// Has them carry out the run of a session.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn join(self, session: &mut Session) -> Result<(), Error> {
        match self {
            Self::Here(layers) => session.adopt(layers),
            Self::Hosts(leader) => session.lead(*leader),
        }
    }
}

/// A stage that hosts ran.
pub(crate) struct StageRan {
    /// When it began.
    pub(crate) begun: SystemTime,
    /// Outcome of each phase, and when the hosts began it.
    pub(crate) phases: Vec<(Seen, Vec<HostStart>)>,
    /// Whether the run goes on, although phases have failed: hosts are lost, and nothing else.
    pub(crate) goes_on: bool,
}

/// Knowledge of a run after the stages that ran.
#[derive(Debug, Default)]
struct SoFar {
    stages: usize,
    /// Numbers of the phases that did all that was asked of them.
    done: Vec<usize>,
    /// Hosts whose loss a phase has told.
    lost: BTreeSet<usize>,
}

impl SoFar {
    /// Takes in a stage that ran.
    fn note(&mut self, stage: &[Planned], phases: &[(Seen, Vec<HostStart>)]) {
        self.stages += 1;
        for (planned, ((outcome, _), _)) in stage.iter().zip(phases) {
            let mut classes = outcome.samples.workers.iter().flat_map(|worker| &worker.classes);
            if outcome.failure.is_none() && classes.all(|class| class.errors == 0) {
                self.done.push(planned.number);
            }
        }
    }

    /// Failures of hosts that a stage has found, of those of number `hosts` and above: they took no part in it.
    fn outside(&mut self, outcome: &StageOutcome, hosts: usize, labels: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (host, (end, label)) in outcome.hosts.iter().zip(labels).enumerate() {
            let Some(failure) = &end.failure else { continue };
            if self.lost.insert(host) && host >= hosts {
                found.push(format!("host {label}, not used in this phase: {failure}"));
            }
        }
        found
    }
}

/// The hosts of a run, as the process that leads them sees them.
pub(crate) struct Leader {
    sessions: Sessions,
    labels: Vec<String>,
    records: Vec<HostRecord>,
    goes_on: bool,
    is_one_machine: bool,
    /// Whether phases without a place among the hosts are those of this process.
    leaves_others: bool,
    /// Findings of the stages so far.
    seen: SoFar,
    /// Where each host carries out phases of its own.
    apart: Option<Apart>,
    /// Stores of this machine that the hosts share. After the sessions, which end before them.
    stores: SharedStores,
    /// Likewise. First the crew: ranks of MPI take leave of each other, and the one that this process has started is
    /// waited for.
    crew: Option<Crew>,
    _locals: Option<LocalHosts>,
}

impl Leader {
    /// Runs a stage on all hosts. `show` takes events for the live view; what goes with `interrupt` is called once it is raised, before the hosts
    /// have ended.
    ///
    /// # Errors
    /// When it could not begin on any host.
    pub(crate) fn stage(
        &mut self,
        stage: &[Planned],
        show: &mut dyn FnMut(&Event<'_>),
        (interrupt, note_interrupt): (&Arc<AtomicBool>, &mut dyn FnMut()),
    ) -> Result<StageRan, Error> {
        let is_shared = |planned: &Planned| {
            planned.plan.load().place.is_some_and(|place| place.targets == HostTargets::Shared)
        };
        let hosts = self.hosts_of(stage);
        let tasks = self.tasks(stage, hosts)?;
        let meets = |planned: &Planned| planned.plan.meets_to_prepare();
        let first_alone = stage.iter().any(is_shared) && !stage.iter().any(meets);
        let request = StageRequest { tasks, first_alone };
        let labels = &self.labels;
        let mut is_noted = false;
        let mut observe = |progress: &[SessionProgress<'_>]| {
            if interrupt.load(Ordering::Relaxed) && !std::mem::replace(&mut is_noted, true) {
                note_interrupt();
            }
            let of_stage: Vec<_> = progress.iter().copied().filter(|host| host.host < hosts).collect();
            show_progress(&of_stage, labels, show);
        };
        let mut outcome = self.sessions.stage(&request, &mut observe, interrupt)?;
        for (end, record) in outcome.hosts.iter_mut().zip(&self.records) {
            end.failure = end.failure.take().map(|failure| named(&failure, record));
        }
        let Some(start_unix_ns) = outcome.start_unix_ns else {
            let failed = outcome.hosts.iter().zip(labels);
            let failed =
                failed.filter_map(|(end, label)| Some(format!("host {label}: {}", end.failure.as_ref()?)));
            let failed: Vec<String> = failed.collect();
            let why =
                if failed.is_empty() { "interrupted before it began".to_owned() } else { failed.join("; ") };
            return Err(Error::new(ErrorKind::Run, "stage", why));
        };
        let begun = UNIX_EPOCH + Duration::from_nanos(start_unix_ns);
        let ago = SystemTime::now().duration_since(begun).unwrap_or_default();
        let start_ns = HostClock::get().now_ns().saturating_sub(ago.as_nanos() as u64);
        let mut goes_on = self.goes_on;
        let outside = self.seen.outside(&outcome, hosts, labels);
        let phases = (0..stage.len()).map(|number| {
            let gathered = match &self.apart {
                None => {
                    let (part, all) = ((number, hosts), (labels.as_slice(), outside.as_slice()));
                    gather::of_all(part, &mut outcome, all, start_ns, self.is_one_machine)?
                }
                Some(apart) => gather::of_one(apart.place(stage, number), &mut outcome, labels, start_ns)?,
            };
            goes_on &= gathered.only_hosts_failed;
            Ok((gathered.seen, gathered.starts))
        });
        let mut phases = phases.collect::<Result<Vec<(Seen, Vec<HostStart>)>, Error>>()?;
        for ((outcome, _), _) in &mut phases {
            outcome.notes.extend(self.stores.notes());
        }
        self.seen.note(stage, &phases);
        Ok(StageRan { begun, phases, goes_on })
    }

    /// The leader of phases that hosts have planned together: all others are of this process.
    pub(crate) fn of_placed_phases(self) -> Self {
        Self { leaves_others: true, ..self }
    }

    /// Whether the hosts carry out a phase.
    pub(crate) fn takes(&self, planned: &Planned) -> bool {
        !self.leaves_others || planned.plan.load().place.is_some()
    }

    /// How many hosts carry a stage out: the first ones.
    fn hosts_of(&self, stage: &[Planned]) -> usize {
        let places = stage.iter().filter_map(|planned| planned.plan.load().place);
        places.map(|place| place.hosts as usize).max().unwrap_or(self.labels.len())
    }

    /// The tasks of the hosts in a stage, which the first `hosts` carry out.
    fn tasks(&self, stage: &[Planned], hosts: usize) -> Result<StageTasks, Error> {
        if let Some(apart) = &self.apart {
            return Ok(StageTasks::Apart(apart.tasks((stage, self.seen.stages), self.labels.len())?));
        }
        let steps = stage.iter().map(StepAsked::of).collect();
        let asked = StageAsked { number: self.seen.stages, steps, done: self.seen.done.clone() };
        let task = written(asked)?;
        Ok(match hosts < self.labels.len() {
            true => StageTasks::Apart(
                (0..self.labels.len()).map(|host| (host < hosts).then(|| task.clone())).collect(),
            ),
            false => StageTasks::Common(task),
        })
    }

    /// Has all hosts remove what they made; the last word on each of them.
    ///
    /// # Errors
    /// What is left.
    pub(crate) fn end(&mut self, interrupt: &Arc<AtomicBool>) -> Result<(), Error> {
        self.sessions.read_clocks();
        let left = self.sessions.end(interrupt);
        for (host, lines) in left {
            self.records[host].left = lines;
        }
        for (host, record) in self.records.iter_mut().enumerate() {
            record.failure = self.sessions.failure(host).map(|failure| named(failure, record));
            gathering::note_clock(record, self.sessions.clocks(host));
        }
        let lines = self.records.iter().flat_map(|record| record.left.iter().map(move |line| (record, line)));
        let lines: Vec<String> =
            lines.map(|(record, line)| format!("host {}: {line}", record.name)).collect();
        if lines.is_empty() { Ok(()) } else { Err(Error::new(ErrorKind::Run, "clean up", lines.join("; "))) }
    }

    /// Whether a launcher has started this process and the hosts.
    pub(crate) fn is_launched(&self) -> bool {
        self.crew.is_some()
    }

    /// The hosts for the record.
    pub(crate) fn records(&self) -> Vec<HostRecord> {
        self.records.clone()
    }

    /// Refuses a climb that would have to store what its steps need.
    fn check_climb(programme: &Programme) -> Result<(), Error> {
        if programme.saturate.as_ref().is_some_and(|spec| spec.rate_percent.is_some()) {
            return Err(Error::usage("hosts", "--rate as a percentage is measured on one host")
                .remedy("run --saturate first, and give the share of its result in operations per second"));
        }
        let is_filled = programme.phases.last().is_some_and(|planned| planned.fills);
        if programme.saturate.is_some() && is_filled {
            return Err(Error::usage("hosts", "--saturate over hosts stores no data for its steps")
                .remedy("store the data first and run --saturate on it, or use --ladder"));
        }
        Ok(())
    }
}

/// A failure of a host in which its name stands, and not the address that it has by chance.
fn named(failure: &str, record: &HostRecord) -> String {
    failure.replace(&format!(" (host={})", record.address), "").replace(&record.address, &record.name)
}

/// Shows what hosts told: the preparation of one of them, or all as one.
fn show_progress(progress: &[SessionProgress<'_>], labels: &[String], show: &mut dyn FnMut(&Event<'_>)) {
    let preparing = progress.iter().find_map(|host| match host.report {
        Some(ProgressReport::Preparing { what, done_fraction }) => Some((what, *done_fraction)),
        _ => None,
    });
    let reports: Vec<_> = progress.iter().map(|host| host.labelled(&labels[host.host])).collect();
    if reports.iter().any(|report| report.snapshot.is_some()) {
        let joined: Snapshot = join_hosts(&reports, Vec::new());
        show(&Event::Running(&joined));
    } else if let Some((what, share)) = preparing {
        show(&Event::Preparing(what, share));
    }
}
