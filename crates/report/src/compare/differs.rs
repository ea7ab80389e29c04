//! In what two sides were run differently.

use serde_json::Value;

use super::matched::phases;
use super::{Comparison, Differing, Operand, PhaseComparison, Runs};
use crate::record::{PhaseRecord, Record};
use crate::words::clean;

/// Fields of a plan that say nothing about what is measured, or follow from another.
const FIELDS_IGNORED: &[&str] =
    &["name", "load.seed", "verify_run", "block_size_bytes_max", "targets.0.direct_alignment_bytes"];

/// Fields of a plan that say what load is put on, whole or as `NAME.`: what is asked for, in which sizes and order, by how many
/// at a time, and with which engine. Where it goes, for how long and from which cores is no part of it.
const LOAD_FIELDS: &[&str] = &[
    "layer",
    "engine",
    "provider",
    "operation",
    "mix",
    "sequence",
    "pattern",
    "block_size",
    "align_bytes",
    "request",
    "reply",
    "pipeline",
    "traffic",
    "dataset",
    "class",
    "object_type",
    "fsync_every",
    "end_fsync",
    "verify_interval_bytes",
    "verify",
    "cache",
    "content",
    "options.direct",
    "options.sync",
    "options.durability",
    "load.threads",
    "load.depth",
    "load.arrivals",
    "load.think",
];

/// Whether a field of a plan is one of the load's, the kind of a target, or the format of its objects.
pub(super) fn is_load(field: &str) -> bool {
    let is_kind = field.starts_with("targets.") && field.ends_with(".kind");
    let is_below =
        |load: &&str| field.strip_prefix(*load).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let is_format = field.starts_with("sets.") && field.ends_with(".format");
    is_kind || is_format || LOAD_FIELDS.iter().any(is_below)
}

/// The load of a phase: `FIELD=VALUE` for each field of its plan that says what load is put on.
pub(super) fn fields_of_load(phase: &PhaseRecord) -> Vec<String> {
    let mut fields = Vec::new();
    flatten("", &serde_json::to_value(&phase.plan).unwrap_or_default(), &mut fields);
    fields.retain(|(name, _)| is_load(name) && !FIELDS_IGNORED.contains(&name.as_str()));
    fields.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

impl Comparison {
    /// In what the loads of its phases differ, by phase: `randread: block_size: 4KiB → 64KiB, load.depth: 1 → 4`. Figures of
    /// other loads differ whatever the software and the target do.
    #[must_use]
    pub fn other_loads(&self) -> Vec<String> {
        let of_phase = |phase: &PhaseComparison| {
            let fields = phase.differs.iter().filter(|field| is_load(&field.field));
            let fields: Vec<String> = fields.map(super::text::differing_words).collect();
            (!fields.is_empty()).then(|| format!("{}: {}", clean(&phase.name), fields.join(", ")))
        };
        self.phases.iter().filter_map(of_phase).collect()
    }
}

type Fact = (&'static str, fn(&Record) -> Option<String>);

/// Facts about machine and software.
const FACTS: &[Fact] = &[
    ("strata", |record| Some(record.strata_version.clone())),
    ("debug build", |record| Some(if record.debug_build { "yes" } else { "no" }.to_owned())),
    ("optimized build", |record| Some(if record.optimized_build { "yes" } else { "no" }.to_owned())),
    ("host", |record| record.environment.system.hostname.clone()),
    ("kernel", |record| record.environment.system.kernel.clone()),
    ("distribution", |record| record.environment.system.distribution.clone()),
    ("processor", |record| record.environment.processor.model.clone()),
    ("cores", |record| record.environment.processor.logical_cores.map(|cores| cores.to_string())),
    ("governor", |record| {
        Some(record.environment.processor.governors.join(" ")).filter(|names| !names.is_empty())
    }),
    ("memory", |record| {
        record.environment.memory.total_bytes.map(|bytes| units::human::human_bytes(bytes as f64))
    }),
    ("drive", |record| of_targets(record, |target| target.device.as_ref()?.model.clone())),
    ("scheduler", |record| of_targets(record, |target| target.device.as_ref()?.scheduler.clone())),
    ("file system", |record| of_targets(record, |target| Some(target.filesystem.as_ref()?.kind.clone()))),
];

fn of_targets(record: &Record, fact: fn(&host::TargetEnvironment) -> Option<String>) -> Option<String> {
    let mut found: Vec<String> = record.environment.targets.iter().filter_map(fact).collect();
    found.dedup();
    (!found.is_empty()).then(|| found.join(", "))
}

/// Facts about machine and software of a record, by name; those that are not known are left out.
#[must_use]
pub fn facts_by_name(record: &Record) -> Vec<(String, String)> {
    FACTS.iter().filter_map(|(name, fact)| Some(((*name).to_owned(), fact(record)?))).collect()
}

/// Facts that the sides do not share.
pub(super) fn facts(a: &Operand, b: &Operand) -> Vec<Differing> {
    if a.records.is_empty() {
        return Vec::new();
    }
    let of = |operand: &Operand, fact: fn(&Record) -> Option<String>| {
        distinct(
            operand.records.iter().map(|(_, record)| fact(record).unwrap_or_else(|| "unknown".to_owned())),
        )
    };
    let pairs = FACTS.iter().map(|(name, fact)| ((*name).to_owned(), of(a, *fact), of(b, *fact)));
    pairs.filter_map(|(field, a, b)| differing(field, a, b)).collect()
}

/// Fields of the plans that the sides do not share.
pub(super) fn plans(a: &Runs<'_>, b: &Runs<'_>) -> Vec<Differing> {
    let flat = |runs: &Runs<'_>| -> Vec<Vec<(String, String)>> {
        let plans = phases(runs).map(|phase| serde_json::to_value(&phase.plan).unwrap_or_default());
        plans
            .map(|plan| {
                let mut fields = Vec::new();
                flatten("", &plan, &mut fields);
                fields
            })
            .collect()
    };
    let (a, b) = (flat(a), flat(b));
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in a.iter().chain(&b).flatten() {
        if !names.contains(&name) && !FIELDS_IGNORED.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let of = |side: &[Vec<(String, String)>], name: &str| {
        let value = |fields: &Vec<(String, String)>| {
            fields
                .iter()
                .find(|(own, _)| own == name)
                .map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
        };
        distinct(side.iter().map(value))
    };
    names.into_iter().filter_map(|name| differing(name.clone(), of(&a, name), of(&b, name))).collect()
}

fn differing(field: String, a: Vec<String>, b: Vec<String>) -> Option<Differing> {
    (a != b || a.len() > 1).then_some(Differing { field, a, b })
}

fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = values.collect();
    found.sort();
    found.dedup();
    found
}

/// Beginning of the names that `strata stack` gives its files; the number of its process follows.
const SCRATCH: &str = "strata-scratch-";

/// A value without what differs from run to run of the same stack.
fn without_process(text: &str) -> String {
    match text.split_once(SCRATCH) {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
            format!("{before}{SCRATCH}{}", without_process(rest))
        }
        None => text.to_owned(),
    }
}

/// Every value with its path.
fn flatten(path: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| flatten(&below(name), value, fields)),
        Value::Array(list) if list.iter().any(Value::is_object) => {
            list.iter().enumerate().for_each(|(at, value)| flatten(&below(&at.to_string()), value, fields));
        }
        Value::Null => fields.push((path.to_owned(), "none".to_owned())),
        Value::String(text) => fields.push((path.to_owned(), without_process(text))),
        other => fields.push((path.to_owned(), other.to_string())),
    }
}
