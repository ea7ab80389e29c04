//! Media of a log: mapped memory, written in place, or a file with direct I/O.
#![allow(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::error::StoreError;
use super::flush::Flusher;
use super::memory::Region;
use crate::waits::waiting;

/// Unit of direct I/O, in bytes.
pub(super) const BLOCK_BYTES: usize = 4096;

/// From this size on pages are made present by several threads.
const PARALLEL_BYTES_MIN: usize = 8 << 20;

impl From<Errno> for StoreError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT => Self::ScmFull,
            other => Self::System(other.raw_os_error()),
        }
    }
}

/// Where bytes of a log or of a data file are kept. Offsets are those of the file.
pub(super) trait Medium: Send + Sync + fmt::Debug {
    /// The file as memory, where it is written in place.
    fn mapped(&self) -> Option<&Arc<Region>>;

    /// How lines that were stored become durable.
    fn flusher(&self) -> Flusher;

    /// Takes space of the file system for a range; what it holds stays as it is. [`StoreError::ScmFull`] where the file system is full.
    fn allocate(&self, at: u64, bytes: u64) -> Result<(), StoreError>;

    /// Bytes that the file system has free.
    fn free_bytes(&self) -> u64;

    /// Writes blocks: `at` and the length are multiples of [`BLOCK_BYTES`], `bytes` is aligned so.
    fn write(&self, bytes: &[u8], at: u64) -> Result<(), StoreError>;

    /// Reads blocks. Takes no space, not even of holes.
    fn read(&self, into: &mut [u8], at: u64) -> Result<(), StoreError>;

    /// Makes durable what was written, or, mapped, a range of what was stored.
    fn sync(&self, at: u64, bytes: u64) -> Result<(), StoreError>;

    /// Gives up what the page cache holds of it and is durable; nothing where it is past the page cache, or memory is all there is.
    fn drop_cache(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether [`Medium::sync`] is what makes updates durable (else [`Medium::flusher`] does).
    fn is_synced(&self) -> bool;

    /// How, in words.
    fn durable_by(&self) -> &'static str;
}

/// Mapped memory.
#[derive(Debug)]
pub(super) struct Mapped {
    file: File,
    region: Arc<Region>,
    flusher: Flusher,
    by_msync: bool,
}

impl Mapped {
    pub(super) fn new(file: File, bytes: u64, flusher: Flusher, by_msync: bool) -> Result<Self, Errno> {
        let region = Arc::new(Region::of_file(&file, bytes as usize)?);
        Ok(Self { file, region, flusher: if by_msync { Flusher::Nothing } else { flusher }, by_msync })
    }
}

impl Medium for Mapped {
    fn mapped(&self) -> Option<&Arc<Region>> {
        Some(&self.region)
    }

    fn flusher(&self) -> Flusher {
        self.flusher
    }

    fn free_bytes(&self) -> u64 {
        free_bytes(&self.file)
    }

    fn allocate(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        allocate(&self.file, at, bytes)?;
        populate(&self.region, at as usize, bytes as usize).map_err(|errno| match errno {
            // What a touch would answer with SIGBUS: no page is to be had.
            Errno::FAULT => StoreError::ScmFull,
            other => other.into(),
        })
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), StoreError> {
        // SAFETY: a medium is written where its caller has room that nobody reads, as a file would be.
        let into = unsafe { self.region.shared_mut(at as usize, bytes.len()) };
        into.copy_from_slice(bytes);
        self.flusher.flush(into);
        self.flusher.fence();
        Ok(())
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<(), StoreError> {
        // Through the file: a hole that is touched in the mapping would take a page.
        waiting(|| read_all(&self.file, into, at))
    }

    fn sync(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        Ok(waiting(|| self.region.msync(at as usize, bytes as usize))?)
    }

    fn drop_cache(&self) -> Result<(), StoreError> {
        // Without msync the file is memory: of tmpfs, or persistent.
        if self.by_msync {
            self.region.msync(0, self.region.len())?;
            self.region.let_go()?;
            rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }

    fn is_synced(&self) -> bool {
        self.by_msync
    }

    fn durable_by(&self) -> &'static str {
        if self.by_msync { "msync" } else { self.flusher.name() }
    }
}

/// A file with direct I/O.
#[derive(Debug)]
pub(super) struct Direct {
    file: OwnedFd,
    /// Past the page cache; else the file system has no direct I/O, and writes are buffered.
    is_direct: bool,
}

impl Direct {
    /// Opens the file anew, for direct I/O where the file system has it.
    pub(super) fn new(path: &std::path::Path) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty()) {
            Ok(file) => Ok(Self { file, is_direct: true }),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                Ok(Self { file: rustix::fs::open(path, flags, Mode::empty())?, is_direct: false })
            }
            Err(errno) => Err(errno),
        }
    }
}

impl Medium for Direct {
    fn mapped(&self) -> Option<&Arc<Region>> {
        None
    }

    fn flusher(&self) -> Flusher {
        Flusher::Nothing
    }

    fn free_bytes(&self) -> u64 {
        free_bytes(&self.file)
    }

    fn allocate(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        Ok(allocate(&self.file, at, bytes)?)
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), StoreError> {
        waiting(|| write_all(&self.file, bytes, at))
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<(), StoreError> {
        waiting(|| read_all(&self.file, into, at))
    }

    fn sync(&self, _at: u64, _bytes: u64) -> Result<(), StoreError> {
        Ok(waiting(|| rustix::fs::fdatasync(&self.file))?)
    }

    fn drop_cache(&self) -> Result<(), StoreError> {
        if !self.is_direct {
            waiting(|| rustix::fs::fdatasync(&self.file))?;
            rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }

    fn is_synced(&self) -> bool {
        true
    }

    fn durable_by(&self) -> &'static str {
        if self.is_direct { "direct I/O and fdatasync" } else { "buffered writes and fdatasync" }
    }
}

/// Makes pages present; large parts by several threads, because pages are cleared more slowly than a writer fills them.
fn populate(region: &Region, at: usize, bytes: usize) -> Result<(), Errno> {
    let threads = std::thread::available_parallelism().map_or(1, |count| (count.get() / 2).clamp(1, 4));
    if threads == 1 || bytes < PARALLEL_BYTES_MIN {
        return region.populate(at, bytes);
    }
    let share = bytes.div_ceil(threads).next_multiple_of(2 << 20);
    std::thread::scope(|scope| {
        let parts: Vec<_> = (at..at + bytes)
            .step_by(share)
            .map(|from| scope.spawn(move || region.populate(from, share.min(at + bytes - from))))
            .collect();
        parts.into_iter().try_for_each(|part| part.join().unwrap_or(Err(Errno::FAULT)))
    })
}

fn free_bytes(file: impl AsFd) -> u64 {
    rustix::fs::fstatvfs(file).map_or(0, |space| space.f_bavail.saturating_mul(space.f_frsize))
}

fn write_all(file: impl AsFd, mut bytes: &[u8], mut at: u64) -> Result<(), StoreError> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(&file, bytes, at) {
            Ok(0) => return Err(StoreError::System(libc::EIO)),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

pub(super) fn read_all(file: impl AsFd, into: &mut [u8], at: u64) -> Result<(), StoreError> {
    let mut done = 0;
    while done < into.len() {
        match rustix::io::pread(&file, &mut into[done..], at + done as u64) {
            Ok(0) => return Err(StoreError::System(libc::EIO)),
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn allocate(file: impl AsFd, at: u64, bytes: u64) -> Result<(), Errno> {
    loop {
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), at, bytes) {
            Err(Errno::INTR) => {}
            // File systems without it: the first write takes the space.
            Err(Errno::OPNOTSUPP) => return Ok(()),
            result => return result,
        }
    }
}
