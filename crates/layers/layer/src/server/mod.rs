//! Server processes: their options, and services that layers bring to them.

mod options;
mod service;
mod spec;

pub use options::ENGINE;
pub use service::{EngineService, Served};
pub use spec::EngineSpec;
