//! Local time, as IO500 writes it.
#![allow(unsafe_code)]

use std::time::{SystemTime, UNIX_EPOCH};

/// The local time as year, month, day, hour, minute and second.
fn now() -> [i32; 6] {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as libc::time_t;
    // SAFETY: all fields of the structure may be zero; its pointer may be null.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both live as long as the call, which keeps neither.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    [parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec]
}

/// Now, as the names of directories have it: `2026.01.31-23.59.59`.
pub(super) fn directory() -> String {
    let [year, month, day, hour, minute, second] = now();
    format!("{year:04}.{month:02}.{day:02}-{hour:02}.{minute:02}.{second:02}")
}

/// Now, as result files have it: `2026-01-31 23:59:59`.
pub(super) fn stamp() -> String {
    let [year, month, day, hour, minute, second] = now();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}
