//! Groups of commits that are written whole: the records of all processes whose commits wait become one object.

use units::random::mix64;

use super::{Failed, Log};
use crate::source::records::number_of;

/// Objects that there is room for from the beginning; more take more room then.
const OBJECTS_AT_ONCE: u64 = 1 << 20;
/// Commits of a log whose groups are written whole are of one segment, as far as their turns go.
const SEGMENT: u64 = 0;

/// Records that wait, and those of the objects that were written.
#[derive(Default)]
pub(super) struct Gathered {
    /// Records whose commits were asked for, and that are not written yet.
    bytes: Vec<u8>,
    /// By the number of the object in this log.
    objects: Vec<Whole>,
}

impl Gathered {
    /// Room for so many bytes, and for as many objects as most loads write.
    pub(super) fn new(group_bytes: usize, records: u64) -> Self {
        let objects = if group_bytes > 0 { records.min(OBJECTS_AT_ONCE) } else { 0 };
        Self { bytes: Vec::with_capacity(group_bytes), objects: Vec::with_capacity(objects as usize) }
    }
}

/// An object that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Records in it; none where it was not written.
    pub(crate) records: u64,
    /// Follows from their numbers, in their order.
    pub(crate) order: u64,
}

impl Whole {
    /// That of records of one size.
    pub(crate) fn of(bytes: &[u8], record_bytes: usize) -> Self {
        let records = bytes.chunks_exact(record_bytes.max(1));
        records.fold(Self::default(), |sum, record| Self {
            records: sum.records + 1,
            order: mix64(sum.order ^ number_of(record)),
        })
    }
}

/// A group that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    /// It has all commits up to this one.
    pub(crate) upto: u64,
    /// Number of the object in this log.
    pub(crate) object: u64,
    /// Its bytes.
    pub(crate) length: usize,
}

impl Log {
    /// Asks for a commit of records; its number.
    pub(crate) fn ask_with(&self, records: &[u8]) -> u64 {
        let mut state = self.state();
        state.gathered.bytes.extend_from_slice(records);
        let group = state.segments.entry(SEGMENT).or_default();
        group.asked += 1;
        group.asked
    }

    /// Begins to write all records that wait, which it copies. The process has its turn to do so.
    pub(crate) fn gather(&self, into: &mut [u8]) -> Put {
        let mut state = self.state();
        let upto = state.segments.entry(SEGMENT).or_default().asked;
        let gathered = &mut state.gathered;
        // A process has one commit at a time, so that the records of all fit.
        debug_assert!(gathered.bytes.len() <= into.len());
        let length = gathered.bytes.len().min(into.len());
        into[..length].copy_from_slice(&gathered.bytes[..length]);
        gathered.objects.push(Whole::default());
        Put { upto, object: gathered.objects.len() as u64 - 1, length }
    }

    /// A group was written, with so many syncs, or was not: then all its commits fail.
    pub(crate) fn put_ended(&self, put: Put, record_bytes: usize, result: Result<u64, i64>) {
        let mut state = self.state();
        let state = &mut *state;
        let group = state.segments.entry(SEGMENT).or_default();
        let carried = put.upto.saturating_sub(group.durable);
        (group.durable, group.is_syncing) = (put.upto, false);
        let gathered = &mut state.gathered;
        match result {
            Ok(syncs) => {
                if let Some(object) = gathered.objects.get_mut(put.object as usize) {
                    *object = Whole::of(&gathered.bytes[..put.length], record_bytes);
                }
                self.note_written(put.object);
                let counts = &mut state.counts;
                counts.syncs += syncs;
                counts.objects += 1;
                counts.commits += carried;
                counts.largest = counts.largest.max(carried);
            }
            Err(result) => {
                state.failed.push(Failed { after: put.upto - carried, upto: put.upto, result });
            }
        }
        gathered.bytes.drain(..put.length);
        self.turned.notify_all();
    }

    /// The records that were written as an object of this log.
    pub(crate) fn whole(&self, object: u64) -> Whole {
        self.state().gathered.objects.get(object as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Commits, Logs, Turn};
    use super::*;
    use crate::plan::LogShare;

    fn record(number: u64) -> [u8; 16] {
        let mut record = [7; 16];
        record[..8].copy_from_slice(&number.to_le_bytes());
        record
    }

    #[test]
    fn a_group_has_the_records_of_all_commits_that_were_asked_for() {
        let log = Log::new(LogShare { records: 100, ..LogShare::default() }, 100, 64);
        let first = log.ask_with(&record(5));
        assert_eq!(log.turn(SEGMENT, first), Turn::Sync(1));
        let second = log.ask_with(&record(9));
        let mut buffer = [0; 64];
        let put = log.gather(&mut buffer);
        assert_eq!(put, Put { upto: 2, object: 0, length: 32 });
        assert_eq!((&buffer[..16], &buffer[16..32]), (&record(5)[..], &record(9)[..]));
        let third = log.ask_with(&record(2));
        assert_eq!(log.turn(SEGMENT, third), Turn::Wait);
        log.put_ended(put, 16, Ok(0));
        assert_eq!((log.turn(SEGMENT, second), log.turn(SEGMENT, third)), (Turn::Durable, Turn::Sync(3)));
        assert_eq!(log.whole(0), Whole::of(&buffer[..32], 16));
        assert_ne!(log.whole(0), Whole::of(&[record(9), record(5)].concat(), 16), "in another order");
        // A group that fails takes all its commits with it, and the next one has none of its records.
        let put = log.gather(&mut buffer);
        assert_eq!((put.object, put.length), (1, 16));
        log.put_ended(put, 16, Err(-5));
        let fourth = log.ask_with(&record(1));
        assert_eq!((log.turn(SEGMENT, third), log.turn(SEGMENT, fourth)), (Turn::Failed(-5), Turn::Sync(4)));
        let put = log.gather(&mut buffer);
        assert_eq!((&buffer[..16], put.length), (&record(1)[..], 16));
        log.put_ended(put, 16, Ok(1));
        assert_eq!((log.whole(1).records, log.is_written(1), log.is_written(2)), (0, false, true));
        assert_eq!((log.turn(SEGMENT, third), log.turn(SEGMENT, fourth)), (Turn::Failed(-5), Turn::Durable));
        let counts = Logs(vec![Some(log)]).take_counts();
        assert_eq!(counts, Commits { commits: 3, syncs: 1, objects: 2, largest: 2, recovered: 0 });
    }
}
