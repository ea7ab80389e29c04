//! The C declarations of libfabric that are used here, by hand: `rdma/fabric.h`, `fi_domain.h`, `fi_endpoint.h`, `fi_eq.h`,
//! `fi_cm.h` and `fi_rma.h` of API version 1.17. Most calls are inline functions there, so they go through the tables of operations.
//!
//! Objects are made by the library alone (`fi_dupinfo` for hints), so a later version that appends fields is no harm.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

/// The API version that is asked for: 1.17.
pub(super) const API_VERSION: u32 = 1 << 16 | 17;

pub(super) const FI_MSG: u64 = 1 << 1;
pub(super) const FI_RMA: u64 = 1 << 2;
pub(super) const FI_READ: u64 = 1 << 8;
pub(super) const FI_WRITE: u64 = 1 << 9;
pub(super) const FI_RECV: u64 = 1 << 10;
pub(super) const FI_SEND: u64 = 1 << 11;
pub(super) const FI_REMOTE_READ: u64 = 1 << 12;
pub(super) const FI_REMOTE_WRITE: u64 = 1 << 13;
pub(super) const FI_HMEM: u64 = 1 << 47;
pub(super) const FI_COMPLETION: u64 = 1 << 24;
pub(super) const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
/// Mode bits: the context of an operation is memory that the provider may use.
pub(super) const FI_CONTEXT: u64 = 1 << 59;
pub(super) const FI_CONTEXT2: u64 = 1 << 52;

pub(super) const FI_MR_LOCAL: c_int = 1 << 2;
pub(super) const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub(super) const FI_MR_ALLOCATED: c_int = 1 << 5;
pub(super) const FI_MR_PROV_KEY: c_int = 1 << 6;
pub(super) const FI_MR_ENDPOINT: c_int = 1 << 9;
pub(super) const FI_MR_HMEM: c_int = 1 << 10;

/// Sends are seen after writes that were posted before them.
pub(super) const FI_ORDER_SAW: u64 = 1 << 7;

pub(super) const FI_THREAD_DOMAIN: c_int = 3;
pub(super) const FI_AV_UNSPEC: c_int = 0;
pub(super) const FI_EP_RDM: c_int = 3;
pub(super) const FI_WAIT_NONE: c_int = 0;
pub(super) const FI_WAIT_FD: c_int = 3;
pub(super) const FI_CQ_FORMAT_MSG: c_int = 2;
/// Commands of `fi_control`.
pub(super) const FI_GETWAIT: c_int = 5;
pub(super) const FI_ENABLE: c_int = 6;

/// Errors below this are those of errno.
pub(super) const FI_ERRNO_OFFSET: c_int = 256;
pub(super) const FI_EAVAIL: c_int = 259;
pub(super) const FI_ETRUNC: c_int = 265;
pub(super) const FI_ENOKEY: c_int = 266;

/// An address of an address vector.
pub(super) type FiAddr = u64;
pub(super) const FI_ADDR_UNSPEC: FiAddr = u64::MAX;

/// A function of a table that is not called here.
type Unused = *const c_void;

#[repr(C)]
pub(super) struct FiTxAttr {
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) op_flags: u64,
    pub(super) msg_order: u64,
    pub(super) comp_order: u64,
    pub(super) inject_size: usize,
    pub(super) size: usize,
    pub(super) iov_limit: usize,
    pub(super) rma_iov_limit: usize,
    pub(super) tclass: u32,
}

#[repr(C)]
pub(super) struct FiRxAttr {
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) op_flags: u64,
    pub(super) msg_order: u64,
    pub(super) comp_order: u64,
    pub(super) total_buffered_recv: usize,
    pub(super) size: usize,
    pub(super) iov_limit: usize,
}

#[repr(C)]
pub(super) struct FiEpAttr {
    pub(super) kind: c_int,
    pub(super) protocol: u32,
    pub(super) protocol_version: u32,
    pub(super) max_msg_size: usize,
    pub(super) msg_prefix_size: usize,
    pub(super) max_order_raw_size: usize,
    pub(super) max_order_war_size: usize,
    pub(super) max_order_waw_size: usize,
    pub(super) mem_tag_format: u64,
    pub(super) tx_ctx_cnt: usize,
    pub(super) rx_ctx_cnt: usize,
    pub(super) auth_key_size: usize,
    pub(super) auth_key: *mut u8,
}

#[repr(C)]
pub(super) struct FiDomainAttr {
    pub(super) domain: *mut FidDomain,
    pub(super) name: *mut c_char,
    pub(super) threading: c_int,
    pub(super) control_progress: c_int,
    pub(super) data_progress: c_int,
    pub(super) resource_mgmt: c_int,
    pub(super) av_type: c_int,
    pub(super) mr_mode: c_int,
    pub(super) mr_key_size: usize,
    pub(super) cq_data_size: usize,
    pub(super) cq_cnt: usize,
    pub(super) ep_cnt: usize,
    pub(super) tx_ctx_cnt: usize,
    pub(super) rx_ctx_cnt: usize,
    pub(super) max_ep_tx_ctx: usize,
    pub(super) max_ep_rx_ctx: usize,
    pub(super) max_ep_stx_ctx: usize,
    pub(super) max_ep_srx_ctx: usize,
    pub(super) cntr_cnt: usize,
    pub(super) mr_iov_limit: usize,
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) auth_key: *mut u8,
    pub(super) auth_key_size: usize,
    pub(super) max_err_data: usize,
    pub(super) mr_cnt: usize,
    pub(super) tclass: u32,
}

#[repr(C)]
pub(super) struct FiFabricAttr {
    pub(super) fabric: *mut FidFabric,
    pub(super) name: *mut c_char,
    pub(super) prov_name: *mut c_char,
    pub(super) prov_version: u32,
    pub(super) api_version: u32,
}

#[repr(C)]
pub(super) struct FiInfo {
    pub(super) next: *mut FiInfo,
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) addr_format: u32,
    pub(super) src_addrlen: usize,
    pub(super) dest_addrlen: usize,
    pub(super) src_addr: *mut c_void,
    pub(super) dest_addr: *mut c_void,
    pub(super) handle: *mut Fid,
    pub(super) tx_attr: *mut FiTxAttr,
    pub(super) rx_attr: *mut FiRxAttr,
    pub(super) ep_attr: *mut FiEpAttr,
    pub(super) domain_attr: *mut FiDomainAttr,
    pub(super) fabric_attr: *mut FiFabricAttr,
    pub(super) nic: *mut FidNic,
}

#[repr(C)]
pub(super) struct FiLinkAttr {
    pub(super) address: *mut c_char,
    pub(super) mtu: usize,
    pub(super) speed: usize,
    pub(super) state: c_int,
    pub(super) network_type: *mut c_char,
}

#[repr(C)]
pub(super) struct FiDeviceAttr {
    pub(super) name: *mut c_char,
    rest: [*mut c_char; 5],
}

#[repr(C)]
pub(super) struct FidNic {
    pub(super) fid: Fid,
    pub(super) device_attr: *mut FiDeviceAttr,
    pub(super) bus_attr: *mut c_void,
    pub(super) link_attr: *mut FiLinkAttr,
    pub(super) prov_attr: *mut c_void,
}

#[repr(C)]
pub(super) struct FiOps {
    pub(super) size: usize,
    pub(super) close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(super) bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub(super) control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    rest: [Unused; 3],
}

#[repr(C)]
pub(super) struct Fid {
    pub(super) fclass: usize,
    pub(super) context: *mut c_void,
    pub(super) ops: *const FiOps,
}

#[repr(C)]
pub(super) struct FiOpsFabric {
    pub(super) size: usize,
    pub(super) domain:
        unsafe extern "C" fn(*mut FidFabric, *mut FiInfo, *mut *mut FidDomain, *mut c_void) -> c_int,
    unused: [Unused; 3],
    pub(super) trywait: Option<unsafe extern "C" fn(*mut FidFabric, *mut *mut Fid, c_int) -> c_int>,
    domain2: Unused,
}

#[repr(C)]
pub(super) struct FidFabric {
    pub(super) fid: Fid,
    pub(super) ops: *const FiOpsFabric,
    pub(super) api_version: u32,
}

#[repr(C)]
pub(super) struct FiCqAttr {
    pub(super) size: usize,
    pub(super) flags: u64,
    pub(super) format: c_int,
    pub(super) wait_obj: c_int,
    pub(super) signaling_vector: c_int,
    pub(super) wait_cond: c_int,
    pub(super) wait_set: *mut c_void,
}

#[repr(C)]
pub(super) struct FiAvAttr {
    pub(super) kind: c_int,
    pub(super) rx_ctx_bits: c_int,
    pub(super) count: usize,
    pub(super) ep_per_node: usize,
    pub(super) name: *const c_char,
    pub(super) map_addr: *mut c_void,
    pub(super) flags: u64,
}

#[repr(C)]
pub(super) struct FiOpsDomain {
    pub(super) size: usize,
    pub(super) av_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiAvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
    pub(super) cq_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiCqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
    pub(super) endpoint:
        unsafe extern "C" fn(*mut FidDomain, *mut FiInfo, *mut *mut FidEp, *mut c_void) -> c_int,
    rest: [Unused; 8],
}

#[repr(C)]
pub(super) struct FiOpsMr {
    pub(super) size: usize,
    unused: [Unused; 2],
    pub(super) regattr: unsafe extern "C" fn(*mut Fid, *const FiMrAttr, u64, *mut *mut FidMr) -> c_int,
}

/// `FI_HMEM_SYSTEM` and `FI_HMEM_CUDA` of `enum fi_hmem_iface`.
pub(super) const FI_HMEM_SYSTEM: c_int = 0;
pub(super) const FI_HMEM_CUDA: c_int = 1;

/// `struct fi_mr_attr`, with room for what versions after 1.17 add.
#[repr(C)]
pub(super) struct FiMrAttr {
    pub(super) iov: *const libc::iovec,
    pub(super) iov_count: usize,
    pub(super) access: u64,
    pub(super) offset: u64,
    pub(super) requested_key: u64,
    pub(super) context: *mut c_void,
    pub(super) auth_key_size: usize,
    pub(super) auth_key: *mut u8,
    pub(super) iface: c_int,
    pub(super) device: u64,
    pub(super) later: [u64; 8],
}

#[repr(C)]
pub(super) struct FidDomain {
    pub(super) fid: Fid,
    pub(super) ops: *const FiOpsDomain,
    pub(super) mr: *const FiOpsMr,
}

#[repr(C)]
pub(super) struct FidMr {
    pub(super) fid: Fid,
    pub(super) mem_desc: *mut c_void,
    pub(super) key: u64,
}

#[repr(C)]
pub(super) struct FiOpsAv {
    pub(super) size: usize,
    pub(super) insert:
        unsafe extern "C" fn(*mut FidAv, *const c_void, usize, *mut FiAddr, u64, *mut c_void) -> c_int,
    unused: [Unused; 2],
    pub(super) remove: unsafe extern "C" fn(*mut FidAv, *mut FiAddr, usize, u64) -> c_int,
    rest: [Unused; 3],
}

#[repr(C)]
pub(super) struct FidAv {
    pub(super) fid: Fid,
    pub(super) ops: *const FiOpsAv,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FiCqMsgEntry {
    pub(super) op_context: *mut c_void,
    pub(super) flags: u64,
    pub(super) len: usize,
}

#[repr(C)]
pub(super) struct FiCqErrEntry {
    pub(super) op_context: *mut c_void,
    pub(super) flags: u64,
    pub(super) len: usize,
    pub(super) buf: *mut c_void,
    pub(super) data: u64,
    pub(super) tag: u64,
    pub(super) olen: usize,
    pub(super) err: c_int,
    pub(super) prov_errno: c_int,
    pub(super) err_data: *mut c_void,
    pub(super) err_data_size: usize,
}

#[repr(C)]
pub(super) struct FiOpsCq {
    pub(super) size: usize,
    pub(super) read: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize) -> isize,
    readfrom: Unused,
    pub(super) readerr: unsafe extern "C" fn(*mut FidCq, *mut FiCqErrEntry, u64) -> isize,
    rest: [Unused; 4],
}

#[repr(C)]
pub(super) struct FidCq {
    pub(super) fid: Fid,
    pub(super) ops: *const FiOpsCq,
}

/// `struct iovec`.
#[repr(C)]
pub(super) struct IoVec {
    pub(super) base: *mut c_void,
    pub(super) len: usize,
}

type Transfer =
    unsafe extern "C" fn(*mut FidEp, *const c_void, usize, *mut c_void, FiAddr, *mut c_void) -> isize;

#[repr(C)]
pub(super) struct FiOpsMsg {
    pub(super) size: usize,
    pub(super) recv:
        unsafe extern "C" fn(*mut FidEp, *mut c_void, usize, *mut c_void, FiAddr, *mut c_void) -> isize,
    unused: [Unused; 2],
    pub(super) send: Transfer,
    pub(super) sendv:
        unsafe extern "C" fn(*mut FidEp, *const IoVec, *mut *mut c_void, usize, FiAddr, *mut c_void) -> isize,
    sendmsg: Unused,
    pub(super) inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr) -> isize,
    rest: [Unused; 2],
}

#[repr(C)]
pub(super) struct FiRmaIov {
    pub(super) addr: u64,
    pub(super) len: usize,
    pub(super) key: u64,
}

#[repr(C)]
pub(super) struct FiMsgRma {
    pub(super) msg_iov: *const IoVec,
    pub(super) desc: *mut *mut c_void,
    pub(super) iov_count: usize,
    pub(super) addr: FiAddr,
    pub(super) rma_iov: *const FiRmaIov,
    pub(super) rma_iov_count: usize,
    pub(super) context: *mut c_void,
    pub(super) data: u64,
}

type Rma =
    unsafe extern "C" fn(*mut FidEp, *mut c_void, usize, *mut c_void, FiAddr, u64, u64, *mut c_void) -> isize;

#[repr(C)]
pub(super) struct FiOpsRma {
    pub(super) size: usize,
    pub(super) read: Rma,
    unused: [Unused; 2],
    pub(super) write: Rma,
    writev: Unused,
    pub(super) writemsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgRma, u64) -> isize,
    rest: [Unused; 3],
}

#[repr(C)]
pub(super) struct FiOpsCm {
    pub(super) size: usize,
    setname: Unused,
    pub(super) getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    rest: [Unused; 7],
}

#[repr(C)]
pub(super) struct FidEp {
    pub(super) fid: Fid,
    pub(super) ops: *const c_void,
    pub(super) cm: *const FiOpsCm,
    pub(super) msg: *const FiOpsMsg,
    pub(super) rma: *const FiOpsRma,
    rest: [Unused; 3],
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests;
