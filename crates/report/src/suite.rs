//! `strata suite`: the phases of a known benchmark, its scores, and why they do not count.

use crate::page::{Cell, Page, Style, Table};
use crate::record::{PhaseRecord, Record, SuitePhase, SuiteRecord, SuiteScore};
use crate::text::{doubts_of, notes_of};
use crate::words::{clean, counted};

/// Writes the table and what follows from it.
pub(crate) fn block(page: &mut Page, record: &Record, suite: &SuiteRecord) {
    let ranks = counted(suite.ranks.into(), "rank");
    let head = format!(
        "{} ({}), {ranks}, stonewall {} s, on {}",
        suite.name, suite.mode, suite.stonewall_seconds, suite.data_directory
    );
    page.line(&clean(&head), Style::Strong);
    page.field("results", &clean(&suite.result_directory), Style::Plain);
    page.blank();
    let mut table = Table::new(&["phase", "score", "unit", "time", "steady", "valid"]);
    for phase in &suite.phases {
        table.row(cells(record, phase));
    }
    page.table(&table);
    page.blank();
    suite.scores.iter().for_each(|score| page.field("score", &sentence(score), Style::Strong));
    suite.invalid.iter().for_each(|reason| page.field("invalid", &clean(reason), Style::Doubt));
    for phase in &suite.phases {
        for reason in &phase.invalid {
            page.field("invalid", &clean(&format!("{}: {reason}", phase.name)), Style::Doubt);
        }
    }
    let phases: Vec<(String, &PhaseRecord)> =
        record.phases.iter().map(|phase| (phase.plan.name().clone(), phase)).collect();
    notes_of(page, &phases);
    doubts_of(page, &phases);
    // Those of phases that another record has, or that strata's loop did not measure.
    for phase in suite.phases.iter().filter(|phase| phase.phase.is_none()) {
        for doubt in &phase.doubts {
            page.field("warning", &clean(&format!("{} ({})", doubt, phase.name)), Style::Doubt);
        }
    }
}

/// `bandwidth 0.172 GiB/s, metadata 292.6 kIOPS, total 7.096: INVALID`.
fn sentence(score: &SuiteScore) -> String {
    let SuiteScore { name, bandwidth_gib_per_second, metadata_kiops, total, is_valid } = score;
    let verdict = if *is_valid { "valid" } else { "INVALID" };
    format!(
        "{}: bandwidth {bandwidth_gib_per_second:.6} GiB/s, metadata {metadata_kiops:.6} kIOPS, total {total:.6}: {verdict}",
        clean(name)
    )
}

fn cells(record: &Record, phase: &SuitePhase) -> Vec<Cell> {
    let dash = || Cell::styled("-", Style::Faint);
    let verdict = match (&phase.group, phase.invalid.is_empty()) {
        (_, false) => Cell::styled("INVALID", Style::Doubt),
        (Some(_), true) => Cell::from("yes"),
        (None, true) => Cell::styled("no score", Style::Faint),
    };
    let steady = phase.phase.and_then(|at| record.phases.get(at)).and_then(steady_share);
    vec![
        Cell::from(clean(&phase.name).into_owned()),
        phase.unit.as_ref().map_or_else(dash, |_| Cell::from(format!("{:.6}", phase.score))),
        phase.unit.as_ref().map_or_else(dash, |unit| Cell::from(clean(unit).into_owned())),
        Cell::from(format!("{:.3} s", phase.seconds)),
        steady.map_or_else(dash, |share| Cell::from(format!("{:.0} %", share * 100.0))),
        verdict,
    ]
}

/// Rate in the steady window as a share of that of the whole phase.
fn steady_share(phase: &PhaseRecord) -> Option<f64> {
    let (steady, whole) =
        (phase.summary.total.operations_per_second, phase.summary.last_done.operations_per_second);
    (whole > 0.0).then(|| steady / whole)
}
