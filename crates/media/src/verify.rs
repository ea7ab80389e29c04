//! Verification of the blocks of one worker: what was written last where, and whether it is there.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::{Error, Fault};
use workload::content::{BlockChecker, BlockWriter, Expected, Fault as BlockFault, Mismatch};
use workload::plan::MediaPlan;
use workload::target::{TargetKind, TargetPlan};

use crate::{MediaClass, MediaOperation};

/// Blocks that one ledger can follow: 4 bytes each.
const LEDGER_BLOCKS_MAX: u64 = 1 << 30;
/// A slot in which nothing is in flight.
const IDLE: u64 = u64::MAX;

/// How often each block of the targets was written in this run; shared by all workers and phases. 0: not by this run.
#[derive(Debug)]
pub struct Ledger {
    run: u64,
    targets: Vec<TargetPlan>,
    block_size_bytes: u64,
    sequences: Vec<AtomicU32>,
    /// Sequence of blocks that were laid out and not written since: 1 once they were, 0 before.
    laid_out: AtomicU32,
}

impl Ledger {
    /// A ledger for the blocks of a phase. `run` is the number that they carry, unless the plan names another
    /// ([`MediaPlan::verify_run`]).
    ///
    /// # Errors
    /// When there are too many blocks to follow.
    pub fn new(plan: &MediaPlan, run: u64) -> Result<Self, Error> {
        let block = plan.block_size_bytes_max;
        let blocks: u64 = plan.targets.iter().map(|target| target.size_bytes / block).sum();
        if blocks > LEDGER_BLOCKS_MAX {
            return Err(Error::usage("verify", "too many blocks to follow").with("blocks", blocks).remedy(
                format!("use a larger --block-size or a smaller --size: at most {LEDGER_BLOCKS_MAX} blocks"),
            ));
        }
        Ok(Self {
            run: plan.verify_run.unwrap_or(run),
            targets: plan.targets.clone(),
            block_size_bytes: block,
            sequences: (0..blocks).map(|_| AtomicU32::new(0)).collect(),
            laid_out: AtomicU32::new(0),
        })
    }

    /// The number that the blocks carry.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Whether the blocks of `plan` are the ones of this ledger: of the same targets, of the same size and the same run.
    #[must_use]
    pub fn fits(&self, plan: &MediaPlan, run: u64) -> bool {
        self.run == plan.verify_run.unwrap_or(run)
            && self.block_size_bytes == plan.block_size_bytes_max
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

    /// Whether a phase wrote this block, counted over all targets, and it was not discarded since.
    #[inline]
    fn is_written(&self, block: u64) -> bool {
        self.sequences[block as usize].load(Ordering::Relaxed) > self.laid_out.load(Ordering::Relaxed)
    }

    /// Blocks that phases wrote and that were not discarded since.
    #[must_use]
    pub fn written_blocks(&self) -> u64 {
        (0..self.sequences.len() as u64).filter(|&block| self.is_written(block)).count() as u64
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
        matches!(one.kind, TargetKind::File | TargetKind::BlockDevice)
            && one.offset_bytes < end(other)
            && other.offset_bytes < end(one)
            && target_id(&one.path) == target_id(&other.path)
    };
    some.iter().find(|one| others.iter().any(|other| share(one, other))).map(|one| one.path.as_str())
}

/// Writes and checks the blocks of one worker.
pub struct Verifier {
    ledger: Arc<Ledger>,
    writers: Vec<BlockWriter>,
    checkers: Vec<BlockChecker>,
    in_flight: Vec<u64>,
    accepts_foreign: bool,
    reads_back: bool,
    paths: Vec<String>,
}

impl Verifier {
    /// The verifier of one worker. With `accepts_foreign`, blocks that this run did not write are checked against themselves only,
    /// and carry the run that wrote them, or the one that the plan names ([`MediaPlan::verify_run`]).
    ///
    /// # Errors
    /// When the interval does not fit the blocks.
    pub fn new(plan: &MediaPlan, ledger: Arc<Ledger>, accepts_foreign: bool) -> Result<Self, Error> {
        let interval = plan.verify_interval_bytes.unwrap_or(4096) as u32;
        let usage = |error: workload::content::LayoutError| Error::usage("verify", error.to_string());
        let run = (!accepts_foreign || plan.verify_run.is_some()).then_some(ledger.run);
        let writers =
            plan.targets.iter().map(|target| BlockWriter::new(ledger.run, target_id(&target.path), interval));
        let checkers =
            plan.targets.iter().map(|target| BlockChecker::new(run, target_id(&target.path), interval));
        Ok(Self {
            writers: writers.collect::<Result<_, _>>().map_err(usage)?,
            checkers: checkers.collect::<Result<_, _>>().map_err(usage)?,
            in_flight: vec![IDLE; plan.load.depth as usize],
            accepts_foreign,
            reads_back: false,
            paths: plan.targets.iter().map(|target| target.path.clone()).collect(),
            ledger,
        })
    }

    /// Only blocks that phases of the run wrote are visited.
    #[must_use]
    pub fn reading_back(mut self, reads_back: bool) -> Self {
        self.reads_back = reads_back;
        self
    }

    /// Whether this block is passed over: an operation on it is in flight, or nothing was written that could be read back.
    #[inline]
    pub(crate) fn skips(&self, block: u64) -> bool {
        self.in_flight.contains(&block) || (self.reads_back && !self.ledger.is_written(block))
    }

    /// Notes that an operation on this block is about to be in flight.
    #[inline]
    pub(crate) fn begin(&mut self, slot: u32, block: u64) {
        self.in_flight[slot as usize] = block;
    }

    /// Notes that the operation in this slot is over.
    pub(crate) fn end(&mut self, slot: u32) {
        self.in_flight[slot as usize] = IDLE;
    }

    /// Fills a block that is about to be written.
    pub(crate) fn write(&mut self, operation: &MediaOperation, buffer: &mut [u8]) {
        let block = self.in_flight[operation.slot as usize];
        let sequence = self.ledger.sequences[block as usize].fetch_add(1, Ordering::Relaxed) + 1;
        self.writers[usize::from(operation.target)].write_block(
            buffer,
            operation.offset,
            u64::from(sequence),
        );
    }

    /// Checks a block that was read; frees the slot of any operation.
    pub(crate) fn check(&mut self, operation: &MediaOperation, buffer: &[u8]) -> Result<(), Fault> {
        let block = std::mem::replace(&mut self.in_flight[operation.slot as usize], IDLE);
        if operation.class == MediaClass::Discard && block != IDLE {
            self.ledger.sequences[block as usize].store(0, Ordering::Relaxed);
        }
        if operation.class != MediaClass::Read || block == IDLE {
            return Ok(());
        }
        let expected = match self.ledger.sequences[block as usize].load(Ordering::Relaxed) {
            0 if self.accepts_foreign => Expected::Any,
            // Not written by this run: nothing is known about it.
            0 => return Ok(()),
            sequence => Expected::Exactly(u64::from(sequence)),
        };
        let checked =
            self.checkers[usize::from(operation.target)].check_block(buffer, operation.offset, expected);
        checked.map(|_| ()).map_err(|mismatch| Fault {
            cause: cause(&mismatch.fault),
            detail: self.describe(usize::from(operation.target), &mismatch),
        })
    }

    /// The finding in one line, with paths for the numbers of targets.
    fn describe(&self, target: usize, mismatch: &Mismatch) -> String {
        let path = &self.paths[target];
        let other = match mismatch.fault {
            BlockFault::Swapped { found_target } => {
                self.paths.iter().find(|path| target_id(path) == found_target)
            }
            _ => None,
        };
        let other = other.map_or_else(String::new, |path| format!(", {path}"));
        let Mismatch { offset, at_byte, fault, .. } = mismatch;
        format!("{path}, block at offset {offset}, from its byte {at_byte} on: {fault}{other}")
    }
}

/// One word for each kind of damage.
fn cause(fault: &BlockFault) -> &'static str {
    match fault {
        BlockFault::Unwritten => "unwritten",
        BlockFault::Corrupt => "corrupt",
        BlockFault::Misplaced { .. } => "misplaced",
        BlockFault::Swapped { .. } => "swapped",
        BlockFault::Stale { .. } => "stale",
        BlockFault::Newer { .. } => "newer",
        BlockFault::ForeignRun { .. } => "foreign_run",
        BlockFault::Torn { .. } => "torn",
        BlockFault::OtherInterval { .. } => "other_interval",
    }
}

/// The number that blocks carry for their target: from its path, so that a later run finds its blocks again (FNV-1a, 64 bits).
pub(crate) fn target_id(path: &str) -> u64 {
    // However the path was typed: `file`, `./file` and `/data/file` in /data are one target.
    let place = std::path::absolute(path).unwrap_or_else(|_| path.into());
    place.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
