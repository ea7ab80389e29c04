//! A driver over a queue with known service times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use driver::{Clock, Completions, Driver, Error, Operation, Submitted, Wait};

use crate::clock::{Seat, VirtualClock};
use crate::service::{Generator, Service};

/// Cost of a reap without waiting that finds nothing, in nanoseconds: it lets time go on for those who poll.
const POLL_NS: u64 = 100;

struct Model {
    generator: Generator,
    /// When each server is done with what was given to it.
    free_at_ns: Vec<u64>,
}

/// A target with some servers in parallel and one queue in front of them, first come, first served. Clones share the servers, so
/// that several workers can load one target.
#[derive(Clone)]
pub struct SimulatedTarget {
    clock: VirtualClock,
    model: Arc<Mutex<Model>>,
    depth_max: usize,
    submission_ns: u64,
    is_synchronous: bool,
}

impl SimulatedTarget {
    /// A target with `servers` servers that work at the pace of `service`.
    ///
    /// # Panics
    /// Without a server, and for a service without time.
    #[must_use]
    pub fn new(clock: &VirtualClock, service: Service, servers: usize) -> Self {
        assert!(servers > 0, "a target needs a server");
        let model = Model { generator: Generator::new(service), free_at_ns: vec![0; servers] };
        Self {
            clock: clock.clone(),
            model: Arc::new(Mutex::new(model)),
            depth_max: usize::MAX,
            submission_ns: 0,
            is_synchronous: false,
        }
    }

    /// Lets each driver take `depth_max` operations at most; it is busy for the rest.
    #[must_use]
    pub fn with_depth_max(mut self, depth_max: usize) -> Self {
        self.depth_max = depth_max;
        self
    }

    /// Lets each call of submission take `submission_ns`; service begins after it.
    #[must_use]
    pub fn with_submission_ns(mut self, submission_ns: u64) -> Self {
        self.submission_ns = submission_ns;
        self
    }

    /// Lets each call of submission carry one operation out, as a blocking system call does.
    #[must_use]
    pub fn synchronous(mut self) -> Self {
        self.is_synchronous = true;
        self
    }

    /// A driver for the calling thread, which takes part in the clock's time as long as the driver lives.
    #[must_use]
    pub fn driver<Op>(&self) -> SimulatedDriver<Op> {
        SimulatedDriver {
            target: self.clone(),
            _seat: self.clock.seat(),
            pending: BinaryHeap::new(),
            submitted: 0,
            operation: PhantomData,
        }
    }

    /// When an operation given at `now_ns` will be done.
    fn accept(&self, now_ns: u64) -> u64 {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let Model { generator, free_at_ns } = &mut *model;
        let start_ns = self.clock.now_ns() - self.clock.elapsed_ns();
        free_at_ns.iter_mut().min().map_or(now_ns, |free| {
            let begin_ns = (*free).max(now_ns);
            *free = begin_ns + generator.next_ns(begin_ns - start_ns);
            *free
        })
    }
}

/// An operation in flight; ordered by when it is done, then by when it came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    done_ns: u64,
    number: u64,
    slot: u32,
    bytes: u64,
}

/// One worker's access to a [`SimulatedTarget`]. Every operation succeeds, when its service time has gone by.
pub struct SimulatedDriver<Op> {
    target: SimulatedTarget,
    _seat: Seat,
    pending: BinaryHeap<Reverse<Pending>>,
    submitted: u64,
    operation: PhantomData<fn(Op)>,
}

impl<Op> SimulatedDriver<Op> {
    /// When `count` of the operations in flight, or all of them where there are fewer, will be done.
    fn done_at(&self, count: u32) -> Option<u64> {
        if count <= 1 {
            return self.pending.peek().map(|Reverse(pending)| pending.done_ns);
        }
        let mut times: Vec<u64> = self.pending.iter().map(|Reverse(pending)| pending.done_ns).collect();
        times.sort_unstable();
        times.get((count as usize).min(times.len()).checked_sub(1)?).copied()
    }
}

impl<Op: Operation> Driver<Op> for SimulatedDriver<Op> {
    fn submit(&mut self, batch: &[Op], done: &mut Completions) -> Result<Submitted, Error> {
        let clock = &self.target.clock;
        clock.wait_until(clock.now_ns() + self.target.submission_ns);
        let now_ns = clock.now_ns();
        let taken_max = if self.target.is_synchronous { 1 } else { usize::MAX };
        let accepted = batch.len().min(self.target.depth_max - self.pending.len()).min(taken_max);
        for operation in &batch[..accepted] {
            let done_ns = self.target.accept(now_ns);
            let (slot, bytes) = (operation.slot(), operation.bytes());
            self.pending.push(Reverse(Pending { done_ns, number: self.submitted, slot, bytes }));
            self.submitted += 1;
        }
        if self.target.is_synchronous {
            self.reap(Wait::AtLeast(1), done)?;
        }
        Ok(Submitted { accepted })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let clock = &self.target.clock;
        let now_ns = clock.now_ns();
        let until_ns = match wait {
            Wait::None => self.done_at(1).map(|at_ns| at_ns.min(now_ns + POLL_NS)),
            Wait::AtLeast(0) => None,
            Wait::AtLeast(count) => self.done_at(count),
            Wait::Timeout { count, timeout_ns } => {
                self.done_at(count).map(|at_ns| at_ns.min(now_ns + timeout_ns))
            }
        };
        if let Some(until_ns) = until_ns {
            clock.wait_until(until_ns);
        }
        let now_ns = clock.now_ns();
        while let Some(Reverse(next)) = self.pending.peek().filter(|Reverse(next)| next.done_ns <= now_ns) {
            if done.room() == 0 {
                break;
            }
            done.push(next.slot, next.bytes as i64);
            self.pending.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::TestOp;

    const MS: u64 = 1_000_000;

    fn batch(slots: std::ops::Range<u32>) -> Vec<TestOp> {
        slots.map(|slot| TestOp { class: 0, slot, bytes: 512, part: 0 }).collect()
    }

    #[test]
    fn servers_work_in_parallel_and_the_rest_queues() {
        let clock = VirtualClock::new();
        let mut driver = SimulatedTarget::new(&clock, Service::Fixed(MS), 2).driver::<TestOp>();
        let mut done = Completions::with_depth(5);
        assert_eq!(driver.submit(&batch(0..5), &mut done).map(|taken| taken.accepted).ok(), Some(5));
        for (count, elapsed_ns) in [(2, MS), (2, 2 * MS), (1, 3 * MS)] {
            done.clear();
            assert!(driver.reap(Wait::AtLeast(1), &mut done).is_ok());
            assert_eq!((done.len(), clock.elapsed_ns()), (count, elapsed_ns));
        }
        done.clear();
        assert!(driver.reap(Wait::AtLeast(1), &mut done).is_ok());
        assert_eq!((done.len(), clock.elapsed_ns()), (0, 3 * MS), "nothing is in flight: no wait");
    }

    #[test]
    fn submission_takes_its_time_and_may_wait_for_completion() {
        let clock = VirtualClock::new();
        let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 2).with_submission_ns(300_000);
        let mut done = Completions::with_depth(2);
        let mut driver = target.driver::<TestOp>();
        assert_eq!(driver.submit(&batch(0..2), &mut done).map(|taken| taken.accepted).ok(), Some(2));
        assert_eq!((done.len(), clock.elapsed_ns()), (0, 300_000));
        assert!(driver.reap(Wait::AtLeast(2), &mut done).is_ok());
        assert_eq!((done.len(), clock.elapsed_ns()), (2, 1_300_000));
        done.clear();
        let mut driver = target.synchronous().driver::<TestOp>();
        assert_eq!(driver.submit(&batch(0..2), &mut done).map(|taken| taken.accepted).ok(), Some(1));
        assert_eq!((done.len(), clock.elapsed_ns()), (1, 2_600_000));
    }

    #[test]
    fn waits_as_long_as_it_is_told() {
        let clock = VirtualClock::new();
        let target =
            SimulatedTarget::new(&clock, Service::List(vec![MS, 2 * MS, 4 * MS]), 3).with_depth_max(3);
        let mut driver = target.driver::<TestOp>();
        let mut done = Completions::with_depth(4);
        assert_eq!(driver.submit(&batch(0..4), &mut done).map(|taken| taken.accepted).ok(), Some(3));
        let mut reap = |wait| {
            assert!(driver.reap(wait, &mut done).is_ok());
            (done.len(), clock.elapsed_ns())
        };
        assert_eq!(reap(Wait::None), (0, POLL_NS));
        assert_eq!(reap(Wait::Timeout { count: 1, timeout_ns: 400_000 - POLL_NS }), (0, 400_000));
        assert_eq!(reap(Wait::Timeout { count: 2, timeout_ns: 10 * MS }), (2, 2 * MS));
        assert_eq!(reap(Wait::AtLeast(7)), (3, 4 * MS));
    }
}
