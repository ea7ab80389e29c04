//! The embedded store behind an engine: every operation over loopback, faults, and clients that send what they like.

#[path = "../conformance/plan.rs"]
mod plan;

mod coded;
mod faults;
mod hostile;
mod operations;
mod support;
