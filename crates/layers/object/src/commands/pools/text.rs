//! Pools and containers as text.

use std::fmt::Write;

use units::ByteSize;
use vos::PoolUsage;
use vos::{ContainerInfo, PoolInfo};

use super::PoolFacts;

/// `12 MiB of 2 GiB used`.
fn used(all_bytes: u64, free_bytes: u64) -> String {
    let used_bytes = all_bytes.saturating_sub(free_bytes);
    format!("{} of {} used", ByteSize(used_bytes).human(), ByteSize(all_bytes).human())
}

fn space(info: &PoolInfo) -> String {
    let nvme = match info.nvme_bytes {
        0 => "no NVMe".to_owned(),
        bytes => format!("NVMe {}", used(bytes, info.nvme_free_bytes)),
    };
    format!("SCM {}, {nvme}", used(info.scm_bytes, info.scm_free_bytes))
}

/// One pool, a fact a line.
pub(super) fn pool(facts: &PoolFacts) -> String {
    let info = &facts.info;
    let mut text = format!(
        "pool        {}\nuuid        {}\ntargets     {}\nspace       {}\nindex       {} of memory\ncontainers  {}\ndurable by  {}\n",
        info.name,
        info.uuid,
        info.targets,
        space(info),
        ByteSize(info.index_bytes).human(),
        info.containers,
        facts.durable_by,
    );
    if let Some(own) = &facts.usage {
        text.push_str(&usage(info, own));
    }
    for finding in &facts.findings {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "found       {finding}");
    }
    text
}

/// Usage of the space: a line a container, the store's own, and what is free.
fn usage(info: &PoolInfo, usage: &PoolUsage) -> String {
    let human = |bytes: u64| ByteSize(bytes).human();
    let mut text = String::new();
    for own in &usage.containers {
        let name = own.label.clone().unwrap_or_else(|| format!("#{} (destroyed, not collected)", own.number));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "container   {name}: {} in {} values, {} for snapshots only, {} to be aggregated, {} overhead; {} objects, {} keys",
            human(own.value_bytes),
            own.values,
            human(own.snapshot_bytes),
            human(own.reclaimable_bytes),
            human(own.overhead_bytes),
            own.objects,
            own.keys,
        );
    }
    let _ = writeln!(text, "dead        {} of the log, freed by cleaning", human(usage.dead_bytes));
    let _ = writeln!(
        text,
        "free        SCM {}, NVMe {}",
        human(info.scm_free_bytes),
        human(info.nvme_free_bytes)
    );
    text
}

/// One line a pool.
pub(super) fn pools(pools: &[PoolFacts]) -> String {
    if pools.is_empty() {
        return "no pool\n".to_owned();
    }
    let line = |facts: &PoolFacts| {
        let info = &facts.info;
        format!(
            "{}  {}  {} targets  {} containers  {}\n",
            info.name,
            info.uuid,
            info.targets,
            info.containers,
            space(info)
        )
    };
    pools.iter().map(line).collect()
}

/// One container, a fact a line.
pub(super) fn container(info: &ContainerInfo) -> String {
    let snapshots: Vec<String> = info.snapshots.iter().map(ToString::to_string).collect();
    let snapshots = if snapshots.is_empty() { "none".to_owned() } else { snapshots.join(", ") };
    format!(
        "container   {}\nuuid        {}\nchecksum    {}\nepoch       {}\nsnapshots   {snapshots}\n",
        info.label,
        info.uuid,
        format!("{:?}", info.checksum).to_lowercase(),
        info.epoch,
    )
}

/// One line a container.
pub(super) fn containers(containers: &[ContainerInfo]) -> String {
    if containers.is_empty() {
        return "no container\n".to_owned();
    }
    let line = |info: &ContainerInfo| {
        let checksum = format!("{:?}", info.checksum).to_lowercase();
        format!("{}  {}  checksum {checksum}  {} snapshots\n", info.label, info.uuid, info.snapshots.len())
    };
    containers.iter().map(line).collect()
}
