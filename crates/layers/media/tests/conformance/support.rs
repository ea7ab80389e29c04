//! A driver on targets of its own, for the conformance suite.
#![allow(unsafe_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use driver::{Arena, Completion, Completions, Driver, Error, PageSize, Registration, Wait};
use gpu::{Context, DeviceBuffers, GpuPer, GpuPlan, Pinned, Share, Staged, Staging, Stream, WorkerNotes};
use layer::memory::DeviceRequest;
use media::engine::EngineOptions;
use media::{DRIVERS, MediaClass, MediaOperation, OpenRequest};
pub(crate) use testkit::content as pattern;
use workload::target::{TargetKind, TargetPlan};

/// A line of the table of drivers.
pub(crate) type Entry = Registration<MediaOperation, OpenRequest>;

/// Block of the tests: one page, so that direct I/O and mappings take it.
pub(crate) const BLOCK: u32 = 4096;

/// The drivers that work on files.
pub(crate) fn on_files() -> impl Iterator<Item = &'static Entry> {
    storing().filter(|entry| !entry.capabilities.targetless)
}

/// Drivers that need a cluster: `images.rs` tests them.
const ON_CLUSTERS: [&str; 1] = ["rbd"];

/// All others.
pub(crate) fn of_this_machine() -> impl Iterator<Item = &'static Entry> {
    DRIVERS.iter().filter(|entry| !ON_CLUSTERS.contains(&entry.name))
}

/// Drivers whose buffers are on a device: that of the libraries of the tests.
const ON_DEVICES: [&str; 5] = ["cufile", "cufile_batch", "cufile_stream", "gpu_copy", "gpu_mem"];

/// Buffers on a device beside those of an arena.
fn on_device(arena: &Arena, plan: GpuPlan) -> DeviceRequest {
    testkit::gpu::load(Path::new(env!("CARGO_TARGET_TMPDIR")), "lazy=1");
    let context = Context::of(
        Share::of_worker(&[], GpuPer::Worker, 0, &WorkerNotes::default()).expect("a device").device(),
    )
    .expect("its context");
    let buffers =
        DeviceBuffers::new(&context, arena.slots(), arena.slot_bytes()).expect("memory of the device");
    DeviceRequest { buffers: Arc::new(buffers), plan, notes: WorkerNotes::default() }
}

/// Whether a driver carries a class out.
pub(crate) fn carries(entry: &Entry, class: &str) -> bool {
    entry.capabilities.classes.contains(&class)
}

/// Says which check could not be made here, and why.
pub(crate) fn skip(check: &str, why: &str) {
    eprintln!("skipped: {check}: {why}");
}

/// The plan for a whole target.
pub(crate) fn plan(path: &Path, kind: TargetKind, size_bytes: u64) -> TargetPlan {
    TargetPlan {
        path: path.to_str().expect("a plain path").to_owned(),
        kind,
        offset_bytes: 0,
        size_bytes,
        direct_alignment_bytes: u64::from(BLOCK),
    }
}

/// Drivers that move no data: they change or ask what is known of files.
const WITHOUT_DATA: [&str; 11] = [
    "null",
    "falloc",
    "ftruncate",
    "filestat",
    "filedelete",
    "filecreate",
    "dircreate",
    "dirstat",
    "dirdelete",
    "cpu",
    "exec",
];

/// Drivers that keep what is written.
pub(crate) fn storing() -> impl Iterator<Item = &'static Entry> {
    of_this_machine().filter(|entry| !WITHOUT_DATA.contains(&entry.name))
}

/// The plan of the target that a targetless driver takes, or of the file.
pub(crate) fn plan_for(entry: &Entry, path: &Path, size_bytes: u64) -> TargetPlan {
    match entry.name {
        "null" => plan(Path::new("null:"), TargetKind::Null, size_bytes),
        "mem" | "gpu_copy" | "gpu_mem" => plan(Path::new("mem:"), TargetKind::Memory, size_bytes),
        _ => plan(path, TargetKind::File, size_bytes),
    }
}

/// A file in a directory of its own.
pub(crate) struct Scratch {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) file: PathBuf,
}

impl Scratch {
    /// A file with this content.
    pub(crate) fn with(content: &[u8]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("data");
        std::fs::write(&file, content).expect("a file");
        Self { directory, file }
    }

    pub(crate) fn content(&self) -> Vec<u8> {
        std::fs::read(&self.file).expect("the file")
    }
}

/// An operation on one block of target 0 in slot 0.
pub(crate) fn operation(class: MediaClass, offset: u64) -> MediaOperation {
    let length = if matches!(class, MediaClass::Sync | MediaClass::Nop) { 0 } else { BLOCK };
    MediaOperation { offset, length, slot: 0, target: 0, class, is_extra: false }
}

/// A driver that was opened, with its buffers.
pub(crate) struct Rig {
    pub(crate) driver: Box<dyn Driver<MediaOperation>>,
    pub(crate) arena: Arc<Arena>,
    pub(crate) done: Completions,
    pub(crate) depth: u32,
    pub(crate) notes: Vec<String>,
    /// Where the buffers are on a device.
    pub(crate) device: Option<DeviceRequest>,
}

impl Rig {
    /// Opens a driver at depth 8, or what it takes.
    pub(crate) fn open(
        entry: &Entry,
        targets: Vec<TargetPlan>,
        writes: bool,
        options: EngineOptions,
    ) -> Result<Self, Error> {
        let depth = entry.capabilities.depth_max.min(8);
        // Twice the depth, so that a batch can be larger than the depth.
        let arena = Arc::new(Arena::new(2 * depth, BLOCK as usize, PageSize::Base).expect("memory"));
        let device = ON_DEVICES.contains(&entry.name).then(|| on_device(&arena, GpuPlan::default()));
        Self::with(entry, targets, writes, options, arena, device)
    }

    /// The same with buffers on a device, which a driver of memory of the host reaches by copies.
    pub(crate) fn staged(entry: &Entry, path: &Path, size_bytes: u64, plan: GpuPlan) -> Self {
        let depth = entry.capabilities.depth_max.min(8);
        let arena = Arc::new(Arena::new(2 * depth, BLOCK as usize, PageSize::Base).expect("memory"));
        let device = on_device(&arena, plan);
        let targets = vec![plan_for(entry, path, size_bytes)];
        let mut rig = Self::with(entry, targets, true, EngineOptions::default(), arena, Some(device.clone()))
            .unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        let pinned = (device.plan.staging == Staging::Pinned)
            .then(|| Pinned::new(device.buffers.context(), &rig.arena).expect("registered"));
        let staged = Staged::new(rig.driver, &rig.arena, &device.buffers, pinned, depth).expect("a driver");
        rig.driver = Box::new(staged);
        rig
    }

    fn with(
        entry: &Entry,
        targets: Vec<TargetPlan>,
        writes: bool,
        options: EngineOptions,
        arena: Arc<Arena>,
        device: Option<DeviceRequest>,
    ) -> Result<Self, Error> {
        let (depth, images) = (arena.slots() / 2, Arc::default());
        let (arena_of_driver, device_of_driver) = (Arc::clone(&arena), device.clone());
        let request = OpenRequest {
            targets,
            writes,
            depth,
            options,
            images,
            arena: arena_of_driver,
            device: device_of_driver,
        };
        let opened = (entry.open)(&request)?;
        let done = Completions::with_depth(2 * depth);
        Ok(Self { driver: opened.driver, arena, done, depth, notes: opened.notes, device })
    }

    /// Opens a driver on one file, for writing, without options.
    pub(crate) fn on(entry: &Entry, path: &Path, size_bytes: u64) -> Self {
        Self::open(entry, vec![plan_for(entry, path, size_bytes)], true, EngineOptions::default())
            .unwrap_or_else(|error| panic!("{}: {error}", entry.name))
    }

    /// Puts bytes into the buffer of a slot.
    pub(crate) fn fill(&self, slot: u32, bytes: &[u8]) {
        if let Some(device) = &self.device {
            let mut stream = Stream::new(device.buffers.context()).expect("a stream");
            // SAFETY: a slice and a buffer of that length, which is in no flight.
            unsafe { stream.copy_in(device.buffers.slot_address(slot), bytes.as_ptr(), bytes.len()) }
                .expect("copied");
            return stream.wait().expect("done");
        }
        // SAFETY: nothing is in flight in this slot, and the reference ends here.
        unsafe { self.arena.slot_mut(slot, bytes.len()) }.copy_from_slice(bytes);
    }

    /// The bytes in the buffer of a slot.
    pub(crate) fn bytes(&self, slot: u32, length: usize) -> Vec<u8> {
        if let Some(device) = &self.device {
            let mut there = vec![0; length];
            let mut stream = Stream::new(device.buffers.context()).expect("a stream");
            // SAFETY: as for `fill`.
            unsafe { stream.copy_out(there.as_mut_ptr(), device.buffers.slot_address(slot), length) }
                .expect("copied");
            stream.wait().expect("done");
            return there;
        }
        // SAFETY: as for `fill`.
        unsafe { self.arena.slot_mut(slot, length) }.to_vec()
    }

    /// Runs operations to their end, as many at a time as the driver takes. Completions in the order of their arrival.
    pub(crate) fn run_all(&mut self, operations: &[MediaOperation]) -> Vec<Completion> {
        let (mut offered, mut finished) = (0, Vec::new());
        while finished.len() < operations.len() {
            self.done.clear();
            let submitted = self.driver.submit(&operations[offered..], &mut self.done).expect("submit");
            offered += submitted.accepted;
            let wait = if self.done.is_empty() { Wait::AtLeast(1) } else { Wait::None };
            self.driver.reap(wait, &mut self.done).expect("reap");
            finished.extend_from_slice(self.done.as_slice());
            assert!(finished.len() <= offered, "more completions than submissions");
        }
        finished
    }

    /// Runs one operation to its end.
    pub(crate) fn run(&mut self, operation: MediaOperation) -> i64 {
        let finished = self.run_all(&[operation]);
        assert_eq!((finished.len(), finished[0].slot), (1, operation.slot));
        finished[0].result
    }

    /// Writes a block and reads it back into another content.
    pub(crate) fn write_and_read_back(&mut self, name: &str, offset: u64, seed: u64) {
        let data = pattern(seed, BLOCK as usize);
        self.fill(0, &data);
        assert_eq!(self.run(operation(MediaClass::Write, offset)), i64::from(BLOCK), "{name}: write");
        self.fill(0, &[0; BLOCK as usize]);
        assert_eq!(self.run(operation(MediaClass::Read, offset)), i64::from(BLOCK), "{name}: read");
        assert!(self.bytes(0, BLOCK as usize) == data, "{name}: read something else than was written");
    }
}

/// A loop device over a file, detached when dropped.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
}

impl LoopDevice {
    /// Attaches a file; needs root and losetup.
    pub(crate) fn attach(file: &Path) -> Option<Self> {
        let output = Command::new("losetup").arg("--find").arg("--show").arg(file).output().ok()?;
        if !output.status.success() {
            let _ = std::io::stderr().write_all(&output.stderr);
            return None;
        }
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        Some(Self { path })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("--detach").arg(&self.path).status();
        if !std::thread::panicking() {
            assert!(detached.expect("losetup").success());
        }
    }
}
