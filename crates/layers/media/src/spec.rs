//! Options of media, as typed.

use std::sync::LazyLock;

use units::ByteSize;
use workload::content::RepeatedBytes;
use workload::spec::{Operation, Spec};

use crate::course::{Percents, Run, Visit, Zones};
use crate::engine::{EngineOptions, SyncCall};
use crate::plan::{MixPlan, VerifyBacklog};
use crate::zoned::ZonedChoice;

/// Whether the page cache is dropped for the targets before a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CachePolicy {
    /// Left as it is.
    Keep,
    /// Dropped for the targets.
    Drop,
    /// The range is read once before the phase, so that a buffered read finds it there.
    Warm,
}

/// How a file that a phase needs is made before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Filled when it is read or overwritten at random, allocated when it is written in order.
    #[default]
    Auto,
    /// Filled with data.
    Fill,
    /// Its space is allocated (fallocate(2)) and not written.
    Allocate,
    /// It is given its length, and no space.
    Sparse,
    /// It is not made: a file that is missing or too short fails the phase, and what is there stays as it is.
    Existing,
}

/// Options of a load that media alone has; `None` means: not said. [`of`] finds it in a spec.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub struct MediaSpec {
    pub operations: Vec<Operation>,
    pub size: Option<ByteSize>,
    pub sizes: Option<Vec<ByteSize>>,
    pub offset: Option<ByteSize>,
    pub align: Option<ByteSize>,
    pub engine: Option<String>,
    /// Options of the driver, but for the call that makes writes durable.
    pub options: EngineOptions,
    pub fsync: Option<u64>,
    pub end_fsync: bool,
    pub sync_call: Option<SyncCall>,
    pub mix: Option<MixPlan>,
    pub gap: Option<i64>,
    pub run: Option<Run>,
    pub random_percent: Option<Percents>,
    pub own_positions: bool,
    pub zones: Option<Zones>,
    pub zoned: Option<ZonedChoice>,
    pub visit: Option<Visit>,
    pub verify_interval: Option<ByteSize>,
    pub verify_run: Option<u64>,
    pub no_read_back: bool,
    pub verify_pattern: Option<RepeatedBytes>,
    pub verify_backlog: Option<VerifyBacklog>,
    pub verify_dump: Option<String>,
    pub serialize_overlap: bool,
    pub layout: Option<Layout>,
    pub cache: Option<CachePolicy>,
    pub huge_pages: bool,
    pub memory: gpu::MemorySpec,
    /// Names of the engine options that were given, so that an engine that does not honour one can refuse it.
    pub engine_options_given: Vec<&'static str>,
}

/// Options of media in a spec.
#[must_use]
pub fn of(spec: &Spec) -> &MediaSpec {
    static NOTHING_SAID: LazyLock<MediaSpec> = LazyLock::new(MediaSpec::default);
    spec.own.get().unwrap_or(&NOTHING_SAID)
}

/// The same, to say one.
pub fn of_mut(spec: &mut Spec) -> &mut MediaSpec {
    spec.own.get_mut()
}
