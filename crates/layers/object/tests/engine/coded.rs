//! Erasure-coded values over the network: clients that die in the middle, several at one key, cells that are lost.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use object::ObjectOperation;
use object::plan::{ObjectOp, ObjectPlan, PunchScope, ValueKind};
use vos::ObjectClass;
use vos::model::{Key, ObjectId};
use vos::placement::Placement;
use vos::{Ack, KeyPath, Pool, Punch};

use crate::support::{Rig, content, object, operation, pool_in, scratch, serve, small, url};

const URL: &str = "STRATA_TEST_CODED_URL";
const ROUND: &str = "STRATA_TEST_CODED_ROUND";
const CONTAINER: &str = "c";
/// In a message, and as bulk.
const SIZES: [u64; 2] = [9_000, 70_000];
const BYTES_MAX: u64 = 70_000;

fn class(name: &str) -> ObjectClass {
    name.parse().expect("a class")
}

fn plan(class_name: &str, kind: ValueKind) -> ObjectPlan {
    let operations = [ObjectOp::Update, ObjectOp::Fetch, ObjectOp::Stat, ObjectOp::Punch, ObjectOp::Query];
    let mut plan = Rig::plan(&operations, BYTES_MAX, 1);
    (plan.class, plan.dataset.value, plan.punch) = (class(class_name), kind, PunchScope::Record);
    plan
}

fn update(plan: &ObjectPlan, number: u64, bytes: u64) -> ObjectOperation {
    operation(ObjectOp::Update, object(plan, 1), number, bytes)
}

fn write(rig: &mut Rig, update: &ObjectOperation, seed: u64) -> i64 {
    rig.fill(update, seed);
    rig.run(update)
}

/// Reads a value into a buffer that held something else; how long it is.
fn read(rig: &mut Rig, update: &ObjectOperation) -> i64 {
    rig.buffer(0).fill(0xee);
    rig.run(&ObjectOperation { operation: ObjectOp::Fetch, value_bytes: BYTES_MAX, ..*update })
}

/// Takes the cell of a shard away.
fn lose(pool: &Pool, id: ObjectId, dkey: &[u8], shard: u32) {
    let placement = Placement::new(id.class().expect("a class"), pool.targets().len() as u32).expect("fits");
    let target = placement.target(id, placement.group(dkey), shard) as usize;
    let container = pool.find_container(CONTAINER).expect("made").id;
    let place = KeyPath { container, object: id, dkey, akey: b"a" };
    pool.target(target).punch(&place, Punch::Akey, Ack::AsConfigured).expect("it was there");
}

fn tally(rig: &mut Rig, name: &str) -> f64 {
    rig.driver.tallies().iter().find(|tally| tally.name == name).map_or(0.0, |tally| tally.value)
}

/// Bytes that go through a [`Cut`] before it cuts.
struct Budget {
    bytes: AtomicI64,
    is_over: AtomicBool,
}

/// Stands before an engine, and cuts all connections once a client has sent so many bytes.
struct Cut {
    port: u16,
    budget: Arc<Budget>,
}

impl Cut {
    fn before(engine: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let budget = Arc::new(Budget { bytes: AtomicI64::new(i64::MAX), is_over: AtomicBool::new(false) });
        let (own, engine) = (Arc::clone(&budget), engine.to_owned());
        // The thread ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&engine) else { continue };
                let (to, back) =
                    ((client.try_clone(), server.try_clone()), (server.try_clone(), client.try_clone()));
                let budget = Arc::clone(&own);
                if let ((Ok(from), Ok(to)), (Ok(answers), Ok(asker))) = (to, back) {
                    std::thread::spawn(move || pass(from, to, &budget));
                    let free = Budget { bytes: AtomicI64::new(i64::MAX), is_over: AtomicBool::new(false) };
                    std::thread::spawn(move || pass(answers, asker, &free));
                }
            }
        });
        Self { port, budget }
    }
}

/// Passes bytes on as long as the budget lasts. What is over it does not arrive.
fn pass(mut from: TcpStream, mut to: TcpStream, budget: &Budget) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let left = budget.bytes.fetch_sub(count as i64, Ordering::SeqCst);
        let count = left.clamp(0, count as i64) as usize;
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
        if left <= buffer.len() as i64 && budget.bytes.load(Ordering::SeqCst) <= 0 {
            budget.is_over.store(true, Ordering::SeqCst);
            break;
        }
    }
    // Both may be closed already.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// The client's connections break after any number of bytes of an update: what is read then is the value before, or the new one.
#[test]
fn a_client_that_is_cut_off_leaves_one_whole_value() {
    for (class_name, targets) in [("EC_2P1G1", 3), ("EC_4P1G1", 5), ("EC_8P2G1", 10)] {
        let dir = scratch();
        let engine = serve(pool_in(dir.path(), &small(targets)), None);
        let address = engine.uri().strip_prefix("tcp://").expect("sockets").to_owned();
        let cut = Cut::before(&address);
        let through = url(&engine, CONTAINER).replace(&address, &format!("127.0.0.1:{}", cut.port));
        let plan = plan(class_name, ValueKind::Single);
        let mut reader = Rig::open(&url(&engine, CONTAINER), plan.clone()).expect("a driver");
        let (mut old, mut new) = (0, 0);
        for (number, bytes) in (0..).zip(SIZES.into_iter().cycle().take(12)) {
            cut.budget.bytes.store(i64::MAX, Ordering::SeqCst);
            let mut writer = Rig::open(&through, plan.clone()).expect("a driver");
            let update = update(&plan, number, bytes);
            assert_eq!(write(&mut writer, &update, number), bytes as i64);
            // From the first bytes of the request to beyond the last.
            let sent = (bytes as i64 + 300) * 9 / 8 * number as i64 / 11;
            cut.budget.bytes.store(sent.max(1), Ordering::SeqCst);
            let _ = write(&mut writer, &update, number + 1000);
            drop(writer);
            let found = read(&mut reader, &update);
            assert_eq!(found, bytes as i64, "{class_name}: {bytes} bytes, cut after {sent}");
            let (is_old, is_new) = (reader.has(&update, number), reader.has(&update, number + 1000));
            assert!(is_old || is_new, "{class_name}: {bytes} bytes, cut after {sent}");
            (old, new) = (old + u32::from(is_old), new + u32::from(is_new));
        }
        assert!(old > 0 && new > 0 && cut.budget.is_over.load(Ordering::SeqCst), "{old} old, {new} new");
        assert_eq!(tally(&mut reader, "values_repaired"), 0.0, "nothing had to be made up for");
        assert!(reader.driver.findings().is_empty(), "{:?}", reader.driver.findings());
    }
}

/// Not a test of its own: the client that [`a_client_that_is_killed_leaves_one_whole_value`] kills.
#[test]
fn writes_where_it_is_told_to() {
    let Ok(url) = std::env::var(URL) else { return };
    let first: u64 = std::env::var(ROUND).expect("told").parse().expect("a number");
    let plan = plan("EC_4P1G1", ValueKind::Single);
    let mut rig = Rig::open(&url, plan.clone()).expect("a driver");
    for number in first.. {
        let update = update(&plan, number % 2, SIZES[(number % 2) as usize]);
        assert_eq!(write(&mut rig, &update, number), update.value_bytes as i64);
        println!("\nacknowledged {number}");
    }
}

#[test]
fn a_client_that_is_killed_leaves_one_whole_value() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(5)), None);
    let plan = plan("EC_4P1G1", ValueKind::Single);
    let target = url(&engine, CONTAINER);
    let mut reader = Rig::open(&target, plan.clone()).expect("a driver");
    let mut next = 0;
    for _ in 0..8 {
        let this = std::env::current_exe().expect("a program");
        let mut child = Command::new(this)
            .args(["--exact", "coded::writes_where_it_is_told_to", "--nocapture"])
            .env(URL, &target)
            .env(ROUND, next.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let acknowledged = |line: String| line.trim().strip_prefix("acknowledged ")?.parse::<u64>().ok();
        let mut told = output.lines().map_while(Result::ok).filter_map(acknowledged);
        let begun = told.by_ref().take(20).last().expect("it wrote something");
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        let last = told.last().unwrap_or(begun);
        for number in [last - 1, last] {
            let update = update(&plan, number % 2, SIZES[(number % 2) as usize]);
            assert_eq!(read(&mut reader, &update), update.value_bytes as i64);
            // What was under way when it died may have come.
            let is_one = reader.has(&update, number) || reader.has(&update, number + 2);
            assert!(is_one, "{number} was acknowledged, and something else is there");
        }
        next = last + 3;
    }
    assert!(reader.driver.findings().is_empty(), "{:?}", reader.driver.findings());
}

/// Two clients write one key at the same time, others read it: always one of the two values, whole, also with as many cells lost as there is parity.
#[test]
fn clients_that_write_one_key_leave_one_whole_value() {
    for (class_name, targets, parity) in [("EC_2P1G1", 3, 1), ("EC_4P2G1", 6, 2), ("EC_8P2G1", 10, 2)] {
        let dir = scratch();
        let pool = pool_in(dir.path(), &small(targets));
        let engine = serve(Arc::clone(&pool), None);
        let (target, plan) = (url(&engine, CONTAINER), plan(class_name, ValueKind::Single));
        let open = || Rig::open(&target, plan.clone()).expect("a driver");
        let mut rigs = [open(), open()];
        let mut reader = open();
        for round in 0..24_u32 {
            let update = update(&plan, u64::from(round), SIZES[round as usize % 2]);
            let bytes = update.value_bytes as i64;
            let left = AtomicI64::new(rigs.len() as i64);
            assert_eq!(write(&mut rigs[0], &update, 0), bytes);
            std::thread::scope(|scope| {
                for (mark, rig) in (0..).zip(&mut rigs) {
                    let left = &left;
                    scope.spawn(move || {
                        for seed in 0..6 {
                            assert_eq!(write(rig, &update, seed * 2 + mark), bytes);
                        }
                        left.fetch_sub(1, Ordering::SeqCst);
                    });
                }
                while left.load(Ordering::SeqCst) > 0 {
                    assert_eq!(read(&mut reader, &update), bytes, "{class_name} round {round}");
                    assert!((0..12).any(|seed| reader.has(&update, seed)), "{class_name}: a mixture");
                }
            });
            let shards = class(class_name).group_size();
            for lost in 0..=parity {
                if lost > 0 {
                    lose(&pool, update.object, update.dkey.as_bytes(), (round + lost * 2) % shards);
                }
                assert_eq!(read(&mut reader, &update), bytes, "{class_name} without {lost}");
                assert!([10, 11].iter().any(|&seed| reader.has(&update, seed)), "{class_name} round {round}");
                let stat = ObjectOperation { operation: ObjectOp::Stat, ..update };
                assert_eq!(reader.run(&stat), bytes, "{class_name} without {lost}");
            }
        }
        assert!(tally(&mut reader, "values_repaired") > 0.0);
        let findings = reader.driver.findings();
        assert!(findings.is_empty(), "a cell that is missing is no damage: {findings:?}");
    }
}

/// Reads as much as was written. What a cell that is gone has stored is known by whole stripes alone: a longer read may find more of it, zeros.
fn read_all(rig: &mut Rig, update: &ObjectOperation) -> i64 {
    rig.buffer(0).fill(0xee);
    rig.run(&ObjectOperation { operation: ObjectOp::Fetch, ..*update })
}

/// Parts of stripes are changed by two clients, and parity goes with them: any cell can be lost then.
#[test]
fn parts_of_stripes_are_changed_and_any_cell_may_be_lost() {
    const ALL: usize = 40_000;
    for (class_name, targets) in [("EC_2P1G1", 3), ("EC_4P2G1", 6)] {
        let dir = scratch();
        let pool = pool_in(dir.path(), &small(targets));
        let engine = serve(Arc::clone(&pool), None);
        let (target, plan) = (url(&engine, CONTAINER), plan(class_name, ValueKind::Array));
        let mut rigs = [0; 2].map(|_| Rig::open(&target, plan.clone()).expect("a driver"));
        let shards = class(class_name).group_size();
        for lost in 0..shards {
            let whole = update(&plan, u64::from(lost), ALL as u64);
            let mut expected = content(7, ALL);
            assert_eq!(write(&mut rigs[0], &whole, 7), ALL as i64);
            // Each client has a half: their borders lie in one stripe.
            let half = ALL / 2;
            std::thread::scope(|scope| {
                for (mark, rig) in (0..).zip(&mut rigs) {
                    scope.spawn(move || {
                        for number in 0..12_u64 {
                            let (offset_bytes, value_bytes) = part_of(mark, number, half);
                            let part = ObjectOperation { offset_bytes, value_bytes, ..whole };
                            assert_eq!(write(rig, &part, mark * 100 + number), value_bytes as i64);
                        }
                    });
                }
            });
            for (mark, number) in (0..2).flat_map(|mark| (0..12).map(move |number| (mark, number))) {
                let (from, bytes) = part_of(mark, number, half);
                expected[from as usize..][..bytes as usize]
                    .copy_from_slice(&content(mark * 100 + number, bytes as usize));
            }
            let hole = ObjectOperation {
                operation: ObjectOp::Punch,
                offset_bytes: 5000,
                value_bytes: 1500,
                ..whole
            };
            assert_eq!(rigs[1].run(&hole), 0);
            expected[5000..6500].fill(0);
            for is_lost in [false, true] {
                if is_lost {
                    lose(&pool, whole.object, whole.dkey.as_bytes(), lost);
                }
                let place = format!("{class_name} cell {lost} lost: {is_lost}");
                assert_eq!(read_all(&mut rigs[0], &whole), ALL as i64, "{place}");
                assert!(rigs[0].buffer(0)[..ALL] == expected, "{place}");
                let part = ObjectOperation { offset_bytes: 3333, value_bytes: 9999, ..whole };
                let fetch = ObjectOperation { operation: ObjectOp::Fetch, ..part };
                assert_eq!(rigs[0].run(&fetch), 9999, "{place}");
                assert!(rigs[0].buffer(0)[..9999] == expected[3333..3333 + 9999], "{place}");
            }
            // Written as a whole it is whole again.
            assert_eq!(write(&mut rigs[1], &whole, 99), ALL as i64);
            lose(&pool, whole.object, whole.dkey.as_bytes(), (lost + 1) % shards);
            assert_eq!(read_all(&mut rigs[0], &whole), ALL as i64);
            assert!(rigs[0].has(&whole, 99), "{class_name} after {lost}");
        }
        let nothing = ObjectOperation { dkey: Key::new(b"nothing").expect("short"), ..update(&plan, 0, 10) };
        assert_eq!(read(&mut rigs[0], &nothing), -i64::from(libc::ENOENT));
    }
}

/// First byte and length of a part of one client's half.
fn part_of(mark: u64, number: u64, half: usize) -> (u64, u64) {
    let bytes = 1 + number * 311;
    let from = mark * half as u64 + number * 1499 % (half as u64 - bytes);
    (from, bytes)
}

/// A value that finds no room on one of its shards changes nothing on the others.
#[test]
fn a_value_that_one_shard_has_no_room_for_changes_nothing() {
    let dir = scratch();
    let pool = pool_in(dir.path(), &vos::PoolOptions { scm_bytes: 5 * (16 << 20), ..small(5) });
    let engine = serve(Arc::clone(&pool), None);
    let plan = plan("EC_4P1G1", ValueKind::Single);
    let mut rig = Rig::open(&url(&engine, CONTAINER), plan.clone()).expect("a driver");
    let kept = update(&plan, 0, BYTES_MAX);
    assert_eq!(write(&mut rig, &kept, 1), BYTES_MAX as i64);
    // One target is filled by somebody else.
    let placement = Placement::new(plan.class, 5).expect("fits");
    let container = pool.find_container(CONTAINER).expect("made").id;
    let other = ObjectId { lo: 77, hi: 0 };
    let full = pool.target(placement.target(kept.object, 0, 2) as usize);
    for bytes in [100_000, 1000, 10] {
        for number in 0_u32.. {
            let dkey = [bytes as u32, number].map(u32::to_le_bytes).concat();
            let place = KeyPath { container, object: other, dkey: &dkey, akey: b"a" };
            let value = vec![1; bytes];
            if full.update(&place, vos::Write::Single, &value, Ack::AsConfigured).is_err() {
                break;
            }
        }
    }
    assert_eq!(write(&mut rig, &kept, 2), -i64::from(libc::ENOSPC));
    assert_eq!(read(&mut rig, &kept), BYTES_MAX as i64);
    assert!(rig.has(&kept, 1), "the value before");
    assert_eq!(tally(&mut rig, "values_repaired"), 0.0);
}

/// Values that are discarded while they are written go from all targets, or from none.
#[test]
fn a_discard_beside_updates_leaves_values_whole() {
    for class_name in ["EC_4P1G1", "RP_3G1"] {
        let dir = scratch();
        let pool = pool_in(dir.path(), &small(5));
        let engine = serve(Arc::clone(&pool), None);
        let (target, mut plan) = (url(&engine, CONTAINER), plan(class_name, ValueKind::Single));
        plan.sequence.push(ObjectOp::Discard);
        let open = || Rig::open(&target, plan.clone()).expect("a driver");
        let (mut writers, mut discarder) = ([open(), open()], open());
        for _ in 0..6 {
            let left = AtomicI64::new(writers.len() as i64);
            std::thread::scope(|scope| {
                for (mark, rig) in (0..).zip(&mut writers) {
                    let (left, plan) = (&left, &plan);
                    scope.spawn(move || {
                        for number in 0..60 {
                            let update = update(plan, mark * 100 + number, 9_000);
                            assert_eq!(write(rig, &update, number), 9_000);
                        }
                        left.fetch_sub(1, Ordering::SeqCst);
                    });
                }
                while left.load(Ordering::SeqCst) > 0 {
                    let discard = operation(ObjectOp::Discard, object(&plan, 1), 0, 0);
                    assert!(discarder.run(&discard) >= 0);
                }
            });
            let placement = Placement::new(plan.class, 5).expect("fits");
            let container = pool.find_container(CONTAINER).expect("made").id;
            for number in (0..2).flat_map(|mark| (0..60).map(move |number| mark * 100 + number)) {
                let update = update(&plan, number, 9_000);
                let shards = (0..placement.group_size()).map(|shard| {
                    let at = placement.target(update.object, placement.group(update.dkey.as_bytes()), shard);
                    let (dkey, akey) = (update.dkey.as_bytes(), update.akey.as_bytes());
                    let place = KeyPath { container, object: update.object, dkey, akey };
                    pool.target(at as usize).size_of(&place, None).is_ok()
                });
                let shards: Vec<bool> = shards.collect();
                assert!(
                    shards.iter().all(|is_there| *is_there == shards[0]),
                    "{class_name}: {number} {shards:?}"
                );
            }
        }
    }
}
