//! A file system as FUSE serves it, and the answers to its requests.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dfs::{Attributes, FileSystem, Handle, Inode, Owner};
use fuser::{
    Errno, FileAttr, FileHandle, FopenFlags, Generation, INodeNo, Notifier, OpenAccMode, OpenFlags,
    ReplyEntry, ReplyXattr, Request,
};

use crate::appending::Appending;
use crate::attributes::file_attr;
use crate::listing::Listings;
use crate::options::{Caching, DataCaching};
use crate::setid::Shown;

/// Bytes that a copy within the file system moves at a time.
const COPY_BYTES: usize = 1 << 20;
/// Inodes are never given to another file while the kernel knows them.
pub(crate) const GENERATION: Generation = Generation(0);

/// Attribute of the root that names the socket of the mount's process, where it serves one.
pub const ENDPOINT_ATTRIBUTE: &str = "user.strata.endpoint";
/// Extended attribute of a mount's directory that is only set: to [`CACHE_DROP`], so that the store reads from its files what it has in memory.
pub const CACHE_ATTRIBUTE: &str = "user.strata.cache";
/// See [`CACHE_ATTRIBUTE`].
pub const CACHE_DROP: &[u8] = b"drop";

thread_local! {
    /// Memory of what a thread reads.
    pub(crate) static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file system as FUSE serves it.
pub(crate) struct Adapter {
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) caching: Caching,
    /// Value of [`ENDPOINT_ATTRIBUTE`].
    pub(crate) endpoint: Option<Vec<u8>>,
    pub(crate) listings: Listings,
    pub(crate) appending: Appending,
    /// Files whose bits are to be taken away when they are written.
    pub(crate) shown: Shown,
    /// Channel that tells the kernel to forget, once the session is there.
    pub(crate) notifier: Arc<OnceLock<Notifier>>,
}

pub(crate) fn errno(error: dfs::Errno) -> Errno {
    Errno::from_i32(error.raw_os_error())
}

pub(crate) fn inode(number: INodeNo) -> Inode {
    Inode(number.0)
}

impl Adapter {
    /// Carries out what [`CACHE_ATTRIBUTE`] was set to.
    pub(crate) fn drop_cache(&self, asked: &[u8]) -> Result<(), dfs::Errno> {
        if asked == CACHE_DROP { self.file_system.drop_cache() } else { Err(dfs::Errno::INVAL) }
    }

    /// Owner of what a request makes in a directory, and the bit that directories in it inherit: a directory with set-group-id gives its group.
    pub(crate) fn owner_in(&self, request: &Request, parent: INodeNo) -> Result<(Owner, u16), dfs::Errno> {
        let directory = self.file_system.attributes(inode(parent))?;
        let inherited = directory.permissions & libc::S_ISGID as u16;
        let group = if inherited == 0 { request.gid() } else { directory.owner.group };
        Ok((Owner { user: request.uid(), group }, inherited))
    }

    /// Flags of an open file, in the words of the file system.
    pub(crate) fn open_flags(&self, flags: i32) -> dfs::OpenFlags {
        let mode = OpenFlags(flags).acc_mode();
        // The kernel that keeps writes back reads the rest of a page, and places appended data itself.
        let kept_back = self.caching.writeback;
        dfs::OpenFlags {
            read: mode != OpenAccMode::O_WRONLY || kept_back,
            write: mode != OpenAccMode::O_RDONLY,
            append: flags & libc::O_APPEND != 0 && !kept_back,
            truncate: flags & libc::O_TRUNC != 0,
            exclusive: flags & libc::O_EXCL != 0,
        }
    }

    /// How the kernel keeps the data of a file that is opened so.
    pub(crate) fn keeps(&self, flags: i32) -> FopenFlags {
        // Whoever asks for direct I/O, the interception library among them, sees the store alone.
        if self.caching.data != DataCaching::On || flags & libc::O_DIRECT != 0 {
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
        } else {
            FopenFlags::empty()
        }
    }

    /// Attributes that the kernel is shown.
    pub(crate) fn shown_attr(&self, found: &Attributes) -> FileAttr {
        self.shown.note(found);
        file_attr(found)
    }

    fn lifetime(&self, of: &Attributes) -> Duration {
        let is_directory = of.kind == dfs::FileKind::Directory;
        if is_directory { self.caching.directory_entry } else { self.caching.entry }
    }

    pub(crate) fn entry(&self, reply: ReplyEntry, result: Result<Attributes, dfs::Errno>) {
        match result {
            Ok(found) => {
                let (attributes, entry) = (self.caching.attributes, self.lifetime(&found));
                reply.entry_with_ttls(&attributes, &entry, &self.shown_attr(&found), GENERATION);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Answers that there is no such entry, which the kernel may remember.
    pub(crate) fn absent(&self, reply: ReplyEntry) {
        if self.caching.absent_entry.is_zero() {
            return reply.error(Errno::ENOENT);
        }
        let nothing = dfs::Attributes {
            inode: Inode(0),
            kind: dfs::FileKind::File,
            permissions: 0,
            links: 0,
            owner: Owner::default(),
            device: 0,
            size_bytes: 0,
            stored_bytes: 0,
            block_size_bytes: 0,
            accessed: dfs::Timestamp::default(),
            modified: dfs::Timestamp::default(),
            changed: dfs::Timestamp::default(),
        };
        let lifetime = self.caching.absent_entry;
        reply.entry_with_ttls(&Duration::ZERO, &lifetime, &file_attr(&nothing), GENERATION);
    }

    pub(crate) fn copy(
        &self,
        from: (FileHandle, u64),
        to: (FileHandle, u64),
        bytes: u64,
    ) -> Result<usize, dfs::Errno> {
        // A short copy is allowed; the caller goes on.
        let mut buffer = vec![0; COPY_BYTES.min(bytes as usize)];
        let read = self.file_system.read(Handle(from.0.0), from.1, &mut buffer)?;
        if read == 0 {
            return Ok(0);
        }
        self.file_system.write(Handle(to.0.0), to.1, &buffer[..read])
    }
}

/// Answers a request for the value of an attribute, or for its size alone.
pub(crate) fn value(reply: ReplyXattr, size: u32, value: &[u8]) {
    match size as usize {
        0 => reply.size(value.len() as u32),
        size if size < value.len() => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}
