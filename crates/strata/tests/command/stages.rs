//! Phases that run at the same time: their figures, their limits, their verification, and what is refused of them.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Ended, Mounted, NO_ROOT, Scratch, assert_partial, class, names_in, read_record, skipped, total,
};

/// Three phases at the same time on files of their own.
const THREE: &str = "block_size = '4k'\nsize = '256k'\ntime = '60s'\n\
     [[phase]]\nname = 'one'\ntargets = ['a']\nop = 'randread'\n\
     [[phase]]\nname = 'two'\ntargets = ['b']\nop = 'randwrite'\nconcurrent = true\n\
     [[phase]]\nname = 'three'\ntargets = ['c']\nop = 'randrw'\nrate = '500'\nconcurrent = true\n";

fn run_job(scratch: &Scratch, job: &str) -> (Ended, Value) {
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    scratch.measure("run job.toml")
}

fn ran(scratch: &Scratch, job: &str) -> Value {
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    scratch.measured("run job.toml")
}

/// Name, stage, request, and whether it reads back, of every phase.
fn places(record: &Value) -> Vec<(String, u64, u64, bool)> {
    let phases = record["phases"].as_array().unwrap().iter();
    let place = |phase: &Value| {
        let number = |key: &str| phase[key].as_u64().unwrap();
        let name = phase["plan"]["name"].as_str().unwrap().to_owned();
        (name, number("stage"), number("request"), phase["is_read_back"].as_bool().unwrap())
    };
    phases.map(place).collect()
}

fn place(name: &str, stage: u64, request: u64, is_read_back: bool) -> (String, u64, u64, bool) {
    (name.to_owned(), stage, request, is_read_back)
}

/// When the window of a phase opened and how long it was, nanoseconds.
fn window(record: &Value, phase: usize) -> (u64, u64) {
    let samples = &record["phases"][phase]["samples"];
    (samples["started_ns"].as_u64().unwrap(), samples["elapsed_ns"].as_u64().unwrap())
}

#[test]
fn a_writer_and_a_reader_at_the_same_time() {
    let scratch = Scratch::new();
    let job = "size = '1m'\nblock_size = '4k'\n\
               [[phase]]\nname = 'before'\ntargets = ['a']\nop = 'write'\n\
               [[phase]]\nname = 'writer'\ntargets = ['a']\nop = 'randwrite'\ntime = '1s'\n\
               [[phase]]\nname = 'reader'\ntargets = ['b']\nop = 'randread'\ntime = '800ms'\nthreads = 2\n\
               concurrent = true\nstart_delay = '100ms'\n\
               [[phase]]\nname = 'after'\ntargets = ['a']\nop = 'read'\n";
    let record = ran(&scratch, job);
    assert_eq!(
        places(&record),
        [
            place("before", 0, 0, false),
            place("writer", 1, 1, false),
            place("reader", 1, 2, false),
            place("after", 2, 3, false)
        ]
    );
    let ((writer_ns, writer_for_ns), (reader_ns, reader_for_ns)) = (window(&record, 1), window(&record, 2));
    assert_eq!(reader_ns - writer_ns, 100_000_000, "the delay counts from where both could begin");
    assert_eq!((writer_for_ns, reader_for_ns), (1_000_000_000, 800_000_000));
    for phase in [1, 2] {
        assert!(total(&record, phase, "operations_per_second").as_f64().unwrap() > 0.0);
        assert_eq!(total(&record, phase, "errors"), 0);
        let observations = &record["phases"][phase]["observations"];
        assert_eq!(observations["kernel_worker_cpu_ns"], Value::Null, "it did not run alone");
    }
    assert_eq!(
        record["phases"][1]["summary"]["classes"].as_array().unwrap().len(),
        1,
        "a writer only writes"
    );
    assert_eq!(record["phases"][2]["samples"]["workers"].as_array().unwrap().len(), 2);
    assert!(record["phases"][0]["observations"]["kernel_worker_cpu_ns"].is_u64());
    assert_eq!(class(&record, 3, "read"), (256, 1 << 20));
    assert_eq!(scratch.names(), ["job.toml", "record.json"], "files of every phase are gone");
}

#[test]
fn both_are_verified() {
    let scratch = Scratch::new();
    let job = "size = '256k'\nblock_size = '4k'\nverify = true\n\
               [[phase]]\nname = 'one'\ntargets = ['a', 'b']\nop = 'write'\n\
               [[phase]]\nname = 'two'\ntargets = ['c']\nop = 'randwrite'\ncount = 200\nconcurrent = true\n\
               [[phase]]\nname = 'again'\ntargets = ['a', 'b']\nop = 'randread'\n\
               [[phase]]\nname = 'other'\ntargets = ['c']\nop = 'randrw'\ncount = 100\nconcurrent = true\n";
    let record = ran(&scratch, job);
    assert_eq!(
        places(&record),
        [
            place("one", 0, 0, false),
            place("two", 0, 1, false),
            place("verify", 1, 0, true),
            place("verify", 1, 1, true),
            place("again", 2, 2, false),
            place("other", 2, 3, false),
            place("verify", 3, 3, true),
        ]
    );
    assert_eq!((class(&record, 2, "read"), class(&record, 3, "read")), ((128, 512 << 10), (64, 256 << 10)));
    for phase in [2, 3, 4, 6] {
        let worker = &record["phases"][phase]["samples"]["workers"][0];
        assert!(worker["verify_ns"].as_u64().unwrap() > 0, "phase {phase} checked nothing");
    }
}

#[test]
fn the_first_to_be_done_ends_the_others() {
    let scratch = Scratch::new();
    let job = "block_size = '4k'\n\
               [[phase]]\nname = 'long'\ntargets = ['null:']\nop = 'randread'\ntime = '60s'\n\
               [[phase]]\nname = 'short'\ntargets = ['a']\nsize = '1m'\nop = 'write'\nconcurrent = true\nend_others = true\nstart_delay = '500ms'\n";
    let record = ran(&scratch, job);
    assert!(window(&record, 0).1 < 30_000_000_000);
    assert!(total(&record, 0, "operations").as_u64().unwrap() > 0);
    assert_eq!(class(&record, 1, "write"), (256, 1 << 20));
    assert_eq!(record["phases"][0]["notes"], json!(["ended because phase short ended"]));
}

#[test]
fn a_failure_stops_the_stage_and_the_run() {
    let scratch = Scratch::new();
    let job = "block_size = '4k'\n\
               [[phase]]\nname = 'fine'\ntargets = ['null:']\nop = 'randread'\ntime = '60s'\n\
               [[phase]]\nname = 'full'\ntargets = ['/dev/full']\nop = 'write'\ntime = '60s'\nconcurrent = true\n\
               [[phase]]\nname = 'never'\ntargets = ['null:']\nop = 'randread'\ncount = 1\n";
    let (ended, record) = run_job(&scratch, job);
    assert_partial(&scratch, &ended, &record, "No space left");
    assert_eq!(places(&record), [place("fine", 0, 0, false), place("full", 0, 1, false)]);
    assert_eq!(record["phases"][0]["failure"], "stopped: phase full failed");
}

#[test]
fn what_cannot_run_together_is_refused() {
    let scratch = Scratch::new();
    let two = |one: &str, other: &str| {
        format!("size = '1m'\n[[phase]]\ntargets = ['a']\n{one}\n[[phase]]\nconcurrent = true\n{other}\n")
    };
    let same = "--verify needs one writer per block and no concurrent access to it (path=";
    for (job, expected) in [
        ("targets = ['null:']\nop = 'read'\nconcurrent = true\n".to_owned(), "no phase before it"),
        (two("op = 'write,read'", "targets = ['b']\nop = 'write'"), "has one operation (phase=number 1 of its stage)"),
        (two("op = 'read'", "name = 'x'\ntargets = ['b']\nop = 'write,read'"), "has one operation (phase=x)"),
        (two("op = 'read'\nladder = 'depth=1,2'", "targets = ['b']\nop = 'read'"), "a ladder requires one operation"),
        (two("op = 'read'", "targets = ['b']\nop = 'read'\nsaturate = true"), "a ladder requires one operation"),
        (two("op = 'write'\nverify = true", "targets = ['a']\nop = 'write'"), same),
        (two("op = 'write'\nverify = true", "targets = ['./a']\nop = 'read'\nverify = true"), same),
        (two("op = 'read'\nverify = true", "targets = ['b', 'a']\nop = 'randwrite'"), same),
        (
            two("op = 'read'\ncache = 'drop'", "targets = ['a']\nop = 'randread'\ncache = 'warm'"),
            "--cache drop and --cache warm on one range cancel each other (path=",
        ),
        (
            "[[phase]]\ntargets = ['null:']\nop = 'read'\nend_others = true\n[[phase]]\ntargets = ['null:']\nop = 'read'\n"
                .to_owned(),
            "--end-others ends concurrent phases, but none exist",
        ),
    ] {
        std::fs::write(scratch.join("job.toml"), &job).unwrap();
        let ended = scratch.run("run job.toml");
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{job}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{job}: {}", ended.stderr);
        assert_eq!(scratch.names(), ["job.toml"], "{job}: touched something");
    }
    // Ranges of their own in one file.
    let job = "targets = ['a']\nsize = '64k'\nblock_size = '4k'\nverify = true\nop = 'write'\n\
               [[phase]]\n[[phase]]\noffset = '64k'\nconcurrent = true\n";
    let record = ran(&scratch, job);
    assert_eq!(places(&record).len(), 4);
    assert_eq!(class(&record, 3, "read"), (16, 64 << 10));
}

#[test]
fn the_command_line_has_one_phase() {
    let scratch = Scratch::new();
    for (words, expected) in [
        ("media null: --op read --concurrent", "--concurrent: no phase before it"),
        ("media null: --op write,read --concurrent", "--concurrent: no phase before it"),
        ("media null: --op read --end-others", "--end-others ends concurrent phases"),
    ] {
        let ended = scratch.run(words);
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected) && ended.stderr.contains("job file"),
            "{words}: {}",
            ended.stderr
        );
    }
}

#[test]
fn every_phase_of_a_list_is_a_stage() {
    let scratch = Scratch::new();
    let record =
        scratch.measured("media a -s 64k --op write,randwrite,randread -b 4k --verify --start-delay 20ms");
    assert_eq!(
        places(&record),
        [
            place("write", 0, 0, false),
            place("verify", 1, 0, true),
            place("randwrite", 2, 0, false),
            place("randread", 3, 0, false)
        ]
    );
    assert_eq!(record["phases"][1]["plan"]["load"]["start_delay_ns"], 0, "nobody waits to read back");
    assert_eq!(record["phases"][2]["plan"]["load"]["start_delay_ns"], 20_000_000);
    let record = scratch.measured("media null: --op randread --ladder depth=1,2 --count 10");
    assert_eq!(places(&record).iter().map(|place| (place.1, place.2)).collect::<Vec<_>>(), [(0, 0), (1, 0)]);
    let record = scratch.measured("media null: --op randread --saturate --time 5ms");
    let stages: Vec<_> = places(&record).iter().map(|place| place.1).collect();
    assert_eq!(stages, (0..stages.len() as u64).collect::<Vec<_>>());
}

#[test]
fn devices_are_told_apart() {
    let scratch = Scratch::new();
    scratch.measured("media a -s 1m --op write -b 64k --end-fsync");
    let record = read_record(&scratch.join("record.json"));
    let observations = &record["phases"][0]["observations"];
    let devices = observations["devices"].as_array().unwrap();
    if devices.is_empty() {
        return crate::support::skipped(
            "devices_are_told_apart",
            "no block device is under the build's directory",
        );
    }
    assert!(devices.len() == 1 && !devices[0]["name"].as_str().unwrap().is_empty(), "{devices:?}");
    assert_eq!(devices[0]["written_bytes"], observations["device_written_bytes"]);
    assert!(devices[0]["written_bytes"].as_u64().unwrap() >= 1 << 20, "made durable: {devices:?}");
    assert!(devices[0]["writes"].as_u64().unwrap() > 0);
    let record = scratch.measured("media null: --op read --count 10");
    assert_eq!(record["phases"][0]["observations"]["devices"], json!([]));
}

#[test]
fn a_signal_ends_all_phases_of_a_stage() {
    for signal in [Signal::INT, Signal::TERM] {
        let scratch = Scratch::new();
        fs::write(scratch.join("job.toml"), THREE).unwrap();
        let mut running = scratch.start("run job.toml --live-csv - --json record.json");
        running.await_row("one + two + three");
        running.signal(signal);
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        assert_partial(&scratch, &ended, &record, "interrupted");
        assert_eq!(record["phases"].as_array().unwrap().len(), 3);
        for phase in 0..3 {
            assert_eq!(record["phases"][phase]["failure"], "interrupted");
            assert!(total(&record, phase, "operations").as_u64().unwrap() > 0);
            let rate = total(&record, phase, "operations_per_second").as_f64().unwrap();
            assert!(rate > 0.0 && window(&record, phase).1 < 60_000_000_000);
        }
        assert_eq!(scratch.names(), ["job.toml", "record.json"], "left something behind");
    }
}

#[test]
fn a_killed_stage_leaves_the_stages_before_it() {
    let scratch = Scratch::new();
    let job = THREE.replacen(
        "[[phase]]",
        "[[phase]]\nname = 'zero'\ntargets = ['a']\nop = 'write'\ntime = '20ms'\n[[phase]]",
        1,
    );
    fs::write(scratch.join("job.toml"), job).unwrap();
    let mut running = scratch.start("run job.toml --live-csv - --json record.json");
    running.await_row("one + two + three");
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!((&record["status"], places(&record)), (&"running".into(), vec![place("zero", 0, 0, false)]));
    let shown = scratch.run("report record.json");
    assert!(shown.code == Some(0) && shown.stdout.contains("killed"), "{}", shown.stdout);
}

#[test]
fn an_interrupted_dialect_prints_all_its_jobs() {
    let scratch = Scratch::new();
    let job = "[global]\nioengine=psync\nsize=256k\nbs=4k\ntime_based=1\nruntime=60\nunlink=1\n\
               [a]\nrw=randread\n[b]\nrw=randwrite\n[c]\nrw=randrw\n";
    fs::write(scratch.join("job.fio"), job).unwrap();
    let words = "as --live-csv live.csv --json record.json fio --output-format=json job.fio";
    let running = scratch.start(words);
    let rows = scratch.join("live.csv");
    running.await_that(|| fs::read_to_string(&rows).is_ok_and(|found| found.contains("a + b + c")));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let shown: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout));
    let jobs: Vec<_> = shown["jobs"].as_array().unwrap().iter().map(|job| &job["jobname"]).collect();
    assert_eq!(jobs, ["a", "b", "c"]);
    assert_eq!(read_record(&scratch.join("record.json"))["status"], "partial");
}

#[test]
fn a_file_system_that_runs_full_under_one_phase() {
    let Some(disk) = Mounted::tmpfs("4m") else {
        return skipped("a_file_system_that_runs_full_under_one_phase", NO_ROOT);
    };
    let scratch = Scratch::new();
    let place = disk.path().display();
    // The first one only counts its failures: it is not what the run failed of.
    let job = format!(
        "block_size = '64k'\ntime = '60s'\n\
         [[phase]]\nname = 'counting'\ntargets = ['/dev/full']\nop = 'write'\non_error = 'continue'\nthink_time = '10ms'\n\
         [[phase]]\nname = 'fine'\ntargets = ['null:']\nop = 'randread'\nconcurrent = true\nthink_time = '1ms'\n\
         [[phase]]\nname = 'full'\ntargets = ['{place}/file']\nsize = '8m'\nlayout = 'sparse'\nop = 'write'\n\
         concurrent = true\nstart_delay = '200ms'\n"
    );
    let (ended, record) = run_job(&scratch, &job);
    assert_partial(&scratch, &ended, &record, "write failed: No space left on device");
    let failures: Vec<_> = (0..3).map(|phase| record["phases"][phase]["failure"].as_str().unwrap()).collect();
    assert_eq!(failures[..2], ["stopped: phase full failed"; 2]);
    assert_eq!(record["failure"], failures[2], "the phase that failed is the one to blame");
    assert!(total(&record, 0, "errors").as_u64().unwrap() > 0);
    assert!(total(&record, 1, "operations").as_u64().unwrap() > 0);
    let written = total(&record, 2, "bytes").as_u64().unwrap();
    assert!((3 << 20..=4 << 20).contains(&written), "{written}");
    assert!(names_in(disk.path()).is_empty(), "left something behind");
}

#[test]
fn damage_under_one_phase_stops_the_others() {
    let scratch = Scratch::new();
    let job = "block_size = '4k'\nsize = '256k'\ntime = '60s'\nverify = true\n\
               [[phase]]\nname = 'healthy'\ntargets = ['a']\nop = 'randrw'\n\
               [[phase]]\nname = 'damaged'\ntargets = ['b']\nop = 'randread'\nconcurrent = true\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    // What is only checked is not made.
    scratch.measured("media b --op write --verify --keep -b 4k --size 256k");
    let mut running = scratch.start("run job.toml --live-csv - --json record.json");
    running.await_row("healthy + damaged");
    let file = OpenOptions::new().write(true).open(scratch.join("b")).unwrap();
    file.write_all_at(&[7; 64], 8 * 4096 + 1000).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "read failed: corrupt");
    assert_eq!(places(&record).len(), 2, "nothing is read back after a failure");
    assert_eq!(record["phases"][0]["failure"], "stopped: phase damaged failed");
    assert_eq!((total(&record, 0, "errors"), total(&record, 1, "errors")), (&0.into(), &1.into()));
    assert_eq!(scratch.names(), ["b", "job.toml", "record.json"]);
}

#[test]
fn one_that_cannot_be_opened_lets_nobody_begin() {
    let reserved = fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap_or_default();
    if reserved.trim() != "0" {
        return skipped("one_that_cannot_be_opened_lets_nobody_begin", "huge pages are reserved here");
    }
    let scratch = Scratch::new();
    let job = "size = '256k'\ncount = 10\n\
               [[phase]]\ntargets = ['a']\nop = 'randwrite'\n\
               [[phase]]\ntargets = ['b']\nop = 'randwrite'\nhuge_pages = true\nconcurrent = true\n";
    let (ended, record) = run_job(&scratch, job);
    assert_partial(&scratch, &ended, &record, "reserve huge pages");
    assert_eq!(record["phases"], json!([]));
    assert_eq!(scratch.names(), ["job.toml", "record.json"], "left something behind");
}

#[test]
fn what_never_began_has_no_figures() {
    let scratch = Scratch::new();
    let job = "block_size = '4k'\ntargets = ['null:']\nop = 'randread'\n\
               [[phase]]\nname = 'short'\ntime = '50ms'\nend_others = true\n\
               [[phase]]\nname = 'late'\nstart_delay = '1h'\nrate = '1k'\nconcurrent = true\n\
               [[phase]]\nname = 'warming'\nwarmup = '1h'\nrate = '1k'\nconcurrent = true\n";
    let record = ran(&scratch, job);
    for phase in [1, 2] {
        let summary = &record["phases"][phase]["summary"];
        assert_eq!((&summary["total"]["operations"], &summary["cpus_used"]), (&0.into(), &0.0.into()));
        let arrivals = &record["phases"][phase]["arrivals"];
        assert_eq!(
            (&arrivals["started_per_second"], &arrivals["unserved_operations"]),
            (&0.0.into(), &0.into())
        );
        assert_eq!(record["phases"][phase]["notes"], json!(["ended because phase short ended"]));
    }
}

#[test]
fn many_phases_at_the_same_time() {
    let scratch = Scratch::new();
    let phase = |number: usize| {
        let key = if number > 0 { "concurrent = true\n" } else { "" };
        format!("[[phase]]\nname = 'j{number}'\n{key}")
    };
    let phases: String = (0..128).map(phase).collect();
    let record =
        ran(&scratch, &format!("targets = ['a']\nsize = '1m'\nblock_size = '4k'\nop = 'randread'\n{phases}"));
    assert_eq!(record["phases"].as_array().unwrap().len(), 128);
    assert!((0..128).all(|phase| class(&record, phase, "read") == (256, 1 << 20)));
    let length = fs::metadata(scratch.join("record.json")).unwrap().len();
    assert!(length < 128 * 64 * 1024, "{length} bytes of record");
    assert!(record["peak_rss_bytes"].as_u64().unwrap() < 256 << 20);
}

/// A stage on a file, on an object store in this process and on the network.
const LAYERS: &str = "time = '400ms'\n\
     [[phase]]\nname = 'blocks'\ntargets = ['a']\nsize = '1m'\nblock_size = '4k'\nop = 'randwrite'\nverify = true\n\
     [[phase]]\nname = 'objects'\nlayer = 'object'\ntargets = ['vos:store']\nop = 'get'\ndkeys = 50\nscm = '64m'\nconcurrent = true\n\
     [[phase]]\nname = 'rpcs'\nlayer = 'network'\ntargets = ['loopback:']\nmessage_sizes = 'i64'\nconcurrent = true\n";

#[test]
fn phases_of_three_layers_at_the_same_time() {
    let scratch = Scratch::new();
    let record = ran(&scratch, LAYERS);
    assert_eq!(
        places(&record),
        [
            place("fill", 0, 1, false),
            place("blocks", 1, 0, false),
            place("objects", 1, 1, false),
            place("rpcs", 1, 2, false),
            place("verify", 2, 0, true),
        ]
    );
    let windows: Vec<(u64, u64)> = (1..4).map(|phase| window(&record, phase)).collect();
    assert!(windows.iter().all(|(start_ns, _)| *start_ns == windows[0].0), "all began at once: {windows:?}");
    let classes = |phase: usize| -> Vec<&str> {
        let classes = record["phases"][phase]["summary"]["classes"].as_array().unwrap().iter();
        classes.map(|class| class["class"].as_str().unwrap()).collect()
    };
    assert_eq!(
        [classes(1), classes(2), classes(3)],
        [["write"], ["get"], ["rpc"]],
        "each has its own classes"
    );
    for phase in 1..4 {
        assert!(total(&record, phase, "operations").as_u64().unwrap() > 0);
        assert_eq!(total(&record, phase, "errors"), 0);
    }
    let seen = |phase: usize| &record["phases"][phase]["observations"];
    assert!(seen(1)["unwritten_fraction"].is_number() && seen(1)["store"].is_null(), "{}", seen(1));
    assert!(
        seen(2)["store"]["before"]["scm_bytes"].is_u64() && seen(2)["servers"] == json!([]),
        "{}",
        seen(2)
    );
    let served = seen(3)["servers"][0]["rpcs"].as_u64().unwrap();
    assert!(served >= total(&record, 3, "operations").as_u64().unwrap(), "{served}");
    let page = scratch.run("report record.json");
    assert!(page.stdout.contains("beside    objects, rpcs, at the same time"), "{}", page.stdout);
    assert_eq!(scratch.names(), ["job.toml", "record.json"], "files and the store are gone");
}

#[test]
fn a_phase_of_one_layer_ends_those_of_others() {
    let scratch = Scratch::new();
    let job = "[[phase]]\nname = 'few'\nlayer = 'object'\ntargets = ['vos:store']\nop = 'put'\ndkeys = 100\nscm = '64m'\nend_others = true\n\
               [[phase]]\nname = 'many'\ntargets = ['null:']\nop = 'randread'\ntime = '1h'\nconcurrent = true\n";
    let record = ran(&scratch, job);
    assert_eq!(total(&record, 0, "operations"), 100);
    let notes = record["phases"][1]["notes"].to_string();
    assert!(notes.contains("few"), "{notes}");
    assert_eq!(record["status"], "complete");
}

/// A store that runs full is a failure of its phase, and the phase on the file beside it stops.
#[test]
fn a_failure_in_one_layer_stops_the_others() {
    let scratch = Scratch::new();
    let job = "[[phase]]\nname = 'full'\nlayer = 'object'\ntargets = ['vos:store']\nop = 'put'\ndkeys = 5000\nvalue_size = '64k'\nscm = '64m'\ntime = '1h'\n\
               [[phase]]\nname = 'beside'\ntargets = ['a']\nsize = '1m'\nblock_size = '4k'\nop = 'randread'\ntime = '1h'\nconcurrent = true\n";
    let (ended, record) = run_job(&scratch, job);
    assert_partial(&scratch, &ended, &record, "No space left on device");
    let failure = record["phases"][1]["failure"].as_str().unwrap();
    assert_eq!(failure, "stopped: phase full failed");
    assert!(total(&record, 1, "operations").as_u64().unwrap() > 0, "what it measured is kept");
    assert_eq!(scratch.names(), ["job.toml", "record.json"]);
}

#[test]
fn phases_that_masters_drive_are_alone() {
    let scratch = Scratch::new();
    let _engine = crate::engines::Engine::start(scratch.path(), "");
    let before = scratch.names();
    let job = "[[phase]]\nname = 'driven'\nlayer = 'network'\npath = '.'\nmaster = '0:2'\ntime = '1s'\n\
               [[phase]]\nname = 'blocks'\ntargets = ['a']\nsize = '1m'\nop = 'write'\nconcurrent = true\n";
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    let ended = scratch.run("run job.toml");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("here=blocks, masters=driven"), "{}", ended.stderr);
    let after = scratch.names();
    assert!(
        after.iter().filter(|name| *name != "job.toml").eq(before.iter()),
        "nothing is touched: {after:?}"
    );
}
