//! How a rate moved about: its range and deviation over pieces of a phase.

use crate::series::Series;

/// Range of a rate over the pieces of a phase, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Slowest piece.
    pub min: f64,
    /// Fastest piece.
    pub max: f64,
    /// Mean of the pieces.
    pub mean: f64,
    /// Standard deviation of the sample (divided by one less than its size); 0 for a single piece.
    pub stddev: f64,
}

impl Spread {
    /// Range and deviation of some figures, such as those of the repetitions of a phase; none where there are none.
    #[must_use]
    pub fn of(rates: &[f64]) -> Option<Self> {
        let count = rates.len() as f64;
        let min = rates.iter().copied().reduce(f64::min)?;
        let max = rates.iter().copied().reduce(f64::max)?;
        let mean = rates.iter().sum::<f64>() / count;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let stddev = if rates.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Some(Self { min, max, mean, stddev })
    }
}

/// Ranges of both rates of a class of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSpread {
    /// How many pieces there were.
    pub pieces: u64,
    /// Operations per second.
    pub operations: Spread,
    /// Payload bytes per second.
    pub bytes: Spread,
}

/// Figures of one piece.
#[derive(Clone, Copy, Default)]
struct Piece {
    length_ns: u64,
    operations: u64,
    bytes: u64,
}

/// Cuts series into pieces of about `piece_ns` and tells how the rates of some classes together moved between them. A part is a series
/// and the numbers of the classes in it; the pieces of all parts count alike.
///
/// A piece is made of whole intervals and ends with the one that brings it to `piece_ns`, so it is as long as an interval
/// where intervals are longer. What is left over at the end of a series is a piece if it is at least half as long as one,
/// or if it is all there is. None where there is no interval.
#[must_use]
pub fn spread(parts: &[(&Series, &[usize])], piece_ns: u64) -> Option<RateSpread> {
    let mut pieces = Vec::new();
    for (series, classes) in parts {
        cut(series, classes, piece_ns.max(series.interval_ns), &mut pieces);
    }
    let per_second = |amount: u64, piece: &Piece| amount as f64 * 1e9 / piece.length_ns as f64;
    let operations: Vec<_> = pieces.iter().map(|piece| per_second(piece.operations, piece)).collect();
    let bytes: Vec<_> = pieces.iter().map(|piece| per_second(piece.bytes, piece)).collect();
    Some(RateSpread {
        pieces: pieces.len() as u64,
        operations: Spread::of(&operations)?,
        bytes: Spread::of(&bytes)?,
    })
}

fn cut(series: &Series, classes: &[usize], piece_ns: u64, pieces: &mut Vec<Piece>) {
    let before = pieces.len();
    let mut open = Piece::default();
    for point in &series.points {
        open.length_ns += point.end_ns.saturating_sub(point.start_ns);
        for done in classes.iter().filter_map(|class| point.classes.get(*class)) {
            open.operations += done.operations;
            open.bytes += done.bytes;
        }
        if open.length_ns >= piece_ns {
            pieces.push(std::mem::take(&mut open));
        }
    }
    let is_all = pieces.len() == before && open.length_ns > 0;
    if is_all || open.length_ns.saturating_mul(2) >= piece_ns.max(1) {
        pieces.push(open);
    }
}
