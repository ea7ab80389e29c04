//! Where values lie along an axis, and the ticks that name them.

use super::dates;
use super::model::{Axis, Scale, Unit};

/// A place on an axis with a name, or only a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// An axis with its range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range {
    low: f64,
    high: f64,
    is_log: bool,
    pub(super) ticks: Vec<Tick>,
    /// Unit of the tick labels, for the axis' title; empty when they say it themselves.
    pub(super) unit: &'static str,
}

const BYTES: &[(f64, &str)] = &[
    (1.0, "B/s"),
    (1024.0, "KiB/s"),
    (1_048_576.0, "MiB/s"),
    (1_073_741_824.0, "GiB/s"),
    (1_099_511_627_776.0, "TiB/s"),
];
const TIMES: &[(f64, &str)] = &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
const COUNTS: &[(f64, &str)] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];

/// The largest unit that is not above the value.
fn unit_of(value: f64, units: &'static [(f64, &'static str)]) -> (f64, &'static str) {
    units.iter().rev().find(|(size, _)| *size <= value.abs()).copied().unwrap_or(units[0])
}

/// A number without needless digits, at most nine significant ones.
fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (8 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A value as an axis of this unit writes it, with its unit.
pub(super) fn written(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Plain => three_digits(value),
        Unit::PerSecond => format!("{}/s", units::human_rate(value)),
        Unit::BytesPerSecond => units::human_bytes_per_second(value),
        Unit::Seconds => units::human_ns(value * 1e9),
        Unit::Date => dates::written(value),
        Unit::Nanoseconds => units::human_ns(value),
        Unit::Share => units::percent(value),
        Unit::Nines => nines(value),
    }
}

fn three_digits(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e6 { format!("{value:.0}") } else { units::human_rate(value) }
}

/// `0%`, `50%`, `99.9%`.
fn nines(value: f64) -> String {
    let decimals = (value.ceil() as usize).saturating_sub(2).min(9);
    format!("{}%", plain(format!("{:.decimals$}", 100.0 * (1.0 - 10f64.powf(-value))).parse().unwrap_or(0.0)))
}

impl Range {
    /// The range of an axis that shows these values, with about `count` ticks.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, count: usize) -> Self {
        let is_log = axis.scale == Scale::Log;
        let usable = |value: &f64| value.is_finite() && value.abs() < 1e300 && (!is_log || *value > 0.0);
        let (low, high) = values
            .filter(usable)
            // The quotient of two values this small has no digits left.
            .map(|value| if value.abs() < 1e-250 { 0.0 } else { value })
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 1.0) } else { (low, high) };
        match &axis.scale {
            Scale::Names(names) => Self::of_names(names),
            Scale::Log => Self::logarithmic(axis.unit, low.max(1e-300), high.max(1e-300)),
            Scale::Spanning if axis.unit == Unit::Nines => Self::of_nines(high),
            Scale::Spanning if axis.unit == Unit::Date => Self::of_dates(low, high, count),
            // Time ends where the data end; values have room above them.
            Scale::Linear => Self::linear(axis.unit, low.min(0.0), high, count, axis.unit != Unit::Seconds),
            Scale::Spanning => Self::linear(axis.unit, low, high, count, false),
        }
    }

    fn of_names(names: &[String]) -> Self {
        let ticks = names
            .iter()
            .enumerate()
            .map(|(at, name)| Tick { value: at as f64, label: name.clone() })
            .collect();
        Self { low: -0.5, high: names.len().max(1) as f64 - 0.5, is_log: false, ticks, unit: "" }
    }

    fn of_nines(high: f64) -> Self {
        // A record counts fewer than 10^20 operations.
        let high = high.clamp(1.0, 20.0);
        let values =
            [0.0, 0.5f64.log10().abs()].into_iter().chain((1..=high as usize).map(|nines| nines as f64));
        let ticks = values.map(|value| Tick { value, label: nines(value) }).collect();
        Self { low: 0.0, high, is_log: false, ticks, unit: "" }
    }

    fn of_dates(low: f64, high: f64, count: usize) -> Self {
        let (low, high) = dates::range(low, high);
        Self { low, high, is_log: false, ticks: dates::ticks(low, high, count), unit: "" }
    }

    fn linear(unit: Unit, low: f64, high: f64, count: usize, round: bool) -> Self {
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        let (size, name) = match unit {
            Unit::BytesPerSecond => unit_of(high, BYTES),
            Unit::Nanoseconds => unit_of(high, TIMES),
            Unit::Seconds if high < 1e-3 => (1e-6, "us"),
            Unit::Seconds if high < 1.0 => (1e-3, "ms"),
            Unit::Seconds => (1.0, "s"),
            Unit::Share => (0.01, "%"),
            Unit::Plain | Unit::PerSecond | Unit::Nines | Unit::Date => (1.0, ""),
        };
        let step = nice_step((high - low) / size, count) * size;
        let (low, high) = if round {
            ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
        } else {
            (low, high)
        };
        // Short numbers: 150k, not 150000.
        let largest = high.abs().max(low.abs());
        let (short, suffix) = match unit {
            Unit::Plain | Unit::PerSecond if largest >= 10_000.0 => unit_of(largest, COUNTS),
            _ => (1.0, ""),
        };
        let first = (low / step - 1e-9).ceil();
        let ticks = (0..=100)
            .map(|at| (first + f64::from(at)) * step)
            .take_while(|value| *value <= high + step * 1e-6)
            .map(|value| {
                // Multiples of the step carry rounding dust, which a millionth of a step removes.
                let shown = (value / size / short * 1e9).round() / 1e9;
                let suffix = if shown == 0.0 { "" } else { suffix };
                Tick { value, label: format!("{}{suffix}", plain(shown)) }
            })
            .collect();
        Self { low, high, is_log: false, ticks, unit: name }
    }

    fn logarithmic(unit: Unit, low: f64, high: f64) -> Self {
        let (size, name) = match unit {
            Unit::BytesPerSecond => unit_of(high, BYTES),
            _ => (1.0, ""),
        };
        let low = on_grid(low / size, false);
        let high = on_grid(high / size, true).max(low * 1.999);
        let decades = (high / low).log10();
        let steps: &[f64] = if decades <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let ticks = exponents
            .flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)))
            .filter(|value| (low * 0.999..=high * 1.001).contains(value))
            .map(|value| Tick { value: value * size, label: log_label(value, unit) })
            .collect();
        Self { low: low * size, high: high * size, is_log: true, ticks, unit: name }
    }

    /// Where a value lies: 0 at the low end, 1 at the high one; none when it has no place.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let share = if self.is_log {
            if value <= 0.0 {
                return None;
            }
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // A little more than the range: what rounding leaves.
        (share.is_finite() && (-1e-6..=1.0 + 1e-6).contains(&share)).then_some(share)
    }

    /// The end that bars and areas stand on.
    pub(super) fn ground(&self) -> f64 {
        if self.is_log { self.low } else { 0f64.clamp(self.low, self.high) }
    }
}

fn log_label(value: f64, unit: Unit) -> String {
    let (size, suffix) = match unit {
        Unit::Nanoseconds => unit_of(value * 1.000_001, TIMES),
        Unit::Plain | Unit::PerSecond => unit_of(value * 1.000_001, COUNTS),
        _ => (1.0, ""),
    };
    let number = plain(value / size);
    match unit {
        Unit::Nanoseconds => format!("{number} {suffix}"),
        _ => format!("{number}{suffix}"),
    }
}

/// 1, 2 or 5 times a power of ten that gives about `count` steps.
fn nice_step(span: f64, count: usize) -> f64 {
    let raw = span / count.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= raw * 0.999).unwrap_or(10.0);
    nice * power
}

/// The nearest 1, 2 or 5 times a power of ten on this side of a positive value.
fn on_grid(value: f64, up: bool) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let found = if up {
        steps.into_iter().find(|step| *step >= value * 0.999_999)
    } else {
        steps.into_iter().rev().find(|step| *step <= value * 1.000_001)
    };
    found.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(unit: Unit, scale: Scale, values: &[f64]) -> Vec<String> {
        let axis = Axis::new("", unit, scale);
        Range::new(&axis, values.iter().copied(), 5).ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_and_short() {
        assert_eq!(
            labels(Unit::PerSecond, Scale::Linear, &[412_000.0]),
            ["0", "100k", "200k", "300k", "400k", "500k"]
        );
        assert_eq!(labels(Unit::Plain, Scale::Linear, &[0.7]), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(Unit::Share, Scale::Linear, &[0.043]), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(
            labels(Unit::BytesPerSecond, Scale::Linear, &[3.9 * 1_048_576.0]),
            ["0", "1", "2", "3", "4"]
        );
        assert_eq!(
            labels(Unit::Nanoseconds, Scale::Log, &[9e3, 1.9e6]),
            ["5 us", "10 us", "20 us", "50 us", "100 us", "200 us", "500 us", "1 ms", "2 ms"]
        );
        // 2026-11-29T01:06:35Z, and 40 days, 5 hours, 3 years later.
        let at = 1_795_914_395.0;
        let dates = |span: f64| labels(Unit::Date, Scale::Spanning, &[at, at + span]);
        assert_eq!(dates(40.0 * 86_400.0), ["2026-12-01", "2026-12-15", "2027-01-01"]);
        assert_eq!(
            dates(5.0 * 3600.0),
            ["11-29 02:00", "11-29 03:00", "11-29 04:00", "11-29 05:00", "11-29 06:00"]
        );
        assert_eq!(dates(3.0 * 365.0 * 86_400.0), ["2027", "2028", "2029"]);
        assert_eq!(labels(Unit::Nines, Scale::Spanning, &[3.2]), ["0%", "50%", "90%", "99%", "99.9%"]);
    }

    #[test]
    fn odd_values_have_a_range() {
        for values in
            [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[1e308, -1e308], &[5e-324], &[-3.0, -3.0]]
        {
            for unit in [
                Unit::Plain,
                Unit::PerSecond,
                Unit::BytesPerSecond,
                Unit::Seconds,
                Unit::Date,
                Unit::Nanoseconds,
                Unit::Share,
                Unit::Nines,
            ] {
                for scale in [Scale::Linear, Scale::Spanning, Scale::Log, Scale::Names(vec![])] {
                    let axis = Axis::new("", unit, scale);
                    let range = Range::new(&axis, values.iter().copied(), 5);
                    assert!(
                        range.low < range.high && range.ticks.len() <= 1000,
                        "{values:?} {axis:?} {range:?}"
                    );
                }
            }
        }
    }
}
