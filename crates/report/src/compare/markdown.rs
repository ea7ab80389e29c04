//! The comparison in Markdown, as summaries of CI and comments of merge requests show it.

use super::Comparison;
use super::text::{COLUMNS, limit_words, row, side_words, verdict_sentence};
use crate::words::clean;

/// The comparison as Markdown: verdicts first, then a table a phase.
#[must_use]
pub fn to_markdown(comparison: &Comparison) -> String {
    let mut out = String::from("### strata compare\n\n");
    for phase in &comparison.phases {
        out += &format!("- **{}**\n", text(&verdict_sentence(phase, comparison.method)));
    }
    for (is_exceeded, words) in comparison.limits.iter().flat_map(limit_words) {
        let kind = if is_exceeded { "**failed**" } else { "warning" };
        out += &format!("- {kind}: {}\n", text(&words));
    }
    out += "\n";
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        out += &format!("- {name}: {}\n", text(&side_words(side)));
    }
    comparison.notes.iter().for_each(|note| out += &format!("- note: {}\n", text(note)));
    for phase in &comparison.phases {
        out += &format!("\n#### {}\n\n", text(&phase.label()));
        out += &format!("| metric | {} |\n", COLUMNS[1..].join(" | "));
        out += &format!("|---|{}\n", "---:|".repeat(COLUMNS.len() - 1));
        for class in &phase.classes {
            for figure in &class.figures {
                let mut cells: Vec<String> = row(figure).iter().map(|cell| text(&cell.text)).collect();
                if phase.classes.len() > 1 {
                    cells[0] = format!("{} {}", text(&clean(&class.class)), cells[0]);
                }
                out += &format!("| {} |\n", cells.join(" | "));
            }
        }
    }
    out
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
