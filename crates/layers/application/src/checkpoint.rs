//! Checkpoints of an application: throughput of each, the time that ranks stand still for them, and their share of the time.

use std::sync::atomic::{AtomicU64, Ordering};

use layer::observations::{CheckpointActivity, CheckpointBlocking};
use statistics::{PhaseSamples, WorkerSamples};

use crate::operation::AppClass;
use crate::plan::{AppPlan, GroupPlan, StepPlan};
use crate::progress::Progress;

/// Time of the stages of an application so far, in nanoseconds.
#[derive(Default)]
pub(crate) struct Times {
    checkpoints: AtomicU64,
    others: AtomicU64,
}

impl Times {
    /// Takes in a stage that has ended; what is told of it where it is a checkpoint.
    pub(crate) fn take(
        &self,
        plan: &AppPlan,
        samples: &PhaseSamples,
        progress: &Progress,
    ) -> Option<CheckpointActivity> {
        let ns = samples.elapsed_ns;
        let computes = |group: &GroupPlan| group.steps.iter().any(|step| step.compute_ns > 0);
        if !plan.groups.iter().any(|group| group.checkpoint) {
            // Training, evaluation and pauses; the data set is made before all of them.
            if plan.groups.iter().any(computes) {
                self.others.fetch_add(ns, Ordering::Relaxed);
            }
            return None;
        }
        let sums = Sums::of(plan, samples);
        // Ranks that compute in the stage itself stand still for a part of it alone.
        let (own_ns, other_ns) = match plan.groups.iter().any(|group| group.checkpoint && computes(group)) {
            true => (sums.of_rank(sums.blocking_ns), sums.of_rank(sums.compute_ns)),
            false => (ns, 0),
        };
        let all_ns = self.checkpoints.fetch_add(own_ns, Ordering::Relaxed) + own_ns;
        let others_ns = self.others.fetch_add(other_ns, Ordering::Relaxed) + other_ns;
        let classes = || samples.workers.iter().flat_map(|worker| &worker.classes);
        let named = |class: AppClass| classes().filter(move |one| one.class == class.name());
        let bytes: u64 = named(AppClass::Write).map(|one| one.bytes).sum();
        let ranks = plan.groups.iter().filter(|group| group.checkpoint).map(|group| group.processes).sum();
        Some(CheckpointActivity {
            ranks,
            files: named(AppClass::Create).map(|one| one.latency.count()).sum(),
            bytes,
            time_ns: ns,
            bytes_per_second: bytes as f64 * 1e9 / ns.max(1) as f64,
            share_fraction: (others_ns > 0).then(|| all_ns as f64 / (all_ns + others_ns) as f64),
            blocking: sums.blocking(plan, progress),
        })
    }
}

/// Time of a class of calls of a process.
fn time_of(worker: &WorkerSamples, class: AppClass) -> u64 {
    let named = worker.classes.iter().filter(|one| one.class == class.name());
    named.map(|one| u64::try_from(one.latency.sum_ns()).unwrap_or(u64::MAX)).sum()
}

/// Time of all calls of a process without one class of them.
fn time_without(worker: &WorkerSamples, class: AppClass) -> u64 {
    let others = worker.classes.iter().filter(|one| one.class != class.name());
    others.map(|one| u64::try_from(one.latency.sum_ns()).unwrap_or(u64::MAX)).sum()
}

/// Time of the processes of a stage with checkpoints, in nanoseconds of all of them together.
#[derive(Default)]
struct Sums {
    ranks: u64,
    /// In calls, computing left out; and that of the rank that has most.
    blocking_ns: u64,
    blocking_most_ns: u64,
    copy_ns: u64,
    stall_ns: u64,
    compute_ns: u64,
    /// From the last call of a rank to the end of the stage.
    ended_ns: u64,
    flushers: u64,
    /// In calls of flushers, waiting left out.
    flush_ns: u64,
    /// From the begin of flushers to their end, waiting left out.
    flushing_ns: u64,
}

impl Sums {
    fn of(plan: &AppPlan, samples: &PhaseSamples) -> Self {
        let mut sums = Self::default();
        let is_flusher = |group: &GroupPlan| {
            let mut calls = group.steps.iter().flat_map(StepPlan::calls);
            !group.checkpoint && calls.any(|call| call.class == AppClass::Write)
        };
        for worker in &samples.workers {
            let number = plan.load.worker(worker.worker as u32);
            let Some(group) = plan.process(number).map(|(at, _)| &plan.groups[at]) else { continue };
            if group.checkpoint {
                let blocking_ns = time_without(worker, AppClass::Compute);
                sums.ranks += 1;
                sums.blocking_ns += blocking_ns;
                sums.blocking_most_ns = sums.blocking_most_ns.max(blocking_ns);
                sums.copy_ns += time_of(worker, AppClass::Copy);
                sums.stall_ns += time_of(worker, AppClass::Wait);
                sums.compute_ns += time_of(worker, AppClass::Compute);
                sums.ended_ns += samples.elapsed_ns.saturating_sub(worker.finished_ns);
            } else if is_flusher(group) {
                let at_work_ns = worker.finished_ns.saturating_sub(worker.started_ns);
                sums.flushers += 1;
                sums.flush_ns += time_without(worker, AppClass::Wait);
                sums.flushing_ns += at_work_ns.saturating_sub(time_of(worker, AppClass::Wait));
            }
        }
        sums
    }

    /// Of one rank, in the mean.
    fn of_rank(&self, ns: u64) -> u64 {
        ns / self.ranks.max(1)
    }

    /// Times of a checkpoint; none where no rank here has one.
    fn blocking(&self, plan: &AppPlan, progress: &Progress) -> Option<CheckpointBlocking> {
        let groups = || plan.groups.iter().enumerate();
        let rank_checkpoints: u64 =
            groups().filter(|(_, group)| group.checkpoint).map(|(at, _)| progress.of_group(at).1).sum();
        if rank_checkpoints == 0 {
            return None;
        }
        let each = |ns: u64| ns / rank_checkpoints;
        let fewest = groups().map(|(at, _)| progress.of_group(at).0).min().unwrap_or(0);
        let is_async = plan.staged().next().is_some();
        // Of the time that a flusher is at work, the part in which its rank waits for it or has nothing more to do.
        let flushing_ns = self.flushing_ns / self.flushers.max(1);
        let alone_ns = self.of_rank(self.stall_ns + self.ended_ns);
        Some(CheckpointBlocking {
            is_async,
            checkpoints: fewest,
            rank_checkpoints,
            blocking_ns: each(self.blocking_ns),
            blocking_most_ns: self.blocking_most_ns * self.ranks / rank_checkpoints,
            copy_ns: each(self.copy_ns),
            stall_ns: each(self.stall_ns),
            compute_ns: each(self.compute_ns),
            flush_ns: is_async.then(|| each(self.flush_ns * self.ranks / self.flushers.max(1))),
            overlap_fraction: (is_async && flushing_ns > 0)
                .then(|| (1.0 - alone_ns as f64 / flushing_ns as f64).max(0.0)),
        })
    }
}
