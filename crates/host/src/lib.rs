//! Facts about this machine, read from `/proc`, `/sys` and a few system calls. Nothing here measures or
//! writes.
//!
//! A fact that the system does not give is `None`: it is never guessed.

pub mod activity;
pub mod block;
pub mod control_group;
pub mod environment;
pub mod extents;
pub mod memory;
pub mod mounts;
pub mod network;
pub mod nvme;
pub mod overlay;
pub mod page_cache;
pub mod priority;
pub mod processor;
mod source;
pub mod system;
pub mod target;
pub mod topology;
pub mod traffic;
pub mod zoned;

pub use environment::Environment;
pub use target::TargetEnvironment;
