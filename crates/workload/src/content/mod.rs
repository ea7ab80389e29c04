//! Content of writes: generated content, content that is cheap to renew, and content that proves where it belongs when it is read back.
//!
//! | module | gives |
//! |---|---|
//! | [`stream`] | random bytes addressed by (key, generation, position), at several times memory speed |
//! | [`fill`] | buffers as a [`ContentSpec`] asks: random, compressible, dedupable, a pattern, zero |
//! | [`repeated`] | the same bytes in every block, and the check of them |
//! | [`verify`] | blocks that carry run, target, offset and sequence, and the check that tells faults apart |
//!
//! Everything is a pure function of its arguments: no clock, no I/O, no state from one block to the next, and no
//! allocation after construction.

pub mod fill;
pub mod repeated;
pub mod stream;
pub mod verify;

pub use fill::{ContentError, ContentSpec, Filler, Refill};
pub use repeated::{Repeated, RepeatedBytes};
pub use stream::{Backend, Stream};
pub use verify::{BlockChecker, BlockWriter, Expected, Fault, LayoutError, Mismatch};

/// Terms of blocks that are made, or compared, elsewhere than by this module: on a device. With generation (or sequence) and position they
/// decide on every byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Round keys of the stream of data.
    pub keys: [u128; 5],
    /// Bytes under one header; 0: random bytes throughout.
    pub interval_bytes: u32,
    /// Run that headers name.
    pub run: u64,
    /// Target that headers name.
    pub target: u64,
}
