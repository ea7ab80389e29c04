//! A run whose ranks are those of several processes, which a launcher has started: they carry the phases out, and this one writes the results.

use std::sync::Arc;

use driver::Error;
use layer::{Console, Journal};
use workload::plan::HostTargets;
use workload::spec::Spec;

use super::programme;
use super::run::Planned;
use super::settings::Settings;
use crate::made::{Made, SuiteControl};
use crate::plan::FsPlan;

/// The specs of the phases that run, each of which gets its number among them; none where there is one process.
///
/// # Errors
/// Settings of a search that cannot be.
pub(super) fn specs(settings: &Settings, planned: &mut [Planned]) -> Result<Vec<Spec>, Error> {
    let mut specs = Vec::new();
    if settings.processes == 1 {
        return Ok(specs);
    }
    for planned in planned.iter_mut().filter(|planned| settings.runs(planned.def.name)) {
        let Some(load) = programme::load(settings, planned.def)? else { continue };
        planned.number = Some(specs.len());
        // A rank works on what others have made: all of them see the same files.
        specs.push(Spec { host_targets: Some(HostTargets::Shared), ..load.spec(planned.def.name)? });
    }
    Ok(specs)
}

/// Makes the directories that the processes find. The run of this process, which takes its list from the journal, removes them at the end.
///
/// # Errors
/// As the system says, and when they cannot be noted.
pub(super) fn make_directories(
    control: &SuiteControl,
    plan: Option<&FsPlan>,
    journal: &Arc<dyn Journal>,
) -> Result<(), Error> {
    plan.map_or(Ok(()), |plan| Made::new(journal).follow(control, plan))
}

/// Why caches may be full although they were purged, where processes are on other machines.
pub(super) fn unpurged(settings: &Settings, console: &dyn Console) -> Option<String> {
    let is_elsewhere = settings.processes > 1 && !console.ranks().are_here;
    is_elsewhere.then(|| "caches: they were purged on the machine of rank 0 alone".to_owned())
}

/// Refuses to go on with an interrupted run by several processes: what each of them had made is not kept.
///
/// # Errors
/// Bad usage, where there are several.
pub(super) fn refuse_resume(console: &dyn Console) -> Result<(), Error> {
    match console.ranks().count {
        1 => Ok(()),
        count => Err(Error::usage(
            "resume",
            format!("a launcher has started {count} processes, which begin a run anew"),
        )
        .remedy("start one process, which continues a run of one process, or leave out --resume")),
    }
}
