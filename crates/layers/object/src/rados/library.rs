//! librados, loaded at run time: what objects use of `rados/librados.h` (16.2; later ones keep it).
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uchar, c_void};

use ceph::Handle;
use driver::foreign;

/// `rados_callback_t`.
pub(crate) type Callback = unsafe extern "C" fn(Handle, *mut c_void);

/// `LIBRADOS_CREATE_EXCLUSIVE`.
pub(crate) const CREATE_EXCLUSIVE: c_int = 1;
/// `LIBRADOS_CMPXATTR_OP_EQ`: the value given is the stored one.
pub(crate) const CMPXATTR_EQ: c_uchar = 1;
/// `LIBRADOS_CMPXATTR_OP_GT`: the value given is larger than the stored one.
pub(crate) const CMPXATTR_GT: c_uchar = 3;

foreign::functions! {
    /// Functions of librados that are used.
    Api of ceph::library::LIBRARY {
        rados_ioctx_destroy: fn(Handle);
        rados_stat: fn(Handle, *const c_char, *mut u64, *mut libc::time_t) -> c_int;
        rados_getxattr: fn(Handle, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
        rados_nobjects_list_open: fn(Handle, *mut Handle) -> c_int;
        rados_nobjects_list_next2: fn(
            Handle, *mut *const c_char, *mut *const c_char, *mut *const c_char,
            *mut usize, *mut usize, *mut usize,
        ) -> c_int;
        rados_nobjects_list_close: fn(Handle);
        rados_aio_create_completion2: fn(*mut c_void, Option<Callback>, *mut Handle) -> c_int;
        rados_aio_wait_for_complete: fn(Handle) -> c_int;
        rados_aio_get_return_value: fn(Handle) -> c_int;
        rados_aio_release: fn(Handle);
        rados_aio_write: fn(Handle, *const c_char, Handle, *const c_char, usize, u64) -> c_int;
        rados_aio_write_full: fn(Handle, *const c_char, Handle, *const c_char, usize) -> c_int;
        rados_aio_remove: fn(Handle, *const c_char, Handle) -> c_int;
        rados_aio_read: fn(Handle, *const c_char, Handle, *mut c_char, usize, u64) -> c_int;
        rados_aio_stat: fn(Handle, *const c_char, Handle, *mut u64, *mut libc::time_t) -> c_int;
        rados_aio_getxattr: fn(Handle, *const c_char, Handle, *const c_char, *mut c_char, usize) -> c_int;
        rados_create_write_op: fn() -> Handle;
        rados_release_write_op: fn(Handle);
        rados_write_op_assert_exists: fn(Handle);
        rados_write_op_remove: fn(Handle);
        rados_write_op_create: fn(Handle, c_int, *const c_char);
        rados_write_op_cmpxattr: fn(Handle, *const c_char, c_uchar, *const c_char, usize);
        rados_write_op_setxattr: fn(Handle, *const c_char, *const c_char, usize);
        rados_write_op_zero: fn(Handle, u64, u64);
        rados_write_op_omap_set2: fn(
            Handle, *const *const c_char, *const *const c_char, *const usize, *const usize, usize,
        );
        rados_write_op_omap_rm_keys2: fn(Handle, *const *const c_char, *const usize, usize);
        rados_write_op_operate: fn(Handle, Handle, *const c_char, *mut libc::time_t, c_int) -> c_int;
        rados_aio_write_op_operate: fn(
            Handle, Handle, Handle, *const c_char, *mut libc::time_t, c_int,
        ) -> c_int;
        rados_create_read_op: fn() -> Handle;
        rados_release_read_op: fn(Handle);
        rados_read_op_omap_get_vals_by_keys2: fn(
            Handle, *const *const c_char, usize, *const usize, *mut Handle, *mut c_int,
        );
        rados_aio_read_op_operate: fn(Handle, Handle, Handle, *const c_char, c_int) -> c_int;
        rados_omap_get_next2: fn(
            Handle, *mut *mut c_char, *mut *mut c_char, *mut usize, *mut usize,
        ) -> c_int;
        rados_omap_get_end: fn(Handle);
    }
}
