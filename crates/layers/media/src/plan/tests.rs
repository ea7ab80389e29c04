use units::ByteSize;
use workload::content::Refill;
use workload::options;
use workload::plan::{
    ArrivalPlan, ContentChoice, LayerPlan, LimitPlan, PhasePlan, PlanError, ThinkPlan, expand_ladder,
    parse_content,
};
use workload::spec::{CoresPolicy, LadderDimension, OnError, Share, Spacing, Spec, Warmup};
use workload::target::TargetKind;

use super::*;
use crate::engine::SyncCall;
use crate::spec::{CachePolicy, Layout};
use crate::target::TargetFacts;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const IO_URING: EngineFacts = EngineFacts {
    name: "io_uring",
    classes: &["read", "write", "discard", "nop", "sync"],
    asynchronous: true,
    depth_max: 4096,
    targetless: false,
    direct: true,
    options: &[
        "sync",
        "register-files",
        "register-buffers",
        "defer-taskrun",
        "sqpoll",
        "sqpoll-core",
        "iopoll",
    ],
};

const PSYNC: EngineFacts = EngineFacts {
    name: "psync",
    classes: &["read", "write", "discard", "sync"],
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: true,
    options: &[],
};

const MMAP: EngineFacts = EngineFacts {
    name: "mmap",
    classes: &["read", "write", "sync"],
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: false,
    options: &["map-sync"],
};

fn target(path: &str, kind: TargetKind, size_bytes: u64) -> TargetFacts {
    TargetFacts {
        path: path.to_owned(),
        kind,
        exists: true,
        size_bytes,
        allocated_bytes: size_bytes,
        direct_alignment_bytes: 512,
        free_bytes: None,
        zoned: None,
    }
}

fn file(size_bytes: u64) -> TargetFacts {
    target("/data/file", TargetKind::File, size_bytes)
}

/// A spec from `key=value` words, read as a job file would.
fn spec(words: &str) -> Spec {
    let mut spec = Spec { layer: crate::LAYER, ..Spec::default() };
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, "true"));
        options::apply(&mut spec, key, value).expect("an option");
    }
    spec
}

fn plan_on(words: &str, facts: &[TargetFacts], engine: &EngineFacts) -> Result<MediaPlan, PlanError> {
    let spec = spec(words);
    let operation = *crate::spec::of(&spec).operations.first().expect("an operation");
    resolve(&spec, operation, facts, engine, 7)
}

fn plan(words: &str) -> MediaPlan {
    plan_on(words, &[file(GIB)], &IO_URING).unwrap_or_else(|error| panic!("{words}: {error}"))
}

/// The one line that refuses a request.
#[track_caller]
fn refusal_on(words: &str, facts: &[TargetFacts], engine: &EngineFacts) -> String {
    let message = plan_on(words, facts, engine).expect_err(words).to_string();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    message
}

#[track_caller]
fn refused(words: &str, message: &str) {
    assert_eq!(refusal_on(words, &[file(GIB)], &IO_URING), message);
}

#[test]
fn every_default_is_resolved() {
    let plan = plan("op=randread");
    assert_eq!((plan.name.as_str(), plan.engine.as_str()), ("randread", "io_uring"));
    assert_eq!(plan.options, crate::engine::EngineOptions::default());
    assert_eq!((plan.block_size.as_str(), plan.block_size_bytes_max, plan.align_bytes), ("4KiB", 4096, 4096));
    assert_eq!(plan.mix, MixPlan { read_percent: 100, write_percent: 0, discard_percent: 0 });
    assert_eq!((plan.pattern.clone(), plan.share), (Pattern::Permutation, Share::Partition));
    assert_eq!((plan.targets[0].offset_bytes, plan.targets[0].size_bytes, plan.range_bytes()), (0, GIB, GIB));
    assert_eq!((plan.fsync_every, plan.end_fsync, plan.cache), (None, false, CachePolicy::Keep));
    assert_eq!((plan.verify_interval_bytes, plan.huge_pages), (None, false));
    assert_eq!((plan.reads(), plan.writes()), (true, false));
    let load = &plan.load;
    assert_eq!((load.threads, load.depth, load.batch, load.batch_min), (1, 1, 1, 1));
    assert_eq!((load.limit, load.warmup, load.arrivals), (LimitPlan::default(), Warmup::Auto, None));
    assert_eq!((load.interval_ns, load.on_error, load.seed), (20_000_000, OnError::Stop, 7));
    assert!(load.cores.is_empty() && load.numa.is_empty());
}

#[test]
fn sequential_operations_have_larger_blocks() {
    for (words, block_size, pattern) in [
        ("op=read", "1MiB", Pattern::Sequential),
        ("op=write", "1MiB", Pattern::Sequential),
        ("op=readwrite", "1MiB", Pattern::Sequential),
        ("op=randwrite", "4KiB", Pattern::Permutation),
        ("op=randrw", "4KiB", Pattern::Permutation),
        ("op=discard", "1MiB", Pattern::Sequential),
    ] {
        let plan = plan(words);
        assert_eq!((plan.block_size.as_str(), plan.pattern), (block_size, pattern), "{words}");
    }
}

#[test]
fn classes_have_their_shares() {
    let shares = |words| {
        let mix = plan(words).mix;
        (mix.read_percent, mix.write_percent, mix.discard_percent)
    };
    assert_eq!(shares("op=write"), (0, 100, 0));
    assert_eq!(shares("op=randdiscard"), (0, 0, 100));
    assert_eq!(shares("op=nop"), (0, 0, 0));
    assert_eq!(shares("op=randrw"), (50, 50, 0));
    assert_eq!(shares("op=randrw mix=70"), (70, 30, 0));
    assert_eq!(shares("op=readwrite mix=read=60,write=30,discard=10"), (60, 30, 10));
    // In a list of operations the mix is for those that mix.
    assert_eq!(shares("op=read,randrw mix=70"), (100, 0, 0));
    refused("op=read mix=70", "--mix goes with --op readwrite or randrw, not with read");
}

#[test]
fn a_request_is_kept() {
    let plan = plan(
        "op=randwrite block-size=8k size=512m offset=1m align=4k threads=4 depth=32 batch=16 batch-min=2 time=30s \
         count=1000 bytes=1g warmup=2s rate=300k arrivals=poisson direct sync=dsync fsync=8 pattern=zipf:0.9 \
         content=zero cores=0,2 interval=50ms on-error=continue share=whole cache=drop name=first huge-pages",
    );
    assert_eq!((plan.name.as_str(), plan.block_size.as_str(), plan.align_bytes), ("first", "8KiB", 4096));
    assert_eq!((plan.targets[0].offset_bytes, plan.targets[0].size_bytes), (MIB, 512 * MIB));
    let load = &plan.load;
    assert_eq!((load.threads, load.depth, load.batch, load.batch_min), (4, 32, 16, 2));
    let limit = LimitPlan { time_ns: Some(30_000_000_000), operations: Some(1000), bytes: Some(GIB) };
    assert_eq!((load.limit, load.warmup), (limit, Warmup::Fixed(2_000_000_000)));
    assert_eq!(load.arrivals, Some(ArrivalPlan { rate_per_second: 300_000.0, kind: Spacing::Poisson }));
    assert_eq!(
        (load.interval_ns, load.on_error, load.cores.as_slice()),
        (50_000_000, OnError::Continue, &[0, 2][..])
    );
    assert_eq!((plan.options.direct, plan.options.sync), (true, crate::engine::SyncMode::Dsync));
    assert_eq!((plan.fsync_every, plan.share, plan.cache), (Some(8), Share::Whole, CachePolicy::Drop));
    assert_eq!(plan.pattern, Pattern::Zipf { theta: 0.9 });
    assert_eq!((plan.content.content, plan.content.refill), (ContentChoice::Zero, Refill::Once));
    assert!(plan.huge_pages);
}

#[test]
fn patterns_go_with_their_operations() {
    refused(
        "op=read pattern=zipf:0.9",
        "--pattern zipf:0.9 does not go with --op read: use sequential, backward or strided",
    );
    refused(
        "op=randread pattern=backward",
        "--pattern backward does not go with --op randread: use permutation, fitted, uniform, zipf, pareto, normal or zoned",
    );
    assert_eq!(plan("op=read,randread pattern=uniform").pattern, Pattern::Sequential);
    assert_eq!(plan("op=randread,read pattern=uniform").pattern, Pattern::Uniform);
    refused("op=read align=4k", "--align is for random operations: leave it out");
}

#[test]
fn blocks_fit_into_the_range() {
    refused("op=read block-size=2g", "block size 2GiB is too large: use 1GiB or less");
    let small = [file(64 << 10)];
    assert_eq!(
        refusal_on("op=read", &small, &IO_URING),
        "block size 1MiB is larger than the range of /data/file (64KiB): use 64KiB or less"
    );
    assert!(plan_on("op=read block-size=64k", &small, &IO_URING).is_ok());
    assert_eq!(
        refusal_on("op=read block-size=4k-128k", &small, &IO_URING),
        "block size 128KiB is larger than the range of /data/file (64KiB): use 64KiB or less"
    );
    let left = plan_on("op=read block-size=4k offset=60k", &small, &IO_URING).expect("one block is left");
    assert_eq!(left.targets[0].size_bytes, 4096);
    assert_eq!(
        refusal_on("op=read block-size=4k offset=64k", &small, &IO_URING),
        "--offset 64KiB is past the end of /data/file (64KiB)"
    );
}

#[test]
fn targets_have_the_ranges_they_can_have() {
    let sized =
        |words: &str, facts: TargetFacts| plan_on(words, &[facts], &IO_URING).map(|plan| plan.range_bytes());
    let missing = TargetFacts { exists: false, size_bytes: 0, ..file(0) };
    assert_eq!(
        refusal_on("op=write", std::slice::from_ref(&missing), &IO_URING),
        "/data/file does not exist yet: give --size to create it"
    );
    assert_eq!(sized("op=write size=10m", missing), Ok(10 * MIB));
    let device = || target("/dev/vdb", TargetKind::BlockDevice, GIB);
    assert_eq!(sized("op=read", device()), Ok(GIB));
    assert_eq!(sized("op=read offset=256m", device()), Ok(768 * MIB));
    assert_eq!(
        refusal_on("op=read offset=256m size=1g", &[device()], &IO_URING),
        "--size 1GiB is more than /dev/vdb has after the offset: use 768MiB or less"
    );
    assert_eq!(sized("op=write", target("/dev/null", TargetKind::CharacterDevice, 0)), Ok(1 << 40));
    assert_eq!(sized("op=write", target("null:", TargetKind::Null, 0)), Ok(1 << 40));
    assert_eq!(sized("op=read", target("mem:", TargetKind::Memory, 0)), Ok(256 * MIB));
    assert_eq!(sized("op=read size=3m", target("mem:", TargetKind::Memory, 0)), Ok(3 * MIB));
    let huge = refusal_on("op=write size=7e offset=2e", &[target("null:", TargetKind::Null, 0)], &IO_URING);
    assert_eq!(huge, "offset plus size is more than 8EiB: use less");
    assert_eq!(
        refusal_on("op=read", &[], &IO_URING),
        "no target: give a file, a block device, rbd:POOL/IMAGE, null: or mem:"
    );
    let both = plan_on("op=read", &[file(GIB), device()], &IO_URING).expect("two targets");
    assert_eq!((both.targets.len(), both.range_bytes()), (2, 2 * GIB));
}

#[test]
fn a_target_without_size_gets_a_time_limit() {
    let time = |words: &str, kind| {
        plan_on(words, &[target("x", kind, GIB)], &IO_URING).expect("a plan").load.limit.time_ns
    };
    for kind in [TargetKind::Null, TargetKind::Memory, TargetKind::CharacterDevice] {
        assert_eq!(time("op=read", kind), Some(5_000_000_000));
        assert_eq!(time("op=read count=10", kind), None);
        assert_eq!(time("op=read bytes=10m", kind), None);
        assert_eq!(time("op=read time=1s", kind), Some(1_000_000_000));
    }
    assert_eq!(time("op=read", TargetKind::File), None);
    assert_eq!(time("op=read", TargetKind::BlockDevice), None);
}

#[test]
fn direct_io_is_aligned() {
    assert!(plan("op=randread direct block-size=512").options.direct);
    refused(
        "op=randread direct block-size=1000",
        "block size 1000 bytes is not aligned for direct I/O on /data/file: use multiples of 512 bytes",
    );
    let uneven = refusal_on("op=randread direct block-size=4k:50,4100:50", &[file(GIB)], &IO_URING);
    assert!(
        uneven.ends_with("is not aligned for direct I/O on /data/file: use multiples of 512 bytes"),
        "{uneven}"
    );
    refused(
        "op=randread direct offset=100",
        "offset 100 bytes is not aligned for direct I/O on /data/file: use multiples of 512 bytes",
    );
    refused(
        "op=randread direct align=3000",
        "--align 3000 bytes is not aligned for direct I/O on /data/file: use multiples of 512 bytes",
    );
    let large = TargetFacts { direct_alignment_bytes: 4096, ..file(GIB) };
    assert_eq!(
        refusal_on("op=randread direct block-size=512", &[large], &IO_URING),
        "block size 512 bytes is not aligned for direct I/O on /data/file: use multiples of 4096 bytes"
    );
    let without = TargetFacts { direct_alignment_bytes: 0, ..file(GIB) };
    assert_eq!(
        refusal_on("op=randread direct", &[without], &IO_URING),
        "/data/file does not support direct I/O: leave out --direct"
    );
    assert_eq!(
        refusal_on("op=randread direct", &[file(GIB)], &MMAP),
        "--direct has no effect on engine mmap: use psync, pvsync2, libaio or io_uring"
    );
}

#[test]
fn engines_do_what_they_can() {
    let on = |words: &str, engine: &EngineFacts| refusal_on(words, &[file(GIB)], engine);
    assert_eq!(
        on("op=read depth=4", &PSYNC),
        "engine psync runs one operation at a time and does not support --depth 4: use --threads 4, or --engine io_uring or libaio"
    );
    assert_eq!(
        on("op=read depth=5000", &IO_URING),
        "engine io_uring supports a depth of at most 4096, not 5000"
    );
    assert_eq!(on("op=nop", &PSYNC), "engine psync has no nop: it supports read, write, discard, sync");
    assert_eq!(on("op=discard", &MMAP), "engine mmap has no discard: it supports read, write, sync");
    assert_eq!(
        on("op=readwrite mix=read=50,write=45,discard=5", &MMAP),
        "engine mmap has no discard: it supports read, write, sync"
    );
    let without_sync = EngineFacts { classes: &["read", "write"], ..PSYNC };
    assert_eq!(on("op=write fsync=8", &without_sync), "engine psync has no sync: it supports read, write");
    assert_eq!(on("op=write end-fsync", &without_sync), "engine psync has no sync: it supports read, write");
    for (words, option) in [
        ("sqpoll", "sqpoll"),
        ("register-files=on", "register-files"),
        ("iopoll", "iopoll"),
        ("map-sync", "map-sync"),
    ] {
        assert_eq!(
            on(&format!("op=read {words}"), &PSYNC),
            format!(
                "--{option} is not an option of engine psync: see `strata list` for the engine that has it"
            )
        );
    }
    assert!(plan("op=read sqpoll sqpoll-core=3 register-buffers=off").options.sqpoll);
    refused("op=read iopoll", "--iopoll requires --direct: add it");
    refused("op=read sqpoll-core=3", "--sqpoll-core requires --sqpoll: add it");
    assert!(plan_on("op=read sqpoll=false", &[file(GIB)], &PSYNC).is_ok(), "switched off is not asked for");
}

#[test]
fn loads_that_contradict_themselves_are_refused() {
    refused("op=read cores=0 numa=0", "--cores and --numa exclude each other: give one of them");
    refused("op=read arrivals=poisson", "--arrivals requires an open loop: add --rate");
    assert!(plan("op=write end-fsync time=1s").end_fsync, "the runner syncs after the window too");
    refused(
        "op=read think-time=1ms no-catch-up",
        "--no-catch-up requires --rate and --think-time: give both",
    );
    refused("op=read think-after=1s", "--think-after and --think-spin require --think-time: add it");
    refused(
        "op=read think-time=1ms think-spin=2ms",
        "--think-spin cannot be longer than --think-time: use a shorter --think-spin",
    );
    refused("op=read think-blocks=4", "--think-blocks requires --think-time: add it");
    refused("op=write sync-call=fsync", "--sync-call requires --fsync or --end-fsync: add one of them");
    refused("op=read cores-policy=shared", "--cores-policy requires --cores: add it");
    refused("op=read saturate rate=1k", "--saturate sets the load itself: leave out --rate and --ladder");
    refused(
        "op=read saturate ladder=depth=1,2",
        "--saturate sets the load itself: leave out --rate and --ladder",
    );
    refused("op=read depth=4 batch-min=5", "--batch-min 5 is more than the depth: use 4 or less");
    refused("op=read depth=4 batch=5", "--batch 5 is more than the depth: use 4 or less");
}

#[test]
fn pauses_delays_and_layouts_arrive_in_the_plan() {
    let plain = plan("op=write");
    let load = &plain.load;
    assert_eq!(
        (load.think, load.start_delay_ns, load.end_others, load.split_latency),
        (None, 0, false, false)
    );
    assert_eq!((load.cores_policy, plain.layout), (CoresPolicy::Split, Layout::Auto));
    assert_eq!(plain.options.sync_call, SyncCall::Fdatasync);
    let asked = plan(
        "op=write think-time=2ms start-delay=1s end-others split-latency cores=0 cores-policy=shared \
         layout=sparse fsync=4 sync-call=fsync",
    );
    let load = &asked.load;
    assert_eq!(load.think, Some(ThinkPlan { pause_ns: 2_000_000, blocks: 1, ..Default::default() }));
    assert_eq!((load.start_delay_ns, load.end_others, load.split_latency), (1_000_000_000, true, true));
    assert_eq!((load.cores_policy, asked.layout), (CoresPolicy::Shared, Layout::Sparse));
    assert_eq!(asked.options.sync_call, SyncCall::Fsync);
    let think = |text: &str| plan(text).load.think.unwrap();
    assert_eq!(think("op=read think-time=1ms think-blocks=8").blocks, 8);
    let timed = think("op=read think-time=1s think-after=9s think-spin=1ms rate=1k no-catch-up");
    assert_eq!((timed.blocks, timed.after_ns), (u64::MAX, Some(9_000_000_000)));
    assert!(timed.spin_ns == 1_000_000 && timed.moves_arrivals, "{timed:?}");
}

#[test]
fn workers_need_blocks_to_share() {
    let small = [file(16 << 10)];
    assert_eq!(
        refusal_on("op=randread threads=5", &small, &IO_URING),
        "5 threads cannot share 4 blocks: use fewer threads, a larger --size, or --share whole"
    );
    assert!(plan_on("op=randread threads=4", &small, &IO_URING).is_ok());
    assert!(plan_on("op=randread threads=5 share=whole", &small, &IO_URING).is_ok());
    assert!(
        plan_on("op=randread size=8k threads=5", &[target("mem:", TargetKind::Memory, 0)], &IO_URING).is_ok()
    );
}

#[test]
fn content_is_filled_as_it_needs_to_be() {
    let content = |words: &str| {
        let content = plan(&format!("op=write {words}")).content;
        (content.content, content.compress_percent, content.dedupe_percent, content.refill)
    };
    assert_eq!(content(""), (ContentChoice::Random, 0, 0, Refill::Full));
    assert_eq!(content("refill=stamp"), (ContentChoice::Random, 0, 0, Refill::Stamp));
    let memory = plan_on("op=write", &[target("mem:", TargetKind::Memory, 0)], &IO_URING).expect("plan");
    assert_eq!(memory.content.refill, Refill::Once, "nobody stores it");
    assert_eq!(content("refill=once"), (ContentChoice::Random, 0, 0, Refill::Once));
    assert_eq!(content("compress=50%"), (ContentChoice::Random, 50, 0, Refill::Full));
    assert_eq!(content("dedupe=30 refill=full"), (ContentChoice::Random, 0, 30, Refill::Full));
    assert_eq!(content("content=0xab"), (ContentChoice::Bytes(vec![0xab]), 0, 0, Refill::Once));
    refused(
        "op=write content=zero compress=50",
        "--compress and --dedupe require random content: leave out --content",
    );
    let set = plan("op=write dedupe=30 dedupe-set=50m dedupe-global seed=7").content;
    assert_eq!((set.dedupe_set_chunks, set.dedupe_set_seed), (Some(12_800), Some(7)));
    refused("op=write dedupe-set=1m", "--dedupe-set and --dedupe-global require --dedupe: add it");
    refused("op=write dedupe=50 refill=once", "--compress and --dedupe require --refill full");
}

#[test]
fn verified_blocks_are_whole() {
    assert_eq!(plan("op=write verify").verify_interval_bytes, Some(4096));
    assert_eq!(plan("op=write verify block-size=512").verify_interval_bytes, Some(512));
    assert_eq!(plan("op=write verify verify-interval=64k").verify_interval_bytes, Some(64 << 10));
    refused("op=write verify-interval=4k", "--verify-interval requires --verify: add it");
    refused("op=read verify-run=7", "--verify-run requires --verify: add it");
    refused("op=write no-read-back", "--no-read-back requires --verify: add it");
    assert_eq!(plan("op=read verify verify-run=7").verify_run, Some(7));
    let own = "--verify generates its own data: leave out --content, --compress, --dedupe and --refill";
    for words in ["content=zero", "compress=10", "dedupe=10", "refill=full"] {
        refused(&format!("op=write verify {words}"), own);
    }
    let grain = |words: &str| {
        let plan = plan(words);
        (plan.verify_grain_bytes, plan.verify_interval_bytes.unwrap())
    };
    assert_eq!(grain("op=randwrite verify block-size=16k"), (None, 4096));
    assert_eq!(grain("op=randwrite verify block-size=1k-64k"), (Some(1024), 1024));
    assert_eq!(grain("op=randwrite verify block-size=16k:50,24k:50"), (Some(8192), 4096));
    assert_eq!(grain("op=randwrite verify block-size=8k align=4k"), (Some(4096), 4096));
    assert_eq!(grain("op=rw verify block-size=read=2k,write=6k"), (Some(2048), 2048));
    refused(
        "op=randwrite verify block-size=600-1200/100",
        "--verify needs blocks and positions of whole 512-byte sectors: use multiples of 512 for --block-size and --align",
    );
    refused(
        "op=randwrite verify block-size=4k-64k threads=2",
        "--verify needs one writer per block, and blocks of several sizes can cross into the part of another thread: use --pattern fitted, or --threads 1",
    );
    assert!(
        plan("op=randwrite verify block-size=4k-64k threads=2 pattern=fitted").verify_grain_bytes.is_some()
    );
    refused(
        "op=write verify verify-pattern=0x0000",
        "--verify-pattern of zeros cannot detect lost blocks: use another pattern",
    );
    refused("op=write verify-backlog=8", "--verify-backlog requires --verify: add it");
    refused(
        "op=randwrite pattern=fitted block-size=4k-8k align=4k",
        "--pattern fitted places blocks without gaps: leave out --align",
    );
    refused(
        "op=randwrite pattern=fitted block-size=4k-8k zones=8k/64k",
        "--pattern fitted covers a range once, with blocks of all sizes: leave out sizes by class, --run, --random-percent, --zones and --visit",
    );
    refused(
        "op=randwrite verify share=whole threads=2",
        "--verify needs one writer per block: leave out --share whole",
    );
    assert!(plan("op=randread verify share=whole threads=2").verify_interval_bytes.is_some());
    for interval in ["256", "1000", "3k"] {
        let refusal =
            refusal_on(&format!("op=write verify verify-interval={interval}"), &[file(GIB)], &IO_URING);
        assert!(
            refusal.ends_with("into parts of whole 512-byte sectors: use 4k and a multiple of it"),
            "{refusal}"
        );
    }
}

#[test]
fn the_engine_follows_from_target_and_depth() {
    let of = |words: &str, kind, allowed| default_engine(&spec(words), &[target("x", kind, GIB)], allowed);
    assert_eq!(of("op=read depth=32", TargetKind::Null, true), "null");
    assert_eq!(of("op=read depth=32", TargetKind::Memory, true), "mem");
    for kind in [TargetKind::File, TargetKind::BlockDevice, TargetKind::CharacterDevice] {
        assert_eq!(of("op=read", kind, true), "psync");
        assert_eq!(of("op=read depth=1 threads=8", kind, true), "psync");
        assert_eq!(of("op=read depth=2", kind, true), "io_uring");
        assert_eq!(of("op=read depth=2", kind, false), "libaio");
        assert_eq!(of("op=read saturate", kind, true), "io_uring");
        assert_eq!(of("op=read ladder=depth=1,2", kind, false), "libaio");
        assert_eq!(of("op=read ladder=depth=1", kind, true), "psync");
        assert_eq!(of("op=read ladder=threads=1,2", kind, true), "psync");
        assert_eq!(of("op=nop", kind, true), "io_uring");
    }
}

#[test]
fn a_ladder_becomes_its_rungs() {
    let base = spec("op=randread depth=3 threads=5 block-size=4k rate=10k");
    assert_eq!(expand_ladder(&base), std::slice::from_ref(&base));
    let rungs = |words: &str| expand_ladder(&spec(&format!("op=randread depth=3 threads=5 {words}")));
    let depths = rungs("ladder=depth=1,2,64");
    assert!(depths.iter().all(|step| step.ladder.is_none() && step.threads == Some(5)));
    assert_eq!(depths.iter().map(|step| step.depth).collect::<Vec<_>>(), [Some(1), Some(2), Some(64)]);
    let threads = rungs("ladder=threads=8,4");
    assert_eq!(
        threads.iter().map(|step| (step.threads, step.depth)).collect::<Vec<_>>(),
        [(Some(8), Some(3)), (Some(4), Some(3)),]
    );
    let sizes = rungs("ladder=block-size=512,4k,1m,1000");
    let sizes: Vec<_> = sizes.iter().map(|step| step.block_size.clone().expect("a size")).collect();
    assert_eq!(sizes, ["512", "4KiB", "1MiB", "1000"]);
    assert!(sizes.iter().all(|size| size.parse::<ByteSize>().is_ok()));
    let rates = rungs("ladder=rate=1k,300k");
    let rates: Vec<_> = rates.iter().map(|step| step.rate.map(units::Rate::per_second)).collect();
    assert_eq!(rates, [Some(1000.0), Some(300_000.0)]);
    assert_eq!(spec("ladder=depth=1,2").ladder.map(|ladder| ladder.dimension), Some(LadderDimension::Depth));
}

#[test]
fn a_mix_is_a_percentage_or_shares() {
    let shares =
        |text: &str| parse_mix(text).map(|mix| (mix.read_percent, mix.write_percent, mix.discard_percent));
    assert_eq!(shares("70"), Ok((70, 30, 0)));
    assert_eq!(shares("70%"), Ok((70, 30, 0)));
    assert_eq!((shares("0"), shares("100")), (Ok((0, 100, 0)), Ok((100, 0, 0))));
    assert_eq!(shares("read=70,write=25,discard=5"), Ok((70, 25, 5)));
    assert_eq!(shares("write=100"), Ok((0, 100, 0)));
    assert_eq!(shares("discard=40, read=60%"), Ok((60, 0, 40)));
    for text in [
        "101",
        "150",
        "-1",
        "",
        "x",
        "read=70",
        "read=70,write=31",
        "read=101",
        "trim=100",
        "read",
        "70,30",
        "read=0,read=100",
    ] {
        let error = shares(text).expect_err(text).to_string();
        let accepted = "a percentage of reads from 0 to 100, or shares that add up to 100 such as \
                        read=70,write=25,discard=5";
        assert_eq!(error, format!("\"{text}\" is not a mix: use {accepted}"));
    }
}

#[test]
fn content_is_random_zero_or_bytes() {
    assert_eq!(parse_content("random"), Ok(ContentChoice::Random));
    assert_eq!(parse_content("zero"), Ok(ContentChoice::Zero));
    assert_eq!(parse_content("0xdeadBEEF"), Ok(ContentChoice::Bytes(vec![0xde, 0xad, 0xbe, 0xef])));
    for text in ["", "0x", "0xabc", "0xzz", "deadbeef", "0x+1", "0xé", "Zero"] {
        let error = parse_content(text).expect_err(text).to_string();
        assert!(
            error.ends_with("is not a content: use random, zero or hexadecimal bytes such as 0xdeadbeef"),
            "{error}"
        );
    }
}

#[test]
fn another_depth_is_what_a_plain_run_of_it_would_be() {
    for words in [
        "op=randread",
        "op=randread direct",
        "op=randread direct depth=4 batch=2",
        "op=randread depth=8 batch=4 batch-min=3 batch-max=5",
        "op=randread batch-max=1",
    ] {
        let mut phase = PhasePlan::new(plan(words));
        phase.set_depth(64, &spec(words));
        assert_eq!(phase, PhasePlan::new(plan(&format!("{words} depth=64"))), "{words}");
    }
}

/// A plan of another layer.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
struct OtherPlan {
    name: String,
    engine: String,
    load: LoadPlan,
}

impl LayerPlan for OtherPlan {
    workload::plan_parts!("other");

    fn operation_words(&self) -> String {
        String::new()
    }
}

#[test]
fn a_plan_is_written_with_its_layer_and_read_back() {
    layer::add(&crate::Media);
    let phase = PhasePlan::new(plan("op=randread"));
    let text = serde_json::to_string(&phase).expect("it is written");
    assert!(text.starts_with(r#"{"layer":"media","name":"randread","engine":"#), "{text}");
    let back: PhasePlan = serde_json::from_str(&text).expect("it is read");
    assert_eq!((back.layer(), back == phase, back.of::<OtherPlan>()), ("media", true, None));
    assert_eq!(format!("{phase:?}"), format!("{back:?}"));
    let refused = |text: &str| serde_json::from_str::<PhasePlan>(text).expect_err("refused").to_string();
    assert_eq!(refused("{}"), "missing field `layer`");
    assert!(
        refused(r#"{"layer":"medi\u001ba"}"#).starts_with("unknown layer"),
        "{}",
        refused(r#"{"layer":"medi\u001ba"}"#)
    );
    assert!(refused(r#"{"layer":"media"}"#).contains("missing field `name`"));
}
