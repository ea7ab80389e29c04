//! Engines for tests: real processes with ports and attach info of their own.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for anything here.
const WAIT: Duration = Duration::from_secs(60);

/// A running `strata engine`; killed at the end.
pub(crate) struct Engine {
    child: Child,
    /// Its first line.
    pub(crate) line: String,
}

impl Engine {
    /// Starts one in a directory, with its attach info there, and waits until it serves.
    pub(crate) fn start(directory: &Path, words: &str) -> Self {
        Self::start_words(directory, &format!("engine --path . --poll block {words}"))
    }

    /// The same with all words given.
    pub(crate) fn start_words(directory: &Path, words: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_strata"))
            .args(words.split_whitespace())
            .current_dir(directory)
            .env_remove("OFI_INTERFACE")
            .env_remove("OFI_DOMAIN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(WAIT).unwrap_or_default();
        if line.is_empty() {
            let _ = child.kill();
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("the engine did not come to serve: {words}: {said}");
        }
        Self { child, line: line.trim_end().to_owned() }
    }

    fn after(&self, word: &str) -> String {
        let rest = self.line.split_once(word).unwrap_or_else(|| panic!("no {word}: {}", self.line)).1;
        rest.split([',', '\n']).next().unwrap().to_owned()
    }

    /// Where it takes data connections.
    pub(crate) fn uri(&self) -> String {
        self.after(" at ")
    }

    /// Where it takes commands.
    pub(crate) fn control(&self) -> String {
        self.after(", control ")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; exit code and what it said on standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(since.elapsed() < WAIT, "the engine does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a process is gone.
pub(crate) fn await_gone(pid: u32) {
    let since = Instant::now();
    let is_there = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'),
        Err(_) => false,
    };
    while is_there() {
        assert!(since.elapsed() < WAIT, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
