//! The comparison as one HTML page: the verdicts, and the differences as dots with whiskers.

use std::fmt::Write;

use statistics::{Difference, Direction, Verdict};

use super::text::{COLUMNS, differing_words, limit_words, row, side_words, signed, verdict_sentence};
use super::{Comparison, FigureComparison, FigureName, Limit, PhaseComparison};
use crate::chart::{document, escaped};
use crate::words::clean;

/// Half of the width of a drawing, and its height, in its own units.
const HALF: f64 = 128.0;
const HEIGHT: f64 = 22.0;
/// Largest difference that the scale reaches, in percent: what is wider ends at the edge.
const SCALE_PERCENT_MAX: f64 = 200.0;
/// Smallest reach of the scale.
const SCALE_PERCENT_MIN: f64 = 1.0;

/// The comparison as a page that needs nothing from outside: the verdicts first, then for each phase a table with each difference as a dot with its 95 % interval, the line of
/// no difference, and the limits that were asked for.
#[must_use]
pub fn to_html(comparison: &Comparison) -> String {
    let mut out = String::new();
    for phase in &comparison.phases {
        let _ = writeln!(out, "<p><b>{}</b></p>", escaped(&verdict_sentence(phase, comparison.method)));
    }
    for (is_exceeded, words) in comparison.limits.iter().flat_map(limit_words) {
        let kind = if is_exceeded { "failed" } else { "warning" };
        let _ = writeln!(out, "<p class=\"warn\">{kind}: {}</p>", escaped(&words));
    }
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let _ = writeln!(out, "<p class=\"muted\">{name}: {}</p>", escaped(&side_words(side)));
    }
    let remarks = comparison.differs.iter().map(|field| format!("differs: {}", differing_words(field)));
    for text in remarks.chain(comparison.notes.iter().map(|note| format!("note: {note}"))) {
        let _ = writeln!(out, "<p class=\"muted\">{}</p>", escaped(&clean(&text)));
    }
    for alone in &comparison.unmatched {
        let words = format!("{} exists only in {}", alone.label(), alone.side.to_uppercase());
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", escaped(&words));
    }
    let asked = comparison.limits.iter().filter_map(|limit| limit.limit.parse::<Limit>().ok());
    let limits: Vec<(Option<FigureName>, f64)> = asked.map(Limit::parts).collect();
    comparison.phases.iter().for_each(|phase| of_phase(phase, &limits, &mut out));
    let title = format!("{} and {}", clean(&comparison.a.label), clean(&comparison.b.label));
    document(&title, "strata compare: B compared with A", &out)
}

fn of_phase(phase: &PhaseComparison, limits: &[(Option<FigureName>, f64)], out: &mut String) {
    let reach = reach(phase, limits);
    let _ = writeln!(
        out,
        "<h2>{}</h2>\n<div class=\"table\"><table>\n<thead><tr><th>metric</th>{}<th class=\"l\">{} to {}</th></tr></thead>\n<tbody>",
        escaped(&phase.label()),
        COLUMNS[1..].iter().map(|name| format!("<th>{name}</th>")).collect::<String>(),
        escaped(&signed(-reach)),
        escaped(&signed(reach)),
    );
    for (number, class) in phase.classes.iter().enumerate() {
        for figure in &class.figures {
            let mut cells: Vec<String> = row(figure).into_iter().map(|cell| cell.text).collect();
            if phase.classes.len() > 1 {
                cells[0] = format!("{}: {}", clean(&class.class), cells[0]);
            }
            let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
            // Limits are of all operations together, which come first.
            let shown = limits.iter().filter(|(of, _)| match of {
                _ if number > 0 => false,
                Some(name) => *name == figure.figure,
                None => figure.figure == phase.headline.figure,
            });
            let shown: Vec<f64> = shown.map(|(_, percent)| limit_at(figure, *percent)).collect();
            let drawn = figure
                .difference
                .as_ref()
                .map_or_else(String::new, |found| whisker(found, figure.verdict, reach, &shown));
            let _ = writeln!(out, "<tr>{cells}<td>{drawn}</td></tr>");
        }
    }
    out.push_str("</tbody>\n</table></div>\n<p class=\"muted\">Dot: difference; line: 95% confidence interval; grey: no difference");
    out.push_str(if limits.is_empty() { ".</p>\n" } else { "; dashed: the limit.</p>\n" });
}

/// Difference at which a figure is slower by so many percent: the rate that falls, or the latency that grows.
fn limit_at(figure: &FigureComparison, percent: f64) -> f64 {
    match figure.figure.direction() {
        Direction::HigherIsFaster => -percent,
        Direction::LowerIsFaster => percent,
    }
}

/// Percent that the scale of a phase reaches on both sides: the same for all its figures.
fn reach(phase: &PhaseComparison, limits: &[(Option<FigureName>, f64)]) -> f64 {
    let figures = phase.classes.iter().flat_map(|class| &class.figures);
    let ends = figures
        .filter_map(|figure| figure.difference)
        .flat_map(|found| [found.percent_low, found.percent_high]);
    let largest = ends
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
