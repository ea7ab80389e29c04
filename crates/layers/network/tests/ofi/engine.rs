//! An engine, in this process or in one of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rpc::address::Provider;
use rpc::engine::{self, EngineRequest};
use rpc::measure::Measure;
use rpc::ofi::{providers, typed_names};
use rpc::{Counters, EndpointPlan, Limits, Poll, TagMap};

/// Largest bulk that the engine allows.
pub(crate) const BULK_MAX: u64 = 16 << 20;
/// Tags of each engine.
pub(crate) const TAGS: u32 = 4;
const PROVIDER_VARIABLE: &str = "NETWORK_TEST_ENGINE";

/// Providers that can be tested over here, and those that cannot, with the cause.
pub(crate) fn tested() -> (Vec<&'static str>, Vec<String>) {
    let wanted = ["ofi+tcp", "ofi+shm"];
    let names = match providers() {
        Ok(facts) => typed_names(facts.iter().map(|facts| facts.name.as_str())),
        Err(error) => return (Vec::new(), vec![error.to_string()]),
    };
    let (there, missing): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|wanted| names.iter().any(|name| name == wanted));
    (there, missing.into_iter().map(|name| format!("libfabric has no {name}")).collect())
}

/// An engine.
pub(crate) struct Engine {
    uri: String,
    served: Option<engine::Engine>,
    process: Option<Child>,
}

impl Engine {
    /// In this process.
    pub(crate) fn start(provider: &str, poll: Poll) -> Self {
        let log = Arc::new(|line: &str| println!("engine: {line}"));
        let request = EngineRequest {
            provider: Provider::parse(provider).expect("a provider"),
            tags: TagMap::new(TAGS - 2, 0).expect("a map"),
            poll,
            limits: Limits { bulk_bytes_max: BULK_MAX, ..Limits::default() },
            interface: Some("lo".to_owned()),
            ..EngineRequest::new(Arc::new(|_| Box::new(Measure::new())), log)
        };
        let engine = engine::Engine::start(request).expect("an engine");
        Self { uri: engine.uri().to_owned(), served: Some(engine), process: None }
    }

    /// In a process of its own: this test program again, in the test that serves.
    pub(crate) fn start_process(provider: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("path"))
            .args(["--exact", "engine::serves_as_a_child_process", "--nocapture"])
            .env(PROVIDER_VARIABLE, provider)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let uri = lines
            .by_ref()
            .find_map(|line| Some(line.expect("line").split_once("engine at ")?.1.to_owned()))
            .expect("its address");
        // Whatever else it says is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { uri, served: None, process: Some(process) }
    }

    /// Its first tags.
    pub(crate) fn endpoints(&self, tags: u32) -> Vec<EndpointPlan> {
        (0..tags)
            .map(|tag| EndpointPlan { rank: 0, tag, uri: self.uri.clone(), label: format!("0:{tag}") })
            .collect()
    }

    fn counters(&self, tag: u32) -> &Counters {
        self.served.as_ref().and_then(|engine| engine.counters(tag)).expect("it is in this process")
    }

    /// Bytes of requests that a tag got.
    pub(crate) fn received_bytes(&self, tag: u32) -> u64 {
        self.counters(tag).received_bytes.load(Ordering::Relaxed)
    }

    /// Requests that a tag refused.
    pub(crate) fn errors(&self, tag: u32) -> u64 {
        self.counters(tag).errors.load(Ordering::Relaxed)
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, name: &str) {
        let process = self.process.as_ref().expect("it is a process");
        let status = Command::new("kill").arg(format!("-{name}")).arg(process.id().to_string()).status();
        assert!(status.expect("kill").success());
        // A signal is on its way for a while: a stopped process has stopped all of its threads.
        let end = Instant::now() + Duration::from_secs(10);
        while name == "STOP" && !self.is_stopped() {
            assert!(Instant::now() < end, "it does not stop");
            std::thread::yield_now();
        }
    }

    /// Ends the process without a word.
    pub(crate) fn kill(&mut self) {
        let process = self.process.as_mut().expect("it is a process");
        process.kill().expect("kills");
        process.wait().expect("ends");
        // What the shm provider of a process leaves behind that could not close it.
        for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&format!("{}:", process.id())) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn is_stopped(&self) -> bool {
        let process = self.process.as_ref().expect("it is a process");
        let tasks = std::fs::read_dir(format!("/proc/{}/task", process.id())).expect("its threads");
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// Lets the process end by itself.
    fn dismiss(&mut self) {
        let Some(process) = &mut self.process else { return };
        drop(process.stdin.take());
        let end = Instant::now() + Duration::from_secs(10);
        while matches!(process.try_wait(), Ok(None)) {
            if Instant::now() > end {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// Serves until its input closes, when it was started for that.
#[test]
fn serves_as_a_child_process() {
    let Ok(provider) = std::env::var(PROVIDER_VARIABLE) else { return };
    let engine = Engine::start(&provider, Poll::Adaptive);
    println!("engine at {}", engine.uri);
    let mut nothing = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut nothing);
}
