//! Calls of a process on logs: segments are opened as records come to them, and what was committed is kept in mind.
#![allow(unsafe_code)]

use driver::Fault;

use super::AppSource;
use crate::content::Content;
use crate::log::Log;
use crate::operation::{AppClass, AppOperation};
use crate::plan::CallPlan;

/// Bytes of the number of a record, at its beginning.
const NUMBER_BYTES: usize = 8;

/// Open segment and records in hand of a process, of one log.
pub(super) struct OpenLog {
    /// The segment.
    segment: Option<u64>,
    /// The place that its next record goes to.
    place: Option<u64>,
    /// Records that it has appended and not committed.
    uncommitted: Vec<u64>,
    /// Its segment is synced and will be closed.
    is_synced: bool,
    /// The segment that is allocated, and how much of it is.
    allocated: (u64, u64),
    is_allocating: bool,
}

impl OpenLog {
    /// Nothing is open.
    pub(super) fn new(is_log: bool) -> Self {
        Self {
            segment: None,
            place: None,
            // Most commits are of few records; more take more room then.
            uncommitted: Vec::with_capacity(if is_log { 256 } else { 0 }),
            is_synced: false,
            allocated: (0, 0),
            is_allocating: false,
        }
    }
}

/// Fills the buffer of a record.
pub(super) fn fill(content: &Content, record: u64, into: &mut [u8]) {
    content.fill(record, 0, into);
    if let Some(number) = into.first_chunk_mut::<NUMBER_BYTES>() {
        *number = record.to_le_bytes();
    }
}

impl AppSource {
    /// An operation on a segment of a log.
    fn on_segment(&self, call: CallPlan, class: AppClass, segment: u64, slot: u32) -> AppOperation {
        AppOperation {
            object: segment,
            offset_bytes: 0,
            item_offset_bytes: 0,
            length_bytes: 0,
            ..self.operation(CallPlan { class, ..call }, slot)
        }
    }

    fn is_there(&self, class: AppClass) -> bool {
        !self.plan.left_out.iter().any(|name| name == class.name())
    }

    /// The next operation of a call on a log, and whether the call is done with it.
    pub(super) fn on_log(&mut self, call: CallPlan, slot: u32) -> (Option<AppOperation>, bool) {
        match call.class {
            AppClass::Append => self.append(call, slot),
            AppClass::Recover => self.recover(call, slot),
            AppClass::Commit => {
                let open = &self.open[usize::from(call.set)];
                let segment = open.segment.filter(|_| !open.uncommitted.is_empty());
                (segment.map(|segment| self.on_segment(call, AppClass::Commit, segment, slot)), true)
            }
            _ => self.allocate(call, slot),
        }
    }

    /// The next operation before segment `segment` is open; none where it is.
    fn opened(&mut self, call: CallPlan, segment: u64, slot: u32) -> Option<AppOperation> {
        let (syncs, closes) = (self.is_there(AppClass::Sync), self.is_there(AppClass::Close));
        let open = &mut self.open[usize::from(call.set)];
        match open.segment {
            Some(now) if now == segment => None,
            // Commits sync the segment that is open alone.
            Some(now) if syncs && !open.uncommitted.is_empty() && !open.is_synced => {
                open.is_synced = true;
                Some(self.on_segment(call, AppClass::Sync, now, slot))
            }
            Some(now) if closes => {
                open.segment = None;
                Some(self.on_segment(call, AppClass::Close, now, slot))
            }
            _ => {
                open.segment = Some(segment);
                open.is_synced = false;
                let opens = self.is_there(AppClass::Open);
                opens.then(|| self.on_segment(call, AppClass::Open, segment, slot))
            }
        }
    }

    /// An operation on the record at a place of a log, whose segment is open.
    fn on_record(&self, call: CallPlan, place: u64, slot: u32) -> AppOperation {
        let set = &self.plan.sets[usize::from(call.set)];
        let (segment, offset) = set.place(place);
        AppOperation {
            object: segment,
            offset_bytes: offset,
            item_offset_bytes: 0,
            length_bytes: set.size_bytes_max,
            amount: place,
            ..self.operation(call, slot)
        }
    }

    fn append(&mut self, call: CallPlan, slot: u32) -> (Option<AppOperation>, bool) {
        let set = usize::from(call.set);
        let place = match self.open[set].place {
            Some(place) => place,
            None => self.logs.of(call.set).map_or(0, Log::take),
        };
        self.open[set].place = Some(place);
        let (segment, _) = self.plan.sets[set].place(place);
        if let Some(operation) = self.opened(call, segment, slot) {
            return (Some(operation), false);
        }
        self.open[set].place = None;
        let operation = self.on_record(call, place, slot);
        self.open[set].uncommitted.push(operation.item);
        (Some(operation), true)
    }

    /// Reads the record at the place that has the number of the present item.
    fn recover(&mut self, call: CallPlan, slot: u32) -> (Option<AppOperation>, bool) {
        let (set, place) = (usize::from(call.set), self.at.item);
        if !self.logs.of(call.set).is_some_and(|log| log.is_written(place)) {
            // The load ended before it came to this place.
            return (None, true);
        }
        let (segment, _) = self.plan.sets[set].place(place);
        if let Some(operation) = self.opened(call, segment, slot) {
            return (Some(operation), false);
        }
        (Some(self.on_record(call, place, slot)), true)
    }

    /// Makes the segments of a log, one after the other.
    fn allocate(&mut self, call: CallPlan, slot: u32) -> (Option<AppOperation>, bool) {
        let at = usize::from(call.set);
        let set = &self.plan.sets[at];
        let (segments, transfer) = (set.objects(), set.transfer_bytes.max(1));
        let bytes = set.log.filter(|log| log.is_preallocated).map_or(0, |log| log.segment_bytes);
        let (syncs, closes) = (self.is_there(AppClass::Sync), self.is_there(AppClass::Close));
        loop {
            let open = &mut self.open[at];
            let (segment, done) = open.allocated;
            if segment == segments {
                open.allocated = (0, 0);
                return (None, true);
            }
            if !open.is_allocating {
                open.is_allocating = true;
                if self.is_there(AppClass::Create) {
                    return (Some(self.on_segment(call, AppClass::Create, segment, slot)), false);
                }
            } else if done < bytes {
                let length_bytes = (bytes - done).min(transfer);
                open.allocated.1 += length_bytes;
                let operation = self.on_segment(call, AppClass::Allocate, segment, slot);
                return (Some(AppOperation { offset_bytes: done, length_bytes, ..operation }), false);
            } else if syncs && !open.is_synced {
                open.is_synced = true;
                return (Some(self.on_segment(call, AppClass::Sync, segment, slot)), false);
            } else {
                (open.allocated, open.is_allocating, open.is_synced) = ((segment + 1, 0), false, false);
                if closes {
                    return (Some(self.on_segment(call, AppClass::Close, segment, slot)), false);
                }
            }
        }
    }

    /// After a call on a log has succeeded.
    pub(super) fn check_log(&mut self, operation: &AppOperation, bytes: u64) -> Result<(), Fault> {
        let set = usize::from(operation.set);
        let Some(log) = self.logs.of(operation.set) else { return Ok(()) };
        match operation.class {
            AppClass::Append => log.note_written(operation.amount),
            AppClass::Commit => {
                self.open[set].uncommitted.iter().for_each(|record| log.acknowledge(*record));
                self.open[set].uncommitted.clear();
            }
            AppClass::Recover if self.plan.verify => {
                // SAFETY: the operation has completed, so its slot is the source's again.
                let buffer = unsafe { self.arena.slot_mut(operation.slot, bytes as usize) };
                let total = self.plan.sets[set].space.total();
                found(log, &self.contents[set], operation, buffer, total).map_err(|(cause, what)| Fault {
                    cause,
                    detail: format!("{what} (segment {}, byte {})", operation.object, operation.offset_bytes),
                })?;
                if let Some(record) = log.missing() {
                    return Err(self.missing(operation, record));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The fault of an acknowledged record that no place of the log has.
    fn missing(&self, operation: &AppOperation, record: u64) -> Fault {
        let words = self.words(&AppOperation { item: record, ..*operation });
        Fault {
            cause: "missing",
            detail: format!("{words}: its commit was acknowledged, and the log does not have it"),
        }
    }
}

/// Checks the record at a place, and notes it as found.
fn found(
    log: &Log,
    content: &Content,
    operation: &AppOperation,
    buffer: &[u8],
    total: u64,
) -> Result<(), (&'static str, String)> {
    let place = operation.amount;
    let Some((number, rest)) = buffer.split_first_chunk::<NUMBER_BYTES>() else {
        return Err(("damaged", format!("the record at place {place} of the log is cut")));
    };
    let record = u64::from_le_bytes(*number);
    if record >= total {
        return Err((
            "damaged",
            format!("place {place} of the log has the number {record}, and there are {total} records"),
        ));
    }
    if let Some(found) = content.check(record, NUMBER_BYTES as u64, rest) {
        return Err((
            "damaged",
            format!(
                "record {record} at place {place} of the log, byte {} of it: {:#04x} was expected, {:#04x} found",
                NUMBER_BYTES as u64 + found.at,
                found.expected,
                found.found
            ),
        ));
    }
    match log.find(record) {
        true => Err(("misplaced", format!("record {record} is in the log twice, also at place {place}"))),
        false => Ok(()),
    }
}
