//! `strata compare`: records against records, and sides that are run in turns.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, Scratch, read_record};

const SMALL: &str = "media mem: --op randread -b 512 --size 16m --time 200ms";
const LARGE: &str = "media mem: --op randread -b 256k --size 16m --time 200ms";

/// A comparison by its text; it holds to the schema that the command prints.
fn parse(text: &str) -> Value {
    let schema = Scratch::new().run("schema comparison").stdout;
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let comparison: Value = serde_json::from_str(text).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&comparison).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "not by the schema: {wrong:#?}");
    comparison
}

/// The total's figure of this name in the first phase.
fn figure<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let figures = comparison["phases"][0]["classes"][0]["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["figure"] == name).unwrap()
}

fn refused(ended: &Ended, cause: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{cause}: {}", ended.stderr);
    assert!(ended.stderr.contains(cause) && ended.stderr.lines().count() == 1, "{cause}: {}", ended.stderr);
}

#[test]
fn a_record_does_not_differ_from_itself() {
    let scratch = Scratch::new();
    // On a machine that is too busy for an interval of the median it is begun again, and runs longer.
    let has_interval = |record: &Value| {
        let class = &record["phases"][0]["summary"]["classes"][0];
        assert_eq!(class["class"], "read");
        !class["latency"]["p50_interval_ns"].is_null()
    };
    let words = |time_ms: u64| format!("media null: --op randread,randwrite --time {time_ms}ms --seed 5");
    let is_measured = (0..6).any(|again| has_interval(&scratch.measured(&words(200 << again))));
    assert!(is_measured, "no interval of the median in 6 s");
    let ended = scratch.run("compare record.json record.json --fail-if slower:0% --json comparison.json");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let claims = ["B is faster", "B is slower"].map(|claim| ended.stdout.contains(claim));
    assert_eq!(claims, [false, false], "{}", ended.stdout);
    assert!(ended.stdout.contains("1 run is on both sides"), "{}", ended.stdout);
    let comparison = parse(&fs::read_to_string(scratch.join("comparison.json")).unwrap());
    assert_eq!(comparison["method"], "single_runs");
    let names: Vec<_> =
        comparison["phases"].as_array().unwrap().iter().map(|phase| phase["name"].clone()).collect();
    assert_eq!(names, ["randread", "randwrite"]);
    // On a busy machine the rate of so short a run may vary too much for an interval; its percentiles have one.
    assert_eq!(figure(&comparison, "rate")["a"], figure(&comparison, "rate")["b"]);
    assert_eq!(figure(&comparison, "p50")["difference"]["percent"], 0.0);
    assert_eq!(figure(&comparison, "p50")["verdict"], "no_difference");
    assert_eq!(figure(&comparison, "cpu")["verdict"], "too_little");
    // Doubts go along: this build is a slow one.
    assert!(ended.stdout.contains("debug_build") == cfg!(debug_assertions), "{}", ended.stdout);
}

#[test]
fn sides_run_in_turns() {
    let scratch = Scratch::new();
    let words =
        ["compare", "--repeat", "3", SMALL, LARGE, "--out", "results", "--live", "none", "--json", "-"];
    let ended = scratch.run_words(&words);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let comparison = parse(&ended.stdout);
    assert_eq!(comparison["method"], "pairs");
    // 512 times as many bytes: more of them a second, and each operation takes longer.
    assert_eq!(figure(&comparison, "bandwidth")["verdict"], "faster");
    assert_eq!(figure(&comparison, "p50")["verdict"], "slower");
    assert_eq!(figure(&comparison, "cpu")["verdict"], "slower");
    let differs = comparison["phases"][0]["differs"].as_array().unwrap();
    let block = differs.iter().find(|field| field["field"] == "block_size").unwrap();
    assert_eq!((&block["a"][0], &block["b"][0]), (&"512".into(), &"256KiB".into()));
    let names = crate::support::names_in(&scratch.join("results"));
    assert_eq!(
        names,
        [
            "a-1.json",
            "a-2.json",
            "a-3.json",
            "b-1.json",
            "b-2.json",
            "b-3.json",
            "comparison.json",
            "comparison.txt"
        ]
    );
    let record = |name: &str| read_record(&scratch.join(&format!("results/{name}.json")));
    let (a, b) = (["a-1", "a-2", "a-3"].map(record), ["b-1", "b-2", "b-3"].map(record));
    let began = |record: &Value| record["started_at"].as_str().unwrap().to_owned();
    let order = [&a[0], &b[0], &b[1], &a[1], &b[2], &a[2]].map(began);
    assert!(order.is_sorted(), "{order:?}");
    // A pair does the same operations, another pair others.
    assert!(a[0]["seed"] == b[0]["seed"] && a[0]["seed"] != a[1]["seed"]);
    assert_eq!(a[0]["command_line"][2], "mem:");
    assert_eq!(fs::read_to_string(scratch.join("results/comparison.json")).unwrap(), ended.stdout);
    // The records can be compared again, as files and as directories.
    fs::create_dir(scratch.join("a")).unwrap();
    for name in ["a-1.json", "a-2.json", "a-3.json"] {
        fs::rename(scratch.join("results").join(name), scratch.join("a").join(name)).unwrap();
    }
    let again = scratch.run("compare a results --force --json -");
    assert_eq!(parse(&again.stdout)["method"], "repeats", "{}", again.stderr);
    let listed =
        scratch.run("compare a/a-1.json,a/a-2.json results/b-1.json,results/b-2.json --force --json -");
    assert_eq!(parse(&listed.stdout)["a"]["records"].as_array().unwrap().len(), 2, "{}", listed.stderr);
}

#[test]
fn records_of_other_loads_need_force() {
    let scratch = Scratch::new();
    let keep = |name: &str, words: &str| {
        scratch.measured(words);
        fs::rename(scratch.join("record.json"), scratch.join(name)).unwrap();
    };
    fs::write(scratch.join("file"), [7_u8; 65536]).unwrap();
    fs::write(scratch.join("other"), [7_u8; 65536]).unwrap();
    keep("a", "media file --op randread -b 4k --count 200 --name load");
    let others = [
        ("media file --op randread -b 8k --count 200 --name load", "block_size: 4KiB → 8KiB"),
        ("media file --op read -b 4k --count 200 --name load", "operation: rand_read → read"),
        ("media file --op randread -b 4k --count 200 -t 2 --name load", "load.threads: 1 → 2"),
        ("media file --op randread -b 4k --count 200 -q 2 --name load", "load.depth: 1 → 2"),
        ("media file --op randread -b 4k --count 200 --engine mmap --name load", "engine: psync → mmap"),
        ("media null: --op randread -b 4k --count 200 --name load", "targets.0.kind: file → null"),
    ];
    for (words, cause) in others {
        keep("b", words);
        refused(&scratch.run("compare a b --json c.json"), cause);
        refused(&scratch.run("compare a b"), "--force");
        assert!(!scratch.join("c.json").exists() || fs::read(scratch.join("c.json")).unwrap().is_empty());
        let forced = scratch.run("compare a b --force");
        assert_eq!(forced.code, Some(0), "{words}: {}", forced.stderr);
        assert!(forced.stdout.contains(cause), "{words}: {}", forced.stdout);
    }
    // Another place, length, seed or number of operations is the same load.
    for words in [
        "media other --op randread -b 4k --count 300 --seed 3 --name load",
        "media file --op randread -b 4k --time 20ms --cores 0 --warmup none --name load",
    ] {
        keep("b", words);
        let same = scratch.run("compare a b");
        assert_eq!(same.code, Some(0), "{words}: {}", same.stderr);
    }
    refused(&scratch.run("compare --repeat 2 --force job.toml job.toml"), "--force applies to records only");
}

#[test]
fn a_comparison_is_written_as_page_markdown_and_junit() {
    let scratch = Scratch::new();
    for (name, words) in [("a.json", "--bs 4k"), ("b.json", "--bs 4k --seed 9")] {
        let words = words.replace("--bs", "-b");
        assert_eq!(
            scratch
                .run(&format!("media mem: --op randread {words} --size 16m --time 200ms --json {name}"))
                .code,
            Some(0)
        );
    }
    let ended = scratch.run(
        "compare a.json b.json --fail-if slower:1000% --html page.html --markdown summary.md --junit junit.xml",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("verdict"), "the table is shown too");
    let text = |name: &str| fs::read_to_string(scratch.join(name)).unwrap();
    assert!(
        text("page.html").starts_with("<!DOCTYPE html>") && text("page.html").contains("class=\"whisker\"")
    );
    assert!(text("summary.md").contains("| metric | A | B |"), "{}", text("summary.md"));
    assert!(
        text("junit.xml").contains("<testsuite name=\"strata compare --fail-if slower:1000%\" tests=\"1\"")
    );
    let printed = scratch.run("compare a.json b.json --markdown -");
    assert!(printed.stdout.starts_with("### strata compare\n"), "{}", printed.stdout);
    refused(
        &scratch.run("compare a.json b.json --markdown - --junit -"),
        "only one form of the result can go to standard output",
    );
    refused(&scratch.run("compare a.json b.json --html a.json"), "this is a target, another output");
    refused(&scratch.run("compare a.json b.json --html x --junit x"), "this is a target, another output");
    let full = scratch.run("compare a.json b.json --html /dev/full");
    assert_eq!(full.code, Some(1), "{}", full.stderr);
}

#[test]
fn a_limit_that_is_passed_fails() {
    let scratch = Scratch::new();
    let turns = |limit: &str| {
        let words = ["compare", "--repeat", "3", SMALL, LARGE, "--live", "none", "--fail-if", limit];
        scratch.run_words(&words)
    };
    let slower = turns("p50-slower:5%");
    assert_eq!(slower.code, Some(1), "{}", slower.stdout);
    assert!(slower.stderr.contains("--fail-if p50-slower:5%: randread: p50 +"), "{}", slower.stderr);
    assert!(slower.stdout.contains("failed"), "{}", slower.stdout);
    // The bandwidth decides: it is higher.
    assert_eq!(turns("slower:5%").code, Some(0));
    // Certainly slower, but not by a million times.
    assert_eq!(turns("p50-slower:100000000%").code, Some(0));
    // Slower is no failure where nobody asked.
    let plain = scratch.run_words(&["compare", "--repeat", "2", LARGE, SMALL, "--live", "none"]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
}

#[test]
fn job_files_are_sides() {
    let scratch = Scratch::new();
    let job = "targets = ['null:']\ncount = 2000\n[[phase]]\nop = 'randread'\n[[phase]]\nop = 'randwrite'\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    let side = "run job.toml";
    let ended =
        scratch.run_words(&["compare", "job.toml", side, "--repeat", "2", "--json", "-", "--seed", "9"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let comparison = parse(&ended.stdout);
    assert_eq!(comparison["phases"].as_array().unwrap().len(), 2);
    assert_eq!(comparison["phases"][0]["differs"].as_array().unwrap().len(), 0);
    assert!(ended.stderr.contains("b-2 of 2"), "{}", ended.stderr);
    // Quotes hold a word together.
    fs::write(scratch.join("a file"), [7_u8; 65536]).unwrap();
    let quoted = "strata media 'a file' --op read -b 4k";
    let ended = scratch.run_words(&["compare", quoted, quoted, "--repeat", "1", "--json", "-"]);
    assert_eq!(parse(&ended.stdout)["method"], "single_runs", "{}", ended.stderr);
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let scratch = Scratch::new();
    let long = "media file -s 1m --op randread --time 60s";
    let words = ["compare", "--repeat", "3", SMALL, long, "--out", "results"];
    // The second run writes its file before it reads: a signal finds it at work.
    let running = scratch.start_words(&words);
    running.await_file(&scratch.join("file"));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("b-1") && last.contains("too little data to compare"), "{last}");
    assert!(!scratch.join("file").exists(), "left something behind");
    assert_eq!(read_record(&scratch.join("results/b-1.json"))["status"], "partial");
    assert_eq!(read_record(&scratch.join("results/a-1.json"))["status"], "complete");
}

#[test]
fn bad_sides_are_refused() {
    let scratch = Scratch::new();
    scratch.measured("media null: --op nop --count 100");
    fs::write(scratch.join("not.json"), "{\"a\": 1}").unwrap();
    fs::write(scratch.join("job.toml"), "targets = ['null:']\nop = 'nop'\ncount = 10\n").unwrap();
    fs::create_dir(scratch.join("empty")).unwrap();
    let cases = [
        ("compare record.json", "<B>"),
        ("compare record.json none.json", "cannot read the file"),
        ("compare record.json not.json", "not a record"),
        ("compare record.json,not.json record.json", "not a record"),
        ("compare empty record.json", "no record in this directory"),
        ("compare record.json job.toml", "--repeat N"),
        ("compare record.json record.json --seed 1", "give --repeat N"),
        ("compare record.json record.json --live none", "give --repeat N"),
        ("compare record.json record.json --fail-if faster:5%", "p99-slower:10%"),
        ("compare record.json record.json --fail-if slower:5% --fail-if slower", "p99-slower:10%"),
        ("compare record.json record.json --json record.json", "another output"),
        ("compare --repeat 0 job.toml job.toml", "1 to 1000"),
        ("compare --repeat -1 job.toml job.toml", "1 to 1000"),
        ("compare --repeat 2 job.toml record.json", "a job file (.toml) or a quoted command line"),
        ("compare --repeat 2 job.toml none.toml", "cannot read the file"),
        ("compare --repeat 2 job.toml list", "a job file (.toml) or a quoted command line"),
    ];
    for (words, cause) in cases {
        refused(&scratch.run(words), cause);
    }
    let sides = [
        ("media null: --op 'nop", "open quote"),
        ("media null: --op wrong", "randread"),
        ("media null:", "no operation"),
        ("media null: --op nop --json x.json", "applies to the comparison"),
        ("media none --op read", "none"),
        ("stack --quick", "a job file (.toml) or a quoted command line"),
        ("media --help", "a job file (.toml) or a quoted command line"),
        ("", "a job file (.toml) or a quoted command line"),
    ];
    for (side, cause) in sides {
        let ended = scratch.run_words(&["compare", "--repeat", "2", "media null: --op nop --count 10", side]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{side}: {}", ended.stderr);
        assert!(ended.stderr.contains(cause), "{side}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{side}: nothing may run: {}", ended.stderr);
    }
    scratch.run_words(&["compare", "media null: --op nop", "record.json"]);
    assert_eq!(scratch.names(), ["empty", "job.toml", "not.json", "record.json"]);
}

#[test]
fn command_lines_of_other_tools_are_sides() {
    let scratch = Scratch::new();
    fs::write(scratch.join("job.fio"), "[reads]\nfilename=data\nsize=1m\nrw=randread\nnumber_ios=50\n")
        .unwrap();
    let (fio, elbencho) = ("as fio job.fio", "as elbencho -r -t 1 -s 1m -b 64k data");
    assert_eq!(scratch.run(fio).code, Some(0));
    let words = ["compare", "--repeat", "2", fio, fio, "--live", "none", "--json", "-", "--out", "results"];
    let ended = scratch.run_words(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Nothing of the other tool's output stands before or after.
    let comparison = parse(&ended.stdout);
    assert_eq!((&comparison["method"], &comparison["phases"][0]["name"]), (&"pairs".into(), &"reads".into()));
    let record = read_record(&scratch.join("results/b-2.json"));
    assert_eq!(record["command_line"], serde_json::json!(["strata", "as", "fio", "job.fio"]));
    assert_eq!(record["phases"][0]["summary"]["total"]["operations"], 50);
    let mixed = scratch.run_words(&["compare", "--repeat", "1", "media data --op read -b 64k", elbencho]);
    assert!(mixed.stderr.contains("nothing to compare"), "{}", mixed.stderr);
    let cases = [
        ("as fio --version", "cannot be run"),
        ("as fio job.fio --no-such", "no-such"),
        ("as --json x.json fio job.fio", "applies to the comparison"),
        ("as nothing job.fio", "one of fio"),
        ("as", "<NAME"),
    ];
    for (side, cause) in cases {
        let ended = scratch.run_words(&["compare", "--repeat", "2", fio, side]);
        refused(&ended, cause);
    }
}
