//! Commands about object stores besides loads.

mod audit;
mod help;
mod pools;

use layer::{Command, CommandKind, Measures};

/// All of them.
pub(crate) fn all() -> Vec<Command> {
    use CommandKind::{Administration, OfLayer};
    let command = |name, kind, help, define, run| Command {
        name,
        kind,
        help,
        define,
        measures: Measures::Nothing,
        run,
        document: |_| {},
    };
    vec![
        crate::recipes::command(),
        command("audit", OfLayer, help::AUDIT, audit::command, audit::run),
        command("pool", Administration, help::POOL, pools::pool, pools::run_pool),
        command("container", Administration, help::CONTAINER, pools::container, pools::run_container),
    ]
}
