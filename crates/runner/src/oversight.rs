//! Limits that a phase is held against while it runs: a rate that is too low, a state that is steady.

use statistics::{Plateau, SteadyEnding};
use units::human_rate;
use workload::control::{Control, SteadyEnd, SteadyFigure};

/// Verdict of a look.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    GoesOn,
    Ends,
    Fails(String),
}

/// Completions of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    /// Latencies that were told, and their sum.
    pub(crate) timed: u64,
    pub(crate) latency_ns: u128,
}

/// Operations, bytes and latencies by interval of a fixed length.
struct Bins {
    length_ns: u64,
    bins: Vec<Done>,
}

impl Bins {
    fn add(&mut self, start_ns: u64, done: Done) {
        let at = (start_ns / self.length_ns) as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, Done::default());
        }
        let bin = &mut self.bins[at];
        bin.operations += done.operations;
        bin.bytes += done.bytes;
        bin.timed += done.timed;
        bin.latency_ns += done.latency_ns;
    }

    /// Intervals that are whole at `now_ns`, and had time to be handed over.
    fn whole(&self, now_ns: u64) -> usize {
        (now_ns.saturating_sub(self.length_ns / 4) / self.length_ns) as usize
    }

    /// Rates of an interval, a second.
    fn rates(&self, at: usize) -> (f64, f64) {
        let done = self.bins.get(at).copied().unwrap_or_default();
        let seconds = self.length_ns as f64 / 1e9;
        (done.operations as f64 / seconds, done.bytes as f64 / seconds)
    }

    /// Mean latency of an interval; 0 where nothing completed.
    fn latency_ns(&self, at: usize) -> f64 {
        let done = self.bins.get(at).copied().unwrap_or_default();
        if done.timed > 0 { done.latency_ns as f64 / done.timed as f64 } else { 0.0 }
    }
}

/// Holds a phase against the limits of its control. Times count from the opening of the window.
pub(crate) struct Oversight {
    steady: Option<(SteadyEnd, Bins)>,
    least: Option<(Bins, f64, f64)>,
    /// Intervals looked at.
    seen: (usize, usize),
    ending: SteadyEnding,
}

impl Oversight {
    /// Where a load asks for it.
    pub(crate) fn new(control: &Control) -> Option<Self> {
        let bins = |length_ns| Bins { length_ns, bins: Vec::new() };
        let steady = control.steady.map(|steady| (steady, bins(steady.interval_ns)));
        let has_least = control.rate_min.is_some() || control.rate_bytes_min.is_some();
        let least = has_least.then(|| {
            let cycle = bins(control.rate_cycle_ns.unwrap_or(1_000_000_000));
            (cycle, control.rate_min.unwrap_or(0.0), control.rate_bytes_min.unwrap_or(0) as f64)
        });
        let is_needed = steady.is_some() || least.is_some();
        is_needed.then(|| Self { steady, least, seen: (0, 0), ending: SteadyEnding::default() })
    }

    /// Longest intervals that workers may hand over, in nanoseconds.
    pub(crate) fn interval_ns_max(&self) -> u64 {
        let steady = self.steady.iter().map(|(_, bins)| bins.length_ns);
        let least = self.least.iter().map(|(bins, ..)| bins.length_ns);
        (steady.chain(least).min().unwrap_or(u64::MAX) / 20).max(1_000_000)
    }

    /// Adds what was done in an interval that began at `start_ns`.
    pub(crate) fn add(&mut self, start_ns: u64, done: Done) {
        if let Some((_, bins)) = &mut self.steady {
            bins.add(start_ns, done);
        }
        if let Some((bins, ..)) = &mut self.least {
            bins.add(start_ns, done);
        }
    }

    /// Looks at what is whole at `now_ns`.
    pub(crate) fn look(&mut self, now_ns: u64) -> Verdict {
        if let Some((bins, least, least_bytes)) = &self.least {
            while self.seen.0 < bins.whole(now_ns) {
                let (rate, bytes) = bins.rates(self.seen.0);
                self.seen.0 += 1;
                let too_low = if rate < *least {
                    Some((format!("{} operations/s", human_rate(rate)), format!("{}/s", human_rate(*least))))
                } else if bytes < *least_bytes {
                    let shown = |bytes| format!("{}B/s", human_rate(bytes));
                    Some((shown(bytes), shown(*least_bytes)))
                } else {
                    None
                };
                if let Some((moved, asked)) = too_low {
                    let seconds = bins.length_ns as f64 / 1e9;
                    return Verdict::Fails(format!(
                        "the rate fell below its minimum: {moved} over {seconds} s (required: at least {asked})"
                    ));
                }
            }
        }
        self.look_steady(now_ns)
    }

    fn look_steady(&mut self, now_ns: u64) -> Verdict {
        let Some((steady, bins)) = &self.steady else { return Verdict::GoesOn };
        let whole = bins.whole(now_ns);
        let judged = (steady.span_ns / steady.interval_ns) as usize;
        let left_out = steady.ramp_ns.div_ceil(steady.interval_ns) as usize;
        if whole <= self.seen.1 || whole < left_out + judged {
            return Verdict::GoesOn;
        }
        self.seen.1 = whole;
        let (rates, bytes): (Vec<f64>, Vec<f64>) = (whole - judged..whole).map(|at| bins.rates(at)).unzip();
        let latency_ns: Vec<f64> = (whole - judged..whole).map(|at| bins.latency_ns(at)).collect();
        let values = match steady.figure {
            SteadyFigure::Iops | SteadyFigure::IopsSlope => &rates,
            SteadyFigure::Bandwidth | SteadyFigure::BandwidthSlope => &bytes,
            SteadyFigure::Latency | SteadyFigure::LatencySlope => &latency_ns,
        };
        let Some(plateau) = Plateau::of(values) else { return Verdict::GoesOn };
        let held = if steady.figure.is_slope() { plateau.slope.abs() } else { plateau.deviation_max };
        // A load that does nothing is not steady.
        let criterion = if steady.is_percent { 100.0 * held / plateau.mean } else { held };
        let attained = plateau.mean > 0.0 && criterion <= steady.limit;
        self.ending = SteadyEnding {
            attained,
            criterion: if criterion.is_finite() { criterion } else { 0.0 },
            deviation_max: plateau.deviation_max,
            slope: plateau.slope,
            operations_per_second: rates,
            bytes_per_second: bytes,
            latency_ns,
        };
        if attained { Verdict::Ends } else { Verdict::GoesOn }
    }

    /// Outcome of waiting for a steady state, where it was waited for.
    pub(crate) fn into_ending(self) -> Option<SteadyEnding> {
        self.steady.map(|_| self.ending)
    }
}

#[cfg(test)]
mod tests {
    use workload::control::parse_steady;

    use super::*;

    fn fed(control: &Control, rates: &[u64]) -> (Vec<Verdict>, Option<SteadyEnding>) {
        let mut oversight = Oversight::new(control).unwrap();
        let mut verdicts = Vec::new();
        for (second, rate) in rates.iter().enumerate() {
            for part in 0..10 {
                let operations = rate / 10;
                // As much work whatever the rate: latency falls as the rate climbs.
                let done = Done {
                    operations,
                    bytes: operations * 4096,
                    timed: operations,
                    latency_ns: u128::from(operations.min(1)) * 100_000_000,
                };
                oversight.add(second as u64 * 1_000_000_000 + part * 100_000_000, done);
            }
            verdicts.push(oversight.look(second as u64 * 1_000_000_000 + 1_300_000_000));
        }
        (verdicts, oversight.into_ending())
    }

    #[test]
    fn a_plateau_ends_the_phase_and_a_climb_does_not() {
        let steady = Some(parse_steady("iops:10%:3s:1s").unwrap());
        let control = Control { steady, ..Control::default() };
        let (verdicts, ending) = fed(&control, &[50, 100, 200, 400, 1000, 1000, 950, 1000]);
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Verdict::Ends), Some(6));
        let ending = ending.unwrap();
        assert!(ending.attained && ending.criterion < 10.0, "{ending:?}");
        assert_eq!(ending.operations_per_second, [1000.0, 950.0, 1000.0]);
        let latency = Control { steady: Some(parse_steady("lat:10%:3s:1s").unwrap()), ..Control::default() };
        let (verdicts, ending) = fed(&latency, &[50, 100, 200, 400, 1000, 1000, 950, 1000]);
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Verdict::Ends), Some(6));
        let latencies = ending.unwrap().latency_ns;
        assert!((latencies[0] - 1e6).abs() < 1.0 && latencies[1] > 1.05e6, "{latencies:?}");
        let (verdicts, ending) = fed(&control, &[0, 0, 0, 0, 0]);
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::GoesOn) && !ending.unwrap().attained);
    }

    #[test]
    fn a_rate_below_the_least_fails_the_phase() {
        let control = Control { rate_min: Some(100.0), ..Control::default() };
        let (verdicts, ending) = fed(&control, &[100, 150, 90]);
        assert_eq!(verdicts[..2], [Verdict::GoesOn, Verdict::GoesOn]);
        let Verdict::Fails(message) = &verdicts[2] else { panic!("{verdicts:?}") };
        assert!(message.contains("90 operations/s over 1 s (required: at least 100/s)"), "{message}");
        assert_eq!(ending, None);
        let control = Control { rate_bytes_min: Some(1 << 20), ..Control::default() };
        let (verdicts, _) = fed(&control, &[90]);
        let Verdict::Fails(message) = &verdicts[0] else { panic!("{verdicts:?}") };
        assert!(
            !message.contains("operations") && message.contains("B/s over 1 s (required: at least 1.05MB/s)"),
            "{message}"
        );
    }
}
