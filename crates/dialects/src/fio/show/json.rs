//! `--output-format=json` and `json+`.

use std::time::Duration;

use report::record::Record;
use serde_json::{Map, Value, json};
use statistics::{RateSpread, SteadyEnding};
use workload::control::SteadyEnd;

use super::VERSION;
use super::debug::idle_percent;
use super::disk::{Disk, disks};
use super::distribution::{BATCHES, BOUNDS, LEVELS};
use super::entry::{Entry, MIXED, WAYS, Way};
use super::group::{Group, group_of, groups, share_of_group};
use super::latency::Latency;
use super::number::{ctime, epoch_ms, milliseconds, moment};
use crate::doubts::Told;
use crate::fio::model::Model;

/// The results; with all latency bins for `json+`. Whatever became of the run, it is one object.
pub(super) fn results(model: &Model, entries: &[Entry<'_>], record: &Record, has_bins: bool) -> String {
    let groups = groups(entries);
    let global = (!model.global_options.is_empty()).then(|| options(&model.global_options));
    let elapsed_s = elapsed_s(record);
    let jobs = entries.iter().map(|entry| job(entry, group_of(&groups, entry), elapsed_s, has_bins));
    let disks = disks(record);
    let disks = (!disks.is_empty()).then(|| disks.iter().map(disk_object).collect());
    let ended_at = entries.iter().map(|entry| entry.ended_at).max();
    let ended_at = ended_at.unwrap_or_else(|| moment(&record.started_at, 0));
    whole(model, record, ended_at, Parts { global, jobs: ("jobs", jobs.collect()), disks })
}

/// Parts of the object of a run that differ between this machine and clients.
pub(super) struct Parts {
    pub(super) global: Option<Value>,
    /// The results of jobs, and the name that they stand under.
    pub(super) jobs: (&'static str, Value),
    pub(super) disks: Option<Value>,
}

/// The object of a run.
pub(super) fn whole(model: &Model, record: &Record, ended_at: Duration, parts: Parts) -> String {
    let mut root = Map::new();
    let mut put = |name: &str, value: Value| root.insert(name.to_owned(), value);
    put("fio version", VERSION.into());
    put("timestamp", (epoch_ms(ended_at) / 1000).into());
    put("timestamp_ms", epoch_ms(ended_at).into());
    put("time", ctime(ended_at).into());
    if let Some(global) = parts.global {
        put("global options", global);
    }
    put(parts.jobs.0, parts.jobs.1);
    if let Some(disks) = parts.disks {
        put("disk_util", disks);
    }
    if let Some(percent) = idle_percent(record).filter(|_| model.output.idle) {
        put("cpu_idleness", json!({ "system": percent }));
    }
    if let Some(failure) = &record.failure {
        put("error", crate::in_words_of("fio", failure).into());
    }
    put(
        "strata",
        json!({
            "version": record.strata_version,
            "run_id": record.run_id,
            "seed": record.seed,
            "warnings": model.warnings,
        }),
    );
    let mut text = String::new();
    print(&Value::Object(root), 0, &mut text);
    text + "\n"
}

/// Whole seconds from the beginning of the run to the end of its last phase.
pub(super) fn elapsed_s(record: &Record) -> u64 {
    let ends =
        record.phases.iter().map(|phase| phase.samples.started_ns.saturating_add(phase.samples.elapsed_ns));
    ends.max().unwrap_or(0).div_ceil(1_000_000_000)
}

pub(super) fn options(options: &[(String, String)]) -> Value {
    options.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

pub(super) fn job(entry: &Entry<'_>, group: Option<&Group>, elapsed_s: u64, has_bins: bool) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("jobname", entry.job.name.as_str().into());
    put("groupid", entry.job.group.into());
    put("job_start", entry.started_ms().into());
    put("error", entry.failures.errno.into());
    put("eta", 0.into());
    put("elapsed", elapsed_s.into());
    put("job options", options(&entry.job.options));
    let (mixed, apart): (Vec<_>, Vec<_>) = entry.shown().into_iter().partition(|(at, _)| *at == MIXED);
    // What is of all stands behind sync where each has its own.
    let is_alone = apart.is_empty();
    for (direction, way) in apart.into_iter().chain(mixed.iter().copied().filter(|_| is_alone)) {
        put(WAYS[direction], way_object(way, direction, group, has_bins));
    }
    let sync = latency(&entry.sync, has_bins);
    put("sync", json!({ "total_ios": entry.sync.count, "lat_ns": sync }));
    for (direction, way) in mixed.into_iter().filter(|_| !is_alone) {
        put(WAYS[direction], way_object(way, direction, group, has_bins));
    }
    let (user, system) = entry.usage.percent();
    put("job_runtime", milliseconds(entry.usage.run_ns).into());
    put("usr_cpu", user.into());
    put("sys_cpu", system.into());
    put("ctx", entry.usage.context_switches.into());
    put("majf", entry.usage.major_faults.into());
    put("minf", entry.usage.minor_faults.into());
    let [levels, submitted, completed] = entry.depths.percent();
    put("iodepth_level", labelled(&LEVELS, &levels));
    put("iodepth_submit", labelled(&BATCHES, &submitted));
    put("iodepth_complete", labelled(&BATCHES, &completed));
    put("latency_ns", labelled(&BOUNDS, &entry.latencies.ns));
    put("latency_us", labelled(&BOUNDS, &entry.latencies.us));
    put("latency_ms", labelled(&BOUNDS, &entry.latencies.ms));
    if entry.failures.goes_on || entry.failures.count > 0 {
        put("total_err", entry.failures.count.into());
        put("first_error", entry.failures.errno.into());
    }
    let found = entry.search.and_then(|(_, found)| found);
    let target = entry.search.map(|(target, _)| target);
    put("latency_depth", found.unwrap_or(entry.job.depth).into());
    put("latency_target", target.map_or(0, |target| target.latency_ns).into());
    put("latency_percentile", target.map_or(100.0, |target| target.percent).into());
    put("latency_window", target.map_or(0, |target| target.window_ns / 1000).into());
    if let Some((steady, asked)) = entry.steady.zip(entry.steady_plan) {
        put("steadystate", steady_object(steady, asked));
    }
    if let Some(description) = &entry.job.description {
        put("desc", description.as_str().into());
    }
    put("doubts", entry.doubts.iter().map(doubt).collect());
    Value::Object(object)
}

/// The words of `ss` with six decimals, as fio prints them.
fn steady_words(asked: &SteadyEnd) -> String {
    let figure = asked.figure.name();
    format!("{figure}:{:.6}{}", asked.limit, if asked.is_percent { "%" } else { "" })
}

fn steady_object(steady: &SteadyEnding, asked: &SteadyEnd) -> Value {
    let mean = |values: &[f64]| (values.iter().sum::<f64>() / values.len().max(1) as f64) as u64;
    let whole = |values: &[f64]| values.iter().map(|value| Value::from(*value as u64)).collect::<Vec<_>>();
    let mut data = json!({
        "bw_mean": mean(&steady.bytes_per_second),
        "iops_mean": mean(&steady.operations_per_second),
    });
    if asked.figure.is_latency() {
        data["lat_mean"] = mean(&steady.latency_ns).into();
        data["lat_ns"] = whole(&steady.latency_ns).into();
    }
    data["iops"] = whole(&steady.operations_per_second).into();
    data["bw"] = whole(&steady.bytes_per_second).into();
    json!({
        "ss": steady_words(asked),
        "duration": asked.span_ns / 1_000_000_000,
        "attained": u8::from(steady.attained),
        "criterion": format!("{:.6}{}", steady.criterion, if asked.is_percent { "%" } else { "" }),
        "max_deviation": steady.deviation_max,
        "slope": steady.slope,
        "data": data,
    })
}

fn doubt(doubt: &Told<'_>) -> Value {
    json!({ "kind": doubt.kind, "detail": doubt.detail, "remedy": doubt.remedy })
}

fn labelled(labels: &[&str], shares: &[f64]) -> Value {
    labels.iter().zip(shares).map(|(label, share)| ((*label).to_owned(), Value::from(*share))).collect()
}

fn way_object(way: &Way, direction: usize, group: Option<&Group>, has_bins: bool) -> Value {
    let spread = way.spread.unwrap_or_default();
    let RateSpread { pieces, operations, bytes } = &spread;
    let share = share_of_group(group, direction, bytes.mean);
    json!({
        "io_bytes": way.bytes,
        "io_kbytes": way.bytes >> 10,
        "bw_bytes": way.bytes_per_second(),
        "bw": way.bytes_per_second() >> 10,
        "iops": way.operations_per_second(),
        "runtime": milliseconds(way.elapsed_ns),
        "total_ios": way.operations,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency(&way.submission, has_bins),
        "clat_ns": latency(&way.completion, has_bins),
        "lat_ns": latency(&way.total, has_bins),
        "bw_min": (bytes.min / 1024.0) as u64,
        "bw_max": (bytes.max / 1024.0) as u64,
        "bw_agg": share,
        "bw_mean": bytes.mean / 1024.0,
        "bw_dev": bytes.stddev / 1024.0,
        "bw_samples": pieces,
        "iops_min": operations.min as u64,
        "iops_max": operations.max as u64,
        "iops_mean": operations.mean,
        "iops_stddev": operations.stddev,
        "iops_samples": pieces,
    })
}

fn latency(latency: &Latency, has_bins: bool) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("min", latency.min_ns.into());
    put("max", latency.max_ns.into());
    put("mean", latency.mean_ns.into());
    put("stddev", latency.stddev_ns.into());
    put("N", latency.count.into());
    if latency.percentiles.is_empty() {
        return Value::Object(object);
    }
    let named = |(percent, value_ns): &(f64, u64)| (format!("{percent:.6}"), Value::from(*value_ns));
    put("percentile", latency.percentiles.iter().map(named).collect());
    if has_bins {
        let mut bins = Map::new();
        for bucket in latency.histogram.buckets() {
            // What lies above the range is one bin: at the largest value that there was.
            let value_ns = bucket.midpoint_ns().min(latency.max_ns);
            bins.insert(value_ns.to_string(), bucket.count.into());
        }
        put("bins", Value::Object(bins));
    }
    Value::Object(object)
}

pub(super) fn disk_object(disk: &Disk) -> Value {
    json!({
        "name": disk.name,
        "read_ios": disk.operations[0],
        "write_ios": disk.operations[1],
        "read_sectors": disk.sectors[0],
        "write_sectors": disk.sectors[1],
        "read_merges": disk.merges[0],
        "write_merges": disk.merges[1],
        "read_ticks": disk.ticks_ms[0],
        "write_ticks": disk.ticks_ms[1],
        "in_queue": disk.queue_ms,
        "util": disk.busy_percent,
    })
}

/// Writes a value as fio does: a space on both sides of the colon, six decimals.
fn print(value: &Value, depth: usize, text: &mut String) {
    let indent = |depth: usize| "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            *text += "{\n";
            for (at, (name, value)) in map.iter().enumerate() {
                let comma = if at > 0 { ",\n" } else { "" };
                *text += &format!("{comma}{}{} : ", indent(depth + 1), Value::from(name.as_str()));
                print(value, depth + 1, text);
            }
            *text += &format!("\n{}}}", indent(depth));
        }
        Value::Array(values) if !values.is_empty() => {
            *text += "[\n";
            for (at, value) in values.iter().enumerate() {
                let comma = if at > 0 { ",\n" } else { "" };
                *text += &format!("{comma}{}", indent(depth + 1));
                print(value, depth + 1, text);
            }
            *text += &format!("\n{}]", indent(depth));
        }
        Value::Number(number) if number.is_f64() => {
            *text += &format!("{:.6}", number.as_f64().unwrap_or(0.0));
        }
        other => *text += &other.to_string(),
    }
}
