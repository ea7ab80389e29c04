//! Operations on memory of a device over a driver of memory of the host.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use driver::{Arena, Completions, Driver, Error, Operation, PageSize, Submitted, Wait};
use gpu::{DeviceBuffers, Pinned, Staged, Stream, Transfer, Transfers};

use crate::{context, fetched};

const BYTES: usize = 8192;
/// Block of an operation that moves nothing: its result is the number of writes before it.
const SYNC: usize = usize::MAX;

#[derive(Clone, Copy, Debug)]
struct Op {
    slot: u32,
    block: usize,
    is_write: bool,
}

impl Operation for Op {
    const CLASSES: &'static [&'static str] = &["read", "write"];
    fn class(&self) -> usize {
        usize::from(self.is_write)
    }
    fn slot(&self) -> u32 {
        self.slot
    }
    fn bytes(&self) -> u64 {
        if self.block == SYNC { 0 } else { BYTES as u64 }
    }
}

impl Transfers for Op {
    fn transfer(&self) -> Transfer {
        match (self.block, self.is_write) {
            (SYNC, _) => Transfer::None,
            (_, true) => Transfer::Out,
            (_, false) => Transfer::In,
        }
    }
}

/// Blocks in memory, one operation completed a reap; operations on block 13 fail.
struct Blocks {
    arena: Arc<Arena>,
    blocks: Arc<Mutex<Vec<Vec<u8>>>>,
    queue: VecDeque<Op>,
    depth: usize,
    is_synchronous: bool,
    writes: i64,
}

impl Blocks {
    fn carry_out(&mut self, op: Op) -> i64 {
        match op.block {
            13 => return -5,
            SYNC => return self.writes,
            _ => self.writes += i64::from(op.is_write),
        }
        // SAFETY: the operation has the slot's turn.
        let buffer = unsafe { self.arena.slot_mut(op.slot, BYTES) };
        let block = &mut self.blocks.lock().expect("whole")[op.block];
        if op.is_write {
            block.copy_from_slice(buffer);
        } else {
            buffer.copy_from_slice(block);
        }
        BYTES as i64
    }
}

impl Driver<Op> for Blocks {
    fn submit(&mut self, batch: &[Op], done: &mut Completions) -> Result<Submitted, Error> {
        if self.is_synchronous {
            let result = self.carry_out(batch[0]);
            done.push(batch[0].slot, result);
            return Ok(Submitted { accepted: 1 });
        }
        let taken = batch.len().min(self.depth - self.queue.len());
        self.queue.extend(&batch[..taken]);
        Ok(Submitted { accepted: taken })
    }

    fn reap(&mut self, _wait: Wait, done: &mut Completions) -> Result<(), Error> {
        if let Some(op) = self.queue.pop_front() {
            let result = self.carry_out(op);
            done.push(op.slot, result);
        }
        Ok(())
    }
}

struct Bench {
    driver: Staged<Op>,
    device: Arc<DeviceBuffers>,
    blocks: Arc<Mutex<Vec<Vec<u8>>>>,
    stream: Stream,
}

fn bench(depth: u32, inner_depth: usize) -> Bench {
    let context = context();
    let arena = Arc::new(Arena::new(depth, BYTES, PageSize::Base).expect("memory"));
    let device = Arc::new(DeviceBuffers::new(&context, depth, BYTES).expect("memory of the device"));
    let blocks = Arc::new(Mutex::new((0..16).map(|block| vec![block as u8; BYTES]).collect::<Vec<_>>()));
    let inner = Blocks {
        arena: Arc::clone(&arena),
        blocks: Arc::clone(&blocks),
        queue: VecDeque::new(),
        depth: inner_depth,
        is_synchronous: depth == 1,
        writes: 0,
    };
    let pinned = Pinned::new(&context, &arena).expect("registered");
    let driver = Staged::new(Box::new(inner), &arena, &device, Some(pinned), depth).expect("a driver");
    Bench { driver, device, blocks, stream: Stream::new(&context).expect("a stream") }
}

impl Bench {
    fn put(&mut self, slot: u32, byte: u8) {
        let bytes = vec![byte; BYTES];
        // SAFETY: a vector and a buffer of that length.
        unsafe { self.stream.copy_in(self.device.slot_address(slot), bytes.as_ptr(), BYTES) }
            .expect("copied");
        self.stream.wait().expect("done");
    }

    /// Runs a batch to its end: results by slot.
    fn run(&mut self, batch: &[Op], depth: u32) -> Vec<(u32, i64)> {
        let mut done = Completions::with_depth(depth).limited_to(2);
        let mut results = Vec::new();
        let mut rest = batch;
        while results.len() < batch.len() {
            if !rest.is_empty() {
                let taken = self.driver.submit(rest, &mut done).expect("submitted").accepted;
                rest = &rest[taken..];
            }
            self.driver.reap(Wait::AtLeast(1), &mut done).expect("reaped");
            assert!(done.len() <= 2, "as many as there is room for");
            results.extend(done.as_slice().iter().map(|completion| (completion.slot, completion.result)));
            done.clear();
        }
        results.sort_unstable();
        results
    }
}

#[test]
fn reads_end_on_the_device_and_writes_come_from_it() {
    for (depth, inner_depth) in [(1, 1), (4, 4), (4, 1), (8, 3)] {
        let mut bench = bench(depth, inner_depth);
        let reads: Vec<_> =
            (0..depth).map(|slot| Op { slot, block: slot as usize + 1, is_write: false }).collect();
        let whole: Vec<_> = (0..depth).map(|slot| (slot, BYTES as i64)).collect();
        assert_eq!(bench.run(&reads, depth), whole);
        for slot in 0..depth {
            assert!(
                fetched(&bench.device, slot, BYTES).iter().all(|&byte| byte == slot as u8 + 1),
                "slot {slot}"
            );
        }
        (0..depth).for_each(|slot| bench.put(slot, 100 + slot as u8));
        let writes: Vec<_> =
            (0..depth).map(|slot| Op { slot, block: slot as usize, is_write: true }).collect();
        assert_eq!(bench.run(&writes, depth), whole);
        let blocks = bench.blocks.lock().expect("whole");
        for slot in 0..depth as usize {
            assert!(blocks[slot].iter().all(|&byte| byte == 100 + slot as u8), "block {slot}");
        }
        drop(blocks);
        let copied = bench
            .driver
            .tallies()
            .iter()
            .find(|tally| tally.name == "gpu_copied_bytes")
            .map(|tally| tally.value);
        assert_eq!(copied, Some(f64::from(depth) * 2.0 * BYTES as f64));
    }
}

#[test]
fn a_read_that_failed_copies_nothing() {
    for depth in [1, 4] {
        let mut bench = bench(depth, 4);
        bench.put(0, 77);
        assert_eq!(bench.run(&[Op { slot: 0, block: 13, is_write: false }], depth), [(0, -5)]);
        assert!(fetched(&bench.device, 0, BYTES).iter().all(|&byte| byte == 77));
    }
}

#[test]
fn a_sync_waits_for_the_data_of_the_writes_before_it() {
    let mut bench = bench(8, 8);
    let write = |slot| Op { slot, block: slot as usize, is_write: true };
    let sync = |slot| Op { slot, block: SYNC, is_write: false };
    let batch = [write(0), write(1), sync(2), write(3), sync(4)];
    let results: Vec<_> = bench.run(&batch, 8).into_iter().map(|(_, result)| result).collect();
    let whole = BYTES as i64;
    assert_eq!(results, [whole, whole, 2, whole, 3]);
}
