//! From one request of an operation to the next.
#![allow(unsafe_code)]

use workload::object::ObjectOp;

use crate::operation::ObjectOperation;
use crate::s3::text::{self, Keep};
use crate::s3::{Ask, Cause, Reply, Trouble, errno_of, is_temporary};

use super::slot::{Slot, State, Step};
use super::{ABORT_NS, Common, opening};

/// Keys that one page of a list brings at most (ListObjectsV2).
const PAGE_MAX: u64 = 1000;
const LIST_HEAD: &[u8] = b"<CompleteMultipartUpload>";
const LIST_END: &[u8] = b"</CompleteMultipartUpload>";

impl Common {
    /// Begins an operation: its name, its data, its first request.
    pub(super) fn begin(&mut self, slot: &mut Slot, operation: &ObjectOperation) {
        self.names.write(&mut slot.name, operation.object.lo, &operation.dkey);
        let moves = operation.operation.stores() || operation.operation.loads();
        if moves && operation.value_bytes > self.memory.slot_bytes() as u64 {
            self.finish(slot, operation, -i64::from(libc::EINVAL));
            return;
        }
        if self.is_staged && operation.operation.stores() {
            let bytes = operation.value_bytes as usize;
            // SAFETY: the slot is in flight, and nothing else refers to its buffer.
            let from = unsafe { self.arena.slot_mut(operation.slot, bytes) };
            // SAFETY: as above, for the copy.
            unsafe { self.memory.slot_mut(operation.slot, bytes) }.copy_from_slice(from);
        }
        let in_parts = operation.operation == ObjectOp::Put
            && self.part_bytes > 0
            && operation.value_bytes >= self.part_bytes;
        slot.step = match operation.operation {
            ObjectOp::Put if in_parts => Step::Begin,
            operation if super::can(operation) => Step::Whole,
            _ => {
                self.finish(slot, operation, -i64::from(libc::EOPNOTSUPP));
                return;
            }
        };
        self.request(slot, operation);
    }

    /// Writes the request of the slot's step; [`Common::drive`] sends it.
    pub(super) fn request(&mut self, slot: &mut Slot, operation: &ObjectOperation) {
        let mut head = std::mem::take(&mut slot.head);
        self.write_query(slot, operation);
        let key = Some(slot.name.as_slice());
        let payload = self.payload(slot.step, &slot.upload, operation);
        let (method, key, range) = match (slot.step, operation.operation) {
            (Step::Begin | Step::Complete, _) => ("POST", key, None),
            (Step::Part, _) => ("PUT", key, None),
            (Step::Abort, _) => ("DELETE", key, None),
            (Step::Whole, ObjectOp::Put) => ("PUT", key, None),
            (Step::Whole, ObjectOp::Remove) => ("DELETE", key, None),
            (Step::Whole, ObjectOp::Stat) => ("HEAD", key, None),
            (Step::Whole, ObjectOp::List) => ("GET", None, None),
            (Step::Whole, ObjectOp::Read) if operation.value_bytes > 0 => {
                let first = operation.offset_bytes;
                ("GET", key, Some((first, first + operation.value_bytes - 1)))
            }
            (Step::Whole, _) => ("GET", key, None),
        };
        let endpoint = &self.site.endpoints[slot.endpoint];
        self.writer.write(&mut head, endpoint, &Ask { method, key, query: &slot.query, range, payload });
        slot.head = head;
        slot.scanner.reset();
        slot.state = State::Sending;
        if let Some(link) = &mut slot.link {
            link.begin();
        }
    }

    fn write_query(&self, slot: &mut Slot, operation: &ObjectOperation) {
        let query = &mut slot.query;
        query.clear();
        match slot.step {
            Step::Begin => query.extend_from_slice(b"uploads="),
            Step::Part | Step::Complete | Step::Abort => {
                if slot.step == Step::Part {
                    query.extend_from_slice(b"partNumber=");
                    text::decimal(query, slot.upload.part);
                    query.push(b'&');
                }
                query.extend_from_slice(b"uploadId=");
                text::escape(query, &slot.upload.id, Keep::Unreserved);
            }
            Step::Whole if operation.operation == ObjectOp::List => {
                if !slot.token.is_empty() {
                    query.extend_from_slice(b"continuation-token=");
                    text::escape(query, &slot.token, Keep::Unreserved);
                    query.push(b'&');
                }
                query.extend_from_slice(b"list-type=2&max-keys=");
                text::decimal(query, (u64::from(self.list_max) - slot.listed).min(PAGE_MAX));
                query.extend_from_slice(b"&prefix=");
                self.names.write_query_prefix(query, operation.object.lo);
            }
            Step::Whole => {}
        }
    }

    /// An answer is whole.
    pub(super) fn answered(&mut self, slot: &mut Slot, operation: &ObjectOperation, reply: &Reply) {
        let found = slot.scanner.found();
        // An upload that cannot be put together may say so behind a status of 200 (CompleteMultipartUpload).
        let is_good = (200..300).contains(&reply.status) && found.code.is_empty();
        if is_good {
            return self.advanced(slot, operation, reply);
        }
        let is_past_the_end =
            reply.status == 416 && operation.operation == ObjectOp::Read && slot.step == Step::Whole;
        if is_past_the_end {
            // No byte of the range is there.
            return self.finish(slot, operation, 0);
        }
        let is_again = is_temporary(reply.status, found) && slot.tries < self.site.retries;
        self.answers.answered(reply.status, found, is_again);
        if is_again {
            self.again(slot, operation, false);
        } else {
            let errno = errno_of(reply.status, found);
            self.give_up(slot, operation, -i64::from(errno));
        }
    }

    fn advanced(&mut self, slot: &mut Slot, operation: &ObjectOperation, reply: &Reply) {
        match slot.step {
            Step::Whole => self.whole(slot, operation, reply),
            Step::Begin => {
                let upload = &mut slot.upload;
                upload.id.clear();
                upload.id.extend_from_slice(&slot.scanner.found().upload);
                if upload.id.is_empty() {
                    return self.failed(slot, operation, Trouble::Malformed("it names no upload"));
                }
                upload.list.clear();
                upload.list.extend_from_slice(LIST_HEAD);
                upload.part = 1;
                slot.step = Step::Part;
                self.request(slot, operation);
            }
            Step::Part => {
                let upload = &mut slot.upload;
                let etag = reply.etag.as_bytes();
                if etag.is_empty() {
                    return self.failed(slot, operation, Trouble::Malformed("a part has no ETag"));
                }
                upload.list.extend_from_slice(b"<Part><PartNumber>");
                text::decimal(&mut upload.list, upload.part);
                upload.list.extend_from_slice(b"</PartNumber><ETag>");
                upload.list.extend_from_slice(etag);
                upload.list.extend_from_slice(b"</ETag></Part>");
                if upload.part * self.part_bytes < operation.value_bytes {
                    upload.part += 1;
                } else {
                    upload.list.extend_from_slice(LIST_END);
                    slot.step = Step::Complete;
                }
                self.request(slot, operation);
            }
            Step::Complete => {
                slot.upload.id.clear();
                self.finish(slot, operation, operation.value_bytes as i64);
            }
            Step::Abort => {
                slot.upload.id.clear();
                self.finish(slot, operation, slot.outcome);
            }
        }
    }

    /// The answer of an operation that is one request, or a page of a list.
    fn whole(&mut self, slot: &mut Slot, operation: &ObjectOperation, reply: &Reply) {
        match operation.operation {
            ObjectOp::Put => self.finish(slot, operation, operation.value_bytes as i64),
            ObjectOp::Stat => self.finish(slot, operation, reply.bytes as i64),
            ObjectOp::Read if operation.value_bytes > 0 => {
                if reply.status != 206 || reply.range_begin != Some(operation.offset_bytes) {
                    let why = "a range was asked for, and another came";
                    return self.failed(slot, operation, Trouble::Malformed(why));
                }
                self.finish(slot, operation, reply.bytes as i64);
            }
            ObjectOp::Get | ObjectOp::Read => self.finish(slot, operation, reply.bytes as i64),
            ObjectOp::List => {
                let found = slot.scanner.found();
                slot.listed += found.keys;
                slot.token.clear();
                if found.is_truncated {
                    slot.token.extend_from_slice(&found.token);
                }
                if slot.token.is_empty() || slot.listed >= u64::from(self.list_max) {
                    self.finish(slot, operation, slot.listed as i64);
                } else {
                    self.request(slot, operation);
                }
            }
            _ => self.finish(slot, operation, 0),
        }
    }

    /// The operation has failed; what it has begun is undone first.
    pub(super) fn give_up(&mut self, slot: &mut Slot, operation: &ObjectOperation, result: i64) {
        if slot.upload.id.is_empty() {
            return self.finish(slot, operation, result);
        }
        if slot.step == Step::Abort {
            if self.troubles.len() < opening::FINDINGS_MAX {
                let name = String::from_utf8_lossy(&slot.name);
                self.troubles
                    .push(format!("object {name}: its upload could not be given up; parts are left"));
            }
            slot.upload.id.clear();
            return self.finish(slot, operation, slot.outcome);
        }
        (slot.step, slot.outcome, slot.tries) = (Step::Abort, result, 0);
        slot.deadline_ns = self.now_ns + ABORT_NS;
        self.request(slot, operation);
    }

    /// The time of an operation is over.
    pub(super) fn timed_out(&mut self, slot: &mut Slot, operation: &ObjectOperation) {
        slot.link = None;
        let endpoint = &self.site.endpoints[slot.endpoint].name;
        let limit_ns = self.site.timeout_ns;
        let words = || format!("no answer in {} ms", limit_ns / 1_000_000);
        self.answers.failed(endpoint, Cause::Silent, words, false);
        self.give_up(slot, operation, -i64::from(libc::ETIMEDOUT));
    }

    pub(super) fn finish(&mut self, slot: &mut Slot, operation: &ObjectOperation, result: i64) {
        if self.is_staged && operation.operation.loads() && result > 0 {
            // SAFETY: the slot is in flight, and nothing else refers to its memory.
            let from = unsafe { self.memory.slot_mut(operation.slot, result as usize) };
            // SAFETY: as above, for the worker's buffer.
            unsafe { self.arena.slot_mut(operation.slot, result as usize) }.copy_from_slice(from);
        }
        slot.operation = None;
        slot.state = State::Idle;
        self.finished.push_back((operation.slot, result));
    }
}
