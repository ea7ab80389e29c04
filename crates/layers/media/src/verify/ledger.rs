//! Ledger of the last writes to each block, by all workers and phases of a run.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::plan::MediaPlan;
use driver::Error;
use workload::target::TargetPlan;

use super::target_id;

/// Blocks that one ledger can follow: 4 bytes each.
const LEDGER_BLOCKS_MAX: u64 = 1 << 30;

/// One bit for each grain, set and read by all workers.
#[derive(Debug)]
struct Bits(Vec<AtomicU64>);

impl Bits {
    fn new(count: u64) -> Self {
        Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn get(&self, at: u64) -> bool {
        self.0[(at / 64) as usize].load(Ordering::Relaxed) & (1 << (at % 64)) != 0
    }

    #[inline]
    fn put(&self, at: u64, value: bool) {
        let (word, bit) = (&self.0[(at / 64) as usize], 1 << (at % 64));
        if value {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// How often each grain of the targets was written in this run; shared by all workers and phases. A grain is the block where all
/// have one size, else the largest part that all blocks are multiples of. 0: not by this run.
#[derive(Debug)]
pub struct Ledger {
    run: u64,
    targets: Vec<TargetPlan>,
    /// Number of the first grain of each target.
    firsts: Vec<u64>,
    grain_bytes: u64,
    sequences: Vec<AtomicU32>,
    /// Grains that a written block begins with.
    begins: Bits,
    /// Grains that were found right, or told as wrong, since they were written.
    checked: Bits,
    /// Sequence of grains that were laid out and not written since: 1 once they were, 0 before.
    laid_out: AtomicU32,
}

impl Ledger {
    /// A ledger for the blocks of a phase. `run` is the number that they carry, unless the plan names another
    /// ([`MediaPlan::verify_run`]).
    ///
    /// # Errors
    /// When there are too many blocks to track.
    pub fn new(plan: &MediaPlan, run: u64) -> Result<Self, Error> {
        let grain_bytes = plan.verify_grain_bytes();
        let mut grains = 0u64;
        let mut firsts = Vec::with_capacity(plan.targets.len());
        for target in &plan.targets {
            firsts.push(grains);
            grains += target.size_bytes / grain_bytes;
        }
        if grains > LEDGER_BLOCKS_MAX {
            return Err(Error::usage("verify", "too many blocks to track").with("blocks", grains).remedy(
                format!("use a larger --block-size or a smaller --size: at most {LEDGER_BLOCKS_MAX} blocks"),
            ));
        }
        Ok(Self {
            run: plan.verify_run.unwrap_or(run),
            targets: plan.targets.clone(),
            firsts,
            grain_bytes,
            sequences: (0..grains).map(|_| AtomicU32::new(0)).collect(),
            begins: Bits::new(grains),
            checked: Bits::new(grains),
            laid_out: AtomicU32::new(0),
        })
    }

    /// The number that the blocks carry.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run
    }

    pub(super) fn grain_bytes(&self) -> u64 {
        self.grain_bytes
    }

    /// Whether the blocks of `plan` are the ones of this ledger: of the same targets, of the same grain and the same run.
    #[must_use]
    pub fn fits(&self, plan: &MediaPlan, run: u64) -> bool {
        self.run == plan.verify_run.unwrap_or(run)
            && self.grain_bytes == plan.verify_grain_bytes()
            && self.targets.len() == plan.targets.len()
            && self.targets.iter().zip(&plan.targets).all(|(own, target)| is_same_range(own, target))
    }

    /// Whether it is about a part of these ranges.
    #[must_use]
    pub fn overlaps(&self, targets: &[TargetPlan]) -> bool {
        overlap(&self.targets, targets).is_some()
    }

    /// Notes that all blocks were laid out with sequence 1.
    pub fn laid_out(&self) {
        self.sequences.iter().for_each(|sequence| sequence.store(1, Ordering::Relaxed));
        self.laid_out.store(1, Ordering::Relaxed);
    }

    /// The grains of a part of a target.
    #[inline]
    pub(super) fn grains(&self, target: u16, offset_bytes: u64, length: u32) -> Range<u64> {
        let target = usize::from(target);
        let first =
            self.firsts[target] + (offset_bytes - self.targets[target].offset_bytes) / self.grain_bytes;
        first..first + u64::from(length).div_ceil(self.grain_bytes)
    }

    /// Notes that a block is about to be written over these grains.
    #[inline]
    pub(super) fn begin_block(&self, grains: &Range<u64>) {
        for grain in grains.clone() {
            self.begins.put(grain, grain == grains.start);
            self.checked.put(grain, false);
        }
        // What is left of a block that was there begins behind it.
        if grains.end < self.sequences.len() as u64 {
            self.begins.put(grains.end, true);
        }
    }

    /// The sequence of the next write of a grain.
    #[inline]
    pub(super) fn advance(&self, grain: u64) -> u64 {
        u64::from(self.sequences[grain as usize].fetch_add(1, Ordering::Relaxed)) + 1
    }

    /// Sequence of the last write of a grain; 0: not by this run.
    #[inline]
    pub(super) fn sequence(&self, grain: u64) -> u64 {
        u64::from(self.sequences[grain as usize].load(Ordering::Relaxed))
    }

    /// Notes that grains were discarded.
    pub(super) fn discarded(&self, grains: Range<u64>) {
        for grain in grains {
            self.sequences[grain as usize].store(0, Ordering::Relaxed);
        }
    }

    /// Notes that grains were read and told.
    pub(super) fn checked(&self, grains: Range<u64>) {
        grains.for_each(|grain| self.checked.put(grain, true));
    }

    /// Whether a phase wrote this grain, it was not discarded since, and was not checked since.
    #[inline]
    pub(crate) fn is_due(&self, grain: u64) -> bool {
        self.sequence(grain) > u64::from(self.laid_out.load(Ordering::Relaxed)) && !self.checked.get(grain)
    }

    /// Whether all of a block of one grain, or a part of a block of several, is to be read back.
    #[inline]
    pub(crate) fn is_due_at(&self, target: u16, offset_bytes: u64, length: u32) -> bool {
        self.grains(target, offset_bytes, length).any(|grain| self.is_due(grain))
    }

    /// Blocks that phases wrote, that were not discarded since and are not checked yet.
    #[must_use]
    pub fn written_blocks(&self) -> u64 {
        let begins = |&grain: &u64| {
            let follows = grain > 0 && self.is_due(grain - 1) && !self.begins.get(grain);
            self.is_due(grain) && (!follows || self.firsts.contains(&grain))
        };
        (0..self.sequences.len() as u64).filter(begins).count() as u64
    }

    /// The grains that worker `worker` of `workers` reads back.
    pub(crate) fn share(&self, worker: u32, workers: u32) -> Range<u64> {
        let cut =
            |part: u32| (self.sequences.len() as u128 * u128::from(part) / u128::from(workers.max(1))) as u64;
        cut(worker)..cut(worker + 1)
    }

    /// The next block to read back that begins in `grains`, with at most `most_bytes`: target, offset and length. Moves the start of
    /// `grains` behind it. A block of which a part was written over is read in the pieces that are left.
    pub(crate) fn next_written(&self, grains: &mut Range<u64>, most_bytes: u64) -> Option<(u16, u64, u32)> {
        let first = grains.clone().find(|&grain| self.is_due(grain));
        let Some(first) = first else {
            grains.start = grains.end;
            return None;
        };
        let target = self.firsts.partition_point(|&begin| begin <= first) - 1;
        let target_end = self.firsts.get(target + 1).copied().unwrap_or(self.sequences.len() as u64);
        let most = (most_bytes / self.grain_bytes).max(1);
        let last = grains.end.min(target_end).min(first + most);
        let is_of_block = |&grain: &u64| self.is_due(grain) && !self.begins.get(grain);
        let end = first + 1 + (first + 1..last).take_while(is_of_block).count() as u64;
        grains.start = end;
        let offset = self.targets[target].offset_bytes + (first - self.firsts[target]) * self.grain_bytes;
        Some((target as u16, offset, ((end - first) * self.grain_bytes) as u32))
    }
}

fn is_same_range(one: &TargetPlan, other: &TargetPlan) -> bool {
    target_id(&one.path) == target_id(&other.path)
        && (one.offset_bytes, one.size_bytes) == (other.offset_bytes, other.size_bytes)
}

/// The first path on which both lists of ranges share a byte. Memory and nothing are each worker's own.
#[must_use]
pub fn overlap<'a>(some: &'a [TargetPlan], others: &[TargetPlan]) -> Option<&'a str> {
    let end = |target: &TargetPlan| target.offset_bytes.saturating_add(target.size_bytes);
    let share = |one: &TargetPlan, other: &TargetPlan| {
        one.kind.is_storage()
            && one.offset_bytes < end(other)
            && other.offset_bytes < end(one)
            && target_id(&one.path) == target_id(&other.path)
    };
    some.iter().find(|one| others.iter().any(|other| share(one, other))).map(|one| one.path.as_str())
}
