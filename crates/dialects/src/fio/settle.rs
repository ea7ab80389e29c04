//! From options as typed to options as read: variables, inheritance, and what the table says of each.

use std::rc::Rc;

use crate::World;
use crate::fio::draft::Draft;
use crate::fio::fault::{Fault, shown};
use crate::fio::jobfile::{Entry, Section};
use crate::fio::options::{Fate, OPTIONS, Takes, find};
use crate::fio::value::Value;
use units::nearest;

/// A job with all its options, those of the global sections before it included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settled {
    /// Name of the section.
    pub(crate) section: Rc<str>,
    pub(crate) draft: Draft,
    /// Options of its own section, by fio's name, as typed.
    pub(crate) options: Vec<(String, String)>,
    /// Whether all jobs before it end first, whatever it says itself.
    pub(crate) waits: bool,
    /// Whether its operations are told one by one (`--debug=io`).
    pub(crate) traces: bool,
    /// Directory of its files of `verify_state_save` (`--aux-path`).
    pub(crate) state_directory: Option<String>,
    /// Name of the client that carries it out, which names of its files begin with.
    pub(crate) client: Option<Rc<str>>,
}

/// The jobs, and the options of the global sections as typed.
#[derive(Default)]
pub(crate) struct AllSettled {
    pub(crate) jobs: Vec<Settled>,
    pub(crate) global_options: Vec<(String, String)>,
    /// Values that stand in no output and no record.
    pub(crate) secrets: Vec<String>,
}

impl AllSettled {
    /// Adds those of another job file.
    pub(crate) fn join(&mut self, other: Self) {
        self.jobs.extend(other.jobs);
        self.global_options.extend(other.global_options);
        self.secrets.extend(other.secrets);
    }
}

/// Options whose values are secrets.
const SECRET: &[&str] = &["http_s3_key", "http_pass"];

/// Reads the options of all sections.
///
/// # Errors
/// An option that is unknown or refused, or a value that is wrong.
pub(crate) fn settle(sections: &[Section], world: &dyn World) -> Result<AllSettled, Fault> {
    let mut global = Draft::default();
    let mut all = AllSettled { jobs: Vec::new(), global_options: Vec::new(), secrets: Vec::new() };
    for section in sections {
        let secrets = section.entries.iter().filter(|entry| SECRET.contains(&entry.key.as_str()));
        all.secrets.extend(secrets.filter_map(|entry| entry.value.clone()));
        if section.begins_file {
            global = Draft::default();
        }
        if section.is_global() {
            apply(&mut global, &section.entries, &mut all.global_options, world)?;
            // As in fio: a job's name is its own, or that of its section.
            global.name = None;
            continue;
        }
        let mut job = Settled {
            section: section.name.clone(),
            draft: global.clone(),
            options: Vec::new(),
            waits: section.waits,
            traces: false,
            state_directory: None,
            client: None,
        };
        apply(&mut job.draft, &section.entries, &mut job.options, world)?;
        all.jobs.push(job);
    }
    Ok(all)
}

fn apply(
    draft: &mut Draft,
    entries: &[Entry],
    typed: &mut Vec<(String, String)>,
    world: &dyn World,
) -> Result<(), Fault> {
    // Units hold for the lines above them too, and the wrong engine tells more than an option of it.
    let rank = |entry: &&Entry| match entry.key.as_str() {
        "kb_base" => 0,
        "ioengine" => 1,
        _ => 2,
    };
    let mut ordered: Vec<&Entry> = entries.iter().collect();
    ordered.sort_by_key(rank);
    for entry in ordered {
        let fault = |message: String| Fault::of(&entry.key, message).at(&entry.place);
        apply_one(draft, entry, world).map_err(fault)?;
    }
    for entry in entries {
        let name = find(&entry.key).map_or(entry.key.as_str(), |option| option.name);
        let value = if SECRET.contains(&name) { Some("***".to_owned()) } else { entry.value.clone() };
        typed.push((name.to_owned(), value.unwrap_or_default()));
    }
    Ok(())
}

fn apply_one(draft: &mut Draft, entry: &Entry, world: &dyn World) -> Result<(), String> {
    let option = find(&entry.key).ok_or_else(|| unknown(&entry.key))?;
    let text = entry.value.as_deref().map(|text| expand(text, world)).transpose()?.unwrap_or_default();
    if text.is_empty() && option.takes == Takes::Value {
        return Err(format!("needs a value: {}=...", option.name));
    }
    let value = Value::new(&text, u64::from(draft.kb_base.unwrap_or(1024)));
    match &option.fate {
        Fate::Honoured { read, .. } => read(draft, &value)?,
        Fate::Accepted { check, .. } => check(&value)?,
        Fate::Refused { unless, because, nearest } => {
            if !unless.contains(&text.as_str()) {
                return Err(format!("is not supported: {because}; alternative: {nearest}"));
            }
        }
    }
    for note in value.notes.take() {
        let note = format!("{}: {note}", option.name);
        if !draft.notes.contains(&note) {
            draft.notes.push(note);
        }
    }
    draft.given(option.name, &entry.place);
    Ok(())
}

/// Message for an option that fio does not have.
pub(crate) fn unknown(key: &str) -> String {
    let known = OPTIONS.iter().flat_map(|option| option.aliases.iter().copied().chain([option.name]));
    match nearest(key, known) {
        Some(name) => format!("unknown option; the closest match is {name}"),
        None => "unknown option; --cmdhelp lists all options".to_owned(),
    }
}

/// `${VARIABLE}` of the environment, and `$pagesize`, `$mb_memory` and `$ncpus`.
fn expand(text: &str, world: &dyn World) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let end = rest[at..].find('}').ok_or_else(|| format!("\"{}\": ${{ without }}", shown(text)))?;
        let name = &rest[at + 2..at + end];
        let value = world.variable(name).ok_or_else(|| format!("the variable {} is not set", shown(name)))?;
        expanded.push_str(&rest[..at]);
        expanded.push_str(&value);
        rest = &rest[at + end + 1..];
    }
    expanded.push_str(rest);
    if !expanded.contains('$') {
        return Ok(expanded);
    }
    let facts = [
        ("$pagesize", world.page_size_bytes()),
        ("$mb_memory", world.memory_bytes() >> 20),
        ("$ncpus", world.processors().len() as u64),
    ];
    Ok(facts.iter().fold(expanded, |text, (name, number)| text.replace(name, &number.to_string())))
}
