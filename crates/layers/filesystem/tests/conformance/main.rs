//! One suite for every driver of the file-system layer: each call does on a real directory what its name says, and fails as the system fails.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use driver::{Arena, Completions, Driver, Error, Operation, PageSize, Registration, Wait};
use filesystem::{DRIVERS, Filesystem, FsClass, FsOperation, FsPlan, NameKind, OpenRequest};
use gpu::{Stream, WorkerNotes};
use layer::memory::{DeviceRequest, WorkerMemory, WorkerNeeds};
use layer::{Journal, Measured, Planning, RunContext, Seed};
use serde_json::Value;
use workload::layers::Layer;
use workload::options;
use workload::spec::Spec;

/// Bytes of a block of the suite.
const BLOCK: usize = 4096;

struct NoJournal(Mutex<Value>);

impl Journal for NoJournal {
    fn run(&self) -> u64 {
        7
    }

    fn owner(&self) -> u64 {
        0
    }

    fn note(&self, _key: &'static str, made: Value) -> Result<(), Error> {
        *self.0.lock().unwrap() = made;
        Ok(())
    }

    fn noted(&self, _key: &str) -> Value {
        self.0.lock().unwrap().clone()
    }
}

/// The plan of one operation, as the command line would have it.
fn plan(words: &[(&str, &str)], target: &Path, depth: u32) -> FsPlan {
    Layer::add(Filesystem.definition());
    let mut spec = Spec::of_layer("filesystem").unwrap();
    spec.targets = vec![target.to_str().unwrap().to_owned()];
    spec.depth = Some(depth);
    for (name, value) in words {
        options::apply(&mut spec, name, value).unwrap();
    }
    let context = RunContext {
        journal: Arc::new(NoJournal(Mutex::new(Value::Null))),
        interrupt: Arc::new(AtomicBool::new(false)),
        keep: false,
        tell: |_| {},
        hosts: None,
    };
    let planning = Planning { before: &[], number: 0, seed: Seed::OfRun(1) };
    let phases = Filesystem.begin(&context).phases(&spec, &planning).unwrap();
    phases.last().unwrap().plan.of::<FsPlan>().unwrap().clone()
}

/// A driver on a directory, and its buffers.
struct Rig {
    driver: Box<dyn Driver<FsOperation>>,
    arena: Arc<Arena>,
    depth: u32,
    root: PathBuf,
    /// Where the buffers are on a device.
    device: Option<DeviceRequest>,
}

/// Drivers that change a file system that has paths.
fn storing() -> impl Iterator<Item = &'static Registration<FsOperation, OpenRequest>> {
    DRIVERS.iter().filter(|entry| !matches!(entry.name, "null" | "dfs"))
}

impl Rig {
    fn new(entry: &Registration<FsOperation, OpenRequest>, root: &Path, words: &[(&str, &str)]) -> Self {
        let depth = entry.capabilities.depth_max.min(8);
        let mut words: Vec<_> =
            [("engine", entry.name), ("no-fill", "true")].into_iter().chain(words.iter().copied()).collect();
        if entry.name == "cufile" {
            testkit::gpu::load(Path::new(env!("CARGO_TARGET_TMPDIR")), "compat=1");
            words.push(("memory", "gpu"));
        }
        let plan = Arc::new(plan(&words, root, depth));
        let arena = Arc::new(Arena::new(depth, BLOCK, PageSize::Base).unwrap());
        let needs =
            WorkerNeeds { memory: &plan.memory, worker: 0, depth, makes_content: false, is_of_device: false };
        let device = WorkerMemory::take(&needs, &arena, &WorkerNotes::default()).unwrap().request;
        let request = OpenRequest::new(Arc::clone(&plan), Arc::clone(&arena), Vec::new());
        let opened = (entry.open)(&request.on_device(device.clone())).unwrap();
        Self { driver: opened.driver, arena, depth, root: root.to_owned(), device }
    }

    /// Fills the first buffer.
    fn fill(&self, byte: u8) {
        // SAFETY: nothing is in flight, and the reference ends here.
        let buffer = unsafe { self.arena.slot_mut(0, BLOCK) };
        buffer.fill(byte);
        if let Some(DeviceRequest { buffers, .. }) = &self.device {
            let mut stream = Stream::new(buffers.context()).unwrap();
            // SAFETY: two buffers of that length, which are in no flight.
            unsafe { stream.copy_in(buffers.slot_address(0), buffer.as_ptr(), BLOCK) }.unwrap();
            stream.wait().unwrap();
        }
    }

    /// The bytes of the first buffer.
    fn bytes(&self) -> Vec<u8> {
        // SAFETY: as for `fill`.
        let buffer = unsafe { self.arena.slot_mut(0, BLOCK) };
        if let Some(DeviceRequest { buffers, .. }) = &self.device {
            let mut stream = Stream::new(buffers.context()).unwrap();
            // SAFETY: as for `fill`.
            unsafe { stream.copy_out(buffer.as_mut_ptr(), buffers.slot_address(0), BLOCK) }.unwrap();
            stream.wait().unwrap();
        }
        buffer.to_vec()
    }

    /// Carries operations out; their results in the order of their slots.
    fn run(&mut self, operations: &[FsOperation]) -> Vec<i64> {
        let mut done = Completions::with_depth(self.depth);
        let mut at = 0;
        while at < operations.len() {
            at += self.driver.submit(&operations[at..], &mut done).unwrap().accepted;
            self.driver.reap(Wait::None, &mut done).unwrap();
        }
        while done.len() < operations.len() {
            self.driver.reap(Wait::AtLeast(1), &mut done).unwrap();
        }
        let mut found: Vec<_> = done.as_slice().to_vec();
        found.sort_by_key(|completion| completion.slot);
        found.iter().map(|completion| completion.result).collect()
    }

    fn one(&mut self, class: FsClass, kind: NameKind, item: u64) -> i64 {
        self.run(&[operation(class, kind, item)])[0]
    }

    fn file(&mut self, class: FsClass) -> i64 {
        self.one(class, NameKind::File, 0)
    }

    fn second(&mut self, class: FsClass) -> i64 {
        self.run(&[FsOperation { is_second: true, ..operation(class, NameKind::File, 0) }])[0]
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join("strata/w0/d1").join(name)
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.root.join("strata/w0/d1")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn operation(class: FsClass, kind: NameKind, item: u64) -> FsOperation {
    FsOperation {
        class,
        kind,
        is_first: false,
        is_last: false,
        is_second: false,
        slot: 0,
        handle: 0,
        rank: 0,
        item,
        offset_bytes: 0,
        length_bytes: BLOCK as u32,
    }
}

fn errno(number: i32) -> i64 {
    -i64::from(number)
}

fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(scratch.path().join("strata/w0/d1")).unwrap();
    scratch
}

const EMPTY: &[i64] = &[];

#[test]
fn registered_drivers_make_sense() {
    let names = DRIVERS.iter().map(|entry| entry.name);
    testkit::assert_every_driver_file_is_registered(env!("CARGO_MANIFEST_DIR"), names);
    for entry in DRIVERS {
        assert!(!entry.summary.is_empty() && !entry.summary.contains('\n'), "{}", entry.name);
        let classes = entry.capabilities.classes;
        assert!(classes.iter().all(|class| FsOperation::CLASSES.contains(class)), "{}", entry.name);
        assert!(classes == FsOperation::CLASSES || entry.name == "dfs", "{}", entry.name);
        assert!(entry.capabilities.asynchronous || entry.capabilities.depth_max == 1);
    }
}

#[test]
fn files_are_made_written_read_and_removed() {
    for entry in storing() {
        let scratch = scratch();
        let mut rig = Rig::new(entry, scratch.path(), &[("op", "write"), ("file-size", "4k")]);
        assert_eq!(rig.file(FsClass::Create), 0, "{}", entry.name);
        rig.fill(9);
        assert_eq!(rig.file(FsClass::Write), BLOCK as i64);
        assert_eq!((rig.file(FsClass::Fsync), rig.file(FsClass::Close)), (0, 0));
        assert_eq!(std::fs::read(rig.path("f0.0")).unwrap(), vec![9; BLOCK]);
        std::fs::write(rig.path("f0.0"), vec![5; BLOCK]).unwrap();
        assert_eq!((rig.file(FsClass::Open), rig.file(FsClass::Read)), (0, BLOCK as i64));
        assert!(rig.bytes().iter().all(|&byte| byte == 5));
        let beyond = FsOperation { offset_bytes: 4000, ..operation(FsClass::Read, NameKind::File, 0) };
        assert_eq!(rig.run(&[beyond]), [96], "a short read at the end");
        assert_eq!(
            (rig.file(FsClass::Fadvise), rig.file(FsClass::Lock), rig.file(FsClass::Unlock)),
            (0, 0, 0)
        );
        assert_eq!(rig.file(FsClass::Truncate), 0);
        assert_eq!(std::fs::metadata(rig.path("f0.0")).unwrap().len(), 2048);
        assert_eq!(rig.second(FsClass::Truncate), 0);
        assert_eq!(std::fs::metadata(rig.path("f0.0")).unwrap().len(), 4096);
        assert_eq!((rig.file(FsClass::Close), rig.file(FsClass::Stat), rig.file(FsClass::Unlink)), (0, 0, 0));
        assert!(rig.names().is_empty());
    }
}

#[test]
fn second_names_and_attributes_come_and_go() {
    for entry in storing() {
        let scratch = scratch();
        let mut rig = Rig::new(entry, scratch.path(), &[("op", "rename")]);
        assert_eq!(rig.file(FsClass::Mknod), 0, "{}", entry.name);
        assert_eq!(rig.second(FsClass::Rename), 0);
        assert_eq!(rig.names(), BTreeSet::from(["f0.0~".to_owned()]));
        assert_eq!(rig.file(FsClass::Rename), 0);
        assert_eq!(rig.second(FsClass::Link), 0);
        assert_eq!(rig.names().len(), 2);
        assert_eq!(rig.second(FsClass::Unlink), 0);
        assert_eq!((rig.second(FsClass::Symlink), rig.second(FsClass::Readlink)), (0, 0));
        assert_eq!(std::fs::read_link(rig.path("f0.0~")).unwrap(), Path::new("f0.0"));
        assert_eq!(rig.second(FsClass::Unlink), 0);
        assert_eq!(rig.names(), BTreeSet::from(["f0.0".to_owned()]));
        let set = rig.file(FsClass::Setxattr);
        if set == errno(libc_eopnotsupp()) {
            println!("skipped: the file system has no extended attributes");
            continue;
        }
        assert_eq!((set, rig.file(FsClass::Getxattr), rig.file(FsClass::Removexattr)), (0, 0, 0));
        assert_eq!(rig.file(FsClass::Getxattr), errno(61), "it is gone: ENODATA");
    }
}

fn libc_eopnotsupp() -> i32 {
    95
}

#[test]
fn directories_are_made_listed_and_removed() {
    for entry in storing() {
        let scratch = scratch();
        let mut rig = Rig::new(entry, scratch.path(), &[("op", "mkdir")]);
        assert_eq!(rig.one(FsClass::Mkdir, NameKind::Directory, 3), 0, "{}", entry.name);
        assert_eq!(rig.names(), BTreeSet::from(["D0.3".to_owned()]));
        assert_eq!(rig.one(FsClass::Stat, NameKind::Directory, 3), 0);
        assert_eq!(rig.one(FsClass::Mkdir, NameKind::Directory, 3), errno(17), "EEXIST");
        assert_eq!(rig.one(FsClass::Readdir, NameKind::Node, 1), 1, "one entry");
        assert_eq!(rig.one(FsClass::Rmdir, NameKind::Node, 1), errno(39), "ENOTEMPTY");
        assert_eq!(rig.one(FsClass::Rmdir, NameKind::Directory, 3), 0);
        assert_eq!(rig.one(FsClass::Rmdir, NameKind::Node, 1), 0);
        assert_eq!(rig.one(FsClass::Mkdir, NameKind::Node, 1), 0);
        assert_eq!(rig.one(FsClass::Readdir, NameKind::Node, 1), 0);
    }
}

#[test]
fn calls_fail_as_the_system_fails() {
    for entry in storing() {
        let scratch = scratch();
        let mut rig = Rig::new(entry, scratch.path(), &[("op", "create"), ("exclusive", "true")]);
        for class in [FsClass::Open, FsClass::Stat, FsClass::Unlink, FsClass::Rename, FsClass::Link] {
            assert_eq!(rig.file(class), errno(2), "{}: {class:?} of what is not there", entry.name);
        }
        for class in [FsClass::Close, FsClass::Read, FsClass::Write, FsClass::Fsync, FsClass::Lock] {
            assert_eq!(rig.file(class), errno(9), "{}: {class:?} of what is not open", entry.name);
        }
        assert_eq!((rig.file(FsClass::Create), rig.file(FsClass::Close)), (0, 0));
        assert_eq!(rig.file(FsClass::Create), errno(17), "exclusive");
        assert_eq!(rig.file(FsClass::Rmdir), errno(20), "ENOTDIR");
    }
}

#[test]
fn several_calls_are_in_flight_where_the_driver_takes_them() {
    for entry in storing().filter(|entry| entry.capabilities.asynchronous) {
        let scratch = scratch();
        let mut rig = Rig::new(entry, scratch.path(), &[("op", "create")]);
        let all = |class| -> Vec<FsOperation> {
            let one = |slot| FsOperation {
                slot,
                handle: slot,
                ..operation(class, NameKind::File, u64::from(slot))
            };
            (0..8).map(one).collect()
        };
        for class in [FsClass::Create, FsClass::Write, FsClass::Fsync, FsClass::Close, FsClass::Stat] {
            let expected = if class == FsClass::Write { BLOCK as i64 } else { 0 };
            assert_eq!(rig.run(&all(class)), [expected; 8], "{}: {class:?}", entry.name);
        }
        assert_eq!(rig.names().len(), 8);
        assert_eq!(rig.run(&all(FsClass::Unlink)), [0; 8]);
        let mut done = Completions::with_depth(8);
        rig.driver.reap(Wait::AtLeast(1), &mut done).unwrap();
        let left: Vec<i64> = done.as_slice().iter().map(|completion| completion.result).collect();
        assert_eq!(left, EMPTY, "nothing is in flight: no wait");
    }
}

/// The driver of files over objects, on a pool of its own.
fn on_objects(directory: &Path, words: &[(&str, &str)]) -> Rig {
    let entry = DRIVERS.iter().find(|entry| entry.name == "dfs").unwrap();
    let url = format!("dfs+vos:{}", directory.join("pool").display());
    let mut options = dfs::Options { create: true, ..dfs::Options::default() };
    options.pool.scm_bytes = 64 << 20;
    let store = dfs::open(&url, &options).unwrap();
    let owner = dfs::Owner::default();
    store.make_directory(dfs::Inode::ROOT, b"strata", 0o755, owner).unwrap();
    let words: Vec<_> =
        [("engine", "dfs"), ("no-fill", "true")].into_iter().chain(words.iter().copied()).collect();
    let plan = Arc::new(plan(&words, Path::new(&url), 1));
    let arena = Arc::new(Arena::new(1, BLOCK, PageSize::Base).unwrap());
    let opened = (entry.open)(&OpenRequest::new(plan, Arc::clone(&arena), vec![store])).unwrap();
    let mut rig = Rig { driver: opened.driver, arena, depth: 1, root: directory.to_owned(), device: None };
    for node in 0..2 {
        assert_eq!(rig.one(FsClass::Mkdir, NameKind::Node, node), 0);
    }
    rig
}

#[test]
fn files_over_objects_answer_as_those_of_the_system() {
    let scratch = tempfile::tempdir().unwrap();
    let mut rig = on_objects(scratch.path(), &[("op", "write"), ("file-size", "4k"), ("exclusive", "true")]);
    for class in [FsClass::Open, FsClass::Stat, FsClass::Unlink, FsClass::Rename] {
        assert_eq!(rig.file(class), errno(2), "{class:?} of what is not there");
    }
    for class in [FsClass::Close, FsClass::Read, FsClass::Write, FsClass::Fsync] {
        assert_eq!(rig.file(class), errno(9), "{class:?} of what is not open");
    }
    assert_eq!(rig.file(FsClass::Create), 0);
    // SAFETY: nothing is in flight.
    unsafe { rig.arena.slot_mut(0, BLOCK) }.fill(9);
    let all = [FsClass::Write, FsClass::Fsync, FsClass::Close, FsClass::Open, FsClass::Read, FsClass::Close];
    let results: Vec<i64> = all.iter().map(|class| rig.file(*class)).collect();
    assert_eq!(results, [BLOCK as i64, 0, 0, 0, BLOCK as i64, 0]);
    // SAFETY: as above.
    assert!(unsafe { rig.arena.slot_mut(0, BLOCK) }.iter().all(|&byte| byte == 9));
    assert_eq!(rig.file(FsClass::Create), errno(17), "exclusive");
    assert_eq!((rig.file(FsClass::Open), rig.file(FsClass::Truncate)), (0, 0));
    assert_eq!(rig.file(FsClass::Read), 2048, "it was cut to half its size");
    assert_eq!((rig.second(FsClass::Truncate), rig.file(FsClass::Read)), (0, BLOCK as i64));
    // SAFETY: as above.
    assert!(unsafe { rig.arena.slot_mut(0, BLOCK) }[2048..].iter().all(|&byte| byte == 0), "a hole");
    assert_eq!(rig.file(FsClass::Close), 0);
    assert_eq!((rig.second(FsClass::Rename), rig.file(FsClass::Stat)), (0, errno(2)));
    assert_eq!((rig.file(FsClass::Rename), rig.file(FsClass::Stat)), (0, 0));
    let links = [rig.second(FsClass::Symlink), rig.second(FsClass::Readlink), rig.second(FsClass::Unlink)];
    assert_eq!(links, [0; 3]);
    assert_eq!(
        (rig.file(FsClass::Setxattr), rig.file(FsClass::Getxattr), rig.file(FsClass::Removexattr)),
        (0, 0, 0)
    );
    assert_eq!(rig.file(FsClass::Getxattr), errno(61));
    assert_eq!(rig.one(FsClass::Mkdir, NameKind::Directory, 3), 0);
    assert_eq!(rig.one(FsClass::Mkdir, NameKind::Directory, 3), errno(17));
    assert_eq!(rig.one(FsClass::Readdir, NameKind::Node, 1), 2);
    assert_eq!(rig.one(FsClass::Rmdir, NameKind::Node, 1), errno(39));
    assert_eq!(rig.one(FsClass::Rmdir, NameKind::Directory, 3), 0);
    assert_eq!((rig.file(FsClass::Unlink), rig.one(FsClass::Rmdir, NameKind::Node, 1)), (0, 0));
    assert_eq!(rig.file(FsClass::Link), errno(1), "files over objects have one name");
    assert_eq!(rig.file(FsClass::Lock), errno(9));
}
