//! Interface of a process that is an agent.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Error, ErrorKind};

use crate::messages::{Description, OutcomeMessage, PlanMessage, ProgressReport};
use crate::server::gate::StartGate;
use crate::session::SessionHost;

/// Work of a process that others may tell what to run. Its methods are called on ordinary threads, never on those of the channel.
pub trait Agent: Send + Sync {
    /// Description of this process.
    fn describe(&self) -> Description;

    /// Checks a plan and makes ready what can be made ready beforehand. `stop` is raised when nobody waits any more.
    ///
    /// # Errors
    ///
    /// Why the plan cannot be run; the coordinator is told.
    fn prepare(&self, plan: PlanMessage, stop: &Arc<AtomicBool>) -> Result<Box<dyn Prepared>, Error>;

    /// Takes part in runs that others lead; none where this process does not.
    fn host(&self) -> Option<Arc<dyn SessionHost>> {
        None
    }

    /// Directories and devices that its work is held to, for the audit log; none where it is not held to any.
    fn roots(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether any caller may end a job that another started. It may, unless an agent says otherwise.
    fn may_interrupt(&self) -> bool {
        true
    }

    /// Asks the process to end, soon after this returns.
    ///
    /// # Errors
    ///
    /// The process does not end on demand; so it is unless an agent says otherwise.
    fn quit(&self) -> Result<(), Error> {
        Err(Error::new(ErrorKind::Unsupported, "quit", "this process cannot be stopped remotely"))
    }
}

/// A job that is ready to run.
pub trait Prepared: Send {
    /// Runs it, on a thread of its own. `gate` is to be waited at once, when all is ready: it tells the coordinator and
    /// opens at the common start. `observe` is to be called often, at least every few seconds: a job that is silent
    /// counts as hung; what comes more often than asked for is dropped. When `stop` is raised the job is to end soon
    /// and to return what it has measured, with a failure that says so.
    ///
    /// # Errors
    ///
    /// The job failed and has nothing to show. With something to show, return it, with [`OutcomeMessage::failure`] set.
    fn run(
        self: Box<Self>,
        gate: StartGate,
        observe: &mut dyn FnMut(ProgressReport),
        stop: Arc<AtomicBool>,
    ) -> Result<OutcomeMessage, Error>;
}
