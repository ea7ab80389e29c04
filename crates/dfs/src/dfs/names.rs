//! Entries of directories: looked up, made and removed.

use rustix::io::Errno;
use vos::model::ObjectId;
use vos::{Action, Condition, Punch, Step};

use super::{Dfs, Entry, now, of_entry, retrying};
use crate::layout::{INODE_AKEY, LIVE_DKEY, SYMLINK_BYTES_MAX, check_name, id_bytes};
use crate::record::Record;
use crate::{Attributes, FileKind, Handle, Inode, OpenFlags, Owner};

/// An inode to be made.
pub(super) struct Fresh<'a> {
    pub(super) kind: FileKind,
    pub(super) permissions: u16,
    pub(super) owner: Owner,
    pub(super) device: u32,
    /// Target of a symbolic link.
    pub(super) target: &'a [u8],
}

/// That a directory takes entries.
pub(super) fn is_live<'a>(directory: ObjectId) -> Step<'a> {
    Step {
        object: directory,
        dkey: LIVE_DKEY,
        akey: INODE_AKEY,
        condition: Condition::Present,
        action: Action::Check,
    }
}

/// A directory takes entries from now on.
pub(super) fn live(directory: ObjectId, condition: Condition, parent: &[u8; 16]) -> Step<'_> {
    let action = Action::Update(parent);
    Step { object: directory, dkey: LIVE_DKEY, akey: INODE_AKEY, condition, action }
}

impl Dfs {
    pub(super) fn find(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        check_name(name)?;
        let directory = self.table.directory(parent)?;
        let entry = self.entry(directory, name)?;
        let touched = self.table.refer(directory, name, &entry.record);
        let attributes = self.attributes_of(&entry.record, touched);
        attributes.inspect_err(|_| self.unrefer(Inode(entry.record.object.lo), 1))
    }

    pub(super) fn stat_entry(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        check_name(name)?;
        let directory = self.table.directory(parent)?;
        let entry = self.entry(directory, name)?;
        let touched = self.table.with(Inode(entry.record.object.lo), |node| node.touched).flatten();
        self.attributes_of(&entry.record, touched)
    }

    /// Makes an entry with a new inode; `EEXIST` where there is one of this name.
    pub(super) fn make(&self, parent: Inode, name: &[u8], fresh: &Fresh<'_>) -> Result<Attributes, Errno> {
        check_name(name)?;
        let directory = self.table.directory(parent)?;
        if fresh.target.len() > SYMLINK_BYTES_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        if fresh.kind == FileKind::Symlink && fresh.target.is_empty() {
            return Err(Errno::NOENT);
        }
        let (number, now) = (self.next_id()?, now());
        let record = Record {
            object: match fresh.kind {
                FileKind::File => self.superblock.file(number),
                _ => self.superblock.directory(number),
            },
            kind: fresh.kind,
            permissions: fresh.permissions & 0o7777,
            owner: fresh.owner,
            device: fresh.device,
            accessed: now,
            modified: now,
            changed: now,
            target_bytes: fresh.target.len() as u16,
        };
        let inode = record.encode();
        let with_target;
        let value = if fresh.target.is_empty() {
            &inode[..]
        } else {
            with_target = [&inode[..], fresh.target].concat();
            &with_target
        };
        let entry = of_entry(directory, name, Condition::Absent, Action::Update(value));
        if fresh.kind == FileKind::Directory {
            let own = id_bytes(directory);
            self.store.apply(&[entry, live(record.object, Condition::Any, &own), is_live(directory)])?;
        } else {
            self.store.apply(&[entry, is_live(directory)])?;
        }
        self.table.refer(directory, name, &record);
        self.touch_directory(parent, now);
        Ok(record.attributes(0, self.superblock.chunk_bytes))
    }

    pub(super) fn create_file(
        &self,
        parent: Inode,
        name: &[u8],
        fresh: &Fresh<'_>,
        flags: OpenFlags,
    ) -> Result<(Attributes, Handle), Errno> {
        let attributes = match self.make(parent, name, fresh) {
            Err(Errno::EXIST) if !flags.exclusive => {
                // Removed in between: it is made after all.
                return retrying(|| match self.find(parent, name) {
                    Ok(found) => self.open_found(found, flags),
                    Err(Errno::NOENT) => match self.make(parent, name, fresh) {
                        Err(Errno::EXIST) => Err(Errno::AGAIN),
                        Ok(made) => self.open_found(made, flags),
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                });
            }
            made => made?,
        };
        self.open_found(attributes, flags)
    }

    /// Opens an inode that a reference was taken to, or gives that back.
    fn open_found(&self, found: Attributes, flags: OpenFlags) -> Result<(Attributes, Handle), Errno> {
        let is_cut = flags.truncate && found.size_bytes > 0;
        let opened = match found.kind {
            FileKind::Directory => Err(Errno::ISDIR),
            FileKind::Symlink => Err(Errno::LOOP),
            _ => self.open_inode(found.inode, flags),
        };
        let handle = opened.inspect_err(|_| self.unrefer(found.inode, 1))?;
        Ok((Attributes { size_bytes: if is_cut { 0 } else { found.size_bytes }, ..found }, handle))
    }

    pub(super) fn open_inode(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno> {
        let kind = self.table.with(inode, |node| node.record.kind).ok_or(Errno::STALE)?;
        let changes = flags.write || flags.truncate;
        match kind {
            FileKind::Directory if changes => return Err(Errno::ISDIR),
            FileKind::Symlink => return Err(Errno::LOOP),
            FileKind::File | FileKind::Directory => {}
            FileKind::Fifo | FileKind::Socket | FileKind::CharacterDevice | FileKind::BlockDevice => {
                return Err(Errno::NXIO);
            }
        }
        // Whether it is still there, as another client may have removed it.
        self.attributes_now(inode)?;
        let handle = self.table.open(inode, flags)?;
        if flags.truncate {
            let file = self.table.file(handle)?;
            let cut = self.truncate(file.object, 0);
            if let Err(error) = cut {
                let _ = self.close_handle(handle);
                return Err(error);
            }
            self.touch(inode, now());
        }
        Ok(handle)
    }

    pub(super) fn close_handle(&self, handle: Handle) -> Result<(), Errno> {
        let file = self.table.file(handle)?;
        let told = self.tell(file.inode());
        let (file, is_over) = self.table.close(handle)?;
        let removed = if is_over { self.store.remove(file.object) } else { Ok(()) };
        self.table.forget(file.inode());
        told.and(removed)
    }

    pub(super) fn unrefer(&self, inode: Inode, references: u64) {
        if self.table.unrefer(inode, references) {
            let _ = self.tell(inode);
            self.table.forget(inode);
        }
    }

    pub(super) fn remove_file(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        check_name(name)?;
        let directory = self.table.directory(parent)?;
        let entry = retrying(|| {
            let entry = self.entry(directory, name)?;
            if entry.is_directory() {
                return Err(Errno::ISDIR);
            }
            let (version, punch) = (Condition::Version(entry.version), Action::Punch(Punch::Dkey));
            self.store.apply(&[of_entry(directory, name, version, punch)])?;
            Ok(entry)
        })?;
        self.touch_directory(parent, now());
        self.let_go(&entry)
    }

    /// Removes what an inode holds whose entry is gone, unless this client has it open.
    pub(super) fn let_go(&self, entry: &Entry) -> Result<(), Errno> {
        let object = entry.record.object;
        if self.table.unlink(object) { Ok(()) } else { self.store.remove(object) }
    }

    pub(super) fn remove_empty(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        check_name(name)?;
        let directory = self.table.directory(parent)?;
        let entry = retrying(|| {
            let entry = self.entry(directory, name)?;
            if !entry.is_directory() {
                return Err(Errno::NOTDIR);
            }
            let closing = self.close_directory(directory, name, &entry)?;
            let (version, punch) = (Condition::Version(entry.version), Action::Punch(Punch::Dkey));
            let gone = self.store.apply(&[of_entry(directory, name, version, punch), closing.forgotten()]);
            match gone {
                // Its attributes were changed meanwhile, or it was moved: it takes entries again.
                Err(error) => {
                    self.reopen_directory(&closing)?;
                    Err(error)
                }
                Ok(()) => {
                    self.closed(&closing);
                    Ok(entry)
                }
            }
        })?;
        self.touch_directory(parent, now());
        self.let_go(&entry)
    }
}
