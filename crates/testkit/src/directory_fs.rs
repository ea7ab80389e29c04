//! A file system over a directory of this machine: what the mount and the interception library are held against without a store below.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dfs::{
    Attributes, DirectoryEntry, Errno, FileKind, FileSystem, Handle, Inode, NewNode, OpenFlags, Owner,
    RenameFlags, SetAttributes, SetTime, StatFs, Timestamp,
};
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno as E;

/// Inodes of files that are known, and files that are open.
#[derive(Default)]
struct State {
    nodes: HashMap<u64, Node>,
    files: HashMap<u64, Arc<OwnedFd>>,
    next_handle: u64,
}

struct Node {
    path: Arc<OwnedFd>,
    references: u64,
}

/// A directory of this machine as a [`FileSystem`]. Inodes have the numbers that they have in it, but for the root.
pub struct DirectoryFileSystem {
    state: Mutex<State>,
    root: u64,
}

fn path_of(fd: BorrowedFd<'_>) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        _ => FileKind::File,
    }
}

fn oflags(flags: OpenFlags) -> OFlags {
    let mut to = match (flags.read, flags.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    to.set(OFlags::APPEND, flags.append);
    to.set(OFlags::TRUNC, flags.truncate);
    to.set(OFlags::EXCL, flags.exclusive);
    to | OFlags::CLOEXEC
}

fn timespec(time: Option<SetTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        Some(SetTime::To(time)) => Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() },
    }
}

impl DirectoryFileSystem {
    /// The file system whose root is this directory.
    ///
    /// # Errors
    /// Where the directory cannot be opened.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = rustix::fs::open(directory, flags, Mode::empty())?;
        let root = rustix::fs::fstat(&path)?.st_ino;
        let mut state = State::default();
        state.nodes.insert(root, Node { path: Arc::new(path), references: 1 });
        Ok(Self { state: Mutex::new(state), root })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, inode: Inode) -> u64 {
        if inode == Inode::ROOT { self.root } else { inode.0 }
    }

    fn node(&self, inode: Inode) -> Result<Arc<OwnedFd>, Errno> {
        let number = self.number(inode);
        self.lock().nodes.get(&number).map(|node| Arc::clone(&node.path)).ok_or(E::STALE)
    }

    fn file(&self, handle: Handle) -> Result<Arc<OwnedFd>, Errno> {
        self.lock().files.get(&handle.0).cloned().ok_or(E::BADF)
    }

    fn attributes_of(&self, stat: &Stat) -> Attributes {
        let time = |seconds, nanoseconds: u64| Timestamp { seconds, nanoseconds: nanoseconds as u32 };
        Attributes {
            inode: Inode(if stat.st_ino == self.root { 1 } else { stat.st_ino }),
            kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
            permissions: (stat.st_mode & 0o7777) as u16,
            links: stat.st_nlink as u32,
            owner: Owner { user: stat.st_uid, group: stat.st_gid },
            device: stat.st_rdev as u32,
            size_bytes: stat.st_size as u64,
            stored_bytes: stat.st_blocks as u64 * 512,
            block_size_bytes: 1 << 20,
            accessed: time(stat.st_atime, stat.st_atime_nsec),
            modified: time(stat.st_mtime, stat.st_mtime_nsec),
            changed: time(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Finishes an entry that was made: its owner, permissions beyond the umask of this process, and a reference.
    fn made(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        permissions: Option<u16>,
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
        rustix::fs::chownat(parent, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
        if let Some(permissions) = permissions {
            rustix::fs::chmodat(parent, name, Mode::from_raw_mode(permissions.into()), AtFlags::empty())?;
        }
        self.referenced(parent, name)
    }

    fn referenced(&self, parent: &OwnedFd, name: &OsStr) -> Result<Attributes, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&path)?;
        let mut state = self.lock();
        let new = || Node { path: Arc::new(path), references: 0 };
        state.nodes.entry(stat.st_ino).or_insert_with(new).references += 1;
        drop(state);
        Ok(self.attributes_of(&stat))
    }

    fn opened(&self, file: OwnedFd) -> Handle {
        let mut state = self.lock();
        state.next_handle += 1;
        let handle = state.next_handle;
        state.files.insert(handle, Arc::new(file));
        Handle(handle)
    }
}

impl FileSystem for DirectoryFileSystem {
    fn stat_fs(&self) -> Result<StatFs, Errno> {
        let stat = rustix::fs::fstatvfs(self.node(Inode::ROOT)?.as_fd())?;
        Ok(StatFs {
            bytes: stat.f_blocks * stat.f_frsize,
            free_bytes: stat.f_bavail * stat.f_frsize,
            block_size_bytes: stat.f_frsize as u32,
            inodes: stat.f_files - stat.f_ffree,
            name_bytes_max: stat.f_namemax as u32,
        })
    }

    fn look_up(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        self.referenced(&*self.node(parent)?, OsStr::from_bytes(name))
    }

    fn forget(&self, inode: Inode, references: u64) {
        let number = self.number(inode);
        let mut state = self.lock();
        let Some(node) = state.nodes.get_mut(&number) else { return };
        node.references = node.references.saturating_sub(references);
        if node.references == 0 && number != self.root {
            state.nodes.remove(&number);
        }
    }

    fn attributes(&self, inode: Inode) -> Result<Attributes, Errno> {
        let stat = rustix::fs::fstat(&*self.node(inode)?)?;
        Ok(self.attributes_of(&stat))
    }

    fn stat(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        let parent = self.node(parent)?;
        let stat = rustix::fs::statat(&*parent, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(self.attributes_of(&stat))
    }

    fn set_attributes(&self, inode: Inode, to: &SetAttributes) -> Result<Attributes, Errno> {
        let node = self.node(inode)?;
        let path = path_of(node.as_fd());
        if to.user.is_some() || to.group.is_some() {
            let (user, group) = (to.user.map(Uid::from_raw), to.group.map(Gid::from_raw));
            rustix::fs::chownat(&*node, "", user, group, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if let Some(permissions) = to.permissions {
            rustix::fs::chmod(&path, Mode::from_raw_mode(permissions.into()))?;
        }
        if let Some(size) = to.size_bytes {
            let file = rustix::fs::open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::fs::ftruncate(&file, size)?;
        }
        if to.accessed.is_some() || to.modified.is_some() {
            let times =
                Timestamps { last_access: timespec(to.accessed), last_modification: timespec(to.modified) };
            rustix::fs::utimensat(&*node, "", &times, AtFlags::EMPTY_PATH)?;
        }
        self.attributes(inode)
    }

    fn make_directory(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        let (parent, name) = (self.node(parent)?, OsStr::from_bytes(name));
        rustix::fs::mkdirat(&*parent, name, Mode::from_raw_mode(permissions.into()))?;
        self.made(&parent, name, Some(permissions), owner)
    }

    fn make_node(&self, parent: Inode, name: &[u8], node: &NewNode) -> Result<Attributes, Errno> {
        let (parent, name) = (self.node(parent)?, OsStr::from_bytes(name));
        let kind = match node.kind {
            FileKind::File => FileType::RegularFile,
            FileKind::Fifo => FileType::Fifo,
            FileKind::Socket => FileType::Socket,
            FileKind::CharacterDevice => FileType::CharacterDevice,
            FileKind::BlockDevice => FileType::BlockDevice,
            FileKind::Directory | FileKind::Symlink => return Err(E::INVAL),
        };
        let mode = Mode::from_raw_mode(node.permissions.into());
        rustix::fs::mknodat(&*parent, name, kind, mode, node.device.into())?;
        self.made(&parent, name, Some(node.permissions), node.owner)
    }

    fn make_symlink(
        &self,
        parent: Inode,
        name: &[u8],
        target: &[u8],
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        let (parent, name) = (self.node(parent)?, OsStr::from_bytes(name));
        rustix::fs::symlinkat(OsStr::from_bytes(target), &*parent, name)?;
        self.made(&parent, name, None, owner)
    }

    fn link(&self, inode: Inode, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        let (node, parent, name) = (self.node(inode)?, self.node(parent)?, OsStr::from_bytes(name));
        rustix::fs::linkat(&*node, "", &*parent, name, AtFlags::EMPTY_PATH)?;
        self.referenced(&parent, name)
    }

    fn read_link(&self, inode: Inode) -> Result<Vec<u8>, Errno> {
        Ok(rustix::fs::readlinkat(&*self.node(inode)?, "", Vec::new())?.into_bytes())
    }

    fn create(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
        flags: OpenFlags,
    ) -> Result<(Attributes, Handle), Errno> {
        let (parent, name) = (self.node(parent)?, OsStr::from_bytes(name));
        let mode = Mode::from_raw_mode(permissions.into());
        let new = oflags(flags) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let (file, attributes) = match rustix::fs::openat(&*parent, name, new, mode) {
            Ok(file) => (file, self.made(&parent, name, Some(permissions), owner)?),
            Err(E::EXIST) if !flags.exclusive => {
                let file = rustix::fs::openat(&*parent, name, oflags(flags) | OFlags::NOFOLLOW, mode)?;
                (file, self.referenced(&parent, name)?)
            }
            Err(error) => return Err(error),
        };
        Ok((attributes, self.opened(file)))
    }

    fn open(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno> {
        let path = path_of(self.node(inode)?.as_fd());
        Ok(self.opened(rustix::fs::open(path, oflags(flags), Mode::empty())?))
    }

    fn read(&self, handle: Handle, offset_bytes: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let file = self.file(handle)?;
        let mut done = 0;
        while done < into.len() {
            match rustix::io::pread(&*file, &mut into[done..], offset_bytes + done as u64)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    fn write(&self, handle: Handle, offset_bytes: u64, data: &[u8]) -> Result<usize, Errno> {
        rustix::io::pwrite(&*self.file(handle)?, data, offset_bytes)
    }

    fn flush(&self, handle: Handle) -> Result<(), Errno> {
        self.file(handle).map(drop)
    }

    fn sync(&self, handle: Handle, data_only: bool) -> Result<(), Errno> {
        let file = self.file(handle)?;
        if data_only { rustix::fs::fdatasync(&*file) } else { rustix::fs::fsync(&*file) }
    }

    fn allocate(
        &self,
        handle: Handle,
        offset_bytes: u64,
        bytes: u64,
        hole: bool,
        keep_size: bool,
    ) -> Result<(), Errno> {
        let mut flags = FallocateFlags::empty();
        flags.set(FallocateFlags::PUNCH_HOLE, hole);
        flags.set(FallocateFlags::KEEP_SIZE, keep_size);
        rustix::fs::fallocate(&*self.file(handle)?, flags, offset_bytes, bytes)
    }

    fn seek(&self, handle: Handle, offset_bytes: u64, hole: bool) -> Result<u64, Errno> {
        let to = if hole { SeekFrom::Hole(offset_bytes) } else { SeekFrom::Data(offset_bytes) };
        rustix::fs::seek(&*self.file(handle)?, to)
    }

    fn release(&self, handle: Handle) -> Result<(), Errno> {
        self.lock().files.remove(&handle.0).map(drop).ok_or(E::BADF)
    }

    fn unlink(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        rustix::fs::unlinkat(&*self.node(parent)?, OsStr::from_bytes(name), AtFlags::empty())
    }

    fn remove_directory(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        rustix::fs::unlinkat(&*self.node(parent)?, OsStr::from_bytes(name), AtFlags::REMOVEDIR)
    }

    fn rename(
        &self,
        parent: Inode,
        name: &[u8],
        new_parent: Inode,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let mut to = rustix::fs::RenameFlags::empty();
        to.set(rustix::fs::RenameFlags::NOREPLACE, flags.no_replace);
        to.set(rustix::fs::RenameFlags::EXCHANGE, flags.exchange);
        let (parent, new_parent) = (self.node(parent)?, self.node(new_parent)?);
        let (name, new_name) = (OsStr::from_bytes(name), OsStr::from_bytes(new_name));
        rustix::fs::renameat_with(&*parent, name, &*new_parent, new_name, to)
    }

    fn list(
        &self,
        inode: Inode,
        after: u64,
        entry: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let path = path_of(self.node(inode)?.as_fd());
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let mut found = Vec::new();
        for one in rustix::fs::Dir::new(directory)? {
            let one = one?;
            if ![b".".as_slice(), b".."].contains(&one.file_name().to_bytes()) {
                found.push((one.ino(), one.file_type(), one.file_name().to_owned()));
            }
        }
        // The place of an entry is its inode: places hold while others come and go.
        found.sort_unstable_by_key(|(number, _, name)| (*number, name.clone()));
        for (number, kind, name) in found.iter().filter(|(number, ..)| *number > after) {
            let (inode, name) = (Inode(*number), name.to_bytes());
            if !entry(DirectoryEntry { inode, kind: kind_of(*kind), name, next: *number }) {
                break;
            }
        }
        Ok(())
    }

    fn xattr(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut value = vec![0; 65536];
        let path = path_of(self.node(inode)?.as_fd());
        let size = rustix::fs::getxattr(path, OsStr::from_bytes(name), value.as_mut_slice())?;
        value.truncate(size);
        Ok(value)
    }

    fn set_xattr(
        &self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
    ) -> Result<(), Errno> {
        let mut flags = XattrFlags::empty();
        flags.set(XattrFlags::CREATE, create);
        flags.set(XattrFlags::REPLACE, replace);
        rustix::fs::setxattr(path_of(self.node(inode)?.as_fd()), OsStr::from_bytes(name), value, flags)
    }

    fn list_xattrs(&self, inode: Inode) -> Result<Vec<Vec<u8>>, Errno> {
        let mut names = vec![0; 65536];
        let size = rustix::fs::listxattr(path_of(self.node(inode)?.as_fd()), names.as_mut_slice())?;
        names.truncate(size);
        Ok(names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    fn remove_xattr(&self, inode: Inode, name: &[u8]) -> Result<(), Errno> {
        rustix::fs::removexattr(path_of(self.node(inode)?.as_fd()), OsStr::from_bytes(name))
    }
}
