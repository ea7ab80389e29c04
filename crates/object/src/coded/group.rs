//! The shards of a dkey, and what is done to all of them at once.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Epoch;
use crate::placement::Placement;
use crate::store::{Ack, Fetched, Order, Place, Read, Reservation, StoreError, Target, Write};

/// The shards that the values of a dkey lie on.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    /// All targets of the pool.
    pub(crate) targets: &'a [Arc<Target>],
    pub(crate) order: &'a Order,
    pub(crate) placement: &'a Placement,
    pub(crate) place: Place<'a>,
    /// When changes are acknowledged.
    pub(crate) ack: Ack,
}

impl<'a> Group<'a> {
    /// Number of the target of a shard.
    #[inline]
    pub(crate) fn number(&self, shard: usize) -> usize {
        let group = self.placement.group(self.place.dkey);
        self.placement.target(self.place.object, group, shard as u32) as usize
    }

    #[inline]
    pub(super) fn shard(&self, shard: usize) -> &'a Arc<Target> {
        &self.targets[self.number(shard)]
    }

    pub(super) fn fetch(
        &self,
        shard: usize,
        read: Read,
        epoch: Option<Epoch>,
        into: &mut [u8],
    ) -> Result<Fetched, StoreError> {
        self.shard(shard).fetch(&self.place, read, epoch, into)
    }

    /// When a cell is acknowledged: what waits for a sync waits for it behind the turn, all cells together.
    pub(super) fn ack_of(&self, shard: usize) -> Ack {
        if self.shard(shard).syncs_each_update() { Ack::Deferred } else { self.ack }
    }

    /// Makes durable what was put off for the time of the turn.
    pub(super) fn settle(&self, shards: usize) -> Result<(), StoreError> {
        if self.ack != Ack::AsConfigured {
            return Ok(());
        }
        let targets = (0..shards).map(|shard| self.shard(shard));
        targets.filter(|target| target.syncs_each_update()).try_for_each(|target| target.commit())
    }

    /// Publishes cells, all or none of them.
    pub(super) fn publish(&self, rooms: Vec<(usize, Reservation)>) -> Result<(), StoreError> {
        let mut done: Vec<(usize, Epoch)> = Vec::with_capacity(rooms.len());
        for (shard, room) in rooms {
            match room.publish(self.ack_of(shard)) {
                Ok(epoch) => done.push((shard, epoch)),
                Err(error) => {
                    for (shard, epoch) in done {
                        // A target that takes nothing any more keeps the cell; readers pass it over.
                        let _ = self.shard(shard).discard(self.place.container, epoch..=epoch);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Room for the cells of a shard.
pub(super) fn room_of(
    group: &Group<'_>,
    shard: usize,
    local: &Range<u64>,
) -> Result<Reservation, StoreError> {
    let write = Write::Extent { offset_bytes: local.start };
    group.shard(shard).reserve(&group.place, write, (local.end - local.start) as usize)
}
