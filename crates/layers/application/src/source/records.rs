//! Calls of a process on logs: segments are opened as records come to them, and what was committed is kept in mind.
#![allow(unsafe_code)]

use driver::Fault;

use super::AppSource;
use crate::content::Content;
use crate::log::{Log, Whole};
use crate::operation::{AppClass, AppOperation};
use crate::plan::{CallPlan, SetPlan};

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
    /// Those go by a commit that was asked for, and are lost where it fails: its group is written whole, or not at all.
    is_asked: bool,
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
            is_asked: false,
            is_synced: false,
            allocated: (0, 0),
            is_allocating: false,
        }
    }
}

/// The number of a record.
pub(crate) fn number_of(record: &[u8]) -> u64 {
    record.first_chunk::<NUMBER_BYTES>().map_or(u64::MAX, |number| u64::from_le_bytes(*number))
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
            AppClass::Commit if self.plan.sets[usize::from(call.set)].is_grouped() => {
                let record_bytes = self.plan.sets[usize::from(call.set)].size_bytes_max;
                let open = &mut self.open[usize::from(call.set)];
                open.is_asked = !open.uncommitted.is_empty();
                let length_bytes = open.uncommitted.len() as u64 * record_bytes;
                let operation = self.on_segment(call, AppClass::Commit, 0, slot);
                ((length_bytes > 0).then_some(AppOperation { length_bytes, ..operation }), true)
            }
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

    /// First place of the log of this host among those of all.
    fn first_place(&self, set: u16) -> u64 {
        self.logs.of(set).map_or(0, |log| log.share.first_place)
    }

    /// An operation on the record at a place of a log, whose segment is open.
    fn on_record(&self, call: CallPlan, place: u64, slot: u32) -> AppOperation {
        let set = &self.plan.sets[usize::from(call.set)];
        let (segment, offset) = set.place(self.first_place(call.set) + place);
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
        if self.plan.sets[set].is_grouped() {
            // It goes by its commit, and has a place when that is written.
            if std::mem::take(&mut self.open[set].is_asked) {
                self.open[set].uncommitted.clear();
            }
            let operation = AppOperation { length_bytes: 0, ..self.on_record(call, 0, slot) };
            self.open[set].uncommitted.push(operation.item);
            return (Some(operation), true);
        }
        let place = match self.open[set].place {
            Some(place) => place,
            None => self.logs.of(call.set).map_or(0, Log::take),
        };
        self.open[set].place = Some(place);
        let (segment, _) = self.plan.sets[set].place(self.first_place(call.set) + place);
        if let Some(operation) = self.opened(call, segment, slot) {
            return (Some(operation), false);
        }
        self.open[set].place = None;
        let operation = self.on_record(call, place, slot);
        self.open[set].uncommitted.push(operation.item);
        (Some(operation), true)
    }

    /// Reads the record, or the group of records, at the place that has the number of the present item among the records of the log.
    fn recover(&mut self, call: CallPlan, slot: u32) -> (Option<AppOperation>, bool) {
        let Some(log) = self.logs.of(call.set) else { return (None, true) };
        let place = self.at.item.saturating_sub(log.share.first);
        if !log.is_written(place) {
            // The load ended before it came to this place, or groups had several records.
            return (None, true);
        }
        let set = &self.plan.sets[usize::from(call.set)];
        let records = if set.is_grouped() { log.whole(place).records } else { 1 };
        let length_bytes = records * set.size_bytes_max;
        let (segment, _) = set.place(log.share.first_place + place);
        if let Some(operation) = self.opened(call, segment, slot) {
            return (Some(operation), false);
        }
        (Some(AppOperation { length_bytes, ..self.on_record(call, place, slot) }), true)
    }

    /// Makes the segments of a log, one after the other.
    fn allocate(&mut self, call: CallPlan, slot: u32) -> (Option<AppOperation>, bool) {
        let at = usize::from(call.set);
        let set = &self.plan.sets[at];
        let (segments, transfer) = (set.objects(), set.transfer_bytes.max(1));
        let bytes = set.log.as_ref().filter(|log| log.is_preallocated).map_or(0, |log| log.segment_bytes);
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
            AppClass::Append if self.plan.sets[set].is_grouped() => {}
            AppClass::Append => log.note_written(operation.amount),
            AppClass::Commit => {
                self.open[set].is_asked = false;
                self.open[set].uncommitted.iter().for_each(|record| log.acknowledge(*record));
                self.open[set].uncommitted.clear();
            }
            AppClass::Recover if self.plan.verify => {
                // SAFETY: the operation has completed, so its slot is the source's again.
                let buffer = unsafe { self.arena.slot_mut(operation.slot, bytes as usize) };
                let plan = &self.plan.sets[set];
                whole(log, &self.contents[set], operation, (buffer, plan)).map_err(|(cause, what)| {
                    let of_host = if plan.logs().nth(1).is_some() {
                        format!("log of host {}, ", log.share.host)
                    } else {
                        String::new()
                    };
                    let (segment, byte) = (operation.object, operation.offset_bytes);
                    Fault { cause, detail: format!("{what} ({of_host}segment {segment}, byte {byte})") }
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
            detail: format!("{words}: its commit was acknowledged, but the log does not contain it"),
        }
    }
}

/// A fault of a log in words: its cause and what is the matter.
type Damage = (&'static str, String);

/// Checks the record at a place, or the group of them, and notes them as found.
fn whole(
    log: &Log,
    content: &Content,
    operation: &AppOperation,
    (buffer, set): (&[u8], &SetPlan),
) -> Result<(), Damage> {
    let record_bytes = set.size_bytes_max as usize;
    for record in buffer.chunks(record_bytes) {
        found(log, content, operation, (record, set))?;
    }
    let place = operation.amount;
    if set.is_grouped() && Whole::of(buffer, record_bytes) != log.whole(place) {
        let records = log.whole(place).records;
        let what =
            format!("position {place} of the log does not contain the {records} records of its commits");
        return Err(("misplaced", what));
    }
    Ok(())
}

/// Checks a record, and notes it as found.
fn found(
    log: &Log,
    content: &Content,
    operation: &AppOperation,
    (buffer, set): (&[u8], &SetPlan),
) -> Result<(), Damage> {
    let (place, total) = (operation.amount, set.space.total());
    let Some((_, rest)) = buffer.split_at_checked(NUMBER_BYTES) else {
        return Err(("damaged", format!("the record at position {place} of the log is truncated")));
    };
    let record = number_of(buffer);
    if record >= total {
        return Err((
            "damaged",
            format!(
                "position {place} of the log has the record number {record}, but only {total} records exist"
            ),
        ));
    }
    if let Some(found) = content.check(record, NUMBER_BYTES as u64, rest) {
        return Err((
            "damaged",
            format!(
                "record {record} at position {place} of the log, byte {} of the record: expected {:#04x}, found {:#04x}",
                NUMBER_BYTES as u64 + found.at,
                found.expected,
                found.found
            ),
        ));
    }
    let client = record / set.space.items.max(1) % set.space.processes.max(1);
    if !log.share.is_of(client) {
        let what = format!(
            "record {record} of client {client} at position {place} belongs to the log of another host"
        );
        return Err(("misplaced", what));
    }
    match log.find(record) {
        true => Err(("misplaced", format!("record {record} is in the log twice, also at position {place}"))),
        false => Ok(()),
    }
}
