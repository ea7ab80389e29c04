//! The measuring loop: workers that each own a driver and a source, closed and open loops, limits, intervals. From a plan
//! to samples; what the samples mean is for `statistics`, how they look for `report`.

mod collector;
mod exchange;
mod job;
mod open_loop;
mod phase;
mod placement;
mod tally;
mod worker;

pub use job::{ArrivalTally, Job, Outcome, Station};
pub use phase::run_phase;
pub use placement::check_placement;
