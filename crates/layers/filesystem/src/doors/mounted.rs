//! A mount that another process of this program serves for the run.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};

/// Time that a mount which is not used any more may take to go.
const END_MAX: Duration = Duration::from_secs(30);
/// Pause between two looks at it.
const LOOK: Duration = Duration::from_millis(5);
/// Beginning of the names of directories to mount on; the number of the process follows.
const PREFIX: &str = "strata-door-";

/// Directory that this process mounts on, for as long as a run has the mount.
///
/// # Errors
/// A directory for temporary files that is not there.
pub(super) fn directory() -> Result<PathBuf, Error> {
    let folder = std::env::temp_dir();
    let folder = folder.canonicalize().map_err(|error| {
        Error::system("mount", "no directory for temporary files exists", error)
            .with("directory", folder.display())
            .remedy("set TMPDIR to one")
    })?;
    Ok(folder.join(format!("{PREFIX}{}", std::process::id())))
}

/// A mount, served by a child of this process; it goes when this process ends, however that is.
pub(super) struct Mount {
    child: Child,
    directory: PathBuf,
    pub(super) url: String,
}

impl Mount {
    /// Mounts.
    ///
    /// # Errors
    /// What the child says where it cannot.
    pub(super) fn begin(url: &str, token_file: Option<&Path>) -> Result<Self, Error> {
        let directory = directory()?;
        let failed = |what: &'static str| {
            let directory = directory.clone();
            move |error| Error::system("mount", what, error).with("directory", directory.display())
        };
        remove_left(directory.parent().unwrap_or(Path::new("/tmp")));
        if let Err(error) = std::fs::create_dir(&directory)
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(failed("cannot create the mount directory")(error));
        }
        let program = std::env::current_exe().map_err(failed("cannot determine the program's own path"))?;
        let mut command = Command::new(program);
        command.arg("mount").arg(url).arg(&directory);
        command.args(["--create", "--intercept", "--until-stdin-closes"]);
        if let Some(file) = token_file {
            command.arg("--token-file").arg(file);
        }
        // A group of its own: Ctrl-C ends the load first, and the load ends the mount.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed("cannot start the mount process"))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(failed("cannot read the output of the mount process"))?;
        }
        if line.is_empty() {
            let mut said = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                let _ = stderr.read_to_string(&mut said);
            }
            let _ = child.wait();
            let _ = std::fs::remove_dir(&directory);
            let said =
                said.lines().last().unwrap_or("the mount process ended without an error message").to_owned();
            return Err(Error::new(ErrorKind::Run, "mount", "cannot mount the file system")
                .with("target", url)
                .with("cause", said.trim_start_matches("strata: ")));
        }
        Ok(Self { child, directory, url: url.to_owned() })
    }

    /// Directory that it is mounted on.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts.
    ///
    /// # Errors
    /// When the process of the mount failed, or the mount is in use by others.
    pub(super) fn end(mut self) -> Result<(), Error> {
        self.close()
    }

    fn close(&mut self) -> Result<(), Error> {
        drop(self.child.stdin.take());
        let began = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if began.elapsed() < END_MAX => std::thread::sleep(LOOK),
                Ok(None) => {
                    return Err(Error::new(
                        ErrorKind::Run,
                        "mount",
                        "the mount is in use and cannot be unmounted",
                    )
                    .with("directory", self.directory.display())
                    .remedy("end the programs that have files on it open"));
                }
                Err(error) => return Err(Error::system("mount", "cannot wait for the mount process", error)),
            }
        };
        mount::clear_dead(&self.directory);
        let _ = std::fs::remove_dir(&self.directory);
        if status.success() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Run, "mount", "the mount process ended before the load")
            .with("status", status))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.child.stdin.is_some() {
            let _ = self.close();
        }
    }
}

/// Removes the empty directories of processes that were killed.
fn remove_left(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|id| id.parse::<i32>().ok());
        let Some(process) = process.and_then(rustix::process::Pid::from_raw) else { continue };
        if rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH) {
            mount::clear_dead(&entry.path());
            // One that is mounted on, or holds something, stays.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}
