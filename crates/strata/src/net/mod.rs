//! The network layer as the command wires it: who is sent to, who drives, and what is seen around a phase.

pub(crate) mod link;
pub(crate) mod local;
mod masters;
mod monitor;
pub(crate) mod reach;
pub(crate) mod resolve;
pub(crate) mod run;
mod scan;
mod servers;
mod sync;
mod tell;

use driver::Registration;
use network::{DRIVERS, OpenRequest, Rpc};
use rpc::interface::ProviderFacts;

pub(crate) use reach::{Reach, Reaches};
pub(crate) use scan::scan;
pub(crate) use tell::tell;

/// Asks libfabric for its providers, for the choice of an interface.
///
/// # Errors
/// A sentence that says why there are none.
pub(crate) fn providers() -> Result<Vec<ProviderFacts>, String> {
    rpc::ofi::providers().map_err(|error| error.to_string())
}

/// The driver that reaches a provider: `tcp`, `ofi+tcp`, `null`.
///
/// # Errors
/// When there is none.
pub(crate) fn driver_of(provider: &str) -> Result<&'static Registration<Rpc, OpenRequest>, driver::Error> {
    driver::find(DRIVERS, provider.split('+').next().unwrap_or(provider))
}
