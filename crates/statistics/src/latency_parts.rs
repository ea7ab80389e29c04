//! Parts of the latencies of a class, where its driver tells some apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::sample::PhaseSamples;
use crate::summary::LatencySummary;

/// A part of the latencies of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPartSummary {
    /// Name, such as `connect`; `client` is what is left beside the parts that the driver tells apart.
    pub part: String,
    /// Its time in each operation.
    pub latency: LatencySummary,
}

/// Parts of the latencies of a class, or of all together, in the order in which they come.
pub(crate) fn summaries(samples: &PhaseSamples, class: Option<usize>) -> Vec<LatencyPartSummary> {
    let mut sums: Vec<(&str, Histogram)> = Vec::new();
    for worker in &samples.workers {
        let meant =
            worker.classes.iter().enumerate().filter(|(at, _)| class.is_none_or(|class| class == *at));
        for part in meant.flat_map(|(_, totals)| &totals.latency_parts) {
            let at = sums.iter().position(|(name, _)| *name == part.part).unwrap_or(sums.len());
            if at == sums.len() {
                sums.push((&part.part, Histogram::new()));
            }
            sums[at].1.merge_sparse(&part.latency);
        }
    }
    let summary = |(name, sum): (&str, Histogram)| {
        Some(LatencyPartSummary { part: name.to_owned(), latency: LatencySummary::of(&sum)? })
    };
    sums.into_iter().filter_map(summary).collect()
}
