//! The side of the host: one session at a time, on a thread of its own, stopped and cleaned up when its leader is gone.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use serde_json::Value;
use statistics::Pack as _;
use tokio::sync::mpsc::Sender;

use super::meeting::HostMeetings;
use super::messages::{SessionRequest, StagePart};
use super::patch;
use crate::clock::unix_ns;
use crate::limits::{GO_TIMEOUT, IDLE_TIMEOUT, RESULT_BYTES_MAX, START_DELAY_MAX};
use crate::messages::{ProgressReport, Refusal, RefusalKind, line, read_json};
use crate::packing::pack_part;
use crate::server::{Lease, panic_text};
use crate::wire;
use crate::wire::from_host::Message as Said;

/// How often a wait looks whether it has become pointless: at first, and when it lasts.
const TICK: Duration = Duration::from_millis(20);
const TICK_MAX: Duration = Duration::from_millis(200);

/// Work of a process that takes part in runs of others. Called on ordinary threads.
pub trait SessionHost: Send + Sync {
    /// Summary of a run in one line for the audit log.
    fn what(&self, request: &SessionRequest) -> String;

    /// Directories and devices that runs are held to, for the audit log; none where they are not held to any.
    fn roots(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the kernel holds this process to the roots, for the audit log.
    fn is_confined(&self) -> bool {
        false
    }

    /// Plans a run; nothing is touched yet. `stop` is raised when the run shall end after what is in flight, or its leader is gone. The whole
    /// session stays on the calling thread. In its stages the host meets the others by `meetings`.
    ///
    /// # Errors
    /// Why it does not take part; the leader is told.
    fn begin(
        &self,
        request: &SessionRequest,
        peer: SocketAddr,
        stop: &Arc<AtomicBool>,
        meetings: &Arc<HostMeetings>,
    ) -> Result<Box<dyn HostSession>, Error>;
}

/// A run in which this process takes part.
pub trait HostSession {
    /// The phases that were planned.
    fn planned(&self) -> Value;

    /// Runs a stage: gets it ready, waits by [`SessionLink::start`], and hands over what was measured by [`SessionLink::part`].
    ///
    /// # Errors
    /// Why it could not begin.
    fn stage(&mut self, stage: Value, link: &SessionLink) -> Result<(), Error>;

    /// Removes what it made; lines about what is left.
    fn end(&mut self) -> Vec<String>;
}

/// Commands of a leader to the thread of a session.
#[derive(Debug)]
pub(crate) enum Told {
    Prepare(Vec<u8>),
    GoAt(u64),
    End,
}

/// Way of a session's thread to its leader.
pub struct SessionLink {
    said: Sender<Said>,
    told: Receiver<Told>,
    stop: Arc<AtomicBool>,
    progress_interval: Duration,
    shown: RefCell<(Option<Instant>, Value)>,
}

fn gone() -> Error {
    Error::new(ErrorKind::Run, "session", "the leader disconnected")
}

impl SessionLink {
    pub(crate) fn new(
        said: Sender<Said>,
        told: Receiver<Told>,
        stop: Arc<AtomicBool>,
        progress_interval: Duration,
    ) -> Self {
        Self { said, told, stop, progress_interval, shown: RefCell::new((None, Value::Null)) }
    }

    fn say(&self, said: Said) -> Result<(), Error> {
        self.said.blocking_send(said).map_err(|_| gone())
    }

    /// Tells the leader that this host is ready, with notes for its user, and waits until it gives a start: how long until then, in nanoseconds,
    /// and by how much it lies in the past already.
    ///
    /// # Errors
    /// The run was stopped before, the leader is gone, or no start came within 15 minutes.
    pub fn start(&self, notes: Vec<String>) -> Result<(u64, u64), Error> {
        self.say(Said::Ready(wire::Ready { notes }))?;
        let (since, mut tick) = (Instant::now(), TICK);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::new(
                    ErrorKind::Run,
                    "start",
                    "the run was stopped before the stage began",
                ));
            }
            match self.told.recv_timeout(tick) {
                Ok(Told::GoAt(start_unix_ns)) => {
                    let now = unix_ns();
                    let delay_ns = start_unix_ns.saturating_sub(now);
                    if Duration::from_nanos(delay_ns) > START_DELAY_MAX {
                        let message =
                            format!("a start in {delay_ns} ns; at most {START_DELAY_MAX:?} are accepted");
                        return Err(Error::new(ErrorKind::Run, "start", message)
                            .remedy("check whether the clock of this host was changed"));
                    }
                    return Ok((delay_ns, now.saturating_sub(start_unix_ns)));
                }
                Ok(_) => return Err(Error::new(ErrorKind::Run, "start", "an unexpected message")),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) if since.elapsed() > GO_TIMEOUT => {
                    let message = format!("the leader sent no start within {GO_TIMEOUT:?}");
                    return Err(Error::new(ErrorKind::Run, "start", message));
                }
                Err(RecvTimeoutError::Timeout) => tick = (tick * 2).min(TICK_MAX),
            }
        }
    }

    /// Shows progress, at the interval that the leader wants. What the channel has no room for is dropped.
    pub fn progress(&self, report: &ProgressReport) {
        let (shown, known) = &mut *self.shown.borrow_mut();
        if shown.is_some_and(|shown| shown.elapsed() < self.progress_interval) {
            return;
        }
        // A report that is no JSON would only be missed on a screen.
        let Some((new, histograms)) = value_of(report) else { return };
        let patch = patch::between(known, &new);
        let said = Said::Progress(wire::Progress { report: patch.to_string().into_bytes(), histograms });
        if self.said.try_send(said).is_ok() {
            (*shown, *known) = (Some(Instant::now()), new);
        }
    }

    /// Hands over some of what was measured.
    ///
    /// # Errors
    /// The leader is gone, or the part is too large.
    pub fn part(&self, mut part: StagePart) -> Result<(), Error> {
        let (json, histograms) = pack_part(&mut part).map_err(|error| {
            Error::new(ErrorKind::Run, "result", format!("it cannot be written as JSON: {error}"))
        })?;
        let bytes = json.len() + histograms.len();
        if bytes > RESULT_BYTES_MAX {
            let message =
                format!("a part of it has {bytes} bytes, but at most {RESULT_BYTES_MAX} are transferred");
            return Err(Error::new(ErrorKind::Run, "result", message)
                .remedy("use a longer interval or fewer threads"));
        }
        self.say(Said::Part(wire::Part { part: json, histograms }))
    }
}

/// A report as JSON, and its histograms, packed.
pub(super) fn value_of(report: &ProgressReport) -> Option<(Value, Vec<u8>)> {
    let ProgressReport::Running(snapshot) = report else {
        return Some((serde_json::to_value(report).ok()?, Vec::new()));
    };
    let (mut snapshot, mut histograms) = (snapshot.clone(), Vec::new());
    snapshot.pack(&mut histograms);
    Some((serde_json::to_value(ProgressReport::Running(snapshot)).ok()?, histograms))
}

/// Arguments of a session's thread.
pub(crate) struct SessionJob {
    pub(crate) host: Arc<dyn SessionHost>,
    pub(crate) request: SessionRequest,
    pub(crate) peer: SocketAddr,
    pub(crate) link: SessionLink,
    pub(crate) meetings: Arc<HostMeetings>,
    pub(crate) lease: Lease,
}

impl SessionJob {
    /// Runs it on a thread of its own, which is not waited for: it frees the host when it ends.
    pub(crate) fn spawn(self) -> Result<(), Refusal> {
        std::thread::Builder::new().name("session".to_owned()).spawn(move || self.run()).map(drop).map_err(
            |error| Refusal::of(&Error::system("session", "cannot start a thread for the session", error)),
        )
    }

    fn run(self) {
        let Self { host, request, peer, link, meetings, lease } = self;
        let work = AssertUnwindSafe(|| match host.begin(&request, peer, &link.stop, &meetings) {
            Ok(session) => attend(session, &link),
            Err(error) => Said::Refused(Refusal::of(&error).to_wire()),
        });
        let last = catch_unwind(work).unwrap_or_else(|panic| {
            let line = line(&format!("session: its thread panicked: {}", panic_text(panic.as_ref())));
            Said::Refused(Refusal { kind: RefusalKind::Run, line }.to_wire())
        });
        // The host is free before the leader hears of the end, so that it may go on at once.
        drop(lease);
        // A leader that is gone needs no farewell.
        let _ = link.said.blocking_send(last);
    }
}

/// Carries out what the leader says, until the end; what is said last.
fn attend(mut session: Box<dyn HostSession>, link: &SessionLink) -> Said {
    let planned = session.planned().to_string().into_bytes();
    let mut is_heard = link.say(Said::Planned(wire::Planned { planned })).is_ok();
    while is_heard {
        let failure = match link.told.recv_timeout(IDLE_TIMEOUT) {
            Ok(Told::Prepare(stage)) => {
                *link.shown.borrow_mut() = (None, Value::Null);
                let stage = read_json::<Value>(stage)
                    .map_err(|error| crate::messages::unreadable("session", "stage", &error));
                stage.and_then(|stage| session.stage(stage, link)).err()
            }
            // A start that came too late for a stage that could not begin.
            Ok(Told::GoAt(_)) => continue,
            Ok(Told::End) | Err(_) => break,
        };
        let failure = failure.map(|error| line(&error.to_string()));
        is_heard = link.say(Said::StageEnd(wire::StageEnd { failure })).is_ok();
    }
    link.stop.store(true, Ordering::Relaxed);
    let left = session.end();
    Said::Ended(wire::Ended { left: left.iter().map(|left| line(left)).collect() })
}
