//! `strata object recipes`: what users of object stores are told, with and without it, on one store.

#[cfg(test)]
mod tests;

use statistics::Difference;

use crate::page::{Cell, Page, Style, Table};
use crate::record::{PhaseRecord, RecipeFactor, RecipeFinding, RecipeRecord, RecipesRecord, Record};
use crate::text::{doubts_of, notes_of};
use crate::words::{clean, counted, factor, rate};

/// A recipe matters from this factor on: below it, other things decide.
pub const MATTERS_FACTOR: f64 = 1.25;
/// Doubts that say nothing here: phases are short on purpose, and what their repeats say counts.
const SHORT_PHASE_DOUBTS: &[&str] = &["too_short", "not_steady", "loopback"];

/// Factor between pairs of rates, without and with a recipe; none for fewer than two pairs, or where one of them is 0.
#[must_use]
pub fn factor_of(without: &[f64], with: &[f64]) -> Option<RecipeFactor> {
    let found = Difference::of_pairs(without, with, 0.0)?;
    let ratio = |percent: f64| 1.0 + percent / 100.0;
    let mean = |rates: &[f64]| (rates.iter().map(|rate| rate.ln()).sum::<f64>() / rates.len() as f64).exp();
    Some(RecipeFactor {
        factor: ratio(found.percent),
        low: ratio(found.percent_low),
        high: ratio(found.percent_high),
        without_per_second: mean(without),
        with_per_second: mean(with),
    })
}

/// Finding that a factor leads to: it matters where it is [`MATTERS_FACTOR`] or more and its interval leaves 1 out; it does not where it
/// is less and the interval leaves 1 or that factor out.
#[must_use]
pub fn finding_of(found: &RecipeFactor) -> RecipeFinding {
    let is_large = found.factor.max(1.0 / found.factor) >= MATTERS_FACTOR;
    let is_sure = found.low > 1.0 || found.high < 1.0;
    let is_surely_small = found.low > 1.0 / MATTERS_FACTOR && found.high < MATTERS_FACTOR;
    match (is_large, is_sure) {
        (false, is_sure) if is_sure || is_surely_small => RecipeFinding::DoesNotMatter,
        (_, false) | (false, true) => RecipeFinding::CannotTell,
        (true, true) if found.factor > 1.0 => RecipeFinding::Matters,
        (true, true) => RecipeFinding::Harms,
    }
}

fn words(finding: RecipeFinding) -> Cell {
    match finding {
        RecipeFinding::Matters => Cell::styled("matters", Style::Strong),
        RecipeFinding::DoesNotMatter => Cell::styled("does not matter", Style::Faint),
        RecipeFinding::Harms => Cell::styled("harms", Style::Doubt),
        RecipeFinding::CannotTell => Cell::styled("cannot tell", Style::Plain),
        RecipeFinding::NotTested => Cell::styled("not tested", Style::Faint),
    }
}

/// Writes the table and what follows from it.
pub(crate) fn block(page: &mut Page, record: &Record, found: &RecipesRecord) {
    page.line(&format!("recipes on {}", clean(&found.target)), Style::Strong);
    let how =
        format!("{} of adjacent phases, without and with each recipe", counted(found.rounds.into(), "pair"));
    page.field("how", &how, Style::Plain);
    page.blank();
    let mut table = Table::new(&["recipe", "without", "with", "factor", "95%", "here it"]);
    for recipe in found.recipes.iter().filter(|recipe| recipe.finding != RecipeFinding::NotTested) {
        table.row(cells(recipe));
    }
    page.table(&table);
    page.blank();
    findings(page, found);
    let not_tested = found.recipes.iter().filter(|recipe| recipe.finding == RecipeFinding::NotTested);
    for recipe in not_tested {
        let why = recipe.reason.as_deref().unwrap_or("the run ended before it");
        page.field("untested", &clean(&format!("{}: {why}", recipe.name)), Style::Plain);
    }
    let phases: Vec<(String, &PhaseRecord)> =
        record.phases.iter().map(|phase| (phase.plan.name().clone(), phase)).collect();
    notes_of(page, &phases);
    doubts_of(
        page,
        &grave(record).iter().map(|phase| (phase.plan.name().clone(), phase)).collect::<Vec<_>>(),
    );
}

/// The phases with the doubts that count here.
fn grave(record: &Record) -> Vec<PhaseRecord> {
    let keep = |phase: &PhaseRecord| {
        let mut phase = phase.clone();
        phase.doubts.retain(|doubt| !SHORT_PHASE_DOUBTS.contains(&doubt.kind.as_str()));
        phase
    };
    record.phases.iter().filter(|phase| !phase.doubts.is_empty()).map(keep).collect()
}

/// Writes the findings: the question of each recipe, its result and, where it matters, the advice.
fn findings(page: &mut Page, found: &RecipesRecord) {
    let with = |finding: RecipeFinding| found.recipes.iter().filter(move |recipe| recipe.finding == finding);
    for recipe in with(RecipeFinding::Matters) {
        page.field("matters", &sentence(recipe), Style::Strong);
        page.field("", &format!("try: {}", clean(&recipe.advice)), Style::Plain);
    }
    for recipe in with(RecipeFinding::Harms) {
        page.field("harms", &sentence(recipe), Style::Doubt);
    }
    for recipe in with(RecipeFinding::CannotTell) {
        page.field(
            "unclear",
            &format!("{}; more --rounds or a longer --time", sentence(recipe)),
            Style::Plain,
        );
    }
    let rest: Vec<_> = with(RecipeFinding::DoesNotMatter).map(|recipe| clean(&recipe.name)).collect();
    if !rest.is_empty() {
        page.field("others", &format!("do not matter here: {}", rest.join(", ")), Style::Plain);
    }
}

/// `open-with-attr: arrays opened with known attributes, 3.12 times as fast as opening them by reading their attributes`.
fn sentence(recipe: &RecipeRecord) -> String {
    let times = recipe.factor.as_ref().map_or_else(String::new, |found| {
        if found.factor >= 1.0 {
            format!(", {} times as fast as ", factor(found.factor))
        } else {
            format!(", {} times slower than ", factor(1.0 / found.factor))
        }
    });
    format!("{}: {}{times}{}", clean(&recipe.name), clean(&recipe.with), clean(&recipe.without))
}

fn cells(recipe: &RecipeRecord) -> Vec<Cell> {
    let dash = || Cell::styled("-", Style::Faint);
    let mut cells = vec![Cell::from(clean(&recipe.name).into_owned())];
    match &recipe.factor {
        None => cells.extend((0..4).map(|_| dash())),
        Some(found) => {
            let unit = |per_second: f64| match recipe.unit.as_str() {
                "records" => Cell::from(rate(per_second)),
                unit => Cell::from(format!("{} {}", rate(per_second), clean(unit))),
            };
            cells.push(unit(found.without_per_second));
            cells.push(unit(found.with_per_second));
            cells.push(Cell::styled(factor(found.factor), Style::Strong));
            cells.push(Cell::from(format!("{} to {}", factor(found.low), factor(found.high))));
        }
    }
    cells.push(words(recipe.finding));
    cells
}
