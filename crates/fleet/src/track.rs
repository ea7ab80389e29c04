//! A host's clock over the length of a run: offset with bounds, drift, and steps.

use crate::clock::Exchange;

/// How fast two clocks may part while nobody sets them, in parts per billion: the kernel slews by 500 ppm at most (adjtimex), and crystals are off by less
/// than 100 ppm each.
const RATE_PPB_MAX: u64 = 700_000;
/// Samples that are kept between two steps.
const SAMPLES_MAX: usize = 64;

/// Bounds from one exchange: at this time the host's clock was ahead by something between the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    at_unix_ns: u64,
    low_ns: i128,
    high_ns: i128,
}

impl Sample {
    /// The answer cannot have left before the question came, so the offset lies between what came there and what left there say.
    fn of(exchange: &Exchange) -> Option<Self> {
        let difference = |there: u64, here: u64| i128::from(there) - i128::from(here);
        let low_ns = difference(exchange.sent_there, exchange.received);
        let high_ns = difference(exchange.received_there, exchange.sent);
        let at_unix_ns = u64::midpoint(exchange.sent, exchange.received);
        (low_ns <= high_ns && exchange.sent <= exchange.received).then_some(Self {
            at_unix_ns,
            low_ns,
            high_ns,
        })
    }

    /// Bounds at another time.
    fn bounds_at(&self, unix_ns: u64) -> (i128, i128) {
        let apart_ns =
            i128::from(self.at_unix_ns.abs_diff(unix_ns)) * i128::from(RATE_PPB_MAX) / 1_000_000_000;
        (self.low_ns - apart_ns, self.high_ns + apart_ns)
    }

    fn width_ns(&self) -> i128 {
        self.high_ns - self.low_ns
    }
}

/// How far a host's clock is ahead of that of this process at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBound {
    /// Best guess, nanoseconds.
    pub offset_ns: i64,
    /// The truth lies at most this far from it, nanoseconds.
    pub error_ns: u64,
}

/// How fast a host's clock runs away from that of this process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockDrift {
    /// Parts per million; positive where the host's clock is faster.
    pub ppm: f64,
    /// The truth lies at most this far from it, parts per million.
    pub error_ppm: f64,
}

/// A host's clock, or that of this process, was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// When it was noticed, by the clock of this process, nanoseconds since 1970.
    pub noticed_unix_ns: u64,
    /// By how much the host's clock went forward against that of this process, nanoseconds.
    pub step_ns: i64,
}

/// A host's clock against that of this process, from exchanges over the length of a run. Bounds hold whatever the delays of messages, in one direction or the
/// other, as long as the clocks run within 700 ppm of each other; where they cannot have, a clock was set, and what was known before counts no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockTrack {
    samples: Vec<Sample>,
    steps: Vec<ClockStep>,
}

impl ClockTrack {
    /// Takes an exchange; the step, where it tells of one. What contradicts itself (a clock that was set between question and answer) is left out.
    pub fn add(&mut self, exchange: &Exchange) -> Option<ClockStep> {
        let sample = Sample::of(exchange)?;
        let expected = self.interval(sample.at_unix_ns);
        let step = expected.filter(|(low, high)| sample.high_ns < *low || sample.low_ns > *high).map(
            |(low, high)| {
                let step_ns = i128::midpoint(sample.low_ns, sample.high_ns) - i128::midpoint(low, high);
                ClockStep { noticed_unix_ns: sample.at_unix_ns, step_ns: clamped(step_ns) }
            },
        );
        if let Some(step) = step {
            self.steps.push(step);
            self.samples.clear();
        }
        if self.samples.len() >= SAMPLES_MAX {
            self.thin();
        }
        self.samples.push(sample);
        step
    }

    /// Of every two neighbours the tighter one stays.
    fn thin(&mut self) {
        let tighter = |pair: &[Sample]| pair.iter().copied().min_by_key(Sample::width_ns);
        self.samples = self.samples.chunks(2).filter_map(tighter).collect();
    }

    /// Bounds of all samples together at a time; none without samples.
    fn interval(&self, unix_ns: u64) -> Option<(i128, i128)> {
        let bounds = self.samples.iter().map(|sample| sample.bounds_at(unix_ns));
        bounds.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))
    }

    /// How far the host's clock is ahead at a time of this process; none while nothing is known.
    #[must_use]
    pub fn at(&self, unix_ns: u64) -> Option<ClockBound> {
        let (low, high) = self.interval(unix_ns)?;
        // Samples that hold pairwise may leave no time in common: the middle of the gap, with all that is between.
        let error_ns = u64::try_from(((high - low).abs() + 1) / 2).unwrap_or(u64::MAX);
        Some(ClockBound { offset_ns: clamped(i128::midpoint(low, high)), error_ns })
    }

    /// How fast the clocks part; none before two exchanges at different times.
    #[must_use]
    pub fn drift(&self) -> Option<ClockDrift> {
        let half = self.samples.len() / 2;
        let tightest = |samples: &[Sample]| samples.iter().copied().min_by_key(Sample::width_ns);
        let (early, late) = (tightest(&self.samples[..half])?, tightest(&self.samples[half..])?);
        let span_ns = late.at_unix_ns.checked_sub(early.at_unix_ns).filter(|span| *span > 0)? as f64;
        let low = (late.low_ns - early.high_ns) as f64 / span_ns * 1e6;
        let high = (late.high_ns - early.low_ns) as f64 / span_ns * 1e6;
        Some(ClockDrift { ppm: f64::midpoint(low, high), error_ppm: (high - low) / 2.0 })
    }

    /// A time of this process by the host's clock, nanoseconds since 1970, and how far the truth is from it at most.
    #[must_use]
    pub fn there(&self, unix_ns: u64) -> Option<(u64, u64)> {
        let bound = self.at(unix_ns)?;
        Some((unix_ns.saturating_add_signed(bound.offset_ns), bound.error_ns))
    }

    /// How long after `planned_unix_ns` of this process something happened that the host saw at `seen_unix_ns` of its own clock, and how far the truth is
    /// from that at most; negative when it was early.
    #[must_use]
    pub fn lateness(&self, planned_unix_ns: u64, seen_unix_ns: u64) -> Option<(i64, u64)> {
        let (planned_there, error_ns) = self.there(planned_unix_ns)?;
        Some((clamped(i128::from(seen_unix_ns) - i128::from(planned_there)), error_ns))
    }

    /// When clocks were set.
    #[must_use]
    pub fn steps(&self) -> &[ClockStep] {
        &self.steps
    }
}

fn clamped(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: u64 = 1_700_000_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    /// An exchange at `at_ns` of a run, with a clock that is `offset_ns` ahead at the time and these delays.
    fn exchange(at_ns: u64, offset_ns: i64, there_ns: u64, back_ns: u64) -> Exchange {
        let sent = BASE + at_ns;
        let received_there = (sent + there_ns).saturating_add_signed(offset_ns);
        Exchange { sent, received_there, sent_there: received_there, received: sent + there_ns + back_ns }
    }

    fn ahead(first_ns: i64, ppm: f64, at_ns: u64) -> i64 {
        first_ns + (at_ns as f64 * ppm / 1e6) as i64
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_bounds_whatever_the_delays(
            offset_ns in -SECOND.cast_signed()..SECOND.cast_signed(),
            ppm in -500.0..500.0_f64,
            delays in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), 2..200),
        ) {
            let mut track = ClockTrack::default();
            for (second, (there_ns, back_ns)) in (0..).zip(&delays) {
                let at_ns = second * SECOND;
                let step = track.add(&exchange(at_ns, ahead(offset_ns, ppm, at_ns + there_ns), *there_ns, *back_ns));
                prop_assert_eq!(step, None);
            }
            let last_ns = (delays.len() as u64 - 1) * SECOND;
            for at_ns in [0, last_ns / 2, last_ns, last_ns + 10 * SECOND] {
                let bound = track.at(BASE + at_ns).expect("exchanges");
                let truth = ahead(offset_ns, ppm, at_ns);
                prop_assert!(bound.offset_ns.abs_diff(truth) <= bound.error_ns + 2, "{:?} {}", bound, truth);
            }
            let drift = track.drift().expect("two exchanges");
            prop_assert!((drift.ppm - ppm).abs() <= drift.error_ppm + 0.01, "{:?} {}", drift, ppm);
        }
    }

    #[test]
    fn one_quick_exchange_among_slow_ones_gives_the_bound() {
        let mut track = ClockTrack::default();
        // All the delay lies in one direction: half of it would be the error of each.
        for at in 0..8 {
            assert_eq!(track.add(&exchange(at * 1000, 70, 4_000_000, 100)), None);
        }
        track.add(&exchange(9000, 70, 10_000, 8_000));
        let bound = track.at(BASE + 9000).expect("exchanges");
        assert!(bound.error_ns <= 9_000 && bound.offset_ns.abs_diff(70) <= bound.error_ns, "{bound:?}");
    }

    #[test]
    fn drift_shows_after_a_while() {
        let mut track = ClockTrack::default();
        for second in 0..600 {
            let at_ns = second * SECOND;
            track.add(&exchange(at_ns, ahead(5, 40.0, at_ns), 50_000, 90_000));
        }
        let drift = track.drift().expect("exchanges");
        assert!((drift.ppm - 40.0).abs() < drift.error_ppm && drift.error_ppm < 1.5, "{drift:?}");
        assert!(track.samples.len() <= SAMPLES_MAX);
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_and_what_was_known_counts_no_more() {
        let mut track = ClockTrack::default();
        (0..20).for_each(|at| assert_eq!(track.add(&exchange(at * SECOND, 0, 50_000, 50_000)), None));
        let step = track.add(&exchange(20 * SECOND, 3_000_000_000, 50_000, 50_000)).expect("it was set");
        assert!(step.step_ns.abs_diff(3_000_000_000) < 20_000_000, "{step:?}");
        assert_eq!(track.steps(), [step]);
        let bound = track.at(BASE + 20 * SECOND).expect("an exchange");
        assert!(bound.offset_ns.abs_diff(3_000_000_000) <= bound.error_ns, "{bound:?}");
        // A clock that goes back while a question is under way tells nothing.
        let torn = Exchange { sent: 10, received_there: u64::MAX, sent_there: 0, received: 5 };
        assert_eq!(track.clone().add(&torn), None);
        assert_eq!(ClockTrack::default().at(BASE), None);
    }

    #[test]
    fn starts_are_told_in_the_hosts_clock_and_lateness_in_ours() {
        let mut track = ClockTrack::default();
        track.add(&exchange(0, 1_000_000, 10_000, 10_000));
        let start = BASE + 20_000;
        let (there, error_ns) = track.there(start).expect("an exchange");
        assert_eq!(there, start + 1_000_000);
        assert!((10_000..10_100).contains(&error_ns), "{error_ns}");
        assert_eq!(track.lateness(start, there + 700), Some((700, error_ns)));
        assert_eq!(track.lateness(start, there - 300), Some((-300, error_ns)));
    }
}
