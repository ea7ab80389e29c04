//! A worker's times and its share of the limits.

use workload::plan::LoadPlan;
use workload::spec::Warmup;

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
