//! Files and directories of a pool: made, replaced and removed so that a power failure leaves what was there before or what is there now.
//! Everything that changes a name goes through here, so that tests can lose what was not synced.

use std::fs::{File, OpenOptions};
use std::io::{Error, Result, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

#[cfg(test)]
use super::cut::note;

/// Modes of what a pool has: values of others are read by its owner alone, whatever the umask says.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Event of a file or a directory: told to the tests' disk.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    MadeDirectory(&'a Path),
    Made(&'a Path),
    /// A sync of its content begins, or ended.
    Syncing(&'a Path),
    Synced(&'a Path),
    /// Before it has another name, and then.
    Renaming(&'a Path),
    Renamed(&'a Path, &'a Path),
    /// Before it goes.
    Removing(&'a Path),
    RemovedDirectory(&'a Path),
    SyncingDirectory(&'a Path),
    SyncedDirectory(&'a Path),
}

/// Makes a directory; its name is durable after [`sync_directory`] of the one that it is in.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    std::fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path)?;
    #[cfg(test)]
    note(Event::MadeDirectory(path));
    Ok(())
}

/// Makes a directory and those above it that are missing, durably. Those above are no pool's, and as the umask says.
pub(super) fn make_directories(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    make_above(path)?;
    make_directory(path)?;
    sync_directory(directory_of(path))
}

fn make_above(path: &Path) -> Result<()> {
    let above = directory_of(path);
    if above.is_dir() {
        return Ok(());
    }
    make_above(above)?;
    std::fs::create_dir(above)?;
    #[cfg(test)]
    note(Event::MadeDirectory(above));
    sync_directory(directory_of(above))
}

/// Makes a file that must not be there yet.
pub(super) fn make(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
    #[cfg(test)]
    note(Event::Made(path));
    Ok(file)
}

/// Makes a file, or empties the one that is there.
pub(super) fn make_empty(path: &Path) -> Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => make(path),
    }
}

/// Makes the content of a file durable.
pub(super) fn sync(file: &File, path: &Path) -> Result<()> {
    #[cfg(not(test))]
    let _ = path;
    #[cfg(test)]
    note(Event::Syncing(path));
    file.sync_all()?;
    #[cfg(test)]
    note(Event::Synced(path));
    Ok(())
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(path: &Path) -> Result<()> {
    #[cfg(test)]
    note(Event::SyncingDirectory(path));
    File::open(path)?.sync_all()?;
    #[cfg(test)]
    note(Event::SyncedDirectory(path));
    Ok(())
}

/// Gives a file another name, durably; what had that name is gone.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    #[cfg(test)]
    note(Event::Renaming(from));
    std::fs::rename(from, to)?;
    #[cfg(test)]
    note(Event::Renamed(from, to));
    sync_directory(directory_of(to))
}

/// Removes a file; it may be back before a sync of its directory.
pub(super) fn remove_unsynced(path: &Path) -> Result<()> {
    #[cfg(test)]
    note(Event::Removing(path));
    std::fs::remove_file(path)
}

/// Removes a directory that is empty.
pub(super) fn remove_directory(path: &Path) -> Result<()> {
    std::fs::remove_dir(path)?;
    #[cfg(test)]
    note(Event::RemovedDirectory(path));
    Ok(())
}

/// Removes a file, durably.
pub(super) fn remove(path: &Path) -> Result<()> {
    remove_unsynced(path)?;
    sync_directory(directory_of(path))
}

/// Replaces the content of a file as a whole, durably.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    let written = make_empty(&partial).and_then(|mut file| {
        file.write_all(content)?;
        sync(&file, &partial)
    });
    if let Err(error) = written {
        // A part of it is of no use, and takes space.
        let _ = std::fs::remove_file(&partial);
        return Err(error);
    }
    rename(&partial, path)
}

/// The directory that a path lies in.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether an error says that the file system is full.
pub(super) fn is_full(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}
