//! A driver of buffers of the host, with a copy between them and those of a device within each operation.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use driver::{Arena, Completion, Completions, Driver, Error, Operation, Submitted, Tally, Wait};

use crate::device::Context;
use crate::memory::{DeviceBuffers, Event, Pinned, Stream, check_fit};
use crate::patience::Patience;

/// Direction of the copy that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// None: no data are moved.
    None,
    /// To the device, after the operation.
    In,
    /// From the device, before it.
    Out,
    /// Both, of the parts of the buffer that [`Exchange`] names.
    Exchange,
}

/// Parts of each buffer, by where they begin and how long they are, of operations that send one and receive the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Sent: copied from the device before the operation.
    pub request: (usize, usize),
    /// Received: copied to the device after it.
    pub reply: (usize, usize),
}

/// Tells which copy an operation needs.
pub trait Transfers: Operation {
    /// The direction of its data.
    fn transfer(&self) -> Transfer;
}

/// Ways of copies: from the device, and to it.
const OUT: usize = 0;
const IN: usize = 1;

/// A copy under way, and what follows it.
#[derive(Clone, Copy, Debug)]
enum Then<Op> {
    /// The operation is handed to the driver.
    Submit(Op),
    /// The operation has completed.
    Complete(Completion),
}

/// Drives operations on buffers of a device: reads go to the buffer of the host with the same slot and are copied on, writes the other
/// way. The copy is part of the operation's latency. With several operations in flight copies and I/O overlap.
pub struct Staged<Op> {
    inner: Box<dyn Driver<Op>>,
    inner_done: Completions,
    device: Arc<DeviceBuffers>,
    arena: Arc<Arena>,
    /// Copies from the device, and to it: each way in an order of its own, since devices copy both ways at once.
    streams: [Stream; 2],
    context: Arc<Context>,
    /// Its number among the workers on the device.
    worker: usize,
    /// Whether copies are the device's work alone: from memory that is not registered the processor does most of them.
    takes_turns: bool,
    /// Whether one operation at a time is carried out.
    is_single: bool,
    /// Operations in flight, by slot.
    operations: Vec<Option<Op>>,
    events: Vec<Event>,
    /// Copies in the order in which they were begun, by slot of their event.
    copies: [VecDeque<(u32, Then<Op>)>; 2],
    /// Completions that are not told yet.
    finished: VecDeque<Completion>,
    /// Operations whose data have left the device, to be handed on.
    ready: VecDeque<Op>,
    /// Operations among the copies that are to be handed on.
    leaving: u32,
    submitted: u32,
    copied_bytes: u64,
    exchange: Exchange,
    /// Waits for copies from the device, and to it.
    patience: [Patience; 2],
    /// Registered buffers go after the driver that uses them.
    _pinned: Option<Pinned>,
}

impl<Op: Transfers> Staged<Op> {
    /// Drives `inner`, which works on `arena`, for buffers of `device`; `depth` operations in flight at most.
    ///
    /// # Errors
    /// When buffers do not fit each other, or the device has no room for a stream.
    pub fn new(
        inner: Box<dyn Driver<Op>>,
        arena: &Arc<Arena>,
        device: &Arc<DeviceBuffers>,
        pinned: Option<Pinned>,
        depth: u32,
    ) -> Result<Self, Error> {
        check_fit(device, arena)?;
        let streams = [Stream::new(device.context())?, Stream::new(device.context())?];
        let is_single = depth == 1;
        let events = if is_single { 0 } else { device.slots() };
        Ok(Self {
            inner,
            inner_done: Completions::with_depth(depth),
            arena: Arc::clone(arena),
            streams,
            context: Arc::clone(device.context()),
            worker: device.context().next_worker(),
            takes_turns: pinned.is_some(),
            is_single,
            operations: vec![None; device.slots() as usize],
            events: (0..events).map(|_| Event::new(device.context())).collect::<Result<_, _>>()?,
            device: Arc::clone(device),
            copies: [0; 2].map(|_| VecDeque::with_capacity(depth as usize)),
            finished: VecDeque::with_capacity(depth as usize),
            ready: VecDeque::with_capacity(depth as usize),
            leaving: 0,
            submitted: 0,
            copied_bytes: 0,
            exchange: Exchange::default(),
            patience: [Patience::new(); 2],
            _pinned: pinned,
        })
    }

    /// The same for operations that send a part of their buffers and receive another.
    #[must_use]
    pub fn exchanging(mut self, exchange: Exchange) -> Self {
        self.exchange = exchange;
        self
    }

    /// Part of the buffer that an operation needs from the device: where it begins, and its bytes.
    #[inline]
    fn outgoing(&self, operation: &Op) -> (usize, usize) {
        match operation.transfer() {
            Transfer::Out => (0, operation.bytes() as usize),
            Transfer::Exchange => self.exchange.request,
            Transfer::None | Transfer::In => (0, 0),
        }
    }

    /// Part that a completed operation brings to the device.
    #[inline]
    fn incoming(&self, operation: Option<Op>, result: i64) -> (usize, usize) {
        match operation.map(|operation| operation.transfer()) {
            Some(Transfer::In) if result > 0 => (0, result as usize),
            Some(Transfer::Exchange) if result >= 0 => self.exchange.reply,
            _ => (0, 0),
        }
    }

    #[inline]
    fn copy_out(&mut self, slot: u32, (at, bytes): (usize, usize)) -> Result<(), Error> {
        assert!(at + bytes <= self.arena.slot_bytes());
        self.copied_bytes += bytes as u64;
        let from = self.device.slot_address(slot) + at as u64;
        // SAFETY: the operation in this slot is the driver's, and so are both buffers; both have room, as checked here and when they were made.
        unsafe { self.streams[OUT].copy_out(self.arena.slot_ptr(slot).add(at), from, bytes) }
    }

    #[inline]
    fn copy_in(&mut self, slot: u32, (at, bytes): (usize, usize)) -> Result<(), Error> {
        assert!(at + bytes <= self.arena.slot_bytes());
        self.copied_bytes += bytes as u64;
        let to = self.device.slot_address(slot) + at as u64;
        // SAFETY: as for `copy_out`; the driver inside has completed the operation.
        unsafe { self.streams[IN].copy_in(to, self.arena.slot_ptr(slot).add(at), bytes) }
    }

    /// One operation from end to end.
    fn submit_single(&mut self, batch: &[Op], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        let part = self.outgoing(operation);
        if part.1 > 0 {
            let context = Arc::clone(&self.context);
            let _turn = self.takes_turns.then(|| context.turn(false, self.worker, part.1));
            self.copy_out(operation.slot(), part)?;
            self.patience[OUT].wait(&mut self.streams[OUT])?;
        }
        self.operations[operation.slot() as usize] = Some(*operation);
        let submitted = self.inner.submit(&batch[..1], &mut self.inner_done)?;
        self.submitted += submitted.accepted as u32;
        self.finish_single(done)?;
        Ok(submitted)
    }

    /// Copies what the driver has completed to the device.
    #[inline]
    fn finish_single(&mut self, done: &mut Completions) -> Result<(), Error> {
        for at in 0..self.inner_done.len() {
            let completion = self.inner_done.as_slice()[at];
            self.submitted -= 1;
            let operation = self.operations[completion.slot as usize].take();
            let part = self.incoming(operation, completion.result);
            if part.1 > 0 {
                let context = Arc::clone(&self.context);
                let _turn = self.takes_turns.then(|| context.turn(true, self.worker, part.1));
                self.copy_in(completion.slot, part)?;
                self.patience[IN].wait(&mut self.streams[IN])?;
            }
            done.push(completion.slot, completion.result);
        }
        self.inner_done.clear();
        Ok(())
    }

    fn begin_copy(&mut self, slot: u32, then: Then<Op>) -> Result<(), Error> {
        let way = if matches!(then, Then::Submit(_)) { OUT } else { IN };
        self.events[slot as usize].record(&mut self.streams[way])?;
        self.copies[way].push_back((slot, then));
        Ok(())
    }

    /// Hands on what is ready, begins copies of what the driver has completed, and tells what is done as far as there is room.
    fn advance(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        for way in [OUT, IN] {
            while let Some(&(slot, then)) = self.copies[way].front() {
                if !self.events[slot as usize].is_done()? {
                    break;
                }
                self.copies[way].pop_front();
                match then {
                    Then::Submit(operation) => {
                        self.leaving -= 1;
                        self.ready.push_back(operation);
                    }
                    Then::Complete(completion) => self.finished.push_back(completion),
                }
            }
        }
        while !self.ready.is_empty() {
            let taken = self.inner.submit(self.ready.make_contiguous(), &mut self.inner_done)?.accepted;
            if taken == 0 {
                break;
            }
            self.submitted += taken as u32;
            self.ready.drain(..taken);
        }
        if self.submitted > 0 && self.inner_done.is_empty() {
            self.inner.reap(wait, &mut self.inner_done)?;
        }
        for at in 0..self.inner_done.len() {
            let completion = self.inner_done.as_slice()[at];
            self.submitted -= 1;
            let operation = self.operations[completion.slot as usize].take();
            let part = self.incoming(operation, completion.result);
            if part.1 > 0 {
                self.copy_in(completion.slot, part)?;
                self.begin_copy(completion.slot, Then::Complete(completion))?;
            } else {
                self.finished.push_back(completion);
            }
        }
        self.inner_done.clear();
        while done.room() > 0 {
            let Some(completion) = self.finished.pop_front() else { break };
            done.push(completion.slot, completion.result);
        }
        Ok(())
    }

    /// Copies under way.
    fn copying(&self) -> usize {
        self.copies.iter().map(VecDeque::len).sum()
    }

    /// Waits until the first copy of either way is done, or until `deadline`. Whether one is.
    fn wait_for_copy(&mut self, deadline: Option<Instant>) -> Result<bool, Error> {
        let firsts = [OUT, IN].map(|way| self.copies[way].front().map(|(slot, _)| *slot as usize));
        let (Some(out), Some(back)) = (firsts[OUT], firsts[IN]) else {
            let only = firsts.into_iter().flatten().next();
            return only.map_or(Ok(false), |slot| self.events[slot].wait_until(deadline));
        };
        while !self.events[out].is_done()? && !self.events[back].is_done()? {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
            std::hint::spin_loop();
        }
        Ok(true)
    }

    /// Whether nothing is in flight.
    fn is_idle(&self) -> bool {
        self.submitted == 0 && self.ready.is_empty() && self.copying() == 0
    }

    fn reap_many(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let (count, deadline) = wait.deadline();
        let wanted = done.len() + count;
        self.advance(Wait::None, done)?;
        while done.len() < wanted && done.room() > 0 {
            if self.copying() > 0 {
                if !self.wait_for_copy(deadline)? {
                    break;
                }
                self.advance(Wait::None, done)?;
                continue;
            }
            if self.is_idle() {
                break;
            }
            let left = match deadline {
                None => Wait::AtLeast(1),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    Wait::Timeout { count: 1, timeout_ns: left.as_nanos() as u64 }
                }
            };
            let before = (done.len(), self.copying());
            self.advance(left, done)?;
            // A signal has ended the wait of the driver, or it takes nothing: the loop of the worker looks at both.
            if before == (done.len(), self.copying()) {
                break;
            }
        }
        Ok(())
    }
}

impl<Op: Transfers> Driver<Op> for Staged<Op> {
    fn submit(&mut self, batch: &[Op], done: &mut Completions) -> Result<Submitted, Error> {
        if self.is_single {
            return self.submit_single(batch, done);
        }
        for operation in batch {
            self.operations[operation.slot() as usize] = Some(*operation);
            let part = self.outgoing(operation);
            if part.1 > 0 {
                self.copy_out(operation.slot(), part)?;
            }
            // A sync must not overtake the writes before it, whose data are still on their way.
            if part.1 > 0 || (operation.transfer() == Transfer::None && self.leaving > 0) {
                self.leaving += 1;
                self.begin_copy(operation.slot(), Then::Submit(*operation))?;
            } else {
                self.ready.push_back(*operation);
            }
        }
        Ok(Submitted { accepted: batch.len() })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        if !self.is_single {
            return self.reap_many(wait, done);
        }
        if self.submitted > 0 {
            self.inner.reap(wait, &mut self.inner_done)?;
        }
        self.finish_single(done)
    }

    fn cause(&self, slot: u32, result: i64) -> Option<String> {
        self.inner.cause(slot, result)
    }

    fn latency_parts(&self) -> &'static [&'static str] {
        self.inner.latency_parts()
    }

    fn time_parts(&mut self) {
        self.inner.time_parts();
    }

    fn part_times_ns(&self, slot: u32) -> &[u64] {
        self.inner.part_times_ns(slot)
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let mut tallies = self.inner.tallies();
        tallies.push(Tally { part: 0, name: "gpu_copied_bytes", value: self.copied_bytes as f64 });
        tallies
    }

    fn findings(&mut self) -> Vec<String> {
        self.inner.findings()
    }
}

impl<Op> Drop for Staged<Op> {
    fn drop(&mut self) {
        // Copies in flight after a failure use both buffers. What has failed is told already.
        for stream in &mut self.streams {
            let _ = self.context.enter().and_then(|()| stream.wait());
        }
    }
}
