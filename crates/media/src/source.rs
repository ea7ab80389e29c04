//! Decides what a worker of this layer does next, fills what it writes and checks what it reads.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Error, Fault, Operation as _, Source};
use units::ParseError;
use workload::access::Access;
use workload::block_size::BlockSizes;
use workload::class_sizes::ClassSizes;
use workload::content::Filler;
use workload::course::Course;
use workload::mix::Mix;
use workload::plan::MediaPlan;
use workload::random::{Random, derive_seed};
use workload::spec::{Operation, Refill};

use crate::region::{Region, SizedCursor, check_verification, usage};
use crate::verify::Verifier;
use crate::{MediaClass, MediaOperation};

/// Operations of all workers together of a phase that ends after one pass over the range; none where something else ends it.
/// Of sizes that are drawn, and of `fsync_every`, as many as are to be expected: for progress.
#[must_use]
pub fn operations_of(plan: &MediaPlan) -> Option<u64> {
    if plan.load.limit != workload::plan::LimitPlan::default() {
        return None;
    }
    let sizes: BlockSizes = plan.block_size.parse().ok()?;
    let regions = (0..plan.load.threads).filter_map(|worker| Region::new(plan, worker).ok());
    let places = regions.fold(0u64, |all, region| all.saturating_add(region.places()));
    let is_cursor = sizes.single().is_none() && !plan.pattern.is_random();
    let moved =
        if is_cursor { places as f64 * plan.align_bytes as f64 / sizes.mean() } else { places as f64 };
    let writes = moved * f64::from(plan.mix.write_percent) / 100.0;
    let syncs = plan.fsync_every.map_or(0.0, |every| writes / every as f64);
    let final_syncs =
        if plan.end_fsync { u64::from(plan.load.threads) * plan.targets.len() as u64 } else { 0 };
    Some((moved + syncs) as u64 + final_syncs)
}

/// Where the next operation goes.
enum Walk {
    /// Fixed places, in the order of a pattern.
    Places { access: Access, size: Option<u32> },
    /// One after the other, with sizes drawn anew each time.
    Cursor(SizedCursor),
    /// More than a pattern: with holes, in runs, in zones, by class.
    Course(Box<Course>),
}

/// The operations of one worker.
pub struct MediaSource {
    region: Region,
    walk: Walk,
    sizes: BlockSizes,
    random: Random,
    mix: Mix,
    classes: Vec<MediaClass>,
    operations_left: u64,
    fsync_every: u64,
    writes_since_sync: u64,
    sync_due: Option<u16>,
    final_syncs: Vec<u16>,
    content: Filler,
    refills: bool,
    generation: u64,
    verifier: Option<Verifier>,
    arena: Arc<Arena>,
}

impl MediaSource {
    /// The source of worker `worker` of a phase. `verifier` where blocks are verified.
    ///
    /// # Errors
    /// When the range is too small for the worker's share.
    pub fn new(
        plan: &MediaPlan,
        worker: u32,
        arena: Arc<Arena>,
        verifier: Option<Verifier>,
    ) -> Result<Self, Error> {
        let sizes: ClassSizes = plan.block_size.parse().map_err(usage)?;
        let seed = derive_seed(plan.load.seed, &[u64::from(worker)]);
        let region = Region::new(plan, worker)?;
        check_verification(plan, region.places())?;
        let unlimited = plan.load.limit == workload::plan::LimitPlan::default();
        let is_cursor = sizes.single().is_none() && !plan.pattern.is_random();
        let (walk, operations_left) = if let Some(course) = &plan.course {
            (Walk::Course(Box::new(region.course(plan, course, seed).map_err(usage)?)), u64::MAX)
        } else if is_cursor {
            (Walk::Cursor(SizedCursor::new(&region, sizes.granularity(), unlimited)), u64::MAX)
        } else {
            let access = Access::new(&plan.pattern, region.places(), seed).map_err(usage)?;
            let size = sizes.single().map(|bytes| bytes as u32);
            (Walk::Places { access, size }, if unlimited { region.places() } else { u64::MAX })
        };
        let (mix, classes) = mix(plan).map_err(usage)?;
        let mut source = Self {
            region,
            walk,
            sizes: sizes.of(0).clone(),
            random: Random::new(derive_seed(seed, &[1])),
            mix,
            classes,
            operations_left,
            fsync_every: plan.fsync_every.unwrap_or(u64::MAX),
            writes_since_sync: 0,
            sync_due: None,
            final_syncs: if plan.end_fsync { (0..plan.targets.len() as u16).collect() } else { Vec::new() },
            content: crate::content::filler(plan, u64::from(worker))?,
            refills: plan.mix.write_percent > 0
                && (plan.verify_interval_bytes.is_some() || plan.content.refill != Refill::Once),
            generation: 0,
            verifier,
            arena,
        };
        if plan.mix.write_percent > 0 {
            source.fill_all(plan);
        }
        Ok(source)
    }

    fn fill_all(&mut self, plan: &MediaPlan) {
        for slot in 0..plan.load.depth {
            // SAFETY: nothing is in flight before the phase begins, so every slot is the source's.
            let buffer = unsafe { self.arena.slot_mut(slot, plan.block_size_bytes_max as usize) };
            self.content.fill_block(buffer, u64::from(slot) * plan.block_size_bytes_max, u64::MAX);
        }
    }

    /// Position of the next read, write or discard: target, offset, length and the global number of its place.
    #[inline]
    fn advance(&mut self, class: MediaClass) -> Option<(u16, u64, u32, u64)> {
        match &mut self.walk {
            Walk::Places { access, size } => {
                if self.operations_left == 0 {
                    return None;
                }
                self.operations_left -= 1;
                let step = access.next();
                let length = match size {
                    Some(bytes) => *bytes,
                    None => self.sizes.next(&mut self.random) as u32,
                };
                let place = self.region.first() + step.block;
                let (target, offset) = self.region.locate(place);
                Some((target, offset, length, place))
            }
            Walk::Cursor(cursor) => {
                let (target, offset, length) =
                    cursor.next(&self.region, self.sizes.next(&mut self.random))?;
                Some((target, offset, length, 0))
            }
            Walk::Course(course) => {
                let at = course.next(lane(class))?;
                let place = self.region.place_of(at.target, at.offset_bytes);
                Some((at.target, at.offset_bytes, at.length_bytes, place))
            }
        }
    }

    /// The next position whose block no operation is in flight on: two at once have no order, so nothing could be said
    /// about the block after them. A read-back passes over what was not written. Matters to verification alone.
    #[inline]
    fn advance_past_busy(&mut self, class: MediaClass) -> Option<(u16, u64, u32, u64)> {
        loop {
            let position = self.advance(class)?;
            match &self.verifier {
                Some(verifier) if verifier.skips(position.3) => {}
                _ => return Some(position),
            }
        }
    }

    fn sync(target: u16, slot: u32) -> MediaOperation {
        MediaOperation { offset: 0, length: 0, slot, target, class: MediaClass::Sync }
    }
}

/// Number of a class among those that have block sizes and places of their own.
#[inline]
fn lane(class: MediaClass) -> usize {
    match class {
        MediaClass::Write => 1,
        MediaClass::Discard => 2,
        MediaClass::Read | MediaClass::Sync | MediaClass::Nop => 0,
    }
}

/// The mix of a plan, and the class of each of its entries.
fn mix(plan: &MediaPlan) -> Result<(Mix, Vec<MediaClass>), ParseError> {
    if plan.operation == Operation::Nop {
        return Ok((Mix::new(&[1])?, vec![MediaClass::Nop]));
    }
    let shares = [
        (plan.mix.read_percent, MediaClass::Read),
        (plan.mix.write_percent, MediaClass::Write),
        (plan.mix.discard_percent, MediaClass::Discard),
    ];
    let used: Vec<_> = shares.into_iter().filter(|(percent, _)| *percent > 0).collect();
    let percents: Vec<u8> = used.iter().map(|(percent, _)| *percent).collect();
    Ok((Mix::from_percentages(&percents)?, used.into_iter().map(|(_, class)| class).collect()))
}

impl Source<MediaOperation> for MediaSource {
    #[inline]
    fn next(&mut self, slot: u32) -> Option<MediaOperation> {
        if let Some(target) = self.sync_due.take() {
            return Some(Self::sync(target, slot));
        }
        let class = self.classes[self.mix.next()];
        let (target, offset, length, place) = self.advance_past_busy(class)?;
        let mut operation = MediaOperation { offset, length, slot, target, class };
        match class {
            MediaClass::Nop => operation.length = 0,
            MediaClass::Write => {
                self.writes_since_sync += 1;
                if self.writes_since_sync == self.fsync_every {
                    self.writes_since_sync = 0;
                    self.sync_due = Some(target);
                }
            }
            MediaClass::Read | MediaClass::Discard | MediaClass::Sync => {}
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.begin(slot, place);
        }
        Some(operation)
    }

    fn finish(&mut self, slot: u32) -> Option<MediaOperation> {
        self.final_syncs.pop().map(|target| Self::sync(target, slot))
    }

    #[inline]
    fn prepares(&self) -> bool {
        self.refills
    }

    #[inline]
    fn prepare(&mut self, operation: &MediaOperation) {
        if operation.class != MediaClass::Write {
            return;
        }
        // SAFETY: the operation is not submitted yet, so its slot is the source's.
        let buffer = unsafe { self.arena.slot_mut(operation.slot, operation.length as usize) };
        match &mut self.verifier {
            Some(verifier) => verifier.write(operation, buffer),
            None => {
                self.generation += 1;
                self.content.refill_block(buffer, operation.offset, self.generation);
            }
        }
    }

    #[inline]
    fn checks(&self) -> bool {
        self.verifier.is_some()
    }

    fn abandon(&mut self, operation: &MediaOperation) {
        if let Some(verifier) = &mut self.verifier {
            verifier.end(operation.slot);
        }
    }

    fn check(&mut self, operation: &MediaOperation, bytes: u64) -> Result<(), Fault> {
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        // SAFETY: the operation has completed, so its slot is the source's again.
        let buffer = unsafe { self.arena.slot_mut(operation.slot(), bytes as usize) };
        verifier.check(operation, buffer)
    }
}

#[cfg(test)]
mod tests;
