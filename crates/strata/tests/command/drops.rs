//! A target whose service times change within the run: a FUSE file that serves so many operations in one time and all that follow in
//! another, as a drive does whose write cache is used up. Its log says what strata should have seen.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testkit::{Arrival, SlowFile};

use crate::support::{Ended, Scratch, skipped, undisturbed};

const THREADS: u32 = 8;

/// A file that takes `first` for each of `count` operations and `then` for what follows; none where FUSE cannot be mounted.
fn mounted(test: &str, directory: &Path, (count, first, then): (u64, u64, u64)) -> Option<SlowFile> {
    fs::create_dir_all(directory).unwrap();
    let time =
        move |arrival: &Arrival| Duration::from_millis(if arrival.number < count { first } else { then });
    match SlowFile::mount(directory, 1 << 20, 0, time) {
        Ok(file) => Some(file),
        Err(error) => {
            skipped(test, &format!("FUSE cannot be mounted here: {error}"));
            None
        }
    }
}

/// By a count and not by time, so that a busy machine, which makes all of it slower, leaves the course as it is.
fn read(scratch: &Scratch, file: &SlowFile, count: u64) -> (Ended, Value) {
    let path = file.path().display();
    scratch.measure(&format!("media {path} --op randread -b 4k -e psync -t {THREADS} --count {count}"))
}

fn detail<'a>(record: &'a Value, kind: &str) -> Option<&'a str> {
    let doubts = record["phases"][0]["doubts"].as_array().unwrap();
    doubts.iter().find(|doubt| doubt["kind"] == kind).map(|doubt| doubt["detail"].as_str().unwrap())
}

/// Operations a second that arrived from the one of this number up to the one of that, as the log has it.
fn arrived_per_second(file: &SlowFile, from: u64, to: u64) -> f64 {
    let served = file.served();
    let at = |number: u64| {
        let found = served.iter().find(|served| served.arrival.number == number);
        found.unwrap_or_else(|| panic!("no {number}")).arrival.at.as_secs_f64()
    };
    (to - from) as f64 / (at(to) - at(from))
}

/// Whether the log has one rate from the operation of this number up to that of that one: its quarters are within this ratio.
fn is_level(file: &SlowFile, from: u64, to: u64, ratio: f64) -> bool {
    let quarter = (to - from) / 4;
    let rates = (0..4).map(|at| arrived_per_second(file, from + at * quarter, from + (at + 1) * quarter));
    let (least, most) =
        rates.fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    most <= ratio * least
}

/// A run over a file of this shape whose log says that the file went as it was declared to: at one rate, within this ratio, up to
/// `shape.0`, and at one after it.
fn as_declared(
    test: &str,
    scratch: &Scratch,
    (shape, ratio): ((u64, u64, u64), f64),
    count: u64,
) -> Option<(SlowFile, Ended, Value)> {
    undisturbed(test, || {
        let file = mounted(test, &scratch.join("slow"), shape)?;
        let (ended, record) = read(scratch, &file, count);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let last = file.served().len() as u64 - 1;
        let levels = [(0, shape.0), (shape.0, last)].into_iter().filter(|(from, to)| from < to);
        let is_undisturbed = levels.into_iter().all(|(from, to)| is_level(&file, from, to, ratio));
        is_undisturbed.then_some((file, ended, record))
    })
}

#[test]
fn a_device_that_becomes_slower_is_told() {
    let scratch = Scratch::new();
    let name = "a_device_that_becomes_slower_is_told";
    let Some((file, ended, record)) = as_declared(name, &scratch, ((1600, 10, 30), 1.15), 2400) else {
        return;
    };
    let told = detail(&record, "rate_dropped").unwrap_or_else(|| panic!("{}", ended.stdout));
    assert!(told.contains("MiB done)"), "{told}");
    assert_eq!(detail(&record, "not_steady"), None, "told once");
    let summary = &record["phases"][0]["summary"];
    let figure = |value: &Value| value.as_f64().unwrap();
    let near = |found: f64, truth: f64, within: f64| (found / truth - 1.0).abs() < within;
    // How much was done: to within an interval or two.
    let done = figure(&summary["dropped"]["operations"]);
    assert!(near(done, 1600.0, 0.1), "{done} of 1600");
    let levels = &summary["steady"]["drop"];
    let (before, after) =
        (figure(&levels["operations_per_second_before"]), figure(&levels["operations_per_second_after"]));
    let last = file.served().len() as u64 - 1;
    let (true_before, true_after) =
        (arrived_per_second(&file, 0, 1600), arrived_per_second(&file, 1600, last));
    assert!(
        near(before, true_before, 0.1) && near(after, true_after, 0.1),
        "{levels}: {true_before} {true_after}"
    );
    // The fast part is in the figures.
    assert_eq!(figure(&summary["window_start_ns"]), 0.0);
    // All of it is, but for what the other workers did when the first had done its share.
    let (end_ns, first_done_ns) =
        (figure(&summary["window_end_ns"]), figure(&summary["first_done"]["elapsed_ns"]));
    let interval_ns = figure(&record["phases"][0]["samples"]["series"]["interval_ns"]);
    assert!((end_ns - first_done_ns).abs() <= 1.2 * interval_ns, "{end_ns} {first_done_ns}");
    let left_out = figure(&summary["total"]["operations"]) - figure(&summary["total"]["window_operations"]);
    let share = 2400.0 / f64::from(THREADS);
    assert!(left_out < share, "{left_out} of {share} a worker");
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("after: the results include both parts") && !text.contains("is excluded"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_device_that_stays_as_it_is() {
    let scratch = Scratch::new();
    let name = "a_device_that_stays_as_it_is";
    let Some((_file, ended, record)) = as_declared(name, &scratch, ((0, 20, 20), 1.04), 1200) else { return };
    assert_eq!(detail(&record, "rate_dropped"), None, "{}", ended.stdout);
}

#[test]
fn a_device_that_becomes_faster_late_is_not_steady() {
    let scratch = Scratch::new();
    let shape = (1000, 24, 6);
    let name = "a_device_that_becomes_faster_late_is_not_steady";
    let Some(file) = mounted(name, &scratch.join("slow"), shape) else { return };
    // The first 1000 take more than half of the run, so that they are no warm-up.
    let (ended, record) = read(&scratch, &file, 2400);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(detail(&record, "not_steady").is_some(), "{}", ended.stdout);
    assert!(
        ["steady from", "steady after"].iter().all(|told| !ended.stdout.contains(told)),
        "{}",
        ended.stdout
    );
    assert_eq!(detail(&record, "rate_dropped"), None, "{}", ended.stdout);
}
