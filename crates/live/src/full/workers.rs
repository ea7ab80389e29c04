//! Table of workers, in as many columns as fit.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use statistics::WorkerSnapshot;
use units::{human_bytes_per_second, human_rate};

/// Columns that one list of workers takes, its gap included.
const LIST_WIDTH: u16 = 46;
/// Rows that frame and heading take.
const FRAME_ROWS: u16 = 3;

/// Lists that stand side by side in `width` columns.
fn list_count(width: u16) -> usize {
    usize::from((width.saturating_sub(2) / LIST_WIDTH).max(1))
}

/// Rows that show all of `worker_count` workers.
pub(crate) fn rows_wanted(worker_count: usize, width: u16) -> u16 {
    let rows = worker_count.div_ceil(list_count(width));
    FRAME_ROWS.saturating_add(u16::try_from(rows).unwrap_or(u16::MAX))
}

/// Draws as many workers as fit and says how many do not.
pub(crate) fn draw(frame: &mut Frame, area: Rect, workers: &[WorkerSnapshot]) {
    let running = workers.iter().filter(|worker| worker.running).count();
    let title = format!(" workers: {running} of {} running ", workers.len());
    let block = Block::bordered().title(title).border_style(Style::new().fg(Color::DarkGray));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if inner.is_empty() {
        return;
    }
    let rows = usize::from(inner.height.saturating_sub(1));
    let lists = list_count(area.width).min(workers.len().div_ceil(rows.max(1)).max(1));
    let places = rows * lists;
    let hidden = if workers.len() > places { workers.len() - places.saturating_sub(1) } else { 0 };
    let shown = workers.len() - hidden;
    let areas = Layout::horizontal(vec![Constraint::Length(LIST_WIDTH); lists]).split(inner);
    for (list, area) in areas.iter().enumerate() {
        let first = (list * rows).min(shown);
        let last = (first + rows).min(shown);
        let mut lines = vec![heading()];
        lines.extend((first..last).map(|index| row(index, &workers[index])));
        if hidden > 0 && list + 1 == lists && rows > 0 {
            lines.push(Line::from(format!("… and {hidden} more")));
        }
        frame.render_widget(Paragraph::new(lines), *area);
    }
}

fn heading() -> Line<'static> {
    let text = format!("{:>6}{:>9}{:>13}{:>8}", "worker", "ops/s", "bandwidth", "errors");
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn row(index: usize, worker: &WorkerSnapshot) -> Line<'static> {
    let figures = format!(
        "{index:>6}{:>9}{:>13}",
        human_rate(worker.operations_per_second),
        human_bytes_per_second(worker.bytes_per_second)
    );
    let errors = Span::raw(format!("{:>8}", worker.errors));
    let errors = if worker.errors > 0 { errors.style(Style::new().fg(Color::Red)) } else { errors };
    if worker.running {
        Line::from(vec![Span::raw(figures), errors])
    } else {
        let dim = Style::new().fg(Color::DarkGray);
        Line::from(vec![Span::styled(figures, dim), errors, Span::styled("  ended", dim)])
    }
}
