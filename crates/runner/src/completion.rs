//! Handling of completed operations.

use driver::{Clock, Completions, Operation, Source};

use crate::marks::Marks;
use crate::worker::Worker;

/// See [`Worker::span_of`].
#[inline(always)]
fn span_of(done: &Completions, marks: &Marks, is_open: bool, at: usize, now: u64) -> (u64, u64) {
    let start_ns = marks.start_ns(done.as_slice()[at].slot);
    match done.span(at) {
        None => (start_ns, now),
        Some(span) if is_open => (start_ns, span.ended_ns),
        Some(span) => (span.began_ns, span.ended_ns),
    }
}

/// `ENOSPC`, `EDQUOT`, and `EFBIG` where a file may not become longer.
const FULL: [i64; 3] = [28, 122, 27];

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Records what completed at `now`: in the rate when it completed within the window, in the latencies when it began (open loop:
    /// was due) there.
    #[inline]
    pub(crate) fn collect(&mut self, now: u64) {
        if now > self.window.count_until_ns {
            self.collect_until_close(now);
        }
        if self.done.is_empty() {
            return;
        }
        if self.is_open() {
            let timed = self.done.timed();
            self.pass_time(now, timed.count, timed.sum_ns);
            if self.free.is_empty() {
                self.ready_ns = now;
            }
        }
        if now > self.next_interval_ns {
            self.rotate(now);
        }
        if self.window.counts(now) {
            self.collect_within(now);
        } else {
            if now > self.window.count_until_ns {
                self.drained += self.done.len() as u64;
                self.drained_ns = now;
            }
            self.collect_batch(now, false);
        }
    }

    /// Records what completed within the window.
    #[inline(always)]
    fn collect_within(&mut self, now: u64) {
        if self.first_completion_ns == u64::MAX {
            self.collect_until_open();
            if self.done.is_empty() {
                return;
            }
            self.first_completion_ns = now;
        }
        self.last_completion_ns = now;
        self.collect_batch(now, true);
    }

    #[inline(always)]
    fn collect_batch(&mut self, now: u64, is_counted: bool) {
        if self.is_watched {
            self.watch(now, is_counted);
        }
        match self.done.len() {
            1 => self.collect_one(0, now, is_counted),
            _ => self.collect_all(now, is_counted),
        }
        self.in_flight -= self.done.len() as u32;
        self.done.clear();
    }

    /// Of a batch that goes on after the window was opened: what was over before by its own time is in no figure.
    #[cold]
    fn collect_until_open(&mut self) {
        if self.done.has_spans() {
            let before_ns = self.window.open_ns.saturating_sub(1);
            let later = self.done.take_later(before_ns);
            self.collect_batch(before_ns, false);
            self.done = later;
        }
    }

    /// Of a batch that goes on after the close of the window: what was over before by its own time counts in the rate. A batch may take as long as a
    /// window, where a driver carries it out one by one and the target is slow.
    #[cold]
    fn collect_until_close(&mut self, now: u64) {
        let until_ns = self.window.count_until_ns;
        if !self.done.has_spans() {
            return;
        }
        if self.is_open() {
            let all = self.done.timed();
            self.pass_time(until_ns, all.count, self.done.timed_until(until_ns).sum_ns);
            if self.free.is_empty() {
                self.ready_ns = now;
            }
        }
        if until_ns > self.next_interval_ns {
            self.rotate(until_ns);
        }
        let later = self.done.take_later(until_ns);
        if !self.done.is_empty() {
            self.collect_within(until_ns);
        }
        self.done = later;
    }

    #[inline(always)]
    fn collect_all(&mut self, now: u64, is_counted: bool) {
        let is_alike = is_counted && !self.done.has_spans();
        let mut at = 0;
        while at < self.done.len() {
            let alike = if is_alike { self.collect_alike(at, now) } else { 0 };
            if alike == 0 {
                self.collect_one(at, now, is_counted);
            }
            at += alike.max(1);
        }
    }

    /// Records the completions from `from` on, at `now` within the window, that are whole, of one class, and began together within the
    /// current interval, as those of a batch do: they have one latency. How many.
    #[inline(always)]
    fn collect_alike(&mut self, from: usize, now: u64) -> usize {
        let Self { done, marks, free, slots, current, times, class_places, .. } = self;
        let completions = &done.as_slice()[from..];
        let Some(first) = slots[completions[0].slot as usize].as_ref() else { return 0 };
        let (class, start_ns) = (first.class(), marks.start_ns(completions[0].slot));
        if !times.is_current(start_ns) {
            return 0;
        }
        let (mut count, mut bytes) = (0, 0);
        for completion in completions {
            let Some(operation) = &slots[completion.slot as usize] else { break };
            let is_whole = operation.is_whole(completion.result) && operation.class() == class;
            if !is_whole || marks.start_ns(completion.slot) != start_ns {
                break;
            }
            marks.clear(completion.slot);
            free.push(completion.slot);
            count += 1;
            bytes += operation.moved_bytes(completion.result);
        }
        let tally = &mut current.classes[class_places[class] as usize];
        tally.operations += count as u64;
        tally.bytes += bytes;
        tally.latency.record_n(now.saturating_sub(start_ns), count as u64);
        count
    }

    /// Records completion `at`, whatever it is.
    #[inline(always)]
    fn collect_one(&mut self, at: usize, now: u64, is_counted: bool) {
        let completion = self.done.as_slice()[at];
        let (start_ns, ended_ns) = self.span_of(at, now);
        self.marks.clear(completion.slot);
        self.free.push(completion.slot);
        let operation = self.slots[completion.slot as usize];
        let Some(operation) = operation.filter(|operation| operation.is_whole(completion.result)) else {
            self.add_time_in_flight(start_ns, ended_ns);
            if let Some(operation) = operation {
                self.failed(&operation, completion.result, now, is_counted);
            }
            return;
        };
        let place = self.class_places[operation.class()] as usize;
        let tally = &mut self.current.classes[place];
        if is_counted {
            tally.operations += 1;
            tally.bytes += operation.moved_bytes(completion.result);
        }
        if is_counted && self.times.is_current(start_ns) {
            tally.latency.record(ended_ns.saturating_sub(start_ns));
        } else {
            self.record_across(place, start_ns, ended_ns);
        }
    }

    /// Checks and records completions in the ways that only some loads ask for.
    #[inline(never)]
    fn watch(&mut self, now: u64, is_counted: bool) {
        self.is_waiting = false;
        if is_counted && self.withheld.is_some() {
            self.note_withheld();
        }
        if self.items.is_some() {
            self.note_items(now);
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
    }

    /// When completion `at` began (open loop: was due) and ended.
    #[inline(always)]
    pub(crate) fn span_of(&self, at: usize, now: u64) -> (u64, u64) {
        span_of(&self.done, self.marks, self.is_open(), at, now)
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
                self.after_error(&operation, is_counted, self.stops_on_mismatch);
                self.slots[completion.slot as usize] = None;
            }
        }
        self.verify_ns += self.clock.now_ns() - now;
    }

    #[cold]
    fn failed(&mut self, operation: &Op, result: i64, now: u64, is_counted: bool) {
        self.source.abandon(operation);
        let told = self.driver.cause(operation.slot(), result);
        self.errors.failed(operation, result, told, now.saturating_sub(self.window.open_ns));
        if self
            .ignored_errors
            .iter()
            .any(|(class, errno)| (*class, -i64::from(*errno)) == (operation.class(), result))
        {
            self.errors.ignore_last(operation, result);
            return;
        }
        if self.ends_when_full && (result >= 0 || FULL.contains(&-result)) {
            self.errors.ignore_last(operation, result);
            self.is_exhausted = true;
            return;
        }
        self.after_error(operation, is_counted, self.stops_on_error);
    }

    #[cold]
    fn after_error(&mut self, operation: &Op, is_counted: bool, stops: bool) {
        if is_counted {
            self.current.classes[self.class_places[operation.class()] as usize].errors += 1;
        }
        if stops {
            self.shared.stop();
        }
    }
}
