//! Zoned block devices: what their zones are, and where the operations of a load may go.
//!
//! [`ZoneTable`] is the state of one device's zones, shared by all workers that write it: a lock, because each write moves a pointer that
//! all of them see. `ZonedWalk` is one worker's way over it. Neither makes a system call but to ask for a zone whose write failed.

mod choice;
mod device;
mod group;
mod plan;
mod set;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use driver::Error;

pub use choice::ZonedChoice;
pub use device::{BlockZones, facts, report_all};
pub(crate) use device::{finish, reset, zone_bytes};
pub use plan::{ZoneModel, ZonedFacts, ZonedPlan, ZonedTarget};
pub use set::{OpenZones, ZoneSet, ZoneTables, check_consent};
pub use table::ZoneTable;
pub(crate) use walk::{Step, ZonedWalk};

/// Whether a zone has a write pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes writes anywhere.
    Conventional,
    /// Takes writes at its write pointer.
    Sequential,
}

/// Condition of a zone (ZBC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It has no write pointer.
    NoWritePointer,
    /// Nothing is written.
    Empty,
    /// Partly written, with resources of the device to go on (implicitly or explicitly open).
    Open,
    /// Partly written.
    Closed,
    /// Not written any more until it is reset.
    Full,
    /// The device no longer writes it.
    ReadOnly,
    /// The device no longer reads or writes it.
    Offline,
}

/// One zone, as a device reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Where it begins.
    pub start_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
    /// How much of it can be written.
    pub capacity_bytes: u64,
    /// Where the next write must go; its end where it is full or has no write pointer.
    pub write_pointer_bytes: u64,
    /// Whether it has a write pointer.
    pub kind: Kind,
    /// Its state.
    pub condition: Condition,
}

/// A device that tells its zones.
pub trait ZoneDevice: Send + Sync {
    /// Zones from the one that holds the byte `from_bytes` on, at most `most` of them.
    ///
    /// # Errors
    /// The system's.
    fn report(&self, from_bytes: u64, most: usize) -> Result<Vec<ZoneReport>, Error>;
}
