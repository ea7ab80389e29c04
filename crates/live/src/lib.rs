//! Views of a run at work: a progress line, plain lines for logs, a full screen, and CSV rows.
//!
//! A view renders what it is told ([`statistics::Event`]) and computes no number of its own. It runs on the
//! coordinating thread, draws only when an event arrives, and drops what comes faster than it may draw, so that it
//! takes no time from the workers. Views write to standard error; standard output carries the report, and CSV rows
//! where these were asked for there.

mod full;
mod hosts;
mod line;
mod mode;
mod open;
mod plain;
mod rows;
mod terminal;
#[cfg(test)]
mod testing;
mod text;
mod throttle;

use statistics::Event;

pub use mode::{CsvTarget, LiveMode};
pub use open::{LiveError, Tempo, open};

/// Something that shows a run while it runs.
pub trait View {
    /// Takes what happened; draws it now, later or never, as the view's pace allows.
    fn event(&mut self, event: &Event<'_>);

    /// Gives the terminal back as it was. Events after this are ignored. To be called before the report is printed.
    fn finish(&mut self);

    /// Error that made the view give up a part of its output, such as a full disk under the CSV rows. The run itself is not disturbed by
    /// it.
    fn failure(&self) -> Option<&LiveError> {
        None
    }
}
