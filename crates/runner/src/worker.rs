//! One worker: what both loops share.

use std::sync::atomic::Ordering;

use driver::{CLASSES_MAX, Clock, Completions, Driver, Error, ErrorKind, Operation, Source, Wait};
use host::activity::Usage;
use statistics::Histogram;
use workload::control::Control;
use workload::plan::LoadPlan;
use workload::spec::OnError;

use crate::exchange::{Exchange, Interval};
use crate::items::ItemTally;
use crate::job::{ArrivalTally, Job};
use crate::kept::Kept;
use crate::limits::{Window, Withheld, ramp_ns};
use crate::marks::Marks;
use crate::parts::Parts;
use crate::shared::Shared;
use crate::split::SplitTally;
use crate::tally::Errors;
use crate::times::Times;
use crate::unserved::Unserved;

/// Place of a class that has no figures in this phase.
const NO_CLASS: u8 = u8::MAX;
/// How long a driver may refuse everything while nothing is in flight.
const BUSY_NS_MAX: u64 = 1_000_000_000;
/// Time until a busy driver with nothing in flight is asked again, at most.
const BUSY_POLL_NS: u64 = 100_000;

/// Buffers that a worker records in, allocated before the window opens.
pub(crate) struct Recording {
    pub(crate) interval: Box<Interval>,
    pub(crate) split: Option<Box<SplitTally>>,
    /// Where the driver names parts.
    pub(crate) parts: Option<Box<Parts>>,
    /// Where operations are watched one by one.
    pub(crate) kept: Option<Box<Kept>>,
    /// Where items take several operations.
    pub(crate) items: Option<Box<ItemTally>>,
    /// Where the loop is open: how late operations left because of strata.
    pub(crate) lateness: Option<Box<Histogram>>,
}

/// One worker at work.
pub(crate) struct Worker<'a, Op, S, C> {
    pub(crate) driver: &'a mut dyn Driver<Op>,
    pub(crate) source: S,
    pub(crate) clock: C,
    pub(crate) shared: &'a Shared,
    exchange: &'a Exchange,
    pub(crate) window: Window,
    /// Limits in operations and bytes while a warm-up runs: they hold from the opening of the window on.
    pub(crate) withheld: Option<Withheld>,
    pub(crate) stops_on_error: bool,
    pub(crate) stops_on_mismatch: bool,
    pub(crate) batch_max: usize,
    pub(crate) batch_min: u32,
    pub(crate) class_places: [u8; CLASSES_MAX],
    /// The operation of each slot.
    pub(crate) slots: Vec<Option<Op>>,
    /// When the operations in flight began (closed loop) or were due (open loop).
    pub(crate) marks: &'a Marks,
    pub(crate) free: Vec<u32>,
    pub(crate) batch: Vec<Op>,
    /// Operations at the front of the batch that were offered to a busy driver before.
    offered: usize,
    pub(crate) done: Completions,
    pub(crate) in_flight: u32,
    busy_since_ns: Option<u64>,
    pub(crate) current: Box<Interval>,
    pub(crate) next_interval_ns: u64,
    /// Times since the current interval, on the clock of the run.
    pub(crate) times: Times,
    pub(crate) is_exhausted: bool,
    /// Whether the source goes on only when something has completed.
    pub(crate) is_waiting: bool,
    pub(crate) started_ns: u64,
    pub(crate) first_completion_ns: u64,
    pub(crate) last_completion_ns: u64,
    pub(crate) errors: Errors,
    pub(crate) drained: u64,
    /// When the last operation that was in flight at the close had completed; 0 where none was.
    pub(crate) drained_ns: u64,
    pub(crate) tool_ns: u64,
    pub(crate) fill_ns: u64,
    pub(crate) verify_ns: u64,
    pub(crate) usage_before: Usage,
    pub(crate) arrivals: ArrivalTally,
    /// Arrivals that never left.
    pub(crate) unserved: Unserved,
    pub(crate) lateness: Option<Box<Histogram>>,
    /// From when on a slot was free.
    pub(crate) ready_ns: u64,
    /// When the driver's last call of submission began and ended.
    call_ns: (u64, u64),
    /// Submission and completion apart, where asked for.
    pub(crate) split: Option<Box<SplitTally>>,
    /// Figures by part of the target, where parts are told apart.
    pub(crate) parts: Option<Box<Parts>>,
    /// Operations one by one, where asked for.
    pub(crate) kept: Option<Box<Kept>>,
    /// Whole items, where they take several operations.
    pub(crate) items: Option<Box<ItemTally>>,
    /// Whether a completion is more than its figures: see [`Worker::watch`].
    pub(crate) is_watched: bool,
    /// Failures that are counted and touch nothing else: class and number.
    pub(crate) ignored_errors: Vec<(usize, i32)>,
    /// Whether a write without room ends the worker.
    pub(crate) ends_when_full: bool,
    /// The largest depth at which latency held, where it was searched for.
    pub(crate) depth_found: Option<u32>,
    /// Whether final operations belong to the phase after its close too.
    pub(crate) finishes: bool,
    /// Whether the source has no final operation left.
    pub(crate) is_finished: bool,
    /// When the first final operation was drawn.
    pub(crate) finals_from_ns: Option<u64>,
}

impl Recording {
    /// Whether what is recorded here is seen of each operation.
    fn watch(&self) -> bool {
        self.split.is_some() || self.kept.is_some() || self.parts.is_some() || self.items.is_some()
    }
}

/// Takes the limits away while a warm-up runs.
fn withhold(window: &mut Window, load: &LoadPlan) -> Option<Withheld> {
    if ramp_ns(load) == 0 {
        return None;
    }
    let (operations, bytes) = (window.operations, window.bytes);
    (window.operations, window.bytes) = (u64::MAX, u64::MAX);
    Some(Withheld { operations, bytes, operations_done: 0, bytes_done: 0 })
}

/// The place of each class among those of a phase.
fn class_places(classes: &[usize]) -> [u8; CLASSES_MAX] {
    let mut places = [NO_CLASS; CLASSES_MAX];
    for (place, class) in classes.iter().enumerate() {
        places[*class] = place as u8;
    }
    places
}

/// The failures that a load ignores, of the classes that there are.
fn ignored_errors<Op: Operation>(control: &Control) -> Vec<(usize, i32)> {
    let place = |name: &str| Op::CLASSES.iter().position(|class| *class == name);
    control.ignored_errors.iter().filter_map(|error| Some((place(&error.class)?, error.errno))).collect()
}

impl<'a, Op: Operation, S: Source<Op>, C: Clock> Worker<'a, Op, S, C> {
    #[allow(clippy::too_many_arguments, reason = "made in one place, from parts with different lives")]
    pub(crate) fn new(
        driver: &'a mut dyn Driver<Op>,
        source: S,
        clock: C,
        job: &Job<C>,
        mut window: Window,
        shared: &'a Shared,
        (exchange, marks): (&'a Exchange, &'a Marks),
        recording: Recording,
    ) -> Self {
        let load = &job.load;
        let next_interval_ns = window.open_ns.saturating_add(shared.interval_ns.load(Ordering::Relaxed));
        let withheld = withhold(&mut window, load);
        let is_watched = recording.watch() || source.checks() || withheld.is_some();
        Self {
            driver,
            source,
            clock,
            shared,
            exchange,
            window,
            withheld,
            stops_on_error: load.on_error == OnError::Stop,
            stops_on_mismatch: load.control.on_mismatch.unwrap_or(load.on_error) == OnError::Stop,
            batch_max: load.batch as usize,
            batch_min: load.batch_min,
            class_places: class_places(&job.classes),
            slots: vec![None; load.depth as usize],
            marks,
            free: (0..load.depth).rev().collect(),
            batch: Vec::with_capacity(load.depth as usize),
            offered: 0,
            done: Completions::with_depth(load.depth).limited_to(load.batch_max),
            in_flight: 0,
            busy_since_ns: None,
            current: recording.interval,
            next_interval_ns,
            times: Times::new(&window, next_interval_ns),
            is_exhausted: false,
            is_waiting: false,
            started_ns: u64::MAX,
            first_completion_ns: u64::MAX,
            last_completion_ns: window.open_ns,
            errors: Errors::new(),
            drained: 0,
            drained_ns: 0,
            tool_ns: 0,
            fill_ns: 0,
            verify_ns: 0,
            usage_before: Usage::of_thread(),
            arrivals: ArrivalTally::default(),
            unserved: Unserved::default(),
            lateness: recording.lateness,
            ready_ns: 0,
            call_ns: (0, 0),
            split: recording.split,
            parts: recording.parts,
            kept: recording.kept,
            items: recording.items,
            is_watched,
            ignored_errors: ignored_errors::<Op>(&load.control),
            ends_when_full: load.control.ends_when_full,
            depth_found: None,
            finishes: job.finishes,
            is_finished: false,
            finals_from_ns: None,
        }
    }

    /// Whether the loop is open: latencies begin when operations were due.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.lateness.is_some()
    }

    /// Whether new operations may start at `now`.
    #[inline]
    pub(crate) fn may_start(&self, now: u64) -> bool {
        now < self.window.close_ns && !self.is_exhausted && !self.shared.is_ending()
    }

    /// Draws the next operation into the batch; false when there is no slot or nothing left to do.
    #[inline]
    pub(crate) fn draw(&mut self) -> bool {
        let Some(&slot) = self.free.last() else { return false };
        if self.window.is_used_up() {
            self.is_exhausted = true;
            return false;
        }
        let Some(operation) = self.source.next(slot) else {
            let has_more = self.in_flight > 0 || !self.batch.is_empty() || self.source.waits_for_others();
            self.is_waiting = has_more && self.source.waits();
            self.is_exhausted = !self.is_waiting;
            return false;
        };
        if operation.is_limited() {
            self.window.operations -= 1;
            self.window.bytes = self.window.bytes.saturating_sub(operation.bytes());
        }
        self.occupy(slot, operation);
        true
    }

    /// Draws one of the operations that end the worker's share into the batch. Nothing is in flight then.
    #[cold]
    pub(crate) fn draw_final(&mut self, now: u64) -> bool {
        let is_over = now >= self.window.close_ns;
        let is_due = if self.finishes {
            self.is_exhausted || is_over || self.shared.is_ending()
        } else {
            self.is_exhausted && !is_over
        };
        if !is_due || self.shared.is_stopped() {
            return false;
        }
        let Some(&slot) = self.free.last() else { return false };
        let Some(operation) = self.source.finish(slot) else {
            self.is_finished = true;
            return false;
        };
        self.occupy(slot, operation);
        self.finals_from_ns.get_or_insert(now);
        true
    }

    #[inline]
    fn occupy(&mut self, slot: u32, operation: Op) {
        self.free.pop();
        self.slots[slot as usize] = Some(operation);
        self.batch.push(operation);
    }

    /// Sets when the operation drawn last was due: its latency counts from there.
    #[inline]
    pub(crate) fn due_at(&mut self, due_ns: u64) {
        if let Some(operation) = self.batch.last() {
            self.marks.set(operation, due_ns);
        }
    }

    /// Fills the batch's buffers and hands it to the driver. What the driver is too busy for stays in the batch.
    /// `mark` is when the tool's own work began.
    #[inline]
    pub(crate) fn prepare_and_submit(&mut self, mark: u64) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let mut now = self.clock.now_ns();
        if self.source.prepares() {
            let before = now;
            for operation in &self.batch[self.offered..] {
                self.source.prepare(operation);
            }
            now = self.clock.now_ns();
            self.fill_ns += now - before;
        }
        self.tool_ns += now - mark;
        self.started_ns = self.started_ns.min(now);
        if self.is_open() {
            self.pass_time(now, 0, 0);
            self.note_departures(now);
        } else {
            for operation in &self.batch {
                self.marks.set(operation, now);
            }
        }
        let accepted = self.driver.submit(&self.batch, &mut self.done)?.accepted;
        if self.split.is_some() {
            self.note_submission(accepted);
        }
        self.in_flight += accepted as u32;
        if self.is_open() {
            self.call_ns.1 = self.clock.now_ns();
        }
        if accepted == self.batch.len() {
            self.batch.clear();
            self.offered = 0;
            self.busy_since_ns = None;
        } else {
            self.refused(accepted)?;
        }
        Ok(())
    }

    /// An open loop's batch leaves at `now`: how late because of strata. Final operations are due when they leave.
    fn note_departures(&mut self, now: u64) {
        let Some(lateness) = &mut self.lateness else { return };
        for operation in &self.batch[self.offered..] {
            let due_ns = self.marks.start_ns(operation.slot());
            if due_ns == 0 {
                self.marks.set(operation, now);
            } else if due_ns >= self.window.open_ns {
                // The time in the driver's last call is the target's.
                let since_ns = due_ns.max(self.ready_ns);
                let in_call_ns = self.call_ns.1.saturating_sub(self.call_ns.0.max(since_ns));
                lateness.record(now.saturating_sub(since_ns).saturating_sub(in_call_ns));
            }
        }
        self.call_ns.0 = now;
    }

    #[cold]
    fn refused(&mut self, accepted: usize) -> Result<(), Error> {
        self.batch.drain(..accepted);
        self.offered = self.batch.len();
        if !self.is_open() {
            // They begin when they are offered again.
            self.batch.iter().for_each(|operation| self.marks.clear(operation.slot()));
        }
        if accepted > 0 || self.in_flight > 0 {
            self.busy_since_ns = None;
            return Ok(());
        }
        // With nothing in flight only the driver's own helper (a polling kernel thread) can make room: it gets some time.
        let now = self.clock.now_ns();
        let since = *self.busy_since_ns.get_or_insert(now);
        if now - since > BUSY_NS_MAX {
            return Err(Error::new(
                ErrorKind::Run,
                "submit",
                "the driver is busy although nothing is in flight",
            ));
        }
        self.clock.spin_until(now + BUSY_POLL_NS);
        Ok(())
    }

    /// Collects what has completed, without blocking longer than `wait`.
    #[inline]
    pub(crate) fn reap(&mut self, wait: Wait) -> Result<(), Error> {
        self.driver.reap(wait, &mut self.done)
    }

    /// Whether completions wait to be collected.
    #[inline]
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Begins the interval that `now` lies in. A completion at the border belongs to the interval that ends there.
    #[cold]
    pub(crate) fn rotate(&mut self, now: u64) {
        let interval_ns = self.shared.interval_ns.load(Ordering::Relaxed);
        let start_ns = (now - self.window.open_ns - 1) / interval_ns * interval_ns;
        let border_ns = self.window.open_ns + start_ns;
        let empty = loop {
            let empty = self.exchange.empty();
            if empty.is_some() || !self.clock.await_collector() {
                break empty;
            }
        };
        if let Some(empty) = empty {
            self.settle(border_ns, now);
            self.exchange.hand_over(std::mem::replace(&mut self.current, empty));
            self.current.start_ns = start_ns;
            self.marks.handed_over(if self.is_open() { now } else { border_ns });
        }
        self.next_interval_ns = self.window.open_ns + start_ns + interval_ns;
        self.times.begin(&self.window, self.current.start_ns, self.next_interval_ns);
    }
}
