//! Tests of the embedded store alone: it is opened again, damaged, full, and refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libc::{EBADMSG, ENOSPC};
use object::ConnectRequest;
use object::backend::Forgetful;
use object::plan::ObjectOp::{self, Fetch, Get, Put, Update};
use object::plan::ValueKind;
use vos::{Durability, ObjectType, Pool, Redundancy};

use super::harness::{Entry, Stand, keepers};
use super::rig::{Rig, errno, key, keys, pattern, plan_of};

fn stores(operations: &'static [ObjectOp]) -> impl Iterator<Item = (Entry, Stand)> {
    let entries = keepers(operations).filter(|entry| entry.registration.name == "vos");
    entries.filter_map(|entry| entry.start().map(|stand| (entry, stand)))
}

fn directory(stand: &Stand) -> PathBuf {
    PathBuf::from(stand.target.strip_prefix("vos:").expect("a directory"))
}

fn open(entry: &Entry, backend: &std::sync::Arc<dyn object::Backend>) -> Rig {
    Rig::open(backend, &plan_of(entry, &[Put, Get], ObjectType::KvHashed, ValueKind::Single))
}

#[test]
fn a_store_that_is_opened_again_has_everything() {
    for durability in [Durability::None, Durability::Batch, Durability::Sync] {
        for (entry, mut stand) in stores(&[Put, Get]) {
            stand.options.durability = durability;
            for (turn, is_closed) in [(0, true), (1, durability != Durability::Sync), (2, true)] {
                let backend = stand.connect();
                let mut rig = open(&entry, &backend);
                for earlier in 0..turn {
                    let found = rig.load(Get, key(1, &format!("turn-{earlier}")), 70_000);
                    assert_eq!(found, (70_000, pattern(earlier, 70_000)), "{}: {durability:?}", entry.name);
                }
                let value = pattern(turn, 70_000);
                assert_eq!(rig.store(Put, key(1, &format!("turn-{turn}")), &value), 70_000, "{}", entry.name);
                drop(rig);
                // Dropped without an end it is as after a kill.
                if is_closed {
                    backend.close().expect("closed");
                }
            }
        }
    }
}

#[test]
fn pools_and_containers_that_are_not_there_are_refused() {
    for (entry, stand) in stores(&[Put, Get]).take(1) {
        let error = object::connect(&stand.request(false)).err().expect("no pool");
        assert!(error.exit_code() == 2 && error.to_string().contains("contains no pool"), "{error}");
        let backend = stand.connect();
        drop(open(&entry, &backend));
        backend.close().expect("closed");
        let backend = object::connect(&stand.request(false)).expect("a pool");
        let mut plan = plan_of(&entry, &[Get], ObjectType::KvHashed, ValueKind::Single);
        assert!(backend.prepare(&plan).is_ok());
        plan.container = "other".to_owned();
        let error = backend.prepare(&plan).expect_err("no container");
        assert!(error.exit_code() == 2 && error.to_string().contains("\"other\""), "{error}");
        plan.container = "strata".to_owned();
        plan.class = "RP_3G1".parse().expect("a class");
        let error = backend.prepare(&plan).expect_err("too few targets");
        assert!(error.to_string().contains("RP_3G1 needs 3 targets, but the store has 1"), "{error}");
        let no_directory = Stand::new("vos:".to_owned(), ());
        let error = object::connect(&no_directory.request(true)).err().expect("no directory");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn more_than_the_pool_has_is_refused() {
    for (entry, mut stand) in stores(&[Put, Get]).filter(|(entry, _)| entry.name == "vos over 8 targets") {
        let backend = stand.connect();
        drop(open(&entry, &backend));
        backend.close().expect("closed");
        let made = stand.options.clone();
        stand.options.scm_bytes *= 2;
        let error = object::connect(&stand.request(true)).err().expect("more");
        assert!(error.exit_code() == 2 && error.to_string().contains("--scm"), "{error}");
        stand.options = made.clone();
        stand.options.targets = 3;
        let error = object::connect(&stand.request(true)).err().expect("other targets");
        assert!(error.to_string().contains("has 8 targets, but 3 are requested"), "{error}");
        // Less is what there is, and said.
        stand.options = made;
        (stand.options.scm_bytes, stand.options.targets) = (stand.options.scm_bytes / 2, 1);
        let facts = stand.connect().facts();
        assert!(facts.targets == 8 && facts.notes.iter().any(|note| note.contains("--scm")), "{facts:?}");
        assert!(!facts.durable_by.is_empty());
    }
}

#[test]
fn only_what_the_run_made_is_destroyed() {
    for (entry, stand) in stores(&[Put, Get]).take(1) {
        let dir = directory(&stand);
        let backend = stand.connect();
        drop(open(&entry, &backend));
        backend.clean(&|_| ()).expect("clean");
        backend.close().expect("closed");
        assert!(!Pool::exists(&dir), "the pool was made by this run");
        let backend = stand.connect();
        drop(open(&entry, &backend));
        backend.close().expect("closed");
        let other = ConnectRequest { journal: Arc::new(Forgetful::default()), ..stand.request(true) };
        let backend = object::connect(&other).expect("a pool");
        let mut plan = plan_of(&entry, &[Put], ObjectType::KvHashed, ValueKind::Single);
        let error = backend.prepare(&plan).expect_err("the run before stores there");
        assert!(error.exit_code() == 2 && error.to_string().contains("--destroy-data"), "{error}");
        plan.container = "second".to_owned();
        drop(Rig::open(&backend, &plan));
        drop(Rig::open(&backend, &plan_of(&entry, &[Get], ObjectType::KvHashed, ValueKind::Single)));
        assert_eq!(backend.pool().expect("told").expect("a pool").containers, 2);
        backend.clean(&|_| ()).expect("clean");
        assert_eq!(backend.pool().expect("told").expect("a pool").containers, 1);
        backend.close().expect("closed");
    }
}

#[test]
fn a_full_store_says_so_and_keeps_what_it_took() {
    for (entry, mut stand) in stores(&[Put, Get]).filter(|(entry, _)| entry.name.contains("memory")) {
        stand.options.nvme_bytes = 0;
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        let mut count = 0;
        let refused = loop {
            let result = rig.store(Put, key(1, &format!("key-{count}")), &pattern(count, 1 << 20));
            if result < 0 {
                break result;
            }
            count += 1;
            assert!(count < 100, "64 MiB hold {count} MiB");
        };
        assert_eq!(refused, errno(ENOSPC), "{}", entry.name);
        assert!(count > 30, "{}: full after {count} MiB", entry.name);
        for number in 0..count {
            let found = rig.load(Get, key(1, &format!("key-{number}")), 1 << 20);
            assert!(found == (1 << 20, pattern(number, 1 << 20)), "{}: {number}", entry.name);
        }
    }
}

/// Changes one byte wherever `needle` lies in the files of a pool, but not more than `copies` times. Returns how often.
fn damage(dir: &Path, needle: &[u8], copies: usize) -> usize {
    let mut found = 0;
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path).expect("a file");
            let places: Vec<_> = memchr::memmem::find_iter(&bytes, needle).collect();
            if places.is_empty() {
                continue;
            }
            for at in places.into_iter().take(copies - found) {
                bytes[at] ^= 0x10;
                found += 1;
            }
            std::fs::write(&path, bytes).expect("written");
            if found == copies {
                return found;
            }
        }
    }
    found
}

#[test]
fn damaged_values_are_never_returned() {
    for (value_kind, size) in
        [(ValueKind::Single, 6000), (ValueKind::Array, 6000), (ValueKind::Single, 200_000)]
    {
        for (entry, stand) in stores(&[Update, Fetch]) {
            let plan = plan_of(&entry, &[Update, Fetch], ObjectType::MultiHashed, value_kind);
            let (place, value) = (keys(1, "blade-7", "akey--0"), pattern(9, size));
            let backend = stand.connect();
            let mut rig = Rig::open(&backend, &plan);
            assert_eq!(rig.store(Update, place, &value), size as i64, "{}", entry.name);
            drop(rig);
            backend.close().expect("closed");
            let shards = match entry.class.redundancy {
                Redundancy::None | Redundancy::ErasureCoded { .. } => 1,
                Redundancy::Replicated(copies) => usize::from(copies),
            };
            // The copies but the last, or the first cell.
            for lost in 1..=shards {
                assert_eq!(damage(&directory(&stand), &value[..64], 1), 1, "{}", entry.name);
                let backend = stand.connect();
                let mut rig = Rig::open(&backend, &plan);
                let (result, found) = rig.load(Fetch, place, size);
                let findings = rig.driver.findings();
                if entry.class.redundancy == Redundancy::None || (shards > 1 && lost == shards) {
                    assert_eq!(result, errno(EBADMSG), "{}", entry.name);
                } else {
                    assert!(result == size as i64 && found == value, "{}: {result}", entry.name);
                }
                let is_named = |line: &String| line.contains("dkey blade-7 akey akey--0");
                // Which copy was damaged is the file system's order: the one that is read, or one that is not.
                if result < 0 || shards == 1 {
                    assert!(findings.iter().any(is_named), "{}: {findings:?}", entry.name);
                }
                drop(rig);
                backend.close().expect("closed");
            }
        }
    }
}
