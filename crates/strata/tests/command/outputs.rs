//! Output: records, tables, rows, reports, help, and the pages made from the tables of options.

use std::collections::HashMap;
use std::fs;

use workload::options;

use crate::support::{Ended, Scratch, parse_record, total};

fn succeeded(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stdout
}

/// Rows of a CSV text by its header.
fn rows(text: &str) -> Vec<HashMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

#[test]
fn records_go_to_a_file_or_standard_output() {
    let scratch = Scratch::new();
    let text = succeeded(scratch.run("media null: --op randread --count 1000 --json -"));
    let record = parse_record(&text);
    assert_eq!(total(&record, 0, "operations"), 1000);
    let words: Vec<_> = record["command_line"].as_array().unwrap().iter().skip(1).collect();
    assert_eq!(words, ["media", "null:", "--op", "randread", "--count", "1000", "--json", "-"]);
    assert!(record["tool_cost"]["null_ns_per_operation"].as_f64().unwrap() > 0.0);
    assert!(record["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
    assert_eq!(record["run_id"].as_str().unwrap().len(), 16);
    let environment = &record["environment"];
    assert!(!environment.is_null() && environment["processor"].is_object(), "{environment}");
    // Devices take it as they are: nothing is renamed over them.
    succeeded(scratch.run("media null: --op randread --count 1 --json /dev/null --csv /dev/null"));
    assert!(scratch.names().is_empty());
}

#[test]
fn a_report_is_the_text_of_the_run() {
    let scratch = Scratch::new();
    let mut odd = vec!["media", "null:", "--op", "randrw", "--count", "1000"];
    odd.extend([
        "--name",
        "quotes \" and, commas",
        "--json",
        "record.json",
        "--csv",
        "table.csv",
        "--out",
        "results",
    ]);
    let text = succeeded(scratch.run_words(&odd));
    assert!(text.contains("quotes \" and, commas"), "{text}");
    assert_eq!(succeeded(scratch.run("report record.json")), text);
    assert_eq!(fs::read_to_string(scratch.join("results/report.txt")).unwrap(), text);
    assert_eq!(scratch.names(), ["record.json", "results", "table.csv"]);
    let names = crate::support::names_in(&scratch.join("results"));
    assert_eq!(names, ["record.json", "report.txt", "table.csv"]);
    let record = fs::read(scratch.join("record.json")).unwrap();
    assert!(fs::read(scratch.join("results/record.json")).unwrap() == record);
    let table = fs::read_to_string(scratch.join("table.csv")).unwrap();
    assert_eq!(succeeded(scratch.run("report --csv record.json")), table);
    assert_eq!(fs::read_to_string(scratch.join("results/table.csv")).unwrap(), table);
    assert!(rows(&table).iter().all(|row| row["name"] == "quotes \" and, commas"));
}

#[test]
fn tables_hold_the_figures_of_the_record() {
    let scratch = Scratch::new();
    let record = scratch.measured("media null: --op randrw,nop --mix 75 -b 4k --count 1000 --csv table.csv");
    let rows = rows(&fs::read_to_string(scratch.join("table.csv")).unwrap());
    let classes: Vec<_> = rows.iter().map(|row| (row["operation"].as_str(), row["class"].as_str())).collect();
    assert_eq!(
        classes,
        [("randrw", "read"), ("randrw", "write"), ("randrw", "total"), ("nop", "nop"), ("nop", "total")]
    );
    assert_eq!((rows[0]["operations"].as_str(), rows[0]["bytes"].as_str()), ("750", "3072000"));
    let latency = total(&record, 0, "latency");
    for figure in ["min", "p50", "p90", "p99", "p99_9", "max"] {
        // A percentile of too few operations is null there and empty here.
        let expected = latency[format!("{figure}_ns")].as_u64().map_or_else(String::new, |ns| ns.to_string());
        assert_eq!(rows[2][&format!("latency_ns_{figure}")], expected, "{figure}");
    }
    let text = succeeded(scratch.run("media null: --op randread --count 10 --csv -"));
    assert_eq!(self::rows(&text).len(), 2, "{text}");
}

#[test]
fn rows_of_a_run_under_way() {
    let scratch = Scratch::new();
    scratch.measured("media null: --op randrw --time 350ms --live-csv rows.csv");
    let rows = rows(&fs::read_to_string(scratch.join("rows.csv")).unwrap());
    let classes: Vec<_> = rows.iter().take(3).map(|row| row["class"].as_str()).collect();
    assert_eq!(classes, ["read", "write", "all"]);
    let of_all: Vec<_> = rows.iter().filter(|row| row["class"] == "all").collect();
    let operations: Vec<u64> = of_all.iter().map(|row| row["operations"].parse().unwrap()).collect();
    assert!(operations.is_sorted() && operations[0] > 0, "{operations:?}");
    let elapsed: Vec<u64> = of_all.iter().map(|row| row["elapsed_ns"].parse().unwrap()).collect();
    assert!(elapsed.is_sorted() && elapsed[0] < 350_000_000, "{elapsed:?}");
}

#[test]
fn progress_goes_to_standard_error_alone() {
    let scratch = Scratch::new();
    let quiet = scratch.run("media null: --op randread --time 200ms --live none --json -");
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""));
    parse_record(&quiet.stdout);
    let plain = scratch.run("media null: --op randread --time 200ms --json -");
    assert!(plain.stderr.starts_with("randread") && !plain.stderr.contains('\u{1b}'), "{:?}", plain.stderr);
    parse_record(&plain.stdout);
}

#[test]
fn inputs_come_from_standard_input_too() {
    let scratch = Scratch::new();
    fs::write(scratch.join("job.toml"), "targets = ['null:']\nop = 'nop'\ncount = 10\n").unwrap();
    let text = succeeded(scratch.run("run job.toml --json record.json"));
    // /dev/stdin would do as well; - is what people type.
    for (input, words) in [("job.toml", "run - --json again.json"), ("record.json", "report -")] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_strata"))
            .args(words.split(' '))
            .current_dir(scratch.path())
            .stdin(fs::File::open(scratch.join(input)).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        if input == "record.json" {
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}

#[test]
fn damaged_records_are_refused() {
    let scratch = Scratch::new();
    succeeded(scratch.run("media null: --op nop --count 10 --json record.json"));
    let text = fs::read_to_string(scratch.join("record.json")).unwrap();
    for (content, expected) in [
        (text[..text.len() / 2].to_owned(), "not a record of strata"),
        (text.replace("\"schema_version\": 1", "\"schema_version\": 99"), "use a newer strata"),
        (text.replace("\"status\": \"complete\"", "\"status\": \"fine\""), "damaged record"),
        (String::new(), "not a record of strata"),
        ("{}".to_owned(), "not a record of strata"),
    ] {
        fs::write(scratch.join("damaged"), content).unwrap();
        let ended = scratch.run("report damaged");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{expected}");
        assert!(ended.stderr.contains(expected) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    }
}

#[test]
fn help_names_every_option() {
    let scratch = Scratch::new();
    let help = succeeded(scratch.run("media --help"));
    let man = succeeded(scratch.run("man media")).replace("\\-", "-");
    let page = succeeded(scratch.run("options"));
    for option in options::of(media::LAYER) {
        let flag = format!("--{}", option.name);
        assert!(help.contains(&flag), "{flag} is not in the help");
        assert!(man.contains(&flag), "{flag} is not in the man page");
        assert!(page.contains(&flag), "{flag} is not in the page of options");
    }
    for flag in ["--json", "--csv", "--out", "--live", "--live-csv"] {
        for command in ["media", "run", "stack"] {
            assert!(succeeded(scratch.run(&format!("{command} --help"))).contains(flag), "{command}: {flag}");
        }
    }
    assert!(succeeded(scratch.run("--version")).starts_with("strata "));
    assert!(man.starts_with(".ie") || man.contains(".TH strata-media"), "{}", &man[..200]);
}

#[test]
fn the_list_names_every_engine() {
    let list = succeeded(Scratch::new().run("list"));
    for driver in media::DRIVERS {
        let line = list.lines().find(|line| line.starts_with(&format!("media   {} ", driver.name)));
        assert!(line.is_some_and(|line| line.contains(driver.summary)), "{}: {list}", driver.name);
    }
}

#[test]
fn completions_know_the_options() {
    let scratch = Scratch::new();
    for (shell, expected) in [("bash", "--block-size"), ("zsh", "--block-size"), ("fish", "-l block-size")] {
        let script = succeeded(scratch.run(&format!("completions {shell}")));
        assert!(script.contains(expected), "{shell}");
    }
}

#[test]
fn the_page_of_options_is_up_to_date() {
    let made = succeeded(Scratch::new().run("options"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, &made).unwrap();
    }
    let page = fs::read_to_string(path).unwrap_or_default();
    assert!(page == made, "docs/options.md is out of date: run the tests once with UPDATE_DOCS=1");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scratch = Scratch::new();
    succeeded(scratch.run("media null: --op nop --count 10 --json record.json"));
    for words in [
        "list",
        "man",
        "options",
        "schema",
        "completions zsh",
        "report record.json",
        "media --help",
        "media null: --op nop --count 10",
        "media null: --op nop --count 10 --json -",
    ] {
        let ended = scratch.start(words).close_stdout();
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{words}: {}", ended.stderr);
    }
    // As `head -1` does: the header is read, and nothing after it.
    let mut running = scratch.start("media null: --op nop --time 300ms --live-csv - --json record.json");
    running.await_row("phase,");
    assert_eq!(running.close_stdout().code, Some(0));
    assert_eq!(crate::support::read_record(&scratch.join("record.json"))["status"], "complete");
}
