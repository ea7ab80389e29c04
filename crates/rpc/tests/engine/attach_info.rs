//! Groups and their file.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Barrier;

use rpc::engine::{Engine, EngineRequest};
use rpc::group::{self, Rank, lookup, publish};

use crate::common::{Lines, in_group, secret, serves, tags};

const FILE: &str = "daos_server.attach_info_tmp";

#[test]
fn several_ranks_of_one_process_are_found_and_leave() {
    let dir = tempfile::tempdir().expect("a directory");
    let wanted = |rank| EngineRequest {
        tags: tags(16, 4),
        control: Some(format!("127.0.0.1:{}", 5000 + rank)),
        ..in_group(rank, dir.path())
    };
    let engines: Vec<_> = (0..3).map(|rank| Engine::start(wanted(rank)).expect("an engine")).collect();
    let group = lookup(Some(dir.path()), "daos_server").expect("a group");
    assert_eq!(group.ranks.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    for (rank, engine) in (0..).zip(&engines) {
        let entry = group.rank(rank).expect("a rank");
        assert_eq!(
            (entry.uri.as_str(), entry.tags, entry.targets, entry.helpers),
            (engine.uri(), Some(22), Some(16), Some(4))
        );
        assert_eq!(entry.control, Some(format!("127.0.0.1:{}", 5000 + rank)));
        assert_eq!((entry.pid, entry.provider.as_deref()), (Some(std::process::id()), Some("tcp")));
        assert!(serves(engine, 21, None));
    }
    let beyond = group.endpoint(1, 22).expect_err("the last is 21").to_string();
    assert!(beyond.contains("22 tags: 0 metadata, 1 monitoring, 2-17 targets, 18-21 helpers"), "{beyond}");
    let mode = fs::metadata(dir.path().join(FILE)).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let text = fs::read_to_string(dir.path().join(FILE)).expect("a file");
    assert!(text.starts_with("name daos_server\nsize 3\nall\n0 tcp://127.0.0.1:"), "{text}");

    engines[1].stop();
    let group = lookup(Some(dir.path()), "daos_server").expect("a group");
    let gone = group.rank(1).expect_err("it has left").to_string();
    assert!(gone.contains("rank 1 does not exist") && gone.contains("its ranks are 0, 2"), "{gone}");
    drop(engines);
    assert_eq!(
        fs::read_dir(dir.path()).expect("a directory").count(),
        0,
        "the last one takes all files away"
    );
}

#[test]
fn a_rank_that_is_served_is_not_served_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = Engine::start(EngineRequest { secret: Some(secret(b'a')), ..in_group(4, dir.path()) })
        .expect("an engine");
    let error = Engine::start(in_group(4, dir.path())).expect_err("the first one lives");
    let text = error.to_string();
    assert!(
        text.contains("rank 4 of group daos_server is already served") && text.contains(first.uri()),
        "{text}"
    );
    assert!(text.contains(&format!("pid={}", std::process::id())), "{text}");
    assert_eq!((error.exit_code(), text.lines().count()), (2, 1));
    let group = lookup(Some(dir.path()), "daos_server").expect("a group");
    assert_eq!(group.rank(4).expect("the first").uri, first.uri());
    // The same rank of another group is another rank.
    let other = EngineRequest { group: "other".to_owned(), ..in_group(4, dir.path()) };
    assert!(Engine::start(other).is_ok());
}

#[test]
fn a_rank_whose_engine_is_dead_is_taken_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let line =
        format!("name daos_server\nsize 1\nall\n4 tcp://{nobody} pid=1\n9 tcp://10.0.0.1:1 pid=2 later=x\n");
    fs::write(dir.path().join(FILE), line).expect("written");
    let lines = Lines::default();
    let wanted = EngineRequest { log: crate::common::request(&lines).log, ..in_group(4, dir.path()) };
    let engine = Engine::start(wanted).expect("the old one is dead");
    assert!(lines.has(&format!("took the place of tcp://{nobody}")), "{:?}", lines.all());
    let group = lookup(Some(dir.path()), "daos_server").expect("a group");
    assert_eq!(group.rank(4).expect("its own").uri, engine.uri());
    assert_eq!(group.rank(9).expect("another's").others, [("later".to_owned(), "x".to_owned())]);

    // An address where an engine of another rank answers now is no sign of life either.
    let other = Engine::start(in_group(5, dir.path())).expect("an engine");
    let text = fs::read_to_string(dir.path().join(FILE))
        .expect("a file")
        .replace("9 tcp://10.0.0.1:1", &format!("9 {}", other.uri()));
    fs::write(dir.path().join(FILE), text).expect("written");
    assert!(Engine::start(in_group(9, dir.path())).is_ok());
}

#[test]
fn an_engine_takes_out_only_its_own_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = Engine::start(in_group(4, dir.path())).expect("an engine");
    let successor = "name daos_server\nsize 1\nall\n4 tcp://127.0.0.1:9 pid=1\n";
    fs::write(dir.path().join(FILE), successor).expect("written");
    engine.stop();
    assert_eq!(fs::read_to_string(dir.path().join(FILE)).expect("a file"), successor);
    // A file that is gone already is no fault.
    let engine = Engine::start(in_group(5, dir.path())).expect("an engine");
    fs::remove_file(dir.path().join(FILE)).expect("removed");
    engine.stop();
}

#[test]
fn an_engine_started_again_on_its_port_takes_its_own_line_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let line = format!("name daos_server\nsize 1\nall\n4 tcp://{port} pid=1\n");
    fs::write(dir.path().join(FILE), line).expect("written");
    let engine =
        Engine::start(EngineRequest { listen: vec![port], ..in_group(4, dir.path()) }).expect("an engine");
    let group = lookup(Some(dir.path()), "daos_server").expect("a group");
    assert_eq!(group.rank(4).expect("its own").pid, Some(std::process::id()));
    assert_eq!(group.rank(4).expect("its own").uri, engine.uri());
}

#[test]
fn planted_files_are_not_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let victim = dir.path().join("victim");
    fs::write(&victim, "name daos_server\n0 tcp://127.0.0.1:1\n").expect("written");
    symlink(&victim, dir.path().join(FILE)).expect("a link");
    for text in [
        Engine::start(in_group(0, dir.path())).expect_err("a link").to_string(),
        lookup(Some(dir.path()), "daos_server").expect_err("a link").to_string(),
    ] {
        assert!(text.contains("symbolic link") && text.contains(FILE), "{text}");
    }
    fs::remove_file(dir.path().join(FILE)).expect("removed");
    let lock = dir.path().join("daos_server.attach_info_lock");
    let _ = fs::remove_file(&lock);
    symlink(&victim, &lock).expect("a link");
    assert!(
        Engine::start(in_group(0, dir.path())).expect_err("a link").to_string().contains("symbolic link")
    );
    fs::remove_file(&lock).expect("removed");
    // A draft that somebody left there is replaced, never written through.
    symlink(&victim, dir.path().join("daos_server.attach_info_draft")).expect("a link");
    let engine = Engine::start(in_group(0, dir.path())).expect("an engine");
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "name daos_server\n0 tcp://127.0.0.1:1\n");
    drop(engine);
    fs::create_dir(dir.path().join(FILE)).expect("a directory in its place");
    assert!(
        lookup(Some(dir.path()), "daos_server")
            .expect_err("no file")
            .to_string()
            .contains("not a regular file")
    );
}

#[test]
fn lookups_that_fail_say_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(FILE);
    let find = || lookup(Some(dir.path()), "daos_server").expect_err("it fails").to_string();
    let text = find();
    let remedy =
        format!("start engines with strata engine --group daos_server --path {}", dir.path().display());
    assert!(text.contains(&path.display().to_string()) && text.ends_with(&remedy), "{text}");
    fs::write(&path, "name daos_server\nsize 1\nall\nzero tcp://a:1\n").expect("written");
    let text = find();
    assert!(text.contains("line 4") && text.contains(&path.display().to_string()), "{text}");
    fs::write(&path, "name daos_server\nsize 0\nall\n").expect("written");
    assert!(find().contains("has no ranks"));
    fs::write(&path, [0xff, 0xfe]).expect("written");
    assert!(find().contains("not text"));
    assert!(
        lookup(Some(dir.path()), "../x").expect_err("a path").to_string().contains("not a valid group name")
    );
    assert_eq!(group::attach_info_path(dir.path(), "daos_server"), path);
}

#[test]
fn thirty_two_come_and_go_at_once_and_none_is_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = Barrier::new(32);
    std::thread::scope(|scope| {
        for rank in 0..32u32 {
            let (dir, start) = (dir.path(), &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..8u16 {
                    let entry = Rank {
                        uri: format!("tcp://10.0.0.1:{}", 1000 + round),
                        pid: Some(rank),
                        ..Rank::default()
                    };
                    let mut publication =
                        publish(dir, "daos_server", rank, entry.clone()).expect("published");
                    let group = lookup(Some(dir), "daos_server").expect("a whole file, always");
                    assert_eq!(group.rank(rank).expect("its own line"), &entry);
                    publication.withdraw().expect("withdrawn");
                    if let Ok(group) = lookup(Some(dir), "daos_server") {
                        assert!(group.rank(rank).is_err());
                    }
                }
            });
        }
    });
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
}

#[test]
fn engines_come_and_go_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let (up, down) = (Barrier::new(32), Barrier::new(32));
    std::thread::scope(|scope| {
        for rank in 0..32 {
            let (dir, up, down) = (dir.path(), &up, &down);
            scope.spawn(move || {
                let engine = Engine::start(EngineRequest { tags: tags(0, 0), ..in_group(rank, dir) })
                    .expect("an engine");
                up.wait();
                let group = lookup(Some(dir), "daos_server").expect("a group");
                assert_eq!(group.ranks.len(), 32);
                assert!(serves(&engine, 1, None));
                down.wait();
            });
        }
    });
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
}
