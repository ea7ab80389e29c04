//! The operation of this layer.

use driver::Operation;

use crate::plan::{OBJECT_OPERATIONS, ObjectOp};

use vos::model::{Key, ObjectId};

/// One operation on an object store. What all operations of a phase have in common (cell and chunk size, punch scope, list size, kind of
/// value) stands in the plan that the driver is opened with.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOperation {
    /// Slot, and so buffer.
    pub slot: u32,
    /// Operation of the layer.
    pub operation: ObjectOp,
    /// Whether fewer bytes than it asks for are good too.
    pub is_short_good: bool,
    /// Number of the record: content and verification depend on it.
    pub record: u64,
    /// The object.
    pub object: ObjectId,
    /// The dkey; the key of key-value operations. Not used by array operations: they say `index` in the whole array.
    pub dkey: Key,
    /// The akey. Empty for key-value operations.
    pub akey: Key,
    /// Array values: first byte of the extent under the akey; arrays: first byte in the array.
    pub offset_bytes: u64,
    /// Bytes that it stores, or asks for.
    pub value_bytes: u64,
}

impl Operation for ObjectOperation {
    const CLASSES: &'static [&'static str] = OBJECT_OPERATIONS;

    #[inline]
    fn class(&self) -> usize {
        self.operation as usize
    }

    #[inline]
    fn slot(&self) -> u32 {
        self.slot
    }

    #[inline]
    fn bytes(&self) -> u64 {
        if self.operation.stores() || self.operation.loads() { self.value_bytes } else { 0 }
    }

    #[inline]
    fn moved_bytes(&self, result: i64) -> u64 {
        if self.is_short_good && self.operation.loads() { result.max(0) as u64 } else { self.bytes() }
    }

    #[inline]
    fn is_whole(&self, result: i64) -> bool {
        match self.operation {
            ObjectOp::Update
            | ObjectOp::Fetch
            | ObjectOp::Put
            | ObjectOp::Get
            | ObjectOp::Write
            | ObjectOp::Read => result == self.value_bytes as i64 || (self.is_short_good && result >= 0),
            // Keys listed, the size of a value, an id: any count.
            _ => result >= 0,
        }
    }
}
