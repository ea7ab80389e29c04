//! From settings to specs.

use driver::Error;
use units::{Rate, Span};
use workload::spec::{Operation, Refill, Share, Spec, Warmup};

use super::gpu::Gpu;
use super::paths::{Dataset, Kind};
use super::settings::{Mix, Order, Settings};
use super::table::{TABLE, TOOL};
use crate::options::{said, said_if, say, switch};

/// A phase of the table: one or more specs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Which time it is, from 0.
    pub(crate) iteration: u32,
    /// Its name.
    pub(crate) operation: String,
}

/// The phases, in order, and their specs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programme {
    pub(crate) steps: Vec<Step>,
    pub(crate) specs: Vec<Spec>,
    /// The step of each spec.
    pub(crate) step_of: Vec<usize>,
}

/// Access of a spec to its part of the paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// Percent of reads.
    Mixed(u64),
}

/// A part of the paths, and the threads that work on it.
struct Part {
    access: Access,
    /// Number of the first of its threads.
    first_thread: u32,
    threads: u32,
    offset_bytes: u64,
    /// Of each path.
    size_bytes: u64,
    pattern: Option<String>,
    /// Operations of all its threads, where the range is not done once as a whole.
    count: Option<u64>,
}

/// Makes the specs of all iterations.
///
/// # Errors
/// Parts that would be empty.
pub(crate) fn build(
    settings: &Settings,
    dataset: &Dataset,
    warnings: &mut Vec<String>,
) -> Result<Programme, Error> {
    let mut programme = Programme::default();
    for iteration in 0..settings.iterations {
        for is_write in [true, false] {
            if if is_write { settings.write } else { settings.read } {
                add(&mut programme, settings, dataset, iteration, is_write)?;
            }
        }
    }
    let blocks = dataset.blocks().saturating_mul(dataset.paths.len() as u64);
    let is_limited =
        settings.time.is_some() && !settings.endless && !matches!(settings.order, Order::Random { .. });
    if is_limited && !blocks.is_multiple_of(u64::from(settings.threads)) {
        warnings.push(format!(
            "{blocks} blocks cannot be divided evenly among {} threads: with --timelimit a few blocks are not used",
            settings.threads
        ));
    }
    Ok(programme)
}

/// Name of the write phase.
fn write_name(mix: Mix) -> String {
    match mix {
        Mix::None => "WRITE".to_owned(),
        Mix::Percent(percent) => format!("RWMIX{percent}"),
        Mix::Threads(threads) => format!("MIX-T{threads}"),
    }
}

fn add(
    programme: &mut Programme,
    settings: &Settings,
    dataset: &Dataset,
    iteration: u32,
    is_write: bool,
) -> Result<(), Error> {
    let operation = if is_write { write_name(settings.mix) } else { "READ".to_owned() };
    let access = match (is_write, settings.mix) {
        (false, _) => Access::Read,
        (true, Mix::Percent(percent)) => Access::Mixed(percent),
        (true, _) => Access::Write,
    };
    let parts = match (is_write, settings.mix, settings.order) {
        (true, Mix::Threads(readers), _) if readers > 0 => shared(settings, dataset, readers)?,
        (_, _, Order::Strided) if settings.threads > 1 => strided(settings, dataset, access)?,
        _ => vec![whole(settings, dataset, access)],
    };
    let is_first = programme.steps.is_empty();
    programme.steps.push(Step { iteration, operation: operation.clone() });
    for (number, part) in parts.iter().enumerate() {
        let mut spec = spec(settings, dataset, part)?;
        spec.name = Some(operation.clone());
        spec.concurrent = number > 0;
        spec.start_delay = settings.delay.filter(|_| !is_first);
        programme.specs.push(spec);
        programme.step_of.push(programme.steps.len() - 1);
    }
    Ok(())
}

/// The pattern of one thread's part, by what is done with it.
fn pattern(settings: &Settings, access: Access) -> Option<String> {
    match settings.order {
        Order::Sequential | Order::Strided => None,
        Order::Backward => Some("backward".to_owned()),
        // Aligned writes visit each block once, unless a generator is asked for.
        Order::Random { unaligned: false, repeats: false, .. } if access != Access::Read => {
            Some("permutation".to_owned())
        }
        Order::Random { .. } => Some("uniform".to_owned()),
    }
}

/// Operations of a part, where one pass over its range is not what ends it.
fn count(settings: &Settings, dataset: &Dataset, part_bytes: u64) -> Option<u64> {
    let is_bounded = match settings.order {
        Order::Random { unaligned, amount_bytes, .. } => unaligned || amount_bytes.is_some(),
        _ => false,
    };
    let is_needed = !settings.endless && (is_bounded || settings.time.is_some());
    is_needed.then_some(part_bytes / dataset.block_bytes)
}

fn whole(settings: &Settings, dataset: &Dataset, access: Access) -> Part {
    let bytes = match settings.order {
        Order::Random { .. } => dataset.random_bytes,
        _ => dataset.total_bytes(),
    };
    Part {
        access,
        first_thread: 0,
        threads: settings.threads,
        offset_bytes: 0,
        size_bytes: dataset.size_bytes,
        pattern: pattern(settings, access),
        count: count(settings, dataset, bytes),
    }
}

/// Some threads read their part of the paths while the others write theirs.
fn shared(settings: &Settings, dataset: &Dataset, readers: u32) -> Result<Vec<Part>, Error> {
    let (blocks, threads) = (dataset.blocks(), u64::from(settings.threads));
    let readers_wide = u64::from(readers);
    let read_blocks = match dataset.paths.len() {
        _ if readers == settings.threads => blocks,
        1 => blocks / threads * readers_wide,
        _ => (u128::from(blocks) * u128::from(readers_wide) / u128::from(threads)) as u64,
    };
    if read_blocks == 0 || (read_blocks == blocks && readers < settings.threads) {
        return TABLE.refuse(
            format!("{blocks} blocks per path are too few for {threads} threads with --rwmixthr"),
            "give a larger -s or a smaller -b",
        );
    }
    let part = |access, first_thread, threads: u32, first_block: u64, blocks: u64| {
        let paths = dataset.paths.len() as u64;
        let range_bytes = blocks.saturating_mul(dataset.block_bytes).saturating_mul(paths);
        let amount = match settings.order {
            Order::Random { amount_bytes: Some(_), .. } => {
                dataset.random_bytes / u64::from(settings.threads) * u64::from(threads)
            }
            _ => range_bytes,
        };
        Part {
            access,
            first_thread,
            threads,
            offset_bytes: first_block * dataset.block_bytes,
            size_bytes: blocks * dataset.block_bytes,
            pattern: pattern(settings, access),
            count: count(settings, dataset, amount),
        }
    };
    let mut parts = vec![part(Access::Read, 0, readers, 0, read_blocks)];
    if readers < settings.threads {
        let writers = settings.threads - readers;
        parts.insert(0, part(Access::Write, readers, writers, read_blocks, blocks - read_blocks));
    }
    Ok(parts)
}

/// Each thread takes every n-th block, from its own number on.
fn strided(settings: &Settings, dataset: &Dataset, access: Access) -> Result<Vec<Part>, Error> {
    if dataset.paths.len() > 1 {
        return TABLE.refuse("--strided with several threads takes one path", "give one path, or -t 1");
    }
    let threads = u64::from(settings.threads);
    let each = dataset.blocks() / threads;
    if each == 0 {
        return TABLE.refuse(
            format!("{} blocks are too few for {threads} threads", dataset.blocks()),
            "give a larger -s, a smaller -b or fewer threads (-t)",
        );
    }
    let part = |thread: u32| {
        let offset_bytes = u64::from(thread) * dataset.block_bytes;
        Part {
            access,
            first_thread: thread,
            threads: 1,
            offset_bytes,
            size_bytes: dataset.size_bytes - offset_bytes,
            // A stride longer than what is left of the path is a single block.
            pattern: (each > 1).then(|| format!("strided:{threads}")),
            count: Some(each),
        }
    };
    Ok((0..settings.threads).map(part).collect())
}

fn operation(settings: &Settings, access: Access) -> Operation {
    let is_random = matches!(settings.order, Order::Random { .. });
    match (access, is_random) {
        (Access::Read, false) => Operation::Read,
        (Access::Read, true) => Operation::RandRead,
        (Access::Write, false) => Operation::Write,
        (Access::Write, true) => Operation::RandWrite,
        (Access::Mixed(_), false) => Operation::ReadWrite,
        (Access::Mixed(_), true) => Operation::RandRw,
    }
}

/// Operations a second of all threads of a part.
fn rate(settings: &Settings, dataset: &Dataset, part: &Part) -> Result<Option<Rate>, Error> {
    let limit =
        if part.access == Access::Read { settings.read_limit_bytes } else { settings.write_limit_bytes };
    let Some(limit) = limit else { return Ok(None) };
    let per_second = limit as f64 * f64::from(part.threads) / dataset.block_bytes as f64;
    Rate::new(per_second).map(Some).map_err(|error| Error::usage(TOOL, error.to_string()))
}

/// Cores or nodes from that of the part's first thread on.
fn rotated(list: Option<&Vec<u32>>, first_thread: u32) -> Option<Vec<u32>> {
    let mut list = list?.clone();
    let by = first_thread as usize % list.len().max(1);
    list.rotate_left(by);
    Some(list)
}

fn spec(settings: &Settings, dataset: &Dataset, part: &Part) -> Result<Spec, Error> {
    let writes = part.access != Access::Read;
    let reads = part.access != Access::Write;
    let is_unaligned = matches!(settings.order, Order::Random { unaligned: true, .. });
    let engine = match settings.depth {
        _ if settings.mmap => "mmap",
        _ if settings.gpu.as_ref().is_some_and(Gpu::is_cufile) => "cufile",
        1 => "psync",
        _ => "libaio",
    };
    let layout = match dataset.kind {
        Kind::File if writes && settings.preallocate => Some("allocate"),
        // What elbencho writes grows the file: nothing is allocated beforehand.
        Kind::File if writes && !reads => Some("sparse"),
        _ => None,
    };
    let refill = if settings.refills { Refill::Full } else { Refill::Once };
    let usage = |error: units::ParseError| Error::usage(TOOL, error.to_string());
    let mut spec = Spec {
        targets: dataset.paths.clone(),
        block_size: Some(dataset.block_bytes.to_string()),
        threads: Some(part.threads),
        depth: Some(settings.depth),
        time: settings.time,
        count: part.count,
        warmup: Some(Warmup::None),
        rate: rate(settings, dataset, part)?,
        pattern: part.pattern.clone(),
        share: Some(Share::Partition),
        refill: (writes && settings.salt.is_none()).then_some(refill),
        verify: settings.salt.is_some(),
        cores: rotated(settings.cores.as_ref(), part.first_thread),
        numa: rotated(settings.zones.as_ref(), part.first_thread),
        keep: !settings.delete,
        ..Spec::of_layer("media").map_err(usage)?
    };
    let mix = match part.access {
        Access::Mixed(percent) => Some(percent),
        Access::Read | Access::Write => None,
    };
    let own = [
        said("op", operation(settings, part.access).name()),
        said("size", part.size_bytes),
        said_if("offset", (part.offset_bytes > 0).then_some(part.offset_bytes)),
        said_if("align", is_unaligned.then_some(1)),
        said("engine", engine),
        switch("direct", settings.direct),
        switch("end-fsync", settings.sync && !settings.drop_cache && writes),
        said_if("mix", mix),
        said_if("verify-run", settings.salt),
        switch("no-read-back", settings.salt.is_some() && !settings.verify_written),
        said_if("layout", layout),
        said_if("cache", (settings.drop_cache && reads).then_some("drop")),
    ];
    let memory = settings.gpu.iter().flat_map(Gpu::said);
    say(&mut spec, own.into_iter().chain(memory)).map_err(usage)?;
    Ok(spec)
}

/// How much each phase would do, as `--dryrun` shows it.
pub(crate) fn dry_run(settings: &Settings, dataset: &Dataset) -> String {
    let bytes = match settings.order {
        Order::Random { .. } => dataset.random_bytes,
        _ => dataset.total_bytes(),
    };
    let (threads, paths) = (u64::from(settings.threads), dataset.paths.len() as u64);
    let count = |number: u64| format!("{number} | {} K | {} M", number / 1000, number / 1_000_000);
    let size = |bytes: u64| format!("{bytes} | {} MiB | {} GiB", bytes >> 20, bytes >> 30);
    let names = [(settings.write, write_name(settings.mix)), (settings.read, "READ".to_owned())];
    let mut text = String::new();
    for (_, name) in names.iter().filter(|(is_run, _)| *is_run) {
        text.push_str(&format!(
            "Phase: {name}\n* Entries per thread: {}\n* Entries total:      {}\n* Bytes per thread:   {}\n* Bytes total:        {}\n",
            count(paths),
            count(paths * threads),
            size(bytes / threads),
            size(bytes / threads * threads),
        ));
    }
    text
}

/// Seconds between phases, for the table of warnings.
pub(crate) fn later_phases_run(settings: &Settings, programme: &Programme) -> Option<String> {
    let is_told = settings.time.is_some_and(|time| time > Span(0)) && programme.steps.len() > 1;
    is_told.then(|| "if --timelimit ends a phase, the later phases still run".to_owned())
}
