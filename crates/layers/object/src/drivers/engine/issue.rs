//! Requests of an operation.

use rpc::client::{Request as Sent, Started, Stretch};
use rpc::wire::flag;

use vos::model::{Key, ObjectId};

use super::driver::{EngineDriver, Piece, SCRATCH, STAGING, VALUES};
use object_service::wire::{REQUEST_BYTES, Request};
use object_service::{INLINE_BYTES_MAX, opcode};

/// Longest part of a request before the value, in bytes: two keys and an anchor.
pub(super) const HEAD_BYTES_MAX: usize = REQUEST_BYTES + 2 * vos::model::KEY_BYTES_MAX + 16;

/// Payload of a request, and the destination of its reply.
#[derive(Clone, Copy)]
pub(super) enum Moves {
    /// A part of the slot's value goes out.
    Value,
    /// So many bytes of the request's own memory go out.
    Scratch(usize),
    /// The reply is a part of the slot's value.
    ToValue,
    /// The reply goes to the request's own memory.
    ToScratch,
}

/// One request to one target.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) endpoint: u32,
    pub(super) opcode: u16,
    pub(super) selector: u8,
    pub(super) object: ObjectId,
    pub(super) dkey: Key,
    pub(super) akey: Key,
    pub(super) anchor: Option<[u8; 16]>,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) moves: Moves,
    /// Where in the slot's value it begins.
    pub(super) from: usize,
    /// The copy that is asked; of coded values, how often they were asked for before.
    pub(super) shard: u32,
}

impl EngineDriver {
    /// Number of a request of a slot.
    #[inline]
    pub(super) fn number(&self, slot: u32, index: u32) -> u32 {
        slot * self.geometry.fan + index
    }

    /// Starts a request, the next of its operation.
    #[inline]
    pub(super) fn ask(&mut self, slot: u32, ask: &Ask, now_ns: u64) {
        let mut head = [0; HEAD_BYTES_MAX];
        match self.request_of(ask).encode(&mut head) {
            Some(end) => self.send(slot, ask, &head[..end], now_ns),
            None => self.refuse(slot),
        }
    }

    /// Starts a request once more, under the number that it had.
    pub(super) fn ask_again(&mut self, number: u32, ask: &Ask, now_ns: u64) {
        let mut head = [0; HEAD_BYTES_MAX];
        match self.request_of(ask).encode(&mut head) {
            Some(end) => self.send_as(number, ask, &head[..end], now_ns),
            None => self.refuse(number / self.geometry.fan),
        }
    }

    #[inline]
    fn request_of<'a>(&self, ask: &'a Ask) -> Request<'a> {
        Request {
            handle: self.handle,
            object: ask.object,
            selector: ask.selector,
            offset: ask.offset,
            length: ask.length,
            epoch: self.plan.snapshot.unwrap_or(0),
            dkey: ask.dkey.as_bytes(),
            akey: ask.akey.as_bytes(),
            anchor: ask.anchor.as_ref().map_or(&[], |anchor| anchor.as_slice()),
            value: &[],
        }
    }

    /// Opens the container once more.
    pub(super) fn ask_to_open(&mut self, slot: u32, now_ns: u64) {
        let ask = Ask {
            endpoint: self.targets,
            opcode: opcode::OPEN_CONTAINER,
            selector: 0,
            object: ObjectId::default(),
            dkey: Key::EMPTY,
            akey: Key::EMPTY,
            anchor: None,
            offset: 0,
            length: 0,
            moves: Moves::ToScratch,
            from: 0,
            shard: 0,
        };
        let body = std::mem::take(&mut self.open_request);
        self.send(slot, &ask, &body, now_ns);
        self.open_request = body;
    }

    pub(super) fn refuse(&mut self, slot: u32) {
        let running = &mut self.running[slot as usize];
        running.errno = if running.errno == 0 { -libc::EINVAL } else { running.errno };
    }

    #[inline]
    fn send(&mut self, slot: u32, ask: &Ask, head: &[u8], now_ns: u64) {
        let index = self.running[slot as usize].requests;
        if index >= self.geometry.fan {
            return self.refuse(slot);
        }
        let is_first = self.running[slot as usize].left == 0;
        self.running[slot as usize].requests += 1;
        let number = self.number(slot, index);
        self.watch.begins(slot, number, is_first, now_ns);
        self.send_as(number, ask, head, now_ns);
    }

    /// Sends a request under a number that is free.
    #[inline]
    fn send_as(&mut self, number: u32, ask: &Ask, head: &[u8], now_ns: u64) {
        let slot = number / self.geometry.fan;
        self.pieces[number as usize] =
            Piece { offset: ask.from, length: ask.length as usize, endpoint: ask.endpoint, shard: ask.shard };
        let region = if self.staging.is_some() { STAGING } else { VALUES };
        let value = Stretch { region, slot, offset_bytes: ask.from, length_bytes: ask.length as usize };
        let own = |length_bytes| Stretch { region: SCRATCH, slot: number, offset_bytes: 0, length_bytes };
        let none = Stretch::default();
        let (inline_out, bulk) = match ask.moves {
            Moves::Value if value.length_bytes > INLINE_BYTES_MAX => (none, value),
            Moves::Value => (value, none),
            Moves::Scratch(length) if length > INLINE_BYTES_MAX => (none, own(length)),
            Moves::Scratch(length) => (own(length), none),
            Moves::ToValue | Moves::ToScratch => (none, none),
        };
        let inline = INLINE_BYTES_MAX as u64;
        let (reply, inline_max, bulk_max) = match ask.moves {
            Moves::ToValue => {
                let bulk_max = if ask.length > inline { ask.length } else { 0 };
                (value, ask.length.min(inline), bulk_max)
            }
            Moves::ToScratch => {
                let reply = own(self.geometry.scratch_bytes);
                (reply, reply.length_bytes as u64, 0)
            }
            Moves::Value | Moves::Scratch(_) => (none, 0, 0),
        };
        self.sequence += 1;
        let sent = Sent {
            slot: number,
            endpoint: ask.endpoint,
            opcode: ask.opcode,
            flags: if self.watch.is_on() { flag::TIMED } else { 0 },
            sequence: self.sequence,
            seed: 0,
            head,
            inline: inline_out,
            bulk,
            reply,
            reply_inline_bytes: inline_max,
            reply_bulk_bytes: bulk_max,
        };
        match self.channel.start(&sent, now_ns) {
            Started::Taken => self.running[slot as usize].left += 1,
            // Pipelines are as deep as the requests of all operations together.
            Started::Busy | Started::Invalid => self.refuse(slot),
        }
    }
}
