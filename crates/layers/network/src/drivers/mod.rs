//! The drivers of the network layer: one file each, one line each in [`DRIVERS`].

use driver::Registration;

use crate::{OpenRequest, Rpc};

mod null;
mod ofi;
mod tcp;

/// All drivers of this layer. Help, `strata list`, the docs and the conformance suite follow from this table.
pub static DRIVERS: &[Registration<Rpc, OpenRequest>] = &[
    // One line a driver.
    null::REGISTRATION,
    tcp::REGISTRATION,
    ofi::REGISTRATION,
];
