//! `--acknowledged` and `strata object audit`: what a store acknowledged is there, or it is told what became of it.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::engines::Engine;
use crate::pool::target;
use crate::support::{Mounted, NO_ROOT, Scratch, skipped};

pub(crate) fn audit(scratch: &Scratch, words: &str, code: i32) -> Value {
    let ended = scratch.run(&format!("object audit {words} --json"));
    assert_eq!(ended.code, Some(code), "{words}: {} {}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

pub(crate) fn count(report: &Value, verdict: &str) -> u64 {
    report["verdicts"][verdict].as_u64().unwrap_or(0)
}

/// Where the last record of a key stands in a log.
fn last_record(log: &Path, key: &[u8]) -> u64 {
    let bytes = std::fs::read(log).unwrap();
    let at = bytes.windows(key.len()).rposition(|window| window == key).expect("the key is there");
    at as u64 / 64 * 64 - 64
}

pub(crate) fn flip(path: &Path, at: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// A pool with two versions of 20 keys, which were acknowledged; the name of a key.
fn filled() -> (Scratch, String) {
    let scratch = Scratch::new();
    let load = "--dkeys 20 --value-size 3000 --container mine --scm 64m --keep --acknowledged said";
    let record = scratch.measured(&format!("object vos:tank --op put,put {load}"));
    let own = &record["phases"][1]["observations"]["store"]["acknowledged"];
    assert_eq!((&own["file"], &own["updates"]), (&"said".into(), &20.into()), "{own}");
    assert!(own["bytes"].as_u64() > Some(2000) && own["write_ns"].as_u64() > Some(0), "{own}");
    assert_eq!(record["phases"][0]["plan"]["verify"], true, "values say which write they are");
    let said = std::fs::read_to_string(scratch.join("said")).unwrap();
    let update = said.lines().find(|line| line.starts_with("update ")).unwrap();
    let key = update.split(' ').nth(5).unwrap().to_owned();
    (scratch, key)
}

#[test]
fn what_is_there_what_is_older_lost_and_damaged() {
    let (scratch, key) = filled();
    let good = audit(&scratch, "said", 0);
    assert_eq!((&good["updates"], &good["values"]), (&40.into(), &20.into()), "{good}");
    assert_eq!(count(&good, "current"), 20, "{good}");
    let text = scratch.run("object audit said vos:tank").stdout;
    assert!(text.contains("result    every acknowledged update, or a newer one, is present"), "{text}");

    // Data of the newest version: the store says that it is damaged.
    let log = scratch.join("tank/target.0/log");
    let record = last_record(&log, key.as_bytes());
    flip(&log, record + 1000);
    let damaged = audit(&scratch, "said", 1);
    assert_eq!((count(&damaged, "current"), count(&damaged, "damaged")), (19, 1), "{damaged}");
    assert!(damaged["examples"][0]["place"].as_str().unwrap().contains(&key), "{damaged}");
    flip(&log, record + 1000);

    // Its header, and the log is read: the version before is what the store shows.
    flip(&log, record + 20);
    std::fs::remove_file(scratch.join("tank/target.0/index")).unwrap();
    let older = audit(&scratch, "said", 1);
    assert_eq!((count(&older, "current"), count(&older, "older")), (19, 1), "{older}");
    let text = scratch.run("object audit said");
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains("older version: object"), "{}", text.stdout);
    assert!(text.stdout.contains("result    not all acknowledged updates are intact"), "{}", text.stdout);

    // Removed by another run.
    let remove = "--op remove --dkeys 3 --no-fill --destroy-data --container mine --keep";
    scratch.measured(&format!("object vos:tank {remove}"));
    let lost = audit(&scratch, "said", 1);
    assert_eq!(count(&lost, "lost"), 3, "{lost}");
    // Written over by another run.
    scratch.measured("object vos:tank --op put --dkeys 20 --value-size 3000 --destroy-data --container mine --keep --verify");
    let others = audit(&scratch, "said", 1);
    assert_eq!(count(&others, "other-run"), 20, "{others}");
}

#[test]
fn a_run_that_is_killed_loses_nothing_that_was_acknowledged() {
    for more in ["--threads 2", "--class RP_2G1 --depth 4", "--containers private --threads 2"] {
        let scratch = Scratch::new();
        assert_eq!(scratch.run("pool create vos:tank --scm 256m --store-targets 2").code, Some(0));
        let load =
            "--op put --dkeys 500 --value-size 700 --container mine --keep --durability sync --time 60s";
        let words = format!("object vos:tank {load} --acknowledged said --live-csv - {more}");
        let mut running = scratch.start(&words);
        running.await_row("put");
        while std::fs::metadata(scratch.join("said")).map_or(0, |facts| facts.len()) < 100_000 {
            std::thread::yield_now();
        }
        running.signal(Signal::KILL);
        running.end();
        let report = audit(&scratch, "said", 0);
        assert!(report["updates"].as_u64() > Some(300), "{more}: {report}");
        assert_eq!(count(&report, "lost") + count(&report, "older"), 0, "{more}: {report}");
    }
}

#[test]
fn an_engine_is_audited_where_it_answers() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 128m");
    let at = format!("{}/fields", target(&engine));
    let load = "--value-size 2k --keep --depth 8 --acknowledged";
    scratch.measured(&format!("object {at} --op update --dkeys 50 --akeys 2 {load} keys"));
    scratch.measured(&format!("object {at} --op write --records 64 --container arrays {load} arrays"));
    assert_eq!(count(&audit(&scratch, "keys", 0), "current"), 100);
    assert_eq!(count(&audit(&scratch, &format!("arrays {at}"), 0), "current"), 64);
    drop(engine);
    let ended = scratch.run("object audit keys");
    assert_ne!(ended.code, Some(0), "nobody answers");
    assert_eq!(count(&audit(&scratch, "keys vos:tank", 0), "current"), 100, "the same pool, in process");
}

#[test]
fn bad_files_are_refused_by_line() {
    let (scratch, _) = filled();
    let said = std::fs::read_to_string(scratch.join("said")).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let changed = |number: usize, line: &str| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        lines[number - 1] = line.to_owned();
        lines.join("\n") + "\n"
    };
    for (text, expected) in [
        (String::new(), "does not name its run"),
        ("{}\n".to_owned(), "line 1: the file does not begin with"),
        (changed(1, "strata acknowledged 2"), "line 1: the file has format version 2"),
        (changed(7, &lines[6].replacen("update", "Update", 1)), "line 7: the checksum does not match"),
        (changed(9, ""), "line 9: no checksum"),
    ] {
        std::fs::write(scratch.join("bad"), &text).unwrap();
        let ended = scratch.run("object audit bad");
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{expected}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
    }
    // Cut within a line, as a kill leaves it: told, and no fault of the store.
    std::fs::write(scratch.join("cut"), &said[..said.len() - 9]).unwrap();
    let report = audit(&scratch, "cut", 0);
    assert_eq!((&report["is_cut"], &report["updates"]), (&true.into(), &39.into()), "{report}");
    for (words, expected) in [
        ("object audit none", "cannot read the file"),
        ("object vos:tank --op put --dkeys 20 --acknowledged new", "--acknowledged requires --keep"),
        ("object vos:tank --op put,remove --dkeys 20 --keep --acknowledged new", "leave out punch, remove"),
        (
            "object vos:tank --op put --dkeys 20 --keep --acknowledged said",
            "the file of acknowledged updates already exists",
        ),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
    assert!(!scratch.join("new").exists());
}

#[test]
fn a_file_system_that_is_full_fails_the_run() {
    let Some(full) = Mounted::tmpfs("64k") else { return skipped("a full file", NO_ROOT) };
    let scratch = Scratch::new();
    let load = "--op put --dkeys 5000 --value-size 64 --scm 64m --keep";
    let said = full.path().join("said");
    let (ended, record) =
        scratch.measure(&format!("object vos:tank {load} --acknowledged {}", said.display()));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot write acknowledged updates"), "{}", ended.stderr);
    assert_eq!(record["status"], "partial");
}
