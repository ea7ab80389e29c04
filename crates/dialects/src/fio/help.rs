//! Help texts, and the tables of docs/dialects/fio.md: both from the tables of options.

use std::fmt::Write;

use crate::fio::command_options::{COMMAND_OPTIONS, What};
use crate::fio::engines::{ENGINES, layer_of};
use crate::fio::fault::{Fault, shown};
use crate::fio::jobfile::Section;
use crate::fio::options::{Fate, FioOption, OPTIONS, Takes, find};
use crate::fio::settle::unknown;

/// `--help`.
pub(super) fn usage() -> String {
    let mut text = "fio [options] [job options] [job file ...]\n\n".to_owned();
    for option in COMMAND_OPTIONS {
        let words = match option.what {
            What::Does(_, words) => words.to_owned(),
            What::Accepted(because) => format!("ignored: {because}"),
            What::Refused(because, nearest) => format!("rejected: {because}; alternative: {nearest}"),
        };
        let value = if option.takes == Takes::Value { "=" } else { "" };
        let _ = writeln!(text, "  {:<22}{words}", format!("--{}{value}", option.name));
    }
    text.push_str("\nOptions of a job: --cmdhelp, or --cmdhelp=NAME for one of them. Engines: --enghelp.\n");
    text
}

/// Treatment of an option, as words of a table: its fate and why.
fn fate(option: &FioOption) -> (&'static str, String) {
    match &option.fate {
        Fate::Honoured { becomes, .. } => ("supported", (*becomes).to_owned()),
        Fate::Accepted { because, .. } => ("ignored", (*because).to_owned()),
        Fate::Refused { unless, because, nearest } => {
            let unless = match unless {
                [] => String::new(),
                values => format!(" (accepted: {})", values.join(", ")),
            };
            ("rejected", format!("{because}{unless}; alternative: {nearest}"))
        }
    }
}

/// `--cmdhelp`: one option, or all.
///
/// # Errors
/// An unknown option.
pub(super) fn options(name: Option<&str>) -> Result<String, Fault> {
    let line = |option: &FioOption| {
        let (fate, words) = fate(option);
        format!("{:<34}{fate}: {words}\n", option.name)
    };
    match name {
        None => Ok(OPTIONS.iter().map(line).collect()),
        Some(name) => {
            let option =
                find(name).ok_or_else(|| Fault::of(&format!("--cmdhelp={}", shown(name)), unknown(name)))?;
            let aliases = match option.aliases {
                [] => String::new(),
                aliases => format!("{:>20}: {}\n", "alias", aliases.join(", ")),
            };
            Ok(format!("{}{aliases}", line(option)))
        }
    }
}

/// `--enghelp`: the engines that this machine has.
///
/// # Errors
/// An unknown engine.
pub(super) fn engines(name: Option<&str>, here: &[&str]) -> Result<String, Fault> {
    let spoken = ENGINES.iter().filter(|(_, ours, _)| here.contains(ours) || layer_of(ours) != "media");
    let line = |(name, ours, difference): &(&str, &str, Option<&str>)| match difference {
        Some(difference) => format!("\t{name}\truns as {ours}: {difference}\n"),
        None => format!("\t{name}\n"),
    };
    match name.map(|name| name.split(',').next().unwrap_or(name)) {
        None => Ok(format!("Available IO engines:\n{}", spoken.map(line).collect::<String>())),
        Some(name) => match ENGINES.iter().find(|(known, ..)| *known == name) {
            Some(engine) => Ok(line(engine)),
            None => Err(Fault::of(
                "--enghelp",
                format!("engine {} does not exist; --enghelp lists all engines", shown(name)),
            )),
        },
    }
}

/// `--showcmd`: the sections as one command line, quoted for a shell.
pub(super) fn command_line(sections: &[Section]) -> String {
    let mut text = "fio".to_owned();
    let mut has_job = false;
    for section in sections {
        has_job |= !section.is_global();
        // Options before the first job are global without a word.
        if has_job {
            let _ = write!(text, " {}", quoted(&format!("--name={}", section.name)));
        }
        for entry in section.entries.iter().filter(|entry| entry.key != "name") {
            let word = match (&entry.value, find(&entry.key).map(|option| option.takes)) {
                (Some(value), _) => format!("--{}={value}", entry.key),
                (None, Some(Takes::Bool)) => format!("--{}=1", entry.key),
                (None, _) => format!("--{}", entry.key),
            };
            let _ = write!(text, " {}", quoted(&word));
        }
    }
    text.push('\n');
    text
}

fn quoted(word: &str) -> String {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The tables of the options of the program and of a job, in Markdown.
#[cfg(test)]
pub(super) fn tables() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut text = "### Options of the program\n\n| option | | effect |\n|---|---|---|\n".to_owned();
    for option in COMMAND_OPTIONS {
        let (fate, words) = match option.what {
            What::Does(_, words) => ("supported", words.to_owned()),
            What::Accepted(because) => ("ignored", because.to_owned()),
            What::Refused(because, nearest) => ("rejected", format!("{because}; alternative: {nearest}")),
        };
        let _ = writeln!(text, "| `--{}` | {fate} | {} |", option.name, cell(&words));
    }
    text.push_str("\n### Options of a job\n\n| option | | effect |\n|---|---|---|\n");
    for option in OPTIONS {
        let names: Vec<String> =
            [option.name].iter().chain(option.aliases).map(|name| format!("`{name}`")).collect();
        let (fate, words) = fate(option);
        let _ = writeln!(text, "| {} | {fate} | {} |", names.join(", "), cell(&words));
    }
    text
}
