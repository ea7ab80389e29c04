//! The command line, made from the tables of options.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::Error;
use workload::options::{OPTIONS, OptionDef};
use workload::spec::Spec;

use crate::compare::{COMPARE, CompareSpec};
use crate::dialect::{self, DIALECT, DialectSpec};
use crate::options::{OUTPUT, OutputSpec, STACK, StackSpec};

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
        .subcommand(
            with_options(
                Command::new("media").about("Measure files, block devices, character devices, or memory").arg(
                    Arg::new("targets")
                        .value_name("TARGET")
                        .num_args(1..)
                        .required(true)
                        .help("A file, a block or character device, null: or mem:; several make one range"),
                ),
                OPTIONS,
            )
            .args(arguments(OUTPUT)),
        )
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
    table.iter().map(|option| {
        let help = StyledStr::from(format!("{} [default: {}]", option.help, option.default));
        let mut argument =
            Arg::new(option.name).long(option.name).help(help).help_heading(option.group.title());
        if let Some(short) = option.short {
            argument = argument.short(short);
        }
        if option.is_switch() {
            argument.action(ArgAction::SetTrue)
        } else {
            // Values may begin with a hyphen, so that our own parser refuses `-t -1` and says what is accepted.
            argument.value_name(option.value).allow_hyphen_values(true)
        }
    })
}

/// Fills a spec from the matches of a table's options.
fn fill<T>(table: &'static [OptionDef<T>], matches: &ArgMatches, spec: &mut T) -> Result<(), Error> {
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

/// The spec of a load.
pub(crate) fn load_spec(matches: &ArgMatches) -> Result<Spec, Error> {
    let mut spec = Spec::default();
    fill(OPTIONS, matches, &mut spec)?;
    spec.targets = matches.get_many::<String>("targets").into_iter().flatten().cloned().collect();
    Ok(spec)
}

/// What comes out of a run.
pub(crate) fn output_spec(matches: &ArgMatches) -> Result<OutputSpec, Error> {
    let mut spec = OutputSpec::default();
    fill(OUTPUT, matches, &mut spec)?;
    Ok(spec)
}

/// What `strata stack` runs over.
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

/// What `strata compare` compares with.
pub(crate) fn compare_spec(matches: &ArgMatches) -> Result<CompareSpec, Error> {
    let mut spec = CompareSpec::default();
    fill(COMPARE, matches, &mut spec)?;
    Ok(spec)
}

/// A mistake that clap found, in one line.
pub(crate) fn usage_error(error: &clap::Error) -> Error {
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
        "# Options\n\nMade by `strata options` from the tables that the command line is made of. A job file takes the options of a load \
         as keys, with `_` for `-`.\n",
    );
    table_as_markdown("Options of a load (`strata media`, `strata run`)", OPTIONS, &mut text);
    table_as_markdown("Options of every command that measures", OUTPUT, &mut text);
    table_as_markdown("Options of `strata stack`", STACK, &mut text);
    table_as_markdown("Options of `strata as`, before the name of the dialect", DIALECT, &mut text);
    table_as_markdown("Options of `strata compare`", COMPARE, &mut text);
    text
}

fn table_as_markdown<T>(title: &str, table: &[OptionDef<T>], text: &mut String) {
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
