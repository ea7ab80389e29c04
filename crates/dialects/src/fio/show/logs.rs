//! The files of `write_bw_log`, `write_iops_log`, `write_lat_log` and `write_hist_log`.

use std::path::PathBuf;

use report::record::Record;
use statistics::{ClassPoint, Series, SparseHistogram};

use super::entry::{CLASSES, DIRECTIONS, Run, runs, totals_of};
use super::number::{epoch_ms, per_second};
use crate::fio::model::{Job, Log, LogKind, LogValue, Model};

/// Bins of a histogram in a log: 64 for every power of two (6 bits), 29 powers.
const BIN_BITS: u32 = 6;
const BINS: usize = 29 << BIN_BITS;

/// Content of a file.
#[derive(Clone, Copy)]
enum Content {
    Bandwidth,
    Iops,
    Total,
    Submission,
    Completion,
    Histogram,
}

/// The files that a log of a job is written to.
fn files(job: &Job, log: &Log) -> Vec<(Content, PathBuf)> {
    let file = |name: &str| {
        let number = if job.per_job_logs { format!(".{}", job.number) } else { String::new() };
        let packed = if job.log_compressed { ".fz" } else { "" };
        let client = job.log_suffix.as_ref().map_or_else(String::new, |client| format!(".{client}"));
        PathBuf::from(format!("{}_{name}{number}.log{packed}{client}", log.prefix))
    };
    let shown = |is_shown: bool, content, name| is_shown.then(|| (content, file(name)));
    match log.kind {
        LogKind::Bandwidth => vec![(Content::Bandwidth, file("bw"))],
        LogKind::Iops => vec![(Content::Iops, file("iops"))],
        LogKind::Histogram => vec![(Content::Histogram, file("clat_hist"))],
        LogKind::Latency => [
            shown(job.shows_latency, Content::Total, "lat"),
            shown(job.shows_submission, Content::Submission, "slat"),
            shown(job.shows_completion, Content::Completion, "clat"),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

/// Every file that will be written, each once.
pub(super) fn paths(model: &Model) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for job in &model.jobs {
        for (_, path) in job.logs.iter().flat_map(|log| files(job, log)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    for path in model.jobs.iter().filter_map(|job| job.operation_log.as_ref()) {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    if model.output.bandwidth_log {
        paths.extend(DIRECTIONS.map(of_all));
    }
    paths
}

/// The log of `--bandwidth-log` for a direction.
fn of_all(direction: &str) -> PathBuf {
    PathBuf::from(format!("agg-{direction}_bw.log"))
}

/// The bandwidth of all jobs together by second, in KiB/s.
fn bandwidth_of_all(runs: &[Run<'_>], direction: usize) -> String {
    let began_ns = runs.first().map_or(0, |run| run.samples.started_ns);
    let mut text = String::new();
    for run in runs {
        let place = run.samples.classes.iter().position(|name| name == CLASSES[direction]);
        let Some(place) = place else { continue };
        let late_ns = run.samples.started_ns.saturating_sub(began_ns);
        for window in windows(&run.samples.series, place, 1_000_000_000) {
            let at_ms = late_ns.saturating_add(window.end_ns) / 1_000_000;
            let rate = per_second(window.done.bytes, window.length_ns) / 1024.0;
            text += &format!("{at_ms}, {}, {direction}, 0, 0\n", rate as u64);
        }
    }
    text
}

/// The logs of all jobs: path and text, in order. Jobs that share a file have a text each.
pub(super) fn texts(model: &Model, record: &Record) -> Vec<(PathBuf, String)> {
    let mut texts = Vec::new();
    for job in model.jobs.iter().filter(|job| !job.logs.is_empty()) {
        let runs = runs(std::slice::from_ref(job), record);
        for (content, path) in job.logs.iter().flat_map(|log| files(job, log)) {
            texts.push((path, text(job, &runs, content)));
        }
    }
    let mut begun: Vec<&PathBuf> = Vec::new();
    for job in &model.jobs {
        let Some(path) = &job.operation_log else { continue };
        let header = if begun.contains(&path) { "" } else { "fio version 3 iolog\n" };
        begun.push(path);
        texts.push((path.clone(), format!("{header}{}", operation_log(job, record))));
    }
    if model.output.bandwidth_log {
        let runs = runs(&model.jobs, record);
        for (direction, name) in DIRECTIONS.iter().enumerate() {
            texts.push((of_all(name), bandwidth_of_all(&runs, direction)));
        }
    }
    texts
}

fn text(job: &Job, runs: &[Run<'_>], content: Content) -> String {
    let began_ns = runs.first().map_or(0, |run| run.samples.started_ns);
    if job.log_average_ms.is_none() && !matches!(content, Content::Histogram) {
        return operations(job, runs, content);
    }
    let epoch_ms = epoch_of(job, runs);
    let average_ns = job.log_average_ms.unwrap_or(0).saturating_mul(1_000_000);
    let (least, most) = job.block_size_bytes;
    let block_bytes = if least == most { least } else { 0 };
    let mut lines = Vec::new();
    for run in runs {
        let late_ns = run.samples.started_ns.saturating_sub(began_ns);
        for (direction, class) in CLASSES.iter().enumerate() {
            let place = run.samples.classes.iter().position(|name| name == class);
            let is_used = totals_of(run, class).any(|totals| totals.operations > 0);
            let Some(place) = place.filter(|_| is_used) else { continue };
            let windows = match content {
                Content::Submission => submissions(run, class),
                _ => windows(&run.samples.series, place, average_ns),
            };
            for window in windows {
                let at_ms = epoch_ms + late_ns.saturating_add(window.end_ns) / 1_000_000;
                let line = line(job, at_ms, direction, &window, content, block_bytes);
                lines.extend(line.map(|line| (at_ms, line)));
            }
        }
    }
    lines.sort_by_key(|(at_ms, _)| *at_ms);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Operations of a stretch of a run.
struct Window {
    end_ns: u64,
    length_ns: u64,
    done: ClassPoint,
}

/// Intervals joined until they are as long as asked for; what is left at the end is a window too.
fn windows(series: &Series, place: usize, average_ns: u64) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    for point in &series.points {
        let length_ns = point.end_ns.saturating_sub(point.start_ns);
        let Some(done) = point.classes.get(place) else { continue };
        match windows.last_mut().filter(|last| last.length_ns < average_ns) {
            Some(open) => {
                open.end_ns = point.end_ns;
                open.length_ns += length_ns;
                open.done.merge(done);
            }
            None => windows.push(Window { end_ns: point.end_ns, length_ns, done: done.clone() }),
        }
    }
    windows
}

/// Submission is not timed by interval: the whole run is one window.
fn submissions(run: &Run<'_>, class: &str) -> Vec<Window> {
    let mut latency = SparseHistogram::default();
    for totals in totals_of(run, class) {
        totals.submission.iter().for_each(|part| latency.merge(part));
    }
    let elapsed_ns = run.samples.elapsed_ns;
    let done = ClassPoint { latency, ..ClassPoint::default() };
    vec![Window { end_ns: elapsed_ns, length_ns: elapsed_ns, done }]
}

/// `time (ms), value, direction, block size (0: an average), priority class`; of a histogram `time (ms), direction, block
/// size (0: many), counts`. None where there was nothing to time.
fn line(
    job: &Job,
    at_ms: u64,
    direction: usize,
    window: &Window,
    content: Content,
    block_bytes: u64,
) -> Option<String> {
    let rate = |amount| per_second(amount, window.length_ns);
    let value = match content {
        Content::Bandwidth => rate(window.done.bytes) / 1024.0,
        Content::Iops => rate(window.done.operations),
        Content::Total | Content::Submission | Content::Completion if job.log_value == LogValue::Largest => {
            window.done.latency.percentile(100.0)? as f64
        }
        Content::Total | Content::Submission | Content::Completion => window.done.latency.mean_ns()?,
        Content::Histogram if window.done.latency.is_empty() => return None,
        Content::Histogram => {
            let bins: Vec<_> = bins(&window.done.latency).iter().map(u64::to_string).collect();
            return Some(format!("{at_ms}, {direction}, {block_bytes}, {}\n", bins.join(", ")));
        }
    };
    let largest = match (job.log_value, content) {
        (LogValue::Both, Content::Bandwidth | Content::Iops) => format!(", {}", value as u64),
        (LogValue::Both, _) => format!(", {}", window.done.latency.percentile(100.0)?),
        _ => String::new(),
    };
    Some(format!("{at_ms}, {}{largest}, {direction}, 0{}\n", value as u64, last_columns(job, 0, 0)))
}

/// Position, where the log has it, priority, and time of issue, where the log has it.
fn last_columns(job: &Job, offset_bytes: u64, issued_ns: u64) -> String {
    let offset = if job.log_offset { format!(", {offset_bytes}") } else { String::new() };
    let issued = if job.log_issue_time { format!(", {issued_ns}") } else { String::new() };
    match job.log_priority {
        Some(priority) => format!("{offset}, {priority:#06x}{issued}"),
        None => format!("{offset}, 0{issued}"),
    }
}

/// Epoch that times of a log are counted from: the start, or 1970.
fn epoch_of(job: &Job, runs: &[Run<'_>]) -> u64 {
    let began_at = runs.first().map(Run::began_at).filter(|_| job.log_epoch);
    began_at.map_or(0, epoch_ms)
}

/// A line for each operation, in the order in which they completed.
fn operations(job: &Job, runs: &[Run<'_>], content: Content) -> String {
    let (epoch_ms, began_ns) = (epoch_of(job, runs), runs.first().map_or(0, |run| run.samples.started_ns));
    let mut lines = Vec::new();
    for run in runs {
        let late_ns = run.samples.started_ns.saturating_sub(began_ns);
        for sample in run.samples.workers.iter().flat_map(|worker| &worker.kept) {
            let class = run.samples.classes.get(sample.class).map_or("", String::as_str);
            let Some(direction) = CLASSES.iter().position(|name| *name == class) else { continue };
            let latency_ns = sample.latency_ns.max(1);
            let value = match content {
                Content::Bandwidth => (sample.bytes as f64 * 1e9 / latency_ns as f64 / 1024.0) as u64,
                Content::Iops => 1,
                Content::Total => sample.latency_ns,
                Content::Completion => {
                    sample.latency_ns - sample.submission_ns.unwrap_or(0).min(sample.latency_ns)
                }
                Content::Submission => match sample.submission_ns {
                    Some(submission_ns) => submission_ns,
                    None => continue,
                },
                Content::Histogram => continue,
            };
            let at_ns = late_ns + sample.ended_ns;
            let (at_ms, bytes) = (epoch_ms + at_ns / 1_000_000, sample.bytes);
            let issued_ns = match content {
                Content::Submission | Content::Completion => {
                    let began_ns = at_ns.saturating_sub(sample.latency_ns);
                    began_ns + sample.submission_ns.unwrap_or(0)
                }
                _ => 0,
            };
            let last = last_columns(job, sample.offset_bytes, issued_ns);
            lines.push((at_ns, format!("{at_ms}, {value}, {direction}, {bytes}{last}\n")));
        }
    }
    lines.sort_by_key(|(at_ns, _)| *at_ns);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Log of a job's operations, in the order in which they began, as fio's `read_iolog` reads it: times in microseconds.
fn operation_log(job: &Job, record: &Record) -> String {
    let phases: Vec<_> = record.phases.iter().filter(|phase| phase.request == job.request).collect();
    let began_ns = phases.first().map_or(0, |phase| phase.samples.started_ns);
    let own = format!("{}.0.0", job.name);
    let mut files: Vec<&str> = Vec::new();
    let mut lines: Vec<(u64, String)> = Vec::new();
    for phase in phases {
        let late_ns = phase.samples.started_ns.saturating_sub(began_ns);
        for sample in phase.samples.workers.iter().flat_map(|worker| &worker.kept) {
            let action = match phase.samples.classes.get(sample.class).map_or("", String::as_str) {
                "discard" => "trim",
                word @ ("read" | "write" | "sync") => word,
                _ => continue,
            };
            let target = phase.plan.targets().get(usize::from(sample.target));
            let file = target.map_or("", |target| target.path.as_str());
            let file = if file == "null:" { own.as_str() } else { file };
            if !files.contains(&file) {
                files.push(file);
            }
            let at_us = (late_ns + sample.ended_ns).saturating_sub(sample.latency_ns) / 1000;
            let place = format!("{} {}", sample.offset_bytes, sample.bytes);
            lines.push((at_us, format!("{at_us} {file} {action} {place}\n")));
        }
    }
    lines.sort_by_key(|(at_us, _)| *at_us);
    let last_us = lines.last().map_or(0, |(at_us, _)| *at_us);
    let all = |action: &str, at_us: u64| -> String {
        files.iter().map(|file| format!("{at_us} {file} {action}\n")).collect()
    };
    let done: String = lines.into_iter().map(|(_, line)| line).collect();
    all("add", 0) + &all("open", 0) + &done + &all("close", last_us)
}

/// Counts in fio's bins: one for every nanosecond below 128, then 64 for every power of two.
fn bins(latency: &SparseHistogram) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    for bucket in latency.buckets() {
        let value_ns = bucket.midpoint_ns();
        let shift = (value_ns | 1).ilog2().saturating_sub(BIN_BITS);
        let bin = ((shift as usize) << BIN_BITS) + (value_ns >> shift) as usize;
        bins[bin.min(BINS - 1)] += bucket.count;
    }
    bins
}

#[cfg(test)]
mod tests {
    use statistics::Histogram;

    use super::*;

    #[test]
    fn bins_are_those_of_fio() {
        // Value and bin by the layout of stat.h: group 0 and 1 are exact, then 64 bins for each power of two.
        let rows = [(0, 0), (1, 1), (63, 63), (64, 64), (127, 127), (128, 128), (129, 128), (130, 129)];
        let rows = rows.into_iter().chain([(255, 191), (256, 192), (1 << 40, BINS - 1)]);
        for (value_ns, bin) in rows {
            let mut histogram = Histogram::new();
            histogram.record_n(value_ns, 3);
            let found = bins(&SparseHistogram::from(&histogram));
            assert_eq!(found.len(), 1856);
            assert_eq!(found.iter().position(|count| *count == 3), Some(bin), "{value_ns}");
        }
    }
}
