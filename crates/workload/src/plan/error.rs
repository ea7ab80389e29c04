//! Refusals of planning.

use std::fmt;

use units::{ByteSize, ParseError};

/// A request that cannot be: one line that says what was wrong and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

impl From<ParseError> for PlanError {
    fn from(error: ParseError) -> Self {
        Self(error.to_string())
    }
}

/// A refusal with this message.
///
/// # Errors
/// Always.
pub fn refuse<T>(message: String) -> Result<T, PlanError> {
    Err(PlanError(message))
}

/// A size in a message: `4KiB`, or `1279 bytes` where it is no whole number of a unit.
#[derive(Clone, Copy, Debug)]
pub struct Amount(pub u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = ByteSize(self.0).to_string();
        let unit = if text.bytes().all(|byte| byte.is_ascii_digit()) { " bytes" } else { "" };
        write!(f, "{text}{unit}")
    }
}
