//! Listings, queries and iteration.

use std::sync::atomic::Ordering;

use super::fetch::{Part, Pins};
use super::{State, Target};
use crate::error::StoreError;
use crate::extents::{self, Pieces};
use crate::index::{self, Hashes, last_punch};
use crate::model::{Epoch, ObjectId};
use crate::record::{HEADER_BYTES, Header, Kind};
use crate::table::{Entry, Table, Tag, Version};
use crate::types::{Anchor, ContainerId, FoundExtent, Iterated, KeyPath, Largest};

/// Dkeys that an iteration visits before it lets others have the lock.
const BATCH: usize = 1024;

/// Which key of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Dkey,
    Akey,
}

/// Keys that a listing found, in records that are neither mapped nor buffered: they are read when the lock has been released.
#[derive(Default)]
struct Unread {
    parts: Vec<Part>,
    pins: Pins,
}

/// Goes through a table from `anchor` on until `show` has shown `max` entries; how many it did.
fn list(
    table: &Table,
    anchor: &mut Anchor,
    max: usize,
    mut show: impl FnMut(&Entry) -> Result<bool, StoreError>,
) -> Result<usize, StoreError> {
    let mut position = table.position(anchor);
    let mut found = 0;
    while found < max && !anchor.is_end {
        let Some((place, entry)) = table.next(position) else {
            anchor.is_end = true;
            break;
        };
        found += usize::from(show(entry)?);
        anchor.pass(entry);
        position = place + 1;
    }
    Ok(found)
}

impl Target {
    /// Shows a key of any record of an entry, or notes where it is to be read.
    fn show_key(
        &self,
        state: &State,
        entry: &Entry,
        which: Which,
        unread: &mut Unread,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let (location, lines) = state.index.any_record(entry).ok_or(StoreError::NotFound)?;
        let part = state.part_in_memory(Version::new(0, location, lines, false), self.mapped.is_some());
        if self.mapped.is_none() {
            unread.pins.add(self, state.log.segment_of(location));
            unread.parts.push(part);
            return Ok(());
        }
        self.show_record(&part, which, visit)
    }

    fn show_record(&self, part: &Part, which: Which, visit: &mut dyn FnMut(&[u8])) -> Result<(), StoreError> {
        self.with_record(part, |record| {
            let header = self.header_of(record, part)?;
            visit(if which == Which::Dkey { header.dkey(record) } else { header.akey(record) });
            Ok(())
        })
    }

    /// Shows what was left; the lock is not held.
    fn show_unread(
        &self,
        mut unread: Unread,
        which: Which,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let shown = unread.parts.iter().try_for_each(|part| self.show_record(part, which, visit));
        unread.pins.release(self);
        shown
    }

    /// The header of a record whose key is not known.
    pub(super) fn header_of(&self, record: &[u8], part: &Part) -> Result<Header, StoreError> {
        let head = record.first_chunk::<HEADER_BYTES>();
        let header = head.and_then(|head| Header::decode(head, record.len()));
        match header.filter(|header| header.is_intact(record, part.sequence)) {
            Some(header) => Ok(header),
            None => {
                let line = part.location;
                self.note(format!("target {}: the record at line {line} of the log is damaged", self.number));
                Err(StoreError::Damaged)
            }
        }
    }

    /// Shows the next dkeys of an object, `max` at most, from `anchor` on. `visit` may run while the target is locked: it must not call
    /// the store. Returns how many there were.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there is no such object; [`StoreError::Damaged`] when a key cannot be read.
    pub fn list_dkeys(
        &self,
        container: ContainerId,
        object: ObjectId,
        epoch: Option<Epoch>,
        anchor: &mut Anchor,
        max: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, StoreError> {
        let at = epoch.unwrap_or(Epoch::MAX);
        let mut state = self.state.lock();
        state.admit(container)?;
        let object = state.index.object(container, object).ok_or(StoreError::NotFound)?;
        let node = state.index.objects.get(object);
        let floor = last_punch(&node.punches, at);
        let (before, mut unread) = (*anchor, Unread::default());
        let listed = list(&node.dkeys, anchor, max, |entry| {
            let is_visible = state.index.is_visible(entry, floor, at);
            if is_visible {
                self.show_key(&state, entry, Which::Dkey, &mut unread, visit)?;
            }
            Ok(is_visible)
        });
        drop(state);
        self.show_unread(unread, Which::Dkey, visit).inspect_err(|_| *anchor = before)?;
        listed
    }

    /// Shows the next akeys of a dkey ([`KeyPath::akey`] is not looked at), as [`Target::list_dkeys`].
    ///
    /// # Errors
    /// As there.
    pub fn list_akeys(
        &self,
        place: &KeyPath<'_>,
        epoch: Option<Epoch>,
        anchor: &mut Anchor,
        max: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, StoreError> {
        let at = epoch.unwrap_or(Epoch::MAX);
        let hashes = index::hashes(place);
        let mut state = self.state.lock();
        state.admit(place.container)?;
        let object = state.index.object(place.container, place.object).ok_or(StoreError::NotFound)?;
        let node = state.index.objects.get(object);
        let floor = last_punch(&node.punches, at);
        let entry = *node.dkeys.get(state.index.dkey(object, &hashes).ok_or(StoreError::NotFound)?);
        let (before, mut unread) = (*anchor, Unread::default());
        if entry.tag() != Tag::Dkey {
            let is_listed = max > 0 && !anchor.is_end && *anchor == Anchor::START;
            let is_listed = is_listed && state.index.is_visible(&entry, floor, at);
            let shown = match is_listed {
                true => self.show_key(&state, &entry, Which::Akey, &mut unread, visit),
                false => Ok(()),
            };
            drop(state);
            self.show_unread(unread, Which::Akey, visit).and(shown)?;
            anchor.is_end = anchor.is_end || max > 0;
            return Ok(usize::from(is_listed));
        }
        let node = state.index.dkeys.get(entry.node_number());
        let floor = floor.max(last_punch(&node.punches, at));
        let listed = list(&node.akeys, anchor, max, |entry| {
            let is_visible = state.index.is_visible(entry, floor, at);
            if is_visible {
                self.show_key(&state, entry, Which::Akey, &mut unread, visit)?;
            }
            Ok(is_visible)
        });
        drop(state);
        self.show_unread(unread, Which::Akey, visit).inspect_err(|_| *anchor = before)?;
        listed
    }

    /// Shows the visible extents of an akey in their order, those that end after `from_bytes`, `max` at most.
    ///
    /// # Errors
    /// As [`Target::list_dkeys`].
    pub fn list_extents(
        &self,
        place: &KeyPath<'_>,
        epoch: Option<Epoch>,
        from_bytes: u64,
        max: usize,
        visit: &mut dyn FnMut(&FoundExtent),
    ) -> Result<usize, StoreError> {
        let at = epoch.unwrap_or(Epoch::MAX);
        let hashes = index::hashes(place);
        let mut state = self.state.lock();
        state.admit(place.container)?;
        let object = state.index.object(place.container, place.object).ok_or(StoreError::NotFound)?;
        let (spot, floor) = state.index.spot(object, &hashes, at).ok_or(StoreError::NotFound)?;
        let entry = state.index.entry(spot);
        if entry.tag() != Tag::Extents {
            return Err(StoreError::WrongKind);
        }
        let node = state.index.extents.get(entry.node_number());
        let mut show = |pieces: &Pieces| {
            let seen = extents::overlapping(pieces, from_bytes, u64::MAX);
            let seen = seen.filter(|(_, piece)| piece.epoch > floor).take(max);
            seen.map(|(offset_bytes, piece)| {
                visit(&FoundExtent { offset_bytes, bytes: piece.bytes, epoch: piece.epoch });
            })
            .count()
        };
        Ok(if at == Epoch::MAX { show(&node.pieces) } else { show(&node.pieces_at(at)) })
    }

    /// Shows the next objects of a container, as [`Target::list_dkeys`].
    ///
    /// # Errors
    /// As there.
    pub fn list_objects(
        &self,
        container: ContainerId,
        epoch: Option<Epoch>,
        anchor: &mut Anchor,
        max: usize,
        visit: &mut dyn FnMut(ObjectId),
    ) -> Result<usize, StoreError> {
        let at = epoch.unwrap_or(Epoch::MAX);
        let mut state = self.state.lock();
        state.admit(container)?;
        let Some(objects) = state.index.containers.get(container.0 as usize) else {
            anchor.is_end = true;
            return Ok(0);
        };
        list(&objects.table, anchor, max, |entry| {
            let node = state.index.objects.get(entry.node_number());
            let floor = last_punch(&node.punches, at);
            let is_visible = node.dkeys.iter().any(|dkey| state.index.is_visible(dkey, floor, at));
            if is_visible {
                visit(node.id);
            }
            Ok(is_visible)
        })
    }

    /// The largest integer dkey, and the end of the records of `akey` under it, as of `epoch` (none: the latest).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where the object has no dkey of 8 bytes.
    pub fn largest(
        &self,
        container: ContainerId,
        object: ObjectId,
        akey: &[u8],
        epoch: Option<Epoch>,
    ) -> Result<Largest, StoreError> {
        let now = epoch.unwrap_or(Epoch::MAX);
        let mut state = self.state.lock();
        state.admit(container)?;
        let number = state.index.object(container, object).ok_or(StoreError::NotFound)?;
        let known = state.index.objects.get(number).largest;
        // What is remembered is of the latest version.
        let (mut object, mut largest) = (number, known.filter(|_| now == Epoch::MAX));
        if largest.is_none() {
            let mut found = None;
            let mut visit = |dkey: &[u8]| {
                if let Some(bytes) = dkey.as_array::<8>() {
                    found = found.max(Some(u64::from_le_bytes(*bytes)));
                }
            };
            let mut unread = Unread::default();
            let node = state.index.objects.get(object);
            let floor = last_punch(&node.punches, now);
            let is_visible = |entry: &&Entry| state.index.is_visible(entry, floor, now);
            let shown = node
                .dkeys
                .iter()
                .filter(is_visible)
                .try_for_each(|entry| self.show_key(&state, entry, Which::Dkey, &mut unread, &mut visit));
            let id = node.id;
            let (changes, at) = (self.changes.load(Ordering::Relaxed), state.epoch);
            drop(state);
            self.show_unread(unread, Which::Dkey, &mut visit).and(shown)?;
            state = self.state.lock();
            object = state.index.object(container, id).ok_or(StoreError::NotFound)?;
            // Else something was changed meanwhile, and it is looked for again next time.
            if now == Epoch::MAX && (changes, at) == (self.changes.load(Ordering::Relaxed), state.epoch) {
                state.index.objects.get_mut(object).largest = Some(found);
            }
            largest = Some(found);
        }
        let dkey = largest.flatten().ok_or(StoreError::NotFound)?;
        let hashes = Hashes::of(&dkey.to_le_bytes(), akey);
        let end = state.index.spot(object, &hashes, now).and_then(|(spot, floor)| {
            let entry = state.index.entry(spot);
            (entry.tag() == Tag::Extents).then(|| state.end_of(entry, floor, now)).flatten()
        });
        Ok(Largest { dkey, end_bytes: end.unwrap_or(0) })
    }

    /// Visits everything below an object (none: the container), down to records, and counts it. `is_recursive` false: only the first
    /// level (objects of the container, or dkeys of the object). `only_visible` false: older versions and punched ones too.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where the object or the container is not there.
    pub fn iterate(
        &self,
        container: ContainerId,
        object: Option<ObjectId>,
        epoch: Option<Epoch>,
        only_visible: bool,
        is_recursive: bool,
    ) -> Result<Iterated, StoreError> {
        let at = epoch.unwrap_or(Epoch::MAX);
        let mut total = Iterated::default();
        let Some(object) = object else {
            for object in self.objects_of(container)? {
                let mut below = self.iterate_object(container, object, at, only_visible)?;
                if only_visible && below.records == 0 {
                    continue;
                }
                if !is_recursive {
                    below = Iterated::default();
                }
                total.objects += 1;
                total.dkeys += below.dkeys;
                total.akeys += below.akeys;
                total.records += below.records;
            }
            return Ok(total);
        };
        total = self.iterate_object(container, object, at, only_visible)?;
        if !is_recursive {
            (total.akeys, total.records) = (0, 0);
        }
        Ok(Iterated { objects: 1, ..total })
    }

    /// All objects of a container that are in the index.
    pub(super) fn objects_of(&self, container: ContainerId) -> Result<Vec<ObjectId>, StoreError> {
        let mut state = self.state.lock();
        state.admit(container)?;
        let objects = state.index.containers.get(container.0 as usize);
        Ok(objects.map_or_else(Vec::new, |objects| {
            objects.table.iter().map(|entry| state.index.objects.get(entry.node_number()).id).collect()
        }))
    }

    fn iterate_object(
        &self,
        container: ContainerId,
        object: ObjectId,
        at: Epoch,
        only_visible: bool,
    ) -> Result<Iterated, StoreError> {
        let mut anchor = Anchor::START;
        let mut total = Iterated::default();
        loop {
            let state = self.state.lock();
            let object = state.index.object(container, object).ok_or(StoreError::NotFound)?;
            let node = state.index.objects.get(object);
            let floor = last_punch(&node.punches, at);
            let mut position = node.dkeys.position(&anchor);
            for _ in 0..BATCH {
                let Some((place, entry)) = node.dkeys.next(position) else { return Ok(total) };
                let mut below = Iterated::default();
                if entry.tag() == Tag::Dkey {
                    let dkey = state.index.dkeys.get(entry.node_number());
                    let floor = floor.max(last_punch(&dkey.punches, at));
                    dkey.akeys
                        .iter()
                        .for_each(|akey| self.count(&state, akey, floor, at, only_visible, &mut below));
                } else {
                    self.count(&state, entry, floor, at, only_visible, &mut below);
                }
                total.dkeys += u64::from(below.akeys > 0);
                total.akeys += below.akeys;
                total.records += below.records;
                anchor.pass(entry);
                position = place + 1;
            }
        }
    }

    /// Counts the records of an akey; reads the header of each single value, as a listing of them does.
    fn count(
        &self,
        state: &State,
        entry: &Entry,
        floor: Epoch,
        at: Epoch,
        only_visible: bool,
        below: &mut Iterated,
    ) {
        let records = match (entry.tag(), only_visible) {
            (Tag::Extents, false) => state.index.extents.get(entry.node_number()).history.len(),
            (Tag::Extents, true) => {
                let node = state.index.extents.get(entry.node_number());
                let visible = |pieces: &Pieces| pieces.values().filter(|piece| piece.epoch > floor).count();
                if at == Epoch::MAX { visible(&node.pieces) } else { visible(&node.pieces_at(at)) }
            }
            (_, false) => state.index.versions(entry).count(),
            (_, true) => match state.index.visible(entry, floor, at) {
                Some(version) if self.mapped.is_some() => {
                    let part = state.part_in_memory(version, true);
                    let header = self.with_record(&part, |record| self.header_of(record, &part));
                    usize::from(header.is_ok_and(|header| header.kind == Kind::Single))
                }
                Some(_) => 1,
                None => 0,
            },
        };
        below.records += records as u64;
        below.akeys += u64::from(records > 0);
    }
}
