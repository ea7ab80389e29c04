//! The object layer: pools, containers, objects under dkeys and akeys; the embedded store, the same store behind an engine, clusters,
//! and the drivers that measure them.

pub mod acknowledged;
pub mod backend;
mod commands;
mod containers;
mod daos;
mod definition;
mod drivers;
pub mod load;
mod memory;
mod operation;
pub mod options;
pub mod payload;
pub mod plan;
mod rados;
mod recipes;
mod report;
pub mod s3;
#[cfg(any(test, feature = "sample"))]
#[doc(hidden)]
pub mod sample;
mod served;
mod snapshots;
mod source;
mod stack;
mod storage;

pub use self::report::VIEW;
pub use backend::{Backend, BackendFacts, ConnectRequest, OpenRequest, Registration, connect};
pub use definition::LAYER;
pub use drivers::{DRIVERS, check_new_pool};
pub use load::Objects;
pub use operation::ObjectOperation;
pub use source::{ObjectSource, check_plan, operations_of, replaced_series};

// The plan of the suite is also that of the tests in here.
#[cfg(test)]
extern crate self as object;
#[cfg(test)]
#[path = "../tests/conformance/plan.rs"]
mod fixture;
