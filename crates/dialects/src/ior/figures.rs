//! The figures of a phase as IOR's columns have them, from the samples of the record.

use report::record::PhaseRecord;
use statistics::{ClassTotals, Histogram, WorkerSamples};

/// One row of the results.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) bytes: u64,
    pub(crate) transfers: u64,
    /// Calls that failed, and transfers whose data were wrong.
    pub(crate) errors: u64,
    /// Mean of a transfer of any task, in seconds.
    pub(crate) latency_s: f64,
    /// The longest of any task, in seconds.
    pub(crate) open_s: f64,
    pub(crate) move_s: f64,
    pub(crate) close_s: f64,
    /// From the first open to the last close, in seconds.
    pub(crate) total_s: f64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn class<'a>(worker: &'a WorkerSamples, names: &'a [&str]) -> impl Iterator<Item = &'a ClassTotals> {
    worker.classes.iter().filter(move |class| names.contains(&class.class.as_str()))
}

/// Time that a worker was in calls of these classes, in seconds.
fn in_calls(worker: &WorkerSamples, names: &[&str]) -> f64 {
    class(worker, names).map(|class| class.latency.sum_ns() as f64 / 1e9).sum()
}

const OPENS: &[&str] = &["open", "create"];
const CLOSES: &[&str] = &["close"];
const MOVES: &[&str] = &["read", "write"];

/// From the first call of a task to its last, and of that the time between opening and closing, in seconds.
pub(crate) fn task_times(worker: &WorkerSamples) -> (f64, f64) {
    let whole = seconds(worker.finished_ns.saturating_sub(worker.started_ns));
    (whole, (whole - in_calls(worker, OPENS) - in_calls(worker, CLOSES)).max(0.0))
}

/// From the first call of any task to the last of any, in seconds.
pub(crate) fn span_s(phase: &PhaseRecord) -> f64 {
    let workers = phase.samples.workers.iter().filter(|worker| worker.operations() > 0);
    let begun = workers.clone().map(|worker| worker.started_ns).min().unwrap_or(0);
    let ended = workers.map(|worker| worker.finished_ns).max().unwrap_or(0);
    seconds(ended.saturating_sub(begun))
}

impl Row {
    /// Of a phase.
    pub(crate) fn of(phase: &PhaseRecord) -> Self {
        let workers = &phase.samples.workers;
        let mut row = Self { total_s: span_s(phase), ..Self::default() };
        let mut latency = Histogram::new();
        for worker in workers {
            for class in class(worker, MOVES) {
                row.bytes += class.bytes;
                row.transfers += class.operations;
                latency.merge_sparse(&class.latency);
            }
            row.errors += worker.errors.iter().map(|error| error.count).sum::<u64>();
            row.open_s = row.open_s.max(in_calls(worker, OPENS));
            row.close_s = row.close_s.max(in_calls(worker, CLOSES));
            row.move_s = row.move_s.max(task_times(worker).1);
        }
        row.latency_s = latency.mean_ns().unwrap_or(0.0) / 1e9;
        row
    }

    /// Bytes a second over the whole time.
    pub(crate) fn bandwidth(&self) -> f64 {
        per_second(self.bytes as f64, self.total_s)
    }

    /// Transfers a second between opening and closing, as the rows have it.
    pub(crate) fn iops(&self) -> f64 {
        per_second(self.transfers as f64, self.move_s)
    }

    /// Transfers a second over the whole time, as the summary has it.
    pub(crate) fn operations(&self) -> f64 {
        per_second(self.transfers as f64, self.total_s)
    }
}

fn per_second(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// Progress when the stonewall stood: its time in seconds, and the transfers of all tasks.
pub(crate) fn at_stonewall(phase: &PhaseRecord) -> Option<(f64, u64)> {
    let wall = phase.observations.files.as_ref()?.stonewall.as_ref()?;
    Some((seconds(wall.after_ns), wall.items))
}

/// Transfers that each task did of a write with wear-out: as many as the fastest had when the stonewall stood, or all.
pub(crate) fn transfers_of_a_task(phase: &PhaseRecord) -> u64 {
    let done = |worker: &WorkerSamples| class(worker, MOVES).map(|class| class.operations).sum();
    phase.samples.workers.iter().map(done).max().unwrap_or(0)
}
