//! Rounded values for tables: three significant digits and a unit. A value that is not a number prints as `n/a`.

/// Printed for NaN and the infinities.
const NOT_A_NUMBER: &str = "n/a";

const BINARY: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const BITS: &[&str] = &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
const DECIMAL: &[&str] = &["", "k", "M", "G", "T"];
const SUBSECOND: &[&str] = &["ns", "us", "ms", "s"];

/// Three significant digits below 1000, all digits above.
fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    // The bounds are where rounding carries into the next digit.
    let decimals = match magnitude {
        _ if magnitude < 9.995 => 2,
        _ if magnitude < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Divides by `step` until the value, as it will be printed, is below `step`.
fn scale<'a>(value: f64, step: f64, units: &[&'a str]) -> (f64, &'a str) {
    let (mut value, mut unit) = (value, 0);
    while value.abs().round() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    (value, units[unit])
}

/// A number of bytes in units of 1024: `512 B`, `4 KiB`, `1.46 GiB`.
pub fn human_bytes(bytes: f64) -> String {
    if !bytes.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let (value, unit) = scale(bytes, 1024.0, BINARY);
    if value.fract() == 0.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{} {unit}", three_digits(value))
    }
}

/// A bandwidth, from bytes per second, in units of 1024: `1.46 GiB/s`.
pub fn human_bytes_per_second(bytes_per_second: f64) -> String {
    if !bytes_per_second.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let (value, unit) = scale(bytes_per_second, 1024.0, BINARY);
    format!("{} {unit}/s", three_digits(value))
}

/// A bandwidth as networks count it, from bits per second, in units of 1000: `100 Gbit/s`, `43.9 Gbit/s`.
pub fn human_bits_per_second(bits_per_second: f64) -> String {
    if !bits_per_second.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let (value, unit) = scale(bits_per_second, 1000.0, BITS);
    if value.fract() == 0.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{} {unit}", three_digits(value))
    }
}

/// A rate, from operations per second, in units of 1000: `950`, `12.3k`, `1.25M`.
pub fn human_rate(per_second: f64) -> String {
    if !per_second.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let (value, unit) = scale(per_second, 1000.0, DECIMAL);
    if unit.is_empty() && value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    format!("{}{unit}", three_digits(value))
}

/// A time, from nanoseconds: `812 ns`, `12.4 us`, `3.21 ms`, `1.20 s`.
pub fn human_ns(ns: f64) -> String {
    if !ns.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let (value, unit) = scale(ns, 1000.0, SUBSECOND);
    if unit == "ns" && value.fract() == 0.0 {
        return format!("{value:.0} ns");
    }
    format!("{} {unit}", three_digits(value))
}

/// A share, from a fraction where 1.0 is the whole: `0%`, `0.04%`, `12.3%`, `100%`.
pub fn percent(fraction: f64) -> String {
    if !fraction.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let value = fraction * 100.0;
    if value == 0.0 || value == 100.0 {
        return format!("{value:.0}%");
    }
    let decimals = if value.abs() < 9.995 { 2 } else { 1 };
    format!("{value:.decimals$}%")
}
