//! Remedies for a layer that holds the stack back: one table by layer, load and what its workers were doing. What is so already
//! is not named.

use host::Environment;
use host::block::BlockDevice;
use workload::plan::LoadKind;

use super::step::Step;

/// Most lines given.
const LINES_MAX: usize = 3;

/// Where a line applies: everything that is not said matches.
struct Remedy {
    layer: Option<&'static str>,
    kinds: &'static [LoadKind],
    cpu_bound: Option<bool>,
    line: &'static str,
}

const READS: &[LoadKind] = &[LoadKind::SequentialRead, LoadKind::RandomRead];
const WRITES: &[LoadKind] = &[LoadKind::SequentialWrite, LoadKind::RandomWrite];
const RANDOM: &[LoadKind] = &[LoadKind::RandomRead, LoadKind::RandomWrite];

const fn remedy(
    layer: &'static str,
    kinds: &'static [LoadKind],
    cpu_bound: Option<bool>,
    line: &'static str,
) -> Remedy {
    Remedy { layer: Some(layer), kinds, cpu_bound, line }
}

/// Read-ahead from which on more of it gains nothing, in bytes: drives are kept busy by less.
const READ_AHEAD_LARGE_BYTES: u64 = 4 << 20;

/// Whether a machine is so already.
type IsSo = fn(&Environment) -> bool;

/// Lines that say nothing where a machine is so already.
const ALREADY: &[(&str, IsSo)] = &[
    (SCHEDULER, |environment| {
        all_drives(environment, |drive| {
            drive.rotational == Some(true) || matches!(drive.scheduler.as_deref(), Some("none") | None)
        })
    }),
    (READ_AHEAD, |environment| {
        let is_large = |device: &BlockDevice| {
            device.read_ahead_bytes.is_some_and(|bytes| bytes >= READ_AHEAD_LARGE_BYTES)
        };
        let mut devices = environment.targets.iter().filter_map(|target| target.device.as_ref()).peekable();
        devices.peek().is_some() && devices.all(is_large)
    }),
    (ONE_NODE, |environment| environment.numa_nodes.len() <= 1),
];

const SCHEDULER: &str = "the scheduler `none` for flash (/sys/block/DEVICE/queue/scheduler)";
const READ_AHEAD: &str = "a larger read-ahead (/sys/block/DEVICE/queue/read_ahead_kb): a buffered reader has only that much in flight";
const ONE_NODE: &str = "pin workers and memory to one NUMA node (--numa 0)";

/// Whether the drives at the bottom of all targets are so; false where none is known.
fn all_drives(environment: &Environment, is: fn(&BlockDevice) -> bool) -> bool {
    let devices = environment.targets.iter().filter_map(|target| target.device.as_ref());
    let mut drives = devices.flat_map(BlockDevice::bottoms).peekable();
    drives.peek().is_some() && drives.all(is)
}

/// The most promising first.
const REMEDIES: &[Remedy] = &[
    remedy("memory", &[], None, ONE_NODE),
    remedy("memory", &[], None, "fill all memory channels, use --huge-pages"),
    remedy(
        "media",
        &[],
        Some(true),
        "the processor is used up before the drive: more threads (-t), io_uring with --register-files on and \
         --register-buffers on, larger blocks",
    ),
    remedy(
        "media",
        &[],
        Some(false),
        "a faster drive or more of them: no layer above can give more than this one",
    ),
    remedy(
        "media",
        RANDOM,
        Some(false),
        "more in flight, if the drive has more to give: `strata media TARGET --op randread --direct --saturate` says",
    ),
    remedy("media", &[], Some(false), SCHEDULER),
    remedy("file", &[LoadKind::SequentialRead], Some(false), READ_AHEAD),
    remedy(
        "file",
        READS,
        Some(true),
        "the copy out of the page cache takes the whole processor: more threads, or direct I/O (--direct)",
    ),
    remedy(
        "file",
        &[LoadKind::RandomRead],
        Some(false),
        "more threads, or io_uring with a depth (-e io_uring -q 32): a reader that misses the cache waits for one \
         block at a time",
    ),
    remedy(
        "file",
        &[LoadKind::RandomRead],
        Some(false),
        "more memory, so that the data in use fit the page cache",
    ),
    remedy(
        "file",
        &[LoadKind::SequentialRead],
        Some(false),
        "direct reads with a depth (--direct -e io_uring -q 8), where the application can",
    ),
    remedy(
        "file",
        WRITES,
        Some(true),
        "the copy into the page cache takes the whole processor: more threads, larger blocks, or direct I/O (--direct)",
    ),
    remedy(
        "file",
        WRITES,
        Some(false),
        "writers are held to the pace of write-back: direct I/O with a depth (--direct -e io_uring -q 8), or a look \
         at vm.dirty_background_bytes and vm.dirty_bytes",
    ),
    remedy(
        "file",
        WRITES,
        Some(false),
        "files laid out before they are written over: allocation and the journal cost a part of each write",
    ),
    Remedy {
        layer: None,
        kinds: &[],
        cpu_bound: Some(true),
        line: "more threads or processes for this layer: its processor time is used up",
    },
    Remedy {
        layer: None,
        kinds: &[],
        cpu_bound: Some(false),
        line: "more in flight for this layer (-t, -q): its workers wait for it, and the layer below has more to give",
    },
];

fn applies(remedy: &Remedy, step: &Step) -> bool {
    let known = REMEDIES.iter().any(|remedy| remedy.layer == Some(step.layer.as_str()));
    let layer = match remedy.layer {
        Some(layer) => layer == step.layer,
        None => !known,
    };
    let kind = remedy.kinds.is_empty() || step.kind.is_some_and(|kind| remedy.kinds.contains(&kind));
    layer && kind && remedy.cpu_bound.is_none_or(|bound| bound == step.cpu_bound)
}

/// Remedies to try for a step on this machine, the most promising first.
pub(super) fn lines(step: &Step, environment: &Environment) -> Vec<String> {
    let is_so =
        |remedy: &Remedy| ALREADY.iter().any(|(line, is_so)| *line == remedy.line && is_so(environment));
    REMEDIES
        .iter()
        .filter(|remedy| applies(remedy, step) && !is_so(remedy))
        .take(LINES_MAX)
        .map(|remedy| remedy.line.to_owned())
        .collect()
}
