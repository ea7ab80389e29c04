//! Plans and stores of the object layer in words.

use report::record::{StoreActivity, StoreSpace};
use units::human::{human_bytes, human_ns};
use units::{ByteSize, clean, count, counted};
use vos::Checksum;

use crate::plan::{ObjectPlan, Scope, ValueKind};

/// Data set that a phase works on: `2 objects x 256 dkeys x 16 akeys x 16 records: 131k single values of 64B`.
pub(super) fn data(plan: &ObjectPlan) -> String {
    let set = &plan.dataset;
    let counts = [(set.objects, "object"), (set.dkeys, "dkey"), (set.akeys, "akey"), (set.records, "record")];
    // One of something needs no word, but there is always an object.
    let counts = counts.iter().enumerate().filter(|(at, (count, _))| *at == 0 || *count > 1);
    let counts: Vec<String> = counts.map(|(_, (number, noun))| dimension(*number, noun)).collect();
    let kind = match set.value {
        ValueKind::Single => "single values",
        ValueKind::Array => "extents",
    };
    let private = if plan.object_scope == Scope::Private { " a worker" } else { "" };
    format!(
        "{}{private}: {} {kind} of {}",
        counts.join(" x "),
        count(set.record_count()),
        clean(&set.value_size)
    )
}

fn dimension(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", count(number)) }
}

/// Where the data lies, and under what: `vos:/mnt/pmem, container strata, checksum crc32`.
pub(super) fn place(plan: &ObjectPlan) -> String {
    let checksum = match plan.options.checksum {
        Checksum::Off => "no checksum".to_owned(),
        checksum => format!("checksum {}", format!("{checksum:?}").to_lowercase()),
    };
    let stores = matches!(plan.engine.as_str(), "vos" | "engine" | "daos");
    let container =
        if stores { format!(", container {}, {checksum}", clean(&plan.container)) } else { String::new() };
    format!("{}{container}", clean(&plan.target))
}

/// Facts that the store reports: `1 target, durable by msync; SCM 34.1 MiB of 2 GiB used (+34 MiB); index 4.1 MiB of memory`.
pub(super) fn store(seen: &StoreActivity) -> String {
    let mut words = vec![counted(seen.targets.into(), "target")];
    if !seen.durable_by.is_empty() {
        words.push(format!("durable by {}", clean(&seen.durable_by)));
    }
    let mut parts = vec![words.join(", ")];
    if let Some(after) = &seen.after {
        parts.extend(space("SCM", seen.before.as_ref(), after, |space| {
            (space.scm_bytes, space.scm_free_bytes)
        }));
        parts.extend(space("NVMe", seen.before.as_ref(), after, |space| {
            (space.nvme_bytes, space.nvme_free_bytes)
        }));
        if after.index_bytes > 0 {
            parts.push(format!("index uses {} of memory", human_bytes(after.index_bytes as f64)));
        }
    }
    if let Some(own) = &seen.acknowledged {
        parts.push(format!(
            "{} acknowledged updates in {} ({}, {} writing, {} waiting)",
            own.updates,
            clean(&own.file),
            human_bytes(own.bytes as f64),
            human_ns(own.write_ns as f64),
            human_ns(own.waited_ns as f64),
        ));
    }
    parts.join("; ")
}

/// One kind of space: how much of it is used, and what the phase changed.
fn space(
    name: &str,
    before: Option<&StoreSpace>,
    after: &StoreSpace,
    of: fn(&StoreSpace) -> (u64, u64),
) -> Option<String> {
    let used = |space: &StoreSpace| {
        let (all, free) = of(space);
        all.saturating_sub(free)
    };
    let (all, _) = of(after);
    let change = before.map_or_else(String::new, |before| {
        let (was, is) = (used(before), used(after));
        match is.cmp(&was) {
            std::cmp::Ordering::Equal => String::new(),
            std::cmp::Ordering::Greater => format!(" (+{})", human_bytes((is - was) as f64)),
            std::cmp::Ordering::Less => format!(" (-{})", human_bytes((was - is) as f64)),
        }
    });
    (all > 0).then(|| {
        format!("{name} {} of {} used{change}", human_bytes(used(after) as f64), ByteSize(all).human())
    })
}
