//! Erasure-coded values over the shards of a group: in the process that has the pool open, for its own workers and for the clients of an engine.
//!
//! All cells of an update are taken room for, filled and published in one turn of their dkey ([`crate::Order`]): writers have one order, readers see all of
//! an update or nothing of it, and one that fails in the middle is taken back. Room is taken in the order of targets: nobody waits for room that
//! is held by somebody who waits for his.

mod arrays;
mod group;

use units::random::derive_seed;

use crate::erasure::{Coder, Striping, TAG_BYTES, Tag, cell_bytes, cell_range};
use crate::model::Epoch;
use crate::{KeyPath, Read, StoreError, Write};

pub use arrays::extent_of;
pub use group::Group;

/// Why a value was not read as it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A cell is damaged.
    Damaged,
    /// A cell is missing, or of another update.
    Missing,
}

/// Codes values, for one thread.
pub struct Coded {
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
    /// Flaw that the last read had to make up for.
    flaw: Option<Flaw>,
}

/// A cell of a single value that was found.
#[derive(Clone, Copy)]
struct Found {
    tag: Tag,
    epoch: Epoch,
}

impl Coded {
    /// With memory for values of `bytes_max` from the start; it grows with larger ones.
    pub fn new(data: u8, parity: u8, bytes_max: usize) -> Self {
        let striping = Striping::new(usize::from(data));
        let stripe = striping.stripe_bytes() as usize;
        let stripes = bytes_max.next_multiple_of(stripe) + stripe;
        let all = usize::from(data) + usize::from(parity);
        let cell = (stripes / usize::from(data)).max(cell_bytes(bytes_max, usize::from(data)));
        // Unique among the updates of all threads and runs, as far as clocks and addresses go.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut coded = Self {
            coder: Coder::new(data, parity),
            striping,
            cells: Vec::with_capacity(cell * all),
            stripes: Vec::with_capacity(stripes),
            cell: Vec::with_capacity(cell + TAG_BYTES),
            stamp: 0,
            flaw: None,
        };
        let own = coded.cells.as_ptr() as u64;
        coded.stamp = derive_seed(now.as_nanos() as u64, &[u64::from(std::process::id()), own]);
        coded
    }

    /// Cells of data of a stripe.
    #[must_use]
    pub fn data(&self) -> usize {
        self.coder.data()
    }

    fn shards(&self) -> usize {
        self.coder.data() + self.coder.parity()
    }

    /// Flaw that the last read had to make up for, handed over once.
    pub fn take_flaw(&mut self) -> Option<Flaw> {
        self.flaw.take()
    }

    /// Gives memory back that is more than `bytes` each: a large value is no reason to keep it for ever.
    pub fn trim(&mut self, bytes: usize) {
        for memory in [&mut self.cells, &mut self.stripes, &mut self.cell] {
            if memory.capacity() > bytes {
                *memory = Vec::new();
            }
        }
    }

    /// Writes a value, all of its cells or none.
    ///
    /// # Errors
    /// As [`crate::Target::update`]; the value before stays then.
    pub fn write(&mut self, group: &Group<'_>, write: Write, data: &[u8]) -> Result<(), StoreError> {
        match write {
            Write::Single => self.write_single(group, data)?,
            Write::Extent { offset_bytes } => self.write_extent(group, offset_bytes, data)?,
        }
        group.settle(self.shards())
    }

    /// Reads a value as it is at one moment; returns where the last stored byte ends. Cells that are missing or damaged are made up for.
    ///
    /// # Errors
    /// As [`crate::Target::fetch`]; damaged: too few cells are left of the newest value that was whole.
    pub fn read(&mut self, group: &Group<'_>, read: Read, into: &mut [u8]) -> Result<u64, StoreError> {
        let KeyPath { object, dkey, .. } = group.place;
        group.order.together(object, dkey, || {
            self.flaw = None;
            match read {
                Read::Single => self.read_single(group, into),
                Read::Extent { offset_bytes } => self.read_extent(group, offset_bytes, into),
            }
        })
    }

    fn write_single(&mut self, group: &Group<'_>, data: &[u8]) -> Result<(), StoreError> {
        let k = self.data();
        let cell = cell_bytes(data.len(), k);
        self.cells.clear();
        self.cells.resize(cell * self.coder.parity(), 0);
        self.coder.encode(data, cell, &mut self.cells);
        self.stamp = self.stamp.wrapping_add(1);
        let tag = Tag { value_bytes: data.len() as u64, stamp: self.stamp }.encode();
        let part = |shard: usize| match shard.checked_sub(k) {
            None => &data[cell_range(data.len(), k, shard)],
            Some(parity) => &self.cells[parity * cell..(parity + 1) * cell],
        };
        let turn = group.turn();
        let wanted = (0..self.shards()).map(|shard| (shard, Write::Single, part(shard).len() + TAG_BYTES));
        let mut rooms = group.reserve(wanted.collect())?;
        for (shard, room) in &mut rooms {
            let part = part(*shard);
            room[..part.len()].copy_from_slice(part);
            room[part.len()..].copy_from_slice(&tag);
        }
        group.publish(&turn, 0, rooms)
    }

    /// Reads a cell into `self.cell`, without its tag.
    fn read_cell(
        &mut self,
        group: &Group<'_>,
        shard: usize,
        epoch: Option<Epoch>,
        room: usize,
    ) -> Result<Found, StoreError> {
        self.cell.clear();
        self.cell.resize(room + TAG_BYTES, 0);
        let found = group.fetch(shard, Read::Single, epoch, &mut self.cell)?;
        self.cell.truncate(found.bytes as usize);
        let (cell, tag) = Tag::split(&self.cell).ok_or(StoreError::Damaged)?;
        let bytes = cell.len();
        self.cell.truncate(bytes);
        Ok(Found { tag, epoch: found.epoch })
    }

    fn read_single(&mut self, group: &Group<'_>, into: &mut [u8]) -> Result<u64, StoreError> {
        let (k, room) = (self.data(), cell_bytes(into.len(), self.data()));
        let (mut end, mut first): (usize, Option<Tag>) = (0, None);
        for shard in 0..k {
            let found = match self.read_cell(group, shard, group.epoch, room) {
                Ok(found) => found,
                Err(StoreError::BufferTooSmall) => return Err(StoreError::BufferTooSmall),
                Err(_) => return self.restore_single(group, into),
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
            _ => self.restore_single(group, into),
        }
    }

    /// Reads a value of which a cell is damaged, missing or of another update. An update that was cut off by a crash was never
    /// acknowledged: where too few of its cells are there, those of the update before it are read.
    #[cold]
    fn restore_single(&mut self, group: &Group<'_>, into: &mut [u8]) -> Result<u64, StoreError> {
        let room = cell_bytes(into.len(), self.data());
        let mut latest = Vec::with_capacity(self.shards());
        for shard in 0..self.shards() {
            latest.push(self.read_cell(group, shard, group.epoch, room));
        }
        if latest.iter().all(|found| matches!(found, Err(StoreError::NotFound))) {
            return Err(StoreError::NotFound);
        }
        self.flaw = Some(match latest.iter().any(|found| matches!(found, Err(StoreError::Damaged))) {
            true => Flaw::Damaged,
            false => Flaw::Missing,
        });
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
                let before = Some(found.epoch.saturating_sub(1));
                let epoch = if found.tag == *tag { group.epoch } else { before };
                let is_of_tag =
                    self.read_cell(group, shard, epoch, room).is_ok_and(|found| found.tag == *tag);
                if is_of_tag && self.cell.len() <= cell {
                    self.cells[shard * cell..][..self.cell.len()].copy_from_slice(&self.cell);
                    present |= 1 << shard;
                }
            }
            if self.coder.reconstruct(&mut self.cells, cell, present).is_ok() {
                let bytes = tag.value_bytes as usize;
                into[..bytes].copy_from_slice(&self.cells[..bytes]);
                return Ok(tag.value_bytes);
            }
        }
        Err(StoreError::Damaged)
    }

    /// Size of a single value.
    ///
    /// # Errors
    /// As [`crate::Target::size_of`].
    pub fn size_of(&mut self, group: &Group<'_>) -> Result<u64, StoreError> {
        let KeyPath { object, dkey, .. } = group.place;
        group.order.together(object, dkey, || {
            let sizes = (0..self.data()).map(|shard| group.shard(shard).size_of(&group.place, group.epoch));
            let sum: Result<u64, StoreError> =
                sizes.map(|size| Ok(size?.saturating_sub(TAG_BYTES as u64))).sum();
            sum.or_else(|error| self.told_size(group, error))
        })
    }

    /// Size of a value of which a cell is missing, as the others say; `error` where none says anything.
    #[cold]
    fn told_size(&mut self, group: &Group<'_>, error: StoreError) -> Result<u64, StoreError> {
        let mut tags: Vec<Tag> = Vec::with_capacity(self.shards());
        for shard in 0..self.shards() {
            let Ok(bytes) = group.shard(shard).size_of(&group.place, group.epoch) else { continue };
            let room = (bytes as usize).saturating_sub(TAG_BYTES);
            tags.extend(self.read_cell(group, shard, group.epoch, room).map(|found| found.tag));
        }
        let count = |tag: &Tag| tags.iter().filter(|other| *other == tag).count();
        tags.iter().max_by_key(|tag| count(tag)).map(|tag| tag.value_bytes).ok_or(error)
    }

    /// Where an array ends when its part on shard `shard` ends at `end_bytes`.
    pub fn array_end(&self, shard: usize, end_bytes: u64) -> u64 {
        self.striping.end(shard, end_bytes)
    }
}
