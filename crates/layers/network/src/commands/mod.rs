//! Commands about the network besides loads.

mod engine;
mod scan;

use layer::{Command, CommandKind, Measures};
use workload::help::{Example, Help};

const ENGINE_HELP: Help = Help {
    options: &["listen", "token-file", "targets", "pool", "dir", "scm", "rank", "background"],
    examples: &[
        Example::new("on loopback, on a free port", "engine"),
        Example::new(
            "for other hosts",
            "engine --rank 0 --targets 4 --token-file secret --listen 10.0.0.1:31416 --path /shared",
        ),
        Example::new(
            "with a pool of objects",
            "engine --pool tank --dir /mnt/pmem0/tank --scm 64g --nvme 1t --targets 8 --listen 127.0.0.1:31416",
        ),
    ],
};

const SCAN_HELP: Help = Help {
    options: &[],
    examples: &[
        Example::new("interfaces, NUMA nodes, providers", "net scan"),
        Example::new("which interface a load would use", "net scan tcp://192.0.2.10:31416"),
        Example::new("for a program", "net scan --json"),
    ],
};

/// All of them.
pub(crate) fn all() -> Vec<Command> {
    let (define, run, document) = (engine::command, engine::run, engine::document);
    let engine = Command {
        name: "engine",
        kind: CommandKind::Server(engine::run_for),
        help: &[("", ENGINE_HELP)],
        define,
        measures: Measures::Nothing,
        run,
        document,
    };
    let (define, run) = (scan::command, scan::run);
    let scan = Command {
        name: "scan",
        kind: CommandKind::OfLayer,
        help: &[("", SCAN_HELP)],
        define,
        measures: Measures::Nothing,
        run,
        document: |_| {},
    };
    vec![scan, engine]
}
