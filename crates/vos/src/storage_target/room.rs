//! Room for updates: space of the file system ahead of them, and what they replaced, given back when the log or the data file runs low.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Allocation;

use super::clean::Effort;
use super::open::TargetSetup;
use super::{State, Target};
use crate::data::Spread;
use crate::error::StoreError;
use crate::log::Need;
use crate::memory::Region;
use crate::record::{LINE_BYTES, PIECE_BYTES};
use crate::types::{Aggregated, ContainerId};

/// Space that is taken ahead in mapped logs, in bytes of all targets together. Others have a segment each: zeroing disturbs syncs.
const AHEAD_BYTES: u64 = 256 << 20;
/// Nothing is taken ahead where the file system has less than so many segments free: others may need it sooner.
const FREE_SEGMENTS_MIN: u64 = 8;
/// Passes over the log that an update makes, a pause between two, while others fill records or read versions: what they hold comes back when they are done, however long the scheduler or a device lets them wait. A peer that never ends must not hold others for ever.
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

/// Most pieces that a value lies in.
const PIECES_MAX: usize = 4096;

/// Room that an update lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// A record of so many lines.
    Log { lines: usize, need: Need },
    /// An extent of so many bytes.
    Data { bytes: u64 },
}

/// How often others may take the room that was made, before it is waited for.
const TURNS_MAX: u32 = 32;

/// Activity of a target up to a moment: the same before and after a pass that made no room means that the next makes none either.
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
    /// Whether nobody else has changed anything until `later`. What cleaning appends is its own.
    fn is_before(&self, later: &Self) -> bool {
        (self.epoch, self.changes, self.claims) == (later.epoch, later.changes, later.claims)
    }

    /// Whether nobody is at anything that could end as room.
    fn is_at_rest(&self) -> bool {
        self.claims == 0 && !self.is_read
    }
}

/// Outcome of the last reclaim.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reclaimed {
    /// It made no room.
    is_fruitless: bool,
    /// Nor can what others were at: there is none.
    is_final: bool,
    /// It made no room in one piece, and there was enough in several.
    is_scattered: bool,
    /// Before it.
    at: Activity,
}

/// Segments that have their space before they are needed, beside those that are kept for punches and cleaning.
pub(super) fn ahead_segments(setup: &TargetSetup, is_mapped: bool) -> usize {
    let bytes = if is_mapped { AHEAD_BYTES / u64::from(setup.targets) } else { 0 };
    ((bytes / setup.segment_bytes) as usize).clamp(1, setup.segments as usize / 2)
}

/// Whether a thread that prepares space has a processor of its own: where there is one alone, pages are made by the update that needs
/// them, and no other phase is disturbed. Zeroing of files waits for the device, and needs none.
pub(super) fn has_spare_processor(is_mapped: bool) -> bool {
    !is_mapped || std::thread::available_parallelism().is_ok_and(|count| count.get() > 1)
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

    /// Takes room in the data file; scattered only where that is allowed. Its space is to be taken without the lock, by
    /// [`Target::ensure_extents`].
    pub(super) fn take_extents(
        &self,
        state: &mut State,
        bytes: u64,
        is_scattered: bool,
    ) -> Result<Spread, StoreError> {
        let file = self.data.as_ref().ok_or(StoreError::NvmeFull)?;
        let pieces_max = if is_scattered { self.pieces_max() } else { 0 };
        state.extents.take_spread(bytes, pieces_max, file)
    }

    /// Most pieces of a value: their places fit into a record beside everything else.
    fn pieces_max(&self) -> usize {
        (self.segment_lines as usize * LINE_BYTES / 8 / PIECE_BYTES).min(PIECES_MAX)
    }

    /// Takes the space of room in the data file from the file system, and gives the room back where there is none. The lock is not held.
    pub(super) fn ensure_extents(&self, spread: &Spread, bytes: u64) -> Result<(), StoreError> {
        let file = self.data.as_ref().ok_or(StoreError::NvmeFull)?;
        file.ensure_spread(spread, bytes).inspect_err(|_| {
            self.state.lock().extents.give_spread(spread, bytes, file);
        })?;
        if file.is_low() {
            self.bell.ring();
        }
        Ok(())
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
                    Some(lack) if self.supply(lack, turn)? || self.make_room(lack, turn, own_claims) => {}
                    _ => return Err(error),
                },
                done => return done,
            }
        }
        Err(StoreError::ScmFull)
    }

    /// As [`Target::with_room`], for those who hold `aggregating`: they get what has to be prepared alone, and reclaim nothing.
    pub(super) fn with_supply<R>(
        &self,
        lack: Lack,
        mut work: impl FnMut() -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        for turn in 0.. {
            match work() {
                Err(StoreError::ScmFull) if self.supply(lack, turn)? => {}
                done => return done,
            }
        }
        Err(StoreError::ScmFull)
    }

    /// Prepares what a record lacks: the space of a segment that is free already, and memory for it. Whether it is worth a try again.
    #[cold]
    pub(super) fn supply(&self, lack: Lack, turn: u32) -> Result<bool, StoreError> {
        let Lack::Log { lines, need } = lack else { return Ok(false) };
        let _alone = self.preparing.lock();
        let mut is_prepared = false;
        loop {
            {
                let mut state = self.state.lock();
                self.reclaim_drained(&mut state);
                if state.log.fits(lines, need) || state.log.is_supplied(need) {
                    return Ok(is_prepared || turn < TURNS_MAX);
                }
                if state.is_closed || state.log.free.len() <= need.reserve() {
                    return Ok(false);
                }
            }
            match self.prepare_buffer().and_then(|()| self.prepare_segment()) {
                Ok(has_more) if !has_more && is_prepared => return Ok(false),
                Ok(_) => is_prepared = true,
                // The file system is full: what the log holds already may make room.
                Err(StoreError::ScmFull) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
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
            if self.has_room(lack) {
                return true;
            }
            let is_scattered = turn < TURNS_MAX && self.has_scattered_room(lack);
            if (is_scattered && last.is_scattered && !self.is_worth_a_look(&last))
                || (last.is_final && !self.is_worth_it(&last, lack))
            {
                return is_scattered;
            }
            let before = self.activity();
            let (has_room, is_freed) = self.reclaim_for(lack);
            if !has_room && turn < TURNS_MAX && self.has_scattered_room(lack) {
                *last = Reclaimed { is_fruitless: true, is_final: false, is_scattered: true, at: before };
                return true;
            }
            let is_made = has_room || is_freed && turn < TURNS_MAX;
            // Records that others fill, and versions that they read, keep their segments until they are done.
            let is_at_rest = before.is_at_rest() && before.is_before(&self.activity());
            let is_out = !is_made && (is_at_rest || pass >= PASSES_MAX);
            self.timed_out_waits.fetch_add(u64::from(is_out && !is_at_rest), Ordering::Relaxed);
            *last = Reclaimed { is_fruitless: is_out, is_final: is_out, is_scattered: false, at: before };
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
        let segments = self.segments_to_write();
        let done = self.reclaim(wanted);
        let is_freed = done.is_ok_and(|done| match lack {
            // What was moved into a segment for each that it left is nothing gained.
            Lack::Log { .. } => self.segments_to_write() > segments,
            Lack::Data { .. } => done.nvme_freed_bytes > 0,
        });
        let begin = Instant::now();
        let mut has_room = self.has_room(lack);
        // What was freed may still be read.
        while !has_room && is_freed && self.activity().is_read && begin.elapsed() < READERS_PATIENCE {
            std::thread::yield_now();
            has_room = self.has_room(lack);
        }
        (has_room, is_freed)
    }

    /// Segments that are free, or will be when their readers are done.
    fn segments_to_write(&self) -> usize {
        let state = self.state.lock();
        state.log.free.len() + state.draining
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

    /// Whether so much was changed since a reclaim that made no room in one piece that it pays to look at every key again.
    fn is_worth_a_look(&self, last: &Reclaimed) -> bool {
        let state = self.state.lock();
        state.epoch - last.at.epoch >= EPOCHS_BETWEEN.max(state.index.keys / 4)
    }

    /// Whether there is room, in one piece.
    fn has_room(&self, lack: Lack) -> bool {
        match lack {
            Lack::Log { .. } => self.supply(lack, 0).unwrap_or(false),
            Lack::Data { bytes } => self.has_extents(bytes, false),
        }
    }

    /// Whether there is room in the data file, if only in pieces.
    fn has_scattered_room(&self, lack: Lack) -> bool {
        matches!(lack, Lack::Data { bytes } if self.has_extents(bytes, true))
    }

    /// Whether a value has room in the data file, and its space on the file system.
    fn has_extents(&self, bytes: u64, is_scattered: bool) -> bool {
        let taken = self.take_extents(&mut self.state.lock(), bytes, is_scattered);
        let (Ok(spread), Some(file)) = (taken, &self.data) else { return false };
        let is_ensured = self.ensure_extents(&spread, bytes).is_ok();
        if is_ensured {
            self.state.lock().extents.give_spread(&spread, bytes, file);
        }
        is_ensured
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

    /// Gives the space of about `bytes` more of log its pages, or its blocks, beside what is kept ahead at all times, and that of `data_bytes` of the data file, and waits for it: the keeper then has nothing to do before as much was written. Where there
    /// is no space, the update that needs it finds out. `stop` ends it early.
    pub(crate) fn stock(&self, bytes: u64, data_bytes: u64, stop: &AtomicBool) {
        if self.allocation != Allocation::Needed {
            self.prepare_for(bytes, data_bytes, stop);
        }
        self.grown_bytes.store(0, Ordering::Relaxed);
        if let Some(file) = &self.data {
            file.grown_bytes.store(0, Ordering::Relaxed);
        }
    }

    fn prepare_for(&self, bytes: u64, data_bytes: u64, stop: &AtomicBool) {
        let segment_bytes = u64::from(self.segment_lines) * LINE_BYTES as u64;
        let more = if bytes > 0 {
            // A record that does not fit the rest of a segment leaves it empty: up to a sixteenth.
            (bytes + bytes / 16).div_ceil(segment_bytes) as usize + 1
        } else {
            0
        };
        self.prepare_segments(self.ahead_segments + more, stop);
        if let Some(file) = &self.data {
            let mut free = self.state.lock().extents.free_extents();
            free.sort_unstable();
            let _ = file.stock(&free, data_bytes, stop);
        }
    }

    /// Keeps segments ready when one was begun.
    pub(crate) fn keep(&self) {
        if self.allocation != Allocation::Needed && self.has_spare_processor {
            self.prepare_ahead();
            if let Some(file) = &self.data {
                // Where there is no space, the update that needs it finds out.
                let _ = file.ensure_ahead();
            }
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
            is_final: is_fruitless && at.is_at_rest() && at.is_before(&self.activity()),
            is_scattered: false,
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
        let segment_bytes = u64::from(self.segment_lines) * LINE_BYTES as u64;
        while !stop.load(Ordering::Relaxed) {
            // Those who need one at once come between.
            let _alone = self.preparing.lock();
            let is_enough = {
                let state = self.state.lock();
                if state.is_closed || state.log.free.len() <= Need::Update.reserve() + 1 {
                    return;
                }
                state.log.ready() >= Need::Update.reserve() + count
            };
            // What cannot be had is met again by the update that needs it.
            if self.prepare_buffer().is_err()
                || is_enough
                || self.medium.free_bytes() / segment_bytes < FREE_SEGMENTS_MIN
                || !self.prepare_segment().unwrap_or(false)
            {
                return;
            }
        }
    }

    /// Takes all space of log and data file. Mapped: with its pages. Else blocks are still to be zeroed: the keeper does that, a segment ahead.
    pub(super) fn allocate_whole(&self) -> Result<(), StoreError> {
        let _alone = self.preparing.lock();
        if self.mapped.is_some() {
            while self.prepare_segment()? {}
        } else {
            let segments = self.pins.len() as u64;
            self.medium.allocate(0, segments * u64::from(self.segment_lines) * LINE_BYTES as u64)?;
        }
        self.data.as_ref().map_or(Ok(()), |file| file.ensure_all())
    }

    /// Gives the next free segment its space, and takes away what an earlier life left in it. `preparing` is held, the lock is not. False where all have theirs.
    fn prepare_segment(&self) -> Result<bool, StoreError> {
        let Some(segment) = self.state.lock().log.begin_prepare() else { return Ok(false) };
        let prepared = segment.prepare(&*self.medium);
        self.state.lock().log.end_prepare(segment.number, prepared.is_ok());
        prepared?;
        if segment.lacks_space {
            self.grown_bytes.fetch_add(segment.extent.1, Ordering::Relaxed);
        }
        Ok(true)
    }

    /// Makes memory for a segment of a buffered log, where there is none. `preparing` is held, the lock is not.
    fn prepare_buffer(&self) -> Result<(), StoreError> {
        if self.state.lock().log.has_spare() {
            return Ok(());
        }
        let bytes = self.segment_lines as usize * LINE_BYTES;
        let fresh = Region::anonymous(bytes)?;
        fresh.advise_huge();
        fresh.populate(0, bytes)?;
        let surplus = self.state.lock().log.keep_spare(Arc::new(fresh));
        drop(surplus);
        Ok(())
    }
}
