//! Requests of the kernel as calls of a file system.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use dfs::{Handle, Inode, NewNode, SetAttributes};
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use crate::adapter::{Adapter, BUFFER, CACHE_ATTRIBUTE, ENDPOINT_ATTRIBUTE, GENERATION, errno, inode, value};
use crate::attributes::{kind, node_kind, set_time};

/// Largest request that moves data, in bytes.
pub(crate) const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Requests of read-ahead and write-back that are in flight at a time.
const BACKGROUND_MAX: u16 = 64;

/// Answers with a value, or with the error.
macro_rules! answer {
    ($reply:ident, $result:expr, |$value:pat_param| $good:expr) => {
        match $result {
            Ok($value) => $good,
            Err(error) => $reply.error(errno(error)),
        }
    };
}

impl Filesystem for Adapter {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |what: &str| io::Error::other(format!("the kernel's FUSE does not support {what}"));
        config.set_max_write(REQUEST_BYTES_MAX).map_err(|_| refused("writes of 1 MiB"))?;
        config.set_max_background(BACKGROUND_MAX).map_err(|_| refused("64 requests at a time"))?;
        let read_ahead = config.set_max_readahead(REQUEST_BYTES_MAX);
        if let Err(most) = read_ahead {
            config.set_max_readahead(most).map_err(|_| refused("its own read-ahead"))?;
        }
        let mut wanted = InitFlags::FUSE_ATOMIC_O_TRUNC
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2
            | InitFlags::FUSE_SPLICE_READ
            | InitFlags::FUSE_SPLICE_MOVE
            | InitFlags::FUSE_SPLICE_WRITE;
        if self.caching.writeback {
            config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE).map_err(|_| refused("write-back"))?;
        } else {
            wanted |= InitFlags::FUSE_AUTO_INVAL_DATA;
        }
        // A kernel that lacks some of them works without.
        let _ = config.add_capabilities(wanted & config.capabilities());
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.file_system.look_up(inode(parent), name.as_bytes()) {
            Err(dfs::Errno::NOENT) => self.absent(reply),
            found => self.entry(reply, found),
        }
    }

    fn forget(&self, _request: &Request, ino: INodeNo, references: u64) {
        self.file_system.forget(inode(ino), references);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        answer!(reply, self.file_system.attributes(inode(ino)), |found| {
            reply.attr(&self.caching.attributes, &self.shown_attr(&found));
        });
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut permissions = mode.map(|mode| (mode & 0o7777) as u16);
        let is_cut = size.is_some() && request.uid() != 0;
        if permissions.is_none() && (uid.is_some() || gid.is_some() || is_cut) {
            match self.permissions_without(inode(ino)) {
                Ok(without) => permissions = without,
                Err(error) => return reply.error(errno(error)),
            }
        }
        let to = SetAttributes {
            permissions,
            user: uid,
            group: gid,
            size_bytes: size,
            accessed: atime.map(set_time),
            modified: mtime.map(set_time),
        };
        answer!(reply, self.file_system.set_attributes(inode(ino), &to), |found| {
            reply.attr(&self.caching.attributes, &self.shown_attr(&found));
        });
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        answer!(reply, self.file_system.read_link(inode(ino)), |target| reply.data(&target));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let Some(kind) = node_kind(mode) else { return reply.error(Errno::EINVAL) };
        let permissions = (mode & 0o7777) as u16;
        let made = self.owner_in(request, parent).and_then(|(owner, _)| {
            let node = NewNode { kind, permissions, owner, device: rdev };
            self.file_system.make_node(inode(parent), name.as_bytes(), &node)
        });
        self.entry(reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.owner_in(request, parent).and_then(|(owner, inherited)| {
            let permissions = (mode & 0o7777) as u16 | inherited;
            self.file_system.make_directory(inode(parent), name.as_bytes(), permissions, owner)
        });
        self.entry(reply, made);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.file_system.unlink(inode(parent), name.as_bytes()), |()| reply.ok());
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.file_system.remove_directory(inode(parent), name.as_bytes()), |()| reply.ok());
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (name, target) = (name.as_bytes(), target.as_os_str().as_bytes());
        let made = self.owner_in(request, parent);
        let made =
            made.and_then(|(owner, _)| self.file_system.make_symlink(inode(parent), name, target, owner));
        self.entry(reply, made);
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if flags.contains(RenameFlags::RENAME_WHITEOUT) {
            return reply.error(Errno::EINVAL);
        }
        let how = dfs::RenameFlags {
            no_replace: flags.contains(RenameFlags::RENAME_NOREPLACE),
            exchange: flags.contains(RenameFlags::RENAME_EXCHANGE),
        };
        let (name, new_name) = (name.as_bytes(), newname.as_bytes());
        let renamed = self.file_system.rename(inode(parent), name, inode(newparent), new_name, how);
        answer!(reply, renamed, |()| reply.ok());
    }

    fn link(&self, _request: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        self.entry(reply, self.file_system.link(inode(ino), inode(newparent), newname.as_bytes()));
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let how = self.open_flags(flags.0);
        let cut = if how.truncate && request.uid() != 0 { self.drop_setid(inode(ino)) } else { Ok(()) };
        answer!(reply, cut.and_then(|()| self.file_system.open(inode(ino), how)), |handle| {
            if how.append {
                self.appending.note(handle);
            }
            reply.opened(FileHandle(handle.0), self.keeps(flags.0));
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, permissions) = (name.as_bytes(), (mode & 0o7777) as u16);
        let how = self.open_flags(flags);
        let made = self.owner_in(request, parent);
        let made =
            made.and_then(|(owner, _)| self.file_system.create(inode(parent), name, permissions, owner, how));
        answer!(reply, made, |(found, handle)| {
            if how.append {
                self.appending.note(handle);
            }
            let lifetime = self.caching.attributes.min(self.caching.entry);
            let (attr, handle) = (self.shown_attr(&found), FileHandle(handle.0));
            reply.created(&lifetime, &attr, GENERATION, handle, self.keeps(flags));
        });
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            let read = self.file_system.read(Handle(fh.0), offset, &mut buffer[..size as usize]);
            answer!(reply, read, |count| reply.data(&buffer[..count]));
        });
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let handle = if flags.0 & libc::O_APPEND == 0 {
            self.appending.plain(&*self.file_system, inode(ino), Handle(fh.0))
        } else {
            Ok(Handle(fh.0))
        };
        let takes_bits = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let dropped = if takes_bits { self.drop_setid(inode(ino)) } else { Ok(()) };
        let handle = dropped.and(handle);
        let written = handle.and_then(|handle| self.file_system.write(handle, offset, data));
        answer!(reply, written, |count| {
            reply.written(count as u32);
        });
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let other = self.appending.other(Handle(fh.0)).map_or(Ok(()), |other| self.file_system.flush(other));
        let flushed = other.and_then(|()| self.file_system.flush(Handle(fh.0)));
        answer!(reply, flushed, |()| reply.ok());
    }

    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let other =
            self.appending.forget(Handle(fh.0)).map_or(Ok(()), |other| self.file_system.release(other));
        let released = other.and(self.file_system.release(Handle(fh.0)));
        answer!(reply, released, |()| reply.ok());
    }

    fn fsync(&self, _request: &Request, _ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        answer!(reply, self.file_system.sync(Handle(fh.0), datasync), |()| reply.ok());
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(self.listings.open()), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let read = self.listings.read(&*self.file_system, inode(ino), fh.0, offset, &mut |entry| {
            let name = OsStr::from_bytes(&entry.name);
            !reply.add(INodeNo(entry.inode.0), entry.next, kind(entry.kind), name)
        });
        answer!(reply, read, |()| reply.ok());
    }

    fn readdirplus(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let lifetime = self.caching.attributes.min(self.caching.entry);
        let read = self.listings.read(&*self.file_system, inode(ino), fh.0, offset, &mut |entry| {
            let is_dot = [b".".as_slice(), b".."].contains(&entry.name.as_slice());
            let found = if is_dot {
                // The kernel takes no reference for these two.
                self.file_system.attributes(inode(ino))
            } else {
                self.file_system.look_up(inode(ino), &entry.name)
            };
            let attr: FileAttr = match found {
                Ok(found) => self.shown_attr(&found),
                // It was removed since it was listed.
                Err(_) => return true,
            };
            let name = OsStr::from_bytes(&entry.name);
            let is_full = reply.add(attr.ino, entry.next, name, &lifetime, &attr, GENERATION);
            if is_full && !is_dot {
                self.file_system.forget(inode(attr.ino), 1);
            }
            !is_full
        });
        answer!(reply, read, |()| reply.ok());
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.listings.close(fh.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        // Entries are durable, as their store has it, when the call that made them returns.
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        answer!(reply, self.file_system.stat_fs(), |space| {
            let block = u64::from(space.block_size_bytes.max(1));
            let (all, free) = (space.bytes / block, space.free_bytes / block);
            let size = space.block_size_bytes.max(1);
            // No inodes at all: their number has no limit.
            reply.statfs(all, free, free, 0, 0, size, space.name_bytes_max, size);
        });
    }

    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (create, replace) = (flags & libc::XATTR_CREATE != 0, flags & libc::XATTR_REPLACE != 0);
        let set = match inode(ino) {
            Inode::ROOT if name == CACHE_ATTRIBUTE => self.drop_cache(value),
            file => self.file_system.set_xattr(file, name.as_bytes(), value, create, replace),
        };
        answer!(reply, set, |()| reply.ok());
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if name == ENDPOINT_ATTRIBUTE && inode(ino) == Inode::ROOT {
            return match &self.endpoint {
                Some(endpoint) => value(reply, size, endpoint),
                None => reply.error(Errno::ENODATA),
            };
        }
        answer!(reply, self.file_system.xattr(inode(ino), name.as_bytes()), |found| {
            value(reply, size, &found);
        });
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        answer!(reply, self.file_system.list_xattrs(inode(ino)), |names| {
            let mut list: Vec<u8> = Vec::new();
            names.iter().for_each(|name| list.extend(name.iter().chain(b"\0")));
            value(reply, size, &list);
        });
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.file_system.remove_xattr(inode(ino), name.as_bytes()), |()| reply.ok());
    }

    fn fallocate(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let hole = mode & libc::FALLOC_FL_PUNCH_HOLE != 0;
        let keep_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        if mode & !(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) != 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let done = self.file_system.allocate(Handle(fh.0), offset, length, hole, keep_size);
        answer!(reply, done, |()| reply.ok());
    }

    fn lseek(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let hole = match whence {
            libc::SEEK_DATA => false,
            libc::SEEK_HOLE => true,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        answer!(reply, self.file_system.seek(Handle(fh.0), offset, hole), |found| {
            reply.offset(found as i64);
        });
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        _ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        answer!(reply, self.copy((fh_in, offset_in), (fh_out, offset_out), len), |count| {
            reply.written(count as u32);
        });
    }
}
