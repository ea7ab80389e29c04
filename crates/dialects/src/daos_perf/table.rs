//! Every option of vos_perf and daos_perf, and what becomes of it.

use crate::words::{Flag, Table};

/// The options of both tools, and then those of one.
macro_rules! flags {
    ($($own:expr,)*) => {
        &[
            Flag::honoured("pool_scm", "SIZE", "memory of the store that vos_perf makes, allocated as a whole; default 2G").short('P'),
            Flag::honoured("pool_nvme", "SIZE", "data file of the store for large values; default 0: none").short('N'),
            Flag::honoured("obj", "N", "objects of each process; default 1").short('o'),
            Flag::honoured("dkey", "N", "dkeys of an object; default 256").short('d'),
            Flag::honoured("akey", "N", "akeys of a dkey; default 16").short('a'),
            Flag::honoured("num", "N", "records of an akey; a single value is written so many times; default 16").short('n'),
            Flag::honoured("size", "SIZE", "bytes of a value, and distance of an array's records; 4 or more; default 64").short('s'),
            Flag::honoured("stride", "SIZE", "the same, as older versions call it"),
            Flag::honoured("array", "R", "array values; with R the records are visited in random order, each once; R is attached: -AR, --array=R")
                .short('A')
                .optional(),
            Flag::honoured("run", "COMMANDS", "the tests, such as \"U;p F;p\"; see above").short('R'),
            Flag::honoured("wait", "", "asks before each test, on a terminal; refused where there is none").short('w'),
            Flag::honoured("seed", "N", "seed of order and content; default: drawn, and in the record").short('G'),
            $($own,)*
            Flag::honoured("procs", "N", "so many processes' work at the same time, by threads: what mpirun -np N does; an addition of strata's"),
            Flag::honoured("text-of", "2.8|2.0", "whose text the results have: the tools of DAOS 2.8 (the default), or the public guide of 2.0; an addition of strata's"),
            Flag::honoured("help", "", "shows this").short('h'),
        ]
    };
}

/// vos_perf.
pub(crate) static VOS: Table =
    Table { tool: "vos_perf", flags: VOS_FLAGS, switch_values: false, single_dash: false };

static VOS_FLAGS: &[Flag] = flags![
    Flag::honoured("pool", "UUID", "the store at -D or -f is there already, is used and stays; default: it is made, and removed at the end").short('u'),
    Flag::honoured("cont", "UUID", "label of the container; with -u it stays").short('X'),
    Flag::honoured("dir", "DIR", "directory of the store; process N has DIR/vos_perfN.pmem; default /mnt/daos").short('D'),
    Flag::honoured("file", "FILE", "the same as guides write it: process N has FILEN").short('f').or_bare("flat_dkey"),
    Flag::honoured("zcopy", "", "values go to and from the store's memory without a buffer between").short('z'),
    Flag::honoured("int_dkey", "", "dkeys are 64-bit numbers").short('i'),
    Flag::accepted("flat_dkey", "", "-f without a value; the store keeps all dkeys of an object side by side anyway"),
    Flag::honoured("const_akey", "", "one akey for all dkeys; -a counts as 1").short('I'),
    Flag::accepted("abt_ult", "", "tests run on threads of the system").short('x'),
    Flag::honoured("keep", "", "the store stays when all is done; an addition of strata's"),
    Flag::honoured("checksum", "KIND", "checksum of the container that is made, verified at every fetch: off (the default, as the tool), crc16, crc32, crc64, sha1, sha256, sha512 or adler32; an addition of strata's"),
];

/// daos_perf.
pub(crate) static DAOS: Table =
    Table { tool: "daos_perf", flags: DAOS_FLAGS, switch_values: false, single_dash: false };

static DAOS_FLAGS: &[Flag] = flags![
    Flag::honoured("pool", "POOL", "pool of a DAOS system, by UUID or label: daos://POOL").short('u'),
    Flag::honoured("cont", "CONT", "its container; default: one is made, and destroyed at the end").short('X'),
    Flag::honoured("type", "daos|echo", "daos (the default): network and storage; echo: RPCs of the same sizes that store nothing, with engine:// targets")
        .short('T'),
    Flag::honoured("credits", "N", "operations in flight of each process; 0 or less, and the default: one, synchronous").short('C'),
    Flag::honoured("class", "CLASS", "TINY (S1), LARGE (SX, the default on DAOS; an engine takes all its targets), R2S, R3S, R4S, EC2P1, EC2P2, EC4P2, EC8P2, or a class such as RP_2GX").short('c'),
    Flag::accepted("dmg_conf", "FILE", "strata makes no pool of DAOS, so dmg is not called; dmg pool create makes one").short('g'),
    Flag::honoured("target", "URL", "engine://HOST:PORT/POOL/CONT (strata engine --pool) or daos://POOL/CONT; default: DAOS_PERF_TARGET, else daos:// with -u and -X; an addition of strata's"),
];
