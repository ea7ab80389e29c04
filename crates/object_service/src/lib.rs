//! The embedded store behind the endpoints of an engine: one target a tag, and pools and containers at tag 0.
//!
//! | tag | serves |
//! |---|---|
//! | 0 | pools, containers, ids of objects |
//! | 1 | monitoring: nothing of the store |
//! | 2 + t | target t of every pool of the engine |
//!
//! Measuring stays possible on all of them. Small values travel in messages, large ones as bulk: replies straight from the store's memory,
//! requests straight into it. Who may ask is decided when a connection is made ([`rpc::handshake`]).

mod control;
mod endpoints;
mod flat;
mod metadata;
mod pools;
mod shards;
pub mod steps;
mod target;
pub mod wire;

use std::ops::RangeInclusive;
use std::sync::Arc;

use rpc::engine::ServiceFactory;
use rpc::measure::{Measure, Services};

pub use control::{Command, Engine, PoolFacts, Response, handle_of, open_request};

pub use endpoints::Location;
pub use flat::VALUES_HEAD_BYTES;
pub use pools::Pools;

/// Values up to this size travel in messages, larger ones as bulk, in bytes. Measured over loopback with 16 in flight, 4 KiB against 64 KiB here:
/// values of 8 and 16 KiB are about twice as fast in messages, at 32 KiB there is no clear difference, and updates of 64 KiB are faster as
/// bulk.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// Requests that a store takes ([`rpc::wire::opcode::SERVICE_FIRST`] and above).
pub mod opcode {
    use rpc::wire::opcode::SERVICE_FIRST;

    /// Writes a value of an object that has neither copies nor parity. Selector: [`super::select::SINGLE`] or `EXTENT`.
    pub const UPDATE: u16 = SERVICE_FIRST;
    /// Reads a value: the reply is its bytes. Selector as for `UPDATE`.
    pub const FETCH: u16 = SERVICE_FIRST + 1;
    /// Removes what the selector says.
    pub const PUNCH: u16 = SERVICE_FIRST + 2;
    /// Size of a value: 8 bytes.
    pub const SIZE: u16 = SERVICE_FIRST + 3;
    /// Largest integer dkey, and the end of the records under the akey: 8 bytes each.
    pub const LARGEST: u16 = SERVICE_FIRST + 4;
    /// Lists what the selector says: count (4 bytes), anchor (16 bytes), then the entries.
    pub const LIST: u16 = SERVICE_FIRST + 5;
    /// Visits an object down to its records: how many there are (8 bytes).
    pub const ITERATE: u16 = SERVICE_FIRST + 6;
    /// Merges versions of a container up to `epoch`.
    pub const AGGREGATE: u16 = SERVICE_FIRST + 7;
    /// Drops the versions of a container from `offset` to `epoch` (of a snapshot; 0: to now), on all targets of the pool: it is asked of one of them.
    pub const DISCARD: u16 = SERVICE_FIRST + 8;
    /// Gives dead space back.
    pub const COLLECT: u16 = SERVICE_FIRST + 9;
    /// As `UPDATE` and `PUNCH`, of objects with copies or parity: to the target of the first shard, which changes all shards, in one order for
    /// all. The value travels once.
    pub const UPDATE_SHARDS: u16 = SERVICE_FIRST + 10;
    /// See [`UPDATE_SHARDS`].
    pub const PUNCH_SHARDS: u16 = SERVICE_FIRST + 11;
    /// As `FETCH` and `SIZE`, of objects with parity: to the target of the first shard, which puts the value together. `EUCLEAN`: a cell is
    /// missing; `EBADMSG`: one is damaged. [`RESTORE_SHARDS`] reads it then.
    pub const FETCH_SHARDS: u16 = SERVICE_FIRST + 12;
    /// As [`FETCH_SHARDS`], also where cells are missing or damaged, as long as enough of them are left.
    pub const RESTORE_SHARDS: u16 = SERVICE_FIRST + 13;
    /// See [`FETCH_SHARDS`].
    pub const SIZE_SHARDS: u16 = SERVICE_FIRST + 14;
    /// Changes several keys of objects without copies and parity, all of them or none, where they are as is said ([`super::steps`]); on all targets of the
    /// pool: it is asked of one of them. `EEXIST`, `ENOENT`, `EAGAIN`: a key is not as is said.
    pub const APPLY: u16 = SERVICE_FIRST + 15;
    /// As [`LARGEST`], on all targets of an object without copies and parity.
    pub const LARGEST_OF_ALL: u16 = SERVICE_FIRST + 16;
    /// Removes an object without copies and parity from all its targets.
    pub const REMOVE: u16 = SERVICE_FIRST + 17;
    /// Lists `length` dkeys at most of this target's part of an object in the order of their hashes, with the single value of the akey: count (4 bytes),
    /// whether the end was reached (1), 3 of zero; then name behind its 16-bit length, errno (4), value behind its 32-bit length.
    pub const LIST_VALUES: u16 = SERVICE_FIRST + 18;
    /// Reads a single value: its epoch (8 bytes), then its bytes.
    pub const FETCH_VERSION: u16 = SERVICE_FIRST + 20;
    /// Makes durable what the pool has taken so far.
    pub const COMMIT: u16 = SERVICE_FIRST + 19;
    /// Opens a container: labels of pool and container, each behind its 16-bit length. The reply is a handle: instance (4 bytes), pool (4),
    /// container (8).
    pub const OPEN_CONTAINER: u16 = SERVICE_FIRST + 32;
    /// Closes it again.
    pub const CLOSE_CONTAINER: u16 = SERVICE_FIRST + 33;
    /// Takes `length` object ids: the first (8 bytes).
    pub const ALLOCATE_IDS: u16 = SERVICE_FIRST + 34;
    /// A [`super::Command`] as JSON; the reply is a [`super::Response`], or an error's text.
    pub const CONTROL: u16 = SERVICE_FIRST + 35;
    /// All of a store's.
    pub const LAST: u16 = CONTROL;
}

/// Selectors of requests.
pub mod select {
    /// A single value.
    pub const SINGLE: u8 = 0;
    /// Bytes of an array.
    pub const EXTENT: u8 = 1;
    /// `PUNCH`: bytes of an array.
    pub const RECORD: u8 = 1;
    /// `PUNCH`: the akey.
    pub const AKEY: u8 = 2;
    /// `PUNCH`: the dkey.
    pub const DKEY: u8 = 3;
    /// `PUNCH`: the object.
    pub const OBJECT: u8 = 4;
    /// `LIST`: dkeys of the object, each behind its 16-bit length.
    pub const DKEYS: u8 = 0;
    /// `LIST`: akeys of the dkey, likewise.
    pub const AKEYS: u8 = 1;
    /// `LIST`: extents of the akey that end after `offset`: first byte and bytes, 8 bytes each.
    pub const EXTENTS: u8 = 2;
    /// `LIST`: objects of the container: lower and upper half, 8 bytes each.
    pub const OBJECTS: u8 = 3;
}

const OPCODES: RangeInclusive<u16> = opcode::UPDATE..=opcode::LAST;

/// Makes the services of an engine's tags: measuring on all of them, and the store on those of metadata and targets. The pools are in use
/// until the engine is dropped; closing them is the caller's.
#[must_use]
pub fn factory(pools: Pools) -> ServiceFactory {
    let pools = Arc::new(pools);
    Arc::new(move |tag| {
        use rpc::wire::opcode::MEASURE;
        let services = Services::new().with(MEASURE..=MEASURE, Box::new(Measure::new()));
        let pools = Arc::clone(&pools);
        Box::new(match tag {
            0 => services.with(OPCODES, Box::new(metadata::Metadata::new(pools))),
            1 => services,
            target => services.with(OPCODES, Box::new(target::ObjectService::new(&pools, target - 2))),
        })
    })
}
