//! Model of the layer: object ids, classes and types, keys, extents, epochs.

mod class;
mod id;
mod key;
mod name;

pub use class::{Groups, ObjectClass, ObjectType, Redundancy};
pub use id::ObjectId;
pub use key::{KEY_BYTES_MAX, Key};
pub use name::NO_NUMBER;
pub use name::Names;

/// A version. Each update of a target has one of its own; larger is later.
pub type Epoch = u64;

/// An extent of an array: `count` records from `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recx {
    /// First record.
    pub index: u64,
    /// Records.
    pub count: u64,
}
