use std::io;

use proptest::prelude::*;
use roxmltree::Document;

use super::*;
use crate::NvmeNamespace;

/// As elbencho 3.1 writes it, some columns left out.
const CSV: &str = "\
ISO date,label,operation,block size,threads,IOPS [first],IOPS [last],MiB/s [first],MiB/s [last]
2026-01-02T03:04:05,,WRITE,4096,4,1000,900,4,3.5
2026-01-02T03:04:05,,READ,4096,4,130214,130000,509,508
2026-01-02T03:05:05,,WRITE,65536,4,800,700,50,45
2026-01-02T03:05:05,,READ,65536,4,16000,15000,1000,950
";

/// One operation, as in the elbencho slides.
const READS: &str = "\
operation,block size,IOPS [last],MiB/s [last]
READ,4k,130000,508
READ,16k,90000,1406
READ,1m,2500,2500
";

/// A machine with one CSV file, and perhaps something where the chart would go.
struct Machine {
    csv: &'static str,
    there: Option<&'static str>,
}

impl World for Machine {
    fn read(&self, path: &str) -> io::Result<String> {
        let text = match path {
            "dir/results.csv" | "results.csv" | "-" => Some(self.csv),
            "results.svg" => self.there,
            _ => None,
        };
        text.map(str::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn look(&self, path: &str) -> PathFacts {
        match self.there {
            Some(text) if path == "results.svg" => PathFacts::File { size_bytes: text.len() as u64 },
            _ => PathFacts::Missing,
        }
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn processors(&self) -> Vec<u32> {
        vec![0]
    }

    fn page_size_bytes(&self) -> u64 {
        4096
    }

    fn memory_bytes(&self) -> u64 {
        1 << 30
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        vec![]
    }

    fn host_name(&self) -> String {
        "host".to_owned()
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn engines(&self) -> Vec<&'static str> {
        vec![]
    }
}

const MACHINE: Machine = Machine { csv: CSV, there: None };

fn run(machine: &Machine, words: &[&str]) -> Result<Vec<Piece>, Error> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    parse(&words, machine).map(|request| match request {
        Request::Show(pieces) => pieces,
        _ => panic!("nothing is to be measured"),
    })
}

fn text(piece: &Piece) -> &str {
    std::str::from_utf8(&piece.content).unwrap()
}

/// The chart of a run that writes one.
fn svg(machine: &Machine, words: &[&str]) -> String {
    let pieces = run(machine, words).unwrap();
    let chart = pieces.iter().find(|piece| matches!(piece.place, Destination::File { .. })).unwrap();
    Document::parse(text(chart)).unwrap();
    text(chart).to_owned()
}

/// Hints at the points of a chart, shown under the pointer: names and values.
fn hints(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let titles = document.descendants().filter(|node| node.has_tag_name("title"));
    titles.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

fn labels(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

fn refusal(words: &[&str]) -> String {
    let error = run(&MACHINE, words).expect_err("it is refused");
    assert_eq!(error.exit_code(), 2);
    let line = error.to_string();
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn the_lines_of_the_slides_run_as_written() {
    let machine = Machine { csv: READS, there: None };
    let words = ["-x", "block size", "-y", "MiB/s [last]", "-Y", "IOPS [last]", "results.csv"];
    let pieces = run(&machine, &words).unwrap();
    assert_eq!(pieces.len(), 2, "no warning: {pieces:?}");
    assert_eq!(pieces[0].place, Destination::File { path: "results.svg".into(), append: false });
    assert_eq!((&pieces[1].place, text(&pieces[1])), (&Destination::Stdout, "Chart: results.svg\n"));
    let lines = svg(&machine, &words);
    let shown = ["MiB/s [last]: 508", "MiB/s [last]: 1406", "MiB/s [last]: 2500"];
    let right = ["IOPS [last]: 130000", "IOPS [last]: 90000", "IOPS [last]: 2500"];
    let mut hints_of_lines = hints(&lines);
    hints_of_lines.sort();
    let mut expected: Vec<_> = shown.iter().chain(&right).map(|text| (*text).to_owned()).collect();
    expected.sort();
    assert_eq!(hints_of_lines, expected);
    for label in ["4k", "16k", "1m", "MiB/s [last]", "IOPS [last] (right)", "140k", "2500"] {
        assert!(labels(&lines).iter().any(|text| text == label), "{label}: {:?}", labels(&lines));
    }
    let bars = svg(&machine, &[&["--bars"][..], &words].concat());
    assert_eq!(hints(&bars).len(), 6);
    // The bars, one a value, and a sample of each graph.
    assert_eq!(bars.matches("<rect").count(), 6 + 2);
    assert_eq!(bars.matches("<circle").count(), 0);
}

#[test]
fn an_operation_picks_its_lines() {
    let words = [
        "-x",
        "block size",
        "-x",
        "threads",
        "-y",
        "MiB/s [last]:READ",
        "-y",
        "MiB/s [last]:WRITE",
        "results.csv",
    ];
    let pieces = run(&MACHINE, &words).unwrap();
    assert_eq!(pieces.len(), 2, "no warning: {pieces:?}");
    let chart = svg(&MACHINE, &words);
    let expected = [
        "READ MiB/s [last]: 508",
        "READ MiB/s [last]: 950",
        "WRITE MiB/s [last]: 3.50",
        "WRITE MiB/s [last]: 45",
    ];
    let mut hints = hints(&chart);
    hints.sort();
    assert_eq!(hints, expected);
    for label in ["4096@4", "65536@4"] {
        assert!(labels(&chart).iter().any(|text| text == label), "{label}");
    }
    // Without one the lines of both run into each other, which is said.
    let pieces = run(&MACHINE, &["-x", "block size", "-y", "MiB/s [last]", "results.csv"]).unwrap();
    assert_eq!(pieces[0].place, Destination::Stderr);
    assert!(text(&pieces[0]).contains("several operations (READ, WRITE)"), "{}", text(&pieces[0]));
}

#[test]
fn columns_and_operations_are_listed() {
    let columns = run(&MACHINE, &["-c", "results.csv"]).unwrap();
    assert!(
        text(&columns[0])
            .starts_with("Column 1: \"ISO date\"\nColumn 2: \"label\"\nColumn 3: \"operation\"\n")
    );
    assert_eq!(text(&columns[0]).lines().count(), 9);
    let operations = run(&MACHINE, &["-o", "results.csv"]).unwrap();
    assert_eq!(text(&operations[0]), "Available operations in csv file:\nREAD\nWRITE\n");
    assert!(text(&run(&MACHINE, &["-h"]).unwrap()[0]).contains("--imgfile"));
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let line = refusal(&["-x", "block", "-y", "MiB/s [last]", "results.csv"]);
    assert!(line.contains("no column \"block\"") && line.contains("\"block size\", \"threads\""), "{line}");
    let line = refusal(&["-x", "block size", "-y", "MiB/s [last]:TRIM", "results.csv"]);
    assert!(line.contains("operation \"TRIM\"") && line.contains("READ, WRITE"), "{line}");
    let line = refusal(&["-x", "block size", "-y", "operation", "results.csv"]);
    assert!(line.contains("column \"operation\" has no numbers"), "{line}");
    for (words, expected) in [
        (&["-x", "block size", "-y", "threads", "nowhere.csv"][..], "cannot read the CSV file"),
        (&["-x", "block size", "results.csv"], "missing -y"),
        (&["-y", "threads", "results.csv"], "elbencho-chart -c results.csv"),
        (&["-x", "block size", "-y", "threads"], "no CSV file is given"),
        (&["-x"], "-x needs a value"),
        (&["results.csv", "--bars"], "unexpected word after the CSV file"),
        (&["--excel", "a.xlsx", "results.csv"], "does not write Excel files"),
        (&["--terminaltype", "x11", "results.csv"], "does not use gnuplot"),
        (&["--barz", "results.csv"], "unknown option --barz"),
        (&["--imgfile", "a.pdf", "results.csv"], "strata does not write PDF"),
        (&["--imgfile", "a.jpg", "results.csv"], ".svg or .png"),
        (&["--chartsize", "0,100", "results.csv"], "WIDTH,HEIGHT in pixels from 64 to 8192"),
        (&["--chartsize", "800", "results.csv"], "WIDTH,HEIGHT"),
        (&["--fontsize", "big", "results.csv"], "a number from 4 to 100"),
        (&["--linewidth", "NaN", "results.csv"], "a number from 0.1 to 50"),
        (&["--imgbg", "white", "results.csv"], "a colour such as #0072b2"),
        (&["--linecolors", "#ff00", "results.csv"], "a colour such as #0072b2"),
        (&["--linecolors", "", "results.csv"], "a list of colours"),
        (
            &["--linecolors", "#ff0000", "-x", "threads", "-y", "threads", "-Y", "threads", "results.csv"],
            "1 colours for 2 graphs",
        ),
        (&["--keypos", "middle", "results.csv"], "words of top"),
        (&["--keypos", "inside top", "results.csv"], "outside the data"),
        (&["--borderflags", "16", "results.csv"], "0 to 15"),
        (&["--xrot", "180", "results.csv"], "-90 to 90"),
        (&["--Ytitle", "IOPS", "-x", "threads", "-y", "threads", "results.csv"], "no right y axis"),
    ] {
        let line = refusal(words);
        assert!(line.contains(expected), "{words:?}: {line}");
    }
}

#[test]
fn files_that_are_no_results_are_refused() {
    for (csv, expected) in [
        ("", "at least one line of results"),
        ("a,b\n", "at least one line of results"),
        ("a\n1\n", "at least two columns"),
        ("a,b\na,b\n\n", "at least one line of results"),
    ] {
        let error = run(&Machine { csv, there: None }, &["-x", "a", "-y", "b", "results.csv"])
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{csv:?}: {error}");
    }
}

#[test]
fn a_file_of_others_is_not_overwritten() {
    let words = ["-x", "block size", "-y", "threads", "dir/results.csv"];
    let other = Machine { csv: READS, there: Some("<svg/>") };
    let words_of_reads = ["-x", "block size", "-y", "IOPS [last]", "dir/results.csv"];
    let error = run(&other, &words_of_reads).unwrap_err().to_string();
    assert!(error.contains("which is not such a chart") && error.contains("--imgfile"), "{error}");
    let ours = Machine { csv: CSV, there: Some("<svg/><!-- elbencho-chart by strata -->") };
    assert!(svg(&ours, &words).contains(draw::SIGNATURE));
    let named = run(&other, &[&["--imgfile", "chart.png"][..], &words_of_reads].concat()).unwrap();
    assert_eq!(named[0].place, Destination::File { path: "chart.png".into(), append: false });
    assert_eq!(&named[0].content[..8], b"\x89PNG\r\n\x1a\n");
    let piped = run(&ours, &["-x", "block size", "-y", "threads:READ", "-"]).unwrap();
    assert_eq!((piped.len(), &piped[0].place), (1, &Destination::Stdout), "{piped:?}");
}

#[test]
fn the_look_is_what_is_asked_for() {
    let base = ["-x", "block size", "-y", "IOPS [last]:READ", "-y", "IOPS [last]:WRITE", "results.csv"];
    let with = |words: &[&str]| svg(&MACHINE, &[words, &base[..]].concat());
    assert!(with(&["--chartsize", "640,480"]).contains("viewBox=\"0 0 640 480\" "));
    assert!(with(&["--linecolors", "#ff0000 #00ff00"]).contains("fill=\"#ff0000\""));
    assert!(
        with(&["--imgbg", "#abcdef"]).contains(
            "<rect x=\"0\" y=\"0\" width=\"960\" height=\"440\" fill-opacity=\"1\" fill=\"#abcdef\""
        )
    );
    assert!(!with(&[]).contains("<rect"), "transparent");
    assert!(with(&["--fontsize", "20"]).contains("font-size=\"20\""));
    assert!(with(&["--linewidth", "7"]).contains("stroke-width=\"7\""));
    assert!(with(&["--pointsize", "2"]).contains("r=\"13\""));
    assert!(with(&["--xrot", "45"]).contains("rotate(-45 "));
    let border = |flags| with(&["--borderflags", flags]).matches("stroke=\"#5f5f5f\"").count();
    assert_eq!((border("15") - border("0"), border("3") - border("0")), (4, 2));
    let drawn = |gap| with(&["--pointbox", gap]).matches("<polyline").count();
    assert_eq!(drawn("0"), drawn("1"), "one line between two points");
    assert_ne!(with(&["--pointbox", "0"]), with(&["--pointbox", "3"]));
    let titled = with(&["--title", "T<&>", "--xtitle", "block", "--ytitle", "rate"]);
    for label in ["T<&>", "block", "rate"] {
        assert!(labels(&titled).iter().any(|text| text == label), "{label}");
    }
    let place = |words: &str| {
        let chart = with(&["--keypos", words]);
        let document = Document::parse(&chart).unwrap();
        let entry = document
            .descendants()
            .find(|node| node.text() == Some("READ IOPS [last]") && node.has_tag_name("text"));
        entry.map(|node| {
            let number = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
            (number("x"), number("y"))
        })
    };
    let (top, bottom) = (place("top left").unwrap(), place("bottom right").unwrap());
    assert!(top.0 < 100.0 && top.1 < 40.0 && bottom.0 > 480.0 && bottom.1 > 400.0, "{top:?} {bottom:?}");
    assert!(place("outside center right").unwrap().0 > 700.0);
    assert_eq!(place("off"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_csv_text_is_survived(text in "([a-c,\"\n\r0-9.]|\\PC){0,80}", column in "[a-c]?") {
        let csv: &'static str = Box::leak(format!("operation,a,b\n{text}").into_boxed_str());
        let machine = Machine { csv, there: None };
        for words in [&["-c", "results.csv"][..], &["-o", "results.csv"], &["-x", "a", "-y", &column, "--bars", "results.csv"]] {
            if let Err(error) = run(&machine, words) {
                prop_assert_eq!(error.exit_code(), 2);
            }
        }
        if let Ok(pieces) = run(&machine, &["-x", "operation", "-y", "a", "-Y", "b", "results.csv"]) {
            let chart = pieces.iter().find(|piece| matches!(piece.place, Destination::File { .. })).unwrap();
            let svg = std::str::from_utf8(&chart.content).unwrap();
            prop_assert!(Document::parse(svg).is_ok(), "{}", svg);
        }
    }

    #[test]
    fn any_words_are_survived(words in prop::collection::vec("(-x|-y|-Y|--bars|--keypos|--chartsize|--xrot|threads|results.csv|\\PC{0,8})", 0..8)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Err(error) = run(&MACHINE, &words) {
            prop_assert_eq!(error.exit_code(), 2);
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
