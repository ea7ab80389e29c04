//! Opening targets, and what the drivers on file descriptors share.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use crate::engine::{Advice, SyncCall, SyncMode};
use driver::{Arena, Capabilities, Error, ErrorKind};
use host::block::{BlockDevice, DeviceNumber};
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use units::path_of;
use workload::target::{TargetKind, TargetPlan};

use crate::{MediaClass, MediaOperation, OpenRequest, zoned};

/// Completion of a class that the driver or its target does not carry out.
pub(crate) const UNSUPPORTED: i64 = -(libc::EOPNOTSUPP as i64);
/// Completion of an operation that names no slot, no target, or more bytes than its buffer holds.
pub(crate) const INVALID: i64 = -(libc::EINVAL as i64);

/// A target, open.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// The open file.
    pub(crate) fd: OwnedFd,
    /// Kind of the target.
    pub(crate) kind: TargetKind,
    /// Length of its zones, of a zoned block device that is written; 0 of all else.
    pub(crate) zone_bytes: u64,
}

/// Bounds that an operation must keep to, so that no buffer is overrun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    slots: u32,
    slot_bytes: usize,
    targets: usize,
}

impl Bounds {
    /// The bounds of a request.
    pub(crate) fn new(request: &OpenRequest) -> Self {
        Self {
            slots: request.arena.slots(),
            slot_bytes: request.arena.slot_bytes(),
            targets: request.targets.len(),
        }
    }

    /// Bounds that allow nothing.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { slots: 0, slot_bytes: 0, targets: 0 }
    }

    /// Whether the operation stays inside its buffer and names a target. The length of a discard is not a buffer's.
    #[inline]
    pub(crate) fn allow(&self, operation: &MediaOperation) -> bool {
        operation.slot < self.slots
            && usize::from(operation.target) < self.targets
            && (operation.length as usize <= self.slot_bytes || operation.class == MediaClass::Discard)
    }
}

/// Checks a request against what the driver `engine` can do.
///
/// # Errors
/// Bad usage: depth, direct I/O, or a buffer too few.
pub(crate) fn check(
    request: &OpenRequest,
    engine: &'static str,
    capabilities: &Capabilities,
) -> Result<(), Error> {
    let usage = |message: String| Error::usage("open", message).with("engine", engine);
    if request.depth == 0 || request.depth > capabilities.depth_max {
        let accepted = match capabilities.depth_max {
            1 => "it is synchronous: use queue depth 1 and more threads".to_owned(),
            most => format!("use 1 to {most}"),
        };
        return Err(usage(format!("queue depth {} is not possible", request.depth)).remedy(accepted));
    }
    if request.arena.slots() < request.depth {
        return Err(usage(format!("{} buffers for queue depth {}", request.arena.slots(), request.depth)));
    }
    if request.targets.is_empty() {
        return Err(usage("no target was given".to_owned()));
    }
    if request.options.direct && !capabilities.direct {
        return Err(usage("this engine does not use direct I/O".to_owned()).remedy("leave out --direct"));
    }
    Ok(())
}

/// The paths of the request's targets, for system calls that take names.
///
/// # Errors
/// When a path contains a zero byte.
pub(crate) fn paths_of(request: &OpenRequest, engine: &'static str) -> Result<Vec<CString>, Error> {
    let paths = request
        .targets
        .iter()
        .map(|target| CString::new(target.place().as_os_str().as_bytes()))
        .collect::<Result<_, _>>();
    paths.map_err(|_| Error::usage("open", "a path contains a zero byte").with("engine", engine))
}

/// Opens every target of the request.
///
/// # Errors
/// Bad usage for a target that is no file or device; else what the system said, with the remedy.
pub(crate) fn open_all(request: &OpenRequest, engine: &'static str) -> Result<Vec<Descriptor>, Error> {
    request.targets.iter().map(|target| open(target, request, engine)).collect()
}

fn open(target: &TargetPlan, request: &OpenRequest, engine: &'static str) -> Result<Descriptor, Error> {
    if matches!(target.kind, TargetKind::Null | TargetKind::Memory) {
        let name = if target.kind == TargetKind::Null { "null" } else { "mem" };
        return Err(Error::usage("open", format!("engine {engine} needs a file or a device"))
            .with("target", &target.path)
            .remedy(format!("use --engine {name} for this target")));
    }
    let direct = request.options.direct;
    let fd = rustix::fs::open(&*target.place(), open_flags(request), Mode::empty())
        .map_err(|errno| open_error(&target.path, direct, request.writes, errno))?;
    let kind = rustix::fs::fstat(&fd).map(|stat| FileType::from_raw_mode(stat.st_mode)).map_err(|errno| {
        Error::system("open", "cannot determine the type of the target", errno).with("path", &target.path)
    })?;
    let kind = match kind {
        FileType::RegularFile => TargetKind::File,
        FileType::BlockDevice => TargetKind::BlockDevice,
        FileType::CharacterDevice => TargetKind::CharacterDevice,
        // Reading alone, the kernel lets a directory be opened and fails at the first read.
        FileType::Directory => {
            return Err(open_error(&target.path, direct, request.writes, Errno::ISDIR));
        }
        _ => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "open",
                "the target is neither a file nor a device",
            )
            .with("path", &target.path));
        }
    };
    if request.writes && kind == TargetKind::BlockDevice && is_read_only(&target.path) {
        return Err(open_error(&target.path, direct, true, Errno::ROFS));
    }
    advise(&fd, kind, request.options.advice).map_err(|errno| {
        Error::system("open", "cannot set the access advice (posix_fadvise)", errno)
            .with("path", &target.path)
    })?;
    let zone_bytes = match kind {
        TargetKind::BlockDevice if request.writes => zoned::zone_bytes(&target.place()).unwrap_or(0),
        _ => 0,
    };
    Ok(Descriptor { fd, kind, zone_bytes })
}

/// Tells the kernel the order of access to all of a file or device.
fn advise(fd: &OwnedFd, kind: TargetKind, advice: Advice) -> Result<(), Errno> {
    let advice = match advice {
        Advice::None => return Ok(()),
        Advice::Sequential => rustix::fs::Advice::Sequential,
        Advice::Random => rustix::fs::Advice::Random,
        Advice::NoReuse => rustix::fs::Advice::NoReuse,
    };
    if kind == TargetKind::CharacterDevice {
        return Ok(());
    }
    rustix::fs::fadvise(fd, 0, None, advice)
}

/// Whether the kernel keeps this block device read-only: it may be opened for writing all the same, and every write fails.
fn is_read_only(path: &str) -> bool {
    let number = DeviceNumber::of_block_file(&path_of(path));
    number.and_then(BlockDevice::read).and_then(|device| device.read_only).unwrap_or(false)
}

fn open_flags(request: &OpenRequest) -> OFlags {
    // A terminal must not become the controlling one.
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= if request.writes { OFlags::RDWR } else { OFlags::RDONLY };
    if request.options.direct {
        flags |= OFlags::DIRECT;
    }
    flags
        | match request.options.sync {
            SyncMode::None => OFlags::empty(),
            SyncMode::Dsync => OFlags::DSYNC,
            SyncMode::Sync => OFlags::SYNC,
        }
}

/// The error of a refused open, with what can be done about it.
fn open_error(path: &str, direct: bool, writes: bool, errno: Errno) -> Error {
    let remedy = match errno {
        Errno::NOENT => "the path does not exist; check it, or give --size to create the file",
        Errno::ACCESS | Errno::PERM if writes => "no permission to read and write it; check owner and mode",
        Errno::ACCESS | Errno::PERM => "no permission to read it; check owner and mode",
        Errno::ROFS => "it is read-only; choose another target, or read only",
        Errno::INVAL if direct => "its file system does not support direct I/O; leave out --direct",
        Errno::ISDIR => "it is a directory; name a file in it",
        Errno::TXTBSY => "it is a running program; choose another target",
        Errno::BUSY => "it is in use by the system; choose another target",
        Errno::NXIO | Errno::NODEV => "the device of this path does not exist",
        Errno::NOMEDIUM => "the device has no medium",
        Errno::MFILE | Errno::NFILE => "too many open files; raise ulimit -n or use fewer targets or threads",
        _ => "check the path",
    };
    Error::system("open", "cannot open the target", errno).with("path", path).remedy(remedy)
}

/// Result of a system call as a completion tells it.
#[inline]
pub(crate) fn completed<T: TryInto<i64>>(result: Result<T, Errno>) -> i64 {
    match result {
        Ok(value) => value.try_into().unwrap_or(i64::MAX),
        Err(errno) => -i64::from(errno.raw_os_error()),
    }
}

/// Outcome of a write of `length` bytes. One that ends early does not say why: `again` tries the rest, from so many bytes on, and an error of the
/// storage is that of the write. Where the rest can be written the write is short all the same.
#[inline]
pub(crate) fn written(first: i64, length: u32, again: impl FnOnce(usize) -> Result<usize, Errno>) -> i64 {
    if first <= 0 || first >= i64::from(length) {
        return first;
    }
    match again(first as usize) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
            -i64::from(errno.raw_os_error())
        }
        _ => first,
    }
}

/// Makes what was written to `fd` durable.
pub(crate) fn sync(fd: BorrowedFd<'_>, call: SyncCall) -> i64 {
    let synced = rustix::io::retry_on_intr(|| match call {
        SyncCall::Fdatasync => rustix::fs::fdatasync(fd),
        SyncCall::Fsync => rustix::fs::fsync(fd),
    });
    completed(synced.map(|()| 0))
}

/// Discards a range; the completion is its length.
pub(crate) fn discard(descriptor: &Descriptor, offset: u64, length: u32) -> i64 {
    let fd = descriptor.fd.as_fd();
    let discarded = rustix::io::retry_on_intr(|| match descriptor.kind {
        TargetKind::BlockDevice if descriptor.zone_bytes > 0 => zoned::reset(fd, offset, u64::from(length)),
        TargetKind::BlockDevice => discard_blocks(fd, offset, length),
        _ => rustix::fs::fallocate(
            fd,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            offset,
            u64::from(length),
        ),
    });
    completed(discarded.map(|()| length))
}

/// Resets or finishes the zone that the operation names; nothing is to be done where zones are emulated.
#[cold]
pub(crate) fn change_zone(descriptor: &Descriptor, operation: &MediaOperation) -> i64 {
    let (fd, bytes) = (descriptor.fd.as_fd(), descriptor.zone_bytes);
    if bytes == 0 {
        return 0;
    }
    let changed = rustix::io::retry_on_intr(|| match operation.class {
        MediaClass::Finish => zoned::finish(fd, operation.offset, bytes),
        _ => zoned::reset(fd, operation.offset, bytes),
    });
    completed(changed.map(|()| 0))
}

fn discard_blocks(fd: BorrowedFd<'_>, offset: u64, length: u32) -> Result<(), Errno> {
    /// `_IO(0x12, 119)`.
    const BLKDISCARD: rustix::ioctl::Opcode = 0x1277;
    // SAFETY: BLKDISCARD reads two u64, start and length, from its argument.
    unsafe {
        let range = rustix::ioctl::Setter::<BLKDISCARD, [u64; 2]>::new([offset, u64::from(length)]);
        rustix::ioctl::ioctl(fd, range)
    }
}

/// A buffer for a read that tries a target out before the run; the buffers of the run may be filled already.
///
/// # Errors
/// When the memory cannot be had.
pub(crate) fn probe_buffer(target: &TargetPlan) -> Result<Arena, Error> {
    let bytes = usize::try_from(target.direct_alignment_bytes).unwrap_or(4096);
    Arena::new(1, bytes, driver::PageSize::Base)
}

/// Whether reading the target for a try does no harm: a read from a character device may take something away.
pub(crate) fn may_probe(kind: TargetKind) -> bool {
    kind.is_local_storage()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_open_says_what_to_do() {
        let text = |direct, writes, errno| open_error("/x", direct, writes, errno).to_string();
        assert!(text(true, false, Errno::INVAL).ends_with("leave out --direct"));
        assert!(!text(false, false, Errno::INVAL).contains("--direct"));
        assert!(text(false, true, Errno::ROFS).contains("read-only"));
        assert!(text(false, true, Errno::ACCESS).contains("no permission to read and write it"));
        assert!(text(false, false, Errno::ACCESS).contains("; no permission to read it"));
        assert!(text(false, true, Errno::TXTBSY).contains("a running program"));
        assert!(text(false, true, Errno::ISDIR).contains("a directory"));
        assert_eq!(open_error("/x", false, false, Errno::NOENT).errno(), Some(libc::ENOENT));
    }

    #[test]
    fn results_become_completions() {
        assert_eq!(completed(Ok(4096_usize)), 4096);
        assert_eq!(completed::<usize>(Err(Errno::NOSPC)), -28);
    }
}
