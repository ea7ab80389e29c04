//! The attach-info file on disk. It lies in a directory that everybody may write to, so nothing there is trusted unseen.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use driver::Error;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

/// Largest file that is read, in bytes: some 100 thousand ranks.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Longest wait for others that write the same file.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The directory of attach-info files: the one that was given, else `$CRT_ATTACH_INFO_PATH`, else `/tmp`.
#[must_use]
pub fn attach_info_dir(dir: Option<&Path>) -> PathBuf {
    choose_dir(dir, std::env::var_os("CRT_ATTACH_INFO_PATH"))
}

fn choose_dir(dir: Option<&Path>, variable: Option<OsString>) -> PathBuf {
    dir.map(Path::to_owned)
        .or_else(|| variable.filter(|value| !value.is_empty()).map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The file of a group in a directory.
#[must_use]
pub fn attach_info_path(dir: &Path, group: &str) -> PathBuf {
    dir.join(format!("{group}.attach_info_tmp"))
}

/// The text of the file; none when there is no file.
///
/// # Errors
/// When it cannot be read, or when somebody else may have planted it.
pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(untrusted(path, "it is a symbolic link")),
        Err(errno) => return Err(failed(path, "cannot open the attach info", errno)),
    };
    check_owner(path, &file)?;
    let mut bytes = Vec::new();
    (&file)
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(path, "cannot read the attach info", error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Error::usage("group", "the attach info is too large")
            .with("path", path.display())
            .remedy(format!("at most {FILE_BYTES_MAX} bytes are accepted")));
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|_| Error::usage("group", "the attach info is not text").with("path", path.display()))
}

/// Whose files are believed: one's own, root's, and in a directory that not everybody may write to, those of the directory's owner.
fn check_owner(path: &Path, file: &File) -> Result<(), Error> {
    let facts = file.metadata().map_err(|error| failed(path, "cannot examine the attach info", error))?;
    if !facts.is_file() {
        return Err(untrusted(path, "it is not a regular file"));
    }
    let own = rustix::process::geteuid().as_raw();
    if facts.uid() == own || facts.uid() == 0 {
        return Ok(());
    }
    let directory = path.parent().and_then(|dir| std::fs::metadata(dir).ok());
    match directory {
        Some(directory) if directory.mode() & 0o002 == 0 && directory.uid() == facts.uid() => Ok(()),
        _ => Err(untrusted(path, &format!("it belongs to user {}", facts.uid()))),
    }
}

/// Replaces the file in one step: readers see the old one or the new one. Call with the lock.
///
/// # Errors
/// When the directory does not take it.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let wrong = |error: std::io::Error| failed(path, "cannot write the attach info", error);
    let draft = path.with_extension("attach_info_draft");
    // Left behind by a process that was killed here: the lock says that nobody is at it.
    remove(&draft)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let descriptor = open(&draft, flags, Mode::from_raw_mode(0o644)).map_err(|errno| wrong(errno.into()))?;
    let mut file = File::from(descriptor);
    let result = rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))
        .map_err(std::io::Error::from)
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&draft, path));
    result.map_err(|error| {
        let _ = std::fs::remove_file(&draft);
        wrong(error)
    })
}

/// Removes a file that may be missing.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(failed(path, "cannot remove the file", error))
        }
        _ => Ok(()),
    }
}

/// The lock over a group's file: held by whoever changes it.
pub(super) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Waits for the lock.
    ///
    /// # Errors
    /// When others hold it for too long, or when the directory does not take it.
    pub(super) fn take(attach_info: &Path) -> Result<Self, Error> {
        let path = attach_info.with_extension("attach_info_lock");
        let end = Instant::now() + LOCK_WAIT;
        let mut pause = Duration::from_micros(200);
        loop {
            let file = Self::open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Who held it before may have removed it: then the name is another file, or none.
                Ok(()) if is_at(&path, &file) => return Ok(Self { path, file }),
                Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(failed(&path, "cannot lock the attach info", errno)),
            }
            if Instant::now() >= end {
                return Err(Error::system(
                    "group",
                    "another process holds the lock of the attach info",
                    Errno::TIMEDOUT,
                )
                .with("path", path.display())
                .remedy("stop the process that holds it"));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    fn open(path: &Path) -> Result<File, Error> {
        // Others may not even open it, and so cannot hold it for ever.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match open(path, flags, Mode::from_raw_mode(0o600)) {
            Ok(descriptor) => {
                let file = File::from(descriptor);
                check_owner(path, &file)?;
                Ok(file)
            }
            Err(Errno::LOOP) => Err(untrusted(path, "it is a symbolic link")),
            Err(errno) => Err(failed(path, "cannot open the lock of the attach info", errno)
                .remedy("use a writable directory with --path")),
        }
    }

    /// Gives the lock back and takes its file away: nobody is left in the group.
    pub(super) fn dissolve(self) {
        // A lock file that stays does no harm.
        let _ = std::fs::remove_file(&self.path);
        drop(self.file);
    }
}

fn is_at(path: &Path, file: &File) -> bool {
    match (std::fs::symlink_metadata(path), file.metadata()) {
        (Ok(there), Ok(here)) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
        _ => false,
    }
}

fn untrusted(path: &Path, what: &str) -> Error {
    Error::new(driver::ErrorKind::Unsafe, "group", format!("the attach info cannot be trusted: {what}"))
        .with("path", path.display())
        .remedy("remove it, or use another directory with --path")
}

fn failed(path: &Path, message: &str, source: impl Into<std::io::Error>) -> Error {
    Error::system("group", message, source).with("path", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_the_given_one_then_the_variables_then_tmp() {
        let variable = || Some(OsString::from("/run/x"));
        assert_eq!(choose_dir(Some(Path::new("/a")), variable()), Path::new("/a"));
        assert_eq!(choose_dir(None, variable()), Path::new("/run/x"));
        assert_eq!(choose_dir(None, Some(OsString::new())), Path::new("/tmp"));
        assert_eq!(choose_dir(None, None), Path::new("/tmp"));
        assert_eq!(attach_info_path(Path::new("/a"), "g.h"), Path::new("/a/g.h.attach_info_tmp"));
    }

    #[test]
    fn a_lock_is_one_at_a_time_and_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = attach_info_path(dir.path(), "g");
        let held = Lock::take(&path).expect("a lock");
        let waiting = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::take(&path));
            // The one that waits gets a file of its own: the one it waited for is gone.
            held.dissolve();
            waiting.join().expect("it returns")
        });
        waiting.expect("the lock").dissolve();
        assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0);
    }
}
