//! The record of a run as spdk_nvme_perf prints it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use report::doubts::kinds;
use report::record::{PhaseRecord, Record};
use statistics::Histogram;

use super::table::TOOL;
use crate::doubts::told;
use crate::{Destination, Piece, Render};

/// Percentiles of `-L`, in percent.
const PERCENTILES: &[f64] =
    &[1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.99, 99.999, 99.9999, 99.99999];

const BYTES_PER_MIB: f64 = 1_048_576.0;

/// Latency tracking that `-L` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tracking {
    None,
    Percentiles,
    Histogram,
}

/// A device or file; its place in the list is the request of its phase.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) pci_address: Option<String>,
    /// Worker `i` is on core `i` of these, round robin.
    pub(crate) cores: Vec<u32>,
}

/// All that showing the results needs.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) devices: Vec<Device>,
    /// All cores, ascending.
    pub(crate) cores: Vec<u32>,
    pub(crate) tracking: Tracking,
}

/// Results of one core on one device.
struct Row<'a> {
    name: &'a str,
    core: u32,
    operations_per_second: f64,
    bytes_per_second: f64,
    latency: Histogram,
}

fn per_second(amount: u64, phase: &PhaseRecord) -> f64 {
    let elapsed_ns = phase.samples.elapsed_ns;
    if elapsed_ns == 0 { 0.0 } else { amount as f64 * 1e9 / elapsed_ns as f64 }
}

fn us(ns: f64) -> f64 {
    ns / 1000.0
}

impl Model {
    /// Core by core, and device by device on each.
    fn rows<'a>(&'a self, record: &Record) -> Vec<Row<'a>> {
        let mut rows = Vec::new();
        for &core in &self.cores {
            for (request, device) in
                self.devices.iter().enumerate().filter(|(_, device)| device.cores.contains(&core))
            {
                for phase in record.phases.iter().filter(|phase| phase.request == request) {
                    let row = row(device, core, phase);
                    if !row.latency.is_empty() {
                        rows.push(row);
                    }
                }
            }
        }
        rows
    }

    /// Width of the names in the table, of the devices that have a row.
    fn name_width(&self) -> usize {
        self.devices.iter().map(|device| device.name.chars().count()).max().unwrap_or(0)
    }

    fn table(&self, rows: &[Row<'_>]) -> String {
        let width = self.name_width();
        let mut text = String::from("========================================================\n");
        let wide = width + 60;
        let first = width + 13;
        let _ = writeln!(text, "{:>wide$}", "Latency(us)");
        let _ = writeln!(
            text,
            "{:<first$}: {:>10} {:>10} {:>10} {:>10} {:>10}",
            "Device Information", "IOPS", "MiB/s", "Average", "min", "max"
        );
        for row in rows {
            let name = format!("{:<width$} from core {:>2}", row.name, row.core);
            line(&mut text, &name, first, row.operations_per_second, row.bytes_per_second, &row.latency);
        }
        if !rows.is_empty() {
            let sum = |figure: fn(&Row<'_>) -> f64| rows.iter().map(figure).sum::<f64>();
            text.push_str("========================================================\n");
            let latency = merged(rows.iter());
            line(
                &mut text,
                "Total",
                first,
                sum(|row| row.operations_per_second),
                sum(|row| row.bytes_per_second),
                &latency,
            );
            text.push('\n');
        }
        text
    }

    fn percentiles(&self, rows: &[Row<'_>]) -> String {
        let mut text = String::new();
        for row in rows {
            percentiles(&mut text, row.name, &format!("core {}", row.core), &row.latency);
        }
        for device in &self.devices {
            let own = || rows.iter().filter(|row| row.name == device.name);
            if own().count() > 1 {
                percentiles(&mut text, &device.name, "all cores", &merged(own()));
            }
        }
        if rows.iter().map(|row| row.name).collect::<BTreeSet<_>>().len() > 1 {
            percentiles(&mut text, "all devices", "all cores", &merged(rows.iter()));
        }
        text
    }

    /// Doubts about the figures, the gravest first. Those about all devices are told once, without a name.
    fn doubts(&self, record: &Record) -> String {
        // Where all operations failed there is no figure to doubt.
        let has_figures = |phase: &&PhaseRecord| {
            phase.failure.is_none() || phase.samples.workers.iter().any(|worker| worker.operations() > 0)
        };
        let phases: Vec<&PhaseRecord> = record.phases.iter().filter(has_figures).collect();
        let mut lines: Vec<(usize, String)> = Vec::new();
        for &phase in &phases {
            let name =
                self.devices.get(phase.request).map_or(phase.plan.name().as_str(), |device| &device.name);
            for doubt in told(TOOL, [phase]) {
                let has = |other: &&&PhaseRecord| {
                    other.doubts.iter().any(|own| own.kind == doubt.kind && own.detail == doubt.detail)
                };
                let is_of_all = phases.len() > 1 && phases.iter().filter(has).count() == phases.len();
                let line = doubt.line(if is_of_all { "" } else { name });
                let gravity = kinds().position(|kind| kind == doubt.kind).unwrap_or(usize::MAX);
                if !lines.iter().any(|(_, other)| *other == line) {
                    lines.push((gravity, line));
                }
            }
        }
        lines.sort_by_key(|(gravity, _)| *gravity);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// Failed operations, and what ended a phase early, as far as the failure of the run, which strata tells, does not say it.
    fn errors(&self, record: &Record) -> String {
        let mut text = String::new();
        for phase in &record.phases {
            let name =
                self.devices.get(phase.request).map_or(phase.plan.name().as_str(), |device| &device.name);
            for error in phase.samples.workers.iter().flat_map(|worker| &worker.errors) {
                let _ = writeln!(
                    text,
                    "{name}: {} {} operations failed and are excluded from the results: {}",
                    error.count, error.class, error.cause
                );
            }
            let is_told =
                |text: &str| record.failure.as_deref().is_some_and(|failure| failure.contains(text));
            if let Some(failure) = phase.failure.as_deref().filter(|failure| !is_told(failure)) {
                let _ = writeln!(text, "{name}: {failure}");
            }
        }
        if record.failure.is_some() || !text.is_empty() {
            let _ = writeln!(text, "{TOOL}: errors occurred");
        }
        text
    }
}

fn row<'a>(device: &'a Device, core: u32, phase: &PhaseRecord) -> Row<'a> {
    let (mut operations, mut bytes) = (0, 0);
    let mut latency = Histogram::new();
    let workers = phase.samples.workers.iter();
    for worker in workers.filter(|worker| device.cores[worker.worker % device.cores.len()] == core) {
        operations += worker.operations();
        bytes += worker.bytes();
        worker.classes.iter().for_each(|class| latency.merge_sparse(&class.latency));
    }
    Row {
        name: &device.name,
        core,
        operations_per_second: per_second(operations, phase),
        bytes_per_second: per_second(bytes, phase),
        latency,
    }
}

fn merged<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Histogram {
    rows.fold(Histogram::new(), |mut sum, row| {
        sum.merge(&row.latency);
        sum
    })
}

fn line(text: &mut String, name: &str, width: usize, operations: f64, bytes: f64, latency: &Histogram) {
    let _ = writeln!(
        text,
        "{name:<width$}: {operations:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>10.2}",
        bytes / BYTES_PER_MIB,
        us(latency.mean_ns().unwrap_or(0.0)),
        us(latency.min_ns().unwrap_or(0) as f64),
        us(latency.max_ns().unwrap_or(0) as f64),
    );
}

fn percentiles(text: &mut String, name: &str, cores: &str, latency: &Histogram) {
    let _ = writeln!(text, "Summary latency data for {name:<43.43} from {cores}:");
    text.push_str("=================================================================================\n");
    for &percent in PERCENTILES {
        if let Some(ns) = latency.percentile(percent) {
            let _ = writeln!(text, "{percent:>9.5}% : {:>9.3}us", us(ns as f64));
        }
    }
    text.push('\n');
}

/// The filled ranges of a histogram, as coarse as SPDK's, 128 to a power of two: begin, end and how many values each holds.
pub(crate) fn ranges(latency: &Histogram) -> Vec<(u64, u64, u64)> {
    let mut ranges: Vec<(u64, u64, u64)> = Vec::new();
    for bucket in latency.buckets() {
        let shift = bucket.low_ns.max(1).ilog2().saturating_sub(7);
        let low_ns = bucket.low_ns >> shift << shift;
        match ranges.last_mut() {
            Some(last) if last.0 == low_ns => last.2 += bucket.count,
            _ => ranges.push((low_ns, low_ns.saturating_add(1 << shift), bucket.count)),
        }
    }
    ranges
}

fn histogram(text: &mut String, row: &Row<'_>) {
    let _ = writeln!(text, "Latency histogram for {:<43.43} from core {}:", row.name, row.core);
    text.push_str("==============================================================================\n");
    text.push_str("       Range in us     Cumulative    IO count\n");
    let total = row.latency.count().max(1) as f64;
    let max_ns = row.latency.max_ns().unwrap_or(0);
    let mut so_far = 0;
    for (low_ns, end_ns, count) in ranges(&row.latency) {
        so_far += count;
        // The highest range has no end but the largest value.
        let _ = writeln!(
            text,
            "{:>9.3} - {:>9.3}: {:>9.4}%  ({:>9})",
            us(low_ns as f64),
            us(end_ns.min(max_ns) as f64),
            so_far as f64 * 100.0 / total,
            count
        );
    }
    text.push('\n');
}

impl Render for Model {
    fn begin(&mut self, record: &Record) -> Vec<Piece> {
        let _ = record;
        let mut text = String::from("Initializing NVMe Controllers\n");
        let mut attached: Vec<&str> = Vec::new();
        for address in self.devices.iter().filter_map(|device| device.pci_address.as_deref()) {
            if !attached.contains(&address) {
                attached.push(address);
                let _ = writeln!(text, "Attached to NVMe Controller at PCIE ({address})");
            }
        }
        for &core in &self.cores {
            for device in self.devices.iter().filter(|device| device.cores.contains(&core)) {
                let _ = writeln!(text, "Associating {} with lcore {core}", device.name);
            }
        }
        text.push_str("Initialization complete. Launching workers.\n");
        vec![Piece::stdout(text)]
    }

    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let mut text = String::new();
        let rows = self.rows(record);
        if !record.phases.is_empty() {
            text.push_str(&self.table(&rows));
        }
        if self.tracking >= Tracking::Percentiles {
            text.push_str(&self.percentiles(&rows));
        }
        if self.tracking == Tracking::Histogram {
            rows.iter().for_each(|row| histogram(&mut text, row));
        }
        text.push_str(&self.doubts(record));
        let errors = self.errors(record);
        let mut pieces = Vec::new();
        if !text.is_empty() {
            pieces.push(Piece::stdout(text));
        }
        if !errors.is_empty() {
            pieces.push(Piece { place: Destination::Stderr, content: errors.into_bytes() });
        }
        pieces
    }
}
