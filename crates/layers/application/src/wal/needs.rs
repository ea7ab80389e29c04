//! Databases whose logs are measured, and what they need, as far as anybody has published it.

use report::record::{PhaseRecord, PresetUnit};
use statistics::ClassSummary;

/// Value of a figure in a round; none where the round has too few operations for it.
pub(super) type ValueOf = fn(&PhaseRecord) -> Option<f64>;

/// A figure of a database, and what it is held against.
pub(super) struct Need {
    /// Its key.
    pub(super) key: &'static str,
    pub(super) unit: PresetUnit,
    pub(super) value: ValueOf,
    /// Figure that is needed; none where nobody has published one.
    pub(super) needed: Option<f64>,
    /// Where that comes from.
    pub(super) source: &'static str,
}

/// A database by its pattern of the application `database`.
pub(super) struct Database {
    /// Its pattern.
    pub(super) name: &'static str,
    /// Its log in words.
    pub(super) log: &'static str,
    pub(super) needs: &'static [Need],
    /// Whether one client commits at a time.
    pub(super) is_single: bool,
}

/// Figures of the class of commits.
fn commits(phase: &PhaseRecord) -> Option<&ClassSummary> {
    phase.summary.classes.iter().find(|class| class.class == "commit")
}

const RATE: ValueOf = |phase| Some(commits(phase)?.operations_per_second);
const P99: ValueOf = |phase| Some(commits(phase)?.latency.as_ref()?.p99_ns? as f64);

const fn rate(key: &'static str, needed: Option<f64>, source: &'static str) -> Need {
    Need { key, unit: PresetUnit::OperationsPerSecond, value: RATE, needed, source }
}

const fn p99(key: &'static str, needed: Option<f64>, source: &'static str) -> Need {
    Need { key, unit: PresetUnit::Nanoseconds, value: P99, needed, source }
}

const ETCD: &str = "etcd: hardware recommendations, and p99 of wal_fsync below 10 ms (a rule of thumb)";
const SQLITE: &str =
    "SQLite's FAQ: about 60 transactions per second on a 7200 rpm disk (a rule of thumb, not a requirement)";

/// All of them.
pub(super) static DATABASES: &[Database] = &[
    Database {
        name: "etcd",
        log: "1 KiB, fdatasync, preallocated",
        needs: &[
            rate("etcd light load", Some(50.0), ETCD),
            rate("etcd heavy load", Some(500.0), ETCD),
            p99("etcd p99", Some(10e6), ETCD),
        ],
        is_single: false,
    },
    Database {
        name: "postgresql",
        log: "8 KiB, fdatasync, preallocated",
        needs: &[rate("postgresql", None, ""), p99("postgresql p99", None, "")],
        is_single: false,
    },
    Database {
        name: "sqlite",
        log: "4 KiB, fdatasync, growing file",
        needs: &[rate("sqlite", Some(60.0), SQLITE), p99("sqlite p99", None, "")],
        is_single: true,
    },
    Database {
        name: "rocksdb",
        log: "1 KiB, fdatasync, growing file",
        needs: &[rate("rocksdb", None, ""), p99("rocksdb p99", None, "")],
        is_single: false,
    },
];
