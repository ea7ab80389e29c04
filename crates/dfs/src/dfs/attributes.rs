//! Attributes of inodes, and when entries are told of changes of content.

use rustix::io::Errno;
use vos::{Action, Condition};

use super::{Dfs, Entry, now, of_entry, retrying};
use crate::table::Whereabouts;
use crate::{Attributes, FileKind, Inode, SetAttributes, SetTime, Timestamp};

/// An inode as it is now.
enum Now {
    /// It has an entry.
    Named(Entry),
    /// It is open, and this client knows no entry of it.
    Nameless(crate::record::Record),
}

fn time_of(set: SetTime, now: Timestamp) -> Timestamp {
    match set {
        SetTime::Now => now,
        SetTime::To(time) => time,
    }
}

impl Dfs {
    fn load(&self, whereabouts: &Whereabouts) -> Result<Now, Errno> {
        if !whereabouts.is_unlinked {
            match self.entry(whereabouts.parent, whereabouts.name.as_bytes()) {
                Ok(entry) if entry.record.object == whereabouts.object => return Ok(Now::Named(entry)),
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        // Another client has renamed or removed it, or this one has.
        whereabouts.open.map(Now::Nameless).ok_or(Errno::STALE)
    }

    pub(super) fn attributes_now(&self, inode: Inode) -> Result<Attributes, Errno> {
        let whereabouts = self.table.find(inode)?;
        match self.load(&whereabouts)? {
            Now::Named(entry) => self.attributes_of(&entry.record, whereabouts.touched),
            Now::Nameless(record) => {
                let mut attributes = self.attributes_of(&record, whereabouts.touched)?;
                attributes.links = u32::from(!whereabouts.is_unlinked);
                Ok(attributes)
            }
        }
    }

    pub(super) fn target_of(&self, inode: Inode) -> Result<Vec<u8>, Errno> {
        match self.load(&self.table.find(inode)?)? {
            Now::Named(entry) if entry.record.kind == FileKind::Symlink => Ok(entry.target),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn set(&self, inode: Inode, to: &SetAttributes) -> Result<Attributes, Errno> {
        if let Some(bytes) = to.size_bytes {
            let whereabouts = self.table.find(inode)?;
            match self.table.with(inode, |node| node.record.kind) {
                Some(FileKind::File) => self.truncate(whereabouts.object, bytes)?,
                Some(FileKind::Directory) => return Err(Errno::ISDIR),
                _ => return Err(Errno::INVAL),
            }
            self.touch(inode, now());
        }
        let is_more = SetAttributes { size_bytes: None, ..*to } != SetAttributes::default();
        if is_more {
            self.change(inode, |record, now| {
                record.permissions = to.permissions.map_or(record.permissions, |bits| bits & 0o7777);
                record.owner.user = to.user.unwrap_or(record.owner.user);
                record.owner.group = to.group.unwrap_or(record.owner.group);
                record.accessed = to.accessed.map_or(record.accessed, |set| time_of(set, now));
                record.modified = to.modified.map_or(record.modified, |set| time_of(set, now));
                record.changed = now;
            })?;
        }
        self.attributes_now(inode)
    }

    /// Changes the record of an inode, and tells its entry what that lacks.
    pub(super) fn change(
        &self,
        inode: Inode,
        change: impl Fn(&mut crate::record::Record, Timestamp),
    ) -> Result<(), Errno> {
        retrying(|| {
            let whereabouts = self.table.find(inode)?;
            let now = now();
            let merge = |record: &mut crate::record::Record| {
                if let Some(touched) = whereabouts.touched {
                    record.modified = record.modified.max(touched);
                    record.changed = record.changed.max(touched);
                }
                change(record, now);
            };
            let record = match self.load(&whereabouts)? {
                Now::Named(mut entry) => {
                    merge(&mut entry.record);
                    let (value, version) = (entry.value(), Condition::Version(entry.version));
                    let name = whereabouts.name.as_bytes();
                    let step = of_entry(whereabouts.parent, name, version, Action::Update(&value));
                    match self.store.apply(&[step]) {
                        // It was removed meanwhile.
                        Err(Errno::NOENT) => return Err(Errno::AGAIN),
                        applied => applied?,
                    }
                    entry.record
                }
                Now::Nameless(mut record) => {
                    merge(&mut record);
                    record
                }
            };
            self.table.with(inode, |node| {
                node.record = record;
                node.told_seconds = now.seconds;
                node.touched = node.touched.filter(|touched| Some(*touched) != whereabouts.touched);
            });
            Ok(())
        })
    }

    /// Notes that the content of an inode was changed: its entry is told when it is closed, and of directories at times.
    pub(super) fn touch(&self, inode: Inode, now: Timestamp) {
        self.table.with(inode, |node| node.touched = Some(now));
    }

    /// Notes that entries of a directory were changed. Its own entry is told at most once a second, and when it is forgotten.
    pub(super) fn touch_directory(&self, inode: Inode, now: Timestamp) {
        let is_due = self.table.with(inode, |node| {
            node.touched = Some(now);
            node.told_seconds.abs_diff(now.seconds) > 1
        });
        if is_due == Some(true) {
            // What was to be changed is changed: a time that cannot be told is told the next time.
            let _ = self.tell(inode);
        }
    }

    /// Tells the entry of an inode of changes of its content.
    pub(super) fn tell(&self, inode: Inode) -> Result<(), Errno> {
        let is_touched = self.table.with(inode, |node| node.touched.is_some());
        if is_touched != Some(true) {
            return Ok(());
        }
        match self.change(inode, |_, _| ()) {
            Err(Errno::STALE) => Ok(()),
            told => told,
        }
    }
}
