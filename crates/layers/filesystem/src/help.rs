//! Short help of the command that measures the layer.

use workload::help::{Example, Help};

/// Options that most users need, and examples.
pub(crate) const HELP: Help = Help {
    options: &["op", "threads", "files", "dirs", "file-size", "block-size", "shape", "json"],
    examples: &[
        Example::new(
            "small files: create, stat, read, unlink",
            "fs /mnt/test --threads 8 --dirs 10 --files 1000",
        ),
        Example::new(
            "one shared file; each worker reads what another wrote",
            "fs /mnt/data --shape shared --threads 8 --file-size 1g --block-size 1m --op write,read --rank-shift 1 --verify",
        ),
        Example::new("files over objects, through the library", "fs dfs+vos:/dev/shm/pool --threads 2"),
    ],
};
