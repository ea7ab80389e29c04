//! Place of a process among those that carry out one run together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LoadPlan;

/// Hosts that carry out a run together, and which of them this is. Plans of all of them are the same but for `rank`: amounts and rates
/// stand for all hosts, and each takes its share when its workers begin ([`LoadPlan::of_host`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostPlace {
    /// Number of this host, from 0.
    pub rank: u32,
    /// Number of hosts that execute the phase: the first ones of the run.
    pub hosts: u32,
    /// Number of hosts of the run, if the phase has fewer (`hosts_used` of a phase); 0: as many as the phase.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_hosts: u32,
    /// Whether the hosts have the same targets.
    #[serde(default)]
    pub targets: HostTargets,
    /// This host does the part of the host that many ranks before it (`--rotate-hosts`); it creates and removes the files of its own rank.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rotated: u32,
    /// Workers of all hosts of the phase, where these have different numbers of threads (`--host-options`); 0: as many on each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub workers: u32,
    /// Number of the first worker of this host among those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_worker: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A store that one process alone can have open, and the target by which an engine of the run serves it to several of one machine. What these make is
/// noted as made in the store: the engine ends with the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedStore {
    /// The store, as the processes would name it if each were alone: its path is absolute.
    pub store: String,
    /// The target that they use.
    pub target: String,
}

/// Targets of hosts that carry out a run together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostTargets {
    /// All hosts have the same targets, which are divided among the workers of all hosts.
    #[default]
    Shared,
    /// Each host has its own targets, which are divided among its own workers.
    Own,
}

impl HostPlace {
    /// Whether the targets are shared, and made and removed by another host.
    #[must_use]
    pub fn is_guest(self) -> bool {
        self.targets == HostTargets::Shared && self.rank > 0
    }

    /// All hosts of the run.
    #[must_use]
    pub fn of_run(self) -> u32 {
        self.hosts.max(self.run_hosts)
    }

    /// Whether the phase is one of fewer hosts than the run has.
    #[must_use]
    pub fn is_subset(self) -> bool {
        self.of_run() > self.hosts
    }

    /// Whether this host carries the phase out, and does not wait for those that do.
    #[must_use]
    pub fn takes_part(self) -> bool {
        self.rank < self.hosts
    }

    /// The rank whose part of the work this host has.
    #[must_use]
    pub fn part(self) -> u32 {
        let hosts = self.hosts.max(1);
        (self.rank + hosts - self.rotated % hosts) % hosts
    }

    /// Whether the hosts have different numbers of workers.
    #[must_use]
    pub fn is_uneven(self) -> bool {
        self.workers > 0
    }

    /// Workers of all hosts of the phase, where this one has so many `threads`.
    #[must_use]
    pub fn workers_of_all(self, threads: u32) -> u32 {
        if self.is_uneven() { self.workers } else { threads * self.hosts }
    }

    /// Number of a worker among those of all hosts, by its part of the work; those of one host are neighbours.
    #[must_use]
    pub fn worker(self, worker: u32, threads: u32) -> u32 {
        let first = if self.is_uneven() { self.first_worker } else { self.part() * threads };
        first + worker
    }

    /// Share of an amount for all hosts, of one with so many `threads`: as many parts as it has workers. Of even hosts the first take what does not
    /// divide.
    #[must_use]
    pub fn share(self, amount: u64, threads: u32) -> u64 {
        if self.is_uneven() {
            let before = |workers: u32| {
                let part = u128::from(amount) * u128::from(workers) / u128::from(self.workers);
                u64::try_from(part).unwrap_or(amount)
            };
            return before(self.first_worker + threads) - before(self.first_worker);
        }
        let (hosts, rank) = (u64::from(self.hosts.max(1)), u64::from(self.part()));
        amount / hosts + u64::from(rank < amount % hosts)
    }
}

impl LoadPlan {
    /// The load of this host alone: its share of the amounts and of the rate.
    #[must_use]
    pub fn of_host(&self) -> Self {
        let mut load = self.clone();
        let Some(place) = load.place.take() else { return load };
        let share = |amount| place.share(amount, self.threads);
        load.limit.operations = load.limit.operations.map(share);
        load.limit.bytes = load.limit.bytes.map(share);
        if let Some(arrivals) = &mut load.arrivals {
            arrivals.rate_per_second *= f64::from(self.threads) / f64::from(self.workers_of_all().max(1));
        }
        load.seed = crate::random::derive_seed(load.seed, &[u64::from(place.part())]);
        load
    }

    /// Whether the hosts of the phase have different numbers of workers.
    #[must_use]
    pub fn is_uneven(&self) -> bool {
        self.place.is_some_and(HostPlace::is_uneven)
    }

    /// Leaves out workers that would have nothing to do, of work in so many parts. Workers of hosts of different sizes are numbered one after the other,
    /// so that none of them can be left out.
    pub fn limit_threads(&mut self, parts: u64) {
        if !self.is_uneven() {
            self.threads = self.threads.min(u32::try_from(parts).unwrap_or(u32::MAX));
        }
    }

    /// Workers of all hosts.
    #[must_use]
    pub fn workers_of_all(&self) -> u32 {
        self.place.map_or(self.threads, |place| place.workers_of_all(self.threads))
    }

    /// Workers that the targets are shared out to: those of all hosts, or of this one where each has its own targets.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.shared().map_or(self.threads, |place| place.workers_of_all(self.threads))
    }

    /// Number of a worker of this host among [`LoadPlan::workers`].
    #[must_use]
    pub fn worker(&self, worker: u32) -> u32 {
        self.shared().map_or(worker, |place| place.worker(worker, self.threads))
    }

    /// The same by the rank of this host, whatever part of the work it has: for what belongs to the host, such as what it removes at the end.
    #[must_use]
    pub fn worker_by_rank(&self, worker: u32) -> u32 {
        let by_rank = |place: HostPlace| HostPlace { rotated: 0, ..place }.worker(worker, self.threads);
        self.shared().map_or(worker, by_rank)
    }

    /// Number of a worker of this host among the workers of all hosts.
    #[must_use]
    pub fn worker_of_all(&self, worker: u32) -> u32 {
        self.place.map_or(worker, |place| place.worker(worker, self.threads))
    }

    /// Whether other hosts of the run, of this phase or not, have the same targets.
    #[must_use]
    pub fn has_guests(&self) -> bool {
        self.shared().is_some_and(|place| place.of_run() > 1)
    }

    /// The place among hosts that share the targets.
    fn shared(&self) -> Option<HostPlace> {
        self.place.filter(|place| place.targets == HostTargets::Shared)
    }

    /// Whether another host makes and removes what the load needs.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        self.place.is_some_and(HostPlace::is_guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn shares_add_up_and_workers_are_numbered_once() {
        for (hosts, amount) in [(1, 7), (3, 0), (3, 7), (4, 1_000_003), (5, 4)] {
            let places = (0..hosts).map(|rank| HostPlace { rank, hosts, ..HostPlace::default() });
            assert_eq!(places.clone().map(|place| place.share(amount, 3)).sum::<u64>(), amount);
            let workers: Vec<u32> =
                places.flat_map(|place| (0..3).map(move |worker| place.worker(worker, 3))).collect();
            assert_eq!(workers, (0..3 * hosts).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hosts_of_different_sizes_have_the_shares_of_their_workers() {
        let threads = [1, 4, 0, 3];
        let workers: u32 = threads.iter().sum();
        let place = |rank: usize| HostPlace {
            rank: rank as u32,
            hosts: 4,
            workers,
            first_worker: threads[..rank].iter().sum(),
            ..HostPlace::default()
        };
        for amount in [0, 7, 8, 1_000_003, u64::MAX] {
            let shares: Vec<u64> = (0..4).map(|rank| place(rank).share(amount, threads[rank])).collect();
            assert_eq!(shares.iter().copied().map(u128::from).sum::<u128>(), u128::from(amount));
            let even = amount / u64::from(workers);
            for (share, threads) in shares.iter().zip(threads) {
                assert!(share.abs_diff(even * u64::from(threads)) <= u64::from(workers), "{shares:?}");
            }
        }
        let numbered = (0..4)
            .flat_map(|rank| (0..threads[rank]).map(move |worker| place(rank).worker(worker, threads[rank])));
        assert_eq!(numbered.collect::<Vec<_>>(), (0..workers).collect::<Vec<_>>());
        assert_eq!(
            (place(1).workers_of_all(4), HostPlace { hosts: 4, ..HostPlace::default() }.workers_of_all(3)),
            (8, 12)
        );
    }

    #[test]
    fn rotated_hosts_have_each_part_once_and_keep_what_is_theirs() {
        for (hosts, rotated) in [(1, 0), (2, 1), (3, 2), (4, 3), (4, 5), (5, 0)] {
            let places = (0..hosts).map(|rank| HostPlace { rank, hosts, rotated, ..HostPlace::default() });
            let mut parts: Vec<u32> = places.clone().map(HostPlace::part).collect();
            assert_eq!(parts[(rotated % hosts) as usize], 0, "the host that has gone on by so many begins");
            parts.sort_unstable();
            assert_eq!(parts, (0..hosts).collect::<Vec<_>>());
            assert_eq!(places.clone().map(|place| place.share(7, 3)).sum::<u64>(), 7);
            assert_eq!(places.filter(|place| place.is_guest()).count() as u32, hosts - 1);
        }
        let place = HostPlace { rank: 1, hosts: 3, rotated: 1, ..HostPlace::default() };
        let text = serde_json::to_string(&place).unwrap();
        assert_eq!(text, r#"{"rank":1,"hosts":3,"targets":"shared","rotated":1}"#);
        assert_eq!(serde_json::from_str::<HostPlace>(&text).unwrap(), place);
        let before: HostPlace = serde_json::from_str(r#"{"rank":1,"hosts":3,"targets":"own"}"#).unwrap();
        assert_eq!((before.rotated, before.part()), (0, 1));
    }

    #[test]
    fn a_phase_of_fewer_hosts_is_shared_out_to_these() {
        let places = (0..4).map(|rank| HostPlace { rank, hosts: 2, run_hosts: 4, ..HostPlace::default() });
        let part: Vec<bool> = places.clone().map(HostPlace::takes_part).collect();
        assert_eq!(part, [true, true, false, false]);
        assert_eq!(places.clone().take(2).map(|place| place.share(7, 3)).collect::<Vec<_>>(), [4, 3]);
        // Those outside plan it too, and every number that they come to is one of the phase.
        assert!(places.clone().all(|place| place.is_subset() && place.worker(2, 3) < 6));
        let of_one = |run_hosts| {
            let place = Some(HostPlace { hosts: 1, run_hosts, ..HostPlace::default() });
            let load = crate::plan::load(&Spec { place, ..Spec::default() }, 1, None, 0).unwrap();
            (load.workers(), load.has_guests())
        };
        assert_eq!((of_one(4), of_one(0)), ((1, true), (1, false)));
        let text =
            serde_json::to_string(&HostPlace { hosts: 1, run_hosts: 2, ..HostPlace::default() }).unwrap();
        assert_eq!(text, r#"{"rank":0,"hosts":1,"run_hosts":2,"targets":"shared"}"#);
    }
}
