//! The machine over the time of a phase: what others used, and what was sent again.

use host::activity::{CpuTimes, Usage};
use host::network::TcpCounters;

use crate::observations::TimelinePoint;

/// Shortest part: a reading takes some 100 us of the thread that coordinates, and the kernel counts in ticks of up to 10 ms.
const PART_NS_MIN: u64 = 250_000_000;
/// Most parts of a phase. A longer one has longer parts.
const PARTS_MAX: usize = 128;

/// Counters at a moment.
struct Reading {
    at_ns: u64,
    machine: Option<CpuTimes>,
    own_user_ns: u64,
    retransmitted: Option<u64>,
}

impl Reading {
    fn take(at_ns: u64) -> Self {
        Self {
            at_ns,
            machine: CpuTimes::read(),
            own_user_ns: Usage::of_process().user_ns,
            retransmitted: TcpCounters::read_basic().and_then(|counters| counters.retransmitted_segments),
        }
    }

    /// The part between an earlier reading and this one.
    fn since(&self, earlier: &Self) -> TimelinePoint {
        let elapsed_ns = self.at_ns.saturating_sub(earlier.at_ns).max(1) as f64;
        let own_ns = self.own_user_ns.saturating_sub(earlier.own_user_ns);
        let machine = self.machine.zip(earlier.machine).map(|(now, before)| now.since(&before));
        let again = self.retransmitted.zip(earlier.retransmitted);
        TimelinePoint {
            start_ns: earlier.at_ns,
            end_ns: self.at_ns,
            other_cpus_user: machine
                .map(|machine| machine.user_ns.saturating_sub(own_ns) as f64 / elapsed_ns),
            tcp_retransmitted_segments: again.map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// Readings while a stage runs. They are taken by the thread that coordinates it, between two looks at the workers.
#[derive(Default)]
pub(crate) struct Timeline {
    last: Option<Reading>,
    points: Vec<TimelinePoint>,
    /// How often parts were joined in pairs: each time they become twice as long.
    doublings: u32,
}

impl Timeline {
    /// Takes a reading where it is time for one; `elapsed_ns` is the time since the phase began.
    pub(crate) fn look(&mut self, elapsed_ns: u64) {
        let length_ns = PART_NS_MIN << self.doublings;
        let is_due = self.last.as_ref().is_none_or(|last| elapsed_ns >= last.at_ns + length_ns);
        if is_due {
            self.add(Reading::take(elapsed_ns));
        }
    }

    fn add(&mut self, now: Reading) {
        if let Some(last) = &self.last {
            self.points.push(now.since(last));
        }
        self.last = Some(now);
        if self.points.len() > PARTS_MAX {
            self.points = self.points.chunks(2).map(joined).collect();
            self.doublings += 1;
        }
    }

    /// The parts, in their order.
    pub(crate) fn into_points(self) -> Vec<TimelinePoint> {
        self.points
    }
}

/// Two parts as one.
fn joined(parts: &[TimelinePoint]) -> TimelinePoint {
    let [first, second] = parts else { return parts[0].clone() };
    let length = |point: &TimelinePoint| (point.end_ns - point.start_ns) as f64;
    let all = (length(first) + length(second)).max(1.0);
    TimelinePoint {
        start_ns: first.start_ns,
        end_ns: second.end_ns,
        other_cpus_user: first
            .other_cpus_user
            .zip(second.other_cpus_user)
            .map(|(one, two)| (one * length(first) + two * length(second)) / all),
        tcp_retransmitted_segments: first
            .tcp_retransmitted_segments
            .zip(second.tcp_retransmitted_segments)
            .map(|(one, two)| one + two),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of a machine on which others use half a CPU, this process one, and a segment is sent again each part.
    fn reading(part: u64) -> Reading {
        let at_ns = part * PART_NS_MIN;
        Reading {
            at_ns,
            machine: Some(CpuTimes { user_ns: at_ns + at_ns / 2, ..CpuTimes::default() }),
            own_user_ns: at_ns,
            retransmitted: Some(part),
        }
    }

    #[test]
    fn parts_join_and_nothing_is_lost() {
        for count in [0, 1, 2, 100, 128, 129, 400, 1000] {
            let mut timeline = Timeline::default();
            (0..=count).for_each(|part| timeline.add(reading(part)));
            let points = timeline.into_points();
            assert!(points.len() <= PARTS_MAX && (count == 0 || !points.is_empty()), "{count}");
            assert!(points.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "{count}");
            let again: u64 = points.iter().filter_map(|point| point.tcp_retransmitted_segments).sum();
            assert_eq!(again, count, "every segment is in one part");
            assert!(
                points.iter().all(|point| (point.other_cpus_user.unwrap() - 0.5).abs() < 1e-9),
                "{count}"
            );
        }
    }

    #[test]
    fn readings_are_far_enough_apart() {
        let mut timeline = Timeline::default();
        (0..40).for_each(|at| timeline.look(at * 100_000_000));
        let points = timeline.into_points();
        assert!((10..=16).contains(&points.len()), "{points:?}");
        assert!(points.iter().all(|point| point.end_ns - point.start_ns >= PART_NS_MIN), "{points:?}");
    }

    #[test]
    fn counters_that_are_not_known_are_none() {
        let unknown = |at_ns| Reading { at_ns, machine: None, own_user_ns: 0, retransmitted: None };
        let point = unknown(PART_NS_MIN).since(&unknown(0));
        assert!(point.other_cpus_user.is_none() && point.tcp_retransmitted_segments.is_none());
    }
}
