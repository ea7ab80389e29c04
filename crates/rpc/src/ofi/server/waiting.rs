//! How the service thread waits.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use crate::Poll;
use crate::inbox::Inbox;
use crate::ofi::port::Port;
use crate::ofi::watch::Watch;

/// How often connections and stalls are looked at while there is work.
const ATTEND: Duration = Duration::from_millis(1);
/// How long an adaptive thread asks again before it sleeps.
pub(crate) const SPIN: Duration = Duration::from_micros(100);
/// Idle rounds between two looks at the clock.
const ROUNDS: u32 = 64;
/// Longest sleep: connections and stalls are looked at after it.
const SLEEP: Duration = Duration::from_millis(100);
/// Sleeps where the provider has nothing to sleep on: first and longest.
const NAP_FIRST: Duration = Duration::from_micros(10);
const NAP_LAST: Duration = Duration::from_micros(200);

/// The state of waiting.
pub(super) struct Waiting {
    poll: Poll,
    /// The bell and the clients' connections, and last the queue's descriptor.
    watch: Watch,
    descriptors: Vec<RawFd>,
    rounds: u32,
    busy: u32,
    idle_since: Option<Instant>,
    attended: Instant,
    visited: Instant,
    nap: Duration,
}

impl Waiting {
    pub(super) fn new(poll: Poll) -> Self {
        Self {
            poll,
            watch: Watch::default(),
            descriptors: Vec::new(),
            rounds: 0,
            busy: 0,
            idle_since: None,
            attended: Instant::now(),
            visited: Instant::now(),
            nap: NAP_FIRST,
        }
    }

    /// Sets the descriptors that end a wait besides the fabric's.
    pub(super) fn watch(&mut self, inbox: &Inbox, clients: impl Iterator<Item = RawFd>) {
        self.descriptors.clear();
        self.descriptors.push(inbox.as_fd().as_raw_fd());
        self.descriptors.extend(clients);
        self.watch.set(self.descriptors.iter().copied());
        self.attended = Instant::now();
        self.visited = self.attended;
    }

    /// There was work. Whether connections are to be looked at now.
    #[inline]
    pub(super) fn worked(&mut self) -> bool {
        self.rounds = 0;
        self.idle_since = None;
        self.nap = NAP_FIRST;
        self.busy += 1;
        self.busy.is_multiple_of(1024) && self.is_due(Instant::now())
    }

    fn is_due(&mut self, now: Instant) -> bool {
        if now.duration_since(self.attended) < ATTEND {
            return false;
        }
        self.attended = now;
        self.watch.wait(Duration::ZERO) > 0 || now.duration_since(self.visited) > SLEEP
    }

    /// There was none: waits as it is to. Whether connections are to be looked at now.
    pub(super) fn idle(&mut self, port: &mut Port, is_alone: bool, can_sleep: bool) -> bool {
        if is_alone {
            self.watch.wait(SLEEP);
            return true;
        }
        self.rounds += 1;
        if self.poll != Poll::Block && !self.rounds.is_multiple_of(ROUNDS) {
            std::hint::spin_loop();
            return false;
        }
        let now = Instant::now();
        let since = *self.idle_since.get_or_insert(now);
        let spins = match self.poll {
            Poll::Spin => true,
            Poll::Adaptive => now.duration_since(since) < SPIN,
            Poll::Block => false,
        };
        if spins || !can_sleep {
            return self.is_due(now);
        }
        self.sleep(port)
    }

    fn sleep(&mut self, port: &mut Port) -> bool {
        let Some(descriptor) = port.wait().map(|descriptor| descriptor.as_raw_fd()) else {
            let found = self.watch.wait(self.nap) > 0;
            self.nap = (self.nap * 2).min(NAP_LAST);
            return found || self.visited.elapsed() > SLEEP;
        };
        if !port.may_sleep() {
            return false;
        }
        let count = self.descriptors.len();
        self.watch.set(self.descriptors.iter().copied().chain([descriptor]));
        let ready = self.watch.wait(SLEEP);
        let found = (0..count).any(|at| self.watch.is_ready(at));
        self.watch.set(self.descriptors.iter().copied());
        found || ready == 0
    }
}
