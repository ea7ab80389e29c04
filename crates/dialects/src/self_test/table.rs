//! Every option of self_test, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "self_test";

/// The options. getopt_long takes unambiguous beginnings of long names, and guides write them.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("group-name", "NAME", "name of the engine group; default daos_server").short('g'),
    Flag::honoured("master-endpoint", "RANKS:TAGS", "engines that generate the load, all at the same time; repeatable, sorted, duplicates removed; default: this process")
        .short('m'),
    Flag::honoured("endpoint", "RANKS:TAGS", "targets of the RPCs: lists and ranges such as 0-3:2-17; repeatable; order and duplicates are kept; default 0:2 with -u, else 0:0")
        .short('e'),
    Flag::honoured("message-sizes", "SIZES", "pairs of request and reply sizes such as (0 b1048576), each with e, i or b and a number; default \"0 0,0 b1048578,b1048578 0\"")
        .short('s'),
    Flag::honoured("repetitions-per-size", "N", "number of RPCs per size, master and endpoint; default 100000").short('r'),
    Flag::honoured("max-inflight-rpcs", "N", "RPCs in flight per master, to all endpoints together; default 16").short('i'),
    Flag::honoured("align", "0-255", "low byte of the buffer addresses").short('a'),
    Flag::honoured("Mbits", "", "shows bandwidth in megabits (10^6) per second, not in MB (2^20)").short('b'),
    Flag::honoured("randomize-endpoints", "", "endpoints are drawn at random with strata's seed, not taken in turn").short('q'),
    Flag::honoured("path", "DIR", "directory of the group's attach info; default CRT_ATTACH_INFO_PATH, else /tmp").short('p'),
    Flag::honoured("use-daos-agent-env", "", "changes the default endpoint to 0:2; strata chooses the interface like the agent; OFI_INTERFACE and OFI_DOMAIN override it")
        .short('u'),
    Flag::honoured("no-sync", "", "strata never pings endpoints before the first RPC").short('n'),
    Flag::honoured("json", "", "prints the results as one JSON document on standard output; strata extension"),
    Flag::honoured("help", "", "shows this help").short('h'),
];
