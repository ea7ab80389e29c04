//! Reads of objects that others put anew at the same time. A store replaces an object at once; some servers remove it first, and for a moment it is not
//! there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::{Clock, Completions, Error, Wait};
use layer::storage::StorageCall;

use super::{AppDriver, Pending};
use crate::operation::{AppClass, AppOperation};
use crate::plan::{AppPlan, StepPlan};

/// An object that is not there for so long is lost, in nanoseconds.
const LOST_NS: u64 = 1_000_000_000;

/// Reads of a stage that found no object where one was put anew, and were made again.
#[derive(Clone, Default)]
pub(crate) struct MadeAgain(Arc<AtomicU64>);

impl MadeAgain {
    /// A line about them; none where there were none.
    pub(crate) fn note(&self) -> Option<String> {
        let count = self.0.load(Ordering::Relaxed);
        (count > 0).then(|| {
            format!(
                "{} found no object while it was being replaced, and were repeated: the server does not replace objects atomically",
                units::counted(count, "read")
            )
        })
    }
}

/// State of a process for such reads.
pub(super) struct Replaced {
    /// By set: the stage puts its objects anew.
    sets: Vec<bool>,
    ended: Completions,
    made_again: MadeAgain,
}

impl Replaced {
    pub(super) fn new(plan: &AppPlan, made_again: &MadeAgain) -> Self {
        // What is opened is written in place.
        let is_whole = plan.left_out.iter().any(|name| name == StorageCall::Open.name());
        let steps = || plan.groups.iter().flat_map(|group| &group.steps);
        let is_replaced = |set: usize| {
            let mut calls = steps().flat_map(StepPlan::calls);
            is_whole && calls.any(|call| call.class == AppClass::Update && usize::from(call.set) == set)
        };
        Self {
            sets: (0..plan.sets.len()).map(is_replaced).collect(),
            ended: Completions::with_depth(1),
            made_again: made_again.clone(),
        }
    }

    pub(super) fn is_read(&self, operation: &AppOperation) -> bool {
        operation.class == AppClass::Read && self.sets[usize::from(operation.set)]
    }
}

impl AppDriver {
    /// Begins a read of an object that may be put anew meanwhile.
    pub(super) fn begin_read(&mut self, operation: &AppOperation) {
        let lost_ns = self.clock.now_ns().saturating_add(LOST_NS);
        self.pending = Pending::Read { operation: *operation, lost_ns, is_sent: false };
    }

    /// Goes on with it.
    pub(super) fn read(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let (_, deadline_ns) = wait.deadline_ns(self.clock.now_ns());
        while let Pending::Read { operation, lost_ns, is_sent } = &mut self.pending {
            let ended = &mut self.replaced.ended;
            if !*is_sent {
                let Some(call) = operation.storage() else { return Ok(()) };
                *is_sent = self.storage.submit(&[call], ended)?.accepted > 0;
            }
            if *is_sent && ended.is_empty() {
                self.storage.reap(wait, ended)?;
            }
            let result = ended.as_slice().first().map(|completion| completion.result);
            let now_ns = self.clock.now_ns();
            match result {
                Some(result) if result != -i64::from(libc::ENOENT) || now_ns >= *lost_ns => {
                    ended.clear();
                    done.push(operation.slot, result);
                    // It may be asked for its cause.
                    self.pending = Pending::Storage(*operation);
                    return Ok(());
                }
                Some(_) => {
                    ended.clear();
                    *is_sent = false;
                    self.replaced.made_again.0.fetch_add(1, Ordering::Relaxed);
                }
                None if *is_sent => return Ok(()),
                None => {}
            }
            if now_ns >= deadline_ns {
                return Ok(());
            }
        }
        Ok(())
    }
}
