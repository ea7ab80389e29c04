//! The drivers of the media layer: one file each, one line each in [`DRIVERS`].

use driver::Registration;

use crate::{MediaOperation, OpenRequest};

mod cpu;
mod cufile;
mod cufile_batch;
mod cufile_stream;
mod dircreate;
mod dirdelete;
mod dirstat;
mod exec;
mod falloc;
mod filecreate;
mod filedelete;
mod filestat;
mod ftruncate;
mod gpu_copy;
mod gpu_mem;
mod io_uring;
mod libaio;
mod mem;
mod mmap;
mod null;
mod psync;
mod pvsync2;
mod rbd;

/// All drivers of this layer. Help, `strata list`, the docs and the conformance suite follow from this table.
pub static DRIVERS: &[Registration<MediaOperation, OpenRequest>] = &[
    null::REGISTRATION,
    mem::REGISTRATION,
    psync::REGISTRATION,
    pvsync2::REGISTRATION,
    libaio::REGISTRATION,
    io_uring::REGISTRATION,
    mmap::REGISTRATION,
    rbd::REGISTRATION,
    cufile::REGISTRATION,
    cufile_batch::REGISTRATION,
    cufile_stream::REGISTRATION,
    gpu_copy::REGISTRATION,
    gpu_mem::REGISTRATION,
    falloc::REGISTRATION,
    ftruncate::REGISTRATION,
    filestat::REGISTRATION,
    filedelete::REGISTRATION,
    filecreate::REGISTRATION,
    dircreate::REGISTRATION,
    dirstat::REGISTRATION,
    dirdelete::REGISTRATION,
    cpu::REGISTRATION,
    exec::REGISTRATION,
];
