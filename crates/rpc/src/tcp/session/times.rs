//! Times of requests in the server, for clients that ask for them ([`flag::TIMED`]). For others no clock is read.
//!
//! All of them are spans on this machine's own clocks. A request waits from when the kernel had its message until its turn comes; then it is carried out;
//! then its reply waits until it is handed to the kernel, for others that leave with it or for what is made durable for all of them. Making durable counts as
//! carrying out. Of that, the time in which the service waits for its storage is told apart. What bulk takes to come in and to go out is the network's.

use std::collections::VecDeque;
use std::net::TcpStream;

use driver::{Clock as _, HostClock};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Session;
use crate::socket;
use crate::tcp::ending::{Ending, hostile};
use crate::tcp::endpoint::{Endpoint, Settling};
use crate::tcp::memory::Output;
use crate::wire::{HEADER_BYTES, Header, ServerTimes, flag};

/// Readings that are kept at most. Beyond them the last one moves on, and waits look shorter.
const READINGS_MAX: usize = 64;
/// Replies that wait for their times at most; then all of them get theirs.
const LEAVING_MAX: usize = 512;

/// The kernel had the bytes up to `end` of the stream by then.
struct Reading {
    end: u64,
    at_ns: u64,
}

/// The request whose turn it is.
struct Turn {
    times: ServerTimes,
    since_ns: u64,
    /// Time that the service had waited for its storage when it began.
    waited_ns: u64,
}

/// A reply that has not left.
struct Leaving {
    /// Where its header begins in the stream of replies.
    start: u64,
    times: ServerTimes,
    since_ns: u64,
}

/// See the module. One a session.
#[derive(Default)]
pub(super) struct Times {
    /// The client has asked for times.
    is_on: bool,
    /// Bytes read, carried out, and written into the output, since then.
    read: u64,
    consumed: u64,
    written: u64,
    readings: VecDeque<Reading>,
    turn: Option<Turn>,
    leaving: Vec<Leaving>,
}

fn now_ns() -> u64 {
    HostClock::get().now_ns()
}

impl Session {
    /// Reads what has come of messages, as far as there is room.
    pub(super) fn fill(&mut self) -> Result<(), Ending> {
        let room = self.input.room();
        if room.is_empty() {
            return Ok(());
        }
        let came = if self.times.is_on {
            socket::receive_with_age(&self.messages, room)
        } else {
            rustix::net::recv(&self.messages, room, RecvFlags::DONTWAIT).map(|(bytes, _)| (bytes, 0))
        };
        match came {
            Ok((0, _)) if self.input.unread().is_empty() => Err(Ending::Gone),
            Ok((0, _)) => Err(hostile("it was closed in the middle of a message")),
            Ok((bytes, age_ns)) => {
                self.input.filled(bytes);
                self.received_bytes += bytes as u64;
                if self.times.is_on {
                    self.times.came_at(bytes, now_ns().saturating_sub(age_ns));
                }
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(Ending::Gone),
        }
    }
}

impl Times {
    fn came_at(&mut self, bytes: usize, at_ns: u64) {
        self.read += bytes as u64;
        let end = self.read;
        if self.readings.len() >= READINGS_MAX {
            self.readings.pop_back();
        }
        self.readings.push_back(Reading { end, at_ns });
    }

    /// The turn of the request has come that is the first of those `unread`. Said again while its bulk comes.
    #[inline]
    pub(super) fn turns_to(&mut self, request: &Header, unread: usize, messages: &TcpStream) {
        if request.flags & flag::TIMED == 0 || self.turn.is_some() {
            return;
        }
        if !self.is_on {
            // A kernel that does not say when bytes came has them come when they are read.
            let _told = socket::tell_ages(messages);
        }
        self.turns_at(HEADER_BYTES + request.inline_bytes as usize, unread, now_ns());
    }

    fn turns_at(&mut self, whole: usize, unread: usize, at_ns: u64) {
        if !self.is_on {
            self.is_on = true;
            self.came_at(unread, at_ns);
        }
        let end = self.consumed + whole as u64;
        let reading = self.readings.iter().find(|reading| reading.end >= end);
        let queue_ns = reading.map_or(0, |reading| at_ns.saturating_sub(reading.at_ns));
        self.turn = Some(Turn {
            times: ServerTimes { queue_ns, ..ServerTimes::default() },
            since_ns: at_ns,
            waited_ns: 0,
        });
    }

    /// The service has been asked where its bulk goes.
    pub(super) fn has_room(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.times.service_ns = now_ns().saturating_sub(turn.since_ns);
        }
    }

    /// It has come whole, and is carried out now.
    #[inline]
    pub(super) fn begins(&mut self, has_bulk: bool, endpoint: &Endpoint) {
        let Some(turn) = &mut self.turn else { return };
        turn.waited_ns = endpoint.storage_wait_ns();
        if has_bulk {
            turn.since_ns = now_ns();
        }
    }

    /// It was carried out; its message had `whole` bytes, and its reply is the last `bytes` of the output.
    #[inline]
    pub(super) fn ends(&mut self, (whole, bytes): (usize, usize), output: &mut Output, endpoint: &Endpoint) {
        if self.is_on {
            let waited_ns = if self.turn.is_some() { endpoint.storage_wait_ns() } else { 0 };
            self.ends_at((whole, bytes), output, endpoint.settling(), (now_ns(), waited_ns));
        }
    }

    fn ends_at(
        &mut self,
        (whole, bytes): (usize, usize),
        output: &mut Output,
        settling: Settling,
        (at_ns, until_waited_ns): (u64, u64),
    ) {
        self.consumed += whole as u64;
        while self.readings.front().is_some_and(|reading| reading.end <= self.consumed) {
            self.readings.pop_front();
        }
        let start = self.written;
        self.written += bytes as u64;
        let Some(Turn { mut times, since_ns, waited_ns }) = self.turn.take() else { return };
        times.worked(at_ns.saturating_sub(since_ns), until_waited_ns.saturating_sub(waited_ns));
        self.leaving.push(Leaving { start, times, since_ns: at_ns });
        if self.leaving.len() >= LEAVING_MAX {
            self.leave_at(0, output, settling, at_ns);
        }
    }

    /// The replies in the output leave. `settling` is when changes were made durable last.
    #[inline]
    pub(super) fn leave(&mut self, output: &mut Output, settling: Settling) {
        if !self.leaving.is_empty() {
            self.leave_at(0, output, settling, now_ns());
        }
    }

    /// The reply that is the last `bytes` of the output leaves: its bulk goes out now.
    pub(super) fn last_leaves(&mut self, bytes: usize, output: &mut Output, settling: Settling) {
        if self.leaving.last().is_some_and(|last| last.start + bytes as u64 == self.written) {
            self.leave_at(self.leaving.len() - 1, output, settling, now_ns());
        }
    }

    fn leave_at(&mut self, first: usize, output: &mut Output, settling: Settling, at_ns: u64) {
        for Leaving { start, mut times, since_ns } in self.leaving.drain(first..) {
            let settled_ns = settling.end_ns.min(at_ns).saturating_sub(settling.begin_ns.max(since_ns));
            times.worked(settled_ns, settling.storage_ns);
            times.queue_ns += at_ns.saturating_sub(since_ns).saturating_sub(settled_ns);
            let rest = output.last_mut((self.written - start) as usize);
            if let Some(head) = rest.first_chunk_mut::<HEADER_BYTES>() {
                times.put(head);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;
    use crate::share::Purse;

    const BYTES: usize = HEADER_BYTES + 10;

    /// Puts the reply to a request into the output.
    fn reply(output: &mut Output, purse: &Purse<'_>) {
        output.reserve(BYTES as u64, purse).expect("fits");
        let mut head = [0; HEADER_BYTES];
        Header { flags: flag::REPLY | flag::TIMED, inline_bytes: 10, ..Header::default() }.encode(&mut head);
        output.room(BYTES)[..HEADER_BYTES].copy_from_slice(&head);
        output.add(BYTES);
    }

    /// Times in the replies of an output.
    fn told(output: &Output) -> Vec<(u64, u64, u64)> {
        let heads = output.pending().chunks(BYTES).filter_map(|reply| reply.first_chunk());
        heads
            .filter_map(|head| ServerTimes::of(&Header::decode(head).expect("a header")))
            .map(|times| (times.queue_ns, times.service_ns, times.storage_ns))
            .collect()
    }

    const NEVER: Settling = Settling { begin_ns: 0, end_ns: 0, storage_ns: 0 };

    #[test]
    fn waits_and_work_are_told_apart() {
        let budget = Budget::new(1 << 20);
        let purse = Purse::of_nobody(&budget);
        let (mut times, mut output) = (Times::default(), Output::default());
        // Two requests of 100 bytes were read, and the first half of a third.
        times.turns_at(100, 250, 1000);
        reply(&mut output, &purse);
        times.ends_at((100, BYTES), &mut output, NEVER, (1030, 0));
        times.turns_at(100, 150, 1030);
        reply(&mut output, &purse);
        // The storage was waited for from 15 to 40 of its clock.
        times.turn.as_mut().expect("a turn").waited_ns = 15;
        times.ends_at((100, BYTES), &mut output, NEVER, (1100, 40));
        times.came_at(50, 1150);
        times.turns_at(100, 100, 1160);
        reply(&mut output, &purse);
        times.ends_at((100, BYTES), &mut output, NEVER, (1200, 0));
        // What was made durable from 1250 to 1290 is work for all three, and most of it was the storage's.
        let settling = Settling { begin_ns: 1250, end_ns: 1290, storage_ns: 30 };
        times.leave_at(0, &mut output, settling, 1300);
        assert_eq!(told(&output), [(230, 40, 30), (30 + 160, 45 + 10, 25 + 30), (10 + 60, 50, 30)]);
        output.sent(3 * BYTES);
        // The next ones are found behind it, and a sync that was over before they began is none of them.
        times.came_at(100, 2000);
        times.turns_at(100, 100, 2005);
        reply(&mut output, &purse);
        times.ends_at((100, BYTES), &mut output, settling, (2010, 0));
        times.leave_at(0, &mut output, settling, 2012);
        assert_eq!(told(&output), [(7, 5, 0)]);
        assert!(times.readings.is_empty() && times.leaving.is_empty());
    }

    #[test]
    fn many_readings_and_many_replies_take_no_more_memory() {
        let budget = Budget::new(1 << 20);
        let purse = Purse::of_nobody(&budget);
        let (mut times, mut output) = (Times::default(), Output::default());
        times.turns_at(100, 100, 1);
        for at_ns in 0..10_000 {
            times.came_at(1, at_ns);
        }
        assert!(times.readings.len() <= READINGS_MAX);
        for at_ns in 0..2 * LEAVING_MAX as u64 {
            times.turns_at(1, 1, at_ns);
            reply(&mut output, &purse);
            times.ends_at((1, BYTES), &mut output, NEVER, (at_ns, 0));
            assert!(times.leaving.len() < LEAVING_MAX);
        }
    }
}
