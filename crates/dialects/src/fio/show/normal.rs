//! `--output-format=normal`: the text for people.

use report::record::Record;

use super::VERSION;
use super::disk::{Disk, disks};
use super::distribution::{BATCHES, BOUNDS, LEVELS};
use super::entry::{Entry, WAYS, Way};
use super::group::{Group, group_of, groups, share_of_group};
use super::latency::Latency;
use super::number::{bandwidth, ctime, milliseconds, short};

use crate::doubts::{self, Told};
use crate::fio::model::{Job, Model, Unified};

/// The lines before anything runs: every job, the version, how many threads.
pub(super) fn header(model: &Model) -> String {
    let text = format!("{}{VERSION} (strata)\n{}", job_lines(model), starting(model));
    notes(text, model)
}

/// A line for each job.
pub(super) fn job_lines(model: &Model) -> String {
    let mut text = String::new();
    for clones in model.jobs.chunk_by(are_clones) {
        text += &job_line(&clones[0]);
        if clones.len() > 1 || clones[0].clones > 1 {
            text += "...\n";
        }
    }
    text
}

/// The line about how many threads are started.
pub(super) fn starting(model: &Model) -> String {
    let threads: u32 = model.jobs.iter().map(|job| job.clones).sum();
    let plural = if threads == 1 { "" } else { "s" };
    format!("Starting {threads} thread{plural}\n")
}

/// The text with the warnings behind it.
pub(super) fn notes(text: String, model: &Model) -> String {
    model.warnings.iter().fold(text, |text, warning| text + "note: " + warning + "\n")
}

/// Whether two neighbours come from one section.
fn are_clones(a: &Job, b: &Job) -> bool {
    a.name == b.name && a.group == b.group && a.rw == b.rw && a.options == b.options
}

fn job_line(job: &Job) -> String {
    let is_binary = job.kb_base == 1024;
    let (least, most) = job.block_size_bytes;
    let sizes = format!("{}-{}", short(least, 4, is_binary, "B"), short(most, 4, is_binary, "B"));
    format!(
        "{}: (g={}): rw={}, bs=(R) {sizes}, (W) {sizes}, (T) {sizes}, ioengine={}, iodepth={}\n",
        job.name, job.group, job.rw, job.engine, job.depth
    )
}

/// The results.
pub(super) fn results(entries: &[Entry<'_>], record: &Record) -> String {
    let groups = groups(entries);
    let mut text = "\n".to_owned();
    for entry in entries {
        text += &job(entry, group_of(&groups, entry));
    }
    for group in &groups {
        text += &status(group);
    }
    let disks = disks(record);
    if !disks.is_empty() {
        text += "\nDisk stats (read/write):\n";
        disks.iter().for_each(|disk| text += &disk_line(disk));
    }
    text + &findings(entries)
}

/// Doubts about the figures, shown after them.
fn findings<'e>(entries: &'e [Entry<'e>]) -> String {
    doubts::lines(told(entries))
}

/// Doubts about each job.
fn told<'e>(entries: &'e [Entry<'e>]) -> impl Iterator<Item = (&'e str, &'e Told<'e>)> {
    let of_entry = |entry: &'e Entry<'e>| entry.doubts.iter().map(|doubt| (entry.job.name.as_str(), doubt));
    entries.iter().flat_map(of_entry)
}

/// Which latencies are lower bounds, a line a job.
pub(super) fn lower_bounds(entries: &[Entry<'_>]) -> String {
    doubts::lines(told(entries).filter(|(_, told)| told.kind == doubts::LOWER_BOUNDS))
}

/// The results of a job, or of several as one.
pub(super) fn job(entry: &Entry<'_>, group: Option<&Group>) -> String {
    if entry.operations() == 0 && entry.sync.count == 0 && entry.failures.errno == 0 {
        return String::new();
    }
    let mut text = title(entry);
    for (direction, way) in entry.shown() {
        if way.operations > 0 {
            text += &way_lines(entry.job, way, direction, group);
        }
    }
    let latencies = &entry.latencies;
    let scales = [("nsec", &latencies.ns[..]), ("usec", &latencies.us[..]), ("msec", &latencies.ms[..])];
    for (unit, shares) in scales {
        text += &latency_shares(unit, shares);
    }
    if entry.sync.count > 0 {
        text += "  fsync/fdatasync/sync_file_range/syncfs:\n";
        text += &latency_line("sync", &entry.sync);
        text += &percentiles("sync", &entry.sync);
    }
    text + &cpu_line(entry) + &depth_lines(entry) + &closing_lines(entry)
}

fn title(entry: &Entry<'_>) -> String {
    let (job, failures) = (entry.job, &entry.failures);
    let error = match failures.errno {
        0 => " 0".to_owned(),
        errno => format!("{errno:>2} ({})", failures.cause),
    };
    let mut text = format!(
        "{}: (groupid={}, jobs={}): err={error}: pid={}: {}\n",
        job.name,
        job.group,
        entry.clones,
        entry.process_id,
        ctime(entry.ended_at)
    );
    if let Some(description) = &job.description {
        text += &format!("  Description  : [{description}]\n");
    }
    text
}

fn way_lines(job: &Job, way: &Way, direction: usize, group: Option<&Group>) -> String {
    let is_binary = job.kb_base == 1024;
    let rate = |is_binary| bandwidth(way.bytes_per_second(), is_binary, job.unit_base);
    let mut text = format!(
        "  {}: IOPS={}, BW={} ({})({}/{}msec){}\n",
        WAYS[direction],
        short(way.operations_per_second() as u64, 4, false, ""),
        rate(is_binary),
        rate(!is_binary),
        short(way.bytes, 4, is_binary, "B"),
        milliseconds(way.elapsed_ns),
        way.zone_resets.map_or_else(String::new, |resets| format!("; {resets} zone resets"))
    );
    let kinds = [("slat", &way.submission), ("clat", &way.completion), (" lat", &way.total)];
    for (name, latency) in kinds {
        text += &latency_line(name, latency);
    }
    for (name, latency) in kinds {
        text += &percentiles(name.trim_start(), latency);
    }
    text + &spread_lines(job, way, direction, group)
}

/// How many times the nanoseconds of a latency are divided by 1000 to be shown.
fn scale(min_ns: u64, max_ns: u64, stddev_ns: f64) -> u32 {
    if min_ns > 2_000_000 && max_ns > 99_999_999 && stddev_ns > 1e6 {
        2
    } else if min_ns > 2000 && max_ns > 99_999 && stddev_ns > 1000.0 {
        1
    } else {
        0
    }
}

const UNITS: [&str; 3] = ["nsec", "usec", "msec"];

fn latency_line(name: &str, latency: &Latency) -> String {
    if latency.count == 0 {
        return String::new();
    }
    let scale = scale(latency.min_ns, latency.max_ns, latency.stddev_ns);
    let divisor = 1000_u64.pow(scale);
    format!(
        "    {name} ({}): min={}, max={}, avg={:5.2}, stdev={:5.2}\n",
        UNITS[scale as usize],
        short(latency.min_ns / divisor, 6, false, ""),
        short(latency.max_ns / divisor, 6, false, ""),
        latency.mean_ns / divisor as f64,
        latency.stddev_ns / divisor as f64
    )
}

/// The table of percentiles: as many on a line as fit 80 columns.
fn percentiles(name: &str, latency: &Latency) -> String {
    let values = || latency.percentiles.iter().map(|(_, value_ns)| *value_ns);
    let (Some(min_ns), Some(max_ns)) = (values().min(), values().max()) else { return String::new() };
    let scale = scale(min_ns, max_ns, f64::INFINITY);
    let decimals = decimals(latency);
    let largest = max_ns / 1000_u64.pow(scale);
    let width = largest.max(1).ilog10().saturating_add(1).max(5) as usize;
    let per_line = (80 - 7) / (decimals + 10 + width);
    let places = decimals + 3;
    let mut text = format!("    {name} percentiles ({}):\n", UNITS[scale as usize]);
    let cell = |(percent, value_ns): &(f64, u64)| {
        let shown = (0..scale).fold(*value_ns, |value, _| value.div_ceil(1000));
        format!(" {percent:>places$.decimals$}th=[{shown:>width$}]")
    };
    let lines: Vec<_> = latency
        .percentiles
        .chunks(per_line)
        .map(|line| format!("     |{}", line.iter().map(cell).collect::<Vec<_>>().join(",")))
        .collect();
    text += &lines.join(",\n");
    text + "\n"
}

/// Decimals that the percentages of a table need, at most six.
fn decimals(latency: &Latency) -> usize {
    let needed = |percent: f64| {
        let text = format!("{percent:.6}");
        text.trim_end_matches('0').rsplit('.').next().map_or(0, str::len)
    };
    latency.percentiles.iter().map(|(percent, _)| needed(*percent)).max().unwrap_or(0)
}

fn spread_lines(job: &Job, way: &Way, direction: usize, group: Option<&Group>) -> String {
    let Some(spread) = &way.spread else { return String::new() };
    let share = share_of_group(group, direction, spread.bytes.mean);
    let base = f64::from(job.kb_base);
    let bits = if job.unit_base == 1 { 8.0 } else { 1.0 };
    let is_large = spread.bytes.mean * bits / 1024.0 > base * base;
    let divisor = 1024.0 / bits * if is_large { base } else { 1.0 };
    let unit = match (job.unit_base == 1, job.kb_base == 1024, is_large) {
        (true, _, true) => "Mibit",
        (true, true, false) => "Kibit",
        (true, false, false) => "kbit",
        (false, _, true) => "MiB",
        (false, true, false) => "KiB",
        (false, false, false) => "kB",
    };
    let (bytes, operations, pieces) = (&spread.bytes, &spread.operations, spread.pieces);
    format!(
        "   bw ({unit:>5}/s): min={:>5}, max={:>5}, per={share:3.2}%, avg={:5.2}, stdev={:5.2}, samples={pieces}\n   \
         iops        : min={:>5}, max={:>5}, avg={:5.2}, stdev={:5.2}, samples={pieces}\n",
        (bytes.min / divisor) as u64,
        (bytes.max / divisor) as u64,
        bytes.mean / divisor,
        bytes.stddev / divisor,
        operations.min as u64,
        operations.max as u64,
        operations.mean,
        operations.stddev,
    )
}

/// The classes of latencies in one unit that have something in them, five on a line.
fn latency_shares(unit: &str, shares: &[f64]) -> String {
    let filled: Vec<_> = shares
        .iter()
        .zip(BOUNDS)
        .filter(|(share, _)| **share > 0.0)
        .map(|(share, bound)| format!("{bound}={share:3.2}%"))
        .collect();
    filled.chunks(5).map(|line| format!("  lat ({unit})   : {}\n", line.join(", "))).collect()
}

fn cpu_line(entry: &Entry<'_>) -> String {
    let (user, system) = entry.usage.percent();
    let usage = &entry.usage;
    format!(
        "  cpu          : usr={user:3.2}%, sys={system:3.2}%, ctx={}, majf={}, minf={}\n",
        usage.context_switches, usage.major_faults, usage.minor_faults
    )
}

fn depth_lines(entry: &Entry<'_>) -> String {
    let rows = [("  IO depths    ", LEVELS), ("     submit    ", BATCHES), ("     complete  ", BATCHES)];
    let line = |((name, labels), shares): ((&str, [&str; 7]), [f64; 7])| {
        let cells: Vec<_> =
            labels.iter().zip(shares).map(|(label, share)| format!("{label}={share:3.1}%")).collect();
        format!("{name}: {}\n", cells.join(", "))
    };
    rows.into_iter().zip(entry.depths.percent()).map(line).collect()
}

fn closing_lines(entry: &Entry<'_>) -> String {
    let [reads, writes, trims] = match entry.job.unified {
        // As in fio: what is one direction is counted under the first.
        Unified::Mixed => [entry.operations(), 0, 0],
        _ => entry.ways.each_ref().map(|way| way.operations),
    };
    let mut text = format!(
        "     issued rwts: total={reads},{writes},{trims},{} short=0,0,0,0 dropped=0,0,0,0\n",
        entry.sync.count
    );
    let failures = &entry.failures;
    if failures.goes_on || failures.count > 0 {
        let cause = if failures.errno == 0 { "Success" } else { &failures.cause };
        text +=
            &format!("     errors    : total={}, first_error={}/<{cause}>\n", failures.count, failures.errno);
    }
    let target = entry.search.map(|(target, _)| target);
    let found = entry.search.and_then(|(_, found)| found).unwrap_or(entry.job.depth);
    text += &format!(
        "     latency   : target={}, window={}, percentile={:.2}%, depth={found}\n",
        time_words(target.map_or(0, |target| target.latency_ns)),
        time_words(target.map_or(0, |target| target.window_ns)),
        target.map_or(100.0, |target| target.percent),
    );
    text + &steady_line(entry)
}

/// Nanoseconds in the unit that fits, with two decimals.
fn time_words(ns: u64) -> String {
    let (divisor, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{:.2}{unit}", ns as f64 / divisor)
}

/// A mean latency in the unit that fits.
fn latency_word(ns: f64) -> String {
    let scale = scale(ns as u64, ns as u64, f64::INFINITY);
    let value = ns / 1000_f64.powi(scale as i32);
    format!(", lat={}{}", short(value as u64, 4, false, ""), UNITS[scale as usize])
}

fn steady_line(entry: &Entry<'_>) -> String {
    let Some((steady, asked)) = entry.steady.zip(entry.steady_plan) else { return String::new() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (bytes, is_binary) = (mean(&steady.bytes_per_second) as u64, entry.job.kb_base == 1024);
    let figure = asked.figure.name();
    let what = match figure.strip_suffix("_slope") {
        Some(figure) => format!("{figure} slope"),
        None => format!("{figure} mean dev"),
    };
    let latency =
        if asked.figure.is_latency() { latency_word(mean(&steady.latency_ns)) } else { String::new() };
    format!(
        "  steadystate  : attained={}, bw={} ({}), iops={}{latency}, {what}={:.3}{}\n",
        if steady.attained { "yes" } else { "no" },
        bandwidth(bytes, is_binary, entry.job.unit_base),
        bandwidth(bytes, !is_binary, entry.job.unit_base),
        short(mean(&steady.operations_per_second) as u64, 4, false, ""),
        steady.criterion,
        if asked.is_percent { "%" } else { "" },
    )
}

fn status(group: &Group) -> String {
    let mut text = format!("\nRun status group {} (all jobs):\n", group.number);
    let names = ["   READ", "  WRITE", "   TRIM", "  MIXED"];
    for (name, total) in names.iter().zip(&group.totals) {
        let Some(total) = total else { continue };
        let rate = |bytes, is_alternative: bool| {
            bandwidth(bytes, group.is_binary != is_alternative, group.unit_base)
        };
        let range = |other| format!("{}-{}", rate(total.slowest, other), rate(total.fastest, other));
        text += &format!(
            "{name}: bw={} ({}), {} ({}), io={} ({}), run={}-{}msec\n",
            rate(total.bytes_per_second, false),
            rate(total.bytes_per_second, true),
            range(false),
            range(true),
            short(total.bytes, 4, group.is_binary, "B"),
            short(total.bytes, 4, !group.is_binary, "B"),
            total.shortest_ms,
            total.longest_ms
        );
    }
    text
}

fn disk_line(disk: &Disk) -> String {
    let pair = |pair: [u64; 2]| format!("{}/{}", pair[0], pair[1]);
    format!(
        "  {}: ios={}, sectors={}, merge={}, ticks={}, in_queue={}, util={:3.2}%\n",
        disk.name,
        pair(disk.operations),
        pair(disk.sectors),
        pair(disk.merges),
        pair(disk.ticks_ms),
        disk.queue_ms,
        disk.busy_percent
    )
}
