//! Commits of a process: the first that finds none under way makes the calls for all that wait.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Clock, Completions, Error, Wait};
use layer::storage::{StorageCall, StorageOperation};

use super::{AppDriver, Pending, SLEEP_NS};
use crate::log::{Log, Put, Turn};
use crate::operation::{AppClass, AppOperation};
use crate::plan::AppPlan;

/// Calls that write a group of commits whole, where a storage has them.
const WHOLE: &[StorageCall] =
    &[StorageCall::Create, StorageCall::Write, StorageCall::Sync, StorageCall::Close];

/// Part of a process in a commit.
#[derive(Clone, Copy)]
pub(super) enum Writes {
    /// Another one makes it durable, or none does.
    No,
    /// It will, for all commits of the group, by the call of this number.
    Asked(Put, usize),
    /// It does.
    Begun(Put, usize),
}

/// Records of a process on their way into a group.
struct Records {
    bytes: Vec<u8>,
    record_bytes: usize,
}

/// State of a process for its commits.
pub(super) struct Commits {
    /// The storage has something to sync.
    has_sync: bool,
    /// Calls that write a group whole.
    whole: Vec<StorageCall>,
    /// Completion of a call of a commit.
    ended: Completions,
    /// By set: records of logs whose groups are written whole, appended and not committed.
    records: Vec<Option<Records>>,
    arena: Option<Arc<Arena>>,
}

impl Commits {
    pub(super) fn new(plan: &AppPlan) -> Self {
        let is_there = |name: &str| !plan.left_out.iter().any(|left| left == name);
        Self {
            has_sync: is_there(AppClass::Sync.name()),
            whole: WHOLE.iter().copied().filter(|call| is_there(call.name())).collect(),
            ended: Completions::with_depth(1),
            records: plan.sets.iter().map(|_| None).collect(),
            arena: None,
        }
    }

    /// Takes the memory for records that a process of a group gathers, and the buffers that they are in.
    pub(super) fn gather_in(&mut self, arena: &Arc<Arena>, plan: &AppPlan, group: usize) {
        self.arena = Some(Arc::clone(arena));
        let appends = plan.groups[group].steps.iter().flat_map(crate::plan::StepPlan::calls);
        for call in appends.filter(|call| call.class == AppClass::Append) {
            let set = &plan.sets[usize::from(call.set)];
            if set.is_grouped() {
                let most = set.object_bytes() as usize / set.log_of(plan.host()).clients.max(1) as usize;
                let record_bytes = set.size_bytes_max as usize;
                self.records[usize::from(call.set)] =
                    Some(Records { bytes: Vec::with_capacity(most), record_bytes });
            }
        }
    }

    /// Keeps a record for its commit, where groups are written whole; false where a record is written by itself.
    pub(super) fn keeps(&mut self, operation: &AppOperation) -> bool {
        let Some(records) = &mut self.records[usize::from(operation.set)] else { return false };
        let Some(arena) = &self.arena else { return false };
        // SAFETY: the slot is the driver's from the submission of its operation to its completion.
        let buffer = unsafe { arena.slot_mut(operation.slot, records.record_bytes) };
        records.bytes.extend_from_slice(buffer);
        true
    }

    /// The group that a commit writes when its process has its turn: all records that wait, in the slot of the commit.
    fn put(&self, operation: &AppOperation, log: &Log, upto: u64) -> Put {
        match (&self.arena, &self.records[usize::from(operation.set)]) {
            (Some(arena), Some(_)) => {
                // SAFETY: as above.
                log.gather(unsafe { arena.slot_mut(operation.slot, arena.slot_bytes()) })
            }
            _ => Put { upto, object: operation.object, length: 0 },
        }
    }

    /// The call of a number of those that make a commit durable; none behind the last.
    fn call(&self, operation: &AppOperation, log: &Log, put: Put, number: usize) -> Option<StorageOperation> {
        let call = operation.storage()?;
        if self.records[usize::from(operation.set)].is_none() {
            return (number == 0).then_some(call);
        }
        let kind = *self.whole.get(number)?;
        let length_bytes = if kind == StorageCall::Write { put.length as u64 } else { 0 };
        let object = log.share.first_place + put.object;
        Some(StorageOperation { call: kind, object, offset_bytes: 0, length_bytes, ..call })
    }

    /// The calls of a commit have ended.
    fn end(&self, operation: &AppOperation, log: &Log, put: Put, result: i64) {
        match &self.records[usize::from(operation.set)] {
            Some(records) => {
                let syncs = u64::from(self.has_sync);
                let result = if result < 0 { Err(result) } else { Ok(syncs) };
                log.put_ended(put, records.record_bytes, result);
            }
            None => log.synced(operation.object, put.upto, result >= 0),
        }
    }
}

impl AppDriver {
    /// A process asks for a commit of what it has appended.
    pub(super) fn begin_commit(&mut self, operation: &AppOperation, done: &mut Completions) {
        let Some(log) = self.logs.of(operation.set) else { return };
        let number = match &mut self.commits.records[usize::from(operation.set)] {
            Some(records) => {
                let number = log.ask_with(&records.bytes);
                records.bytes.clear();
                number
            }
            None if self.commits.has_sync => log.ask(operation.object),
            None => {
                log.committed();
                self.pending = Pending::Nothing;
                done.push(operation.slot, 0);
                return;
            }
        };
        self.pending = Pending::Commit { operation: *operation, number, writes: Writes::No };
    }

    /// Goes on with a commit: the first process that finds none under way makes its calls for all that have asked by then.
    pub(super) fn commit(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let (_, deadline_ns) = wait.deadline_ns(self.clock.now_ns());
        let logs = Arc::clone(&self.logs);
        while let Pending::Commit { operation, number, writes } = &mut self.pending {
            let Some(log) = logs.of(operation.set) else { return Ok(()) };
            let left_ns = deadline_ns.saturating_sub(self.clock.now_ns());
            match *writes {
                Writes::No => match log.turn(operation.object, *number) {
                    Turn::Durable => {
                        done.push(operation.slot, 0);
                        self.pending = Pending::Nothing;
                    }
                    Turn::Failed(result) => {
                        // It is asked for its cause.
                        done.push(operation.slot, result);
                        return Ok(());
                    }
                    Turn::Sync(upto) => *writes = Writes::Asked(self.commits.put(operation, log, upto), 0),
                    Turn::Wait if left_ns == 0 => return Ok(()),
                    Turn::Wait => log.wait(operation.object, *number, left_ns.min(SLEEP_NS)),
                },
                Writes::Asked(put, at) => {
                    let Some(call) = self.commits.call(operation, log, put, at) else { return Ok(()) };
                    if self.storage.submit(&[call], &mut self.commits.ended)?.accepted > 0 {
                        *writes = Writes::Begun(put, at);
                    } else if left_ns == 0 {
                        return Ok(());
                    }
                }
                Writes::Begun(put, at) => {
                    let ended = &mut self.commits.ended;
                    if ended.is_empty() {
                        self.storage.reap(wait, ended)?;
                    }
                    let Some(mut result) = ended.as_slice().first().map(|completion| completion.result)
                    else {
                        return Ok(());
                    };
                    ended.clear();
                    let wanted =
                        self.commits.call(operation, log, put, at).map_or(0, |call| call.length_bytes);
                    if result >= 0 && (result as u64) < wanted {
                        result = -i64::from(libc::EIO);
                    }
                    if result >= 0 && self.commits.call(operation, log, put, at + 1).is_some() {
                        *writes = Writes::Asked(put, at + 1);
                        continue;
                    }
                    self.commits.end(operation, log, put, result);
                    done.push(operation.slot, result);
                    // A failed one is asked for its cause, and the place of that.
                    let object = self.commits.call(operation, log, put, at).map(|call| call.object);
                    operation.object = object.unwrap_or(operation.object);
                    *writes = Writes::No;
                    if result >= 0 {
                        self.pending = Pending::Nothing;
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Drop for AppDriver {
    fn drop(&mut self) {
        // Others need not wait for calls that never end.
        if let Pending::Commit { operation, writes: Writes::Asked(put, _) | Writes::Begun(put, _), .. } =
            self.pending
            && let Some(log) = self.logs.of(operation.set)
        {
            self.commits.end(&operation, log, put, -i64::from(libc::ECANCELED));
        }
    }
}
