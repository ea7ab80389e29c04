//! Contract of a dialect: its functions, and the requests that it hands over.

use std::path::PathBuf;

use driver::Error;
use report::record::Record;
use workload::spec::Spec;

use crate::world::World;

/// One tool's command line and output.
pub struct Dialect {
    /// The tool's name, as typed.
    pub name: &'static str,
    /// Supported part of the tool, in one line.
    pub summary: &'static str,
    /// Reads the words after the name. What the tool would do silently wrong is refused, or comes back as a warning.
    ///
    /// # Errors
    /// Bad usage, in one line: what was wrong, and what would be accepted.
    pub parse: fn(&[String], &dyn World) -> Result<Request, Error>,
    /// Output for words that [`Dialect::parse`] refused, so that a program which reads the tool's output finds it well-formed;
    /// nothing for most.
    pub refused: fn(&[String], &Error) -> Vec<Piece>,
}

/// Request of a command line.
pub enum Request {
    /// Only output: help, a version, a chart.
    Show(Vec<Piece>),
    /// A measurement.
    Run(Box<Run>),
    /// A server process, until it is told to end.
    Engine(Serve),
    /// Something that other processes of the tool are told over their control addresses.
    Tell(Tell),
    /// A command of strata that does the same: its words behind the name `strata`.
    Command(Vec<String>),
}

/// A server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serve {
    /// Options of strata's command `engine` by name, with their values as typed.
    pub options: Vec<(&'static str, String)>,
    /// The file with the secret that it shares with its clients.
    pub token_file: Option<PathBuf>,
    /// Its first line, in the tool's words.
    pub banner: String,
}

/// Message to server processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tell {
    /// Their control addresses.
    pub hosts: Vec<String>,
    /// Order in the message.
    pub what: Told,
    /// The file with the shared secret, where they demand one.
    pub token_file: Option<PathBuf>,
}

/// Order to a server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// To end what it runs.
    Interrupt,
    /// To end itself.
    Quit,
    /// To say that it lives.
    Ping,
}

/// A measurement, and how its record is shown.
pub struct Run {
    /// The phases, in order. Those that run at the same time as the one before say so ([`Spec::concurrent`]). A spec has one
    /// operation; its place in this list is the `request` of its phases in the record.
    pub specs: Vec<Spec>,
    /// Tasks of a tool of MPI, of all its processes together: each spec has so many threads, or is of one process alone
    /// ([`Spec::host`]). None for tools that are one process.
    pub tasks: Option<u32>,
    /// Shows the record.
    pub render: Box<dyn Render>,
    /// Deviations from the tool; one line each, printed to standard error before the run.
    pub warnings: Vec<String>,
    /// The file with the secret that engines demand, where the tool's words name one.
    pub token_file: Option<PathBuf>,
    /// Words of the command line that stand in no output and no record: keys.
    pub secrets: Vec<String>,
    /// Progress display of the run, where the user has not asked for a view of strata's own.
    pub progress: Progress,
}

/// Progress display while a run is under way, on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A line on a terminal; nothing elsewhere, where a script listens.
    #[default]
    Auto,
    /// A line on a terminal, plain lines elsewhere.
    Always,
    /// The full screen.
    Full,
    /// Nothing.
    Never,
}

/// Where a piece of output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether what is there stays, and this comes after it.
        append: bool,
    },
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it goes.
    pub place: Destination,
    /// Bytes of the piece.
    pub content: Vec<u8>,
}

impl Piece {
    /// Text on standard output.
    #[must_use]
    pub fn stdout(text: impl Into<String>) -> Self {
        Self { place: Destination::Stdout, content: text.into().into_bytes() }
    }

    /// Text into a file.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>, append: bool, text: impl Into<String>) -> Self {
        Self { place: Destination::File { path: path.into(), append }, content: text.into().into_bytes() }
    }
}

/// How often something is shown while a run is under way; none: as strata does by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds between two drawings of the progress.
    pub draw_ns: Option<u64>,
    /// Nanoseconds between two lines of progress, which stay.
    pub line_ns: Option<u64>,
    /// Nanoseconds between two reports of the results so far.
    pub results_ns: Option<u64>,
    /// Whether such a report comes with SIGUSR1, too.
    pub results_by_signal: bool,
}

/// Shows a record as the tool shows its results. Every figure comes from the record, or from `statistics` over its samples.
pub trait Render {
    /// Files that [`Render::stage`] and [`Render::end`] will write: tried before anything is measured.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether [`Run::warnings`] stand in what it shows, as the tool's own notes do: they are not told on standard error then.
    fn carries_warnings(&self) -> bool {
        false
    }

    /// How often something is shown while it runs.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// While phases run: they are the last of the record, with what they have so far.
    fn status(&mut self, record: &Record) -> Vec<Piece> {
        let _ = record;
        Vec::new()
    }

    /// Before the first phase. The record has no phases yet.
    fn begin(&mut self, record: &Record) -> Vec<Piece> {
        let _ = record;
        Vec::new()
    }

    /// Question to the user, on a terminal, before the phases of a request run: they run when he answers `y`.
    fn question(&self, request: usize) -> Option<String> {
        let _ = request;
        None
    }

    /// After a stage: the phases `from..` of the record are new.
    fn stage(&mut self, record: &Record, from: usize) -> Vec<Piece> {
        let _ = (record, from);
        Vec::new()
    }

    /// After the last phase, whatever came of it; `record.failure` says what went wrong. Called too when nothing could be
    /// measured, so that output meant for programs stays well-formed: the record then has no phases.
    fn end(&mut self, record: &Record) -> Vec<Piece>;
}
