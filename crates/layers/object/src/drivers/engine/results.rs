//! Results of requests.
#![allow(unsafe_code)]

use rpc::client::Done;

use super::driver::{EngineDriver, Piece};
use super::operations::ATTRIBUTES_BYTES;
use crate::plan::ObjectOp;
use object_service::opcode;
use object_service::wire::Reader;

impl EngineDriver {
    /// Takes in a request that is done. The operation is done with its last one.
    #[inline]
    pub(super) fn take_in(&mut self, done: &Done) {
        let slot = done.slot / self.geometry.fan;
        let running = &mut self.running[slot as usize];
        running.left -= 1;
        if done.status == 0 {
            let came = done.inline_bytes + done.bulk_bytes;
            self.add(slot, done.slot, came as usize);
        } else {
            self.fail(slot, done);
        }
        if self.running[slot as usize].left == 0 {
            self.watch.ends(slot, done.slot);
            if !self.goes_on(slot, done) {
                self.complete(slot);
            }
        }
    }

    /// A request that failed. Some operations ask many and take it that not all have something.
    #[cold]
    fn fail(&mut self, slot: u32, done: &Done) {
        if done.status == -libc::EBADMSG {
            self.note_damage(slot, self.pieces[done.slot as usize].endpoint);
        }
        self.count_failure(done);
        let is_flawed = matches!(done.status.saturating_neg(), libc::EBADMSG | libc::EUCLEAN);
        let is_elsewhere = self.striping.is_none() && done.status != -libc::ENOENT;
        let is_repairable = (is_flawed || is_elsewhere) && self.running[slot as usize].errno == 0;
        if is_repairable && self.ask_next_copy(done.slot) {
            self.repaired += 1;
            return;
        }
        let piece = self.pieces[done.slot as usize];
        let running = &mut self.running[slot as usize];
        let asks_many = matches!(
            running.operation.operation,
            ObjectOp::Read
                | ObjectOp::Size
                | ObjectOp::Query
                | ObjectOp::Iterate
                | ObjectOp::Destroy
                | ObjectOp::Punch
                | ObjectOp::Remove
                | ObjectOp::List
        );
        if done.status == -libc::ENOENT && asks_many {
            running.missed += 1;
            let is_open = self.reopens && running.stage == 0;
            if running.operation.operation == ObjectOp::Read && !is_open {
                self.clear(slot, piece, 0);
            }
            return;
        }
        if running.errno == 0 {
            (running.errno, running.failed_at) = (done.status, piece.endpoint);
        }
    }

    /// Keeps whose data was damaged.
    #[cold]
    pub(super) fn note_damage(&mut self, slot: u32, endpoint: u32) {
        self.damaged.add(|| (self.running[slot as usize].operation, endpoint));
    }

    /// Counts what an endpoint that is gone, or one that is no store's, has failed.
    pub(super) fn count_failure(&mut self, done: &Done) {
        let endpoint = self.pieces[done.slot as usize].endpoint;
        let is_lost = !matches!(
            done.status.saturating_neg(),
            libc::ENOENT
                | libc::ENOSPC
                | libc::EBADMSG
                | libc::EUCLEAN
                | libc::EINVAL
                | libc::EOVERFLOW
                | libc::EFBIG
        );
        if is_lost {
            let failures = &mut self.failures[endpoint.min(self.targets) as usize];
            failures.count += 1;
            failures.errno = done.status.saturating_neg();
        }
    }

    /// Adds what a request has brought to what its operation has come to.
    #[inline]
    fn add(&mut self, slot: u32, number: u32, came: usize) {
        let running = &self.running[slot as usize];
        let operation = running.operation.operation;
        match operation {
            ObjectOp::Read | ObjectOp::Write if self.reopens && running.stage == 0 => {
                if came != ATTRIBUTES_BYTES {
                    self.malformed(slot);
                }
            }
            ObjectOp::Fetch | ObjectOp::Get | ObjectOp::Read => {
                let piece = self.pieces[number as usize];
                if came < piece.length {
                    self.clear(slot, piece, came);
                }
                if came > 0 {
                    let sum = &mut self.running[slot as usize].sum;
                    *sum = (*sum).max((piece.offset + came) as u64);
                }
            }
            ObjectOp::Update
            | ObjectOp::Put
            | ObjectOp::Write
            | ObjectOp::Punch
            | ObjectOp::Remove
            | ObjectOp::Create
            | ObjectOp::Destroy
            | ObjectOp::OpenWithAttr => {}
            _ => self.add_facts(slot, number, operation, came),
        }
    }

    /// The same for replies that are facts and no values.
    fn add_facts(&mut self, slot: u32, number: u32, operation: ObjectOp, came: usize) {
        // SAFETY: the request is done, so its memory is the driver's alone.
        let reply = &*unsafe { self.scratch.slot_mut(number, came) };
        let mut reader = Reader(reply);
        let shard = self.pieces[number as usize].shard as usize;
        let running = &mut self.running[slot as usize];
        let value = match operation {
            ObjectOp::Size | ObjectOp::Query => {
                let (Ok(dkey), Ok(end)) = (reader.long(), reader.long()) else { return self.malformed(slot) };
                // Dkey 0 has the attributes.
                let end = match self.striping {
                    _ if dkey == 0 => 0,
                    Some(striping) => striping.end(shard, end),
                    None => end,
                };
                let end =
                    dkey.saturating_sub(1).saturating_mul(self.geometry.chunk_bytes).saturating_add(end);
                let is_size = operation == ObjectOp::Size;
                let value = if is_size { end } else { dkey };
                running.sum.max(value)
            }
            ObjectOp::List => {
                let (Ok(count), Ok(anchor)) = (reader.word(), reader.bytes(16)) else {
                    return self.malformed(slot);
                };
                let cursor = &mut self.cursors[slot as usize];
                cursor.anchor.copy_from_slice(anchor);
                cursor.is_begun = true;
                running.sum + u64::from(count)
            }
            ObjectOp::Open => {
                if came != ATTRIBUTES_BYTES {
                    return self.malformed(slot);
                }
                0
            }
            ObjectOp::OpenContainer => 0,
            _ => {
                let Ok(value) = reader.long() else { return self.malformed(slot) };
                running.sum.saturating_add(value)
            }
        };
        running.sum = value;
    }

    #[cold]
    fn malformed(&mut self, slot: u32) {
        let running = &mut self.running[slot as usize];
        running.errno = if running.errno == 0 { -libc::EPROTO } else { running.errno };
    }

    /// Zeros the parts of a value that are not stored.
    #[cold]
    fn clear(&mut self, slot: u32, piece: Piece, from: usize) {
        let arena = self.staging.as_ref().unwrap_or(&self.values);
        // SAFETY: the slot is the driver's from submit to completion; the piece lies inside, or it would not have been sent.
        let value = unsafe { arena.slot_mut(slot, piece.offset + piece.length) };
        value[piece.offset + from..].fill(0);
    }

    /// Whether the operation has another step, which was begun.
    #[inline]
    fn goes_on(&mut self, slot: u32, done: &Done) -> bool {
        match self.running[slot as usize].operation.operation {
            ObjectOp::OpenContainer => self.closes_again(slot, done),
            ObjectOp::List => self.lists_on(slot),
            ObjectOp::Read | ObjectOp::Write if self.reopens => self.transfers_now(slot),
            _ => false,
        }
    }

    /// A container that was opened is closed again.
    fn closes_again(&mut self, slot: u32, done: &Done) -> bool {
        let running = &mut self.running[slot as usize];
        if running.errno != 0 || running.stage > 0 {
            return false;
        }
        (running.stage, running.requests) = (1, 0);
        let came = (done.inline_bytes as usize).min(self.scratch.slot_bytes());
        // SAFETY: the request is done, so its memory is the driver's alone.
        let reply = &*unsafe { self.scratch.slot_mut(done.slot, came) };
        let Some(handle) = object_service::handle_of(reply) else {
            self.malformed(slot);
            return false;
        };
        let own = std::mem::replace(&mut self.handle, handle);
        let ask = self.about_container(slot, opcode::CLOSE_CONTAINER);
        let now_ns = self.channel.now_ns();
        self.ask(slot, &ask, now_ns);
        self.handle = own;
        self.running[slot as usize].left > 0
    }

    /// An array that was opened is written or read.
    fn transfers_now(&mut self, slot: u32) -> bool {
        let running = &mut self.running[slot as usize];
        if running.stage > 0 {
            return false;
        }
        if running.missed > 0 && running.errno == 0 {
            running.errno = -libc::ENOENT;
        }
        if running.errno != 0 {
            return false;
        }
        (running.stage, running.requests) = (1, 0);
        let operation = running.operation;
        let now_ns = self.channel.now_ns();
        self.transfer(&operation, now_ns);
        self.running[slot as usize].left > 0
    }

    /// Goes to the next group when one is listed to its end, as long as there is room in the list.
    fn lists_on(&mut self, slot: u32) -> bool {
        let running = &mut self.running[slot as usize];
        if running.errno != 0 {
            return false;
        }
        let has_missed = std::mem::take(&mut running.missed) > 0;
        // Byte 12 of an anchor says that it is the end.
        let cursor = &mut self.cursors[slot as usize];
        let is_end = has_missed || cursor.anchor[12] != 0;
        if is_end {
            cursor.group += 1;
            (cursor.is_begun, cursor.anchor) = (false, [0; 16]);
        }
        // The stage says that the list began at the beginning and has found no object yet.
        if !has_missed {
            running.stage = 0;
        }
        let is_last = cursor.group >= self.placement.groups();
        if is_last && running.stage == 1 {
            running.errno = -libc::ENOENT;
        }
        if is_last || running.sum >= u64::from(self.plan.list_max) || !is_end {
            return false;
        }
        running.requests = 0;
        let operation = running.operation;
        let now_ns = self.channel.now_ns();
        self.list_on(&operation, now_ns);
        self.running[slot as usize].left > 0
    }

    /// The operation is done.
    #[inline]
    pub(super) fn complete(&mut self, slot: u32) {
        let running = &self.running[slot as usize];
        let operation = running.operation;
        let is_missing = running.requests > 0
            && running.missed == running.requests
            && matches!(
                operation.operation,
                ObjectOp::Destroy
                    | ObjectOp::Punch
                    | ObjectOp::Remove
                    | ObjectOp::Size
                    | ObjectOp::Query
                    | ObjectOp::Iterate
            );
        let result = match operation.operation {
            _ if running.errno != 0 => i64::from(running.errno),
            _ if is_missing => -i64::from(libc::ENOENT),
            ObjectOp::Update | ObjectOp::Put | ObjectOp::Write => operation.value_bytes as i64,
            ObjectOp::Open => 0,
            _ => running.sum.min(i64::MAX as u64) as i64,
        };
        if let (Some(staging), true, 1..) = (&self.staging, operation.operation.loads(), result) {
            let length = (operation.value_bytes as usize).min(staging.slot_bytes());
            // SAFETY: the slot is the driver's until its completion is handed over, in both arenas.
            let (from, to) =
                unsafe { (&*staging.slot_mut(slot, length), self.values.slot_mut(slot, length)) };
            to.copy_from_slice(from);
        }
        self.in_flight.end(slot, result);
    }
}
