//! Records: read or refused in one line; what is read is rendered, whatever its numbers are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use report::compare::{Operand, compare};
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("../samples/record.json");

// Changes to values of a good record, by their place and kind; or, without any, a text of its own.
fuzz_target!(init: {
    registry::register();
    assert!(report::from_json(SAMPLE).is_ok(), "the sample is out of date");
}, |input: (Vec<(u16, u8, u64)>, &str)| {
    let (edits, text) = input;
    if edits.is_empty() {
        check(text);
        return;
    }
    let mut record: Value = serde_json::from_str(SAMPLE).expect("the sample is JSON");
    for &(place, kind, number) in edits.iter().take(8) {
        let mut left = usize::from(place) % count(&record);
        edit(&mut record, &mut left, kind, number);
    }
    check(&record.to_string());
});

fn check(text: &str) {
    match report::from_json(text) {
        Ok(record) => {
            let _ = report::render(&record, 100, true);
            let _ = report::to_csv(&record);
            let _ = report::verdict(&record);
            let _ = (report::compare::points_of(&record), report::compare::load_key(&record));
            let _ = (report::compare::load_words(&record), report::history::series_of(&record));
            let side = Operand { label: String::new(), records: vec![(String::new(), record.clone())] };
            if let Ok(comparison) = compare(&side, &side, false, &[]) {
                let _ = report::compare::render(&comparison, 100, true);
            }
            let again = report::to_json(&record).expect("a record that was read can be written");
            assert!(report::from_json(&again).is_ok());
        }
        Err(error) => assert_eq!(error.lines().count(), 1),
    }
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    }
}

/// Values in a tree, the inner ones included.
fn count(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    };
    inner + 1
}

/// Changes the value that comes after `left` others; true when it was reached.
fn edit(value: &mut Value, left: &mut usize, kind: u8, number: u64) -> bool {
    if *left == 0 {
        change(value, kind, number);
        return true;
    }
    *left -= 1;
    children(value).into_iter().any(|child| edit(child, left, kind, number))
}

fn change(value: &mut Value, kind: u8, number: u64) {
    match (value, kind % 8) {
        (Value::Array(items), 0) => items.truncate(number as usize % (items.len() + 1)),
        (Value::Array(items), 1) => {
            let copy = items.first().cloned();
            items.extend(copy);
        }
        (Value::Array(items), _) => items.reverse(),
        (value @ Value::Number(_), 0..=3) => *value = json!(number),
        (value @ Value::Number(_), 4) => *value = json!(f64::from_bits(number)),
        (value @ Value::Number(_), 5) => *value = json!(number % 64),
        (value @ Value::Bool(_), _) => *value = json!(number.is_multiple_of(2)),
        (value @ Value::String(_), 0..=3) => *value = json!(format!("{number:x}\n\u{1b}[31m\"{number}")),
        (value, 6) => *value = Value::Null,
        (value @ Value::Null, _) => *value = json!(number),
        _ => {}
    }
}
