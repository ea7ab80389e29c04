//! Listing the keys of an object, from where the last list of a slot ended.

use vos::model::{KEY_BYTES_MAX, ObjectId};
use vos::{Anchor, StoreError};

use super::volume::{Volume, any_found};

/// Where a slot's list stands.
#[derive(Clone, Copy)]
struct Stand {
    object: ObjectId,
    group: u32,
    anchor: Anchor,
}

/// The lists of one worker.
pub(super) struct Lists {
    stands: Vec<Stand>,
    list_max: usize,
    /// Keys as a caller would get them, one behind the other.
    keys: Vec<u8>,
}

impl Lists {
    pub(super) fn new(slots: u32, list_max: u32) -> Self {
        let start = Stand { object: ObjectId::default(), group: 0, anchor: Anchor::START };
        Self {
            stands: vec![start; slots as usize],
            list_max: list_max as usize,
            keys: Vec::with_capacity(list_max as usize * (KEY_BYTES_MAX + 1)),
        }
    }

    /// Lists the next keys of an object; returns how many. The list after the last key begins anew.
    pub(super) fn next(
        &mut self,
        volume: &mut Volume,
        slot: u32,
        object: ObjectId,
    ) -> Result<u64, StoreError> {
        let stand = &mut self.stands[slot as usize];
        if stand.object != object {
            *stand = Stand { object, group: 0, anchor: Anchor::START };
        }
        self.keys.clear();
        let keys = &mut self.keys;
        let mut visit = |key: &[u8]| {
            if keys.len() + key.len() <= keys.capacity() {
                keys.extend_from_slice(key);
            }
        };
        let is_beginning = stand.group == 0 && stand.anchor == Anchor::START;
        let (mut listed, mut result) = (0, Err(StoreError::NotFound));
        while stand.group < volume.placement.groups() && listed < self.list_max {
            let room = self.list_max - listed;
            let found = volume.list_group(object, stand.group, &mut stand.anchor, room, &mut visit);
            listed += found.unwrap_or(0);
            let is_end = found.is_err() || stand.anchor.is_end();
            result = any_found(result, found.map(drop))?;
            if is_end {
                (stand.group, stand.anchor) = (stand.group + 1, Anchor::START);
            }
        }
        if stand.group == volume.placement.groups() {
            (stand.group, stand.anchor) = (0, Anchor::START);
        }
        if is_beginning && result.is_err() { Err(StoreError::NotFound) } else { Ok(listed as u64) }
    }
}
