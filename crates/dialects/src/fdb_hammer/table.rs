//! Every option of fdb-hammer, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "fdb-hammer";

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

const NUMBERS: &str = "fields are numbered from 0: the first number is a part of their names alone";
const ONE_NODE: &str =
    "processes are threads of one process on one machine, which need no barrier over the network";
const ITT: &str = "readers do not poll lists: they go on when the writers have ended a step";
const FOLLOW: &str = "strata app fdb-hammer TARGET --pattern B";

static FLAGS: &[Flag] = &[
    Flag::accepted("expver", "TEXT", "the run has names of its own"),
    Flag::accepted("class", "TEXT", "the run has names of its own"),
    Flag::accepted("step", "N", NUMBERS),
    Flag::accepted("number", "N", NUMBERS),
    Flag::accepted("level", "N", NUMBERS),
    Flag::honoured("nsteps", "N", "steps; required, as in the tool"),
    Flag::honoured("nensembles", "N", "members of the ensemble; default 1"),
    Flag::honoured("nlevels", "N", "levels; this or --levels is required, as in the tool"),
    Flag::honoured("levels", "LIST", "numbers of levels, with commas: their count"),
    Flag::honoured("nparams", "N", "parameters of each level; required, as in the tool"),
    Flag::refused("start-at", "N", "all fields of a step are gone over", "use fewer --nlevels or --nparams"),
    Flag::refused("stop-at", "N", "all fields of a step are gone over", "use fewer --nlevels or --nparams"),
    Flag::refused(
        "step-window",
        "SECONDS",
        ITT,
        "strata app fdb-hammer TARGET --pattern B --set compute=10s",
    ),
    Flag::refused("random-delay", "PERCENT", ITT, "leave it out"),
    Flag::accepted("verbose", "", "strata's record (strata as --json FILE fdb-hammer ...) has more"),
    Flag::accepted("statistics", "", "strata's record has the latencies of each kind of call"),
    Flag::honoured("read", "", "writes the fields, then reads them and prints the figures of reading"),
    Flag::refused("list", "", "lists are not measured", "strata object TARGET --op list"),
    Flag::accepted("disable-subtocs", "", "there are no tables of contents: an index is a key-value object"),
    Flag::honoured("md-check", "", "every byte of every field that is read is checked, with it and without"),
    Flag::honoured(
        "full-check",
        "",
        "every byte of every field that is read is checked, with it and without",
    ),
    Flag::refused(
        "no-randomise-data",
        "",
        "the content of each field is its own, so that it can be checked",
        "leave it out",
    ),
    Flag::refused("itt", "", ITT, FOLLOW),
    Flag::accepted(
        "check-queue-size",
        "N",
        "fields are checked by the process that reads them, outside of its latencies",
    ),
    Flag::refused("uri-file", "FILE", "fields are found by the index", "leave it out"),
    Flag::honoured("ppn", "N", "processes: threads that each write (and read) so many fields; default 1"),
    Flag::refused("nodes", "LIST", ONE_NODE, "leave it out, and give --ppn the number of processes"),
    Flag::refused("barrier-port", "N", ONE_NODE, "leave it out"),
    Flag::refused("barrier-max-wait", "SECONDS", ONE_NODE, "leave it out"),
    Flag::refused("delay", "", "processes begin together", "leave it out"),
    Flag::refused("poll-period", "SECONDS", ITT, FOLLOW),
    Flag::refused("poll-max-attempts", "N", ITT, FOLLOW),
    Flag::refused(
        "config",
        "FILE",
        "no configuration of FDB is read",
        "name where the fields go: --target vos:DIR, a directory, engine://..., daos://..., s3://...",
    ),
    Flag::honoured(
        "target",
        "TARGET",
        "where the fields go: a directory, dfs+vos:DIR, vos:DIR, engine://HOST:PORT/POOL/CONTAINER, daos://POOL/CONTAINER; an addition of strata's, required",
    ),
    Flag::honoured(
        "index",
        "shared|process",
        "one index for all processes, or one for each; default process, as FDB has it; an addition of strata's",
    ),
    Flag::honoured("help", "", "shows this"),
];
