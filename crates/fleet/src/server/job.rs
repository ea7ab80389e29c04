//! One job at a time, on a thread of its own.

use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use tokio::sync::mpsc::Sender;

use crate::limits::RESULT_BYTES_MAX;
use crate::messages::{OutcomeMessage, PlanMessage, ProgressReport, Refusal, RefusalKind, line};
use crate::packing::{pack_outcome, pack_progress};
use crate::server::agent::Agent;
use crate::server::gate::StartGate;

/// Events that a job's thread sends to the channel.
#[derive(Debug)]
pub(crate) enum JobEvent {
    Ready(Vec<String>),
    Started(u64),
    /// JSON of a progress report, and its histograms.
    Progress(Vec<u8>, Vec<u8>),
    /// JSON of an outcome, and its histograms.
    Done(Vec<u8>, Vec<u8>),
    /// It came to nothing.
    Ended(Refusal),
}

/// Who asks for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    peer: SocketAddr,
    /// Name that it gives itself.
    name: Option<String>,
}

impl Caller {
    pub(crate) fn new(peer: SocketAddr, name: Option<String>) -> Self {
        Self { peer, name }
    }
}

impl From<SocketAddr> for Caller {
    fn from(peer: SocketAddr) -> Self {
        Self { peer, name: None }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.peer),
            None => write!(f, "{}", self.peer),
        }
    }
}

/// Who has the agent.
#[derive(Debug)]
struct Holder {
    caller: Caller,
    since: Instant,
    name: String,
    stop: Arc<AtomicBool>,
    interrupted_by: Option<Caller>,
}

/// The one place for a job that an agent has.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    holder: Mutex<Option<Holder>>,
    freed: Condvar,
}

impl Slot {
    /// Takes the place, or says who has it.
    pub(crate) fn take(
        self: &Arc<Self>,
        caller: impl Into<Caller>,
        name: &str,
        stop: &Arc<AtomicBool>,
    ) -> Result<Lease, Refusal> {
        let mut holder = self.lock();
        if let Some(holder) = &*holder {
            let state = if holder.stop.load(Ordering::Relaxed) { ", which is ending" } else { "" };
            return Err(Refusal {
                kind: RefusalKind::Busy,
                line: line(&format!(
                    "run: the agent is in use by {} for {:.1} s, job {:?}{state}; wait for it to end, or interrupt it",
                    holder.caller,
                    holder.since.elapsed().as_secs_f64(),
                    holder.name
                )),
            });
        }
        *holder = Some(Holder {
            caller: caller.into(),
            since: Instant::now(),
            name: name.to_owned(),
            stop: Arc::clone(stop),
            interrupted_by: None,
        });
        Ok(Lease(Arc::clone(self)))
    }

    /// Tells the running job to stop, and gives its name.
    pub(crate) fn interrupt(&self, by: Option<Caller>) -> Option<String> {
        let mut holder = self.lock();
        let holder = holder.as_mut()?;
        holder.stop.store(true, Ordering::Relaxed);
        holder.interrupted_by = holder.interrupted_by.take().or(by);
        Some(holder.name.clone())
    }

    /// Waits until no job runs; whether that came within `timeout`.
    pub(crate) fn wait_free(&self, timeout: Duration) -> bool {
        let (holder, _) = self
            .freed
            .wait_timeout_while(self.lock(), timeout, |holder| holder.is_some())
            .unwrap_or_else(PoisonError::into_inner);
        holder.is_none()
    }

    fn interrupted_by(&self) -> Option<Caller> {
        self.lock().as_ref().and_then(|holder| holder.interrupted_by.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Holder>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place, taken; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease(Arc<Slot>);

impl Drop for Lease {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.freed.notify_all();
    }
}

/// Arguments of a job's thread.
pub(crate) struct Job {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) plan: PlanMessage,
    pub(crate) lease: Lease,
    pub(crate) events: Sender<JobEvent>,
    pub(crate) go: Receiver<Instant>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Job {
    /// Runs it on a thread of its own. The thread is not waited for: it frees the place when it ends.
    pub(crate) fn spawn(self) -> Result<(), Refusal> {
        std::thread::Builder::new()
            .name("job".to_owned())
            .spawn(move || self.run())
            .map(drop)
            .map_err(|error| Refusal::of(&Error::system("run", "cannot start a thread for the job", error)))
    }

    fn run(self) {
        let Self { agent, plan, lease, events, go, stop } = self;
        let gate = StartGate::new(events.clone(), go, Arc::clone(&stop));
        let mut throttle = Throttle::new(events.clone(), plan.progress_interval);
        let work = AssertUnwindSafe(|| {
            let prepared = agent.prepare(plan, &stop)?;
            prepared.run(gate, &mut |report| throttle.offer(&report), Arc::clone(&stop))
        });
        let end = match catch_unwind(work) {
            Ok(Ok(mut outcome)) => {
                if let Some(by) = lease.0.interrupted_by() {
                    outcome.notes.push(format!("the job was interrupted by {by}"));
                }
                encode(outcome, RESULT_BYTES_MAX)
            }
            Ok(Err(error)) => JobEvent::Ended(Refusal::of(&error)),
            Err(panic) => JobEvent::Ended(Refusal::of(&Error::new(
                ErrorKind::Run,
                "run",
                format!("the job's thread panicked: {}", panic_text(panic.as_ref())),
            ))),
        };
        // The place is free before the coordinator hears of the end, so that it may go on at once.
        drop(lease);
        // Nobody may be listening any more, and then nobody misses it.
        let _ = events.blocking_send(end);
    }
}

fn encode(mut outcome: OutcomeMessage, bytes_max: usize) -> JobEvent {
    match pack_outcome(&mut outcome) {
        Ok((json, histograms)) if json.len() + histograms.len() <= bytes_max => {
            JobEvent::Done(json, histograms)
        }
        Ok((json, histograms)) => JobEvent::Ended(Refusal {
            kind: RefusalKind::Size,
            line: format!(
                "result: it has {} bytes, but at most {bytes_max} are transferred; use a longer interval or fewer workers",
                json.len() + histograms.len()
            ),
        }),
        Err(error) => JobEvent::Ended(Refusal {
            kind: RefusalKind::Run,
            line: line(&format!("result: it cannot be written as JSON: {error}")),
        }),
    }
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Lets progress through at its interval. What the channel has no room for is dropped: newer progress follows, and a
/// slow coordinator must not hold up the job.
struct Throttle {
    events: Sender<JobEvent>,
    interval: Duration,
    last: Option<Instant>,
}

impl Throttle {
    fn new(events: Sender<JobEvent>, interval: Duration) -> Self {
        Self { events, interval, last: None }
    }

    fn offer(&mut self, report: &ProgressReport) {
        if self.last.is_some_and(|last| last.elapsed() < self.interval) {
            return;
        }
        if let Some((json, histograms)) = pack_progress(report)
            && self.events.try_send(JobEvent::Progress(json, histograms)).is_ok()
        {
            self.last = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_too_large_is_refused_with_both_sizes() {
        let outcome = OutcomeMessage { notes: vec!["x".repeat(1000)], ..OutcomeMessage::default() };
        assert!(matches!(encode(outcome.clone(), 2000), JobEvent::Done(..)));
        let JobEvent::Ended(refusal) = encode(outcome, 1000) else { panic!("it is too large") };
        assert_eq!(refusal.kind, RefusalKind::Size);
        assert!(refusal.line.contains("at most 1000 are transferred"), "{}", refusal.line);
    }
}
