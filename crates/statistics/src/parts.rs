//! Figures by part of the target and by who drove: endpoints, masters, and the matrix of both.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, SparseHistogram};
use crate::sample::{CauseCount, PartTotals, PhaseSamples, TallySample, WorkerSamples};
use crate::summary::LatencySummary;

/// Figures of some of what was done in a phase, over the whole phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareSummary {
    /// Operations completed.
    pub operations: u64,
    /// Payload bytes of these operations.
    pub bytes: u64,
    /// Operations that failed; not among `operations`.
    pub errors: u64,
    /// Failures by cause, the most frequent first.
    pub causes: Vec<CauseCount>,
    /// Operations per second.
    pub operations_per_second: f64,
    /// Payload bytes per second.
    pub bytes_per_second: f64,
    /// Latency figures; none when nothing completed.
    pub latency: Option<LatencySummary>,
    /// The latencies behind them: other percentiles are [`SparseHistogram::percentile`].
    pub histogram: SparseHistogram,
}

/// Figures of one part of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartSummary {
    /// Number of the part: its place in the plan's list.
    pub part: usize,
    /// Its figures; rates over the length of the phase.
    pub figures: ShareSummary,
}

/// Figures of one of those who drove.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OriginSummary {
    /// Label of the master; none for this process.
    pub origin: Option<String>,
    /// From its first submission to when its last worker was done, nanoseconds.
    pub elapsed_ns: u64,
    /// All that it did; rates over `elapsed_ns`.
    pub figures: ShareSummary,
    /// Figures by part, in the order of parts; rates over the length of the phase. Empty where parts were not told apart.
    pub parts: Vec<PartSummary>,
}

/// Adds shares up.
#[derive(Default)]
struct Sum {
    operations: u64,
    bytes: u64,
    errors: u64,
    causes: Vec<CauseCount>,
    latency: Histogram,
    unfinished: Histogram,
}

impl Sum {
    fn add_causes<'a>(&mut self, causes: impl IntoIterator<Item = (&'a str, u64)>) {
        for (cause, count) in causes {
            match self.causes.iter_mut().find(|known| known.cause == cause) {
                Some(known) => known.count += count,
                None => self.causes.push(CauseCount { cause: cause.to_owned(), count }),
            }
        }
    }

    fn add_part(&mut self, part: &PartTotals) {
        self.operations += part.operations;
        self.bytes += part.bytes;
        self.errors += part.errors;
        self.add_causes(part.causes.iter().map(|cause| (cause.cause.as_str(), cause.count)));
        self.latency.merge_sparse(&part.latency);
    }

    fn add_worker(&mut self, worker: &WorkerSamples) {
        for class in &worker.classes {
            self.operations += class.operations;
            self.bytes += class.bytes;
            self.errors += class.errors;
            self.latency.merge_sparse(&class.latency);
            self.unfinished.merge_sparse(&class.unfinished);
        }
        self.add_causes(worker.errors.iter().map(|error| (error.cause.as_str(), error.count)));
    }

    /// The figures, with which it begins anew.
    fn finish(&mut self, elapsed_ns: u64) -> ShareSummary {
        let seconds = elapsed_ns.max(1) as f64 / 1e9;
        let mut causes = std::mem::take(&mut self.causes);
        causes.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.cause.cmp(&other.cause)));
        let summary = ShareSummary {
            operations_per_second: self.operations as f64 / seconds,
            bytes_per_second: self.bytes as f64 / seconds,
            latency: LatencySummary::censored(&self.latency, &self.unfinished),
            histogram: SparseHistogram::from(&self.latency),
            operations: std::mem::take(&mut self.operations),
            bytes: std::mem::take(&mut self.bytes),
            errors: std::mem::take(&mut self.errors),
            causes,
        };
        self.latency.clear();
        self.unfinished.clear();
        summary
    }
}

/// Figures of each part over these workers, in the order of parts.
fn parts_of<'a>(
    workers: impl Iterator<Item = &'a WorkerSamples>,
    elapsed_ns: u64,
    sum: &mut Sum,
) -> Vec<PartSummary> {
    let mut by_part: BTreeMap<usize, Vec<&PartTotals>> = BTreeMap::new();
    for part in workers.flat_map(|worker| &worker.parts) {
        by_part.entry(part.part).or_default().push(part);
    }
    let summary = |(part, totals): (usize, Vec<&PartTotals>)| {
        totals.into_iter().for_each(|totals| sum.add_part(totals));
        PartSummary { part, figures: sum.finish(elapsed_ns) }
    };
    by_part.into_iter().map(summary).collect()
}

/// Figures of each part of the target over all workers, in the order of parts; only those that somebody turned to.
#[must_use]
pub fn by_part(samples: &PhaseSamples) -> Vec<PartSummary> {
    parts_of(samples.workers.iter(), samples.elapsed_ns, &mut Sum::default())
}

/// Figures of each of those who drove, in the order in which they first appear, with what they did by part: the rows of a matrix.
#[must_use]
pub fn by_origin(samples: &PhaseSamples) -> Vec<OriginSummary> {
    let mut places: HashMap<Option<&str>, usize> = HashMap::new();
    let mut origins: Vec<(&Option<String>, Vec<&WorkerSamples>)> = Vec::new();
    for worker in &samples.workers {
        let place = *places.entry(worker.origin.as_deref()).or_insert(origins.len());
        match origins.get_mut(place) {
            Some((_, workers)) => workers.push(worker),
            None => origins.push((&worker.origin, vec![worker])),
        }
    }
    let mut sum = Sum::default();
    let summary = |(origin, workers): (&Option<String>, Vec<&WorkerSamples>)| {
        let begun_ns = workers.iter().map(|worker| worker.started_ns).min().unwrap_or(0);
        let done_ns = workers.iter().map(|worker| worker.finished_ns).max().unwrap_or(0);
        let elapsed_ns = done_ns.saturating_sub(begun_ns);
        workers.iter().for_each(|worker| sum.add_worker(worker));
        OriginSummary {
            origin: origin.clone(),
            elapsed_ns,
            figures: sum.finish(elapsed_ns),
            parts: parts_of(workers.into_iter(), samples.elapsed_ns, &mut sum),
        }
    };
    origins.into_iter().map(summary).collect()
}

/// Values that drivers counted under `name`, of one part or of all: sum, and mean. None where no driver counted any.
#[must_use]
pub fn tally(samples: &PhaseSamples, name: &str, part: Option<usize>) -> Option<(f64, f64)> {
    let is_meant = |tally: &&TallySample| tally.name == name && part.is_none_or(|part| tally.part == part);
    let tallies = samples.workers.iter().flat_map(|worker| &worker.tallies).filter(is_meant);
    let (sum, count) = tallies.fold((0.0, 0_u64), |(sum, count), tally| (sum + tally.value, count + 1));
    (count > 0).then(|| (sum, sum / count as f64))
}

#[cfg(test)]
mod tests;
