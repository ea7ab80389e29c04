//! The schema of records with all layers of this build, and its files.

mod fields;

use report::record::Record;
use report::{from_json, schema, to_json};

const SCHEMA_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/record.schema.json");
const RECORD_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/record.md");

fn records() -> Vec<Record> {
    registry::register();
    vec![network::sample::failing_endpoint(), network::sample::matrix(3, &[])]
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
fn what_is_written_reads_back_the_same() {
    for record in records() {
        let text = to_json(&record).unwrap();
        assert_eq!(from_json(&text).unwrap(), record);
        let plain: Record = serde_json::from_value(serde_json::to_value(&record).unwrap()).unwrap();
        assert_eq!(plain, record, "the layout changes nothing");
    }
}

#[test]
fn records_follow_the_schema() {
    let records = records();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for record in records {
        let value = serde_json::from_str(&to_json(&record).unwrap()).unwrap();
        let faults: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}
