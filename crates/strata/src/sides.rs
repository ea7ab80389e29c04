//! Targets that a run measures side by side: when one fails, the run goes on with the others.

use std::collections::BTreeSet;

use driver::Error;

use crate::output;
use crate::planning::Planned;
use crate::session::Session;

/// Targets that have failed, and the first failure of one that could not begin.
#[derive(Default)]
pub(crate) struct Sides {
    lost: BTreeSet<u32>,
    failure: Option<Error>,
}

impl Sides {
    /// Whether a stage is one of a target that has failed.
    pub(crate) fn has_lost(&self, stage: &[Planned]) -> bool {
        stage.iter().any(|planned| planned.side.is_some_and(|side| self.lost.contains(&side)))
    }

    /// Notes phases of a stage that failed: without their targets the run goes on.
    pub(crate) fn note(&mut self, session: &mut Session, stage: &[Planned], ran: &[usize]) {
        for (planned, at) in stage.iter().zip(ran) {
            if let (Some(side), Some(_)) = (planned.side, &session.record.phases[*at].failure) {
                session.survive(*at);
                self.lost.insert(side);
            }
        }
    }

    /// Notes a stage that could not begin.
    ///
    /// # Errors
    /// The error, where nothing else is to be measured.
    pub(crate) fn note_refused(
        &mut self,
        session: &Session,
        stage: &[Planned],
        error: Error,
    ) -> Result<(), Error> {
        let sides: Vec<u32> = stage.iter().filter_map(|planned| planned.side).collect();
        // A host that could not begin a stage has left the run.
        if sides.is_empty() || session.is_interrupted() || session.leads_hosts() {
            return Err(error);
        }
        let names: Vec<&str> = stage.iter().map(|planned| planned.plan.name().as_str()).collect();
        output::tell(format_args!(
            "strata: {}: {error}; the run continues without it",
            units::clean(&names.join(", "))
        ));
        self.lost.extend(sides);
        self.failure.get_or_insert(error);
        Ok(())
    }

    /// The failure of a target that could not begin.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn result(self) -> Result<(), Error> {
        self.failure.map_or(Ok(()), Err)
    }
}
