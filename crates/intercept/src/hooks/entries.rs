//! Entries of directories: made, removed, renamed, linked.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Arc;

use dfs::{Attributes, Errno, FileKind, Owner, RenameFlags};

use crate::enter::Taken;
use crate::hooks::attributes::{entry, is_read_only, place, with_inode};
use crate::hooks::start::{bytes_mut, masked};
use crate::hooks::{kernel, take, take_all};
use crate::paths::{self, Directory, Located};
use crate::permission;

/// Whether a path ends in `.` or `..`, which calls that change entries refuse, each in its own words.
fn ends_in_dots(path: *const c_char) -> bool {
    let path = kernel::path(path).unwrap_or_default();
    let last = path.split(|byte| *byte == b'/').rfind(|part| !part.is_empty());
    matches!(last, None | Some(b"." | b".."))
}

/// The directory of an entry that is to be changed; none where the kernel shall decide.
fn changed(place: &Located) -> Option<&Arc<Directory>> {
    let parent = place.parent.as_ref()?;
    (!is_read_only(place.mount) && permission::may_change(&parent.attributes)).then_some(parent)
}

fn remove_at(directory: c_int, path: *const c_char, is_directory: bool) -> Taken<c_int> {
    if ends_in_dots(path) {
        return None;
    }
    let (place, found) = match entry(directory, path, false) {
        Ok(both) => both,
        Err(taken) => return taken,
    };
    let parent = changed(&place)?;
    if !permission::may_remove(&parent.attributes, &found) {
        return None;
    }
    let removed = match (is_directory, found.kind == FileKind::Directory) {
        (true, true) => {
            let removed = place.file_system.remove_directory(parent.inode, &place.name);
            paths::forget_directories();
            removed
        }
        (false, false) => place.file_system.unlink(parent.inode, &place.name),
        (true, false) => Err(Errno::NOTDIR),
        (false, true) => Err(Errno::ISDIR),
    };
    Some(removed.map(|()| 0))
}

/// `remove`: a file or an empty directory.
fn remove_any(path: *const c_char) -> Taken<c_int> {
    let (_, found) = match entry(libc::AT_FDCWD, path, false) {
        Ok(both) => both,
        Err(taken) => return taken,
    };
    remove_at(libc::AT_FDCWD, path, found.kind == FileKind::Directory)
}

/// A name that is free in a directory that the program may change, or what the call gives otherwise.
fn free(directory: c_int, path: *const c_char) -> Result<Located, Taken<c_int>> {
    if ends_in_dots(path) {
        return Err(None);
    }
    let place = place(directory, path, false)?;
    if place.found.is_some() {
        return Err(Some(Err(Errno::EXIST)));
    }
    if changed(&place).is_none() {
        return Err(None);
    }
    Ok(place)
}

/// Owner of what the program makes in a directory.
fn owner_in(directory: &Attributes) -> Owner {
    let is_inherited = u32::from(directory.permissions) & libc::S_ISGID != 0;
    let group = if is_inherited { directory.owner.group } else { permission::group() };
    Owner { user: permission::user(), group }
}

/// Makes an entry by `make`, and gives its reference back.
fn make(
    directory: c_int,
    path: *const c_char,
    make: impl FnOnce(&Located, &Directory) -> Result<Attributes, Errno>,
) -> Taken<c_int> {
    let place = match free(directory, path) {
        Ok(place) => place,
        Err(taken) => return taken,
    };
    let parent = place.parent.as_ref()?;
    let made = make(&place, parent);
    Some(made.map(|made| {
        place.file_system.forget(made.inode, 1);
        0
    }))
}

fn make_directory(directory: c_int, path: *const c_char, mode: u32) -> Taken<c_int> {
    make(directory, path, |place, parent| {
        let inherited = parent.attributes.permissions & libc::S_ISGID as u16;
        let permissions = masked(mode & 0o1777) | inherited;
        let owner = owner_in(&parent.attributes);
        place.file_system.make_directory(parent.inode, &place.name, permissions, owner)
    })
}

fn make_symlink(target: *const c_char, directory: c_int, path: *const c_char) -> Taken<c_int> {
    let target = kernel::path(target).filter(|target| !target.is_empty())?;
    if kernel::path(path)?.ends_with(b"/") {
        return None;
    }
    make(directory, path, |place, parent| {
        place.file_system.make_symlink(parent.inode, &place.name, target, owner_in(&parent.attributes))
    })
}

fn link_at(from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_int) -> Taken<c_int> {
    if flags & !libc::AT_SYMLINK_FOLLOW != 0 || kernel::path(new)?.ends_with(b"/") {
        return None;
    }
    let (source, found) = match entry(from, old, flags != 0) {
        Ok(both) => both,
        Err(taken) => return taken,
    };
    // Other users' files are linked as the kernel's protection has it.
    if found.kind == FileKind::Directory || !permission::owns(&found) {
        return None;
    }
    let target = match free(to, new) {
        Ok(target) if target.mount == source.mount => target,
        Ok(_) => return None,
        Err(taken) => return taken,
    };
    let parent = target.parent.as_ref()?;
    let made = with_inode(&source, |file_system, inode| file_system.link(inode, parent.inode, &target.name));
    Some(made.map(|made| {
        target.file_system.forget(made.inode, 1);
        0
    }))
}

fn rename_at(from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_uint) -> Taken<c_int> {
    if flags & !(libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE) != 0
        || ends_in_dots(old)
        || ends_in_dots(new)
    {
        return None;
    }
    let (source, found) = match entry(from, old, false) {
        Ok(both) => both,
        Err(taken) => return taken,
    };
    let target = match place(to, new, false) {
        Ok(target) => target,
        Err(taken) => return taken,
    };
    // Directories, which must not come to lie in themselves, are the kernel's.
    let is_directory =
        |found: Option<Attributes>| found.is_some_and(|found| found.kind == FileKind::Directory);
    if source.mount != target.mount || is_directory(Some(found)) || is_directory(target.found) {
        paths::forget_directories();
        return None;
    }
    if source.is_directory_meant || target.is_directory_meant {
        return None;
    }
    let (parent, new_parent) = (changed(&source)?, changed(&target)?);
    let may_replace = target.found.is_none_or(|found| permission::may_remove(&new_parent.attributes, &found));
    if !may_replace || !permission::may_remove(&parent.attributes, &found) {
        return None;
    }
    let how = RenameFlags {
        no_replace: flags & libc::RENAME_NOREPLACE != 0,
        exchange: flags & libc::RENAME_EXCHANGE != 0,
    };
    if how.no_replace && how.exchange {
        return Some(Err(Errno::INVAL));
    }
    let (file_system, name) = (&source.file_system, &source.name);
    Some(file_system.rename(parent.inode, name, new_parent.inode, &target.name, how).map(|()| 0))
}

fn read_link_at(directory: c_int, path: *const c_char, to: *mut c_char, room: usize) -> Taken<isize> {
    let (place, found) = match entry(directory, path, false) {
        Ok(both) => both,
        Err(taken) => return taken,
    };
    if found.kind != FileKind::Symlink || room == 0 {
        return Some(Err(Errno::INVAL));
    }
    Some(with_inode(&place, |file_system, inode| file_system.read_link(inode)).map(|target| {
        let length = target.len().min(room);
        // SAFETY: the program gives this much room.
        unsafe { bytes_mut(to.cast(), length) }.copy_from_slice(&target[..length]);
        length as isize
    }))
}

const HERE: c_int = libc::AT_FDCWD;

take!(Unlink: fn unlink(path: *const c_char) -> c_int, when true, = remove_at(HERE, path, false));
take!(Unlink: fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int,
    when flags & !libc::AT_REMOVEDIR == 0, = remove_at(directory, path, flags != 0));
take!(Rmdir: fn rmdir(path: *const c_char) -> c_int, when true, = remove_at(HERE, path, true));
take!(Unlink: fn remove(path: *const c_char) -> c_int, when true, = remove_any(path));
take!(Mkdir: fn mkdir(path: *const c_char, mode: u32) -> c_int, when true, = make_directory(HERE, path, mode));
take!(Mkdir: fn mkdirat(directory: c_int, path: *const c_char, mode: u32) -> c_int,
    when true, = make_directory(directory, path, mode));
take!(Rename: fn rename(old: *const c_char, new: *const c_char) -> c_int,
    when true, = rename_at(HERE, old, HERE, new, 0));
take!(Rename: fn renameat(from: c_int, old: *const c_char, to: c_int, new: *const c_char) -> c_int,
    when true, = rename_at(from, old, to, new, 0));
take!(Rename: fn renameat2(from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_uint) -> c_int,
    when true, = rename_at(from, old, to, new, flags));
take!(Symlink: fn symlink(target: *const c_char, path: *const c_char) -> c_int,
    when true, = make_symlink(target, HERE, path));
take!(Symlink: fn symlinkat(target: *const c_char, directory: c_int, path: *const c_char) -> c_int,
    when true, = make_symlink(target, directory, path));
take!(Link: fn link(old: *const c_char, new: *const c_char) -> c_int,
    when true, = link_at(HERE, old, HERE, new, 0));
take!(Link: fn linkat(from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_int) -> c_int,
    when true, = link_at(from, old, to, new, flags));
take!(Readlink: fn readlink(path: *const c_char, to: *mut c_char, room: usize) -> isize,
    when true, = read_link_at(HERE, path, to, room));
take!(Readlink: fn readlinkat(directory: c_int, path: *const c_char, to: *mut c_char, room: usize) -> isize,
    when true, = read_link_at(directory, path, to, room));
take_all!(Readlink: [__readlink_chk] (path: *const c_char, to: *mut c_char, length: usize, room: usize) -> isize,
    when length <= room, = read_link_at(HERE, path, to, length));
take_all!(Readlink: [__readlinkat_chk]
    (directory: c_int, path: *const c_char, to: *mut c_char, length: usize, room: usize) -> isize,
    when length <= room, = read_link_at(directory, path, to, length));
