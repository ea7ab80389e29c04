//! One application on several targets, side by side: which targets, which options each takes, and the turns that they take.

mod labels;

use driver::Error;
use layer::storage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{path_of, percent, split_list, without_password};
use workload::spec::Spec;

pub(crate) use self::labels::Target;
use crate::dlio;
use crate::formats::why;
use crate::planning;
use crate::spec::{self, AppSpec};

/// Place of a stage among compared targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BesidePlan {
    /// All targets, in turn order.
    pub targets: Vec<String>,
    /// Names in tables and charts, if the user labelled any target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Number of the stage's target among them, from 0.
    pub at: u32,
    /// Pass over the targets, from 1.
    pub pass: u32,
    /// The remedy that is tried, where the targets are one, with the application as it is and with the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<TriedRemedy>,
}

/// A remedy for an expensive part of the time, tried in turns with the application as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedRemedy {
    /// Group of processes whose time the part takes.
    pub group: String,
    /// Part, by its name in the profile.
    pub part: String,
    /// Share of the time of the group before, 0 to 1.
    pub share_fraction: f64,
    /// It is compared by the time of the whole stage, not by the bytes that calls move in their time.
    #[serde(default)]
    pub by_stage: bool,
    /// The parameter that was changed and its value, as `--set` takes it.
    pub set: String,
}

impl TriedRemedy {
    /// Why it is tried.
    pub(crate) fn words(&self) -> String {
        format!("{} takes {} of the time of {}", self.part, percent(self.share_fraction), self.group)
    }
}

impl BesidePlan {
    /// Names of all targets in tables and charts: their labels, or themselves.
    pub(crate) fn names(&self) -> Vec<String> {
        match self.labels.is_empty() {
            true => self.targets.iter().map(|target| without_password(target)).collect(),
            false => self.labels.clone(),
        }
    }

    /// The end of the names of its phases.
    pub(crate) fn suffix(&self) -> String {
        match (&self.remedy, self.at) {
            (None, _) => format!(" on {}", self.name()),
            (Some(_), 0) => format!(" {}", self.name()),
            (Some(_), _) => format!(" with {}", self.name()),
        }
    }

    /// Name of its own target.
    pub(crate) fn name(&self) -> String {
        self.names().into_iter().nth(self.at as usize).unwrap_or_default()
    }
}

fn usage(message: impl Into<String>) -> Error {
    Error::usage("plan", message)
}

/// The targets of `--on`: of one word, those between its commas; of several words, each as it is.
///
/// # Errors
/// Empty targets, one alone, the same one twice, and labels that are slips.
pub(crate) fn targets(on: &[String]) -> Result<Vec<Target>, Error> {
    let words: Vec<String> = match on {
        [one] => {
            let parts = split_list("targets", one).map_err(|error| usage(format!("--on: {error}")))?;
            parts.into_iter().map(str::to_owned).collect()
        }
        several => several.to_vec(),
    };
    let targets: Vec<Target> = words.iter().map(|word| labels::parse(word)).collect::<Result<_, _>>()?;
    if let ([only], false) = (&targets[..], on.is_empty()) {
        return Err(usage(format!("--on compares targets, but {} is the only one", only.target)).remedy(
            "name two or more: --on TARGET,TARGET, or --on once for each; a single target needs no --on",
        ));
    }
    for (at, target) in targets.iter().enumerate() {
        if targets[..at].iter().any(|other| same(&other.target) == same(&target.target)) {
            return Err(usage("--on names a target twice").with("target", &target.target));
        }
    }
    Ok(targets)
}

/// Makes the paths of a value of `--on` absolute; it is all of them where it `is_only`.
pub(crate) fn make_absolute(on: &mut String, is_only: bool) {
    let absolute = |text: &str| {
        // What cannot be is refused where the value is read.
        let Ok(mut target) = labels::parse(text.trim()) else { return text.to_owned() };
        layer::make_absolute(&mut target.target);
        target.said()
    };
    *on = match is_only {
        true => on.split(',').map(absolute).collect::<Vec<_>>().join(","),
        false => absolute(on),
    };
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
    let option = match (own.on.is_empty(), own.try_remedy) {
        (true, false) if own.passes.is_some() => {
            return Err(usage(
                "--passes requires several targets or a remedy: add --on TARGET,TARGET or --try",
            ));
        }
        (true, false) => return Ok(()),
        (true, true) => "--try",
        (false, _) => "--on",
    };
    if let Some(target) = spec.targets.first().filter(|_| option == "--on") {
        return Err(usage(format!("the target {target} is outside of --on, which must name all targets"))
            .remedy("add it to --on, or omit --on"));
    }
    let refused = [
        (
            dlio::is_search(&own.settings),
            "accelerators=max: search on one target after another, or set one number of accelerators",
        ),
        (spec.keep, "--keep: each turn starts on a target without data of the run"),
        (
            option == "--try" && (!spec.hosts.is_empty() || spec.place.is_some()),
            "--hosts: the remedy is chosen from the times of processes on one machine",
        ),
        (option == "--on" && own.try_remedy, "--try: targets can require different remedies"),
    ];
    match refused.iter().find(|(is_said, _)| *is_said) {
        Some((_, what)) => Err(usage(format!("{option} conflicts with {what}"))),
        None if option == "--try" => Ok(()),
        None => labels::check(&targets(&own.on)?),
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
    let is_labelled = targets.iter().any(|target| target.label.is_some());
    let all = BesidePlan {
        targets: targets.iter().map(|target| target.target.clone()).collect(),
        labels: targets.iter().filter(|_| is_labelled).map(Target::name).collect(),
        at: 0,
        pass: 1,
        remedy: None,
    };
    let mut turns = Vec::new();
    for (at, (target, options)) in targets.iter().zip(options).enumerate() {
        let mut spec = Spec { targets: vec![target.target.clone()], ..spec.clone() };
        spec.own.get_mut::<AppSpec>().target_options = options;
        turns.push(Turn { spec, beside: BesidePlan { at: at as u32, ..all.clone() } });
    }
    // One without HDF5 would be measured with another load than the others.
    let because = turns.iter().find_map(|turn| without_hdf5(&turn.spec));
    for turn in &mut turns {
        turn.spec.own.get_mut::<AppSpec>().raw_because.clone_from(&because);
    }
    Ok(Some((turns, own.passes())))
}

/// Why the target of a spec has no HDF5; none where it has, and where it cannot be planned, which is told later.
fn without_hdf5(spec: &Spec) -> Option<String> {
    let target = spec.targets.first()?;
    let opening = planning::target_spec(spec, target, 0).ok()?;
    let error = storage::find(target).ok()?.storage_hdf5(&opening, 1).err()?;
    Some(format!("all targets must have the same load, and {}", without_password(&why(&error))))
}

/// The option of `NAME`, or of `N:NAME` or `LABEL:NAME`, and the targets that take it: all that have it, or the one of that number or label.
fn takers<'a>(name: &'a str, targets: &[Target]) -> Result<(&'a str, Vec<usize>), Error> {
    if let Some((which, name)) = name.split_once(':') {
        let numbered = which.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let labelled = || targets.iter().position(|target| target.label.as_deref() == Some(which));
        let Some(at) = numbered.or_else(labelled).filter(|at| *at < targets.len()) else {
            let kind = if which.parse::<usize>().is_ok() { "number" } else { "label" };
            return Err(usage(format!("--target-options {which}:{name}: no target has this {kind}"))
                .remedy(format!("use 1 to {}, in the order of --on, or a label from --on", targets.len())));
        };
        // One that it does not take is refused with those that it does when its spec is made.
        return Ok((name, vec![at]));
    }
    let flag = name.replace('_', "-");
    let mut found = Vec::new();
    for (at, Target { target, .. }) in targets.iter().enumerate() {
        if storage::find(target)?.takes_storage_option(target, &flag) {
            found.push(at);
        }
    }
    match found.is_empty() {
        false => Ok((name, found)),
        true => Err(usage(format!("--target-options {name}: no target of --on supports it"))
            .remedy("omit it; docs/applications.md lists the options of each target")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_split_at_commas_and_several_are_targets_as_they_are() {
        let list = |on: &[&str]| {
            let found = targets(&on.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())?;
            Ok::<_, Error>(found.into_iter().map(|target| target.target).collect::<Vec<_>>())
        };
        assert_eq!(list(&["/a,x"]).unwrap(), ["/a", "x"]);
        assert_eq!(list(&["/a,x", "/b"]).unwrap(), ["/a,x", "/b"]);
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
