//! Entry of each call: whether it is taken over, and how its result reaches a program in C.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use dfs::Errno;

use crate::calls::Call;
use crate::{report, state};

thread_local! {
    /// Whether this thread is in a call of this library: calls from there, and from signal handlers that interrupt it, go to the kernel.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Results of functions in C: the one that says that `errno` holds why.
pub(crate) trait Failure {
    const FAILED: Self;
}

macro_rules! failures {
    ($($type:ty),*) => {$(
        impl Failure for $type {
            const FAILED: Self = -1;
        }
    )*};
}

failures!(c_int, i64, isize);

impl Failure for *mut libc::FILE {
    const FAILED: Self = std::ptr::null_mut();
}

impl Failure for *mut libc::DIR {
    const FAILED: Self = std::ptr::null_mut();
}

impl Failure for *mut libc::dirent64 {
    const FAILED: Self = std::ptr::null_mut();
}

/// Addresses of mappings.
impl Failure for *mut std::ffi::c_void {
    const FAILED: Self = libc::MAP_FAILED;
}

impl Failure for () {
    const FAILED: Self = ();
}

/// File permissions as `umask` gives them; it cannot fail.
impl Failure for u32 {
    const FAILED: Self = 0;
}

/// The errno of this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library gives a valid address of this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the errno of this thread.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// Result of a function that the C library does not have.
pub(crate) fn missing<T: Failure>() -> T {
    set_errno(libc::ENOSYS);
    T::FAILED
}

/// A call that this library carries out itself has a result; one that it leaves to the C library has none.
pub(crate) type Taken<T> = Option<Result<T, Errno>>;

/// Carries a call out, or leaves it to the C library (none).
pub(crate) fn enter<T: Failure>(call: Call, body: impl FnOnce() -> Taken<T>) -> Option<T> {
    if !state::ACTIVE.load(Ordering::Relaxed) {
        return None;
    }
    inside(call, body)
}

fn inside<T: Failure>(call: Call, body: impl FnOnce() -> Taken<T>) -> Option<T> {
    if INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true) {
        return None;
    }
    if !state::is_own_process() {
        let _ = INSIDE.try_with(|inside| inside.set(false));
        return None;
    }
    let before = errno();
    // A panic must not reach the program; the C library's own function is the answer then.
    let taken = catch_unwind(AssertUnwindSafe(body)).unwrap_or(None);
    let _ = INSIDE.try_with(|inside| inside.set(false));
    match taken {
        None => {
            set_errno(before);
            None
        }
        Some(Ok(value)) => {
            report::count(call);
            set_errno(before);
            Some(value)
        }
        Some(Err(error)) => {
            report::count(call);
            set_errno(error.raw_os_error());
            Some(T::FAILED)
        }
    }
}

/// Whether this thread is in a call of this library.
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(true)
}

/// Has calls of this thread go to the kernel while `body` runs.
pub(crate) fn apart<T>(body: impl FnOnce() -> T) -> T {
    let before = INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true);
    let value = body();
    let _ = INSIDE.try_with(|inside| inside.set(before));
    value
}
