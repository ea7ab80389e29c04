//! Running the command, reading its record, and devices and mounts that go away by themselves.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;
use tempfile::TempDir;

/// Longest that a run of these tests may take; one that takes longer hangs and is killed.
const RUN_SECONDS_MAX: Duration = Duration::from_secs(120);

/// A directory on the disk that the build is on, gone at the end.
pub(crate) struct Scratch {
    directory: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Names of what is in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names_in(self.path())
    }

    /// Runs the command here and waits for its end.
    pub(crate) fn run(&self, words: &str) -> Ended {
        self.start(words).end()
    }

    /// Runs it with these words, which may hold spaces.
    pub(crate) fn run_words(&self, words: &[&str]) -> Ended {
        Running::start(self.path(), words).end()
    }

    /// Starts the command here. Words are parted by spaces.
    pub(crate) fn start(&self, words: &str) -> Running {
        Running::start(self.path(), &words.split_whitespace().collect::<Vec<_>>())
    }

    /// Starts it with variables of the environment.
    pub(crate) fn start_in(&self, words: &str, environment: &[(&str, String)]) -> Running {
        Running::start_in(self.path(), &words.split_whitespace().collect::<Vec<_>>(), environment)
    }

    /// Starts it with these words, which may hold spaces.
    pub(crate) fn start_words(&self, words: &[&str]) -> Running {
        Running::start(self.path(), words)
    }

    /// The same in an environment.
    pub(crate) fn start_words_in(&self, words: &[&str], environment: &[(&str, String)]) -> Running {
        Running::start_in(self.path(), words, environment)
    }

    /// Runs a load with `--json record.json`; how it ended, and the record, which holds to its schema.
    pub(crate) fn measure(&self, words: &str) -> (Ended, Value) {
        let ended = self.run(&format!("{words} --json record.json"));
        let record = read_record(&self.join("record.json"));
        (ended, record)
    }

    /// The same with words that may hold spaces; it must succeed.
    pub(crate) fn measured_words(&self, words: &[&str]) -> Value {
        let ended = self.run_words(&[words, &["--json", "record.json"]].concat());
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
        read_record(&self.join("record.json"))
    }

    /// Runs a load that must succeed; its record.
    pub(crate) fn measured(&self, words: &str) -> Value {
        let (ended, record) = self.measure(words);
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        assert_eq!((&record["status"], &record["failure"]), (&"complete".into(), &Value::Null), "{words}");
        record
    }
}

/// Where runs in this directory keep their manifests.
pub(crate) fn state_of(directory: &Path) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state").join(directory.file_name().unwrap_or_default())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Of a run that was killed on purpose.
        let _ = std::fs::remove_dir_all(state_of(self.path()));
    }
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; none when a signal killed it.
    pub(crate) code: Option<i32>,
    /// Standard output that was not read before.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A run under way; a hanging one is killed.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    watchdog: Sender<()>,
}

impl Running {
    fn start(directory: &Path, words: &[&str]) -> Self {
        Self::start_in(directory, words, &[])
    }

    fn start_in(directory: &Path, words: &[&str], environment: &[(&str, String)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_strata"))
            .args(words)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .env("XDG_STATE_HOME", state_of(directory))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let pid = Pid::from_child(&child);
        let (watchdog, ended) = channel();
        std::thread::spawn(move || {
            if ended.recv_timeout(RUN_SECONDS_MAX) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { child, stdout, watchdog }
    }

    /// Waits for a row of `--live-csv -` that begins with `start`, and returns it: one comes each tenth of a second.
    pub(crate) fn await_row(&mut self, start: &str) -> String {
        let mut line = String::new();
        while !line.starts_with(start) {
            line.clear();
            let count = self.stdout.read_line(&mut line).unwrap();
            assert!(count > 0, "ended before a row of {start}");
        }
        line
    }

    /// Number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a file is there, which the run makes.
    pub(crate) fn await_file(&self, path: &Path) {
        self.await_that(|| path.exists());
    }

    /// Waits until something is so that the run brings about; a run that ends without it fails the test.
    pub(crate) fn await_that(&self, is_so: impl Fn() -> bool) {
        self.await_some(|| is_so().then_some(()));
    }

    /// Waits until there is what the run brings about, and returns it; see [`Self::await_that`].
    pub(crate) fn await_some<T>(&self, look: impl Fn() -> Option<T>) -> T {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options).unwrap();
            if let Some(found) = look() {
                return found;
            }
            assert!(status.is_none(), "ended before what is waited for came about: {status:?}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the process has taken every signal that was sent to it.
    pub(crate) fn await_delivery(&self) {
        let pending = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
            let mask =
                status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap().trim().to_owned();
            mask.bytes().any(|digit| digit != b'0')
        };
        while pending() {
            std::thread::yield_now();
        }
    }

    /// Sends a second signal, after the time in which it would be a repeat of the first.
    pub(crate) fn signal_again(&self, signal: Signal) {
        self.await_delivery();
        std::thread::sleep(Duration::from_millis(700));
        self.signal(signal);
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn close_stdout(self) -> Ended {
        let Self { child, stdout, watchdog } = self;
        drop(stdout);
        end(child, None, &watchdog)
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> Ended {
        let Self { child, stdout, watchdog } = self;
        end(child, Some(stdout), &watchdog)
    }
}

fn end(child: Child, stdout: Option<BufReader<ChildStdout>>, watchdog: &Sender<()>) -> Ended {
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.map(|mut stdout| stdout.read_to_string(&mut text).unwrap());
        text
    });
    let output = child.wait_with_output().unwrap();
    // Nobody waits for it when the watchdog has struck.
    let _ = watchdog.send(());
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ended { code: output.status.code(), stdout: reader.join().unwrap(), stderr }
}

/// A record from a file; it holds to the schema that the command prints.
pub(crate) fn read_record(path: &Path) -> Value {
    parse_record(&std::fs::read_to_string(path).unwrap())
}

/// A record from its text; it holds to the schema that the command prints.
pub(crate) fn parse_record(text: &str) -> Value {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    let validator = SCHEMA.get_or_init(|| {
        let schema = Scratch::new().run("schema");
        jsonschema::validator_for(&serde_json::from_str(&schema.stdout).unwrap()).unwrap()
    });
    let record: Value = serde_json::from_str(text).unwrap();
    let wrong: Vec<_> =
        validator.iter_errors(&record).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "not by the schema: {wrong:#?}");
    record
}

/// Asserts a run that failed in the middle: exit 1, one last line that names the cause, a partial record that can be
/// shown again.
pub(crate) fn assert_partial(directory: &Scratch, ended: &Ended, record: &Value, cause: &str) {
    assert_eq!(ended.code, Some(1), "{cause}: {}", ended.stderr);
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("strata: ") && last.contains(cause), "{cause}: {}", ended.stderr);
    assert_eq!(record["status"], "partial", "{cause}");
    assert!(record["failure"].as_str().unwrap().contains(cause), "{cause}: {}", record["failure"]);
    let shown = directory.run("report record.json");
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{cause}");
    let text = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(cause), "{cause}: {}", shown.stdout);
}

/// Time of all latencies of a class together.
pub(crate) fn latency_ns(class: &Value) -> f64 {
    class["latency"]["mean_ns"].as_f64().unwrap() * class["latency"]["count"].as_f64().unwrap()
}

/// Count and whole time of a part of the latency of a class; nothing where no operation had it.
pub(crate) fn part(class: &Value, name: &str) -> (u64, f64) {
    let parts = class["latency_parts"].as_array().unwrap();
    parts
        .iter()
        .find(|part| part["part"] == name)
        .map_or((0, 0.0), |part| (part["latency"]["count"].as_u64().unwrap(), latency_ns(part)))
}

/// Time of all its parts together.
pub(crate) fn parts_ns(class: &Value) -> f64 {
    class["latency_parts"].as_array().unwrap().iter().map(latency_ns).sum()
}

/// Rows of a CSV whose fields hold no commas, by the names of their columns: new ones come at the end.
pub(crate) fn csv_rows(csv: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let header: Vec<&str> = lines.next().into_iter().flatten().collect();
    lines.map(|fields| header.iter().copied().zip(fields).collect()).collect()
}

/// Figures of a phase, all classes together.
pub(crate) fn total<'a>(record: &'a Value, phase: usize, figure: &str) -> &'a Value {
    &record["phases"][phase]["summary"]["total"][figure]
}

/// Operations and bytes of a class of a phase.
pub(crate) fn class(record: &Value, phase: usize, name: &str) -> (u64, u64) {
    let classes = record["phases"][phase]["summary"]["classes"].as_array().unwrap();
    let class = classes.iter().find(|class| class["class"] == name);
    let class = class.unwrap_or_else(|| panic!("no class {name}"));
    (class["operations"].as_u64().unwrap(), class["bytes"].as_u64().unwrap())
}

/// Runs another command; its output, or `None` when it is missing or fails.
pub(crate) fn tool(command: &[&str]) -> Option<String> {
    let output = Command::new(command[0])
        .args(&command[1..])
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Says which test cannot run here.
pub(crate) fn skipped(test: &str, reason: &str) {
    eprintln!("skipped: {test}: {reason}");
}

/// The first of up to three runs that other load did not disturb: `run` gives none where the target's own log says that the
/// machine kept it from its declared times, and nothing can be judged then.
pub(crate) fn undisturbed<T>(test: &str, mut run: impl FnMut() -> Option<T>) -> Option<T> {
    let found = (0..3).find_map(|_| run());
    if found.is_none() {
        skipped(test, "other load disturbed the target in each of three runs, as its own log says");
    }
    found
}

/// Why devices and mounts may be missing.
pub(crate) const NO_ROOT: &str = "cannot set up a loop device or a mount here";

/// A loop device.
pub(crate) struct Loop {
    pub(crate) device: String,
    pub(crate) backing: PathBuf,
}

impl Loop {
    /// Over a new sparse file in `directory`; `None` where loop devices cannot be set up.
    pub(crate) fn new(directory: &Path, size_bytes: u64) -> Option<Self> {
        let backing = directory.join("backing");
        File::create(&backing).unwrap().set_len(size_bytes).unwrap();
        Self::over(&backing, &[])
    }

    /// Over a file, with further options of losetup(8).
    pub(crate) fn over(backing: &Path, options: &[&str]) -> Option<Self> {
        let path = backing.to_str().unwrap();
        let device = tool(&[&["losetup", "--find", "--show"], options, &[path]].concat())?;
        Some(Self { device, backing: backing.to_owned() })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        tool(&["losetup", "--detach", &self.device]);
    }
}

/// A mounted file system.
pub(crate) struct Mounted {
    directory: TempDir,
}

impl Mounted {
    /// Mounts with these arguments of mount(8); `None` where it is not allowed.
    pub(crate) fn new(arguments: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let command = [&["mount"], arguments, &[directory.path().to_str().unwrap()]].concat();
        tool(&command).map(|_| Self { directory })
    }

    /// A file system in memory of this size.
    pub(crate) fn tmpfs(size: &str) -> Option<Self> {
        Self::new(&["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        tool(&["umount", self.directory.path().to_str().unwrap()]);
    }
}
