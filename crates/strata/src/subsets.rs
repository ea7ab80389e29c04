//! Phases of fewer hosts than the run has (`hosts_used` of a phase): the first ones carry them out, and the others wait.

use driver::Error;
use layer::Runs;
use workload::plan::{HostPlace, HostTargets};

use crate::planning::{Planned, plans_of};

/// The place of the hosts of a phase; none where this process carries it out alone, or one host does.
fn place(planned: &Planned) -> Option<HostPlace> {
    planned.plan.load().place
}

/// Whether some phase is of fewer hosts than the run has.
pub(crate) fn are_asked(phases: &[Planned]) -> bool {
    phases.iter().filter_map(place).any(HostPlace::is_subset)
}

/// Checks phases that are not all of the same hosts.
///
/// # Errors
/// Bad usage: phases at the same time of different hosts, and hosts that would lack what they did not take part in.
pub(crate) fn check(phases: &[Planned], runs: &mut Runs) -> Result<(), Error> {
    if !are_asked(phases) {
        return Ok(());
    }
    for stage in phases.chunk_by(|one, next| one.stage == next.stage) {
        let hosts = |planned: &Planned| place(planned).map_or(1, |place| place.hosts);
        if let Some(other) = stage.iter().find(|planned| hosts(planned) != hosts(&stage[0])) {
            let message = format!(
                "{} concurrent phases must use the same hosts, but one has {} and one has {}",
                stage.len(),
                hosts(&stage[0]),
                hosts(other)
            );
            return Err(refusal(message)
                .with("phase", other.plan.name())
                .remedy("give them the same hosts_used, or leave out concurrent"));
        }
    }
    check_own(phases)?;
    for (name, run) in runs.all() {
        let all = plans_of(name, phases);
        if let Some((plan, why)) = all.iter().find_map(|plan| Some((plan, run.keeps_hosts(plan, &all)?))) {
            return Err(refusal(why)
                .with("phase", plan.name())
                .remedy("give all phases the same hosts_used"));
        }
    }
    Ok(())
}

/// Refuses a phase of hosts whose own targets lack what an earlier phase did on those of others.
fn check_own(phases: &[Planned]) -> Result<(), Error> {
    let mut fewest: Option<(&Planned, HostPlace)> = None;
    for planned in phases {
        let Some(own) = place(planned).filter(|place| place.targets == HostTargets::Own) else { continue };
        match fewest {
            Some((before, of_before)) if of_before.hosts < own.hosts => {
                let message = format!(
                    "each host has its own targets, and {} of {} follows {} of {}: hosts would lack the data of phases without them",
                    planned.plan.name(),
                    units::counted(own.hosts.into(), "host"),
                    before.plan.name(),
                    units::counted(of_before.hosts.into(), "host"),
                );
                return Err(refusal(message).remedy(
                    "order phases from many hosts to few, give --host-targets shared if all hosts see the same targets, or run them separately",
                ));
            }
            Some((_, of_before)) if of_before.hosts == own.hosts => {}
            _ => fewest = Some((planned, own)),
        }
    }
    Ok(())
}

fn refusal(message: impl AsRef<str>) -> Error {
    Error::usage("plan", format!("hosts_used: {}", message.as_ref()))
}
