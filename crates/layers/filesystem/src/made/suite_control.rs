//! Wishes of a suite about the run of its phases beside their loads: directories, and file sets that begin anew or stay.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::Error;
use layer::Journal;
use units::path_of;

use super::leftovers::read;
use super::{JOURNAL_KEY, Made, MadeSet, There, failed, remove_set};
use crate::plan::FsPlan;

/// Settings that a suite has for the run of its phases, and may change while that is under way.
#[derive(Debug, Default)]
pub(crate) struct SuiteControl {
    /// Directories that are made before the next phase, parents first.
    pub(crate) directories: Mutex<Vec<String>>,
    /// Everything stays at the end: the run is to be resumed.
    pub(crate) leaves: AtomicBool,
    /// The next phase that makes items begins with none.
    pub(crate) empties: AtomicBool,
}

impl Made {
    /// Makes what a suite wants to be there before a phase, and removes what it does not want.
    ///
    /// # Errors
    /// As the system says, and when it cannot be noted.
    pub(crate) fn follow(&mut self, control: &SuiteControl, plan: &FsPlan) -> Result<(), Error> {
        let directories = std::mem::take(
            &mut *control.directories.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        if let Some(first) = directories.first() {
            let (targets, set) = (vec![first.clone()], plan.set.clone());
            let set = MadeSet {
                targets,
                set,
                made: Vec::new(),
                taken: Vec::new(),
                ranks: Vec::new(),
                is_mount: false,
            };
            self.sets.insert(0, set);
            for directory in &directories {
                if matches!(self.look(directory)?, There::Free) {
                    self.make_directory(0, directory)?;
                }
            }
        }
        if plan.operation.makes() && control.empties.swap(false, Ordering::Relaxed) {
            self.empty(plan)?;
        }
        Ok(())
    }

    /// Removes what there is of the set of a plan.
    fn empty(&mut self, plan: &FsPlan) -> Result<(), Error> {
        let at = self.set_of(plan);
        let set = self.sets.remove(at);
        remove_set(&set, &self.run_id)?;
        self.note()
    }
}

/// The first of these directories that is there and holds something, or is no directory.
///
/// # Errors
/// As the system says.
pub(crate) fn first_taken(directories: &[String]) -> Result<Option<&String>, Error> {
    for directory in directories {
        let path = path_of(directory);
        match std::fs::read_dir(&path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Ok(Some(directory));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Some(directory)),
            Err(error) => return Err(failed("cannot list the directory", &path)(error)),
        }
    }
    Ok(None)
}

/// Whether the list of a run has file sets.
pub(crate) fn has_sets(journal: &dyn Journal) -> bool {
    read(&journal.noted(JOURNAL_KEY)).is_ok_and(|sets| !sets.is_empty())
}
