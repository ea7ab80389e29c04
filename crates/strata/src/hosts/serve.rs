//! This process as one of the hosts that carry out a run: it plans by itself, as for a run of its own, and runs the stages that the leader asks for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Clock as _, Error, HostClock};
use fleet::{HostMeetings, HostSession, ProgressReport, SessionHost, SessionLink, SessionRequest, StagePart};
use layer::{Confinement, HostLink, Hosts, Met, Seen, ServicePolicy, StageContext};
use runner::NoReports;
use serde_json::Value;
use workload::plan::{HostPlace, PhasePlan};
use workload::shipped::ShippedSpec;
use workload::spec::Spec;

use super::messages::{PhaseDetails, PlannedPhase, StageAsked, StepAsked, read, written};
use crate::output;
use crate::planning::{self, Layers, Planned, Programme};
use crate::session;

/// Takes part in runs that others lead, as far as its policy allows.
pub(crate) struct ThisHost {
    /// Rules for leaders; none: they may do all that its user may.
    pub(crate) policy: Option<ServicePolicy>,
    /// Paths that the kernel holds this process to; none: it is free.
    pub(crate) confinement: Option<Confinement>,
}

impl ThisHost {
    /// The specs of a run, with the place of this host. What the policy refuses is refused before an option is read: some read files.
    fn specs_of(&self, request: &SessionRequest) -> Result<Vec<Spec>, Error> {
        let shipped: Vec<ShippedSpec> = shipped(request)?;
        let read = |shipped: ShippedSpec| {
            if let Some(policy) = &self.policy {
                let mut options = shipped.options();
                options.try_for_each(|(name, value)| policy.check_option(shipped.layer(), name, value))?;
            }
            let spec = shipped.read().map_err(|error| Error::usage("session", error.to_string()))?;
            let place = spec.host.is_none().then(|| place(request, &spec)).transpose()?;
            Ok(Spec { place, ..spec })
        };
        let specs = shipped.into_iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        self.policy.iter().try_for_each(|policy| policy.check(&specs))?;
        Ok(specs)
    }
}

/// An error with what the kernel holds this process to, where it may come from that.
fn explained(confinement: Option<&Confinement>, error: Error) -> Error {
    match confinement {
        Some(confinement) => confinement.explained(error),
        None => error,
    }
}

/// The place of this host in what the leader has asked for, of all hosts or of the first ones.
fn place(request: &SessionRequest, spec: &Spec) -> Result<HostPlace, Error> {
    let SessionRequest { rank, hosts: of_run, .. } = *request;
    let asked = spec.place;
    let hosts = asked.map_or(of_run, |asked| asked.hosts);
    if !(1..=of_run).contains(&hosts) {
        return Err(Error::usage("session", format!("invalid phase: {hosts} of {of_run} hosts"))
            .remedy(format!("a phase has 1 to {of_run} hosts")));
    }
    let run_hosts = if hosts < of_run { of_run } else { 0 };
    let HostPlace { workers, first_worker, .. } = asked.unwrap_or_default();
    let place = HostPlace { rank, hosts, run_hosts, workers, first_worker, ..HostPlace::default() };
    let last = u64::from(first_worker) + u64::from(spec.threads.unwrap_or(1));
    if place.is_uneven() && place.takes_part() && last > workers.into() {
        return Err(Error::usage("session", "invalid phase: more workers on this host than on all hosts"));
    }
    Ok(place)
}

fn shipped(request: &SessionRequest) -> Result<Vec<ShippedSpec>, Error> {
    read(serde_json::from_slice(&request.specs).unwrap_or_default())
}

impl SessionHost for ThisHost {
    fn what(&self, request: &SessionRequest) -> String {
        let Ok(shipped) = shipped(request) else { return "what cannot be read".to_owned() };
        let all: Vec<String> = shipped
            .iter()
            .map(|spec| {
                let targets: Vec<String> =
                    spec.targets().iter().map(|target| units::without_password(target)).collect();
                format!("{} {}", spec.layer(), targets.join(" ")).trim_end().to_owned()
            })
            .collect();
        all.join("; ")
    }

    fn roots(&self) -> Vec<String> {
        let roots = self.policy.iter().flat_map(ServicePolicy::roots);
        roots.map(|root| units::label_of(root.as_os_str())).collect()
    }

    fn is_confined(&self) -> bool {
        self.confinement.is_some()
    }

    fn begin(
        &self,
        request: &SessionRequest,
        _peer: SocketAddr,
        stop: &Arc<AtomicBool>,
        meetings: &Arc<HostMeetings>,
    ) -> Result<Box<dyn HostSession>, Error> {
        let specs = self.specs_of(request)?;
        let is_alone = specs.iter().all(|spec| spec.host.is_some());
        let hosts = (!is_alone).then(|| hosts_of(request, meetings));
        let (programme, layers) = planning::plan_until(&specs, request.seed, stop, hosts)
            .map_err(|error| explained(self.confinement.as_ref(), error))?;
        if let Some(planned) = programme.phases.iter().find(|planned| planned.plan.is_driven_elsewhere()) {
            return Err(Error::usage("hosts", "a phase with masters cannot use --hosts")
                .with("phase", planned.plan.name())
                .remedy("give --hosts, or --clients and --master, not both"));
        }
        if let Some(policy) = &self.policy {
            let plans: Vec<&PhasePlan> = programme.phases.iter().map(|planned| &planned.phase.plan).collect();
            policy.check_plans(&plans)?;
        }
        let number = Some(request.rank);
        // A leader who may not touch every path does not say either that one was used.
        let own = specs.iter().filter(|_| self.policy.is_none());
        let served = own.flat_map(|spec| spec.served.iter().cloned()).collect();
        layers.manifest.begin_part(request.run, number, &request.started_at, programme.keep, served);
        Ok(Box::new(PartOfRun {
            programme,
            layers,
            specs,
            done: Vec::new(),
            told: 0,
            stop: Arc::clone(stop),
            confinement: self.confinement.clone(),
        }))
    }
}

/// The hosts of a run, as its layers see them.
fn hosts_of(request: &SessionRequest, meetings: &Arc<HostMeetings>) -> Hosts {
    let place = HostPlace { rank: request.rank, hosts: request.hosts, ..HostPlace::default() };
    Hosts { place, link: Arc::new(ByLeader(Arc::clone(meetings))) }
}

/// Hosts meet by way of their leader.
struct ByLeader(Arc<HostMeetings>);

impl HostLink for ByLeader {
    fn meet(&self, meeting: &str, said: &[u64]) -> Result<Met, Error> {
        self.0.meet(meeting, said)
    }
}

/// The part of this host in a run.
struct PartOfRun {
    programme: Programme,
    layers: Layers,
    specs: Vec<Spec>,
    /// Plans of phases that did all that was asked of them, in their order.
    done: Vec<PhasePlan>,
    /// So many phases the leader has said to be done so far.
    told: usize,
    stop: Arc<AtomicBool>,
    confinement: Option<Confinement>,
}

impl PartOfRun {
    fn planned(&self, step: &StepAsked) -> Result<Planned, Error> {
        let found = self.programme.phases.get(step.phase).cloned();
        let mut planned = found
            .ok_or_else(|| Error::usage("session", "the phase was not planned").with("phase", step.phase))?;
        let spec = self.specs.get(planned.request);
        step.settle(&mut planned, spec);
        Ok(planned)
    }

    /// Notes phases that other hosts have done without this one, of all that are `done`.
    fn learn(&mut self, done: &[usize]) {
        for number in done.iter().skip(std::mem::replace(&mut self.told, done.len())) {
            let place = |planned: &&Planned| planned.plan.load().place;
            let is_elsewhere = |planned: &&Planned| place(planned).is_some_and(|place| !place.takes_part());
            if let Some(planned) = self.programme.phases.get(*number).filter(is_elsewhere) {
                self.done.push(planned.phase.plan.clone());
            }
        }
    }

    fn run(
        &mut self,
        (stage, number): (&[Planned], usize),
        link: &SessionLink,
    ) -> Result<(u64, Vec<Seen>), Error> {
        let progress = |name: &str, share: f64| {
            link.progress(&ProgressReport::Preparing { what: name.to_owned(), done_fraction: share });
        };
        let context = StageContext {
            number,
            interrupt: Arc::clone(&self.stop),
            progress: &progress,
            tell: |line| output::tell(line),
        };
        let done: Vec<&PhasePlan> = self.done.iter().collect();
        let parts = session::parts(stage, &done, &mut self.layers.runs, &context)?;
        let mut scheduled_ns = 0;
        let mut start = || {
            let (delay_ns, late_ns) = link.start(Vec::new())?;
            scheduled_ns = HostClock::get().now_ns().saturating_add(delay_ns).saturating_sub(late_ns);
            Ok(Some(delay_ns))
        };
        let mut observe = |snapshot: &statistics::Snapshot| {
            link.progress(&ProgressReport::Running(snapshot.clone()));
        };
        let (_, seen) = layer::run(parts, &mut start, &mut observe, &mut NoReports)?;
        Ok((scheduled_ns, seen))
    }
}

impl HostSession for PartOfRun {
    fn planned(&self) -> Value {
        let phases: Vec<PlannedPhase> = self.programme.phases.iter().map(PlannedPhase::of).collect();
        written(phases).unwrap_or_default()
    }

    fn stage(&mut self, stage: Value, link: &SessionLink) -> Result<(), Error> {
        let StageAsked { number, steps, done } = read(stage)?;
        self.learn(&done);
        let stage = steps.iter().map(|step| self.planned(step)).collect::<Result<Vec<_>, Error>>()?;
        let ran = self.run((&stage, number), link);
        let (scheduled_ns, seen) = ran.map_err(|error| explained(self.confinement.as_ref(), error))?;
        for (number, (planned, seen)) in stage.into_iter().zip(seen).enumerate() {
            let (mut outcome, observations) = layer::profile::added(&planned.phase.plan, seen);
            self.confinement.iter().for_each(|confinement| confinement.explain(&mut outcome));
            let mut workers = outcome.samples.workers.iter();
            let is_whole = outcome.failure.is_none()
                && workers.all(|worker| worker.classes.iter().all(|class| class.errors == 0));
            if is_whole {
                self.done.push(planned.phase.plan);
            }
            let details = written(PhaseDetails::of(&outcome, observations, scheduled_ns))?;
            StagePart::split(number, outcome.samples, details)
                .into_iter()
                .try_for_each(|part| link.part(part))?;
        }
        Ok(())
    }

    fn end(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        for (_, run) in self.layers.runs.all() {
            let ended = run.end().map_err(|error| explained(self.confinement.as_ref(), error));
            left.extend(ended.err().map(|error| match self.layers.manifest.path() {
                Some(path) => error.remedy(crate::signals::command(&path)).to_string(),
                None => error.to_string(),
            }));
        }
        left
    }
}
