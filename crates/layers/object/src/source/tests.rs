#![allow(unsafe_code)]

use std::collections::BTreeSet;

use driver::PageSize;
use proptest::prelude::*;
use vos::{ObjectClass, ObjectType};
use workload::plan::{HostPlace, HostTargets, LimitPlan};

use super::*;
use crate::fixture::plan;
use crate::plan::{OpShare, PunchScope, ValueKind};

const RUN: u64 = 77;

fn source_of(plan: &ObjectPlan, worker: u32) -> ObjectSource {
    let bytes = plan.dataset.value_size_bytes_max.max(plan.short_read_bytes.unwrap_or(0));
    let arena = Arc::new(Arena::new(plan.load.depth, bytes as usize, PageSize::Base).expect("memory"));
    ObjectSource::new(plan, worker, arena, RUN, false).expect("a source")
}

fn all_of(plan: &ObjectPlan, worker: u32) -> Vec<ObjectOperation> {
    let mut source = source_of(plan, worker);
    std::iter::from_fn(|| source.next(0)).collect()
}

/// Everything that tells two operations apart.
fn place(operation: &ObjectOperation) -> (String, String, String, u64) {
    let ObjectOperation { object, dkey, akey, offset_bytes, .. } = operation;
    (object.to_string(), dkey.to_string(), akey.to_string(), *offset_bytes)
}

#[test]
fn objects_run_fastest_and_dkeys_slowest() {
    let mut plan = plan(ObjectOp::Update);
    plan.dataset.value = ValueKind::Array;
    let all = all_of(&plan, 0);
    let seen: Vec<_> =
        all.iter().map(|op| (op.object.lo, place(op).1, place(op).2, op.offset_bytes)).collect();
    let known = |object, dkey: &str, akey: &str, offset| (object, dkey.to_owned(), akey.to_owned(), offset);
    assert_eq!(seen[0], known(0, "blade-0", "akey--0", 0));
    assert_eq!(seen[1], known(1, "blade-0", "akey--0", 0));
    assert_eq!(seen[2], known(0, "blade-0", "akey--0", 100));
    assert_eq!(seen[4], known(0, "blade-0", "akey--1", 0));
    assert_eq!(seen[8], known(0, "blade-1", "akey--0", 0));
    assert_eq!((seen.len(), all[23].record), (24, 23));
    assert!(all.iter().zip(0..).all(|(op, number)| op.record == number && op.value_bytes == 100));
}

#[test]
fn records_of_a_single_value_are_one_value() {
    let all = all_of(&plan(ObjectOp::Update), 0);
    let places: BTreeSet<_> = all.iter().map(place).collect();
    let records: BTreeSet<_> = all.iter().map(|op| op.record).collect();
    assert_eq!((all.len(), places.len(), records.len()), (24, 12, 12));
}

#[test]
fn akeys_are_each_dkeys_own_unless_constant() {
    let mut plan = plan(ObjectOp::Fetch);
    let names =
        |plan: &ObjectPlan| all_of(plan, 0).iter().map(|op| op.akey.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(names(&plan).len(), 2);
    plan.dataset.constant_akey = false;
    assert_eq!(names(&plan).len(), 6);
}

#[test]
fn keys_and_arrays_number_all_that_an_object_holds() {
    let mut plan = plan(ObjectOp::Put);
    plan.dataset.integer_dkeys = true;
    let keys: BTreeSet<_> =
        all_of(&plan, 0).iter().map(|op| (op.object.lo, op.dkey.as_bytes().to_vec())).collect();
    assert_eq!(keys.len(), 24);
    plan.mix[0].operation = ObjectOp::Write;
    (plan.dataset.stride_bytes, plan.dataset.offset_bytes) = (128, 7);
    let offsets: Vec<_> = all_of(&plan, 0).iter().step_by(2).map(|op| op.offset_bytes).collect();
    assert_eq!(offsets, (0..12).map(|n| n * 128 + 7).collect::<Vec<_>>());
}

#[test]
fn ids_carry_type_and_class() {
    let mut plan = plan(ObjectOp::Update);
    plan.class = "EC_4P2G1".parse().expect("a class");
    (plan.object_type, plan.dataset.first_id) = (ObjectType::DkeyUint64, 100);
    let object = all_of(&plan, 0)[1].object;
    assert_eq!((object.class(), object.type_number(), object.lo), (Some(plan.class), 2, 101));
    assert_ne!(plan.class, ObjectClass::S1);
}

#[test]
fn a_subset_has_the_numbers_of_the_whole() {
    let mut whole = plan(ObjectOp::Put);
    (whole.dataset.dkeys, whole.dataset.objects) = (50, 4);
    let mut part = whole.clone();
    (part.dataset.objects, part.dataset.dkeys) = (2, 5);
    (part.dataset.first, part.dataset.whole) = ([1, 20, 0, 1], Some([4, 50, 2, 2]));
    part.dataset.records = 1;
    let stored: BTreeSet<_> = all_of(&whole, 0).iter().map(|op| (place(op), op.record)).collect();
    let subset: Vec<_> = all_of(&part, 0).iter().map(|op| (place(op), op.record)).collect();
    assert_eq!(subset.len(), 20);
    assert!(subset.iter().all(|one| stored.contains(one)));
}

#[test]
fn workers_share_records_or_have_their_own() {
    let mut plan = plan(ObjectOp::Put);
    plan.load.threads = 5;
    let union = |plan: &ObjectPlan| -> (usize, BTreeSet<_>) {
        let all: Vec<_> = (0..5).flat_map(|worker| all_of(plan, worker)).collect();
        (all.len(), all.iter().map(|op| (place(op), op.record)).collect())
    };
    let (count, places) = union(&plan);
    assert_eq!((count, places.len(), operations_of(&plan)), (24, 24, Some(24)));
    plan.share = Share::Whole;
    assert_eq!((union(&plan).0, union(&plan).1.len(), operations_of(&plan)), (120, 24, Some(120)));
    plan.object_scope = Scope::Private;
    let (count, places) = union(&plan);
    assert_eq!((count, places.len()), (120, 120));
    // In containers of their own objects may have the same ids; what they hold differs.
    (plan.object_scope, plan.containers) = (Scope::Shared, Scope::Private);
    let (count, places) = union(&plan);
    let objects: BTreeSet<_> = places.iter().map(|(place, _)| place.0.clone()).collect();
    assert_eq!((count, places.len(), objects.len()), (120, 120, 2));
}

#[test]
fn fewer_records_than_threads_are_refused() {
    let mut plan = plan(ObjectOp::Put);
    plan.load.threads = 25;
    let error = check_plan(&plan).expect_err("too few");
    assert!(error.exit_code() == 2 && error.to_string().contains("records=24, threads=25"), "{error}");
    plan.mix[0].operation = ObjectOp::OpenContainer;
    check_plan(&plan).expect("everyone opens it");
    assert_eq!(operations_of(&plan), Some(25));
}

#[test]
fn a_phase_visits_what_it_is_about_once() {
    let count = |operation, change: fn(&mut ObjectPlan)| {
        let mut plan = plan(operation);
        change(&mut plan);
        let all = all_of(&plan, 0);
        (all.len(), all.iter().map(place).collect::<BTreeSet<_>>().len())
    };
    assert_eq!(count(ObjectOp::Query, |_| ()), (2, 2));
    assert_eq!(count(ObjectOp::Aggregate, |_| ()), (1, 1));
    assert_eq!(count(ObjectOp::Punch, |plan| plan.punch = PunchScope::Object), (2, 2));
    assert_eq!(count(ObjectOp::Punch, |plan| plan.punch = PunchScope::Dkey), (6, 6));
    assert_eq!(count(ObjectOp::Punch, |plan| plan.punch = PunchScope::Akey), (12, 12));
    // 12 keys in lists of 5: three lists of each object.
    assert_eq!(count(ObjectOp::List, |plan| plan.list_max = 5), (6, 2));
}

#[test]
fn a_mix_draws_and_a_sequence_stays_with_its_record() {
    let mut plan = plan(ObjectOp::Put);
    plan.mix = vec![
        OpShare { operation: ObjectOp::Get, percent: 75 },
        OpShare { operation: ObjectOp::Put, percent: 25 },
    ];
    let gets = all_of(&plan, 0).iter().filter(|op| op.operation == ObjectOp::Get).count();
    assert_eq!(gets, 18);
    plan.sequence = vec![ObjectOp::Put, ObjectOp::Get, ObjectOp::Remove];
    plan.load.depth = 2;
    let mut source = source_of(&plan, 0);
    let steps: Vec<_> = [0, 1, 0, 1, 1, 0, 0]
        .map(|slot| source.next(slot).expect("more"))
        .iter()
        .map(|op| (op.operation, op.record))
        .collect();
    use ObjectOp::{Get, Put, Remove};
    assert_eq!(steps, [(Put, 0), (Put, 1), (Get, 0), (Get, 1), (Remove, 1), (Remove, 0), (Put, 2)]);
    assert_eq!(operations_of(&plan), Some(72));
}

#[test]
fn sizes_follow_from_the_record() {
    let mut plan = plan(ObjectOp::Put);
    (plan.dataset.value_size, plan.dataset.value_size_bytes_max) = ("1-100/1".to_owned(), 100);
    plan.dataset.dkeys = 200;
    let sizes = |plan: &ObjectPlan| -> Vec<_> {
        let mut all: Vec<_> = all_of(plan, 0).iter().map(|op| (op.record, op.value_bytes)).collect();
        all.sort_unstable();
        all
    };
    let put = sizes(&plan);
    (plan.pattern, plan.load.seed) = (Pattern::Permutation, 99);
    plan.mix[0].operation = ObjectOp::Get;
    assert_eq!(put, sizes(&plan));
    let distinct: BTreeSet<_> = put.iter().map(|(_, bytes)| *bytes).collect();
    assert!(distinct.len() > 90, "{}", distinct.len());
}

/// Puts the bytes of one operation's buffer into that of another.
fn carry(
    from: &ObjectSource,
    stored: &ObjectOperation,
    to: &ObjectSource,
    loaded: &ObjectOperation,
    bytes: usize,
) {
    // SAFETY: no driver is there; the references end here.
    let value = unsafe { from.arena.slot_mut(stored.slot, bytes) }.to_vec();
    // SAFETY: as above.
    unsafe { to.arena.slot_mut(loaded.slot, bytes) }.copy_from_slice(&value);
}

#[test]
fn what_one_source_stored_another_checks() {
    let mut plan = plan(ObjectOp::Put);
    plan.verify = true;
    let mut writer = source_of(&plan, 0);
    plan.mix[0].operation = ObjectOp::Get;
    plan.load.seed = 6;
    let mut reader = source_of(&plan, 0);
    assert!(writer.prepares() && reader.checks() && !reader.prepares());
    let stored: Vec<_> = (0..2).map(|_| writer.next(0).expect("a put")).collect();
    let loaded = reader.next(0).expect("a get");
    writer.prepare(&stored[0]);
    carry(&writer, &stored[0], &reader, &loaded, 100);
    assert_eq!(reader.check(&loaded, 100), Ok(()));
    writer.prepare(&stored[1]);
    carry(&writer, &stored[1], &reader, &loaded, 100);
    let fault = reader.check(&loaded, 100).expect_err("another record");
    let object = loaded.object;
    let detail = format!("object {object} key blade-0, from byte 0: misplaced: belongs to record 1, block 0");
    assert_eq!((fault.cause, fault.detail), ("misplaced", detail));
    assert_eq!(reader.check(&loaded, 99).expect_err("cut").cause, "short");
}

#[test]
fn a_lost_update_is_stale() {
    let mut plan = plan(ObjectOp::Put);
    (plan.verify, plan.sequence) = (true, vec![ObjectOp::Put, ObjectOp::Put, ObjectOp::Get]);
    let (mut source, mut kept) = (source_of(&plan, 0), vec![0; 100]);
    let first = source.next(0).expect("a put");
    source.prepare(&first);
    // SAFETY: no driver is there; the reference ends here.
    kept.copy_from_slice(unsafe { source.arena.slot_mut(0, 100) });
    let second = source.next(0).expect("a put");
    source.prepare(&second);
    let read = source.next(0).expect("a get");
    assert_eq!(source.check(&read, 100), Ok(()));
    // SAFETY: as above.
    unsafe { source.arena.slot_mut(0, 100) }.copy_from_slice(&kept);
    assert_eq!(source.check(&read, 100).expect_err("the first again").cause, "stale");
}

#[test]
fn short_reads_ask_for_more_and_check_what_was_stored() {
    let mut plan = plan(ObjectOp::Read);
    (plan.verify, plan.short_read_bytes) = (true, Some(5000));
    let mut source = source_of(&plan, 0);
    let read = source.next(0).expect("a read");
    assert!(read.is_short_good && read.value_bytes == 5000);
    // SAFETY: no driver is there; the reference ends here.
    let buffer = unsafe { source.arena.slot_mut(0, 5000) };
    Payload::new(RUN, false).fill(&mut buffer[..100], read.record, 1);
    assert_eq!(source.check(&read, 100), Ok(()));
    assert_eq!(source.check(&read, 40).expect_err("cut").cause, "short");
}

#[test]
fn refills_follow_the_plan() {
    let buffer_after = |refill, times| {
        let mut plan = plan(ObjectOp::Put);
        plan.content.refill = refill;
        let mut source = source_of(&plan, 0);
        let operation = source.next(0).expect("a put");
        for _ in 0..times {
            if source.prepares() {
                source.prepare(&operation);
            }
        }
        // SAFETY: no driver is there; the reference ends here.
        unsafe { source.arena.slot_mut(0, 100) }.to_vec()
    };
    assert_eq!(buffer_after(Refill::Once, 0), buffer_after(Refill::Once, 3));
    let (one, two) = (buffer_after(Refill::Stamp, 1), buffer_after(Refill::Stamp, 2));
    assert!(one[..16] != two[..16] && one[16..] == two[16..]);
    let (one, two) = (buffer_after(Refill::Full, 1), buffer_after(Refill::Full, 2));
    assert!(one[..16] != two[..16] && one[16..] != two[16..]);
}

#[test]
fn writes_before_a_phase_that_wrote_all_are_older_versions() {
    let named = |operation: ObjectOp, seed: u64| {
        let mut made = plan(operation);
        made.load.seed = seed;
        made
    };
    let (first, second, reading) =
        (named(ObjectOp::Put, 1), named(ObjectOp::Put, 2), named(ObjectOp::Get, 3));
    assert_eq!(replaced_series(&[&first], &reading, RUN), [0; 0], "nothing came after it");
    let replaced = replaced_series(&[&first, &second], &reading, RUN);
    assert_eq!(replaced, [series(&first, 0, RUN)]);
    // Some of the values, or those of another container, replace nothing.
    let uniform = ObjectPlan { pattern: Pattern::Uniform, ..second.clone() };
    assert_eq!(replaced_series(&[&first, &uniform], &reading, RUN), [0; 0]);
    let other = ObjectPlan { container: "other".to_owned(), ..second.clone() };
    assert_eq!(replaced_series(&[&first, &other], &reading, RUN), [0; 0]);
    // Fewer workers, each with objects of its own, leave those of the others as they were.
    let private = |plan: &ObjectPlan, threads| {
        let mut plan = ObjectPlan { object_scope: Scope::Private, ..plan.clone() };
        plan.load.threads = threads;
        plan
    };
    let [one, few, all] = [private(&first, 3), private(&second, 1), private(&reading, 3)];
    assert_eq!(replaced_series(&[&one, &few], &all, RUN), [0; 0]);
    assert_eq!(replaced_series(&[&one, &private(&second, 3)], &all, RUN).len(), 3);
    // What the first phase wrote is found to be older.
    let mut payload = Payload::new(RUN, false).without(replaced);
    let mut value = vec![0; 100];
    for (plan, expected) in [(&first, Some("stale")), (&second, None)] {
        payload.fill(&mut value, 5, series(plan, 0, RUN) + 1);
        let found = payload.check(&value, 5, 100, None);
        assert_eq!(found.err().map(|fault| fault.cause), expected);
    }
}

/// A plan as each of so many hosts has it.
fn of_hosts(plan: &ObjectPlan, hosts: u32) -> Vec<ObjectPlan> {
    let place = |rank| HostPlace { rank, hosts, ..HostPlace::default() };
    (0..hosts)
        .map(|rank| {
            let mut plan = plan.clone();
            plan.load.place = Some(place(rank));
            plan
        })
        .collect()
}

/// Operation, place and record.
type Seen = (String, (String, String, String, u64), u64);

/// Operations of all workers of a host, each worker's by itself.
fn by_worker(plan: &ObjectPlan) -> Vec<Vec<Seen>> {
    let worker = |worker| {
        let all = all_of(plan, plan.part_of(worker));
        all.iter().map(|op| (op.operation.name().to_owned(), place(op), op.record)).collect()
    };
    (0..plan.load.threads).map(worker).collect()
}

#[test]
fn a_phase_that_reads_may_read_what_the_next_worker_has_stored() {
    let mut put = plan(ObjectOp::Put);
    put.load.threads = 4;
    let mut get = ObjectPlan { rank_shift: 1, ..plan(ObjectOp::Get) };
    get.load.threads = 4;
    get.load.limit = LimitPlan::default();
    let places = |plan: &ObjectPlan| -> Vec<BTreeSet<_>> {
        by_worker(plan).into_iter().map(|all| all.into_iter().map(|(_, place, _)| place).collect()).collect()
    };
    let (stored, read) = (places(&put), places(&get));
    for worker in 0..4 {
        assert_eq!(read[worker], stored[(worker + 1) % 4]);
    }
    // Two hosts of two workers each: the second worker of the first host reads what the second host has stored.
    get.load.threads = 2;
    let hosts = of_hosts(&get, 2);
    assert_eq!(places(&hosts[0])[1], stored[2]);
    assert_eq!(places(&hosts[1])[1], stored[0]);
    put.rank_shift = 1;
    assert_eq!(places(&put), stored, "what is stored is each worker's own");
}

#[test]
fn hosts_with_stores_of_their_own_store_all_of_it_each() {
    let mut plan = plan(ObjectOp::Put);
    plan.load.threads = 2;
    let alone = by_worker(&plan);
    plan.load.place =
        Some(HostPlace { rank: 1, hosts: 3, targets: HostTargets::Own, ..HostPlace::default() });
    assert_eq!(by_worker(&plan), alone);
    assert!(!plan.is_guest());
}

#[test]
fn a_fill_of_fewer_records_than_workers_stores_each_once() {
    let mut fill = plan(ObjectOp::Put);
    (fill.dataset.objects, fill.dataset.dkeys, fill.dataset.akeys, fill.dataset.records) = (1, 3, 1, 1);
    (fill.is_fill, fill.load.threads) = (true, 2);
    let all: Vec<_> = of_hosts(&fill, 4).iter().flat_map(by_worker).flatten().collect();
    let places: BTreeSet<_> = all.iter().map(|(_, place, _)| place.clone()).collect();
    assert_eq!((all.len(), places.len()), (3, 3));
    let counts: Vec<_> = of_hosts(&fill, 4).iter().map(operations_of).collect();
    assert_eq!(counts.into_iter().map(|count| count.expect("known")).sum::<u64>(), 3);
}

#[test]
fn the_first_host_claims_for_all() {
    let mut plan = plan(ObjectOp::Put);
    (plan.object_scope, plan.load.threads) = (Scope::Private, 2);
    let hosts = of_hosts(&plan, 3);
    let ids = crate::containers::changed_ids(&hosts[0]).expect("it stores");
    assert_eq!(ids.count(), 6 * plan.dataset.objects);
    assert_eq!(hosts.iter().map(ObjectPlan::is_guest).collect::<Vec<_>>(), [false, true, true]);
    plan.containers = Scope::Private;
    let hosts = of_hosts(&plan, 3);
    assert!(hosts.iter().all(|plan| !plan.is_guest()), "containers of its workers are each host's own");
    assert_eq!(hosts[2].container_parts().collect::<Vec<_>>(), [4, 5]);
}

proptest! {
    /// So many hosts do what one does with as many workers: each worker the same operations, nothing twice, nothing left out.
    #[test]
    fn hosts_do_what_as_many_threads_do(
        counts in (1u64..5, 1u64..9, 1u64..3, 1u64..4),
        (hosts, threads) in (1u32..5, 1u32..4),
        scopes in (any::<bool>(), any::<bool>(), any::<bool>()),
        (pattern, which, shift) in (0usize..3, 0usize..4, 0u32..5),
    ) {
        let operation = [ObjectOp::Put, ObjectOp::Update, ObjectOp::Get, ObjectOp::Destroy][which];
        let mut local = plan(operation);
        (local.dataset.objects, local.dataset.dkeys, local.dataset.akeys, local.dataset.records) = counts;
        local.dataset.value = ValueKind::Array;
        local.pattern = [Pattern::Sequential, Pattern::Permutation, Pattern::Backward][pattern].clone();
        (local.rank_shift, local.load.limit) = (shift, LimitPlan::default());
        let (private_objects, private_containers, whole) = scopes;
        if private_objects { local.object_scope = Scope::Private }
        if private_containers { local.containers = Scope::Private }
        if whole { local.share = Share::Whole }
        local.load.threads = hosts * threads;
        prop_assume!(check_plan(&local).is_ok());
        let alone = by_worker(&local);
        local.load.threads = threads;
        let together: Vec<_> = of_hosts(&local, hosts).iter().flat_map(by_worker).collect();
        prop_assert_eq!(&alone, &together);
        if !whole && !is_private(&local) && operation != ObjectOp::Destroy {
            let all: Vec<_> = together.iter().flatten().collect();
            let places: BTreeSet<_> = all.iter().map(|(_, place, record)| (place.clone(), *record)).collect();
            prop_assert_eq!((all.len(), all.len() as u64), (places.len(), counts.0 * counts.1 * counts.2 * counts.3));
        }
    }
}
