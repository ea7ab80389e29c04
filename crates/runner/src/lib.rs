//! The measuring loop: workers that each own a driver and a source, closed and open loops, limits, intervals. From a plan
//! to samples; what the samples mean is for `statistics`, how they look for `report`.

mod account;
mod closed_loop;
mod collector;
mod completion;
mod depth_search;
mod exchange;
mod flow;
mod hang;
mod items;
mod job;
mod kept;
mod limits;
mod lost;
mod marks;
mod open_loop;
mod oversight;
mod parts;
mod pauses;
mod phase;
mod placement;
mod shared;
mod split;
mod stage;
mod tally;
mod thread;
mod times;
mod together;
mod unserved;
mod view;
mod waiting;
mod worker;

pub use job::{ArrivalTally, GRACE_NS, Job, Opener, Outcome, WorkerSetup};
pub use placement::check_placement;
pub use together::{NoReports, Reports, run_coordinated, run_phase, run_reporting, run_together};
