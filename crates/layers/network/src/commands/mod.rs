//! Commands about the network besides loads.

mod engine;
mod scan;

use layer::{Command, CommandKind};

/// All of them.
pub(crate) fn all() -> Vec<Command> {
    let (define, run, document) = (engine::command, engine::run, engine::document);
    let engine = Command {
        name: "engine",
        kind: CommandKind::Server(engine::run_for),
        define,
        measures: false,
        run,
        document,
    };
    let (define, run) = (scan::command, scan::run);
    let scan =
        Command { name: "scan", kind: CommandKind::OfLayer, define, measures: false, run, document: |_| {} };
    vec![scan, engine]
}
