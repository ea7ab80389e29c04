//! Utilisation of accelerators: what each computed, and in which time.

use std::sync::{Arc, Mutex, PoisonError};

use layer::observations::Utilisation;

use crate::plan::{AppPlan, GroupPlan, UtilisationPlan};

/// Work that an accelerator has done, in nanoseconds of the clock of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Metered {
    begun_ns: Option<u64>,
    ended_ns: u64,
    compute_ns: u64,
    steps: u64,
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
            metered.ended_ns = now_ns;
            metered.compute_ns += now_ns.saturating_sub(self.submitted_ns);
            metered.steps += 1;
        }
    }
}

impl Meters {
    /// The meter of a process of a group; none where it is no accelerator.
    pub(crate) fn of(&self, group: &GroupPlan) -> Option<Meter> {
        let plan = group.utilisation?;
        let metered = Arc::new(Mutex::new(Metered::default()));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&metered));
        Some(Meter { plan, iterations: group.iterations, done: 0, submitted_ns: 0, metered })
    }

    /// The utilisation of a stage that has ended; none where it has no accelerators, or none of them got past the steps that are left out.
    pub(crate) fn utilisation(&self, plan: &AppPlan) -> Option<Utilisation> {
        let rule = plan.groups.iter().find_map(|group| group.utilisation)?;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Metered> =
            all.iter().map(|metered| *metered.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        of(&rule, &all)
    }
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
        bytes_per_second: samples_per_second * rule.sample_bytes as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_and_the_last_are_left_out() {
        let rule = UtilisationPlan { permille_min: 900, first: 1, last: 1, samples: 7, sample_bytes: 10 };
        let metered = Arc::default();
        let mut meter =
            Meter { plan: rule, iterations: 4, done: 0, submitted_ns: 0, metered: Arc::clone(&metered) };
        // A long wait for the first batch, then one of a quarter of each step.
        for (begun_ns, ended_ns) in [(1000, 1075), (1100, 1175), (1200, 1275), (1900, 1975)] {
            meter.begin(false, begun_ns - 10);
            meter.begin(true, begun_ns);
            meter.end(ended_ns);
        }
        let metered = *metered.lock().unwrap();
        let told = of(&rule, &[metered, metered, Metered::default()]).unwrap();
        assert_eq!((told.accelerators, told.steps, told.compute_ns, told.time_ns), (2, 2, 300, 400));
        assert!((told.fraction - 0.75).abs() < 1e-9 && !told.is_met);
        assert!((told.samples_per_second - 2.0 * 14.0 * 1e9 / 200.0).abs() < 1.0);
        assert_eq!(of(&rule, &[]), None);
    }
}
