//! Phases of records that the tests of dialects print.

use report::record::PhaseRecord;
use report::sample::{self, Shape};

/// A phase of this shape. Its plan is of a layer, which the registry has to know first.
pub(crate) fn phase(shape: &Shape) -> PhaseRecord {
    registry::register();
    sample::phase(shape)
}
