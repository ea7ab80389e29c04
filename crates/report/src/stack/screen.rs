//! A stack on one screen, and all that is known of it.

mod hosts;
mod picture;

use std::collections::BTreeMap;

use layer::StackKind;
use statistics::Difference;
use units::human_bytes_per_second;

use super::hosts::on_hosts;
use super::rows::{Row, rows};
use super::step::{Finding, Step, steps};
use super::verdict::verdict;
pub(crate) use picture::{Grid, picture};

use crate::page::{Cell, Page, Style, Table};
use crate::record::{Doubt, PhaseRecord, Record, StackRecord, StackTrial};
use crate::text::{notes_of, warnings_of};
use crate::words::{clean, counted, cpu, factor, percentile_words, rate};

/// Loads side by side in a table of 80 columns.
const COLUMNS: usize = 4;
/// Remedies on the screen.
const REMEDIES_SHOWN: usize = 2;
/// The same where an application's rows need the room.
const REMEDIES_DENSE: usize = 1;
/// Loads of an application side by side.
const OWN_COLUMNS: usize = 2;

/// How much of a stack is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// One screen.
    #[default]
    Screen,
    /// The same, and all warnings, each remedy once.
    Warnings,
    /// All of it: latencies, processor time, findings of each row, warnings.
    Full,
}

/// Writes the table and the verdict.
pub(crate) fn block(page: &mut Page, record: &Record, stack: &StackRecord, detail: Detail) {
    let rows = rows(record);
    let steps = steps(&rows);
    let owners = owners(&rows);
    let general: Vec<&str> = loads(&rows).into_iter().filter(|load| owner(&rows, load).is_none()).collect();
    // An application's rows need the room of the names and of the second lines.
    let hosts = on_hosts(record, &rows);
    let (warnings, by_design) = warnings_and_design(record, stack);
    let is_dense = detail == Detail::Screen && (!owners.is_empty() || hosts.is_some());
    let first = if hosts.is_some() { "1 host" } else { "layer" };
    for group in general.chunk_by(|a, b| is_of_names(a) == is_of_names(b)) {
        for loads in group.chunks(COLUMNS) {
            match is_dense {
                false => page.table(&table(picture::grid(&rows, &steps, loads))),
                true if is_of_names(&loads[0]) => {}
                true => page.table(&dense(&rows, &steps, loads, first, bare_cell)),
            }
        }
    }
    if let Some(hosts) = &hosts {
        hosts::tables(page, hosts, detail);
    }
    for of in owners {
        let own = loads_of(&rows, of);
        for loads in own.chunks(OWN_COLUMNS) {
            page.table(&dense(&rows, &steps, loads, of, loss_cell));
        }
    }
    if detail == Detail::Full {
        page.blank();
        page.table(&figures(&rows, &steps));
    }
    page.blank();
    if detail != Detail::Screen {
        told(page, &rows, &steps);
        hosts.iter().for_each(|hosts| hosts::told(page, hosts));
        let phases = phases(record, stack);
        notes_of(page, &phases);
        warnings_of(page, &warnings);
        if !by_design.is_empty() {
            page.field("by design", &by_design.join("; "), Style::Faint);
        }
    }
    let found = verdict(record);
    let shown = if is_dense { REMEDIES_DENSE } else { REMEDIES_SHOWN };
    for (at, remedy) in found.remedies.iter().take(shown).enumerate() {
        page.field(if at == 0 { "try" } else { "" }, &remedy.line, Style::Plain);
    }
    if let Some(trial) = &stack.trial {
        page.field("tried", &tried(record, trial), Style::Plain);
    }
    let mut reliability = reliability((&rows, stack), &steps, kinds(&warnings), detail);
    if is_dense && general.iter().any(is_of_names) {
        reliability.push_str("; create, stat, remove: --full");
    }
    page.field("rows", &reliability, Style::Plain);
    hosts.iter().for_each(|hosts| hosts::notes(page, hosts, &rows));
    for (at, chain) in found.found.chains.iter().enumerate() {
        page.field(if at == 0 { "chain" } else { "" }, &clean(chain), Style::Plain);
    }
    if let Some(spent) = &found.found.spent {
        page.field("spent", spent, Style::Plain);
    }
    let kind = match found.found.kind {
        crate::record::StackVerdictKind::Loss => "loss: ",
        crate::record::StackVerdictKind::Limit => "limit: ",
        crate::record::StackVerdictKind::Inconclusive => "inconclusive: ",
        crate::record::StackVerdictKind::None => "",
    };
    page.field("verdict", &format!("{kind}{}", found.found.sentence), Style::Strong);
}

/// Whether a load is of names: those have a table of their own below.
fn is_of_names(load: &&str) -> bool {
    [layer::stack::loads::CREATE, layer::stack::loads::STAT, layer::stack::loads::REMOVE].contains(load)
}

/// The loads, each once, in the order of columns; those that are in no column come last.
fn loads<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
    let mut loads: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.kind != StackKind::Floor) {
        if !loads.contains(&row.row.load.as_str()) {
            loads.push(&row.row.load);
        }
    }
    let column =
        |load: &&str| layer::stack::loads::ALL.iter().position(|known| known == load).unwrap_or(usize::MAX);
    loads.sort_by_key(column);
    loads
}

/// The one that has a load, such as an application; none for the loads that every layer gets.
fn owner<'a>(rows: &[Row<'a>], load: &str) -> Option<&'a str> {
    rows.iter().find(|row| row.row.load == load)?.row.load_of.as_deref()
}

/// All of them, each once.
fn owners<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
    let mut owners: Vec<&str> = Vec::new();
    for of in rows.iter().filter_map(|row| row.row.load_of.as_deref()) {
        if !owners.contains(&of) {
            owners.push(of);
        }
    }
    owners
}

/// The loads of one that has some, in their order: the layer with most of them has it.
fn loads_of<'a>(rows: &[Row<'a>], of: &str) -> Vec<&'a str> {
    let mut layers: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows.iter().map(|row| row.row).filter(|row| row.load_of.as_deref() == Some(of)) {
        match layers.iter_mut().find(|(layer, _)| *layer == row.layer) {
            Some((_, loads)) => loads.push(&row.load),
            None => layers.push((&row.layer, vec![&row.load])),
        }
    }
    layers.into_iter().map(|(_, loads)| loads).max_by_key(Vec::len).unwrap_or_default()
}

/// Layers that have one of these loads, in the order of the rows.
fn layers_of<'a>(rows: &[Row<'a>], loads: &[&str]) -> Vec<&'a str> {
    let mut layers: Vec<&str> = Vec::new();
    let is_shown = |row: &&Row<'a>| row.kind != StackKind::Floor && loads.contains(&row.row.load.as_str());
    for row in rows.iter().filter(is_shown) {
        if !layers.contains(&row.row.layer.as_str()) {
            layers.push(&row.row.layer);
        }
    }
    layers
}

/// Layers by loads in a line each: the rate, and beside it how many times slower than what carries it. The first header is the one that has
/// the loads, whose name they need not repeat.
fn dense(
    rows: &[Row<'_>],
    steps: &[Step],
    loads: &[&str],
    first: &str,
    cell_of: impl Fn(&Step) -> Cell,
) -> Table {
    let short = |load: &&str| clean(load.strip_prefix(first).unwrap_or(load).trim_start()).into_owned();
    let mut table =
        Table::named(std::iter::once(clean(first).into_owned()).chain(loads.iter().map(short)).collect());
    let layers = layers_of(rows, loads);
    let column = |load: &&str| -> Vec<(String, Cell)> {
        let cells = layers.iter().map(|layer| {
            let at = rows.iter().position(|row| row.row.layer == *layer && row.row.load == *load);
            let Some(at) = at else { return (String::new(), Cell::from("")) };
            let step = steps.iter().find(|step| step.row == at);
            (speed_words(&rows[at]), step.map_or_else(|| Cell::from("-"), &cell_of))
        });
        cells.collect()
    };
    let columns: Vec<Vec<(String, Cell)>> = loads.iter().map(column).collect();
    let width = |column: &Vec<(String, Cell)>| {
        column.iter().map(|(_, cell)| cell.text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().map(width).collect();
    for (line, layer) in layers.iter().enumerate() {
        let cells = columns.iter().zip(&widths).map(|(column, width)| match &column[line] {
            (speed, _) if speed.is_empty() => Cell::from(""),
            (speed, cell) => Cell::styled(format!("{speed} {:>width$}", cell.text), cell.style),
        });
        table.row(std::iter::once(Cell::from(clean(layer).into_owned())).chain(cells).collect());
    }
    table
}

/// Layers by loads: the rate, and below it how many times slower than what carries it.
fn table(grid: Grid) -> Table {
    let mut table = Table::named(std::iter::once("layer".to_owned()).chain(grid.loads).collect());
    for (layer, cells) in grid.layers {
        let has_losses = cells.iter().flatten().any(|cell| cell.loss.is_some());
        let (speeds, losses): (Vec<Cell>, Vec<Cell>) = cells
            .into_iter()
            .map(|cell| match cell {
                Some(cell) => {
                    (Cell::styled(cell.speed, Style::Strong), cell.loss.unwrap_or_else(|| Cell::from("")))
                }
                None => (Cell::from(""), Cell::from("")),
            })
            .unzip();
        table.row(std::iter::once(Cell::from(layer)).chain(speeds).collect());
        if has_losses {
            table.row(std::iter::once(Cell::from("")).chain(losses).collect());
        }
    }
    table
}

fn speed_words(row: &Row<'_>) -> String {
    match row.speed() {
        Some(speed) if row.in_bytes() => human_bytes_per_second(speed),
        Some(speed) => rate(speed),
        None => "-".to_owned(),
    }
}

/// A factor in short.
fn short(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// `4.1x`, `?` where nothing can be said, `void`.
fn bare_cell(step: &Step) -> Cell {
    match &step.finding {
        Finding::Void(_) => Cell::styled("void", Style::Doubt),
        Finding::Inconclusive(..) => Cell::styled("?", Style::Doubt),
        Finding::Loss => Cell::from(format!("{}x", short(step.factor))),
        Finding::Keeps | Finding::Faster => Cell::styled(format!("{}x", short(step.factor)), Style::Faint),
    }
}

/// `4.1x 3.8-4.4`, or the word that says why there is none.
fn loss_cell(step: &Step) -> Cell {
    let interval =
        step.interval.map_or_else(String::new, |(low, high)| format!(" {}-{}", short(low), short(high)));
    match &step.finding {
        Finding::Void(_) => Cell::styled("void", Style::Doubt),
        Finding::Inconclusive(word, _) => Cell::styled(format!("?{word}{interval}"), Style::Doubt),
        Finding::Loss => Cell::from(format!("{}x{interval}", short(step.factor))),
        Finding::Keeps | Finding::Faster => {
            Cell::styled(format!("{}x{interval}", short(step.factor)), Style::Faint)
        }
    }
}

/// Latencies and processor time of every row.
fn figures(rows: &[Row<'_>], steps: &[Step]) -> Table {
    let mut table = Table::new(&["layer", "rate", "passes", "p50", "p99", "CPU/op", "slower"]);
    let mut of: BTreeMap<usize, Vec<(usize, &Row<'_>)>> = BTreeMap::new();
    let order = loads(rows);
    for (at, row) in rows.iter().enumerate() {
        let column = order.iter().position(|load| *load == row.row.load).unwrap_or(order.len());
        of.entry(column).or_default().push((at, row));
    }
    for rows in of.values() {
        table.heading(clean(&rows[0].1.row.load));
        for (at, row) in rows {
            let latency = row.phase().and_then(|phase| phase.summary.total.latency.as_ref());
            let step = steps.iter().find(|step| step.row == *at);
            table.row(vec![
                Cell::from(format!("  {}", clean(&row.row.layer))),
                Cell::styled(speed_words(row), Style::Strong),
                row.passes.len().to_string().into(),
                percentile_words(latency, 50.0, latency.map(|latency| latency.p50_ns)).into(),
                percentile_words(latency, 99.0, latency.and_then(|latency| latency.p99_ns)).into(),
                row.phase().map_or_else(|| "-".to_owned(), cpu).into(),
                step.map_or_else(|| Cell::from(""), loss_cell),
            ]);
        }
    }
    table
}

/// Lines about rows that were left out, that say nothing, or that cannot be.
fn told(page: &mut Page, rows: &[Row<'_>], steps: &[Step]) {
    let missing = rows.iter().filter_map(|row| Some((row.row.missing.as_deref()?, &*row.row.layer)));
    for (why, layers) in by_reason(missing) {
        page.field("missing", &clean(&format!("{}: {why}", layers.join(", "))), Style::Plain);
    }
    for row in rows {
        if let Some(why) = &row.row.uncompared {
            let text = format!("{} at {} has no comparison: {why}", row.row.layer, row.row.load);
            page.field("note", &clean(&text), Style::Plain);
        }
    }
    for step in steps {
        let row = rows[step.row].row;
        let name = format!("{} at {}", row.layer, row.load);
        match &step.finding {
            Finding::Void(why) => page.field("void", &clean(&format!("{name}: {why}")), Style::Doubt),
            Finding::Inconclusive(word, why) => {
                page.field("unsure", &clean(&format!("{name}: {word}: {why}")), Style::Doubt);
            }
            Finding::Faster => {
                if let Some(why) = &row.faster_by {
                    page.field(
                        "note",
                        &clean(&format!("{name} is faster than the layer below it: {why}")),
                        Style::Plain,
                    );
                }
            }
            Finding::Loss | Finding::Keeps => {}
        }
    }
}

/// The passes of all rows, and those of a trial.
fn phases<'a>(record: &'a Record, stack: &StackRecord) -> Vec<(String, &'a PhaseRecord)> {
    let of = record.phases.iter().enumerate().filter(|(at, _)| stack.has(*at));
    of.map(|(_, phase)| (phase.plan.name().clone(), phase)).collect()
}

/// Warnings of all passes and of a trial; and, in words, those that state what a row measures on purpose: `file: buffered_writes`.
fn warnings_and_design<'a>(
    record: &'a Record,
    stack: &'a StackRecord,
) -> (Vec<(String, Vec<&'a Doubt>)>, Vec<String>) {
    let mut by_design: Vec<(&str, &str)> = Vec::new();
    let mut all: Vec<(String, Vec<&Doubt>)> = Vec::new();
    for (at, phase) in record.phases.iter().enumerate().filter(|(at, _)| stack.has(*at)) {
        let row = stack.row_of(at);
        let is_meant = |doubt: &&Doubt| row.is_some_and(|row| row.by_design.contains(&doubt.kind));
        let (meant, shown): (Vec<&Doubt>, Vec<&Doubt>) = phase.doubts.iter().partition(is_meant);
        by_design.extend(meant.iter().filter_map(|doubt| Some((&*doubt.kind, &*row?.layer))));
        all.push((phase.plan.name().clone(), shown));
    }
    by_design.sort_by_key(|(kind, _)| *kind);
    let kinds = by_reason(by_design).into_iter();
    let words = kinds.map(|(kind, layers)| clean(&format!("{kind} ({})", layers.join(", "))).into_owned());
    (all, words.collect())
}

/// Reasons with the layers that they are of, each once, in the order in which they come.
fn by_reason<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for (why, layer) in pairs {
        match found.iter_mut().find(|(known, _)| *known == why) {
            Some((_, layers)) if layers.contains(&layer) => {}
            Some((_, layers)) => layers.push(layer),
            None => found.push((why, vec![layer])),
        }
    }
    found
}

/// How many kinds of warnings these are.
fn kinds(warnings: &[(String, Vec<&Doubt>)]) -> usize {
    let kinds = warnings.iter().flat_map(|(_, doubts)| doubts).map(|doubt| doubt.kind.as_str());
    kinds.collect::<std::collections::BTreeSet<_>>().len()
}

/// `38 of 45 compared rows hold; 3 inconclusive (others, varies), 1 void, 2 missing; 4 warnings (--warnings)`.
fn reliability(
    (rows, stack): (&[Row<'_>], &StackRecord),
    steps: &[Step],
    warnings: usize,
    detail: Detail,
) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut unsure = 0;
    for step in steps {
        if let Finding::Inconclusive(word, _) = &step.finding {
            unsure += 1;
            if !words.contains(word) {
                words.push(word);
            }
        }
    }
    let void = steps.iter().filter(|step| matches!(step.finding, Finding::Void(_))).count();
    let missing = rows.iter().filter(|row| row.passes.is_empty()).count();
    let mut parts =
        vec![format!("{} of {} comparisons conclusive", steps.len() - unsure - void, steps.len())];
    if unsure > 0 {
        parts.push(format!("{unsure} inconclusive ({})", words.join(", ")));
    }
    if void > 0 {
        parts.push(format!("{void} void"));
    }
    if missing > 0 {
        parts.push(format!("{missing} rows missing"));
    }
    let hint = if detail == Detail::Screen { " (--warnings)" } else { "" };
    parts.push(format!("{}{hint}", counted(warnings as u64, "warning")));
    let added = match stack.passes_added {
        0 => String::new(),
        count => format!("; {count} passes added, because the first ones differed"),
    };
    parts.join(", ") + &added
}

/// `--threads 2: 1.62 times as fast (95% CI 1.41 to 1.86)`.
fn tried(record: &Record, trial: &StackTrial) -> String {
    let options: Vec<String> =
        trial.options.iter().map(|[name, value]| format!("--{name} {value}")).collect();
    let what = format!("{} at {} with {}", trial.layer, trial.load, options.join(" "));
    if let Some(failure) = &trial.failure {
        return clean(&format!("{what}: {failure}")).into_owned();
    }
    let rows = rows(record);
    let row = rows.iter().find(|row| row.row.layer == trial.layer && row.row.load == trial.load);
    let Some(row) = row else { return clean(&what).into_owned() };
    let speed_at = |at: usize| record.phases.get(at).map(|phase| row.speed_of(phase));
    let pairs =
        trial.pairs.iter().filter_map(|[without, with]| Some((speed_at(*without)?, speed_at(*with)?)));
    let (without, with): (Vec<f64>, Vec<f64>) = pairs.filter(|(a, b)| *a > 0.0 && *b > 0.0).unzip();
    let Some(found) = Difference::of_pairs(&without, &with, 0.0) else {
        return clean(&format!("{what}: too few passes completed anything")).into_owned();
    };
    let times = |percent: f64| factor(1.0 + percent / 100.0);
    let mean =
        |values: &[f64]| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
    let words = |value: f64| if row.in_bytes() { human_bytes_per_second(value) } else { rate(value) };
    clean(&format!(
        "{what}: {} before, {} after, {} times as fast (95% CI {} to {})",
        words(mean(&without)),
        words(mean(&with)),
        times(found.percent),
        times(found.percent_low),
        times(found.percent_high)
    ))
    .into_owned()
}
