//! S3 servers of others: moto and versitygw, where scripts/setup-tests.sh could make them.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use object::ConnectRequest;
use object::plan::{ObjectOp, ObjectPlan, S3Key};
use testkit::fault_proxy::{FaultProxy, Meddling};

use crate::bed::{Bed, operation, options, plan, request};

const ACCESS: &str = "strata-access";
const SECRET: &str = "strata-secret-of-tests";
/// The least that S3 takes for a part.
const PART: u64 = 5 << 20;

/// A server of others; it ends with this.
struct Server {
    name: &'static str,
    child: Child,
    endpoint: String,
    _directory: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Where scripts/setup-tests.sh keeps servers.
fn made(folder: &str, program: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let all = std::fs::read_dir(cache.join("strata-tests")).ok()?;
    let is_meant = |name: &str| name.starts_with(folder);
    let mut found: Vec<PathBuf> = all
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_meant))
        .map(|entry| entry.path().join(program))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop()
}

fn start(name: &'static str) -> Option<Server> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
    let mut command = match name {
        "moto" => {
            let mut command = Command::new(made("moto-", "bin/moto_server")?);
            command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
            command
        }
        _ => {
            let mut command = Command::new(made("versitygw-", "versitygw")?);
            command.args(["--access", ACCESS, "--secret", SECRET, "--port", &format!("127.0.0.1:{port}")]);
            command.args(["posix", "--sidecar"]).arg(directory.path().join("meta"));
            std::fs::create_dir_all(directory.path().join("meta")).ok()?;
            std::fs::create_dir_all(directory.path().join("data")).ok()?;
            command.arg(directory.path().join("data"));
            command
        }
    };
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let endpoint = format!("http://127.0.0.1:{port}");
    let mut server = Server { name, child, endpoint, _directory: directory };
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(server.child.try_wait().expect("a process").is_none(), "{name} has ended");
        assert!(begin.elapsed() < Duration::from_secs(120), "{name} does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(server)
}

/// Does it on every server that is there.
fn on_each(test: &str, act: impl Fn(&Server)) {
    for name in ["moto", "versitygw"] {
        match start(name) {
            Some(server) => act(&server),
            None => println!("skipped: {test} on {name}: scripts/setup-tests.sh makes it"),
        }
    }
}

fn bed(endpoint: &str, change: impl FnOnce(&mut ConnectRequest, &mut ObjectPlan)) -> Bed {
    let mut plan = plan(&options(&[endpoint.to_owned()]), 2 * PART + 17);
    plan.options.s3_part_size_bytes = PART;
    let key = S3Key { access: ACCESS.to_owned(), secret: SECRET.to_owned() };
    let mut connect = request(&plan.options, Some(key));
    change(&mut connect, &mut plan);
    Bed { backend: object::connect(&connect).expect("a store"), plan }
}

#[test]
fn every_operation_on_servers_of_others() {
    on_each("every_operation_on_servers_of_others", |server| {
        let bed = bed(&server.endpoint, |_, plan| plan.list_max = 7);
        bed.prepare().expect("prepared");
        let mut worker = bed.worker(1);
        for (number, bytes) in [(0, 0), (1, 1), (2, 4096), (3, PART as usize), (4, 2 * PART as usize + 17)] {
            assert_eq!(worker.put(number, bytes), bytes as i64, "{}: {}", server.name, worker.findings());
            assert_eq!(worker.get(number, bytes), bytes as i64, "{}: {}", server.name, worker.findings());
            assert_eq!(worker.one(operation(ObjectOp::Stat, number, 0)), bytes as i64, "{}", server.name);
        }
        // Its own it writes over.
        assert_eq!(worker.put(2, 100), 100, "{}: {}", server.name, worker.findings());
        for number in 5..20 {
            assert_eq!(worker.put(number, 10), 10);
        }
        let listed = [0; 3].map(|_| worker.one(operation(ObjectOp::List, 0, 0)));
        assert_eq!(listed, [7, 7, 6], "{}: {}", server.name, worker.findings());
        assert_eq!(worker.one(operation(ObjectOp::Remove, 4, 0)), 0);
        assert_eq!(worker.one(operation(ObjectOp::Get, 4, 16)), -i64::from(libc::ENOENT));
        drop(worker);
        assert_eq!(bed.clean(), "", "{}", server.name);
        let mut gone = bed_without_leave(&server.endpoint);
        gone.plan.mix[0].operation = ObjectOp::Get;
        let error = gone.prepare().expect_err("the bucket went with the run").to_string();
        assert!(error.contains("does not exist"), "{}: {error}", server.name);
    });
}

fn bed_without_leave(endpoint: &str) -> Bed {
    bed(endpoint, |request, _| request.creates = false)
}

#[test]
fn runs_in_one_bucket_of_others_servers_leave_each_other_alone() {
    on_each("runs_in_one_bucket_of_others_servers_leave_each_other_alone", |server| {
        let first = bed(&server.endpoint, |_, _| {});
        first.prepare().expect("prepared");
        let second = bed(&server.endpoint, |_, _| {});
        second.prepare().expect("prepared");
        let (mut of_first, mut of_second) = (first.worker(1), second.worker(1));
        assert_eq!(of_first.put(1, 10), 10, "{}: {}", server.name, of_first.findings());
        for number in 10..40 {
            assert_eq!(of_second.put(number, 10), 10, "{}: {}", server.name, of_second.findings());
        }
        let ignores = second.backend.facts().notes.iter().any(|note| note.contains("If-None-Match"));
        if ignores {
            println!("{} does not keep to If-None-Match, and is said not to", server.name);
        } else {
            let over = of_second.put(1, 20);
            assert_eq!(over, -i64::from(libc::EEXIST), "{}: {}", server.name, of_second.findings());
            let parts = of_second.put(1, PART as usize);
            let findings = of_second.findings();
            assert_eq!(parts, -i64::from(libc::EEXIST), "{}: {findings}", server.name);
        }
        assert!(server.name != "moto" || !ignores, "moto refuses what is there");
        assert_eq!(of_first.get(1, 10), 10);
        let late = bed(&server.endpoint, |_, _| {}).prepare().expect_err("others' own").to_string();
        assert!(late.contains("--destroy-data"), "{}: {late}", server.name);
        drop((of_first, of_second));
        let left = first.clean();
        assert!(left.contains("30 objects with names") && left.contains("kept"), "{}: {left}", server.name);
        let mut reader = second.worker(1);
        assert_eq!((reader.get(10, 10), reader.get(39, 10)), (10, 10), "{}", server.name);
        drop(reader);
        assert_eq!(second.clean(), "", "{}", server.name);
    });
}

#[test]
fn lost_answers_of_servers_of_others_leave_no_uploads() {
    on_each("lost_answers_of_servers_of_others_leave_no_uploads", |server| {
        let loses = |line: &str, _: u64| {
            if line.starts_with("POST") && line.contains("?uploads=") {
                Meddling::Lose
            } else {
                Meddling::None
            }
        };
        let proxy = FaultProxy::start(&server.endpoint, loses).expect("a proxy");
        let bed = bed(&proxy.endpoint(), |_, _| {});
        bed.prepare().expect("prepared");
        let mut worker = bed.worker(1);
        let result = worker.put(1, PART as usize);
        assert_eq!(result, -i64::from(libc::ECONNRESET), "{}: {}", server.name, worker.findings());
        assert_eq!(worker.put(2, 10), 10, "{}: {}", server.name, worker.findings());
        drop(worker);
        assert_eq!(bed.clean(), "", "{}", server.name);
    });
}
