//! Options of `strata wal`.

use units::parse_u64_in;
use workload::options::value::names;
use workload::options::{self, Group, OptionDef};

use super::needs::DATABASES;

/// Options of the measurement, as typed.
#[derive(Clone, Debug, Default)]
pub(super) struct WalSpec {
    /// Commits of a round.
    pub(super) commits: Option<u64>,
    /// Rounds of each database.
    pub(super) rounds: Option<u64>,
    /// Clients that commit at the same time.
    pub(super) clients: Option<u64>,
    /// Databases that are measured; all where none are named.
    pub(super) only: Vec<String>,
}

/// Options of a load of an application that hold for all phases.
const OF_LOADS: &[&str] = &["seed", "cores", "numa", "keep", "target-options"];

/// The options of loads that hold here too.
pub(super) fn of_loads() -> impl Iterator<Item = &'static OptionDef> {
    options::of(crate::LAYER).filter(|option| OF_LOADS.contains(&option.name))
}

/// Options of its own.
pub(super) static OWN: &[OptionDef<WalSpec>] = &[
    OptionDef {
        name: "only",
        short: None,
        value: "NAME[,NAME...]",
        default: "all: etcd, postgresql, sqlite, rocksdb",
        help: "Databases to measure",
        group: Group::Workload,
        apply: |spec, text| {
            spec.only.extend(names("a database", text, DATABASES.iter().map(|database| database.name))?);
            Ok(())
        },
    },
    OptionDef {
        name: "commits",
        short: None,
        value: "N",
        default: "2000",
        help: "Commits per client and round; p99 requires 1000 over all clients",
        group: Group::Load,
        apply: |spec, text| {
            spec.commits = Some(parse_u64_in("commits", text, 1..=1_000_000)?);
            Ok(())
        },
    },
    OptionDef {
        name: "rounds",
        short: None,
        value: "N",
        default: "5",
        help: "Rounds per database, databases in turn; 2 to 100",
        group: Group::Load,
        apply: |spec, text| {
            spec.rounds = Some(parse_u64_in("rounds", text, 2..=100)?);
            Ok(())
        },
    },
    OptionDef {
        name: "clients",
        short: None,
        value: "N",
        default: "1",
        help: "Clients that commit at the same time (group commit); sqlite always has one",
        group: Group::Load,
        apply: |spec, text| {
            spec.clients = Some(parse_u64_in("clients", text, 1..=1024)?);
            Ok(())
        },
    },
];
