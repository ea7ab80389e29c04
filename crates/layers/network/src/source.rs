//! Decides which endpoint a worker turns to next, and makes and checks payloads.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Error, Fault, Source};
use workload::random::{Random, derive_seed};

use layer::memory::{BufferPart, OnDevice};

use crate::{EndpointOrder, OpenRequest, Rpc, SlotLayout};
use rpc::payload::{Content, Direction};

/// Keeps the draws of endpoints apart from what else is made from the seed.
const ORDER_LABEL: u64 = 0x6f72_6465;
/// The same for payloads.
const PAYLOAD_LABEL: u64 = 0x7061_796c;

/// Seed of the payloads of one worker, for [`OpenRequest::seed`]: `seed` is that of the phase.
#[must_use]
pub fn payload_seed(seed: u64, worker: u32) -> u32 {
    (derive_seed(seed, &[PAYLOAD_LABEL, u64::from(worker)]) >> 32) as u32
}

/// Payloads in the buffers of the slots.
struct Payloads {
    request_bytes: usize,
    reply_bytes: usize,
    layout: SlotLayout,
    arena: Arc<Arena>,
}

impl Payloads {
    /// Part of a slot's buffer that a payload lies in.
    fn part(&self, slot: u32, direction: Direction) -> BufferPart {
        let (at, length) = match direction {
            Direction::Request => (self.layout.request_offset_bytes, self.request_bytes),
            Direction::Reply => (self.layout.reply_offset_bytes, self.reply_bytes),
        };
        BufferPart { slot, at, length }
    }

    /// The payload area of a slot that is this source's turn.
    fn of(&mut self, slot: u32, direction: Direction) -> &mut [u8] {
        let BufferPart { at, length, .. } = self.part(slot, direction);
        // SAFETY: called only before the slot is submitted and after it has completed, and the slice borrows the payloads, which alone make them.
        let buffer = unsafe { self.arena.slot_mut(slot, at + length) };
        &mut buffer[at..]
    }
}

/// The RPCs of one worker, without end: limits are the runner's.
pub struct RpcSource {
    order: EndpointOrder,
    endpoints: u32,
    next: u32,
    random: Random,
    sequence: u64,
    payloads: Payloads,
    /// Where payloads are made and checked.
    content: Option<Content>,
    /// Payloads on a device.
    device: OnDevice,
}

impl RpcSource {
    /// The source of worker `worker` over what its driver is opened with; `seed` is that of the phase. Payloads of requests are there
    /// from the start; where they are checked, each is made anew.
    ///
    /// With [`EndpointOrder::RoundRobin`] worker w begins at its endpoint w modulo their number, so that workers with the same
    /// endpoints do not all begin at the first.
    ///
    /// # Errors
    /// Bad usage: no endpoint, or buffers that are smaller than the layout says.
    pub fn new(request: &OpenRequest, order: EndpointOrder, seed: u64, worker: u32) -> Result<Self, Error> {
        let endpoints = request.endpoints.len() as u32;
        if endpoints == 0 {
            return Err(Error::usage("open", "a worker has no endpoint").remedy("use fewer --threads"));
        }
        let layout = request.layout;
        let (request_bytes, reply_bytes) =
            (request.request.size_bytes as usize, request.reply.size_bytes as usize);
        let is_inside =
            |from: usize, bytes: usize| from.checked_add(bytes) <= Some(request.arena.slot_bytes());
        if !is_inside(layout.request_offset_bytes, request_bytes)
            || !is_inside(layout.reply_offset_bytes, reply_bytes)
        {
            return Err(Error::usage("open", "the buffers are smaller than the payloads")
                .with("buffer_bytes", request.arena.slot_bytes()));
        }
        let content = Content::new(request.seed);
        let mut source = Self {
            order,
            endpoints,
            next: worker % endpoints,
            random: Random::new(derive_seed(seed, &[ORDER_LABEL, u64::from(worker)])),
            sequence: 0,
            payloads: Payloads { request_bytes, reply_bytes, layout, arena: Arc::clone(&request.arena) },
            content: request.verify.then(|| content.clone()),
            device: OnDevice::default(),
        };
        // Zeros all through would flatter a link that compresses.
        for slot in 0..request.arena.slots() {
            content.fill(Direction::Request, u64::from(slot), source.payloads.of(slot, Direction::Request));
        }
        Ok(source)
    }

    /// The same with payloads on a device, which gets those of the host, or in registered memory.
    #[must_use]
    pub fn on_device(mut self, device: OnDevice) -> Self {
        self.device = device;
        for slot in 0..self.payloads.arena.slots() {
            self.send(slot);
        }
        self
    }

    /// Brings the payload of a request to the device.
    fn send(&mut self, slot: u32) {
        let part = self.payloads.part(slot, Direction::Request);
        if let Some(device) = self.device.content() {
            device.send_part(part);
        }
    }

    #[inline]
    fn endpoint(&mut self, slot: u32) -> u32 {
        match self.order {
            EndpointOrder::RoundRobin => {
                let endpoint = self.next;
                self.next = if endpoint + 1 == self.endpoints { 0 } else { endpoint + 1 };
                endpoint
            }
            EndpointOrder::Random => self.random.below(u64::from(self.endpoints)) as u32,
            EndpointOrder::Pinned => slot % self.endpoints,
        }
    }
}

impl Source<Rpc> for RpcSource {
    #[inline]
    fn next(&mut self, slot: u32) -> Option<Rpc> {
        let endpoint = self.endpoint(slot);
        let sequence = self.sequence;
        self.sequence += 1;
        Some(Rpc {
            slot,
            endpoint,
            sequence,
            bytes: (self.payloads.request_bytes + self.payloads.reply_bytes) as u64,
        })
    }

    fn prepares(&self) -> bool {
        let has_device = self.device.has_content();
        self.content.is_some() && (self.payloads.request_bytes > 0 || has_device)
    }

    fn prepare(&mut self, rpc: &Rpc) {
        if let Some(content) = &self.content {
            content.fill(Direction::Request, rpc.sequence, self.payloads.of(rpc.slot, Direction::Request));
            self.send(rpc.slot);
            // A reply that never arrives is not to be taken for an earlier one.
            let reply = self.payloads.part(rpc.slot, Direction::Reply);
            if let Some(device) = self.device.content() {
                device.spoil(reply);
            }
        }
    }

    fn checks(&self) -> bool {
        let has_device = self.device.has_content();
        has_device || (self.content.is_some() && self.payloads.reply_bytes > 0)
    }

    fn check(&mut self, rpc: &Rpc, _bytes: u64) -> Result<(), Fault> {
        let reply = self.payloads.part(rpc.slot, Direction::Reply);
        if let Some(device) = self.device.content() {
            if self.content.is_some() {
                device.fetch_part(reply);
            }
            device.settle()?;
        }
        let Some(content) = self.content.as_mut().filter(|_| reply.length > 0) else { return Ok(()) };
        content.check(Direction::Reply, rpc.sequence, self.payloads.of(rpc.slot, Direction::Reply))
    }
}

#[cfg(test)]
mod tests;
