//! Requests about objects without copies and parity as a whole, and conditional changes: carried out on all targets of the pool by the one that is
//! asked.

use std::sync::Arc;

use rpc::Answer;
use vos::{Ack, Anchor, KeyPath, Pool, Read, StoreError, Target};

use super::opcode;
use super::steps::steps_of;
use super::target::{errno, place_of};
use super::wire::Request;

/// Names that are looked up at once.
const NAMES: usize = 256;
/// Bytes of a list's reply before its entries: how many, and whether the end was reached.
pub const VALUES_HEAD_BYTES: usize = 8;

/// Whether an opcode is one of these.
pub(super) fn is_flat(code: u16) -> bool {
    matches!(
        code,
        opcode::APPLY
            | opcode::LARGEST_OF_ALL
            | opcode::REMOVE
            | opcode::LIST_VALUES
            | opcode::FETCH_VERSION
            | opcode::COMMIT
    )
}

/// Whether it changes something.
pub(super) fn changes(code: u16) -> bool {
    matches!(code, opcode::APPLY | opcode::REMOVE)
}

pub(super) fn carry_out(
    code: u16,
    (pool, target): (&Pool, &Arc<Target>),
    request: &Request<'_>,
    ack: Ack,
    answer: &mut Answer<'_>,
) -> Result<(), i32> {
    let place = place_of(request)?;
    match code {
        opcode::APPLY => {
            let steps = steps_of(request.value).map_err(|_| -libc::EINVAL)?;
            pool.apply(place.container, &steps, ack).map_err(errno)
        }
        opcode::LARGEST_OF_ALL => {
            let largest = pool.largest_of(place.container, place.object, place.akey).map_err(errno)?;
            let largest = largest.ok_or(-libc::ENOENT)?;
            answer.inline.extend_from_slice(&largest.dkey.to_le_bytes());
            answer.inline.extend_from_slice(&largest.end_bytes.to_le_bytes());
            Ok(())
        }
        opcode::REMOVE => {
            let has_any = pool.punch_object(place.container, place.object, ack).map_err(errno)?;
            if has_any { Ok(()) } else { Err(-libc::ENOENT) }
        }
        opcode::LIST_VALUES => list_values(target, request, &place, answer).map_err(errno),
        opcode::FETCH_VERSION => fetch_version(target, request, &place, answer).map_err(errno),
        opcode::COMMIT => pool.targets().iter().try_for_each(|target| target.commit()).map_err(errno),
        _ => Err(-libc::EOPNOTSUPP),
    }
}

fn fetch_version(
    target: &Target,
    request: &Request<'_>,
    place: &KeyPath<'_>,
    answer: &mut Answer<'_>,
) -> Result<(), StoreError> {
    const VERSION_BYTES: usize = 8;
    let room = answer
        .inline
        .room_bytes()
        .min(usize::try_from(request.length).unwrap_or(usize::MAX).saturating_add(VERSION_BYTES));
    let room = answer.inline.add(room).ok_or(StoreError::BufferTooSmall)?;
    let (version, value) = room.split_at_mut_checked(VERSION_BYTES).ok_or(StoreError::BufferTooSmall)?;
    let found = target.fetch(place, Read::Single, None, value)?;
    version.copy_from_slice(&found.epoch.to_le_bytes());
    answer.inline.truncate(VERSION_BYTES + found.bytes as usize);
    Ok(())
}

/// Dkeys in the order of their hashes, each with the single value of an akey.
fn list_values(
    target: &Target,
    request: &Request<'_>,
    place: &KeyPath<'_>,
    answer: &mut Answer<'_>,
) -> Result<(), StoreError> {
    let begin = request.anchor.try_into().map_err(|_| StoreError::InvalidKey)?;
    let mut anchor = Anchor::from_bytes(begin);
    let mut value = vec![0; answer.inline.room_bytes().min(usize::from(u16::MAX))];
    let inline = &mut answer.inline;
    inline.extend_from_slice(&[0; VALUES_HEAD_BYTES]);
    let (mut count, mut is_end) = (0_u32, true);
    let mut names: Vec<Box<[u8]>> = Vec::with_capacity(NAMES);
    let mut list = |anchor: &mut Anchor| {
        names.clear();
        let note = &mut |name: &[u8]| names.push(name.into());
        let listed = target.list_dkeys(place.container, place.object, None, anchor, NAMES, note);
        listed.map(|_| std::mem::take(&mut names))
    };
    'all: while !anchor.is_end() && u64::from(count) < request.length {
        let names = match list(&mut anchor) {
            Err(StoreError::NotFound) => break,
            listed => listed?,
        };
        for name in &names {
            let found = target.fetch(&KeyPath { dkey: name, ..*place }, Read::Single, None, &mut value);
            let (status, value) = match found {
                Ok(found) => (0, &value[..found.bytes as usize]),
                Err(StoreError::NotFound) => continue,
                Err(error) => (error.errno(), &[][..]),
            };
            let bytes = 2 + name.len() + 8 + value.len();
            if inline.room_bytes() < bytes || u64::from(count) == request.length {
                is_end = false;
                break 'all;
            }
            inline.extend_from_slice(&(name.len() as u16).to_le_bytes());
            inline.extend_from_slice(name);
            inline.extend_from_slice(&(status as u32).to_le_bytes());
            inline.extend_from_slice(&(value.len() as u32).to_le_bytes());
            inline.extend_from_slice(value);
            count += 1;
        }
    }
    let is_end = is_end && (anchor.is_end() || u64::from(count) < request.length);
    let head = inline.as_mut_slice().get_mut(..VALUES_HEAD_BYTES).ok_or(StoreError::BufferTooSmall)?;
    head[..4].copy_from_slice(&count.to_le_bytes());
    head[4] = u8::from(is_end);
    if count == 0 && !is_end { Err(StoreError::BufferTooSmall) } else { Ok(()) }
}
