//! Shares of a phase as a table: what each endpoint, master or host did.

use statistics::{OriginSummary, ShareSummary, by_origin};
use units::{count, human_bytes_per_second, percent, rate};

use crate::page::{Cell, Page, Style, Table};
use crate::record::{HostRecord, PhaseRecord};
use crate::words::{bounded, clean, percentile_words};

/// Rows of a table; of more, the slowest and the fastest stand there.
const ROWS_MAX: usize = 16;
const COLUMNS: [&str; 7] = ["", "rate", "bandwidth", "mean", "p50", "p99", "errors"];

/// Shares of the hosts that carried a phase out together, and which of them was the slowest.
pub(crate) fn hosts(page: &mut Page, phase: &PhaseRecord, hosts: &[HostRecord]) {
    if phase.plan.load().place.is_none() {
        return;
    }
    let mut done: Vec<OriginSummary> = by_origin(&phase.samples);
    let rank = |label: &str| hosts.iter().position(|host| host.name == label);
    done.sort_by_key(|origin| origin.origin.as_deref().and_then(rank));
    let rows: Vec<(String, ShareSummary)> =
        done.into_iter().map(|origin| (origin.origin.unwrap_or_default(), origin.figures)).collect();
    table(page, "by host", &rows);
    let workers = |name: &str| {
        let own = |worker: &&statistics::WorkerSamples| worker.origin.as_deref() == Some(name);
        phase.samples.workers.iter().filter(own).count()
    };
    if let Some((name, below)) = slowest(&rows, workers) {
        let text = format!("{} is the slowest host: {} below the median", clean(name), percent(below));
        page.field("slowest", &text, Style::Strong);
    }
    let own = hosts.iter().filter(|host| !host.options.is_empty()).map(|host| {
        let options: Vec<String> =
            host.options.iter().map(|[name, value]| format!("{name}={value}")).collect();
        format!("{}: {}", host.name, options.join(", "))
    });
    let own: Vec<String> = own.collect();
    if !own.is_empty() {
        page.field("options", &clean(&own.join("; ")), Style::Plain);
    }
    let starts = phase.host_starts.iter().map(|start| start.lateness_ns);
    if let (Some(first), Some(last)) = (starts.clone().min(), starts.max()) {
        let error = hosts.iter().filter_map(|host| host.clock_error_ns).max().unwrap_or(0);
        let text = format!(
            "hosts began within {} of each other (clock uncertainty {})",
            units::human_ns((last - first) as f64),
            units::human_ns(error as f64)
        );
        page.field("start", &text, Style::Plain);
    }
}

/// The host whose rate a worker is furthest below the median of all that did something, where it lags, and by which share. `workers` are those of a host.
fn slowest(rows: &[(String, ShareSummary)], workers: impl Fn(&str) -> usize) -> Option<(&str, f64)> {
    let worked = rows.iter().filter(|(_, figures)| figures.operations > 0);
    let each = worked
        .map(|(name, figures)| (name.as_str(), figures.operations_per_second / workers(name).max(1) as f64));
    let each: Vec<(&str, f64)> = each.collect();
    let median = statistics::median_of(&mut each.iter().map(|(_, rate)| *rate).collect::<Vec<_>>())?;
    let (name, rate) = each.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let below = 1.0 - rate / median;
    (below > statistics::LAG_MAX).then_some((*name, below))
}

/// A table of shares of a phase: endpoints, masters, hosts; of many, the slowest and the fastest.
pub fn table(page: &mut Page, title: &'static str, lines: &[(String, ShareSummary)]) {
    page.gap();
    let mut columns = COLUMNS;
    columns[0] = title;
    let mut table = Table::new(&columns);
    if lines.len() <= ROWS_MAX {
        lines.iter().for_each(|(name, totals)| table.row(row(name, totals)));
    } else {
        let mut sorted: Vec<_> = lines.iter().collect();
        let mean = |totals: &ShareSummary| totals.histogram.mean_ns().unwrap_or(f64::INFINITY);
        sorted.sort_by(|a, b| mean(&b.1).total_cmp(&mean(&a.1)));
        let half = ROWS_MAX / 2;
        table.heading(format!("the {half} slowest of {}, by mean latency", lines.len()));
        sorted.iter().take(half).for_each(|(name, totals)| table.row(row(name, totals)));
        table.heading(format!("the {half} fastest"));
        sorted.iter().rev().take(half).for_each(|(name, totals)| table.row(row(name, totals)));
    }
    page.table(&table);
    page.gap();
}

fn row(name: &str, totals: &ShareSummary) -> Vec<Cell> {
    let dash = || Cell::styled("-", Style::Faint);
    let latency = totals.latency.as_ref();
    let mean = latency.map(|latency| bounded(latency.mean_ns, latency.is_mean_lower_bound()));
    let bandwidth = if totals.bytes == 0 {
        dash()
    } else {
        Cell::styled(human_bytes_per_second(totals.bytes_per_second), Style::Strong)
    };
    vec![
        clean(name).into_owned().into(),
        Cell::styled(rate(totals.operations_per_second), Style::Strong),
        bandwidth,
        mean.map_or_else(dash, Cell::from),
        percentile_words(latency, 50.0, latency.map(|latency| latency.p50_ns)).into(),
        percentile_words(latency, 99.0, latency.and_then(|latency| latency.p99_ns)).into(),
        if totals.errors == 0 { dash() } else { Cell::styled(count(totals.errors), Style::Failure) },
    ]
}
