//! The beginning: mounts are found, and descriptors that the program has inherited.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::files::OpenFile;
use crate::hooks::{kernel, take};
use crate::{enter, paths, report, state, views};

/// Variable that turns the library off.
const DISABLE: &str = "STRATA_INTERCEPT_DISABLE";
/// Variable that asks for a report.
const REPORT: &str = "STRATA_INTERCEPT_REPORT";

/// Bits of permissions that new files do not get.
static UMASK: AtomicU32 = AtomicU32::new(0o022);

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    // A program without mounts, or with a library that does not work, goes on as it is.
    let _ = std::panic::catch_unwind(|| enter::apart(begin));
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}

fn begin() {
    if is_set(DISABLE) || !views::find() {
        return;
    }
    if is_set(REPORT) {
        report::begin();
    }
    state::begin();
    UMASK.store(inherited_umask().unwrap_or(0o022), Ordering::Relaxed);
    adopt();
    state::ACTIVE.store(true, Ordering::Relaxed);
}

/// The mask that the kernel has, which no call tells without changing it.
fn inherited_umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

/// Permissions of a new file.
pub(crate) fn masked(mode: u32) -> u16 {
    (mode & 0o7777 & !UMASK.load(Ordering::Relaxed)) as u16
}

/// Takes over descriptors of files on mounts that were open before.
fn adopt() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let descriptors: Vec<c_int> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in descriptors {
        let Some(path) = paths::of_descriptor(descriptor) else { continue };
        let Some((mount, _)) = views::inside(&path) else { continue };
        if let Some(flags) = kernel::flags(descriptor) {
            take_file(descriptor, mount, flags);
        }
    }
}

/// Takes a descriptor over, where it is of a regular file of the mount.
pub(crate) fn take_file(descriptor: c_int, mount: usize, flags: c_int) {
    let facts = kernel::facts(descriptor);
    let device = views::all().get(mount).map(|view| view.device);
    let is_meant = facts.is_some_and(|facts| facts.is_regular && Some(facts.device) == device);
    if is_meant && flags & libc::O_PATH == 0 {
        state::insert(descriptor, Arc::new(OpenFile::new(mount, flags)));
    }
}

/// The file of a descriptor, opened in the file system; one that cannot be is left to the kernel from now on.
pub(crate) fn opened(descriptor: c_int) -> Option<(Arc<OpenFile>, Arc<crate::files::Opened>)> {
    let file = state::file(descriptor)?;
    match file.opened(descriptor) {
        Some(opened) => Some((file, opened)),
        None => {
            drop(state::remove(descriptor));
            None
        }
    }
}

/// Memory of the program as bytes to write.
///
/// # Safety
/// The program gives a pointer to as many bytes, as the C library's function asks of it.
pub(crate) unsafe fn bytes<'a>(from: *const c_void, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(from.cast(), length) }
}

/// Memory of the program as bytes to read into.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn bytes_mut<'a>(to: *mut c_void, length: usize) -> &'a mut [u8] {
    if length == 0 {
        return &mut [];
    }
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(to.cast(), length) }
}

take!(Umask: fn umask(mask: libc::mode_t) -> libc::mode_t, when true, = {
    UMASK.store(mask & 0o777, Ordering::Relaxed);
    None
});
