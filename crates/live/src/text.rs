//! Figures of a snapshot as short text, for lines and screens alike.

use ratatui::text::Span;
use statistics::Snapshot;
use units::{human_bytes_per_second, human_ns, human_rate};

use crate::hosts;

/// Characters inside the brackets of the progress bar.
const BAR_CELLS: usize = 10;
/// A rest longer than this many seconds says nothing: the phase has barely begun.
const REST_SECONDS_MAX: f64 = 1e7;

/// How far a phase is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    /// Share done, 0 to 1.
    pub(crate) fraction: f64,
    /// Time still to go and whole length, in seconds, at the pace so far; none before there is a pace.
    pub(crate) rest_and_total_s: Option<(f64, f64)>,
}

/// Progress of a phase, where its share done is known.
pub(crate) fn progress(snapshot: &Snapshot) -> Option<Progress> {
    let fraction = snapshot.done_fraction.filter(|fraction| fraction.is_finite())?.clamp(0.0, 1.0);
    let elapsed_s = snapshot.elapsed_ns as f64 / 1e9;
    let total_s = elapsed_s / fraction;
    let known = total_s.is_finite() && elapsed_s > 0.0 && total_s - elapsed_s <= REST_SECONDS_MAX;
    Some(Progress { fraction, rest_and_total_s: known.then_some((total_s - elapsed_s, total_s)) })
}

/// Time gone by: `12.0s`, `1m02s`, `1h02m`.
pub(crate) fn elapsed(ns: u64) -> String {
    if ns < 60_000_000_000 {
        let tenths = ns / 100_000_000;
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    whole_seconds(ns / 1_000_000_000)
}

/// Length of a phase: `30s`, `2.5s`, `1m30s`.
pub(crate) fn total(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round();
    if tenths < 100.0 && tenths % 10.0 != 0.0 {
        return format!("{:.1}s", tenths / 10.0);
    }
    whole_seconds(seconds.round() as u64)
}

/// Time to go, rounded up, so that it is 0 only at the end: `18s`, `1m02s`.
pub(crate) fn rest(seconds: f64) -> String {
    // A time-limited phase divides to within rounding of a whole second.
    whole_seconds((seconds - 1e-6).ceil().max(0.0) as u64)
}

fn whole_seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// `[====>     ]`
fn bar(fraction: f64) -> String {
    let filled = (fraction * BAR_CELLS as f64) as usize;
    let tip = if filled < BAR_CELLS { ">" } else { "" };
    format!("[{:<BAR_CELLS$}]", "=".repeat(filled) + tip)
}

/// A share in whole percent, 100 only when all is done: `45 %`.
pub(crate) fn whole_percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{:.0} %", (fraction * 100.0).floor()) } else { "n/a".to_owned() }
}

/// A preparation and how far it is: `laying out /x  45 %`.
pub(crate) fn preparing(what: &str, fraction: f64) -> String {
    format!("{}  {}", printable(what), whole_percent(fraction))
}

/// The text with control characters spelled out, so that a name cannot steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            clean.extend(character.escape_debug());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// Name of the phase, with its number where there are several: `2/8 randread`; of a run whose end is known `0:42 left, 2/8 randread`.
pub(crate) fn phase_label(snapshot: &Snapshot) -> String {
    let name = printable(&snapshot.phase);
    if let Some(left_ns) = snapshot.run_left_ns {
        let left_s = left_ns.div_ceil(1_000_000_000);
        format!(
            "{}:{:02} left, {}/{} {name}",
            left_s / 60,
            left_s % 60,
            snapshot.phase_number,
            snapshot.phase_count
        )
    } else if snapshot.phase_count > 1 {
        format!("{}/{} {name}", snapshot.phase_number, snapshot.phase_count)
    } else {
        name
    }
}

/// A latency, or `-` where no operation completed.
pub(crate) fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| human_ns(ns as f64))
}

/// Part of a line: how much it matters (the least goes first when space is short), gap before it, text.
struct Piece {
    rank: u8,
    gap: &'static str,
    text: String,
}

fn pieces(snapshot: &Snapshot) -> Vec<Piece> {
    let piece = |rank, text| Piece { rank, gap: "  ", text };
    let progress = progress(snapshot);
    let rest_and_total_s = progress.and_then(|progress| progress.rest_and_total_s);
    let mut time = elapsed(snapshot.elapsed_ns);
    if let Some((_, total_s)) = rest_and_total_s {
        time = format!("{time}/{}", total(total_s));
    }
    let mut pieces = vec![Piece { rank: 9, gap: "", text: phase_label(snapshot) }, piece(8, time)];
    if let Some(progress) = progress {
        pieces.push(Piece { rank: 0, gap: " ", text: bar(progress.fraction) });
    }
    if let Some((rest_s, _)) = rest_and_total_s {
        pieces.push(Piece { rank: 5, gap: " ", text: format!("eta {}", rest(rest_s)) });
    }
    let rate: f64 = snapshot.operations_per_second.iter().sum();
    pieces.push(piece(7, format!("{}/s", human_rate(rate))));
    if snapshot.bytes > 0 {
        let bandwidth: f64 = snapshot.bytes_per_second.iter().sum();
        pieces.push(piece(4, human_bytes_per_second(bandwidth)));
    }
    pieces.push(piece(2, format!("p50 {}", latency(snapshot.p50_ns))));
    pieces.push(piece(3, format!("p99 {}", latency(snapshot.p99_ns))));
    pieces.push(piece(6, format!("err {}", snapshot.errors)));
    if let Some(waiting) = &snapshot.waiting {
        let (waited, grace) = (elapsed(waiting.waited_ns), total(waiting.grace_ns as f64 / 1e9));
        let text = format!("waiting for {} in flight ({waited} of at most {grace})", waiting.operations);
        pieces.push(piece(7, text));
    }
    if !snapshot.hosts.is_empty() {
        let failed = snapshot.hosts.iter().any(|host| host.failure.is_some());
        pieces.push(piece(if failed { 6 } else { 1 }, hosts::count(&snapshot.hosts)));
        pieces.extend(hosts::slowest(&snapshot.hosts).map(|slowest| piece(1, slowest)));
    }
    pieces
}

fn join<'a>(pieces: impl IntoIterator<Item = &'a Piece>) -> String {
    pieces.into_iter().map(|piece| format!("{}{}", piece.gap, piece.text)).collect()
}

/// The progress line in at most `width` columns: figures that matter least go first, then the rest is cut.
pub(crate) fn progress_line(snapshot: &Snapshot, width: usize) -> String {
    let mut pieces = pieces(snapshot);
    while pieces.len() > 1 && columns(&join(&pieces)) > width {
        let ranks = pieces.iter().enumerate().map(|(index, piece)| (piece.rank, index));
        if let Some((_, least)) = ranks.min() {
            pieces.remove(least);
        }
    }
    cut(&join(&pieces), width)
}

/// The same figures for a log: no bar, no limit of width.
pub(crate) fn log_line(snapshot: &Snapshot) -> String {
    let pieces: Vec<Piece> = pieces(snapshot).into_iter().filter(|piece| piece.rank > 0).collect();
    let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    texts.join("  ")
}

/// The first `width` columns of a text.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut kept = String::new();
    let mut used = 0;
    for character in text.chars() {
        used += columns(character.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        kept.push(character);
    }
    kept
}

/// Columns that a text takes on the screen.
pub(crate) fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

#[cfg(test)]
mod tests;
