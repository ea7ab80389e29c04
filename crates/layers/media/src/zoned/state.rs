//! The state of a device's zones, and what may be done next in one of them.

use super::group::Group;
use super::{Condition, Kind, ZoneReport};

/// One zone.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) capacity_end: u64,
    /// Where the next write goes, those in flight counted.
    pub(super) write_pointer: u64,
    /// Up to where everything is written.
    pub(super) readable_end: u64,
    pub(super) kind: Kind,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    pub(super) is_open: bool,
    /// Group and worker that opened it.
    pub(super) opened_by: Option<(usize, u32)>,
    /// Writes in flight, all of one worker.
    pub(super) writes: u32,
    pub(super) writer: u32,
    pub(super) readers: u32,
    /// A reset or a finish is in flight.
    pub(super) is_changing: bool,
    /// It is to be reset: no more reads until then.
    pub(super) drains: bool,
    /// A write failed: where the write pointer is, only the device knows.
    pub(super) is_suspect: bool,
    /// Its place in the list of zones with data; none when it is empty.
    pub(super) data_at: Option<u32>,
}

/// Who wants to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Number of the worker, over all phases that run together.
    pub(crate) worker: u32,
    /// Its group.
    pub(crate) group: usize,
    /// Zones that it opens at once; 0: no limit.
    pub(crate) open_max: u32,
    /// Writes in flight in one zone.
    pub(crate) depth: u32,
}

/// Next step of a worker in a zone that it wants to write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Write so many bytes there.
    Write { offset: u64, length: u64 },
    /// Reset the zone.
    Reset { offset: u64 },
    /// Finish the zone: what is left of it does not hold a block.
    Finish { offset: u64 },
    /// Something else is at work in it.
    Busy,
    /// It is not open, and no further one may be.
    Limited,
    /// It is full.
    Full,
    /// It is not written any more.
    Unusable,
}

pub(super) struct State {
    pub(super) zones: Vec<Zone>,
    pub(super) groups: Vec<Group>,
    /// Zones that are open, and zones with data.
    pub(super) open: Vec<u32>,
    pub(super) with_data: Vec<u32>,
    /// Zones that each worker opened.
    pub(super) opened: Vec<u32>,
    /// Whether groups count what is written.
    pub(super) counts_written: bool,
    /// Most open zones; `u32::MAX`: no limit.
    pub(super) limit: u32,
}

/// Where in a zone to read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// From this byte on.
    Byte(u64),
    /// At a position that follows from this number.
    Drawn(u64),
}

impl State {
    pub(super) fn write(&mut self, zone: usize, by: Writer, (most, unit): (u64, u64), resets: bool) -> Turn {
        let at = &self.zones[zone];
        if !at.is_writable {
            return Turn::Unusable;
        }
        if at.is_changing || at.drains && at.writes > 0 {
            return Turn::Busy;
        }
        if at.writes > 0 && (at.writer != by.worker || at.writes >= by.depth) {
            return Turn::Busy;
        }
        let left = at.capacity_end - at.write_pointer;
        let is_full = left < unit;
        if is_full && at.writes > 0 {
            return Turn::Busy;
        }
        if is_full && !resets && left == 0 {
            return Turn::Full;
        }
        if is_full && left > 0 {
            return self.finish(zone);
        }
        if !at.is_open && !self.may_open(by) {
            return Turn::Limited;
        }
        if at.drains || is_full || (at.write_pointer > at.start && self.groups[by.group].is_early_reset_due())
        {
            return self.reset(zone);
        }
        if !self.zones[zone].is_open {
            self.open(zone, by);
        }
        let at = &mut self.zones[zone];
        let length = most.min(left) / unit * unit;
        let offset = at.write_pointer;
        at.write_pointer += length;
        at.writes += 1;
        at.writer = by.worker;
        self.add_written(zone, length as i64);
        Turn::Write { offset, length }
    }

    pub(super) fn may_open(&self, by: Writer) -> bool {
        let group = &self.groups[by.group];
        let is_below = by.open_max == 0 || self.opened[by.worker as usize] < by.open_max;
        (self.open.len() as u64) < u64::from(self.limit) && group.open < group.quota && is_below
    }

    pub(super) fn open(&mut self, zone: usize, by: Writer) {
        self.zones[zone].is_open = true;
        self.zones[zone].opened_by = Some((by.group, by.worker));
        self.open.push(zone as u32);
        self.groups[by.group].open += 1;
        self.opened[by.worker as usize] += 1;
    }

    /// The zone is open no more.
    pub(super) fn close(&mut self, zone: usize) {
        if !self.zones[zone].is_open {
            return;
        }
        self.zones[zone].is_open = false;
        self.open.retain(|open| *open != zone as u32);
        if let Some((group, worker)) = self.zones[zone].opened_by.take() {
            self.groups[group].open -= 1;
            if let Some(opened) = self.opened.get_mut(worker as usize) {
                *opened -= 1;
            }
        }
    }

    /// A reset, as soon as nothing is at work in the zone.
    pub(super) fn reset(&mut self, zone: usize) -> Turn {
        let at = &mut self.zones[zone];
        if at.is_changing {
            return Turn::Busy;
        }
        at.drains = true;
        if at.writes > 0 || at.readers > 0 {
            return Turn::Busy;
        }
        at.is_changing = true;
        Turn::Reset { offset: at.start }
    }

    /// A finish, as soon as no write is in flight in the zone.
    pub(super) fn finish(&mut self, zone: usize) -> Turn {
        let at = &mut self.zones[zone];
        if at.writes > 0 {
            return Turn::Busy;
        }
        at.is_changing = true;
        Turn::Finish { offset: at.start }
    }

    pub(super) fn read(
        &mut self,
        zone: usize,
        at: At,
        (most, unit): (u64, u64),
        is_beyond: bool,
    ) -> Option<(u64, u64)> {
        let place = &mut self.zones[zone];
        let blocked = (place.drains || place.is_changing) && !is_beyond;
        if !place.is_readable || blocked {
            return None;
        }
        let end = if is_beyond { place.capacity_end } else { place.readable_end };
        let (offset, length) = match at {
            At::Byte(offset) => (offset, most.min(end.saturating_sub(offset)) / unit * unit),
            At::Drawn(draw) => {
                let length = most.min(end - place.start) / unit * unit;
                let places = (end - place.start - length) / unit + 1;
                (place.start + draw % places * unit, length)
            }
        };
        if length == 0 {
            return None;
        }
        place.readers += 1;
        Some((offset, length))
    }

    /// Moves a write pointer while nothing is in flight.
    pub(super) fn move_to(&mut self, zone: usize, write_pointer: u64) {
        let before = self.zones[zone].written_bytes();
        (self.zones[zone].write_pointer, self.zones[zone].readable_end) = (write_pointer, write_pointer);
        let after = self.zones[zone].written_bytes();
        self.add_written(zone, after as i64 - before as i64);
        self.note_data(zone);
    }

    pub(super) fn add_written(&mut self, zone: usize, bytes: i64) {
        if !self.counts_written {
            return;
        }
        for group in self.groups.iter_mut().filter(|group| group.holds(zone)) {
            group.written_bytes = group.written_bytes.saturating_add_signed(bytes);
        }
    }

    /// Takes over what the device says of a zone with nothing in flight.
    pub(super) fn adopt(&mut self, zone: usize, found: &ZoneReport) {
        let fresh = Zone::new(found);
        let at = &mut self.zones[zone];
        (at.is_suspect, at.is_writable, at.is_readable) = (false, fresh.is_writable, fresh.is_readable);
        self.move_to(zone, fresh.write_pointer);
        if !fresh.is_open {
            self.close(zone);
        } else if !self.zones[zone].is_open {
            self.zones[zone].is_open = true;
            self.open.push(zone as u32);
        }
    }

    /// Keeps the list of zones with data.
    pub(super) fn note_data(&mut self, zone: usize) {
        let at = &self.zones[zone];
        let has_data = at.is_readable && at.readable_end > at.start;
        match (has_data, at.data_at) {
            (true, None) => {
                self.zones[zone].data_at = Some(self.with_data.len() as u32);
                self.with_data.push(zone as u32);
            }
            (false, Some(place)) => {
                self.zones[zone].data_at = None;
                self.with_data.swap_remove(place as usize);
                if let Some(moved) = self.with_data.get(place as usize) {
                    self.zones[*moved as usize].data_at = Some(place);
                }
            }
            _ => {}
        }
    }
}

impl Zone {
    pub(super) fn new(report: &ZoneReport) -> Self {
        let is_sequential = report.kind == Kind::Sequential;
        Self {
            start: report.start_bytes,
            end: report.start_bytes + report.length_bytes,
            capacity_end: report.start_bytes + report.capacity_bytes,
            write_pointer: report.write_pointer_bytes,
            readable_end: report.write_pointer_bytes,
            kind: report.kind,
            is_readable: report.condition != Condition::Offline,
            is_writable: !matches!(report.condition, Condition::Offline | Condition::ReadOnly),
            is_open: is_sequential && matches!(report.condition, Condition::Open | Condition::Closed),
            opened_by: None,
            writes: 0,
            writer: 0,
            readers: 0,
            is_changing: false,
            drains: false,
            is_suspect: false,
            data_at: None,
        }
    }

    pub(super) fn written_bytes(&self) -> u64 {
        if self.kind == Kind::Sequential { self.write_pointer - self.start } else { 0 }
    }

    /// Nothing is in flight.
    pub(super) fn settle(&mut self) {
        (self.writes, self.readers) = (0, 0);
        (self.is_changing, self.drains, self.is_suspect) = (false, false, false);
        self.readable_end = self.write_pointer;
    }
}
