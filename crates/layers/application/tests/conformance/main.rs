//! Conformance of the storages that layers serve to applications, whatever their objects are.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use driver::{Arena, Completions, Driver, Error, PageSize, Wait};
use layer::storage::{
    self, Dataset, ElementType, ObjectFormat, Storage, StorageCall as Call, StorageNeeds, StorageOperation,
    StorageSet,
};
use layer::{Journal, RunContext};
use serde_json::Value;
use workload::layers::Layer;
use workload::spec::Spec;

const ITEM_BYTES: u64 = 3 << 20;
const TRANSFER_BYTES: u64 = 1 << 20;

/// Keeps lists in memory.
#[derive(Default)]
struct Lists(Mutex<Vec<(&'static str, Value)>>);

impl Journal for Lists {
    fn run(&self) -> u64 {
        0x1234
    }

    fn owner(&self) -> u64 {
        7
    }

    fn note(&self, key: &'static str, made: Value) -> Result<(), Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| *known != key);
        all.push((key, made));
        Ok(())
    }

    fn noted(&self, key: &str) -> Value {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(known, _)| *known == key).map_or(Value::Null, |(_, made)| made.clone())
    }
}

/// A storage with two sets and a worker of it.
struct Harness {
    storage: Arc<dyn Storage>,
    driver: Box<dyn Driver<StorageOperation>>,
    arena: Arc<Arena>,
}

fn needs(is_renamed: bool) -> StorageNeeds {
    let array = StorageSet {
        name: "data".to_owned(),
        is_index: false,
        objects: 4,
        object_bytes: ITEM_BYTES,
        transfer_bytes: TRANSFER_BYTES,
        keys: 4,
        is_renamed,
        data_sync: false,
        format: ObjectFormat::Raw,
        datasets: Vec::new(),
        is_updated: false,
        parallel: None,
    };
    let index = StorageSet {
        name: "index".to_owned(),
        is_index: true,
        objects: 2,
        object_bytes: 32,
        transfer_bytes: 32,
        keys: 100,
        is_renamed: false,
        data_sync: true,
        format: ObjectFormat::Raw,
        datasets: Vec::new(),
        is_updated: false,
        parallel: None,
    };
    StorageNeeds {
        number: 0,
        sets: vec![array, index],
        workers: 2,
        ids_per_call: 10,
        calls: Call::ALL.to_vec(),
    }
}

impl Harness {
    fn open(target: &str, options: &[(&str, &str)], needs: &StorageNeeds) -> Self {
        layer::add(&object::Objects);
        layer::add(&filesystem::Filesystem);
        let serving = storage::find(target).unwrap();
        let mut spec = Spec { targets: vec![target.to_owned()], ..Spec::default() };
        spec.layer = Layer::of(serving.definition());
        for (name, value) in options {
            assert!(serving.storage_options().contains(name));
            workload::options::apply(&mut spec, name, value).unwrap();
        }
        let context = RunContext {
            hosts: None,
            journal: Arc::new(Lists::default()),
            interrupt: Arc::new(AtomicBool::new(false)),
            keep: false,
            tell: |_| {},
        };
        let storage = storage::open(&spec, needs, &context).unwrap();
        storage.prepare().unwrap();
        storage.prepare().unwrap();
        let arena = Arc::new(Arena::new(1, TRANSFER_BYTES as usize, PageSize::Base).unwrap());
        let opened = storage.open(0, &arena, &Arc::new(AtomicBool::new(false))).unwrap();
        Self { storage, driver: opened.driver, arena }
    }

    fn call(&mut self, operation: StorageOperation) -> i64 {
        let mut done = Completions::with_depth(1);
        let accepted = self.driver.submit(&[operation], &mut done).unwrap().accepted;
        assert_eq!(accepted, 1);
        while done.is_empty() {
            self.driver.reap(Wait::AtLeast(1), &mut done).unwrap();
        }
        done.as_slice()[0].result
    }

    fn on(&mut self, call: Call, object: u64) -> i64 {
        self.call(StorageOperation { call, object, ..of_data() })
    }

    fn buffer(&self, length: u64) -> Vec<u8> {
        let from = self.arena.slot_ptr(0);
        (0..length as usize)
            // SAFETY: the slot has so many bytes, and no operation is in flight.
            .map(|at| unsafe { from.add(at).read() })
            .collect()
    }

    fn fill(&self, byte: u8, length: u64) {
        let to = self.arena.slot_ptr(0);
        // SAFETY: the slot has so many bytes, and no operation is in flight.
        unsafe { to.write_bytes(byte, length as usize) };
    }
}

fn of_data() -> StorageOperation {
    StorageOperation {
        slot: 0,
        call: Call::Open,
        set: 0,
        object: 0,
        key: 0,
        offset_bytes: 0,
        length_bytes: 0,
    }
}

fn value(call: Call, object: u64, key: u64) -> StorageOperation {
    StorageOperation { call, set: 1, object, key, length_bytes: 32, ..of_data() }
}

/// Bytes come back where they were written, values under their keys; what is not there is told.
fn suite(target: &str, options: &[(&str, &str)], is_renamed: bool) {
    suite_of(target, options, &needs(is_renamed));
}

/// The same with these sets.
fn suite_of(target: &str, options: &[(&str, &str)], needs: &StorageNeeds) {
    let is_renamed = needs.sets[0].is_renamed;
    let mut harness = Harness::open(target, options, needs);
    let facts = harness.storage.facts();
    let skips = |call: Call| facts.left_out.contains(&call) || facts.refused.contains(&call);
    assert!(!facts.only_whole, "{target}");
    for call in [Call::OpenContainer, Call::AllocateIds] {
        assert!(skips(call) || harness.on(call, 0) >= 0, "{target} {call:?}");
    }
    for object in 0..3 {
        assert!(skips(Call::Create) || harness.on(Call::Create, object) >= 0, "{target}");
        for part in [2u64, 0, 1] {
            let offset_bytes = part * TRANSFER_BYTES;
            harness.fill((object * 8 + part + 1) as u8, TRANSFER_BYTES);
            let write = StorageOperation {
                call: Call::Write,
                object,
                offset_bytes,
                length_bytes: TRANSFER_BYTES,
                ..of_data()
            };
            assert_eq!(harness.call(write), TRANSFER_BYTES as i64, "{target}");
        }
        for call in [Call::Sync, Call::Close] {
            assert!(skips(call) || harness.on(call, object) >= 0, "{target} {call:?}");
        }
        if is_renamed {
            assert_eq!(harness.on(Call::Open, object), -i64::from(libc::ENOENT), "it has no name yet");
            assert_eq!(harness.on(Call::Rename, object), 0, "{target}");
        }
    }
    for object in 0..3 {
        assert!(skips(Call::Open) || harness.on(Call::Open, object) >= 0, "{target}");
        for part in 0..3u64 {
            let offset_bytes = part * TRANSFER_BYTES;
            let read = StorageOperation {
                call: Call::Read,
                object,
                offset_bytes,
                length_bytes: TRANSFER_BYTES,
                ..of_data()
            };
            assert_eq!(harness.call(read), TRANSFER_BYTES as i64, "{target}");
            let expected = (object * 8 + part + 1) as u8;
            assert!(
                harness.buffer(TRANSFER_BYTES).iter().all(|&byte| byte == expected),
                "{target} {object} {part}"
            );
        }
        assert!(skips(Call::Close) || harness.on(Call::Close, object) >= 0, "{target}");
        assert!(harness.on(Call::Stat, object) >= 0, "{target}");
    }
    for (object, key) in [(0, 5), (1, 5), (1, 99)] {
        harness.fill((object * 50 + key % 50) as u8, 32);
        assert_eq!(harness.call(value(Call::Put, object, key)), 32, "{target}");
    }
    for (object, key) in [(1, 99), (0, 5), (1, 5)] {
        assert_eq!(harness.call(value(Call::Get, object, key)), 32, "{target}");
        assert_eq!(harness.buffer(32), [(object * 50 + key % 50) as u8; 32], "{target}");
    }
    assert_eq!(harness.call(value(Call::Get, 0, 99)), -i64::from(libc::ENOENT), "{target}");
    assert_eq!(harness.call(value(Call::List, 1, 0)), 2, "{target}");
    assert!(harness.on(Call::Remove, 1) >= 0, "{target}");
    let name = harness.storage.name(&value(Call::Get, 1, 99));
    assert!(name.contains(target) && name.contains("99"), "{name}");
    let Harness { storage, driver, .. } = harness;
    drop(driver);
    storage.end().unwrap();
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn files_of_this_machine() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = scratch.path().display().to_string();
    for is_renamed in [false, true] {
        suite(&target, &[], is_renamed);
        suite(&target, &[("direct", "true")], is_renamed);
    }
    assert!(is_empty(scratch.path()), "what the run made is removed");
}

#[test]
fn hdf5_files() {
    if let Err(missing) = hdf5::Hdf5::get() {
        return eprintln!("skipped: hdf5_files: {missing}");
    }
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = scratch.path().display().to_string();
    let element = [ElementType::Float32, ElementType::Int64, ElementType::Uint8];
    for (is_renamed, count) in [(false, 3), (true, 1)] {
        let mut needs = needs(is_renamed);
        needs.sets[0].format = ObjectFormat::Hdf5;
        needs.sets[0].datasets =
            (0..count).map(|at| Dataset { name: format!("d{at}"), element: element[at] }).collect();
        suite_of(&target, &[], &needs);
    }
    assert!(is_empty(scratch.path()), "what the run made is removed");
}

#[test]
fn the_embedded_store_and_files_over_it() {
    let scratch = tempfile::tempdir().unwrap();
    let target = format!("vos:{}", scratch.path().join("store").display());
    suite(&target, &[], false);
    suite(&target, &[("store-targets", "2"), ("class", "SX"), ("durability", "batch")], false);
    assert!(is_empty(scratch.path()), "the pool that the run made is removed");
}
