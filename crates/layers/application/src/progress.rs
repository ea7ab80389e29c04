//! Progress of the processes of a stage, by which they wait for each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::operation::AppClass;
use crate::plan::AppPlan;

/// Iterations that a process has done of a step, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Done(AtomicU64);

/// Progress of a stage.
pub(crate) struct Progress {
    /// By group, step and process.
    done: Vec<Vec<Vec<Done>>>,
    is_abandoned: AtomicBool,
}

impl Progress {
    /// Nothing is done.
    pub(crate) fn new(plan: &AppPlan) -> Self {
        let of = |count: u32| (0..count).map(|_| Done::default()).collect::<Vec<_>>();
        let groups = plan.groups.iter();
        let done = groups.map(|group| group.steps.iter().map(|_| of(group.processes)).collect()).collect();
        Self { done, is_abandoned: AtomicBool::new(false) }
    }

    /// A process has done so many iterations of a step.
    #[inline]
    pub(crate) fn reach(&self, (group, step): (usize, usize), process: u32, iterations: u64) {
        self.done[group][step][process as usize].0.store(iterations, Ordering::Release);
    }

    /// Whether all processes have done so many iterations of a step.
    #[inline]
    pub(crate) fn is_reached(&self, (group, step): (usize, usize), iterations: u64) -> bool {
        self.done[group][step].iter().all(|done| done.0.load(Ordering::Acquire) >= iterations)
    }

    /// Iterations that all processes have done of the steps with calls of a class, of all such steps together.
    pub(crate) fn least_of(&self, plan: &AppPlan, class: AppClass) -> u64 {
        let mut sum = 0;
        for (group, done) in plan.groups.iter().zip(&self.done) {
            for (step, done) in group.steps.iter().zip(done) {
                if step.calls().any(|call| call.class == class) {
                    sum += done.iter().map(|done| done.0.load(Ordering::Acquire)).min().unwrap_or(0);
                }
            }
        }
        sum
    }

    /// A process has ended before it was done: nobody waits any more.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    /// Whether one has.
    #[inline]
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }
}
