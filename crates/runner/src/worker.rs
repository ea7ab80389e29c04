//! One worker: what both loops share.

use std::sync::atomic::Ordering;

use driver::{CLASSES_MAX, Clock, Completions, Driver, Error, ErrorKind, Operation, Source, Wait};
use host::activity::Usage;
use statistics::Histogram;
use workload::control::Control;
use workload::spec::OnError;

use crate::exchange::{Exchange, Interval};
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

/// What a worker records in, allocated before the window opens.
pub(crate) struct Books {
    pub(crate) interval: Box<Interval>,
    pub(crate) split: Option<Box<SplitTally>>,
    /// Where the station names parts.
    pub(crate) parts: Option<Box<Parts>>,
    /// Where operations are watched one by one.
    pub(crate) kept: Option<Box<Kept>>,
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
    /// Failures that are counted and touch nothing else: class and number.
    ignored_errors: Vec<(usize, i32)>,
    /// The largest depth at which latency held, where it was searched for.
    pub(crate) depth_found: Option<u32>,
    /// Whether final operations belong to the phase after its close too.
    pub(crate) finishes: bool,
    /// Whether the source has no final operation left.
    pub(crate) is_finished: bool,
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
        job: &Job<Op, S>,
        mut window: Window,
        shared: &'a Shared,
        (exchange, marks): (&'a Exchange, &'a Marks),
        books: Books,
    ) -> Self {
        let load = &job.load;
        let warms_up = ramp_ns(load) > 0;
        let (operations, bytes) = (window.operations, window.bytes);
        let withheld = Withheld { operations, bytes, operations_done: 0, bytes_done: 0 };
        let withheld = warms_up.then_some(withheld);
        let next_interval_ns = window.open_ns.saturating_add(shared.interval_ns.load(Ordering::Relaxed));
        if warms_up {
            (window.operations, window.bytes) = (u64::MAX, u64::MAX);
        }
        let mut class_places = [NO_CLASS; CLASSES_MAX];
        for (place, class) in job.classes.iter().enumerate() {
            class_places[*class] = place as u8;
        }
        Self {
            driver,
            source,
            clock,
            shared,
            exchange,
            window,
            withheld,
            stops_on_error: load.on_error == OnError::Stop,
            batch_max: load.batch as usize,
            batch_min: load.batch_min,
            class_places,
            slots: vec![None; load.depth as usize],
            marks,
            free: (0..load.depth).rev().collect(),
            batch: Vec::with_capacity(load.depth as usize),
            offered: 0,
            done: Completions::with_depth(load.depth).limited_to(load.batch_max),
            in_flight: 0,
            busy_since_ns: None,
            current: books.interval,
            next_interval_ns,
            times: Times::new(&window, next_interval_ns),
            is_exhausted: false,
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
            lateness: books.lateness,
            ready_ns: 0,
            call_ns: (0, 0),
            split: books.split,
            parts: books.parts,
            kept: books.kept,
            ignored_errors: ignored_errors::<Op>(&load.control),
            depth_found: None,
            finishes: job.finishes,
            is_finished: false,
        }
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
            self.is_exhausted = true;
            return false;
        };
        self.window.operations -= u64::from(operation.is_limited());
        self.window.bytes = self.window.bytes.saturating_sub(operation.bytes());
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
        self.pass_time(now, 0, 0);
        if self.lateness.is_some() {
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
        if self.lateness.is_some() {
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

    /// Records what completed at `now`: in the rate when it completed within the window, in the latencies when it began (open loop:
    /// was due) there.
    #[inline]
    pub(crate) fn collect(&mut self, now: u64) {
        if self.done.is_empty() {
            return;
        }
        let timed = self.done.timed();
        self.pass_time(now, timed.count, timed.sum_ns);
        if now > self.next_interval_ns {
            self.rotate(now);
        }
        let is_counted = self.window.counts(now);
        if is_counted {
            self.first_completion_ns = self.first_completion_ns.min(now);
            self.last_completion_ns = now;
            if self.withheld.is_some() {
                self.note_withheld();
            }
        } else if now > self.window.count_until_ns {
            self.drained += self.done.len() as u64;
            self.drained_ns = now;
        }
        if self.free.is_empty() {
            self.ready_ns = now;
        }
        if self.source.checks() {
            self.check(now, is_counted);
        }
        if self.split.is_some() {
            self.note_completions(now);
        }
        if is_counted && self.kept.is_some() {
            self.note_kept(now);
        }
        if self.parts.is_some() {
            self.note_parts(now, is_counted);
        }
        for at in 0..self.done.len() {
            let completion = self.done.as_slice()[at];
            let (start_ns, ended_ns) = self.span_of(at, completion.slot, now);
            self.marks.clear(completion.slot);
            self.free.push(completion.slot);
            self.in_flight -= 1;
            let Some(operation) = self.slots[completion.slot as usize] else { continue };
            if !operation.is_whole(completion.result) {
                self.failed(&operation, completion.result, now, is_counted);
                continue;
            }
            let place = self.class_places[operation.class()] as usize;
            let tally = &mut self.current.classes[place];
            if is_counted {
                tally.operations += 1;
                tally.bytes += operation.moved_bytes(completion.result);
            }
            if self.times.is_current(start_ns) {
                tally.latency.record(ended_ns.saturating_sub(start_ns));
            } else {
                self.began_before(place, start_ns, ended_ns);
            }
        }
        self.done.clear();
    }

    /// When completion `at`, of the operation in `slot`, began (open loop: was due) and ended.
    #[inline(always)]
    pub(crate) fn span_of(&self, at: usize, slot: u32, now: u64) -> (u64, u64) {
        let start_ns = self.marks.start_ns(slot);
        match self.done.span(at) {
            None => (start_ns, now),
            Some(span) if self.lateness.is_some() => (start_ns, span.ended_ns),
            Some(span) => (span.began_ns, span.ended_ns),
        }
    }

    /// Checks what came back; an operation with wrong data is counted as an error and taken out of its slot.
    fn check(&mut self, now: u64, is_counted: bool) {
        for at in 0..self.done.len() {
            let completion = self.done.as_slice()[at];
            let Some(operation) = self.slots[completion.slot as usize] else { continue };
            if !operation.is_whole(completion.result) {
                continue;
            }
            let bytes = operation.moved_bytes(completion.result);
            if let Err(fault) = self.source.check(&operation, bytes) {
                self.errors.faulty(&operation, &fault, now.saturating_sub(self.window.open_ns));
                if let Some(parts) = &mut self.parts {
                    parts.faulty(&operation, &fault);
                }
                self.after_error(&operation, is_counted);
                self.slots[completion.slot as usize] = None;
            }
        }
        self.verify_ns += self.clock.now_ns() - now;
    }

    #[cold]
    fn failed(&mut self, operation: &Op, result: i64, now: u64, is_counted: bool) {
        self.source.abandon(operation);
        self.errors.failed(operation, result, now.saturating_sub(self.window.open_ns));
        if self
            .ignored_errors
            .iter()
            .any(|(class, errno)| (*class, -i64::from(*errno)) == (operation.class(), result))
        {
            self.errors.ignore_last(operation, result);
            return;
        }
        self.after_error(operation, is_counted);
    }

    #[cold]
    fn after_error(&mut self, operation: &Op, is_counted: bool) {
        if is_counted {
            self.current.classes[self.class_places[operation.class()] as usize].errors += 1;
        }
        if self.stops_on_error {
            self.shared.stop();
        }
    }

    /// Begins the interval that `now` lies in. A completion at the border belongs to the interval that ends there.
    #[cold]
    pub(crate) fn rotate(&mut self, now: u64) {
        let interval_ns = self.shared.interval_ns.load(Ordering::Relaxed);
        let start_ns = (now - self.window.open_ns - 1) / interval_ns * interval_ns;
        let is_fresh = loop {
            let is_fresh = self.exchange.rotate(&mut self.current);
            if is_fresh || !self.clock.await_collector() {
                break is_fresh;
            }
        };
        if is_fresh {
            self.current.start_ns = start_ns;
            self.marks.handed_over(now);
        }
        self.next_interval_ns = self.window.open_ns + start_ns + interval_ns;
        self.times.begin(&self.window, self.current.start_ns, self.next_interval_ns);
    }
}
