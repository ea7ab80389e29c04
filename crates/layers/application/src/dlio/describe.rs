//! From a workload of DLIO to the description of an application.

use std::collections::BTreeMap;

use driver::Error;

use super::Try;
use super::model::{Files, Part};
use super::workload::{ACCELERATORS_MAX, Loop, Workload};
use crate::description::{Description, FORMAT, Group, Parameter, Quantity, Remedy, Set, Step, Utilisation};

/// Most stages of a run.
const STAGES_MAX: usize = 400;
/// Most processes that make the data set.
const MAKERS_MAX: u64 = 8;

/// The description.
///
/// # Errors
/// More stages than a run has.
pub(super) fn describe(workload: &Workload) -> Result<Description, Error> {
    let mut description = described(workload);
    if !workload.trains {
        checkpoints_alone(&mut description, workload);
        return Ok(description);
    }
    data_set(&mut description, workload, "sample", "maker", workload.train.files);
    if let Some(eval) = &workload.eval {
        data_set(&mut description, workload, "eval-sample", "eval-maker", eval.files);
    }
    let (mut checkpoint, mut eval) = (
        Turns::new(workload.checkpoints.as_ref().map(|all| all.after)),
        Turns::new(workload.eval.as_ref().map(|eval| eval.after)),
    );
    let mut saved = 0;
    let by_steps = workload.checkpoints.as_ref().and_then(|all| all.steps);
    for epoch in 1..=workload.epochs {
        let block = by_steps.unwrap_or(workload.train.steps).min(workload.train.steps);
        for (at, first) in (0..workload.train.steps).step_by(block as usize).enumerate() {
            let name = if at == 0 { epoch.to_string() } else { format!("{epoch}-{}", at + 1) };
            let steps = block.min(workload.train.steps - first);
            training(&mut description, workload, &name, (epoch, first, steps));
            if by_steps == Some(steps) {
                saved += 1;
                save(&mut description, workload, saved);
            }
            if description.groups.len() > STAGES_MAX {
                return Err(Error::usage(
                    "workload",
                    format!("the workload has more than {STAGES_MAX} stages"),
                )
                .remedy("use fewer epochs, or more steps between checkpoints"));
            }
        }
        if by_steps.is_none() && checkpoint.is_due(epoch) {
            saved += 1;
            save(&mut description, workload, saved);
        }
        if let Some(each) = workload.eval.as_ref().filter(|_| eval.is_due(epoch)) {
            evaluation(&mut description, workload, each, epoch);
        }
    }
    restore_last(&mut description, workload, saved);
    Ok(description)
}

/// Checkpoints one after the other, with pauses between them.
fn checkpoints_alone(description: &mut Description, workload: &Workload) {
    let Some(all) = &workload.checkpoints else { return };
    for number in 1..=all.writes {
        if number > 1 && all.between_ns > 0 {
            let pause = Step {
                name: "pause".to_owned(),
                compute: Some(Quantity::Number(all.between_ns)),
                begin: vec!["compute".to_owned()],
                ..Step::default()
            };
            let (name, stage) = (format!("pause-{number}"), format!("pause-{number}"));
            description.groups.push(group(name, stage, 1, 1, pause));
        }
        save(description, workload, number);
    }
    restore_last(description, workload, all.writes);
}

/// Reads the last checkpoints of `saved`, as many as the workload says.
fn restore_last(description: &mut Description, workload: &Workload, saved: u64) {
    let reads = workload.checkpoints.as_ref().map_or(0, |all| all.reads);
    for number in saved.saturating_sub(reads) + 1..=saved {
        restore(description, workload, number);
    }
}

/// A run of a search: the data set, and training. Each run takes the samples that follow those of the runs before it.
pub(super) fn describe_try(workload: &Workload, run: &Try) -> Description {
    let mut description = described(workload);
    data_set(&mut description, workload, "sample", "maker", workload.train.files);
    let name = match run.run {
        0 => workload.accelerators.to_string(),
        again => format!("{}-{}", workload.accelerators, again + 1),
    };
    // Whole passes, more than any run before it has made.
    let passes = if workload.changes_order { run.number as u64 * ACCELERATORS_MAX } else { 0 };
    let skip = passes.saturating_mul(workload.train.files * workload.samples_per_file);
    let how = (workload.train.steps, skip, workload.is_shuffled);
    let stage = format!("accelerators-{name}");
    fed(&mut description, workload, (&stage, &name), ("sample", "maker"), &workload.train, how);
    description
}

/// A description without sets and groups.
fn described(workload: &Workload) -> Description {
    Description {
        format: FORMAT,
        name: super::NAME.to_owned(),
        version: "1".to_owned(),
        summary:
            "DLIO: training, evaluation and checkpoints of a workload file; utilisation of its accelerators"
                .to_owned(),
        notes: workload.notes.clone(),
        parameters: parameters(workload),
        stack: BTreeMap::new(),
        remedies: vec![Remedy {
            part: "wait".to_owned(),
            set: "reader.read_threads=read_threads * 2".to_owned(),
            by: None,
            when: None,
        }],
        sets: Vec::new(),
        groups: Vec::new(),
    }
}

/// Epochs after which something is done.
struct Turns(Option<(u64, u64)>);

impl Turns {
    fn new(after: Option<(u64, u64)>) -> Self {
        Self(after)
    }

    fn is_due(&mut self, epoch: u64) -> bool {
        match &mut self.0 {
            Some((next, between)) if *next == epoch => {
                *next += *between;
                true
            }
            _ => false,
        }
    }
}

/// Values for the record: they are what they are, and are set by DLIO's keys.
fn parameters(workload: &Workload) -> BTreeMap<String, Parameter> {
    let (low, high) = workload.record_bytes;
    let word = |text: String, help: &str, choices| Parameter {
        default: Quantity::Text(text),
        help: help.to_owned(),
        choices,
        min: None,
        max: None,
        full: None,
        scales: None,
        among: None,
    };
    let number = |number: u64, help: &str| word(number.to_string(), help, Vec::new());
    let name = workload.name.clone();
    let all = [
        (
            "workload",
            word(
                name.clone(),
                "Workload that comes with strata (unet3d, bert, resnet50, cosmoflow), or path of a YAML file of DLIO",
                vec![name],
            ),
        ),
        (
            "accelerators",
            number(
                workload.accelerators,
                "Number of accelerators to feed; max: as many as the storage can feed",
            ),
        ),
        ("files", number(workload.train.files, "Files: dataset.num_files_train")),
        ("samples_per_file", number(workload.samples_per_file, "dataset.num_samples_per_file")),
        (
            "record_bytes",
            word(
                format!("{low}..{high}"),
                "Bytes of a sample: dataset.record_length_bytes and its _stdev",
                Vec::new(),
            ),
        ),
        ("batch", number(workload.train.batch, "Samples per accelerator and step: reader.batch_size")),
        ("read_threads", number(workload.read_threads, "Loaders of an accelerator: reader.read_threads")),
        ("ahead", number(workload.ahead, "Batches loaded ahead, from reader.prefetch_size")),
        ("epochs", number(workload.epochs, "train.epochs")),
        ("steps", number(workload.train.steps, "Steps of an epoch")),
        (
            "compute_ns",
            number(
                workload.train.compute_ns,
                "Length of a step in nanoseconds, from train.computation_time (seconds)",
            ),
        ),
    ];
    all.into_iter().map(|(name, parameter)| (name.to_owned(), parameter)).collect()
}

fn group(name: String, stage: String, processes: u64, iterations: u64, step: Step) -> Group {
    Group {
        name,
        stage,
        processes: Quantity::Number(processes),
        iterations: Quantity::Number(iterations),
        iteration: None,
        when: None,
        utilisation: None,
        checkpoint: false,
        steps: vec![step],
    }
}

fn calls(words: &[&str], set: &str) -> Vec<String> {
    words.iter().map(|word| format!("{word} {set}")).collect()
}

/// Calls that write objects: one for each item, or one for each iteration.
fn written(set: &str, is_each: bool, is_synced: bool) -> Step {
    let end = if is_synced { &["sync", "close"][..] } else { &["close"] };
    if is_each {
        let each = [&["create", "write"], end].concat();
        return Step { each: calls(&each, set), ..Step::default() };
    }
    Step {
        begin: calls(&["create"], set),
        each: calls(&["write"], set),
        end: calls(end, set),
        ..Step::default()
    }
}

/// A set of files of samples, and who makes it.
fn data_set(description: &mut Description, workload: &Workload, set: &str, maker: &str, files: u64) {
    let makers = (1..=MAKERS_MAX).rev().find(|makers| files.is_multiple_of(*makers)).unwrap_or(1);
    let (low, high) = workload.record_bytes;
    description.sets.push(Set {
        name: set.to_owned(),
        kind: "array".to_owned(),
        layout: if workload.samples_per_file == 1 { "item" } else { "process-iteration" }.to_owned(),
        size: Some(Quantity::Text(format!("{low}..{high}"))),
        transfer: Some(Quantity::Number(workload.transfer_bytes)),
        ..Set::default()
    });
    let step = Step {
        name: "write".to_owned(),
        items: Some(Quantity::Number(workload.samples_per_file)),
        ..written(set, workload.samples_per_file == 1, true)
    };
    let made = Group {
        iteration: Some("file".to_owned()),
        ..group(maker.to_owned(), "generate".to_owned(), makers, files / makers, step)
    };
    description.groups.push(made);
}

/// Loaders and accelerators of a stage.
fn fed(
    description: &mut Description,
    workload: &Workload,
    (stage, suffix): (&str, &str),
    (set, maker): (&str, &str),
    each: &Loop,
    (steps, skip, is_shuffled): (u64, u64, bool),
) {
    let (loaders, fed) = (format!("loaders-{suffix}"), format!("accel-{suffix}"));
    let load = Step {
        name: "load".to_owned(),
        items: Some(Quantity::Number(each.batch * workload.accelerators)),
        together: true,
        skip: Some(Quantity::Number(skip)),
        of: Some(format!("{maker}.write")),
        from: Some("all".to_owned()),
        order: Some(if is_shuffled { "shuffled" } else { "sequential" }.to_owned()),
        each: calls(&["open", "read", "close"], set),
        after: vec![format!("{fed}.step - {}", workload.ahead + 1)],
        ..Step::default()
    };
    let compute = Step {
        name: "step".to_owned(),
        compute: Some(Quantity::Number(each.compute_ns)),
        begin: vec!["compute".to_owned()],
        after: vec![format!("{loaders}.load")],
        ..Step::default()
    };
    let (first, last) = workload.excluded;
    let is_told = each.compute_ns > 0 && steps > first.saturating_add(last);
    if !is_told {
        let why = if each.compute_ns == 0 {
            "it has no computation time"
        } else {
            "it has no steps beyond the excluded ones"
        };
        description.notes.push(format!("{stage} has no utilisation: {why}"));
    }
    let utilisation = Utilisation {
        permille_min: Some(Quantity::Number(workload.utilisation_permille)),
        exclude_first: Some(Quantity::Number(first)),
        exclude_last: Some(Quantity::Number(last)),
        samples: Quantity::Number(each.batch),
        sample_bytes: Quantity::Number(workload.record_bytes_mean()),
        epoch_samples: None,
    };
    let processes = workload.accelerators * workload.read_threads;
    let batch = Some("batch".to_owned());
    description
        .groups
        .push(Group { iteration: batch.clone(), ..group(loaders, stage.to_owned(), processes, steps, load) });
    description.groups.push(Group {
        iteration: batch,
        utilisation: is_told.then_some(utilisation),
        ..group(fed, stage.to_owned(), workload.accelerators, steps, compute)
    });
}

/// A block of an epoch: steps that no checkpoint interrupts.
fn training(
    description: &mut Description,
    workload: &Workload,
    name: &str,
    (epoch, first, steps): (u64, u64, u64),
) {
    let passes = if workload.changes_order { epoch - 1 } else { 0 };
    let total = workload.train.files * workload.samples_per_file;
    let skip = passes * total + first * workload.train.batch * workload.accelerators;
    let how = (steps, skip, workload.is_shuffled);
    fed(description, workload, (&format!("train-{name}"), name), ("sample", "maker"), &workload.train, how);
}

fn evaluation(description: &mut Description, workload: &Workload, eval: &Loop, epoch: u64) {
    let how = (eval.steps, 0, false);
    fed(
        description,
        workload,
        (&format!("eval-{epoch}"), &format!("eval-{epoch}")),
        ("eval-sample", "eval-maker"),
        eval,
        how,
    );
}

/// Name of something of a part of a checkpoint.
fn part_name(what: &str, number: u64, part: &Part) -> String {
    if part.name.is_empty() { format!("{what}-{number}") } else { format!("{what}-{number}-{}", part.name) }
}

/// A checkpoint: ranks write their files of the model.
fn save(description: &mut Description, workload: &Workload, number: u64) {
    let Some(all) = &workload.checkpoints else { return };
    for part in &all.parts {
        let mut steps = Vec::new();
        for files in &part.files {
            let set = part_name(files.kind, number, part);
            description.sets.push(Set {
                name: set.clone(),
                kind: "array".to_owned(),
                layout: "item".to_owned(),
                size: Some(Quantity::Number(files.bytes)),
                transfer: Some(Quantity::Number(workload.transfer_bytes)),
                ..Set::default()
            });
            steps.push(Step {
                name: files.kind.to_owned(),
                items: Some(Quantity::Number(files.count)),
                ..written(&set, true, all.is_synced)
            });
        }
        let (name, stage) = (part_name("saver", number, part), format!("checkpoint-{number}"));
        let saver = Group { checkpoint: true, steps, ..group(name, stage, part.ranks, 1, Step::default()) };
        description.groups.push(saver);
    }
}

/// Ranks read what they wrote in a checkpoint.
fn restore(description: &mut Description, workload: &Workload, number: u64) {
    let Some(all) = &workload.checkpoints else { return };
    for part in &all.parts {
        let saver = part_name("saver", number, part);
        let read = |files: &Files| Step {
            name: files.kind.to_owned(),
            of: Some(format!("{saver}.{}", files.kind)),
            from: Some("all".to_owned()),
            each: calls(&["open", "read", "close"], &part_name(files.kind, number, part)),
            ..Step::default()
        };
        let (name, stage) = (part_name("restorer", number, part), format!("restore-{number}"));
        let restorer = Group {
            steps: part.files.iter().map(read).collect(),
            ..group(name, stage, part.ranks, 1, Step::default())
        };
        description.groups.push(restorer);
    }
}
