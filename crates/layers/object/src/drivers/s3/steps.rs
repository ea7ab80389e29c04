//! From one request of an operation to the next.
#![allow(unsafe_code)]

use crate::plan::ObjectOp;

use crate::operation::ObjectOperation;
use crate::s3::Link;
use crate::s3::text::{self, Keep};
use crate::s3::{
    Ask, Cause, Condition, LIST, LostUpload, NO_LIST, NO_TOKEN, Reply, TOKEN_AGAIN, Trouble, errno_of,
    is_temporary,
};

use super::slot::{Slot, State, Step};
use super::{ABORT_NS, Common};

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
        slot.is_own = self.own.destroys || self.own.put.has(operation.record);
        slot.after = Step::Whole;
        slot.step = match operation.operation {
            ObjectOp::Put if in_parts => Step::Begin,
            ObjectOp::Remove if !slot.is_own => Step::Owner,
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
        slot.watch.pass(None);
        let mut head = std::mem::take(&mut slot.head);
        self.write_query(slot, operation);
        let key = Some(slot.name.as_slice());
        let payload = self.payload(slot.step, &slot.upload, operation);
        let (method, key, range) = match (slot.step, operation.operation) {
            (Step::Begin | Step::Complete, _) => ("POST", key, None),
            (Step::Part, _) => ("PUT", key, None),
            (Step::Abort, _) => ("DELETE", key, None),
            (Step::Owner, _) => ("HEAD", key, None),
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
        let is_put = slot.step == Step::Whole && operation.operation == ObjectOp::Put;
        let is_conditional = (is_put || slot.step == Step::Complete) && !slot.is_own && self.takes_conditions;
        let condition = if is_conditional { Condition::Absent } else { Condition::Always };
        let mark = (is_put || slot.step == Step::Begin).then_some(&self.mark);
        let ask = Ask { method, key, query: &slot.query, range, payload, condition, mark };
        self.writer.write(&mut head, endpoint, &ask);
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
            Step::Whole | Step::Owner => {}
        }
    }

    /// An answer is whole.
    pub(super) fn answered(&mut self, slot: &mut Slot, operation: &ObjectOperation, reply: &Reply) {
        // An upload that cannot be put together may say so behind a status of 200 (CompleteMultipartUpload).
        let is_good = (200..300).contains(&reply.status) && slot.scanner.found().code.is_empty();
        if slot.step == Step::Owner && (is_good || reply.status == 404) {
            return self.owner_known(slot, operation, reply);
        }
        if is_good {
            return self.advanced(slot, operation, reply);
        }
        if self.is_refused_condition(slot, operation, reply.status) {
            return;
        }
        let is_past_the_end =
            reply.status == 416 && operation.operation == ObjectOp::Read && slot.step == Step::Whole;
        if is_past_the_end {
            // No byte of the range is there.
            return self.finish(slot, operation, 0);
        }
        let found = slot.scanner.found();
        // The beginning of an upload may have made one; parts are put together once, however often that is asked for.
        let may_repeat = slot.step != Step::Begin || matches!(reply.status, 429 | 503);
        let is_again = may_repeat && is_temporary(reply.status, found) && slot.tries < self.site.retries;
        self.answers.answered(reply.status, found, is_again);
        if is_again {
            self.again(slot, operation, false);
        } else {
            let errno = errno_of(reply.status, found);
            if reply.status >= 500 {
                self.remember_lost(slot);
            }
            self.give_up(slot, operation, -i64::from(errno));
        }
    }

    /// Goes on where the server refused to write over an object, or does not know how to refuse that.
    fn is_refused_condition(&mut self, slot: &mut Slot, operation: &ObjectOperation, status: u16) -> bool {
        let is_conditional = !slot.is_own
            && self.takes_conditions
            && (slot.step == Step::Complete
                || slot.step == Step::Whole && operation.operation == ObjectOp::Put);
        match status {
            409 | 412 if is_conditional => {
                (slot.after, slot.step) = (slot.step, Step::Owner);
                self.request(slot, operation);
                true
            }
            501 if is_conditional => {
                // What was there before the phase has been looked for; what others put meanwhile is not seen.
                self.takes_conditions = false;
                self.troubles.add(|| {
                    "the server does not support If-None-Match: objects that other clients put during the run are overwritten".to_owned()
                });
                self.request(slot, operation);
                true
            }
            _ => false,
        }
    }

    /// Whose object it is, is known: it is written over or removed where it is the run's own.
    fn owner_known(&mut self, slot: &mut Slot, operation: &ObjectOperation, reply: &Reply) {
        let is_there = reply.status != 404;
        slot.step = slot.after;
        if is_there && reply.run == Some(self.own.run) {
            slot.is_own = true;
            self.own.put.add(operation.record);
            self.request(slot, operation);
        } else if !is_there && operation.operation == ObjectOp::Remove {
            self.finish(slot, operation, 0);
        } else if !is_there && slot.tries < self.site.retries {
            self.again(slot, operation, false);
        } else {
            self.troubles.add(|| {
                let name = String::from_utf8_lossy(&slot.name);
                format!(
                    "object {name}: kept, because this run did not create it; --destroy-data overwrites it"
                )
            });
            self.give_up(slot, operation, -i64::from(libc::EEXIST));
        }
    }

    /// Keeps in mind that an upload may have been begun whose id never came.
    pub(super) fn remember_lost(&self, slot: &Slot) {
        let is_open = slot.operation.is_some() && slot.step == Step::Begin;
        if is_open && slot.upload.id.is_empty() && slot.link.as_ref().is_some_and(Link::has_sent) {
            self.leave(&slot.name, b"");
        }
    }

    /// Leaves an upload to the end of the run. `name` is escaped.
    pub(super) fn leave(&self, name: &[u8], id: &[u8]) {
        let upload = LostUpload { key: text::unescape(name), id: id.to_vec() };
        let mut lost = self.own.lost.lock();
        if !lost.contains(&upload) {
            lost.push(upload);
        }
    }

    fn advanced(&mut self, slot: &mut Slot, operation: &ObjectOperation, reply: &Reply) {
        match slot.step {
            Step::Whole => self.whole(slot, operation, reply),
            Step::Begin => {
                let upload = &mut slot.upload;
                upload.id.clear();
                upload.id.extend_from_slice(&slot.scanner.found().upload);
                if upload.id.is_empty() || !slot.scanner.is("InitiateMultipartUploadResult") {
                    upload.id.clear();
                    return self.failed(slot, operation, Trouble::Malformed("it does not name an upload"));
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
            Step::Complete if !slot.scanner.is("CompleteMultipartUploadResult") => {
                let why = "it does not confirm that the parts were combined";
                self.failed(slot, operation, Trouble::Malformed(why));
            }
            Step::Complete => {
                slot.upload.id.clear();
                self.own.put.add(operation.record);
                self.finish(slot, operation, operation.value_bytes as i64);
            }
            Step::Abort => {
                slot.upload.id.clear();
                self.finish(slot, operation, slot.outcome);
            }
            Step::Owner => self.owner_known(slot, operation, reply),
        }
    }

    /// The answer of an operation that is one request, or a page of a list.
    fn whole(&mut self, slot: &mut Slot, operation: &ObjectOperation, reply: &Reply) {
        match operation.operation {
            ObjectOp::Put if !slot.scanner.found().root.is_empty() => {
                let why = "the answer to a put must have no XML body";
                self.failed(slot, operation, Trouble::Malformed(why));
            }
            ObjectOp::Put => {
                self.own.put.add(operation.record);
                self.finish(slot, operation, operation.value_bytes as i64);
            }
            ObjectOp::Remove => {
                self.own.put.remove(operation.record);
                self.finish(slot, operation, 0);
            }
            ObjectOp::Stat => self.finish(slot, operation, reply.bytes as i64),
            ObjectOp::Read if operation.value_bytes > 0 => {
                if reply.status != 206 || reply.range_begin != Some(operation.offset_bytes) {
                    let why = "another range than the requested one was returned";
                    return self.failed(slot, operation, Trouble::Malformed(why));
                }
                self.finish(slot, operation, reply.bytes as i64);
            }
            ObjectOp::Get | ObjectOp::Read => self.finish(slot, operation, reply.bytes as i64),
            ObjectOp::List => self.listed(slot, operation),
            _ => self.finish(slot, operation, 0),
        }
    }

    /// A page of a list.
    fn listed(&mut self, slot: &mut Slot, operation: &ObjectOperation) {
        let found = slot.scanner.found();
        if slot.token.is_empty() {
            slot.circle.reset();
        }
        let why = if !slot.scanner.is(LIST) {
            Some(NO_LIST)
        } else if found.is_truncated && found.token.is_empty() {
            Some(NO_TOKEN)
        } else if found.is_truncated && slot.circle.closes(&found.token) {
            Some(TOKEN_AGAIN)
        } else {
            None
        };
        if let Some(why) = why {
            slot.token.clear();
            return self.failed(slot, operation, Trouble::Malformed(why));
        }
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

    /// The operation has failed; what it has begun is undone first.
    pub(super) fn give_up(&mut self, slot: &mut Slot, operation: &ObjectOperation, result: i64) {
        if slot.upload.id.is_empty() {
            return self.finish(slot, operation, result);
        }
        if slot.step == Step::Abort {
            self.troubles.add(|| {
                let name = String::from_utf8_lossy(&slot.name);
                format!("object {name}: its upload could not be aborted; it is retried at the end")
            });
            self.leave(&slot.name, &slot.upload.id);
            slot.upload.id.clear();
            return self.finish(slot, operation, slot.outcome);
        }
        (slot.step, slot.outcome, slot.tries) = (Step::Abort, result, 0);
        slot.deadline_ns = self.now_ns + ABORT_NS;
        self.request(slot, operation);
    }

    /// The time of an operation is over.
    pub(super) fn timed_out(&mut self, slot: &mut Slot, operation: &ObjectOperation) {
        self.remember_lost(slot);
        slot.link = None;
        let endpoint = &self.site.endpoints[slot.endpoint].name;
        let limit_ns = self.site.timeout_ns;
        let words = || format!("no answer in {} ms", limit_ns / 1_000_000);
        self.answers.failed(endpoint, Cause::Silent, words, false);
        self.give_up(slot, operation, -i64::from(libc::ETIMEDOUT));
    }

    pub(super) fn finish(&mut self, slot: &mut Slot, operation: &ObjectOperation, result: i64) {
        slot.watch.pass(None);
        if self.is_staged && operation.operation.loads() && result > 0 {
            // SAFETY: the slot is in flight, and nothing else refers to its memory.
            let from = unsafe { self.memory.slot_mut(operation.slot, result as usize) };
            // SAFETY: as above, for the worker's buffer.
            unsafe { self.arena.slot_mut(operation.slot, result as usize) }.copy_from_slice(from);
        }
        slot.operation = None;
        slot.state = State::Idle;
        self.in_flight.end(operation.slot, result);
    }
}
