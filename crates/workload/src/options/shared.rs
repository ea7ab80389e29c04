//! Options that loads of several layers have. A layer takes them over by name ([`crate::layers::LayerDef::common`]), or words one anew
//! (`as_shared!`).

use units::{ParseError, Percent, Span, parse_index_list, parse_u64_in};

use super::OptionDef;
use super::value::{self, above_zero, count, ladder, nonzero_size, switch, warmup};
use crate::class_sizes::ClassSizes;
use crate::plan::{Pattern, parse_content};
use crate::spec::{CoresPolicy, OnError, Refill, Share, Spacing, choice};

/// An option whose parsed value is kept in the field of its name.
macro_rules! general {
    ($name:literal, $short:expr, $value:literal, $default:literal, $group:ident, $help:literal, $field:ident, $parse:expr) => {
        option!($name, $short, $value, $default, $group, $help, |spec, text| {
            spec.$field = Some($parse(text)?);
            Ok(())
        })
    };
}

/// A switch in the field of its name.
macro_rules! general_switch {
    ($name:literal, $default:literal, $group:ident, $help:literal, $field:ident) => {
        option!($name, None, "", $default, $group, $help, |spec, text| {
            spec.$field = switch($name, text)?;
            Ok(())
        })
    };
}

/// All of them, in the order of help.
pub static SHARED: &[&[OptionDef]] = &[BLOCK_SIZE, PATTERN, SHARE, LOAD, CONTENT, RUN];

/// The size of operations.
pub static BLOCK_SIZE: &[OptionDef] = &[general!(
    "block-size",
    Some('b'),
    "SIZE",
    "4k for random operations, 1m for sequential ones",
    Workload,
    "Bytes of one operation: 4k, a range 4k-64k, shares 4k:70,64k:30, or by class read=4k,write=64k",
    block_size,
    |text: &str| text.parse::<ClassSizes>().map(|_| text.to_owned())
)];

/// The order of positions.
pub static PATTERN: &[OptionDef] = &[general!(
    "pattern",
    None,
    "PATTERN",
    "sequential, or permutation for random operations",
    Workload,
    "sequential, backward, strided:BLOCKS; permutation (each block once a pass), fitted (each byte, with several sizes), uniform, zipf:THETA, pareto:H, normal:PERCENT, zoned:ACCESS/SIZE,...",
    pattern,
    |text: &str| text.parse::<Pattern>().map(|_| text.to_owned())
)];

/// A worker's part of the range.
pub static SHARE: &[OptionDef] = &[general!(
    "share",
    None,
    "partition|whole",
    "partition",
    Workload,
    "Whether each worker has its own part of the range or covers all of it",
    share,
    |text| choice("share", text, &[("partition", Share::Partition), ("whole", Share::Whole)])
)];

/// How much, for how long, how fast.
pub static LOAD: &[OptionDef] = &[
    general!(
        "threads",
        Some('t'),
        "N",
        "1",
        Load,
        "Workers, each with its own driver and buffers",
        threads,
        |text| count("threads", text, 1, 4096)
    ),
    general!(
        "depth",
        Some('q'),
        "N",
        "1",
        Load,
        "Queue depth: operations in flight for each worker",
        depth,
        |text| count("depth", text, 1, 65_536)
    ),
    general!(
        "time",
        None,
        "DURATION",
        "one pass over the range; 5s if the target has no size",
        Load,
        "End after this long",
        time,
        |text| above_zero("time", text, "30s")
    ),
    general!(
        "count",
        None,
        "N",
        "no limit",
        Load,
        "End after this many operations of all workers together",
        count,
        |text| parse_u64_in("count", text, 1..=u64::MAX)
    ),
    general!(
        "bytes",
        None,
        "SIZE",
        "no limit",
        Load,
        "End after this many bytes of all workers together",
        bytes,
        |text| nonzero_size("bytes", text)
    ),
    general!(
        "warmup",
        None,
        "auto|none|DURATION",
        "auto",
        Load,
        "auto: detect and exclude warm-up; DURATION: run this long before measuring",
        warmup,
        warmup
    ),
    option!(
        "rate",
        Some('r'),
        "RATE|N%",
        "closed loop",
        Load,
        "Open loop: operations per second of all workers together (300k), or a percentage of the rate that --saturate finds first (70%); latency is measured from the scheduled start",
        |spec, text| {
            match value::asked_rate(text)? {
                value::AskedRate::PerSecond(rate) => spec.rate = Some(rate),
                value::AskedRate::PercentOfSaturation(percent) => {
                    (spec.rate_percent, spec.saturate) = (Some(percent), true);
                }
            }
            Ok(())
        }
    ),
    general!(
        "arrivals",
        None,
        "constant|poisson",
        "constant",
        Load,
        "Spacing of an open loop's operations",
        arrivals,
        |text| choice("arrivals", text, &[("constant", Spacing::Constant), ("poisson", Spacing::Poisson)],)
    ),
    general!(
        "think-time",
        None,
        "DURATION",
        "none",
        Load,
        "Pause of a worker after every --think-blocks operations, with nothing in flight; with --rate, operations that became due in the pause are issued at once after it",
        think_time,
        |text| above_zero("think-time", text, "1ms")
    ),
    general!(
        "think-blocks",
        None,
        "N",
        "1",
        Load,
        "Operations of a worker between two pauses of --think-time",
        think_blocks,
        |text| parse_u64_in("think-blocks", text, 1..=u64::MAX)
    ),
    general!(
        "think-after",
        None,
        "DURATION",
        "no limit",
        Load,
        "Time between two pauses of --think-time; with --think-blocks, the limit that is reached first",
        think_after,
        |text| above_zero("think-after", text, "1s")
    ),
    general!(
        "think-spin",
        None,
        "DURATION",
        "0",
        Load,
        "Part of a --think-time pause in which the worker busy-waits",
        think_spin,
        |text| above_zero("think-spin", text, "1ms")
    ),
    general_switch!(
        "no-catch-up",
        "off",
        Load,
        "With --rate and --think-time: issue operations that became due in a pause at the rate, not all at once",
        no_catch_up
    ),
    general!(
        "start-delay",
        None,
        "DURATION",
        "none",
        Load,
        "Delay before the phase starts; for phases that run together, after their common start",
        start_delay,
        str::parse
    ),
    general_switch!(
        "concurrent",
        "off",
        Load,
        "Run at the same time as the phase before it in the job",
        concurrent
    ),
    general_switch!(
        "end-others",
        "off",
        Load,
        "When this phase ends, end the phases that run at the same time too",
        end_others
    ),
    general!(
        "ladder",
        None,
        "WHAT=N,N,...",
        "none",
        Load,
        "Run one phase per value of depth, threads, block-size or rate: depth=1,2,4,8",
        ladder,
        |text| ladder(text, Some("block-size"))
    ),
    general_switch!(
        "saturate",
        "off",
        Load,
        "Raise depth, then threads, until throughput stops growing, and report the knee",
        saturate
    ),
    general!(
        "batch",
        None,
        "N",
        "all free slots; 1 for direct I/O on files and block devices",
        Load,
        "Maximum operations submitted to the driver at once",
        batch,
        |text| count("batch", text, 1, 65_536)
    ),
    general!(
        "batch-min",
        None,
        "N",
        "1",
        Load,
        "Minimum completions to wait for before continuing",
        batch_min,
        |text| count("batch-min", text, 1, 65_536)
    ),
    general!(
        "batch-max",
        None,
        "N",
        "all available completions",
        Load,
        "Maximum completions collected at once",
        batch_max,
        |text| count("batch-max", text, 1, 65_536)
    ),
];

/// Data that is written, and whether it is checked.
pub static CONTENT: &[OptionDef] = &[
    general!(
        "content",
        None,
        "random|zero|HEX",
        "random",
        Data,
        "Data to write: incompressible data, zeros, or repeated bytes such as 0xdeadbeef",
        content,
        |text: &str| parse_content(text).map(|_| text.to_owned())
    ),
    general!(
        "compress",
        None,
        "PERCENT",
        "0",
        Data,
        "Percentage of each 4 KiB that is compressible",
        compress,
        |text: &str| text.parse::<Percent>().map(Percent::get)
    ),
    general!(
        "dedupe",
        None,
        "PERCENT",
        "0",
        Data,
        "Percentage of 4 KiB chunks that are duplicates",
        dedupe,
        |text: &str| text.parse::<Percent>().map(Percent::get)
    ),
    general!(
        "dedupe-set",
        None,
        "SIZE",
        "64KiB",
        Data,
        "Amount of distinct data that --dedupe copies, in chunks of 4 KiB",
        dedupe_set,
        |text| nonzero_size("dedupe-set", text)
    ),
    general_switch!(
        "dedupe-global",
        "off",
        Data,
        "Copy the same data in all phases that have this option; the data depend on --seed",
        dedupe_global
    ),
    general!(
        "refill",
        None,
        "full|stamp|once",
        "full on files and block devices, once elsewhere",
        Data,
        "Before each write: refill the whole buffer, stamp 16 bytes of each 4 KiB, or change nothing",
        refill,
        |text| choice(
            "refill",
            text,
            &[("full", Refill::Full), ("stamp", Refill::Stamp), ("once", Refill::Once)],
        )
    ),
    general_switch!(
        "verify",
        "off",
        Data,
        "Write blocks that contain target, offset, run and sequence; check every block that is read, and read back all written blocks",
        verify
    ),
];

/// Where a load runs, what becomes of it, and its name.
pub static RUN: &[OptionDef] = &[
    general!(
        "seed",
        None,
        "N",
        "random; stored in the record",
        Run,
        "Random seed: the same seed repeats the same operations and data",
        seed,
        |text| parse_u64_in("seed", text, 0..=u64::MAX)
    ),
    general!(
        "cores",
        None,
        "LIST",
        "not pinned",
        Run,
        "Pin workers to these CPUs, round-robin: 0,2,4-7",
        cores,
        |text| parse_index_list("cores", text, 65_536)
    ),
    general!(
        "cores-policy",
        None,
        "split|shared",
        "split",
        Run,
        "split: each worker runs on one of --cores; shared: each worker may run on any of them",
        cores_policy,
        |text| choice(
            "cores-policy",
            text,
            &[("split", CoresPolicy::Split), ("shared", CoresPolicy::Shared)],
        )
    ),
    general!(
        "numa",
        None,
        "LIST",
        "not pinned",
        Run,
        "Pin workers to the CPUs of these NUMA nodes, round-robin",
        numa,
        |text| parse_index_list("numa", text, 1024)
    ),
    general_switch!(
        "split-latency",
        "off",
        Run,
        "Also measure submission and completion latency separately, and count queue depths and batch sizes",
        split_latency
    ),
    general_switch!(
        "profile",
        "off",
        Run,
        "Break down the time of each worker: each kind of call, filling and checking buffers, waiting, and strata's own overhead",
        profile
    ),
    option!(
        "interval",
        None,
        "DURATION",
        "20ms; shorter for runs under 2s; doubled as the run gets longer",
        Run,
        "Interval of the time series",
        |spec, text| {
            let span: Span = text.parse()?;
            if span.ns() < 1_000_000 {
                return Err(ParseError::new("interval", text, "1ms or more"));
            }
            spec.interval = Some(span);
            Ok(())
        }
    ),
    general!(
        "on-error",
        None,
        "stop|continue",
        "stop",
        Run,
        "After a failed operation: end the phase, or count the error and continue",
        on_error,
        |text| choice("on-error", text, &[("stop", OnError::Stop), ("continue", OnError::Continue)])
    ),
    general_switch!("keep", "off", Run, "Keep the files that the run created", keep),
    general_switch!(
        "destroy-data",
        "off",
        Run,
        "Allow writes to a device or file with data that strata did not write",
        destroy_data
    ),
    general!(
        "name",
        None,
        "NAME",
        "the operation",
        Run,
        "Name of the phase in tables and the record",
        name,
        |text: &str| Ok::<_, ParseError>(text.to_owned())
    ),
];
