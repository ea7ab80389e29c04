//! Things that a run made and left: one that was killed, or one that kept them.

use std::path::PathBuf;
use std::sync::Arc;

use driver::Error;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use crate::measured::Journal;
use crate::stage::Tell;

/// Things that runs of a layer make and may leave, as `strata clean` shows and removes them.
pub trait Leftovers: Sync {
    /// Key under which they stand in the list of a run ([`Journal::note`]).
    fn key(&self) -> &'static str;

    /// Schema of one entry of that list, where records have the list too.
    fn schema(&self, _generator: &mut SchemaGenerator) -> Option<Schema> {
        None
    }

    /// They in a few words, one for each thing or lot; none where `made` is no such list.
    fn words(&self, made: &Value) -> Vec<String>;

    /// Shows them, or removes them.
    ///
    /// # Errors
    /// Things that could not be looked at or removed, and a list that is none.
    fn clean(&self, made: &Value, request: &CleanRequest<'_>) -> Result<(), Error>;
}

/// How leftovers are cleaned.
pub struct CleanRequest<'a> {
    /// List of the run, which gets shorter.
    pub journal: Arc<dyn Journal>,
    /// Whether they are removed; else they are shown.
    pub removes: bool,
    /// Files that options of the command name, by the names of the options: those with secrets.
    pub file: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Prints text to standard output.
    pub print: &'a dyn Fn(&str) -> Result<(), Error>,
    /// Tells the user one line.
    pub tell: Tell,
}
