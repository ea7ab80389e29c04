//! Formats of objects: which of those that were asked for a target and this machine have.

use driver::Error;
use layer::storage::{self, ObjectFormat};
use workload::spec::Spec;

use crate::description::{Application, AskedFormat, FormatChoice, is_shared};
use crate::spec;

/// Settles the format of each set on the target of `opening`, a spec of the layer that serves it; the library that makes HDF5 files, where some are.
///
/// # Errors
/// HDF5 that was asked for and cannot be had, and transfers of ranks that share no file, with what would be accepted.
pub(crate) fn settle(
    application: &mut Application,
    spec: &Spec,
    opening: &Spec,
) -> Result<Option<String>, Error> {
    let mut library = None;
    for at in 0..application.sets.len() {
        let (asked, set) = (&application.formats[at], &application.sets[at]);
        if asked.choice == FormatChoice::Raw {
            continue;
        }
        let is_parallel = hosts(spec) > 1 && is_shared(set);
        let had = match is_parallel {
            true => one_rank_each(application, hosts(spec)),
            false => Ok(()),
        };
        let mut had = had.and_then(|()| hdf5(asked, if is_parallel { hosts(spec) } else { 1 }, opening));
        if let (FormatChoice::Auto, Some(reason)) = (asked.choice, raw_reason(spec, is_parallel)) {
            had = had.and(Err(Error::usage("plan", reason)));
        }
        let note = match had {
            Ok(found) => {
                let set = &mut application.sets[at];
                set.format = ObjectFormat::Hdf5;
                set.datasets = asked.datasets.clone().unwrap_or_default();
                set.parallel = is_parallel.then_some(asked.transfers);
                library = Some(found.clone());
                format!("format hdf5: {found}")
            }
            Err(error) if asked.choice == FormatChoice::Auto => {
                format!("format raw, without HDF5: {}", why(&error))
            }
            Err(error) => return Err(error),
        };
        if !application.notes.contains(&note) {
            application.notes.push(note);
        }
        // The record says what the format is, not that it was left open.
        let format = application.sets[at].format;
        let own = application.parameters.iter_mut();
        for parameter in own.filter(|own| asked.parameter.as_ref() == Some(&own.name)) {
            format.name().clone_into(&mut parameter.value);
        }
    }
    settle_transfers(application, spec)?;
    Ok(library)
}

/// Parallel HDF5 has one process on each rank, in each stage: all make the same calls.
fn one_rank_each(application: &Application, hosts: u32) -> Result<(), Error> {
    for (stage, groups) in &application.stages {
        let processes = groups.iter().map(|group| group.processes).sum::<u32>();
        if processes != hosts || groups.len() != 1 {
            let what = format!(
                "{processes} processes on {hosts} MPI ranks, but parallel HDF5 requires one process per rank"
            );
            return Err(Error::usage("plan", what)
                .with("stage", stage)
                .remedy(format!("use {hosts} processes in each stage (vpic: --set ranks={hosts}; bd-cats: --set ranks={hosts} --set writers={hosts}), or --format raw")));
        }
    }
    Ok(())
}

/// Leaves the transfers out of the record where no ranks share a file.
fn settle_transfers(application: &mut Application, spec: &Spec) -> Result<(), Error> {
    if application.sets.iter().any(|set| set.parallel.is_some()) {
        return Ok(());
    }
    let parameters = application.formats.iter().filter_map(|asked| asked.transfers_parameter.clone());
    for name in parameters.collect::<Vec<_>>() {
        if spec::of(spec).settings.iter().any(|(given, _)| *given == name) {
            let what =
                format!("{name} requires MPI ranks that share an HDF5 file, which this run does not use");
            return Err(Error::usage("plan", what)
                .remedy(format!("omit --set {name}, or start the ranks with mpirun and use --format hdf5")));
        }
        application.parameters.retain(|parameter| parameter.name != name);
    }
    Ok(())
}

/// An error without where it came from, and without its remedy.
pub(crate) fn why(error: &Error) -> String {
    let text = error.to_string();
    let words = text.split_once(": ").map_or(text.as_str(), |(_, words)| words);
    words.split("; ").next().unwrap_or_default().to_owned()
}

/// Hosts that carry a spec out together.
fn hosts(spec: &Spec) -> u32 {
    spec.place.map_or(1, |place| place.hosts.max(1))
}

/// Reason beside the target itself for which `auto` is raw.
fn raw_reason(spec: &Spec, is_parallel: bool) -> Option<String> {
    if hosts(spec) > 1 && !is_parallel {
        return Some("the run uses several hosts, which can have different libraries".to_owned());
    }
    spec::of(spec).raw_because.clone()
}

/// The library that makes the objects of a set as HDF5 files, for so many hosts that have one open together.
fn hdf5(asked: &AskedFormat, hosts: u32, opening: &Spec) -> Result<String, Error> {
    let target = opening.targets.first().map_or("", String::as_str);
    if let Err(why) = &asked.datasets {
        return Err(Error::usage("plan", why.clone()).remedy("use sizes that fit, or --format raw"));
    }
    storage::find(target)?.storage_hdf5(opening, hosts)
}
