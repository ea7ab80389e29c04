//! Files on DAOS, by its own library: `dfs+daos://pool/container`.
//!
//! Layout and rules are the library's. What differs from those of [`crate::open`] on the embedded store is in docs/dfs.md.

mod interface;
mod library;
mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::Error;
use parking_lot::Mutex;
use rustix::io::Errno;
use units::random::mix64;

use library::Oid;
use session::{Open, Session, text};

use crate::layout::check_name;
use crate::record::kind_of;
use crate::{Attributes, FileKind, Handle, Inode, OpenFlags, Owner, Timestamp};

/// An inode that somebody refers to.
struct Node {
    open: Arc<Open>,
    kind: FileKind,
    references: u64,
    handles: u64,
}

/// A file that is open.
#[derive(Clone, Copy)]
struct Opened {
    inode: Inode,
    flags: OpenFlags,
}

/// A file system of DAOS.
pub(crate) struct LibDfs {
    nodes: Mutex<HashMap<Inode, Node>>,
    handles: Mutex<HashMap<Handle, Opened>>,
    next_handle: AtomicU64,
    /// The last listing of each directory from its beginning: its cookies are places in it.
    listings: Mutex<HashMap<Inode, Arc<[std::ffi::CString]>>>,
    root: Oid,
    appending: Mutex<()>,
}

fn timestamp(seconds: i64, nanoseconds: i64) -> Timestamp {
    Timestamp { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) }
}

impl LibDfs {
    /// Connects to a container, which is made where `creates`.
    pub(crate) fn connect(pool: &str, container: &str, creates: bool) -> Result<Self, Error> {
        let session = Session::connect(pool, container, creates)?;
        let failed = |errno| Error::system("dfs", "cannot open the root directory", errno);
        let root = session.root().map_err(failed)?;
        let dfs = Self {
            root: root.id,
            nodes: Mutex::default(),
            handles: Mutex::default(),
            next_handle: AtomicU64::new(1),
            listings: Mutex::default(),
            appending: Mutex::default(),
        };
        dfs.refer(root, FileKind::Directory);
        Ok(dfs)
    }

    /// Number of an inode: ids of 128 bits are mixed into it.
    fn number(&self, id: Oid) -> Inode {
        let number = mix64(id.lo.wrapping_add(mix64(id.hi & 0xffff_ffff)));
        if id == self.root { Inode::ROOT } else { Inode(number.max(2)) }
    }

    /// Takes a reference to what was opened.
    fn refer(&self, open: Open, kind: FileKind) -> Inode {
        let inode = self.number(open.id);
        let mut nodes = self.nodes.lock();
        let node = nodes.entry(inode).or_insert_with(|| Node {
            open: Arc::new(open),
            kind,
            references: 0,
            handles: 0,
        });
        node.references += 1;
        inode
    }

    fn node(&self, inode: Inode) -> Result<(Arc<Open>, FileKind), Errno> {
        let nodes = self.nodes.lock();
        let node = nodes.get(&inode).ok_or(Errno::STALE)?;
        Ok((Arc::clone(&node.open), node.kind))
    }

    fn directory(&self, inode: Inode) -> Result<Arc<Open>, Errno> {
        match self.node(inode)? {
            (open, FileKind::Directory) => Ok(open),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Opens an entry without a reference.
    fn open_entry(&self, parent: Inode, name: &[u8]) -> Result<(Open, FileKind), Errno> {
        check_name(name)?;
        let (open, mode) = self.directory(parent)?.look_up(&text(name)?)?;
        Ok((open, kind_of(mode).ok_or(Errno::IO)?))
    }

    fn attributes_of(&self, open: &Open, kind: FileKind) -> Result<Attributes, Errno> {
        let stat = open.stat()?;
        let chunk = if kind == FileKind::File { open.chunk_bytes()? } else { crate::CHUNK_BYTES };
        Ok(Attributes {
            inode: self.number(open.id),
            kind,
            permissions: (stat.st_mode & 0o7777) as u16,
            links: 1,
            owner: Owner { user: stat.st_uid, group: stat.st_gid },
            device: 0,
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            stored_bytes: u64::try_from(stat.st_blocks).unwrap_or(0) * 512,
            block_size_bytes: u32::try_from(chunk).unwrap_or(u32::MAX),
            accessed: timestamp(stat.st_atime, stat.st_atime_nsec),
            modified: timestamp(stat.st_mtime, stat.st_mtime_nsec),
            changed: timestamp(stat.st_ctime, stat.st_ctime_nsec),
        })
    }

    /// Takes a reference to an object that was made, which becomes this owner's.
    fn made(&self, open: Open, kind: FileKind, owner: Owner) -> Result<Attributes, Errno> {
        let mut stat = open.stat()?;
        if (stat.st_uid, stat.st_gid) != (owner.user, owner.group) {
            (stat.st_uid, stat.st_gid) = (owner.user, owner.group);
            open.set(&mut stat, library::SET_USER | library::SET_GROUP)?;
        }
        let attributes = self.attributes_of(&open, kind)?;
        self.refer(open, kind);
        Ok(attributes)
    }

    fn opened(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno> {
        self.nodes.lock().get_mut(&inode).ok_or(Errno::STALE)?.handles += 1;
        let handle = Handle(self.next_handle.fetch_add(1, Ordering::Relaxed));
        self.handles.lock().insert(handle, Opened { inode, flags });
        Ok(handle)
    }

    /// The object of a handle.
    fn file(&self, handle: Handle) -> Result<(Arc<Open>, OpenFlags), Errno> {
        let opened = *self.handles.lock().get(&handle).ok_or(Errno::BADF)?;
        match self.node(opened.inode)? {
            (_, FileKind::Directory) => Err(Errno::ISDIR),
            (open, _) => Ok((open, opened.flags)),
        }
    }

    /// Forgets an inode that nobody uses.
    fn settle(&self, inode: Inode, change: impl FnOnce(&mut Node)) {
        let mut nodes = self.nodes.lock();
        let Some(node) = nodes.get_mut(&inode) else { return };
        change(node);
        let is_over = node.references == 0 && node.handles == 0 && inode != Inode::ROOT;
        // Released when the lock is free again.
        let gone = is_over.then(|| nodes.remove(&inode));
        drop(nodes);
        if gone.is_some() {
            self.listings.lock().remove(&inode);
        }
    }

    /// An object remembers the name that it was opened by: after a rename it is opened again.
    fn reopen(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        let (open, _) = self.open_entry(parent, name)?;
        let inode = self.number(open.id);
        if let Some(node) = self.nodes.lock().get_mut(&inode) {
            node.open = Arc::new(open);
        }
        Ok(())
    }
}
