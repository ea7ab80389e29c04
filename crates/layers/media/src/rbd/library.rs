//! librbd, loaded at run time: what is used of `rbd/librbd.h` (1.16; later ones keep it).
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

use ceph::Handle;
use driver::foreign;

/// `rbd_callback_t`.
pub(crate) type Callback = unsafe extern "C" fn(Handle, *mut c_void);
/// Callback of `rbd_diff_iterate2`: offset, length, whether there is data.
pub(crate) type DiffCallback = unsafe extern "C" fn(u64, usize, c_int, *mut c_void) -> c_int;

/// `rbd_image_watcher_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Watcher {
    pub(crate) address: *mut c_char,
    pub(crate) id: i64,
    pub(crate) cookie: u64,
}

/// The library.
const LIBRARY: foreign::ClientLibrary = foreign::ClientLibrary {
    layer: "rbd",
    name: "librbd.so.1",
    variable: "STRATA_LIBRBD",
    package: "librbd1",
};

foreign::functions! {
    /// Functions of librbd in use.
    Api of LIBRARY {
        rbd_version: fn(*mut c_int, *mut c_int, *mut c_int);
        rbd_open: fn(Handle, *const c_char, *mut Handle, *const c_char) -> c_int;
        rbd_open_read_only: fn(Handle, *const c_char, *mut Handle, *const c_char) -> c_int;
        rbd_close: fn(Handle) -> c_int;
        rbd_get_size: fn(Handle, *mut u64) -> c_int;
        rbd_read: fn(Handle, u64, usize, *mut c_char) -> isize;
        rbd_diff_iterate2: fn(
            Handle, *const c_char, u64, u64, u8, u8, DiffCallback, *mut c_void,
        ) -> c_int;
        rbd_watchers_list: fn(Handle, *mut Watcher, *mut usize) -> c_int;
        rbd_watchers_list_cleanup: fn(*mut Watcher, usize);
        rbd_aio_create_completion: fn(*mut c_void, Option<Callback>, *mut Handle) -> c_int;
        rbd_aio_get_return_value: fn(Handle) -> isize;
        rbd_aio_release: fn(Handle);
        rbd_aio_read: fn(Handle, u64, usize, *mut c_char, Handle) -> c_int;
        rbd_aio_write: fn(Handle, u64, usize, *const c_char, Handle) -> c_int;
        rbd_aio_discard: fn(Handle, u64, u64, Handle) -> c_int;
        rbd_aio_flush: fn(Handle, Handle) -> c_int;
    }
}
