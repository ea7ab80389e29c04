//! Cleanup of a store: what a run made goes, however the run ends; what others put there stays.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use testkit::fault_proxy::{FaultProxy, Meddling, good};
use testkit::s3::{S3Options, S3Server};

use crate::support::{Ended, Running, Scratch, names_in, read_record, state_of};

const BUCKET: &str = "mine";

/// A server, and a place to run loads on it.
struct Bed {
    scratch: Scratch,
    server: S3Server,
}

impl Bed {
    fn new() -> Self {
        let (scratch, server) = (Scratch::new(), S3Server::start(S3Options::default()).unwrap());
        let keys = S3Options::default();
        let path = scratch.join("keys");
        std::fs::write(&path, format!("{}\n{}\n", keys.access, keys.secret)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        Self { scratch, server }
    }

    fn words(&self, endpoint: &str, words: &str) -> String {
        format!("object s3://{BUCKET}/x/ --s3-endpoint {endpoint} --s3-key-file keys {words}")
    }

    fn run(&self, words: &str) -> Ended {
        self.scratch.run(&self.words(&self.server.endpoint(), words))
    }

    /// A load that puts until it is told to end, and has put something.
    fn putting(&self, endpoint: &str, more: &str) -> Running {
        let load =
            "--op put --dkeys 100000 --value-size 100 --depth 4 --time 100s --live-csv - --json record.json";
        let before = self.keys();
        let mut running = self.scratch.start(&self.words(endpoint, &format!("{load} {more}")));
        running.await_row("put");
        while self.keys() <= before {
            std::thread::yield_now();
        }
        running
    }

    fn keys(&self) -> usize {
        self.server.store().keys(BUCKET).len()
    }

    fn clean(&self, words: &str) -> Ended {
        self.scratch.run(&format!("clean --s3-key-file keys {words}"))
    }

    fn manifests(&self) -> Vec<String> {
        let state = state_of(self.scratch.path()).join("strata");
        if state.exists() { names_in(&state) } else { Vec::new() }
    }
}

/// Bits of the signals that this process, and what it starts, ignores.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

#[test]
fn every_signal_that_ends_a_process_removes_what_the_run_made() {
    // Under nohup, which ignores it for all that is begun below it, that is left as it is.
    let is_hang_up_ignored = ignored_signals() >> (Signal::HUP.as_raw() - 1) & 1 == 1;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        if signal == Signal::HUP && is_hang_up_ignored {
            continue;
        }
        let bed = Bed::new();
        let running = bed.putting(&bed.server.endpoint(), "");
        assert_eq!(bed.manifests().len(), 1);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(1), "{signal:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("interrupted"), "{signal:?}: {}", ended.stderr);
        assert!(!bed.server.store().has_bucket(BUCKET), "{signal:?}: {} objects are left", bed.keys());
        assert!(bed.manifests().is_empty());
        let record = read_record(&bed.scratch.join("record.json"));
        assert_eq!((&record["status"], record["made"].as_array().unwrap().len()), (&"partial".into(), 0));
    }
}

#[test]
fn a_run_that_was_killed_is_cleaned_up_by_its_manifest() {
    let bed = Bed::new();
    bed.server.store().create_bucket(BUCKET);
    for other in ["x/theirs", "y/0"] {
        bed.server.store().insert(BUCKET, other, b"x".to_vec());
    }
    let running = bed.putting(&bed.server.endpoint(), "");
    // Who is under way is left alone.
    let ended = bed.clean("--yes");
    assert!(ended.code == Some(0) && ended.stdout.contains("still running, skipped"), "{ended:?}");
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    bed.server.await_no_client();
    // Of the same name as the run's own, and put after it.
    bed.server.store().insert(BUCKET, "x/99999999", b"x".to_vec());
    let name = bed.manifests().remove(0);
    let text = std::fs::read_to_string(state_of(bed.scratch.path()).join("strata").join(&name)).unwrap();
    assert!(!text.contains(&S3Options::default().secret) && !text.contains(&S3Options::default().access));
    let before = bed.keys();
    let ended = bed.clean("");
    let own = before - 3;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(&format!("bucket {BUCKET}: {own} objects x/")), "{}", ended.stdout);
    assert!(ended.stdout.contains("nothing was removed: use --yes"), "{}", ended.stdout);
    assert_eq!((bed.keys(), bed.manifests().len()), (before, 1));
    let ended = bed.clean("--yes");
    assert!(ended.code == Some(0) && ended.stdout.contains(&format!("removed {own}")), "{ended:?}");
    assert_eq!(bed.server.store().keys(BUCKET), ["x/99999999", "x/theirs", "y/0"]);
    assert!(bed.manifests().is_empty());
    let ended = bed.clean("--yes");
    assert!(ended.code == Some(0) && ended.stdout.contains("nothing is left"), "{ended:?}");
}

/// A run that ends while `clean` looks removes its manifest between being found and being read, as a link that leads nowhere has none.
#[test]
fn a_manifest_that_goes_meanwhile_is_passed_over() {
    let scratch = Scratch::new();
    let state = state_of(scratch.path()).join("strata");
    std::fs::create_dir_all(&state).unwrap();
    std::os::unix::fs::symlink("gone", state.join("0123456789abcdef.json")).unwrap();
    let ended = scratch.run("clean --yes");
    assert!(ended.code == Some(0) && ended.stdout.contains("nothing is left"), "{ended:?}");
    // One that is there and says nothing is told.
    std::fs::write(state.join("fedcba9876543210.json"), "").unwrap();
    let ended = scratch.run("clean --yes");
    assert!(ended.code == Some(2) && ended.stderr.contains("fedcba9876543210"), "{ended:?}");
}

#[test]
fn a_second_signal_ends_at_once_and_says_what_is_left() {
    let bed = Bed::new();
    let (goes_on, is_cleaning) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (held, seen) = (Arc::clone(&goes_on), Arc::clone(&is_cleaning));
    let proxy = FaultProxy::start(&bed.server.endpoint(), move |line, _| {
        if !line.starts_with("DELETE") || line.contains(".strata-probe-") {
            return Meddling::None;
        }
        seen.store(true, Ordering::Relaxed);
        Meddling::Hold(Arc::clone(&held))
    });
    let proxy = proxy.unwrap();
    let running = bed.putting(&proxy.endpoint(), "");
    running.signal(Signal::INT);
    running.await_that(|| is_cleaning.load(Ordering::Relaxed));
    running.signal_again(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("a second signal") && ended.stderr.contains("bucket mine"),
        "{}",
        ended.stderr
    );
    let (_, command) = ended.stderr.split_once("strata clean ").expect("the command");
    let command = command.split(" removes").next().unwrap();
    goes_on.store(true, Ordering::Relaxed);
    let ended = bed.clean(command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!bed.server.store().has_bucket(BUCKET) && bed.manifests().is_empty());
}

#[test]
fn what_was_kept_is_removed_by_its_record() {
    let bed = Bed::new();
    let ended = bed.run("--op put --dkeys 50 --value-size 10 --keep --json record.json");
    assert_eq!((ended.code, bed.keys()), (Some(0), 50), "{}", ended.stderr);
    assert!(bed.manifests().is_empty());
    // The next run reads it, but does not write over it.
    let ended = bed.run("--op get --dkeys 50 --count 500 --value-size 10 --no-fill");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for load in ["--op put --dkeys 50", "--op remove --dkeys 50 --no-fill"] {
        let ended = bed.run(&format!("{load} --value-size 10"));
        assert!(ended.code == Some(2) || ended.code == Some(1), "{load}: {}", ended.stderr);
        assert!(ended.stderr.contains("--destroy-data") && bed.keys() == 50, "{load}: {}", ended.stderr);
    }
    bed.server.store().insert(BUCKET, "x/7", b"theirs".to_vec());
    let name = bed.server.store().keys(BUCKET)[10].clone();
    bed.server.store().insert(BUCKET, &name, b"theirs".to_vec());
    let ended = bed.clean("--yes record.json");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut left = vec!["x/7".to_owned(), name];
    left.sort();
    left.dedup();
    assert_eq!(bed.server.store().keys(BUCKET), left);
    assert!(ended.stdout.contains("belong to other clients"), "{}", ended.stdout);
}

#[test]
fn a_run_behind_a_page_of_html_ends_with_one_line() {
    let bed = Bed::new();
    bed.server.store().create_bucket(BUCKET);
    bed.server.store().insert(BUCKET, "x/0", b"theirs".to_vec());
    let proxy = FaultProxy::start(&bed.server.endpoint(), |line, _| {
        if line.starts_with("GET") { Meddling::Answer(good("<html>Sign in</html>")) } else { Meddling::None }
    });
    let words = bed.words(&proxy.as_ref().unwrap().endpoint(), "--op put --dkeys 10 --value-size 10");
    let ended = bed.scratch.run(&words);
    assert_eq!((ended.code, bed.keys()), (Some(1), 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("it is not a bucket listing"), "{}", ended.stderr);
}

#[test]
fn passwords_in_urls_are_shown_nowhere() {
    let job = "[[phase]]\nlayer = 'object'\ntargets = ['s3://b']\ns3_endpoint = 'http://me:hunter2@127.0.0.1:9'\nop = 'put'\n";
    for words in [
        "object s3://b --s3-endpoint http://me:hunter2@127.0.0.1:9 --op put --json record.json --out out",
        "object s3://b --s3-endpoint http://127.0.0.1:9,https://me:hunter2@127.0.0.1:9 --op put --json record.json",
        "object engine://me:hunter2@127.0.0.1:9/p/c --op put --json record.json",
        "as elbencho --s3endpoints http://me:hunter2@127.0.0.1:9 --s3key k --s3secret s -w -t 1 -n 1 -N 1 b",
        "net tcp://me:hunter2@127.0.0.1:9 --json record.json",
        "pool query engine://me:hunter2@127.0.0.1:9/p",
        "run job.toml --json record.json",
    ] {
        let scratch = Scratch::new();
        std::fs::write(scratch.join("job.toml"), job).unwrap();
        let ended = scratch.run(words);
        assert_ne!(ended.code, Some(0), "{words}");
        std::fs::remove_file(scratch.join("job.toml")).unwrap();
        let mut texts = vec![ended.stdout.clone(), ended.stderr.clone()];
        for directory in
            [scratch.path().to_owned(), scratch.join("out"), state_of(scratch.path()).join("strata")]
        {
            for name in if directory.is_dir() { names_in(&directory) } else { Vec::new() } {
                texts.extend(std::fs::read_to_string(directory.join(name)));
            }
        }
        for text in &texts {
            assert!(!text.contains("hunter2"), "{words}: {text}");
        }
        // The dialect names the option alone.
        let is_shown = ended.stderr.contains("://***@127.0.0.1:9");
        assert!(is_shown || words.starts_with("as "), "{words}: {}", ended.stderr);
    }
}

#[test]
fn an_unknown_issuer_of_a_certificate_is_told_with_what_trusts_it() {
    let bed = Bed::new();
    let server = S3Server::start(S3Options { is_tls: true, ..S3Options::default() }).unwrap();
    let words = bed.words(&server.endpoint(), "--op put --dkeys 10 --value-size 10 --json record.json");
    let ended = bed.scratch.run(&words);
    assert!(ended.code.is_some_and(|code| code > 0) && !server.store().has_bucket(BUCKET), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for word in ["TLS", "UnknownIssuer", "AWS_CA_BUNDLE=FILE"] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    // With the certificate it is trusted.
    std::fs::write(bed.scratch.join("bundle.pem"), server.certificate().unwrap()).unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_strata"))
        .args(words.split_whitespace())
        .current_dir(bed.scratch.path())
        .env("XDG_STATE_HOME", state_of(bed.scratch.path()))
        .env("AWS_CA_BUNDLE", "bundle.pem")
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn stores_of_this_machine_are_cleaned_up_too() {
    let scratch = Scratch::new();
    let load = "--op put --dkeys 1000 --value-size 100 --time 100s --live-csv -";
    for target in ["vos:pool", "vos:other"] {
        if target == "vos:other" {
            assert_eq!(scratch.run("pool create vos:other --scm 64m").code, Some(0));
            assert_eq!(scratch.run("container create vos:other theirs").code, Some(0));
        }
        let mut running = scratch.start(&format!("object {target} --scm 64m {load}"));
        running.await_row("put");
        running.signal(Signal::KILL);
        running.end();
        let shown = scratch.run("clean");
        assert!(shown.code == Some(0) && shown.stdout.contains("and all its contents"), "{shown:?}");
        let ended = scratch.run("clean --yes");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    assert!(!scratch.join("pool").exists());
    let listed = scratch.run("container list vos:other").stdout;
    assert!(listed.contains("theirs") && listed.lines().count() <= 2, "{listed}");
}

#[test]
fn the_record_of_a_run_of_hosts_stands_for_the_manifest_of_each() {
    let scratch = Scratch::new();
    let mut running = scratch
        .start("object vos:pool --scm 64m --op put --dkeys 10 --time 100s --live-csv - --json record.json");
    running.await_row("put");
    running.signal(Signal::KILL);
    running.end();
    // As a host has it: the name of the run, and the host's rank behind it.
    let state = state_of(scratch.path()).join("strata");
    let name = manifests_of(&scratch).remove(0);
    let of_host = name.replace(".json", "-1.json");
    std::fs::rename(state.join(&name), state.join(&of_host)).unwrap();
    let ended = scratch.run("clean --yes record.json");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!scratch.join("pool").exists() && manifests_of(&scratch).is_empty(), "{}", ended.stdout);
}

#[test]
fn a_pool_that_was_not_finished_goes_by_the_manifest_of_its_run() {
    let scratch = Scratch::new();
    for file in ["", "superblock.partial", "superblock"] {
        let running = scratch.start("object vos:pool --scm 256m --op put --dkeys 10 --time 100s");
        let has = |file: &str| scratch.join("pool").join(file).exists();
        running.await_that(|| has(file) || has("superblock"));
        running.signal(Signal::KILL);
        running.end();
        assert_eq!(manifests_of(&scratch).len(), 1, "{file:?}");
        let shown = scratch.run("clean");
        assert_eq!(shown.code, Some(0), "{file:?}: {shown:?}");
        assert!(scratch.join("pool").exists(), "{file:?}: shown, and left");
        assert_eq!(scratch.run("clean --yes").code, Some(0), "{file:?}");
        assert!(scratch.names().is_empty() && manifests_of(&scratch).is_empty(), "{file:?}");
    }
    // What somebody else left unfinished in its place stays.
    let running = scratch.start("object vos:pool --scm 64m --op put --dkeys 10 --time 100s");
    running.await_file(&scratch.join("pool/superblock"));
    running.signal(Signal::KILL);
    running.end();
    let pool = scratch.join("pool");
    std::fs::remove_dir_all(&pool).unwrap();
    assert_eq!(scratch.run("pool create vos:pool --scm 64m").code, Some(0));
    std::fs::rename(pool.join("superblock"), pool.join("superblock.partial")).unwrap();
    let ended = scratch.run("clean --yes");
    assert!(
        ended.code == Some(1) && ended.stderr.contains("does not show whether it holds that pool"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("strata pool destroy vos:"), "{}", ended.stderr);
    assert_eq!(scratch.run("pool destroy vos:pool --destroy-data").code, Some(0));
}

/// Manifests of runs in a directory.
fn manifests_of(scratch: &Scratch) -> Vec<String> {
    let state = state_of(scratch.path()).join("strata");
    let mut names = if state.exists() { names_in(&state) } else { Vec::new() };
    names.retain(|name| name.ends_with(".json"));
    names
}

#[test]
fn files_of_a_run_that_was_killed_go_by_its_manifest() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("theirs"), vec![1; 1 << 20]).unwrap();
    let words = "media a b theirs -s 1m --op randread -t 2 --time 100s --live-csv -";
    let mut running = scratch.start(words);
    running.await_row("randread");
    assert_eq!(
        (scratch.names(), manifests_of(&scratch).len()),
        (vec!["a".into(), "b".into(), "theirs".into()], 1)
    );
    let ended = scratch.run("clean --yes");
    assert!(ended.code == Some(0) && ended.stdout.contains("still running, skipped"), "{ended:?}");
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    let shown = scratch.run("clean");
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let path = |name: &str| scratch.path().canonicalize().unwrap().join(name).display().to_string();
    for name in ["a", "b"] {
        assert!(shown.stdout.contains(&format!("{}: 1 MiB", path(name))), "{}", shown.stdout);
    }
    assert!(
        !shown.stdout.contains("theirs") && shown.stdout.contains("use --yes to remove it"),
        "{}",
        shown.stdout
    );
    // Another has taken a name meanwhile.
    std::fs::write(scratch.join("other"), "not strata's").unwrap();
    std::fs::rename(scratch.join("other"), scratch.join("b")).unwrap();
    let ended = scratch.run("clean --yes");
    assert!(ended.code == Some(0) && ended.stdout.contains("removed 1"), "{ended:?}");
    assert!(
        ended.stdout.contains(&format!("{}: not removed: another file has this path now", path("b"))),
        "{}",
        ended.stdout
    );
    assert_eq!(
        (scratch.names(), manifests_of(&scratch)),
        (vec!["b".into(), "theirs".into()], Vec::<String>::new())
    );
    assert!(scratch.run("clean").stdout.contains("nothing is left"));
}

#[test]
fn every_way_to_lay_files_out_has_a_manifest() {
    for (words, row) in [
        ("media made -s 1m --op write --time 100s --live-csv -", "write"),
        (
            "as fio --name=job --filename=made --size=1m --rw=randread --ioengine=psync --time_based --runtime=100 --unlink=1",
            "",
        ),
        ("as elbencho -w -F -b 4k -s 1m --infloop --timelimit 100 made", ""),
        ("stack --dir . --quick --live none --json record.json", ""),
    ] {
        let scratch = Scratch::new();
        let mut running = scratch.start(words);
        match row {
            "" => {
                while manifests_of(&scratch).is_empty() {
                    std::thread::yield_now();
                }
            }
            row => drop(running.await_row(row)),
        }
        running.signal(Signal::KILL);
        assert_eq!(running.end().code, None, "{words}: it has ended before");
        let ended = scratch.run("clean --yes");
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        let mut left = scratch.names();
        // The pool of the engine that the stack starts is made before the run begins.
        left.retain(|name| name != "record.json" && !name.ends_with("-engine"));
        assert!(left.is_empty() && manifests_of(&scratch).is_empty(), "{words}: {left:?} {}", ended.stdout);
    }
}
