//! `strata stack --app`: an application above the layers below it, compared with them at its own load.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Scratch, parse_record, read_record};

const QUICK: &str = "stack --quick --passes 2 --size 64m --dir . --seed 3";
/// Two processes that write 8 MiB each and read it again.
const VPIC: &str = "--app vpic --app-set particles=262144,transfer=256KiB";
const WRITES: &str = "vpic checkpoint, write 256 KiB x 2";
const READS: &str = "vpic restart, read 256 KiB x 2";

fn row<'a>(record: &'a Value, layer: &str, load: &str) -> &'a Value {
    let rows = record["stack"]["rows"].as_array().unwrap();
    let mut found = rows.iter().filter(|row| row["layer"] == layer && row["load"] == load);
    let row = found.next().unwrap_or_else(|| panic!("no row of {layer} at {load}"));
    assert!(found.next().is_none(), "{layer} at {load} is there twice");
    row
}

/// Sum of a class of a phase over its workers: operations and bytes.
fn moved(record: &Value, row: &Value, pass: usize, class: &str) -> (u64, u64) {
    let phase = usize::try_from(row["passes"][pass]["phase"].as_u64().unwrap()).unwrap();
    crate::support::class(record, phase, class)
}

#[test]
fn the_application_stands_on_rows_that_have_its_load() {
    let scratch = Scratch::new();
    let ended = scratch.run(&format!("{QUICK} {VPIC} --json - --out results"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["results"], "left something behind");
    let record = parse_record(&ended.stdout);
    assert_eq!(record["status"], "complete");
    for load in [WRITES, READS] {
        for (layer, below) in [
            ("media", "memory"),
            ("file", "media"),
            ("object", "media"),
            ("dfs", "object"),
            ("app", "file"),
            ("app-dfs", "dfs"),
            ("app-object", "object"),
        ] {
            let row = row(&record, layer, load);
            assert_eq!(row["stands_on"][0], serde_json::json!({"layer": below, "load": load}), "{layer}");
            assert_eq!((&row["load_of"], &row["in_bytes"]), (&"vpic".into(), &true.into()), "{layer}");
            if layer == "media" && row["missing"].is_string() {
                // Not every file system takes direct I/O.
                continue;
            }
            assert!(row["missing"].is_null(), "{row}");
            assert_eq!(row["passes"].as_array().unwrap().len(), 2, "{row}");
            // The same direction, transfer and amount everywhere: 64 transfers of 256 KiB.
            let class = if load == WRITES { "write" } else { "read" };
            assert_eq!(moved(&record, row, 1, class), (64, 16 << 20), "{layer} at {load}");
        }
    }
    // Syncs too: the application makes one for each 32 writes of a process.
    for (layer, class) in [("file", "sync"), ("dfs", "fsync"), ("app", "sync"), ("app-dfs", "sync")] {
        assert_eq!(moved(&record, row(&record, layer, WRITES), 0, class).0, 2, "{layer}");
    }
    let chains = record["stack"]["verdict"]["chains"].as_array().unwrap();
    let starts: Vec<&str> = chains.iter().map(|chain| chain.as_str().unwrap()).collect();
    assert!(starts[0].starts_with("vpic checkpoint: app ") && starts[1].starts_with("vpic restart: app "));
    for part in [" under file", "; app-dfs ", " under dfs ", " under object", "; app-object "] {
        assert!(starts.iter().all(|chain| chain.contains(part)), "{starts:?}");
    }
    shown_everywhere(&scratch);
}

/// The screen, all of it, the page, and a comparison, from the record of the run.
fn shown_everywhere(scratch: &Scratch) {
    let report = scratch.run("report results/record.json");
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let kept = fs::read_to_string(scratch.join("results/report.txt")).unwrap();
    let lines: Vec<&str> = report.stdout.lines().collect();
    assert!(lines.len() <= 35, "{}", report.stdout);
    let headers = ["checkpoint, write 256 KiB x 2", "restart, read 256 KiB x 2"];
    let header = lines.iter().find(|line| line.starts_with("vpic")).unwrap();
    assert!(headers.iter().all(|words| header.contains(words)), "{header}");
    for layer in ["app ", "app-dfs ", "app-object "] {
        assert!(lines.iter().any(|line| line.starts_with(layer)), "{}", report.stdout);
    }
    assert!(report.stdout.contains("chain     vpic checkpoint: app "), "{}", report.stdout);
    let full = scratch.run("report results/record.json --full").stdout;
    for text in [&full, &kept] {
        assert!(text.contains(WRITES) && text.contains(READS) && text.contains("app-object"), "{text}");
    }
    let page = scratch.run("report results/record.json --html page.html");
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    let html = fs::read_to_string(scratch.join("page.html")).unwrap();
    assert!(
        html.contains(&format!("{WRITES}: rate of each layer")) && html.contains("vpic checkpoint: app ")
    );
    let csv = fs::read_to_string(scratch.join("results/table.csv")).unwrap();
    assert!(csv.contains("app-dfs: vpic checkpoint"), "{csv}");
    fs::copy(scratch.join("results/record.json"), scratch.join("other.json")).unwrap();
    let compared = scratch.run("compare results/record.json other.json");
    assert!(compared.stdout.contains("app: vpic restart"), "{}{}", compared.stdout, compared.stderr);
}

#[test]
fn stages_that_mix_directions_are_measured_and_compared_with_nothing() {
    let scratch = Scratch::new();
    let sets = "--app fdb-hammer --app-set pattern=B,steps=1,levels=1,size=64KiB,writers=1,readers=1";
    let ended = scratch.run(&format!("{QUICK} {sets}"));
    assert_eq!(ended.code, Some(2), "nothing is left to compare: {}", ended.stderr);
    assert!(ended.stderr.contains("every stage of fdb-hammer both reads and writes"), "{}", ended.stderr);
    fs::write(
        scratch.join("mixed.toml"),
        "format = 1\nname = 'mixed'\nversion = '1'\nsummary = 'writes, then both'\n\
         [[set]]\nname = 'data'\nkind = 'array'\nlayout = 'process'\nsize = '64KiB'\n\
         [[set]]\nname = 'more'\nkind = 'array'\nlayout = 'process'\nsize = '64KiB'\n\
         [[group]]\nname = 'w'\nstage = 'first'\nprocesses = 1\niterations = 1\n\
         [[group.step]]\nname = 'x'\nitems = 4\nbegin = ['create data']\neach = ['write data']\nend = ['close data']\n\
         [[group]]\nname = 'm'\nstage = 'both'\nprocesses = 1\niterations = 1\n\
         [[group.step]]\nname = 'y'\nitems = 4\nbegin = ['create more']\neach = ['write more']\nend = ['close more']\n\
         [[group]]\nname = 'r'\nstage = 'both'\nprocesses = 1\niterations = 1\n\
         [[group.step]]\nname = 'z'\nof = 'w.x'\nbegin = ['open data']\neach = ['read data']\nend = ['close data']\n",
    )
    .unwrap();
    let ended = scratch.run(&format!("{QUICK} --app ./mixed.toml --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let mixed = row(&record, "app", "mixed both");
    assert_eq!(mixed["uncompared"], "it writes and reads at the same time");
    assert_eq!((mixed["passes"].as_array().unwrap().len(), &mixed["stands_on"]), (2, &Value::Array(vec![])));
    assert_eq!(row(&record, "app", "mixed first, write 64 KiB x 1")["stands_on"][0]["layer"], "file");
    let warned = scratch.run("report record.json --warnings").stdout;
    assert!(warned.contains("mixed both has no comparison: it writes and reads"), "{warned}");
}

#[test]
fn what_an_application_cannot_be_is_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    fs::write(scratch.join("broken.toml"), "format = 1\ncolour = 'red'\n").unwrap();
    for (words, expected) in [
        ("--app vpik", "vpic (the closest match)"),
        ("--app ./none.toml", "cannot read the description"),
        ("--app ./broken.toml", "the fields of docs/applications.md"),
        ("--app vpic --app-set", "--app-set"),
        ("--app vpic --app-set ranks", "NAME=VALUE"),
        ("--app vpic --app-set rank=2", "vpic has no parameter rank"),
        ("--app vpic --app-set ranks=0", "ranks"),
        ("--app vpic --app-set particles=many", "not a number"),
        ("--app vpic --app-set particles=1G", "writes 64 GiB per pass"),
        ("--app vpic --app-options colour=red", "use one of direct"),
        ("--app vpic --app-options durability=never,direct", "NAME=VALUE"),
        ("--app vpic --app-set particles=100001 --app-options direct=true", "multiples of 4096 bytes"),
        ("--app dlio --app-set accelerators=max", "one number of accelerators"),
        ("--app-set ranks=2", "add --app NAME"),
        ("--app-options direct=true", "add --app NAME"),
    ] {
        let ended = scratch.run(&format!("{QUICK} {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
        assert_eq!(scratch.names(), ["broken.toml"], "{words}");
    }
}

#[test]
fn a_row_that_a_store_cannot_carry_is_missing_and_says_why() {
    let scratch = Scratch::new();
    let words =
        "--app checkpoint --app-set size=1MiB,transfer=256KiB --app-options direct=true,durability=batch";
    let ended = scratch.run(&format!("{QUICK} {words} --json record.json --warnings"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("missing   app-object: plan: vos does not support rename"),
        "{}",
        ended.stdout
    );
    assert_eq!(
        ended.stdout.matches("does not support rename").count(),
        1,
        "once for both stages: {}",
        ended.stdout
    );
    let record = read_record(&scratch.join("record.json"));
    let load = "checkpoint checkpoint, write 256 KiB x 2";
    assert_eq!(row(&record, "app", load)["stands_on"][0]["layer"], "media", "past the page cache");
    assert_eq!(row(&record, "app-dfs", load)["stands_on"][0]["layer"], "dfs");
}

#[test]
fn an_interrupt_in_the_application_leaves_nothing() {
    for (words, moment) in [("vpic", "app: vpic checkpoint"), ("vpic", "app-dfs: vpic checkpoint")] {
        let scratch = Scratch::new();
        let sets = format!("--app {words} --app-set compute=200ms,steps=2,particles=65536");
        let mut running = scratch.start(&format!("{QUICK} {sets} --live-csv - --out results"));
        running.await_row(moment);
        running.signal(Signal::INT);
        let ended = running.end();
        assert_eq!(ended.code, Some(1), "{moment}: {}", ended.stderr);
        assert_eq!(scratch.names(), ["results"], "{moment}: left something behind");
        let record = read_record(&scratch.join("results/record.json"));
        assert_eq!((&record["status"], &record["failure"]), (&"partial".into(), &"interrupted".into()));
    }
}

#[test]
fn a_kill_in_the_application_leaves_what_clean_removes() {
    let scratch = Scratch::new();
    let sets = "--app vpic --app-set compute=200ms,steps=2,particles=65536";
    let running = scratch.start(&format!("{QUICK} {sets}"));
    running.await_that(|| scratch.names().iter().any(|name| name.starts_with("strata-app-")));
    running.signal(Signal::KILL);
    running.end();
    for _ in 0..100 {
        // The engine ends when it sees that nobody is there any more, and has its pool open until then; then its own containers are gone with it.
        let ended = scratch.run("clean --yes");
        let told = ["the pool is open already", "cannot connect"];
        assert!(ended.code == Some(0) || told.iter().any(|told| ended.stderr.contains(told)), "{ended:?}");
        if scratch.names().is_empty() {
            return;
        }
    }
    panic!("left: {:?}", scratch.names());
}
