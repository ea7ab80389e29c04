//! Options of a load on media.

use units::{ParseError, Percent, Span, parse_index_list, parse_u64_in};

use super::value::{above_zero, count, feature, ladder, nonzero_size, operations, some_text, switch, warmup};
use super::{OptionDef, given};
use crate::engine::{MemoryOperation, SyncCall, SyncMode};
use crate::spec::{CachePolicy, CoresPolicy, Layout, OnError, Refill, Share, Spacing, choice};

macro_rules! engine_switch {
    ($name:literal, $field:ident, $help:literal) => {
        option!($name, None, "", "off", Engine, $help, |spec, text| {
            spec.$field = switch($name, text)?;
            if spec.$field {
                given(spec, $name);
            }
            Ok(())
        })
    };
}

macro_rules! engine_feature {
    ($name:literal, $field:ident, $help:literal) => {
        option!($name, None, "auto|on|off", "auto", Engine, $help, |spec, text| {
            spec.$field = Some(feature($name, text)?);
            given(spec, $name);
            Ok(())
        })
    };
}

/// Every option of a load.
pub static OPTIONS: &[OptionDef] = &[
    option!(
        "op",
        None,
        "OP[,OP...]",
        "none: it must be given",
        Workload,
        "read, write, randread, randwrite, readwrite, randrw, discard, randdiscard or nop; a list runs one phase after another",
        |spec, text| {
            spec.operations = operations(text)?;
            Ok(())
        }
    ),
    option!(
        "block-size",
        Some('b'),
        "SIZE",
        "4k for random operations, 1m for sequential ones",
        Workload,
        "Bytes of one operation: 4k, a range 4k-64k, shares 4k:70,64k:30, or by class read=4k,write=64k",
        |spec, text| {
            text.parse::<crate::class_sizes::ClassSizes>()?;
            spec.block_size = Some(text.to_owned());
            Ok(())
        }
    ),
    option!(
        "size",
        Some('s'),
        "SIZE",
        "the size of the target",
        Workload,
        "Bytes of each target to work on; a file that is not there is created with this size",
        |spec, text| {
            spec.size = Some(nonzero_size("size", text)?);
            Ok(())
        }
    ),
    option!(
        "sizes",
        None,
        "SIZE,SIZE,...",
        "--size for all",
        Workload,
        "The same for each target its own, in their order; where there are more targets the list begins anew",
        |spec, text| {
            let sizes = text.split(',').map(|size| nonzero_size("sizes", size.trim()));
            spec.sizes = Some(sizes.collect::<Result<_, _>>()?);
            Ok(())
        }
    ),
    option!("offset", None, "SIZE", "0", Workload, "Where in each target the range begins", |spec, text| {
        spec.offset = Some(text.parse()?);
        Ok(())
    }),
    option!(
        "align",
        None,
        "SIZE",
        "the block size",
        Workload,
        "Random positions are multiples of this",
        |spec, text| {
            spec.align = Some(nonzero_size("align", text)?);
            Ok(())
        }
    ),
    option!(
        "pattern",
        None,
        "PATTERN",
        "sequential, or permutation for random operations",
        Workload,
        "sequential, backward, strided:BLOCKS; permutation (each block once a pass), fitted (each byte, with several sizes), uniform, zipf:THETA, pareto:H, normal:PERCENT, zoned:ACCESS/SIZE,...",
        |spec, text| {
            text.parse::<crate::plan::Pattern>()?;
            spec.pattern = Some(text.to_owned());
            Ok(())
        }
    ),
    option!(
        "mix",
        None,
        "PERCENT",
        "50 for readwrite and randrw",
        Workload,
        "Percentage of reads, or shares such as read=70,write=25,discard=5; the ratio is kept exactly",
        |spec, text| {
            crate::plan::parse_mix(text)?;
            spec.mix = Some(text.to_owned());
            Ok(())
        }
    ),
    option!(
        "gap",
        None,
        "SIZE|-SIZE",
        "0",
        Workload,
        "Sequential operations leave out so many bytes after each block; -SIZE goes back from its end",
        |spec, text| {
            spec.gap = Some(crate::course::parse_gap(text)?);
            Ok(())
        }
    ),
    option!(
        "run",
        None,
        "N|identical:N",
        "1",
        Workload,
        "Random operations come in runs: N that follow each other, or N at the same position",
        |spec, text| {
            spec.run = Some(text.parse()?);
            Ok(())
        }
    ),
    option!(
        "random-percent",
        None,
        "PERCENT",
        "100",
        Workload,
        "Share of random operations that go to a random position; the others follow the one before. By class: read=70,write=100",
        |spec, text| {
            spec.random_percent = Some(text.parse()?);
            Ok(())
        }
    ),
    option!(
        "own-positions",
        None,
        "",
        "off: a mix goes over the range once, with reads and writes in turns",
        Workload,
        "Reads, writes and discards of a mix each go over the range on their own",
        |spec, text| {
            spec.own_positions = switch("own-positions", text)?;
            Ok(())
        }
    ),
    option!(
        "zones",
        None,
        "SIZE/RANGE[/SKIP]|zbd[,...]",
        "the whole range",
        Workload,
        "Move SIZE bytes in a zone of RANGE bytes, leave out SKIP, and go on with the next zone: 8m/64m/192m. zbd: keep to the write pointers of a zoned block device: zbd,max-open=8",
        |spec, text| {
            (spec.zones, spec.zoned) = if crate::zoned::ZonedChoice::is_meant(text) {
                (None, Some(text.parse()?))
            } else {
                (Some(text.parse()?), None)
            };
            Ok(())
        }
    ),
    option!(
        "visit",
        None,
        "ORDER",
        "sequential",
        Workload,
        "Several targets: sequential (one after the other), roundrobin or roundrobin:N (N operations each), random or random:N",
        |spec, text| {
            spec.visit = Some(text.parse()?);
            Ok(())
        }
    ),
    option!(
        "share",
        None,
        "partition|whole",
        "partition",
        Workload,
        "Whether each worker has its own part of the range or covers all of it",
        |spec, text| {
            spec.share =
                Some(choice("share", text, &[("partition", Share::Partition), ("whole", Share::Whole)])?);
            Ok(())
        }
    ),
    option!(
        "fsync",
        None,
        "N",
        "never",
        Workload,
        "Make the target durable after every N writes of a worker (--sync-call)",
        |spec, text| {
            spec.fsync = Some(parse_u64_in("fsync", text, 1..=u64::MAX)?);
            Ok(())
        }
    ),
    option!(
        "end-fsync",
        None,
        "",
        "off",
        Workload,
        "Make every target durable at the end of each worker's writes, inside the measured time (--sync-call)",
        |spec, text| {
            spec.end_fsync = Some(switch("end-fsync", text)?);
            Ok(())
        }
    ),
    option!(
        "sync-call",
        None,
        "fdatasync|fsync",
        "fdatasync",
        Workload,
        "The call of --fsync and --end-fsync: data alone, or all metadata with it",
        |spec, text| {
            spec.sync_call = Some(choice(
                "sync-call",
                text,
                &[("fdatasync", SyncCall::Fdatasync), ("fsync", SyncCall::Fsync)],
            )?);
            Ok(())
        }
    ),
    option!(
        "threads",
        Some('t'),
        "N",
        "1",
        Load,
        "Workers, each with its own driver and buffers",
        |spec, text| {
            spec.threads = Some(count("threads", text, 1, 4096)?);
            Ok(())
        }
    ),
    option!(
        "depth",
        Some('q'),
        "N",
        "1",
        Load,
        "Queue depth: operations in flight for each worker",
        |spec, text| {
            spec.depth = Some(count("depth", text, 1, 65_536)?);
            Ok(())
        }
    ),
    option!(
        "time",
        None,
        "DURATION",
        "one pass over the range; 5s where the target has no size",
        Load,
        "End after this long",
        |spec, text| {
            spec.time = Some(above_zero("time", text, "30s")?);
            Ok(())
        }
    ),
    option!(
        "count",
        None,
        "N",
        "no limit",
        Load,
        "End after this many operations of all workers together",
        |spec, text| {
            spec.count = Some(parse_u64_in("count", text, 1..=u64::MAX)?);
            Ok(())
        }
    ),
    option!(
        "bytes",
        None,
        "SIZE",
        "no limit",
        Load,
        "End after this many bytes of all workers together",
        |spec, text| {
            spec.bytes = Some(nonzero_size("bytes", text)?);
            Ok(())
        }
    ),
    option!(
        "warmup",
        None,
        "auto|none|DURATION",
        "auto",
        Load,
        "auto finds the steady part and cuts what is before it from the figures; a duration runs before the window opens",
        |spec, text| {
            spec.warmup = Some(warmup(text)?);
            Ok(())
        }
    ),
    option!(
        "rate",
        Some('r'),
        "RATE",
        "closed loop",
        Load,
        "Open loop: operations a second of all workers together (300k); latency counts from the intended start",
        |spec, text| {
            spec.rate = Some(text.parse()?);
            Ok(())
        }
    ),
    option!(
        "arrivals",
        None,
        "constant|poisson",
        "constant",
        Load,
        "Spacing of an open loop's operations",
        |spec, text| {
            spec.arrivals = Some(choice(
                "arrivals",
                text,
                &[("constant", Spacing::Constant), ("poisson", Spacing::Poisson)],
            )?);
            Ok(())
        }
    ),
    option!(
        "think-time",
        None,
        "DURATION",
        "none",
        Load,
        "A worker waits this long after every --think-blocks operations, with nothing in flight; with --rate, what was due meanwhile follows at once",
        |spec, text| {
            spec.think_time = Some(above_zero("think-time", text, "1ms")?);
            Ok(())
        }
    ),
    option!(
        "think-blocks",
        None,
        "N",
        "1",
        Load,
        "Operations of a worker between two pauses of --think-time",
        |spec, text| {
            spec.think_blocks = Some(parse_u64_in("think-blocks", text, 1..=u64::MAX)?);
            Ok(())
        }
    ),
    option!(
        "think-after",
        None,
        "DURATION",
        "no limit",
        Load,
        "Time of a worker's operations between two pauses of --think-time; with --think-blocks whichever is over first",
        |spec, text| {
            spec.think_after = Some(above_zero("think-after", text, "1s")?);
            Ok(())
        }
    ),
    option!(
        "think-spin",
        None,
        "DURATION",
        "0",
        Load,
        "Part of a pause of --think-time in which the worker keeps its processor busy",
        |spec, text| {
            spec.think_spin = Some(above_zero("think-spin", text, "1ms")?);
            Ok(())
        }
    ),
    option!(
        "no-catch-up",
        None,
        "",
        "off",
        Load,
        "With --rate and --think-time: what was due in a pause comes after it at the rate, not all at once",
        |spec, text| {
            spec.no_catch_up = switch("no-catch-up", text)?;
            Ok(())
        }
    ),
    option!(
        "start-delay",
        None,
        "DURATION",
        "none",
        Load,
        "Begin this long after the phase, or the phases that run together, could begin",
        |spec, text| {
            spec.start_delay = Some(text.parse()?);
            Ok(())
        }
    ),
    option!(
        "concurrent",
        None,
        "",
        "off",
        Load,
        "Run at the same time as the phase before it in the job",
        |spec, text| {
            spec.concurrent = switch("concurrent", text)?;
            Ok(())
        }
    ),
    option!(
        "end-others",
        None,
        "",
        "off",
        Load,
        "When this phase is done, the phases that run at the same time end too",
        |spec, text| {
            spec.end_others = switch("end-others", text)?;
            Ok(())
        }
    ),
    option!(
        "ladder",
        None,
        "WHAT=N,N,...",
        "none",
        Load,
        "One phase a value of depth, threads, block-size or rate: depth=1,2,4,8",
        |spec, text| {
            spec.ladder = Some(ladder(text, Some("block-size"))?);
            Ok(())
        }
    ),
    option!(
        "saturate",
        None,
        "",
        "off",
        Load,
        "Climb depth, then threads, until the rate no longer grows, and say where the knee is",
        |spec, text| {
            spec.saturate = switch("saturate", text)?;
            Ok(())
        }
    ),
    option!(
        "batch",
        None,
        "N",
        "all free slots; 1 for direct I/O on files and block devices",
        Load,
        "Most operations handed to the driver at once",
        |spec, text| {
            spec.batch = Some(count("batch", text, 1, 65_536)?);
            Ok(())
        }
    ),
    option!("batch-min", None, "N", "1", Load, "Completions to wait for before going on", |spec, text| {
        spec.batch_min = Some(count("batch-min", text, 1, 65_536)?);
        Ok(())
    }),
    option!(
        "batch-max",
        None,
        "N",
        "all that have completed",
        Load,
        "Most completions collected at once",
        |spec, text| {
            spec.batch_max = Some(count("batch-max", text, 1, 65_536)?);
            Ok(())
        }
    ),
    option!(
        "engine",
        Some('e'),
        "NAME",
        "psync at depth 1, io_uring above (libaio where it is not allowed)",
        Engine,
        "Driver: see `strata list`",
        |spec, text| {
            spec.engine = Some(text.to_owned());
            Ok(())
        }
    ),
    option!("direct", None, "", "off", Engine, "Past the page cache (O_DIRECT)", |spec, text| {
        spec.direct = Some(switch("direct", text)?);
        Ok(())
    }),
    option!(
        "sync",
        None,
        "none|dsync|sync",
        "none",
        Engine,
        "Open with O_DSYNC or O_SYNC: a write returns when it is durable",
        |spec, text| {
            spec.sync = Some(choice(
                "sync",
                text,
                &[("none", SyncMode::None), ("dsync", SyncMode::Dsync), ("sync", SyncMode::Sync)],
            )?);
            given(spec, "sync");
            Ok(())
        }
    ),
    engine_feature!("register-files", register_files, "io_uring: register file descriptors with the ring"),
    engine_feature!("register-buffers", register_buffers, "io_uring: register buffers with the ring"),
    engine_feature!("defer-taskrun", defer_taskrun, "io_uring: single issuer and deferred task run"),
    engine_switch!("sqpoll", sqpoll, "io_uring: a kernel thread picks submissions up"),
    option!(
        "sqpoll-core",
        None,
        "N",
        "any",
        Engine,
        "io_uring: processor of that kernel thread",
        |spec, text| {
            spec.sqpoll_core = Some(count("sqpoll-core", text, 0, 65_535)?);
            given(spec, "sqpoll-core");
            Ok(())
        }
    ),
    engine_switch!(
        "iopoll",
        iopoll,
        "io_uring: poll for completions; needs --direct and a device with poll queues"
    ),
    engine_switch!("hipri", hipri, "pvsync2: polled completion (RWF_HIPRI)"),
    engine_switch!("nowait", nowait, "pvsync2: fail with EAGAIN instead of waiting (RWF_NOWAIT)"),
    engine_switch!("rwf-dsync", rwf_dsync, "pvsync2: each write durable when it returns (RWF_DSYNC)"),
    engine_switch!(
        "dontcache",
        dontcache,
        "pvsync2: through the page cache but not left there (RWF_DONTCACHE)"
    ),
    engine_switch!("map-sync", map_sync, "mmap: MAP_SYNC, durable by CPU flush; needs a DAX file system"),
    option!(
        "memory-operation",
        None,
        "copy|fill|read",
        "copy",
        Engine,
        "mem: what is done to memory",
        |spec, text| {
            let choices = [
                ("copy", MemoryOperation::Copy),
                ("fill", MemoryOperation::Fill),
                ("read", MemoryOperation::Read),
            ];
            spec.memory_operation = Some(choice("memory-operation", text, &choices)?);
            given(spec, "memory-operation");
            Ok(())
        }
    ),
    option!("huge-pages", None, "", "off", Engine, "Buffers on huge pages of 2 MiB", |spec, text| {
        spec.huge_pages = switch("huge-pages", text)?;
        Ok(())
    }),
    option!(
        "cache",
        None,
        "keep|drop|warm",
        "keep",
        Engine,
        "Page cache of the targets before a phase: left, dropped, or filled by reading the range once",
        |spec, text| {
            spec.cache = Some(choice(
                "cache",
                text,
                &[("keep", CachePolicy::Keep), ("drop", CachePolicy::Drop), ("warm", CachePolicy::Warm)],
            )?);
            Ok(())
        }
    ),
    option!(
        "layout",
        None,
        "auto|fill|allocate|sparse|existing",
        "auto: filled when it is read or overwritten at random, else allocated; existing where blocks are only checked",
        Data,
        "How a file that is not there, or is too short, is made before the phase",
        |spec, text| {
            let choices = [
                ("auto", Layout::Auto),
                ("fill", Layout::Fill),
                ("allocate", Layout::Allocate),
                ("sparse", Layout::Sparse),
                ("existing", Layout::Existing),
            ];
            spec.layout = Some(choice("layout", text, &choices)?);
            Ok(())
        }
    ),
    option!(
        "content",
        None,
        "random|zero|HEX",
        "random",
        Data,
        "What is written: incompressible data, zeros, or repeated bytes such as 0xdeadbeef",
        |spec, text| {
            crate::plan::parse_content(text)?;
            spec.content = Some(text.to_owned());
            Ok(())
        }
    ),
    option!(
        "compress",
        None,
        "PERCENT",
        "0",
        Data,
        "Share of each 4 KiB that a compressor can take away",
        |spec, text| {
            spec.compress = Some(text.parse::<Percent>()?.get());
            Ok(())
        }
    ),
    option!(
        "dedupe",
        None,
        "PERCENT",
        "0",
        Data,
        "Share of 4 KiB chunks that are copies of others",
        |spec, text| {
            spec.dedupe = Some(text.parse::<Percent>()?.get());
            Ok(())
        }
    ),
    option!(
        "dedupe-set",
        None,
        "SIZE",
        "64KiB",
        Data,
        "Different data that the copies of --dedupe are copies of, in chunks of 4 KiB",
        |spec, text| {
            spec.dedupe_set = Some(nonzero_size("dedupe-set", text)?);
            Ok(())
        }
    ),
    option!(
        "dedupe-global",
        None,
        "",
        "off",
        Data,
        "Copies are of the same data in all phases that say so; they follow from --seed",
        |spec, text| {
            spec.dedupe_global = switch("dedupe-global", text)?;
            Ok(())
        }
    ),
    option!(
        "refill",
        None,
        "full|stamp|once",
        "full on files and block devices, once elsewhere",
        Data,
        "Before each write: fill the buffer anew, stamp 16 bytes of each 4 KiB, or nothing",
        |spec, text| {
            spec.refill = Some(choice(
                "refill",
                text,
                &[("full", Refill::Full), ("stamp", Refill::Stamp), ("once", Refill::Once)],
            )?);
            Ok(())
        }
    ),
    option!(
        "verify",
        None,
        "",
        "off",
        Data,
        "Write blocks that carry target, offset, run and sequence; check every block that is read, and read back all that was written",
        |spec, text| {
            spec.verify = switch("verify", text)?;
            Ok(())
        }
    ),
    option!(
        "verify-interval",
        None,
        "SIZE",
        "4k, or the block size when smaller",
        Data,
        "Bytes under one verification header",
        |spec, text| {
            spec.verify_interval = Some(nonzero_size("verify-interval", text)?);
            Ok(())
        }
    ),
    option!(
        "verify-run",
        None,
        "N",
        "drawn, and in the record",
        Data,
        "Number that verified blocks carry; a later run that reads with the same number refuses blocks of others",
        |spec, text| {
            spec.verify_run = Some(parse_u64_in("verify-run", text, 1..=u64::MAX)?);
            Ok(())
        }
    ),
    option!(
        "no-read-back",
        None,
        "",
        "off",
        Data,
        "With --verify: do not read back after a phase that wrote",
        |spec, text| {
            spec.no_read_back = switch("no-read-back", text)?;
            Ok(())
        }
    ),
    option!(
        "verify-pattern",
        None,
        "BYTES",
        "headers and data of their own",
        Data,
        "With --verify: blocks repeat these bytes and nothing else: 0xdeadbeef, %o (8 bytes) for the block's offset, joined with +. \
         An old block cannot be told from a new one",
        |spec, text| {
            spec.verify_pattern = Some(text.parse()?);
            Ok(())
        }
    ),
    option!(
        "verify-backlog",
        None,
        "N[:BATCH]",
        "after the phase",
        Data,
        "With --verify: each worker reads back BATCH blocks (N where it is left out) whenever it has written N",
        |spec, text| {
            spec.verify_backlog = Some(crate::plan::parse_backlog(text)?);
            Ok(())
        }
    ),
    option!(
        "verify-dump",
        None,
        "DIRECTORY",
        "off",
        Data,
        "With --verify: keep wrong blocks as files NAME.OFFSET.received, and what they should be as NAME.OFFSET.expected",
        |spec, text| {
            spec.verify_dump = Some(some_text("verify-dump", text)?);
            Ok(())
        }
    ),
    option!(
        "serialize-overlap",
        None,
        "",
        "off",
        Load,
        "An operation waits for those of its worker in flight that it shares bytes with",
        |spec, text| {
            spec.serialize_overlap = switch("serialize-overlap", text)?;
            Ok(())
        }
    ),
    option!(
        "seed",
        None,
        "N",
        "drawn, and in the record",
        Run,
        "The same seed gives the same operations and data",
        |spec, text| {
            spec.seed = Some(parse_u64_in("seed", text, 0..=u64::MAX)?);
            Ok(())
        }
    ),
    option!(
        "cores",
        None,
        "LIST",
        "not pinned",
        Run,
        "Pin workers to these processors, round robin: 0,2,4-7",
        |spec, text| {
            spec.cores = Some(parse_index_list("cores", text, 65_536)?);
            Ok(())
        }
    ),
    option!(
        "cores-policy",
        None,
        "split|shared",
        "split",
        Run,
        "split: each worker on one of --cores; shared: each on any of them",
        |spec, text| {
            spec.cores_policy = Some(choice(
                "cores-policy",
                text,
                &[("split", CoresPolicy::Split), ("shared", CoresPolicy::Shared)],
            )?);
            Ok(())
        }
    ),
    option!(
        "numa",
        None,
        "LIST",
        "not pinned",
        Run,
        "Pin workers to the processors of these NUMA nodes, round robin",
        |spec, text| {
            spec.numa = Some(parse_index_list("numa", text, 1024)?);
            Ok(())
        }
    ),
    option!(
        "split-latency",
        None,
        "",
        "off",
        Run,
        "Time submission and completion apart too, and count queue depths and batch sizes",
        |spec, text| {
            spec.split_latency = switch("split-latency", text)?;
            Ok(())
        }
    ),
    option!(
        "interval",
        None,
        "DURATION",
        "20ms, less for runs under 2s, doubled as the run gets longer",
        Run,
        "Length of the intervals of the series",
        |spec, text| {
            let span: Span = text.parse()?;
            if span.ns() < 1_000_000 {
                return Err(ParseError::new("interval", text, "1ms or more"));
            }
            spec.interval = Some(span);
            Ok(())
        }
    ),
    option!(
        "on-error",
        None,
        "stop|continue",
        "stop",
        Run,
        "After a failed operation: end the phase, or count it and go on",
        |spec, text| {
            spec.on_error =
                Some(choice("on-error", text, &[("stop", OnError::Stop), ("continue", OnError::Continue)])?);
            Ok(())
        }
    ),
    option!("keep", None, "", "off", Run, "Leave the files that the run created", |spec, text| {
        spec.keep = switch("keep", text)?;
        Ok(())
    }),
    option!(
        "destroy-data",
        None,
        "",
        "off",
        Run,
        "Allow writes to a device or file that carries data of others",
        |spec, text| {
            spec.destroy_data = switch("destroy-data", text)?;
            Ok(())
        }
    ),
    option!(
        "name",
        None,
        "NAME",
        "the operation",
        Run,
        "Name of the phase in tables and the record",
        |spec, text| {
            spec.name = Some(text.to_owned());
            Ok(())
        }
    ),
];
