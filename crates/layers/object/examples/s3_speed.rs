//! Cost of an S3 GET at the client: `s3_speed [SECONDS]` starts a server in a process of its own, puts 4 KiB objects, gets them at several
//! depths, and prints requests a second, CPU time of the client a GET, and its memory.

use std::io::{BufRead as _, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::{Arena, Completions, Driver, Error, ErrorKind, PageSize, Wait};
use object::plan::{ObjectOp, ObjectOptions, ObjectPlan, S3Key, Signing};
use object::{Backend, ConnectRequest, ObjectOperation, OpenRequest};
use testkit::s3::{S3Options, S3Server};
use vos::ObjectType;
use vos::model::{Key, ObjectId};

#[path = "../tests/conformance/plan.rs"]
mod plan;

const VALUE_BYTES: u64 = 4096;
const OBJECTS: u64 = 1000;
const DEPTHS: [u32; 4] = [1, 16, 128, 1000];

fn main() -> Result<(), Error> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("--serve") {
        return serve().map_err(|error| Error::system("s3_speed", "the server failed", error));
    }
    let seconds = argument.map_or(Some(2.0), |text| text.parse().ok()).filter(|&seconds: &f64| seconds > 0.0);
    let seconds = seconds.ok_or_else(|| Error::usage("s3_speed", "SECONDS is a number above 0"))?;
    let (mut server, port) =
        spawn().map_err(|error| Error::system("s3_speed", "the server does not start", error))?;
    let measured = measure(port, Duration::from_secs_f64(seconds));
    drop(server.stdin.take());
    server.wait().map_err(|error| Error::system("s3_speed", "the server does not end", error))?;
    measured
}

fn serve() -> std::io::Result<()> {
    let server = S3Server::start(S3Options { threads: 1, ..S3Options::default() })?;
    println!("{}", server.port());
    std::io::stdin().lock().read_to_end(&mut Vec::new()).map(|_| ())
}

fn spawn() -> std::io::Result<(Child, u16)> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut server = command.arg("--serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(output) = server.stdout.take() {
        std::io::BufReader::new(output).read_line(&mut line)?;
    }
    let port = line.trim().parse().map_err(std::io::Error::other)?;
    Ok((server, port))
}

fn measure(port: u16, span: Duration) -> Result<(), Error> {
    println!("{:>6} {:>9} {:>12} {:>14} {:>10}", "depth", "signing", "GETs/s", "CPU us a GET", "RSS MiB");
    for depth in DEPTHS {
        for signing in [Signing::Payload, Signing::Headers] {
            let (backend, plan) = bucket(port, signing)?;
            let mut load = Load::new(backend.as_ref(), &plan, depth)?;
            if depth == DEPTHS[0] && signing == Signing::Payload {
                load.run(ObjectOp::Put, Until::Count(OBJECTS))?;
            }
            load.run(ObjectOp::Get, Until::Count(u64::from(depth) * 4))?;
            let (begin, cpu) = (Instant::now(), cpu_ns());
            let gets = load.run(ObjectOp::Get, Until::Time(begin + span))?;
            let (elapsed, cpu) = (begin.elapsed(), cpu_ns() - cpu);
            println!(
                "{depth:>6} {:>9} {:>12.0} {:>14.2} {:>10.1}",
                if signing == Signing::Payload { "payload" } else { "headers" },
                gets as f64 / elapsed.as_secs_f64(),
                cpu as f64 / 1e3 / gets as f64,
                resident_bytes() as f64 / f64::from(1 << 20),
            );
        }
    }
    Ok(())
}

enum Until {
    Count(u64),
    Time(Instant),
}

struct Load {
    driver: Box<dyn Driver<ObjectOperation>>,
    done: Completions,
    depth: u32,
}

impl Load {
    fn new(backend: &dyn Backend, plan: &ObjectPlan, depth: u32) -> Result<Self, Error> {
        backend.prepare(plan)?;
        let arena = Arc::new(Arena::new(depth, VALUE_BYTES as usize, PageSize::Base)?);
        let opened = backend.open(&OpenRequest {
            worker: 0,
            plan: Arc::new(plan.clone()),
            arena,
            interrupt: Arc::default(),
        })?;
        Ok(Self { driver: opened.driver, done: Completions::with_depth(depth), depth })
    }

    /// How many were done.
    fn run(&mut self, operation: ObjectOp, until: Until) -> Result<u64, Error> {
        let (mut begun, mut ended) = (0, 0);
        let mut free: Vec<u32> = (0..self.depth).collect();
        let mut batch = Vec::with_capacity(self.depth as usize);
        loop {
            let goes_on = match until {
                Until::Count(count) => begun < count,
                Until::Time(end) => Instant::now() < end,
            };
            while let Some(slot) = free.pop().filter(|_| goes_on) {
                batch.push(self.operation(operation, slot, begun % OBJECTS));
                begun += 1;
            }
            if begun == ended {
                return Ok(ended);
            }
            self.driver.submit(&batch, &mut self.done)?;
            batch.clear();
            self.driver.reap(Wait::AtLeast(1), &mut self.done)?;
            for done in self.done.as_slice() {
                if done.result != VALUE_BYTES as i64 {
                    let lines = self.driver.findings().join("; ");
                    return Err(Error::new(ErrorKind::Run, "s3_speed", format!("{}: {lines}", done.result)));
                }
                free.push(done.slot);
            }
            ended += self.done.len() as u64;
            self.done.clear();
        }
    }

    fn operation(&self, operation: ObjectOp, slot: u32, number: u64) -> ObjectOperation {
        ObjectOperation {
            slot,
            operation,
            is_short_good: false,
            record: number,
            object: ObjectId::default(),
            dkey: Key::new(b"blade-").unwrap_or(Key::EMPTY).followed_by(number),
            akey: Key::EMPTY,
            offset_bytes: 0,
            value_bytes: VALUE_BYTES,
        }
    }
}

fn bucket(port: u16, signing: Signing) -> Result<(Arc<dyn Backend>, ObjectPlan), Error> {
    let options = ObjectOptions {
        s3_endpoints: vec![format!("http://127.0.0.1:{port}")],
        s3_signing: signing,
        retries: 3,
        timeout_ns: 30_000_000_000,
        zero_copy: true,
        ..ObjectOptions::default()
    };
    let server = S3Options::default();
    let connect = ConnectRequest {
        target: "s3://speed".to_owned(),
        options: options.clone(),
        s3_key: Some(S3Key { access: server.access, secret: server.secret }),
        creates: true,
        threads: 1,
        interrupt: Arc::default(),
        ..ConnectRequest::default()
    };
    let mut plan = plan::plan(ObjectOp::Get);
    plan.engine = "s3".to_owned();
    plan.target.clone_from(&connect.target);
    plan.object_type = ObjectType::KvHashed;
    let data = &mut plan.dataset;
    (data.objects, data.dkeys, data.akeys, data.records) = (1, OBJECTS, 1, 1);
    (data.value_size, data.value_size_bytes_max) = (VALUE_BYTES.to_string(), VALUE_BYTES);
    plan.options = options;
    Ok((object::connect(&connect)?, plan))
}

/// CPU time of this process, user and system.
fn cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Memory of this process that is resident, in bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
