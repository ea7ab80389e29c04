//! Presets: figures beside those that a vendor states or a program needs, and the answer that follows.

#[cfg(test)]
mod tests;

use layer::Bench;
use statistics::RepeatsEstimate;
use units::{human_ns, human_rate};

use crate::page::{Cell, Page, Style, Table};
use crate::record::{PhaseRecord, PresetFigure, PresetFinding, PresetRecord, PresetUnit, Record};
use crate::text::{doubts_of, notes_of};
use crate::words::{clean, factor};

/// Share by which a figure may differ from the stated one and still meet it.
pub const TOLERANCE: f64 = 0.05;
/// Warnings of phases that say nothing here: the interval comes from what differs between rounds, and steadiness is judged over them.
const SHORT_PHASE_DOUBTS: &[&str] = &["too_short", "not_steady"];

/// Decides on a ratio of a measured figure to a stated one, by its interval where there is one.
#[must_use]
pub fn finding_of(unit: PresetUnit, ratio: f64, interval: Option<(f64, f64)>) -> PresetFinding {
    let (low, high) = interval.unwrap_or((ratio, ratio));
    // Of times less is better: turned round, so that more is.
    let (low, high) = match unit {
        PresetUnit::Nanoseconds => (1.0 / high, if low > 0.0 { 1.0 / low } else { f64::INFINITY }),
        PresetUnit::BytesPerSecond | PresetUnit::OperationsPerSecond => (low, high),
    };
    match (low, high) {
        (low, _) if low > 1.0 + TOLERANCE => PresetFinding::Better,
        (low, _) if low >= 1.0 - TOLERANCE => PresetFinding::Meets,
        (_, high) if high < 1.0 - TOLERANCE => PresetFinding::Worse,
        _ => PresetFinding::CannotTell,
    }
}

impl PresetRecord {
    /// The answer in the record of a run.
    pub fn of(bench: &mut dyn Bench) -> &mut Self {
        Record::of(bench).preset.get_or_insert_with(Self::default)
    }
}

impl PresetFigure {
    /// A figure that is not measured yet.
    #[must_use]
    pub fn new(key: &str, load: String, unit: PresetUnit, stated: Option<f64>) -> Self {
        Self {
            key: key.to_owned(),
            load,
            unit,
            value: None,
            low: None,
            high: None,
            rounds: Vec::new(),
            window: Vec::new(),
            steady: None,
            stated,
            source: None,
            ratio: None,
            ratio_low: None,
            ratio_high: None,
            finding: None,
            reason: None,
        }
    }

    /// Takes the values of the rounds of a window; `too_few` says why some of them have none, and there is no figure then.
    pub fn take(&mut self, values: &[f64], window: &[usize], too_few: &str) {
        if values.len() < window.len() {
            self.reason = Some(too_few.to_owned());
        } else if let Some(estimate) = RepeatsEstimate::of(values) {
            self.window = window.to_vec();
            self.measured(&estimate);
        }
    }

    /// Takes what was measured, and holds it against the stated figure.
    pub fn measured(&mut self, estimate: &RepeatsEstimate) {
        let RepeatsEstimate { mean, low, high } = *estimate;
        (self.value, self.low, self.high) = (Some(mean), low, high);
        let Some(stated) = self.stated.filter(|stated| *stated > 0.0) else { return };
        let of = |value: f64| value / stated;
        (self.ratio, self.ratio_low, self.ratio_high) = (Some(of(mean)), low.map(of), high.map(of));
        let interval = self.ratio_low.zip(self.ratio_high);
        self.finding = Some(finding_of(self.unit, of(mean), interval));
    }

    /// `rand_write 0.42x (95 % CI 0.40-0.44x)`.
    #[must_use]
    pub fn ratio_words(&self) -> String {
        let ratio = self.ratio.map_or_else(String::new, |ratio| format!(" {}x", factor(ratio)));
        let interval = self
            .ratio_low
            .zip(self.ratio_high)
            .map_or_else(String::new, |(low, high)| format!(" (95 % CI {}-{}x)", factor(low), factor(high)));
        format!("{}{ratio}{interval}", self.key)
    }
}

/// A value in the unit that data sheets use: `6.85 GB/s`, `1.02M/s`, `71.2 us`.
#[must_use]
pub fn value_words(unit: PresetUnit, value: f64) -> String {
    match unit {
        PresetUnit::BytesPerSecond => bytes_words(value),
        PresetUnit::OperationsPerSecond => format!("{}/s", human_rate(value)),
        PresetUnit::Nanoseconds => human_ns(value),
    }
}

/// Powers of 10, as data sheets have them.
fn bytes_words(per_second: f64) -> String {
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)];
    let (unit, size) = units.into_iter().find(|(_, size)| per_second >= *size).unwrap_or(("B/s", 1.0));
    format!("{} {unit}", factor(per_second / size))
}

/// Writes the table and the answer.
pub(crate) fn block(page: &mut Page, record: &Record, answer: &PresetRecord) {
    page.line(&clean(&format!("{} {}", answer.name, answer.target)), Style::Strong);
    answer.method.iter().for_each(|line| page.field("method", &clean(line), Style::Plain));
    page.blank();
    let headers = ["figure", "load", "measured", "95 % CI", &*answer.against, "ratio", "result"];
    let mut table = Table::named(headers.iter().map(|head| clean(head).into_owned()).collect());
    answer.figures.iter().for_each(|figure| table.row(cells(figure)));
    page.table(&table);
    page.blank();
    for figure in answer.figures.iter().filter(|figure| figure.value.is_none()) {
        let why = figure.reason.as_deref().unwrap_or("the run ended before it");
        page.field("missing", &clean(&format!("{}: {why}", figure.key)), Style::Plain);
    }
    answer.verdict.iter().for_each(|line| page.field("verdict", &clean(line), Style::Strong));
    answer.warnings.iter().for_each(|line| page.field("warning", &clean(line), Style::Doubt));
    let grave = grave(record, answer);
    let named: Vec<(String, &PhaseRecord)> =
        grave.iter().map(|phase| (phase.plan.name().clone(), phase)).collect();
    notes_of(page, &named);
    doubts_of(page, &named);
}

/// The phases with the warnings that count here: of those that figures are computed from.
fn grave(record: &Record, answer: &PresetRecord) -> Vec<PhaseRecord> {
    let counts = |at: usize| answer.figures.iter().any(|figure| figure.rounds.contains(&at));
    let keep = |(at, phase): (usize, &PhaseRecord)| {
        let mut phase = phase.clone();
        phase.doubts.retain(|doubt| counts(at) && !SHORT_PHASE_DOUBTS.contains(&doubt.kind.as_str()));
        phase
    };
    record.phases.iter().enumerate().map(keep).collect()
}

fn cells(figure: &PresetFigure) -> Vec<Cell> {
    let dash = || Cell::styled("-", Style::Faint);
    let words =
        |value: Option<f64>| value.map_or_else(dash, |value| Cell::from(value_words(figure.unit, value)));
    let interval = figure.low.zip(figure.high).map_or_else(dash, |(low, high)| {
        let [low, high] = [low, high].map(|value| value_words(figure.unit, value));
        Cell::from(format!("{low} to {high}"))
    });
    let stated = match figure.stated {
        None => Cell::styled("not stated", Style::Faint),
        stated => words(stated),
    };
    vec![
        Cell::from(clean(&figure.key).into_owned()),
        Cell::from(clean(&figure.load).into_owned()),
        match figure.value {
            Some(value) => Cell::styled(value_words(figure.unit, value), Style::Strong),
            None => dash(),
        },
        interval,
        stated,
        figure.ratio.map_or_else(dash, |ratio| Cell::from(factor(ratio))),
        result(figure),
    ]
}

/// The finding in a word, with its side where more may be better or worse.
fn result(figure: &PresetFigure) -> Cell {
    let is_time = figure.unit == PresetUnit::Nanoseconds;
    match figure.finding {
        None => Cell::styled("-", Style::Faint),
        Some(PresetFinding::Meets) => Cell::from("meets"),
        Some(PresetFinding::Better) if is_time => Cell::from("below (better)"),
        Some(PresetFinding::Better) => Cell::from("above (better)"),
        Some(PresetFinding::Worse) if is_time => Cell::styled("above (worse)", Style::Doubt),
        Some(PresetFinding::Worse) => Cell::styled("below (worse)", Style::Doubt),
        Some(PresetFinding::CannotTell) => Cell::styled("cannot tell", Style::Doubt),
    }
}
