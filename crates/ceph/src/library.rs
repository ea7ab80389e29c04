//! librados, loaded at run time: what a connection needs of `rados/librados.h` (16.2; later ones keep it).
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use driver::{Error, foreign};

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

foreign::functions! {
    /// What a connection uses of librados.
    Api {
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

/// Name of the library.
const NAME: &str = "librados.so.2";

static API: OnceLock<Api> = OnceLock::new();

/// The library; loaded by the first who asks.
///
/// # Errors
/// When it cannot be loaded: one line that names the package.
pub(crate) fn api() -> Result<&'static Api, Error> {
    if let Some(api) = API.get() {
        return Ok(api);
    }
    let api = Api::of(open()?).map_err(|cause| foreign::lacks("rados", NAME, &cause))?;
    Ok(API.get_or_init(|| api))
}

/// Opens librados, for who uses more of it. `STRATA_LIBRADOS` names another file to load.
///
/// # Errors
/// When it cannot be loaded: one line that names the package.
pub fn open() -> Result<foreign::Library, Error> {
    foreign::open("rados", NAME, "STRATA_LIBRADOS", "librados2")
}

/// A function that the librados found lacks.
#[must_use]
pub fn lacks(cause: &foreign::LoadError) -> Error {
    foreign::lacks("rados", NAME, cause)
}
