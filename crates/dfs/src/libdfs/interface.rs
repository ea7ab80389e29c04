//! The trait of a file system on libdfs.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use libc::{O_CREAT, O_EXCL, O_RDWR, S_IFLNK, S_IFREG, XATTR_CREATE, XATTR_REPLACE};
use rustix::io::Errno;

use super::LibDfs;
use super::library::{SET_ACCESSED, SET_GROUP, SET_MODE, SET_MODIFIED, SET_SIZE, SET_USER, TO_THE_END};
use super::session::text;
use crate::layout::{FILE_BYTES_MAX, NAME_BYTES_MAX, SYMLINK_BYTES_MAX, XATTR_BYTES_MAX, check_name};
use crate::record::kind_of;
use crate::{
    Attributes, DirectoryEntry, FileKind, FileSystem, Handle, Inode, NewNode, OpenFlags, Owner, RenameFlags,
    SetAttributes, SetTime, StatFs, Timestamp,
};

fn time_of(set: SetTime) -> (i64, i64) {
    let Timestamp { seconds, nanoseconds } = match set {
        SetTime::To(time) => time,
        SetTime::Now => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
        }
    };
    (seconds, i64::from(nanoseconds))
}

fn check_xattr(name: &[u8]) -> Result<std::ffi::CString, Errno> {
    match name.len() {
        0 => Err(Errno::INVAL),
        1..=NAME_BYTES_MAX => text(name),
        _ => Err(Errno::RANGE),
    }
}

impl FileSystem for LibDfs {
    fn stat_fs(&self) -> Result<StatFs, Errno> {
        // The library tells nothing of space.
        Err(Errno::NOSYS)
    }

    fn look_up(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        let (open, kind) = self.open_entry(parent, name)?;
        let attributes = self.attributes_of(&open, kind)?;
        self.refer(open, kind);
        Ok(attributes)
    }

    fn forget(&self, inode: Inode, references: u64) {
        self.settle(inode, |node| node.references = node.references.saturating_sub(references));
    }

    fn attributes(&self, inode: Inode) -> Result<Attributes, Errno> {
        let (open, kind) = self.node(inode)?;
        let found = self.attributes_of(&open, kind);
        // Removed, or renamed by another client.
        found.map_err(|error| if error == Errno::NOENT { Errno::STALE } else { error })
    }

    fn stat(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        let (open, kind) = self.open_entry(parent, name)?;
        self.attributes_of(&open, kind)
    }

    fn set_attributes(&self, inode: Inode, to: &SetAttributes) -> Result<Attributes, Errno> {
        let (open, kind) = self.node(inode)?;
        let (mut stat, mut flags) = (open.stat()?, 0);
        if let Some(bits) = to.permissions {
            stat.st_mode = stat.st_mode & !0o7777 | u32::from(bits & 0o7777);
            flags |= SET_MODE;
        }
        if let Some(user) = to.user {
            stat.st_uid = user;
            flags |= SET_USER;
        }
        if let Some(group) = to.group {
            stat.st_gid = group;
            flags |= SET_GROUP;
        }
        if let Some(bytes) = to.size_bytes {
            match kind {
                FileKind::File => {}
                FileKind::Directory => return Err(Errno::ISDIR),
                _ => return Err(Errno::INVAL),
            }
            stat.st_size = i64::try_from(bytes).map_err(|_| Errno::FBIG)?;
            flags |= SET_SIZE;
        }
        if let Some(time) = to.accessed {
            (stat.st_atime, stat.st_atime_nsec) = time_of(time);
            flags |= SET_ACCESSED;
        }
        if let Some(time) = to.modified {
            (stat.st_mtime, stat.st_mtime_nsec) = time_of(time);
            flags |= SET_MODIFIED;
        }
        if flags != 0 {
            open.set(&mut stat, flags)?;
        }
        self.attributes_of(&open, kind)
    }

    fn make_directory(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        check_name(name)?;
        self.directory(parent)?.make_directory(&*text(name)?, u32::from(permissions & 0o7777))?;
        let (open, kind) = self.open_entry(parent, name)?;
        self.made(open, kind, owner)
    }

    fn make_node(&self, parent: Inode, name: &[u8], node: &NewNode) -> Result<Attributes, Errno> {
        check_name(name)?;
        if node.kind != FileKind::File {
            // The library has files, directories and links.
            return Err(Errno::OPNOTSUPP);
        }
        let mode = S_IFREG | u32::from(node.permissions & 0o7777);
        let made =
            self.directory(parent)?.open_entry(&*text(name)?, mode, O_CREAT | O_EXCL | O_RDWR, None)?;
        self.made(made, FileKind::File, node.owner)
    }

    fn make_symlink(
        &self,
        parent: Inode,
        name: &[u8],
        target: &[u8],
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        check_name(name)?;
        match target.len() {
            0 => return Err(Errno::NOENT),
            1..=SYMLINK_BYTES_MAX => {}
            _ => return Err(Errno::NAMETOOLONG),
        }
        let (name, target, mode) = (text(name)?, text(target)?, S_IFLNK | 0o777);
        let flags = O_CREAT | O_EXCL | O_RDWR;
        let made = self.directory(parent)?.open_entry(&name, mode, flags, Some(&*target))?;
        self.made(made, FileKind::Symlink, owner)
    }

    fn link(&self, _: Inode, _: Inode, _: &[u8]) -> Result<Attributes, Errno> {
        Err(Errno::PERM)
    }

    fn read_link(&self, inode: Inode) -> Result<Vec<u8>, Errno> {
        match self.node(inode)? {
            (open, FileKind::Symlink) => open.target(),
            _ => Err(Errno::INVAL),
        }
    }

    fn create(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
        flags: OpenFlags,
    ) -> Result<(Attributes, Handle), Errno> {
        check_name(name)?;
        let mode = S_IFREG | u32::from(permissions & 0o7777);
        let directory = self.directory(parent)?;
        let made = directory.open_entry(&*text(name)?, mode, O_CREAT | O_EXCL | O_RDWR, None);
        let attributes = match made {
            Err(Errno::EXIST) if !flags.exclusive => {
                let found = self.look_up(parent, name)?;
                let refused = match found.kind {
                    FileKind::Directory => Some(Errno::ISDIR),
                    FileKind::Symlink => Some(Errno::LOOP),
                    _ if flags.truncate => self.node(found.inode)?.0.punch(0, TO_THE_END).err(),
                    _ => None,
                };
                if let Some(error) = refused {
                    self.forget(found.inode, 1);
                    return Err(error);
                }
                Attributes { size_bytes: if flags.truncate { 0 } else { found.size_bytes }, ..found }
            }
            made => self.made(made?, FileKind::File, owner)?,
        };
        Ok((attributes, self.opened(attributes.inode, flags)?))
    }

    fn open(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno> {
        let (open, kind) = self.node(inode)?;
        match kind {
            FileKind::Directory if flags.write || flags.truncate => return Err(Errno::ISDIR),
            FileKind::Symlink => return Err(Errno::LOOP),
            FileKind::File if flags.truncate => open.punch(0, TO_THE_END)?,
            _ => {}
        }
        self.opened(inode, flags)
    }

    fn read(&self, handle: Handle, offset_bytes: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let (open, flags) = self.file(handle)?;
        if !flags.read {
            return Err(Errno::BADF);
        }
        if offset_bytes > FILE_BYTES_MAX {
            return Err(Errno::INVAL);
        }
        open.read(offset_bytes, into)
    }

    fn write(&self, handle: Handle, offset_bytes: u64, data: &[u8]) -> Result<usize, Errno> {
        let (open, flags) = self.file(handle)?;
        if !flags.write {
            return Err(Errno::BADF);
        }
        let turn = flags.append.then(|| self.appending.lock());
        let offset_bytes = if turn.is_some() { open.size()? } else { offset_bytes };
        let end = offset_bytes.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        end.ok_or(Errno::FBIG)?;
        open.write(offset_bytes, data)?;
        Ok(data.len())
    }

    fn flush(&self, handle: Handle) -> Result<(), Errno> {
        self.handles.lock().get(&handle).map(drop).ok_or(Errno::BADF)
    }

    fn sync(&self, handle: Handle, _: bool) -> Result<(), Errno> {
        self.file(handle)?.0.sync()
    }

    fn allocate(
        &self,
        handle: Handle,
        offset_bytes: u64,
        bytes: u64,
        hole: bool,
        keep_size: bool,
    ) -> Result<(), Errno> {
        let (open, flags) = self.file(handle)?;
        if !flags.write {
            return Err(Errno::BADF);
        }
        let end = offset_bytes.checked_add(bytes).filter(|end| *end <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        let size = open.size()?;
        match (hole, keep_size) {
            (true, false) => Err(Errno::OPNOTSUPP),
            (true, true) if offset_bytes < size => {
                open.punch(offset_bytes, end.min(size) - offset_bytes)?;
                // A hole at the end would be the end.
                if end >= size { open.punch(size, TO_THE_END) } else { Ok(()) }
            }
            (false, false) if end > size => open.punch(end, TO_THE_END),
            _ => Ok(()),
        }
    }

    fn seek(&self, handle: Handle, offset_bytes: u64, hole: bool) -> Result<u64, Errno> {
        // The library does not tell of holes: all is data, as POSIX allows.
        let size = self.file(handle)?.0.size()?;
        match (offset_bytes < size, hole) {
            (false, _) => Err(Errno::NXIO),
            (true, true) => Ok(size),
            (true, false) => Ok(offset_bytes),
        }
    }

    fn release(&self, handle: Handle) -> Result<(), Errno> {
        let opened = self.handles.lock().remove(&handle).ok_or(Errno::BADF)?;
        self.settle(opened.inode, |node| node.handles -= 1);
        Ok(())
    }

    fn unlink(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        let (_, kind) = self.open_entry(parent, name)?;
        if kind == FileKind::Directory {
            return Err(Errno::ISDIR);
        }
        self.directory(parent)?.remove(&*text(name)?)
    }

    fn remove_directory(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        let (_, kind) = self.open_entry(parent, name)?;
        if kind != FileKind::Directory {
            return Err(Errno::NOTDIR);
        }
        self.directory(parent)?.remove(&*text(name)?)
    }

    fn rename(
        &self,
        parent: Inode,
        name: &[u8],
        new_parent: Inode,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if flags.no_replace && flags.exchange {
            return Err(Errno::INVAL);
        }
        check_name(new_name)?;
        let (from, to) = (self.directory(parent)?, self.directory(new_parent)?);
        drop(self.open_entry(parent, name)?);
        if flags.no_replace {
            match self.open_entry(new_parent, new_name) {
                Err(Errno::NOENT) => {}
                found => return found.and(Err(Errno::EXIST)),
            }
        }
        from.rename(&*text(name)?, &to, &*text(new_name)?, flags.exchange)?;
        self.reopen(new_parent, new_name)?;
        if flags.exchange { self.reopen(parent, name) } else { Ok(()) }
    }

    fn list(
        &self,
        inode: Inode,
        after: u64,
        entry: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let directory = self.directory(inode)?;
        let known = self.listings.lock().get(&inode).filter(|_| after > 0).map(Arc::clone);
        let names = match known {
            Some(names) => names,
            None => {
                let names: Arc<[_]> = directory.names()?.into();
                self.listings.lock().insert(inode, Arc::clone(&names));
                names
            }
        };
        let first = usize::try_from(after).map_err(|_| Errno::INVAL)?;
        for (number, name) in names.iter().enumerate().skip(first) {
            let (open, mode) = match directory.look_up(name) {
                // It was removed meanwhile.
                Err(Errno::NOENT) => continue,
                found => found?,
            };
            let kind = kind_of(mode).ok_or(Errno::IO)?;
            let (inode, next) = (self.number(open.id), number as u64 + 1);
            if !entry(DirectoryEntry { inode, kind, name: name.as_bytes(), next }) {
                break;
            }
        }
        Ok(())
    }

    fn xattr(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, Errno> {
        self.node(inode)?.0.xattr(&*check_xattr(name)?)
    }

    fn set_xattr(
        &self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
    ) -> Result<(), Errno> {
        if value.len() > XATTR_BYTES_MAX {
            return Err(Errno::TOOBIG);
        }
        let flags = match (create, replace) {
            (true, true) => return Err(Errno::INVAL),
            (true, false) => XATTR_CREATE,
            (false, true) => XATTR_REPLACE,
            (false, false) => 0,
        };
        self.node(inode)?.0.set_xattr(&*check_xattr(name)?, value, flags)
    }

    fn list_xattrs(&self, inode: Inode) -> Result<Vec<Vec<u8>>, Errno> {
        let mut names = self.node(inode)?.0.xattrs()?;
        names.sort_unstable();
        Ok(names)
    }

    fn remove_xattr(&self, inode: Inode, name: &[u8]) -> Result<(), Errno> {
        self.node(inode)?.0.remove_xattr(&*check_xattr(name)?)
    }
}
