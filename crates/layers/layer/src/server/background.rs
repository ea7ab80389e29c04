//! A server process that goes on in the background: the same command once more, in a session of its own. The first process waits until
//! that one serves, passes its first line on and ends.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use driver::{Error, ErrorKind};
use units::path_of;

/// Set in the environment of the process that goes on.
const DETACHED: &str = "STRATA_ENGINE_DETACHED";
/// Number of the process that a server process must not outlive, in its environment.
const KEEPER: &str = "STRATA_ENGINE_KEEPER";
/// Longest wait for a server process to serve.
const READY_WAIT: Duration = Duration::from_secs(60);

/// Whether this process is the one that goes on in the background.
pub fn is_detached() -> bool {
    std::env::var_os(DETACHED).is_some()
}

/// The command that starts a server process of this binary, to be ended when this process ends, however it does.
///
/// # Errors
/// When the binary cannot be found.
pub fn kept_command() -> Result<Command, Error> {
    let mut command = Command::new(binary()?);
    // Ctrl-C at the terminal is for this process: it ends the server when it is done.
    command.env(KEEPER, std::process::id().to_string()).process_group(0).stdin(Stdio::piped());
    Ok(command)
}

fn binary() -> Result<std::path::PathBuf, Error> {
    std::env::current_exe()
        .map_err(|error| Error::system("engine", "cannot find the executable of this process", error))
}

/// Takes the place that the environment says: a session of its own, or the same end as another process.
///
/// # Errors
/// When the kernel refuses.
pub fn settle() -> Result<(), Error> {
    if is_detached() {
        rustix::process::setsid()
            .map_err(|error| Error::system("engine", "cannot leave the terminal session", error))?;
    }
    let keeper = std::env::var(KEEPER).ok().and_then(|number| number.parse::<i32>().ok());
    if let Some(keeper) = keeper {
        let signal = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(signal)
            .map_err(|error| Error::system("engine", "cannot tie the process to its parent", error))?;
        let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
        if parent != Some(keeper) {
            return Err(Error::new(ErrorKind::Run, "engine", "the process that started it no longer exists"));
        }
    }
    Ok(())
}

/// Starts the command again in the background, with what it says in the file at `path`, and waits until it serves.
///
/// # Errors
/// The failure it ended with, if it did not come to serve.
pub fn start(words: &[String], path: &Path) -> Result<String, Error> {
    let failed =
        |error| Error::system("engine", "cannot write the log", error).with("background", path.display());
    let mut log = OpenOptions::new().create(true).append(true).read(true).open(path).map_err(failed)?;
    let begin = log.seek(SeekFrom::End(0)).map_err(failed)?;
    let mut command = Command::new(binary()?);
    if let Some((name, rest)) = words.split_first() {
        command.arg0(&*path_of(name)).args(rest.iter().map(|word| path_of(word).into_owned()));
    }
    let mut child = command
        .env(DETACHED, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log.try_clone().map_err(failed)?)
        .spawn()
        .map_err(|error| Error::system("engine", "cannot start a process", error))?;
    match await_line(&mut child) {
        Ok(line) => Ok(line),
        Err(error) => Err(last_words(log, begin).unwrap_or(error)),
    }
}

/// Waits for the first line of a process on its standard output, with its line end. Without one the process is ended.
///
/// # Errors
/// When none came.
pub fn await_line(child: &mut Child) -> Result<String, Error> {
    let stdout = child.stdout.take();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
        // After the time is up nobody waits any more.
        let _ = sender.send(read.is_some_and(|read| read.is_ok()).then_some(line));
    });
    let line = receiver.recv_timeout(READY_WAIT).ok().flatten().filter(|line| line.ends_with('\n'));
    line.ok_or_else(|| {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        Error::new(ErrorKind::Run, "engine", format!("the engine was not ready within {READY_WAIT:?}"))
    })
}

/// The error that a process wrote last to its log.
fn last_words(mut log: File, begin: u64) -> Option<Error> {
    log.seek(SeekFrom::Start(begin)).ok()?;
    let mut text = String::new();
    log.take(1 << 20).read_to_string(&mut text).ok()?;
    last_error(&text)
}

/// The error in the last line that tells one.
pub fn last_error(text: &str) -> Option<Error> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("strata: "))?;
    let (_, message) = line.split_once(": ")?;
    Some(Error::new(ErrorKind::Run, "engine", message))
}

/// The first line went to the process that waits; from here on standard output is the log too.
///
/// # Errors
/// When the kernel refuses.
pub fn release(is_background: bool) -> Result<(), Error> {
    if !is_background {
        return Ok(());
    }
    rustix::stdio::dup2_stdout(std::io::stderr())
        .map_err(|error| Error::system("engine", "cannot redirect the output to the log", error))
}
