//! Erasure-coded values: cells are made, and put together again, on this side. They lie in the store as `vos:` keeps them.
//!
//! Extents are written in whole stripes alone: to change a part of one, its parity would have to be read, computed and written while nobody
//! else does, and no lock reaches over the workers of several clients. They are read as they come.
#![allow(unsafe_code)]

use std::ops::Range;

use network::client::Done;
use workload::object::ObjectOp;

use super::coded::{Coded, local_of};
use super::driver::{EngineDriver, Piece};
use super::issue::{Ask, Moves};
use super::operations::ATTRIBUTES_BYTES;
use crate::ObjectOperation;
use crate::erasure::{EXTENT_CELL_BYTES, TAG_BYTES, Tag, cell_bytes, cell_range};
use crate::model::Key;
use crate::service::{opcode, select};

/// A stretch of a value that is coded by itself: a single value, or an extent under one dkey.
#[derive(Clone)]
struct Part {
    dkey: Key,
    akey: Key,
    /// Where it lies in the value.
    from: usize,
    length: usize,
    /// Where it lies under the dkey; none: it is a single value.
    extent: Option<Range<u64>>,
}

impl EngineDriver {
    /// Whether an operation moves coded values.
    #[inline]
    pub(super) fn is_coded(&self, operation: &ObjectOperation) -> bool {
        let kind = operation.operation;
        self.coded.is_some() && (kind.stores() || kind.loads() || is_about_attributes(kind))
    }

    /// The parts of an operation's value, in order.
    fn part(&self, operation: &ObjectOperation, index: u64) -> Option<Part> {
        let ObjectOperation { dkey, akey, offset_bytes, value_bytes, .. } = *operation;
        if is_about_attributes(operation.operation) {
            let (dkey, akey, length) = (Key::integer(0), Key::EMPTY, ATTRIBUTES_BYTES);
            return (index == 0).then_some(Part { dkey, akey, from: 0, length, extent: None });
        }
        let end = offset_bytes.checked_add(value_bytes)?;
        if matches!(operation.operation, ObjectOp::Write | ObjectOp::Read) {
            let chunk_bytes = self.geometry.chunk_bytes;
            let chunk = offset_bytes / chunk_bytes + index;
            let begin = offset_bytes.max(chunk * chunk_bytes);
            let stop = end.min((chunk + 1).saturating_mul(chunk_bytes));
            return (begin < stop).then(|| Part {
                dkey: Key::integer(chunk + 1),
                akey: Key::EMPTY,
                from: (begin - offset_bytes) as usize,
                length: (stop - begin) as usize,
                extent: Some(begin - chunk * chunk_bytes..stop - chunk * chunk_bytes),
            });
        }
        let (selector, _) = self.kind_of(operation);
        let extent = (selector == select::EXTENT).then_some(offset_bytes..end);
        (index == 0).then_some(Part { dkey, akey, from: 0, length: value_bytes as usize, extent })
    }

    /// Memory of the value of a part: the slot's buffer, or, for the attributes of an array, a request's own memory that none uses.
    #[allow(clippy::mut_from_ref)]
    fn memory(&self, operation: &ObjectOperation, part: &Part) -> &mut [u8] {
        let end = part.from + part.length;
        let memory = if is_about_attributes(operation.operation) {
            // SAFETY: the last number of a slot is no request's.
            unsafe { self.scratch.slot_mut(self.number(operation.slot, self.geometry.fan - 1), end) }
        } else {
            // SAFETY: the slot is the driver's from submit to completion.
            unsafe { self.values.slot_mut(operation.slot, end) }
        };
        &mut memory[part.from..]
    }

    /// Starts an operation on coded values.
    pub(super) fn begin_coded(&mut self, operation: &ObjectOperation, now_ns: u64) {
        if operation.operation == ObjectOp::Create
            && let Some(part) = self.part(operation, 0)
        {
            self.memory(operation, &part).copy_from_slice(&self.attributes());
        }
        if stores(operation.operation) {
            self.store_cells(operation, now_ns);
        } else {
            self.load_cells(operation, now_ns, false);
        }
    }

    fn cell_ask(&self, operation: &ObjectOperation, part: &Part, shard: usize) -> Ask {
        let endpoint = self.target(operation, &part.dkey, shard as u32);
        let selector = if part.extent.is_some() { select::EXTENT } else { select::SINGLE };
        let (dkey, akey, shard) = (part.dkey, part.akey, shard as u32);
        Ask { endpoint, selector, dkey, akey, shard, ..self.about(operation) }
    }

    fn store_cells(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let slot = operation.slot;
        let Some(mut coded) = self.coded.take() else { return };
        let mut index = 0;
        while let Some(part) = self.part(operation, index) {
            index += 1;
            let value = &*self.memory(operation, &part);
            let stripe = coded.striping.stripe_bytes();
            if part
                .extent
                .as_ref()
                .is_some_and(|e| !e.start.is_multiple_of(stripe) || !e.end.is_multiple_of(stripe))
            {
                self.refuse(slot);
                break;
            }
            let value_bytes = value.len();
            let bytes = coded.encode(value, part.extent.as_ref());
            coded.stamp = coded.stamp.wrapping_add(1);
            let tag = Tag { value_bytes: value_bytes as u64, stamp: coded.stamp }.encode();
            for shard in 0..coded.shards() {
                let cell = &coded.cells[shard * bytes..(shard + 1) * bytes];
                let is_single = part.extent.is_none();
                // The last cell of data ends with the value.
                let length = match is_single && shard < coded.coder.data() {
                    true => cell_range(value_bytes, coded.coder.data(), shard).len(),
                    false => bytes,
                };
                let all = length + if is_single { TAG_BYTES } else { 0 };
                let number = self.number(slot, self.running[slot as usize].requests);
                // SAFETY: the memory of a request is the driver's while it is not in flight.
                let room = unsafe { self.scratch.slot_mut(number, all) };
                room[..length].copy_from_slice(&cell[..length]);
                if is_single {
                    room[length..].copy_from_slice(&tag);
                }
                let offset =
                    part.extent.as_ref().map_or(0, |extent| extent.start / stripe * EXTENT_CELL_BYTES);
                let ask = Ask {
                    opcode: opcode::UPDATE,
                    offset,
                    length: all as u64,
                    moves: Moves::Scratch(all),
                    ..self.cell_ask(operation, &part, shard)
                };
                self.ask(slot, &ask, now_ns);
            }
        }
        self.coded = Some(coded);
    }

    /// Asks for the cells of data; where one of them is not as it should be, for all cells.
    fn load_cells(&mut self, operation: &ObjectOperation, now_ns: u64, is_repair: bool) {
        let Some(coded) = self.coded.take() else { return };
        let shards = if is_repair { coded.shards() } else { coded.coder.data() };
        let mut index = 0;
        while let Some(part) = self.part(operation, index) {
            index += 1;
            for shard in 0..shards {
                let (offset, length) = match &part.extent {
                    None => (0, (cell_bytes(part.length, coded.coder.data()) + TAG_BYTES) as u64),
                    Some(extent) => {
                        let local = local_of(&coded, shard, extent, is_repair);
                        (local.start, local.end - local.start)
                    }
                };
                if length == 0 {
                    self.skip(operation.slot);
                    continue;
                }
                let ask = Ask {
                    opcode: opcode::FETCH,
                    offset,
                    length,
                    moves: Moves::ToCell,
                    ..self.cell_ask(operation, &part, shard)
                };
                self.ask(operation.slot, &ask, now_ns);
            }
        }
        self.coded = Some(coded);
    }

    /// Counts a request that need not be sent: its cell has nothing.
    fn skip(&mut self, slot: u32) {
        let number = self.number(slot, self.running[slot as usize].requests);
        self.running[slot as usize].requests += 1;
        self.pieces[number as usize] = Piece { status: -libc::ENOENT, ..Piece::default() };
    }

    /// Notes how a request for a cell ended.
    pub(super) fn note_cell(&mut self, slot: u32, done: &Done) {
        let piece = &mut self.pieces[done.slot as usize];
        piece.status = done.status;
        piece.came = (done.inline_bytes + done.bulk_bytes) as usize;
        let endpoint = piece.endpoint;
        if done.status != 0 {
            self.count_failure(done);
            let running = &mut self.running[slot as usize];
            if done.status == -libc::EBADMSG {
                self.note_damage(slot, endpoint);
            } else if stores(running.operation.operation) && running.errno == 0 {
                running.errno = done.status;
            }
        }
    }

    /// All cells that were asked for are there, or failed. Whether more are asked for.
    pub(super) fn cells_go_on(&mut self, slot: u32) -> bool {
        let running = &self.running[slot as usize];
        let operation = running.operation;
        if stores(operation.operation) || running.errno != 0 {
            return false;
        }
        let is_repair = running.stage > 0;
        let Some(mut coded) = self.coded.take() else { return false };
        let result = self.assemble(&mut coded, &operation, is_repair);
        self.coded = Some(coded);
        let running = &mut self.running[slot as usize];
        match result {
            Ok(end) => running.sum = end,
            Err(errno) if is_repair || errno == libc::EOVERFLOW => running.errno = -errno,
            Err(_) => {
                (running.stage, running.requests) = (1, 0);
                let now_ns = self.channel.now_ns();
                self.load_cells(&operation, now_ns, true);
                return self.running[slot as usize].left > 0;
            }
        }
        self.repaired += u64::from(is_repair && self.running[slot as usize].errno == 0);
        false
    }

    /// Puts all parts of a value together; returns where the value, or its last stored byte, ends.
    fn assemble(&self, coded: &mut Coded, operation: &ObjectOperation, is_repair: bool) -> Result<u64, i32> {
        let per_part = if is_repair { coded.shards() } else { coded.coder.data() };
        let is_array_object = operation.operation == ObjectOp::Read;
        let mut end = 0;
        let mut index = 0;
        while let Some(part) = self.part(operation, index) {
            let first = self.number(operation.slot, index as u32 * per_part as u32);
            index += 1;
            let value = self.memory(operation, &part);
            let came = match &part.extent {
                None => self.join_single(coded, first, value, is_repair),
                Some(extent) => self.join_extent(coded, first, extent, value, is_repair),
            };
            match came {
                Ok(0) => {}
                Ok(bytes) => end = part.from as u64 + bytes,
                Err(libc::ENOENT) if is_array_object => value.fill(0),
                Err(errno) => return Err(errno),
            }
        }
        Ok(end)
    }

    /// What has come for a request.
    fn cell(&self, number: u32) -> Result<&[u8], i32> {
        let piece = &self.pieces[number as usize];
        if piece.status != 0 {
            return Err(-piece.status);
        }
        // SAFETY: the request is done, so its memory is the driver's alone.
        Ok(unsafe { self.scratch.slot_mut(number, piece.came.min(self.scratch.slot_bytes())) })
    }

    fn join_single(
        &self,
        coded: &mut Coded,
        first: u32,
        value: &mut [u8],
        is_repair: bool,
    ) -> Result<u64, i32> {
        let (data, per_part) =
            (coded.coder.data(), if is_repair { coded.shards() } else { coded.coder.data() });
        let tagged = |shard: usize| {
            let stored = self.cell(first + shard as u32)?;
            Tag::split(stored).ok_or(libc::EBADMSG)
        };
        if (0..per_part).all(|shard| matches!(tagged(shard), Err(libc::ENOENT))) {
            return Err(if is_repair { libc::ENOENT } else { libc::EBADMSG });
        }
        // The update of which most cells are there.
        let count =
            |tag: Tag| (0..per_part).filter(|&shard| tagged(shard).is_ok_and(|(_, own)| own == tag)).count();
        let tags = (0..per_part).filter_map(|shard| tagged(shard).ok().map(|(_, tag)| tag));
        let tag = tags.max_by_key(|&tag| count(tag)).ok_or(libc::EBADMSG)?;
        if (0..per_part).any(|shard| tagged(shard).is_err_and(|errno| errno == libc::EOVERFLOW))
            || tag.value_bytes > value.len() as u64
        {
            return Err(libc::EOVERFLOW);
        }
        let bytes = cell_bytes(tag.value_bytes as usize, data);
        coded.cells.clear();
        coded.cells.resize(bytes * coded.shards(), 0);
        let mut present = 0;
        for shard in 0..per_part {
            if let Ok((cell, own)) = tagged(shard)
                && own == tag
                && cell.len() <= bytes
            {
                coded.cells[shard * bytes..][..cell.len()].copy_from_slice(cell);
                present |= 1 << shard;
            }
        }
        coded.coder.reconstruct(&mut coded.cells, bytes, present).map_err(|_| libc::EBADMSG)?;
        let length = tag.value_bytes as usize;
        value[..length].copy_from_slice(&coded.cells[..length]);
        Ok(tag.value_bytes)
    }

    fn join_extent(
        &self,
        coded: &mut Coded,
        first: u32,
        extent: &Range<u64>,
        value: &mut [u8],
        is_repair: bool,
    ) -> Result<u64, i32> {
        let (data, per_part) =
            (coded.coder.data(), if is_repair { coded.shards() } else { coded.coder.data() });
        let longest = (0..per_part)
            .map(|shard| local_of(coded, shard, extent, is_repair))
            .map(|l| l.end - l.start)
            .max();
        let bytes = longest.unwrap_or(0).next_multiple_of(64) as usize;
        coded.cells.clear();
        coded.cells.resize(bytes * coded.shards(), 0);
        let (mut present, mut found, mut end) = (0, 0, 0);
        for shard in 0..per_part {
            match self.cell(first + shard as u32) {
                Ok(cell) => {
                    coded.cells[shard * bytes..][..cell.len().min(bytes)].copy_from_slice(cell);
                    (present, found) = (present | 1 << shard, found + 1);
                    if shard < data && !cell.is_empty() {
                        let local = local_of(coded, shard, extent, is_repair);
                        let last = coded.striping.global(shard, local.start + cell.len() as u64 - 1);
                        end = end.max((last + 1).min(extent.end).saturating_sub(extent.start));
                    }
                }
                // A shard that has nothing there has zeros: parity was computed so.
                Err(libc::ENOENT) => present |= 1 << shard,
                Err(errno) if !is_repair => return Err(errno),
                Err(_) => {}
            }
        }
        if found == 0 {
            return Err(libc::ENOENT);
        }
        if is_repair {
            coded.coder.reconstruct(&mut coded.cells, bytes, present).map_err(|_| libc::EBADMSG)?;
            // What a lost cell has stored is not known: as far as the others go, by whole stripes.
            let stripe = coded.striping.stripe_bytes();
            end = (extent.start + end).next_multiple_of(stripe).min(extent.end) - extent.start;
        }
        for shard in 0..data {
            let (own, asked) =
                (coded.striping.local(shard, extent), local_of(coded, shard, extent, is_repair));
            let from = shard * bytes + (own.start - asked.start) as usize;
            let cell = &coded.cells[from..from + (own.end - own.start) as usize];
            coded.striping.scatter(shard, &own, cell, value, extent.start);
        }
        Ok(end)
    }

    /// Shards of a group that hold data.
    pub(super) fn data_shards(&self) -> u32 {
        self.coded.as_ref().map_or(1, |coded| coded.coder.data() as u32)
    }
}

/// Whether an operation is about what is kept under dkey 0 of an array.
fn is_about_attributes(operation: ObjectOp) -> bool {
    matches!(operation, ObjectOp::Create | ObjectOp::Open)
}

/// Whether an operation writes cells.
fn stores(operation: ObjectOp) -> bool {
    operation.stores() || operation == ObjectOp::Create
}
