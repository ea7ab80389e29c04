//! Files and directories that runs made and left.

use driver::{Error, ErrorKind};
use layer::{CleanRequest, Leftovers, MadeFile};
use serde_json::Value;
use units::ByteSize;

use crate::layout::{self, Leftover};

/// Key of the list of what a run made under which files and directories stand.
pub(crate) const JOURNAL_KEY: &str = "files";
/// Files of a run that are named one by one.
const FILES_SHOWN_MAX: usize = 100;

/// Files and directories.
pub(crate) struct Files;

impl Leftovers for Files {
    fn key(&self) -> &'static str {
        JOURNAL_KEY
    }

    fn words(&self, made: &Value) -> Vec<String> {
        let files: Vec<MadeFile> = serde_json::from_value(made.clone()).unwrap_or_default();
        match &files[..] {
            [] => Vec::new(),
            [file] => vec![file.path.clone()],
            [first, ..] => vec![format!("{} files, first {}", files.len(), first.path)],
        }
    }

    fn clean(&self, made: &Value, request: &CleanRequest<'_>) -> Result<(), Error> {
        let all: Vec<MadeFile> = serde_json::from_value(made.clone()).map_err(|error| {
            Error::new(ErrorKind::Usage, "clean", format!("the list of files is invalid: {error}"))
        })?;
        files(&all, request)
    }
}

/// Shows, or removes, the files and directories that a run made, the last first.
fn files(all: &[MadeFile], request: &CleanRequest<'_>) -> Result<(), Error> {
    let CleanRequest { journal, removes, print, .. } = request;
    let (removes, run_id) = (*removes, format!("{:016x}", journal.run()));
    let (mut shown, mut removed) = (0, 0);
    for file in all.iter().rev() {
        let found = if removes { layout::remove(file, &run_id)? } else { layout::look(file, &run_id)? };
        let line = match found {
            Leftover::Own(_) if removes => {
                removed += 1;
                continue;
            }
            Leftover::Own(bytes) => format!("{}: {}", file.path, ByteSize(bytes).human()),
            Leftover::Gone if removes => continue,
            Leftover::Gone => format!("{}: it no longer exists", file.path),
            Leftover::Stays(why) => format!("{}: not removed: {why}", file.path),
        };
        shown += 1;
        if shown <= FILES_SHOWN_MAX {
            print(&format!("  {line}\n"))?;
        }
    }
    if shown > FILES_SHOWN_MAX {
        print(&format!("  and {} more files\n", shown - FILES_SHOWN_MAX))?;
    }
    if !removes || all.is_empty() {
        return Ok(());
    }
    journal.note(JOURNAL_KEY, Value::Array(Vec::new()))?;
    print(&format!("  files: removed {removed}\n"))
}
