//! The next call of a process: the steps of its group, one call after the other.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Error, Fault, PageSize, Source};
use units::random::derive_seed;
use workload::access::Scatter;

use layer::memory::{BufferPart, OnDevice};

use crate::content::{Content, index_value};
use crate::log::Logs;
use crate::operation::{AppClass, AppOperation};
use crate::plan::{AppPlan, CallPlan, GroupPlan, INDEX_VALUE_BYTES, Selection, StepPlan};
use crate::progress::Progress;
use crate::staging::Staging;
use crate::words::{damage_words, item_words};

mod expected;
pub(crate) mod records;

pub(crate) use expected::expected_operations;
use records::OpenLog;

/// Part of a step that a process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Wait,
    Once,
    Begin,
    Each,
    End,
}

/// Where a process is.
struct Position {
    iteration: u64,
    step: usize,
    part: Part,
    /// Number of the next call, or wait, of the part.
    call: usize,
    /// Numbers in the pass of the items of this iteration: the first, and how many.
    first: u64,
    count: u64,
    /// Those of them that are done.
    done: u64,
    /// The present item, and the first byte of its next transfer.
    item: u64,
    transfer: u64,
}

/// The order of a shuffled pass.
struct Shuffle {
    step: usize,
    pass: u64,
    /// Two maps one behind the other: one alone leaves neighbours at alike distances.
    maps: [Scatter; 2],
}

/// The operations of one process.
pub struct AppSource {
    plan: Arc<AppPlan>,
    progress: Arc<Progress>,
    arena: Arc<Arena>,
    contents: Vec<Content>,
    group: usize,
    process: u32,
    at: Position,
    /// Items done in all iterations, by step.
    counts: Vec<u64>,
    shuffle: Option<Shuffle>,
    has_ended: bool,
    stores: bool,
    logs: Arc<Logs>,
    /// Open segments of the process, by set.
    open: Vec<OpenLog>,
    has_logs: bool,
    /// Items that are copied into memory and written from there.
    staging: Option<Arc<Staging>>,
    /// Where the buffers are not memory of the process alone.
    device: OnDevice,
}

impl AppSource {
    /// The source of a process of the stage, by its group and its number in it; one that has ended where there is none.
    pub(crate) fn new(
        plan: &Arc<AppPlan>,
        found: Option<(usize, u32)>,
        arena: &Arc<Arena>,
        (progress, logs): (&Arc<Progress>, &Arc<Logs>),
    ) -> Self {
        let (group, process) = found.unwrap_or_default();
        let steps = &plan.groups[group].steps;
        let stores =
            |call: &CallPlan| call.class.writes() || matches!(call.class, AppClass::Put | AppClass::Copy);
        let mut source = Self {
            progress: Arc::clone(progress),
            arena: Arc::clone(arena),
            contents: (0..plan.sets.len()).map(|set| Content::new(plan.content_seed, set)).collect(),
            group,
            process,
            at: Position {
                iteration: 0,
                step: 0,
                part: Part::Wait,
                call: 0,
                first: 0,
                count: 0,
                done: 0,
                item: 0,
                transfer: 0,
            },
            counts: vec![0; steps.len()],
            shuffle: None,
            has_ended: found.is_none() || steps.is_empty(),
            logs: Arc::clone(logs),
            open: plan.sets.iter().map(|set| OpenLog::new(set.log.is_some())).collect(),
            has_logs: steps.iter().flat_map(StepPlan::calls).any(|call| call.class.is_of_log()),
            stores: steps.iter().flat_map(StepPlan::calls).any(stores),
            plan: Arc::clone(plan),
            staging: None,
            device: OnDevice::default(),
        };
        if !source.has_ended {
            source.begin_step();
        }
        source
    }

    /// The same with memory for the items that are staged.
    pub(crate) fn staged(mut self, staging: &Arc<Staging>) -> Self {
        self.staging = Some(Arc::clone(staging));
        self
    }

    /// The same with buffers on a device, or registered ones.
    pub(crate) fn on_device(mut self, device: OnDevice) -> Self {
        self.device = device;
        self
    }

    /// The source of process `worker` with buffers of its own, to measure what a description costs: nobody waits for it.
    ///
    /// # Errors
    /// When there is no memory, or no such process.
    pub fn alone(plan: &Arc<AppPlan>, worker: u32) -> Result<Self, Error> {
        let arena = Arc::new(Arena::new(1, plan.transfer_bytes_max() as usize, PageSize::Base)?);
        let (progress, logs) = (Arc::new(Progress::new(plan)), Arc::new(Logs::new(plan)));
        let found = plan.process(worker);
        found.ok_or_else(|| {
            Error::usage("plan", "the stage has no process of this number").with("worker", worker)
        })?;
        Ok(Self::new(plan, found, &arena, (&progress, &logs)))
    }

    #[inline]
    fn group(&self) -> &GroupPlan {
        &self.plan.groups[self.group]
    }

    #[inline]
    fn step(&self) -> &StepPlan {
        &self.group().steps[self.at.step]
    }

    /// Begins the present step of the present iteration.
    fn begin_step(&mut self) {
        let (group, process) = (self.group(), u64::from(self.process));
        let (first, count) = self.plan.share(group, self.step(), process, self.at.iteration);
        (self.at.part, self.at.call, self.at.done, self.at.transfer) = (Part::Wait, 0, 0, 0);
        (self.at.first, self.at.count) = (first, count);
        self.at.item = if count > 0 { self.item_at(first) } else { 0 };
    }

    /// The item at a number of the pass.
    fn item_at(&mut self, number: u64) -> u64 {
        let step = self.step();
        let (selection, items, total) = (step.selection, step.items, step.space.total().max(1));
        match (selection, step.shuffled) {
            (Selection::All, true) => {
                // All processes of the group share the order of a pass, and each has places of its own in it.
                let pass = if items == 0 { self.at.iteration } else { number / total };
                self.shuffled(pass, number % total, total, 0)
            }
            (Selection::All, false) => number % total,
            (_, true) => {
                let (first, count, own) = (self.at.first, self.at.count, u64::from(self.process) + 1);
                first + self.shuffled(self.at.iteration, number - first, count, own)
            }
            (_, false) => number,
        }
    }

    /// Where place `at` of `total` goes in a pass; `own` tells orders of single processes apart.
    fn shuffled(&mut self, pass: u64, at: u64, total: u64, own: u64) -> u64 {
        let step = self.at.step;
        if !self.shuffle.as_ref().is_some_and(|known| known.pass == pass && known.step == step) {
            let seed =
                |map| derive_seed(self.plan.content_seed, &[self.group as u64, step as u64, own, pass, map]);
            let maps = [Scatter::new(total, seed(0)), Scatter::new(total, seed(1))];
            self.shuffle = Some(Shuffle { step, pass, maps });
        }
        self.shuffle.as_ref().map_or(at, |known| known.maps.iter().fold(at, |at, map| map.map(at)))
    }

    /// The operation of a call on the present item.
    #[inline]
    fn operation(&self, call: CallPlan, slot: u32) -> AppOperation {
        let mut operation = AppOperation {
            class: call.class,
            slot,
            set: call.set,
            step: self.at.step as u16,
            item: self.at.item,
            object: 0,
            offset_bytes: 0,
            item_offset_bytes: 0,
            length_bytes: 0,
            amount: 0,
        };
        if call.class == AppClass::Compute {
            operation.amount = self.step().compute_ns;
        } else if call.class.has_set() {
            let set = &self.plan.sets[usize::from(call.set)];
            let (object, offset) = set.place(self.at.item);
            (operation.object, operation.offset_bytes) = (object, offset);
            if set.is_index {
                (operation.offset_bytes, operation.length_bytes) = (0, INDEX_VALUE_BYTES);
            } else if call.class.is_on_bytes() {
                operation.item_offset_bytes = self.at.transfer;
                operation.offset_bytes += self.at.transfer;
                operation.length_bytes = (set.size(self.at.item) - self.at.transfer).min(set.transfer_bytes);
            }
        }
        operation
    }

    /// The next call of the parts that go over no items.
    #[inline]
    fn around(&mut self, slot: u32) -> Option<AppOperation> {
        loop {
            let step = self.step();
            let calls = match self.at.part {
                Part::Once if self.at.iteration > 0 => return None,
                Part::Once => &step.once,
                Part::Begin => &step.begin,
                _ => &step.end,
            };
            let call = *calls.get(self.at.call)?;
            if !call.class.is_of_log() {
                self.at.call += 1;
                return Some(self.operation(call, slot));
            }
            let (operation, is_done) = self.on_log(call, slot);
            self.at.call += usize::from(is_done);
            if operation.is_some() {
                return operation;
            }
        }
    }

    /// The next call on an item.
    #[inline]
    fn on_items(&mut self, slot: u32) -> Option<AppOperation> {
        while self.at.done < self.at.count {
            let count = self.counts[self.at.step];
            let step = self.step();
            let Some(&call) = step.each.get(self.at.call) else {
                self.at.done += 1;
                self.counts[self.at.step] = count + 1;
                (self.at.call, self.at.transfer) = (0, 0);
                if self.at.done < self.at.count {
                    self.at.item = self.item_at(self.at.first + self.at.done);
                }
                continue;
            };
            if call.every > 1 && !count.is_multiple_of(call.every) {
                self.at.call += 1;
                continue;
            }
            if call.class.is_of_log() {
                let (operation, is_done) = self.on_log(call, slot);
                self.at.call += usize::from(is_done);
                if operation.is_some() {
                    return operation;
                }
                continue;
            }
            let operation = self.operation(call, slot);
            if call.class.is_on_bytes() && !call.class.is_of_index() {
                self.at.transfer += operation.length_bytes;
                let is_whole = self.at.transfer >= self.plan.sets[usize::from(call.set)].size(self.at.item);
                if !is_whole {
                    return Some(operation);
                }
                self.at.transfer = 0;
            }
            self.at.call += 1;
            return Some(operation);
        }
        None
    }

    /// The next step that this one waits for and that is not done.
    fn wait(&mut self, slot: u32) -> Option<AppOperation> {
        while let Some(after) = self.step().after.get(self.at.call).copied() {
            self.at.call += 1;
            let iterations = (self.at.iteration + 1).saturating_sub(after.lag);
            let step = (usize::from(after.group), usize::from(after.step));
            if !self.progress.is_reached(step, iterations) {
                let call = CallPlan { class: AppClass::Wait, set: 0, every: 1 };
                return Some(AppOperation {
                    object: u64::from(after.group),
                    item: u64::from(after.step),
                    amount: iterations,
                    ..self.operation(call, slot)
                });
            }
        }
        None
    }

    /// Goes on to the next part, step or iteration; false at the end.
    fn advance(&mut self) -> bool {
        self.at.call = 0;
        self.at.part = match self.at.part {
            Part::Wait => Part::Once,
            Part::Once => Part::Begin,
            Part::Begin => Part::Each,
            Part::Each => Part::End,
            Part::End => {
                let done = (self.group, self.at.step);
                self.progress.reach(done, self.process, self.at.iteration + 1);
                self.at.step += 1;
                if self.at.step == self.group().steps.len() {
                    (self.at.step, self.at.iteration) = (0, self.at.iteration + 1);
                }
                if self.at.iteration == self.group().iterations {
                    self.has_ended = true;
                    return false;
                }
                self.begin_step();
                return true;
            }
        };
        // Behind the items, the calls at the end are about the last of them.
        true
    }

    /// Where an operation was, for people.
    fn words(&self, operation: &AppOperation) -> String {
        item_words(&self.plan, operation)
    }
}

impl Drop for AppSource {
    fn drop(&mut self) {
        if !self.has_ended {
            self.progress.abandon();
        }
    }
}

impl Source<AppOperation> for AppSource {
    #[inline]
    fn next(&mut self, slot: u32) -> Option<AppOperation> {
        if self.has_ended {
            return None;
        }
        loop {
            let operation = match self.at.part {
                Part::Wait => self.wait(slot),
                Part::Each => self.on_items(slot),
                Part::Once | Part::Begin | Part::End => self.around(slot),
            };
            if operation.is_some() {
                return operation;
            }
            // What others have not done will never be done.
            if self.at.part == Part::Wait && !self.step().after.is_empty() && self.progress.is_abandoned() {
                return None;
            }
            if !self.advance() {
                return None;
            }
        }
    }

    fn prepares(&self) -> bool {
        self.stores || (self.plan.verify && self.device.has_content())
    }

    #[inline]
    fn prepare(&mut self, operation: &AppOperation) {
        let length = operation.length_bytes as usize;
        match operation.class {
            class if class.writes() || class == AppClass::Copy => {
                let set = &self.plan.sets[usize::from(operation.set)];
                // A record is whole, also where it moves by its commit.
                let length = if class == AppClass::Append { set.size_bytes_max as usize } else { length };
                // SAFETY: the slot is the source's until the operation is submitted.
                let buffer = unsafe { self.arena.slot_mut(operation.slot, length) };
                let content = &self.contents[usize::from(operation.set)];
                match class {
                    AppClass::Append => records::fill(content, operation.item, buffer),
                    AppClass::Allocate => buffer.fill(0),
                    _ => {
                        let staging = self.staging.as_ref().filter(|_| class == AppClass::Write);
                        if !staging.is_some_and(|staging| staging.take(operation, self.process, buffer)) {
                            content.fill(operation.item, operation.item_offset_bytes, buffer);
                        }
                    }
                }
                if let Some(device) = self.device.content() {
                    device.send(operation.slot, length);
                }
            }
            AppClass::Put => {
                let set = &self.plan.sets[usize::from(operation.set)];
                let describes = set.describes.map(|at| &self.plan.sets[usize::from(at)]);
                // SAFETY: as above.
                let buffer = unsafe { self.arena.slot_mut(operation.slot, length) };
                buffer.copy_from_slice(&index_value(describes, operation.item));
            }
            class if class.reads() && self.plan.verify => {
                // Data that never arrive are not to be taken for those of an earlier operation.
                if let Some(device) = self.device.content() {
                    device.spoil(BufferPart { slot: operation.slot, at: 0, length });
                }
            }
            _ => {}
        }
    }

    fn checks(&self) -> bool {
        self.plan.verify || self.has_logs || self.device.has_content()
    }

    #[inline]
    fn check(&mut self, operation: &AppOperation, bytes: u64) -> Result<(), Fault> {
        let (is_read, verifies) = (operation.class.reads(), self.plan.verify);
        if let Some(device) = self.device.content() {
            if is_read && verifies {
                device.fetch(operation.slot, bytes as usize);
            }
            device.settle()?;
        }
        if operation.class.is_of_log() {
            return self.check_log(operation, bytes);
        }
        if !verifies || !matches!(operation.class, AppClass::Read | AppClass::Get) {
            return Ok(());
        }
        // SAFETY: the operation has completed, so its slot is the source's again.
        let buffer = unsafe { self.arena.slot_mut(operation.slot, bytes as usize) };
        if operation.class == AppClass::Read {
            let content = &self.contents[usize::from(operation.set)];
            return match content.check(operation.item, operation.item_offset_bytes, buffer) {
                None => Ok(()),
                Some(found) => {
                    Err(Fault { cause: "damaged", detail: damage_words(&self.plan, operation, &found) })
                }
            };
        }
        let set = &self.plan.sets[usize::from(operation.set)];
        let describes = set.describes.map(|at| &self.plan.sets[usize::from(at)]);
        let expected = index_value(describes, operation.item);
        if *buffer == expected {
            return Ok(());
        }
        let place = |value: &[u8]| {
            let numbers = value
                .chunks_exact(8)
                .take(3)
                .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()).to_string());
            numbers.collect::<Vec<_>>().join(", ")
        };
        Err(Fault {
            cause: "misplaced",
            detail: format!(
                "{}: expected object, offset and length {}, found {}",
                self.words(operation),
                place(&expected),
                place(buffer)
            ),
        })
    }
}
