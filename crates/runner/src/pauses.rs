//! Pauses of a worker between its operations.

use driver::{Clock, Operation, Source};
use workload::plan::ThinkPlan;

use crate::waiting::{SLEEP_NS_MAX, wait};
use crate::worker::Worker;

/// When the pauses of a worker come.
pub(crate) struct Pauses {
    think: ThinkPlan,
    /// Operations until the next one.
    left: u64,
    /// When it comes at the latest; none before operations have begun.
    latest_ns: Option<u64>,
    /// When the last one was over.
    over_ns: u64,
}

impl Pauses {
    pub(crate) fn new(think: ThinkPlan) -> Self {
        Self { think, left: think.blocks, latest_ns: None, over_ns: 0 }
    }

    /// Whether nothing may start before the next pause. Time counts from the first look after the one before.
    #[inline]
    pub(crate) fn are_due(&mut self, now: u64) -> bool {
        let Some(after_ns) = self.think.after_ns else { return self.left == 0 };
        self.left == 0 || now >= *self.latest_ns.get_or_insert(now.saturating_add(after_ns))
    }

    /// An operation was drawn.
    #[inline]
    pub(crate) fn draw(&mut self) {
        self.left -= 1;
    }

    /// When an operation that was due at `due` is due to a worker that paused meanwhile.
    #[inline]
    pub(crate) fn after(&self, due: u64) -> u64 {
        due.max(self.over_ns)
    }

    /// By how much a pause of this length moves what is due after it.
    pub(crate) fn moves_by(&self, length_ns: u64) -> u64 {
        if self.think.moves_arrivals { length_ns } else { 0 }
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Lets the pause that begins at `mark` go by, as far as the window is open and the phase goes on; the time then.
    pub(crate) fn pause(&self, mark: u64, pauses: &mut Pauses) -> u64 {
        let until_ns = |length_ns: u64| mark.saturating_add(length_ns).min(self.window.close_ns);
        let is_over = || self.shared.is_ending();
        let (busy_until_ns, until_ns) = (until_ns(pauses.think.spin_ns), until_ns(pauses.think.pause_ns));
        let mut now = mark;
        while now < busy_until_ns && !is_over() {
            self.clock.spin_until(busy_until_ns.min(now + SLEEP_NS_MAX));
            now = self.clock.now_ns();
        }
        let now = wait(&self.clock, until_ns, is_over);
        (pauses.left, pauses.latest_ns, pauses.over_ns) = (pauses.think.blocks, None, now);
        now
    }
}
