//! Every option of io500, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "io500";

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("help", "", "shows the synopsis").short('h'),
    Flag::honoured("list", "", "prints the configuration keys with their meanings and values").short('l'),
    Flag::honoured(
        "list-mandatory",
        "",
        "like --list, without the keys that only the extended mode uses; also -lm",
    ),
    Flag::honoured("config-hash", "", "prints the hash of the configuration"),
    Flag::refused(
        "cleanup",
        "",
        "a run removes its own files; an interrupted run reports how to remove them",
        "use strata clean RECORD, with the record in its result directory",
    ),
    Flag::honoured("dry-run", "", "writes the work of each phase without running it"),
    Flag::honoured(
        "mode",
        "standard|extended",
        "extended adds find-easy and find-hard; it requires [mdworkbench] run = FALSE",
    ),
    Flag::honoured("timestamp", "TEXT", "text that replaces the timestamp in directory names"),
    Flag::honoured("v", "", "raises the verbosity level; repeatable").short('v'),
    Flag::honoured(
        "verbose",
        "LEVEL",
        "verbosity level: 0 leaves times out of result.txt; 2 or more adds details",
    ),
    Flag::honoured(
        "verify",
        "FILE",
        "checks the hashes in a result.txt against the configuration and its scores",
    ),
    Flag::honoured(
        "ranks",
        "N",
        "ranks of each process, each a thread; default: 1 if mpirun started several processes, otherwise one per CPU; strata extension",
    ),
    Flag::honoured("results", "DIR", "directory of the result files, instead of resultdir; strata extension"),
    Flag::honoured(
        "resume",
        "DIR",
        "continues the interrupted run with this result directory; strata extension",
    ),
];
