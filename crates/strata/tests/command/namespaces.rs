//! The network layer over several hosts: who reaches whom, what is measured, and what goes on when something breaks. The hosts are network
//! namespaces.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::hosts::{Engine, Hosts, Process, await_that};
use super::support::Ended;

/// Longest time that a run of some tenths of a second may take on a busy machine.
const SHORT: Duration = Duration::from_secs(20);

/// Counters of one endpoint or of one master.
#[derive(Debug, Default)]
struct Done {
    operations: u64,
    errors: u64,
    causes: BTreeMap<String, u64>,
}

/// Counters of a phase by endpoint, each by its label.
fn by_endpoint(phase: &Value) -> BTreeMap<String, Done> {
    let mut found: BTreeMap<String, Done> = BTreeMap::new();
    for worker in phase["samples"]["workers"].as_array().unwrap() {
        for part in worker["parts"].as_array().into_iter().flatten() {
            let endpoint = &phase["plan"]["endpoints"][part["part"].as_u64().unwrap() as usize];
            let done = found.entry(endpoint["label"].as_str().unwrap().to_owned()).or_default();
            done.operations += part["operations"].as_u64().unwrap();
            done.errors += part["errors"].as_u64().unwrap_or(0);
            for cause in part["causes"].as_array().into_iter().flatten() {
                let count = done.causes.entry(cause["cause"].as_str().unwrap().to_owned()).or_default();
                *count += cause["count"].as_u64().unwrap();
            }
        }
    }
    found
}

/// Operations by master and endpoint.
fn by_pair(phase: &Value) -> BTreeMap<(String, String), u64> {
    let mut found = BTreeMap::new();
    for worker in phase["samples"]["workers"].as_array().unwrap() {
        let master = worker["origin"].as_str().unwrap_or("here");
        for part in worker["parts"].as_array().into_iter().flatten() {
            let endpoint = &phase["plan"]["endpoints"][part["part"].as_u64().unwrap() as usize];
            let operations = part["operations"].as_u64().unwrap();
            if operations > 0 {
                let pair = (master.to_owned(), endpoint["label"].as_str().unwrap().to_owned());
                *found.entry(pair).or_default() += operations;
            }
        }
    }
    found
}

fn doubts(record: &Value) -> Vec<String> {
    let phases = record["phases"].as_array().unwrap().iter();
    let doubts = phases.flat_map(|phase| phase["doubts"].as_array().cloned().unwrap_or_default());
    doubts.map(|doubt| doubt.to_string()).collect()
}

/// Asserts that a command was refused in one line that has these words, with this exit code.
fn assert_refused(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", ended.stderr);
    for word in words {
        assert!(lines[0].contains(word), "{word:?} is missing: {}", lines[0]);
    }
}

#[test]
fn engines_on_several_hosts_serve_a_client_on_another() {
    let Some(hosts) = Hosts::new("engines on several hosts", 3) else { return };
    let _engines = [hosts.engine(0, 0, "--targets 2"), hosts.engine(0, 1, ""), hosts.engine(1, 2, "")];
    let sizes = "(0 0) (i2k 0) (0 i2k) (i64k i64k) (b1m 0) (0 b1m) (b256k b300001)";
    let load = format!("--endpoint 0:2-3 --endpoint 1-2:2 --message-sizes '{sizes}' --count 80 --verify");
    let record = hosts.measured(2, SHORT * 2, &load);
    let phases = record["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 7);
    let bytes = [0, 2048, 2048, 2 << 16, 1 << 20, 1 << 20, 262_144 + 300_001];
    for (phase, bytes) in phases.iter().zip(bytes) {
        let done = by_endpoint(phase);
        let labels: Vec<&str> = done.keys().map(String::as_str).collect();
        assert_eq!(labels, ["0:2", "0:3", "1:2", "2:2"]);
        // Sixteen slots go to the endpoints in turn, so each gets its share, up to what is in flight.
        assert!(
            done.values().all(|done| (4..=36).contains(&done.operations) && done.errors == 0),
            "{done:?}"
        );
        let total = &phase["summary"]["last_done"];
        assert_eq!((total["operations"].as_u64(), total["bytes"].as_u64()), (Some(80), Some(80 * bytes)));
        let interface = &phase["plan"]["interface"];
        assert_eq!((interface["name"].as_str(), interface["mtu_bytes"].as_u64()), (Some("eth0"), Some(1500)));
        assert_eq!(interface["is_loopback"].as_bool(), Some(false));
    }
    assert!(!doubts(&record).iter().any(|doubt| doubt.contains("loopback")), "{:?}", doubts(&record));
}

#[test]
fn a_client_proves_that_it_knows_the_secret() {
    let Some(hosts) = Hosts::new("the secret", 2) else { return };
    let bare = hosts.start_engine(0, &format!("engine --listen {}:0", hosts.address(0))).end_within(SHORT);
    assert_refused(&bare, 2, &["--token-file"]);
    let engine = hosts.engine(0, 0, "");
    let load = "--endpoint 0:2 --count 10";
    assert_refused(&hosts.run(1, SHORT, &format!("net {load}")), 1, &["token", "0:2"]);
    let other = hosts.scratch.join("other");
    std::fs::copy(hosts.token(), &other).unwrap();
    std::fs::write(&other, "another secret of 16 bytes and more\n").unwrap();
    assert_refused(&hosts.run(1, SHORT, &format!("net {load} --token-file other")), 1, &["token"]);
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&other, open_to_all).unwrap();
    assert_refused(&hosts.run(1, SHORT, &format!("net {load} --token-file other")), 2, &["chmod 600"]);
    for wrong in ["", "--token-file token"] {
        let driven = hosts.run(1, SHORT, &format!("net {load} --master 0:2 {wrong}"));
        let is_right = !wrong.is_empty();
        assert_eq!(driven.code, Some(i32::from(!is_right)), "{}", driven.stderr);
    }
    hosts.measured(1, SHORT, load);
    assert_eq!(engine.end().code, Some(0));
}

#[test]
fn addresses_devices_and_interfaces_are_taken_as_told() {
    let Some(hosts) = Hosts::new("addresses and interfaces", 3) else { return };
    let second = hosts.add_second_interface(2);
    let six = hosts.engine_at(0, 6, &format!("[{}]:0", hosts.address6(0)), "");
    let four = hosts.engine(1, 4, "");
    assert!(six.uri().starts_with("tcp://[fd77:"), "{}", six.line);
    for engine in [&six, &four] {
        let record = hosts.measured(
            2,
            SHORT,
            &format!("{} --count 20 --message-sizes '(b64k i1k)' --verify", engine.uri()),
        );
        assert_eq!(record["phases"][0]["plan"]["endpoints"][0]["uri"], engine.uri());
    }
    let bytes = 4 << 20;
    for (words, interface) in [
        ("--bind-device eth1".to_owned(), "eth1"),
        ("--interface eth1".to_owned(), "eth1"),
        (format!("--bind-address {second}"), "eth1"),
        (format!("--bind-address {second} --interface eth1"), "eth1"),
        ("--bind-device eth0".to_owned(), "eth0"),
        ("--interface eth0".to_owned(), "eth0"),
    ] {
        let before = hosts.sent_bytes(2, interface);
        let load = format!("--endpoint 4:2 --message-sizes '(b1m 0)' --count 4 {words}");
        let record = hosts.measured(2, SHORT, &load);
        let sent = hosts.sent_bytes(2, interface) - before;
        assert!(sent >= bytes, "{words}: {sent} bytes through {interface}");
        assert_eq!(record["phases"][0]["plan"]["interface"]["name"], interface, "{words}");
    }
    let ended = hosts.run(2, SHORT, "net --endpoint 4:2 --count 1 --interface eth7 --token-file token");
    assert_refused(&ended, 2, &["eth7", "eth0", "eth1"]);
    let ended = hosts.run(2, SHORT, "net --endpoint 4:2 --count 1 --bind-device eth7 --token-file token");
    assert!(ended.code != Some(0) && ended.stderr.contains("eth7"), "{}", ended.stderr);
    let shown = hosts.run(2, SHORT, "net scan");
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("eth0") && shown.stdout.contains("eth1"), "{}", shown.stdout);
}

#[test]
fn hosts_of_different_mtu_cast_doubt() {
    let Some(hosts) = Hosts::new("MTU", 3) else { return };
    let _engines = [hosts.engine(0, 0, ""), hosts.engine(1, 1, "")];
    let load = "--master 0-1:2 --endpoint 0-1:2 --count 50 --message-sizes '(i2k 0)'";
    let even = doubts(&hosts.measured(2, SHORT, load));
    assert!(!even.iter().any(|doubt| doubt.contains("MTU")), "{even:?}");
    hosts.set_mtu(1, 1400);
    let uneven = doubts(&hosts.measured(2, SHORT, load));
    assert!(uneven.iter().any(|doubt| doubt.contains("MTU") && doubt.contains("1400")), "{uneven:?}");
}

#[test]
fn servers_drive_servers() {
    let Some(hosts) = Hosts::new("servers drive servers", 5) else { return };
    let _engines: Vec<Engine> = (0..4).map(|host| hosts.engine(host, host, "")).collect();
    let pair = |from: u32, to: u32| (format!("{from}:2"), format!("{to}:2"));
    let all = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
    let expected = [
        ("matrix", all.filter(|(from, to)| from != to).collect::<Vec<_>>()),
        ("ring", (0..4).map(|from| (from, (from + 1) % 4)).collect()),
        ("incast", (1..4).map(|from| (from, 0)).collect()),
    ];
    for (traffic, pairs) in expected {
        let masters = if traffic == "incast" { "1-3:2" } else { "0-3:2" };
        let load = format!(
            "--master {masters} --endpoint 0-3:2 --traffic {traffic} --count 60 --message-sizes '(i1k 0)' --verify"
        );
        let record = hosts.measured(4, SHORT, &load);
        let found = by_pair(&record["phases"][0]);
        let pairs: Vec<_> = pairs.into_iter().map(|(from, to)| pair(from, to)).collect();
        assert_eq!(found.keys().cloned().collect::<Vec<_>>(), pairs, "{traffic}");
        for master in pairs.iter().map(|(master, _)| master) {
            let own = found.iter().filter(|((from, _), _)| from == master).map(|(_, count)| count);
            assert_eq!(own.sum::<u64>(), 60, "{traffic}: {master} in {found:?}");
        }
    }
    // Those that send are others than those that receive.
    let record = hosts.measured(4, SHORT, "--master 0-1:2 --endpoint 2-3:2 --traffic pairs --count 60");
    assert_eq!(by_pair(&record["phases"][0]), [(pair(0, 2), 60), (pair(1, 3), 60)].into());
}

#[test]
fn a_slow_host_is_named() {
    let Some(hosts) = Hosts::new("a slow host", 5) else { return };
    let _engines: Vec<Engine> = (0..4).map(|host| hosts.engine(host, host, "")).collect();
    // An RPC of the slow host takes its 64 KiB at 5 Mbit/s, 100 ms, and more where several wait: far beyond what a busy machine adds to
    // the others, and the window has several of them.
    let load = "--master 0-3:2 --endpoint 0-3:2 --traffic matrix --inflight-per-endpoint 1 --message-sizes '(b64k 0)' --time 3s";
    let links = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.trim_start().starts_with("links"));
        lines.take(4).map(str::to_owned).collect()
    };
    if !hosts.slow(2, "5mbit") {
        return super::support::skipped("a slow host", "tc has no tbf here");
    }
    let ended = hosts.run(4, SHORT, &format!("net {load} --token-file token"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let named = links(&ended.stdout);
    let sentence = named.first().unwrap_or_else(|| panic!("no links in {}", ended.stdout));
    assert!(
        sentence.contains("rank 2 (") && sentence.contains("is slow as a sender"),
        "{named:?}\n{}",
        ended.stdout
    );
}

/// Three engines and a client that sends to all of them until `--count`, with failures that do not end it.
fn three_engines(test: &str) -> Option<(Hosts, Vec<Engine>)> {
    let hosts = Hosts::new(test, 4)?;
    let engines = (0..3).map(|host| hosts.engine(host, host, "")).collect();
    Some((hosts, engines))
}

/// A load in which a slow endpoint holds up no other.
const GOES_ON: &str = "--endpoint 0-2:2 --inflight-per-endpoint 2 --message-sizes '(i1k 0)' --timeout 1s --on-error continue --poll block";

/// Asserts that a load failed at endpoint 1:2 alone, and the others went on; the failures of 1:2.
fn assert_others_went_on(ended: &Ended, record: &Value) -> Done {
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(record["status"], "partial", "{}", ended.stderr);
    let mut done = by_endpoint(&record["phases"][0]);
    let broken = done.remove("1:2").unwrap();
    assert!(broken.errors > 0, "{broken:?}");
    assert_eq!(broken.causes.values().sum::<u64>(), broken.errors, "{broken:?}");
    for (label, other) in &done {
        assert_eq!(other.errors, 0, "{label}: {other:?}");
        assert!(4 * other.operations > 5 * broken.operations, "{label}: {other:?}, 1:2: {broken:?}");
    }
    broken
}

/// From the start of a load until its link is cut, at most: half of what the shortest runs.
const CUT_WAIT: Duration = Duration::from_millis(1500);

/// Waits until all that a load needs are free again: it runs.
fn await_free(hosts: &Hosts, load: &str) {
    await_that("all are free again", Duration::from_secs(30), || {
        hosts.run(3, SHORT, &format!("net {load} --time 200ms --token-file token")).code == Some(0)
    });
}

/// Starts a load and cuts host 1 off soon after it is under way. A machine or a kernel that is busy with other networks takes its time:
/// then it is begun again.
fn load_cut_off(hosts: &Hosts, words: &str) -> Process {
    for _ in 0..8 {
        let begun = Instant::now();
        let load = hosts.load_under_way(3, words);
        hosts.cut(1);
        if begun.elapsed() < CUT_WAIT {
            return load;
        }
        drop(load);
        hosts.mend(1);
        // Whoever drove or served the load that is gone has to notice it first.
        let load = words.split(" --time ").next().unwrap();
        await_free(hosts, load);
    }
    panic!("the link is never cut within {CUT_WAIT:?}");
}

/// Ends a load, within 15 s.
fn end(load: Process) -> (Ended, Value) {
    load.record_within(Duration::from_secs(15))
}

#[test]
fn an_engine_that_is_killed_fails_alone() {
    let Some((hosts, mut engines)) = three_engines("a killed engine") else { return };
    let load = hosts.load_under_way(3, &format!("{GOES_ON} --time 2500ms"));
    engines.remove(1).kill();
    let (ended, record) = end(load);
    let broken = assert_others_went_on(&ended, &record);
    assert!(broken.operations > 0, "{broken:?}");
    let is_known =
        |cause: &String| cause.contains("reset") || cause.contains("refused") || cause.contains("pipe");
    assert!(broken.causes.keys().all(is_known), "{broken:?}");
    // It fails at once from then on, and does not spin: without a pause it would be millions.
    assert!(broken.errors < 200_000, "{broken:?}");

    // Nobody is there any more from the beginning.
    let (ended, record) = hosts.measure(3, SHORT, &format!("{GOES_ON} --time 500ms"));
    let broken = assert_others_went_on(&ended, &record);
    assert_eq!(broken.operations, 0, "{broken:?}");
    assert!(ended.stderr.contains("1:2") && ended.stderr.contains("refused"), "{}", ended.stderr);
    // Without the others, and without --on-error continue, there is nothing to measure.
    let ended = hosts.run(3, SHORT, "net --endpoint 1:2 --count 10 --token-file token");
    assert_refused(&ended, 1, &["1:2", "refused"]);

    // The rank may be taken by another engine now; a rank that is served may not.
    let heir = hosts.engine(3, 1, "");
    let again =
        hosts.start_engine(0, &format!("engine --rank 1 --listen {}:0 --token-file token", hosts.address(0)));
    let refused = again.end_within(SHORT);
    assert_refused(&refused, 2, &["rank 1", heir.address()]);
    hosts.measured(3, SHORT, "--endpoint 0-2:2 --count 30");
}

#[test]
fn a_link_that_is_cut_fails_alone_and_may_be_mended() {
    let Some((hosts, _engines)) = three_engines("a cut link") else { return };
    let load = load_cut_off(&hosts, &format!("{GOES_ON} --time 4s"));
    let begun = Instant::now();
    let (ended, record) = end(load);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let broken = assert_others_went_on(&ended, &record);
    assert!(broken.causes.keys().any(|cause| cause.contains("timed out")), "{broken:?}");
    hosts.mend(1);

    // Cut for less than the timeout: everything comes, late.
    // Nothing is taken for warm-up: what waits may have begun at any time.
    let load = load_cut_off(&hosts, &format!("{} --warmup none --time 3s", GOES_ON.replace("1s", "10s")));
    std::thread::sleep(Duration::from_secs(1));
    hosts.mend(1);
    let (ended, record) = end(load);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let done = by_endpoint(&record["phases"][0]);
    assert!(done.values().all(|done| done.errors == 0 && done.operations > 0), "{done:?}");
    let max_ns = super::support::total(&record, 0, "latency")["max_ns"].as_u64();
    assert!(max_ns.is_some_and(|max_ns| max_ns > 900_000_000), "{max_ns:?}");
}

#[test]
fn what_a_cut_link_holds_back_is_counted_at_its_endpoint_also_after_the_end() {
    let Some((hosts, _engines)) = three_engines("a link cut near the end") else { return };
    let load = load_cut_off(&hosts, &format!("{} --time 3s", GOES_ON.replace("1s", "3s")));
    let (ended, record) = end(load);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let failure = record["failure"].as_str().unwrap();
    assert!(failure.contains("endpoint 1:2") && failure.contains("timed out"), "{failure}");
    let done = by_endpoint(&record["phases"][0]);
    assert_eq!(done["1:2"].errors, 2, "{done:?}");
    hosts.mend(1);

    // With a timeout of half a minute, Ctrl-C does not wait for it.
    let load = load_cut_off(&hosts, &format!("{} --time 60s", GOES_ON.replace("--timeout 1s", "")));
    std::thread::sleep(Duration::from_millis(200));
    load.signal(Signal::INT);
    let (ended, record) = load.record_within(Duration::from_secs(12));
    assert_eq!((ended.code, record["failure"].as_str()), (Some(1), Some("interrupted")), "{}", ended.stderr);
    let done = by_endpoint(&record["phases"][0]);
    assert!(done["0:2"].errors == 0 && done["2:2"].errors == 0, "{done:?}");
    assert!(done["1:2"].causes.keys().all(|cause| cause.contains("canceled")), "{done:?}");
    assert_eq!(done["1:2"].errors, 2, "{done:?}");
}

#[test]
fn a_server_that_stops_reading_fails_alone() {
    let Some((hosts, engines)) = three_engines("a stopped server") else { return };
    for size in ["i1k", "b1m"] {
        let load = hosts.load_under_way(3, &format!("{} --time 3s", GOES_ON.replace("i1k", size)));
        engines[1].process.signal(Signal::STOP);
        let (ended, record) = end(load);
        engines[1].process.signal(Signal::CONT);
        let broken = assert_others_went_on(&ended, &record);
        assert!(broken.causes.keys().any(|cause| cause.contains("timed out")), "{size}: {broken:?}");
    }
    // It is what it was.
    hosts.measured(3, SHORT, "--endpoint 0-2:2 --count 30");
}

#[test]
fn a_master_that_is_lost_is_named() {
    let Some((hosts, mut engines)) = three_engines("a lost master") else { return };
    let words = "--master 0-1:2 --endpoint 2:2 --message-sizes '(i1k 0)' --timeout 1s --on-error continue";
    let survived = |ended: &Ended, record: &Value| {
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert_eq!(record["status"], "partial");
        let failure = record["failure"].as_str().unwrap();
        assert!(failure.contains("master 1:2") && !failure.contains("http"), "{failure}");
        let found = by_pair(&record["phases"][0]);
        assert!(
            found.get(&("0:2".to_owned(), "2:2".to_owned())).is_some_and(|count| *count > 100),
            "{found:?}"
        );
    };
    let load = load_cut_off(&hosts, &format!("{words} --time 3s"));
    // Nothing but silence tells of a cut link: the keepalive of control finds it.
    let (ended, record) = load.record_within(Duration::from_secs(30));
    survived(&ended, &record);
    hosts.mend(1);
    // It drives again, once it has noticed that nobody listens to it any more.
    await_free(&hosts, words);

    let load = hosts.load_under_way(3, &format!("{words} --time 2500ms"));
    engines.remove(1).kill();
    let (ended, record) = end(load);
    survived(&ended, &record);
}

#[test]
fn services_of_elbencho_measure_between_hosts() {
    let Some(hosts) = Hosts::new("services of elbencho", 4) else { return };
    let start = |host: u32| {
        let mut service =
            hosts.start(host, "as elbencho --service --foreground --svcpwfile token --port 1700");
        service.await_text("1700", SHORT);
        service
    };
    let services: Vec<Process> = (0..3).map(start).collect();
    let [servers, clients] = [hosts.address(0), format!("{},{}", hosts.address(1), hosts.address(2))];
    let load = format!(
        "as elbencho --netbench --servers {servers} --clients {clients} --port 1700 --svcpwfile token -b 64k --respsize 1 -t 2 -s 8m --lat --netdevs eth0 --nolive"
    );
    let ended = hosts.run(3, SHORT, &load);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("NET") && ended.stdout.contains("MiB/s"), "{}", ended.stdout);
    // Each of two threads of each of two clients sends 8 MiB.
    assert!(hosts.sent_bytes(1, "eth0") >= 16 << 20);
    let all = format!("{servers},{clients}");
    let wrong = hosts.run(3, SHORT, &format!("as elbencho --hosts {all} --port 1700 --quit"));
    assert_ne!(wrong.code, Some(0), "{}", wrong.stdout);
    let quit =
        hosts.run(3, SHORT, &format!("as elbencho --hosts {all} --port 1700 --svcpwfile token --quit"));
    assert_eq!(quit.code, Some(0), "{}", quit.stderr);
    for service in services {
        assert_eq!(service.end_within(SHORT).code, Some(0));
    }
}
