//! Loads for tests.

use workload::plan::{ArrivalPlan, LimitPlan, LoadPlan};
use workload::spec::{CoresPolicy, OnError, Spacing, Warmup};

/// A closed loop without any limit: series of 100 ms, nothing warmed up, the first failure ends it.
#[must_use]
pub fn closed_load(threads: u32, depth: u32) -> LoadPlan {
    LoadPlan {
        schedule: None,
        threads,
        place: None,
        depth,
        batch: depth,
        batch_min: 1,
        batch_max: depth,
        limit: LimitPlan::default(),
        warmup: Warmup::None,
        arrivals: None,
        interval_ns: 100_000_000,
        on_error: OnError::Stop,
        think: None,
        start_delay_ns: 0,
        end_others: false,
        split_latency: false,
        profile: false,
        cores: Vec::new(),
        cores_policy: CoresPolicy::Split,
        numa: Vec::new(),
        control: workload::control::Control::default(),
        seed: 1,
    }
}

/// An open loop of one worker, else as [`closed_load`].
#[must_use]
pub fn open_load(rate_per_second: f64, kind: Spacing, depth: u32) -> LoadPlan {
    LoadPlan { arrivals: Some(ArrivalPlan { rate_per_second, kind }), ..closed_load(1, depth) }
}
