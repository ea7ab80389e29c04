//! Results so far, shown while phases run: in intervals, and when a signal asks for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use dialects::Pace;
use driver::Error;
use report::record::{Observations, Record};
use runner::{Outcome, Reports};
use statistics::PhaseSamples;

use crate::output::Output;
use crate::phase_record::phase_record;
use crate::planning::Planned;

/// When results so far are due.
pub(crate) struct Due {
    interval: Option<Duration>,
    next: Option<Instant>,
    asked: Arc<AtomicBool>,
}

impl Due {
    /// As a dialect's pace says.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn new(pace: Pace) -> Result<Self, Error> {
        let asked = Arc::new(AtomicBool::new(false));
        if pace.results_by_signal {
            signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&asked))
                .map_err(|error| Error::system("signals", "cannot handle signals", error))?;
        }
        let interval = pace.results_ns.map(Duration::from_nanos);
        Ok(Self { interval, next: interval.map(|interval| Instant::now() + interval), asked })
    }

    fn is_now(&mut self) -> bool {
        let is_time = self.next.is_some_and(|next| Instant::now() >= next);
        if let (true, Some(interval)) = (is_time, self.interval) {
            self.next = Some(Instant::now() + interval);
        }
        self.asked.swap(false, Ordering::Relaxed) || is_time
    }
}

/// Sink of the runner's reports while a stage runs.
pub(crate) struct StageReports<'a> {
    pub(crate) due: &'a mut Due,
    pub(crate) output: &'a mut Output,
    pub(crate) record: &'a Record,
    pub(crate) stage: &'a [Planned],
    pub(crate) number: usize,
    pub(crate) begun: SystemTime,
}

impl Reports for StageReports<'_> {
    fn is_due(&mut self) -> bool {
        self.due.is_now()
    }

    fn show(&mut self, so_far: Vec<PhaseSamples>) {
        let mut record = self.record.clone();
        for (planned, samples) in self.stage.iter().zip(so_far) {
            let outcome = Outcome {
                samples,
                notes: Vec::new(),
                arrivals: None,
                steady_ending: None,
                failure: None,
                coordinator_cpu_ns: 0,
            };
            let phase = phase_record(planned, self.number, self.begun, outcome, Observations::default());
            record.phases.push(phase);
        }
        self.output.status(&record);
    }
}
