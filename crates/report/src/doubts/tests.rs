use ::gpu::{GpuActivity, Transport};
use driver::ClockSource;
use host::control_group::CpuThrottling;
use statistics::{ClassPoint, ClassTotals, Steady, SteadyReason, WarmUp, summarise};
use workload::spec::Operation;
use workload::target::TargetKind;

use super::*;
use crate::sample::{self, DRIVE, Shape};

const WRITES: Shape = Shape { operation: Operation::RandWrite, ..DRIVE };

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
fn debug_build() {
    assert_eq!(found(&DRIVE, |record| record.debug_build = true), ["debug_build"]);
}

/// Of operations that are short for the drive and the threads of it, and of none that are long.
#[test]
fn less_optimized() {
    let built = |rate: f64| {
        move |record: &mut Record| {
            record.optimized_build = false;
            phase(record).summary.total.operations_per_second = rate;
        }
    };
    let threads = f64::from(sample::record(vec![sample::phase(&DRIVE)]).phases[0].plan.load().threads);
    let told = detail("less_optimized", &DRIVE, built(threads * 100e3)).unwrap();
    assert!(told.contains("up to twice as long (here a worker takes 10.0 us"), "{told}");
    assert_eq!(detail("less_optimized", &DRIVE, built(threads * 20e3)), None);
    let debug = |record: &mut Record| {
        built(threads * 100e3)(record);
        record.debug_build = true;
    };
    assert_eq!(detail("less_optimized", &DRIVE, debug), None, "that says more");
}

#[test]
fn too_short() {
    let cut = |window_ns| move |record: &mut Record| phase(record).summary.window_end_ns = window_ns;
    assert_eq!(
        detail("too_short", &DRIVE, cut(999_000_000)).unwrap(),
        "the window is 999 ms long, less than 1 s"
    );
    assert_eq!(detail("too_short", &DRIVE, cut(1_000_000_000)), None);
    let slow =
        |operations| move |record: &mut Record| phase(record).summary.total.window_operations = operations;
    assert!(detail("too_short", &DRIVE, slow(999)).unwrap().starts_with("999 operations"));
    assert_eq!(detail("too_short", &DRIVE, slow(1000)), None);
    assert_eq!(detail("too_short", &DRIVE, slow(0)).unwrap(), "no operation completed in the window");
    let few =
        |record: &mut Record| phase(record).summary.total.rate.as_mut().unwrap().effective_samples = 9.4;
    assert_eq!(
        detail("too_short", &DRIVE, few).unwrap(),
        "the effective sample size of the rate is 9.4, below 10"
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
        detail_found.contains("fell by 6") || detail_found.contains("the rate shifted"),
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
    assert_eq!(
        told, "no operation completed for 400 ms within the phase",
        "at the end, where no figure shows it"
    );
    assert!(detail("not_steady", &DRIVE, stalled(10, 14)).unwrap().contains("400 ms"));
    assert_eq!(detail("not_steady", &DRIVE, stalled(10, 12)), None, "5% of the phase");
    let slow = Shape { operations_per_second: 40.0, ..DRIVE };
    assert_eq!(detail("not_steady", &slow, stalled(10, 14)), None, "16 operations");
    let synced = |record: &mut Record| {
        stalled(36, 40)(record);
        sample::change(&mut phase(record).plan, "/end_fsync", true);
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
    assert!(told.starts_with("more and more operations hang: 6 operations of the first third"), "{told}");
    assert_eq!(detail("not_steady", &DRIVE, hanging(3)), None, "6 of 128 in flight");
    assert_eq!(
        detail("not_steady", &DRIVE, wandering).unwrap(),
        "the rate drifts slowly: 40 intervals have an effective sample size of 1.2"
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
    let expected = "the rate fell from 400k/s to 133k/s after 1.60 s (2.44 GiB done)";
    assert_eq!(told, expected);
    let mut record = sample::record(vec![sample::phase(&DRIVE)]);
    used_up(0.4)(&mut record);
    let text = crate::render(&record, 200, false);
    assert!(text.contains("400k/s before 1.60 s, 133k/s after: the results include both parts"), "{text}");
    assert!(!text.contains("excluded"), "{text}");
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
    assert!(text.contains("not_steady: no operation completed for 400 ms"), "{text}");
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
    assert!(text.contains("no operation completed") && !text.contains("0/s to 0/s"), "{text}");
}

#[test]
fn all_processors_busy() {
    let busy = |cpus| move |record: &mut Record| phase(record).observations.machine_cpus_busy = Some(cpus);
    assert!(detail("all_processors_busy", &DRIVE, busy(7.9)).unwrap().starts_with("7.90 of 8 CPUs"));
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
        "other processes used 0.50 CPUs of this machine"
    );
    assert_eq!(detail("other_load", &DRIVE, others(0.2, None)), None);
    assert!(detail("other_load", &DRIVE, others(0.2, Some(0.15))).is_some(), "a program computes");
    assert_eq!(detail("other_load", &DRIVE, others(0.45, Some(0.02))), None, "a loop device's thread");
    assert_eq!(
        detail("other_load", &DRIVE, others(1.2, Some(0.02))).unwrap(),
        "other processes used 1.20 CPUs, 0.02 of that in user mode: programs, or kernel threads that serve this load"
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
        "the hypervisor gave 0.25 CPUs of this machine to other virtual machines"
    );
    assert_eq!(detail("other_load", &DRIVE, stolen(0.05)), None);
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
    assert!(text.starts_with("3 operations had not completed 30.0 s after the window"), "{text}");
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
        "requested 100k/s, started 99.0k/s: 10000 operations were never issued"
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
        "requested 100k/s, completed 80.0k/s: the queue grows by 20.0k/s, and latencies grow with it"
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
fn cpu_throttled() {
    let told = |throttled_ns| {
        detail("cpu_throttled", &DRIVE, |record| {
            record.environment.system.cpu_limit_cores = Some(0.5);
            let stopped = CpuThrottling { periods: 80, throttled_periods: 60, throttled_ns };
            phase(record).observations.cpu_throttling = Some(stopped);
        })
    };
    let text = told(2_000_000_000).unwrap();
    assert!(text.starts_with("the control group's quota of 0.50 CPUs was used up in 60 of 80"), "{text}");
    assert_eq!(told(1_000_000), None);
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

#[test]
fn data_that_did_not_go_directly() {
    let seen = |transport, direct_bytes| GpuActivity {
        cufile_transport: Some(transport),
        cufile_requests: 100,
        cufile_bytes: 100 << 20,
        direct_bytes,
        ..GpuActivity::default()
    };
    let told = |seen| detail("gpu_staged", &DRIVE, |record| phase(record).observations.gpu = Some(seen));
    let some = told(seen(Transport::Module, Some(25 << 20))).expect("a doubt");
    assert_eq!(some, "25.0% of the data went to the GPU directly: the rest went through host memory");
    let compatible = told(seen(Transport::Compatibility, None)).expect("a doubt");
    assert!(compatible.contains("compatibility mode"), "{compatible}");
    for silent in [
        seen(Transport::Module, Some(95 << 20)),
        // Others moved data too, or nothing counts.
        seen(Transport::Module, Some(300 << 20)),
        seen(Transport::Module, None),
        seen(Transport::PeerToPeer, None),
        GpuActivity { cufile_bytes: 1 << 20, ..seen(Transport::Module, Some(0)) },
    ] {
        assert_eq!(told(silent), None);
    }
    let without = GpuActivity { cufile_requests: 0, ..seen(Transport::Compatibility, None) };
    assert_eq!(told(without), None);
    let unaligned = GpuActivity { unaligned_requests: 50, ..seen(Transport::PeerToPeer, None) };
    let some = told(unaligned).expect("a doubt");
    assert!(some.starts_with("50.0% of the requests were not aligned to 4096 bytes"), "{some}");
}

#[test]
fn workers_far_from_their_devices() {
    let told = |far_workers| {
        detail("gpu_far", &DRIVE, |record| {
            let gpu = &mut phase(record).observations.gpu;
            gpu.get_or_insert_default().far_workers = far_workers;
        })
    };
    assert_eq!(told(2).as_deref(), Some("2 workers are on another NUMA node than their GPU"));
    let from_storage = detail("gpu_far", &DRIVE, |record| {
        phase(record).observations.gpu.get_or_insert_default().workers_far_from_storage = 3;
    });
    assert!(
        from_storage.is_some_and(|told| told.starts_with("3 workers use a GPU under another PCIe switch"))
    );
    assert_eq!(told(0), None);
}
