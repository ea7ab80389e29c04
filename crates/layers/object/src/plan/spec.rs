//! Options of the object layer, as typed.

use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;

use layer::CacheBefore;
use units::{ByteSize, Span};

use vos::{Allocation, Checksum, Durability, Flush, ObjectClass};
use workload::spec::Spec;

use super::{Addressing, ObjectOp, PunchScope, Scope, Signing, ValueKind};

/// Keys of an S3 user. They stand in no output.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Key {
    /// Access key.
    pub access: String,
    /// Secret key.
    pub secret: String,
}

impl fmt::Debug for S3Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("S3Key")
    }
}

/// Options of a load on an object store; `None` means: not said. [`Spec::own`] holds it. The one target of the spec is
/// a URL: `vos:DIR`, `engine://host:port/pool/container`, `rados://pool`, `s3://bucket`, `daos://pool/container` or `null:`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub struct ObjectSpec {
    /// `--op`: one phase each.
    pub operations: Vec<ObjectOp>,
    /// `--mix get=70,put=30`: one phase.
    pub mix: Option<String>,
    /// `--sequence open,read`: one phase.
    pub sequence: Vec<ObjectOp>,
    pub container: Option<String>,
    pub containers: Option<Scope>,
    pub object_scope: Option<Scope>,
    pub objects: Option<u64>,
    /// `--object-names`: one each.
    pub object_names: Vec<String>,
    pub dkeys: Option<u64>,
    pub akeys: Option<u64>,
    pub records: Option<u64>,
    /// `--first O,D,A,R`: where a subset begins.
    pub first: Option<[u64; 4]>,
    /// Counts of all that was stored, where a phase works on a subset (dialects).
    pub whole: Option<[u64; 4]>,
    pub integer_dkeys: bool,
    pub constant_akey: bool,
    pub dkey_prefix: Option<String>,
    pub akey_prefix: Option<String>,
    pub value: Option<ValueKind>,
    pub value_size: Option<String>,
    pub stride: Option<ByteSize>,
    pub record_offset: Option<ByteSize>,
    pub first_id: Option<u64>,
    pub rank_shift: Option<u32>,
    pub class: Option<ObjectClass>,
    pub cell_size: Option<ByteSize>,
    /// `--chunk-size`: bytes, a multiple of the cell size.
    pub chunk_size: Option<ByteSize>,
    pub punch: Option<PunchScope>,
    pub list_max: Option<u32>,
    pub ids_per_call: Option<u32>,
    /// `--read-size`: bytes that a read asks for; more than was written makes it a short read.
    pub read_size: Option<ByteSize>,
    pub reopen: bool,
    /// A phase that reads ends after one pass over the records too, where no limit is given (dialects).
    pub one_pass: bool,
    /// `--no-fill`: nothing is stored before a phase that reads.
    pub no_fill: bool,
    /// `--snapshot`: epoch of the snapshot that is read.
    pub snapshot: Option<u64>,
    pub zero_copy: Option<bool>,
    pub scm: Option<ByteSize>,
    pub nvme: Option<ByteSize>,
    pub threshold: Option<ByteSize>,
    /// `--store-targets`: `targets` alone is what a job file calls the things that are measured.
    pub targets: Option<u32>,
    pub durability: Option<Durability>,
    pub flush: Option<Flush>,
    pub allocation: Option<Allocation>,
    pub checksum: Option<Checksum>,
    /// `--cache`: memory of the store before a phase.
    pub cache: Option<CacheBefore>,
    pub retries: Option<u32>,
    pub timeout: Option<Span>,
    pub s3_endpoints: Vec<String>,
    pub s3_region: Option<String>,
    pub s3_addressing: Option<Addressing>,
    pub s3_signing: Option<Signing>,
    pub s3_part_size: Option<ByteSize>,
    /// File with the access key and the secret key; else `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.
    pub s3_key_file: Option<PathBuf>,
    /// The keys themselves, of dialects whose tools have them on the command line.
    pub s3_key: Option<S3Key>,
    pub rados_conf: Option<String>,
    pub rados_user: Option<String>,
    pub daos_system: Option<String>,
    /// `--memory` and what belongs to it.
    pub memory: gpu::MemorySpec,
    /// `--acknowledged`: file of the updates that were acknowledged.
    pub acknowledged: Option<PathBuf>,
}

/// Options of a spec that says nothing.
static NOTHING: LazyLock<ObjectSpec> = LazyLock::new(ObjectSpec::default);

impl ObjectSpec {
    /// The options of a spec that are of this layer.
    #[must_use]
    pub fn of(spec: &Spec) -> &Self {
        spec.own.get().unwrap_or(&NOTHING)
    }

    /// The same, to say one.
    pub fn of_mut(spec: &mut Spec) -> &mut Self {
        spec.own.get_mut()
    }
}
