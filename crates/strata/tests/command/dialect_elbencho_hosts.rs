//! elbencho's words on services that work together.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::support::{Ended, Running, Scratch, read_record};

/// Port in the first line of a service.
fn control_port(line: &str) -> u16 {
    let (_, rest) = line.split_once("127.0.0.1:").unwrap_or_else(|| panic!("no address in {line}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Two services on this machine, and a directory that they share.
struct Services {
    scratch: Scratch,
    ports: [u16; 2],
    running: [Running; 2],
}

impl Services {
    fn new() -> Self {
        let scratch = Scratch::new();
        let root = scratch.path().display().to_string();
        let begun = [(); 2].map(|()| {
            let words = format!("service --listen 127.0.0.1:0 --root {root} --allow-network all");
            let mut service = scratch.start(&words);
            let line = service.await_row("service: strata");
            (control_port(&line), service)
        });
        let ports = [begun[0].0, begun[1].0];
        Self { scratch, ports, running: begun.map(|(_, service)| service) }
    }

    fn hosts(&self) -> String {
        format!("--hosts 127.0.0.1:{},127.0.0.1:{}", self.ports[0], self.ports[1])
    }

    fn run(&self, words: &str) -> Ended {
        self.scratch.run(&format!("as elbencho {} {words}", self.hosts()))
    }

    /// Runs words that must end well; what they print.
    fn good(&self, words: &str) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "{words}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Has both services end.
    fn quit(self) {
        let said = self.good("--quit");
        assert_eq!(said.matches(": ends\n").count(), 2, "{said}");
        for service in self.running {
            let ended = service.end();
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        }
    }
}

/// The last column of a row of a phase.
fn figure(text: &str, phase: &str, kind: &str) -> String {
    let mut of = "";
    for row in text.lines().skip(2) {
        let Some((head, figures)) = row.split_once(" : ") else { continue };
        let Some((name, own)) = head.split_at_checked(12) else { continue };
        of = if name.trim().is_empty() { of } else { name.trim() };
        if of == phase && own.trim() == kind {
            return figures.split_whitespace().last().unwrap_or_default().to_owned();
        }
    }
    panic!("no {kind} of {phase} in {text}")
}

/// Labels of a CSV file, with the fields of its first line; no field of those asked for has commas.
fn field(csv: &str, label: &str) -> String {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (labels, fields) = (lines.next().unwrap(), lines.next().unwrap());
    let at = labels.iter().position(|own| *own == label).unwrap_or_else(|| panic!("no {label}"));
    fields[at].to_owned()
}

#[test]
fn services_change_places_between_phases() {
    let services = Services::new();
    let said =
        services.good("--rotatehosts 1 -d -w --stat -r -F -D -t 2 -n 2 -N 3 -s 8k -b 4k --verify 3 tree/");
    for phase in ["MKDIRS", "WRITE", "STAT", "READ", "RMFILES", "RMDIRS"] {
        let kind = if phase.ends_with("DIRS") { "Dirs total" } else { "Files total" };
        let total = if phase.ends_with("DIRS") { "8" } else { "24" };
        assert_eq!(figure(&said, phase, kind), total, "{phase} in {said}");
    }
    // Five blocks: the second host writes three of them, and the first one reads these.
    let args = format!(
        "--json record.json elbencho {} --rotatehosts 3 -w -r -t 1 -s 20k -b 4k data",
        services.hosts()
    );
    let ended = services.scratch.run(&format!("as {args}"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&services.scratch.join("record.json"));
    let done = |phase: usize| -> Vec<u64> {
        let workers = record["phases"][phase]["samples"]["workers"].as_array().unwrap().iter();
        workers.map(|worker| worker["classes"][0]["operations"].as_u64().unwrap()).collect()
    };
    assert_eq!((done(0), done(1)), (vec![2, 3], vec![3, 2]));
    for (words, expected) in [
        ("--rotatehosts 1 -w -s 20k -b 4k data", "requires a second phase"),
        ("--rotatehosts 1 -w -r -s 20k -b 4k --verify 1 data", "blocks that it wrote itself"),
    ] {
        let refused = services.run(words);
        assert_eq!(refused.code, Some(2), "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{words}: {}", refused.stderr);
        assert!(!refused.stderr.contains("--rotate-hosts"), "{}", refused.stderr);
    }
    services.quit();
}

#[test]
fn two_services_share_a_file() {
    let services = Services::new();
    let scratch = &services.scratch;
    let said = services
        .good("-w -r -t 2 -s 4m -b 64k --verify 7 --csvfile r.csv --jsonfile r.json --allelapsed data");
    assert_eq!(figure(&said, "WRITE", "Total MiB"), "4");
    assert_eq!(figure(&said, "READ", "Total MiB"), "4");
    assert_eq!(fs::metadata(scratch.join("data")).unwrap().len(), 4 << 20);
    let csv = fs::read_to_string(scratch.join("r.csv")).unwrap();
    for (label, value) in [("hosts", "2"), ("threads", "2"), ("shared paths", "1"), ("path type", "file")] {
        assert_eq!(field(&csv, label), value, "{label} in {csv}");
    }
    let json = fs::read_to_string(scratch.join("r.json")).unwrap();
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["config"]["hosts"], &first["last_done"]["bytes"]), (&2.into(), &(4 << 20).into()));

    // What the hosts have written, one process reads with the same salt, and the hosts each as a whole.
    let alone = scratch.run("as elbencho -r -t 3 -b 64k --verify 7 data");
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    let said = services.good("-r -t 1 -b 64k --verify 7 --nosvcshare data");
    assert_eq!(figure(&said, "READ", "Total MiB"), "8");
    let said = services.good("-r -t 2 -b 64k --rand --lat --timelimit 20 data");
    assert_eq!(figure(&said, "READ", "Total MiB"), "4");

    // A block that differs is found by the host that reads it.
    let mut bytes = fs::read(scratch.join("data")).unwrap();
    bytes[3 << 20] ^= 1;
    fs::write(scratch.join("data"), bytes).unwrap();
    let ended = services.run("-r -t 2 -b 64k --verify 7 data");
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains(&format!("127.0.0.1:{}", services.ports[1])), "{}", ended.stderr);

    // Data of others stays.
    fs::write(scratch.join("precious"), vec![1; 1 << 20]).unwrap();
    let ended = services.run("-w -b 64k -s 1m precious");
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("strata as --destroy-data elbencho"), "{}", ended.stderr);
    let line = format!("as --destroy-data elbencho {} -w -b 64k -s 1m precious", services.hosts());
    let ended = scratch.run(&line);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("start the service with --allow-destroy"), "{}", ended.stderr);
    assert_eq!(fs::read(scratch.join("precious")).unwrap(), vec![1; 1 << 20]);
    services.quit();
}

#[test]
fn two_services_share_a_tree() {
    let services = Services::new();
    let tree = "-t 2 -n 2 -N 3 -s 8k -b 4k tree";
    let said = services.good(&format!("-d -w {tree}"));
    assert_eq!(figure(&said, "MKDIRS", "Dirs total"), "8");
    assert_eq!(figure(&said, "WRITE", "Files total"), "24");
    for thread in 0..4 {
        for directory in 0..2 {
            for file in 0..3 {
                let name = format!("tree/r{thread}/d{directory}/r{thread}-f{file}");
                let found = fs::metadata(services.scratch.join(&name));
                assert_eq!(found.map(|found| found.len()).ok(), Some(8 << 10), "{name}");
            }
        }
    }
    // What two hosts with two threads have written, four threads of one process read.
    let alone = services.scratch.run("as elbencho -r -t 4 -n 2 -N 3 -s 8k -b 4k tree");
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    let said = services.good(&format!("-r --stat {tree}"));
    assert_eq!(
        (figure(&said, "STAT", "Files total"), figure(&said, "READ", "Files total")),
        ("24".into(), "24".into())
    );
    let said = services.good(&format!("-F -D {tree}"));
    assert_eq!(figure(&said, "RMFILES", "Files total"), "24");
    let left: Vec<String> =
        services.scratch.names().into_iter().filter(|name| name.contains("tree/r")).collect();
    assert_eq!(left, [] as [String; 0]);
    services.quit();
}

#[test]
fn two_services_share_a_bucket() {
    let services = Services::new();
    let server = S3Server::start(S3Options::default()).unwrap();
    server.store().create_bucket("b");
    let options = S3Options::default();
    let words = |phases: &str| {
        let (access, secret, endpoint) = (&options.access, &options.secret, server.endpoint());
        format!(
            "--s3endpoints {endpoint} --s3key {access} --s3secret {secret} {phases} -t 2 -n 2 -N 3 -s 4k -b 4k --verify 3 b"
        )
    };
    let said = services.good(&words("-w -r"));
    assert_eq!(figure(&said, "WRITE", "Objects total"), "24");
    assert_eq!(figure(&said, "READ", "Objects total"), "24");
    let mut wanted: Vec<String> = (0..24)
        .map(|number| {
            let (thread, directory, file) = (number / 6, number / 3 % 2, number % 3);
            format!("r{thread}/d{directory}/r{thread}-f{file}")
        })
        .collect();
    wanted.sort_unstable();
    let mut keys = server.store().keys("b");
    keys.sort_unstable();
    assert_eq!(keys, wanted);
    // Objects of an earlier run count as those of others to a service.
    let ended = services.run(&words("-r -F"));
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("start the service with --allow-destroy"), "{}", ended.stderr);
    let mut keys = server.store().keys("b");
    keys.sort_unstable();
    assert_eq!(keys, wanted, "nothing was deleted");
    services.quit();
}

#[test]
fn services_are_interrupted_and_a_lost_one_is_named() {
    let services = Services::new();
    services.good("-w -s 1m -b 64k data");
    let line = format!(
        "as --live-csv - elbencho {} -r -b 64k --rand --infloop --timelimit 60 --resfile table data",
        services.hosts()
    );
    let mut running = services.scratch.start(&line);
    running.await_row("READ");
    let busy = services.run("-r -b 64k data");
    assert_eq!(busy.code, Some(1), "{}{}", busy.stdout, busy.stderr);
    let said = services.good("--interrupt");
    assert!(said.contains("interrupted"), "{said}");
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let table = fs::read_to_string(services.scratch.join("table")).unwrap();
    assert!(table.contains("READ"), "what was measured is shown: {table}");
    // They serve again.
    assert_eq!(figure(&services.good("-r -b 64k data"), "READ", "Total MiB"), "1");
    assert_eq!(services.good("--svcping").matches(": lives: ").count(), 2);

    let mut running = services.scratch.start(&line.replace("table", "second"));
    running.await_row("READ");
    services.running[1].signal(Signal::KILL);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains(&format!("127.0.0.1:{}", services.ports[1])), "{}", ended.stderr);
    let table = fs::read_to_string(services.scratch.join("second")).unwrap();
    assert!(table.contains("READ"), "what the other has measured is shown: {table}");
    assert_eq!(services.run("--numhosts 1 --quit").code, Some(0));
    let [first, second] = services.running;
    assert_eq!((first.end().code, second.end().code), (Some(0), None));
}

#[test]
fn a_service_of_elbenchos_words_touches_no_path() {
    let scratch = Scratch::new();
    let data = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // Control is 1000 below data.
    let port = data - 1000;
    let mut service = scratch.start(&format!("as elbencho --service --foreground --port {port}"));
    service.await_row("Elbencho service now listening");
    let ended = scratch.run(&format!("as elbencho --hosts 127.0.0.1:{port} -w -s 1m data"));
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("start the service with --root DIR"), "{}", ended.stderr);
    assert!(!scratch.join("data").exists());
    let told = scratch.run(&format!("as elbencho --hosts 127.0.0.1:{port} --quit"));
    assert_eq!((told.code, service.end().code), (Some(0), Some(0)), "{}", told.stderr);
}
