//! One application on several targets, side by side: which targets, which options each takes, and the turns that they take.

use driver::Error;
use layer::storage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{path_of, split_list, without_password};
use workload::spec::Spec;

use crate::dlio;
use crate::formats::why;
use crate::planning;
use crate::spec::{self, AppSpec};

/// Passes over the targets where nothing is said.
const PASSES: u32 = 3;

/// Place of a stage among targets that are measured side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BesidePlan {
    /// All targets, in the order in which they take turns.
    pub targets: Vec<String>,
    /// Number of the stage's own target among them, from 0.
    pub at: u32,
    /// Pass over the targets, from 1.
    pub pass: u32,
}

fn usage(message: impl Into<String>) -> Error {
    Error::usage("plan", message)
}

/// The targets of `--on`: of one word, those between its commas; of several words, each as it is.
///
/// # Errors
/// Empty targets, one alone, and the same one twice.
pub(crate) fn targets(on: &[String]) -> Result<Vec<String>, Error> {
    let targets: Vec<String> = match on {
        [one] => {
            let parts = split_list("targets", one).map_err(|error| usage(format!("--on: {error}")))?;
            parts.into_iter().map(str::to_owned).collect()
        }
        several => several.to_vec(),
    };
    if let ([target], false) = (&targets[..], on.is_empty()) {
        return Err(usage(format!("--on compares targets, and {target} is the only one")).remedy(
            "name two or more: --on TARGET,TARGET, or --on once for each; one alone stands without --on",
        ));
    }
    for (at, target) in targets.iter().enumerate() {
        if targets[..at].iter().any(|other| same(other) == same(target)) {
            return Err(usage("--on names a target twice").with("target", target));
        }
    }
    Ok(targets)
}

/// A target in the form in which it is compared: paths as they lie.
fn same(target: &str) -> String {
    match path_of(target).canonicalize() {
        Ok(path) => path.display().to_string(),
        Err(_) => target.trim_end_matches('/').to_owned(),
    }
}

/// Refuses what does not go with several targets; the spec keeps no target of its own then.
///
/// # Errors
/// Bad usage with what would be accepted.
pub(crate) fn check(spec: &Spec) -> Result<(), Error> {
    let own = spec::of(spec);
    if own.on.is_empty() {
        return match own.passes {
            Some(_) => Err(usage("--passes is of several targets: give --on TARGET,TARGET with it")),
            None => Ok(()),
        };
    }
    if let Some(target) = spec.targets.first() {
        return Err(usage(format!("the target {target} stands beside --on, which names all targets"))
            .remedy("put it into --on, or leave --on out"));
    }
    let refused = [
        (
            dlio::is_search(&own.settings),
            "accelerators=max: search on one target after the other, or give one number of accelerators",
        ),
        (spec.keep, "--keep: each pass begins on a target without its data"),
        (!spec.hosts.is_empty() || spec.place.is_some(), "--hosts: targets take turns on one machine"),
    ];
    match refused.iter().find(|(is_said, _)| *is_said) {
        Some((_, what)) => Err(usage(format!("--on does not go with {what}"))),
        None => targets(&own.on).map(|_| ()),
    }
}

/// A turn of the targets: the spec of one of them, and its place.
pub(crate) struct Turn {
    pub(crate) spec: Spec,
    pub(crate) beside: BesidePlan,
}

/// The specs of the targets of a spec, in order, each with its own options; and how many passes there are. None where it has one target.
///
/// # Errors
/// As for [`check`], and options that no target takes.
pub(crate) fn turns(spec: &Spec) -> Result<Option<(Vec<Turn>, u32)>, Error> {
    let own = spec::of(spec);
    if own.on.is_empty() {
        return Ok(None);
    }
    let targets = targets(&own.on)?;
    let mut options: Vec<Vec<(String, String)>> = vec![Vec::new(); targets.len()];
    for (name, value) in &own.target_options {
        let (name, takers) = takers(name, &targets)?;
        takers.into_iter().for_each(|at| options[at].push((name.to_owned(), value.clone())));
    }
    let mut turns = Vec::new();
    for (at, (target, options)) in targets.iter().zip(options).enumerate() {
        let mut spec = Spec { targets: vec![target.clone()], ..spec.clone() };
        spec.own.get_mut::<AppSpec>().target_options = options;
        turns.push(Turn { spec, beside: BesidePlan { targets: targets.clone(), at: at as u32, pass: 1 } });
    }
    // One without HDF5 would be measured with another load than the others.
    let because = turns.iter().find_map(|turn| without_hdf5(&turn.spec));
    for turn in &mut turns {
        turn.spec.own.get_mut::<AppSpec>().raw_because.clone_from(&because);
    }
    Ok(Some((turns, own.passes.unwrap_or(PASSES))))
}

/// Why the target of a spec has no HDF5; none where it has, and where it cannot be planned, which is told later.
fn without_hdf5(spec: &Spec) -> Option<String> {
    let target = spec.targets.first()?;
    let opening = planning::target_spec(spec, target, 0).ok()?;
    let error = storage::find(target).ok()?.storage_hdf5(&opening, 1).err()?;
    Some(format!("all targets have the same load, and {}", without_password(&why(&error))))
}

/// The option of `NAME`, or of `N:NAME`, and the targets that take it: all that have it, or the one of that number.
fn takers<'a>(name: &'a str, targets: &[String]) -> Result<(&'a str, Vec<usize>), Error> {
    let numbered =
        name.split_once(':').and_then(|(number, name)| Some((number.parse::<usize>().ok()?, name)));
    let takes = |at: &usize, name: &str| -> Result<bool, Error> {
        let flag = name.replace('_', "-");
        Ok(storage::find(&targets[*at])?.takes_storage_option(&targets[*at], &flag))
    };
    match numbered {
        Some((number, name)) => {
            let at = number.checked_sub(1).filter(|at| *at < targets.len()).ok_or_else(|| {
                usage(format!("--target-options {number}:{name}: there is no target of this number"))
                    .remedy(format!("use 1 to {}, in the order of --on", targets.len()))
            })?;
            // One that it does not take is refused with those that it does when its spec is made.
            Ok((name, vec![at]))
        }
        None => {
            let mut found = Vec::new();
            for at in 0..targets.len() {
                if takes(&at, name)? {
                    found.push(at);
                }
            }
            match found.is_empty() {
                false => Ok((name, found)),
                true => Err(usage(format!("--target-options {name}: no target of --on takes it"))
                    .remedy("leave it out; docs/applications.md says which options targets take")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_split_at_commas_and_several_are_targets_as_they_are() {
        let list = |on: &[&str]| targets(&on.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(list(&["/a,vos:/b"]).unwrap(), ["/a", "vos:/b"]);
        assert_eq!(list(&["/a,x", "s3://b"]).unwrap(), ["/a,x", "s3://b"]);
        for (on, said) in [
            (&["/a"][..], "the only one"),
            (&["/a,/a/"], "twice"),
            (&["vos:/b", "vos:/b"], "twice"),
            (&["/a,,/b"], "one comma between each two"),
        ] {
            let error = list(on).unwrap_err().to_string();
            assert!(error.contains(said), "{on:?}: {error}");
        }
    }
}
