//! Two runs in one place: neither removes, nor writes over, anything of the other; and what a killed one left goes by its manifest.

use rustix::process::Signal;
use testkit::CephNode;
use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::support::{Ended, Running, Scratch, names_in, read_record, state_of};

/// A pool behind an engine, and two users of it.
struct Served {
    engine: Engine,
    a: Scratch,
    b: Scratch,
}

impl Served {
    fn new() -> Self {
        let (a, b) = (Scratch::new(), Scratch::new());
        let words = "--dir tank --pool fields --scm 512m --listen 127.0.0.1:0";
        Self { engine: Engine::start(a.path(), words), a, b }
    }

    fn pool(&self) -> String {
        format!("engine://{}/fields", self.engine.uri().replacen("tcp://", "", 1))
    }

    fn containers(&self) -> String {
        self.b.run(&format!("container list {}", self.pool())).stdout
    }
}

fn manifests(scratch: &Scratch) -> Vec<String> {
    let state = state_of(scratch.path()).join("strata");
    let mut names = if state.exists() { names_in(&state) } else { Vec::new() };
    names.retain(|name| name.ends_with(".json"));
    names
}

/// A load that puts until it is told to end, and has put something.
fn putting(scratch: &Scratch, target: &str, more: &str) -> Running {
    let words = format!(
        "object {target} --op put --dkeys 1000 --value-size 100 --time 100s --live-csv - --json record.json {more}"
    );
    let mut running = scratch.start(&words);
    let has_put =
        |row: &str| row.split(',').nth(7).and_then(|operations| operations.parse().ok()) > Some(0_u64);
    while !has_put(&running.await_row("put")) {}
    running
}

fn good(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
}

/// Refused before the first byte, as files of others are.
fn refused(ended: &Ended, found: &str) {
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{} {}", ended.stdout, ended.stderr);
    for word in ["that this run did not create", found, "--first-id", "--destroy-data"] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

/// `a` keeps data in a container, which it made or not: what `b` may do there.
fn kept_data_is_its_owners(a: &Scratch, b: &Scratch, target: &str, more: &str, is_made: bool) {
    let load = format!("--dkeys 50 --count 500 --value-size 1k --verify --seed 5 {more}");
    good(&a.run(&format!("object {target} --op put {load} --keep --json kept.json")));
    let verified = |by: &Scratch| good(&by.run(&format!("object {target} --op get {load} --no-fill")));
    verified(b);
    refused(&b.run(&format!("object {target} --op put {load}")), "ids=1 to 1, run=");
    refused(&b.run(&format!("object {target} --op remove --no-fill --dkeys 50 {more}")), "ids=1 to 1, run=");
    // Ids of its own do not collide, and what it put under them goes with it.
    good(&b.run(&format!("object {target} --op put,get --first-id 1000 {load}")));
    refused(&b.run(&format!("object {target} --op put --first-id 1 --objects 2 {load}")), "ids=1 to 2, run=");
    verified(a);
    // Its owner may write over it, and it stays.
    good(&a.run(&format!("object {target} --op put,get {load}")));
    verified(b);
    // What another keeps in the container is not removed with it.
    good(&b.run(&format!("object {target} --op put --first-id 7000 {load} --keep --json kept.json")));
    let ended = a.run("clean --yes kept.json");
    good(&ended);
    let names_it = ended.stdout.contains("; kept") && ended.stdout.contains("has stored data in it");
    assert_eq!(names_it, is_made, "{}", ended.stdout);
    good(&b.run(&format!("object {target} --op get --first-id 7000 {load} --no-fill")));
    assert_ne!(a.run(&format!("object {target} --op get {load} --no-fill")).code, Some(0), "it is removed");
    // With leave all goes.
    good(&a.run(&format!("object {target} --op put --first-id 7000 {load} --destroy-data")));
    good(&b.run("clean --yes kept.json"));
    assert!(manifests(a).is_empty() && manifests(b).is_empty());
}

/// `a` puts until it is interrupted; `b` stores beside it and keeps it.
fn runs_at_the_same_time_stay_apart(a: &Scratch, b: &Scratch, target: &str, more: &str) {
    let running = putting(a, target, more);
    let load = format!("--dkeys 50 --count 500 --value-size 1k --verify --seed 5 {more}");
    refused(&b.run(&format!("object {target} --op put {load}")), "run=");
    // Also of the same user, while that run is under way.
    refused(&a.run(&format!("object {target} --op put {load}")), "run=");
    good(&b.run(&format!("object {target} --op put --first-id 1000 {load} --keep --json kept.json")));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("left: container") && ended.stderr.contains("; kept"), "{}", ended.stderr);
    assert_ne!(
        a.run(&format!("object {target} --op get {more} --dkeys 1 --value-size 100 --no-fill")).code,
        Some(0)
    );
    good(&b.run(&format!("object {target} --op get --first-id 1000 {load} --no-fill")));
    assert!(manifests(a).is_empty());
    good(&b.run("clean --yes kept.json"));
}

/// A run that is killed leaves a manifest, by which it goes, and what others have put beside it does not.
fn a_killed_run_goes_by_its_manifest(a: &Scratch, b: &Scratch, target: &str, more: &str) {
    let running = putting(a, target, more);
    running.signal(Signal::KILL);
    assert_eq!((running.end().code, manifests(a).len()), (None, 1));
    let load = format!("--dkeys 50 --count 500 --value-size 1k --verify --seed 5 {more}");
    // What it left is not written over either, and the message says what to do.
    let ended = a.run(&format!("object {target} --op put {load}"));
    refused(&ended, "strata clean");
    good(&b.run(&format!("object {target} --op put --first-id 1000 {load} --keep --json kept.json")));
    let shown = a.run("clean");
    good(&shown);
    assert!(
        shown.stdout.contains("objects of the run") && shown.stdout.contains("which is kept"),
        "{}",
        shown.stdout
    );
    good(&a.run("clean --yes"));
    assert!(manifests(a).is_empty());
    assert_ne!(
        a.run(&format!("object {target} --op get {more} --dkeys 1 --value-size 100 --no-fill")).code,
        Some(0)
    );
    good(&b.run(&format!("object {target} --op get --first-id 1000 {load} --no-fill")));
    good(&b.run("clean --yes kept.json"));
}

fn rados() -> Option<(&'static CephNode, String)> {
    let node = testkit::ceph_node(env!("CARGO_TARGET_TMPDIR"))?;
    Some((node, format!("--rados-conf {}", node.conf.display())))
}

#[test]
fn a_pool_of_this_machine_and_two_users() {
    let (a, b) = (Scratch::new(), Scratch::new());
    good(&a.run("pool create vos:tank --scm 256m"));
    let target = format!("vos:{}", a.join("tank").display());
    good(&a.run(&format!("container create {target} theirs")));
    kept_data_is_its_owners(&a, &b, &target, "", true);
    kept_data_is_its_owners(&a, &b, &target, "--container theirs", false);
    a_killed_run_goes_by_its_manifest(&a, &b, &target, "--container theirs");
    // One process at a time has it open.
    let running = putting(&a, &target, "--container theirs");
    let ended = b.run(&format!("object {target} --op put --container other"));
    assert!(ended.code != Some(0) && ended.stderr.contains("the pool is open already"), "{}", ended.stderr);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    assert_eq!(a.run(&format!("container list {target}")).stdout.matches("theirs").count(), 1);
}

#[test]
fn a_pool_that_a_run_made_stays_when_others_use_it() {
    let (a, b) = (Scratch::new(), Scratch::new());
    let target = format!("vos:{}", a.join("tank").display());
    let load = "--dkeys 50 --count 500 --value-size 1k --verify --seed 5";
    // Killed, and used by others before it is cleaned up.
    let running = putting(&a, &target, "--scm 256m");
    running.signal(Signal::KILL);
    running.end();
    good(&b.run(&format!("object {target} --op put --container mine {load} --keep --json kept.json")));
    good(&b.run(&format!("container create {target} empty")));
    let shown = a.run("clean");
    assert!(
        shown.stdout.contains("kept, because other processes use it"),
        "{} {}",
        shown.stdout,
        shown.stderr
    );
    let ended = a.run("clean --yes");
    good(&ended);
    for label in ["mine", "empty"] {
        assert!(
            ended.stdout.contains(&format!("container {label}: this run did not create it")),
            "{}",
            ended.stdout
        );
    }
    good(&b.run(&format!("object {target} --op get --container mine {load} --no-fill")));
    let listed = b.run(&format!("container list {target}")).stdout;
    assert_eq!(
        listed.lines().filter(|line| line.contains("mine") || line.contains("empty")).count(),
        2,
        "{listed}"
    );
    assert!(!listed.contains("strata"), "the run's own has gone: {listed}");
    // Where nobody has come it goes as a whole.
    let other = format!("vos:{}", a.join("other").display());
    good(&a.run(&format!("object {other} --op put {load} --scm 64m --keep --json record.json")));
    good(&a.run("clean --yes record.json"));
    assert!(!a.join("other").exists());
    // A snapshot is somebody's.
    good(
        &a.run(&format!("object {other} --op put {load} --scm 64m --container c --keep --json record.json")),
    );
    good(&a.run(&format!("container snapshot {other} c")));
    let ended = a.run("clean --yes record.json");
    assert!(ended.code == Some(0) && ended.stdout.contains("it has snapshots"), "{ended:?}");
    assert!(a.join("other").exists());
}

#[test]
fn an_engine_and_two_users() {
    let served = Served::new();
    let Served { a, b, .. } = &served;
    let pool = served.pool();
    kept_data_is_its_owners(a, b, &format!("{pool}/kept"), "", true);
    runs_at_the_same_time_stay_apart(a, b, &format!("{pool}/data"), "");
    good(&b.run(&format!("container create {pool}/theirs")));
    kept_data_is_its_owners(a, b, &format!("{pool}/theirs"), "", false);
    a_killed_run_goes_by_its_manifest(a, b, &format!("{pool}/data"), "");
    // Containers of their own in one pool.
    let running = putting(a, &format!("{pool}/first"), "");
    good(
        &b.run(&format!("object {pool}/second --op put,get --dkeys 50 --count 500 --value-size 1k --verify")),
    );
    assert!(served.containers().contains("first") && !served.containers().contains("second"));
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    let left = served.containers();
    assert!(!left.contains("first") && left.contains("theirs"), "{left}");
}

#[test]
fn a_ceph_pool_and_two_users() {
    let Some((_, conf)) = rados() else { return };
    let (a, b) = (Scratch::new(), Scratch::new());
    let name = format!("two-users-{}", std::process::id());
    let target = format!("rados://strata/{name}");
    kept_data_is_its_owners(&a, &b, &format!("{target}-kept"), &conf, true);
    runs_at_the_same_time_stay_apart(&a, &b, &target, &conf);
    a_killed_run_goes_by_its_manifest(&a, &b, &target, &conf);
}

#[test]
fn objects_of_others_keep_a_ceph_container() {
    let Some((node, conf)) = rados() else { return };
    let scratch = Scratch::new();
    let name = format!("not-strata-{}", std::process::id());
    let target = format!("rados://strata/{name}");
    let running = putting(&scratch, &target, &conf);
    let rados = |words: &[&str]| {
        let common = ["--conf", node.conf.to_str().unwrap(), "-p", "strata", "-N", &name];
        let output = std::process::Command::new("rados").args(common).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    rados(&["create", "theirs"]);
    running.signal(Signal::TERM);
    let ended = running.end();
    assert!(ended.stderr.contains("holds theirs, which this run did not store"), "{}", ended.stderr);
    let mut left: Vec<String> = rados(&["ls"]).lines().map(str::to_owned).collect();
    left.sort();
    assert_eq!(left, ["strata.container", "theirs"]);
    rados(&["rm", "theirs"]);
    rados(&["rm", "strata.container"]);
}

#[test]
fn a_bucket_and_two_users() {
    let (a, b, server) = (Scratch::new(), Scratch::new(), S3Server::start(S3Options::default()).unwrap());
    for scratch in [&a, &b] {
        use std::os::unix::fs::PermissionsExt as _;
        let keys = S3Options::default();
        std::fs::write(scratch.join("keys"), format!("{}\n{}\n", keys.access, keys.secret)).unwrap();
        std::fs::set_permissions(scratch.join("keys"), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let more = format!("--s3-endpoint {} --s3-key-file keys", server.endpoint());
    let running = putting(&a, "s3://shared/x/", &more);
    let load = format!("{more} --dkeys 50 --count 500 --value-size 1k --verify --seed 5");
    let ended = b.run(&format!("object s3://shared/x/ --op put {load}"));
    assert!(ended.code == Some(2) && ended.stderr.contains("--destroy-data"), "{}", ended.stderr);
    good(&b.run(&format!("object s3://shared/y/ --op put {load} --keep --json kept.json")));
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("kept, because it contains objects of other clients"), "{}", ended.stderr);
    assert_eq!(server.store().keys("shared").len(), 50);
    good(&b.run(&format!("object s3://shared/y/ --op get {load} --no-fill")));
    assert_eq!(read_record(&a.join("record.json"))["made"].as_array().map(Vec::len), Some(0));
}

#[test]
fn every_signal_ends_a_load_on_an_engine_and_removes_what_it_made() {
    let served = Served::new();
    let a = &served.a;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let running = putting(a, &format!("{}/data", served.pool()), "--depth 8 -t 2");
        assert!(served.containers().contains("data") && manifests(a).len() == 1);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(1), "{signal:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("interrupted"), "{signal:?}: {}", ended.stderr);
        assert!(!served.containers().contains("data") && manifests(a).is_empty(), "{signal:?}");
        let record = read_record(&a.join("record.json"));
        assert_eq!((&record["status"], record["made"].as_array().unwrap().len()), (&"partial".into(), 0));
    }
}

/// Time and operations so far, of a row.
fn done_in(row: &str) -> (u64, u64) {
    let fields: Vec<&str> = row.split(',').collect();
    (fields[1].parse().unwrap(), fields[7].parse().unwrap())
}

#[test]
fn a_second_signal_names_the_files_that_are_left_too() {
    let served = Served::new();
    let a = &served.a;
    let job = format!(
        "[[phase]]\ntargets = ['file']\nsize = '1m'\nop = 'write'\n\
         [[phase]]\nlayer = 'object'\ntargets = ['{}/data']\nop = 'put'\ndkeys = 1000\ntime = '100s'\n",
        served.pool()
    );
    std::fs::write(a.join("job.toml"), job).unwrap();
    let mut running = a.start("run job.toml --live-csv -");
    running.await_row("put");
    served.engine.signal(Signal::STOP);
    // Threads of the engine may answer a little longer: an operation hangs when an interval has gone by without one.
    let mut before = done_in(&running.await_row("put"));
    loop {
        let now = done_in(&running.await_row("put"));
        if now.0 > before.0 && now.1 == before.1 {
            break;
        }
        before = now;
    }
    running.signal(Signal::HUP);
    running.signal_again(Signal::QUIT);
    let ended = running.end();
    served.engine.signal(Signal::CONT);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let names_both = ["container data of engine://", "/file may be left"];
    assert!(names_both.iter().all(|what| ended.stderr.contains(what)), "{}", ended.stderr);
    assert!(a.join("file").exists());
    good(&a.run("clean --yes"));
    assert!(!a.join("file").exists() && !served.containers().contains("data") && manifests(a).is_empty());
}

#[test]
fn a_second_signal_while_an_engine_hangs_says_what_is_left() {
    let served = Served::new();
    let a = &served.a;
    let running = putting(a, &format!("{}/data", served.pool()), "");
    served.engine.signal(Signal::STOP);
    running.signal(Signal::INT);
    running.signal_again(Signal::TERM);
    let ended = running.end();
    served.engine.signal(Signal::CONT);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("a second signal") && ended.stderr.contains("container data of engine://"),
        "{}",
        ended.stderr
    );
    let (_, command) = ended.stderr.split_once("strata clean ").expect("the command");
    let command = command.split(" removes").next().unwrap();
    good(&a.run(&format!("clean {command}")));
    assert!(!served.containers().contains("data") && manifests(a).is_empty());
}

#[test]
fn a_directory_and_two_users() {
    let (a, b) = (Scratch::new(), Scratch::new());
    let path = |name: &str| a.join(name).display().to_string();
    let mut running =
        a.start("media file -s 1m --op randwrite --verify --time 100s --live-csv - --json record.json");
    running.await_row("randwrite");
    // Another user, and another run of the same one.
    for scratch in [&a, &b] {
        let ended = scratch.run(&format!("media {} --op write -b 64k", path("file")));
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{}", ended.stderr);
        for word in ["another active run uses the file", "--destroy-data"] {
            assert!(ended.stderr.contains(word), "{}", ended.stderr);
        }
    }
    good(&b.run(&format!("media {} --op randread --time 100ms", path("file"))));
    good(&b.run(&format!("media {} -s 1m --op write --verify", path("other"))));
    assert_eq!(names_in(a.path()), ["file", "record.json"], "its own has gone, and nothing else");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(1));
    let record = read_record(&a.join("record.json"));
    assert_eq!(record["failure"], "interrupted", "what it wrote was verified");
    assert_eq!(names_in(a.path()), ["record.json"]);
    // When the run has ended, what it kept may be written over.
    good(&a.run("media file -s 1m --op write --keep"));
    good(&b.run(&format!("media {} --op write -b 64k", path("file"))));
}
