//! The `daos` driver against a libdaos of the tests' own (`fake_daos/daos.c`), which checks every structure that it is given and completes
//! late and out of order. No DAOS system is needed, and none is tested.
#![allow(unsafe_code)]

mod engines;
#[path = "../fake_daos/mod.rs"]
mod fake_daos;
mod ownership;
#[path = "../conformance/plan.rs"]
mod plan;
#[path = "../rados/rig.rs"]
mod rig;
mod snapshots;

use std::ffi::{CString, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use libloading::Library;
use object::plan::{ObjectOp, ObjectPlan, PunchScope, ValueKind};
use object::{Backend, ConnectRequest, ObjectOperation};
use rig::{Rig, errno, operation};
use vos::model::{Key, ObjectId};
use vos::{ObjectClass, ObjectType};

/// State behind the library at first.
const WORLD: &[(&str, c_int)] =
    &[("targets", 2), ("engines", 1), ("disabled", 0), ("redundancy", 0), ("dies_after", -1)];

/// The library, compiled once; and the turn of a test, for it is not made for threads.
struct Fake {
    library: Library,
    /// Handles that an earlier test left open, because its engines died.
    left: AtomicI32,
}

fn fake() -> (&'static Fake, MutexGuard<'static, ()>) {
    static FAKE: OnceLock<Fake> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let fake = FAKE.get_or_init(|| {
        let file = fake_daos::compile().expect("a C compiler");
        // SAFETY: the first test to come here sets it, before any of them has used the driver; the others wait.
        unsafe { std::env::set_var("STRATA_LIBDAOS", &file) };
        // SAFETY: it has no constructors.
        let library = unsafe { Library::new(&file) }.expect("it was just compiled");
        // Both have it open then.
        object::connect(&request("daos://absent")).err().expect("there is no such pool");
        std::fs::remove_file(&file).expect("removed");
        Fake { library, left: AtomicI32::new(0) }
    });
    for (name, value) in WORLD {
        fake.set(name, *value);
    }
    fake.left.store(fake.open_handles(), Ordering::Relaxed);
    (fake, turn)
}

impl Fake {
    /// The call after `after` calls of `name` fails.
    fn fail(&self, name: &str, code: c_int, after: c_int) {
        let name = CString::new(name).expect("a name");
        // SAFETY: as the source has it.
        unsafe {
            let fail: libloading::Symbol<unsafe extern "C" fn(*const c_char, c_int, c_int)> =
                self.library.get(b"fake_daos_fail\0").expect("it is there");
            fail(name.as_ptr(), code, after);
        }
    }

    /// State behind the library, until the turn ends.
    fn set(&self, name: &str, value: c_int) {
        let name = CString::new(name).expect("a name");
        // SAFETY: as the source has it.
        unsafe {
            let set: libloading::Symbol<unsafe extern "C" fn(*const c_char, c_int)> =
                self.library.get(b"fake_daos_set\0").expect("it is there");
            set(name.as_ptr(), value);
        }
    }

    /// Makes a snapshot of a container.
    fn snap(&self, label: &str, epoch: u64) {
        let label = CString::new(label).expect("a label");
        // SAFETY: as the source has it.
        unsafe {
            let snap: libloading::Symbol<unsafe extern "C" fn(*const c_char, u64)> =
                self.library.get(b"fake_daos_snap\0").expect("it is there");
            snap(label.as_ptr(), epoch);
        }
    }

    fn open_handles(&self) -> c_int {
        // SAFETY: as the source has it.
        unsafe {
            let count: libloading::Symbol<unsafe extern "C" fn() -> c_int> =
                self.library.get(b"fake_daos_open_handles\0").expect("it is there");
            count()
        }
    }
}

fn request(target: &str) -> ConnectRequest {
    ConnectRequest {
        target: target.to_owned(),
        options: plan::options(),
        creates: true,
        threads: 1,
        interrupt: Arc::new(AtomicBool::new(false)),
        ..ConnectRequest::default()
    }
}

fn backend(container: &str) -> Arc<dyn Backend> {
    object::connect(&request(&format!("daos://pool/{container}"))).expect("connected")
}

fn typed(operation: ObjectOp, object_type: ObjectType) -> ObjectPlan {
    let mut plan = plan::plan(operation);
    plan.object_type = object_type;
    plan.load.depth = 32;
    plan.list_max = 20;
    plan
}

fn key(text: &str) -> Key {
    Key::new(text.as_bytes()).expect("short")
}

fn object(object_type: ObjectType) -> ObjectId {
    ObjectId::new(object_type, ObjectClass::S1, 7)
}

/// Ends a backend, and sees that nothing is left open.
fn end(fake: &Fake, backend: Arc<dyn Backend>) {
    backend.clean(&|_| ()).expect("clean");
    backend.close().expect("closed");
    drop(backend);
    assert_eq!(fake.open_handles(), fake.left.load(Ordering::Relaxed));
}

#[test]
fn key_value_objects() {
    let (fake, _turn) = fake();
    let backend = backend("keys");
    let mut rig = Rig::open(&backend, typed(ObjectOp::Put, ObjectType::KvHashed));
    let of = |what, number: u64| ObjectOperation {
        slot: number as u32,
        object: object(ObjectType::KvHashed),
        dkey: key("key-").followed_by(number),
        ..operation(what, 100)
    };
    let all = |what| (0..32).map(|number| of(what, number)).collect::<Vec<_>>();
    for slot in 0..32 {
        rig.fill(slot, &[slot as u8; 100]);
    }
    assert!(rig.run_all(&all(ObjectOp::Put)).iter().all(|done| done.result == 100));
    for slot in 0..32 {
        rig.fill(slot, &[0xee; 100]);
    }
    assert!(rig.run_all(&all(ObjectOp::Get)).iter().all(|done| done.result == 100));
    for slot in 0..32 {
        assert_eq!(rig.bytes(slot, 100), [slot as u8; 100]);
    }
    assert!(rig.run_all(&all(ObjectOp::Stat)).iter().all(|done| done.result == 100));
    let list = ObjectOperation { value_bytes: 0, ..of(ObjectOp::List, 0) };
    assert_eq!([rig.run(list), rig.run(list), rig.run(list)], [20, 12, 20]);
    let short = ObjectOperation { value_bytes: 10, ..of(ObjectOp::Get, 5) };
    assert_eq!(rig.run(short), errno(libc::EOVERFLOW));
    assert!(rig.run_all(&all(ObjectOp::Remove)).iter().all(|done| done.result == 0));
    assert_eq!(rig.run(of(ObjectOp::Get, 3)), errno(libc::ENOENT));
    assert_eq!(rig.run(of(ObjectOp::Stat, 3)), errno(libc::ENOENT));
    assert_eq!(rig.run(of(ObjectOp::OpenContainer, 0)), 0);
    assert_eq!([rig.run(of(ObjectOp::AllocateIds, 0)), rig.run(of(ObjectOp::AllocateIds, 0))], [1, 9]);
    drop(rig);
    end(fake, backend);
}

#[test]
fn values_and_extents_under_keys() {
    let (fake, _turn) = fake();
    let backend = backend("values");
    let id = object(ObjectType::MultiHashed);
    let of = |what, akey: &str, offset_bytes| ObjectOperation {
        object: id,
        dkey: Key::integer(9),
        akey: key(akey),
        offset_bytes,
        ..operation(what, 100)
    };
    let mut plan = typed(ObjectOp::Update, ObjectType::MultiHashed);
    let mut rig = Rig::open(&backend, plan.clone());
    rig.fill(0, &[1; 100]);
    assert_eq!(rig.run(of(ObjectOp::Update, "a", 0)), 100);
    assert_eq!(rig.run(of(ObjectOp::Update, "b", 0)), 100);
    rig.fill(0, &[0; 100]);
    assert_eq!(rig.run(of(ObjectOp::Fetch, "a", 0)), 100);
    assert_eq!(rig.bytes(0, 100), [1; 100]);
    assert_eq!(rig.run(of(ObjectOp::Punch, "a", 0)), 0);
    assert_eq!(rig.run(of(ObjectOp::Fetch, "a", 0)), errno(libc::ENOENT));
    assert_eq!(rig.run(of(ObjectOp::Fetch, "b", 0)), 100);
    drop(rig);
    plan.dataset.value = ValueKind::Array;
    let mut rig = Rig::open(&backend, plan.clone());
    rig.fill(0, &[2; 100]);
    assert_eq!([rig.run(of(ObjectOp::Update, "c", 0)), rig.run(of(ObjectOp::Update, "c", 100))], [100, 100]);
    assert_eq!(rig.run(of(ObjectOp::Fetch, "c", 150)), 50);
    assert_eq!(rig.run(of(ObjectOp::Punch, "c", 100)), 0);
    assert_eq!(rig.run(of(ObjectOp::Fetch, "c", 50)), 50);
    drop(rig);
    for (scope, akey) in [(PunchScope::Akey, "c"), (PunchScope::Dkey, "b"), (PunchScope::Object, "b")] {
        plan.punch = scope;
        let mut rig = Rig::open(&backend, plan.clone());
        rig.fill(0, &[3; 100]);
        assert_eq!(rig.run(of(ObjectOp::Update, akey, 0)), 100);
        assert_eq!(rig.run(of(ObjectOp::Punch, akey, 0)), 0, "{scope:?}");
        assert_eq!(rig.run(of(ObjectOp::Fetch, akey, 0)), errno(libc::ENOENT), "{scope:?}");
    }
    end(fake, backend);
}

#[test]
fn arrays() {
    let (fake, _turn) = fake();
    let backend = backend("arrays");
    let id = object(ObjectType::Array);
    let of = |what, offset_bytes, value_bytes| ObjectOperation {
        object: id,
        offset_bytes,
        ..operation(what, value_bytes)
    };
    for keeps_handles in [true, false] {
        let mut plan = typed(ObjectOp::Write, ObjectType::Array);
        (plan.cell_size_bytes, plan.chunk_size_cells, plan.keeps_handles) = (4, 64, keeps_handles);
        let mut rig = Rig::open(&backend, plan.clone());
        assert_eq!(rig.run(of(ObjectOp::Open, 0, 0)), errno(libc::ENOENT));
        assert_eq!(
            rig.run(of(ObjectOp::Write, 0, 100)),
            errno(libc::ENOENT),
            "it opens by what is kept with it"
        );
        assert_eq!(rig.run(of(ObjectOp::Create, 0, 0)), 0);
        assert_eq!(rig.run(of(ObjectOp::Create, 0, 0)), errno(libc::EEXIST));
        assert_eq!(rig.run(of(ObjectOp::Open, 0, 0)), 0);
        rig.fill(0, &[5; 100]);
        assert_eq!(rig.run(of(ObjectOp::Write, 40, 100)), 100);
        assert_eq!(rig.run(of(ObjectOp::Size, 0, 0)), 140);
        assert_eq!(rig.run(of(ObjectOp::Read, 80, 100)), 60);
        assert_eq!(rig.bytes(0, 60), [5; 60]);
        assert_eq!(rig.run(of(ObjectOp::Read, 140, 100)), 0);
        assert_eq!(rig.run(of(ObjectOp::Write, 2, 100)), errno(libc::EINVAL));
        plan.chunk_size_cells = 32;
        assert_eq!(Rig::open(&backend, plan).run(of(ObjectOp::Open, 0, 0)), errno(libc::EINVAL));
        assert_eq!(rig.run(of(ObjectOp::Destroy, 0, 0)), 0);
    }
    end(fake, backend);
}

/// Arrays that keep no attributes: libdaos counts what was read of those of bytes alone.
#[test]
fn cells_of_every_size_are_read_back() {
    let (fake, _turn) = fake();
    let backend = backend("cells");
    for (object_type, cell) in
        [(ObjectType::ArrayByte, 1), (ObjectType::ArrayAttr, 8), (ObjectType::ArrayAttr, 4096)]
    {
        let mut plan = typed(ObjectOp::Write, object_type);
        (plan.cell_size_bytes, plan.chunk_size_cells) = (cell, 3);
        plan.dataset.value_size_bytes_max = 8 * cell;
        let mut rig = Rig::open(&backend, plan);
        let of = |what, first: u64, cells: u64| ObjectOperation {
            object: object(object_type),
            offset_bytes: first * cell,
            ..operation(what, cells * cell)
        };
        let bytes = |cells: u64| (cells * cell) as i64;
        rig.fill(0, &vec![9; 8 * cell as usize]);
        assert_eq!(rig.run(of(ObjectOp::Write, 1, 8)), bytes(8), "{cell}");
        rig.fill(0, &vec![0; 8 * cell as usize]);
        assert_eq!(rig.run(of(ObjectOp::Read, 1, 8)), bytes(8), "over chunks of cells of {cell}");
        assert_eq!(rig.bytes(0, 8 * cell as usize), vec![9; 8 * cell as usize]);
        assert_eq!(rig.run(of(ObjectOp::Read, 3, 3)), bytes(3), "{cell}");
        assert_eq!(rig.run(of(ObjectOp::Size, 0, 0)), bytes(9), "{cell}");
    }
    end(fake, backend);
}

#[test]
fn kinds_that_exclude_each_other_do_not_meet() {
    let (fake, _turn) = fake();
    let backend = backend("kinds");
    let id = object(ObjectType::MultiHashed);
    let of =
        |what| ObjectOperation { object: id, dkey: Key::integer(9), akey: key("a"), ..operation(what, 100) };
    for value in [ValueKind::Single, ValueKind::Array, ValueKind::Single] {
        let mut plan = typed(ObjectOp::Update, ObjectType::MultiHashed);
        plan.dataset.value = value;
        let mut rig = Rig::open(&backend, plan);
        assert_eq!(rig.run(of(ObjectOp::Update)), 100, "{value:?}: {:?}", rig.findings());
        assert_eq!(rig.run(of(ObjectOp::Fetch)), 100, "{value:?}");
    }
    for cell in [8, 100, 8] {
        let mut plan = typed(ObjectOp::Write, ObjectType::ArrayAttr);
        (plan.cell_size_bytes, plan.chunk_size_cells) = (cell, 100);
        plan.dataset.value_size_bytes_max = 800;
        let mut rig = Rig::open(&backend, plan);
        let write =
            ObjectOperation { object: object(ObjectType::ArrayAttr), ..operation(ObjectOp::Write, 800) };
        assert_eq!(rig.run(write), 800, "cells of {cell}: {:?}", rig.findings());
    }
    end(fake, backend);
}

#[test]
fn what_libdaos_cannot_tell_is_refused() {
    let (fake, _turn) = fake();
    let backend = backend("refused");
    let refused = |plan: ObjectPlan| open(&backend, plan).expect_err("refused");
    let mut plan = typed(ObjectOp::Read, ObjectType::ArrayAttr);
    plan.short_read_bytes = Some(100);
    assert!(refused(plan).contains("only for arrays of bytes"));
    let mut plan = typed(ObjectOp::OpenWithAttr, ObjectType::Array);
    assert!(refused(plan.clone()).contains("stored attributes only"));
    plan.object_type = ObjectType::ArrayAttr;
    let with_attr =
        ObjectOperation { object: object(ObjectType::ArrayAttr), ..operation(ObjectOp::OpenWithAttr, 0) };
    assert_eq!(Rig::open(&backend, plan).run(with_attr), 0);
    end(fake, backend);
}

/// Opens a driver; the refusal as text.
fn open(backend: &Arc<dyn Backend>, plan: ObjectPlan) -> Result<(), String> {
    let arena = driver::Arena::new(32, 100, driver::PageSize::Base).expect("memory");
    let request = object::OpenRequest {
        worker: 0,
        plan: Arc::new(plan),
        arena: Arc::new(arena),
        interrupt: Arc::new(AtomicBool::new(false)),
    };
    backend.open(&request).map(drop).map_err(|error| error.to_string())
}

#[test]
fn failures_are_errnos_and_words() {
    let (fake, _turn) = fake();
    let failure = |target: &str| object::connect(&request(target)).err().expect("cannot be").to_string();
    let error = failure("daos://absent");
    assert!(
        error.starts_with("daos: cannot connect to the pool (daos=-DER_NONEXIST (-1005): does not exist"),
        "{error}"
    );
    fake.fail("daos_init", -1006, 0);
    let error = failure("daos://pool");
    assert!(
        error.contains("libdaos cannot be initialized") && error.contains("engines do not answer"),
        "{error}"
    );
    fake.fail("daos_init", -2034, 0);
    let error = failure("daos://pool");
    assert!(error.contains("daos_agent") && !error.contains("engines"), "{error}");
    let mut elsewhere = request("daos://pool");
    elsewhere.options.daos_system = Some("other".to_owned());
    let error = object::connect(&elsewhere).err().expect("no such system").to_string();
    assert!(
        error.starts_with("daos: the agent on this host does not know system other (daos=-DER_INVAL"),
        "{error}"
    );
    let mut asked = request("daos://pool/nowhere");
    asked.creates = false;
    let plan = typed(ObjectOp::Put, ObjectType::KvHashed);
    let error = object::connect(&asked).expect("up").prepare(&plan).expect_err("may not make it").to_string();
    assert!(error.starts_with("daos: pool pool has no container nowhere; create it:"), "{error}");

    let backend = backend("failing");
    let mut wide = plan.clone();
    wide.class = "RP_3G1".parse().expect("a class");
    backend.prepare(&wide).expect("prepared");
    let refused = |plan| open(&backend, plan).expect_err("refused");
    let error = refused(wide);
    assert!(
        error.contains("the pool does not support objects of class RP_3G1")
            && error.contains("need 3 engines"),
        "{error}"
    );
    let mut integers = plan.clone();
    integers.dataset.integer_dkeys = true;
    assert!(refused(integers).contains("DAOS requires text keys for key-value objects"));

    let mut rig = Rig::open(&backend, plan);
    let put = |slot| ObjectOperation {
        slot,
        object: object(ObjectType::KvHashed),
        dkey: key("key-").followed_by(u64::from(slot)),
        ..operation(ObjectOp::Put, 100)
    };
    fake.fail("daos_kv_put", -1007, 3);
    let results: Vec<i64> =
        rig.run_all(&(0..8).map(put).collect::<Vec<_>>()).iter().map(|done| done.result).collect();
    assert_eq!(results, [100, 100, 100, errno(libc::ENOSPC), 100, 100, 100, 100]);
    fake.fail("daos_kv_open", -1002, 0);
    let other = ObjectOperation { object: ObjectId::new(ObjectType::KvHashed, ObjectClass::S1, 8), ..put(0) };
    assert_eq!(rig.run(other), errno(libc::EBADF));
    assert_eq!(rig.run(other), 100);
    let findings = rig.findings();
    assert_eq!(findings.len(), 2);
    assert!(
        findings[0].ends_with("dkey key-3 akey : -DER_NOSPACE (-1007): no space on the storage target"),
        "{findings:?}"
    );
    drop(rig);
    end(fake, backend);
}
