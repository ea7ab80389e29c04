//! Arguments of the service thread of an endpoint, besides its connections.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::Poll;
use crate::service::{Counters, Limits};
use crate::share::Shares;

/// Where an engine says what happened, one line each.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Memory for buffers that all endpoints of an engine share.
#[derive(Debug)]
pub struct Budget {
    max_bytes: u64,
    used_bytes: AtomicU64,
    shares: Option<Shares>,
}

/// A part of a [`Budget`], given back when dropped.
#[derive(Debug)]
pub struct Grant {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    /// A budget of `max_bytes`.
    #[must_use]
    pub fn new(max_bytes: u64) -> Arc<Self> {
        Arc::new(Self { max_bytes, used_bytes: AtomicU64::new(0), shares: None })
    }

    /// A budget of which no client takes all.
    pub(crate) fn shared(max_bytes: u64, connections_max: u32) -> Arc<Self> {
        let shares = Some(Shares::new(max_bytes, connections_max));
        Arc::new(Self { max_bytes, used_bytes: AtomicU64::new(0), shares })
    }

    /// Shares of the clients; none where there is one client.
    pub(crate) fn shares(&self) -> Option<&Shares> {
        self.shares.as_ref()
    }

    /// Takes `bytes` of it; none when they are not left.
    #[must_use]
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Grant> {
        let fits = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.max_bytes);
        self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Grant { budget: Arc::clone(self), bytes })
    }

    /// Takes `bytes` of it that the engine itself keeps for good: clients share the rest.
    pub(crate) fn set_aside(self: &Arc<Self>, bytes: u64) -> Option<Grant> {
        let grant = self.take(bytes)?;
        if let Some(shares) = &self.shares {
            shares.set_aside(bytes);
        }
        Some(grant)
    }

    /// Connections of a client are closed.
    pub(crate) fn leave(&self, client: IpAddr, connections: u64) {
        if let Some(shares) = &self.shares {
            shares.leave(client, connections);
        }
    }

    /// Whether a buffer of so many bytes may be kept for later.
    pub(crate) fn keep(&self, bytes: u64) -> bool {
        self.shares.as_ref().is_none_or(|shares| shares.keep(bytes))
    }

    /// One that was kept is used again, or gone.
    pub(crate) fn unkeep(&self, bytes: u64) {
        if let Some(shares) = &self.shares {
            shares.unkeep(bytes);
        }
    }

    /// Bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

impl Grant {
    /// How much it is.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The place of one service thread.
#[derive(Clone)]
pub struct Seat {
    /// Rank of the engine.
    pub rank: u32,
    /// Tag of the endpoint.
    pub tag: u32,
    /// How the thread waits for messages. A thread without connections always sleeps.
    pub poll: Poll,
    /// Limits of the engine.
    pub limits: Limits,
    /// Memory for buffers.
    pub budget: Arc<Budget>,
    /// Counters of the endpoint.
    pub counters: Arc<Counters>,
    /// Set when the engine stops; the inbox's bell rings then.
    pub stop: Arc<AtomicBool>,
    /// Where hostile frames and refusals are told.
    pub log: Log,
    /// The endpoint's own name on the fabric, once it has one. The acceptor tells it to clients.
    pub fabric_name: Arc<OnceLock<Vec<u8>>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_kept_and_given_back() {
        let budget = Budget::new(100);
        let first = budget.take(60).expect("fits");
        assert!(budget.take(41).is_none());
        assert!(budget.take(u64::MAX).is_none());
        drop(first);
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.take(100).is_some());
    }
}
