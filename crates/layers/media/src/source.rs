//! Decides what a worker of this layer does next, fills what it writes and checks what it reads.
#![allow(unsafe_code)]

mod on_device;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::course::{Course, Fitted};
use crate::plan::MediaPlan;
use driver::{Arena, Error, Fault, Operation as _, Source};
use units::ParseError;
use workload::access::Access;
use workload::block_size::BlockSizes;
use workload::class_sizes::ClassSizes;
use workload::content::{Filler, Recipe};
use workload::mix::Mix;
use workload::plan::{ContentChoice, Pattern};
use workload::random::{Random, derive_seed};
use workload::replay::{ReplayClass, ReplayStep};
use workload::spec::{Operation, Refill};

use crate::in_flight::InFlight;
use crate::region::{Region, SizedCursor, check_verification, usage};
use crate::verify::{Ledger, Verifier};
use crate::zoned::{Step, ZoneSet, ZonedWalk};
use crate::{MediaClass, MediaOperation};
use layer::memory::OnDevice;

/// Where the next operation goes.
enum Walk {
    /// Fixed places, in the order of a pattern.
    Places { access: Access, size: Option<u32> },
    /// One after the other, with sizes drawn anew each time.
    Cursor(SizedCursor),
    /// More than a pattern: with holes, in runs, in zones, by class.
    Course(Box<Course>),
    /// At random, with sizes drawn anew each time, each byte once a pass.
    Fitted(Box<Fitted>),
    /// Written blocks, in the sizes that they were written with: what is left of this worker's share, and the largest block.
    Written(Arc<Ledger>, Range<u64>, u64),
    /// By the write pointers of zones.
    Zoned(Box<ZonedWalk>),
}

/// Target, offset and length of an operation.
type IoRange = (u16, u64, u32);

/// The operations of one worker.
pub struct MediaSource {
    region: Region,
    walk: Walk,
    sizes: BlockSizes,
    random: Random,
    mix: Mix,
    classes: Vec<MediaClass>,
    operations_left: u64,
    /// Whether nothing but the walk and the mix decides what comes next.
    is_plain: bool,
    fsync_every: u64,
    writes_since_sync: u64,
    sync_due: Option<u16>,
    final_syncs: Vec<u16>,
    content: Filler,
    /// Terms of the content of writes, where a kernel of a device makes it.
    recipe: Option<Recipe>,
    refills: bool,
    generation: u64,
    verifier: Option<Verifier>,
    /// Where two operations never touch the same bytes at once: blocks that are verified would have no order.
    in_flight: Option<InFlight>,
    /// Whether an operation waits for those that it shares bytes with; else another position is taken.
    holds: bool,
    held: Option<(MediaClass, IoRange)>,
    /// Whether nothing was drawn because something in flight must complete first.
    waits: bool,
    /// Operations of a log, in place of drawn ones, and how many of them were given.
    replay: Option<(Arc<[ReplayStep]>, usize)>,
    /// Whether each discard is followed by a write, and what was discarded and is to be written.
    is_pair: bool,
    discarded: VecDeque<IoRange>,
    discards_in_flight: u32,
    arena: Arc<Arena>,
    /// Where the buffers are not memory of the process alone.
    device: OnDevice,
}

impl MediaSource {
    /// The source of worker `worker` of a phase. `verifier` where blocks are verified, `zones` where the phase keeps to zones.
    ///
    /// # Errors
    /// When the range is too small for the worker's share.
    pub fn new(
        plan: &MediaPlan,
        worker: u32,
        arena: Arc<Arena>,
        verifier: Option<Verifier>,
        zones: Option<&ZoneSet>,
    ) -> Result<Self, Error> {
        let sizes: ClassSizes = plan.block_size.parse().map_err(usage)?;
        let number = u64::from(plan.load.worker_of_all(worker));
        let seed = derive_seed(plan.load.seed, &[number]);
        let region = Region::new(plan, worker)?;
        check_verification(plan, region.places())?;
        let unlimited = plan.load.limit == workload::plan::LimitPlan::default();
        let is_cursor = sizes.single().is_none() && !plan.pattern.is_random();
        let written =
            verifier.as_ref().and_then(Verifier::written).filter(|_| plan.verify_grain_bytes.is_some());
        let zoned = plan.zoned.as_ref().zip(zones);
        let (walk, operations_left) = if let Some((zoned, zones)) = zoned {
            (Walk::Zoned(Box::new(ZonedWalk::new(plan, zoned, zones, worker).map_err(usage)?)), u64::MAX)
        } else if let Some(ledger) = written {
            let share = ledger.share(plan.load.worker(worker), plan.load.workers());
            (Walk::Written(Arc::clone(ledger), share, plan.block_size_bytes_max), u64::MAX)
        } else if let Some(course) = &plan.course {
            (Walk::Course(Box::new(region.course(plan, course, seed).map_err(usage)?)), u64::MAX)
        } else if sizes.single().is_none() && plan.pattern == Pattern::Fitted {
            (Walk::Fitted(Box::new(region.fitted(plan, sizes.granularity(), seed))), u64::MAX)
        } else if is_cursor {
            (Walk::Cursor(SizedCursor::new(&region, sizes.granularity(), unlimited)), u64::MAX)
        } else {
            let access = Access::new(&plan.pattern, region.places(), seed).map_err(usage)?;
            let size = sizes.single().map(|bytes| bytes as u32);
            (Walk::Places { access, size }, if unlimited { region.places() } else { u64::MAX })
        };
        let (mix, classes) = mix(plan).map_err(usage)?;
        let mut source = Self {
            is_plain: verifier.is_none() && plan.fsync_every.is_none() && !is_special(plan),
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
            recipe: None,
            content: crate::content::filler(plan, number)?,
            refills: plan.mix.write_percent > 0
                && (plan.verify_interval_bytes.is_some() || plan.content.refill != Refill::Once),
            generation: 0,
            in_flight: (verifier.is_some() || plan.serialize_overlap).then(|| InFlight::new(plan.load.depth)),
            verifier,
            holds: plan.serialize_overlap || plan.verify_grain_bytes.is_some(),
            held: None,
            waits: false,
            replay: plan.replay.as_ref().map(|replay| (Arc::clone(&replay.steps), 0)),
            is_pair: plan.operation.is_pair() && plan.replay.is_none(),
            discarded: VecDeque::with_capacity(plan.load.depth as usize),
            discards_in_flight: 0,
            arena,
            device: OnDevice::default(),
        };
        if plan.mix.write_percent > 0 {
            source.fill_all(plan);
        }
        Ok(source)
    }

    fn fill_all(&mut self, plan: &MediaPlan) {
        // Bytes that are repeated begin anew in each block.
        let repeats = matches!(plan.content.content, ContentChoice::Bytes(_));
        for slot in 0..plan.load.depth {
            // SAFETY: nothing is in flight before the phase begins, so every slot is the source's.
            let buffer = unsafe { self.arena.slot_mut(slot, plan.block_size_bytes_max as usize) };
            self.content.fill_block(
                buffer,
                if repeats { 0 } else { u64::from(slot) * plan.block_size_bytes_max },
                u64::MAX,
            );
        }
    }

    /// Position of the next read, write or discard.
    // Where the optimizer is left to choose, a change elsewhere costs the loop a nanosecond or two: bench/versions.py, null.
    #[inline(always)]
    fn advance(&mut self, class: MediaClass) -> Option<IoRange> {
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
                let (target, offset) = self.region.locate(self.region.first() + step.block);
                Some((target, offset, length))
            }
            Walk::Cursor(cursor) => cursor.next(&self.region, self.sizes.next(&mut self.random)),
            Walk::Fitted(fitted) => {
                let at = fitted.next(self.sizes.next(&mut self.random))?;
                Some((at.target, at.offset_bytes, at.length_bytes))
            }
            Walk::Course(course) => {
                let at = course.next(lane(class))?;
                Some((at.target, at.offset_bytes, at.length_bytes))
            }
            Walk::Written(ledger, left, most_bytes) => ledger.next_written(left, *most_bytes),
            // Its zones decide what comes next, not the mix alone.
            Walk::Zoned(_) => None,
        }
    }

    /// The next operation of the load. Where operations in flight must not share bytes, one that would waits, or another position is
    /// taken: two at once have no order, so nothing could be said about the block after them. A read-back passes over what was
    /// not written.
    #[inline]
    fn draw(&mut self) -> Option<(MediaClass, IoRange)> {
        if let Some(held) = self.held.take() {
            return self.release(held);
        }
        loop {
            let class = self.classes[self.mix.next()];
            let place = self.advance(class)?;
            let (target, offset, length) = place;
            if self.verifier.as_ref().is_some_and(|verifier| verifier.passes_over(target, offset, length)) {
                continue;
            }
            if self.holds {
                return self.release((class, place));
            }
            if !self.is_touched(place) {
                return Some((class, place));
            }
        }
    }

    /// The operation, if no bytes of it are in flight; else it is held.
    fn release(&mut self, drawn: (MediaClass, IoRange)) -> Option<(MediaClass, IoRange)> {
        if self.is_touched(drawn.1) {
            self.held = Some(drawn);
            self.waits = true;
            return None;
        }
        Some(drawn)
    }

    #[inline]
    fn is_touched(&self, (target, offset, length): IoRange) -> bool {
        self.in_flight.as_ref().is_some_and(|in_flight| in_flight.touches(target, offset, length))
    }

    /// The block that was written and is to be read before the load goes on; `Err` where it waits for what is in flight.
    #[inline]
    fn next_check(&mut self) -> Result<Option<IoRange>, ()> {
        let Some(verifier) = &mut self.verifier else { return Ok(None) };
        let Some(place) = verifier.next_check() else { return Ok(None) };
        if self.in_flight.as_ref().is_some_and(|in_flight| in_flight.touches(place.0, place.1, place.2)) {
            return Err(());
        }
        verifier.takes_check();
        Ok(Some(place))
    }

    /// The next operation of the log.
    fn next_step(&mut self, slot: u32) -> Option<MediaOperation> {
        let (steps, at) = self.replay.as_mut()?;
        let step = steps.get(*at)?;
        let class = match step.class {
            ReplayClass::Read => MediaClass::Read,
            ReplayClass::Write => MediaClass::Write,
            ReplayClass::Discard => MediaClass::Discard,
            ReplayClass::Sync => MediaClass::Sync,
        };
        let (offset, length, target) = (step.offset_bytes, step.length_bytes, step.target);
        let operation = MediaOperation { offset, length, slot, target, class, is_extra: false };
        if let Some(in_flight) = &mut self.in_flight {
            if in_flight.touches(target, offset, length) {
                self.waits = true;
                return None;
            }
            in_flight.begin(&operation);
        }
        *at += 1;
        Some(operation)
    }

    /// The next operation where zones decide.
    fn next_in_zones(&mut self, slot: u32) -> Option<MediaOperation> {
        let Walk::Zoned(walk) = &mut self.walk else { return None };
        let (classes, mix) = (&self.classes, &mut self.mix);
        match walk.next(|| classes[mix.next()]) {
            Step::Go { class, target, offset, length, is_extra } => {
                self.writes_since_sync += u64::from(class == MediaClass::Write);
                if self.writes_since_sync == self.fsync_every {
                    self.writes_since_sync = 0;
                    self.sync_due = Some(target);
                }
                Some(MediaOperation { offset, length, slot, target, class, is_extra })
            }
            Step::Wait => {
                self.waits = true;
                None
            }
            Step::End => None,
        }
    }

    /// The next operation where more than the walk and the mix decides what it is.
    #[inline(never)] // Keeps it out of the way of the runs that do not ask for it.
    fn next_apart(&mut self, slot: u32) -> Option<MediaOperation> {
        self.waits = false;
        if let Some(target) = self.sync_due.take() {
            return Some(Self::sync(target, slot));
        }
        if self.replay.is_some() {
            return self.next_step(slot);
        }
        if matches!(self.walk, Walk::Zoned(_)) {
            return self.next_in_zones(slot);
        }
        let mut is_extra = false;
        let (class, (target, offset, length)) = match self.next_check() {
            Ok(Some(place)) => {
                is_extra = true;
                (MediaClass::Read, place)
            }
            Err(()) => {
                self.waits = true;
                return None;
            }
            Ok(None) => match self.discarded.pop_front() {
                Some(place) => (MediaClass::Write, place),
                None => match self.draw() {
                    Some(drawn) => drawn,
                    None => {
                        // What is being discarded is still to be written.
                        self.waits |= self.discards_in_flight > 0;
                        return None;
                    }
                },
            },
        };
        let mut operation = MediaOperation { offset, length, slot, target, class, is_extra };
        match class {
            MediaClass::Nop => operation.length = 0,
            MediaClass::Write => {
                self.writes_since_sync += 1;
                if self.writes_since_sync == self.fsync_every {
                    self.writes_since_sync = 0;
                    self.sync_due = Some(target);
                }
            }
            MediaClass::Discard => self.discards_in_flight += u32::from(self.is_pair),
            MediaClass::Read | MediaClass::Sync | MediaClass::Reset | MediaClass::Finish => {}
        }
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.begin(&operation);
        }
        Some(operation)
    }

    fn sync(target: u16, slot: u32) -> MediaOperation {
        MediaOperation { offset: 0, length: 0, slot, target, class: MediaClass::Sync, is_extra: false }
    }
}

/// Whether operations follow from more than a walk and a mix.
fn is_special(plan: &MediaPlan) -> bool {
    plan.serialize_overlap || plan.replay.is_some() || plan.operation.is_pair() || plan.zoned.is_some()
}

/// Number of a class among those that have block sizes and places of their own.
#[inline]
fn lane(class: MediaClass) -> usize {
    match class {
        MediaClass::Write => 1,
        MediaClass::Discard => 2,
        _ => 0,
    }
}

/// The mix of a plan, and the class of each of its entries.
fn mix(plan: &MediaPlan) -> Result<(Mix, Vec<MediaClass>), ParseError> {
    if plan.operation == Operation::Nop {
        return Ok((Mix::new(&[1])?, vec![MediaClass::Nop]));
    }
    if plan.operation.is_pair() {
        return Ok((Mix::new(&[1])?, vec![MediaClass::Discard]));
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
    #[inline(always)]
    fn next(&mut self, slot: u32) -> Option<MediaOperation> {
        if !self.is_plain {
            return self.next_apart(slot);
        }
        let class = self.classes[self.mix.next()];
        let (target, offset, length) = self.advance(class)?;
        let length = if class == MediaClass::Nop { 0 } else { length };
        Some(MediaOperation { offset, length, slot, target, class, is_extra: false })
    }

    #[inline]
    fn waits(&self) -> bool {
        self.waits
    }

    fn waits_for_others(&self) -> bool {
        self.waits && matches!(self.walk, Walk::Zoned(_))
    }

    fn finish(&mut self, slot: u32) -> Option<MediaOperation> {
        self.final_syncs.pop().map(|target| Self::sync(target, slot))
    }

    #[inline]
    fn prepares(&self) -> bool {
        self.refills || (self.verifier.is_some() && self.has_device())
    }

    #[inline]
    fn prepare(&mut self, operation: &MediaOperation) {
        if operation.class == MediaClass::Read && self.verifier.is_some() && self.has_device() {
            return self.spoil_on_device(operation);
        }
        if operation.class != MediaClass::Write {
            return;
        }
        if self.has_device() {
            return self.prepare_on_device(operation);
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
        self.in_flight.is_some() || self.is_pair || matches!(self.walk, Walk::Zoned(_)) || self.has_device()
    }

    fn abandon(&mut self, operation: &MediaOperation) {
        if let Walk::Zoned(walk) = &self.walk {
            walk.ended(operation, false);
        }
        if self.is_pair && operation.class == MediaClass::Discard {
            self.discards_in_flight -= 1;
        }
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.end(operation.slot);
        }
    }

    fn check(&mut self, operation: &MediaOperation, bytes: u64) -> Result<(), Fault> {
        if let Walk::Zoned(walk) = &self.walk {
            walk.ended(operation, true);
        }
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.end(operation.slot);
        }
        if self.is_pair && operation.class == MediaClass::Discard {
            self.discards_in_flight -= 1;
            self.discarded.push_back((operation.target, operation.offset, operation.length));
        }
        if self.has_device() {
            return self.check_on_device(operation, bytes);
        }
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        // SAFETY: the operation has completed, so its slot is the source's again.
        let buffer = unsafe { self.arena.slot_mut(operation.slot(), bytes as usize) };
        verifier.check(operation, buffer)
    }
}

#[cfg(test)]
mod tests;
