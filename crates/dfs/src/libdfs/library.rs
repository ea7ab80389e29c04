//! libdfs, loaded at run time, and the structures that it takes, as `daos_fs.h`, `daos_types.h` and `daos_obj.h` have them.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use driver::foreign;
use libc::{dirent, mode_t, stat};

/// The library.
const LIBRARY: foreign::ClientLibrary = foreign::ClientLibrary {
    layer: "dfs",
    name: "libdfs.so",
    variable: "STRATA_LIBDFS",
    package: "daos-client",
};

/// A mounted file system (`dfs_t`), and an open object of it (`dfs_obj_t`): the library's own.
pub(super) type Mount = c_void;
pub(super) type Object = c_void;

/// `daos_obj_id_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Oid {
    pub(super) lo: u64,
    pub(super) hi: u64,
}

/// `d_iov_t`.
#[repr(C)]
pub(super) struct Iov {
    pub(super) buffer: *mut c_void,
    pub(super) buffer_bytes: usize,
    pub(super) length: usize,
}

/// `d_sg_list_t`.
#[repr(C)]
pub(super) struct Sgl {
    pub(super) count: u32,
    pub(super) count_out: u32,
    pub(super) iovs: *mut Iov,
}

/// `daos_anchor_t`.
#[repr(C)]
pub(super) struct Anchor {
    pub(super) kind: u16,
    rest: [u16; 3],
    words: [u64; 14],
}

impl Anchor {
    /// Where a listing begins.
    pub(super) const START: Self = Self { kind: 0, rest: [0; 3], words: [0; 14] };
    const END: u16 = 3;

    pub(super) fn is_end(&self) -> bool {
        self.kind == Self::END
    }
}

const _: () = {
    assert!(size_of::<Oid>() == 16 && size_of::<Iov>() == 24 && size_of::<Sgl>() == 16);
    assert!(size_of::<Anchor>() == 120);
};

/// `DFS_MAX_FSIZE`: to the end of a file.
pub(super) const TO_THE_END: u64 = u64::MAX;
/// `DFS_SET_ATTR_*`.
pub(super) const SET_MODE: c_int = 1;
pub(super) const SET_ACCESSED: c_int = 1 << 1;
pub(super) const SET_MODIFIED: c_int = 1 << 2;
pub(super) const SET_SIZE: c_int = 1 << 3;
pub(super) const SET_USER: c_int = 1 << 4;
pub(super) const SET_GROUP: c_int = 1 << 5;

foreign::functions! {
    /// Functions of libdfs that are used. A null event makes a call wait.
    Api of LIBRARY {
        dfs_init: fn() -> c_int;
        dfs_fini: fn() -> c_int;
        dfs_connect: fn(
            *const c_char, *const c_char, *const c_char, c_int, *mut c_void, *mut *mut Mount,
        ) -> c_int;
        dfs_disconnect: fn(*mut Mount) -> c_int;
        dfs_lookup: fn(*mut Mount, *const c_char, c_int, *mut *mut Object, *mut mode_t, *mut stat) -> c_int;
        dfs_lookup_rel: fn(
            *mut Mount, *mut Object, *const c_char, c_int, *mut *mut Object, *mut mode_t, *mut stat,
        ) -> c_int;
        dfs_obj2id: fn(*mut Object, *mut Oid) -> c_int;
        dfs_open: fn(
            *mut Mount, *mut Object, *const c_char, mode_t, c_int, c_uint, u64, *const c_char, *mut *mut Object,
        ) -> c_int;
        dfs_release: fn(*mut Object) -> c_int;
        dfs_read: fn(*mut Mount, *mut Object, *mut Sgl, u64, *mut u64, *mut c_void) -> c_int;
        dfs_write: fn(*mut Mount, *mut Object, *mut Sgl, u64, *mut c_void) -> c_int;
        dfs_get_size: fn(*mut Mount, *mut Object, *mut u64) -> c_int;
        dfs_punch: fn(*mut Mount, *mut Object, u64, u64) -> c_int;
        dfs_get_chunk_size: fn(*mut Object, *mut u64) -> c_int;
        dfs_get_symlink_value: fn(*mut Object, *mut c_char, *mut u64) -> c_int;
        dfs_ostat: fn(*mut Mount, *mut Object, *mut stat) -> c_int;
        dfs_osetattr: fn(*mut Mount, *mut Object, *mut stat, c_int) -> c_int;
        dfs_mkdir: fn(*mut Mount, *mut Object, *const c_char, mode_t, c_uint) -> c_int;
        dfs_remove: fn(*mut Mount, *mut Object, *const c_char, bool, *mut Oid) -> c_int;
        dfs_move: fn(
            *mut Mount, *mut Object, *const c_char, *mut Object, *const c_char, *mut Oid,
        ) -> c_int;
        dfs_exchange: fn(*mut Mount, *mut Object, *const c_char, *mut Object, *const c_char) -> c_int;
        dfs_readdir: fn(*mut Mount, *mut Object, *mut Anchor, *mut u32, *mut dirent) -> c_int;
        dfs_setxattr: fn(*mut Mount, *mut Object, *const c_char, *const c_void, u64, c_int) -> c_int;
        dfs_getxattr: fn(*mut Mount, *mut Object, *const c_char, *mut c_void, *mut u64) -> c_int;
        dfs_removexattr: fn(*mut Mount, *mut Object, *const c_char) -> c_int;
        dfs_listxattr: fn(*mut Mount, *mut Object, *mut c_char, *mut u64) -> c_int;
        dfs_sync: fn(*mut Mount) -> c_int;
    }
}
