//! Results of the hosts of a stage, as one outcome a phase.

use driver::{Error, ErrorKind};
use fleet::{HostStageEnd, StageOutcome};
use layer::Seen;
use report::record::{HostStart, Observations};
use runner::{ArrivalTally, Outcome};
use rustix::io::Errno;
use statistics::{ClassTotals, PhaseSamples, Series, WorkerSamples, merge};

use super::messages::{PhaseDetails, read};

/// A phase as all hosts together carried it out.
pub(super) struct Gathered {
    pub(super) seen: Seen,
    pub(super) starts: Vec<HostStart>,
    /// Whether nothing failed but hosts that are lost.
    pub(super) only_hosts_failed: bool,
}

/// Everything that hosts brought of one phase.
#[derive(Default)]
struct Sum {
    samples: Vec<PhaseSamples>,
    observations: Vec<Observations>,
    /// Processors that each host's process kept busy.
    cpus_used: Vec<f64>,
    /// Notes with the hosts that gave them.
    notes: Vec<(String, Vec<String>)>,
    arrivals: Option<ArrivalTally>,
    failures: Vec<String>,
    /// Failures that follow from that of another host, or from its end.
    consequences: Vec<String>,
    is_interrupted: bool,
    /// Failures of hosts that took no part in the phase.
    outside: Vec<String>,
    /// Hosts that brought nothing, and why.
    lost: Vec<(String, String)>,
    starts: Vec<HostStart>,
    coordinator_cpu_ns: u64,
}

/// The phase with this number in its stage, which the first `hosts` carried out. `labels` are the names of all hosts, `start_ns` is the common start by
/// this process's clock; `outside` are failures of hosts that took no part.
///
/// # Errors
/// When no host brought anything.
pub(super) fn of_all(
    (number, hosts): (usize, usize),
    outcome: &mut StageOutcome,
    (labels, outside): (&[String], &[String]),
    start_ns: u64,
    is_one_machine: bool,
) -> Result<Gathered, Error> {
    let part = &labels[..hosts.min(labels.len())];
    let mut sum = Sum { outside: outside.to_vec(), ..Sum::default() };
    for (rank, (end, label)) in outcome.hosts.iter_mut().zip(part).enumerate() {
        sum.take(rank as u32, number, end, label, start_ns);
    }
    if let ([first, rest @ ..], true) = (part, part.len() < labels.len()) {
        let last = match rest {
            [] => String::new(),
            [second] => format!(" and {second}"),
            [.., last] => format!(" to {last}"),
        };
        let note = format!("carried out by {} of {} hosts: {first}{last}", part.len(), labels.len());
        sum.notes.insert(0, (note, part.to_vec()));
    }
    sum.finish(part.len(), is_one_machine)
}

/// A phase that one host carried out alone: its number, and that of the phase among its own of the stage. A host that is lost has failed it.
///
/// # Errors
/// As for [`of_all`]; not for a host that is lost.
pub(super) fn of_one(
    (host, number): (usize, usize),
    outcome: &mut StageOutcome,
    labels: &[String],
    start_ns: u64,
) -> Result<Gathered, Error> {
    let label = &labels[host];
    let mut sum = Sum::default();
    sum.take(host as u32, number, &mut outcome.hosts[host], label, start_ns);
    if sum.samples.is_empty() {
        sum.samples.push(nothing(start_ns));
    }
    sum.notes.insert(0, (format!("carried out by host {label}"), vec![label.clone()]));
    sum.finish(1, true)
}

/// A phase that was not measured.
fn nothing(started_ns: u64) -> PhaseSamples {
    PhaseSamples {
        classes: Vec::new(),
        window_ns: None,
        started_ns,
        elapsed_ns: 0,
        workers: Vec::new(),
        series: Series::new(1, 2, 0),
        interrupted: None,
        process_cpu_user_ns: 0,
        process_cpu_system_ns: 0,
    }
}

/// Whether all failed operations of a host were canceled: another one, which they need, failed or ended.
fn is_canceled(samples: &PhaseSamples) -> bool {
    let mut errors = samples.workers.iter().flat_map(|worker| &worker.errors).peekable();
    let canceled = Some(Errno::CANCELED.raw_os_error());
    errors.peek().is_some() && errors.all(|error| error.errno == canceled)
}

impl Sum {
    fn take(&mut self, rank: u32, number: usize, end: &mut HostStageEnd, label: &str, start_ns: u64) {
        self.note(&end.notes.clone(), label);
        let found = end.phases.iter().position(|(phase, ..)| *phase == number);
        let Some((_, samples, details)) = found.map(|at| end.phases.swap_remove(at)) else {
            let why = end.failure.clone().unwrap_or_else(|| "its results lack this phase".to_owned());
            self.lost.push((label.to_owned(), why));
            return;
        };
        let details: PhaseDetails = match read(details) {
            Ok(details) => details,
            Err(error) => {
                self.lost.push((label.to_owned(), error.to_string()));
                return;
            }
        };
        let busy_ns = samples.process_cpu_user_ns.saturating_add(samples.process_cpu_system_ns);
        self.cpus_used.push(busy_ns as f64 / samples.elapsed_ns.max(1) as f64);
        let started_ns = start_ns.saturating_add_signed(details.started_after_ns);
        let is_consequence = is_canceled(&samples);
        let mut samples = PhaseSamples { started_ns, ..samples };
        samples.workers.iter_mut().for_each(|worker| worker.origin = Some(label.to_owned()));
        self.samples.push(samples);
        self.note(&details.notes, label);
        self.starts.extend(details.lateness_ns.map(|lateness_ns| HostStart { rank, lateness_ns }));
        self.coordinator_cpu_ns += details.coordinator_cpu_ns;
        self.observations.push(details.observations);
        if let Some((started, unserved)) = details.arrivals {
            *self.arrivals.get_or_insert_default() += ArrivalTally { started, unserved };
        }
        match details.failure {
            Some(failure) if failure == "interrupted" => self.is_interrupted = true,
            Some(failure) => {
                let all = if is_consequence { &mut self.consequences } else { &mut self.failures };
                all.push(format!("host {label}: {failure}"));
            }
            None => {}
        }
        // Its connection broke after it had brought what it measured.
        if let Some(why) = &end.failure {
            self.failures.push(format!("host {label}: {why}"));
        }
    }

    fn note(&mut self, notes: &[String], label: &str) {
        for note in notes {
            match self.notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, hosts)) => {
                    if hosts.last().is_none_or(|last| last != label) {
                        hosts.push(label.to_owned());
                    }
                }
                None => self.notes.push((note.clone(), vec![label.to_owned()])),
            }
        }
    }

    fn finish(self, hosts: usize, is_one_machine: bool) -> Result<Gathered, Error> {
        let lost: Vec<String> = self.lost.iter().map(|(label, why)| format!("host {label}: {why}")).collect();
        let Some(mut samples) = merge(&self.samples.iter().collect::<Vec<_>>()) else {
            return Err(Error::new(ErrorKind::Run, "hosts", lost.join("; ")));
        };
        for (label, why) in &self.lost {
            let totals = |class: &String| ClassTotals { class: class.clone(), ..ClassTotals::default() };
            samples.workers.push(WorkerSamples {
                worker: samples.workers.len(),
                origin: Some(label.clone()),
                classes: samples.classes.iter().map(totals).collect(),
                failure: Some(why.clone()),
                ..WorkerSamples::default()
            });
        }
        let only_hosts_failed =
            self.failures.is_empty() && self.consequences.is_empty() && !self.is_interrupted;
        let failure = (!lost.is_empty()).then(|| lost.join("; "));
        let failure = failure.or_else(|| (!self.outside.is_empty()).then(|| self.outside.join("; ")));
        let failure = failure.or_else(|| self.failures.first().cloned());
        let failure = failure.or_else(|| self.is_interrupted.then(|| "interrupted".to_owned()));
        let failure = failure.or_else(|| self.consequences.first().cloned());
        let note = |(note, of): (String, Vec<String>)| {
            if of.len() == hosts { note } else { format!("{}: {note}", of.join(", ")) }
        };
        let outcome = Outcome {
            samples,
            notes: self.notes.into_iter().map(note).collect(),
            arrivals: self.arrivals,
            steady_ending: None,
            failure,
            coordinator_cpu_ns: self.coordinator_cpu_ns,
        };
        let observations = Observations::of_hosts(self.observations, &self.cpus_used, is_one_machine);
        Ok(Gathered { seen: (outcome, observations), starts: self.starts, only_hosts_failed })
    }
}
