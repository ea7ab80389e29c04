//! An engine with a pool on tmpfs, and a driver on it.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Completion, Completions, Driver, Error, PageSize, Secret, Wait};
use object::backend::Forgetful;
use object::plan::{ObjectOp, ObjectPlan};
use object::{Backend, ConnectRequest, ObjectOperation, OpenRequest};
use object_service::Pools;
use rpc::TagMap;
use rpc::engine::{Engine, EngineRequest};
use tempfile::TempDir;
use vos::ObjectType;
use vos::model::{Key, ObjectId};
use vos::{OpenOptions, Pool, PoolOptions};

pub(crate) const POOL: &str = "tank";
const SECOND_NS: u64 = 1_000_000_000;

/// A directory on tmpfs where there is one.
pub(crate) fn scratch() -> TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { TempDir::new_in(shm) } else { TempDir::new() }.expect("a directory")
}

/// Opens the pool in a directory, or makes it.
pub(crate) fn pool_in(dir: &Path, options: &PoolOptions) -> Arc<Pool> {
    let pool =
        if Pool::exists(dir) { Pool::open(dir, &OpenOptions::default()) } else { Pool::create(dir, options) };
    Arc::new(pool.expect("a pool"))
}

/// Small enough for tests.
pub(crate) fn small(targets: u32) -> PoolOptions {
    PoolOptions { targets, scm_bytes: u64::from(targets) * (64 << 20), ..PoolOptions::default() }
}

/// An engine that serves a pool.
pub(crate) fn serve(pool: Arc<Pool>, secret: Option<Secret>) -> Engine {
    let targets = pool.targets().len() as u32;
    let pools = Pools::new().and_then(|pools| pools.with(POOL, pool)).expect("a label");
    let mut request = EngineRequest::new(object_service::factory(pools), Arc::new(|line| println!("{line}")));
    request.tags = TagMap::new(targets, 0).expect("few");
    request.secret = secret;
    Engine::start(request).expect("an engine")
}

/// The target of a container of an engine.
pub(crate) fn url(engine: &Engine, container: &str) -> String {
    let address = engine.uri().strip_prefix("tcp://").expect("sockets");
    format!("engine://{address}/{POOL}/{container}")
}

pub(crate) fn request(target: &str) -> ConnectRequest {
    ConnectRequest {
        target: target.to_owned(),
        options: crate::plan::options(),
        creates: true,
        threads: 1,
        interrupt: Arc::new(AtomicBool::new(false)),
        // All are one run.
        journal: Arc::new(Forgetful(7)),
        ..ConnectRequest::default()
    }
}

/// A driver with its buffers.
pub(crate) struct Rig {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) driver: Box<dyn Driver<ObjectOperation>>,
    pub(crate) arena: Arc<Arena>,
    plan: Arc<ObjectPlan>,
}

impl Rig {
    /// A plan whose phase does these operations on values of at most `bytes_max`.
    pub(crate) fn plan(operations: &[ObjectOp], bytes_max: u64, depth: u32) -> ObjectPlan {
        let mut plan = crate::plan::plan(operations[0]);
        plan.sequence = operations.to_vec();
        plan.dataset.value_size_bytes_max = bytes_max;
        plan.load.depth = depth;
        plan.options.zero_copy = true;
        plan
    }

    pub(crate) fn open(target: &str, plan: ObjectPlan) -> Result<Self, Error> {
        let backend = object::connect(&request(target))?;
        backend.prepare(&plan)?;
        Self::open_on(backend, plan)
    }

    pub(crate) fn open_on(backend: Arc<dyn Backend>, plan: ObjectPlan) -> Result<Self, Error> {
        let bytes = plan.dataset.value_size_bytes_max as usize;
        let arena = Arc::new(Arena::new(plan.load.depth, bytes, PageSize::Base).expect("memory"));
        let plan = Arc::new(plan);
        let interrupt = Arc::new(AtomicBool::new(false));
        let request =
            OpenRequest { worker: 0, plan: Arc::clone(&plan), arena: Arc::clone(&arena), interrupt };
        let driver = backend.open(&request)?.driver;
        Ok(Self { backend, driver, arena, plan })
    }

    /// Carries out operations in slots of their own at the same time; results by slot.
    pub(crate) fn run_all(&mut self, operations: &[ObjectOperation]) -> Vec<i64> {
        let mut done = Completions::with_depth(self.plan.load.depth);
        let mut results = vec![None; self.plan.load.depth as usize];
        let (mut taken, mut count) = (0, 0);
        let mut waits = 0;
        while count < operations.len() {
            taken += self.driver.submit(&operations[taken..], &mut done).expect("works").accepted;
            self.driver.reap(Wait::Timeout { count: 1, timeout_ns: SECOND_NS }, &mut done).expect("works");
            for &Completion { slot, result } in done.as_slice() {
                assert!(results[slot as usize].replace(result).is_none(), "slot {slot} twice");
                count += 1;
            }
            waits += 1;
            assert!(waits < 100, "{count} of {} operations came back", operations.len());
            done.clear();
        }
        operations.iter().map(|operation| results[operation.slot as usize].expect("done")).collect()
    }

    pub(crate) fn run(&mut self, operation: &ObjectOperation) -> i64 {
        self.run_all(&[*operation])[0]
    }

    /// The buffer of a slot.
    pub(crate) fn buffer(&mut self, slot: u32) -> &mut [u8] {
        // SAFETY: nothing is in flight between runs, and one buffer is borrowed at a time.
        unsafe { self.arena.slot_mut(slot, self.arena.slot_bytes()) }
    }

    /// Fills the buffer of an operation with bytes that follow from a number.
    pub(crate) fn fill(&mut self, operation: &ObjectOperation, seed: u64) {
        let bytes = content(seed, operation.value_bytes as usize);
        self.buffer(operation.slot)[..bytes.len()].copy_from_slice(&bytes);
    }

    /// Whether the buffer of an operation has those bytes.
    pub(crate) fn has(&mut self, operation: &ObjectOperation, seed: u64) -> bool {
        let bytes = content(seed, operation.value_bytes as usize);
        self.buffer(operation.slot)[..bytes.len()] == bytes
    }
}

/// Bytes that follow from a number.
pub(crate) fn content(seed: u64, length: usize) -> Vec<u8> {
    let word = |at: u64| workload::random::mix64(seed ^ (at + 1) << 32).to_le_bytes();
    (0..length.div_ceil(8) as u64).flat_map(word).take(length).collect()
}

pub(crate) fn object(plan: &ObjectPlan, number: u64) -> ObjectId {
    ObjectId::new(ObjectType::MultiHashed, plan.class, number)
}

/// An operation on a named dkey and the akey `a`.
pub(crate) fn operation(kind: ObjectOp, object: ObjectId, number: u64, bytes: u64) -> ObjectOperation {
    ObjectOperation {
        slot: 0,
        operation: kind,
        is_short_good: true,
        record: number,
        object,
        dkey: Key::new(b"blade-").expect("short").followed_by(number),
        akey: Key::new(b"a").expect("short"),
        offset_bytes: 0,
        value_bytes: bytes,
    }
}
