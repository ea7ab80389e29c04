//! Where records and reports go. Files are written beside their place and moved there, so that a reader, or a crash,
//! never sees half of one.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dialects::{Destination, Piece, Render};
use driver::Error;
use live::{CsvTarget, LiveMode};
use report::record::{Record, Status};
use report::stack::Detail;
use units::path_of;

use crate::options::OutputSpec;

/// Width of the report where standard output is no terminal.
pub(crate) const WIDTH_DEFAULT: usize = 120;

/// Records that take longer to write are written less often than after every phase: writing loads the CPUs and the drive that are measured.
const SAVE_SHORT: Duration = Duration::from_millis(10);

/// A record that takes longer is written when the run has gone on for this many times as long: at most 2 % of its time.
const SAVE_PAUSE: u32 = 50;

/// Longest answer that is read to a question.
const ANSWER_BYTES_MAX: u64 = 4096;

/// The places that a run writes to.
pub(crate) struct Output {
    json: Vec<PathBuf>,
    csv: Vec<PathBuf>,
    text: Option<PathBuf>,
    json_to_stdout: bool,
    csv_to_stdout: bool,
    /// Shows the run as another tool would, in place of the report.
    render: Option<Box<dyn Render>>,
    /// Output of the renderer is kept for the end: the full screen would swallow it.
    holds: bool,
    held: Vec<Piece>,
    /// The first piece that did not reach its place while the run was under way.
    unshown: Option<Error>,
    /// When the record of a phase was written last, and how long that took.
    saved: Option<(Instant, Duration)>,
    /// How much of a stack is shown at the end.
    pub(crate) detail: Detail,
}

impl Output {
    /// Makes the directory and tries every place, before anything is measured.
    ///
    /// # Errors
    /// Bad usage: a place that cannot be written.
    pub(crate) fn open(spec: &OutputSpec, render: Option<Box<dyn Render>>) -> Result<Self, Error> {
        let is_stdout = |name: &Option<String>| name.as_deref() == Some("-");
        let file = |name: &Option<String>| {
            name.iter().filter(|name| *name != "-").map(|name| path_of(name).into_owned()).collect::<Vec<_>>()
        };
        let mut output = Self {
            json: file(&spec.json),
            csv: file(&spec.csv),
            text: None,
            json_to_stdout: is_stdout(&spec.json),
            csv_to_stdout: is_stdout(&spec.csv),
            render,
            holds: spec.live == LiveMode::Full && io::stderr().is_terminal() && io::stdout().is_terminal(),
            held: Vec::new(),
            unshown: None,
            saved: None,
            detail: Detail::default(),
        };
        if output.json_to_stdout && output.csv_to_stdout {
            return Err(Error::usage("output", "--json - and --csv - both write to standard output")
                .remedy("give one of them a file"));
        }
        if output.render.is_some() && (output.json_to_stdout || output.csv_to_stdout) {
            return Err(Error::usage("output", "the dialect uses standard output")
                .remedy("give --json and --csv a file"));
        }
        for path in output.render.iter().flat_map(|render| render.files()) {
            let path = named(&path);
            let open = made_outside_dev(&path);
            let open = open.and_then(|()| fs::OpenOptions::new().append(true).create(true).open(&path));
            open.map_err(|error| refused_place(&path, error))?;
        }
        if let Some(directory) = &spec.out {
            make_directory(directory)?;
            output.json.push(directory.join("record.json"));
            output.csv.push(directory.join("table.csv"));
            output.text = Some(directory.join("report.txt"));
        }
        for path in output.json.iter().chain(&output.csv).chain(&output.text) {
            try_place(path)?;
        }
        Ok(output)
    }

    /// Writes the record after a phase; a long one not after every phase.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub(crate) fn save_phase(&mut self, record: &Record) -> Result<(), Error> {
        let is_early =
            |&(at, took): &(Instant, Duration)| took > SAVE_SHORT && at.elapsed() < took * SAVE_PAUSE;
        if self.saved.as_ref().is_some_and(is_early) {
            return Ok(());
        }
        let begun = Instant::now();
        self.save(record)?;
        self.saved = Some((Instant::now(), begun.elapsed()));
        Ok(())
    }

    /// Writes the record as it is now.
    ///
    /// # Errors
    /// When a place does not take it.
    pub(crate) fn save(&self, record: &Record) -> Result<(), Error> {
        if !self.json.is_empty() {
            let json = to_json(record)?;
            self.json.iter().try_for_each(|path| write_or_fail(path, &json))?;
        }
        if !self.csv.is_empty() {
            let csv = report::to_csv(record);
            self.csv.iter().try_for_each(|path| write_or_fail(path, &csv))?;
        }
        match &self.text {
            Some(path) => write_or_fail(path, &report::render(record, WIDTH_DEFAULT, false)),
            None => Ok(()),
        }
    }

    /// Saves the record of a run that was stopped, before it is whole.
    pub(crate) fn save_stopped(&self, record: &mut Record, why: &str) {
        (record.status, record.failure) = (Status::Partial, Some(why.to_owned()));
        // The last word on a disk that is full is that of the final record.
        let _ = self.save(record);
    }

    /// Shows, before the first phase, what a dialect shows then.
    pub(crate) fn begin(&mut self, record: &Record) -> Result<(), Error> {
        let pieces = self.render.as_mut().map_or_else(Vec::new, |render| render.begin(record));
        self.show(pieces)
    }

    /// Asks what a dialect asks before the phases of a request, until somebody agrees.
    ///
    /// # Errors
    /// When nobody can answer any more, or the run is interrupted.
    pub(crate) fn ask(&self, request: usize, interrupt: &AtomicBool) -> Result<(), Error> {
        let Some(question) = self.render.as_ref().and_then(|render| render.question(request)) else {
            return Ok(());
        };
        let mut answer = String::new();
        loop {
            print(&question)?;
            answer.clear();
            let read = io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer);
            let is_over = matches!(read, Ok(0) | Err(_)) || interrupt.load(Ordering::Relaxed);
            if is_over {
                return Err(Error::new(driver::ErrorKind::Run, "wait", "not confirmed with y"));
            }
            if answer.contains(['y', 'Y']) {
                return Ok(());
            }
        }
    }

    /// Prints text, unless the record or its rows go to standard output.
    pub(crate) fn show_text(&mut self, text: &str) -> Result<(), Error> {
        if self.json_to_stdout || self.csv_to_stdout { Ok(()) } else { self.show(vec![Piece::stdout(text)]) }
    }

    /// Puts pieces where they belong, those for a terminal once the full screen is gone.
    fn show(&mut self, pieces: Vec<Piece>) -> Result<(), Error> {
        let (now, later): (Vec<Piece>, Vec<Piece>) = pieces
            .into_iter()
            .partition(|piece| !self.holds || matches!(piece.place, Destination::File { .. }));
        self.held.extend(later);
        emit(&now)
    }

    /// Shows, after a stage whose phases are the record's from `from` on, what a dialect shows then. What cannot be shown
    /// does not end the run: [`Output::print`] tells it.
    pub(crate) fn stage(&mut self, record: &Record, from: usize) {
        let pieces = self.render.as_mut().map_or_else(Vec::new, |render| render.stage(record, from));
        if let Err(error) = self.show(pieces) {
            self.unshown.get_or_insert(error);
        }
    }

    /// Shows what a dialect shows while phases run, the last of the record. What cannot be shown does not end the run:
    /// [`Output::print`] tells it.
    pub(crate) fn status(&mut self, record: &Record) {
        let pieces = self.render.as_mut().map_or_else(Vec::new, |render| render.status(record));
        if let Err(error) = self.show(pieces) {
            self.unshown.get_or_insert(error);
        }
    }

    /// Whether output is for a dialect to make, which keeps it well-formed even when nothing was measured.
    pub(crate) fn speaks_dialect(&self) -> bool {
        self.render.is_some()
    }

    /// Prints what the user asked to see on standard output at the end.
    ///
    /// # Errors
    /// When it, or something that was to be shown earlier, did not reach its place.
    pub(crate) fn print(&mut self, record: &Record) -> Result<(), Error> {
        emit(&std::mem::take(&mut self.held))?;
        if let Some(render) = &mut self.render {
            emit(&render.end(record))?;
        } else if self.json_to_stdout {
            print(&to_json(record)?)?;
        } else if self.csv_to_stdout {
            print(&report::to_csv(record))?;
        } else {
            print_report(record, self.detail)?;
        }
        self.unshown.take().map_or(Ok(()), Err)
    }
}

/// Makes the directory that results go into.
pub(crate) fn make_directory(directory: &Path) -> Result<(), Error> {
    made_outside_dev(directory).and_then(|()| fs::create_dir_all(directory)).map_err(|error| {
        Error::usage("output", format!("cannot make the directory: {error}"))
            .with("path", directory.display())
    })
}

/// Tries whether a place can be written, before anything is measured.
pub(crate) fn try_place(path: &Path) -> Result<(), Error> {
    write_whole(path, "").map_err(|error| refused_place(path, error))
}

/// A place that does not take output: bad usage, but for a file system without room, which is no mistake of the user's.
pub(crate) fn refused_place(path: &Path, error: io::Error) -> Error {
    if lacks_room(error.kind()) {
        return Error::system("output", "cannot write", error).with("path", path.display());
    }
    Error::usage("output", format!("cannot write: {error}"))
        .with("path", path.display())
        .remedy("give a path that can be written")
}

/// Whether a place was good and what happened there is a fault of the system.
pub(crate) fn lacks_room(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, Other, QuotaExceeded, StorageFull, WriteZero};
    matches!(kind, FileTooLarge | Other | QuotaExceeded | StorageFull | WriteZero)
}

pub(crate) fn to_json(record: &Record) -> Result<String, Error> {
    report::to_json(record).map_err(|message| Error::new(driver::ErrorKind::Run, "output", message))
}

/// Prints the report as the terminal can show it.
///
/// # Errors
/// As for [`print()`].
pub(crate) fn print_report(record: &Record, detail: Detail) -> Result<(), Error> {
    let (width, colour) = page();
    print(&report::render_in(record, width, colour, detail))
}

/// Width of a page on standard output, and whether it may be coloured.
pub(crate) fn page() -> (usize, bool) {
    let stdout = std::io::stdout();
    let size = if stdout.is_terminal() { rustix::termios::tcgetwinsize(&stdout).ok() } else { None };
    // A terminal without a width is a launcher's, which passes on what it reads there.
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    let width = columns.map_or(WIDTH_DEFAULT, |columns| columns.clamp(40, 200));
    (width, columns.is_some() && std::env::var_os("NO_COLOR").is_none())
}

/// Puts the pieces of a dialect's output where they belong.
pub(crate) fn emit(pieces: &[Piece]) -> Result<(), Error> {
    for piece in pieces {
        match &piece.place {
            Destination::Stdout => print_bytes(&piece.content)?,
            Destination::Stderr => drop(io::stderr().write_all(&piece.content)),
            Destination::File { path, append } => {
                let path = &*named(path);
                let written = if *append {
                    let file = fs::OpenOptions::new().append(true).create(true).open(path);
                    file.and_then(|mut file| file.write_all(&piece.content))
                } else {
                    write_whole(path, &piece.content)
                };
                written.map_err(|error| {
                    Error::system("output", "cannot write", error).with("path", path.display())
                })?;
            }
        }
    }
    Ok(())
}

/// Prints to standard output, and makes sure that it got there: every subcommand prints by this.
///
/// # Errors
/// When standard output does not take it (a full disk). A reader that has gone away is no error: it has read enough.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    print_bytes(text.as_bytes())
}

fn print_bytes(content: &[u8]) -> Result<(), Error> {
    let mut stdout = io::stdout();
    match stdout.write_all(content).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::system("output", "cannot write to standard output", error)
                .remedy("write to a device with free space"))
        }
        _ => Ok(()),
    }
}

/// Says a line on standard error. Where that cannot be written, there is nobody left to tell.
pub(crate) fn tell(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Refuses a place that is a target of the run, is named twice, or is a block device: the output would destroy what is there.
///
/// # Errors
/// Bad usage, before anything is opened.
pub(crate) fn check_places(spec: &OutputSpec, targets: &[String]) -> Result<(), Error> {
    let live = match &spec.live_csv {
        Some(CsvTarget::File(path)) => Some(path.as_path()),
        _ => None,
    };
    let given = spec.json.iter().chain(&spec.csv).filter(|name| *name != "-").map(|name| path_of(name));
    check_given(given.chain(live.map(Cow::Borrowed)), targets)
}

/// The same of these places.
///
/// # Errors
/// As [`check_places`].
pub(crate) fn check_given<'a>(
    given: impl Iterator<Item = Cow<'a, Path>>,
    targets: &[String],
) -> Result<(), Error> {
    let mut taken: Vec<PathBuf> = targets.iter().map(|target| place(&path_of(target))).collect();
    for path in given {
        let path = &*path;
        let found = fs::metadata(path).ok().map(|metadata| metadata.file_type());
        let place = place(path);
        // A pipe or /dev/null may well take two outputs.
        let is_shared = found.is_none_or(|kind| kind.is_file()) && taken.contains(&place);
        if is_shared || found.is_some_and(|kind| kind.is_block_device()) {
            return Err(Error::usage("output", "this is a target, another output or a block device")
                .with("path", path.display())
                .remedy("give another file"));
        }
        taken.push(place);
    }
    Ok(())
}

/// Refuses files of a dialect's output that are a target of the run or a block device: the output would destroy what is there.
///
/// # Errors
/// Bad usage, before anything is opened.
pub(crate) fn check_apart(files: &[PathBuf], targets: &[String]) -> Result<(), Error> {
    let taken: Vec<PathBuf> = targets.iter().map(|target| place(&path_of(target))).collect();
    let is_device = |path: &Path| fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    match files.iter().find(|path| is_device(path) || path.is_file() && taken.contains(&place(path))) {
        Some(path) => Err(Error::usage("output", "this is a target or a block device")
            .with("path", path.display())
            .remedy("give another file")),
        None => Ok(()),
    }
}

/// The file that a dialect means: what its words say is text.
pub(crate) fn named(path: &Path) -> Cow<'_, Path> {
    path.to_str().map_or(Cow::Borrowed(path), path_of)
}

/// The one name of a place, by whatever path it is reached.
pub(crate) fn place(path: &Path) -> PathBuf {
    fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

pub(crate) fn write_or_fail(path: &Path, text: &str) -> Result<(), Error> {
    write_whole(path, text)
        .map_err(|error| Error::system("output", "cannot write", error).with("path", path.display()))
}

/// Refuses to make a file or a directory where only devices are.
pub(crate) fn made_outside_dev(path: &Path) -> io::Result<()> {
    if host::target::is_missing_device(path) {
        let message = "no such device: strata creates no files in /dev";
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    Ok(())
}

/// Writes a file beside its place and moves it there.
///
/// # Errors
/// As the system says; what stood at the place is then as it was.
pub(crate) fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    // A pipe or a device such as /dev/stdout cannot be replaced by a renamed file.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, content);
    }
    made_outside_dev(path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let beside = path.with_file_name(name);
    fs::write(&beside, content).and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        // The error that led here is the one worth telling.
        let _ = fs::remove_file(&beside);
    })
}
