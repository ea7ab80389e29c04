//! Request that a driver is opened with.

use std::sync::Arc;

use crate::engine::EngineOptions;
use driver::Arena;
use layer::memory::DeviceRequest;
use workload::target::TargetPlan;

use crate::rbd::Images;

/// Everything a driver of this layer needs to open its targets for one worker.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// Targets of the phase; operations name them by index.
    pub targets: Vec<TargetPlan>,
    /// Whether the phase writes or discards (open for reading and writing) or only reads.
    pub writes: bool,
    /// Operations that may be in flight.
    pub depth: u32,
    /// Options of the driver.
    pub options: EngineOptions,
    /// Images that the workers of the phase share.
    pub images: Arc<Images>,
    /// Buffers, one a slot, at least `depth` of them.
    pub arena: Arc<Arena>,
    /// Buffers on a device, where the plan has them there, and how.
    pub device: Option<DeviceRequest>,
}
