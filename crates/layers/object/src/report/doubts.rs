//! Doubts about whether an object store did what it was asked: durably, with data, from where it lies.

#[cfg(test)]
mod tests;

use report::doubts::{CLIENT_SATURATED, Evidence, Kind, LOOPBACK};
use units::human::human_bytes;
use units::{count, percent};
use vos::Durability;

use crate::plan::ObjectPlan;

/// Page faults that read a disk, for each operation, above which the store waits for a disk that is not part of the measurement.
const MAJOR_FAULTS_PER_OPERATION_MAX: f64 = 0.01;
/// Such faults that are worth a word.
const MAJOR_FAULTS_MIN: u64 = 100;
/// Share of the asked bytes below which reads that may be short found next to nothing.
const FOUND_SHARE_MIN: f64 = 0.01;
/// Space that a store took while it ran, as a share of the bytes written, from which pages that were cleared and blocks that were allocated
/// are part of what was measured.
const GROWN_SHARE_MIN: f64 = 0.1;
/// Such space that is worth a word: more than what is always kept ready.
const GROWN_BYTES_MIN: u64 = 64 << 20;

/// Kinds of doubts of the object layer.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        rank: 120,
        name: "found_nothing",
        look: found_nothing,
        remedy: "store the data first (leave out --no-fill), with the same --objects, --dkeys and --class",
    },
    Kind {
        rank: 150,
        name: "not_durable",
        look: not_durable,
        remedy: "leave out --durability: an update then counts as done only when it is durable, and updates in flight share a sync",
    },
    Kind { look: client_saturated, ..CLIENT_SATURATED },
    Kind {
        rank: 210,
        name: "store_grew",
        look: store_grew,
        remedy: "let the store allocate its space first (--allocate whole), or write a number of values (without --time)",
    },
    Kind {
        rank: 220,
        name: "paging",
        look: paging,
        remedy: "use fewer keys or a smaller --scm, so that store and index fit memory; or a directory on /dev/shm or DAX",
    },
    Kind { look: loopback, ..LOOPBACK },
];

/// The plan, where a store is measured and not strata itself.
fn plan_of<'a>(evidence: &Evidence<'a>) -> Option<&'a ObjectPlan> {
    evidence.plan.of::<ObjectPlan>().filter(|plan| plan.engine != "null")
}

fn not_durable(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence).filter(|plan| plan.any(|operation| operation.changes()))?;
    match plan.options.durability {
        Durability::Sync => None,
        Durability::Batch => Some(
            "updates counted as done up to 10 ms before they were durable (--durability batch)".to_owned(),
        ),
        Durability::None => {
            Some("updates counted as done without being durable (--durability none)".to_owned())
        }
    }
}

/// A store whose index or mapping does not fit memory reads a disk behind its own back.
fn paging(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence).filter(|plan| plan.engine == "vos")?;
    let faults = evidence.observations.major_faults;
    let operations = evidence.summary.last_done.operations.max(1);
    let each = faults as f64 / operations as f64;
    (faults >= MAJOR_FAULTS_MIN && each > MAJOR_FAULTS_PER_OPERATION_MAX).then(|| {
        let what = if plan.any(|operation| operation.loads()) { "reads" } else { "operations" };
        format!(
            "{} page faults read from a disk: {what} waited for the store's mapping or index",
            count(faults)
        )
    })
}

/// A store in this process that takes its space while it is measured.
fn store_grew(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence).filter(|plan| plan.engine == "vos")?;
    let grown_bytes = evidence.observations.store.as_ref()?.after?.grown_bytes;
    let changing: Vec<_> = plan.operations().filter(|operation| operation.changes()).collect();
    let changes = |name: &str| changing.iter().any(|operation| operation.name() == name);
    let written_bytes: u64 =
        evidence.summary.classes.iter().filter(|class| changes(&class.class)).map(|class| class.bytes).sum();
    let share = grown_bytes as f64 / written_bytes.max(1) as f64;
    (grown_bytes >= GROWN_BYTES_MIN && share > GROWN_SHARE_MIN).then(|| {
        format!(
            "the store allocated {} from the file system during the measurement: pages were cleared, or blocks allocated",
            human_bytes(grown_bytes as f64)
        )
    })
}

fn found_nothing(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence)?;
    let asked_bytes = plan.short_read_bytes?;
    let loads: Vec<_> = plan.operations().filter(|operation| operation.loads()).collect();
    let class = |name: &str| evidence.summary.classes.iter().find(|class| class.class == name);
    let classes = || loads.iter().filter_map(|operation| class(operation.name()));
    let operations: u64 = classes().map(|class| class.operations).sum();
    let share =
        classes().map(|class| class.bytes).sum::<u64>() as f64 / (operations * asked_bytes).max(1) as f64;
    (operations > 0 && share < FOUND_SHARE_MIN)
        .then(|| format!("reads found {} of the requested bytes: the data does not exist", percent(share)))
}

/// Beside a store in this process strata must be cheap; a client of a cluster has the same limit as one of a network.
fn client_saturated(evidence: &Evidence<'_>) -> Option<String> {
    plan_of(evidence)?;
    evidence.tool_took()
}

/// The store is on this machine, reached over its loopback interface.
fn loopback(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence)?;
    let urls = std::iter::once(&plan.target).chain(&plan.options.s3_endpoints);
    let mut hosts = urls.filter_map(|url| url.split_once("://")).map(|(_, rest)| rest);
    let host = hosts.find(|host| ["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own)))?;
    let host = host.split('/').next().unwrap_or(host);
    Some(format!("the store is at {host}: this tested loopback (a kernel memory copy), not a link"))
}
