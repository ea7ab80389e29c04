//! Updates.

use crate::Checksum;

use super::room::Lack;
use super::{State, Target};
use crate::checksum;
use crate::error::StoreError;
use crate::extents::{Change, ExtentVersion};
use crate::index::{self, Hashes};
use crate::log::Need;
use crate::model::Epoch;
use crate::record::{FLAG_EXTERNAL, Header, Kind};
use crate::table::{Tag, Version};
use crate::transaction::Transaction;
use crate::types::{Ack, KeyPath, Write};

/// Mapped logs: from this size on, data is copied outside the lock.
const UNLOCKED_BYTES_MIN: usize = 32 << 10;

impl Write {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Single => Kind::Single,
            Self::Extent { .. } => Kind::Extent,
        }
    }

    pub(super) fn offset(self) -> u64 {
        match self {
            Self::Single => 0,
            Self::Extent { offset_bytes } => offset_bytes,
        }
    }
}

/// Whether keys and extent are such that a record can hold them.
#[inline]
pub(super) fn check(place: &KeyPath<'_>, offset: u64, bytes: u64) -> Result<(), StoreError> {
    let longest = usize::from(u16::MAX);
    if place.dkey.len() > longest || place.akey.len() > longest || offset.checked_add(bytes).is_none() {
        return Err(StoreError::InvalidKey);
    }
    if bytes > u64::from(u32::MAX) { Err(StoreError::TooLarge) } else { Ok(()) }
}

impl State {
    /// Refuses a single value where an array is, and the other way round.
    #[inline]
    pub(super) fn check_kind(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        kind: Kind,
    ) -> Result<(), StoreError> {
        let Some(object) = self.index.object(place.container, place.object) else { return Ok(()) };
        match self.index.spot(object, hashes, Epoch::MAX) {
            Some((spot, _)) => {
                let is_array = self.index.entry(spot).tag() == Tag::Extents;
                if is_array == (kind != Kind::Single) { Ok(()) } else { Err(StoreError::WrongKind) }
            }
            None => Ok(()),
        }
    }

    /// Makes a committed record of data visible.
    #[inline]
    pub(super) fn publish(&mut self, place: &KeyPath<'_>, hashes: &Hashes, header: &Header, location: u64) {
        let object = self.index.object_or_new(place.container, place.object);
        self.note_dkey(object, place.dkey);
        if header.kind == Kind::Single {
            let version = Version::new(header.epoch, location, header.lines(), false);
            self.index.insert_version(object, hashes, version);
        } else {
            let version = ExtentVersion {
                epoch: header.epoch,
                location,
                lines: header.lines() as u32,
                change: Change::Data,
                start: header.offset,
                bytes: u64::from(header.bytes),
            };
            self.index.insert_extent(object, hashes, version);
        }
    }

    /// Keeps the largest integer dkey of an object.
    #[inline]
    pub(super) fn note_dkey(&mut self, object: u32, dkey: &[u8]) {
        if let Some(bytes) = dkey.as_array::<8>() {
            let number = u64::from_le_bytes(*bytes);
            if let Some(largest) = &mut self.index.objects.get_mut(object).largest
                && largest.is_none_or(|largest| largest < number)
            {
                *largest = Some(number);
            }
        }
    }
}

impl Target {
    /// Writes a value and returns the epoch of this version. With [`Ack::AsConfigured`] it is durable then, as far as the pool was
    /// opened for that.
    ///
    /// # Errors
    /// [`StoreError`]: no such container, no space, key or value too large, wrong kind.
    pub fn update(
        &self,
        place: &KeyPath<'_>,
        write: Write,
        data: &[u8],
        ack: Ack,
    ) -> Result<Epoch, StoreError> {
        self.update_in(place, write, data, ack, Transaction::NONE)
    }

    /// As [`Target::update`], as a part of a change of several targets.
    pub(crate) fn update_in(
        &self,
        place: &KeyPath<'_>,
        write: Write,
        data: &[u8],
        ack: Ack,
        transaction: Transaction,
    ) -> Result<Epoch, StoreError> {
        check(place, write.offset(), data.len() as u64)?;
        let hashes = index::hashes(place);
        let is_external = self.is_external(data.len());
        if is_external || (self.mapped.is_some() && data.len() >= UNLOCKED_BYTES_MIN) {
            return self.update_large(place, &hashes, (write, data), ack, transaction);
        }
        let lack = |error| self.lack(error, place, data.len());
        self.with_room(0, lack, || self.update_small(place, &hashes, (write, data), ack, transaction))
    }

    #[inline]
    fn update_small(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        (write, data): (Write, &[u8]),
        ack: Ack,
        transaction: Transaction,
    ) -> Result<Epoch, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let kind = state.admit_change(place.container)?;
        state.check_kind(place, hashes, write.kind())?;
        let kind = self.record_checksum(kind);
        let header = Header::new(write.kind(), place, kind, data.len(), write.offset());
        let mut header = header.as_part(transaction.is_some());
        let location = self.take(state, header.lines(), Need::Update)?;
        let record = self.begin(&mut state.log, &header, place, location);
        header.write_transaction(record, transaction);
        self.fill(&mut header, record, kind, data);
        let epoch = self.next_epoch(state);
        self.complete(&mut state.log, &mut header, location, epoch, ack)?;
        state.publish(place, hashes, &header, location);
        let appended = state.log.appended;
        drop(guard);
        self.settle(ack, appended)?;
        Ok(epoch)
    }

    /// Room that an update of so many bytes lacks when it fails so; none where it is not for want of room.
    #[cold]
    pub(super) fn lack(&self, error: StoreError, place: &KeyPath<'_>, bytes: usize) -> Option<Lack> {
        match error {
            StoreError::ScmFull => {
                // The widest checksums.
                let mut header = Header::new(Kind::Extent, place, Checksum::Sha512, bytes, 0).as_part(true);
                if self.is_external(bytes) {
                    header.flags |= FLAG_EXTERNAL;
                }
                Some(Lack::Log { lines: header.lines(), need: Need::Update })
            }
            StoreError::NvmeFull => Some(Lack::Data { bytes: bytes as u64 }),
            _ => None,
        }
    }

    /// Copies data into a record, and sums it into header or extension.
    #[inline]
    fn fill(&self, header: &mut Header, record: &mut [u8], kind: Checksum, data: &[u8]) {
        let data_at = header.data_at();
        let (head, body) = record.split_at_mut(data_at);
        let body = &mut body[..data.len()];
        if header.is_sum_inside() {
            let mut sum = [0; 4];
            checksum::copy_and_sum(kind, self.flusher, body, data, &mut sum[..header.sums_bytes()]);
            header.sum = u32::from_le_bytes(sum);
        } else {
            let from = header.keys_end() + header.extension_bytes() - header.sums_bytes();
            let sums = &mut head[from..header.keys_end() + header.extension_bytes()];
            checksum::copy_and_sum(kind, self.flusher, body, data, sums);
        }
    }

    /// Whether a value of this size goes to the data file.
    #[inline]
    pub(crate) fn is_external(&self, bytes: usize) -> bool {
        self.data.as_ref().is_some_and(|data| bytes > 0 && bytes as u64 >= data.threshold_bytes)
    }
}
