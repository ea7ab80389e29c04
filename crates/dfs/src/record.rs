//! The inode as it stands in the entry of its directory.

use vos::model::ObjectId;

use crate::layout::{Reader, SYMLINK_BYTES_MAX, id_bytes};
use crate::{Attributes, FileKind, Inode, Owner, Timestamp};

/// Bytes before the target of a symbolic link.
pub(crate) const RECORD_BYTES: usize = 68;
/// Longest inode, in bytes.
pub(crate) const RECORD_BYTES_MAX: usize = RECORD_BYTES + SYMLINK_BYTES_MAX;

/// An inode without the target of a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) object: ObjectId,
    pub(crate) kind: FileKind,
    pub(crate) permissions: u16,
    pub(crate) owner: Owner,
    pub(crate) device: u32,
    pub(crate) accessed: Timestamp,
    pub(crate) modified: Timestamp,
    pub(crate) changed: Timestamp,
    /// Length of the target of a symbolic link, which follows, in bytes.
    pub(crate) target_bytes: u16,
}

/// Type bits of `st_mode`, by kind.
const KINDS: &[(u32, FileKind)] = &[
    (0o100_000, FileKind::File),
    (0o040_000, FileKind::Directory),
    (0o120_000, FileKind::Symlink),
    (0o010_000, FileKind::Fifo),
    (0o140_000, FileKind::Socket),
    (0o020_000, FileKind::CharacterDevice),
    (0o060_000, FileKind::BlockDevice),
];
const PERMISSIONS: u32 = 0o7777;

fn type_bits(kind: FileKind) -> u32 {
    KINDS.iter().find(|(_, known)| *known == kind).map_or(0, |(bits, _)| *bits)
}

/// The kind of an inode of a mode; none where it is of no kind.
pub(crate) fn kind_of(mode: u32) -> Option<FileKind> {
    KINDS.iter().find(|(bits, _)| *bits == mode & !PERMISSIONS).map(|(_, kind)| *kind)
}

impl Record {
    pub(crate) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&(type_bits(self.kind) | u32::from(self.permissions)).to_le_bytes());
        put(&self.owner.user.to_le_bytes());
        put(&self.owner.group.to_le_bytes());
        put(&self.device.to_le_bytes());
        put(&id_bytes(self.object));
        for time in [self.accessed, self.modified, self.changed] {
            put(&time.seconds.to_le_bytes());
            put(&time.nanoseconds.to_le_bytes());
        }
        bytes
    }

    /// Reads one; none where the bytes are no inode.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let mode = reader.word()?;
        let owner = Owner { user: reader.word()?, group: reader.word()? };
        let device = reader.word()?;
        let object = reader.id()?;
        let mut time = || {
            let (seconds, nanoseconds) = (reader.long()? as i64, reader.word()?);
            (nanoseconds < 1_000_000_000).then_some(Timestamp { seconds, nanoseconds })
        };
        let (accessed, modified, changed) = (time()?, time()?, time()?);
        let target_bytes = u16::try_from(bytes.len() - RECORD_BYTES).ok()?;
        let kind = kind_of(mode)?;
        let is_whole = (kind == FileKind::Symlink) == (target_bytes > 0);
        is_whole.then_some(Self {
            object,
            kind,
            permissions: (mode & PERMISSIONS) as u16,
            owner,
            device,
            accessed,
            modified,
            changed,
            target_bytes,
        })
    }

    pub(crate) fn attributes(&self, size_bytes: u64, chunk_bytes: u64) -> Attributes {
        let size_bytes =
            if self.kind == FileKind::Symlink { u64::from(self.target_bytes) } else { size_bytes };
        Attributes {
            inode: Inode(self.object.lo),
            kind: self.kind,
            permissions: self.permissions,
            links: 1,
            owner: self.owner,
            device: self.device,
            size_bytes,
            stored_bytes: size_bytes,
            block_size_bytes: chunk_bytes as u32,
            accessed: self.accessed,
            modified: self.modified,
            changed: self.changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_record_that_writes_them_again_or_none(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..KINDS.len(), permissions in 0u32..=PERMISSIONS,
        ) {
            // Random modes and times would make nearly all of them malformed.
            if bytes.len() >= RECORD_BYTES {
                bytes[..4].copy_from_slice(&(KINDS[kind].0 | permissions).to_le_bytes());
                [40, 52, 64].into_iter().for_each(|at| bytes[at + 3] = 0);
            }
            match Record::decode(&bytes) {
                None => prop_assert!(
                    bytes.len() < RECORD_BYTES || (KINDS[kind].1 == FileKind::Symlink) != (bytes.len() > RECORD_BYTES)
                ),
                Some(record) => prop_assert_eq!(&record.encode()[..], &bytes[..RECORD_BYTES]),
            }
        }
    }
}
