//! Streams of the C library. Their data go through the kernel's descriptor, by direct I/O: what other calls see is the same.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use crate::enter::Taken;
use crate::hooks::opening::{last_error, open_at};
use crate::hooks::{kernel, take, take_all};
use crate::real::real;
use crate::state;

/// Permissions of files that `fopen` makes, before the mask.
const MODE: u32 = 0o666;

/// Flags of `open` for a mode of `fopen`; none for one that the C library refuses.
fn flags_of(mode: &[u8]) -> Option<c_int> {
    let (first, rest) = mode.split_first()?;
    // A character set stands behind a comma.
    let letters = rest.split(|byte| *byte == b',').next().unwrap_or(rest);
    let (alone, more) = match first {
        b'r' => (libc::O_RDONLY, 0),
        b'w' => (libc::O_WRONLY, libc::O_CREAT | libc::O_TRUNC),
        b'a' => (libc::O_WRONLY, libc::O_CREAT | libc::O_APPEND),
        _ => return None,
    };
    let mut flags = more | if letters.contains(&b'+') { libc::O_RDWR } else { alone };
    for (letter, flag) in [(b'e', libc::O_CLOEXEC), (b'x', libc::O_EXCL)] {
        if letters.contains(&letter) {
            flags |= flag;
        }
    }
    Some(flags)
}

fn open_stream(path: *const c_char, mode: *const c_char) -> Taken<*mut libc::FILE> {
    let flags = flags_of(kernel::path(mode)?)?;
    let descriptor = match open_at(libc::AT_FDCWD, path, flags, MODE)? {
        Ok(descriptor) => descriptor,
        Err(error) => return Some(Err(error)),
    };
    let stream = real!(fdopen(descriptor: c_int, mode: *const c_char) -> *mut libc::FILE);
    if stream.is_null() {
        let error = last_error();
        drop(state::remove(descriptor));
        kernel::close(descriptor);
        return Some(Err(error));
    }
    Some(Ok(stream))
}

/// A stream is about to be closed, with its descriptor.
fn leave<T>(stream: *mut libc::FILE) -> Taken<T> {
    if !stream.is_null() {
        let descriptor = real!(fileno(stream: *mut libc::FILE) -> c_int);
        let flushed = state::remove(descriptor).map_or(Ok(()), |file| file.flush());
        if let Err(error) = flushed {
            real!(fclose(stream: *mut libc::FILE) -> c_int);
            return Some(Err(error));
        }
    }
    None
}

take_all!(Fopen: [fopen, fopen64] (path: *const c_char, mode: *const c_char) -> *mut libc::FILE,
    when true, = open_stream(path, mode));
take_all!(Fopen: [freopen, freopen64]
    (path: *const c_char, mode: *const c_char, stream: *mut libc::FILE) -> *mut libc::FILE,
    when true, = leave(stream));
take!(Fclose: fn fclose(stream: *mut libc::FILE) -> c_int, when true, = leave(stream));
