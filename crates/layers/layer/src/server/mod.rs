//! Server processes: their options, and services that layers bring to them.

pub mod background;
mod local;
mod options;
mod service;
mod shared;
mod spec;

pub use local::{LocalEngine, LocalRequest, split_cores};
pub use options::ENGINE;
pub use service::{EngineService, Served};
pub use shared::SharedStores;
pub use spec::EngineSpec;
