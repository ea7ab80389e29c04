//! Requests of a file system to an engine.

use object_service::steps::put_steps;
use object_service::wire::{Malformed, Reader, Request};
use object_service::{VALUES_HEAD_BYTES, opcode, select};
use rustix::io::Errno;
use vos::model::{Epoch, ObjectId};
use vos::{Anchor, Step};

use super::EngineStore;
use super::client::{Payload, Reply};
use crate::layout::{DATA_AKEY, SUPERBLOCK};
use crate::store::{Space, Store, Visit, errno_of};

/// Bytes of a list that are asked for at once.
const LIST_BYTES: usize = 256 << 10;
/// Names of a list that are asked for at once.
const NAMES: u64 = 1024;
/// Akeys and extents that are asked for at once.
const KEYS: u64 = 256;
/// Bytes of a list of keys before the keys.
const LIST_HEAD_BYTES: usize = 20;

fn garbled(_: Malformed) -> Errno {
    Errno::IO
}

/// The value, or nothing where there is none.
fn or_nothing<T: Default>(result: Result<T, Errno>) -> Result<T, Errno> {
    if matches!(result, Err(Errno::NOENT)) { Ok(T::default()) } else { result }
}

impl EngineStore {
    /// As [`EngineStore::call`] about a dkey; damage is noted by its place.
    fn ask<R>(
        &self,
        to: (u32, u16),
        request: &Request<'_>,
        (payload, reply): (Payload<'_>, Reply),
        is_repeatable: bool,
        take: impl FnMut(&[u8]) -> R,
    ) -> Result<R, Errno> {
        self.call(to, request, payload, reply, is_repeatable, take).map_err(|errno| {
            if errno == libc::EBADMSG {
                let (object, dkey) = (request.object, request.dkey.escape_ascii());
                self.findings
                    .lock()
                    .add(|| format!("object {object} dkey {dkey}: the engine reports damage"));
            }
            errno_of(errno)
        })
    }

    fn changes(&self, code: u16, request: &Request<'_>, payload: Payload<'_>) -> Result<(), Errno> {
        let endpoint = self.endpoint_of(request.object, request.dkey)?;
        self.ask((endpoint, code), request, (payload, Reply::Nothing), true, |_| ())
    }

    /// A list of what the selector says; pages until its end.
    fn list_keys(
        &self,
        endpoint: u32,
        request: &Request<'_>,
        key: &mut dyn FnMut(&mut Reader<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Errno> {
        let mut anchor = Anchor::START.to_bytes();
        while !Anchor::from_bytes(anchor).is_end() {
            let request = Request { anchor: &anchor, ..*request };
            let page = self.ask(
                (endpoint, opcode::LIST),
                &request,
                (Payload::Nothing, Reply::Inline(LIST_BYTES)),
                true,
                <[u8]>::to_vec,
            );
            let page = match page {
                Err(Errno::NOENT) => return Ok(()),
                page => page?,
            };
            let mut reader = Reader(&page);
            let count = reader.word().map_err(garbled)?;
            let next = reader.bytes(LIST_HEAD_BYTES - 4).map_err(garbled)?;
            for _ in 0..count {
                key(&mut reader).map_err(garbled)?;
            }
            anchor = next.try_into().map_err(|_| Errno::IO)?;
        }
        Ok(())
    }
}

impl Store for EngineStore {
    fn apply(&self, steps: &[Step<'_>]) -> Result<(), Errno> {
        let mut body = Vec::with_capacity(512);
        if !put_steps(&mut body, steps) {
            return Err(Errno::INVAL);
        }
        let first = steps.first().ok_or(Errno::INVAL)?;
        let endpoint = self.endpoint_of(first.object, first.dkey)?;
        let request = Request { object: first.object, ..Request::default() };
        let moves = (Payload::Inline(&body), Reply::Nothing);
        self.ask((endpoint, opcode::APPLY), &request, moves, false, |_| ())
    }

    fn fetch(
        &self,
        object: ObjectId,
        dkey: &[u8],
        akey: &[u8],
        into: &mut [u8],
    ) -> Result<(usize, Epoch), Errno> {
        let endpoint = self.endpoint_of(object, dkey)?;
        let length = into.len() as u64;
        let request = Request { object, dkey, akey, length, ..Request::default() };
        let moves = (Payload::Nothing, Reply::Inline(into.len() + 8));
        self.ask((endpoint, opcode::FETCH_VERSION), &request, moves, true, |reply| {
            let (version, value) = reply.split_first_chunk::<8>().ok_or(Errno::IO)?;
            into.get_mut(..value.len()).ok_or(Errno::OVERFLOW)?.copy_from_slice(value);
            Ok((value.len(), u64::from_le_bytes(*version)))
        })?
    }

    fn groups(&self, object: ObjectId) -> Result<u32, Errno> {
        Ok(self.placement(object)?.groups())
    }

    fn list(
        &self,
        object: ObjectId,
        group: u32,
        from: u64,
        akey: &[u8],
        visit: Visit<'_>,
    ) -> Result<bool, Errno> {
        let endpoint = self.placement(object)?.target(object, group, 0);
        let mut from = from;
        loop {
            let anchor = Anchor::from_hash(from).to_bytes();
            let request = Request { object, akey, anchor: &anchor, length: NAMES, ..Request::default() };
            let moves = (Payload::Nothing, Reply::Inline(LIST_BYTES));
            let page = self.ask((endpoint, opcode::LIST_VALUES), &request, moves, true, <[u8]>::to_vec)?;
            let mut reader = Reader(&page);
            let count = reader.word().map_err(garbled)?;
            let is_end = reader.bytes(VALUES_HEAD_BYTES - 4).map_err(garbled)?[0] != 0;
            for _ in 0..count {
                let name = reader.counted().map_err(garbled)?;
                let (status, length) = (reader.word().map_err(garbled)?, reader.word().map_err(garbled)?);
                let value = reader.bytes(length as usize).map_err(garbled)?;
                let value = if status == 0 { Ok(value) } else { Err(errno_of(status as i32)) };
                if !visit(name, value) {
                    return Ok(false);
                }
                // Names of one hash do not lie on both sides of a page's end: there are as good as none.
                let Some(next) = Anchor::hash_of(name).checked_add(1) else { return Ok(true) };
                from = next;
            }
            if is_end {
                return Ok(true);
            }
        }
    }

    fn akeys(&self, object: ObjectId, dkey: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let endpoint = self.endpoint_of(object, dkey)?;
        let selector = select::AKEYS;
        let request = Request { object, dkey, selector, length: KEYS, ..Request::default() };
        let mut all = Vec::new();
        self.list_keys(endpoint, &request, &mut |reader| {
            all.push(reader.counted()?.to_vec());
            Ok(())
        })?;
        Ok(all)
    }

    fn read(&self, object: ObjectId, dkey: u64, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let dkey = dkey.to_le_bytes();
        let endpoint = self.endpoint_of(object, &dkey)?;
        let mut stored_end = 0;
        let parts = into.chunks_mut(super::client::VALUE_BYTES_MAX);
        for (number, part) in parts.enumerate() {
            let start = number * super::client::VALUE_BYTES_MAX;
            let (offset, length) = (offset + start as u64, part.len());
            let request = Request {
                object,
                dkey: &dkey,
                akey: DATA_AKEY,
                selector: select::EXTENT,
                offset,
                length: length as u64,
                ..Request::default()
            };
            let moves = (Payload::Nothing, Reply::Value(length));
            let found = self.ask((endpoint, opcode::FETCH), &request, moves, true, |value| {
                part[..value.len()].copy_from_slice(value);
                value.len()
            });
            let found = or_nothing(found)?;
            part[found..].fill(0);
            if found > 0 {
                stored_end = start + found;
            }
        }
        Ok(stored_end)
    }

    fn write(&self, object: ObjectId, dkey: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let dkey = dkey.to_le_bytes();
        let mut offset = offset;
        for part in data.chunks(self.value_bytes_max) {
            let (length, selector) = (part.len() as u64, select::EXTENT);
            let request = Request {
                object,
                dkey: &dkey,
                akey: DATA_AKEY,
                selector,
                offset,
                length,
                ..Request::default()
            };
            self.changes(opcode::UPDATE, &request, Payload::Value(part))?;
            offset += length;
        }
        Ok(())
    }

    fn punch(&self, object: ObjectId, dkey: u64, range: Option<(u64, u64)>) -> Result<(), Errno> {
        let dkey = dkey.to_le_bytes();
        let (selector, (offset, length)) = match range {
            None => (select::AKEY, (0, 0)),
            Some(range) => (select::RECORD, range),
        };
        let request =
            Request { object, dkey: &dkey, akey: DATA_AKEY, selector, offset, length, ..Request::default() };
        or_nothing(self.changes(opcode::PUNCH, &request, Payload::Nothing))
    }

    fn extents(&self, object: ObjectId, dkey: u64, from: u64) -> Result<Vec<(u64, u64)>, Errno> {
        let dkey = dkey.to_le_bytes();
        let endpoint = self.endpoint_of(object, &dkey)?;
        let selector = select::EXTENTS;
        let request = Request {
            object,
            dkey: &dkey,
            akey: DATA_AKEY,
            selector,
            offset: from,
            length: KEYS,
            ..Request::default()
        };
        let moves = (Payload::Nothing, Reply::Inline(LIST_BYTES));
        let page = or_nothing(self.ask((endpoint, opcode::LIST), &request, moves, true, <[u8]>::to_vec))?;
        if page.is_empty() {
            return Ok(Vec::new());
        }
        let mut reader = Reader(&page);
        let count = reader.word().map_err(garbled)?;
        reader.bytes(LIST_HEAD_BYTES - 4).map_err(garbled)?;
        let mut extent = || Ok((reader.long()?, reader.long()?));
        (0..count).map(|_| extent()).collect::<Result<_, _>>().map_err(garbled)
    }

    fn end(&self, object: ObjectId) -> Result<Option<(u64, u64)>, Errno> {
        let endpoint = self.placement(object)?.target(object, 0, 0);
        let request = Request { object, akey: DATA_AKEY, ..Request::default() };
        let moves = (Payload::Nothing, Reply::Inline(16));
        let found = self.ask((endpoint, opcode::LARGEST_OF_ALL), &request, moves, true, |reply| {
            let mut reader = Reader(reply);
            Ok((reader.long().map_err(garbled)?, reader.long().map_err(garbled)?))
        });
        match found {
            Err(Errno::NOENT) => Ok(None),
            found => found?.map(Some),
        }
    }

    fn remove(&self, object: ObjectId) -> Result<(), Errno> {
        let endpoint = self.placement(object)?.target(object, 0, 0);
        let request = Request { object, ..Request::default() };
        let moves = (Payload::Nothing, Reply::Nothing);
        or_nothing(self.ask((endpoint, opcode::REMOVE), &request, moves, true, |_| ()))
    }

    fn allocate_ids(&self, count: u64) -> Result<u64, Errno> {
        let request = Request { length: count, ..Request::default() };
        let moves = (Payload::Nothing, Reply::Inline(64));
        // Tag 0 is behind the targets. Ids that a lost reply brought are given to nobody.
        self.ask((self.targets, opcode::ALLOCATE_IDS), &request, moves, true, |reply| {
            Reader(reply).long().map_err(garbled)
        })?
    }

    fn has_objects(&self) -> Result<bool, Errno> {
        let mut has_any = false;
        for endpoint in 0..self.targets {
            let selector = select::OBJECTS;
            let request = Request { selector, length: KEYS, ..Request::default() };
            self.list_keys(endpoint, &request, &mut |reader| {
                has_any = true;
                reader.bytes(16).map(drop)
            })?;
        }
        Ok(has_any)
    }

    fn sync(&self) -> Result<(), Errno> {
        let endpoint = self.endpoint_of(SUPERBLOCK, &[])?;
        let moves = (Payload::Nothing, Reply::Nothing);
        self.ask((endpoint, opcode::COMMIT), &Request::default(), moves, true, |_| ())
    }

    fn drop_cache(&self) -> Result<(), Errno> {
        self.control()?.drop_cache(&self.pool).map_err(|error| self.lost(&error))
    }

    fn space(&self) -> Result<Space, Errno> {
        let facts = self.control()?.pool(&self.pool).map_err(|error| self.lost(&error))?;
        let info = facts.info;
        Ok(Space {
            bytes: info.scm_bytes + info.nvme_bytes,
            free_bytes: info.scm_free_bytes + info.nvme_free_bytes,
            keys: info.keys,
        })
    }

    fn take_findings(&self) -> Vec<String> {
        self.findings.lock().take()
    }

    fn take_restart(&self) -> bool {
        self.has_restarted.load(std::sync::atomic::Ordering::Relaxed)
            && self.has_restarted.swap(false, std::sync::atomic::Ordering::Relaxed)
    }
}
