//! All that the index of a target refers to, for those who examine it.

use std::collections::BTreeMap;

use super::{State, Target};
use crate::error::StoreError;
use crate::extents::{Change, Pieces};
use crate::index::{Hashes, last_punch};
use crate::log::{Segment, Use};
use crate::medium::BLOCK_BYTES;
use crate::memory::Region;
use crate::model::{Epoch, ObjectId};
use crate::record::LINE_BYTES;
use crate::table::{Entry, Tag, Version};
use crate::types::ContainerId;

/// Relation of a record to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// A single value.
    Single,
    /// A punch of one.
    Tombstone,
    /// A part of an array.
    Data { start: u64, bytes: u64 },
    /// A punch of a part of an array.
    Hole { start: u64, bytes: u64 },
    /// A punch of an array.
    All,
    /// A punch of a dkey.
    Dkey,
    /// A punch of an object.
    Object,
    /// A discard.
    Discard,
}

impl Sort {
    /// Whether it carries data.
    pub(crate) fn has_data(self) -> bool {
        matches!(self, Self::Single | Self::Data { .. })
    }
}

/// Who sees a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    /// Who reads the latest epoch.
    Latest,
    /// A snapshot, and nobody else.
    Snapshot,
    /// Nobody: aggregation frees it.
    Nobody,
}

/// A record that the index refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    /// First line in the log.
    pub(crate) location: u64,
    pub(crate) lines: u32,
    pub(crate) epoch: Epoch,
    pub(crate) container: ContainerId,
    pub(crate) object: ObjectId,
    /// Hashes of its keys, as far as its sort has them.
    pub(crate) hashes: Hashes,
    pub(crate) sort: Sort,
    pub(crate) seen: Seen,
}

/// Keys of a container in the index, visible or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) objects: u64,
    pub(crate) dkeys: u64,
    pub(crate) akeys: u64,
}

/// A segment, as the target knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFacts {
    pub(crate) is_free: bool,
    pub(crate) sequence: u32,
    pub(crate) live_lines: u32,
    pub(crate) used_lines: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Census {
    pub(crate) references: Vec<Reference>,
    pub(crate) keys: BTreeMap<ContainerId, Keys>,
    /// Akeys that the index says it has.
    pub(crate) keys_noted: u64,
    pub(crate) segments: Vec<SegmentFacts>,
    pub(crate) segment_lines: u32,
    /// Free extents of the data file, and its size, in bytes.
    pub(crate) free_extents: Vec<(u64, u64)>,
    pub(crate) nvme_bytes: u64,
    /// Damaged parts of the log that were left out when it was read: segment, first line, lines.
    pub(crate) gaps: Vec<(u32, u32, u32)>,
}

/// Collects what is found under a container.
struct Visitor<'a> {
    state: &'a State,
    container: ContainerId,
    /// Epochs that somebody reads: the latest, then snapshots. None: the container is gone.
    epochs: Vec<Epoch>,
    keys: Keys,
    found: &'a mut Vec<Reference>,
}

impl Target {
    /// Lists all that the index refers to. Holds the lock meanwhile: not beside a measured loop.
    pub(crate) fn census(&self) -> Census {
        let state = self.state.lock();
        let mut references = Vec::new();
        let mut keys = BTreeMap::new();
        for number in 0..state.index.containers.len() as u32 {
            let container = ContainerId(number);
            let epochs = state.containers.get(&container).map_or_else(Vec::new, |own| {
                std::iter::once(Epoch::MAX).chain(own.snapshots.iter().copied()).collect()
            });
            let keys_of = Keys::default();
            let mut visitor =
                Visitor { state: &state, container, epochs, keys: keys_of, found: &mut references };
            visitor.visit_container();
            let found = visitor.keys;
            if found != Keys::default() {
                keys.insert(container, found);
            }
        }
        references.extend(state.discards.iter().map(|discard| Reference {
            container: discard.container,
            object: ObjectId::default(),
            hashes: Hashes { dkey: 0, extra: 0, akey: 0 },
            sort: Sort::Discard,
            seen: Seen::Latest,
            ..of_version(discard.version)
        }));
        references.sort_unstable_by_key(|found| (found.location, found.epoch));
        let segment = |segment: &Segment| SegmentFacts {
            is_free: matches!(segment.usage, Use::Free | Use::Draining),
            sequence: segment.sequence,
            live_lines: segment.live_lines,
            used_lines: segment.used_lines,
        };
        Census {
            references,
            keys,
            keys_noted: state.index.keys,
            segments: state.log.segments.iter().map(segment).collect(),
            segment_lines: self.segment_lines,
            free_extents: state.extents.free_extents(),
            nvme_bytes: self.data.as_ref().map_or(0, |data| data.bytes),
            gaps: state.gaps.clone(),
        }
    }

    /// Reads a segment of the log from the medium.
    pub(crate) fn segment_content(&self, number: u32) -> Result<Region, StoreError> {
        let bytes = self.segment_lines as usize * LINE_BYTES;
        let mut copy = Region::anonymous(bytes)?;
        self.medium.read(copy.bytes_mut(0, bytes), u64::from(number) * bytes as u64)?;
        Ok(copy)
    }

    /// Reads the first line of a segment from the medium.
    pub(crate) fn segment_head(&self, number: u32) -> Result<[u8; LINE_BYTES], StoreError> {
        let at = u64::from(number) * u64::from(self.segment_lines) * LINE_BYTES as u64;
        let mut block = Region::anonymous(BLOCK_BYTES)?;
        self.medium.read(block.bytes_mut(0, BLOCK_BYTES), at)?;
        let mut head = [0; LINE_BYTES];
        head.copy_from_slice(block.bytes(0, LINE_BYTES));
        Ok(head)
    }

    /// Reads a value of the data file from the medium; none where it does not lie in it.
    pub(crate) fn data_content(&self, at: u64, bytes: usize) -> Result<Option<Region>, StoreError> {
        let Some(file) = self.data.as_ref() else { return Ok(None) };
        let room = bytes.max(1).next_multiple_of(BLOCK_BYTES);
        let is_inside = at.checked_add(room as u64).is_some_and(|end| end <= file.bytes);
        if !is_inside || !at.is_multiple_of(BLOCK_BYTES as u64) {
            return Ok(None);
        }
        let mut copy = Region::anonymous(room)?;
        file.medium.read(copy.bytes_mut(0, room), at)?;
        Ok(Some(copy))
    }

    /// Epoch of the latest change of an akey, value or punch; 0 where nothing of it is known.
    pub(crate) fn last_change(&self, place: &crate::KeyPath<'_>) -> Epoch {
        let hashes = crate::index::hashes(place);
        let state = self.state.lock();
        let Some(object) = state.index.object(place.container, place.object) else { return 0 };
        let floor = last_punch(&state.index.objects.get(object).punches, Epoch::MAX);
        let Some((spot, floor)) = state.index.spot(object, &hashes, Epoch::MAX) else {
            let entry =
                state.index.dkey(object, &hashes).map(|at| *state.index.objects.get(object).dkeys.get(at));
            let dkey = entry.filter(|entry| entry.tag() == Tag::Dkey);
            let punched = |entry: Entry| &state.index.dkeys.get(entry.node_number()).punches;
            return dkey.map_or(floor, |entry| last_punch(punched(entry), Epoch::MAX).max(floor));
        };
        let entry = state.index.entry(spot);
        let own = match entry.tag() {
            Tag::Extents => {
                state.index.extents.get(entry.node_number()).history.last().map(|version| version.epoch)
            }
            _ => state.index.versions(entry).next().map(Version::epoch),
        };
        own.unwrap_or(0).max(floor)
    }
}

fn of_version(version: Version) -> Reference {
    Reference {
        location: version.location(),
        lines: version.lines() as u32,
        epoch: version.epoch(),
        container: ContainerId(0),
        object: ObjectId::default(),
        hashes: Hashes { dkey: 0, extra: 0, akey: 0 },
        sort: Sort::Tombstone,
        seen: Seen::Nobody,
    }
}

impl Visitor<'_> {
    fn visit_container(&mut self) {
        let state = self.state;
        let Some(objects) = state.index.containers.get(self.container.0 as usize) else { return };
        for entry in objects.table.iter() {
            let node = state.index.objects.get(entry.node_number());
            self.keys.objects += 1;
            let none = Hashes { dkey: 0, extra: 0, akey: 0 };
            self.add_punches(node.id, none, Sort::Object, &node.punches);
            let floors: Vec<Epoch> = self.epochs.iter().map(|at| last_punch(&node.punches, *at)).collect();
            for entry in node.dkeys.iter() {
                self.keys.dkeys += 1;
                let hashes = Hashes { dkey: entry.hash, extra: entry.extra(), akey: entry.akey };
                if entry.tag() != Tag::Dkey {
                    self.add_akey(node.id, hashes, entry, &floors);
                    continue;
                }
                let dkey = state.index.dkeys.get(entry.node_number());
                self.add_punches(node.id, Hashes { akey: 0, ..hashes }, Sort::Dkey, &dkey.punches);
                let floor = |(at, floor): (&Epoch, &Epoch)| last_punch(&dkey.punches, *at).max(*floor);
                let floors: Vec<Epoch> = self.epochs.iter().zip(&floors).map(floor).collect();
                for entry in dkey.akeys.iter() {
                    self.add_akey(node.id, Hashes { akey: entry.hash, ..hashes }, entry, &floors);
                }
            }
        }
    }

    fn add_punches(&mut self, object: ObjectId, hashes: Hashes, sort: Sort, punches: &[Version]) {
        let (container, seen) = (self.container, self.seen_punch());
        self.found.extend(punches.iter().map(|punch| Reference {
            container,
            object,
            hashes,
            sort,
            seen,
            ..of_version(*punch)
        }));
    }

    /// Punches hide what is below them: as long as they are there, they count.
    fn seen_punch(&self) -> Seen {
        if self.epochs.is_empty() { Seen::Nobody } else { Seen::Latest }
    }

    fn add_akey(&mut self, object: ObjectId, hashes: Hashes, entry: &Entry, floors: &[Epoch]) {
        self.keys.akeys += 1;
        let (container, state) = (self.container, self.state);
        let reference = |version: Version| Reference { container, object, hashes, ..of_version(version) };
        if entry.tag() == Tag::Extents {
            return self.add_extents(object, hashes, entry, floors);
        }
        let visible = |(at, floor): (&Epoch, &Epoch)| {
            state.index.visible(entry, *floor, *at).map(|version| version.epoch())
        };
        let visible: Vec<Option<Epoch>> = self.epochs.iter().zip(floors).map(visible).collect();
        for version in state.index.versions(entry) {
            let seen = if version.is_tombstone() {
                self.seen_punch()
            } else {
                seen_of(visible.iter().map(|epoch| *epoch == Some(version.epoch())))
            };
            let sort = if version.is_tombstone() { Sort::Tombstone } else { Sort::Single };
            self.found.push(Reference { sort, seen, ..reference(version) });
        }
    }

    fn add_extents(&mut self, object: ObjectId, hashes: Hashes, entry: &Entry, floors: &[Epoch]) {
        let node = self.state.index.extents.get(entry.node_number());
        let shows = |pieces: &Pieces, floor: Epoch| -> std::collections::BTreeSet<Epoch> {
            pieces.values().map(|piece| piece.epoch).filter(|epoch| *epoch > floor).collect()
        };
        let at = self.epochs.iter().zip(floors);
        let visible: Vec<_> = at
            .map(|(at, floor)| match *at {
                Epoch::MAX => shows(&node.pieces, *floor),
                at => shows(&node.pieces_at(at), *floor),
            })
            .collect();
        for version in &node.history {
            let (start, bytes) = (version.start, version.bytes);
            let (sort, seen) = match version.change {
                Change::Data => {
                    let seen = seen_of(visible.iter().map(|epochs| epochs.contains(&version.epoch)));
                    (Sort::Data { start, bytes }, seen)
                }
                Change::Hole => (Sort::Hole { start, bytes }, self.seen_punch()),
                Change::All => (Sort::All, self.seen_punch()),
            };
            self.found.push(Reference {
                location: version.location,
                lines: version.lines,
                epoch: version.epoch,
                container: self.container,
                object,
                hashes,
                sort,
                seen,
            });
        }
    }
}

/// Of who sees it: the latest epoch first, then snapshots.
fn seen_of(mut seen: impl Iterator<Item = bool>) -> Seen {
    match seen.next() {
        Some(true) => Seen::Latest,
        _ if seen.any(|is_seen| is_seen) => Seen::Snapshot,
        _ => Seen::Nobody,
    }
}
