//! Rows on several hosts at once, on the screen: rates and scaling, and what is said of them.

use units::percent;

use super::{COLUMNS, Detail, by_reason, dense, is_of_names, loads, short, speed_words};
use crate::page::{Cell, Page, Style, Table};
use crate::stack::hosts::{OnHosts, slow_hosts};
use crate::stack::rows::Row;
use crate::stack::step::{Finding, Step};
use crate::words::clean;

/// Slow hosts and groups of rows of one host that are named on a screen; of more, the rest is counted.
const NAMED_MAX: usize = 3;

/// Rates of all hosts, and their part of so many times the rate of one.
pub(super) fn tables(page: &mut Page, hosts: &OnHosts<'_>, detail: Detail) {
    let first = format!("{} hosts", hosts.count);
    let all = loads(&hosts.rows);
    for group in all.chunk_by(|a, b| is_of_names(a) == is_of_names(b)) {
        if detail == Detail::Screen && group.first().is_some_and(is_of_names) {
            continue;
        }
        for loads in group.chunks(COLUMNS) {
            page.table(&dense(&hosts.rows, &hosts.steps, loads, &first, part_cell));
        }
    }
    if detail == Detail::Full {
        page.blank();
        page.table(&figures(hosts, &first));
    }
}

/// `93%` of so many times one host, `?` where nothing can be said.
fn part_cell(step: &Step) -> Cell {
    match &step.finding {
        Finding::Inconclusive(..) | Finding::Void(_) => Cell::styled("?", Style::Doubt),
        Finding::Loss => Cell::from(whole(step.factor)),
        Finding::Keeps | Finding::Faster => Cell::styled(whole(step.factor), Style::Faint),
    }
}

fn whole(factor: f64) -> String {
    format!("{:.0}%", 100.0 / factor)
}

/// Each row on all hosts with the interval of its scaling.
fn figures(hosts: &OnHosts<'_>, first: &str) -> Table {
    let mut table = Table::named(
        [first, "load", "rate", "passes", "scaling", "95% CI"]
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
    );
    for (at, row) in hosts.rows.iter().enumerate() {
        let step = hosts.steps.iter().find(|step| step.row == at);
        let interval = step.and_then(|step| step.interval);
        let ends = interval.map_or_else(String::new, |(low, high)| {
            format!("{}-{}x of {}x", times(hosts, high), times(hosts, low), hosts.count)
        });
        let scaling = match step {
            Some(Step { finding: Finding::Inconclusive(word, _), .. }) => {
                Cell::styled(format!("?{word}"), Style::Doubt)
            }
            Some(step) => Cell::from(format!("{} ({}x)", whole(step.factor), times(hosts, step.factor))),
            None => Cell::from("-"),
        };
        table.row(vec![
            Cell::from(format!("  {}", clean(&row.row.layer))),
            clean(&row.row.load).into_owned().into(),
            Cell::styled(speed_words(row), Style::Strong),
            row.passes.len().to_string().into(),
            scaling,
            ends.into(),
        ]);
    }
    table
}

/// How many times as fast as one host, by the factor that is lost.
fn times(hosts: &OnHosts<'_>, factor: f64) -> String {
    short(f64::from(hosts.count) / factor)
}

/// Reasons why nothing is said of the scaling of rows.
pub(super) fn told(page: &mut Page, hosts: &OnHosts<'_>) {
    for step in &hosts.steps {
        if let Finding::Inconclusive(word, why) = &step.finding {
            let row = hosts.rows[step.row].row;
            let text = format!("{} at {} on {} hosts: {word}: {why}", row.layer, row.load, hosts.count);
            page.field("unsure", &clean(&text), Style::Doubt);
        }
    }
}

/// Rows that one host alone carried out, with the reason, and hosts that are slower than the others.
pub(super) fn notes(page: &mut Page, hosts: &OnHosts<'_>, rows: &[Row<'_>]) {
    let one_host = |row: &&Row<'_>| row.kind != layer::StackKind::Floor && !row.passes.is_empty();
    let alone = rows
        .iter()
        .filter(one_host)
        .filter_map(|row| Some((row.row.hosts.as_ref()?.one_host.as_deref()?, &*row.row.layer)));
    let words: Vec<String> =
        by_reason(alone).iter().map(|(why, layers)| format!("{}: {why}", layers.join(", "))).collect();
    if !words.is_empty() {
        page.field("1 host", &clean(&words.join("; ")), Style::Plain);
    }
    let slow = slow_hosts(hosts);
    for (at, (row, host)) in slow.iter().take(NAMED_MAX).enumerate() {
        let row = hosts.rows[*row].row;
        let more = if at + 1 == NAMED_MAX && slow.len() > NAMED_MAX {
            format!(" (and {} more)", slow.len() - NAMED_MAX)
        } else {
            String::new()
        };
        let text = format!(
            "{} at {} on {}: {} below the median of the others{more}",
            row.layer,
            row.load,
            host.name,
            percent(host.below_median)
        );
        page.field(if at == 0 { "slow" } else { "" }, &clean(&text), Style::Strong);
    }
}
