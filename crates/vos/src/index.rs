//! The index: objects, their dkeys, their akeys, and the versions of these. It knows epochs and places in the log, no keys: those are in
//! the records, and whoever reads a record compares them.

use super::extents::{ExtentNode, ExtentVersion};
use super::table::{Entry, Table, Tag, Version};
use super::types::{ContainerId, KeyPath};
use crate::model::{Epoch, ObjectId};

/// Nodes that refer to each other by number.
#[derive(Debug)]
pub(super) struct Slab<T> {
    nodes: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new() }
    }
}

impl<T: Default> Slab<T> {
    pub(super) fn insert(&mut self, node: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.nodes[number as usize] = node;
            return number;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        std::mem::take(&mut self.nodes[number as usize])
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.nodes[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.nodes[number as usize]
    }

    fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<T>() + self.free.capacity() * 4
    }
}

/// A link of a chain of versions, newest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    pub(super) version: Version,
    /// Next older one, or [`NO_LINK`].
    pub(super) next: u32,
}

/// End of a chain.
pub(super) const NO_LINK: u32 = u32::MAX;

/// A dkey with several akeys, or with punches of its own.
#[derive(Debug, Default)]
pub(super) struct DkeyNode {
    pub(super) akeys: Table,
    pub(super) punches: Vec<Version>,
}

/// An object.
#[derive(Debug, Default)]
pub(super) struct ObjectNode {
    pub(super) container: u32,
    pub(super) id: ObjectId,
    pub(super) dkeys: Table,
    pub(super) punches: Vec<Version>,
    /// The largest integer dkey; none: not known (again).
    pub(super) largest: Option<Option<u64>>,
}

/// Hashes of a place, computed outside the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashes {
    pub(super) dkey: u64,
    pub(super) extra: u16,
    pub(super) akey: u64,
}

impl Hashes {
    #[inline]
    pub(super) fn of(dkey: &[u8], akey: &[u8]) -> Self {
        let wide = twox_hash::XxHash3_128::oneshot(dkey);
        Self { dkey: (wide >> 64) as u64, extra: wide as u16, akey: akey_hash(akey) }
    }
}

/// Hash of an akey.
#[inline]
pub(super) fn akey_hash(akey: &[u8]) -> u64 {
    if akey.is_empty() { 1 } else { (twox_hash::XxHash3_128::oneshot(akey) >> 64) as u64 }
}

/// Hash of an object in its container: SplitMix64's mixing of both halves.
#[inline]
pub(super) fn object_hash(id: ObjectId) -> u64 {
    let mut mixed = id.lo ^ id.hi.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Where the slot of an akey is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
    /// In its object's table: the dkey's only akey.
    Direct { object: u32, at: usize },
    /// In the table of its dkey.
    Nested { dkey: u32, at: usize },
}

/// Objects of a container.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) table: Table,
}

/// The index of a target.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// By number of the container.
    pub(super) containers: Vec<Objects>,
    pub(super) objects: Slab<ObjectNode>,
    pub(super) dkeys: Slab<DkeyNode>,
    pub(super) links: Slab<Link>,
    pub(super) extents: Slab<ExtentNode>,
    /// Akeys.
    pub(super) keys: u64,
    /// The object that was looked up last.
    last: Option<(ContainerId, ObjectId, u32)>,
}

/// Latest punch of a list at or before an epoch; 0: none.
pub(super) fn last_punch(punches: &[Version], at: Epoch) -> Epoch {
    punches.iter().map(|punch| punch.epoch()).filter(|epoch| *epoch <= at).max().unwrap_or(0)
}

impl Index {
    /// Number of an object.
    #[inline]
    pub(super) fn object(&self, container: ContainerId, id: ObjectId) -> Option<u32> {
        if let Some((last_container, last_id, number)) = self.last
            && last_container == container
            && last_id == id
        {
            return Some(number);
        }
        let table = &self.containers.get(container.0 as usize)?.table;
        let at = table.find(object_hash(id), |entry| self.objects.get(entry.node_number()).id == id)?;
        Some(table.get(at).node_number())
    }

    /// Number of an object, which is made if it is not there.
    #[inline]
    pub(super) fn object_or_new(&mut self, container: ContainerId, id: ObjectId) -> u32 {
        let number = self.object(container, id).unwrap_or_else(|| {
            let node =
                ObjectNode { container: container.0, id, largest: Some(None), ..ObjectNode::default() };
            let number = self.objects.insert(node);
            let place = container.0 as usize;
            if self.containers.len() <= place {
                self.containers.resize_with(place + 1, Objects::default);
            }
            self.containers[place].table.insert(Entry::node(object_hash(id), 0, 0, Tag::Object, number));
            number
        });
        self.last = Some((container, id, number));
        number
    }

    /// Forgets an object that holds nothing any more.
    pub(super) fn remove_object(&mut self, number: u32) {
        self.last = None;
        let node = self.objects.remove(number);
        let table = &mut self.containers[node.container as usize].table;
        if let Some(at) = table.find(object_hash(node.id), |entry| entry.node_number() == number) {
            table.remove(at);
        }
    }

    /// Position of a dkey in its object's table.
    #[inline]
    pub(super) fn dkey(&self, object: u32, hashes: &Hashes) -> Option<usize> {
        self.objects.get(object).dkeys.find(hashes.dkey, |entry| entry.extra() == hashes.extra)
    }

    /// Where an akey is, and the latest punch of its object and dkey at or before `at`.
    #[inline]
    pub(super) fn spot(&self, object: u32, hashes: &Hashes, at: Epoch) -> Option<(Spot, Epoch)> {
        let node = self.objects.get(object);
        let floor = if node.punches.is_empty() { 0 } else { last_punch(&node.punches, at) };
        let place = self.dkey(object, hashes)?;
        let entry = node.dkeys.get(place);
        if entry.tag() != Tag::Dkey {
            return (entry.akey == hashes.akey).then_some((Spot::Direct { object, at: place }, floor));
        }
        let dkey = self.dkeys.get(entry.node_number());
        let floor = floor.max(last_punch(&dkey.punches, at));
        let nested = dkey.akeys.find(hashes.akey, |_| true)?;
        Some((Spot::Nested { dkey: entry.node_number(), at: nested }, floor))
    }

    /// The entry of a spot.
    #[inline]
    pub(super) fn entry(&self, spot: Spot) -> &Entry {
        match spot {
            Spot::Direct { object, at } => self.objects.get(object).dkeys.get(at),
            Spot::Nested { dkey, at } => self.dkeys.get(dkey).akeys.get(at),
        }
    }

    pub(super) fn set_entry(&mut self, spot: Spot, entry: Entry) {
        match spot {
            Spot::Direct { object, at } => self.objects.get_mut(object).dkeys.set(at, entry),
            Spot::Nested { dkey, at } => self.dkeys.get_mut(dkey).akeys.set(at, entry),
        }
    }

    /// Takes an akey out, and its dkey when nothing else is there.
    pub(super) fn remove_spot(&mut self, spot: Spot) {
        self.keys -= 1;
        match spot {
            Spot::Direct { object, at } => self.objects.get_mut(object).dkeys.remove(at),
            Spot::Nested { dkey, at } => self.dkeys.get_mut(dkey).akeys.remove(at),
        }
    }

    /// Adds an entry for an akey that has none.
    fn add_entry(&mut self, object: u32, hashes: &Hashes, fresh: Entry) {
        self.keys += 1;
        match self.dkey(object, hashes) {
            None => self.objects.get_mut(object).dkeys.insert(fresh),
            Some(at) => {
                let dkey = self.dkey_node(object, hashes, at);
                let akey = fresh.with_hash(hashes.akey);
                self.dkeys.get_mut(dkey).akeys.insert(akey);
            }
        }
    }

    /// The node of a dkey; its only akey moves there if it had none.
    pub(super) fn dkey_node(&mut self, object: u32, hashes: &Hashes, at: usize) -> u32 {
        let entry = *self.objects.get(object).dkeys.get(at);
        if entry.tag() == Tag::Dkey {
            return entry.node_number();
        }
        let mut node = DkeyNode::default();
        node.akeys.insert(entry.with_hash(entry.akey));
        let number = self.dkeys.insert(node);
        let fresh = Entry::node(hashes.dkey, hashes.extra, 0, Tag::Dkey, number);
        self.objects.get_mut(object).dkeys.set(at, fresh);
        number
    }

    /// A node for a dkey that has no akeys: a punch outlived them.
    pub(super) fn new_dkey_node(&mut self, object: u32, hashes: &Hashes) -> u32 {
        let number = self.dkeys.insert(DkeyNode::default());
        let fresh = Entry::node(hashes.dkey, hashes.extra, 0, Tag::Dkey, number);
        self.objects.get_mut(object).dkeys.insert(fresh);
        number
    }

    /// Adds a version of a single value (or a punch of it). False where there is one of this epoch, or an array.
    #[inline]
    pub(super) fn insert_version(&mut self, object: u32, hashes: &Hashes, version: Version) -> bool {
        let Some((spot, _)) = self.spot(object, hashes, Epoch::MAX) else {
            self.add_entry(object, hashes, Entry::version(hashes.dkey, hashes.extra, hashes.akey, version));
            return true;
        };
        let entry = *self.entry(spot);
        let head = match entry.tag() {
            Tag::One | Tag::Tombstone => {
                let older = entry.as_version();
                if older.epoch() == version.epoch() {
                    return false;
                }
                self.links.insert(Link { version: older, next: NO_LINK })
            }
            Tag::Chain => entry.node_number(),
            _ => return false,
        };
        let Some(head) = self.link(head, version) else { return false };
        self.set_entry(spot, Entry::node(entry.hash, entry.extra(), entry.akey, Tag::Chain, head));
        true
    }

    /// Puts a version into a chain; returns the new head, none where there is one of this epoch.
    fn link(&mut self, head: u32, version: Version) -> Option<u32> {
        if self.links.get(head).version.epoch() < version.epoch() {
            return Some(self.links.insert(Link { version, next: head }));
        }
        let mut before = head;
        loop {
            let link = *self.links.get(before);
            if link.version.epoch() == version.epoch() {
                return None;
            }
            if link.next == NO_LINK || self.links.get(link.next).version.epoch() < version.epoch() {
                let fresh = self.links.insert(Link { version, next: link.next });
                self.links.get_mut(before).next = fresh;
                return Some(head);
            }
            before = link.next;
        }
    }

    /// Adds a version of an array. False where there is one of this epoch, or a single value.
    pub(super) fn insert_extent(&mut self, object: u32, hashes: &Hashes, version: ExtentVersion) -> bool {
        let Some((spot, _)) = self.spot(object, hashes, Epoch::MAX) else {
            let mut node = ExtentNode::default();
            node.apply(version);
            let number = self.extents.insert(node);
            let fresh = Entry::node(hashes.dkey, hashes.extra, hashes.akey, Tag::Extents, number);
            self.add_entry(object, hashes, fresh);
            return true;
        };
        let entry = *self.entry(spot);
        entry.tag() == Tag::Extents && self.extents.get_mut(entry.node_number()).apply(version)
    }

    /// Versions of a single value, newest first.
    pub(super) fn versions(&self, entry: &Entry) -> Versions<'_> {
        match entry.tag() {
            Tag::One | Tag::Tombstone => {
                Versions { index: self, only: Some(entry.as_version()), next: NO_LINK }
            }
            Tag::Chain => Versions { index: self, only: None, next: entry.node_number() },
            _ => Versions { index: self, only: None, next: NO_LINK },
        }
    }

    /// The version of a single value that is visible at an epoch.
    #[inline]
    pub(super) fn visible(&self, entry: &Entry, floor: Epoch, at: Epoch) -> Option<Version> {
        let version = self.versions(entry).find(|version| version.epoch() <= at)?;
        (!version.is_tombstone() && version.epoch() > floor).then_some(version)
    }

    /// Replaces the versions of a single value, newest first; frees the chain.
    pub(super) fn set_versions(&mut self, spot: Spot, kept: &[Version]) {
        let entry = *self.entry(spot);
        let mut next = if entry.tag() == Tag::Chain { entry.node_number() } else { NO_LINK };
        while next != NO_LINK {
            next = self.links.remove(next).next;
        }
        match kept {
            [] => self.remove_spot(spot),
            [only] => {
                self.set_entry(spot, Entry::version(entry.hash, entry.extra(), entry.akey, *only));
            }
            _ => {
                let mut head = NO_LINK;
                for version in kept.iter().rev() {
                    head = self.links.insert(Link { version: *version, next: head });
                }
                self.set_entry(spot, Entry::node(entry.hash, entry.extra(), entry.akey, Tag::Chain, head));
            }
        }
    }

    /// The record of a link lies elsewhere now. False where none of the chain was there.
    pub(super) fn relocate_link(&mut self, head: u32, from: u64, to: u64) -> bool {
        let mut next = head;
        while next != NO_LINK {
            let link = self.links.get_mut(next);
            if link.version.location() == from {
                link.version = link.version.moved_to(to);
                return true;
            }
            next = link.next;
        }
        false
    }

    /// Epoch of the oldest version under an entry.
    pub(super) fn oldest(&self, entry: &Entry) -> Option<Epoch> {
        match entry.tag() {
            Tag::Extents => {
                self.extents.get(entry.node_number()).history.first().map(|version| version.epoch)
            }
            Tag::Dkey => {
                let node = self.dkeys.get(entry.node_number());
                let punch = node.punches.first().map(|punch| punch.epoch());
                node.akeys.iter().filter_map(|akey| self.oldest(akey)).chain(punch).min()
            }
            _ => self.versions(entry).last().map(|version| version.epoch()),
        }
    }

    /// A record of an akey, to learn its keys from: any version will do.
    pub(super) fn any_record(&self, entry: &Entry) -> Option<(u64, usize)> {
        match entry.tag() {
            Tag::Extents => {
                let newest = self.extents.get(entry.node_number()).history.last()?;
                Some((newest.location, newest.lines as usize))
            }
            Tag::Dkey => {
                let node = self.dkeys.get(entry.node_number());
                let punch = node.punches.last().map(|punch| (punch.location(), punch.lines()));
                node.akeys.iter().find_map(|akey| self.any_record(akey)).or(punch)
            }
            _ => self.versions(entry).next().map(|version| (version.location(), version.lines())),
        }
    }

    /// Whether anything under an entry of an akey or a dkey is visible.
    pub(super) fn is_visible(&self, entry: &Entry, floor: Epoch, at: Epoch) -> bool {
        match entry.tag() {
            Tag::Extents => {
                let node = self.extents.get(entry.node_number());
                if at == Epoch::MAX {
                    node.pieces.values().any(|piece| piece.epoch > floor)
                } else {
                    node.pieces_at(at).values().any(|piece| piece.epoch > floor)
                }
            }
            Tag::Dkey => {
                let node = self.dkeys.get(entry.node_number());
                let floor = floor.max(last_punch(&node.punches, at));
                node.akeys.iter().any(|akey| self.is_visible(akey, floor, at))
            }
            _ => self.visible(entry, floor, at).is_some(),
        }
    }

    /// Memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let objects: usize = self.objects.nodes.iter().map(|node| node.dkeys.memory_bytes()).sum();
        let dkeys: usize = self.dkeys.nodes.iter().map(|node| node.akeys.memory_bytes()).sum();
        let extents: usize = self.extents.nodes.iter().map(ExtentNode::memory_bytes).sum();
        let containers: usize = self.containers.iter().map(|objects| objects.table.memory_bytes()).sum();
        objects
            + dkeys
            + extents
            + containers
            + self.objects.memory_bytes()
            + self.dkeys.memory_bytes()
            + self.links.memory_bytes()
    }
}

/// Versions of a single value, newest first.
#[derive(Clone)]
pub(super) struct Versions<'a> {
    index: &'a Index,
    only: Option<Version>,
    next: u32,
}

impl Iterator for Versions<'_> {
    type Item = Version;

    #[inline]
    fn next(&mut self) -> Option<Version> {
        if let Some(only) = self.only.take() {
            return Some(only);
        }
        if self.next == NO_LINK {
            return None;
        }
        let link = self.index.links.get(self.next);
        self.next = link.next;
        Some(link.version)
    }
}

/// Hashes of a place.
#[inline]
pub(super) fn hashes(place: &KeyPath<'_>) -> Hashes {
    Hashes::of(place.dkey, place.akey)
}
