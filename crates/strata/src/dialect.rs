//! Other tools' command lines: `strata as NAME ...`, or the binary under a link of that name.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use dialects::{Dialect, Progress, Request, Serve};
use driver::{Error, ErrorKind};
use layer::command::arguments as arguments_of;
use layer::{CommandKind, ServerOptions};
use live::LiveMode;
use units::ParseError;
use workload::options::{self, Group, OptionDef, switch};
use workload::spec::Spec;

use crate::cli;
use crate::commands::{carry_out, measure, refuse_several};
use crate::console::Terminal;
use crate::hosts::launcher;
use crate::options::{OUTPUT, OutputSpec};
use crate::output::{self, emit};
use crate::tell;
use crate::world::ThisMachine;

/// Options of strata itself for a run under a link, where its words all belong to the dialect.
const OPTIONS_VARIABLE: &str = "STRATA_OPTIONS";

/// Options of `strata as`, before the name of the dialect.
#[derive(Clone, Debug, Default)]
pub(crate) struct DialectSpec {
    destroy_data: bool,
    seed: Option<u64>,
    token_file: Option<PathBuf>,
}

/// Options of `strata as` besides those of the output.
pub(crate) static DIALECT: &[OptionDef<DialectSpec>] = &[
    OptionDef {
        name: "destroy-data",
        short: None,
        value: "",
        default: "off",
        help: "Allow writes to a device or file with data that strata did not write",
        group: Group::Run,
        apply: |spec, text| {
            spec.destroy_data = switch("destroy-data", text)?;
            Ok(())
        },
    },
    OptionDef {
        name: "seed",
        short: None,
        value: "N",
        default: "as in the dialect; otherwise random, and stored in the record",
        help: "Random seed: the same seed repeats the same operations and data",
        group: Group::Run,
        apply: |spec, text| {
            spec.seed = Some(units::parse_u64_in("seed", text, 0..=u64::MAX)?);
            Ok(())
        },
    },
    OptionDef {
        name: "token-file",
        short: None,
        value: "FILE",
        default: "as in the dialect; otherwise none",
        help: "File with the secret; required by engines that are not on loopback, for tools without an option for it",
        group: Group::Run,
        apply: |spec, text| {
            spec.token_file = Some(PathBuf::from(text));
            Ok(())
        },
    },
];

/// The dialect whose name the binary was called by.
pub(crate) fn of_link(words: &[String]) -> Option<&'static Dialect> {
    let name = Path::new(words.first()?).file_name()?.to_str()?;
    dialects::find(name)
}

/// Runs under a link: options of strata's own come from the environment.
pub(crate) fn run_link(words: &[String], dialect: &'static Dialect) -> Result<u8, Error> {
    let text = std::env::var(OPTIONS_VARIABLE).unwrap_or_default();
    let refuse = |message: String| Error::usage("options", message).with("variable", OPTIONS_VARIABLE);
    let own = shlex::split(&text).ok_or_else(|| refuse(format!("unclosed quote in {text:?}")))?;
    let matches = Command::new("strata as")
        .no_binary_name(true)
        .disable_help_flag(true)
        .args(arguments())
        .try_get_matches_from(own)
        .map_err(|error| refuse(cli::usage_error(words, &error).to_string()))?;
    speak(words, dialect, &words[1..], &matches)
}

/// Runs `strata as [OPTIONS] NAME WORDS...`.
pub(crate) fn run(words: &[String], matches: &ArgMatches) -> Result<u8, Error> {
    let (dialect, rest) = named(matches)?;
    speak(words, dialect, &rest, matches)
}

/// The phases that `strata as [OPTIONS] NAME WORDS...` would run, without the dialect's output; none where the words only
/// show something. Warnings go to standard error.
pub(crate) fn specs(matches: &ArgMatches) -> Result<Option<Vec<Spec>>, Error> {
    let (dialect, rest) = named(matches)?;
    let own = cli::dialect_spec(matches)?;
    Ok(match ask(dialect, &rest, &own, false)? {
        Request::Show(_) | Request::Engine(_) | Request::Tell(_) | Request::Command(_) => None,
        Request::Run(run) => Some(run.specs),
    })
}

/// The dialect that the words begin with, and the rest of them.
fn named(matches: &ArgMatches) -> Result<(&'static Dialect, Vec<String>), Error> {
    let own: Vec<String> = matches.get_many::<String>("words").into_iter().flatten().cloned().collect();
    let (name, rest) = own.split_first().ok_or_else(|| Error::usage("as", "no dialect").remedy(choices()))?;
    let dialect = dialects::find(name).ok_or_else(|| {
        let error = ParseError::new("a dialect", name, choices());
        Error::usage("as", error.to_string())
    })?;
    Ok((dialect, rest.to_vec()))
}

fn choices() -> String {
    let names: Vec<_> = dialects::DIALECTS.iter().map(|dialect| dialect.name).collect();
    format!("one of {}", names.join(", "))
}

fn speak(
    words: &[String],
    dialect: &'static Dialect,
    rest: &[String],
    matches: &ArgMatches,
) -> Result<u8, Error> {
    let mut output = cli::output_spec(matches)?;
    let own = cli::dialect_spec(matches)?;
    let run = match ask(dialect, rest, &own, true) {
        Ok(Request::Show(pieces)) => return emit(&pieces).map(|()| 0),
        Ok(Request::Run(run)) => *run,
        Ok(Request::Engine(_)) if launcher::ranks() > 1 => {
            return launcher::refuse_several("a server").map(|()| 0);
        }
        Ok(Request::Engine(serve)) => return run_server(words, serve, dialect),
        Ok(Request::Tell(tell)) => return tell::tell(&tell),
        Ok(Request::Command(command)) => {
            return run_command(words, &command, output).map_err(|error| in_place(error, dialect));
        }
        Err(error) => {
            emit(&(dialect.refused)(rest, &error))?;
            return Err(error);
        }
    };
    if matches.value_source("live").is_none() {
        output.live = live_mode(run.progress);
    }
    let words = dialects::without_secrets(words, &run.secrets);
    let mut specs = run.specs;
    let ranks = share_tasks(&mut specs, run.tasks, launcher::ranks(), dialect)?;
    measure(&words, &specs, &output, Some(run.render), ranks).map_err(|error| in_place(error, dialect))
}

/// Shares the tasks of a tool of MPI out to the processes that a launcher has started: so many of them take part, with the threads that specs have
/// then; none: all of them.
fn share_tasks(
    specs: &mut [Spec],
    tasks: Option<u32>,
    size: u32,
    dialect: &Dialect,
) -> Result<Option<u32>, Error> {
    let Some(tasks) = tasks.filter(|_| size > 1) else { return Ok(None) };
    let ranks = tasks.min(size);
    if specs.iter().all(|spec| spec.host.is_some()) {
        return Ok(Some(ranks));
    }
    for spec in specs {
        if spec.threads.unwrap_or(1) != tasks || tasks % ranks != 0 {
            let message =
                format!("not all tests have {tasks} tasks, or {tasks} is not a multiple of {size} processes");
            return Err(Error::usage(dialect.name, message).remedy(
                "give all tests the same number of tasks, or start one process, which runs its tasks as threads",
            ));
        }
        spec.threads = Some(tasks / ranks);
    }
    Ok(Some(ranks))
}

/// Serves as the words of a dialect say.
fn run_server(words: &[String], serve: Serve, dialect: &Dialect) -> Result<u8, Error> {
    let Serve { options, token_file, banner } = serve;
    let asked = ServerOptions { tool: dialect.name, options: &options, token_file, banner };
    let all = layer::all().into_iter().flat_map(|layer| layer.commands());
    let mut servers = all.filter_map(|command| match command.kind {
        CommandKind::Server(run) => Some(run),
        _ => None,
    });
    let run = servers.next().ok_or_else(|| Error::usage(dialect.name, "this build has no server"))?;
    run(&asked, &Terminal::new(words, OutputSpec::default()))
}

/// Carries out a command that layers bring, as words of a dialect ask for it; `words` are those of the process.
fn run_command(words: &[String], command: &[String], output: OutputSpec) -> Result<u8, Error> {
    let all: Vec<String> = std::iter::once("strata".to_owned()).chain(command.iter().cloned()).collect();
    let matches =
        cli::command().try_get_matches_from(&all).map_err(|error| cli::usage_error(&all, &error))?;
    let Some((name, matches)) = matches.subcommand() else { return Ok(2) };
    let commands: Vec<layer::Command> = layer::all().into_iter().flat_map(|layer| layer.commands()).collect();
    refuse_several(&commands, name)?;
    carry_out(commands, name, matches, &Terminal::new(words, output))
}

/// Where `--destroy-data` is the remedy, it says where that belongs: it is no word of the dialect. Services that do not allow it name their own.
fn in_place(error: Error, dialect: &Dialect) -> Error {
    let text = error.to_string();
    let is_of_service = text.contains("--allow-destroy");
    if error.kind() == ErrorKind::Unsafe && text.contains("--destroy-data") && !is_of_service {
        let name = dialect.name;
        return error.remedy(format!(
            "strata as --destroy-data {name} ... overwrites it (for a link: {OPTIONS_VARIABLE}=--destroy-data)"
        ));
    }
    error.reworded(|text| dialects::in_words_of(dialect.name, text))
}

/// Request that the words ask for, with strata's own options in it; its warnings are told, unless what is `shown` carries them.
fn ask(dialect: &Dialect, words: &[String], own: &DialectSpec, shown: bool) -> Result<Request, Error> {
    let mut request = (dialect.parse)(words, &ThisMachine::default())?;
    let secret = |known: &mut Option<PathBuf>| {
        if known.is_none() {
            known.clone_from(&own.token_file);
        }
    };
    match &mut request {
        Request::Run(run) => {
            let carried = shown && run.render.carries_warnings();
            for warning in run.warnings.iter().filter(|_| !carried) {
                output::tell(format_args!("strata: {}: warning: {warning}", dialect.name));
            }
            secret(&mut run.token_file);
            let token_file = run.token_file.as_ref().map(|path| units::label_of(path.as_os_str()));
            for spec in &mut run.specs {
                spec.destroy_data |= own.destroy_data;
                spec.seed = own.seed.or(spec.seed);
                let option = options::find_in(spec.layer, "token-file");
                if let Some((option, path)) = option.zip(token_file.as_deref()) {
                    (option.apply)(spec, path)
                        .map_err(|error| Error::usage(dialect.name, error.to_string()))?;
                }
            }
        }
        Request::Engine(serve) => secret(&mut serve.token_file),
        Request::Tell(tell) => secret(&mut tell.token_file),
        Request::Show(_) | Request::Command(_) => {}
    }
    Ok(request)
}

/// The view of strata's own that comes nearest.
fn live_mode(progress: Progress) -> LiveMode {
    match progress {
        Progress::Auto if std::io::stderr().is_terminal() => LiveMode::Line,
        Progress::Auto | Progress::Never => LiveMode::None,
        Progress::Always => LiveMode::Auto,
        Progress::Full => LiveMode::Full,
    }
}

/// The table of options for help and docs.
pub(crate) fn arguments() -> impl Iterator<Item = clap::Arg> {
    arguments_of(DIALECT).chain(arguments_of(OUTPUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_speaks_its_name() {
        let words = |name: &str| vec![name.to_owned(), "--help".to_owned()];
        assert_eq!(of_link(&words("/usr/local/bin/fio")).map(|dialect| dialect.name), Some("fio"));
        assert_eq!(of_link(&words("elbencho-chart")).map(|dialect| dialect.name), Some("elbencho-chart"));
        assert!(of_link(&words("/usr/bin/strata")).is_none());
        assert!(of_link(&[]).is_none());
    }
}
