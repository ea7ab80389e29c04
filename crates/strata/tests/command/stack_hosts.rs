//! `strata stack --hosts`: every row on the first host and on all of them.

use serde_json::Value;

use super::engines::Engine;
use super::many_hosts::{LOST_WAIT, Service};
use super::support::{Scratch, parse_record, read_record, total};

/// Layers whose rows hosts of one machine carry out.
const OF_HOSTS: [&str; 5] = ["memory", "media", "file", "network", "engine"];

fn rows(record: &Value) -> &[Value] {
    record["stack"]["rows"].as_array().unwrap()
}

/// Phases of the passes of a row, on one host or on all, with the number of the pass.
fn passes<'r>(record: &'r Value, of: &Value) -> Vec<(u64, usize, &'r Value)> {
    let passes = of["passes"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let one = |pass: &Value| {
        let at = usize::try_from(pass["phase"].as_u64().unwrap()).unwrap();
        (pass["pass"].as_u64().unwrap(), at, &record["phases"][at])
    };
    passes.map(one).collect()
}

/// Hosts that carried a phase out, as its plan has them and as its workers say.
fn hosts(phase: &Value) -> (Option<u64>, Vec<&str>) {
    let workers = phase["samples"]["workers"].as_array().unwrap().iter();
    (
        phase["plan"]["load"]["place"]["hosts"].as_u64(),
        workers.filter_map(|it| it["origin"].as_str()).collect(),
    )
}

/// Checks a row that hosts carry out, in two passes.
fn check_row(record: &Value, row: &Value, names: [&str; 2]) {
    assert!(row["missing"].is_null() && row["hosts"]["one_host"].is_null(), "{row}");
    assert_eq!(row["hosts"]["count"], 2, "{row}");
    let (one, all) = (passes(record, row), passes(record, &row["hosts"]));
    assert_eq!((one.len(), all.len()), (2, 2), "{row}");
    let mut all_completed = true;
    for ((pass, at, phase), (pass_on_all, at_on_all, phase_on_all)) in one.into_iter().zip(all) {
        assert_eq!(pass, pass_on_all, "{row}");
        assert_eq!(pass == 0, at_on_all < at, "which comes first changes from pass to pass: {row}");
        assert_eq!(hosts(phase), (Some(1), names[..1].to_vec()), "{row}");
        assert_eq!(hosts(phase_on_all), (Some(2), names.to_vec()), "{row}");
        for at in [at, at_on_all] {
            assert_eq!(total(record, at, "errors"), 0, "{row}");
            let nothing_completed = total(record, at, "window_operations") == 0;
            // A window is 150 ms: a machine that other tests keep busy may stop that long. Then the record says so.
            let doubts = record["phases"][at]["doubts"].to_string();
            assert_eq!(nothing_completed, doubts.contains("no operation completed in the window"), "{row}");
            all_completed &= !nothing_completed;
        }
    }
    if !all_completed {
        return;
    }
    let [scaling, low, high] =
        ["scaling", "scaling_low", "scaling_high"].map(|name| row["hosts"][name].as_f64().unwrap());
    assert!(0.0 < low && low <= scaling && scaling <= high, "{row}");
}

#[test]
fn rows_are_measured_on_one_host_and_on_all_of_them() {
    let scratch = Scratch::new();
    let words = "stack --quick --passes 2 --size 64m --hosts local:2 --json - --out results --seed 3";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["results"], "left something behind");
    let record = parse_record(&ended.stdout);
    assert_eq!(record["status"], "complete");
    assert_eq!(record["hosts"].as_array().unwrap().len(), 2);
    for row in rows(&record) {
        let layer = row["layer"].as_str().unwrap();
        // Not every file system takes direct I/O, and not every machine FUSE.
        if ["media", "mount"].contains(&layer) && row["missing"].is_string() {
            continue;
        }
        if OF_HOSTS.contains(&layer) {
            check_row(&record, row, ["local:0", "local:1"]);
            continue;
        }
        assert!(["null", "object", "dfs", "mount"].contains(&layer), "{row}");
        assert!(row["hosts"]["count"] == 1 && row["hosts"]["one_host"].is_string(), "{row}");
        let one = passes(&record, row);
        assert!(one.len() == 2 && one.iter().all(|(.., phase)| hosts(phase) == (None, vec![])), "{row}");
    }
    assert!(record["stack"]["verdict"]["sentence"].is_string());

    let text = scratch.run("report results/record.json").stdout;
    assert!(text.lines().count() <= 35, "{text}");
    // Columns are as wide as what was measured.
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for heading in ["1 host write 1 MiB", "2 hosts write 1 MiB", "verdict"] {
        assert!(lines.iter().any(|line| line.starts_with(heading)), "{heading}: {text}");
    }
    assert!(text.contains("object, dfs: only one process can open"), "{text}");
    let full = scratch.run("report results/record.json --full").stdout;
    assert!(full.contains("scaling") && full.contains("x of 2x"), "{full}");
    assert_eq!(scratch.run("report results/record.json --html page.html --svg charts").code, Some(0));
    let page = std::fs::read_to_string(scratch.join("page.html")).unwrap();
    assert!(page.contains("2 hosts"), "the page has the report");
    assert_eq!(scratch.run("report results/record.json --csv --by-host").code, Some(0));
}

#[test]
fn services_measure_on_their_machines_and_what_they_cannot_reach_is_missing() {
    let scratch = Scratch::new();
    let services = [(); 2].map(|()| Service::start(&scratch, &[]));
    let names = services.each_ref().map(|service| service.address.as_str());
    let list = names.join(",");
    let record = scratch.measured(&format!("stack --quick --passes 2 --size 64m --hosts {list}"));
    for row in rows(&record) {
        let layer = row["layer"].as_str().unwrap();
        match layer {
            "media" if row["missing"].is_string() => {}
            "memory" | "media" | "file" => check_row(&record, row, names),
            _ => {
                let why = row["missing"].as_str().unwrap();
                assert!(why.contains("not processes of this machine"), "{row}");
            }
        }
    }
    assert_eq!(scratch.names(), ["record.json"], "left something behind");
    let text = scratch.run("report record.json --warnings").stdout;
    assert!(text.contains("use --engine") && text.contains("use --stack-object"), "{text}");
}

#[test]
fn an_engine_of_the_users_is_reached_by_all_hosts() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir pool --pool tank --scm 512m");
    let uri = engine.uri();
    let address = uri.strip_prefix("tcp://").unwrap();
    let services = [(); 2].map(|()| Service::start(&scratch, &["--allow-network", "all"]));
    let names = services.each_ref().map(|service| service.address.as_str());
    let record = scratch.measured(&format!(
        "stack --quick --passes 2 --size 64m --stack-object engine://{address}/tank/objects --hosts {}",
        names.join(",")
    ));
    let of_engine = rows(&record).iter().filter(|row| row["layer"] == "network" || row["layer"] == "engine");
    assert_eq!(of_engine.clone().map(|row| check_row(&record, row, names)).count(), 8);
}

#[test]
fn a_host_that_dies_leaves_a_partial_record() {
    let scratch = Scratch::new();
    let [first, mut second] = [(); 2].map(|()| Service::start(&scratch, &[]));
    let list = format!("{},{}", first.address, second.address);
    let mut running =
        scratch.start(&format!("stack --size 64m --hosts {list} --live-csv - --json record.json"));
    running.await_row("memory: read 4 KiB");
    second.kill();
    let killed = std::time::Instant::now();
    let ended = running.end();
    assert!(killed.elapsed() < LOST_WAIT, "{}", ended.stderr);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    assert!(record["failure"].as_str().unwrap().contains(&second.address), "{}", record["failure"]);
    assert!(record["stack"]["verdict"].is_null());
    let of_memory = &rows(&record)[1];
    assert!(!passes(&record, &of_memory["hosts"]).is_empty(), "what was measured is kept: {of_memory}");
    assert_eq!(scratch.run("report record.json").code, Some(0));
}

#[test]
fn what_hosts_cannot_do_is_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    for (words, expected) in [
        ("--hosts local:1", "give two hosts or more"),
        ("--hosts local:2 --hosts-used 1", "give two hosts or more"),
        ("--hosts local:2 --hosts-used 3", "give 1 to 2, or more hosts"),
        ("--hosts local:2 --try", "leave out --try or --hosts"),
        ("--hosts local:2 --app vpic", "leave out --app"),
        ("--hosts local:2 --host-targets own", "leave out --host-targets"),
        ("--hosts node1 --hosts node2 --gpu all", "give --hosts local:N"),
        ("--hosts [", "the bracket is not closed"),
        ("--hosts-used 2", "--hosts-used requires hosts, but no hosts are given"),
        ("--host-targets shared", "--host-targets requires hosts, but no hosts are given"),
        ("--hosts local:2 --rotate-hosts 1", "--rotate-hosts"),
        ("--hosts local:2 --device ./none", "the block device does not exist"),
    ] {
        let ended = scratch.run(&format!("stack --quick --size 64m {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
        assert_eq!(scratch.names(), [""; 0], "{words}");
    }
}
