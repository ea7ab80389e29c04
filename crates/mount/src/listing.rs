//! Directories that are open: entries that were listed and not asked for yet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use dfs::{Errno, FileKind, FileSystem, Inode};

/// Entries that are listed at a time.
const BATCH: usize = 256;
/// Offsets of `.` and `..`, which stand before all others.
const DOTS: u64 = 2;

/// An entry with the offset behind it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) inode: Inode,
    pub(crate) kind: FileKind,
    pub(crate) name: Vec<u8>,
    pub(crate) next: u64,
}

/// Position of one open directory.
#[derive(Default)]
struct Position {
    /// Offset of the first entry of `ahead`.
    offset: u64,
    ahead: VecDeque<Entry>,
}

#[derive(Default)]
struct Open {
    last_handle: u64,
    positions: HashMap<u64, Arc<Mutex<Position>>>,
}

/// Open directories by handle.
#[derive(Default)]
pub(crate) struct Listings {
    open: Mutex<Open>,
}

impl Listings {
    /// Opens a directory; its handle.
    pub(crate) fn open(&self) -> u64 {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.last_handle += 1;
        let handle = open.last_handle;
        open.positions.insert(handle, Arc::default());
        handle
    }

    /// Closes one.
    pub(crate) fn close(&self, handle: u64) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).positions.remove(&handle);
    }

    /// Gives entries from an offset on to `take`, until it says that it took none.
    pub(crate) fn read(
        &self,
        file_system: &dyn FileSystem,
        inode: Inode,
        handle: u64,
        offset: u64,
        take: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<(), Errno> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let position = open.positions.get(&handle).cloned().ok_or(Errno::BADF)?;
        drop(open);
        let mut position = position.lock().unwrap_or_else(PoisonError::into_inner);
        if position.offset != offset || offset == 0 {
            *position = Position { offset, ahead: VecDeque::new() };
        }
        loop {
            if position.ahead.is_empty() {
                position.ahead = batch(file_system, inode, position.offset)?;
            }
            let Some(entry) = position.ahead.front() else { return Ok(()) };
            if !take(entry) {
                return Ok(());
            }
            position.offset = entry.next;
            position.ahead.pop_front();
        }
    }
}

/// Entries from an offset on, `.` and `..` first.
fn batch(file_system: &dyn FileSystem, inode: Inode, offset: u64) -> Result<VecDeque<Entry>, Errno> {
    let mut entries = VecDeque::new();
    for (place, name) in (0..DOTS).zip([".", ".."]).skip(offset.min(DOTS) as usize) {
        // The kernel knows what both are; a listing shows a number all the same.
        let entry = Entry { inode, kind: FileKind::Directory, name: name.into(), next: place + 1 };
        entries.push_back(entry);
    }
    file_system.list(inode, offset.saturating_sub(DOTS), &mut |entry| {
        entries.push_back(Entry {
            inode: entry.inode,
            kind: entry.kind,
            name: entry.name.to_vec(),
            next: entry.next.saturating_add(DOTS),
        });
        entries.len() < BATCH
    })?;
    Ok(entries)
}
