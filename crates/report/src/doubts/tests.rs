use driver::ClockSource;
use statistics::{ClassPoint, Steady, WarmUp, summarise};
use workload::engine::SyncMode;
use workload::plan::ArrivalPlan;
use workload::spec::{Operation, Spacing};

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

#[test]
fn every_kind_is_in_the_docs_and_has_a_remedy() {
    let page = std::fs::read_to_string(DOUBTS_PAGE).unwrap();
    for kind in KINDS {
        assert!(page.contains(&format!("| `{}` |", kind.name)), "docs/doubts.md lacks {}", kind.name);
        assert!(!kind.remedy.is_empty());
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, kinds().count(), "docs/doubts.md has a kind that is not there");
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
    let drift = |record: &mut Record| {
        let steady = &mut phase(record).summary.steady;
        *steady = Steady { reason: SteadyReason::HalvesDiffer, drift_percent: 12.34, ..steady.clone() };
    };
    assert_eq!(
        detail("not_steady", &DRIVE, drift).unwrap(),
        "the rate rose by 12.3% from the first half of the window to the second"
    );
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
        phase(record).plan.cache = CachePolicy::Warm;
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
        detail("buffered_writes", &shape, reached)
            .unwrap()
            .ends_with("25.0% of the bytes had reached the device")
    );
    assert!(detail("buffered_writes", &shape, |_| ()).unwrap().ends_with("makes them durable"));
    assert_eq!(detail("buffered_writes", &WRITES, |_| ()), None);
    assert_eq!(detail("buffered_writes", &BUFFERED, |_| ()), None);
    assert_eq!(detail("buffered_writes", &shape, |record| phase(record).plan.end_fsync = true), None);
    assert_eq!(detail("buffered_writes", &shape, |record| phase(record).plan.fsync_every = Some(1)), None);
    assert_eq!(
        detail("buffered_writes", &shape, |record| phase(record).plan.options.sync = SyncMode::Dsync),
        None
    );
    let memory = Shape { kind: TargetKind::Memory, ..shape };
    assert_eq!(detail("buffered_writes", &memory, |_| ()), None);
}

#[test]
fn compressible_content() {
    let zeros = |record: &mut Record| phase(record).plan.content.content = ContentChoice::Zero;
    assert!(detail("compressible_content", &WRITES, zeros).unwrap().starts_with("only zeros"));
    let shaped = |record: &mut Record| phase(record).plan.content.compress_percent = 40;
    assert!(detail("compressible_content", &WRITES, shaped).unwrap().starts_with("40% of what is written"));
    let once = |record: &mut Record| phase(record).plan.content.refill = Refill::Once;
    assert!(detail("compressible_content", &WRITES, once).unwrap().starts_with("buffers are filled once"));
    let stamp = |record: &mut Record| phase(record).plan.content.refill = Refill::Stamp;
    assert!(detail("compressible_content", &WRITES, stamp).unwrap().starts_with("all but 16 bytes"));
    assert_eq!(detail("compressible_content", &WRITES, |_| ()), None);
    assert_eq!(detail("compressible_content", &DRIVE, zeros), None, "nothing is written");
    let verified = |record: &mut Record| {
        zeros(record);
        phase(record).plan.verify_interval_bytes = Some(4096);
    };
    assert_eq!(
        detail("compressible_content", &WRITES, verified),
        None,
        "verified blocks have content of their own"
    );
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
        phase(record).plan.options.iopoll = true;
    };
    assert_eq!(detail("client_saturated", &DRIVE, polled), None, "polling keeps a processor busy");
    let open = |record: &mut Record| {
        user(record);
        phase(record).plan.load.arrivals = Some(ArrivalPlan { rate_per_second: 1e5, kind: Spacing::Poisson });
    };
    assert_eq!(detail("client_saturated", &BUFFERED, open), None, "the pacer may spin");
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
    let unknown = |record: &mut Record| {
        busy(7.9)(record);
        record.environment.processor.logical_cores = None;
    };
    assert_eq!(detail("all_processors_busy", &DRIVE, unknown), None);
}

#[test]
fn other_load() {
    let others = |cpus| move |record: &mut Record| phase(record).observations.other_cpus_busy = Some(cpus);
    assert_eq!(
        detail("other_load", &DRIVE, others(0.5)).unwrap(),
        "others kept 0.50 processors of this machine busy"
    );
    assert_eq!(detail("other_load", &DRIVE, others(0.2)), None);
    let too_short = |record: &mut Record| phase(record).observations.other_cpus_busy = None;
    assert_eq!(detail("other_load", &DRIVE, too_short), None);
    let large = |record: &mut Record| {
        others(0.5)(record);
        record.environment.processor.logical_cores = Some(64);
    };
    assert_eq!(detail("other_load", &DRIVE, large), None, "half a processor of 64");
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
            });
        }
    };
    assert_eq!(
        detail("arrivals_unserved", &DRIVE, served(990_000, 10_000)).unwrap(),
        "100k/s were asked for and 99.0k/s started: 10000 operations never were"
    );
    assert_eq!(detail("arrivals_unserved", &DRIVE, served(996_000, 4_000)), None);
    assert_eq!(detail("arrivals_unserved", &DRIVE, served(980_000, 0)), None, "fewer arrivals by chance");
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
