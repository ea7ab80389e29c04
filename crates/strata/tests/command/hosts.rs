//! Hosts that are network namespaces, with a switch between them whose ports can be cut, slowed and mended. Nothing of them is in the
//! machine's own namespace.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::support::{Ended, Scratch, parse_record, skipped, tool};

/// Prefix of every namespace's name; the number of the process that made it follows.
const PREFIX: &str = "strata-hosts-";
/// Longest wait for an engine's first line.
const SERVE_WAIT: Duration = Duration::from_secs(20);
/// Lines of live rows after which a load is in the middle: the header and some tenths of a second.
const ROWS_MIN: usize = 4;
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(5);

/// Runs ip(8) with words that spaces part.
fn ip(words: &str) -> Option<String> {
    tool(&std::iter::once("ip").chain(words.split_whitespace()).collect::<Vec<_>>())
}

fn must(words: &str) -> String {
    ip(words).unwrap_or_else(|| panic!("ip {words}"))
}

/// Waits until something is so; fails when it takes longer than `limit`.
pub(crate) fn await_that(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(LOOK);
    }
}

/// Removes what killed runs left behind: namespaces whose process is gone.
fn sweep() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        for name in ip("netns list").unwrap_or_default().lines().filter_map(|line| line.split(' ').next()) {
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            let process = rest.split('-').next().unwrap_or_default();
            if !Path::new("/proc").join(process).exists() {
                remove(name);
            }
        }
    });
}

/// Removes a namespace and the processes in it.
fn remove(name: &str) {
    for pid in pids(name) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
    ip(&format!("netns del {name}"));
}

fn pids(name: &str) -> Vec<Pid> {
    let listed = ip(&format!("netns pids {name}")).unwrap_or_default();
    listed.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
}

/// Hosts on one switch, and a directory that they share.
pub(crate) struct Hosts {
    pub(crate) scratch: Scratch,
    base: String,
    net: u32,
    count: u32,
}

impl Hosts {
    /// `count` hosts, with `eth0` each; `None`, and a line that says so, where they cannot be made.
    pub(crate) fn new(test: &str, count: u32) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            skipped(test, "network namespaces need root");
            return None;
        }
        if ip("-V").is_none() {
            skipped(test, "ip of iproute2 is missing");
            return None;
        }
        sweep();
        let net = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = format!("{PREFIX}{}-{net}", std::process::id());
        // Made first, so that it removes what is there when the rest fails.
        let hosts = Self { scratch: Scratch::new(), base, net, count };
        if ip(&format!("netns add {}", hosts.switch())).is_none() {
            skipped(test, "network namespaces are not allowed here");
            return None;
        }
        hosts.build();
        Some(hosts)
    }

    fn build(&self) {
        let switch = self.switch();
        must(&format!("-n {switch} link add br0 type bridge"));
        must(&format!("-n {switch} link set br0 up"));
        for host in 0..self.count {
            let name = self.name(host);
            must(&format!("netns add {name}"));
            // Both ends are made where they belong.
            must(&format!("-n {name} link add eth0 type veth peer name port{host} netns {switch}"));
            must(&format!("-n {switch} link set port{host} master br0 up"));
            must(&format!("-n {name} addr add {}/24 dev eth0", self.address(host)));
            must(&format!("-n {name} addr add {}/64 dev eth0 nodad", self.address6(host)));
            must(&format!("-n {name} link set lo up"));
            must(&format!("-n {name} link set eth0 up"));
        }
        let token = self.token();
        let file = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(token);
        file.unwrap().write_all(b"a secret of these tests\n").unwrap();
    }

    fn switch(&self) -> String {
        format!("{}-switch", self.base)
    }

    fn name(&self, host: u32) -> String {
        format!("{}-{host}", self.base)
    }

    /// IPv4 address of a host.
    pub(crate) fn address(&self, host: u32) -> String {
        format!("10.77.{}.{}", self.net % 256, host + 1)
    }

    /// IPv6 address of a host.
    pub(crate) fn address6(&self, host: u32) -> String {
        format!("fd77::{:x}:{:x}", self.net, host + 1)
    }

    /// File with the secret that all of them share.
    pub(crate) fn token(&self) -> PathBuf {
        self.scratch.join("token")
    }

    /// Cuts a host off, at its port of the switch.
    pub(crate) fn cut(&self, host: u32) {
        must(&format!("-n {} link set port{host} down", self.switch()));
    }

    /// Mends what [`Hosts::cut`] cut.
    pub(crate) fn mend(&self, host: u32) {
        must(&format!("-n {} link set port{host} up", self.switch()));
    }

    /// Slows what a host sends; `false` where tc(8) cannot.
    pub(crate) fn slow(&self, host: u32, rate: &str) -> bool {
        let words = format!(
            "-n {} qdisc add dev eth0 root tbf rate {rate} burst 64kb latency 100ms",
            self.name(host)
        );
        tool(&std::iter::once("tc").chain(words.split_whitespace()).collect::<Vec<_>>()).is_some()
    }

    /// Sets the MTU of a host's interface.
    pub(crate) fn set_mtu(&self, host: u32, mtu_bytes: u32) {
        must(&format!("-n {} link set eth0 mtu {mtu_bytes}", self.name(host)));
    }

    /// Adds another interface `eth1` on the same switch.
    pub(crate) fn add_second_interface(&self, host: u32) -> String {
        let (name, switch) = (self.name(host), self.switch());
        must(&format!("-n {name} link add eth1 type veth peer name second{host} netns {switch}"));
        must(&format!("-n {switch} link set second{host} master br0 up"));
        let address = format!("10.77.{}.{}", self.net % 256, host + 101);
        must(&format!("-n {name} addr add {address}/24 dev eth1"));
        must(&format!("-n {name} link set eth1 up"));
        address
    }

    /// Bytes that an interface of a host has sent.
    pub(crate) fn sent_bytes(&self, host: u32, interface: &str) -> u64 {
        let text = must(&format!("-n {} -j -s link show dev {interface}", self.name(host)));
        let shown: Value = serde_json::from_str(&text).unwrap();
        shown[0]["stats64"]["tx"]["bytes"].as_u64().unwrap()
    }

    fn command(&self, host: u32, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        // It becomes the command: its process is the command's.
        command.args(["netns", "exec", &self.name(host), env!("CARGO_BIN_EXE_strata")]).args(words);
        command
            .current_dir(self.scratch.path())
            .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
            .env("CRT_ATTACH_INFO_PATH", self.scratch.path())
            .env("XDG_RUNTIME_DIR", self.scratch.path())
            .env_remove("OFI_INTERFACE")
            .env_remove("OFI_DOMAIN");
        command
    }

    /// Gives a host one more address.
    pub(crate) fn add_address(&self, host: u32, address: &str) {
        must(&format!("-n {} addr add {address} dev eth0", self.name(host)));
    }

    /// A line of shell on a host, which has mounts of its own.
    pub(crate) fn shell(&self, host: u32, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host), "bash", "-c", line]);
        command
    }

    /// Starts the command on a host. Words are parted by spaces; in quotes they may hold some.
    pub(crate) fn start(&self, host: u32, words: &str) -> Process {
        let words = shlex::split(words).unwrap();
        Process::start(self.command(host, &words.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// Runs the command on a host; it must end within `limit`.
    pub(crate) fn run(&self, host: u32, limit: Duration, words: &str) -> Ended {
        self.start(host, words).end_within(limit)
    }

    /// Runs a load on a host with `--json -`, within `limit`; how it ended, and its record.
    pub(crate) fn measure(&self, host: u32, limit: Duration, words: &str) -> (Ended, Value) {
        self.start_load(host, words).record_within(limit)
    }

    /// Runs a load on a host that must succeed; its record.
    pub(crate) fn measured(&self, host: u32, limit: Duration, words: &str) -> Value {
        let (ended, record) = self.measure(host, limit, words);
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        assert_eq!(record["status"], "complete", "{words}: {}", record["failure"]);
        record
    }

    /// Starts `strata net` with the shared secret and its record on standard output.
    pub(crate) fn start_load(&self, host: u32, words: &str) -> Process {
        self.start(host, &format!("net {words} --token-file token --json -"))
    }

    /// The same, and waits until it measures: until live rows stand in its file.
    pub(crate) fn load_under_way(&self, host: u32, words: &str) -> Process {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let rows = format!("rows-{}.csv", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut load = self.start_load(host, &format!("{words} --live-csv {rows}"));
        let path = self.scratch.join(&rows);
        await_that("live rows", SERVE_WAIT, || {
            let ended = load.has_ended();
            assert!(ended.is_none(), "{words}: ended before it measured: {}", load.stderr());
            std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() >= ROWS_MIN)
        });
        load
    }

    /// Starts an engine on a host, with the shared secret, at its IPv4 address; it serves when this returns.
    pub(crate) fn engine(&self, host: u32, rank: u32, words: &str) -> Engine {
        self.engine_at(host, rank, &format!("{}:0", self.address(host)), words)
    }

    /// Starts an engine that listens elsewhere.
    pub(crate) fn engine_at(&self, host: u32, rank: u32, listen: &str, words: &str) -> Engine {
        let words = format!("engine --rank {rank} --listen {listen} --token-file token --poll block {words}");
        Engine::serving(self.start_engine(host, &words))
    }

    /// Starts an engine that may not come to serve.
    pub(crate) fn start_engine(&self, host: u32, words: &str) -> Process {
        self.start(host, &format!("{words} --until-stdin-closes"))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let listed = ip("netns list").unwrap_or_default();
        let own = format!("{}-", self.base);
        listed
            .lines()
            .filter_map(|line| line.split(' ').next())
            .filter(|name| name.starts_with(&own))
            .for_each(remove);
    }
}

/// A process that is killed when it is no longer wanted. What it says goes to files, so that it never waits for a reader.
pub(crate) struct Process {
    child: Child,
    /// The process ends when this closes, if it was told to.
    _stdin: Option<ChildStdin>,
    said: tempfile::TempDir,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let said = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = |name: &str| File::create(said.path().join(name)).unwrap();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        Self { child, _stdin: stdin, said }
    }

    fn text(&self, name: &str) -> String {
        let mut bytes = Vec::new();
        File::open(self.said.path().join(name)).unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn stdout(&self) -> String {
        self.text("stdout")
    }

    pub(crate) fn stderr(&self) -> String {
        self.text("stderr")
    }

    /// Number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until it has said something on standard output or standard error.
    pub(crate) fn await_text(&mut self, text: &str, limit: Duration) {
        let begun = Instant::now();
        loop {
            let (stdout, stderr) = (self.stdout(), self.stderr());
            if stdout.contains(text) || stderr.contains(text) {
                return;
            }
            let has_ended = self.has_ended();
            assert!(
                begun.elapsed() < limit && has_ended.is_none(),
                "no {text:?} within {limit:?} ({has_ended:?}): {stdout}\n{stderr}"
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for its end; it is killed, and the test has failed, when that takes longer than `limit`.
    pub(crate) fn end_within(mut self, limit: Duration) -> Ended {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.has_ended() {
                return Ended { code: status.code(), stdout: self.stdout(), stderr: self.stderr() };
            }
            assert!(
                begun.elapsed() < limit,
                "still runs after {limit:?}: {}\n{}",
                self.stdout(),
                self.stderr()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for the end of a load whose record goes to standard output.
    pub(crate) fn record_within(self, limit: Duration) -> (Ended, Value) {
        let ended = self.end_within(limit);
        assert!(ended.stdout.starts_with('{'), "no record: {}\n{}", ended.stdout, ended.stderr);
        let record = parse_record(&ended.stdout);
        (ended, record)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An engine that serves.
pub(crate) struct Engine {
    pub(crate) process: Process,
    /// The line that says what it serves.
    pub(crate) line: String,
}

impl Engine {
    /// Waits for the first line of an engine.
    pub(crate) fn serving(mut process: Process) -> Self {
        process.await_text("engine: rank", SERVE_WAIT);
        await_that("the whole line", SERVE_WAIT, || process.stdout().contains('\n'));
        let line = process.stdout().lines().next().unwrap_or_default().to_owned();
        Self { process, line }
    }

    fn word_after(&self, text: &str) -> &str {
        let rest = self.line.split_once(text).unwrap_or_else(|| panic!("no {text:?} in {}", self.line)).1;
        rest.split([',', ' ']).next().unwrap_or_default()
    }

    /// Where its endpoints are: `tcp://10.77.0.1:31416`.
    pub(crate) fn uri(&self) -> &str {
        self.word_after(" at ")
    }

    /// Where its endpoints are, without the scheme.
    pub(crate) fn address(&self) -> &str {
        self.uri().split_once("://").unwrap().1
    }

    /// Where it takes commands.
    pub(crate) fn control(&self) -> &str {
        self.word_after(", control ")
    }

    /// Kills it, as a machine that loses power would.
    pub(crate) fn kill(mut self) {
        self.process.signal(Signal::KILL);
        self.process.child.wait().unwrap();
    }

    /// Ends it in order; what it logged.
    pub(crate) fn end(self) -> Ended {
        self.process.signal(Signal::TERM);
        self.process.end_within(SERVE_WAIT)
    }
}

/// Largest resident memory of a process so far, in bytes.
pub(crate) fn resident_bytes_max(process: u32) -> u64 {
    let status = File::open(format!("/proc/{process}/status")).unwrap();
    let lines = BufReader::new(status).lines().map_while(Result::ok);
    let line = lines.filter_map(|line| line.strip_prefix("VmHWM:").map(str::to_owned)).next().unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}
