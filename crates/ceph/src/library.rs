//! librados, loaded at run time: what a connection needs of `rados/librados.h` (16.2; later ones keep it).
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use driver::foreign;

use crate::Handle;

/// `struct rados_cluster_stat_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterStat {
    /// Space, in KiB.
    pub kb: u64,
    /// Space in use, in KiB.
    pub kb_used: u64,
    /// Space that is free, in KiB.
    pub kb_avail: u64,
    /// Objects.
    pub num_objects: u64,
}

/// The library.
pub const LIBRARY: foreign::ClientLibrary = foreign::ClientLibrary {
    layer: "rados",
    name: "librados.so.2",
    variable: "STRATA_LIBRADOS",
    package: "librados2",
};

foreign::functions! {
    /// Functions of librados that a connection uses.
    Api of LIBRARY {
        rados_version: fn(*mut c_int, *mut c_int, *mut c_int);
        rados_create2: fn(*mut Handle, *const c_char, *const c_char, u64) -> c_int;
        rados_conf_read_file: fn(Handle, *const c_char) -> c_int;
        rados_conf_set: fn(Handle, *const c_char, *const c_char) -> c_int;
        rados_conf_get: fn(Handle, *const c_char, *mut c_char, usize) -> c_int;
        rados_connect: fn(Handle) -> c_int;
        rados_shutdown: fn(Handle);
        rados_cluster_stat: fn(Handle, *mut ClusterStat) -> c_int;
        rados_cluster_fsid: fn(Handle, *mut c_char, usize) -> c_int;
        rados_pool_list: fn(Handle, *mut c_char, usize) -> c_int;
        rados_ioctx_create: fn(Handle, *const c_char, *mut Handle) -> c_int;
        rados_ioctx_set_namespace: fn(Handle, *const c_char);
        rados_set_pool_full_try: fn(Handle);
        rados_ioctx_destroy: fn(Handle);
    }
}
