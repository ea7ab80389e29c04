//! Extents of arrays in cells: whole stripes, parts of them, holes.

use std::ops::Range;

use super::group::{Group, Rooms, part_of};
use super::{Coded, Flaw};
use crate::erasure::EXTENT_CELL_BYTES;
use crate::{Held, Punch, Read, Reservation, StoreError, change};

/// Most bytes that a punch loads into memory at once.
const PUNCHED_BYTES_MAX: u64 = 4 << 20;

/// An extent of an array.
///
/// # Errors
/// [`StoreError::InvalidKey`]: it ends beyond 2^63 bytes, which leaves room for the stripes around it.
pub fn extent_of(offset_bytes: u64, bytes: u64) -> Result<Range<u64>, StoreError> {
    let end = offset_bytes.checked_add(bytes).filter(|end| *end <= i64::MAX as u64);
    end.map(|end| offset_bytes..end).ok_or(StoreError::InvalidKey)
}

impl Coded {
    pub(super) fn write_extent(
        &mut self,
        group: &Group<'_>,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), StoreError> {
        let extent = extent_of(offset_bytes, data.len() as u64)?;
        let turn = group.turn();
        if self.striping.whole(&extent) == extent && !data.is_empty() {
            return self.write_stripes(group, &turn, &extent, data);
        }
        let whole = self.load_stripes(group, &extent)?;
        let from = (extent.start - whole.start) as usize;
        self.stripes[from..from + data.len()].copy_from_slice(data);
        self.encode_stripes(&whole);
        let locals = (0..self.data()).map(|shard| (shard, self.striping.local(shard, &extent)));
        let locals = locals.filter(|(_, local)| !local.is_empty()).chain(self.parity_of(&whole));
        let mut rooms = group.reserve(locals.map(|(shard, local)| part_of(shard, &local)).collect())?;
        for (shard, room) in rooms.iter_mut().filter(|(shard, _)| *shard < self.data()) {
            let local = self.striping.local(*shard, &extent);
            self.striping.gather(*shard, &local, &self.stripes, whole.start, room);
        }
        self.fill_parity(&mut rooms);
        group.publish(&turn, group.latest(self.data()), rooms)
    }

    /// Whole stripes: nothing that was there before matters.
    fn write_stripes(
        &mut self,
        group: &Group<'_>,
        turn: &Held<'_>,
        extent: &Range<u64>,
        data: &[u8],
    ) -> Result<(), StoreError> {
        let cell = self.striping.local(0, extent);
        let rooms = group.reserve((0..self.shards()).map(|shard| part_of(shard, &cell)).collect())?;
        let mut cells: Vec<Reservation> = rooms.into_iter().map(|(_, room)| room).collect();
        for (shard, room) in cells.iter_mut().enumerate().take(self.data()) {
            self.striping.gather(shard, &cell, data, extent.start, room);
        }
        self.coder.encode_cells(&mut cells, (cell.end - cell.start) as usize);
        group.publish(turn, 0, cells.into_iter().enumerate().collect())
    }

    /// Makes a part of an array a hole.
    ///
    /// # Errors
    /// As [`crate::Target::punch`].
    pub fn punch(&mut self, group: &Group<'_>, extent: &Range<u64>) -> Result<(), StoreError> {
        self.punch_extent(group, extent)?;
        group.settle(self.shards())
    }

    pub(super) fn punch_extent(&mut self, group: &Group<'_>, extent: &Range<u64>) -> Result<(), StoreError> {
        let turn = group.turn();
        let end = |shard| {
            let end_bytes = group.shard(shard).size_of(&group.place, None).ok()?;
            Some(self.striping.end(shard, end_bytes))
        };
        // Nothing lies behind the end, whatever is asked for.
        let stored_end = (0..self.data()).filter_map(end).max().ok_or(StoreError::NotFound)?;
        let end = extent.end.min(stored_end);
        let stripe = self.striping.stripe_bytes();
        let step = PUNCHED_BYTES_MAX / stripe * stripe;
        let mut at = extent.start;
        while at < end {
            let next = end.min((at / step + 1) * step);
            self.punch_part(group, &turn, &(at..next))?;
            at = next;
        }
        Ok(())
    }

    fn punch_part(
        &mut self,
        group: &Group<'_>,
        turn: &Held<'_>,
        extent: &Range<u64>,
    ) -> Result<(), StoreError> {
        let whole = self.load_stripes(group, extent)?;
        let from = (extent.start - whole.start) as usize;
        self.stripes[from..from + (extent.end - extent.start) as usize].fill(0);
        self.encode_stripes(&whole);
        let mut holes = Vec::with_capacity(self.data());
        for shard in 0..self.data() {
            let local = self.striping.local(shard, extent);
            let what = Punch::Record { offset_bytes: local.start, bytes: local.end - local.start };
            // A cell that was never written has nothing to lose.
            if !local.is_empty() && group.shard(shard).has(&group.place, what)? {
                holes.push((shard, what));
            }
        }
        let after = group.latest(self.data());
        change(turn, group.place, (holes.len() + self.coder.parity(), after), |change| {
            for (shard, what) in holes {
                change.punch(group.shard(shard), what, group.ack_of(shard))?;
            }
            let parity = self.parity_of(&whole).map(|(shard, local)| part_of(shard, &local));
            let mut rooms = group.reserve(parity.collect())?;
            self.fill_parity(&mut rooms);
            group.publish_in(change, rooms)
        })
    }

    /// Brings the stripes around an extent into `self.stripes`: those at its ends with what they hold, the others as zeros.
    fn load_stripes(&mut self, group: &Group<'_>, extent: &Range<u64>) -> Result<Range<u64>, StoreError> {
        let (whole, stripe) = (self.striping.whole(extent), self.striping.stripe_bytes());
        let mut stripes = std::mem::take(&mut self.stripes);
        stripes.clear();
        stripes.resize((whole.end - whole.start) as usize, 0);
        let (head, tail) = (whole.start, whole.end.saturating_sub(stripe));
        let (is_head_cut, is_tail_cut) = (extent.start != head, extent.end != whole.end);
        let cuts =
            [(is_head_cut || (is_tail_cut && head == tail), head), (is_tail_cut && head != tail, tail)];
        let mut result = Ok(0);
        for begin in cuts.into_iter().filter_map(|(is_cut, begin)| is_cut.then_some(begin)) {
            let within = (begin - whole.start) as usize;
            let part = &mut stripes[within..within + stripe as usize];
            result = match self.read_extent(group, begin, part) {
                Err(StoreError::NotFound) => result,
                Err(error) => Err(error),
                Ok(end) => result.and(Ok(end)),
            };
        }
        self.stripes = stripes;
        result.map(|_| whole)
    }

    /// Cuts `self.stripes`, which lie at `whole`, into cells, and computes their parity.
    fn encode_stripes(&mut self, whole: &Range<u64>) {
        let k = self.data();
        let bytes = self.stripes.len() / k;
        self.cells.clear();
        self.cells.resize(bytes * self.shards(), 0);
        for shard in 0..k {
            let local = self.striping.local(shard, whole);
            let cell = &mut self.cells[shard * bytes..(shard + 1) * bytes];
            self.striping.gather(shard, &local, &self.stripes, whole.start, cell);
        }
        let (data, parity) = self.cells.split_at_mut(bytes * k);
        self.coder.encode(data, bytes, parity);
    }

    /// The shards of parity, and where that of whole stripes lies on them.
    fn parity_of(&self, whole: &Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> + use<> {
        let local = self.striping.local(0, whole);
        (self.data()..self.shards()).map(move |shard| (shard, local.clone()))
    }

    /// Fills the rooms of parity.
    fn fill_parity(&self, rooms: &mut Rooms) {
        for (shard, room) in rooms.iter_mut().filter(|(shard, _)| *shard >= self.data()) {
            let bytes = room.len();
            room.copy_from_slice(&self.cells[*shard * bytes..(*shard + 1) * bytes]);
        }
    }

    pub(super) fn read_extent(
        &mut self,
        group: &Group<'_>,
        offset_bytes: u64,
        into: &mut [u8],
    ) -> Result<u64, StoreError> {
        let extent = extent_of(offset_bytes, into.len() as u64)?;
        let (mut end, mut result) = (0, Err(StoreError::NotFound));
        for shard in 0..self.data() {
            let local = self.striping.local(shard, &extent);
            let bytes = (local.end - local.start) as usize;
            if bytes == 0 {
                continue;
            }
            self.cell.clear();
            self.cell.resize(bytes, 0);
            let read = Read::Extent { offset_bytes: local.start };
            let local_end = match group.fetch(shard, read, group.epoch, &mut self.cell) {
                Ok(found) => Some(found.end_bytes),
                Err(error @ (StoreError::NotFound | StoreError::Damaged)) => {
                    self.restore_extent(group, shard, &local, error)?
                }
                Err(error) => return Err(error),
            };
            self.striping.scatter(shard, &local, &self.cell, into, extent.start);
            if let Some(local_end) = local_end {
                result = Ok(());
                if local_end > 0 {
                    let last = self.striping.global(shard, local.start + local_end - 1);
                    end = end.max(last + 1 - extent.start);
                }
            }
        }
        result.map(|()| end)
    }

    /// Puts the part `local` of a shard that is damaged, or has nothing, together from the other shards, into `self.cell`. Returns where its
    /// last stored byte ends; none where nobody ever stored any.
    #[cold]
    fn restore_extent(
        &mut self,
        group: &Group<'_>,
        lost: usize,
        local: &Range<u64>,
        error: StoreError,
    ) -> Result<Option<u64>, StoreError> {
        let cell = EXTENT_CELL_BYTES;
        let whole = local.start / cell * cell..local.end.div_ceil(cell) * cell;
        let bytes = (whole.end - whole.start) as usize;
        let mut cells = vec![0; bytes * self.shards()];
        let (mut present, mut absent, mut is_damaged) = (0_u32, 0_u32, error == StoreError::Damaged);
        for shard in (0..self.shards()).filter(|&shard| shard != lost) {
            let part = &mut cells[shard * bytes..(shard + 1) * bytes];
            match group.fetch(shard, Read::Extent { offset_bytes: whole.start }, group.epoch, part) {
                Ok(_) => present |= 1 << shard,
                Err(StoreError::NotFound) => absent |= 1 << shard,
                Err(StoreError::Damaged) => is_damaged = true,
                Err(error) => return Err(error),
            }
        }
        self.cell.fill(0);
        if present == 0 && !is_damaged {
            return Ok(None);
        }
        // Where enough others are there, what has nothing may have lost it; else it was never written, and parity was computed with zeros.
        if (present.count_ones() as usize) < self.data() {
            present |= absent;
        }
        self.coder.reconstruct(&mut cells, bytes, present).map_err(|_| StoreError::Damaged)?;
        let from = lost * bytes + (local.start - whole.start) as usize;
        self.cell.copy_from_slice(&cells[from..from + (local.end - local.start) as usize]);
        if error == StoreError::NotFound && self.cell.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        self.flaw = Some(if is_damaged { Flaw::Damaged } else { Flaw::Missing });
        // What a cell that is gone has stored is not known: all that parity tells of.
        let teller = if error == StoreError::Damaged { lost } else { self.data() };
        let stored_end = group.shard(teller).size_of(&group.place, group.epoch)?;
        Ok(Some(stored_end.min(local.end).saturating_sub(local.start)))
    }
}
