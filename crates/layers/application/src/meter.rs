//! Utilisation of accelerators: what each computed, and in which time.

use std::sync::{Arc, Mutex, PoisonError};

use layer::observations::Utilisation;
use statistics::estimate_mean;

use crate::plan::{AppPlan, GroupPlan, UtilisationPlan};

/// Most steps of an accelerator whose times are kept one by one.
const STEPS_KEPT_MAX: u64 = 1 << 20;

/// Work that an accelerator has done, in nanoseconds of the clock of the run.
#[derive(Clone, Debug, Default, PartialEq)]
struct Metered {
    begun_ns: Option<u64>,
    ended_ns: u64,
    compute_ns: u64,
    steps: u64,
    /// Computation and whole time of each step.
    each: Vec<(u64, u64)>,
}

/// All accelerators of a stage.
#[derive(Clone, Default)]
pub(crate) struct Meters(Arc<Mutex<Vec<Arc<Mutex<Metered>>>>>);

/// The meter of an accelerator.
pub(crate) struct Meter {
    plan: UtilisationPlan,
    iterations: u64,
    /// Steps that have ended.
    done: u64,
    submitted_ns: u64,
    metered: Arc<Mutex<Metered>>,
}

impl Meter {
    /// A call or computation begins.
    pub(crate) fn begin(&mut self, is_compute: bool, now_ns: u64) {
        if is_compute {
            self.submitted_ns = now_ns;
        }
        if self.plan.first == 0 {
            let mut metered = self.metered.lock().unwrap_or_else(PoisonError::into_inner);
            metered.begun_ns.get_or_insert(now_ns);
        }
    }

    /// A computation has ended.
    pub(crate) fn end(&mut self, now_ns: u64) {
        self.done += 1;
        let mut metered = self.metered.lock().unwrap_or_else(PoisonError::into_inner);
        if self.done == self.plan.first {
            metered.begun_ns = Some(now_ns);
        } else if self.done > self.plan.first && self.done + self.plan.last <= self.iterations {
            let before_ns =
                if metered.steps > 0 { metered.ended_ns } else { metered.begun_ns.unwrap_or(now_ns) };
            let compute_ns = now_ns.saturating_sub(self.submitted_ns);
            metered.ended_ns = now_ns;
            metered.compute_ns += compute_ns;
            metered.steps += 1;
            // Room was made beforehand: nothing is allocated here.
            if metered.each.len() < metered.each.capacity() {
                metered.each.push((compute_ns, now_ns.saturating_sub(before_ns)));
            }
        }
    }
}

impl Meters {
    /// The meter of a process of a group; none where it is no accelerator.
    pub(crate) fn of(&self, group: &GroupPlan) -> Option<Meter> {
        let plan = group.utilisation?;
        let each = Vec::with_capacity(group.iterations.min(STEPS_KEPT_MAX) as usize);
        let metered = Arc::new(Mutex::new(Metered { each, ..Metered::default() }));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&metered));
        Some(Meter { plan, iterations: group.iterations, done: 0, submitted_ns: 0, metered })
    }

    /// The utilisation of a stage that has ended; none where it has no accelerators, or none of them got past the steps that are left out.
    pub(crate) fn utilisation(&self, plan: &AppPlan) -> Option<Utilisation> {
        let rule = plan.groups.iter().find_map(|group| group.utilisation)?;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Metered> = all
            .iter()
            .map(|metered| metered.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .collect();
        of(&rule, &all)
    }
}

/// The 95 % interval of a utilisation, from its steps: accelerators are in step, so those of the same number are one value.
fn interval(all: &[&Metered], fraction: f64) -> Option<(f64, f64)> {
    let steps = all.iter().map(|metered| metered.each.len()).min()?;
    let sum = |at: usize, of: fn(&(u64, u64)) -> u64| -> f64 {
        all.iter().map(|metered| of(&metered.each[at]) as f64).sum()
    };
    let shares: Vec<f64> =
        (0..steps).map(|at| sum(at, |step| step.0) / sum(at, |step| step.1).max(1.0)).collect();
    let found = estimate_mean(&shares)?;
    let at = |end: f64| (fraction + end - found.mean).clamp(0.0, 1.0);
    Some((at(found.low), at(found.high)))
}

fn of(rule: &UtilisationPlan, all: &[Metered]) -> Option<Utilisation> {
    let measured = |metered: &&Metered| metered.steps > 0 && metered.begun_ns.is_some();
    let time_ns = |metered: &Metered| metered.ended_ns.saturating_sub(metered.begun_ns.unwrap_or(0)).max(1);
    let all: Vec<&Metered> = all.iter().filter(measured).collect();
    if all.is_empty() {
        return None;
    }
    let fractions = || all.iter().map(|metered| metered.compute_ns as f64 / time_ns(metered) as f64);
    let fraction = fractions().sum::<f64>() / all.len() as f64;
    let rates =
        all.iter().map(|metered| (metered.steps * rule.samples) as f64 * 1e9 / time_ns(metered) as f64);
    let samples_per_second: f64 = rates.sum();
    let limit_fraction = rule.permille_min as f64 / 1000.0;
    let interval = interval(&all, fraction);
    Some(Utilisation {
        accelerators: all.len() as u32,
        steps: all.iter().map(|metered| metered.steps).min().unwrap_or(0),
        compute_ns: all.iter().map(|metered| metered.compute_ns).sum(),
        time_ns: all.iter().map(|metered| time_ns(metered)).sum(),
        fraction,
        fraction_min: fractions().fold(f64::INFINITY, f64::min),
        waiting_fraction: (1.0 - fraction).max(0.0),
        limit_fraction,
        is_met: fraction >= limit_fraction,
        samples_per_second,
        epoch_ns: (rule.epoch_samples > 0)
            .then(|| (rule.epoch_samples as f64 * 1e9 / samples_per_second) as u64),
        bytes_per_second: samples_per_second * rule.sample_bytes as f64,
        low_fraction: interval.map(|(low, _)| low),
        high_fraction: interval.map(|(_, high)| high),
        search: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_and_the_last_are_left_out() {
        let rule = UtilisationPlan {
            permille_min: 900,
            first: 1,
            last: 1,
            samples: 7,
            sample_bytes: 10,
            epoch_samples: 280,
        };
        let metered = Arc::default();
        let mut meter =
            Meter { plan: rule, iterations: 4, done: 0, submitted_ns: 0, metered: Arc::clone(&metered) };
        // A long wait for the first batch, then one of a quarter of each step.
        for (begun_ns, ended_ns) in [(1000, 1075), (1100, 1175), (1200, 1275), (1900, 1975)] {
            meter.begin(false, begun_ns - 10);
            meter.begin(true, begun_ns);
            meter.end(ended_ns);
        }
        let metered = metered.lock().unwrap().clone();
        let told = of(&rule, &[metered.clone(), metered, Metered::default()]).unwrap();
        assert_eq!((told.accelerators, told.steps, told.compute_ns, told.time_ns), (2, 2, 300, 400));
        assert!((told.fraction - 0.75).abs() < 1e-9 && !told.is_met);
        assert!((told.samples_per_second - 2.0 * 14.0 * 1e9 / 200.0).abs() < 1.0);
        assert_eq!(told.epoch_ns, Some(2000), "ten times as many as in 200 ns");
        assert_eq!(of(&rule, &[]), None);
        assert_eq!(told.low_fraction, None, "two steps tell of no interval");
    }

    #[test]
    fn the_interval_is_wide_where_steps_differ() {
        let rule = UtilisationPlan {
            permille_min: 900,
            first: 0,
            last: 0,
            samples: 1,
            sample_bytes: 1,
            epoch_samples: 0,
        };
        let told = |waits: [u64; 8]| {
            let each: Vec<(u64, u64)> = waits.iter().map(|wait| (90, 90 + wait)).collect();
            let ended_ns = each.iter().map(|step| step.1).sum();
            let metered = Metered { begun_ns: Some(0), ended_ns, compute_ns: 720, steps: 8, each };
            let told = of(&rule, &[metered]).unwrap();
            (told.fraction, told.low_fraction.unwrap(), told.high_fraction.unwrap())
        };
        let (fraction, low, high) = told([10; 8]);
        assert!((fraction - 0.9).abs() < 1e-9 && high - low < 1e-9);
        let (fraction, low, high) = told([0, 20, 5, 15, 30, 0, 10, 0]);
        assert!(low < fraction - 0.02 && high > fraction + 0.02, "{low} {fraction} {high}");
    }
}
