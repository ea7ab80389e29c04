//! The driver of one worker: a slot for each operation in flight, with all that libdaos reads and writes until its event comes back.
#![allow(unsafe_code)]

mod slot;

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use driver::polled::{self, InFlight, Polled};
use driver::{Arena, Completions, Driver, Error, Findings, Submitted, Wait};

use crate::plan::{ObjectOp, ObjectPlan};

use slot::Slot;
use vos::model::ObjectId;

use crate::daos::abi::{Event, Handle, OBJECT_READ_WRITE, Oid, TX_NONE};
use crate::daos::errors::{errno, failed, words};
use crate::daos::library::Api;
use crate::daos::session::Container;
use crate::{ObjectOperation, OpenRequest};

/// Events taken from the queue at once.
const EVENTS: usize = 64;
/// Objects that stay open.
const OPEN_MAX: u64 = 65_536;
/// How long a worker that goes waits for what is in flight: who ends it has waited already.
const FAREWELL: Duration = Duration::from_secs(1);
/// `DAOS_OT_KV_HASHED`.
const KEY_VALUE: u8 = 8;
/// `DAOS_OT_ARRAY`: its attributes are kept with it.
const ARRAY: u8 = 11;
/// `DAOS_OT_ARRAY_ATTR`.
const ARRAY_WITHOUT_ATTRIBUTES: u8 = 12;
/// `DAOS_OT_ARRAY_BYTE`.
const BYTE_ARRAY: u8 = 13;

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
    /// Upper half of object ids.
    upper: u64,
    /// As of when is read: a transaction of a snapshot, or none.
    as_of: Handle,
    /// None after they were leaked because the library still has them.
    slots: Option<Box<[Slot]>>,
    open: HashMap<(ObjectId, Face), Handle>,
    open_max: usize,
    /// The library has those that have not ended.
    in_flight: InFlight,
    failures: Findings<(ObjectOperation, c_int)>,
}

// SAFETY: handles may be used by any thread; slots are boxed and do not move.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(container: Arc<Container>, request: &OpenRequest) -> Result<Self, Error> {
        let (api, plan) = (container.pool.api, request.plan.clone());
        check(&plan)?;
        let upper = super::ids::upper(&container, &plan)?;
        let as_of = plan.snapshot.map_or(Ok(TX_NONE), |epoch| open_snapshot(&container, epoch))?;
        let mut queue = Handle::default();
        // SAFETY: a place for the handle.
        let code = unsafe { (api.daos_eq_create)(&raw mut queue) };
        if code != 0 {
            return Err(failed("cannot create an event queue", code));
        }
        let depth = plan.load.depth;
        let mut slots: Box<[Slot]> = (0..depth).map(|_| Slot::new(plan.list_max)).collect();
        for slot in &mut slots {
            // SAFETY: events lie in a box that stays where it is until they have ended.
            let code = unsafe { (api.daos_event_init)(&raw mut slot.event, queue, std::ptr::null_mut()) };
            if code != 0 {
                return Err(failed("cannot create an event", code));
            }
        }
        let open_max = plan.dataset.objects.min(OPEN_MAX) as usize;
        Ok(Self {
            api,
            plan,
            arena: request.arena.clone(),
            queue,
            upper,
            as_of,
            slots: Some(slots),
            open: HashMap::with_capacity(open_max),
            open_max,
            in_flight: InFlight::new(depth, &request.interrupt),
            failures: Findings::new(),
            container,
        })
    }

    fn oid(&self, object: ObjectId) -> Oid {
        Oid { lo: object.lo, hi: self.upper }
    }

    /// An open object, and whether it is to be closed after the operation; none where a server must be asked first: arrays that keep their
    /// attributes open by these alone. Opening with known attributes asks no server.
    fn acquire(&mut self, object: ObjectId, face: Face) -> Result<Option<(Handle, bool)>, c_int> {
        if let Some(handle) = self.open.get(&(object, face)) {
            return Ok(Some((*handle, false)));
        }
        if face == Face::Array && object.type_number() == ARRAY {
            return Ok(None);
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
        Ok(Some((handle, !self.keep(object, face, handle))))
    }

    /// Keeps an object open for later operations: whether it does.
    fn keep(&mut self, object: ObjectId, face: Face, handle: Handle) -> bool {
        let keeps = self.plan.keeps_handles
            && self.open.len() < self.open_max
            && !self.open.contains_key(&(object, face));
        if keeps {
            self.open.insert((object, face), handle);
        }
        keeps
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
        self.in_flight.begin();
        if let Err(code) = self.start(operation) {
            self.finish(operation, code, 0);
        }
    }

    fn finish(&mut self, operation: &ObjectOperation, code: c_int, result: i64) {
        let result = if code < 0 { -i64::from(errno(code)) } else { result };
        if code < 0 && result != -i64::from(libc::ENOENT) {
            self.failures.add(|| (*operation, code));
        }
        self.in_flight.end(operation.slot, result);
    }
}

/// A transaction that reads what a snapshot shows. No server is asked.
fn open_snapshot(container: &Container, epoch: u64) -> Result<Handle, Error> {
    let (open, mut handle) = (container.pool.api.daos_tx_open_snap, Handle::default());
    // SAFETY: a place for the handle; without an event the call ends before it returns.
    let code = unsafe { open(container.handle, epoch, &raw mut handle, std::ptr::null_mut()) };
    if code == 0 {
        Ok(handle)
    } else {
        Err(failed("the snapshot cannot be opened", code).with("epoch", epoch))
    }
}

/// Refuses what libdaos cannot be asked.
fn check(plan: &ObjectPlan) -> Result<(), Error> {
    let is_keyed =
        |operation| matches!(operation, ObjectOp::Put | ObjectOp::Get | ObjectOp::Remove | ObjectOp::Stat);
    if plan.dataset.integer_dkeys && plan.operations().any(is_keyed) {
        return Err(Error::usage("daos", "DAOS requires text keys for key-value objects")
            .remedy("leave out --integer-dkeys, or use update and fetch"));
    }
    let object_type = plan.object_type as u8;
    if object_type == ARRAY && plan.any(|operation| operation == ObjectOp::OpenWithAttr) {
        return Err(Error::usage(
            "daos",
            "DAOS opens arrays that were created with their stored attributes only",
        )
        .remedy("use open, or use open-with-attr in a load without create and open"));
    }
    let is_array = matches!(object_type, ARRAY | ARRAY_WITHOUT_ATTRIBUTES);
    if is_array && plan.short_read_bytes.is_some() {
        return Err(Error::usage("daos", "libdaos reports the end of the data only for arrays of bytes")
            .remedy("leave out --read-size, or use --cell-size 1 without create and open"));
    }
    Ok(())
}

impl Polled for Worker {
    fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    fn poll(&mut self, longest: Duration) -> Result<bool, Error> {
        let timeout_us = longest.as_nanos().div_ceil(1000) as i64;
        let mut events: [*mut Event; EVENTS] = [std::ptr::null_mut(); EVENTS];
        // SAFETY: a place for so many events of our queue.
        let count =
            unsafe { (self.api.daos_eq_poll)(self.queue, 0, timeout_us, EVENTS as u32, events.as_mut_ptr()) };
        if count < 0 {
            return Err(failed("the event queue failed", count));
        }
        let base = self.slots.as_ref().map_or(0, |slots| slots.as_ptr() as usize);
        for event in &events[..count as usize] {
            // An event is the first field of its slot.
            self.land((*event as usize - base) / size_of::<Slot>());
        }
        Ok(count > 0)
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
        let line = |(operation, code): &(ObjectOperation, c_int)| {
            let ObjectOperation { object, dkey, akey, .. } = operation;
            let (name, Oid { hi, lo }) = (operation.operation.name(), self.oid(*object));
            format!("{name} of object {hi}.{lo} dkey {dkey} akey {akey}: {}", words(*code))
        };
        self.failures.iter().map(line).collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let have_all_ended = polled::drain(self, FAREWELL);
        for ((_, face), handle) in std::mem::take(&mut self.open) {
            self.release(handle, face);
        }
        let Some(mut slots) = self.slots.take() else { return };
        if !have_all_ended {
            self.container.pool.calls.note_stuck();
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
            if self.plan.snapshot.is_some() {
                (self.api.daos_tx_close)(self.as_of, std::ptr::null_mut());
            }
        }
    }
}
