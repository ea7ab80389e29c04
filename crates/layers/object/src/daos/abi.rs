//! Structures of libdaos (2.x, x86-64 and other 64-bit systems), as `daos_types.h`, `daos_obj.h`, `daos_array.h` and `daos_event.h` have
//! them.

use std::ffi::{c_int, c_uint, c_void};

/// `daos_handle_t`: passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) cookie: u64,
}

/// `DAOS_TX_NONE`.
pub(crate) const TX_NONE: Handle = Handle { cookie: 0 };

/// `daos_obj_id_t`: passed by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oid {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
}

/// `d_iov_t`, and so `daos_key_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Iov {
    pub(crate) buffer: *mut c_void,
    pub(crate) buffer_bytes: usize,
    pub(crate) length: usize,
}

/// `d_sg_list_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Sgl {
    pub(crate) count: u32,
    pub(crate) count_out: u32,
    pub(crate) iovs: *mut Iov,
}

/// `daos_recx_t`, `daos_range_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    pub(crate) index: u64,
    pub(crate) count: u64,
}

/// `daos_iod_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Iod {
    pub(crate) name: Iov,
    pub(crate) kind: u32,
    pub(crate) size: u64,
    pub(crate) flags: u64,
    pub(crate) count: u32,
    pub(crate) extents: *mut Range,
}

/// `daos_array_iod_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ArrayIod {
    pub(crate) count: u64,
    pub(crate) ranges: *mut Range,
    pub(crate) short_read: u64,
    pub(crate) read: u64,
}

/// `daos_event_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) error: c_int,
    private: [u64; 20],
    debug: u64,
}

/// `daos_anchor_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Anchor {
    pub(crate) kind: u16,
    rest: [u16; 3],
    words: [u64; 14],
}

/// `daos_key_desc_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct KeyDescriptor {
    pub(crate) length: u64,
    pub(crate) kind: u32,
}

/// `daos_cont_info_t`: its UUID, and room for the rest.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub(crate) struct ContainerInfo {
    pub(crate) uuid: [u8; 16],
    words: [u64; 4],
}

/// `daos_pool_info_t`, and room for more.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct PoolFacts {
    pub(crate) uuid: [u8; 16],
    /// All targets, the nodes that they are on, and those of the targets that are not in use.
    pub(crate) targets: u32,
    pub(crate) nodes: u32,
    pub(crate) disabled: u32,
    map_version: u32,
    leader: u32,
    /// Bits of the facts that are asked for.
    bits: u64,
    /// Bytes of memory and drives.
    pub(crate) total: [u64; 2],
    pub(crate) free: [u64; 2],
    rest: [u64; 32],
}

impl PoolFacts {
    /// `DPI_SPACE`.
    const SPACE: u64 = 1;

    /// To be filled, with the space.
    pub(crate) fn asked() -> Self {
        Self { bits: Self::SPACE, ..Self::default() }
    }
}

const _: () = {
    assert!(size_of::<PoolFacts>() >= 192 && std::mem::offset_of!(PoolFacts, bits) == 40);
    assert!(std::mem::offset_of!(PoolFacts, total) == 48 && std::mem::offset_of!(PoolFacts, free) == 64);
    assert!(size_of::<Handle>() == 8 && size_of::<Oid>() == 16);
    assert!(size_of::<Iov>() == 24 && size_of::<Sgl>() == 16 && size_of::<Range>() == 16);
    assert!(size_of::<Iod>() == 64 && std::mem::offset_of!(Iod, kind) == 24);
    assert!(std::mem::offset_of!(Iod, size) == 32 && std::mem::offset_of!(Iod, flags) == 40);
    assert!(std::mem::offset_of!(Iod, count) == 48 && std::mem::offset_of!(Iod, extents) == 56);
    assert!(size_of::<ArrayIod>() == 32 && size_of::<Event>() == 176);
    assert!(std::mem::offset_of!(Event, private) == 8 && std::mem::offset_of!(Event, debug) == 168);
    assert!(size_of::<Anchor>() == 120 && size_of::<KeyDescriptor>() == 16);
    assert!(size_of::<ContainerInfo>() == 48);
};

impl Iov {
    pub(crate) const EMPTY: Self = Self { buffer: std::ptr::null_mut(), buffer_bytes: 0, length: 0 };

    /// Memory that is full.
    pub(crate) fn of(buffer: *const u8, length: usize) -> Self {
        Self { buffer: buffer.cast_mut().cast(), buffer_bytes: length, length }
    }
}

impl Event {
    pub(crate) const EMPTY: Self = Self { error: 0, private: [0; 20], debug: 0 };
}

impl Anchor {
    /// Where a listing begins.
    pub(crate) const START: Self = Self { kind: 0, rest: [0; 3], words: [0; 14] };
    const END: u16 = 3;

    /// Whether a listing has ended.
    pub(crate) fn is_end(&self) -> bool {
        self.kind == Self::END
    }
}

/// `DAOS_IOD_SINGLE`, `DAOS_IOD_ARRAY`.
pub(crate) const IOD_SINGLE: u32 = 1;
pub(crate) const IOD_ARRAY: u32 = 2;
/// `DAOS_PC_RW`, `DAOS_COO_RW`, `DAOS_OO_RW`.
pub(crate) const POOL_READ_WRITE: c_uint = 2;
pub(crate) const CONTAINER_READ_WRITE: c_uint = 2;
pub(crate) const OBJECT_READ_WRITE: c_uint = 4;
