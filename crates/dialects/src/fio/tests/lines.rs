use media::course::Visit;
use media::engine::{SyncCall, SyncMode};
use media::of;
use media::spec::{CachePolicy, Layout};
use units::ByteSize;
use workload::engine::Feature;
use workload::spec::{CoresPolicy, OnError, Operation, Refill, Share, Spacing, Spec, Warmup};

use super::*;
use crate::fio::model::{Direction, Format, LogKind};
use crate::options::asked;
use crate::{Destination, Progress};

/// Percent of reads of a mix.
fn reads(spec: &Spec) -> Option<u8> {
    of(spec).mix.map(|mix| mix.read_percent)
}

#[test]
fn fio_defaults_are_fio_s() {
    let mut expected = Spec {
        name: Some("x".to_owned()),
        targets: vec!["f".to_owned()],
        block_size: Some("4096".to_owned()),
        threads: Some(1),
        depth: Some(1),
        batch: Some(1),
        warmup: Some(Warmup::None),
        seed: Some(137),
        split_latency: true,
        on_error: Some(OnError::Stop),
        keep: true,
        ..asked::made("media", &[])
    };
    let own = [
        ("op", "read"),
        ("size", "1g"),
        ("engine", "psync"),
        ("layout", "fill"),
        ("cache", "drop"),
        ("advise", "sequential"),
    ];
    expected = asked::with(expected, &own);
    assert_eq!(spec(""), expected);
}

#[test]
fn the_line_that_everyone_types() {
    let made = spec(
        "--rw=randrw --rwmixread=70 --bs=8k --ioengine=libaio --iodepth=32 --direct=1 --numjobs=4 --runtime=60 --time_based --group_reporting",
    );
    assert_eq!(of(&made).operations, [Operation::RandRw]);
    assert_eq!((reads(&made), made.block_size.as_deref()), (Some(70), Some("8192")));
    assert_eq!((made.threads, made.depth, made.batch), (Some(4), Some(32), Some(1)));
    assert_eq!((of(&made).engine.as_deref(), of(&made).options.direct), (Some("libaio"), true));
    assert_eq!(made.time.map(|time| time.ns()), Some(60_000_000_000));
    assert_eq!((made.bytes, made.share), (None, Some(Share::Whole)));
    assert_eq!((made.pattern.as_deref(), of(&made).layout), (Some("permutation"), Some(Layout::Fill)));
}

#[test]
fn runtime_alone_ends_at_the_size_too() {
    let made = spec("--runtime=2m");
    assert_eq!(
        (made.time.map(|time| time.ns()), made.bytes),
        (Some(120_000_000_000), Some(ByteSize(1 << 30)))
    );
    let made = spec("--loops=3");
    assert_eq!((made.time, made.bytes), (None, Some(ByteSize(3 << 30))));
    let made = spec("--io_size=10m");
    assert_eq!((of(&made).size, made.bytes), (Some(ByteSize(1 << 30)), Some(ByteSize(10 << 20))));
    let made = spec("--number_ios=100 --numjobs=2 --group_reporting");
    assert_eq!((made.count, made.bytes), (Some(200), Some(ByteSize(2 << 30))));
    assert_eq!(spec("--ramp_time=5").warmup, Some(Warmup::Fixed(5_000_000_000)));
}

#[test]
fn clones_have_files_of_their_own() {
    let made =
        specs("--name=x --rw=write --size=1m --numjobs=2 --group_reporting --directory=/d --nrfiles=2");
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].targets, ["/d/x.0.0", "/d/x.0.1", "/d/x.1.0", "/d/x.1.1"]);
    assert_eq!((of(&made[0]).size, made[0].share), (Some(ByteSize(512 << 10)), Some(Share::Partition)));
    let made = specs("--name=x --rw=write --size=1m --numjobs=3 --directory=/a:/b");
    let targets: Vec<_> = made.iter().map(|spec| spec.targets[0].as_str()).collect();
    assert_eq!(targets, ["/a/x.0.0", "/b/x.1.0", "/a/x.2.0"]);
    assert_eq!(made.iter().map(|spec| spec.concurrent).collect::<Vec<_>>(), [false, true, true]);
    assert!(made.iter().all(|spec| spec.threads == Some(1)));
}

#[test]
fn offset_increment_takes_clones_apart() {
    let line = "--name=x --filename=/dev/d --size=1g --offset=1m --offset_increment=1g --numjobs=3 --group_reporting";
    let offsets: Vec<_> = specs(line).iter().map(|spec| of(spec).offset.map(|offset| offset.0)).collect();
    assert_eq!(offsets, [Some(1 << 20), Some((1 << 20) + (1 << 30)), Some((1 << 20) + (2 << 30))]);
}

#[test]
fn sizes_in_percent_are_of_what_is_there() {
    let device = PathFacts::BlockDevice { size_bytes: 1000 << 20 };
    let machine = Machine { paths: [("/dev/d".to_owned(), device)].into(), ..Machine::default() };
    let one = |line: &str| assembled(line, &machine).expect("read").specs.remove(0);
    let made = one("--name=x --filename=/dev/d --size=50%");
    assert_eq!(of(&made).size, Some(ByteSize(500 << 20)));
    let made = one("--name=x --filename=/dev/d --size=100% --runtime=10");
    assert_eq!((of(&made).size, made.bytes), (None, Some(ByteSize(1000 << 20))));
    let made = one("--name=x --filename=/dev/d --offset=25% --loops=2");
    assert_eq!((of(&made).offset, made.bytes), (Some(ByteSize(250 << 20)), Some(ByteSize(1500 << 20))));
    assert_eq!(one("--name=/dev/d").targets, ["/dev/d"]);
}

#[test]
fn filesize_is_the_file_and_size_what_is_done() {
    let made = specs("--name=x --filename=f --filesize=1g --size=100m").remove(0);
    assert_eq!((of(&made).size, made.bytes), (Some(ByteSize(1 << 30)), Some(ByteSize(100 << 20))));
    let made = specs("--name=x --filename=f --filesize=128G --size=999G").remove(0);
    assert_eq!((of(&made).size, made.bytes), (Some(ByteSize(128 << 30)), None));
}

#[test]
fn filenames_between_colons() {
    let made = specs(r"--name=x --filename=/a:/b\:c --size=2m --rw=randread").remove(0);
    assert_eq!(
        (made.targets.clone(), of(&made).size),
        (vec!["/a".to_owned(), "/b:c".to_owned()], Some(ByteSize(1 << 20)))
    );
}

#[test]
fn block_sizes_of_every_kind() {
    let size = |options: &str| spec(options).block_size.expect("a size");
    assert_eq!(size("--bs=64k"), "65536");
    assert_eq!(size("--blocksize=4k,8k,16k --rw=write"), "8192");
    assert_eq!(size("--bs=,8k"), "4096");
    assert_eq!(size("--bsrange=4k-64k"), "4096-65536");
    assert_eq!(size("--bsrange=4k-4k"), "4096");
    assert_eq!(size("--bssplit=4k/10:64k/50:32k/40"), "4096:10,65536:50,32768:40");
    assert_eq!(size("--bssplit=4k/50:8k/:16k/"), "4096:50,8192:25,16384:25");
    assert_eq!(size("--bssplit=4k/100:8k/0"), "4096");
    assert_eq!(size("--bs=(4*1k)"), "4096");
    assert_eq!(size("--bs=0x1000"), "4096");
    let made = spec("--rw=randread --bsrange=4k-64k");
    assert_eq!((of(&made).align, made.pattern.as_deref()), (None, Some("fitted")));
    let made = spec("--rw=randread --bsrange=4k-64k --time_based --runtime=1");
    assert_eq!((of(&made).align, made.pattern.as_deref()), (Some(ByteSize(4096)), Some("permutation")));
    let made = spec("--rw=randread --bs=4k --blockalign=512");
    assert_eq!((of(&made).align, made.pattern.as_deref()), (Some(ByteSize(512)), Some("uniform")));
}

#[test]
fn directions_of_a_mix_differ() {
    let made = spec("--rw=randrw --bs=4k,16k");
    assert_eq!((made.block_size.as_deref(), of(&made).align), (Some("read=4096,write=16384"), None));
    let made = spec("--rw=rw --bsrange=4k-8k,16k-32k");
    assert_eq!(
        (made.block_size.as_deref(), of(&made).own_positions),
        (Some("read=4096-8192,write=16384-32768"), true)
    );
    assert_eq!(spec("--rw=read --bsrange=4k-6k --bs_unaligned=1").block_size.as_deref(), Some("4096-6144/1"));
    assert_eq!(spec("--rw=randread --bs=4k,8k --bs_is_seq_rand=1").block_size.as_deref(), Some("8192"));
    assert_eq!(spec("--rw=read --bs=4k,8k --bs_is_seq_rand=1").block_size.as_deref(), Some("4096"));
    assert_eq!(reads(&spec("--rw=rw --rwmixwrite=12.5")), Some(88));
}

#[test]
fn zones_and_turns() {
    let zones = |options: &str| {
        of(&spec(&format!("--zonemode=strided {options}")))
            .zones
            .map(|zones| (zones.size_bytes, zones.range_bytes, zones.skip_bytes))
    };
    assert_eq!(zones("--zonesize=8k"), Some((8192, 8192, 0)));
    assert_eq!(zones("--zonesize=8k --zonerange=1m --zoneskip=2m"), Some((8192, 1 << 20, 2 << 20)));
    assert_eq!(of(&spec("--zonemode=none")).zones, None);
    let zoned = |options: &str| {
        of(&spec(&format!("--zonemode=zbd {options}"))).zoned.clone().expect("zones of a device")
    };
    let plain = zoned("--rw=write");
    assert_eq!((plain.rounds, plain.size, plain.open_max), (true, None, None));
    let all = zoned(
        "--rw=randwrite --zonesize=8m --zonecapacity=6m --max_open_zones=4 --job_max_open_zones=2 --ignore_zone_limits=1 --read_beyond_wp=1 --zone_reset_threshold=.5 --zone_reset_frequency=.01 --recover_zbd_write_error=1",
    );
    assert_eq!((all.size, all.capacity), (Some(ByteSize(8 << 20)), Some(ByteSize(6 << 20))));
    assert_eq!((all.open_max, all.worker_open_max), (Some(4), Some(2)));
    assert!(all.ignores_limits && all.reads_beyond);
    assert_eq!((all.reset_threshold, all.reset_frequency), (Some(0.5), Some(0.01)));
    assert_eq!(zoned("--rw=randwrite --zone_reset_threshold=.5").reset_threshold, None, "as in fio");
    assert_eq!(spec("--rw=trim --bs=8m --zonemode=zbd").block_size, None, "a zone, whatever its size");
    let visit = |options: &str| of(&specs(&format!("--name=x --filename=a:b --size=1m {options}"))[0]).visit;
    assert_eq!(visit("--rw=read"), Some(Visit::RoundRobin(1)));
    assert_eq!(visit("--rw=read --file_service_type=roundrobin:4"), Some(Visit::RoundRobin(4)));
    assert_eq!(visit("--rw=read --file_service_type=random:2"), Some(Visit::Random(2)));
    assert_eq!(visit("--rw=read --file_service_type=sequential"), None);
    assert_eq!(visit("--rw=randread"), None);
}

#[test]
fn units_are_fio_s() {
    let bytes =
        |options: &str| of(&specs(&format!("--name=x --filename=f {options}"))[0]).size.map(|size| size.0);
    assert_eq!(bytes("--size=1m"), Some(1 << 20));
    assert_eq!(bytes("--size=1mb"), Some(1 << 20));
    assert_eq!(bytes("--size=1MiB"), Some(1_000_000));
    assert_eq!(bytes("--kb_base=1000 --size=1m"), Some(1_000_000));
    assert_eq!(bytes("--size=1MiB --kb_base=1000"), Some(1 << 20));
    let all = assembled("--name=x --filename=f --size=1MiB", &Machine::default()).expect("read");
    assert!(all.warnings[0].contains("a power of 1000"), "{:?}", all.warnings);
}

#[test]
fn order_of_positions() {
    let pattern = |options: &str| spec(options).pattern;
    assert_eq!(pattern("--rw=randread --norandommap").as_deref(), Some("uniform"));
    assert_eq!(pattern("--rw=randread --random_distribution=zipf:1.2").as_deref(), Some("zipf:1.2"));
    assert_eq!(pattern("--rw=randread --random_distribution=zipf").as_deref(), Some("zipf:1.1"));
    assert_eq!(pattern("--rw=randread --random_distribution=pareto:0.3").as_deref(), Some("pareto:0.3"));
    assert_eq!(pattern("--rw=randread --random_distribution=normal:10").as_deref(), Some("normal:10"));
    assert_eq!(
        pattern("--rw=randread --random_distribution=zoned:50/5:30/15:20/").as_deref(),
        Some("zoned:50/5,30/15,20/80")
    );
    assert_eq!((of(&spec("--rw=read:-8k --bs=4k")).gap, pattern("--rw=read:-8k")), (Some(-8192), None));
    assert_eq!((of(&spec("--rw=write:12k")).gap, of(&spec("--rw=write:0")).gap), (Some(12_288), None));
    let run = |options: &str| of(&spec(options)).run.map(|run| (run.operations, run.identical));
    assert_eq!(run("--rw=randread:8"), Some((8, false)));
    assert_eq!(run("--rw=randwrite:8 --rw_sequencer=identical"), Some((8, true)));
    assert_eq!((run("--rw=randread:1"), run("--rw=randread")), (None, None));
    let percents = |options: &str| of(&spec(options)).random_percent.map(|percents| percents.0);
    assert_eq!(percents("--rw=randrw --percentage_random=40,70"), Some([40, 70, 70]));
    assert_eq!(percents("--rw=randread --percentage_random=100"), None);
    assert_eq!(pattern("--rw=read"), None);
    assert_eq!(of(&spec("--rw=randread --percentage_random=0")).operations, [Operation::Read]);
}

#[test]
fn least_rates_are_of_the_directions_that_a_job_does() {
    assert_eq!(spec("--rate_min=1024").control.rate_bytes_min, Some(1024));
    assert_eq!(spec("--rw=randrw --rate_min=1024,2048").control.rate_bytes_min, Some(3072));
    assert_eq!(spec("--rate_iops_min=100").control.rate_min, Some(100.0));
}

#[test]
fn drivers_and_their_options() {
    let made = spec(
        "--ioengine=io_uring --iodepth=8 --fixedbufs --registerfiles --sqthread_poll --sqthread_poll_cpu=1 --hipri --direct=1",
    );
    assert_eq!(
        (of(&made).options.register_buffers, of(&made).options.register_files),
        (Feature::On, Feature::On)
    );
    assert_eq!(
        (
            of(&made).options.sqpoll,
            of(&made).options.sqpoll_core,
            of(&made).options.iopoll,
            of(&made).options.hipri
        ),
        (true, Some(1), true, false)
    );
    let made = spec("--ioengine=pvsync2 --hipri --uncached=1 --nowait=1");
    assert_eq!(
        (
            of(&made).options.hipri,
            of(&made).options.dontcache,
            of(&made).options.nowait,
            of(&made).options.iopoll
        ),
        (true, true, true, false)
    );
    assert_eq!(of(&made).engine_options_given, ["hipri", "dontcache", "nowait", "advise"]);
    assert!(of(&spec("--buffered=0")).options.direct);
    assert!(!of(&spec("--direct=1 --buffered=1")).options.direct);
    assert!(of(&spec("--mem=mmaphuge")).huge_pages);
    let made = spec("--ioengine=libaio --iodepth=16 --iodepth_batch=8 --iodepth_batch_complete=4");
    assert_eq!((made.batch, made.batch_min), (Some(8), Some(4)));
    assert_eq!(spec("--ioengine=libaio --iodepth=16 --iodepth_batch=0").batch, Some(16));
}

#[test]
fn an_engine_that_waits_has_depth_1_and_says_so() {
    let all = assembled("--name=x --filename=f --size=1g --ioengine=sync --iodepth=32", &Machine::default())
        .unwrap();
    assert_eq!((of(&all.specs[0]).engine.as_deref(), all.specs[0].depth), (Some("psync"), Some(1)));
    assert!(all.warnings[0].contains("runs as psync"), "{:?}", all.warnings);
    assert!(all.warnings[1].contains("iodepth=32 is 1"), "{:?}", all.warnings);
    assert_eq!((all.jobs[0].engine.as_str(), all.jobs[0].depth), ("sync", 1));
}

#[test]
fn the_null_engine_has_the_target_of_nothing() {
    let made = specs("--name=x --ioengine=null --size=100g --rw=randread --numjobs=2 --direct=1").remove(0);
    assert_eq!(
        (made.targets.clone(), of(&made).options.direct, of(&made).cache),
        (vec!["null:".to_owned()], false, None)
    );
    assert_eq!(of(&made).engine.as_deref(), Some("null"));
}

#[test]
fn what_has_no_end_of_its_own_ends_at_the_size() {
    let bytes = |line: &str| specs(line).remove(0).bytes;
    assert_eq!(bytes("--name=x --size=1m --ioengine=null"), Some(ByteSize(1 << 20)));
    let paths = [("/dev/zero".to_owned(), PathFacts::CharacterDevice)].into();
    let machine = Machine { paths, ..Machine::default() };
    let made = assembled("--name=x --size=1m --filename=/dev/zero", &machine).expect("read").specs.remove(0);
    assert_eq!(made.bytes, Some(ByteSize(1 << 20)));
    // Blocks of several sizes fit between each other; without a map a pass would be many times the size.
    assert_eq!(spec("--rw=randwrite --bssplit=4k/50:64k/50").bytes, None);
    let made = spec("--rw=randwrite --bssplit=4k/50:64k/50 --norandommap");
    assert_eq!(made.bytes, Some(ByteSize(1 << 30)));
    assert_eq!(spec("--rw=randread --bsrange=4k-64k --runtime=1 --time_based").bytes, None);
    assert_eq!(spec("--rw=write --bsrange=4k-64k").bytes, None);
    assert_eq!(spec("--rw=randwrite").bytes, None);
}

#[test]
fn exitall_of_one_job_is_that_of_all() {
    let ends = |line: &str| -> Vec<bool> { specs(line).iter().map(|spec| spec.end_others).collect() };
    assert_eq!(ends("--size=1m --name=a --name=b --exitall --name=c"), [true, true, true]);
    assert_eq!(ends("--size=1m --name=a --name=b"), [false, false]);
    // A job that is alone in its group ends nothing else.
    assert_eq!(ends("--size=1m --name=a --exitall --name=b --new_group"), [false, false]);
    assert_eq!(ends("--size=1m --exit_what=stonewall --name=a --exitall --name=b --new_group"), [true, true]);
}

#[test]
fn a_warning_is_told_once_with_its_jobs() {
    let warnings = |line: &str| assembled(line, &Machine::default()).expect("read").warnings;
    let two = warnings("--size=1m --ioengine=sync --name=a --numjobs=3 --name=b");
    assert_eq!(two.len(), 1);
    assert!(two[0].starts_with("a, b: ioengine=sync"), "{}", two[0]);
    let many = warnings("--size=1m --ioengine=sync --name=a --name=b --name=c --name=d --name=e");
    assert!(many[0].starts_with("a, b, c and 2 more jobs: "), "{}", many[0]);
}

#[test]
fn durability() {
    let made = spec("--rw=write --fsync=8");
    assert_eq!((of(&made).fsync, of(&made).sync_call), (Some(8), Some(SyncCall::Fsync)));
    let made = spec("--rw=write --fdatasync=8");
    assert_eq!((of(&made).fsync, of(&made).sync_call), (Some(8), None));
    let made = spec("--rw=write --end_fsync=1");
    assert_eq!((of(&made).end_fsync, of(&made).sync_call), (true, Some(SyncCall::Fsync)));
    assert!(!of(&spec("--rw=read --end_fsync=1 --fsync=1")).end_fsync);
    let made = spec("--rw=write --end_fsync=1 --runtime=5 --time_based");
    assert_eq!((of(&made).end_fsync, made.time.is_some(), made.bytes), (true, true, None));
    assert_eq!(of(&spec("--rw=write --sync=1")).options.sync, SyncMode::Sync);
    assert_eq!(of(&spec("--rw=write --sync=dsync")).options.sync, SyncMode::Dsync);
    assert_eq!(of(&spec("--rw=write --sync=0")).options.sync, SyncMode::None);
}

#[test]
fn what_lies_there_before() {
    assert_eq!(of(&spec("--rw=write")).layout, Some(Layout::Allocate));
    assert_eq!(of(&spec("--rw=write --fallocate=none")).layout, Some(Layout::Sparse));
    assert_eq!(of(&spec("--rw=write --create_on_open=1")).layout, Some(Layout::Sparse));
    assert_eq!(of(&spec("--rw=randwrite --overwrite=1")).layout, Some(Layout::Fill));
    assert_eq!(of(&spec("--rw=randrw")).layout, Some(Layout::Fill));
    assert_eq!(of(&spec("--invalidate=0")).cache, Some(CachePolicy::Keep));
    assert_eq!(of(&spec("--pre_read=1")).cache, Some(CachePolicy::Warm));
    assert!(!spec("--unlink=1").keep);
}

#[test]
fn what_is_written() {
    assert_eq!(spec("--rw=write").refill, Some(Refill::Stamp));
    assert_eq!(spec("--rw=write --refill_buffers").refill, Some(Refill::Full));
    assert_eq!(spec("--rw=write --scramble_buffers=0").refill, Some(Refill::Once));
    assert_eq!(spec("--rw=write --zero_buffers").content.as_deref(), Some("zero"));
    assert_eq!(spec("--rw=read").refill, None);
    let made = spec("--rw=write --buffer_compress_percentage=50 --dedupe_percentage=20");
    assert_eq!((made.compress, made.dedupe, made.refill), (Some(50), Some(20), Some(Refill::Full)));
    let content = |text: &str| spec(&format!("--rw=write --buffer_pattern={text}")).content.expect("content");
    assert_eq!(content("0xdeadface"), "0xdeadface");
    assert_eq!(content("0xabc"), "0x0abc");
    assert_eq!(content("\"abcd\""), "0x61626364");
    assert_eq!(content("-12"), "0xf4ffffff");
    assert_eq!(content("0"), "0x00");
    assert_eq!(content("0xff\"a\"256"), "0xff610001");
    assert_eq!(content("0xff0x14"), "0xff14");
}

#[test]
fn verified_blocks() {
    let made = spec("--rw=randwrite --verify=crc32c --verify_interval=4k");
    assert!(made.verify && !of(&made).no_read_back);
    assert_eq!((made.refill, of(&made).verify_interval), (None, Some(ByteSize(4096))));
    assert!(of(&spec("--rw=write --verify=md5 --do_verify=0")).no_read_back);
    assert!(!spec("--rw=write --verify=0").verify);
    let made = spec("--rw=randwrite --verify=sha256 --verify_only");
    assert_eq!((&of(&made).operations[..], made.pattern.as_deref()), (&[Operation::Read][..], None));
    let made = spec("--rw=write --verify=md5 --verify_backlog=32 --verify_backlog_batch=8 --verify_dump=1");
    let backlog = of(&made).verify_backlog.unwrap();
    assert_eq!((backlog.blocks, backlog.batch, of(&made).verify_dump.as_deref()), (32, 8, Some(".")));
    assert_eq!(made.control.on_mismatch, Some(OnError::Continue));
    let made = spec("--rw=read --verify=pattern --verify_pattern=0xdead%o\"a\" --verify_fatal=1");
    let pattern = of(&made).verify_pattern.clone().unwrap();
    assert_eq!((pattern.bytes.len(), &pattern.offsets_at[..]), (11, &[2][..]));
    assert_eq!(made.control.on_mismatch, Some(OnError::Stop));
    // What is too long for the blocks is cut to what divides them.
    let made = spec("--rw=write --verify=md5 --bssplit=1k/50:6k/50 --verify_interval=4k");
    assert_eq!(of(&made).verify_interval, Some(ByteSize(1024)));
}

#[test]
fn pace() {
    let made = spec("--rate_iops=1000 --numjobs=4 --group_reporting");
    assert_eq!(made.rate.map(|rate| rate.per_second()), Some(4000.0));
    let made = spec("--rate=4m --bs=4k --rate_process=poisson");
    assert_eq!(
        (made.rate.map(|rate| rate.per_second()), made.arrivals),
        (Some(1024.0), Some(Spacing::Poisson))
    );
    let made = spec("--rw=randrw --rwmixread=75 --rate_iops=300,100");
    assert_eq!(made.rate.map(|rate| rate.per_second()), Some(400.0));
    let made = spec("--bssplit=4k/50:12k/50 --rate=8k");
    assert_eq!(made.rate.map(|rate| rate.per_second()), Some(1.0));
    let made = spec("--thinktime=2000 --thinktime_blocks=4");
    assert_eq!((made.think_time.map(|time| time.ns()), made.think_blocks), (Some(2_000_000), Some(4)));
    assert_eq!(spec("--startdelay=1500ms").start_delay.map(|delay| delay.ns()), Some(1_500_000_000));
}

#[test]
fn where_it_runs() {
    let made = spec("--cpus_allowed=0,1-2");
    assert_eq!((made.cores, made.cores_policy), (Some(vec![0, 1, 2]), Some(CoresPolicy::Shared)));
    assert_eq!(spec("--cpumask=5").cores, Some(vec![0, 2]));
    let split = specs("--name=x --size=1m --numjobs=3 --cpus_allowed=0-1 --cpus_allowed_policy=split");
    assert_eq!(split.iter().map(|spec| spec.cores.clone().unwrap()).collect::<Vec<_>>(), [[0], [1], [0]]);
    assert_eq!(spec("--numa_cpu_nodes=0").numa, Some(vec![0]));
    assert_eq!(spec("--randseed=5").seed, Some(5));
    assert_eq!(spec("--randrepeat=0").seed, None);
    assert_eq!(spec("--continue_on_error=all").on_error, Some(OnError::Continue));
    assert_eq!(spec("--continue_on_error=write").on_error, Some(OnError::Stop));
    assert_eq!(spec("--log_avg_msec=500").interval.map(|interval| interval.ns()), Some(500_000_000));
}

#[test]
fn jobs_of_a_line_run_together_until_a_stonewall() {
    let all = assembled(
        "--bs=4k --size=1m --name=a --exitall --name=b --exitall --name=c --stonewall --new_group --name=d --new_group",
        &Machine::default(),
    )
    .expect("read");
    assert_eq!(all.specs.iter().map(|spec| spec.concurrent).collect::<Vec<_>>(), [false, true, false, true]);
    assert_eq!(all.specs.iter().map(|spec| spec.end_others).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(all.jobs.iter().map(|job| job.group).collect::<Vec<_>>(), [0, 0, 1, 2]);
    assert_eq!(all.jobs.iter().map(|job| job.request).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn what_is_shown_of_a_job() {
    let all = assembled(
        "--name=x --filename=f --size=1g --rw=readwrite --numjobs=3 --group_reporting --description=words --percentile_list=99.9:50 --write_bw_log=p --per_job_logs=0 --log_avg_msec=100 --gtod_reduce=1 --name=y --write_lat_log= --size=1m --numjobs=2",
        &Machine::default(),
    )
    .expect("read");
    let job = &all.jobs[0];
    assert_eq!((job.rw.as_str(), &job.directions[..]), ("rw", &[Direction::Read, Direction::Write][..]));
    assert_eq!((job.number, job.clones, job.group_reporting), (1, 3, true));
    assert_eq!((job.percentiles.as_slice(), job.description.as_deref()), (&[50.0, 99.9][..], Some("words")));
    assert_eq!((job.logs[0].kind, job.logs[0].prefix.as_str()), (LogKind::Bandwidth, "p"));
    assert!(!job.per_job_logs && !job.shows_latency && !job.shows_completion_percentiles);
    assert_eq!(job.options[0], ("name".to_owned(), "x".to_owned()));
    assert!(job.options.contains(&("rw".to_owned(), "readwrite".to_owned())));
    assert_eq!((all.jobs[1].number, all.jobs[1].clones, all.jobs[1].request), (4, 1, 1));
    assert_eq!((all.jobs[2].number, all.jobs[1].logs[0].prefix.as_str()), (5, "y"));
    assert_eq!(all.jobs[1].percentiles.len(), 17);
}

#[test]
fn options_of_the_program() {
    let line = |text: &str| crate::fio::command::read(&words(text)).expect("read");
    let read = line("--output-format=normal,json+ --terse-version 5 --output=o --eta=never");
    assert_eq!(read.formats, [Format::Normal, Format::JsonPlus]);
    assert_eq!((read.terse_version, read.progress), (5, Progress::Never));
    assert_eq!(read.output.as_deref(), Some(std::path::Path::new("o")));
    assert_eq!(line("--minimal").formats, [Format::Terse]);
    assert!(line("--output-format=json").output().quiet && !line("").output().quiet);
    assert_eq!(line("-name=x -rw=read a.fio - b.fio").files, ["a.fio", "-", "b.fio"]);
}

fn shown(line: &str) -> String {
    match request(line) {
        Ok(Request::Show(pieces)) => {
            assert!(pieces.iter().all(|piece| piece.place == Destination::Stdout));
            pieces.into_iter().map(|piece| String::from_utf8(piece.content).expect("text")).collect()
        }
        Ok(_) => panic!("{line} does not show"),
        Err(fault) => panic!("{line}: {fault}"),
    }
}

#[test]
fn what_only_shows() {
    assert_eq!(shown("--version"), "fio-3.42\n");
    assert!(shown("--help").contains("--output-format="));
    assert!(shown("--cmdhelp").contains("iodepth_low"));
    assert!(shown("--cmdhelp=blocksize").contains("alias: blocksize"));
    assert!(shown("--enghelp").contains("\tio_uring\n"));
    assert!(shown("--enghelp=sync").contains("psync"));
    assert_eq!(shown("--parse-only --name=x --size=1m"), "");
    assert_eq!(shown("--parse-only --ss=iops:10"), "", "as in fio, without a job too");
    let line = "fio --bs=4k --name=x --rw=read '--filename=a&b' --thread\n";
    assert_eq!(
        shown("--showcmd --bs=4k --name=x --rw=read --filename=a&b --thread --size=1m")
            .replace(" --size=1m", ""),
        line
    );
}

#[test]
fn a_run_has_progress_and_warnings() {
    let run = |line: &str| match request(line) {
        Ok(Request::Run(run)) => run,
        _ => panic!("{line} does not run"),
    };
    let made = run("--name=x --size=1m --ioengine=sync --output-format=json");
    assert_eq!((made.progress, made.warnings.len(), made.specs.len()), (Progress::Never, 1, 1));
    assert_eq!(run("--name=x --size=1m").progress, Progress::Auto);
    assert_eq!(run("--name=x --size=1m --eta=always --minimal").progress, Progress::Always);
}

#[test]
fn completions_are_taken_as_fio_takes_them() {
    let most = |line: &str| spec(&format!("--ioengine=libaio --iodepth=8 {line}")).batch_max;
    assert_eq!(most(""), Some(1));
    assert_eq!(most("--iodepth_batch_complete_min=3"), Some(3));
    assert_eq!(most("--iodepth_batch_complete_max=4"), Some(4));
    assert_eq!(most("--iodepth_batch_complete_max=64"), Some(8));
    assert_eq!(spec("--ioengine=psync").batch_max, None);
}
