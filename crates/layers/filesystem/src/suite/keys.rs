//! The table of the sections and keys of IO500's configuration, in its order, with what it says of them.

/// Kind of the values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Number,
    /// A number that may have a fraction.
    Fraction,
    /// TRUE or FALSE.
    Switch,
}

/// A key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Name.
    pub(crate) name: &'static str,
    /// Meaning.
    pub(crate) help: &'static str,
    /// Kind of its values.
    pub(crate) kind: Kind,
    /// Default; none: it has no value unless it is given one.
    pub(crate) default: Option<&'static str>,
}

/// A section.
#[derive(Debug)]
pub(crate) struct Section {
    /// Name.
    pub(crate) name: &'static str,
    /// Only runs with `mode = extended` have it.
    pub(crate) is_extended: bool,
    /// Its keys.
    pub(crate) keys: &'static [Key],
}

const fn key(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> Key {
    Key { name, help, kind, default }
}

const fn section(name: &'static str, keys: &'static [Key]) -> Section {
    Section { name, is_extended: false, keys }
}

const fn extended(name: &'static str, keys: &'static [Key]) -> Section {
    Section { name, is_extended: true, keys }
}

/// IO500's command that purges the caches.
pub(crate) const DROP_CACHES: &str = r#"sudo -n bash -c "echo 3 > /proc/sys/vm/drop_caches""#;

const API: Key =
    key("API", Kind::Text, None, "The API to be used: POSIX; for ior-easy also POSIX --posix.odirect");
const RUN: Key = key("run", Kind::Switch, Some("TRUE"), "Run this phase");
const COLLECTIVE: Key =
    key("collective", Kind::Switch, None, "Collective operation: only FALSE, POSIX does not support it");
const VERBOSITY: Key = key("verbosity", Kind::Number, None, "The verbosity level: only 0");

const PHASE: &[Key] = &[API, RUN];
const HARD_PHASE: &[Key] = &[API, COLLECTIVE, RUN];
const BENCH: &[Key] = &[RUN];
const FIND: &[Key] = &[
    key("external-script", Kind::Text, None, "Set to an external script to perform the find phase"),
    key("external-mpi-args", Kind::Text, Some(""), "Words before the external script"),
    key("external-extra-args", Kind::Text, Some(""), "Extra arguments for the external script"),
    key("nproc", Kind::Number, None, "Threads of the search"),
    RUN,
    key("pfind-queue-length", Kind::Number, Some("10000"), "For pfind: only the default"),
    key("pfind-steal-next", Kind::Switch, Some("FALSE"), "For pfind: only FALSE"),
    key(
        "pfind-parallelize-single-dir-access-using-hashing",
        Kind::Switch,
        Some("FALSE"),
        "For pfind: only FALSE",
    ),
];

/// All of them.
pub(crate) static SECTIONS: &[Section] = &[
    section(
        "global",
        &[
            key("datadir", Kind::Text, Some("./datafiles"), "The directory where the IO500 runs"),
            key(
                "timestamp-datadir",
                Kind::Switch,
                Some("TRUE"),
                "The data directory is suffixed by a timestamp",
            ),
            key("resultdir", Kind::Text, Some("./results"), "The result directory"),
            key(
                "timestamp-resultdir",
                Kind::Switch,
                Some("TRUE"),
                "The result directory is suffixed by a timestamp",
            ),
            key("api", Kind::Text, Some("POSIX"), "The general API for the tests: POSIX"),
            key("drop-caches", Kind::Switch, Some("FALSE"), "Purge the caches before each phase"),
            key(
                "drop-caches-cmd",
                Kind::Text,
                Some(DROP_CACHES),
                "Cache purging command, invoked before each phase; strata performs the default command itself if it has the permission",
            ),
            key(
                "io-buffers-on-gpu",
                Kind::Switch,
                Some("FALSE"),
                "Allocate the I/O buffers on the GPU: only FALSE",
            ),
            key(
                "verbosity",
                Kind::Number,
                Some("1"),
                "The verbosity level; 0 omits times from the result file, 2 and above add details",
            ),
            key(
                "scc",
                Kind::Switch,
                Some("FALSE"),
                "Use the rules for the Student Cluster Competition: write phases of 30 s",
            ),
            key(
                "dataPacketType",
                Kind::Text,
                Some("timestamp"),
                "Data to write: timestamp, incompressible or random; all three write strata's random blocks, which identify their owner",
            ),
        ],
    ),
    section(
        "debug",
        &[
            key(
                "stonewall-time",
                Kind::Number,
                Some("300"),
                "Seconds of the stonewall; a value that differs from the rules INVALIDATES RUN",
            ),
            key(
                "pause-dir",
                Kind::Text,
                None,
                "Pause before a phase while this directory contains a file with its name; INVALIDATES RUN",
            ),
        ],
    ),
    section(
        "ior-easy",
        &[
            API,
            key("transferSize", Kind::Text, Some("2m"), "Transfer size"),
            key("blockSize", Kind::Text, Some("9920000m"), "Block size; must be a multiple of transferSize"),
            key("filePerProc", Kind::Switch, Some("TRUE"), "Create one file per process"),
            key("uniqueDir", Kind::Switch, Some("FALSE"), "Use unique directory per file per process"),
            RUN,
            VERBOSITY,
        ],
    ),
    section("ior-easy-write", PHASE),
    section("mdtest-easy", &[API, key("n", Kind::Number, Some("1000000"), "Files per proc"), RUN]),
    section("mdtest-easy-write", PHASE),
    extended(
        "mdworkbench",
        &[
            API,
            key(
                "waitingTime",
                Kind::Fraction,
                Some("0.0"),
                "Waiting time of an operation relative to its runtime",
            ),
            key("precreatePerSet", Kind::Number, None, "Files to create beforehand per set"),
            key("filesPerProc", Kind::Number, None, "Files per iteration and set"),
            RUN,
            VERBOSITY,
        ],
    ),
    extended("mdworkbench-create", BENCH),
    section("timestamp", &[]),
    extended("find-easy", FIND),
    section(
        "ior-hard",
        &[
            API,
            key("segmentCount", Kind::Number, Some("10000000"), "Number of segments"),
            COLLECTIVE,
            RUN,
            VERBOSITY,
        ],
    ),
    section("ior-hard-write", HARD_PHASE),
    section(
        "mdtest-hard",
        &[
            API,
            key("n", Kind::Number, Some("1000000"), "Files per proc"),
            key(
                "files-per-dir",
                Kind::Number,
                None,
                "File limit per directory, without a stonewall; INVALIDATES RUN",
            ),
            RUN,
        ],
    ),
    section("mdtest-hard-write", PHASE),
    section("find", FIND),
    extended("find-hard", FIND),
    extended("mdworkbench-bench", BENCH),
    section("ior-easy-read", PHASE),
    section("mdtest-easy-stat", PHASE),
    section("ior-hard-read", HARD_PHASE),
    section("mdtest-hard-stat", PHASE),
    extended("mdworkbench-delete", BENCH),
    section("mdtest-easy-delete", PHASE),
    section("mdtest-hard-read", PHASE),
    section("mdtest-hard-delete", PHASE),
    section("ior-rnd4K-easy-read", PHASE),
];
