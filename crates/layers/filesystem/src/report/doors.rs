//! AccessPaths side by side: the rates of each, and by what factor they differ from the library's.

use std::collections::BTreeMap;

use report::page::{Cell, Page, Style, Table};
use report::recipes::factor_of;
use report::record::{PhaseRecord, Record};
use report::words::factor;
use units::human::{human_bytes_per_second, human_rate};
use units::{clean, counted};

use crate::doors::AccessPath;
use crate::operation::{CLASSES, FsClass};
use crate::plan::FsPlan;

/// The plan of a phase behind a door.
fn plan_of(phase: &PhaseRecord) -> Option<(&FsPlan, AccessPath)> {
    let plan = phase.plan.of::<FsPlan>()?;
    Some((plan, plan.door?))
}

/// Phases that stand side by side: those of a run of several doors that did not fail.
pub(super) fn phases(record: &Record) -> Vec<usize> {
    let doors = |phase: &PhaseRecord| plan_of(phase).map(|(_, door)| door.name());
    let mut found: Vec<_> = record.phases.iter().filter_map(doors).collect();
    found.sort_unstable();
    found.dedup();
    if found.len() < 2 {
        return Vec::new();
    }
    let is_meant = |phase: &PhaseRecord| plan_of(phase).is_some() && phase.failure.is_none();
    (0..record.phases.len()).filter(|at| is_meant(&record.phases[*at])).collect()
}

/// The class that a phase is about.
fn class_of(plan: &FsPlan) -> FsClass {
    let mut calls = plan.operation.phase().calls.iter().map(|(class, _)| *class);
    let moves = |class: &FsClass| matches!(class, FsClass::Read | FsClass::Write);
    let moving = calls.clone().find(moves).filter(|_| plan.operation.moves_data());
    moving.or_else(|| calls.next()).unwrap_or(FsClass::Stat)
}

/// Rates of a row by door, one a turn.
#[derive(Default)]
struct Row {
    name: String,
    is_bytes: bool,
    rates: BTreeMap<&'static str, Vec<(u32, f64)>>,
}

impl Row {
    fn add(&mut self, phase: &PhaseRecord, plan: &FsPlan, door: AccessPath) {
        let class = CLASSES[class_of(plan) as usize];
        let Some(found) = phase.summary.classes.iter().find(|found| found.class == class) else { return };
        let rate = if self.is_bytes { found.bytes_per_second } else { found.operations_per_second };
        self.rates.entry(door.name()).or_default().push((plan.door_turn.unwrap_or(0), rate));
    }

    /// Rates of two doors in the turns that both had.
    fn pairs(&self, of: &str, with: &str) -> (Vec<f64>, Vec<f64>) {
        let rates = |door| self.rates.get(door).map_or(&[][..], Vec::as_slice);
        let same = |turn: u32| rates(with).iter().find(|(other, _)| *other == turn).map(|(_, rate)| *rate);
        rates(of).iter().filter_map(|(turn, rate)| Some((*rate, same(*turn)?))).unzip()
    }

    fn rate(&self, door: AccessPath) -> Cell {
        let rates = self.rates.get(door.name()).map_or(&[][..], Vec::as_slice);
        let mean = rates.iter().map(|(_, rate)| rate).sum::<f64>() / rates.len() as f64;
        match rates {
            [] => Cell::styled("-", Style::Faint),
            _ if self.is_bytes => Cell::from(human_bytes_per_second(mean)),
            _ => Cell::from(format!("{}/s", human_rate(mean))),
        }
    }

    /// `0.42 (0.40 to 0.44)`: the rate of a door over that of the library.
    fn factor(&self, door: AccessPath) -> Cell {
        let (library, other) = self.pairs(AccessPath::Library.name(), door.name());
        if let Some(found) = factor_of(&library, &other) {
            let interval = format!("{} to {}", factor(found.low), factor(found.high));
            return Cell::styled(format!("{} ({interval})", factor(found.factor)), Style::Strong);
        }
        match (library.first(), other.first()) {
            (Some(library), Some(other)) if *library > 0.0 => Cell::from(factor(other / library)),
            _ => Cell::styled("-", Style::Faint),
        }
    }
}

/// Writes the table.
pub(super) fn block(page: &mut Page, record: &Record) {
    let mut rows: Vec<Row> = Vec::new();
    let (mut target, mut turns) = (String::new(), 0);
    for phase in phases(record).into_iter().filter_map(|at| record.phases.get(at)) {
        let Some((plan, door)) = plan_of(phase).filter(|(plan, _)| !plan.is_fill) else { continue };
        target = clean(plan.door_target.as_deref().unwrap_or_default()).into_owned();
        turns = turns.max(plan.door_turn.unwrap_or(0));
        let prefix = format!("{} ", door.name());
        let name = plan.name.strip_prefix(&prefix).unwrap_or(&plan.name);
        let is_bytes = plan.operation.moves_data();
        let at = rows.iter().position(|row| row.name == name).unwrap_or(rows.len());
        if at == rows.len() {
            rows.push(Row { name: name.to_owned(), is_bytes, ..Row::default() });
        }
        rows[at].add(phase, plan, door);
    }
    page.line(&format!("doors of {target}"), Style::Strong);
    let how = format!(
        "{} of each door, one after another; factors are relative to the library's rate (95 % CI)",
        counted(turns.into(), "turn")
    );
    page.field("how", &how, Style::Plain);
    page.gap();
    let mut table = Table::new(&["phase", "library", "mount", "factor", "intercept", "factor"]);
    for row in &rows {
        table.row(vec![
            Cell::from(clean(&row.name).into_owned()),
            row.rate(AccessPath::Library),
            row.rate(AccessPath::Mount),
            row.factor(AccessPath::Mount),
            row.rate(AccessPath::Intercept),
            row.factor(AccessPath::Intercept),
        ]);
    }
    page.table(&table);
    // Of the turns, which do the same, the first has its breakdown here.
    for phase in phases(record).into_iter().filter_map(|at| record.phases.get(at)) {
        let is_first = |plan: &FsPlan| plan.door_turn == Some(1) && !plan.is_fill;
        if let Some((plan, _)) = plan_of(phase).filter(|(plan, _)| is_first(plan)) {
            report::profile::titled(page, &plan.name, phase);
        }
    }
}
