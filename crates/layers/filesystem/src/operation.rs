//! The operation of this layer: one call on a name, or on a file that is open.

use driver::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls that are measured, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FsClass {
    /// open(2) of a file that is there.
    Open,
    /// open(2) with `O_CREAT`.
    Create,
    /// mknod(2) of a regular file.
    Mknod,
    /// pread(2).
    Read,
    /// pwrite(2).
    Write,
    /// fsync(2).
    Fsync,
    /// close(2).
    Close,
    /// stat(2) of a name.
    Stat,
    /// A directory is opened, listed whole (getdents(2)) and closed.
    Readdir,
    /// mkdir(2).
    Mkdir,
    /// rmdir(2).
    Rmdir,
    /// unlink(2).
    Unlink,
    /// rename(2).
    Rename,
    /// link(2).
    Link,
    /// symlink(2).
    Symlink,
    /// readlink(2).
    Readlink,
    /// ftruncate(2) of a file that is open.
    Truncate,
    /// setxattr(2).
    Setxattr,
    /// getxattr(2).
    Getxattr,
    /// removexattr(2).
    Removexattr,
    /// fcntl(2), `F_OFD_SETLKW`: the whole file is locked.
    Lock,
    /// The same, unlocked.
    Unlock,
    /// posix_fadvise(2), `POSIX_FADV_WILLNEED`.
    Fadvise,
    /// syncfs(2).
    Syncfs,
}

/// Names of the classes, in the order of [`FsClass`].
pub(crate) const CLASSES: &[&str] = &[
    "open",
    "create",
    "mknod",
    "read",
    "write",
    "fsync",
    "close",
    "stat",
    "readdir",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "link",
    "symlink",
    "readlink",
    "truncate",
    "setxattr",
    "getxattr",
    "removexattr",
    "lock",
    "unlock",
    "fadvise",
    "syncfs",
];

/// Kind of a name in a file set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A file.
    File,
    /// A directory that is an item: it is made, looked at and removed as files are.
    Directory,
    /// A directory of the tree that holds the items.
    Node,
    /// An entry that a walk found, by its number in the driver's list.
    Found,
}

/// One operation on a file set.
#[derive(Clone, Copy, Debug)]
pub struct FsOperation {
    /// Class.
    pub class: FsClass,
    /// Kind of the name.
    pub kind: NameKind,
    /// Whether it begins an item: limits in operations count items.
    pub is_first: bool,
    /// Whether it ends an item.
    pub is_last: bool,
    /// Whether it acts on the item's second name (a new name of a rename, a link).
    pub is_second: bool,
    /// Slot, and so buffer.
    pub slot: u32,
    /// Number of the open file among those of the worker.
    pub handle: u32,
    /// Rank whose item it is.
    pub rank: u32,
    /// Item of the rank, or node of its tree.
    pub item: u64,
    /// First byte in the file.
    pub offset_bytes: u64,
    /// Bytes.
    pub length_bytes: u32,
}

impl FsOperation {
    /// An operation on an item in a slot, for struct update: of rank 0, in the middle of its item, without data.
    #[inline]
    #[must_use]
    pub fn new(class: FsClass, kind: NameKind, slot: u32, item: u64) -> Self {
        Self {
            class,
            kind,
            is_first: false,
            is_last: false,
            is_second: false,
            slot,
            handle: slot,
            rank: 0,
            item,
            offset_bytes: 0,
            length_bytes: 0,
        }
    }
}

impl Operation for FsOperation {
    const CLASSES: &'static [&'static str] = CLASSES;

    #[inline]
    fn class(&self) -> usize {
        self.class as usize
    }

    #[inline]
    fn slot(&self) -> u32 {
        self.slot
    }

    #[inline]
    fn bytes(&self) -> u64 {
        if matches!(self.class, FsClass::Read | FsClass::Write) { u64::from(self.length_bytes) } else { 0 }
    }

    #[inline]
    fn position(&self) -> u64 {
        self.offset_bytes
    }

    #[inline]
    fn is_limited(&self) -> bool {
        self.is_first
    }

    #[inline]
    fn begins_item(&self) -> bool {
        self.is_first
    }

    #[inline]
    fn ends_item(&self) -> bool {
        self.is_last
    }

    #[inline]
    fn item_place(&self) -> u32 {
        self.handle
    }

    #[inline]
    fn is_whole(&self, result: i64) -> bool {
        match self.class {
            FsClass::Read | FsClass::Write => result == i64::from(self.length_bytes),
            _ => result >= 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_names_of_the_record() {
        assert_eq!(CLASSES[FsClass::Fadvise as usize], "fadvise");
        assert_eq!(CLASSES.len(), FsClass::Syncfs as usize + 1);
        assert_eq!(CLASSES[FsClass::Unlink as usize], "unlink");
        assert_eq!(
            serde_json::to_value(FsClass::Setxattr).ok(),
            Some(CLASSES[FsClass::Setxattr as usize].into())
        );
    }
}
