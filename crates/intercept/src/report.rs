//! Counts of intercepted calls, printed at the end of the process where the user asks for them.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fmt::Write;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::calls::{Call, NAMES};
use crate::state;

/// Room for every call.
static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];
/// Copy of standard error, for programs that close it before they end; negative: there is no report.
static OUTPUT: AtomicI32 = AtomicI32::new(-1);
/// Descriptors below are those that programs choose themselves.
const DESCRIPTOR_MIN: c_int = 200;

/// Counts a call.
pub(crate) fn count(call: Call) {
    COUNTS[call as usize].fetch_add(1, Ordering::Relaxed);
}

/// Calls that this library has taken from the process so far, for who wants to know whether it takes any.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn strata_intercept_calls() -> u64 {
    COUNTS.iter().map(|count| count.load(Ordering::Relaxed)).sum()
}

/// Begins: the report comes when the process ends.
pub(crate) fn begin() {
    // SAFETY: the copy is of a descriptor that may be closed, and then there is no report.
    let copy = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, DESCRIPTOR_MIN) };
    OUTPUT.store(copy, Ordering::Relaxed);
    // SAFETY: the function is of this library, which is never unloaded.
    unsafe { libc::atexit(at_end) };
}

/// Tells why a file system is not reached, and where calls go instead.
pub(crate) fn failed(error: &driver::Error, instead: &str) {
    print(&format!("strata intercept: {error}; {instead}\n"));
}

fn print(line: &str) {
    let output = OUTPUT.load(Ordering::Relaxed);
    if output >= 0 {
        // SAFETY: the bytes are those of the line. A report that does not reach its place has no other one.
        unsafe { libc::syscall(libc::SYS_write, output, line.as_ptr(), line.len()) };
    }
}

/// One line: the process, all calls, and those of each name.
fn line(process: u32, counts: &[u64]) -> String {
    let mut line = format!("strata intercept: process {process}, {} calls", counts.iter().sum::<u64>());
    let mut separator = ": ";
    for (name, count) in NAMES.iter().zip(counts).filter(|(_, count)| **count > 0) {
        // Writing to a String cannot fail.
        let _ = write!(line, "{separator}{name} {count}");
        separator = ", ";
    }
    line.push('\n');
    line
}

extern "C" fn at_end() {
    if state::is_own_process() {
        let counts: Vec<_> = COUNTS.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        print(&line(std::process::id(), &counts));
    }
}
