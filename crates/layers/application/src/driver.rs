//! Driver of a process: calls on its storage, computations, and waiting for other processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::{Arena, Clock, Completions, Driver, Error, HostClock, Submitted, Tally, Wait};
use layer::storage::{Storage, StorageOperation};

use crate::log::Logs;
use crate::meter::Meter;
use crate::operation::{AppClass, AppOperation};
use crate::plan::{AppPlan, ComputeWith};
use crate::progress::Progress;
use crate::staging::Stager;
use crate::words::item_words;

mod commit;
mod replaced;

use commit::{Commits, Writes};
pub(crate) use replaced::MadeAgain;
use replaced::Replaced;

/// How long a process that waits for others sleeps between two looks, in nanoseconds.
const LOOK_NS: u64 = 20_000;
/// Longest sleep of a computation, so that an interruption is noticed, in nanoseconds.
const SLEEP_NS: u64 = 10_000_000;

/// Operation in flight.
#[derive(Clone, Copy)]
enum Pending {
    Nothing,
    Storage(AppOperation),
    /// A read of an object that may be put anew meanwhile.
    Read {
        operation: AppOperation,
        lost_ns: u64,
        is_sent: bool,
    },
    Compute {
        slot: u32,
        until_ns: u64,
        is_busy: bool,
    },
    Wait {
        slot: u32,
        step: (usize, usize),
        iterations: u64,
    },
    Commit {
        operation: AppOperation,
        number: u64,
        writes: Writes,
    },
}

/// The driver.
pub(crate) struct AppDriver {
    storage: Box<dyn Driver<StorageOperation>>,
    shared: Arc<dyn Storage>,
    plan: Arc<AppPlan>,
    progress: Arc<Progress>,
    logs: Arc<Logs>,
    commits: Commits,
    replaced: Replaced,
    interrupt: Arc<AtomicBool>,
    clock: HostClock,
    group: usize,
    pending: Pending,
    meter: Option<Meter>,
    /// Where the process stages items; none where it does not.
    stager: Option<Stager>,
}

impl AppDriver {
    /// The driver of a process of group `group`.
    pub(crate) fn new(
        storage: Box<dyn Driver<StorageOperation>>,
        shared: &Arc<dyn Storage>,
        plan: &Arc<AppPlan>,
        (progress, logs): (&Arc<Progress>, &Arc<Logs>),
        interrupt: &Arc<AtomicBool>,
        group: usize,
    ) -> Self {
        Self {
            logs: Arc::clone(logs),
            commits: Commits::new(plan),
            replaced: Replaced::new(plan, &MadeAgain::default()),
            storage,
            shared: Arc::clone(shared),
            plan: Arc::clone(plan),
            progress: Arc::clone(progress),
            interrupt: Arc::clone(interrupt),
            clock: HostClock::get(),
            group,
            pending: Pending::Nothing,
            meter: None,
            stager: None,
        }
    }

    /// The same with a count of the reads that are made again.
    pub(crate) fn counting(mut self, made_again: &MadeAgain) -> Self {
        self.replaced = Replaced::new(&self.plan, made_again);
        self
    }

    /// The same with the buffers that groups of commits are gathered in.
    pub(crate) fn gathering(mut self, arena: &Arc<Arena>) -> Self {
        self.commits.gather_in(arena, &self.plan, self.group);
        self
    }

    /// The same for an accelerator.
    pub(crate) fn metered(mut self, meter: Option<Meter>) -> Self {
        self.meter = meter;
        self
    }

    /// The same for a process that stages items.
    pub(crate) fn staging(mut self, stager: Option<Stager>) -> Self {
        self.stager = stager;
        self
    }

    /// Slot of a computation that is over or a wait that has ended.
    fn ended(&self) -> Option<u32> {
        let is_cut = self.interrupt.load(Ordering::Relaxed) || self.progress.is_abandoned();
        match self.pending {
            Pending::Compute { slot, until_ns, .. } if is_cut || self.clock.now_ns() >= until_ns => {
                Some(slot)
            }
            Pending::Wait { slot, step, iterations }
                if is_cut || self.progress.is_reached(step, iterations) =>
            {
                Some(slot)
            }
            _ => None,
        }
    }

    /// Passes a little time, `left_ns` at most.
    fn pass(&self, left_ns: u64) {
        match self.pending {
            Pending::Compute { is_busy: true, .. } => (0..64).for_each(|_| std::hint::spin_loop()),
            Pending::Compute { until_ns, .. } => {
                let rest_ns = until_ns.saturating_sub(self.clock.now_ns());
                std::thread::sleep(Duration::from_nanos(rest_ns.min(SLEEP_NS).min(left_ns)));
            }
            _ => std::thread::sleep(Duration::from_nanos(LOOK_NS.min(left_ns))),
        }
    }
}

impl Driver<AppOperation> for AppDriver {
    #[inline]
    fn submit(&mut self, batch: &[AppOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        if let Some(meter) = &mut self.meter {
            meter.begin(operation.class == AppClass::Compute, self.clock.now_ns());
        }
        if operation.class == AppClass::Commit {
            self.begin_commit(operation, done);
            return Ok(Submitted { accepted: 1 });
        }
        if operation.class == AppClass::Append && self.commits.keeps(operation) {
            self.pending = Pending::Nothing;
            done.push(operation.slot, 0);
            return Ok(Submitted { accepted: 1 });
        }
        if let (AppClass::Copy, Some(stager)) = (operation.class, &self.stager) {
            self.pending = Pending::Nothing;
            done.push(operation.slot, stager.stage(operation));
            return Ok(Submitted { accepted: 1 });
        }
        if self.replaced.is_read(operation) {
            self.begin_read(operation);
            return Ok(Submitted { accepted: 1 });
        }
        if let Some(call) = operation.storage() {
            self.pending = Pending::Storage(*operation);
            return self.storage.submit(&[call], done);
        }
        self.pending = match operation.class {
            AppClass::Compute => {
                let step = &self.plan.groups[self.group].steps[usize::from(operation.step)];
                Pending::Compute {
                    slot: operation.slot,
                    until_ns: self.clock.now_ns().saturating_add(operation.amount),
                    is_busy: step.compute_with == ComputeWith::Busy,
                }
            }
            _ => Pending::Wait {
                slot: operation.slot,
                step: (operation.object as usize, operation.item as usize),
                iterations: operation.amount,
            },
        };
        Ok(Submitted { accepted: 1 })
    }

    #[inline]
    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        match self.pending {
            Pending::Nothing => return Ok(()),
            Pending::Storage(_) => return self.storage.reap(wait, done),
            Pending::Commit { .. } => return self.commit(wait, done),
            Pending::Read { .. } => return self.read(wait, done),
            Pending::Compute { .. } | Pending::Wait { .. } => {}
        }
        let (_, deadline_ns) = wait.deadline_ns(self.clock.now_ns());
        loop {
            if let Some(slot) = self.ended() {
                if let (Some(meter), Pending::Compute { .. }) = (&mut self.meter, self.pending) {
                    meter.end(self.clock.now_ns());
                }
                self.pending = Pending::Nothing;
                done.push(slot, 0);
                return Ok(());
            }
            let now_ns = self.clock.now_ns();
            if now_ns >= deadline_ns {
                return Ok(());
            }
            self.pass(deadline_ns - now_ns);
        }
    }

    fn cause(&self, slot: u32, result: i64) -> Option<String> {
        let (Pending::Storage(operation) | Pending::Commit { operation, .. }) = &self.pending else {
            return None;
        };
        let place = operation.storage().map(|call| self.shared.name(&call));
        let told = self.storage.cause(slot, result).or_else(|| match i32::try_from(-result) {
            Ok(errno) if errno > 0 => Some(std::io::Error::from_raw_os_error(errno).to_string()),
            _ => Some(format!("{result} of {} bytes", operation.length_bytes)),
        });
        let item = if operation.class.has_set() { item_words(&self.plan, operation) } else { String::new() };
        let words = [told, Some(item), place].into_iter().flatten().filter(|words| !words.is_empty());
        Some(words.collect::<Vec<_>>().join(", "))
    }

    fn tallies(&mut self) -> Vec<Tally> {
        self.storage.tallies()
    }

    fn findings(&mut self) -> Vec<String> {
        self.storage.findings()
    }
}
