//! A driver made of two others, for loads of operations of two kinds: it waits for both.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::contract::CLASSES_MAX;
use crate::{Completions, Driver, Error, Operation, Submitted, Tally, Wait};

/// Longest wait for a driver without an event, while the other one may complete something.
const SLICE: Duration = Duration::from_micros(200);
/// Longest wait for two events: drivers look at their own time limits, and at interrupts, when they are asked.
const SLEEP: Duration = Duration::from_millis(50);

/// An operation of one of two kinds. Both share the slots of the worker; the classes of the second come after those of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// Of the first kind.
    First(A),
    /// Of the second kind.
    Second(B),
}

/// Names of the classes of two kinds, one after the other.
const fn both(
    first: &'static [&'static str],
    second: &'static [&'static str],
) -> [&'static str; CLASSES_MAX] {
    let mut all = [""; CLASSES_MAX];
    let mut at = 0;
    while at < first.len() + second.len() {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

macro_rules! of_either {
    ($self:ident, $operation:ident => $what:expr) => {
        match $self {
            Self::First($operation) => $what,
            Self::Second($operation) => $what,
        }
    };
}

impl<A: Operation, B: Operation> Either<A, B> {
    const ALL: &'static [&'static str; CLASSES_MAX] = &both(A::CLASSES, B::CLASSES);

    fn is_second(&self) -> bool {
        matches!(self, Self::Second(_))
    }
}

impl<A: Operation, B: Operation> Operation for Either<A, B> {
    const CLASSES: &'static [&'static str] = Self::ALL.split_at(A::CLASSES.len() + B::CLASSES.len()).0;

    #[inline]
    fn class(&self) -> usize {
        match self {
            Self::First(operation) => operation.class(),
            Self::Second(operation) => A::CLASSES.len() + operation.class(),
        }
    }

    #[inline]
    fn slot(&self) -> u32 {
        of_either!(self, operation => operation.slot())
    }

    #[inline]
    fn bytes(&self) -> u64 {
        of_either!(self, operation => operation.bytes())
    }

    #[inline]
    fn position(&self) -> u64 {
        of_either!(self, operation => operation.position())
    }

    fn target(&self) -> u16 {
        of_either!(self, operation => operation.target())
    }

    #[inline]
    fn is_limited(&self) -> bool {
        of_either!(self, operation => operation.is_limited())
    }

    #[inline]
    fn begins_item(&self) -> bool {
        of_either!(self, operation => operation.begins_item())
    }

    #[inline]
    fn ends_item(&self) -> bool {
        of_either!(self, operation => operation.ends_item())
    }

    #[inline]
    fn item_place(&self) -> u32 {
        of_either!(self, operation => operation.item_place())
    }

    #[inline]
    fn part(&self) -> usize {
        of_either!(self, operation => operation.part())
    }

    #[inline]
    fn moved_bytes(&self, result: i64) -> u64 {
        of_either!(self, operation => operation.moved_bytes(result))
    }
}

/// One of the two drivers.
struct Side<Op> {
    driver: Box<dyn Driver<Op>>,
    batch: Vec<Op>,
    in_flight: usize,
}

impl<Op> Side<Op> {
    fn new(mut driver: Box<dyn Driver<Op>>, depth: u32) -> Result<Self, Error> {
        // It prepares for being waited for by its event.
        driver.event()?;
        Ok(Self { driver, batch: Vec::with_capacity(depth as usize), in_flight: 0 })
    }

    /// Hands the batch over; how many it took.
    fn submit(&mut self, done: &mut Completions) -> Result<usize, Error> {
        let before = done.len();
        let Submitted { accepted } = self.driver.submit(&self.batch, done)?;
        self.in_flight += accepted - (done.len() - before);
        Ok(accepted)
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let before = done.len();
        self.driver.reap(wait, done)?;
        self.in_flight -= done.len() - before;
        Ok(())
    }
}

/// Two drivers as one. Each carries its own operations out; a wait ends with the completions of either. A driver with an event ([`Driver::event`])
/// costs no time while the other is waited for; one without is asked every 200 us.
pub struct Joined<A, B> {
    first: Side<A>,
    second: Side<B>,
    /// Of each slot, whether its last operation was of the second.
    is_second: Vec<bool>,
}

impl<A: Operation, B: Operation> Joined<A, B> {
    /// Both, for `depth` operations in flight together. Each must take as many.
    ///
    /// # Errors
    /// When an event cannot be made.
    ///
    /// # Panics
    /// Where both together have more than [`CLASSES_MAX`] classes: found when it is compiled.
    pub fn new(first: Box<dyn Driver<A>>, second: Box<dyn Driver<B>>, depth: u32) -> Result<Self, Error> {
        const { assert!(A::CLASSES.len() + B::CLASSES.len() <= CLASSES_MAX) };
        let (first, second) = (Side::new(first, depth)?, Side::new(second, depth)?);
        Ok(Self { first, second, is_second: vec![false; depth as usize] })
    }

    /// Sleeps until either has completed something, `left` at most. Whether there may be more to wait for: not after a signal.
    fn sleep(&mut self, left: Option<Duration>, done: &mut Completions) -> Result<bool, Error> {
        let before = done.len();
        let slice = left.unwrap_or(SLICE).min(SLICE);
        let wait = Wait::Timeout { count: 1, timeout_ns: slice.as_nanos() as u64 };
        let (first, second) = (self.first.driver.event()?, self.second.driver.event()?);
        match (first, second) {
            (Some(first), Some(second)) => {
                let mut events = [
                    PollFd::from_borrowed_fd(first, PollFlags::IN),
                    PollFd::from_borrowed_fd(second, PollFlags::IN),
                ];
                let longest = left.map_or(SLEEP, |left| left.min(SLEEP));
                let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(longest.subsec_nanos()) };
                return match poll(&mut events, Some(&timeout)) {
                    Ok(_) => Ok(true),
                    Err(Errno::INTR) => Ok(false),
                    Err(errno) => Err(Error::system("reap", "poll failed", errno)),
                };
            }
            (Some(_), None) => self.second.reap(wait, done)?,
            (None, Some(_)) => self.first.reap(wait, done)?,
            (None, None) => {
                self.first.reap(wait, done)?;
                if done.len() == before {
                    self.second.reap(wait, done)?;
                }
            }
        }
        Ok(true)
    }
}

impl<A: Operation, B: Operation> Driver<Either<A, B>> for Joined<A, B> {
    fn submit(&mut self, batch: &[Either<A, B>], done: &mut Completions) -> Result<Submitted, Error> {
        let mut accepted = 0;
        for run in batch.chunk_by(|one, next| one.is_second() == next.is_second()) {
            self.first.batch.clear();
            self.second.batch.clear();
            for operation in run {
                self.is_second[operation.slot() as usize] = operation.is_second();
                match operation {
                    Either::First(operation) => self.first.batch.push(*operation),
                    Either::Second(operation) => self.second.batch.push(*operation),
                }
            }
            let is_second = run.first().is_some_and(Either::is_second);
            let taken = if is_second { self.second.submit(done)? } else { self.first.submit(done)? };
            accepted += taken;
            if taken < run.len() {
                break;
            }
        }
        Ok(Submitted { accepted })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        // With one of them idle, the other waits by itself.
        match (self.first.in_flight, self.second.in_flight) {
            (0, _) => return self.second.reap(wait, done),
            (_, 0) => return self.first.reap(wait, done),
            _ => {}
        }
        let (count, deadline) = wait.deadline();
        let enough = done.len() + count;
        loop {
            self.first.reap(Wait::None, done)?;
            if done.room() > 0 {
                self.second.reap(Wait::None, done)?;
            }
            let is_idle = self.first.in_flight + self.second.in_flight == 0;
            if is_idle || done.len() >= enough || done.room() == 0 {
                return Ok(());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) || !self.sleep(left, done)? {
                return Ok(());
            }
        }
    }

    fn cause(&self, slot: u32, result: i64) -> Option<String> {
        match self.is_second.get(slot as usize) {
            Some(true) => self.second.driver.cause(slot, result),
            _ => self.first.driver.cause(slot, result),
        }
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let mut tallies = self.first.driver.tallies();
        tallies.extend(self.second.driver.tallies());
        tallies
    }

    fn findings(&mut self) -> Vec<String> {
        let mut findings = self.first.driver.findings();
        findings.extend(self.second.driver.findings());
        findings
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Number<const OF: usize>(u32);

    impl<const OF: usize> Operation for Number<OF> {
        const CLASSES: &'static [&'static str] = if OF == 0 { &["a"] } else { &["b", "c"] };

        fn class(&self) -> usize {
            OF
        }

        fn slot(&self) -> u32 {
            self.0
        }

        fn bytes(&self) -> u64 {
            0
        }
    }

    /// Keeps what it is given until so many reaps were made, or for ever.
    struct Keeps {
        slots: Vec<u32>,
        reaps_left: usize,
        takes: usize,
        event: Option<OwnedFd>,
    }

    impl Keeps {
        fn until(reaps_left: usize) -> Box<Self> {
            Box::new(Self { slots: Vec::new(), reaps_left, takes: usize::MAX, event: None })
        }

        /// One whose event is readable from the start.
        fn with_event(mut self: Box<Self>) -> Box<Self> {
            self.event = Some(eventfd(1, EventfdFlags::NONBLOCK).expect("an event"));
            self
        }
    }

    impl<const OF: usize> Driver<Number<OF>> for Keeps {
        fn submit(&mut self, batch: &[Number<OF>], _done: &mut Completions) -> Result<Submitted, Error> {
            let accepted = batch.len().min(self.takes);
            self.slots.extend(batch[..accepted].iter().map(|operation| operation.0));
            Ok(Submitted { accepted })
        }

        fn reap(&mut self, _wait: Wait, done: &mut Completions) -> Result<(), Error> {
            if self.reaps_left > 0 {
                self.reaps_left -= 1;
                return Ok(());
            }
            self.slots.drain(..).for_each(|slot| done.push(slot, OF as i64));
            Ok(())
        }

        fn event(&mut self) -> Result<Option<BorrowedFd<'_>>, Error> {
            Ok(self.event.as_ref().map(|event| event.as_fd()))
        }

        fn cause(&self, slot: u32, _result: i64) -> Option<String> {
            Some(format!("{OF}: {slot}"))
        }

        fn findings(&mut self) -> Vec<String> {
            vec![format!("of {OF}")]
        }
    }

    type Op = Either<Number<0>, Number<1>>;

    fn joined(first: Box<Keeps>, second: Box<Keeps>) -> Joined<Number<0>, Number<1>> {
        Joined::new(first, second, 8).expect("joined")
    }

    const MIXED: [Op; 4] = [
        Either::First(Number(0)),
        Either::Second(Number(1)),
        Either::Second(Number(2)),
        Either::First(Number(3)),
    ];

    fn reaped(driver: &mut Joined<Number<0>, Number<1>>, wait: Wait) -> Vec<(u32, i64)> {
        let mut done = Completions::with_depth(8);
        driver.reap(wait, &mut done).expect("reaped");
        done.as_slice().iter().map(|completion| (completion.slot, completion.result)).collect()
    }

    #[test]
    fn classes_of_both_stand_side_by_side() {
        assert_eq!(Op::CLASSES, ["a", "b", "c"]);
        assert_eq!(MIXED.map(|operation| operation.class()), [0, 2, 2, 0]);
        assert_eq!(MIXED.map(|operation| operation.slot()), [0, 1, 2, 3]);
    }

    #[test]
    fn a_wait_ends_with_the_completions_of_either() {
        for has_events in [false, true] {
            let event = |keeps: Box<Keeps>| if has_events { keeps.with_event() } else { keeps };
            // The first keeps its operations for many reaps, the second gives them soon.
            let mut driver = joined(event(Keeps::until(1000)), event(Keeps::until(3)));
            let mut done = Completions::with_depth(8);
            assert_eq!(driver.submit(&MIXED, &mut done).expect("taken"), Submitted { accepted: 4 });
            assert_eq!(reaped(&mut driver, Wait::AtLeast(1)), [(1, 1), (2, 1)], "events: {has_events}");
            assert_eq!(reaped(&mut driver, Wait::None), []);
            // Now the first is waited for alone, in its own way.
            while reaped(&mut driver, Wait::AtLeast(2)).is_empty() {}
            assert_eq!(driver.first.in_flight + driver.second.in_flight, 0);
        }
    }

    #[test]
    fn a_time_limit_ends_a_wait_for_both() {
        let mut driver = joined(Keeps::until(usize::MAX), Keeps::until(usize::MAX));
        driver.submit(&MIXED, &mut Completions::with_depth(8)).expect("taken");
        assert_eq!(reaped(&mut driver, Wait::Timeout { count: 1, timeout_ns: 2_000_000 }), []);
        assert_eq!((driver.first.in_flight, driver.second.in_flight), (2, 2));
    }

    #[test]
    fn what_one_does_not_take_ends_the_batch() {
        let mut second = Keeps::until(0);
        second.takes = 1;
        let mut driver = joined(Keeps::until(0), second);
        let mut done = Completions::with_depth(8);
        assert_eq!(driver.submit(&MIXED, &mut done).expect("taken"), Submitted { accepted: 2 });
        assert_eq!(reaped(&mut driver, Wait::AtLeast(2)), [(0, 0), (1, 1)]);
        assert_eq!(driver.submit(&MIXED[2..], &mut done).expect("taken"), Submitted { accepted: 2 });
        assert_eq!(
            (driver.cause(2, -5), driver.cause(3, -5)),
            (Some("1: 2".to_owned()), Some("0: 3".to_owned()))
        );
        assert_eq!(driver.findings(), ["of 0", "of 1"]);
    }
}
