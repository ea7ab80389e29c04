//! The record of a phase from what was planned and measured.

use std::time::{Duration, SystemTime};

use report::record::{Observations, PhaseRecord};
use runner::Outcome;
use statistics::{SteadyReason, WarmUp, summarise};
use workload::spec::Warmup;

use crate::open_loop;
use crate::planning::Planned;

/// The record of a phase that ran.
pub(crate) fn phase_record(
    planned: &Planned,
    stage: usize,
    begun: SystemTime,
    outcome: Outcome,
    observations: Observations,
) -> PhaseRecord {
    let load = planned.plan.load();
    let warm_up = if load.warmup == Warmup::Auto { WarmUp::Auto } else { WarmUp::None };
    let mut summary = summarise(&outcome.samples, warm_up);
    let arrivals = open_loop::outcome(&planned.plan, &outcome, &summary);
    if arrivals.is_some_and(|arrivals| arrivals.backlog_grows) {
        summary.steady.deny(SteadyReason::BacklogGrows);
    }
    PhaseRecord {
        plan: planned.plan.clone(),
        stage,
        request: planned.request,
        is_read_back: planned.is_read_back,
        started_at: utc(begun + Duration::from_nanos(load.start_delay_ns)),
        notes: outcome.notes,
        samples: outcome.samples,
        summary,
        arrivals,
        steady_ending: outcome.steady_ending,
        host_starts: Vec::new(),
        observations,
        doubts: Vec::new(),
        failure: outcome.failure,
    }
}

/// RFC 3339, UTC, to the millisecond.
pub(crate) fn utc(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
