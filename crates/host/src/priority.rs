//! Priorities of the calling thread: niceness, and that of its I/O.
#![allow(unsafe_code)]

use std::io;

/// `IOPRIO_WHO_PROCESS`, which means a thread.
const WHO_THREAD: libc::c_int = 1;

/// Gives the I/O of the calling thread a priority: the class in the upper three bits of sixteen, the level below.
///
/// # Errors
/// As ioprio_set(2): `EPERM` for the realtime class without the right to it.
pub fn set_io_priority(value: u16) -> io::Result<()> {
    // SAFETY: the call takes numbers alone.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_THREAD, 0, libc::c_int::from(value)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Adds to the niceness of the calling thread; the system keeps the sum between -20 and 19.
///
/// # Errors
/// As setpriority(2): `EACCES` below what the process may have.
pub fn add_niceness(more: i32) -> io::Result<()> {
    // SAFETY: the calls take numbers alone; errno tells -1 from an error.
    unsafe {
        *libc::__errno_location() = 0;
        let now = libc::getpriority(libc::PRIO_PROCESS, 0);
        if now == -1 && *libc::__errno_location() != 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::setpriority(libc::PRIO_PROCESS, 0, now + more) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
