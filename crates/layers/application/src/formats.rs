//! Formats of objects: which of those that were asked for a target and this machine have.

use driver::Error;
use layer::storage::{self, ObjectFormat};
use workload::spec::Spec;

use crate::description::{Application, AskedFormat, FormatChoice, is_shared};
use crate::plan::SetPlan;
use crate::spec;

/// Settles the format of each set on the target of `opening`, a spec of the layer that serves it; the library that makes HDF5 files, where some are.
///
/// # Errors
/// HDF5 that was asked for and cannot be had, with what would be accepted.
pub(crate) fn settle(
    application: &mut Application,
    spec: &Spec,
    opening: &Spec,
) -> Result<Option<String>, Error> {
    let mut library = None;
    for at in 0..application.sets.len() {
        let (asked, set) = (&application.formats[at], &mut application.sets[at]);
        if asked.choice == FormatChoice::Raw {
            continue;
        }
        let mut had = hdf5(asked, set, spec, opening);
        if let (FormatChoice::Auto, Some(reason)) = (asked.choice, raw_reason(spec)) {
            had = had.and(Err(Error::usage("plan", reason)));
        }
        let note = match had {
            Ok(found) => {
                set.format = ObjectFormat::Hdf5;
                set.datasets = asked.datasets.clone().unwrap_or_default();
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
        let own = application.parameters.iter_mut();
        for parameter in own.filter(|own| asked.parameter.as_ref() == Some(&own.name)) {
            set.format.name().clone_into(&mut parameter.value);
        }
    }
    Ok(library)
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
fn raw_reason(spec: &Spec) -> Option<String> {
    if hosts(spec) > 1 {
        return Some("several hosts carry the run out, and each may have another library".to_owned());
    }
    spec::of(spec).raw_because.clone()
}

/// The library that makes the objects of a set as HDF5 files.
fn hdf5(asked: &AskedFormat, set: &SetPlan, spec: &Spec, opening: &Spec) -> Result<String, Error> {
    let target = opening.targets.first().map_or("", String::as_str);
    if let Err(why) = &asked.datasets {
        return Err(Error::usage("plan", why.clone()).remedy("use sizes that fit, or --format raw"));
    }
    if hosts(spec) > 1 && is_shared(set) {
        let what =
            "processes of several hosts cannot share an HDF5 file: strata does not use parallel HDF5 (MPI)";
        return Err(Error::usage("plan", what).with("target", target).remedy(
            "use a file for each process where the application has them (vpic, bd-cats: --set files=rank), one host, or --format raw",
        ));
    }
    storage::find(target)?.storage_hdf5(opening)
}
