//! Decides what a worker of this layer does next, fills what it stores and checks what it brings back.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Error, Fault, Source};
use layer::memory::OnDevice;
use units::ParseError;
use workload::access::Access;
use workload::block_size::BlockSizes;
use workload::content::Filler;
use workload::mix::Mix;
use workload::plan::Pattern;
use workload::random::{derive_seed, label};
use workload::spec::{Refill, Share};

use crate::ObjectOperation;
use crate::acknowledged::Recorder;
use crate::payload::{Payload, SERIES_MASK};
use crate::plan::{ObjectOp, ObjectPlan, Scope};

mod dataset;
mod grain;
mod on_device;

pub(crate) use dataset::{Dataset, Position};
pub(crate) use grain::{Grain, Part, appended_bytes, check_value_size};
pub use grain::{check_plan, operations_of};

/// The record that a slot is at, and what was stored there last.
#[derive(Clone, Copy, Default)]
struct Slot {
    position: Position,
    /// Next step of the sequence.
    step: usize,
    /// Record and sequence of what was stored last.
    stored: Option<(u64, u64)>,
    /// When its buffer was filled, where that is recorded.
    begun_ns: u64,
}

/// The operations of one worker.
pub struct ObjectSource {
    dataset: Dataset,
    part: Part,
    access: Access,
    places_left: u64,
    mix: Mix,
    operations: Vec<ObjectOp>,
    sequence: Vec<ObjectOp>,
    slots: Vec<Slot>,
    sizes: BlockSizes,
    single_size: Option<u64>,
    short_read_bytes: Option<u64>,
    value_bytes_max: u64,
    content: Filler,
    refills: bool,
    /// Number of the next write; the upper bits name this source.
    next_sequence: u64,
    /// Whether nobody else writes the records of this worker.
    is_alone: bool,
    verifies: Option<Payload>,
    /// Where acknowledged updates are recorded, and as which phase and worker.
    recorder: Option<(Arc<Recorder>, (u32, u32))>,
    arena: Arc<Arena>,
    device: OnDevice,
    /// Whether values may be made by kernels.
    makes_on_device: bool,
}

impl ObjectSource {
    /// The source of the part of this number of a phase ([`ObjectPlan::part_of`]). `run` is the number that values carry where the plan verifies; with `accepts_foreign`
    /// values of other runs pass too (the run did not store what it reads).
    ///
    /// # Errors
    /// Bad usage: fewer records than workers to share them, keys that are too long, buffers that are too small.
    pub fn new(
        plan: &ObjectPlan,
        worker: u32,
        arena: Arc<Arena>,
        run: u64,
        accepts_foreign: bool,
    ) -> Result<Self, Error> {
        let usage = |error: ParseError| Error::usage("plan", error.to_string());
        let sizes: BlockSizes = plan.dataset.value_size.parse().map_err(usage)?;
        let bytes_max = plan.dataset.value_size_bytes_max.max(plan.short_read_bytes.unwrap_or(0));
        if arena.slot_bytes() < bytes_max as usize || sizes.max() > plan.dataset.value_size_bytes_max {
            return Err(Error::usage("plan", "the buffers are smaller than the values")
                .with("buffer_bytes", arena.slot_bytes())
                .with("value_bytes", sizes.max().max(bytes_max)));
        }
        let part = Part::new(plan, worker)?;
        let seed = derive_seed(plan.load.seed, &[u64::from(worker)]);
        let access = Access::new(&plan.pattern, part.places().max(1), seed).map_err(usage)?;
        let once = plan.is_one_pass();
        let (operations, mix) = mix(plan).map_err(usage)?;
        let stores = plan.any(ObjectOp::stores);
        let source = Self {
            dataset: Dataset::new(plan, worker)?,
            access,
            places_left: if once { part.places() } else { u64::MAX },
            part,
            mix,
            operations,
            sequence: plan.sequence.clone(),
            slots: vec![Slot { step: plan.sequence.len(), ..Slot::default() }; arena.slots() as usize],
            single_size: sizes.single(),
            sizes,
            short_read_bytes: plan.short_read_bytes,
            value_bytes_max: plan.dataset.value_size_bytes_max,
            content: filler(plan, u64::from(worker))?,
            refills: stores && (plan.verify || plan.content.refill != Refill::Once),
            next_sequence: series(plan, worker, run),
            is_alone: is_private(plan) || plan.share == Share::Partition || plan.load.workers() == 1,
            verifies: plan.verify.then(|| match plan.snapshot {
                Some(_) => Payload::new(run, true).at_snapshot(),
                None => Payload::new(run, accepts_foreign),
            }),
            recorder: None,
            arena,
            device: OnDevice::default(),
            makes_on_device: false,
        };
        if stores {
            source.fill_all();
        }
        Ok(source)
    }

    /// Records updates that are acknowledged, as phase `phase` of the file. The plan verifies: only such values say which write they are.
    #[must_use]
    pub fn recording(self, recorder: Arc<Recorder>, phase: u32, worker: u32) -> Self {
        Self { recorder: Some((recorder, (phase, worker))), ..self }
    }

    /// Takes values of these series (see [`replaced_series`]) for older versions, where it verifies.
    #[must_use]
    pub fn without(mut self, series: &[u64]) -> Self {
        self.verifies = self.verifies.map(|payload| payload.without(series.to_vec()));
        self
    }

    fn fill_all(&self) {
        for slot in 0..self.arena.slots() {
            // SAFETY: nothing is in flight before the phase begins, so every slot is the source's.
            let buffer = unsafe { self.arena.slot_mut(slot, self.value_bytes_max as usize) };
            self.content.fill_block(buffer, u64::from(slot) * self.value_bytes_max, u64::MAX);
        }
    }

    /// The next place of the pattern.
    #[inline]
    fn advance(&mut self) -> Option<Position> {
        if self.places_left == 0 {
            return None;
        }
        self.places_left -= 1;
        let step = self.access.next();
        Some(self.dataset.position(self.part.grain(), self.part.first() + step.block))
    }

    /// Bytes of a record.
    #[inline]
    fn size_of(&self, number: u64) -> u64 {
        match self.single_size {
            Some(bytes) => bytes,
            None => self.sizes.of(number),
        }
    }

    /// Records an update that was acknowledged, where that is asked for.
    fn acknowledged(&self, operation: &ObjectOperation) -> Result<(), Fault> {
        let slot = &self.slots[operation.slot as usize];
        match (&self.recorder, slot.stored) {
            (Some((recorder, of)), Some((_, write))) => {
                recorder.acknowledge(*of, operation, write, slot.begun_ns)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn build(&self, slot: u32, operation: ObjectOp, position: &Position) -> ObjectOperation {
        let target = self.dataset.target(operation, position);
        let size = self.size_of(target.number);
        let short = self.short_read_bytes.filter(|_| operation.loads());
        ObjectOperation {
            slot,
            operation,
            is_short_good: short.is_some(),
            record: target.number.wrapping_add(self.dataset.record_base()),
            object: target.object,
            dkey: target.dkey,
            akey: target.akey,
            offset_bytes: target.offset_bytes,
            value_bytes: short.unwrap_or(size),
        }
    }
}

/// Series of the writes of a worker: the upper bits of their numbers.
fn series(plan: &ObjectPlan, worker: u32, run: u64) -> u64 {
    let seed = derive_seed(plan.load.seed, &[u64::from(worker)]);
    derive_seed(seed, &[label(&plan.name), run]) & SERIES_MASK
}

/// Series of writes whose values are older versions for `plan`, after the phases `earlier`, which were completed in this order: those
/// before the last phase that has written all that `plan` reads. At a snapshot none are.
#[must_use]
pub fn replaced_series(earlier: &[&ObjectPlan], plan: &ObjectPlan, run: u64) -> Vec<u64> {
    if plan.snapshot.is_some() {
        return Vec::new();
    }
    let of = |plan: &ObjectPlan| {
        let data = crate::plan::DatasetPlan {
            value_size: String::new(),
            value_size_bytes_max: 0,
            ..plan.dataset.clone()
        };
        (
            plan.target.clone(),
            plan.container.clone(),
            plan.containers,
            plan.object_scope,
            data,
            plan.class,
            plan.object_type,
        )
    };
    let same: Vec<&ObjectPlan> = earlier.iter().copied().filter(|other| of(other) == of(plan)).collect();
    let writes_all = |other: &&ObjectPlan| {
        let visits_all = matches!(other.pattern, Pattern::Sequential | Pattern::Permutation);
        let stores_all = other.operations().all(ObjectOp::stores) && other.operations().count() == 1;
        // Of records of each worker's own, fewer workers leave those of the others as they are.
        let is_of_all = !is_private(plan) || other.load.workers() >= plan.load.workers();
        visits_all && stores_all && is_of_all && operations_of(other).is_some()
    };
    let Some(last) = same.iter().rposition(writes_all) else { return Vec::new() };
    let stored = same[..last].iter().filter(|other| other.any(ObjectOp::stores));
    let mut replaced: Vec<u64> =
        stored.flat_map(|other| (0..other.load.workers()).map(|worker| series(other, worker, run))).collect();
    // What was written since stays good.
    let since: Vec<u64> = same[last..]
        .iter()
        .flat_map(|other| (0..other.load.workers()).map(|worker| series(other, worker, run)))
        .collect();
    replaced.retain(|series| !since.contains(series));
    replaced
}

/// Whether each worker has records of its own.
pub(crate) fn is_private(plan: &ObjectPlan) -> bool {
    plan.object_scope == Scope::Private || plan.containers == Scope::Private
}

/// The operations of the plan's mix, and their shares. Where a sequence stands instead, there is nothing to draw.
fn mix(plan: &ObjectPlan) -> Result<(Vec<ObjectOp>, Mix), ParseError> {
    if !plan.sequence.is_empty() {
        return Ok((plan.sequence.clone(), Mix::new(&[1])?));
    }
    let percents: Vec<u8> = plan.mix.iter().map(|share| share.percent).collect();
    Ok((plan.mix.iter().map(|share| share.operation).collect(), Mix::from_percentages(&percents)?))
}

/// Filler of the values of one worker that are not verified.
fn filler(plan: &ObjectPlan, stream: u64) -> Result<Filler, Error> {
    plan.content.filler(plan.load.seed, stream).map_err(|error| Error::usage("content", error.to_string()))
}

impl Source<ObjectOperation> for ObjectSource {
    #[inline]
    fn next(&mut self, slot: u32) -> Option<ObjectOperation> {
        if self.sequence.is_empty() {
            let position = self.advance()?;
            let operation = self.operations[self.mix.next()];
            return Some(self.build(slot, operation, &position));
        }
        let at = slot as usize;
        if self.slots[at].step == self.sequence.len() {
            let position = self.advance()?;
            self.slots[at] = Slot { position, step: 0, stored: None, begun_ns: 0 };
        }
        let Slot { position, step, .. } = self.slots[at];
        self.slots[at].step += 1;
        Some(self.build(slot, self.sequence[step], &position))
    }

    #[inline]
    fn prepares(&self) -> bool {
        self.refills || (self.verifies.is_some() && self.has_device())
    }

    #[inline]
    fn prepare(&mut self, operation: &ObjectOperation) {
        if operation.operation.loads() && self.verifies.is_some() {
            return self.spoil_value(operation);
        }
        if !operation.operation.stores() || !self.refills {
            return;
        }
        self.next_sequence += 1;
        if let Some((recorder, _)) = &self.recorder {
            self.slots[operation.slot as usize].begun_ns = recorder.now_ns();
        }
        let position = operation.record.wrapping_mul(self.value_bytes_max);
        if self.makes_value(operation, position) {
            return;
        }
        // SAFETY: the operation is not submitted yet, so its slot is the source's.
        let buffer = unsafe { self.arena.slot_mut(operation.slot, operation.value_bytes as usize) };
        match &self.verifies {
            Some(payload) => {
                payload.fill(buffer, operation.record, self.next_sequence);
                self.slots[operation.slot as usize].stored = Some((operation.record, self.next_sequence));
            }
            None => self.content.refill_block(buffer, position, self.next_sequence),
        }
        self.send_value(operation);
    }

    #[inline]
    fn checks(&self) -> bool {
        self.verifies.is_some() || self.has_device()
    }

    fn check(&mut self, operation: &ObjectOperation, bytes: u64) -> Result<(), Fault> {
        self.fetch_value(operation, bytes)?;
        if operation.operation.stores() {
            return self.acknowledged(operation);
        }
        if !operation.operation.loads() {
            return Ok(());
        }
        let size = match self.short_read_bytes {
            // What there is of the record is checked; what lies behind it is another's.
            Some(asked) => self.size_of(operation.record.wrapping_sub(self.dataset.record_base())).min(asked),
            None => operation.value_bytes,
        };
        let stored = self.slots[operation.slot as usize].stored;
        let at_least = stored.filter(|(record, _)| self.is_alone && *record == operation.record);
        let Some(payload) = &mut self.verifies else { return Ok(()) };
        // SAFETY: the operation has completed, so its slot is the source's again.
        let buffer = unsafe { self.arena.slot_mut(operation.slot, bytes as usize) };
        let checked = payload.check(buffer, operation.record, size, at_least.map(|(_, sequence)| sequence));
        checked.map_err(|fault| Fault {
            detail: format!("{}, {}", self.dataset.name(operation), fault.detail),
            ..fault
        })
    }
}

#[cfg(test)]
mod tests;
