//! What aggregation leaves of erasure-coded values: a cell whose value is still the current one on another shard stays, because the update or
//! punch above it has not reached all shards, and may never do so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use workload::object::Redundancy;

use super::Target;
use super::fetch::Part;
use crate::erasure::Tag;
use crate::model::{Epoch, ObjectId};
use crate::placement::Placement;
use crate::store::error::StoreError;
use crate::store::table::{Entry, Tag as Kind};
use crate::store::types::{Anchor, ContainerId, Place, Read};

/// Dkeys that are looked through before others have the lock.
const BATCH: usize = 256;

/// An akey with versions that something newer covers.
struct Covered {
    /// A record that tells its keys.
    keys: Part,
    /// Epoch and place of each such version.
    versions: Vec<(Epoch, u64)>,
}

/// The other targets of the pool.
struct Elsewhere<'a> {
    peers: &'a [Arc<Target>],
    /// Up to where what they hold is durable; none where one of them cannot be made so.
    durable_epoch: Option<Epoch>,
}

impl Target {
    /// Places of the versions of a container that are still current on another shard. `aggregating` is held: nothing is freed meanwhile.
    ///
    /// What covers a version is durable here, and counts on other shards where it is durable there too: the medium may lose the update above on one
    /// shard and keep it on another.
    pub(super) fn current_elsewhere(&self, container: ContainerId) -> Result<BTreeSet<u64>, StoreError> {
        let mut kept = BTreeSet::new();
        let Some(peers) = self.peers.get() else { return Ok(kept) };
        let peers: Vec<Arc<Self>> = peers.iter().filter_map(std::sync::Weak::upgrade).collect();
        let objects = self.coded_objects(container, peers.len());
        if objects.is_empty() {
            return Ok(kept);
        }
        let others = || peers.iter().filter(|peer| peer.number != self.number);
        let now = self.epochs.load(Ordering::Relaxed);
        let is_durable = others().all(|peer| peer.harden().is_ok());
        let elsewhere = Elsewhere { peers: &peers, durable_epoch: is_durable.then_some(now) };
        for (object, placement) in objects {
            let mut anchor = Anchor::START;
            while !anchor.is_end {
                for covered in self.covered(container, object, &mut anchor) {
                    self.keep_current(container, object, &placement, &elsewhere, &covered, &mut kept)?;
                }
            }
        }
        Ok(kept)
    }

    fn coded_objects(&self, container: ContainerId, targets: usize) -> Vec<(ObjectId, Placement)> {
        let state = self.state.lock();
        let Some(own) = state.index.containers.get(container.0 as usize) else { return Vec::new() };
        let ids = own.table.iter().map(|entry| state.index.objects.get(entry.node_number()).id);
        let coded = ids.filter_map(|object| {
            let class = object.class()?;
            let is_coded = matches!(class.redundancy, Redundancy::ErasureCoded { .. });
            let placement = Placement::new(class, targets as u32).ok().filter(|_| is_coded)?;
            Some((object, placement))
        });
        coded.collect()
    }

    /// The next akeys of an object with single values that something covers.
    fn covered(&self, container: ContainerId, object: ObjectId, anchor: &mut Anchor) -> Vec<Covered> {
        let mut found = Vec::new();
        let state = self.state.lock();
        let Some(number) = state.index.object(container, object) else {
            anchor.is_end = true;
            return found;
        };
        let node = state.index.objects.get(number);
        let mut add = |entry: &Entry, is_punched: bool| {
            if !matches!(entry.tag(), Kind::Chain | Kind::One) {
                return;
            }
            let versions: Vec<_> = state.index.versions(entry).collect();
            let covering = usize::from(!is_punched);
            let older = versions.iter().skip(covering).filter(|version| !version.is_tombstone());
            let older: Vec<_> = older.map(|version| (version.epoch(), version.location())).collect();
            if let (Some(first), false) = (versions.first(), older.is_empty()) {
                let keys = state.part_in_memory(*first, self.mapped.is_some());
                found.push(Covered { keys, versions: older });
            }
        };
        let mut position = node.dkeys.position(anchor);
        for _ in 0..BATCH {
            let Some((at, entry)) = node.dkeys.next(position) else {
                anchor.is_end = true;
                break;
            };
            if entry.tag() == Kind::Dkey {
                let dkey = state.index.dkeys.get(entry.node_number());
                let is_punched = !node.punches.is_empty() || !dkey.punches.is_empty();
                dkey.akeys.iter().for_each(|akey| add(akey, is_punched));
            } else {
                add(entry, !node.punches.is_empty());
            }
            anchor.pass(entry);
            position = at + 1;
        }
        found
    }

    fn keep_current(
        &self,
        container: ContainerId,
        object: ObjectId,
        placement: &Placement,
        elsewhere: &Elsewhere<'_>,
        covered: &Covered,
        kept: &mut BTreeSet<u64>,
    ) -> Result<(), StoreError> {
        let keys = self.with_record(&covered.keys, |record| {
            let header = self.header_of(record, &covered.keys)?;
            Ok((header.dkey(record).to_vec(), header.akey(record).to_vec()))
        });
        // What is damaged cannot be told: it stays, as does what the others may lose.
        let (Ok((dkey, akey)), Some(durable_epoch)) = (keys, elsewhere.durable_epoch) else {
            kept.extend(covered.versions.iter().map(|(_, location)| *location));
            return Ok(());
        };
        let place = Place { container, object, dkey: &dkey, akey: &akey };
        let group = placement.group(&dkey);
        let mut current = Vec::new();
        for shard in 0..placement.group_size() {
            let target = &elsewhere.peers[placement.target(object, group, shard) as usize];
            if target.number != self.number {
                current.extend(target.cell_tag(&place, None)?);
                current.extend(target.cell_tag(&place, Some(durable_epoch))?);
            }
        }
        for (epoch, location) in &covered.versions {
            match self.cell_tag(&place, Some(*epoch))? {
                Some(tag) if !current.contains(&tag) => {}
                // Also what something of the same epoch hides, or what is damaged.
                _ => drop(kept.insert(*location)),
            }
        }
        Ok(())
    }

    /// Which update the visible cell is of; none where there is none, or none that can be read.
    fn cell_tag(&self, place: &Place<'_>, epoch: Option<Epoch>) -> Result<Option<Tag>, StoreError> {
        let found = self.size_of(place, epoch).and_then(|bytes| {
            let mut cell = vec![0; bytes as usize];
            self.fetch(place, Read::Single, epoch, &mut cell)?;
            Ok(Tag::split(&cell).map(|(_, tag)| tag))
        });
        match found {
            Err(
                StoreError::NotFound
                | StoreError::Damaged
                | StoreError::WrongKind
                | StoreError::BufferTooSmall,
            ) => Ok(None),
            found => found,
        }
    }
}
