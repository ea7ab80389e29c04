//! Content of the blocks of a worker: filled before they are written, checked after they were read.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Error, Fault};
use layer::memory::{BufferPart, OnDevice};
use units::clean;
use units::random::{derive_seed, mix64};
use workload::content::verify::INTERVAL_BYTES_MIN;
use workload::content::{BlockChecker, BlockWriter, Expected, Filler, Recipe};
use workload::spec::Refill;

use crate::operation::{FsClass, FsOperation, NameKind};
use crate::plan::FsPlan;
use crate::set::Shape;
use crate::stores::is_store;

/// Interval of headers in blocks of whole pages, in bytes.
const INTERVAL_BYTES: usize = 4096;
/// Number of the write that a block carries: each is written once.
const SEQUENCE: u64 = 1;

/// Fills and checks blocks.
pub(crate) struct Content {
    plan: Arc<FsPlan>,
    arena: Arc<Arena>,
    filler: Filler,
    refills: bool,
    generation: u64,
    /// Where the buffers are not memory of the process alone.
    device: OnDevice,
}

/// Bytes of a block that carry a header, and the interval of its headers; what is left behind them has bytes that follow from their place.
fn sealed(length: usize) -> (usize, usize) {
    if length > 0 && length.is_multiple_of(INTERVAL_BYTES) {
        return (length, INTERVAL_BYTES);
    }
    let whole = length & !7;
    if whole < INTERVAL_BYTES_MIN as usize { (0, 0) } else { (whole, whole) }
}

/// The bytes behind the sealed part of a block.
fn tail(id: u64, offset: u64, at: usize) -> u8 {
    mix64(id ^ mix64(offset + at as u64)) as u8
}

impl Content {
    /// Of worker `worker`.
    ///
    /// # Errors
    /// Content that cannot be made.
    pub(crate) fn new(plan: &Arc<FsPlan>, arena: &Arc<Arena>, worker: u32) -> Result<Self, Error> {
        let filler = plan
            .content
            .filler(plan.load.seed, u64::from(worker))
            .map_err(|error| Error::usage("content", error.to_string()))?;
        let writes = plan.operation == crate::phases::FsOp::Write;
        let content = Self {
            plan: Arc::clone(plan),
            arena: Arc::clone(arena),
            filler,
            refills: writes && (plan.verify || plan.content.refill != Refill::Once),
            generation: 0,
            device: OnDevice::default(),
        };
        if writes {
            for slot in 0..plan.load.depth {
                // SAFETY: nothing is in flight before the phase begins, so every slot is the source's.
                let buffer = unsafe { arena.slot_mut(slot, plan.geometry.block_size_bytes as usize) };
                content.filler.fill_block(buffer, u64::from(slot) * plan.geometry.block_size_bytes, u64::MAX);
            }
        }
        Ok(content)
    }

    /// Takes buffers on a device, or registered ones; those of a device get what those of the host hold.
    pub(crate) fn on_device(&mut self, device: OnDevice) {
        self.device = device;
        let writes = self.plan.operation == crate::phases::FsOp::Write;
        if let Some(content) = self.device.content().filter(|_| writes) {
            let length = self.plan.geometry.block_size_bytes as usize;
            (0..self.plan.load.depth).for_each(|slot| content.send(slot, length));
        }
    }

    /// Whether buffers are made ready for operations.
    pub(crate) fn prepares(&self) -> bool {
        self.refills || (self.plan.verify && self.device.has_content())
    }

    /// Terms of a block whose headers and bytes a kernel makes; none where it has bytes behind the last header.
    fn recipe(&self, operation: &FsOperation, length: usize) -> Option<Recipe> {
        let id = self.plan.set.content_id(operation.rank, operation.item);
        let (whole, interval) = sealed(length);
        let writer = BlockWriter::new(self.plan.verify_run, id, interval as u32).ok()?;
        (whole == length).then(|| writer.recipe())
    }

    /// Makes a block that is verified in a buffer on a device; false where no kernel makes it, or buffers are memory of the host.
    fn seal_on_device(&mut self, operation: &FsOperation, part: BufferPart) -> bool {
        if !self.device.has_content() {
            return false;
        }
        let recipe = self.recipe(operation, part.length);
        recipe
            .zip(self.device.content())
            .is_some_and(|(recipe, content)| content.make(part, &recipe, SEQUENCE, operation.offset_bytes))
    }

    /// Whether a block that was read to a buffer on a device is as this run wrote it, by a kernel; what it cannot tell is fetched for the host to check.
    fn is_right_on_device(&mut self, operation: &FsOperation, length: usize) -> bool {
        if !self.device.has_content() {
            return false;
        }
        let recipe = self.recipe(operation, length);
        let Some(content) = self.device.content() else { return false };
        let part = BufferPart { slot: operation.slot, at: 0, length };
        let is_right = recipe
            .and_then(|recipe| content.is_right(part, &recipe, SEQUENCE, operation.offset_bytes))
            .unwrap_or(false);
        if !is_right {
            content.fetch(operation.slot, length);
        }
        is_right
    }

    /// Fills a block that is about to be written.
    pub(crate) fn fill(&mut self, operation: &FsOperation) {
        let length = operation.length_bytes as usize;
        let part = BufferPart { slot: operation.slot, at: 0, length };
        if operation.class == FsClass::Read && self.plan.verify {
            // Data that never arrive are not to be taken for those of an earlier operation.
            if let Some(content) = self.device.content() {
                content.spoil(part);
            }
            return;
        }
        if operation.class != FsClass::Write || (self.plan.verify && self.seal_on_device(operation, part)) {
            return;
        }
        // SAFETY: the slot is the source's until the operation is submitted.
        let buffer = unsafe { self.arena.slot_mut(operation.slot, length) };
        if self.plan.verify {
            self.seal(operation, buffer);
        } else {
            self.generation += 1;
            let id = self.plan.set.content_id(operation.rank, operation.item);
            let place = operation.offset_bytes.wrapping_add(derive_seed(id, &[]) & !0xfff);
            let recipe = self.filler.recipe();
            match self.plan.content.refill {
                Refill::Once => return,
                Refill::Full => {
                    let made = (self.device.content().zip(recipe))
                        .is_some_and(|(content, recipe)| content.make(part, &recipe, self.generation, place));
                    if made {
                        return;
                    }
                    self.filler.refill_block(buffer, place, self.generation);
                }
                _ => self.filler.stamp(buffer, place, self.generation),
            }
        }
        if let Some(content) = self.device.content() {
            content.send(operation.slot, length);
        }
    }

    fn seal(&self, operation: &FsOperation, buffer: &mut [u8]) {
        let id = self.plan.set.content_id(operation.rank, operation.item);
        let (whole, interval) = sealed(buffer.len());
        if whole > 0
            && let Ok(writer) = BlockWriter::new(self.plan.verify_run, id, interval as u32)
        {
            writer.write_block(&mut buffer[..whole], operation.offset_bytes, SEQUENCE);
        }
        for (at, byte) in buffer.iter_mut().enumerate().skip(whole) {
            *byte = tail(id, operation.offset_bytes, at);
        }
    }

    /// Checks a block that was read.
    ///
    /// # Errors
    /// The first byte that is not as it was written, with path and offset.
    pub(crate) fn check(&mut self, operation: &FsOperation, bytes: u64) -> Result<(), Fault> {
        let length = (operation.length_bytes as usize).min(bytes as usize);
        let is_verified = operation.class == FsClass::Read && self.plan.verify;
        let is_right = is_verified && self.is_right_on_device(operation, length);
        if let Some(content) = self.device.content() {
            content.settle()?;
        }
        if !is_verified || is_right {
            return Ok(());
        }
        // SAFETY: the operation has completed, so its slot is the source's again.
        let buffer = unsafe { &*self.arena.slot_mut(operation.slot, length) };
        let id = self.plan.set.content_id(operation.rank, operation.item);
        let (whole, interval) = sealed(length);
        if whole > 0 {
            // A set that an earlier run wrote carries that run's number.
            let checker = BlockChecker::new(self.plan.verify_expects, id, interval as u32);
            let mut checker =
                checker.map_err(|error| fault(&self.path(operation), "layout", &error.to_string()))?;
            let (sealed, offset) = (&buffer[..whole], operation.offset_bytes);
            if let Err(mismatch) = checker.check_block(sealed, offset, Expected::Any) {
                let at = (mismatch.at_byte as usize).min(whole - 1);
                let expected = checker.remade(sealed, offset, Expected::Any)[at];
                let (place, found) = (mismatch.offset + mismatch.at_byte, sealed[at]);
                // A whole block that belongs elsewhere begins as the right one would.
                let bytes = if expected == found {
                    String::new()
                } else {
                    format!(": expected byte {expected:#04x}, found {found:#04x}")
                };
                let detail = format!("offset {place}: {}{bytes}", mismatch.fault);
                return Err(fault(&self.path(operation), mismatch.fault.name(), &detail));
            }
        }
        for (at, &found) in buffer.iter().enumerate().skip(whole) {
            let expected = tail(id, operation.offset_bytes, at);
            if found != expected {
                let place = operation.offset_bytes + at as u64;
                let detail = format!("offset {place}: expected byte {expected:#04x}, found {found:#04x}");
                return Err(fault(&self.path(operation), "corrupt", &detail));
            }
        }
        Ok(())
    }

    /// Path of the file of an operation.
    fn path(&self, operation: &FsOperation) -> String {
        path_of(&self.plan, operation.kind, operation.rank, operation.item)
    }
}

fn fault(path: &str, cause: &'static str, detail: &str) -> Fault {
    Fault { cause, detail: format!("{path}, {detail}") }
}

/// Refuses a directory as the name of files: they would lie beside it, which is another file system where something is mounted on it.
///
/// # Errors
/// Bad usage, with the name that would be accepted.
pub(crate) fn check_files(plan: &FsPlan) -> Result<(), Error> {
    if plan.set.shape == Shape::Tree || plan.engine == "null" {
        return Ok(());
    }
    let is_directory = |target: &&String| !is_store(target) && units::path_of(target).is_dir();
    let Some(target) = plan.targets.iter().find(is_directory) else { return Ok(()) };
    let (target, name) = (clean(target), clean(&plan.set.file_path(target, 0)).into_owned());
    let what = match plan.set.shape {
        Shape::Shared => "is a directory, but --shape shared uses one file".to_owned(),
        _ => format!("is a directory, but --shape private creates files beside it, starting with {name}"),
    };
    let remedy = format!("name a file in it: {}/data", target.trim_end_matches('/'));
    Err(Error::usage("plan", format!("{target} {what}")).remedy(remedy))
}

/// Path of an item of a rank, or of a directory of its tree.
pub(crate) fn path_of(plan: &FsPlan, kind: NameKind, rank: u32, item: u64) -> String {
    let target = plan.target(rank);
    if plan.set.shape != crate::set::Shape::Tree {
        return plan.set.file_path(target, rank);
    }
    let mut path = target.as_bytes().to_vec();
    path.push(b'/');
    if kind == NameKind::Node {
        plan.set.push_node(rank, item, &mut path);
    } else {
        if !plan.set.is_flat() {
            plan.set.push_node(rank, plan.set.node_of(item), &mut path);
            path.push(b'/');
        }
        plan.set.push_name(kind, rank, item, &mut path);
    }
    String::from_utf8_lossy(&path).into_owned()
}
