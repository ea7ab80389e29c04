//! Examples of the commands about object stores.

use workload::help::{Example, Help};

/// Help with these examples, that shows all options.
const fn plain(examples: &'static [Example]) -> Help {
    Help { options: &[], examples }
}

const POOL_EXAMPLES: &[Example] = &[
    Example::new("a pool in persistent or shared memory", "pool create vos:/dev/shm/pool --scm 4g"),
    Example::new("space, index, containers", "pool query vos:/dev/shm/pool"),
    Example::new("verify every checksum and reference", "pool check vos:/dev/shm/pool"),
];

const CONTAINER_EXAMPLES: &[Example] = &[
    Example::new("a container with checksums", "container create vos:/dev/shm/pool results --checksum crc64"),
    Example::new("list the containers of a pool", "container list vos:/dev/shm/pool"),
    Example::new("show one container", "container query engine://127.0.0.1:31416/tank results"),
];

/// Help of `strata object audit`.
pub(super) const AUDIT: &[(&str, Help)] = &[(
    "",
    plain(&[
        Example::new(
            "record what the store acknowledges during a load",
            "object vos:/dev/shm/pool/cont --op put --acknowledged acknowledged.log",
        ),
        Example::new("check that it is all there", "object audit acknowledged.log vos:/dev/shm/pool/cont"),
        Example::new("for a program", "object audit acknowledged.log vos:/dev/shm/pool/cont --json"),
    ]),
)];

/// Help of `strata pool`.
pub(super) const POOL: &[(&str, Help)] = &[
    ("", plain(POOL_EXAMPLES)),
    (
        "create",
        plain(&[
            Example::new("in shared memory", "pool create vos:/dev/shm/pool --scm 4g"),
            Example::new(
                "memory for the index and a file for large values",
                "pool create vos:/mnt/pmem0/pool --scm 64g --nvme 1t",
            ),
            Example::new("eight targets", "pool create vos:/dev/shm/pool8 --scm 8g --store-targets 8"),
        ]),
    ),
    ("list", plain(&[Example::new("list the pools of an engine", "pool list engine://127.0.0.1:31416")])),
    ("query", plain(&[Example::new("space, index, containers", "pool query vos:/dev/shm/pool")])),
    (
        "check",
        plain(&[
            Example::new("verify every checksum and reference", "pool check vos:/dev/shm/pool"),
            Example::new("repair what can be repaired", "pool check vos:/dev/shm/pool --repair"),
        ]),
    ),
    (
        "destroy",
        plain(&[Example::new("including all its contents", "pool destroy vos:/dev/shm/pool --destroy-data")]),
    ),
];

/// Help of `strata container`.
pub(super) const CONTAINER: &[(&str, Help)] = &[
    ("", plain(CONTAINER_EXAMPLES)),
    (
        "create",
        plain(&[Example::new(
            "a container with checksums",
            "container create vos:/dev/shm/pool results --checksum crc64",
        )]),
    ),
    ("list", plain(&[Example::new("list the containers of a pool", "container list vos:/dev/shm/pool")])),
    (
        "query",
        plain(&[Example::new("show one container", "container query engine://127.0.0.1:31416/tank results")]),
    ),
    (
        "snapshot",
        plain(&[Example::new(
            "create a snapshot of a container",
            "container snapshot vos:/dev/shm/pool results",
        )]),
    ),
    (
        "destroy",
        plain(&[Example::new(
            "including all its contents",
            "container destroy vos:/dev/shm/pool results --destroy-data",
        )]),
    ),
];
