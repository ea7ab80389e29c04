//! Conformance of the driver of images, on a Ceph cluster of one node.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use driver::Wait;
use media::engine::EngineOptions;
use media::{DRIVERS, MediaClass, MediaOperation};
use workload::target::{TargetKind, TargetPlan};

use crate::support::{BLOCK, Entry, Rig, operation, pattern, plan};
use crate::{BLOCK_BYTES, FULL};

/// Blocks of an image.
const BLOCKS: u64 = 1024;
const SIZE_BYTES: u64 = BLOCKS * BLOCK as u64;

/// An image, gone at the end.
struct Image {
    conf: String,
    name: String,
}

impl Image {
    /// None, and a line that says so, where Ceph is not installed.
    fn new(test: &str) -> Option<Self> {
        let node = testkit::ceph_node(env!("CARGO_TARGET_TMPDIR"))?;
        let (conf, name) = (node.conf.display().to_string(), format!("strata/{test}-{}", std::process::id()));
        let image = Self { conf, name };
        image.rbd(&["create", "--size", &format!("{SIZE_BYTES}B")]);
        Some(image)
    }

    fn rbd(&self, words: &[&str]) {
        let ended = Command::new("rbd").args(["--conf", &self.conf]).args(words).arg(&self.name).output();
        let ended = ended.expect("rbd(8) comes with Ceph");
        assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }

    fn target(&self, more: &str) -> TargetPlan {
        let path = format!("rbd:{}{more}:conf={}", self.name, self.conf);
        plan(Path::new(&path), TargetKind::Image, SIZE_BYTES)
    }

    fn open(&self) -> Rig {
        Rig::open(entry(), vec![self.target("")], true, EngineOptions::default()).expect("an image")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.rbd(&["rm", "--no-progress"]);
        }
    }
}

fn entry() -> &'static Entry {
    driver::find(DRIVERS, "rbd").expect("registered")
}

#[test]
fn what_is_written_to_an_image_is_read_back_by_another_handle() {
    let Some(image) = Image::new("read-back") else { return };
    let mut rig = image.open();
    let data = |block: u64| pattern(block, BLOCK_BYTES);
    for round in 0..4 {
        let blocks =
            (0..rig.depth).map(|slot| (slot, (round * u64::from(rig.depth) + u64::from(slot)) * 7 % BLOCKS));
        let operations: Vec<_> = blocks
            .map(|(slot, block)| {
                rig.fill(slot, &data(block));
                MediaOperation { slot, ..operation(MediaClass::Write, block * u64::from(BLOCK)) }
            })
            .collect();
        let mut finished = rig.run_all(&operations);
        finished.sort_by_key(|completion| completion.slot);
        assert!(
            finished.iter().enumerate().all(|(slot, one)| (one.slot as usize, one.result) == (slot, FULL))
        );
    }
    assert_eq!(rig.run(operation(MediaClass::Sync, 0)), 0);
    let count = 4 * u64::from(rig.depth);
    drop(rig);
    let direct = EngineOptions { direct: true, ..EngineOptions::default() };
    let mut rig = Rig::open(entry(), vec![image.target("")], false, direct).expect("an image");
    assert!(rig.notes[0].starts_with("librbd 1.") && rig.notes.len() == 1, "{:?}", rig.notes);
    for block in (0..count).map(|index| index * 7 % BLOCKS) {
        assert_eq!(rig.run(operation(MediaClass::Read, block * u64::from(BLOCK))), FULL);
        assert!(rig.bytes(0, BLOCK_BYTES) == data(block), "block {block}");
    }
}

#[test]
fn discards_ends_and_bounds_of_images() {
    let Some(image) = Image::new("bounds") else { return };
    let mut rig = image.open();
    assert!(rig.notes.iter().any(|note| note.contains("rbd_cache_policy")), "{:?}", rig.notes);
    rig.write_and_read_back("rbd", 8 * u64::from(BLOCK), 3);
    assert!(rig.driver.findings().is_empty());
    // What is shorter than an object the library may leave as it is; that is told.
    assert_eq!(rig.run(operation(MediaClass::Discard, 0)), 0);
    assert!(
        rig.driver.findings()[0].contains(" 1 discards as done without executing them"),
        "{:?}",
        rig.driver.findings()
    );
    assert_eq!(rig.run(MediaOperation { length: SIZE_BYTES as u32, ..operation(MediaClass::Discard, 0) }), 0);
    assert_eq!(rig.run(operation(MediaClass::Read, 8 * u64::from(BLOCK))), FULL);
    assert!(rig.bytes(0, BLOCK_BYTES) == [0; BLOCK_BYTES]);
    for class in [MediaClass::Write, MediaClass::Read] {
        let result = rig.run(operation(class, SIZE_BYTES));
        assert!(result < FULL, "{class:?} behind the end: {result}");
    }
    let refused = [
        (MediaOperation { length: 2 * BLOCK, ..operation(MediaClass::Write, 0) }, libc_errno("EINVAL")),
        (MediaOperation { target: 1, ..operation(MediaClass::Read, 0) }, libc_errno("EINVAL")),
        (operation(MediaClass::Reset, 0), libc_errno("EOPNOTSUPP")),
    ];
    for (operation, errno) in refused {
        assert_eq!(rig.run(operation), errno, "{operation:?}");
    }
    // More than the depth waits its turn; with nothing in flight nothing is waited for.
    let many: Vec<_> =
        (0..2 * rig.depth).map(|slot| MediaOperation { slot, ..operation(MediaClass::Read, 0) }).collect();
    rig.done.clear();
    let submitted = rig.driver.submit(&many, &mut rig.done).expect("submit").accepted;
    assert_eq!(submitted, rig.depth as usize);
    rig.driver.reap(Wait::AtLeast(rig.depth), &mut rig.done).expect("reap");
    assert_eq!(rig.done.len(), submitted);
    rig.done.clear();
    let begun = Instant::now();
    rig.driver.reap(Wait::AtLeast(1), &mut rig.done).expect("reap");
    assert!(rig.done.is_empty() && begun.elapsed() < Duration::from_secs(5));
}

fn libc_errno(name: &str) -> i64 {
    let number = if name == "EINVAL" { 22 } else { 95 };
    crate::errno(number)
}

#[test]
fn a_driver_that_goes_with_operations_in_flight_waits_for_them() {
    let Some(image) = Image::new("in-flight") else { return };
    for _ in 0..3 {
        let mut rig = image.open();
        let batch: Vec<_> = (0..rig.depth)
            .map(|slot| MediaOperation { slot, ..operation(MediaClass::Write, u64::from(slot * BLOCK)) })
            .collect();
        assert_eq!(rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted, batch.len());
        drop(rig);
    }
    image.open().write_and_read_back("rbd", 0, 9);
}

#[test]
fn what_keeps_an_image_from_being_opened_is_told() {
    let Some(image) = Image::new("refused") else { return };
    let refused = |target: TargetPlan, writes: bool| {
        let opened = Rig::open(entry(), vec![target], writes, EngineOptions::default());
        opened.err().expect("a refusal").to_string()
    };
    let named =
        |name: &str| TargetPlan { path: format!("rbd:{name}:conf={}", image.conf), ..image.target("") };
    assert!(refused(named("strata/absent"), true).contains("rbd ls strata"));
    assert!(refused(named("absent/image"), true).contains("pool absent does not exist"));
    image.rbd(&["snap", "create", "--snap", "one", "--no-progress"]);
    assert!(refused(image.target("@two"), false).contains("or the snapshot does not"));
    assert!(refused(image.target("@one"), true).contains("a snapshot is read-only"));
    image.open().write_and_read_back("rbd", 0, 5);
    let mut rig =
        Rig::open(entry(), vec![image.target("@one")], false, EngineOptions::default()).expect("a snapshot");
    assert_eq!(rig.run(operation(MediaClass::Read, 0)), FULL);
    assert!(rig.bytes(0, BLOCK_BYTES) == [0; BLOCK_BYTES], "a snapshot holds what was there");
    assert_eq!(rig.run(operation(MediaClass::Write, 0)), crate::errno(30), "EROFS");
    drop(rig);
    image.rbd(&["snap", "purge", "--no-progress"]);
}
