//! Progress of the processes of a stage, by which they wait for each other: those of this host, and of the others that carry out the run with it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use driver::Error;
use layer::{HostLink, Hosts};

use crate::operation::AppClass;
use crate::plan::AppPlan;

/// Progress of a process that is none of this host: nothing here waits for it.
const ELSEWHERE: u64 = u64::MAX;

/// Iterations that a process has done of a step, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Done(AtomicU64);

/// A step that others wait for.
#[derive(Default)]
struct Step {
    /// By process of the group.
    done: Vec<Done>,
    /// Iterations that all processes of all hosts have done, as far as is known here; not kept where no step waits for it, or where there are no
    /// other hosts.
    of_all: Option<AtomicU64>,
    /// The thread that goes to the other hosts for it.
    messenger: OnceLock<Thread>,
}

impl Step {
    /// Iterations that all processes here have done.
    fn here(&self) -> u64 {
        self.done.iter().map(|done| done.0.load(Ordering::Acquire)).min().unwrap_or(ELSEWHERE)
    }
}

/// State that the threads that go to the other hosts share with the processes.
struct Shared {
    /// By group and step.
    steps: Vec<Vec<Step>>,
    is_abandoned: AtomicBool,
    /// The stage is over: nobody goes to the others any more.
    is_over: AtomicBool,
}

/// Progress of a stage.
pub(crate) struct Progress(Arc<Shared>);

impl Progress {
    /// Nothing is done, by the processes of one host.
    pub(crate) fn new(plan: &AppPlan) -> Self {
        let of = |count: u32| (0..count).map(|_| Done::default()).collect::<Vec<_>>();
        let step = |processes| Step { done: of(processes), ..Step::default() };
        let groups = plan.groups.iter();
        let steps = groups.map(|group| group.steps.iter().map(|_| step(group.processes)).collect()).collect();
        Self(Arc::new(Shared {
            steps,
            is_abandoned: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }))
    }

    /// Nothing is done, by the processes of this host and of those that it carries out the run with. All hosts name the stage the same, and no two
    /// stages have one name.
    ///
    /// # Errors
    /// When a thread that goes to the others cannot be started.
    pub(crate) fn with_hosts(plan: &AppPlan, name: &str, hosts: Option<&Hosts>) -> Result<Self, Error> {
        let mut progress = Self::new(plan);
        let Some(hosts) = hosts else { return Ok(progress) };
        let waited = waited_for(plan);
        if let Some(shared) = Arc::get_mut(&mut progress.0) {
            for (group, steps) in shared.steps.iter_mut().enumerate() {
                for (at, step) in steps.iter_mut().enumerate() {
                    step.of_all = waited.contains(&(group, at)).then(AtomicU64::default);
                    step.done.iter_mut().for_each(|done| *done.0.get_mut() = ELSEWHERE);
                    plan.processes_here(group)
                        .for_each(|process| *step.done[process as usize].0.get_mut() = 0);
                }
            }
        }
        for (group, at) in waited {
            let (shared, link) = (Arc::clone(&progress.0), Arc::clone(&hosts.link));
            let (name, iterations) = (format!("{name}.{group}.{at}"), plan.groups[group].iterations);
            let go = move || shared.go_round((group, at), iterations, &name, &*link);
            let thread = std::thread::Builder::new()
                .name("progress".to_owned())
                .spawn(go)
                .map_err(|error| Error::system("threads", "cannot start a thread", error))?;
            // Set once, before any process has done anything.
            let _ = progress.0.steps[group][at].messenger.set(thread.thread().clone());
        }
        Ok(progress)
    }

    /// A process has done so many iterations of a step.
    #[inline]
    pub(crate) fn reach(&self, (group, step): (usize, usize), process: u32, iterations: u64) {
        let step = &self.0.steps[group][step];
        step.done[process as usize].0.store(iterations, Ordering::Release);
        if let Some(messenger) = step.messenger.get() {
            messenger.unpark();
        }
    }

    /// Whether all processes have done so many iterations of a step.
    #[inline]
    pub(crate) fn is_reached(&self, (group, step): (usize, usize), iterations: u64) -> bool {
        let step = &self.0.steps[group][step];
        match &step.of_all {
            Some(of_all) => of_all.load(Ordering::Acquire) >= iterations,
            None => step.done.iter().all(|done| done.0.load(Ordering::Acquire) >= iterations),
        }
    }

    /// Iterations that all processes here have done of the steps with calls of a class, of all such steps together; none where there is no such process
    /// here.
    pub(crate) fn least_of(&self, plan: &AppPlan, class: AppClass) -> Option<u64> {
        let mut sum = None;
        for (group, steps) in plan.groups.iter().zip(&self.0.steps) {
            for (plan, step) in group.steps.iter().zip(steps) {
                let here = step.here();
                if here != ELSEWHERE && plan.calls().any(|call| call.class == class) {
                    sum = Some(sum.unwrap_or(0) + here);
                }
            }
        }
        sum
    }

    /// Iterations that the processes here have done of the steps of a group: the fewest of a process, and those of all together.
    pub(crate) fn of_group(&self, group: usize) -> (u64, u64) {
        let last = self.0.steps.get(group).and_then(|steps| steps.last());
        let done = last.into_iter().flat_map(|step| &step.done).map(|done| done.0.load(Ordering::Acquire));
        let here = done.filter(|done| *done != ELSEWHERE);
        here.fold((ELSEWHERE, 0), |(fewest, sum), done| (fewest.min(done), sum + done))
    }

    /// A process has ended before it was done: nobody waits any more.
    pub(crate) fn abandon(&self) {
        self.0.is_abandoned.store(true, Ordering::Release);
    }

    /// Whether one has.
    #[inline]
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_abandoned.load(Ordering::Acquire)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        for step in self.0.steps.iter().flatten() {
            if let Some(messenger) = step.messenger.get() {
                messenger.unpark();
            }
        }
    }
}

impl Shared {
    /// Tells the other hosts about a step whenever all processes here have done more of it than is known of all, and learns how far they are. All
    /// hosts get the same figure at each meeting, so they name the next one the same.
    fn go_round(&self, (group, at): (usize, usize), iterations: u64, name: &str, link: &dyn HostLink) {
        let step = &self.steps[group][at];
        let Some(of_all) = &step.of_all else { return };
        let mut known = 0;
        while known < iterations {
            let here = step.here().min(iterations);
            if here <= known {
                if self.is_over.load(Ordering::Acquire) {
                    return;
                }
                std::thread::park();
                continue;
            }
            let Ok(met) = link.meet(&format!("{name}.{known}"), &[here]) else {
                // The run is being stopped, or the others are lost: what they have not done will never be done.
                return self.is_abandoned.store(true, Ordering::Release);
            };
            known = met.figures.first().map_or(here, |figure| figure.least);
            of_all.store(known, Ordering::Release);
        }
    }
}

/// The steps that others wait for, by group and number, each once.
fn waited_for(plan: &AppPlan) -> Vec<(usize, usize)> {
    let steps = plan.groups.iter().flat_map(|group| &group.steps);
    let afters = steps.flat_map(|step| &step.after);
    let mut found: Vec<(usize, usize)> =
        afters.map(|after| (usize::from(after.group), usize::from(after.step))).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
