//! From what was typed to what will be done.

use gpu::GpuPath;
use units::ByteSize;
use workload::access::Pattern;
use workload::class_sizes::ClassSizes;
use workload::content::Refill;
use workload::plan::{
    Amount, ArrivalPlan, ContentPlan, LoadPlan, PlanError, UNLIMITED_TIME_NS, content, load, refuse,
};
use workload::replay::{Replay, ReplayPlan};
use workload::spec::{LadderDimension, Operation, Share, Spacing, Spec};
use workload::target::{TargetKind, TargetPlan};

use super::checks::{check_direct, check_engine, check_fitted, check_one_writer, check_pairs, check_share};
use super::course::course;
use super::zoned::{Phase, zoned};
use super::{MediaPlan, MixPlan};
use crate::engine::EngineOptions;
use crate::spec::{self, CachePolicy, Layout};
use crate::target::TargetFacts;

/// Range that a target without a size of its own gets: large enough that random positions do not repeat soon.
const SIZELESS_RANGE_BYTES: u64 = 1 << 40;
/// Memory that each worker walks when no size is given: larger than a processor's caches.
const MEMORY_RANGE_BYTES: u64 = 256 << 20;
/// Largest block: the kernel moves at most 2 GiB less a page a call.
const BLOCK_SIZE_BYTES_MAX: u64 = 1 << 30;

/// Facts of the chosen driver that planning needs.
#[derive(Clone, Copy, Debug)]
pub struct EngineFacts {
    /// Its name.
    pub name: &'static str,
    /// Classes that it carries out.
    pub classes: &'static [&'static str],
    /// Whether it takes a depth above 1.
    pub asynchronous: bool,
    /// Largest depth.
    pub depth_max: u32,
    /// Whether it needs no path (`null:`, `mem:`).
    pub targetless: bool,
    /// Whether `--direct` means something to it.
    pub direct: bool,
    /// Engine options that it honours.
    pub options: &'static [&'static str],
}

/// The driver for a spec that names none: `null`, `mem` and `rbd` for their targets, psync at depth 1, io_uring above.
#[must_use]
pub fn default_engine(spec: &Spec, facts: &[TargetFacts], io_uring_allowed: bool) -> &'static str {
    let own = spec::of(spec);
    let climbs_depth = spec.saturate
        || spec.ladder.as_ref().is_some_and(|ladder| {
            ladder.dimension == LadderDimension::Depth && ladder.values.iter().any(|&depth| depth > 1)
        });
    let on_gpu = matches!(own.memory.memory, Some(gpu::MemoryChoice::Gpu(_)));
    match facts.first().map(|target| target.kind) {
        Some(TargetKind::Null) => "null",
        Some(TargetKind::Memory) if on_gpu => "gpu_copy",
        Some(TargetKind::Memory) => "mem",
        _ if let Some(engine) = own.memory.gpu_path.and_then(cufile_engine) => engine,
        Some(TargetKind::Image) => "rbd",
        _ if spec.depth.unwrap_or(1) == 1 && !climbs_depth && own.operations != [Operation::Nop] => "psync",
        _ if io_uring_allowed => "io_uring",
        _ => "libaio",
    }
}

/// Resolves one operation of a spec on targets with known facts into a phase.
///
/// # Errors
/// Whatever the request asks for that cannot be.
pub fn resolve(
    spec: &Spec,
    operation: Operation,
    facts: &[TargetFacts],
    engine: &EngineFacts,
    seed: u64,
) -> Result<MediaPlan, PlanError> {
    let own = spec::of(spec);
    if facts.is_empty() {
        return refuse("no target: give a file, a block device, rbd:POOL/IMAGE, null: or mem:".to_owned());
    }
    check_pairs(spec)?;
    let sizes = block_sizes(spec, operation)?;
    let mix = mix(spec, operation)?;
    let pattern = pattern(spec, operation)?;
    let options = engine_options(spec, engine)?;
    check_engine(spec, operation, mix, engine)?;
    let mut targets = target_ranges(spec, facts, &sizes)?;
    let phase = Phase { spec, operation, mix, pattern: &pattern, sizes: &sizes, engine, options: &options };
    let zoned = zoned(&phase, facts, &mut targets)?;
    let align_bytes = alignment(spec, &sizes, &pattern)?;
    if options.direct {
        check_direct(&targets, &sizes, align_bytes)?;
    }
    let sizeless = !facts.iter().all(has_end);
    let mut load = load(spec, spec.depth.unwrap_or(1), sizeless.then_some(UNLIMITED_TIME_NS), seed)?;
    let is_stored = facts.iter().any(|target| target.kind.is_storage());
    // Storage may compress or compare whole records of many blocks: only data that is new everywhere is incompressible.
    let content = content(spec, if is_stored { Refill::Full } else { Refill::Once })?;
    let course = course(spec, operation, &sizes, &pattern, &targets)?;
    check_fitted(&pattern, &sizes, &targets)?;
    let verify_interval_bytes = verify_interval(spec, &sizes, align_bytes, &content, mix, &load)?;
    let share = spec.share.unwrap_or(Share::Partition);
    check_share(&targets, &sizes, share, load.workers())?;
    let grain_bytes = verify_interval_bytes.and_then(|_| grain(&sizes, align_bytes));
    let shares_grains = grain_bytes.is_some() && course.is_none() && mix.write_percent > 0;
    check_one_writer(&pattern, shares_grains && load.workers() > 1)?;
    schedule(&mut load, spec.replay.as_deref());
    load.batch = spec.batch.unwrap_or_else(|| default_batch(load.depth, options.direct, &targets));
    Ok(MediaPlan {
        name: spec.name.clone().unwrap_or_else(|| operation.name().to_owned()),
        engine: engine.name.to_owned(),
        options,
        targets,
        operation,
        mix,
        pattern,
        course,
        zoned,
        block_size: sizes.to_string(),
        block_size_bytes_max: sizes.max(),
        align_bytes,
        share,
        content,
        verify_interval_bytes,
        fsync_every: own.fsync,
        end_fsync: own.end_fsync,
        verify_run: own.verify_run,
        verify_grain_bytes: grain_bytes,
        verify_pattern: own.verify_pattern.clone(),
        verify_backlog: own.verify_backlog.filter(|_| mix.write_percent > 0),
        verify_dump: own.verify_dump.clone(),
        serialize_overlap: own.serialize_overlap,
        replay: spec.replay.as_deref().map(replay_plan),
        layout: layout(spec, mix, verify_interval_bytes),
        cache: own.cache.unwrap_or(CachePolicy::Keep),
        huge_pages: own.huge_pages,
        memory: memory(spec, engine)?,
        load,
    })
}

fn has_end(target: &TargetFacts) -> bool {
    target.kind.is_storage() || target.kind == TargetKind::Name
}

fn replay_plan(replay: &Replay) -> ReplayPlan {
    ReplayPlan {
        log: replay.log.clone(),
        operations: replay.steps.len() as u64,
        is_timed: replay.is_timed,
        steps: replay.steps.clone(),
    }
}

/// Makes a load an open one that starts operations when a log says, where one does.
fn schedule(load: &mut LoadPlan, replay: Option<&Replay>) {
    let Some(replay) = replay.filter(|replay| replay.is_timed) else { return };
    let last_ns = replay.steps.last().map_or(0, |step| step.at_ns).max(1);
    let rate_per_second = replay.steps.len() as f64 * f64::from(load.threads) * 1e9 / last_ns as f64;
    load.arrivals = Some(ArrivalPlan { rate_per_second, kind: Spacing::Constant });
    load.schedule = Some(replay.steps.iter().map(|step| step.at_ns).collect());
}

fn block_sizes(spec: &Spec, operation: Operation) -> Result<ClassSizes, PlanError> {
    let default = if operation.is_random() || operation == Operation::Nop { "4KiB" } else { "1MiB" };
    let sizes: ClassSizes = spec.block_size.as_deref().unwrap_or(default).parse()?;
    if sizes.max() > BLOCK_SIZE_BYTES_MAX {
        return refuse(format!("block size {} is too large: use 1GiB or less", ByteSize(sizes.max())));
    }
    Ok(sizes)
}

/// Blocks that are only checked are never made: made anew they would be right, whatever became of those that were written.
fn layout(spec: &Spec, mix: MixPlan, verify_interval_bytes: Option<u64>) -> Layout {
    let own = spec::of(spec);
    let is_check = verify_interval_bytes.is_some() && mix.write_percent == 0 && mix.discard_percent == 0;
    match own.layout {
        _ if is_check => Layout::Existing,
        // How much there will be is not known, so nothing is allocated.
        _ if spec.control.ends_when_full => Layout::Sparse,
        layout => layout.unwrap_or_default(),
    }
}

fn mix(spec: &Spec, operation: Operation) -> Result<MixPlan, PlanError> {
    let own = spec::of(spec);
    let pure = |read_percent, write_percent, discard_percent| MixPlan {
        read_percent,
        write_percent,
        discard_percent,
    };
    let plan = match operation {
        Operation::Read | Operation::RandRead => pure(100, 0, 0),
        Operation::Write | Operation::RandWrite => pure(0, 100, 0),
        Operation::Discard | Operation::RandDiscard => pure(0, 0, 100),
        Operation::DiscardWrite | Operation::RandDiscardWrite => pure(0, 50, 50),
        Operation::Nop => pure(0, 0, 0),
        Operation::ReadWrite | Operation::RandRw => pure(50, 50, 0),
    };
    match &own.mix {
        Some(mix) if operation.is_mixed() => Ok(*mix),
        Some(_) if own.operations.iter().any(|operation| operation.is_mixed()) => Ok(plan),
        Some(_) => refuse(format!("--mix goes with --op readwrite or randrw, not with {}", operation.name())),
        None => Ok(plan),
    }
}

fn pattern(spec: &Spec, operation: Operation) -> Result<Pattern, PlanError> {
    let own = spec::of(spec);
    let default = if operation.is_random() { Pattern::Permutation } else { Pattern::Sequential };
    let Some(text) = &spec.pattern else { return Ok(default) };
    let pattern: Pattern = text.parse()?;
    if pattern.is_random() == operation.is_random() {
        return Ok(pattern);
    }
    if own.operations.iter().any(|other| other.is_random() == pattern.is_random()) {
        return Ok(default);
    }
    let kind = if operation.is_random() {
        "permutation, fitted, uniform, zipf, pareto, normal or zoned"
    } else {
        "sequential, backward or strided"
    };
    refuse(format!("--pattern {pattern} does not go with --op {}: use {kind}", operation.name()))
}

fn engine_options(spec: &Spec, engine: &EngineFacts) -> Result<EngineOptions, PlanError> {
    let own = spec::of(spec);
    if let Some(option) = own.engine_options_given.iter().find(|option| !engine.options.contains(option)) {
        return refuse(format!(
            "--{option} is not an option of engine {}: see `strata list` for the engine that has it",
            engine.name
        ));
    }
    let EngineOptions { direct, iopoll, sqpoll, sqpoll_core, .. } = own.options;
    if direct && !engine.direct {
        return refuse(format!(
            "--direct has no effect on engine {}: use psync, pvsync2, libaio or io_uring",
            engine.name
        ));
    }
    if iopoll && !direct {
        return refuse("--iopoll requires --direct: add it".to_owned());
    }
    if sqpoll_core.is_some() && !sqpoll {
        return refuse("--sqpoll-core requires --sqpoll: add it".to_owned());
    }
    Ok(EngineOptions { sync_call: own.sync_call.unwrap_or_default(), ..own.options.clone() })
}

/// Memory of the buffers. Engines of GPUs need it there.
fn memory(spec: &Spec, engine: &EngineFacts) -> Result<gpu::MemoryPlan, PlanError> {
    let own = spec::of(spec);
    let memory = own.memory.plan(gpu_path_of(engine.name)).or_else(refuse)?;
    let needs_gpu = gpu_path_of(engine.name).is_some() || ["gpu_copy", "gpu_mem"].contains(&engine.name);
    if needs_gpu && memory.gpu().is_none() {
        return refuse(format!("engine {} requires GPU memory: give --memory gpu", engine.name));
    }
    let cufile = memory.gpu().and_then(|plan| cufile_engine(plan.path));
    if let Some(cufile) = cufile.filter(|_| !needs_gpu) {
        let path = memory.gpu().map_or("", |plan| plan.path.name());
        return refuse(format!(
            "engine {} does not support --gpu-path {path}: use --engine {cufile}",
            engine.name
        ));
    }
    if own.huge_pages && cufile.is_some() {
        return refuse("--huge-pages is for host buffers, and cufile has none: leave it out".to_owned());
    }
    Ok(memory)
}

/// Engines of GPUDirect Storage, and the way to memory of a GPU that each goes by.
const CUFILE_ENGINES: [(&str, GpuPath); 3] = [
    ("cufile", GpuPath::Cufile),
    ("cufile_batch", GpuPath::CufileBatch),
    ("cufile_stream", GpuPath::CufileStream),
];

/// The way to memory of a GPU that an engine goes by; none where it may be staged.
fn gpu_path_of(engine: &str) -> Option<GpuPath> {
    CUFILE_ENGINES.iter().find(|(name, _)| *name == engine).map(|(_, path)| *path)
}

/// The engine that goes by a way.
fn cufile_engine(path: GpuPath) -> Option<&'static str> {
    CUFILE_ENGINES.iter().find(|(_, way)| *way == path).map(|(name, _)| *name)
}

fn target_ranges(
    spec: &Spec,
    facts: &[TargetFacts],
    sizes: &ClassSizes,
) -> Result<Vec<TargetPlan>, PlanError> {
    facts.iter().enumerate().map(|(at, target)| target_range(spec, at, target, sizes)).collect()
}

fn target_range(
    spec: &Spec,
    at: usize,
    target: &TargetFacts,
    sizes: &ClassSizes,
) -> Result<TargetPlan, PlanError> {
    let own = spec::of(spec);
    let offset_bytes = own.offset.map_or(0, |offset| offset.0);
    let listed = own.sizes.as_ref().filter(|listed| !listed.is_empty());
    let asked = listed.map(|listed| listed[at % listed.len()]).or(own.size).map(|size| size.0);
    let size_bytes = match target.kind {
        TargetKind::Null | TargetKind::CharacterDevice => asked.unwrap_or(SIZELESS_RANGE_BYTES),
        TargetKind::Memory => asked.unwrap_or(MEMORY_RANGE_BYTES),
        // One operation a name.
        TargetKind::Name => sizes.max(),
        TargetKind::File if spec.control.ends_when_full && asked.is_none() => fill_bytes(target, sizes),
        TargetKind::File if !target.exists || target.size_bytes == 0 => match asked {
            Some(size) => size,
            None => return refuse(format!("{} does not exist yet: give --size to create it", target.path)),
        },
        TargetKind::BlockDevice | TargetKind::Image | TargetKind::File => {
            let left = target.size_bytes.saturating_sub(offset_bytes);
            // A file is made longer where a size is given.
            let is_fixed = target.kind != TargetKind::File;
            if left == 0 && (is_fixed || asked.is_none()) {
                return refuse(format!(
                    "--offset {} is past the end of {} ({})",
                    Amount(offset_bytes),
                    target.path,
                    Amount(target.size_bytes)
                ));
            }
            if is_fixed && asked.is_some_and(|size| size > left) {
                return refuse(format!(
                    "--size {} is more than {} has after the offset: use {} or less",
                    Amount(asked.unwrap_or(0)),
                    target.path,
                    Amount(left)
                ));
            }
            asked.unwrap_or(left)
        }
    };
    if offset_bytes.checked_add(size_bytes).is_none_or(|end| end > i64::MAX as u64) {
        return refuse("offset plus size is more than 8EiB: use less".to_owned());
    }
    if sizes.max() > size_bytes {
        return refuse(format!(
            "block size {} is larger than the range of {} ({}): use {} or less",
            Amount(sizes.max()),
            target.path,
            Amount(size_bytes),
            Amount(size_bytes)
        ));
    }
    Ok(TargetPlan {
        path: target.path.clone(),
        kind: target.kind,
        offset_bytes,
        size_bytes,
        direct_alignment_bytes: target.direct_alignment_bytes,
    })
}

/// Size that a file may come to have where it is written until there is no room: all that is free, and a block more.
fn fill_bytes(target: &TargetFacts, sizes: &ClassSizes) -> u64 {
    let most = target.size_bytes.saturating_add(target.free_bytes.unwrap_or(SIZELESS_RANGE_BYTES));
    (most / sizes.max()).saturating_add(2).saturating_mul(sizes.max())
}

fn alignment(spec: &Spec, sizes: &ClassSizes, pattern: &Pattern) -> Result<u64, PlanError> {
    let own = spec::of(spec);
    match own.align {
        None => Ok(sizes.max()),
        Some(_) if !pattern.is_random() => {
            refuse("--align is for random operations: leave it out".to_owned())
        }
        Some(_) if *pattern == Pattern::Fitted && sizes.single().is_none() => {
            refuse("--pattern fitted places blocks without gaps: leave out --align".to_owned())
        }
        Some(align) => Ok(align.0),
    }
}

/// All free slots; one by one on a drive without the page cache before it, which would run dry while a batch is put together.
/// Measured: bench/RESULTS.md, batch.
pub(super) fn default_batch(depth: u32, direct: bool, targets: &[TargetPlan]) -> u32 {
    let on_drive = targets.iter().any(|target| target.kind.is_local_storage());
    if direct && on_drive { 1 } else { depth }
}

fn verify_interval(
    spec: &Spec,
    sizes: &ClassSizes,
    align_bytes: u64,
    content: &ContentPlan,
    mix: MixPlan,
    load: &LoadPlan,
) -> Result<Option<u64>, PlanError> {
    let own = spec::of(spec);
    if !spec.verify {
        return match own.verify_interval {
            Some(_) => refuse("--verify-interval requires --verify: add it".to_owned()),
            None => Ok(None),
        };
    }
    if spec.content.is_some()
        || content.compress_percent > 0
        || content.dedupe_percent > 0
        || spec.refill.is_some()
    {
        return refuse(
            "--verify generates its own data: leave out --content, --compress, --dedupe and --refill"
                .to_owned(),
        );
    }
    let unit = grain(sizes, align_bytes).unwrap_or(sizes.max());
    if unit < 512 || !unit.is_multiple_of(512) {
        return refuse(
            "--verify needs blocks and positions of whole 512-byte sectors: use multiples of 512 for --block-size and --align"
                .to_owned(),
        );
    }
    if own
        .verify_pattern
        .as_ref()
        .is_some_and(|pattern| pattern.bytes.iter().all(|byte| *byte == 0) && pattern.offsets_at.is_empty())
    {
        return refuse("--verify-pattern of zeros cannot detect lost blocks: use another pattern".to_owned());
    }
    if spec.share == Some(Share::Whole) && load.workers() > 1 && mix.write_percent > 0 {
        return refuse("--verify needs one writer per block: leave out --share whole".to_owned());
    }
    let interval = own.verify_interval.map_or(unit.min(4096), |size| size.0);
    let interval =
        if own.verify_interval.is_none() && !unit.is_multiple_of(interval) { 512 } else { interval };
    if interval < 512 || !interval.is_multiple_of(512) || !unit.is_multiple_of(interval) {
        return refuse(format!(
            "verification interval {} does not divide block size {} into parts of whole 512-byte sectors: use 4k and a multiple of it",
            Amount(interval),
            Amount(unit)
        ));
    }
    Ok(Some(interval))
}

/// Divisor of blocks of several sizes, or of offsets other than their multiples; none where they are of one size.
fn grain(sizes: &ClassSizes, align_bytes: u64) -> Option<u64> {
    let unit = workload::block_size::common_divisor(sizes.granularity(), align_bytes);
    (unit != sizes.max()).then_some(unit)
}
