//! Inodes that this process refers to, and files that it has open.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use units::random::mix64;
use vos::model::ObjectId;

use crate::layout::{NAME_BYTES_MAX, ROOT_DKEY, SUPERBLOCK};
use crate::record::Record;
use crate::{FileKind, Handle, Inode, OpenFlags, Timestamp};

const SHARDS: usize = 64;

/// Hashes numbers that are all different.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = mix64(self.0 ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix64(number);
    }
}

type Map<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// A name without memory of its own.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    length: u8,
    bytes: [u8; NAME_BYTES_MAX],
}

impl Name {
    pub(crate) fn new(name: &[u8]) -> Self {
        let mut bytes = [0; NAME_BYTES_MAX];
        let length = name.len().min(NAME_BYTES_MAX);
        bytes[..length].copy_from_slice(&name[..length]);
        Self { length: length as u8, bytes }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// An inode that somebody refers to.
pub(crate) struct Node {
    pub(crate) object: ObjectId,
    /// The directory that its entry is in, as far as this client knows, and the entry's name.
    pub(crate) parent: ObjectId,
    pub(crate) name: Box<[u8]>,
    /// As it was last read.
    pub(crate) record: Record,
    references: u64,
    /// Handles to it.
    pub(crate) open: u32,
    /// Its name was removed by this client: what it holds goes with the last handle.
    pub(crate) is_unlinked: bool,
    /// When its content was last changed by this client, as long as its entry does not say so.
    pub(crate) touched: Option<Timestamp>,
    /// Second in which its entry was last told so.
    pub(crate) told_seconds: i64,
}

/// Where an inode's entry is.
#[derive(Clone, Copy)]
pub(crate) struct Whereabouts {
    pub(crate) object: ObjectId,
    pub(crate) parent: ObjectId,
    pub(crate) name: Name,
    /// What is known of it without its entry, where it is open.
    pub(crate) open: Option<Record>,
    pub(crate) is_unlinked: bool,
    pub(crate) touched: Option<Timestamp>,
}

impl Node {
    fn new(parent: ObjectId, name: &[u8], record: &Record) -> Self {
        Self {
            object: record.object,
            parent,
            name: name.into(),
            record: *record,
            references: 0,
            open: 0,
            is_unlinked: false,
            touched: None,
            told_seconds: 0,
        }
    }

    fn whereabouts(&self) -> Whereabouts {
        Whereabouts {
            object: self.object,
            parent: self.parent,
            name: Name::new(&self.name),
            open: (self.open > 0).then_some(self.record),
            is_unlinked: self.is_unlinked,
            touched: self.touched,
        }
    }
}

/// A file that is open.
#[derive(Clone, Copy)]
pub(crate) struct OpenFile {
    pub(crate) object: ObjectId,
    pub(crate) kind: FileKind,
    pub(crate) flags: OpenFlags,
}

impl OpenFile {
    pub(crate) fn inode(&self) -> Inode {
        Inode(self.object.lo)
    }
}

/// The table.
pub(crate) struct Table {
    shards: Box<[Mutex<Map<Node>>]>,
    handles: Box<[Mutex<Map<Arc<OpenFile>>>]>,
    next_handle: AtomicU64,
}

fn shards<T>() -> Box<[Mutex<Map<T>>]> {
    (0..SHARDS).map(|_| Mutex::default()).collect()
}

fn shard_of(number: u64) -> usize {
    (mix64(number) >> 32) as usize % SHARDS
}

impl Table {
    /// With the root, which is never forgotten.
    pub(crate) fn new(root: &Record) -> Self {
        let table = Self { shards: shards(), handles: shards(), next_handle: AtomicU64::new(1) };
        table.refer(SUPERBLOCK, ROOT_DKEY, root);
        table
    }

    fn shard(&self, inode: Inode) -> MutexGuard<'_, Map<Node>> {
        self.shards[shard_of(inode.0)].lock()
    }

    /// Does something with an inode; none where nobody refers to it.
    pub(crate) fn with<R>(&self, inode: Inode, act: impl FnOnce(&mut Node) -> R) -> Option<R> {
        self.shard(inode).get_mut(&inode.0).map(act)
    }

    /// Takes a reference to the inode of an entry. When this client has changed its content last, where the entry does not say so.
    pub(crate) fn refer(&self, parent: ObjectId, name: &[u8], record: &Record) -> Option<Timestamp> {
        let mut shard = self.shard(Inode(record.object.lo));
        match shard.entry(record.object.lo) {
            Entry::Vacant(vacant) => {
                let mut node = Node::new(parent, name, record);
                node.references = 1;
                vacant.insert(node);
                None
            }
            Entry::Occupied(mut occupied) => {
                let node = occupied.get_mut();
                node.references += 1;
                node.record = *record;
                if node.parent != parent || *node.name != *name {
                    // Another client has renamed it.
                    (node.parent, node.name) = (parent, name.into());
                }
                node.touched
            }
        }
    }

    /// Where an inode's entry is.
    ///
    /// # Errors
    /// `ESTALE`: nobody refers to it.
    pub(crate) fn find(&self, inode: Inode) -> Result<Whereabouts, Errno> {
        self.with(inode, |node| node.whereabouts()).ok_or(Errno::STALE)
    }

    /// The object of a directory that entries are to be looked for in.
    ///
    /// # Errors
    /// `ENOTDIR`, `ENOENT` where this client has removed it, `ESTALE`.
    pub(crate) fn directory(&self, inode: Inode) -> Result<ObjectId, Errno> {
        let found = self.with(inode, |node| match (node.record.kind, node.is_unlinked) {
            (FileKind::Directory, false) => Ok(node.object),
            (FileKind::Directory, true) => Err(Errno::NOENT),
            _ => Err(Errno::NOTDIR),
        });
        found.unwrap_or(Err(Errno::STALE))
    }

    /// Gives references back; true where nobody refers to the inode any more. What it has to tell is told before ([`Table::forget`]).
    pub(crate) fn unrefer(&self, inode: Inode, references: u64) -> bool {
        let is_last = self.with(inode, |node| {
            node.references = node.references.saturating_sub(references);
            node.references == 0 && node.open == 0
        });
        is_last.unwrap_or(false) && inode != Inode::ROOT
    }

    /// Forgets an inode that nobody refers to.
    pub(crate) fn forget(&self, inode: Inode) {
        let mut shard = self.shard(inode);
        if let Entry::Occupied(node) = shard.entry(inode.0)
            && node.get().references == 0
            && node.get().open == 0
            && inode != Inode::ROOT
        {
            node.remove();
        }
    }

    /// Inodes whose entries lack something.
    pub(crate) fn touched(&self) -> Vec<Inode> {
        let of_shard = |shard: &Mutex<Map<Node>>| {
            let shard = shard.lock();
            shard
                .iter()
                .filter(|(_, node)| node.touched.is_some())
                .map(|(number, _)| Inode(*number))
                .collect()
        };
        self.shards.iter().flat_map(|shard| -> Vec<Inode> { of_shard(shard) }).collect()
    }

    /// The entry of an inode is gone. Whether what it holds stays, because it is open.
    pub(crate) fn unlink(&self, object: ObjectId) -> bool {
        let is_open = self.with(Inode(object.lo), |node| {
            node.is_unlinked = true;
            node.touched = None;
            node.open > 0
        });
        is_open.unwrap_or(false)
    }

    /// The entry of an inode is elsewhere now.
    pub(crate) fn moved(&self, object: ObjectId, parent: ObjectId, name: &[u8]) {
        self.with(Inode(object.lo), |node| (node.parent, node.name) = (parent, name.into()));
    }

    /// A handle to an inode.
    ///
    /// # Errors
    /// `ESTALE`: it is not referred to, or its name is removed.
    pub(crate) fn open(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno> {
        let opened = self.with(inode, |node| {
            (!node.is_unlinked || node.open > 0).then(|| {
                node.open += 1;
                OpenFile { object: node.object, kind: node.record.kind, flags }
            })
        });
        let file = opened.flatten().ok_or(Errno::STALE)?;
        let number = self.next_handle.fetch_add(1, Ordering::Relaxed);
        self.handles[shard_of(number)].lock().insert(number, Arc::new(file));
        Ok(Handle(number))
    }

    /// The file of a handle.
    ///
    /// # Errors
    /// `EBADF`.
    pub(crate) fn file(&self, handle: Handle) -> Result<Arc<OpenFile>, Errno> {
        self.handles[shard_of(handle.0)].lock().get(&handle.0).cloned().ok_or(Errno::BADF)
    }

    /// Closes a handle: its file, and whether it was the last of one whose name is removed.
    ///
    /// # Errors
    /// `EBADF`.
    pub(crate) fn close(&self, handle: Handle) -> Result<(Arc<OpenFile>, bool), Errno> {
        let file = self.handles[shard_of(handle.0)].lock().remove(&handle.0).ok_or(Errno::BADF)?;
        let is_over = self.with(file.inode(), |node| {
            node.open -= 1;
            node.open == 0 && node.is_unlinked
        });
        Ok((file, is_over.unwrap_or(false)))
    }
}
