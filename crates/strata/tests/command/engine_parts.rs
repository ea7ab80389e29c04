//! `--split-latency` on an engine: network, queue and service; with delays of known length in each of them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use testkit::slow_link::SlowLink;

use crate::engines::Engine;
use crate::support::{Scratch, latency_ns, part, parts_ns, read_record, skipped, tool};

/// Bytes that begin a message, and the flag by which one asks for times, behind two bytes of opcode.
const MAGIC: &[u8] = b"SRP1";
const TIMED: u8 = 8;

/// A load of gets.
const GETS: &str = "--op get --dkeys 64 --value-size 4k";

/// An engine with one target, in a directory of its own.
struct Site {
    scratch: Scratch,
    engine: Engine,
    address: String,
}

impl Site {
    fn new() -> Self {
        let scratch = Scratch::new();
        let engine = Engine::start(scratch.path(), "--pool tank --dir tank --scm 128m --targets 1");
        let address = engine.uri().trim_start_matches("tcp://").to_owned();
        Self { scratch, engine, address }
    }

    /// The class of the last phase of a load at an address, and what was printed.
    fn measure(&self, address: &str, words: &str) -> (Value, String) {
        let words = format!("object engine://{address}/tank/c {words}");
        let (ended, record) = self.scratch.measure(&words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        (last_class(&record), ended.stdout + &ended.stderr)
    }

    /// With the parts timed, and latencies of all operations: what warms up is cut from latencies alone.
    fn split(&self, words: &str) -> (Value, String) {
        self.measure(&self.address, &format!("{words} --split-latency --warmup none"))
    }
}

fn last_class(record: &Value) -> Value {
    record["phases"].as_array().unwrap().last().unwrap()["summary"]["classes"][0].clone()
}

/// Parts that operations of a class had.
fn names_of(class: &Value) -> Vec<&str> {
    class["latency_parts"].as_array().unwrap().iter().map(|one| one["part"].as_str().unwrap()).collect()
}

/// Holds the parts against the latency, and counts that every operation was served.
fn assert_parts_add_up(class: &Value, operations: u64) {
    let mut names = names_of(class);
    // No operation has it where the store holds everything in memory.
    names.retain(|name| *name != "storage");
    assert!((parts_ns(class) - latency_ns(class)).abs() < 1e-3 * latency_ns(class), "{class}");
    assert_eq!(names, ["network", "queue", "service", "client"], "{class}");
    assert_eq!((part(class, "network").0, part(class, "service").0), (operations, operations), "{class}");
}

#[test]
fn parts_add_up_to_the_latency() {
    let site = Site::new();
    for words in [
        "--op put --depth 4 --count 64 --dkeys 64 --value-size 4k",
        "--op get --depth 4 --count 64 --dkeys 64 --value-size 4k",
        // As bulk.
        "--op put --depth 2 --count 64 --dkeys 64 --value-size 256k",
        "--op get --depth 2 --count 64 --dkeys 64 --value-size 256k",
        // Several requests beside each other and one after the other.
        "--op write --value array --value-size 64k --chunk-size 16k --count 64",
    ] {
        let (class, text) = site.split(words);
        assert_parts_add_up(&class, 64);
        assert!(text.contains(" service ") && text.contains("spent "), "{text}");
    }
}

/// Counts the requests that ask for times, as they are sent.
fn counting_timed() -> (Arc<AtomicU64>, impl Fn(&mut [u8]) + Send + Sync + 'static) {
    let timed = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&timed);
    let sent = move |bytes: &mut [u8]| {
        let heads = bytes.windows(8).filter(|window| window.starts_with(MAGIC) && window[6] & TIMED != 0);
        count.fetch_add(heads.count() as u64, Ordering::Relaxed);
    };
    (timed, sent)
}

#[test]
fn without_it_nobody_is_asked_for_times() {
    let site = Site::new();
    let (timed, sent) = counting_timed();
    let link = SlowLink::start_changing(&site.address, Duration::ZERO, sent, |_| {}).unwrap();
    let (class, text) = site.measure(&link.address(), &format!("{GETS} --count 20"));
    assert!(class["latency_parts"].is_null() && class["completion"].is_null(), "{class}");
    assert!(!text.contains("spent"), "{text}");
    assert_eq!(timed.load(Ordering::Relaxed), 0);
    let (class, _) = site.measure(&link.address(), &format!("{GETS} --count 20 --split-latency"));
    assert_parts_add_up(&class, 20);
    assert_eq!(timed.load(Ordering::Relaxed), 64 + 20, "filling, and the load");
}

#[test]
fn an_older_engine_is_not_asked_and_that_is_told() {
    let site = Site::new();
    let (timed, sent) = counting_timed();
    // What it says of itself has another name: older engines say nothing of times.
    let answered = |bytes: &mut [u8]| {
        let at = bytes.windows(11).position(|window| window == b"tells_parts");
        if let Some(at) = at {
            bytes[at..at + 11].copy_from_slice(b"tells_thyme");
        }
    };
    let link = SlowLink::start_changing(&site.address, Duration::ZERO, sent, answered).unwrap();
    let (class, text) = site.measure(&link.address(), &format!("{GETS} --count 20 --split-latency"));
    assert!(class["latency_parts"].is_null() && !class["completion"].is_null(), "{class}");
    assert!(text.contains("the engine has an older version that does not report its own times"), "{text}");
    assert_eq!(timed.load(Ordering::Relaxed), 0);
}

#[test]
fn a_slow_link_is_the_network() {
    let site = Site::new();
    let link = SlowLink::start(&site.address, Duration::from_millis(20)).unwrap();
    let (class, text) = site.measure(&link.address(), &format!("{GETS} --count 10 --split-latency"));
    assert_parts_add_up(&class, 10);
    let (_, network_ns) = part(&class, "network");
    assert!(network_ns >= 10.0 * 40e6 && network_ns > 0.95 * latency_ns(&class), "{class}");
    assert!(
        text.contains("% of the time in the network (the shortest round trip seen by TCP takes "),
        "{text}"
    );
}

/// strace, which delays system calls of a process until it is dropped.
struct Delays(Child);

impl Delays {
    /// Each such call of the engine takes so much longer. None where processes cannot be traced.
    fn of(engine: &Engine, call: &str, delay: Duration) -> Option<Self> {
        tool(&["strace", "-o", "/dev/null", "true"])?;
        let (trace, inject) =
            (format!("trace={call}"), format!("inject={call}:delay_enter={}", delay.as_micros()));
        let mut child = Command::new("strace")
            .args(["-f", "-e", &trace, "-e", &inject, "-p", &engine.id().to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut said = BufReader::new(child.stderr.take()?).lines().map_while(Result::ok);
        let first = said.next();
        // It must not be held up by a full pipe.
        std::thread::spawn(move || said.for_each(drop));
        let mut delays = Self(child);
        if first.is_some_and(|line| line.contains("attached")) {
            return Some(delays);
        }
        let _ = delays.0.kill();
        None
    }
}

impl Drop for Delays {
    fn drop(&mut self) {
        // It lets go of the process when it is asked to end.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Ten operations and more waited 30 ms for a drive each, and what was printed says so.
fn assert_in_drives(class: &Value, text: &str, operations: u64) {
    assert_parts_add_up(class, operations);
    let (_, storage_ns) = part(class, "storage");
    assert!(storage_ns >= 10.0 * 30e6 && storage_ns > 0.9 * latency_ns(class), "{class}");
    assert!(text.contains("% of the time in the server's drives (a network round trip"), "{text}");
}

#[test]
fn a_slow_drive_is_told_from_the_servers_own_work() {
    let site = Site::new();
    let slow = |call| Delays::of(&site.engine, call, Duration::from_millis(30));
    let Some(delays) = slow("fdatasync") else {
        return skipped("a_slow_drive_is_told_from_the_servers_own_work", "strace cannot trace here");
    };
    let (class, text) = site.split("--op put --dkeys 64 --value-size 4k --count 10");
    drop(delays);
    // The server syncs before it answers.
    assert_in_drives(&class, &text, 10);
    // More than the store holds in memory: most values are read from its files.
    site.measure(&site.address, "--op put --dkeys 400 --value-size 128k --count 400 --keep");
    let delays = slow("pread64").expect("it traced before");
    let (class, text) = site.split("--op get --dkeys 400 --value-size 128k --count 20 --keep");
    drop(delays);
    assert_in_drives(&class, &text, 20);
}

#[test]
fn a_store_in_memory_waits_for_no_drive() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let words = format!("--pool tank --dir {} --scm 256m --targets 1", memory.path().join("tank").display());
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), &words);
    let address = engine.uri().trim_start_matches("tcp://").to_owned();
    let site = Site { scratch, engine, address };
    let (class, text) = site.split("--op put --dkeys 4 --value-size 8m --checksum sha512 --count 8");
    assert_parts_add_up(&class, 8);
    assert!(!names_of(&class).contains(&"storage"), "{class}");
    assert!(text.contains("in the server's own work") || text.contains("no part dominates"), "{text}");
    assert!(!text.contains("the server's drives"), "{text}");
}

#[test]
fn a_server_that_stands_still_has_the_request_in_its_queue() {
    let site = Site::new();
    let words = format!(
        "object engine://{}/tank/c {GETS} --time 4s --rate 50 --split-latency --live-csv - --json record.json",
        site.address
    );
    let mut running = site.scratch.start(&words);
    running.await_row("get");
    site.engine.signal(rustix::process::Signal::STOP);
    std::thread::sleep(Duration::from_millis(500));
    site.engine.signal(rustix::process::Signal::CONT);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&site.scratch.join("record.json"));
    let class = last_class(&record);
    let queue =
        class["latency_parts"].as_array().unwrap().iter().find(|part| part["part"] == "queue").unwrap();
    // Its kernel had the request while it stood still, and says so; others wait in the client for their slot.
    assert!(queue["latency"]["max_ns"].as_f64().unwrap() >= 400e6, "{class}");
}

#[test]
fn the_verdict_of_a_stack_says_that_it_is_the_network() {
    // In memory, where nothing else takes as long as the link.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let words = format!("--pool tank --dir {} --scm 256m --targets 1", memory.path().join("tank").display());
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), &words);
    let link = SlowLink::start(engine.uri().trim_start_matches("tcp://"), Duration::from_millis(20)).unwrap();
    let at = link.address();
    let words = format!(
        "stack --quick --passes 2 --size 64m --dir . --stack-object engine://{at}/tank/c --json record.json"
    );
    let ended = scratch.run(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let spent = record["stack"]["verdict"]["spent"].as_str().unwrap();
    assert!(
        spent.starts_with("engine at ")
            && spent.contains("of the time in the network (the shortest round trip"),
        "{spent}"
    );
    assert!(ended.stdout.contains("spent     engine at "), "{}", ended.stdout);
    // The other rows are timed as ever.
    let phases = record["phases"].as_array().unwrap();
    let is_split = |phase: &&Value| phase["plan"]["load"]["split_latency"] == true;
    let split: Vec<&str> =
        phases.iter().filter(is_split).map(|phase| phase["plan"]["engine"].as_str().unwrap()).collect();
    assert!(!split.is_empty() && split.iter().all(|engine| *engine == "engine"), "{split:?}");
}
