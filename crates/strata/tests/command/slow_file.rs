//! Loads on a file with declared service times: what it serves is known beforehand, and told by its own log.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Served, SlowFile};

use crate::loads::is_available;
use crate::support::{Ended, Loop, NO_ROOT, Scratch, skipped, total, undisturbed};

/// Service time of an operation. Long enough that what a busy machine adds to it does not hide it.
const SERVICE: Duration = Duration::from_millis(5);

/// A file of 16 MiB at the directory `mount`, `stations` operations at a time; none where it cannot be had.
fn slow_file(scratch: &Scratch, test: &str, stations: usize) -> Option<SlowFile> {
    if !is_available(scratch, "io_uring") {
        return None;
    }
    let directory = scratch.join("mount");
    std::fs::create_dir_all(&directory).unwrap();
    match SlowFile::mount(&directory, 16 << 20, stations, |_| SERVICE) {
        Ok(file) => Some(file),
        Err(error) => {
            skipped(test, &format!("FUSE cannot be mounted here: {error}"));
            None
        }
    }
}

fn kinds(phase: &Value) -> Vec<&str> {
    phase["doubts"].as_array().unwrap().iter().map(|doubt| doubt["kind"].as_str().unwrap()).collect()
}

/// Operations that the file served a second over the last two thirds of so many of its operations.
fn served_per_second(served: &[Served]) -> f64 {
    let ends: Vec<f64> = served.iter().map(|one| (one.arrival.at + one.latency).as_secs_f64()).collect();
    let from = ends.len() / 3;
    (ends.len() - 1 - from) as f64 / (ends[ends.len() - 1] - ends[from])
}

/// Whether the file kept to its times, by its log: operations that found a free station took what was declared.
fn kept_time(served: &[Served]) -> bool {
    let in_time = served.iter().filter(|one| one.latency < 2 * SERVICE).count();
    in_time as f64 > 0.95 * served.len() as f64
}

/// Runs at rates below and above what a file of 4 stations serves, 800 a second, which kept to its times: for each the rate, how the run
/// ended, and operations a second by the file's log.
fn runs_at_rates(scratch: &Scratch, test: &str) -> Option<Vec<(u32, Ended, f64)>> {
    undisturbed(test, || {
        let file = slow_file(scratch, test, 4)?;
        // The queue takes all that is due: a start says nothing.
        let runs = [400, 1000, 1500].map(|rate| {
            let words = format!(
                "media mount/data --op randread --direct -e io_uring -q 4096 --rate {rate} --time 2s --json {rate}.json"
            );
            let before = file.served().len();
            let end = scratch.run(&words);
            assert_eq!(end.code, Some(0), "{}", end.stderr);
            let served = &file.served()[before..];
            let is_good = if rate < 800 { kept_time(served) } else { served_per_second(served) > 0.95 * 800.0 };
            (is_good, (rate, end, served_per_second(served)))
        });
        runs.iter().all(|(is_good, _)| *is_good).then(|| runs.map(|(_, run)| run).into())
    })
}

#[test]
fn served_means_completed_and_nothing_piled_up() {
    let scratch = Scratch::new();
    let name = "served_means_completed_and_nothing_piled_up";
    for (rate, end, served_per_second) in runs_at_rates(&scratch, name).unwrap_or_default() {
        let record = crate::support::read_record(&scratch.join(&format!("{rate}.json")));
        let phase = &record["phases"][0];
        let arrivals = &phase["arrivals"];
        assert_eq!(arrivals["unserved_operations"], 0, "{rate}: all were started");
        let is_overloaded = rate > 800;
        assert_eq!(arrivals["backlog_grows"], is_overloaded, "{rate}: {arrivals}");
        assert_eq!(kinds(phase).contains(&"arrivals_unserved"), is_overloaded, "{rate}: {:?}", kinds(phase));
        let (completed, growth) = (
            arrivals["completed_per_second"].as_f64().unwrap(),
            arrivals["backlog_growth_per_second"].as_f64().unwrap(),
        );
        if is_overloaded {
            assert_eq!(phase["summary"]["steady"]["is_steady"], false, "{rate}");
            assert!(end.stdout.contains("the queue grows by"), "{rate}: {}", end.stdout);
            assert!(
                (completed / served_per_second - 1.0).abs() < 0.1,
                "{rate}: {completed} {served_per_second}"
            );
            assert!(
                ((completed + growth) / f64::from(rate) - 1.0).abs() < 0.1,
                "{rate}: {completed} {growth}"
            );
        }
    }
}

#[test]
fn a_ladder_of_rates_ends_where_they_are_no_longer_served() {
    let scratch = Scratch::new();
    let name = "a_ladder_of_rates_ends_where_they_are_no_longer_served";
    let climbed = undisturbed(name, || {
        let file = slow_file(&scratch, name, 4)?;
        let (ended, record) = scratch.measure(
            "media mount/data --op randread --direct -e io_uring -q 4096 --ladder rate=200,400,1000,1500 --time 1500ms",
        );
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        // The rungs of 200 and 400 a second, but for their ends.
        kept_time(&file.served()[..800]).then_some((ended, record))
    });
    let Some((ended, record)) = climbed else { return };
    let steady = |phase: usize| &record["phases"][phase]["summary"]["steady"]["is_steady"];
    assert_eq!([steady(2), steady(3)], [&json!(false), &json!(false)]);
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("served all rates up to 400/s"), "{text}");
    assert!(text.contains("; of 1.00k/s requested, only") && text.contains("and the queue grows"), "{text}");
    let csv = scratch.run("report --csv record.json");
    assert_eq!(csv.code, Some(0), "{}", csv.stderr);
    let rows: Vec<_> = csv.stdout.lines().filter(|line| line.contains(",total,")).collect();
    let doubted = rows.iter().filter(|row| row.contains(",false,") && row.contains("arrivals_unserved"));
    assert_eq!(doubted.count(), 2, "{rows:?}");
}

/// Operations that the file had in service at once when it had most, by its log alone: the highest rate that it served over 300 ms,
/// times the service time that the first ones, alone in it, took.
fn in_service_max(served: &[Served]) -> f64 {
    let alone = served.iter().take(50).map(|one| one.latency.as_secs_f64()).sum::<f64>() / 50.0;
    let ends: Vec<f64> = served.iter().map(|one| (one.arrival.at + one.latency).as_secs_f64()).collect();
    let within = |from: usize| ends[from..].partition_point(|end| *end < ends[from] + 0.3);
    (0..ends.len()).map(within).max().unwrap() as f64 / 0.3 * alone
}

/// A climb over a file of 8 stations that was kept busy, as its log says, and what was in flight at them then.
fn climb(scratch: &Scratch, test: &str) -> Option<(Ended, Value, f64)> {
    undisturbed(test, || {
        let file = slow_file(scratch, test, 8)?;
        let (ended, record) =
            scratch.measure("media mount/data --op randread --direct -e io_uring --saturate --time 600ms");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let width = in_service_max(&file.served());
        ((width / 8.0 - 1.0).abs() < 0.15).then_some((ended, record, width))
    })
}

#[test]
fn saturation_finds_the_number_of_stations() {
    let scratch = Scratch::new();
    let name = "saturation_finds_the_number_of_stations";
    let Some((ended, record, width)) = climb(&scratch, name) else { return };
    let ladder = &record["ladder"];
    let knee = &ladder["knee"];
    let concurrency = knee["concurrency"].as_f64().unwrap();
    assert!(concurrency >= 0.9 * width, "{knee}");
    let rungs: Vec<u64> =
        ladder["phases"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect();
    let load = |at: &u64| {
        let load = &record["phases"][*at as usize]["plan"]["load"];
        (load["threads"].as_u64().unwrap(), load["depth"].as_u64().unwrap())
    };
    let loads: Vec<_> = rungs.iter().map(load).collect();
    assert!(loads.is_sorted(), "{loads:?}");
    // What a busy machine adds moves the knee up, but never by a doubling: the rung below it was measured, and gave less.
    let at = knee["index"].as_u64().unwrap() as usize;
    let below = loads[at - 1];
    assert_eq!(below.0, loads[at].0, "{loads:?}");
    assert!(loads[at].1 - below.1 <= 1.max(below.1 / 8), "{loads:?} {knee}");
    let refined = ladder["refined"].as_array().unwrap();
    assert!(!refined.is_empty() && refined.iter().all(|at| !load(&at.as_u64().unwrap()).1.is_power_of_two()));
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in flight would be enough: the highest rate"), "{text}");
    assert!(ended.stdout.lines().any(|line| line.trim_end().ends_with("between")), "{}", ended.stdout);
    assert!(total(&record, 0, "operations").as_u64().unwrap() > 0);
}

#[test]
fn saturation_keeps_the_load_that_was_asked_for() {
    let scratch = Scratch::new();
    let batches = |words: &str| -> Vec<[u64; 4]> {
        let record = scratch.measured(&format!("media {words} --op randread --saturate --time 20ms"));
        let phases = record["phases"].as_array().unwrap();
        let loads = phases.iter().map(|phase| &phase["plan"]["load"]);
        let of = |load: &Value| {
            ["depth", "batch", "batch_min", "batch_max"].map(|name| load[name].as_u64().unwrap())
        };
        loads.map(of).collect()
    };
    let asked = batches("null: -q 4 --batch 2 --batch-min 2 --batch-max 3");
    assert!(asked.len() > 2 && asked.iter().all(|load| load[1..] == [2, 2, 3]), "{asked:?}");
    let open = batches("null:");
    assert!(
        open.iter().all(|&[depth, batch, least, most]| [batch, least, most] == [depth, 1, depth]),
        "{open:?}"
    );
    // Past the page cache, a plain run of any depth hands operations over one at a time.
    let direct = scratch.run("media file -s 1m --op randread --direct --count 10");
    if direct.code != Some(0) {
        return skipped("saturation_keeps_the_load_that_was_asked_for", &direct.stderr);
    }
    let direct = batches("file -s 1m --direct");
    assert!(direct.iter().all(|load| load[1] == 1) && direct.iter().any(|load| load[0] > 1), "{direct:?}");
}

#[test]
fn a_rate_as_a_share_is_of_what_saturation_finds() {
    let scratch = Scratch::new();
    let name = "a_rate_as_a_share_is_of_what_saturation_finds";
    let Some(file) = slow_file(&scratch, name, 4) else { return };
    let words =
        "media mount/data --op randread --direct -e io_uring --rate 50% --arrivals poisson --count 600";
    let (ended, record) = scratch.measure(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let phases = record["phases"].as_array().unwrap();
    let rungs: Vec<usize> = record["ladder"]["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at.as_u64().unwrap() as usize)
        .collect();
    assert_eq!(rungs.len(), phases.len() - 1, "the climb, and the open loop behind it");
    let rate = |at: &usize| total(&record, *at, "operations_per_second").as_f64().unwrap();
    let (highest_at, highest) =
        rungs.iter().map(|at| (*at, rate(at))).max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
    let load = |at: usize| &phases[at]["plan"]["load"];
    let open = load(phases.len() - 1);
    let asked = open["arrivals"]["rate_per_second"].as_f64().unwrap();
    assert!((asked / (highest / 2.0) - 1.0).abs() < 1e-6, "{asked} of {highest}");
    assert_eq!(open["arrivals"]["kind"], "poisson");
    assert_eq!(
        [&open["threads"], &open["depth"]],
        [&load(highest_at)["threads"], &load(highest_at)["depth"]]
    );
    // The limit is that of the open loop; the steps of the climb are timed.
    assert_eq!(total(&record, phases.len() - 1, "operations"), 600);
    assert!(
        rungs.iter().all(|&at| load(at)["limit"]["operations"].is_null() && load(at)["arrivals"].is_null())
    );
    assert!(file.served().len() > 600);
    let shown = ended.stdout.find("randread at 50%").expect("the open loop");
    assert!(ended.stdout.find("to saturation").expect("the climb") < shown, "{}", ended.stdout);
}

#[test]
fn a_share_that_cannot_be_is_refused() {
    let scratch = Scratch::new();
    for (words, told) in [
        ("--op nop --rate 0%", "above 0% and up to 100%"),
        ("--op nop --rate 101%", "above 0% and up to 100%"),
        ("--op nop --rate x%", "above 0% and up to 100%"),
        ("--op nop --rate 70% --ladder depth=1,2", "leave out --ladder"),
        ("--op nop --rate 70% --hosts local:2", "operations per second"),
        ("--rate 70% --op read,nop", "one --op"),
    ] {
        let ended = scratch.run(&format!("media null: {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stdout);
        assert!(ended.stderr.contains(told), "{words}: {}", ended.stderr);
    }
}

/// The kernel says how much it was handed, and not that the time was up, where one call does both: the driver waited again then, and
/// operations left up to a service time late.
#[test]
fn operations_of_an_open_loop_leave_when_they_are_due() {
    let scratch = Scratch::new();
    let test = "operations_of_an_open_loop_leave_when_they_are_due";
    let Some(_file) = slow_file(&scratch, test, 0) else { return };
    let late_ns = |words: &str| {
        let load = "media mount/data --op randread --direct --rate 300 --arrivals poisson --time 2s";
        let record = scratch.measured(&format!("{load} {words}"));
        record["phases"][0]["summary"]["lateness"]["p90_ns"].as_u64().unwrap()
    };
    // It was 1.5 ms for 6 us. What else loads the machine delays the threads of psync as well.
    let late: Vec<(u64, u64)> =
        (0..3).map(|_| (late_ns("-e io_uring -q 16"), late_ns("-e psync -t 8"))).collect();
    assert!(late.iter().any(|&(uring, threads)| uring < threads + 500_000), "{late:?}");
}

/// The block layer has the time of a drive by itself: what its requests take is the drive's, and only with requests that are the operations.
#[test]
fn the_time_of_a_drive_is_told_from_the_rest() {
    let scratch = Scratch::new();
    let test = "the_time_of_a_drive_is_told_from_the_rest";
    let Some(file) = slow_file(&scratch, test, 0) else { return };
    let Some(drive) = Loop::over(file.path(), &["--direct-io=on"]) else { return skipped(test, NO_ROOT) };
    let told = |words: &str| {
        let load = format!("media {} --direct --time 1s {words}", drive.device);
        let ended = scratch.run(&load);
        assert_eq!(ended.code, Some(0), "{load}: {}", ended.stderr);
        ended.stdout.lines().find_map(|line| line.strip_prefix("spent ").map(|rest| rest.trim().to_owned()))
    };
    let name = drive.device.trim_start_matches("/dev/");
    for load in ["--op randread -b 4k -e psync", "--op randread -b 4k -e io_uring -q 8"] {
        let line = told(&format!("{load} --split-latency")).expect("a line");
        assert!(line.starts_with("read: ") && line.contains(&format!("of the time in {name} (")), "{line}");
        let share: u32 = line["read: ".len()..].split(' ').next().unwrap().parse().unwrap();
        assert!((50..=100).contains(&share), "{line}");
        assert_eq!(told(load), None, "it was not asked for");
    }
}
