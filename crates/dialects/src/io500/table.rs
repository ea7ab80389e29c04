//! Every option of io500, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "io500";

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("help", "", "shows the synopsis").short('h'),
    Flag::honoured("list", "", "prints the keys of the configuration, with their meaning and values")
        .short('l'),
    Flag::honoured(
        "list-mandatory",
        "",
        "the same without what the extended mode alone has; -lm is the same",
    ),
    Flag::honoured("config-hash", "", "prints the hash of the configuration"),
    Flag::refused(
        "cleanup",
        "",
        "a run removes what it made, and one that was interrupted says how",
        "use strata clean RECORD, with the record in its result directory",
    ),
    Flag::honoured("dry-run", "", "writes what each phase would do, and runs none"),
    Flag::honoured(
        "mode",
        "standard|extended",
        "extended adds find-easy and find-hard; it needs [mdworkbench] run = FALSE",
    ),
    Flag::honoured("timestamp", "TEXT", "name of the directories that are suffixed by a timestamp"),
    Flag::honoured("v", "", "the verbosity level, by how often it is given").short('v'),
    Flag::honoured(
        "verbose",
        "LEVEL",
        "the verbosity level: 0 leaves times out of result.txt, 2 and more add details",
    ),
    Flag::honoured(
        "verify",
        "FILE",
        "checks the hashes of a result.txt against the configuration and its own scores",
    ),
    Flag::honoured(
        "ranks",
        "N",
        "ranks of each process, each a thread; default: one where mpirun has started several, else one a processor; an addition of strata's",
    ),
    Flag::honoured(
        "results",
        "DIR",
        "directory of the result files, in place of resultdir; an addition of strata's",
    ),
    Flag::honoured(
        "resume",
        "DIR",
        "goes on with an interrupted run, by its result directory; an addition of strata's",
    ),
];
