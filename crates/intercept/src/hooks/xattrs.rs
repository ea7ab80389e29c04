//! Extended attributes.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

use dfs::{Attributes, Errno, FileSystem, Inode};

use crate::enter::Taken;
use crate::hooks::attributes::{entry, is_read_only, with_inode};
use crate::hooks::start::{bytes, bytes_mut, opened};
use crate::hooks::{kernel, take};
use crate::permission::{self, READ, WRITE};
use crate::state::is_known;

/// Attributes of users, which permissions of the file guard; others are the kernel's to judge.
const USER: &[u8] = b"user.";

/// A file that a call names.
#[derive(Clone, Copy)]
enum File {
    Path(*const c_char, bool),
    Open(c_int),
}

fn is_of_users(name: *const c_char) -> bool {
    kernel::path(name).is_some_and(|name| name.starts_with(USER) && name != b"user.strata.endpoint")
}

/// Carries `work` out on a file that the program has this access to; `changes` where the work does.
fn on<T>(file: File, access: u16, work: impl FnOnce(&dyn FileSystem, Inode) -> Result<T, Errno>) -> Taken<T> {
    let may = |mount: usize, found: &Attributes| {
        permission::allows(found, access) && (access != WRITE || !is_read_only(mount))
    };
    match file {
        File::Path(path, follow) => match entry(libc::AT_FDCWD, path, follow) {
            Ok((place, found)) if may(place.mount, &found) => Some(with_inode(&place, work)),
            Ok(_) => None,
            Err(taken) => taken,
        },
        File::Open(descriptor) => {
            let (file, opened) = opened(descriptor)?;
            let found = opened.file_system.attributes(opened.inode).ok()?;
            may(file.mount, &found).then(|| work(&*opened.file_system, opened.inode))
        }
    }
}

/// Gives a value to the program, or its length alone where there is no room.
fn given(value: &[u8], to: *mut c_void, room: usize) -> Result<isize, Errno> {
    if room > 0 {
        if value.len() > room {
            return Err(Errno::RANGE);
        }
        // SAFETY: the program gives this much room.
        unsafe { bytes_mut(to, value.len()) }.copy_from_slice(value);
    }
    Ok(value.len() as isize)
}

fn get(file: File, name: *const c_char, to: *mut c_void, room: usize) -> Taken<isize> {
    let name = kernel::path(name)?;
    let value = on(file, READ, |file_system, inode| file_system.xattr(inode, name))?;
    Some(value.and_then(|value| given(&value, to, room)))
}

fn list(file: File, to: *mut c_char, room: usize) -> Taken<isize> {
    let names = on(file, READ, |file_system, inode| file_system.list_xattrs(inode))?;
    Some(names.and_then(|names| {
        let list: Vec<u8> = names.iter().flat_map(|name| name.iter().chain(b"\0")).copied().collect();
        given(&list, to.cast(), room)
    }))
}

fn set(file: File, name: *const c_char, value: *const c_void, length: usize, flags: c_int) -> Taken<c_int> {
    let name = kernel::path(name)?;
    if flags & !(libc::XATTR_CREATE | libc::XATTR_REPLACE) != 0 || length > 65536 {
        return None;
    }
    // SAFETY: the program gives a value of this length.
    let value = unsafe { bytes(value, length) };
    let (create, replace) = (flags & libc::XATTR_CREATE != 0, flags & libc::XATTR_REPLACE != 0);
    let set =
        on(file, WRITE, |file_system, inode| file_system.set_xattr(inode, name, value, create, replace))?;
    Some(set.map(|()| 0))
}

fn remove(file: File, name: *const c_char) -> Taken<c_int> {
    let name = kernel::path(name)?;
    Some(on(file, WRITE, |file_system, inode| file_system.remove_xattr(inode, name))?.map(|()| 0))
}

take!(Getxattr: fn getxattr(path: *const c_char, name: *const c_char, to: *mut c_void, room: usize) -> isize,
    when is_of_users(name), = get(File::Path(path, true), name, to, room));
take!(Getxattr: fn lgetxattr(path: *const c_char, name: *const c_char, to: *mut c_void, room: usize) -> isize,
    when is_of_users(name), = get(File::Path(path, false), name, to, room));
take!(Getxattr: fn fgetxattr(fd: c_int, name: *const c_char, to: *mut c_void, room: usize) -> isize,
    when is_known(fd) && is_of_users(name), = get(File::Open(fd), name, to, room));
take!(Setxattr: fn setxattr(path: *const c_char, name: *const c_char, value: *const c_void, length: usize, flags: c_int)
    -> c_int, when is_of_users(name), = set(File::Path(path, true), name, value, length, flags));
take!(Setxattr: fn lsetxattr(path: *const c_char, name: *const c_char, value: *const c_void, length: usize, flags: c_int)
    -> c_int, when is_of_users(name), = set(File::Path(path, false), name, value, length, flags));
take!(Setxattr: fn fsetxattr(fd: c_int, name: *const c_char, value: *const c_void, length: usize, flags: c_int)
    -> c_int, when is_known(fd) && is_of_users(name), = set(File::Open(fd), name, value, length, flags));
take!(Listxattr: fn listxattr(path: *const c_char, to: *mut c_char, room: usize) -> isize,
    when true, = list(File::Path(path, true), to, room));
take!(Listxattr: fn llistxattr(path: *const c_char, to: *mut c_char, room: usize) -> isize,
    when true, = list(File::Path(path, false), to, room));
take!(Listxattr: fn flistxattr(fd: c_int, to: *mut c_char, room: usize) -> isize,
    when is_known(fd), = list(File::Open(fd), to, room));
take!(Removexattr: fn removexattr(path: *const c_char, name: *const c_char) -> c_int,
    when is_of_users(name), = remove(File::Path(path, true), name));
take!(Removexattr: fn lremovexattr(path: *const c_char, name: *const c_char) -> c_int,
    when is_of_users(name), = remove(File::Path(path, false), name));
take!(Removexattr: fn fremovexattr(fd: c_int, name: *const c_char) -> c_int,
    when is_known(fd) && is_of_users(name), = remove(File::Open(fd), name));
