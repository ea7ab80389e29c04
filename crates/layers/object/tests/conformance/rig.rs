//! A driver that was opened, with its buffers.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Completion, Completions, Driver, Error, PageSize, Wait};
use gpu::WorkerNotes;
use layer::memory::{Attached, OnDevice, WorkerMemory, WorkerNeeds};
use object::plan::{ObjectOp, ObjectPlan, ValueKind};
use object::{Backend, ObjectOperation, OpenRequest};
use vos::ObjectType;
use vos::model::{Key, ObjectId};

use super::harness::Entry;
use super::plan::plan;

/// Room of a buffer: the largest value of the suite.
pub(crate) const ROOM_BYTES: usize = 2 << 20;

/// Subject of an operation.
#[derive(Clone, Copy)]
pub(crate) struct What {
    pub(crate) object: u64,
    pub(crate) dkey: Key,
    pub(crate) akey: Key,
    pub(crate) offset_bytes: u64,
}

/// A named key of an object.
pub(crate) fn key(object: u64, name: &str) -> What {
    What { object, dkey: Key::new(name.as_bytes()).expect("short"), akey: Key::EMPTY, offset_bytes: 0 }
}

/// A dkey and an akey of an object.
pub(crate) fn keys(object: u64, dkey: &str, akey: &str) -> What {
    What { akey: Key::new(akey.as_bytes()).expect("short"), ..key(object, dkey) }
}

/// An integer dkey and an akey of an object.
pub(crate) fn number(object: u64, dkey: u64, akey: &str) -> What {
    What { dkey: Key::integer(dkey), ..keys(object, "", akey) }
}

/// An object, and a byte of it where it is an array.
pub(crate) fn array(object: u64, offset_bytes: u64) -> What {
    What { offset_bytes, ..key(object, "") }
}

impl What {
    pub(crate) fn at(self, offset_bytes: u64) -> Self {
        Self { offset_bytes, ..self }
    }
}

/// A plan for operations of one kind of object.
pub(crate) fn plan_of(
    entry: &Entry,
    operations: &[ObjectOp],
    object_type: ObjectType,
    value: ValueKind,
) -> ObjectPlan {
    let mut plan = plan(operations[0]);
    plan.sequence = operations.to_vec();
    plan.engine = entry.registration.name.to_owned();
    (plan.class, plan.object_type) = (entry.class, object_type);
    plan.memory = entry.memory.clone();
    plan.dataset.value = value;
    plan.dataset.value_size_bytes_max = ROOM_BYTES as u64;
    // Chunks that do not begin where anything else does.
    plan.chunk_size_cells = 10_000;
    let depth = entry.registration.capabilities.depth_max.min(8);
    (plan.load.depth, plan.load.batch, plan.load.batch_max) = (depth, depth, depth);
    plan
}

pub(crate) struct Rig {
    pub(crate) driver: Box<dyn Driver<ObjectOperation>>,
    pub(crate) done: Completions,
    pub(crate) arena: Arc<Arena>,
    pub(crate) plan: Arc<ObjectPlan>,
    /// Buffers on a device.
    device: RefCell<OnDevice>,
}

/// Byte that the host's buffers are full of where data are to come from the device and go there.
const FOREIGN: u8 = 0x5d;

impl Rig {
    /// Opens the driver of worker `worker`.
    pub(crate) fn of_worker(
        backend: &Arc<dyn Backend>,
        plan: &ObjectPlan,
        worker: u32,
    ) -> Result<Self, Error> {
        let depth = plan.load.depth;
        let arena = Arc::new(Arena::new(depth, ROOM_BYTES, PageSize::Base).expect("memory"));
        let plan = Arc::new(plan.clone());
        let request = OpenRequest {
            worker,
            plan: Arc::clone(&plan),
            arena: Arc::clone(&arena),
            interrupt: Arc::new(AtomicBool::new(false)),
        };
        let needs = WorkerNeeds::of(&plan.memory, &plan.load, worker, true);
        let memory = WorkerMemory::take(&needs, &arena, &WorkerNotes::default())?;
        let Attached { driver, device, .. } = memory.attach(&needs, backend.open(&request)?, &arena)?;
        let done = Completions::with_depth(depth);
        Ok(Self { driver, done, arena, plan, device: RefCell::new(device) })
    }

    /// Opens the driver of the first worker; what the plan needs is made.
    pub(crate) fn open(backend: &Arc<dyn Backend>, plan: &ObjectPlan) -> Self {
        let opened = backend.prepare(plan).and_then(|()| Self::of_worker(backend, plan, 0));
        opened.unwrap_or_else(|error| panic!("{}: {error}", plan.engine))
    }

    pub(crate) fn operation(
        &self,
        slot: u32,
        operation: ObjectOp,
        what: What,
        bytes: usize,
    ) -> ObjectOperation {
        ObjectOperation {
            slot,
            operation,
            is_short_good: false,
            record: 0,
            object: ObjectId::new(self.plan.object_type, self.plan.class, what.object),
            dkey: what.dkey,
            akey: what.akey,
            offset_bytes: what.offset_bytes,
            value_bytes: bytes as u64,
        }
    }

    /// Puts `value` into a slot's buffer.
    pub(crate) fn fill(&self, slot: u32, value: &[u8]) {
        // SAFETY: nothing is in flight in this slot, and the reference ends here.
        let buffer = unsafe { self.arena.slot_mut(slot, value.len()) };
        buffer.copy_from_slice(value);
        if let Some(content) = self.device.borrow_mut().content() {
            content.send(slot, value.len());
            buffer.fill(FOREIGN);
        }
    }

    /// Content of a slot's buffer.
    pub(crate) fn buffer(&self, slot: u32, bytes: usize) -> Vec<u8> {
        // SAFETY: as for `fill`.
        let buffer = unsafe { self.arena.slot_mut(slot, bytes) };
        if let Some(content) = self.device.borrow_mut().content() {
            buffer.fill(FOREIGN);
            content.fetch(slot, bytes);
        }
        buffer.to_vec()
    }

    /// The buffers on a device, for a source; the rig reads and fills those of the host from then on.
    pub(crate) fn take_device(&mut self) -> OnDevice {
        self.device.take()
    }

    /// Runs operations to their end, as many at a time as the driver takes.
    pub(crate) fn run_all(&mut self, operations: &[ObjectOperation]) -> Vec<Completion> {
        let (mut offered, mut finished) = (0, Vec::new());
        while finished.len() < operations.len() {
            self.done.clear();
            offered += self.driver.submit(&operations[offered..], &mut self.done).expect("submit").accepted;
            if self.done.is_empty() {
                let wait = Wait::Timeout { count: 1, timeout_ns: 60_000_000_000 };
                self.driver.reap(wait, &mut self.done).expect("reap");
                assert!(!self.done.is_empty(), "nothing completes");
            }
            finished.extend_from_slice(self.done.as_slice());
            assert!(finished.len() <= offered, "more completions than submissions");
        }
        finished
    }

    /// Runs one operation to its end.
    pub(crate) fn run(&mut self, operation: ObjectOp, what: What, bytes: usize) -> i64 {
        let operation = self.operation(0, operation, what, bytes);
        let finished = self.run_all(&[operation]);
        assert_eq!((finished.len(), finished[0].slot), (1, 0));
        finished[0].result
    }

    /// Stores a value.
    pub(crate) fn store(&mut self, operation: ObjectOp, what: What, value: &[u8]) -> i64 {
        self.fill(0, value);
        self.run(operation, what, value.len())
    }

    /// Asks for so many bytes; what came, and what it said.
    pub(crate) fn load(&mut self, operation: ObjectOp, what: What, bytes: usize) -> (i64, Vec<u8>) {
        self.fill(0, &vec![0xee; bytes]);
        let result = self.run(operation, what, bytes);
        let found = usize::try_from(result).unwrap_or(0);
        assert!(found <= bytes, "{found} bytes where {bytes} were asked for");
        (result, self.buffer(0, found))
    }
}

/// Bytes that differ from seed to seed.
pub(crate) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut value = vec![0; length];
    workload::content::Stream::new(seed, 1).fill(&mut value, 0, 0);
    value
}

/// As a completion has it.
pub(crate) fn errno(number: i32) -> i64 {
    -i64::from(number)
}
