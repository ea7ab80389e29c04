//! The comparison in Markdown, as summaries of CI and comments of merge requests show it.

use super::Comparison;
use super::text::{headline_row, limit_words, row, side_words, verdict_sentences};
use crate::words::clean;

/// Comparisons as Markdown: verdicts first, then a table a phase, or one of the rows of a stack.
#[must_use]
pub fn to_markdown(comparisons: &[Comparison]) -> String {
    comparisons.iter().map(of_comparison).collect::<Vec<_>>().join("\n")
}

fn of_comparison(comparison: &Comparison) -> String {
    let mut out = format!("### {}\n\n", text(&clean(&comparison.headline())));
    for sentence in verdict_sentences(comparison) {
        out += &format!("- **{}**\n", text(&sentence));
    }
    for (is_exceeded, words) in comparison.limits.iter().flat_map(limit_words) {
        let kind = if is_exceeded { "**failed**" } else { "warning" };
        out += &format!("- {kind}: {}\n", text(&words));
    }
    out += "\n";
    let names = comparison.method.names();
    for (name, side) in [(names.a, &comparison.a), (names.b, &comparison.b)] {
        out += &format!("- {name}: {}\n", text(&side_words(comparison.method, side)));
    }
    comparison.notes.iter().for_each(|note| out += &format!("- note: {}\n", text(note)));
    if comparison.is_stack {
        header("row", comparison, &mut out);
        for cells in comparison.phases.iter().filter_map(headline_row) {
            line(cells.iter().map(|cell| text(&cell.text)), &mut out);
        }
        return out;
    }
    for phase in &comparison.phases {
        out += &format!("\n#### {}\n", text(&phase.label()));
        header("metric", comparison, &mut out);
        for class in &phase.classes {
            for figure in &class.figures {
                let mut cells: Vec<String> = row(figure).iter().map(|cell| text(&cell.text)).collect();
                if phase.classes.len() > 1 {
                    cells[0] = format!("{} {}", text(&clean(&class.class)), cells[0]);
                }
                line(cells, &mut out);
            }
        }
    }
    out
}

/// Header of a table of figures.
fn header(first: &str, comparison: &Comparison, out: &mut String) {
    let columns = comparison.method.columns();
    *out += &format!("\n| {first} | {} |\n", columns[1..].join(" | "));
    *out += &format!("|---|{}\n", "---:|".repeat(columns.len() - 1));
}

fn line(cells: impl IntoIterator<Item = String>, out: &mut String) {
    let cells: Vec<String> = cells.into_iter().collect();
    *out += &format!("| {} |\n", cells.join(" | "));
}

/// A text that Markdown shows as it is: its marks are escaped (CommonMark 0.31, 2.4), and it stays in its line.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' => {
                out.push('\\');
                out.push(letter);
            }
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}
