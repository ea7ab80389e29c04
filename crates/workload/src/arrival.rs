//! When operations are meant to start, for loads with a given rate.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use units::{ParseError, Rate};

use crate::random::{Random, derive_seed, label};

/// How arrivals are spaced.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Spacing {
    /// All gaps are equal.
    #[default]
    Constant,
    /// Gaps are exponentially distributed and independent, as from many clients that do not know of each other.
    Poisson,
}

impl FromStr for Spacing {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "constant" => Ok(Self::Constant),
            "poisson" => Ok(Self::Poisson),
            _ => Err(ParseError::new("an arrival spacing", text, "constant or poisson")),
        }
    }
}

impl fmt::Display for Spacing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
        })
    }
}

/// The intended starts of one worker's operations, in nanoseconds from the start of the phase, ascending and without
/// end.
///
/// Each of the workers takes an equal part of the rate. Constant arrivals are dealt out in turn, so that the workers
/// together are evenly spaced: the first worker starts at 0, the next one gap of the whole rate later. Positions are
/// kept far finer than a nanosecond, so rounding does not add up.
#[derive(Clone, Debug)]
pub struct Arrivals(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// In units of 2^-64 ns.
    Constant {
        position: u128,
        gap: u128,
    },
    /// Known beforehand; after the last one nothing is due any more, and it is given again.
    Listed {
        times_ns: Arc<[u64]>,
        at: usize,
    },
    Poisson {
        whole_ns: u64,
        fraction_ns: f64,
        gap_mean_ns: f64,
        random: Random,
    },
}

const SECOND_NS: f64 = 1e9;

/// One nanosecond in fixed point.
const ONE: u128 = 1 << 64;

/// Poisson arrivals that are counted one by one.
const COUNTED_MAX: u64 = 1_000_000;

/// Gaps above this (292 years) are refused, so that the first few starts always fit 64 bits.
const GAP_NS_MAX: f64 = (1u64 << 63) as f64;

impl Arrivals {
    /// The arrivals of worker `worker` (from 0) out of `workers`, where all of them together have `rate`.
    ///
    /// # Errors
    /// Refuses a worker that is not below `workers`, and a rate so low that its gaps exceed 292 years.
    pub fn new(
        spacing: Spacing,
        rate: Rate,
        worker: u32,
        workers: u32,
        seed: u64,
    ) -> Result<Self, ParseError> {
        if worker >= workers {
            let accepted = format!("a worker below the number of workers, {workers}");
            return Err(ParseError::new("a worker", worker, accepted));
        }
        let gap_mean_ns = f64::from(workers) * SECOND_NS / rate.per_second();
        if gap_mean_ns >= GAP_NS_MAX {
            return Err(ParseError::new("a rate", rate, "at least one arrival in 292 years"));
        }
        Ok(Self(match spacing {
            Spacing::Constant => {
                let stagger = fixed_quotient(f64::from(worker) * SECOND_NS, rate.per_second());
                let gap = fixed_quotient(f64::from(workers) * SECOND_NS, rate.per_second());
                // The half rounds every start to the nearest nanosecond.
                Kind::Constant { position: stagger + ONE / 2, gap }
            }
            Spacing::Poisson => {
                let random = Random::new(derive_seed(seed, &[label("arrival"), worker.into()]));
                Kind::Poisson { whole_ns: 0, fraction_ns: 0.0, gap_mean_ns, random }
            }
        }))
    }

    /// These times, ascending.
    #[must_use]
    pub fn listed(times_ns: Arc<[u64]>) -> Self {
        Self(Kind::Listed { times_ns, at: 0 })
    }

    /// The next intended start.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless sequence needs no Option around each start"
    )]
    pub fn next(&mut self) -> u64 {
        match &mut self.0 {
            Kind::Constant { position, gap } => {
                let start_ns = (*position >> 64) as u64;
                *position = position.saturating_add(*gap);
                start_ns
            }
            Kind::Listed { times_ns, at } => {
                let next = times_ns.get(*at).or(times_ns.last()).copied().unwrap_or(0);
                *at += 1;
                next
            }
            Kind::Poisson { whole_ns, fraction_ns, gap_mean_ns, random } => {
                let position = *fraction_ns - random.unit_above_zero().ln() * *gap_mean_ns;
                let whole = position as u64;
                *fraction_ns = position - whole as f64;
                *whole_ns = whole_ns.saturating_add(whole);
                *whole_ns
            }
        }
    }
}

impl Arrivals {
    /// How many starts lie before `end_ns`; they are passed over. Poisson arrivals are drawn one by one up to a million; of
    /// more, the rest is their expected number, from which the drawn one would differ by a thousandth at most.
    pub fn count_until(&mut self, end_ns: u64) -> u64 {
        match &mut self.0 {
            Kind::Constant { position, gap } => {
                let end = u128::from(end_ns) << 64;
                let count = end.saturating_sub(*position).div_ceil((*gap).max(1));
                *position = position.saturating_add(gap.saturating_mul(count));
                u64::try_from(count).unwrap_or(u64::MAX)
            }
            Kind::Listed { times_ns, at } => {
                let left = times_ns.get(*at..).unwrap_or(&[]);
                let count = left.partition_point(|&time_ns| time_ns < end_ns);
                *at += count;
                count as u64
            }
            Kind::Poisson { gap_mean_ns, .. } => {
                let gap_mean_ns = *gap_mean_ns;
                let mut last_ns = 0;
                for count in 0..COUNTED_MAX {
                    last_ns = self.next();
                    if last_ns >= end_ns {
                        return count;
                    }
                }
                COUNTED_MAX + (end_ns.saturating_sub(last_ns) as f64 / gap_mean_ns) as u64
            }
        }
    }
}

/// Poisson arrivals that [`due_before`] draws; of more, their expected number differs from the drawn one by less than a thousandth.
const DRAWN_MAX: f64 = 2e6;

/// How many operations of all `workers` together are due before each of `times_ns` (ascending); those before `since_ns` are not counted.
/// Times count from the start of the load.
///
/// # Errors
/// As [`Arrivals::new`].
pub fn due_before(
    spacing: Spacing,
    rate: Rate,
    workers: u32,
    seed: u64,
    since_ns: u64,
    times_ns: &[u64],
) -> Result<Vec<u64>, ParseError> {
    let mut due = vec![0; times_ns.len()];
    let expected = times_ns.last().map_or(0.0, |end_ns| *end_ns as f64 / SECOND_NS * rate.per_second());
    if spacing == Spacing::Poisson && expected > DRAWN_MAX {
        let until =
            |at_ns: &u64| (at_ns.saturating_sub(since_ns) as f64 / SECOND_NS * rate.per_second()) as u64;
        return Ok(times_ns.iter().map(until).collect());
    }
    for worker in 0..workers {
        let mut arrivals = Arrivals::new(spacing, rate, worker, workers, seed)?;
        if let Kind::Constant { .. } = arrivals.0 {
            let mut count = 0;
            let _before = arrivals.count_until(since_ns);
            for (due, &at_ns) in due.iter_mut().zip(times_ns) {
                count += arrivals.count_until(at_ns);
                *due += count;
            }
            continue;
        }
        let (mut count, mut next_ns) = (0, arrivals.next());
        for (due, &at_ns) in due.iter_mut().zip(times_ns) {
            while next_ns < at_ns {
                count += u64::from(next_ns >= since_ns);
                next_ns = arrivals.next();
            }
            *due += count;
        }
    }
    Ok(due)
}

/// `dividend / divisor` in units of 2^-64, to within 2^-64 and 2^-100 of the result, for positive numbers whose
/// quotient is below 2^63.
fn fixed_quotient(dividend: f64, divisor: f64) -> u128 {
    let quotient = dividend / divisor;
    // The error of the rounded quotient, exactly known through the fused multiplication, is divided once more.
    let correction = (-quotient).mul_add(divisor, dividend) / divisor;
    let scale = ONE as f64;
    ((quotient * scale) as u128).saturating_add_signed((correction * scale) as i128)
}
