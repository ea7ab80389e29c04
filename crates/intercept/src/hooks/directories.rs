//! Listing of directories.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_long};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::directories::OpenDirectory;
use crate::enter::Taken;
use crate::hooks::opening::last_error;
use crate::hooks::{kernel, take, take_all};
use crate::real::real;
use crate::{paths, state, views};

/// Takes over a directory that the C library has opened, where it lies on a mount.
fn note(opened: *mut libc::DIR) -> Taken<*mut libc::DIR> {
    if opened.is_null() {
        return Some(Err(last_error()));
    }
    let descriptor = real!(dirfd(opened: *mut libc::DIR) -> c_int);
    let inside = paths::of_descriptor(descriptor).and_then(|path| views::inside(&path));
    if let Some((mount, names)) = inside.filter(|(mount, _)| views::file_system(*mount).is_some()) {
        let new = Arc::new(Mutex::new(OpenDirectory::new(mount, names)));
        let before = state::write().directories.insert(opened as usize, new);
        drop(before);
    }
    Some(Ok(opened))
}

fn open_path(path: *const c_char) -> Taken<*mut libc::DIR> {
    paths::classify(libc::AT_FDCWD, kernel::path(path)?)?;
    note(real!(opendir(path: *const c_char) -> *mut libc::DIR))
}

fn open_descriptor(descriptor: c_int) -> Taken<*mut libc::DIR> {
    let path = paths::of_descriptor(descriptor)?;
    views::inside(&path)?;
    note(real!(fdopendir(descriptor: c_int) -> *mut libc::DIR))
}

fn locked(directory: &Mutex<OpenDirectory>) -> MutexGuard<'_, OpenDirectory> {
    directory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The directory of a stream, where this library reads it.
fn known(stream: *mut libc::DIR) -> Option<Arc<Mutex<OpenDirectory>>> {
    let found = state::read().directories.get(&(stream as usize)).cloned()?;
    let is_read_here = locked(&found).is_read_here();
    is_read_here.then_some(found)
}

fn next(stream: *mut libc::DIR) -> Taken<*mut libc::dirent64> {
    let directory = known(stream)?;
    let entry = locked(&directory).next();
    Some(entry)
}

fn forget<T>(stream: *mut libc::DIR) -> Taken<T> {
    let before = state::write().directories.remove(&(stream as usize));
    drop(before);
    None
}

fn position(stream: *mut libc::DIR) -> Taken<c_long> {
    let directory = known(stream)?;
    let position = locked(&directory).position();
    Some(Ok(position as c_long))
}

fn go_to(stream: *mut libc::DIR, position: c_long) -> Taken<()> {
    let directory = known(stream)?;
    locked(&directory).seek(position as u64);
    Some(Ok(()))
}

take!(Opendir: fn opendir(path: *const c_char) -> *mut libc::DIR, when true, = open_path(path));
take!(Opendir: fn fdopendir(fd: c_int) -> *mut libc::DIR, when true, = open_descriptor(fd));
take_all!(Readdir: [readdir, readdir64] (stream: *mut libc::DIR) -> *mut libc::dirent64,
    when true, = next(stream));
take!(Closedir: fn closedir(stream: *mut libc::DIR) -> c_int, when true, = forget(stream));
take!(Seekdir: fn telldir(stream: *mut libc::DIR) -> c_long, when true, = position(stream));
take!(Seekdir: fn seekdir(stream: *mut libc::DIR, position: c_long) -> (), when true, = go_to(stream, position));
take!(Seekdir: fn rewinddir(stream: *mut libc::DIR) -> (), when true, = go_to(stream, 0));
