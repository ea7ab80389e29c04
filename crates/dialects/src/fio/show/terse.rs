//! `--output-format=terse` (`--minimal`): one line a job, in version 3, 4 or 5.

use report::record::Record;

use super::VERSION;
use super::disk::disks;
use super::entry::{Entry, MIXED, Way};
use super::group::{Group, group_of, groups, share_of_group};
use super::latency::Latency;
use super::number::milliseconds;

/// Fields for percentiles that a direction always has.
const PERCENTILES: usize = 20;

/// The results.
pub(super) fn results(entries: &[Entry<'_>], record: &Record, version: u8) -> String {
    let disks = disk_fields(record);
    let groups = groups(entries);
    entries.iter().map(|entry| line(entry, group_of(&groups, entry), &disks, version)).collect()
}

/// The results without disks.
pub(super) fn lines(entries: &[Entry<'_>], version: u8) -> String {
    let groups = groups(entries);
    entries.iter().map(|entry| line(entry, group_of(&groups, entry), &[], version)).collect()
}

/// The disks in a line of their own; nothing where there are none.
pub(super) fn disk_line(record: &Record) -> String {
    let fields = disk_fields(record);
    if fields.is_empty() { String::new() } else { fields.join(";") + "\n" }
}

fn disk_fields(record: &Record) -> Vec<String> {
    let mut fields = Vec::new();
    for disk in disks(record) {
        fields.push(disk.name);
        let counts = [disk.operations, disk.merges, disk.ticks_ms].concat();
        fields.extend(counts.iter().map(u64::to_string));
        fields.extend([disk.queue_ms.to_string(), format!("{:.2}%", disk.busy_percent)]);
    }
    fields
}

fn line(entry: &Entry<'_>, group: Option<&Group>, disks: &[String], version: u8) -> String {
    let job = entry.job;
    let mut fields = vec![
        version.to_string(),
        VERSION.to_owned(),
        job.name.clone(),
        job.group.to_string(),
        entry.failures.errno.to_string(),
    ];
    // Trims came with version 4.
    let directions = if version == 3 { 2 } else { 3 };
    for (direction, way) in entry.shown() {
        if direction >= directions && direction != MIXED {
            continue;
        }
        let percentiles = if job.shows_total_percentiles { &way.total } else { &way.completion };
        way_fields(way, percentiles, &mut fields);
        spread_fields(way, direction, group, version, &mut fields);
    }
    let (user, system) = entry.usage.percent();
    fields.extend([format!("{user:.6}%"), format!("{system:.6}%")]);
    let usage = &entry.usage;
    fields.extend(
        [usage.context_switches, usage.major_faults, usage.minor_faults].map(|count| count.to_string()),
    );
    let [levels, ..] = entry.depths.percent();
    fields.extend(levels.map(|share| format!("{share:.1}%")));
    // There are no fields below a microsecond: all of it is in the first class.
    let mut us = entry.latencies.us;
    us[0] += entry.latencies.ns.iter().sum::<f64>();
    fields.extend(us.iter().chain(&entry.latencies.ms).map(|share| format!("{share:.2}%")));
    fields.extend(disks.iter().cloned());
    if entry.failures.goes_on {
        fields.extend([entry.failures.count.to_string(), entry.failures.errno.to_string()]);
    }
    fields.extend(job.description.clone());
    fields.join(";") + "\n"
}

fn way_fields(way: &Way, percentiles: &Latency, fields: &mut Vec<String>) {
    let rates = [
        way.bytes >> 10,
        way.bytes_per_second() >> 10,
        way.operations_per_second() as u64,
        milliseconds(way.elapsed_ns),
    ];
    fields.extend(rates.map(|value| value.to_string()));
    latency_fields(&way.submission, fields);
    latency_fields(&way.completion, fields);
    for at in 0..PERCENTILES {
        fields.push(match percentiles.percentiles.get(at) {
            Some((percent, value_ns)) => format!("{percent:.6}%={}", value_ns / 1000),
            None => "0%=0".to_owned(),
        });
    }
    latency_fields(&way.total, fields);
}

/// Microseconds.
fn latency_fields(latency: &Latency, fields: &mut Vec<String>) {
    fields.extend([latency.min_ns / 1000, latency.max_ns / 1000].map(|value| value.to_string()));
    fields.extend([latency.mean_ns, latency.stddev_ns].map(|value| format!("{:.6}", value / 1000.0)));
}

/// KiB a second; from version 5 on with the number of samples, and operations a second.
fn spread_fields(way: &Way, direction: usize, group: Option<&Group>, version: u8, fields: &mut Vec<String>) {
    let spread = way.spread.unwrap_or_default();
    let (bytes, operations, pieces) = (&spread.bytes, &spread.operations, spread.pieces);
    let whole = |value: f64| (value as u64).to_string();
    let exact = |value: f64| format!("{value:.6}");
    fields.extend([whole(bytes.min / 1024.0), whole(bytes.max / 1024.0)]);
    fields.push(format!("{:.6}%", share_of_group(group, direction, bytes.mean)));
    fields.extend([exact(bytes.mean / 1024.0), exact(bytes.stddev / 1024.0)]);
    if version == 5 {
        fields.extend([pieces.to_string(), whole(operations.min), whole(operations.max)]);
        fields.extend([exact(operations.mean), exact(operations.stddev), pieces.to_string()]);
    }
}
