//! Workers on a device as strict as hardware.

mod simulated;

use std::sync::Arc;

use crate::plan::{EngineFacts, MediaPlan, resolve};
use crate::target::TargetFacts;
use crate::zoned::{ZoneModel, ZonedFacts};
use proptest::prelude::*;
use workload::options;
use workload::random::Random;
use workload::spec::{Operation, Spec};
use workload::target::TargetKind;

use self::simulated::{Device, Shape};
use super::set::filled;
use super::{Step, ZoneDevice, ZoneTables, ZonedWalk, report_all};
use crate::{MediaClass, MediaOperation};

const MIB: u64 = 1 << 20;
const SHAPE: Shape = Shape {
    zones: 8,
    conventional: 0,
    zone_bytes: MIB,
    capacity_bytes: MIB - 256 * 1024,
    open_max: 3,
    active_max: 4,
};

fn facts(shape: &Shape) -> TargetFacts {
    let sequential = shape.zones - shape.conventional;
    TargetFacts {
        path: "/dev/zoned".to_owned(),
        kind: TargetKind::BlockDevice,
        exists: true,
        size_bytes: shape.zones * shape.zone_bytes,
        allocated_bytes: 0,
        direct_alignment_bytes: 4096,
        free_bytes: None,
        zoned: Some(ZonedFacts {
            model: ZoneModel::HostManaged,
            zone_size_bytes: shape.zone_bytes,
            capacity_bytes: if sequential > 0 { shape.capacity_bytes } else { shape.zone_bytes },
            zones: shape.zones,
            conventional_zones: shape.conventional,
            conventional_until_bytes: shape.conventional * shape.zone_bytes,
            open_zones_max: shape.open_max as u32,
            active_zones_max: shape.active_max as u32,
            keeps_write_order: true,
        }),
    }
}

fn plan(shape: &Shape, operation: Operation, words: &str) -> MediaPlan {
    let mut spec = Spec { layer: crate::LAYER, ..Spec::default() };
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, "true"));
        options::apply(&mut spec, key, value).expect("option");
    }
    let engine = EngineFacts {
        name: "libaio",
        classes: MediaOperation::CLASSES,
        asynchronous: true,
        depth_max: 64,
        targetless: false,
        direct: true,
        options: &[],
    };
    resolve(&spec, operation, &[facts(shape)], &engine, 1).expect("plan")
}

use driver::Operation as _;

/// Outcome of a run.
#[derive(Debug, Default)]
struct Seen {
    resets: u64,
    finishes: u64,
    written_bytes: u64,
    /// Steps in which every worker waited and nothing was in flight.
    stuck: u32,
    ended: usize,
}

/// One worker: its walk, what it has in flight, and whether it has ended.
struct Worker {
    walk: ZonedWalk,
    in_flight: Vec<(MediaOperation, bool)>,
    has_ended: bool,
}

/// Runs phases together: in each of `steps` one worker draws, or one of its operations completes. A share of `failing` in a thousand
/// writes stops half way.
fn run(device: &Device, plans: &[MediaPlan], seed: u64, steps: u32, failing: u64) -> Seen {
    let mut random = Random::new(seed);
    let opened = device.clone();
    let mut tables = ZoneTables::opening(Box::new(move |_| Ok(Box::new(opened.clone()))));
    let refs: Vec<&MediaPlan> = plans.iter().collect();
    let sets = tables.begin_stage(&refs).expect("zones");
    let mut classes = Vec::new();
    let mut workers = Vec::new();
    for (plan, set) in plans.iter().zip(&sets) {
        let (set, zoned) = (set.as_ref().expect("a set"), plan.zoned.as_ref().expect("zones"));
        for worker in 0..plan.load.threads {
            let walk = ZonedWalk::new(plan, zoned, set, worker).expect("a walk");
            workers.push(Worker { walk, in_flight: Vec::new(), has_ended: false });
            classes.push((plan.mix, plan.load.depth as usize, zoned.zone_depth > 1));
        }
    }
    let mut seen = Seen::default();
    let mut waiting = 0;
    for _ in 0..steps {
        let at = random.below(workers.len() as u64) as usize;
        let (mix, depth, is_ordered) = classes[at];
        let Worker { walk, in_flight, has_ended } = &mut workers[at];
        let draws = !*has_ended && in_flight.len() < depth && (in_flight.is_empty() || random.below(2) == 0);
        if !draws {
            if in_flight.is_empty() {
                continue;
            }
            let (operation, is_whole) = in_flight.swap_remove(random.below(in_flight.len() as u64) as usize);
            let is_whole =
                if is_ordered { is_whole } else { carry_out(device, &operation, &mut random, failing) };
            walk.ended(&operation, is_whole);
            waiting = 0;
            continue;
        }
        let draw = random.below(100);
        let step = walk.next(|| match draw {
            draw if draw < u64::from(mix.read_percent) => MediaClass::Read,
            draw if draw < u64::from(mix.read_percent + mix.write_percent) => MediaClass::Write,
            _ => MediaClass::Discard,
        });
        match step {
            Step::Go { class, target, offset, length, is_extra } => {
                let operation = MediaOperation { offset, length, slot: 0, target, class, is_extra };
                device.begin(&operation);
                seen.resets += u64::from(class == MediaClass::Reset);
                seen.finishes += u64::from(class == MediaClass::Finish);
                seen.written_bytes += if class == MediaClass::Write { u64::from(length) } else { 0 };
                let is_whole = !is_ordered || carry_out(device, &operation, &mut random, 0);
                in_flight.push((operation, is_whole));
                waiting = 0;
            }
            Step::Wait => waiting += 1,
            Step::End => *has_ended = true,
        }
        let is_idle = workers.iter().all(|worker| worker.in_flight.is_empty());
        if is_idle && waiting > 100 * workers.len() {
            seen.stuck += 1;
            break;
        }
    }
    seen.ended = workers.iter().filter(|worker| worker.has_ended).count();
    seen
}

fn carry_out(device: &Device, operation: &MediaOperation, random: &mut Random, failing: u64) -> bool {
    let length = u64::from(operation.length);
    if operation.class == MediaClass::Write && random.below(1000) < failing {
        device.carry_out(operation, length / 2 / 4096 * 4096);
        return false;
    }
    device.carry_out(operation, length)
}

fn check(device: &Device, seen: &Seen) {
    let state = device.state.lock().unwrap();
    assert!(state.violations.is_empty(), "{:#?}", &state.violations[..state.violations.len().min(5)]);
    assert_eq!(seen.stuck, 0, "{seen:?}");
}

#[test]
fn sequential_writes_fill_zones_to_their_capacity_and_end_with_the_range() {
    let device = Device::new(SHAPE);
    let plan = plan(&SHAPE, Operation::Write, "zones=zbd direct block-size=64k");
    let seen = run(&device, std::slice::from_ref(&plan), 1, 10_000, 0);
    check(&device, &seen);
    assert_eq!((seen.written_bytes, seen.resets, seen.ended), (8 * SHAPE.capacity_bytes, 0, 1));
    assert!((0..8).all(|zone| device.written(zone) == SHAPE.capacity_bytes));
    assert_eq!(crate::operations_of(&plan), Some(8 * SHAPE.capacity_bytes / 65536));
}

#[test]
fn full_zones_are_reset_before_they_are_written_anew() {
    let device = Device::new(SHAPE);
    (0..8).for_each(|zone| device.fill(zone, SHAPE.capacity_bytes));
    let plan = plan(&SHAPE, Operation::Write, "zones=zbd direct block-size=64k");
    let seen = run(&device, &[plan], 1, 10_000, 0);
    check(&device, &seen);
    assert_eq!((seen.written_bytes, seen.resets), (8 * SHAPE.capacity_bytes, 8));
}

#[test]
fn a_block_that_does_not_divide_the_capacity_finishes_the_zone() {
    let device = Device::new(SHAPE);
    let plan = plan(&SHAPE, Operation::Write, "zones=zbd direct block-size=80k");
    let seen = run(&device, &[plan], 1, 10_000, 0);
    check(&device, &seen);
    // 9 blocks of 80 KiB in 768 KiB, and 48 KiB that no block fits in.
    assert_eq!((seen.finishes, seen.written_bytes), (8, 8 * 9 * 80 * 1024));
    assert!(device.state.lock().unwrap().open_most <= 1, "no zone is left open");
}

#[test]
fn zones_that_others_left_open_are_written_first_where_no_other_may_be() {
    let device = Device::new(SHAPE);
    (5..8).for_each(|zone| device.fill(zone, 4096));
    let plan = plan(&SHAPE, Operation::Write, "zones=zbd direct block-size=64k bytes=100m");
    let seen = run(&device, &[plan], 1, 1_000, 0);
    check(&device, &seen);
    assert!(seen.written_bytes > 3 * SHAPE.capacity_bytes);
}

#[test]
fn open_zones_outside_of_the_range_count_against_the_limit() {
    let device = Device::new(SHAPE);
    (4..8).for_each(|zone| device.fill(zone, 4096));
    let plan = plan(&SHAPE, Operation::Write, "zones=zbd direct block-size=64k size=4m");
    let opened = device;
    let mut tables = ZoneTables::opening(Box::new(move |_| Ok(Box::new(opened.clone()))));
    let error = tables.begin_stage(&[&plan]).map(drop).expect_err("four of three are open").to_string();
    assert!(error.contains("limit of open zones is too low") && error.contains("blkzone"), "{error}");
}

#[test]
fn nothing_to_read_is_said_beforehand() {
    let opened = Device::new(SHAPE);
    let mut tables = ZoneTables::opening(Box::new(move |_| Ok(Box::new(opened.clone()))));
    let empty = plan(&SHAPE, Operation::RandRead, "zones=zbd");
    let error = tables.begin_stage(&[&empty]).map(drop).expect_err("empty zones").to_string();
    assert!(error.contains("below its write pointer") && error.contains("read-beyond-wp"), "{error}");
    let beyond = plan(&SHAPE, Operation::RandRead, "zones=zbd,read-beyond-wp");
    assert!(tables.begin_stage(&[&beyond]).is_ok());
}

#[test]
fn early_resets_hold_a_range_below_its_threshold() {
    let device = Device::new(SHAPE);
    let plan = plan(
        &SHAPE,
        Operation::RandWrite,
        "zones=zbd,reset-threshold=0.3,reset-frequency=0.1 direct block-size=32k bytes=1g",
    );
    let seen = run(&device, &[plan], 3, 20_000, 0);
    check(&device, &seen);
    let written: u64 = (0..8).map(|zone| device.written(zone)).sum();
    assert!(seen.resets > 50, "{seen:?}");
    assert!(written < 8 * SHAPE.capacity_bytes * 7 / 10, "{written}");
}

#[test]
fn discards_reset_each_zone_with_data_once() {
    for (operation, words) in [(Operation::Discard, "zones=zbd"), (Operation::RandDiscard, "zones=zbd")] {
        let device = Device::new(Shape { conventional: 2, ..SHAPE });
        for zone in [2, 3, 5, 7] {
            device.fill(zone, 8192);
        }
        let plan = plan(&device.shape, operation, words);
        let seen = run(&device, &[plan], 5, 10_000, 0);
        check(&device, &seen);
        assert_eq!(device.state.lock().unwrap().done[MediaClass::Discard as usize], 4);
        assert_eq!(seen.ended, 1);
    }
}

#[test]
fn discards_reset_all_zones_of_a_full_device() {
    let device = Device::new(SHAPE);
    (0..8).for_each(|zone| device.fill(zone, SHAPE.capacity_bytes));
    let plan = plan(&SHAPE, Operation::Discard, "zones=zbd");
    let seen = run(&device, &[plan], 5, 10_000, 0);
    check(&device, &seen);
    assert!((0..8).all(|zone| device.written(zone) == 0), "a zone is longer than its capacity");
}

#[test]
fn zones_with_data_are_counted_for_consent() {
    let device = Device::new(Shape { conventional: 1, ..SHAPE });
    device.fill(3, 4096);
    let zones = report_all(&device).unwrap();
    assert_eq!((filled(&zones, 0, 8 * MIB), filled(&zones, 4 * MIB, 8 * MIB)), (1, 0));
    assert_eq!(device.report(7 * MIB, 9).unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever workers do, in whatever order it completes, the device accepts all of it, and nobody is stuck.
    #[test]
    fn a_strict_device_accepts_everything(
        seed: u64,
        operation in prop::sample::select(vec![
            Operation::Write, Operation::RandWrite, Operation::ReadWrite, Operation::RandRw,
        ]),
        threads in 1u32..6,
        depth in 1u32..9,
        zone_depth in prop::sample::select(vec!["", ",depth=1", ",depth=4"]),
        share in prop::sample::select(vec!["whole", "partition"]),
        block in prop::sample::select(vec!["4k", "64k", "80k", "4k:50,64k:50"]),
        early in prop::sample::select(vec!["", ",reset-threshold=0.4,reset-frequency=0.2"]),
        limits in prop::sample::select(vec![(0usize, 0usize), (1, 1), (3, 4), (5, 0)]),
        conventional in 0u64..3,
        filled in prop::collection::vec((3usize..8, 0u64..25), 0..3),
        failing in prop::sample::select(vec![0u64, 30]),
    ) {
        let shape = Shape { conventional, open_max: limits.0, active_max: limits.1, ..SHAPE };
        let device = Device::new(shape);
        for (zone, eighths) in filled.iter().take(if limits.0 == 1 { 0 } else { limits.0.max(3) - 2 }) {
            if *eighths > 0 {
                device.fill(*zone, eighths * 32 * 1024);
            }
        }
        let threads = if share == "partition" && limits.0 > 0 { threads.min(limits.0 as u32 - filled.len().min(limits.0 - 1) as u32).max(1) } else { threads };
        // A failure leaves what follows it in the zone in flight at a wrong place: there is no order to keep then.
        let (failing, zone_depth) = if zone_depth == ",depth=1" { (failing, zone_depth) } else { (0, zone_depth) };
        let words = format!("zones=zbd{zone_depth}{early} direct block-size={block} threads={threads} depth={depth} share={share} bytes=1g");
        let plan = plan(&shape, operation, &words);
        let seen = run(&device, &[plan], seed, 4_000, failing);
        let state = device.state.lock().unwrap();
        prop_assert!(state.violations.is_empty(), "{words}: {:#?}", &state.violations[..1]);
        prop_assert_eq!(seen.stuck, 0);
        prop_assert!(seen.written_bytes > 0);
    }

    /// Two phases at the same zones, one that writes and one that reads.
    #[test]
    fn readers_stay_below_write_pointers(seed: u64, order in prop::sample::select(vec![Operation::Read, Operation::RandRead])) {
        let device = Device::new(SHAPE);
        let writer = plan(&SHAPE, Operation::RandWrite, "zones=zbd direct block-size=64k depth=4 bytes=1g");
        let reader = plan(&SHAPE, order, "zones=zbd block-size=16k depth=4 bytes=1g");
        device.fill(0, 64 * 1024);
        let seen = run(&device, &[writer, reader], seed, 6_000, 0);
        check(&device, &seen);
        // A reader that is ahead of the writer comes to the end of its pass early.
        let reads = device.state.lock().unwrap().done[MediaClass::Read as usize];
        prop_assert!(reads > if seen.ended > 0 { 0 } else { 100 }, "{reads} reads, {} ended", seen.ended);
    }
}

/// The zones that a phase keeps to follow from the device and from what was asked for.
#[test]
fn limits_and_sizes_of_the_device_hold() {
    let zoned = |words: &str| Arc::new(plan(&SHAPE, Operation::RandWrite, words)).zoned.clone().unwrap();
    let plain = zoned("zones=zbd direct depth=8");
    assert_eq!((plain.targets[0].write_zones_max, plain.zone_depth), (3, 1), "one write in flight in each");
    assert_eq!(zoned("zones=zbd,max-open=2,depth=1 direct depth=8").targets[0].write_zones_max, 2);
    assert_eq!(zoned("zones=zbd,max-open=9,ignore-limits direct").targets[0].write_zones_max, 9);
    assert_eq!(plain.to_string(), "8 host-managed zones of 1MiB (capacity 768KiB), at most 3 open");
}
