//! `io_uring`: several calls in flight, as far as the kernel has them as operations of a ring; it carries most calls on names out in threads of
//! its own. Making nodes, listing, reading links, removing attributes and locking are no such operations: they are carried out when they are
//! submitted.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use driver::{
    Arena, Capabilities, Completions, Driver, Error, Opened, Operation, Registration, Submitted, Wait,
};
use io_uring::squeue::Entry;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode};
use rustix::io::Errno;

use super::OpenRequest;
use super::posix::{self, Directory, Posix, XATTR, XATTR_VALUE};
use crate::calls::{Calls, OpenMode, prepare_file};
use crate::names::{At, Names};
use crate::operation::{FsClass, FsOperation};
use crate::plan::FsPlan;

const DEPTH_MAX: u32 = 4096;
/// Room for an extended attribute that is read, in bytes.
const XATTR_BYTES: usize = 256;

const CAPABILITIES: Capabilities = Capabilities {
    classes: FsOperation::CLASSES,
    asynchronous: true,
    depth_max: DEPTH_MAX,
    targetless: false,
    direct: true,
    options: &[],
};

/// The table line.
pub(super) const REGISTRATION: Registration<FsOperation, OpenRequest> = Registration {
    name: "io_uring",
    summary: "Several calls in flight, through io_uring where the kernel supports the operation",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<FsOperation>, Error> {
    let plan = &request.plan;
    let depth = plan.load.depth;
    let ring = ring(depth).map_err(|error| {
        Error::system("io_uring", "the kernel does not allow io_uring", error).remedy(
            "use --engine posix and more --threads, or allow it (sysctl kernel.io_uring_disabled, seccomp)",
        )
    })?;
    let driver = Ring {
        ring,
        posix: Posix::default(),
        names: Names::new(plan, posix::open_roots(plan)?, false),
        handles: (0..=depth).map(|_| None).collect(),
        slots: (0..depth).map(|_| Slot::new()).collect(),
        arena: Arc::clone(&request.arena),
        in_flight: 0,
        plan: Arc::clone(plan),
    };
    Ok(Opened { driver: Box::new(driver), notes: Vec::new() })
}

/// A ring whose completions its thread fetches itself, where the kernel has that.
fn ring(depth: u32) -> std::io::Result<IoUring> {
    let entries = depth.next_power_of_two();
    let deferred = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
    deferred.or_else(|_| IoUring::new(entries))
}

/// Memory that the kernel reads and writes while the operation of a slot is in flight.
struct Slot {
    operation: Option<FsOperation>,
    name: Vec<u8>,
    second: Vec<u8>,
    stat: Box<libc::statx>,
    xattr: Box<[u8; XATTR_BYTES]>,
}

impl Slot {
    fn new() -> Self {
        // SAFETY: all fields of the structure may be zero.
        let stat = Box::new(unsafe { std::mem::zeroed() });
        let (name, second) = (Vec::with_capacity(4096), Vec::with_capacity(4096));
        Self { operation: None, name, second, stat, xattr: Box::new([0; XATTR_BYTES]) }
    }

    fn keep(&mut self, name: &CStr, second: Option<&CStr>) {
        self.name.clear();
        self.name.extend_from_slice(name.to_bytes_with_nul());
        self.second.clear();
        self.second.extend_from_slice(second.map_or(b"\0", CStr::to_bytes_with_nul));
    }
}

struct Ring {
    ring: IoUring,
    posix: Posix,
    names: Names<Directory>,
    handles: Vec<Option<OwnedFd>>,
    slots: Vec<Slot>,
    arena: Arc<Arena>,
    in_flight: usize,
    plan: Arc<FsPlan>,
}

/// An operation for the ring, or the result of one that was carried out.
enum Begun {
    Queue(Entry),
    Done(u64),
}

impl Ring {
    fn descriptor(&self, operation: &FsOperation) -> Result<Fd, Errno> {
        let handle = self.handles[operation.handle as usize].as_ref().ok_or(Errno::BADF)?;
        Ok(Fd(handle.as_raw_fd()))
    }

    fn begin(&mut self, operation: &FsOperation) -> Result<Begun, Errno> {
        use FsClass::{Close, Fadvise, Fsync, Lock, Read, Syncfs, Truncate, Unlock, Write};
        let FsOperation { class, slot, offset_bytes: offset, length_bytes: length, .. } = *operation;
        let buffer = self.arena.slot_ptr(slot);
        let entry = match class {
            Read => opcode::Read::new(self.descriptor(operation)?, buffer, length).offset(offset).build(),
            Write => opcode::Write::new(self.descriptor(operation)?, buffer, length).offset(offset).build(),
            Fsync => opcode::Fsync::new(self.descriptor(operation)?).build(),
            Fadvise => {
                let descriptor = self.descriptor(operation)?;
                opcode::Fadvise::new(descriptor, 0, libc::POSIX_FADV_WILLNEED).build()
            }
            Truncate => {
                let whole = self.plan.whole_file_bytes(operation.rank, operation.item);
                let bytes = if operation.is_second { whole } else { whole / 2 };
                opcode::Ftruncate::new(self.descriptor(operation)?, bytes).build()
            }
            Close => {
                let handle = self.handles[operation.handle as usize].take().ok_or(Errno::BADF)?;
                // The kernel closes it when it carries the operation out.
                opcode::Close::new(Fd(handle.into_raw_fd())).build()
            }
            Lock | Unlock => {
                let handle = self.handles[operation.handle as usize].as_ref().ok_or(Errno::BADF)?;
                return self.posix.lock(handle, class == Lock).map(|()| Begun::Done(0));
            }
            Syncfs => {
                let root = At::Root(self.names.locate_below_root(operation));
                return self.posix.sync_all(self.names.directory(root)?).map(|()| Begun::Done(0));
            }
            _ => return self.begin_on_name(operation),
        };
        Ok(Begun::Queue(entry))
    }

    fn begin_on_name(&mut self, operation: &FsOperation) -> Result<Begun, Errno> {
        use FsClass::{Getxattr, Mknod, Readdir, Readlink, Removexattr, Setxattr};
        if matches!(operation.class, Setxattr | Getxattr | Removexattr) {
            return self.begin_on_attribute(operation);
        }
        let posix = &self.posix;
        let at = self.names.locate(operation, &|at, path| posix.open_directory(at, path))?;
        let directory = self.names.directory(at)?;
        let (name, second) = (self.names.name()?, self.names.second()?);
        match operation.class {
            Mknod => return posix.make_node(directory, name).map(|()| Begun::Done(0)),
            Readdir => return posix.list(directory, name).map(Begun::Done),
            Readlink => return posix.read_link(directory, second).map(|()| Begun::Done(0)),
            _ => {}
        }
        let slot = &mut self.slots[operation.slot as usize];
        match operation.class {
            FsClass::Symlink => slot.keep(self.names.last_part()?, Some(second)),
            _ => slot.keep(name, Some(second)),
        }
        let mode = OpenMode::of(&self.plan, operation);
        Ok(Begun::Queue(entry_on_name(slot, operation, mode, directory.descriptor())?))
    }

    fn begin_on_attribute(&mut self, operation: &FsOperation) -> Result<Begun, Errno> {
        let root = At::Root(self.names.locate_below_root(operation));
        let (root, path) = (self.names.directory(root)?, self.names.name()?);
        if operation.class == FsClass::Removexattr {
            return self.posix.remove_xattr(root, path).map(|()| Begun::Done(0));
        }
        let whole = Posix::whole(root, path)?;
        let slot = &mut self.slots[operation.slot as usize];
        slot.keep(&whole, None);
        let (path, name) = (slot.name.as_ptr().cast(), XATTR.as_ptr());
        let entry = if operation.class == FsClass::Setxattr {
            let (value, length) = (XATTR_VALUE.as_ptr().cast(), XATTR_VALUE.len() as u32);
            opcode::SetXattr::new(name, value, path, length).build()
        } else {
            opcode::GetXattr::new(name, slot.xattr.as_mut_ptr().cast(), path, XATTR_BYTES as u32).build()
        };
        Ok(Begun::Queue(entry))
    }

    /// Whether what an operation removes may be gone already.
    fn may_miss(&self, operation: &FsOperation) -> bool {
        self.plan.ignore_missing && matches!(operation.class, FsClass::Unlink | FsClass::Rmdir)
    }

    /// Takes over the completion of a slot.
    fn end(&mut self, slot: u32, result: i32) -> i64 {
        let Some(operation) = self.slots[slot as usize].operation.take() else { return i64::from(result) };
        if result == -libc::ENOENT && self.may_miss(&operation) {
            return 0;
        }
        if result < 0 || !matches!(operation.class, FsClass::Open | FsClass::Create) {
            let moves = matches!(operation.class, FsClass::Read | FsClass::Write);
            return if result < 0 || moves { i64::from(result) } else { 0 };
        }
        // SAFETY: the kernel has just opened this descriptor for the operation; nobody else knows it.
        let file = unsafe { OwnedFd::from_raw_fd(result as RawFd) };
        if operation.class == FsClass::Create
            && let Err(errno) = prepare_file(&self.posix, &self.plan, &file, &operation)
        {
            return -i64::from(errno.raw_os_error());
        }
        self.handles[operation.handle as usize] = Some(file);
        0
    }

    fn collect(&mut self, done: &mut Completions) {
        while done.room() > 0 {
            let Some(entry) = self.ring.completion().next() else { break };
            let slot = entry.user_data() as u32;
            self.in_flight -= 1;
            let result = self.end(slot, entry.result());
            done.push(slot, result);
        }
    }

    /// Enters the kernel: hands over what was queued, and waits for `count` completions, until `timeout_ns` at the longest.
    fn enter(&mut self, count: usize, timeout_ns: Option<u64>) -> Result<(), Error> {
        let entered = match timeout_ns {
            // Without an event to wait for, completions are fetched all the same.
            None if count == 0 => {
                let queued = self.ring.submission().len() as u32;
                // SAFETY: no argument is passed, and the entries were queued with what they need.
                unsafe { self.ring.submitter().enter::<()>(queued, 0, EnterFlags::GETEVENTS.bits(), None) }
            }
            None => self.ring.submit_and_wait(count),
            Some(timeout_ns) => {
                let seconds = timeout_ns / 1_000_000_000;
                let timespec = Timespec::new().sec(seconds).nsec((timeout_ns % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(count, &SubmitArgs::new().timespec(&timespec))
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(Error::system("io_uring", "the ring failed", error)),
        }
    }
}

/// The entry of an operation whose names its slot keeps, relative to `at`.
fn entry_on_name(
    slot: &mut Slot,
    operation: &FsOperation,
    mode: OpenMode,
    at: RawFd,
) -> Result<Entry, Errno> {
    use FsClass::{Create, Link, Mkdir, Open, Rename, Rmdir, Stat, Symlink, Unlink};
    let at = Fd(at);
    let (name, second) = (slot.name.as_ptr().cast(), slot.second.as_ptr().cast());
    let own = if operation.is_second { second } else { name };
    Ok(match operation.class {
        Open | Create => {
            let flags = posix::open_flags(mode).bits() as i32;
            opcode::OpenAt::new(at, name).flags(flags).mode(posix::FILE_MODE.bits()).build()
        }
        Stat => {
            let flags = libc::AT_SYMLINK_NOFOLLOW;
            let into = (&raw mut *slot.stat).cast();
            opcode::Statx::new(at, own, into).flags(flags).mask(libc::STATX_BASIC_STATS).build()
        }
        Mkdir => opcode::MkDirAt::new(at, own).mode(posix::DIRECTORY_MODE.bits()).build(),
        Rmdir => opcode::UnlinkAt::new(at, own).flags(libc::AT_REMOVEDIR).build(),
        Unlink => opcode::UnlinkAt::new(at, own).build(),
        Rename if operation.is_second => opcode::RenameAt::new(at, name, at, second).build(),
        Rename => opcode::RenameAt::new(at, second, at, name).build(),
        Link => opcode::LinkAt::new(at, name, at, second).build(),
        Symlink => opcode::SymlinkAt::new(at, name, second).build(),
        _ => return Err(Errno::NOSYS),
    })
}

impl Driver<FsOperation> for Ring {
    fn submit(&mut self, batch: &[FsOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let mut accepted = 0;
        for operation in batch {
            let slot = operation.slot;
            match self.begin(operation) {
                Ok(Begun::Queue(entry)) => {
                    let entry = entry.user_data(u64::from(slot));
                    // SAFETY: buffer, names and structures belong to the slot and live until its completion; the descriptor is open until then.
                    if unsafe { self.ring.submission().push(&entry) }.is_err() {
                        break;
                    }
                    self.slots[slot as usize].operation = Some(*operation);
                    self.in_flight += 1;
                }
                Ok(Begun::Done(count)) => done.push(slot, count as i64),
                Err(Errno::NOENT) if self.may_miss(operation) => done.push(slot, 0),
                Err(errno) => done.push(slot, -i64::from(errno.raw_os_error())),
            }
            accepted += 1;
        }
        Ok(Submitted { accepted })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let (count, timeout_ns) = match wait {
            Wait::None => (0, None),
            Wait::AtLeast(count) => (count as usize, None),
            Wait::Timeout { count, timeout_ns } => (count as usize, Some(timeout_ns)),
        };
        let wanted = count.min(self.in_flight);
        if self.in_flight > 0 {
            self.enter(wanted, timeout_ns.filter(|_| wanted > 0))?;
        }
        self.collect(done);
        Ok(())
    }
}

impl Drop for Ring {
    /// The kernel writes into memory of the slots as long as anything is in flight.
    fn drop(&mut self) {
        let mut rest = Completions::with_depth(DEPTH_MAX);
        while self.in_flight > 0 && self.enter(1, None).is_ok() {
            rest.clear();
            self.collect(&mut rest);
        }
    }
}
