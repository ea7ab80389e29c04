//! Every option of vos_perf and daos_perf, and what becomes of it.

use crate::words::{Flag, Table};

/// The options of both tools, and then those of one.
macro_rules! flags {
    ($($own:expr,)*) => {
        &[
            Flag::honoured("pool_scm", "SIZE", "memory of the store that vos_perf creates, fully allocated; default 2G").short('P'),
            Flag::honoured("pool_nvme", "SIZE", "data file of the store for large values; default 0: none").short('N'),
            Flag::honoured("obj", "N", "objects of each process; default 1").short('o'),
            Flag::honoured("dkey", "N", "dkeys of an object; default 256").short('d'),
            Flag::honoured("akey", "N", "akeys of a dkey; default 16").short('a'),
            Flag::honoured("num", "N", "records of an akey; a single value is written this many times; default 16").short('n'),
            Flag::honoured("size", "SIZE", "bytes of a value and distance between array records; 4 or more; default 64").short('s'),
            Flag::honoured("stride", "SIZE", "name of --size in older versions"),
            Flag::honoured("array", "R", "array values; with R, records are visited once each in random order; write R without a blank: -AR, --array=R")
                .short('A')
                .optional(),
            Flag::honoured("run", "COMMANDS", "the tests, such as \"U;p F;p\"").short('R'),
            Flag::honoured("wait", "", "asks before each test; requires a terminal").short('w'),
            Flag::honoured("seed", "N", "seed of order and content; default: random; always stored in the record").short('G'),
            $($own,)*
            Flag::honoured("procs", "N", "runs the work of N processes at the same time as threads, like mpirun -np N; strata extension"),
            Flag::honoured("text-of", "2.8|2.0", "text format of the results: the tools of DAOS 2.8 (the default), or the public guide of 2.0; strata extension"),
            Flag::honoured("help", "", "shows this help").short('h'),
        ]
    };
}

/// vos_perf.
pub(crate) static VOS: Table =
    Table { tool: "vos_perf", flags: VOS_FLAGS, switch_values: false, single_dash: false };

static VOS_FLAGS: &[Flag] = flags![
    Flag::honoured(
        "pool",
        "UUID",
        "uses and keeps the existing store at -D or -f; default: a store is created and removed at the end"
    )
    .short('u'),
    Flag::honoured("cont", "UUID", "label of the container, which is kept with -u").short('X'),
    Flag::honoured(
        "dir",
        "DIR",
        "directory of the store; process N uses DIR/vos_perfN.pmem; default /mnt/daos"
    )
    .short('D'),
    Flag::honoured("file", "FILE", "path of the store, as in some guides; process N uses FILEN")
        .short('f')
        .or_bare("flat_dkey"),
    Flag::honoured(
        "zcopy",
        "",
        "values are moved to and from the store's memory without an intermediate buffer"
    )
    .short('z'),
    Flag::honoured("int_dkey", "", "dkeys are 64-bit numbers").short('i'),
    Flag::accepted(
        "flat_dkey",
        "",
        "also -f without a value; the store always keeps all dkeys of an object side by side"
    ),
    Flag::honoured("const_akey", "", "uses one akey for all dkeys; -a is then 1").short('I'),
    Flag::accepted("abt_ult", "", "tests always run on system threads").short('x'),
    Flag::honoured("keep", "", "keeps the store after the run; strata extension"),
    Flag::honoured(
        "checksum",
        "KIND",
        "checksum of the created container, verified at every fetch: off (the default, as in the tool), crc16, crc32, crc64, sha1, sha256, sha512 or adler32; strata extension"
    ),
];

/// daos_perf.
pub(crate) static DAOS: Table =
    Table { tool: "daos_perf", flags: DAOS_FLAGS, switch_values: false, single_dash: false };

static DAOS_FLAGS: &[Flag] = flags![
    Flag::honoured("pool", "POOL", "pool of a DAOS system, by UUID or label: daos://POOL").short('u'),
    Flag::honoured("cont", "CONT", "container of the pool; default: one is created and destroyed at the end").short('X'),
    Flag::honoured("type", "daos|echo", "daos (the default): network and storage; echo: RPCs of the same sizes without storage, only with engine:// targets")
        .short('T'),
    Flag::honoured("credits", "N", "operations in flight per process; 0 or less (the default): one synchronous operation").short('C'),
    Flag::honoured("class", "CLASS", "TINY (S1), LARGE (SX, the default on DAOS; on an engine: all its targets), R2S, R3S, R4S, EC2P1, EC2P2, EC4P2, EC8P2, or a class such as RP_2GX").short('c'),
    Flag::accepted("dmg_conf", "FILE", "strata does not create DAOS pools and does not call dmg; create one with dmg pool create").short('g'),
    Flag::honoured("target", "URL", "engine://HOST:PORT/POOL/CONT (strata engine --pool) or daos://POOL/CONT; default: DAOS_PERF_TARGET, else daos:// with -u and -X; strata extension"),
];
