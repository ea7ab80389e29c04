//! Heat maps of the links of a phase that masters drive.

use super::super::model::{Axis, Chart, Heat, Ramp, Scale, Unit};
use super::groups::{Group, Kind};
use crate::network::matrix::{Matrix, Pair, colour_range};

/// Bandwidth (or the rate of empty RPCs) and the 99th percentile by pair, of every line of the group that has links.
pub(super) fn charts(group: &Group<'_>) -> Vec<(&'static str, Chart)> {
    let mut made = Vec::new();
    for line in group.lines.iter().filter(|_| group.kind == Kind::Phase) {
        let Some(matrix) = Matrix::of(line.phase) else { continue };
        let title = match line.name.as_str() {
            "" => group.title.clone(),
            name => format!("{}: {name}", group.title),
        };
        let (what, unit) =
            if matrix.in_bytes { ("bandwidth", Unit::BytesPerSecond) } else { ("RPCs/s", Unit::PerSecond) };
        let speed = |pair: &Pair| Some(matrix.speed(pair)).filter(|_| pair.operations > 0);
        let p99 = |pair: &Pair| pair.p99_ns.map(|ns| ns as f64);
        let maps = [
            ("links", chart(&matrix, &title, (what, unit, Ramp::Blues), &speed)),
            ("links-p99", chart(&matrix, &title, ("p99", Unit::Nanoseconds, Ramp::Oranges), &p99)),
        ];
        let sentences = matrix.sentences().join(". ");
        made.extend(maps.into_iter().filter_map(|(kind, chart)| {
            Some((kind, Chart { note: format!("{}. {sentences}", group.note()), ..chart? }))
        }));
    }
    made
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
        ramp,
    });
    Some(chart)
}
