//! The `s3` driver against a server in this process: every operation, every fault.

mod answers;
mod bed;
mod buckets;
mod faults;
mod operations;
mod ownership;
#[path = "../conformance/plan.rs"]
mod plan;
mod rados_gateway;
mod servers;
mod uploads;
mod wires;
