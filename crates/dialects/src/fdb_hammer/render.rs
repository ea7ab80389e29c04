//! fdb-hammer's output, from the record.

use std::fmt::Write as _;
use std::time::Duration;

use report::record::{PhaseRecord, Record};

use super::table::TOOL;
use crate::dates::moment;
use crate::doubts::told;
use crate::tasks::Failures;
use crate::{Destination, Piece, Render};

/// State that the output needs besides the record.
pub(crate) struct Model {
    /// The figures are those of reading.
    pub(crate) reads: bool,
}

/// Seconds as the tool's streams write them: six digits.
fn seconds(ns: u64) -> String {
    significant(ns as f64 / 1e9)
}

/// A number with six significant digits, as `std::cout` has it.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor() as i32;
    if !(-5..6).contains(&exponent) {
        let text = format!("{value:.5e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        let power: i32 = power.parse().unwrap_or(0);
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", power.abs());
    }
    let text = format!("{value:.*}", (5 - exponent).max(0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn stamp(at: Duration) -> String {
    format!("{}.{:06}", at.as_secs(), at.subsec_micros())
}

/// Fields and bytes of a class.
fn class(phase: &PhaseRecord, name: &str) -> (u64, u64) {
    let at = phase.samples.classes.iter().position(|class| class == name);
    let of = |worker: &statistics::WorkerSamples| {
        at.and_then(|at| worker.classes.get(at)).map_or((0, 0), |class| (class.operations, class.bytes))
    };
    phase.samples.workers.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

impl Model {
    fn figures(&self, phase: &PhaseRecord) -> String {
        let samples = &phase.samples;
        let workers = samples.workers.len().max(1) as u64;
        let (fields, bytes) = class(phase, if self.reads { "read" } else { "write" });
        let rate = bytes as f64 / (samples.elapsed_ns.max(1) as f64 / 1e9);
        let first_ns = samples.workers.iter().map(|worker| worker.started_ns).min().unwrap_or(0);
        let last_ns = samples.workers.iter().map(|worker| worker.finished_ns).max().unwrap_or(0);
        let mut text = String::new();
        // Writing to a String cannot fail.
        if self.reads {
            let checked_ns = samples.workers.iter().map(|worker| worker.verify_ns).sum::<u64>() / workers;
            let _ = writeln!(
                text,
                "Data read duration: {}",
                seconds(samples.elapsed_ns.saturating_sub(checked_ns))
            );
            let _ = writeln!(text, "Fields read: {fields}\nBytes read: {bytes}");
            let _ = writeln!(text, "Total duration: {}", seconds(samples.elapsed_ns));
        } else {
            let filled_ns = samples.workers.iter().map(|worker| worker.fill_ns).sum::<u64>() / workers;
            let _ = writeln!(text, "Fields written: {fields}\nBytes written: {bytes}");
            let _ = writeln!(text, "Total duration: {}", seconds(samples.elapsed_ns));
            let _ = writeln!(text, "GRIB duration: {}", seconds(filled_ns));
            let _ =
                writeln!(text, "Writing duration: {}", seconds(samples.elapsed_ns.saturating_sub(filled_ns)));
        }
        let _ = writeln!(text, "Total rate: {} bytes / s", significant(rate));
        let _ = writeln!(text, "Total rate: {} MB / s", significant(rate / f64::from(1 << 20)));
        let _ = writeln!(text, "Timestamp before first IO: {}", stamp(moment(&phase.started_at, first_ns)));
        let _ = writeln!(text, "Timestamp after last IO: {}", stamp(moment(&phase.started_at, last_ns)));
        text
    }
}

impl Render for Model {
    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let ending = if self.reads { " read" } else { " write" };
        let shown = record.phases.iter().find(|phase| phase.plan.name().ends_with(ending));
        let mut pieces: Vec<Piece> =
            shown.map(|phase| Piece::stdout(self.figures(phase))).into_iter().collect();
        let mut lines = String::new();
        for phase in &record.phases {
            Failures::of(phase).lines().for_each(|line| lines += &format!("{TOOL}: {line}\n"));
        }
        let doubts = told(TOOL, shown);
        lines += &crate::doubts::lines(doubts.iter().map(|doubt| ("", doubt)));
        if !lines.is_empty() {
            pieces.push(Piece { place: Destination::Stderr, content: lines.into_bytes() });
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn numbers_are_those_of_streams() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (0.0123456789, "0.0123457"),
            (123_456_789.0, "1.23457e+08"),
            (123_456.0, "123456"),
            (1e-7, "1e-07"),
            (20.0, "20"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
