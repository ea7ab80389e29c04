//! Input and output of the runner: jobs and their outcomes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use driver::{Clock, Driver, Error, HostClock, Operation, Source};
use statistics::{PhaseSamples, SteadyEnding};
use workload::plan::LoadPlan;

use crate::placement::Placement;
use crate::stage::Stage;
use crate::thread::{WorkerMessage, work};
use crate::worker::Recording;

/// Driver and source of one worker; made on the worker's own thread.
pub struct WorkerSetup<Op, S> {
    /// Carries operations out.
    pub driver: Box<dyn Driver<Op>>,
    /// Decides on them.
    pub source: S,
    /// Notes of the driver for the record.
    pub notes: Vec<String>,
    /// Parts of the target that are told apart: place k holds the number in the plan of what [`driver::Operation::part`] and
    /// [`driver::Tally::part`] call k. Empty: they are not told apart, and nothing is recorded by part.
    pub parts: Vec<usize>,
}

/// How long operations in flight may take to come back after the end of a phase, where nothing else is known.
pub const GRACE_NS: u64 = 30_000_000_000;

/// Runs worker `number` of a phase on the calling thread: its driver, its source and the loop over them.
type Work<C> = dyn Fn(&Stage<C>, (usize, u32), &Placement, Recording, &Sender<WorkerMessage>) + Send + Sync;

/// Drivers and sources of a job's workers. The types of operation and source are erased here, once for each worker, so that phases of
/// several layers run at the same time; the loop below is compiled for them.
pub struct Opener<C = HostClock> {
    /// Names of the classes of the operations.
    pub(crate) classes: &'static [&'static str],
    pub(crate) work: Box<Work<C>>,
}

impl<C: Clock> Opener<C> {
    /// `open` makes driver and source of the worker with this number, on the worker's own thread.
    #[must_use]
    pub fn new<Op: Operation, S: Source<Op>>(
        open: impl Fn(u32) -> Result<WorkerSetup<Op, S>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self {
            classes: Op::CLASSES,
            work: Box::new(move |stage, number, place, recording, sender| {
                work(&open, stage, number, place, recording, sender);
            }),
        }
    }
}

/// One phase to run.
pub struct Job<C = HostClock> {
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
    /// Items take several operations ([`driver::Operation::begins_item`]): latencies of whole items are recorded too.
    pub has_items: bool,
    /// How long operations in flight may take to come back after the end, before their worker is given up; [`GRACE_NS`], or more
    /// where the driver itself waits longer for one.
    pub grace_ns: u64,
    /// Opens a worker's driver and source.
    pub open: Opener<C>,
    /// Set from outside (Ctrl-C): workers end after what is in flight.
    pub interrupt: Arc<AtomicBool>,
}

impl<C> Job<C> {
    /// A phase without final operations and without a known end of its own, whose operations in flight have [`GRACE_NS`]. Of a load that
    /// hosts carry out together it has the share of this one.
    #[must_use]
    pub fn new(
        name: &str,
        load: &LoadPlan,
        classes: Vec<usize>,
        open: Opener<C>,
        interrupt: Arc<AtomicBool>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            load: load.of_host(),
            classes,
            expected_operations: None,
            finishes: false,
            has_items: false,
            grace_ns: GRACE_NS,
            open,
            interrupt,
        }
    }
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

/// Outcome of a phase.
#[derive(Debug)]
pub struct Outcome {
    /// All that was measured, up to where it went wrong if it did.
    pub samples: PhaseSamples,
    /// Notes of the drivers and the faults that they found, each once, and whether the phase ended with another one.
    pub notes: Vec<String>,
    /// The open loop's arrivals.
    pub arrivals: Option<ArrivalTally>,
    /// Outcome of waiting for a steady state, where the load ends with one.
    pub steady_ending: Option<SteadyEnding>,
    /// Why the phase failed or ended early; `stopped: phase NAME failed` where another one did that ran at the same time.
    pub failure: Option<String>,
    /// CPU time of the thread that called, which coordinates and collects, within the phase, in nanoseconds.
    pub coordinator_cpu_ns: u64,
}
