//! A point of a phase that all workers of all hosts come to.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use driver::Error;

use super::{Hosts, Met};

/// Workers come to it and ask whether all have come, here and on all other hosts; they neither lock nor wait. What each has done by then is merged.
#[derive(Debug)]
pub struct Meeting {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    workers: u32,
    came: AtomicU32,
    /// Of the workers here.
    most: AtomicU64,
    least: AtomicU64,
    sum: AtomicU64,
    /// Of the workers of all hosts.
    most_of_all: AtomicU64,
    is_met: AtomicBool,
    /// Nobody asks any more.
    is_over: AtomicBool,
    /// The thread that goes to the other hosts; none where there are none.
    messenger: OnceLock<Thread>,
}

impl Meeting {
    /// Of so many workers of this host, and those of the others where there are any. All hosts name it the same, and no two have one name.
    ///
    /// # Errors
    /// When the thread that goes to the others cannot be started.
    pub fn new(name: &str, workers: u32, hosts: Option<&Hosts>) -> Result<Self, Error> {
        let state = Arc::new(State {
            workers,
            came: AtomicU32::new(0),
            most: AtomicU64::new(0),
            least: AtomicU64::new(u64::MAX),
            sum: AtomicU64::new(0),
            most_of_all: AtomicU64::new(0),
            is_met: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            messenger: OnceLock::new(),
        });
        if let Some(hosts) = hosts {
            let (shared, link, name) = (Arc::clone(&state), Arc::clone(&hosts.link), name.to_owned());
            let go = move || {
                if shared.await_here() {
                    shared.meet(link.meet(&name, &[shared.most.load(Ordering::Relaxed)]));
                }
            };
            let thread = std::thread::Builder::new()
                .name("meeting".to_owned())
                .spawn(go)
                .map_err(|error| Error::system("threads", "cannot start a thread", error))?;
            // Set once, before any worker comes.
            let _ = state.messenger.set(thread.thread().clone());
        }
        Ok(Self { state })
    }

    /// A worker comes, and has done so much.
    pub fn come(&self, done: u64) {
        let State { most, least, sum, came, .. } = &*self.state;
        most.fetch_max(done, Ordering::Relaxed);
        least.fetch_min(done, Ordering::Relaxed);
        sum.fetch_add(done, Ordering::Relaxed);
        let came = came.fetch_add(1, Ordering::AcqRel) + 1;
        match self.state.messenger.get() {
            Some(messenger) if came == self.state.workers => messenger.unpark(),
            _ => {}
        }
    }

    /// Whether all have come, of all hosts that are not gone; true too where the way to the others was lost, because nobody would come.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.state.messenger.get() {
            Some(_) => self.state.is_met.load(Ordering::Acquire),
            None => self.state.is_whole(),
        }
    }

    /// Once it is met: what the worker had done that had done most, of all hosts.
    #[must_use]
    pub fn most(&self) -> u64 {
        let State { most, most_of_all, .. } = &*self.state;
        most.load(Ordering::Relaxed).max(most_of_all.load(Ordering::Relaxed))
    }

    /// Of the workers here that came: the most, the least and the sum of what they had done; none where nobody came.
    #[must_use]
    pub fn seen_here(&self) -> Option<(u64, u64, u64)> {
        let State { most, least, sum, came, .. } = &*self.state;
        let has_any = came.load(Ordering::Acquire) > 0;
        has_any.then(|| {
            (most.load(Ordering::Relaxed), least.load(Ordering::Relaxed), sum.load(Ordering::Relaxed))
        })
    }
}

impl State {
    fn is_whole(&self) -> bool {
        self.came.load(Ordering::Acquire) >= self.workers
    }

    /// Waits until all workers here have come; false where nobody asks any more.
    fn await_here(&self) -> bool {
        while !self.is_whole() {
            if self.is_over.load(Ordering::Acquire) {
                return false;
            }
            std::thread::park();
        }
        true
    }

    fn meet(&self, met: Result<Met, Error>) {
        let most = met.ok().and_then(|met| met.figures.first().map(|figure| figure.most));
        self.most_of_all.store(most.unwrap_or(0), Ordering::Relaxed);
        self.is_met.store(true, Ordering::Release);
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Release);
        if let Some(messenger) = self.state.messenger.get() {
            messenger.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use workload::plan::HostPlace;

    use super::super::{HostLink, Together};
    use super::*;

    fn wait(meeting: &Meeting) {
        while !meeting.is_met() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn workers_of_all_hosts_meet() {
        let together = Together::new(3);
        let meeting =
            |rank, workers| Meeting::new("m", workers, Some(&together.seen_by(rank))).expect("a thread");
        let [first, second, third] = [meeting(0, 2), meeting(1, 1), meeting(2, 1)];
        first.come(4);
        second.come(9);
        third.come(1);
        assert!(!first.is_met() && !second.is_met(), "a worker is missing");
        first.come(2);
        [&first, &second, &third].into_iter().for_each(wait);
        assert_eq!([&first, &second, &third].map(Meeting::most), [9; 3]);
        assert_eq!((first.seen_here(), third.seen_here()), (Some((4, 2, 6)), Some((1, 1, 1))));
    }

    #[test]
    fn a_host_that_is_gone_holds_nobody_up() {
        let together = Together::new(2);
        let meeting = Meeting::new("m", 1, Some(&together.seen_by(0))).expect("a thread");
        meeting.come(3);
        assert!(!meeting.is_met());
        together.gone(1);
        wait(&meeting);
        assert_eq!(meeting.most(), 3);
    }

    #[test]
    fn a_run_that_is_stopped_holds_nobody_up() {
        let together = Together::new(2);
        let meeting = Meeting::new("m", 1, Some(&together.seen_by(0))).expect("a thread");
        meeting.come(3);
        together.stop();
        wait(&meeting);
    }

    #[test]
    fn a_lost_link_holds_nobody_up_and_nobody_is_left_behind() {
        struct Lost;
        impl HostLink for Lost {
            fn meet(&self, _: &str, _: &[u64]) -> Result<Met, Error> {
                Err(Error::usage("test", "lost"))
            }
        }
        let place = HostPlace { rank: 0, hosts: 2, ..HostPlace::default() };
        let hosts = Hosts { place, link: Arc::new(Lost) };
        let meeting = Meeting::new("m", 1, Some(&hosts)).expect("a thread");
        meeting.come(7);
        wait(&meeting);
        assert_eq!(meeting.most(), 7);
        // One that nobody came to ends its thread when it goes.
        struct Tells(std::sync::mpsc::Sender<()>);
        impl HostLink for Tells {
            fn meet(&self, _: &str, _: &[u64]) -> Result<Met, Error> {
                let _ = self.0.send(());
                Err(Error::usage("test", "nobody came"))
            }
        }
        let (sender, receiver) = channel();
        let hosts = Hosts { place, link: Arc::new(Tells(sender)) };
        drop(Meeting::new("m", 1, Some(&hosts)).expect("a thread"));
        drop(hosts);
        assert!(receiver.recv().is_err(), "the thread has let its link go");
    }

    #[test]
    fn alone_the_workers_here_are_all() {
        let meeting = Meeting::new("m", 2, None).expect("no thread");
        assert_eq!(meeting.seen_here(), None);
        meeting.come(1);
        assert!(!meeting.is_met());
        meeting.come(5);
        assert!(meeting.is_met());
        assert_eq!((meeting.most(), meeting.seen_here()), (5, Some((5, 1, 6))));
    }
}
