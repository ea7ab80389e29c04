//! An object store, as far as a file system needs one.

pub(crate) mod engine;
pub(crate) mod vos;

use std::sync::atomic::AtomicBool;

use ::vos::Step;
use ::vos::model::{Epoch, ObjectId};
use rustix::io::Errno;

use crate::ExpectedChanges;

/// Space of a store, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Space {
    pub(crate) bytes: u64,
    pub(crate) free_bytes: u64,
    /// Keys that are stored.
    pub(crate) keys: u64,
}

/// Shows a name of a listing and its value; the error is of a value that cannot be read. False ends the listing.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], Result<&[u8], Errno>) -> bool;

/// An object store with conditional changes. Shared by threads. Objects have neither copies nor parity.
pub(crate) trait Store: Send + Sync {
    /// Makes all steps or none (`vos::Pool::apply`). `EEXIST`, `ENOENT`, `EAGAIN`: a condition does not hold.
    fn apply(&self, steps: &[Step<'_>]) -> Result<(), Errno>;

    /// Reads a single value: its length, and its version. `EOVERFLOW`: it is longer than `into`.
    fn fetch(
        &self,
        object: ObjectId,
        dkey: &[u8],
        akey: &[u8],
        into: &mut [u8],
    ) -> Result<(usize, Epoch), Errno>;

    /// Groups that the dkeys of an object are dealt out to.
    fn groups(&self, object: ObjectId) -> Result<u32, Errno>;

    /// Lists the dkeys of a group whose hash (`Anchor::hash_of`) is not below `from`, in the order of hashes, with the single values of an akey. True:
    /// it came to the end.
    fn list(
        &self,
        object: ObjectId,
        group: u32,
        from: u64,
        akey: &[u8],
        visit: Visit<'_>,
    ) -> Result<bool, Errno>;

    /// Akeys of a dkey; none where there is no such dkey.
    fn akeys(&self, object: ObjectId, dkey: &[u8]) -> Result<Vec<Vec<u8>>, Errno>;

    /// Reads bytes of an array; what is not stored is zero. Where in `into` the last stored byte ends.
    fn read(&self, object: ObjectId, dkey: u64, offset: u64, into: &mut [u8]) -> Result<usize, Errno>;

    /// Writes bytes of an array.
    fn write(&self, object: ObjectId, dkey: u64, offset: u64, data: &[u8]) -> Result<(), Errno>;

    /// Removes bytes of an array, none: all of it under the dkey.
    fn punch(&self, object: ObjectId, dkey: u64, range: Option<(u64, u64)>) -> Result<(), Errno>;

    /// Extents of an array that end after `from`, in their order: first byte and bytes. Perhaps not all; none: there are no more.
    fn extents(&self, object: ObjectId, dkey: u64, from: u64) -> Result<Vec<(u64, u64)>, Errno>;

    /// The largest integer dkey of an object, and where the array under it ends; none where there is none.
    fn end(&self, object: ObjectId) -> Result<Option<(u64, u64)>, Errno>;

    /// Removes an object; nothing there is no error.
    fn remove(&self, object: ObjectId) -> Result<(), Errno>;

    /// Takes ids that are given to nobody else: the first.
    fn allocate_ids(&self, count: u64) -> Result<u64, Errno>;

    /// Whether there is any object.
    fn has_objects(&self) -> Result<bool, Errno>;

    /// Makes durable what was stored before.
    fn sync(&self) -> Result<(), Errno>;

    /// As [`crate::FileSystem::drop_cache`].
    fn drop_cache(&self) -> Result<(), Errno>;

    fn space(&self) -> Result<Space, Errno>;

    /// As [`crate::FileSystem::stock`].
    fn stock(&self, _changes: &ExpectedChanges, _stop: &AtomicBool) {}

    /// As [`crate::FileSystem::grown_bytes`].
    fn grown_bytes(&self) -> Option<u64> {
        None
    }

    /// Damage that was met since the last call, by its place.
    fn take_findings(&self) -> Vec<String>;

    /// Whether the store was started again since that was asked last: what it had half done may be left.
    fn take_restart(&self) -> bool {
        false
    }
}

/// The error of a system call for one of a store.
pub(crate) fn errno_of(raw: i32) -> Errno {
    match raw {
        libc::EBADMSG | libc::EROFS | libc::EUCLEAN => Errno::IO,
        raw => Errno::from_raw_os_error(raw),
    }
}
