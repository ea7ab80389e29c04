//! The figures of a phase: of the record, and by `statistics` over its samples.

use report::record::{PhaseRecord, Record};
use statistics::Histogram;
use workload::plan::PhasePlan;

/// Totals of one kind of operations until a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Done {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) operations_per_second: f64,
    pub(crate) bytes_per_second: f64,
}

impl Done {
    fn new(operations: u64, bytes: u64, elapsed_ns: u64) -> Self {
        let rate = |amount: u64| if elapsed_ns == 0 { 0.0 } else { amount as f64 * 1e9 / elapsed_ns as f64 };
        Self { operations, bytes, operations_per_second: rate(operations), bytes_per_second: rate(bytes) }
    }

    /// So many more, or fewer, operations for the same bytes.
    fn scaled(self, factor: f64) -> Self {
        Self {
            operations: (self.operations as f64 * factor) as u64,
            operations_per_second: self.operations_per_second * factor,
            ..self
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            bytes: self.bytes + other.bytes,
            operations_per_second: self.operations_per_second + other.operations_per_second,
            bytes_per_second: self.bytes_per_second + other.bytes_per_second,
        }
    }
}

/// Reads or writes of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// By the time that the first thread was done.
    pub(crate) first: Done,
    /// By the time that the last one was.
    pub(crate) last: Done,
    pub(crate) latency: Histogram,
    /// Failed operations; in nothing else.
    pub(crate) errors: u64,
}

impl Side {
    pub(crate) fn is_empty(&self) -> bool {
        self.last.operations == 0
    }
}

/// A phase of the table, which may have been several that ran at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// Figures of the operations that the phase is named for: the writes, where there are both.
    pub(crate) main: Side,
    /// The reads of a mix.
    pub(crate) mixed_reads: Side,
    /// Whole objects, files or directories, where many are measured; `main` has their parts.
    pub(crate) entries: Option<Side>,
    /// Busy share of the machine's processors, in percent.
    pub(crate) cpu_percent: Option<f64>,
    /// Time of each thread, nanoseconds.
    pub(crate) threads_ns: Vec<u64>,
    pub(crate) started_at: String,
}

fn first_ns(phase: &PhaseRecord) -> u64 {
    let summary = &phase.summary;
    summary.first_done.as_ref().unwrap_or(&summary.last_done).elapsed_ns
}

impl Figures {
    /// The figures of phases that ran at the same time; none for none. `is_mix` where reads are apart from writes.
    pub(crate) fn of(record: &Record, phases: &[&PhaseRecord], is_mix: bool) -> Option<Self> {
        let first_ns = phases.iter().map(|phase| first_ns(phase)).min()?;
        let last_ns = phases.iter().map(|phase| phase.summary.last_done.elapsed_ns).max()?;
        let plan = &phases.first()?.plan;
        if let Some(bytes) = plan.direction_bytes() {
            return Some(Self::of_network(record, phases, bytes, (first_ns, last_ns)));
        }
        if plan.layer() == "object" {
            return Some(Self::of_objects(record, phases, plan, (first_ns, last_ns)));
        }
        if plan.layer() == "filesystem" {
            return Some(Self::of_entries(record, phases, plan.operation_name(), (first_ns, last_ns)));
        }
        let side = |class: &str| side(phases, class, first_ns, last_ns);
        let writes_only = phases.iter().all(|phase| number(&phase.plan, "/mix/read_percent") == 0);
        let (main, mixed_reads) = match (is_mix, writes_only) {
            (true, _) => (side("write"), side("read")),
            (false, true) => (side("write"), Side::default()),
            (false, false) => (side("read"), Side::default()),
        };
        let workers = phases.iter().flat_map(|phase| &phase.samples.workers);
        Some(Self {
            first_ns,
            last_ns,
            main,
            mixed_reads,
            entries: None,
            cpu_percent: cpu_percent(record, phases),
            threads_ns: workers.map(|worker| worker.finished_ns).collect(),
            started_at: phases.first().map(|phase| phase.started_at.clone()).unwrap_or_default(),
        })
    }
}

impl Figures {
    /// Requests as writes, replies as reads: each byte once, by its direction.
    fn of_network(
        record: &Record,
        phases: &[&PhaseRecord],
        (request_bytes, reply_bytes): (u64, u64),
        (first_ns, last_ns): (u64, u64),
    ) -> Self {
        let rpcs = side(phases, "rpc", first_ns, last_ns);
        let done = |done: Done, bytes: u64, ns: u64| Done::new(done.operations, done.operations * bytes, ns);
        let of = |bytes: u64| Side {
            first: done(rpcs.first, bytes, first_ns),
            last: done(rpcs.last, bytes, last_ns),
            ..Side::default()
        };
        let sent = of(request_bytes);
        let workers = phases.iter().flat_map(|phase| &phase.samples.workers);
        Self {
            first_ns,
            last_ns,
            main: Side { latency: rpcs.latency, errors: rpcs.errors, ..sent },
            mixed_reads: of(reply_bytes),
            entries: None,
            cpu_percent: cpu_percent(record, phases),
            threads_ns: workers.map(|worker| worker.finished_ns).collect(),
            started_at: phases.first().map(|phase| phase.started_at.clone()).unwrap_or_default(),
        }
    }

    /// Objects, and the parts or ranges that they are moved in.
    fn of_objects(
        record: &Record,
        phases: &[&PhaseRecord],
        plan: &PhasePlan,
        (first_ns, last_ns): (u64, u64),
    ) -> Self {
        let operation = plan.operation_name();
        let done = side(phases, operation, first_ns, last_ns);
        let part_bytes = number(plan, "/options/s3_part_size_bytes");
        let parts = match operation {
            "put" if part_bytes > 0 => plan.operation_bytes_max().div_ceil(part_bytes).max(1),
            _ => 1,
        };
        let scaled = |factor: f64| Side {
            first: done.first.scaled(factor),
            last: done.last.scaled(factor),
            errors: done.errors,
            ..Side::default()
        };
        let (main, entries) = match operation {
            "put" if parts > 1 => (scaled(parts as f64), Some(done)),
            "read" => {
                let whole = scaled(1.0 / number(plan, "/dataset/records").max(1) as f64);
                (done, Some(whole))
            }
            "stat" | "remove" => (Side { errors: done.errors, ..Side::default() }, Some(done)),
            "list" => (done, None),
            _ => (done.clone(), Some(done)),
        };
        let workers = phases.iter().flat_map(|phase| &phase.samples.workers);
        Self {
            first_ns,
            last_ns,
            main,
            mixed_reads: Side::default(),
            entries,
            cpu_percent: cpu_percent(record, phases),
            threads_ns: workers.map(|worker| worker.finished_ns).collect(),
            started_at: phases.first().map(|phase| phase.started_at.clone()).unwrap_or_default(),
        }
    }

    /// Files or directories, and the reads or writes of the files.
    fn of_entries(
        record: &Record,
        phases: &[&PhaseRecord],
        operation: &str,
        (first_ns, last_ns): (u64, u64),
    ) -> Self {
        let of = |class: &str| side(phases, class, first_ns, last_ns);
        let (mut main, entries) = match operation {
            "tree-create" => (Side::default(), Some(of("mkdir"))),
            "tree-remove" => (Side::default(), Some(of("rmdir"))),
            "stat" | "unlink" => (Side::default(), Some(of(operation))),
            // A file is done when it is closed, and takes as long as all its calls.
            "write" | "read" => {
                let mut files = Side { latency: Histogram::new(), ..of("close") };
                let workers = phases.iter().flat_map(|phase| &phase.samples.workers);
                workers
                    .filter_map(|worker| worker.items.as_ref())
                    .for_each(|items| files.latency.merge_sparse(items));
                (of(operation), Some(files))
            }
            _ => (Side::default(), None),
        };
        let workers = || phases.iter().flat_map(|phase| &phase.samples.workers);
        main.errors = workers().flat_map(|worker| &worker.classes).map(|totals| totals.errors).sum();
        Self {
            first_ns,
            last_ns,
            main,
            mixed_reads: Side::default(),
            entries,
            cpu_percent: cpu_percent(record, phases),
            threads_ns: workers().map(|worker| worker.finished_ns).collect(),
            started_at: phases.first().map(|phase| phase.started_at.clone()).unwrap_or_default(),
        }
    }

    /// The use of processors by the time that the first and the last thread were done. It is measured over a whole phase, so both
    /// are that.
    pub(crate) fn cpu_texts(&self) -> [String; 2] {
        let text = self.cpu_percent.map(|percent| (percent as u64).to_string()).unwrap_or_default();
        [text.clone(), text]
    }
}

/// A number of a plan, by its JSON pointer; 0 where it has none there.
fn number(plan: &PhasePlan, pointer: &str) -> u64 {
    plan.value(pointer).and_then(|value| value.as_u64()).unwrap_or(0)
}

fn side(phases: &[&PhaseRecord], name: &str, first_ns: u64, last_ns: u64) -> Side {
    let mut side = Side::default();
    let (mut first, mut last) = ((0.0, 0.0), (0, 0));
    for phase in phases {
        let samples = &phase.samples;
        let Some(class) = samples.classes.iter().position(|class| class == name) else { continue };
        let (mut operations, mut bytes) = (0, 0);
        for totals in samples.workers.iter().filter_map(|worker| worker.classes.get(class)) {
            operations += totals.operations;
            bytes += totals.bytes;
            side.errors += totals.errors;
            side.latency.merge_sparse(&totals.latency);
        }
        last = (last.0 + operations, last.1 + bytes);
        let by_first = if first_ns >= phase.summary.last_done.elapsed_ns {
            (operations as f64, bytes as f64)
        } else {
            samples.done_by(Some(class), first_ns)
        };
        first = (first.0 + by_first.0, first.1 + by_first.1);
    }
    side.first = Done::new(first.0.round() as u64, first.1.round() as u64, first_ns);
    side.last = Done::new(last.0, last.1, last_ns);
    side
}

/// The machine's use where it was told, else that of the process; none for hosts of several machines, whose processors are not known
/// here.
fn cpu_percent(record: &Record, phases: &[&PhaseRecord]) -> Option<f64> {
    let is_here = |name: &Option<String>| name.is_some() && *name == record.environment.system.hostname;
    if !record.hosts.iter().all(|host| is_here(&host.host_name)) {
        return None;
    }
    let cores = f64::from(record.environment.processor.logical_cores?);
    let of_machine = phases.iter().filter_map(|phase| phase.observations.machine_cpus_busy).reduce(f64::max);
    let busy =
        of_machine.unwrap_or_else(|| phases.iter().map(|phase| phase.summary.cpus_used).fold(0.0, f64::max));
    (cores > 0.0).then(|| (busy * 100.0 / cores).min(100.0))
}

/// Upper ends of the buckets that elbencho shows, in microseconds, and how many values each holds: four to a power of two.
pub(crate) fn quarter_buckets(latency: &Histogram) -> Vec<(f64, u64)> {
    let mut buckets: Vec<(f64, u64)> = Vec::new();
    for bucket in latency.buckets() {
        let us = (bucket.midpoint_ns() as f64 / 1000.0).max(1.0);
        let end = 2f64.powf(((us.log2() * 4.0).floor() + 1.0) / 4.0);
        match buckets.last_mut() {
            Some((last, count)) if *last == end => *count += bucket.count,
            _ => buckets.push((end, bucket.count)),
        }
    }
    buckets
}

/// A number of microseconds: with one decimal below 10, else whole.
pub(crate) fn us_text(us: f64) -> String {
    if us < 10.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}

/// A latency as elbencho writes it: `123us`, `1.23ms`, `12.3s`.
pub(crate) fn latency_text(ns: f64) -> String {
    let us = ns / 1000.0;
    let (value, unit) = match us {
        _ if us < 1000.0 => return format!("{}us", us as u64),
        _ if us < 1e6 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    };
    let decimals = match value {
        _ if value < 10.0 => 2,
        _ if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

/// A time as elbencho writes it: `12ms`, `1.001s`, `2m3.456s`, `3h25m45s`.
pub(crate) fn elapsed_text(ns: u64) -> String {
    let ms = ns / 1_000_000;
    let (hours, minutes, seconds, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    if hours > 0 {
        format!("{hours}h{minutes}m{seconds}s")
    } else if minutes > 0 {
        format!("{minutes}m{seconds}.{ms:03}s")
    } else if seconds > 0 {
        format!("{seconds}.{ms:03}s")
    } else {
        format!("{ms}ms")
    }
}

/// RFC 3339 in UTC as elbencho's dates: `2026-01-02T03:04:05.000+0000`.
pub(crate) fn date_text(rfc3339: &str) -> String {
    let (date, fraction) = date_parts(rfc3339);
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    format!("{date}.{digits}+0000")
}

/// The same to the second, as in the file of `--resfile`.
pub(crate) fn date_text_seconds(rfc3339: &str) -> String {
    format!("{}+0000", date_parts(rfc3339).0)
}

fn date_parts(rfc3339: &str) -> (&str, &str) {
    let text = rfc3339.strip_suffix('Z').unwrap_or(rfc3339);
    text.split_once('.').unwrap_or((text, ""))
}
