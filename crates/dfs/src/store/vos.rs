//! The embedded store in this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Findings;
use parking_lot::Mutex;
use rustix::io::Errno;
use vos::model::{Epoch, ObjectId};
use vos::{Ack, Anchor, ContainerId, KeyPath, Pool, Punch, Read, Step, StoreError, Target, Write};

use super::{Space, Store, Visit, errno_of};
use crate::ExpectedChanges;
use crate::layout::DATA_AKEY;
use crate::record::RECORD_BYTES_MAX;

/// Names that a listing takes at once.
const NAMES: usize = 256;
/// Extents that are looked up at once.
const EXTENTS: usize = 64;

/// Bytes of a record beside its value, about: header, keys, checksums, and what the next line begins after.
const RECORD_BYTES: u64 = 160;
/// Bytes that the change of an entry takes, about: its record, and that of the object behind it.
const NAME_BYTES: u64 = 384;

/// A container of a pool.
pub(crate) struct VosStore {
    pool: Option<Arc<Pool>>,
    container: ContainerId,
    findings: Mutex<Findings>,
    /// The pool was opened for this file system, and is closed with it.
    owns: bool,
}

impl VosStore {
    /// `owns`: the pool is closed with the store.
    pub(crate) fn new(pool: Arc<Pool>, container: ContainerId, owns: bool) -> Self {
        Self { pool: Some(pool), container, findings: Mutex::new(Findings::new()), owns }
    }

    fn pool(&self) -> Result<&Arc<Pool>, Errno> {
        self.pool.as_ref().ok_or(Errno::IO)
    }

    fn target(&self, object: ObjectId, dkey: &[u8]) -> Result<&Arc<Target>, Errno> {
        self.pool()?.target_of(object, dkey).map_err(|error| self.failed(error, None))
    }

    fn place<'a>(&self, object: ObjectId, dkey: &'a [u8], akey: &'a [u8]) -> KeyPath<'a> {
        KeyPath { container: self.container, object, dkey, akey }
    }

    /// The errno of an error; damage is noted as its target names it.
    #[cold]
    fn failed(&self, error: StoreError, target: Option<&Target>) -> Errno {
        if error == StoreError::Damaged
            && let (Some(pool), mut findings) = (&self.pool, self.findings.lock())
        {
            let all = target
                .into_iter()
                .chain(pool.targets().iter().filter(|_| target.is_none()).map(|one| &**one));
            all.flat_map(Target::take_findings).for_each(|line| findings.add(|| line));
        }
        errno_of(error.errno())
    }

    /// The value, or nothing where there is none.
    fn or_nothing<T: Default>(&self, result: Result<T, StoreError>, target: &Target) -> Result<T, Errno> {
        match result {
            Err(StoreError::NotFound) => Ok(T::default()),
            result => result.map_err(|error| self.failed(error, Some(target))),
        }
    }
}

impl Drop for VosStore {
    fn drop(&mut self) {
        if !self.owns {
            return;
        }
        // Where somebody else still has the pool it is closed by him; what cannot be written is read from the log at the next open.
        if let Some(pool) = self.pool.take().and_then(Arc::into_inner) {
            let _ = pool.close();
        }
    }
}

impl Store for VosStore {
    fn apply(&self, steps: &[Step<'_>]) -> Result<(), Errno> {
        let applied = self.pool()?.apply(self.container, steps, Ack::AsConfigured);
        applied.map_err(|error| self.failed(error, None))
    }

    fn fetch(
        &self,
        object: ObjectId,
        dkey: &[u8],
        akey: &[u8],
        into: &mut [u8],
    ) -> Result<(usize, Epoch), Errno> {
        let target = self.target(object, dkey)?;
        let found = target.fetch(&self.place(object, dkey, akey), Read::Single, None, into);
        let found = found.map_err(|error| self.failed(error, Some(target)))?;
        Ok((found.bytes as usize, found.epoch))
    }

    fn groups(&self, object: ObjectId) -> Result<u32, Errno> {
        let placement = self.pool()?.flat_placement(object);
        placement.map(|placement| placement.groups()).map_err(|error| self.failed(error, None))
    }

    fn list(
        &self,
        object: ObjectId,
        group: u32,
        from: u64,
        akey: &[u8],
        visit: Visit<'_>,
    ) -> Result<bool, Errno> {
        let pool = self.pool()?;
        let placement = pool.flat_placement(object).map_err(|error| self.failed(error, None))?;
        let target = pool.target(placement.target(object, group, 0) as usize);
        let mut anchor = Anchor::from_hash(from);
        let (mut names, mut ends) = (Vec::new(), Vec::new());
        let mut value = vec![0; RECORD_BYTES_MAX];
        while !anchor.is_end() {
            names.clear();
            ends.clear();
            let mut note = |name: &[u8]| {
                names.extend_from_slice(name);
                ends.push(names.len());
            };
            let listed = target.list_dkeys(self.container, object, None, &mut anchor, NAMES, &mut note);
            match listed {
                Err(StoreError::NotFound) => return Ok(true),
                listed => listed.map_err(|error| self.failed(error, Some(target)))?,
            };
            let mut start = 0;
            for end in &ends {
                let name = &names[start..*end];
                start = *end;
                let goes_on =
                    match target.fetch(&self.place(object, name, akey), Read::Single, None, &mut value) {
                        Ok(found) => visit(name, Ok(&value[..found.bytes as usize])),
                        // It was removed meanwhile, or is something else.
                        Err(StoreError::NotFound) => true,
                        Err(error) => visit(name, Err(self.failed(error, Some(target)))),
                    };
                if !goes_on {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn akeys(&self, object: ObjectId, dkey: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let target = self.target(object, dkey)?;
        let (place, mut anchor, mut all) = (self.place(object, dkey, &[]), Anchor::START, Vec::new());
        while !anchor.is_end() {
            let mut note = |akey: &[u8]| all.push(akey.to_vec());
            let listed = target.list_akeys(&place, None, &mut anchor, NAMES, &mut note);
            if listed == Err(StoreError::NotFound) {
                break;
            }
            listed.map_err(|error| self.failed(error, Some(target)))?;
        }
        Ok(all)
    }

    fn read(&self, object: ObjectId, dkey: u64, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let dkey = dkey.to_le_bytes();
        let target = self.target(object, &dkey)?;
        let read = Read::Extent { offset_bytes: offset };
        match target.fetch(&self.place(object, &dkey, DATA_AKEY), read, None, into) {
            Ok(found) => Ok(found.end_bytes as usize),
            Err(StoreError::NotFound) => {
                into.fill(0);
                Ok(0)
            }
            Err(error) => Err(self.failed(error, Some(target))),
        }
    }

    fn write(&self, object: ObjectId, dkey: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let dkey = dkey.to_le_bytes();
        let target = self.target(object, &dkey)?;
        let place = self.place(object, &dkey, DATA_AKEY);
        // Targets of small pools take less than a chunk at once.
        let bytes_max = (target.value_bytes_max() as usize).max(1);
        let mut offset_bytes = offset;
        for part in data.chunks(bytes_max) {
            let written = target.update(&place, Write::Extent { offset_bytes }, part, Ack::Deferred);
            written.map_err(|error| self.failed(error, Some(target)))?;
            offset_bytes += part.len() as u64;
        }
        Ok(())
    }

    fn punch(&self, object: ObjectId, dkey: u64, range: Option<(u64, u64)>) -> Result<(), Errno> {
        let dkey = dkey.to_le_bytes();
        let target = self.target(object, &dkey)?;
        let what = range.map_or(Punch::Akey, |(offset_bytes, bytes)| Punch::Record { offset_bytes, bytes });
        let punched = target.punch(&self.place(object, &dkey, DATA_AKEY), what, Ack::Deferred);
        self.or_nothing(punched, target).map(drop)
    }

    fn extents(&self, object: ObjectId, dkey: u64, from: u64) -> Result<Vec<(u64, u64)>, Errno> {
        let dkey = dkey.to_le_bytes();
        let target = self.target(object, &dkey)?;
        let mut all = Vec::new();
        let place = self.place(object, &dkey, DATA_AKEY);
        let mut note = |found: &vos::FoundExtent| all.push((found.offset_bytes, found.bytes));
        let listed = target.list_extents(&place, None, from, EXTENTS, &mut note);
        self.or_nothing(listed, target)?;
        Ok(all)
    }

    fn end(&self, object: ObjectId) -> Result<Option<(u64, u64)>, Errno> {
        let largest = self.pool()?.largest_of(self.container, object, DATA_AKEY);
        let largest = largest.map_err(|error| self.failed(error, None))?;
        Ok(largest.map(|largest| (largest.dkey, largest.end_bytes)))
    }

    fn remove(&self, object: ObjectId) -> Result<(), Errno> {
        let removed = self.pool()?.punch_object(self.container, object, Ack::AsConfigured);
        removed.map(drop).map_err(|error| self.failed(error, None))
    }

    fn allocate_ids(&self, count: u64) -> Result<u64, Errno> {
        let first = self.pool()?.allocate_ids(self.container, count);
        first.map_err(|error| self.failed(error, None))
    }

    fn has_objects(&self) -> Result<bool, Errno> {
        for target in self.pool()?.targets() {
            let mut anchor = Anchor::START;
            let listed = target.list_objects(self.container, None, &mut anchor, 1, &mut |_| ());
            if self.or_nothing(listed, target)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sync(&self) -> Result<(), Errno> {
        let mut targets = self.pool()?.targets().iter();
        targets.try_for_each(|target| target.commit().map_err(|error| self.failed(error, Some(target))))
    }

    fn drop_cache(&self) -> Result<(), Errno> {
        self.pool()?.drop_cache().map_err(|error| self.failed(error, None))
    }

    fn space(&self) -> Result<Space, Errno> {
        let space = self.pool()?.space();
        Ok(Space {
            bytes: space.scm_bytes + space.nvme_bytes,
            free_bytes: space.scm_free_bytes + space.nvme_free_bytes,
            keys: space.keys,
        })
    }

    fn stock(&self, changes: &ExpectedChanges, stop: &AtomicBool) {
        let Ok(pool) = self.pool() else { return };
        let names = changes.names.saturating_mul(NAME_BYTES);
        let records = names.saturating_add(changes.writes.saturating_mul(RECORD_BYTES));
        let piece_bytes = changes.write_bytes.min(pool.info().value_bytes_max);
        let (log_bytes, data_bytes) = match pool.is_external(piece_bytes) {
            true => (records, changes.written_bytes),
            false => (records.saturating_add(changes.written_bytes), 0),
        };
        pool.stock(log_bytes, data_bytes, stop);
    }

    fn grown_bytes(&self) -> Option<u64> {
        self.pool().ok().map(|pool| pool.space().grown_bytes)
    }

    fn take_findings(&self) -> Vec<String> {
        self.findings.lock().take()
    }
}
