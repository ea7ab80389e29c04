//! Records of all layers as JSON, and their schema.

mod fields;

use object::sample::{KV, object_phase};
use proptest::prelude::*;
use report::record::{Record, Status};
use report::sample::{self, DRIVE};
use report::{from_json, schema, to_json};

const SCHEMA_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/record.schema.json");
const RECORD_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/record.md");

fn records() -> Vec<Record> {
    registry::register();
    use workload::spec::Operation;
    let mut partial = sample::record(vec![sample::phase(&DRIVE)]);
    partial.status = Status::Partial;
    partial.failure = Some("no space left\non device".to_owned());
    let mut recipes = sample::record(vec![sample::phase(&DRIVE)]);
    recipes.recipes = Some(sample::recipes());
    vec![
        sample::record(vec![]),
        partial,
        sample::ladder(&[1, 8], 20_000.0, 100_000.0),
        network::sample::failing_endpoint(),
        network::sample::matrix(3, &[]),
        recipes,
        sample::record(vec![object_phase(&KV)]),
        sample::stack(&[
            ("memory", Operation::Read, 1 << 20, 9000.0),
            ("media", Operation::Read, 1 << 20, 900.0),
        ]),
    ]
}

#[test]
fn what_is_written_reads_back_the_same() {
    for record in records() {
        let text = to_json(&record).unwrap();
        assert_eq!(from_json(&text).unwrap(), record);
        let plain: Record = serde_json::from_value(serde_json::to_value(&record).unwrap()).unwrap();
        assert_eq!(plain, record, "the layout changes nothing");
    }
}

/// Fields that records have not had from the beginning: those that fall back to a default.
const LATER: &[(&str, &[&str])] = &[
    ("", &["recipes"]),
    ("/phases/0", &["stage", "request", "is_read_back"]),
    ("/phases/0/plan", &["verify_run", "layout"]),
    ("/phases/0/plan/options", &["sync_call"]),
    ("/phases/0/plan/load", &["think", "start_delay_ns", "end_others", "split_latency", "cores_policy"]),
    (
        "/phases/0/observations",
        &[
            "other_cpus_user",
            "stolen_cpus",
            "major_faults",
            "minor_faults",
            "kernel_worker_cpu_ns",
            "devices",
            "servers",
            "tcp_retransmitted_segments",
            "tcp_sent_segments",
            "links",
            "store",
        ],
    ),
    ("/phases/0/samples/workers/0", &["depths", "origin", "parts", "tallies"]),
    ("/phases/0/samples/workers/0/classes/0", &["submission", "completion"]),
    ("/phases/0/summary/total", &["submission", "completion"]),
];

#[test]
fn a_record_from_before_still_loads() {
    registry::register();
    let record = sample::record(vec![sample::phase(&DRIVE)]);
    let mut old = serde_json::to_value(&record).unwrap();
    for (place, fields) in LATER {
        let object = old.pointer_mut(place).and_then(|value| value.as_object_mut());
        let object = object.unwrap_or_else(|| panic!("no {place}"));
        for field in *fields {
            assert!(object.remove(*field).is_some(), "{place} has no {field}");
        }
    }
    assert_eq!(from_json(&old.to_string()).unwrap(), record);
}

#[test]
fn histograms_and_intervals_keep_to_one_line() {
    let text = to_json(&records()[1]).unwrap();
    assert!(
        text.starts_with("{\n  \"schema_version\": 1,\n  \"strata_version\": \"0.1.0\",\n"),
        "{}",
        &text[..200]
    );
    assert!(
        text.contains("\n  \"command_line\": [\"strata\",\"media\",\"/data/file\",\"--op\",\"randread\"],\n")
    );
    assert!(text.ends_with("}\n"));
    let latency: Vec<_> =
        text.lines().filter(|line| line.trim_start().starts_with("\"latency\": {")).collect();
    // 4 workers, the class and the total of the summary.
    assert_eq!(latency.len(), 6);
    let first = latency[0].trim().trim_end_matches(',');
    assert!(
        first.starts_with("\"latency\": {\"buckets\":[[256000,") && first.ends_with("\"saturated\":0}"),
        "{first}"
    );
    let points = text.lines().filter(|line| line.trim_start().starts_with("{\"start_ns\":")).count();
    assert_eq!(points, sample::INTERVALS as usize);
    assert!(text.contains("\n      \"notes\": [],\n"));
}

#[test]
fn versions_are_told_apart() {
    let text = to_json(&records()[0]).unwrap();
    let with = |version: &str| from_json(&text.replacen("\"schema_version\": 1", version, 1)).unwrap_err();
    assert_eq!(
        with("\"schema_version\": 2"),
        "record of schema version 2, but this strata reads version 1: use a newer strata"
    );
    assert_eq!(
        with("\"schema_version\": 0"),
        "record of schema version 0, but this strata reads version 1: use the strata that wrote it"
    );
    assert_eq!(
        from_json("{\"schema_version\": 9, \"phases\": 7}").unwrap_err(),
        "record of schema version 9, but this strata reads version 1: use a newer strata"
    );
}

#[test]
fn refusals_are_one_line() {
    let text = to_json(&records()[0]).unwrap();
    for (broken, start) in [
        (String::new(), "not a record of strata: EOF while parsing"),
        ("[]".to_owned(), "not a record of strata: "),
        ("{}".to_owned(), "not a record of strata: missing field `schema_version`"),
        (
            text.replacen("\"complete\"", "\"com\\nplete\"", 1),
            "damaged record: unknown variant `com\\nplete`",
        ),
        (text[..text.len() / 2].to_owned(), "not a record of strata: EOF"),
    ] {
        let error = from_json(&broken).unwrap_err();
        assert!(error.starts_with(start), "{error}");
        assert!(!error.contains(char::is_control), "{error}");
    }
}

#[test]
fn unknown_fields_of_later_strata_are_passed_over() {
    let text = to_json(&records()[0]).unwrap();
    let extended = text.replacen("\"seed\": 42", "\"seed\": 42, \"sprout\": [1]", 1);
    assert_eq!(from_json(&extended).unwrap(), records()[0]);
}

/// Writes the file anew when UPDATE_SCHEMA is 1, and gives what it holds.
fn kept(path: &str, text: &str) -> String {
    if std::env::var_os("UPDATE_SCHEMA").is_some_and(|value| value == "1") {
        std::fs::write(path, text).unwrap();
    }
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_schema_file_is_up_to_date() {
    registry::register();
    let file = kept(SCHEMA_FILE, &(serde_json::to_string_pretty(&schema()).unwrap() + "\n"));
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert!(file == schema(), "docs/record.schema.json is out of date: run this test with UPDATE_SCHEMA=1");
}

#[test]
fn the_fields_in_the_docs_are_up_to_date() {
    registry::register();
    let page = std::fs::read_to_string(RECORD_PAGE).unwrap();
    let start = page.find(fields::START).unwrap() + fields::START.len();
    let text = format!("{}{}", &page[..start], fields::markdown(&schema()));
    let file = kept(RECORD_PAGE, &text);
    assert!(file == text, "docs/record.md is out of date: run this test with UPDATE_SCHEMA=1");
}

#[test]
fn records_follow_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for record in records() {
        let value = serde_json::from_str(&to_json(&record).unwrap()).unwrap();
        let faults: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
    let mut broken = serde_json::to_value(&records()[1]).unwrap();
    broken["phases"][0]["summary"]["total"]["operations"] = "many".into();
    assert!(!validator.is_valid(&broken));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        prop_assert!(from_json(&text).is_err());
    }

    #[test]
    fn any_damage_is_survived(at in 0.0..1.0f64, bytes in prop::collection::vec(any::<u8>(), 0..4)) {
        let mut text = to_json(&sample::record(vec![])).unwrap().into_bytes();
        let at = (text.len() as f64 * at) as usize;
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
        if let Ok(record) = from_json(&String::from_utf8_lossy(&text)) {
            prop_assert!(!report::render(&record, 80, true).is_empty());
            prop_assert!(!report::to_csv(&record).is_empty());
        }
    }
}
