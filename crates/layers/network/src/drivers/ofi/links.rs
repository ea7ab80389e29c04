//! Links: the endpoints of a driver, and what becomes of their RPCs when they are lost.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use driver::Completions;

use rpc::ofi::frame::SESSION_BYTES;
use rpc::ofi::port::PeerAddress;
use rpc::ofi::watch::{Life, life};

use super::Ofi;
use super::tickets::State;

/// How long the failure of an RPC to a lost endpoint is held back, so that a closed loop that goes on after errors does not spin.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// Where RPCs go.
pub(super) enum Peer {
    /// It lives; the connection says so.
    Alive { stream: TcpStream, address: PeerAddress },
    /// It is lost, for this cause: an errno.
    Lost(i32),
}

/// One endpoint.
pub(super) struct Link {
    pub(super) peer: Peer,
    pub(super) tag: u32,
    pub(super) session: [u8; SESSION_BYTES],
    pub(super) in_flight: u32,
    /// Tickets that were given up and whose late reply has not come.
    pub(super) set_apart: u32,
    /// It is in this process, over shared memory.
    pub(super) is_own_process: bool,
    /// Its first reply has come.
    pub(super) is_proven: bool,
}

impl Ofi {
    /// RPCs that have waited too long are given up.
    pub(super) fn expire(&mut self, now: Instant, done: &mut Completions) {
        let timeout = self.shape.timeout;
        let late: Vec<u32> = self
            .tickets
            .flying_mut()
            .filter_map(|(index, ticket)| {
                (*ticket.deadline.get_or_insert(now + timeout) <= now).then_some(index)
            })
            .collect();
        for ticket in late {
            let Some(link) = self.give_up(ticket, libc::ETIMEDOUT, done) else { continue };
            // As many silent RPCs as could be in flight: it is lost, and takes no more memory.
            if self.links[link].set_apart > self.arena.slots() {
                self.lose(link, libc::ETIMEDOUT, done);
            }
        }
    }

    /// Ends an RPC in flight whose ticket the engine may still know. Returns its link; none where it has ended already, with the loss of its link.
    fn give_up(&mut self, ticket: u32, errno: i32, done: &mut Completions) -> Option<usize> {
        let entry = self.tickets.get(ticket).filter(|entry| entry.state == State::Flying)?;
        let (slot, link) = (entry.slot, entry.link as usize);
        self.tickets.set_apart(ticket);
        self.links[link].in_flight -= 1;
        self.links[link].set_apart += 1;
        self.complete(slot, -i64::from(errno), done);
        Some(link)
    }

    /// The endpoint is lost: its RPCs fail now, and later ones after a pause.
    pub(super) fn lose(&mut self, link: usize, errno: i32, done: &mut Completions) {
        if matches!(self.links[link].peer, Peer::Lost(_)) {
            return;
        }
        let peer = std::mem::replace(&mut self.links[link].peer, Peer::Lost(errno));
        if let Peer::Alive { stream, address } = peer {
            // Over shared memory an engine of this process waits for this before it takes its memory away.
            let is_other =
                |other: &Link| !matches!(other.peer, Peer::Alive { address: at, .. } if at == address);
            if self.links[link].is_own_process && self.links.iter().all(is_other) {
                self.port.remove(address);
            }
            drop(stream);
        }
        self.watch_links();
        let ended: Vec<u32> = self
            .tickets
            .flying_mut()
            .filter_map(|(index, ticket)| (ticket.link as usize == link).then_some(index))
            .collect();
        for ticket in ended {
            self.give_up(ticket, errno, done);
        }
    }

    /// Which connections have closed.
    pub(super) fn look_at_links(&mut self, done: &mut Completions) {
        for link in 0..self.links.len() {
            if let Peer::Alive { stream, .. } = &self.links[link].peer {
                match life(stream) {
                    Life::Alive => {}
                    Life::Gone => self.lose(link, libc::ECONNRESET, done),
                    Life::Talks => self.lose(link, libc::EBADMSG, done),
                }
            }
        }
    }

    /// Makes the list of what is waited on: the connections, and the queue where the provider lets it.
    pub(super) fn watch_links(&mut self) {
        use std::os::fd::AsRawFd;
        let streams = self.links.iter().filter_map(|link| match &link.peer {
            Peer::Alive { stream, .. } => Some(stream.as_raw_fd()),
            Peer::Lost(_) => None,
        });
        let queue = self.port.wait().map(|descriptor| descriptor.as_raw_fd());
        self.watch.set(streams.chain(queue));
    }

    /// Tells the failures that have been held back long enough.
    pub(super) fn fail_due(&mut self, now: Instant, done: &mut Completions) {
        while let Some(&(slot, errno, due)) = self.failing.front()
            && due <= now
            && done.room() > 0
        {
            self.failing.pop_front();
            done.push(slot, -i64::from(errno));
        }
    }
}
