//! Files of a history: which there are, their names, and how they are written so that no reader or crash sees half of one.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use driver::Error;
use flate2::Compression;
use flate2::write::GzEncoder;
use report::record::Record;

/// Longest name of a series, in bytes.
const SERIES_BYTES_MAX: usize = 64;

/// A file of records as the directory shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Relative to the directory of the history.
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    pub(crate) modified_ns: i64,
}

/// Refuses a name of a series that is no name of a directory of its own.
///
/// # Errors
/// Bad usage.
pub(crate) fn check_series(name: &str) -> Result<(), Error> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_good = !name.is_empty() && name.len() <= SERIES_BYTES_MAX && !name.starts_with('.');
    if is_good && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Error::usage("history", format!("\"{}\" is not a name for a series", name.escape_debug())).remedy(
        format!("give letters, digits, '.', '_' or '-', at most {SERIES_BYTES_MAX}, not beginning with '.'"),
    ))
}

/// The series that the path of a record names: its directory below that of the history.
pub(crate) fn series_of(path: &str) -> Option<&str> {
    path.split_once('/').map(|(series, _)| series)
}

/// Records of a directory and of the directories in it, by name. Links, and names that begin with a dot, are passed over.
///
/// # Errors
/// As the system says.
pub(crate) fn find(directory: &Path) -> Result<Vec<Found>, Error> {
    let refuse = |error: io::Error| {
        Error::usage("history", format!("cannot read the directory: {error}"))
            .with("path", directory.display())
    };
    let mut found = Vec::new();
    for (name, kind, path) in entries(directory).map_err(refuse)? {
        if kind.is_file() {
            found.extend(record_file(name, &path).map_err(refuse)?);
        } else if kind.is_dir() {
            for (inner, kind, path) in entries(&path).map_err(refuse)? {
                if kind.is_file() {
                    found.extend(record_file(format!("{name}/{inner}"), &path).map_err(refuse)?);
                }
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Entries whose names are text and do not begin with a dot.
fn entries(directory: &Path) -> io::Result<Vec<(String, fs::FileType, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            found.push((name, entry.file_type()?, entry.path()));
        }
    }
    Ok(found)
}

fn record_file(path: String, place: &Path) -> io::Result<Option<Found>> {
    if !path.ends_with(".json") && !path.ends_with(".json.gz") {
        return Ok(None);
    }
    match fs::metadata(place) {
        Ok(facts) => Ok(Some(Found {
            path,
            size_bytes: facts.len(),
            modified_ns: facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
        })),
        // Somebody has just removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Name of the file of a record: the moment of its run, so that files stand in their order, and the name of the run.
pub(crate) fn name_of(record: &Record) -> String {
    let plain = |text: &str| text.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect::<String>();
    let moment: String = record.started_at.chars().take(19).collect();
    format!("{}Z-{}.json.gz", plain(&moment), plain(&record.run_id))
}

/// Age from which a file that was to become a record is of a process that was killed, in seconds.
const LEFT_SECONDS: u64 = 24 * 3600;

/// Removes what processes that were killed have left of records they wrote to this directory.
pub(crate) fn sweep(directory: &Path) {
    let is_left = |entry: &fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_part = name.starts_with('.') && name.contains(".json.gz.") && name.ends_with(".part");
        let age = || entry.metadata().and_then(|facts| facts.modified()).ok()?.elapsed().ok();
        is_part && age().is_some_and(|age| age.as_secs() >= LEFT_SECONDS)
    };
    // What cannot be removed harms nobody: it is no record.
    for entry in fs::read_dir(directory).into_iter().flatten().flatten().filter(is_left) {
        let _ = fs::remove_file(entry.path());
    }
}

/// Writes a record, packed, beside its place and moves it there once it is on the drive.
///
/// # Errors
/// As the system says; nothing is left then.
pub(crate) fn write(path: &Path, json: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = fs::File::create(&beside).and_then(|file| {
        let mut packed = GzEncoder::new(io::BufWriter::new(file), Compression::default());
        packed.write_all(json.as_bytes())?;
        let file = packed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        // The name is on the drive once its directory is.
        fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    });
    written.inspect_err(|_| {
        // The error that led here is the one worth telling.
        let _ = fs::remove_file(&beside);
    })
}
