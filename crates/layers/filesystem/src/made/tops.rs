//! Directories that hold trees, and go when these were removed.

use driver::Error;
use units::path_of;

use super::{Made, MadeSet, There, absolute};
use crate::plan::FsPlan;

impl Made {
    /// Notes that a set, too, has names in a directory that the run made or took over for another set, such as one of fewer workers.
    pub(super) fn share_top(&mut self, set: usize, top: &str) -> Result<(), Error> {
        let path = absolute(top);
        let of =
            |known: &MadeSet| known.made.iter().chain(&known.taken).find(|file| file.path == path).cloned();
        if of(&self.sets[set]).is_some() {
            return Ok(());
        }
        let Some(file) = self.sets.iter().find_map(of) else { return Ok(()) };
        self.sets[set].taken.push(file);
        self.note()
    }

    /// Removes the directories that held trees, where strata made them and nothing is left in them.
    pub(super) fn remove_tops(&mut self, plan: &FsPlan) -> Result<(), Error> {
        if plan.set.is_flat() || plan.load.is_guest() {
            return Ok(());
        }
        let set = self.set_of(plan);
        for rank in 0..plan.set.trees().max(plan.targets.len() as u32) {
            let top = format!("{}/{}", plan.target(rank), plan.set.top(rank));
            // The names of elbencho leave these to the phase: it was allowed to remove them.
            let is_of_phase = plan.set.first_node() > 0;
            let is_due = is_of_phase || matches!(self.look(&top)?, There::Own);
            if is_due && !self.remove_top(set, &top) {
                self.due.push((set, top));
            }
        }
        self.note()
    }

    /// Removes such a directory; whether it was empty.
    fn remove_top(&mut self, set: usize, top: &str) -> bool {
        let is_removed = std::fs::remove_dir(path_of(top)).is_ok();
        if is_removed {
            let path = absolute(top);
            self.sets[set].made.retain(|file| file.path != path);
        }
        is_removed
    }

    /// Removes the directories that other hosts had not emptied when their phase ended here.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub(crate) fn remove_due(&mut self) -> Result<(), Error> {
        let due = std::mem::take(&mut self.due);
        let removed = due.iter().filter(|(set, top)| self.remove_top(*set, top)).count();
        if removed > 0 { self.note() } else { Ok(()) }
    }
}
