//! Whole phases over simulated targets: every figure is known beforehand.

mod closed;
mod ends;
mod failures;
mod finals;
mod in_flight;
mod limits;
mod open;
mod parts;
mod pauses;
mod placement;
mod real;
mod shapes;
mod split;
mod support;
mod together;
