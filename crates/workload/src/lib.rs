//! Specs of the user (`Spec`), resolved to plans of the work (`Plan`): operations, sizes, patterns, mixes, load model, data content,
//! phases. Pure: no clocks, no sockets, no files.

pub mod access;
pub mod arrival;
pub mod block_size;
pub mod class_sizes;
pub mod content;
pub mod control;
pub mod engine;
pub mod help;
pub mod host_options;
pub mod job;
pub mod layers;
pub mod mix;
pub mod options;
pub mod plan;
pub mod replay;
pub mod shipped;
pub mod spec;
pub mod target;

pub use units::random;
