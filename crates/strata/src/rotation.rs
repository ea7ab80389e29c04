//! Hosts that change places from phase to phase (`--rotate-hosts`), so that each reads what another wrote.

use driver::Error;
use layer::Runs;
use workload::plan::HostTargets;
use workload::spec::Spec;

use crate::planning::{Planned, plans_of};
use crate::subsets;

/// Has the hosts take over each other's parts in the later stages of a run, where the specs ask for it.
///
/// # Errors
/// Bad usage: a run in which no host would read what another wrote, or could not.
pub(crate) fn rotate(specs: &[Spec], phases: &mut [Planned], runs: &mut Runs) -> Result<(), Error> {
    let Some(by) = specs.iter().find_map(|spec| spec.rotate_hosts) else { return Ok(()) };
    let Some(hosts) = phases.iter().filter_map(|planned| planned.plan.load().place).map(|it| it.hosts).max()
    else {
        return Ok(());
    };
    check(specs, phases, (by, hosts))?;
    if subsets::are_asked(phases) {
        return Err(refusal(
            "phases with different numbers of hosts (hosts_used) divide the data differently",
        )
        .remedy("leave out --rotate-hosts, or give all phases the same hosts_used"));
    }
    let (mut turns, mut before) = (0, None);
    for stage in phases.chunk_by_mut(|one, next| one.stage == next.stage) {
        let kind = Kind::of(stage);
        turns += u32::from(before.is_some_and(|before| kind.is_next_of(before)));
        before = Some(kind);
        let rotated = (u64::from(by) * u64::from(turns) % u64::from(hosts)) as u32;
        let loads = stage.iter_mut().map(|planned| planned.phase.plan.load_mut());
        loads.filter_map(|load| load.place.as_mut()).for_each(|place| place.rotated = rotated);
    }
    for (name, run) in runs.all() {
        let all = plans_of(name, phases);
        if let Some((plan, why)) = all.iter().find_map(|plan| Some((plan, run.keeps_parts(plan, &all)?))) {
            return Err(refusal(why).with("phase", plan.name()).remedy("leave out --rotate-hosts"));
        }
    }
    if turns == 0 {
        return Err(refusal(
            "rotation requires a second phase, in which hosts take over the parts of other hosts",
        )
        .remedy("give a second phase, such as --op write,read, or leave it out"));
    }
    Ok(())
}

/// The part of a stage in the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It stores what later phases need.
    Fill,
    /// It is what was asked for.
    Asked,
    /// It reads back what the one before it wrote.
    ReadBack,
}

impl Kind {
    fn of(stage: &[Planned]) -> Self {
        match stage.first() {
            Some(planned) if planned.plan.is_fill() => Self::Fill,
            Some(planned) if planned.is_read_back => Self::ReadBack,
            _ => Self::Asked,
        }
    }

    /// Whether hosts change places between the two. What several phases store is of one part; only who wrote it knows what is to be read back.
    fn is_next_of(self, before: Self) -> bool {
        self != Self::ReadBack && (self, before) != (Self::Fill, Self::Fill)
    }
}

fn refusal(message: impl AsRef<str>) -> Error {
    Error::usage("plan", format!("--rotate-hosts: {}", message.as_ref()))
}

fn check(specs: &[Spec], phases: &[Planned], (by, hosts): (u32, u32)) -> Result<(), Error> {
    if specs.iter().any(|spec| spec.saturate) {
        return Err(refusal("--saturate repeats one phase, and each host keeps its part")
            .remedy("leave out --rotate-hosts or --saturate"));
    }
    if by % hosts == 0 {
        let accepted = match hosts {
            1 => "give --hosts two or more hosts, or leave it out".to_owned(),
            2 => "give 1".to_owned(),
            _ => format!("give 1 to {}", hosts - 1),
        };
        let message = format!(
            "with {hosts} host{}, a rotation by {by} returns each host to its own part",
            if hosts == 1 { "" } else { "s" }
        );
        return Err(refusal(message).remedy(accepted));
    }
    let is_own =
        |planned: &&Planned| planned.plan.load().place.is_some_and(|place| place.targets == HostTargets::Own);
    match phases.iter().find(is_own) {
        None => Ok(()),
        Some(own) => Err(refusal("each host has its own targets, and no host sees the data of another host")
            .with("phase", own.plan.name())
            .remedy("leave it out, or give --host-targets shared if all hosts see the same targets")),
    }
}
