//! A server, a bucket, and a driver with its buffers.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::{Arena, Completions, Driver, Error, PageSize, Wait};
use object::plan::{ObjectOp, ObjectOptions, ObjectPlan, S3Key};
use object::{Backend, ConnectRequest, ObjectOperation, OpenRequest};
pub(crate) use testkit::content;
use testkit::s3::{S3Options, S3Server};
use vos::ObjectType;
use vos::model::{Key, ObjectId};

use crate::plan;

pub(crate) const BUCKET: &str = "bench-1";
/// Nothing here takes this long; a test that hangs ends with it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A plan of puts with keys `blade-N`.
pub(crate) fn plan(options: &ObjectOptions, value_bytes: u64) -> ObjectPlan {
    let mut plan = plan::plan(ObjectOp::Put);
    plan.engine = "s3".to_owned();
    plan.target = format!("s3://{BUCKET}");
    plan.object_type = ObjectType::KvHashed;
    let data = &mut plan.dataset;
    (data.objects, data.dkeys, data.akeys, data.records) = (1, 64, 1, 1);
    (data.value_size, data.value_size_bytes_max) = (value_bytes.to_string(), value_bytes);
    plan.ids_per_call = 1;
    plan.options = options.clone();
    plan
}

/// Options that reach `endpoint`, with short waits.
pub(crate) fn options(endpoints: &[String]) -> ObjectOptions {
    ObjectOptions {
        s3_endpoints: endpoints.to_vec(),
        s3_region: "us-east-1".to_owned(),
        retries: 3,
        timeout_ns: PATIENCE.as_nanos() as u64,
        zero_copy: true,
        ..ObjectOptions::default()
    }
}

pub(crate) fn key(server: &S3Options) -> Option<S3Key> {
    Some(S3Key { access: server.access.clone(), secret: server.secret.clone() })
}

pub(crate) fn request(options: &ObjectOptions, s3_key: Option<S3Key>) -> ConnectRequest {
    ConnectRequest {
        target: format!("s3://{BUCKET}"),
        options: options.clone(),
        s3_key,
        creates: true,
        threads: 1,
        interrupt: Arc::new(AtomicBool::new(false)),
        ..ConnectRequest::default()
    }
}

/// A server with a bucket.
pub(crate) fn server() -> S3Server {
    let server = S3Server::start(S3Options::default()).expect("a server");
    server.store().create_bucket(BUCKET);
    server
}

/// A store that is open, and its plan.
pub(crate) struct Bed {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) plan: ObjectPlan,
}

/// The driver of a worker.
pub(crate) struct Worker {
    pub(crate) driver: Box<dyn Driver<ObjectOperation>>,
    pub(crate) arena: Arc<Arena>,
    done: Completions,
}

impl Bed {
    /// On the server's bucket, changed as `change` says.
    pub(crate) fn new(server: &S3Server, change: impl FnOnce(&mut ObjectPlan)) -> Self {
        let mut plan = plan(&options(&[server.endpoint()]), 65_536);
        change(&mut plan);
        let connect = request(&plan.options, key(&S3Options::default()));
        Self { backend: object::connect(&connect).expect("a store"), plan }
    }

    /// Behind a proxy, changed as `change` says.
    pub(crate) fn behind(endpoint: &str, change: impl FnOnce(&mut ConnectRequest, &mut ObjectPlan)) -> Self {
        let mut plan = plan(&options(&[endpoint.to_owned()]), 65_536);
        let mut connect = request(&plan.options, key(&S3Options::default()));
        change(&mut connect, &mut plan);
        plan.options.clone_into(&mut connect.options);
        Self { backend: object::connect(&connect).expect("a store"), plan }
    }

    /// Removes what it made; what it left.
    pub(crate) fn clean(&self) -> String {
        self.backend.clean(&|_| ()).expect("cleaned").join("; ")
    }

    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.backend.prepare(&self.plan)
    }

    pub(crate) fn worker(&self, depth: u32) -> Worker {
        let bytes = self.plan.dataset.value_size_bytes_max as usize;
        let arena = Arc::new(Arena::new(depth, bytes, PageSize::Base).expect("memory"));
        let opened = self.backend.open(&OpenRequest {
            worker: 0,
            plan: Arc::new(self.plan.clone()),
            arena: arena.clone(),
            interrupt: Arc::new(AtomicBool::new(false)),
        });
        Worker { driver: opened.expect("a driver").driver, arena, done: Completions::with_depth(depth) }
    }
}

/// An operation on `blade-N` in slot 0.
pub(crate) fn operation(operation: ObjectOp, number: u64, value_bytes: u64) -> ObjectOperation {
    ObjectOperation {
        slot: 0,
        operation,
        is_short_good: false,
        record: number,
        object: ObjectId { lo: 0, hi: 0 },
        dkey: Key::new(b"blade-").expect("short").followed_by(number),
        akey: Key::EMPTY,
        offset_bytes: 0,
        value_bytes,
    }
}

impl Worker {
    /// Carries operations out and returns their results by slot.
    pub(crate) fn run(&mut self, batch: &[ObjectOperation]) -> Vec<(u32, i64)> {
        self.done.clear();
        assert_eq!(self.driver.submit(batch, &mut self.done).expect("submitted").accepted, batch.len());
        let begin = std::time::Instant::now();
        while self.done.len() < batch.len() {
            assert!(begin.elapsed() < PATIENCE, "{} of {} have ended", self.done.len(), batch.len());
            let count = (batch.len() - self.done.len()) as u32;
            let wait = Wait::Timeout { count, timeout_ns: 1_000_000_000 };
            self.driver.reap(wait, &mut self.done).expect("reaped");
        }
        let mut results: Vec<_> = self.done.as_slice().iter().map(|done| (done.slot, done.result)).collect();
        results.sort_unstable();
        results
    }

    /// Carries one out.
    pub(crate) fn one(&mut self, operation: ObjectOperation) -> i64 {
        self.run(&[operation])[0].1
    }

    pub(crate) fn fill(&mut self, slot: u32, data: &[u8]) {
        copy_into(&self.arena, slot, data);
    }

    pub(crate) fn read(&self, slot: u32, bytes: usize) -> Vec<u8> {
        copy_from(&self.arena, slot, bytes)
    }

    /// Puts `content(number, bytes)`.
    pub(crate) fn put(&mut self, number: u64, bytes: usize) -> i64 {
        self.fill(0, &content(number, bytes));
        self.one(operation(ObjectOp::Put, number, bytes as u64))
    }

    /// Gets it into a buffer that held something else, and compares.
    pub(crate) fn get(&mut self, number: u64, bytes: usize) -> i64 {
        self.fill(0, &vec![0xee; bytes]);
        let result = self.one(operation(ObjectOp::Get, number, bytes as u64));
        if result == bytes as i64 {
            assert!(self.read(0, bytes) == content(number, bytes), "the data of {number} is another");
        }
        result
    }

    pub(crate) fn findings(&mut self) -> String {
        self.driver.findings().join("\n")
    }

    pub(crate) fn tally(&mut self, name: &str) -> f64 {
        self.driver.tallies().iter().find(|tally| tally.name == name).expect("counted").value
    }
}

fn copy_into(arena: &Arena, slot: u32, data: &[u8]) {
    // SAFETY: nothing is in flight in this slot: tests wait for all that they submit.
    unsafe { arena.slot_mut(slot, data.len()) }.copy_from_slice(data);
}

fn copy_from(arena: &Arena, slot: u32, bytes: usize) -> Vec<u8> {
    // SAFETY: as above.
    unsafe { arena.slot_mut(slot, bytes) }.to_vec()
}
