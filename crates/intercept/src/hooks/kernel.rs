//! Calls of the kernel that no library takes over.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_long};

/// Facts of a file that the kernel knows without asking the file system.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) is_regular: bool,
}

/// Moves the position of a descriptor; negative where it has none.
pub(crate) fn seek(descriptor: c_int, offset: i64, whence: c_int) -> c_long {
    // SAFETY: lseek takes no memory.
    unsafe { libc::syscall(libc::SYS_lseek, descriptor, offset, whence) }
}

fn statx(directory: c_int, path: &CStr, flags: c_int) -> Option<libc::statx> {
    // SAFETY: zeros are a result without facts.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    let room: *mut libc::statx = &mut found;
    let mask = libc::STATX_BASIC_STATS;
    // SAFETY: the path is a string of C, and the room is that of a result.
    let result = unsafe { libc::syscall(libc::SYS_statx, directory, path.as_ptr(), flags, mask, room) };
    (result == 0).then_some(found)
}

fn device_of(found: &libc::statx) -> u64 {
    libc::makedev(found.stx_dev_major, found.stx_dev_minor)
}

/// Device of a path.
pub(crate) fn device(path: &CStr) -> Option<u64> {
    statx(libc::AT_FDCWD, path, 0).map(|found| device_of(&found))
}

/// Facts of a descriptor, as the kernel has them.
pub(crate) fn facts(descriptor: c_int) -> Option<Facts> {
    let found = statx(descriptor, c"", libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC)?;
    let is_regular = u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    Some(Facts { device: device_of(&found), inode: found.stx_ino, is_regular })
}

/// Has the kernel ask the file system for the attributes of a descriptor anew.
pub(crate) fn refresh(descriptor: c_int) {
    // A descriptor without attributes fails in the call that follows.
    let _ = statx(descriptor, c"", libc::AT_EMPTY_PATH | libc::AT_STATX_FORCE_SYNC);
}

/// Target of a symbolic link.
pub(crate) fn read_link(path: &str) -> Option<Vec<u8>> {
    let path = CString::new(path).ok()?;
    let mut target = vec![0_u8; libc::PATH_MAX as usize];
    let (room, size) = (target.as_mut_ptr(), target.len());
    // SAFETY: the path is a string of C, and the room is as large as said.
    let length = unsafe { libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path.as_ptr(), room, size) };
    target.truncate(usize::try_from(length).ok()?);
    Some(target)
}

/// Absolute path of the working directory, in the room that the caller gives.
pub(crate) fn working_directory(room: &mut [u8]) -> Option<&[u8]> {
    // SAFETY: the room is as large as said.
    let length = unsafe { libc::syscall(libc::SYS_getcwd, room.as_mut_ptr(), room.len()) };
    // The length counts the zero at the end. One that is not below the root begins with a bracket.
    let path = room.get(..usize::try_from(length).ok()?.checked_sub(1)?)?;
    (path.first() == Some(&b'/')).then_some(path)
}

/// Flags of a descriptor.
pub(crate) fn flags(descriptor: c_int) -> Option<c_int> {
    // SAFETY: F_GETFL takes no memory.
    let flags = unsafe { libc::syscall(libc::SYS_fcntl, descriptor, libc::F_GETFL, 0) };
    c_int::try_from(flags).ok().filter(|flags| *flags >= 0)
}

/// Sets flags of a descriptor.
pub(crate) fn set_flags(descriptor: c_int, flags: c_int) {
    // SAFETY: F_SETFL takes no memory. It cannot fail for flags that the descriptor had before.
    unsafe { libc::syscall(libc::SYS_fcntl, descriptor, libc::F_SETFL, flags) };
}

/// Closes a descriptor.
pub(crate) fn close(descriptor: c_int) {
    // SAFETY: the descriptor is this library's own.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// Bytes of a path of the program; none for a null pointer.
pub(crate) fn path<'a>(path: *const c_char) -> Option<&'a [u8]> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the program gives a string of C, which stays while its call runs.
    Some(unsafe { CStr::from_ptr(path) }.to_bytes())
}

/// Another descriptor of the same file, of its own.
pub(crate) fn open_again(descriptor: c_int, flags: c_int) -> Option<c_int> {
    let path = CString::new(format!("/proc/self/fd/{descriptor}")).ok()?;
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the path is a string of C.
    let made = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
    c_int::try_from(made).ok().filter(|made| *made >= 0)
}
