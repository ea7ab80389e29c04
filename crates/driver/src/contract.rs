//! Operations, drivers and sources.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::Error;

/// Most classes of a layer.
pub const CLASSES_MAX: usize = 32;

/// One operation of a layer: small, plain, copied into the driver.
pub trait Operation: Copy + Send + 'static {
    /// Names of the classes that figures are kept apart by (`read`, `write`, ...); at most [`CLASSES_MAX`].
    const CLASSES: &'static [&'static str];

    /// Index into [`Operation::CLASSES`].
    fn class(&self) -> usize;

    /// The slot of this operation: below the queue depth, in use by no other operation in flight. It names the buffer too.
    fn slot(&self) -> u32;

    /// Bytes that the operation moves when it succeeds in full; 0 where it moves none.
    fn bytes(&self) -> u64;

    /// Where in its target it begins, in bytes; 0 where targets have no positions.
    #[inline]
    fn position(&self) -> u64 {
        0
    }

    /// Number of its target, where there are several.
    fn target(&self) -> u16 {
        0
    }

    /// Whether it counts towards a limit of operations.
    #[inline]
    fn is_limited(&self) -> bool {
        true
    }

    /// Whether it is the first operation of an item that takes several, such as a file that is opened, written and closed.
    #[inline]
    fn begins_item(&self) -> bool {
        true
    }

    /// Whether it is the last operation of an item.
    #[inline]
    fn ends_item(&self) -> bool {
        true
    }

    /// Place of its item among those that are in flight, below the queue depth: its slot, where an item keeps that.
    #[inline]
    fn item_place(&self) -> u32 {
        self.slot()
    }

    /// The part of the target that it goes to (an endpoint, a server): counts are kept apart by it where a job names parts.
    #[inline]
    fn part(&self) -> usize {
        0
    }

    /// Bytes that it moved, where `result` says that it was done in full: fewer than [`Operation::bytes`] only where that is good too.
    #[inline]
    fn moved_bytes(&self, _result: i64) -> u64 {
        self.bytes()
    }

    /// Whether `result` says that the operation was done in full. Operations that move nothing return any count.
    #[inline]
    fn is_whole(&self, result: i64) -> bool {
        result == self.bytes() as i64
    }
}

/// Part of a batch that [`Driver::submit`] took.
///
/// Operations come in three outcomes: *completed* (already in `done` when submit returns), *queued* (taken; will appear
/// in `done` of a later reap) and *busy* (the tail of the batch that was not taken; offer it again after a reap).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Operations taken from the front of the batch. The rest is busy.
    pub accepted: usize,
}

/// How long [`Driver::reap`] may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Hand what was submitted to the target and collect what is done, without waiting.
    None,
    /// Return when at least this many have completed.
    AtLeast(u32),
    /// Return when at least `count` have completed or `timeout_ns` nanoseconds went by.
    Timeout {
        /// Completions to wait for.
        count: u32,
        /// Longest wait, in nanoseconds.
        timeout_ns: u64,
    },
}

impl Wait {
    /// Completions to wait for, and until when at the latest; none: for ever.
    #[inline]
    #[must_use]
    pub fn deadline(self) -> (usize, Option<Instant>) {
        match self {
            Self::None => (0, None),
            Self::AtLeast(count) => (count as usize, None),
            Self::Timeout { count, timeout_ns } => {
                (count as usize, Some(Instant::now() + Duration::from_nanos(timeout_ns)))
            }
        }
    }

    /// The same by a clock that says `now_ns`: `u64::MAX` for ever. Nothing to wait for is no wait: (0, 0).
    #[inline]
    #[must_use]
    pub fn deadline_ns(self, now_ns: u64) -> (u32, u64) {
        match self {
            Self::None | Self::AtLeast(0) | Self::Timeout { count: 0, .. } => (0, 0),
            Self::AtLeast(count) => (count, u64::MAX),
            Self::Timeout { count, timeout_ns } => (count, now_ns.saturating_add(timeout_ns)),
        }
    }
}

/// One finished operation: `result` is the number of bytes moved, or a negated errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot of the operation.
    pub slot: u32,
    /// Bytes moved (>= 0) or negated errno (< 0).
    pub result: i64,
}

/// When an operation was carried out, by the clock of the worker ([`HostClock`](crate::HostClock)), in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the driver began with it.
    pub began_ns: u64,
    /// When it was done.
    pub ended_ns: u64,
}

/// The completions of a [`Completions`] that have their own times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// How many.
    pub count: u32,
    /// Their times together, in nanoseconds.
    pub sum_ns: u64,
}

/// The list that drivers push completions to. Its room is the queue depth: it never grows in the measured window.
#[derive(Debug)]
pub struct Completions {
    reaped_max: usize,
    entries: Vec<Completion>,
    /// Times of the entries as far as drivers told them; shorter than `entries`, or empty, where they did not.
    spans: Vec<Option<Span>>,
}

impl Completions {
    /// A list with room for `depth` completions.
    #[must_use]
    pub fn with_depth(depth: u32) -> Self {
        let spans = Vec::with_capacity(depth as usize);
        Self { entries: Vec::with_capacity(depth as usize), reaped_max: depth as usize, spans }
    }

    /// The same list, which a [`Driver::reap`] fills to `reaped_max` at most.
    #[must_use]
    pub fn limited_to(mut self, reaped_max: u32) -> Self {
        self.reaped_max = reaped_max.max(1) as usize;
        self
    }

    /// How many more completions a [`Driver::reap`] may add; what else has completed is left for the next one.
    #[inline]
    #[must_use]
    pub fn room(&self) -> usize {
        self.reaped_max.saturating_sub(self.entries.len())
    }

    /// Adds a completion: its latency lasts from when the batch was submitted (an open loop: from when it was due) to when the call of
    /// the driver returns.
    #[inline]
    pub fn push(&mut self, slot: u32, result: i64) {
        self.entries.push(Completion { slot, result });
    }

    /// Adds a completion with its own time: for a driver that carries the operations of a batch out one after the other within
    /// [`Driver::submit`]. Its latency is that of `span` (an open loop: from when it was due to the end of `span`).
    #[inline]
    pub fn push_timed(&mut self, slot: u32, result: i64, span: Span) {
        if self.spans.len() < self.entries.len() {
            self.leave_spans_out();
        }
        self.spans.push(Some(span));
        self.entries.push(Completion { slot, result });
    }

    /// Completions were added without times.
    #[cold]
    fn leave_spans_out(&mut self) {
        self.spans.resize(self.entries.len(), None);
    }

    /// Whether any completion has its own time.
    #[inline]
    #[must_use]
    pub fn has_spans(&self) -> bool {
        !self.spans.is_empty()
    }

    /// The own time of completion `at`, where its driver told it.
    #[inline]
    #[must_use]
    pub fn span(&self, at: usize) -> Option<Span> {
        self.spans.get(at).copied().flatten()
    }

    /// Those of the completions that have their own times.
    #[must_use]
    pub fn timed(&self) -> Timed {
        self.timed_until(u64::MAX)
    }

    /// The same, with the part of each time that lies before `until_ns`.
    #[must_use]
    pub fn timed_until(&self, until_ns: u64) -> Timed {
        let add = |sum: Timed, span: &Span| Timed {
            count: sum.count + 1,
            sum_ns: sum.sum_ns + span.ended_ns.min(until_ns).saturating_sub(span.began_ns),
        };
        self.spans.iter().flatten().fold(Timed::default(), add)
    }

    /// Takes out the completions whose own time ended after `until_ns`, and those without one.
    #[must_use]
    pub fn take_later(&mut self, until_ns: u64) -> Self {
        let empty = || Self { reaped_max: self.reaped_max, entries: Vec::new(), spans: Vec::new() };
        let (mut earlier, mut later) = (empty(), empty());
        for (at, completion) in self.entries.iter().enumerate() {
            match self.span(at) {
                Some(span) if span.ended_ns <= until_ns => {
                    earlier.push_timed(completion.slot, completion.result, span);
                }
                Some(span) => later.push_timed(completion.slot, completion.result, span),
                None => later.push(completion.slot, completion.result),
            }
        }
        *self = earlier;
        later
    }

    /// The completions so far.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Completion] {
        &self.entries
    }

    /// Number of completions so far.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing has completed.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all completions; keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        self.entries.clear();
        self.spans.clear();
    }
}

/// Carries out the operations of one worker. One per worker, opened on the worker's own thread, never shared.
///
/// An operation that fails is a completion with a negated errno: it never ends the run by itself. `Err` is kept for
/// failures of the driver (ring broken, event system call refused): the worker stops.
pub trait Driver<Op>: Send {
    /// Takes operations from the front of `batch`. A synchronous driver carries out one operation a call and pushes its completion, or
    /// all of them and gives each its own time ([`Completions::push_timed`]); an asynchronous driver may put off the system call to the
    /// next [`Driver::reap`].
    ///
    /// # Errors
    /// When the driver itself failed; nothing of the batch is in flight then beyond what was before.
    fn submit(&mut self, batch: &[Op], done: &mut Completions) -> Result<Submitted, Error>;

    /// Pushes what has completed since the last call, as far as `done` has [`Completions::room`], waiting as `wait` says.
    /// Returns early when nothing is in flight, or when a signal arrived. Drivers that complete all in [`Driver::submit`] have nothing left for it.
    ///
    /// # Errors
    /// When the driver itself failed.
    #[inline]
    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let _ = (wait, done);
        Ok(())
    }

    /// Descriptor that is readable while completions wait for a [`Driver::reap`], so that a worker can wait for several drivers at once
    /// ([`Joined`](crate::Joined)); none where the driver has no such, or completes everything in [`Driver::submit`]. Asked for before the first
    /// operation: a driver may prepare for it then.
    ///
    /// # Errors
    /// When it cannot be made.
    fn event(&mut self) -> Result<Option<BorrowedFd<'_>>, Error> {
        Ok(None)
    }

    /// More than the errno says about an operation that failed, in one line: who failed it, and what may help. Asked for when it has
    /// completed, before its slot is used again.
    fn cause(&self, _slot: u32, _result: i64) -> Option<String> {
        None
    }

    /// Names of the parts of a latency that it can tell apart, such as `connect` and `first-byte`; none where it cannot.
    fn latency_parts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Begins to time these parts. Called before the first operation, where parts are asked for (`--split-latency`).
    fn time_parts(&mut self) {}

    /// Nanoseconds that each part ([`Driver::latency_parts`]) took of the operation that has completed in a slot. Asked for before its slot is used again.
    fn part_times_ns(&self, _slot: u32) -> &[u64] {
        &[]
    }

    /// Values that it counted besides completions, since it was opened. Asked for once, after the worker's last operation.
    fn tallies(&mut self) -> Vec<Tally> {
        Vec::new()
    }

    /// Faults that it found, beyond what an errno says: a line each, such as the object and keys of damaged data, or what a server
    /// answered; few. Asked for once, after the worker's last operation.
    fn findings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Something that a driver counted or saw, for one part of its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// The part ([`Operation::part`]).
    pub part: usize,
    /// Name of the value, unit last: `tcp_retransmits`, `tcp_round_trip_ns`, `tcp_congestion_window_bytes`.
    pub name: &'static str,
    /// The value.
    pub value: f64,
}

/// A completed operation whose data is wrong: found by [`Source::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of damage in one word (`torn`, `stale`, `misplaced`, ...): faults are counted by it.
    pub cause: &'static str,
    /// The finding in one line.
    pub detail: String,
}

/// Decides what a worker does next. Pure but for the buffers that it fills and checks.
pub trait Source<Op>: Send {
    /// The next operation, to run in `slot`; `None` when this worker's share is exhausted.
    fn next(&mut self, slot: u32) -> Option<Op>;

    /// Whether [`Source::next`] gave none only because it waits for an operation in flight: it is asked again when one has completed.
    /// A source that waits also checks.
    fn waits(&self) -> bool {
        false
    }

    /// Whether [`Source::next`] waits for an operation of another worker: it is asked again soon, also with nothing in flight.
    fn waits_for_others(&self) -> bool {
        false
    }

    /// The next of the operations that end this worker's share (making writes durable), to run in `slot`. Asked for one at a time, when
    /// nothing is in flight and no limit lets [`Source::next`] go on; not asked for when the phase was stopped, nor after the window has
    /// closed unless the phase is measured until the last of them.
    fn finish(&mut self, _slot: u32) -> Option<Op> {
        None
    }

    /// Whether [`Source::prepare`] does work for any operation of this source.
    fn prepares(&self) -> bool {
        false
    }

    /// Fills the buffer of `op`. Called before the operation's latency begins; timed as `fill_ns`.
    fn prepare(&mut self, _op: &Op) {}

    /// Whether [`Source::check`] does work for any operation of this source.
    fn checks(&self) -> bool {
        false
    }

    /// An operation has failed: frees what was kept for it while it was in flight. Called in place of [`Source::check`].
    fn abandon(&mut self, _op: &Op) {}

    /// Checks what a successful operation returned. Called after its latency has ended; timed as `verify_ns`.
    ///
    /// # Errors
    /// The fault that was found.
    fn check(&mut self, _op: &Op, _bytes: u64) -> Result<(), Fault> {
        Ok(())
    }
}
