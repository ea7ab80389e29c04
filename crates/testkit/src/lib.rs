//! Helpers for tests of the measuring loop: a clock that only moves when everybody waits, a driver with declared service times over it, a
//! driver that fails on purpose, and a small operation with its source.
//!
//! With a [`VirtualClock`] a phase takes no real time and gives the same figures each time it runs.

mod ceph;
mod clock;
mod content;
#[cfg(feature = "file_system")]
mod directory_fs;
pub mod fabric;
pub mod fault_proxy;
mod faulty;
pub mod gpu;
mod layer;
mod load;
mod no_landlock;
mod operation;
#[cfg(feature = "s3")]
pub mod s3;
mod service;
mod simulated;
#[cfg(feature = "fuse")]
mod slow_file;
pub mod slow_link;

pub use ceph::{CephNode, ceph_node};
pub use clock::{Seat, VirtualClock};
pub use content::content;
#[cfg(feature = "file_system")]
pub use directory_fs::DirectoryFileSystem;
pub use faulty::{Fault, FaultyDriver};
pub use layer::assert_every_driver_file_is_registered;
pub use load::{closed_load, open_load};
pub use no_landlock::without_landlock;
pub use operation::{InstantDriver, TestOp, TestSource};
pub use service::Service;
pub use simulated::{SimulatedDriver, SimulatedTarget};
#[cfg(feature = "fuse")]
pub use slow_file::{Arrival, Served, SlowFile, SlowKind};
