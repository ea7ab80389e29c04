//! Engines that die, and come back.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use object::ObjectOperation;
use object::plan::ObjectOp;
use vos::ObjectClass;

use crate::support::{Rig, object, operation, pool_in, scratch, serve, small, url};

const DIR: &str = "STRATA_TEST_ENGINE_DIR";
const MARK: &str = "serving at ";
const TARGETS: u32 = 2;

/// Not a test of its own: the process that [`Engine`] starts.
#[test]
fn serves_where_it_is_told_to() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let engine = serve(pool_in(Path::new(&dir), &small(TARGETS)), None);
    println!("\n{MARK}{}", url(&engine, "c"));
    // The pipe is closed when the test has ended, however it did.
    let _ = std::io::stdin().lines().next();
}

/// An engine in a process of its own.
struct Engine {
    child: Child,
    url: String,
    _output: BufReader<ChildStdout>,
}

impl Engine {
    fn start(dir: &Path) -> Self {
        let this = std::env::current_exe().expect("a program");
        let mut child = Command::new(this)
            .args(["--exact", "faults::serves_where_it_is_told_to", "--nocapture"])
            .env(DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        let url = loop {
            line.clear();
            assert!(output.read_line(&mut line).expect("read") > 0, "it ended without serving");
            if let Some(url) = line.trim().strip_prefix(MARK) {
                break url.to_owned();
            }
        };
        Self { child, url, _output: output }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }
}

fn plan() -> object::plan::ObjectPlan {
    let mut plan = Rig::plan(&[ObjectOp::Update, ObjectOp::Fetch], 40_000, 16);
    plan.class = ObjectClass::SX;
    // A drive that others write to may take longer for a sync than operations usually may.
    plan.options.timeout_ns = 600_000_000_000;
    plan
}

/// Size of a value, across the border of what travels in a message.
fn bytes_of(number: u64) -> u64 {
    1 + number * 331 % 40_000
}

#[test]
fn an_engine_that_is_killed_loses_nothing_that_it_has_acknowledged() {
    loses_nothing(scratch().path());
}

/// Not on tmpfs, where the system's directory for such files is on a disk: updates are in the engine's buffers until they are synced, many
/// of them with one call.
#[test]
fn nor_does_it_where_updates_wait_for_a_sync() {
    let dir = tempfile::TempDir::new().expect("a directory");
    loses_nothing(dir.path());
}

fn loses_nothing(dir: &Path) {
    let mut acknowledged = 0;
    for _ in 0..3 {
        let mut engine = Engine::start(dir);
        let mut rig = Rig::open(&engine.url, plan()).expect("a driver");
        let id = object(&plan(), 1);
        let check: Vec<_> = (0..acknowledged)
            .map(|number| operation(ObjectOp::Fetch, id, number, bytes_of(number)))
            .collect();
        for fetch in &check {
            assert_eq!(rig.run(fetch), fetch.value_bytes as i64, "{}", fetch.record);
            assert!(rig.has(fetch, fetch.record), "{}", fetch.record);
        }
        let mut failed = Vec::new();
        for round in 0.. {
            let batch: Vec<_> = (0..16_u32)
                .map(|slot| {
                    let number = acknowledged + u64::from(slot);
                    ObjectOperation { slot, ..operation(ObjectOp::Update, id, number, bytes_of(number)) }
                })
                .collect();
            batch.iter().for_each(|update| rig.fill(update, update.record));
            if round == 5 {
                engine.child.kill().expect("it is ours");
            }
            let results = rig.run_all(&batch);
            let whole = results
                .iter()
                .zip(&batch)
                .take_while(|(result, update)| **result == update.value_bytes as i64);
            let whole = whole.count();
            acknowledged += whole as u64;
            failed.extend(results.into_iter().filter(|&result| result < 0));
            if whole < batch.len() {
                break;
            }
            assert!(round < 100_000, "nobody noticed that it is gone");
        }
        let known = [libc::ECONNRESET, libc::EPIPE, libc::ECONNREFUSED].map(|errno| -i64::from(errno));
        assert!(failed.iter().all(|result| known.contains(result)), "{failed:?}");
        let findings = rig.driver.findings();
        assert!(findings.iter().any(|line| line.contains("requests failed")), "{findings:?}");
        assert!(rig.driver.tallies().iter().any(|tally| tally.name == "failed_requests"));
    }
    assert!(acknowledged > 200);
}

#[test]
fn handles_of_an_engine_that_was_started_again_are_stale() {
    let dir = scratch();
    let pool = pool_in(dir.path(), &small(1));
    let first = serve(std::sync::Arc::clone(&pool), None);
    let target = url(&first, "c");
    let mut rig = Rig::open(&target, plan_of_one()).expect("a driver");
    let id = object(&plan_of_one(), 1);
    assert_eq!(rig.run(&operation(ObjectOp::Update, id, 0, 100)), 100);
    drop(first);
    let lost = rig.run(&operation(ObjectOp::Fetch, id, 0, 100));
    assert_eq!(lost, -i64::from(libc::ECONNRESET));
    let second = serve(pool, None);
    let mut rig = Rig::open(&url(&second, "c"), plan_of_one()).expect("a driver");
    assert_eq!(rig.run(&operation(ObjectOp::Fetch, id, 0, 100)), 100);
}

fn plan_of_one() -> object::plan::ObjectPlan {
    Rig::plan(&[ObjectOp::Update, ObjectOp::Fetch], 100, 1)
}

#[test]
fn a_copy_that_is_gone_is_passed_over() {
    let dir = scratch();
    let engine = Engine::start(dir.path());
    let mut plan = plan_of_one();
    plan.class = "RP_2G1".parse().expect("a class");
    let id = object(&plan, 1);
    let mut rig = Rig::open(&engine.url, plan).expect("a driver");
    let update = operation(ObjectOp::Update, id, 0, 100);
    rig.fill(&update, 3);
    assert_eq!(rig.run(&update), 100);
    drop(engine);
    // Both copies are gone here; nothing hangs, and the second one is asked too.
    assert!(rig.run(&operation(ObjectOp::Fetch, id, 0, 100)) < 0);
    let repaired = rig.driver.tallies().into_iter().find(|tally| tally.name == "values_repaired");
    assert_eq!(repaired.map(|tally| tally.value), Some(1.0));
}
