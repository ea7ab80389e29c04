//! Changes of objects that lie on several shards: the target of the first one makes them on all, so that every shard has them in the same order,
//! and a client that dies leaves none behind the others: it sends one request, which comes whole or not at all.

use std::sync::Arc;

use vos::{ObjectClass, Redundancy};

use vos::coded::Group;
use vos::model::{Epoch, ObjectId};
use vos::placement::Placement;
use vos::{Ack, KeyPath, Pool, Punch, StoreError, Target, Write, punch_all, update_all};

use super::wire::Request;

/// The shards of a dkey.
pub(super) struct Shards {
    pool: Arc<Pool>,
    object: ObjectId,
    placement: Placement,
    dkey: Box<[u8]>,
    /// Numbers of their targets; the first is the one that is asked, and of copies the one that is read.
    targets: Vec<u32>,
    /// The object goes as a whole.
    is_whole_object: bool,
}

/// The class of an object that lies on several shards; none where it lies on one.
pub(super) fn spread_class(object: ObjectId) -> Option<ObjectClass> {
    object.class().filter(|class| class.redundancy != Redundancy::None)
}

impl Shards {
    /// Those of what a request is about, which came to target `own`.
    ///
    /// # Errors
    /// The object lies on one shard, or the target is not that of the first.
    pub(super) fn of(
        pool: &Arc<Pool>,
        request: &Request<'_>,
        own: u32,
        is_whole_object: bool,
    ) -> Result<Self, i32> {
        let class = spread_class(request.object).ok_or(-libc::EINVAL)?;
        let placement = Placement::new(class, pool.targets().len() as u32).map_err(|_| -libc::EINVAL)?;
        let targets = |group| {
            let target = |shard| placement.target(request.object, group, shard);
            (0..placement.group_size()).map(target).collect::<Vec<u32>>()
        };
        // What is punched as a whole has no dkey: each group is asked at its first shard.
        let group = if is_whole_object {
            (0..placement.groups())
                .find(|group| targets(*group).first() == Some(&own))
                .ok_or(-libc::EINVAL)?
        } else {
            placement.group(request.dkey)
        };
        let targets = targets(group);
        if targets.first() != Some(&own) {
            return Err(-libc::EINVAL);
        }
        let (pool, object, dkey) = (Arc::clone(pool), request.object, request.dkey.into());
        Ok(Self { pool, object, placement, dkey, targets, is_whole_object })
    }

    /// Cells of data and of parity; none where there are copies.
    pub(super) fn code(&self) -> Option<(u8, u8)> {
        match self.placement.redundancy() {
            Redundancy::ErasureCoded { data, parity } => Some((data, parity)),
            Redundancy::None | Redundancy::Replicated(_) => None,
        }
    }

    /// The cells of a value; `epoch` as of which they are read, none: the latest.
    pub(super) fn group<'a>(&'a self, place: &KeyPath<'a>, ack: Ack, epoch: Option<Epoch>) -> Group<'a> {
        Group::of(&self.pool, &self.placement, *place, ack, epoch)
    }

    /// The targets; that of the copy which is read comes last: what is seen before it is acknowledged is on all of them.
    fn in_order(&self) -> Vec<&Arc<Target>> {
        self.targets.iter().rev().map(|number| self.pool.target(*number as usize)).collect()
    }

    /// Writes all copies.
    pub(super) fn update(
        &self,
        place: &KeyPath<'_>,
        write: Write,
        value: &[u8],
        ack: Ack,
    ) -> Result<(), StoreError> {
        let turn = self.pool.order().of(self.object, &self.dkey);
        update_all(&turn, *place, &self.in_order(), (write, value), ack)
    }

    /// Punches all shards that have what is punched.
    pub(super) fn punch(&self, place: &KeyPath<'_>, what: Punch, ack: Ack) -> Result<(), StoreError> {
        let order = self.pool.order();
        let turns = if self.is_whole_object { order.all() } else { vec![order.of(self.object, &self.dkey)] };
        let turn = turns.first().ok_or(StoreError::NotFound)?;
        punch_all(turn, *place, &self.in_order(), what, ack)
    }
}
