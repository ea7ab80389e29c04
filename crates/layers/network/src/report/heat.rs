//! A matrix of links as tables whose cells have the colour of their value.

use report::page::{Cell, HEAT_LEVELS, Page, Ramp, Style, Table};
use report::words::factor;
use units::clean;

use super::matrix::{Matrix, Pair, colour_range};

const GIB: f64 = 1_073_741_824.0;
const BYTES: &[(f64, &str)] = &[(GIB, "GiB/s"), (GIB / 1024.0, "MiB/s"), (1024.0, "KiB/s"), (1.0, "B/s")];
const RATES: &[(f64, &str)] = &[(1e6, "million RPCs/s"), (1e3, "thousand RPCs/s"), (1.0, "RPCs/s")];
const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];

/// The largest unit in which the largest value is 1 or more.
fn unit<'a>(largest: f64, units: &[(f64, &'a str)]) -> (f64, &'a str) {
    let found = units.iter().find(|(size, _)| largest >= *size).or(units.last());
    found.copied().unwrap_or((1.0, ""))
}

/// The level of a value between the ends of a range.
fn level(value: f64, (low, high): (f64, f64)) -> u8 {
    let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
    (share * f64::from(HEAT_LEVELS - 1)).round() as u8
}

/// Bandwidth, or the rate of empty RPCs, and the 99th percentile.
pub(super) fn maps(page: &mut Page, matrix: &Matrix) {
    let (name, units) = if matrix.in_bytes { ("bandwidth", BYTES) } else { ("rate", RATES) };
    map(page, matrix, (name, Ramp::More), units, &|pair| {
        Some(matrix.speed(pair)).filter(|_| pair.operations > 0)
    });
    map(page, matrix, ("p99", Ramp::Slower), TIMES, &|pair| pair.p99_ns.map(|ns| ns as f64));
}

fn map(
    page: &mut Page,
    matrix: &Matrix,
    (name, ramp): (&str, Ramp),
    units: &[(f64, &str)],
    value: &dyn Fn(&Pair) -> Option<f64>,
) {
    let values: Vec<f64> =
        matrix.pairs.iter().flatten().flatten().filter_map(value).filter(|value| value.is_finite()).collect();
    let Some(range) = colour_range(&values, ramp == Ramp::Slower) else { return };
    let (size, unit) = unit(range.1, units);
    page.gap();
    page.line(&format!("{name} in {unit}, rows send to columns ({})", matrix.lines), Style::Strong);
    let headers =
        std::iter::once("→".to_owned()).chain(matrix.columns.iter().map(|name| clean(name).into_owned()));
    let mut table = Table::named(headers.collect());
    for (row, pairs) in matrix.rows.iter().zip(&matrix.pairs) {
        let mut cells = vec![Cell::styled(clean(row), Style::Faint)];
        cells.extend(pairs.iter().map(|pair| match pair.as_ref().map(|pair| (value(pair), pair.errors)) {
            None => Cell::from(""),
            Some((Some(value), _)) => {
                // A space on the left keeps figures of neighbours apart within their colours.
                let text = format!(" {}", factor(value / size));
                Cell::styled(text, Style::Heat(ramp, level(value, range)))
            }
            Some((None, 0)) => Cell::styled("-", Style::Faint),
            Some((None, _)) => Cell::styled("failed", Style::Failure),
        }));
        table.row(cells);
    }
    page.table(&table);
    page.gap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_span_the_range() {
        assert_eq!((level(0.0, (0.0, 10.0)), level(10.0, (0.0, 10.0))), (0, HEAT_LEVELS - 1));
        assert_eq!((level(-5.0, (0.0, 10.0)), level(50.0, (0.0, 10.0))), (0, HEAT_LEVELS - 1));
        assert_eq!(level(3.0, (3.0, 3.0)), HEAT_LEVELS - 1);
        assert_eq!(unit(2.5e9, BYTES).1, "GiB/s");
        assert_eq!(
            (unit(0.5, BYTES).1, unit(999.0, TIMES).1, unit(1e3, RATES).1),
            ("B/s", "ns", "thousand RPCs/s")
        );
    }
}
