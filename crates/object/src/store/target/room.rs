//! Room for updates: space of the file system ahead of them, and what they replaced, given back when the log or the data file runs low.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::clean::Effort;
use super::open::TargetSetup;
use super::{State, Target};
use crate::store::error::StoreError;
use crate::store::log::{Need, Use, prepare};
use crate::store::record::LINE_BYTES;
use crate::store::types::{Aggregated, ContainerId};

/// Space that is taken ahead in mapped logs, in bytes of all targets together. Others have a segment each: zeroing disturbs syncs.
const AHEAD_BYTES: u64 = 256 << 20;
/// Nothing is taken ahead where the file system has less than so many segments free: others may need it sooner.
const FREE_SEGMENTS_MIN: u64 = 8;
/// Passes over the log that an update makes, a pause between two, while others fill records or read versions: what they hold comes back
/// when they are done, however long the scheduler or a device lets them wait. A peer that never ends must not hold others for ever.
const PASSES_MAX: u32 = 500;
/// The pause.
const PAUSE: Duration = Duration::from_millis(10);
/// The pause of the first passes: most are done in no time.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const FIRST_PASSES: u32 = 32;
/// Longest wait for readers of what was freed already.
const READERS_PATIENCE: Duration = Duration::from_millis(100);
/// Most segments that are kept free by the keeper.
const LOW_WATER_MAX: usize = 16;
/// After a reclaim that freed too little, so many updates go by before the next for the data file.
const EPOCHS_BETWEEN: u64 = 32;

/// What an update lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// A record of so many lines.
    Log { lines: usize, need: Need },
    /// An extent of so many bytes.
    Data { bytes: u64 },
}

/// How often others may take the room that was made, before it is waited for.
const TURNS_MAX: u32 = 32;

/// What has happened to a target up to a moment: the same before and after a pass that made no room means that the next makes none either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Activity {
    appended: u64,
    epoch: u64,
    /// Changes of other kinds.
    changes: u64,
    /// Records that are being filled: each may end as room, or leave the version before it dead.
    claims: u32,
    /// Something freed waits for its readers.
    is_read: bool,
}

impl Activity {
    /// Whether nobody is at anything that could end as room.
    fn is_at_rest(&self) -> bool {
        self.claims == 0 && !self.is_read
    }
}

/// What the last reclaim came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reclaimed {
    /// It made no room.
    is_fruitless: bool,
    /// Nor can what others were at: there is none.
    is_final: bool,
    /// Before it.
    at: Activity,
}

/// Segments that have their space before they are needed, beside those that are kept for punches and cleaning.
pub(super) fn ahead_segments(setup: &TargetSetup, is_mapped: bool) -> usize {
    let bytes = if is_mapped { AHEAD_BYTES / u64::from(setup.targets) } else { 0 };
    ((bytes / setup.segment_bytes) as usize).clamp(1, setup.segments as usize / 2)
}

impl Target {
    /// Takes room for a record.
    #[inline]
    pub(super) fn take(&self, state: &mut State, lines: usize, need: Need) -> Result<u64, StoreError> {
        if state.log.fits(lines, need) {
            return state.log.take(lines, need);
        }
        self.take_from_next(state, lines, need)
    }

    #[cold]
    fn take_from_next(&self, state: &mut State, lines: usize, need: Need) -> Result<u64, StoreError> {
        self.reclaim_drained(state);
        let taken = state.log.take(lines, need);
        self.bell.ring();
        taken
    }

    /// Takes an extent of the data file, with its space.
    pub(super) fn take_extent(&self, state: &mut State, bytes: u64) -> Result<u64, StoreError> {
        let file = self.data.as_ref().ok_or(StoreError::NvmeFull)?;
        let at = state.extents.take(bytes, file)?;
        if let Err(error) = file.ensure(at, bytes) {
            state.extents.give(at, bytes, file);
            return Err(error);
        }
        Ok(at)
    }

    /// Does something again as long as it finds no room and room can be made for it.
    ///
    /// `own_claims` are those that the caller holds.
    #[inline]
    pub(super) fn with_room<R>(
        &self,
        own_claims: u32,
        lack: impl Fn(StoreError) -> Option<Lack>,
        mut work: impl FnMut() -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        for turn in 0.. {
            match work() {
                Err(error) => match lack(error) {
                    Some(lack) if self.make_room(lack, turn, own_claims) => {}
                    _ => return Err(error),
                },
                done => return done,
            }
        }
        Err(StoreError::ScmFull)
    }

    /// Makes room for what did not fit: gives back what nobody can see any more. False where there is none to be made: that is decided by
    /// what others are at, never by a clock. `turn` counts the rooms that were made for it already, and that others took.
    #[cold]
    fn make_room(&self, lack: Lack, turn: u32, own_claims: u32) -> bool {
        // Who waits here fills nothing.
        self.state.lock().claims -= own_claims;
        let is_made = self.is_room_made(lack, turn);
        self.state.lock().claims += own_claims;
        is_made
    }

    fn is_room_made(&self, lack: Lack, turn: u32) -> bool {
        for pass in 1.. {
            if self.state.lock().is_closed || self.is_broken.load(Ordering::Acquire) {
                return false;
            }
            let mut last = self.aggregating.lock();
            // The keeper may hold a segment that it prepares.
            drop(self.preparing.lock());
            if self.has_room(lack) {
                return true;
            }
            if last.is_final && !self.is_worth_it(&last, lack) {
                return false;
            }
            let before = self.activity();
            let (has_room, is_freed) = self.reclaim_for(lack);
            let is_made = has_room || is_freed && turn < TURNS_MAX;
            // Records that others fill, and versions that they read, keep their segments until they are done.
            let is_at_rest = before.is_at_rest() && before == self.activity();
            let is_out = !is_made && (is_at_rest || pass >= PASSES_MAX);
            *last = Reclaimed { is_fruitless: is_out, is_final: is_out, at: before };
            drop(last);
            if is_made || is_out {
                return is_made;
            }
            std::thread::sleep(if pass <= FIRST_PASSES { FIRST_PAUSE } else { PAUSE });
        }
        false
    }

    fn activity(&self) -> Activity {
        let state = self.state.lock();
        Activity {
            appended: state.log.appended,
            epoch: state.epoch,
            changes: self.changes.load(Ordering::Relaxed),
            claims: state.claims,
            is_read: state.draining > 0 || state.extents.is_waiting(),
        }
    }

    /// Reclaims once: whether there is room, and whether anything of the kind was freed.
    fn reclaim_for(&self, lack: Lack) -> (bool, bool) {
        let wanted = Need::Update.reserve() + 1 + self.low_water();
        let done = self.reclaim(wanted);
        let is_freed = done.is_ok_and(|done| match lack {
            Lack::Log { .. } => done.segments_freed > 0,
            Lack::Data { .. } => done.nvme_freed_bytes > 0,
        });
        let begin = Instant::now();
        let mut has_room = self.has_room(lack);
        // What was freed may still be read.
        while !has_room && is_freed && begin.elapsed() < READERS_PATIENCE {
            std::thread::yield_now();
            has_room = self.has_room(lack);
        }
        (has_room, is_freed)
    }

    /// Whether enough has changed since a reclaim that made no room.
    fn is_worth_it(&self, last: &Reclaimed, lack: Lack) -> bool {
        let (now, then) = (self.activity(), last.at);
        let (_, segment_bytes) = self.state.lock().log.extent_of(0);
        now.changes != then.changes
            || match lack {
                Lack::Log { .. } => now.appended - then.appended >= segment_bytes / 8,
                Lack::Data { .. } => now.epoch - then.epoch >= EPOCHS_BETWEEN,
            }
    }

    fn has_room(&self, lack: Lack) -> bool {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        self.reclaim_drained(state);
        match lack {
            Lack::Log { lines, need } => state.log.fits(lines, need) || state.log.ensure_ready(need).is_ok(),
            Lack::Data { bytes } => {
                let taken = self.take_extent(state, bytes);
                if let (Ok(at), Some(file)) = (taken, &self.data) {
                    state.extents.give(at, bytes, file);
                }
                taken.is_ok()
            }
        }
    }

    /// Drops what neither the latest epoch nor a snapshot sees, of all containers, and cleans until so many segments are free.
    /// `aggregating` is held.
    fn reclaim(&self, free_segments: usize) -> Result<Aggregated, StoreError> {
        let (containers, destroyed) = {
            let state = self.state.lock();
            (state.containers.keys().copied().collect::<Vec<ContainerId>>(), state.destroyed())
        };
        let mut done = self.sweep_destroyed(destroyed)?;
        for container in containers {
            match self.drop_unseen(container, None) {
                // Destroyed meanwhile.
                Err(StoreError::NotFound) => {}
                dropped => done += dropped?,
            }
        }
        done += self.clean(Effort::Until { free_segments })?;
        Ok(done)
    }

    /// Segments below which the keeper makes free ones.
    fn low_water(&self) -> usize {
        (self.pins.len() / 8).clamp(1, LOW_WATER_MAX)
    }

    /// Gives the space of about `bytes` more of log its pages, or its blocks, beside what is kept ahead at all times, and waits for it: the
    /// keeper then has nothing to do before as much was written. Logs that are not mapped have one segment ahead and no more. Where there
    /// is no space, the update that needs it finds out. `stop` ends it early.
    pub(in crate::store) fn stock(&self, bytes: u64, stop: &AtomicBool) {
        let segment_bytes = u64::from(self.segment_lines) * LINE_BYTES as u64;
        let more = if self.mapped.is_some() && bytes > 0 {
            // A record that does not fit the rest of a segment leaves it empty: up to a sixteenth.
            (bytes + bytes / 16).div_ceil(segment_bytes) as usize + 1
        } else {
            0
        };
        self.prepare_segments(self.ahead_segments + more, stop);
        if let Some(file) = &self.data {
            let _ = file.ensure_ahead();
        }
    }

    /// What the keeper does when a segment was begun.
    pub(in crate::store) fn keep(&self) {
        self.prepare_ahead();
        if let Some(file) = &self.data {
            // Where there is no space, the update that needs it finds out.
            let _ = file.ensure_ahead();
        }
        let low = Need::Update.reserve() + self.low_water();
        let (free, closed) = {
            let mut state = self.state.lock();
            self.reclaim_drained(&mut state);
            (state.log.free.len(), state.is_closed)
        };
        if free > low || closed {
            return;
        }
        let Some(mut last) = self.aggregating.try_lock() else { return };
        let lack = Lack::Log { lines: 1, need: Need::Update };
        if last.is_fruitless && !self.is_worth_it(&last, lack) {
            return;
        }
        let at = self.activity();
        // An error shows itself to the update that finds no room.
        let is_fruitless = self.reclaim(low + self.low_water()).is_err() || self.is_at_most_free(free);
        *last = Reclaimed {
            is_fruitless,
            is_final: is_fruitless && at.is_at_rest() && at == self.activity(),
            at,
        };
    }

    fn is_at_most_free(&self, free: usize) -> bool {
        let mut state = self.state.lock();
        self.reclaim_drained(&mut state);
        state.log.free.len() <= free
    }

    /// Gives segments their space before they are needed.
    pub(super) fn prepare_ahead(&self) {
        self.prepare_segments(self.ahead_segments, &AtomicBool::new(false));
    }

    /// Gives so many free segments their space, beside those that are kept for punches and cleaning.
    fn prepare_segments(&self, count: usize, stop: &AtomicBool) {
        let _alone = self.preparing.lock();
        while !stop.load(Ordering::Relaxed) {
            let (number, at, bytes) = {
                let mut state = self.state.lock();
                let kept = Need::Update.reserve() + count;
                if state.is_closed
                    || state.log.ready() >= kept
                    || state.log.free.len() <= Need::Update.reserve() + 1
                {
                    return;
                }
                let Some(number) = state.log.begin_prepare() else { return };
                let (at, bytes) = state.log.extent_of(number);
                if self.medium.free_bytes() / bytes < FREE_SEGMENTS_MIN {
                    state.log.end_prepare(number, false);
                    return;
                }
                (number, at, bytes)
            };
            let prepared = prepare(&*self.medium, at, bytes);
            self.state.lock().log.end_prepare(number, prepared.is_ok());
            if prepared.is_err() {
                // The update that needs it meets the same.
                return;
            }
        }
    }
}
