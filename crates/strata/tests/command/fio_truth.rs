//! fio's command line where a wrong answer costs most: users' data, checks that must not succeed, and its JSON.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Loop, NO_ROOT, Scratch, skipped};

const WRITE: &str =
    "as fio --name=w --filename=data --rw=write --bs=4k --size=256k --verify=crc32c --do_verify=0";
const CHECK: &str = "as fio --name=r --filename=data --rw=read --bs=4k --size=256k --verify=crc32c";

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// A run that fails with exit code 1 and one line that says why.
fn assert_lost(scratch: &Scratch, words: &str, expected: &str) {
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(1), "{words}: {}", ended.stderr);
    let said = ended.stderr.lines().filter(|line| !line.contains("warning:")).collect::<Vec<_>>();
    assert!(said.len() == 1 && said[0].contains(expected), "{words}: {}", ended.stderr);
}

#[test]
fn a_check_of_data_that_are_gone_fails_and_makes_nothing() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run(WRITE).code, Some(0));
    assert_eq!(scratch.run(CHECK).code, Some(0), "what is there is found");
    let file = fs::File::options().write(true).open(scratch.join("data")).unwrap();
    file.set_len(128 << 10).unwrap();
    assert_lost(&scratch, CHECK, "is shorter than the range to read, and strata does not extend it");
    assert_eq!(file.metadata().unwrap().len(), 128 << 10);
    // Cut, and as long as before: the hole is no valid block either.
    file.set_len(256 << 10).unwrap();
    let before = fs::read(scratch.join("data")).unwrap();
    assert_eq!(scratch.run(CHECK).code, Some(1));
    assert_eq!(fs::read(scratch.join("data")).unwrap(), before);
    fs::remove_file(scratch.join("data")).unwrap();
    for rest in ["", " --verify_only=1", " --do_verify=1"] {
        assert_lost(
            &scratch,
            &format!("{CHECK}{rest}"),
            "the file to read does not exist, and strata does not create it",
        );
        assert!(scratch.names().is_empty(), "{rest}");
    }
    assert_lost(&scratch, CHECK, "write the blocks first: rw=write verify=crc32c");
}

#[test]
fn a_check_makes_nothing_in_stratas_own_words_either() {
    let scratch = Scratch::new();
    let words = "media f --op read -b 64k -s 1m --verify";
    assert_lost(&scratch, words, "--op write --verify --keep");
    assert_lost(
        &scratch,
        "media f --op randread -b 64k -s 1m --verify --layout fill",
        "strata does not create it",
    );
    let ended = scratch.run("media f --op read -b 64k --verify");
    assert!(ended.code == Some(2) && ended.stderr.contains("write the blocks first"), "{}", ended.stderr);
    assert!(scratch.names().is_empty());
    scratch.measured("media f --op write -b 64k -s 512k --verify --keep");
    assert_lost(&scratch, words, "file_size_bytes=524288");
    // What an earlier phase writes is there when its turn comes.
    scratch.measured("media new --op write,read -b 64k -s 1m --verify");
    let ended = scratch.run("media f --op read -b 64k -s 1m --layout existing");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(fs::metadata(scratch.join("f")).unwrap().len(), 512 << 10);
}

#[test]
fn readonly_makes_and_extends_nothing() {
    let scratch = Scratch::new();
    let words = "as fio --readonly --name=r --rw=read --bs=4k --size=64k --filename=";
    let refused = |file: &str, expected: &str| {
        let ended = scratch.run(&format!("{words}{file}"));
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("--readonly: ") && ended.stderr.contains(expected), "{}", ended.stderr);
    };
    refused("gone", "which does not exist and is not created");
    fs::write(scratch.join("empty"), "").unwrap();
    fs::write(scratch.join("short"), vec![5; 32 << 10]).unwrap();
    refused("empty", "it has 0 bytes and is not extended");
    refused("short", "it has 32768 bytes and is not extended");
    // Holes of a file of strata's own would be filled for another run.
    scratch.measured("media own --op write -b 4k -s 32k --keep");
    fs::File::options().write(true).open(scratch.join("own")).unwrap().set_len(64 << 10).unwrap();
    let before = fs::read(scratch.join("own")).unwrap();
    assert_eq!(scratch.run(&format!("{words}own")).code, Some(0));
    assert_eq!(fs::read(scratch.join("own")).unwrap(), before);
    fs::remove_file(scratch.join("own")).unwrap();
    assert_eq!(scratch.names(), ["empty", "record.json", "short"]);
    assert_eq!(fs::metadata(scratch.join("short")).unwrap().len(), 32 << 10);
}

#[test]
fn files_of_zeros_are_nobodys_data() {
    let scratch = Scratch::new();
    let write = |file: &str| {
        scratch.run(&format!("as fio --name=w --rw=write --bs=4k --size=128k --filename={file}"))
    };
    fs::write(scratch.join("dd"), vec![0; 128 << 10]).unwrap();
    fs::File::create(scratch.join("truncate")).unwrap().set_len(128 << 10).unwrap();
    for file in ["dd", "truncate"] {
        let ended = write(file);
        assert_eq!(ended.code, Some(0), "{file}: {}", ended.stderr);
        assert_eq!(write(file).code, Some(0), "{file}: what strata wrote over zeros is its own");
        assert!(fs::read(scratch.join(file)).unwrap().iter().any(|&byte| byte != 0));
    }
    let mut other = vec![0; 128 << 10];
    other[100_000] = 1;
    fs::write(scratch.join("other"), &other).unwrap();
    let ended = write("other");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("data that strata did not write"), "{}", ended.stderr);
    assert_eq!(fs::read(scratch.join("other")).unwrap(), other);
}

#[test]
fn a_name_for_all_jobs_is_no_jobs_name() {
    let scratch = Scratch::new();
    let job = "[global]\nname=all\nrw=write\nbs=4k\nsize=16k\n[one]\nname=inner\n[two]\n";
    fs::write(scratch.join("job.fio"), job).unwrap();
    let shown = json(&scratch.run("as fio --output-format=json job.fio"));
    let names: Vec<_> = shown["jobs"].as_array().unwrap().iter().map(|job| &job["jobname"]).collect();
    assert_eq!(names, ["inner", "two"]);
    assert_eq!(shown["global options"]["name"], "all");
    assert_eq!(scratch.names(), ["job.fio", "one.0.0", "two.0.0"]);
}

#[test]
fn without_time_of_day_calls_rates_are_sampled_all_the_same() {
    let scratch = Scratch::new();
    let line = "as fio --name=g --ioengine=null --rw=randrw --bs=4k --size=1g --time_based --runtime=2 --rate_iops=1000,1000";
    let run = || {
        let ended = scratch.run(&format!("{line} --gtod_reduce=1 --output-format=json,normal"));
        let (object, normal) = ended.stdout.split_once("\ng: (groupid").unwrap();
        let object = &object[object.find('{').unwrap()..=object.rfind('}').unwrap()];
        (serde_json::from_str::<Value>(object).unwrap(), normal.to_owned())
    };
    // A machine that gave the run no processor for half a second has a true minimum of 0.
    let is_stalled = |shown: &Value| {
        let job = &shown["jobs"][0];
        ["read", "write"].iter().any(|direction| job[*direction]["iops_min"] == 0)
    };
    let mut found = run();
    for _ in 0..2 {
        if is_stalled(&found.0) {
            found = run();
        }
    }
    let (shown, normal) = found;
    for direction in ["read", "write"] {
        let way = &shown["jobs"][0][direction];
        for key in ["iops_min", "iops_max", "iops_mean", "iops_samples", "bw_min", "bw_mean", "bw_samples"] {
            assert!(way[key].as_f64().unwrap() > 0.0, "{direction} {key}: {way}");
        }
        for key in ["slat_ns", "clat_ns", "lat_ns"] {
            assert_eq!(way[key]["N"], 0, "{direction} {key}");
        }
    }
    assert_eq!(normal.matches("   iops        : min=").count(), 2, "{normal}");
    assert_eq!(normal.matches("   bw (  KiB/s): min=").count(), 2, "{normal}");
    assert!(!normal.contains("lat ("), "{normal}");
}

#[test]
fn refusals_and_runs_speak_fios_options() {
    let scratch = Scratch::new();
    // One job, and clones that are reported as one: both have nobody, or somebody, to end.
    for clones in [1, 3] {
        let words = format!(
            "as fio --name=x --rw=write --bs=4k --size=64k --exitall --numjobs={clones} --group_reporting --output-format=json"
        );
        let ended = scratch.run(&words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(json(&ended)["jobs"].as_array().unwrap().len(), 1, "reported as one");
    }
    let words = "as fio --name=x --filename=x --rw=write --size=64k --bsrange=4k-8k --verify=crc32c --output-format=json";
    let ended = scratch.run(words);
    if ended.code != Some(0) {
        let told = ended.stderr.lines().last().unwrap().to_owned();
        assert!(told.contains("verify needs one block size") && !told.contains("--verify"), "{told}");
        assert!(!json(&ended)["error"].as_str().unwrap().contains("--verify"), "{}", ended.stdout);
    }
}

#[test]
fn trims_go_with_libaio() {
    let scratch = Scratch::new();
    scratch.measured("media file --op write -b 64k -s 1m --keep");
    let record = scratch.measured("media file --op randdiscard -b 64k --engine libaio -q 4 --keep");
    let done = &record["phases"][0]["summary"]["total"];
    assert_eq!((&done["operations"], &done["errors"]), (&16.into(), &0.into()));
    assert!(fs::read(scratch.join("file")).unwrap().iter().all(|&byte| byte == 0), "punched out");
    let Some(device) = Loop::new(scratch.path(), 4 << 20) else {
        return skipped("trims_go_with_libaio", NO_ROOT);
    };
    let words = format!(
        "as fio --name=t --filename={} --rw=randtrim --bs=64k --ioengine=libaio --iodepth=8 --output-format=json",
        device.device
    );
    let ended = scratch.run(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(json(&ended)["jobs"][0]["trim"]["total_ios"], 64);
}

#[test]
fn what_was_never_written_is_not_read_back() {
    let scratch = Scratch::new();
    let words = "as --json record.json fio --name=x --filename=x --rw=randrw --rwmixread=75 --bs=4k --size=1m --verify=crc32c \
                 --output-format=json";
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let job = &json(&ended)["jobs"][0];
    let (reads, writes) =
        (job["read"]["total_ios"].as_u64().unwrap(), job["write"]["total_ios"].as_u64().unwrap());
    // 256 operations, and one more read for each write.
    assert!(writes > 0 && writes < 256, "{writes}");
    assert_eq!(reads, 256, "{writes}");
    // Of a write that ended early, too.
    let record = scratch.measured("media y -s 1m --op randwrite -b 4k --count 10 --verify");
    assert_eq!(record["phases"][1]["summary"]["total"]["operations"], 10);
}

#[test]
fn every_accepted_option_is_among_the_jobs_options() {
    let scratch = Scratch::new();
    let options = [
        ("thread", "1"),
        ("create_serialize", "0"),
        ("softrandommap", "1"),
        ("random_generator", "lfsr"),
        ("randrepeat", "1"),
        ("allrandrepeat", "1"),
        ("verify_fatal", "1"),
        ("clocksource", "cpu"),
        ("disk_util", "0"),
        ("disable_bw_measurement", "1"),
        ("log_entries", "2048"),
        ("error_dump", "0"),
        ("unique_filename", "1"),
    ];
    let words: Vec<String> = options.iter().map(|(name, value)| format!("--{name}={value}")).collect();
    let line = format!("as fio --output-format=json --name=x --ioengine=null --size=64k {}", words.join(" "));
    let shown = json(&scratch.run(&line));
    for (name, value) in options {
        assert_eq!(shown["jobs"][0]["job options"][name], value, "{name}");
    }
}
