//! Hosts of one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use driver::{Error, ErrorKind};
use fleet::{Meetings, Met};
use workload::plan::HostPlace;

use super::{HostLink, Hosts};

/// Hosts that are threads of one process and meet in its memory.
#[derive(Debug)]
pub struct Together {
    state: Mutex<State>,
    changed: Condvar,
    hosts: u32,
}

#[derive(Debug)]
struct State {
    meetings: Meetings,
    /// Outcome of each meeting, and the hosts that have not asked for it.
    over: BTreeMap<String, (Met, u32)>,
    is_stopped: bool,
}

impl Together {
    /// So many of them.
    #[must_use]
    pub fn new(hosts: u32) -> Arc<Self> {
        let state = State { meetings: Meetings::new(hosts), over: BTreeMap::new(), is_stopped: false };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new(), hosts })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, as the one of this rank sees them.
    #[must_use]
    pub fn seen_by(self: &Arc<Self>, rank: u32) -> Hosts {
        let link = Arc::new(At { rank, together: Arc::clone(self) });
        let place = HostPlace { rank, hosts: self.hosts, ..HostPlace::default() };
        Hosts { place, link }
    }

    /// One of them is gone.
    pub fn gone(&self, rank: u32) {
        let mut state = self.state();
        let over = state.meetings.leave(rank);
        state.over.extend(over.into_iter().map(|(name, met)| (name, (met.clone(), met.hosts))));
        self.changed.notify_all();
    }

    /// The run is stopped: nobody waits any more.
    pub fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }
}

/// One of the hosts.
struct At {
    rank: u32,
    together: Arc<Together>,
}

impl HostLink for At {
    fn meet(&self, meeting: &str, said: &[u64]) -> Result<Met, Error> {
        let mut state = self.together.state();
        if let Some(met) = state.meetings.say(self.rank, meeting, said)? {
            let hosts = met.hosts;
            state.over.insert(meeting.to_owned(), (met, hosts));
            self.together.changed.notify_all();
        }
        loop {
            if let Some((met, left)) = state.over.get_mut(meeting) {
                let met = met.clone();
                *left = left.saturating_sub(1);
                if *left == 0 {
                    state.over.remove(meeting);
                }
                return Ok(met);
            }
            if state.is_stopped {
                return Err(Error::new(ErrorKind::Run, "meeting", "the run is being stopped"));
            }
            state = self.together.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
