//! Fetches and sizes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::Checksum;

use super::reading::{gather, with_scratch};
use super::{State, Target};
use crate::checksum::{self, CHUNK_BYTES};
use crate::data::Spread;
use crate::error::StoreError;
use crate::extents::{self, Pieces};
use crate::flush::prefetch;
use crate::index::{self, Hashes};
use crate::medium::BLOCK_BYTES;
use crate::memory::Region;
use crate::model::Epoch;
use crate::record::{HEADER_BYTES, Header, LINE_BYTES};
use crate::table::{Entry, Tag, Version};
use crate::types::{Fetched, KeyPath, Read};

/// Mapped logs: values up to this size are copied while the lock is held.
const LOCKED_BYTES_MAX: usize = 16 << 10;

/// Lines of a record that are fetched ahead.
const PREFETCHED_LINES: usize = 72;

/// A record, or a part of its data, to be read.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) location: u64,
    pub(super) lines: usize,
    pub(super) sequence: u32,
    pub(super) epoch: Epoch,
    /// First byte of the record's data.
    pub(super) from: u64,
    /// Where it goes in the reader's buffer.
    pub(super) into: usize,
    pub(super) bytes: usize,
    /// Buffered logs: the buffer that it is in, and where.
    pub(super) buffer: Option<(Arc<Region>, usize)>,
}

/// Keeps segments, and extents of the data file, from being used again.
#[derive(Debug, Default)]
pub(super) struct Pins {
    segments: Vec<usize>,
    first: Option<usize>,
    /// Of the data file's readers.
    side: usize,
}

impl Pins {
    pub(super) fn add(&mut self, target: &Target, segment: usize) {
        target.pins[segment].fetch_add(1, Ordering::AcqRel);
        if self.first.is_none() {
            if let Some(data) = &target.data {
                self.side = data.begin_read();
            }
            self.first = Some(segment);
        } else {
            self.segments.push(segment);
        }
    }

    pub(super) fn release(&mut self, target: &Target) {
        if let Some(first) = self.first.take() {
            target.pins[first].fetch_sub(1, Ordering::AcqRel);
            for segment in self.segments.drain(..) {
                target.pins[segment].fetch_sub(1, Ordering::AcqRel);
            }
            if let Some(data) = &target.data {
                data.end_read(self.side);
            }
        }
    }
}

impl State {
    /// The entry of an akey, and the latest punch above it at or before `at`.
    #[inline]
    pub(super) fn entry(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        at: Epoch,
    ) -> Result<(Entry, Epoch), StoreError> {
        let object = self.index.object(place.container, place.object).ok_or(StoreError::NotFound)?;
        let (spot, floor) = self.index.spot(object, hashes, at).ok_or(StoreError::NotFound)?;
        Ok((*self.index.entry(spot), floor))
    }

    /// The record of a single value that is visible.
    #[inline]
    pub(super) fn single(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        at: Epoch,
    ) -> Result<Version, StoreError> {
        let (entry, floor) = self.entry(place, hashes, at)?;
        if entry.tag() == Tag::Extents {
            return Err(StoreError::WrongKind);
        }
        self.index.visible(&entry, floor, at).ok_or(StoreError::NotFound)
    }

    pub(super) fn part(&self, version: Version) -> Part {
        let location = version.location();
        Part {
            location,
            lines: version.lines(),
            sequence: self.log.sequence_of(location),
            epoch: version.epoch(),
            from: 0,
            into: 0,
            bytes: usize::MAX,
            buffer: None,
        }
    }

    /// As [`State::part`], to be read while the lock is held or while its segment is pinned.
    pub(super) fn part_in_memory(&self, version: Version, is_mapped: bool) -> Part {
        self.buffered(self.part(version), is_mapped)
    }

    /// The same with what a reader without the lock needs.
    fn buffered(&self, mut part: Part, is_mapped: bool) -> Part {
        if !is_mapped {
            part.buffer = self.log.in_memory(part.location).map(|(region, at)| (region.clone(), at));
        }
        part
    }

    /// Parts of visible records that make a range.
    pub(super) fn parts(
        &self,
        pieces: &Pieces,
        floor: Epoch,
        start: u64,
        bytes: u64,
        is_mapped: bool,
    ) -> Vec<Part> {
        let end = start.saturating_add(bytes);
        let visible = extents::overlapping(pieces, start, end).filter(|(_, piece)| piece.epoch > floor);
        visible
            .map(|(first, piece)| {
                let (low, high) = (first.max(start), (first + piece.bytes).min(end));
                let version = Version::new(piece.epoch, piece.location, piece.lines as usize, false);
                let part = Part {
                    from: piece.from + (low - first),
                    into: (low - start) as usize,
                    bytes: (high - low) as usize,
                    ..self.part(version)
                };
                self.buffered(part, is_mapped)
            })
            .collect()
    }
}

impl Target {
    /// Reads a value as of `epoch` (none: the latest) into `into`; verifies its checksums. Extents: fills `into`, holes with zeros.
    ///
    /// # Errors
    /// [`StoreError`]: not found (extents: the akey is not there; a hole in one that is there is no error), damaged, wrong kind, buffer
    /// smaller than a single value.
    pub fn fetch(
        &self,
        place: &KeyPath<'_>,
        read: Read,
        epoch: Option<Epoch>,
        into: &mut [u8],
    ) -> Result<Fetched, StoreError> {
        let hashes = index::hashes(place);
        let at = epoch.unwrap_or(Epoch::MAX);
        match read {
            Read::Single => self.fetch_single(place, &hashes, at, into),
            Read::Extent { offset_bytes } => self.fetch_extent(place, &hashes, at, offset_bytes, into),
        }
    }

    #[inline]
    fn fetch_single(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        at: Epoch,
        into: &mut [u8],
    ) -> Result<Fetched, StoreError> {
        let mut state = self.state.lock();
        let verify = state.admit(place.container)? != Checksum::Off;
        let version = state.single(place, hashes, at)?;
        let part = state.part(version);
        if let Some(region) = &self.mapped
            && part.lines * LINE_BYTES <= LOCKED_BYTES_MAX
        {
            let record = region.bytes(part.location as usize * LINE_BYTES, part.lines * LINE_BYTES);
            // All lines come while the header is checked.
            record.iter().step_by(LINE_BYTES).take(PREFETCHED_LINES).for_each(|line| prefetch(line));
            let header = self.open_record(record, &part, place)?;
            if !header.is_external() {
                return self.copy_single(&header, record, &part, place, verify, into);
            }
        }
        let part = state.buffered(part, self.mapped.is_some());
        let mut pins = Pins::default();
        pins.add(self, state.log.segment_of(part.location));
        drop(state);
        let result = self.with_record(&part, |record| {
            let header = self.open_record(record, &part, place)?;
            self.copy_single(&header, record, &part, place, verify, into)
        });
        pins.release(self);
        result
    }

    #[inline]
    fn copy_single(
        &self,
        header: &Header,
        record: &[u8],
        part: &Part,
        place: &KeyPath<'_>,
        verify: bool,
        into: &mut [u8],
    ) -> Result<Fetched, StoreError> {
        let bytes = header.bytes as usize;
        let into = into.get_mut(..bytes).ok_or(StoreError::BufferTooSmall)?;
        self.copy_out(header, record, 0, place, verify, into)?;
        Ok(Fetched { bytes: bytes as u64, end_bytes: bytes as u64, epoch: part.epoch })
    }

    fn fetch_extent(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        at: Epoch,
        start: u64,
        into: &mut [u8],
    ) -> Result<Fetched, StoreError> {
        let mut state = self.state.lock();
        let verify = state.admit(place.container)? != Checksum::Off;
        let (entry, floor) = state.entry(place, hashes, at)?;
        if entry.tag() != Tag::Extents {
            return Err(StoreError::WrongKind);
        }
        let node = state.index.extents.get(entry.node_number());
        let is_mapped = self.mapped.is_some();
        let parts = if at == Epoch::MAX {
            state.parts(&node.pieces, floor, start, into.len() as u64, is_mapped)
        } else {
            state.parts(&node.pieces_at(at), floor, start, into.len() as u64, is_mapped)
        };
        if parts.is_empty() && !state.index.is_visible(&entry, floor, at) {
            return Err(StoreError::NotFound);
        }
        let mut pins = Pins::default();
        parts.iter().for_each(|part| pins.add(self, state.log.segment_of(part.location)));
        drop(state);
        let result = self.copy_parts(&parts, place, verify, into);
        pins.release(self);
        result
    }

    /// Puts parts together; what lies between them is zero.
    fn copy_parts(
        &self,
        parts: &[Part],
        place: &KeyPath<'_>,
        verify: bool,
        into: &mut [u8],
    ) -> Result<Fetched, StoreError> {
        let mut found = Fetched::default();
        let mut end = 0;
        for part in parts {
            into[end..part.into].fill(0);
            end = part.into + part.bytes;
            let into = &mut into[part.into..end];
            let range = (part.from as usize, part.bytes);
            self.with_range(part, range, |record| {
                let header = self.open_record(record, part, place)?;
                self.copy_out(&header, record, part.from, place, verify, into)
            })?;
            found.bytes += part.bytes as u64;
            found.epoch = found.epoch.max(part.epoch);
        }
        into[end..].fill(0);
        found.end_bytes = end as u64;
        Ok(found)
    }

    /// Decodes the header of a record and checks that it is what was looked for.
    #[inline]
    pub(super) fn open_record(
        &self,
        record: &[u8],
        part: &Part,
        place: &KeyPath<'_>,
    ) -> Result<Header, StoreError> {
        let head = record.first_chunk::<HEADER_BYTES>();
        let Some(header) = head.and_then(|head| Header::decode(head, record.len())) else {
            return Err(self.note_damage(place, "the header of its record is damaged"));
        };
        if !header.is_intact(record, part.sequence) {
            return Err(self.note_damage(place, "the checksum of its record's header does not match"));
        }
        // Deferred updates have no commit word yet: they are good while this process lives.
        let (stored, is_right) = header.commitment(record);
        if !is_right && stored != 0 {
            return Err(self.note_damage(place, "the commit word of its record does not match"));
        }
        if header.dkey(record) != place.dkey
            || header.akey(record) != place.akey
            || header.epoch != part.epoch
        {
            return Err(self.note_damage(place, "its record belongs to another key"));
        }
        Ok(header)
    }

    /// Copies data from `from` on, and verifies what it copies.
    #[inline]
    fn copy_out(
        &self,
        header: &Header,
        record: &[u8],
        from: u64,
        place: &KeyPath<'_>,
        verify: bool,
        into: &mut [u8],
    ) -> Result<(), StoreError> {
        let kind = if verify { header.checksum } else { Checksum::Off };
        let sums = if verify { header.sums(record) } else { &[] };
        let is_right = if header.is_external() {
            self.copy_external(header, kind, sums, &header.spread(record), from as usize, into)?
        } else {
            let data = &record[header.data_at()..][..header.bytes as usize];
            copy_range(kind, data, 0, header.bytes as usize, sums, from as usize, into)
        };
        if is_right {
            Ok(())
        } else {
            Err(self.note_damage(place, "the checksum of its data does not match"))
        }
    }

    /// As [`copy_range`], from the data file.
    fn copy_external(
        &self,
        header: &Header,
        kind: Checksum,
        sums: &[u8],
        spread: &Spread,
        from: usize,
        into: &mut [u8],
    ) -> Result<bool, StoreError> {
        let Some(file) = &self.data else { return Ok(false) };
        let bytes = header.bytes as usize;
        if !spread.holds(bytes as u64, file.bytes) {
            return Ok(false);
        }
        let (low, high) = chunks_around(from, into.len(), bytes);
        let &Spread::One(at) = spread else {
            return with_scratch(1, (high - low).next_multiple_of(BLOCK_BYTES), |scratch| {
                gather(file, spread, low, bytes, scratch)?;
                Ok(copy_range(kind, &scratch[..high - low], low, bytes, sums, from, into))
            });
        };
        if let Some(region) = file.medium.mapped() {
            return Ok(copy_range(kind, region.bytes(at as usize, bytes), 0, bytes, sums, from, into));
        }
        let is_aligned = (into.as_ptr() as usize).is_multiple_of(BLOCK_BYTES)
            && from.is_multiple_of(CHUNK_BYTES)
            && into.len().is_multiple_of(BLOCK_BYTES)
            && (into.len().is_multiple_of(CHUNK_BYTES) || from + into.len() == bytes);
        if is_aligned {
            // Straight into the reader's buffer.
            file.medium.read(into, at + from as u64)?;
            let width = checksum::width(kind);
            return Ok(checksum::verifies(kind, into, &sums[from / CHUNK_BYTES * width..]));
        }
        with_scratch(1, (high - low).next_multiple_of(BLOCK_BYTES), |scratch| {
            file.medium.read(scratch, at + low as u64)?;
            Ok(copy_range(kind, &scratch[..high - low], low, bytes, sums, from, into))
        })
    }

    /// Size of a single value, or end of the last extent, in bytes. Nothing of the value is read.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn size_of(&self, place: &KeyPath<'_>, epoch: Option<Epoch>) -> Result<u64, StoreError> {
        let hashes = index::hashes(place);
        let at = epoch.unwrap_or(Epoch::MAX);
        let mut state = self.state.lock();
        state.admit(place.container)?;
        let (entry, floor) = state.entry(place, &hashes, at)?;
        if entry.tag() == Tag::Extents {
            return state.end_of(&entry, floor, at).ok_or(StoreError::NotFound);
        }
        let version = state.index.visible(&entry, floor, at).ok_or(StoreError::NotFound)?;
        let part = state.buffered(state.part(version), self.mapped.is_some());
        let mut pins = Pins::default();
        pins.add(self, state.log.segment_of(part.location));
        drop(state);
        let header = self.with_range(&part, (0, 0), |record| self.open_record(record, &part, place));
        pins.release(self);
        Ok(u64::from(header?.bytes))
    }

    /// Epoch of the single value that is visible; none where there is none. Nothing of the value is read.
    pub(crate) fn version_of(&self, place: &KeyPath<'_>) -> Result<Option<Epoch>, StoreError> {
        let hashes = index::hashes(place);
        let mut state = self.state.lock();
        state.admit(place.container)?;
        match state.single(place, &hashes, Epoch::MAX) {
            Ok(version) => Ok(Some(version.epoch())),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl State {
    /// End of the last visible extent.
    pub(super) fn end_of(&self, entry: &Entry, floor: Epoch, at: Epoch) -> Option<u64> {
        let node = self.index.extents.get(entry.node_number());
        let end = |pieces: &Pieces| {
            let last = pieces.iter().rev().find(|(_, piece)| piece.epoch > floor);
            last.map(|(start, piece)| start + piece.bytes)
        };
        if at == Epoch::MAX { end(&node.pieces) } else { end(&node.pieces_at(at)) }
    }
}

/// Whole chunks around a range of data.
pub(super) fn chunks_around(from: usize, bytes: usize, whole: usize) -> (usize, usize) {
    (from / CHUNK_BYTES * CHUNK_BYTES, (from + bytes).next_multiple_of(CHUNK_BYTES).min(whole))
}

/// Copies a range of data and tells whether the chunks that it touches match. `data` begins at byte `low` (the start of a chunk) of a
/// value of `whole` bytes, and reaches as far as the last chunk that is touched.
#[inline]
fn copy_range(
    kind: Checksum,
    data: &[u8],
    low: usize,
    whole: usize,
    sums: &[u8],
    from: usize,
    into: &mut [u8],
) -> bool {
    let width = checksum::width(kind);
    let end = from + into.len();
    if from.is_multiple_of(CHUNK_BYTES) && (end.is_multiple_of(CHUNK_BYTES) || end == whole) {
        let sums = sums.get(from / CHUNK_BYTES * width..).unwrap_or_default();
        return checksum::copy_and_verify(kind, &data[from - low..end - low], sums, into);
    }
    let (first, last) = chunks_around(from, into.len(), whole);
    let sums = sums.get(first / CHUNK_BYTES * width..).unwrap_or_default();
    if !checksum::verifies(kind, &data[first - low..last - low], sums) {
        return false;
    }
    into.copy_from_slice(&data[from - low..end - low]);
    true
}
