//! One order for all copies and cells of a value.

use parking_lot::{Mutex, MutexGuard};
use workload::random::mix64;

use crate::model::ObjectId;

/// Those of a dkey are changed by one at a time, so that no copy has another update last than the others, and no two compute the parity of
/// one stripe. Shared by all who change a pool.
#[derive(Debug)]
pub(crate) struct Order([Mutex<()>; 64]);

impl Order {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }

    /// Of a dkey.
    pub(crate) fn of(&self, object: ObjectId, dkey: &[u8]) -> MutexGuard<'_, ()> {
        let hash = dkey.iter().fold(mix64(object.lo ^ object.hi), |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.0[(mix64(hash) % 64) as usize].lock()
    }

    /// Of all dkeys, for what changes an object as a whole.
    pub(crate) fn all(&self) -> Vec<MutexGuard<'_, ()>> {
        self.0.iter().map(Mutex::lock).collect()
    }
}
