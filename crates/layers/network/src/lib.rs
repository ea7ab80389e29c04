//! The network layer: RPCs that are measured, what comes next, and the drivers that carry them out.

mod commands;
mod drivers;
mod grammar;
mod help;
mod load;
mod memory;
mod operation;
mod options;
mod plan;
mod report;
mod request;
#[cfg(any(test, feature = "sample"))]
#[doc(hidden)]
pub mod sample;
mod source;
mod spec;
mod stack;

pub use self::report::VIEW;
pub use drivers::DRIVERS;
pub use grammar::{
    BULK_FROM_BYTES, ENDPOINTS_MAX, MESSAGE_SIZES_MAX, PAYLOAD_BYTES_MAX, add_masters, message_sizes_text,
    parse_endpoints, parse_message_sizes,
};
pub use load::{Network, providers};
pub use memory::{MEMORY, PATH};
pub use operation::{Rpc, RpcClass};
pub use options::{COMMON, LAYER, NETWORK};
pub use plan::{EndpointOrder, NetworkPlan, Payload, PayloadKind, Traffic};
pub use request::{OpenRequest, SlotLayout};
pub use source::{RpcSource, payload_seed};
pub use spec::{NetworkSpec, RankTag, of};
