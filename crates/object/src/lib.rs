//! The object layer: pools, containers, objects under dkeys and akeys; the embedded store, the same store behind an engine, clusters,
//! and the drivers that measure them.

pub mod acknowledged;
pub mod backend;
pub mod claims;
mod coded;
mod containers;
mod daos;
mod drivers;
pub mod erasure;
pub mod model;
mod operation;
pub mod payload;
pub mod placement;
mod rados;
pub mod s3;
pub mod service;
mod snapshots;
mod source;
pub mod store;

pub use backend::{
    Backend, BackendFacts, ConnectRequest, ContainerInfo, OpenRequest, PoolInfo, Registration, Secrets,
    connect,
};
pub use drivers::{DRIVERS, check_new_pool};
pub use operation::ObjectOperation;
pub use source::{ObjectSource, check_plan, operations_of, replaced_series};

#[cfg(test)]
#[path = "../tests/conformance/plan.rs"]
mod fixture;
