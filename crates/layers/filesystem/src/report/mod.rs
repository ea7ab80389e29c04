//! The report of the file-system layer: lines and doubts.

mod doors;
mod stack_remedies;

use report::doubts::{Evidence, Kind};
use report::page::{Page, Style};
use report::profile::ProfileRemedy;
use report::record::{PhaseRecord, Record};
use report::stack::{Remedy, RemedyCase};
use report::view::View;
use units::human::{human_bytes, human_ns};
use units::{clean, count};

use crate::phases::FsOp;
use crate::plan::FsPlan;
use crate::set::Shape;

/// The report of the file-system layer.
pub static VIEW: &dyn View = &Files;

/// Share of the bytes read that the devices must have given for the phase not to be one of the page cache.
const FETCHED_SHARE_MIN: f64 = 0.9;

/// Bytes that a store must have taken in a phase, and their share of the bytes written, to be told of.
const GROWN_BYTES_MIN: u64 = 64 << 20;
const GROWN_SHARE_MIN: f64 = 0.1;

struct Files;

impl View for Files {
    fn layer(&self) -> &'static str {
        "filesystem"
    }

    fn places(&self, page: &mut Page, phase: &PhaseRecord) {
        let Some(plan) = phase.plan.of::<FsPlan>() else { return };
        let targets: Vec<_> = plan.targets.iter().map(|target| clean(target)).collect();
        page.field("on", &targets.join(", "), Style::Plain);
        let rule = match plan.set.shape {
            Shape::Tree if plan.set.shared_tree => "; one tree, worker r uses the names of rank r",
            Shape::Tree => "; worker r has tree r",
            Shape::Private => "; worker r has file r",
            Shape::Shared => "; worker r has part r of each segment",
        };
        if let Some((door, target)) = plan.door.zip(plan.door_target.as_ref()) {
            page.field("door", &format!("{} of {}", door.name(), clean(target)), Style::Plain);
        }
        page.field("data", &format!("{}{rule}", plan.data_words()), Style::Plain);
    }

    fn detail(&self, page: &mut Page, phase: &PhaseRecord) {
        let (Some(plan), Some(seen)) = (phase.plan.of::<FsPlan>(), &phase.observations.files) else { return };
        let noun = if plan.set.shape == Shape::Tree { "items" } else { "blocks" };
        if let Some(found) = &seen.found {
            let text = format!("{} of {} entries", count(found.matched), count(found.entries));
            page.field("found", &text, Style::Strong);
        }
        if let Some(wall) = &seen.stonewall {
            let text = format!(
                "after {}: {} {noun}, {} to {} per worker; each worker continued to {}",
                human_ns(wall.after_ns as f64),
                count(wall.items),
                count(wall.items_min),
                count(wall.items_max),
                count(wall.items_max),
            );
            page.field("stonewall", &text, Style::Plain);
        }
    }

    fn together(&self, record: &Record) -> Vec<usize> {
        doors::phases(record)
    }

    fn overview(&self, page: &mut Page, record: &Record) {
        doors::block(page, record);
    }

    fn stack_remedies(&self, case: &RemedyCase<'_>) -> Vec<Remedy> {
        stack_remedies::remedies(case)
    }

    fn doubts(&self) -> &'static [Kind] {
        KINDS
    }

    fn profile_remedies(&self) -> &'static [ProfileRemedy] {
        PROFILE_REMEDIES
    }
}

/// Calls that programs can do without.
const PROFILE_REMEDIES: &[ProfileRemedy] = &[
    ProfileRemedy {
        part: "open",
        against: Some(("read", 0.5)),
        text: "keep files open between reads, or put several items into one file",
    },
    ProfileRemedy {
        part: "create",
        against: Some(("write", 0.5)),
        text: "put several items into one file: each new file changes a directory and takes an inode",
    },
    ProfileRemedy {
        part: "stat",
        against: Some(("read", 0.5)),
        text: "store sizes in an index, or use a read buffer that is large enough",
    },
    ProfileRemedy {
        part: "fsync",
        against: Some(("write", 0.5)),
        text: "sync once after several writes (--fsync N with a larger N): each sync waits for the device",
    },
];

const KINDS: &[Kind] = &[
    Kind {
        rank: 80,
        name: "page_cache",
        look: page_cache,
        remedy: "read with --direct, with --cache drop, or with --rank-shift data that another machine wrote",
    },
    Kind {
        rank: 150,
        name: "not_durable",
        look: not_durable,
        remedy: "add --end-fsync, so that a file counts only when it is on the storage",
    },
    Kind {
        rank: 210,
        name: "store_grew",
        look: store_grew,
        remedy: "write a fixed number of files or bytes (no --time), or repeat the phase in the same pool",
    },
];

/// Reads that the page cache answered.
fn page_cache(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<FsPlan>()?;
    let read = evidence.bytes_of("read");
    if plan.operation != FsOp::Read || plan.direct || plan.engine == "dfs" || plan.door.is_some() || read == 0
    {
        return None;
    }
    let fetched = evidence.observations.process_fetched_bytes?;
    let share = fetched as f64 / read as f64;
    (share < FETCHED_SHARE_MIN).then(|| {
        format!(
            "only {} of {} read came from storage; the rest came from memory",
            human_bytes(fetched as f64),
            human_bytes(read as f64)
        )
    })
}

/// A store in this process that takes its space while it is measured.
fn store_grew(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<FsPlan>().filter(|plan| plan.operation.phase().changes && !plan.is_fill)?;
    let grown_bytes = evidence.observations.files.as_ref()?.grown_bytes?;
    let share = grown_bytes as f64 / evidence.bytes_of("write").max(1) as f64;
    (plan.engine == "dfs" && grown_bytes >= GROWN_BYTES_MIN && share > GROWN_SHARE_MIN).then(|| {
        format!(
            "the store grew by {} during the measurement, which includes clearing pages or allocating blocks",
            human_bytes(grown_bytes as f64)
        )
    })
}

/// Writes that nothing made durable.
fn not_durable(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<FsPlan>()?;
    let written = evidence.bytes_of("write");
    let is_synced = plan.end_fsync || plan.fsync_every.is_some() || plan.phase_sync || plan.direct;
    let is_real = !matches!(plan.engine.as_str(), "null" | "dfs") && plan.door.is_none() && !plan.is_fill;
    (plan.operation == FsOp::Write && written > 0 && !is_synced && is_real).then(|| {
        format!("{} were written to the page cache and never made durable", human_bytes(written as f64))
    })
}
