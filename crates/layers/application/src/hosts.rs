//! Applications on several hosts: each host with processes that append to a log has a log of its own, which it recovers by itself.

use driver::Error;

use crate::description::Application;
use crate::operation::AppClass;
use crate::plan::hosts::processes_of_hosts;
use crate::plan::{GroupPlan, Selection, StepPlan};

/// Whether a group has a call of a class on a set.
fn has(group: &GroupPlan, class: AppClass, set: usize) -> bool {
    let mut calls = group.steps.iter().flat_map(StepPlan::calls);
    calls.any(|call| call.class == class && usize::from(call.set) == set)
}

/// Divides the logs of an application among the hosts, by the processes that append. A group that recovers a log has its processes on each host.
///
/// # Errors
/// Steps that recover the log of one host alone.
pub(crate) fn spread(application: &mut Application, hosts: u32) -> Result<(), Error> {
    if hosts < 2 {
        return Ok(());
    }
    for (at, set) in application.sets.iter_mut().enumerate() {
        let processes = set.space.processes.max(1);
        let Some(log) = &mut set.log else { continue };
        for (_, groups) in &application.stages {
            if let Some(group) = groups.iter().position(|group| has(group, AppClass::Append, at)) {
                log.clients = processes_of_hosts(groups, hosts, group);
            }
        }
        if log.is_grouped {
            // A group has records of the processes of one host.
            let most = log.clients.iter().max().copied().unwrap_or(0);
            log.segment_bytes = log.segment_bytes / processes * u64::from(most);
            set.transfer_bytes = log.segment_bytes.max(set.size_bytes_max);
        }
    }
    let recovers = |step: &StepPlan| step.calls().any(|call| call.class == AppClass::Recover);
    for group in application.stages.iter_mut().flat_map(|(_, groups)| groups) {
        if !group.steps.iter().any(recovers) {
            continue;
        }
        for step in &group.steps {
            let is_part = recovers(step) && (step.items > 0 || step.shuffled);
            if is_part || (step.selection == Selection::Own && step.space.items > 0) {
                let given = format!(
                    "each host recovers its own log, but {}.{} has its own items or order",
                    group.name, step.name
                );
                return Err(Error::usage("plan", given)
                    .with("application", &application.name)
                    .remedy("use one host, or a recovery without items and order, in a separate group"));
            }
        }
        group.processes = group.processes.saturating_mul(hosts);
    }
    Ok(())
}
