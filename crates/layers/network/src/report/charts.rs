//! Heat maps of the links of a phase that masters drive.

use report::chart::{Axis, Chart, Heat, Ramp, Scale, Unit};
use report::record::PhaseRecord;

use super::matrix::{Matrix, Pair, colour_range};

/// Bandwidth (or the rate of empty RPCs) and the 99th percentile by pair; none where there are no links.
pub(super) fn charts(phase: &PhaseRecord, title: &str) -> Vec<(&'static str, Chart)> {
    let Some(matrix) = Matrix::of(phase) else { return Vec::new() };
    let (what, unit) =
        if matrix.in_bytes { ("bandwidth", Unit::BytesPerSecond) } else { ("RPCs/s", Unit::PerSecond) };
    let speed = |pair: &Pair| Some(matrix.speed(pair)).filter(|_| pair.operations > 0);
    let p99 = |pair: &Pair| pair.p99_ns.map(|ns| ns as f64);
    let maps = [
        ("links", chart(&matrix, title, (what, unit, Ramp::Blues), &speed)),
        ("links-p99", chart(&matrix, title, ("p99", Unit::Nanoseconds, Ramp::Oranges), &p99)),
    ];
    let note = matrix.sentences().join(". ");
    let noted = |(kind, chart): (_, Option<Chart>)| Some((kind, Chart { note: note.clone(), ..chart? }));
    maps.into_iter().filter_map(noted).collect()
}

fn chart(
    matrix: &Matrix,
    title: &str,
    (what, unit, ramp): (&str, Unit, Ramp),
    value: &dyn Fn(&Pair) -> Option<f64>,
) -> Option<Chart> {
    let values: Vec<Vec<Option<f64>>> =
        matrix.pairs.iter().map(|row| row.iter().map(|pair| value(pair.as_ref()?)).collect()).collect();
    let known: Vec<f64> = values.iter().flatten().flatten().copied().collect();
    let range = colour_range(&known, ramp == Ramp::Oranges)?;
    let side = |names: &[String], who: &str| {
        Axis::new(format!("{who} ({})", matrix.lines), Unit::Plain, Scale::Names(names.to_vec()))
    };
    let (x, y) = (side(&matrix.columns, "to"), side(&matrix.rows, "from"));
    let mut chart = Chart::new(format!("{title}: {what} by link"), x, y);
    chart.heat = Some(Heat {
        rows: matrix.rows.clone(),
        columns: matrix.columns.clone(),
        values,
        title: what.to_owned(),
        unit,
        range,
        is_log: false,
        ramp,
    });
    Some(chart)
}
