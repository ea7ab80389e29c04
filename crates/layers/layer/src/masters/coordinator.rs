//! A stage that masters drive: each gets its part over its control channel, all begin together, and what they measured comes back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::{Clock, Error, ErrorKind, HostClock};
use fleet::{
    ConnectRequest, Fleet, HostAddress, HostEnd, HostOutcome, HostProgress, HostStage, OnRefusal,
    OutcomeMessage, PlanMessage, ProgressReport, RunPolicy,
};
use runner::{ArrivalTally, Outcome};
use statistics::{
    ClassTotals, HostRole, HostSnapshot, MasterReport, PhaseSamples, Snapshot, WorkerSamples, join_hosts,
    merge,
};

use super::job::{MasterJob, MasterPart, PartEnd};
use crate::observations::LinkActivity;
use crate::{Phase, SCHEMA_VERSION};

/// Longest wait for a connection of control.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Longest wait until a host has opened its connections, beyond the time that one may take.
const READY_WAIT: Duration = Duration::from_secs(60);

/// A phase that masters drive.
#[derive(Clone, Copy, Debug)]
pub struct Driven<'a> {
    /// The phase.
    pub phase: &'a Phase,
    /// Longest wait of one of its operations, in nanoseconds: its masters are given as much more to get ready and to end.
    pub timeout_ns: u64,
}

/// Outcome of a phase that masters drove, and counters of the interfaces that they sent through.
pub type DrivenOutcome = (Outcome, Vec<LinkActivity>);

/// Parts of a stage that one host drives.
struct Host {
    address: HostAddress,
    /// Phase and master of each of its parts.
    parts: Vec<(usize, usize)>,
}

/// Has masters drive phases of one layer at the same time; their outcomes with what their interfaces did, in order. `servers` are shown beside the masters
/// in live views.
///
/// # Errors
/// When they could not begin, or when nobody brought anything home.
pub fn drive(
    stage: &[Driven<'_>],
    servers: &dyn Fn() -> Vec<HostSnapshot>,
    interrupt: &Arc<AtomicBool>,
    observe: &mut dyn FnMut(&Snapshot),
) -> Result<Vec<DrivenOutcome>, Error> {
    let hosts = hosts(stage)?;
    let fleet = connect(stage, &hosts)?;
    let plans = hosts.iter().enumerate().map(|(number, host)| Ok((number, message(stage, host)?)));
    let plans = plans.collect::<Result<Vec<_>, Error>>()?;
    let timeout_ns = stage.iter().map(|driven| driven.timeout_ns).max().unwrap_or(0);
    let patience = Duration::from_nanos(timeout_ns).saturating_add(READY_WAIT);
    let policy = RunPolicy {
        on_refusal: OnRefusal::StopAll,
        ready_timeout: patience,
        collect_timeout: patience,
        ..RunPolicy::default()
    };
    let began_ns = HostClock::get().now_ns();
    let mut show = |progress: &[HostProgress]| {
        if let Some(snapshot) = combined(stage, &hosts, progress, servers(), began_ns) {
            observe(&snapshot);
        }
    };
    let ended = fleet.run(plans, &policy, &mut show, interrupt)?;
    (0..stage.len()).map(|phase| outcome(stage, phase, &hosts, &ended, began_ns)).collect()
}

/// The hosts of all masters, each once, with their parts.
fn hosts(stage: &[Driven<'_>]) -> Result<Vec<Host>, Error> {
    let mut hosts: Vec<Host> = Vec::new();
    for (phase, driven) in stage.iter().enumerate() {
        for (number, master) in driven.phase.plan.master_plans().iter().enumerate() {
            let address = HostAddress::parse(&master.control, 0)?;
            match hosts.iter_mut().find(|host| host.address == address) {
                Some(host) => host.parts.push((phase, number)),
                None => hosts.push(Host { address, parts: vec![(phase, number)] }),
            }
        }
    }
    Ok(hosts)
}

fn connect(stage: &[Driven<'_>], hosts: &[Host]) -> Result<Fleet, Error> {
    let control = stage.first().map(|driven| driven.phase.control.clone()).unwrap_or_default();
    let fleet = Fleet::connect(ConnectRequest {
        hosts: hosts.iter().map(|host| host.address.clone()).collect(),
        secret: control.secret,
        tls: control.tls,
        timeout: CONNECT_WAIT,
    })?;
    let failed: Vec<String> = fleet
        .failures()
        .map(|(number, error)| format!("master {}: {error}", label(stage, &hosts[number])))
        .collect();
    match failed.first() {
        None => Ok(fleet),
        Some(first) if failed.len() == 1 => Err(Error::new(ErrorKind::Run, layer_of(stage), first.clone())),
        Some(first) => Err(Error::new(
            ErrorKind::Run,
            layer_of(stage),
            format!("{} masters cannot be reached; {first}", failed.len()),
        )),
    }
}

/// Layer of the phases of a stage that masters drive.
fn layer_of(stage: &[Driven<'_>]) -> &'static str {
    stage.first().map_or("masters", |driven| driven.phase.plan.layer())
}

/// Label that people give the masters of a host.
fn label(stage: &[Driven<'_>], host: &Host) -> String {
    let mut labels: Vec<&str> = Vec::new();
    for &(phase, master) in &host.parts {
        let label = stage[phase].phase.plan.master_plans()[master].label.as_str();
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels.join("+")
}

fn message(stage: &[Driven<'_>], host: &Host) -> Result<PlanMessage, Error> {
    let part =
        |&(phase, master): &(usize, usize)| MasterPart { plan: stage[phase].phase.plan.clone(), master };
    let job = MasterJob { parts: host.parts.iter().map(part).collect() };
    let name = stage.first().map_or("", |driven| driven.phase.plan.name().as_str());
    PlanMessage::new(name, layer_of(stage), SCHEMA_VERSION, &job)
}

/// All hosts as one, with an entry for each; none before one of them measures.
fn combined(
    stage: &[Driven<'_>],
    hosts: &[Host],
    progress: &[HostProgress],
    servers: Vec<HostSnapshot>,
    began_ns: u64,
) -> Option<Snapshot> {
    let known: Vec<(&HostProgress, &Host, String)> = progress
        .iter()
        .filter_map(|state| hosts.get(state.host).map(|host| (state, host, label(stage, host))))
        .collect();
    let reports: Vec<MasterReport<'_>> = known
        .iter()
        .map(|(state, host, label)| MasterReport {
            label,
            role: role(stage, host),
            snapshot: match &state.report {
                Some(ProgressReport::Running(snapshot)) => Some(snapshot),
                _ => None,
            },
            has_ended: state.stage == HostStage::Ended,
            failure: state.failure.as_deref(),
        })
        .collect();
    if reports.iter().all(|report| report.snapshot.is_none()) {
        return None;
    }
    let mut all = join_hosts(&reports, servers);
    let now_ns = HostClock::get().now_ns();
    all.elapsed_ns = all.elapsed_ns.max(1).min(now_ns.saturating_sub(began_ns).max(1));
    Some(all)
}

/// Whether a host that drives is driven by others as well.
fn role(stage: &[Driven<'_>], host: &Host) -> HostRole {
    let serves = |&(phase, master): &(usize, usize)| {
        let plan = &stage[phase].phase.plan;
        plan.master_plans()[master].rank.is_some_and(|rank| plan.is_served_by(rank))
    };
    if host.parts.iter().any(serves) { HostRole::Master } else { HostRole::Client }
}

/// Outcome of one phase, over all of its masters.
fn outcome(
    stage: &[Driven<'_>],
    phase: usize,
    hosts: &[Host],
    ended: &[HostOutcome],
    began_ns: u64,
) -> Result<DrivenOutcome, Error> {
    let mut gathered = Gathered::default();
    for (host, end) in hosts.iter().zip(ended) {
        let masters = host.parts.iter().enumerate().filter(|(_, part)| part.0 == phase);
        for (place, &(_, master)) in masters {
            let label = &stage[phase].phase.plan.master_plans()[master].label;
            gathered.notes.extend(end.notes.iter().map(|note| format!("{label}: {note}")));
            match &end.end {
                HostEnd::Finished(message) => {
                    let late_ns = u64::try_from(end.start_lateness_ns.unwrap_or(0)).unwrap_or(0);
                    gathered.take(label, message, place, began_ns + late_ns);
                }
                HostEnd::Refused(_) | HostEnd::Failed(_) => {
                    let why = end.failure().unwrap_or("it failed").to_owned();
                    gathered.lost.push((label.clone(), why));
                }
            }
        }
    }
    let links = std::mem::take(&mut gathered.links);
    Ok((gathered.finish(layer_of(stage))?, links))
}

/// Results that masters sent back.
#[derive(Default)]
struct Gathered {
    samples: Vec<PhaseSamples>,
    notes: Vec<String>,
    arrivals: Option<ArrivalTally>,
    failure: Option<String>,
    /// Counters of the hosts' interfaces, one a host.
    links: Vec<LinkActivity>,
    /// Masters that brought nothing, and why.
    lost: Vec<(String, String)>,
}

impl Gathered {
    /// Takes the part at `place` of a master's result, which began at `started_ns`.
    fn take(&mut self, label: &str, message: &OutcomeMessage, place: usize, started_ns: u64) {
        let ends: Vec<PartEnd> = serde_json::from_value(message.details.clone()).unwrap_or_default();
        let (Some(samples), Some(end)) = (message.samples.get(place), ends.into_iter().nth(place)) else {
            self.lost.push((label.to_owned(), "its result lacks this phase".to_owned()));
            return;
        };
        let mut samples = PhaseSamples { started_ns, ..samples.clone() };
        for worker in &mut samples.workers {
            worker.origin = Some(label.to_owned());
        }
        self.samples.push(samples);
        for note in end.notes.iter().chain(&message.notes).map(|note| format!("{label}: {note}")) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        if let Some((started, unserved)) = end.arrivals {
            *self.arrivals.get_or_insert_default() += ArrivalTally { started, unserved };
        }
        // Masters on the same host see the same interface.
        if place == 0 {
            let owned = |link| LinkActivity { owner: Some(label.to_owned()), ..link };
            self.links.extend(end.links.into_iter().map(owned));
        }
        if let Some(failure) = end.failure {
            self.failure.get_or_insert(if failure == "interrupted" {
                failure
            } else {
                format!("master {label}: {failure}")
            });
        }
    }

    fn finish(self, layer: &'static str) -> Result<Outcome, Error> {
        let Self { samples, notes, arrivals, failure, lost, links: _ } = self;
        let lines: Vec<String> = lost.iter().map(|(label, why)| format!("master {label}: {why}")).collect();
        let Some(mut merged) = merge(&samples.iter().collect::<Vec<_>>()) else {
            return Err(Error::new(ErrorKind::Run, layer, lines.join("; ")));
        };
        for (label, why) in lost {
            let classes = merged.classes.iter();
            let totals = |class: &String| ClassTotals { class: class.clone(), ..ClassTotals::default() };
            merged.workers.push(WorkerSamples {
                worker: merged.workers.len(),
                origin: Some(label),
                classes: classes.map(totals).collect(),
                failure: Some(why),
                ..WorkerSamples::default()
            });
        }
        let lost = (!lines.is_empty()).then(|| lines.join("; "));
        let failure = lost.or(failure);
        Ok(Outcome { samples: merged, notes, arrivals, steady_ending: None, failure, coordinator_cpu_ns: 0 })
    }
}
