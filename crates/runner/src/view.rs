//! Snapshots for live views: one phase, or all that run at the same time as one.

use host::activity::Usage;
use statistics::{Histogram, Snapshot, SparseHistogram, Waiting};

use crate::phase::Phase;

/// Time between two snapshots.
const SNAPSHOT_NS: u64 = 100_000_000;
/// Names shown of phases that run at the same time.
const NAMES_MAX: usize = 3;

/// The state between two snapshots.
pub(crate) struct View {
    open_ns: u64,
    since_ns: u64,
    usage: Usage,
}

impl View {
    /// Begins when the first window opens.
    pub(crate) fn new(open_ns: u64) -> Self {
        Self { open_ns, since_ns: open_ns, usage: Usage::of_process() }
    }

    /// The phases as they look at `now`, when it is time for that; begins a new interval of the view.
    pub(crate) fn look(&mut self, phases: &mut [Phase], now: u64) -> Option<Snapshot> {
        if now < self.since_ns.saturating_add(SNAPSHOT_NS) {
            return None;
        }
        let seconds = (now - self.since_ns) as f64 / 1e9;
        let usage = Usage::of_process();
        let mut latency = Histogram::new();
        let is_one_of_several = phases.len() > 1;
        let mut leader = None;
        let parts = phases.iter_mut().map(|phase| {
            let mut snapshot = phase.snapshot(now, seconds, &mut latency);
            if is_one_of_several && phase.is_over() {
                snapshot.done_fraction = Some(1.0);
            }
            if phase.ends_others {
                leader = larger(leader, snapshot.done_fraction);
            }
            snapshot
        });
        let parts = parts.collect();
        let mut snapshot = combine(parts, leader);
        snapshot.elapsed_ns = now - self.open_ns;
        (snapshot.p50_ns, snapshot.p99_ns) = (latency.percentile(50.0), latency.percentile(99.0));
        snapshot.latency = SparseHistogram::from(&latency);
        snapshot.cpus_used = usage.since(&self.usage).cpu_ns() as f64 / 1e9 / seconds;
        (self.since_ns, self.usage) = (now, usage);
        Some(snapshot)
    }
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

/// Several phases as one: rates and counts add up by class, workers stand side by side, and no more is done than of the phase
/// that has done least, or of the one that the others end with.
fn combine(mut parts: Vec<Snapshot>, leader: Option<f64>) -> Snapshot {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut names: Vec<String> = Vec::new();
    let mut all = Snapshot::default();
    for part in parts {
        if !names.contains(&part.phase) {
            names.push(part.phase);
        }
        all.done_fraction = match (all.done_fraction, part.done_fraction) {
            (Some(least), Some(done)) => Some(f64::min(least, done)),
            (one, other) => one.or(other),
        };
        let rates = part.operations_per_second.into_iter().zip(part.bytes_per_second);
        for (class, (operations, bytes)) in part.classes.into_iter().zip(rates) {
            let place = all.classes.iter().position(|known| *known == class).unwrap_or_else(|| {
                all.classes.push(class);
                all.operations_per_second.push(0.0);
                all.bytes_per_second.push(0.0);
                all.classes.len() - 1
            });
            all.operations_per_second[place] += operations;
            all.bytes_per_second[place] += bytes;
        }
        all.operations += part.operations;
        all.bytes += part.bytes;
        all.errors += part.errors;
        all.waiting = Waiting::join(all.waiting, part.waiting);
        all.workers.extend(part.workers);
    }
    if names.len() > NAMES_MAX {
        names.truncate(NAMES_MAX);
        names.push("...".to_owned());
    }
    all.phase = names.join(" + ");
    all.done_fraction = larger(all.done_fraction, leader);
    all
}

#[cfg(test)]
mod tests {
    use statistics::WorkerSnapshot;

    use super::*;

    fn part(phase: &str, classes: &[(&str, f64)], done_fraction: Option<f64>) -> Snapshot {
        Snapshot {
            phase: phase.to_owned(),
            classes: classes.iter().map(|class| class.0.to_owned()).collect(),
            operations_per_second: classes.iter().map(|class| class.1).collect(),
            bytes_per_second: classes.iter().map(|class| class.1 * 4096.0).collect(),
            operations: 10,
            bytes: 100,
            errors: 1,
            done_fraction,
            workers: vec![WorkerSnapshot { operations: 10, ..WorkerSnapshot::default() }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn one_phase_stays_as_it_is() {
        let alone = part("a", &[("read", 5.0)], None);
        assert_eq!(combine(vec![alone.clone()], None), alone);
    }

    #[test]
    fn several_phases_add_up() {
        let parts = vec![
            part("a", &[("read", 5.0)], Some(0.5)),
            part("b", &[("write", 2.0), ("read", 1.0)], None),
            part("a", &[("write", 4.0)], Some(0.25)),
        ];
        assert_eq!(combine(parts.clone(), Some(0.5)).done_fraction, Some(0.5), "all end with the first");
        let all = combine(parts, None);
        assert_eq!((all.phase.as_str(), all.done_fraction), ("a + b", Some(0.25)));
        assert_eq!(all.classes, ["read", "write"]);
        assert_eq!(all.operations_per_second, [6.0, 6.0]);
        assert_eq!(all.bytes_per_second, [6.0 * 4096.0; 2]);
        assert_eq!((all.operations, all.bytes, all.errors, all.workers.len()), (30, 300, 3, 3));
    }

    #[test]
    fn more_than_three_names_are_cut() {
        let parts = ["a", "b", "c", "d", "e"].map(|name| part(name, &[], None));
        assert_eq!(combine(parts[..3].to_vec(), None).phase, "a + b + c");
        assert_eq!(combine(parts.to_vec(), None).phase, "a + b + c + ...");
    }
}
