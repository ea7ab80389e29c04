//! `strata suite io500`: all phases of IO500 in its order, its score, and its result files.

mod around;
mod files;
mod ini;
mod keys;
mod options;
mod programme;
mod ranks;
mod rules;
mod run;
mod score;
mod settings;
mod state;
mod time;

use std::path::Path;

use clap::{Arg, ArgMatches};
use driver::{Error, ErrorKind};
use layer::command::{arguments, fill, table_as_markdown};
use layer::{Command, CommandKind, Console, Measures};
use units::{label_of, path_of};
use workload::help::{Example, Help};

use ini::Config;
use options::{OWN, SuiteSpec};
use run::Suite;
use settings::Settings;
use state::State;

use crate::made::first_taken;

const EXAMPLES: &[Example] = &[
    Example::new("all phases, shortened: the score is INVALID", "suite io500 /mnt/test --stonewall 5"),
    Example::new("a run by the rules, with a configuration file", "suite io500 --ini config.ini --ranks 16"),
    Example::new("resume an interrupted run", "suite io500 --resume results/2026.11.25-10.00.00"),
];

const HELP: &[(&str, Help)] = &[
    ("", Help { options: &[], examples: EXAMPLES }),
    (
        "io500",
        Help {
            options: &["ini", "ranks", "stonewall", "mode", "results", "resume", "json"],
            examples: EXAMPLES,
        },
    ),
];

/// The command.
pub(crate) fn command() -> Command {
    Command {
        name: "suite",
        kind: CommandKind::Suite,
        help: HELP,
        define,
        measures: Measures::ByRanks,
        run,
        document,
    }
}

fn define() -> clap::Command {
    let io500 = clap::Command::new("io500")
        .about("IO500: bandwidth and metadata, easy and hard, with its score, its validity and its result files")
        .arg(
            Arg::new("directory").value_name("DIR").help(
                "Directory to measure, replaces datadir of the configuration; the data are in a new directory below it",
            ),
        )
        .args(arguments(OWN));
    clap::Command::new("suite")
        .about("Run a known benchmark by its rules and compute its score")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(io500)
}

fn document(text: &mut String) {
    table_as_markdown("Options of `strata suite io500`", OWN, text);
}

/// The text of a file that a word of the command line names.
fn read(path: &str) -> Result<String, Error> {
    std::fs::read_to_string(path_of(path))
        .map_err(|error| Error::usage("io500", format!("cannot read the file: {error}")).with("file", path))
}

/// Carries the command out.
///
/// # Errors
/// Bad usage, data of others, and what could not be measured.
fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let Some(("io500", matches)) = matches.subcommand() else {
        return Err(Error::usage("suite", "no suite named").remedy("name io500"));
    };
    let mut spec = SuiteSpec::default();
    fill(OWN, matches, &mut spec)?;
    spec.directory = matches.get_one::<String>("directory").cloned();
    if let Some(results) = &spec.resume {
        refuse_beside_resume(&spec)?;
        ranks::refuse_resume(console)?;
        return resume(&path_of(results), console);
    }
    let text = spec.ini.as_deref().map(read).transpose()?;
    let config = Config::parse(text.as_deref().unwrap_or_default()).map_err(|error| match &spec.ini {
        Some(file) => error.with("file", file),
        None => error,
    })?;
    if spec.list || spec.list_mandatory {
        let head = "# Supported and current values of the ini file:\n";
        let list = config.text(true, |section| spec.list || !section.is_extended);
        return console.print(&format!("{head}{list}")).map(|()| 0);
    }
    if spec.config_hash {
        return console.print(&format!("config-hash     = {:X}\n", config.hash())).map(|()| 0);
    }
    if let Some(result) = &spec.verify {
        let (said, is_well) = files::verify(&config, &read(result)?)?;
        return console.print(&said).map(|()| u8::from(!is_well));
    }
    if spec.directory.is_none() && spec.ini.is_none() {
        return Err(Error::usage("io500", "no directory to measure")
            .remedy("name one, or use --ini with a configuration that has datadir"));
    }
    let settings = Settings::of(&spec, config, console.ranks().count)?;
    spec.timestamp = Some(settings.timestamp.clone());
    let suite = Suite::new(settings, spec, console)?;
    let is_dry = suite.state.spec.dry_run;
    if !is_dry {
        refuse_taken(&suite.settings)?;
    }
    prepare_results(&suite.settings, text.as_deref())?;
    if is_dry {
        return suite.dry_run().map(|()| 0);
    }
    suite.run(None)
}

/// A run that goes on takes its options from its state.
fn refuse_beside_resume(spec: &SuiteSpec) -> Result<(), Error> {
    let others = [
        (spec.directory.is_some(), "a directory"),
        (spec.ini.is_some(), "--ini"),
        (spec.ranks.is_some(), "--ranks"),
        (spec.stonewall_s.is_some(), "--stonewall"),
        (spec.mode.is_some(), "--mode"),
        (spec.results.is_some(), "--results"),
        (spec.timestamp.is_some(), "--timestamp"),
        (spec.verbosity.is_some(), "--verbosity"),
        (spec.dry_run, "--dry-run"),
        (spec.list || spec.list_mandatory, "--list"),
        (spec.config_hash, "--config-hash"),
        (spec.verify.is_some(), "--verify"),
    ];
    match others.iter().find(|(is_said, _)| *is_said) {
        Some((_, other)) => Err(Error::usage("resume", format!("{other} conflicts with --resume"))
            .remedy("omit it: a resumed run keeps its original settings")),
        None => Ok(()),
    }
}

/// Goes on with a run that was interrupted.
fn resume(results: &Path, console: &dyn Console) -> Result<u8, Error> {
    let state = State::read(results)?;
    let run = u64::from_str_radix(&state.run_id, 16)
        .map_err(|_| Error::usage("resume", format!("{:?} is not the id of a run", state.run_id)))?;
    let mut settings = Settings::of(&state.spec, Config::parse(&state.config)?, 1)?;
    settings.data.clone_from(&state.suite.data_directory);
    settings.results = std::path::absolute(results).unwrap_or_else(|_| results.to_owned());
    settings.ranks = state.suite.ranks;
    Suite::resumed(settings, state, console)?.run(Some(run))
}

/// Makes the result directory, with the configuration in it.
fn prepare_results(settings: &Settings, original: Option<&str>) -> Result<(), Error> {
    let results = &settings.results;
    std::fs::create_dir_all(results).map_err(|error| {
        Error::usage("io500", format!("cannot create the result directory: {error}"))
            .with("path", results.display())
    })?;
    if State::is_in(results) {
        return Err(Error::usage("io500", "the result directory contains the state of an interrupted run")
            .with("path", results.display())
            .remedy(format!(
                "resume it with --resume {}, or use another --results",
                label_of(results.as_os_str())
            )));
    }
    if let Some(original) = original {
        files::write(results, "config-orig.ini", original)?;
    }
    files::write(results, "config.ini", &settings.config.text(false, |_| true))
}

/// Refuses a directory where others have what the phases would make.
fn refuse_taken(settings: &Settings) -> Result<(), Error> {
    let directories: Vec<String> = programme::SETS.map(|set| format!("{}/{set}", settings.data)).to_vec();
    match first_taken(&directories)? {
        None => Ok(()),
        Some(taken) => Err(Error::new(ErrorKind::Unsafe, "safety", "the directory is not empty and was not changed")
            .with("path", taken)
            .remedy("use another directory; resume an interrupted run with --resume, or remove its files with strata clean")),
    }
}
