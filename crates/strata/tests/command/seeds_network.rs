//! The command lines of the network that guides give, as written, against engines and services that were started as documented. Only numbers
//! of repetitions and bytes are smaller where a run would take minutes.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use super::hosts::{Engine, Hosts, Process};
use super::support::{Ended, Scratch};

/// Longest time for one line of a guide.
const LIMIT: Duration = Duration::from_secs(60);

/// A directory with links to the binary, in front of the path.
struct Guide {
    scratch: Scratch,
}

impl Guide {
    fn new(names: &[&str]) -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.join("bin")).unwrap();
        for name in names {
            symlink(env!("CARGO_BIN_EXE_strata"), scratch.join("bin").join(name)).unwrap();
        }
        Self { scratch }
    }

    /// A line as typed into a shell.
    fn line(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.scratch.path());
        self.settle(&mut command);
        command
    }

    fn settle(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}:/usr/sbin:/sbin", self.scratch.join("bin").display()))
            .env("CRT_ATTACH_INFO_PATH", self.scratch.path())
            .env("XDG_RUNTIME_DIR", self.scratch.path())
            .env_remove("OFI_INTERFACE")
            .env_remove("OFI_DOMAIN");
    }

    fn run(&self, line: &str) -> Ended {
        let ended = Process::start(self.line(line)).end_within(LIMIT);
        assert_eq!(ended.code, Some(0), "{line}: {}", ended.stderr);
        ended
    }

    /// An engine as the documents start it.
    fn engine(&self, rank: u32) -> Engine {
        let line = format!("exec strata engine --rank {rank} --targets 16 --helpers 4 --until-stdin-closes");
        Engine::serving(Process::start(self.line(&line)))
    }
}

/// A line with every number replaced by `#`.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for letter in line.chars() {
        match letter {
            '0'..='9' if shape.ends_with('#') => {}
            '.' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            other => shape.push(other),
        }
    }
    shape
}

/// The number after the colon.
fn number(line: &str) -> f64 {
    line.rsplit_once(':')
        .and_then(|(_, number)| number.trim().parse().ok())
        .unwrap_or_else(|| panic!("{line}"))
}

/// Figures that a master's part of self_test's output must have.
const FIGURES: &[&str] = &[
    "\tRPC Bandwidth (MB/sec): #",
    "\tRPC Throughput (RPCs/sec): #",
    "\tRPC Latencies (us):",
    "\t\tMin    : #",
    "\t\t#th  %: #",
    "\t\tMedian : #",
    "\t\t#th  %: #",
    "\t\t#th  %: #",
    "\t\t#th  %: #",
    "\t\t#th%: #",
    "\t\tMax    : #",
    "\t\tAverage: #",
    "\t\tStd Dev: #",
    "\tRPC Failures: #",
    "",
    "\tEndpoint results (rank:tag - Median Latency (us)):",
];

/// Reads the results of self_test line by line and refuses every other shape.
struct Results<'a> {
    lines: std::iter::Peekable<std::str::Lines<'a>>,
}

impl<'a> Results<'a> {
    fn of(text: &'a str) -> Self {
        Self { lines: text.lines().peekable() }
    }

    fn next(&mut self) -> &'a str {
        self.lines.next().unwrap_or_else(|| panic!("ends too soon"))
    }

    fn is(&mut self, line: &str) {
        assert_eq!(self.next(), line);
    }

    fn head(&mut self, added: &[&str], is_driven_here: bool, parameters: &[&str]) {
        for line in added {
            self.is(line);
        }
        if is_driven_here {
            self.is("Warning: No --master-endpoint specified; using this command line application as the master endpoint");
        }
        self.is("Self Test Parameters:");
        for line in parameters {
            self.is(line);
        }
        self.is("");
    }

    /// The results for one size: masters in order, each with these endpoints; RPCs a second by master.
    fn size(
        &mut self,
        size: &str,
        bytes: u64,
        masters: &[String],
        endpoints: &[String],
    ) -> BTreeMap<String, f64> {
        self.is("##################################################");
        self.is(&format!("Results for message size {size} (max_inflight_rpcs = 16):"));
        self.is("");
        let mut rates = BTreeMap::new();
        for master in masters {
            let title = format!("Master Endpoint {master}");
            self.is(&title);
            self.is(&"-".repeat(title.len()));
            rates.insert(master.clone(), self.master(bytes));
            for endpoint in endpoints {
                let line = self.next();
                let (place, median) = line.trim_start_matches("\t\t").split_once(" - ").unwrap();
                assert_eq!(place, endpoint, "{line}");
                assert!(median.parse::<f64>().is_ok_and(|us| us > 0.0), "{line}");
            }
            self.is("");
        }
        rates
    }

    fn master(&mut self, bytes: u64) -> f64 {
        let lines: Vec<&str> = FIGURES.iter().map(|_| self.next()).collect();
        for (line, expected) in lines.iter().zip(FIGURES) {
            assert_eq!(shape(line), *expected, "{line}");
        }
        let (bandwidth, rate) = (number(lines[0]), number(lines[1]));
        let expected = rate * bytes as f64 / 1_048_576.0;
        // The rate is printed in whole RPCs.
        assert!((bandwidth - expected).abs() <= bytes as f64 / 1_048_576.0 + 0.01, "{bandwidth} {expected}");
        let latencies: Vec<f64> = lines[3..11].iter().map(|line| number(line)).collect();
        assert!(latencies.is_sorted() && latencies[0] > 0.0, "{lines:?}");
        let average = number(lines[11]);
        assert!((latencies[0]..=latencies[7]).contains(&average), "{lines:?}");
        assert_eq!(lines[13], "\tRPC Failures: 0");
        rate
    }

    fn end(mut self) {
        assert_eq!(self.lines.peek(), None);
    }
}

fn endpoints(ranks: u32, tags: u32) -> Vec<String> {
    (0..ranks).flat_map(|rank| (0..tags).map(move |tag| format!("{rank}:{tag}"))).collect()
}

const PUT: (&str, u64) = ("(0-EMPTY 1048578-BULK_PUT)", 1_048_578);
const GET: (&str, u64) = ("(1048578-BULK_GET 0-EMPTY)", 1_048_578);
const EMPTY: (&str, u64) = ("(0-EMPTY 0-EMPTY)", 0);

fn parameters(count: usize, sizes: &[(&str, u64)], repetitions: u64) -> Vec<String> {
    let sizes: Vec<&str> = sizes.iter().map(|(name, _)| *name).collect();
    vec![
        "  Group name to test against: daos_server".to_owned(),
        format!("  # endpoints:                {count}"),
        format!("  Message sizes:              [{}]", sizes.join(", ")),
        "  Buffer addresses end with:  <Default>".to_owned(),
        format!("  Repetitions per size:       {repetitions}"),
        "  Max in-flight RPCs:          16".to_owned(),
    ]
}

/// Runs a line that this process drives, and checks all that it prints.
fn check_client(
    guide: &Guide,
    line: &str,
    (ranks, tags): (u32, u32),
    sizes: &[(&str, u64)],
    repetitions: u64,
) {
    let to = if (ranks, tags) == (1, 1) { vec!["0:2".to_owned()] } else { endpoints(ranks, tags) };
    let (ranks_text, tags_text) = match (ranks, tags) {
        (1, 1) => ("0".to_owned(), "2".to_owned()),
        _ => (format!("0-{}", ranks - 1), format!("0-{}", tags - 1)),
    };
    let ended = guide.run(line);
    let mut results = Results::of(&ended.stdout);
    let added = [
        "Adding endpoints:".to_owned(),
        format!("  ranks: {ranks_text} (# ranks = {ranks})"),
        format!("  tags: {tags_text} (# tags = {tags})"),
    ];
    let parameters = parameters(to.len(), sizes, repetitions * to.len() as u64);
    let words = |texts: &[String]| texts.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let (added, parameters) = (words(&added), words(&parameters));
    results.head(&added.lines().collect::<Vec<_>>(), true, &parameters.lines().collect::<Vec<_>>());
    for (size, bytes) in sizes {
        let masters = [format!("{ranks}:0")];
        let rates = results.size(size, *bytes, &masters, &to);
        assert!(rates[&masters[0]] > 0.0);
    }
    results.end();
}

#[test]
fn lines_of_self_test_run_as_written() {
    let guide = Guide::new(&["self_test", "strata"]);
    let engines = [guide.engine(0), guide.engine(1)];
    assert!(
        engines[0].line.contains("22 tags") && engines[0].line.contains("18-21 helper"),
        "{}",
        engines[0].line
    );
    let common = "self_test -u --group-name daos_server --endpoint 0:2";
    let rest = "--max-inflight-rpcs 16 --repetitions";
    // 100000 RPCs of 1 MiB would be 100 GB: 1000.
    check_client(
        &guide,
        &format!("{common} --message-size '(0 b1048578)' {rest} 1000"),
        (1, 1),
        &[PUT],
        1000,
    );
    check_client(
        &guide,
        &format!("{common} --message-size \"(b1048578 0)\" {rest} 1000"),
        (1, 1),
        &[GET],
        1000,
    );
    check_client(
        &guide,
        &format!("{common} --message-size \"(0 0)\" {rest} 100000"),
        (1, 1),
        &[EMPTY],
        100_000,
    );
    let inline = ("(2048-IOV 2048-IOV)", 4096);
    check_client(
        &guide,
        &format!("{common} --message-size \"(i2048)\" {rest} 100000"),
        (1, 1),
        &[inline],
        100_000,
    );
    let all = "--message-size \"(0 0) (b1048578 0) (0 b1048578)\"";
    check_client(&guide, &format!("{common} {all} {rest} 300"), (1, 1), &[EMPTY, GET, PUT], 300);
    // 44 endpoints: 4400000 RPCs of each size.
    let line = format!("self_test -u --group-name daos_server --endpoint 0-1:0-21 {all} {rest} 5");
    check_client(&guide, &line, (2, 22), &[EMPTY, GET, PUT], 5);
    let chosen = format!(
        "export OFI_INTERFACE=lo; export OFI_DOMAIN=lo; taskset -c 1 {common} --message-size \"(0 0)\" {rest} 1000"
    );
    check_client(&guide, &chosen, (1, 1), &[EMPTY], 1000);
}

#[test]
fn the_line_of_self_test_across_servers_runs_as_written() {
    let guide = Guide::new(&["self_test", "strata"]);
    let _engines = [guide.engine(0), guide.engine(1)];
    // 44 masters with 2 endpoints each; 100 repetitions of 2 MiB would be 17 GB.
    let line = "self_test -u --group-name daos_server --endpoint 0-1:0 \\\n  --master-endpoint 0-1:0-21 \\\n  \
                --message-sizes \"b1048576,b1048576 0,0 b1048576,i2048,i2048 0,0 i2048\" \\\n  \
                --max-inflight-rpcs 16 --repetitions 4";
    let ended = guide.run(line);
    let sizes = [
        ("(1048576-BULK_GET 1048576-BULK_PUT)", 2 << 20),
        ("(1048576-BULK_GET 0-EMPTY)", 1 << 20),
        ("(0-EMPTY 1048576-BULK_PUT)", 1 << 20),
        ("(2048-IOV 2048-IOV)", 4096),
        ("(2048-IOV 0-EMPTY)", 2048),
        ("(0-EMPTY 2048-IOV)", 2048),
    ];
    let to = ["0:0".to_owned(), "1:0".to_owned()];
    let mut results = Results::of(&ended.stdout);
    let added = [
        "Adding endpoints:",
        "  ranks: 0-1 (# ranks = 2)",
        "  tags: 0 (# tags = 1)",
        "Adding endpoints:",
        "  ranks: 0-1 (# ranks = 2)",
        "  tags: 0-21 (# tags = 22)",
    ];
    let parameters = parameters(2, &sizes, 8);
    // Eight RPCs of a master cannot keep 16 in flight.
    let parameters: Vec<String> =
        parameters.iter().map(|line| line.replace("RPCs:          16", "RPCs:          8")).collect();
    results.head(&added, false, &parameters.iter().map(String::as_str).collect::<Vec<_>>());
    let text = ended.stdout.replace("(max_inflight_rpcs = 8)", "(max_inflight_rpcs = 16)");
    let begin = text.find("####").unwrap();
    let mut results = Results::of(&text[begin..]);
    for (size, bytes) in sizes {
        let rates = results.size(size, bytes, &endpoints(2, 22), &to);
        assert_eq!(rates.len(), 44);
    }
    results.end();
}

/// Rows of elbencho's table, by their name: figures of the first and of the last.
fn rows(text: &str) -> BTreeMap<String, (String, String)> {
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let Some((name, figures)) = line.split_once(':') else { continue };
        let name = name.trim().trim_start_matches("NET").trim().to_owned();
        let mut figures = figures.split_whitespace();
        rows.insert(
            name,
            (figures.next().unwrap_or_default().to_owned(), figures.next().unwrap_or_default().to_owned()),
        );
    }
    rows
}

#[test]
fn lines_of_elbenchos_netbench_run_as_written() {
    let Some(hosts) = Hosts::new("lines of netbench", 7) else { return };
    let guide = Guide::new(&["elbencho"]);
    let addresses = [91, 93, 131, 133, 135, 137].map(|last| format!("172.200.5.{last}"));
    let names = ["myserver01", "myserver02", "node01", "node02", "node03", "node04"];
    let known: Vec<String> =
        addresses.iter().zip(names).map(|(address, name)| format!("{address} {name}\n")).collect();
    std::fs::write(guide.scratch.join("hosts"), format!("127.0.0.1 localhost\n{}", known.concat())).unwrap();
    std::fs::write(guide.scratch.join("myservers.txt"), "myserver01\nmyserver02\n").unwrap();
    std::fs::write(guide.scratch.join("myclients.txt"), "node01\nnode02\nnode03\nnode04\n").unwrap();
    for (host, address) in addresses.iter().enumerate() {
        hosts.add_address(host as u32, &format!("{address}/24"));
    }
    hosts.add_address(6, "172.200.5.1/24");
    let token = hosts.token();
    let start = |host: u32, line: &str| {
        // The names stand in this host's own file of hosts.
        let line = format!("mount --bind hosts /etc/hosts && {line}");
        let mut command = hosts.shell(host, &line);
        guide.settle(&mut command);
        command.current_dir(guide.scratch.path());
        // The secret, which beyond loopback must be, is no word of the line.
        command.env("STRATA_OPTIONS", format!("--token-file {}", token.display()));
        Process::start(command)
    };
    let serve = format!("exec elbencho --service --foreground --svcpwfile {}", token.display());
    let _services: Vec<Process> = (0..6)
        .map(|host| {
            let mut service = start(host, &serve);
            service.await_text("listening", LIMIT);
            service
        })
        .collect();
    let ends = "--servers \"$(echo 172.200.5.{91,93})\" --clients \"$(echo 172.200.5.{131,133,135,137})\"";
    // Of 100 GB for each thread, 8 MB.
    for (line, direction, threads) in [
        ("--servers myserver01,myserver02 --clients node01,node02,node03,node04 -b 1m --respsize 1 -t 4 -s 8m -timelimit 30".to_owned(), "write", 4),
        ("--serversfile myservers.txt --clientsfile myclients.txt -b 1 --respsize 1m -t 1 -s 8".to_owned(), "read", 1),
        (format!("{ends} -b 1m --respsize 1 -t 1 -s 8m --lat"), "write", 1),
        (format!("{ends} -b 1 --respsize 1m -t 2 -s 8 --lat"), "read", 2),
        (format!("{ends} -b 1m --respsize 1 -t 4 -s 8m --lat"), "write", 4),
        (format!("{ends} -b 1m --respsize 1 -t 32 -s 2m --lat"), "write", 32),
    ] {
        let ended = start(6, &format!("exec elbencho --netbench {line}")).end_within(LIMIT);
        assert_eq!(ended.code, Some(0), "{line}: {}", ended.stderr);
        let lines: Vec<&str> = ended.stdout.lines().collect();
        assert!(lines[0].starts_with("OPERATION   RESULT TYPE") && lines[0].ends_with("LAST DONE"), "{lines:?}");
        assert!(lines[1].starts_with("==="), "{lines:?}");
        assert!(lines[2].starts_with("NET         Elapsed time     :"), "{lines:?}");
        let rows = rows(&ended.stdout);
        let (first, last) = &rows[&format!("MiB/s {direction}")];
        assert!(first.parse::<u64>().is_ok() && last.parse::<u64>().is_ok_and(|rate| rate > 0), "{rows:?}");
        let moved: u64 = rows[&format!("MiB {direction}")].1.parse().unwrap();
        let each = if threads == 32 { 2 } else { 8 };
        assert_eq!(moved, 4 * threads * each, "{line}: {rows:?}");
        assert_eq!(rows.contains_key("IO latency"), line.contains("--lat"), "{rows:?}");
        let other = if direction == "write" { "MiB/s read" } else { "MiB/s write" };
        assert!(!rows.contains_key(other), "{rows:?}");
    }
}
