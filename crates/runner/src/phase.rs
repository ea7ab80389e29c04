//! One phase as the coordinating thread follows it, from the opening to its outcome.

use driver::{Clock, FINDINGS_MAX};
use host::activity::Usage;
use statistics::{Histogram, PhaseSamples, Snapshot, Waiting, WorkerSamples};

use crate::account::{Cut, WorkerEnd};
use crate::collector::Collector;
use crate::hang::Hang;
use crate::job::{ArrivalTally, Outcome};
use crate::lost::Lost;
use crate::oversight::{Oversight, Verdict};
use crate::placement::Placement;
use crate::stage::{PhaseState, Stage};
use crate::thread::Message;

type End = Result<Box<WorkerEnd>, String>;

/// How long what is in flight is waited for once the run was interrupted.
const INTERRUPTED_GRACE_NS: u64 = 3_000_000_000;

/// State of a phase while it runs.
pub(crate) struct Phase {
    places: Vec<Placement>,
    pub(crate) collector: Collector,
    notes: Vec<String>,
    ends: Vec<Option<End>>,
    pub(crate) open_ns: u64,
    is_open: bool,
    /// Since when its workers should come to their end.
    over_since: Option<u64>,
    /// Why it was ended as failed, by a limit that it is held against.
    failure: Option<String>,
    /// When the workers that have not ended were given up.
    given_up_ns: Option<u64>,
    /// Usage of the process and of the coordinating thread when the window ended: waiting for what is in flight then is in no figure.
    used: Option<(Usage, Usage)>,
    /// Since when its workers were to end early.
    cut_since: Option<u64>,
    /// Operations it waits for after its end, or because something hangs.
    waiting: Option<Waiting>,
    /// Whether something hangs that no time ends.
    hang: Hang,
    /// Since when nothing had completed when it was given up for that.
    hung_since: Option<u64>,
    /// Whether all others end with it.
    pub(crate) ends_others: bool,
}

impl Phase {
    pub(crate) fn new<C>(phase_state: &PhaseState<C>, places: Vec<Placement>) -> Self {
        Self {
            collector: Collector::new(&phase_state.job),
            notes: Vec::new(),
            ends: places.iter().map(|_| None).collect(),
            places,
            open_ns: u64::MAX,
            is_open: false,
            over_since: None,
            failure: None,
            given_up_ns: None,
            used: None,
            cut_since: None,
            waiting: None,
            hang: Hang::default(),
            hung_since: None,
            ends_others: phase_state.job.load.end_others,
        }
    }

    /// Adds what a driver had to say; each thing once.
    pub(crate) fn note(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// All phases may begin at `start_ns`; it is `now`.
    pub(crate) fn begin<C>(&mut self, phase_state: &PhaseState<C>, start_ns: u64, now: u64) {
        self.open_ns = phase_state.open_ns(start_ns);
        self.is_open = self.open_ns <= now;
        // How long the final operations of a phase take is part of what it measures.
        let time_ns = phase_state.job.load.limit.time_ns.filter(|_| !phase_state.job.finishes);
        self.over_since = time_ns.map(|time_ns| self.open_ns.saturating_add(time_ns));
        self.collector.open_window();
    }

    /// A worker has ended.
    pub(crate) fn ended(&mut self, worker: u32, message: Message) {
        let end = match message {
            Message::Ended(end) => Ok(end),
            Message::Panicked(text) => Err(format!("worker {worker} panicked: {text}")),
            Message::Ready(_) | Message::Refused(_) => return,
        };
        self.collector.ended(worker as usize);
        self.ends[worker as usize] = Some(end);
    }

    /// Whether every worker has ended or was given up.
    pub(crate) fn is_over(&self) -> bool {
        self.given_up_ns.is_some() || self.ends.iter().all(Option::is_some)
    }

    /// Looks after the phase at `now`; true when it is given up or failed now.
    pub(crate) fn attend<C>(&mut self, phase_state: &PhaseState<C>, now: u64) -> bool {
        if !self.is_open && now >= self.open_ns {
            self.is_open = true;
            self.collector.open_window();
        }
        if self.is_over() {
            return false;
        }
        let shared = &phase_state.shared;
        let mut has_failed = false;
        if let Some(oversight) =
            self.collector.oversight.as_mut().filter(|_| now >= self.open_ns && !shared.is_ending())
        {
            match oversight.look(now - self.open_ns) {
                Verdict::GoesOn => {}
                Verdict::Ends => shared.end(),
                Verdict::Fails(message) => {
                    self.failure = Some(message);
                    has_failed = true;
                }
            }
        }
        let must_end = if phase_state.job.finishes { shared.is_stopped() } else { shared.is_ending() };
        if must_end && self.over_since.is_none_or(|since| since > now) {
            self.over_since = Some(now);
        }
        if shared.is_interrupted() {
            self.cut_since.get_or_insert(now);
        }
        let Some(over_since) = self.over_since.filter(|since| now > *since) else {
            return self.attend_hang(phase_state, now) || has_failed;
        };
        // What comes after the window of such a phase is measured too.
        if self.is_open && !phase_state.job.finishes {
            self.used.get_or_insert_with(|| self.collector.usages());
        }
        let (since, grace_ns) = self.grace(phase_state, over_since);
        let is_given_up = now > since.saturating_add(grace_ns);
        if is_given_up {
            self.given_up_ns = Some(now);
            shared.leave();
        }
        let operations = phase_state.marks.iter().map(|marks| marks.in_flight().len() as u64).sum();
        self.waiting = (!is_given_up).then(|| Waiting { operations, waited_ns: now - since, grace_ns });
        is_given_up || has_failed
    }

    /// Looks whether anything completes in a phase that no time ends; true when it is given up now. The final operations of a phase
    /// may take as long as they do.
    fn attend_hang<C>(&mut self, phase_state: &PhaseState<C>, now: u64) -> bool {
        if self.over_since.is_some() || phase_state.job.finishes || now < self.open_ns {
            return false;
        }
        let grace_ns = phase_state.job.grace_ns;
        let hang = self.hang.look(&self.collector, &phase_state.marks, now);
        self.waiting =
            hang.map(|(operations, since)| Waiting { operations, waited_ns: now - since, grace_ns });
        self.hung_since = hang.map(|(_, since)| since).filter(|since| now > since.saturating_add(grace_ns));
        if self.hung_since.is_some() {
            self.given_up_ns = Some(now);
            self.used = Some(self.hang.used);
            self.waiting = None;
            phase_state.shared.leave();
        }
        self.hung_since.is_some()
    }

    /// Since when what is in flight is waited for, and how long: one who interrupts the run does not wait for what hangs.
    fn grace<C>(&self, phase_state: &PhaseState<C>, over_since: u64) -> (u64, u64) {
        match self.cut_since {
            Some(cut_since) => (cut_since, phase_state.job.grace_ns.min(INTERRUPTED_GRACE_NS)),
            None => (over_since, phase_state.job.grace_ns),
        }
    }

    /// The phase as it looks at `now`.
    pub(crate) fn snapshot(&mut self, now: u64, seconds: f64, latency: &mut Histogram) -> Snapshot {
        let mut snapshot = self.collector.snapshot(now.saturating_sub(self.open_ns), seconds, latency);
        snapshot.waiting = self.waiting.filter(|_| !self.is_over());
        snapshot
    }

    /// Samples measured until `now`, as far as they were collected: totals, latencies and the series.
    pub(crate) fn so_far(&self, window_ns: Option<u64>, now: u64) -> PhaseSamples {
        let elapsed_ns = now.saturating_sub(self.open_ns).max(1);
        let elapsed_ns = window_ns.map_or(elapsed_ns, |window_ns| elapsed_ns.min(window_ns));
        let (classes, totals, series) = self.collector.so_far(elapsed_ns);
        let worker = |(worker, classes)| WorkerSamples {
            worker,
            core: self.places[worker].core(),
            finished_ns: elapsed_ns,
            classes,
            ..WorkerSamples::default()
        };
        let usage = if self.is_open { self.collector.usage() } else { Usage::default() };
        PhaseSamples {
            classes,
            window_ns,
            started_ns: self.open_ns,
            elapsed_ns,
            workers: totals.into_iter().enumerate().map(worker).collect(),
            series,
            interrupted: None,
            process_cpu_user_ns: usage.user_ns,
            process_cpu_system_ns: usage.system_ns,
        }
    }

    /// Puts the workers' accounts and what was collected together.
    pub(crate) fn conclude<C: Clock>(self, stage: &Stage<C>, phase_state: &PhaseState<C>) -> Outcome {
        let (load, interrupted) = (&phase_state.job.load, phase_state.shared.is_interrupted());
        let Self {
            places,
            mut collector,
            mut notes,
            ends,
            open_ns,
            is_open,
            given_up_ns,
            used,
            cut_since,
            over_since,
            failure: too_slow,
            hung_since,
            ..
        } = self;
        let over_since = hung_since.or(cut_since).or(over_since);
        let (process, coordinator) = used_of(is_open, used, &collector);
        let mut losses = take_ends(phase_state, &mut collector, &ends, (open_ns, over_since, given_up_ns));
        let waited_ns = over_since.zip(given_up_ns).map_or(0, |(since, now)| now - since);
        let ends: Vec<End> = (ends.into_iter().enumerate())
            .map(|(worker, end)| end.unwrap_or_else(|| Err(lost(worker, waited_ns, hung_since.is_some()))))
            .collect();
        let was = |cut: Cut| ends.iter().flatten().any(|end| end.cut == Some(cut));
        let stopped_by = || stage.failed().filter(|_| was(Cut::Stopped));
        let failure = failure(&ends)
            .or(too_slow)
            .or_else(|| interrupted.then(|| "interrupted".to_owned()))
            .or_else(|| stopped_by().map(|name| format!("stopped: phase {name} failed")));
        let ended_by = stage.ended_by().filter(|_| failure.is_none() && was(Cut::Ended));
        notes.extend(ended_by.map(|name| format!("ended because phase {name} ended")));
        notes.extend(findings(&ends));
        let lost_ns = losses.iter().map(|lost| lost.finished_ns).max().unwrap_or(0);
        let elapsed_ns = elapsed_ns(phase_state, &ends, failure.is_none()).max(lost_ns);
        let elapsed_ns = elapsed_ns.max(1).min(stage.clock.now_ns().saturating_sub(open_ns).max(1));
        let steady_ending = collector.oversight.take().and_then(Oversight::into_ending);
        let (classes, totals, series) = collector.finish(elapsed_ns);
        let mut arrivals = load.arrivals.map(|_| ArrivalTally::default());
        if let Some(arrivals) = &mut arrivals {
            ends.iter().flatten().for_each(|end| *arrivals += end.arrivals);
            losses.iter().for_each(|lost| *arrivals += lost.arrivals);
        }
        let usage = if stage.phase_states.len() == 1 { process } else { usage_of(&ends) };
        let workers = ends.into_iter().zip(totals).enumerate().map(|(worker, (end, classes))| {
            let core = places[worker].core();
            match end {
                Ok(end) => end.into_samples(worker, core, classes),
                Err(failure) => {
                    std::mem::take(&mut losses[worker]).into_samples(worker, core, classes, failure)
                }
            }
        });
        let samples = PhaseSamples {
            classes,
            window_ns: load.limit.time_ns,
            started_ns: open_ns,
            elapsed_ns,
            workers: workers.collect(),
            series,
            interrupted: interrupted.then(|| "interrupted by a signal".to_owned()),
            process_cpu_user_ns: usage.user_ns,
            process_cpu_system_ns: usage.system_ns,
        };
        Outcome { samples, notes, arrivals, steady_ending, failure, coordinator_cpu_ns: coordinator.cpu_ns() }
    }
}

/// Usage of the process and of this thread in the window; nothing where it never opened.
fn used_of(is_open: bool, until_end: Option<(Usage, Usage)>, collector: &Collector) -> (Usage, Usage) {
    if is_open { until_end.unwrap_or_else(|| collector.usages()) } else { Default::default() }
}

/// Adds what the workers still had to what was collected of a phase that opened and was to end then. For those that had not ended when
/// they were given up, if they were: what was seen of their operations from outside.
fn take_ends<C>(
    phase_state: &PhaseState<C>,
    collector: &mut Collector,
    ends: &[Option<End>],
    (open_ns, over_since, given_up_ns): (u64, Option<u64>, Option<u64>),
) -> Vec<Lost> {
    let end_ns = over_since.unwrap_or(u64::MAX);
    let mut losses = vec![Lost::default(); ends.len()];
    for (worker, end) in ends.iter().enumerate() {
        match (end, given_up_ns) {
            (Some(Ok(end)), _) => {
                collector.absorb(worker, &end.last);
                collector.add_unserved(worker, &end.unserved);
            }
            (None, Some(now)) => {
                losses[worker] = Lost::account(phase_state, collector, worker, (open_ns, end_ns, now));
            }
            _ => {}
        }
    }
    losses
}

/// Faults that the drivers found, each once.
fn findings(ends: &[End]) -> Vec<String> {
    let mut findings: Vec<String> = Vec::new();
    for finding in ends.iter().flatten().flat_map(|end| &end.findings) {
        if !findings.contains(finding) {
            findings.push(finding.clone());
        }
    }
    let more = findings.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        findings.truncate(FINDINGS_MAX);
        findings.push(format!("and {more} more findings of this kind"));
    }
    findings
}

fn lost(worker: usize, waited_ns: u64, is_hang: bool) -> String {
    let seconds = waited_ns / 1_000_000_000;
    if is_hang {
        return format!("worker {worker} is stuck: nothing completed for {seconds} s, an operation hangs");
    }
    format!("worker {worker} did not end within {seconds} s after the phase: an operation hangs")
}

/// The first failure of a worker.
fn failure(ends: &[End]) -> Option<String> {
    ends.iter().find_map(|end| match end {
        Ok(end) => end.failure.clone(),
        Err(failure) => Some(failure.clone()),
    })
}

/// Length of the phase: to its last completion; as planned where somebody worked until it closed, even when the last completion
/// fell short of that.
fn elapsed_ns<C>(phase_state: &PhaseState<C>, ends: &[End], is_whole: bool) -> u64 {
    let ends = || ends.iter().flatten();
    let finished_ns = ends().map(|end| end.finished_ns).max().unwrap_or(0);
    if !is_whole {
        return finished_ns;
    }
    match phase_state.job.load.limit.time_ns.filter(|_| ends().any(|end| end.reached_close)) {
        Some(time_ns) if phase_state.job.finishes => finished_ns.max(time_ns),
        Some(time_ns) => time_ns,
        None => finished_ns,
    }
}

/// Usage of the workers' threads: where several phases ran, that of the process cannot be told apart.
fn usage_of(ends: &[End]) -> Usage {
    ends.iter().flatten().fold(Usage::default(), |mut sum, end| {
        sum.user_ns += end.usage.user_ns;
        sum.system_ns += end.usage.system_ns;
        sum
    })
}
