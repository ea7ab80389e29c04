//! The clients of an endpoint: who they are, and whether they live.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use crate::ofi::frame::SESSION_BYTES;
use crate::ofi::port::PeerAddress;

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
    /// What its messages carry.
    pub(super) session: [u8; SESSION_BYTES],
    /// Operations of the port that are in flight for it.
    pub(super) outstanding: u32,
    /// Bulk of it that is on its way.
    pub(super) transferring_bytes: u64,
}

/// All of them. An index stays valid while the client has operations in flight.
#[derive(Default)]
pub(super) struct Clients {
    entries: Vec<Option<Client>>,
    by_session: HashMap<[u8; SESSION_BYTES], u32>,
    last: u32,
}

impl Clients {
    /// Takes one in; its index. None when its session is known already.
    pub(super) fn add(&mut self, client: Client) -> Option<u32> {
        if self.by_session.contains_key(&client.session) {
            return None;
        }
        let index = self.entries.iter().position(Option::is_none).unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.by_session.insert(client.session, index as u32);
        self.entries[index] = Some(client);
        Some(index as u32)
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
        if entry.as_ref().is_some_and(|client| client.is_gone && client.outstanding == 0) {
            entry.take()
        } else {
            None
        }
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

    /// Connections of those in this process.
    pub(super) fn of_own_process(&self) -> impl Iterator<Item = &TcpStream> {
        self.entries.iter().flatten().filter(|client| client.is_own_process).map(|client| &client.stream)
    }
}
