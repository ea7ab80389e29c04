//! Directories that a run mounts file systems on: noted before they are made, unmounted before they are removed.

use std::io;
use std::sync::Arc;

use driver::{Error, ErrorKind};
use layer::{Journal, MadeFile};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use units::path_of;

use super::leftovers::read;
use super::{JOURNAL_KEY, MadeSet, failed};
use crate::set::{FileSet, Naming, Shape};

/// Notes a directory that is about to be made and mounted on.
///
/// # Errors
/// When it cannot be noted: nothing may be made then.
pub(crate) fn note_mount(journal: &Arc<dyn Journal>, directory: &str) -> Result<(), Error> {
    let noted = journal.noted(JOURNAL_KEY);
    let mut sets = if noted.is_null() { Vec::new() } else { read(&noted)? };
    sets.push(MadeSet {
        ranks: Vec::new(),
        targets: vec![directory.to_owned()],
        set: no_files(),
        made: vec![MadeFile { path: directory.to_owned(), identity: None }],
        taken: Vec::new(),
        is_mount: true,
    });
    let sets = serde_json::to_value(&sets)
        .map_err(|error| Error::new(ErrorKind::Run, "files", format!("cannot record the mount: {error}")))?;
    journal.note(JOURNAL_KEY, sets)
}

/// A set without files: those on the mount are of sets of their own.
fn no_files() -> FileSet {
    FileSet {
        shape: Shape::Private,
        naming: Naming::default(),
        ranks: 0,
        items: 0,
        items_per_directory: 1,
        branch: 1,
        levels: 0,
        leaves_only: false,
        shared_tree: false,
        unique_directories: false,
        listed: None,
        suffix: None,
    }
}

/// Unmounts what strata has mounted on a directory, if anything, and removes the directory; how many names.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn remove_mount(directory: &str) -> Result<u64, Error> {
    let at = path_of(directory).into_owned();
    let listed = dfs::mounts::mounts().map_err(failed("cannot list mounts", &at))?;
    if listed.iter().any(|mount| mount.is_strata() && mount.directory == at) {
        match rustix::mount::unmount(&at, UnmountFlags::DETACH) {
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
            Err(error) => {
                return Err(failed("cannot unmount the file system of this run", &at)(error.into()));
            }
        }
    }
    match std::fs::remove_dir(&at) {
        Ok(()) => Ok(1),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(failed("cannot remove the directory of a mount", &at)(error)),
    }
}
