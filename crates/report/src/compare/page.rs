//! The comparison as one HTML page: the verdicts, and the differences as dots with whiskers.

use std::fmt::Write;

use statistics::{Difference, Direction, Verdict};

use super::text::{differing_words, headline_row, limit_words, row, side_words, signed, verdict_sentences};
use super::{Comparison, FigureComparison, FigureName, Limit, Method, PhaseComparison};
use crate::chart::{document, escaped};
use crate::words::clean;

/// Half of the width of a drawing, and its height, in its own units.
const HALF: f64 = 128.0;
const HEIGHT: f64 = 22.0;
/// Largest difference that the scale reaches, in percent: what is wider ends at the edge.
const SCALE_PERCENT_MAX: f64 = 200.0;
/// Reach of the scale of many rows, as a multiple of the largest difference.
const ROWS_REACH: f64 = 1.3;
/// Smallest reach of the scale.
const SCALE_PERCENT_MIN: f64 = 1.0;

/// Comparisons as a page that needs nothing from outside: the verdicts first, then for each phase a table with each difference as a dot with its 95 % interval, the line of
/// no difference, and the limits that were asked for. The rows of a stack are in one table.
#[must_use]
pub fn to_html(comparisons: &[Comparison]) -> String {
    let mut out = String::new();
    for comparison in comparisons {
        if comparisons.len() > 1 {
            let _ = writeln!(out, "<h2>{}</h2>", escaped(&clean(&comparison.headline())));
        }
        of_comparison(comparison, &mut out);
    }
    let titles: Vec<String> = comparisons.iter().map(title).collect();
    let headline = match comparisons {
        [only] if only.method != Method::History => "strata compare: B compared with A".to_owned(),
        [only] => clean(&only.headline()).into_owned(),
        _ => "strata history check".to_owned(),
    };
    document(&titles.join(", "), &headline, &out)
}

fn title(comparison: &Comparison) -> String {
    match comparison.method {
        Method::History => clean(&comparison.b.label).into_owned(),
        _ => format!("{} and {}", clean(&comparison.a.label), clean(&comparison.b.label)),
    }
}

fn of_comparison(comparison: &Comparison, out: &mut String) {
    for sentence in verdict_sentences(comparison) {
        let _ = writeln!(out, "<p><b>{}</b></p>", escaped(&sentence));
    }
    for (is_exceeded, words) in comparison.limits.iter().flat_map(limit_words) {
        let kind = if is_exceeded { "failed" } else { "warning" };
        let _ = writeln!(out, "<p class=\"warn\">{kind}: {}</p>", escaped(&words));
    }
    let names = comparison.method.names();
    for (name, side) in [(names.a, &comparison.a), (names.b, &comparison.b)] {
        let _ =
            writeln!(out, "<p class=\"muted\">{name}: {}</p>", escaped(&side_words(comparison.method, side)));
    }
    let remarks = comparison.differs.iter().map(|field| format!("differs: {}", differing_words(field)));
    for text in remarks.chain(comparison.notes.iter().map(|note| format!("note: {note}"))) {
        let _ = writeln!(out, "<p class=\"muted\">{}</p>", escaped(&clean(&text)));
    }
    for alone in &comparison.unmatched {
        let words = format!("{} exists only in {}", alone.label(), comparison.side_name(&alone.side));
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", escaped(&words));
    }
    let asked = comparison.limits.iter().filter_map(|limit| limit.limit.parse::<Limit>().ok());
    let limits: Vec<(Option<FigureName>, f64)> = asked.map(Limit::parts).collect();
    if comparison.is_stack {
        of_rows(comparison, &limits, out);
    } else {
        comparison.phases.iter().for_each(|phase| of_phase(phase, comparison.method, &limits, out));
    }
}

/// The rows of a stack, each with the figure that decides, on one scale.
fn of_rows(comparison: &Comparison, limits: &[(Option<FigureName>, f64)], out: &mut String) {
    // All dots have their place; an interval that is wider than all of them ends at the edge.
    let decisive = comparison.phases.iter().filter_map(|phase| phase.total(phase.headline.figure));
    let percents = decisive.filter_map(|figure| figure.difference).map(|found| found.percent);
    let reach = reach(percents.map(|percent| percent * ROWS_REACH), limits);
    begin_table("row", comparison.method, reach, out);
    for phase in &comparison.phases {
        let (Some(cells), Some(figure)) = (headline_row(phase), phase.total(phase.headline.figure)) else {
            continue;
        };
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.text).collect();
        table_row(
            &cells,
            figure,
            phase.headline.verdict,
            reach,
            &limits_at(phase, figure, true, limits),
            out,
        );
    }
    end_table(limits, out);
}

fn of_phase(phase: &PhaseComparison, method: Method, limits: &[(Option<FigureName>, f64)], out: &mut String) {
    let figures = phase.classes.iter().flat_map(|class| &class.figures);
    let found = figures.filter_map(|figure| figure.difference);
    let reach = reach(found.flat_map(|found| [found.percent_low, found.percent_high]), limits);
    let _ = writeln!(out, "<h2>{}</h2>", escaped(&phase.label()));
    begin_table("metric", method, reach, out);
    for (number, class) in phase.classes.iter().enumerate() {
        for figure in &class.figures {
            let mut cells: Vec<String> = row(figure).into_iter().map(|cell| cell.text).collect();
            if phase.classes.len() > 1 {
                cells[0] = format!("{}: {}", clean(&class.class), cells[0]);
            }
            let limits = limits_at(phase, figure, number == 0, limits);
            table_row(&cells, figure, figure.verdict, reach, &limits, out);
        }
    }
    end_table(limits, out);
}

fn begin_table(first: &str, method: Method, reach: f64, out: &mut String) {
    let columns = method.columns();
    let _ = writeln!(
        out,
        "<div class=\"table\"><table>\n<thead><tr><th>{first}</th>{}<th class=\"l\">{} to {}</th></tr></thead>\n<tbody>",
        columns[1..].iter().map(|name| format!("<th>{name}</th>")).collect::<String>(),
        escaped(&signed(-reach)),
        escaped(&signed(reach)),
    );
}

fn table_row(
    cells: &[String],
    figure: &FigureComparison,
    verdict: Verdict,
    reach: f64,
    limits: &[f64],
    out: &mut String,
) {
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
    let drawn =
        figure.difference.as_ref().map_or_else(String::new, |found| whisker(found, verdict, reach, limits));
    let _ = writeln!(out, "<tr>{cells}<td>{drawn}</td></tr>");
}

fn end_table(limits: &[(Option<FigureName>, f64)], out: &mut String) {
    out.push_str("</tbody>\n</table></div>\n<p class=\"muted\">Dot: difference; line: 95% confidence interval; grey: no difference");
    let is_shown = limits.iter().any(|(_, percent)| *percent > 0.0);
    out.push_str(if !is_shown { ".</p>\n" } else { "; dashed: the limit.</p>\n" });
}

/// Differences at which limits of a figure lie. Limits are of all operations together.
fn limits_at(
    phase: &PhaseComparison,
    figure: &FigureComparison,
    is_total: bool,
    limits: &[(Option<FigureName>, f64)],
) -> Vec<f64> {
    // A limit of 0 is the line of no difference.
    let shown = limits.iter().filter(|(of, percent)| match of {
        _ if !is_total || *percent == 0.0 => false,
        Some(name) => *name == figure.figure,
        None => figure.figure == phase.headline.figure,
    });
    shown.map(|(_, percent)| limit_at(figure, *percent)).collect()
}

/// Difference at which a figure is slower by so many percent: the rate that falls, or the latency that grows.
fn limit_at(figure: &FigureComparison, percent: f64) -> f64 {
    match figure.figure.direction() {
        Direction::HigherIsFaster => -percent,
        Direction::LowerIsFaster => percent,
    }
}

/// Percent that the scale of a table reaches on both sides, so that these percents have their place: the same for all its figures.
fn reach(percents: impl Iterator<Item = f64>, limits: &[(Option<FigureName>, f64)]) -> f64 {
    let largest = percents
        .map(f64::abs)
        .filter(|percent| percent.is_finite())
        .chain(limits.iter().map(|(_, percent)| *percent));
    (largest.fold(SCALE_PERCENT_MIN, f64::max) * 1.05).min(SCALE_PERCENT_MAX)
}

fn whisker(found: &Difference, verdict: Verdict, reach: f64, limits: &[f64]) -> String {
    let x = |percent: f64| (percent / reach).clamp(-1.0, 1.0) * HALF + HALF;
    let middle = HEIGHT / 2.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"whisker\" viewBox=\"-4 0 {} {HEIGHT}\" role=\"img\" aria-label=\"{} ({} to {})\">",
        2.0 * HALF + 8.0,
        escaped(&signed(found.percent)),
        escaped(&signed(found.percent_low)),
        escaped(&signed(found.percent_high)),
    );
    let mut upright = |class: &str, at: f64| {
        let _ = write!(
            out,
            "<line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"1\" y2=\"{}\"/>",
            HEIGHT - 1.0
        );
    };
    upright("zero", x(0.0));
    limits.iter().for_each(|percent| upright("limit", x(*percent)));
    let width = if verdict == Verdict::NoDifference { 1.5 } else { 3.0 };
    let _ = write!(
        out,
        "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke-width=\"{width}\"/><circle cx=\"{:.1}\" cy=\"{middle}\" r=\"4\"/></svg>",
        x(found.percent_low),
        x(found.percent_high),
        x(found.percent),
    );
    out
}
