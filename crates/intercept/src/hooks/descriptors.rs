//! Descriptors: copies, flags, closing, and calls that the kernel carries out on the mount's descriptor.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};

use dfs::Errno;

use crate::enter::Taken;
use crate::hooks::opening::last_error;
use crate::hooks::{kernel, take, take_all};
use crate::real::real;
use crate::state::{self, is_known};

/// Result of the C library's function.
fn result(value: c_int) -> Result<c_int, Errno> {
    if value < 0 { Err(last_error()) } else { Ok(value) }
}

/// Notes that a descriptor is a copy of another.
fn copied(from: c_int, made: c_int) -> Taken<c_int> {
    if made < 0 {
        return Some(Err(last_error()));
    }
    if let Some(file) = state::file(from) {
        state::insert(made, file);
    }
    Some(Ok(made))
}

/// Shows others what was written to a file whose descriptor is being closed.
fn leave(descriptor: c_int) -> Result<(), Errno> {
    state::remove(descriptor).map_or(Ok(()), |file| file.flush())
}

fn close_one(descriptor: c_int) -> Taken<c_int> {
    let flushed = leave(descriptor);
    let closed = result(real!(close(descriptor: c_int) -> c_int));
    Some(closed.and_then(|closed| flushed.map(|()| closed)))
}

fn copy_to(from: c_int, to: c_int, copy: impl FnOnce() -> c_int) -> Taken<c_int> {
    if from == to {
        return None;
    }
    let made = copy();
    if made >= 0 {
        // The file that was there was closed by the copy, which tells of no error.
        let _ = leave(to);
    }
    copied(from, made)
}

fn control(descriptor: c_int, command: c_int, argument: usize) -> Taken<c_int> {
    let real = || real!(fcntl(descriptor: c_int, command: c_int, argument: usize) -> c_int);
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(descriptor, real()),
        libc::F_SETFL => {
            let done = result(real());
            if let (Ok(_), Some(file)) = (done, state::file(descriptor)) {
                file.set_flags(argument as c_int);
            }
            Some(done)
        }
        _ => None,
    }
}

/// The kernel carries the call out: it sees what was written, and how long the file is.
fn shown<T>(descriptors: &[c_int]) -> Taken<T> {
    for descriptor in descriptors.iter().filter(|descriptor| is_known(**descriptor)) {
        if let Some(file) = state::file(*descriptor) {
            if let Err(error) = file.flush() {
                return Some(Err(error));
            }
            kernel::refresh(*descriptor);
        }
    }
    None
}

/// A shared mapping is the kernel's: from then on all calls on the descriptor are, too, so that both see the same.
fn map(
    address: *mut c_void,
    length: usize,
    access: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> Taken<*mut c_void> {
    if let Some(Err(error)) = shown::<()>(&[descriptor]) {
        return Some(Err(error));
    }
    let is_shared = matches!(flags & libc::MAP_TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
    if is_shared && access & libc::PROT_WRITE != 0 {
        for descriptor in state::same_file(descriptor) {
            drop(state::remove(descriptor));
        }
    }
    let real = |descriptor: c_int| {
        real!(mmap(address: *mut c_void, length: usize, access: c_int, flags: c_int, descriptor: c_int, offset: i64)
            -> *mut c_void)
    };
    let mapped = real(descriptor);
    if mapped != libc::MAP_FAILED || last_error() != Errno::NODEV {
        return Some(if mapped == libc::MAP_FAILED { Err(last_error()) } else { Ok(mapped) });
    }
    // Kernels before 6.6 share no mapping of a descriptor with direct I/O: another one of the same file does.
    let mode = kernel::flags(descriptor)? & libc::O_ACCMODE;
    let other = kernel::open_again(descriptor, mode)?;
    let mapped = real(other);
    kernel::close(other);
    Some(if mapped == libc::MAP_FAILED { Err(last_error()) } else { Ok(mapped) })
}

fn close_many(first: c_uint, last: c_uint, flags: c_int) -> Taken<c_int> {
    // Those that are closed at the next exec alone stay open until then.
    if flags == 0 {
        let (first, last) = (c_int::try_from(first).ok()?, c_int::try_from(last).unwrap_or(c_int::MAX));
        for descriptor in state::descriptors(first, last) {
            // The call tells of no error of a file.
            let _ = leave(descriptor);
        }
    }
    None
}

take!(Close: fn close(fd: c_int) -> c_int, when is_known(fd), = close_one(fd));
take!(Close: fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int,
    when true, = close_many(first, last, flags));
take!(Close: fn closefrom(first: c_int) -> (),
    when first >= 0, = close_many(first as c_uint, c_uint::MAX, 0).map(|done| done.map(drop)));
take!(Dup: fn dup(fd: c_int) -> c_int, when is_known(fd), = copied(fd, real!(dup(fd: c_int) -> c_int)));
take!(Dup: fn dup2(fd: c_int, to: c_int) -> c_int,
    when is_known(fd) || is_known(to), = copy_to(fd, to, || real!(dup2(fd: c_int, to: c_int) -> c_int)));
take!(Dup: fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int,
    when is_known(fd) || is_known(to),
    = copy_to(fd, to, || real!(dup3(fd: c_int, to: c_int, flags: c_int) -> c_int)));
take_all!(Fcntl: [fcntl, fcntl64] (fd: c_int, command: c_int, argument: usize) -> c_int,
    when is_known(fd), = control(fd, command, argument));
take_all!(Mmap: [mmap, mmap64]
    (address: *mut c_void, length: usize, access: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void,
    when is_known(fd) && flags & libc::MAP_ANONYMOUS == 0, = map(address, length, access, flags, fd, offset));
take_all!(Sendfile: [sendfile, sendfile64] (to: c_int, from: c_int, offset: *mut i64, length: usize) -> isize,
    when is_known(to) || is_known(from), = shown(&[to, from]));
take!(CopyFileRange: fn copy_file_range(
    from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, length: usize, flags: c_uint) -> isize,
    when is_known(from) || is_known(to), = shown(&[from, to]));
take!(CopyFileRange: fn splice(
    from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, length: usize, flags: c_uint) -> isize,
    when is_known(from) || is_known(to), = shown(&[from, to]));
