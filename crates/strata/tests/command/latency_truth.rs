//! Latencies held against the log of a file with declared service times.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use testkit::{Arrival, SlowFile};

use crate::loads::is_available;
use crate::support::{Scratch, skipped};

/// 3 % of the reads take as long as the run, and are more than 1 % of what was due: the 99th percentile is one of them.
#[test]
fn what_is_in_flight_at_the_end_is_in_the_latencies() {
    let scratch = Scratch::new();
    let directory = scratch.join("slow");
    fs::create_dir(&directory).unwrap();
    let time = |arrival: &Arrival| Duration::from_millis(if arrival.number % 33 == 20 { 2000 } else { 2 });
    let file = match SlowFile::mount(&directory, 1 << 20, 0, time) {
        Ok(file) => file,
        Err(error) => return skipped("latency_truth", &format!("FUSE cannot be mounted here: {error}")),
    };
    let path = file.path().display();
    let words = format!("media {path} --op randread -b 4k -e psync -t 64 --rate 500 --time 2s --warmup none");
    let (ended, record) = scratch.measure(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let summary = &record["phases"][0]["summary"];
    let latency = &summary["total"]["latency"];
    let (p99, max) = (latency["p99_ns"].as_u64().unwrap_or(0), latency["max_ns"].as_u64().unwrap());
    assert!(p99 >= 1_990_000_000, "{latency}");
    let longest = file.served().iter().map(|served| served.latency).max().unwrap();
    assert!(u128::from(max) >= longest.as_nanos(), "{max} after {longest:?}");
    assert!(summary["drained_operations"].as_u64().unwrap() > 0);
    assert!(ended.stdout.contains("waited "), "{}", ended.stdout);
    // Time in flight, from the file's own log: never less than what it served within two seconds.
    let within = |served: &testkit::Served| {
        let until = Duration::from_secs(2);
        (served.arrival.at + served.latency).min(until).saturating_sub(served.arrival.at.min(until))
    };
    let in_flight = file.served().iter().map(within).sum::<Duration>().as_secs_f64() / 2.0;
    let told = summary["concurrency"].as_f64().unwrap();
    assert!(told > 0.8 * in_flight, "{told} of {in_flight}");
}

fn is_doubted(phase: &Value, kind: &str, detail: &str) -> bool {
    let doubts = phase["doubts"].as_array().unwrap();
    doubts.iter().any(|doubt| doubt["kind"] == kind && doubt["detail"].as_str().unwrap().contains(detail))
}

/// 0.4 % of the reads of an open loop hang until after its end: what completes is as even as ever.
#[test]
fn a_rate_beside_which_ever_more_hangs_is_not_steady() {
    let scratch = Scratch::new();
    if !is_available(&scratch, "io_uring") {
        return;
    }
    let directory = scratch.join("slow");
    fs::create_dir(&directory).unwrap();
    let (each, hang) = (Duration::from_millis(2), Duration::from_secs(5));
    let time = move |arrival: &Arrival| if arrival.number % 250 == 249 { hang } else { each };
    let file = match SlowFile::mount(&directory, 1 << 20, 0, time) {
        Ok(file) => file,
        Err(error) => return skipped("latency_truth", &format!("FUSE cannot be mounted here: {error}")),
    };
    let words = format!(
        "media {} --op randread -b 4k --direct -e io_uring -q 4096 --rate 500 --time 4s --warmup none",
        file.path().display()
    );
    let (ended, record) = scratch.measure(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let phase = &record["phases"][0];
    let steady = &phase["summary"]["steady"];
    assert_eq!(steady["is_steady"], false, "{steady}");
    // A busy machine may have made the rate uneven as well: that is told first.
    let is_told = is_doubted(phase, "not_steady", "more and more operations hang");
    assert!(is_told || steady["reason"] != "hanging_grows", "{steady}: {}", phase["doubts"]);
    assert!(
        ["; steady from", "; steady after"].iter().all(|told| !ended.stdout.contains(told)),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_stall_that_is_doubted_is_not_steady_in_the_record() {
    let scratch = Scratch::new();
    let directory = scratch.join("slow");
    fs::create_dir(&directory).unwrap();
    // From the 100th read on for 300 ms.
    let stall: OnceLock<Duration> = OnceLock::new();
    let time = move |arrival: &Arrival| {
        let each = Duration::from_millis(1);
        if arrival.number < 100 {
            return each;
        }
        let end = *stall.get_or_init(|| arrival.at + Duration::from_millis(300));
        end.saturating_sub(arrival.at).max(each)
    };
    let file = match SlowFile::mount(&directory, 1 << 20, 0, time) {
        Ok(file) => file,
        Err(error) => return skipped("latency_truth", &format!("FUSE cannot be mounted here: {error}")),
    };
    let words = format!("media {} --op randread -b 4k -e psync -t 4 --time 2500ms", file.path().display());
    let (ended, record) = scratch.measure(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let phase = &record["phases"][0];
    assert!(is_doubted(phase, "not_steady", "no operation completed for"), "{}", phase["doubts"]);
    assert_eq!(phase["summary"]["steady"]["is_steady"], false);
}
