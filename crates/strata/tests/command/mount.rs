//! `strata mount` as a process: its lines, its end, engines that go and come back, and mounts that are left behind.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::engines::Engine;
use crate::support::{Running, Scratch};

/// A new directory to mount on; none, with the reason on standard error, where nothing can be mounted.
fn directory(scratch: &Scratch, name: &str) -> Option<String> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: mounting needs root and /dev/fuse");
        return None;
    }
    fs::create_dir(scratch.join(name)).unwrap();
    Some(scratch.join(name).display().to_string())
}

/// Mounts, and waits until the mount stands.
fn mounted(scratch: &Scratch, words: &str) -> Running {
    let mut running = scratch.start(&format!("mount {words}"));
    assert!(running.await_row("mounted ").contains(" at "));
    running
}

fn unmount(directory: &str) {
    assert!(Command::new("umount").arg(directory).status().unwrap().success());
}

#[test]
fn two_mounts_of_an_engine_see_closed_files_and_outlive_it() {
    let scratch = Scratch::new();
    let (Some(one), Some(other)) = (directory(&scratch, "one"), directory(&scratch, "other")) else { return };
    let words = "--no-attach-info --interface lo --pool tank --dir pool --scm 64m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    let url = format!("dfs+engine://{address}/tank/home");
    let first = mounted(&scratch, &format!("{url} {one} --create"));
    let second = mounted(&scratch, &format!("{url} {other}"));
    fs::write(scratch.join("one/f"), b"data").unwrap();
    assert_eq!(fs::read(scratch.join("other/f")).unwrap(), b"data");
    fs::write(scratch.join("other/f"), b"longer data").unwrap();
    assert_eq!(fs::read(scratch.join("one/f")).unwrap(), b"longer data");
    engine.signal(Signal::KILL);
    engine.end();
    let error = fs::read(scratch.join("one/f")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    let words = "engine --no-attach-info --interface lo --pool tank --dir pool --listen";
    let _engine = Engine::start_words(scratch.path(), &format!("{words} {address}"));
    assert_eq!(fs::read(scratch.join("one/f")).unwrap(), b"longer data", "the engine is back");
    unmount(&one);
    assert_eq!(first.end().code, Some(0), "an unmount ends it");
    second.signal(Signal::TERM);
    assert_eq!(second.end().code, Some(0), "so does a signal");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
}

#[test]
fn a_mount_whose_process_was_killed_is_named() {
    let scratch = Scratch::new();
    let Some(directory) = directory(&scratch, "mnt") else { return };
    let words = format!("dfs+vos:{} {directory}", scratch.join("pool").display());
    let running = mounted(&scratch, &format!("{words} --create"));
    fs::write(scratch.join("mnt/f"), b"data").unwrap();
    let refused = scratch.run(&format!("mount {words}"));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("already mounted there"), "{}", refused.stderr);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    let refused = scratch.run(&format!("mount {words}"));
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("without a running process") && refused.stderr.contains("umount"),
        "{}",
        refused.stderr
    );
    unmount(&directory);
    let running = mounted(&scratch, &words);
    assert_eq!(fs::read(scratch.join("mnt/f")).unwrap(), b"data", "what was closed is there after a kill");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn one_in_the_background_stands_when_the_command_returns() {
    let scratch = Scratch::new();
    let Some(directory) = directory(&scratch, "mnt") else { return };
    let words = format!("dfs+vos:{} {directory} --create --background", scratch.join("pool").display());
    let started = scratch.run(&format!("mount {words}"));
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(started.stdout.starts_with("mounted dfs+vos:"), "{}", started.stdout);
    fs::write(scratch.join("mnt/f"), b"data").unwrap();
    unmount(&directory);
    let refused = scratch.run("mount dfs+vos:none mnt --background");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("no pool"), "{}", refused.stderr);
    for (words, told) in [
        ("mount", "<URL>"),
        ("mount dfs+vos:none none", "mkdir -p"),
        ("mount other:x mnt", "dfs+vos:DIR"),
        ("mount dfs+vos:x mnt --threads 0", "--threads"),
        ("mount dfs+vos:x mnt --foreground --background", "conflicts with"),
    ] {
        let refused = scratch.run(words);
        assert_eq!(refused.code, Some(2), "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains(told), "{words}: {}", refused.stderr);
    }
}

#[test]
fn the_socket_of_a_killed_mount_is_removed_by_the_next() {
    let scratch = Scratch::new();
    let (Some(one), Some(other)) = (directory(&scratch, "one"), directory(&scratch, "other")) else { return };
    fs::create_dir(scratch.join("run")).unwrap();
    let environment = [("XDG_RUNTIME_DIR", scratch.join("run").display().to_string())];
    let start = |pool: &str, directory: &str| {
        let words = format!("mount dfs+vos:{pool} {directory} --create --intercept");
        let mut running = scratch.start_in(&words, &environment);
        assert!(running.await_row("mounted ").contains(" at "));
        running
    };
    let folders = || crate::support::names_in(&scratch.join("run"));
    let killed = start("first", &one);
    let left = folders();
    killed.signal(Signal::KILL);
    killed.end();
    unmount(&one);
    assert_eq!((left.len(), folders()), (1, left.clone()), "it could not remove it");
    let foreign = scratch.join("run/strata-mount-1-0");
    fs::create_dir(&foreign).unwrap();
    let alive = start("second", &one);
    let of_alive: Vec<_> = folders().into_iter().filter(|name| name != "strata-mount-1-0").collect();
    assert!(of_alive.len() == 1 && of_alive != left, "{of_alive:?}");
    let next = start("third", &other);
    assert!(folders().contains(&of_alive[0]), "that of a mount that stands stays");
    assert!(foreign.is_dir(), "one that may just have been made stays");
    for running in [alive, next] {
        running.signal(Signal::TERM);
        assert_eq!(running.end().code, Some(0));
    }
    assert_eq!(folders(), ["strata-mount-1-0"]);
}
