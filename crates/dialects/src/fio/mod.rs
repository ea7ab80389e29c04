//! The dialect of fio: its command line and job files, and its output.

mod arithmetic;
mod clients;
mod command;
mod command_options;
mod draft;
mod engines;
mod fault;
mod help;
mod jobfile;
mod jobs;
mod model;
mod options;
mod readonly;
mod settle;
mod show;
mod specs;
mod state;
#[cfg(test)]
mod tests;
mod value;
mod words;

use driver::Error;

use crate::{Piece, Progress, Request, Run, World};
use command::{Line, Wanted};
use fault::Fault;
use jobfile::Section;
use model::{Job, Model};
use settle::Settled;

/// Version that scripts which ask for fio's get: the version whose options and output are spoken.
pub(crate) const VERSION: &str = "fio-3.42";

/// Reads the words after the name.
///
/// # Errors
/// Bad usage: the file, line, section and option, what was wrong, and what would be accepted.
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    request(words, world).map_err(Error::from)
}

/// Output that a program which asked for JSON on standard output reads instead of results when the words are refused.
#[must_use]
pub fn refused(words: &[String], error: &Error) -> Vec<Piece> {
    let value = |name: &str| {
        let place =
            words.iter().position(|word| word.trim_start_matches('-').split('=').next() == Some(name))?;
        words[place]
            .split_once('=')
            .map(|(_, value)| value)
            .or_else(|| words.get(place + 1).map(String::as_str))
    };
    let wants_json = value("output-format").is_some_and(|formats| formats.contains("json"));
    if !wants_json || value("output").is_some() {
        return Vec::new();
    }
    let results = if value("client").is_some() { "client_stats" } else { "jobs" };
    let object = serde_json::json!({ "fio version": VERSION, results: [], "error": error.to_string() });
    vec![Piece::stdout(format!("{object:#}\n"))]
}

/// Whether fio has an option of jobs with this name.
#[cfg(test)]
pub(crate) fn has_option(name: &str) -> bool {
    options::find(name).is_some()
}

/// Warning where options of the command line come before several job files.
const OF_FIRST_FILE: &str =
    "options before the job files apply only to the jobs of the first file, as in fio";

fn request(words: &[String], world: &dyn World) -> Result<Request, Fault> {
    let line = command::read(words)?;
    let show = |text: String| Ok(Request::Show(vec![Piece::stdout(text)]));
    match &line.wanted {
        Wanted::Help => return show(help::usage()),
        Wanted::Version => return show(format!("{VERSION}\n")),
        Wanted::OptionHelp(name) => return help::options(name.as_deref()).and_then(show),
        Wanted::EngineHelp(name) => return help::engines(name.as_deref(), &world.engines()).and_then(show),
        Wanted::Log(path) => {
            let fault = |error: std::io::Error| {
                Fault::of("--inflate-log", format!("{}: {error}", fault::shown(path)))
            };
            let packed = world.read_bytes(path).map_err(fault)?;
            return Ok(Request::Show(vec![Piece {
                place: crate::Destination::Stdout,
                content: show::unpacked(&packed).map_err(fault)?,
            }]));
        }
        Wanted::Run => {}
    }
    if !line.clients.is_empty() {
        return of_clients(&line, world);
    }
    let sections = sections(&line, world)?;
    let mut settled = settle::settle(&sections, world)?;
    if settled.jobs.is_empty() && line.parse_only {
        return show(String::new());
    }
    if settled.jobs.is_empty() {
        return Err(Fault::new("no job: give --name=... with its options, or a job file; see --help"));
    }
    prepare(&mut settled.jobs, &line);
    let mut all = jobs::assemble(&settled.jobs, world)?;
    if line.readonly {
        readonly::hold(&mut all, world)?;
    }
    if line.files.len() > 1 && line.sections.iter().any(|section| !section.entries.is_empty()) {
        all.warnings.push(OF_FIRST_FILE.to_owned());
    }
    if let Some(warning) = all.warnings.first().filter(|_| line.warnings_fatal) {
        return Err(Fault::of("--warnings-fatal", warning.clone()));
    }
    if line.show_command {
        return show(help::command_line(&sections));
    }
    if line.parse_only {
        return Ok(Request::Show(Vec::new()));
    }
    let warnings = all.warnings;
    let model = model_of(all.jobs, settled.global_options, &line, world, warnings.clone());
    let progress = progress(&line);
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs: all.specs,
        render: Box::new(show::Show::new(model)),
        warnings,
        token_file: None,
        secrets: settled.secrets,
        progress,
    })))
}

/// A run that the hosts of `--client` carry out.
fn of_clients(line: &Line, world: &dyn World) -> Result<Request, Fault> {
    let clients::Together { specs, model, clients, secrets } = clients::assemble(line, world)?;
    let warnings = model.warnings.clone();
    if let Some(warning) = warnings.first().filter(|_| line.warnings_fatal) {
        return Err(Fault::of("--warnings-fatal", warning.clone()));
    }
    if line.parse_only {
        return Ok(Request::Show(Vec::new()));
    }
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs,
        render: Box::new(show::Show::of_clients(model, clients)),
        warnings,
        token_file: None,
        secrets,
        progress: progress(line),
    })))
}

/// Gives jobs what the command line says of all of them.
fn prepare(jobs: &mut [Settled], line: &Line) {
    for job in jobs {
        job.traces = line.debug.contains(&model::Topic::Io);
        job.state_directory.clone_from(&line.aux_path);
    }
}

fn model_of(
    jobs: Vec<Job>,
    global_options: Vec<(String, String)>,
    line: &Line,
    world: &dyn World,
    warnings: Vec<String>,
) -> Model {
    Model {
        jobs,
        global_options,
        output: line.output(),
        host_name: world.host_name(),
        process_id: world.process_id(),
        warnings,
    }
}

fn progress(line: &Line) -> Progress {
    let is_quiet = line.output().quiet && line.progress == Progress::Auto;
    if is_quiet { Progress::Never } else { line.progress }
}

/// The sections of the line and of the job files, without those that `--section` leaves out.
fn sections(line: &Line, world: &dyn World) -> Result<Vec<Section>, Fault> {
    let mut sections = line.sections.clone();
    for (number, path) in line.files.iter().enumerate() {
        let mut of_file = jobfile::read(path, world)?;
        let first = of_file.iter_mut().find(|section| !section.is_global());
        if let Some(section) = first {
            section.waits = number > 0;
        }
        if let Some(section) = of_file.first_mut() {
            section.begins_file = number > 0;
        }
        sections.extend(of_file);
    }
    let known = |name: &String| sections.iter().any(|section| section.name.as_ref() == name);
    if let Some(name) = line.only.iter().find(|name| !known(name)) {
        return Err(Fault::of("--section", format!("section [{}] does not exist", fault::shown(name))));
    }
    Ok(without_others(sections, &line.only))
}

/// The sections but for those that `--section` leaves out.
fn without_others(mut sections: Vec<Section>, only: &[String]) -> Vec<Section> {
    sections.retain(|section| {
        let chosen = only.iter().any(|name| *name == *section.name);
        section.is_global() || only.is_empty() || chosen
    });
    sections
}
