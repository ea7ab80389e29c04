//! Every option of fdb-hammer, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "fdb-hammer";

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

const NUMBERS: &str = "fields are numbered from 0; the first number would only change their names";
const ONE_NODE: &str = "processes are threads on one machine and need no network barrier";
const ITT: &str = "readers do not poll lists: they continue when the writers have finished a step";
const FOLLOW: &str = "use strata app fdb-hammer TARGET --pattern B";

static FLAGS: &[Flag] = &[
    Flag::accepted("expver", "TEXT", "each run uses its own names"),
    Flag::accepted("class", "TEXT", "each run uses its own names"),
    Flag::accepted("step", "N", NUMBERS),
    Flag::accepted("number", "N", NUMBERS),
    Flag::accepted("level", "N", NUMBERS),
    Flag::honoured("nsteps", "N", "number of steps; required, as in the tool"),
    Flag::honoured("nensembles", "N", "number of ensemble members; default 1"),
    Flag::honoured("nlevels", "N", "number of levels; this or --levels is required, as in the tool"),
    Flag::honoured("levels", "LIST", "level numbers, separated by commas; only their count is used"),
    Flag::honoured("nparams", "N", "number of parameters per level; required, as in the tool"),
    Flag::refused(
        "start-at",
        "N",
        "a run always covers all fields of a step",
        "use fewer --nlevels or --nparams",
    ),
    Flag::refused(
        "stop-at",
        "N",
        "a run always covers all fields of a step",
        "use fewer --nlevels or --nparams",
    ),
    Flag::refused(
        "step-window",
        "SECONDS",
        ITT,
        "use strata app fdb-hammer TARGET --pattern B --set compute=10s",
    ),
    Flag::refused("random-delay", "PERCENT", ITT, "leave it out"),
    Flag::accepted(
        "verbose",
        "",
        "strata's record (strata as --json FILE fdb-hammer ...) contains more details",
    ),
    Flag::accepted("statistics", "", "strata's record contains the latencies of each type of call"),
    Flag::honoured("read", "", "writes the fields, then reads them and prints the results of reading"),
    Flag::refused("list", "", "list calls are not measured", "use strata object TARGET --op list"),
    Flag::accepted(
        "disable-subtocs",
        "",
        "strata uses no tables of contents: an index is a key-value object",
    ),
    Flag::honoured("md-check", "", "strata always checks every byte of every field that it reads"),
    Flag::honoured("full-check", "", "strata always checks every byte of every field that it reads"),
    Flag::refused(
        "no-randomise-data",
        "",
        "each field always has unique content, so that it can be checked",
        "leave it out",
    ),
    Flag::refused("itt", "", ITT, FOLLOW),
    Flag::accepted(
        "check-queue-size",
        "N",
        "the reading process checks the fields itself, outside its latencies",
    ),
    Flag::refused("uri-file", "FILE", "fields are always found through the index", "leave it out"),
    Flag::honoured(
        "ppn",
        "N",
        "number of processes, run as threads; each writes (and reads) all these fields; default 1",
    ),
    Flag::refused("nodes", "LIST", ONE_NODE, "leave it out and give the number of processes with --ppn"),
    Flag::refused("barrier-port", "N", ONE_NODE, "leave it out"),
    Flag::refused("barrier-max-wait", "SECONDS", ONE_NODE, "leave it out"),
    Flag::refused("delay", "", "all processes start together", "leave it out"),
    Flag::refused("poll-period", "SECONDS", ITT, FOLLOW),
    Flag::refused("poll-max-attempts", "N", ITT, FOLLOW),
    Flag::refused(
        "config",
        "FILE",
        "FDB configurations are not read",
        "use --target with vos:DIR, a directory, engine://..., daos://..., s3://...",
    ),
    Flag::honoured(
        "target",
        "TARGET",
        "place for the fields: a directory, dfs+vos:DIR, vos:DIR, engine://HOST:PORT/POOL/CONTAINER, daos://POOL/CONTAINER; strata extension, required",
    ),
    Flag::honoured(
        "index",
        "shared|process",
        "one index for all processes, or one per process; default process, as in FDB; strata extension",
    ),
    Flag::honoured("help", "", "shows this help"),
];
