//! Cost of strata itself: the `null` driver through the whole loop, in the process that measured.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Clock, Error, ErrorKind, HostClock};
use layer::StageContext;
use report::record::ToolCost;
use statistics::{WarmUp, summarise};
use workload::options;
use workload::spec::Spec;

use crate::{output, planning};

/// Readings of the clock that its cost is averaged over.
const CLOCK_READINGS: u32 = 100_000;

/// Measures the tool for 10 ms, with one worker at depth 1: the dearest case for each operation.
pub(crate) fn measure() -> Result<ToolCost, Error> {
    let mut spec = Spec { targets: vec!["null:".to_owned()], ..Spec::default() };
    for (key, value) in [("op", "randread"), ("time", "10ms"), ("warmup", "none"), ("seed", "1")] {
        options::apply(&mut spec, key, value)
            .map_err(|error| Error::usage("tool cost", error.to_string()))?;
    }
    let (programme, mut layers) = planning::plan(&[spec], 1)?;
    let planned =
        programme.phases.first().ok_or_else(|| Error::usage("tool cost", "null: produced no phase"))?;
    let context = StageContext {
        number: 0,
        interrupt: Arc::new(AtomicBool::new(false)),
        progress: &|_, _| {},
        tell: |line| output::tell(line),
    };
    let run = layers.runs.of(planned.plan.layer())?;
    let jobs = run.part(vec![&planned.phase], &[], &context)?.jobs();
    let outcomes = runner::run_together(jobs, HostClock::get(), &mut |_| {})?;
    let outcome = outcomes
        .first()
        .ok_or_else(|| Error::new(ErrorKind::Run, "tool cost", "null: produced no outcome"))?;
    let summary = summarise(&outcome.samples, WarmUp::None);
    let clock = HostClock::get();
    let begun = clock.now_ns();
    for _ in 0..CLOCK_READINGS {
        std::hint::black_box(clock.now_ns());
    }
    let clock_read_ns = (clock.now_ns() - begun) as f64 / f64::from(CLOCK_READINGS);
    let rate = summary.total.operations_per_second;
    Ok(ToolCost {
        null_ns_per_operation: if rate > 0.0 { 1e9 / rate } else { 0.0 },
        clock_read_ns,
        clock_source: clock.source(),
        clock_drift_ppm: clock.drift_ppm(),
    })
}
