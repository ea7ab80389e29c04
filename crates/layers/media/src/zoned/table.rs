//! The zones of one device: write pointers, what is in flight, what is open. The rules are the device's: a write goes to the write
//! pointer and not past the capacity, no more zones are open than may be, a zone is reset when nothing else is at work in it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::group::Group;
use super::state::{At, State, Turn, Writer, Zone};
use super::{Kind, ZoneDevice, ZoneReport};

/// The zones of a device or of a target that they are emulated on, shared by all workers.
pub struct ZoneTable {
    zone_bytes: u64,
    /// Begin and end of each zone, and whether it has a write pointer.
    layout: Box<[(u64, u64, bool)]>,
    device: Option<Box<dyn ZoneDevice>>,
    state: Mutex<State>,
}

impl ZoneTable {
    /// Zones of `zone_bytes` each, the last one maybe shorter, as they were reported; `device` is asked again after a failure.
    pub(super) fn new(zone_bytes: u64, reports: &[ZoneReport], device: Option<Box<dyn ZoneDevice>>) -> Self {
        let zones: Vec<Zone> = reports.iter().map(Zone::new).collect();
        let place = |zone: &Zone| (zone.start, zone.end, zone.kind == Kind::Sequential);
        let layout = zones.iter().map(place).collect();
        let mut state = State {
            open: Vec::with_capacity(zones.len()),
            with_data: Vec::with_capacity(zones.len()),
            zones,
            groups: Vec::new(),
            opened: Vec::new(),
            counts_written: false,
            limit: u32::MAX,
        };
        (0..state.zones.len()).for_each(|zone| state.note_data(zone));
        Self { zone_bytes, layout, device, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the zone that holds the byte.
    pub(crate) fn zone_of(&self, offset: u64) -> usize {
        (offset / self.zone_bytes) as usize
    }

    /// Number of zones.
    pub(crate) fn len(&self) -> usize {
        self.layout.len()
    }

    /// Begin and end of a zone.
    pub(crate) fn bounds(&self, zone: usize) -> (u64, u64) {
        (self.layout[zone].0, self.layout[zone].1)
    }

    /// Whether a zone has a write pointer.
    pub(crate) fn is_sequential(&self, zone: usize) -> bool {
        self.layout[zone].2
    }

    /// Bytes of zones `first` to before `end` that can be written.
    pub(crate) fn capacity_bytes(&self, first: usize, end: usize) -> u64 {
        self.lock().zones[first..end].iter().map(|zone| zone.capacity_end - zone.start).sum()
    }

    /// Whether any of these zones holds data.
    pub(crate) fn has_data(&self, first: usize, end: usize) -> bool {
        let state = self.lock();
        state.zones[first..end].iter().any(|zone| zone.is_readable && zone.readable_end > zone.start)
    }

    /// Begins a stage in which `groups` write, `workers` of them in all, and no more than `limit` zones are open.
    /// Nothing is in flight, whatever an earlier stage left.
    pub(super) fn begin(&self, groups: Vec<Group>, limit: Option<u32>, workers: u32) {
        let mut state = self.lock();
        state.counts_written = groups.iter().any(|group| group.early.is_some());
        state.groups = groups;
        state.limit = limit.unwrap_or(u32::MAX);
        state.opened = vec![0; workers as usize];
        for at in 0..state.zones.len() {
            state.zones[at].settle();
            let group = state.groups.iter().position(|group| group.holds(at));
            let zone = &mut state.zones[at];
            zone.opened_by = None;
            if zone.is_open
                && let Some(group) = group
            {
                zone.opened_by = Some((group, u32::MAX));
                state.groups[group].open += 1;
            }
        }
        state.open = (0..state.zones.len() as u32).filter(|at| state.zones[*at as usize].is_open).collect();
        let capacity = state.zones.len();
        state.open.reserve(capacity);
        for number in 0..state.groups.len() {
            let (first, end) = (state.groups[number].first, state.groups[number].end);
            let written = state.zones[first..end].iter().map(Zone::written_bytes).sum();
            state.groups[number].written_bytes = written;
        }
    }

    /// Open zones among those from `first` to before `end`.
    pub(super) fn open_zones(&self, first: usize, end: usize) -> u32 {
        self.lock().zones[first..end].iter().filter(|zone| zone.is_open).count() as u32
    }

    /// Grants the write of up to `most` bytes, in multiples of `unit`, to a zone. A full zone is reset where `resets`. What is
    /// granted is in flight from here on.
    pub(crate) fn write(&self, zone: usize, by: Writer, (most, unit): (u64, u64), resets: bool) -> Turn {
        let mut state = self.lock();
        if state.zones[zone].is_suspect && !self.refresh(&mut state, zone) {
            return Turn::Busy;
        }
        state.write(zone, by, (most, unit), resets)
    }

    /// As [`ZoneTable::write`], in one of the open zones that lie from `first` to before `end`, beginning with the one at `draw`.
    pub(crate) fn write_open(
        &self,
        (first, end): (usize, usize),
        by: Writer,
        sizes: (u64, u64),
        draw: u64,
    ) -> Option<(usize, Turn)> {
        let mut state = self.lock();
        let count = state.open.len();
        for step in 0..count {
            let zone = state.open[(draw as usize + step) % count] as usize;
            if !(first..end).contains(&zone) || state.zones[zone].is_suspect {
                continue;
            }
            match state.write(zone, by, sizes, false) {
                Turn::Busy | Turn::Limited | Turn::Full | Turn::Unusable => {}
                turn => return Some((zone, turn)),
            }
        }
        None
    }

    /// Whether the write pointer of a zone is at its end.
    pub(crate) fn is_filled(&self, zone: usize) -> bool {
        let state = self.lock();
        state.zones[zone].write_pointer >= state.zones[zone].capacity_end
    }

    /// A write has completed.
    pub(crate) fn end_write(&self, zone: usize, is_whole: bool) {
        let mut state = self.lock();
        let at = &mut state.zones[zone];
        at.writes -= 1;
        at.is_suspect |= !is_whole;
        if at.writes > 0 {
            return;
        }
        if at.is_suspect {
            self.refresh(&mut state, zone);
            return;
        }
        at.readable_end = at.write_pointer;
        state.note_data(zone);
        if state.zones[zone].write_pointer >= state.zones[zone].capacity_end {
            state.close(zone);
        }
    }

    /// Asks the device where the write pointer of a zone is whose write failed; whether it is known now.
    fn refresh(&self, state: &mut State, zone: usize) -> bool {
        if state.zones[zone].writes > 0 || state.zones[zone].is_changing {
            return false;
        }
        let start = state.zones[zone].start;
        let found = match &self.device {
            Some(device) => match device.report(start, 1).ok().and_then(|zones| zones.first().copied()) {
                Some(found) => found,
                // It is left alone from here on.
                None => {
                    (state.zones[zone].is_suspect, state.zones[zone].is_writable) = (false, false);
                    return true;
                }
            },
            // Emulated zones have no write pointer but the one that is kept here.
            None => {
                state.zones[zone].is_suspect = false;
                state.zones[zone].readable_end = state.zones[zone].write_pointer;
                return true;
            }
        };
        state.adopt(zone, &found);
        true
    }

    /// Grants the read of a zone: `at` a byte or behind it, or at a position drawn with `draw`, `most` bytes in multiples of
    /// `unit`. What is granted is in flight from here on.
    pub(crate) fn read(
        &self,
        zone: usize,
        at: At,
        (most, unit): (u64, u64),
        is_beyond: bool,
    ) -> Option<(u64, u64)> {
        let mut state = self.lock();
        state.read(zone, at, (most, unit), is_beyond)
    }

    /// As [`ZoneTable::read`], in one of the zones with data that lie from `first` to before `end`, beginning with the one at `draw`.
    pub(crate) fn read_data(
        &self,
        (first, end): (usize, usize),
        (most, unit): (u64, u64),
        draw: u64,
    ) -> Option<(u64, u64)> {
        let mut state = self.lock();
        let count = state.with_data.len();
        for step in 0..count {
            let zone = state.with_data[(draw as usize + step) % count] as usize;
            if !(first..end).contains(&zone) {
                continue;
            }
            let found = state.read(zone, At::Drawn(draw / count as u64), (most, unit), false);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// A read has ended.
    pub(crate) fn end_read(&self, zone: usize) {
        let mut state = self.lock();
        state.zones[zone].readers = state.zones[zone].readers.saturating_sub(1);
    }

    /// Whether a zone may be reset because its data are to be discarded: none where it holds none, or has no write pointer.
    pub(crate) fn discard(&self, zone: usize) -> Option<Turn> {
        let mut state = self.lock();
        let at = &state.zones[zone];
        let is_empty = at.write_pointer == at.start && at.writes == 0;
        if at.kind == Kind::Conventional || !at.is_writable || is_empty {
            return None;
        }
        Some(state.reset(zone))
    }

    /// As [`ZoneTable::discard`], of one of the zones with data that lie from `first` to before `end`, beginning with the one at `draw`.
    pub(crate) fn discard_data(&self, (first, end): (usize, usize), draw: u64) -> Option<Turn> {
        let mut state = self.lock();
        let count = state.with_data.len();
        let mut found = None;
        for step in 0..count {
            let zone = state.with_data[(draw as usize + step) % count] as usize;
            let at = &state.zones[zone];
            if !(first..end).contains(&zone) || at.kind == Kind::Conventional || !at.is_writable {
                continue;
            }
            match state.reset(zone) {
                Turn::Busy => found = Some(Turn::Busy),
                turn => return Some(turn),
            }
        }
        found
    }

    /// A reset has ended.
    pub(crate) fn end_reset(&self, zone: usize, is_done: bool) {
        let mut state = self.lock();
        (state.zones[zone].is_changing, state.zones[zone].drains) = (false, false);
        if !is_done {
            state.zones[zone].is_suspect = true;
            self.refresh(&mut state, zone);
            return;
        }
        let start = state.zones[zone].start;
        state.move_to(zone, start);
        state.close(zone);
    }

    /// A finish has ended.
    pub(crate) fn end_finish(&self, zone: usize, is_done: bool) {
        let mut state = self.lock();
        state.zones[zone].is_changing = false;
        if !is_done {
            state.zones[zone].is_suspect = true;
            self.refresh(&mut state, zone);
            return;
        }
        let readable_end = state.zones[zone].readable_end;
        let end = state.zones[zone].capacity_end;
        state.move_to(zone, end);
        // What was never written reads as nothing of the run's.
        state.zones[zone].readable_end = readable_end;
        state.close(zone);
    }
}
