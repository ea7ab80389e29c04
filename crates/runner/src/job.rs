//! What the runner is given, and what it gives back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Driver, Error};
use statistics::{PhaseSamples, SteadyEnding};
use workload::plan::LoadPlan;

/// What one worker works with; made on the worker's own thread.
pub struct Station<Op, S> {
    /// Carries operations out.
    pub driver: Box<dyn Driver<Op>>,
    /// Decides on them.
    pub source: S,
    /// What the driver has to say for the record.
    pub notes: Vec<String>,
    /// Parts of the target that are told apart: place k holds the number in the plan of what [`driver::Operation::part`] and
    /// [`driver::Tally::part`] call k. Empty: they are not told apart, and nothing is recorded by part.
    pub parts: Vec<usize>,
}

/// How long operations in flight may take to come back after the end of a phase, where nothing else is known.
pub const GRACE_NS: u64 = 30_000_000_000;

/// Opens the station of the worker with this number.
pub(crate) type Opener<Op, S> = Arc<dyn Fn(u32) -> Result<Station<Op, S>, Error> + Send + Sync>;

/// One phase to run.
pub struct Job<Op, S> {
    /// Name of the phase, for live views.
    pub name: String,
    /// How the load is put on.
    pub load: LoadPlan,
    /// Classes of [`driver::Operation::CLASSES`] that can occur, by index: figures are kept for these.
    pub classes: Vec<usize>,
    /// Operations of all workers together where a pass has a known end: for progress only.
    pub expected_operations: Option<u64>,
    /// The sources have final operations ([`driver::Source::finish`]) that belong to what is measured even when time ends the phase:
    /// what is in flight at the close and the final operations are counted, and the phase lasts until the last of them. Without,
    /// final operations follow only where a worker's share is exhausted before the close. An interruption or a failure skips them.
    pub finishes: bool,
    /// How long operations in flight may take to come back after the end, before their worker is given up; [`GRACE_NS`], or more
    /// where the driver itself waits longer for one.
    pub grace_ns: u64,
    /// Opens a worker's driver and source.
    pub open: Opener<Op, S>,
    /// Set from outside (Ctrl-C): workers end after what is in flight.
    pub interrupt: Arc<AtomicBool>,
}

/// Arrivals of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalTally {
    /// Operations started within the window.
    pub started: u64,
    /// Operations that were due within the window and never started.
    pub unserved: u64,
}

impl std::ops::AddAssign for ArrivalTally {
    fn add_assign(&mut self, other: Self) {
        self.started += other.started;
        self.unserved += other.unserved;
    }
}

/// What came of a phase.
#[derive(Debug)]
pub struct Outcome {
    /// All that was measured, up to where it went wrong if it did.
    pub samples: PhaseSamples,
    /// What the drivers had to say and what they found wrong, each once, and whether the phase ended with another one.
    pub notes: Vec<String>,
    /// The open loop's arrivals.
    pub arrivals: Option<ArrivalTally>,
    /// What came of waiting for a steady state, where the load ends with one.
    pub steady_ending: Option<SteadyEnding>,
    /// Why the phase failed or ended early; `stopped: phase NAME failed` where another one did that ran at the same time.
    pub failure: Option<String>,
    /// CPU time of the thread that called, which coordinates and collects, within the phase, in nanoseconds.
    pub coordinator_cpu_ns: u64,
}
