//! The driver of one worker: a slot for each operation in flight, with all that libdaos reads and writes until its event comes back.
#![allow(unsafe_code)]

mod slot;

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::{Arena, Completions, Driver, Error, Submitted, Wait};
use workload::object::{ObjectOp, ObjectPlan};

use crate::daos::abi::{Event, Handle, OBJECT_READ_WRITE, Oid, TX_NONE};
use crate::daos::errors::{errno, failed, words};
use crate::daos::library::Api;
use crate::daos::session::Container;
use crate::model::ObjectId;
use crate::{ObjectOperation, OpenRequest};
use slot::Slot;

/// Events taken from the queue at once.
const EVENTS: usize = 64;
/// Objects that stay open.
const OPEN_MAX: u64 = 65_536;
/// Longest sleep: an interrupt is looked at after it.
const SLEEP: Duration = Duration::from_millis(50);
/// How long a worker that goes waits for what is in flight.
const FAREWELL: Duration = Duration::from_secs(30);
/// Failures that are told in words.
const FINDINGS_MAX: usize = 16;
/// `DAOS_OT_KV_HASHED`.
const KEY_VALUE: u8 = 8;
/// What of an object id is the user's.
const USER_BITS: u64 = 0xffff_ffff;

/// Which interface an object is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Face {
    KeyValue,
    Array,
    Object,
}

pub(super) struct Worker {
    api: &'static Api,
    container: Arc<Container>,
    plan: Arc<ObjectPlan>,
    arena: Arc<Arena>,
    queue: Handle,
    /// Type and class bits of object ids, as the library makes them.
    class_bits: u64,
    /// None after they were leaked because the library still has them.
    slots: Option<Box<[Slot]>>,
    open: HashMap<(ObjectId, Face), Handle>,
    open_max: usize,
    ready: VecDeque<(u32, i64)>,
    /// Operations taken and not handed back, and those that the library has.
    in_flight: u32,
    pending: u32,
    failures: Vec<(ObjectOperation, c_int)>,
    interrupt: Arc<AtomicBool>,
}

// SAFETY: handles may be used by any thread; slots are boxed and do not move.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(container: Arc<Container>, request: &OpenRequest) -> Result<Self, Error> {
        let (api, plan) = (container.pool.api, request.plan.clone());
        check(&plan)?;
        let class_bits = class_bits(api, &container, &plan)?;
        let mut queue = Handle::default();
        // SAFETY: a place for the handle.
        let code = unsafe { (api.daos_eq_create)(&raw mut queue) };
        if code != 0 {
            return Err(failed("an event queue cannot be made", code));
        }
        let depth = plan.load.depth;
        let mut slots: Box<[Slot]> = (0..depth).map(|_| Slot::new(plan.list_max)).collect();
        for slot in &mut slots {
            // SAFETY: events lie in a box that stays where it is until they have ended.
            let code = unsafe { (api.daos_event_init)(&raw mut slot.event, queue, std::ptr::null_mut()) };
            if code != 0 {
                return Err(failed("an event cannot be made", code));
            }
        }
        let open_max = plan.dataset.objects.min(OPEN_MAX) as usize;
        Ok(Self {
            api,
            plan,
            arena: request.arena.clone(),
            queue,
            class_bits,
            slots: Some(slots),
            open: HashMap::with_capacity(open_max),
            open_max,
            ready: VecDeque::with_capacity(depth as usize),
            in_flight: 0,
            pending: 0,
            failures: Vec::with_capacity(FINDINGS_MAX),
            interrupt: request.interrupt.clone(),
            container,
        })
    }

    fn oid(&self, object: ObjectId) -> Oid {
        Oid { lo: object.lo, hi: self.class_bits | object.hi & USER_BITS }
    }

    /// An open object, and whether it is to be closed after the operation. Opening with known attributes asks no server.
    fn acquire(&mut self, object: ObjectId, face: Face) -> Result<(Handle, bool), c_int> {
        if let Some(handle) = self.open.get(&(object, face)) {
            return Ok((*handle, false));
        }
        let (oid, mut handle) = (self.oid(object), Handle::default());
        let (container, place, wait) = (self.container.handle, &raw mut handle, std::ptr::null_mut());
        let (cell, chunk) = (self.plan.cell_size_bytes, self.plan.chunk_size_cells);
        // SAFETY: a place for the handle; without an event the call ends before it returns.
        let code = unsafe {
            match face {
                Face::KeyValue => (self.api.daos_kv_open)(container, oid, OBJECT_READ_WRITE, place, wait),
                Face::Object => (self.api.daos_obj_open)(container, oid, OBJECT_READ_WRITE, place, wait),
                Face::Array => {
                    let open = self.api.daos_array_open_with_attr;
                    open(container, oid, TX_NONE, OBJECT_READ_WRITE, cell, chunk, place, wait)
                }
            }
        };
        if code != 0 {
            return Err(code);
        }
        let keeps = self.plan.keeps_handles && self.open.len() < self.open_max;
        if keeps {
            self.open.insert((object, face), handle);
        }
        Ok((handle, !keeps))
    }

    fn release(&self, handle: Handle, face: Face) {
        let wait = std::ptr::null_mut();
        // SAFETY: a handle of ours, closed once.
        unsafe {
            match face {
                Face::KeyValue => (self.api.daos_kv_close)(handle, wait),
                Face::Object => (self.api.daos_obj_close)(handle, wait),
                Face::Array => (self.api.daos_array_close)(handle, wait),
            };
        }
    }

    fn begin(&mut self, operation: &ObjectOperation) {
        self.in_flight += 1;
        match self.start(operation) {
            Ok(()) => self.pending += 1,
            Err(code) => self.finish(operation, code, 0),
        }
    }

    fn finish(&mut self, operation: &ObjectOperation, code: c_int, result: i64) {
        let result = if code < 0 { -i64::from(errno(code)) } else { result };
        if code < 0 && result != -i64::from(libc::ENOENT) && self.failures.len() < FINDINGS_MAX {
            self.failures.push((*operation, code));
        }
        self.ready.push_back((operation.slot, result));
    }

    fn hand_over(&mut self, done: &mut Completions) {
        while done.room() > 0
            && let Some((slot, result)) = self.ready.pop_front()
        {
            self.in_flight -= 1;
            done.push(slot, result);
        }
    }

    /// Takes events that have come, waiting for the first `timeout_us` at most.
    fn poll(&mut self, timeout_us: i64) -> Result<bool, Error> {
        let mut events: [*mut Event; EVENTS] = [std::ptr::null_mut(); EVENTS];
        // SAFETY: a place for so many events of our queue.
        let count =
            unsafe { (self.api.daos_eq_poll)(self.queue, 0, timeout_us, EVENTS as u32, events.as_mut_ptr()) };
        if count < 0 {
            return Err(failed("the event queue is broken", count));
        }
        let base = self.slots.as_ref().map_or(0, |slots| slots.as_ptr() as usize);
        for event in &events[..count as usize] {
            // An event is the first field of its slot.
            self.land((*event as usize - base) / size_of::<Slot>());
        }
        Ok(count > 0)
    }
}

/// Refuses what libdaos cannot be asked.
fn check(plan: &ObjectPlan) -> Result<(), Error> {
    let is_keyed =
        |operation| matches!(operation, ObjectOp::Put | ObjectOp::Get | ObjectOp::Remove | ObjectOp::Stat);
    if plan.dataset.integer_dkeys && plan.operations().any(is_keyed) {
        return Err(Error::usage("daos", "keys of key-value objects are text in DAOS")
            .remedy("leave out --integer-dkeys, or use update and fetch"));
    }
    Ok(())
}

/// Type and class bits of object ids: the library's own, which also says whether the pool has room for the class.
fn class_bits(api: &Api, container: &Container, plan: &ObjectPlan) -> Result<u64, Error> {
    let mut oid = Oid::default();
    let (kind, class) = (plan.object_type as c_int, plan.class.id());
    // SAFETY: a place for the id.
    let code = unsafe { (api.daos_obj_generate_oid2)(container.handle, &raw mut oid, kind, class, 0, 0) };
    if code == 0 {
        return Ok(oid.hi & !USER_BITS);
    }
    Err(failed(format!("the pool has no objects of class {}", plan.class), code)
        .remedy("a class takes as many targets as it has copies or cells: try S1"))
}

impl Driver<ObjectOperation> for Worker {
    fn submit(&mut self, batch: &[ObjectOperation], _done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            self.begin(operation);
        }
        Ok(Submitted { accepted: batch.len() })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let (count, deadline) = wait.deadline();
        let enough = done.len() + count;
        let mut timeout_us = 0;
        loop {
            let found = self.pending > 0 && self.poll(timeout_us)?;
            self.hand_over(done);
            if done.len() >= enough || done.room() == 0 || self.in_flight == 0 {
                return Ok(());
            }
            timeout_us = 0;
            if found {
                continue;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) || self.interrupt.load(Ordering::Relaxed) {
                return Ok(());
            }
            timeout_us = left.map_or(SLEEP, |left| left.min(SLEEP)).as_micros().max(1) as i64;
        }
    }

    fn findings(&mut self) -> Vec<String> {
        let line = |(operation, code): &(ObjectOperation, c_int)| {
            let ObjectOperation { object, dkey, akey, .. } = operation;
            let name = operation.operation.name();
            format!("{name} of object {object} dkey {dkey} akey {akey}: {}", words(*code))
        };
        self.failures.iter().map(line).collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let deadline = Instant::now() + FAREWELL;
        while self.pending > 0 && Instant::now() < deadline {
            if self.poll(SLEEP.as_micros() as i64).is_err() {
                break;
            }
        }
        for ((_, face), handle) in std::mem::take(&mut self.open) {
            self.release(handle, face);
        }
        let Some(mut slots) = self.slots.take() else { return };
        if self.pending > 0 {
            // The library may still write to them: they stay, and so do the buffers.
            std::mem::forget((slots, self.arena.clone()));
            return;
        }
        // SAFETY: events of ours that are not in flight, and their queue.
        unsafe {
            for slot in &mut slots {
                (self.api.daos_event_fini)(&raw mut slot.event);
            }
            (self.api.daos_eq_destroy)(self.queue, 0);
        }
    }
}
