//! Listings of directories. An entry's cookie is its group, the upper bits of the hash that its name is listed by, and how many entries with the same
//! bits come before: it stays what it is whatever else is made or removed.

use rustix::io::Errno;
use vos::Anchor;
use vos::model::ObjectId;

use super::Dfs;
use crate::layout::INODE_AKEY;
use crate::record::Record;
use crate::{DirectoryEntry, FileKind, Inode};

/// Bits of a cookie: 10 of the group, 49 of the hash, 4 of the entries of one hash. Offsets of directories are 63 bits.
const TIE_BITS: u32 = 4;
const HASH_BITS: u32 = 49;
const TIES_MAX: u64 = (1 << TIE_BITS) - 1;
/// Groups that cookies can tell apart.
pub(super) const GROUPS_MAX: u32 = 1 << 10;

/// Place in a listing: behind `ties` entries of the same hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cookie {
    group: u32,
    hash: u64,
    ties: u64,
}

impl Cookie {
    fn decode(bits: u64) -> Self {
        let hash = bits >> TIE_BITS & ((1 << HASH_BITS) - 1);
        Self { group: (bits >> (TIE_BITS + HASH_BITS)) as u32, hash, ties: bits & TIES_MAX }
    }

    fn encode(self) -> u64 {
        (u64::from(self.group) << HASH_BITS | self.hash) << TIE_BITS | self.ties.min(TIES_MAX)
    }
}

/// Whether a dkey of a directory is one of the layout, and no entry.
fn is_hidden(dkey: &[u8]) -> bool {
    dkey.first() == Some(&b'/')
}

impl Dfs {
    pub(super) fn is_empty(&self, directory: ObjectId) -> Result<bool, Errno> {
        for group in 0..self.store.groups(directory)? {
            let mut is_empty = true;
            self.store.list(directory, group, 0, INODE_AKEY, &mut |name, _| {
                is_empty = is_hidden(name);
                is_empty
            })?;
            if !is_empty {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn list_from(
        &self,
        inode: Inode,
        after: u64,
        show: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let directory = self.table.directory(inode)?;
        let begin = Cookie::decode(after);
        for group in begin.group..self.store.groups(directory)? {
            let mut place = if group == begin.group { begin } else { Cookie { group, hash: 0, ties: 0 } };
            let (skipped_hash, mut skipped) = (place.hash, place.ties);
            (place.ties, place.group) = (0, group);
            let from = place.hash << (64 - HASH_BITS);
            let is_over = self.store.list(directory, group, from, INODE_AKEY, &mut |name, value| {
                if is_hidden(name) {
                    return true;
                }
                let hash = Anchor::hash_of(name) >> (64 - HASH_BITS);
                place.ties = if hash == place.hash { place.ties + 1 } else { 1 };
                place.hash = hash;
                if hash == skipped_hash && skipped > 0 {
                    skipped -= 1;
                    return true;
                }
                let record = value.ok().and_then(Record::decode);
                // One that cannot be read is shown nevertheless: else nobody would know of it.
                let (inode, kind) = record.map_or((Inode(hash.max(2)), FileKind::File), |record| {
                    (Inode(record.object.lo), record.kind)
                });
                show(DirectoryEntry { inode, kind, name, next: place.encode() })
            })?;
            if !is_over {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_read_as_they_are_written() {
        for (group, hash, ties) in [(0, 0, 0), (1023, (1 << HASH_BITS) - 1, TIES_MAX), (5, 77, 1)] {
            let cookie = Cookie { group, hash, ties };
            assert_eq!(Cookie::decode(cookie.encode()), cookie);
            assert!(i64::try_from(cookie.encode()).is_ok(), "an offset of a directory");
        }
    }
}
