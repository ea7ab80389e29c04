//! libdaos, loaded at run time.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use driver::foreign;

use super::abi::{
    Anchor, ArrayIod, ContainerInfo, Event, Handle, Iod, Iov, KeyDescriptor, Oid, PoolFacts, Sgl,
};

/// The library.
const LIBRARY: foreign::ClientLibrary = foreign::ClientLibrary {
    layer: "object",
    name: "libdaos.so.2",
    variable: "STRATA_LIBDAOS",
    package: "daos-client",
};

foreign::functions! {
    /// Functions of libdaos that are used. A null event makes a call wait.
    Api of LIBRARY {
        daos_init: fn() -> c_int;
        daos_fini: fn() -> c_int;
        daos_pool_connect2: fn(
            *const c_char, *const c_char, c_uint, *mut Handle, *mut c_void, *mut Event,
        ) -> c_int;
        daos_pool_query: fn(Handle, *mut c_void, *mut PoolFacts, *mut c_void, *mut Event) -> c_int;
        daos_pool_disconnect: fn(Handle, *mut Event) -> c_int;
        daos_cont_create_with_label: fn(
            Handle, *const c_char, *mut c_void, *mut c_void, *mut Event,
        ) -> c_int;
        daos_cont_open2: fn(
            Handle, *const c_char, c_uint, *mut Handle, *mut ContainerInfo, *mut Event,
        ) -> c_int;
        daos_cont_close: fn(Handle, *mut Event) -> c_int;
        daos_cont_list_snap: fn(
            Handle, *mut c_int, *mut u64, *mut *mut c_char, *mut Anchor, *mut Event,
        ) -> c_int;
        daos_tx_open_snap: fn(Handle, u64, *mut Handle, *mut Event) -> c_int;
        daos_tx_close: fn(Handle, *mut Event) -> c_int;
        daos_cont_destroy2: fn(Handle, *const c_char, c_int, *mut Event) -> c_int;
        daos_cont_alloc_oids: fn(Handle, u64, *mut u64, *mut Event) -> c_int;
        daos_obj_generate_oid2: fn(Handle, *mut Oid, c_int, u32, u16, u32) -> c_int;
        daos_obj_open: fn(Handle, Oid, c_uint, *mut Handle, *mut Event) -> c_int;
        daos_obj_close: fn(Handle, *mut Event) -> c_int;
        daos_obj_update: fn(
            Handle, Handle, u64, *mut Iov, c_uint, *mut Iod, *mut Sgl, *mut Event,
        ) -> c_int;
        daos_obj_fetch: fn(
            Handle, Handle, u64, *mut Iov, c_uint, *mut Iod, *mut Sgl, *mut c_void, *mut Event,
        ) -> c_int;
        daos_obj_punch: fn(Handle, Handle, u64, *mut Event) -> c_int;
        daos_obj_punch_dkeys: fn(Handle, Handle, u64, c_uint, *mut Iov, *mut Event) -> c_int;
        daos_obj_punch_akeys: fn(Handle, Handle, u64, *mut Iov, c_uint, *mut Iov, *mut Event) -> c_int;
        daos_obj_list_dkey: fn(
            Handle, Handle, *mut u32, *mut KeyDescriptor, *mut Sgl, *mut Anchor, *mut Event,
        ) -> c_int;
        daos_kv_open: fn(Handle, Oid, c_uint, *mut Handle, *mut Event) -> c_int;
        daos_kv_close: fn(Handle, *mut Event) -> c_int;
        daos_kv_put: fn(Handle, Handle, u64, *const c_char, u64, *const c_void, *mut Event) -> c_int;
        daos_kv_get: fn(Handle, Handle, u64, *const c_char, *mut u64, *mut c_void, *mut Event) -> c_int;
        daos_kv_remove: fn(Handle, Handle, u64, *const c_char, *mut Event) -> c_int;
        daos_kv_list: fn(
            Handle, Handle, *mut u32, *mut KeyDescriptor, *mut Sgl, *mut Anchor, *mut Event,
        ) -> c_int;
        daos_array_create: fn(Handle, Oid, Handle, u64, u64, *mut Handle, *mut Event) -> c_int;
        daos_array_open: fn(
            Handle, Oid, Handle, c_uint, *mut u64, *mut u64, *mut Handle, *mut Event,
        ) -> c_int;
        daos_array_open_with_attr: fn(
            Handle, Oid, Handle, c_uint, u64, u64, *mut Handle, *mut Event,
        ) -> c_int;
        daos_array_read: fn(Handle, Handle, *mut ArrayIod, *mut Sgl, *mut Event) -> c_int;
        daos_array_write: fn(Handle, Handle, *mut ArrayIod, *mut Sgl, *mut Event) -> c_int;
        daos_array_get_size: fn(Handle, Handle, *mut u64, *mut Event) -> c_int;
        daos_array_destroy: fn(Handle, Handle, *mut Event) -> c_int;
        daos_array_close: fn(Handle, *mut Event) -> c_int;
        daos_eq_create: fn(*mut Handle) -> c_int;
        daos_eq_destroy: fn(Handle, c_int) -> c_int;
        daos_eq_poll: fn(Handle, c_int, i64, c_uint, *mut *mut Event) -> c_int;
        daos_event_init: fn(*mut Event, Handle, *mut Event) -> c_int;
        daos_event_fini: fn(*mut Event) -> c_int;
    }
}
