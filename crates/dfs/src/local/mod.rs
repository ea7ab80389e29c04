//! A file system that another process of this machine serves over a Unix socket: programs with the interception library use that of the
//! mount's process so, where its store is open in one process at a time.
//!
//! Each request is a length, a number of a call and its arguments; each answer a length, an errno and its value. Who may connect is decided by the
//! socket's folder, which its owner alone may enter, and by the user of the process that connects.

mod client;
mod left;
mod server;
mod wire;

pub use client::LocalFileSystem;
pub use server::{Change, LocalServer};

/// Calls by number, in the order of [`crate::FileSystem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Call {
    Hello,
    StatFs,
    LookUp,
    Forget,
    Attributes,
    Stat,
    SetAttributes,
    MakeDirectory,
    MakeNode,
    MakeSymlink,
    Link,
    ReadLink,
    Create,
    Open,
    Read,
    Write,
    Flush,
    Sync,
    Allocate,
    Seek,
    Release,
    Unlink,
    RemoveDirectory,
    Rename,
    List,
    Xattr,
    SetXattr,
    ListXattrs,
    RemoveXattr,
    Changed,
}

impl Call {
    const ALL: [Self; 30] = [
        Self::Hello,
        Self::StatFs,
        Self::LookUp,
        Self::Forget,
        Self::Attributes,
        Self::Stat,
        Self::SetAttributes,
        Self::MakeDirectory,
        Self::MakeNode,
        Self::MakeSymlink,
        Self::Link,
        Self::ReadLink,
        Self::Create,
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Sync,
        Self::Allocate,
        Self::Seek,
        Self::Release,
        Self::Unlink,
        Self::RemoveDirectory,
        Self::Rename,
        Self::List,
        Self::Xattr,
        Self::SetXattr,
        Self::ListXattrs,
        Self::RemoveXattr,
        Self::Changed,
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Version of the protocol; both sides are of one build.
const VERSION: u32 = 1;
/// Longest request or answer, in bytes.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Bytes that one call moves at most; longer ones are cut in pieces.
const DATA_BYTES_MAX: usize = 4 << 20;
/// Entries of a listing in one answer.
const LIST_ENTRIES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_list() {
        for (number, call) in (0..).zip(Call::ALL) {
            assert_eq!(call as u8, number);
            assert_eq!(Call::of(number), Some(call));
        }
        assert_eq!(Call::of(30), None);
    }
}
