//! Commands about the network besides loads.

mod scan;
mod tell;

pub(crate) use scan::scan;
pub(crate) use tell::tell;
