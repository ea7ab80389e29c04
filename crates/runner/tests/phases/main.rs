//! Whole phases over simulated targets: every figure is known beforehand.

mod closed;
mod failures;
mod limits;
mod open;
mod real;
mod shapes;
mod support;
