mod network;
mod object;
mod path;

use driver::ClockSource;
use host::block::BlockDevice;
use statistics::{ClassPoint, ClassSummary, ClassTotals, Steady, SteadyReason, WarmUp, summarise};
use workload::engine::SyncMode;
use workload::plan::{ArrivalPlan, ContentChoice};
use workload::spec::{CachePolicy, Operation, Refill, Spacing, Warmup};
use workload::target::TargetKind;

use super::*;
use crate::sample::{self, DRIVE, Shape};

const DOUBTS_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doubts.md");
const WRITES: Shape = Shape { operation: Operation::RandWrite, ..DRIVE };
const BUFFERED: Shape = Shape { direct: false, engine: "psync", depth: 1, ..DRIVE };

/// Kinds found after a change to a record with one phase of this shape.
fn found(shape: &Shape, change: impl FnOnce(&mut Record)) -> Vec<String> {
    let mut record = sample::record(vec![sample::phase(shape)]);
    change(&mut record);
    find(&Evidence::of(&record, &record.phases[0])).into_iter().map(|doubt| doubt.kind).collect()
}

/// The details of one kind after a change; none when it stays silent.
fn detail(kind: &str, shape: &Shape, change: impl FnOnce(&mut Record)) -> Option<String> {
    let mut record = sample::record(vec![sample::phase(shape)]);
    change(&mut record);
    let doubts = find(&Evidence::of(&record, &record.phases[0]));
    doubts.into_iter().find(|doubt| doubt.kind == kind).map(|doubt| doubt.detail)
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

/// Cells of the rows of the docs that begin with a kind, by table.
fn rows(page: &str) -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches('|').split(" | ").map(str::trim);
        let kind = cells.next()?.trim_end_matches('`').to_owned();
        Some((kind, cells.map(str::to_owned).collect()))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn every_kind_is_in_the_docs_and_has_a_remedy() {
    let page = std::fs::read_to_string(DOUBTS_PAGE).unwrap();
    let names: Vec<_> = kinds().collect();
    let rows: Vec<_> = rows(&page).into_iter().map(|(kind, _)| kind).collect();
    let (what, tests) = rows.split_at(rows.len() / 2);
    assert_eq!(what, names, "docs/doubts.md: the table of kinds");
    assert_eq!(tests, names, "docs/doubts.md: the table of tests");
    assert!(KINDS.iter().all(|kind| !kind.remedy.is_empty() && kind.remedy.len() <= 110), "a line at most");
}

#[test]
fn every_kind_has_its_two_tests() {
    let page = std::fs::read_to_string(DOUBTS_PAGE).unwrap();
    let source = |path: &str| {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let files = [
        ("unit", source("crates/report/src/doubts/tests.rs")),
        ("network", source("crates/report/src/doubts/tests/network.rs")),
        ("object", source("crates/report/src/doubts/tests/object.rs")),
        ("path", source("crates/report/src/doubts/tests/path.rs")),
        ("command", source("crates/strata/tests/command/doubts.rs")),
        ("drops", source("crates/strata/tests/command/drops.rs")),
        ("traps", source("crates/strata/tests/command/traps.rs")),
    ];
    for (kind, cells) in rows(&page).into_iter().skip(KINDS.len()) {
        assert_eq!(cells.len(), 2, "{kind}: what provokes it, what shows it silent");
        for cell in &cells {
            let (place, name) = cell.trim_matches('`').split_once("::").unwrap_or_default();
            let (_, text) =
                files.iter().find(|(file, _)| *file == place).unwrap_or_else(|| panic!("{kind}: {cell}"));
            assert!(text.contains(&format!("#[test]\nfn {name}() {{")), "{kind}: there is no test {cell}");
        }
    }
}

#[test]
fn debug_build() {
    assert_eq!(found(&DRIVE, |record| record.debug_build = true), ["debug_build"]);
}

#[test]
fn too_short() {
    let cut = |window_ns| move |record: &mut Record| phase(record).summary.window_end_ns = window_ns;
    assert_eq!(
        detail("too_short", &DRIVE, cut(999_000_000)).unwrap(),
        "the window is 999 ms long, below 1 s"
    );
    assert_eq!(detail("too_short", &DRIVE, cut(1_000_000_000)), None);
    let slow =
        |operations| move |record: &mut Record| phase(record).summary.total.window_operations = operations;
    assert!(detail("too_short", &DRIVE, slow(999)).unwrap().starts_with("999 operations"));
    assert_eq!(detail("too_short", &DRIVE, slow(1000)), None);
    assert_eq!(detail("too_short", &DRIVE, slow(0)).unwrap(), "nothing completed in the window");
    let few =
        |record: &mut Record| phase(record).summary.total.rate.as_mut().unwrap().effective_samples = 9.4;
    assert_eq!(
        detail("too_short", &DRIVE, few).unwrap(),
        "the rate rests on 9.4 independent intervals, below 10"
    );
    assert!(detail("too_short", &DRIVE, |record| phase(record).summary.total.rate = None).is_some());
    let changing = |record: &mut Record| {
        few(record);
        phase(record).summary.steady.reason = SteadyReason::LevelChanges;
    };
    assert_eq!(found(&DRIVE, changing), ["not_steady"], "a change looks like correlation: it is told once");
}

#[test]
fn not_steady() {
    let falling = |record: &mut Record| {
        let samples = &mut phase(record).samples;
        for (at, point) in samples.series.points.iter_mut().enumerate() {
            for class in &mut point.classes {
                *class = ClassPoint { operations: class.operations * (80 - at as u64) / 80, ..class.clone() };
            }
        }
        phase(record).summary = summarise(&phase(record).samples.clone(), WarmUp::Auto);
    };
    let detail_found = detail("not_steady", &DRIVE, falling).unwrap();
    assert!(
        detail_found.contains("fell by 6") || detail_found.contains("changed its level"),
        "{detail_found}"
    );
    for reason in [SteadyReason::TooFewIntervals, SteadyReason::NoRate, SteadyReason::Steady] {
        let unknown = |record: &mut Record| {
            let steady = &mut phase(record).summary.steady;
            *steady = Steady { is_steady: false, reason, ..steady.clone() };
        };
        assert_eq!(detail("not_steady", &DRIVE, unknown), None, "{reason:?}");
    }
    let stalled = |from: usize, to: usize| {
        move |record: &mut Record| {
            for point in &mut phase(record).samples.series.points[from..to] {
                point.classes.fill(ClassPoint::default());
            }
        }
    };
    let told = detail("not_steady", &DRIVE, stalled(36, 40)).unwrap();
    assert_eq!(told, "nothing completed for 400 ms within the phase", "at the end, where no figure shows it");
    assert!(detail("not_steady", &DRIVE, stalled(10, 14)).unwrap().contains("400 ms"));
    assert_eq!(detail("not_steady", &DRIVE, stalled(10, 12)), None, "5% of the phase");
    let slow = Shape { operations_per_second: 40.0, ..DRIVE };
    assert_eq!(detail("not_steady", &slow, stalled(10, 14)), None, "16 operations");
    let synced = |record: &mut Record| {
        stalled(36, 40)(record);
        phase(record).plan.media_mut().expect("media").end_fsync = true;
    };
    assert_eq!(detail("not_steady", &WRITES, synced), None, "the fsync at the end");
    let wandering = |record: &mut Record| {
        phase(record).summary.total.rate.as_mut().unwrap().effective_samples = 1.2;
        phase(record).summary.steady.reason = SteadyReason::Wanders;
    };
    assert_eq!(found(&DRIVE, wandering), ["not_steady"]);
    let hanging = |count| {
        move |record: &mut Record| {
            let mut latency = statistics::Histogram::new();
            latency.record_n(9_000_000_000, count);
            for at in [3, 17] {
                let class = &mut phase(record).samples.series.points[at].classes[0];
                class.latency = statistics::SparseHistogram::from(&latency);
            }
        }
    };
    let told = detail("not_steady", &DRIVE, hanging(6)).unwrap();
    assert!(told.starts_with("what hangs grows: 6 operations that began in the first third"), "{told}");
    assert_eq!(detail("not_steady", &DRIVE, hanging(3)), None, "6 of 128 in flight");
    assert_eq!(
        detail("not_steady", &DRIVE, wandering).unwrap(),
        "the rate wanders: its 40 intervals are worth 1.2 independent ones"
    );
    let drift = |record: &mut Record| {
        let steady = &mut phase(record).summary.steady;
        *steady = Steady { reason: SteadyReason::HalvesDiffer, drift_percent: 12.34, ..steady.clone() };
    };
    assert_eq!(
        detail("not_steady", &DRIVE, drift).unwrap(),
        "the rate rose by 12.3% from the first half of the window to the second"
    );
}

/// The rate falls to a third after this share of the phase.
fn used_up(share: f64) -> impl Fn(&mut Record) {
    move |record: &mut Record| {
        let samples = &mut phase(record).samples;
        let cliff = (share * samples.series.points.len() as f64) as usize;
        for class in samples.series.points[cliff..].iter_mut().flat_map(|point| &mut point.classes) {
            (class.operations, class.bytes) = (class.operations / 3, class.bytes / 3);
        }
        phase(record).summary = summarise(&phase(record).samples.clone(), WarmUp::Auto);
    }
}

#[test]
fn rate_dropped() {
    for share in [0.2, 0.4, 0.8] {
        assert_eq!(found(&DRIVE, used_up(share)), ["rate_dropped"], "told once, at {share}");
    }
    let told = detail("rate_dropped", &DRIVE, used_up(0.4)).unwrap();
    let expected = "the rate fell from 400k/s to 133k/s after 1.60 s, when 2.44 GiB were done";
    assert_eq!(told, expected);
    let mut record = sample::record(vec![sample::phase(&DRIVE)]);
    used_up(0.4)(&mut record);
    let text = crate::render(&record, 200, false);
    assert!(text.contains("400k/s before 1.60 s, 133k/s after: the figures are of both"), "{text}");
    assert!(!text.contains("cut"), "{text}");
    assert_eq!(detail("rate_dropped", &DRIVE, |_| {}), None);
}

#[test]
fn no_figure_is_surer_than_its_doubt() {
    let stalled = |record: &mut Record| {
        for point in &mut phase(record).samples.series.points[36..40] {
            point.classes.fill(ClassPoint::default());
        }
    };
    let mut stalled_record = sample::record(vec![sample::phase(&DRIVE)]);
    stalled(&mut stalled_record);
    let evidence = Evidence::of(&stalled_record, &stalled_record.phases[0]);
    assert!(evidence.summary.steady.is_steady, "its series was summarised before");
    let (doubts, reason) = (find(&evidence), unsteady(&evidence));
    assert_eq!(reason, Some(SteadyReason::Stalls));
    stalled_record.phases[0].doubts = doubts;
    let text = crate::render(&stalled_record, 200, false);
    assert!(text.contains("not_steady: nothing completed for 400 ms"), "{text}");
    assert!(!text.contains("steady from the start"), "{text}");
    assert!(
        crate::to_csv(&stalled_record).contains(",false,not_steady,"),
        "{}",
        crate::to_csv(&stalled_record)
    );
}

#[test]
fn nothing_is_not_sure() {
    let mut idle = sample::record(vec![sample::phase(&DRIVE)]);
    let samples = &mut idle.phases[0].samples;
    samples.series.points.iter_mut().for_each(|point| point.classes.fill(ClassPoint::default()));
    samples
        .workers
        .iter_mut()
        .flat_map(|worker| &mut worker.classes)
        .for_each(|class| *class = ClassTotals::default());
    idle.phases[0].summary = summarise(&idle.phases[0].samples.clone(), WarmUp::Auto);
    let text = crate::render(&idle, 200, false);
    assert!(!text.contains('±') || !text.contains("±0%"), "{text}");
    assert!(text.contains("nothing completed") && !text.contains("0/s to 0/s"), "{text}");
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
    assert!(told.starts_with("the device gave 25.0% of the bytes read"), "{told}");
    assert_eq!(detail("page_cache", &BUFFERED, share(0.95)), None);
    assert_eq!(detail("page_cache", &BUFFERED, |_| ()), None);
    assert_eq!(detail("page_cache", &DRIVE, cached), None, "direct reads pass it by");
    let warm = |record: &mut Record| {
        cached(record);
        phase(record).plan.media_mut().expect("media").cache = CachePolicy::Warm;
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

#[test]
fn buffered_writes() {
    let shape = Shape { direct: false, ..WRITES };
    let reached = |record: &mut Record| {
        phase(record).observations.device_written_bytes = Some(phase(record).summary.total.bytes / 4);
    };
    assert!(
        detail("buffered_writes", &shape, reached).unwrap().ends_with("durable: 25.0% reached the device")
    );
    assert!(detail("buffered_writes", &shape, |_| ()).unwrap().ends_with("makes them durable"));
    assert_eq!(detail("buffered_writes", &WRITES, |_| ()), None);
    assert_eq!(detail("buffered_writes", &BUFFERED, |_| ()), None);
    assert_eq!(
        detail("buffered_writes", &shape, |record| phase(record)
            .plan
            .media_mut()
            .expect("media")
            .end_fsync = true),
        None
    );
    assert_eq!(
        detail("buffered_writes", &shape, |record| phase(record)
            .plan
            .media_mut()
            .expect("media")
            .fsync_every = Some(1)),
        None
    );
    assert_eq!(
        detail("buffered_writes", &shape, |record| phase(record)
            .plan
            .media_mut()
            .expect("media")
            .options
            .sync = SyncMode::Dsync),
        None
    );
    let memory = Shape { kind: TargetKind::Memory, ..shape };
    assert_eq!(detail("buffered_writes", &memory, |_| ()), None);
    let written_over = |record: &mut Record| {
        reached(record);
        phase(record).plan.media_mut().expect("media").end_fsync = true;
    };
    assert_eq!(
        detail("buffered_writes", &shape, written_over).unwrap(),
        "25.0% of the bytes written reached the device: blocks were written over in the page cache"
    );
    let zeros = |record: &mut Record| {
        written_over(record);
        phase(record).plan.media_mut().expect("media").content.content = ContentChoice::Zero;
    };
    assert_eq!(detail("buffered_writes", &shape, zeros), None, "a file system that compresses writes less");
    let never_synced = |record: &mut Record| {
        phase(record).plan.media_mut().expect("media").fsync_every = Some(1 << 40);
        let sync =
            ClassSummary { class: "sync".to_owned(), operations: 0, ..phase(record).summary.total.clone() };
        phase(record).summary.classes.push(sync);
    };
    assert!(detail("buffered_writes", &shape, never_synced).is_some(), "the first fsync never came");
}

#[test]
fn compressible_content() {
    let zeros = |record: &mut Record| {
        phase(record).plan.media_mut().expect("media").content.content = ContentChoice::Zero;
    };
    assert!(detail("compressible_content", &WRITES, zeros).unwrap().starts_with("only zeros"));
    let shaped =
        |record: &mut Record| phase(record).plan.media_mut().expect("media").content.compress_percent = 40;
    assert!(detail("compressible_content", &WRITES, shaped).unwrap().starts_with("40% of what is written"));
    let once =
        |record: &mut Record| phase(record).plan.media_mut().expect("media").content.refill = Refill::Once;
    assert!(detail("compressible_content", &WRITES, once).unwrap().starts_with("buffers are filled once"));
    let stamp =
        |record: &mut Record| phase(record).plan.media_mut().expect("media").content.refill = Refill::Stamp;
    assert!(detail("compressible_content", &WRITES, stamp).unwrap().starts_with("all but 16 bytes"));
    assert_eq!(detail("compressible_content", &WRITES, |_| ()), None);
    assert_eq!(detail("compressible_content", &DRIVE, zeros), None, "nothing is written");
    let verified = |record: &mut Record| {
        zeros(record);
        phase(record).plan.media_mut().expect("media").verify_interval_bytes = Some(4096);
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
        "/data/file lies in memory (tmpfs): no drive is measured"
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
            phase(record).plan.media_mut().expect("media").content.content = ContentChoice::Zero;
        };
        detail("compressible_content", &WRITES, zeros)
    };
    let ends = |change: &dyn Fn(&mut Record), end: &str| {
        let text = told(change).unwrap();
        assert_eq!(text.strip_prefix("only zeros are written; "), Some(end));
    };
    ends(&|_| (), "nvme0n1 may compress inside, which cannot be told from here");
    ends(&on_filesystem("btrfs", "rw,compress=zstd:3,ssd"), "btrfs on /data compresses (compress=zstd:3)");
    ends(&on_filesystem("zfs", "rw"), "ZFS compresses unless it is told not to");
    ends(
        &on_filesystem("btrfs", "rw"),
        "storage that compresses or removes copies stores less than it is given",
    );
    ends(&on_device("zram0", |_| ()), "zram0 compresses");
    let vdo = |device: &mut BlockDevice| {
        device.model = Some("vg-vdo0".to_owned());
        device.transport = Some("device mapper".to_owned());
    };
    ends(&on_device("dm-3", vdo), "dm-3 compresses");
    let array = |device: &mut BlockDevice| device.transport = Some("iscsi".to_owned());
    ends(&on_device("sda", array), "what is behind sda may compress, which cannot be told from here");
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
    assert!(detail("client_saturated", &DRIVE, busy).unwrap().contains("on its processor"));
    assert_eq!(
        detail("client_saturated", &BUFFERED, busy),
        None,
        "the kernel's copy is the target's own work"
    );
    let polled = |record: &mut Record| {
        busy(record);
        phase(record).plan.media_mut().expect("media").options.iopoll = true;
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
        "kernel worker threads used 40.0% of the CPU: io_uring handed operations to them; the CPU figures here include \
         them"
    );
    assert_eq!(detail("kernel_workers", &buffered, took(0.09)), None);
    assert_eq!(detail("kernel_workers", &buffered, |_| ()), None, "where it cannot be told");
    assert_eq!(detail("kernel_workers", &BUFFERED, took(0.4)), None, "psync has none");
    let idle = Shape { operations_per_second: 4000.0, ..buffered };
    assert_eq!(detail("kernel_workers", &idle, took(0.4)), None, "0.004 processors");
    let polled = |record: &mut Record| {
        took(0.4)(record);
        phase(record).plan.media_mut().expect("media").options.sqpoll = true;
    };
    assert_eq!(detail("kernel_workers", &buffered, polled), None, "the thread that polls was asked for");
}

#[test]
fn all_processors_busy() {
    let busy = |cpus| move |record: &mut Record| phase(record).observations.machine_cpus_busy = Some(cpus);
    assert!(detail("all_processors_busy", &DRIVE, busy(7.9)).unwrap().starts_with("7.90 of 8 processors"));
    assert_eq!(detail("all_processors_busy", &DRIVE, busy(7.5)), None);
    let memory = Shape { kind: TargetKind::Memory, threads: 8, ..DRIVE };
    assert_eq!(detail("all_processors_busy", &memory, busy(7.9)), None, "as many workers as processors");
    let crowded = Shape { threads: 9, ..memory };
    assert!(detail("all_processors_busy", &crowded, busy(7.9)).is_some());
    let stolen = |record: &mut Record| {
        busy(7.0)(record);
        phase(record).observations.stolen_cpus = Some(0.9);
    };
    assert!(
        detail("all_processors_busy", &DRIVE, stolen).is_some(),
        "what the hypervisor took was not to be had"
    );
    let others = |record: &mut Record| {
        busy(7.9)(record);
        phase(record).observations.other_cpus_busy = Some(6.0);
    };
    assert_eq!(found(&DRIVE, others), ["other_load"], "others crowd them: it is told once");
    let unknown = |record: &mut Record| {
        busy(7.9)(record);
        record.environment.processor.logical_cores = None;
    };
    assert_eq!(detail("all_processors_busy", &DRIVE, unknown), None);
}

#[test]
fn other_load() {
    let others = |cpus, user| {
        move |record: &mut Record| {
            let seen = &mut phase(record).observations;
            (seen.other_cpus_busy, seen.other_cpus_user) = (Some(cpus), user);
        }
    };
    assert_eq!(
        detail("other_load", &DRIVE, others(0.5, None)).unwrap(),
        "others kept 0.50 processors of this machine busy"
    );
    assert_eq!(detail("other_load", &DRIVE, others(0.2, None)), None);
    assert!(detail("other_load", &DRIVE, others(0.2, Some(0.15))).is_some(), "a program computes");
    assert_eq!(detail("other_load", &DRIVE, others(0.45, Some(0.02))), None, "a loop device's thread");
    assert_eq!(
        detail("other_load", &DRIVE, others(1.2, Some(0.02))).unwrap(),
        "others kept 1.20 processors busy, 0.02 of it in user mode: programs, or the kernel's threads for this load"
    );
    let too_short = |record: &mut Record| phase(record).observations.other_cpus_busy = None;
    assert_eq!(detail("other_load", &DRIVE, too_short), None);
    let large = |record: &mut Record| {
        others(1.0, Some(0.5))(record);
        record.environment.processor.logical_cores = Some(64);
    };
    assert_eq!(detail("other_load", &DRIVE, large), None, "half a processor of 64");
    let stolen = |cpus| move |record: &mut Record| phase(record).observations.stolen_cpus = Some(cpus);
    assert_eq!(
        detail("other_load", &DRIVE, stolen(0.25)).unwrap(),
        "the hypervisor gave 0.25 processors of this machine to others"
    );
    assert_eq!(detail("other_load", &DRIVE, stolen(0.05)), None);
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
        "others read 3.05 GiB from the devices of this load"
    );
    assert_eq!(
        detail("other_io", &DRIVE, moved(1.0, 0.5)).unwrap(),
        "3.05 GiB were written to the devices while this load only read"
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

#[test]
fn unfinished_operations() {
    let hanging = |count| {
        move |record: &mut Record| {
            let phase = phase(record);
            let mut waits = statistics::Histogram::new();
            waits.record_n(31_000_000_000, count);
            let waits = statistics::SparseHistogram::from(&waits);
            let worker = &mut phase.samples.workers[0];
            worker.unfinished_operations = count;
            worker.classes[0].unfinished = waits;
            (phase.summary.unfinished_operations, phase.summary.drain_ns) = (count, 30_000_000_000);
        }
    };
    let text = detail("unfinished_operations", &DRIVE, hanging(3)).unwrap();
    assert!(text.starts_with("3 operations had not come back 30.0 s after the window"), "{text}");
    assert!(text.ends_with("31.0 s at most"), "{text}");
    assert_eq!(detail("unfinished_operations", &DRIVE, hanging(0)), None);
}

#[test]
fn generator_late() {
    let late = |lateness_ns: u64| {
        move |record: &mut Record| {
            let mut lateness = statistics::Histogram::new();
            lateness.record_n(lateness_ns, 10_000);
            phase(record).summary.lateness = statistics::LatencySummary::of(&lateness);
        }
    };
    assert!(detail("generator_late", &DRIVE, late(20_000_000)).unwrap().contains("20.0 ms late on average"));
    assert_eq!(detail("generator_late", &DRIVE, late(400)), None, "what a turn of the loop costs");
    assert_eq!(detail("generator_late", &DRIVE, |_| ()), None, "a closed loop");
}

#[test]
fn arrivals_unserved() {
    let served = |started_operations, unserved_operations| {
        move |record: &mut Record| {
            phase(record).arrivals = Some(ArrivalOutcome {
                asked_per_second: 1e5,
                started_per_second: started_operations as f64 / 10.0,
                started_operations,
                unserved_operations,
                ..ArrivalOutcome::default()
            });
        }
    };
    assert_eq!(
        detail("arrivals_unserved", &DRIVE, served(990_000, 10_000)).unwrap(),
        "100k/s were asked for and 99.0k/s started: 10000 operations never were"
    );
    assert_eq!(detail("arrivals_unserved", &DRIVE, served(996_000, 4_000)), None);
    assert_eq!(detail("arrivals_unserved", &DRIVE, served(980_000, 0)), None, "fewer arrivals by chance");
    let piles_up = |record: &mut Record| {
        served(1_000_000, 0)(record);
        let arrivals = phase(record).arrivals.as_mut().unwrap();
        arrivals.completed_per_second = Some(8e4);
        (arrivals.backlog_growth_per_second, arrivals.backlog_grows) = (Some(2e4), true);
    };
    assert_eq!(
        detail("arrivals_unserved", &DRIVE, piles_up).unwrap(),
        "100k/s were asked for and 80.0k/s completed: what waits grows by 20.0k/s, and latencies with it"
    );
    let denied = |record: &mut Record| {
        piles_up(record);
        phase(record).summary.steady.deny(SteadyReason::BacklogGrows);
    };
    assert_eq!(detail("not_steady", &DRIVE, denied), None, "it has a doubt of its own");
}

#[test]
fn clock() {
    let drift = |ppm| {
        move |record: &mut Record| {
            record.tool_cost = Some(ToolCost {
                null_ns_per_operation: 40.0,
                clock_read_ns: 10.0,
                clock_source: ClockSource::TimeStampCounter,
                clock_drift_ppm: ppm,
            });
        }
    };
    assert!(detail("clock", &DRIVE, drift(-350.0)).unwrap().contains("-350 parts per million"));
    assert_eq!(detail("clock", &DRIVE, drift(150.0)), None);
    assert_eq!(detail("clock", &DRIVE, |record| record.tool_cost = None), None);
}

#[test]
fn frequency_scaling() {
    let governors = |names: &'static [&'static str]| {
        move |record: &mut Record| {
            record.environment.processor.governors = names.iter().map(|name| (*name).to_owned()).collect();
        }
    };
    let told = detail("frequency_scaling", &DRIVE, governors(&["performance", "powersave"])).unwrap();
    assert!(told.starts_with("the frequency governor is powersave:"), "{told}");
    assert_eq!(
        detail("frequency_scaling", &DRIVE, governors(&[])),
        None,
        "a guest does not see its governor"
    );
}

/// The doubts of the first of two phases of a stage, where the second is of another shape.
fn beside(shape: &Shape, other: &Shape, change: impl FnOnce(&mut Record)) -> Vec<Doubt> {
    let mut record = sample::record(vec![sample::phase(shape), sample::phase(other)]);
    change(&mut record);
    find(&Evidence::of(&record, &record.phases[0]))
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
    assert!(detail_found.ends_with("makes them durable"), "{detail_found}");
    let synced = |record: &mut Record| {
        reached(record);
        phase(record).plan.media_mut().expect("media").end_fsync = true;
    };
    let detail_found = details("buffered_writes", beside(&buffered, &WRITES, synced)).unwrap();
    assert!(detail_found.starts_with("at most 25.0% of the bytes written"), "{detail_found}");
    let from_memory = |record: &mut Record| {
        phase(record).observations.device_read_bytes = Some(phase(record).summary.total.bytes / 2);
    };
    let detail_found = details("page_cache", beside(&BUFFERED, &DRIVE, from_memory)).unwrap();
    assert!(detail_found.starts_with("the device gave at most 50.0%"), "{detail_found}");
    let memory = Shape { kind: TargetKind::Memory, threads: 5, ..DRIVE };
    let busy = |record: &mut Record| phase(record).observations.machine_cpus_busy = Some(7.9);
    assert_eq!(detail("all_processors_busy", &memory, busy), None, "5 workers on 8 processors");
    assert!(
        details("all_processors_busy", beside(&memory, &memory, busy)).is_some(),
        "10 workers on 8 processors"
    );
}
