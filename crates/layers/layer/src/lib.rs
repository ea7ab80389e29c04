//! The common side of all layers: phases of a stage from their jobs to their outcomes, and observations around them.

mod cache;
pub mod command;
mod confinement;
mod device;
pub mod hosts;
mod identity;
mod leftovers;
mod list;
mod machine;
pub mod masters;
mod measured;
pub mod memory;
pub mod observations;
mod places;
pub mod profile;
pub mod secret;
pub mod server;
mod service_policy;
pub mod stack;
mod stage;
pub mod storage;
mod timeline;

/// Version of the record's schema, and of the plans that processes send each other.
pub const SCHEMA_VERSION: u32 = 1;

pub use cache::CacheBefore;
pub use command::{
    Bench, BenchRequest, Command, CommandKind, Console, Ending, Measures, Ranks, ServerOptions,
};
pub use confinement::{ConfinedPaths, Confinement};
pub use device::device_activity;
pub use hosts::{HostLink, Hosts, Meeting, Met, Together};
pub use identity::{FileIdentity, MARK, MadeFile, identity_of};
pub use leftovers::{CleanRequest, Leftovers};
pub use list::{Runs, add, all, find};
pub use machine::MachineWatch;
pub use measured::{
    AcceptLimits, Control, DriverEntry, Journal, LayerRun, Measured, Phase, Planning, RunContext, Seed,
};
pub use places::{make_absolute, settle_host_targets, settle_store_of_process};
pub use service_policy::{NetworkPolicy, ServicePolicy};
pub use stack::{
    StackCarrier, StackHosts, StackKind, StackLoad, StackLoads, StackRequest, StackRowSpec, StackServed,
};
pub use stage::{Part, Parts, Seen, StageContext, Start, Tell, plain_part, run};
