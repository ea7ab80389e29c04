//! An engine that a run starts for itself: a child process on loopback that ends with this one, however this one ends.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind};
use rpc::Poll;

use super::background::{await_line, kept_command, last_error};

/// How long the engine may take to end once it was told to.
const END_WAIT: Duration = Duration::from_secs(15);

/// Options of the engine that the run starts.
#[derive(Clone, Debug, Default)]
pub struct LocalRequest<'a> {
    /// How its endpoints are reached.
    pub provider: &'a str,
    /// Its targets; 0 with a pool: as many as that has.
    pub targets: u32,
    /// Processors of its service threads; not pinned when empty.
    pub cores: Vec<u32>,
    /// How they wait.
    pub poll: Poll,
    /// File with the secret that it demands.
    pub token_file: Option<&'a Path>,
    /// The pool that it serves objects from, which is there: its directory and label.
    pub pool: Option<(&'a Path, &'a str)>,
    /// Largest payload of its messages and of its bulk transfers, in bytes.
    pub payload_bytes_max: u64,
}

/// The child process. It ends when this is dropped.
#[derive(Debug)]
pub struct LocalEngine {
    child: Mutex<Child>,
    uri: String,
}

impl LocalEngine {
    /// Starts it and waits until it serves.
    ///
    /// # Errors
    /// The failure it ended with, if it did not come to serve.
    pub fn start(request: &LocalRequest<'_>) -> Result<Self, Error> {
        let system = |what: &'static str| move |error: std::io::Error| Error::system("loopback", what, error);
        // What it says goes to a file without a name: nobody reads a pipe while the run is under way.
        let mut log = unnamed_file().map_err(system("cannot create a file for the output of the engine"))?;
        let mut command = kept_command()?;
        command
            .args(["engine", "--until-stdin-closes", "--no-attach-info", "--listen", "127.0.0.1:0"])
            .args(["--interface", "lo", "--provider", request.provider, "--poll", poll_word(request.poll)])
            .args(["--message-size-max", &request.payload_bytes_max.max(1 << 20).to_string()])
            .args(["--bulk-size-max", &request.payload_bytes_max.max(256 << 20).to_string()]);
        if request.targets > 0 || request.pool.is_none() {
            command.args(["--targets", &request.targets.to_string()]);
        }
        if !request.cores.is_empty() {
            let cores: Vec<String> = request.cores.iter().map(ToString::to_string).collect();
            command.args(["--cores", &cores.join(",")]);
        }
        if let Some(path) = request.token_file {
            command.arg("--token-file").arg(path);
        }
        if let Some((directory, label)) = request.pool {
            command.arg("--dir").arg(directory).args(["--pool", label]);
        }
        let stderr = log.try_clone().map_err(system("cannot share a file with the engine"))?;
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(system("cannot start the engine"))?;
        let line = await_line(&mut child).map_err(|error| told(&mut log).unwrap_or(error))?;
        let uri = line.split_once(" at ").and_then(|(_, rest)| rest.split([',', '\n']).next());
        let uri = uri.map(str::to_owned);
        let engine = Self { child: Mutex::new(child), uri: uri.clone().unwrap_or_default() };
        match uri {
            Some(_) => Ok(engine),
            None => Err(Error::new(ErrorKind::Run, "loopback", "the engine did not report its address")),
        }
    }

    /// Where it serves.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        let Ok(child) = self.child.get_mut() else { return };
        drop(child.stdin.take());
        let since = Instant::now();
        while since.elapsed() < END_WAIT {
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // It did not listen.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn unnamed_file() -> std::io::Result<std::fs::File> {
    let descriptor = rustix::fs::memfd_create("engine", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(descriptor.into())
}

fn told(log: &mut std::fs::File) -> Option<Error> {
    let mut text = String::new();
    log.seek(SeekFrom::Start(0)).ok()?;
    log.read_to_string(&mut text).ok()?;
    last_error(&text)
}

fn poll_word(poll: Poll) -> &'static str {
    match poll {
        Poll::Spin => "spin",
        Poll::Adaptive => "adaptive",
        Poll::Block => "block",
    }
}

/// Processors of an engine that is started here and of the workers beside it, where nobody says: the last one this process may use,
/// and the rest.
pub fn split_cores(taken: Option<&[u32]>, engine: Option<&[u32]>) -> (Vec<u32>, Vec<u32>) {
    let own = host::topology::current_affinity().unwrap_or_default();
    let engine_cores = match (engine, taken) {
        (Some(cores), _) => cores.to_vec(),
        (None, Some(taken)) => {
            own.iter().rev().find(|core| !taken.contains(core)).copied().into_iter().collect()
        }
        (None, None) if own.len() > 1 => own.last().copied().into_iter().collect(),
        (None, None) => Vec::new(),
    };
    let rest: Vec<u32> = own.into_iter().filter(|core| !engine_cores.contains(core)).collect();
    let workers = if taken.is_some() || engine_cores.is_empty() { Vec::new() } else { rest };
    (engine_cores, workers)
}
