//! A plan to be changed.

use object::plan::{DatasetPlan, ObjectOp, ObjectOptions, ObjectPlan, OpShare, PunchScope, Scope, ValueKind};
use vos::{ObjectClass, ObjectType};
use workload::plan::{ContentChoice, ContentPlan, Pattern};
use workload::spec::{Refill, Share};

/// One pass of one worker over 2 x 3 x 2 x 2 single values of 100 bytes.
pub(crate) fn plan(operation: ObjectOp) -> ObjectPlan {
    ObjectPlan {
        name: operation.name().to_owned(),
        engine: "null".to_owned(),
        target: "null:".to_owned(),
        container: "strata".to_owned(),
        containers: Scope::Shared,
        object_scope: Scope::Shared,
        mix: vec![OpShare { operation, percent: 100 }],
        sequence: Vec::new(),
        dataset: dataset(),
        rank_shift: 0,
        pattern: Pattern::Sequential,
        share: Share::Partition,
        class: ObjectClass::S1,
        object_type: ObjectType::MultiHashed,
        cell_size_bytes: 1,
        chunk_size_cells: 1 << 20,
        punch: PunchScope::Record,
        list_max: 16,
        ids_per_call: 8,
        short_read_bytes: None,
        snapshot: None,
        keeps_handles: true,
        memory: gpu::MemoryPlan::Host,
        content: ContentPlan {
            content: ContentChoice::Random,
            compress_percent: 0,
            dedupe_percent: 0,
            dedupe_set_chunks: None,
            dedupe_set_seed: None,
            refill: Refill::Full,
        },
        verify: false,
        options: options(),
        is_fill: false,
        load: testkit::closed_load(1, 1),
    }
}

fn dataset() -> DatasetPlan {
    DatasetPlan {
        objects: 2,
        object_names: Vec::new(),
        dkeys: 3,
        akeys: 2,
        records: 2,
        first: [0; 4],
        whole: None,
        integer_dkeys: false,
        dkey_prefix: "blade-".to_owned(),
        akey_prefix: "akey--".to_owned(),
        constant_akey: true,
        value: ValueKind::Single,
        value_size: "100".to_owned(),
        value_size_bytes_max: 100,
        stride_bytes: 0,
        offset_bytes: 0,
        first_id: 0,
    }
}

/// Options of drivers: a small store, whatever it is.
pub(crate) fn options() -> ObjectOptions {
    ObjectOptions {
        scm_bytes: 64 << 20,
        nvme_bytes: 64 << 20,
        threshold_bytes: 64 << 10,
        targets: 1,
        retries: 3,
        timeout_ns: 20_000_000_000,
        ..ObjectOptions::default()
    }
}
