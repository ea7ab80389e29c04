//! The comparison as a person reads it.

use statistics::Verdict;
use units::{human_bytes_per_second, human_ns};

use super::limit::words;
use super::{
    Comparison, Differing, FigureComparison, FigureName, LimitOutcome, Method, PhaseComparison, Side,
};
use crate::page::{Cell, Page, Style, Table};
use crate::words::{clean, counted, rate};

pub(super) const COLUMNS: &[&str] = &["", "A", "B", "difference", "95% CI", "verdict"];

/// The comparison as text of `width` columns (at least 40), with ANSI colours where `colour` is set.
#[must_use]
pub fn render(comparison: &Comparison, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    let method = match comparison.method {
        Method::SingleRuns => "one run each",
        Method::Repeats => "repeats",
        Method::Pairs => "repeats, run in adjacent pairs",
    };
    page.line(
        &format!("strata {}, B compared with A: {method}", clean(&comparison.strata_version)),
        Style::Strong,
    );
    page.rule();
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        page.field(name, &side_words(side), Style::Plain);
        for record in &side.records {
            if let Some(failure) = &record.failure {
                let text = format!("{}: partial: {}", clean(&record.source), clean(failure));
                page.field("failed", &text, Style::Failure);
            }
        }
    }
    differing(&mut page, &comparison.differs);
    for phase in &comparison.phases {
        page.blank();
        block(&mut page, phase);
    }
    page.blank();
    for note in &comparison.notes {
        page.field("note", note, Style::Plain);
    }
    for alone in &comparison.unmatched {
        let text =
            format!("{} has no counterpart: it exists only in {}", alone.label(), alone.side.to_uppercase());
        page.field("note", &text, Style::Doubt);
    }
    page.rule();
    for phase in &comparison.phases {
        page.field("verdict", &verdict_sentence(phase, comparison.method), Style::Strong);
    }
    comparison.limits.iter().for_each(|limit| limit_lines(&mut page, limit));
    page.finish()
}

pub(super) fn side_words(side: &Side) -> String {
    let first = side.records.first().map_or("", |record| record.started_at.as_str());
    format!("{}: {}, from {}", clean(&side.label), counted(side.records.len() as u64, "record"), clean(first))
}

fn differing(page: &mut Page, fields: &[Differing]) {
    for (at, field) in fields.iter().enumerate() {
        page.field(if at == 0 { "differs" } else { "" }, &differing_words(field), Style::Plain);
    }
}

/// `load.depth: 4 → 16`.
pub(super) fn differing_words(field: &Differing) -> String {
    format!("{}: {} → {}", clean(&field.field), values(&field.a), values(&field.b))
}

fn values(values: &[String]) -> String {
    clean(&values.join(" / ")).into_owned()
}

fn block(page: &mut Page, phase: &PhaseComparison) {
    page.line(&phase.label(), Style::Strong);
    differing(page, &phase.differs);
    page.blank();
    let mut table = Table::new(COLUMNS);
    for class in &phase.classes {
        if phase.classes.len() > 1 {
            table.heading(clean(&class.class));
        }
        class.figures.iter().for_each(|figure| table.row(row(figure)));
    }
    page.table(&table);
    let doubts = |side: &str| {
        let own = phase.doubts.iter().filter(|doubt| doubt.side == side);
        let words = own.map(|doubt| match doubt.of_records {
            1 => clean(&doubt.kind).into_owned(),
            all => format!("{} ({} of {all})", clean(&doubt.kind), doubt.records),
        });
        words.collect::<Vec<_>>().join(", ")
    };
    let found: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|side| (side, doubts(side)))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    if !found.is_empty() {
        page.blank();
    }
    for (side, text) in found {
        page.field("warning", &format!("{}: {text}", side.to_uppercase()), Style::Doubt);
    }
}

/// Most per cent that are written out: an interval of two repeats that share nothing has hundreds of digits.
const PERCENT_MAX: f64 = 1e6;

/// A difference with its sign: `+2.10%`, `-14.3%`.
pub(super) fn signed(percent: f64) -> String {
    if percent.abs() >= PERCENT_MAX {
        return format!(">{:+.0}%", PERCENT_MAX.copysign(percent));
    }
    let decimals = match percent.abs() {
        0.0 => return "0%".to_owned(),
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{percent:+.decimals$}%")
}

/// A size without sign: `2.1%`.
pub(super) fn unsigned(percent: f64) -> String {
    if percent >= PERCENT_MAX { format!(">{PERCENT_MAX:.0}%") } else { format!("{percent:.1}%") }
}

fn value(figure: FigureName, value: Option<f64>) -> Cell {
    let Some(value) = value else { return Cell::styled("-", Style::Faint) };
    match figure {
        FigureName::Rate => rate(value).into(),
        FigureName::Bandwidth => human_bytes_per_second(value).into(),
        _ => human_ns(value).into(),
    }
}

pub(super) fn row(figure: &FigureComparison) -> Vec<Cell> {
    let mut cells =
        vec![figure.figure.name().into(), value(figure.figure, figure.a), value(figure.figure, figure.b)];
    let Some(difference) = &figure.difference else {
        let plain =
            figure.a.zip(figure.b).map_or_else(|| "-".to_owned(), |(a, b)| signed(100.0 * (b / a - 1.0)));
        cells.push(plain.into());
        cells.push(Cell::styled("-", Style::Faint));
        cells.push(Cell::styled("too little data", Style::Faint));
        return cells;
    };
    cells.push(signed(difference.percent).into());
    cells.push(format!("{} to {}", signed(difference.percent_low), signed(difference.percent_high)).into());
    cells.push(match figure.verdict {
        Verdict::Faster => Cell::styled("faster", Style::Strong),
        Verdict::Slower => Cell::styled("slower", Style::Failure),
        Verdict::NoDifference | Verdict::TooLittle => Cell::styled("no difference", Style::Faint),
    });
    cells
}

/// `randread: B is slower: rate -3.90% (-4.80% to -3.10%)`.
pub(super) fn verdict_sentence(phase: &PhaseComparison, method: Method) -> String {
    let (name, figure) = (phase.label(), phase.headline.figure.name());
    let Some((_, difference)) = phase.decisive() else {
        if phase.b_is_idle() {
            return format!("{name}: B completed no operations, A did");
        }
        let missing = phase.total(phase.headline.figure).and_then(|figure| figure.missing.as_deref());
        return format!("{name}: too little data on {figure}: {}", missing.unwrap_or("no value exists"));
    };
    let figures = format!("{figure} {}", words(&difference));
    let others: Vec<_> = phase
        .headline
        .considered
        .iter()
        .filter(|other| **other != phase.headline.figure)
        .filter(|other| phase.total(**other).is_some_and(|other| other.difference.is_some()))
        .map(|other| other.name())
        .collect();
    let figures = match others[..] {
        [] => figures,
        _ => format!("{figures}; also considered: {}", others.join(", ")),
    };
    // What another run would say, one run cannot know.
    let scope = if method == Method::SingleRuns { " in one run each" } else { "" };
    match phase.headline.verdict {
        Verdict::Faster => format!("{name}: B is faster{scope}: {figures}"),
        Verdict::Slower => format!("{name}: B is slower{scope}: {figures}"),
        Verdict::NoDifference | Verdict::TooLittle => format!(
            "{name}: no difference detected: {figures}; only differences above {} are detectable",
            unsigned(difference.detectable_percent(phase.headline.figure.direction()))
        ),
    }
}

fn limit_lines(page: &mut Page, limit: &LimitOutcome) {
    for (is_exceeded, text) in limit_words(limit) {
        match is_exceeded {
            true => page.field("failed", &text, Style::Failure),
            false => page.field("warning", &text, Style::Doubt),
        }
    }
}

/// Findings of a limit, a line each: whether it was exceeded (else it cannot trigger), and the words.
pub(super) fn limit_words(limit: &LimitOutcome) -> Vec<(bool, String)> {
    let exceeded =
        limit.exceeded_by.iter().map(|phase| (true, format!("--fail-if {}: {phase}", limit.limit)));
    let blind = limit
        .blind_to
        .iter()
        .map(|phase| (false, format!("--fail-if {} cannot trigger: {phase}", limit.limit)));
    exceeded.chain(blind).collect()
}
