//! Processes of a stage on several hosts.

use super::{AppPlan, GroupPlan, SetPlan, StepPlan};
use crate::operation::AppClass;

/// Group of a process, and its number in the group, by the number of its worker among those of all hosts. Each host has as many of each group that
/// can be dealt out so; the processes of the other groups fill the places that are left on the hosts, in their order.
pub(crate) fn dealt(groups: &[GroupPlan], hosts: u32, worker: u32) -> Option<(usize, u32)> {
    let is_even = |group: &GroupPlan| group.processes.is_multiple_of(hosts);
    // Workers of a host are neighbours, and so are those of a group in it.
    let each = places(groups, hosts);
    let (host, mut at) = (worker / each, worker % each);
    if host >= hosts {
        return None;
    }
    let evenly: u32 = groups.iter().filter(|group| is_even(group)).map(|group| group.processes / hosts).sum();
    let is_of_even = at < evenly;
    if !is_of_even {
        at = host * (each - evenly) + at - evenly;
    }
    for (number, group) in groups.iter().enumerate().filter(|(_, group)| is_even(group) == is_of_even) {
        let count = if is_of_even { group.processes / hosts } else { group.processes };
        if at < count {
            return Some((number, if is_of_even { host * count + at } else { at }));
        }
        at -= count;
    }
    None
}

/// Places for processes on each host.
fn places(groups: &[GroupPlan], hosts: u32) -> u32 {
    groups.iter().map(|group| group.processes).sum::<u32>().div_ceil(hosts).max(1)
}

/// Processes of a group on each host. Those of a host follow each other, and hosts have them in their order.
pub(crate) fn processes_of_hosts(groups: &[GroupPlan], hosts: u32, group: usize) -> Vec<u32> {
    let each = places(groups, hosts);
    let here = |host: u32| {
        let workers = (host * each..(host + 1) * each).filter_map(|worker| dealt(groups, hosts, worker));
        workers.filter(|(of, _)| *of == group).count() as u32
    };
    (0..hosts).map(here).collect()
}

impl AppPlan {
    /// Number of this host.
    pub(crate) fn host(&self) -> u32 {
        self.load.place.map_or(0, |place| place.rank)
    }

    /// Items of a process of a group in an iteration of a step: the first of their numbers in the pass, and how many. Of several hosts each recovers its
    /// own log.
    pub(crate) fn share(
        &self,
        group: &GroupPlan,
        step: &StepPlan,
        process: u64,
        iteration: u64,
    ) -> (u64, u64) {
        let processes = u64::from(group.processes);
        let Some(set) = self.recovered(step).filter(|set| set.logs().nth(1).is_some()) else {
            return step.share(process, processes, iteration);
        };
        let each = (processes / set.logs().count() as u64).max(1);
        let log = set.log_of((process / each) as u32);
        let cut = |part: u64| (u128::from(log.records) * u128::from(part) / u128::from(each)) as u64;
        let (first, end) = (cut(process % each), cut(process % each + 1));
        (log.first + first, end - first)
    }

    /// The log that a step recovers.
    fn recovered(&self, step: &StepPlan) -> Option<&SetPlan> {
        let call = step.calls().find(|call| call.class == AppClass::Recover)?;
        self.sets.get(usize::from(call.set))
    }
}
