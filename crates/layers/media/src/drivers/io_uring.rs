//! `io_uring`: submissions and completions through rings that are shared with the kernel, one system call a batch.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use crate::engine::SyncCall;
use driver::{
    Arena, Capabilities, Clock, Completions, Driver, Error, HostClock, Opened, Operation, Registration, Span,
    Submitted, Wait,
};
use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode};
use workload::target::TargetKind;

use crate::descriptor::{self, Bounds, Descriptor, INVALID, UNSUPPORTED};
use crate::shaping::Priorities;
use crate::{MediaClass, MediaOperation, OpenRequest};

mod setup;

const NAME: &str = "io_uring";

const CAPABILITIES: Capabilities = Capabilities {
    classes: MediaOperation::CLASSES,
    asynchronous: true,
    depth_max: 32_768,
    targetless: false,
    direct: true,
    options: setup::OPTIONS,
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "rings shared with the kernel, one system call per batch",
    capabilities: CAPABILITIES,
    open,
};

/// In place of an entry: the kernel has no asynchronous call for it.
const CHANGES_ZONE: i64 = i64::MIN;
/// Looks into the completion ring before a worker of a polled submission queue goes to sleep: some tens of microseconds.
const SPINS: u32 = 5_000;

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    setup::check_options(&request.options)?;
    let descriptors = descriptor::open_all(request, NAME)?;
    let mut notes = Vec::new();
    let mut ring = setup::build(request, &mut notes)?;
    if request.options.iopoll {
        setup::probe_polling(&mut ring, &descriptors, request)?;
    }
    let fixed_files = setup::register_files(&ring, &descriptors, request.options.register_files, &mut notes)?;
    let fixed_buffers = setup::register_buffers(&ring, request, &mut notes)?;
    let handle = setup::Handle::register(&ring);
    let targets = descriptors
        .into_iter()
        .enumerate()
        .map(|(index, descriptor)| Target {
            number: if fixed_files { index as i32 } else { descriptor.fd.as_raw_fd() },
            descriptor,
        })
        .collect();
    let encoder = Encoder {
        targets,
        arena: Arc::clone(&request.arena),
        bounds: Bounds::new(request),
        fixed_files,
        fixed_buffers,
        polled: request.options.iopoll,
        priorities: Priorities::new(&request.options.operation_priorities),
        force_async: request.options.force_async.unwrap_or(0),
        until_async: Cell::new(0),
        sync_flags: sync_flags(request.options.sync_call),
    };
    let driver = Uring {
        sqpoll: ring.params().is_setup_sqpoll(),
        iopoll: ring.params().is_setup_iopoll(),
        ring,
        handle,
        encoder,
        depth: request.depth,
        in_flight: 0,
        unsubmitted: 0,
    };
    Ok(Opened { driver: Box::new(driver), notes })
}

fn sync_flags(call: SyncCall) -> FsyncFlags {
    match call {
        SyncCall::Fdatasync => FsyncFlags::DATASYNC,
        SyncCall::Fsync => FsyncFlags::empty(),
    }
}

struct Target {
    descriptor: Descriptor,
    /// Its number in the ring's table of files, or its descriptor.
    number: i32,
}

/// Makes entries of operations.
struct Encoder {
    targets: Vec<Target>,
    arena: Arc<Arena>,
    bounds: Bounds,
    fixed_files: bool,
    fixed_buffers: bool,
    polled: bool,
    sync_flags: FsyncFlags,
    /// Where shares of the operations have a priority of their own.
    priorities: Option<Box<Priorities>>,
    /// Every so manieth operation goes to a thread of the kernel; 0: none does.
    force_async: u32,
    /// Operations until the next of these.
    until_async: Cell<u32>,
}

/// Expands to an entry on a registered file or a descriptor.
macro_rules! on_file {
    ($fixed:expr, $number:expr, $file:ident => $entry:expr) => {
        if $fixed {
            let $file = Fixed($number as u32);
            $entry
        } else {
            let $file = Fd($number);
            $entry
        }
    };
}

impl Encoder {
    /// The entry of an operation; refuses with a completion. The user data is the slot; above it the bytes that a success with
    /// result 0 stands for.
    #[inline]
    fn entry(&self, operation: &MediaOperation) -> Result<Entry, i64> {
        if !self.bounds.allow(operation) {
            return Err(INVALID);
        }
        let MediaOperation { slot, offset, length, .. } = *operation;
        let number = self.targets[usize::from(operation.target)].number;
        let user_data = u64::from(slot);
        let priority = self.priorities.as_ref().map_or(0, |priorities| priorities.draw(operation));
        let entry = match operation.class {
            MediaClass::Read => {
                let buffer = self.arena.slot_ptr(slot);
                on_file!(self.fixed_files, number, file => if self.fixed_buffers {
                    opcode::ReadFixed::new(file, buffer, length, slot as u16).offset(offset).ioprio(priority).build()
                } else {
                    opcode::Read::new(file, buffer, length).offset(offset).ioprio(priority).build()
                })
            }
            MediaClass::Write => {
                let buffer = self.arena.slot_ptr(slot);
                on_file!(self.fixed_files, number, file => if self.fixed_buffers {
                    opcode::WriteFixed::new(file, buffer, length, slot as u16).offset(offset).ioprio(priority).build()
                } else {
                    opcode::Write::new(file, buffer, length).offset(offset).ioprio(priority).build()
                })
            }
            MediaClass::Nop => opcode::Nop::new().build(),
            MediaClass::Reset | MediaClass::Finish => return Err(CHANGES_ZONE),
            MediaClass::Sync | MediaClass::Discard => return self.rare_entry(operation, number),
        };
        let entry = entry.user_data(user_data);
        Ok(if self.force_async == 0 { entry } else { self.sent_away(entry) })
    }

    /// Lets a thread of the kernel carry out every so manieth operation.
    #[cold]
    fn sent_away(&self, entry: Entry) -> Entry {
        let count = self.until_async.get();
        self.until_async.set(if count == 0 { self.force_async - 1 } else { count - 1 });
        if count == 0 { entry.flags(io_uring::squeue::Flags::ASYNC) } else { entry }
    }

    /// Carries out what changes a whole zone, with a time of its own.
    #[cold]
    fn change_zone(&self, operation: &MediaOperation, done: &mut Completions) {
        let began_ns = HostClock::get().now_ns();
        let target = &self.targets[usize::from(operation.target)].descriptor;
        let result = match operation.class {
            MediaClass::Discard => descriptor::discard(target, operation.offset, operation.length),
            _ => descriptor::change_zone(target, operation),
        };
        done.push_timed(operation.slot, result, Span { began_ns, ended_ns: HostClock::get().now_ns() });
    }

    #[cold]
    fn rare_entry(&self, operation: &MediaOperation, number: i32) -> Result<Entry, i64> {
        /// `_IO(0x12, 0)`, Linux 6.12.
        const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;
        // A polled ring carries reads and writes alone.
        if self.polled {
            return Err(UNSUPPORTED);
        }
        let MediaOperation { slot, offset, length, .. } = *operation;
        if operation.class == MediaClass::Sync {
            let entry = on_file!(self.fixed_files, number, file => {
                opcode::Fsync::new(file).flags(self.sync_flags).build()
            });
            return Ok(entry.user_data(u64::from(slot)));
        }
        let Descriptor { kind, zone_bytes, .. } = self.targets[usize::from(operation.target)].descriptor;
        if zone_bytes > 0 {
            return Err(CHANGES_ZONE);
        }
        let entry = on_file!(self.fixed_files, number, file => match kind {
            TargetKind::BlockDevice => {
                let mut command = [0; 16];
                command[..8].copy_from_slice(&u64::from(length).to_ne_bytes());
                opcode::UringCmd16::new(file, BLOCK_URING_CMD_DISCARD).addr(Some(offset)).cmd(command).build()
            }
            _ => opcode::Fallocate::new(file, u64::from(length))
                .offset(offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
        });
        Ok(entry.user_data(u64::from(slot) | u64::from(length) << 32))
    }
}

struct Uring {
    ring: IoUring,
    handle: setup::Handle,
    encoder: Encoder,
    depth: u32,
    in_flight: u32,
    /// Entries in the ring that the kernel was not told of.
    unsubmitted: u32,
    sqpoll: bool,
    iopoll: bool,
}

impl Uring {
    /// Takes what is in the completion ring.
    #[inline]
    fn take(&mut self, done: &mut Completions) -> u32 {
        let mut taken = 0;
        for entry in self.ring.completion().take(done.room()) {
            let user_data = entry.user_data();
            let result = i64::from(entry.result());
            done.push(user_data as u32, if result == 0 { (user_data >> 32) as i64 } else { result });
            taken += 1;
        }
        self.in_flight -= taken;
        taken
    }

    /// One `io_uring_enter`: hands over what is new, waits for `least` completions.
    #[inline]
    fn enter(&mut self, least: u32, timeout: Option<&SubmitArgs<'_, '_>>) -> Result<(), i32> {
        let mut flags = self.handle.flags | EnterFlags::GETEVENTS.bits();
        let (argument, size) = match timeout {
            None => (0, 0),
            Some(arguments) => {
                flags |= EnterFlags::EXT_ARG.bits();
                (std::ptr::from_ref(arguments) as usize, size_of::<SubmitArgs<'_, '_>>())
            }
        };
        if self.sqpoll && self.asleep() {
            flags |= EnterFlags::SQ_WAKEUP.bits();
        }
        // SAFETY: a ring of ours; the entries handed over name buffers and files that live until they complete.
        let result = unsafe {
            sc::syscall6(
                libc::SYS_io_uring_enter as usize,
                self.handle.number as usize,
                self.unsubmitted as usize,
                least as usize,
                flags as usize,
                argument,
                size,
            )
        } as isize;
        if result < 0 {
            return Err(-result as i32);
        }
        self.unsubmitted -= self.unsubmitted.min(result as u32);
        Ok(())
    }

    /// Whether the kernel's thread sleeps. The fence puts the entries before the look at its flag.
    #[inline]
    fn asleep(&mut self) -> bool {
        fence(Ordering::SeqCst);
        self.ring.submission().need_wakeup_after_intermittent_seqcst()
    }

    /// Whether a look at the target must go through the kernel.
    #[inline]
    fn must_enter(&mut self) -> bool {
        if self.unsubmitted > 0 || self.iopoll {
            return true;
        }
        if self.sqpoll && self.asleep() {
            return true;
        }
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Looks and looks again, for a while: with a polled submission queue a system call is what is to be saved.
    fn spin(&mut self, want: u32, done: &mut Completions) -> u32 {
        let mut taken = 0;
        if self.asleep() {
            return 0;
        }
        for _ in 0..SPINS {
            taken += self.take(done);
            if taken >= want {
                break;
            }
            std::hint::spin_loop();
        }
        taken
    }

    fn wait(
        &mut self,
        mut missing: u32,
        timeout_ns: Option<u64>,
        done: &mut Completions,
    ) -> Result<(), Error> {
        if self.sqpoll {
            missing = missing.saturating_sub(self.spin(missing, done));
        }
        let deadline = timeout_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
        let mut span = Timespec::from(Duration::from_nanos(timeout_ns.unwrap_or(0)));
        while missing > 0 {
            let arguments = SubmitArgs::new().timespec(&span);
            // The kernel keeps no time while it polls.
            let entered = match timeout_ns {
                Some(_) if self.iopoll => self.enter(0, None),
                Some(_) => self.enter(missing, Some(&arguments)),
                None => self.enter(missing, None),
            };
            missing = missing.saturating_sub(self.take(done));
            match entered {
                // Short of memory for requests, or of room for completions: both pass.
                Ok(()) | Err(libc::EAGAIN | libc::EBUSY) => {}
                Err(libc::EINTR | libc::ETIME) => return Ok(()),
                Err(errno) => return Err(self.broken(errno)),
            }
            // A call that handed something over returns its number, also where it then waited until its time was up.
            if let Some(deadline) = deadline.filter(|_| missing > 0) {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(());
                }
                span = Timespec::from(left);
            }
        }
        Ok(())
    }

    #[cold]
    fn broken(&self, errno: i32) -> Error {
        Error::system("reap", "io_uring_enter failed", std::io::Error::from_raw_os_error(errno))
            .with("in_flight", self.in_flight)
    }
}

impl Driver<MediaOperation> for Uring {
    #[inline]
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let room = (self.depth - self.in_flight) as usize;
        let mut queue = self.ring.submission();
        let (mut accepted, mut pushed) = (0, 0);
        for operation in &batch[..batch.len().min(room)] {
            match self.encoder.entry(operation) {
                // SAFETY: buffer and file live until the completion: the driver holds both and waits when dropped.
                Ok(entry) if unsafe { queue.push(&entry) }.is_ok() => pushed += 1,
                // A kernel thread completes entries before it gives their room back: the rest is busy.
                Ok(_) => break,
                // What came before it is handed over first, and waits for nothing.
                Err(CHANGES_ZONE) if pushed > 0 || self.unsubmitted > 0 => break,
                Err(CHANGES_ZONE) => self.encoder.change_zone(operation, done),
                Err(result) => done.push(operation.slot, result),
            }
            accepted += 1;
        }
        drop(queue);
        self.in_flight += pushed;
        if !self.sqpoll {
            self.unsubmitted += pushed;
        }
        Ok(Submitted { accepted })
    }

    #[inline]
    fn event(&mut self) -> Result<Option<BorrowedFd<'_>>, Error> {
        // SAFETY: the ring, and with it the descriptor, lives as long as the driver, which is borrowed.
        Ok(Some(unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }))
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let (count, timeout_ns) = match wait {
            Wait::None => (0, None),
            Wait::AtLeast(count) => (count, None),
            Wait::Timeout { count, timeout_ns } => (count, Some(timeout_ns)),
        };
        let want = count.min(self.in_flight);
        let missing = want.saturating_sub(self.take(done));
        if missing > 0 {
            return self.wait(missing, timeout_ns, done);
        }
        if self.must_enter() {
            match self.enter(0, None) {
                Ok(()) | Err(libc::EINTR | libc::EAGAIN | libc::EBUSY) => {}
                Err(errno) => return Err(self.broken(errno)),
            }
            self.take(done);
        }
        Ok(())
    }
}

impl Drop for Uring {
    /// The kernel writes into buffers until the last completion: it is waited for, or the buffers are left to it for good.
    fn drop(&mut self) {
        self.handle.unregister(&self.ring);
        self.in_flight -= self.unsubmitted;
        self.unsubmitted = 0;
        let mut done = Completions::with_depth(self.in_flight);
        let patience = Timespec::from(Duration::from_secs(5));
        while self.in_flight > 0 {
            self.take(&mut done);
            let arguments = SubmitArgs::new().timespec(&patience);
            match self.enter(self.in_flight, Some(&arguments)) {
                Ok(()) | Err(libc::EINTR) => {}
                Err(_) => {
                    self.take(&mut done);
                    break;
                }
            }
            self.take(&mut done);
        }
        if self.in_flight > 0 {
            std::mem::forget(Arc::clone(&self.encoder.arena));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_told_which_sync() {
        // struct io_uring_sqe: opcode in byte 0, fsync_flags in bytes 28 to 32; IORING_OP_FSYNC is 3.
        let sync = |call| {
            let descriptor = Descriptor {
                zone_bytes: 0,
                fd: std::fs::File::open("/dev/null").expect("open").into(),
                kind: TargetKind::File,
            };
            let arena = Arc::new(Arena::new(1, 4096, driver::PageSize::Base).expect("memory"));
            let encoder = Encoder {
                targets: vec![Target { descriptor, number: 0 }],
                arena,
                bounds: Bounds::none(),
                fixed_files: false,
                fixed_buffers: false,
                polled: false,
                priorities: None,
                force_async: 0,
                until_async: Cell::new(0),
                sync_flags: sync_flags(call),
            };
            let operation = MediaOperation {
                offset: 0,
                length: 0,
                slot: 0,
                target: 0,
                class: MediaClass::Sync,
                is_extra: false,
            };
            let entry = encoder.rare_entry(&operation, 0).expect("an entry");
            // SAFETY: an entry is the kernel's structure of 64 plain bytes.
            let bytes: [u8; 64] = unsafe { std::mem::transmute(entry) };
            (bytes[0], u32::from_ne_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]))
        };
        assert_eq!(sync(SyncCall::Fdatasync), (3, 1));
        assert_eq!(sync(SyncCall::Fsync), (3, 0));
    }
}
