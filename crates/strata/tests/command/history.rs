//! `strata history`: runs that are kept over time, shown, and checked against those before them.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use roxmltree::Document;
use serde_json::Value;
use testkit::SlowFile;

use crate::loads::is_available;
use crate::support::{Ended, Mounted, NO_ROOT, Scratch, names_in, read_record, skipped};

const LOAD: &str = "media null: --op nop -t 1 --time 60ms --live none --json";

fn refused(ended: &Ended, cause: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{cause}: {}", ended.stderr);
    assert!(ended.stderr.contains(cause) && ended.stderr.lines().count() == 1, "{cause}: {}", ended.stderr);
}

fn good(ended: &Ended) -> &str {
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    &ended.stdout
}

/// Runs the load as `NAME.json`.
fn measured(scratch: &Scratch, name: &str) {
    let ended = scratch.run(&format!("{LOAD} {name}.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// A copy of a record with another run, day, and rate as a multiple of its own.
fn changed(scratch: &Scratch, name: &str, day: u32, times: f64) {
    let mut record = read_record(&scratch.join("one.json"));
    record["run_id"] = format!("{day:016x}").into();
    record["started_at"] = format!("2026-10-{day:02}T03:00:00.000Z").into();
    let summary = &mut record["phases"][0]["summary"];
    let scale = |value: &mut Value| *value = (value.as_f64().unwrap() * times).into();
    scale(&mut summary["total"]["operations_per_second"]);
    scale(&mut summary["classes"][0]["operations_per_second"]);
    fs::write(scratch.join(&format!("{name}.json")), record.to_string()).unwrap();
}

/// A history of ten days whose rates vary by 2 %, made of one run of the load.
fn ten_days() -> Scratch {
    let scratch = Scratch::new();
    measured(&scratch, "one");
    let times = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.01, 0.99, 1.005, 0.995];
    for (at, times) in times.iter().enumerate() {
        changed(&scratch, &format!("day-{at}"), at as u32 + 1, *times);
    }
    let words: Vec<String> = (0..10).map(|at| format!("day-{at}.json")).collect();
    let added = scratch.run(&format!("history add runs {}", words.join(" ")));
    assert_eq!(good(&added).lines().count(), 10, "{}", added.stdout);
    scratch
}

#[test]
fn runs_are_kept_shown_and_checked() {
    let scratch = ten_days();
    let names = names_in(&scratch.join("runs"));
    assert!(names.len() == 11 && names[10] == "history.sqlite", "{names:?}");
    assert_eq!(names[3], "20261004T030000Z-0000000000000004.json.gz");
    let shown = scratch.run("history show runs");
    let text = good(&shown);
    for words in ["10 runs in 1 series", "10 runs, 2026-10-01 to 2026-10-10", "in range", "no-ops"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // A record of the history is a record: packed as it is, others read it.
    let reported = scratch.run("report runs/20261004T030000Z-0000000000000004.json.gz");
    assert!(good(&reported).contains("nop"), "{}", reported.stdout);
    let checked = scratch.run("history check runs");
    assert!(good(&checked).contains("no difference detected"), "{}", checked.stdout);
    assert!(checked.stdout.contains("the 9 runs before: 9 records"), "{}", checked.stdout);
    // A tenth slower is far outside of 2 %.
    changed(&scratch, "slow", 20, 0.9);
    let slow = scratch.run("history check runs slow.json --fail-if slower:5%");
    assert_eq!(slow.code, Some(1), "{}", slow.stdout);
    assert!(slow.stdout.contains("nop: the newest run is slower: rate -10.0%"), "{}", slow.stdout);
    assert!(slow.stderr.contains("--fail-if slower:5%: nop: rate -10.0%"), "{}", slow.stderr);
    assert_eq!(scratch.run("history check runs slow.json --fail-if slower:20%").code, Some(0));
    assert_eq!(scratch.run("history check runs slow.json --fail-if p99-slower:5%").code, Some(0));
    // It was not added by that. Once it is, it is the newest.
    assert_eq!(names_in(&scratch.join("runs")).len(), 11);
    good(&scratch.run("history add runs slow.json"));
    assert!(good(&scratch.run("history add runs slow.json")).contains("is there already"));
    assert_eq!(scratch.run("history check runs").code, Some(1));
    assert!(good(&scratch.run("history show runs")).contains("slower"));
    // With the runs since then alone, there is nothing to compare it with.
    let since = scratch.run("history check runs --since 2026-10-15");
    assert!(good(&since).contains("the first run of its series"), "{}", since.stdout);
    let few = scratch.run("history check runs --since 2026-10-08T00:00:00Z --fail-if slower:50%");
    assert!(good(&few).contains("only 3 runs before it"), "{}", few.stdout);
}

#[test]
fn forms_for_people_and_machines() {
    let scratch = ten_days();
    changed(&scratch, "slow", 20, 0.9);
    good(&scratch.run("history add runs slow.json"));
    good(&scratch.run("history show runs --html page.html --csv values.csv --json history.json"));
    let page = fs::read_to_string(scratch.join("page.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("expected (95%)") && page.contains("outside"), "{page}");
    let csv = fs::read_to_string(scratch.join("values.csv")).unwrap();
    assert_eq!(csv.lines().count(), 12, "{csv}");
    let holds = |of: &str, text: &str| {
        let schema = serde_json::from_str(good(&scratch.run(&format!("schema {of}")))).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let wrong: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{of}: {wrong:#?}");
        value
    };
    let history = holds("history", &fs::read_to_string(scratch.join("history.json")).unwrap());
    assert_eq!(history["series"][0]["runs"].as_array().unwrap().len(), 11);
    // The metric that is shown may be any.
    let means = scratch.run("history show runs --metric mean --csv -");
    assert!(good(&means).lines().nth(1).unwrap().contains(",mean,"), "{}", means.stdout);
    let ended = scratch
        .run("history check runs --html check.html --markdown check.md --junit junit.xml --json check.json");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let read = |name: &str| fs::read_to_string(scratch.join(name)).unwrap();
    let check = holds("history-check", &read("check.json"));
    assert_eq!(check["comparisons"][0]["method"], "history");
    assert!(read("check.html").contains("the newest run is slower"));
    assert!(read("check.md").starts_with("### strata history check: "), "{}", read("check.md"));
    let junit = read("junit.xml");
    let document = Document::parse(&junit).unwrap();
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("1"), Some("1")), "{junit}");
    let printed = scratch.run("history check runs --junit -");
    assert_eq!(printed.stdout, junit);
}

#[test]
fn series_have_names_of_hosts_or_of_users() {
    let scratch = ten_days();
    good(&scratch.run("history add runs one.json --series nightly"));
    assert!(scratch.join("runs/nightly").is_dir());
    let shown = scratch.run("history show runs");
    assert!(good(&shown).contains("11 runs in 2 series"), "{}", shown.stdout);
    let own = scratch.run("history show runs --series nightly");
    assert!(good(&own).contains("1 run in 1 series"), "{}", own.stdout);
    let other = scratch.run("history show runs --series monthly");
    refused(&other, "no run belongs to the series \"monthly\"");
    assert!(other.stderr.contains("\"nightly\""), "{}", other.stderr);
    // Another load is a series of its own: the first of it has nothing before it.
    let deeper = scratch.run(&format!("{} deeper.json", LOAD.replace("-t 1", "-t 2")));
    assert_eq!(deeper.code, Some(0), "{}", deeper.stderr);
    let first = scratch.run("history check runs deeper.json");
    assert!(good(&first).contains("the first run of its series"), "{}", first.stdout);
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let scratch = ten_days();
    fs::create_dir(scratch.join("empty")).unwrap();
    fs::write(scratch.join("notes.json"), "{\"a\": 1}").unwrap();
    fs::write(scratch.join("cut.json"), &fs::read(scratch.join("one.json")).unwrap()[..900]).unwrap();
    let mut partial = read_record(&scratch.join("one.json"));
    partial["status"] = "partial".into();
    partial["failure"] = "interrupted".into();
    fs::write(scratch.join("partial.json"), partial.to_string()).unwrap();
    for (words, cause) in [
        ("history show missing", "the directory does not exist"),
        ("history show empty", "there are no records in this directory"),
        ("history check empty", "there are no records in this directory"),
        ("history add runs missing.json", "cannot read the file"),
        ("history add runs notes.json", "not a record of strata"),
        ("history add runs cut.json", "not a record of strata"),
        ("history add runs partial.json", "the run is not complete: interrupted"),
        ("history check runs partial.json", "the run is not complete: interrupted"),
        ("history add runs empty", "no record in this directory"),
        ("history add runs one.json --series ../up", "is not a name for a series"),
        ("history add one.json one.json", "cannot make the directory"),
        ("history show runs --metric p42", "\"p42\" is not a metric"),
        ("history show runs --last 1", "number of runs"),
        ("history show runs --since yesterday", "\"yesterday\" is not a date"),
        ("history show runs --since 2026-12-31", "no run began after this date"),
        ("history show runs --phase write", "no phase has \"write\" in its name"),
        ("history show runs --html - --csv -", "only one form of the result can go to standard output"),
        (
            "history show runs --html runs/history.sqlite",
            "this is a target, another output or a block device",
        ),
        ("history check runs one.json --json one.json", "this is a target, another output or a block device"),
        ("history check runs --fail-if slower", "is not a limit"),
        ("history check runs --html nowhere/page.html", "cannot write"),
    ] {
        refused(&scratch.run(words), cause);
    }
    // Of several records none is added where one is bad.
    refused(&scratch.run("history add more one.json partial.json"), "not complete");
    assert!(!scratch.join("more").exists());
    assert_eq!(scratch.names().iter().filter(|name| name.contains("part.")).count(), 0);
    assert_eq!(names_in(&scratch.join("empty")), [""; 0]);
}

#[test]
fn a_full_disk_loses_nothing() {
    let scratch = ten_days();
    let Some(small) = Mounted::tmpfs("64k") else {
        return skipped("a_full_disk_loses_nothing", NO_ROOT);
    };
    let place = small.path().join("runs");
    let words: Vec<String> = (0..10).map(|at| format!("day-{at}.json")).collect();
    let add = |name: &str| scratch.run(&format!("history add {} {name}", place.display()));
    let ended: Vec<Ended> = words.iter().map(|name| add(name)).collect();
    let last = ended.last().unwrap();
    assert_eq!(last.code, Some(1), "64 KiB do not hold ten records: {}", last.stdout);
    assert_eq!(last.stderr.lines().count(), 1, "{}", last.stderr);
    let added = ended.iter().filter(|ended| ended.code == Some(0)).count();
    let whole = names_in(&place).into_iter().filter(|name| name.ends_with(".json.gz")).count();
    assert!(whole >= added, "{added} were added, {whole} are there");
    assert!(names_in(&place).iter().all(|name| !name.contains("part")), "{:?}", names_in(&place));
    // What is there can be shown: with an index in memory where there is no room for one.
    if whole > 0 {
        let shown = scratch.run(&format!("history show {}", place.display()));
        let runs = format!("{whole} run");
        assert!(shown.code == Some(0) && shown.stdout.contains(&runs), "{} {}", shown.stdout, shown.stderr);
    }
}

/// Service time of the file, microseconds.
static SERVICE_US: AtomicU64 = AtomicU64::new(1000);

#[test]
fn a_drive_that_has_become_slower_is_found() {
    let scratch = Scratch::new();
    let name = "a_drive_that_has_become_slower_is_found";
    if !is_available(&scratch, "io_uring") {
        return skipped(name, "io_uring is not available");
    }
    fs::create_dir(scratch.join("mount")).unwrap();
    let service = |_: &_| Duration::from_micros(SERVICE_US.load(Ordering::Relaxed));
    let _file = match SlowFile::mount(&scratch.join("mount"), 16 << 20, 1, service) {
        Ok(file) => file,
        Err(error) => return skipped(name, &format!("FUSE cannot be mounted here: {error}")),
    };
    let run = |name: &str| {
        let words = "media mount/data --op randread --direct --time 400ms --live none --json";
        let ended = scratch.run(&format!("{words} {name}.json"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    };
    for at in 0..6 {
        run(&format!("night-{at}"));
        good(&scratch.run(&format!("history add runs night-{at}.json")));
    }
    run("same");
    // One in twenty equal runs is outside of its range: by less than the limit.
    let same = scratch.run("history check runs same.json --fail-if slower:30%");
    assert_eq!(same.code, Some(0), "{}\n{}", same.stdout, same.stderr);
    SERVICE_US.store(4000, Ordering::Relaxed);
    run("slow");
    let slow = scratch.run("history check runs slow.json --fail-if slower:30%");
    assert_eq!(slow.code, Some(1), "a quarter of the rate: {}\n{}", slow.stdout, slow.stderr);
    assert!(slow.stdout.contains("randread: the newest run is slower: rate -"), "{}", slow.stdout);
}
