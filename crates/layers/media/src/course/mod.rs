//! The course of operations over a range where it is more than a pattern of blocks: with holes, in runs, in zones, several
//! files in turns, each class from its own place.
//!
//! A [`CoursePlan`] says what is asked for; a [`Course`] is the walk of one worker. It allocates nothing after it was made.

mod fitted;
mod plan;
mod walk;

#[cfg(test)]
mod tests;

pub use fitted::Fitted;
pub use plan::{CoursePlan, Percents, Run, Visit, Zones, parse_gap};
pub use walk::{Course, Extent, Ground, Position};
