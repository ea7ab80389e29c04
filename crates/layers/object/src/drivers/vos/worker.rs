//! The driver of one worker: carries operations out one by one, and makes those of a batch durable together.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Clock, Completions, Driver, Error, HostClock, Span, Submitted, Tally};
use vos::Durability;

use crate::plan::{ObjectOp, ObjectOptions, ObjectPlan, PunchScope, ValueKind};

use vos::{Ack, Aggregated, Punch, Read, StoreError, Write};

use super::Shared;
use super::arrays::Arrays;
use super::listing::Lists;
use super::volume::{At, Volume};
use crate::{ObjectOperation, OpenRequest};

/// The driver.
pub(super) struct Worker {
    volume: Volume,
    pool: Shared,
    label: String,
    plan: Arc<ObjectPlan>,
    arena: Arc<Arena>,
    arrays: Arrays,
    lists: Lists,
    /// Arrays are opened for each transfer, and that reads their attributes.
    reopens: bool,
    /// Values go through here where the load asked for a copy.
    staging: Option<Vec<u8>>,
    /// Updates of a batch share a commit.
    shares_commit: bool,
    /// Results of the operations of a batch that shares a commit, and when each began and ended.
    results: Vec<(i64, Span)>,
    clock: HostClock,
}

impl Worker {
    pub(super) fn new(
        volume: Volume,
        pool: Shared,
        label: String,
        request: &OpenRequest,
        options: &ObjectOptions,
    ) -> Self {
        let plan = &request.plan;
        let slots = request.arena.slots();
        Self {
            arrays: Arrays::new(plan),
            lists: Lists::new(slots, plan.list_max),
            reopens: plan.reopens_arrays(),
            staging: (!options.zero_copy).then(|| vec![0; request.arena.slot_bytes()]),
            shares_commit: options.durability == Durability::Sync,
            results: Vec::with_capacity(slots as usize),
            clock: HostClock::get(),
            plan: Arc::clone(plan),
            arena: Arc::clone(&request.arena),
            volume,
            pool,
            label,
        }
    }

    #[inline]
    fn carry_out(&mut self, operation: &ObjectOperation) -> i64 {
        let done = if operation.operation.stores() || operation.operation.loads() {
            self.transfer(operation)
        } else {
            self.other(operation)
        };
        match done {
            // A number beyond 63 bits (a dkey) stays positive.
            Ok(count) => (count & i64::MAX as u64) as i64,
            Err(error) => -i64::from(error.errno()),
        }
    }

    #[inline]
    fn transfer(&mut self, operation: &ObjectOperation) -> Result<u64, StoreError> {
        // SAFETY: from submit to completion the slot is the driver's.
        let buffer = unsafe { self.arena.slot_mut(operation.slot, operation.value_bytes as usize) };
        if self.reopens && matches!(operation.operation, ObjectOp::Read | ObjectOp::Write) {
            self.arrays.open(&mut self.volume, operation.object)?;
        }
        let is_array = self.plan.dataset.value == ValueKind::Array;
        let Some(staging) = &mut self.staging else {
            return transfer(&mut self.volume, self.arrays, is_array, operation, buffer);
        };
        let staging = &mut staging[..buffer.len()];
        if operation.operation.stores() {
            staging.copy_from_slice(buffer);
            return transfer(&mut self.volume, self.arrays, is_array, operation, staging);
        }
        let bytes = transfer(&mut self.volume, self.arrays, is_array, operation, staging)?;
        buffer[..bytes as usize].copy_from_slice(&staging[..bytes as usize]);
        Ok(bytes)
    }

    /// Operations that move no value.
    fn other(&mut self, operation: &ObjectOperation) -> Result<u64, StoreError> {
        let ObjectOperation { object, dkey, akey, slot, .. } = operation;
        let at = At { object: *object, dkey: dkey.as_bytes(), akey: akey.as_bytes() };
        let volume = &mut self.volume;
        let container = volume.container;
        match operation.operation {
            ObjectOp::Punch => self.punch(operation, &at),
            ObjectOp::Remove => volume.punch(&at, Punch::Dkey).map(|()| 0),
            ObjectOp::List => self.lists.next(volume, *slot, *object),
            ObjectOp::Stat => volume.size_of(&at),
            ObjectOp::Size => self.arrays.size(volume, *object),
            ObjectOp::Create => self.arrays.create(volume, *object).map(|()| 0),
            ObjectOp::Open => self.arrays.open(volume, *object),
            ObjectOp::OpenWithAttr => Ok(0),
            ObjectOp::Destroy => volume.punch_object(*object).map(|()| 0),
            ObjectOp::Query => volume.largest(*object, akey.as_bytes()).map(|largest| largest.dkey),
            ObjectOp::Iterate => volume.iterate(*object).map(|visited| visited.records),
            ObjectOp::OpenContainer => {
                let pool = self.pool.read();
                let found = pool.as_ref().and_then(|pool| pool.find_container(&self.label));
                found.map(|facts| u64::from(facts.id.0)).ok_or(StoreError::NotFound)
            }
            ObjectOp::AllocateIds => {
                let count = u64::from(self.plan.ids_per_call);
                let pool = self.pool.read();
                pool.as_ref().map_or(Err(StoreError::NotFound), |pool| pool.allocate_ids(container, count))
            }
            ObjectOp::Aggregate => dropped(volume.on_all(|target| target.aggregate(container, None, false))),
            ObjectOp::Discard => {
                let pool = self.pool.read();
                let pool = pool.as_ref().ok_or(StoreError::NotFound)?;
                dropped(pool.discard(container, 0, None))
            }
            ObjectOp::Collect => volume.on_all(vos::Target::collect).map(|done| done.segments_freed),
            ObjectOp::Update
            | ObjectOp::Fetch
            | ObjectOp::Put
            | ObjectOp::Get
            | ObjectOp::Write
            | ObjectOp::Read => Err(StoreError::WrongKind),
        }
    }

    fn punch(&mut self, operation: &ObjectOperation, at: &At<'_>) -> Result<u64, StoreError> {
        let is_array = self.plan.dataset.value == ValueKind::Array;
        let punched = match self.plan.punch {
            PunchScope::Object => self.volume.punch_object(at.object),
            PunchScope::Dkey => self.volume.punch(at, Punch::Dkey),
            PunchScope::Record if is_array => {
                let ObjectOperation { offset_bytes, value_bytes, .. } = *operation;
                self.volume.punch(at, Punch::Record { offset_bytes, bytes: value_bytes })
            }
            PunchScope::Akey | PunchScope::Record => self.volume.punch(at, Punch::Akey),
        };
        punched.map(|()| 0)
    }
}

/// Moves a value between `buffer` and the store.
#[inline]
fn transfer(
    volume: &mut Volume,
    arrays: Arrays,
    is_array: bool,
    operation: &ObjectOperation,
    buffer: &mut [u8],
) -> Result<u64, StoreError> {
    let ObjectOperation { object, dkey, akey, offset_bytes, .. } = operation;
    let (object, offset_bytes) = (*object, *offset_bytes);
    let at = At { object, dkey: dkey.as_bytes(), akey: akey.as_bytes() };
    let length = buffer.len() as u64;
    match operation.operation {
        ObjectOp::Write => arrays.write(volume, object, offset_bytes, buffer),
        ObjectOp::Read => arrays.read(volume, object, offset_bytes, buffer),
        ObjectOp::Update if is_array => {
            volume.write(&at, Write::Extent { offset_bytes }, buffer).map(|()| length)
        }
        ObjectOp::Fetch if is_array => volume.read(&at, Read::Extent { offset_bytes }, buffer),
        ObjectOp::Update | ObjectOp::Put => volume.write(&at, Write::Single, buffer).map(|()| length),
        _ => volume.read(&at, Read::Single, buffer),
    }
}

fn dropped(done: Result<Aggregated, StoreError>) -> Result<u64, StoreError> {
    done.map(|done| done.versions_dropped)
}

impl Driver<ObjectOperation> for Worker {
    #[inline]
    fn submit(&mut self, batch: &[ObjectOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let mut began_ns = self.clock.now_ns();
        if !self.shares_commit || batch.len() < 2 {
            self.volume.ack = Ack::AsConfigured;
            for operation in batch {
                let result = self.carry_out(operation);
                let ended_ns = self.clock.now_ns();
                done.push_timed(operation.slot, result, Span { began_ns, ended_ns });
                began_ns = ended_ns;
            }
            return Ok(Submitted { accepted: batch.len() });
        }
        self.volume.ack = Ack::Deferred;
        self.results.clear();
        for operation in batch {
            let result = self.carry_out(operation);
            let ended_ns = self.clock.now_ns();
            self.results.push((result, Span { began_ns, ended_ns }));
            began_ns = ended_ns;
        }
        let committed = self.volume.commit();
        let committed_ns = self.clock.now_ns();
        for (operation, &(result, span)) in batch.iter().zip(&self.results) {
            let changes = operation.operation.changes() && result >= 0;
            let result = match committed {
                Err(error) if changes => -i64::from(error.errno()),
                _ => result,
            };
            // An update is done when it is durable.
            let ended_ns = if changes { committed_ns } else { span.ended_ns };
            done.push_timed(operation.slot, result, Span { ended_ns, ..span });
        }
        Ok(Submitted { accepted: batch.len() })
    }

    fn tallies(&mut self) -> Vec<Tally> {
        vec![Tally { part: 0, name: "values_repaired", value: self.volume.repaired as f64 }]
    }

    fn findings(&mut self) -> Vec<String> {
        self.volume.take_findings()
    }
}
