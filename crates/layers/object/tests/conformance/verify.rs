//! Loads of the source on drivers, with every value checked.

use std::sync::Arc;

use driver::{Fault, Operation, Source};
use object::plan::ObjectOp::{self, Fetch, Get, Put, Read, Update, Write};
use object::plan::{ObjectPlan, ValueKind};
use object::{Backend, ObjectOperation, ObjectSource};
use vos::ObjectType;
use workload::plan::Pattern;

use super::harness::{Entry, keepers};
use super::rig::{Rig, What, plan_of};

const RUN: u64 = 42;

/// A plan of one operation over 2 x 40 x 1 x 3 records of mixed sizes.
fn plan(entry: &Entry, operation: ObjectOp) -> ObjectPlan {
    let (object_type, value) = match operation {
        Put | Get => (ObjectType::KvHashed, ValueKind::Single),
        Write | Read => (ObjectType::ArrayByte, ValueKind::Array),
        _ => (ObjectType::MultiHashed, ValueKind::Array),
    };
    let mut plan = plan_of(entry, &[operation], object_type, value);
    plan.verify = true;
    (plan.dataset.objects, plan.dataset.dkeys, plan.dataset.akeys, plan.dataset.records) = (2, 40, 1, 3);
    (plan.dataset.value_size, plan.dataset.value_size_bytes_max) = ("1-9000/1".to_owned(), 9000);
    plan
}

/// Runs a phase to its end on a driver of its own; the faults that it found.
fn phase(backend: &Arc<dyn Backend>, plan: &ObjectPlan) -> Vec<Fault> {
    let mut rig = Rig::open(backend, plan);
    let source = ObjectSource::new(plan, 0, rig.arena.clone(), RUN, false).expect("a source");
    let mut source = source.on_device(plan, rig.take_device());
    let mut faults = Vec::new();
    loop {
        let batch: Vec<ObjectOperation> = (0..plan.load.depth).map_while(|slot| source.next(slot)).collect();
        if batch.is_empty() {
            return faults;
        }
        if source.prepares() {
            batch.iter().for_each(|operation| source.prepare(operation));
        }
        for completion in rig.run_all(&batch) {
            let operation = &batch[completion.slot as usize];
            assert!(operation.is_whole(completion.result), "{operation:?}: {}", completion.result);
            faults.extend(source.check(operation, completion.result as u64).err());
        }
    }
}

#[test]
fn what_was_stored_is_read_and_right() {
    const PAIRS: &[(ObjectOp, ObjectOp)] = &[(Put, Get), (Write, Read), (Update, Fetch)];
    for &(store, load) in PAIRS {
        for entry in keepers(&[]).filter(|entry| entry.can(&[store, load])) {
            let Some(stand) = entry.start() else { continue };
            let backend = stand.connect();
            let write = plan(&entry, store);
            assert_eq!(phase(&backend, &write), [], "{}", entry.name);
            let mut read = plan(&entry, load);
            read.pattern = Pattern::Permutation;
            assert_eq!(phase(&backend, &read), [], "{}", entry.name);
        }
    }
}

#[test]
fn wrong_data_is_caught() {
    for entry in keepers(&[Put, Get]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let (write, read) = (plan(&entry, Put), plan(&entry, Get));
        assert_eq!(phase(&backend, &write), [], "{}", entry.name);
        let mut rig = Rig::open(&backend, &write);
        // The value of one record under the key of another, and one with a bit that is wrong.
        let mut source = ObjectSource::new(&write, 0, rig.arena.clone(), RUN, false).expect("a source");
        let all: Vec<_> =
            std::iter::from_fn(|| source.next(0)).filter(|operation| operation.value_bytes > 100).collect();
        let place = |operation: &ObjectOperation| What {
            object: operation.object.lo,
            dkey: operation.dkey,
            akey: operation.akey,
            offset_bytes: 0,
        };
        let size = |operation: &ObjectOperation| operation.value_bytes as usize;
        let (_, value) = rig.load(Get, place(&all[0]), size(&all[0]));
        let mut swapped = value.clone();
        swapped.resize(size(&all[1]), 1);
        assert!(rig.store(Put, place(&all[1]), &swapped) >= 0, "{}", entry.name);
        let mut flipped = value;
        let last = flipped.len() - 1;
        flipped[last] ^= 4;
        assert!(rig.store(Put, place(&all[0]), &flipped) >= 0, "{}", entry.name);
        let faults = phase(&backend, &read);
        let mut causes: Vec<_> = faults.iter().map(|fault| fault.cause).collect();
        causes.sort_unstable();
        assert_eq!(causes, ["corrupt", "misplaced"], "{}: {faults:?}", entry.name);
        assert!(faults.iter().all(|fault| fault.detail.contains("key blade-")), "{faults:?}");
    }
}
