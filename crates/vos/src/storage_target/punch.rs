//! Punches.

use std::sync::atomic::Ordering;

use crate::Checksum;

use super::room::Lack;
use super::{State, Target};
use crate::error::StoreError;
use crate::extents::{Change, ExtentVersion};
use crate::index::{self, Hashes};
use crate::log::Need;
use crate::model::Epoch;
use crate::record::{FLAG_ARRAY, Header, Kind};
use crate::table::{Tag, Version};
use crate::transaction::Transaction;
use crate::types::{Ack, KeyPath, Punch};

/// Records of a punch in the log: a dkey with one akey is punched by that akey.
struct Plan {
    kind: Kind,
    is_array: bool,
    object: u32,
    offset: u64,
    bytes: u64,
}

/// The place that a punch is of.
fn punched<'a>(place: &KeyPath<'a>, what: Punch) -> KeyPath<'a> {
    let empty: &[u8] = &[];
    match what {
        Punch::Object => KeyPath { dkey: empty, akey: empty, ..*place },
        Punch::Dkey => KeyPath { akey: empty, ..*place },
        Punch::Record { .. } | Punch::Akey => *place,
    }
}

impl Target {
    /// Removes what `what` says from now on; earlier epochs still show it until aggregation. Returns the epoch of the punch.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where nothing is there; as [`Target::update`] else.
    pub fn punch(&self, place: &KeyPath<'_>, what: Punch, ack: Ack) -> Result<Epoch, StoreError> {
        self.punch_in(place, what, ack, Transaction::NONE)
    }

    /// Whether there is anything that a punch would remove.
    pub(crate) fn has(&self, place: &KeyPath<'_>, what: Punch) -> Result<bool, StoreError> {
        let place = &punched(place, what);
        let hashes = index::hashes(place);
        match self.state.lock().plan_punch(place, &hashes, what) {
            Err(StoreError::NotFound) => Ok(false),
            plan => plan.map(|_| true),
        }
    }

    /// As [`Target::punch`], as a part of a change of several targets.
    pub(crate) fn punch_in(
        &self,
        place: &KeyPath<'_>,
        what: Punch,
        ack: Ack,
        transaction: Transaction,
    ) -> Result<Epoch, StoreError> {
        let place = &punched(place, what);
        if let Punch::Record { offset_bytes, bytes } = what {
            super::update::check(place, offset_bytes, 0)?;
            offset_bytes.checked_add(bytes).ok_or(StoreError::InvalidKey)?;
        }
        let hashes = index::hashes(place);
        self.changes.fetch_add(1, Ordering::Relaxed);
        let lines = Header::new(Kind::PunchExtent, place, Checksum::Off, 0, 0).as_part(true).lines();
        let lack = |error| (error == StoreError::ScmFull).then_some(Lack::Log { lines, need: Need::Punch });
        self.with_room(0, lack, || self.punch_once(place, &hashes, what, ack, transaction))
    }

    fn punch_once(
        &self,
        place: &KeyPath<'_>,
        hashes: &Hashes,
        what: Punch,
        ack: Ack,
        transaction: Transaction,
    ) -> Result<Epoch, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.admit_change(place.container)?;
        let plan = state.plan_punch(place, hashes, what)?;
        let header = Header::new(plan.kind, place, Checksum::Off, 0, plan.offset);
        let mut header = header.as_part(transaction.is_some());
        if plan.is_array {
            header.flags |= FLAG_ARRAY;
        }
        let location = self.take(state, header.lines(), Need::Punch)?;
        let record = self.begin(&mut state.log, &header, place, location);
        header.write_transaction(record, transaction);
        if plan.kind == Kind::PunchExtent {
            let at = header.keys_end();
            record[at..at + 8].copy_from_slice(&plan.bytes.to_le_bytes());
        }
        let epoch = self.next_epoch(state);
        self.complete(&mut state.log, &mut header, location, epoch, ack)?;
        state.apply_punch(hashes, &header, plan.object, location, plan.bytes);
        let appended = state.log.appended;
        drop(guard);
        self.settle(ack, appended)?;
        Ok(epoch)
    }
}

impl State {
    /// Plans the records of a punch; none where there is nothing to punch.
    fn plan_punch(&self, place: &KeyPath<'_>, hashes: &Hashes, what: Punch) -> Result<Plan, StoreError> {
        let now = Epoch::MAX;
        let object = self.index.object(place.container, place.object).ok_or(StoreError::NotFound)?;
        let node = self.index.objects.get(object);
        let floor = index::last_punch(&node.punches, now);
        let plan = |kind, is_array| Plan { kind, is_array, object, offset: 0, bytes: 0 };
        match what {
            Punch::Object => {
                let is_there = node.dkeys.iter().any(|dkey| self.index.is_visible(dkey, floor, now));
                is_there.then(|| plan(Kind::PunchObject, false)).ok_or(StoreError::NotFound)
            }
            Punch::Dkey => {
                let at = self.index.dkey(object, hashes).ok_or(StoreError::NotFound)?;
                let is_there = self.index.is_visible(node.dkeys.get(at), floor, now);
                is_there.then(|| plan(Kind::PunchDkey, false)).ok_or(StoreError::NotFound)
            }
            Punch::Akey | Punch::Record { .. } => {
                let (spot, floor) = self.index.spot(object, hashes, now).ok_or(StoreError::NotFound)?;
                let entry = self.index.entry(spot);
                if !self.index.is_visible(entry, floor, now) {
                    return Err(StoreError::NotFound);
                }
                let is_array = entry.tag() == Tag::Extents;
                match what {
                    Punch::Record { offset_bytes, bytes } if is_array => {
                        Ok(Plan { offset: offset_bytes, bytes, ..plan(Kind::PunchExtent, true) })
                    }
                    _ => Ok(plan(Kind::PunchAkey, is_array)),
                }
            }
        }
    }

    /// Puts a punch into the index. A dkey gets a node for it.
    pub(super) fn apply_punch(
        &mut self,
        hashes: &Hashes,
        header: &Header,
        object: u32,
        location: u64,
        bytes: u64,
    ) -> bool {
        let lines = header.lines();
        let version = Version::new(header.epoch, location, lines, true);
        match header.kind {
            Kind::PunchObject => {
                let node = self.index.objects.get_mut(object);
                node.largest = None;
                add_punch(&mut node.punches, version)
            }
            Kind::PunchDkey => {
                self.index.objects.get_mut(object).largest = None;
                let dkey = match self.index.dkey(object, hashes) {
                    Some(at) => self.index.dkey_node(object, hashes, at),
                    None => self.index.new_dkey_node(object, hashes),
                };
                add_punch(&mut self.index.dkeys.get_mut(dkey).punches, version)
            }
            Kind::PunchAkey if header.flags & FLAG_ARRAY == 0 => {
                self.index.objects.get_mut(object).largest = None;
                self.index.insert_version(object, hashes, version)
            }
            _ => {
                self.index.objects.get_mut(object).largest = None;
                let change = if header.kind == Kind::PunchAkey { Change::All } else { Change::Hole };
                let (epoch, start) = (header.epoch, header.offset);
                let version = ExtentVersion { epoch, location, lines: lines as u32, change, start, bytes };
                self.index.insert_extent(object, hashes, version)
            }
        }
    }
}

/// Adds a punch in the order of epochs; false where it is there.
fn add_punch(punches: &mut Vec<Version>, version: Version) -> bool {
    match punches.binary_search_by_key(&version.epoch(), |punch| punch.epoch()) {
        Ok(_) => false,
        Err(at) => {
            punches.insert(at, version);
            true
        }
    }
}
