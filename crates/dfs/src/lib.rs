//! Files and directories over objects: what a file system does, by inode, whoever carries it out.
//!
//! [`FileSystem`] is what the driver of file loads, the mount and the interception library stand on. Inodes are numbers of the file system: an
//! entry that was looked up is held as long as references to it are ([`FileSystem::forget`]). [`open`] opens one by its URL.

mod dfs;
mod file_system;
mod layout;
mod libdfs;
pub mod local;
pub mod mounts;
mod open;
mod record;
mod store;
mod table;
mod url;

pub use file_system::{
    Attributes, DirectoryEntry, Errno, ExpectedChanges, FileKind, FileSystem, Handle, Inode, NewNode,
    OpenFlags, Owner, RenameFlags, SetAttributes, SetTime, StatFs, Timestamp,
};
pub use layout::{
    CHUNK_BYTES, FILE_BYTES_MAX, LAYOUT_VERSION, NAME_BYTES_MAX, SYMLINK_BYTES_MAX, XATTR_BYTES_MAX,
};
pub use open::{CONTAINER, Format, Options, open, open_on_pool};
pub use url::Url;
