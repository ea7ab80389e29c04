//! Hosts that are processes of this machine, started for one run: they end with it, also where it is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind, Secret};
use fleet::HostAddress;

use crate::service::CONTROL_LINE;

/// Longest wait for a process to serve.
const START_WAIT: Duration = Duration::from_secs(30);
/// Longest wait for one to end by itself.
const END_WAIT: Duration = Duration::from_secs(10);
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(5);

/// Makes the command that runs this strata with other words.
pub type Program = fn(&[String]) -> Command;

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Has processes of this strata started by a command of its own, in place of the file of this process with the words.
pub(crate) fn start_by(program: Program) {
    // The first stands: there is one way to start a build.
    let _ = PROGRAM.set(program);
}

fn command(words: &[String]) -> Command {
    match PROGRAM.get() {
        Some(program) => program(words),
        None => {
            let mut command = Command::new("/proc/self/exe");
            command.args(words).arg0("strata");
            command
        }
    }
}

/// Processes that were started. They end when this is dropped.
pub(super) struct LocalHosts(Vec<Child>);

fn failed(error: std::io::Error) -> Error {
    Error::system("hosts", "cannot start a process of strata on this machine", error)
}

impl LocalHosts {
    /// Starts so many; where they serve, and the secret that they share with this process.
    ///
    /// # Errors
    /// A process that could not be started, or did not serve in time.
    pub(super) fn start(count: u32) -> Result<(Self, Vec<HostAddress>, Secret), Error> {
        let token = layer::secret::random_line()?;
        let secret = Secret::new(token.as_bytes())
            .ok_or_else(|| Error::new(ErrorKind::Run, "hosts", "the random token is too short"))?;
        let mut all = Self(Vec::new());
        let mut addresses = Vec::new();
        for _ in 0..count {
            let words = ["service", "--local"].map(str::to_owned);
            let mut child = command(&words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // A terminal's signals are the leader's to pass on.
                .process_group(0)
                .spawn()
                .map_err(failed)?;
            let told = child.stdin.as_mut().map(|stdin| writeln!(stdin, "{token}"));
            told.unwrap_or(Ok(())).map_err(failed)?;
            let lines = child.stdout.take().map(lines_of);
            all.0.push(child);
            addresses.push(lines);
        }
        let until = Instant::now() + START_WAIT;
        let addresses = addresses.into_iter().map(|lines| {
            let lines =
                lines.ok_or_else(|| Error::new(ErrorKind::Run, "hosts", "the process has no output"))?;
            address(&lines, until)
        });
        let addresses = addresses.collect::<Result<Vec<_>, Error>>()?;
        Ok((all, addresses, secret))
    }
}

impl Drop for LocalHosts {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.stdin.take());
        }
        let until = Instant::now() + END_WAIT;
        for child in &mut self.0 {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(LOOK);
            }
            // One that has ended is not there to be killed, and nobody is left to tell.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Lines of a process's output, read to its end by a thread of their own.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Once the address is known nobody listens, and the process must not wait for a reader.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// The address that a process says it serves at.
fn address(lines: &Receiver<String>, until: Instant) -> Result<HostAddress, Error> {
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some((_, address)) = line.split_once(CONTROL_LINE) {
                    return HostAddress::parse(address.trim(), 0);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(Error::new(
                    ErrorKind::Run,
                    "hosts",
                    "a process on this machine did not start serving in time",
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(
                    ErrorKind::Run,
                    "hosts",
                    "a process on this machine ended before it started serving",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_serve_is_told() {
        let (sender, lines) = channel();
        sender.send("something else".to_owned()).unwrap();
        drop(sender);
        let error = address(&lines, Instant::now() + LOOK).expect_err("it has ended").to_string();
        assert!(error.contains("ended before it started serving"), "{error}");
    }
}
