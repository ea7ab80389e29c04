//! Files that the processes of one user share in a directory where others may write too.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two looks at a lock that another process holds.
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// Only the owner may read or write.
const MODE: u32 = 0o600;
/// Bits that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// Where shared files lie: the user's directory of the session when there is one, else `/tmp`.
pub(super) fn directory() -> PathBuf {
    let own = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok();
        path.is_absolute() && metadata.is_some_and(|found| found.is_dir() && found.uid() == user())
    };
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(own).unwrap_or_else(|| "/tmp".into())
}

/// The user whose files are believed.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Opens a shared file. Links are not followed, and a file that is not the user's own, or that others may write or have a name
/// for, is refused. Nothing at its place can make this wait.
pub(super) fn open(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(create).create(create).truncate(false).mode(MODE);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    let sound = metadata.is_file() && metadata.uid() == user() && metadata.nlink() == 1;
    if !sound || metadata.mode() & OTHERS_WRITE != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file does not belong to this user"));
    }
    Ok(file)
}

/// The text of a shared file, of `bytes_max` at most.
pub(super) fn read(file: &File, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    file.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too long"));
    }
    Ok(text)
}

/// Opens and locks a shared file; `TimedOut` when another process holds the lock for all of `wait`. The lock ends with the file.
pub(super) fn lock(path: &Path, wait: Duration) -> io::Result<File> {
    let file = open(path, true)?;
    let end = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Puts a file with this text at `path` in one step: readers see the old one or the new one. A link at `path` is replaced, not
/// followed.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::Builder::new().prefix(".strata-fabric-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
