//! The `rados` driver against a Ceph cluster of one node.

#[path = "../conformance/plan.rs"]
mod plan;
mod rig;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use std::sync::atomic::AtomicBool;

use object::plan::{ObjectOp, ObjectPlan, PunchScope, Scope, ValueKind};
use object::{Backend, ConnectRequest};
use rig::{Rig, errno, operation};
use testkit::CephNode;
use vos::ObjectType;
use vos::model::{Key, ObjectId};

fn node() -> Option<&'static CephNode> {
    testkit::ceph_node(env!("CARGO_TARGET_TMPDIR"))
}

fn request(node: &CephNode, target: &str) -> ConnectRequest {
    let mut options = plan::options();
    options.rados_conf = Some(node.conf.display().to_string());
    ConnectRequest {
        target: target.to_owned(),
        options,
        creates: true,
        threads: 1,
        interrupt: Arc::new(AtomicBool::new(false)),
        ..ConnectRequest::default()
    }
}

/// A container of the pool `strata`, gone with the test.
fn backend(node: &CephNode, label: &str) -> Arc<dyn Backend> {
    object::connect(&request(node, &format!("rados://strata/{label}"))).expect("the cluster is up")
}

fn arrays(operation: ObjectOp) -> ObjectPlan {
    let mut plan = plan::plan(operation);
    plan.object_type = ObjectType::ArrayByte;
    (plan.cell_size_bytes, plan.chunk_size_cells) = (1, 1000);
    plan.dataset.value_size_bytes_max = 5000;
    plan.load.depth = 4;
    plan
}

fn array_id(lo: u64) -> ObjectId {
    ObjectId::new(ObjectType::ArrayByte, vos::ObjectClass::S1, lo)
}

fn key(text: &str) -> Key {
    Key::new(text.as_bytes()).expect("short")
}

/// Names that `rados ls` shows of a container, sorted.
fn listed(node: &CephNode, label: &str) -> Vec<String> {
    let output = Command::new("rados")
        .args(["--conf", node.conf.to_str().expect("text"), "-p", "strata", "-N", label, "ls"])
        .output()
        .expect("rados runs");
    let mut names: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn values_of_keys_are_objects_of_the_pool() {
    let Some(node) = node() else { return };
    let backend = backend(node, "keys");
    let mut plan = plan::plan(ObjectOp::Put);
    plan.load.depth = 32;
    plan.list_max = 20;
    let mut rig = Rig::open(&backend, plan);
    let of = |what, number: u64, slot| {
        let dkey = key("key-").followed_by(number);
        object::ObjectOperation { dkey, slot, ..operation(what, 100) }
    };
    let all = |what| (0..32).map(|number| of(what, number, number as u32)).collect::<Vec<_>>();
    for slot in 0..32 {
        rig.fill(slot, &[slot as u8; 100]);
    }
    assert!(rig.run_all(&all(ObjectOp::Put)).iter().all(|done| done.result == 100));
    assert_eq!(listed(node, "keys").len(), 33);
    assert!(listed(node, "keys").contains(&"0.1/key-31".to_owned()));
    for slot in 0..32 {
        rig.fill(slot, &[0xee; 100]);
    }
    assert!(rig.run_all(&all(ObjectOp::Get)).iter().all(|done| done.result == 100));
    for slot in 0..32 {
        assert_eq!(rig.bytes(slot, 100), [slot as u8; 100]);
    }
    assert!(rig.run_all(&all(ObjectOp::Stat)).iter().all(|done| done.result == 100));
    // Twenty, the rest, and anew.
    let list = operation(ObjectOp::List, 0);
    assert_eq!([rig.run(list), rig.run(list), rig.run(list)], [20, 12, 20]);
    assert!(rig.run_all(&all(ObjectOp::Remove)).iter().all(|done| done.result == 0));
    for what in [ObjectOp::Get, ObjectOp::Stat, ObjectOp::Remove] {
        assert_eq!(rig.run(of(what, 3, 0)), errno(libc::ENOENT), "{what:?}");
    }
    rig.fill(0, &[]);
    assert_eq!(rig.run(object::ObjectOperation { value_bytes: 0, ..of(ObjectOp::Put, 1, 0) }), 0);
    assert_eq!(rig.run(object::ObjectOperation { value_bytes: 0, ..of(ObjectOp::Get, 1, 0) }), 0);
    assert_eq!(rig.run(operation(ObjectOp::OpenContainer, 0)), 0);
    drop(rig);
    backend.clean(&|_| ()).expect("it was made by this run");
    assert_eq!(listed(node, "keys"), Vec::<String>::new());
}

#[test]
fn single_values_under_akeys_are_omap_entries() {
    let Some(node) = node() else { return };
    let backend = backend(node, "omap");
    let mut plan = plan::plan(ObjectOp::Update);
    plan.load.depth = 4;
    plan.punch = PunchScope::Akey;
    let mut rig = Rig::open(&backend, plan.clone());
    let of = |what, akey: &str| object::ObjectOperation {
        dkey: Key::integer(7),
        akey: key(akey),
        ..operation(what, 100)
    };
    for akey in ["a", "b"] {
        rig.fill(0, &[akey.as_bytes()[0]; 100]);
        assert_eq!(rig.run(of(ObjectOp::Update, akey)), 100);
    }
    assert_eq!(listed(node, "omap"), ["0.1/#7", "strata.container"]);
    rig.fill(0, &[0; 100]);
    assert_eq!(rig.run(of(ObjectOp::Fetch, "b")), 100);
    assert_eq!(rig.bytes(0, 100), [b'b'; 100]);
    let short = object::ObjectOperation { value_bytes: 10, ..of(ObjectOp::Fetch, "b") };
    assert_eq!(rig.run(short), errno(libc::EOVERFLOW));
    assert_eq!(rig.run(of(ObjectOp::Fetch, "c")), errno(libc::ENOENT));
    assert_eq!(rig.run(of(ObjectOp::Punch, "a")), 0);
    assert_eq!(rig.run(of(ObjectOp::Fetch, "a")), errno(libc::ENOENT));
    assert_eq!(rig.run(of(ObjectOp::Fetch, "b")), 100);
    assert!(
        rig.findings().iter().any(|line| line.contains("fetch of object 0.1 dkey")),
        "{:?}",
        rig.findings()
    );
    plan.punch = PunchScope::Dkey;
    let mut rig = Rig::open(&backend, plan);
    assert_eq!(rig.run(of(ObjectOp::Punch, "b")), 0);
    assert_eq!(rig.run(of(ObjectOp::Fetch, "b")), errno(libc::ENOENT));
    drop(rig);
    backend.clean(&|_| ()).expect("clean");
}

#[test]
fn extents_under_akeys_are_punched_by_record_dkey_and_object() {
    let Some(node) = node() else { return };
    let backend = backend(node, "extents");
    let mut plan = plan::plan(ObjectOp::Update);
    (plan.dataset.value, plan.dataset.dkeys, plan.dataset.akeys) = (ValueKind::Array, 3, 2);
    let of = |what, dkey: u64, akey: u64, offset_bytes| object::ObjectOperation {
        dkey: key("blade-").followed_by(dkey),
        akey: key("akey--").followed_by(akey),
        offset_bytes,
        ..operation(what, 100)
    };
    let mut rig = Rig::open(&backend, plan.clone());
    rig.fill(0, &[9; 100]);
    for dkey in 0..3 {
        for akey in 0..2 {
            for offset in [0, 100] {
                assert_eq!(rig.run(of(ObjectOp::Update, dkey, akey, offset)), 100);
            }
        }
    }
    assert_eq!(listed(node, "extents").len(), 7);
    assert_eq!(rig.run(of(ObjectOp::Punch, 0, 1, 0)), 0);
    assert_eq!(rig.run(of(ObjectOp::Fetch, 0, 1, 0)), 100);
    assert_eq!(rig.bytes(0, 100), [0; 100]);
    assert_eq!(rig.run(of(ObjectOp::Fetch, 0, 1, 100)), 100);
    assert_eq!(rig.bytes(0, 100), [9; 100]);
    plan.punch = PunchScope::Dkey;
    assert_eq!(Rig::open(&backend, plan.clone()).run(of(ObjectOp::Punch, 1, 0, 0)), 0);
    assert_eq!(listed(node, "extents").len(), 5);
    plan.punch = PunchScope::Object;
    assert_eq!(Rig::open(&backend, plan.clone()).run(of(ObjectOp::Punch, 0, 0, 0)), 0);
    assert_eq!(listed(node, "extents"), ["strata.container"]);
    drop(rig);
    backend.clean(&|_| ()).expect("clean");
}

#[test]
fn arrays_are_striped_over_objects() {
    let Some(node) = node() else { return };
    let backend = backend(node, "arrays");
    let mut rig = Rig::open(&backend, arrays(ObjectOp::Write));
    let of = |what, offset_bytes, value_bytes| object::ObjectOperation {
        object: array_id(1),
        offset_bytes,
        ..operation(what, value_bytes)
    };
    assert_eq!(rig.run(of(ObjectOp::Open, 0, 0)), errno(libc::ENOENT));
    assert_eq!(rig.run(of(ObjectOp::Size, 0, 0)), 0);
    assert_eq!(rig.run(of(ObjectOp::Create, 0, 0)), 0);
    assert_eq!([rig.run(of(ObjectOp::Open, 0, 0)), rig.run(of(ObjectOp::OpenWithAttr, 0, 0))], [0, 0]);
    let data: Vec<u8> = (0..4321).map(|at| (at * 7 % 251) as u8).collect();
    rig.fill(0, &data);
    assert_eq!(rig.run(of(ObjectOp::Write, 1500, 4321)), 4321);
    assert_eq!(rig.run(of(ObjectOp::Size, 0, 0)), 5821);
    rig.fill(0, &[0xee; 5000]);
    // A hole, then what was written, and no more than that.
    assert_eq!(rig.run(of(ObjectOp::Read, 1000, 5000)), 4821);
    assert_eq!(rig.bytes(0, 500), [0; 500]);
    assert!(rig.bytes(0, 4821)[500..] == data);
    // A smaller write later does not shrink it; several in flight at once.
    rig.fill(1, &[1; 1000]);
    rig.fill(2, &[2; 1000]);
    let writes = [
        object::ObjectOperation { slot: 1, ..of(ObjectOp::Write, 0, 1000) },
        object::ObjectOperation { slot: 2, ..of(ObjectOp::Write, 9500, 1000) },
    ];
    assert!(rig.run_all(&writes).iter().all(|done| done.result == 1000));
    assert_eq!(rig.run(of(ObjectOp::Size, 0, 0)), 10_500);
    // Another worker finds the same, and does not record less.
    let mut other = Rig::open(&backend, arrays(ObjectOp::Write));
    other.fill(0, &[3; 1000]);
    assert_eq!(other.run(of(ObjectOp::Write, 2500, 1000)), 1000);
    assert_eq!(other.run(of(ObjectOp::Size, 0, 0)), 10_500);
    let mut differs = arrays(ObjectOp::Open);
    differs.chunk_size_cells = 500;
    assert_eq!(Rig::open(&backend, differs).run(of(ObjectOp::Open, 0, 0)), errno(libc::EINVAL));
    assert_eq!(rig.run(of(ObjectOp::Destroy, 0, 0)), 0);
    assert_eq!(listed(node, "arrays"), ["strata.container"]);
    assert_eq!(rig.run(of(ObjectOp::Destroy, 0, 0)), errno(libc::ENOENT));
    drop((rig, other));
    backend.clean(&|_| ()).expect("clean");
}

#[test]
fn only_what_a_run_made_is_removed() {
    let Some(node) = node() else { return };
    let first = backend(node, "kept");
    let mut plan = plan::plan(ObjectOp::Put);
    plan.containers = Scope::Private;
    first.prepare(&plan).expect("made");
    assert_eq!(listed(node, "kept.0"), ["strata.container"]);
    let second = backend(node, "kept");
    // What it stored there would go with the first one's end.
    let error = second.prepare(&plan).expect_err("another run's");
    assert!(error.to_string().contains("--destroy-data") && error.exit_code() == 2, "{error}");
    let mut reads = plan.clone();
    reads.mix[0].operation = ObjectOp::Get;
    second.prepare(&reads).expect("there");
    second.clean(&|_| ()).expect("nothing to do");
    assert_eq!(listed(node, "kept.0"), ["strata.container"]);
    first.clean(&|_| ()).expect("its own");
    assert_eq!(listed(node, "kept.0"), Vec::<String>::new());
    // Foreign objects are left alone, and no container is made among them.
    let conf = node.conf.to_str().expect("text");
    let create = ["--conf", conf, "-p", "strata", "-N", "foreign", "create", "theirs"];
    assert!(Command::new("rados").args(create).status().expect("rados runs").success());
    plan.containers = Scope::Shared;
    let error = backend(node, "foreign").prepare(&plan).expect_err("not strata's");
    assert!(error.to_string().contains("holds objects that strata did not create"), "{error}");
    assert_eq!(error.exit_code(), 2);
    assert_eq!(listed(node, "foreign"), ["theirs"]);
    let mut request = request(node, "rados://strata/nowhere");
    request.creates = false;
    let error = object::connect(&request).expect("up").prepare(&plan).expect_err("may not make it");
    assert_eq!(error.to_string(), "rados: pool strata has no container nowhere");
}

#[test]
fn what_cannot_be_reached_is_one_line() {
    let Some(node) = node() else { return };
    let failure = |target: &str, change: &dyn Fn(&mut object::ConnectRequest)| {
        let mut request = request(node, target);
        change(&mut request);
        let error = object::connect(&request).err().expect("cannot be").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let error = failure("rados://absent", &|_| {});
    assert!(
        error.starts_with("rados: pool absent does not exist; existing pools: ") && error.contains("strata"),
        "{error}"
    );
    let error =
        failure("rados://strata", &|request| request.options.rados_conf = Some("/nowhere".to_owned()));
    assert!(error.contains("cannot be read (file=/nowhere): No such file"), "{error}");
    let error = failure("rados://strata", &|request| request.options.rados_user = Some("nobody".to_owned()));
    assert!(error.contains("user=client.nobody") && error.contains("keyring"), "{error}");
    // Nobody listens there.
    let scratch = tempfile::tempdir().expect("a directory");
    let conf = scratch.path().join("ceph.conf");
    let text = std::fs::read_to_string(&node.conf).expect("readable");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let line = format!("mon_host = [v2:{port}/0]");
    let text: Vec<_> =
        text.lines().map(|old| if old.starts_with("mon_host") { line.as_str() } else { old }).collect();
    std::fs::write(&conf, text.join("\n") + "\n").expect("written");
    let begun = std::time::Instant::now();
    let error = failure("rados://strata", &|request| {
        request.options.rados_conf = Some(conf.display().to_string());
        request.options.timeout_ns = 1_000_000_000;
    });
    assert!(error.contains("no monitor answered in 1 s") && error.contains("mon_host"), "{error}");
    assert!(begun.elapsed().as_secs() < 30);
}

#[test]
fn a_full_cluster_refuses_and_does_not_wait() {
    // One of its own: nobody else can write to it then.
    let Some(node) = testkit::CephNode::start(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("ceph-node-full"))
    else {
        return;
    };
    let ceph = |words: &[&str]| {
        let output =
            Command::new("ceph").arg("--conf").arg(&node.conf).args(words).output().expect("ceph runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let backend = backend(&node, "full");
    let mut plan = plan::plan(ObjectOp::Put);
    plan.dataset.value_size_bytes_max = 4 << 20;
    plan.load.depth = 8;
    let mut rig = Rig::open(&backend, plan);
    let put = |slot: u32| object::ObjectOperation {
        slot,
        dkey: key("key-").followed_by(u64::from(slot)),
        ..operation(ObjectOp::Put, 4 << 20)
    };
    let puts: Vec<_> = (0..8).map(put).collect();
    assert!(rig.run_all(&puts).iter().all(|done| done.result == 4 << 20));
    for ratio in ["set-nearfull-ratio", "set-backfillfull-ratio", "set-full-ratio"] {
        ceph(&["osd", ratio, "0.01"]);
    }
    // New keys, until the OSD has told the monitor and the monitor has told everybody.
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut number = 100;
    let refused = loop {
        let more =
            object::ObjectOperation { dkey: key("key-").followed_by(number), value_bytes: 100, ..put(0) };
        match rig.run(more) {
            100 => assert!(Instant::now() < deadline, "the OSD does not notice that it is full"),
            refused => break refused,
        }
        number += 1;
    };
    assert_eq!(refused, errno(libc::ENOSPC));
    let findings = rig.findings();
    assert!(
        findings[0].starts_with("put of object 0.1 dkey key-") && findings[0].contains("No space"),
        "{findings:?}"
    );
    drop(rig);
    ceph(&["osd", "set-full-ratio", "0.95"]);
    node.stop();
}

#[test]
fn too_large_a_value_is_refused_before_it_is_sent() {
    let Some(node) = node() else { return };
    let mut plan = plan::plan(ObjectOp::Put);
    plan.dataset.value_size_bytes_max = 91 << 20;
    let error = backend(node, "large").prepare(&plan).expect_err("more than an OSD takes");
    assert!(error.to_string().contains("at most 94371840 bytes"), "{error}");
    assert_eq!(error.exit_code(), 2);
}
