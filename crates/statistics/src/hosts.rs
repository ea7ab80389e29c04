//! Many hosts in one live view: a row for each, and what all that drive do together.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::confidence::median_of;
use crate::histogram::{Histogram, SparseHistogram};
use crate::snapshot::{Snapshot, Waiting, WorkerSnapshot};

/// A host that drives less than the median by more than this share lags.
pub const LAG_MAX: f64 = 0.2;
/// Names shown of phases that run at the same time.
const NAMES_MAX: usize = 3;

/// Role of a host in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRole {
    /// Drives load, and serves nobody.
    #[default]
    Client,
    /// Drives load, and serves others.
    Master,
    /// Serves.
    Server,
}

impl HostRole {
    /// Whether it drives load: only then its bytes are part of the total.
    #[must_use]
    pub fn drives(self) -> bool {
        self != Self::Server
    }
}

impl fmt::Display for HostRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client => "client",
            Self::Master => "master",
            Self::Server => "server",
        })
    }
}

/// One host, or one process of it, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSnapshot {
    /// Label of the host: `node01:1611`, or `2:0`.
    pub label: String,
    /// Its role.
    pub role: HostRole,
    /// Share done, 0 to 1; none when it cannot be told, as with servers.
    pub done_fraction: Option<f64>,
    /// Operations so far; of a server those that it answered.
    pub operations: u64,
    /// Bytes so far, in both directions.
    pub bytes: u64,
    /// Failed operations so far.
    pub errors: u64,
    /// Operations a second in the latest interval.
    pub operations_per_second: f64,
    /// Bytes a second in the latest interval, in both directions.
    pub bytes_per_second: f64,
    /// Median latency of the latest interval, nanoseconds; none for servers.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latency of the latest interval, nanoseconds; none for servers.
    pub p99_ns: Option<u64>,
    /// Workers at work; of a server the connections that are open.
    pub workers_active: u64,
    /// Processors kept busy in the latest interval: by the process that drives; of a server by the service threads that are driven.
    /// None when it is not known.
    pub cpus_used: Option<f64>,
    /// Why it is no longer part of the run, or cannot be looked at: one line.
    pub failure: Option<String>,
}

/// Report on a host that drives load.
#[derive(Clone, Copy, Debug)]
pub struct MasterReport<'a> {
    /// Label of the host.
    pub label: &'a str,
    /// [`HostRole::Client`] or [`HostRole::Master`].
    pub role: HostRole,
    /// The latest that it told; none before the first.
    pub snapshot: Option<&'a Snapshot>,
    /// Whether it has ended: what it told last is over.
    pub has_ended: bool,
    /// Why it is no longer part of the run: one line.
    pub failure: Option<&'a str>,
}

impl MasterReport<'_> {
    fn is_at_work(&self) -> bool {
        !self.has_ended && self.failure.is_none()
    }

    /// A host that has ended without a failure has done all.
    fn done_fraction(&self) -> Option<f64> {
        let done = self.snapshot?.done_fraction;
        if self.has_ended && self.failure.is_none() { done.map(|_| 1.0) } else { done }
    }
}

/// Joins what the hosts of a run tell into one snapshot.
///
/// The hosts that drive make the totals: classes are united by name, in the order in which they first appear, rates and counts
/// are added, workers follow each other. Servers only have their rows, before those that drive: the bytes that they count are the same
/// ones, and each byte counts once. A host that has ended or failed keeps its counts and has no rates. No more is done than of the host that has done
/// least, among those without a failure. The time gone by is the longest.
///
/// Percentiles come from the latencies of all hosts' latest intervals, merged without loss. Where a host tells percentiles without its
/// latencies, there are none for all, unless it is the only one.
#[must_use]
pub fn join_hosts(masters: &[MasterReport<'_>], servers: Vec<HostSnapshot>) -> Snapshot {
    let mut all = Snapshot { hosts: servers, ..Snapshot::default() };
    all.hosts.extend(masters.iter().map(row));
    let mut names: Vec<&str> = Vec::new();
    for (master, part) in masters.iter().filter_map(|master| Some((master, master.snapshot?))) {
        if !names.contains(&part.phase.as_str()) {
            names.push(&part.phase);
        }
        add(&mut all, part, master.is_at_work());
    }
    all.phase = names[..names.len().min(NAMES_MAX)].join(" + ");
    if names.len() > NAMES_MAX {
        all.phase.push_str(" + ...");
    }
    let at_work = masters.iter().filter(|master| master.is_at_work());
    let latencies = at_work.filter_map(|master| Some(&master.snapshot?.latency));
    all.latency = SparseHistogram::sum(latencies, &mut Histogram::new());
    let alive = |master: &&MasterReport<'_>| master.failure.is_none();
    all.done_fraction = least_done(masters.iter().filter(alive)).or_else(|| least_done(masters.iter()));
    (all.p50_ns, all.p99_ns) = percentiles(&all.latency, masters);
    all
}

/// The row of a host that drives.
fn row(master: &MasterReport<'_>) -> HostSnapshot {
    let mut row = HostSnapshot {
        label: master.label.to_owned(),
        role: master.role,
        failure: master.failure.map(str::to_owned),
        ..HostSnapshot::default()
    };
    let Some(part) = master.snapshot else { return row };
    row.done_fraction = master.done_fraction();
    (row.operations, row.bytes, row.errors) = (part.operations, part.bytes, part.errors);
    if master.is_at_work() {
        row.operations_per_second = part.operations_per_second.iter().sum::<f64>() + 0.0;
        row.bytes_per_second = part.bytes_per_second.iter().sum::<f64>() + 0.0;
        (row.p50_ns, row.p99_ns) = (part.p50_ns, part.p99_ns);
        row.workers_active = part.workers.iter().filter(|worker| worker.running).count() as u64;
        row.cpus_used = Some(part.cpus_used);
    }
    row
}

fn add(all: &mut Snapshot, part: &Snapshot, is_at_work: bool) {
    all.phase_number = all.phase_number.max(part.phase_number);
    all.phase_count = all.phase_count.max(part.phase_count);
    all.elapsed_ns = all.elapsed_ns.max(part.elapsed_ns);
    for (index, class) in part.classes.iter().enumerate() {
        let place = all.classes.iter().position(|known| known == class).unwrap_or_else(|| {
            all.classes.push(class.clone());
            all.operations_per_second.push(0.0);
            all.bytes_per_second.push(0.0);
            all.classes.len() - 1
        });
        if is_at_work {
            let rate = |rates: &[f64]| rates.get(index).copied().unwrap_or(0.0);
            all.operations_per_second[place] += rate(&part.operations_per_second);
            all.bytes_per_second[place] += rate(&part.bytes_per_second);
        }
    }
    all.waiting = Waiting::join(all.waiting, part.waiting);
    // Counts come from other hosts and may be anything.
    all.operations = all.operations.saturating_add(part.operations);
    all.bytes = all.bytes.saturating_add(part.bytes);
    all.errors = all.errors.saturating_add(part.errors);
    let ended = |worker: &WorkerSnapshot| WorkerSnapshot {
        operations_per_second: 0.0,
        bytes_per_second: 0.0,
        running: false,
        ..worker.clone()
    };
    if is_at_work {
        all.cpus_used += part.cpus_used;
        all.workers.extend_from_slice(&part.workers);
    } else {
        all.workers.extend(part.workers.iter().map(ended));
    }
}

fn least_done<'a>(masters: impl Iterator<Item = &'a MasterReport<'a>>) -> Option<f64> {
    masters.filter_map(MasterReport::done_fraction).reduce(f64::min)
}

fn percentiles(latency: &SparseHistogram, masters: &[MasterReport<'_>]) -> (Option<u64>, Option<u64>) {
    let at_work = masters.iter().filter(|master| master.is_at_work());
    let parts: Vec<&Snapshot> = at_work.filter_map(|master| master.snapshot).collect();
    match parts.iter().find(|part| part.p50_ns.is_some() && part.latency.is_empty()) {
        Some(only) if parts.len() == 1 => (only.p50_ns, only.p99_ns),
        Some(_) => (None, None),
        None => (latency.percentile(50.0), latency.percentile(99.0)),
    }
}

/// A host that lags behind the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laggard {
    /// Its place among the hosts.
    pub host: usize,
    /// By how much of the median its rate is below it, 0 to 1.
    pub below_median: f64,
}

/// The slowest of the hosts that drive and are still at work, where it lags behind their median by more than [`LAG_MAX`]. Bandwidths of the
/// latest interval and a worker are compared, rates of operations where no bytes move. One host alone does not lag.
#[must_use]
pub fn laggard(hosts: &[HostSnapshot]) -> Option<Laggard> {
    let at_work =
        |host: &HostSnapshot| host.role.drives() && host.failure.is_none() && host.workers_active > 0;
    let driving: Vec<(usize, &HostSnapshot)> =
        hosts.iter().enumerate().filter(|(_, host)| at_work(host)).collect();
    let find = |all: fn(&HostSnapshot) -> f64| -> Option<Laggard> {
        let rate = |host: &HostSnapshot| all(host) / host.workers_active as f64;
        let mut rates: Vec<f64> = driving.iter().map(|(_, host)| rate(host)).collect();
        let median = median_of(&mut rates)?;
        let (host, slowest) = driving.iter().min_by(|one, other| rate(one.1).total_cmp(&rate(other.1)))?;
        (median > 0.0).then(|| Laggard { host: *host, below_median: 1.0 - rate(slowest) / median })
    };
    find(|host| host.bytes_per_second)
        .or_else(|| find(|host| host.operations_per_second))
        .filter(|laggard| laggard.below_median > LAG_MAX)
}
