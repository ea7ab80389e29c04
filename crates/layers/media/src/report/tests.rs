//! Doubts of the media layer, and the general ones beside them.

mod path;
mod spent;

use crate::MediaPlan;
use crate::engine::SyncMode;
use crate::spec::CachePolicy;
use host::TargetEnvironment;
use host::block::BlockDevice;
use report::doubts::{Evidence, find};
use report::record::{Doubt, Observations, PhaseRecord, Record};
use report::sample::{self, DRIVE, Shape};
use statistics::{ClassSummary, SteadyReason, WarmUp, summarise};
use workload::plan::{ArrivalPlan, ContentChoice};
use workload::spec::{Operation, Refill, Spacing, Warmup};
use workload::target::TargetKind;

const WRITES: Shape = Shape { operation: Operation::RandWrite, ..DRIVE };
const BUFFERED: Shape = Shape { direct: false, engine: "psync", depth: 1, ..DRIVE };

/// A phase of this shape.
fn made(shape: &Shape) -> PhaseRecord {
    layer::add(&crate::Media);
    sample::phase(shape)
}

/// The plan of the first phase of a record.
fn plan(record: &mut Record) -> &mut MediaPlan {
    record.phases[0].plan.of_mut().expect("a plan of media")
}

/// Doubts of the first phase of a record.
fn doubts(record: &Record) -> Vec<Doubt> {
    report::view::add(super::VIEW);
    find(&Evidence::of(record, &record.phases[0]))
}

/// Kinds found after a change to a record with one phase of this shape.
fn found(shape: &Shape, change: impl FnOnce(&mut Record)) -> Vec<String> {
    let mut record = sample::record(vec![made(shape)]);
    change(&mut record);
    doubts(&record).into_iter().map(|doubt| doubt.kind).collect()
}

/// The details of one kind after a change; none when it stays silent.
fn detail(kind: &str, shape: &Shape, change: impl FnOnce(&mut Record)) -> Option<String> {
    let mut record = sample::record(vec![made(shape)]);
    change(&mut record);
    doubts(&record).into_iter().find(|doubt| doubt.kind == kind).map(|doubt| doubt.detail)
}

fn phase(record: &mut Record) -> &mut PhaseRecord {
    &mut record.phases[0]
}

#[test]
fn a_sound_phase_raises_none() {
    for operation in [Operation::Read, Operation::Write, Operation::RandRead, Operation::RandRw] {
        assert_eq!(found(&Shape { operation, ..DRIVE }, |_| ()), [""; 0], "{operation:?}");
    }
}

#[test]
fn general_doubts_are_told_once_and_alone() {
    assert_eq!(found(&DRIVE, |record| record.debug_build = true), ["debug_build"]);
    let wandering = |record: &mut Record| {
        phase(record).summary.total.rate.as_mut().unwrap().effective_samples = 1.2;
        phase(record).summary.steady.reason = SteadyReason::Wanders;
    };
    assert_eq!(found(&DRIVE, wandering), ["not_steady"]);
    let changing = |record: &mut Record| {
        phase(record).summary.total.rate.as_mut().unwrap().effective_samples = 9.4;
        phase(record).summary.steady.reason = SteadyReason::LevelChanges;
    };
    assert_eq!(found(&DRIVE, changing), ["not_steady"]);
    for share in [0.2, 0.4, 0.8] {
        let used_up = |record: &mut Record| {
            let samples = &mut phase(record).samples;
            let cliff = (share * samples.series.points.len() as f64) as usize;
            for class in samples.series.points[cliff..].iter_mut().flat_map(|point| &mut point.classes) {
                (class.operations, class.bytes) = (class.operations / 3, class.bytes / 3);
            }
            phase(record).summary = summarise(&phase(record).samples.clone(), WarmUp::Auto);
        };
        assert_eq!(found(&DRIVE, used_up), ["rate_dropped"], "at {share}");
    }
    let others = |record: &mut Record| {
        phase(record).observations.machine_cpus_busy = Some(7.9);
        phase(record).observations.other_cpus_busy = Some(6.0);
    };
    assert_eq!(found(&DRIVE, others), ["other_load"]);
}

#[test]
fn page_cache() {
    let cached = |record: &mut Record| phase(record).observations.cached_before_fraction = Some(0.5);
    assert_eq!(
        detail("page_cache", &BUFFERED, cached).unwrap(),
        "50.0% of the range was in the page cache before the phase"
    );
    let share = |share: f64| {
        move |record: &mut Record| {
            let read = phase(record).summary.total.bytes;
            phase(record).observations.device_read_bytes = Some((read as f64 * share) as u64);
        }
    };
    let told = detail("page_cache", &BUFFERED, share(0.25)).unwrap();
    assert!(told.starts_with("the device delivered 25.0% of the bytes read"), "{told}");
    assert_eq!(detail("page_cache", &BUFFERED, share(0.95)), None);
    assert_eq!(detail("page_cache", &BUFFERED, |_| ()), None);
    assert_eq!(detail("page_cache", &DRIVE, cached), None, "direct reads pass it by");
    let warm = |record: &mut Record| {
        cached(record);
        plan(record).cache = CachePolicy::Warm;
    };
    assert_eq!(detail("page_cache", &BUFFERED, warm), None, "a warm cache was asked for");
    assert_eq!(detail("page_cache", &Shape { direct: false, ..WRITES }, cached), None);
}

#[test]
fn unwritten_range() {
    let holes =
        |share| move |record: &mut Record| phase(record).observations.unwritten_fraction = Some(share);
    assert!(detail("unwritten_range", &DRIVE, holes(0.5)).unwrap().starts_with("50.0% of the range"));
    assert_eq!(detail("unwritten_range", &DRIVE, holes(0.01)), None);
    assert_eq!(detail("unwritten_range", &WRITES, holes(0.5)), None);
}

/// All data within the first fifth of the time, and a share of it behind.
fn written_first(behind: f64) -> impl Fn(&mut Record) {
    move |record: &mut Record| {
        let samples = &mut phase(record).samples;
        let begin = samples.series.points.len() / 5;
        for class in samples.series.points[begin..].iter_mut().flat_map(|point| &mut point.classes) {
            let part = |of: u64| (of as f64 * behind) as u64;
            (class.operations, class.bytes) = (part(class.operations), part(class.bytes));
        }
        phase(record).summary = summarise(&phase(record).samples.clone(), WarmUp::Auto);
    }
}

#[test]
fn the_sync_at_the_end_is_no_drop() {
    let shape = Shape { direct: false, ..WRITES };
    let synced = |behind: f64| {
        move |record: &mut Record| {
            plan(record).end_fsync = true;
            written_first(behind)(record);
        }
    };
    assert!(detail("rate_dropped", &shape, written_first(0.001)).is_some(), "no sync follows");
    assert_eq!(detail("rate_dropped", &shape, synced(0.001)), None);
    assert!(detail("rate_dropped", &WRITES, synced(0.3)).is_some(), "writes went on, slower, past the cache");
}

#[test]
fn the_page_cache_that_is_full_is_no_drop_where_a_sync_ends_the_writes() {
    let shape = Shape { direct: false, ..WRITES };
    let with_memory = |share: f64, is_synced: bool| {
        move |record: &mut Record| {
            plan(record).end_fsync = is_synced;
            written_first(0.3)(record);
            let points = &phase(record).samples.series.points;
            let classes = points[..points.len() / 5].iter().flat_map(|point| &point.classes);
            let fast_bytes = classes.map(|class| class.bytes).sum::<u64>();
            record.environment.memory.total_bytes = Some((fast_bytes as f64 / share) as u64);
        }
    };
    assert_eq!(detail("rate_dropped", &shape, with_memory(0.1, true)), None);
    assert!(detail("rate_dropped", &shape, with_memory(0.1, false)).is_some(), "no sync has the rest");
    assert!(detail("rate_dropped", &shape, with_memory(0.5, true)).is_some(), "more than the cache takes");
}

#[test]
fn buffered_writes() {
    let shape = Shape { direct: false, ..WRITES };
    let reached = |record: &mut Record| {
        phase(record).observations.device_written_bytes = Some(phase(record).summary.total.bytes / 4);
    };
    assert!(
        detail("buffered_writes", &shape, reached)
            .unwrap()
            .ends_with("are not made durable: only 25.0% reached the device")
    );
    assert!(detail("buffered_writes", &shape, |_| ()).unwrap().ends_with("are not made durable"));
    assert_eq!(detail("buffered_writes", &WRITES, |_| ()), None);
    assert_eq!(detail("buffered_writes", &BUFFERED, |_| ()), None);
    assert_eq!(detail("buffered_writes", &shape, |record| plan(record).end_fsync = true), None);
    assert_eq!(detail("buffered_writes", &shape, |record| plan(record).fsync_every = Some(1)), None);
    assert_eq!(detail("buffered_writes", &shape, |record| plan(record).options.sync = SyncMode::Dsync), None);
    let memory = Shape { kind: TargetKind::Memory, ..shape };
    assert_eq!(detail("buffered_writes", &memory, |_| ()), None);
    let written_over = |record: &mut Record| {
        reached(record);
        plan(record).end_fsync = true;
    };
    assert_eq!(
        detail("buffered_writes", &shape, written_over).unwrap(),
        "25.0% of the bytes written reached the device: blocks were overwritten in the page cache"
    );
    let zeros = |record: &mut Record| {
        written_over(record);
        plan(record).content.content = ContentChoice::Zero;
    };
    assert_eq!(detail("buffered_writes", &shape, zeros), None, "a file system that compresses writes less");
    let never_synced = |record: &mut Record| {
        plan(record).fsync_every = Some(1 << 40);
        let sync =
            ClassSummary { class: "sync".to_owned(), operations: 0, ..phase(record).summary.total.clone() };
        phase(record).summary.classes.push(sync);
    };
    assert!(detail("buffered_writes", &shape, never_synced).is_some(), "the first fsync never came");
}

#[test]
fn compressible_content() {
    let zeros = |record: &mut Record| {
        plan(record).content.content = ContentChoice::Zero;
    };
    assert!(detail("compressible_content", &WRITES, zeros).unwrap().starts_with("only zeros"));
    let shaped = |record: &mut Record| plan(record).content.compress_percent = 40;
    assert!(
        detail("compressible_content", &WRITES, shaped)
            .unwrap()
            .starts_with("40% of the data is compressible")
    );
    let once = |record: &mut Record| plan(record).content.refill = Refill::Once;
    assert!(detail("compressible_content", &WRITES, once).unwrap().starts_with("buffers are filled once"));
    let stamp = |record: &mut Record| plan(record).content.refill = Refill::Stamp;
    assert!(detail("compressible_content", &WRITES, stamp).unwrap().starts_with("only 16 bytes"));
    let stamp_sized = |block_size: &'static str| {
        let stamped = move |record: &mut Record| {
            stamp(record);
            plan(record).block_size = block_size.to_owned();
        };
        detail("compressible_content", &WRITES, stamped)
    };
    assert_eq!(stamp_sized("1MiB"), None, "more than is compressed as one");
    assert!(stamp_sized("512KiB").is_some());
    assert_eq!(detail("compressible_content", &WRITES, |_| ()), None);
    assert_eq!(detail("compressible_content", &DRIVE, zeros), None, "nothing is written");
    let verified = |record: &mut Record| {
        zeros(record);
        plan(record).verify_interval_bytes = Some(4096);
    };
    assert_eq!(
        detail("compressible_content", &WRITES, verified),
        None,
        "verified blocks have content of their own"
    );
}

/// The target's place: `change` makes it another.
fn place(record: &mut Record) -> &mut TargetEnvironment {
    &mut record.environment.targets[0]
}

/// Puts the target on this file system without a device.
fn on_filesystem(kind: &str, options: &str) -> impl Fn(&mut Record) {
    move |record| {
        let filesystem = place(record).filesystem.as_mut().unwrap();
        (filesystem.kind, filesystem.options) = (kind.to_owned(), options.to_owned());
        place(record).device = None;
    }
}

/// Makes the device of the target another.
fn on_device(name: &str, change: impl Fn(&mut BlockDevice)) -> impl Fn(&mut Record) {
    move |record| {
        let device = place(record).device.as_mut().unwrap();
        (device.name, device.model, device.transport) = (name.to_owned(), None, None);
        change(device);
    }
}

fn on_loop(filesystem: &str) -> impl Fn(&mut Record) {
    on_device("loop0", move |device| device.backing_filesystem = Some(filesystem.to_owned()))
}

#[test]
fn memory_target() {
    let told = |change: &dyn Fn(&mut Record)| detail("memory_target", &DRIVE, change);
    assert_eq!(
        told(&on_filesystem("tmpfs", "rw")).unwrap(),
        "/data/file is in memory (tmpfs): no drive is measured"
    );
    assert!(told(&on_loop("tmpfs")).unwrap().contains("(loop0 over tmpfs)"));
    assert!(told(&on_device("ram3", |_| ())).unwrap().contains("(ram3)"));
    assert!(told(&on_device("nullb0", |_| ())).unwrap().contains("(nullb0)"));
    let stacked = on_device("dm-0", |device| {
        device.underlying = vec![BlockDevice { name: "ram0".to_owned(), ..device.clone() }];
    });
    assert!(told(&stacked).unwrap().contains("(dm-0 over ram0)"));
    assert_eq!(told(&|_| ()), None);
    assert_eq!(told(&on_loop("ext4")), None);
    assert_eq!(told(&on_device("rampart0", |_| ())), None);
    assert_eq!(told(&on_filesystem("nfs4", "rw")), None);
    assert_eq!(told(&|record: &mut Record| record.environment.targets.clear()), None, "nothing is known");
    let own = Shape { kind: TargetKind::Memory, ..DRIVE };
    assert_eq!(detail("memory_target", &own, on_filesystem("tmpfs", "rw")), None, "mem: says so itself");
    // What would be said of the page cache does not help there.
    let cached = |record: &mut Record| {
        on_filesystem("tmpfs", "rw")(record);
        phase(record).observations.cached_before_fraction = Some(1.0);
    };
    assert_eq!(found(&BUFFERED, cached), ["memory_target"]);
    assert_eq!(found(&Shape { direct: false, ..WRITES }, on_loop("ramfs")), ["memory_target"]);
}

#[test]
fn who_compresses() {
    let told = |change: &dyn Fn(&mut Record)| {
        let zeros = |record: &mut Record| {
            change(record);
            plan(record).content.content = ContentChoice::Zero;
        };
        detail("compressible_content", &WRITES, zeros)
    };
    let ends = |change: &dyn Fn(&mut Record), end: &str| {
        let text = told(change).unwrap();
        assert_eq!(text.strip_prefix("only zeros are written; "), Some(end));
    };
    ends(&|_| (), "nvme0n1 may compress internally, which strata cannot detect");
    ends(&on_filesystem("btrfs", "rw,compress=zstd:3,ssd"), "btrfs on /data compresses (compress=zstd:3)");
    ends(&on_filesystem("zfs", "rw"), "ZFS compresses by default");
    ends(
        &on_filesystem("btrfs", "rw"),
        "storage with compression or deduplication stores less than it receives",
    );
    ends(&on_device("zram0", |_| ()), "zram0 compresses");
    let vdo = |device: &mut BlockDevice| {
        device.model = Some("vg-vdo0".to_owned());
        device.transport = Some("device mapper".to_owned());
    };
    ends(&on_device("dm-3", vdo), "dm-3 compresses");
    let array = |device: &mut BlockDevice| device.transport = Some("iscsi".to_owned());
    ends(&on_device("sda", array), "the storage behind sda may compress, which strata cannot detect");
    for memory in ["tmpfs", "ramfs"] {
        assert_eq!(told(&on_filesystem(memory, "rw")), None, "{memory}");
        assert_eq!(told(&on_loop(memory)), None, "loop over {memory}");
    }
    assert_eq!(told(&on_device("nullb0", |_| ())), None);
}

#[test]
fn client_saturated() {
    let tool = |record: &mut Record| {
        phase(record).summary.tool_share_max = 0.4;
        phase(record).samples.workers.iter_mut().for_each(|worker| worker.fill_ns = worker.tool_ns);
    };
    assert_eq!(
        detail("client_saturated", &WRITES, tool).unwrap(),
        "strata itself took 40.0% of a worker's time, most of it filling and verifying buffers"
    );
    assert_eq!(detail("client_saturated", &Shape { kind: TargetKind::Null, ..WRITES }, tool), None);
    let user = |record: &mut Record| {
        phase(record).samples.workers.iter_mut().for_each(|worker| worker.cpu_user_ns = worker.finished_ns);
    };
    assert!(detail("client_saturated", &BUFFERED, user).unwrap().contains("in user mode"));
    let mapped = Shape { engine: "mmap", ..BUFFERED };
    assert_eq!(detail("client_saturated", &mapped, user), None, "mmap copies in user mode");
    let busy = |record: &mut Record| {
        phase(record).samples.workers.iter_mut().for_each(|worker| worker.cpu_system_ns = worker.finished_ns);
    };
    assert!(detail("client_saturated", &DRIVE, busy).unwrap().contains("a worker used its CPU for"));
    assert_eq!(
        detail("client_saturated", &BUFFERED, busy),
        None,
        "the kernel's copy is the target's own work"
    );
    let polled = |record: &mut Record| {
        busy(record);
        plan(record).options.iopoll = true;
    };
    assert_eq!(detail("client_saturated", &DRIVE, polled), None, "polling keeps a processor busy");
    let open = |record: &mut Record| {
        user(record);
        phase(record).plan.load_mut().arrivals =
            Some(ArrivalPlan { rate_per_second: 1e5, kind: Spacing::Poisson });
    };
    assert_eq!(detail("client_saturated", &BUFFERED, open), None, "the pacer may spin");
}

#[test]
fn kernel_workers() {
    let took = |share: f64| {
        move |record: &mut Record| {
            let samples = &phase(record).samples;
            let all = samples.process_cpu_user_ns + samples.process_cpu_system_ns;
            phase(record).observations.kernel_worker_cpu_ns = Some((all as f64 * share) as u64);
        }
    };
    let buffered = Shape { direct: false, ..DRIVE };
    assert_eq!(
        detail("kernel_workers", &buffered, took(0.4)).unwrap(),
        "kernel worker threads used 40.0% of the CPU time: io_uring passed operations to them; the CPU results include \
         them"
    );
    assert_eq!(detail("kernel_workers", &buffered, took(0.09)), None);
    assert_eq!(detail("kernel_workers", &buffered, |_| ()), None, "where it cannot be told");
    assert_eq!(detail("kernel_workers", &BUFFERED, took(0.4)), None, "psync has none");
    let idle = Shape { operations_per_second: 4000.0, ..buffered };
    assert_eq!(detail("kernel_workers", &idle, took(0.4)), None, "0.004 processors");
    let polled = |record: &mut Record| {
        took(0.4)(record);
        plan(record).options.sqpoll = true;
    };
    assert_eq!(detail("kernel_workers", &buffered, polled), None, "the thread that polls was asked for");
}

#[test]
fn other_io() {
    // 40 s x 400k/s x 4 KiB were read.
    let moved = |read_share: f64, written_share: f64| {
        move |record: &mut Record| {
            let bytes = phase(record).summary.total.bytes as f64;
            let seen = &mut phase(record).observations;
            seen.kernel_worker_cpu_ns = Some(0);
            seen.device_read_bytes = Some((bytes * read_share) as u64);
            seen.device_written_bytes = Some((bytes * written_share) as u64);
        }
    };
    assert_eq!(
        detail("other_io", &DRIVE, moved(1.5, 0.0)).unwrap(),
        "other processes read 3.05 GiB from the devices of this load"
    );
    assert_eq!(
        detail("other_io", &DRIVE, moved(1.0, 0.5)).unwrap(),
        "other processes wrote 3.05 GiB to the devices while this load only read"
    );
    assert_eq!(detail("other_io", &DRIVE, moved(1.04, 0.04)), None);
    assert_eq!(detail("other_io", &BUFFERED, moved(1.5, 0.0)), None, "read-ahead");
    assert_eq!(detail("other_io", &WRITES, moved(0.0, 1.5)), None, "journals and metadata");
    let delayed = |record: &mut Record| {
        moved(2.0, 1.0)(record);
        phase(record).plan.load_mut().start_delay_ns = 1_000_000_000;
    };
    assert_eq!(detail("other_io", &DRIVE, delayed), None, "counters run over the delay");
    let failed = |record: &mut Record| {
        moved(2.0, 1.0)(record);
        phase(record).samples.workers[0].failure = Some("it did not come back".to_owned());
    };
    assert_eq!(detail("other_io", &DRIVE, failed), None, "nobody knows what it read");
    let warmed_up = |record: &mut Record| {
        moved(2.0, 1.0)(record);
        phase(record).plan.load_mut().warmup = Warmup::Fixed(1_000_000_000);
    };
    assert_eq!(detail("other_io", &DRIVE, warmed_up), None, "samples leave the warm-up out");
}

/// The doubts of the first of two phases of a stage, where the second is of another shape.
fn beside(shape: &Shape, other: &Shape, change: impl FnOnce(&mut Record)) -> Vec<Doubt> {
    let mut record = sample::record(vec![made(shape), made(other)]);
    change(&mut record);
    doubts(&record)
}

#[test]
fn phases_that_ran_together_share_what_was_seen() {
    let details = |kind: &str, doubts: Vec<Doubt>| {
        let mut details = doubts.into_iter().filter(|doubt| doubt.kind == kind);
        details.next().map(|doubt| doubt.detail)
    };
    // A reader and a writer on one device.
    let written = |record: &mut Record| {
        phase(record).observations.device_written_bytes = Some(1 << 40);
        phase(record).observations.device_read_bytes = Some(1 << 40);
    };
    assert!(detail("other_io", &DRIVE, written).is_some(), "alone it was somebody else");
    assert_eq!(details("other_io", beside(&DRIVE, &WRITES, written)), None);
    let in_turn = |record: &mut Record| {
        written(record);
        record.phases[1].stage = 1;
    };
    assert!(details("other_io", beside(&DRIVE, &WRITES, in_turn)).is_some(), "they ran one after the other");
    let buffered = Shape { direct: false, ..WRITES };
    let reached = |record: &mut Record| {
        phase(record).observations.device_written_bytes = Some(phase(record).summary.total.bytes / 4);
    };
    let detail_found = details("buffered_writes", beside(&buffered, &WRITES, reached)).unwrap();
    assert!(detail_found.ends_with("are not made durable"), "{detail_found}");
    let synced = |record: &mut Record| {
        reached(record);
        plan(record).end_fsync = true;
    };
    let detail_found = details("buffered_writes", beside(&buffered, &WRITES, synced)).unwrap();
    assert!(detail_found.starts_with("at most 25.0% of the bytes written"), "{detail_found}");
    let from_memory = |record: &mut Record| {
        phase(record).observations.device_read_bytes = Some(phase(record).summary.total.bytes / 2);
    };
    let detail_found = details("page_cache", beside(&BUFFERED, &DRIVE, from_memory)).unwrap();
    assert!(detail_found.starts_with("the device delivered at most 50.0%"), "{detail_found}");
    let memory = Shape { kind: TargetKind::Memory, threads: 5, ..DRIVE };
    let busy = |record: &mut Record| phase(record).observations.machine_cpus_busy = Some(7.9);
    assert_eq!(detail("all_processors_busy", &memory, busy), None, "5 workers on 8 processors");
    assert!(
        details("all_processors_busy", beside(&memory, &memory, busy)).is_some(),
        "10 workers on 8 processors"
    );
}
