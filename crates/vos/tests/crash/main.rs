//! Kills a writer at random moments, hundreds of times: every update that it acknowledged is there, whole, and nothing is torn.

mod full;
mod writer;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vos::model::ObjectId;
use vos::{ContainerProperties, KeyPath, OpenOptions, Pool, PoolOptions, Read, StoreError};

/// Longest that a writer may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// A test process that finds these is the writer: the directory of its pool, and its first version.
const DIR: &str = "CRASH_WRITER_DIR";
const FIRST: &str = "CRASH_WRITER_FIRST";
/// Number of its keys.
const KEYS: &str = "CRASH_WRITER_KEYS";
/// Keys with a pool that is so small that what they replace has to be given back all the time.
const FEW_KEYS: u64 = 12;
const MANY_KEYS: u64 = 64;

/// Where this process is the writer, it writes until it is killed.
fn be_writer() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let (Some(dir), Some(first), Some(keys)) = (std::env::var_os(DIR), number(FIRST), number(KEYS)) {
        writer::write_until_killed(&PathBuf::from(dir), first, keys).expect("writes until it is killed");
    }
}

/// The last acknowledged update of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    Version(u64),
    /// At so many updates.
    Punched(u64),
}

/// When a writer is killed. In acknowledgements, not in time: a slow disk shortens no life.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// So many are read first; none: it is killed while it starts and opens its pool.
    acknowledged: u64,
    /// And then such a part of the time that one of them, or the way to the first, takes.
    part: f64,
}

impl Life {
    /// The lives of a test differ; `most` is what the longest acknowledges. Every eighth ends while it begins.
    fn of(kill: u64, most: u64) -> Life {
        let part = (kill * 7919 % 1000) as f64 / 1000.0;
        let acknowledged = if kill % 8 == 7 { 0 } else { 1 + (kill * 6007) % most };
        Life { acknowledged, part: if acknowledged == 0 { part } else { 2.0 * part } }
    }
}

/// Runs the writer, kills it, and returns its lines. `start` is how long the last took to its first acknowledgement.
fn run_and_kill(test: &str, pool: &Path, keys: u64, first: u64, life: Life, start: &mut Duration) -> String {
    let spawned = Instant::now();
    let mut child = Command::new(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", test, "--nocapture"])
        .env(DIR, pool)
        .env(FIRST, first.to_string())
        .env(KEYS, keys.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("this program again");
    let mut out = BufReader::with_capacity(65536, child.stdout.take().expect("piped"));
    // The reader drains the pipe, so that the writer never waits for it.
    let (arrived, acknowledgements) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        while let Ok(1..) = out.read_until(b'\n', &mut text) {
            // The test harness writes lines of its own before.
            if text.ends_with(b"\n") && text.iter().nth_back(1).is_some_and(u8::is_ascii_digit) {
                let _ = arrived.send(Instant::now());
            }
        }
        text
    });
    let (mut earliest, mut last) = (None, spawned);
    for _ in 0..life.acknowledged {
        last = acknowledgements.recv_timeout(PATIENCE).expect("an acknowledgement in time");
        earliest.get_or_insert(last);
    }
    let usual = match earliest {
        Some(earliest) => {
            *start = earliest - spawned;
            let between = u32::try_from(life.acknowledged.max(2) - 1).expect("few");
            // Of a single one, the time between two is not known.
            if life.acknowledged > 1 { (last - earliest) / between } else { *start / 100 }
        }
        None => *start,
    };
    let begin = Instant::now();
    while begin.elapsed() < usual.mul_f64(life.part) {
        std::hint::spin_loop();
    }
    assert!(child.try_wait().expect("looked at").is_none(), "the writer ended by itself");
    child.kill().expect("killed");
    child.wait().expect("waited for");
    String::from_utf8(reader.join().expect("the reader")).expect("text")
}

/// Checks one key against what was acknowledged; returns what is there.
fn check(pool: &Pool, key: u64, known: Option<Acknowledged>) -> Option<Acknowledged> {
    let container = pool.find_container("strata").expect("the container").id;
    let dkey = key.to_le_bytes();
    let place = KeyPath { container, object: ObjectId { lo: 1, hi: 0 }, dkey: &dkey, akey: b"" };
    let mut buffer = vec![0; 128 << 10];
    let found = match pool.target(0).fetch(&place, Read::Single, None, &mut buffer) {
        Ok(found) => {
            let value = &buffer[..found.bytes as usize];
            let version = u64::from_le_bytes(*value.first_chunk().expect("a version"));
            let expected = (version ^ version >> 8) as u8;
            assert!(value[8..].iter().all(|byte| *byte == expected), "key {key} is torn");
            Some(Acknowledged::Version(version))
        }
        Err(StoreError::NotFound) => None,
        Err(error) => panic!("key {key}: {error} {:?}", pool.target(0).take_findings()),
    };
    // At most one update was in flight: anything but what was acknowledged has to be newer.
    match (known, found) {
        (Some(Acknowledged::Version(known)), Some(Acknowledged::Version(found))) => {
            assert!(found >= known, "key {key}: version {known} was acknowledged, {found} is there");
        }
        (Some(Acknowledged::Punched(known)), Some(Acknowledged::Version(found))) => {
            assert!(found > known, "key {key}: it was punched at {known}, and {found} is there again");
        }
        _ => {}
    }
    found
}

/// `kills` lives, of which the longest acknowledges `most`.
fn crash(test: &str, dir: &Path, keys: u64, options: &PoolOptions, (kills, most): (u64, u64)) {
    let path = dir.join("pool");
    let pool = Pool::create(&path, options).expect("a pool");
    pool.create_container("strata", &ContainerProperties::default()).expect("a container");
    pool.close().expect("closed");
    let mut known: BTreeMap<u64, Acknowledged> = BTreeMap::new();
    let mut acknowledged = 0;
    let mut start = Duration::ZERO;
    for kill in 0..kills {
        let text = run_and_kill(test, &path, keys, (kill + 1) * 1_000_000, Life::of(kill, most), &mut start);
        // A last line that was cut is no acknowledgement.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        // The test harness writes lines of its own before the first.
        for line in whole.lines().skip_while(|line| !line.ends_with(|end: char| end.is_ascii_digit())) {
            let mut words = line.split(' ');
            let mut word = || words.next().expect("KEY WHAT VERSION");
            let (key, what, version) =
                (word().parse().expect("a key"), word(), word().parse().expect("a version"));
            let is_update = what == "updated";
            known.insert(
                key,
                if is_update { Acknowledged::Version(version) } else { Acknowledged::Punched(version) },
            );
            acknowledged += 1;
        }
        let pool = Pool::open(&path, &OpenOptions::default()).expect("opens after a kill");
        assert_eq!(pool.findings(), [""; 0], "after kill {kill}");
        let mut lost = Vec::new();
        for key in 0..keys {
            let found = check(&pool, key, known.get(&key).copied());
            match (known.get(&key), found) {
                (Some(Acknowledged::Version(version)), None) => lost.push((key, *version)),
                (_, Some(found)) => {
                    known.insert(key, found);
                }
                (_, None) => {}
            }
        }
        // One punch may have been in flight.
        assert!(lost.len() <= 1, "after kill {kill} these are gone: {lost:?}");
        for (key, version) in lost {
            known.insert(key, Acknowledged::Punched(version));
        }
        if kill % 50 == 49 {
            pool.close().expect("closed");
        }
    }
    assert!(acknowledged > kills * 2, "only {acknowledged} updates in {kills} lives");
}

fn large() -> PoolOptions {
    PoolOptions { scm_bytes: 4 << 20, ..PoolOptions::default() }
}

/// The smallest log, and a data file that is overwritten as often: however the values of all keys lie in it, one more finds a hole.
fn small() -> PoolOptions {
    PoolOptions { scm_bytes: 1 << 20, nvme_bytes: 2 << 20, threshold_bytes: 20_000, ..PoolOptions::default() }
}

#[test]
fn killed_on_memory() {
    be_writer();
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    crash("killed_on_memory", dir.path(), MANY_KEYS, &large(), (300, 2000));
}

#[test]
fn killed_on_disk() {
    be_writer();
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    crash("killed_on_disk", dir.path(), MANY_KEYS, &large(), (150, 12));
}

#[test]
fn killed_on_memory_while_it_reclaims() {
    be_writer();
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    crash("killed_on_memory_while_it_reclaims", dir.path(), FEW_KEYS, &small(), (200, 2000));
}

#[test]
fn killed_on_disk_while_it_reclaims() {
    be_writer();
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    crash("killed_on_disk_while_it_reclaims", dir.path(), FEW_KEYS, &small(), (120, 12));
}
