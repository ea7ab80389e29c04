//! Whose turn it is: a counter over the processes of a host for each set of equal interfaces.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files;

/// Longest wait for another process that counts.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// Longest file of counters that is read.
const BYTES_MAX: u64 = 64 * 1024;
/// More sets than a host has: with more the file is begun anew.
const SETS_MAX: usize = 256;

/// Gives out turns.
pub trait Turns {
    /// The next turn, from 0, among the set of interfaces called `set`.
    fn next(&mut self, set: &str) -> u64;
}

/// Turns by this process's number: spreads processes without knowing of each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessTurns;

impl Turns for ProcessTurns {
    fn next(&mut self, _set: &str) -> u64 {
        std::process::id().into()
    }
}

/// Turns that all processes of a user on this host share through a file; by this process's number while that cannot be used.
#[derive(Clone, Debug)]
pub struct FileTurns {
    path: PathBuf,
    advance: bool,
}

impl FileTurns {
    /// The counter in `directory`. With `advance` a turn is taken, without it only looked at.
    #[must_use]
    pub fn at(directory: &Path, advance: bool) -> Self {
        Self { path: directory.join(format!("strata-fabric-turns-{}.json", files::user())), advance }
    }

    fn count(&self, set: &str) -> std::io::Result<u64> {
        let mut file = files::lock(&self.path, LOCK_WAIT)?;
        let text = files::read(&file, BYTES_MAX).unwrap_or_default();
        let mut counts = parse(&text);
        let turn = counts.get(set).copied().unwrap_or(0);
        if self.advance {
            if counts.len() >= SETS_MAX {
                counts.clear();
            }
            counts.insert(set.to_owned(), turn.wrapping_add(1));
            let text = serde_json::to_string(&counts)?;
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(text.as_bytes())?;
        }
        Ok(turn)
    }
}

impl Turns for FileTurns {
    fn next(&mut self, set: &str) -> u64 {
        self.count(set).unwrap_or_else(|_| ProcessTurns.next(set))
    }
}

/// The counts of the file; of a damaged one none: all begin anew.
pub(super) fn parse(text: &str) -> BTreeMap<String, u64> {
    serde_json::from_str(text).unwrap_or_default()
}
