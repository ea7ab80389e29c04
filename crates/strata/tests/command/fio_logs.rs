//! Logs of fio's command line: their columns, and the bandwidth of all jobs.

use std::fs;

use crate::support::Scratch;

/// The columns of each line of a log.
fn log(scratch: &Scratch, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(scratch.join(name)).unwrap();
    text.lines().map(|line| line.split(", ").map(str::to_owned).collect()).collect()
}

#[test]
fn an_averaged_log_may_hold_the_mean_and_the_largest() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --name=x --ioengine=null --size=1g --rw=read --rate_iops=2000 --runtime=1 --time_based --write_lat_log=x \
         --write_iops_log=x --log_avg_msec=100 --log_window_value=both --log_offset=1 --output-format=terse",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let number = |text: &String| text.parse::<u64>().unwrap();
    let lines = log(&scratch, "x_lat.1.log");
    assert!(lines.len() >= 5 && lines.iter().all(|line| line.len() == 7), "{lines:?}");
    assert!(lines.iter().all(|line| number(&line[1]) <= number(&line[2]) && line[3] == "0"), "{lines:?}");
    assert!(
        lines.iter().any(|line| number(&line[1]) < number(&line[2])),
        "a largest is above its mean: {lines:?}"
    );
    assert!(log(&scratch, "x_iops.1.log").iter().all(|line| line.len() == 7 && line[1] == line[2]));
}

#[test]
fn the_time_of_issue_stands_in_logs_of_single_operations() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=libaio --size=64k --rw=read --bs=4k --write_lat_log=x --write_iops_log=x --log_offset=1 \
                 --output-format=terse --log_issue_time=1";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let issued = |name: &str| -> Vec<u64> {
        let lines = log(&scratch, name);
        assert!(lines.len() == 16 && lines.iter().all(|line| line.len() == 7), "{name}: {lines:?}");
        lines.iter().map(|line| line[6].parse().unwrap()).collect()
    };
    assert!(issued("x_lat.1.log").iter().chain(&issued("x_iops.1.log")).all(|&at| at == 0));
    let times = issued("x_clat.1.log");
    assert_eq!(times, issued("x_slat.1.log"));
    assert!(times.is_sorted() && times[0] < times[15], "one after the other: {times:?}");
    let ends: Vec<u64> = log(&scratch, "x_clat.1.log").iter().map(|line| line[0].parse().unwrap()).collect();
    assert!(times.iter().zip(&ends).all(|(issued_ns, end_ms)| issued_ns / 1_000_000 <= *end_ms));
}

#[test]
fn the_bandwidth_of_all_jobs_is_logged_together() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --bandwidth-log --ioengine=null --size=100g --bs=4k --rate_iops=1024 --runtime=2 --time_based \
         --output-format=terse --name=a --rw=read --name=b --rw=read",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = log(&scratch, "agg-read_bw.log");
    assert!((2..=3).contains(&lines.len()), "{lines:?}");
    assert!(lines.iter().all(|line| line[2..] == ["0", "0", "0"]), "{lines:?}");
    // Two jobs of 4 MiB/s each; where the machine is late, less is done in a second and more in the next.
    let sum: u64 = lines.iter().take(2).map(|line| line[1].parse::<u64>().unwrap()).sum();
    assert!((2 * 8192 - 8192..=2 * 8192 + 1024).contains(&sum), "{lines:?}");
    assert!(log(&scratch, "agg-write_bw.log").is_empty());
    assert_eq!(scratch.names(), ["agg-read_bw.log", "agg-trim_bw.log", "agg-write_bw.log"]);
}

#[test]
fn flows_keep_to_their_group_and_a_job_with_a_rate_keeps_to_it() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --ioengine=null --size=100g --bs=4k --runtime=2 --time_based --output-format=json --rw=read \
         --name=paced --flow=1 --flow_id=1 --rate_iops=500 --name=eight --flow=8 --flow_id=1 --name=other --flow=1 --flow_id=2",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let start = ended.stdout.find('{').unwrap();
    let done: serde_json::Value = serde_json::from_str(&ended.stdout[start..]).unwrap();
    let operations = |job: usize| done["jobs"][job]["read"]["total_ios"].as_f64().unwrap();
    assert!((operations(1) / operations(0) - 8.0).abs() < 0.5, "{} {}", operations(0), operations(1));
    assert!(
        operations(0) <= 1001.0 && operations(2) > 20.0 * operations(0),
        "{} {}",
        operations(0),
        operations(2)
    );
}

#[test]
fn each_block_comes_once_by_lfsr_without_a_map() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --size=1m --rw=randread --bs=4k --norandommap --write_iops_log=x --log_offset=1 \
                 --output-format=terse";
    let places = |more: &str| {
        let ended = scratch.run(&format!("{words}{more}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let mut places: Vec<u64> =
            log(&scratch, "x_iops.1.log").iter().map(|line| line[4].parse().unwrap()).collect();
        places.sort_unstable();
        places.dedup();
        places.len()
    };
    assert_eq!(places(" --random_generator=lfsr"), 256);
    assert!(places("") < 256, "drawn anew each time, some come twice");
}

#[test]
fn a_rate_below_its_minimum_is_told_in_the_unit_that_was_asked_for() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --size=100g --rw=read --bs=4k --rate_iops=100 --time_based --runtime=4";
    let ended = scratch.run(&format!("{words} --rate_min=1g"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("B/s over 1 s (required: at least 1.07GB/s)"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("0/s,"), "no limit that nobody asked for: {}", ended.stderr);
    let ended = scratch.run(&format!("{words} --rate_iops_min=100k"));
    assert!(ended.stderr.contains("operations/s over 1 s (required: at least 102k/s)"), "{}", ended.stderr);
}
