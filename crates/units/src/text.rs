//! Text for people.

use std::borrow::Cow;

use crate::human_rate;

/// The text with control characters spelled out: a path or an error text must not steer the terminal.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let spell = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    Cow::Owned(text.chars().map(spell).collect())
}

/// `1 thread`, `4 threads`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A rate with its unit: `412k/s`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    format!("{}/s", human_rate(per_second))
}

/// A large count: digits up to five, rounded above.
#[must_use]
pub fn count(value: u64) -> String {
    if value < 100_000 { value.to_string() } else { human_rate(value as f64) }
}
