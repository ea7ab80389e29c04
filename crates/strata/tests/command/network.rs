//! `strata net` against real engines.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::engines::{Engine, await_gone};
use crate::support::{Scratch, assert_partial, total};

/// Operations and errors of a phase by endpoint label, over all workers.
fn by_endpoint(record: &Value, phase: usize) -> BTreeMap<String, (u64, u64)> {
    let phase = &record["phases"][phase];
    let mut sums = BTreeMap::new();
    for part in phase["samples"]["workers"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|worker| worker["parts"].as_array().unwrap())
    {
        let at = usize::try_from(part["part"].as_u64().unwrap()).unwrap();
        let label = phase["plan"]["endpoints"][at]["label"].as_str().unwrap();
        let sum: &mut (u64, u64) = sums.entry(label.to_owned()).or_default();
        sum.0 += part["operations"].as_u64().unwrap();
        sum.1 += part["errors"].as_u64().unwrap();
    }
    sums
}

fn operations(record: &Value, phase: usize) -> u64 {
    total(record, phase, "operations").as_u64().unwrap()
}

fn origins(record: &Value, phase: usize) -> Vec<String> {
    let workers = record["phases"][phase]["samples"]["workers"].as_array().unwrap();
    workers.iter().map(|worker| worker["origin"].as_str().unwrap_or("here").to_owned()).collect()
}

#[test]
fn without_a_target_an_engine_is_started_and_ended() {
    let scratch = Scratch::new();
    let record = scratch.measured("net --count 2000 --seed 5");
    let plan = &record["phases"][0]["plan"];
    assert_eq!((&plan["layer"], &plan["provider"]), (&"network".into(), &"tcp".into()));
    assert_eq!(operations(&record, 0), 2000);
    assert_eq!(by_endpoint(&record, 0), BTreeMap::from([("0:2".to_owned(), (2000, 0))]));
    let server = &record["phases"][0]["observations"]["servers"][0];
    assert_eq!(
        (&server["label"], server["rpcs"].as_u64().unwrap() >= 2000),
        (&"0:2".into(), true),
        "{server}"
    );
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn ranks_of_a_group_sizes_and_limits() {
    let scratch = Scratch::new();
    let zero = Engine::start(scratch.path(), "--targets 2 --helpers 1");
    let one = Engine::start(scratch.path(), "--rank 1");
    assert!(zero.line.contains("rank 0 of daos_server serves 5 tags (0 metadata, 1 monitoring, 2-3 targets, 4 helper) at tcp://127.0.0.1:"), "{}", zero.line);
    assert!(one.line.ends_with(", attach info ./daos_server.attach_info_tmp"), "{}", one.line);
    let ended = scratch.run("engine --path . --rank 1");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 1 of group daos_server is already served"), "{}", ended.stderr);

    // All targets of all ranks, every message size a phase.
    let record =
        scratch.measured_words(&["net", "--path", ".", "--count", "600", "-s", "0 0,i2k i2k,b1m 0,0 b1m"]);
    let sizes: Vec<u64> = (0..4).map(|phase| operations(&record, phase)).collect();
    assert_eq!(sizes, [600; 4]);
    let bytes: Vec<u64> = (0..4).map(|phase| total(&record, phase, "bytes").as_u64().unwrap()).collect();
    assert_eq!(bytes, [0, 600 * 4096, 600 << 20, 600 << 20], "each byte once");
    let labels: Vec<String> = by_endpoint(&record, 0).into_keys().collect();
    assert_eq!(labels, ["0:2", "0:3", "1:2"]);
    assert!(by_endpoint(&record, 0).values().all(|sum| *sum == (200, 0)), "{:?}", by_endpoint(&record, 0));

    // Endpoints as named, in flight for each, checked, by time and rate.
    let record = scratch.measured(
        "net --path . -e 1:2 -e 0:4 --inflight-per-endpoint 3 -t 2 --time 200ms --rate 2k --verify -s i100,b70k",
    );
    let labels: Vec<&str> = record["phases"][0]["plan"]["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["1:2", "0:4"]);
    assert_eq!(record["phases"][0]["plan"]["load"]["depth"], 6);
    let arrivals = &record["phases"][0]["arrivals"];
    let due = ["started_operations", "unserved_operations"].map(|name| arrivals[name].as_u64().unwrap());
    assert!((390..=401).contains(&(due[0] + due[1])) && operations(&record, 0) > 0, "{arrivals}");

    // A ladder over one engine by its address.
    let record = scratch.measured(&format!("net {} --ladder depth=1,2 --count 300", one.uri()));
    assert_eq!(record["ladder"]["phases"].as_array().unwrap().len(), 2);
    assert_eq!(record["phases"][1]["plan"]["load"]["depth"], 2);
    assert_eq!(by_endpoint(&record, 0).into_keys().collect::<Vec<_>>(), ["1:2"]);

    one.signal(Signal::TERM);
    let (code, said) = one.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ends: signal SIGTERM"), "{said}");
    let left = std::fs::read_to_string(scratch.join("daos_server.attach_info_tmp")).unwrap();
    assert!(left.contains("size 1") && !left.contains("\n1 "), "{left}");
    zero.signal(Signal::INT);
    assert_eq!(zero.end().0, Some(0));
    assert!(!scratch.names().contains(&"daos_server.attach_info_tmp".to_owned()), "{:?}", scratch.names());
}

#[test]
fn servers_by_their_control_addresses() {
    let scratch = Scratch::new();
    let first = Engine::start(scratch.path(), "--no-attach-info --targets 2");
    let second = Engine::start(scratch.path(), "--no-attach-info");
    let servers = format!("{},{}", first.control(), second.control());
    let record = scratch.measured(&format!("net --servers {servers} --count 300 --share partition -t 3"));
    let endpoints = record["phases"][0]["plan"]["endpoints"].as_array().unwrap();
    let places: Vec<_> =
        endpoints.iter().map(|it| (it["label"].as_str().unwrap(), it["tag"].as_u64().unwrap())).collect();
    let (one, two) = (first.control(), second.control());
    assert_eq!(
        places,
        [(one.as_str(), 2), (two.as_str(), 2), (one.as_str(), 3)],
        "one of each server in turn"
    );
    assert_eq!(operations(&record, 0), 300);
    // Clients are engines too.
    let record = scratch.measured(&format!("net --servers {one} --clients {two} --count 300"));
    assert_eq!(origins(&record, 0), [two]);
}

#[test]
fn masters_drive_with_every_pattern() {
    let scratch = Scratch::new();
    let _engines: Vec<Engine> =
        (0..3).map(|rank| Engine::start(scratch.path(), &format!("--rank {rank} --group trio"))).collect();
    let pairs = |record: &Value| -> Vec<(String, String)> {
        let phase = &record["phases"][0];
        let workers = phase["samples"]["workers"].as_array().unwrap();
        let mut pairs: Vec<(String, String)> = Vec::new();
        for worker in workers {
            for part in worker["parts"].as_array().unwrap() {
                let at = usize::try_from(part["part"].as_u64().unwrap()).unwrap();
                assert_eq!(part["errors"], 0);
                let to = phase["plan"]["endpoints"][at]["label"].as_str().unwrap();
                pairs.push((worker["origin"].as_str().unwrap().to_owned(), to.to_owned()));
            }
        }
        pairs.sort();
        pairs
    };
    let expect = |list: &[(u32, u32)]| -> Vec<(String, String)> {
        list.iter().map(|(from, to)| (format!("{from}:2"), format!("{to}:2"))).collect()
    };
    let all: Vec<(u32, u32)> = (0..3).flat_map(|from| (0..3).map(move |to| (from, to))).collect();
    let others: Vec<(u32, u32)> = all.iter().copied().filter(|(from, to)| from != to).collect();
    let cases: [(&str, Vec<(u32, u32)>); 5] = [
        ("all", all),
        ("matrix", others),
        ("pairs", vec![(0, 0), (1, 1), (2, 2)]),
        ("ring", vec![(0, 1), (1, 2), (2, 0)]),
        ("incast", vec![(0, 0), (1, 0), (2, 0)]),
    ];
    for (traffic, expected) in cases {
        let record = scratch.measured(&format!(
            "net --path . --group trio -e 0-2:2 -m 0-2:2 --traffic {traffic} --count 120 -i 4 -s i64"
        ));
        assert_eq!(pairs(&record), expect(&expected), "{traffic}");
        assert_eq!(operations(&record, 0), 360, "{traffic}: each master does the whole count");
        let links = record["phases"][0]["observations"]["links"].as_array().unwrap();
        assert!(links.is_empty(), "{traffic}: nothing leaves this host");
    }
}

#[test]
fn a_job_file_mixes_layers() {
    let scratch = Scratch::new();
    std::fs::write(
        scratch.join("job.toml"),
        "time = '100ms'\n[[phase]]\ntargets = ['mem:']\nop = 'read'\n[[phase]]\nlayer = 'network'\ntargets = ['loopback:']\n\
         message_sizes = 'i64'\n[[phase]]\nlayer = 'network'\ntargets = ['loopback:']\nmessage_sizes = 'i128'\nconcurrent = true\n",
    )
    .unwrap();
    let record = scratch.measured("run job.toml");
    let phases = record["phases"].as_array().unwrap();
    let layers: Vec<_> = phases.iter().map(|phase| phase["plan"]["layer"].as_str().unwrap()).collect();
    assert_eq!(layers, ["media", "network", "network"]);
    assert_eq!((&phases[1]["stage"], &phases[2]["stage"]), (&1.into(), &1.into()));
    assert_eq!(phases[1]["plan"]["endpoints"], phases[2]["plan"]["endpoints"], "one engine serves both");
}

#[test]
fn an_engine_that_is_killed_fails_its_own_rpcs_alone() {
    let scratch = Scratch::new();
    let keeps = Engine::start(scratch.path(), "");
    let dies = Engine::start(scratch.path(), "--rank 1");
    let mut running = scratch.start(
        "net --path . --inflight-per-endpoint 2 --time 2s --timeout 5s --json record.json --live-csv -",
    );
    running.await_row("0 0");
    dies.signal(Signal::KILL);
    let ended = running.end();
    let record = crate::support::read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "endpoint 1:2");
    let sums = by_endpoint(&record, 0);
    assert!(sums["1:2"].1 > 0 && sums["0:2"].1 == 0 && sums["0:2"].0 > sums["1:2"].0, "{sums:?}");
    // It goes on without it, and says so.
    let (ended, record) = scratch.measure("net --path . --count 200 --timeout 5s");
    assert_partial(&scratch, &ended, &record, "endpoint 1:2");
    assert!(ended.stderr.contains("warning: endpoint 1:2: "), "{}", ended.stderr);
    assert!(by_endpoint(&record, 0)["0:2"].0 >= 100);
    drop(keeps);
}

#[test]
fn a_master_that_is_killed_is_named_and_the_others_are_kept() {
    let scratch = Scratch::new();
    let _keeps = Engine::start(scratch.path(), "");
    let dies = Engine::start(scratch.path(), "--rank 1");
    let mut running = scratch.start("net --path . -e 0:2 -m 0-1:2 --time 3s --json record.json --live-csv -");
    running.await_row("0 0");
    dies.signal(Signal::KILL);
    let ended = running.end();
    let record = crate::support::read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "master 1:2");
    assert_eq!(origins(&record, 0), ["0:2", "1:2"]);
    assert!(operations(&record, 0) > 0);
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let scratch = Scratch::new();
    let mut running = scratch.start("net --time 60s --json record.json --live-csv -");
    running.await_row("0 0");
    running.signal(Signal::INT);
    let ended = running.end();
    let record = crate::support::read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "interrupted");
    assert!(operations(&record, 0) > 0 && total(&record, 0, "errors") == 0);
}

#[test]
fn a_run_that_is_killed_takes_its_engine_along() {
    let scratch = Scratch::new();
    let mut running = scratch.start("net --time 60s --live-csv -");
    running.await_row("0 0");
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let children = std::fs::read_to_string(children).unwrap();
    let engine: u32 = children.split_whitespace().next().unwrap().parse().unwrap();
    running.signal(Signal::KILL);
    let _ = running.end();
    await_gone(engine);
}

#[test]
fn ipv6_and_another_poll() {
    let scratch = Scratch::new();
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return crate::support::skipped("ipv6_and_another_poll", "this machine has no IPv6");
    }
    let engine = Engine::start(scratch.path(), "--listen [::1]:0 --cores 0");
    assert!(
        engine.uri().starts_with("tcp://[::1]:") && engine.control().starts_with("[::1]:"),
        "{}",
        engine.line
    );
    let record = scratch.measured(&format!("net {} --count 100 --poll block", engine.uri()));
    assert_eq!((operations(&record, 0), &record["phases"][0]["plan"]["poll"]), (100, &"block".into()));
    let record = scratch.measured("net --path . -m 0:2 --count 100");
    assert_eq!(record["phases"][0]["samples"]["workers"][0]["core"], 0, "where its service thread is");
}

#[test]
fn nobody_there_is_one_line() {
    let scratch = Scratch::new();
    let ended = scratch.run("net tcp://127.0.0.1:1 --timeout 5s");
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("tcp://127.0.0.1:1") && ended.stderr.contains("Connection refused"),
        "{}",
        ended.stderr
    );
    for (words, wanted) in [
        ("net --group nobody --path .", "group nobody does not exist"),
        ("net foo", "not an address of an engine"),
        ("net loopback: null:", "cannot be combined with other targets"),
        ("net tcp://a:1 --servers b", "use one of them"),
        ("net --traffic ring", "--master or --clients"),
        ("net --op read", "--message-sizes"),
        ("media null: --inflight 3", "only for the network layer"),
        ("net null: -m 0:2", "driven by this process"),
    ] {
        let ended = scratch.run(words);
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(wanted), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_token_is_demanded_and_never_read_from_an_open_file() {
    let scratch = Scratch::new();
    let write = |name: &str, text: &str, mode: u32| {
        let path = scratch.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write("token", "a secret of enough bytes\n", 0o600);
    write("other", "a secret of other bytes.\n", 0o600);
    write("open", "a secret of enough bytes\n", 0o644);
    let engine = Engine::start(scratch.path(), "--token-file token --tls");
    let words = "net --path . --count 100 --timeout 5s";
    let record = scratch.measured(&format!("{words} --token-file token"));
    assert_eq!(operations(&record, 0), 100);
    let record = scratch.measured(&format!("{words} --token-file token -m 0:2 --tls"));
    assert_eq!(origins(&record, 0), ["0:2"]);
    for (option, code, wanted) in [
        ("", 1, "Permission denied"),
        ("--token-file other", 1, "Permission denied"),
        ("--token-file open", 2, "chmod 600"),
    ] {
        let ended = scratch.run(&format!("{words} {option}"));
        assert_eq!(ended.code, Some(code), "{option}: {}", ended.stderr);
        assert!(ended.stderr.contains(wanted), "{option}: {}", ended.stderr);
        assert!(!ended.stderr.contains("enough bytes"), "the secret was told: {}", ended.stderr);
    }
    for words in ["engine --path . --rank 4 --listen 0.0.0.0:0", "engine --path . --rank 4 --tls"] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains("token"), "{words}: {}", ended.stderr);
    }
    drop(engine);
}

#[test]
fn an_engine_goes_into_the_background_and_ends_when_told() {
    let scratch = Scratch::new();
    let ended = scratch.run("engine --path . --background log --poll block");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("engine: rank 0 of daos_server serves 3 tags"), "{}", ended.stdout);
    let record = scratch.measured("net --path . --count 100");
    assert_eq!(operations(&record, 0), 100);
    let again = scratch.run("engine --path . --background log2");
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("is already served"), "{}", again.stderr);
    let info = std::fs::read_to_string(scratch.join("daos_server.attach_info_tmp")).unwrap();
    let pid: i32 = info.split_once("pid=").unwrap().1.split_whitespace().next().unwrap().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    await_gone(u32::try_from(pid).unwrap());
    let log = std::fs::read_to_string(scratch.join("log")).unwrap();
    assert!(log.contains("ends: signal SIGTERM"), "{log}");
}

#[test]
fn an_engine_that_was_started_by_another_process_ends_with_its_standard_input() {
    let scratch = Scratch::new();
    // Its standard input is empty from the start.
    let engine = Engine::start(scratch.path(), "--until-stdin-closes");
    let id = engine.id();
    let (code, said) = engine.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("standard input was closed"), "{said}");
    await_gone(id);
}

#[test]
fn the_scan_shows_interfaces() {
    let scratch = Scratch::new();
    let text = scratch.run("net scan --refresh");
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.contains("interface") && text.stdout.contains("lo "), "{}", text.stdout);
    let json = scratch.run("net scan --json");
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(report["interfaces"].as_array().unwrap().iter().any(|it| it["name"] == "lo"), "{report:#}");
    let ended = scratch.run("net scan --interface nowhere0");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("nowhere0"), "{}", ended.stderr);
}

#[test]
fn layers_are_listed_in_one_table() {
    let listed = Scratch::new().run("list").stdout;
    for start in ["media   psync ", "network null ", "network tcp ", "network ofi "] {
        assert!(listed.lines().any(|line| line.starts_with(start)), "{start}: {listed}");
    }
}

#[test]
fn the_climb_finds_where_more_in_flight_does_not_pay() {
    let scratch = Scratch::new();
    let record = scratch.measured("net null: --saturate --time 20ms");
    let phases = record["phases"].as_array().unwrap();
    let depths: Vec<u64> =
        phases.iter().map(|phase| phase["plan"]["load"]["depth"].as_u64().unwrap()).collect();
    assert!(depths.starts_with(&[1, 2]), "{depths:?}");
    assert_eq!(phases[1]["plan"]["pipeline"], 2);
}
