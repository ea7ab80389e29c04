//! Acknowledged updates of a run: a file with a line for each of them, and the audit of a store against it.
//!
//! The form of the file is in docs/object.md. A line is written after the update's latency has ended, by a thread of its own, so the
//! process that is killed loses what that thread had not written yet: such updates are not audited, and no other harm is done.

mod audit;
mod line;
mod read;
mod recorder;

pub use audit::{AuditReport, Example, Verdict, audit};
pub use line::{Entry, FORMAT};
pub use read::{Acknowledged, Known};
pub use recorder::{Cost, Recorder};
