//! Commands about object stores besides loads.

mod audit;
mod pools;

use layer::{Command, CommandKind};

/// All of them.
pub(crate) fn all() -> Vec<Command> {
    use CommandKind::{Administration, OfLayer};
    let command =
        |name, kind, define, run| Command { name, kind, define, measures: false, run, document: |_| {} };
    vec![
        crate::recipes::command(),
        mount::command(),
        command("audit", OfLayer, audit::command, audit::run),
        command("pool", Administration, pools::pool, pools::run_pool),
        command("container", Administration, pools::container, pools::run_container),
    ]
}
