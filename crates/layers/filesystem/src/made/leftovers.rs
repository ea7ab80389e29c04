//! File sets that runs left.

use driver::{Error, ErrorKind};
use layer::{CleanRequest, Leftovers};
use serde_json::Value;

use super::{JOURNAL_KEY, MadeSet, is_own, remove_set};
use crate::stores::{self, is_store};

/// File sets, as `strata clean` shows and removes them.
pub(crate) struct FileSets;

/// The list of file sets of a run.
///
/// # Errors
/// Anything else.
pub(super) fn read(made: &Value) -> Result<Vec<MadeSet>, Error> {
    serde_json::from_value(made.clone()).map_err(|error| {
        Error::new(ErrorKind::Usage, "clean", format!("the list of file sets is not readable: {error}"))
    })
}

impl Leftovers for FileSets {
    fn key(&self) -> &'static str {
        JOURNAL_KEY
    }

    fn words(&self, made: &Value) -> Vec<String> {
        let sets = read(made).unwrap_or_default();
        let sets = sets.iter().filter(|set| !set.made.is_empty() || !set.taken.is_empty());
        sets.map(|set| format!("files in {}", set.targets.join(", "))).collect()
    }

    fn clean(&self, made: &Value, request: &CleanRequest<'_>) -> Result<(), Error> {
        let run_id = format!("{:016x}", request.journal.run());
        let sets = read(made)?;
        for set in sets.iter().rev() {
            if !request.removes {
                for file in &set.made {
                    let state = if is_store(&file.path) || is_own(file, &run_id) {
                        ""
                    } else {
                        ": missing, or no longer owned by this run"
                    };
                    (request.print)(&format!("  {}{state}\n", file.path))?;
                }
                continue;
            }
            let removed = if set.targets.iter().any(|target| is_store(target)) {
                remove_from_stores(set, &run_id, request)?
            } else {
                remove_set(set, &run_id)?
            };
            (request.print)(&format!("  files in {}: removed {removed}\n", set.targets.join(", ")))?;
        }
        if request.removes && !sets.is_empty() {
            request.journal.note(JOURNAL_KEY, Value::Array(Vec::new()))?;
        }
        Ok(())
    }
}

/// Removes what a run that was killed made in file systems over objects; how many names.
fn remove_from_stores(set: &MadeSet, run_id: &str, request: &CleanRequest<'_>) -> Result<u64, Error> {
    let secret = layer::secret::shared_or_environment((request.file)("token-file").as_deref())?;
    let mut removed = 0;
    // The pool of a run's own goes with all that is in it.
    for target in set.targets.iter().filter(|target| !stores::is_gone(target)) {
        let store = stores::open(target, secret.as_ref())?;
        removed += stores::remove_set(&set.set, target, &store, run_id)?;
    }
    Ok(removed)
}
