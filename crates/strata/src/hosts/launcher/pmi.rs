//! PMI-1, as MPICH's process managers and Slurm (`--mpi=pmi2`, which speaks it too) serve it: lines of `name=value` words over a descriptor that
//! each process inherits, or a port. After MPICH's `src/pmi/src/pmi_v1.c`, and Slurm's `src/plugins/mpi/pmi2/pmi1.c`.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::FdFlags;

use super::channel::Channel;
use super::{Launched, bad};

/// Longest line that is read: values have 1024 bytes at most.
const LINE_BYTES_MAX: usize = 8192;
/// Longest wait for an answer that needs no other process.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Most bytes of a name that a manager gives.
const NAME_BYTES_MAX: usize = 512;

/// Words of a line, by name.
type Words = HashMap<String, String>;

/// The process manager's key-value store.
pub(super) struct Pmi {
    rank: u32,
    line: Option<Line>,
    heard: HashMap<u32, String>,
}

/// The connection to the process manager.
struct Line {
    stream: File,
    unread: Vec<u8>,
    /// Name of the job's key-value space.
    space: String,
}

fn broken(what: &str, error: io::Error) -> Error {
    Error::system("launcher", format!("cannot {what} the process manager (PMI)"), error)
}

impl Pmi {
    pub(super) fn new(launched: &Launched) -> Self {
        Self { rank: launched.rank, line: None, heard: HashMap::new() }
    }

    fn line(&mut self) -> Result<&mut Line, Error> {
        self.line.as_mut().ok_or_else(|| Error::new(ErrorKind::Run, "launcher", "PMI was not initialised"))
    }
}

fn key(rank: u32) -> String {
    format!("strata-rank-{rank}")
}

impl Channel for Pmi {
    fn say(&mut self, text: &str, until: Instant) -> Result<(), Error> {
        let mut line = Line::open()?;
        let soon = Instant::now() + ANSWER_WAIT;
        line.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", soon)?;
        let named = line.ask("cmd=get_my_kvsname", "my_kvsname", soon)?;
        line.space = named.get("kvsname").cloned().unwrap_or_default();
        if line.space.is_empty() || line.space.len() > NAME_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::Run,
                "launcher",
                "PMI returned no name of its key-value space",
            ));
        }
        let put = format!("cmd=put kvsname={} key={} value={text}", line.space, key(self.rank));
        line.ask(&put, "put_result", soon)?;
        let met = line.ask("cmd=barrier_in", "barrier_out", until);
        self.line = Some(line);
        met.map(drop).map_err(|error| {
            if Instant::now() >= until {
                let message =
                    "not all ranks connected in time; the process manager does not report which ones";
                return Error::new(ErrorKind::Run, "launcher", message);
            }
            error
        })
    }

    fn heard(&mut self, rank: u32, _until: Instant) -> Result<Option<String>, Error> {
        if let Some(text) = self.heard.get(&rank) {
            return Ok(Some(text.clone()));
        }
        let line = self.line()?;
        let get = format!("cmd=get kvsname={} key={}", line.space, key(rank));
        let mut answer = line.ask(&get, "get_result", Instant::now() + ANSWER_WAIT)?;
        let text = answer.remove("value");
        self.heard.extend(text.clone().map(|text| (rank, text)));
        Ok(text)
    }

    fn end(&mut self) {
        if let Some(mut line) = self.line.take() {
            // A manager that is gone needs no farewell.
            let _ = line.ask("cmd=finalize", "finalize_ack", Instant::now() + ANSWER_WAIT);
        }
    }
}

impl Line {
    fn open() -> Result<Self, Error> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let of = |descriptor: OwnedFd| Self {
            stream: File::from(descriptor),
            unread: Vec::new(),
            space: String::new(),
        };
        if let Some(text) = set("PMI_FD") {
            let number = text.parse::<i32>().ok().filter(|number| *number > 2);
            let number =
                number.ok_or_else(|| bad(format!("PMI_FD={} is not a descriptor", text.escape_debug())))?;
            if !std::path::Path::new(&format!("/proc/self/fd/{number}")).exists() {
                return Err(bad(format!("PMI_FD={number}, but this process has not inherited it"))
                    .remedy("start strata by the launcher itself, or set STRATA_LAUNCHER=none"));
            }
            // SAFETY: the process manager has opened this descriptor for this process to own; nothing else in it uses it, and it is opened once.
            let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
            // Processes that this one starts are not the manager's.
            rustix::io::fcntl_setfd(&descriptor, FdFlags::CLOEXEC)
                .map_err(|errno| broken("take the descriptor of", errno.into()))?;
            return Ok(of(descriptor));
        }
        let place = set("PMI_PORT").ok_or_else(|| bad("neither PMI_FD nor PMI_PORT is set"))?;
        let stream =
            TcpStream::connect(&place).map_err(|error| broken("reach", error).with("port", &place))?;
        let mut line = of(stream.into());
        let soon = Instant::now() + ANSWER_WAIT;
        let id = set("PMI_ID").or_else(|| set("PMI_RANK")).unwrap_or_default();
        line.ask(&format!("cmd=initack pmiid={id}"), "initack", soon)?;
        // Size, rank, and whether to debug, which the environment has told.
        for _ in 0..3 {
            line.answer("set", soon)?;
        }
        Ok(line)
    }

    /// Sends a line, and reads the answer of this name.
    fn ask(&mut self, text: &str, answer: &str, until: Instant) -> Result<Words, Error> {
        self.stream.write_all(format!("{text}\n").as_bytes()).map_err(|error| broken("write to", error))?;
        self.answer(answer, until)
    }

    fn answer(&mut self, name: &str, until: Instant) -> Result<Words, Error> {
        let words = words(&self.read(until)?);
        let is_good = words.get("rc").is_none_or(|rc| rc == "0");
        if words.get("cmd").map(String::as_str) == Some(name) && is_good {
            return Ok(words);
        }
        let said = words.get("msg").or(words.get("cmd")).cloned().unwrap_or_default();
        let message = format!("the process manager (PMI) does not answer with {name}");
        Err(Error::new(ErrorKind::Run, "launcher", message).with("answer", said.escape_debug()))
    }

    fn read(&mut self, until: Instant) -> Result<String, Error> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.unread.len() > LINE_BYTES_MAX {
                return Err(broken("read from", io::Error::other("its line has no end")));
            }
            let left = until.saturating_duration_since(Instant::now());
            let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            let mut polled = [PollFd::new(&self.stream, PollFlags::IN)];
            match poll(&mut polled, Some(&wait)) {
                Ok(0) => return Err(broken("hear of", io::ErrorKind::TimedOut.into())),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(broken("wait for", errno.into())),
            }
            let mut bytes = [0; 1024];
            match self.stream.read(&mut bytes).map_err(|error| broken("read from", error))? {
                0 => return Err(broken("read from", io::ErrorKind::UnexpectedEof.into())),
                count => self.unread.extend_from_slice(&bytes[..count]),
            }
        }
    }
}

/// Words `name=value`; a message (`msg=`) may hold blanks, of which its first word is enough.
fn words(line: &str) -> Words {
    let pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_are_words_by_name() {
        let read = words("cmd=get_result rc=0 msg=success value=1,a:2,ff");
        assert_eq!(read["value"], "1,a:2,ff");
        assert_eq!(read["rc"], "0");
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "\\PC{0,64}") {
            let _ = words(&line);
        }
    }
}
