//! The log of a target: segments, one of which is written, and how records in it become durable.
#![allow(unsafe_code)]

mod commit;

use std::sync::Arc;

use crate::Checksum;

use super::data::DataFile;
use super::error::StoreError;
use super::flush::Flusher;
use super::medium::{BLOCK_BYTES, Medium};
use super::memory::Region;
use super::record::{COMMIT_AT, Header, Kind, LINE_BYTES};
use super::segment::{MAGIC_BYTES, segment_header};
pub(super) use super::segment::{Need, Segment, Use};
use super::types::{ContainerId, KeyPath};
use crate::model::{Epoch, ObjectId};

/// Records whose commit words wait for a commit at most.
const PENDING_MAX: usize = 1024;
/// Deferred bytes after which a commit is due.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// Buffers that are kept for segments to come.
const SPARES_MAX: usize = 2;

/// Zeros that are written at once, in bytes: syncs of updates wait behind them.
const ZEROS_BYTES: usize = 256 << 10;

/// A part of a segment that is not durable.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub(super) segment: usize,
    pub(super) buffer: Arc<Region>,
    pub(super) from_line: u32,
    pub(super) to_line: u32,
}

/// A record whose commit word is not written yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: usize,
    bytes: usize,
    commit: u32,
}

/// When a record is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Before the call returns, in order.
    Now,
    /// With the next commit.
    Later,
    /// At once, and durable at some time.
    Unordered,
}

/// The log. Locked by its target.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) medium: Arc<dyn Medium>,
    mapped: Option<Arc<Region>>,
    flusher: Flusher,
    pub(super) segment_lines: u32,
    pub(super) segments: Vec<Segment>,
    /// Segment that is written; none before the first record.
    pub(super) active: Option<usize>,
    pub(super) free: Vec<u32>,
    pub(super) sequence: u32,
    uuid: [u8; 16],
    pending: Vec<Pending>,
    pending_bytes: usize,
    /// Buffered logs: parts of sealed segments that wait for a sync.
    unsynced: Vec<Unsynced>,
    /// Buffered logs: line of the active segment up to which it was taken for a sync.
    taken_line: u32,
    /// Bytes appended so far, ever: what a sync is asked to reach.
    pub(super) appended: u64,
    /// Buffered logs: memory for segments that are begun next.
    spares: Vec<Arc<Region>>,
    /// Free segments that get their space at this moment.
    preparing: u64,
    /// Values that records refer to: durable before them.
    data: Option<Arc<DataFile>>,
    /// Nothing orders what is stored before the next [`Medium::sync`] of it all: mapped, with `Durability::None`.
    pub(super) is_loose: bool,
    /// A write or a sync failed: nothing that comes later can be relied on.
    pub(super) is_broken: bool,
}

impl Log {
    pub(super) fn new(
        medium: Arc<dyn Medium>,
        segment_bytes: u64,
        segments: Vec<Segment>,
        uuid: [u8; 16],
        (data, is_loose): (Option<Arc<DataFile>>, bool),
    ) -> Self {
        let mapped = medium.mapped().cloned();
        let sequence = segments.iter().map(|segment| segment.sequence).max().unwrap_or(0);
        let of_use = |segment: &Segment| segment.usage == Use::Free;
        let mut free: Vec<u32> =
            (0..segments.len() as u32).filter(|number| of_use(&segments[*number as usize])).collect();
        free.reverse();
        let mut log = Self {
            flusher: medium.flusher(),
            medium,
            mapped,
            segment_lines: (segment_bytes as usize / LINE_BYTES) as u32,
            segments,
            active: None,
            free,
            sequence,
            uuid,
            pending: Vec::with_capacity(PENDING_MAX),
            pending_bytes: 0,
            unsynced: Vec::new(),
            taken_line: 0,
            appended: 0,
            spares: Vec::with_capacity(SPARES_MAX + 1),
            preparing: 0,
            data,
            is_loose,
            is_broken: false,
        };
        let needs_zeros = log.needs_zeros();
        for segment in log.segments.iter_mut().filter(|segment| segment.usage == Use::Free) {
            segment.is_stale = needs_zeros && segment.sequence > 0;
        }
        log
    }

    /// Goes on writing a segment behind its last record.
    pub(super) fn resume(&mut self, number: usize) -> Result<(), StoreError> {
        if self.mapped.is_none() {
            let bytes = self.segment_lines as usize * LINE_BYTES;
            let mut buffer = Region::anonymous(bytes)?;
            self.medium.read(buffer.bytes_mut(0, bytes), (number * bytes) as u64)?;
            self.segments[number].buffer = Some(Arc::new(buffer));
        }
        self.segments[number].usage = Use::Active;
        self.active = Some(number);
        self.taken_line = self.segments[number].used_lines;
        self.segments[number].synced_lines = 0;
        self.segments[number].cold_lines = 0;
        Ok(())
    }

    /// Segment of a line.
    #[inline]
    pub(super) fn segment_of(&self, location: u64) -> usize {
        (location / u64::from(self.segment_lines)) as usize
    }

    /// Sequence of the segment of a line.
    #[inline]
    pub(super) fn sequence_of(&self, location: u64) -> u32 {
        self.segments[self.segment_of(location)].sequence
    }

    /// Where the memory of a record is: the mapping, or the buffer of its segment.
    #[inline]
    fn memory(&self, location: u64) -> (&Arc<Region>, usize) {
        match &self.mapped {
            Some(region) => (region, location as usize * LINE_BYTES),
            None => {
                let segment = self.segment_of(location);
                let line = location - segment as u64 * u64::from(self.segment_lines);
                let buffer = self.segments[segment].buffer.as_ref();
                (buffer.expect("a segment that is written has a buffer"), line as usize * LINE_BYTES)
            }
        }
    }

    /// A record that is being written.
    #[inline]
    pub(super) fn record_mut(&mut self, location: u64, lines: usize) -> &mut [u8] {
        let (region, at) = self.memory(location);
        // SAFETY: readers know a record only once it is committed; it is written under the lock of the log, which this borrow holds.
        unsafe { region.shared_mut(at, lines * LINE_BYTES) }
    }

    /// The buffer that holds a record, and where; none where it must be read.
    #[inline]
    pub(super) fn in_memory(&self, location: u64) -> Option<(&Arc<Region>, usize)> {
        let number = self.segment_of(location);
        let segment = &self.segments[number];
        let first_warm = number as u64 * u64::from(self.segment_lines) + u64::from(segment.cold_lines);
        let has_buffer = segment.buffer.is_some() && location >= first_warm;
        (self.mapped.is_some() || has_buffer).then(|| self.memory(location))
    }

    /// Buffered logs: the segment that is written, its life, and the lines that it has so far.
    pub(super) fn written(&self) -> Option<(usize, u32, u32)> {
        let active = self.active.filter(|_| self.mapped.is_none())?;
        Some((active, self.segments[active].sequence, self.segments[active].used_lines))
    }

    /// Has readers take what is durable from the file: lines that [`Log::written`] told before a sync.
    pub(super) fn cool(&mut self, (number, sequence, lines): (usize, u32, u32)) {
        let segment = &mut self.segments[number];
        if segment.sequence == sequence && segment.usage == Use::Active {
            segment.cold_lines = lines;
        }
    }

    /// Whether a record has room in the active segment. Once cleaning has begun to use the last segments, the room is for those that
    /// make room.
    #[inline]
    pub(super) fn fits(&self, lines: usize, need: Need) -> bool {
        self.free.len() >= need.reserve()
            && self.active.is_some_and(|active| {
                self.segments[active].used_lines as usize + lines <= self.segment_lines as usize
            })
    }

    /// Takes room for a record. It counts as live.
    #[inline]
    pub(super) fn take(&mut self, lines: usize, need: Need) -> Result<u64, StoreError> {
        let active = match self.active {
            Some(active) if self.fits(lines, need) => active,
            _ => self.next_segment(lines, need)?,
        };
        let segment = &mut self.segments[active];
        let line = segment.used_lines;
        segment.used_lines += lines as u32;
        segment.live_lines += lines as u32;
        self.appended += (lines * LINE_BYTES) as u64;
        Ok(active as u64 * u64::from(self.segment_lines) + u64::from(line))
    }

    /// Whether a segment that was in use has to be zeroed first. In memory that CPU flushes make durable a line is torn by words: a header of this life
    /// could stand beside a commit word of the last one, which is damage as it seems.
    pub(super) fn needs_zeros(&self) -> bool {
        self.mapped.is_some() && !self.is_loose && !self.medium.is_synced()
    }

    fn is_ready(&self, number: u32) -> bool {
        self.segments[number as usize].is_ready()
    }

    /// Free segments that can be begun.
    pub(super) fn ready(&self) -> usize {
        self.free.iter().filter(|number| self.is_ready(**number)).count()
    }

    /// The free segment that is prepared next, taken from the list meanwhile.
    pub(super) fn begin_prepare(&mut self) -> Option<Unprepared> {
        let unready = self.free.iter().enumerate().filter(|(_, number)| !self.is_ready(**number));
        // Those that have their space first: a file system that is full gives no other.
        let (at, _) = unready.max_by_key(|(_, number)| self.segments[**number as usize].has_space)?;
        self.preparing += 1;
        let number = self.free.remove(at);
        let (segment, extent) = (&self.segments[number as usize], self.extent_of(number));
        Some(Unprepared { number, extent, lacks_space: !segment.has_space, is_stale: segment.is_stale })
    }

    /// Puts it back.
    pub(super) fn end_prepare(&mut self, number: u32, is_ready: bool) {
        let segment = &mut self.segments[number as usize];
        segment.has_space |= is_ready;
        segment.is_stale &= !is_ready;
        self.preparing -= 1;
        self.free.push(number);
    }

    /// Where a segment lies, and its size in bytes.
    pub(super) fn extent_of(&self, number: u32) -> (u64, u64) {
        let bytes = u64::from(self.segment_lines) * LINE_BYTES as u64;
        (u64::from(number) * bytes, bytes)
    }

    /// Whether a segment can be begun: it has its space, as have those that are kept for others, and buffered logs have memory for it.
    pub(super) fn is_supplied(&self, need: Need) -> bool {
        self.ready() > need.reserve() && self.has_spare()
    }

    /// Whether there is memory for a segment, where it needs any.
    pub(super) fn has_spare(&self) -> bool {
        self.mapped.is_some() || self.spares.iter().any(|spare| Arc::strong_count(spare) == 1)
    }

    /// Keeps memory for segments that are begun later. What is too much comes back, to be dropped without the lock.
    pub(super) fn keep_spare(&mut self, spare: Arc<Region>) -> Option<Arc<Region>> {
        self.spares.push(spare);
        (self.spares.len() > SPARES_MAX).then(|| self.spares.remove(0))
    }

    /// Seals the active segment and begins another.
    fn next_segment(&mut self, lines: usize, need: Need) -> Result<usize, StoreError> {
        if lines >= self.segment_lines as usize {
            return Err(StoreError::TooLarge);
        }
        if !self.is_supplied(need) {
            // Space is taken and memory made by who asked, when the lock is released.
            return Err(StoreError::ScmFull);
        }
        let place = self.free.iter().rposition(|number| self.is_ready(*number)).ok_or(StoreError::ScmFull)?;
        let next = self.free[place] as usize;
        let (at, _) = self.extent_of(next as u32);
        if self.mapped.is_none() {
            let unused = self.spares.iter().rposition(|spare| Arc::strong_count(spare) == 1);
            let unused = unused.ok_or(StoreError::ScmFull)?;
            self.segments[next].buffer = Some(self.spares.remove(unused));
        }
        self.seal_active()?;
        self.free.remove(place);
        self.sequence += 1;
        let sequence = self.sequence;
        let segment = &mut self.segments[next];
        segment.usage = Use::Active;
        segment.sequence = sequence;
        (segment.used_lines, segment.live_lines, segment.synced_lines, segment.cold_lines) = (1, 0, 1, 0);
        segment.dead_epoch_min = Epoch::MAX;
        self.active = Some(next);
        self.taken_line = 0;
        let written = self.write_segment_header(next, sequence, at);
        self.synced(written).map(|()| next)
    }

    /// The word that makes it one comes last.
    fn write_segment_header(&mut self, number: usize, sequence: u32, at: u64) -> Result<(), StoreError> {
        let header = segment_header(&self.uuid, number as u32, sequence);
        let flusher = self.flusher;
        for part in [MAGIC_BYTES..LINE_BYTES, 0..MAGIC_BYTES] {
            let record = self.record_mut(number as u64 * u64::from(self.segment_lines), 1);
            record[part.clone()].copy_from_slice(&header[part.clone()]);
            flusher.flush(record);
            flusher.fence();
            let is_last = part.start == 0;
            if self.mapped.is_some() && (self.is_loose || is_last && self.medium.is_synced()) {
                self.medium.sync(at, LINE_BYTES as u64)?;
            }
        }
        Ok(())
    }

    /// Ends the active segment with a record that says so.
    pub(super) fn seal_active(&mut self) -> Result<(), StoreError> {
        let Some(active) = self.active else { return Ok(()) };
        self.sync_rest(active)?;
        self.active = None;
        let (used_lines, sequence) = (self.segments[active].used_lines, self.segments[active].sequence);
        let rest = self.segment_lines - used_lines;
        let first = active as u64 * u64::from(self.segment_lines) + u64::from(used_lines);
        if rest > 0 {
            let place =
                KeyPath { container: ContainerId(0), object: ObjectId::default(), dkey: &[], akey: &[] };
            let header = Header::new(Kind::Seal, &place, Checksum::Off, rest as usize, 0);
            let flusher = self.flusher;
            let record = self.record_mut(first, 1);
            header.write(record, &[], &[], sequence);
            let commit = header.seal(record);
            record[COMMIT_AT..].copy_from_slice(&commit.to_le_bytes());
            flusher.flush(record);
            flusher.fence();
            self.sync_lines(active, used_lines, used_lines + 1)?;
        }
        let segment = &mut self.segments[active];
        segment.usage = Use::Sealed;
        if self.mapped.is_none()
            && let Some(buffer) = segment.buffer.clone()
        {
            let to_line = if rest > 0 { segment.used_lines + 1 } else { segment.used_lines };
            self.unsynced.push(Unsynced { segment: active, buffer, from_line: self.taken_line, to_line });
        }
        segment.used_lines = self.segment_lines;
        Ok(())
    }

    /// Buffered logs: what has to be written to reach `appended`. What it returns counts as taken.
    pub(super) fn take_unsynced(&mut self) -> Vec<Unsynced> {
        let mut parts = std::mem::take(&mut self.unsynced);
        if let Some(active) = self.active
            && let Some(buffer) = &self.segments[active].buffer
            && self.taken_line < self.segments[active].used_lines
        {
            let to_line = self.segments[active].used_lines;
            parts.push(Unsynced {
                segment: active,
                buffer: buffer.clone(),
                from_line: self.taken_line,
                to_line,
            });
            self.taken_line = to_line;
        }
        parts
    }

    /// Buffered logs: a sealed segment has been written; it is read from the file from now on. Memory that nobody needs comes back, to be
    /// dropped without the lock.
    pub(super) fn release_buffer(&mut self, part: Unsynced) -> Option<Arc<Region>> {
        let segment = &mut self.segments[part.segment];
        if segment.usage != Use::Active
            && segment.buffer.as_ref().is_some_and(|buffer| Arc::ptr_eq(buffer, &part.buffer))
        {
            let buffer = segment.buffer.take()?;
            drop(part);
            return self.keep_spare(buffer);
        }
        Some(part.buffer)
    }

    /// A record is referred to no more.
    pub(super) fn drop_record(&mut self, location: u64, lines: usize, epoch: Epoch) {
        let segment = self.segment_of(location);
        let segment = &mut self.segments[segment];
        segment.live_lines = segment.live_lines.saturating_sub(lines as u32);
        segment.dead_epoch_min = segment.dead_epoch_min.min(epoch);
    }

    /// Room that was taken and never used.
    pub(super) fn drop_room(&mut self, location: u64, lines: usize) {
        let segment = self.segment_of(location);
        let segment = &mut self.segments[segment];
        segment.live_lines = segment.live_lines.saturating_sub(lines as u32);
    }

    /// Free bytes: of free segments and of the active one.
    pub(super) fn free_bytes(&self) -> u64 {
        let active = self.active.map_or(0, |active| self.segment_lines - self.segments[active].used_lines);
        let free = self.free.len() as u64 + self.preparing;
        (free * u64::from(self.segment_lines) + u64::from(active)) * LINE_BYTES as u64
    }
}

/// A free segment that is not ready to be written.
#[derive(Debug)]
pub(super) struct Unprepared {
    pub(super) number: u32,
    /// Where it lies, and its size in bytes.
    pub(super) extent: (u64, u64),
    pub(super) lacks_space: bool,
    is_stale: bool,
}

impl Unprepared {
    /// Gives it its space: later writes to it cannot fail for want of it. Takes away what its last life left.
    pub(super) fn prepare(&self, medium: &dyn Medium) -> Result<(), StoreError> {
        let (at, bytes) = self.extent;
        if self.lacks_space {
            medium.allocate(at, bytes)?;
            if medium.mapped().is_none() {
                zero(medium, at, bytes)?;
            }
        }
        // The first line stays: it has the sequence of the last life.
        let head = LINE_BYTES as u64;
        if self.is_stale { write_zeros(medium, at + head, bytes - head) } else { Ok(()) }
    }
}

/// Writes zeros over blocks, so that later writes change no metadata of the file system.
pub(super) fn zero(medium: &dyn Medium, at: u64, bytes: u64) -> Result<(), StoreError> {
    write_zeros(medium, at, bytes)?;
    medium.sync(at, bytes)
}

/// The same without a sync.
pub(super) fn write_zeros(medium: &dyn Medium, at: u64, bytes: u64) -> Result<(), StoreError> {
    let zeros = Region::anonymous(ZEROS_BYTES.min(bytes as usize))?;
    let mut done = 0;
    while done < bytes {
        let length = (zeros.len() as u64).min(bytes - done);
        medium.write(zeros.bytes(0, length as usize), at + done)?;
        done += length;
    }
    Ok(())
}

/// Blocks around lines of a segment: first byte and length, within the segment.
pub(super) fn blocks_around(from_line: u32, to_line: u32) -> (usize, usize) {
    let from = from_line as usize * LINE_BYTES / BLOCK_BYTES * BLOCK_BYTES;
    let to = (to_line as usize * LINE_BYTES).next_multiple_of(BLOCK_BYTES);
    (from, to - from)
}
