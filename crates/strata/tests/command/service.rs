//! Rules of a service towards leaders, and trust of leaders in services.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use super::many_hosts::{Service, token};
use super::support::{Ended, Scratch, total};

/// A write of a target by a service.
fn write(scratch: &Scratch, service: &Service, target: &str, words: &str) -> Ended {
    scratch.run(&format!("media {target} -s 64k -b 4k --op write --hosts {} {words}", service.address))
}

fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in {}", ended.stderr);
    }
}

#[test]
fn what_lies_outside_of_the_roots_is_refused_and_not_touched() {
    let scratch = Scratch::new();
    for name in ["open", "closed"] {
        fs::create_dir(scratch.join(name)).unwrap();
    }
    symlink(scratch.join("closed"), scratch.join("open/link")).unwrap();
    symlink(scratch.join("closed/new"), scratch.join("open/dangling")).unwrap();
    let service = Service::start_with(&scratch, &["--root", "open"]);
    assert!(service.first_line.contains("paths below ") && service.first_line.contains("/open, "));
    for target in ["closed/file", "open/../closed/file", "open/link/file", "open/dangling", "/etc/strata"] {
        refused(&write(&scratch, &service, target, ""), &[&service.address, "service: "]);
    }
    refused(
        &write(&scratch, &service, "closed/file", ""),
        &["may only access paths below", "/open", "--root DIR"],
    );
    let log = scratch.join("closed/log");
    fs::write(&log, "").unwrap();
    refused(
        &scratch.run(&format!(
            "fs open/tree --op create --tree-file {} --hosts {}",
            log.display(),
            service.address
        )),
        &["closed/log"],
    );
    assert_eq!(fs::read_dir(scratch.join("closed")).unwrap().count(), 1, "nothing was made");
    assert_eq!(fs::read_dir(scratch.join("open")).unwrap().count(), 2, "nothing was made");
    let good = write(&scratch, &service, "open/file", "");
    assert_eq!(good.code, Some(0), "{}", good.stderr);
}

#[test]
fn relative_directories_of_stores_are_those_of_the_leader() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("open")).unwrap();
    assert_eq!(scratch.run("pool create vos:open/files --scm 256m").code, Some(0));
    let service = Service::start_with(&scratch, &["--root", "open"]);
    let here = scratch.path().display().to_string();
    for (words, target) in [
        ("object vos:open/pool --op put -s 4k --count 8", format!("vos:{here}/open/pool")),
        ("fs dfs+vos:./open/files --op create,stat --files 4", format!("dfs+vos:{here}/open/files")),
    ] {
        let record = scratch.measured(&format!("{words} --hosts {}", service.address));
        let plan = record["phases"][0]["plan"].to_string();
        assert!(plan.contains(&format!("\"{target}\"")), "{target}: {plan}");
    }
    let words = format!("object vos:closed --op put --count 8 --hosts {}", service.address);
    refused(&scratch.run(&words), &[&format!("path={here}/closed"), "may only access paths below"]);
    assert!(!scratch.join("open/pool").exists(), "what was made is removed");
    assert!(!scratch.join("closed").exists());
}

#[test]
fn a_service_without_roots_touches_no_path_and_reaches_no_network() {
    let scratch = Scratch::new();
    let service = Service::start_with(&scratch, &[]);
    assert!(service.first_line.contains("no paths (no --root is given)"), "{}", service.first_line);
    refused(&write(&scratch, &service, "file", ""), &["may not access any paths", "--root DIR"]);
    let hosts = format!("--count 10 --hosts {}", service.address);
    refused(
        &scratch.run(&format!("net --servers 127.0.0.1:9 {hosts}")),
        &["may not access the network", "--allow-network"],
    );
    refused(&scratch.run(&format!("net {hosts}")), &["may not access the network", "--allow-network"]);
    let harmless = scratch.measured(&format!("media null: --op randread {hosts}"));
    assert_eq!(total(&harmless, 0, "operations"), 10);
    let gone = scratch.run("service --root nowhere --listen 127.0.0.1:0");
    refused(&gone, &["a root cannot be resolved", "nowhere"]);
}

#[test]
fn a_run_takes_no_more_than_the_service_gives() {
    let scratch = Scratch::new();
    let service = Service::start(&scratch, &["--threads-max", "2", "--time-max", "2s"]);
    let load = format!("media null: --op randread --hosts {}", service.address);
    refused(&scratch.run(&format!("{load} -t 3 --time 1s")), &["3 workers", "at most 2"]);
    refused(&scratch.run(&format!("{load} --time 3s")), &["3 s", "at most 2 s"]);
    refused(&scratch.run(&format!("{load} --count 5")), &["without a time", "--time"]);
    scratch.measured(&format!("{load} -t 2 --time 100ms"));
}

/// The kernel refuses the buffers; whoever comes next finds the service as it was.
#[test]
fn a_run_takes_no_more_memory_than_the_service_gives() {
    let scratch = Scratch::new();
    refused(
        &scratch.run("service --listen 127.0.0.1:0 --memory-max 1MiB"),
        &["--memory-max", "256MiB or more"],
    );
    let service = Service::start(&scratch, &["--memory-max", "512MiB"]);
    assert!(service.first_line.contains("at most 512 MiB of memory, "), "{}", service.first_line);
    let load = format!("media null: --op randread --count 10 --hosts {}", service.address);
    let large = scratch.run(&format!("{load} -q 64 -b 16MiB"));
    assert_eq!(large.code, Some(1), "{}", large.stderr);
    for word in ["cannot map the buffers", "memory_bytes_max", "smaller block size or queue depth"] {
        assert!(large.stderr.contains(word), "{word}: {}", large.stderr);
    }
    scratch.measured(&format!("{load} -q 4 -b 1MiB"));
}

/// Events of an audit log, by name.
fn events(scratch: &Scratch) -> Vec<(String, Value)> {
    let text = fs::read_to_string(scratch.join("audit")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (line["event"].as_str().unwrap().to_owned(), line)).collect()
}

#[test]
fn the_audit_log_says_who_asked_for_what_and_what_became_of_it() {
    let scratch = Scratch::new();
    let token = token(&scratch);
    let service = Service::start(&scratch, &["--token-file", &token, "--audit", "audit"]);
    let good = write(&scratch, &service, "file", &format!("--token-file {token}"));
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    refused(&write(&scratch, &service, "/etc/strata", &format!("--token-file {token}")), &["/etc/strata"]);
    fs::write(scratch.join("wrong"), "another token of 16 bytes").unwrap();
    fs::set_permissions(scratch.join("wrong"), fs::Permissions::from_mode(0o600)).unwrap();
    let wrong = write(&scratch, &service, "file", "--token-file wrong");
    // Whether the token of the host or of the leader is the wrong one, nobody knows: a host that cannot be had.
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("the proof of the shared token is wrong"), "{}", wrong.stderr);
    let events = events(&scratch);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["connected", "began", "ended", "connected", "refused", "refused"], "{events:?}");
    let began = &events[1].1;
    assert!(began["what"].as_str().unwrap().starts_with("media /"), "{began}");
    assert!(began["caller"].as_str().unwrap().contains('@'), "{began}");
    assert_eq!(began["roots"], serde_json::json!([scratch.path().canonicalize().unwrap()]));
    assert_eq!((&events[2].1["run"], &events[2].1["failure"]), (&began["run"], &Value::Null));
    assert!(events[4].1["why"].as_str().unwrap().contains("/etc/strata"), "{events:?}");
    assert!(events[5].1.get("caller").is_none(), "a stranger has no name: {events:?}");
    let mode = fs::metadata(scratch.join("audit")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_token_in_the_environment_serves_both_sides() {
    let scratch = Scratch::new();
    let path = token(&scratch);
    let service = Service::start(&scratch, &["--token-file", &path]);
    let words = format!("media null: --op randread --count 5 --hosts {}", service.address);
    refused(&scratch.run(&words), &["token"]);
    let said = scratch.start_in(&words, &[("STRATA_TOKEN_FILE", path.clone())]).end();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let twice = [("STRATA_TOKEN_FILE", path), ("STRATA_TOKEN", "a token of the tests alone".to_owned())];
    refused(&scratch.start_in(&words, &twice).end(), &["unset one"]);
}

#[test]
fn a_certificate_that_has_changed_is_refused() {
    let scratch = Scratch::new();
    let token = token(&scratch);
    let start = |listen: &str| {
        let words = ["--token-file", &token, "--tls", "--listen", listen];
        Service::start_with(&scratch, &words)
    };
    let first = start("127.0.0.1:0");
    let address = first.address.clone();
    let (_, print) = first.first_line.split_once("certificate ").unwrap();
    let print = print.split_once(',').unwrap().0.to_owned();
    let run = |words: &str| {
        scratch.run(&format!(
            "media null: --op randread --count 5 --hosts {address} --tls --token-file {token} {words}"
        ))
    };
    let wrong = format!("{address}=sha256:{}", "0".repeat(64));
    refused(&run(&format!("--fingerprint {wrong}")), &["pinned", &address]);
    refused(&run("--fingerprint other=sha256:00"), &["is not in --hosts"]);
    let good = run(&format!("--fingerprint {address}={print}"));
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    let state = super::support::state_of(scratch.path()).join("strata");
    assert!(!state.join("known_hosts").exists(), "a host that is pinned is not noted");
    assert_eq!(run("").code, Some(0));
    let known = fs::read_to_string(state.join("known_hosts")).unwrap();
    assert_eq!(known, format!("{address} {print}\n"));
    drop(first);
    let again = start(&address);
    assert!(again.first_line.contains(&print), "the certificate is kept: {}", again.first_line);
    assert_eq!(run("").code, Some(0));
    drop(again);
    for name in ["service.crt", "service.key"] {
        fs::remove_file(state.join(name)).unwrap();
    }
    let _anew = start(&address);
    refused(&run(""), &["has changed", &print, "known_hosts", "remove the line"]);
    fs::remove_file(state.join("known_hosts")).unwrap();
    assert_eq!(run("").code, Some(0));
    refused(
        &scratch.run(&format!("service --listen 127.0.0.1:0 --certificate x --token-file {token}")),
        &["require each other"],
    );
}
