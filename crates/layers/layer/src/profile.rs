//! Where the time of workers goes: from the samples of a phase alone, which are taken anyway.

use statistics::{PhaseSamples, WorkerSamples};
use workload::plan::{LayerPlan, LoadPlan, PhasePlan};

use crate::observations::{GroupProfile, Observations, Profile, ProfilePart};
use crate::stage::Seen;

/// Share of a group's time from which on a part is expensive: named with its remedy, or one to try a remedy for.
pub const EXPENSIVE_SHARE_MIN: f64 = 0.05;

/// Parts of the time beside the calls, in the order of tables.
const BESIDE: [&str; 7] = ["starting", "filling", "checking", "strata", "schedule", "ended", "other"];
const STARTING: usize = 0;
const FILLING: usize = 1;
const CHECKING: usize = 2;
const TOOL: usize = 3;
const SCHEDULE: usize = 4;
const ENDED: usize = 5;
const OTHER: usize = 6;

/// The breakdown of a phase, where its plan asks for one.
#[must_use]
pub fn of(plan: &dyn LayerPlan, samples: &PhaseSamples) -> Option<Profile> {
    let load = plan.load();
    if !load.profile {
        return None;
    }
    let names = plan.profile_groups();
    let mut groups: Vec<Sums> = names.iter().map(|_| Sums::new(samples)).collect();
    let wall_ns = wall_ns(samples);
    for worker in &samples.workers {
        let group = plan.profile_group(worker.worker as u32);
        let Some(group) = group.and_then(|group| groups.get_mut(group)) else { continue };
        group.add(worker, wall_ns, load);
    }
    // The series has the time in flight of all workers, so only of a group that has all of them.
    if let ([group], true) = (&mut groups[..], load.arrivals.is_some()) {
        group.limit_to_flight(samples);
    }
    let groups = names.iter().zip(groups).map(|(name, group)| group.into_profile(name, samples));
    Some(Profile { groups: groups.collect() })
}

/// Outcome and observations of a phase, with the breakdown where its plan asks for one.
#[must_use]
pub fn added(plan: &PhasePlan, (outcome, observations): Seen) -> Seen {
    let profile = of(&**plan, &outcome.samples);
    (outcome, Observations { profile, ..observations })
}

/// From the begin of the phase until the last call of its last worker had come back.
fn wall_ns(samples: &PhaseSamples) -> u64 {
    let ends = samples.workers.iter().map(end_ns);
    ends.max().unwrap_or(0).max(samples.elapsed_ns)
}

fn end_ns(worker: &WorkerSamples) -> u64 {
    worker.finished_ns.saturating_add(worker.drain_ns)
}

/// Divides a time in the ratio of `weights`, to a nanosecond; what rounding leaves goes to the largest.
fn shared_out(time_ns: u64, weights: &[u64]) -> Vec<u64> {
    let whole: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let share = |&weight: &u64| (u128::from(time_ns) * u128::from(weight) / whole.max(1)) as u64;
    let mut shares: Vec<u64> = weights.iter().map(share).collect();
    if whole > 0 {
        let left_ns = time_ns - shares.iter().sum::<u64>();
        shares.iter_mut().max().into_iter().for_each(|largest| *largest += left_ns);
    }
    shares
}

/// Time that is in no part yet. Parts take from it, so that together they never have more than there was.
struct Left(u64);

impl Left {
    fn take(&mut self, time_ns: u64) -> u64 {
        let taken_ns = time_ns.min(self.0);
        self.0 -= taken_ns;
        taken_ns
    }
}

/// Sums of a group, in nanoseconds.
struct Sums {
    workers: u32,
    wall_ns: u64,
    /// Calls of each class of the phase, and their time.
    calls: Vec<u64>,
    calls_ns: Vec<u64>,
    /// By their place in [`BESIDE`].
    beside_ns: [u64; BESIDE.len()],
    has_errors: bool,
    is_shared: bool,
}

impl Sums {
    fn new(samples: &PhaseSamples) -> Self {
        Self {
            workers: 0,
            wall_ns: 0,
            calls: vec![0; samples.classes.len()],
            calls_ns: vec![0; samples.classes.len()],
            beside_ns: [0; BESIDE.len()],
            has_errors: false,
            is_shared: false,
        }
    }

    /// Adds the time of a worker. With one call at a time its parts follow each other. With several, what strata itself does may lie beside
    /// calls in flight: it is told as such, and the rest of the time is that of the calls.
    fn add(&mut self, worker: &WorkerSamples, wall_ns: u64, load: &LoadPlan) {
        let mut left = Left(wall_ns);
        let latencies: Vec<u64> = worker
            .classes
            .iter()
            .map(|class| u64::try_from(class.latency.sum_ns()).unwrap_or(u64::MAX))
            .collect();
        let latencies_ns = latencies.iter().fold(0u64, |sum, &ns| sum.saturating_add(ns));
        let has_errors = worker.classes.iter().any(|class| class.errors > 0);
        let tool_ns = worker.tool_ns.saturating_sub(worker.fill_ns).saturating_sub(worker.verify_ns);
        let ended_ns = wall_ns - end_ns(worker).min(wall_ns);
        let is_idle = latencies_ns == 0 && !has_errors;
        let started_ns = if is_idle { 0 } else { worker.started_ns };
        self.beside_ns[FILLING] += left.take(worker.fill_ns);
        self.beside_ns[CHECKING] += left.take(worker.verify_ns);
        self.beside_ns[TOOL] += left.take(tool_ns);
        let in_calls_ns;
        if load.depth == 1 && load.arrivals.is_none() {
            in_calls_ns = left.take(latencies_ns);
            self.beside_ns[ENDED] += left.take(ended_ns);
            // The work of strata before the first call has been taken already, and no more than the rest is left of it.
            self.beside_ns[STARTING] += left.take(started_ns);
        } else {
            self.beside_ns[ENDED] += left.take(ended_ns);
            self.beside_ns[STARTING] += left.take(started_ns.saturating_sub(worker.tool_ns));
            in_calls_ns = left.take(latencies_ns);
        }
        let is_paced =
            load.arrivals.is_some() || ((load.think.is_some() || load.control.flow.is_some()) && !has_errors);
        self.beside_ns[if is_paced { SCHEDULE } else { OTHER }] += left.0;
        self.is_shared |= in_calls_ns < latencies_ns;
        self.has_errors |= has_errors;
        for (at, ns) in shared_out(in_calls_ns, &latencies).into_iter().enumerate() {
            self.calls[at] += worker.classes[at].latency.count();
            self.calls_ns[at] += ns;
        }
        (self.workers, self.wall_ns) = (self.workers + 1, self.wall_ns + wall_ns);
    }

    /// An open loop: latencies count from when calls were due, so that they overlap even with one call at a time. How long calls were in
    /// flight stands in the series, each counted: no less than the time in which any was.
    fn limit_to_flight(&mut self, samples: &PhaseSamples) {
        let told = samples.series.points.iter().filter_map(|point| point.in_flight_ns);
        let Some(in_window_ns) = told.reduce(u64::saturating_add) else { return };
        let drained_ns: u64 = samples.workers.iter().map(|worker| worker.drain_ns).sum();
        let calls_ns: u64 = self.calls_ns.iter().sum();
        let free_ns = calls_ns + self.beside_ns[SCHEDULE];
        // Failed calls were in flight too, but have no latency.
        let most_ns = if self.has_errors { free_ns } else { calls_ns };
        let flight_ns = in_window_ns.saturating_add(drained_ns).min(most_ns);
        if flight_ns < calls_ns {
            self.calls_ns = shared_out(flight_ns, &self.calls_ns);
            self.is_shared = true;
        }
        self.beside_ns[OTHER] += flight_ns.saturating_sub(calls_ns);
        self.beside_ns[SCHEDULE] = free_ns - flight_ns;
    }

    fn into_profile(self, name: &str, samples: &PhaseSamples) -> GroupProfile {
        let calls = self.calls.into_iter().zip(self.calls_ns);
        let calls = samples.classes.iter().zip(calls).map(|(class, (calls, time_ns))| ProfilePart {
            name: class.clone(),
            calls,
            time_ns,
        });
        let part = |(name, time_ns): (&str, u64)| ProfilePart { name: name.to_owned(), calls: 0, time_ns };
        let parts = calls.chain(BESIDE.into_iter().zip(self.beside_ns).map(part));
        GroupProfile {
            name: name.to_owned(),
            processes: self.workers,
            wall_ns: self.wall_ns,
            is_shared: self.is_shared,
            parts: parts.filter(|part| part.time_ns > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
