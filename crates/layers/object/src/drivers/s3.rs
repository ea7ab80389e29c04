//! The `s3` driver: objects of a bucket, over HTTP. A connection a slot, opened when the slot is first used; one request at a time on each.
#![allow(unsafe_code)]

mod opening;
mod slot;
mod steps;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use driver::polled::InFlight;
use driver::{
    Arena, Capabilities, Clock as _, Completions, Driver, Error, FINDINGS_MAX, Findings, HostClock,
    Submitted, Tally, Wait,
};
use rpc::tcp::poller::{Interest, Poller};

use crate::backend::Registration;
use crate::operation::ObjectOperation;
use crate::plan::ObjectOp;
use crate::s3::{
    Answers, Cause, Client, Expected, Link, Names, Opening, Own, Progress, Site, Trouble, Writer,
    errno_of_loss, words_of_loss,
};

pub(crate) use opening::open;
use slot::{Slot, State, Step, Upload};
use watch::Part;

/// Operations that S3 has.
pub(crate) const CLASSES: &[&str] = &["put", "get", "remove", "list", "stat", "read"];
/// Largest queue depth: connections of a worker.
const DEPTH_MAX: u32 = 4096;
/// How often time-outs are looked at, and pauses ended while any slot pauses, in nanoseconds.
const TICK_NS: u64 = 20_000_000;
const PAUSING_TICK_NS: u64 = 2_000_000;
/// First pause before a request is sent again, in nanoseconds; it doubles up to the last.
const PAUSE_NS: u64 = 10_000_000;
const PAUSE_NS_MAX: u64 = 1_000_000_000;
/// Longest wait for the end of an upload that is given up, in nanoseconds.
const ABORT_NS: u64 = 5_000_000_000;

/// The table line.
pub(super) const REGISTRATION: Registration = Registration {
    name: "s3",
    target: "s3://BUCKET[/PREFIX]",
    summary: "an S3 bucket over HTTP/1.1: put, get, ranges, multipart, list, stat, delete",
    capabilities: Capabilities {
        classes: CLASSES,
        asynchronous: true,
        depth_max: DEPTH_MAX,
        targetless: false,
        direct: false,
        options: &[
            "zero-copy",
            "retries",
            "timeout",
            "s3-endpoint",
            "s3-region",
            "s3-addressing",
            "s3-signing",
            "s3-part-size",
            "s3-key-file",
        ],
    },
    connect: |request| {
        let bundle = std::env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty()).map(PathBuf::from);
        crate::s3::connect_with(request, bundle.as_deref())
    },
};

/// Whether S3 has such an operation.
pub(crate) fn can(operation: ObjectOp) -> bool {
    CLASSES.contains(&operation.name())
}

/// State that the slots of a worker share.
struct Common {
    site: Arc<Site>,
    names: Names,
    /// Objects of the run's own.
    own: Own,
    mark: [u8; 16],
    /// The server has not refused a condition yet.
    takes_conditions: bool,
    writer: Writer,
    poller: Poller,
    answers: Answers,
    /// The worker's buffers.
    arena: Arc<Arena>,
    /// Where values are sent from and read to: the worker's buffers, or copies of them.
    memory: Arc<Arena>,
    is_staged: bool,
    list_max: u32,
    part_bytes: u64,
    clock: HostClock,
    now_ns: u64,
    /// Seconds since 1970 when the clock stood at 0, and nanoseconds beyond.
    wall_base_ns: u128,
    random: u64,
    pausing: u32,
    connections: u64,
    in_flight: InFlight,
    /// Failures beyond answers of servers: few.
    troubles: Findings,
}

/// Part of a request that is not sent yet.
fn sending_part(link: &Link) -> Part {
    match link.opening() {
        Opening::Connecting => Part::Connect,
        Opening::ShakingHands => Part::Tls,
        Opening::Open => Part::Send,
    }
}

struct S3 {
    common: Common,
    slots: Vec<Slot>,
    next_look_ns: u64,
}

impl Common {
    /// The part of a slot's memory that `bytes` from `from` on take.
    ///
    /// # Safety
    /// The slot is in flight, and the caller keeps no other reference to its memory.
    #[allow(clippy::mut_from_ref)]
    unsafe fn value(&self, slot: u32, from: u64, bytes: u64) -> &mut [u8] {
        // SAFETY: the slot's turn is the driver's, and the reference the only one, as the caller promises.
        let whole = unsafe { self.memory.slot_mut(slot, (from + bytes) as usize) };
        &mut whole[from as usize..]
    }

    fn refresh(&mut self) {
        self.now_ns = self.clock.now_ns();
        let wall_ns = self.wall_base_ns + u128::from(self.now_ns);
        self.writer.set_time((wall_ns / 1_000_000_000) as u64);
    }

    /// Bytes that the present request sends behind its head.
    fn payload<'a>(&'a self, step: Step, upload: &'a Upload, operation: &ObjectOperation) -> &'a [u8] {
        match step {
            Step::Complete => &upload.list,
            Step::Whole if operation.operation == ObjectOp::Put => {
                // SAFETY: the slot is in flight; the reference ends with the call that sends.
                unsafe { self.value(operation.slot, 0, operation.value_bytes) }
            }
            Step::Part => {
                let from = (upload.part - 1) * self.part_bytes;
                let bytes = self.part_bytes.min(operation.value_bytes - from);
                // SAFETY: as above.
                unsafe { self.value(operation.slot, from, bytes) }
            }
            _ => &[],
        }
    }

    /// Moves a slot on as far as it goes without waiting.
    fn drive(&mut self, slot: &mut Slot) {
        while let Some(operation) = slot.operation {
            let moved = match slot.state {
                State::Idle | State::Pausing => return,
                State::Sending => self.send(slot, &operation),
                State::Receiving => self.receive(slot, &operation),
            };
            match moved {
                Ok(Progress::Blocked) => return,
                Ok(Progress::Done) => {}
                Err(trouble) => self.failed(slot, &operation, trouble),
            }
        }
    }

    fn send(&mut self, slot: &mut Slot, operation: &ObjectOperation) -> Result<Progress, Trouble> {
        if slot.step.is_once() && slot.link.as_mut().is_some_and(Link::is_left_at_rest) {
            // What is not sent a second time is not sent on a connection that nobody listens to any more.
            slot.link = None;
        }
        if slot.link.is_none() {
            let endpoint = &self.site.endpoints[slot.endpoint];
            let address = endpoint.addresses[slot.address % endpoint.addresses.len()];
            slot.address = slot.address.wrapping_add(1);
            slot.watch.pass(Some(Part::Connect));
            let mut link = Link::connect(address, endpoint.tls.as_ref())?;
            link.interest = Interest { read: true, write: true };
            self.poller.add(link.socket(), u64::from(operation.slot), link.interest)?;
            link.begin();
            slot.link = Some(link);
            self.connections += 1;
        }
        let payload = self.payload(slot.step, &slot.upload, operation);
        let Some(link) = &mut slot.link else { return Ok(Progress::Blocked) };
        if slot.watch.part().is_none() {
            slot.watch.pass(Some(sending_part(link)));
        }
        let progress = link.send(&slot.head, payload)?;
        slot.watch.pass(Some(match progress {
            Progress::Done => Part::FirstByte,
            Progress::Blocked => sending_part(link),
        }));
        self.watch(slot, operation.slot, progress == Progress::Blocked)?;
        if progress == Progress::Done {
            slot.state = State::Receiving;
            // The answer takes its time: the next look at the socket is when it says so.
            return Ok(Progress::Blocked);
        }
        Ok(progress)
    }

    fn receive(&mut self, slot: &mut Slot, operation: &ObjectOperation) -> Result<Progress, Trouble> {
        let loads = slot.step == Step::Whole && operation.operation.loads();
        // SAFETY: the slot is in flight; the reference ends with this call.
        let value = loads.then(|| unsafe { self.value(operation.slot, 0, operation.value_bytes) });
        let is_head_only =
            slot.step == Step::Owner || slot.step == Step::Whole && operation.operation == ObjectOp::Stat;
        let Some(link) = &mut slot.link else { return Ok(Progress::Blocked) };
        if slot.watch.part() == Some(Part::FirstByte) && link.has_news() {
            slot.watch.pass(Some(Part::Receive));
        }
        if link.receive(Expected { value, is_head_only }, &mut slot.scanner)? == Progress::Blocked {
            self.watch(slot, operation.slot, false)?;
            return Ok(Progress::Blocked);
        }
        let reply = link.reply().ok_or(Trouble::Malformed("it has no header"))?;
        if !link.can_go_on() {
            slot.link = None;
        }
        self.answered(slot, operation, &reply);
        Ok(Progress::Done)
    }

    /// Has the socket watched for what it waits for.
    fn watch(&self, slot: &mut Slot, number: u32, is_sending: bool) -> Result<(), Trouble> {
        let Some(link) = &mut slot.link else { return Ok(()) };
        let wanted = link.wanted(is_sending);
        if wanted != link.interest {
            self.poller.modify(link.socket(), u64::from(number), wanted)?;
            link.interest = wanted;
        }
        Ok(())
    }

    /// The exchange came to no end.
    fn failed(&mut self, slot: &mut Slot, operation: &ObjectOperation, trouble: Trouble) {
        // What may have been carried out is sent again only where that changes nothing.
        let may_repeat = !slot.step.is_once() || !slot.link.as_ref().is_some_and(Link::has_sent);
        let is_stale = may_repeat && slot.link.as_ref().is_some_and(Link::may_be_stale);
        self.remember_lost(slot);
        slot.link = None;
        let site = Arc::clone(&self.site);
        let endpoint = &site.endpoints[slot.endpoint].name;
        match trouble {
            Trouble::Lost(error) => {
                self.answers.lost += 1;
                let errno = errno_of_loss(&error);
                // A connection at rest may be closed at any time: that is no failure of the request.
                let has_tries = errno != libc::EPROTO && slot.tries < site.retries;
                let retries = is_stale || (may_repeat && has_tries);
                self.answers.failed(endpoint, Cause::Lost(errno), || words_of_loss(&error), retries);
                if retries {
                    self.again(slot, operation, is_stale);
                } else {
                    self.give_up(slot, operation, -i64::from(errno));
                }
            }
            Trouble::Malformed(why) => {
                let words = || format!("the server's answer is invalid: {why}");
                self.answers.failed(endpoint, Cause::Malformed(why), words, false);
                self.give_up(slot, operation, -i64::from(libc::EIO));
            }
            Trouble::TooLong(bytes) => {
                let asked = operation.value_bytes;
                let why = || format!("the object has {bytes} bytes, but {asked} were requested");
                self.answers.failed(endpoint, Cause::TooLong, why, false);
                self.give_up(slot, operation, -i64::from(libc::EMSGSIZE));
            }
        }
    }

    /// Sends the present request once more, after a pause or at once.
    fn again(&mut self, slot: &mut Slot, operation: &ObjectOperation, at_once: bool) {
        if at_once {
            self.request(slot, operation);
            return;
        }
        slot.tries += 1;
        let pause_ns = (PAUSE_NS << (slot.tries - 1).min(10)).min(PAUSE_NS_MAX);
        // Half of it by chance, so that those who were turned away together do not come back together.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        slot.watch.pass(Some(Part::Pause));
        slot.wake_ns = self.now_ns + pause_ns / 2 + self.random % (pause_ns / 2);
        slot.state = State::Pausing;
        self.pausing += 1;
    }
}

impl S3 {
    fn start(&mut self, operation: &ObjectOperation) {
        let slot = &mut self.slots[operation.slot as usize];
        let common = &mut self.common;
        slot.operation = Some(*operation);
        slot.watch.reset();
        (slot.tries, slot.listed, slot.outcome) = (0, 0, 0);
        slot.deadline_ns = common.now_ns.saturating_add(common.site.timeout_ns);
        common.in_flight.begin();
        common.begin(slot, operation);
        common.drive(slot);
    }

    /// Ends pauses and time-outs.
    fn look_at_the_clock(&mut self) {
        let now_ns = self.common.now_ns;
        if now_ns < self.next_look_ns {
            return;
        }
        for slot in &mut self.slots {
            let Some(operation) = slot.operation else { continue };
            if now_ns >= slot.deadline_ns {
                if slot.state == State::Pausing {
                    self.common.pausing -= 1;
                }
                self.common.timed_out(slot, &operation);
            } else if slot.state == State::Pausing && now_ns >= slot.wake_ns {
                self.common.pausing -= 1;
                self.common.request(slot, &operation);
            } else {
                continue;
            }
            self.common.drive(slot);
        }
        self.next_look_ns = now_ns + if self.common.pausing > 0 { PAUSING_TICK_NS } else { TICK_NS };
    }

    fn poll(&mut self, timeout_ns: u64) -> Result<bool, Error> {
        let count = match self.common.poller.wait(Some(timeout_ns)) {
            Ok(count) => count,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => return Ok(false),
            Err(error) => return Err(Error::system("reap", "cannot wait for the connections", error)),
        };
        self.common.refresh();
        for index in 0..count {
            let number = self.common.poller.ready(index).token as usize;
            let slot = &mut self.slots[number];
            if slot.operation.is_some() && slot.state != State::Pausing {
                self.common.drive(slot);
            } else {
                // A server that speaks unasked has closed a connection at rest.
                slot.link = None;
            }
        }
        Ok(true)
    }
}

impl Driver<ObjectOperation> for S3 {
    fn submit(&mut self, batch: &[ObjectOperation], _done: &mut Completions) -> Result<Submitted, Error> {
        self.common.refresh();
        for operation in batch {
            self.start(operation);
        }
        Ok(Submitted { accepted: batch.len() })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let in_flight = self.common.in_flight.count();
        if in_flight == 0 {
            return Ok(());
        }
        let mut now_ns = self.common.clock.now_ns();
        let (count, deadline_ns) = wait.deadline_ns(now_ns);
        let wanted = done.len() + (count.min(in_flight) as usize).min(done.room());
        self.common.in_flight.hand_over(done);
        if count > 0 && done.len() >= wanted {
            return Ok(());
        }
        loop {
            let is_last = now_ns >= deadline_ns;
            let until_ns = deadline_ns.min(self.next_look_ns);
            let was_signal = !self.poll(until_ns.saturating_sub(now_ns))?;
            self.common.refresh();
            now_ns = self.common.now_ns;
            self.look_at_the_clock();
            self.common.in_flight.hand_over(done);
            let is_news = was_signal || self.common.in_flight.is_interrupted();
            if done.len() >= wanted || is_last || is_news {
                return Ok(());
            }
        }
    }

    fn latency_parts(&self) -> &'static [&'static str] {
        watch::PARTS
    }

    fn time_parts(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.watch.turn_on());
    }

    fn part_times_ns(&self, slot: u32) -> &[u64] {
        self.slots.get(slot as usize).map_or(&[], |slot| slot.watch.times_ns())
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let tally = |name, value: u64| Tally { part: 0, name, value: value as f64 };
        vec![
            tally("s3_retries", self.common.answers.retries),
            tally("s3_connections", self.common.connections),
            tally("s3_connections_lost", self.common.answers.lost),
        ]
    }

    fn findings(&mut self) -> Vec<String> {
        let mut lines = self.common.answers.lines();
        lines.append(&mut self.common.troubles.take());
        lines.truncate(FINDINGS_MAX);
        lines
    }
}

impl Drop for S3 {
    /// Gives up uploads that were in flight, so that their parts are not kept and paid for; what cannot be given up now is left to the end
    /// of the run.
    fn drop(&mut self) {
        for slot in &mut self.slots {
            self.common.remember_lost(slot);
        }
        for slot in self.slots.iter().filter(|slot| !slot.upload.id.is_empty()) {
            let mut client = Client::new(&self.common.site, slot.endpoint, Arc::default());
            if client.abort(&slot.name, &slot.upload.id).is_err() {
                self.common.leave(&slot.name, &slot.upload.id);
            }
        }
    }
}
