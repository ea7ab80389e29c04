//! Objects and keys that a file system is laid over ([docs/dfs.md](../../../docs/dfs.md)).

use rustix::io::Errno;
use vos::model::ObjectId;
use vos::{ObjectClass, ObjectType, Redundancy};

/// Version of the layout. A container of another one is refused.
pub const LAYOUT_VERSION: u32 = 1;
/// Longest name of an entry or of an extended attribute, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest target of a symbolic link, in bytes.
pub const SYMLINK_BYTES_MAX: usize = 4096;
/// Largest value of an extended attribute, in bytes.
pub const XATTR_BYTES_MAX: usize = 64 << 10;
/// Bytes of a file under one dkey, where nothing else is said.
pub const CHUNK_BYTES: u64 = 1 << 20;
/// Largest file, in bytes: offsets are signed in system calls.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;
/// The first ids are kept for objects of the layout.
pub(crate) const RESERVED_IDS: u64 = 16;

/// Object of the superblock.
pub(crate) const SUPERBLOCK: ObjectId = ObjectId { lo: 0, hi: 1 << 48 | 1 << 32 };
/// Dkey of the superblock.
pub(crate) const SUPERBLOCK_DKEY: &[u8] = b"/superblock";
/// Dkey of the inode of the root directory, in the superblock's object.
pub(crate) const ROOT_DKEY: &[u8] = b"/";
/// First bytes of the dkeys of what has to be finished after a failure, in the superblock's object.
pub(crate) const INTENT_PREFIX: &[u8; 7] = b"/intent";
/// Dkey that a directory has as long as it takes entries: the id of its parent.
pub(crate) const LIVE_DKEY: &[u8] = b"/live";
/// Dkey of the extended attributes of an inode, in its own object: an akey each.
pub(crate) const XATTRS_DKEY: &[u8] = b"/xattrs";
/// Akey of inodes, and of single values that have a dkey to themselves.
pub(crate) const INODE_AKEY: &[u8] = b"inode";
/// Akey of the bytes of a file.
pub(crate) const DATA_AKEY: &[u8] = b"data";

const MAGIC: &[u8; 8] = b"strataFS";
const SUPERBLOCK_BYTES: usize = 28;

/// Facts that all clients of a file system share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) directory_class: ObjectClass,
    pub(crate) file_class: ObjectClass,
    pub(crate) chunk_bytes: u64,
}

/// Why bytes are no superblock of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Version(u32),
    Malformed,
}

impl Superblock {
    pub(crate) fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&LAYOUT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.directory_class.id().to_le_bytes());
        bytes[16..20].copy_from_slice(&self.file_class.id().to_le_bytes());
        bytes[20..28].copy_from_slice(&self.chunk_bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let Some(rest) = bytes.strip_prefix(MAGIC.as_slice()) else { return Err(Unreadable::Malformed) };
        let mut reader = Reader(rest);
        let version = reader.word().ok_or(Unreadable::Malformed)?;
        if version != LAYOUT_VERSION {
            return Err(Unreadable::Version(version));
        }
        let mut read = || {
            let mut class = || ObjectClass::from_id(reader.word()?).filter(is_flat);
            let (directory_class, file_class) = (class()?, class()?);
            let chunk_bytes = reader.long().filter(|bytes| is_chunk(*bytes))?;
            Some(Self { directory_class, file_class, chunk_bytes })
        };
        read().ok_or(Unreadable::Malformed)
    }

    /// Id of the root directory's object.
    pub(crate) fn root(&self) -> ObjectId {
        self.directory(1)
    }

    pub(crate) fn directory(&self, number: u64) -> ObjectId {
        ObjectId::new(ObjectType::MultiHashed, self.directory_class, number)
    }

    pub(crate) fn file(&self, number: u64) -> ObjectId {
        ObjectId::new(ObjectType::ArrayByte, self.file_class, number)
    }
}

/// Whether objects of a class have neither copies nor parity.
pub(crate) fn is_flat(class: &ObjectClass) -> bool {
    class.redundancy == Redundancy::None
}

/// Whether files can have chunks of so many bytes.
pub(crate) fn is_chunk(bytes: u64) -> bool {
    bytes.is_power_of_two() && (4096..=1 << 30).contains(&bytes)
}

/// Id as it stands in values.
pub(crate) fn id_bytes(object: ObjectId) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&object.lo.to_le_bytes());
    bytes[8..].copy_from_slice(&object.hi.to_le_bytes());
    bytes
}

/// Refuses what cannot be the name of an entry.
pub(crate) fn check_name(name: &[u8]) -> Result<(), Errno> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    let is_special = matches!(name, b"" | b"." | b"..");
    if is_special || name.iter().any(|byte| matches!(byte, b'/' | 0)) { Err(Errno::INVAL) } else { Ok(()) }
}

/// Reads numbers one after the other, none beyond the end.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub(crate) fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn id(&mut self) -> Option<ObjectId> {
        Some(ObjectId { lo: self.long()?, hi: self.long()? })
    }

    /// Bytes behind their 32-bit length.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Adds bytes behind their 32-bit length, as [`Reader::counted`] reads them.
pub(crate) fn put_counted(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superblocks_are_read_as_they_are_written_and_refused_otherwise() {
        let superblock = Superblock {
            directory_class: ObjectClass::S1,
            file_class: ObjectClass::SX,
            chunk_bytes: CHUNK_BYTES,
        };
        let bytes = superblock.encode();
        assert_eq!(Superblock::decode(&bytes), Ok(superblock));
        assert_eq!(Superblock::decode(&bytes[..27]), Err(Unreadable::Malformed));
        let mut other = bytes;
        other[8] = 7;
        assert_eq!(Superblock::decode(&other), Err(Unreadable::Version(7)));
        let mut odd = bytes;
        odd[20] = 1;
        assert_eq!(Superblock::decode(&odd), Err(Unreadable::Malformed), "a chunk that is no power of two");
        assert_eq!(SUPERBLOCK, ObjectId::new(ObjectType::MultiHashed, ObjectClass::S1, 0));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_superblock_or_are_refused(tail in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
            let bytes = [MAGIC.as_slice(), &LAYOUT_VERSION.to_le_bytes(), &tail].concat();
            for bytes in [&bytes[..], &tail[..]] {
                if let Ok(superblock) = Superblock::decode(bytes) {
                    proptest::prop_assert_eq!(&superblock.encode()[..], &bytes[..28]);
                }
            }
        }
    }

    #[test]
    fn names_are_checked() {
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
            assert_eq!(check_name(name), Err(Errno::INVAL));
        }
        assert_eq!(check_name(&[b'x'; 255]), Ok(()));
        assert_eq!(check_name(&[b'x'; 256]), Err(Errno::NAMETOOLONG));
        assert_eq!(check_name(b"..."), Ok(()));
    }
}
