//! Keys of DLIO's workload files, and what becomes of each here. Meaning and defaults follow `dlio_benchmark/utils/config.py`.

use std::collections::BTreeMap;

use driver::Error;
use serde_json::Value;
use units::nearest;

/// Longest workload file, in bytes.
const BYTES_MAX: usize = 256 << 10;

/// Role of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// It shapes the load.
    Used,
    /// It changes nothing that is measured here: it is named in the notes.
    NoInfluence,
    /// Only these values are carried out; and what helps instead.
    Only(&'static [&'static str], &'static str),
    /// The older name of another key.
    Alias(&'static str),
}

use Rule::{Alias, NoInfluence, Only, Used};

const OFF: &[&str] = &["0"];
const NO: &[&str] = &["false"];
const NEVER: &[&str] = &["-1"];
const RANKS: &str = "--accelerators with all ranks of the model";
const SHIFT: &str = "ranks that read their own data immediately";
const FIXED: &str = "only the mean";

/// The table.
const KEYS: &[(&str, Rule)] = &[
    ("checkpoint.checkpoint_after_epoch", Used),
    ("checkpoint.checkpoint_folder", NoInfluence),
    ("checkpoint.epochs_between_checkpoints", Used),
    ("checkpoint.fsync", Used),
    ("checkpoint.mode", Only(&["default"], RANKS)),
    ("checkpoint.model_size", Alias("model.model_size_bytes")),
    ("checkpoint.num_checkpoints_read", Used),
    ("checkpoint.num_checkpoints_write", Used),
    ("checkpoint.randomize_tensor", NoInfluence),
    ("checkpoint.rank_sync", Only(NO, SHIFT)),
    ("checkpoint.recovery_rank_shift", Only(NO, SHIFT)),
    ("checkpoint.steps_between_checkpoints", Used),
    ("checkpoint.time_between_checkpoints", Used),
    ("checkpoint.type", Used),
    ("dataset.chunk_size", Only(OFF, "no chunks")),
    ("dataset.compression", Only(&["none"], "data that is not compressed")),
    ("dataset.data_folder", NoInfluence),
    ("dataset.enable_chunking", Only(NO, "no chunks")),
    ("dataset.file_prefix", NoInfluence),
    ("dataset.format", Used),
    ("dataset.generation_buffer_size", NoInfluence),
    ("dataset.keep_files", NoInfluence),
    ("dataset.num_files_eval", Used),
    ("dataset.num_files_train", Used),
    ("dataset.num_samples_per_file", Used),
    ("dataset.num_subfolders_eval", NoInfluence),
    ("dataset.num_subfolders_train", NoInfluence),
    ("dataset.record_length", Alias("dataset.record_length_bytes")),
    ("dataset.record_length_bytes", Used),
    ("dataset.record_length_bytes_resize", NoInfluence),
    ("dataset.record_length_bytes_stdev", Used),
    ("dataset.record_length_resize", Alias("dataset.record_length_bytes_resize")),
    ("dataset.record_length_stdev", Alias("dataset.record_length_bytes_stdev")),
    ("evaluation.epochs_between_evals", Used),
    ("evaluation.eval_after_epoch", Used),
    ("evaluation.eval_time", Used),
    ("evaluation.eval_time_stdev", Only(OFF, FIXED)),
    ("framework", NoInfluence),
    ("metric.au", Used),
    ("model", Alias("model.name")),
    ("model.layer_parameters", Used),
    ("model.model_datatype", Used),
    ("model.model_size", Alias("model.model_size_bytes")),
    ("model.model_size_bytes", Used),
    ("model.name", NoInfluence),
    ("model.num_layers", Used),
    ("model.optimization_groups", Used),
    ("model.optimizer_datatype", Used),
    ("model.parallelism.data", Only(NEVER, RANKS)),
    ("model.parallelism.pipeline", Used),
    ("model.parallelism.tensor", Used),
    ("model.parallelism.zero_stage", Used),
    ("model.transformer.ffn_hidden_size", Used),
    ("model.transformer.hidden_size", Used),
    ("model.transformer.num_attention_heads", Used),
    ("model.transformer.num_kv_heads", Used),
    ("model.transformer.vocab_size", Used),
    ("model.type", NoInfluence),
    ("output.folder", NoInfluence),
    ("output.log_file", NoInfluence),
    ("output.metric.exclude_end_steps", Used),
    ("output.metric.exclude_start_steps", Used),
    ("profiling.iostat_devices", NoInfluence),
    ("profiling.profiler", NoInfluence),
    ("reader.batch_size", Used),
    ("reader.batch_size_eval", Used),
    ("reader.computation_threads", NoInfluence),
    ("reader.data_loader", Used),
    ("reader.dont_use_mmap", NoInfluence),
    ("reader.file_access", Only(&["multi"], "a file for each process")),
    ("reader.file_shuffle", Used),
    ("reader.multiprocessing_context", NoInfluence),
    ("reader.odirect", Only(NO, "--target-options direct=true")),
    ("reader.pin_memory", NoInfluence),
    ("reader.prefetch_size", Used),
    ("reader.preprocess_time", Only(OFF, "a longer train.computation_time")),
    ("reader.preprocess_time_stdev", Only(OFF, FIXED)),
    ("reader.read_threads", Used),
    ("reader.read_type", Only(&["on_demand"], "reading on demand")),
    ("reader.sample_shuffle", Used),
    ("reader.shuffle_size", NoInfluence),
    ("reader.transfer_size", Used),
    ("storage.storage_root", NoInfluence),
    ("storage.storage_type", NoInfluence),
    ("train.computation_time", Used),
    ("train.computation_time.mean", Alias("train.computation_time")),
    ("train.computation_time.stdev", Alias("train.computation_time_stdev")),
    ("train.computation_time_stdev", Only(OFF, FIXED)),
    ("train.epochs", Used),
    ("train.seed", NoInfluence),
    ("train.seed_change_epoch", Used),
    ("train.total_training_steps", Used),
    ("workflow.checkpoint", Used),
    ("workflow.debug", NoInfluence),
    ("workflow.evaluation", Used),
    ("workflow.generate_data", NoInfluence),
    ("workflow.profiling", NoInfluence),
    ("workflow.train", Used),
];

/// Values of a workload by the names of their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Values {
    all: BTreeMap<&'static str, Value>,
}

pub(super) fn refused(what: String, accepted: impl std::fmt::Display) -> Error {
    Error::usage("workload", what).remedy(format!("use {accepted}"))
}

/// A value as a file has it, in lower case; numbers alike, however they are written.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_lowercase(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, |number| number.to_string()),
        other => other.to_string(),
    }
}

impl Values {
    /// Reads the text of a workload file.
    ///
    /// # Errors
    /// Text that is no YAML, keys that there are none of, and values that are not carried out.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        if text.len() > BYTES_MAX {
            return Err(refused(
                format!("it has {} bytes", text.len()),
                format!("at most {BYTES_MAX} bytes"),
            ));
        }
        let value: Value = serde_saphyr::from_str(text).map_err(|error| {
            let told = error.to_string();
            let line = told.lines().find(|line| !line.trim().is_empty()).unwrap_or("it cannot be read");
            refused(format!("it is not YAML: {}", line.trim()), "a workload file of DLIO")
        })?;
        let mut values = Self::default();
        if !value.is_object() {
            return Err(refused("it has no keys".to_owned(), "a workload file of DLIO"));
        }
        values.flatten("", &value)?;
        Ok(values)
    }

    fn flatten(&mut self, above: &str, value: &Value) -> Result<(), Error> {
        match value {
            Value::Object(map) => map.iter().try_for_each(|(key, value)| {
                let name = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
                self.flatten(&name, value)
            }),
            // A section without keys.
            Value::Null => Ok(()),
            _ => self.set(above, value.clone(), false),
        }
    }

    /// Sets a key; `over` what was there.
    pub(super) fn set(&mut self, name: &str, value: Value, over: bool) -> Result<(), Error> {
        let name =
            name.strip_prefix("data_reader.").map_or_else(|| name.to_owned(), |key| format!("reader.{key}"));
        let find = |name: &str| KEYS.iter().find(|(known, _)| *known == name);
        let found = match find(&name) {
            Some((_, Alias(of))) => find(of),
            found => found,
        };
        let Some((known, rule)) = found else {
            let near = nearest(&name, KEYS.iter().map(|(known, _)| *known));
            let accepted = near.map_or_else(
                || "the keys that docs/applications.md lists".to_owned(),
                |near| format!("{near} (the closest match)"),
            );
            return Err(refused(format!("{name:?} is not a supported key"), accepted));
        };
        let text = text_of(&value);
        if text.contains("${") {
            return Err(refused(format!("{known} refers to another value"), "the value itself"));
        }
        if let Only(accepted, instead) = rule
            && !accepted.contains(&text.as_str())
        {
            let given = format!("{known}={text:?} is not supported");
            return Err(refused(given, format!("{known}={}, or {instead}", accepted.join("|"))));
        }
        if self.all.insert(known, value).is_some() && !over {
            return Err(refused(format!("{known} is given twice"), "one of its names"));
        }
        Ok(())
    }

    /// Keys that were given and change nothing here.
    pub(super) fn without_influence(&self) -> Vec<&'static str> {
        let is_one = |name: &&&'static str| KEYS.contains(&(**name, NoInfluence));
        self.all.keys().filter(is_one).copied().collect()
    }

    /// A word, in lower case.
    pub(super) fn word(&self, name: &str, default: &str) -> String {
        self.all.get(name).map_or_else(|| default.to_owned(), text_of)
    }

    /// A list of whole numbers; empty where nothing is said.
    pub(super) fn list(&self, name: &str) -> Result<Vec<u64>, Error> {
        let text = self.word(name, "[]");
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let words = inner.map(|inner| inner.split(',').map(str::trim).filter(|word| !word.is_empty()));
        let numbers = words.and_then(|words| words.map(|word| word.parse().ok()).collect());
        numbers.ok_or_else(|| {
            refused(format!("{name}={text:?} is not valid"), "a list of whole numbers: [1000, 2000]")
        })
    }

    /// A switch.
    pub(super) fn switch(&self, name: &str, default: bool) -> Result<bool, Error> {
        match self.word(name, if default { "true" } else { "false" }).as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(refused(format!("{name}={other:?} is not true or false"), "true or false")),
        }
    }

    /// A number with a fraction, from `min` to `max`.
    pub(super) fn real(&self, name: &str, default: f64, (min, max): (f64, f64)) -> Result<f64, Error> {
        let text = self.word(name, &default.to_string());
        let number = text.parse::<f64>().ok().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| refused(format!("{name}={text:?} is not valid"), format!("{min} to {max}")))
    }

    /// A whole number from `min` to `max`; lengths that are means are rounded.
    pub(super) fn whole(&self, name: &str, default: i64, (min, max): (i64, i64)) -> Result<i64, Error> {
        let number = self.real(name, default as f64, (min as f64, max as f64))?;
        if number.fract() != 0.0 && !name.contains("record_length") {
            return Err(refused(format!("{name}={number} is not whole"), format!("{min} to {max}")));
        }
        Ok(number.round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_sorted_and_aliases_lead_to_keys() {
        assert!(KEYS.is_sorted_by_key(|(name, _)| *name));
        for (name, rule) in KEYS {
            if let Alias(of) = rule {
                assert!(KEYS.iter().any(|(known, rule)| known == of && !matches!(rule, Alias(_))), "{name}");
            }
        }
    }

    #[test]
    fn faults_are_named() {
        for (text, told) in [
            ("", "no keys"),
            ("- 1", "no keys"),
            ("train: {epoch: 5}", "train.epochs (the closest"),
            ("dataset: {compression: gzip}", "dataset.compression=none"),
            ("reader: {odirect: true}", "direct=true"),
            ("dataset: {record_length: 1, record_length_bytes: 2}", "given twice"),
            ("train: {epochs: 1\n", "not YAML"),
            ("dataset: {num_files_train: '${a.b}'}", "refers to another"),
            ("checkpoint: {mode: subset}", "--accelerators with all ranks"),
        ] {
            let error = Values::read(text).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains('\n'), "{text}: {error}");
        }
        let values =
            Values::read("model: a\ndata_reader: {batch_size: 4}\ntrain: {computation_time: {mean: 0.5}}")
                .unwrap();
        assert_eq!(values.whole("reader.batch_size", 1, (1, 9)).unwrap(), 4);
        assert!(values.whole("reader.batch_size", 1, (5, 9)).is_err());
        assert_eq!(values.without_influence(), ["model.name"]);
    }

    #[test]
    fn keys_of_published_files_are_read() {
        let text = "model: {name: resnet50, type: cnn, model_size: 499153191}\nframework: tensorflow\n\
                    workflow: {generate_data: False, train: True}\n\
                    dataset: {num_files_train: 1024, record_length_bytes: 114660.07, data_folder: data/resnet50}\n\
                    reader: {computation_threads: 8, shuffle_size: 2, batch_size: 400}\nmetric: {au: 0.90}";
        Values::read(text).expect("all of these keys");
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[a-z_0-9:{}&*\\[\\]'\" .,\n-]{0,200}") {
            let _ = Values::read(&text);
        }
    }
}
