//! The network layer: RPCs that are measured, what comes next, and the drivers that carry them out.

pub mod background;
mod commands;
mod drivers;
mod load;
pub mod local;
mod operation;
mod report;
mod request;
mod source;

pub use self::report::VIEW;
pub use drivers::DRIVERS;
pub use load::{Network, providers};
pub use operation::{Rpc, RpcClass};
pub use request::{OpenRequest, SlotLayout};
pub use source::{RpcSource, payload_seed};
