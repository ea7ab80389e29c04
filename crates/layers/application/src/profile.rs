//! Where the time of the processes goes: from the samples of a stage.

use layer::observations::{GroupProfile, Profile, ProfilePart};
use statistics::{PhaseSamples, WorkerSamples};

use crate::plan::AppPlan;

/// Parts of the time beside the calls, in the order of tables.
pub(crate) const STARTING: &str = "starting";
pub(crate) const FILLING: &str = "filling";
pub(crate) const CHECKING: &str = "checking";
pub(crate) const TOOL: &str = "strata";
pub(crate) const ENDED: &str = "ended";
pub(crate) const OTHER: &str = "other";

/// The breakdown of a stage.
pub(crate) fn of(plan: &AppPlan, samples: &PhaseSamples) -> Profile {
    let mut groups: Vec<GroupProfile> =
        plan.groups.iter().map(|group| group_of(&group.name, samples)).collect();
    for worker in &samples.workers {
        let number = plan.load.worker(worker.worker as u32);
        let Some((at, _)) = plan.process(number) else { continue };
        add(&mut groups[at], worker, samples.elapsed_ns);
    }
    groups.iter_mut().for_each(|group| group.parts.retain(|part| part.time_ns > 0));
    Profile { groups }
}

fn group_of(name: &str, samples: &PhaseSamples) -> GroupProfile {
    let part = |name: &str| ProfilePart { name: name.to_owned(), calls: 0, time_ns: 0 };
    let calls = samples.classes.iter().map(|class| part(class));
    let others = [STARTING, FILLING, CHECKING, TOOL, ENDED, OTHER].into_iter().map(part);
    GroupProfile { name: name.to_owned(), processes: 0, wall_ns: 0, parts: calls.chain(others).collect() }
}

/// Adds the time of a process, from the begin of the stage to its end. A process makes one call at a time, so its parts follow each other.
fn add(group: &mut GroupProfile, worker: &WorkerSamples, elapsed_ns: u64) {
    let mut parts: Vec<(&str, u64, u64)> = Vec::new();
    for class in &worker.classes {
        let ns = u64::try_from(class.latency.sum_ns()).unwrap_or(u64::MAX);
        parts.push((&class.class, class.latency.count(), ns));
    }
    let tool_ns = worker.tool_ns.saturating_sub(worker.fill_ns).saturating_sub(worker.verify_ns);
    // The work of the tool before the first call is a part of what it is told to have cost.
    let is_idle = worker.classes.iter().all(|class| class.latency.is_empty());
    let started_ns =
        if is_idle { 0 } else { worker.started_ns.saturating_sub(worker.fill_ns.min(worker.started_ns)) };
    let measured: u64 =
        parts.iter().map(|(.., ns)| ns).sum::<u64>() + tool_ns + worker.fill_ns + worker.verify_ns;
    let ended_ns = elapsed_ns.saturating_sub(worker.finished_ns);
    let wall_ns = elapsed_ns.max(measured);
    let starting_ns = started_ns.min(wall_ns - measured);
    let ended_ns = ended_ns.min(wall_ns - measured - starting_ns);
    let other_ns = wall_ns - measured - starting_ns - ended_ns;
    parts.extend([
        (STARTING, 0, starting_ns),
        (FILLING, 0, worker.fill_ns),
        (CHECKING, 0, worker.verify_ns),
        (TOOL, 0, tool_ns),
        (ENDED, 0, ended_ns),
        (OTHER, 0, other_ns),
    ]);
    group.processes += 1;
    group.wall_ns += wall_ns;
    for (name, calls, ns) in parts {
        if let Some(part) = group.parts.iter_mut().find(|part| part.name == name) {
            part.calls += calls;
            part.time_ns += ns;
        }
    }
}
