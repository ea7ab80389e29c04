//! The zones of a phase's targets: what was asked for, held against what the devices say.

use units::ByteSize;
use workload::access::Pattern;
use workload::class_sizes::ClassSizes;
use workload::plan::{Amount, PlanError, refuse};
use workload::spec::{Operation, Share, Spec};
use workload::target::{TargetKind, TargetPlan};

use super::MixPlan;
use super::resolve::EngineFacts;
use crate::engine::EngineOptions;
use crate::spec;
use crate::target::TargetFacts;
use crate::zoned::{ZoneModel, ZonedChoice, ZonedFacts, ZonedPlan, ZonedTarget};

/// Parts of a phase that its zones must go with.
pub(super) struct Phase<'a> {
    pub(super) spec: &'a Spec,
    pub(super) operation: Operation,
    pub(super) mix: MixPlan,
    pub(super) pattern: &'a Pattern,
    pub(super) sizes: &'a ClassSizes,
    pub(super) engine: &'a EngineFacts,
    pub(super) options: &'a EngineOptions,
}

impl Phase<'_> {
    fn changes(&self) -> bool {
        self.mix.write_percent > 0 || self.mix.discard_percent > 0
    }

    fn depth(&self) -> u32 {
        self.spec.depth.unwrap_or(1)
    }
}

/// The zones of a phase, where `--zones zbd` asks for them; the ranges of its targets are cut to whole zones where that is allowed.
///
/// # Errors
/// Choices that the devices or the rest of the phase exclude; also writes to a host-managed device without `--zones zbd`.
pub(super) fn zoned(
    phase: &Phase<'_>,
    facts: &[TargetFacts],
    targets: &mut [TargetPlan],
) -> Result<Option<ZonedPlan>, PlanError> {
    let Some(choice) = &spec::of(phase.spec).zoned else {
        facts.iter().zip(targets).try_for_each(|(facts, target)| check_plain(phase, facts, target))?;
        return Ok(None);
    };
    check_together(phase)?;
    let zones = facts
        .iter()
        .zip(targets)
        .map(|(facts, target)| zones_of(phase, choice, facts, target))
        .collect::<Result<Vec<_>, _>>()?;
    let zone_bytes = zones.iter().map(|zones| zones.zone_size_bytes).min().unwrap_or(1);
    let skip = choice.skip.map_or(0, ByteSize::bytes);
    if !skip.is_multiple_of(zone_bytes) || (skip > 0 && phase.operation.is_random()) {
        return refuse(format!(
            "--zones zbd,skip leaves out whole zones after each zone of sequential operations: use a multiple of {}",
            Amount(zone_bytes)
        ));
    }
    check_workers(phase, &zones)?;
    let frequency = choice.reset_frequency.filter(|frequency| *frequency > 0.0);
    if choice.reset_threshold.is_some() && choice.reset_frequency.is_none() {
        return refuse("--zones zbd,reset-threshold requires reset-frequency: give both".to_owned());
    }
    Ok(Some(ZonedPlan {
        zone_depth: zone_depth(phase, choice, facts)?,
        targets: zones,
        worker_write_zones_max: choice.worker_open_max.unwrap_or(0),
        reads_beyond_write_pointer: choice.reads_beyond,
        reset_threshold: choice.reset_threshold.unwrap_or(0.0),
        reset_every_writes: frequency.map(|frequency| (1.0 / frequency).min(f64::from(u32::MAX)) as u64),
        skip_zones: skip / zone_bytes,
    }))
}

/// Writes of a host-managed device that miss a write pointer fail with EIO: they are refused before.
fn check_plain(phase: &Phase<'_>, facts: &TargetFacts, target: &TargetPlan) -> Result<(), PlanError> {
    let Some(zones) = facts.zoned.filter(|zones| zones.model == ZoneModel::HostManaged) else {
        return Ok(());
    };
    let is_conventional = target.offset_bytes + target.size_bytes <= zones.conventional_until_bytes;
    if !phase.changes() || is_conventional {
        return Ok(());
    }
    refuse(format!(
        "{} is a zoned block device (host-managed, zones of {}): writes that miss a zone's write pointer fail with EIO; give --zones zbd, which follows them and resets full zones",
        target.path,
        Amount(zones.zone_size_bytes)
    ))
}

/// Other options of a load that say where operations go.
fn check_together(phase: &Phase<'_>) -> Result<(), PlanError> {
    let own = spec::of(phase.spec);
    let spec = phase.spec;
    let plain = [Pattern::Sequential, Pattern::Permutation, Pattern::Uniform];
    let shapes = own.gap.is_some()
        || own.run.is_some()
        || own.random_percent.is_some()
        || own.own_positions
        || own.visit.is_some()
        || own.align.is_some();
    let wrong = [
        (phase.operation == Operation::Nop, "--op nop does not use zones: leave out --zones"),
        (
            phase.operation.is_pair(),
            "--zones zbd resets the zones that it discards, and a written zone must be reset before it is written again: use --op discard or write",
        ),
        (
            shapes || !plain.contains(phase.pattern),
            "--zones zbd sets positions itself, sequential or uniformly random: leave out --gap, --run, --random-percent, --own-positions, --visit, --align and other patterns",
        ),
        (
            spec.verify,
            "--verify expects a block where it was written, but --zones zbd rewrites a full zone from its start: leave out one of them",
        ),
        (spec.replay.is_some(), "a log and --zones zbd both set positions: leave out one of them"),
        (
            own.serialize_overlap,
            "--serialize-overlap has no effect with --zones zbd, which writes each byte of a zone once: leave it out",
        ),
        (
            spec.control.ends_when_full,
            "--end-when-full is for growing files: leave out --end-when-full or --zones zbd",
        ),
    ];
    match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, message)) => refuse((*message).to_owned()),
        None => Ok(()),
    }
}

/// The zones of one target; its range is cut to whole ones where that is allowed.
fn zones_of(
    phase: &Phase<'_>,
    choice: &ZonedChoice,
    facts: &TargetFacts,
    target: &mut TargetPlan,
) -> Result<ZonedTarget, PlanError> {
    if matches!(target.kind, TargetKind::Memory | TargetKind::Name | TargetKind::Image) {
        return refuse(format!("{} has no zones: leave out --zones", target.path));
    }
    if phase.changes() && !phase.engine.classes.contains(&"reset") {
        return refuse(format!(
            "engine {} cannot reset zones: use --engine psync, pvsync2, libaio or io_uring",
            phase.engine.name
        ));
    }
    let (zone, capacity) = match &facts.zoned {
        Some(zones) => device_zone(phase, choice, zones, &target.path)?,
        None => emulated_zone(choice, &target.path)?,
    };
    fit(choice, facts, target, zone)?;
    if phase.sizes.max() > capacity && phase.mix.discard_percent < 100 {
        return refuse(format!(
            "a zone of {} is too small for a block of {}: its capacity is {}",
            target.path,
            Amount(phase.sizes.max()),
            Amount(capacity)
        ));
    }
    if phase.mix.discard_percent > 0 && zone > u64::from(u32::MAX) {
        return refuse(format!(
            "zones of {} are too large to discard: they must be smaller than 4GiB",
            Amount(zone)
        ));
    }
    Ok(ZonedTarget {
        model: facts.zoned.map_or(ZoneModel::Emulated, |zones| zones.model),
        zone_size_bytes: zone,
        capacity_bytes: capacity,
        zones: target.size_bytes.div_ceil(zone),
        conventional_zones: facts.zoned.map_or(0, |zones| zones.conventional_zones),
        open_zones_max: facts.zoned.map_or(0, |zones| zones.open_zones_max),
        active_zones_max: facts.zoned.map_or(0, |zones| zones.active_zones_max),
        write_zones_max: write_zones_max(choice, facts.zoned.as_ref(), &target.path)?,
    })
}

fn device_zone(
    phase: &Phase<'_>,
    choice: &ZonedChoice,
    zones: &ZonedFacts,
    path: &str,
) -> Result<(u64, u64), PlanError> {
    if let Some(size) = choice.size.filter(|size| size.bytes() != zones.zone_size_bytes) {
        return refuse(format!(
            "{path} has zones of {}, not of {size}: leave out size of --zones zbd",
            Amount(zones.zone_size_bytes)
        ));
    }
    if let Some(capacity) = choice.capacity.filter(|capacity| capacity.bytes() != zones.capacity_bytes) {
        return refuse(format!(
            "{path} has zones with a capacity of {}, not of {capacity}: leave out capacity of --zones zbd, it is for emulated zones",
            Amount(zones.capacity_bytes)
        ));
    }
    if phase.mix.write_percent > 0 && zones.model == ZoneModel::HostManaged && !phase.options.direct {
        return refuse(format!(
            "{path} is host-managed: the page cache would change the order of writes; add --direct"
        ));
    }
    Ok((zones.zone_size_bytes, zones.capacity_bytes))
}

fn emulated_zone(choice: &ZonedChoice, path: &str) -> Result<(u64, u64), PlanError> {
    let Some(zone) = choice.size.map(ByteSize::bytes) else {
        return refuse(format!(
            "{path} is not a zoned block device: give a size for emulated zones (--zones zbd,size=64m), or leave out --zones"
        ));
    };
    let capacity = choice.capacity.map_or(zone, ByteSize::bytes);
    if capacity > zone {
        return refuse(format!(
            "--zones zbd: a capacity of {} is larger than zones of {}",
            Amount(capacity),
            Amount(zone)
        ));
    }
    Ok((zone, capacity))
}

/// A range is of whole zones, but for a shorter one at the end of its target.
fn fit(
    choice: &ZonedChoice,
    facts: &TargetFacts,
    target: &mut TargetPlan,
    zone: u64,
) -> Result<(), PlanError> {
    let end = target.offset_bytes + target.size_bytes;
    if choice.rounds {
        let (begin, end) = (target.offset_bytes.next_multiple_of(zone), end / zone * zone);
        if begin >= end {
            return refuse(format!(
                "the range of {} contains no whole zone of {}",
                target.path,
                Amount(zone)
            ));
        }
        (target.offset_bytes, target.size_bytes) = (begin, end - begin);
        return Ok(());
    }
    let is_end = facts.size_bytes > 0 && end == facts.size_bytes;
    if !target.offset_bytes.is_multiple_of(zone) || !(end.is_multiple_of(zone) || is_end) {
        return refuse(format!(
            "--zones zbd works on whole zones, and {} has zones of {}: use multiples of that for --offset and --size, or add ,round",
            target.path,
            Amount(zone)
        ));
    }
    Ok(())
}

fn write_zones_max(choice: &ZonedChoice, facts: Option<&ZonedFacts>, path: &str) -> Result<u32, PlanError> {
    let managed = facts.filter(|zones| zones.model == ZoneModel::HostManaged && !choice.ignores_limits);
    let limit = managed.map_or(0, ZonedFacts::write_zones_max);
    match choice.open_max.unwrap_or(0) {
        0 => Ok(limit),
        asked if limit == 0 || asked <= limit => Ok(asked),
        asked => refuse(format!(
            "--zones zbd,max-open={asked} is more than the {limit} zones that {path} allows to be open at once: use {limit} or less, or add ,ignore-limits"
        )),
    }
}

/// Workers of all hosts that share the range.
fn workers_sharing(spec: &workload::spec::Spec) -> u32 {
    let is_shared = spec.host_targets.unwrap_or_default() == workload::plan::HostTargets::Shared;
    let threads = spec.threads.unwrap_or(1);
    spec.place.filter(|_| is_shared).map_or(threads, |place| place.workers_of_all(threads))
}

/// Each worker of a divided range needs a zone of its own, and one that may be open.
fn check_workers(phase: &Phase<'_>, zones: &[ZonedTarget]) -> Result<(), PlanError> {
    let threads = workers_sharing(phase.spec);
    if phase.spec.share.unwrap_or(Share::Partition) != Share::Partition {
        return Ok(());
    }
    let count: u64 = zones.iter().map(|zones| zones.zones).sum();
    if count < u64::from(threads) {
        return refuse(format!(
            "{threads} threads cannot share {count} zones: use fewer threads, a larger --size, or --share whole"
        ));
    }
    let open = zones.iter().map(|zones| zones.write_zones_max).filter(|open| *open > 0).min();
    if let Some(open) = open.filter(|open| phase.mix.write_percent > 0 && zones.len() == 1 && *open < threads)
    {
        return refuse(format!(
            "{threads} threads cannot each keep a zone open when only {open} may be open: use --threads {open}, or --share whole"
        ));
    }
    Ok(())
}

/// Writes in flight in one zone: more than one where nothing on their way changes their order.
fn zone_depth(phase: &Phase<'_>, choice: &ZonedChoice, facts: &[TargetFacts]) -> Result<u32, PlanError> {
    let is_free = |facts: &TargetFacts| facts.zoned.is_none();
    let keeps = |facts: &TargetFacts| {
        facts.zoned.is_none_or(|zones| zones.keeps_write_order && phase.engine.name == "libaio")
    };
    match choice.depth {
        None if facts.iter().all(is_free) => Ok(phase.depth()),
        None | Some(1) => Ok(1),
        Some(depth) if facts.iter().all(keeps) => Ok(depth),
        Some(depth) => refuse(format!(
            "--zones zbd,depth={depth}: several writes in flight in a zone require --engine libaio, which submits in order, and a queue that keeps the order (scheduler mq-deadline, or Linux 6.10)"
        )),
    }
}
