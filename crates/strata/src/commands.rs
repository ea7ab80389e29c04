//! The subcommands.

use std::collections::HashSet;

use clap::ArgMatches;
use dialects::Render;
use driver::{Capabilities, Error};
use layer::{CommandKind, DriverEntry, Measures};
use report::record::Record;
use units::label_of;
use workload::spec::{Layer, Spec};

use crate::console::Terminal;
use crate::hosts::{Carriers, launcher};
use crate::options::OutputSpec;
use crate::output::{print, tell};
use crate::session::{self, Session};
use crate::world::read_whole;
use crate::{charts, clean, cli, compare, dialect, help, history, saturate, service, stack};

/// Longest job file or record that is read.
pub(crate) const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Runs the command that the words ask for.
pub(crate) fn dispatch(words: &[String]) -> Result<u8, Error> {
    if let Some(dialect) = dialect::of_link(words) {
        return dialect::run_link(words, dialect);
    }
    let is_short = words.iter().any(|word| word == "-h");
    let matches = match help::with_help(cli::command(), is_short).try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if !error.use_stderr() => {
            print(&error.to_string())?;
            return Ok(0);
        }
        // Called with nothing at all: the help is what is wanted.
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            tell(error.to_string().trim_end());
            return Ok(2);
        }
        Err(error) => return Err(cli::usage_error(words, &error)),
    };
    let code = match matches.subcommand() {
        Some(("stack", matches)) => {
            launcher::refuse_several("stack")?;
            stack::run(words, &cli::stack_spec(matches)?, &cli::output_spec(matches)?)?
        }
        Some(("clean", matches)) => clean::run(matches)?,
        Some(("as", matches)) => dialect::run(words, matches)?,
        Some(("run", matches)) => run_job(words, matches)?,
        Some(("compare", matches)) => compare::run(matches)?,
        Some(("history", matches)) => history::run(matches)?,
        Some(("report", matches)) => charts::report(matches)?,
        Some(("service", matches)) => service::run(matches)?,
        Some(("list", _)) => list()?,
        Some(("schema", matches)) => schema(matches)?,
        Some(("options", _)) => show(&cli::markdown())?,
        Some(("man", matches)) => man(matches)?,
        Some(("version", matches)) => show(&help::version(matches.get_flag("json")))?,
        Some(("completions", matches)) => completions(matches)?,
        Some((command, matches)) => match (Layer::of_command(command), matches.subcommand()) {
            (Some(layer), None) => {
                measure(words, &[cli::load_spec(layer, matches)?], &cli::output_spec(matches)?, None, None)?
            }
            (Some(layer), Some((name, matches))) => {
                carry_out_here(layer::find(layer.name)?.commands(), name, matches, words)?
            }
            (None, _) => {
                let all = layer::all().into_iter().flat_map(|layer| layer.commands());
                carry_out_here(
                    all.filter(|own| !matches!(own.kind, CommandKind::OfLayer)),
                    command,
                    matches,
                    words,
                )?
            }
        },
        None => 2,
    };
    Ok(code)
}

/// Carries out the command of this name at this terminal, with the output that its words ask for.
fn carry_out_here(
    commands: impl IntoIterator<Item = layer::Command>,
    name: &str,
    matches: &ArgMatches,
    words: &[String],
) -> Result<u8, Error> {
    let command: Vec<layer::Command> = commands.into_iter().filter(|command| command.name == name).collect();
    let of_output = matches.subcommand().map_or(matches, |(_, below)| below);
    let measures = command.iter().any(|command| command.measures != Measures::Nothing);
    refuse_several(&command, name)?;
    let output = if measures { cli::output_spec(of_output)? } else { OutputSpec::default() };
    carry_out(command, name, matches, &Terminal::new(words, output))
}

/// Refuses the command of this name among these, where a launcher has started several processes and they do not carry it out together.
///
/// # Errors
/// Bad usage.
pub(crate) fn refuse_several(commands: &[layer::Command], name: &str) -> Result<(), Error> {
    let mut own = commands.iter().filter(|command| command.name == name);
    if own.any(|command| command.measures == Measures::Alone) {
        launcher::refuse_several(name)
    } else {
        Ok(())
    }
}

/// Carries out the command of this name among those that layers bring.
pub(crate) fn carry_out(
    commands: impl IntoIterator<Item = layer::Command>,
    name: &str,
    matches: &ArgMatches,
    terminal: &Terminal<'_>,
) -> Result<u8, Error> {
    match commands.into_iter().find(|command| command.name == name) {
        Some(command) => (command.run)(matches, terminal),
        None => Ok(2),
    }
}

fn show(text: &str) -> Result<u8, Error> {
    print(text).map(|()| 0)
}

/// Plans, runs and reports a load. Of the processes that a launcher has started, so many `ranks` take part at most.
pub(crate) fn measure(
    words: &[String],
    specs: &[Spec],
    output: &OutputSpec,
    render: Option<Box<dyn Render>>,
    ranks: Option<u32>,
) -> Result<u8, Error> {
    let seed = specs.iter().find_map(|spec| spec.seed).unwrap_or_else(session::draw_seed);
    let targets = targets_of(specs);
    let run = session::draw_run(seed);
    let (programme, carriers) = match Carriers::plan(specs, run, seed, ranks) {
        Ok(planned) => planned,
        Err(error) if error.exit_code() == 2 && render.is_none() => return Err(error),
        // Nothing wrong with what was asked for: the fault of the target belongs into the record. And a program that reads
        // the output of a dialect finds it well-formed.
        Err(error) => {
            return Session::begin(words, output, &targets, seed, false, render)?.finish(Err(error));
        }
    };
    let mut session = Session::begin_run(run, words, output, &targets, seed, programme.keep, render)?;
    let adopted = carriers.join(&mut session);
    let result = adopted.and_then(|()| saturate::run(&mut session, &programme));
    session.finish(result)
}

/// The targets of all specs that are paths, each once.
pub(crate) fn targets_of(specs: &[Spec]) -> Vec<String> {
    let (mut targets, mut known) = (Vec::new(), HashSet::new());
    for spec in specs {
        let paths = layer::find(spec.layer.name).map(|layer| layer.paths(spec)).unwrap_or_default();
        for path in paths {
            let path = label_of(path.as_os_str());
            if known.insert(path.clone()) {
                targets.push(path);
            }
        }
    }
    targets
}

fn run_job(words: &[String], matches: &ArgMatches) -> Result<u8, Error> {
    let mut specs = job_specs(matches)?;
    specs.iter_mut().try_for_each(|spec| cli::add_hosts(matches, spec))?;
    measure(words, &specs, &cli::output_spec(matches)?, None, None)
}

/// The phases of the job file that the words name.
pub(crate) fn job_specs(matches: &ArgMatches) -> Result<Vec<Spec>, Error> {
    let path = matches.get_one::<String>("job").map_or("", String::as_str);
    let text = read_input("job", path)?;
    workload::job::parse(&text).map_err(|error| Error::usage("run", error.0).with("file", path))
}

fn schema(matches: &ArgMatches) -> Result<u8, Error> {
    let of = matches.get_one::<String>("of").map(String::as_str);
    let schema = match of {
        Some("comparison") => report::compare::schema(),
        Some("history") => report::history::schema(),
        Some("history-check") => report::history::check_schema(),
        _ => report::schema(),
    };
    show(&format!("{schema:#}\n"))
}

/// Reads a record, from standard input for `-`.
pub(crate) fn read_record(operation: &'static str, path: &str) -> Result<Record, Error> {
    let text = read_input(operation, path)?;
    report::from_json(&text).map_err(|message| Error::usage(operation, message).with("file", path))
}

/// Reads a file, packed by gzip or not, or standard input for `-`.
pub(crate) fn read_input(operation: &'static str, path: &str) -> Result<String, Error> {
    read_whole(path)
        .and_then(report::unpack)
        .map_err(|error| Error::usage(operation, format!("cannot read the file: {error}")).with("file", path))
}

/// Layers and their engines, from the tables of drivers.
fn list() -> Result<u8, Error> {
    let mut text =
        String::from("layer   engine     depth   direct  operations                        description\n");
    for layer in layer::all() {
        layer.drivers().iter().for_each(|driver| list_driver(layer.definition().name, driver, &mut text));
        layer.list_notes().iter().for_each(|note| text += &format!("{:26}{note}\n", ""));
    }
    text += "\ndialect         supported command lines (strata as NAME ..., or a link of that name)\n";
    for dialect in dialects::DIALECTS {
        text += &format!("{:<14}  {}\n", dialect.name, dialect.summary);
    }
    show(&text)
}

/// A driver in one line, and in others its options, and where its targets choose it, these and its operations.
fn list_driver(layer: &str, driver: &DriverEntry, text: &mut String) {
    let DriverEntry { name, target, capabilities, summary } = driver;
    let Capabilities { classes, asynchronous, depth_max, direct, options, .. } = capabilities;
    let depth = if *asynchronous { format!("1-{depth_max}") } else { "1".to_owned() };
    let direct = if *direct { "yes" } else { "-" };
    let classes = classes.join(" ");
    *text += &format!("{layer:<8}{name:<9}  {depth:<7} {direct:<6}  ");
    *text += &match target {
        None => format!("{classes:<32}  {summary}\n"),
        Some(target) => format!("{summary}\n{:26}target: {target}\n{:26}operations: {classes}\n", "", ""),
    };
    if !options.is_empty() {
        let flags: Vec<_> = options.iter().map(|option| format!("--{option}")).collect();
        *text += &format!("{:26}options: {}\n", "", flags.join(" "));
    }
}

fn man(matches: &ArgMatches) -> Result<u8, Error> {
    let pages = help::pages()?;
    if let Some(directory) = matches.get_one::<String>("dir") {
        let directory = units::path_of(directory);
        for page in &pages {
            let path = directory.join(&page.file);
            std::fs::write(&path, &page.text).map_err(|error| {
                Error::system("man", "cannot write the page", error)
                    .with("file", path.display())
                    .remedy("give an existing directory that you may write to")
            })?;
        }
        return Ok(0);
    }
    let names: Vec<&str> =
        matches.get_many::<String>("command").into_iter().flatten().map(String::as_str).collect();
    let wanted =
        format!("{}.1", std::iter::once("strata").chain(names.iter().copied()).collect::<Vec<_>>().join("-"));
    match pages.iter().find(|page| page.file == wanted) {
        Some(page) => show(&String::from_utf8_lossy(&page.text)),
        None => {
            let known: Vec<&str> = pages
                .iter()
                .filter_map(|page| page.file.strip_prefix("strata-")?.strip_suffix(".1"))
                .collect();
            Err(Error::usage("man", "no such command")
                .with("command", names.join(" "))
                .remedy(format!("give one of {}", known.join(", ").replace('-', " "))))
        }
    }
}

fn completions(matches: &ArgMatches) -> Result<u8, Error> {
    let mut script = Vec::new();
    if let Some(shell) = matches.get_one::<clap_complete::Shell>("shell") {
        let mut command = help::for_completions(cli::command());
        clap_complete::generate(*shell, &mut command, "strata", &mut script);
    }
    show(&String::from_utf8_lossy(&script))
}
