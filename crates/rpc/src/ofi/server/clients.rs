//! The clients of an endpoint: who they are, and whether they live.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use crate::ofi::frame::{Frame, SESSION_BYTES};
use crate::ofi::port::PeerAddress;
use crate::seat::{Budget, Grant};
use crate::share::{Purse, recount};

/// A request with bulk that waits until earlier ones have ended.
pub(super) struct Parked {
    pub(super) frame: Frame,
    /// Its payload.
    pub(super) inline: Vec<u8>,
    /// Of its memory.
    pub(super) grant: Grant,
}

/// Things of an endpoint of which there is a number, and which one client leaves to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// An operation with bulk.
    Operation,
    /// A buffer that a reply leaves from.
    Reply,
}

/// An address of clients, with the slots that its sessions hold together.
struct Address {
    ip: IpAddr,
    sessions: usize,
    slots: [usize; 2],
}

/// One client. It stays until its last operation has ended.
pub(super) struct Client {
    /// Open until it is forgotten: its end tells the client that nothing of it is in flight.
    pub(super) stream: TcpStream,
    /// It has left, or was cut off.
    pub(super) is_gone: bool,
    /// It is in this process, over shared memory.
    pub(super) is_own_process: bool,
    /// Who it is.
    pub(super) peer: SocketAddr,
    /// Where it is on the fabric.
    pub(super) address: PeerAddress,
    /// Session number that its messages carry.
    pub(super) session: [u8; SESSION_BYTES],
    /// Operations of the port that are in flight for it.
    pub(super) outstanding: u32,
    /// Bulk of it that is on its way.
    pub(super) transferring_bytes: u64,
    /// Requests that wait, in their order.
    pub(super) parked: VecDeque<Parked>,
    /// Memory of the endpoint that it holds.
    held_bytes: u64,
    /// Bytes that are counted for it of its client's share.
    counted: Cell<u64>,
    slots: [usize; 2],
    /// Its address among those of all.
    at: usize,
}

impl Client {
    /// Of a connection that was accepted, which holds nothing.
    pub(super) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        session: [u8; SESSION_BYTES],
        address: PeerAddress,
        is_own_process: bool,
    ) -> Self {
        Self {
            stream,
            is_gone: false,
            is_own_process,
            peer,
            address,
            session,
            outstanding: 0,
            transferring_bytes: 0,
            parked: VecDeque::new(),
            held_bytes: 0,
            counted: Cell::new(0),
            slots: [0; 2],
            at: 0,
        }
    }

    /// Its purse, when it holds so much beside what is counted already.
    pub(super) fn purse(&self, budget: &Arc<Budget>, more_bytes: u64) -> Purse<'_> {
        Purse::new(budget, self.peer.ip(), self.held_bytes + more_bytes, &self.counted)
    }

    /// It holds so much more.
    pub(super) fn hold(&mut self, bytes: u64) {
        self.held_bytes += bytes;
    }

    /// Memory for something that waits.
    pub(super) fn take(&mut self, budget: &Arc<Budget>, bytes: u64) -> Option<Grant> {
        let grant = self.purse(budget, 0).take(bytes)?;
        self.hold(bytes);
        Some(grant)
    }

    /// Nothing of it is left: all counts as given back.
    pub(super) fn close(&mut self, budget: &Budget) {
        self.give_back(budget, self.held_bytes);
    }

    /// It has given so much back.
    pub(super) fn give_back(&mut self, budget: &Budget, bytes: u64) {
        debug_assert!(self.held_bytes >= bytes);
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        if self.counted.get() > 0 {
            recount(budget, self.peer.ip(), self.held_bytes, &self.counted);
        }
    }
}

/// All of them. An index stays valid while the client has operations in flight.
#[derive(Default)]
pub(super) struct Clients {
    entries: Vec<Option<Client>>,
    /// Those that clients are at, or were.
    addresses: Vec<Address>,
    by_session: HashMap<[u8; SESSION_BYTES], u32>,
    last: u32,
}

impl Clients {
    /// Takes one in; its index. None when its session is known already.
    pub(super) fn add(&mut self, mut client: Client) -> Option<u32> {
        if self.by_session.contains_key(&client.session) {
            return None;
        }
        client.at = self.address_of(client.peer.ip().to_canonical());
        self.addresses[client.at].sessions += 1;
        let index = self.entries.iter().position(Option::is_none).unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.by_session.insert(client.session, index as u32);
        self.entries[index] = Some(client);
        Some(index as u32)
    }

    fn address_of(&mut self, ip: IpAddr) -> usize {
        if let Some(at) = self.addresses.iter().position(|address| address.ip == ip) {
            return at;
        }
        let fresh = Address { ip, sessions: 0, slots: [0; 2] };
        match self.addresses.iter().position(|address| address.sessions == 0) {
            Some(at) => {
                self.addresses[at] = fresh;
                at
            }
            None => {
                self.addresses.push(fresh);
                self.addresses.len() - 1
            }
        }
    }

    /// Whether a client may take another slot of which so many are free. An address holds no more of them than are free, so that some always are (the
    /// dynamic threshold of Choudhury and Hahne, 1998, with a factor of 1); a session that has none gets one beyond that, up to three quarters of all.
    pub(super) fn may_take(&self, index: u32, slot: Slot, free: usize, all: usize) -> bool {
        let Some(Some(client)) = self.entries.get(index as usize) else { return false };
        let own = self.addresses[client.at].slots[slot as usize];
        free > 0 && (own < free || (client.slots[slot as usize] == 0 && own < all - all / 4))
    }

    /// A client has taken a slot.
    pub(super) fn take_slot(&mut self, index: u32, slot: Slot) {
        if let Some(Some(client)) = self.entries.get_mut(index as usize) {
            client.slots[slot as usize] += 1;
            self.addresses[client.at].slots[slot as usize] += 1;
        }
    }

    /// It has given one back.
    pub(super) fn give_slot(&mut self, index: u32, slot: Slot) {
        if let Some(Some(client)) = self.entries.get_mut(index as usize) {
            client.slots[slot as usize] -= 1;
            self.addresses[client.at].slots[slot as usize] -= 1;
        }
    }

    /// The living client that has this session.
    #[inline]
    pub(super) fn find(&mut self, session: &[u8; SESSION_BYTES]) -> Option<u32> {
        if let Some(Some(client)) = self.entries.get(self.last as usize)
            && client.session == *session
            && !client.is_gone
        {
            return Some(self.last);
        }
        self.last = *self.by_session.get(session)?;
        Some(self.last)
    }

    /// One of them.
    #[inline]
    pub(super) fn get(&mut self, index: u32) -> Option<&mut Client> {
        self.entries.get_mut(index as usize)?.as_mut()
    }

    /// Whether it is there and has not been cut off.
    pub(super) fn is_alive(&mut self, index: u32) -> bool {
        self.get(index).is_some_and(|client| !client.is_gone)
    }

    /// It is no client any more. False when it was none.
    pub(super) fn cut(&mut self, index: u32) -> bool {
        let Some(client) = self.entries.get_mut(index as usize).and_then(Option::as_mut) else {
            return false;
        };
        let was_there = !std::mem::replace(&mut client.is_gone, true);
        if was_there {
            self.by_session.remove(&client.session);
        }
        was_there
    }

    /// Hands it out when it is gone and nothing of it is in flight: its address is to be removed before its connection is closed.
    pub(super) fn reap(&mut self, index: u32) -> Option<Client> {
        let entry = self.entries.get_mut(index as usize)?;
        let is_over = entry.as_ref().is_some_and(|client| client.is_gone && client.outstanding == 0);
        let client = entry.take_if(|_| is_over)?;
        self.addresses[client.at].sessions -= 1;
        Some(client)
    }

    /// Whether there is any that lives.
    pub(super) fn is_empty(&self) -> bool {
        self.by_session.is_empty()
    }

    /// Whether any is at this address: a peer that came twice has one entry in the address vector.
    pub(super) fn any_at(&self, address: PeerAddress) -> bool {
        self.entries.iter().flatten().any(|client| client.address == address)
    }

    /// Those that live: index and descriptor.
    pub(super) fn living(&self) -> impl Iterator<Item = (u32, i32)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let client = entry.as_ref().filter(|client| !client.is_gone)?;
            Some((index as u32, client.stream.as_raw_fd()))
        })
    }

    /// Who they are, those that live.
    pub(super) fn peers(&self) -> impl Iterator<Item = SocketAddr> {
        self.entries.iter().flatten().filter(|client| !client.is_gone).map(|client| client.peer)
    }

    /// Connections of those in this process.
    pub(super) fn of_own_process(&self) -> impl Iterator<Item = &TcpStream> {
        self.entries.iter().flatten().filter(|client| client.is_own_process).map(|client| &client.stream)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    const ALL: usize = 16;

    fn client(listener: &TcpListener, session: u8, last: u8) -> Client {
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 1);
        Client::new(stream, peer, [session; SESSION_BYTES], PeerAddress::default(), false)
    }

    /// Takes slots while it may; how many.
    fn fill(clients: &mut Clients, index: u32, free: &mut usize) -> usize {
        let before = *free;
        while clients.may_take(index, Slot::Operation, *free, ALL) {
            clients.take_slot(index, Slot::Operation);
            *free -= 1;
        }
        before - *free
    }

    #[test]
    fn an_address_holds_no_more_slots_than_are_free_and_a_session_one_beyond() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let (mut clients, mut free) = (Clients::default(), ALL);
        let add = |clients: &mut Clients, session, last| {
            clients.add(client(&listener, session, last)).expect("taken in")
        };
        let first = add(&mut clients, 1, 1);
        assert_eq!(fill(&mut clients, first, &mut free), 8);
        let other = add(&mut clients, 2, 2);
        assert_eq!(fill(&mut clients, other, &mut free), 4);
        // Others at the first address get one each, until it holds three quarters.
        let neighbours: Vec<usize> = (3..10)
            .map(|session| {
                let own = add(&mut clients, session, 1);
                fill(&mut clients, own, &mut free)
            })
            .collect();
        assert_eq!(neighbours, [1, 1, 1, 1, 0, 0, 0]);
        clients.give_slot(first, Slot::Operation);
        assert!(clients.may_take(other, Slot::Reply, 1, ALL), "other slots are counted apart");
    }

    #[test]
    fn a_client_that_is_forgotten_holds_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        // Each session is assured of 64 KiB; an address gets 192 KiB beyond.
        let budget = Budget::shared(1 << 20, 8);
        for session in 0..20 {
            let mut clients = Clients::default();
            let index = clients.add(client(&listener, session, 1)).expect("taken in");
            let own = clients.get(index).expect("there");
            let grant = own.take(&budget, 150 << 10).expect("its share is free again");
            assert!(clients.cut(index));
            clients.reap(index).expect("nothing is in flight").close(&budget);
            drop(grant);
        }
    }
}
