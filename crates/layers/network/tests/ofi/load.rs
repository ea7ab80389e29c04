//! RPCs through the driver, with payloads that are checked.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::{Arena, Completions, Driver, Error, PageSize, Wait};
use network::{DRIVERS, OpenRequest, Payload, PayloadKind, Rpc, SlotLayout};
use rpc::payload::{Content, Direction};
use rpc::{EndpointPlan, Poll, SocketPlan};

use crate::engine::Engine;

const SEED: u32 = 7;

/// Bytes of an RPC's payload.
fn payload(sequence: u64, direction: Direction, bytes: usize) -> Vec<u8> {
    let mut made = vec![0; bytes];
    Content::new(SEED).fill(direction, sequence, &mut made);
    made
}

/// Load that is to be run.
pub(crate) struct Load {
    pub(crate) endpoints: Vec<EndpointPlan>,
    pub(crate) request: Payload,
    pub(crate) reply: Payload,
    pub(crate) depth: u32,
    pub(crate) poll: Poll,
    pub(crate) timeout: Duration,
}

/// It runs.
pub(crate) struct Running {
    driver: Box<dyn Driver<Rpc>>,
    pub(crate) damaged: usize,
    load: Load,
    arena: Arc<Arena>,
    layout: SlotLayout,
    next: u64,
}

impl Load {
    /// 2 KiB each way to the first tag of an engine, 16 in flight.
    pub(crate) fn new(engine: &Engine) -> Self {
        let two = Payload { kind: PayloadKind::Iov, size_bytes: 2048 };
        Self {
            endpoints: engine.endpoints(1),
            request: two,
            reply: two,
            depth: 16,
            poll: Poll::Adaptive,
            timeout: Duration::from_secs(20),
        }
    }

    pub(crate) fn open(self) -> Running {
        self.try_open().expect("opens")
    }

    fn try_open(&self) -> Result<Running, Error> {
        let layout = SlotLayout::new(self.request, self.reply, None);
        let arena = Arc::new(Arena::new(self.depth, layout.slot_bytes, PageSize::Base)?);
        let request = OpenRequest {
            endpoints: self.endpoints.clone(),
            request: self.request,
            reply: self.reply,
            layout,
            connections: 1,
            pipeline: self.depth,
            depth: self.depth,
            poll: self.poll,
            timeout_ns: self.timeout.as_nanos() as u64,
            socket: SocketPlan::default(),
            domain: None,
            verify: true,
            seed: SEED,
            arena: Arc::clone(&arena),
            device: None,
            secret: None,
            interrupt: Arc::default(),
        };
        let registration = driver::find(DRIVERS, "ofi")?;
        let opened = (registration.open)(&request)?;
        assert!(opened.notes[0].contains("provider"), "{:?}", opened.notes);
        let load = Self { endpoints: self.endpoints.clone(), ..*self };
        Ok(Running { driver: opened.driver, damaged: 0, load, arena, layout, next: 0 })
    }
}

impl Running {
    /// Runs so many RPCs, turning to the endpoints one after the other; what came of each: endpoint and result.
    pub(crate) fn run(&mut self, count: usize) -> Vec<(u32, i64)> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut free: Vec<u32> = (0..self.load.depth).collect();
        let mut flying: HashMap<u32, Rpc> = HashMap::new();
        let (mut results, mut done) = (Vec::new(), Completions::with_depth(self.load.depth));
        let mut left = count;
        while results.len() < count {
            assert!(Instant::now() < deadline, "it hangs: {} of {count}", results.len());
            while left > 0
                && let Some(&slot) = free.last()
            {
                let rpc = self.make(slot);
                if self.driver.submit(&[rpc], &mut done).expect("submits").accepted == 0 {
                    break;
                }
                free.pop();
                flying.insert(slot, rpc);
                self.next += 1;
                left -= 1;
            }
            self.driver.reap(Wait::Timeout { count: 1, timeout_ns: 50_000_000 }, &mut done).expect("reaps");
            for completion in done.as_slice() {
                let rpc = flying.remove(&completion.slot).expect("it was in flight");
                let result = if completion.result >= 0 {
                    self.check(&rpc, completion.result)
                } else {
                    completion.result
                };
                results.push((rpc.endpoint, result));
                free.push(completion.slot);
            }
            done.clear();
        }
        results
    }

    fn make(&mut self, slot: u32) -> Rpc {
        let (request, reply) = (self.load.request.size_bytes, self.load.reply.size_bytes);
        self.fill(slot, self.layout.reply_offset_bytes, &vec![0xee; reply as usize]);
        self.fill(
            slot,
            self.layout.request_offset_bytes,
            &payload(self.next, Direction::Request, request as usize),
        );
        let endpoint = (self.next % self.load.endpoints.len() as u64) as u32;
        Rpc { slot, endpoint, sequence: self.next, bytes: request + reply }
    }

    fn fill(&self, slot: u32, offset: usize, bytes: &[u8]) {
        // SAFETY: the slot is free, and its payloads lie inside its buffer.
        unsafe {
            self.arena.slot_mut(slot, self.arena.slot_bytes())[offset..][..bytes.len()]
                .copy_from_slice(bytes);
        }
    }

    fn check(&mut self, rpc: &Rpc, result: i64) -> i64 {
        let bytes = self.load.reply.size_bytes as usize;
        // SAFETY: the slot's RPC has completed.
        let whole = unsafe { self.arena.slot_mut(rpc.slot, self.arena.slot_bytes()) };
        let got = &whole[self.layout.reply_offset_bytes..][..bytes];
        if got == payload(rpc.sequence, Direction::Reply, bytes) {
            return result;
        }
        self.damaged += 1;
        -i64::from(i32::MAX)
    }
}
