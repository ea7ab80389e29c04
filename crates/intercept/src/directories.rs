//! Open directories: the program's `DIR` is that of the C library, the entries are those of the file system.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use dfs::{Errno, FileKind, FileSystem, Inode};

use crate::paths::{self, Referenced};

/// Entries that are listed at a time.
const BATCH: usize = 256;
/// Offsets of `.` and `..`, which stand before all others.
const DOTS: u64 = 2;

struct Entry {
    inode: Inode,
    kind: FileKind,
    name: Vec<u8>,
    next: u64,
}

/// An inode that a reference is held to.
struct Held {
    file_system: Arc<dyn FileSystem>,
    inode: Inode,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.inode != Inode::ROOT {
            self.file_system.forget(self.inode, 1);
        }
    }
}

/// A directory that a program reads.
pub(crate) struct OpenDirectory {
    mount: usize,
    /// Names on the way to it; none where it can be read by the kernel alone.
    names: Option<Vec<Vec<u8>>>,
    held: Option<Held>,
    ahead: VecDeque<Entry>,
    /// Offset of the next entry.
    position: u64,
    /// The entry that the program has in its hands.
    given: Box<libc::dirent64>,
}

fn type_of(kind: FileKind) -> u8 {
    match kind {
        FileKind::File => libc::DT_REG,
        FileKind::Directory => libc::DT_DIR,
        FileKind::Symlink => libc::DT_LNK,
        FileKind::Fifo => libc::DT_FIFO,
        FileKind::Socket => libc::DT_SOCK,
        FileKind::CharacterDevice => libc::DT_CHR,
        FileKind::BlockDevice => libc::DT_BLK,
    }
}

impl OpenDirectory {
    /// The directory of these names in a mount, at its beginning.
    pub(crate) fn new(mount: usize, names: Vec<Vec<u8>>) -> Self {
        Self { names: Some(names), mount, ..Self::lost() }
    }

    /// A directory that the kernel reads.
    pub(crate) fn lost() -> Self {
        // SAFETY: zeros are an entry without a name.
        let given = Box::new(unsafe { std::mem::zeroed() });
        Self { mount: 0, names: None, held: None, ahead: VecDeque::new(), position: 0, given }
    }

    /// The same directory in a child of this process.
    pub(crate) fn reopened(&self) -> Self {
        Self { mount: self.mount, names: self.names.clone(), position: self.position, ..Self::lost() }
    }

    /// Offset of the next entry.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Goes on from an offset.
    pub(crate) fn seek(&mut self, position: u64) {
        self.position = position;
        self.ahead.clear();
    }

    /// Whether this library reads it.
    pub(crate) fn is_read_here(&self) -> bool {
        self.names.is_some()
    }

    fn held(&mut self) -> Result<&Held, Errno> {
        if self.held.is_none() {
            let names = self.names.clone().ok_or(Errno::BADF)?;
            let is_root = names.is_empty();
            let found = if is_root { paths::root_of(self.mount) } else { paths::look_up(self.mount, names) };
            let Referenced { file_system, inode } = found.ok_or(Errno::NOENT)?;
            self.held = Some(Held { file_system, inode });
        }
        self.held.as_ref().ok_or(Errno::BADF)
    }

    /// The next entry, valid until the next one is asked for; null at the end.
    pub(crate) fn next(&mut self) -> Result<*mut libc::dirent64, Errno> {
        if self.ahead.is_empty() {
            self.list()?;
        }
        let Some(entry) = self.ahead.pop_front() else { return Ok(std::ptr::null_mut()) };
        self.position = entry.next;
        let given = &mut *self.given;
        given.d_ino = entry.inode.0;
        given.d_off = entry.next as i64;
        given.d_type = type_of(entry.kind);
        given.d_reclen = size_of::<libc::dirent64>() as u16;
        let room = given.d_name.len() - 1;
        for (to, byte) in given.d_name.iter_mut().zip(entry.name.iter().take(room).chain(&[0])) {
            *to = *byte as libc::c_char;
        }
        Ok(given)
    }

    fn list(&mut self) -> Result<(), Errno> {
        let position = self.position;
        let (file_system, inode) = self.held().map(|held| (Arc::clone(&held.file_system), held.inode))?;
        let ahead = &mut self.ahead;
        for (place, name) in (0..DOTS).zip([".", ".."]).skip(position.min(DOTS) as usize) {
            ahead.push_back(Entry { inode, kind: FileKind::Directory, name: name.into(), next: place + 1 });
        }
        file_system.list(inode, position.saturating_sub(DOTS), &mut |entry| {
            let (inode, kind, name) = (entry.inode, entry.kind, entry.name.to_vec());
            ahead.push_back(Entry { inode, kind, name, next: entry.next.saturating_add(DOTS) });
            ahead.len() < BATCH
        })
    }
}
