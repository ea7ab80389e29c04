//! Rows of a stack on several hosts at once: what is lost on the way from one host to all, and which hosts are slower than the others.

use statistics::{Difference, LAG_MAX, adjust_for_many, by_origin, median_of};
use workload::plan::HostTargets;

use super::rows::{Row, row_of};
use super::step::{Finding, LOSS_FACTOR_MIN, Step, of_passes, on_itself};
use crate::record::{PhaseRecord, Record, StackRowHosts, StackSlowHost};

/// Probability of naming some host by chance.
const CHANCE_MAX: f64 = 0.05;

/// The rows of a stack that several hosts carried out at once.
#[derive(Debug)]
pub struct OnHosts<'a> {
    /// Number of hosts.
    pub count: u32,
    /// The rows, with the passes on all hosts.
    pub rows: Vec<Row<'a>>,
    /// Index of each among all rows of the stack.
    pub of: Vec<usize>,
    /// Each against so many times its rate on one host: `row` is an index into `rows`, `below` one into all rows of the stack, and the factor how many times less
    /// the hosts have together than each would have alone.
    pub steps: Vec<Step>,
}

impl OnHosts<'_> {
    /// Whether the hosts worked on the same file, device or store in a row; none where that is not known.
    #[must_use]
    pub fn shares_target(&self, row: usize) -> Option<bool> {
        let place = self.rows[row].phase()?.plan.load().place?;
        Some(place.targets == HostTargets::Shared)
    }
}

/// Rows on several hosts at once, beside `rows` on one; none where the stack is of one host.
#[must_use]
pub fn on_hosts<'a>(record: &'a Record, rows: &[Row<'a>]) -> Option<OnHosts<'a>> {
    let count = rows.iter().filter_map(|row| Some(row.row.hosts.as_ref()?.count)).max()?;
    let mut found = OnHosts { count, rows: Vec::new(), of: Vec::new(), steps: Vec::new() };
    for (at, one) in rows.iter().enumerate() {
        let Some(hosts) = one.row.hosts.as_ref().filter(|hosts| !hosts.passes.is_empty()) else { continue };
        let all = row_of(record, one.row, &hosts.passes);
        if let Some(step) = step(found.rows.len(), &all, (at, one), hosts.count) {
            found.steps.push(step);
        }
        found.rows.push(all);
        found.of.push(at);
    }
    Some(found)
}

/// A row on all hosts against so many times its rate on one.
fn step(row: usize, all: &Row<'_>, (below, one): (usize, &Row<'_>), count: u32) -> Option<Step> {
    let pairs = all.passes.iter().filter_map(|(pass, phase)| {
        let (_, alone) = one.passes.iter().find(|(other, _)| other == pass)?;
        Some((all.speed_of(phase), one.speed_of(alone) * f64::from(count)))
    });
    let (together, alone): (Vec<f64>, Vec<f64>) = pairs.unzip();
    if together.is_empty() {
        return None;
    }
    let (factor, interval, spread) = of_passes(&together, &alone, all.passes_added);
    let finding = on_itself(all, one, factor, interval);
    Some(Step { row, below, factor, interval, spread, finding })
}

/// Steps that are losses of their own: what a row loses that stands on one which loses as much on the way, or more, is the loss of that one.
pub(super) fn own_losses<'s>(found: &'s OnHosts<'_>, rows: &[Row<'_>]) -> Vec<&'s Step> {
    let is_carried = |step: &&Step| {
        let carriers = &rows[found.of[step.row]].carriers;
        let below = found.steps.iter().filter(|other| carriers.contains(&found.of[other.row]));
        below.filter(|other| other.finding == Finding::Loss).any(|other| {
            let reaches = other.interval.map_or(other.factor, |(_, high)| high);
            reaches >= step.factor
        })
    };
    let losses = found.steps.iter().filter(|step| step.finding == Finding::Loss);
    losses.filter(|step| step.factor >= LOSS_FACTOR_MIN && !is_carried(step)).collect()
}

/// Hosts that are slower than the median of the others by more than a fifth and beyond chance, with the index of the row in [`OnHosts::rows`]. Chances
/// are adjusted for all rows and hosts that are looked at.
#[must_use]
pub fn slow_hosts(found: &OnHosts<'_>) -> Vec<(usize, StackSlowHost)> {
    let all: Vec<(usize, String, Difference)> =
        found.rows.iter().enumerate().flat_map(|(at, row)| against_others(at, row)).collect();
    let chances: Vec<f64> = all.iter().map(|(.., difference)| difference.p_value).collect();
    let slow = all.into_iter().zip(adjust_for_many(&chances)).filter(|((.., difference), chance)| {
        -difference.percent > 100.0 * LAG_MAX && difference.percent_high < 0.0 && *chance <= CHANCE_MAX
    });
    slow.map(|((at, name, difference), _)| {
        (at, StackSlowHost { name, below_median: -difference.percent / 100.0 })
    })
    .collect()
}

/// Each host of a row against the median of the others, from pairs of all passes.
fn against_others(at: usize, row: &Row<'_>) -> Vec<(usize, String, Difference)> {
    let passes: Vec<Vec<(String, f64)>> = row.passes.iter().map(|(_, phase)| rates(row, phase)).collect();
    let against = |name: &str| {
        let pairs = passes.iter().filter_map(|pass| {
            let own = pass.iter().find(|(other, _)| other == name)?.1;
            let others = pass.iter().filter(|(other, _)| other != name).map(|(_, rate)| *rate);
            Some((median_of(&mut others.collect::<Vec<_>>())?, own))
        });
        let (others, own): (Vec<f64>, Vec<f64>) = pairs.unzip();
        Difference::of_pairs(&others, &own, 0.0)
    };
    let names = passes.first().into_iter().flatten();
    names.filter_map(|(name, _)| Some((at, name.clone(), against(name)?))).collect()
}

/// Rate of each host in a phase, in bytes or operations a second.
fn rates(all: &Row<'_>, phase: &PhaseRecord) -> Vec<(String, f64)> {
    let rate = |figures: &statistics::ShareSummary| match all.in_bytes() {
        true => figures.bytes_per_second,
        false => figures.operations_per_second,
    };
    let hosts = by_origin(&phase.samples).into_iter();
    hosts.filter_map(|host| Some((host.origin?, rate(&host.figures)))).collect()
}

/// The figures of rows on several hosts, by the index of the row, as the record keeps them.
#[must_use]
pub fn scaling(record: &Record) -> Vec<(usize, StackRowHosts)> {
    let rows = super::rows(record);
    let Some(found) = on_hosts(record, &rows) else { return Vec::new() };
    let slow = slow_hosts(&found);
    let of_row = |(number, at): (usize, &usize)| {
        let step = found.steps.iter().find(|step| step.row == number)?;
        let hosts = rows[*at].row.hosts.clone()?;
        let slow = slow.iter().filter(|(row, _)| *row == number).map(|(_, host)| host.clone()).collect();
        let (low, high) = step.interval.unzip();
        let part = |factor: f64| 1.0 / factor;
        let known = low.map(|_| part(step.factor));
        Some((
            *at,
            StackRowHosts {
                scaling: known,
                scaling_low: high.map(part),
                scaling_high: low.map(part),
                slow,
                ..hosts
            },
        ))
    };
    found.of.iter().enumerate().filter_map(of_row).collect()
}
