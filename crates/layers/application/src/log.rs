//! Logs of a run: the next free place of each, commits in groups, and the records that are acknowledged and found again.
//!
//! A log has one lock, which its processes share while they commit, as those of a database do. Each host has a log of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::plan::{AppPlan, LogShare, SetPlan};

mod gathered;

use gathered::Gathered;
pub(crate) use gathered::{Put, Whole};

/// A bit for each record.
struct Bits(Vec<AtomicU64>);

impl Bits {
    fn new(count: u64) -> Self {
        Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Sets a bit; whether it was set before.
    fn set(&self, at: u64) -> bool {
        let mask = 1 << (at % 64);
        self.0.get((at / 64) as usize).is_some_and(|word| word.fetch_or(mask, Ordering::Relaxed) & mask != 0)
    }

    fn has(&self, at: u64) -> bool {
        self.0
            .get((at / 64) as usize)
            .is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (at % 64)) != 0)
    }

    /// The first bit that is set here and not in another.
    fn first_beyond(&self, other: &Self) -> Option<u64> {
        let words = self.0.iter().zip(&other.0).enumerate();
        let left = words
            .map(|(at, (own, other))| (at, own.load(Ordering::Relaxed) & !other.load(Ordering::Relaxed)));
        let mut left = left.filter(|(_, word)| *word != 0);
        left.next().map(|(at, word)| at as u64 * 64 + u64::from(word.trailing_zeros()))
    }
}

/// Commits on a segment.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Commits that were asked for.
    asked: u64,
    /// Those of them that are durable, or whose group has failed.
    durable: u64,
    is_syncing: bool,
}

/// Commits of a group that failed, each of them by this result.
struct Failed {
    after: u64,
    upto: u64,
    result: i64,
}

/// Counters of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commits {
    pub(crate) commits: u64,
    pub(crate) syncs: u64,
    /// Objects that groups of commits were written as.
    pub(crate) objects: u64,
    /// Most commits that one sync, or one object, carried.
    pub(crate) largest: u64,
    /// Records that were read again.
    pub(crate) recovered: u64,
}

#[derive(Default)]
struct State {
    segments: BTreeMap<u64, Group>,
    counts: Commits,
    failed: Vec<Failed>,
    gathered: Gathered,
}

/// The next move of a process that waits for its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is durable.
    Durable,
    /// It syncs, for all commits up to this one.
    Sync(u64),
    /// Another one syncs.
    Wait,
    /// Its group was not written.
    Failed(i64),
}

/// A log.
pub(crate) struct Log {
    /// Its part of the logs of all hosts. Its own places begin at 0.
    pub(crate) share: LogShare,
    next: AtomicU64,
    state: Mutex<State>,
    turned: Condvar,
    /// Places that were written, by place, and how many.
    written: Bits,
    places: AtomicU64,
    /// Records that were acknowledged as committed, and those that were read again, by their numbers.
    acknowledged: Bits,
    found: Bits,
    looked_at: AtomicU64,
}

impl Log {
    /// A log without records; those of all hosts have `records`, and `group_bytes` is the most that its groups of commits have.
    fn new(share: LogShare, records: u64, group_bytes: u64) -> Self {
        let bits = || Bits::new(records);
        let gathered = Gathered::new(group_bytes as usize, share.records);
        Self {
            share,
            next: AtomicU64::new(0),
            state: Mutex::new(State { gathered, ..State::default() }),
            turned: Condvar::new(),
            written: Bits::new(share.records),
            places: AtomicU64::new(0),
            acknowledged: bits(),
            found: bits(),
            looked_at: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next free place.
    pub(crate) fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A record was written to a place.
    pub(crate) fn note_written(&self, place: u64) {
        self.written.set(place);
        self.places.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a record was written to a place.
    pub(crate) fn is_written(&self, place: u64) -> bool {
        self.written.has(place)
    }

    /// A record is committed, and its process knows.
    pub(crate) fn acknowledge(&self, record: u64) {
        self.acknowledged.set(record);
    }

    /// A record was read again; whether another place had it too.
    pub(crate) fn find(&self, record: u64) -> bool {
        self.state().counts.recovered += 1;
        self.found.set(record)
    }

    /// A place was looked at; an acknowledged record that none had, once all that were written were.
    pub(crate) fn missing(&self) -> Option<u64> {
        if self.looked_at.fetch_add(1, Ordering::AcqRel) + 1 < self.places.load(Ordering::Relaxed) {
            return None;
        }
        self.acknowledged.first_beyond(&self.found)
    }

    /// Asks for a commit of what was written to a segment; its number.
    pub(crate) fn ask(&self, segment: u64) -> u64 {
        let mut state = self.state();
        let group = state.segments.entry(segment).or_default();
        group.asked += 1;
        group.asked
    }

    /// The next move of the process of commit `number`.
    pub(crate) fn turn(&self, segment: u64, number: u64) -> Turn {
        let mut state = self.state();
        if let Some(failed) =
            state.failed.iter().find(|failed| failed.after < number && number <= failed.upto)
        {
            return Turn::Failed(failed.result);
        }
        let group = state.segments.entry(segment).or_default();
        match () {
            () if group.durable >= number => Turn::Durable,
            () if group.is_syncing => Turn::Wait,
            () => {
                group.is_syncing = true;
                Turn::Sync(group.asked)
            }
        }
    }

    /// Waits for the sync that another process makes, `ns` at most.
    pub(crate) fn wait(&self, segment: u64, number: u64, ns: u64) {
        let state = self.state();
        let waits = |state: &mut State| {
            state.segments.get(&segment).is_some_and(|group| group.is_syncing && group.durable < number)
        };
        // Woken or not, the process looks again.
        drop(self.turned.wait_timeout_while(state, Duration::from_nanos(ns), waits));
    }

    /// A sync for all commits up to `number` has ended.
    pub(crate) fn synced(&self, segment: u64, number: u64, is_durable: bool) {
        let mut state = self.state();
        let group = state.segments.entry(segment).or_default();
        group.is_syncing = false;
        if is_durable {
            let carried = number.saturating_sub(group.durable);
            group.durable = group.durable.max(number);
            let counts = &mut state.counts;
            counts.syncs += 1;
            counts.commits += carried;
            counts.largest = counts.largest.max(carried);
        }
        drop(state);
        self.turned.notify_all();
    }

    /// A commit on a storage that has nothing to sync: what is written is durable.
    pub(crate) fn committed(&self) {
        self.state().counts.commits += 1;
    }
}

/// The logs of an application, by set.
#[derive(Default)]
pub(crate) struct Logs(Vec<Option<Log>>);

impl Logs {
    /// The logs of this host, without records.
    pub(crate) fn new(plan: &AppPlan) -> Self {
        let of_set = |set: &SetPlan| {
            let group_bytes = if set.is_grouped() { set.object_bytes() } else { 0 };
            set.log.as_ref().map(|_| Log::new(set.log_of(plan.host()), set.space.total(), group_bytes))
        };
        Self(plan.sets.iter().map(of_set).collect())
    }

    /// The log of a set.
    #[inline]
    pub(crate) fn of(&self, set: u16) -> Option<&Log> {
        self.0.get(usize::from(set))?.as_ref()
    }

    /// Counters of all logs since the last call.
    pub(crate) fn take_counts(&self) -> Commits {
        let mut sum = Commits::default();
        for log in self.0.iter().flatten() {
            let counts = std::mem::take(&mut log.state().counts);
            sum.commits += counts.commits;
            sum.syncs += counts.syncs;
            sum.objects += counts.objects;
            sum.largest = sum.largest.max(counts.largest);
            sum.recovered += counts.recovered;
        }
        sum
    }

    /// Logs that have records of this host.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().flatten().filter(|log| log.share.records > 0).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(records: u64) -> Log {
        Log::new(LogShare { records, ..LogShare::default() }, records, 0)
    }

    #[test]
    fn one_sync_carries_all_commits_that_were_asked_for_before_it() {
        let log = log(100);
        let first = log.ask(0);
        assert_eq!(log.turn(0, first), Turn::Sync(1));
        let (second, third) = (log.ask(0), log.ask(0));
        assert_eq!((log.turn(0, second), log.turn(0, third)), (Turn::Wait, Turn::Wait));
        log.synced(0, 1, true);
        assert_eq!((log.turn(0, first), log.turn(0, third)), (Turn::Durable, Turn::Sync(3)));
        let other = log.ask(1);
        assert_eq!(log.turn(1, other), Turn::Sync(1), "another segment has syncs of its own");
        log.synced(0, 3, true);
        assert_eq!(log.turn(0, second), Turn::Durable);
        log.synced(1, 1, false);
        assert_eq!(log.turn(1, other), Turn::Sync(1), "a sync that failed makes nothing durable");
        let logs = Logs(vec![None, Some(log)]);
        assert_eq!(logs.take_counts(), Commits { commits: 3, syncs: 2, largest: 2, ..Commits::default() });
        assert_eq!(logs.take_counts(), Commits::default());
    }

    #[test]
    fn acknowledged_records_that_no_place_has_are_named() {
        let log = log(200);
        [3, 70, 150].iter().for_each(|record| log.acknowledge(*record));
        assert!(!log.find(3) && !log.find(150) && log.find(3), "found twice");
        [0, 1].iter().for_each(|place| log.note_written(*place));
        assert_eq!((log.missing(), log.missing()), (None, Some(70)));
        assert!(!log.find(70));
        assert_eq!(log.missing(), None);
    }
}
