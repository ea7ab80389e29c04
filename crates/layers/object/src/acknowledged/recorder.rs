//! Writing the file, beside the run.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use driver::{Clock, Error, Fault, HostClock};
use parking_lot::Mutex;

use super::line::{Entry, FORMAT, seal};
use crate::ObjectOperation;
use crate::plan::ObjectPlan;

/// Updates that wait to be written at most: so many are lost at most when the process is killed.
pub(super) const WAITING_MAX: usize = 16_384;
/// Time that an update waits to be written at most, while the writer gets its turn.
const WRITE_EVERY: Duration = Duration::from_millis(10);

/// Cost of the file so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Updates.
    pub updates: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Time of the thread that writes it, in nanoseconds.
    pub write_ns: u64,
    /// Time that workers waited for it, in nanoseconds: outside latencies.
    pub waited_ns: u64,
}

impl std::ops::Sub for Cost {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            updates: self.updates - before.updates,
            bytes: self.bytes - before.bytes,
            write_ns: self.write_ns - before.write_ns,
            waited_ns: self.waited_ns - before.waited_ns,
        }
    }
}

/// State that workers and the writing thread share.
struct Shared {
    path: PathBuf,
    waiting: ArrayQueue<Entry>,
    file: Mutex<File>,
    failure: OnceLock<String>,
    ends: AtomicBool,
    taken: AtomicU64,
    written: AtomicU64,
    bytes: AtomicU64,
    write_ns: AtomicU64,
    waited_ns: AtomicU64,
    phases: AtomicU64,
}

/// The file of a run, shared by its workers.
pub struct Recorder {
    shared: Arc<Shared>,
    writer: Thread,
    thread: Mutex<Option<JoinHandle<()>>>,
    clock: HostClock,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

fn failed(what: &'static str, path: &Path, error: std::io::Error) -> Error {
    let is_there = error.kind() == std::io::ErrorKind::AlreadyExists;
    let error = Error::system("acknowledged", what, error).with("path", path.display());
    error.remedy(if is_there {
        "use another file, or remove this one: strata does not overwrite the acknowledged updates of an earlier run"
    } else {
        "use a writable file on a file system with free space"
    })
}

impl Recorder {
    /// Makes the file of a run.
    ///
    /// # Errors
    /// There is such a file already, or it cannot be made.
    pub fn create(path: &Path, run: u64, target: &str) -> Result<Self, Error> {
        let file = File::options().write(true).create_new(true).open(path);
        let mut file =
            file.map_err(|error| failed("cannot create the file of acknowledged updates", path, error))?;
        let mut text = format!("{FORMAT}\n");
        for line in [format!("run {run:016x}"), format!("target {}", units::without_password(target))] {
            let from = text.len();
            text.push_str(&line);
            seal(&mut text, from);
        }
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| failed("cannot write acknowledged updates", path, error))?;
        let shared = Arc::new(Shared {
            path: path.to_path_buf(),
            waiting: ArrayQueue::new(WAITING_MAX),
            file: Mutex::new(file),
            failure: OnceLock::new(),
            ends: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            written: AtomicU64::new(0),
            bytes: AtomicU64::new(text.len() as u64),
            write_ns: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            phases: AtomicU64::new(0),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("acknowledged".to_owned())
            .spawn(move || own.write_all())
            .map_err(|error| {
                failed("cannot start the thread that writes acknowledged updates", path, error)
            })?;
        Ok(Self {
            shared,
            writer: thread.thread().clone(),
            thread: Mutex::new(Some(thread)),
            clock: HostClock::get(),
        })
    }

    /// Begins a phase: its number in the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin_phase(&self, plan: &ObjectPlan) -> Result<u32, Error> {
        let number = self.shared.phases.fetch_add(1, Ordering::Relaxed);
        let json = serde_json::to_string(plan)
            .map_err(|error| Error::new(driver::ErrorKind::Run, "acknowledged", error.to_string()))?;
        let mut text = format!("phase {number} {json}");
        seal(&mut text, 0);
        let written = self.shared.file.lock().write_all(text.as_bytes());
        written.map_err(|error| failed("cannot write acknowledged updates", &self.shared.path, error))?;
        self.shared.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        Ok(number as u32)
    }

    /// Now, on the clock of the entries.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Takes an update that was acknowledged. Waits where more are waiting than the writer keeps up with.
    ///
    /// # Errors
    /// The file cannot be written any more.
    pub fn acknowledge(
        &self,
        (phase, worker): (u32, u32),
        operation: &ObjectOperation,
        write: u64,
        begun_ns: u64,
    ) -> Result<(), Fault> {
        let acknowledged_ns = self.now_ns();
        let mut entry = Entry { phase, worker, operation: *operation, write, begun_ns, acknowledged_ns };
        let shared = &*self.shared;
        loop {
            if let Some(why) = shared.failure.get() {
                return Err(Fault { cause: "not_recorded", detail: why.clone() });
            }
            match shared.waiting.push(entry) {
                Ok(()) => break,
                Err(back) => entry = back,
            }
            self.writer.unpark();
            std::thread::yield_now();
            let now = self.now_ns();
            shared.waited_ns.fetch_add(now.saturating_sub(entry.acknowledged_ns), Ordering::Relaxed);
            entry.acknowledged_ns = now;
        }
        shared.taken.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Waits until all that was taken is in the file, and durable. What it has cost so far.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn settle(&self) -> Result<Cost, Error> {
        let shared = &*self.shared;
        while shared.written.load(Ordering::Acquire) < shared.taken.load(Ordering::Acquire)
            && shared.failure.get().is_none()
        {
            self.writer.unpark();
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(why) = shared.failure.get() {
            return Err(Error::new(driver::ErrorKind::System, "acknowledged", why.clone())
                .remedy("use a file on a file system with free space: later updates are not recorded"));
        }
        let synced = shared.file.lock().sync_data();
        synced.map_err(|error| failed("cannot sync acknowledged updates", &shared.path, error))?;
        Ok(self.cost())
    }

    /// Cost of the file so far.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let shared = &*self.shared;
        Cost {
            updates: load(&shared.written),
            bytes: load(&shared.bytes),
            write_ns: load(&shared.write_ns),
            waited_ns: load(&shared.waited_ns),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.writer.unpark();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Loop of the thread: writes the lines that wait, and sleeps.
    fn write_all(&self) {
        let mut text = String::with_capacity(1 << 20);
        loop {
            let ends = self.ends.load(Ordering::Acquire);
            let begin = Instant::now();
            let mut count = 0;
            while let Some(entry) = self.waiting.pop() {
                entry.write_to(&mut text);
                count += 1;
                if text.len() >= 1 << 20 {
                    break;
                }
            }
            if count > 0 && !self.put(&mut text, count, begin) {
                return;
            }
            if count == 0 {
                if ends {
                    return;
                }
                std::thread::park_timeout(WRITE_EVERY);
            }
        }
    }

    /// Writes lines; false where that failed for good.
    fn put(&self, text: &mut String, count: u64, begin: Instant) -> bool {
        let written = self.file.lock().write_all(text.as_bytes());
        if let Err(error) = written {
            let why = format!("cannot write acknowledged updates to {}: {error}", self.path.display());
            let _ = self.failure.set(why);
            return false;
        }
        self.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        self.write_ns.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.written.fetch_add(count, Ordering::Release);
        text.clear();
        true
    }
}
