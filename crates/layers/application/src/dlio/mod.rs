//! Workloads of DLIO as applications: training that reads samples for accelerators, evaluation and checkpoints.

mod describe;
mod keys;
mod model;
pub(crate) mod search;
mod workload;

use std::path::Path;

use driver::Error;
use serde_json::Value;
use units::{nearest, path_of};

use crate::builtin::Setting;
use crate::description::Description;
use keys::Values;
use workload::Workload;

/// Name of the application.
pub(crate) const NAME: &str = "dlio";

/// The workload where none is given.
pub(crate) const DEFAULT: &str = "unet3d";

/// Workloads that come with strata: facts of the published ones, for one accelerator.
const WORKLOADS: &[(&str, &str)] = &[
    ("unet3d", include_str!("../applications/dlio/unet3d.yaml")),
    ("bert", include_str!("../applications/dlio/bert.yaml")),
    ("resnet50", include_str!("../applications/dlio/resnet50.yaml")),
    ("cosmoflow", include_str!("../applications/dlio/cosmoflow.yaml")),
];

/// Whether the name of a workload is the path of one.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some()
}

/// Text of a workload.
///
/// # Errors
/// A name that there is none of; a file that cannot be read.
pub(crate) fn text_of(name: &str) -> Result<String, Error> {
    if let Some((_, text)) = WORKLOADS.iter().find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    if is_path(name) {
        return std::fs::read_to_string(path_of(name)).map_err(|error| {
            Error::usage("workload", format!("cannot read the workload: {error}"))
                .with("path", name)
                .remedy("use the path of a YAML file of DLIO, or the name of a workload")
        });
    }
    let names: Vec<&str> = WORKLOADS.iter().map(|(name, _)| *name).collect();
    let accepted = nearest(name, names.iter().copied())
        .map_or_else(|| format!("one of {}", names.join(", ")), |near| format!("{near} (the closest match)"));
    Err(Error::usage("workload", format!("no workload {name:?} exists"))
        .remedy(format!("use {accepted}, or the path of a YAML file")))
}

/// The description of a workload with values: `workload`, `accelerators`, and DLIO's keys, as Hydra writes them (`++workload.train.epochs`)
/// or without what stands before the section.
///
/// # Errors
/// As [`text_of`]; keys and values that are not carried out.
pub(crate) fn load(settings: &[Setting]) -> Result<Description, Error> {
    if is_search(settings) {
        return load_try(settings, &Try { accelerators: 1, run: 0, number: 0 })
            .map(|(description, _)| description);
    }
    let workload = workload(settings, last(settings, "accelerators").unwrap_or("1"))?;
    describe::describe(&workload)
}

/// The value of a setting that holds.
fn last<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    settings.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Whether settings ask for the most accelerators that a storage feeds.
pub(crate) fn is_search(settings: &[Setting]) -> bool {
    last(settings, "accelerators").is_some_and(|value| value.trim() == "max")
}

/// One run of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Try {
    /// Accelerators.
    pub(crate) accelerators: u64,
    /// Runs of the same number before it.
    pub(crate) run: usize,
    /// Runs of the search before it.
    pub(crate) number: usize,
}

/// Bounds of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchFacts {
    /// Most accelerators, of those that the data set has samples for in one step and those that a run has.
    pub(crate) accelerators_max: u64,
    /// Whether the data set is what limits them.
    pub(crate) is_of_data_set: bool,
    /// Processes for each accelerator.
    pub(crate) processes: u64,
}

/// The description of a run of a search: the data set, and steps of training with so many accelerators.
///
/// # Errors
/// As for [`load`]; too few steps to tell a utilisation by.
pub(crate) fn load_try(settings: &[Setting], run: &Try) -> Result<(Description, SearchFacts), Error> {
    let mut workload = workload(settings, "1")?;
    workload.search(run.accelerators)?;
    let facts = workload.search_facts();
    Ok((describe::describe_try(&workload, run), facts))
}

/// The workload of settings.
fn workload(settings: &[Setting], accelerators: &str) -> Result<Workload, Error> {
    let name = last(settings, "workload").unwrap_or(DEFAULT);
    let mut values = Values::read(&text_of(name)?).map_err(|error| error.with("workload", name))?;
    let own = ["workload", "accelerators"];
    for (key, value) in settings.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
        let key = key.trim_start_matches('+');
        let key = key.strip_prefix("workload.").unwrap_or(key);
        values.set(key, Value::String(value.clone()), true)?;
    }
    Workload::new(name, accelerators, &values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::resolve;

    fn settings(text: &str) -> Vec<(String, String)> {
        text.split(' ')
            .map(|word| word.split_once('=').unwrap())
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect()
    }

    #[test]
    fn workloads_resolve() {
        for (name, _) in WORKLOADS {
            let description = load(&settings(&format!("workload={name} accelerators=3"))).unwrap();
            let application = resolve(&description, &[]).unwrap();
            assert!(application.stages.len() >= 2, "{name}");
        }
    }

    #[test]
    fn stages_follow_epochs_blocks_evaluations_and_checkpoints() {
        let text = "++workload.dataset.num_files_train=20 workload.workflow.evaluation=true dataset.num_files_eval=4 \
                    train.epochs=2 checkpoint.steps_between_checkpoints=2 reader.batch_size=5 accelerators=1";
        let application = resolve(&load(&settings(text)).unwrap(), &[]).unwrap();
        let names: Vec<&str> = application.stages.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "generate",
            "train-1",
            "checkpoint-1",
            "train-1-2",
            "checkpoint-2",
            "eval-1",
            "train-2",
            "checkpoint-3",
            "train-2-2",
            "checkpoint-4",
            "eval-2",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn checkpoints_alone_are_written_and_read() {
        let text = "workflow.train=false checkpoint.num_checkpoints_write=3 checkpoint.num_checkpoints_read=2 \
                    checkpoint.time_between_checkpoints=0.5 model.num_layers=8 model.parallelism.tensor=2 \
                    model.parallelism.pipeline=2 accelerators=8";
        let application = resolve(&load(&settings(text)).unwrap(), &[]).unwrap();
        let names: Vec<&str> = application.stages.iter().map(|(name, _)| name.as_str()).collect();
        let expected =
            ["checkpoint-1", "pause-2", "checkpoint-2", "pause-3", "checkpoint-3", "restore-2", "restore-3"];
        assert_eq!(names, expected);
        let ranks: u32 = application.stages[0].1.iter().map(|group| group.processes).sum();
        assert_eq!(ranks, 8);
    }

    #[test]
    fn accelerators_that_compute_nothing_have_no_utilisation() {
        let description = load(&settings("train.computation_time=0")).unwrap();
        assert!(description.groups.iter().all(|group| group.utilisation.is_none()));
        assert!(
            description
                .notes
                .iter()
                .any(|note| note.contains("has no utilisation: it has no computation time"))
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, told) in [
            ("workload=unet3", "unet3d (the closest"),
            ("workload=./none.yaml", "cannot read"),
            ("accelerators=0", "or max"),
            ("accelerators=max reader.batch_size=40", "4 training steps"),
            ("accelerators=500", "168 samples"),
            ("train.total_training_steps=1000", "only 24 steps"),
            ("train.computation_time=0 accelerators=max", "utilisation is not defined"),
            ("train.computation_time=-1", "train.computation_time"),
            ("workflow.train=false workflow.checkpoint=false", "workflow.train=true"),
            ("workflow.train=false accelerators=max checkpoint.num_checkpoints_write=1", "requires training"),
            ("checkpoint.num_checkpoints_write=1", "workflow.train=false"),
            (
                "workflow.train=false checkpoint.num_checkpoints_write=1 checkpoint.num_checkpoints_read=2",
                "as many or fewer",
            ),
            ("dataset.format=xml", "npz"),
            ("epochs=3", "not a supported key"),
        ] {
            let error = load(&settings(text)).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
