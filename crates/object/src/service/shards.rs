//! Changes of objects that lie on several shards: the target of the first one makes them on all, so that every shard has them in the same order,
//! and a client that dies leaves none behind the others: it sends one request, which comes whole or not at all.

use std::sync::Arc;

use workload::object::{ObjectClass, Redundancy};

use super::wire::Request;
use crate::coded::Group;
use crate::model::ObjectId;
use crate::placement::Placement;
use crate::store::{Ack, Place, Pool, StoreError, Target};

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

    /// The cells of a value.
    pub(super) fn group<'a>(&'a self, place: &Place<'a>, ack: Ack) -> Group<'a> {
        Group {
            targets: self.pool.targets(),
            order: self.pool.order(),
            placement: &self.placement,
            place: *place,
            ack,
        }
    }

    /// Changes one shard after the other; the copy that is read comes last: what is seen before it is acknowledged is on all of them. What
    /// is not there on some shards was found if one of them had it.
    pub(super) fn change(
        &self,
        mut change: impl FnMut(&Arc<Target>, bool) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let order = self.pool.order();
        let _one = (!self.is_whole_object).then(|| order.of(self.object, &self.dkey));
        let _all = self.is_whole_object.then(|| order.all());
        let mut result = Err(StoreError::NotFound);
        for (shard, number) in self.targets.iter().enumerate().rev() {
            match change(self.pool.target(*number as usize), shard == 0) {
                Err(StoreError::NotFound) => {}
                done => result = Ok(done?),
            }
        }
        result
    }
}
