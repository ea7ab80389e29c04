//! Opening of files.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use dfs::Errno;

use crate::enter::{self, Taken};
use crate::hooks::start::take_file;
use crate::hooks::{kernel, take_all};
use crate::real::real;
use crate::{paths, views};

/// Flags of descriptors that hold no data.
const NO_DATA: c_int = libc::O_PATH | libc::O_DIRECTORY;

/// Opens a file on a mount: the kernel's descriptor by direct I/O, so that the kernel keeps nothing that this library changes.
pub(crate) fn open_at(directory: c_int, path: *const c_char, flags: c_int, mode: u32) -> Taken<c_int> {
    if flags & NO_DATA != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE {
        return None;
    }
    let (mount, _) = paths::classify(directory, kernel::path(path)?)?;
    views::file_system(mount)?;
    let open =
        |flags: c_int| real!(openat(directory: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int);
    let mut descriptor = open(flags | libc::O_DIRECT);
    if descriptor < 0 && enter::errno() == libc::EINVAL {
        // Directories, pipes and devices know no direct I/O.
        descriptor = open(flags);
        return Some(if descriptor < 0 { Err(last_error()) } else { Ok(descriptor) });
    }
    if descriptor < 0 {
        return Some(Err(last_error()));
    }
    if flags & libc::O_DIRECT == 0
        && let Some(now) = kernel::flags(descriptor)
    {
        kernel::set_flags(descriptor, now & !libc::O_DIRECT);
    }
    take_file(descriptor, mount, flags);
    Some(Ok(descriptor))
}

pub(crate) fn last_error() -> Errno {
    Errno::from_raw_os_error(enter::errno())
}

const CREATE: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

take_all!(Open: [open, open64] (path: *const c_char, flags: c_int, mode: u32) -> c_int,
    when true, = open_at(libc::AT_FDCWD, path, flags, mode));
take_all!(Open: [openat, openat64] (directory: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int,
    when true, = open_at(directory, path, flags, mode));
take_all!(Open: [creat, creat64] (path: *const c_char, mode: u32) -> c_int,
    when true, = open_at(libc::AT_FDCWD, path, CREATE, mode));
take_all!(Open: [__open_2, __open64_2] (path: *const c_char, flags: c_int) -> c_int,
    when true, = open_at(libc::AT_FDCWD, path, flags, 0));
take_all!(Open: [__openat_2, __openat64_2] (directory: c_int, path: *const c_char, flags: c_int) -> c_int,
    when true, = open_at(directory, path, flags, 0));
