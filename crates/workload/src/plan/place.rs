//! Place of a process among those that carry out one run together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LoadPlan;

/// Hosts that carry out a run together, and which of them this is. Plans of all of them are the same but for `rank`: amounts and rates
/// stand for all hosts, and each takes its share when its workers begin ([`LoadPlan::of_host`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostPlace {
    /// Number of this host, from 0.
    pub rank: u32,
    /// All of them.
    pub hosts: u32,
}

impl HostPlace {
    /// Number of a worker among those of all hosts: hosts have the same number of workers, and those of one host are neighbours.
    #[must_use]
    pub fn worker(self, worker: u32, threads: u32) -> u32 {
        self.rank * threads + worker
    }

    /// Share of an amount for all hosts; the first hosts take what does not divide.
    #[must_use]
    pub fn share(self, amount: u64) -> u64 {
        let (hosts, rank) = (u64::from(self.hosts.max(1)), u64::from(self.rank));
        amount / hosts + u64::from(rank < amount % hosts)
    }
}

/// Whether the hosts that carry out a run together see the same targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostTargets {
    /// All see the same: the load is dealt out to the workers of all hosts.
    Shared,
    /// Each has targets of its own under the same names: each does there what a run of its workers alone does.
    Own,
}

impl LoadPlan {
    /// The load of this host alone: its share of the amounts and of the rate.
    #[must_use]
    pub fn of_host(&self) -> Self {
        let mut load = self.clone();
        let Some(place) = load.place.take() else { return load };
        load.limit.operations = load.limit.operations.map(|operations| place.share(operations));
        load.limit.bytes = load.limit.bytes.map(|bytes| place.share(bytes));
        if let Some(arrivals) = &mut load.arrivals {
            arrivals.rate_per_second /= f64::from(place.hosts.max(1));
        }
        load.seed = crate::random::derive_seed(load.seed, &[u64::from(place.rank)]);
        load
    }

    /// Workers of all hosts.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.threads * self.place.map_or(1, |place| place.hosts)
    }

    /// Number of a worker of this host among those of all hosts.
    #[must_use]
    pub fn worker(&self, worker: u32) -> u32 {
        self.place.map_or(worker, |place| place.worker(worker, self.threads))
    }

    /// Whether this host shares its targets with other hosts.
    #[must_use]
    pub fn shares_targets(&self) -> bool {
        self.place.is_some() && self.host_targets != Some(HostTargets::Own)
    }

    /// Workers that share the targets: those of all hosts, or of this one alone where it has targets of its own.
    #[must_use]
    pub fn target_workers(&self) -> u32 {
        if self.shares_targets() { self.workers() } else { self.threads }
    }

    /// Number of a worker of this host among those that share its targets.
    #[must_use]
    pub fn target_worker(&self, worker: u32) -> u32 {
        if self.shares_targets() { self.worker(worker) } else { worker }
    }

    /// Whether this host makes and removes what those that share its targets have together.
    #[must_use]
    pub fn makes_targets(&self) -> bool {
        !self.shares_targets() || self.place.is_none_or(|place| place.rank == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_workers_are_numbered_once() {
        for (hosts, amount) in [(1, 7), (3, 0), (3, 7), (4, 1_000_003), (5, 4)] {
            let places = (0..hosts).map(|rank| HostPlace { rank, hosts });
            assert_eq!(places.clone().map(|place| place.share(amount)).sum::<u64>(), amount);
            let workers: Vec<u32> =
                places.flat_map(|place| (0..3).map(move |worker| place.worker(worker, 3))).collect();
            assert_eq!(workers, (0..3 * hosts).collect::<Vec<_>>());
        }
    }
}
