//! Every number that strata computes from what it measured: latency histograms, interval series, confidence
//! intervals, steady state, the knee of a load ladder, and the summary of a phase.
//!
//! Pure: no clocks, no printing, no files. Times are nanoseconds from the start of a phase unless said otherwise;
//! rates are per second.

mod backlog;
mod censoring;
mod compare;
mod confidence;
mod distribution;
mod hanging;
mod histogram;
mod hosts;
mod knee;
mod latency_parts;
mod matrix;
mod merge;
#[cfg(test)]
mod noise;
mod packed;
mod parts;
mod plateau;
mod prediction;
mod rounds;
mod sample;
mod series;
mod snapshot;
mod spread;
mod steady;
mod summary;

pub use backlog::{Backlog, BacklogPoint, find_backlog};
pub use compare::{
    Difference, Direction, Figure, LEVEL, Verdict, adjust_for_many, decide, latency_resolution, mean_latency,
    percentile_latency, rate_over, window_points,
};
pub use confidence::{RateEstimate, estimate_mean, estimate_rate, median_of};
pub use distribution::{mean_half_width, student_t_quantile};
pub use hanging::{Hanging, find_hanging};
pub use histogram::{Bucket, Histogram, InvalidHistogram, PartHistograms, SparseHistogram};
pub use hosts::{HostRole, HostSnapshot, LAG_MAX, Laggard, MasterReport, join_hosts, laggard};
pub use knee::{Knee, KneeOptions, LadderPoint, LadderShape, LittleCheck, find_knee, refine_knee};
pub use latency_parts::LatencyPartSummary;
pub use matrix::{MatrixFinding, MatrixPart, Slow, find_slow};
pub use merge::{Merger, merge};
pub use packed::{InvalidPacked, Pack};
pub use parts::{OriginSummary, PartSummary, ShareSummary, by_origin, by_part, tally};
pub use plateau::{OperationSample, Plateau, SteadyEnding};
pub use prediction::{CommonSpread, PREDICTION_LEVEL, PassSpread, RUNS_FURTHER, prediction_half_width};
pub use rounds::{ROUNDS_OF_WINDOW, RepeatsEstimate, RoundsWindow};
pub use sample::{
    CauseCount, ClassTotals, DepthCounts, ErrorCount, LatencyPart, PartTotals, PhaseSamples, TallySample,
    WorkerSamples,
};
pub use series::{ClassPoint, IntervalPoint, Series};
pub use snapshot::{Event, Snapshot, Waiting, WorkerSnapshot};
pub use spread::{RateSpread, Spread, spread};
pub use steady::{LevelChange, RateDrop, Steady, SteadyReason, find_steady};
pub use summary::{
    BEYOND_PERCENTILE_MIN, ClassSummary, Finish, LatencySummary, Summary, WarmUp, has_percentile, summarise,
};
