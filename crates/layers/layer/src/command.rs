//! Commands that belong to one layer, and the console that they run at.

use std::any::Any;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ArgMatches};
use driver::Error;
use units::ParseError;
use workload::help::Help;
use workload::options::{self, OptionDef};
use workload::spec::Spec;

use crate::list::Runs;
use crate::measured::{Phase, RunContext};
use crate::stage::Tell;

/// A command that a layer brings besides the one that measures it.
pub struct Command {
    /// Name.
    pub name: &'static str,
    /// Where it stands among the other commands.
    pub kind: CommandKind,
    /// Short help of it (under an empty name), and of the commands below it by their names.
    pub help: &'static [(&'static str, Help)],
    /// Its arguments, for the parser and for help.
    pub define: fn() -> clap::Command,
    /// How it measures, if it does.
    pub measures: Measures,
    /// Carries it out; the exit code.
    pub run: Run,
    /// Writes the tables of its options as Markdown.
    pub document: fn(&mut String),
}

/// How a command measures. One that does has the options of the output of a run too, or each of the commands below it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    /// It does not: each of several processes that a launcher has started carries it out by itself.
    Nothing,
    /// By [`Console::bench`], in one process: it is refused where a launcher has started several.
    Alone,
    /// Also by [`Console::bench_of_ranks`]: the processes that a launcher has started carry it out together.
    ByRanks,
}

/// Carries a command out; the exit code.
pub type Run = fn(&ArgMatches, &dyn Console) -> Result<u8, Error>;

/// Kinds of commands, in the order in which help and documents have them.
#[derive(Clone, Copy, Debug)]
pub enum CommandKind {
    /// Stands below the command that measures the layer.
    OfLayer,
    /// Answers one common question by a programme of loads of its own.
    Preset,
    /// Measures by a programme of its own, with a command below it for each.
    Suite,
    /// Manages what the layer's targets hold.
    Administration,
    /// Serves others until it is told to end. The function does so for another tool.
    Server(fn(&ServerOptions<'_>, &dyn Console) -> Result<u8, Error>),
}

/// Options of a server in the words of another tool.
pub struct ServerOptions<'a> {
    /// Name of the tool, for refusals.
    pub tool: &'static str,
    /// Options by name, with their values as typed.
    pub options: &'a [(&'static str, String)],
    /// File with the secret that it shares with its clients.
    pub token_file: Option<PathBuf>,
    /// Its first line.
    pub banner: String,
}

/// End of a server process: whoever may end it sends the reason.
pub struct Ending {
    /// Sender of reasons.
    pub sender: Sender<String>,
    /// Receiver of the first.
    pub receiver: Receiver<String>,
}

/// Output, signals and words of the process that a command runs in.
pub trait Console {
    /// Words that the process was called with.
    fn words(&self) -> &[String];

    /// Prints text to standard output.
    ///
    /// # Errors
    /// When it does not take it. A reader that has gone away is no error.
    fn print(&self, text: &str) -> Result<(), Error>;

    /// Tells the user one line on standard error.
    fn tell(&self) -> Tell;

    /// Width of a page on standard output, in columns.
    fn width(&self) -> usize;

    /// Has signals set the flag until the guard is dropped; a second signal ends the process at once.
    ///
    /// # Errors
    /// When signals cannot be handled.
    fn interrupts(&self, flag: &Arc<AtomicBool>) -> Result<Box<dyn Any>, Error>;

    /// Begins to listen for signals that end a server process, and for the end of standard input where that ends it too. A second signal ends the
    /// process at once.
    ///
    /// # Errors
    /// When signals cannot be handled.
    fn ending(&self, until_stdin_closes: bool) -> Result<Ending, Error>;

    /// Surroundings of runs in this process.
    ///
    /// With `keep` what they make stays.
    fn context(&self, keep: bool) -> RunContext;

    /// Takes part in runs that others lead, for a server process that does more besides.
    fn host(&self) -> Arc<dyn fleet::SessionHost>;

    /// A new seed.
    fn draw_seed(&self) -> u64;

    /// The processes that a launcher has started together.
    fn ranks(&self) -> Ranks;

    /// Begins a run with a record: opens its outputs and writes the first record.
    ///
    /// # Errors
    /// Outputs that cannot be opened.
    fn bench(&self, request: &BenchRequest<'_>) -> Result<Box<dyn Bench>, Error>;

    /// The same for a run whose loads the processes of a launch carry out together: they have planned these specs, of one phase each, when it returns.
    ///
    /// # Errors
    /// As for [`Console::bench`], and processes that do not take part.
    fn bench_of_ranks(&self, request: &BenchRequest<'_>, specs: &[Spec]) -> Result<Box<dyn Bench>, Error>;
}

/// Processes that a launcher has started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// How many; 1 where this process is alone.
    pub count: u32,
    /// Whether all of them are on this machine.
    pub are_here: bool,
}

/// Facts of a run that a command measures.
pub struct BenchRequest<'a> {
    /// Paths that no output may be written to.
    pub paths: &'a [String],
    /// Seed of the run.
    pub seed: u64,
    /// Keeps everything that it makes.
    pub keep: bool,
    /// Number of its phases, for the live view.
    pub phase_count: usize,
    /// Place of the record where the user names none.
    pub record: Option<&'a Path>,
}

/// Run of single phases, with its record.
pub trait Bench {
    /// Takes over the layers of the run, which were begun with a [`Console::context`]: they end with it.
    ///
    /// # Errors
    /// When signals cannot be handled.
    fn adopt(&mut self, runs: Runs) -> Result<(), Error>;

    /// Its record, of the type that the report has for records.
    fn record(&mut self) -> &mut dyn Any;

    /// Stores what a phase needs and none of the run has stored.
    ///
    /// # Errors
    /// When that failed.
    fn fill(&mut self, phase: &Phase) -> Result<(), Error>;

    /// Runs a phase and adds it to the record; its index there.
    ///
    /// # Errors
    /// When it could not begin.
    fn run_phase(&mut self, phase: &Phase) -> Result<usize, Error>;

    /// Has the processes of a launch carry out the spec with this number among those of [`Console::bench_of_ranks`], and adds its phase to the record;
    /// its index there.
    ///
    /// # Errors
    /// When it could not begin, and a number that no spec has.
    fn run_by_ranks(&mut self, number: usize) -> Result<usize, Error>;

    /// Prints text to standard output while the run is under way, unless that is where the record or its rows go; while the full screen is shown,
    /// it waits for its end.
    ///
    /// # Errors
    /// When it is not taken.
    fn show(&mut self, text: &str) -> Result<(), Error>;

    /// Whether the run was interrupted.
    fn is_interrupted(&self) -> bool;

    /// Ends the run and prints its report; the exit code. `result` is what stopped it.
    ///
    /// # Errors
    /// The failure that ended it, and outputs that were not written.
    fn finish(self: Box<Self>, result: Result<(), Error>) -> Result<u8, Error>;
}

/// One argument for each option.
pub fn arguments<T: 'static>(
    options: impl IntoIterator<Item = &'static OptionDef<T>>,
) -> impl Iterator<Item = Arg> {
    options.into_iter().map(|option| {
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
///
/// # Errors
/// A value that an option does not take.
pub fn fill<T: 'static>(
    table: impl IntoIterator<Item = &'static OptionDef<T>>,
    matches: &ArgMatches,
    spec: &mut T,
) -> Result<(), Error> {
    fill_by(table, matches, |option, text| (option.apply)(spec, text))
}

/// Fills the spec of a load from the matches of a table's options.
///
/// # Errors
/// As for [`fill`].
pub fn fill_load(
    table: impl IntoIterator<Item = &'static OptionDef>,
    matches: &ArgMatches,
    spec: &mut Spec,
) -> Result<(), Error> {
    fill_by(table, matches, |option, text| options::say(spec, option, text))
}

fn fill_by<T: 'static>(
    table: impl IntoIterator<Item = &'static OptionDef<T>>,
    matches: &ArgMatches,
    mut apply: impl FnMut(&'static OptionDef<T>, &str) -> Result<(), ParseError>,
) -> Result<(), Error> {
    for option in table {
        let texts: Vec<&str> = if option.is_switch() {
            matches.get_flag(option.name).then_some("true").into_iter().collect()
        } else {
            matches.get_many::<String>(option.name).into_iter().flatten().map(String::as_str).collect()
        };
        for text in texts {
            apply(option, text)
                .map_err(|error| Error::usage("options", format!("--{}: {error}", option.name)))?;
        }
    }
    Ok(())
}

/// Writes a table of options as Markdown.
pub fn table_as_markdown<T: 'static>(
    title: &str,
    table: impl IntoIterator<Item = &'static OptionDef<T>>,
    text: &mut String,
) {
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
