//! Output of fio's command line while jobs run: results so far, and progress.

use serde_json::Value;

use crate::support::Scratch;

/// The JSON objects of an output, one after the other.
fn objects(text: &str) -> Vec<Value> {
    let start = text.find('{').unwrap_or(0);
    serde_json::Deserializer::from_str(&text[start..]).into_iter().map(Result::unwrap).collect()
}

#[test]
fn results_so_far_come_in_intervals_and_grow() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --name=a --ioengine=null --size=100g --rw=read --rate_iops=500 --runtime=3 --time_based --status-interval=1 \
         --name=b --stonewall --ioengine=null --size=4k --rw=write --output-format=json",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let all = objects(&ended.stdout);
    assert!((2..=4).contains(&all.len()), "two or three on the way, and the last: {}", all.len());
    let done: Vec<u64> =
        all.iter().map(|one| one["jobs"][0]["read"]["total_ios"].as_u64().unwrap()).collect();
    assert!(done.is_sorted() && done[0] > 0 && done[0] < *done.last().unwrap(), "{done:?}");
    let first = &all[0]["jobs"];
    assert!(
        first[0]["read"]["clat_ns"]["percentile"]["99.000000"].as_u64().is_some(),
        "{}",
        first[0]["read"]
    );
    let waits = (&first[1]["error"], &first[1]["write"]["total_ios"]);
    assert_eq!(waits, (&0.into(), &0.into()), "a job that has not begun has not failed");
    assert_eq!(all.last().unwrap()["jobs"][1]["write"]["total_ios"], 1);
}

#[test]
fn a_signal_asks_for_results_so_far() {
    let scratch = Scratch::new();
    let mut running = scratch.start(
        "as --live-csv - fio --name=a --ioengine=null --size=100g --rw=read --rate_iops=500 --runtime=4 --time_based --output-format=terse",
    );
    running.await_row("a,");
    running.signal(rustix::process::Signal::USR1);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("3;")).collect();
    assert_eq!(lines.len(), 2, "{}", ended.stdout);
    let bytes = |line: &str| line.split(';').nth(5).unwrap().parse::<u64>().unwrap();
    assert!(bytes(lines[0]) < bytes(lines[1]), "{lines:?}");
}

#[test]
fn progress_has_the_pace_that_is_asked_for() {
    let scratch = Scratch::new();
    let words = "as fio --name=a --ioengine=null --size=100g --rw=read --rate_iops=500 --runtime=3 --time_based --eta=always";
    let lines = |more: &str| {
        let ended = scratch.run(&format!("{words}{more}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stderr.lines().filter(|line| line.contains("eta")).count()
    };
    assert_eq!(lines(""), 0, "by itself one line in ten seconds where there is no terminal");
    assert!((1..=6).contains(&lines(" --eta-interval=500")));
    assert!((1..=3).contains(&lines(" --eta-newline=1")));
    for (option, expected) in [
        ("--eta-interval=100", "use 250 ms or more"),
        ("--eta-newline=0", "use a time such as 10s"),
        ("--status-interval=x", "use a time such as 10s"),
    ] {
        let ended = scratch.run(&format!("{words} {option}"));
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{option}: {}", ended.stderr);
    }
}
