//! Buckets: command lines and results.

use object::sample::{KV, ObjectShape, object_phase};
use report::record::PhaseRecord;
use report::sample;
use serde_json::{Value, json};
use units::Span;
use workload::options::apply_secret;
use workload::spec::{OnError, Refill, Spec, Warmup};

use super::{refusal, run, run_on, spec, specs};
use crate::options::asked::{assert_asks, assert_asks_all, assert_silent, made};
use crate::words::machine::{Machine, text_of};
use crate::{Destination, Piece, Request};

/// Options at the start of every line.
const HEAD: &str = "--s3endpoints http://srv1:9000,http://srv2:9000 --s3key AKEY --s3secret SKEY";

fn of(line: &str) -> Vec<Spec> {
    specs(&format!("{HEAD} {line}"))
}

/// A spec with these keys.
fn with_key(mut spec: Spec, access: &str, secret: &str) -> Spec {
    apply_secret(&mut spec, "s3-key", &format!("{access}\n{secret}")).expect("keys");
    spec
}

#[test]
fn the_examples_of_the_tool_run() {
    let write = &of("-w -t 2 -n 3 -N 4 -s 10m -b 5m s3://mybucket")[0];
    let own = [
        ("op", "put"),
        ("dkeys", "24"),
        ("dkey-prefix", "r{12}/d{4%3}/r{12}-f{%4}"),
        ("value-size", "10485760"),
        ("s3-part-size", "5m"),
        ("s3-endpoint", "http://srv1:9000,http://srv2:9000"),
        ("one-pass", "true"),
    ];
    let expected = Spec {
        name: Some("WRITE".to_owned()),
        targets: vec!["s3://mybucket".to_owned()],
        threads: Some(2),
        depth: Some(1),
        warmup: Some(Warmup::None),
        refill: Some(Refill::Full),
        keep: true,
        on_error: Some(OnError::Stop),
        ..with_key(made("object", &own), "AKEY", "SKEY")
    };
    assert_eq!(*write, expected);
    let delete = &of("-F -t 2 -n 3 -N 4 s3://mybucket")[0];
    assert_asks(delete, "op", "remove");
    assert_asks(delete, "no-fill", "true");
    assert!(delete.keep);
}

#[test]
fn phases_run_in_the_order_of_the_tool() {
    let all = of("-F -r -w -d -D --stat --s3listobj 2500 -t 2 -N 100 -s 4k -b 4k bucket");
    let names: Vec<_> = all.iter().filter_map(|spec| spec.name.as_deref()).collect();
    assert_eq!(names, ["WRITE", "HEADOBJ", "LISTOBJ", "READ", "RMOBJECTS"]);
    for (spec, operation) in all.iter().zip(["put", "stat", "list", "get", "remove"]) {
        assert_asks(spec, "op", operation);
        assert_silent(spec, "s3-part-size", "5m");
        assert!(!spec.keep);
    }
    let list = &all[2];
    assert_eq!(list.threads, Some(1));
    assert_asks(list, "dkeys", "2500");
    assert_asks(list, "list-max", "1000");
}

#[test]
fn blocks_below_the_size_are_ranges_of_reads() {
    let read = &of("-r -N 8 -s 16m -b 1m bucket")[0];
    for (name, value) in [("op", "read"), ("read-size", "1m"), ("value-size", "16777216")] {
        assert_asks(read, name, value);
    }
    assert_silent(read, "s3-part-size", "5m");
    let limited = &of("-r -N 8 -s 16m -b 1m --timelimit 5 --limitread 10m bucket")[0];
    assert_eq!((limited.time, limited.count), (Some(Span(5_000_000_000)), Some(8 * 16)));
    assert!((limited.rate.expect("a rate").per_second() - 10.0).abs() < 1e-9);
    let endless = &of("-r -N 8 -s 4k -b 4k --infloop --timelimit 5 bucket")[0];
    assert_eq!(endless.count, None);
    assert_silent(endless, "one-pass", "true");
}

#[test]
fn options_of_servers_and_names() {
    let one = spec(&format!(
        "{HEAD} -w -n 0 -N 5 -s 4k -b 4k --iodepth 8 --s3region eu --s3virtaddr --s3sign 2 --s3objprefix run1/ --s3ignoreerrors bucket/"
    ));
    assert_eq!(one.targets, ["s3://bucket/run1/"]);
    for (name, value) in [
        ("dkey-prefix", "r{5}-f{%5}"),
        ("s3-region", "eu"),
        ("s3-addressing", "virtual-host"),
        ("s3-signing", "headers"),
    ] {
        assert_asks(&one, name, value);
    }
    assert_eq!((one.depth, one.on_error), (Some(8), Some(OnError::Continue)));
    let many = &specs("--s3endpoints srv[1-2]:9000,https://x -w -s 4k -b 4k b")[0];
    assert_asks_all(many, "s3-endpoint", &["https://srv1:9000", "https://srv2:9000", "https://x"]);
    assert!(!format!("{many:?}").contains("S3Key"), "the environment has it");
    let world = Machine::new().text("keys", "# mine\nA:B:C\n");
    let read = run_on("--s3endpoints http://x --s3credfile keys -r -s 1 -b 1 b", &world);
    assert_eq!(with_key(read.specs[0].clone(), "A", "B:C"), read.specs[0]);
    let shown = format!("{:?}", read.specs[0]);
    assert!(shown.contains("S3Key") && !shown.contains("B:C"), "{shown}");
}

#[test]
fn what_cannot_be_or_is_of_others_is_refused() {
    for (line, part) in [
        ("bucket", "no phase"),
        ("-d bucket", "add -w"),
        ("-D -F bucket", "would delete a bucket that this run did not create"),
        ("-w bucket", "no -s/--size"),
        ("-w -s 10m bucket", "smaller than the S3 minimum"),
        ("-r -s 10m -b 3m bucket", "whole number of blocks"),
        ("-w -r -s 10m -b 5m --verify 1 bucket", "whole objects"),
        ("--stat --verify 1 bucket", "--verify requires"),
        ("-w -s 4k b1 b2", "2 buckets"),
        ("-w -s 4k s3://b/object", "names an object"),
        ("-w -s 4k s3://b/object[1-4]", "names an object"),
        ("-w -s 4k s3://", "is not a bucket name"),
        ("-r -s 4k -b 4k --rand b", "--rand applies only to files"),
        ("-r -s 4k -b 4k --direct b", "--direct applies only to files"),
        ("-r -s 4k -b 4k --infloop b", "--timelimit"),
        ("-r -s 4k -b 4k --limitwrite 1m b", "without -w"),
        ("-w -s 4k --s3objprefix %%% b", "%%%"),
        ("-F --s3multidel 1000 b", "only objects of its own"),
        ("-w -s 4k --s3credlist A:B b", "given twice"),
        ("-w -t 4096 -n 4000000000 -N 4000000000 -s 1 -b 1 b", "smaller numbers"),
    ] {
        let error = refusal(&format!("{HEAD} {line}"));
        assert!(error.contains(part) && error.lines().count() == 1, "{line}: {error}");
        assert!(!error.contains("SKEY"), "{error}");
    }
    for (line, part) in [
        ("-r --s3region x /data/file", "applies only to buckets"),
        ("-r --stat /data/file", "applies only to directories"),
        ("--s3endpoints http://x --s3key A --s3secret B -r --dirsharing -s 1 -b 1 b", "leave it out for S3"),
        ("--s3endpoints http://x --s3key A -r -s 1 -b 1 b", "give both"),
        ("--s3endpoints , -r -s 1 -b 1 b", "names no server"),
        ("--s3endpoints http://x --s3credlist A:B,C:D -r -s 1 -b 1 b", "2 keys"),
    ] {
        let error = refusal(line);
        assert!(error.contains(part) && error.lines().count() == 1, "{line}: {error}");
    }
}

/// Operations of a phase on objects of `value_bytes`, 1000 a second at 800 us for 4 s.
fn phase(operation: &str, value_bytes: u64, request: usize, parts: (u64, u64)) -> PhaseRecord {
    let shape =
        ObjectShape { engine: "s3", value_bytes, operations_per_second: 1000.0, latency_ns: 800_000, ..KV };
    let mut phase = object_phase(&shape);
    let mut plan = serde_json::to_value(&phase.plan).expect("JSON");
    for (pointer, value) in [
        ("/mix/0/operation", json!(operation)),
        ("/options/s3_part_size_bytes", json!(parts.0)),
        ("/dataset/records", json!(parts.1)),
    ] {
        let field: Option<&mut Value> = plan.pointer_mut(pointer);
        *field.expect(pointer) = value;
    }
    phase.plan = serde_json::from_value(plan).expect("a plan");
    let classes = phase.samples.workers.iter_mut().flat_map(|worker| &mut worker.classes);
    for name in classes.map(|class| &mut class.class).chain(&mut phase.samples.classes) {
        operation.clone_into(name);
    }
    phase.request = request;
    phase.stage = request;
    phase
}

fn shown(line: &str, phases: Vec<PhaseRecord>) -> Vec<Piece> {
    let mut render = run(&format!("{HEAD} {line}")).render;
    let mut record = sample::record(vec![]);
    let mut pieces = render.begin(&record);
    for phase in phases {
        record.phases.push(phase);
        pieces.extend(render.stage(&record, record.phases.len() - 1));
    }
    pieces.extend(render.end(&record));
    pieces
}

fn rows(line: &str, phases: Vec<PhaseRecord>) -> Vec<String> {
    let text = text_of(&shown(line, phases), &Destination::Stdout);
    let rows = text.lines().skip(2).map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
    rows.collect()
}

#[test]
fn whole_objects_have_one_row_and_parts_another() {
    let whole = rows("-w -s 1m -b 1m --lat b", vec![phase("put", 1 << 20, 0, (0, 1))]);
    assert_eq!(
        whole,
        [
            "WRITE Elapsed time : 4.000s 4.000s",
            "Objects/s : 1000 1000",
            "Throughput MiB/s : 1000 1000",
            "Total MiB : 4000 4000",
            "Objects total : 4000 4000",
            "Objects latency : [ min=640us avg=817us max=3.20ms ]",
            "---",
        ]
    );
    let parts = rows("-w -s 10m -b 5m --lat b", vec![phase("put", 10 << 20, 0, (5 << 20, 1))]);
    let of = |rows: &[String], name: &str| -> f64 {
        let row = rows.iter().find(|row| row.starts_with(name)).unwrap_or_else(|| panic!("{name}: {rows:?}"));
        row.rsplit(' ').next().and_then(|text| text.parse().ok()).expect("a number")
    };
    assert!((of(&parts, "IOPS") / of(&parts, "Objects/s") - 2.0).abs() < 0.01, "{parts:?}");
    let ranges = rows("-r -s 16m -b 1m --lat b", vec![phase("read", 1 << 20, 0, (0, 16))]);
    assert!((of(&ranges, "IOPS") / of(&ranges, "Objects/s") - 16.0).abs() < 0.5, "{ranges:?}");
    assert!(ranges.iter().any(|row| row.starts_with("IO latency")), "{ranges:?}");
}

#[test]
fn requests_without_data_have_no_throughput() {
    let line = "--stat --s3listobj 10 -F --log 1 b";
    let mut phases = vec![
        phase("stat", 4096, 0, (0, 1)),
        phase("list", 4096, 1, (0, 1)),
        phase("remove", 4096, 2, (0, 1)),
    ];
    for class in
        phases.iter_mut().flat_map(|phase| &mut phase.samples.workers).flat_map(|worker| &mut worker.classes)
    {
        class.bytes = 0;
    }
    let rows = rows(line, phases);
    let kinds: Vec<&str> = rows.iter().filter_map(|row| row.split(" :").next()).collect();
    assert_eq!(
        kinds,
        [
            "HEADOBJ Elapsed time",
            "Objects/s",
            "Objects total",
            "---",
            "LISTOBJ Elapsed time",
            "IOPS",
            "IOs total",
            "---",
            "RMOBJECTS Elapsed time",
            "Objects/s",
            "Objects total",
            "---",
        ]
    );
}

#[test]
fn keys_stand_in_no_output() {
    let line = format!("{HEAD} -w -s 4k -b 4k --csvfile c --jsonfile j --resfile r bucket");
    let run = run(&line);
    assert_eq!(run.secrets, ["AKEY", "SKEY"]);
    let pieces = shown(
        "-w -s 4k -b 4k --csvfile c --jsonfile j --resfile r bucket",
        vec![phase("put", 4096, 0, (0, 1))],
    );
    for piece in &pieces {
        let text = String::from_utf8_lossy(&piece.content);
        assert!(!text.contains("SKEY") && !text.contains("AKEY"), "{text}");
    }
    let csv = text_of(&pieces, &Destination::File { path: "c".into(), append: true });
    assert!(csv.contains("***") && csv.contains(",dir,1,1,1,1,1,4096,4096,"), "{csv}");
    let json = text_of(&pieces, &Destination::File { path: "j".into(), append: true });
    let object: serde_json::Value = serde_json::from_str(&json).expect("an object");
    assert!(object["last_done"]["entries/s"].as_f64() > Some(900.0), "{json}");
    let shown =
        crate::without_secrets(&["--s3secret=SKEY".to_owned(), "aSKEY".to_owned()], &["SKEY".to_owned()]);
    assert_eq!(shown, ["--s3secret=***", "aSKEY"]);
    let Ok(Request::Show(_)) = super::super::parse(&["--help-s3".to_owned()], &Machine::new()) else {
        panic!("no help");
    };
}
