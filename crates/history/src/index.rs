//! The index: figures of all runs in SQLite, so that a year of records is not read to show it.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use driver::{Error, ErrorKind};
use report::compare::{FigureName, PhasePoint};
use report::history::HistoryRun;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use twox_hash::XxHash3_128;

use crate::files::Found;

/// Name of the index in the directory of a history.
pub const INDEX_NAME: &str = "history.sqlite";
/// Version of the tables. An index of another version is made anew.
const VERSION: i32 = 1;
/// Marks the file as ours (`PRAGMA application_id`): "stra".
const APPLICATION: i32 = 0x7374_7261;
/// First bytes of every database (https://www.sqlite.org/fileformat.html, 1.3), and where the application's mark stands.
const HEADER: &[u8] = b"SQLite format 3\0";
const APPLICATION_AT: usize = 68;
/// Longest wait for another process that writes.
const BUSY: Duration = Duration::from_secs(60);

const TABLES: &str = "
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    problem TEXT
);
CREATE TABLE runs (
    path TEXT PRIMARY KEY REFERENCES files ON DELETE CASCADE,
    run_id TEXT NOT NULL,
    started_at TEXT NOT NULL,
    series TEXT NOT NULL,
    load_key TEXT NOT NULL,
    load TEXT NOT NULL,
    failure TEXT,
    checksum TEXT NOT NULL
);
CREATE TABLE facts (
    path TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    fact TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (path, number)
) WITHOUT ROWID;
CREATE TABLE phases (
    path TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    headline TEXT NOT NULL,
    warnings TEXT NOT NULL,
    PRIMARY KEY (path, number)
) WITHOUT ROWID;
CREATE TABLE figures (
    path TEXT NOT NULL,
    number INTEGER NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (path, number, metric),
    FOREIGN KEY (path, number) REFERENCES phases ON DELETE CASCADE
) WITHOUT ROWID;
";

/// The open index.
pub(crate) struct Index {
    connection: Connection,
    /// Why it is in memory, where it is.
    pub(crate) in_memory: Option<String>,
}

/// A record as the index takes it, or why it is none.
pub(crate) type Parsed = Result<HistoryRun, String>;

fn failed(error: &rusqlite::Error) -> Error {
    Error::new(ErrorKind::System, "history", format!("the index cannot be used: {error}"))
        .remedy(format!("delete {INDEX_NAME}: it is made again from the records"))
}

/// A failure of the index.
pub(crate) enum Failure {
    /// It is damaged: it can be made again from the records.
    Damaged(Error),
    /// The directory takes none: it cannot be written, or is full.
    NoRoom(String),
    /// Anything else.
    Other(Error),
}

impl Failure {
    fn of(error: &rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqliteFailure(code, _) if is_damage(code.code) => Self::Damaged(failed(error)),
            rusqlite::Error::SqliteFailure(code, message) if is_refusal(code.code) => {
                Self::NoRoom(message.clone().unwrap_or_else(|| code.to_string()))
            }
            // A value that is not of its column's type was not written by strata.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => Self::Damaged(failed(error)),
            _ => Self::Other(failed(error)),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Damaged(error) | Failure::Other(error) => error,
            Failure::NoRoom(why) => {
                Error::new(ErrorKind::System, "history", format!("the index cannot be written: {why}"))
            }
        }
    }
}

/// Removes the index of a directory: it holds nothing that is not in the records.
fn remove(directory: &Path) {
    for end in ["", "-journal"] {
        let _ = fs::remove_file(directory.join(format!("{INDEX_NAME}{end}")));
    }
}

/// Whether a file of the name of the index is somebody else's.
fn is_of_others(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    match fs::File::open(path) {
        Ok(file) => file.take(100).read_to_end(&mut start)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mark = start.get(APPLICATION_AT..APPLICATION_AT + 4);
    let is_ours = start.starts_with(HEADER) && mark == Some(&APPLICATION.to_be_bytes()[..]);
    // An empty one was made and not yet written by a process beside this one, or one that was killed.
    Ok(!start.is_empty() && !is_ours)
}

impl Index {
    /// Opens the index of a directory, or makes it. Where the directory cannot be written it is in memory.
    ///
    /// # Errors
    /// A file of its name that is not an index, and failures of SQLite.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(INDEX_NAME);
        let is_of_others = is_of_others(&path).map_err(|error| {
            Error::system("history", "cannot read the index", error).with("path", path.display())
        })?;
        if is_of_others {
            return Err(Error::usage("history", "this file is not an index of strata")
                .with("path", path.display())
                .remedy("move it away: a history has its index under this name"));
        }
        match Self::on_drive(&path) {
            Ok(index) => Ok(index),
            Err(error) => match Failure::of(&error) {
                Failure::Damaged(_) => Self::again(directory),
                Failure::NoRoom(why) => Self::in_memory(why),
                Failure::Other(error) => Err(error),
            },
        }
    }

    /// An index that lasts as long as the process, because of this.
    ///
    /// # Errors
    /// Failures of SQLite.
    pub(crate) fn in_memory(why: String) -> Result<Self, Error> {
        let connection = Connection::open_in_memory().map_err(|error| failed(&error))?;
        let mut index = Self { connection, in_memory: Some(why) };
        index.prepare().map_err(|error| failed(&error))?;
        Ok(index)
    }

    /// Makes the index of a directory anew.
    ///
    /// # Errors
    /// Failures of SQLite.
    pub(crate) fn again(directory: &Path) -> Result<Self, Error> {
        remove(directory);
        Self::on_drive(&directory.join(INDEX_NAME)).map_err(|error| failed(&error))
    }

    fn on_drive(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        let mut index = Self { connection, in_memory: None };
        index.prepare()?;
        Ok(index)
    }

    /// Makes the tables where they are missing or of another version.
    fn prepare(&mut self) -> rusqlite::Result<()> {
        let connection = &mut self.connection;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let version =
            |of: &Connection| of.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0));
        if version(connection)? == VERSION {
            return check(connection);
        }
        let change = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process may have made them meanwhile.
        if version(&change)? != VERSION {
            for table in ["figures", "phases", "facts", "runs", "files"] {
                change.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
            }
            change.execute_batch(TABLES)?;
            change.pragma_update(None, "application_id", APPLICATION)?;
            change.pragma_update(None, "user_version", VERSION)?;
        }
        change.commit()
    }

    /// Makes the index follow the files: new and changed ones are read by `parse`, and those that are gone are dropped.
    ///
    /// # Errors
    /// Failures of SQLite.
    pub(crate) fn follow(
        &mut self,
        found: &[Found],
        parse: impl Fn(&Found) -> Parsed,
    ) -> Result<(), Failure> {
        self.try_follow(found, parse).map_err(|error| Failure::of(&error))
    }

    fn try_follow(&mut self, found: &[Found], parse: impl Fn(&Found) -> Parsed) -> rusqlite::Result<()> {
        let known = known(&self.connection)?;
        let is_known = |file: &Found| known.get(&file.path) == Some(&(file.size_bytes, file.modified_ns));
        let fresh: Vec<&Found> = found.iter().filter(|file| !is_known(file)).collect();
        let gone: Vec<&String> =
            known.keys().filter(|path| found.iter().all(|file| file.path != **path)).collect();
        if fresh.is_empty() && gone.is_empty() {
            return Ok(());
        }
        // Records are read before others are kept waiting.
        let fresh: Vec<(&Found, Parsed)> = fresh.into_iter().map(|file| (file, parse(file))).collect();
        let change = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for path in gone.into_iter().chain(fresh.iter().map(|(file, _)| &file.path)) {
            change.execute("DELETE FROM files WHERE path = ?1", [path])?;
        }
        for (file, parsed) in &fresh {
            insert(&change, file, parsed)?;
        }
        change.commit()
    }

    /// All runs, each once, by the moments at which they began; and files that are none, with the reason.
    ///
    /// # Errors
    /// Failures of SQLite.
    pub(crate) fn runs(&self) -> Result<(Vec<HistoryRun>, Vec<String>), Failure> {
        self.try_runs().map_err(|error| Failure::of(&error))
    }

    fn try_runs(&self) -> rusqlite::Result<(Vec<HistoryRun>, Vec<String>)> {
        let mut problems: Vec<String> = Vec::new();
        let mut statement = self
            .connection
            .prepare("SELECT path, problem FROM files WHERE problem IS NOT NULL ORDER BY path")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (path, problem) = row?;
            problems.push(format!("ignored {path}: {problem}"));
        }
        let mut statement = self.connection.prepare(
            "SELECT path, run_id, started_at, series, load_key, load, failure, checksum FROM runs
             ORDER BY started_at, run_id, path",
        )?;
        let rows = statement.query_map([], |row| {
            let run = HistoryRun {
                path: row.get(0)?,
                run_id: row.get(1)?,
                started_at: row.get(2)?,
                series: row.get(3)?,
                load_key: row.get(4)?,
                load: row.get(5)?,
                failure: row.get(6)?,
                facts: Vec::new(),
                phases: Vec::new(),
            };
            Ok((run, row.get::<_, String>(7)?))
        })?;
        let mut runs: Vec<HistoryRun> = Vec::new();
        for row in rows {
            let (mut run, expected) = row?;
            run.facts = self.facts(&run.path)?;
            run.phases = self.phases(&run.path)?;
            if checksum(&run) != expected {
                return Err(damaged(format!("{}: its checksum is wrong", run.path)));
            }
            match runs.iter().find(|known| known.run_id == run.run_id && known.series == run.series) {
                Some(known) => problems.push(format!("ignored {}: the same run as {}", run.path, known.path)),
                None => runs.push(run),
            }
        }
        Ok((runs, problems))
    }

    fn facts(&self, path: &str) -> rusqlite::Result<Vec<(String, String)>> {
        let mut statement =
            self.connection.prepare("SELECT fact, value FROM facts WHERE path = ?1 ORDER BY number")?;
        statement.query_map([path], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    fn phases(&self, path: &str) -> rusqlite::Result<Vec<PhasePoint>> {
        let mut figures: HashMap<i64, Vec<(FigureName, f64)>> = HashMap::new();
        let mut statement =
            self.connection.prepare("SELECT number, metric, value FROM figures WHERE path = ?1")?;
        let rows = statement.query_map([path], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, f64>(2)?))
        })?;
        for row in rows {
            let (number, metric, value) = row?;
            if let Ok(metric) = metric.parse() {
                figures.entry(number).or_default().push((metric, value));
            }
        }
        let mut statement = self.connection.prepare(
            "SELECT number, name, occurrence, headline, warnings FROM phases WHERE path = ?1 ORDER BY number",
        )?;
        let rows = statement.query_map([path], |row| {
            let (headline, warnings): (String, String) = (row.get(3)?, row.get(4)?);
            let mut figures = figures.remove(&row.get::<_, i64>(0)?).unwrap_or_default();
            figures.sort_by_key(|(figure, _)| *figure);
            Ok(PhasePoint {
                name: row.get(1)?,
                occurrence: row.get::<_, i64>(2)? as usize,
                headline: headline.parse().unwrap_or(FigureName::Rate),
                warnings: warnings.split(' ').filter(|kind| !kind.is_empty()).map(str::to_owned).collect(),
                figures,
            })
        })?;
        rows.collect()
    }

    /// Path of the record of a run in a series, if it is there.
    ///
    /// # Errors
    /// Failures of SQLite.
    pub(crate) fn path_of(&self, run_id: &str, series: &str) -> Result<Option<String>, Error> {
        let found = self.connection.query_row(
            "SELECT path FROM runs WHERE run_id = ?1 AND series = ?2",
            [run_id, series],
            |row| row.get(0),
        );
        found.optional().map_err(|error| failed(&error))
    }
}

/// Refuses an index whose pages or tables are damaged: small as it is, reading all of it costs little.
fn check(connection: &Connection) -> rusqlite::Result<()> {
    let found: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    let mut tables = connection.prepare("SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid)")?;
    let sql: Option<String> = tables.query_row([], |row| row.get(0))?;
    let plain = |text: &str| text.split_whitespace().collect::<String>().replace(';', "");
    if found == "ok" && plain(&sql.unwrap_or_default()) == plain(TABLES) {
        return Ok(());
    }
    Err(damaged(found))
}

fn damaged(why: String) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(code, Some(why))
}

/// Checksum of all that the index has of a run: SQLite itself does not notice a value that has changed on the drive.
fn checksum(run: &HistoryRun) -> String {
    format!("{:032x}", XxHash3_128::oneshot(format!("{run:?}").as_bytes()))
}

/// Errors by which an index is damaged: it is made again.
fn is_damage(code: rusqlite::ErrorCode) -> bool {
    matches!(code, rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
}

/// Errors by which the directory cannot be written, or is full.
fn is_refusal(code: rusqlite::ErrorCode) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly};
    matches!(code, CannotOpen | DiskFull | PermissionDenied | ReadOnly)
}

fn known(connection: &Connection) -> rusqlite::Result<HashMap<String, (u64, i64)>> {
    let mut statement = connection.prepare("SELECT path, size_bytes, modified_ns FROM files")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)?)))
    })?;
    rows.collect()
}

fn insert(change: &Transaction<'_>, file: &Found, parsed: &Parsed) -> rusqlite::Result<()> {
    let problem = parsed.as_ref().err();
    change.execute(
        "INSERT INTO files VALUES (?1, ?2, ?3, ?4)",
        params![file.path, file.size_bytes as i64, file.modified_ns, problem],
    )?;
    let Ok(run) = parsed else { return Ok(()) };
    change.execute(
        "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            file.path,
            run.run_id,
            run.started_at,
            run.series,
            run.load_key,
            run.load,
            run.failure,
            checksum(run)
        ],
    )?;
    for (number, (fact, value)) in run.facts.iter().enumerate() {
        change.execute(
            "INSERT INTO facts VALUES (?1, ?2, ?3, ?4)",
            params![file.path, number as i64, fact, value],
        )?;
    }
    for (number, phase) in run.phases.iter().enumerate() {
        let number = number as i64;
        change.execute(
            "INSERT INTO phases VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                file.path,
                number,
                phase.name,
                phase.occurrence as i64,
                phase.headline.key(),
                phase.warnings.join(" ")
            ],
        )?;
        for (figure, value) in &phase.figures {
            change.execute(
                "INSERT INTO figures VALUES (?1, ?2, ?3, ?4)",
                params![file.path, number, figure.key(), value],
            )?;
        }
    }
    Ok(())
}
