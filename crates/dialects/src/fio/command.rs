//! The words of the command line.

use std::path::PathBuf;
use std::rc::Rc;

use crate::fio::clients::{ClientWords, choose_section};
use crate::fio::command_options::{Flag, What, find, names};
use crate::fio::fault::{Fault, Origin, shown};
use crate::fio::jobfile::{Entry, Section};
use crate::fio::model::{Format, Output, Topic};
use crate::fio::options::{OPTIONS, Takes};
use crate::fio::value::Value;
use crate::{Pace, Progress};
use units::nearest;

/// Action that the command line asks for: a run, or output instead of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Run,
    Help,
    Version,
    /// `--cmdhelp`, of one option or of all.
    OptionHelp(Option<String>),
    /// `--enghelp`.
    EngineHelp(Option<String>),
    /// `--inflate-log`.
    Log(String),
}

/// The command line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) wanted: Wanted,
    /// Options before the first `--name`, and the jobs of the line.
    pub(crate) sections: Vec<Section>,
    /// `--client`, in order; none: this machine carries the jobs out.
    pub(crate) clients: Vec<ClientWords>,
    /// Job files, in order, but for those right behind a client.
    pub(crate) files: Vec<String>,
    /// `--section`: the only jobs to run; all when there are none.
    pub(crate) only: Vec<String>,
    pub(crate) formats: Vec<Format>,
    pub(crate) terse_version: u8,
    pub(crate) output: Option<PathBuf>,
    pub(crate) progress: Progress,
    pub(crate) readonly: bool,
    pub(crate) parse_only: bool,
    pub(crate) show_command: bool,
    pub(crate) warnings_fatal: bool,
    pub(crate) bandwidth_log: bool,
    pub(crate) aux_path: Option<String>,
    pub(crate) idle: bool,
    pub(crate) debug: Vec<Topic>,
    pub(crate) pace: Pace,
}

impl Line {
    pub(crate) fn output(&self) -> Output {
        let quiet = self.progress == Progress::Never || !self.formats.contains(&Format::Normal);
        Output {
            formats: self.formats.clone(),
            terse_version: self.terse_version,
            path: self.output.clone(),
            bandwidth_log: self.bandwidth_log,
            idle: self.idle,
            debug: self.debug.clone(),
            pace: self.pace,
            quiet,
        }
    }
}

/// Reads the words after the name.
///
/// # Errors
/// An option of the program that is unknown or refused. Options of jobs are read later.
pub(crate) fn read(words: &[String]) -> Result<Line, Fault> {
    let mut line = Line {
        wanted: Wanted::Run,
        sections: vec![section("global")],
        clients: Vec::new(),
        files: Vec::new(),
        only: Vec::new(),
        formats: vec![Format::Normal],
        terse_version: 3,
        output: None,
        progress: Progress::Auto,
        readonly: false,
        parse_only: false,
        show_command: false,
        warnings_fatal: false,
        bandwidth_log: false,
        aux_path: None,
        idle: false,
        debug: Vec::new(),
        pace: Pace { results_by_signal: true, ..Pace::default() },
    };
    let mut words = words.iter();
    let mut is_behind_client = false;
    while let Some(word) = words.next() {
        if word == "--" {
            line.files.extend(words.by_ref().cloned());
        } else if let Some(text) = option_text(word) {
            let before = line.clients.len();
            line.option(text, &mut words)?;
            is_behind_client = line.clients.len() > before;
        } else {
            let client = line.clients.last_mut().filter(|_| is_behind_client);
            client.map_or(&mut line.files, |client| &mut client.files).push(word.clone());
        }
    }
    let mut only = line.clients.iter().flat_map(|client| &client.only).chain(&line.only);
    if only.any(|name| name.starts_with("global")) {
        return Err(Fault::of("section", "global sections are always read; give the name of a job"));
    }
    Ok(line)
}

fn section(name: &str) -> Section {
    Section { name: name.into(), entries: Vec::new(), waits: false, begins_file: false }
}

/// Text after the dashes: one or two of them; a dash alone is standard input.
fn option_text(word: &str) -> Option<&str> {
    word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|text| !text.is_empty())
}

impl Line {
    fn option<'a>(&mut self, text: &str, words: &mut impl Iterator<Item = &'a String>) -> Result<(), Fault> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (text, None),
        };
        let key = match key {
            "h" => "help",
            "v" => "version",
            key => key,
        };
        let own = find(key);
        let of_job = crate::fio::options::find(key);
        let takes = match (own, of_job) {
            (Some(own), _) => own.takes,
            (None, Some(option)) => option.takes,
            (None, None) => return Err(unknown(key)),
        };
        let value = match (value, takes) {
            (None, Takes::Bool | Takes::Value) => Some(following(key, words)?),
            (value, _) => value,
        };
        match own {
            Some(own) => match own.what {
                What::Does(flag, _) => self.own(flag, key, value.unwrap_or_default()),
                What::Accepted(_) => Ok(()),
                What::Refused(because, nearest) => Err(Fault::of(
                    &format!("--{key}"),
                    format!("is not supported: {because}; alternative: {nearest}"),
                )),
            },
            None => self.of_job(key, value),
        }
    }

    fn of_job(&mut self, key: &str, value: Option<String>) -> Result<(), Fault> {
        if key == "name" {
            let name = value.clone().unwrap_or_default();
            if name.is_empty() {
                return Err(Fault::of("name", "needs a value: name=..."));
            }
            self.sections.push(section(&name));
            if name.starts_with("global") {
                return Ok(());
            }
        }
        let Some(last) = self.sections.last_mut() else { return Ok(()) };
        let job: Option<Rc<str>> = (!last.is_global()).then(|| last.name.clone());
        last.entries.push(Entry { key: key.to_owned(), value, place: Origin::Line { job } });
        Ok(())
    }

    fn own(&mut self, flag: Flag, key: &str, value: String) -> Result<(), Fault> {
        let fault =
            |accepted: &str| Fault::of(&format!("--{key}"), format!("\"{}\": use {accepted}", shown(&value)));
        let some = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        match flag {
            Flag::Help => self.wanted = Wanted::Help,
            Flag::Version => self.wanted = Wanted::Version,
            Flag::OptionHelp => self.wanted = Wanted::OptionHelp(some(&value).filter(|name| name != "all")),
            Flag::EngineHelp => self.wanted = Wanted::EngineHelp(some(&value)),
            Flag::Output => self.output = Some(PathBuf::from(value)),
            Flag::OutputFormat => {
                self.formats = formats(&value)
                    .ok_or_else(|| fault("normal, terse, json or json+, or several separated by commas"))?;
            }
            Flag::Minimal => self.formats = vec![Format::Terse],
            Flag::TerseVersion => {
                let version = value.parse().ok().filter(|version| (3..=5).contains(version));
                self.terse_version = version.ok_or_else(|| fault("3, 4 or 5"))?;
            }
            Flag::Eta => {
                self.progress = match value.as_str() {
                    "auto" => Progress::Auto,
                    "always" => Progress::Always,
                    "never" => Progress::Never,
                    _ => return Err(fault("always, never or auto")),
                }
            }
            Flag::Section if self.clients.is_empty() => self.only.push(value),
            Flag::Section => choose_section(&mut self.clients, &value),
            Flag::Client => self.clients.push(ClientWords { address: value, ..ClientWords::default() }),
            Flag::ReadOnly => self.readonly = true,
            Flag::ParseOnly => self.parse_only = true,
            Flag::ShowCommand => self.show_command = true,
            Flag::WarningsFatal => self.warnings_fatal = true,
            Flag::EtaInterval => {
                let time = period(&value, true).filter(|&time| time >= ETA_NS_MIN);
                self.pace.draw_ns = Some(time.ok_or_else(|| fault("250 ms or more, such as 500ms or 2s"))?);
            }
            Flag::EtaNewline => {
                self.pace.line_ns = Some(period(&value, false).ok_or_else(|| fault("a time such as 10s"))?);
            }
            Flag::StatusInterval => {
                self.pace.results_ns =
                    Some(period(&value, false).ok_or_else(|| fault("a time such as 10s"))?);
            }
            Flag::IdleProf => match value.as_str() {
                "system" => self.idle = true,
                "percpu" | "calibrate" => {
                    let why = "is not supported: strata measures the idle time of all CPUs together; alternative: system";
                    return Err(Fault::of("--idle-prof", format!("{value} {why}")));
                }
                _ => return Err(fault("system")),
            },
            Flag::Debug => {
                for word in value.split(',') {
                    let topic = Topic::ALL.iter().find(|topic| topic.name() == word);
                    self.debug.push(
                        *topic.ok_or_else(|| {
                            fault("parse, job, random or io, or several separated by commas")
                        })?,
                    );
                }
            }
            Flag::InflateLog => self.wanted = Wanted::Log(value),
            Flag::AuxPath => self.aux_path = some(&value),
            Flag::BandwidthLog => self.bandwidth_log = true,
        }
        Ok(())
    }
}

/// The next word, which must not be an option: fio would take `--rw` as the value.
fn following<'a>(key: &str, words: &mut impl Iterator<Item = &'a String>) -> Result<String, Fault> {
    let next = words.next().filter(|word| !word.starts_with("--"));
    next.cloned().ok_or_else(|| {
        Fault::of(&format!("--{}", shown(key)), format!("needs a value: --{}=...", shown(key)))
    })
}

/// Least time between two drawings, as in fio, in nanoseconds.
const ETA_NS_MIN: u64 = 250_000_000;

/// A time above 0 in nanoseconds; a plain number is seconds, or milliseconds for `--eta-interval`.
fn period(text: &str, is_in_milliseconds: bool) -> Option<u64> {
    let value = Value::new(text, 1024);
    let time = if is_in_milliseconds { value.milliseconds() } else { value.seconds() };
    time.ok().filter(|&time| time > 0)
}

fn formats(text: &str) -> Option<Vec<Format>> {
    let mut formats = Vec::new();
    for word in text.split(',') {
        let format = match word.trim() {
            "normal" => Format::Normal,
            "terse" => Format::Terse,
            "json" => Format::Json,
            "json+" => Format::JsonPlus,
            _ => return None,
        };
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Some(formats)
}

/// Options of `strata as` that fio's users are told of and may put in the wrong place.
const STRATA_OPTIONS: [&str; 7] = ["destroy-data", "json", "csv", "out", "live", "live-csv", "seed"];

fn unknown(key: &str) -> Fault {
    if let Some(option) = STRATA_OPTIONS.iter().find(|option| **option == key) {
        let message = format!(
            "is an option of strata and must precede the tool's name: strata as --{option} fio ...; with a link: STRATA_OPTIONS=--{option}"
        );
        return Fault::of(&format!("--{key}"), message);
    }
    let known = OPTIONS.iter().flat_map(|option| option.aliases.iter().copied().chain([option.name]));
    let message = match nearest(key, known.chain(names())) {
        Some(name) => format!("unknown option; the closest match is --{name}"),
        None => "unknown option; --help and --cmdhelp list all options".to_owned(),
    };
    Fault::of(&format!("--{}", shown(key)), message)
}
