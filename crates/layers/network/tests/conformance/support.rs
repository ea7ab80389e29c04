//! A driver on endpoints of its own, for the conformance suite.
#![allow(unsafe_code)]

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use driver::{Arena, Completion, Completions, Driver, Error, PageSize, Registration, Tally, Wait};
use network::{DRIVERS, OpenRequest, Payload, PayloadKind, Rpc, SlotLayout};
use rpc::{EndpointPlan, Poll, SocketPlan};
pub(crate) use testkit::content as pattern;
use workload::engine::Feature;

use super::peer::{self, TRANSPORTS, Transport};

/// A line of the table of drivers, over one of its transports.
pub(crate) struct Entry {
    registration: &'static Registration<Rpc, OpenRequest>,
    /// None where nothing is sent.
    pub(crate) transport: Option<&'static Transport>,
    /// Name of it in messages: the provider, or else the driver.
    pub(crate) name: &'static str,
    missing: Option<String>,
}

impl Entry {
    /// Loopback addresses to be tried.
    pub(crate) fn hosts(&self) -> &'static [&'static str] {
        self.transport.map_or(&["127.0.0.1"], |transport| transport.hosts)
    }

    /// So many connections, or as many as it can have.
    pub(crate) fn connections(&self, wanted: u32) -> u32 {
        self.transport.map_or(wanted, |transport| transport.connections_max.min(wanted))
    }

    /// Plan of an endpoint.
    pub(crate) fn plan(&self, address: SocketAddr, tag: u32) -> EndpointPlan {
        peer::plan(self.transport.map_or("tcp", |transport| transport.provider), address, tag)
    }
}

impl Deref for Entry {
    type Target = Registration<Rpc, OpenRequest>;

    fn deref(&self) -> &Self::Target {
        self.registration
    }
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| DRIVERS.iter().flat_map(entries_of).collect());

fn entries_of(registration: &'static Registration<Rpc, OpenRequest>) -> Vec<Entry> {
    let entry = |transport: Option<&'static Transport>| Entry {
        registration,
        transport,
        name: transport.map_or(registration.name, |transport| transport.provider),
        missing: transport.and_then(Transport::missing),
    };
    if registration.capabilities.targetless {
        return vec![entry(None)];
    }
    let own = TRANSPORTS.iter().filter(|transport| transport.driver() == registration.name);
    let entries: Vec<_> = own.map(|transport| entry(Some(transport))).collect();
    assert!(!entries.is_empty(), "no peer is known for the driver {}", registration.name);
    entries
}

/// All drivers over all their transports. Those that this machine lacks are named and left out.
pub(crate) fn everyone() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter(|entry| {
        if let Some(why) = &entry.missing {
            println!("skipped: {}: {why}", entry.name);
        }
        entry.missing.is_none()
    })
}

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
pub(crate) const POLLS: [Poll; 3] = [Poll::Spin, Poll::Adaptive, Poll::Block];

/// Those of them that reach endpoints.
pub(crate) fn on_endpoints() -> impl Iterator<Item = &'static Entry> {
    everyone().filter(|entry| !entry.capabilities.targetless)
}

pub(crate) fn iov(size_bytes: u64) -> Payload {
    Payload { kind: PayloadKind::Iov, size_bytes }
}

pub(crate) fn bulk(size_bytes: u64) -> Payload {
    Payload { kind: PayloadKind::Bulk, size_bytes }
}

pub(crate) fn errno(number: i32) -> i64 {
    -i64::from(number)
}

/// Options that a driver is opened with, to be changed before.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) endpoints: Vec<EndpointPlan>,
    pub(crate) request: Payload,
    pub(crate) reply: Payload,
    pub(crate) connections: u32,
    pub(crate) pipeline: u32,
    pub(crate) depth: u32,
    pub(crate) poll: Poll,
    pub(crate) timeout_ns: u64,
    pub(crate) zero_copy: Feature,
    pub(crate) align: Option<u8>,
}

impl Setup {
    pub(crate) fn new(endpoints: Vec<EndpointPlan>) -> Self {
        Self {
            endpoints,
            request: Payload::EMPTY,
            reply: Payload::EMPTY,
            connections: 1,
            pipeline: 16,
            depth: 8,
            poll: Poll::Adaptive,
            timeout_ns: 30 * SECOND_NS,
            zero_copy: Feature::Auto,
            align: None,
        }
    }

    pub(crate) fn carrying(self, request: Payload, reply: Payload) -> Self {
        Self { request, reply, ..self }
    }

    pub(crate) fn open(&self, entry: &Entry) -> Result<Rig, Error> {
        let layout = SlotLayout::new(self.request, self.reply, self.align);
        // Twice the depth, so that a batch can be larger than the depth.
        let arena = Arc::new(Arena::new(2 * self.depth, layout.slot_bytes, PageSize::Base).expect("memory"));
        let request = OpenRequest {
            endpoints: self.endpoints.clone(),
            request: self.request,
            reply: self.reply,
            layout,
            connections: self.connections,
            pipeline: self.pipeline,
            depth: self.depth,
            poll: self.poll,
            timeout_ns: self.timeout_ns,
            socket: SocketPlan { no_delay: true, zero_copy: self.zero_copy, ..SocketPlan::default() },
            domain: None,
            verify: false,
            seed: 7,
            arena: Arc::clone(&arena),
            device: None,
            secret: None,
            interrupt: Arc::new(AtomicBool::new(false)),
        };
        let opened = (entry.open)(&request)?;
        Ok(Rig {
            driver: opened.driver,
            notes: opened.notes,
            arena,
            layout,
            request: self.request,
            reply: self.reply,
            done: Completions::with_depth(2 * self.depth),
            depth: self.depth,
            is_real: !entry.capabilities.targetless,
        })
    }

    pub(crate) fn rig(&self, entry: &Entry) -> Rig {
        self.open(entry).unwrap_or_else(|error| panic!("{}: {error}", entry.name))
    }
}

/// A driver that was opened, with its buffers.
pub(crate) struct Rig {
    pub(crate) driver: Box<dyn Driver<Rpc>>,
    pub(crate) notes: Vec<String>,
    pub(crate) done: Completions,
    pub(crate) depth: u32,
    arena: Arc<Arena>,
    layout: SlotLayout,
    request: Payload,
    reply: Payload,
    is_real: bool,
}

impl Rig {
    pub(crate) fn rpc(&self, slot: u32, endpoint: u32, sequence: u64) -> Rpc {
        Rpc { slot, endpoint, sequence, bytes: self.request.size_bytes + self.reply.size_bytes }
    }

    /// Payload of the request number `sequence`.
    pub(crate) fn payload(&self, sequence: u64) -> Vec<u8> {
        pattern(sequence, self.request.size_bytes as usize)
    }

    /// Puts the payload of a request into its slot, and something else where the reply goes.
    pub(crate) fn fill(&self, rpc: &Rpc) {
        let payload = self.payload(rpc.sequence);
        // SAFETY: nothing is in flight in this slot, and the reference ends here.
        let buffer = unsafe { self.arena.slot_mut(rpc.slot, self.layout.slot_bytes) };
        buffer.fill(0xa5);
        buffer[self.layout.request_offset_bytes..][..payload.len()].copy_from_slice(&payload);
    }

    /// Checks that the reply in its slot is the echo of the request, and that nothing around it was touched.
    pub(crate) fn check(&self, rpc: &Rpc) {
        if !self.is_real {
            return;
        }
        let payload = self.payload(rpc.sequence);
        // SAFETY: as for `fill`.
        let buffer = unsafe { self.arena.slot_mut(rpc.slot, self.layout.slot_bytes) };
        let begin = self.layout.reply_offset_bytes;
        let reply = &buffer[begin..begin + self.reply.size_bytes as usize];
        if !payload.is_empty() {
            let whole = reply.chunks(payload.len()).all(|chunk| chunk == &payload[..chunk.len()]);
            assert!(whole, "the reply of {} is no echo", rpc.sequence);
        }
        let sent = &buffer[self.layout.request_offset_bytes..][..payload.len()];
        assert!(sent == payload, "the request of {} was changed", rpc.sequence);
        let after = &buffer[begin + self.reply.size_bytes as usize..];
        assert!(after.iter().all(|&byte| byte == 0xa5), "something lies behind the reply");
    }

    /// Runs RPCs to their end, as many at a time as the driver takes. Completions in the order of their arrival.
    pub(crate) fn run_all(&mut self, rpcs: &[Rpc]) -> Vec<Completion> {
        let (mut offered, mut finished) = (0, Vec::new());
        while finished.len() < rpcs.len() {
            self.done.clear();
            offered += self.driver.submit(&rpcs[offered..], &mut self.done).expect("submit").accepted;
            let wait = if self.done.is_empty() { Wait::AtLeast(1) } else { Wait::None };
            self.driver.reap(wait, &mut self.done).expect("reap");
            finished.extend_from_slice(self.done.as_slice());
            assert!(finished.len() <= offered, "more completions than submissions");
        }
        finished
    }

    /// Runs one RPC to its end.
    pub(crate) fn run(&mut self, rpc: Rpc) -> i64 {
        let finished = self.run_all(&[rpc]);
        assert_eq!((finished.len(), finished[0].slot), (1, rpc.slot));
        finished[0].result
    }

    /// Runs `rounds` batches of `depth` RPCs with checked payloads to endpoint 0, numbered from `first`.
    pub(crate) fn echo(&mut self, name: &str, rounds: u64, first: u64) {
        for round in 0..rounds {
            let number = |slot| first + round * u64::from(self.depth) + u64::from(slot);
            let rpcs: Vec<_> = (0..self.depth).map(|slot| self.rpc(slot, 0, number(slot))).collect();
            rpcs.iter().for_each(|rpc| self.fill(rpc));
            for completion in self.run_all(&rpcs) {
                let rpc = &rpcs[completion.slot as usize];
                assert_eq!(completion.result, rpc.bytes as i64, "{name}: {} {}", self.request, self.reply);
                self.check(rpc);
            }
        }
    }

    /// The sum of a tally over the parts; none when the driver does not count it.
    pub(crate) fn tally(&mut self, name: &str) -> Option<f64> {
        let tallies: Vec<Tally> = self.driver.tallies();
        tallies.iter().filter(|tally| tally.name == name).map(|tally| tally.value).reduce(|a, b| a + b)
    }
}
