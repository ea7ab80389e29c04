//! Figures of one job, or of all jobs of a group together: fio's figures, taken from the record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use report::record::{PhaseRecord, Record, Status};
use statistics::{
    ClassTotals, ErrorCount, PhaseSamples, RateSpread, SparseHistogram, SteadyEnding, WorkerSamples, merge,
    spread,
};
use workload::control::{LatencyTarget, SteadyEnd};
use workload::spec::OnError;

use super::distribution::{Depths, Latencies};
use super::latency::Latency;
use super::number::{epoch_ms, moment, per_second};
use super::objects::directed;
use crate::doubts::{Told, told};
use crate::fio::model::{Job, Model, Unified};

/// Classes of operations in the order of fio's directions.
pub(super) const CLASSES: [&str; 3] = ["read", "write", "discard"];
/// fio's names of them.
pub(super) const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// Place of all directions as one behind them, and fio's name of it.
pub(super) const MIXED: usize = 3;
pub(super) const WAYS: [&str; 4] = ["read", "write", "trim", "mixed"];
/// Error numbers of Linux for what has none of its own.
const EINTR: i32 = 4;
const EIO: i32 = 5;
const EILSEQ: i32 = 84;
const ECANCELED: i32 = 125;

/// One direction of a job.
#[derive(Default)]
pub(super) struct Way {
    pub(super) operations: u64,
    pub(super) bytes: u64,
    /// Time in which the job had such operations.
    pub(super) elapsed_ns: u64,
    pub(super) submission: Latency,
    pub(super) completion: Latency,
    pub(super) total: Latency,
    /// None where nothing was done.
    pub(super) spread: Option<RateSpread>,
    /// Zones that were reset, of writes that keep to zones.
    pub(super) zone_resets: Option<u64>,
}

impl Way {
    pub(super) fn bytes_per_second(&self) -> u64 {
        per_second(self.bytes, self.elapsed_ns) as u64
    }

    pub(super) fn operations_per_second(&self) -> f64 {
        per_second(self.operations, self.elapsed_ns)
    }
}

/// Failures of a job.
#[derive(Default)]
pub(super) struct Failures {
    /// The first one's error number; 0 where there was none.
    pub(super) errno: i32,
    /// Cause of the first one.
    pub(super) cause: String,
    /// Operations that failed.
    pub(super) count: u64,
    /// Whether the job was to go on after one.
    pub(super) goes_on: bool,
}

/// Processor time and the like of a job.
#[derive(Default)]
pub(super) struct Usage {
    /// Time of all its threads together.
    pub(super) run_ns: u64,
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) context_switches: u64,
    pub(super) major_faults: u64,
    pub(super) minor_faults: u64,
}

impl Usage {
    /// User and system time in percent of the time of all threads.
    pub(super) fn percent(&self) -> (f64, f64) {
        let share = |ns: u64| if self.run_ns == 0 { 0.0 } else { 100.0 * ns as f64 / self.run_ns as f64 };
        (share(self.user_ns), share(self.system_ns))
    }
}

/// All that is shown of a job or a group.
pub(super) struct Entry<'a> {
    /// The job, or the first of the group.
    pub(super) job: &'a Job,
    pub(super) clones: u32,
    pub(super) process_id: u32,
    pub(super) ways: [Way; 3],
    /// All of them as one, where `unified_rw_reporting` asks for it.
    pub(super) mixed: Option<Way>,
    pub(super) sync: Latency,
    pub(super) latencies: Latencies,
    pub(super) depths: Depths,
    pub(super) usage: Usage,
    pub(super) failures: Failures,
    /// When its first phase began, and its last one ended, since the epoch.
    pub(super) started_at: Duration,
    pub(super) ended_at: Duration,
    pub(super) doubts: Vec<Told<'a>>,
    /// Outcome of waiting for a steady state.
    pub(super) steady: Option<&'a SteadyEnding>,
    /// Condition that was waited for.
    pub(super) steady_plan: Option<&'a SteadyEnd>,
    /// The search of a depth, and the depth found.
    pub(super) search: Option<(LatencyTarget, Option<u32>)>,
}

/// Every job and group of the record, in order; none where nothing ran at all.
pub(super) fn entries<'a>(model: &'a Model, record: &'a Record) -> Vec<Entry<'a>> {
    if record.phases.is_empty() {
        return Vec::new();
    }
    entries_of(&model.jobs, model.process_id, record)
}

/// Those of some jobs, which a process ran.
pub(super) fn entries_of<'a>(jobs: &'a [Job], process_id: u32, record: &'a Record) -> Vec<Entry<'a>> {
    let shown = |jobs: &&[Job]| jobs.iter().any(|job| job.is_shown);
    let units = units(jobs).into_iter().filter(shown);
    units.map(|jobs| Entry::new(jobs, process_id, record)).collect()
}

/// Groups of jobs that are reported together: neighbours of one group that asks for it.
fn units(jobs: &[Job]) -> Vec<&[Job]> {
    jobs.chunk_by(|a, b| a.group_reporting && b.group_reporting && a.group == b.group).collect()
}

/// Phases that ran at the same time, as one.
pub(super) struct Run<'a> {
    pub(super) samples: Cow<'a, PhaseSamples>,
    phases: Vec<&'a PhaseRecord>,
}

impl Run<'_> {
    /// When it began, since 1970.
    pub(super) fn began_at(&self) -> Duration {
        self.phases.first().map_or(Duration::ZERO, |phase| moment(&phase.started_at, 0))
    }
}

/// The runs of these jobs in the order of time: a read-back comes after what it reads.
pub(super) fn runs<'a>(jobs: &[Job], record: &'a Record) -> Vec<Run<'a>> {
    let mut stages: BTreeMap<_, Vec<&PhaseRecord>> = BTreeMap::new();
    let is_own =
        |phase: &&PhaseRecord| !phase.plan.is_fill() && jobs.iter().any(|job| job.request == phase.request);
    for phase in record.phases.iter().filter(is_own) {
        stages.entry((phase.stage, phase.is_read_back)).or_default().push(phase);
    }
    let run = |phases: Vec<&'a PhaseRecord>| {
        let mut parts: Vec<_> = phases.iter().map(|phase| directed(phase)).collect();
        let samples = match parts.as_slice() {
            [_] => parts.pop()?,
            several => Cow::Owned(merge(&several.iter().map(AsRef::as_ref).collect::<Vec<_>>())?),
        };
        Some(Run { samples, phases })
    };
    stages.into_values().filter_map(run).collect()
}

impl<'a> Entry<'a> {
    /// Jobs as one.
    pub(super) fn new(jobs: &'a [Job], process_id: u32, record: &'a Record) -> Self {
        let job = &jobs[0];
        let runs = runs(jobs, record);
        let mut ways = CLASSES.map(|class| way(job, &runs, &[class]));
        ways[1].zone_resets = zone_resets(&runs);
        let mixed = (job.unified != Unified::None).then(|| way(job, &runs, &CLASSES));
        let phases = || runs.iter().flat_map(|run| &run.phases).copied();
        let first = phases().next().map_or(record.started_at.as_str(), |phase| &phase.started_at);
        let ends = phases().map(|phase| moment(&phase.started_at, phase.samples.elapsed_ns));
        let started_at = moment(first, 0);
        Self {
            job,
            process_id,
            clones: jobs.iter().map(|job| job.clones).sum(),
            sync: sync(job, &runs),
            latencies: Latencies::of(ways.each_ref().map(|way| &way.completion.histogram)),
            depths: depths(&runs),
            usage: usage(&runs),
            failures: failures(&runs, record),
            steady: phases().find_map(|phase| phase.steady_ending.as_ref()),
            steady_plan: phases().find_map(|phase| phase.plan.load().control.steady.as_ref()),
            search: search(&runs),
            ended_at: ends.max().unwrap_or(started_at),
            started_at,
            doubts: told("fio", phases()),
            ways,
            mixed,
        }
    }

    /// Operations of the three directions.
    pub(super) fn operations(&self) -> u64 {
        self.ways.iter().map(|way| way.operations).sum()
    }

    /// The directions that are shown, with their places in [`WAYS`].
    pub(super) fn shown(&self) -> Vec<(usize, &Way)> {
        let apart = self.ways.iter().enumerate().filter(|_| self.job.unified != Unified::Mixed);
        apart.chain(self.mixed.iter().map(|way| (MIXED, way))).collect()
    }

    /// When it began, milliseconds since the epoch.
    pub(super) fn started_ms(&self) -> u64 {
        epoch_ms(self.started_at)
    }
}

/// Some classes of operations together.
fn way(job: &Job, runs: &[Run<'_>], classes: &[&str]) -> Way {
    let mut way = Way::default();
    for run in runs {
        let totals = || totals_of_all(run, classes);
        let operations: u64 = totals().map(|totals| totals.operations).sum();
        way.operations += operations;
        way.bytes += totals().map(|totals| totals.bytes).sum::<u64>();
        way.elapsed_ns += if operations > 0 { run.samples.elapsed_ns } else { 0 };
    }
    if way.operations == 0 {
        return way;
    }
    let asked = |shown: bool| if shown { job.percentiles.as_slice() } else { &[] };
    if job.shows_submission {
        let percentiles = asked(job.shows_submission_percentiles);
        way.submission = gather(runs, classes, percentiles, |totals| totals.submission.as_ref());
    }
    if job.shows_completion {
        let percentiles = asked(job.shows_completion_percentiles);
        way.completion = gather(runs, classes, percentiles, |totals| {
            let apart = totals.completion.as_ref().filter(|part| !part.is_empty());
            Some(apart.unwrap_or(&totals.latency))
        });
    }
    if job.shows_latency {
        let percentiles = asked(job.shows_total_percentiles);
        way.total = gather(runs, classes, percentiles, |totals| Some(&totals.latency));
    }
    way.spread = spread_of(job, runs, classes);
    way
}

/// Zones that were reset in phases that keep to zones; none where no phase does.
fn zone_resets(runs: &[Run<'_>]) -> Option<u64> {
    let mut phases = runs.iter().flat_map(|run| &run.phases);
    let is_zoned = phases.any(|phase| phase.plan.value("/zoned").is_some_and(|zones| !zones.is_null()));
    let resets =
        || runs.iter().flat_map(|run| totals_of_all(run, &["reset"]).map(|totals| totals.operations));
    is_zoned.then(|| resets().sum())
}

/// Calls that made data durable.
fn sync(job: &Job, runs: &[Run<'_>]) -> Latency {
    let is_shown = job.shows_completion_percentiles || job.shows_total_percentiles;
    let percentiles = if is_shown { job.percentiles.as_slice() } else { &[] };
    gather(runs, &["sync", "fsync"], percentiles, |totals| Some(&totals.latency))
}

fn spread_of(job: &Job, runs: &[Run<'_>], classes: &[&str]) -> Option<RateSpread> {
    let used = runs.iter().filter(|run| totals_of_all(run, classes).any(|totals| totals.operations > 0));
    let parts: Vec<_> = used
        .map(|run| {
            let names = run.samples.classes.iter().enumerate();
            let is_of_it = |name: &String| classes.contains(&name.as_str());
            let places: Vec<_> = names.filter(|(_, name)| is_of_it(name)).map(|(place, _)| place).collect();
            (&run.samples.series, places)
        })
        .filter(|(_, places)| !places.is_empty())
        .collect();
    let parts: Vec<_> = parts.iter().map(|(series, places)| (*series, places.as_slice())).collect();
    spread(&parts, job.bandwidth_average_ms.saturating_mul(1_000_000))
}

pub(super) fn totals_of<'a>(run: &'a Run<'_>, class: &'a str) -> impl Iterator<Item = &'a ClassTotals> {
    // What moves nothing fio counts as reads.
    let is_of_it =
        move |totals: &&ClassTotals| totals.class == class || (class == "read" && totals.class == "nop");
    run.samples.workers.iter().flat_map(|worker| &worker.classes).filter(is_of_it)
}

fn totals_of_all<'a>(run: &'a Run<'_>, classes: &'a [&'a str]) -> impl Iterator<Item = &'a ClassTotals> {
    classes.iter().flat_map(|class| totals_of(run, class))
}

/// One of the latencies of some classes together over all runs.
fn gather<'r>(
    runs: &'r [Run<'_>],
    classes: &'r [&'r str],
    percentiles: &[f64],
    choose: impl Fn(&'r ClassTotals) -> Option<&'r SparseHistogram>,
) -> Latency {
    let parts = runs.iter().flat_map(|run| totals_of_all(run, classes)).filter_map(choose);
    Latency::of(parts, percentiles)
}

/// The search of the first worker, and what it found.
fn search(runs: &[Run<'_>]) -> Option<(LatencyTarget, Option<u32>)> {
    let run = runs.first()?;
    let target = run.phases.first()?.plan.load().control.latency_target?;
    Some((target, run.samples.workers.first().and_then(|worker| worker.depth_found)))
}

fn depths(runs: &[Run<'_>]) -> Depths {
    let mut depths = Depths::default();
    for run in runs {
        let is_single = run.phases.iter().all(|phase| phase.plan.load().depth == 1);
        for worker in &run.samples.workers {
            match &worker.depths {
                Some(counts) => depths.add(counts),
                // One at a time needs no counting.
                None if is_single => depths.add_single(worker.operations()),
                None => {}
            }
        }
    }
    depths
}

/// Usage of runs. Events around phases that ran at the same time are seen by each of them, so the largest counts once.
fn usage(runs: &[Run<'_>]) -> Usage {
    let mut usage = Usage::default();
    for run in runs {
        let samples = &run.samples;
        usage.run_ns += samples.elapsed_ns.saturating_mul(samples.workers.len() as u64);
        usage.user_ns += samples.process_cpu_user_ns;
        usage.system_ns += samples.process_cpu_system_ns;
        let seen = || run.phases.iter().map(|phase| &phase.observations);
        usage.context_switches += seen().map(|seen| seen.context_switches).max().unwrap_or(0);
        usage.major_faults += seen().map(|seen| seen.major_faults).max().unwrap_or(0);
        usage.minor_faults += seen().map(|seen| seen.minor_faults).max().unwrap_or(0);
    }
    usage
}

/// The first failure and how many there were. A job that the run never came to is an error too.
fn failures(runs: &[Run<'_>], record: &Record) -> Failures {
    let errors = || {
        let workers =
            runs.iter().flat_map(|run: &Run<'_>| run.samples.workers.iter().map(move |worker| (run, worker)));
        workers.flat_map(|(run, worker): (_, &WorkerSamples)| {
            let at = move |error: &ErrorCount| run.samples.started_ns.saturating_add(error.first_at_ns);
            let counted = worker.errors.iter().filter(|error| !error.is_ignored);
            counted.map(move |error| (at(error), error))
        })
    };
    let phases = || runs.iter().flat_map(|run| &run.phases);
    let first = errors().min_by_key(|(at_ns, _)| *at_ns).map(|(_, error)| error);
    let failed = || {
        // While the run is under way, what has not begun may still.
        let is_left = runs.is_empty() && record.status != Status::Running;
        let never = || is_left.then(|| (ECANCELED, record.failure.as_deref().unwrap_or("not run")));
        let failure = phases().find_map(|phase| {
            let failure = phase.failure.as_deref()?;
            let errno = match phase.samples.interrupted {
                Some(_) => EINTR,
                None if failure.starts_with("stopped: ") => ECANCELED,
                None => EIO,
            };
            Some((errno, failure))
        });
        failure.or_else(never)
    };
    let (errno, cause) = match first {
        Some(error) => (number_of(error), error.cause.as_str()),
        None => failed().unwrap_or((0, "")),
    };
    Failures {
        errno,
        cause: cause.to_owned(),
        count: errors().map(|(_, error)| error.count).sum(),
        goes_on: phases().any(|phase| phase.plan.load().on_error == OnError::Continue),
    }
}

/// fio fails a job that read wrong data with EILSEQ.
fn number_of(error: &ErrorCount) -> i32 {
    // What has no number is a short transfer, one of many kinds, or a block that is not what was written.
    let is_other = error.cause.starts_with("short: ") || error.cause == "other";
    error.errno.unwrap_or(if is_other { EIO } else { EILSEQ })
}
