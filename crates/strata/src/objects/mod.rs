//! Commands about object stores besides loads.

pub(crate) mod audit;
