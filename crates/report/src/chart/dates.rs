//! Moments along an axis: ticks at full hours, days, months and years, UTC.

use std::time::{Duration, UNIX_EPOCH};

use super::scale::Tick;

/// Last moment that an axis shows, seconds since 1970: the end of the year 9999.
const LAST: f64 = 253_402_300_799.0;
const DAY: f64 = 86_400.0;
/// Distances of ticks that are shorter than a day, in seconds.
const SHORT: &[f64] = &[1.0, 10.0, 60.0, 600.0, 1800.0, 3600.0, 7200.0, 21_600.0, 43_200.0];
/// Days of a month that have a tick, the most of them first.
const DAYS: &[&[u32]] = &[
    &[1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29],
    &[1, 5, 9, 13, 17, 21, 25, 29],
    &[1, 8, 15, 22],
    &[1, 15],
    &[1],
];
/// Months of a year that have a tick at their first day.
const MONTHS: &[&[u32]] = &[&[1, 4, 7, 10], &[1, 7], &[1]];

/// `2026-11-29T01:06:35Z`.
fn text(seconds: f64) -> String {
    let since = Duration::from_secs(seconds.clamp(0.0, LAST) as u64);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

/// `2026-11-29 01:06`.
pub(super) fn written(seconds: f64) -> String {
    text(seconds)[..16].replace('T', " ")
}

/// The moments that an axis shows: at least a minute, and all of them in the years that have four digits.
pub(super) fn range(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = (low.clamp(0.0, LAST - 60.0), high.clamp(60.0, LAST));
    if high - low >= 60.0 { (low, high) } else { (low, low + 60.0) }
}

/// About `count` ticks from one moment to another.
pub(super) fn ticks(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let count = count.max(2) as f64;
    if let Some(step) = SHORT.iter().find(|step| (high - low) / **step <= count) {
        return every(low, high, *step, |text| {
            if *step < 60.0 { text[11..19].to_owned() } else { text[5..16].replace('T', " ") }
        });
    }
    if (high - low) / DAY <= count {
        return every(low, high, DAY, |text| text[..10].to_owned());
    }
    let days = (high - low) / DAY;
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    if let Some(shown) = DAYS.iter().find(|shown| days / 30.4 * shown.len() as f64 <= count) {
        let all = every(low, high, DAY, |text| text[..10].to_owned());
        return all.into_iter().filter(|tick| shown.contains(&number(&tick.label[8..10]))).collect();
    }
    if let Some(shown) = MONTHS.iter().find(|shown| days / 365.25 * shown.len() as f64 <= count) {
        let all = every(low, high, DAY, |text| text[..10].to_owned());
        let firsts = all.into_iter().filter(|tick| tick.label.ends_with("-01"));
        let months = shown.len();
        let shown = firsts.filter(|tick| shown.contains(&number(&tick.label[5..7])));
        return shown.map(|tick| short(tick, months)).collect();
    }
    // Many years: those that are round.
    let years = days / 365.25;
    let step = [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
        .into_iter()
        .find(|step| years / step <= count)
        .unwrap_or(1000.0) as u32;
    let first = number(&text(low)[..4]).next_multiple_of(step);
    let years = (first..=number(&text(high)[..4])).step_by(step as usize);
    let ticks = years.map(|year| Tick { value: new_year(year), label: year.to_string() });
    ticks.filter(|tick| (low..=high).contains(&tick.value)).collect()
}

/// The first moment of a year: 365 days each, and those of the leap years before it.
fn new_year(year: u32) -> f64 {
    let before = f64::from(year) - 1.0;
    let leap_days = (before / 4.0).floor() - (before / 100.0).floor() + (before / 400.0).floor();
    // 477 leap days before 1970.
    (365.0 * (f64::from(year) - 1970.0) + leap_days - 477.0) * DAY
}

/// The tick with its year alone, or with year and month.
fn short(tick: Tick, months: usize) -> Tick {
    let end = if months == 1 { 4 } else { 7 };
    Tick { label: tick.label[..end].to_owned(), ..tick }
}

fn every(low: f64, high: f64, step: f64, label: impl Fn(&str) -> String) -> Vec<Tick> {
    let first = (low / step).ceil();
    let count = ((high - first * step) / step).floor().max(-1.0) + 1.0;
    let values = (0..count as u64).map(|at| (first + at as f64) * step);
    values.map(|value| Tick { value, label: label(&text(value)) }).collect()
}
