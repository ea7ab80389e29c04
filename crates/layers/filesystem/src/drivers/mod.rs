//! Drivers of this layer.

mod cufile;
mod dfs;
mod io_uring;
mod libc;
mod null;
mod posix;

pub(crate) use self::dfs::{Dfs, Held};
pub(crate) use self::libc::Functions;
pub(crate) use self::libc::NAME as C_LIBRARY;
pub(crate) use posix::{Directory, LIST_BYTES, Posix, open_path};

use std::sync::Arc;

use driver::{Arena, Error, Registration};
use layer::memory::DeviceRequest;

use crate::operation::FsOperation;
use crate::plan::FsPlan;

/// Everything that a driver needs for one worker.
#[derive(Clone)]
pub struct OpenRequest {
    /// Plan of the phase.
    pub plan: Arc<FsPlan>,
    /// Buffers, one a slot.
    pub arena: Arc<Arena>,
    /// File systems over objects, one a target; none where targets are paths.
    pub stores: Vec<Arc<dyn ::dfs::FileSystem>>,
    /// Functions that the driver `libc` calls; none: those of the process.
    pub(crate) functions: Option<Arc<Functions>>,
    /// Buffers on a device, where the plan has them there, and how.
    pub(crate) device: Option<DeviceRequest>,
}

impl OpenRequest {
    /// A request of a plan.
    #[must_use]
    pub fn new(plan: Arc<FsPlan>, arena: Arc<Arena>, stores: Vec<Arc<dyn ::dfs::FileSystem>>) -> Self {
        Self { plan, arena, stores, functions: None, device: None }
    }

    /// The same with buffers on a device.
    #[must_use]
    pub fn on_device(self, device: Option<DeviceRequest>) -> Self {
        Self { device, ..self }
    }
}

/// All drivers, in the order of lists.
pub static DRIVERS: &[Registration<FsOperation, OpenRequest>] = &[
    // One line each, as the architecture test reads them.
    posix::REGISTRATION,
    libc::REGISTRATION,
    io_uring::REGISTRATION,
    cufile::REGISTRATION,
    dfs::REGISTRATION,
    null::REGISTRATION,
];

/// The driver of this name.
///
/// # Errors
/// Bad usage that lists the drivers there are.
pub(crate) fn find(name: &str) -> Result<&'static Registration<FsOperation, OpenRequest>, Error> {
    driver::find(DRIVERS, name)
}
