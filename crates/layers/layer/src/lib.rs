//! The common side of all layers: phases of a stage from their jobs to their outcomes, and observations around them.

mod device;
mod machine;
mod measured;
pub mod observations;
mod stage;

pub use device::device_activity;
pub use machine::MachineWatch;
pub use measured::{DriverEntry, Measured, Phase, add, all, find};
pub use stage::{Part, Parts, Seen, StageContext, Tell, plain_part, run};
