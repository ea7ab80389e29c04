//! Which network interface a load goes through: what there is, kept between the processes of a host, and the choice by NUMA node.
//!
//! The order of an application that wants one: [`Cache::from_environment`], [`Cache::find`], [`targets`],
//! [`Overrides::from_environment`], [`choose`].

mod cache;
mod choice;
mod files;
mod overrides;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod turns;

pub use cache::{Cache, DISABLED_MESSAGE, Found, Origin};
pub use choice::{Choice, Decision, NONE_MESSAGE, Target, Want, choose, targets};
pub use overrides::{Asked, Overrides};
pub use scan::{FabricScan, Machine, ProviderFacts, Providers, ScanKey, ScannedInterface};
pub use table::{report, table};
pub use turns::{FileTurns, ProcessTurns, Turns};
