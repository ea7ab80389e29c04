//! Shares of the clients of an engine: of its connections, and of its memory for buffers.
//!
//! A client is known by its address; its sessions prove the same secret as everybody's. Half of the memory is kept for what every session may hold
//! ([`Shares::assured_bytes`]), so that one at work goes on whatever others hold. What sessions hold beyond that comes out of three eighths of the memory,
//! of which one client gets half at most; an eighth is for buffers that wait to be used again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::seat::{Budget, Grant};

/// Connections and memory that a client holds.
#[derive(Clone, Copy, Debug, Default)]
struct Holding {
    connections: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Holdings {
    clients: BTreeMap<IpAddr, Holding>,
    /// Beyond what is assured, of all clients.
    bytes: u64,
    /// Buffers that wait to be used again.
    idle_bytes: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Memory that clients share.
    memory_bytes: AtomicU64,
    connections: u64,
    connections_max: u64,
    holdings: Mutex<Holdings>,
}

impl Shares {
    /// Of an engine with so much memory and so many connections.
    pub(crate) fn new(memory_bytes: u64, connections_max: u32) -> Self {
        let connections = u64::from(connections_max.max(1));
        Self {
            memory_bytes: AtomicU64::new(memory_bytes),
            connections,
            connections_max: connections - connections / 4,
            holdings: Mutex::default(),
        }
    }

    /// The engine itself keeps so much for good.
    pub(crate) fn set_aside(&self, bytes: u64) {
        let less = |memory: u64| Some(memory.saturating_sub(bytes));
        // It always changes it.
        let _ = self.memory_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    fn assured_bytes(&self) -> u64 {
        self.memory_bytes() / 2 / self.connections
    }

    fn bytes_max(&self) -> u64 {
        self.memory_bytes() / 8 * 3
    }

    fn with<R>(&self, act: impl FnOnce(&mut Holdings) -> R) -> R {
        act(&mut self.holdings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a client may have another connection.
    pub(crate) fn admits(&self, client: IpAddr) -> bool {
        let connections =
            self.with(|all| all.clients.get(&client.to_canonical()).map_or(0, |own| own.connections));
        connections < self.connections_max
    }

    /// A connection of a client was let in.
    pub(crate) fn enter(&self, client: IpAddr) {
        self.with(|all| all.clients.entry(client.to_canonical()).or_default().connections += 1);
    }

    /// Connections of a client were closed.
    pub(crate) fn leave(&self, client: IpAddr, connections: u64) {
        self.with(|all| {
            let client = client.to_canonical();
            if let Some(own) = all.clients.get_mut(&client) {
                own.connections = own.connections.saturating_sub(connections);
                if own.connections == 0 && own.bytes == 0 {
                    all.clients.remove(&client);
                }
            }
        });
    }

    /// Counts `after` bytes for a session of a client in place of `before`. False, and nothing is changed, where it is more and more than a share.
    fn count(&self, client: IpAddr, before: u64, after: u64) -> bool {
        self.with(|all| {
            let total = all.bytes - before.min(all.bytes) + after;
            let own = all.clients.entry(client.to_canonical()).or_default();
            let bytes = own.bytes - before.min(own.bytes) + after;
            if after > before && (total > self.bytes_max() || bytes > self.bytes_max() / 2) {
                return false;
            }
            (all.bytes, own.bytes) = (total, bytes);
            true
        })
    }

    /// Whether a buffer may be kept for later.
    pub(crate) fn keep(&self, bytes: u64) -> bool {
        self.with(|all| {
            let fits = all.idle_bytes + bytes <= self.memory_bytes() / 8;
            all.idle_bytes += if fits { bytes } else { 0 };
            fits
        })
    }

    /// One that was kept is used again, or gone.
    pub(crate) fn unkeep(&self, bytes: u64) {
        self.with(|all| all.idle_bytes = all.idle_bytes.saturating_sub(bytes));
    }
}

/// Whom memory is asked for: a session, with what it holds.
pub(crate) struct Purse<'a> {
    budget: Arc<Budget>,
    /// None: it is nobody's in particular.
    session: Option<(IpAddr, u64, &'a Cell<u64>)>,
}

impl<'a> Purse<'a> {
    /// Of a session of a client that holds so many bytes; `counted` is what was counted for it beyond what is assured.
    pub(crate) fn new(budget: &Arc<Budget>, client: IpAddr, held_bytes: u64, counted: &'a Cell<u64>) -> Self {
        Self { budget: Arc::clone(budget), session: Some((client, held_bytes, counted)) }
    }

    #[cfg(test)]
    pub(crate) fn of_nobody(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), session: None }
    }

    /// Whether the session may hold so many bytes more. They are counted for it.
    pub(crate) fn may_hold(&self, bytes: u64) -> bool {
        let (Some(shares), Some((client, held, counted))) = (self.budget.shares(), self.session) else {
            return true;
        };
        let after = held.saturating_add(bytes);
        if after <= shares.assured_bytes() || after <= counted.get() {
            return true;
        }
        let may = shares.count(client, counted.get(), after);
        if may {
            counted.set(after);
        }
        may
    }

    /// Takes bytes out of the budget for the session; none where they are not left, or more than it may hold.
    pub(crate) fn take(&self, bytes: u64) -> Option<Grant> {
        if self.may_hold(bytes) { self.budget.take(bytes) } else { None }
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }
}

/// Counts what a session holds now.
pub(crate) fn recount(budget: &Budget, client: IpAddr, held_bytes: u64, counted: &Cell<u64>) {
    let Some(shares) = budget.shares() else { return };
    let now = if held_bytes > shares.assured_bytes() { held_bytes } else { 0 };
    // What it holds was counted when it was taken: this only ever gives back.
    if now < counted.get() && shares.count(client, counted.get(), now) {
        counted.set(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn one_client_gets_its_share_and_every_session_what_is_assured() {
        let budget = Budget::shared(1 << 20, 8);
        let hold =
            |client, counted: &Cell<u64>, held, bytes| Purse::new(&budget, client, held, counted).take(bytes);
        let counts: Vec<Cell<u64>> = (0..40).map(|_| Cell::new(0)).collect();
        let mut grants: Vec<Grant> = Vec::new();
        // Half of three eighths.
        grants.extend(counts.iter().map_while(|counted| hold(ONE, counted, 0, 80 << 10)));
        assert_eq!(grants.len(), 2);
        grants.extend(hold(OTHER, &counts[5], 0, 80 << 10));
        assert_eq!(grants.len(), 3, "the other client has its own share");
        // What is assured: 64 KiB for each of eight sessions, whoever they are.
        let small: Vec<_> = (10..18).map_while(|at| hold(ONE, &counts[at], 0, 64 << 10)).collect();
        assert_eq!(small.len(), 8);
        assert!(hold(ONE, &counts[10], 64 << 10, 64 << 10).is_none());
        // What is given back can be had again.
        grants.remove(0);
        recount(&budget, ONE, 0, &counts[0]);
        assert!(hold(ONE, &counts[3], 0, 80 << 10).is_some());
    }

    #[test]
    fn some_connections_are_kept_for_others() {
        let shares = Shares::new(1 << 20, 8);
        for _ in 0..6 {
            assert!(shares.admits(ONE));
            shares.enter(ONE);
        }
        assert!(!shares.admits(ONE) && shares.admits(OTHER));
        shares.leave(ONE, 1);
        assert!(shares.admits(ONE));
        shares.leave(ONE, 100);
        assert!(shares.with(|all| all.clients.is_empty()));
    }

    #[test]
    fn buffers_that_wait_are_few() {
        let shares = Shares::new(1 << 20, 8);
        assert!(shares.keep(128 << 10) && !shares.keep(1));
        shares.unkeep(128 << 10);
        assert!(shares.keep(1));
    }
}
