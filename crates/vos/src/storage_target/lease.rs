//! Values read in place.

use std::sync::Arc;

use crate::Checksum;

use super::Target;
use super::fetch::{Pins, chunks_around};
use crate::checksum::{self, CHUNK_BYTES};
use crate::data::Spread;
use crate::error::StoreError;
use crate::index;
use crate::memory::Region;
use crate::model::Epoch;
use crate::record::LINE_BYTES;
use crate::table::Tag;
use crate::types::{KeyPath, Read};

impl Target {
    /// The value as of `epoch`, or at most `bytes_max` bytes of an extent, in place. Short where the stored bytes end (holes before are
    /// zero).
    ///
    /// # Errors
    /// As [`Target::fetch`]; [`StoreError::BufferTooSmall`] where a single value is larger than `bytes_max`.
    pub fn lease(
        self: &Arc<Self>,
        place: &KeyPath<'_>,
        read: Read,
        epoch: Option<Epoch>,
        bytes_max: usize,
    ) -> Result<Lease, StoreError> {
        if let Some(region) = &self.mapped
            && let Some(lease) = self.lease_in_place(region, place, read, epoch, bytes_max)?
        {
            return Ok(lease);
        }
        let size = self.size_of(place, epoch)?;
        let bytes = match read {
            Read::Single if size > bytes_max as u64 => return Err(StoreError::BufferTooSmall),
            Read::Single => size,
            Read::Extent { offset_bytes } => size.saturating_sub(offset_bytes).min(bytes_max as u64),
        };
        let mut copy = Region::anonymous(bytes as usize)?;
        let found = self.fetch(place, read, epoch, copy.bytes_mut(0, bytes as usize))?;
        Ok(Lease {
            memory: Arc::new(copy),
            at: 0,
            bytes: found.end_bytes as usize,
            epoch: found.epoch,
            pinned: None,
        })
    }

    /// None where it is not in one piece.
    fn lease_in_place(
        self: &Arc<Self>,
        region: &Arc<Region>,
        place: &KeyPath<'_>,
        read: Read,
        epoch: Option<Epoch>,
        bytes_max: usize,
    ) -> Result<Option<Lease>, StoreError> {
        let hashes = index::hashes(place);
        let at = epoch.unwrap_or(Epoch::MAX);
        let mut state = self.state.lock();
        let verify = state.admit(place.container)? != Checksum::Off;
        let part = match read {
            Read::Single => state.part(state.single(place, &hashes, at)?),
            Read::Extent { offset_bytes } => {
                let (entry, floor) = state.entry(place, &hashes, at)?;
                if entry.tag() != Tag::Extents || at != Epoch::MAX {
                    return Ok(None);
                }
                let node = state.index.extents.get(entry.node_number());
                let mut parts = state.parts(&node.pieces, floor, offset_bytes, bytes_max as u64, true);
                match (parts.pop(), parts.is_empty()) {
                    (Some(part), true) if part.into == 0 => part,
                    _ => return Ok(None),
                }
            }
        };
        let mut pins = Pins::default();
        pins.add(self, state.log.segment_of(part.location));
        drop(state);
        let pinned = Pinned { target: self.clone(), pins };
        let record_at = part.location as usize * LINE_BYTES;
        let record = region.bytes(record_at, part.lines * LINE_BYTES);
        let header = self.open_record(record, &part, place)?;
        let whole = header.bytes as usize;
        let (memory, data_at) = match (&self.data, header.is_external()) {
            (Some(file), true) => match (file.medium.mapped(), header.spread(record)) {
                (Some(memory), Spread::One(at)) => (memory, at as usize),
                _ => return Ok(None),
            },
            _ => (region, record_at + header.data_at()),
        };
        let bytes = part.bytes.min(whole - part.from as usize);
        if read == Read::Single && bytes > bytes_max {
            return Err(StoreError::BufferTooSmall);
        }
        let (low, high) = chunks_around(part.from as usize, bytes, whole);
        let width = checksum::width(header.checksum);
        if data_at + whole > memory.len()
            || (verify
                && !checksum::verifies(
                    header.checksum,
                    memory.bytes(data_at + low, high - low),
                    &header.sums(record)[low / CHUNK_BYTES * width..],
                ))
        {
            return Err(self.note_damage(place, "the checksum of its data does not match"));
        }
        let at = data_at + part.from as usize;
        Ok(Some(Lease { memory: memory.clone(), at, bytes, epoch: part.epoch, pinned: Some(pinned) }))
    }
}

/// Pins that are released when they are dropped.
#[derive(Debug)]
struct Pinned {
    target: Arc<Target>,
    pins: Pins,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.pins.release(&self.target);
    }
}

/// A value that is read in place: its memory is neither moved nor used again while the lease lives. Checksums were verified when it was
/// taken. Where the store is not mapped, or an extent is made of several, it is a copy.
#[derive(Debug)]
pub struct Lease {
    memory: Arc<Region>,
    at: usize,
    bytes: usize,
    epoch: Epoch,
    /// Released with the lease.
    pinned: Option<Pinned>,
}

impl Lease {
    /// Epoch of the value.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether it is the store's memory, not a copy.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.pinned.is_some()
    }
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self.memory.bytes(self.at, self.bytes)
    }
}
