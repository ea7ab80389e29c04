//! Requests with bulk that wait until earlier ones have ended: with their clients, who take turns.

use std::sync::atomic::Ordering;

use crate::ofi::frame::Frame;
use crate::service::Service;

use super::clients::{Parked, Slot};
use super::operations::bulk_bytes;
use super::{Listener, OPERATIONS};

/// Bulk of one client that is on its way at a time, in bytes; a single transfer may be larger. More in flight makes nothing faster: it
/// only spreads over more memory than the caches hold.
const TRANSFERS_BYTES: u64 = 4 << 20;

impl Listener {
    /// Begins an RPC with bulk, or puts it behind the earlier ones of its client. Its message is not needed after this.
    pub(super) fn start(&mut self, client: u32, frame: &Frame, inline: &[u8], service: &mut dyn Service) {
        let is_first = self.clients.get(client).is_some_and(|client| client.parked.is_empty());
        if is_first && self.may_begin(client, frame) && self.begin(client, frame, inline, service) {
            return;
        }
        let Some(entry) = self.clients.get(client) else { return };
        let Some(grant) = entry.take(&self.seat.budget, (size_of::<Parked>() + inline.len()) as u64) else {
            return self.refuse_for_memory(client, frame);
        };
        entry.parked.push_back(Parked { frame: *frame, inline: inline.to_vec(), grant });
        if is_first {
            self.waiting.push_back(client);
        }
    }

    /// Begins what waited for others, one request of a client after one of each other.
    pub(super) fn unpark(&mut self, service: &mut dyn Service) {
        let mut idle = 0;
        while idle < self.waiting.len() {
            let Some(client) = self.waiting.pop_front() else { return };
            match self.unpark_one(client, service) {
                // None is left.
                None => {}
                Some(has_begun) => {
                    idle = if has_begun { 0 } else { idle + 1 };
                    self.waiting.push_back(client);
                }
            }
        }
    }

    /// Whether the first that waits for a client has begun; none where it has no more.
    fn unpark_one(&mut self, client: u32, service: &mut dyn Service) -> Option<bool> {
        let frame = self.clients.get(client)?.parked.front()?.frame;
        if !self.may_begin(client, &frame) {
            return Some(false);
        }
        let entry = self.clients.get(client)?;
        let parked = entry.parked.pop_front()?;
        entry.give_back(&self.seat.budget, parked.grant.bytes());
        let has_begun = self.begin(client, &frame, &parked.inline, service);
        // The client may have been cut off meanwhile.
        let entry = self.clients.get(client).filter(|entry| !entry.is_gone)?;
        if !has_begun {
            entry.hold(parked.grant.bytes());
            entry.parked.push_front(parked);
        }
        (!entry.parked.is_empty()).then_some(has_begun)
    }

    /// Whether a client has room for another transfer, and there is an operation for it.
    fn may_begin(&mut self, client: u32, frame: &Frame) -> bool {
        let free = OPERATIONS - self.operations.len() + self.free_operations.len();
        let has_room = self.clients.get(client).is_some_and(|client| {
            let bytes = client.transferring_bytes + bulk_bytes(frame);
            client.transferring_bytes == 0 || bytes <= TRANSFERS_BYTES
        });
        has_room && self.clients.may_take(client, Slot::Operation, free, OPERATIONS)
    }

    pub(super) fn refuse_for_memory(&mut self, client: u32, frame: &Frame) {
        self.nuisance("a request was rejected: its client's share of the engine's buffer memory is used up");
        self.seat.counters.errors.fetch_add(1, Ordering::Relaxed);
        self.reply(client, frame, -libc::ENOMEM, 0, &[]);
    }
}
