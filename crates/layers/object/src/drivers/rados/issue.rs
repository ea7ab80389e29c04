//! One request: how it is sent, and what its answer means.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use ceph::Handle;

use crate::plan::{ObjectOp, PunchScope, ValueKind};

use vos::model::{Key, ObjectId};

use super::worker::{Flow, Sent, Step, Worker};
use crate::ObjectOperation;
use crate::rados::layout::{MARKER, Name, Piece, piece};
use crate::rados::library::{CMPXATTR_GT, CREATE_EXCLUSIVE};
use crate::rados::parts::SCRATCH_BYTES;

/// Extended attribute of an array's attributes: its largest chunk, as 16 hexadecimal digits.
const LARGEST: &std::ffi::CStr = c"largest";
/// How often a chunk's record is tried while others make and destroy the array.
const RECORDINGS_MAX: u64 = 16;
/// Types of objects that are arrays (`daos_otype_t`).
const ARRAY_TYPES: std::ops::RangeInclusive<u8> = 11..=13;

/// Request for one RADOS object.
enum Request {
    WriteFull(*const c_char, usize),
    Write(*const c_char, usize, u64),
    Read(*mut c_char, usize, u64),
    Remove,
    Stat,
    Zero(u64, u64),
    /// Stores a value under an omap key, fetches it, removes it.
    Set(Key, *const c_char, usize),
    Fetch(Key),
    Unset(Key),
    /// Records a chunk of an array if none larger is recorded; what the array has no attributes yet for.
    Record(u64),
    RecordFirst(u64),
    Recorded,
}

impl Worker {
    /// Sends request `number` of a step.
    ///
    /// # Errors
    /// A negated errno, when it was not sent.
    pub(super) fn issue(&mut self, part: u32, slot: u32, number: u64, flow: &Flow) -> Result<(), c_int> {
        let none = std::ptr::null_mut();
        self.sent[part as usize] =
            Sent { slot, number, write_operation: none, read_operation: none, namespace: none };
        let operation = &flow.operation;
        if operation.value_bytes > self.arena.slot_bytes() as u64 {
            return Err(-libc::EINVAL);
        }
        let object = operation.object;
        let (name, request) = match flow.step {
            Step::Single if operation.operation == ObjectOp::OpenContainer => return self.open_again(part),
            Step::Single => self.single(part, operation),
            Step::Pieces => {
                let piece = self.piece(operation, number);
                let at = self.buffer(operation).wrapping_add(piece.at);
                let request = match operation.operation {
                    ObjectOp::Write => Request::Write(at, piece.length, piece.offset),
                    _ => Request::Read(at, piece.length, piece.offset),
                };
                (Name::of_chunk(object, piece.chunk), request)
            }
            // Nothing can be compared on an object that is not there: it is made, unless somebody else has just done so.
            Step::Recording if number % 2 == 1 => {
                (Name::of_attributes(object), Request::RecordFirst(flow.found))
            }
            Step::Recording => (Name::of_attributes(object), Request::Record(flow.found)),
            Step::Asking => (Name::of_attributes(object), Request::Recorded),
            Step::Sizing => (Name::of_chunk(object, flow.found), Request::Stat),
            Step::Removing => (self.removed_name(operation, number, flow.end), Request::Remove),
        };
        let name = self.own_name(object).unwrap_or(name.as_ptr());
        self.send(part, self.pool.handle, name, request)
    }

    /// The name that an object has of its own.
    fn own_name(&self, object: ObjectId) -> Option<*const c_char> {
        let number = object.lo.wrapping_sub(self.plan.dataset.first_id);
        self.own_names.get(usize::try_from(number).ok()?).map(|name| name.as_ptr())
    }

    fn buffer(&self, operation: &ObjectOperation) -> *mut c_char {
        self.arena.slot_ptr(operation.slot).cast()
    }

    fn piece(&self, operation: &ObjectOperation, number: u64) -> Piece {
        piece(operation.offset_bytes, operation.value_bytes, self.chunk_bytes(), number)
    }

    /// The one request of an operation.
    fn single(&mut self, part: u32, operation: &ObjectOperation) -> (Name, Request) {
        let ObjectOperation { object, dkey, akey, offset_bytes, .. } = operation;
        let (data, bytes) = (self.buffer(operation), operation.value_bytes as usize);
        let under_dkey = Name::of_dkey(*object, dkey);
        let is_array = self.plan.dataset.value == ValueKind::Array;
        let in_omap = !is_array && !akey.as_bytes().is_empty();
        match operation.operation {
            ObjectOp::Put => (under_dkey, Request::WriteFull(data, bytes)),
            ObjectOp::Update if in_omap => (under_dkey, Request::Set(*akey, data, bytes)),
            ObjectOp::Update if !is_array => (under_dkey, Request::WriteFull(data, bytes)),
            ObjectOp::Update => {
                (Name::of_akey(*object, dkey, akey), Request::Write(data, bytes, *offset_bytes))
            }
            ObjectOp::Fetch if in_omap => (under_dkey, Request::Fetch(*akey)),
            ObjectOp::Fetch if is_array => {
                (Name::of_akey(*object, dkey, akey), Request::Read(data, bytes, *offset_bytes))
            }
            ObjectOp::Fetch | ObjectOp::Get => (under_dkey, Request::Read(data, bytes, 0)),
            ObjectOp::Remove => (under_dkey, Request::Remove),
            ObjectOp::Create => {
                let attributes = self.attributes();
                // SAFETY: the part is not in flight: its outputs are ours.
                let scratch = unsafe { &mut (*self.parts().outputs(part)).scratch };
                *scratch = attributes;
                (Name::of_attributes(*object), Request::WriteFull(scratch.as_ptr().cast(), SCRATCH_BYTES))
            }
            ObjectOp::Open => {
                // SAFETY: as above; the library fills it.
                let scratch = unsafe { &raw mut (*self.parts().outputs(part)).scratch };
                (Name::of_attributes(*object), Request::Read(scratch.cast(), SCRATCH_BYTES, 0))
            }
            ObjectOp::Punch if in_omap && self.plan.punch != PunchScope::Dkey => {
                (under_dkey, Request::Unset(*akey))
            }
            ObjectOp::Punch if is_array && self.plan.punch == PunchScope::Record => {
                let length = operation.value_bytes.max(1);
                (Name::of_akey(*object, dkey, akey), Request::Zero(*offset_bytes, length))
            }
            ObjectOp::Punch if is_array => (Name::of_akey(*object, dkey, akey), Request::Remove),
            ObjectOp::Punch => (under_dkey, Request::Remove),
            _ => (under_dkey, Request::Stat),
        }
    }

    /// Attributes of an array, as they are stored.
    fn attributes(&self) -> [u8; SCRATCH_BYTES] {
        let mut attributes = [0; SCRATCH_BYTES];
        attributes[..8].copy_from_slice(&self.plan.cell_size_bytes.to_le_bytes());
        attributes[8..].copy_from_slice(&self.plan.chunk_size_cells.to_le_bytes());
        attributes
    }

    /// Requests of a punch: one, or one for each akey that the dataset has under the dkey.
    pub(super) fn punch_step(&self) -> (Step, u64) {
        match self.plan.punch {
            PunchScope::Object => (Step::Asking, 1),
            PunchScope::Dkey => match self.objects_of_dkey() {
                1 => (Step::Single, 1),
                count => (Step::Removing, count),
            },
            PunchScope::Akey | PunchScope::Record => (Step::Single, 1),
        }
    }

    /// Whether it removes an object that is no array: what it has is not known.
    pub(super) fn punches_by_list(&self, operation: &ObjectOperation) -> bool {
        self.plan.punch == PunchScope::Object && !ARRAY_TYPES.contains(&operation.object.type_number())
    }

    /// Removes all that belongs to an object which is no array. Waits for the cluster: names must be listed.
    pub(super) fn punch_object(&self, object: ObjectId) -> i64 {
        let prefix = Name::prefix(object);
        let removed = self.pool.clear(|name| name.to_bytes().starts_with(prefix.as_bytes()));
        removed.map_or_else(i64::from, |()| 0)
    }

    /// Objects, dkeys, akeys and records that were stored.
    fn whole(&self) -> [u64; 4] {
        let data = &self.plan.dataset;
        data.whole.unwrap_or([data.objects, data.dkeys, data.akeys, data.records])
    }

    /// RADOS objects under a dkey: one, or one for each akey with extents.
    fn objects_of_dkey(&self) -> u64 {
        if self.plan.dataset.value == ValueKind::Array { self.whole()[2] } else { 1 }
    }

    fn removed_name(&self, operation: &ObjectOperation, number: u64, end: u64) -> Name {
        let ObjectOperation { object, dkey, .. } = operation;
        let is_array = ARRAY_TYPES.contains(&object.type_number());
        let by_object = operation.operation == ObjectOp::Punch && self.plan.punch == PunchScope::Object;
        if operation.operation == ObjectOp::Destroy || by_object && is_array {
            return if number + 1 == end {
                Name::of_attributes(*object)
            } else {
                Name::of_chunk(*object, number)
            };
        }
        let (akeys, data) = (self.objects_of_dkey(), &self.plan.dataset);
        // Akeys are numbered over all dkeys, unless all dkeys have the same.
        let of_dkey = operation.record / self.whole()[0].max(1) / self.whole()[3].max(1);
        let first = if data.constant_akey { 0 } else { of_dkey - of_dkey % akeys };
        Name::of_akey(*object, dkey, &self.numbered(&data.akey_prefix, first + number))
    }

    fn numbered(&self, prefix: &str, number: u64) -> Key {
        Key::new(prefix.as_bytes()).filter(Key::has_room).unwrap_or(Key::EMPTY).followed_by(number)
    }

    /// Opens the container and asks for its mark.
    fn open_again(&mut self, part: u32) -> Result<(), c_int> {
        let handle = self.pool.cluster.open_context(&self.names.0, &self.names.1)?;
        let sent = self.send(part, handle, MARKER.as_ptr(), Request::Stat);
        self.sent[part as usize].namespace = handle;
        if let Err(code) = sent {
            self.release(part, code);
        }
        sent
    }

    fn send(&mut self, part: u32, pool: Handle, name: *const c_char, request: Request) -> Result<(), c_int> {
        let api = self.pool.api;
        let completion = self.parts().completion(part);
        let outputs = self.parts().outputs(part);
        // SAFETY: the name ends with a NUL and is copied, as are data to be written; buffers, outputs and operations live until the
        // request has completed: the slot is the driver's until then, and parts outlive the connection.
        let code = unsafe {
            match request {
                Request::WriteFull(data, bytes) => {
                    (api.rados_aio_write_full)(pool, name, completion, data, bytes)
                }
                Request::Write(data, bytes, offset) => {
                    (api.rados_aio_write)(pool, name, completion, data, bytes, offset)
                }
                // A read of no bytes would bring the whole object.
                Request::Read(_, 0, _) | Request::Stat => {
                    let (size, time) = (&raw mut (*outputs).size, &raw mut (*outputs).time);
                    (api.rados_aio_stat)(pool, name, completion, size, time)
                }
                Request::Read(buffer, bytes, offset) => {
                    (api.rados_aio_read)(pool, name, completion, buffer, bytes, offset)
                }
                Request::Remove => (api.rados_aio_remove)(pool, name, completion),
                Request::Recorded => {
                    let scratch = (&raw mut (*outputs).scratch).cast();
                    (api.rados_aio_getxattr)(pool, name, completion, LARGEST.as_ptr(), scratch, SCRATCH_BYTES)
                }
                Request::Fetch(akey) => {
                    let operation = (api.rados_create_read_op)();
                    let (key, length) = (akey.as_bytes().as_ptr().cast(), akey.as_bytes().len());
                    let (entries, code) = (&raw mut (*outputs).entries, &raw mut (*outputs).code);
                    let get = api.rados_read_op_omap_get_vals_by_keys2;
                    get(operation, &raw const key, 1, &raw const length, entries, code);
                    self.sent[part as usize].read_operation = operation;
                    (api.rados_aio_read_op_operate)(operation, pool, completion, name, 0)
                }
                Request::Set(..)
                | Request::Unset(_)
                | Request::Zero(..)
                | Request::Record(_)
                | Request::RecordFirst(_) => {
                    let operation = (api.rados_create_write_op)();
                    self.fill(operation, &request);
                    self.sent[part as usize].write_operation = operation;
                    let now = std::ptr::null_mut();
                    (api.rados_aio_write_op_operate)(operation, pool, completion, name, now, 0)
                }
            }
        };
        if code >= 0 {
            return Ok(());
        }
        // SAFETY: a completion that nothing will call back.
        unsafe { (api.rados_aio_release)(completion) };
        self.release(part, code);
        Err(code)
    }

    fn fill(&self, operation: Handle, request: &Request) {
        let api = self.pool.api;
        // SAFETY: keys and values are copied into the operation.
        unsafe {
            match request {
                Request::Set(akey, data, bytes) => {
                    let (key, length) = (akey.as_bytes().as_ptr().cast(), akey.as_bytes().len());
                    let set = api.rados_write_op_omap_set2;
                    set(operation, &raw const key, data, &raw const length, bytes, 1);
                }
                Request::Unset(akey) => {
                    let (key, length) = (akey.as_bytes().as_ptr().cast(), akey.as_bytes().len());
                    (api.rados_write_op_omap_rm_keys2)(operation, &raw const key, &raw const length, 1);
                }
                Request::Zero(offset, length) => (api.rados_write_op_zero)(operation, *offset, *length),
                Request::Record(chunk) => {
                    let digits = digits(*chunk);
                    let (name, value) = (LARGEST.as_ptr(), digits.as_ptr().cast());
                    (api.rados_write_op_cmpxattr)(operation, name, CMPXATTR_GT, value, digits.len());
                    (api.rados_write_op_setxattr)(operation, name, value, digits.len());
                }
                Request::RecordFirst(chunk) => {
                    let digits = digits(*chunk);
                    (api.rados_write_op_create)(operation, CREATE_EXCLUSIVE, std::ptr::null());
                    let value = digits.as_ptr().cast();
                    (api.rados_write_op_setxattr)(operation, LARGEST.as_ptr(), value, digits.len());
                }
                _ => {}
            }
        }
    }

    /// Gives back what a request needed. Its result, or that of a step within it.
    pub(super) fn release(&mut self, part: u32, code: c_int) -> c_int {
        let api = self.pool.api;
        let sent = &mut self.sent[part as usize];
        let none = std::ptr::null_mut();
        let write_operation = std::mem::replace(&mut sent.write_operation, none);
        let namespace = std::mem::replace(&mut sent.namespace, none);
        // SAFETY: handles of ours whose request has completed, each released once.
        unsafe {
            if !write_operation.is_null() {
                (api.rados_release_write_op)(write_operation);
            }
            if !namespace.is_null() {
                (api.rados_ioctx_destroy)(namespace);
            }
        }
        if sent.read_operation.is_null() || code >= 0 {
            return code;
        }
        self.entry(part, &mut []);
        code
    }

    /// Copies the value that an omap request brought, and gives the request's memory back. Bytes copied, or a negated errno.
    fn entry(&mut self, part: u32, into: &mut [u8]) -> i64 {
        let api = self.pool.api;
        let operation = std::mem::replace(&mut self.sent[part as usize].read_operation, std::ptr::null_mut());
        let outputs = self.parts().outputs(part);
        let (mut key, mut value, mut key_bytes, mut value_bytes) =
            (std::ptr::null_mut(), std::ptr::null_mut(), 0, 0);
        // SAFETY: the request has completed, so the outputs are ours; the library made the entries when the request was filled, and
        // key and value live until they are given back.
        unsafe {
            let entries = std::mem::replace(&mut (*outputs).entries, std::ptr::null_mut());
            let places = (&raw mut key, &raw mut value, &raw mut key_bytes, &raw mut value_bytes);
            let code = (api.rados_omap_get_next2)(entries, places.0, places.1, places.2, places.3);
            let result = match code {
                code if code < 0 => i64::from(code),
                _ if key.is_null() => -i64::from(libc::ENOENT),
                _ if value_bytes > into.len() => -i64::from(libc::EOVERFLOW),
                _ => {
                    std::ptr::copy_nonoverlapping(value.cast(), into.as_mut_ptr(), value_bytes);
                    value_bytes as i64
                }
            };
            (api.rados_omap_get_end)(entries);
            (api.rados_release_read_op)(operation);
            result
        }
    }

    /// Books the answer of request `number`; `part` is where it landed, if it was sent.
    pub(super) fn account(&mut self, flow: &mut Flow, number: u64, code: c_int, part: Option<u32>) {
        let operation = flow.operation;
        let is_missing = code == -libc::ENOENT;
        match flow.step {
            Step::Pieces if code >= 0 || is_missing => {
                let piece = self.piece(&operation, number);
                let read = if operation.operation == ObjectOp::Read { code.max(0) as usize } else { 0 };
                if operation.operation == ObjectOp::Read && read < piece.length {
                    let hole = self.buffer(&operation).wrapping_add(piece.at + read);
                    // SAFETY: within the slot, which is the driver's; this part of it is in no other request.
                    unsafe { std::ptr::write_bytes(hole, 0, piece.length - read) };
                }
                if operation.operation == ObjectOp::Write && is_missing {
                    flow.error = code;
                } else if read > 0 {
                    flow.found = flow.found.max((piece.at + read) as u64);
                }
            }
            // Somebody has recorded this one or a larger one.
            Step::Recording if code == -libc::ECANCELED => {}
            Step::Recording if (is_missing || code == -libc::EEXIST) && number < RECORDINGS_MAX => {
                flow.end += 1;
            }
            Step::Asking if is_missing || code == -libc::ENODATA => flow.found = 0,
            Step::Asking if code >= 0 => flow.found = part.map_or(0, |part| self.largest(part)),
            Step::Sizing if code >= 0 || is_missing => {
                let size = part.filter(|_| code >= 0).map_or(0, |part| self.size(part));
                flow.found = flow.found.saturating_mul(self.chunk_bytes()).saturating_add(size);
            }
            Step::Removing if is_missing => {}
            Step::Removing if code >= 0 => flow.found += 1,
            Step::Single if code >= 0 => self.account_single(flow, code, part),
            Step::Single if is_missing && operation.operation == ObjectOp::Punch => {}
            _ if code < 0 => flow.error = code,
            _ => {}
        }
    }

    fn account_single(&mut self, flow: &mut Flow, code: c_int, part: Option<u32>) {
        let operation = flow.operation;
        let Some(part) = part else { return };
        let result = match operation.operation {
            ObjectOp::Put | ObjectOp::Update => operation.value_bytes as i64,
            ObjectOp::Stat => self.size(part) as i64,
            ObjectOp::Fetch if !self.sent[part as usize].read_operation.is_null() => {
                let arena = self.arena.clone();
                // SAFETY: the slot is the driver's until its completion was handed over.
                let into = unsafe { arena.slot_mut(operation.slot, operation.value_bytes as usize) };
                self.entry(part, into)
            }
            ObjectOp::Fetch | ObjectOp::Get => i64::from(code),
            ObjectOp::Open if (code as usize) < SCRATCH_BYTES => -i64::from(libc::ENOENT),
            ObjectOp::Open => {
                // SAFETY: the request has completed: the outputs are ours.
                let found = unsafe { (*self.parts().outputs(part)).scratch };
                // Created with another cell or chunk size than the phase works with.
                if found == self.attributes() { 0 } else { -i64::from(libc::EINVAL) }
            }
            _ => 0,
        };
        if result < 0 { flow.error = result as i32 } else { flow.found = result as u64 }
    }

    fn size(&mut self, part: u32) -> u64 {
        // SAFETY: the request has completed: the outputs are ours.
        unsafe { (*self.parts().outputs(part)).size }
    }

    fn largest(&mut self, part: u32) -> u64 {
        // SAFETY: as above.
        let digits = unsafe { (*self.parts().outputs(part)).scratch };
        std::str::from_utf8(&digits).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
    }
}

/// A chunk's number as 16 hexadecimal digits: their order as text is that of the numbers.
fn digits(chunk: u64) -> [u8; SCRATCH_BYTES] {
    std::array::from_fn(|at| b"0123456789abcdef"[(chunk >> (60 - 4 * at) & 15) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_ordered_as_numbers() {
        assert_eq!(&digits(0xab), b"00000000000000ab");
        assert!(digits(9) < digits(10) && digits(u64::MAX) > digits(u64::MAX - 1));
    }
}
