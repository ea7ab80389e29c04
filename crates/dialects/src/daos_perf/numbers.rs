//! Numbers with k, m or g behind them, all powers of 1024, as both tools read them.

use units::ParseError;

/// Reads a number from `min` to `max`.
///
/// # Errors
/// A text that is no such number. A leading zero is refused: the tools read octal numbers there.
pub(crate) fn parse(what: &str, text: &str, min: u64, max: u64) -> Result<u64, ParseError> {
    let refuse = || {
        let range = match max {
            u64::MAX => format!("{min} or more"),
            max => format!("{min} to {max}"),
        };
        ParseError::new(
            what,
            text,
            format!("{range}, optionally followed by k, m or g (powers of 1024), such as 4k"),
        )
    };
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err(refuse()),
    };
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    if digits.is_empty() || !is_plain || (digits.len() > 1 && digits.starts_with('0')) {
        return Err(refuse());
    }
    let number: u64 = digits.parse().map_err(|_| refuse())?;
    let number = number.checked_mul(1 << shift).ok_or_else(refuse)?;
    if (min..=max).contains(&number) { Ok(number) } else { Err(refuse()) }
}
