//! Changes of replicated objects: the target of the first copy makes them on all copies, so that every copy has them in the same order,
//! and a client that dies between two copies leaves none behind the others.

use std::sync::Arc;

use workload::object::Redundancy;

use super::wire::Request;
use crate::model::ObjectId;
use crate::placement::Placement;
use crate::store::{Pool, StoreError, Target};

/// The copies of a dkey.
pub(super) struct Copies {
    pool: Arc<Pool>,
    object: ObjectId,
    dkey: Box<[u8]>,
    /// Numbers of their targets; the first is the one that is read.
    targets: Vec<u32>,
    /// The object goes as a whole.
    is_whole_object: bool,
}

impl Copies {
    /// Those of what a request is about, which came to target `own`.
    ///
    /// # Errors
    /// The object has no copies, or the target is not that of the first.
    pub(super) fn of(
        pool: &Arc<Pool>,
        request: &Request<'_>,
        own: u32,
        is_whole_object: bool,
    ) -> Result<Self, i32> {
        let class = request.object.class().ok_or(-libc::EINVAL)?;
        if !matches!(class.redundancy, Redundancy::Replicated(_)) {
            return Err(-libc::EINVAL);
        }
        let placement = Placement::new(class, pool.targets().len() as u32).map_err(|_| -libc::EINVAL)?;
        let targets = |group| {
            let target = |shard| placement.target(request.object, group, shard);
            (0..placement.group_size()).map(target).collect::<Vec<u32>>()
        };
        // What is punched as a whole has no dkey: each group is asked at its first copy.
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
        Ok(Self { pool, object, dkey, targets, is_whole_object })
    }

    /// Changes one copy after the other; the one that is read comes last: what is seen before it is acknowledged is on all of them. What
    /// is not there on some copies was found if one of them had it.
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
