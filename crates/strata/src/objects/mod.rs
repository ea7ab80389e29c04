//! The object layer as the command wires it: which stores a run opens, what its phases are, and what is seen around them.

pub(crate) mod audit;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod scratch;
pub(crate) mod stores;

pub(crate) use stores::{Store, Stores};
