//! Ranks tell each other where they are by files in a directory of their user's own: one a rank.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind as Cause, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use driver::{Error, ErrorKind};
use rustix::fs::OFlags;

use super::Launched;
use super::channel::{Channel, LEAVES, TEXT_BYTES_MAX};

/// Attempts to make a directory that ranks which end may remove meanwhile.
const ATTEMPTS: usize = 16;

/// Directory for ranks of this machine.
pub(super) fn of_this_machine() -> PathBuf {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(std::env::var_os);
    let mut named = named.filter(|value| !value.is_empty()).map(PathBuf::from);
    named.find(|path| path.is_dir()).unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The files of a launch.
pub(super) struct Files {
    directory: PathBuf,
    rank: u32,
}

fn failed(what: &str, path: &Path, error: io::Error) -> Error {
    Error::system("launcher", format!("cannot {what}"), error).with("path", path.display())
}

impl Files {
    /// Files below a directory; they are made when something is said.
    pub(super) fn new(launched: &Launched, below: PathBuf) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let job: String = launched.job.chars().map(|c| if is_plain(c) { c } else { '_' }).take(128).collect();
        let user = rustix::process::geteuid().as_raw();
        let name = format!("strata-launch-{user}-{}-{job}", launched.launcher);
        Self { directory: below.join(name), rank: launched.rank }
    }

    fn path(&self, rank: u32) -> PathBuf {
        self.directory.join(format!("rank-{rank}"))
    }

    /// Makes the directory, or finds that another rank has; it must be this user's own and closed to others.
    fn make(&self) -> Result<(), Error> {
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != Cause::AlreadyExists => {
                return Err(failed("create the rendezvous directory of the ranks", &self.directory, error)
                    .remedy("set STRATA_LAUNCH_DIR to a directory that all ranks see and may write to"));
            }
            _ => {}
        }
        let facts = fs::symlink_metadata(&self.directory).map_err(|error| {
            failed("examine the rendezvous directory of the ranks", &self.directory, error)
        })?;
        let own = rustix::process::geteuid().as_raw();
        if !facts.is_dir() || facts.uid() != own || facts.mode() & 0o077 != 0 {
            let message = "the rendezvous directory of the ranks is accessible to other users";
            return Err(Error::new(ErrorKind::Unsafe, "launcher", message)
                .with("path", self.directory.display())
                .remedy("remove it, or set STRATA_LAUNCH_DIR to another one"));
        }
        Ok(())
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let (path, new) =
            (self.path(self.rank), self.directory.join(format!(".{}-{}", self.rank, std::process::id())));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&new)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            // What was said in part is heard by nobody.
            let _ = fs::remove_file(&new);
        }
        written
    }
}

impl Channel for Files {
    fn say(&mut self, text: &str, _until: Instant) -> Result<(), Error> {
        let mut result = Ok(());
        for _ in 0..ATTEMPTS {
            self.make()?;
            result = self.write(text);
            if !matches!(&result, Err(error) if error.kind() == Cause::NotFound) {
                break;
            }
        }
        result.map_err(|error| failed("write the file of this rank", &self.path(self.rank), error))
    }

    fn heard(&mut self, rank: u32, _until: Instant) -> Result<Option<String>, Error> {
        let path = self.path(rank);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file: File = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == Cause::NotFound => return Ok(None),
            Err(error) => return Err(failed("read the file of a rank", &path, error)),
        };
        let read = || -> io::Result<(u32, String)> {
            let (mut text, uid) = (String::new(), file.metadata()?.uid());
            (&file).take(TEXT_BYTES_MAX as u64).read_to_string(&mut text)?;
            Ok((uid, text))
        };
        let (uid, text) = read().map_err(|error| failed("read the file of a rank", &path, error))?;
        if uid != rustix::process::geteuid().as_raw() {
            let message = format!("the file of a rank belongs to user {uid}");
            return Err(Error::new(ErrorKind::Unsafe, "launcher", message).with("path", path.display()));
        }
        Ok(Some(text))
    }

    fn end(&mut self) {
        // Whoever ends last finds the directory empty; for the others it stays. Rank 0's word that there is no run stays for those who come later.
        let stays = self.rank == 0 && fs::read(self.path(0)).is_ok_and(|text| text == LEAVES.as_bytes());
        if !stays {
            let _ = fs::remove_file(self.path(self.rank));
        }
        let names = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        if self.rank != 0 && names == ["rank-0"] {
            let _ = fs::remove_file(self.path(0));
        }
        let _ = fs::remove_dir(&self.directory);
    }
}
