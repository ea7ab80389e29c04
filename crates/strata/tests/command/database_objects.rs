//! Databases whose pages are objects, and whose log has an object for each group of commits.

use std::fs;

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::database::{SMALL, calls, check, paused, scratch};
use crate::engines::Engine;
use crate::support::{assert_partial, class, names_in, read_record};

/// A database with so many commits of records of a size, whose log is made of objects.
fn check_objects(record: &Value, commits: u64, record_bytes: u64, has_syncs: bool) -> u64 {
    check(record, commits, has_syncs);
    let seen = &record["phases"][1]["observations"]["commits"];
    let objects = seen["objects"].as_u64().unwrap();
    assert!((1..=commits).contains(&objects), "{seen}");
    assert!((seen["commits_per_object"].as_f64().unwrap() - commits as f64 / objects as f64).abs() < 1e-9);
    // Records are written by commits, and each object of the log is read once.
    assert_eq!((class(record, 1, "append").1, class(record, 1, "commit").1), (0, commits * record_bytes));
    assert_eq!(class(record, 2, "recover"), (objects, commits * record_bytes));
    assert_eq!(calls(record, 0, "allocate"), 0);
    objects
}

#[test]
fn a_group_of_commits_is_an_object_on_s3() {
    let scratch = scratch();
    let (server, options) = (S3Server::start(S3Options::default()).unwrap(), S3Options::default());
    server.store().create_bucket("pages");
    let keys =
        [("AWS_ACCESS_KEY_ID", options.access.clone()), ("AWS_SECRET_ACCESS_KEY", options.secret.clone())];
    for (more, commits, record_bytes) in [
        (" --keep", 120, 8192),
        (",wal=sqlite", 40, 24 + 4096),
        (",wal=own,record=100 --hosts local:2", 120, 100),
    ] {
        let words = format!(
            "app database s3://pages {SMALL},files=page{more} --target-options s3-endpoint={} --json record.json",
            server.endpoint()
        );
        let ended = scratch.start_in(&words, &keys).end();
        assert_eq!(ended.code, Some(0), "{more}: {}", ended.stderr);
        let record = read_record(&scratch.join("record.json"));
        let seen = &record["phases"][1]["observations"]["commits"];
        assert_eq!(seen["syncs"], 0, "there is nothing to sync");
        let objects = check_objects(&record, commits, record_bytes, false);
        if more.contains("keep") {
            let keys = server.store().keys("pages");
            let of = |name: &str| keys.iter().filter(|key| key.contains(name)).count() as u64;
            assert_eq!((of("page-"), of("wal-")), (64, objects), "{keys:?}");
            keys.iter().for_each(|key| server.store().delete("pages", key));
            assert!(
                ended.stdout.contains(&format!("120 commits in {objects} objects, ")),
                "{}",
                ended.stdout
            );
        }
        assert!(server.store().keys("pages").is_empty(), "{more}");
    }
}

#[test]
fn a_page_that_is_gone_for_a_moment_is_read_again_and_one_that_stays_away_is_told() {
    for is_back in [true, false] {
        let scratch = scratch();
        let (server, options) = (S3Server::start(S3Options::default()).unwrap(), S3Options::default());
        server.store().create_bucket("pages");
        let keys = [
            ("AWS_ACCESS_KEY_ID", options.access.clone()),
            ("AWS_SECRET_ACCESS_KEY", options.secret.clone()),
        ];
        // The load goes on for as long as it takes, and no checkpoint puts the page anew.
        let words = format!(
            "app database s3://pages --time 2s --set files=page,interval=1000000,pages=2,reads=1000000,clients=1,record=64,wal=own \
             --target-options s3-endpoint={} --live-csv - --json record.json",
            server.endpoint()
        );
        let mut running = scratch.start_in(&words, &keys);
        running.await_row("database run");
        let store = server.store();
        let page = store.keys("pages").into_iter().find(|key| key.contains("page-")).unwrap();
        let data = store.data("pages", &page).unwrap();
        store.delete("pages", &page);
        if is_back {
            std::thread::sleep(std::time::Duration::from_millis(50));
            store.insert("pages", &page, data);
        }
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        if is_back {
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            let notes = record["phases"][1]["notes"].to_string();
            assert!(notes.contains("the server does not replace objects atomically"), "{notes}");
        } else {
            assert_partial(&scratch, &ended, &record, "No such file");
        }
        // What was put back is not the object that the run made.
        let left = server.store().keys("pages");
        assert!(left.iter().all(|key| is_back && *key == page), "{left:?}");
    }
}

#[test]
fn a_group_of_commits_is_an_object_of_stores_and_a_file() {
    let scratch = scratch();
    let small = format!("{SMALL},wal=own,record=1000,files=page");
    check_objects(&scratch.measured(&format!("app database data {small}")), 120, 1000, true);
    assert_eq!(scratch.run("pool create vos:pool --scm 256m").code, Some(0));
    check_objects(&scratch.measured(&format!("app database vos:pool {small}")), 120, 1000, false);
    let words = "--no-attach-info --interface lo --pool tank --dir served --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let target = format!("engine://{}/tank/objects", engine.uri().strip_prefix("tcp://").unwrap());
    check_objects(&scratch.measured(&format!("app database {target} {small}")), 120, 1000, false);
    check_objects(
        &scratch.measured(&format!("app database {target} {small} --hosts local:2")),
        120,
        1000,
        false,
    );
}

#[test]
fn objects_of_a_log_that_are_lost_or_changed_are_named() {
    type Damage = fn(&std::path::Path);
    let damages: [(&str, Damage); 3] = [
        ("No such file", |logs| fs::remove_file(logs.join("3")).unwrap()),
        ("byte 100 of the record", |logs| {
            let mut bytes = fs::read(logs.join("3")).unwrap();
            bytes[100] ^= 1;
            fs::write(logs.join("3"), bytes).unwrap();
        }),
        ("does not contain the", |logs| {
            fs::rename(logs.join("3"), logs.join("aside")).unwrap();
            fs::rename(logs.join("5"), logs.join("3")).unwrap();
            fs::rename(logs.join("aside"), logs.join("5")).unwrap();
        }),
    ];
    for (told, damage) in damages {
        let scratch = scratch();
        // One client: a group is a record.
        let (running, logs) = paused(&scratch, ",clients=1,files=page", |logs| {
            let entries = fs::read_dir(logs).into_iter().flatten().flatten();
            let sizes = entries.map(|entry| entry.metadata().map_or(0, |metadata| metadata.len()));
            sizes.sum::<u64>() == 20 * 512
        });
        damage(&logs);
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        assert_partial(&scratch, &ended, &record, told);
        assert!(names_in(&scratch.join("data")).is_empty());
    }
}
