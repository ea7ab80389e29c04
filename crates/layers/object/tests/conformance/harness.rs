//! Harnesses of the drivers: one a way to run a driver, one line each in [`HARNESSES`].

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::vos::ObjectClass;
use gpu::{GpuPlan, MemoryPlan};
use object::backend::Forgetful;
use object::plan::{ObjectOp, ObjectOptions, S3Key};
use object::{Backend, ConnectRequest, DRIVERS, Registration};

use super::plan;

mod daos;
mod engine;
mod null;
mod rados;
mod s3;
mod vos;

/// All ways to run a driver here.
static HARNESSES: &[&dyn Harness] = &[
    // One line a way.
    &null::Null,
    &vos::Vos { name: "vos on shared memory", base: vos::MEMORY, targets: 1, class: "S1" },
    &vos::Vos { name: "vos on a disk", base: vos::DISK, targets: 1, class: "SX" },
    &vos::Vos { name: "vos over 8 targets", base: vos::MEMORY, targets: 8, class: "SX" },
    &vos::Vos { name: "vos with copies", base: vos::MEMORY, targets: 8, class: "RP_3GX" },
    &vos::Vos { name: "vos with parity", base: vos::MEMORY, targets: 8, class: "EC_2P1GX" },
    &vos::Vos { name: "vos with two parities", base: vos::MEMORY, targets: 8, class: "EC_4P2G1" },
    &engine::Served { name: "engine", targets: 1, class: "S1" },
    &engine::Served { name: "engine over 4 targets", targets: 4, class: "SX" },
    &engine::Served { name: "engine with copies", targets: 4, class: "RP_2GX" },
    &rados::Rados,
    &daos::Daos,
    &s3::S3,
];

/// A way to run a driver: starts the servers that it needs.
pub(crate) trait Harness: Sync {
    /// Name in messages.
    fn name(&self) -> &'static str;

    /// Name of its driver.
    fn driver(&self) -> &'static str;

    /// Class of the objects.
    fn class(&self) -> &'static str {
        "S1"
    }

    /// Starts a store with nothing in it.
    ///
    /// # Errors
    /// The missing part, by name: the driver is skipped.
    fn start(&self) -> Result<Stand, String>;
}

/// A store that runs.
pub(crate) struct Stand {
    /// Its URL.
    pub(crate) target: String,
    /// Options that it is opened with.
    pub(crate) options: ObjectOptions,
    /// S3: the keys of the user.
    pub(crate) s3_key: Option<S3Key>,
    /// All who open it are one run.
    journal: Arc<Forgetful>,
    /// Surroundings that it runs in, until it is dropped.
    _keeps: Box<dyn Any>,
}

impl Stand {
    pub(crate) fn new(target: String, keeps: impl Any) -> Self {
        let (options, journal) = (plan::options(), Arc::default());
        Self { target, options, s3_key: None, journal, _keeps: Box::new(keeps) }
    }

    pub(crate) fn request(&self, creates: bool) -> ConnectRequest {
        ConnectRequest {
            target: self.target.clone(),
            options: self.options.clone(),
            s3_key: self.s3_key.clone(),
            creates,
            threads: 4,
            interrupt: Arc::new(AtomicBool::new(false)),
            journal: self.journal.clone(),
            ..ConnectRequest::default()
        }
    }

    pub(crate) fn connect(&self) -> Arc<dyn Backend> {
        object::connect(&self.request(true)).unwrap_or_else(|error| panic!("{}: {error}", self.target))
    }
}

/// A driver in one of the ways it runs.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Memory of its buffers.
    pub(crate) memory: MemoryPlan,
    pub(crate) class: ObjectClass,
    pub(crate) registration: &'static Registration,
    harness: &'static dyn Harness,
}

impl Entry {
    fn new(harness: &'static dyn Harness) -> Self {
        let registration =
            DRIVERS.iter().find(|entry| entry.name == harness.driver()).expect("a registered driver");
        let class = harness.class().parse().expect("a class");
        Self { name: harness.name(), memory: MemoryPlan::Host, class, registration, harness }
    }

    /// The same with buffers on a device, which data are copied to and from within the operations.
    fn staged(self) -> Self {
        let name: &'static str = Box::leak(format!("{}, staged", self.name).into_boxed_str());
        Self { name, memory: MemoryPlan::Gpu(GpuPlan::default()), ..self }
    }

    /// Whether it carries out all of these.
    pub(crate) fn can(&self, operations: &[ObjectOp]) -> bool {
        operations.iter().all(|operation| self.registration.capabilities.classes.contains(&operation.name()))
    }

    /// Starts what it needs; none where that cannot be had here, which is said.
    pub(crate) fn start(&self) -> Option<Stand> {
        match self.harness.start() {
            Ok(stand) => Some(stand),
            Err(missing) => {
                eprintln!("skipped {}: {missing}", self.name);
                None
            }
        }
    }
}

/// Every driver, in every way that it runs; in the first of them with buffers on a device too.
pub(crate) fn everyone() -> impl Iterator<Item = Entry> {
    testkit::gpu::load(Path::new(env!("CARGO_TARGET_TMPDIR")), "lazy=1");
    let is_first = |at: &usize| {
        let driver = HARNESSES[*at].driver();
        HARNESSES[..*at].iter().all(|earlier| earlier.driver() != driver)
    };
    let staged = (0..HARNESSES.len()).filter(is_first).map(|at| Entry::new(HARNESSES[at]).staged());
    HARNESSES.iter().map(|harness| Entry::new(*harness)).chain(staged)
}

/// Those that keep data and carry out all of these.
pub(crate) fn keepers(operations: &'static [ObjectOp]) -> impl Iterator<Item = Entry> {
    everyone().filter(move |entry| !entry.registration.capabilities.targetless && entry.can(operations))
}
