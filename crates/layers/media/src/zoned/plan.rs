//! Zones of a phase: what `--zones zbd` asks for, what a device says of its zones, and what a plan makes of both.
//!
//! A sequential zone is written at its write pointer only, and is reset as a whole before it is written anew; conventional zones
//! take writes anywhere. Terms are those of ZBC, ZAC and NVMe ZNS, and of the kernel's `blkzoned.h`.

#[cfg(test)]
mod tests;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ByteSize;

/// How a device takes writes to its sequential zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneModel {
    /// Only at the write pointer: other writes fail.
    HostManaged,
    /// Anywhere, best at the write pointer.
    HostAware,
    /// The target has no zones: strata keeps write pointers for it.
    Emulated,
}

impl ZoneModel {
    /// The name, as sysfs has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HostManaged => "host-managed",
            Self::HostAware => "host-aware",
            Self::Emulated => "emulated",
        }
    }
}

/// Zones of a device, as it reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZonedFacts {
    /// How it takes writes.
    pub model: ZoneModel,
    /// Length of a zone in bytes; the last one may be shorter.
    pub zone_size_bytes: u64,
    /// Bytes of a sequential zone that can be written.
    pub capacity_bytes: u64,
    /// Zones of the device.
    pub zones: u64,
    /// Conventional ones among them.
    pub conventional_zones: u64,
    /// Bytes from the begin of the device that lie in conventional zones.
    pub conventional_until_bytes: u64,
    /// Zones that may be open at once; 0: no limit.
    pub open_zones_max: u32,
    /// Zones that may be open or closed, neither empty nor full, at once; 0: no limit.
    pub active_zones_max: u32,
    /// Whether the kernel keeps the order of writes that are in flight in one zone.
    pub keeps_write_order: bool,
}

impl ZonedFacts {
    /// Zones that may be written to at once, by what the device says; 0: no limit.
    #[must_use]
    pub fn write_zones_max(&self) -> u32 {
        match (self.open_zones_max, self.active_zones_max) {
            (0, most) | (most, 0) => most,
            (open, active) => open.min(active),
        }
    }
}

/// The zones of one target of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZonedTarget {
    /// How it takes writes.
    pub model: ZoneModel,
    /// Length of a zone in bytes.
    pub zone_size_bytes: u64,
    /// Bytes of a sequential zone that can be written.
    pub capacity_bytes: u64,
    /// Zones of the range that the phase works on.
    pub zones: u64,
    /// Conventional zones of the whole device.
    pub conventional_zones: u64,
    /// Zones that may be open at the same time, as reported by the device; 0: no limit.
    pub open_zones_max: u32,
    /// Zones that may be open or closed at once, as the device says; 0: no limit.
    pub active_zones_max: u32,
    /// Zones that are written to at once, by all workers of all phases; 0: no limit.
    pub write_zones_max: u32,
}

/// How the zones of a phase's targets are worked on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZonedPlan {
    /// The zones of each target.
    pub targets: Vec<ZonedTarget>,
    /// Zones that one worker opens at once; 0: no limit.
    pub worker_write_zones_max: u32,
    /// Writes in flight in one zone.
    pub zone_depth: u32,
    /// Reads go anywhere in a zone; otherwise only below its write pointer.
    pub reads_beyond_write_pointer: bool,
    /// Share of the range that is written before zones are reset early.
    pub reset_threshold: f64,
    /// One of so many writes resets its zone first, beyond the threshold; none: zones are reset when they are full.
    pub reset_every_writes: Option<u64>,
    /// Zones that sequential operations skip after each zone.
    pub skip_zones: u64,
}

impl fmt::Display for ZonedPlan {
    /// Writes the zones and the work on them, commas between.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.targets.first() else { return Ok(()) };
        let zones: u64 = self.targets.iter().map(|target| target.zones).sum();
        write!(out, "{zones} {} zones of {}", first.model.name(), ByteSize(first.zone_size_bytes))?;
        if first.capacity_bytes != first.zone_size_bytes {
            write!(out, " (capacity {})", ByteSize(first.capacity_bytes))?;
        }
        if first.write_zones_max > 0 {
            write!(out, ", at most {} open", first.write_zones_max)?;
        }
        if self.worker_write_zones_max > 0 {
            write!(out, ", {} for each thread", self.worker_write_zones_max)?;
        }
        if self.zone_depth > 1 {
            write!(out, ", {} writes in flight in each", self.zone_depth)?;
        }
        if let Some(every) = self.reset_every_writes {
            let percent = (self.reset_threshold * 1000.0).round() / 10.0;
            write!(out, ", a reset every {every} writes above {percent}%")?;
        }
        if self.reads_beyond_write_pointer {
            out.write_str(", reads beyond write pointers")?;
        }
        if self.skip_zones > 0 {
            write!(out, ", {} zones skipped after each", self.skip_zones)?;
        }
        Ok(())
    }
}
