//! Checkpoints that are flushed while ranks go on: the same bytes as without, times that are known beforehand, and no half checkpoint for a whole.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::launchers::{MPIRUN, has, launch, output, text};
use crate::support::{Mounted, Running, Scratch, assert_partial, class, csv_rows, names_in, read_record};

/// Three checkpoints of two ranks, in five transfers each, the last a short one.
const SMALL: &str = "--size 300KiB --steps 3 --set compute=1ms,transfer=64KiB";
const BYTES: u64 = 300 * 1024;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    scratch
}

fn blocking(record: &Value) -> &Value {
    &record["phases"][0]["observations"]["checkpoint"]["blocking"]
}

fn ns(blocking: &Value, name: &str) -> u64 {
    blocking[name].as_u64().unwrap_or_else(|| panic!("no {name}: {blocking}"))
}

/// The application with flushers that take so long for a checkpoint, and with as long before it gets its name.
fn slow(scratch: &Scratch, flush: &str, rename: &str) {
    let text = scratch.run("app show checkpoint --toml").stdout;
    let flushing = "of = \"ranks.write\"\nafter = [\"ranks.write\"]\nonce = [\"open-container\"]\nbegin = [";
    let naming = "when = \"files=rank,names=renamed\"\nof = \"ranks.write\"\nafter = [\"flushers.flush\"]\n";
    assert!(text.contains(flushing) && text.contains(naming), "{text}");
    let text = text
        .replace("\"checkpoint\"\nversion", "\"slow\"\nversion")
        .replace(flushing, &format!("compute = \"{flush}\"\n{flushing}\"compute\", "))
        .replace(naming, &format!("{naming}compute = \"{rename}\"\nbegin = [\"compute\"]\n"));
    fs::write(scratch.join("slow.toml"), text).unwrap();
}

/// The files of the only run in a directory.
fn files_of(data: &Path) -> Option<PathBuf> {
    let top = names_in(data).into_iter().find(|name| name.starts_with("strata-app-"))?;
    Some(data.join(top).join("state")).filter(|files| files.is_dir())
}

#[test]
fn times_of_checkpoints_stand_in_csv_too() {
    let scratch = scratch();
    for flush in ["sync", "async"] {
        let record = scratch.measured(&format!("app checkpoint data {SMALL},flush={flush} --csv table.csv"));
        let table = fs::read_to_string(scratch.join("table.csv")).unwrap();
        let rows = csv_rows(&table);
        let seen = blocking(&record);
        for name in ["blocking_ns", "copy_ns", "stall_ns", "flush_ns"] {
            let told: Vec<&str> = rows.iter().map(|row| row[name]).filter(|text| !text.is_empty()).collect();
            let is_there = flush == "async" || name == "blocking_ns";
            let expected = if is_there { vec![ns(seen, name).to_string()] } else { Vec::new() };
            assert_eq!(told, expected, "{flush} {name}: {table}");
        }
    }
}

#[test]
fn the_idle_time_of_flushers_is_no_loss() {
    let scratch = scratch();
    let ended =
        scratch.run("app checkpoint data --size 300KiB --steps 3 --set compute=100ms,flush=async --profile");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("flushers: ") && ended.stdout.contains("wait "), "{}", ended.stdout);
    assert!(!ended.stdout.contains("flushers: wait takes"), "{}", ended.stdout);
}

#[test]
fn what_is_flushed_aside_is_what_ranks_would_have_written() {
    let scratch = scratch();
    for files in ["rank", "one"] {
        let mut found = Vec::new();
        for flush in ["sync", "async"] {
            let data = format!("{files}-{flush}");
            fs::create_dir(scratch.join(&data)).unwrap();
            let words = format!("app checkpoint {data} {SMALL},files={files},flush={flush} --seed 5 --keep");
            let record = scratch.measured(&words);
            assert_eq!(class(&record, 0, "write"), (2 * 3 * 5, 2 * 3 * BYTES), "{words}");
            assert_eq!(class(&record, 1, "read").1, 2 * BYTES, "{words}");
            let made = ["create", "sync", "close", "rename", "compute"];
            found.push(made.map(|name| class(&record, 0, name).0).to_vec());
            if flush == "async" {
                assert_eq!(class(&record, 0, "copy"), (2 * 3 * 5, 0), "a copy moves nothing to the target");
            }
            let seen = blocking(&record);
            assert_eq!((ns(seen, "checkpoints"), ns(seen, "rank_checkpoints")), (3, 6));
            assert_eq!(
                (&seen["is_async"], seen["flush_ns"].is_null()),
                (&(flush == "async").into(), flush == "sync")
            );
        }
        assert_eq!(found[0], found[1], "calls of {files}");
        let (sync, flushed) = (format!("{files}-sync"), format!("{files}-async"));
        let files = [sync, flushed].map(|data| files_of(&scratch.join(&data)).unwrap());
        let names = names_in(&files[0]);
        assert_eq!(names, names_in(&files[1]));
        for name in names {
            assert_eq!(
                fs::read(files[0].join(&name)).unwrap(),
                fs::read(files[1].join(&name)).unwrap(),
                "{name}"
            );
        }
    }
}

#[test]
fn flushes_go_to_every_kind_of_target() {
    let scratch = scratch();
    let check = |target: &str, more: &str| {
        for files in ["rank", "one"] {
            let words = format!("app checkpoint {target} {SMALL},flush=async,files={files}{more}");
            let record = scratch.measured(&words);
            assert_eq!(class(&record, 0, "write"), (30, 6 * BYTES), "{words}");
            assert_eq!(class(&record, 1, "read").1, 2 * BYTES, "{words}");
        }
    };
    check("vos:store", ",names=direct");
    check("null:", ",names=direct");
    assert_eq!(scratch.run("pool create vos:pool --scm 64m").code, Some(0));
    check("dfs+vos:pool", "");
    let words = "--no-attach-info --interface lo --pool tank --dir tank --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    check(&format!("engine://{address}/tank/objects"), ",names=direct");
    check(&format!("dfs+engine://{address}/tank/files"), "");
    let (options, server) = (S3Options::default(), S3Server::start(S3Options::default()).unwrap());
    server.store().create_bucket("states");
    let keys =
        [("AWS_ACCESS_KEY_ID", options.access.clone()), ("AWS_SECRET_ACCESS_KEY", options.secret.clone())];
    let words = format!(
        "app checkpoint s3://states {SMALL},flush=async,names=direct,transfer=300KiB --target-options s3-endpoint={} --json s3.json",
        server.endpoint()
    );
    let ended = scratch.start_in(&words, &keys).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(class(&read_record(&scratch.join("s3.json")), 1, "read").1, 2 * BYTES);
    assert!(server.store().keys("states").is_empty());
    let refused = scratch.run(&format!("app checkpoint vos:store {SMALL},flush=async"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("vos does not support rename") && refused.stderr.contains("names=direct"),
        "{}",
        refused.stderr
    );
}

#[test]
fn ranks_of_several_hosts_are_flushed_by_their_own_host() {
    let scratch = scratch();
    let words = format!("app checkpoint data {SMALL},flush=async,ranks=4");
    for files in ["rank", "one"] {
        let record = scratch.measured(&format!("{words},files={files} --hosts local:4"));
        assert_eq!(class(&record, 0, "write"), (4 * 3 * 5, 4 * 3 * BYTES), "{files}");
        assert_eq!(class(&record, 1, "read").1, 4 * BYTES, "{files}");
        let seen = blocking(&record);
        assert_eq!((ns(seen, "checkpoints"), ns(seen, "rank_checkpoints")), (3, 12));
        assert!(ns(seen, "copy_ns") > 0 && ns(seen, "flush_ns") > 0, "{seen}");
    }
    let refused = scratch.run(&format!("{words} --hosts local:3"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("ranks=6") && refused.stderr.contains("flush=sync"),
        "{}",
        refused.stderr
    );
    assert!(names_in(&scratch.join("data")).is_empty());
    if has("ranks_of_several_hosts", "mpirun.openmpi") {
        let ended = output(launch(
            &scratch,
            &[MPIRUN, &["-np", "2"]].concat(),
            &format!("{words},files=one --json mpi.json"),
            &[],
        ));
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        assert_eq!(class(&read_record(&scratch.join("mpi.json")), 1, "read").1, 4 * BYTES);
    }
}

#[test]
fn ranks_stand_still_for_the_copy_alone_where_computing_is_longer_than_the_flush() {
    let scratch = scratch();
    // A flush takes 1 s and what a write of 32 MiB takes: ranks that waited for it would stand still as long.
    slow(&scratch, "1s", "0ms");
    let words = "--size 32MiB --steps 2 --set compute=4s,flush=async";
    let flushed = scratch.measured(&format!("app slow.toml data {words}"));
    let seen = blocking(&flushed);
    assert_eq!(ns(seen, "stall_ns"), 0, "{seen}");
    assert_eq!(ns(seen, "blocking_ns"), ns(seen, "copy_ns"), "{seen}");
    assert!(ns(seen, "blocking_ns") * 2 < ns(seen, "flush_ns"), "{seen}");
    assert!(ns(seen, "flush_ns") >= 1_000_000_000 && ns(seen, "compute_ns") >= 4_000_000_000, "{seen}");
    // The flush of the last one of two has nothing beside it.
    let overlap = seen["overlap_fraction"].as_f64().unwrap();
    assert!((0.25..0.75).contains(&overlap), "{seen}");
    let share = flushed["phases"][0]["observations"]["checkpoint"]["share_fraction"].as_f64().unwrap();
    assert!(share < 0.1, "{share}");
    let shown = scratch.run("report record.json").stdout;
    for part in
        ["blocking", "copy ", "stall 0 ns", "flush ", "while ranks continued", "2 checkpoints complete"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn ranks_wait_for_the_flush_before_where_they_compute_nothing() {
    let scratch = scratch();
    slow(&scratch, "300ms", "0ms");
    let record = scratch.measured("app slow.toml data --size 64KiB --steps 5 --set compute=0,flush=async");
    let seen = blocking(&record);
    // Four of five wait about as long as a flush takes.
    let stall_ns = ns(seen, "stall_ns");
    assert!(stall_ns >= 200_000_000 && stall_ns <= ns(seen, "flush_ns") * 2, "{seen}");
    assert!(ns(seen, "blocking_ns") >= stall_ns + ns(seen, "copy_ns"), "{seen}");
    assert_eq!((ns(seen, "compute_ns"), ns(seen, "checkpoints")), (0, 5));
    assert!(seen["overlap_fraction"].as_f64().unwrap() < 0.1, "{seen}");
    assert_eq!(class(&record, 1, "read").1, 2 * 64 * 1024);
}

/// Waits until both parts of the first checkpoint are there, without their names.
fn await_parts(running: &Running, data: &Path) -> PathBuf {
    running.await_some(|| {
        let files = files_of(data)?;
        let is_whole = |name: &str| fs::metadata(files.join(name)).is_ok_and(|file| file.len() == 64 * 1024);
        (is_whole("0.tmp") && is_whole("1.tmp")).then_some(files)
    })
}

#[test]
fn a_checkpoint_that_was_not_ended_has_no_name() {
    let scratch = scratch();
    let data = scratch.join("data");
    slow(&scratch, "0ms", "30s");
    let words = "app slow.toml data --size 64KiB --steps 3 --set compute=1ms,flush=async --json record.json";
    let running = scratch.start(&format!("{words} --keep"));
    let files = await_parts(&running, &data);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    assert_eq!(record["phases"].as_array().unwrap().len(), 1, "nothing is restarted from it");
    let seen = &record["phases"][0]["observations"]["checkpoint"]["blocking"];
    assert_eq!(seen["checkpoints"], 0, "copied, and not complete: {seen}");
    assert!(names_in(&files).iter().all(|name| name.ends_with(".tmp")), "{:?}", names_in(&files));
    fs::remove_dir_all(files.parent().unwrap()).unwrap();

    let running = scratch.start(words);
    await_parts(&running, &data);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    assert!(names_in(&data).is_empty(), "{:?}", names_in(&data));

    let running = scratch.start(words);
    let files = await_parts(&running, &data);
    running.signal(Signal::KILL);
    running.end();
    assert!(names_in(&files).iter().all(|name| name.ends_with(".tmp")));
    assert_eq!(scratch.run("clean --yes").code, Some(0));
    assert!(names_in(&data).is_empty());
}

#[test]
fn a_flushed_byte_that_was_changed_is_found_on_restart() {
    let scratch = scratch();
    slow(&scratch, "0ms", "3s");
    let words = "app slow.toml data --size 64KiB --steps 1 --set compute=0,flush=async --json record.json";
    let running = scratch.start(words);
    let part = await_parts(&running, &scratch.join("data")).join("1.tmp");
    let file = fs::OpenOptions::new().read(true).write(true).open(part).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 40_001).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 40_001).unwrap();
    drop(file);
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "damaged");
    let said = record["failure"].as_str().unwrap();
    assert!(said.contains("process 1, ") && said.contains("byte 40001"), "{said}");
}

#[test]
fn a_flush_that_fills_the_target_ends_the_run() {
    let scratch = scratch();
    let Some(small) = Mounted::tmpfs("8m") else { return };
    let target = small.path().display().to_string();
    let words = format!(
        "app checkpoint {target} --size 1MiB --steps 2 --set compute=3s,flush=async --json record.json --live-csv -"
    );
    // Before it computes, the room is looked at: with less it would not begin.
    let mut running = scratch.start(&words);
    running.await_row("checkpoint");
    fs::write(small.path().join("others"), vec![0; 7 << 20]).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "No space left");
    assert_eq!(names_in(small.path()), ["others"]);
    assert_eq!(record["phases"].as_array().unwrap().len(), 1);
}
