//! Cost of the store on top of the network: rates of objects behind an engine against those of bare RPCs, in turns in one run, over
//! loopback, 16 in flight, client and engine pinned to a core each.
//!
//! `cargo run --release --manifest-path crates/layers/object/Cargo.toml --example engine_speed -- [ROUNDS] [MILLISECONDS] [DIR] [FILTER]`

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Clock as _, Completions, Driver, HostClock, Operation, PageSize, Wait};
use network::{Payload, PayloadKind, Rpc, SlotLayout};
use object::plan::{ObjectOp, ObjectPlan};
use object::{ConnectRequest, ObjectOperation, OpenRequest};
use object_service::Pools;
use rpc::engine::{Engine, EngineRequest};
use rpc::{EndpointPlan, Poll, SocketPlan};
use vos::model::{Key, ObjectId};
use vos::{ObjectClass, ObjectType, Pool, PoolOptions};

#[path = "../tests/conformance/plan.rs"]
mod plan;

const CLIENT_CPU: u32 = 0;
const ENGINE_CPU: u32 = 1;
const DEPTH: u32 = 16;
const KEYS: u64 = 20_000;
const CHUNKS: u64 = 64;
const SMALL_BYTES: u64 = 4096;
const LARGE_BYTES: u64 = 1 << 20;

/// Name, what it is held against, the RPC's payloads where it is a bare one, else the operation on objects.
type Row = (&'static str, &'static str, Option<(Payload, Payload)>, ObjectOp);

/// Operations a second of a closed loop.
fn rate<Op: Operation>(driver: &mut dyn Driver<Op>, window_ns: u64, mut next: impl FnMut(u32) -> Op) -> f64 {
    let clock = HostClock::get();
    let mut done = Completions::with_depth(DEPTH);
    let mut batch: Vec<Op> = (0..DEPTH).map(&mut next).collect();
    let (mut count, begin) = (0_u64, clock.now_ns());
    let mut in_flight = 0;
    loop {
        let taken = driver.submit(&batch, &mut done).expect("works").accepted;
        batch.drain(..taken);
        in_flight += taken;
        let wait = Wait::AtLeast(u32::from(done.is_empty()));
        driver.reap(wait, &mut done).expect("works");
        let is_over = clock.now_ns() - begin >= window_ns;
        for each in done.as_slice() {
            assert!(each.result >= 0, "{}", std::io::Error::from_raw_os_error(-each.result as i32));
            in_flight -= 1;
            count += 1;
            if !is_over {
                batch.push(next(each.slot));
            }
        }
        done.clear();
        if is_over && in_flight == 0 {
            return count as f64 * 1e9 / (clock.now_ns() - begin) as f64;
        }
    }
}

/// A driver of bare RPCs.
fn rpcs(engine: &Engine, request: Payload, reply: Payload) -> Box<dyn Driver<Rpc>> {
    let layout = SlotLayout::new(request, reply, None);
    let arena = Arena::new(DEPTH, layout.slot_bytes, PageSize::Base).expect("memory");
    let endpoint = EndpointPlan { rank: 0, tag: 2, uri: engine.uri().to_owned(), label: "0:2".to_owned() };
    let open = network::OpenRequest {
        endpoints: vec![endpoint],
        request,
        reply,
        layout,
        connections: 1,
        pipeline: DEPTH,
        depth: DEPTH,
        poll: Poll::Adaptive,
        timeout_ns: 20_000_000_000,
        socket: SocketPlan { no_delay: true, ..SocketPlan::default() },
        domain: None,
        verify: false,
        seed: 1,
        arena: Arc::new(arena),
        device: None,
        secret: None,
        interrupt: Arc::new(AtomicBool::new(false)),
    };
    let tcp = driver::find(network::DRIVERS, "tcp").expect("listed");
    (tcp.open)(&open).expect("a driver").driver
}

fn object_plan() -> ObjectPlan {
    let mut plan = plan::plan(ObjectOp::Update);
    plan.sequence =
        vec![ObjectOp::Update, ObjectOp::Fetch, ObjectOp::Write, ObjectOp::Read, ObjectOp::Aggregate];
    plan.dataset.value_size_bytes_max = LARGE_BYTES;
    plan.chunk_size_cells = LARGE_BYTES;
    plan.load.depth = DEPTH;
    plan.options.zero_copy = true;
    plan
}

fn objects(engine: &Engine) -> Box<dyn Driver<ObjectOperation>> {
    let address = engine.uri().strip_prefix("tcp://").expect("sockets");
    let interrupt = Arc::new(AtomicBool::new(false));
    let request = ConnectRequest {
        target: format!("engine://{address}/tank/speed"),
        options: plan::options(),
        creates: true,
        threads: 1,
        interrupt: Arc::clone(&interrupt),
        ..ConnectRequest::default()
    };
    let backend = object::connect(&request).expect("a store");
    let plan = Arc::new(object_plan());
    backend.prepare(&plan).expect("prepared");
    let arena = Arc::new(Arena::new(DEPTH, LARGE_BYTES as usize, PageSize::Base).expect("memory"));
    backend.open(&OpenRequest { worker: 0, plan, arena, interrupt }).expect("a driver").driver
}

fn operation(kind: ObjectOp, slot: u32, number: u64) -> ObjectOperation {
    let is_large = matches!(kind, ObjectOp::Write | ObjectOp::Read);
    ObjectOperation {
        slot,
        operation: kind,
        is_short_good: false,
        record: number,
        object: ObjectId::new(ObjectType::MultiHashed, ObjectClass::S1, u64::from(is_large)),
        dkey: Key::integer(number % KEYS),
        akey: Key::new(b"a").expect("short"),
        offset_bytes: if is_large { number % CHUNKS * LARGE_BYTES } else { 0 },
        value_bytes: if is_large { LARGE_BYTES } else { SMALL_BYTES },
    }
}

struct Figures {
    name: &'static str,
    unit: &'static str,
    per_second: Vec<f64>,
    /// Of the figure that it is held against.
    ratios: Vec<f64>,
    against: &'static str,
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// One round: a line each, in turns.
fn round(
    figures: &mut Vec<Figures>,
    filter: &str,
    window_ns: u64,
    engine: &Engine,
    store: &mut dyn Driver<ObjectOperation>,
) {
    let none = Payload::EMPTY;
    let iov = Payload { kind: PayloadKind::Iov, size_bytes: SMALL_BYTES };
    let bulk = Payload { kind: PayloadKind::Bulk, size_bytes: LARGE_BYTES };
    let mut sequence = 0;
    let mut next = || {
        sequence += 1;
        sequence
    };
    let rows: [Row; 9] = [
        ("rpc, empty", "", Some((none, none)), ObjectOp::Fetch),
        ("rpc, 4 KiB inline reply", "rpc, empty", Some((none, iov)), ObjectOp::Fetch),
        ("fetch, 4 KiB", "rpc, empty", None, ObjectOp::Fetch),
        ("rpc, 4 KiB inline request", "rpc, empty", Some((iov, none)), ObjectOp::Fetch),
        ("update, 4 KiB", "rpc, empty", None, ObjectOp::Update),
        ("rpc, 1 MiB bulk reply", "", Some((none, bulk)), ObjectOp::Fetch),
        ("read, 1 MiB", "rpc, 1 MiB bulk reply", None, ObjectOp::Read),
        ("rpc, 1 MiB bulk request", "", Some((bulk, none)), ObjectOp::Fetch),
        ("write, 1 MiB", "rpc, 1 MiB bulk request", None, ObjectOp::Write),
    ];
    let mut found: Vec<(&str, f64)> = Vec::new();
    for (name, against, payloads, kind) in rows {
        let is_base = rows.iter().any(|row| row.1 == name && row.0.contains(filter));
        if !name.contains(filter) && !is_base {
            continue;
        }
        let per_second = match payloads {
            Some((request, reply)) => {
                let bytes = request.size_bytes + reply.size_bytes;
                let mut driver = rpcs(engine, request, reply);
                rate(&mut *driver, window_ns, |slot| Rpc { slot, endpoint: 0, sequence: next(), bytes })
            }
            None => {
                rate(&mut *store, window_ns, |slot| operation(kind, slot, workload::random::mix64(next())))
            }
        };
        if kind == ObjectOp::Update || kind == ObjectOp::Write {
            // What was overwritten makes room for the next round.
            let mut done = Completions::with_depth(1);
            store.submit(&[operation(ObjectOp::Aggregate, 0, 0)], &mut done).expect("works");
            store.reap(Wait::AtLeast(1), &mut done).expect("works");
        }
        found.push((name, per_second));
        let base = found.iter().find(|(known, _)| *known == against).map(|(_, rate)| per_second / rate);
        let at = figures.iter().position(|figures| figures.name == name).unwrap_or_else(|| {
            let unit = if name.contains("MiB") { "MiB/s" } else { "/s" };
            figures.push(Figures { name, unit, per_second: Vec::new(), ratios: Vec::new(), against });
            figures.len() - 1
        });
        figures[at].per_second.push(per_second);
        figures[at].ratios.extend(base);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds: u32 = arguments.next().map_or(5, |text| text.parse().expect("rounds"));
    let ms: u64 = arguments.next().map_or(300, |text| text.parse().expect("milliseconds"));
    let parent = arguments.next().map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let filter = arguments.next().unwrap_or_default();
    let dir = tempfile::TempDir::new_in(parent).expect("a directory");
    let options = PoolOptions { scm_bytes: 3 << 30, ..PoolOptions::default() };
    let pool = Arc::new(Pool::create(dir.path(), &options).expect("a pool"));
    let pools = Pools::new().and_then(|pools| pools.with("tank", pool)).expect("a label");
    let log = Arc::new(|line: &str| eprintln!("{line}"));
    let mut request = EngineRequest::new(object_service::factory(pools), log);
    request.cores = vec![ENGINE_CPU];
    let engine = Engine::start(request).expect("an engine");
    host::topology::pin_current_thread(CLIENT_CPU).expect("this processor");
    let mut store = objects(&engine);
    let mut number = 0;
    let mut fill = |kind, count| {
        let mut done = Completions::with_depth(1);
        for _ in 0..count {
            store.submit(&[operation(kind, 0, number)], &mut done).expect("works");
            store.reap(Wait::AtLeast(1), &mut done).expect("works");
            done.clear();
            number += 1;
        }
    };
    fill(ObjectOp::Update, KEYS);
    fill(ObjectOp::Write, CHUNKS);
    let mut figures = Vec::new();
    for _ in 0..rounds {
        round(&mut figures, &filter, ms * 1_000_000, &engine, &mut *store);
    }
    for Figures { name, unit, per_second, ratios, against } in &figures {
        print!("{name:28} {:12.0} {unit:6}", median(per_second));
        match ratios.as_slice() {
            [] => println!(),
            ratios => println!(" {:.2} of {against}", median(ratios)),
        }
    }
}
