//! The shards of a dkey, and what is done to all of them at once.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Epoch;
use crate::placement::Placement;
use crate::{
    Ack, Change, Fetched, Held, KeyPath, Order, Pool, Read, Reservation, StoreError, Target, Write, change,
};

/// Room that is wanted: a shard, what is written there, and how many bytes of it.
pub(super) type Wanted = (usize, Write, usize);
/// Room by shard.
pub(super) type Rooms = Vec<(usize, Reservation)>;

/// The shards that the values of a dkey lie on.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// All targets of the pool.
    pub targets: &'a [Arc<Target>],
    /// The turns of the pool's dkeys.
    pub order: &'a Order,
    /// Where the cells lie.
    pub placement: &'a Placement,
    /// Container, object and keys of the value.
    pub place: KeyPath<'a>,
    /// When changes are acknowledged.
    pub ack: Ack,
    /// As of which version is read; none: the latest. Changes are made with none.
    pub epoch: Option<Epoch>,
}

impl<'a> Group<'a> {
    /// Those of a dkey in a pool.
    pub fn of(
        pool: &'a Pool,
        placement: &'a Placement,
        place: KeyPath<'a>,
        ack: Ack,
        epoch: Option<Epoch>,
    ) -> Self {
        Self { targets: pool.targets(), order: pool.order(), placement, place, ack, epoch }
    }

    /// Number of the target of a shard.
    #[inline]
    pub fn number(&self, shard: usize) -> usize {
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
        // What earlier changes of the dkey have put off goes with it, also on shards that this one did not touch.
        let mut targets = (0..shards).map(|shard| self.shard(shard));
        targets.try_for_each(|target| {
            if target.syncs_each_update() { target.commit() } else { target.commit_earlier() }
        })
    }

    /// The turn of the dkey.
    pub(super) fn turn(&self) -> Held<'a> {
        self.order.of(self.place.object, self.place.dkey)
    }

    /// Takes room on shards, in the order of their targets: all who take several keep to it, so none waits for another in a circle. In the
    /// order of shards it comes back.
    pub(super) fn reserve(&self, mut wanted: Vec<Wanted>) -> Result<Rooms, StoreError> {
        wanted.sort_unstable_by_key(|(shard, ..)| self.number(*shard));
        let mut rooms = Vec::with_capacity(wanted.len());
        for (shard, write, bytes) in wanted {
            rooms.push((shard, self.shard(shard).reserve_part(&self.place, write, bytes)?));
        }
        rooms.sort_unstable_by_key(|(shard, _)| *shard);
        Ok(rooms)
    }

    /// Publishes cells, all or none of them. `after`: see [`Group::latest`]; 0 where nothing that was there matters.
    pub(super) fn publish(&self, turn: &Held<'_>, after: Epoch, rooms: Rooms) -> Result<(), StoreError> {
        change(turn, self.place, (rooms.len(), after), |change| self.publish_in(change, rooms))
    }

    /// Epoch of the latest change of an array. All of them change the first shard of parity.
    pub(super) fn latest(&self, data: usize) -> Epoch {
        self.shard(data).last_change(&self.place)
    }

    /// The same as a part of a change, in the order of targets.
    pub(super) fn publish_in(&self, change: &mut Change<'a>, mut rooms: Rooms) -> Result<(), StoreError> {
        rooms.sort_unstable_by_key(|(shard, _)| self.number(*shard));
        rooms
            .into_iter()
            .try_for_each(|(shard, room)| change.publish(self.shard(shard), room, self.ack_of(shard)))
    }
}

/// The part `local` of a shard, to be taken room for.
pub(super) fn part_of(shard: usize, local: &Range<u64>) -> Wanted {
    (shard, Write::Extent { offset_bytes: local.start }, (local.end - local.start) as usize)
}
