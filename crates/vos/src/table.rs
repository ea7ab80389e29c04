//! A hash table in the order of hashes: open addressing where each cluster is sorted and nothing wraps around, so that it can be listed
//! from any hash on while it changes. Small ones are sorted lists.
#![allow(unsafe_code)]

use super::types::Anchor;
use crate::model::Epoch;

const EPOCH_BITS: u32 = 48;
const LOCATION_BITS: u32 = 38;
const LINES_BITS: u32 = 22;
/// Lists up to this length are not hashed.
const LIST_MAX: usize = 16;
/// Slots behind the last home, so that nothing wraps around.
const SLACK: usize = 64;

/// Tag of a slot: the sort of entry that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Empty = 0,
    /// One version: a record.
    One = 1,
    /// One version: a punch.
    Tombstone = 2,
    /// A chain of versions.
    Chain = 3,
    /// An array.
    Extents = 4,
    /// A dkey with a table of its own.
    Dkey = 5,
    /// An object.
    Object = 6,
}

/// A version of a value: where its record lies, how many lines it takes, and when it was written. 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// Epoch; the upper 16 bits are not its own.
    stamp: u64,
    refer: u64,
}

impl Version {
    pub(super) fn new(epoch: Epoch, location: u64, lines: usize, is_tombstone: bool) -> Self {
        let tag = if is_tombstone { Tag::Tombstone } else { Tag::One };
        Self { stamp: epoch, refer: pack(tag, location, lines) }
    }

    #[inline]
    pub(super) fn epoch(self) -> Epoch {
        self.stamp & ((1 << EPOCH_BITS) - 1)
    }

    /// First line of the record.
    #[inline]
    pub(super) fn location(self) -> u64 {
        self.refer & ((1 << LOCATION_BITS) - 1)
    }

    #[inline]
    pub(super) fn lines(self) -> usize {
        (self.refer >> LOCATION_BITS & ((1 << LINES_BITS) - 1)) as usize
    }

    #[inline]
    pub(super) fn is_tombstone(self) -> bool {
        self.refer >> (LOCATION_BITS + LINES_BITS) == Tag::Tombstone as u64
    }

    /// The same version elsewhere.
    pub(super) fn moved_to(self, location: u64) -> Self {
        Self { stamp: self.stamp, refer: self.refer & !((1 << LOCATION_BITS) - 1) | location }
    }

    /// As two numbers, for the checkpoint.
    pub(super) fn to_words(self) -> [u64; 2] {
        [self.stamp, self.refer]
    }

    pub(super) fn from_words(words: [u64; 2]) -> Self {
        Self { stamp: words[0], refer: words[1] }
    }
}

#[inline]
fn pack(tag: Tag, location: u64, lines: usize) -> u64 {
    debug_assert!(location < 1 << LOCATION_BITS && lines < 1 << LINES_BITS);
    location | (lines as u64) << LOCATION_BITS | (tag as u64) << (LOCATION_BITS + LINES_BITS)
}

/// A slot: 32 bytes, two to a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Hash that the table is ordered by.
    pub(super) hash: u64,
    /// In a table of dkeys: hash of the only akey.
    pub(super) akey: u64,
    /// Epoch (48 bits), further bits of the hash (16).
    stamp: u64,
    refer: u64,
}

impl Entry {
    /// One that refers to a node.
    pub(super) fn node(hash: u64, extra: u16, akey: u64, tag: Tag, node: u32) -> Self {
        Self { hash, akey, stamp: u64::from(extra) << EPOCH_BITS, refer: pack(tag, u64::from(node), 0) }
    }

    /// One of a single version.
    pub(super) fn version(hash: u64, extra: u16, akey: u64, version: Version) -> Self {
        Self { hash, akey, stamp: version.epoch() | u64::from(extra) << EPOCH_BITS, refer: version.refer }
    }

    /// The same in a table that is ordered by another hash.
    pub(super) fn with_hash(self, hash: u64) -> Self {
        Self { hash, ..self }
    }

    #[inline]
    pub(super) fn extra(&self) -> u16 {
        (self.stamp >> EPOCH_BITS) as u16
    }

    #[inline]
    pub(super) fn tag(&self) -> Tag {
        match self.refer >> (LOCATION_BITS + LINES_BITS) {
            0 => Tag::Empty,
            1 => Tag::One,
            2 => Tag::Tombstone,
            3 => Tag::Chain,
            4 => Tag::Extents,
            5 => Tag::Dkey,
            _ => Tag::Object,
        }
    }

    /// Number of the node.
    #[inline]
    pub(super) fn node_number(&self) -> u32 {
        self.refer as u32
    }

    /// The only version.
    #[inline]
    pub(super) fn as_version(&self) -> Version {
        Version { stamp: self.stamp & ((1 << EPOCH_BITS) - 1), refer: self.refer }
    }

    /// As four numbers, for the checkpoint.
    pub(super) fn to_words(self) -> [u64; 4] {
        [self.hash, self.akey, self.stamp, self.refer]
    }

    pub(super) fn from_words(words: [u64; 4]) -> Self {
        Self { hash: words[0], akey: words[1], stamp: words[2], refer: words[3] }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.refer == 0
    }
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Entry>,
    len: usize,
    /// Homes are the upper `bits` bits of hashes; 0: a sorted list.
    bits: u32,
}

impl Table {
    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Entry>()
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        if self.bits == 0 { 0 } else { (hash >> (64 - self.bits)) as usize }
    }

    /// First position whose entry is not before `hash`, or that is empty.
    #[inline]
    fn lower_bound(&self, hash: u64) -> usize {
        if self.bits == 0 {
            return self.slots.partition_point(|entry| entry.hash < hash);
        }
        let mut at = self.home(hash);
        while at < self.slots.len() && !self.slots[at].is_empty() && self.slots[at].hash < hash {
            at += 1;
        }
        at
    }

    /// Position of the entry of this hash that `matches`.
    #[inline]
    pub(super) fn find(&self, hash: u64, matches: impl Fn(&Entry) -> bool) -> Option<usize> {
        let mut at = self.lower_bound(hash);
        while let Some(entry) = self.slots.get(at) {
            if entry.is_empty() || entry.hash != hash {
                return None;
            }
            if matches(entry) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> &Entry {
        &self.slots[at]
    }

    /// Replaces an entry by one of the same hash.
    #[inline]
    pub(super) fn set(&mut self, at: usize, entry: Entry) {
        debug_assert!(self.slots[at].hash == entry.hash && !entry.is_empty());
        self.slots[at] = entry;
    }

    /// Adds an entry, behind others of its hash. Positions are other ones afterwards.
    pub(super) fn insert(&mut self, entry: Entry) {
        debug_assert!(!entry.is_empty());
        if self.bits == 0 {
            if self.len < LIST_MAX {
                let at = self.slots.partition_point(|other| other.hash <= entry.hash);
                if self.slots.len() == self.slots.capacity() {
                    self.slots.reserve_exact(if self.len < 2 { 1 } else { self.len });
                }
                self.slots.insert(at, entry);
                self.len += 1;
                return;
            }
            self.grow();
        } else if self.len * 4 >= (3 << self.bits) {
            self.grow();
        }
        self.place(entry);
    }

    /// Puts an entry into its cluster.
    fn place(&mut self, entry: Entry) {
        let mut at = self.lower_bound(entry.hash);
        while at < self.slots.len() && !self.slots[at].is_empty() && self.slots[at].hash == entry.hash {
            at += 1;
        }
        let gap = self.slots[at..].iter().position(Entry::is_empty).unwrap_or_else(|| {
            // The last cluster has reached the end: it gets more room.
            let end = self.slots.len();
            self.slots.resize(end + SLACK, Entry::default());
            end - at
        });
        self.slots.copy_within(at..at + gap, at + 1);
        self.slots[at] = entry;
        self.len += 1;
    }

    fn grow(&mut self) {
        let bits = if self.bits == 0 { (LIST_MAX * 2).ilog2() } else { self.bits + 1 };
        self.rebuild(bits);
    }

    fn rebuild(&mut self, bits: u32) {
        let mut fresh = Vec::with_capacity((1 << bits) + SLACK);
        advise_huge(&fresh);
        fresh.resize((1 << bits) + SLACK, Entry::default());
        let old = std::mem::replace(&mut self.slots, fresh);
        self.bits = bits;
        // In the order of hashes each goes to its home or right behind the one before it.
        let mut next = 0;
        for (number, entry) in old.iter().filter(|entry| !entry.is_empty()).enumerate() {
            let at = next.max(self.home(entry.hash));
            if at >= self.slots.len() {
                let rest: Vec<Entry> =
                    old.iter().filter(|entry| !entry.is_empty()).skip(number).copied().collect();
                self.slots.extend(rest);
                return;
            }
            self.slots[at] = *entry;
            next = at + 1;
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, at: usize) {
        self.len -= 1;
        if self.bits == 0 {
            self.slots.remove(at);
            return;
        }
        let mut hole = at;
        while hole + 1 < self.slots.len() {
            let next = self.slots[hole + 1];
            if next.is_empty() || self.home(next.hash) == hole + 1 {
                break;
            }
            self.slots[hole] = next;
            hole += 1;
        }
        self.slots[hole] = Entry::default();
    }

    /// All entries, in the order of hashes.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().filter(|entry| !entry.is_empty())
    }

    /// Position of the first entry from `anchor` on.
    pub(super) fn position(&self, anchor: &Anchor) -> usize {
        let mut at = self.lower_bound(anchor.hash);
        let mut ties = anchor.ties;
        while ties > 0
            && self.slots.get(at).is_some_and(|entry| !entry.is_empty() && entry.hash == anchor.hash)
        {
            at += 1;
            ties -= 1;
        }
        at
    }

    /// The first entry at or behind a position, and its position.
    pub(super) fn next(&self, at: usize) -> Option<(usize, &Entry)> {
        let skipped = self.slots.get(at..)?.iter().position(|entry| !entry.is_empty())?;
        Some((at + skipped, &self.slots[at + skipped]))
    }

    /// A table of entries that come in the order of their hashes.
    pub(super) fn of_sorted(entries: Vec<Entry>) -> Self {
        let len = entries.len();
        let mut table = Self { slots: entries, len, bits: 0 };
        if len > LIST_MAX {
            table.rebuild((len * 4 / 3 + 1).next_power_of_two().ilog2());
        }
        table
    }
}

/// Huge pages behind a large table, before it is touched: a lookup costs one miss of the translation buffer less.
fn advise_huge(slots: &Vec<Entry>) {
    const HUGE_BYTES: usize = 2 << 20;
    let from = (slots.as_ptr() as usize).next_multiple_of(HUGE_BYTES);
    let to = slots.as_ptr() as usize + slots.capacity() * size_of::<Entry>();
    // Miri has no pages to advise about.
    if to > from + HUGE_BYTES && !cfg!(miri) {
        // SAFETY: advice on whole pages of our own allocation changes no content.
        unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE) };
    }
}

impl Anchor {
    /// Behind an entry.
    pub(super) fn pass(&mut self, entry: &Entry) {
        if entry.hash == self.hash {
            self.ties += 1;
        } else {
            (self.hash, self.ties) = (entry.hash, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn entry(hash: u64, id: u64) -> Entry {
        Entry::version(hash, 7, id, Version::new(id + 1, id, 3, false))
    }

    #[test]
    fn versions_keep_their_parts() {
        let version = Version::new((1 << 48) - 1, (1 << 38) - 1, (1 << 22) - 1, true);
        let entry = Entry::version(5, u16::MAX, 9, version);
        assert_eq!((entry.as_version(), entry.extra(), entry.tag()), (version, u16::MAX, Tag::Tombstone));
        assert_eq!((version.epoch(), version.location()), ((1 << 48) - 1, (1 << 38) - 1));
        assert_eq!((version.lines(), version.moved_to(4).location()), ((1 << 22) - 1, 4));
        assert_eq!(Entry::from_words(entry.to_words()), entry);
    }

    proptest! {
        #[test]
        fn like_a_sorted_map(operations in prop::collection::vec((0u64..400, any::<bool>(), 0u32..3), 1..900)) {
            let mut table = Table::default();
            let mut model: BTreeMap<(u64, u64), ()> = BTreeMap::new();
            for (id, is_insert, spread) in operations {
                // Few distinct hashes at the end of the range: long clusters and ties.
                let hash = match spread { 0 => u64::MAX - id % 3, 1 => (id % 50) << 57, _ => id.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
                let found = table.find(hash, |entry| entry.akey == id);
                prop_assert_eq!(found.is_some(), model.contains_key(&(hash, id)));
                match (found, is_insert) {
                    (None, true) => { table.insert(entry(hash, id)); model.insert((hash, id), ()); }
                    (Some(at), false) => { table.remove(at); model.remove(&(hash, id)); }
                    _ => {}
                }
            }
            prop_assert_eq!(table.len(), model.len());
            let mut listed: Vec<_> = table.iter().map(|entry| (entry.hash, entry.akey)).collect();
            prop_assert!(listed.is_sorted_by_key(|pair| pair.0));
            let mut anchor = Anchor::START;
            let mut stepped = Vec::new();
            while let Some((_, entry)) = table.next(table.position(&anchor)) {
                stepped.push((entry.hash, entry.akey));
                anchor.pass(entry);
            }
            prop_assert_eq!(&stepped, &listed);
            listed.sort_unstable();
            prop_assert_eq!(listed, model.into_keys().collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_entries_stay_sorted_and_small() {
        const ENTRIES: u64 = if cfg!(miri) { 2_000 } else { 100_000 };
        let mut table = Table::default();
        for id in 0..ENTRIES {
            table.insert(entry(id.wrapping_mul(0x9e37_79b9_7f4a_7c15), id));
        }
        assert!(table.iter().map(|entry| entry.hash).is_sorted());
        assert!(
            (0..ENTRIES)
                .all(|id| table.find(id.wrapping_mul(0x9e37_79b9_7f4a_7c15), |e| e.akey == id).is_some())
        );
        assert!(table.memory_bytes() < ENTRIES as usize * 95);
    }
}
