//! One worker: what both loops share.

use std::sync::atomic::Ordering;

use driver::{CLASSES_MAX, Clock, Completions, Driver, Error, ErrorKind, Operation, Source, Wait};
use host::activity::Usage;
use workload::control::Control;
use workload::spec::OnError;

use crate::exchange::{Exchange, Interval};
use crate::job::{ArrivalTally, Job};
use crate::kept::Kept;
use crate::limits::{Window, ramp_ns};
use crate::parts::Parts;
use crate::shared::Shared;
use crate::split::SplitTally;
use crate::tally::Errors;

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
}

/// One slot: the operation in it and when it began (closed loop) or was due (open loop).
#[derive(Clone, Copy)]
pub(crate) struct Slot<Op> {
    pub(crate) operation: Option<Op>,
    pub(crate) start_ns: u64,
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
    withheld: Option<(u64, u64)>,
    pub(crate) stops_on_error: bool,
    pub(crate) batch_max: usize,
    pub(crate) batch_min: u32,
    pub(crate) class_places: [u8; CLASSES_MAX],
    pub(crate) slots: Vec<Slot<Op>>,
    pub(crate) free: Vec<u32>,
    pub(crate) batch: Vec<Op>,
    pub(crate) done: Completions,
    pub(crate) in_flight: u32,
    busy_since_ns: Option<u64>,
    pub(crate) current: Box<Interval>,
    next_interval_ns: u64,
    pub(crate) is_exhausted: bool,
    pub(crate) started_ns: u64,
    pub(crate) first_completion_ns: u64,
    pub(crate) last_completion_ns: u64,
    pub(crate) errors: Errors,
    pub(crate) drained: u64,
    pub(crate) tool_ns: u64,
    pub(crate) fill_ns: u64,
    pub(crate) verify_ns: u64,
    pub(crate) usage_before: Usage,
    pub(crate) arrivals: ArrivalTally,
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
        exchange: &'a Exchange,
        books: Books,
    ) -> Self {
        let load = &job.load;
        let warms_up = ramp_ns(load) > 0;
        let withheld = warms_up.then_some((window.operations, window.bytes));
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
            slots: vec![Slot { operation: None, start_ns: 0 }; load.depth as usize],
            free: (0..load.depth).rev().collect(),
            batch: Vec::with_capacity(load.depth as usize),
            done: Completions::with_depth(load.depth).limited_to(load.batch_max),
            in_flight: 0,
            busy_since_ns: None,
            current: books.interval,
            next_interval_ns: window.open_ns.saturating_add(shared.interval_ns.load(Ordering::Relaxed)),
            is_exhausted: false,
            started_ns: u64::MAX,
            first_completion_ns: u64::MAX,
            last_completion_ns: window.open_ns,
            errors: Errors::new(),
            drained: 0,
            tool_ns: 0,
            fill_ns: 0,
            verify_ns: 0,
            usage_before: Usage::of_thread(),
            arrivals: ArrivalTally::default(),
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

    /// Lets the limits hold once the window is open at `now`.
    #[inline]
    pub(crate) fn impose_limits(&mut self, now: u64) {
        if self.withheld.is_some() && now >= self.window.open_ns {
            self.impose_withheld_limits();
        }
    }

    /// What is in flight at the opening completes within the window: it is part of the limits, as is what has been counted.
    #[cold]
    fn impose_withheld_limits(&mut self) {
        let Some((operations, bytes)) = self.withheld.take() else { return };
        self.usage_before = Usage::of_thread();
        (self.tool_ns, self.fill_ns, self.verify_ns) = (0, 0, 0);
        for slot in &self.free {
            self.slots[*slot as usize].operation = None;
        }
        let begun = self.slots.iter().filter_map(|slot| slot.operation);
        let begun = begun.fold((0, 0), |sum, operation| (sum.0 + 1, sum.1 + operation.bytes()));
        let counted = self.current.classes.iter();
        let counted =
            counted.fold((0, 0), |sum, tally| (sum.0 + tally.operations + tally.errors, sum.1 + tally.bytes));
        self.window.operations = operations.saturating_sub(begun.0 + counted.0);
        self.window.bytes = bytes.saturating_sub(begun.1 + counted.1);
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
        self.slots[slot as usize] = Slot { operation: Some(operation), start_ns: 0 };
        self.batch.push(operation);
    }

    /// Sets when the operation drawn last was due: its latency counts from there.
    #[inline]
    pub(crate) fn due_at(&mut self, due_ns: u64) {
        if let Some(operation) = self.batch.last() {
            self.slots[operation.slot() as usize].start_ns = due_ns;
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
            for operation in &self.batch {
                self.source.prepare(operation);
            }
            now = self.clock.now_ns();
            self.fill_ns += now - before;
        }
        self.tool_ns += now - mark;
        self.started_ns = self.started_ns.min(now);
        let accepted = self.driver.submit(&self.batch, &mut self.done)?.accepted;
        if self.split.is_some() {
            self.note_submission(accepted);
        }
        for operation in &self.batch[..accepted] {
            let slot = &mut self.slots[operation.slot() as usize];
            if slot.start_ns == 0 {
                slot.start_ns = now;
            }
        }
        self.in_flight += accepted as u32;
        if accepted == self.batch.len() {
            self.batch.clear();
            self.busy_since_ns = None;
        } else {
            self.refused(accepted)?;
        }
        Ok(())
    }

    #[cold]
    fn refused(&mut self, accepted: usize) -> Result<(), Error> {
        self.batch.drain(..accepted);
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

    /// Records what completed at `now`.
    #[inline]
    pub(crate) fn collect(&mut self, now: u64) {
        if self.done.is_empty() {
            return;
        }
        if now > self.next_interval_ns {
            self.rotate(now);
        }
        let is_counted = self.window.counts(now);
        if is_counted {
            self.first_completion_ns = self.first_completion_ns.min(now);
            self.last_completion_ns = now;
        } else if now > self.window.count_until_ns {
            self.drained += self.done.len() as u64;
        }
        if self.source.checks() {
            self.check(now, is_counted);
        }
        if is_counted && self.split.is_some() {
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
            let slot = self.slots[completion.slot as usize];
            self.free.push(completion.slot);
            self.in_flight -= 1;
            let Some(operation) = slot.operation else { continue };
            if !operation.is_whole(completion.result) {
                self.failed(&operation, completion.result, now, is_counted);
                continue;
            }
            if is_counted {
                let place = self.class_places[operation.class()] as usize;
                let tally = &mut self.current.classes[place];
                tally.operations += 1;
                tally.bytes += operation.moved_bytes(completion.result);
                tally.latency.record(now.saturating_sub(slot.start_ns));
            }
        }
        self.done.clear();
    }

    /// Checks what came back; an operation with wrong data is counted as an error and taken out of its slot.
    fn check(&mut self, now: u64, is_counted: bool) {
        for at in 0..self.done.len() {
            let completion = self.done.as_slice()[at];
            let Some(operation) = self.slots[completion.slot as usize].operation else { continue };
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
                self.slots[completion.slot as usize].operation = None;
            }
        }
        self.verify_ns += self.clock.now_ns() - now;
    }

    #[cold]
    fn failed(&mut self, operation: &Op, result: i64, now: u64, is_counted: bool) {
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
    fn rotate(&mut self, now: u64) {
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
        }
        self.next_interval_ns = self.window.open_ns + start_ns + interval_ns;
    }
}
