//! Every option of self_test, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "self_test";

/// The options. getopt_long takes unambiguous beginnings of long names, and guides write them.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("group-name", "NAME", "the group of engines; default daos_server").short('g'),
    Flag::honoured("master-endpoint", "RANKS:TAGS", "engines that drive the load, all at once; repeatable, sorted, each once; default: this process")
        .short('m'),
    Flag::honoured("endpoint", "RANKS:TAGS", "where RPCs go: lists and ranges such as 0-3:2-17; repeatable; order and repeats are kept; default 0:2 with -u, else 0:0")
        .short('e'),
    Flag::honoured("message-sizes", "SIZES", "pairs of request and reply, (0 b1048576), each e, i or b and a number; default \"0 0,0 b1048578,b1048578 0\"")
        .short('s'),
    Flag::honoured("repetitions-per-size", "N", "RPCs for each size, master and endpoint; default 100000").short('r'),
    Flag::honoured("max-inflight-rpcs", "N", "RPCs in flight of each master, to all endpoints together; default 16").short('i'),
    Flag::honoured("align", "0-255", "low byte of the addresses of the buffers").short('a'),
    Flag::honoured("Mbits", "", "bandwidth in megabits (10^6) a second, not in MB (2^20)").short('b'),
    Flag::honoured("randomize-endpoints", "", "endpoints are drawn, with strata's seed, not taken in turn").short('q'),
    Flag::honoured("path", "DIR", "where the group's attach info lies; default CRT_ATTACH_INFO_PATH, else /tmp").short('p'),
    Flag::honoured("use-daos-agent-env", "", "the default endpoint is 0:2; strata itself chooses the interface as the agent does, OFI_INTERFACE and OFI_DOMAIN override it")
        .short('u'),
    Flag::honoured("no-sync", "", "endpoints are not pinged before the first RPC").short('n'),
    Flag::honoured("json", "", "results as one JSON document on standard output; an addition of strata's"),
    Flag::honoured("help", "", "shows this").short('h'),
];
