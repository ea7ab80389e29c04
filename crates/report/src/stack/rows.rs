//! Rows of a stack as they were measured: their passes, what carries them, and what disturbed them.

use layer::StackKind;
use statistics::{RateEstimate, mean_half_width};

use crate::doubts::{Evidence, others_cpus_max, throttled_share, used_by_others};
use crate::record::{PhaseRecord, Record, StackPass, StackRow};
use crate::view;
use crate::words::clean;

/// Operations from this size on are compared by bandwidth, smaller ones by operations a second; bytes.
const BANDWIDTH_BLOCK_BYTES_MIN: u64 = 64 << 10;
/// Share of its time on a processor above which a worker is the limit.
const CPU_BOUND_SHARE_MIN: f64 = 0.9;
/// Share of its time for which the quota of a control group may stop a row's threads.
const THROTTLED_SHARE_MAX: f64 = 0.05;

/// Layers of records that do not say what a row is, and how a sentence calls them. Every other one is software.
const UNSAID: &[(&str, StackKind, &str)] = &[
    ("null", StackKind::Floor, "strata itself"),
    ("memory", StackKind::Carrier, "the memory"),
    ("media", StackKind::Hardware, "the drive"),
    ("network", StackKind::Carrier, "the network"),
];

/// Evidence that what was measured is not the row's own.
#[derive(Clone, Debug, PartialEq)]
pub enum Disturbance {
    /// Processors that others used, the hypervisor among them.
    Others(f64),
    /// Share of its time for which the quota of a control group stopped it.
    Quota(f64),
    /// Passes in which it completed nothing, of all of them. The others alone are its fast ones.
    Stalled(usize, usize),
}

/// A row with its passes.
#[derive(Debug)]
pub struct Row<'a> {
    /// The row of the record.
    pub row: &'a StackRow,
    /// Kind.
    pub kind: StackKind,
    /// Rows that carry it, by their indexes.
    pub carriers: Vec<usize>,
    /// Passes in which it completed something: number of the pass, and the phase.
    pub passes: Vec<(u32, &'a PhaseRecord)>,
    /// Seconds of its longest pass, where it was measured and completed nothing in any pass.
    pub idle_s: Option<f64>,
    /// The first of the rows that carry it which was measured and completed nothing.
    pub idle_carrier: Option<usize>,
    /// Disturbance of its passes.
    pub disturbance: Option<Disturbance>,
    /// Passes that were added to those which every run of this stack has.
    pub passes_added: usize,
}

impl<'a> Row<'a> {
    /// Layer as a sentence calls it.
    #[must_use]
    pub fn called(&self) -> String {
        let unsaid = || UNSAID.iter().find(|(name, ..)| *name == self.row.layer).map(|(_, _, words)| *words);
        clean(self.row.called.as_deref().or_else(unsaid).unwrap_or(&self.row.layer)).into_owned()
    }

    /// The first of its passes.
    #[must_use]
    pub fn phase(&self) -> Option<&'a PhaseRecord> {
        self.passes.first().map(|(_, phase)| *phase)
    }

    /// Whether it is compared by bandwidth. The floor moves nothing: a bandwidth would mean nothing.
    #[must_use]
    pub fn in_bytes(&self) -> bool {
        self.kind != StackKind::Floor && self.phase().is_some_and(|phase| in_bytes(self.row, phase))
    }

    /// Speed of one of its passes, bytes or operations a second.
    pub(super) fn speed_of(&self, phase: &PhaseRecord) -> f64 {
        speed(self.row, phase).0
    }

    /// The estimate of the window of one of its passes.
    pub(super) fn estimate_of<'p>(&self, phase: &'p PhaseRecord) -> Option<&'p RateEstimate> {
        speed(self.row, phase).1
    }

    /// Its speed, bytes or operations a second: the geometric mean over the passes.
    #[must_use]
    pub fn speed(&self) -> Option<f64> {
        let logs = self.logarithms();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// The 95 % interval of its speed, of several passes: Student's t on the logarithms.
    pub(crate) fn speed_interval(&self) -> Option<(f64, f64)> {
        let (speed, half) = (self.speed()?, mean_half_width(&self.logarithms())?);
        Some((speed * (-half).exp(), speed * half.exp()))
    }

    fn logarithms(&self) -> Vec<f64> {
        self.passes.iter().map(|(_, phase)| self.speed_of(phase).ln()).collect()
    }

    /// Whether its workers had no processor time left.
    #[must_use]
    pub fn is_cpu_bound(&self) -> bool {
        !self.passes.is_empty() && self.passes.iter().all(|(_, phase)| is_cpu_bound(phase))
    }
}

/// Whether a phase of a row is compared by bandwidth.
pub(crate) fn in_bytes(row: &StackRow, phase: &PhaseRecord) -> bool {
    row.in_bytes.unwrap_or_else(|| phase.plan.operation_bytes_max() >= BANDWIDTH_BLOCK_BYTES_MIN)
}

/// Bytes a second while workers are in operations on storage: computing, waiting for each other and the tool's own work are left out, and so are
/// workers that move nothing. None where nothing was moved.
#[must_use]
pub fn bytes_in_calls(phase: &PhaseRecord) -> Option<f64> {
    let idle = view::of(phase.plan.layer()).idle_classes();
    let (mut bytes, mut called_ns, mut workers) = (0u64, 0u128, 0u32);
    for worker in &phase.samples.workers {
        let calls = || worker.classes.iter().filter(|class| !idle.contains(&&*class.class));
        let moved: u64 = calls().map(|class| class.bytes).sum();
        if moved > 0 {
            bytes += moved;
            called_ns += calls().map(|class| class.latency.sum_ns()).sum::<u128>();
            workers += 1;
        }
    }
    (called_ns > 0).then(|| bytes as f64 * f64::from(workers) * 1e9 / called_ns as f64)
}

/// Speed of a phase of a row, and the estimate of its own window.
fn speed<'p>(row: &StackRow, phase: &'p PhaseRecord) -> (f64, Option<&'p RateEstimate>) {
    let total = &phase.summary.total;
    if in_bytes(row, phase) {
        // Workers of such a load have one operation at a time.
        if row.load_of.is_some() {
            return (bytes_in_calls(phase).unwrap_or(0.0), None);
        }
        (total.bytes_per_second, total.bandwidth.as_ref())
    } else {
        (total.operations_per_second, total.rate.as_ref())
    }
}

/// Whether the workers were on their processors nearly all the time.
fn is_cpu_bound(phase: &PhaseRecord) -> bool {
    let (busy, all) = phase.samples.workers.iter().fold((0, 0), |(busy, all), worker| {
        let length_ns = worker.finished_ns.saturating_sub(worker.started_ns);
        (busy + worker.cpu_user_ns + worker.cpu_system_ns, all + length_ns)
    });
    all > 0 && busy as f64 > CPU_BOUND_SHARE_MIN * all as f64
}

/// All rows of the stack of a record.
#[must_use]
pub fn rows(record: &Record) -> Vec<Row<'_>> {
    let Some(stack) = &record.stack else { return Vec::new() };
    let mut rows: Vec<Row<'_>> = stack.rows.iter().map(|row| of(record, row)).collect();
    for at in 0..rows.len() {
        rows[at].carriers = carriers(&rows, at);
        let idle = named_carriers(&rows, at).find(|other| rows[*other].idle_s.is_some());
        rows[at].idle_carrier = idle;
    }
    rows
}

fn of<'a>(record: &'a Record, row: &'a StackRow) -> Row<'a> {
    row_of(record, row, &row.passes)
}

/// A row with these of its passes.
pub(super) fn row_of<'a>(record: &'a Record, row: &'a StackRow, passes: &[StackPass]) -> Row<'a> {
    let unsaid = || UNSAID.iter().find(|(name, ..)| *name == row.layer).map(|(_, kind, _)| *kind);
    let all: Vec<(u32, &PhaseRecord)> = if passes.is_empty() {
        row.phase.and_then(|at| record.phases.get(at)).map(|phase| (0, phase)).into_iter().collect()
    } else {
        passes.iter().filter_map(|pass| Some((pass.pass, record.phases.get(pass.phase)?))).collect()
    };
    let disturbance = disturbance(record, row, &all);
    let seconds = all.iter().map(|(_, phase)| phase.samples.elapsed_ns as f64 / 1e9);
    let longest_s = seconds.reduce(f64::max);
    let passes: Vec<_> = all.into_iter().filter(|(_, phase)| speed(row, phase).0 > 0.0).collect();
    Row {
        row,
        kind: row.kind.or_else(unsaid).unwrap_or(StackKind::Software),
        carriers: Vec::new(),
        idle_s: longest_s.filter(|_| passes.is_empty()),
        idle_carrier: None,
        passes,
        disturbance,
        passes_added: record.stack.as_ref().map_or(0, |stack| stack.passes_added as usize),
    }
}

/// Disturbance of the passes of a row, on average over them. A row that completed nothing in any pass is not disturbed: it has no figure.
fn disturbance(record: &Record, row: &StackRow, passes: &[(u32, &PhaseRecord)]) -> Option<Disturbance> {
    let mean =
        |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let throttled = mean(passes.iter().map(|(_, phase)| throttled_share(phase)).collect());
    if let Some(share) = throttled.filter(|share| *share > THROTTLED_SHARE_MAX) {
        return Some(Disturbance::Quota(share));
    }
    let stalled = passes.iter().filter(|(_, phase)| speed(row, phase).0 <= 0.0).count();
    if (1..passes.len()).contains(&stalled) {
        return Some(Disturbance::Stalled(stalled, passes.len()));
    }
    let others = passes.iter().filter_map(|(_, phase)| used_by_others(&Evidence::of(record, phase)));
    let cores = record.environment.processor.logical_cores.map(f64::from);
    mean(others.collect()).filter(|others| *others > others_cpus_max(cores)).map(Disturbance::Others)
}

/// Rows that carry this one by its own words.
fn named_carriers(rows: &[Row<'_>], at: usize) -> impl Iterator<Item = usize> {
    let named = rows[at].row.stands_on.iter();
    named.filter_map(|carrier| {
        rows.iter().position(|row| row.row.layer == carrier.layer && row.row.load == carrier.load)
    })
}

/// Rows that carry this one: those that it names, and in records that name none the next below it at the same load.
fn carriers(rows: &[Row<'_>], at: usize) -> Vec<usize> {
    let own = rows[at].row;
    let is_measured = |other: &usize| !rows[*other].passes.is_empty();
    if own.kind.is_some() {
        return named_carriers(rows, at).filter(is_measured).collect();
    }
    if matches!(rows[at].kind, StackKind::Floor | StackKind::Carrier) {
        return Vec::new();
    }
    let is_below = |other: &usize| {
        let other = &rows[*other];
        other.row.load == own.load && other.kind != StackKind::Floor && other.row.layer != "network"
    };
    (0..at).rev().filter(is_below).find(is_measured).into_iter().collect()
}
