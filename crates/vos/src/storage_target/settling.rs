//! The epoch that aggregation may build on: changes of several targets that are whole and durable on all of them.

use std::sync::{Arc, Weak};

use super::Target;
use super::marks::is_spread;
use crate::error::StoreError;
use crate::model::Epoch;
use crate::order::Order;
use crate::settled::Settled;
use crate::types::ContainerId;

/// The targets of a pool, and what they share.
#[derive(Debug)]
pub(crate) struct Peers {
    targets: Vec<Weak<Target>>,
    order: Arc<Order>,
    settled: Arc<Settled>,
}

impl Peers {
    pub(crate) fn new(targets: &[Arc<Target>], order: Arc<Order>, settled: Arc<Settled>) -> Self {
        Self { targets: targets.iter().map(Arc::downgrade).collect(), order, settled }
    }

    /// Makes durable what all targets have of the changes that have ended, and notes up to which epoch that is. What is noted then is
    /// earlier where a target takes nothing any more, or a change was neither made nor taken back.
    fn settle(&self) -> Epoch {
        let ended = self.order.ended();
        if ended <= self.settled.epoch() {
            return self.settled.epoch();
        }
        let mut targets = self.targets.iter().filter_map(Weak::upgrade);
        if targets.all(|target| target.harden().is_ok()) {
            self.settled.advance(ended)
        } else {
            self.settled.epoch()
        }
    }
}

impl Target {
    /// Makes the targets of a pool known to each other.
    pub(crate) fn introduce(targets: &[Arc<Self>], order: &Arc<Order>, settled: &Arc<Settled>) {
        let peers = Arc::new(Peers::new(targets, Arc::clone(order), Arc::clone(settled)));
        for target in targets {
            let _ = target.peers.set(Arc::clone(&peers));
        }
    }

    /// Up to which epoch what a container holds is whole on all targets: nothing that is later may be the reason for anything to go. None
    /// where nothing of the container lies on several targets.
    pub(crate) fn settle_peers(&self, container: ContainerId) -> Option<Epoch> {
        let peers = self.peers.get().filter(|_| self.has_spread(container))?;
        Some(peers.settle())
    }

    /// Whether a container has objects with copies or parity here.
    fn has_spread(&self, container: ContainerId) -> bool {
        let state = self.state.lock();
        let Some(own) = state.index.containers.get(container.0 as usize) else { return false };
        own.table.iter().any(|entry| is_spread(state.index.objects.get(entry.node_number()).id))
    }

    /// Waits until what was put off is durable, and all of it up to an epoch is whole.
    ///
    /// # Errors
    /// [`StoreError::Broken`] where that cannot be.
    pub(crate) fn settle_up_to(&self, container: ContainerId, epoch: Epoch) -> Result<(), StoreError> {
        match self.settle_peers(container) {
            Some(settled) if settled < epoch => Err(StoreError::Broken),
            _ => Ok(()),
        }
    }
}
