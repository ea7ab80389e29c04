//! `libaio`: the kernel's asynchronous I/O by its system calls, without the C library.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::engine::SyncCall;
use driver::{
    Arena, Capabilities, Clock, Completions, Driver, Error, HostClock, Opened, Registration, Span, Submitted,
    Wait,
};
use rustix::event::{EventfdFlags, eventfd};

use crate::descriptor::{self, Bounds, Descriptor, INVALID, UNSUPPORTED};
use crate::shaping::Priorities;
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "libaio";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["read", "write", "discard", "sync", "reset", "finish"],
    asynchronous: true,
    depth_max: 32_768,
    targetless: false,
    direct: true,
    options: &["advise", "operation-priority", "sync", "memory", "gpu-path", "gpu-staging", "gpu-per"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "io_submit and io_getevents, in batches; asynchronous only with --direct; discards are synchronous",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let targets = descriptor::open_all(request, NAME)?;
    let depth = request.depth as usize;
    let context = Context::setup(request.depth)?;
    let blocks = (0..request.arena.slots()).map(block).collect();
    let driver = Libaio {
        context,
        targets,
        bounds: Bounds::new(request),
        depth,
        in_flight: 0,
        blocks,
        batch: Vec::with_capacity(depth),
        events: vec![Event::default(); depth],
        sync_opcode: match request.options.sync_call {
            SyncCall::Fdatasync => IOCB_CMD_FDSYNC,
            SyncCall::Fsync => IOCB_CMD_FSYNC,
        },
        priorities: Priorities::new(&request.options.operation_priorities),
        event: None,
        flags: 0,
        arena: Arc::clone(&request.arena),
    };
    let mut notes = Vec::new();
    if !request.options.direct {
        notes.push(
            "libaio without direct I/O completes operations inside io_submit: it is not asynchronous"
                .to_owned(),
        );
    }
    Ok(Opened { driver: Box::new(driver), notes })
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// Head of the completion ring that the kernel maps at the address that is the context's handle (`struct aio_ring`).
#[repr(C)]
struct Ring {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible_features: u32,
    incompatible_features: u32,
    header_bytes: u32,
}

const RING_MAGIC: u32 = 0xa10a_10a1;
/// `aio_resfd` is an eventfd that counts the completion.
const IOCB_FLAG_RESFD: u32 = 1;
/// `aio_reqprio` holds a priority (Linux 4.18).
const IOCB_FLAG_IOPRIO: u32 = 1 << 1;
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;

/// An asynchronous I/O context. Dropping it waits for what is in flight.
struct Context {
    handle: usize,
    /// Whether the ring at `handle` has the layout that is known here.
    readable: bool,
}

impl Context {
    fn setup(depth: u32) -> Result<Self, Error> {
        let mut handle = 0_usize;
        // SAFETY: io_setup writes one handle.
        check(unsafe { sc::syscall2(libc::SYS_io_setup as usize, depth as usize, &raw mut handle as usize) })
            .map_err(|errno| setup_error(depth, errno))?;
        // SAFETY: the handle is the address of the ring, mapped until io_destroy.
        let ring = unsafe { &*(handle as *const Ring) };
        let readable = ring.magic == RING_MAGIC
            && ring.incompatible_features == 0
            && ring.header_bytes as usize == size_of::<Ring>()
            && ring.entries > 0;
        Ok(Self { handle, readable })
    }

    /// Takes completions straight from the ring. The kernel moves the tail, the one thread of this driver the head.
    #[inline]
    fn take(&self, done: &mut Completions) -> usize {
        // SAFETY: as in `setup`.
        let ring = unsafe { &*(self.handle as *const Ring) };
        let tail = ring.tail.load(Ordering::Acquire);
        let mut head = ring.head.load(Ordering::Relaxed);
        let mut taken = 0;
        let room = done.room();
        while head != tail && taken < room {
            // SAFETY: the events follow the header; head < entries is kept by the kernel and by the line below.
            let event = unsafe { *((self.handle + size_of::<Ring>()) as *const Event).add(head as usize) };
            done.push(event.data as u32, event.result);
            head += 1;
            if head == ring.entries {
                head = 0;
            }
            taken += 1;
        }
        if taken > 0 {
            ring.head.store(head, Ordering::Release);
        }
        taken
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and used no more.
        unsafe { sc::syscall1(libc::SYS_io_destroy as usize, self.handle) };
    }
}

fn setup_error(depth: u32, errno: i32) -> Error {
    let error = Error::system("open", "cannot set up libaio", std::io::Error::from_raw_os_error(errno))
        .with("depth", depth);
    match errno {
        libc::EAGAIN => error.remedy(
            "the system limit on asynchronous I/O is reached; raise /proc/sys/fs/aio-max-nr, or use fewer threads or a smaller depth",
        ),
        libc::ENOSYS => error.remedy("this kernel does not support asynchronous I/O; use --engine io_uring or psync"),
        libc::ENOMEM => error.remedy("use a smaller queue depth"),
        _ => error.remedy("use --engine psync"),
    }
}

/// The result of a raw system call.
#[inline]
fn check(result: usize) -> Result<usize, i32> {
    match result as isize {
        error @ -4095..=-1 => Err(-error as i32),
        _ => Ok(result),
    }
}

/// The control block of a slot, as far as it stays the same.
fn block(slot: u32) -> libc::iocb {
    // SAFETY: all-zero is a valid iocb.
    let mut block: libc::iocb = unsafe { std::mem::zeroed() };
    block.aio_data = u64::from(slot);
    block
}

struct Libaio {
    // Dropped first: it waits for what is in flight, which uses the descriptors and the arena.
    context: Context,
    targets: Vec<Descriptor>,
    bounds: Bounds,
    depth: usize,
    in_flight: usize,
    blocks: Vec<libc::iocb>,
    batch: Vec<*mut libc::iocb>,
    events: Vec<Event>,
    sync_opcode: u16,
    priorities: Option<Box<Priorities>>,
    /// Counts completions, once it was asked for; what every control block says of it.
    event: Option<OwnedFd>,
    flags: u32,
    arena: Arc<Arena>,
}

// SAFETY: the pointers of `batch` are to `blocks`, whose memory moves with the value, and every submit makes them anew.
unsafe impl Send for Libaio {}

impl Libaio {
    /// Fills the control block of an operation; refuses with a completion.
    #[inline]
    fn prepare(&mut self, operation: &MediaOperation) -> Result<*mut libc::iocb, i64> {
        if !self.bounds.allow(operation) {
            return Err(INVALID);
        }
        let opcode = match operation.class {
            MediaClass::Read => IOCB_CMD_PREAD,
            MediaClass::Write => IOCB_CMD_PWRITE,
            MediaClass::Sync => self.sync_opcode,
            _ => return Err(UNSUPPORTED),
        };
        let block = &mut self.blocks[operation.slot as usize];
        block.aio_lio_opcode = opcode;
        if let Some(priorities) = &self.priorities {
            let priority = priorities.draw(operation);
            block.aio_reqprio = priority as i16;
            block.aio_flags = self.flags | if priority == 0 { 0 } else { IOCB_FLAG_IOPRIO };
        }
        block.aio_fildes = self.targets[usize::from(operation.target)].fd.as_raw_fd() as u32;
        (block.aio_buf, block.aio_nbytes, block.aio_offset) = match operation.class {
            // The kernel refuses a sync that names a buffer.
            MediaClass::Sync => (0, 0, 0),
            _ => (
                self.arena.slot_ptr(operation.slot) as u64,
                u64::from(operation.length),
                operation.offset as i64,
            ),
        };
        Ok(block)
    }

    /// Carries a discard or the change of a zone out, with a time of its own.
    fn discard(&self, operation: &MediaOperation, done: &mut Completions) {
        let began_ns = HostClock::get().now_ns();
        let target = &self.targets[usize::from(operation.target)];
        let result = match operation.class {
            MediaClass::Discard => descriptor::discard(target, operation.offset, operation.length),
            _ => descriptor::change_zone(target, operation),
        };
        done.push_timed(operation.slot, result, Span { began_ns, ended_ns: HostClock::get().now_ns() });
    }

    /// Hands the prepared control blocks over. Returns how many of them were taken or failed at once.
    fn hand_over(&mut self, done: &mut Completions) -> usize {
        let mut taken = 0;
        while taken < self.batch.len() {
            let rest = &self.batch[taken..];
            // SAFETY: the blocks stay in place, and their buffers belong to the driver until completion.
            let result = check(unsafe {
                sc::syscall3(
                    libc::SYS_io_submit as usize,
                    self.context.handle,
                    rest.len(),
                    rest.as_ptr() as usize,
                )
            });
            match result {
                Ok(submitted) if submitted > 0 => {
                    taken += submitted;
                    self.in_flight += submitted;
                }
                Err(libc::EINTR) => {}
                // No room now: busy, as long as there is a completion that makes room.
                Ok(_) | Err(libc::EAGAIN) if self.in_flight > 0 => return taken,
                refused => {
                    // SAFETY: a block of `blocks`.
                    let block = unsafe { &*self.batch[taken] };
                    done.push(block.aio_data as u32, refusal(block.aio_lio_opcode, refused.err()));
                    taken += 1;
                }
            }
        }
        taken
    }

    /// `io_getevents` for at least `least` completions. Returns how many came.
    fn wait(
        &mut self,
        least: usize,
        timeout: Option<&libc::timespec>,
        done: &mut Completions,
    ) -> Result<usize, Error> {
        let timeout = timeout.map_or(std::ptr::null(), std::ptr::from_ref);
        let most = self.events.len().min(done.room()).max(least);
        // SAFETY: room for `events.len()` events; the timeout lives through the call.
        let result = check(unsafe {
            sc::syscall5(
                libc::SYS_io_getevents as usize,
                self.context.handle,
                least,
                most,
                self.events.as_mut_ptr() as usize,
                timeout as usize,
            )
        });
        match result {
            Ok(count) => {
                for event in &self.events[..count] {
                    done.push(event.data as u32, event.result);
                }
                self.in_flight -= count;
                Ok(count)
            }
            Err(libc::EINTR) => Ok(0),
            Err(errno) => {
                let source = std::io::Error::from_raw_os_error(errno);
                Err(Error::system("reap", "io_getevents failed", source).with("in_flight", self.in_flight))
            }
        }
    }
}

/// The completion of an operation that io_submit refused.
fn refusal(opcode: u16, errno: Option<i32>) -> i64 {
    match errno {
        // What a target without this operation says.
        Some(libc::EINVAL) if matches!(opcode, IOCB_CMD_FSYNC | IOCB_CMD_FDSYNC) => UNSUPPORTED,
        Some(errno) => -i64::from(errno),
        None => -i64::from(libc::EAGAIN),
    }
}

impl Driver<MediaOperation> for Libaio {
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let offered = &batch[..batch.len().min(self.depth - self.in_flight)];
        let mut accepted = 0;
        while accepted < offered.len() {
            self.batch.clear();
            let mut refused = None;
            let mut discard = None;
            for operation in &offered[accepted..] {
                // The kernel has no asynchronous one: it is carried out here, after what came before it was handed over.
                let is_whole =
                    matches!(operation.class, MediaClass::Discard | MediaClass::Reset | MediaClass::Finish);
                if is_whole && self.bounds.allow(operation) {
                    discard = Some(operation);
                    break;
                }
                match self.prepare(operation) {
                    Ok(block) => self.batch.push(block),
                    Err(result) => {
                        refused = Some((operation.slot, result));
                        break;
                    }
                }
            }
            let taken = self.hand_over(done);
            accepted += taken;
            if taken < self.batch.len() {
                break;
            }
            if let Some((slot, result)) = refused {
                done.push(slot, result);
                accepted += 1;
            }
            if let Some(operation) = discard {
                self.discard(operation, done);
                accepted += 1;
            }
        }
        Ok(Submitted { accepted })
    }

    fn event(&mut self) -> Result<Option<BorrowedFd<'_>>, Error> {
        if self.event.is_none() {
            let made = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
                .map_err(|error| Error::system("event", "eventfd failed", error))?;
            self.flags = IOCB_FLAG_RESFD;
            for block in &mut self.blocks {
                block.aio_flags = IOCB_FLAG_RESFD;
                block.aio_resfd = made.as_raw_fd() as u32;
            }
            self.event = Some(made);
        }
        Ok(self.event.as_ref().map(|event| event.as_fd()))
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        if let Some(event) = &self.event {
            // Read before completions are taken: one that comes later makes it readable again.
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
        let (count, timeout_ns) = match wait {
            Wait::None => (0, Some(0)),
            Wait::AtLeast(count) => (count, None),
            Wait::Timeout { count, timeout_ns } => (count, Some(timeout_ns)),
        };
        let mut missing = self.in_flight.min(count as usize);
        if self.in_flight == 0 {
            return Ok(());
        }
        if self.context.readable {
            let taken = self.context.take(done);
            self.in_flight -= taken;
            missing = missing.saturating_sub(taken);
            if missing == 0 {
                return Ok(());
            }
        }
        let timeout = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        // Fewer than asked for: the time is up, or a signal came.
        self.wait(missing, timeout.as_ref(), done).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_up_system_names_the_limit() {
        let error = setup_error(32, libc::EAGAIN);
        assert_eq!(error.errno(), Some(libc::EAGAIN));
        assert!(error.to_string().contains("/proc/sys/fs/aio-max-nr"), "{error}");
    }

    #[test]
    fn the_kernels_ring_is_read_without_system_calls() {
        assert!(Context::setup(4).expect("asynchronous I/O").readable);
    }

    #[test]
    fn waiting_ends_with_the_time() {
        let arena = Arc::new(Arena::new(1, 4096, driver::PageSize::Base).expect("memory"));
        let mut driver = Libaio {
            context: Context::setup(1).expect("asynchronous I/O"),
            targets: Vec::new(),
            bounds: Bounds::none(),
            depth: 1,
            in_flight: 0,
            blocks: Vec::new(),
            batch: Vec::new(),
            events: vec![Event::default()],
            sync_opcode: IOCB_CMD_FDSYNC,
            priorities: None,
            event: None,
            flags: 0,
            arena,
        };
        let mut done = Completions::with_depth(1);
        let span = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let begin = std::time::Instant::now();
        assert_eq!(driver.wait(1, Some(&span), &mut done).expect("the time is up"), 0);
        assert!(begin.elapsed().as_nanos() >= 1_000_000);
    }

    #[test]
    fn a_sync_that_the_target_lacks_is_unsupported() {
        assert_eq!(refusal(IOCB_CMD_FDSYNC, Some(libc::EINVAL)), UNSUPPORTED);
        assert_eq!(refusal(IOCB_CMD_FSYNC, Some(libc::EINVAL)), UNSUPPORTED);
        assert_eq!(refusal(IOCB_CMD_PREAD, Some(libc::EBADF)), -9);
        assert_eq!(refusal(IOCB_CMD_PREAD, None), -11);
    }
}
