//! A disk that loses what was not synced: pools that lie under its directory write to real files, and beside it is kept what of that is
//! durable. At a cut, what is not is dropped, torn or reordered, and the result is laid down in another directory.
//!
//! Files: unsynced writes of a log or a data file are kept or lost by sectors of 512 bytes, each in any of the states it had since its
//! last sync; of mapped files whatever differs from what was synced (or flushed and fenced), by sectors, or, with CPU flushes, by words
//! of 8 bytes. Files that were made, renamed or removed without a sync of their directory are there or not.

mod campaign;
mod defects;
mod disk;
mod image;
mod inode;
mod medium;
mod promises;
mod spread;
mod tests;
mod world;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

pub(super) use medium::wrap;

use self::disk::Disk;
use super::files::Event;

static DISKS: RwLock<Vec<(PathBuf, Weak<Disk>)>> = RwLock::new(Vec::new());

/// A range of mapped memory that a flush has written back and no fence has ordered.
struct Flushed {
    disk: Arc<Disk>,
    inode: usize,
    at: usize,
    content: Vec<u8>,
}

thread_local! {
    static FLUSHED: RefCell<Vec<Flushed>> = const { RefCell::new(Vec::new()) };
}

/// The disk that a path lies on.
pub(super) fn disk_of(path: &Path) -> Option<Arc<Disk>> {
    let disks = DISKS.read();
    disks.iter().filter(|(root, _)| path.starts_with(root)).find_map(|(_, disk)| disk.upgrade())
}

/// Puts a disk under a directory.
fn mount(root: &Path, disk: &Arc<Disk>) {
    let mut disks = DISKS.write();
    disks.retain(|(_, disk)| disk.strong_count() > 0);
    disks.push((root.to_path_buf(), Arc::downgrade(disk)));
}

/// Something happens to a file or a directory.
pub(super) fn note(event: Event<'_>) {
    let (Event::MadeDirectory(path)
    | Event::Made(path)
    | Event::Syncing(path)
    | Event::Synced(path)
    | Event::Renaming(path)
    | Event::Renamed(path, _)
    | Event::Removing(path)
    | Event::RemovedDirectory(path)
    | Event::SyncingDirectory(path)
    | Event::SyncedDirectory(path)) = event;
    if let Some(disk) = disk_of(path) {
        disk.note(event);
    }
}

/// Lines of mapped memory are written back.
pub(super) fn flushed(bytes: &[u8]) {
    let disks = DISKS.read();
    for disk in disks.iter().filter_map(|(_, disk)| disk.upgrade()) {
        if let Some((inode, at, content)) = disk.lines_of(bytes) {
            FLUSHED.with_borrow_mut(|all| all.push(Flushed { disk, inode, at, content }));
            return;
        }
    }
}

/// Makes durable all that this thread flushed.
pub(super) fn fenced() {
    let all = FLUSHED.take();
    let Some(first) = all.first() else { return };
    first.disk.event();
    for part in all {
        part.disk.persist(part.inode, part.at, &part.content);
    }
}
