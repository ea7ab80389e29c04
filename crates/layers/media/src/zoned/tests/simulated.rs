//! A zoned device as strict as hardware: what it would fail, fails here, and is kept for the test to see.

use std::sync::{Arc, Mutex};

use driver::Error;

use crate::zoned::{Condition, Kind, ZoneDevice, ZoneReport};
use crate::{MediaClass, MediaOperation};

#[derive(Clone, Copy, Debug)]
struct Zone {
    kind: Kind,
    write_pointer: u64,
    condition: Condition,
    writes: u32,
    reads: u32,
}

pub(super) struct State {
    zones: Vec<Zone>,
    /// Commands that a real device would have failed.
    pub(super) violations: Vec<String>,
    /// Operations carried out, by class.
    pub(super) done: [u64; 7],
    pub(super) open_most: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) zones: u64,
    pub(super) conventional: u64,
    pub(super) zone_bytes: u64,
    pub(super) capacity_bytes: u64,
    pub(super) open_max: usize,
    pub(super) active_max: usize,
}

#[derive(Clone)]
pub(super) struct Device {
    pub(super) shape: Shape,
    pub(super) state: Arc<Mutex<State>>,
}

impl Device {
    pub(super) fn new(shape: Shape) -> Self {
        let zone = |number| match number < shape.conventional {
            true => (Kind::Conventional, Condition::NoWritePointer),
            false => (Kind::Sequential, Condition::Empty),
        };
        let zones = (0..shape.zones)
            .map(zone)
            .map(|(kind, condition)| Zone { kind, write_pointer: 0, condition, writes: 0, reads: 0 })
            .collect();
        let state = State { zones, violations: Vec::new(), done: [0; 7], open_most: 0 };
        Self { shape, state: Arc::new(Mutex::new(state)) }
    }

    /// Writes that another one did: so many bytes of a zone.
    pub(super) fn fill(&self, zone: usize, bytes: u64) {
        let mut state = self.state.lock().unwrap();
        state.zones[zone].write_pointer = bytes;
        state.zones[zone].condition =
            if bytes == self.shape.capacity_bytes { Condition::Full } else { Condition::Closed };
    }

    pub(super) fn written(&self, zone: usize) -> u64 {
        self.state.lock().unwrap().zones[zone].write_pointer
    }

    /// An operation is in flight from here on.
    pub(super) fn begin(&self, operation: &MediaOperation) {
        let mut state = self.state.lock().unwrap();
        let zone = (operation.offset / self.shape.zone_bytes) as usize;
        let is_sequential = state.zones[zone].kind == Kind::Sequential;
        let (writes, reads) = (state.zones[zone].writes, state.zones[zone].reads);
        match operation.class {
            MediaClass::Write if is_sequential => state.zones[zone].writes += 1,
            MediaClass::Read => state.zones[zone].reads += 1,
            MediaClass::Reset | MediaClass::Discard | MediaClass::Finish if writes > 0 => {
                state.violations.push(format!("{operation:?} with {writes} writes in flight"));
            }
            MediaClass::Reset | MediaClass::Discard if reads > 0 => {
                state.violations.push(format!("{operation:?} with {reads} reads in flight"));
            }
            _ => {}
        }
    }

    /// Carries an operation out, all of it or `bytes` alone; whether the device did what it was told.
    pub(super) fn carry_out(&self, operation: &MediaOperation, bytes: u64) -> bool {
        let mut state = self.state.lock().unwrap();
        let Shape { zone_bytes, .. } = self.shape;
        let number = (operation.offset / zone_bytes) as usize;
        let within = operation.offset - number as u64 * zone_bytes;
        state.done[operation.class as usize] += 1;
        let found = match operation.class {
            MediaClass::Write => self.write(&mut state, number, within, u64::from(operation.length), bytes),
            MediaClass::Read => self.read(&mut state, number, within + u64::from(operation.length)),
            MediaClass::Reset | MediaClass::Discard => {
                let zone = &mut state.zones[number];
                (zone.write_pointer, zone.condition) = (0, Condition::Empty);
                if within == 0 && zone.kind == Kind::Sequential { Ok(()) } else { Err("a reset of no zone") }
            }
            MediaClass::Finish => {
                state.zones[number].condition = Condition::Full;
                Ok(())
            }
            MediaClass::Sync | MediaClass::Nop => Ok(()),
        };
        if let Err(why) = found {
            state.violations.push(format!("{operation:?}: {why}"));
        }
        found.is_ok()
    }

    fn write(
        &self,
        state: &mut State,
        number: usize,
        within: u64,
        length: u64,
        bytes: u64,
    ) -> Result<(), &'static str> {
        let Shape { zone_bytes, capacity_bytes, open_max, active_max, .. } = self.shape;
        let zone = &mut state.zones[number];
        if zone.kind == Kind::Conventional {
            return if within + length <= zone_bytes { Ok(()) } else { Err("a write across zones") };
        }
        zone.writes -= 1;
        if zone.condition == Condition::Full {
            return Err("a write to a full zone");
        }
        if within != zone.write_pointer {
            return Err("a write that is not at the write pointer");
        }
        if within + length > capacity_bytes {
            return Err("a write past the capacity");
        }
        zone.write_pointer += bytes;
        zone.condition = if zone.write_pointer == capacity_bytes { Condition::Full } else { Condition::Open };
        let count = |condition| state.zones.iter().filter(|zone| zone.condition == condition).count();
        let (open, closed) = (count(Condition::Open), count(Condition::Closed));
        state.open_most = state.open_most.max(open + closed);
        if open_max > 0 && open > open_max {
            return Err("too many open zones");
        }
        if active_max > 0 && open + closed > active_max {
            return Err("too many active zones");
        }
        Ok(())
    }

    fn read(&self, state: &mut State, number: usize, end: u64) -> Result<(), &'static str> {
        let zone = &mut state.zones[number];
        zone.reads -= 1;
        let until = if zone.kind == Kind::Conventional { self.shape.zone_bytes } else { zone.write_pointer };
        if end <= until { Ok(()) } else { Err("a read beyond the write pointer") }
    }
}

impl ZoneDevice for Device {
    fn report(&self, from_bytes: u64, most: usize) -> Result<Vec<ZoneReport>, Error> {
        let state = self.state.lock().unwrap();
        let Shape { zone_bytes, capacity_bytes, .. } = self.shape;
        let first = (from_bytes / zone_bytes) as usize;
        let zones = state.zones.iter().enumerate().skip(first).take(most);
        let zone = |(number, zone): (usize, &Zone)| {
            let start_bytes = number as u64 * zone_bytes;
            let is_sequential = zone.kind == Kind::Sequential;
            let capacity_bytes = if is_sequential { capacity_bytes } else { zone_bytes };
            let pointer = match zone.condition {
                Condition::Full | Condition::NoWritePointer => capacity_bytes,
                _ => zone.write_pointer,
            };
            ZoneReport {
                start_bytes,
                length_bytes: zone_bytes,
                capacity_bytes,
                write_pointer_bytes: start_bytes + pointer,
                kind: zone.kind,
                condition: zone.condition,
            }
        };
        Ok(zones.map(zone).collect())
    }
}
