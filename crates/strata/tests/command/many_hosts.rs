//! Runs that several hosts carry out together: processes that the leader starts, and services.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::Error;
use fleet::{Agent, ControlRequest, ControlServer, Description, PlanMessage, Prepared, Role};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::engines::Engine;
use super::hosts::await_that;
use super::support::{Running, Scratch, assert_partial, read_record, state_of, total};

/// Longest wait for what follows from the end of a process: a host that is lost is found within 8 s, a leader that is gone within 10 s.
pub(crate) const LOST_WAIT: Duration = Duration::from_secs(20);

/// Positions of all operations of a phase, by worker.
fn positions(record: &Value, phase: usize) -> Vec<Vec<u64>> {
    let workers = record["phases"][phase]["samples"]["workers"].as_array().unwrap().iter();
    let of = |worker: &Value| {
        let kept = worker["kept"].as_array().unwrap().iter();
        let mut offsets: Vec<u64> = kept.map(|one| one["offset_bytes"].as_u64().unwrap()).collect();
        offsets.sort_unstable();
        offsets
    };
    workers.map(of).collect()
}

fn origins(record: &Value, phase: usize) -> BTreeSet<String> {
    let workers = record["phases"][phase]["samples"]["workers"].as_array().unwrap().iter();
    workers.map(|worker| worker["origin"].as_str().unwrap().to_owned()).collect()
}

/// Processes that a process has started.
pub(crate) fn children(of: u32) -> Vec<Pid> {
    let path = format!("/proc/{of}/task/{of}/children");
    let listed = fs::read_to_string(path).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

pub(crate) fn lives(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    // proc(5): the state comes after the name, which is in parentheses.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A `strata service` that ends with the test.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: String,
    pub(crate) first_line: String,
}

impl Service {
    /// One that may use the directory.
    pub(crate) fn start(scratch: &Scratch, words: &[&str]) -> Self {
        Self::start_with(scratch, &[&["--root", "."], words].concat())
    }

    /// One with these words alone.
    pub(crate) fn start_with(scratch: &Scratch, words: &[&str]) -> Self {
        let listen: &[&str] = if words.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let mut child = Command::new(env!("CARGO_BIN_EXE_strata"))
            .args(["service", "--until-stdin-closes"])
            .args(listen)
            .args(words)
            .current_dir(scratch.path())
            .env("XDG_STATE_HOME", state_of(scratch.path()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit_once(' ').unwrap().1.to_owned();
        Self { child, address, first_line: line }
    }
}

impl Service {
    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It may have been killed by the test.
        let _ = self.child.wait();
    }
}

/// A file with a token that only its owner may read.
pub(crate) fn token(scratch: &Scratch) -> String {
    let path = scratch.join("token");
    fs::write(&path, "a token of the tests alone\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[test]
fn four_hosts_touch_the_blocks_that_four_threads_touch() {
    let scratch = Scratch::new();
    let load = "media file -s 4m -b 64k --op randwrite --seed 7 --keep-operations 1000";
    let threads = scratch.measured(&format!("{load} -t 4"));
    let hosts = scratch.measured(&format!("{load} --hosts local:2 --hosts local:2"));
    assert_eq!(total(&hosts, 0, "operations"), 64);
    assert_eq!(total(&hosts, 0, "bytes"), total(&threads, 0, "bytes"));
    assert_eq!(positions(&hosts, 0), positions(&threads, 0), "each worker has its own blocks");
    assert_eq!(
        origins(&hosts, 0).into_iter().collect::<Vec<_>>(),
        ["local:0", "local:1", "local:2", "local:3"]
    );
    let place = &hosts["phases"][0]["plan"]["load"]["place"];
    assert_eq!((&place["hosts"], &place["targets"]), (&4.into(), &"shared".into()));
    let known = hosts["hosts"].as_array().unwrap();
    assert_eq!(known.len(), 4);
    for (rank, host) in known.iter().enumerate() {
        assert_eq!((host["rank"].as_u64(), &host["failure"]), (Some(rank as u64), &Value::Null));
        assert!(host["clock_error_ns"].as_u64().unwrap() > 0, "{host}");
    }
    assert_eq!(hosts["phases"][0]["host_starts"].as_array().unwrap().len(), 4);
    assert_eq!(scratch.names(), ["record.json"], "what the hosts made is gone");
    let text = scratch.run("report record.json").stdout;
    assert!(text.contains("4 hosts x 1 thread") && text.contains("by host"), "{text}");
    let rows = scratch.run("report record.json --csv --by-host").stdout;
    assert_eq!(rows.lines().filter(|row| row.starts_with("randwrite,")).count(), 4, "{rows}");
}

#[test]
fn counts_and_limits_are_of_all_hosts_together() {
    let scratch = Scratch::new();
    let record = scratch.measured("media null: --op randread --count 10001 --hosts local:3 -t 2");
    assert_eq!(total(&record, 0, "operations"), 10001);
    assert_eq!(record["phases"][0]["samples"]["workers"].as_array().unwrap().len(), 6);
    fs::write(scratch.join("data"), vec![1; 1 << 20]).unwrap();
    let own = scratch.measured("media data --op read -b 64k --hosts local:2 --host-targets own");
    assert_eq!(total(&own, 0, "operations"), 32, "each host reads the whole range");
    assert_eq!(own["phases"][0]["plan"]["load"]["place"]["targets"], "own");
    let shared = scratch.measured("media data --op read -b 64k --hosts local:2");
    assert_eq!(total(&shared, 0, "operations"), 16);
}

#[test]
fn the_first_of_the_hosts_carry_a_run_out_and_the_others_are_left_alone() {
    let scratch = Scratch::new();
    let token = token(&scratch);
    let one = Service::start(&scratch, &["--token-file", &token]);
    // Nobody listens at the last one, and nobody asks it.
    let load =
        format!("media file -s 1m -b 4k --op write --token-file {token} --hosts {},127.0.0.1:9", one.address);
    let record = scratch.measured(&format!("{load} --hosts-used 1"));
    assert_eq!(
        (origins(&record, 0), total(&record, 0, "operations")),
        (BTreeSet::from([one.address.clone()]), &256.into())
    );
    assert_eq!(
        (record["hosts"].as_array().unwrap().len(), &record["phases"][0]["plan"]["load"]["place"]["hosts"]),
        (1, &1.into())
    );
    let all = scratch.run(&load);
    assert!(all.code == Some(1) && all.stderr.contains("127.0.0.1:9"), "{}", all.stderr);

    let words = "media null: --op randread,read --count 100 --hosts local:4 --hosts-used 2";
    let record = scratch.measured(&format!("{words} --rotate-hosts 1"));
    assert_eq!(origins(&record, 0), ["local:0", "local:1"].map(str::to_owned).into());
    assert_eq!(
        (total(&record, 0, "operations"), record["phases"][1]["plan"]["load"]["place"]["rotated"].as_u64()),
        (&100.into(), Some(1))
    );
    for (words, expected) in [
        ("media null: --op read --hosts local:2 --hosts-used 3", "give 1 to 2"),
        ("media null: --op read --hosts local:2 --hosts-used 0", "from 1 to 65536"),
        (
            "media null: --op read,write --hosts local:4 --hosts-used 2 --rotate-hosts 2",
            "returns each host to its own part",
        ),
    ] {
        let refused = scratch.run(words);
        assert_eq!(refused.code, Some(2), "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{words}: {}", refused.stderr);
    }
    let head = "layer = 'media'\ntargets = ['null:']\ncount = 10\nhosts = ['local:4']\n";
    fs::write(scratch.join("job.toml"), format!("{head}hosts_used = 3\n[[phase]]\nop = 'read'\n")).unwrap();
    assert_eq!(origins(&scratch.measured("run job.toml"), 0).len(), 3);
}

#[test]
fn job_files_name_hosts_and_so_does_the_command_that_runs_them() {
    let scratch = Scratch::new();
    let phases = "[[phase]]\nop = 'write'\n[[phase]]\nop = 'randread'\ncount = 100\n";
    let head = "targets = ['file']\nsize = '1m'\nblock_size = '4k'\n";
    fs::write(scratch.join("with.toml"), format!("hosts = ['local:1', 'local:1']\n{head}{phases}")).unwrap();
    fs::write(scratch.join("without.toml"), format!("{head}{phases}")).unwrap();
    for words in ["run with.toml", "run without.toml --hosts local:2"] {
        let record = scratch.measured(words);
        assert_eq!(
            (total(&record, 0, "operations"), total(&record, 1, "operations")),
            (&256.into(), &100.into())
        );
        assert_eq!(origins(&record, 1).len(), 2, "{words}");
    }
    let one = format!("{head}[[phase]]\nop = 'write'\nhosts = ['local:2']\n[[phase]]\nop = 'read'\n");
    fs::write(scratch.join("one.toml"), one).unwrap();
    let refused = scratch.run("run one.toml");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("hosts are set for the whole run"), "{}", refused.stderr);
}

#[test]
fn services_read_back_what_the_other_has_written() {
    let scratch = Scratch::new();
    let token = token(&scratch);
    let one = Service::start(&scratch, &["--token-file", &token, "--tls"]);
    let other = Service::start(&scratch, &["--token-file", &token, "--tls"]);
    let (a, b) = (&one.address, &other.address);
    let load = format!("media file -s 2m -b 64k --verify --token-file {token} --tls");
    let wrote = scratch.measured(&format!("{load} --op write --keep --no-read-back --hosts {a},{b}"));
    assert_eq!(total(&wrote, 0, "operations"), 32);
    assert_eq!(origins(&wrote, 0), BTreeSet::from([a.clone(), b.clone()]));
    let read = scratch.measured(&format!("{load} --op read --hosts {b},{a}"));
    assert_eq!((total(&read, 0, "operations"), total(&read, 0, "errors")), (&32.into(), &0.into()));
    let mut bytes = fs::read(scratch.join("file")).unwrap();
    // In the half that the first host wrote and the other one reads.
    bytes[100_000] ^= 1;
    fs::write(scratch.join("file"), bytes).unwrap();
    let ended = scratch.run(&format!("{load} --op read --hosts {b},{a} --json record.json"));
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, &format!("host {b}: "));
    let wrong = scratch.run(&format!("media null: --op randread --hosts {a} --tls"));
    assert!(wrong.code == Some(2) && wrong.stderr.contains("token"), "{}", wrong.stderr);
}

/// A run of three hosts in the middle of its only phase, which lasts for so long.
fn in_the_middle(scratch: &Scratch, time: &str, words: &str) -> Running {
    let mut running = scratch.start(&format!(
        "media file -s 1m --op randread --time {time} --hosts local:3 --live-csv - --json record.json {words}"
    ));
    // All hosts have told something: each has a row.
    running.await_row("randread");
    while !running.await_row("randread").contains("local:2,client,1") {}
    running
}

#[test]
fn an_interrupt_ends_all_hosts_in_order() {
    let scratch = Scratch::new();
    let running = in_the_middle(&scratch, "60s", "");
    let hosts = children(running.id());
    assert_eq!(hosts.len(), 3);
    running.signal(Signal::INT);
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "interrupted");
    assert_eq!(origins(&record, 0).len(), 3);
    assert!(total(&record, 0, "operations").as_u64().unwrap() > 0);
    assert_eq!(scratch.names(), ["record.json"], "left something behind");
    assert!(hosts.into_iter().all(|host| !lives(host)));
}

#[test]
fn a_second_signal_ends_the_leader_and_the_hosts_clean_up() {
    let scratch = Scratch::new();
    let running = in_the_middle(&scratch, "60s", "");
    let hosts = children(running.id());
    // A host that does not answer keeps the leader waiting.
    kill_process(hosts[2], Signal::STOP).unwrap();
    running.signal(Signal::INT);
    running.signal_again(Signal::TERM);
    let leader = Pid::from_raw(running.id() as i32).unwrap();
    await_that("the leader ends", LOST_WAIT, || !lives(leader));
    // It holds the leader's standard error, which is read to its end.
    kill_process(hosts[2], Signal::CONT).unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    await_that("hosts end", LOST_WAIT, || !hosts.iter().any(|host| lives(*host)));
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn a_host_that_is_killed_is_named_and_the_others_keep_what_they_measured() {
    let scratch = Scratch::new();
    let running = in_the_middle(&scratch, "60s", "");
    kill_process(children(running.id())[1], Signal::KILL).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "host local:1: ");
    let elapsed_ns = record["phases"][0]["samples"]["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed_ns < 60_000_000_000, "the others were stopped");
    assert!(record["hosts"][1]["failure"].is_string() && record["hosts"][0]["failure"].is_null());
    assert_eq!(scratch.names(), ["record.json"], "rank 0 removes what all share");
}

#[test]
fn where_it_is_wished_the_others_go_on_without_a_lost_host() {
    let scratch = Scratch::new();
    let job = "targets = ['file']\nsize = '1m'\n[[phase]]\nop = 'randread'\ntime = '5s'\n\
               [[phase]]\nname = 'second'\nop = 'randread'\ncount = 90\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    let words = "run job.toml --hosts local:3 --on-host-failure continue --live-csv - --json record.json";
    let mut running = scratch.start(words);
    while !running.await_row("randread").contains("local:2,client,1") {}
    kill_process(children(running.id())[2], Signal::KILL).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "host local:2: ");
    assert_eq!(record["phases"].as_array().unwrap().len(), 2, "the run went on");
    let elapsed_ns = record["phases"][0]["samples"]["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed_ns >= 5_000_000_000, "the others had their time");
    assert_eq!(total(&record, 1, "operations"), 60, "the share of the lost host is not done");
    assert_eq!(scratch.names(), ["job.toml", "record.json"]);
}

#[test]
fn services_of_a_leader_that_was_killed_clean_up_and_take_the_next() {
    let scratch = Scratch::new();
    let services = [Service::start(&scratch, &[]), Service::start(&scratch, &[])];
    let hosts = format!("{},{}", services[0].address, services[1].address);
    let words = format!("media file -s 1m --op randread --time 60s --hosts {hosts} --live-csv -");
    let mut running = scratch.start(&words);
    running.await_row("randread");
    assert_eq!(scratch.names(), ["file"]);
    let busy = scratch.run(&format!("media null: --op randread --count 9 --hosts {hosts}"));
    assert!(busy.code == Some(1) && busy.stderr.contains("is in use by"), "{}", busy.stderr);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    await_that("services clean up", LOST_WAIT, || scratch.names().is_empty());
    let next =
        || scratch.run(&format!("media null: --op randread --count 9 --hosts {hosts}")).code == Some(0);
    await_that("services are free", LOST_WAIT, next);
}

#[test]
fn a_service_destroys_nothing_without_leave() {
    let scratch = Scratch::new();
    fs::write(scratch.join("data"), vec![7; 1 << 16]).unwrap();
    let (careful, free) = (Service::start(&scratch, &[]), Service::start(&scratch, &["--allow-destroy"]));
    let load = "media data --op write -b 4k --destroy-data --hosts";
    let refused = scratch.run(&format!("{load} {}", careful.address));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--allow-destroy") && refused.stderr.contains(&careful.address));
    assert_eq!(fs::read(scratch.join("data")).unwrap(), vec![7; 1 << 16]);
    scratch.measured(&format!("{load} {}", free.address));
    assert_ne!(fs::read(scratch.join("data")).unwrap(), vec![7; 1 << 16]);
}

#[test]
fn hosts_drive_one_engine_together_and_an_engine_is_a_host_too() {
    let scratch = Scratch::new();
    let server = Engine::start(scratch.path(), "--no-attach-info --targets 4");
    let control = server.control();
    let record = scratch.measured(&format!("net --servers {control} --count 401 --hosts local:3 -t 2"));
    assert_eq!(total(&record, 0, "operations"), 401);
    assert_eq!(origins(&record, 0).len(), 3);
    let host = Engine::start(scratch.path(), "--no-attach-info");
    let words = format!("media null: --op randread --count 100 --hosts {},local:1", host.control());
    let record = scratch.measured(&words);
    assert_eq!(total(&record, 0, "operations"), 100);
    assert!(origins(&record, 0).contains(&host.control()));
    let both = scratch.run(&format!("net --servers {control} --clients {control} --count 9 --hosts local:1"));
    assert!(both.code == Some(2) && both.stderr.contains("not both"), "{}", both.stderr);
    for option in
        ["--tls", "--hosts-used 1", "--host-targets own", "--rotate-hosts 1", "--on-host-failure stop"]
    {
        let alone = scratch.run(&format!("media null: --op randread {option}"));
        assert!(alone.code == Some(2) && alone.stderr.contains("no hosts are given"), "{}", alone.stderr);
    }
}

/// A host of another version.
struct Older;

impl Agent for Older {
    fn describe(&self) -> Description {
        Description {
            role: Role::Service,
            strata_version: "0.0.9".to_owned(),
            schema_version: 1,
            host_name: "older".to_owned(),
            pid: 1,
            rank: None,
            group: None,
            data_uri: None,
            tags: 0,
            targets: 0,
            environment: Value::Null,
        }
    }

    fn prepare(&self, _: PlanMessage, _: &Arc<AtomicBool>) -> Result<Box<dyn Prepared>, Error> {
        Err(Error::usage("prepare", "it does nothing"))
    }
}

#[test]
fn hosts_that_cannot_take_part_are_named_before_anything_is_touched() {
    let scratch = Scratch::new();
    let log = Arc::new(|_: &str| {});
    let listen = "127.0.0.1:0".to_owned();
    let request = ControlRequest { listen, secret: None, tls: false, agent: Arc::new(Older), log };
    let older = ControlServer::start(request).unwrap();
    let (address, own) = (older.address(), env!("CARGO_PKG_VERSION"));
    let version = format!("runs strata 0.0.9 (plans of version 1), this is strata {own}");
    for (hosts, code, why) in [
        (address.to_string(), 1, version.as_str()),
        ("127.0.0.1:9,local:1".to_owned(), 1, "host 127.0.0.1:9: "),
        ("local:0".to_owned(), 2, "local:N with N from 1"),
        ("node[1-".to_owned(), 2, "not closed"),
        ("a,b,a".to_owned(), 2, "is listed twice"),
        ("@missing".to_owned(), 2, "cannot read the file with hosts"),
    ] {
        let ended = scratch.run(&format!("media file -s 1m --op write --hosts {hosts}"));
        assert_eq!(ended.code, Some(code), "{hosts}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{hosts}: {}", ended.stderr);
        assert!(scratch.names().is_empty(), "{hosts}: {:?}", scratch.names());
    }
    let refused = scratch.run("media file -s 1m --op write -t 300 -b 64k --hosts local:2");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("local:0") && scratch.names().is_empty(), "{}", refused.stderr);
}

#[test]
fn more_hosts_than_open_files_are_refused_with_the_limit_to_raise() {
    let scratch = Scratch::new();
    let hosts = "127.0.1.[1-200]:9";
    let script = format!("ulimit -n 100; exec \"$0\" media null: -s 1m --op write --hosts {hosts}");
    let strata = env!("CARGO_BIN_EXE_strata");
    let mut command = Command::new("sh");
    command.args(["-c", &script, strata]).current_dir(scratch.path());
    let ended = command.env("XDG_STATE_HOME", state_of(scratch.path())).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for part in ["200 hosts require 264 open files", "hard_limit=100", "ulimit -Hn"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
