//! Files and directories over objects: what a file system does, by inode, whoever carries it out.
//!
//! [`FileSystem`] is what the driver of file loads, the mount and the interception library stand on. Inodes are numbers of this process: an
//! entry that was looked up has one as long as references to it are held ([`FileSystem::forget`]).

mod file_system;
pub mod local;
pub mod mounts;

pub use file_system::{
    Attributes, DirectoryEntry, Errno, FileKind, FileSystem, Handle, Inode, NewNode, OpenFlags, Owner,
    RenameFlags, SetAttributes, SetTime, StatFs, Timestamp,
};
