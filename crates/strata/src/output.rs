//! Where records and reports go. Files are written beside their place and moved there, so that a reader, or a crash,
//! never sees half of one.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use driver::Error;
use live::CsvTarget;
use report::record::Record;

use crate::options::OutputSpec;

/// Width of the report where standard output is no terminal.
const WIDTH_DEFAULT: usize = 120;

/// The places that a run writes to.
pub(crate) struct Output {
    json: Vec<PathBuf>,
    csv: Vec<PathBuf>,
    text: Option<PathBuf>,
    json_to_stdout: bool,
    csv_to_stdout: bool,
}

impl Output {
    /// Makes the directory and tries every place, before anything is measured.
    ///
    /// # Errors
    /// Bad usage: a place that cannot be written.
    pub(crate) fn open(spec: &OutputSpec) -> Result<Self, Error> {
        let is_stdout = |name: &Option<String>| name.as_deref() == Some("-");
        let file = |name: &Option<String>| {
            name.iter().filter(|name| *name != "-").map(PathBuf::from).collect::<Vec<_>>()
        };
        let mut output = Self {
            json: file(&spec.json),
            csv: file(&spec.csv),
            text: None,
            json_to_stdout: is_stdout(&spec.json),
            csv_to_stdout: is_stdout(&spec.csv),
        };
        if output.json_to_stdout && output.csv_to_stdout {
            return Err(Error::usage("output", "--json - and --csv - both want standard output")
                .remedy("give one of them a file"));
        }
        if let Some(directory) = &spec.out {
            fs::create_dir_all(directory).map_err(|error| {
                Error::usage("output", format!("cannot make the directory: {error}"))
                    .with("path", directory.display())
            })?;
            output.json.push(directory.join("record.json"));
            output.csv.push(directory.join("table.csv"));
            output.text = Some(directory.join("report.txt"));
        }
        for path in output.json.iter().chain(&output.csv).chain(&output.text) {
            write_whole(path, "").map_err(|error| {
                Error::usage("output", format!("cannot write: {error}"))
                    .with("path", path.display())
                    .remedy("give a place that can be written")
            })?;
        }
        Ok(output)
    }

    /// Writes the record as it is now: called after every phase.
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

    /// Prints what the user asked to see on standard output at the end.
    pub(crate) fn print(&self, record: &Record) -> Result<(), Error> {
        if self.json_to_stdout {
            print(&to_json(record)?);
        } else if self.csv_to_stdout {
            print(&report::to_csv(record));
        } else {
            print_report(record);
        }
        Ok(())
    }
}

fn to_json(record: &Record) -> Result<String, Error> {
    report::to_json(record).map_err(|message| Error::new(driver::ErrorKind::Run, "output", message))
}

/// Prints the report as the terminal can show it.
pub(crate) fn print_report(record: &Record) {
    let stdout = std::io::stdout();
    let is_terminal = stdout.is_terminal();
    let width = if is_terminal {
        rustix::termios::tcgetwinsize(&stdout)
            .map_or(WIDTH_DEFAULT, |size| usize::from(size.ws_col).clamp(40, 200))
    } else {
        WIDTH_DEFAULT
    };
    let colour = is_terminal && std::env::var_os("NO_COLOR").is_none();
    print(&report::render(record, width, colour));
}

/// Prints to standard output; a reader that has gone away is not an error of the run.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Refuses a place that is a target of the run, is named twice, or is a block device: the output would destroy what is there.
///
/// # Errors
/// Bad usage, before anything is opened.
pub(crate) fn check_places(spec: &OutputSpec, targets: &[String]) -> Result<(), Error> {
    let mut taken: Vec<PathBuf> = targets.iter().map(|target| place(Path::new(target))).collect();
    let live = match &spec.live_csv {
        Some(CsvTarget::File(path)) => Some(path.as_path()),
        _ => None,
    };
    let given = spec.json.iter().chain(&spec.csv).filter(|name| *name != "-").map(Path::new).chain(live);
    for path in given {
        let found = fs::metadata(path).ok().map(|metadata| metadata.file_type());
        let place = place(path);
        // A pipe or /dev/null may well take two outputs.
        let is_shared = found.is_none_or(|kind| kind.is_file()) && taken.contains(&place);
        if is_shared || found.is_some_and(|kind| kind.is_block_device()) {
            return Err(Error::usage("output", "this is a target, another output, or a block device")
                .with("path", path.display())
                .remedy("give a file of its own"));
        }
        taken.push(place);
    }
    Ok(())
}

/// The one name of a place, by whatever path it is reached.
fn place(path: &Path) -> PathBuf {
    fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

fn write_or_fail(path: &Path, text: &str) -> Result<(), Error> {
    write_whole(path, text)
        .map_err(|error| Error::system("output", "cannot write", error).with("path", path.display()))
}

fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    // A pipe or a device such as /dev/stdout cannot be replaced by a renamed file.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, text);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let beside = path.with_file_name(name);
    fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        // The error that led here is the one worth telling.
        let _ = fs::remove_file(&beside);
    })
}
