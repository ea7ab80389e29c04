//! Requests on their way out.
#![allow(unsafe_code)]

use std::time::Instant;

use driver::Completions;

use crate::Rpc;
use rpc::ofi::buffers::Buffer;
use rpc::ofi::frame::{Frame, PREFIX_BYTES_MAX};
use rpc::ofi::port::{PeerAddress, Region};
use rpc::wire::{Header, flag, opcode};

use super::Ofi;
use super::device::TicketMemory;
use super::links::{PAUSE, Peer};

/// Payloads up to this size are copied behind their header; larger ones are sent from where they are.
pub(super) const COPY_BYTES_MAX: usize = 8 << 10;

/// Message sent from a send buffer.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) link: u32,
}

impl Ofi {
    /// Sends the request of an RPC; false when it cannot be taken now.
    #[inline]
    pub(super) fn send_rpc(&mut self, rpc: &Rpc) -> bool {
        if self.in_flight() >= self.shape.depth {
            return false;
        }
        let link = match self.links.get(rpc.endpoint as usize) {
            Some(link) if rpc.slot < self.arena.slots() => link,
            _ => return self.fail_later(rpc.slot, libc::EINVAL),
        };
        let (address, session, tag) = match &link.peer {
            Peer::Alive { .. } if link.in_flight >= self.shape.pipeline => return false,
            Peer::Alive { address, .. } => (*address, link.session, link.tag),
            Peer::Lost(errno) => {
                let errno = *errno;
                return self.fail_later(rpc.slot, errno);
            }
        };
        let ticket = match self.pick_ticket(rpc.slot) {
            Ok(ticket) => ticket,
            Err(errno) => return self.fail_later(rpc.slot, errno),
        };
        let shape = self.shape;
        let inline_bytes = shape.request.iov_bytes();
        let header = Header {
            opcode: opcode::MEASURE,
            flags: if shape.verify { flag::VERIFY } else { 0 },
            slot: ticket,
            status: 0,
            tag,
            inline_bytes,
            bulk_bytes: shape.request.bulk_bytes(),
            reply_inline_bytes: shape.reply.iov_bytes(),
            reply_bulk_bytes: shape.reply.bulk_bytes(),
            sequence: rpc.sequence,
            seed: shape.seed,
        };
        let names_memory = header.bulk_bytes | header.reply_bulk_bytes != 0;
        let (region, base) = self.memory_of(ticket, rpc.slot);
        let memory = names_memory.then(|| {
            let layout = &shape.layout;
            [
                region.remote(base + layout.request_offset_bytes, header.bulk_bytes),
                region.remote(base + layout.reply_offset_bytes, header.reply_bulk_bytes),
            ]
        });
        let frame = Frame { header, memory, session };
        let payload = (region, base + shape.layout.request_offset_bytes, inline_bytes as usize);
        match self.send_frame(&frame, payload, address, rpc.endpoint) {
            Ok(()) => {
                self.tickets.fly(ticket, rpc.slot, rpc.endpoint, rpc.sequence);
                self.links[rpc.endpoint as usize].in_flight += 1;
                true
            }
            Err(libc::EAGAIN) => {
                self.tickets.put_back(ticket, rpc.slot);
                false
            }
            Err(errno) => {
                self.tickets.put_back(ticket, rpc.slot);
                self.fail_later(rpc.slot, errno)
            }
        }
    }

    /// Sends a frame and its payload: copied away, copied behind the header, or from where it is.
    pub(super) fn send_frame(
        &mut self,
        frame: &Frame,
        (region, offset, bytes): (Region, usize, usize),
        address: PeerAddress,
        link: u32,
    ) -> Result<(), i32> {
        let mut prefix = [0; PREFIX_BYTES_MAX];
        let length = frame.encode(&mut prefix);
        if bytes == 0 && length <= self.port.facts().inject_bytes {
            return self.port.inject(&prefix[..length], address);
        }
        let send = self.free_sends.pop().ok_or(libc::EAGAIN)?;
        let at = send as usize * self.send_bytes;
        let context = self.receive_count + send;
        // SAFETY: the send buffer is free; the payload is the slot's, which is the driver's now, and lies inside the region. A payload that is sent
        // from where it is has memory that is set apart when the RPC is given up.
        let result = unsafe {
            let buffer = self.sends.bytes_mut(at, self.send_bytes);
            buffer[..length].copy_from_slice(&prefix[..length]);
            if bytes <= COPY_BYTES_MAX {
                let payload = std::slice::from_raw_parts(region.base().add(offset), bytes);
                let whole = &mut buffer[..length + bytes];
                whole[length..].copy_from_slice(payload);
                if whole.len() <= self.port.facts().inject_bytes {
                    let result = self.port.inject(whole, address);
                    self.free_sends.push(send);
                    return result;
                }
                self.port.send(&self.sends.region, at, length + bytes, address, context)
            } else {
                let parts = [(&self.sends.region, at, length), (&region, offset, bytes)];
                self.port.send_two(parts, address, context)
            }
        };
        match result {
            Ok(()) => self.sent[send as usize] = Sent { link },
            Err(_) => self.free_sends.push(send),
        }
        result
    }

    /// A ticket for the slot. One with memory of its own gets the request's payload.
    ///
    /// # Errors
    /// An errno, where there is no memory, or the payload cannot be brought there.
    #[inline]
    fn pick_ticket(&mut self, slot: u32) -> Result<u32, i32> {
        let (port, shape, device) = (&mut self.port, &self.shape, self.device.as_ref());
        let inline_bytes = shape.request.iov_bytes() as usize;
        let is_named =
            shape.request.bulk_bytes() + shape.reply.bulk_bytes() > 0 || inline_bytes > COPY_BYTES_MAX;
        let ticket = self.tickets.pick(slot, || match device {
            _ if !is_named => Some(None),
            Some(device) => device.another(port).map(|memory| Some(TicketMemory::Device(memory))),
            None => {
                let buffer = Buffer::new(port, shape.layout.slot_bytes, true).ok()?;
                Some(Some(TicketMemory::Host(buffer)))
            }
        });
        let ticket = ticket.ok_or(libc::ENOMEM)?;
        if let Some(memory) = self.tickets.get(ticket).and_then(|ticket| ticket.memory.as_ref()) {
            let part = (shape.layout.request_offset_bytes, shape.request.size_bytes as usize);
            // SAFETY: the ticket is free, so nobody else touches its memory; the slot is the driver's.
            let is_there = unsafe { memory.copy(device, (slot, self.arena.slot_ptr(slot)), part, false) };
            if !is_there {
                self.tickets.put_back(ticket, slot);
                return Err(libc::EIO);
            }
        }
        Ok(ticket)
    }

    /// Where the payloads of a ticket lie: region, and offset of the slot's layout in it.
    #[inline]
    pub(super) fn memory_of(&self, ticket: u32, slot: u32) -> (Region, usize) {
        match self.tickets.get(ticket).and_then(|ticket| ticket.memory.as_ref()) {
            Some(memory) => (memory.region(), 0),
            None => match &self.device {
                Some(device) => device.place(slot),
                None => (self.region, slot as usize * self.arena.slot_bytes()),
            },
        }
    }

    #[cold]
    fn fail_later(&mut self, slot: u32, errno: i32) -> bool {
        self.failing.push_back((slot, errno, Instant::now() + PAUSE));
        true
    }

    /// A message has left, or could not.
    #[inline]
    pub(super) fn left(&mut self, send: u32, error: i32, done: &mut Completions) {
        if send as usize >= self.sent.len() {
            return;
        }
        self.free_sends.push(send);
        if error != 0 {
            let link = self.sent[send as usize].link as usize;
            let errno = if error == libc::ECANCELED { libc::ECONNRESET } else { error };
            self.lose(link, errno, done);
        }
    }
}
