//! State of a run that is under way, kept in its result directory, so that an interrupted one can go on.

use std::collections::BTreeMap;
use std::path::Path;

use driver::{Error, ErrorKind};
use report::record::SuiteRecord;
use serde::{Deserialize, Serialize};

use super::files;
use super::options::SuiteSpec;

/// Name of its file.
const NAME: &str = "state.json";
/// Version of its form.
const VERSION: u32 = 1;

/// State of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) version: u32,
    /// The run whose list has the files.
    pub(super) run_id: String,
    /// Times that the run was begun or resumed.
    pub(super) parts: u32,
    /// Options of the command.
    pub(super) spec: SuiteSpec,
    /// The configuration, as text.
    pub(super) config: String,
    /// When the first part began.
    pub(super) started: String,
    /// Items or blocks of each rank, by file set.
    pub(super) counts: BTreeMap<String, Vec<u64>>,
    pub(super) suite: SuiteRecord,
}

impl State {
    /// Whether a directory has one.
    pub(super) fn is_in(directory: &Path) -> bool {
        directory.join(NAME).exists()
    }

    /// Reads the state in a result directory.
    ///
    /// # Errors
    /// Bad usage: there is none, or it is of another version.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let refused = |message: String| {
            Error::usage("resume", message)
                .with("path", path.display())
                .remedy("use the result directory of an interrupted run")
        };
        let text =
            std::fs::read_to_string(&path).map_err(|error| refused(format!("no run to resume: {error}")))?;
        let state: Self = serde_json::from_str(&text)
            .map_err(|error| refused(format!("this is not the state of a run: {error}")))?;
        if state.version != VERSION {
            return Err(refused(format!(
                "the state has version {}, but this strata reads version {VERSION}",
                state.version
            )));
        }
        Ok(state)
    }

    /// Writes it into a result directory.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn save(&mut self, directory: &Path) -> Result<(), Error> {
        self.version = VERSION;
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            Error::new(ErrorKind::Run, "io500", format!("cannot write the state: {error}"))
        })?;
        files::write(directory, NAME, &text)
    }

    /// Removes it: the run is whole.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn remove(directory: &Path) -> Result<(), Error> {
        let path = directory.join(NAME);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::system("io500", "cannot remove the state of the run", error)
                    .with("path", path.display()))
            }
            _ => Ok(()),
        }
    }
}
