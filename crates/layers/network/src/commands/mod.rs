//! Commands about the network besides loads.

mod scan;

use layer::{Command, CommandKind};

/// All of them.
pub(crate) fn all() -> Vec<Command> {
    vec![Command {
        name: "scan",
        kind: CommandKind::OfLayer,
        define: scan::command,
        run: scan::run,
        document: |_| {},
    }]
}
