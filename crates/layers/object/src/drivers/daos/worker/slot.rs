//! One operation: how it is asked for, and what its event means.
#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::plan::{ObjectOp, PunchScope, ValueKind};

use vos::model::{KEY_BYTES_MAX, Key};

use super::{BYTE_ARRAY, Face, KEY_VALUE, Worker};
use crate::ObjectOperation;
use crate::daos::abi::{
    Anchor, ArrayIod, CONTAINER_READ_WRITE, ContainerInfo, Event, Handle, IOD_ARRAY, IOD_SINGLE, Iod, Iov,
    KeyDescriptor, OBJECT_READ_WRITE, Range, Sgl, TX_NONE,
};
use crate::daos::errors::{INVALID, NONEXISTENT};

/// Room for one listed key, in bytes.
const LISTED_BYTES: usize = 64;

/// Call that an event of a slot belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The array that the operation works on is opened first.
    Opening,
    /// The operation.
    Working,
    /// The handle that it opened is closed.
    Closing,
}

/// All that the library holds addresses of while an operation is in flight.
#[repr(C)]
pub(super) struct Slot {
    /// First: an event's address is its slot's.
    pub(super) event: Event,
    operation: Option<ObjectOperation>,
    /// The object, to be closed after the operation if so.
    handle: Handle,
    face: Face,
    closes: bool,
    /// Opened by the operation itself.
    opened: Handle,
    stage: Stage,
    dkey: Key,
    akey: Key,
    /// The key of a key-value object, ended by a NUL.
    text: [u8; KEY_BYTES_MAX + 1],
    dkey_iov: Iov,
    akey_iov: Iov,
    value: Iov,
    sgl: Sgl,
    iod: Iod,
    range: Range,
    array: ArrayIod,
    size: u64,
    cell: u64,
    chunk: u64,
    first_id: u64,
    count: u32,
    anchor: Anchor,
    info: ContainerInfo,
    descriptors: Box<[KeyDescriptor]>,
    names: Box<[u8]>,
}

impl Slot {
    pub(super) fn new(list_max: u32) -> Self {
        let listed = list_max.max(1) as usize;
        Self {
            event: Event::EMPTY,
            operation: None,
            handle: Handle::default(),
            face: Face::Object,
            closes: false,
            opened: Handle::default(),
            stage: Stage::Working,
            dkey: Key::EMPTY,
            akey: Key::EMPTY,
            text: [0; KEY_BYTES_MAX + 1],
            dkey_iov: Iov::EMPTY,
            akey_iov: Iov::EMPTY,
            value: Iov::EMPTY,
            sgl: Sgl { count: 1, count_out: 0, iovs: std::ptr::null_mut() },
            iod: Iod {
                name: Iov::EMPTY,
                kind: IOD_SINGLE,
                size: 0,
                flags: 0,
                count: 1,
                extents: std::ptr::null_mut(),
            },
            range: Range::default(),
            array: ArrayIod { count: 1, ranges: std::ptr::null_mut(), short_read: 0, read: 0 },
            size: 0,
            cell: 0,
            chunk: 0,
            first_id: 0,
            count: 0,
            anchor: Anchor::START,
            info: ContainerInfo::default(),
            descriptors: vec![KeyDescriptor::default(); listed].into(),
            names: vec![0; listed * LISTED_BYTES].into(),
        }
    }

    /// Sets what an operation reads and writes.
    fn aim(&mut self, operation: &ObjectOperation, buffer: *mut u8) {
        self.operation = Some(*operation);
        (self.closes, self.stage) = (false, Stage::Working);
        (self.dkey, self.akey) = (operation.dkey, operation.akey);
        let (dkey, akey) = (self.dkey.as_bytes(), self.akey.as_bytes());
        self.text[..dkey.len()].copy_from_slice(dkey);
        self.text[dkey.len()] = 0;
        self.dkey_iov = Iov::of(dkey.as_ptr(), dkey.len());
        self.akey_iov = Iov::of(akey.as_ptr(), akey.len());
        self.value = Iov::of(buffer, operation.value_bytes as usize);
        self.sgl = Sgl { count: 1, count_out: 0, iovs: &raw mut self.value };
        self.size = operation.value_bytes;
    }

    /// The value or the extent under the akey.
    fn describe(&mut self, kind: ValueKind, operation: &ObjectOperation) {
        self.range = Range { index: operation.offset_bytes, count: operation.value_bytes };
        self.iod = Iod { name: self.akey_iov, flags: 0, count: 1, ..self.iod };
        match kind {
            ValueKind::Single => {
                (self.iod.kind, self.iod.size) = (IOD_SINGLE, operation.value_bytes);
                self.iod.extents = std::ptr::null_mut();
            }
            ValueKind::Array => {
                (self.iod.kind, self.iod.size) = (IOD_ARRAY, 1);
                self.iod.extents = &raw mut self.range;
            }
        }
    }

    /// Where keys are listed to.
    fn list_to(&mut self) {
        self.count = self.descriptors.len() as u32;
        self.value = Iov::of(self.names.as_ptr(), self.names.len());
    }
}

impl Worker {
    fn slot(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots.as_mut().expect("taken only when the worker goes")[slot as usize]
    }

    /// The interface that an operation works through; none for those on the container.
    fn face(operation: &ObjectOperation) -> Option<Face> {
        match operation.operation {
            ObjectOp::Put | ObjectOp::Get | ObjectOp::Remove | ObjectOp::Stat => Some(Face::KeyValue),
            ObjectOp::List if operation.object.type_number() == KEY_VALUE => Some(Face::KeyValue),
            ObjectOp::List | ObjectOp::Update | ObjectOp::Fetch | ObjectOp::Punch => Some(Face::Object),
            ObjectOp::Write | ObjectOp::Read | ObjectOp::Size | ObjectOp::Destroy => Some(Face::Array),
            _ => None,
        }
    }

    /// Asks for an operation; its event comes back by the queue.
    ///
    /// # Errors
    /// The result of the library, when it was not taken.
    pub(super) fn start(&mut self, operation: &ObjectOperation) -> Result<(), c_int> {
        if operation.value_bytes > self.arena.slot_bytes() as u64 {
            return Err(INVALID);
        }
        let buffer = self.arena.slot_ptr(operation.slot);
        self.slot(operation.slot).aim(operation, buffer);
        let Some(face) = Self::face(operation) else { return self.perform(operation) };
        let acquired = self.acquire(operation.object, face)?;
        let slot = self.slot(operation.slot);
        slot.face = face;
        let Some((handle, closes)) = acquired else {
            slot.stage = Stage::Opening;
            return match self.open_array(operation) {
                0 => Ok(()),
                code => Err(code),
            };
        };
        (slot.handle, slot.closes) = (handle, closes);
        self.perform(operation)
    }

    /// Asks for the operation itself, on the object that is open.
    fn perform(&mut self, operation: &ObjectOperation) -> Result<(), c_int> {
        let code = match operation.operation {
            ObjectOp::Put | ObjectOp::Get | ObjectOp::Remove | ObjectOp::Stat => self.key_value(operation),
            ObjectOp::Update | ObjectOp::Fetch => self.value(operation),
            ObjectOp::Punch => self.punch(operation),
            ObjectOp::List => self.list(operation),
            ObjectOp::Write | ObjectOp::Read | ObjectOp::Size | ObjectOp::Destroy => self.array(operation),
            _ => self.opening(operation),
        };
        if code == 0 {
            return Ok(());
        }
        let slot = self.slot(operation.slot);
        let (handle, face) = (slot.handle, slot.face);
        if std::mem::take(&mut slot.closes) {
            self.release(handle, face);
        }
        Err(code)
    }

    fn key_value(&mut self, operation: &ObjectOperation) -> c_int {
        let (api, as_of) = (self.api, self.as_of);
        let slot = self.slot(operation.slot);
        let (handle, key, event) = (slot.handle, slot.text.as_ptr().cast(), &raw mut slot.event);
        let (value, size) = (slot.value.buffer, &raw mut slot.size);
        // SAFETY: the slot and its buffer stay where they are until the event has come back.
        unsafe {
            match operation.operation {
                ObjectOp::Put => {
                    (api.daos_kv_put)(handle, TX_NONE, 0, key, operation.value_bytes, value, event)
                }
                ObjectOp::Get => (api.daos_kv_get)(handle, as_of, 0, key, size, value, event),
                // Without a buffer it tells the size.
                ObjectOp::Stat => {
                    *size = 0;
                    (api.daos_kv_get)(handle, as_of, 0, key, size, std::ptr::null_mut(), event)
                }
                _ => (api.daos_kv_remove)(handle, TX_NONE, 0, key, event),
            }
        }
    }

    fn value(&mut self, operation: &ObjectOperation) -> c_int {
        let (api, kind, as_of) = (self.api, self.plan.dataset.value, self.as_of);
        let slot = self.slot(operation.slot);
        slot.describe(kind, operation);
        let (handle, dkey, iod) = (slot.handle, &raw mut slot.dkey_iov, &raw mut slot.iod);
        let (sgl, event) = (&raw mut slot.sgl, &raw mut slot.event);
        // SAFETY: the slot and its buffer stay where they are until the event has come back.
        unsafe {
            if operation.operation == ObjectOp::Update {
                (api.daos_obj_update)(handle, TX_NONE, 0, dkey, 1, iod, sgl, event)
            } else {
                let none = std::ptr::null_mut();
                (api.daos_obj_fetch)(handle, as_of, 0, dkey, 1, iod, sgl, none, event)
            }
        }
    }

    fn punch(&mut self, operation: &ObjectOperation) -> c_int {
        let (api, kind, scope) = (self.api, self.plan.dataset.value, self.plan.punch);
        let slot = self.slot(operation.slot);
        slot.describe(kind, operation);
        // Records of no size: the extent is punched.
        slot.iod.size = 0;
        let (handle, event, iod) = (slot.handle, &raw mut slot.event, &raw mut slot.iod);
        let (dkey, akey) = (&raw mut slot.dkey_iov, &raw mut slot.akey_iov);
        // SAFETY: the slot stays where it is until the event has come back.
        unsafe {
            match scope {
                PunchScope::Record if kind == ValueKind::Array => {
                    let none = std::ptr::null_mut();
                    (api.daos_obj_update)(handle, TX_NONE, 0, dkey, 1, iod, none, event)
                }
                PunchScope::Record | PunchScope::Akey => {
                    (api.daos_obj_punch_akeys)(handle, TX_NONE, 0, dkey, 1, akey, event)
                }
                PunchScope::Dkey => (api.daos_obj_punch_dkeys)(handle, TX_NONE, 0, 1, dkey, event),
                PunchScope::Object => (api.daos_obj_punch)(handle, TX_NONE, 0, event),
            }
        }
    }

    fn list(&mut self, operation: &ObjectOperation) -> c_int {
        let (api, as_of) = (self.api, self.as_of);
        let slot = self.slot(operation.slot);
        slot.list_to();
        let (handle, face, event) = (slot.handle, slot.face, &raw mut slot.event);
        let (count, anchor) = (&raw mut slot.count, &raw mut slot.anchor);
        let (descriptors, sgl) = (slot.descriptors.as_mut_ptr(), &raw mut slot.sgl);
        // SAFETY: the slot stays where it is until the event has come back.
        unsafe {
            let list = if face == Face::KeyValue { api.daos_kv_list } else { api.daos_obj_list_dkey };
            list(handle, as_of, count, descriptors, sgl, anchor, event)
        }
    }

    fn array(&mut self, operation: &ObjectOperation) -> c_int {
        let (api, cell, as_of) = (self.api, self.plan.cell_size_bytes.max(1), self.as_of);
        let (offset, bytes) = (operation.offset_bytes, operation.value_bytes);
        let slot = self.slot(operation.slot);
        slot.range = Range { index: offset / cell, count: bytes / cell };
        slot.array = ArrayIod { count: 1, ranges: &raw mut slot.range, short_read: 0, read: 0 };
        let (handle, event, iod) = (slot.handle, &raw mut slot.event, &raw mut slot.array);
        let (sgl, size) = (&raw mut slot.sgl, &raw mut slot.size);
        // SAFETY: the slot and its buffer stay where they are until the event has come back.
        unsafe {
            match operation.operation {
                ObjectOp::Size => (api.daos_array_get_size)(handle, as_of, size, event),
                ObjectOp::Destroy => (api.daos_array_destroy)(handle, TX_NONE, event),
                // Ranges are counted in cells.
                _ if !offset.is_multiple_of(cell) || !bytes.is_multiple_of(cell) => INVALID,
                ObjectOp::Write => (api.daos_array_write)(handle, TX_NONE, iod, sgl, event),
                _ => (api.daos_array_read)(handle, as_of, iod, sgl, event),
            }
        }
    }

    /// Opens an array by the attributes that are kept with it.
    fn open_array(&mut self, operation: &ObjectOperation) -> c_int {
        let (api, oid, container) = (self.api, self.oid(operation.object), self.container.handle);
        let as_of = self.as_of;
        let slot = self.slot(operation.slot);
        let (opened, event) = (&raw mut slot.opened, &raw mut slot.event);
        let (cell, chunk) = (&raw mut slot.cell, &raw mut slot.chunk);
        // SAFETY: the slot stays where it is until the event has come back.
        unsafe { (api.daos_array_open)(container, oid, as_of, OBJECT_READ_WRITE, cell, chunk, opened, event) }
    }

    /// The array of an operation was opened: the operation itself begins.
    ///
    /// # Errors
    /// The library's code, or that of attributes which are not those of the phase.
    fn go_on(&mut self, operation: &ObjectOperation) -> Result<(), c_int> {
        let attributes = (self.plan.cell_size_bytes, self.plan.chunk_size_cells);
        let slot = self.slot(operation.slot);
        let (handle, found) = (slot.opened, (slot.cell, slot.chunk));
        if found != attributes {
            self.release(handle, Face::Array);
            return Err(INVALID);
        }
        let closes = !self.keep(operation.object, Face::Array, handle);
        let slot = self.slot(operation.slot);
        (slot.handle, slot.closes, slot.stage) = (handle, closes, Stage::Working);
        self.perform(operation)
    }

    /// Begins an operation that opens a handle, or takes ids.
    fn opening(&mut self, operation: &ObjectOperation) -> c_int {
        let (api, oid, container) = (self.api, self.oid(operation.object), self.container.clone());
        let (cell, chunk, ids) =
            (self.plan.cell_size_bytes, self.plan.chunk_size_cells, u64::from(self.plan.ids_per_call));
        let slot = self.slot(operation.slot);
        let (opened, event) = (&raw mut slot.opened, &raw mut slot.event);
        let (handle, mode) = (container.handle, OBJECT_READ_WRITE);
        // SAFETY: the slot stays where it is until the event has come back; the container outlives the worker.
        unsafe {
            match operation.operation {
                ObjectOp::Create => (api.daos_array_create)(handle, oid, TX_NONE, cell, chunk, opened, event),
                ObjectOp::Open => self.open_array(operation),
                ObjectOp::OpenWithAttr => {
                    let open = api.daos_array_open_with_attr;
                    open(handle, oid, TX_NONE, mode, cell, chunk, opened, event)
                }
                ObjectOp::OpenContainer => {
                    let (pool, label, info) =
                        (container.pool.handle, container.label.as_ptr(), &raw mut slot.info);
                    (api.daos_cont_open2)(pool, label, CONTAINER_READ_WRITE, opened, info, event)
                }
                ObjectOp::AllocateIds => {
                    (api.daos_cont_alloc_oids)(handle, ids, &raw mut slot.first_id, event)
                }
                _ => -1010,
            }
        }
    }

    /// An event has come back.
    pub(super) fn land(&mut self, slot: usize) {
        let slot = self.slot(slot as u32);
        let Some(operation) = slot.operation else { return };
        let (code, opened, handle, face) = (slot.event.error, slot.opened, slot.handle, slot.face);
        if slot.stage == Stage::Opening {
            if let Err(code) = if code == 0 { self.go_on(&operation) } else { Err(code) } {
                self.finish(&operation, code, 0);
            }
            return;
        }
        if code == 0 && operation.operation == ObjectOp::OpenContainer && slot.stage == Stage::Working {
            slot.stage = Stage::Closing;
            let event = &raw mut slot.event;
            // SAFETY: a handle of ours; the event has come back and is free.
            let code = unsafe { (self.api.daos_cont_close)(opened, event) };
            if code != 0 {
                self.finish(&operation, code, 0);
            }
            return;
        }
        if std::mem::take(&mut slot.closes) {
            self.release(handle, face);
        }
        let creates_handle =
            matches!(operation.operation, ObjectOp::Create | ObjectOp::Open | ObjectOp::OpenWithAttr);
        if creates_handle && code == 0 {
            self.release(opened, Face::Array);
        }
        let (code, result) = if code == 0 { self.result(&operation) } else { (code, 0) };
        self.finish(&operation, code, result);
    }

    /// Code and result of an operation whose event told no error.
    fn result(&mut self, operation: &ObjectOperation) -> (c_int, i64) {
        let cell = self.plan.cell_size_bytes.max(1);
        let (cell_bytes, chunk_cells) = (self.plan.cell_size_bytes, self.plan.chunk_size_cells);
        let asked = operation.value_bytes;
        let slot = self.slot(operation.slot);
        match operation.operation {
            ObjectOp::Put | ObjectOp::Update | ObjectOp::Write => (0, asked as i64),
            // A key that is not there has no size.
            ObjectOp::Get | ObjectOp::Stat if slot.size == 0 => (NONEXISTENT, 0),
            ObjectOp::Get | ObjectOp::Stat => (0, slot.size as i64),
            ObjectOp::Fetch if slot.iod.size == 0 => (NONEXISTENT, 0),
            ObjectOp::Fetch if slot.iod.kind == IOD_SINGLE => (0, slot.iod.size as i64),
            ObjectOp::Fetch => (0, slot.value.length.min(asked as usize) as i64),
            // The library counts what was read of arrays of bytes alone. Of others it says how far it filled the buffer where the range
            // lies in one chunk, and nothing where it lies in several.
            ObjectOp::Read if operation.object.type_number() == BYTE_ARRAY => {
                (0, slot.array.read.min(asked) as i64)
            }
            ObjectOp::Read if slot.sgl.count_out == 0 && is_in_one_chunk(slot.range, chunk_cells) => (0, 0),
            ObjectOp::Read if is_in_one_chunk(slot.range, chunk_cells) => {
                (0, slot.value.length.min(asked as usize) as i64)
            }
            ObjectOp::Read => (0, asked as i64),
            ObjectOp::Size => (0, slot.size.saturating_mul(cell) as i64),
            // Created with another cell or chunk size than the phase works with.
            ObjectOp::Open if (slot.cell, slot.chunk) != (cell_bytes, chunk_cells) => (INVALID, 0),
            ObjectOp::List => {
                if slot.anchor.is_end() {
                    slot.anchor = Anchor::START;
                }
                (0, i64::from(slot.count))
            }
            // The first one.
            ObjectOp::AllocateIds => (0, i64::try_from(slot.first_id).unwrap_or(i64::MAX)),
            _ => (0, 0),
        }
    }
}

fn is_in_one_chunk(range: Range, chunk_cells: u64) -> bool {
    let chunk = chunk_cells.max(1);
    range.index / chunk == (range.index + range.count.max(1) - 1) / chunk
}
