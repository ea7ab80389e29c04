//! Plans and phases of object stores for tests.
#![allow(missing_docs, reason = "the names say it; nothing but tests uses this")]

use report::record::{Observations, PhaseRecord, StoreActivity, StoreSpace};
use report::sample::{self, DRIVE, Shape};
use vos::{ObjectClass, ObjectType};
use workload::plan::{Pattern, PhasePlan};
use workload::spec::{Operation, Share};

use crate::plan::{DatasetPlan, ObjectOp, ObjectOptions, ObjectPlan, OpShare, PunchScope, Scope, ValueKind};

/// Properties of an object phase that the tests make up.
#[derive(Clone, Copy)]
pub struct ObjectShape {
    pub engine: &'static str,
    pub operation: ObjectOp,
    pub value_bytes: u64,
    pub operations_per_second: f64,
    pub latency_ns: u64,
}

/// 4 KiB gets of an embedded store: 900k/s at 1 us.
pub const KV: ObjectShape = ObjectShape {
    engine: "vos",
    operation: ObjectOp::Get,
    value_bytes: 4096,
    operations_per_second: 900_000.0,
    latency_ns: 1000,
};

/// The plan of this shape: one KV object with 1000 keys.
pub fn object_plan(shape: &ObjectShape) -> ObjectPlan {
    ObjectPlan {
        name: shape.operation.name().to_owned(),
        engine: shape.engine.to_owned(),
        target: format!("{}:/mnt/pmem", shape.engine),
        container: "strata".to_owned(),
        containers: Scope::Shared,
        object_scope: Scope::Shared,
        mix: vec![OpShare { operation: shape.operation, percent: 100 }],
        sequence: vec![],
        dataset: DatasetPlan {
            objects: 1,
            object_names: Vec::new(),
            dkeys: 1000,
            akeys: 1,
            records: 1,
            first: [0; 4],
            whole: None,
            integer_dkeys: false,
            dkey_prefix: "blade-".to_owned(),
            akey_prefix: "akey--".to_owned(),
            constant_akey: false,
            value: ValueKind::Single,
            value_size: units::ByteSize(shape.value_bytes).to_string(),
            value_size_bytes_max: shape.value_bytes,
            stride_bytes: 0,
            offset_bytes: 0,
            first_id: 1,
        },
        rank_shift: 0,
        pattern: Pattern::Sequential,
        share: Share::Partition,
        class: ObjectClass::S1,
        object_type: ObjectType::KvHashed,
        cell_size_bytes: 1,
        chunk_size_cells: 1 << 20,
        punch: PunchScope::Record,
        list_max: 64,
        ids_per_call: 1,
        short_read_bytes: None,
        snapshot: None,
        keeps_handles: true,
        memory: gpu::MemoryPlan::Host,
        content: sample::content(),
        verify: false,
        options: ObjectOptions { targets: 1, ..ObjectOptions::default() },
        is_fill: false,
        load: sample::load(&Shape { threads: 1, depth: 1, ..DRIVE }),
    }
}

/// A phase of this shape, steady, on a store with half of its space used.
pub fn object_phase(shape: &ObjectShape) -> PhaseRecord {
    let shaped = Shape {
        operation: Operation::Read,
        block_bytes: shape.value_bytes,
        threads: 1,
        depth: 1,
        operations_per_second: shape.operations_per_second,
        latency_ns: shape.latency_ns,
        cpu_ns: shape.latency_ns,
        ..DRIVE
    };
    let mut made = sample::phase_of(PhasePlan::new(object_plan(shape)), &shaped);
    let name = shape.operation.name();
    made.samples.classes = vec![name.to_owned()];
    for class in made.samples.workers.iter_mut().flat_map(|worker| &mut worker.classes) {
        class.class = name.to_owned();
    }
    made.summary.classes.iter_mut().for_each(|class| class.class = name.to_owned());
    let space = StoreSpace { scm_bytes: 2 << 30, scm_free_bytes: 1 << 30, ..StoreSpace::default() };
    made.observations = Observations {
        store: Some(StoreActivity {
            targets: 1,
            durable_by: "CPU flush (clwb)".to_owned(),
            before: Some(space),
            after: Some(space),
            acknowledged: None,
        }),
        cached_before_fraction: None,
        unwritten_fraction: None,
        ..made.observations
    };
    made
}
