//! The driver of one worker: operations as steps of one or more requests, and what becomes of them.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use ceph::Handle;
use driver::polled::{self, InFlight, Polled};
use driver::{Arena, Completions, Driver, Error, Findings, Submitted, Wait};

use crate::plan::{ObjectOp, ObjectPlan};

use vos::model::ObjectId;

use crate::rados::cluster::{List, Pool};
use crate::rados::layout::pieces;
use crate::rados::parts::Parts;
use crate::{ObjectOperation, OpenRequest};

/// Requests of one operation in flight.
const WINDOW: u32 = 16;
/// Arrays whose largest recorded chunk a worker remembers.
const REMEMBERED: usize = 1024;

/// Step of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// One request does it all.
    Single,
    /// Chunks of an array are written or read.
    Pieces,
    /// The largest chunk of an array is recorded.
    Recording,
    /// The largest chunk is asked for: by `size`, or to destroy the array.
    Asking,
    /// The size of the largest chunk is asked for.
    Sizing,
    /// Objects are removed.
    Removing,
}

/// An operation in flight.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub(super) operation: ObjectOperation,
    pub(super) step: Step,
    /// Next request of this step, and how many there are.
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) flying: u32,
    /// Bytes or objects found; the largest chunk.
    pub(super) found: u64,
    /// First error.
    pub(super) error: i32,
}

/// Which request a part is.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) slot: u32,
    pub(super) number: u64,
    /// To be released with it: an operation of the library, a namespace handle.
    pub(super) write_operation: Handle,
    pub(super) read_operation: Handle,
    pub(super) namespace: Handle,
}

pub(super) struct Worker {
    pub(super) pool: Pool,
    /// Pool and container, to be opened again.
    pub(super) names: (CString, CString),
    /// Names that objects have of their own, by number; none where names follow from ids.
    pub(super) own_names: Box<[CString]>,
    pub(super) plan: Arc<ObjectPlan>,
    pub(super) arena: Arc<Arena>,
    /// Handed to the cluster when the worker goes.
    pub(super) parts: Option<Parts>,
    pub(super) sent: Box<[Sent]>,
    flows: Box<[Option<Flow>]>,
    lists: Box<[Option<List>]>,
    /// Largest recorded chunk of arrays, by a hash of their ids. What another worker destroys meanwhile is not noticed.
    recorded: Box<[Option<(ObjectId, u64)>]>,
    /// Requests that one operation may have in flight.
    window: u32,
    in_flight: InFlight,
    failures: Findings<(ObjectOperation, i32)>,
}

// SAFETY: handles of the library may be used by any thread, one at a time.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(pool: Pool, names: (CString, CString), request: &OpenRequest) -> Result<Self, Error> {
        let plan = request.plan.clone();
        let depth = plan.load.depth;
        let chunk_bytes = plan.cell_size_bytes.saturating_mul(plan.chunk_size_cells).max(1);
        let asked = plan.short_read_bytes.unwrap_or(0).max(plan.dataset.value_size_bytes_max);
        let needs = |operation| {
            matches!(operation, ObjectOp::Write | ObjectOp::Read | ObjectOp::Destroy | ObjectOp::Punch)
        };
        let window = match plan.operations().any(needs) {
            true => pieces(chunk_bytes - 1, asked.max(1), chunk_bytes).clamp(2, u64::from(WINDOW)) as u32,
            false => 1,
        };
        let count = depth * window;
        let none = std::ptr::null_mut();
        let sent = Sent { slot: 0, number: 0, write_operation: none, read_operation: none, namespace: none };
        Ok(Self {
            parts: Some(Parts::new(pool.api, count)),
            pool,
            names,
            own_names: super::named::as_library_takes(&plan)?,
            plan,
            arena: request.arena.clone(),
            sent: vec![sent; count as usize].into(),
            flows: vec![None; depth as usize].into(),
            lists: (0..depth).map(|_| None).collect(),
            recorded: vec![None; REMEMBERED].into(),
            window,
            in_flight: InFlight::new(depth, &request.interrupt),
            failures: Findings::new(),
        })
    }

    pub(super) fn parts(&mut self) -> &mut Parts {
        self.parts.as_mut().expect("taken only when the worker goes")
    }

    pub(super) fn chunk_bytes(&self) -> u64 {
        self.plan.cell_size_bytes.saturating_mul(self.plan.chunk_size_cells).max(1)
    }

    fn begin(&mut self, operation: &ObjectOperation) {
        self.in_flight.begin();
        let (step, end) = match operation.operation {
            ObjectOp::OpenWithAttr => return self.finish(operation, 0),
            ObjectOp::List => {
                let result = self.list(operation);
                return self.finish(operation, result);
            }
            ObjectOp::Write | ObjectOp::Read => {
                let end = pieces(operation.offset_bytes, operation.value_bytes, self.chunk_bytes());
                (Step::Pieces, end)
            }
            ObjectOp::Size | ObjectOp::Destroy => (Step::Asking, 1),
            ObjectOp::Punch if self.punches_by_list(operation) => {
                let result = self.punch_object(operation.object);
                return self.finish(operation, result);
            }
            ObjectOp::Punch => self.punch_step(),
            ObjectOp::Query
            | ObjectOp::AllocateIds
            | ObjectOp::Iterate
            | ObjectOp::Aggregate
            | ObjectOp::Discard
            | ObjectOp::Collect => return self.finish(operation, -i64::from(libc::EOPNOTSUPP)),
            _ => (Step::Single, 1),
        };
        if end == 0 {
            return self.finish(operation, 0);
        }
        let flow = Flow { operation: *operation, step, next: 0, end, flying: 0, found: 0, error: 0 };
        self.go_on(operation.slot, flow);
    }

    /// Sends what an operation may send now, and keeps it.
    fn go_on(&mut self, slot: u32, mut flow: Flow) {
        while flow.next < flow.end && flow.flying < self.window && flow.error == 0 {
            // There is a window for each slot.
            let Some(part) = self.parts().take() else { break };
            let number = flow.next;
            flow.next += 1;
            match self.issue(part, slot, number, &flow) {
                Ok(()) => flow.flying += 1,
                Err(code) => {
                    self.parts().give(part);
                    self.account(&mut flow, number, code, None);
                }
            }
        }
        if flow.flying == 0 && (flow.next == flow.end || flow.error != 0) {
            self.step_done(slot, flow);
        } else {
            self.flows[slot as usize] = Some(flow);
        }
    }

    /// A request has completed.
    fn land(&mut self, part: u32) {
        let Sent { slot, number, .. } = self.sent[part as usize];
        let code = self.parts().result(part);
        let code = self.release(part, code);
        if let Some(mut flow) = self.flows[slot as usize].take() {
            flow.flying -= 1;
            self.account(&mut flow, number, code, Some(part));
            self.parts().give(part);
            self.go_on(slot, flow);
        }
    }

    /// Takes the results of all requests of a step together.
    fn step_done(&mut self, slot: u32, flow: Flow) {
        let operation = flow.operation;
        if flow.error != 0 {
            return self.finish(&operation, i64::from(flow.error));
        }
        let next = |step, end| Flow { step, next: 0, end, flying: 0, ..flow };
        match (flow.step, operation.operation) {
            (Step::Pieces, ObjectOp::Write) => {
                let chunk = (operation.offset_bytes + operation.value_bytes - 1) / self.chunk_bytes();
                if chunk == 0 || self.is_recorded(operation.object, chunk) {
                    self.finish(&operation, operation.value_bytes as i64);
                } else {
                    self.go_on(slot, Flow { found: chunk, ..next(Step::Recording, 1) });
                }
            }
            (Step::Recording, _) => {
                self.recorded[place(operation.object)] = Some((operation.object, flow.found));
                self.finish(&operation, operation.value_bytes as i64);
            }
            (Step::Asking, ObjectOp::Size) => self.go_on(slot, next(Step::Sizing, 1)),
            // Chunks up to the largest, then the attributes.
            (Step::Asking, _) => {
                self.recorded[place(operation.object)] = None;
                self.go_on(slot, Flow { found: 0, ..next(Step::Removing, flow.found + 2) });
            }
            (Step::Removing, ObjectOp::Destroy) if flow.found == 0 => {
                self.finish(&operation, -i64::from(libc::ENOENT));
            }
            (Step::Removing, _) => self.finish(&operation, 0),
            _ => self.finish(&operation, flow.found as i64),
        }
    }

    fn is_recorded(&self, object: ObjectId, chunk: u64) -> bool {
        self.recorded[place(object)].is_some_and(|(id, largest)| id == object && largest >= chunk)
    }

    fn finish(&mut self, operation: &ObjectOperation, result: i64) {
        let is_plain = result >= 0 || result == -i64::from(libc::ENOENT);
        if !is_plain {
            self.failures.add(|| (*operation, -result as i32));
        }
        self.in_flight.end(operation.slot, result);
    }

    /// Lists keys of an object, from where the last list of the slot ended; anew after the end. Waits for the cluster.
    fn list(&mut self, operation: &ObjectOperation) -> i64 {
        let prefix = crate::rados::layout::Name::prefix(operation.object);
        let list = &mut self.lists[operation.slot as usize];
        let opened = match list.take() {
            Some(opened) => Ok(opened),
            None => List::open(&self.pool),
        };
        let found = opened.and_then(|mut opened| {
            let found = opened.pass(&prefix, self.plan.list_max)?;
            if found == self.plan.list_max {
                *list = Some(opened);
            }
            Ok(found)
        });
        found.map_or_else(i64::from, i64::from)
    }
}

/// Where the largest chunk of an array is remembered.
fn place(object: ObjectId) -> usize {
    let mixed = (object.lo ^ object.hi.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % REMEMBERED
}

impl Polled for Worker {
    fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    fn poll(&mut self, longest: Duration) -> Result<bool, Error> {
        let mut landed = self.parts().completed(longest);
        let is_any = landed.is_some();
        while let Some(part) = landed {
            landed = self.parts().next(part);
            self.land(part);
        }
        Ok(is_any)
    }
}

impl Driver<ObjectOperation> for Worker {
    fn submit(&mut self, batch: &[ObjectOperation], _done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            self.begin(operation);
        }
        Ok(Submitted { accepted: batch.len() })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        polled::reap(self, wait, done)
    }

    fn findings(&mut self) -> Vec<String> {
        let line = |(operation, errno): &(ObjectOperation, i32)| {
            let cause = std::io::Error::from_raw_os_error(*errno);
            let ObjectOperation { object, dkey, akey, .. } = operation;
            format!("{} of object {object} dkey {dkey} akey {akey}: {cause}", operation.operation.name())
        };
        self.failures.iter().map(line).collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Requests end by themselves after the connection's timeout.
        polled::drain(self, Duration::from_secs(self.pool.cluster.timeout_s() + 5));
        self.lists.iter_mut().for_each(|list| *list = None);
        if let Some(parts) = self.parts.take() {
            self.pool.cluster.retire(parts, self.arena.clone());
        }
    }
}
