//! Data of open files.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use dfs::{Errno, SetAttributes};

use crate::enter::Taken;
use crate::files::{OpenFile, Opened};
use crate::hooks::start::{bytes, bytes_mut, opened};
use crate::hooks::{kernel, take, take_all};
use crate::state::is_known;

/// Most bytes that one call moves, as the kernel has it.
const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;
/// Bytes of a gathered write that go as one.
const GATHERED_BYTES_MAX: usize = 4 << 20;
/// Parts of a transfer, as the kernel has it.
const PARTS_MAX: c_int = 1024;

/// Where a transfer happens.
#[derive(Clone, Copy)]
enum At {
    /// At the position of the descriptor, which moves.
    Position,
    /// At an offset.
    Offset(i64),
}

/// Memory of the program, in parts.
type Parts<'a> = &'a [libc::iovec];

fn parts<'a>(of: *const libc::iovec, count: c_int) -> Result<Parts<'a>, Errno> {
    if !(0..=PARTS_MAX).contains(&count) {
        return Err(Errno::INVAL);
    }
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the program gives as many parts, as the C library's function asks of it.
    Ok(unsafe { std::slice::from_raw_parts(of, count as usize) })
}

fn at(
    file: &OpenFile,
    descriptor: c_int,
    at: At,
    work: impl FnOnce(u64) -> Result<usize, Errno>,
) -> Taken<isize> {
    let done = match at {
        At::Position => file.at_position(descriptor, work)?,
        At::Offset(offset) => u64::try_from(offset).map_err(|_| Errno::INVAL).and_then(work),
    };
    Some(done.map(|count| count as isize))
}

fn read_parts(opened: &Opened, parts: Parts<'_>, offset: u64) -> Result<usize, Errno> {
    let mut done = 0;
    for part in parts {
        let length = part.iov_len.min(TRANSFER_BYTES_MAX - done);
        // SAFETY: the program gives memory of this length.
        let into = unsafe { bytes_mut(part.iov_base, length) };
        match opened.file_system.read(opened.handle, offset + done as u64, into) {
            Ok(count) => {
                done += count;
                if count < length {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn transfer_in(descriptor: c_int, of: *const libc::iovec, count: c_int, place: At) -> Taken<isize> {
    let (file, opened) = opened(descriptor)?;
    if !file.readable {
        return Some(Err(Errno::BADF));
    }
    let parts = match parts(of, count) {
        Ok(parts) => parts,
        Err(error) => return Some(Err(error)),
    };
    at(&file, descriptor, place, |offset| read_parts(&opened, parts, offset))
}

fn write_parts(opened: &Opened, parts: Parts<'_>, offset: u64) -> Result<usize, Errno> {
    let all: usize = parts.iter().map(|part| part.iov_len).fold(0, usize::saturating_add);
    // SAFETY: the program gives memory of these lengths.
    let slices = parts.iter().map(|part| unsafe { bytes(part.iov_base, part.iov_len) });
    if parts.len() > 1 && all <= GATHERED_BYTES_MAX {
        let gathered: Vec<u8> = slices.flatten().copied().collect();
        return opened.file_system.write(opened.handle, offset, &gathered);
    }
    let mut done = 0;
    for slice in slices {
        let slice = &slice[..slice.len().min(TRANSFER_BYTES_MAX - done)];
        match opened.file_system.write(opened.handle, offset + done as u64, slice) {
            Ok(count) => done += count,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn transfer_out(descriptor: c_int, of: *const libc::iovec, count: c_int, place: At) -> Taken<isize> {
    let (file, opened) = opened(descriptor)?;
    if !file.writable {
        return Some(Err(Errno::BADF));
    }
    let parts = match parts(of, count) {
        Ok(parts) => parts,
        Err(error) => return Some(Err(error)),
    };
    file.note_written();
    let written = at(&file, descriptor, place, |offset| write_parts(&opened, parts, offset));
    if file.appends() && matches!((place, &written), (At::Position, Some(Ok(count))) if *count > 0) {
        to_end(descriptor, &opened);
    }
    written
}

/// Moves the position behind data that were written to the end.
fn to_end(descriptor: c_int, opened: &Opened) {
    if let Ok(attributes) = opened.file_system.attributes(opened.inode) {
        kernel::seek(descriptor, attributes.size_bytes as i64, libc::SEEK_SET);
    }
}

fn one(base: *const c_void, length: usize) -> libc::iovec {
    libc::iovec { iov_base: base.cast_mut(), iov_len: length }
}

fn move_to(descriptor: c_int, offset: i64, whence: c_int) -> Taken<i64> {
    let from = match whence {
        libc::SEEK_END | libc::SEEK_DATA | libc::SEEK_HOLE => opened(descriptor)?.1,
        // The position is the kernel's.
        _ => return None,
    };
    let to = if whence == libc::SEEK_END {
        let size = from.file_system.attributes(from.inode).map(|attributes| attributes.size_bytes as i64);
        size.and_then(|size| size.checked_add(offset).ok_or(Errno::OVERFLOW))
    } else {
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO);
        let found =
            offset.and_then(|offset| from.file_system.seek(from.handle, offset, whence == libc::SEEK_HOLE));
        found.map(|found| found as i64)
    };
    Some(to.and_then(|to| match kernel::seek(descriptor, to, libc::SEEK_SET) {
        to if to >= 0 => Ok(to),
        _ => Err(Errno::INVAL),
    }))
}

/// A file of the program, and the same in the file system.
type Both = (Arc<OpenFile>, Arc<Opened>);

/// A file that may be changed.
fn changeable(descriptor: c_int, refusal: Errno) -> Taken<Both> {
    let (file, opened) = opened(descriptor)?;
    Some(if file.writable { Ok((file, opened)) } else { Err(refusal) })
}

fn cut(descriptor: c_int, length: i64) -> Taken<c_int> {
    let (file, opened) = match changeable(descriptor, Errno::INVAL)? {
        Ok(both) => both,
        Err(error) => return Some(Err(error)),
    };
    let Ok(size) = u64::try_from(length) else { return Some(Err(Errno::INVAL)) };
    file.note_written();
    let to = SetAttributes { size_bytes: Some(size), ..SetAttributes::default() };
    Some(opened.file_system.set_attributes(opened.inode, &to).map(|_| 0))
}

fn make_durable(descriptor: c_int, data_only: bool) -> Taken<c_int> {
    let (file, opened) = opened(descriptor)?;
    let done = file.flush().and_then(|()| opened.file_system.sync(opened.handle, data_only));
    Some(done.map(|()| 0))
}

fn allocate_range(descriptor: c_int, mode: c_int, offset: i64, length: i64) -> Taken<c_int> {
    let (file, opened) = match changeable(descriptor, Errno::BADF)? {
        Ok(both) => both,
        Err(error) => return Some(Err(error)),
    };
    let (hole, keep) = (libc::FALLOC_FL_PUNCH_HOLE, libc::FALLOC_FL_KEEP_SIZE);
    if mode & !(hole | keep) != 0 || mode & hole != 0 && mode & keep == 0 {
        return Some(Err(Errno::OPNOTSUPP));
    }
    let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(length)) else {
        return Some(Err(Errno::INVAL));
    };
    if length == 0 {
        return Some(Err(Errno::INVAL));
    }
    file.note_written();
    let (hole, keep) = (mode & hole != 0, mode & keep != 0);
    Some(opened.file_system.allocate(opened.handle, offset, length, hole, keep).map(|()| 0))
}

/// `posix_fallocate` gives its error as its value.
fn reserve(descriptor: c_int, offset: i64, length: i64) -> Taken<c_int> {
    let done = allocate_range(descriptor, 0, offset, length)?;
    Some(Ok(done.map_or_else(Errno::raw_os_error, |_| 0)))
}

take!(Read: fn read(fd: c_int, buffer: *mut c_void, length: usize) -> isize,
    when is_known(fd), = transfer_in(fd, &one(buffer, length), 1, At::Position));
take!(Read: fn __read_chk(fd: c_int, buffer: *mut c_void, length: usize, room: usize) -> isize,
    when is_known(fd) && length <= room, = transfer_in(fd, &one(buffer, length), 1, At::Position));
take_all!(Read: [pread, pread64] (fd: c_int, buffer: *mut c_void, length: usize, offset: i64) -> isize,
    when is_known(fd), = transfer_in(fd, &one(buffer, length), 1, At::Offset(offset)));
take_all!(Read: [__pread_chk, __pread64_chk]
    (fd: c_int, buffer: *mut c_void, length: usize, offset: i64, room: usize) -> isize,
    when is_known(fd) && length <= room, = transfer_in(fd, &one(buffer, length), 1, At::Offset(offset)));
take!(Read: fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize,
    when is_known(fd), = transfer_in(fd, parts, count, At::Position));
take_all!(Read: [preadv, preadv64] (fd: c_int, parts: *const libc::iovec, count: c_int, offset: i64) -> isize,
    when is_known(fd), = transfer_in(fd, parts, count, At::Offset(offset)));
take!(Write: fn write(fd: c_int, buffer: *const c_void, length: usize) -> isize,
    when is_known(fd), = transfer_out(fd, &one(buffer, length), 1, At::Position));
take_all!(Write: [pwrite, pwrite64] (fd: c_int, buffer: *const c_void, length: usize, offset: i64) -> isize,
    when is_known(fd), = transfer_out(fd, &one(buffer, length), 1, At::Offset(offset)));
take!(Write: fn writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize,
    when is_known(fd), = transfer_out(fd, parts, count, At::Position));
take_all!(Write: [pwritev, pwritev64]
    (fd: c_int, parts: *const libc::iovec, count: c_int, offset: i64) -> isize,
    when is_known(fd), = transfer_out(fd, parts, count, At::Offset(offset)));
take_all!(Lseek: [lseek, lseek64] (fd: c_int, offset: i64, whence: c_int) -> i64,
    when is_known(fd), = move_to(fd, offset, whence));
take_all!(Ftruncate: [ftruncate, ftruncate64] (fd: c_int, length: i64) -> c_int,
    when is_known(fd), = cut(fd, length));
take!(Fsync: fn fsync(fd: c_int) -> c_int, when is_known(fd), = make_durable(fd, false));
take!(Fsync: fn fdatasync(fd: c_int) -> c_int, when is_known(fd), = make_durable(fd, true));
take_all!(Fallocate: [fallocate, fallocate64] (fd: c_int, mode: c_int, offset: i64, length: i64) -> c_int,
    when is_known(fd), = allocate_range(fd, mode, offset, length));
take_all!(Fallocate: [posix_fallocate, posix_fallocate64] (fd: c_int, offset: i64, length: i64) -> c_int,
    when is_known(fd), = reserve(fd, offset, length));
