//! Results: the table, CSV, JSON.

use report::record::{Doubt, PhaseRecord, Record};
use report::sample::{self, Shape};
use serde_json::Value;
use statistics::{WarmUp, summarise};
use workload::spec::Operation;

use super::super::figures::{date_text, elapsed_text, latency_text, quarter_buckets};
use super::{machine, run, run_on};
use crate::words::machine::{Machine, text_of};
use crate::{Destination, Piece, Render};

/// 2000 operations a second of 1 MiB at 100 us for 4 s; each worker ends 100 ns before the one before it.
fn phase(operation: Operation, threads: u32, request: usize) -> PhaseRecord {
    let shape = Shape {
        operation,
        threads,
        block_bytes: 1 << 20,
        operations_per_second: 2000.0,
        latency_ns: 100_000,
        jitter: 0.0,
        ..sample::DRIVE
    };
    let mut phase = crate::sampled::phase(&shape);
    phase.summary = summarise(&phase.samples, WarmUp::None);
    phase.request = request;
    phase.stage = request;
    phase
}

/// All that is shown, phase by phase.
fn shown(mut render: Box<dyn Render>, record: &Record) -> Vec<Piece> {
    let before = Record { phases: vec![], ..record.clone() };
    let mut pieces = render.begin(&before);
    for from in 0..record.phases.len() {
        let so_far = Record { phases: record.phases[..=from].to_vec(), ..record.clone() };
        pieces.extend(render.stage(&so_far, from));
    }
    pieces.extend(render.end(record));
    pieces
}

fn stdout(line: &str, record: &Record) -> String {
    text_of(&shown(run(line).render, record), &Destination::Stdout)
}

fn file(path: &str) -> Destination {
    Destination::File { path: path.into(), append: true }
}

#[test]
fn the_table_is_that_of_the_tool() {
    let record = sample::record(vec![phase(Operation::Write, 1, 0), phase(Operation::Read, 2, 1)]);
    let line = "-w -r --lat --latpercent --latpercent9s 2 --cpu --allelapsed --log 1 -s 1g /dev/nvme0n1";
    let expected = "\
OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
WRITE       Elapsed time     :      4.000s      4.000s
            IOPS             :        2000        2000
            Throughput MiB/s :        2000        2000
            Total MiB        :        8000        8000
            IOs total        :        8000        8000
            CPU util %       :          13          13
            Time ms each     : [ 4000 ]
            IO latency       : [ min=80us avg=103us max=400us ]
            IO lat % us      : [ 1%<=80 50%<=100 75%<=110 99%<=120 99.9%<=400 99.99%<=400 ]
---
READ        Elapsed time     :      3.999s      4.000s
            IOPS             :        2000        2000
            Throughput MiB/s :        2000        2000
            Total MiB        :        7999        8000
            IOs total        :        8000        8000
            CPU util %       :          13          13
            Time ms each     : [ 4000 3999 ]
            IO latency       : [ min=80us avg=103us max=400us ]
            IO lat % us      : [ 1%<=80 50%<=100 75%<=110 99%<=120 99.9%<=400 99.99%<=400 ]
---
";
    // By the first worker's end, 100 ns before the last's, all but a fraction of an operation is done.
    assert_eq!(stdout(line, &record), expected);
}

#[test]
fn the_first_done_column_is_what_was_done_by_then() {
    let mut read = phase(Operation::Read, 2, 0);
    read.samples.workers[0].finished_ns = 2_000_000_000;
    read.summary = summarise(&read.samples, WarmUp::None);
    let record = sample::record(vec![read]);
    let text = stdout("-r /dev/nvme0n1", &record);
    assert!(text.contains("READ        Elapsed time     :      2.000s      4.000s\n"), "{text}");
    assert!(text.contains("            Total MiB        :        4000        8000\n"), "{text}");
    assert!(text.contains("            IOPS             :        2000        2000\n"), "{text}");
}

#[test]
fn mixes_show_reads_and_writes_apart() {
    let record = sample::record(vec![phase(Operation::ReadWrite, 1, 0)]);
    let text = stdout("-w --rwmixpct 70 --lat --base10 -s 1g /dev/nvme0n1", &record);
    let rows = [
        "RWMIX70     Elapsed time     :      4.000s      4.000s\n",
        "            IOPS write       :         600         600\n",
        "            IOPS read        :        1400        1400\n",
        "            IOPS total       :        2000        2000\n",
        "            MB/s write       :         629         629\n",
        "            MB/s read        :        1468        1468\n",
        "            MB/s total       :        2097        2097\n",
        "            MiB write        :        2400        2400\n",
        "            MiB read         :        5600        5600\n",
        "            IO wr latency    : [ min=80us avg=10",
        "            IO rd latency    : [ min=80us avg=10",
    ];
    for row in rows {
        assert!(text.contains(row), "{row}{text}");
    }
}

#[test]
fn phases_of_a_stage_are_one_phase_of_the_table() {
    let mut phases = vec![phase(Operation::Write, 1, 0), phase(Operation::Read, 1, 1)];
    phases[1].stage = 0;
    let record = sample::record(phases);
    let mut render = run("-w --rwmixthr 1 -t 2 -s 1g /dev/nvme0n1").render;
    let text = text_of(&render.stage(&record, 0), &Destination::Stdout);
    assert_eq!(text.matches("MIX-T1").count(), 1, "{text}");
    for row in
        ["IOPS write       :        2000", "IOPS read        :        2000", "IOPS total       :        4000"]
    {
        assert!(text.contains(row), "{row}\n{text}");
    }
}

#[test]
fn doubts_failures_and_failed_operations_are_shown() {
    let mut read = phase(Operation::Read, 1, 0);
    read.samples.workers[0].classes[0].errors = 3;
    read.failure = Some("3 reads failed".to_owned());
    read.doubts.push(Doubt {
        kind: "sparse".to_owned(),
        detail: "half of the range was never written".to_owned(),
        remedy: "write it first".to_owned(),
    });
    let mut record = sample::record(vec![read]);
    record.failure = Some("phase READ: 3 reads failed".to_owned());
    let pieces = shown(run("-r /dev/nvme0n1").render, &record);
    let text = text_of(&pieces, &Destination::Stdout);
    assert!(text.contains("            IOs failed       :                       3\n"), "{text}");
    assert!(
        text.ends_with("strata warning: half of the range was never written; write it first\n---\n"),
        "{text}"
    );
    assert_eq!(text_of(&pieces, &Destination::Stderr), "", "strata tells the failure of the run");
    record.failure = None;
    let pieces = shown(run("-r /dev/nvme0n1").render, &record);
    assert_eq!(text_of(&pieces, &Destination::Stderr), "ERROR: read: 3 reads failed\n");
}

#[test]
fn doubts_are_in_the_tools_words_gravest_first_and_told_once() {
    let doubt = |kind: &str, detail: &str| Doubt {
        kind: kind.to_owned(),
        detail: detail.to_owned(),
        remedy: "use --direct".to_owned(),
    };
    let (mut write, mut read) = (phase(Operation::Write, 1, 0), phase(Operation::Read, 1, 1));
    write.doubts = vec![doubt("other_load", "others are busy"), doubt("too_short", "it took 1 s")];
    read.doubts = vec![doubt("too_short", "it took 2 s"), doubt("other_load", "others are busy")];
    let text = stdout("-w -r -s 1g /dev/nvme0n1", &sample::record(vec![write, read]));
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("strata warning: ")).collect();
    let longer = "run longer: a larger -s, or --infloop with --timelimit 10";
    assert_eq!(
        lines,
        [
            &format!("it took 1 s; {longer}"),
            "others are busy; use --direct",
            &format!("it took 2 s; {longer}")
        ]
    );
}

#[test]
fn where_all_operations_failed_nothing_is_doubted() {
    let mut read = phase(Operation::Read, 1, 0);
    let class = &mut read.samples.workers[0].classes[0];
    (class.operations, class.errors) = (0, 1);
    read.failure = Some("read failed".to_owned());
    read.doubts.push(Doubt {
        kind: "too_short".to_owned(),
        detail: "nothing completed".to_owned(),
        remedy: "look".to_owned(),
    });
    let text = stdout("-r /dev/nvme0n1", &sample::record(vec![read]));
    assert!(text.contains("IOs failed") && !text.contains("doubts"), "{text}");
}

#[test]
fn csv_reads_back_with_known_numbers() {
    let record = sample::record(vec![phase(Operation::Write, 1, 0), phase(Operation::Read, 1, 1)]);
    let words =
        ["-w", "-r", "--direct", "--label", "a, \"b\"", "--csvfile", "/r.csv", "-s", "1g", "/dev/nvme0n1"];
    let words: Vec<String> = words.map(str::to_owned).to_vec();
    let Ok(crate::Request::Run(run)) = super::super::parse(&words, &machine()) else { panic!("it runs") };
    let text = text_of(&shown(run.render, &record), &file("/r.csv"));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert_eq!(header.len(), 55);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    let field = |row: usize, label: &str| {
        let at = header.iter().position(|own| own == label).unwrap_or_else(|| panic!("no {label}"));
        rows[row][at].to_owned()
    };
    for (label, value) in [
        ("ISO date", "2026-01-02T03:04:06.000+0000"),
        ("label", "a, \"b\""),
        ("path type", "blockdev"),
        ("paths", "1"),
        ("hosts", "1"),
        ("threads", "1"),
        ("dirs", ""),
        ("file size", "1073741824"),
        ("block size", "1048576"),
        ("direct IO", "1"),
        ("random", "0"),
        ("random aligned", ""),
        ("IO depth", "1"),
        ("truncate", ""),
        ("operation", "WRITE"),
        ("time ms [first]", "4000"),
        ("time ms [last]", "4000"),
        ("entries/s [last]", ""),
        ("IOPS [first]", "2000"),
        ("IOPS [last]", "2000"),
        ("MiB/s [last]", "2000"),
        ("CPU% [first]", "13"),
        ("CPU% [last]", "13"),
        ("MiB [last]", "8000"),
        ("Ent lat us [max]", ""),
        ("IO lat us [min]", "80"),
        ("IO lat us [avg]", "103"),
        ("IO lat us [max]", "400"),
        ("rwmix read IOPS [last]", ""),
        ("version", "3.1 (strata 0.1.0)"),
    ] {
        assert_eq!(field(0, label), value, "{label}");
    }
    assert_eq!(field(1, "operation"), "READ");
    assert!(field(1, "command").starts_with("\"elbencho\" \"-w\" \"-r\" \"--direct\""));
}

#[test]
fn a_csv_file_that_is_there_is_continued_without_labels() {
    let record = sample::record(vec![phase(Operation::Read, 1, 0)]);
    let header = super::super::files::csv_header();
    let world = machine().text("/r.csv", &format!("{header}1,2\n"));
    let pieces = shown(run_on("-r --csvfile /r.csv /dev/nvme0n1", &world).render, &record);
    assert_eq!(text_of(&pieces, &file("/r.csv")).lines().count(), 1);
    let bare = shown(run("-r --nocsvlabels --csvfile /r.csv /dev/nvme0n1").render, &record);
    assert_eq!(text_of(&bare, &file("/r.csv")).lines().count(), 1);
}

#[test]
fn json_is_an_object_a_line_with_real_numbers() {
    let record = sample::record(vec![phase(Operation::Write, 1, 0), phase(Operation::ReadWrite, 1, 1)]);
    let line =
        "-w --rwmixpct 70 -i 2 --rand --lat --lathisto --label l --jsonfile /r.json -s 1g /dev/nvme0n1";
    let text = text_of(&shown(run(line).render, &record), &file("/r.json"));
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    let mixed = &objects[1];
    assert_eq!((&mixed["phase_type"], &mixed["label"]), (&Value::from("RWMIX70"), &Value::from("l")));
    assert_eq!(mixed["phase_id"], "00c0ffee00c0ffee-1");
    assert_eq!(mixed["config"]["path_type"], "blockdev");
    assert_eq!(
        (&mixed["config"]["block_size"], &mixed["config"]["random_offsets"]),
        (&Value::from(1 << 20), &Value::from(true))
    );
    assert_eq!(mixed["last_done"]["elapsed_time_ms"], 4000);
    assert_eq!(mixed["last_done"]["iops"], 600.0);
    assert_eq!(mixed["last_done"]["bytes"], 2400u64 << 20);
    assert_eq!(mixed["last_done"]["rwmix_read"]["iops"], 1400.0);
    assert_eq!(mixed["last_done"]["latency"]["IO"]["max_us"], 120.0);
    assert_eq!(mixed["last_done"]["latency"]["IO"]["rwmix_read"]["min_us"], 80.0);
    let buckets = mixed["last_done"]["latency"]["IO"]["histogram"]["buckets"].as_array().unwrap();
    let counted: u64 = buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 2400);
}

#[test]
fn the_table_goes_to_its_file_with_a_head() {
    let mut record = sample::record(vec![phase(Operation::Read, 1, 0), phase(Operation::Read, 1, 1)]);
    record.started_at = "2026-01-02T03:04:05.678Z".to_owned();
    let line = "-r -i 2 --label night --resfile /r.txt /dev/nvme0n1";
    let pieces = shown(run(line).render, &record);
    let text = text_of(&pieces, &file("/r.txt"));
    assert!(
        text.starts_with(
            "ISO DATE: 2026-01-02T03:04:05+0000\nLABEL: night\nCOMMAND LINE: \"elbencho\" \"-r\""
        ),
        "{text}"
    );
    assert_eq!(text.matches("OPERATION").count(), 2, "one table an iteration");
    assert_eq!(text.matches("\n---\n\n").count(), 2, "an empty line after each phase: {text}");
    let screen = text_of(&pieces, &Destination::Stdout);
    assert!(
        screen.contains("[Starting iteration 1 of 2...]\n")
            && screen.contains("[Starting iteration 2 of 2...]\n")
            && !screen.contains("\n\n")
    );
}

#[test]
fn what_is_read_back_is_on_the_screen_alone() {
    let mut back = phase(Operation::Read, 1, 0);
    back.is_read_back = true;
    let record = sample::record(vec![phase(Operation::Write, 1, 0), back]);
    let world = Machine::new();
    let line = "-w --verify 1 --verifydirect --csvfile /r.csv -s 1g f";
    let pieces = shown(run_on(line, &world).render, &record);
    assert!(text_of(&pieces, &Destination::Stdout).contains("VERIFY      Elapsed time "));
    assert_eq!(text_of(&pieces, &file("/r.csv")).lines().count(), 2, "the labels and the write phase");
}

#[test]
fn times_are_written_as_the_tool_writes_them() {
    let elapsed = |ms: u64| elapsed_text(ms * 1_000_000);
    assert_eq!(
        [elapsed(1), elapsed(1001), elapsed(123_456), elapsed(12_345_678)],
        ["1ms", "1.001s", "2m3.456s", "3h25m45s"]
    );
    let latency = |us: f64| latency_text(us * 1000.0);
    assert_eq!(
        [
            latency(123.4),
            latency(1234.0),
            latency(12_340.0),
            latency(123_400.0),
            latency(1_234_000.0),
            latency(12_340_000.0)
        ],
        ["123us", "1.23ms", "12.3ms", "123ms", "1.23s", "12.3s"]
    );
    assert_eq!(date_text("2026-01-02T03:04:05.6789Z"), "2026-01-02T03:04:05.678+0000");
    let mut histogram = statistics::Histogram::new();
    histogram.record_n(1_100, 2);
    histogram.record_n(1_150, 1);
    histogram.record_n(16_500, 4);
    let buckets: Vec<(String, u64)> = quarter_buckets(&histogram)
        .into_iter()
        .map(|(end, count)| (super::super::figures::us_text(end), count))
        .collect();
    assert_eq!(buckets, [("1.2".to_owned(), 3), ("19".to_owned(), 4)]);
}
