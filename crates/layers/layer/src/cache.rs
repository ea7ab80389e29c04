//! Caches before a phase.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fate of what memory keeps of the data before a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheBefore {
    /// Left as it is.
    #[default]
    Keep,
    /// Dropped, where it is a copy: what is read comes from the storage.
    Drop,
}

impl CacheBefore {
    /// Its words, as options have them.
    pub const CHOICES: &'static [(&'static str, Self)] = &[("keep", Self::Keep), ("drop", Self::Drop)];

    /// Whether nothing is done.
    #[must_use]
    pub fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}
