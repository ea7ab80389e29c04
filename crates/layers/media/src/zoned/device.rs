//! Zone reports of block devices (`linux/blkzoned.h`), and the two calls that change a zone as a whole.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::zoned::{ZoneModel, ZonedFacts};
use driver::Error;
use host::block::{BlockDevice, DeviceNumber};
use rustix::io::Errno;
use rustix::ioctl::{self, Opcode, Setter, Updater, ioctl as call};
use units::path_of;

use super::{Condition, Kind, ZoneDevice, ZoneReport};

/// The kernel counts in sectors of this many bytes, whatever the device's own are.
const SECTOR_BYTES: u64 = 512;
/// Zones asked for at a time.
const REPORT_ZONES: usize = 512;
/// `_IOWR(0x12, 130, struct blk_zone_report)`.
const BLKREPORTZONE: Opcode = ioctl::opcode::read_write::<[u64; 2]>(0x12, 130);
/// `_IOW(0x12, 131, struct blk_zone_range)`.
const BLKRESETZONE: Opcode = ioctl::opcode::write::<[u64; 2]>(0x12, 131);
/// `_IOW(0x12, 136, struct blk_zone_range)`, Linux 5.5.
const BLKFINISHZONE: Opcode = ioctl::opcode::write::<[u64; 2]>(0x12, 136);
/// Zones carry their capacity (Linux 5.9).
const REPORTS_CAPACITY: u32 = 1;

/// `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawZone {
    start: u64,
    length: u64,
    write_pointer: u64,
    kind: u8,
    condition: u8,
    non_sequential: u8,
    reset: u8,
    reserved: [u8; 4],
    capacity: u64,
    more_reserved: [u64; 3],
}

/// `struct blk_zone_report` with room for zones behind it.
#[repr(C)]
struct RawReport {
    sector: u64,
    zones: u32,
    flags: u32,
    entries: [RawZone; REPORT_ZONES],
}

/// A zoned block device, open for reading.
pub struct BlockZones {
    file: File,
    path: String,
}

impl BlockZones {
    /// Opens the device at `path`.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &str) -> Result<Self, Error> {
        let file = File::open(path_of(path))
            .map_err(|error| Error::system("zones", "cannot open the device", error).with("path", path))?;
        Ok(Self { file, path: path.to_owned() })
    }
}

impl ZoneDevice for BlockZones {
    fn report(&self, from_bytes: u64, most: usize) -> Result<Vec<ZoneReport>, Error> {
        let mut raw = Box::new(RawReport {
            sector: from_bytes / SECTOR_BYTES,
            zones: most.min(REPORT_ZONES) as u32,
            flags: 0,
            entries: [RawZone::default(); REPORT_ZONES],
        });
        // SAFETY: the kernel writes the head and at most `zones` entries, which lie behind it.
        unsafe { call(&self.file, Updater::<BLKREPORTZONE, RawReport>::new(&mut raw)) }.map_err(|errno| {
            let error = Error::system("zones", "cannot read the zones (BLKREPORTZONE)", errno);
            error.with("path", &self.path).with("offset_bytes", from_bytes)
        })?;
        let has_capacity = raw.flags & REPORTS_CAPACITY != 0;
        let count = (raw.zones as usize).min(REPORT_ZONES);
        Ok(raw.entries[..count].iter().map(|zone| reported(zone, has_capacity)).collect())
    }
}

fn reported(raw: &RawZone, has_capacity: bool) -> ZoneReport {
    let kind = match raw.kind {
        1 => Kind::Conventional,
        _ => Kind::Sequential,
    };
    let condition = match raw.condition {
        1 => Condition::Empty,
        2 | 3 => Condition::Open,
        4 => Condition::Closed,
        0xD => Condition::ReadOnly,
        0xE => Condition::Full,
        0xF => Condition::Offline,
        _ => Condition::NoWritePointer,
    };
    let capacity = if has_capacity { raw.capacity } else { raw.length };
    let start_bytes = raw.start * SECTOR_BYTES;
    let capacity_bytes = capacity * SECTOR_BYTES;
    let write_pointer_bytes = match condition {
        Condition::Full | Condition::NoWritePointer | Condition::ReadOnly => start_bytes + capacity_bytes,
        Condition::Empty | Condition::Offline => start_bytes,
        // A zone that was finished may point to its end, behind its capacity.
        _ => (raw.write_pointer * SECTOR_BYTES).min(start_bytes + capacity_bytes),
    };
    let length_bytes = raw.length * SECTOR_BYTES;
    ZoneReport { start_bytes, length_bytes, capacity_bytes, write_pointer_bytes, kind, condition }
}

/// All zones of a device, in order.
///
/// # Errors
/// Those of a report, and a report without zones.
pub fn report_all(device: &dyn ZoneDevice) -> Result<Vec<ZoneReport>, Error> {
    let mut zones: Vec<ZoneReport> = Vec::new();
    loop {
        let at = zones.last().map_or(0, |last| last.start_bytes + last.length_bytes.max(1));
        let more = device.report(at, REPORT_ZONES)?;
        if more.is_empty() && zones.is_empty() {
            return Err(Error::usage("zones", "the device reports no zones"));
        }
        if more.is_empty() {
            return Ok(zones);
        }
        zones.extend(more);
    }
}

/// Zone attributes of the device with this number; none where it has no zones.
///
/// # Errors
/// When it is zoned and its zones cannot be read.
pub fn facts(path: &str, number: DeviceNumber) -> Result<Option<ZonedFacts>, Error> {
    let Some(queue) = BlockDevice::read(number).and_then(|device| device.zoned) else { return Ok(None) };
    let model = match queue.model.as_str() {
        "host-managed" => ZoneModel::HostManaged,
        _ => ZoneModel::HostAware,
    };
    let zones = report_all(&BlockZones::open(path)?)?;
    let first = zones.first().map_or(0, |zone| zone.length_bytes);
    if zones.len() > 1 && zones[..zones.len() - 1].iter().any(|zone| zone.length_bytes != first) {
        return Err(Error::usage("zones", "zones of several sizes are not supported").with("path", path));
    }
    let is_sequential = |zone: &&ZoneReport| zone.kind == Kind::Sequential;
    let capacity = zones.iter().filter(is_sequential).map(|zone| zone.capacity_bytes).max();
    let leading = zones.iter().take_while(|zone| zone.kind == Kind::Conventional);
    Ok(Some(ZonedFacts {
        model,
        zone_size_bytes: first,
        capacity_bytes: capacity.unwrap_or(first),
        zones: zones.len() as u64,
        conventional_zones: zones.iter().filter(|zone| !is_sequential(zone)).count() as u64,
        conventional_until_bytes: leading.map(|zone| zone.length_bytes).sum(),
        open_zones_max: queue.open_zones_max.unwrap_or(0),
        active_zones_max: queue.active_zones_max.unwrap_or(0),
        keeps_write_order: queue.keeps_write_order,
    }))
}

/// Length of the zones of the device at `path`; none where it is not zoned.
pub(crate) fn zone_bytes(path: &Path) -> Option<u64> {
    let device = BlockDevice::read(DeviceNumber::of_block_file(path)?)?;
    device.zoned.and_then(|queue| queue.zone_size_bytes).filter(|bytes| *bytes > 0)
}

/// Sets the write pointer of the zone at `offset` back to its begin; its data are gone.
pub(crate) fn reset(fd: BorrowedFd<'_>, offset: u64, zone_bytes: u64) -> Result<(), Errno> {
    let range = [offset / SECTOR_BYTES, zone_bytes / SECTOR_BYTES];
    // SAFETY: BLKRESETZONE reads a first sector and a count of sectors.
    unsafe { call(fd.as_fd(), Setter::<BLKRESETZONE, [u64; 2]>::new(range)) }
}

/// Makes the zone at `offset` full, so that it is open no more.
pub(crate) fn finish(fd: BorrowedFd<'_>, offset: u64, zone_bytes: u64) -> Result<(), Errno> {
    let range = [offset / SECTOR_BYTES, zone_bytes / SECTOR_BYTES];
    // SAFETY: BLKFINISHZONE reads a first sector and a count of sectors.
    unsafe { call(fd.as_fd(), Setter::<BLKFINISHZONE, [u64; 2]>::new(range)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_layout_is_kept() {
        assert_eq!((size_of::<RawZone>(), std::mem::offset_of!(RawZone, capacity)), (64, 32));
        assert_eq!((size_of::<RawReport>(), std::mem::offset_of!(RawReport, entries)), (16 + 64 * 512, 16));
        assert_eq!((BLKREPORTZONE, BLKRESETZONE, BLKFINISHZONE), (0xC010_1282, 0x4010_1283, 0x4010_1288));
    }

    #[test]
    fn a_report_is_read() {
        let raw = RawZone {
            start: 2048,
            length: 2048,
            write_pointer: 2056,
            kind: 2,
            condition: 2,
            capacity: 1536,
            ..RawZone::default()
        };
        let open = reported(&raw, true);
        let expected = ZoneReport {
            start_bytes: 1 << 20,
            length_bytes: 1 << 20,
            capacity_bytes: 768 << 10,
            write_pointer_bytes: (1 << 20) + 4096,
            kind: Kind::Sequential,
            condition: Condition::Open,
        };
        assert_eq!(open, expected);
        let full = reported(&RawZone { condition: 0xE, write_pointer: 4096, ..raw }, true);
        assert_eq!(full.write_pointer_bytes, (1 << 20) + (768 << 10));
        let old = reported(&raw, false);
        assert_eq!(old.capacity_bytes, 1 << 20, "kernels that tell no capacity");
        let conventional = reported(&RawZone { kind: 1, condition: 0, ..raw }, false);
        assert_eq!((conventional.kind, conventional.write_pointer_bytes), (Kind::Conventional, 2 << 20));
    }
}
