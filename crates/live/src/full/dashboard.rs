//! The state of the full screen, and how it is laid out.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, LineGauge, Paragraph};
use statistics::{Event, Snapshot};
use units::human::human_bytes;
use units::{human_bytes_per_second, human_rate};

use super::charts::{self, CLASS_COLORS};
use super::history::History;
use super::{hosts, workers};
use crate::text;

/// Fewest rows in which a chart tells anything.
const CHART_ROWS_MIN: u16 = 7;
/// Fewest rows of the list of workers: frame, heading, one worker.
const WORKER_ROWS_MIN: u16 = 4;
/// Most rows of classes beside which the other figures stand.
const CLASS_ROWS_MAX: u16 = 6;
/// Rows of figures: latency, totals, errors, CPU.
const FIGURE_ROWS: u16 = 4;
/// Width from which the figures stand beside the classes.
const FIGURES_BESIDE: u16 = 76;

/// Stage of the run.
#[derive(Debug, PartialEq)]
enum Stage {
    Starting,
    Preparing(String, f64),
    Running,
    Finished,
}

/// Everything the full screen shows.
pub(crate) struct Dashboard {
    /// Processors of this machine that the run may use.
    cpu_count: usize,
    stage: Stage,
    snapshot: Option<Snapshot>,
    history: History,
}

impl Dashboard {
    /// A screen before the first event, on a machine of `cpu_count` processors.
    pub(crate) fn new(cpu_count: usize) -> Self {
        Self { cpu_count, stage: Stage::Starting, snapshot: None, history: History::new() }
    }

    /// Takes over what an event says.
    pub(crate) fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Preparing(what, fraction) => {
                self.stage = Stage::Preparing((*what).to_owned(), *fraction);
            }
            Event::Running(snapshot) => {
                let same = self.snapshot.as_ref().is_some_and(|last| is_same_phase(last, snapshot));
                if !same || self.stage == Stage::Finished {
                    self.history = History::new();
                }
                self.stage = Stage::Running;
                self.history.push(snapshot);
                self.snapshot = Some((*snapshot).clone());
            }
            Event::Finished(..) => self.stage = Stage::Finished,
        }
    }

    /// Draws it into the frame, whatever its size.
    pub(crate) fn draw(&self, frame: &mut Frame) {
        let area = frame.area();
        let [header, rest] = Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
        self.draw_header(frame, header);
        let Some(snapshot) = &self.snapshot else { return };
        let [now, rest] =
            Layout::vertical([Constraint::Length(now_rows(snapshot, area)), Constraint::Fill(1)]).areas(rest);
        self.draw_now(frame, now, snapshot);
        // Workers of several hosts are too many to tell which is which.
        let by_host = !snapshot.hosts.is_empty();
        let (chart_rows, list_rows) = if by_host {
            hosts::split_rows(rest.height, &snapshot.hosts, CHART_ROWS_MIN)
        } else {
            split_rows(rest.height, workers::rows_wanted(snapshot.workers.len(), rest.width))
        };
        let [charts, list, _] = Layout::vertical([
            Constraint::Length(chart_rows),
            Constraint::Length(list_rows),
            Constraint::Fill(1),
        ])
        .areas(rest);
        if chart_rows > 0 {
            charts::draw(frame, charts, &self.history, &snapshot.classes);
        }
        match list_rows {
            0 => {}
            _ if by_host => hosts::draw(frame, list, &snapshot.hosts),
            _ => workers::draw(frame, list, &snapshot.workers),
        }
    }

    fn draw_header(&self, frame: &mut Frame, area: Rect) {
        let [title, gauge] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let (name, time, fraction) = match (&self.stage, &self.snapshot) {
            (Stage::Preparing(what, fraction), _) => {
                (text::printable(what), String::new(), Some(*fraction).filter(|value| value.is_finite()))
            }
            (Stage::Starting, _) | (_, None) => ("starting".to_owned(), String::new(), None),
            (stage, Some(snapshot)) => {
                let finished = *stage == Stage::Finished;
                let progress = text::progress(snapshot).map(|progress| progress.fraction);
                let time = time_of(snapshot, finished);
                let name = title_of(snapshot, usize::from(area.width).saturating_sub(time.len() + 1));
                (name, time, if finished { Some(1.0) } else { progress })
            }
        };
        let time_width = u16::try_from(time.len()).unwrap_or(u16::MAX);
        let [left, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(time_width)]).areas(title);
        frame.render_widget(Paragraph::new(Line::styled(name, bold)), left);
        frame.render_widget(Paragraph::new(time).alignment(Alignment::Right), right);
        if let Some(fraction) = fraction {
            frame.render_widget(bar(Line::from(text::whole_percent(fraction)), fraction, Color::Blue), gauge);
        }
    }

    fn draw_now(&self, frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
        let block = Block::bordered().title(" now ").border_style(Style::new().fg(Color::DarkGray));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        if area.width >= FIGURES_BESIDE {
            let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(inner);
            frame.render_widget(Paragraph::new(class_lines(snapshot)), left);
            self.draw_figures(frame, right, snapshot);
        } else {
            let above = class_rows(snapshot);
            let [above, below] =
                Layout::vertical([Constraint::Length(above), Constraint::Fill(1)]).areas(inner);
            frame.render_widget(Paragraph::new(class_lines(snapshot)), above);
            self.draw_figures(frame, below, snapshot);
        }
    }

    fn draw_figures(&self, frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
        let [lines, gauge] =
            Layout::vertical([Constraint::Length(FIGURE_ROWS - 1), Constraint::Length(1)]).areas(area);
        let errors = Span::raw(snapshot.errors.to_string());
        let errors =
            if snapshot.errors > 0 { errors.style(Style::new().fg(Color::Red).bold()) } else { errors };
        let latency =
            format!("p50 {}   p99 {}", text::latency(snapshot.p50_ns), text::latency(snapshot.p99_ns));
        let totals = format!(
            "{} operations   {}",
            human_rate(snapshot.operations as f64),
            human_bytes(snapshot.bytes as f64)
        );
        let text = vec![
            Line::from(vec![label("latency"), Span::raw(latency)]),
            Line::from(vec![label("so far"), Span::raw(totals)]),
            Line::from(vec![label("errors"), errors]),
        ];
        frame.render_widget(Paragraph::new(text), lines);
        let used = snapshot.cpus_used;
        if !snapshot.hosts.is_empty() {
            // How many processors the hosts have is not known here.
            let driving = snapshot.hosts.iter().filter(|host| host.role.drives() && host.failure.is_none());
            let value = Span::raw(format!("{used:.2} on {} driving hosts", driving.count()));
            frame.render_widget(Line::from(vec![label("CPUs"), value]), gauge);
            return;
        }
        let ratio = if used.is_finite() { (used / self.cpu_count as f64).clamp(0.0, 1.0) } else { 0.0 };
        let value = Span::raw(format!("{used:.2} of {}", self.cpu_count));
        let color = if ratio > 0.9 { Color::Red } else { Color::Green };
        frame.render_widget(bar(Line::from(vec![label("CPU"), value]), ratio, color), gauge);
    }
}

/// A bar that can be read without colours too.
fn bar(label: Line<'_>, ratio: f64, color: Color) -> LineGauge<'_> {
    LineGauge::default()
        .ratio(ratio.clamp(0.0, 1.0))
        .label(label)
        .filled_symbol("█")
        .unfilled_symbol("░")
        .filled_style(Style::new().fg(color))
        .unfilled_style(Style::new().fg(Color::DarkGray))
}

fn is_same_phase(one: &Snapshot, other: &Snapshot) -> bool {
    one.phase_number == other.phase_number && one.phase == other.phase && one.classes == other.classes
}

/// `randread   phase 2 of 8`, or `2/8 randread` where that is more than `width` columns.
fn title_of(snapshot: &Snapshot, width: usize) -> String {
    let name = text::printable(&snapshot.phase);
    let title = match (snapshot.phase_number, snapshot.phase_count) {
        (_, 1) => name,
        (number, 0) => format!("{name}   phase {number}"),
        (number, count) => format!("{name}   phase {number} of {count}"),
    };
    if Span::raw(title.as_str()).width() <= width { title } else { text::phase_label(snapshot) }
}

/// `12.0s of 30s   eta 18s`
fn time_of(snapshot: &Snapshot, finished: bool) -> String {
    let elapsed = text::elapsed(snapshot.elapsed_ns);
    if finished {
        return format!("done in {elapsed}");
    }
    match text::progress(snapshot).and_then(|progress| progress.rest_and_total_s) {
        Some((rest_s, total_s)) => {
            format!("{elapsed} of {}   eta {}", text::total(total_s), text::rest(rest_s))
        }
        None => elapsed,
    }
}

fn label(text: &'static str) -> Span<'static> {
    Span::styled(format!("{text:<9}"), Style::new().fg(Color::DarkGray))
}

/// Rows of classes, the one for all of them included.
fn class_rows(snapshot: &Snapshot) -> u16 {
    let rows = snapshot.classes.len() + usize::from(snapshot.classes.len() > 1);
    u16::try_from(rows).unwrap_or(u16::MAX).min(CLASS_ROWS_MAX)
}

fn now_rows(snapshot: &Snapshot, area: Rect) -> u16 {
    let classes = class_rows(snapshot);
    let rows = if area.width >= FIGURES_BESIDE { classes.max(FIGURE_ROWS) } else { classes + FIGURE_ROWS };
    rows + 2
}

/// Rates by class, all of them first: they matter most when rows are short.
fn class_lines(snapshot: &Snapshot) -> Vec<Line<'static>> {
    let figure = |values: &[f64], index: usize| values.get(index).copied().unwrap_or(0.0);
    let line = |name: &str, color: Color, rate: f64, bandwidth: f64| {
        let name = text::cut(&text::printable(name), 10);
        let figures = format!("{:>8}/s {:>12}", human_rate(rate), human_bytes_per_second(bandwidth));
        Line::from(vec![Span::styled(format!("{name:<11}"), Style::new().fg(color)), Span::raw(figures)])
    };
    let mut lines = Vec::new();
    if snapshot.classes.len() > 1 {
        let rate = snapshot.operations_per_second.iter().sum();
        let bandwidth = snapshot.bytes_per_second.iter().sum();
        lines.push(line("all", Color::Reset, rate, bandwidth));
    }
    for (index, class) in snapshot.classes.iter().enumerate() {
        let rate = figure(&snapshot.operations_per_second, index);
        let bandwidth = figure(&snapshot.bytes_per_second, index);
        lines.push(line(class, CLASS_COLORS[index % CLASS_COLORS.len()], rate, bandwidth));
    }
    lines
}

/// Rows of the charts and of the workers, of `rows` in all; the workers want `wanted`.
fn split_rows(rows: u16, wanted: u16) -> (u16, u16) {
    if rows < CHART_ROWS_MIN {
        return if rows >= WORKER_ROWS_MIN { (0, rows.min(wanted)) } else { (0, 0) };
    }
    let charts_least = (rows * 3 / 5).max(CHART_ROWS_MIN);
    let workers = wanted.min(rows - charts_least);
    if workers < WORKER_ROWS_MIN { (rows, 0) } else { (rows - workers, workers) }
}

#[cfg(test)]
mod tests;
