//! The comparison as a person reads it.

use statistics::Verdict;
use units::{human_bytes_per_second, human_ns};

use super::limit::words;
use super::{
    Comparison, Differing, FigureComparison, FigureName, LimitOutcome, Method, PhaseComparison, Side,
};
use crate::page::{Cell, Page, Style, Table};
use crate::words::{clean, counted, rate};

/// Names of the sides in tables, and that of B in a sentence.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) a: &'static str,
    pub(super) b: &'static str,
    b_in_sentence: &'static str,
}

impl Method {
    pub(super) fn names(self) -> Names {
        match self {
            Self::History => Names { a: "before", b: "newest", b_in_sentence: "the newest run" },
            _ => Names { a: "A", b: "B", b_in_sentence: "B" },
        }
    }

    /// Headers of a table of figures: the name of a row, then what [`row`] gives.
    pub(super) fn columns(self) -> Vec<String> {
        let names = self.names();
        ["", names.a, names.b, "difference", "95% CI", "verdict"].map(str::to_owned).into()
    }
}

/// The comparison as text of `width` columns (at least 40), with ANSI colours where `colour` is set.
#[must_use]
pub fn render(comparison: &Comparison, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    let names = comparison.method.names();
    let of_sides = |method: &str| {
        let version = clean(&comparison.strata_version);
        format!("strata {version}, {} compared with {}: {method}", names.b, names.a)
    };
    let headline = match comparison.method {
        Method::SingleRuns => of_sides("one run each"),
        Method::Repeats => of_sides("repeats"),
        Method::Pairs => of_sides("repeats, run in adjacent pairs"),
        Method::History => clean(&comparison.headline()).into_owned(),
    };
    page.line(&headline, Style::Strong);
    page.rule();
    for (name, side) in [(names.a, &comparison.a), (names.b, &comparison.b)] {
        page.field(name, &side_words(comparison.method, side), Style::Plain);
        for record in &side.records {
            if let Some(failure) = &record.failure {
                let text = format!("{}: partial: {}", clean(&record.source), clean(failure));
                page.field("failed", &text, Style::Failure);
            }
        }
    }
    differing(&mut page, &comparison.differs);
    page.blank();
    if comparison.is_stack {
        let fields = comparison.phases.iter().flat_map(|phase| &phase.differs);
        let mut words: Vec<String> = Vec::new();
        for told in fields.map(differing_words) {
            if !words.contains(&told) {
                words.push(told);
            }
        }
        words.iter().for_each(|told| page.field("differs", told, Style::Plain));
        page.table(&of_rows(comparison));
        page.blank();
    } else {
        for phase in &comparison.phases {
            block(&mut page, phase, comparison.method);
            page.blank();
        }
    }
    for note in &comparison.notes {
        page.field("note", note, Style::Plain);
    }
    // Of a first run all phases are alone.
    if comparison.a.records.is_empty() {
        return page.finish();
    }
    for alone in &comparison.unmatched {
        let text = format!(
            "{} has no counterpart: it exists only in {}",
            alone.label(),
            comparison.side_name(&alone.side)
        );
        page.field("note", &text, Style::Doubt);
    }
    page.rule();
    for sentence in verdict_sentences(comparison) {
        page.field("verdict", &sentence, Style::Strong);
    }
    comparison.limits.iter().for_each(|limit| limit_lines(&mut page, limit));
    page.finish()
}

impl FigureName {
    /// A value with its unit.
    pub(crate) fn words(self, value: f64) -> String {
        match self {
            Self::Rate => rate(value),
            Self::Bandwidth => human_bytes_per_second(value),
            _ => human_ns(value),
        }
    }

    /// Name of a row of a table of several phases: that of the phase, with the figure unless it is a speed.
    pub(crate) fn of_phase(self, label: String) -> String {
        match self {
            Self::Rate | Self::Bandwidth => label,
            other => format!("{label}: {}", other.name()),
        }
    }
}

impl Comparison {
    /// Headline of the comparison.
    pub(super) fn headline(&self) -> String {
        match self.method {
            Method::History => format!("strata history check: {}", self.b.label),
            _ => "strata compare".to_owned(),
        }
    }

    /// Name of the side `a` or `b` as tables have it.
    pub(super) fn side_name(&self, side: &str) -> &'static str {
        let names = self.method.names();
        if side == "a" { names.a } else { names.b }
    }
}

/// The verdicts in sentences: one a phase; of a stack, how many rows have which, and those that differ.
pub(super) fn verdict_sentences(comparison: &Comparison) -> Vec<String> {
    let sentence = |phase: &PhaseComparison| verdict_sentence(phase, comparison.method);
    if !comparison.is_stack {
        return comparison.phases.iter().map(sentence).collect();
    }
    let of =
        |verdict: Verdict| comparison.phases.iter().filter(move |phase| phase.headline.verdict == verdict);
    let told: Vec<String> = [
        (Verdict::Slower, "slower"),
        (Verdict::Faster, "faster"),
        (Verdict::NoDifference, "without a detected difference"),
        (Verdict::TooLittle, "with too little data"),
    ]
    .into_iter()
    .map(|(verdict, words)| (of(verdict).count(), words))
    .filter(|(count, _)| *count > 0)
    .map(|(count, words)| format!("{count} {words}"))
    .collect();
    let rows = counted(comparison.phases.len() as u64, "row");
    let detectable = comparison.phases.iter().filter_map(|phase| {
        let (figure, difference) = phase.decisive()?;
        Some(difference.detectable_percent(figure.figure.direction()))
    });
    let (least, most) = detectable.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), percent| {
        (least.min(percent), most.max(percent))
    });
    let detectable = match least <= most {
        true => {
            format!(
                "; only differences above {} to {} are detectable, depending on the row",
                unsigned(least),
                unsigned(most)
            )
        }
        false => String::new(),
    };
    let all = format!("{rows}: {}{detectable}", told.join(", "));
    std::iter::once(all).chain(of(Verdict::Slower).chain(of(Verdict::Faster)).map(sentence)).collect()
}

/// The rows of a stack, each with the figure that decides.
fn of_rows(comparison: &Comparison) -> Table {
    let mut table = Table::named(comparison.method.columns());
    comparison.phases.iter().filter_map(headline_row).for_each(|cells| table.row(cells));
    table
}

/// A phase as a row of a table: the figure that decides, and the verdict on the phase.
pub(super) fn headline_row(phase: &PhaseComparison) -> Option<Vec<Cell>> {
    let figure = phase.total(phase.headline.figure)?;
    let mut cells = row(figure);
    cells[0] = phase.headline.figure.of_phase(phase.label()).into();
    if figure.difference.is_some() {
        // A table of many rows shows what their number leaves of a difference.
        cells[5] = verdict_cell(phase.headline.verdict);
    }
    Some(cells)
}

pub(super) fn side_words(method: Method, side: &Side) -> String {
    let Some(first) = side.records.first() else { return clean(&side.label).into_owned() };
    if method == Method::History && side.records.len() == 1 {
        return format!("{}, from {}", clean(&first.source), clean(&first.started_at));
    }
    let first = first.started_at.as_str();
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

fn block(page: &mut Page, phase: &PhaseComparison, method: Method) {
    page.line(&phase.label(), Style::Strong);
    differing(page, &phase.differs);
    page.blank();
    let mut table = Table::named(method.columns());
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
    let names = method.names();
    for (side, text) in found {
        let side = if side == "a" { names.a } else { names.b };
        page.field("warning", &format!("{side}: {text}"), Style::Doubt);
    }
}

/// Phases at which a limit cannot trigger that are shown.
const BLIND_SHOWN: usize = 6;

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
    value.map_or_else(|| Cell::styled("-", Style::Faint), |value| figure.words(value).into())
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
    cells.push(verdict_cell(figure.verdict));
    cells
}

fn verdict_cell(verdict: Verdict) -> Cell {
    match verdict {
        Verdict::Faster => Cell::styled("faster", Style::Strong),
        Verdict::Slower => Cell::styled("slower", Style::Failure),
        Verdict::NoDifference | Verdict::TooLittle => Cell::styled("no difference", Style::Faint),
    }
}

/// `randread: B is slower: rate -3.90% (-4.80% to -3.10%)`.
pub(super) fn verdict_sentence(phase: &PhaseComparison, method: Method) -> String {
    let (name, figure) = (phase.label(), phase.headline.figure.name());
    let Some((_, difference)) = phase.decisive() else {
        if phase.b_is_idle() {
            let names = method.names();
            return format!("{name}: {} completed no operations, {} did", names.b_in_sentence, names.a);
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
    let b = method.names().b_in_sentence;
    let scope = if method == Method::SingleRuns { " in one run each" } else { "" };
    match phase.headline.verdict {
        Verdict::Faster => format!("{name}: {b} is faster{scope}: {figures}"),
        Verdict::Slower => format!("{name}: {b} is slower{scope}: {figures}"),
        Verdict::NoDifference | Verdict::TooLittle => format!(
            "{name}: no difference detected: {figures}; only differences above {} are detectable",
            unsigned(difference.detectable_percent(phase.headline.figure.direction()))
        ),
    }
}

fn limit_lines(page: &mut Page, limit: &LimitOutcome) {
    let (exceeded, blind): (Vec<_>, Vec<_>) =
        limit_words(limit).into_iter().partition(|(is_exceeded, _)| *is_exceeded);
    exceeded.iter().for_each(|(_, text)| page.field("failed", text, Style::Failure));
    blind.iter().take(BLIND_SHOWN).for_each(|(_, text)| page.field("warning", text, Style::Doubt));
    if blind.len() > BLIND_SHOWN {
        let more = counted((blind.len() - BLIND_SHOWN) as u64, "phase");
        page.field("", &format!("and {more} more; --json has all of them"), Style::Plain);
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
