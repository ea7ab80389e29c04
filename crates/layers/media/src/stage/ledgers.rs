//! Ledgers of the blocks that the run verifies: one for each set of targets and blocks.

use std::sync::Arc;

use crate::plan::MediaPlan;
use driver::Error;
use workload::target::TargetPlan;

use crate::Ledger;

/// The ledgers of a run.
pub(super) struct Ledgers {
    run: u64,
    known: Vec<Known>,
    /// Targets that phases so far wrote, and the number under which they did where they verified.
    written: Vec<(Vec<TargetPlan>, Option<u64>)>,
}

struct Known {
    ledger: Arc<Ledger>,
    /// Whether it says anything: its blocks were written or laid out by this run.
    is_used: bool,
}

/// How the blocks of one phase are verified.
pub struct Check {
    /// Where writes are noted and reads are looked up.
    pub(super) ledger: Arc<Ledger>,
    /// Blocks may be of another run: this one has written nothing there.
    pub(super) accepts_foreign: bool,
}

impl Ledgers {
    /// None yet; blocks carry the number `run`, unless a plan names another.
    pub(super) fn new(run: u64) -> Self {
        Self { run, known: Vec::new(), written: Vec::new() }
    }

    /// The number that the blocks of a phase carry.
    pub(super) fn run_of(&self, plan: &MediaPlan) -> u64 {
        plan.verify_run.unwrap_or(self.run)
    }

    /// How each phase of a stage is verified; none for a phase that is not. Notes what the stage will write: what other
    /// ledgers said about the same blocks no longer holds.
    ///
    /// # Errors
    /// When there are too many blocks to follow.
    pub(super) fn begin_stage(&mut self, plans: &[&MediaPlan]) -> Result<Vec<Option<Check>>, Error> {
        self.known.retain(|known| known.is_used);
        for plan in plans.iter().filter(|plan| plan.writes()) {
            let run = self.run;
            self.known.retain(|known| {
                is_verified_by(plan, &known.ledger, run) || !known.ledger.overlaps(&plan.targets)
            });
            let number = plan.verify_interval_bytes.map(|_| self.run_of(plan));
            self.written.push((plan.targets.clone(), number));
        }
        plans.iter().map(|plan| self.check_of(plan)).collect()
    }

    fn check_of(&mut self, plan: &MediaPlan) -> Result<Option<Check>, Error> {
        if plan.verify_interval_bytes.is_none() {
            return Ok(None);
        }
        let at = match self.known.iter().position(|known| known.ledger.fits(plan, self.run)) {
            Some(at) => at,
            None => {
                let ledger = Arc::new(Ledger::new(plan, self.run)?);
                self.known.push(Known { ledger, is_used: false });
                self.known.len() - 1
            }
        };
        self.known[at].is_used |= plan.writes();
        let ledger = Arc::clone(&self.known[at].ledger);
        // A phase that wrote without verifying left blocks that no run knows.
        let is_written = self.written.iter().any(|(targets, number)| {
            number.is_none_or(|number| number == ledger.run()) && ledger.overlaps(targets)
        });
        Ok(Some(Check { ledger, accepts_foreign: !is_written }))
    }

    /// Notes that all blocks of a ledger were laid out.
    pub(super) fn laid_out(&mut self, ledger: &Arc<Ledger>) {
        ledger.laid_out();
        let known = self.known.iter_mut().find(|known| Arc::ptr_eq(&known.ledger, ledger));
        known.into_iter().for_each(|known| known.is_used = true);
    }
}

fn is_verified_by(plan: &MediaPlan, ledger: &Ledger, run: u64) -> bool {
    plan.verify_interval_bytes.is_some() && ledger.fits(plan, run)
}
