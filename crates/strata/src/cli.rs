//! The command line, made from the tables of options.

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::Error;
use layer::CommandKind;
use layer::command::{arguments, fill, fill_load, table_as_markdown};
use workload::options::{self, HOSTS, OptionDef};
use workload::spec::{Layer, Spec};

use crate::compare::{COMPARE, CompareSpec};
use crate::dialect::{self, DIALECT, DialectSpec};
use crate::options::{OUTPUT, OutputSpec, STACK, StackSpec, stack_hosts};

/// The whole command.
pub(crate) fn command() -> Command {
    Command::new("strata")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures every layer of a storage stack with the same measuring loop, so that results can be compared")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(120)
        .subcommand(
            with_options(
                Command::new("stack").about(
                    "Measure every layer of this machine and find the bottleneck (about a minute; --quick: 15 s)",
                ),
                STACK,
            )
            .args(arguments(stack_hosts()))
            .args(arguments(OUTPUT)),
        )
        .subcommands(Layer::all().into_iter().map(measure))
        .subcommands(brought(|kind| matches!(kind, CommandKind::Preset)))
        .subcommands(brought(|kind| matches!(kind, CommandKind::Suite)))
        .subcommands(brought(|kind| matches!(kind, CommandKind::Administration)))
        .subcommand(crate::clean::command())
        .subcommands(brought(|kind| matches!(kind, CommandKind::Server(_))))
        .subcommand(
            Command::new("run")
                .about("Run the phases of a job file (TOML)")
                .arg(Arg::new("job").value_name("JOB.toml").required(true).help("The job file; - for standard input"))
                .args(arguments(HOSTS))
                .args(arguments(OUTPUT)),
        )
        .subcommand(crate::service::command())
        .subcommand(compare())
        .subcommand(crate::history::command())
        .subcommand(report())
        .subcommand(speak())
        .subcommand(Command::new("list").about("List layers and engines with their capabilities"))
        .subcommand(
            Command::new("schema").about("Print the JSON schema of the record, of a comparison, or of a history").arg(
                Arg::new("of")
                    .value_parser(["record", "comparison", "history", "history-check"])
                    .default_value("record")
                    .help("What the schema describes"),
            ),
        )
        .subcommand(Command::new("options").about("Print the tables of options as Markdown").hide(true))
        .subcommand(
            Command::new("man")
                .about("Print a manual page, or write all of them")
                .arg(Arg::new("command").value_name("COMMAND").num_args(0..).help("Command of the page: media, net scan"))
                .arg(place("dir", "DIR", "Write the pages of all commands into this directory").conflicts_with("command")),
        )
        .subcommand(
            Command::new("version")
                .about("Print the version, the build, and the versions of formats")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON")),
        )
        .subcommand(
            Command::new("completions").about("Print completions for a shell").arg(
                Arg::new("shell")
                    .required(true)
                    .value_parser(clap::value_parser!(clap_complete::Shell))
                    .help("bash, elvish, fish, powershell or zsh"),
            ),
        )
}

/// An option that says where output goes.
fn place(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// The command that measures a layer, with what else there is of it.
fn measure(layer: Layer) -> Command {
    let (fewest, most) = layer.target_count;
    let command = Command::new(layer.command)
        .about(layer.about)
        .arg(
            Arg::new("targets")
                .value_name("TARGET")
                .num_args(fewest..=most)
                .required(fewest > 0)
                .help(layer.targets),
        )
        .args(arguments(options::of(layer)))
        .args(arguments(OUTPUT));
    let own = layer::find(layer.name).map(|layer| layer.commands()).unwrap_or_default();
    let below = own.iter().filter(|own| matches!(own.kind, CommandKind::OfLayer));
    command.subcommands(below.map(defined))
}

/// Commands of a kind that layers bring.
fn brought(is_meant: fn(CommandKind) -> bool) -> impl Iterator<Item = Command> {
    let all = layer::all().into_iter().flat_map(|layer| layer.commands());
    all.filter(move |command| is_meant(command.kind)).map(|command| defined(&command))
}

/// A command that a layer brings, with its arguments.
fn defined(command: &layer::Command) -> Command {
    let defined = (command.define)();
    if command.measures == layer::Measures::Nothing {
        return defined;
    }
    if defined.has_subcommands() {
        return defined.mut_subcommands(|below| below.args(arguments(OUTPUT)));
    }
    defined.args(arguments(OUTPUT))
}

fn report() -> Command {
    Command::new("report")
        .about("Render records as tables, CSV, or charts")
        .arg(
            Arg::new("records")
                .value_name("RECORD")
                .num_args(1..)
                .required(true)
                .help("Records as JSON; - for standard input. Several records share charts"),
        )
        .arg(Arg::new("csv").long("csv").action(ArgAction::SetTrue).help("As CSV instead of a table"))
        .arg(
            Arg::new("by-pair").long("by-pair").action(ArgAction::SetTrue).requires("csv").help(
                "With --csv: one row per master and endpoint of network phases, instead of one per class",
            ),
        )
        .arg(
            Arg::new("by-host")
                .long("by-host")
                .action(ArgAction::SetTrue)
                .requires("csv")
                .conflicts_with("by-pair")
                .help("With --csv: one row per phase and host for runs over several hosts"),
        )
        .arg(flag("full", "For a stack: also show latencies, CPU time and notes of every row"))
        .arg(flag("warnings", "For a stack: show the warnings of all rows, each remedy once"))
        .arg(place("svg", "DIR", "Write every chart as SVG into this directory"))
        .arg(place("png", "DIR", "Write every chart as PNG into this directory"))
        .arg(place("html", "FILE", "Write one page with results, warnings and charts; - for standard output"))
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn speak() -> Command {
    Command::new("as")
        .about("Run the command line of another tool and print its output format")
        .args(dialect::arguments())
        .arg(
            Arg::new("words")
                .value_name("NAME [WORDS]")
                .num_args(1..)
                .required(true)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .help("Name of the tool (see strata list), then its arguments"),
        )
}

fn compare() -> Command {
    let side = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).required(true).help(help)
    };
    let command = Command::new("compare")
        .about("Compare two records, or two sets of repeats: differences, confidence intervals and a verdict")
        .arg(side(
            "a",
            "A",
            "Record, directory of records, or a comma-separated list of both; with --repeat a job file (.toml) or a \
             quoted command line such as 'media FILE --op randread --time 2s' or 'as fio job.fio'",
        ))
        .arg(side("b", "B", "The same, compared with A"));
    with_options(command, COMPARE).mut_arg("fail-if", |argument| argument.action(ArgAction::Append))
}

fn with_options<T: 'static>(command: Command, table: &'static [OptionDef<T>]) -> Command {
    command.args(arguments(table))
}

/// The spec of a load on a layer.
pub(crate) fn load_spec(layer: Layer, matches: &ArgMatches) -> Result<Spec, Error> {
    let mut spec = Spec { layer, ..Spec::default() };
    fill_load(options::of(layer), matches, &mut spec)?;
    spec.targets = matches.get_many::<String>("targets").into_iter().flatten().cloned().collect();
    Ok(spec)
}

/// Adds the options of hosts that are given beside a job file.
pub(crate) fn add_hosts(matches: &ArgMatches, spec: &mut Spec) -> Result<(), Error> {
    fill(HOSTS, matches, spec)
}

/// Options of the output of a run.
pub(crate) fn output_spec(matches: &ArgMatches) -> Result<OutputSpec, Error> {
    let mut spec = OutputSpec::default();
    fill(OUTPUT, matches, &mut spec)?;
    Ok(spec)
}

/// Options of `strata stack`: its directory, device and load.
pub(crate) fn stack_spec(matches: &ArgMatches) -> Result<StackSpec, Error> {
    let mut spec = StackSpec::default();
    fill(STACK, matches, &mut spec)?;
    fill(stack_hosts(), matches, &mut spec.hosts)?;
    Ok(spec)
}

/// Options of strata's own for a dialect.
pub(crate) fn dialect_spec(matches: &ArgMatches) -> Result<DialectSpec, Error> {
    let mut spec = DialectSpec::default();
    fill(DIALECT, matches, &mut spec)?;
    Ok(spec)
}

/// Options of `strata compare`.
pub(crate) fn compare_spec(matches: &ArgMatches) -> Result<CompareSpec, Error> {
    let mut spec = CompareSpec::default();
    fill(COMPARE, matches, &mut spec)?;
    Ok(spec)
}

/// Whether a layer beside this one has the option.
fn is_of_others(layer: Layer, name: &str) -> bool {
    Layer::all().into_iter().any(|other| other != layer && options::find_in(other, name).is_some())
}

/// A mistake that clap found in the words of a command, in one line.
pub(crate) fn usage_error(words: &[String], error: &clap::Error) -> Error {
    // An option of another layer: what there is in its place.
    if let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && let Some(layer) = words.get(1).and_then(|word| Layer::of_command(word))
        && error.kind() == clap::error::ErrorKind::UnknownArgument
        && let Some(name) = flag.strip_prefix("--")
        && is_of_others(layer, name)
    {
        return Error::usage("options", format!("{flag}: {}", options::unknown(layer, name)));
    }
    let text = error.to_string();
    let line = text.lines().next().unwrap_or("bad usage").trim_start_matches("error: ").to_owned();
    let missing: Vec<_> =
        text.lines().skip(1).filter(|line| line.starts_with("  <")).map(str::trim).collect();
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    // Without a similar option clap explains how to pass the word as a value, which is not what was meant.
    let tip = tip.filter(|tip| !tip.starts_with("to pass")).map(str::to_owned);
    let line = if missing.is_empty() { line } else { format!("{line} {}", missing.join(" ")) };
    let line = line.trim_end_matches(':').replace(": <", " <");
    Error::usage("usage", line).remedy(tip.unwrap_or_else(|| "see strata --help".to_owned()))
}

/// The tables of options as Markdown, for docs/options.md.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Options\n\nMade by `strata options` from the option tables of the command line. A job file takes the options of a load \
         as keys, with `_` for `-`.\n",
    );
    for measured in layer::all() {
        let layer = measured.definition();
        let own = layer.options.iter().copied().flatten();
        table_as_markdown(&measured.options_title(), own, &mut text);
        if !layer.common.is_empty() {
            let common: Vec<String> = layer.common.iter().map(|name| format!("`--{name}`")).collect();
            text += &format!("\nSame as for {}: {}.\n", Layer::default().name, common.join(", "));
        }
    }
    let all = layer::all().into_iter().flat_map(|layer| layer.commands());
    let (servers, others): (Vec<_>, Vec<_>) =
        all.partition(|command| matches!(command.kind, CommandKind::Server(_)));
    others.iter().chain(&servers).for_each(|command| (command.document)(&mut text));
    table_as_markdown("Options of every load, and of `strata run`: hosts", HOSTS, &mut text);
    table_as_markdown("Options of `strata service`", crate::service::SERVICE, &mut text);
    table_as_markdown("Options of every command that measures", OUTPUT, &mut text);
    table_as_markdown("Options of `strata stack`", STACK, &mut text);
    let hosts: Vec<String> = stack_hosts().map(|option| format!("`--{}`", option.name)).collect();
    text += &format!("\nAs for hosts: {}.\n", hosts.join(", "));
    table_as_markdown("Options of `strata as`, before the name of the dialect", DIALECT, &mut text);
    table_as_markdown("Options of `strata compare`", COMPARE, &mut text);
    crate::history::document(&mut text);
    text
}
