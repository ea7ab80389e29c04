//! The record as CSV (RFC 4180): one row a phase and class, and one for all classes together.

#[cfg(test)]
mod tests;

use csv::{Terminator, WriterBuilder};
use statistics::{ClassSummary, LatencySummary};

use crate::record::{PhaseRecord, Record};

/// What a row is made from.
struct Row<'a> {
    record: &'a Record,
    phase: &'a PhaseRecord,
    class: &'a ClassSummary,
    /// CPU time and doubts are known of the phase only, not of its classes.
    is_total: bool,
}

impl Row<'_> {
    fn latency(&self, figure: fn(&LatencySummary) -> u64) -> String {
        self.class.latency.as_ref().map_or_else(String::new, |latency| figure(latency).to_string())
    }

    fn of_phase(&self, figure: Option<f64>) -> String {
        number(figure.filter(|_| self.is_total))
    }
}

fn number(figure: Option<f64>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

/// A column: its header and its text.
type Column = (&'static str, fn(&Row<'_>) -> String);

/// The columns in order. New ones are added at the end, so that readers by position keep working.
const COLUMNS: &[Column] = &[
    ("name", |row| row.phase.plan.name.clone()),
    ("layer", |row| row.phase.plan.layer.clone()),
    ("engine", |row| row.phase.plan.engine.clone()),
    ("operation", |row| row.phase.plan.operation.name().to_owned()),
    ("class", |row| row.class.class.clone()),
    ("targets", |row| joined(row.phase.plan.targets.iter().map(|target| target.path.as_str()))),
    ("direct", |row| row.phase.plan.options.direct.to_string()),
    ("pattern", |row| row.phase.plan.pattern.to_string()),
    ("block_size", |row| row.phase.plan.block_size.clone()),
    ("block_size_bytes_max", |row| row.phase.plan.block_size_bytes_max.to_string()),
    ("threads", |row| row.phase.plan.load.threads.to_string()),
    ("depth", |row| row.phase.plan.load.depth.to_string()),
    ("rate_asked_per_second", |row| number(row.phase.arrivals.map(|arrivals| arrivals.asked_per_second))),
    ("operations", |row| row.class.operations.to_string()),
    ("bytes", |row| row.class.bytes.to_string()),
    ("errors", |row| row.class.errors.to_string()),
    ("elapsed_ns", |row| row.phase.samples.elapsed_ns.to_string()),
    ("window_start_ns", |row| row.phase.summary.window_start_ns.to_string()),
    ("window_end_ns", |row| row.phase.summary.window_end_ns.to_string()),
    ("operations_per_second", |row| row.class.operations_per_second.to_string()),
    ("operations_per_second_low", |row| number(row.class.rate.as_ref().map(|rate| rate.low))),
    ("operations_per_second_high", |row| number(row.class.rate.as_ref().map(|rate| rate.high))),
    ("bytes_per_second", |row| row.class.bytes_per_second.to_string()),
    ("bytes_per_second_low", |row| number(row.class.bandwidth.as_ref().map(|rate| rate.low))),
    ("bytes_per_second_high", |row| number(row.class.bandwidth.as_ref().map(|rate| rate.high))),
    ("latency_ns_min", |row| row.latency(|latency| latency.min_ns)),
    ("latency_ns_mean", |row| number(row.class.latency.as_ref().map(|latency| latency.mean_ns))),
    ("latency_ns_p50", |row| row.latency(|latency| latency.p50_ns)),
    ("latency_ns_p90", |row| row.latency(|latency| latency.p90_ns)),
    ("latency_ns_p95", |row| row.latency(|latency| latency.p95_ns)),
    ("latency_ns_p99", |row| row.latency(|latency| latency.p99_ns)),
    ("latency_ns_p99_9", |row| row.latency(|latency| latency.p99_9_ns)),
    ("latency_ns_p99_99", |row| row.latency(|latency| latency.p99_99_ns)),
    ("latency_ns_max", |row| row.latency(|latency| latency.max_ns)),
    ("cpu_ns_per_operation", |row| row.of_phase(row.phase.summary.cpu_ns_per_operation)),
    ("tool_ns_per_operation", |row| row.of_phase(row.phase.summary.tool_ns_per_operation)),
    ("cpus_used", |row| row.of_phase(Some(row.phase.summary.cpus_used))),
    ("steady", |row| row.phase.summary.steady.is_steady.to_string()),
    ("doubts", |row| joined(row.phase.doubts.iter().map(|doubt| doubt.kind.as_str()))),
    ("failure", |row| row.phase.failure.clone().unwrap_or_default()),
    ("seed", |row| row.record.seed.to_string()),
    ("run_id", |row| row.record.run_id.clone()),
    ("started_at", |row| row.phase.started_at.clone()),
];

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

/// One header line, then one line a class and one for the total of every phase; lines end with a line feed.
///
/// Times are nanoseconds, sizes bytes, rates per second; figures that are not known are empty. Several targets or
/// doubts stand in one field, with semicolons between them.
#[must_use]
pub fn to_csv(record: &Record) -> String {
    let mut writer = WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(Vec::new());
    // A vector takes every write, and every row has the header's length: nothing here can fail.
    let mut write = |fields: Vec<String>| writer.write_record(fields).is_ok();
    write(COLUMNS.iter().map(|(header, _)| (*header).to_owned()).collect());
    for phase in &record.phases {
        let classes = phase.summary.classes.iter().filter(|class| class.operations + class.errors > 0);
        let total = std::iter::once((&phase.summary.total, true));
        for (class, is_total) in classes.map(|class| (class, false)).chain(total) {
            let row = Row { record, phase, class, is_total };
            write(COLUMNS.iter().map(|(_, text)| text(&row)).collect());
        }
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
