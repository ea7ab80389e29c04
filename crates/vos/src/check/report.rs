//! Findings of an examination of a pool.

use serde::Serialize;

/// Kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The superblock.
    Superblock,
    /// The table of containers, or a row of it.
    Table,
    /// A file is missing, of another size, or cannot be read.
    File,
    /// The index of a target: its checksum, or what it says against the log.
    Index,
    /// The header of a segment of the log, or a part of the log that holds no record.
    Log,
    /// A record of the log: its header, its keys, its commit word.
    Record,
    /// A value: its checksum.
    Value,
    /// An extent of the data file: it overlaps another, lies outside, or is both free and in use.
    Extent,
    /// Space that nothing refers to and that is not free.
    Leak,
    /// Records of a container that is named in no table.
    Container,
    /// Copies of a replicated value differ, or one is missing or damaged.
    Copy,
    /// Cells of an erasure-coded value: one is missing or damaged, or parity does not match.
    Stripe,
    /// An update of an erasure-coded value that was cut off: too few of its cells are there.
    Incomplete,
}

/// Something that is wrong, by its place, and what a repair does about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind.
    pub kind: FindingKind,
    /// Target, where it is on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// Container: its label, or its number where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Dkey, escaped; none where the damage hides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dkey: Option<String>,
    /// Akey, as the dkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub akey: Option<String>,
    /// Epoch of the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The damage, in words.
    pub what: String,
    /// The plan of `--repair`, or why it cannot.
    pub plan: String,
    /// Whether a repair mends it.
    pub can_repair: bool,
}

impl Finding {
    /// One that has no place yet, and no repair.
    pub(super) fn new(kind: FindingKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            target: None,
            container: None,
            object: None,
            dkey: None,
            akey: None,
            epoch: None,
            what: what.into(),
            plan: String::new(),
            can_repair: false,
        }
    }

    pub(super) fn on(self, target: u32) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Sets the plan of a repair.
    pub(super) fn mended(self, plan: impl Into<String>) -> Self {
        Self { plan: plan.into(), can_repair: true, ..self }
    }

    /// Why nothing mends it.
    pub(super) fn kept(self, why: impl Into<String>) -> Self {
        Self { plan: why.into(), can_repair: false, ..self }
    }
}

/// All that an examination found. Counts are of what was examined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Directory of the pool.
    pub pool: String,
    /// Its UUID, where the superblock tells.
    pub uuid: Option<String>,
    /// Targets.
    pub targets: u32,
    /// Containers.
    pub containers: u32,
    /// Records that the index refers to.
    pub records: u64,
    /// Bytes of values whose checksums were verified.
    pub verified_bytes: u64,
    /// Values that carry no checksum (`--checksum off`): of these the record's header alone was verified.
    pub unverified_values: u64,
    /// Values of replicated and erasure-coded classes whose copies or cells were compared.
    pub compared_values: u64,
    /// Whether it was closed in order; else its log was read, as the next opening does.
    pub is_closed: bool,
    /// Damage.
    pub findings: Vec<Finding>,
    /// Facts that are worth knowing and are no damage.
    pub notes: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Findings that a repair mends.
    #[must_use]
    pub fn repairable(&self) -> usize {
        self.findings.iter().filter(|finding| finding.can_repair).count()
    }
}

/// Outcome of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Findings before it.
    pub before: CheckReport,
    /// Repairs that were done, a line each.
    pub done: Vec<String>,
    /// Data that was lost for good, and repairs that could not be done: a line each.
    pub left: Vec<String>,
    /// Findings after it.
    pub after: CheckReport,
}

impl RepairReport {
    /// Whether nothing is wrong any more, and nothing was lost.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.after.is_clean() && self.left.is_empty()
    }
}
