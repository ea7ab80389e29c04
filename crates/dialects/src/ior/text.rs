//! Parts of IOR's text: options, figures, warnings.

use std::fmt::Write as _;

use report::record::PhaseRecord;
use serde_json::Value;
use statistics::Spread;

use super::figures::task_times;
use super::render::{Done, api};
use super::settings::{Settings, Test};
use super::specs::Kind;
use crate::tasks::Failures;

/// The options of a test, as its block in text and JSON has them.
pub(super) fn options_of(test: &Test, settings: &Settings) -> Vec<(&'static str, Value)> {
    let bytes = |bytes: u64| Value::from(human(u128::from(bytes)));
    let all = u128::from(test.block_bytes) * u128::from(test.segments) * u128::from(test.tasks);
    let mut options: Vec<(&'static str, Value)> = vec![
        ("api", api(test).into()),
        ("apiVersion", "".into()),
        ("test filename", test.path.as_str().into()),
        ("access", if test.file_per_task { "file-per-process" } else { "single-shared-file" }.into()),
        ("type", "independent".into()),
        ("segments", test.segments.into()),
        ("ordering in a file", if test.random > 0 { "random" } else { "sequential" }.into()),
    ];
    match (test.reorder, test.reorder_random) {
        (true, _) => options.extend([
            ("ordering inter file", "constant task offset".into()),
            ("task offset", test.offset_tasks.into()),
        ]),
        (false, 0) => options.push(("ordering inter file", "no tasks offsets".into())),
        (false, _) => options.extend([
            ("ordering inter file", "random task offset".into()),
            ("task offset", test.offset_tasks.into()),
            ("reorder random seed", test.reorder_seed.into()),
        ]),
    }
    options.extend([
        ("nodes", 1.into()),
        ("tasks", test.tasks.into()),
        ("clients per node", test.tasks.into()),
        ("memoryBuffer", if test.gpu.is_used() { "GPU-device" } else { "CPU" }.into()),
        ("dataAccess", if test.gpu.is_used() { "GPU" } else { "CPU" }.into()),
        ("GPUDirect", if test.gpu.is_direct { "1" } else { "0" }.into()),
        ("repetitions", test.repetitions.into()),
        ("xfersize", bytes(test.transfer_bytes)),
        ("blocksize", bytes(test.block_bytes)),
        ("aggregate filesize", human(all).into()),
    ]);
    let show = &settings.show;
    options.extend(show.dry_run.then(|| ("dryRun", 1.into())));
    options.extend((show.verbose > 0).then(|| ("verbose", show.verbose.into())));
    if test.stonewall_s > 0 {
        options.extend([
            ("stonewallingTime", test.stonewall_s.into()),
            ("stoneWallingWearOut", u8::from(test.wear_out).into()),
        ]);
    }
    options
}

/// A size as IOR writes it: `262144 bytes`, `4 MiB`, `1.50 GiB`.
pub(super) fn human(bytes: u128) -> String {
    for (unit, name) in [(1u128 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
        if bytes >= unit {
            return format!("{:.2} {name}", bytes as f64 / unit as f64);
        }
    }
    format!("{bytes} bytes")
}

/// A figure in ten columns, as IOR writes it.
pub(super) fn figure(number: f64) -> String {
    if number < 1.0 {
        format!("{number:<10.6}")
    } else if number < 3600.0 {
        format!("{number:<10.2}")
    } else {
        format!("{number:<10.0}")
    }
}

/// Failures: IOR's own line for data that are wrong, and causes.
pub(super) fn errors(kind: Kind, phase: &PhaseRecord) -> String {
    let access = if kind == Kind::Write { "write" } else { "read" };
    let failures = Failures::of(phase);
    let mut text = String::new();
    if failures.wrong > 0 {
        let _ = writeln!(text, "WARNING: Incorrect data on {access} ({} errors found).", failures.wrong);
    }
    if failures.failed > 0 {
        let _ = writeln!(text, "WARNING: {} calls failed on {access}.", failures.failed);
    }
    for line in failures.lines() {
        let _ = writeln!(text, "WARNING: {line}");
    }
    text
}

/// Tasks that took longer or shorter than the mean by more than the threshold.
pub(super) fn outliers(test: &Test, phase: &PhaseRecord) -> String {
    let times: Vec<f64> = phase.samples.workers.iter().map(|worker| task_times(worker).0).collect();
    let Some(spread) = Spread::of(&times) else { return String::new() };
    let is_out = |time: &f64| (time - spread.mean).abs() > test.outlier_s as f64;
    let lines = times.iter().enumerate().filter(|(_, time)| is_out(time)).map(|(rank, time)| {
        format!(
            "WARNING: for task {rank}, elapsed time is {time:.6} s, with mean {:.6} and stddev {:.6}\n",
            spread.mean, spread.stddev
        )
    });
    lines.collect()
}

/// Rows of the tasks of a phase.
pub(super) fn rank_rows((step, phase): Done<'_>) -> String {
    let access = match step.kind {
        Kind::Write => "write",
        Kind::Read => "read",
        Kind::Check => return String::new(),
    };
    let row = |(rank, worker): (usize, &statistics::WorkerSamples)| {
        let (whole, between) = task_times(worker);
        let rate = |seconds: f64| if seconds > 0.0 { worker.bytes() as f64 / seconds } else { 0.0 };
        format!("{access},{rank},{whole:.10e},{between:.10e},{:.10e},{:.10e}\n", rate(whole), rate(between))
    };
    phase.samples.workers.iter().enumerate().map(row).collect()
}
