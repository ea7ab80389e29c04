//! A history as commands use it: records go in, runs and records come out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use driver::Error;
use report::compare::{facts_by_name, load_key, load_words, points_of};
use report::history::{HistoryRun, series_of};
use report::record::Record;
use twox_hash::XxHash3_128;

use crate::files::{self, Found};
use crate::index::{Failure, Index};

/// Outcome of adding a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is there now, at this path below the directory.
    New(String),
    /// Its run was there already, at this path.
    Known(String),
}

/// A history that is open.
pub struct Store {
    directory: PathBuf,
    index: Index,
}

impl Store {
    /// Opens the history of a directory with records, and makes its index follow them.
    ///
    /// # Errors
    /// No such directory, one without records or that cannot be read, and failures of SQLite.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let refuse = |message: &str| {
            Error::usage("history", message)
                .with("path", directory.display())
                .remedy("strata history add DIR RECORD makes one")
        };
        if !directory.is_dir() {
            return Err(refuse("the directory does not exist"));
        }
        // A directory that somebody has mistyped gets no index.
        let found = files::find(directory)?;
        if found.is_empty() {
            return Err(refuse("there are no records in this directory"));
        }
        Self::opened(directory, &found)
    }

    /// The same of a directory that exists and may be empty.
    ///
    /// # Errors
    /// A directory that cannot be read, and failures of SQLite.
    pub fn open_for_more(directory: &Path) -> Result<Self, Error> {
        Self::opened(directory, &files::find(directory)?)
    }

    fn opened(directory: &Path, found: &[Found]) -> Result<Self, Error> {
        let index = Index::open(directory)?;
        let mut store = Self { directory: directory.to_owned(), index };
        store.follow(found, None)?;
        Ok(store)
    }

    /// Why the index is kept in memory, where the directory cannot be written.
    #[must_use]
    pub fn in_memory(&self) -> Option<&str> {
        self.index.in_memory.as_deref()
    }

    /// Makes the index follow the files, one of which may have been read already.
    fn follow(&mut self, found: &[Found], known: Option<&HistoryRun>) -> Result<(), Error> {
        match self.try_follow(found, known) {
            Ok(()) => Ok(()),
            Err(Failure::Damaged(_)) => self.make_again(found),
            Err(Failure::NoRoom(why)) => {
                self.index = Index::in_memory(why)?;
                Ok(self.try_follow(found, known)?)
            }
            Err(Failure::Other(error)) => Err(error),
        }
    }

    fn try_follow(&mut self, found: &[Found], known: Option<&HistoryRun>) -> Result<(), Failure> {
        let directory = &self.directory;
        self.index.follow(found, |file: &Found| {
            if let Some(run) = known.filter(|run| run.path == file.path) {
                return Ok(run.clone());
            }
            let record = read(&directory.join(&file.path))?;
            Ok(run_of(&record, file.path.clone()))
        })
    }

    /// Makes the index from the records alone.
    fn make_again(&mut self, found: &[Found]) -> Result<(), Error> {
        self.index = Index::again(&self.directory)?;
        Ok(self.try_follow(found, None)?)
    }

    /// Refuses a record that a history does not take, or a name that is none of a series.
    ///
    /// # Errors
    /// Bad usage.
    pub fn check(&self, record: &Record, series: Option<&str>) -> Result<(), Error> {
        series.map_or(Ok(()), files::check_series)?;
        if let Some(failure) = record.why_partial() {
            return Err(Error::usage("history", format!("the run is not complete: {failure}"))
                .with("run", &record.run_id)
                .remedy("add complete runs: others are no measure for those to come"));
        }
        Ok(())
    }

    /// Adds a record, whose JSON is given too, to a series, or to that of its host and target.
    ///
    /// # Errors
    /// As for [`Store::check`], and a directory that cannot be written.
    pub fn add(&mut self, record: &Record, json: &str, series: Option<&str>) -> Result<Added, Error> {
        self.check(record, series)?;
        let of = series.map_or_else(|| series_of(record), str::to_owned);
        if let Some(path) = self.index.path_of(&record.run_id, &of)? {
            return Ok(Added::Known(path));
        }
        let name = files::name_of(record);
        let path = series.map_or_else(|| name.clone(), |series| format!("{series}/{name}"));
        let place = self.directory.join(&path);
        let failed = |error: io::Error| {
            Error::system("history", "cannot write the record", error)
                .with("path", place.display())
                .remedy("give a directory that you may write to, with free space")
        };
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
            files::sweep(parent);
        }
        files::write(&place, json).map_err(failed)?;
        let found = files::find(&self.directory)?;
        self.follow(&found, Some(&run_of(record, path.clone())))?;
        Ok(Added::New(path))
    }

    /// All runs by the moments at which they began, and files that are no part of the history, with the reason.
    ///
    /// # Errors
    /// Failures of SQLite.
    pub fn runs(&mut self) -> Result<(Vec<HistoryRun>, Vec<String>), Error> {
        match self.index.runs() {
            Err(Failure::Damaged(_)) => {
                let found = files::find(&self.directory)?;
                self.make_again(&found)?;
                Ok(self.index.runs()?)
            }
            found => Ok(found?),
        }
    }

    /// Reads the record of a run.
    ///
    /// # Errors
    /// A file that is gone, or no record.
    pub fn record(&self, path: &str) -> Result<Record, Error> {
        let place = self.directory.join(path);
        read(&place).map_err(|message| Error::usage("history", message).with("path", place.display()))
    }
}

/// A record as a history knows it, in the series of its directory, or that of its host and target.
#[must_use]
pub fn run_of(record: &Record, path: String) -> HistoryRun {
    HistoryRun {
        run_id: record.run_id.clone(),
        started_at: record.started_at.clone(),
        series: files::series_of(&path).map_or_else(|| series_of(record), str::to_owned),
        load_key: format!("{:032x}", XxHash3_128::oneshot(load_key(record).as_bytes())),
        load: load_words(record),
        failure: record.why_partial(),
        facts: facts_by_name(record),
        phases: points_of(record),
        path,
    }
}

fn read(path: &Path) -> Result<Record, String> {
    let text = fs::read(path).and_then(report::unpack);
    report::from_json(&text.map_err(|error| format!("cannot read the file: {error}"))?)
}
