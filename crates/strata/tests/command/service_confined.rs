//! Services that the kernel holds to their roots.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use testkit::slow_link::SlowLink;
use testkit::without_landlock;

use super::many_hosts::Service;
use super::support::{Ended, Loop, Scratch, names_in, skipped, state_of, total};

const DATA: &str = "data of somebody else";

/// A directory `open` with `open/part`, which is a root, and one that is none with a file of somebody else.
fn places() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.join("open/part")).unwrap();
    fs::create_dir(scratch.join("closed")).unwrap();
    fs::write(scratch.join("closed/precious"), DATA).unwrap();
    scratch
}

/// Words with the directory in place of `@`.
fn at(scratch: &Scratch, words: &str) -> String {
    words.replace('@', &scratch.path().display().to_string())
}

/// Whether the kernel of this machine can, for tests that are about nothing else.
fn is_confined(service: &Service, test: &str) -> bool {
    let can = !service.first_line.contains("not confined");
    if !can {
        skipped(test, "this kernel cannot confine a service");
    }
    can
}

/// Runs words on the service and puts a link to `closed` in place of `open/part` when all paths have been checked and nothing is open yet: the
/// event `began` is in the log before the leader hears that the host has planned, and it asks for the first stage afterwards.
fn run_swapped(scratch: &Scratch, service: &Service, words: &str) -> Ended {
    let (audit, part) = (scratch.join("log/audit"), scratch.join("open/part"));
    let (aside, closed) = (scratch.join("open/aside"), scratch.join("closed"));
    let is_swapped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_swapped);
    let answered = move |_: &mut [u8]| {
        let log = fs::read_to_string(&audit).unwrap_or_default();
        if log.contains("\"began\"") && !flag.swap(true, Ordering::SeqCst) {
            fs::rename(&part, &aside).unwrap();
            symlink(&closed, &part).unwrap();
        }
    };
    let link = SlowLink::start_changing(&service.address, Duration::ZERO, |_| {}, answered).unwrap();
    let ended = scratch.run(&format!("{words} --hosts {}", link.address()));
    assert!(is_swapped.load(Ordering::SeqCst), "it began: {}", ended.stderr);
    ended
}

fn service_with_log(scratch: &Scratch, words: &[&str]) -> Service {
    fs::create_dir(scratch.join("log")).unwrap();
    Service::start_with(scratch, &[&["--root", "open", "--audit", "log/audit"], words].concat())
}

fn assert_untouched(scratch: &Scratch) {
    assert_eq!(names_in(&scratch.join("closed")), ["precious"]);
    assert_eq!(fs::read_to_string(scratch.join("closed/precious")).unwrap(), DATA);
}

#[test]
fn a_link_put_in_place_after_the_check_leads_nowhere() {
    for words in [
        "media open/part/file -s 64k -b 4k --op write --keep",
        "media open/part/precious -s 4k -b 4k --op write --destroy-data",
        "fs open/part --op create,write --files 4 --file-size 4k --keep",
        "fs open/part --op mkdir --files 4 --keep",
        "object vos:@/open/part --op put -s 4k --count 4 --keep",
    ] {
        let scratch = places();
        let service = service_with_log(&scratch, &["--allow-destroy"]);
        if !is_confined(&service, "a_link_put_in_place_after_the_check_leads_nowhere") {
            return;
        }
        if words.contains("precious") {
            fs::write(scratch.join("open/part/precious"), "its own").unwrap();
        }
        let ended = run_swapped(&scratch, &service, &at(&scratch, words));
        assert_eq!(ended.code, Some(1), "{words}: {} {}", ended.stdout, ended.stderr);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        let root = scratch.join("open").canonicalize().unwrap().display().to_string();
        for word in ["ermission denied", "confined", &root] {
            assert!(said.contains(word), "{words}: {word:?} is not in {said}");
        }
        assert_untouched(&scratch);
    }
}

#[test]
fn without_confinement_the_check_is_of_the_moment() {
    let scratch = places();
    let service = service_with_log(&scratch, &["--confine", "off"]);
    assert!(service.first_line.contains(", not confined, "), "{}", service.first_line);
    let ended = run_swapped(&scratch, &service, "media open/part/file -s 64k -b 4k --op write --keep");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(scratch.join("closed/file").exists(), "it went by the link");
    let began = began(&scratch);
    assert_eq!(began["confined"], false, "{began}");
}

/// The first event `began` of the log.
fn began(scratch: &Scratch) -> Value {
    let log = fs::read_to_string(scratch.join("log/audit")).unwrap();
    let mut lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|line| line["event"] == "began").unwrap()
}

#[test]
fn first_line_and_log_say_whether_it_is_confined() {
    let scratch = places();
    let service = service_with_log(&scratch, &["--confine", "auto"]);
    if !is_confined(&service, "first_line_and_log_say_whether_it_is_confined") {
        return;
    }
    assert!(service.first_line.contains("/open, confined, "), "{}", service.first_line);
    scratch.measured(&format!("media open/file -s 64k -b 4k --op write --hosts {}", service.address));
    assert_eq!(began(&scratch)["confined"], true);
    let none = Service::start_with(&scratch, &["--confine", "on"]);
    assert!(none.first_line.contains("no --root is given), confined, "), "{}", none.first_line);
    let harmless = format!("media mem: -s 64k -b 4k --op randread --count 10 --hosts {}", none.address);
    assert_eq!(total(&scratch.measured(&harmless), 0, "operations"), 10);
    let wrong = scratch.run("service --confine perhaps --listen 127.0.0.1:0");
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("--confine") && wrong.stderr.contains("auto, on, off"), "{}", wrong.stderr);
}

#[test]
fn a_log_is_put_aside_and_manifests_are_kept_as_without() {
    let scratch = places();
    fs::create_dir(scratch.join("log")).unwrap();
    // Larger than a log may be: the next event puts it aside.
    let file = fs::File::create(scratch.join("log/audit")).unwrap();
    file.set_len(16 << 20).unwrap();
    let service = Service::start_with(&scratch, &["--root", "open", "--audit", "log/audit"]);
    let words = format!("fs open/part --op create,stat,unlink --files 8 --hosts {}", service.address);
    scratch.measured(&words);
    assert_eq!(names_in(&scratch.join("log")), ["audit", "audit.1"]);
    assert_eq!(names_in(&scratch.join("open/part")), [""; 0], "what was made is removed");
}

/// A service under a kernel without Landlock, until its standard input closes, which is at once.
fn without(scratch: &Scratch, confine: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    command
        .args([
            "service",
            "--until-stdin-closes",
            "--listen",
            "127.0.0.1:0",
            "--root",
            "open",
            "--confine",
            confine,
        ])
        .current_dir(scratch.path())
        .env("XDG_STATE_HOME", state_of(scratch.path()))
        .stdin(Stdio::null());
    without_landlock(&mut command).output().unwrap()
}

#[test]
fn a_kernel_that_cannot_is_told() {
    let scratch = places();
    let auto = without(&scratch, "auto");
    let (stdout, stderr) = (String::from_utf8_lossy(&auto.stdout), String::from_utf8_lossy(&auto.stderr));
    assert_eq!(auto.status.code(), Some(0), "{stderr}");
    assert!(stdout.contains("/open, not confined, "), "{stdout}");
    assert!(stderr.contains("Landlock") && stderr.contains("paths are checked by name only"), "{stderr}");
    let off = without(&scratch, "off");
    assert_eq!(off.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&off.stderr).contains("Landlock"), "it was asked for");
    let on = without(&scratch, "on");
    let stderr = String::from_utf8_lossy(&on.stderr);
    assert_eq!((on.status.code(), on.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains("Landlock") && stderr.contains("leave out --confine on"), "{stderr}");
}

/// A load with all that the kernel could take offence at: renames from directory to directory, links, truncation, locks, all ways to open.
#[test]
fn loads_below_a_root_run_as_without() {
    let scratch = places();
    let service = Service::start_with(&scratch, &["--root", "open"]);
    if !is_confined(&service, "loads_below_a_root_run_as_without") {
        return;
    }
    let hosts = format!("--hosts {}", service.address);
    let made = scratch.run(&at(&scratch, "pool create vos:@/open/store --scm 256m"));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let drivers = ["psync", "libaio", "io_uring", "mmap"];
    let media = drivers.map(|driver| {
        format!("media open/file -s 256k -b 4k --op randwrite,randread --count 16 --engine {driver}")
    });
    let others = [
        "fs open/tree --op mkdir,dir-rename,rmdir,mknod,write,read,stat,rename,link,symlink,truncate,xattr,readdir,find,unlink --files 8 --file-size 8k",
        "object vos:@/open/pool --op put,get -s 4k --count 16",
        "app vpic @/open/part --scale 1/100000",
        "app checkpoint @/open/part --set size=1m",
        "app fdb-hammer vos:@/open/store --steps 1",
        "fs dfs+vos:@/open/store --op create,write,read,unlink --files 8 --file-size 8k",
    ];
    for words in media.iter().map(String::as_str).chain(others) {
        scratch.measured(&format!("{} {hosts}", at(&scratch, words)));
    }
}

#[test]
fn a_device_is_a_root_and_others_are_not() {
    let scratch = places();
    let Some(device) = Loop::new(scratch.path(), 8 << 20) else {
        return skipped("a_device_is_a_root_and_others_are_not", "no loop device can be made");
    };
    let path = device.device.clone();
    let service = Service::start_with(&scratch, &["--root", &path, "--allow-destroy"]);
    for driver in ["psync", "io_uring"] {
        scratch.measured(&format!(
            "media {path} -b 4k --op randwrite,randread --count 32 --direct --engine {driver} --destroy-data --hosts {}",
            service.address
        ));
    }
}
