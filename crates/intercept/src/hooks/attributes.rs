//! Attributes of files: the families of `stat`, `access`, `chmod`, `chown`, `utime` and `truncate`.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint};

use dfs::{Attributes, Errno, FileKind, FileSystem, Inode, SetAttributes, SetTime, Timestamp};

use crate::enter::Taken;
use crate::hooks::start::opened;
use crate::hooks::{kernel, take, take_all};
use crate::paths::{self, Located, Stop};
use crate::permission::{self, READ, SEARCH, WRITE};
use crate::state::is_known;
use crate::views;

/// Unit of `st_blocks`, in bytes.
const BLOCK_BYTES: u64 = 512;

/// The place of a path, or what the call gives without one.
pub(crate) fn place<T>(directory: c_int, path: *const c_char, follow: bool) -> Result<Located, Taken<T>> {
    let path = kernel::path(path).ok_or(None)?;
    paths::walk(directory, path, follow).map_err(|stop| match stop {
        Stop::Leave => None,
        Stop::Fail(error) => Some(Err(error)),
    })
}

/// An entry that is there, or what the call gives without one.
pub(crate) fn entry<T>(
    directory: c_int,
    path: *const c_char,
    follow: bool,
) -> Result<(Located, Attributes), Taken<T>> {
    let place = place(directory, path, follow)?;
    let found = place.found.ok_or(Some(Err(Errno::NOENT)))?;
    if place.is_directory_meant && found.kind != FileKind::Directory {
        return Err(Some(Err(Errno::NOTDIR)));
    }
    Ok((place, found))
}

/// Carries `work` out on the inode of an entry, with a reference held.
pub(crate) fn with_inode<T>(
    place: &Located,
    work: impl FnOnce(&dyn FileSystem, Inode) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let file_system = &*place.file_system;
    let Some(parent) = &place.parent else { return work(file_system, Inode::ROOT) };
    let inode = file_system.look_up(parent.inode, &place.name)?.inode;
    let done = work(file_system, inode);
    file_system.forget(inode, 1);
    done
}

/// Whether nothing of a mount may be changed.
pub(crate) fn is_read_only(mount: usize) -> bool {
    views::all().get(mount).is_none_or(|view| view.mount.read_only)
}

fn kind_bits(kind: FileKind) -> u32 {
    match kind {
        FileKind::File => libc::S_IFREG,
        FileKind::Directory => libc::S_IFDIR,
        FileKind::Symlink => libc::S_IFLNK,
        FileKind::Fifo => libc::S_IFIFO,
        FileKind::Socket => libc::S_IFSOCK,
        FileKind::CharacterDevice => libc::S_IFCHR,
        FileKind::BlockDevice => libc::S_IFBLK,
    }
}

fn device_of(mount: usize) -> u64 {
    views::all().get(mount).map_or(0, |view| view.device)
}

fn stat_of(mount: usize, from: &Attributes) -> libc::stat {
    // SAFETY: zeros are attributes, of no file.
    let mut to: libc::stat = unsafe { std::mem::zeroed() };
    to.st_dev = device_of(mount);
    to.st_ino = from.inode.0;
    to.st_mode = kind_bits(from.kind) | u32::from(from.permissions);
    // The type of links differs between architectures.
    to.st_nlink = from.links as _;
    to.st_uid = from.owner.user;
    to.st_gid = from.owner.group;
    to.st_rdev = from.device.into();
    to.st_size = from.size_bytes as i64;
    to.st_blksize = from.block_size_bytes as _;
    to.st_blocks = from.stored_bytes.div_ceil(BLOCK_BYTES) as i64;
    (to.st_atime, to.st_atime_nsec) = (from.accessed.seconds, from.accessed.nanoseconds.into());
    (to.st_mtime, to.st_mtime_nsec) = (from.modified.seconds, from.modified.nanoseconds.into());
    (to.st_ctime, to.st_ctime_nsec) = (from.changed.seconds, from.changed.nanoseconds.into());
    to
}

fn statx_of(mount: usize, from: &Attributes) -> libc::statx {
    // SAFETY: zeros are attributes, of no file.
    let mut to: libc::statx = unsafe { std::mem::zeroed() };
    let time = |time: Timestamp| {
        // SAFETY: zeros are a time.
        let mut to: libc::statx_timestamp = unsafe { std::mem::zeroed() };
        (to.tv_sec, to.tv_nsec) = (time.seconds, time.nanoseconds);
        to
    };
    let (device, node) = (device_of(mount), u64::from(from.device));
    to.stx_mask = libc::STATX_BASIC_STATS;
    to.stx_blksize = from.block_size_bytes;
    to.stx_nlink = from.links;
    to.stx_uid = from.owner.user;
    to.stx_gid = from.owner.group;
    to.stx_mode = (kind_bits(from.kind) | u32::from(from.permissions)) as u16;
    to.stx_ino = from.inode.0;
    to.stx_size = from.size_bytes;
    to.stx_blocks = from.stored_bytes.div_ceil(BLOCK_BYTES);
    to.stx_atime = time(from.accessed);
    to.stx_mtime = time(from.modified);
    to.stx_ctime = time(from.changed);
    (to.stx_dev_major, to.stx_dev_minor) = (libc::major(device), libc::minor(device));
    (to.stx_rdev_major, to.stx_rdev_minor) = (libc::major(node), libc::minor(node));
    to
}

/// Attributes that a call with a directory, a path and flags means, with the number of the mount.
fn found_at(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
) -> Result<(usize, Attributes), Taken<c_int>> {
    let is_empty = kernel::path(path).is_none_or(<[u8]>::is_empty);
    if is_empty && flags & libc::AT_EMPTY_PATH != 0 {
        return found_of(directory).ok_or(None)?.map_err(|error| Some(Err(error)));
    }
    let (place, found) = entry(directory, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?;
    Ok((place.mount, found))
}

/// Attributes of an open file.
fn found_of(descriptor: c_int) -> Option<Result<(usize, Attributes), Errno>> {
    if !is_known(descriptor) {
        return None;
    }
    let (file, opened) = opened(descriptor)?;
    Some(opened.file_system.attributes(opened.inode).map(|found| (file.mount, found)))
}

/// Gives attributes to the program by `put`.
fn give(
    found: Result<(usize, Attributes), Taken<c_int>>,
    put: impl FnOnce(usize, &Attributes),
) -> Taken<c_int> {
    match found {
        Ok((mount, found)) => {
            put(mount, &found);
            Some(Ok(0))
        }
        Err(taken) => taken,
    }
}

fn stat_at(directory: c_int, path: *const c_char, to: *mut libc::stat, flags: c_int) -> Taken<c_int> {
    // SAFETY: the program gives room for attributes.
    give(found_at(directory, path, flags), |mount, found| unsafe { to.write(stat_of(mount, found)) })
}

fn stat_open(descriptor: c_int, to: *mut libc::stat) -> Taken<c_int> {
    let found = found_of(descriptor)?.map_err(|error| Some(Err(error)));
    // SAFETY: as above.
    give(found, |mount, found| unsafe { to.write(stat_of(mount, found)) })
}

fn statx_at(directory: c_int, path: *const c_char, flags: c_int, to: *mut libc::statx) -> Taken<c_int> {
    // SAFETY: as above.
    give(found_at(directory, path, flags), |mount, found| unsafe { to.write(statx_of(mount, found)) })
}

fn access_at(directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> Taken<c_int> {
    // SAFETY: both cannot fail.
    let is_other = unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() };
    if is_other && flags & libc::AT_EACCESS == 0 {
        return None;
    }
    let (place, found) = match entry(directory, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0) {
        Ok(both) => both,
        Err(taken) => return taken,
    };
    let is_runnable = found.kind == FileKind::Directory || found.permissions & 0o111 != 0;
    let wanted = [(libc::R_OK, READ), (libc::W_OK, WRITE), (libc::X_OK, SEARCH)];
    let is_allowed = wanted.iter().filter(|(bit, _)| mode & bit != 0).all(|(bit, access)| {
        let is_refused =
            *bit == libc::W_OK && is_read_only(place.mount) || *bit == libc::X_OK && !is_runnable;
        !is_refused && permission::allows(&found, *access)
    });
    // What is not clearly allowed the kernel refuses in its own words.
    is_allowed.then_some(Ok(0))
}

/// Changes attributes of an entry, where `may` says that the program clearly may.
fn change_at(
    directory: c_int,
    path: *const c_char,
    follow: bool,
    may: impl FnOnce(&Attributes) -> bool,
    to: &SetAttributes,
) -> Taken<c_int> {
    let (place, found) = match entry(directory, path, follow) {
        Ok(both) => both,
        Err(taken) => return taken,
    };
    if is_read_only(place.mount) || !may(&found) {
        return None;
    }
    let done = with_inode(&place, |file_system, inode| file_system.set_attributes(inode, to));
    if found.kind == FileKind::Directory {
        paths::forget_directories();
    }
    Some(done.map(|_| 0))
}

/// The same for an open file.
fn change_open(descriptor: c_int, may: impl FnOnce(&Attributes) -> bool, to: &SetAttributes) -> Taken<c_int> {
    let (file, opened) = opened(descriptor)?;
    let found = match opened.file_system.attributes(opened.inode) {
        Ok(found) => found,
        Err(error) => return Some(Err(error)),
    };
    if is_read_only(file.mount) || !may(&found) {
        return None;
    }
    Some(opened.file_system.set_attributes(opened.inode, to).map(|_| 0))
}

fn permissions(mode: u32) -> SetAttributes {
    SetAttributes { permissions: Some((mode & 0o7777) as u16), ..SetAttributes::default() }
}

/// Whether the program may set these permissions: bits that lend rights are checked by the kernel.
fn may_set(mode: u32) -> impl Fn(&Attributes) -> bool {
    move |found| permission::owns(found) && (permission::user() == 0 || mode & 0o6000 == 0)
}

fn owner(user: u32, group: u32) -> SetAttributes {
    let given = |number: u32| (number != u32::MAX).then_some(number);
    SetAttributes { user: given(user), group: given(group), ..SetAttributes::default() }
}

/// Whether the program may give a file away: bits that lend rights go when it does, which the kernel sees to.
fn may_give(found: &Attributes) -> bool {
    permission::user() == 0 && found.permissions & 0o6000 == 0
}

/// The times of a call; none where it names no valid ones.
fn times(of: *const libc::timespec) -> Option<SetAttributes> {
    let set = |time: &libc::timespec| match time.tv_nsec {
        libc::UTIME_OMIT => Some(None),
        libc::UTIME_NOW => Some(Some(SetTime::Now)),
        part => {
            let nanoseconds = u32::try_from(part).ok().filter(|part| *part < 1_000_000_000)?;
            Some(Some(SetTime::To(Timestamp { seconds: time.tv_sec, nanoseconds })))
        }
    };
    if of.is_null() {
        let now = Some(SetTime::Now);
        return Some(SetAttributes { accessed: now, modified: now, ..SetAttributes::default() });
    }
    // SAFETY: the program gives two times.
    let both = unsafe { std::slice::from_raw_parts(of, 2) };
    Some(SetAttributes { accessed: set(&both[0])?, modified: set(&both[1])?, ..SetAttributes::default() })
}

/// Microseconds as the older calls have them.
fn times_of_day(of: *const libc::timeval) -> Option<[libc::timespec; 2]> {
    if of.is_null() {
        let now = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
        return Some([now, now]);
    }
    // SAFETY: the program gives two times.
    let both = unsafe { std::slice::from_raw_parts(of, 2) };
    let time = |time: &libc::timeval| {
        let part = (0..1_000_000).contains(&time.tv_usec).then_some(time.tv_usec)?;
        Some(libc::timespec { tv_sec: time.tv_sec, tv_nsec: part * 1000 })
    };
    Some([time(&both[0])?, time(&both[1])?])
}

fn touch_at(directory: c_int, path: *const c_char, of: *const libc::timespec, flags: c_int) -> Taken<c_int> {
    let to = times(of)?;
    if path.is_null() {
        return if is_known(directory) { change_open(directory, permission::owns, &to) } else { None };
    }
    if flags & !libc::AT_SYMLINK_NOFOLLOW != 0 {
        return None;
    }
    change_at(directory, path, flags == 0, permission::owns, &to)
}

fn truncate_at(path: *const c_char, length: i64) -> Taken<c_int> {
    let size = u64::try_from(length).ok()?;
    let to = SetAttributes { size_bytes: Some(size), ..SetAttributes::default() };
    let may = |found: &Attributes| {
        // Bits that lend rights go with a change of the data, which the kernel sees to.
        found.kind == FileKind::File && found.permissions & 0o6000 == 0 && permission::allows(found, WRITE)
    };
    change_at(libc::AT_FDCWD, path, true, may, &to)
}

const HERE: c_int = libc::AT_FDCWD;
const NOFOLLOW: c_int = libc::AT_SYMLINK_NOFOLLOW;

take_all!(Stat: [stat, stat64] (path: *const c_char, to: *mut libc::stat) -> c_int,
    when true, = stat_at(HERE, path, to, 0));
take_all!(Stat: [lstat, lstat64] (path: *const c_char, to: *mut libc::stat) -> c_int,
    when true, = stat_at(HERE, path, to, NOFOLLOW));
take_all!(Stat: [fstatat, fstatat64] (directory: c_int, path: *const c_char, to: *mut libc::stat, flags: c_int) -> c_int,
    when true, = stat_at(directory, path, to, flags));
take_all!(Fstat: [fstat, fstat64] (fd: c_int, to: *mut libc::stat) -> c_int,
    when is_known(fd), = stat_open(fd, to));
take_all!(Stat: [__xstat, __xstat64] (version: c_int, path: *const c_char, to: *mut libc::stat) -> c_int,
    when true, = stat_at(HERE, path, to, 0));
take_all!(Stat: [__lxstat, __lxstat64] (version: c_int, path: *const c_char, to: *mut libc::stat) -> c_int,
    when true, = stat_at(HERE, path, to, NOFOLLOW));
take_all!(Fstat: [__fxstat, __fxstat64] (version: c_int, fd: c_int, to: *mut libc::stat) -> c_int,
    when is_known(fd), = stat_open(fd, to));
take_all!(Stat: [__fxstatat, __fxstatat64]
    (version: c_int, directory: c_int, path: *const c_char, to: *mut libc::stat, flags: c_int) -> c_int,
    when true, = stat_at(directory, path, to, flags));
take!(Stat: fn statx(directory: c_int, path: *const c_char, flags: c_int, mask: c_uint, to: *mut libc::statx) -> c_int,
    when true, = statx_at(directory, path, flags, to));
take!(Access: fn access(path: *const c_char, mode: c_int) -> c_int, when true, = access_at(HERE, path, mode, 0));
take_all!(Access: [euidaccess, eaccess] (path: *const c_char, mode: c_int) -> c_int,
    when true, = access_at(HERE, path, mode, libc::AT_EACCESS));
take!(Access: fn faccessat(directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int,
    when true, = access_at(directory, path, mode, flags));
take!(Chmod: fn chmod(path: *const c_char, mode: u32) -> c_int,
    when true, = change_at(HERE, path, true, may_set(mode), &permissions(mode)));
take!(Chmod: fn fchmodat(directory: c_int, path: *const c_char, mode: u32, flags: c_int) -> c_int,
    when flags == 0, = change_at(directory, path, true, may_set(mode), &permissions(mode)));
take!(Chmod: fn fchmod(fd: c_int, mode: u32) -> c_int,
    when is_known(fd), = change_open(fd, may_set(mode), &permissions(mode)));
take!(Chown: fn chown(path: *const c_char, user: u32, group: u32) -> c_int,
    when true, = change_at(HERE, path, true, may_give, &owner(user, group)));
take!(Chown: fn lchown(path: *const c_char, user: u32, group: u32) -> c_int,
    when true, = change_at(HERE, path, false, may_give, &owner(user, group)));
take!(Chown: fn fchownat(directory: c_int, path: *const c_char, user: u32, group: u32, flags: c_int) -> c_int,
    when flags & !NOFOLLOW == 0, = change_at(directory, path, flags == 0, may_give, &owner(user, group)));
take!(Chown: fn fchown(fd: c_int, user: u32, group: u32) -> c_int,
    when is_known(fd), = change_open(fd, may_give, &owner(user, group)));
take!(Utimens: fn utimensat(directory: c_int, path: *const c_char, of: *const libc::timespec, flags: c_int) -> c_int,
    when true, = touch_at(directory, path, of, flags));
take!(Utimens: fn futimens(fd: c_int, of: *const libc::timespec) -> c_int,
    when is_known(fd), = change_open(fd, permission::owns, &times(of)?));
take!(Utimens: fn utimes(path: *const c_char, of: *const libc::timeval) -> c_int,
    when true, = touch_at(HERE, path, times_of_day(of)?.as_ptr(), 0));
take!(Utimens: fn lutimes(path: *const c_char, of: *const libc::timeval) -> c_int,
    when true, = touch_at(HERE, path, times_of_day(of)?.as_ptr(), NOFOLLOW));
take!(Utimens: fn futimes(fd: c_int, of: *const libc::timeval) -> c_int,
    when is_known(fd), = change_open(fd, permission::owns, &times(times_of_day(of)?.as_ptr())?));
take_all!(Truncate: [truncate, truncate64] (path: *const c_char, length: i64) -> c_int,
    when true, = truncate_at(path, length));
