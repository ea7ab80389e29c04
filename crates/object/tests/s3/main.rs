//! The `s3` driver against a server in this process: every operation, every fault.

mod bed;
mod buckets;
mod faults;
mod operations;
#[path = "../conformance/plan.rs"]
mod plan;
mod rados_gateway;
mod uploads;
mod wires;
