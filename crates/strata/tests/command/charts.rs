//! `strata report` of one record and of several: tables, CSV, charts, and places that cannot be written.

use std::fs;
use std::process::Command;

use crate::support::{Mounted, NO_ROOT, Scratch, names_in};

/// Two records, a and b, of the same short phase.
fn two_records() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a", "b"] {
        let ended = scratch.run(&format!("media null: --op randrw --count 2000 --json {name}.json"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    scratch
}

#[test]
fn several_records_follow_each_other() {
    let scratch = two_records();
    let (first, second) = (scratch.run("report a.json").stdout, scratch.run("report b.json").stdout);
    assert_eq!(scratch.run("report a.json b.json").stdout, format!("a:\n{first}\nb:\n{second}"));
    let rows = |words: &str| scratch.run(words).stdout.lines().map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = (rows("report --csv a.json"), rows("report --csv b.json"));
    assert_eq!(rows("report --csv a.json b.json"), [&first[..], &second[1..]].concat());
}

#[test]
fn charts_are_written_under_speaking_names() {
    let scratch = two_records();
    let ended = scratch.run("report a.json b.json --svg images/vector --png images/pixels --html page.html");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let vector = names_in(&scratch.join("images/vector"));
    for kind in ["randrw-histogram.svg", "randrw-percentiles.svg"] {
        assert!(vector.iter().any(|name| name.ends_with(kind)), "{kind}: {vector:?}");
    }
    let pixels = names_in(&scratch.join("images/pixels"));
    assert_eq!(pixels.len(), vector.len());
    assert_eq!(ended.stdout.lines().count(), 2 * vector.len() + 1);
    assert!(ended.stdout.ends_with("\npage.html\n"), "{}", ended.stdout);
    for name in &pixels {
        let image = fs::read(scratch.join("images/pixels").join(name)).unwrap();
        assert_eq!(&image[..8], b"\x89PNG\r\n\x1a\n", "{name}");
    }
    let page = fs::read_to_string(scratch.join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.matches("<svg").count() == vector.len());
    assert!(page.contains(">a</text>") && page.contains(">b</text>"), "the legend names both");
    let printed = scratch.run("report a.json b.json --html -");
    assert_eq!((printed.code, printed.stdout == page), (Some(0), true));
}

#[test]
fn names_in_records_stay_text() {
    let scratch = Scratch::new();
    let words = [
        "media",
        "null:",
        "--op",
        "randread",
        "--count",
        "2000",
        "--name",
        "<script>&\"",
        "--json",
        "x.json",
    ];
    assert_eq!(scratch.run_words(&words).code, Some(0));
    let page = scratch.run("report x.json --html -").stdout;
    assert!(
        page.contains("&lt;script&gt;&amp;&quot;: latency histogram") && !page.contains("<script"),
        "{page}"
    );
    assert_eq!(scratch.run("report x.json --svg images").code, Some(0));
    for name in names_in(&scratch.join("images")) {
        assert!(name.contains("-script-"), "{name}");
        assert!(!fs::read_to_string(scratch.join("images").join(name)).unwrap().contains("<script"));
    }
}

#[test]
fn bad_places_are_refused_in_one_line() {
    let scratch = two_records();
    fs::write(scratch.join("file"), "mine").unwrap();
    for (words, expected) in [
        ("report a.json --svg file", "--svg: cannot make the directory"),
        ("report a.json --png file/below", "--png: cannot make the directory"),
        ("report a.json --html nowhere/page.html", "cannot write"),
        ("report a.json --html .", "cannot write"),
        ("report a.json --html a.json", "this is an input record"),
        ("report a.json b.json --html ./b.json", "this is an input record"),
        ("report a.json --svg -", "--html - writes all charts to standard output"),
        ("report a.json --html - --csv", "both write to standard output"),
        ("report - -", "standard input (-) can be read only once"),
        ("report a.json none.json --svg images", "cannot read the file"),
        ("report", "<RECORD>"),
    ] {
        let ended = scratch.run(words);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
    assert_eq!(fs::read_to_string(scratch.join("file")).unwrap(), "mine");
    assert_eq!(scratch.run("report a.json").code, Some(0), "the record is as it was");
}

#[test]
fn a_full_disk_is_a_fault() {
    let scratch = two_records();
    let ended = scratch.run("report a.json --html /dev/full");
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    let output = Command::new(env!("CARGO_BIN_EXE_strata"))
        .args(["report", "a.json", "--html", "-"])
        .current_dir(scratch.path())
        .stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let Some(full) = Mounted::tmpfs("16k") else {
        eprintln!("{NO_ROOT}");
        return;
    };
    let directory = full.path().join("images");
    let ended = scratch.run(&format!("report a.json --png {}", directory.display()));
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{}", ended.stderr);
    assert!(names_in(&directory).iter().all(|name| name.ends_with(".png")), "no half of one");
}

#[test]
fn a_run_in_which_nothing_completed_says_that_there_is_nothing_to_draw() {
    let scratch = Scratch::new();
    let words = "media /dev/full --op write -s 1m --count 10 --on-error continue --json x.json";
    assert_eq!(scratch.run(words).code, Some(1));
    let ended = scratch.run("report x.json --png images --html page.html");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "page.html\n"), "{}", ended.stderr);
    assert_eq!(ended.stderr, "strata: report: no chart to draw: no operation completed\n");
    assert!(fs::read_to_string(scratch.join("page.html")).unwrap().contains("No chart to draw"));
}
