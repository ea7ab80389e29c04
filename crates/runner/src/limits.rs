//! A worker's times and its share of the limits.

use driver::{Clock, Operation, Source};
use host::activity::Usage;
use workload::plan::LoadPlan;
use workload::spec::Warmup;

use crate::worker::Worker;

/// The worker's times and limits. Times are absolute on the phase's clock.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// When the measured window opens.
    pub(crate) open_ns: u64,
    /// When operations stop starting; `u64::MAX` without a time limit.
    pub(crate) close_ns: u64,
    /// Completions count in rates until then: the close, or without end where final operations belong to the phase.
    pub(crate) count_until_ns: u64,
    /// Operations that this worker may start.
    pub(crate) operations: u64,
    /// Bytes that this worker may move.
    pub(crate) bytes: u64,
}

impl Window {
    /// The window of worker `number`: counts are dealt out evenly, the first workers take the remainder. With `finishes`, what
    /// completes after the close is counted too.
    pub(crate) fn new(load: &LoadPlan, number: u32, open_ns: u64, finishes: bool) -> Self {
        let deal = |total: Option<u64>| {
            total.map_or(u64::MAX, |total| {
                let threads = u64::from(load.threads);
                total / threads + u64::from(u64::from(number) < total % threads)
            })
        };
        let close_ns = load.limit.time_ns.map_or(u64::MAX, |time_ns| open_ns.saturating_add(time_ns));
        Self {
            open_ns,
            close_ns,
            count_until_ns: if finishes { u64::MAX } else { close_ns },
            operations: deal(load.limit.operations),
            bytes: deal(load.limit.bytes),
        }
    }

    /// Whether figures at `now` are part of the phase.
    #[inline]
    pub(crate) fn counts(&self, now: u64) -> bool {
        now >= self.open_ns && now <= self.count_until_ns
    }

    /// Operations that began before it belong to the latencies of the phase.
    #[inline]
    pub(crate) fn begin_until_ns(&self) -> u64 {
        self.count_until_ns.max(self.close_ns)
    }

    /// Whether an operation that began or was due at `start_ns` belongs to the latencies of the phase.
    #[inline]
    pub(crate) fn holds_begin(&self, start_ns: u64) -> bool {
        start_ns >= self.open_ns && start_ns < self.begin_until_ns()
    }

    /// Whether a limit in operations or bytes was reached.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.operations == 0 || self.bytes == 0
    }
}

/// Time that the load runs before the window opens.
pub(crate) fn ramp_ns(load: &LoadPlan) -> u64 {
    if let Warmup::Fixed(ns) = load.warmup { ns } else { 0 }
}

/// Limits that do not hold yet, because a warm-up runs.
#[derive(Clone, Copy)]
pub(crate) struct Withheld {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    /// Operations that have completed within the window meanwhile.
    pub(crate) operations_done: u64,
    pub(crate) bytes_done: u64,
}

/// Share of an operation that limits count: operations and bytes.
fn limited<Op: Operation>(operation: &Op) -> (u64, u64) {
    if operation.is_limited() { (1, operation.bytes()) } else { (0, 0) }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Lets the limits hold once the window is open at `now`.
    #[inline]
    pub(crate) fn impose_limits(&mut self, now: u64) {
        if self.withheld.is_some() && now >= self.window.open_ns {
            self.impose_withheld_limits();
        }
    }

    /// Imposes withheld limits, less the operations counted so far and those in flight, which complete within the window.
    #[cold]
    fn impose_withheld_limits(&mut self) {
        let Some(withheld) = self.withheld.take() else { return };
        self.usage_before = Usage::of_thread();
        (self.tool_ns, self.fill_ns, self.verify_ns) = (0, 0, 0);
        for slot in &self.free {
            self.slots[*slot as usize] = None;
        }
        let begun = self.slots.iter().flatten();
        let begun = begun.fold((0, 0), |sum, operation| {
            let (count, bytes) = limited(operation);
            (sum.0 + count, sum.1 + bytes)
        });
        self.window.operations = withheld.operations.saturating_sub(begun.0 + withheld.operations_done);
        self.window.bytes = withheld.bytes.saturating_sub(begun.1 + withheld.bytes_done);
    }

    /// Notes what completes within the window before the limits hold.
    #[cold]
    pub(crate) fn note_withheld(&mut self) {
        let Some(withheld) = &mut self.withheld else { return };
        for completion in self.done.as_slice() {
            let Some(operation) = self.slots[completion.slot as usize] else { continue };
            let (count, bytes) = limited(&operation);
            withheld.operations_done += count;
            withheld.bytes_done += bytes;
        }
    }
}
