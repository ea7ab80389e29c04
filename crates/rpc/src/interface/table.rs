//! The scan for people and for programs.

use host::network::LinkState;
use host::topology::NumaPlace;
use serde_json::json;

use super::cache::{Found, Origin};
use super::choice::Decision;
use super::scan::{FabricScan, ProviderFacts, ScannedInterface};
use crate::ofi::typed_names;

/// Narrowest page: below it nothing lines up.
const WIDTH_MIN: usize = 40;
/// Spaces between columns.
const GAP: usize = 2;
/// Width of the labels of sentences.
const LABEL_WIDTH: usize = 10;

const HEADERS: [&str; 9] =
    ["interface", "state", "speed", "MTU", "NUMA", "driver", "RMA device", "providers", "addresses"];

/// A cell: lines below each other.
type Cell = Vec<String>;

/// The table of interfaces, then which one a process at `place` gets for `provider`, why, and where the scan came from. Lines keep
/// to `width` columns (at least 40) unless a single word is longer, and end in no space.
#[must_use]
pub fn table(found: &Found, provider: &str, place: NumaPlace, decision: &Decision, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut text = String::new();
    let rows: Vec<Vec<Cell>> = found.scan.interfaces.iter().map(row).collect();
    grid(&mut text, &rows, width);
    text.push('\n');
    for (label, sentence) in sentences(found, provider, place, decision) {
        field(&mut text, label, &sentence, width);
    }
    text
}

/// The same for programs.
#[must_use]
pub fn report(found: &Found, provider: &str, place: NumaPlace, decision: &Decision) -> serde_json::Value {
    let mut messages = found.messages.clone();
    messages.extend(decision.messages.iter().cloned());
    json!({
        "interfaces": found.scan.interfaces,
        "other_providers": found.scan.other_providers,
        "providers_unknown": found.scan.providers_unknown,
        "scanned_at_unix_ns": found.scan.scanned_at_unix_ns,
        "scan_cost_ns": found.scan.cost_ns,
        "origin": found.origin,
        "provider": provider,
        "place": place,
        "choice": decision.choice,
        "messages": messages,
    })
}

fn row(found: &ScannedInterface) -> Vec<Cell> {
    let interface = &found.interface;
    let state = match interface.state {
        LinkState::Up => "up",
        LinkState::NoCarrier => "no carrier",
        LinkState::Down => "down",
    };
    let one = |text: Option<String>| vec![text.unwrap_or_else(|| "-".to_owned())];
    let many = |lines: Vec<String>| if lines.is_empty() { vec!["-".to_owned()] } else { lines };
    let mut providers: Vec<String> = if found.has_sockets() { vec!["tcp".into()] } else { vec![] };
    providers.extend(bases(&found.providers));
    vec![
        vec![clean(&interface.name)],
        vec![state.to_owned()],
        one(interface.nominal_bits_per_second().map(speed)),
        one(interface.mtu_bytes.map(|bytes| bytes.to_string())),
        one(interface.numa_node.map(|node| node.to_string())),
        one(interface.driver.as_deref().map(clean)),
        many(interface.fabric_devices.iter().map(|device| clean(&device.name)).collect()),
        many(providers),
        many(interface.addresses.iter().map(ToString::to_string).collect()),
    ]
}

/// Providers as they are typed, each once.
fn bases(facts: &[ProviderFacts]) -> Vec<String> {
    let names = typed_names(facts.iter().map(|facts| facts.name.as_str()));
    names.iter().map(|name| clean(name)).collect()
}

/// `100 Gbit/s`, `2.5 Gbit/s`, `10 Mbit/s`.
pub(super) fn speed(bits_per_second: u64) -> String {
    let megabits = bits_per_second as f64 / 1e6;
    if megabits >= 1000.0 { format!("{} Gbit/s", megabits / 1000.0) } else { format!("{megabits} Mbit/s") }
}

fn sentences(
    found: &Found,
    provider: &str,
    place: NumaPlace,
    decision: &Decision,
) -> Vec<(&'static str, String)> {
    let mut lines = vec![("process", process(place))];
    let choice = match &decision.choice {
        Some(choice) => {
            let domain = if choice.domain == choice.name {
                String::new()
            } else {
                format!(", domain {}", choice.domain)
            };
            format!("{}{domain} for {provider}: {}", choice.name, choice.why)
        }
        None => format!("no interface for {provider}"),
    };
    lines.push(("choice", choice));
    lines.extend(decision.messages.iter().chain(&found.messages).map(|message| ("message", message.clone())));
    lines.extend(providers(&found.scan));
    let cost = units::human_ns(found.scan.cost_ns as f64);
    lines.push(match found.origin {
        Origin::Scanned => ("scan", format!("new, took {cost}")),
        Origin::Cached { age_ns } => {
            let age = units::human_ns(age_ns as f64);
            ("scan", format!("cached, {age} old; took {cost}"))
        }
    });
    lines
}

fn process(place: NumaPlace) -> String {
    match place.node {
        Some(node) if place.is_bound => format!("bound to NUMA node {node} of {}", place.nodes),
        Some(node) => format!("currently on NUMA node {node} of {}, not bound", place.nodes),
        None if place.nodes == 0 => "the kernel reports no NUMA nodes".to_owned(),
        None => format!("not on a single one of {} NUMA nodes", place.nodes),
    }
}

fn providers(scan: &FabricScan) -> Option<(&'static str, String)> {
    if let Some(why) = &scan.providers_unknown {
        return Some(("note", format!("libfabric's providers are unknown: {}", clean(why))));
    }
    let names = bases(&scan.other_providers);
    (!names.is_empty()).then(|| ("others", format!("without an interface: {}", names.join(", "))))
}

/// A label and wrapped text beside it.
fn field(text: &mut String, label: &str, sentence: &str, width: usize) {
    let (mut lines, sentence): (Vec<String>, String) = (vec![], clean(sentence));
    // The agent's messages keep their double spaces as long as they fit on a line.
    if sentence.chars().count() <= width - LABEL_WIDTH {
        lines.push(sentence);
    } else {
        for word in sentence.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= width - LABEL_WIDTH => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    for (at, line) in lines.iter().enumerate() {
        let shown = if at == 0 { label } else { "" };
        text.push_str(format!("{shown:LABEL_WIDTH$}{line}").trim_end());
        text.push('\n');
    }
}

/// Columns side by side, as many as fit; the rest below with the first column again.
fn grid(text: &mut String, rows: &[Vec<Cell>], width: usize) {
    let cell_width = |cell: &Cell| cell.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = HEADERS
        .iter()
        .enumerate()
        .map(|(at, header)| rows.iter().map(|row| cell_width(&row[at])).chain([header.chars().count()]).max())
        .map(Option::unwrap_or_default)
        .collect();
    let mut blocks = vec![vec![0]];
    let mut used = widths[0];
    for (at, column_width) in widths.iter().enumerate().skip(1) {
        if used + GAP + column_width > width && blocks.last().is_some_and(|block| block.len() > 1) {
            blocks.push(vec![0]);
            used = widths[0];
        }
        used += GAP + column_width;
        blocks.last_mut().into_iter().for_each(|block| block.push(at));
    }
    let headers: Vec<Cell> = HEADERS.iter().map(|header| vec![(*header).to_owned()]).collect();
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        for row in std::iter::once(&headers).chain(rows) {
            grid_row(text, row, block, &widths);
        }
    }
}

/// Figures stand to the right, names to the left.
fn grid_row(text: &mut String, row: &[Cell], block: &[usize], widths: &[usize]) {
    let height = block.iter().map(|&at| row[at].len()).max().unwrap_or(0);
    for line in 0..height {
        let cells: Vec<String> = block
            .iter()
            .map(|&at| {
                let (shown, width) = (row[at].get(line).map_or("", String::as_str), widths[at]);
                if matches!(at, 2..=4) { format!("{shown:>width$}") } else { format!("{shown:width$}") }
            })
            .collect();
        text.push_str(cells.join(&" ".repeat(GAP)).trim_end());
        text.push('\n');
    }
}

/// Control characters spelled out: a name must not steer the terminal.
fn clean(text: &str) -> String {
    let spell = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    text.chars().map(spell).collect()
}
