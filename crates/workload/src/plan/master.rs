//! Processes that drive a load for another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who drives the load: an engine that is told to, by its control address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MasterPlan {
    /// Label of the master: `2:0`, or `node01:1611`.
    pub label: String,
    /// Control address of its engine, `host:port`.
    pub control: String,
    /// Its rank, where it is addressed as an endpoint.
    pub rank: Option<u32>,
    /// Its tag, where it is addressed as an endpoint: the processor of that service thread drives.
    pub tag: Option<u32>,
    /// Indexes into the plan's endpoints that it sends to.
    pub endpoints: Vec<u32>,
}
