use std::fmt;

/// The most characters of a refused text that an error repeats.
const GIVEN_CHARACTERS_MAX: usize = 60;

/// A text or value that was refused, and what would have been accepted.
///
/// Prints as one line: `"1zz" is not a size: use a number with ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Kind of value expected, with its article: `a size`.
    pub what: String,
    /// Text given, as it came.
    pub given: String,
    /// Values that would be accepted; reads on after "use".
    pub accepted: String,
}

impl ParseError {
    /// Builds the error for `given`, which is not `what` because only `accepted` is.
    pub fn new(what: impl Into<String>, given: impl fmt::Display, accepted: impl Into<String>) -> Self {
        Self { what: what.into(), given: given.to_string(), accepted: accepted.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Escaped, because a line break or a terminal code in the input must not reach the terminal.
        let mut characters = self.given.chars();
        out.write_str("\"")?;
        for character in characters.by_ref().take(GIVEN_CHARACTERS_MAX) {
            write!(out, "{}", character.escape_debug())?;
        }
        let cut = if characters.next().is_some() { "..." } else { "" };
        write!(out, "{cut}\" is not {}: use {}", self.what, self.accepted)
    }
}

impl std::error::Error for ParseError {}
