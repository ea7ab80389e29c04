//! A workload of DLIO in numbers, with its defaults, and what of it cannot be.

use driver::Error;

use super::SearchFacts;
use super::keys::{Values, refused};
use super::model::{self, Part};

/// Most files, samples of a file, samples of a batch.
const COUNT_MAX: i64 = 1 << 31;
/// Most bytes of a record or a model.
const BYTES_MAX: i64 = 1 << 44;
/// Most bytes of a data set.
const DATASET_BYTES_MAX: u128 = 1 << 60;
/// Most epochs, and most seconds of a step.
const EPOCHS_MAX: i64 = 100;
const SECONDS_MAX: f64 = 3600.0;
/// Most accelerators: each has a thread, and its loaders have one each.
pub(super) const ACCELERATORS_MAX: u64 = 4096;
/// Fewest measured steps of a run of a search: an interval needs so many.
const SEARCH_STEPS_MIN: u64 = 4;
/// Most bytes of a call where a workload says nothing.
const TRANSFER_BYTES: i64 = 4 << 20;
/// Most checkpoints that are written without training.
const CHECKPOINTS_MAX: i64 = 100;
const FORMATS: &[&str] = &[
    "npz",
    "npy",
    "hdf5",
    "tfrecord",
    "jpeg",
    "png",
    "csv",
    "indexed_binary",
    "mmap_indexed_binary",
    "synthetic",
];

/// Training or evaluation: its data set and its steps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Loop {
    /// Files.
    pub(super) files: u64,
    /// Samples of an accelerator in a step.
    pub(super) batch: u64,
    /// Steps of an epoch.
    pub(super) steps: u64,
    /// Length of a step on an accelerator, in nanoseconds.
    pub(super) compute_ns: u64,
    /// The first epoch after which it is done, from 1 on, and epochs from one to the next.
    pub(super) after: (u64, u64),
}

/// Checkpoints.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Checkpoints {
    /// Ranks and their files.
    pub(super) parts: Vec<Part>,
    pub(super) is_synced: bool,
    /// Steps between two; none: by epochs.
    pub(super) steps: Option<u64>,
    /// The first epoch after which there is one, and epochs from one to the next.
    pub(super) after: (u64, u64),
    /// How many are written where nothing is trained.
    pub(super) writes: u64,
    /// How many of the last ones are read at the end.
    pub(super) reads: u64,
    /// Pause between two where nothing is trained, in nanoseconds.
    pub(super) between_ns: u64,
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Workload {
    pub(super) name: String,
    pub(super) accelerators: u64,
    pub(super) epochs: u64,
    pub(super) samples_per_file: u64,
    /// Smallest and largest record, in bytes.
    pub(super) record_bytes: (u64, u64),
    pub(super) transfer_bytes: u64,
    pub(super) read_threads: u64,
    /// Batches that loaders may have loaded or begun beyond the one that is computed on; 0: they load while nobody computes.
    pub(super) ahead: u64,
    pub(super) is_shuffled: bool,
    pub(super) changes_order: bool,
    /// Whether there is training; else checkpoints alone.
    pub(super) trains: bool,
    pub(super) train: Loop,
    pub(super) eval: Option<Loop>,
    pub(super) checkpoints: Option<Checkpoints>,
    /// Smallest utilisation that passes, in thousandths.
    pub(super) utilisation_permille: u64,
    /// Steps at the beginning and the end of a block that utilisation leaves out.
    pub(super) excluded: (u64, u64),
    pub(super) notes: Vec<String>,
}

fn count(values: &Values, name: &str, default: i64) -> Result<u64, Error> {
    values.whole(name, default, (1, COUNT_MAX)).map(|number| number as u64)
}

/// Seconds as nanoseconds.
fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl Workload {
    /// The workload that values tell.
    ///
    /// # Errors
    /// Values that cannot be, with those that can.
    pub(super) fn new(name: &str, accelerators: &str, values: &Values) -> Result<Self, Error> {
        let found =
            accelerators.trim().parse::<u64>().ok().filter(|number| (1..=ACCELERATORS_MAX).contains(number));
        let accelerators = found.ok_or_else(|| {
            refused(
                format!("accelerators={accelerators:?} is not valid"),
                format!("1 to {ACCELERATORS_MAX}, or max"),
            )
        })?;
        let trains = values.switch("workflow.train", true)?;
        let checkpoints = checkpoints(values, accelerators)?;
        if !trains && checkpoints.as_ref().is_none_or(|all| all.writes == 0) {
            let accepted =
                "workflow.train=true, or workflow.checkpoint=true with checkpoint.num_checkpoints_write";
            return Err(refused(
                "a workload without training and checkpoints is not supported".to_owned(),
                accepted,
            ));
        }
        let format = values.word("dataset.format", "tfrecord");
        if !FORMATS.contains(&format.as_str()) {
            return Err(refused(
                format!("dataset.format={format:?} is not valid"),
                format!("one of {}", FORMATS.join(", ")),
            ));
        }
        let record_bytes = record(values)?;
        let samples_per_file = count(values, "dataset.num_samples_per_file", 1)?;
        let (read_threads, ahead) = loaders(values)?;
        let mut workload = Self {
            name: name.to_owned(),
            accelerators,
            epochs: values.whole("train.epochs", 1, (1, EPOCHS_MAX))? as u64,
            samples_per_file,
            record_bytes,
            transfer_bytes: values.whole("reader.transfer_size", TRANSFER_BYTES, (1, BYTES_MAX))? as u64,
            read_threads,
            ahead,
            is_shuffled: shuffled(values, samples_per_file)?,
            changes_order: values.switch("train.seed_change_epoch", true)?,
            trains,
            train: Loop {
                files: count(values, "dataset.num_files_train", 8)?,
                batch: count(values, "reader.batch_size", 1)?,
                steps: 0,
                compute_ns: match trains {
                    true => ns(values.real("train.computation_time", 0.0, (0.0, SECONDS_MAX))?),
                    false => 0,
                },
                after: (1, 1),
            },
            eval: if trains { evaluation(values)? } else { None },
            checkpoints,
            utilisation_permille: (values.real("metric.au", 0.9, (0.001, 1.0))? * 1000.0).round() as u64,
            excluded: (
                values.whole("output.metric.exclude_start_steps", 1, (0, COUNT_MAX))? as u64,
                values.whole("output.metric.exclude_end_steps", 0, (0, COUNT_MAX))? as u64,
            ),
            notes: notes(values, &format),
        };
        workload.settle(values)?;
        Ok(workload)
    }

    /// Steps of an epoch: an incomplete batch at the end is left out, as DLIO does.
    fn settle(&mut self, values: &Values) -> Result<(), Error> {
        if !self.trains {
            return Ok(());
        }
        let (samples_per_file, accelerators, record) =
            (self.samples_per_file, self.accelerators, self.record_bytes.1);
        for (of, each) in std::iter::once(("train", &mut self.train))
            .chain(self.eval.as_mut().map(|each| ("evaluation", each)))
        {
            let samples = each.files.saturating_mul(samples_per_file);
            let step = each.batch.saturating_mul(accelerators);
            each.steps = samples / step;
            if each.steps == 0 {
                let given = format!(
                    "{of}: {samples} samples are fewer than one step of {accelerators} x {} samples",
                    each.batch
                );
                return Err(refused(given, "more files, fewer accelerators, or a smaller batch"));
            }
            if u128::from(samples) * u128::from(record) > DATASET_BYTES_MAX {
                return Err(refused(
                    format!("{of}: {samples} samples of up to {record} bytes are too many"),
                    "fewer files",
                ));
            }
        }
        let wanted = values.whole("train.total_training_steps", -1, (-1, COUNT_MAX))?;
        if wanted > 0 {
            if wanted as u64 > self.train.steps {
                let given = format!(
                    "train.total_training_steps={wanted}, but the data set has only {} steps",
                    self.train.steps
                );
                return Err(refused(given, "fewer steps, or more files"));
            }
            self.train.steps = wanted as u64;
        }
        Ok(())
    }

    /// Leaves the parts of a run of a search: training with so many accelerators, as many steps as an epoch of one has.
    ///
    /// # Errors
    /// No computing, or too few steps, to tell a utilisation by.
    pub(super) fn search(&mut self, accelerators: u64) -> Result<(), Error> {
        if !self.trains {
            let given = "accelerators=max requires training".to_owned();
            return Err(refused(given, "workflow.train=true, or a number of accelerators"));
        }
        if self.train.compute_ns == 0 {
            let given = "accelerators=max requires train.computation_time above 0: without it, utilisation is not defined".to_owned();
            return Err(refused(given, "the seconds that an accelerator computes in a step"));
        }
        let measured = self.train.steps.saturating_sub(self.excluded.0.saturating_add(self.excluded.1));
        if measured < SEARCH_STEPS_MIN {
            let given = format!(
                "accelerators=max has only {} training steps, {measured} of them measured",
                self.train.steps
            );
            return Err(refused(
                given,
                format!(
                    "more files or a smaller batch: at least {SEARCH_STEPS_MIN} measured steps are required"
                ),
            ));
        }
        (self.accelerators, self.epochs, self.eval, self.checkpoints) = (accelerators, 1, None, None);
        self.notes.push("accelerators=max: only training runs; each run has as many steps as an epoch of one accelerator, and repeats the data set as needed".to_owned());
        Ok(())
    }

    /// Facts of a search.
    pub(super) fn search_facts(&self) -> SearchFacts {
        let of_data_set = self.train.files.saturating_mul(self.samples_per_file) / self.train.batch;
        SearchFacts {
            accelerators_max: of_data_set.clamp(1, ACCELERATORS_MAX),
            is_of_data_set: of_data_set < ACCELERATORS_MAX,
            processes: self.read_threads + 1,
        }
    }

    /// Mean bytes of a record.
    pub(super) fn record_bytes_mean(&self) -> u64 {
        self.record_bytes.0.midpoint(self.record_bytes.1)
    }
}

/// Sizes of records: evenly spread, with the mean and the standard deviation that the workload says.
fn record(values: &Values) -> Result<(u64, u64), Error> {
    let mean = values.whole("dataset.record_length_bytes", 65_536, (1, BYTES_MAX))?;
    let deviation = values.real("dataset.record_length_bytes_stdev", 0.0, (0.0, BYTES_MAX as f64))?;
    let half = (deviation * 3f64.sqrt()).round() as i64;
    if half >= mean {
        let given = format!("records of {mean} bytes cannot have a standard deviation of {deviation:.0}");
        return Err(refused(given, format!("a standard deviation below {:.0}", mean as f64 / 3f64.sqrt())));
    }
    Ok(((mean - half) as u64, (mean + half) as u64))
}

/// Loaders of an accelerator, and batches that they are ahead: `prefetch_size` of each worker with PyTorch, of all with others.
fn loaders(values: &Values) -> Result<(u64, u64), Error> {
    let loader = values.word("reader.data_loader", "tensorflow");
    let known = ["tensorflow", "pytorch", "dali", "native_dali", "synthetic"];
    if !known.contains(&loader.as_str()) {
        return Err(refused(
            format!("reader.data_loader={loader:?} is not valid"),
            format!("one of {}", known.join(", ")),
        ));
    }
    let threads = values.whole("reader.read_threads", 1, (0, 1024))? as u64;
    let prefetch = values.whole("reader.prefetch_size", 2, (0, 1024))? as u64;
    Ok((threads.max(1), if loader == "pytorch" { prefetch * threads } else { prefetch }))
}

fn shuffled(values: &Values, samples_per_file: u64) -> Result<bool, Error> {
    let is_on = |name: &str| match values.word(name, "off").as_str() {
        "off" | "false" => Ok(false),
        "seed" | "random" => Ok(true),
        other => Err(refused(format!("{name}={other:?} is not valid"), "off, seed or random")),
    };
    let (files, samples) = (is_on("reader.file_shuffle")?, is_on("reader.sample_shuffle")?);
    if files != samples && samples_per_file > 1 {
        let given = "only files or only samples are shuffled, but files have several samples".to_owned();
        return Err(refused(given, "reader.file_shuffle and reader.sample_shuffle both on, or both off"));
    }
    Ok(files || samples)
}

fn evaluation(values: &Values) -> Result<Option<Loop>, Error> {
    if !values.switch("workflow.evaluation", false)? {
        return Ok(None);
    }
    Ok(Some(Loop {
        files: count(values, "dataset.num_files_eval", 0)?,
        batch: count(values, "reader.batch_size_eval", 1)?,
        steps: 0,
        compute_ns: ns(values.real("evaluation.eval_time", 0.0, (0.0, SECONDS_MAX))?),
        after: (
            count(values, "evaluation.eval_after_epoch", 1)?,
            count(values, "evaluation.epochs_between_evals", 1)?,
        ),
    }))
}

fn checkpoints(values: &Values, ranks: u64) -> Result<Option<Checkpoints>, Error> {
    if !values.switch("workflow.checkpoint", false)? {
        return Ok(None);
    }
    let steps = values.whole("checkpoint.steps_between_checkpoints", -1, (-1, COUNT_MAX))?;
    let written =
        |name: &str| values.whole(name, -1, (-1, CHECKPOINTS_MAX)).map(|number| number.max(0) as u64);
    let (writes, reads) =
        (written("checkpoint.num_checkpoints_write")?, written("checkpoint.num_checkpoints_read")?);
    if writes > 0 && reads > writes {
        let given =
            format!("checkpoint.num_checkpoints_read={reads}, but only {writes} checkpoints are written");
        return Err(refused(given, "as many or fewer"));
    }
    if writes > 0 && values.switch("workflow.train", true)? {
        let given =
            "checkpoint.num_checkpoints_write does not support training, which writes checkpoints by steps or epochs"
                .to_owned();
        return Err(refused(given, "workflow.train=false, or only checkpoints by steps or epochs"));
    }
    Ok(Some(Checkpoints {
        parts: model::parts(values, ranks)?,
        is_synced: values.switch("checkpoint.fsync", false)?,
        steps: u64::try_from(steps).ok().filter(|steps| *steps > 0),
        after: (
            count(values, "checkpoint.checkpoint_after_epoch", 1)?,
            count(values, "checkpoint.epochs_between_checkpoints", 1)?,
        ),
        writes,
        reads,
        between_ns: ns(values
            .real("checkpoint.time_between_checkpoints", -1.0, (-1.0, SECONDS_MAX))?
            .max(0.0)),
    }))
}

/// Notes for the record: how the load differs from the workload.
fn notes(values: &Values, format: &str) -> Vec<String> {
    let mut notes = vec![
        format!(
            "samples are raw records with the lengths of the workload: the container format {format} is neither written nor parsed"
        ),
        "the first stage of the run creates the data set, regardless of workflow.generate_data".to_owned(),
    ];
    let unused = values.without_influence();
    if !unused.is_empty() {
        notes.push(format!("ignored keys of the workload: {}", unused.join(", ")));
    }
    notes
}
