//! Replies on their way in.
#![allow(unsafe_code)]

use driver::Completions;

use rpc::ofi::frame::Frame;
use rpc::ofi::port::Event;
use rpc::wire::{flag, opcode};

use super::Ofi;
use super::tickets::State;

impl Ofi {
    /// A message has come.
    #[inline]
    pub(super) fn received(&mut self, receive: u32, event: Event, done: &mut Completions) {
        if event.error == 0 {
            let base = receive as usize * self.receive_bytes;
            let length = event.length.min(self.receive_bytes);
            // SAFETY: the receive has completed and is posted again only below.
            let message: &[u8] =
                unsafe { std::slice::from_raw_parts(self.receives.region.base().add(base), length) };
            // What is no frame, or none of ours, is dropped: anyone on the fabric can send it.
            if let Ok((frame, at)) = Frame::decode(message) {
                self.answered(&frame, &message[at..], done);
            }
        }
        if !self.post(receive) {
            self.unposted.push(receive);
        }
    }

    fn post(&mut self, receive: u32) -> bool {
        let base = receive as usize * self.receive_bytes;
        // SAFETY: the receive's part of the buffer is in nobody's hands until its event comes; the buffer outlives the port.
        unsafe { self.port.receive(&self.receives.region, base, self.receive_bytes, receive) }.is_ok()
    }

    /// Gives receives back to the provider.
    pub(super) fn repost(&mut self) {
        while let Some(receive) = self.unposted.pop() {
            if !self.post(receive) {
                return self.unposted.push(receive);
            }
        }
    }

    #[inline]
    fn answered(&mut self, frame: &Frame, inline: &[u8], done: &mut Completions) {
        let header = &frame.header;
        if header.flags & flag::REPLY == 0 {
            return;
        }
        if header.opcode == opcode::PING {
            return self.proven(frame);
        }
        let Some(ticket) = self.tickets.get(header.slot) else { return };
        let (slot, link, state) = (ticket.slot, ticket.link as usize, ticket.state);
        if ticket.sequence != header.sequence
            || self.links[link].session != frame.session
            || state == State::Free
        {
            return;
        }
        let result = self.result_of(frame, inline, slot);
        let slots = self.arena.slots();
        self.tickets.land(header.slot, slots);
        if state == State::SetApart {
            // Its RPC has been told as failed long ago.
            self.links[link].set_apart -= 1;
            return;
        }
        self.links[link].in_flight -= 1;
        self.complete(slot, result, done);
    }

    /// The result of an RPC; its payload is brought into the slot's buffer, unless the RPC was given up.
    #[inline]
    fn result_of(&self, frame: &Frame, inline: &[u8], slot: u32) -> i64 {
        let (header, shape) = (&frame.header, &self.shape);
        if header.status != 0 {
            return i64::from(header.status.min(-1));
        }
        if header.inline_bytes != shape.reply.iov_bytes() || header.bulk_bytes != shape.reply.bulk_bytes() {
            return -i64::from(libc::EBADMSG);
        }
        let ticket = self.tickets.get(header.slot);
        if ticket.is_none_or(|ticket| ticket.state != State::Flying) {
            return 0;
        }
        let offset = shape.layout.reply_offset_bytes;
        // SAFETY: the slot is the driver's until its completion is told; the reply lies inside its buffer by the layout, and the engine has
        // written all that it writes to the ticket's memory.
        unsafe {
            let to = self.arena.slot_ptr(slot).add(offset);
            if !inline.is_empty() {
                std::ptr::copy_nonoverlapping(inline.as_ptr(), to, inline.len());
            }
            if let Some(memory) = ticket.and_then(|ticket| ticket.memory.as_ref()) {
                let (own, part) = ((slot, self.arena.slot_ptr(slot)), (offset, header.bulk_bytes as usize));
                if !memory.copy(self.device.as_ref(), own, part, true) {
                    return -i64::from(libc::EIO);
                }
            }
        }
        (shape.request.size_bytes + shape.reply.size_bytes) as i64
    }

    /// An endpoint has answered for the first time.
    #[cold]
    fn proven(&mut self, frame: &Frame) {
        if let Some(link) = self.links.get_mut(frame.header.slot as usize)
            && link.session == frame.session
        {
            link.is_proven = true;
        }
    }
}
