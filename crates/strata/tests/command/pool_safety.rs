//! Pools that were cut off, are damaged, lie on a full file system, or were made otherwise than a run asks.

use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::engines::Engine;
use crate::support::{Mounted, Scratch, names_in, skipped};

fn refused(scratch: &Scratch, words: &str, code: i32, expected: &str) {
    let ended = scratch.run(words);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(code), 1), "{words}: {ended:?}");
    assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
}

fn done(scratch: &Scratch, words: &str) -> String {
    let ended = scratch.run(words);
    assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    ended.stdout
}

#[test]
fn a_pool_that_was_not_finished_is_made_anew_or_destroyed() {
    let scratch = Scratch::new();
    let tank = scratch.join("tank");
    // As releases before left it, and as this one does.
    for begun in ["superblock", "superblock.partial"] {
        for ends in ["pool destroy vos:tank", "pool create vos:tank --scm 64m"] {
            std::fs::create_dir_all(tank.join("target.0")).unwrap();
            std::fs::write(tank.join(begun), b"").unwrap();
            std::fs::write(tank.join("target.0/log"), b"half").unwrap();
            refused(&scratch, "pool query vos:tank", 2, "the directory contains no pool");
            done(&scratch, ends);
            assert_eq!(tank.exists(), ends.contains("create"), "{begun}: {ends}");
            if tank.exists() {
                assert!(!tank.join("superblock.partial").exists());
                done(&scratch, "pool destroy vos:tank");
            }
            assert!(!tank.exists(), "{begun}: {:?}", names_in(&tank));
        }
    }
    // A directory with anything else in it is somebody's.
    std::fs::create_dir(&tank).unwrap();
    std::fs::write(tank.join("superblock.partial"), b"").unwrap();
    std::fs::write(tank.join("letters"), b"mine").unwrap();
    refused(&scratch, "pool create vos:tank --scm 64m", 2, "the directory contains other files");
    refused(&scratch, "pool destroy vos:tank --destroy-data", 2, "the directory contains no pool");
    assert_eq!(names_in(&tank), ["letters", "superblock.partial"]);
}

#[test]
fn a_making_that_is_killed_leaves_nothing_that_stays() {
    let scratch = Scratch::new();
    for life in 0..12 {
        let running = scratch.start("pool create vos:tank --scm 256m --store-targets 4");
        std::thread::sleep(Duration::from_millis(life * 3));
        running.signal(Signal::KILL);
        running.end();
        let made = scratch.run("pool create vos:tank --scm 64m");
        let is_there = made.stderr.contains("the directory already contains a pool");
        assert!(made.code == Some(0) || is_there, "life {life}: {made:?}");
        done(&scratch, "pool query vos:tank");
        done(&scratch, "pool destroy vos:tank");
        assert!(!scratch.join("tank").exists(), "life {life}");
    }
}

#[test]
fn a_damaged_table_of_containers_is_told_and_the_pool_goes() {
    let scratch = Scratch::new();
    done(&scratch, "pool create vos:tank --scm 64m");
    done(&scratch, "container create vos:tank fields");
    let path = scratch.join("tank/containers");
    let text = std::fs::read_to_string(&path).unwrap();
    // Still JSON, and another label.
    let at = text.find("fields").unwrap() as u64;
    std::fs::File::options().write(true).open(&path).unwrap().write_all_at(b"y", at).unwrap();
    refused(&scratch, "pool query vos:tank", 1, "its checksum does not match");
    refused(&scratch, "pool destroy vos:tank", 2, "--destroy-data");
    done(&scratch, "pool destroy vos:tank --destroy-data");
    assert!(!scratch.join("tank").exists());
}

#[test]
fn a_file_system_that_the_pool_filled_leaves_room_for_its_tables() {
    let Some(full) = Mounted::tmpfs("48m") else {
        return skipped("a_file_system_that_the_pool_filled", "no file system can be mounted");
    };
    let scratch = Scratch::new();
    let pool = format!("vos:{}", full.path().join("tank").display());
    done(&scratch, &format!("pool create {pool} --scm 64m"));
    done(&scratch, &format!("container create {pool} kept"));
    let put = "--op put --container kept --value-size 64k --keep --verify";
    let some = scratch.measured(&format!("object {pool} {put} --dkeys 20"));
    assert!(some["phases"][0]["failure"].is_null());
    let filled = scratch.run(&format!("object {pool} {put} --dkeys 4000"));
    assert!(filled.code == Some(1) && filled.stderr.contains("No space"), "{filled:?}");
    // Whatever else fills what is left.
    let rest = std::fs::File::create(full.path().join("rest")).unwrap();
    let mut at = 0;
    while rest.write_at(&[1; 4096], at).is_ok_and(|bytes| bytes > 0) {
        at += 4096;
    }
    let facts = done(&scratch, &format!("pool query {pool} --json"));
    assert_eq!(serde_json::from_str::<Value>(&facts).unwrap()["containers"], 1, "{facts}");
    let back = format!(
        "object {pool} --op get --container kept --value-size 64k --dkeys 20 --no-fill --verify --keep"
    );
    assert_eq!(scratch.run(&back).code, Some(0), "{:?}", scratch.run(&back));
    done(&scratch, &format!("container create {pool} another"));
    done(&scratch, &format!("container destroy {pool} another --destroy-data"));
    done(&scratch, &format!("pool destroy {pool} --destroy-data"));
    assert_eq!(names_in(full.path()), ["rest"]);
}

#[test]
fn a_run_takes_the_facts_of_the_pool_that_is_there() {
    let scratch = Scratch::new();
    done(&scratch, "pool create vos:tank --scm 103m --nvme 65m --store-targets 3 --threshold 16k");
    for class in ["RP_2G1", "S2", "EC_2P1G1"] {
        let record =
            scratch.measured(&format!("object vos:tank --op put,get --dkeys 20 --class {class} --verify"));
        let options = &record["phases"][0]["plan"]["options"];
        assert_eq!((&options["targets"], &options["threshold_bytes"]), (&3.into(), &16384.into()), "{class}");
        assert!(options["nvme_bytes"].as_u64().unwrap() > 60 << 20, "{options}");
    }
    // What it was made with may be said again, though it was rounded.
    scratch.measured("object vos:tank --op put --dkeys 20 --scm 103m --nvme 65m");
    refused(&scratch, "object vos:tank --op put --dkeys 20 --nvme 1g", 2, "the pool has");
    refused(
        &scratch,
        "object vos:tank --op put --dkeys 20 --threshold 4k",
        2,
        "the pool was created with --threshold 16",
    );
    refused(
        &scratch,
        "object vos:tank --op put --dkeys 20 --class RP_4G1",
        2,
        "needs 4 targets, but the store has 3",
    );
}

#[test]
fn a_value_that_is_too_large_is_refused_before_the_first_byte() {
    let scratch = Scratch::new();
    done(&scratch, "pool create vos:tank --scm 64m");
    let ended = scratch.run("object vos:tank --op put --dkeys 2 --value-size 5m --container big --keep");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("--value-size 5MiB is too large for this store: a target accepts at most"),
        "{ended:?}"
    );
    assert_eq!(done(&scratch, "container list vos:tank"), "no container\n");
    // An array goes chunk by chunk.
    scratch.measured("object vos:tank --op write --value-size 5m --chunk-size 1m --count 4");
}

#[test]
fn every_phase_is_checked_before_the_first_begins() {
    let scratch = Scratch::new();
    let job = |target: &str, second: &str| {
        let phase = |more: &str| {
            format!(
                "[[phase]]\nlayer = 'object'\ntargets = ['{target}']\nop = 'put'\ndkeys = 20\nscm = '64m'\nkeep = true\n{more}\n"
            )
        };
        std::fs::write(scratch.join("job.toml"), phase("value_size = '4k'") + &phase(second)).unwrap();
        scratch.run("run job.toml")
    };
    for (second, expected) in [
        ("value_size = '8m'", "--value-size 8MiB is too large for this store"),
        ("class = 'RP_2G1'", "RP_2G1 needs 2 targets, but the store has 1"),
    ] {
        let ended = job("vos:new", second);
        assert_eq!(ended.code, Some(2), "{second}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{second}: {}", ended.stderr);
        assert!(!scratch.join("new").exists(), "{second}: a pool was made");
    }
    done(&scratch, "pool create vos:there --scm 64m");
    let ended = job("vos:there", "value_size = '8m'");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(done(&scratch, "container list vos:there"), "no container\n", "the first phase began");
    assert_eq!(job("vos:there", "value_size = '1m'").code, Some(0));
}

#[test]
fn snapshots_are_made_shown_and_destroyed() {
    let scratch = Scratch::new();
    done(&scratch, "pool create vos:tank --scm 64m");
    done(&scratch, "container create vos:tank fields");
    let made = done(&scratch, "container snapshot vos:tank fields --json");
    let epoch = serde_json::from_str::<Value>(&made).unwrap()["epoch"].as_u64().unwrap();
    assert!(done(&scratch, "container query vos:tank fields").contains(&format!("snapshots   {epoch}\n")));
    let destroy = format!("container snapshot vos:tank fields --destroy {epoch}");
    refused(&scratch, &destroy, 2, "--destroy-data");
    refused(&scratch, "container snapshot vos:tank fields --destroy 99999", 2, &format!("it has {epoch}"));
    done(&scratch, &format!("{destroy} --destroy-data"));
    assert!(done(&scratch, "container query vos:tank fields").contains("snapshots   none\n"));
}

/// Paths below a directory, with it, that others may do something with.
fn open_to_others(path: &Path) -> Vec<String> {
    let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
    let expected = if path.is_dir() { 0o700 } else { 0o600 };
    let mut found = Vec::new();
    if mode != expected {
        found.push(format!("{} {mode:o}", path.display()));
    }
    if path.is_dir() {
        let below = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        below.for_each(|path| found.extend(open_to_others(&path)));
    }
    found
}

#[test]
fn what_is_in_a_pool_is_its_makers_alone() {
    let scratch = Scratch::new();
    let mode = |name: &str, mode| {
        std::fs::set_permissions(scratch.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::write(scratch.join("token"), "sixteen bytes or more\n").unwrap();
    mode("token", 0o600);
    let words =
        "--dir above/tank --pool p --scm 64m --nvme 16m --targets 2 --listen 127.0.0.1:0 --token-file token";
    let engine = Engine::start(scratch.path(), words);
    let target = format!("engine://{}/p/c", engine.uri().replacen("tcp://", "", 1));
    done(&scratch, &format!("container create {target} --token-file token"));
    assert_eq!(open_to_others(&scratch.join("above/tank")), [""; 0]);
    engine.signal(Signal::TERM);
    let (code, said) = engine.end();
    assert_eq!((code, said.contains("can read")), (Some(0), false), "{said}");
    // The index that it wrote at its end, too.
    assert_eq!(open_to_others(&scratch.join("above/tank")), [""; 0]);
    scratch.measured("object vos:store --op put --dkeys 10 --keep");
    assert_eq!(open_to_others(&scratch.join("store")), [""; 0]);
    // Modes that somebody has changed are told.
    mode("above/tank", 0o755);
    mode("above/tank/superblock", 0o644);
    let engine = Engine::start(scratch.path(), words);
    engine.signal(Signal::TERM);
    let (code, said) = engine.end();
    assert!(
        code == Some(0) && said.contains("other users of this machine can read the pool's files"),
        "{said}"
    );
}
