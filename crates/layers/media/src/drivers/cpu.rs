//! `cpu`: an operation keeps the processor busy for a time; nothing is moved.

use std::hint::black_box;

use driver::{Capabilities, Clock, Completions, Driver, Error, HostClock, Opened, Registration, Submitted};

use crate::descriptor::{self, UNSUPPORTED};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "cpu";
/// How long an operation takes where nothing is said.
const CHUNK_NS: u64 = 50_000_000;
/// Numbers that are sorted at a time: they stay in a processor's caches.
const NUMBERS: usize = 4096;
/// Odd, so that multiples of it visit all numbers before one comes again.
const STEP: u32 = 0x9E37_79B1;

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["nop"],
    asynchronous: false,
    depth_max: 1,
    targetless: true,
    direct: false,
    options: &["cpu-chunk", "cpu-sort"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "keeps a CPU busy for a time; moves no data",
    capabilities: CAPABILITIES,
    open: |request| {
        descriptor::check(request, NAME, &CAPABILITIES)?;
        let burn = request.options.burn.unwrap_or_default();
        let chunk_ns = if burn.chunk_ns == 0 { CHUNK_NS } else { burn.chunk_ns };
        let numbers = if burn.sorts { vec![0; NUMBERS] } else { Vec::new() };
        Ok(Opened {
            driver: Box::new(Cpu { clock: HostClock::get(), chunk_ns, numbers, next: 1 }),
            notes: Vec::new(),
        })
    },
};

struct Cpu {
    clock: HostClock,
    chunk_ns: u64,
    numbers: Vec<u32>,
    next: u32,
}

impl Cpu {
    fn burn(&mut self) {
        let until_ns = self.clock.now_ns() + self.chunk_ns;
        while self.clock.now_ns() < until_ns {
            for number in &mut self.numbers {
                self.next = self.next.wrapping_mul(STEP).wrapping_add(1);
                *number = self.next;
            }
            black_box(&mut self.numbers).sort_unstable();
        }
    }
}

impl Driver<MediaOperation> for Cpu {
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        if operation.class == MediaClass::Nop {
            self.burn();
            done.push(operation.slot, i64::from(operation.length));
        } else {
            done.push(operation.slot, UNSUPPORTED);
        }
        Ok(Submitted { accepted: 1 })
    }
}
