//! The plan of a phase of the object layer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use vos::{ObjectClass, ObjectType};
use workload::plan::{ContentPlan, LimitPlan, LoadPlan, Pattern};
use workload::spec::Share;

use super::{ObjectOp, ObjectOptions};

/// Kind of value under an akey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// One value, written and read as a whole.
    #[default]
    Single,
    /// Records, written and read by extents.
    Array,
}

/// Whether workers share an object or container, or each worker has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All workers share it.
    #[default]
    Shared,
    /// Each worker has its own.
    Private,
}

/// A share of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpShare {
    /// Operation.
    pub operation: ObjectOp,
    /// Its share of the operations in percent; those of a mix add up to 100.
    pub percent: u8,
}

/// Dataset of the operations: `objects` x `dkeys` x `akeys` x `records` records. A record is the unit that the pattern orders, that
/// workers share, and that content and verification depend on. Record number
/// `((dkey x akeys + akey) x records + record) x objects + object`: objects run fastest and dkeys slowest, as in vos_perf. Operations on
/// more than a record (a list, an object, a container) go over those in the same order.
///
/// Meaning of a record, by interface:
///
/// - Objects with dkeys and akeys: with array values an extent of `value` bytes from `record x stride_bytes + offset_bytes` on under its
///   dkey and akey; with single values a version of the value there, so that all records of an akey have one size and content.
/// - Key-value objects: the value of a key (`akeys` and `records` are 1). Ranged reads, of drivers that read ranges of values and have no
///   arrays (S3): the range of `value` bytes from `record x stride_bytes` on of the key's value.
/// - Arrays: one transfer of `value` bytes at the position `record x stride_bytes + offset_bytes` of the whole array (`dkeys` and
///   `akeys` are 1: the dkeys of an array are the numbers of its chunks, which follow from positions).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatasetPlan {
    /// Objects (per worker if they are private).
    pub objects: u64,
    /// Names of the objects, in the order of their numbers, if each is one object of the store with that name (RADOS); empty: names are
    /// derived from ids.
    #[serde(default)]
    pub object_names: Vec<String>,
    /// Dkeys of an object: keys of a key-value object, chunks of an array.
    pub dkeys: u64,
    /// Akeys of a dkey.
    pub akeys: u64,
    /// Records of an akey.
    pub records: u64,
    /// First object, dkey, akey and record of a subset.
    #[serde(default)]
    pub first: [u64; 4],
    /// Total objects, dkeys, akeys and records stored, if the phase works on a subset; otherwise the counts above. Record numbers refer to
    /// it.
    #[serde(default)]
    pub whole: Option<[u64; 4]>,
    /// Dkeys are 64-bit numbers; otherwise `dkey_prefix` and the number.
    pub integer_dkeys: bool,
    /// Prefix of the names of dkeys. If it has braces, they contain the number instead of a suffix: `{D%M}` is the number divided by D,
    /// modulo M, so that `r{12}/d{4%3}/f{%4}` makes paths. `{D%M*S}` is S times that, and `{-}` is empty: the name of one key.
    pub dkey_prefix: String,
    /// Prefix of the names of akeys.
    pub akey_prefix: String,
    /// The akeys of a dkey are numbered from 0, so that all dkeys have the same akeys (the tools' `--const_akey`); otherwise akeys are
    /// numbered across the object: `dkey x akeys + akey`.
    pub constant_akey: bool,
    /// Kind of value under an akey.
    pub value: ValueKind,
    /// Sizes of values, as typed (`4KiB`, `4KiB:70,64KiB:30`). The number of a record determines its size, so that it can be read
    /// back.
    pub value_size: String,
    /// Largest value in bytes.
    pub value_size_bytes_max: u64,
    /// Distance between the records of an array in bytes; 0 for single values.
    pub stride_bytes: u64,
    /// Offset of a record within its stride, in bytes.
    pub offset_bytes: u64,
    /// Id of the first object. Workers with their own objects use ids from `first_id + worker x objects` on (all stored
    /// objects count).
    pub first_id: u64,
}

impl DatasetPlan {
    /// Objects, dkeys, akeys and records that were stored in all.
    #[inline]
    #[must_use]
    pub fn whole(&self) -> [u64; 4] {
        self.whole.unwrap_or([self.objects, self.dkeys, self.akeys, self.records])
    }

    /// Records that a phase orders; of one worker where objects are private.
    #[must_use]
    pub fn record_count(&self) -> u64 {
        self.objects.saturating_mul(self.dkeys).saturating_mul(self.akeys).saturating_mul(self.records)
    }
}

/// One phase of the object layer, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectPlan {
    /// Name in tables.
    pub name: String,
    /// Driver: `vos`, `engine`, `rados`, `s3`, `daos`, `null`.
    pub engine: String,
    /// Where the store is, as the user gave it: `vos:DIR`, `engine://host:port/pool/container`, `rados://pool`, `s3://bucket`,
    /// `daos://pool/container`, `null:`.
    pub target: String,
    /// Label of the container, if the target does not name one.
    pub container: String,
    /// Containers: one, or one per worker (`LABEL.WORKER`).
    pub containers: Scope,
    /// Objects: shared by all workers, or separate per worker.
    pub object_scope: Scope,
    /// Operations of the phase: one with 100 percent, or a mix.
    pub mix: Vec<OpShare>,
    /// Operations that run in order for each record, instead of a mix; empty: the mix is used.
    #[serde(default)]
    pub sequence: Vec<ObjectOp>,
    /// Dataset of the phase.
    pub dataset: DatasetPlan,
    /// In a phase that only reads, each worker uses the part of the worker so many positions later, of all workers that share the store.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rank_shift: u32,
    /// Order of records.
    pub pattern: Pattern,
    /// How workers share the records. A worker with its own records ([`ObjectPlan::is_private`]) works on all of them.
    pub share: Share,
    /// Class of the objects.
    pub class: ObjectClass,
    /// Type of the objects.
    pub object_type: ObjectType,
    /// Size of an array's cell, in bytes.
    pub cell_size_bytes: u64,
    /// Cells of a chunk: the data under one dkey of an array.
    pub chunk_size_cells: u64,
    /// Scope of a punch: `record`, `akey`, `dkey` or `object`.
    pub punch: PunchScope,
    /// Maximum number of keys per list.
    pub list_max: u32,
    /// Ids per allocation.
    pub ids_per_call: u32,
    /// Bytes requested by each read, which may return fewer; none: the stored size.
    #[serde(default)]
    pub short_read_bytes: Option<u64>,
    /// Epoch of the snapshot to read; none: the latest versions are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<u64>,
    /// Arrays and index objects are opened once per worker, not once per operation.
    pub keeps_handles: bool,
    /// Memory of the value buffers.
    #[serde(default, skip_serializing_if = "gpu::MemoryPlan::is_host")]
    pub memory: gpu::MemoryPlan,
    /// Data content of values.
    pub content: ContentPlan,
    /// Values identify their write, and reads check it.
    pub verify: bool,
    /// Options of the driver.
    pub options: ObjectOptions,
    /// The phase only stores data for later phases; it was not requested.
    #[serde(default)]
    pub is_fill: bool,
    /// Load: threads, depth, rate and limits.
    pub load: LoadPlan,
}

/// Scope of a punch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PunchScope {
    /// The record (an extent, or the value).
    #[default]
    Record,
    /// The akey with all its records.
    Akey,
    /// The dkey with all its akeys.
    Dkey,
    /// The object.
    Object,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl ObjectPlan {
    /// Number of the part that a worker of this host has, among those of all workers that share the store: its own number, or that of the worker
    /// whose records it reads.
    #[must_use]
    pub fn part_of(&self, worker: u32) -> u32 {
        let (number, all) = (self.load.worker(worker), u64::from(self.load.workers().max(1)));
        let reads_alone = self.any(ObjectOp::needs_data) && !self.any(ObjectOp::changes);
        let shift = if reads_alone { self.rank_shift } else { 0 };
        ((u64::from(number) + u64::from(shift)) % all) as u32
    }

    /// Numbers of the containers' workers of this host: with one container for all, one.
    pub fn container_parts(&self) -> impl Iterator<Item = u32> + '_ {
        let workers = if self.containers == Scope::Private { self.load.threads.max(1) } else { 1 };
        (0..workers).map(|worker| self.part_of(worker))
    }

    /// Whether another host makes the containers, claims the ids in them, and removes both.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        self.load.is_guest() && self.containers == Scope::Shared
    }

    /// Whether any of its operations is such.
    #[must_use]
    pub fn any(&self, is_such: fn(ObjectOp) -> bool) -> bool {
        self.operations().any(is_such)
    }

    /// Whether each operation on an array reads its attributes first.
    #[must_use]
    pub fn reopens_arrays(&self) -> bool {
        !self.keeps_handles && self.object_type == ObjectType::Array
    }

    /// The operations that it does.
    pub fn operations(&self) -> impl Iterator<Item = ObjectOp> + '_ {
        let mixed = self.mix.iter().filter(|_| self.sequence.is_empty()).map(|share| share.operation);
        mixed.chain(self.sequence.iter().copied())
    }

    /// Whether each worker has records of its own.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.containers == Scope::Private || self.object_scope == Scope::Private
    }

    /// Whether reads ask for ranges of key-value objects' values.
    #[must_use]
    pub fn reads_ranges(&self) -> bool {
        self.object_type == ObjectType::KvHashed
            && self.operations().any(|operation| operation == ObjectOp::Read)
    }

    /// Whether a worker is done after one pass over its records, whatever the limits: without a limit, and where operations take away or
    /// create what a second pass would miss or find there.
    #[must_use]
    pub fn is_one_pass(&self) -> bool {
        self.load.limit == LimitPlan::default() || self.takes_or_creates_once()
    }

    /// Whether its operations take away or create what a second pass would miss or find there.
    #[must_use]
    pub fn takes_or_creates_once(&self) -> bool {
        let creates = self.any(|operation| operation == ObjectOp::Create);
        match self.any(ObjectOp::takes_away) {
            true => !creates && !self.any(ObjectOp::stores),
            false => creates,
        }
    }
}
