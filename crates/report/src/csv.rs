//! The record as CSV (RFC 4180): one row a phase and class, and one for all classes together.

#[cfg(test)]
mod tests;

use csv::{Terminator, WriterBuilder};
use layer::observations::{CheckpointBlocking, CommitActivity};
use statistics::{ClassSummary, LatencySummary, OriginSummary, PartSummary, by_origin};

use crate::record::{HostRecord, PhaseRecord, Record};
use crate::words::is_steady;

/// Parts of the record that a row is made from.
struct Row<'a> {
    record: &'a Record,
    phase: &'a PhaseRecord,
    class: &'a ClassSummary,
    /// CPU time and doubts are known of the phase only, not of its classes.
    is_total: bool,
}

impl Row<'_> {
    fn latency(&self, figure: fn(&LatencySummary) -> Option<u64>) -> String {
        self.class.latency.as_ref().and_then(figure).map_or_else(String::new, |ns| ns.to_string())
    }

    fn of_phase(&self, figure: Option<f64>) -> String {
        number(figure.filter(|_| self.is_total))
    }

    /// A time of a checkpoint of the phase.
    fn of_blocking(&self, time_ns: fn(&CheckpointBlocking) -> Option<u64>) -> String {
        let seen = self.phase.observations.checkpoint.as_ref();
        let blocking = seen.and_then(|seen| seen.blocking.as_ref()).filter(|_| self.is_total);
        blocking.and_then(time_ns).map_or_else(String::new, |time_ns| time_ns.to_string())
    }

    /// A count of the commits of the phase.
    fn of_commits(&self, count: fn(&CommitActivity) -> u64) -> String {
        let seen = self.phase.observations.commits.as_ref().filter(|_| self.is_total);
        seen.map_or_else(String::new, |seen| count(seen).to_string())
    }
}

fn number(figure: Option<f64>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

/// A column: its header and its text.
type Column = (&'static str, fn(&Row<'_>) -> String);

/// Bytes a second of one direction.
fn moved(row: &Row<'_>, direction: fn((u64, u64)) -> u64) -> String {
    let bytes = row.phase.plan.direction_bytes().map(direction);
    number(bytes.map(|bytes| row.class.operations_per_second * bytes as f64))
}

/// A column of the plans of some layers: empty where a plan has none of that name.
macro_rules! own {
    ($name:literal) => {
        ($name, |row| row.phase.plan.field($name))
    };
}

/// The columns in order. New ones are added at the end, so that readers by position keep working.
const COLUMNS: &[Column] = &[
    ("name", |row| row.phase.plan.name().clone()),
    ("layer", |row| row.phase.plan.layer().to_owned()),
    ("engine", |row| row.phase.plan.engine().clone()),
    ("operation", |row| row.phase.plan.operation_name().to_owned()),
    ("class", |row| row.class.class.clone()),
    ("targets", |row| joined(row.phase.plan.target_names().into_iter())),
    own!("direct"),
    own!("pattern"),
    ("block_size", |row| row.phase.plan.operation_size()),
    ("block_size_bytes_max", |row| row.phase.plan.operation_bytes_max().to_string()),
    ("threads", |row| row.phase.plan.load().threads.to_string()),
    ("depth", |row| row.phase.plan.load().depth.to_string()),
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
    ("latency_ns_min", |row| row.latency(|latency| Some(latency.min_ns))),
    ("latency_ns_mean", |row| number(row.class.latency.as_ref().map(|latency| latency.mean_ns))),
    ("latency_ns_p50", |row| row.latency(|latency| Some(latency.p50_ns))),
    ("latency_ns_p90", |row| row.latency(|latency| latency.p90_ns)),
    ("latency_ns_p95", |row| row.latency(|latency| latency.p95_ns)),
    ("latency_ns_p99", |row| row.latency(|latency| latency.p99_ns)),
    ("latency_ns_p99_9", |row| row.latency(|latency| latency.p99_9_ns)),
    ("latency_ns_p99_99", |row| row.latency(|latency| latency.p99_99_ns)),
    ("latency_ns_max", |row| row.latency(|latency| Some(latency.max_ns))),
    ("cpu_ns_per_operation", |row| row.of_phase(row.phase.summary.cpu_ns_per_operation)),
    ("tool_ns_per_operation", |row| row.of_phase(row.phase.summary.tool_ns_per_operation)),
    ("cpus_used", |row| row.of_phase(Some(row.phase.summary.cpus_used))),
    ("steady", |row| is_steady(row.phase).to_string()),
    ("doubts", |row| joined(row.phase.doubts.iter().map(|doubt| doubt.kind.as_str()))),
    ("failure", |row| row.phase.failure.clone().unwrap_or_default()),
    ("seed", |row| row.record.seed.to_string()),
    ("run_id", |row| row.record.run_id.clone()),
    ("started_at", |row| row.phase.started_at.clone()),
    own!("provider"),
    own!("poll"),
    own!("endpoints"),
    own!("masters"),
    own!("connections"),
    own!("interface"),
    own!("request_bytes"),
    own!("reply_bytes"),
    ("sent_bytes_per_second", |row| moved(row, |(out, _)| out)),
    ("received_bytes_per_second", |row| moved(row, |(_, back)| back)),
    own!("object_class"),
    own!("objects"),
    own!("dkeys"),
    own!("akeys"),
    own!("records"),
    own!("durability"),
    ("durable_by", |row| {
        row.phase.observations.store.as_ref().map_or_else(String::new, |store| store.durable_by.clone())
    }),
    ("latency_lower_bounds", |row| row.latency(|latency| Some(latency.lower_bounds))),
    ("latency_lower_bound_from_percent", |row| {
        number(row.class.latency.as_ref().and_then(|latency| latency.lower_bound_from_percent))
    }),
    own!("door"),
    own!("door_turn"),
    ("utilisation", |row| {
        row.of_phase(row.phase.observations.utilisation.as_ref().map(|seen| seen.fraction))
    }),
    ("samples_per_second", |row| {
        row.of_phase(row.phase.observations.utilisation.as_ref().map(|seen| seen.samples_per_second))
    }),
    own!("pass"),
    ("blocking_ns", |row| row.of_blocking(|seen| Some(seen.blocking_ns))),
    ("copy_ns", |row| row.of_blocking(|seen| seen.is_async.then_some(seen.copy_ns))),
    ("stall_ns", |row| row.of_blocking(|seen| seen.is_async.then_some(seen.stall_ns))),
    ("flush_ns", |row| row.of_blocking(|seen| seen.flush_ns)),
    ("commits", |row| row.of_commits(|seen| seen.commits)),
    ("syncs", |row| row.of_commits(|seen| seen.syncs)),
    ("epoch_ns", |row| {
        let seen = row.phase.observations.utilisation.as_ref().filter(|_| row.is_total);
        seen.and_then(|seen| seen.epoch_ns).map_or_else(String::new, |ns| ns.to_string())
    }),
];

/// Columns of the table by pair.
const PAIR_COLUMNS: &[&str] = &[
    "name",
    "master",
    "endpoint",
    "operations",
    "bytes",
    "errors",
    "operations_per_second",
    "sent_bytes_per_second",
    "received_bytes_per_second",
    "latency_ns_min",
    "latency_ns_mean",
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p99",
    "latency_ns_p99_9",
    "latency_ns_max",
    "causes",
    "run_id",
    "started_at",
];

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

/// One header line, then one line a class and one for the total of every phase; lines end with a line feed.
///
/// Times are nanoseconds, sizes bytes, rates per second; figures that are not known are empty. Several targets or
/// doubts stand in one field, with semicolons between them. Of the latencies, the mean and all figures from
/// `latency_lower_bound_from_percent` on (the largest value: 100) are lower bounds; none are where it is empty.
#[must_use]
pub fn to_csv(record: &Record) -> String {
    let header = COLUMNS.iter().map(|(header, _)| (*header).to_owned()).collect();
    let rows = record.phases.iter().flat_map(|phase| {
        let classes = phase.summary.classes.iter().filter(|class| class.operations + class.errors > 0);
        let total = std::iter::once((&phase.summary.total, true));
        let rows = classes.map(|class| (class, false)).chain(total);
        rows.map(move |(class, is_total)| {
            let row = Row { record, phase, class, is_total };
            COLUMNS.iter().map(|(_, text)| text(&row)).collect()
        })
    });
    written(std::iter::once(header).chain(rows))
}

fn written(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = WriterBuilder::new().terminator(Terminator::Any(b'\n')).from_writer(Vec::new());
    // A vector takes every write, and every row has the header's length: nothing here can fail.
    rows.for_each(|fields| drop(writer.write_record(fields)));
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Phases whose bytes have a direction, by pair of master and endpoint: one header line, then one line a pair; the master is empty where
/// this process drives. Figures cover the whole phase, warm-up included.
#[must_use]
pub fn to_csv_by_pair(record: &Record) -> String {
    let header = PAIR_COLUMNS.iter().map(|header| (*header).to_owned()).collect();
    let phases = record.phases.iter().filter_map(|phase| Some((phase, phase.plan.direction_bytes()?)));
    let rows = phases.flat_map(|(phase, direction_bytes)| {
        by_origin(&phase.samples).into_iter().flat_map(move |origin| {
            let master = origin.origin.unwrap_or_default();
            origin.parts.into_iter().map(move |part| pair_row(record, phase, direction_bytes, &master, &part))
        })
    });
    written(std::iter::once(header).chain(rows))
}

const HOST_COLUMNS: &[&str] = &[
    "name",
    "rank",
    "host",
    "operations",
    "bytes",
    "errors",
    "operations_per_second",
    "bytes_per_second",
    "latency_ns_min",
    "latency_ns_mean",
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p99",
    "latency_ns_p99_9",
    "latency_ns_max",
    "start_lateness_ns",
    "failure",
    "run_id",
    "started_at",
];

/// Phases that several hosts carried out, by host: one header line, then one line a phase and host. Figures cover the whole phase, warm-up
/// included.
#[must_use]
pub fn to_csv_by_host(record: &Record) -> String {
    let header = HOST_COLUMNS.iter().map(|header| (*header).to_owned()).collect();
    let phases = record.phases.iter().filter(|phase| phase.plan.load().place.is_some());
    let rows = phases.flat_map(|phase| {
        let origins = by_origin(&phase.samples);
        record.hosts.iter().filter_map(move |host| {
            let origin = origins.iter().find(|origin| origin.origin.as_deref() == Some(&*host.name))?;
            Some(host_row(record, phase, host, origin))
        })
    });
    written(std::iter::once(header).chain(rows))
}

fn host_row(record: &Record, phase: &PhaseRecord, host: &HostRecord, origin: &OriginSummary) -> Vec<String> {
    let figures = &origin.figures;
    let latency = figures.latency.as_ref();
    let time = |figure: fn(&LatencySummary) -> Option<u64>| {
        latency.and_then(figure).map_or_else(String::new, |ns| ns.to_string())
    };
    let start = phase.host_starts.iter().find(|start| start.rank == host.rank);
    let own = |worker: &&statistics::WorkerSamples| worker.origin.as_deref() == Some(&*host.name);
    let failure = phase.samples.workers.iter().filter(own).find_map(|worker| worker.failure.clone());
    vec![
        phase.plan.name().clone(),
        host.rank.to_string(),
        host.name.clone(),
        figures.operations.to_string(),
        figures.bytes.to_string(),
        figures.errors.to_string(),
        figures.operations_per_second.to_string(),
        figures.bytes_per_second.to_string(),
        time(|latency| Some(latency.min_ns)),
        number(latency.map(|latency| latency.mean_ns)),
        time(|latency| Some(latency.p50_ns)),
        time(|latency| latency.p90_ns),
        time(|latency| latency.p99_ns),
        time(|latency| latency.p99_9_ns),
        time(|latency| Some(latency.max_ns)),
        start.map_or_else(String::new, |start| start.lateness_ns.to_string()),
        failure.unwrap_or_default(),
        record.run_id.clone(),
        phase.started_at.clone(),
    ]
}

fn pair_row(
    record: &Record,
    phase: &PhaseRecord,
    (out, back): (u64, u64),
    master: &str,
    part: &PartSummary,
) -> Vec<String> {
    let figures = &part.figures;
    let rate = figures.operations_per_second;
    let latency = figures.latency.as_ref();
    let time = |figure: fn(&LatencySummary) -> Option<u64>| {
        latency.and_then(figure).map_or_else(String::new, |ns| ns.to_string())
    };
    let causes = figures.causes.iter().map(|cause| format!("{} {}", cause.count, cause.cause));
    vec![
        phase.plan.name().clone(),
        master.to_owned(),
        phase.plan.part_label(part.part).map_or_else(|| part.part.to_string(), str::to_owned),
        figures.operations.to_string(),
        figures.bytes.to_string(),
        figures.errors.to_string(),
        rate.to_string(),
        (rate * out as f64).to_string(),
        (rate * back as f64).to_string(),
        time(|latency| Some(latency.min_ns)),
        number(latency.map(|latency| latency.mean_ns)),
        time(|latency| Some(latency.p50_ns)),
        time(|latency| latency.p90_ns),
        time(|latency| latency.p99_ns),
        time(|latency| latency.p99_9_ns),
        time(|latency| Some(latency.max_ns)),
        causes.collect::<Vec<_>>().join(";"),
        record.run_id.clone(),
        phase.started_at.clone(),
    ]
}
