//! Setting a ring up: what the kernel grants of what was asked for, and the word on what it does not.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use crate::engine::EngineOptions;
use driver::{Error, ErrorKind};
use io_uring::types::Fd;
use io_uring::{Builder, EnterFlags, IoUring, opcode};
use workload::engine::Feature;
use workload::target::TargetKind;

use crate::OpenRequest;
use crate::descriptor::{self, Descriptor};

/// Milliseconds without work after which the kernel's thread of `sqpoll` goes to sleep.
const SQPOLL_IDLE_MS: u32 = 1000;
/// Most entries of a submission ring (`IORING_MAX_ENTRIES`).
const ENTRIES_MAX: u32 = 1 << 15;
/// Most buffers that a ring registers (`IORING_MAX_REG_BUFFERS`).
const BUFFERS_MAX: u32 = 1 << 14;
/// Most bytes of one registered buffer.
const BUFFER_BYTES_MAX: usize = 1 << 30;

/// Options of the layer that it honours.
pub(super) const OPTIONS: &[&str] = &[
    "memory",
    "gpu-path",
    "gpu-staging",
    "gpu-per",
    "advise",
    "operation-priority",
    "force-async",
    "sync",
    "register-files",
    "register-buffers",
    "defer-taskrun",
    "sqpoll",
    "sqpoll-core",
    "iopoll",
];

/// Refuses options that exclude each other.
pub(super) fn check_options(options: &EngineOptions) -> Result<(), Error> {
    let usage = |message: &str, remedy: &str| Err(Error::usage("open", message).remedy(remedy));
    if options.iopoll && !options.direct {
        return usage("polled completions (--iopoll) need direct I/O", "add --direct");
    }
    if options.sqpoll && options.defer_taskrun == Feature::On {
        return usage("the kernel supports --sqpoll or --defer-taskrun, not both", "leave out one of them");
    }
    if options.sqpoll_core.is_some() && !options.sqpoll {
        return usage("--sqpoll-core requires --sqpoll", "add --sqpoll");
    }
    Ok(())
}

/// How a ring hands completions to its thread, best first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TaskRun {
    /// `IORING_SETUP_SINGLE_ISSUER` and `IORING_SETUP_DEFER_TASKRUN`: when the thread asks for them.
    Deferred,
    /// `IORING_SETUP_COOP_TASKRUN`: when the thread next enters the kernel.
    Cooperative,
    /// As it comes, by interrupting the thread.
    Plain,
}

/// The ways to try, in order; the first that the kernel takes is used.
fn ways(options: &EngineOptions) -> &'static [TaskRun] {
    match options.defer_taskrun {
        // The thread that polls runs the task work itself: nothing to choose.
        _ if options.sqpoll => &[TaskRun::Plain],
        Feature::On => &[TaskRun::Deferred],
        Feature::Auto => &[TaskRun::Deferred, TaskRun::Cooperative, TaskRun::Plain],
        Feature::Off => &[TaskRun::Cooperative, TaskRun::Plain],
    }
}

fn builder(options: &EngineOptions, way: TaskRun, without_array: bool) -> Builder {
    let mut builder = IoUring::builder();
    if without_array {
        // Entries are submitted in the order of the ring: the array between the two only costs time.
        builder.setup_no_sqarray();
    }
    match way {
        TaskRun::Deferred => {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_submit_all();
        }
        TaskRun::Cooperative => {
            builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
        }
        TaskRun::Plain => {}
    }
    if options.sqpoll {
        builder.setup_sqpoll(SQPOLL_IDLE_MS);
        if let Some(core) = options.sqpoll_core {
            builder.setup_sqpoll_cpu(core);
        }
    }
    if options.iopoll {
        builder.setup_iopoll();
    }
    builder
}

/// Sets the ring up for the queue depth of the request.
pub(super) fn build(request: &OpenRequest, notes: &mut Vec<String>) -> Result<IoUring, Error> {
    let options = &request.options;
    // A kernel thread gives the room of entries back only after it has completed them.
    let room = if options.sqpoll { (2 * request.depth).min(ENTRIES_MAX) } else { request.depth };
    let entries = room.next_power_of_two();
    let mut refusal = io::Error::from_raw_os_error(libc::EINVAL);
    // The array can be left out since Linux 6.6.
    let tries = ways(options).iter().flat_map(|&way| [(way, true), (way, false)]);
    for (way, without_array) in tries {
        match builder(options, way, without_array).build(entries) {
            Ok(ring) if !ring.params().is_feature_ext_arg() => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "open",
                    "io_uring of this kernel does not support timeouts",
                )
                .remedy("use Linux 5.11 or later, or --engine libaio"));
            }
            Ok(ring) => {
                if options.defer_taskrun == Feature::Auto && !options.sqpoll && way != TaskRun::Deferred {
                    notes.push(format!(
                        "io_uring uses {way:?}: the kernel rejected deferred task run, which requires Linux 6.1"
                    ));
                }
                return Ok(ring);
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(setup_error(request.depth, options, error)),
        }
    }
    Err(setup_error(request.depth, options, refusal))
}

/// The error of a ring that was refused, with what can be done about it.
fn setup_error(depth: u32, options: &EngineOptions, error: io::Error) -> Error {
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            "io_uring is disabled: set sysctl kernel.io_uring_disabled to 0 and allow it in the seccomp filter (container); or use --engine libaio"
                .to_owned()
        }
        Some(libc::ENOMEM) => "raise the limit on locked memory (ulimit -l) or use a smaller queue depth".to_owned(),
        Some(libc::EMFILE | libc::ENFILE) => "raise ulimit -n or use fewer threads".to_owned(),
        Some(libc::EINVAL) => match (options.sqpoll_core, options.defer_taskrun) {
            (Some(core), _) => format!("check that CPU {core} exists and that this process may use it"),
            (None, Feature::On) => "deferred task run requires Linux 6.1; leave out --defer-taskrun".to_owned(),
            _ => "use --engine libaio".to_owned(),
        },
        _ => "use --engine libaio".to_owned(),
    };
    Error::system("open", "cannot set up io_uring", error).with("depth", depth).remedy(remedy)
}

/// Registers the targets with the ring. Returns whether they are.
pub(super) fn register_files(
    ring: &IoUring,
    targets: &[Descriptor],
    feature: Feature,
    notes: &mut Vec<String>,
) -> Result<bool, Error> {
    if feature == Feature::Off {
        return Ok(false);
    }
    let files: Vec<RawFd> = targets.iter().map(|target| target.fd.as_raw_fd()).collect();
    let registered = ring.submitter().register_files(&files);
    granted(registered, feature, "files", "raise ulimit -n", notes)
}

/// Registers the buffer of every slot with the ring. Returns whether they are.
pub(super) fn register_buffers(
    ring: &IoUring,
    request: &OpenRequest,
    notes: &mut Vec<String>,
) -> Result<bool, Error> {
    let (feature, arena) = (request.options.register_buffers, &request.arena);
    if feature == Feature::Off {
        return Ok(false);
    }
    if arena.slots() > BUFFERS_MAX || arena.slot_bytes() > BUFFER_BYTES_MAX {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        let remedy = "a ring registers at most 16384 buffers of at most 1 GiB";
        return granted(Err(error), feature, "buffers", remedy, notes);
    }
    let vectors: Vec<libc::iovec> = (0..arena.slots())
        .map(|slot| libc::iovec { iov_base: arena.slot_ptr(slot).cast(), iov_len: arena.slot_bytes() })
        .collect();
    // SAFETY: the arena outlives the ring: the driver holds it.
    let registered = unsafe { ring.submitter().register_buffers(&vectors) };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    let limit = limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
    let remedy = format!("they count against RLIMIT_MEMLOCK ({limit} now); raise it with ulimit -l");
    granted(registered, feature, "buffers", &remedy, notes)
}

/// Outcome of a registration that may be refused.
fn granted(
    result: io::Result<()>,
    feature: Feature,
    what: &str,
    remedy: &str,
    notes: &mut Vec<String>,
) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if feature == Feature::On => {
            Err(Error::system("open", format!("the kernel rejected registration of the {what}"), error)
                .remedy(remedy))
        }
        Err(error) => {
            notes.push(format!("io_uring without registered {what}: {error}; {remedy}"));
            Ok(false)
        }
    }
}

/// The number to enter a ring by: registered with the thread that opens it where the kernel has that, which saves a look-up a
/// call; else the ring's descriptor.
pub(super) struct Handle {
    pub(super) number: RawFd,
    /// The flag that a registered number needs.
    pub(super) flags: u32,
    owner: rustix::thread::Pid,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct Update {
    offset: u32,
    reserved: u32,
    data: u64,
}

fn update_rings(ring: &IoUring, operation: usize, update: &mut Update) -> bool {
    // SAFETY: one update, which the kernel reads and writes.
    let result = unsafe {
        sc::syscall4(
            libc::SYS_io_uring_register as usize,
            ring.as_raw_fd() as usize,
            operation,
            std::ptr::from_mut(update) as usize,
            1,
        )
    };
    result == 1
}

impl Handle {
    pub(super) fn register(ring: &IoUring) -> Self {
        const IORING_REGISTER_RING_FDS: usize = 20;
        let mut handle = Self { number: ring.as_raw_fd(), flags: 0, owner: rustix::thread::gettid() };
        let mut update = Update { offset: u32::MAX, reserved: 0, data: ring.as_raw_fd() as u64 };
        if update_rings(ring, IORING_REGISTER_RING_FDS, &mut update) {
            handle.number = update.offset as RawFd;
            handle.flags = EnterFlags::REGISTERED_RING.bits();
        }
        handle
    }

    /// Goes back to the descriptor, which any thread may use. Registered, the ring would live as long as the thread; another
    /// thread's table holds another ring under this number.
    pub(super) fn unregister(&mut self, ring: &IoUring) {
        const IORING_UNREGISTER_RING_FDS: usize = 21;
        if self.flags != 0 && self.owner == rustix::thread::gettid() {
            let mut update = Update { offset: self.number as u32, reserved: 0, data: 0 };
            let unregistered = update_rings(ring, IORING_UNREGISTER_RING_FDS, &mut update);
            debug_assert!(unregistered);
        }
        (self.number, self.flags) = (ring.as_raw_fd(), 0);
    }
}

/// Tries a read on every target: a device without poll queues says so at the first operation only.
pub(super) fn probe_polling(
    ring: &mut IoUring,
    targets: &[Descriptor],
    request: &OpenRequest,
) -> Result<(), Error> {
    for (target, plan) in targets.iter().zip(&request.targets) {
        let arena = descriptor::probe_buffer(plan)?;
        let result = if target.kind == TargetKind::CharacterDevice {
            -libc::EOPNOTSUPP
        } else {
            let fd = Fd(target.fd.as_raw_fd());
            let read = opcode::Read::new(fd, arena.slot_ptr(0), arena.slot_bytes() as u32);
            complete(ring, &read.offset(plan.offset_bytes).build())?
        };
        if result == -libc::EOPNOTSUPP || result == -libc::EINVAL {
            return Err(Error::new(ErrorKind::Unsupported, "open", "the device has no poll queues")
                .with("path", &plan.path)
                .with("errno", -result)
                .remedy("leave out --iopoll (NVMe has poll queues with nvme.poll_queues=N)"));
        }
    }
    Ok(())
}

/// Runs one entry to its end.
fn complete(ring: &mut IoUring, entry: &io_uring::squeue::Entry) -> Result<i32, Error> {
    // SAFETY: buffer and file live until the loop below has seen the completion.
    let pushed = unsafe { ring.submission().push(entry) };
    debug_assert!(pushed.is_ok());
    loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.raw_os_error() != Some(libc::EINTR) => {
                return Err(Error::system("open", "io_uring_enter failed", error));
            }
            _ => {}
        }
        if let Some(completion) = ring.completion().next() {
            return Ok(completion.result());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_ring_names_the_switch_and_the_way_round() {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let error =
                setup_error(8, &EngineOptions::default(), io::Error::from_raw_os_error(errno)).to_string();
            assert!(error.contains("kernel.io_uring_disabled"), "{error}");
            assert!(error.contains("--engine libaio"), "{error}");
        }
        let options = EngineOptions { sqpoll: true, sqpoll_core: Some(999), ..EngineOptions::default() };
        let error = setup_error(8, &options, io::Error::from_raw_os_error(libc::EINVAL)).to_string();
        assert!(error.contains("CPU 999"), "{error}");
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        let none = EngineOptions::default();
        assert!(check_options(&none).is_ok());
        for refused in [
            EngineOptions { iopoll: true, ..none.clone() },
            EngineOptions { sqpoll: true, defer_taskrun: Feature::On, ..none.clone() },
            EngineOptions { sqpoll_core: Some(0), ..none.clone() },
        ] {
            assert_eq!(check_options(&refused).expect_err("refused").exit_code(), 2);
        }
    }

    #[test]
    fn a_refused_registration_is_a_note_or_an_error() {
        let refused = || Err(io::Error::from_raw_os_error(libc::ENOMEM));
        let mut notes = Vec::new();
        assert!(!granted(refused(), Feature::Auto, "buffers", "ulimit -l", &mut notes).expect("a note"));
        assert!(
            notes[0].contains("without registered buffers") && notes[0].contains("ulimit -l"),
            "{notes:?}"
        );
        assert!(granted(refused(), Feature::On, "buffers", "ulimit -l", &mut notes).is_err());
        assert!(granted(Ok(()), Feature::Auto, "buffers", "", &mut notes).expect("granted"));
    }

    #[test]
    fn the_best_way_that_is_allowed_comes_first() {
        let with = |defer_taskrun, sqpoll| {
            ways(&EngineOptions { defer_taskrun, sqpoll, ..EngineOptions::default() })[0]
        };
        assert_eq!(with(Feature::Auto, false), TaskRun::Deferred);
        assert_eq!(with(Feature::Off, false), TaskRun::Cooperative);
        assert_eq!(with(Feature::Auto, true), TaskRun::Plain);
    }
}
