//! Options of media that this layer shares, and those that it does not have.

/// Options of media that mean the same here.
pub(super) const COMMON: &[&str] = &[
    "name",
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
    "ladder",
    "batch",
    "batch-min",
    "batch-max",
    "content",
    "compress",
    "dedupe",
    "dedupe-set",
    "dedupe-global",
    "refill",
    "seed",
    "cores",
    "cores-policy",
    "numa",
    "split-latency",
    "profile",
    "interval",
    "on-error",
    "keep",
    "destroy-data",
];

const DRIVER: &str = "it with media only: it is an option of the media drivers";

/// Options of media that this layer does not have, and their substitutes.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("size", "--file-size, --files and --dirs: they define the data set"),
    ("offset", "--segments and --file-size: the rank of a worker determines its offset"),
    ("sync-call", "--fsync or --end-fsync: files are made durable by fsync"),
    ("pattern", "--order for the blocks of a file, --item-order for the files"),
    ("mix", "--op with one operation a phase, and concurrent = true in a job file for several at once"),
    ("layout", "--no-fill to skip creating the files that a phase needs"),
    ("sync", "--fsync or --end-fsync"),
    ("sqpoll", DRIVER),
    ("iopoll", DRIVER),
];
