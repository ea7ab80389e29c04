//! Erasure-coded values over the shards of a group.

use std::ops::Range;
use std::sync::Arc;

use workload::random::derive_seed;

use super::volume::{At, Volume, any_found};
use crate::erasure::{Coder, EXTENT_CELL_BYTES, Striping, TAG_BYTES, Tag, cell_bytes, cell_range};
use crate::model::Epoch;
use crate::store::{Order, Punch, Read, StoreError, Write};

/// Codes values of one worker. Its memory is that of the largest value, from the start.
pub(super) struct Coded {
    coder: Coder,
    striping: Striping,
    /// All cells one behind the other, those of data first.
    cells: Vec<u8>,
    /// Whole stripes, as they lie in the array.
    stripes: Vec<u8>,
    /// One cell with its tag.
    cell: Vec<u8>,
    /// Stamp of the last update.
    stamp: u64,
    locks: Arc<Order>,
}

/// A cell of a single value that was found.
#[derive(Clone, Copy)]
struct Found {
    tag: Tag,
    epoch: Epoch,
}

impl Coded {
    pub(super) fn new(data: u8, parity: u8, bytes_max: usize, locks: Arc<Order>) -> Self {
        let striping = Striping::new(usize::from(data));
        let stripe = striping.stripe_bytes() as usize;
        let stripes = bytes_max.next_multiple_of(stripe) + stripe;
        let all = usize::from(data) + usize::from(parity);
        let cell = (stripes / usize::from(data)).max(cell_bytes(bytes_max, usize::from(data)));
        // Unique among the updates of all workers and runs, as far as clocks and addresses go.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let place = Arc::as_ptr(&locks) as u64;
        let mut coded = Self {
            coder: Coder::new(data, parity),
            striping,
            cells: Vec::with_capacity(cell * all),
            stripes: Vec::with_capacity(stripes),
            cell: Vec::with_capacity(cell + TAG_BYTES),
            stamp: 0,
            locks,
        };
        let own = coded.cells.as_ptr() as u64;
        coded.stamp = derive_seed(now.as_nanos() as u64, &[u64::from(std::process::id()), place, own]);
        coded
    }

    pub(super) fn data(&self) -> usize {
        self.coder.data()
    }

    fn shards(&self) -> usize {
        self.coder.data() + self.coder.parity()
    }

    pub(super) fn write(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        write: Write,
        data: &[u8],
    ) -> Result<(), StoreError> {
        match write {
            Write::Single => self.write_single(volume, at, data),
            Write::Extent { offset_bytes } => self.write_extent(volume, at, offset_bytes, data),
        }
    }

    pub(super) fn read(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        read: Read,
        into: &mut [u8],
    ) -> Result<u64, StoreError> {
        match read {
            Read::Single => self.read_single(volume, at, into),
            Read::Extent { offset_bytes } => self.read_extent(volume, at, offset_bytes, into),
        }
    }

    fn write_single(&mut self, volume: &mut Volume, at: &At<'_>, data: &[u8]) -> Result<(), StoreError> {
        let k = self.data();
        let cell = cell_bytes(data.len(), k);
        self.cells.clear();
        self.cells.resize(cell * self.coder.parity(), 0);
        self.coder.encode(data, cell, &mut self.cells);
        self.stamp = self.stamp.wrapping_add(1);
        let tag = Tag { value_bytes: data.len() as u64, stamp: self.stamp }.encode();
        let locks = Arc::clone(&self.locks);
        let _turn = locks.of(at.object, at.dkey);
        for shard in 0..self.shards() {
            let part = match shard.checked_sub(k) {
                None => &data[cell_range(data.len(), k, shard)],
                Some(parity) => &self.cells[parity * cell..(parity + 1) * cell],
            };
            let target = volume.shard(at, shard);
            let place = volume.place(at);
            let mut room = volume.targets[target].reserve(&place, Write::Single, part.len() + TAG_BYTES)?;
            room[..part.len()].copy_from_slice(part);
            room[part.len()..].copy_from_slice(&tag);
            room.publish(volume.ack)?;
            volume.touch(target);
        }
        Ok(())
    }

    /// Reads a cell into `self.cell`, without its tag.
    fn read_cell(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        shard: usize,
        epoch: Option<Epoch>,
        room: usize,
    ) -> Result<Found, StoreError> {
        self.cell.clear();
        self.cell.resize(room + TAG_BYTES, 0);
        let target = volume.shard(at, shard);
        let found = volume.targets[target].fetch(&volume.place(at), Read::Single, epoch, &mut self.cell);
        if found == Err(StoreError::Damaged) {
            volume.collect_findings(target);
        }
        let found = found?;
        self.cell.truncate(found.bytes as usize);
        let (cell, tag) = Tag::split(&self.cell).ok_or(StoreError::Damaged)?;
        let bytes = cell.len();
        self.cell.truncate(bytes);
        Ok(Found { tag, epoch: found.epoch })
    }

    fn read_single(&mut self, volume: &mut Volume, at: &At<'_>, into: &mut [u8]) -> Result<u64, StoreError> {
        let (k, room) = (self.data(), cell_bytes(into.len(), self.data()));
        let (mut end, mut first): (usize, Option<Tag>) = (0, None);
        for shard in 0..k {
            let found = match self.read_cell(volume, at, shard, None, room) {
                Ok(found) => found,
                Err(StoreError::BufferTooSmall) => return Err(StoreError::BufferTooSmall),
                Err(_) => return self.restore_single(volume, at, into),
            };
            let first = *first.get_or_insert(found.tag);
            if found.tag != first || first.value_bytes > into.len() as u64 {
                break;
            }
            let part = end..end + self.cell.len();
            into.get_mut(part).ok_or(StoreError::Damaged)?.copy_from_slice(&self.cell);
            end += self.cell.len();
        }
        match first {
            Some(tag) if tag.value_bytes == end as u64 => Ok(tag.value_bytes),
            Some(tag) if tag.value_bytes > into.len() as u64 => Err(StoreError::BufferTooSmall),
            _ => self.restore_single(volume, at, into),
        }
    }

    /// Reads a value of which a cell is damaged, missing or of another update. An update that was cut off by a crash was never
    /// acknowledged: where too few of its cells are there, those of the update before it are read.
    #[cold]
    fn restore_single(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        into: &mut [u8],
    ) -> Result<u64, StoreError> {
        let room = cell_bytes(into.len(), self.data());
        let mut latest = Vec::with_capacity(self.shards());
        for shard in 0..self.shards() {
            latest.push(self.read_cell(volume, at, shard, None, room));
        }
        if latest.iter().all(|found| matches!(found, Err(StoreError::NotFound))) {
            return Err(StoreError::NotFound);
        }
        let mut tags: Vec<Tag> = latest.iter().flatten().map(|found| found.tag).collect();
        let count = |tag: &Tag| latest.iter().flatten().filter(|found| found.tag == *tag).count();
        tags.sort_by_key(|tag| std::cmp::Reverse(count(tag)));
        tags.dedup();
        for tag in tags.iter().filter(|tag| tag.value_bytes <= into.len() as u64) {
            let cell = cell_bytes(tag.value_bytes as usize, self.data());
            self.cells.clear();
            self.cells.resize(cell * self.shards(), 0);
            let mut present = 0;
            for (shard, found) in latest.iter().enumerate() {
                let Ok(found) = found else { continue };
                let epoch = if found.tag == *tag { None } else { Some(found.epoch.saturating_sub(1)) };
                let is_of_tag =
                    self.read_cell(volume, at, shard, epoch, room).is_ok_and(|found| found.tag == *tag);
                if is_of_tag && self.cell.len() <= cell {
                    self.cells[shard * cell..][..self.cell.len()].copy_from_slice(&self.cell);
                    present |= 1 << shard;
                }
            }
            if self.coder.reconstruct(&mut self.cells, cell, present).is_ok() {
                let bytes = tag.value_bytes as usize;
                into[..bytes].copy_from_slice(&self.cells[..bytes]);
                volume.note_repair(at, "the value was put together from its other cells");
                return Ok(tag.value_bytes);
            }
        }
        Err(StoreError::Damaged)
    }

    pub(super) fn size_of(&mut self, volume: &mut Volume, at: &At<'_>) -> Result<u64, StoreError> {
        let mut bytes = 0;
        for shard in 0..self.data() {
            let target = volume.shard(at, shard);
            let stored = volume.targets[target].size_of(&volume.place(at), None)?;
            bytes += stored.saturating_sub(TAG_BYTES as u64);
        }
        Ok(bytes)
    }

    /// Where an array ends when its part on shard `shard` ends at `end_bytes`.
    pub(super) fn array_end(&self, shard: usize, end_bytes: u64) -> u64 {
        end_bytes.checked_sub(1).map_or(0, |last| self.striping.global(shard, last) + 1)
    }

    fn write_extent(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<(), StoreError> {
        let extent = offset_bytes..offset_bytes + data.len() as u64;
        let locks = Arc::clone(&self.locks);
        let _turn = locks.of(at.object, at.dkey);
        let whole = self.load_stripes(volume, at, &extent)?;
        let from = (extent.start - whole.start) as usize;
        self.stripes[from..from + data.len()].copy_from_slice(data);
        for shard in 0..self.data() {
            let local = self.striping.local(shard, &extent);
            if local.is_empty() {
                continue;
            }
            let target = volume.shard(at, shard);
            let write = Write::Extent { offset_bytes: local.start };
            let bytes = (local.end - local.start) as usize;
            let place = volume.place(at);
            let mut room = volume.targets[target].reserve(&place, write, bytes)?;
            self.striping.gather(shard, &local, &self.stripes, whole.start, &mut room);
            room.publish(volume.ack)?;
            volume.touch(target);
        }
        self.write_parity(volume, at, &whole)
    }

    pub(super) fn punch(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        extent: &Range<u64>,
    ) -> Result<(), StoreError> {
        let locks = Arc::clone(&self.locks);
        let _turn = locks.of(at.object, at.dkey);
        let whole = self.load_stripes(volume, at, extent)?;
        let from = (extent.start - whole.start) as usize;
        self.stripes[from..from + (extent.end - extent.start) as usize].fill(0);
        let mut result = Err(StoreError::NotFound);
        for shard in 0..self.data() {
            let local = self.striping.local(shard, extent);
            if local.is_empty() {
                continue;
            }
            let what = Punch::Record { offset_bytes: local.start, bytes: local.end - local.start };
            let target = volume.shard(at, shard);
            let punched = volume.targets[target].punch(&volume.place(at), what, volume.ack);
            result = any_found(result, punched.map(drop))?;
            volume.touch(target);
        }
        result?;
        self.write_parity(volume, at, &whole)
    }

    /// Brings the stripes around an extent into `self.stripes`: those at its ends with what they hold, the others as zeros.
    fn load_stripes(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        extent: &Range<u64>,
    ) -> Result<Range<u64>, StoreError> {
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
            result = match self.read_extent(volume, at, begin, part) {
                Err(StoreError::NotFound) => result,
                Err(error) => Err(error),
                Ok(end) => result.and(Ok(end)),
            };
        }
        self.stripes = stripes;
        result.map(|_| whole)
    }

    /// Computes the parity of `self.stripes`, which lie at `whole`, and writes it.
    fn write_parity(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        whole: &Range<u64>,
    ) -> Result<(), StoreError> {
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
        let offset_bytes = whole.start / self.striping.stripe_bytes() * EXTENT_CELL_BYTES;
        for shard in k..self.shards() {
            let target = volume.shard(at, shard);
            let cell = &self.cells[shard * bytes..(shard + 1) * bytes];
            volume.targets[target].update(
                &volume.place(at),
                Write::Extent { offset_bytes },
                cell,
                volume.ack,
            )?;
            volume.touch(target);
        }
        Ok(())
    }

    fn read_extent(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        offset_bytes: u64,
        into: &mut [u8],
    ) -> Result<u64, StoreError> {
        let extent = offset_bytes..offset_bytes + into.len() as u64;
        let (mut end, mut result) = (0, Err(StoreError::NotFound));
        for shard in 0..self.data() {
            let local = self.striping.local(shard, &extent);
            let bytes = (local.end - local.start) as usize;
            if bytes == 0 {
                continue;
            }
            self.cell.clear();
            self.cell.resize(bytes, 0);
            let target = volume.shard(at, shard);
            let read = Read::Extent { offset_bytes: local.start };
            let found = volume.targets[target].fetch(&volume.place(at), read, None, &mut self.cell);
            let local_end = match found {
                Ok(found) => found.end_bytes,
                Err(StoreError::NotFound) => 0,
                Err(StoreError::Damaged) => {
                    volume.collect_findings(target);
                    self.restore_extent(volume, at, shard, &local)?
                }
                Err(error) => return Err(error),
            };
            result = any_found(
                result,
                found.map(drop).or_else(|error| match error {
                    StoreError::Damaged => Ok(()),
                    error => Err(error),
                }),
            )?;
            self.striping.scatter(shard, &local, &self.cell, into, extent.start);
            if local_end > 0 {
                let last = self.striping.global(shard, local.start + local_end - 1);
                end = end.max(last + 1 - extent.start);
            }
        }
        result.map(|()| end)
    }

    /// Puts the part `local` of a damaged shard together from the other shards, into `self.cell`. Returns where its last stored byte
    /// ends.
    #[cold]
    fn restore_extent(
        &mut self,
        volume: &mut Volume,
        at: &At<'_>,
        damaged: usize,
        local: &Range<u64>,
    ) -> Result<u64, StoreError> {
        let cell = EXTENT_CELL_BYTES;
        let whole = local.start / cell * cell..local.end.div_ceil(cell) * cell;
        let bytes = (whole.end - whole.start) as usize;
        let mut cells = vec![0; bytes * self.shards()];
        let mut present = 0;
        for shard in (0..self.shards()).filter(|&shard| shard != damaged) {
            let target = volume.shard(at, shard);
            let part = &mut cells[shard * bytes..(shard + 1) * bytes];
            let read = Read::Extent { offset_bytes: whole.start };
            // A shard that has nothing there has zeros: parity was computed so.
            match volume.targets[target].fetch(&volume.place(at), read, None, part) {
                Ok(_) | Err(StoreError::NotFound) => present |= 1 << shard,
                Err(StoreError::Damaged) => volume.collect_findings(target),
                Err(error) => return Err(error),
            }
        }
        self.coder.reconstruct(&mut cells, bytes, present).map_err(|_| StoreError::Damaged)?;
        volume.note_repair(at, "its bytes were put together from the other cells");
        let from = damaged * bytes + (local.start - whole.start) as usize;
        self.cell.copy_from_slice(&cells[from..from + (local.end - local.start) as usize]);
        let target = volume.shard(at, damaged);
        let stored_end = volume.targets[target].size_of(&volume.place(at), None)?;
        Ok(stored_end.min(local.end).saturating_sub(local.start))
    }
}
