//! The load of a phase, the same for all layers.

use units::ByteSize;

use super::error::{PlanError, refuse};
use super::{ArrivalPlan, HostPlace, LimitPlan, LoadPlan, ThinkPlan};
use crate::spec::{LadderDimension, OnError, Spacing, Spec, Warmup};

/// Length of a phase without an end of its own where no limit is given, in nanoseconds.
pub const UNLIMITED_TIME_NS: u64 = 5_000_000_000;
/// Memory that buffers may take where it is not known how much there is, in bytes.
const BUFFER_BYTES_MAX: u64 = 64 << 30;

/// The load of a spec on any layer: `depth` operations in flight for each worker, for `time_ns_default` where no limit is given.
///
/// # Errors
/// Options that do not go together.
pub fn load(spec: &Spec, depth: u32, time_ns_default: Option<u64>, seed: u64) -> Result<LoadPlan, PlanError> {
    let unlimited = spec.time.is_none() && spec.count.is_none() && spec.bytes.is_none();
    let time_ns = spec.time.map(|time| time.ns()).or(time_ns_default.filter(|_| unlimited));
    if spec.cores.is_some() && spec.numa.is_some() {
        return refuse("--cores and --numa exclude each other: give one of them".to_owned());
    }
    if spec.arrivals.is_some() && !super::checks::is_open_loop(spec) {
        return refuse("--arrivals requires an open loop: add --rate".to_owned());
    }
    if spec.saturate && (spec.rate.is_some() || spec.ladder.is_some()) {
        return refuse("--saturate sets the load itself: leave out --rate and --ladder".to_owned());
    }
    let batch_min = spec.batch_min.unwrap_or(1);
    if batch_min > depth {
        return refuse(format!("--batch-min {batch_min} is more than the depth: use {depth} or less"));
    }
    if let Some(batch_max) = spec.batch_max.filter(|&batch_max| batch_max < batch_min) {
        return refuse(format!("--batch-max {batch_max} is less than --batch-min: use {batch_min} or more"));
    }
    if let Some(batch) = spec.batch.filter(|&batch| batch > depth) {
        return refuse(format!("--batch {batch} is more than the depth: use {depth} or less"));
    }
    let arrivals = spec.rate.map(|rate| ArrivalPlan {
        rate_per_second: rate.per_second(),
        kind: spec.arrivals.unwrap_or(Spacing::Constant),
    });
    Ok(LoadPlan {
        schedule: None,
        threads: spec.threads.unwrap_or(1),
        place: place(spec),
        depth,
        batch: spec.batch.unwrap_or(depth),
        batch_min,
        batch_max: spec.batch_max.unwrap_or(depth),
        limit: LimitPlan { time_ns, operations: spec.count, bytes: spec.bytes.map(|bytes| bytes.0) },
        warmup: spec.warmup.unwrap_or(Warmup::Auto),
        arrivals,
        interval_ns: spec.interval.map_or_else(|| default_interval_ns(time_ns), |interval| interval.ns()),
        on_error: spec.on_error.unwrap_or(OnError::Stop),
        think: think(spec),
        start_delay_ns: spec.start_delay.map_or(0, |delay| delay.ns()),
        end_others: spec.end_others,
        split_latency: spec.split_latency,
        profile: spec.profile,
        cores: spec.cores.clone().unwrap_or_default(),
        cores_policy: spec.cores_policy.unwrap_or_default(),
        numa: spec.numa.clone().unwrap_or_default(),
        control: spec.control.clone(),
        seed,
    })
}

/// The place of this host, with what the user says of the targets.
fn place(spec: &Spec) -> Option<HostPlace> {
    spec.place.map(|place| HostPlace { targets: spec.host_targets.unwrap_or(place.targets), ..place })
}

fn think(spec: &Spec) -> Option<ThinkPlan> {
    let pause = spec.think_time?;
    // By time alone no number of operations brings a pause.
    let blocks_default = if spec.think_after.is_some() { u64::MAX } else { 1 };
    Some(ThinkPlan {
        pause_ns: pause.ns(),
        blocks: spec.think_blocks.unwrap_or(blocks_default),
        after_ns: spec.think_after.map(|time| time.ns()),
        spin_ns: spec.think_spin.map_or(0, |time| time.ns()),
        moves_arrivals: spec.no_catch_up,
    })
}

/// 20 ms, and less for short phases: confidence needs some dozens of intervals.
fn default_interval_ns(time_ns: Option<u64>) -> u64 {
    time_ns.map_or(20_000_000, |time_ns| (time_ns / 100).clamp(2_000_000, 20_000_000))
}

/// Memory that buffers may take, in bytes: half of the machine's, where it is known.
#[must_use]
pub fn buffer_bytes_max(memory_bytes: Option<u64>) -> u64 {
    memory_bytes.map_or(BUFFER_BYTES_MAX, |bytes| bytes / 2)
}

/// One spec a value of the ladder; the spec itself when it has none.
#[must_use]
pub fn expand_ladder(spec: &Spec) -> Vec<Spec> {
    let Some(ladder) = &spec.ladder else { return vec![spec.clone()] };
    let step = |&value: &u64| {
        let mut step = Spec { ladder: None, ..spec.clone() };
        match ladder.dimension {
            LadderDimension::Depth => step.depth = Some(value as u32),
            LadderDimension::Threads => step.threads = Some(value as u32),
            LadderDimension::BlockSize => (spec.layer.set_size)(&mut step, ByteSize(value).to_string()),
            LadderDimension::Rate => step.rate = units::Rate::new(value as f64).ok(),
        }
        step
    };
    ladder.values.iter().map(step).collect()
}
