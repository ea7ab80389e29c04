//! Turns SIGBUS inside a watched range into a result.
//!
//! A load from a mapping whose target cannot give the page (cut short, medium error, file system full) raises SIGBUS, which
//! kills the process. The handler puts an empty page in place of the missing one and leaves word; the copy then runs to its end
//! and is reported as failed. A SIGBUS anywhere else goes to whoever handled it before.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use driver::Error;

thread_local! {
    /// First and last + 1 address under watch; empty while nothing is.
    static RANGE: (Cell<usize>, Cell<usize>) = const { (Cell::new(0), Cell::new(0)) };
    /// Whether the handler had to help.
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

/// Page size, read by the handler.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);
/// The action before ours.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once a process.
///
/// # Errors
/// When the system refuses it.
pub(super) fn install() -> Result<(), Error> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = *INSTALLED.get_or_init(|| {
        PAGE_BYTES.store(rustix::param::page_size(), Ordering::Relaxed);
        // SAFETY: all-zero is a valid sigaction; both pointers are to live values; the handler keeps to async-signal-safe
        // calls. The previous action is kept before ours can run for a watched range: nothing is watched yet.
        unsafe {
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut previous) != 0 {
                return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
            }
            let _ = PREVIOUS.set(previous);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction =
                on_fault as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            // On the alternative stack where the thread has one: the standard library's handler needs it for overflows.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) != 0 {
                return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
            }
        }
        Ok(())
    });
    installed.map_err(|errno| {
        Error::system(
            "open",
            "cannot install the handler for faults of a mapping",
            std::io::Error::from_raw_os_error(errno),
        )
    })
}

/// Runs `access`, which touches `length` bytes from `memory` on. Returns false when the target could not give all of it; the
/// pages that it could not give are empty ones then, until the caller maps them anew.
#[inline]
pub(super) fn watched(memory: *mut u8, length: usize, access: impl FnOnce()) -> bool {
    RANGE.with(|(start, end)| {
        start.set(memory as usize);
        end.set(memory as usize + length);
        // The handler runs on this thread: the compiler alone could reorder.
        compiler_fence(Ordering::SeqCst);
        access();
        compiler_fence(Ordering::SeqCst);
        end.set(0);
    });
    !FAULTED.with(|faulted| faulted.get()) || {
        FAULTED.with(|faulted| faulted.set(false));
        false
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a valid siginfo to a SA_SIGINFO handler.
    let address = unsafe { (*info).si_addr() } as usize;
    let watched = RANGE.with(|(start, end)| {
        let page = address & !(PAGE_BYTES.load(Ordering::Relaxed) - 1);
        (page + PAGE_BYTES.load(Ordering::Relaxed) > start.get() && address < end.get()).then_some(page)
    });
    if let Some(page) = watched
        && replace(page)
    {
        FAULTED.with(|faulted| faulted.set(true));
        return;
    }
    pass_on(signal, info, context);
}

/// Maps an empty page over the one that faulted. `mmap` is a bare system call and keeps errno on success.
fn replace(page: usize) -> bool {
    // SAFETY: the page lies in the range under watch, which is a mapping of this thread's driver.
    let mapped = unsafe {
        libc::mmap(
            page as *mut c_void,
            PAGE_BYTES.load(Ordering::Relaxed),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    mapped != libc::MAP_FAILED
}

/// Hands the signal to the action before ours; by default that ends the process at the same instruction.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(previous) = PREVIOUS.get() else { std::process::abort() };
    let handler = previous.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: a valid action; returning runs into the same fault with it in force.
        unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
    } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: with SA_SIGINFO the field holds a function of this type.
        let call: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(handler) };
        call(signal, info, context);
    } else {
        // SAFETY: without SA_SIGINFO it holds a function of this type.
        let call: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        call(signal);
    }
}
