//! Workers that did not come back: what is known of them from outside.

use statistics::{ClassTotals, Histogram, SparseHistogram, WorkerSamples};

use crate::collector::Collector;
use crate::job::ArrivalTally;
use crate::limits::ramp_ns;
use crate::stage::PhaseState;
use crate::thread::arrivals_of;
use crate::unserved::Unserved;

/// State of a worker that was given up, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    /// Up to when it was at work within the window, from its opening, in nanoseconds.
    pub(crate) finished_ns: u64,
    /// How long after the close it was waited for.
    drain_ns: u64,
    /// Operations that it began in the window and that hang.
    unfinished: u64,
    pub(crate) arrivals: ArrivalTally,
}

impl Lost {
    /// Adds what worker `number` had in flight `now`, and what never left, to what was collected of a phase that opened at `open_ns` and
    /// was to end at `end_ns`: by its time, by an interruption, or because nothing completed any more.
    pub(crate) fn account<C>(
        phase_state: &PhaseState<C>,
        collector: &mut Collector,
        number: usize,
        (open_ns, end_ns, now): (u64, u64, u64),
    ) -> Self {
        let load = &phase_state.job.load;
        let marks = &phase_state.marks[number];
        let until_ns = if phase_state.job.finishes { now } else { now.min(end_ns.max(open_ns)) };
        let mut lost = Self {
            finished_ns: until_ns.saturating_sub(open_ns),
            drain_ns: now.saturating_sub(until_ns),
            ..Self::default()
        };
        for hanging in marks.in_flight() {
            let start_ns = hanging.start_ns;
            let place = phase_state.job.classes.iter().position(|class| *class == hanging.class);
            let Some(place) = place.filter(|_| start_ns >= open_ns && start_ns < until_ns) else { continue };
            let mut waits = Histogram::new();
            waits.record(now - start_ns);
            collector.add_unfinished(number, place, start_ns - open_ns, &SparseHistogram::from(&waits));
            lost.unfinished += 1;
            let from_ns = start_ns.max(marks.handed_ns());
            if from_ns < until_ns {
                collector.add_in_flight((from_ns - open_ns, until_ns - open_ns), 1);
            }
        }
        if let Some(mut arrivals) =
            load.arrivals.and_then(|plan| arrivals_of(load, &plan, number as u32).ok())
        {
            let begin_ns = open_ns - ramp_ns(load);
            let begun =
                (0..marks.arrivals()).filter(|_| begin_ns + arrivals.next() >= open_ns).count() as u64;
            let due = begin_ns + arrivals.next();
            let unserved = Unserved::from(&mut arrivals, begin_ns, due, (open_ns, until_ns));
            lost.arrivals = ArrivalTally { started: begun, unserved: unserved.count };
            collector.add_unserved(number, &unserved);
        }
        lost
    }

    /// The worker's samples, with what was collected of its classes and why it was given up.
    pub(crate) fn into_samples(
        self,
        worker: usize,
        core: Option<usize>,
        classes: Vec<ClassTotals>,
        failure: String,
    ) -> WorkerSamples {
        WorkerSamples {
            worker,
            core,
            classes,
            finished_ns: self.finished_ns,
            drain_ns: self.drain_ns,
            unfinished_operations: self.unfinished,
            failure: Some(failure),
            ..WorkerSamples::default()
        }
    }
}
