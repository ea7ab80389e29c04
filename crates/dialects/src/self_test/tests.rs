//! Command lines of self_test and their refusals.

use proptest::prelude::*;

use super::*;
use crate::options::asked::{assert_asks, assert_asks_all, assert_silent, made};
use crate::words::machine::{Machine, words};

fn run_words(words: &[&str]) -> Run {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match parse(&words, &Machine::new()).unwrap_or_else(|error| panic!("{words:?}: {error}")) {
        Request::Run(run) => *run,
        _ => panic!("{words:?} does not run"),
    }
}

fn refusal(line: &str) -> String {
    match parse(&words(line), &Machine::new()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{line} is taken"),
    }
}

#[track_caller]
fn assert_sizes(run: &Run, expected: &[&str]) {
    assert_eq!(run.specs.len(), expected.len());
    for (spec, sizes) in run.specs.iter().zip(expected) {
        assert_asks(spec, "message-sizes", sizes);
    }
}

#[test]
fn the_lines_of_the_guide_are_read_as_written() {
    let head = ["-u", "--group-name", "daos_server", "--endpoint", "0:2", "--message-size"];
    let tail = ["--max-inflight-rpcs", "16", "--repetitions", "100000"];
    for (given, expected) in [
        ("(0 b1048578)", &["e0 b1048578"][..]),
        ("(b1048578 0)", &["b1048578 e0"]),
        ("(0 0)", &["e0 e0"]),
        ("i2048", &["i2048 i2048"]),
        ("(0 0) (b1048578 0) (0 b1048578)", &["e0 e0", "b1048578 e0", "e0 b1048578"]),
    ] {
        let run = run_words(&[&head[..], &[given], &tail].concat());
        assert_sizes(&run, expected);
        let spec = &run.specs[0];
        let own = [
            ("message-sizes", expected[0]),
            ("inflight", "16"),
            ("group", "daos_server"),
            ("endpoint", "0:2"),
        ];
        let common = Spec {
            name: spec.name.clone(),
            count: Some(100_000),
            warmup: Some(Warmup::None),
            on_error: Some(OnError::Continue),
            ..made("network", &own)
        };
        assert_eq!(*spec, common);
        assert_silent(spec, "master", "0:2");
    }
}

#[test]
fn ranges_multiply_the_repetitions_and_masters_are_sorted() {
    let run = run_words(&[
        "-u",
        "--group-name",
        "daos_server",
        "--endpoint",
        "0-1:0",
        "--master-endpoint",
        "1-0:3,2",
        "-m",
        "0:2",
        "--message-sizes",
        "b1048576,b1048576 0,0 b1048576,i2048,i2048 0,0 i2048",
        "--max-inflight-rpcs",
        "16",
        "--repetitions",
        "100",
    ]);
    assert_sizes(
        &run,
        &["b1048576 b1048576", "b1048576 e0", "e0 b1048576", "i2048 i2048", "i2048 e0", "e0 i2048"],
    );
    let names: Vec<_> = run.specs.iter().filter_map(|spec| spec.name.as_deref()).collect();
    assert_eq!(names[..2], ["(b1MiB b1MiB)", "(b1MiB 0)"]);
    assert_eq!(run.specs[0].count, Some(200));
    assert_asks_all(&run.specs[0], "endpoint", &["0:0", "1:0"]);
    assert_asks_all(&run.specs[0], "master", &["0:2", "0:3", "1:2", "1:3"]);
}

#[test]
fn defaults_are_those_of_the_tool() {
    let run = run_words(&[]);
    assert_sizes(&run, &["e0 e0", "e0 b1048578", "b1048578 e0"]);
    assert_asks_all(&run.specs[0], "endpoint", &["0:0"]);
    assert_eq!(run.warnings.len(), 1, "{:?}", run.warnings);
    assert_asks_all(&run_words(&["-u"]).specs[0], "endpoint", &["0:2"]);
}

#[test]
fn short_options_and_their_effects() {
    let run = run_words(&["-g", "g", "-e", "0:0", "-r", "3", "-a", "255", "-bqn", "-p", "/x", "-s", "0"]);
    for (name, value) in [
        ("buffer-align", "255"),
        ("no-sync", "true"),
        ("order", "random"),
        ("path", "/x"),
        // No more than there are RPCs.
        ("inflight", "3"),
    ] {
        assert_asks(&run.specs[0], name, value);
    }
    assert_eq!(run.warnings.len(), 1);
}

#[test]
fn sizes_and_endpoints_are_read_as_the_load_reads_them() {
    for text in ["0", "(0 0) (b1m 0)", "i2k i2k,0b1m", "1m 1048575", "e0 e0,b8,i1.5k", "b512i 4", "0 i2kB"] {
        let taken = say(&mut made("network", &[]), [said("message-sizes", text)]);
        let sizes = grammar::sizes(text);
        if taken.is_ok() {
            let typed: String = sizes.iter().map(|pair| grammar::typed(*pair)).collect();
            assert_asks(&made("network", &[("message-sizes", text)]), "message-sizes", &typed);
        }
    }
    for text in ["0:2", "1-0:3,2", "0-3,7:2-4", "2,2:0"] {
        let each: Vec<_> =
            grammar::endpoints(text).iter().map(|(rank, tag)| format!("{rank}:{tag}")).collect();
        let each: Vec<_> = each.iter().map(String::as_str).collect();
        assert_asks_all(&made("network", &[("endpoint", text)]), "endpoint", &each);
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    for (line, expected) in [
        ("-e 0", "RANKS:TAGS"),
        ("-e a:0", "RANKS:TAGS"),
        ("-s (x)", "message size"),
        ("-r 0", "repetitions-per-size"),
        ("-i 0", "max-inflight-rpcs"),
        ("-a 256", "align"),
        ("--unknown", "is not an option"),
        ("--m 0:0", "\"--m\" is ambiguous"),
        ("-s (0 0) (1 1)", "quote the message sizes"),
        ("-p", "has no value"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
        assert!(refusal.starts_with("self_test: ") && !refusal.contains('\n'), "{line}: {refusal}");
    }
}

#[test]
fn help_lists_every_option() {
    let Ok(Request::Show(pieces)) = parse(&words("--help"), &Machine::new()) else { panic!("no help") };
    let text = String::from_utf8_lossy(&pieces[0].content).into_owned();
    assert!(text.contains("--master-endpoint RANKS:TAGS") && text.contains("--Mbits"), "{text}");
}

#[test]
fn the_page_lists_the_options() {
    crate::words::tests::check_docs(&TABLE, "self_test.md");
}

proptest! {
    #[test]
    fn any_words_are_read_or_refused(all in proptest::collection::vec("[-a-z0-9:,() ]{0,12}", 0..6)) {
        let _ = parse(&all, &Machine::new());
    }
}

fn text_of(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| String::from_utf8_lossy(&piece.content).into_owned()).collect()
}

/// The request that a record of the samples answers: 1 MiB there and nothing back, two endpoints.
fn render(more: &[&str]) -> Box<dyn crate::Render> {
    run_words(&[&["-e", "0-1:2", "-s", "(b1048576 0)", "-r", "100"], more].concat()).render
}

#[test]
fn the_output_has_the_shape_of_the_tool() {
    let record = network::sample::two_endpoints();
    let mut render = render(&[]);
    let head = text_of(&render.begin(&record));
    assert_eq!(
        head,
        "Adding endpoints:\n  ranks: 0-1 (# ranks = 2)\n  tags: 2 (# tags = 1)\n\
         Warning: No --master-endpoint specified; using this command line application as the master endpoint\n\
         Self Test Parameters:\n  Group name to test against: daos_server\n  # endpoints:                2\n  \
         Message sizes:              [(1048576-BULK_GET 0-EMPTY)]\n  Buffer addresses end with:  <Default>\n  \
         Repetitions per size:       200\n  Max in-flight RPCs:          16\n\n"
    );
    let body = text_of(&render.stage(&record, 0));
    let lines: Vec<&str> = body.lines().collect();
    assert_eq!(lines[1], "Results for message size (1048576-BULK_GET 0-EMPTY) (max_inflight_rpcs = 16):");
    assert_eq!((lines[3], lines[4]), ("Master Endpoint 2:0", "-------------------"));
    // 3800 RPCs a second of 1 MiB.
    assert!(lines[5].starts_with("\tRPC Bandwidth (MB/sec): 3"), "{body}");
    assert!(lines[6].starts_with("\tRPC Throughput (RPCs/sec): 3"), "{body}");
    let names: Vec<&str> =
        lines[8..18].iter().map(|line| line.trim().split(':').next().unwrap_or("")).collect();
    assert_eq!(
        names.iter().map(|name| name.trim()).collect::<Vec<_>>(),
        ["Min", "25th  %", "Median", "75th  %", "95th  %", "99th  %", "99.9th%", "Max", "Average", "Std Dev"]
    );
    let value =
        |line: &str| line.rsplit(": ").next().and_then(|text| text.parse::<f64>().ok()).expect("a number");
    let ordered: Vec<f64> = lines[8..16].iter().map(|line| value(line)).collect();
    assert!(ordered.windows(2).all(|pair| pair[0] <= pair[1]), "{ordered:?}");
    assert_eq!(lines[18], "\tRPC Failures: 0");
    let medians: Vec<f64> = lines[21..23].iter().map(|line| value(&line.replace(" - ", ": "))).collect();
    assert!(lines[21].starts_with("\t\t0:2 - ") && medians[0] < medians[1], "{body}");
}

#[test]
fn failures_stand_under_their_endpoint() {
    let record = network::sample::failing_endpoint();
    let body = text_of(&render(&[]).stage(&record, 0));
    assert!(body.contains("\tRPC Failures: 7\n"), "{body}");
    assert!(body.contains("\t\t\t7: -DER_UNREACH (-1006): Connection refused"), "{body}");
    assert_eq!(body.matches("Failures: 7/").count(), 1, "{body}");
}

#[test]
fn bits_and_json() {
    let record = network::sample::two_endpoints();
    let mega = |text: String, unit: &str| {
        let line = text.lines().find(|line| line.contains(unit)).expect("a bandwidth").to_owned();
        line.rsplit(": ").next().and_then(|text| text.parse::<f64>().ok()).expect("a number")
    };
    let bits = mega(text_of(&render(&["-b"]).stage(&record, 0)), "Mbits/sec");
    let bytes = mega(text_of(&render(&[]).stage(&record, 0)), "MB/sec");
    assert!((bits / bytes - 8.388_608).abs() < 1e-3, "{bits} {bytes}");
    let mut json = render(&["--json"]);
    assert!(json.begin(&record).is_empty() && json.stage(&record, 0).is_empty());
    let document: serde_json::Value =
        serde_json::from_str(&text_of(&json.end(&record)[..1])).expect("a JSON document");
    let master = &document["results"][0]["masters"][0];
    assert_eq!(master["master"], "2:0");
    assert_eq!(master["endpoints"][1]["endpoint"], "1:2");
    assert!(master["latency"]["p50_ns"].as_u64() > Some(1_000_000));
}

#[test]
fn each_master_has_its_block() {
    let record = network::sample::matrix(3, &[]);
    let mut render = run_words(&["-e", "0-2:2", "-m", "0-2:0", "-s", "(b1048576 0)", "-r", "100"]).render;
    let body = text_of(&render.stage(&record, 0));
    for rank in 0..3 {
        assert_eq!(body.matches(&format!("Master Endpoint {rank}:0\n")).count(), 1, "{body}");
    }
    assert!(!text_of(&render.begin(&record)).contains("Warning"));
}
