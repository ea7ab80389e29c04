//! The trait of a file system, by inode.

use std::sync::atomic::AtomicBool;

pub use rustix::io::Errno;

/// Number of an inode in this process. The root has 1, as FUSE wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode(pub u64);

impl Inode {
    /// The root directory.
    pub const ROOT: Self = Self(1);
}

/// A file or directory that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u64);

/// Time since the epoch of Unix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
}

/// Kind of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Named pipe.
    Fifo,
    /// Socket.
    Socket,
    /// Character device.
    CharacterDevice,
    /// Block device.
    BlockDevice,
}

/// User and group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
}

/// Attributes of an inode (`stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: Inode,
    /// Kind.
    pub kind: FileKind,
    /// Permission bits, with those of set-user-id, set-group-id and sticky (`mode & 0o7777`).
    pub permissions: u16,
    /// Names that it has.
    pub links: u32,
    /// Owner.
    pub owner: Owner,
    /// Device that a device node names.
    pub device: u32,
    /// Size in bytes; of a symbolic link the length of its target.
    pub size_bytes: u64,
    /// Bytes that its data takes.
    pub stored_bytes: u64,
    /// Size in bytes by which it is read and written best: the chunk of its object.
    pub block_size_bytes: u32,
    /// Last read, as far as it is kept.
    pub accessed: Timestamp,
    /// Last change of the data.
    pub modified: Timestamp,
    /// Last change of the attributes.
    pub changed: Timestamp,
}

/// New value of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// Time of the call.
    Now,
    /// This one.
    To(Timestamp),
}

/// Attributes that are set; none: stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// Permission bits.
    pub permissions: Option<u16>,
    /// User id.
    pub user: Option<u32>,
    /// Group id.
    pub group: Option<u32>,
    /// Size in bytes: the file is cut or grows by a hole.
    pub size_bytes: Option<u64>,
    /// Last read.
    pub accessed: Option<SetTime>,
    /// Last change of the data.
    pub modified: Option<SetTime>,
}

/// A node that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// Kind; neither a directory nor a symbolic link, which have calls of their own.
    pub kind: FileKind,
    /// Permission bits, the umask applied.
    pub permissions: u16,
    /// Owner.
    pub owner: Owner,
    /// Device, of a device node.
    pub device: u32,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// Reads are allowed.
    pub read: bool,
    /// Writes are allowed.
    pub write: bool,
    /// Each write goes to the end of the file.
    pub append: bool,
    /// The file is cut to nothing.
    pub truncate: bool,
    /// A file that is there is an error (`EEXIST`); for [`FileSystem::create`] alone.
    pub exclusive: bool,
}

/// How an entry is renamed (`renameat2`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenameFlags {
    /// A target that is there is an error (`EEXIST`).
    pub no_replace: bool,
    /// Both entries change places.
    pub exchange: bool,
}

/// Space and limits of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatFs {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Size of a block in bytes.
    pub block_size_bytes: u32,
    /// Inodes in use, where they are counted.
    pub inodes: u64,
    /// Longest name, in bytes.
    pub name_bytes_max: u32,
}

/// Changes that a load is about to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedChanges {
    /// Entries that are made, changed or removed.
    pub names: u64,
    /// Writes of data.
    pub writes: u64,
    /// Bytes of one write.
    pub write_bytes: u64,
    /// Bytes of all writes together.
    pub written_bytes: u64,
}

/// One entry of a directory, as a listing gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Number of its inode, as listings show it; it holds no reference.
    pub inode: Inode,
    /// Kind.
    pub kind: FileKind,
    /// Name.
    pub name: &'a [u8],
    /// Where a listing goes on behind it.
    pub next: u64,
}

/// A file system. Calls come from many threads at once.
///
/// Errors are those of the system calls of the same name (POSIX.1-2024); what differs on a file system is said where it is made.
#[allow(clippy::missing_errors_doc, reason = "each fails as the system call of its name does")]
pub trait FileSystem: Send + Sync {
    /// Space and limits.
    fn stat_fs(&self) -> Result<StatFs, Errno>;

    /// Looks an entry up, and holds a reference to its inode.
    fn look_up(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno>;

    /// Gives references of an inode back.
    fn forget(&self, inode: Inode, references: u64);

    /// Attributes of an inode that a reference is held to.
    fn attributes(&self, inode: Inode) -> Result<Attributes, Errno>;

    /// Attributes of an entry, without a reference.
    fn stat(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno>;

    /// Sets attributes.
    fn set_attributes(&self, inode: Inode, to: &SetAttributes) -> Result<Attributes, Errno>;

    /// Makes a directory, and holds a reference to it.
    fn make_directory(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
    ) -> Result<Attributes, Errno>;

    /// Makes a node, and holds a reference to it.
    fn make_node(&self, parent: Inode, name: &[u8], node: &NewNode) -> Result<Attributes, Errno>;

    /// Makes a symbolic link, and holds a reference to it.
    fn make_symlink(
        &self,
        parent: Inode,
        name: &[u8],
        target: &[u8],
        owner: Owner,
    ) -> Result<Attributes, Errno>;

    /// Makes another name of a file, and holds a reference to it; `EPERM` where the file system has no hard links.
    fn link(&self, inode: Inode, parent: Inode, name: &[u8]) -> Result<Attributes, Errno>;

    /// Target of a symbolic link.
    fn read_link(&self, inode: Inode) -> Result<Vec<u8>, Errno>;

    /// Makes a file (or finds it, unless `flags.exclusive`), opens it, and holds a reference to it.
    fn create(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
        flags: OpenFlags,
    ) -> Result<(Attributes, Handle), Errno>;

    /// Opens a file.
    fn open(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno>;

    /// Reads; fewer bytes than asked for only at the end of the file.
    fn read(&self, handle: Handle, offset_bytes: u64, into: &mut [u8]) -> Result<usize, Errno>;

    /// Writes all of it.
    fn write(&self, handle: Handle, offset_bytes: u64, data: &[u8]) -> Result<usize, Errno>;

    /// Shows data that was written to clients that open the file from now on: a descriptor is being closed.
    fn flush(&self, handle: Handle) -> Result<(), Errno>;

    /// Makes data that was written survive a power cut.
    fn sync(&self, handle: Handle, data_only: bool) -> Result<(), Errno>;

    /// Makes a hole of these bytes, or (`keep_size` false) lets the file reach their end (`fallocate`).
    fn allocate(
        &self,
        handle: Handle,
        offset_bytes: u64,
        bytes: u64,
        hole: bool,
        keep_size: bool,
    ) -> Result<(), Errno>;

    /// The next data (`hole` false) or the next hole from an offset on (`SEEK_DATA`, `SEEK_HOLE`).
    fn seek(&self, handle: Handle, offset_bytes: u64, hole: bool) -> Result<u64, Errno>;

    /// Closes a file.
    fn release(&self, handle: Handle) -> Result<(), Errno>;

    /// Removes the name of a file, a link or a node. The data of an open one stays until it is closed.
    fn unlink(&self, parent: Inode, name: &[u8]) -> Result<(), Errno>;

    /// Removes an empty directory.
    fn remove_directory(&self, parent: Inode, name: &[u8]) -> Result<(), Errno>;

    /// Renames an entry.
    fn rename(
        &self,
        parent: Inode,
        name: &[u8],
        new_parent: Inode,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<(), Errno>;

    /// Lists a directory from behind `after` (0: from the beginning), without `.` and `..`, until `entry` gives false.
    fn list(
        &self,
        inode: Inode,
        after: u64,
        entry: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno>;

    /// Value of an extended attribute.
    fn xattr(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, Errno>;

    /// Sets an extended attribute; `create` and `replace` as `XATTR_CREATE` and `XATTR_REPLACE`.
    fn set_xattr(
        &self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
    ) -> Result<(), Errno>;

    /// Names of the extended attributes.
    fn list_xattrs(&self, inode: Inode) -> Result<Vec<Vec<u8>>, Errno>;

    /// Removes an extended attribute.
    fn remove_xattr(&self, inode: Inode, name: &[u8]) -> Result<(), Errno>;

    /// Gets space ready for changes that are about to be made, so that the store takes none from what it lies on while they are measured;
    /// `stop` ends it early. Nothing where the space is not this process's.
    fn stock(&self, _changes: &ExpectedChanges, _stop: &AtomicBool) {}

    /// Bytes that the store has taken from what it lies on since space was last got ready, or since it was opened; none where that is not known.
    fn grown_bytes(&self) -> Option<u64> {
        None
    }

    /// Makes durable what was stored, and has what is read next come from the files of the store instead of its memory.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where a client cannot have that; errors of the store.
    fn drop_cache(&self) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Damage that calls have met since the last one of this, by object and entry, a line each.
    fn take_findings(&self) -> Vec<String> {
        Vec::new()
    }
}
