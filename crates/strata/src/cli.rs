//! The command line, made from the tables of options.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::Error;
use workload::network::EngineSpec;
use workload::options::{self, ENGINE, OptionDef};
use workload::spec::{Layer, Spec};

use crate::admin;
use crate::compare::{COMPARE, CompareSpec};
use crate::dialect::{self, DIALECT, DialectSpec};
use crate::options::{OUTPUT, OutputSpec, STACK, StackSpec};
use crate::recipes::{self, RecipesSpec};

/// The whole command.
pub(crate) fn command() -> Command {
    Command::new("strata")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures every layer of a storage stack with one measuring loop, so that the figures can be compared")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(120)
        .subcommand(
            with_options(
                Command::new("stack").about(
                    "Measure every layer of this machine and say which one holds the stack back (about a minute; --quick: 10 s)",
                ),
                STACK,
            )
            .args(arguments(OUTPUT)),
        )
        .subcommands(Layer::all().into_iter().map(measure))
        .subcommand(admin::pool())
        .subcommand(admin::container())
        .subcommand(crate::clean::command())
        .subcommand(with_options(
            Command::new("engine").about("Serve endpoints for network loads, and drive loads for others, until told to end"),
            ENGINE,
        ))
        .subcommand(
            Command::new("run")
                .about("Run the phases of a job file (TOML)")
                .arg(Arg::new("job").value_name("JOB.toml").required(true).help("The job file; - for standard input"))
                .args(arguments(OUTPUT)),
        )
        .subcommand(compare())
        .subcommand(report())
        .subcommand(speak())
        .subcommand(Command::new("list").about("List layers, engines and what they can do"))
        .subcommand(
            Command::new("schema").about("Print the JSON schema of the record, or of a comparison").arg(
                Arg::new("of")
                    .value_parser(["record", "comparison"])
                    .default_value("record")
                    .help("What the schema describes"),
            ),
        )
        .subcommand(Command::new("options").about("Print the tables of options as Markdown").hide(true))
        .subcommand(Command::new("man").about("Print the man page"))
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
        .args(arguments_of(options::of(layer)))
        .args(arguments(OUTPUT));
    match layer.name {
        "network" => command.subcommand(scan()),
        "object" => command.subcommands([object_recipes(), crate::objects::audit::command(layer.targets)]),
        _ => command,
    }
}

fn object_recipes() -> Command {
    Command::new("recipes")
        .about("Measure what users are told about object stores on this one: each with and without, and which matter here")
        .arg(Arg::new("targets").value_name("TARGET").num_args(0..=1).help(object::LAYER.targets))
        .args(arguments(recipes::OWN))
        .args(arguments_of(recipes::of_loads()))
        .args(arguments(OUTPUT))
}

fn scan() -> Command {
    let word = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("scan")
        .about("Show network interfaces, their speeds, NUMA nodes and providers, and which one a load would go through")
        .arg(Arg::new("to").value_name("TARGET").num_args(0..).help("Where the load would go: tcp://HOST:PORT, or a host"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON"))
        .arg(
            Arg::new("refresh")
                .long("refresh")
                .action(ArgAction::SetTrue)
                .help("Scan again, whatever was kept of the last scan"),
        )
        .arg(word("provider", "NAME", "For this provider: tcp, ofi+tcp, ofi+verbs, ... [default: tcp]"))
        .arg(word("interface", "NAME", "With this interface asked for [default: $OFI_INTERFACE]"))
        .arg(word("domain", "NAME", "With this domain asked for [default: $OFI_DOMAIN]"))
}

fn report() -> Command {
    Command::new("report")
        .about("Render records again: as tables, CSV, or charts")
        .arg(
            Arg::new("records")
                .value_name("RECORD")
                .num_args(1..)
                .required(true)
                .help("Records as JSON; - for standard input. Several share their charts"),
        )
        .arg(Arg::new("csv").long("csv").action(ArgAction::SetTrue).help("As CSV instead of a table"))
        .arg(
            Arg::new("by-pair")
                .long("by-pair")
                .action(ArgAction::SetTrue)
                .requires("csv")
                .help("With --csv: one row a master and endpoint of network phases, instead of one a class"),
        )
        .arg(place("svg", "DIR", "Write every chart as SVG into this directory"))
        .arg(place("png", "DIR", "Write every chart as PNG into this directory"))
        .arg(place("html", "FILE", "Write one page with figures, doubts and charts; - for standard output"))
}

fn speak() -> Command {
    Command::new("as")
        .about("Speak the command line and the output of another tool")
        .args(dialect::arguments())
        .arg(
            Arg::new("words")
                .value_name("NAME [WORDS]")
                .num_args(1..)
                .required(true)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .help("fio, spdk_nvme_perf, elbencho or elbencho-chart, and all that follows its name"),
        )
}

fn compare() -> Command {
    let side = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).required(true).help(help)
    };
    let command = Command::new("compare")
        .about("Compare two records, or two sets of repeats: differences, how sure they are, and a verdict")
        .arg(side(
            "a",
            "A",
            "Record, directory of records, or several with commas between them; with --repeat a job file (.toml) or a \
             quoted command line such as 'media FILE --op randread --time 2s' or 'as fio job.fio'",
        ))
        .arg(side("b", "B", "The same, compared with A"));
    with_options(command, COMPARE).mut_arg("fail-if", |argument| argument.action(ArgAction::Append))
}

fn with_options<T>(command: Command, table: &'static [OptionDef<T>]) -> Command {
    command.args(arguments(table))
}

/// One argument an option of the table.
pub(crate) fn arguments<T>(table: &'static [OptionDef<T>]) -> impl Iterator<Item = Arg> {
    arguments_of(table.iter())
}

fn arguments_of<T: 'static>(
    options: impl Iterator<Item = &'static OptionDef<T>>,
) -> impl Iterator<Item = Arg> {
    options.map(|option| {
        let help = StyledStr::from(format!("{} [default: {}]", option.help, option.default));
        let mut argument =
            Arg::new(option.name).long(option.name).help(help).help_heading(option.group.title());
        if let Some(short) = option.short {
            argument = argument.short(short);
        }
        if option.is_switch() {
            argument.action(ArgAction::SetTrue)
        } else if options::is_repeatable(option.name) {
            argument.value_name(option.value).allow_hyphen_values(true).action(ArgAction::Append)
        } else {
            // Values may begin with a hyphen, so that our own parser refuses `-t -1` and says what is accepted.
            argument.value_name(option.value).allow_hyphen_values(true)
        }
    })
}

/// Fills a spec from the matches of a table's options.
fn fill<T: 'static>(
    table: impl IntoIterator<Item = &'static OptionDef<T>>,
    matches: &ArgMatches,
    spec: &mut T,
) -> Result<(), Error> {
    for option in table {
        let texts: Vec<&str> = if option.is_switch() {
            matches.get_flag(option.name).then_some("true").into_iter().collect()
        } else {
            matches.get_many::<String>(option.name).into_iter().flatten().map(String::as_str).collect()
        };
        for text in texts {
            (option.apply)(spec, text)
                .map_err(|error| Error::usage("options", format!("--{}: {error}", option.name)))?;
        }
    }
    Ok(())
}

/// The spec of a load on a layer.
pub(crate) fn load_spec(layer: Layer, matches: &ArgMatches) -> Result<Spec, Error> {
    let mut spec = Spec { layer, ..Spec::default() };
    fill(options::of(layer), matches, &mut spec)?;
    spec.targets = matches.get_many::<String>("targets").into_iter().flatten().cloned().collect();
    Ok(spec)
}

/// Options of the recipes' load, and of the store that they are measured on.
pub(crate) fn recipes_spec(matches: &ArgMatches) -> Result<(RecipesSpec, Spec), Error> {
    let mut own = RecipesSpec::default();
    fill(recipes::OWN, matches, &mut own)?;
    let mut spec = Spec { layer: object::LAYER, ..Spec::default() };
    fill(recipes::of_loads(), matches, &mut spec)?;
    spec.targets = matches.get_many::<String>("targets").into_iter().flatten().cloned().collect();
    Ok((own, spec))
}

/// Options of a server process.
pub(crate) fn engine_spec(matches: &ArgMatches) -> Result<EngineSpec, Error> {
    let mut spec = EngineSpec::default();
    fill(ENGINE, matches, &mut spec)?;
    Ok(spec)
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

/// Titles of the tables of options of loads.
const LOADS: [(&str, Layer); 3] = [
    ("Options of a load (`strata media`, `strata run`)", Layer::MEDIA),
    ("Options of a load on the network (`strata net`, `layer = \"network\"` in a job file)", Layer::NETWORK),
    (
        "Options of a load on an object store (`strata object`, `layer = \"object\"` in a job file)",
        object::LAYER,
    ),
];

/// The tables of options as Markdown, for docs/options.md.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Options\n\nMade by `strata options` from the tables that the command line is made of. A job file takes the options of a load \
         as keys, with `_` for `-`.\n",
    );
    for (title, layer) in LOADS {
        let own = layer.options.iter().copied().flatten();
        table_as_markdown(title, own, &mut text);
        if !layer.common.is_empty() {
            let common: Vec<String> = layer.common.iter().map(|name| format!("`--{name}`")).collect();
            text += &format!("\nAs for media: {}.\n", common.join(", "));
        }
    }
    table_as_markdown("Options of `strata object recipes`", recipes::OWN, &mut text);
    let shared: Vec<String> = recipes::of_loads().map(|option| format!("`--{}`", option.name)).collect();
    text += &format!("\nAs for a load on an object store: {}.\n", shared.join(", "));
    table_as_markdown("Options of `strata engine`", ENGINE, &mut text);
    table_as_markdown("Options of every command that measures", OUTPUT, &mut text);
    table_as_markdown("Options of `strata stack`", STACK, &mut text);
    table_as_markdown("Options of `strata as`, before the name of the dialect", DIALECT, &mut text);
    table_as_markdown("Options of `strata compare`", COMPARE, &mut text);
    text
}

fn table_as_markdown<T: 'static>(
    title: &str,
    table: impl IntoIterator<Item = &'static OptionDef<T>>,
    text: &mut String,
) {
    use std::fmt::Write;
    let escape = |cell: &str| cell.replace('|', "\\|");
    // Writing to a String cannot fail.
    let _ = write!(text, "\n## {title}\n\n| option | value | default | meaning |\n|---|---|---|---|\n");
    for option in table {
        let short = option.short.map_or_else(String::new, |short| format!("`-{short}`, "));
        let value = if option.is_switch() { String::new() } else { format!("`{}`", escape(option.value)) };
        let _ = writeln!(
            text,
            "| {short}`--{}` | {value} | {} | {} |",
            option.name,
            escape(option.default),
            escape(option.help)
        );
    }
}
