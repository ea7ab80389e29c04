//! The object layer: pools, containers, objects under dkeys and akeys; the embedded store, the same store behind an engine, clusters,
//! and the drivers that measure them.

pub mod acknowledged;
pub mod backend;
mod commands;
mod containers;
mod daos;
mod drivers;
pub mod load;
mod operation;
pub mod payload;
mod rados;
mod recipes;
mod report;
pub mod s3;
pub mod service;
mod snapshots;
mod source;

pub use self::report::VIEW;
pub use backend::{Backend, BackendFacts, ConnectRequest, OpenRequest, Registration, connect};
pub use drivers::{DRIVERS, check_new_pool};
pub use load::Objects;
pub use operation::ObjectOperation;
pub use source::{ObjectSource, check_plan, operations_of, replaced_series};

#[cfg(test)]
#[path = "../tests/conformance/plan.rs"]
mod fixture;
