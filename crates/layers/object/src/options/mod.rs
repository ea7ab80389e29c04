//! Options of object stores: the table, options of several layers, options of others that have a substitute.

mod table;
mod value;

pub use crate::memory::MEMORY;
pub use table::{OBJECT, SECRETS};

/// Options of several layers that mean the same here.
pub const COMMON: &[&str] = &[
    "threads",
    "depth",
    "count",
    "bytes",
    "warmup",
    "rate",
    "arrivals",
    "think-time",
    "think-blocks",
    "think-after",
    "think-spin",
    "no-catch-up",
    "start-delay",
    "concurrent",
    "end-others",
    "saturate",
    "batch-min",
    "batch-max",
    "content",
    "compress",
    "dedupe",
    "dedupe-set",
    "dedupe-global",
    "seed",
    "cores",
    "cores-policy",
    "numa",
    "split-latency",
    "profile",
    "interval",
    "on-error",
    "name",
];

const RECORDS: &str = "--objects, --dkeys, --akeys and --records, which define the data set";
const DURABLE: &str = "--durability, which defines when an update counts as done";
const DRIVER: &str = "it for media only: it is an option of media drivers";
const VERIFY: &str = "--verify only: each value identifies its record and is checked as a whole";

/// Options of media that this layer does not have, and what to do instead.
pub const REFUSED: &[(&str, &str)] = &[
    ("block-size", "--value-size"),
    ("size", RECORDS),
    ("offset", "--first for the first record, or --record-offset for an offset within it"),
    ("align", "--stride, the distance between the records of an array"),
    ("fsync", DURABLE),
    ("end-fsync", DURABLE),
    ("sync-call", "--flush, which sets how memory is made durable"),
    ("sync", DURABLE),
    (
        "engine",
        "the target, because its scheme (vos:, engine:, rados:, s3:, daos:, null:) selects the driver",
    ),
    ("direct", "--nvme and --threshold: the data file of a store always bypasses the page cache"),
    ("register-files", DRIVER),
    ("register-buffers", DRIVER),
    ("defer-taskrun", DRIVER),
    ("sqpoll", DRIVER),
    ("sqpoll-core", DRIVER),
    ("iopoll", DRIVER),
    ("hipri", DRIVER),
    ("nowait", DRIVER),
    ("rwf-dsync", DURABLE),
    ("dontcache", DRIVER),
    ("map-sync", DRIVER),
    ("memory-operation", DRIVER),
    ("huge-pages", "it for media only: value buffers use base pages"),
    ("gpu-path", "--gpu-staging: values reach a GPU through host memory"),
    ("gpu-register", "--gpu-staging: values reach a GPU through host memory"),
    ("layout", "--no-fill to skip storing data before a phase that reads"),
    ("verify-interval", VERIFY),
    ("verify-run", VERIFY),
    ("no-read-back", "--op put only: data is read back only if --op requests it, as in --op put,get"),
];

/// Options that a driver honours or has no use for: one that is given and stands not among those of the driver is refused.
pub const DRIVER_OPTIONS: &[&str] = &[
    "container",
    "containers",
    "object-names",
    "class",
    "reopen",
    "snapshot",
    "scm",
    "nvme",
    "threshold",
    "store-targets",
    "durability",
    "flush",
    "allocate",
    "checksum",
    "cache",
    "zero-copy",
    "retries",
    "timeout",
    "s3-endpoint",
    "s3-region",
    "s3-addressing",
    "s3-signing",
    "s3-part-size",
    "s3-key-file",
    "rados-conf",
    "rados-user",
    "daos-system",
    "token-file",
    "tls",
];
