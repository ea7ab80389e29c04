//! Room for values that are filled outside the lock: reservations, and large updates.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::Checksum;

use super::room::Lack;
use super::{State, Target, update};
use crate::checksum;
use crate::data::{DataFile, Spread, extent_bytes};
use crate::error::StoreError;
use crate::flush::copy_durable;
use crate::index::{self, Hashes};
use crate::log::Need;
use crate::medium::BLOCK_BYTES;
use crate::memory::Region;
use crate::model::{Epoch, ObjectId};
use crate::record::{FLAG_EXTERNAL, Header, LINE_BYTES};
use crate::transaction::Transaction;
use crate::types::{Ack, ContainerId, KeyPath, Write};

/// Where the room is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Room {
    /// A record of the log, from this line on.
    Log(u64),
    /// In the data file. Parts of a change of several targets have the room of their record from the start: what is published finds its room.
    Data { spread: Spread, record: Option<u64> },
}

/// Room that was taken: given back or published once.
#[derive(Debug)]
pub(super) struct Claim {
    header: Header,
    kind: Checksum,
    room: Room,
    hashes: Hashes,
}

impl Target {
    /// Takes room for a value. Of the log (mapped ones only), or of the data file.
    pub(super) fn claim(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        write: Write,
        bytes: usize,
        is_part: bool,
    ) -> Result<Claim, StoreError> {
        let lack = |error| self.lack(error, place, bytes);
        // In pieces only where reclaiming makes no room in one.
        let mut is_scattered = false;
        self.with_room(0, lack, || {
            let claim = self.claim_once(place, hashes, (write, bytes), is_part, is_scattered);
            is_scattered = true;
            claim
        })
    }

    fn claim_once(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        (write, bytes): (Write, usize),
        is_part: bool,
        is_scattered: bool,
    ) -> Result<Claim, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let kind = state.admit_change(place.container)?;
        state.check_kind(place, hashes, write.kind())?;
        let kind = self.record_checksum(kind);
        let mut header = Header::new(write.kind(), place, kind, bytes, write.offset()).as_part(is_part);
        if self.is_external(bytes) {
            header.flags |= FLAG_EXTERNAL;
            let spread = self.take_extents(state, bytes as u64, is_scattered)?;
            header.pieces = spread.count();
            let record =
                match (is_part && self.mapped.is_some()).then(|| self.claim_record(state, &header, place)) {
                    Some(Err(error)) => {
                        if let Some(file) = &self.data {
                            state.extents.give_spread(&spread, bytes as u64, file);
                        }
                        return Err(error);
                    }
                    record => record.transpose()?,
                };
            state.claims += 1;
            drop(guard);
            if let Err(error) = self.ensure_extents(&spread, bytes as u64) {
                let mut state = self.state.lock();
                state.claims -= 1;
                record.into_iter().for_each(|location| state.give_record(location, &header));
                return Err(error);
            }
            return Ok(Claim { header, kind, room: Room::Data { spread, record }, hashes: *hashes });
        }
        let location = self.claim_record(state, &header, place)?;
        state.claims += 1;
        Ok(Claim { header, kind, room: Room::Log(location), hashes: *hashes })
    }

    /// Takes room for a record that is published later, and writes header and keys.
    fn claim_record(
        &self,
        state: &mut State,
        header: &Header,
        place: &KeyPath<'_>,
    ) -> Result<u64, StoreError> {
        let location = self.take(state, header.lines(), Need::Update)?;
        let segment = state.log.segment_of(location);
        state.log.segments[segment].reservations += 1;
        let record = self.begin(&mut state.log, header, place, location);
        self.flusher.flush(&record[..header.keys_end()]);
        Ok(location)
    }

    /// The room of a claim, where it is mapped and in one piece.
    pub(super) fn claim_memory(&self, claim: &Claim) -> Option<(&Arc<Region>, usize)> {
        match &claim.room {
            Room::Log(location) => {
                let at = *location as usize * LINE_BYTES + claim.header.data_at();
                self.mapped.as_ref().map(|region| (region, at))
            }
            Room::Data { spread: Spread::One(at), .. } => {
                let region = self.data.as_ref().and_then(|data| data.medium.mapped());
                region.map(|region| (region, *at as usize))
            }
            Room::Data { spread: Spread::Many(_), .. } => None,
        }
    }

    /// Publishes a claim whose data is in place and durable after a fence, with its checksums.
    pub(super) fn publish_claim(
        &self,
        place: &KeyPath<'_>,
        mut claim: Claim,
        sums: &[u8],
        ack: Ack,
        transaction: Transaction,
    ) -> Result<Epoch, StoreError> {
        let lines = claim.header.lines();
        let lack = |error| (error == StoreError::ScmFull).then_some(Lack::Log { lines, need: Need::Update });
        let published =
            self.with_room(1, lack, || self.publish_once(place, &mut claim, sums, ack, transaction));
        let (epoch, appended) = published.inspect_err(|_| self.abandon(&claim))?;
        self.settle(ack, appended)?;
        Ok(epoch)
    }

    /// An error leaves the claim as it was.
    fn publish_once(
        &self,
        place: &KeyPath<'_>,
        claim: &mut Claim,
        sums: &[u8],
        ack: Ack,
        transaction: Transaction,
    ) -> Result<(Epoch, u64), StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.admit_change(place.container)?;
        state.check_kind(place, &claim.hashes, claim.header.kind)?;
        let location = match &claim.room {
            Room::Log(location) | Room::Data { record: Some(location), .. } => *location,
            Room::Data { record: None, .. } => {
                let location = self.take(state, claim.header.lines(), Need::Update)?;
                self.begin(&mut state.log, &claim.header, place, location);
                location
            }
        };
        let record = state.log.record_mut(location, claim.header.lines());
        let extension_end = claim.header.keys_end() + claim.header.extension_bytes();
        claim.header.write_transaction(record, transaction);
        if let Room::Data { spread, .. } = &claim.room {
            claim.header.write_spread(record, spread);
        }
        if claim.header.is_sum_inside() {
            let mut sum = [0; 4];
            sum[..sums.len()].copy_from_slice(sums);
            claim.header.sum = u32::from_le_bytes(sum);
        } else {
            record[extension_end - sums.len()..extension_end].copy_from_slice(sums);
        }
        let epoch = self.next_epoch(state);
        self.complete(&mut state.log, &mut claim.header, location, epoch, ack)?;
        state.publish(place, &claim.hashes, &claim.header, location);
        if let Room::Log(location) | Room::Data { record: Some(location), .. } = &claim.room {
            let segment = state.log.segment_of(*location);
            state.log.segments[segment].reservations -= 1;
        }
        state.claims -= 1;
        Ok((epoch, state.log.appended))
    }

    /// Gives the room of a claim back.
    pub(super) fn abandon(&self, claim: &Claim) {
        let mut state = self.state.lock();
        self.changes.fetch_add(1, Ordering::Relaxed);
        state.claims -= 1;
        match &claim.room {
            Room::Log(location) => state.give_record(*location, &claim.header),
            Room::Data { spread, record } => {
                record.iter().for_each(|location| state.give_record(*location, &claim.header));
                if let Some(file) = &self.data {
                    state.extents.give_spread(spread, u64::from(claim.header.bytes), file);
                }
            }
        }
    }

    /// An update whose data is copied (or written to the data file) outside the lock.
    pub(super) fn update_large(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        (write, data): (Write, &[u8]),
        ack: Ack,
        transaction: Transaction,
    ) -> Result<Epoch, StoreError> {
        let claim = self.claim(place, hashes, write, data.len(), transaction.is_some())?;
        let mut few = [0; 512];
        let mut many = Vec::new();
        let sums = sums_room(&claim, &mut few, &mut many);
        if let Some((region, at)) = self.claim_memory(&claim) {
            let flusher = self.data_flusher(&claim);
            // SAFETY: room that this claim has taken, and that nobody knows of before it is published.
            let into = unsafe { region.shared_mut(at, data.len()) };
            checksum::copy_and_sum(claim.kind, flusher, into, data, sums);
        } else {
            checksum::sum_all(claim.kind, data, sums);
        }
        if let Err(error) = self.write_out(&claim, data) {
            self.abandon(&claim);
            return Err(error);
        }
        self.publish_claim(place, claim, sums, ack, transaction)
    }

    fn data_flusher(&self, claim: &Claim) -> crate::flush::Flusher {
        match (&claim.room, &self.data) {
            (Room::Data { .. }, Some(data)) => data.medium.flusher(),
            _ => self.flusher,
        }
    }

    /// Writes data to the data file where it is not there yet; makes it durable where that is not left to a later sync.
    fn write_out(&self, claim: &Claim, data: &[u8]) -> Result<(), StoreError> {
        let (Room::Data { spread, .. }, Some(file)) = (&claim.room, &self.data) else { return Ok(()) };
        let mut rest = data;
        for (at, bytes) in spread.pieces(data.len() as u64) {
            let (piece, behind) = rest.split_at(bytes as usize);
            rest = behind;
            match file.medium.mapped() {
                None => write_piece(file, piece, at)?,
                Some(region) => {
                    if matches!(spread, Spread::Many(_)) {
                        // SAFETY: room of the data file that this claim has taken, and that nobody knows of before it is published.
                        let into = unsafe { region.shared_mut(at as usize, piece.len()) };
                        copy_durable(file.medium.flusher(), into, piece);
                    }
                    self.sync_piece(file, at, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Mapped: makes a piece of the data file durable, or notes that it is not.
    fn sync_piece(&self, file: &DataFile, at: u64, bytes: u64) -> Result<(), StoreError> {
        let is_now = self.when(Ack::AsConfigured) == crate::log::When::Now;
        if file.medium.is_synced() && is_now {
            let done = file.medium.sync(at, bytes);
            return done.inspect_err(|_| self.state.lock().log.is_broken = true);
        }
        if file.medium.is_synced() || self.is_loose() {
            file.is_dirty.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Room for a value of `bytes` bytes, to be filled in place and published.
    ///
    /// # Errors
    /// As [`Target::update`].
    pub fn reserve(
        self: &Arc<Self>,
        place: &KeyPath<'_>,
        write: Write,
        bytes: usize,
    ) -> Result<Reservation, StoreError> {
        self.reserve_in(place, write, bytes, false)
    }

    /// As [`Target::reserve`], for a part of a change of several targets.
    pub(crate) fn reserve_part(
        self: &Arc<Self>,
        place: &KeyPath<'_>,
        write: Write,
        bytes: usize,
    ) -> Result<Reservation, StoreError> {
        self.reserve_in(place, write, bytes, true)
    }

    fn reserve_in(
        self: &Arc<Self>,
        place: &KeyPath<'_>,
        write: Write,
        bytes: usize,
        is_part: bool,
    ) -> Result<Reservation, StoreError> {
        update::check(place, write.offset(), bytes as u64)?;
        let hashes = index::hashes(place);
        let is_mapped = self.mapped.is_some();
        let (claim, memory, at) = if is_mapped {
            let claim = self.claim(place, &hashes, write, bytes, is_part)?;
            let in_place = self.claim_memory(&claim).map(|(region, at)| (region.clone(), at));
            let (region, at) = match in_place {
                Some(in_place) => in_place,
                // It is put into its pieces when it is published.
                None => {
                    let copy = Region::anonymous(bytes).inspect_err(|_| self.abandon(&claim))?;
                    (Arc::new(copy), 0)
                }
            };
            (Some(claim), region, at)
        } else {
            {
                // Refused now rather than when it has been filled.
                let mut state = self.state.lock();
                state.admit_change(place.container)?;
                state.check_kind(place, &hashes, write.kind())?;
            }
            (None, Arc::new(Region::anonymous(bytes)?), 0)
        };
        Ok(Reservation {
            target: self.clone(),
            claim,
            memory,
            at,
            bytes,
            container: place.container,
            object: place.object,
            keys: [place.dkey, place.akey].concat().into_boxed_slice(),
            dkey_bytes: place.dkey.len(),
            write,
        })
    }
}

impl State {
    /// Gives the room of a record back that was not published.
    fn give_record(&mut self, location: u64, header: &Header) {
        let segment = self.log.segment_of(location);
        self.log.segments[segment].reservations -= 1;
        self.log.drop_room(location, header.lines());
    }
}

/// Writes a piece of a value to the data file.
fn write_piece(file: &DataFile, data: &[u8], at: u64) -> Result<(), StoreError> {
    let is_aligned = (data.as_ptr() as usize).is_multiple_of(BLOCK_BYTES);
    let whole = if is_aligned { data.len() / BLOCK_BYTES * BLOCK_BYTES } else { 0 };
    file.medium.write(&data[..whole], at)?;
    if whole < data.len() {
        let rest = &data[whole..];
        let mut staging = Region::anonymous(extent_bytes(rest.len() as u64) as usize)?;
        staging.bytes_mut(0, rest.len()).copy_from_slice(rest);
        file.medium.write(staging.bytes(0, staging.len()), at + whole as u64)?;
    }
    file.is_dirty.store(true, Ordering::Release);
    Ok(())
}

/// Room for the checksums of a claim.
fn sums_room<'a>(claim: &Claim, few: &'a mut [u8], many: &'a mut Vec<u8>) -> &'a mut [u8] {
    let bytes = claim.header.sums_bytes();
    if bytes <= few.len() {
        &mut few[..bytes]
    } else {
        many.resize(bytes, 0);
        many
    }
}

/// Room for a value in the store, to be filled in place (mapped stores) or in a buffer that is aligned for direct I/O. Dropped without
/// [`Reservation::publish`], the room is given back and nobody sees it.
#[derive(Debug)]
pub struct Reservation {
    target: Arc<Target>,
    claim: Option<Claim>,
    memory: Arc<Region>,
    at: usize,
    bytes: usize,
    container: ContainerId,
    object: ObjectId,
    keys: Box<[u8]>,
    dkey_bytes: usize,
    write: Write,
}

impl Reservation {
    /// Checksums the value and makes it the newest version. Durable as `ack` says.
    ///
    /// # Errors
    /// As [`Target::update`].
    pub fn publish(self, ack: Ack) -> Result<Epoch, StoreError> {
        self.publish_in(ack, Transaction::NONE)
    }

    /// As [`Reservation::publish`], as a part of a change of several targets, for which it was taken.
    pub(crate) fn publish_in(mut self, ack: Ack, transaction: Transaction) -> Result<Epoch, StoreError> {
        let claim = self.claim.take();
        let (dkey, akey) = self.keys.split_at(self.dkey_bytes);
        let place = KeyPath { container: self.container, object: self.object, dkey, akey };
        let data = self.memory.bytes(self.at, self.bytes);
        let Some(claim) = claim else {
            return self.target.update_in(&place, self.write, data, ack, transaction);
        };
        let mut few = [0; 512];
        let mut many = Vec::new();
        let sums = sums_room(&claim, &mut few, &mut many);
        checksum::sum_all(claim.kind, data, sums);
        if self.target.claim_memory(&claim).is_some() {
            self.target.data_flusher(&claim).flush(data);
        }
        if let Err(error) = self.target.write_out(&claim, data) {
            self.target.abandon(&claim);
            return Err(error);
        }
        self.target.publish_claim(&place, claim, sums, ack, transaction)
    }
}

impl Deref for Reservation {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.bytes(self.at, self.bytes)
    }
}

impl DerefMut for Reservation {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: room that this reservation has taken; it is borrowed as a whole while the reference lives.
        unsafe { self.memory.shared_mut(self.at, self.bytes) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            self.target.abandon(&claim);
        }
    }
}
