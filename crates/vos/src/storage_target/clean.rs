//! Cleaning: live records move out of segments that are mostly dead, and the segments are free again.

use std::sync::atomic::Ordering;

use super::room::Lack;
use super::scan::{self, Committed, Found};
use super::{State, Target};
use crate::error::StoreError;
use crate::index::Hashes;
use crate::log::{Need, Segment, Use, When};
use crate::medium::BLOCK_BYTES;
use crate::memory::Region;
use crate::model::Epoch;
use crate::record::{FLAG_ARRAY, FLAG_MOVED, Header, Kind, LINE_BYTES};
use crate::segment::MAGIC_BYTES;
use crate::table::{Entry, Tag};
use crate::types::{Aggregated, ContainerId, KeyPath};

/// How much is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Segments of which at least a quarter is dead.
    Usual,
    /// Segments with anything that is dead.
    Full,
    /// Segments that are dead altogether, then the emptiest, until so many are free.
    Until { free_segments: usize },
}

impl Effort {
    /// Whether a segment is worth it.
    fn takes(self, live: u32, lines: u32) -> bool {
        match self {
            Self::Usual => live <= lines / 4 * 3,
            Self::Full => live + 2 < lines,
            Self::Until { .. } => live + 2 < lines - lines / 32,
        }
    }
}

impl Target {
    /// Frees segments with nothing live, and cleans others as far as `effort` says.
    pub(super) fn clean(&self, effort: Effort) -> Result<Aggregated, StoreError> {
        let mut done = Aggregated::default();
        let (candidates, is_stuck) = {
            let mut state = self.state.lock();
            if effort == Effort::Full
                && let Some(active) = state.log.active
                && state.log.segments[active].live_lines + 1 < state.log.segments[active].used_lines
                && !state.log.free.is_empty()
            {
                state.log.commit_pending()?;
                state.log.seal_active()?;
            }
            self.reclaim_drained(&mut state);
            (self.candidates(&state, effort), state.log.free.is_empty())
        };
        for segment in candidates {
            let (live, free) = {
                let state = self.state.lock();
                // Those that the file system has no space for do not help.
                let is_free = |segment: &&Segment| {
                    segment.usage == Use::Draining || (segment.usage == Use::Free && segment.has_space)
                };
                let live = state.log.segments[segment].live_lines;
                (live, state.log.segments.iter().filter(is_free).count())
            };
            if live > 0 && matches!(effort, Effort::Until { free_segments } if free >= free_segments) {
                break;
            }
            if live > 0 && is_stuck && done.segments_freed == 0 && self.state.lock().log.free.is_empty() {
                // Not even cleaning has room: what is live cannot move.
                let room = self.state.lock().log.free_bytes();
                if room < u64::from(live) * LINE_BYTES as u64 {
                    continue;
                }
            }
            match self.clean_segment(segment) {
                Ok(moved_bytes) => {
                    done.moved_bytes += moved_bytes;
                    done.segments_freed += 1;
                }
                Err(StoreError::ScmFull) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Segments that are worth it, the emptiest first.
    fn candidates(&self, state: &State, effort: Effort) -> Vec<usize> {
        let lines = self.segment_lines;
        let mut candidates: Vec<(u32, usize)> = state
            .log
            .segments
            .iter()
            .enumerate()
            .filter(|(_, segment)| segment.usage == Use::Sealed && segment.reservations == 0)
            .map(|(number, segment)| (segment.live_lines, number))
            .filter(|(live, _)| effort.takes(*live, lines))
            .collect();
        candidates.sort_unstable();
        let dead: u64 = candidates.iter().map(|(live, _)| u64::from(lines - live)).sum();
        if matches!(effort, Effort::Until { .. }) && dead < u64::from(lines) {
            // All of it together would not free a segment.
            return Vec::new();
        }
        candidates.into_iter().map(|(_, number)| number).collect()
    }

    /// Moves what is live out of a segment and frees it. Returns the bytes that were moved.
    fn clean_segment(&self, number: usize) -> Result<u64, StoreError> {
        let bytes = self.segment_lines as usize * LINE_BYTES;
        let base = number as u64 * u64::from(self.segment_lines);
        let (is_live, sequence, buffer) = {
            let state = self.state.lock();
            let segment = &state.log.segments[number];
            (segment.live_lines > 0, segment.sequence, segment.buffer.clone())
        };
        let mut moved = 0;
        let mut failure = None;
        if is_live {
            let mut visit = |found: &Found, record: &[u8]| {
                if failure.is_none() && matches!(found.state, Committed::Yes | Committed::Damaged) {
                    match self.move_record(found, record, base) {
                        Ok(lines) => moved += lines * LINE_BYTES as u64,
                        Err(error) => failure = Some(error),
                    }
                }
            };
            if let Some(region) = &self.mapped {
                // Deferred records get their commit words first: else they would look as if they had never been published.
                self.commit()?;
                scan::scan(region.bytes(base as usize * LINE_BYTES, bytes), sequence, &mut visit);
            } else if let Some(buffer) = &buffer {
                scan::scan(buffer.bytes(0, bytes), sequence, &mut visit);
            } else {
                let mut copy = Region::anonymous(bytes)?;
                self.medium.read(copy.bytes_mut(0, bytes), base * LINE_BYTES as u64)?;
                scan::scan(copy.bytes(0, bytes), sequence, &mut visit);
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.free_segment(number)?;
        Ok(moved)
    }

    /// Moves a record if the index refers to it. Returns its lines.
    fn move_record(&self, found: &Found, record: &[u8], base: u64) -> Result<u64, StoreError> {
        let lack = Lack::Log { lines: found.header.lines(), need: Need::Clean };
        self.with_supply(lack, || self.move_once(found, record, base))
    }

    fn move_once(&self, found: &Found, record: &[u8], base: u64) -> Result<u64, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let from = base + u64::from(found.line);
        let (dkey, akey) = (found.header.dkey(record), found.header.akey(record));
        let hashes = Hashes::of(dkey, akey);
        if !state.relocate(&found.header, &hashes, from, from) {
            return Ok(0);
        }
        let mut header = Header { flags: found.header.flags | FLAG_MOVED, ..found.header };
        let lines = header.lines();
        let location = self.take(state, lines, Need::Clean)?;
        let place = KeyPath { container: header.container, object: header.object, dkey, akey };
        let fresh = self.begin(&mut state.log, &header, &place, location);
        let keys_end = header.keys_end();
        fresh[keys_end..].copy_from_slice(&record[keys_end..]);
        let mut commit = header.seal(fresh);
        if found.state == Committed::Damaged {
            // It stays as damaged as it was.
            commit = (!commit).max(1);
        }
        header.epoch = found.header.epoch;
        self.flusher.flush(fresh);
        let when = if self.when(crate::types::Ack::Deferred) == When::Unordered {
            When::Unordered
        } else {
            When::Later
        };
        state.log.finish(location, lines, commit, when)?;
        state.relocate(&header, &hashes, from, location);
        let segment = state.log.segment_of(from);
        let segment = &mut state.log.segments[segment];
        segment.live_lines = segment.live_lines.saturating_sub(lines as u32);
        Ok(lines as u64)
    }

    /// Marks a segment as free, on the medium first: what it holds must not come back after a crash.
    fn free_segment(&self, number: usize) -> Result<(), StoreError> {
        // What moved out of it is durable before it goes.
        self.harden()?;
        let at = number as u64 * u64::from(self.segment_lines) * LINE_BYTES as u64;
        if self.mapped.is_some() {
            self.medium.write(&[0; MAGIC_BYTES], at)?;
            if self.medium.is_synced() || self.is_loose() {
                self.medium.sync(at, LINE_BYTES as u64)?;
            }
        } else {
            // Others may still read the records that begin in its first block: they stay as they are.
            let mut block = Region::anonymous(BLOCK_BYTES)?;
            let bytes = block.bytes_mut(0, BLOCK_BYTES);
            self.medium.read(bytes, at)?;
            // Its sequence stays: what it held would be whole again with a header of the same.
            bytes[..MAGIC_BYTES].fill(0);
            self.medium.write(bytes, at)?;
            self.medium.sync(at, BLOCK_BYTES as u64)?;
        }
        let mut state = self.state.lock();
        let is_stale = state.log.needs_zeros();
        let segment = &mut state.log.segments[number];
        segment.usage = Use::Draining;
        (segment.has_space, segment.is_stale) = (true, is_stale);
        segment.dead_epoch_min = Epoch::MAX;
        segment.live_lines = 0;
        let buffer = segment.buffer.take();
        state.draining += 1;
        self.reclaim_drained(&mut state);
        drop(state);
        drop(buffer);
        Ok(())
    }

    /// Segments that nobody reads any more can be written again.
    pub(super) fn reclaim_drained(&self, state: &mut State) {
        if state.draining == 0 {
            return;
        }
        for (number, pins) in self.pins.iter().enumerate() {
            if state.log.segments[number].usage == Use::Draining && pins.load(Ordering::Acquire) == 0 {
                state.log.segments[number].usage = Use::Free;
                state.log.free.insert(0, number as u32);
                state.draining -= 1;
            }
        }
    }
}

impl State {
    /// Points the index to where a record lies now. False where it does not refer to the record.
    fn relocate(&mut self, header: &Header, hashes: &Hashes, from: u64, to: u64) -> bool {
        if header.kind == Kind::Discard {
            let own = self.discards.iter_mut().find(|discard| discard.version.location() == from);
            return own.map(|discard| discard.version = discard.version.moved_to(to)).is_some();
        }
        let Some(object) = self.index.object(header.container, header.object) else { return false };
        match header.kind {
            Kind::PunchObject => move_punch(&mut self.index.objects.get_mut(object).punches, from, to),
            Kind::PunchDkey => {
                let Some(at) = self.index.dkey(object, hashes) else { return false };
                let entry = *self.index.objects.get(object).dkeys.get(at);
                entry.tag() == Tag::Dkey
                    && move_punch(&mut self.index.dkeys.get_mut(entry.node_number()).punches, from, to)
            }
            kind => {
                let is_array = matches!(kind, Kind::Extent | Kind::PunchExtent)
                    || (kind == Kind::PunchAkey && header.flags & FLAG_ARRAY != 0);
                self.relocate_value(object, hashes, header.epoch, is_array, from, to)
            }
        }
    }

    fn relocate_value(
        &mut self,
        object: u32,
        hashes: &Hashes,
        epoch: Epoch,
        is_array: bool,
        from: u64,
        to: u64,
    ) -> bool {
        let Some((spot, _)) = self.index.spot(object, hashes, Epoch::MAX) else { return false };
        let entry = *self.index.entry(spot);
        match (entry.tag(), is_array) {
            (Tag::Extents, true) => self.index.extents.get_mut(entry.node_number()).relocate(epoch, from, to),
            (Tag::One | Tag::Tombstone, false) => {
                let version = entry.as_version();
                let is_it = version.location() == from;
                if is_it && from != to {
                    let moved = version.moved_to(to);
                    self.index.set_entry(spot, Entry::version(entry.hash, entry.extra(), entry.akey, moved));
                }
                is_it
            }
            (Tag::Chain, false) => self.index.relocate_link(entry.node_number(), from, to),
            _ => false,
        }
    }

    /// Containers in the index that are there no more.
    pub(super) fn destroyed(&self) -> Vec<ContainerId> {
        let numbers = 0..self.index.containers.len() as u32;
        let is_held = |id: &ContainerId| self.index.containers[id.0 as usize].table.len() > 0;
        numbers.map(ContainerId).filter(|id| !self.containers.contains_key(id) && is_held(id)).collect()
    }
}

fn move_punch(punches: &mut [crate::table::Version], from: u64, to: u64) -> bool {
    let own = punches.iter_mut().find(|punch| punch.location() == from);
    own.map(|punch| *punch = punch.moved_to(to)).is_some()
}
