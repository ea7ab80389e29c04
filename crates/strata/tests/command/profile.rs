//! `--profile`: where the time of workers goes, for loads of every layer.

use std::fs;

use serde_json::Value;

use crate::support::{Scratch, names_in};

/// The one group of a phase, whose parts add up to the time of its workers.
fn group(record: &Value, phase: usize) -> Value {
    let phase = &record["phases"][phase];
    let groups = phase["observations"]["profile"]["groups"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0]["name"]), (1, &"workers".into()));
    let sum: u64 = parts(&groups[0]).iter().map(|(_, ns)| ns).sum();
    let wall_ns = groups[0]["wall_ns"].as_u64().unwrap();
    assert_eq!(sum, wall_ns, "{}", groups[0]);
    let workers = phase["samples"]["workers"].as_array().unwrap();
    assert_eq!(groups[0]["processes"], workers.len());
    let drained = |worker: &Value| worker["drain_ns"].as_u64().unwrap();
    let each = phase["samples"]["elapsed_ns"].as_u64().unwrap();
    let longest = each + workers.iter().map(drained).max().unwrap();
    let all = |each: u64| each * workers.len() as u64;
    assert!((all(each)..=all(longest)).contains(&wall_ns), "{wall_ns} of {each}");
    groups[0].clone()
}

fn parts(group: &Value) -> Vec<(&str, u64)> {
    let parts = group["parts"].as_array().unwrap();
    parts.iter().map(|part| (part["name"].as_str().unwrap(), part["time_ns"].as_u64().unwrap())).collect()
}

fn part(group: &Value, name: &str) -> u64 {
    parts(group).iter().find(|(part, _)| *part == name).map_or(0, |(_, ns)| *ns)
}

fn share(group: &Value, name: &str) -> f64 {
    part(group, name) as f64 / group["wall_ns"].as_f64().unwrap()
}

/// Sum of the latencies of a class by the summary.
fn latencies_ns(record: &Value, phase: usize, class: &str) -> f64 {
    let classes = record["phases"][phase]["summary"]["classes"].as_array().unwrap();
    let found = classes.iter().find(|found| found["class"] == class).unwrap();
    found["latency"]["count"].as_f64().unwrap() * found["latency"]["mean_ns"].as_f64().unwrap()
}

#[test]
fn a_sync_after_each_write_is_what_the_time_goes_to() {
    let scratch = Scratch::new();
    let words = "media data --size 16m --op write -b 4k --fsync 1 --count 200 --warmup none --profile";
    let ended = scratch.run(&format!("{words} --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for line in ["where the time goes", "1 worker, ", "sync once after several writes (--fsync N"] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let record = crate::support::read_record(&scratch.join("record.json"));
    let seen = group(&record, 0);
    assert_eq!(seen["is_shared"], false);
    for class in ["write", "sync"] {
        let latencies_ns = latencies_ns(&record, 0, class);
        assert!((part(&seen, class) as f64 / latencies_ns - 1.0).abs() < 0.001, "{class}: {seen}");
    }
    assert!(part(&seen, "sync") > 2 * part(&seen, "write"), "{seen}");
    assert_eq!(scratch.run("report record.json --svg charts").code, Some(0));
    let charts = names_in(&scratch.join("charts"));
    for kind in ["profile.", "profile-over-time."] {
        assert!(charts.iter().any(|name| name.contains(kind)), "{kind}: {charts:?}");
    }
    assert_eq!(scratch.run("report record.json --html page.html").code, Some(0));
    assert!(fs::read_to_string(scratch.join("page.html")).unwrap().contains("where the time goes"));
    let plain = scratch.measured("media data --size 16m --op write -b 4k --count 20");
    assert_eq!(plain["phases"][0]["observations"]["profile"], Value::Null);
}

#[test]
fn several_calls_in_flight_take_no_more_than_the_time() {
    let scratch = Scratch::new();
    let load = "media data --size 16m --op randread --direct -b 4k --count 4000 --warmup none --profile";
    let one = scratch.measured(&format!("{load} --depth 1"));
    let seen = group(&one, 0);
    assert_eq!(seen["is_shared"], false);
    assert!((part(&seen, "read") as f64 / latencies_ns(&one, 0, "read") - 1.0).abs() < 0.001, "{seen}");
    let ended = scratch.run(&format!("{load} --depth 32 --threads 2 --json deep.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("several calls in flight: their time is divided"), "{}", ended.stdout);
    let deep = crate::support::read_record(&scratch.join("deep.json"));
    let seen = group(&deep, 0);
    assert_eq!(seen["is_shared"], true);
    assert!(latencies_ns(&deep, 0, "read") > seen["wall_ns"].as_f64().unwrap());
    assert!(part(&seen, "read") > 0 && part(&seen, "schedule") == 0, "{seen}");
}

#[test]
fn an_open_loop_waits_for_its_schedule() {
    let scratch = Scratch::new();
    for depth in [1, 8] {
        let words = format!(
            "media data --size 1m --op randread -b 4k --rate 200 --time 500ms --warmup none --depth {depth} --profile"
        );
        let seen = group(&scratch.measured(&words), 0);
        assert!(share(&seen, "schedule") > 0.5, "{depth}: {seen}");
        assert!(part(&seen, "read") > 0 && part(&seen, "other") == 0, "{depth}: {seen}");
    }
    let words =
        "media data --size 1m --op randread -b 4k --count 50 --think-time 4ms --warmup none --profile";
    let seen = group(&scratch.measured(words), 0);
    // A pause begins with the end of the call before it: what strata does of itself within it is strata's.
    assert!(part(&seen, "schedule") + part(&seen, "strata") >= 49 * 4_000_000, "{seen}");
    assert!(part(&seen, "schedule") > 40 * 4_000_000, "{seen}");
}

#[test]
fn files_objects_and_rpcs_have_a_breakdown() {
    let scratch = Scratch::new();
    let words = "fs tree --threads 2 --files 100 --end-fsync --op tree-create,write,read,unlink,tree-remove";
    let record = scratch.measured(&format!("{words} --profile"));
    let seen = group(&record, 1);
    let calls = ["create", "write", "fsync", "close"];
    assert!(calls.iter().all(|call| part(&seen, call) > 0), "{seen}");
    assert!(calls.iter().all(|call| part(&seen, "fsync") >= part(&seen, call)), "{seen}");
    (0..5).for_each(|phase| drop(group(&record, phase)));
    let record = scratch.measured("object vos:store --mix put=50,get=50 --count 400 --profile");
    let last = record["phases"].as_array().unwrap().len() - 1;
    let seen = group(&record, last);
    assert!(part(&seen, "put") > part(&seen, "get") && part(&seen, "get") > 0, "{seen}");
    let seen = group(&scratch.measured("net --inflight 1 --time 200ms --warmup none --profile"), 0);
    assert!(share(&seen, "rpc") > 0.3 && seen["is_shared"] == false, "{seen}");
}

#[test]
fn workers_of_all_hosts_are_one_group() {
    let scratch = Scratch::new();
    let words = "media data --size 16m --op randread -b 4k --threads 2 --count 400 --hosts local:2 --profile";
    let record = scratch.measured(words);
    let groups = record["phases"][0]["observations"]["profile"]["groups"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0]["processes"]), (1, &4.into()));
    let sum: u64 = parts(&groups[0]).iter().map(|(_, ns)| ns).sum();
    assert_eq!(sum, groups[0]["wall_ns"].as_u64().unwrap());
}

#[test]
fn jobs_and_ladders_have_theirs_phase_by_phase() {
    let scratch = Scratch::new();
    let job = "[[phase]]\nname = 'told'\ntargets = ['data']\nsize = '1m'\nop = 'write'\ncount = 50\nprofile = true\n\n\
        [[phase]]\nname = 'plain'\ntargets = ['data']\nsize = '1m'\nop = 'read'\ncount = 50\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    let record = scratch.measured("run job.toml");
    group(&record, 0);
    assert_eq!(record["phases"][1]["observations"]["profile"], Value::Null);
    let words = "media data --size 1m --op read -b 4k --time 100ms --ladder depth=1,4 --profile";
    let ended = scratch.run(&format!("{words} --json ladder.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.matches("where the time goes").count(), 2, "{}", ended.stdout);
    assert_eq!(scratch.run("report ladder.json --svg charts").code, Some(0));
    let charts = names_in(&scratch.join("charts"));
    assert_eq!(charts.iter().filter(|name| name.contains("-profile.")).count(), 2, "{charts:?}");
}
