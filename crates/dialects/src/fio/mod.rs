//! The dialect of fio: its command line and job files, and its output.

mod arithmetic;
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
use model::Model;

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
    let object = serde_json::json!({ "fio version": VERSION, "jobs": [], "error": error.to_string() });
    vec![Piece::stdout(format!("{object:#}\n"))]
}

/// Whether fio has an option of jobs with this name.
#[cfg(test)]
pub(crate) fn has_option(name: &str) -> bool {
    options::find(name).is_some()
}

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
    let sections = sections(&line, world)?;
    let mut settled = settle::settle(&sections, world)?;
    if settled.jobs.is_empty() && line.parse_only {
        return show(String::new());
    }
    if settled.jobs.is_empty() {
        return Err(Fault::new("no job: give --name=... with its options, or a job file; --help tells more"));
    }
    for job in &mut settled.jobs {
        job.traces = line.debug.contains(&model::Topic::Io);
        job.state_directory.clone_from(&line.aux_path);
    }
    let mut all = jobs::assemble(&settled.jobs, world)?;
    if line.readonly {
        readonly::hold(&mut all, world)?;
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
    let output = line.output();
    let progress =
        if output.quiet && line.progress == Progress::Auto { Progress::Never } else { line.progress };
    let model = Model {
        jobs: all.jobs,
        global_options: settled.global_options,
        output,
        host_name: world.host_name(),
        process_id: world.process_id(),
        warnings: all.warnings.clone(),
    };
    let render = Box::new(show::Show::new(model));
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs: all.specs,
        render,
        warnings: all.warnings,
        token_file: None,
        secrets: settled.secrets,
        progress,
    })))
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
        sections.extend(of_file);
    }
    let known = |name: &String| sections.iter().any(|section| section.name.as_ref() == name);
    if let Some(name) = line.only.iter().find(|name| !known(name)) {
        return Err(Fault::of("--section", format!("there is no section [{}]", fault::shown(name))));
    }
    sections.retain(|section| {
        let chosen = line.only.iter().any(|name| *name == *section.name);
        section.is_global() || line.only.is_empty() || chosen
    });
    Ok(sections)
}
