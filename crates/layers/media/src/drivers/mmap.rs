//! `mmap`: copies between the slot's buffer and a mapping of the target.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::engine::SyncCall;
use driver::{Arena, Capabilities, Error, ErrorKind, Opened, Operation, Registration};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};
use workload::target::{TargetKind, TargetPlan};

use crate::descriptor::{self, Bounds, Descriptor, INVALID, completed};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

mod guard;

const NAME: &str = "mmap";

const CAPABILITIES: Capabilities = Capabilities {
    classes: MediaOperation::CLASSES,
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: false,
    options: &["map-sync", "memory", "gpu-path", "gpu-staging", "gpu-per"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "loads and stores on a mapping of the target, msync to make them durable",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    guard::install()?;
    let mut maps = Vec::with_capacity(request.targets.len());
    for (descriptor, plan) in descriptor::open_all(request, NAME)?.into_iter().zip(&request.targets) {
        maps.push(Map::new(descriptor, plan, request)?);
    }
    let (arena, bounds) = (Arc::clone(&request.arena), Bounds::new(request));
    let driver = Mmap { maps, arena, bounds, writes: request.writes, sync_call: request.options.sync_call };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

/// The mapping of one target's range, as far as the target reaches.
struct Map {
    descriptor: Descriptor,
    base: NonNull<u8>,
    /// Length of the mapping; 0 where the target ends before the range, and nothing is mapped.
    mapped_bytes: usize,
    /// Where in the target the mapping begins: a page boundary.
    start_bytes: u64,
    /// Where it ends: the end of the range or of the target, whichever comes first.
    end_bytes: u64,
    protection: ProtFlags,
    flags: MapFlags,
    page_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Map {}

impl Map {
    fn new(descriptor: Descriptor, plan: &TargetPlan, request: &OpenRequest) -> Result<Self, Error> {
        if descriptor.kind == TargetKind::CharacterDevice {
            return Err(Error::usage("open", "engine mmap needs a file or a block device")
                .with("path", &plan.path)
                .remedy("use --engine psync for a character device"));
        }
        // A block device tells its size by its end alone.
        let size_bytes = rustix::fs::seek(&descriptor.fd, rustix::fs::SeekFrom::End(0)).map_err(|errno| {
            Error::system("open", "cannot read the size of the target", errno).with("path", &plan.path)
        })?;
        let page_bytes = rustix::param::page_size();
        let start_bytes = plan.offset_bytes - plan.offset_bytes % page_bytes as u64;
        let end_bytes = plan.offset_bytes.saturating_add(plan.size_bytes).min(size_bytes).max(start_bytes);
        let mapped_bytes = usize::try_from(end_bytes - start_bytes)
            .map_err(|_| Error::usage("open", "the range does not fit into the address space"))?;
        let protection = if request.writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = match request.options.map_sync {
            true => MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
            false => MapFlags::SHARED,
        };
        let mut map = Self {
            descriptor,
            base: NonNull::dangling(),
            mapped_bytes: 0,
            start_bytes,
            end_bytes,
            protection,
            flags,
            page_bytes,
        };
        if mapped_bytes > 0 {
            // SAFETY: the kernel picks a fresh range.
            map.base =
                unsafe { map.attach(std::ptr::null_mut(), mapped_bytes, start_bytes, MapFlags::empty()) }
                    .map_err(|errno| map_error(plan, request.options.map_sync, mapped_bytes, errno))?;
            map.mapped_bytes = mapped_bytes;
        }
        Ok(map)
    }

    /// Maps a part of the target.
    ///
    /// # Safety
    /// With `MapFlags::FIXED` the range at `address` must be part of this mapping, and nothing may point into it.
    unsafe fn attach(
        &self,
        address: *mut u8,
        length: usize,
        offset: u64,
        extra: MapFlags,
    ) -> Result<NonNull<u8>, Errno> {
        let fd = self.descriptor.fd.as_fd();
        // SAFETY: the caller's promise.
        let address =
            unsafe { mmap(address.cast(), length, self.protection, self.flags | extra, fd, offset) }?;
        NonNull::new(address.cast()).ok_or(Errno::NOMEM)
    }

    /// Address and length of what the mapping holds of a range: 0 bytes from its end on.
    #[inline]
    fn part(&self, offset: u64, length: u32) -> Option<(*mut u8, usize)> {
        let start = offset.checked_sub(self.start_bytes)?;
        let length = self.end_bytes.saturating_sub(offset).min(u64::from(length)) as usize;
        let start = start.min(self.mapped_bytes as u64) as usize;
        // SAFETY: the start is cut to the end of the mapping.
        Some((unsafe { self.base.as_ptr().add(start) }, length))
    }

    /// Copies between the mapping and a buffer; a fault of the target on the way is EIO.
    #[inline]
    fn copy(&self, memory: *mut u8, length: usize, copy: impl FnOnce()) -> i64 {
        if guard::watched(memory, length, copy) {
            return length as i64;
        }
        self.mend(memory, length);
        -i64::from(libc::EIO)
    }

    /// Puts the target back under the pages that the guard had to replace, so that the next access fails as well
    /// instead of reading zeros.
    #[cold]
    fn mend(&self, memory: *mut u8, length: usize) {
        let inside = memory as usize - self.base.as_ptr() as usize;
        let first = inside - inside % self.page_bytes;
        let end = (inside + length).next_multiple_of(self.page_bytes).min(self.mapped_bytes);
        // SAFETY: first < mapped_bytes, so the address lies in the mapping.
        let address = unsafe { self.base.as_ptr().add(first) };
        // SAFETY: pages of this mapping, and no reference into it is kept between operations.
        let mended =
            unsafe { self.attach(address, end - first, self.start_bytes + first as u64, MapFlags::FIXED) };
        debug_assert!(mended.is_ok());
    }

    /// Writes all changes of the mapping to the target. msync(2) leaves out metadata as fdatasync(2) does, so fsync(2)
    /// comes on top where it is asked for.
    fn sync(&self, call: SyncCall) -> i64 {
        if self.mapped_bytes > 0 {
            // SAFETY: the whole mapping; msync changes no memory.
            let synced = unsafe { msync(self.base.as_ptr().cast(), self.mapped_bytes, MsyncFlags::SYNC) };
            if let Err(errno) = synced {
                return completed::<u32>(Err(errno));
            }
        }
        match call {
            SyncCall::Fdatasync => 0,
            SyncCall::Fsync => descriptor::sync(self.descriptor.fd.as_fd(), call),
        }
    }

    /// Discards whole pages. The kernel rounds a length up, which would discard more than was asked for.
    fn discard(&self, offset: u64, length: u32) -> i64 {
        let page = self.page_bytes as u64;
        match self.part(offset, length) {
            Some((memory, inside))
                if inside == length as usize
                    && offset.is_multiple_of(page)
                    && u64::from(length).is_multiple_of(page) =>
            {
                // SAFETY: pages of this mapping, which no reference points into.
                completed(unsafe { madvise(memory.cast(), inside, Advice::LinuxRemove) }.map(|()| length))
            }
            _ => INVALID,
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.mapped_bytes > 0 {
            // SAFETY: the mapping is ours and nothing points into it any more.
            let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
            debug_assert!(unmapped.is_ok());
        }
    }
}

fn map_error(plan: &TargetPlan, map_sync: bool, bytes: usize, errno: Errno) -> Error {
    let (kind, remedy) = match errno {
        Errno::OPNOTSUPP if map_sync => (
            ErrorKind::Unsupported,
            "MAP_SYNC requires a file system mounted with dax on persistent memory; leave out --map-sync",
        ),
        Errno::NODEV => (ErrorKind::Unsupported, "the target cannot be mapped; use --engine psync"),
        Errno::NOMEM => (ErrorKind::System, "use a smaller size"),
        _ => (ErrorKind::System, "use --engine psync"),
    };
    Error::new(kind, "open", "cannot map the target")
        .with("path", &plan.path)
        .with("bytes", bytes)
        .with("errno", std::io::Error::from(errno))
        .remedy(remedy)
}

struct Mmap {
    maps: Vec<Map>,
    arena: Arc<Arena>,
    bounds: Bounds,
    writes: bool,
    sync_call: SyncCall,
}

impl CarryOut for Mmap {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let map = &self.maps[usize::from(operation.target)];
        let MediaOperation { slot, offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Read | MediaClass::Write => {}
            MediaClass::Sync => return map.sync(self.sync_call),
            // No page of a zoned device is written through a mapping: its zones are emulated.
            MediaClass::Nop | MediaClass::Reset | MediaClass::Finish => return 0,
            MediaClass::Discard if self.writes => return map.discard(offset, length),
            MediaClass::Discard => return -i64::from(libc::EBADF),
        }
        let Some((memory, inside)) = map.part(offset, length) else { return INVALID };
        let buffer = self.arena.slot_ptr(slot);
        if operation.class == MediaClass::Read {
            // SAFETY: inside the mapping by `part`, inside the slot by the bounds; the two are different mappings.
            return map.copy(memory, inside, || unsafe { memory.copy_to_nonoverlapping(buffer, inside) });
        }
        if !self.writes {
            return -i64::from(libc::EBADF);
        }
        // A mapping cannot make its target longer: it is full at its end, as a device is.
        if inside == 0 && length > 0 {
            return -i64::from(libc::ENOSPC);
        }
        // SAFETY: as for the copy that reads; the mapping is writable.
        map.copy(memory, inside, || unsafe { memory.copy_from_nonoverlapping(buffer, inside) })
    }
}
