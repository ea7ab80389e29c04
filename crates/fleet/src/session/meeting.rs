//! Meetings of a host with the other hosts of its run, by way of the leader.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use driver::{Error, ErrorKind};
use tokio::sync::mpsc::{Sender, WeakSender};

use crate::meetings::{Figure, Met};
use crate::wire;
use crate::wire::from_host::Message as Said;

/// How often a wait looks whether the run is being stopped.
const TICK: Duration = Duration::from_millis(20);

/// Meetings of a host. Any of its threads may come to one.
#[derive(Debug)]
pub struct HostMeetings {
    /// Weak: the channel ends with the thread of the session.
    said: WeakSender<Said>,
    /// Meetings that somebody here waits for, and their outcomes.
    waited: Mutex<HashMap<String, Option<Met>>>,
    changed: Condvar,
    stop: Arc<AtomicBool>,
}

impl HostMeetings {
    pub(crate) fn new(said: &Sender<Said>, stop: &Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            said: said.downgrade(),
            waited: Mutex::default(),
            changed: Condvar::new(),
            stop: Arc::clone(stop),
        })
    }

    /// Says figures, and waits until all hosts have said theirs that take part in the stage.
    ///
    /// # Errors
    /// The run is being stopped, or the leader is gone.
    pub fn meet(&self, meeting: &str, said: &[u64]) -> Result<Met, Error> {
        let gone = || Error::new(ErrorKind::Run, "meeting", "the leader disconnected");
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        waited.insert(meeting.to_owned(), None);
        let message = Said::Meet(wire::Meet { meeting: meeting.to_owned(), said: said.to_vec() });
        drop(waited);
        let sender = self.said.upgrade().ok_or_else(gone)?;
        sender.blocking_send(message).map_err(|_| gone())?;
        drop(sender);
        waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(Some(met)) = waited.get(meeting) {
                let met = met.clone();
                waited.remove(meeting);
                return Ok(met);
            }
            if self.stop.load(Ordering::Relaxed) {
                waited.remove(meeting);
                return Err(Error::new(ErrorKind::Run, "meeting", "the run is being stopped"));
            }
            waited = self.changed.wait_timeout(waited, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The leader says that all have met.
    pub(crate) fn told(&self, met: wire::Met) {
        let figure = |figure: wire::Figure| {
            let wire::Figure { least, most, sum } = figure;
            Figure { least, most, sum }
        };
        let wire::Met { meeting, hosts, figures } = met;
        let met = Met { hosts, figures: figures.into_iter().map(figure).collect() };
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = waited.get_mut(&meeting) {
            *place = Some(met);
            self.changed.notify_all();
        }
    }
}

/// The message that a leader has for the hosts that met.
pub(super) fn to_wire(meeting: String, met: &Met) -> wire::Met {
    let figure = |figure: &Figure| wire::Figure { least: figure.least, most: figure.most, sum: figure.sum };
    wire::Met { meeting, hosts: met.hosts, figures: met.figures.iter().map(figure).collect() }
}
