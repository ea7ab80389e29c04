//! Verification of the blocks of one worker: what was written last where, and whether it is there.

mod backlog;
mod dump;
mod ledger;
mod on_device;

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use crate::plan::MediaPlan;
use driver::{Error, Fault};
use units::path_of;
use workload::content::{BlockChecker, BlockWriter, Expected, Fault as BlockFault, Mismatch, Repeated};

use crate::{MediaClass, MediaOperation};
use backlog::{Backlog, Block};
use dump::Dump;
pub use ledger::{Ledger, overlap};

/// Content of the blocks of a target.
enum Blocks {
    /// A header in each interval, and data that follow from it.
    Sealed { writer: BlockWriter, checker: Box<BlockChecker> },
    /// The same bytes in every block, and nothing that tells one block or write from another.
    Repeated(Arc<Repeated>),
}

impl Blocks {
    fn of(plan: &MediaPlan, ledger_run: u64, run: Option<u64>) -> Result<Vec<Self>, Error> {
        let interval = plan.verify_interval_bytes.unwrap_or(4096) as u32;
        let usage = |error: workload::content::LayoutError| Error::usage("verify", error.to_string());
        if let Some(pattern) = &plan.verify_pattern {
            let repeated = Arc::new(Repeated::new(pattern));
            return Ok(plan.targets.iter().map(|_| Self::Repeated(Arc::clone(&repeated))).collect());
        }
        let sealed = |target: &workload::target::TargetPlan| {
            let id = target_id(&target.path);
            let writer = BlockWriter::new(ledger_run, id, interval).map_err(usage)?;
            let checker = Box::new(BlockChecker::new(run, id, interval).map_err(usage)?);
            Ok(Self::Sealed { writer, checker })
        };
        plan.targets.iter().map(sealed).collect()
    }

    fn write(&self, buffer: &mut [u8], offset: u64, sequence: u64) {
        match self {
            Self::Sealed { writer, .. } => writer.write_block(buffer, offset, sequence),
            Self::Repeated(repeated) => repeated.fill(buffer, offset),
        }
    }

    fn check(&mut self, buffer: &[u8], offset: u64, expected: Expected) -> Result<(), Mismatch> {
        match self {
            Self::Sealed { checker, .. } => checker.check_block(buffer, offset, expected).map(drop),
            Self::Repeated(repeated) => repeated.check(buffer, offset),
        }
    }

    /// Content expected of a block that was read as `buffer`.
    fn remade(&self, buffer: &[u8], offset: u64, expected: Expected) -> Vec<u8> {
        match self {
            Self::Sealed { checker, .. } => checker.remade(buffer, offset, expected),
            Self::Repeated(repeated) => {
                let mut made = vec![0; buffer.len()];
                repeated.fill(&mut made, offset);
                made
            }
        }
    }
}

/// Writes and checks the blocks of one worker.
pub struct Verifier {
    ledger: Arc<Ledger>,
    blocks: Vec<Blocks>,
    accepts_foreign: bool,
    reads_back: bool,
    backlog: Option<Backlog>,
    dump: Option<Dump>,
    paths: Vec<String>,
}

impl Verifier {
    /// The verifier of one worker. With `accepts_foreign`, blocks that this run did not write are checked against themselves only,
    /// and carry the run that wrote them, or the one that the plan names ([`MediaPlan::verify_run`]).
    ///
    /// # Errors
    /// When the interval does not fit the blocks.
    pub fn new(plan: &MediaPlan, ledger: Arc<Ledger>, accepts_foreign: bool) -> Result<Self, Error> {
        let run = (!accepts_foreign || plan.verify_run.is_some()).then_some(ledger.run());
        Ok(Self {
            blocks: Blocks::of(plan, ledger.run(), run)?,
            accepts_foreign,
            reads_back: false,
            backlog: plan.verify_backlog.map(|backlog| Backlog::new(backlog, plan.load.depth)),
            dump: plan.verify_dump.as_ref().map(|directory| Dump::new(directory)),
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

    /// Where what was written is noted, for a source that visits only that.
    pub(crate) fn written(&self) -> Option<&Arc<Ledger>> {
        self.reads_back.then_some(&self.ledger)
    }

    /// Whether a read-back passes over this block: nothing was written that could be read.
    #[inline]
    pub(crate) fn passes_over(&self, target: u16, offset: u64, length: u32) -> bool {
        self.reads_back && !self.ledger.is_due_at(target, offset, length)
    }

    /// The block of the backlog to read now; none while it is the turn of the load.
    #[inline]
    pub(crate) fn next_check(&mut self) -> Option<Block> {
        let backlog = self.backlog.as_mut()?;
        loop {
            let (target, offset, length) = backlog.peek()?;
            // Written again and read since, or discarded.
            if self.ledger.is_due_at(target, offset, length) {
                return Some((target, offset, length));
            }
            backlog.pop(false);
        }
    }

    /// The block of the backlog that was given last is being read.
    #[inline]
    pub(crate) fn takes_check(&mut self) {
        self.backlog.iter_mut().for_each(|backlog| backlog.pop(true));
    }

    /// Fills a block that is about to be written.
    pub(crate) fn write(&mut self, operation: &MediaOperation, buffer: &mut [u8]) {
        let grains = self.ledger.grains(operation.target, operation.offset, operation.length);
        self.ledger.begin_block(&grains);
        let grain_bytes = self.ledger.grain_bytes();
        let blocks = &self.blocks[usize::from(operation.target)];
        let mut offset = operation.offset;
        for (grain, part) in grains.zip(buffer.chunks_mut(grain_bytes as usize)) {
            blocks.write(part, offset, self.ledger.advance(grain));
            offset += grain_bytes;
        }
    }

    /// Checks a block that was read; notes what any other operation did.
    pub(crate) fn check(&mut self, operation: &MediaOperation, buffer: &[u8]) -> Result<(), Fault> {
        let MediaOperation { target, offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Write => {
                self.backlog.iter_mut().for_each(|backlog| backlog.push((target, offset, length)));
                Ok(())
            }
            MediaClass::Discard => {
                self.ledger.discarded(self.ledger.grains(target, offset, length));
                Ok(())
            }
            MediaClass::Read => self.check_read(operation, buffer),
            _ => Ok(()),
        }
    }

    fn check_read(&mut self, operation: &MediaOperation, buffer: &[u8]) -> Result<(), Fault> {
        let grains = self.ledger.grains(operation.target, operation.offset, operation.length);
        let grain_bytes = self.ledger.grain_bytes();
        let target = usize::from(operation.target);
        let mut offset = operation.offset;
        let (mut found, mut kept) = (Ok(()), String::new());
        for (grain, part) in grains.clone().zip(buffer.chunks(grain_bytes as usize)) {
            let expected = match self.ledger.sequence(grain) {
                0 if self.accepts_foreign => Some(Expected::Any),
                // Not written by this run: nothing is known about it.
                0 => None,
                sequence => Some(Expected::Exactly(sequence)),
            };
            let checked = expected.map_or(Ok(()), |expected| {
                self.blocks[target].check(part, offset, expected).map_err(|mismatch| (mismatch, expected))
            });
            if let Err((mismatch, expected)) = checked {
                if let Some(dump) = &mut self.dump {
                    let should = self.blocks[target].remade(part, offset, expected);
                    kept = dump.write(&self.paths[target], offset, part, &should);
                }
                found = Err(mismatch);
                break;
            }
            offset += grain_bytes;
        }
        if operation.is_extra {
            self.ledger.checked(grains);
        }
        found.map_err(|mismatch| Fault {
            cause: mismatch.fault.name(),
            detail: self.describe(target, &mismatch) + &kept,
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
        format!("{path}, block at offset {offset}, from its byte {at_byte}: {fault}{other}")
    }
}

/// The number that blocks carry for their target: from its path, so that a later run finds its blocks again (FNV-1a, 64 bits).
pub(crate) fn target_id(path: &str) -> u64 {
    // However the path was typed: `file`, `./file` and `/data/file` in /data are one target.
    let place = std::path::absolute(path_of(path)).unwrap_or_else(|_| path_of(path).into_owned());
    place.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
