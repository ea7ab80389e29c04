//! Run control, pacing, priorities and logs of fio's command line, and the options of a load that they become.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Scratch};

fn json(ended: &Ended) -> Value {
    let start = ended.stdout.find('{').unwrap_or(0);
    serde_json::from_str(&ended.stdout[start..]).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// The columns of each line of a log.
fn log(scratch: &Scratch, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(scratch.join(name)).unwrap();
    text.lines().map(|line| line.split(", ").map(str::to_owned).collect()).collect()
}

#[test]
fn a_log_without_an_average_holds_each_operation() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --name=x --size=256k --rw=randrw --bs=4k --write_lat_log=x --write_bw_log=x --write_iops_log=x \
         --log_offset=1 --log_prio=1 --log_unix_epoch=1 --output-format=json",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let done = json(&ended);
    let operations = |way: &str| done["jobs"][0][way]["total_ios"].as_u64().unwrap() as usize;
    let lines = log(&scratch, "x_lat.1.log");
    assert_eq!(lines.len(), operations("read") + operations("write"));
    let reads = lines.iter().filter(|line| line[2] == "0").count();
    assert_eq!(reads, operations("read"));
    let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    for line in &lines {
        let at_ms: u128 = line[0].parse().unwrap();
        assert!(at_ms <= now_ms && now_ms - at_ms < 600_000, "{line:?}");
        assert_eq!((line.len(), line[3].as_str(), line[5].as_str()), (6, "4096", "0x0000"), "{line:?}");
        assert!(line[4].parse::<u64>().unwrap() < 256 << 10, "{line:?}");
    }
    let mut places: Vec<&String> = lines.iter().map(|line| &line[4]).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 64, "each block has its position once");
    assert!(log(&scratch, "x_iops.1.log").iter().all(|line| line[1] == "1"));
    let largest = lines.iter().map(|line| line[1].parse::<u64>().unwrap()).max().unwrap();
    let told = ["read", "write"].map(|way| done["jobs"][0][way]["lat_ns"]["max"].as_u64().unwrap());
    assert!(largest.abs_diff(told[0].max(told[1])) <= largest / 500, "{largest} {told:?}");
}

#[test]
fn an_averaged_log_has_the_columns_asked_for_and_its_largest_value() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --size=1g --rw=read --rate_iops=2000 --runtime=1 --time_based --write_lat_log=x \
                 --log_avg_msec=100 --log_offset=1";
    for more in ["", " --log_max_value=1"] {
        let ended = scratch.run(&format!("{words}{more} --output-format=terse"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let lines = log(&scratch, "x_lat.1.log");
        assert!(lines.len() >= 5 && lines.iter().all(|line| line.len() == 6 && line[4] == "0"), "{lines:?}");
        let sum: u64 = lines.iter().map(|line| line[1].parse::<u64>().unwrap()).sum();
        assert!(sum > 0);
    }
}

// Of ten intervals none is ten times their mean away from it, however the machine deals out its time.
#[test]
fn a_steady_state_ends_the_job_and_stands_in_the_results() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --name=x --ioengine=null --size=100g --rw=read --bs=4k --rate_iops=500 --time_based --runtime=600 \
         --ss=iops:1000% --ss_dur=2 --ss_ramp=1 --ss_interval=200 --output-format=normal,json",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let start = ended.stdout.find("\n{").unwrap() + 1;
    let end = ended.stdout.rfind("\n}").unwrap() + 2;
    let done: Value = serde_json::from_str(&ended.stdout[start..end]).unwrap();
    let job = &done["jobs"][0];
    let steady = &job["steadystate"];
    assert_eq!((&steady["ss"], &steady["duration"]), (&"iops:1000.000000%".into(), &2.into()), "{steady}");
    assert_eq!(steady["attained"], 1, "{steady}");
    assert_eq!(steady["data"]["iops"].as_array().unwrap().len(), 10, "{steady}");
    assert!(steady["criterion"].as_str().unwrap().ends_with('%'), "{steady}");
    assert!(job["read"]["runtime"].as_u64().unwrap() < 500_000, "it ended long before its time: {job}");
    assert!(ended.stdout.contains("  steadystate  : attained=yes, bw="), "{}", ended.stdout);
}

#[test]
fn a_state_that_is_never_steady_ends_nothing() {
    let scratch = Scratch::new();
    let record = scratch.measured(
        "media null: --op nop --rate 1000 --arrivals poisson --time 1200ms --end-when-steady iops:0%:1s:0s:100ms",
    );
    let ending = &record["phases"][0]["steady_ending"];
    assert_eq!(ending["attained"], false, "{ending}");
    assert!(record["phases"][0]["samples"]["elapsed_ns"].as_u64().unwrap() >= 1_200_000_000);
}

#[test]
fn jobs_with_a_flow_keep_the_proportion_of_their_weights() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --ioengine=null --size=100g --bs=4k --runtime=1 --time_based --output-format=json --flow_sleep=100 \
         --name=one --rw=write --flow=1 --name=eight --rw=read --flow=8",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let done = json(&ended);
    let (writes, reads) = (
        done["jobs"][0]["write"]["total_ios"].as_f64().unwrap(),
        done["jobs"][1]["read"]["total_ios"].as_f64().unwrap(),
    );
    assert!((reads / writes - 8.0).abs() < 1.0, "{writes} {reads}");
}

#[test]
fn the_depth_at_which_latency_holds_is_searched() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --size=100g --rw=randread --norandommap --bs=4k --iodepth=8 --runtime=600 --time_based \
                 --latency_window=20000 --latency_percentile=1 --output-format=json";
    // Whatever the machine does, a hundredth of the operations of an engine that does nothing take less than a second.
    let ended = scratch.run(&format!("{words} --latency_target=1000000"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let job = &json(&ended)["jobs"][0];
    assert_eq!((&job["latency_depth"], &job["latency_target"]), (&8.into(), &1_000_000_000.into()), "{job}");
    assert_eq!((&job["latency_window"], &job["latency_percentile"]), (&20_000.into(), &1.0.into()));
    assert!(job["read"]["runtime"].as_u64().unwrap() < 500_000, "the search ended the job: {job}");
    let record = scratch.measured("media null: --op nop --depth 8 --time 600s --latency-target 1ns:100:10ms");
    let worker = &record["phases"][0]["samples"]["workers"][0];
    assert_eq!(worker["depth_found"], Value::Null, "no depth holds a nanosecond: {worker}");
    assert!(record["phases"][0]["samples"]["elapsed_ns"].as_u64().unwrap() < 500_000_000_000);
}

#[test]
fn an_operation_that_takes_too_long_fails_the_job() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --name=x --size=1m --rw=read --bs=4k --ioengine=psync --max_latency=1us --output-format=json",
    );
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let done = json(&ended);
    assert_eq!(done["jobs"][0]["error"], 110, "{}", done["jobs"][0]);
    let ended = scratch.run("media x --op read -b 4k -s 1m --latency-max 60s");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_rate_below_its_minimum_fails_the_job() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --size=100g --rw=read --bs=4k --rate_iops=100 --time_based";
    let ended = scratch
        .run(&format!("{words} --runtime=600 --rate_cycle=500 --rate_iops_min=100000 --output-format=json"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("the rate fell below its minimum"), "{}", ended.stderr);
    assert!(json(&ended)["jobs"][0]["elapsed"].as_u64().unwrap() < 500, "it ended the job: {}", ended.stdout);
    // A single block in three seconds is more than a byte a second, however slow the machine is.
    let ended = scratch.run(&format!("{words} --runtime=4 --rate_cycle=3000 --rate_min=1"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn errors_that_are_ignored_fail_nothing_and_others_do() {
    let scratch = Scratch::new();
    // Past the end of what a process may write, every write fails with EFBIG.
    let words = "--op write -b 4k --count 50";
    let ended =
        scratch.run(&format!("media /dev/full {words} --ignore-error write:ENOSPC --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = crate::support::read_record(&scratch.join("record.json"));
    let error = &record["phases"][0]["samples"]["workers"][0]["errors"][0];
    assert_eq!((&error["errno"], &error["is_ignored"]), (&28.into(), &true.into()), "{error}");
    assert_eq!(error["count"], 50, "it went on: {error}");
    let ended = scratch.run(&format!("media /dev/full {words} --ignore-error read:ENOSPC,write:EIO"));
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let fio = "as fio --name=x --filename=/dev/full --rw=write --bs=4k --size=64k --output-format=json";
    let ended = scratch.run(&format!("{fio} --ignore_error=,ENOSPC"));
    assert_eq!((ended.code, &json(&ended)["jobs"][0]["error"]), (Some(0), &0.into()), "{}", ended.stderr);
    assert_eq!(scratch.run(&format!("{fio} --ignore_error=ENOSPC")).code, Some(1));
}

#[test]
fn a_job_waits_for_the_one_that_it_names() {
    let scratch = Scratch::new();
    let words = "as --json record.json fio --ioengine=null --size=4m --bs=4k --output-format=json --name=first --rw=write --numjobs=2 \
                 --name=second --rw=read --wait_for=first --name=third --rw=read --wait_for=second";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = crate::support::read_record(&scratch.join("record.json"));
    let stages: Vec<_> =
        record["phases"].as_array().unwrap().iter().map(|phase| phase["stage"].as_u64().unwrap()).collect();
    assert_eq!(stages, [0, 0, 1, 2]);
    let groups: Vec<_> =
        json(&ended)["jobs"].as_array().unwrap().iter().map(|job| job["groupid"].as_u64().unwrap()).collect();
    assert_eq!(groups, [0, 0, 0, 0], "waiting makes no group");
    for (more, expected) in [
        ("--name=a --name=b --name=c --wait_for=a", "job b runs at the same time as a"),
        ("--name=a --wait_for=none", "no job none precedes this one"),
        ("--name=a --name=b --wait_for=a --name=c", "a job without wait_for follows a job with wait_for"),
    ] {
        let ended = scratch.run(&format!("as fio --ioengine=null --size=4m {more}"));
        assert_eq!(ended.code, Some(2), "{more}");
        assert!(ended.stderr.contains(expected), "{more}: {}", ended.stderr);
    }
}

#[test]
fn posixaio_and_offload_run_by_a_stand_in_that_is_told() {
    let scratch = Scratch::new();
    let base =
        "as --json record.json fio --name=x --size=1m --rw=randread --bs=4k --iodepth=4 --output-format=json";
    let ended = scratch.run(&format!("{base} --ioengine=posixaio"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let stand_in = ["ioengine=posixaio runs as io_uring", "ioengine=posixaio runs as libaio"];
    assert!(stand_in.iter().any(|told| ended.stdout.contains(told)), "{}", ended.stdout);
    let record = crate::support::read_record(&scratch.join("record.json"));
    assert_eq!(record["phases"][0]["plan"]["load"]["depth"], 4);
    assert_eq!(json(&ended)["jobs"][0]["read"]["total_ios"], 256);
    let ended = scratch.run(&format!("{base} --ioengine=psync --io_submit_mode=offload"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("io_submit_mode=offload"), "{}", ended.stdout);
    assert_eq!(json(&ended)["jobs"][0]["read"]["total_ios"], 256);
}

#[test]
fn operations_are_sent_to_the_kernels_threads_and_carry_priorities() {
    let scratch = Scratch::new();
    let ended = scratch.run("list");
    if !ended.stdout.contains("io_uring") {
        crate::support::skipped("operations_are_sent_to_the_kernels_threads", "no io_uring here");
        return;
    }
    let ended = scratch.run(
        "as --json record.json fio --name=x --size=1m --rw=randread --bs=4k --iodepth=4 --ioengine=io_uring --force_async=2 \
         --cmdprio_percentage=30 --cmdprio_class=3 --prioclass=2 --prio=6 --nice=3 --fadvise_hint=random --output-format=json",
    );
    if ended.stderr.contains("Operation not permitted") || ended.stderr.contains("not allowed") {
        crate::support::skipped(
            "operations_are_sent_to_the_kernels_threads",
            "io_uring or priorities are not allowed here",
        );
        return;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(json(&ended)["jobs"][0]["read"]["total_ios"], 256);
    let record = crate::support::read_record(&scratch.join("record.json"));
    let plan = &record["phases"][0]["plan"];
    assert_eq!((&plan["options"]["force_async"], &plan["options"]["advice"]), (&2.into(), &"random".into()));
    assert_eq!(plan["options"]["operation_priorities"][0]["percent"], 30);
    assert_eq!(plan["load"]["control"]["nice"], 3);
}

#[test]
fn a_worker_has_the_priority_that_was_asked_for() {
    let scratch = Scratch::new();
    let mut running = scratch
        .start("media null: --op nop --rate 10 --time 60s --nice 7 --priority idle --live-csv - --live none");
    running.await_row("nop");
    let tasks = format!("/proc/{}/task", running.id());
    let nice_of = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let after = stat.rsplit(')').next()?.split_whitespace().nth(16)?.parse::<i32>().ok();
        Some((stat.contains("(worker-0)"), after?))
    };
    let found: Vec<_> = fs::read_dir(tasks).unwrap().flatten().filter_map(nice_of).collect();
    running.signal(rustix::process::Signal::INT);
    running.end();
    let own = found.iter().find(|(is_worker, _)| !is_worker).unwrap().1;
    let workers: Vec<_> = found.iter().filter(|(is_worker, _)| *is_worker).collect();
    assert_eq!(workers.len(), 1, "{found:?}");
    assert_eq!(workers[0].1, (own + 7).min(19), "{found:?}");
}

#[test]
fn engines_of_files_do_each_file_once() {
    let scratch = Scratch::new();
    let base = "as fio --name=x --filesize=4k --nrfiles=20 --output-format=json";
    let ended = scratch.run(&format!("{base} --ioengine=filestat"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(json(&ended)["jobs"][0]["read"]["total_ios"], 20);
    assert_eq!(scratch.names().len(), 20);
    let ended = scratch.run(&format!("{base} --ioengine=filedelete"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(json(&ended)["jobs"][0]["write"]["total_ios"], 20);
    assert_eq!(scratch.names().len(), 0, "{:?}", scratch.names());
    fs::write(scratch.join("precious"), vec![7; 4096]).unwrap();
    let ended =
        scratch.run("as fio --name=x --filename=precious --filesize=4k --ioengine=filedelete --rw=read");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(scratch.join("precious").exists());
}

#[test]
fn falloc_and_ftruncate_change_files_without_data() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let record = scratch.measured("media f --op write -b 64k -s 1m --engine falloc --layout sparse --keep");
    assert_eq!(record["phases"][0]["summary"]["total"]["operations"], 16);
    let file = fs::metadata(scratch.join("f")).unwrap();
    assert!(file.len() == 1 << 20 && file.blocks() * 512 >= 1 << 20, "{} {}", file.len(), file.blocks());
    let record = scratch.measured("media f --op discard -b 64k -s 1m --engine falloc --keep");
    assert_eq!(record["phases"][0]["summary"]["total"]["operations"], 16);
    assert!(fs::metadata(scratch.join("f")).unwrap().blocks() * 512 < 64 << 10);
    scratch.measured("media f --op write -b 64k -s 1m --engine ftruncate --keep");
    assert_eq!(fs::metadata(scratch.join("f")).unwrap().len(), (1 << 20) - (64 << 10));
}

#[test]
fn a_job_without_stats_is_left_out_and_engines_of_others_are_refused_with_a_reason() {
    let scratch = Scratch::new();
    let ended =
        scratch.run("as fio --ioengine=null --size=4m --output-format=json --name=a --stats=0 --name=b");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let names: Vec<_> =
        json(&ended)["jobs"].as_array().unwrap().iter().map(|job| job["jobname"].clone()).collect();
    assert_eq!(names, ["b"]);
    for (engine, nearest) in [("net", "strata net"), ("nbd", "nbd-client")] {
        let ended = scratch.run(&format!("as fio --name=x --size=4m --ioengine={engine}"));
        assert_eq!(ended.code, Some(2), "{engine}");
        assert!(ended.stderr.contains(nearest), "{engine}: {}", ended.stderr);
    }
}

#[test]
fn pauses_come_by_time_and_go_with_a_rate() {
    let scratch = Scratch::new();
    let base = "as --json record.json fio --name=x --ioengine=null --size=1m --bs=4k --rw=read --thinktime=2ms --output-format=json";
    let think = |more: &str| {
        let ended = scratch.run(&format!("{base} {more}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(json(&ended)["jobs"][0]["read"]["total_ios"], 256, "{more}");
        crate::support::read_record(&scratch.join("record.json"))["phases"][0].clone()
    };
    let phase = think("--thinktime_iotime=1 --thinktime_spin=5ms");
    let plan = &phase["plan"]["load"]["think"];
    assert_eq!(
        (&plan["after_ns"], &plan["spin_ns"]),
        (&1_000_000_000_u64.into(), &2_000_000.into()),
        "{plan}"
    );
    assert_eq!(plan["blocks"], u64::MAX, "no number of blocks brings a pause: {plan}");
    // 16 blocks and a pause of 2 ms, 15 times between them: whatever the machine does, it is not faster than that.
    let phase = think("--thinktime_blocks=16");
    assert!(phase["samples"]["elapsed_ns"].as_u64().unwrap() >= 15 * 2_000_000, "{phase}");
    let phase = think("--thinktime_blocks=16 --rate_iops=100000 --rate_ignore_thinktime=1");
    let load = &phase["plan"]["load"];
    assert_eq!(
        (&load["think"]["moves_arrivals"], &load["think"]["blocks"]),
        (&true.into(), &16.into()),
        "{load}"
    );
    assert_eq!(load["arrivals"]["rate_per_second"], 100_000.0, "{load}");
    assert!(phase["samples"]["elapsed_ns"].as_u64().unwrap() >= 15 * 2_000_000, "{phase}");
    let ended = scratch.run("as fio --name=x --ioengine=null --size=64k --thinktime_iotime=9");
    assert!(ended.stdout.contains("thinktime_iotime without thinktime does nothing"), "{}", ended.stdout);
}

#[test]
fn memory_comes_from_the_nodes_that_were_named() {
    let scratch = Scratch::new();
    if !std::path::Path::new("/proc/self/numa_maps").exists() {
        crate::support::skipped("memory_comes_from_the_nodes", "this kernel knows no NUMA nodes");
        return;
    }
    let words = "as --live-csv - fio --name=x --ioengine=null --size=1g --rw=read --rate_iops=10 --runtime=60 --time_based --eta=never \
                 --output=results --numa_mem_policy=bind:0";
    let mut running = scratch.start(words);
    running.await_row("x");
    let of_worker = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        name.starts_with("worker-").then(|| fs::read_to_string(task.path().join("numa_maps")).ok())?
    };
    let tasks = fs::read_dir(format!("/proc/{}/task", running.id())).unwrap();
    let maps: Vec<String> = tasks.flatten().filter_map(of_worker).collect();
    running.signal(rustix::process::Signal::INT);
    running.end();
    assert_eq!(maps.len(), 1);
    assert!(maps[0].contains(" bind:0 "), "{}", maps[0]);
    for (policy, expected) in [
        ("bind:99", "there is no NUMA node 99"),
        ("near", "default, local, prefer:NODE, bind:NODES or interleave:NODES"),
        ("prefer:0,1", "prefer:NODE"),
    ] {
        let ended =
            scratch.run(&format!("as fio --name=x --ioengine=null --size=64k --numa_mem_policy={policy}"));
        assert_eq!(ended.code, Some(2), "{policy}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{policy}: {}", ended.stderr);
    }
}
