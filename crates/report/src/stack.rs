//! The table of `strata stack`: every row against the one that carries it, and the verdict.

mod hosts;
mod remedy;
mod rows;
mod scaling;
mod screen;
mod step;
#[cfg(test)]
mod tests;
mod verdict;

pub use hosts::{OnHosts, on_hosts, scaling, slow_hosts};
pub use remedy::{PASSES_MAX, Remedy, RemedyCase};
pub(crate) use rows::in_bytes;
pub use rows::{Disturbance, Row, bytes_in_calls, rows};
pub use screen::Detail;
pub(crate) use screen::{Grid, block, picture};
pub use step::{FASTER_FACTOR, Finding, LOSS_FACTOR_MIN, Step, WIDE_FACTOR, steps};
pub use verdict::{Verdict, verdict};
