//! Table of hosts, where several take part.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};
use statistics::HostSnapshot;

use crate::hosts::{self, Row, Tone};

/// Rows of the frame.
const FRAME_ROWS: u16 = 2;
/// Fewest rows of the table: frame, heading, one host, how many more.
const ROWS_MIN: u16 = FRAME_ROWS + 3;

/// Rows of the charts and of the hosts, of `rows` in all: hosts come first, and charts get what is left where that is `chart_rows_min`
/// or more.
pub(crate) fn split_rows(rows: u16, hosts: &[HostSnapshot], chart_rows_min: u16) -> (u16, u16) {
    let wanted = u16::try_from(hosts::rows_wanted(hosts)).unwrap_or(u16::MAX).saturating_add(FRAME_ROWS);
    let list = match rows.checked_sub(chart_rows_min) {
        Some(beside) if beside >= ROWS_MIN.min(wanted) => wanted.min(beside),
        _ => wanted.min(rows),
    };
    let charts = rows - list;
    if charts < chart_rows_min { (0, list) } else { (charts, list) }
}

/// Draws as many hosts as fit and says how many do not.
pub(crate) fn draw(frame: &mut Frame, area: Rect, list: &[HostSnapshot]) {
    let mut title = format!(" {} ", hosts::count(list));
    if let Some(slowest) = hosts::slowest(list) {
        title += &format!("· {slowest} ");
    }
    let block = Block::bordered().title(title).border_style(Style::new().fg(Color::DarkGray));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = hosts::table(list, usize::from(inner.width), usize::from(inner.height));
    let lines: Vec<Line<'_>> = rows.into_iter().map(styled).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn styled(row: Row) -> Line<'static> {
    let style = match row.tone {
        Tone::Heading => Style::new().add_modifier(Modifier::BOLD),
        Tone::Usual => Style::new(),
        Tone::Slow => Style::new().fg(Color::Yellow),
        Tone::Failed => Style::new().fg(Color::Red),
        Tone::Rest => Style::new().fg(Color::DarkGray),
    };
    Line::styled(row.text, style)
}
