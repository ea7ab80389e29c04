//! Options that media alone has, beside those of loads of any layer: they stand in this order in help.

use gpu::{GpuPath, GpuPer, Staging};
use units::{ParseError, parse_u64_in};
use workload::control::parse_priority_shares;
use workload::options::OptionDef;
use workload::options::value::{count, feature, nonzero_size, some_text, switch};
use workload::spec::{OPERATIONS, Spec, choice};
use workload::{option, own_of, switch_of};

use super::given;
use crate::course::parse_gap;
use crate::engine::{Advice, MemoryOperation, SyncCall, SyncMode};
use crate::plan::{parse_backlog, parse_mix};
use crate::spec::{self, CachePolicy, Layout, MediaSpec};
use crate::zoned::ZonedChoice;

macro_rules! own {
    ($($option:tt)*) => {
        own_of!(MediaSpec, $($option)*)
    };
}

macro_rules! own_switch {
    ($($option:tt)*) => {
        switch_of!(MediaSpec, $($option)*)
    };
}

/// An option of some drivers, which name it in their capabilities.
macro_rules! of_engine {
    ($name:literal, $value:literal, $default:literal, $help:literal, $field:ident, $parse:expr) => {
        option!($name, None, $value, $default, Engine, $help, |spec, text| {
            let value = $parse(text)?;
            spec::of_mut(spec).options.$field = value;
            given(spec, $name);
            Ok(())
        })
    };
}

/// Ways to memory of a GPU that engines of this layer go by.
const GPU_PATHS: [(&str, GpuPath); 4] = [
    GpuPath::Staged.named(),
    GpuPath::Cufile.named(),
    GpuPath::CufileBatch.named(),
    GpuPath::CufileStream.named(),
];

/// An option of the memory of buffers, which drivers that have it name in their capabilities.
macro_rules! of_memory {
    ($name:literal, $value:literal, $default:literal, $help:literal, $field:ident, $parse:expr) => {
        option!($name, None, $value, $default, Engine, $help, |spec, text| {
            let value = $parse(text)?;
            spec::of_mut(spec).memory.$field = Some(value);
            given(spec, $name);
            Ok(())
        })
    };
}

macro_rules! engine_switch {
    ($name:literal, $field:ident, $help:literal) => {
        option!($name, None, "", "off", Engine, $help, |spec, text| {
            let is_on = switch($name, text)?;
            spec::of_mut(spec).options.$field = is_on;
            if is_on {
                given(spec, $name);
            }
            Ok(())
        })
    };
}

macro_rules! engine_feature {
    ($name:literal, $field:ident, $help:literal) => {
        of_engine!($name, "auto|on|off", "auto", $help, $field, |text| feature($name, text))
    };
}

/// Operations.
pub(super) static OPERATION: &[OptionDef] = &[option!(
    "op",
    None,
    "OP[,OP...]",
    "none: required",
    Workload,
    "read, write, randread, randwrite, readwrite, randrw, discard, randdiscard or nop; a list runs one phase per operation",
    |spec, text| {
        let words = text.split(',').map(|word| choice("op", word.trim(), OPERATIONS));
        spec::of_mut(spec).operations = words.collect::<Result<_, _>>()?;
        Ok(())
    }
)];

/// The range of each target.
pub(super) static RANGE: &[OptionDef] = &[
    own!(
        "size",
        Some('s'),
        "SIZE",
        "the size of the target",
        Workload,
        "Bytes of each target to use; a file that does not exist is created with this size",
        size,
        |text| nonzero_size("size", text)
    ),
    own!(
        "sizes",
        None,
        "SIZE,SIZE,...",
        "--size for each target",
        Workload,
        "A separate size for each target, in their order; the list repeats if there are more targets",
        sizes,
        |text: &str| text.split(',').map(|size| nonzero_size("sizes", size.trim())).collect::<Result<_, _>>()
    ),
    own!("offset", None, "SIZE", "0", Workload, "Start of the range in each target", offset, str::parse),
    own!(
        "align",
        None,
        "SIZE",
        "the block size",
        Workload,
        "Random positions are multiples of this",
        align,
        |text| nonzero_size("align", text)
    ),
];

/// Mixes, and the course over the range.
pub(super) static POSITIONS: &[OptionDef] = &[
    own!(
        "mix",
        None,
        "PERCENT",
        "50 for readwrite and randrw",
        Workload,
        "Percentage of reads, or shares such as read=70,write=25,discard=5; the ratio is exact",
        mix,
        parse_mix
    ),
    own!(
        "gap",
        None,
        "SIZE|-SIZE",
        "0",
        Workload,
        "Sequential operations skip this many bytes after each block; -SIZE moves back from its end",
        gap,
        parse_gap
    ),
    own!(
        "run",
        None,
        "N|identical:N",
        "1",
        Workload,
        "Issue random operations in runs: N consecutive blocks, or N at the same position",
        run,
        str::parse
    ),
    own!(
        "random-percent",
        None,
        "PERCENT",
        "100",
        Workload,
        "Percentage of random operations at a random position; the others follow the previous one. By class: read=70,write=100",
        random_percent,
        str::parse
    ),
    own_switch!(
        "own-positions",
        "off: a mix covers the range once, with reads and writes interleaved",
        Workload,
        "Reads, writes and discards of a mix each cover the range independently",
        own_positions
    ),
    option!(
        "zones",
        None,
        "SIZE/RANGE[/SKIP]|zbd[,...]",
        "the whole range",
        Workload,
        "Transfer SIZE bytes in a zone of RANGE bytes, skip SKIP bytes, and continue in the next zone: 8m/64m/192m. zbd: follow the write pointers of a zoned block device: zbd,max-open=8",
        |spec, text| {
            let (zones, zoned) = if ZonedChoice::is_meant(text) {
                (None, Some(text.parse()?))
            } else {
                (Some(text.parse()?), None)
            };
            let own = spec::of_mut(spec);
            (own.zones, own.zoned) = (zones, zoned);
            Ok(())
        }
    ),
    own!(
        "visit",
        None,
        "ORDER",
        "sequential",
        Workload,
        "Order of several targets: sequential (one after the other), roundrobin or roundrobin:N (N operations each), random or random:N",
        visit,
        str::parse
    ),
];

/// When writes are made durable.
pub(super) static DURABLE: &[OptionDef] = &[
    own!(
        "fsync",
        None,
        "N",
        "never",
        Workload,
        "Sync the target after every N writes of a worker (--sync-call)",
        fsync,
        |text| parse_u64_in("fsync", text, 1..=u64::MAX)
    ),
    own_switch!(
        "end-fsync",
        "off",
        Workload,
        "Sync every target after the last write of each worker, inside the measured time (--sync-call)",
        end_fsync
    ),
    own!(
        "sync-call",
        None,
        "fdatasync|fsync",
        "fdatasync",
        Workload,
        "The call of --fsync and --end-fsync: data only, or data and all metadata",
        sync_call,
        |text| choice("sync-call", text, &[("fdatasync", SyncCall::Fdatasync), ("fsync", SyncCall::Fsync)],)
    ),
];

/// The driver, its options, and what stands before a phase.
pub(super) static ENGINE: &[OptionDef] = &[
    own!(
        "engine",
        Some('e'),
        "NAME",
        "psync at depth 1, io_uring above (libaio if io_uring is not allowed)",
        Engine,
        "I/O engine: see `strata list`",
        engine,
        |text: &str| Ok::<_, ParseError>(text.to_owned())
    ),
    option!("direct", None, "", "off", Engine, "Bypass the page cache (O_DIRECT)", |spec, text| {
        spec::of_mut(spec).options.direct = switch("direct", text)?;
        Ok(())
    }),
    of_engine!(
        "sync",
        "none|dsync|sync",
        "none",
        "Open with O_DSYNC or O_SYNC: every write is durable when it returns",
        sync,
        |text| choice(
            "sync",
            text,
            &[("none", SyncMode::None), ("dsync", SyncMode::Dsync), ("sync", SyncMode::Sync)]
        )
    ),
    engine_feature!("register-files", register_files, "io_uring: register file descriptors with the ring"),
    engine_feature!("register-buffers", register_buffers, "io_uring: register buffers with the ring"),
    engine_feature!("defer-taskrun", defer_taskrun, "io_uring: single issuer and deferred task run"),
    engine_switch!("sqpoll", sqpoll, "io_uring: a kernel thread polls for submissions"),
    of_engine!("sqpoll-core", "N", "any", "io_uring: CPU of that kernel thread", sqpoll_core, |text| {
        count("sqpoll-core", text, 0, 65_535).map(Some)
    }),
    engine_switch!(
        "iopoll",
        iopoll,
        "io_uring: poll for completions; requires --direct and a device with poll queues"
    ),
    engine_switch!("hipri", hipri, "pvsync2: polled completion (RWF_HIPRI)"),
    engine_switch!("nowait", nowait, "pvsync2: fail with EAGAIN instead of waiting (RWF_NOWAIT)"),
    engine_switch!("rwf-dsync", rwf_dsync, "pvsync2: each write durable when it returns (RWF_DSYNC)"),
    engine_switch!(
        "dontcache",
        dontcache,
        "pvsync2: use the page cache, but drop the data afterwards (RWF_DONTCACHE)"
    ),
    engine_switch!("map-sync", map_sync, "mmap: MAP_SYNC, durable by CPU flush; requires a DAX file system"),
    of_engine!(
        "memory-operation",
        "copy|fill|read",
        "copy",
        "mem: operation on memory",
        memory_operation,
        |text| choice(
            "memory-operation",
            text,
            &[
                ("copy", MemoryOperation::Copy),
                ("fill", MemoryOperation::Fill),
                ("read", MemoryOperation::Read)
            ]
        )
    ),
    own_switch!("huge-pages", "off", Engine, "Use 2 MiB huge pages for the buffers", huge_pages),
    of_memory!(
        "memory",
        "host|pinned|gpu[:N,...]",
        "host",
        "Memory of the buffers: process memory, process memory registered with the GPU driver, or GPU memory (workers are distributed over the GPUs)",
        memory,
        str::parse
    ),
    of_memory!(
        "gpu-path",
        "staged|cufile|cufile-batch|cufile-stream",
        "staged, or the path of the engine",
        "Path to GPU memory: a copy through host memory (counted in the latency), or GPUDirect Storage with one request at a time, batches, or streams",
        gpu_path,
        |text| choice("gpu-path", text, &GPU_PATHS)
    ),
    of_memory!(
        "gpu-staging",
        "pinned|pageable",
        "pinned",
        "Host memory that --gpu-path staged copies pass through: registered with the GPU driver, or not",
        gpu_staging,
        |text| choice("gpu-staging", text, &Staging::NAMED)
    ),
    of_memory!(
        "gpu-register",
        "on|off",
        "on",
        "cufile: register the buffers with GPUDirect Storage before the phase",
        gpu_register,
        |text| choice("gpu-register", text, &[("on", true), ("off", false)])
    ),
    of_memory!(
        "gpu-per",
        "worker|host",
        "worker",
        "How --memory gpu assigns devices: the next one to each worker, or one to each host of a multi-host run",
        gpu_per,
        |text| choice("gpu-per", text, &GpuPer::NAMED)
    ),
    own!(
        "cache",
        None,
        "keep|drop|warm",
        "keep",
        Engine,
        "Page cache of the targets before a phase: unchanged, dropped, or filled by reading the range once",
        cache,
        |text| choice(
            "cache",
            text,
            &[("keep", CachePolicy::Keep), ("drop", CachePolicy::Drop), ("warm", CachePolicy::Warm)],
        )
    ),
    own!(
        "layout",
        None,
        "auto|fill|allocate|sparse|existing",
        "auto: filled if it is read or overwritten at random, otherwise allocated; existing if blocks are only checked",
        Data,
        "How a missing or too short file is prepared before the phase",
        layout,
        |text| choice(
            "layout",
            text,
            &[
                ("auto", Layout::Auto),
                ("fill", Layout::Fill),
                ("allocate", Layout::Allocate),
                ("sparse", Layout::Sparse),
                ("existing", Layout::Existing)
            ]
        )
    ),
];

/// How blocks are verified.
pub(super) static VERIFY: &[OptionDef] = &[
    own!(
        "verify-interval",
        None,
        "SIZE",
        "4k, or the block size if smaller",
        Data,
        "Bytes per verification header",
        verify_interval,
        |text| nonzero_size("verify-interval", text)
    ),
    own!(
        "verify-run",
        None,
        "N",
        "random; stored in the record",
        Data,
        "Run number stored in verified blocks; a later run that reads with the same number rejects blocks of other runs",
        verify_run,
        |text| parse_u64_in("verify-run", text, 1..=u64::MAX)
    ),
    own_switch!(
        "no-read-back",
        "off",
        Data,
        "With --verify: do not read back after a phase that wrote",
        no_read_back
    ),
    own!(
        "verify-pattern",
        None,
        "BYTES",
        "strata's headers and data",
        Data,
        "With --verify: blocks contain only these bytes, repeated: 0xdeadbeef, %o (8 bytes) for the block's offset, joined with +. Stale blocks cannot be detected",
        verify_pattern,
        str::parse
    ),
    own!(
        "verify-backlog",
        None,
        "N[:BATCH]",
        "after the phase",
        Data,
        "With --verify: each worker reads back BATCH blocks (default N) whenever it has written N",
        verify_backlog,
        parse_backlog
    ),
    own!(
        "verify-dump",
        None,
        "DIRECTORY",
        "off",
        Data,
        "With --verify: save wrong blocks as NAME.OFFSET.received and the expected data as NAME.OFFSET.expected",
        verify_dump,
        |text| some_text("verify-dump", text)
    ),
    own_switch!(
        "serialize-overlap",
        "off",
        Load,
        "An operation waits for operations in flight of its worker that overlap it",
        serialize_overlap
    ),
];

/// Options of drivers that shape single operations.
pub(super) static HINTS: &[OptionDef] = &[
    option!(
        "operation-priority",
        None,
        "CLASS[/SIZE]:PERCENT@PRIORITY,...",
        "none",
        Engine,
        "libaio, io_uring: I/O priority for a percentage of the operations: read:20@realtime:0,write/64k:5@idle",
        |spec: &mut Spec, text| {
            spec::of_mut(spec).options.operation_priorities = parse_priority_shares(text)?;
            given(spec, "operation-priority");
            Ok(())
        }
    ),
    of_engine!(
        "force-async",
        "N",
        "never",
        "io_uring: a kernel thread executes every Nth operation (IOSQE_ASYNC)",
        force_async,
        |text| count("force-async", text, 1, u32::MAX.into()).map(Some)
    ),
    of_engine!(
        "advise",
        "none|sequential|random|noreuse",
        "none",
        "Access advice to the kernel for files and devices (posix_fadvise)",
        advice,
        |text| choice(
            "advise",
            text,
            &[
                ("none", Advice::None),
                ("sequential", Advice::Sequential),
                ("random", Advice::Random),
                ("noreuse", Advice::NoReuse),
            ]
        )
    ),
];
