//! Options of the user, as typed.

use std::path::PathBuf;

use units::{ByteSize, ParseError, Rate, Span};

pub use crate::arrival::Spacing;
pub use crate::content::Refill;
pub use crate::layers::Layer;

/// Operation of a phase on its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Sequential reads and writes, interleaved.
    ReadWrite,
    /// Random reads and writes, interleaved.
    RandRw,
    /// Sequential discards.
    Discard,
    /// Random discards.
    RandDiscard,
    /// Sequential discards, each followed by a write of the same bytes.
    DiscardWrite,
    /// Random discards, each followed by a write of the same bytes.
    RandDiscardWrite,
    /// Operations that move nothing: what the path through the driver costs.
    Nop,
}

/// Names and aliases of the operations, in the order of help.
pub const OPERATIONS: &[(&str, Operation)] = &[
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("randread", Operation::RandRead),
    ("randwrite", Operation::RandWrite),
    ("readwrite", Operation::ReadWrite),
    ("rw", Operation::ReadWrite),
    ("randrw", Operation::RandRw),
    ("discard", Operation::Discard),
    ("trim", Operation::Discard),
    ("randdiscard", Operation::RandDiscard),
    ("randtrim", Operation::RandDiscard),
    ("discardwrite", Operation::DiscardWrite),
    ("trimwrite", Operation::DiscardWrite),
    ("randdiscardwrite", Operation::RandDiscardWrite),
    ("randtrimwrite", Operation::RandDiscardWrite),
    ("nop", Operation::Nop),
];

impl Operation {
    /// Whether positions are random.
    #[must_use]
    pub fn is_random(self) -> bool {
        matches!(
            self,
            Self::RandRead | Self::RandWrite | Self::RandRw | Self::RandDiscard | Self::RandDiscardWrite
        )
    }

    /// Whether it mixes reads and writes.
    #[must_use]
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::ReadWrite | Self::RandRw)
    }

    /// Whether each discard is followed by a write of the same bytes.
    #[must_use]
    pub fn is_pair(self) -> bool {
        matches!(self, Self::DiscardWrite | Self::RandDiscardWrite)
    }

    /// The name users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        OPERATIONS.iter().find(|(_, operation)| *operation == self).map_or("", |(name, _)| name)
    }
}

/// How the load ends its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// Found in the series of rates and cut from the figures.
    Auto,
    /// Nothing is cut.
    None,
    /// Run for this long before the measured window opens, in nanoseconds.
    Fixed(u64),
}

/// How a worker's share of the range is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Each worker has its own part of the range.
    Partition,
    /// Every worker covers the whole range.
    Whole,
}

/// Action after a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The phase ends; what was measured is kept.
    Stop,
    /// It is counted and the worker goes on.
    Continue,
}

/// Dimension climbed by a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LadderDimension {
    /// Queue depth.
    Depth,
    /// Threads.
    Threads,
    /// Block size in bytes.
    BlockSize,
    /// Rate in operations a second.
    Rate,
}

/// Action when a host fails that carries out a run together with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnHostFailure {
    /// The others end after what is in flight; what was measured is kept.
    Stop,
    /// The others go on.
    Continue,
}

/// A ladder: one phase a value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ladder {
    /// Climbed dimension.
    pub dimension: LadderDimension,
    /// Its values, as bytes, counts or operations a second.
    pub values: Vec<u64>,
}

/// Which of the processors of `--cores` a worker may run on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CoresPolicy {
    /// One of them, round robin.
    #[default]
    Split,
    /// All of them.
    Shared,
}

/// Options of the user. `None` means: not said. The tables of options of its layer fill it from the command line and from job files; the layer
/// turns it into plans.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub struct Spec {
    /// The layer; in a job file `layer = "NAME"`.
    #[serde(skip)]
    pub layer: Layer,
    /// Options of single layers.
    #[serde(skip)]
    pub own: crate::layers::OwnSpecs,
    /// Options as they were said, for processes that read them again.
    #[serde(skip)]
    pub said: crate::shipped::SaidOptions,
    /// Hosts that carry it out together: lists as typed.
    #[serde(skip)]
    pub hosts: Vec<String>,
    /// So many of them, the first ones, carry it out; none: all.
    #[serde(skip)]
    pub hosts_used: Option<u32>,
    /// Options of some of them.
    #[serde(skip)]
    pub host_options: Vec<crate::host_options::HostOptions>,
    /// Certificates of hosts: `HOST=sha256:HEX` each.
    #[serde(skip)]
    pub fingerprints: Vec<String>,
    /// Whether the hosts have the same targets, or each its own; none: as it is found.
    pub host_targets: Option<crate::plan::HostTargets>,
    /// From each phase to the next the parts of the work go on by so many hosts.
    pub rotate_hosts: Option<u32>,
    #[serde(skip)]
    pub on_host_failure: Option<OnHostFailure>,
    /// Number of the host, among those of the run, that carries it out alone, as a run of its own; none: all of them together.
    pub host: Option<u32>,
    /// Control addresses of processes that drive the load (masters).
    pub clients: Vec<String>,
    /// Place of this process among the hosts that carry it out together; no option says it, the one that leads them does.
    pub place: Option<crate::plan::HostPlace>,
    /// Stores of this machine among its targets that engines of the run serve; no option says it either.
    pub served: Vec<crate::plan::ServedStore>,
    /// File with the secret shared with engines and masters.
    pub token_file: Option<PathBuf>,
    /// TLS for control, on loopback too; beyond it is always on.
    pub tls: bool,
    pub name: Option<String>,
    pub targets: Vec<String>,
    pub block_size: Option<String>,
    pub threads: Option<u32>,
    pub depth: Option<u32>,
    pub time: Option<Span>,
    pub count: Option<u64>,
    pub bytes: Option<ByteSize>,
    pub warmup: Option<Warmup>,
    pub rate: Option<Rate>,
    /// An open loop at this per cent of the highest rate that a climb to saturation finds first.
    pub rate_percent: Option<f64>,
    pub arrivals: Option<Spacing>,
    pub ladder: Option<Ladder>,
    pub saturate: bool,
    pub pattern: Option<String>,
    pub share: Option<Share>,
    pub content: Option<String>,
    pub compress: Option<u8>,
    pub dedupe: Option<u8>,
    pub dedupe_set: Option<ByteSize>,
    pub dedupe_global: bool,
    pub refill: Option<Refill>,
    pub verify: bool,
    /// Operations of a log, in place of drawn ones.
    #[serde(with = "crate::replay::shipped")]
    pub replay: Option<std::sync::Arc<crate::replay::Replay>>,
    pub seed: Option<u64>,
    pub cores: Option<Vec<u32>>,
    pub cores_policy: Option<CoresPolicy>,
    pub numa: Option<Vec<u32>>,
    pub concurrent: bool,
    pub end_others: bool,
    pub start_delay: Option<Span>,
    pub think_time: Option<Span>,
    pub think_blocks: Option<u64>,
    pub think_after: Option<Span>,
    pub think_spin: Option<Span>,
    pub no_catch_up: bool,
    pub split_latency: bool,
    pub profile: bool,
    pub interval: Option<Span>,
    pub on_error: Option<OnError>,
    pub keep: bool,
    pub destroy_data: bool,
    pub batch: Option<u32>,
    pub batch_min: Option<u32>,
    pub batch_max: Option<u32>,
    /// Control of the load while it runs.
    pub control: crate::control::Control,
}

impl Spec {
    /// A spec of the layer of this name, with nothing said.
    ///
    /// # Errors
    /// A name that this build has no layer for, with those that there are.
    pub fn of_layer(name: &str) -> Result<Self, ParseError> {
        Ok(Self { layer: Layer::named(name)?, ..Self::default() })
    }
}

/// Looks a word up in a table of choices.
///
/// # Errors
/// Lists the choices.
pub fn choice<T: Copy>(what: &str, text: &str, choices: &[(&str, T)]) -> Result<T, ParseError> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        ParseError::new(format!("a value of {what}"), text, format!("one of {}", names.join(", ")))
    })
}
