//! One target at its tag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rpc::{Answer, BulkReply, BulkSink, Call, Inline, Service};

use vos::coded::{Coded, Flaw, extent_of};
use vos::model::Epoch;
use vos::{Ack, Anchor, KeyPath, Pool, Punch, Read, Reservation, StoreError, Target, Write};

use super::flat;
use super::pools::{Pools, container_of};
use super::shards::{Shards, spread_class};
use super::wire::Request;
use super::{INLINE_BYTES_MAX, opcode, select};

/// Bytes of a list's reply before its entries.
const LIST_HEAD_BYTES: usize = 20;
/// Memory that coding keeps from one request to the next, in bytes.
const CODING_BYTES_MAX: usize = 4 << 20;

/// See the module. One a service thread.
pub(super) struct ObjectService {
    instance: u32,
    /// Number of this tag's targets.
    number: u32,
    /// Each pool, and this tag's target of it; none where it has fewer.
    targets: Vec<(Arc<Pool>, Option<Arc<Target>>)>,
    /// Set while a change waits for [`Service::settle`]; none where the transport does not call that.
    unsettled: Option<Arc<AtomicBool>>,
    /// Changes to other targets' shards wait for it, too.
    has_spread: Arc<AtomicBool>,
    /// Coders by their cells of data and parity.
    coders: Vec<((u8, u8), Coded)>,
}

pub(super) fn errno(error: StoreError) -> i32 {
    -error.errno()
}

fn epoch_of(request: &Request<'_>) -> Option<Epoch> {
    (request.epoch != 0).then_some(request.epoch)
}

pub(super) fn place_of<'a>(request: &Request<'a>) -> Result<KeyPath<'a>, i32> {
    Ok(KeyPath {
        container: container_of(request.handle)?,
        object: request.object,
        dkey: request.dkey,
        akey: request.akey,
    })
}

impl ObjectService {
    pub(super) fn new(pools: &Pools, number: u32) -> Self {
        let target = |pool: &Arc<Pool>| pool.targets().get(number as usize).map(Arc::clone);
        let targets = pools.iter().map(|(_, pool)| (Arc::clone(pool), target(pool))).collect();
        Self {
            instance: pools.instance(),
            number,
            targets,
            unsettled: None,
            has_spread: Arc::default(),
            coders: Vec::new(),
        }
    }

    /// Who notes that a change to this target waits for a commit; none: each one is durable when it is done.
    fn deferring(&self, target: &Target) -> Option<&Arc<AtomicBool>> {
        self.unsettled.as_ref().filter(|_| target.syncs_each_update())
    }

    fn target_of(&self, request: &Request<'_>) -> Result<&Arc<Target>, i32> {
        if request.handle.instance != self.instance {
            return Err(-libc::ESTALE);
        }
        let (_, target) = self.targets.get(usize::from(request.handle.pool)).ok_or(-libc::ESTALE)?;
        target.as_ref().ok_or(-libc::ENXIO)
    }

    /// The shards of what a request is about.
    fn shards(&self, request: &Request<'_>, is_whole_object: bool) -> Result<Shards, i32> {
        let (pool, _) = self.targets.get(usize::from(request.handle.pool)).ok_or(-libc::ESTALE)?;
        Shards::of(pool, request, self.number, is_whole_object)
    }

    /// The same to be changed.
    fn changing(&self, request: &Request<'_>, is_whole_object: bool) -> Result<Shards, i32> {
        let shards = self.shards(request, is_whole_object)?;
        self.has_spread.store(true, Ordering::Relaxed);
        Ok(shards)
    }

    /// When a change of several targets is to be durable.
    fn ack_of_all(&self, target: &Target) -> Ack {
        let ack = ack_of(self.deferring(target));
        self.has_spread.fetch_or(ack == Ack::Deferred, Ordering::Relaxed);
        ack
    }

    fn coder(&mut self, code: (u8, u8)) -> &mut Coded {
        let at = self.coders.iter().position(|(own, _)| *own == code).unwrap_or_else(|| {
            self.coders.push((code, Coded::new(code.0, code.1, 0)));
            self.coders.len() - 1
        });
        &mut self.coders[at].1
    }

    fn carry_out(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> Result<(), i32> {
        let request = Request::decode(call.inline).map_err(|_| -libc::EINVAL)?;
        let target = self.target_of(&request)?;
        let place = place_of(&request)?;
        match call.opcode {
            opcode::UPDATE | opcode::PUNCH if spread_class(request.object).is_some() => Err(-libc::EINVAL),
            opcode::UPDATE => update(target, &request, &place, call.bulk, ack_of(self.deferring(target))),
            opcode::UPDATE_SHARDS
            | opcode::PUNCH_SHARDS
            | opcode::FETCH_SHARDS
            | opcode::RESTORE_SHARDS
            | opcode::SIZE_SHARDS => {
                let target = Arc::clone(target);
                self.on_shards(&target, &request, &place, call, answer)
            }
            opcode::FETCH => fetch(target, &request, &place, call, answer),
            opcode::PUNCH => punch(target, &request, &place, ack_of(self.deferring(target))),
            opcode::SIZE => {
                let size = target.size_of(&place, epoch_of(&request)).map_err(errno)?;
                answer.inline.extend_from_slice(&size.to_le_bytes());
                Ok(())
            }
            opcode::LARGEST => {
                let (akey, epoch) = (place.akey, epoch_of(&request));
                let largest = target.largest(place.container, place.object, akey, epoch).map_err(errno)?;
                answer.inline.extend_from_slice(&largest.dkey.to_le_bytes());
                answer.inline.extend_from_slice(&largest.end_bytes.to_le_bytes());
                Ok(())
            }
            opcode::LIST => list(target, &request, &place, answer),
            code if flat::is_flat(code) => {
                let (pool, _) = self.targets.get(usize::from(request.handle.pool)).ok_or(-libc::ESTALE)?;
                let ack = if flat::changes(code) { self.ack_of_all(target) } else { Ack::AsConfigured };
                flat::carry_out(code, (pool, target), &request, ack, answer)
            }
            opcode::DISCARD => {
                let (pool, _) = self.targets.get(usize::from(request.handle.pool)).ok_or(-libc::ESTALE)?;
                let done =
                    pool.discard(place.container, request.offset, epoch_of(&request)).map_err(errno)?;
                answer.inline.extend_from_slice(&done.versions_dropped.to_le_bytes());
                Ok(())
            }
            _ => maintain(target, call.opcode, &request, &place, answer),
        }
    }

    /// Carries out on the target of the first shard a request about all shards of a dkey.
    fn on_shards(
        &mut self,
        target: &Arc<Target>,
        request: &Request<'_>,
        place: &KeyPath<'_>,
        call: &Call<'_>,
        answer: &mut Answer<'_>,
    ) -> Result<(), i32> {
        match call.opcode {
            opcode::UPDATE_SHARDS => {
                let (value, write) = (value_of(request, call.bulk)?, write_of(request)?);
                let shards = self.changing(request, false)?;
                let ack = ack_of(self.deferring(target));
                let Some(code) = shards.code() else {
                    return shards.update(place, write, value, ack).map_err(errno);
                };
                let coder = self.coder(code);
                let done = coder.write(&shards.group(place, ack, None), write, value).map_err(errno);
                coder.trim(CODING_BYTES_MAX);
                done
            }
            opcode::PUNCH_SHARDS => {
                let what = punch_of(request)?;
                let shards = self.changing(request, what == Punch::Object)?;
                let ack = ack_of(self.deferring(target));
                match (what, shards.code()) {
                    (Punch::Record { offset_bytes, bytes }, Some(code)) => {
                        let extent = extent_of(offset_bytes, bytes).map_err(errno)?;
                        self.coder(code).punch(&shards.group(place, ack, None), &extent).map_err(errno)
                    }
                    _ => shards.punch(place, what, ack).map_err(errno),
                }
            }
            _ => {
                let shards = self.shards(request, false)?;
                let code = shards.code().ok_or(-libc::EINVAL)?;
                let group = shards.group(place, Ack::AsConfigured, epoch_of(request));
                let coder = self.coder(code);
                if call.opcode == opcode::SIZE_SHARDS {
                    let size = coder.size_of(&group).map_err(errno)?;
                    answer.inline.extend_from_slice(&size.to_le_bytes());
                    return Ok(());
                }
                let is_restoring = call.opcode == opcode::RESTORE_SHARDS;
                let done = fetch_together(request, call, answer, |read, into| {
                    let found = coder.read(&group, read, into);
                    match coder.take_flaw().filter(|_| !is_restoring) {
                        None => found.map_err(errno),
                        Some(Flaw::Damaged) => Err(-libc::EBADMSG),
                        Some(Flaw::Missing) => Err(-libc::EUCLEAN),
                    }
                });
                coder.trim(CODING_BYTES_MAX);
                done
            }
        }
    }
}

impl Service for ObjectService {
    #[inline]
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32 {
        match self.carry_out(call, answer) {
            Ok(()) => 0,
            Err(status) => {
                answer.inline.clear();
                status
            }
        }
    }

    fn sink(&mut self, call: &Call<'_>, bulk_bytes: usize) -> Option<Box<dyn BulkSink>> {
        // What lies on several targets comes as a whole into a buffer of the endpoint, and from there into copies or cells: room on one of them
        // would be held while the others are waited for.
        let is_update = call.opcode == opcode::UPDATE;
        let request = Request::decode(call.inline).ok().filter(|_| is_update)?;
        if spread_class(request.object).is_some() {
            return None;
        }
        let is_whole = request.length == bulk_bytes as u64 && request.value.is_empty();
        let target = self.target_of(&request).ok().filter(|_| is_whole)?;
        let (place, write) = (place_of(&request).ok()?, write_of(&request).ok()?);
        // What the store refuses is told when the bulk has come.
        let reservation = target.reserve(&place, write, bulk_bytes).ok()?;
        Some(Box::new(Reserved { reservation, unsettled: self.deferring(target).map(Arc::clone) }))
    }

    fn defer(&mut self) -> bool {
        let mut targets = self.targets.iter().filter_map(|(_, target)| target.as_ref());
        let defers = targets.any(|target| target.syncs_each_update());
        self.unsettled = defers.then(Arc::default);
        defers
    }

    fn is_unsettled(&self) -> bool {
        self.unsettled.as_ref().is_some_and(|unsettled| unsettled.load(Ordering::Relaxed))
    }

    fn storage_wait_ns(&self) -> u64 {
        vos::storage_wait_ns()
    }

    fn settle(&mut self) -> i32 {
        let Some(unsettled) = &self.unsettled else { return 0 };
        unsettled.store(false, Ordering::Relaxed);
        let has_spread = self.has_spread.swap(false, Ordering::Relaxed);
        let own = self.targets.iter().filter_map(|(_, target)| target.as_ref());
        let all = self.targets.iter().filter(|_| has_spread).flat_map(|(pool, _)| pool.targets());
        let targets = own.filter(|_| !has_spread).chain(all);
        let mut status = 0;
        for target in targets.filter(|target| target.syncs_each_update()) {
            status = target.commit().map_or_else(errno, |()| status);
        }
        status
    }
}

/// When a change is to be durable: now, or with the next commit, which is then noted to be due.
fn ack_of(unsettled: Option<&Arc<AtomicBool>>) -> Ack {
    let Some(unsettled) = unsettled else { return Ack::AsConfigured };
    // Read by this thread alone: the type is shared with what comes into the store.
    unsettled.store(true, Ordering::Relaxed);
    Ack::Deferred
}

/// Room in the store that the value of an update comes into.
struct Reserved {
    reservation: Reservation,
    unsettled: Option<Arc<AtomicBool>>,
}

impl BulkSink for Reserved {
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.reservation
    }

    fn finish(self: Box<Self>) -> i32 {
        let Self { reservation, unsettled } = *self;
        reservation.publish(ack_of(unsettled.as_ref())).map_or_else(errno, |_| 0)
    }
}

fn update(
    target: &Target,
    request: &Request<'_>,
    place: &KeyPath<'_>,
    bulk: &[u8],
    ack: Ack,
) -> Result<(), i32> {
    let (value, write) = (value_of(request, bulk)?, write_of(request)?);
    target.update(place, write, value, ack).map(drop).map_err(errno)
}

/// The value of an update: in the message, or as bulk.
fn value_of<'a>(request: &Request<'a>, bulk: &'a [u8]) -> Result<&'a [u8], i32> {
    let value = if bulk.is_empty() { request.value } else { bulk };
    if value.len() as u64 != request.length || !(bulk.is_empty() || request.value.is_empty()) {
        return Err(-libc::EINVAL);
    }
    Ok(value)
}

fn write_of(request: &Request<'_>) -> Result<Write, i32> {
    match request.selector {
        select::SINGLE => Ok(Write::Single),
        select::EXTENT => Ok(Write::Extent { offset_bytes: request.offset }),
        _ => Err(-libc::EINVAL),
    }
}

/// Range that a fetch reads.
fn read_of(request: &Request<'_>) -> Result<Read, i32> {
    match request.selector {
        select::SINGLE => Ok(Read::Single),
        select::EXTENT => Ok(Read::Extent { offset_bytes: request.offset }),
        _ => Err(-libc::EINVAL),
    }
}

/// A value that lies in several places, put together in the message, or in a buffer of the endpoint. `read` returns how much there is.
fn fetch_together(
    request: &Request<'_>,
    call: &Call<'_>,
    answer: &mut Answer<'_>,
    mut read: impl FnMut(Read, &mut [u8]) -> Result<u64, i32>,
) -> Result<(), i32> {
    let what = read_of(request)?;
    let inline_max = answer.inline.room_bytes().min(INLINE_BYTES_MAX);
    let length = usize::try_from(request.length).map_err(|_| -libc::EOVERFLOW)?;
    if length <= inline_max {
        let found = read(what, answer.inline.add(length).ok_or(-libc::EOVERFLOW)?)?;
        answer.inline.truncate(found as usize);
        return Ok(());
    }
    let bulk_max = usize::try_from(call.reply_bulk_bytes).unwrap_or(usize::MAX).min(answer.scratch.len());
    let room = answer.scratch.get_mut(..length.min(bulk_max)).ok_or(-libc::EOVERFLOW)?;
    let found = read(what, room)? as usize;
    if found <= inline_max {
        answer.inline.extend_from_slice(&room[..found]);
    } else {
        answer.bulk = BulkReply::Scratch(found);
    }
    Ok(())
}

/// Small values in the message, copied once; large ones from where they lie in the store.
#[inline]
fn fetch(
    target: &Arc<Target>,
    request: &Request<'_>,
    place: &KeyPath<'_>,
    call: &Call<'_>,
    answer: &mut Answer<'_>,
) -> Result<(), i32> {
    let read = read_of(request)?;
    let inline_max = answer.inline.room_bytes().min(INLINE_BYTES_MAX);
    let length = usize::try_from(request.length).map_err(|_| -libc::EOVERFLOW)?;
    if length <= inline_max {
        let room = answer.inline.add(length).ok_or(-libc::EOVERFLOW)?;
        let found = target.fetch(place, read, epoch_of(request), room).map_err(errno)?;
        answer.inline.truncate(found.end_bytes as usize);
        return Ok(());
    }
    let room = length.min(inline_max.max(usize::try_from(call.reply_bulk_bytes).unwrap_or(usize::MAX)));
    let lease = target.lease(place, read, epoch_of(request), room).map_err(errno)?;
    let length = lease.as_ref().len();
    if length <= inline_max {
        answer.inline.extend_from_slice(lease.as_ref());
    } else if length <= room {
        answer.bulk = BulkReply::Shared(Arc::new(lease), 0..length);
    } else {
        return Err(-libc::EOVERFLOW);
    }
    Ok(())
}

fn punch(target: &Target, request: &Request<'_>, place: &KeyPath<'_>, ack: Ack) -> Result<(), i32> {
    target.punch(place, punch_of(request)?, ack).map(drop).map_err(errno)
}

fn punch_of(request: &Request<'_>) -> Result<Punch, i32> {
    match request.selector {
        select::RECORD => Ok(Punch::Record { offset_bytes: request.offset, bytes: request.length }),
        select::AKEY => Ok(Punch::Akey),
        select::DKEY => Ok(Punch::Dkey),
        select::OBJECT => Ok(Punch::Object),
        _ => Err(-libc::EINVAL),
    }
}

fn list(
    target: &Target,
    request: &Request<'_>,
    place: &KeyPath<'_>,
    answer: &mut Answer<'_>,
) -> Result<(), i32> {
    let begin = match request.anchor {
        [] => Anchor::START,
        bytes => Anchor::from_bytes(bytes.try_into().map_err(|_| -libc::EINVAL)?),
    };
    let room = answer.inline.room_bytes();
    // Even the shortest entry takes two bytes.
    let mut max = usize::try_from(request.length).unwrap_or(usize::MAX).min(room / 2);
    loop {
        let mut anchor = begin;
        answer.inline.clear();
        answer.inline.extend_from_slice(&[0; LIST_HEAD_BYTES]);
        let count = list_into(target, request, place, &mut anchor, max, &mut answer.inline);
        let count = count.map_err(errno)?;
        if !answer.inline.is_over() {
            let head = answer.inline.as_mut_slice();
            head[..4].copy_from_slice(&(count as u32).to_le_bytes());
            head[4..LIST_HEAD_BYTES].copy_from_slice(&anchor.to_bytes());
            return Ok(());
        }
        // The keys are longer than the reply: fewer of them, and the rest with the next one.
        if max <= 1 {
            return Err(-libc::EOVERFLOW);
        }
        max /= 2;
    }
}

fn list_into(
    target: &Target,
    request: &Request<'_>,
    place: &KeyPath<'_>,
    anchor: &mut Anchor,
    max: usize,
    to: &mut Inline<'_>,
) -> Result<usize, StoreError> {
    let epoch = epoch_of(request);
    // A key is at most 65535 bytes.
    let mut key = |bytes: &[u8]| {
        to.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        to.extend_from_slice(bytes);
    };
    match request.selector {
        select::DKEYS => target.list_dkeys(place.container, place.object, epoch, anchor, max, &mut key),
        select::AKEYS => target.list_akeys(place, epoch, anchor, max, &mut key),
        select::EXTENTS => target.list_extents(place, epoch, request.offset, max, &mut |found| {
            to.extend_from_slice(&found.offset_bytes.to_le_bytes());
            to.extend_from_slice(&found.bytes.to_le_bytes());
        }),
        select::OBJECTS => target.list_objects(place.container, epoch, anchor, max, &mut |object| {
            to.extend_from_slice(&object.lo.to_le_bytes());
            to.extend_from_slice(&object.hi.to_le_bytes());
        }),
        _ => Err(StoreError::InvalidKey),
    }
}

/// Carries out an operation on a whole object or container.
fn maintain(
    target: &Target,
    opcode: u16,
    request: &Request<'_>,
    place: &KeyPath<'_>,
    answer: &mut Answer<'_>,
) -> Result<(), i32> {
    let count = match opcode {
        opcode::ITERATE => {
            let object = Some(place.object);
            let found = target.iterate(place.container, object, epoch_of(request), true, true);
            found.map_err(errno)?.records
        }
        opcode::AGGREGATE => {
            let done = target.aggregate(place.container, epoch_of(request), false);
            done.map_err(errno)?.versions_dropped
        }
        opcode::COLLECT => target.collect().map_err(errno)?.segments_freed,
        _ => return Err(-libc::EOPNOTSUPP),
    };
    answer.inline.extend_from_slice(&count.to_le_bytes());
    Ok(())
}
