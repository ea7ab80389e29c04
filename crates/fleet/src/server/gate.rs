//! The start that all hosts have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use tokio::sync::mpsc::Sender;

use crate::clock::unix_ns;
use crate::limits::GO_TIMEOUT;
use crate::server::job::JobEvent;

/// How often a wait looks whether it has become pointless.
const TICK: Duration = Duration::from_millis(20);

/// Below this a sleep would wake too late: the rest is spun.
const SPIN: Duration = Duration::from_micros(200);

/// Holds a job until the coordinator starts all hosts.
#[derive(Debug)]
pub struct StartGate {
    events: Sender<JobEvent>,
    go: Receiver<Instant>,
    stop: Arc<AtomicBool>,
}

impl StartGate {
    pub(crate) fn new(events: Sender<JobEvent>, go: Receiver<Instant>, stop: Arc<AtomicBool>) -> Self {
        Self { events, go, stop }
    }

    /// Tells the coordinator that this host is ready, with notes for its user, and waits for the common start, which it
    /// returns.
    ///
    /// # Errors
    ///
    /// The job was stopped before it began, the coordinator is gone, or no start came within 15 minutes.
    pub fn wait(self, notes: Vec<String>) -> Result<Instant, Error> {
        let gone = || Error::new(ErrorKind::Run, "start", "the coordinator disconnected before the start");
        self.events.blocking_send(JobEvent::Ready(notes)).map_err(|_| gone())?;
        let since = Instant::now();
        let start = loop {
            self.check_stop()?;
            match self.go.recv_timeout(TICK) {
                Ok(start) => break start,
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) if since.elapsed() > GO_TIMEOUT => {
                    return Err(Error::new(
                        ErrorKind::Run,
                        "start",
                        format!("the coordinator sent no start within {GO_TIMEOUT:?}"),
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        loop {
            self.check_stop()?;
            let left = start.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if left > SPIN {
                std::thread::sleep((left - SPIN).min(TICK));
            } else {
                std::hint::spin_loop();
            }
        }
        self.events.blocking_send(JobEvent::Started(unix_ns())).map_err(|_| gone())?;
        Ok(start)
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Run, "start", "the job was stopped before it began"));
        }
        Ok(())
    }
}
