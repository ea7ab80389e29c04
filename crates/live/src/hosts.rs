//! The hosts of a run as a table, for screens and logs alike.

use statistics::{HostSnapshot, Laggard, laggard};
use units::human::human_bytes;
use units::{human_bytes_per_second, human_rate};

use crate::text;

/// Longest name that is shown whole where there is room.
const LABEL_COLUMNS_MAX: usize = 32;
/// Columns of the role, its gap included.
const ROLE_COLUMNS: usize = 8;
/// Behind the figures of the host that lags.
const SLOW: &str = " slow";

/// How a row is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Heading,
    Usual,
    /// It lags behind the others.
    Slow,
    /// It is no longer part of the run.
    Failed,
    /// It tells how many rows there is no room for.
    Rest,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

/// A figure of each host.
struct Column {
    /// How much it matters: the least goes first when space is short.
    rank: u8,
    heading: &'static str,
    /// Columns on the screen, gap included.
    width: usize,
    cell: fn(&HostSnapshot) -> String,
}

/// `6 hosts`, `6 hosts, 1 failed`
pub(crate) fn count(hosts: &[HostSnapshot]) -> String {
    let word = if hosts.len() == 1 { "host" } else { "hosts" };
    match hosts.iter().filter(|host| host.failure.is_some()).count() {
        0 => format!("{} {word}", hosts.len()),
        failed => format!("{} {word}, {failed} failed", hosts.len()),
    }
}

/// `slowest node03:1611 -27 %`, where one lags.
pub(crate) fn slowest(hosts: &[HostSnapshot]) -> Option<String> {
    let Laggard { host, below_median } = laggard(hosts)?;
    Some(format!("slowest {} -{:.0} %", text::printable(&hosts[host].label), below_median * 100.0))
}

/// The figures that the hosts have.
fn columns(hosts: &[HostSnapshot]) -> Vec<Column> {
    let any = |has: fn(&HostSnapshot) -> bool| hosts.iter().any(has);
    let done: fn(&HostSnapshot) -> String =
        |host| host.done_fraction.map_or_else(|| "-".to_owned(), text::whole_percent);
    let mut columns = vec![Column { rank: 5, heading: "done", width: 7, cell: done }];
    if any(|host| host.bytes > 0) {
        columns.push(Column {
            rank: 2,
            heading: "so far",
            width: 10,
            cell: |host| human_bytes(host.bytes as f64),
        });
        let bandwidth: fn(&HostSnapshot) -> String = |host| human_bytes_per_second(host.bytes_per_second);
        columns.push(Column { rank: 8, heading: "bandwidth", width: 12, cell: bandwidth });
    }
    let rate: fn(&HostSnapshot) -> String = |host| human_rate(host.operations_per_second);
    columns.push(Column { rank: 7, heading: "ops/s", width: 7, cell: rate });
    columns.push(Column {
        rank: 4,
        heading: "active",
        width: 8,
        cell: |host| host.workers_active.to_string(),
    });
    if any(|host| host.cpus_used.is_some()) {
        let cpus: fn(&HostSnapshot) -> String =
            |host| host.cpus_used.map_or_else(|| "-".to_owned(), |cpus| format!("{cpus:.2}"));
        columns.push(Column { rank: 3, heading: "CPUs", width: 7, cell: cpus });
    }
    if any(|host| host.p99_ns.is_some()) {
        columns.push(Column { rank: 1, heading: "p99", width: 9, cell: |host| text::latency(host.p99_ns) });
    }
    let errors_max = hosts.iter().map(|host| host.errors).max().unwrap_or(0);
    let (rank, width) = (if errors_max > 0 { 6 } else { 0 }, errors_max.to_string().len().max(3) + 2);
    columns.push(Column { rank, heading: "err", width, cell: |host| host.errors.to_string() });
    columns
}

/// Rows that show all of the hosts: a heading and one for each.
pub(crate) fn rows_wanted(hosts: &[HostSnapshot]) -> usize {
    hosts.len() + 1
}

/// The table in at most `width` columns and `rows` rows. Figures that matter least go first; when rows are short, those that failed or
/// lag stay, and the last row tells how many are not shown.
pub(crate) fn table(hosts: &[HostSnapshot], width: usize, rows: usize) -> Vec<Row> {
    if rows < 2 || hosts.is_empty() {
        return Vec::new();
    }
    let slow = laggard(hosts).map(|laggard| laggard.host);
    let note = if slow.is_some() { SLOW.len() } else { 0 };
    let labels: Vec<String> = hosts.iter().map(|host| text::printable(&host.label)).collect();
    let longest = labels.iter().map(|label| text::columns(label)).max().unwrap_or(0);
    let mut label_width = longest.clamp("host".len(), LABEL_COLUMNS_MAX);
    let mut columns = columns(hosts);
    let taken = |columns: &[Column]| -> usize {
        columns.iter().map(|column| column.width).sum::<usize>() + ROLE_COLUMNS + note
    };
    while columns.len() > 1 && taken(&columns) + label_width > width {
        let ranks = columns.iter().enumerate().map(|(index, column)| (column.rank, index));
        let Some((_, least)) = ranks.min() else { break };
        columns.remove(least);
    }
    label_width = label_width.min(width.saturating_sub(taken(&columns))).max("host".len());
    let begin = |label: &str, role: &str| {
        let label = text::cut(label, label_width);
        let gap = " ".repeat(label_width - text::columns(&label));
        format!("{label}{gap}  {role:<6}")
    };
    let row = |tone, text: String| Row { tone, text: text::cut(&text, width) };
    let headings: String =
        columns.iter().map(|column| format!("{:>1$}", column.heading, column.width)).collect();
    let mut table = vec![row(Tone::Heading, begin("host", "role") + &headings)];
    let shown = shown(hosts, slow, rows - 1);
    for &index in &shown {
        let (host, start) = (&hosts[index], begin(&labels[index], &hosts[index].role.to_string()));
        table.push(match &host.failure {
            Some(failure) => row(Tone::Failed, format!("{start}  failed: {}", text::printable(failure))),
            None => {
                let cells = columns.iter().map(|column| format!("{:>1$}", (column.cell)(host), column.width));
                let text = start + &cells.collect::<String>();
                if slow == Some(index) { row(Tone::Slow, text + SLOW) } else { row(Tone::Usual, text) }
            }
        });
    }
    if shown.len() < hosts.len() {
        table.push(row(Tone::Rest, format!("… and {} more", hosts.len() - shown.len())));
    }
    table
}

/// Which hosts have a row, in order: all, or so many that one row is left to tell of the rest.
fn shown(hosts: &[HostSnapshot], slow: Option<usize>, places: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    if hosts.len() <= places {
        return order;
    }
    order.sort_by_key(|&index| match () {
        () if hosts[index].failure.is_some() => 0,
        () if slow == Some(index) => 1,
        () => 2,
    });
    order.truncate(places - 1);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests;
