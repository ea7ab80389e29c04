//! The audit log of a service: one JSON line an event.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use driver::Error;
use serde::Serialize;

use crate::clock::unix_ns;
use crate::messages::line;

/// Older logs that are kept: `FILE.1` is the latest.
const KEPT: u32 = 4;
/// Refusals of strangers at once, and time until there is room for another: a flood must not push out what matters.
const BURST: u32 = 50;
const REFILL: Duration = Duration::from_secs(1);

/// Events of a service.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditEvent {
    /// A caller has proven itself.
    Connected,
    /// A caller, or what it asked for, was refused.
    Refused {
        /// Why: one line.
        why: String,
    },
    /// A run began.
    Began {
        /// Name of the run or job.
        run: String,
        /// Its work, in the words of the request.
        what: String,
        /// Roots that it is held to.
        roots: Vec<String>,
        /// Whether the kernel holds the process to them.
        confined: bool,
    },
    /// A run ended.
    Ended {
        /// Name of the run or job.
        run: String,
        /// Why it failed; none where it did not.
        failure: Option<String>,
    },
    /// A run was told to stop.
    Interrupted {
        /// Name of the run or job.
        run: String,
    },
    /// The process was told to end.
    Quit,
}

/// Who did it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AuditCaller {
    /// Address of the other end.
    pub(crate) peer: SocketAddr,
    /// Name that it calls itself: `user@host`. Whoever knows the token may say anything here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
}

#[derive(Serialize)]
struct AuditLine<'a> {
    unix_ns: u64,
    #[serde(flatten)]
    caller: &'a AuditCaller,
    #[serde(flatten)]
    event: &'a AuditEvent,
    #[serde(skip_serializing_if = "is_zero")]
    omitted: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Where events go.
pub struct Audit(Mutex<State>);

struct State {
    sink: Sink,
    budget: u32,
    refilled: Instant,
    omitted: u64,
    has_failed: bool,
}

enum Sink {
    StandardError,
    File { file: File, path: PathBuf, bytes: u64, bytes_max: u64 },
}

impl Audit {
    /// Largest log before it is put aside, in bytes, where nothing else is asked for.
    pub const BYTES_MAX_DEFAULT: u64 = 16 << 20;

    /// To standard error.
    #[must_use]
    pub fn standard_error() -> Self {
        Self::new(Sink::StandardError)
    }

    /// To a file of its owner alone, which is put aside as `FILE.1` before it becomes larger than `bytes_max`; four of these are kept.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn file(path: &Path, bytes_max: u64) -> Result<Self, Error> {
        let open = open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = open.map_err(|error| {
            Error::system("audit", "cannot open the audit log", error)
                .with("path", path.display())
                .remedy("use a file that this user can write: --audit FILE")
        })?;
        Ok(Self::new(Sink::File { file, path: path.to_owned(), bytes, bytes_max }))
    }

    fn new(sink: Sink) -> Self {
        let refilled = Instant::now();
        Self(Mutex::new(State { sink, budget: BURST, refilled, omitted: 0, has_failed: false }))
    }

    /// Notes an event. Refusals of callers that have not proven themselves are left out where they come too fast, and counted.
    pub(crate) fn note(&self, caller: &AuditCaller, event: &AuditEvent, is_stranger: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_stranger && !state.has_room() {
            state.omitted += 1;
            return;
        }
        let omitted = std::mem::take(&mut state.omitted);
        let line = AuditLine { unix_ns: unix_ns(), caller, event, omitted };
        let Ok(mut json) = serde_json::to_string(&line) else { return };
        json.push('\n');
        if let Err(error) = state.sink.write(&json)
            && !std::mem::replace(&mut state.has_failed, true)
        {
            // Once: a full disk would fill the terminal too.
            eprintln!("strata: audit: cannot write the audit log: {error}");
        }
    }
}

impl State {
    fn has_room(&mut self) -> bool {
        let earned = u32::try_from(self.refilled.elapsed().as_secs() / REFILL.as_secs()).unwrap_or(BURST);
        if earned > 0 {
            self.budget = BURST.min(self.budget.saturating_add(earned));
            self.refilled = Instant::now();
        }
        let has_room = self.budget > 0;
        self.budget = self.budget.saturating_sub(1);
        has_room
    }
}

impl Sink {
    fn write(&mut self, json: &str) -> io::Result<()> {
        match self {
            Self::StandardError => io::stderr().write_all(json.as_bytes()),
            Self::File { file, path, bytes, bytes_max } => {
                let length = json.len() as u64;
                if *bytes > 0 && *bytes + length > *bytes_max {
                    put_aside(path)?;
                    *file = open(path)?;
                    *bytes = 0;
                }
                *bytes += length;
                file.write_all(json.as_bytes())
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn put_aside(path: &Path) -> io::Result<()> {
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", path.display()));
    for number in (1..KEPT).rev() {
        match fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, numbered(1))
}

impl AuditEvent {
    pub(crate) fn refused(why: &str) -> Self {
        Self::Refused { why: line(why) }
    }
}
