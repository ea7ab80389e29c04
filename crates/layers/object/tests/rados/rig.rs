//! One worker on a backend.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Completion, Completions, Driver, PageSize, Wait};
use object::plan::{ObjectOp, ObjectPlan};
use object::{Backend, ObjectOperation, OpenRequest};
use vos::model::{Key, ObjectId};

pub(crate) fn errno(number: i32) -> i64 {
    -i64::from(number)
}

/// An operation in slot 0 on object 0.1, with no keys.
pub(crate) fn operation(operation: ObjectOp, value_bytes: u64) -> ObjectOperation {
    ObjectOperation {
        slot: 0,
        operation,
        is_short_good: false,
        record: 0,
        object: ObjectId { lo: 1, hi: 0 },
        dkey: Key::EMPTY,
        akey: Key::EMPTY,
        offset_bytes: 0,
        value_bytes,
    }
}

pub(crate) struct Rig {
    pub(crate) driver: Box<dyn Driver<ObjectOperation>>,
    arena: Arc<Arena>,
    depth: u32,
}

impl Rig {
    /// Prepares a phase and opens its worker 0.
    pub(crate) fn open(backend: &Arc<dyn Backend>, plan: ObjectPlan) -> Self {
        backend.prepare(&plan).expect("prepared");
        let depth = plan.load.depth;
        let bytes = plan.dataset.value_size_bytes_max.max(1) as usize;
        let arena = Arc::new(Arena::new(depth, bytes, PageSize::Base).expect("memory"));
        let request = OpenRequest {
            worker: 0,
            plan: Arc::new(plan),
            arena: arena.clone(),
            interrupt: Arc::new(AtomicBool::new(false)),
        };
        Self { driver: backend.open(&request).expect("opened").driver, arena, depth }
    }

    pub(crate) fn fill(&mut self, slot: u32, data: &[u8]) {
        // SAFETY: nothing is in flight between runs.
        unsafe { self.arena.slot_mut(slot, data.len()) }.copy_from_slice(data);
    }

    pub(crate) fn bytes(&self, slot: u32, length: usize) -> &[u8] {
        // SAFETY: nothing is in flight between runs.
        unsafe { self.arena.slot_mut(slot, length) }
    }

    /// Runs operations, all in flight at once; completions by slot.
    pub(crate) fn run_all(&mut self, operations: &[ObjectOperation]) -> Vec<Completion> {
        let mut done = Completions::with_depth(self.depth.max(operations.len() as u32));
        let mut begun = 0;
        while done.len() < operations.len() {
            if begun < operations.len() {
                begun += self.driver.submit(&operations[begun..], &mut done).expect("submitted").accepted;
            }
            let before = done.len();
            self.driver
                .reap(Wait::Timeout { count: 1, timeout_ns: 30_000_000_000 }, &mut done)
                .expect("reaped");
            assert!(done.len() > before, "nothing came back in 30 s");
        }
        let mut all = done.as_slice().to_vec();
        all.sort_by_key(|completion| completion.slot);
        all
    }

    pub(crate) fn run(&mut self, operation: ObjectOperation) -> i64 {
        self.run_all(&[operation])[0].result
    }

    pub(crate) fn findings(&mut self) -> Vec<String> {
        self.driver.findings()
    }
}
