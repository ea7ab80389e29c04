//! Object stores that several hosts work on together.

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use super::engines::Engine;
use super::hosts_files::said;
use super::pool::target;
use super::support::{Scratch, class, read_record, total};

fn containers(scratch: &Scratch, at: &str) -> Value {
    let ended = scratch.run(&format!("container list {at}/fields --json"));
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// Number of the phase that was asked for last under a name: what it reads may have been stored before it.
pub(crate) fn last(record: &Value, name: &str) -> usize {
    let phases = record["phases"].as_array().unwrap();
    phases.iter().rposition(|phase| phase["plan"]["name"] == name).unwrap()
}

#[test]
fn three_hosts_share_an_engine() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 128m --targets 2");
    let at = target(&engine);
    let before = scratch.names();
    let load = "--dkeys 300 --value-size 1k --verify --seed 5";
    let record = scratch.measured(&format!(
        "object {at}/fields --op put,get --rank-shift 1 --count 300 {load} --hosts local:3"
    ));
    let get = last(&record, "get");
    assert_eq!((class(&record, 0, "put"), class(&record, get, "get")), ((300, 300 << 10), (300, 300 << 10)));
    assert_eq!(record["phases"][get]["plan"]["rank_shift"], 1);
    assert_eq!(record["phases"][0]["plan"]["load"]["place"]["targets"], "shared");
    assert_eq!(containers(&scratch, &at).as_array().map(Vec::len), Some(0), "the first host has removed it");
    let text = said(&scratch);
    assert!(
        text.contains("distributed over all hosts") && text.contains("worker 1 positions later"),
        "{text}"
    );

    // What hosts have stored, threads read, and the other way round.
    scratch.measured(&format!("object {at}/fields/kept --op put {load} --hosts local:3 --keep"));
    let record =
        scratch.measured(&format!("object {at}/fields/kept --op get --no-fill -t 2 --count 300 {load}"));
    assert_eq!(total(&record, 0, "errors"), &0);
    let record = scratch
        .measured(&format!("object {at}/fields/kept --op get --no-fill --count 300 {load} --hosts local:2"));
    assert_eq!((class(&record, 0, "get").0, total(&record, 0, "errors")), (300, &0.into()));
    // Its records are filled before a phase that reads: fewer than there are workers.
    let few = "--op get --dkeys 2 --share whole --count 30 --verify";
    let record = scratch.measured(&format!("object {at}/fields/few {few} --hosts local:3"));
    assert_eq!((class(&record, 0, "put").0, class(&record, last(&record, "get"), "get").0), (2, 30));
    // Containers and objects of each worker's own, on whichever host it is.
    for scope in ["--containers private", "--object-scope private"] {
        let words =
            format!("object {at}/fields/own --op put,get {scope} -t 2 --rank-shift 1 --count 1200 {load}");
        let record = scratch.measured(&format!("{words} --hosts local:2"));
        assert_eq!(
            (class(&record, 0, "put").0, class(&record, last(&record, "get"), "get").0),
            (1200, 1200),
            "{scope}"
        );
    }
    // Each has a file of its own of what was acknowledged to it.
    scratch.measured(&format!(
        "object {at}/fields/said --op put {load} --hosts local:3 --keep --acknowledged said"
    ));
    for file in ["said.0", "said.1", "said.2"] {
        let ended = scratch.run(&format!("object audit {file}"));
        assert_eq!(ended.code, Some(0), "{file}: {} {}", ended.stdout, ended.stderr);
        std::fs::remove_file(scratch.join(file)).unwrap();
    }
    assert_eq!(scratch.run(&format!("container destroy {at}/fields said --destroy-data")).code, Some(0));
    let left = containers(&scratch, &at);
    assert_eq!((left.as_array().map(Vec::len), &left[0]["label"]), (Some(1), &"kept".into()), "{left}");
    assert_eq!(scratch.names().into_iter().filter(|name| name != "record.json").collect::<Vec<_>>(), before);
}

#[test]
fn hosts_have_no_store_in_one_directory_together() {
    let scratch = Scratch::new();
    let refused = scratch.run("object vos:pool --op put --hosts local:2");
    assert_eq!((refused.code, refused.stderr.lines().count()), (Some(2), 1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("only one process can open") && refused.stderr.contains("engine://"),
        "{}",
        refused.stderr
    );
    let refused = scratch.run("object s3://bucket --s3-endpoint http://127.0.0.1:9 --op put --hosts local:2 --host-targets own --s3-signing none");
    assert!(refused.code == Some(2) && refused.stderr.contains("reach the same store"), "{}", refused.stderr);
    let refused = scratch.run("object null: --op put --rank-shift 1");
    assert!(refused.code == Some(2) && refused.stderr.contains("no phase reads"), "{}", refused.stderr);
    // Without a directory each has a store of the run's own.
    let record = scratch.measured("object --op put --dkeys 50 --hosts local:2");
    assert_eq!(
        (class(&record, 0, "put").0, &record["phases"][0]["plan"]["load"]["place"]["targets"]),
        (100, &"own".into())
    );
    assert_eq!(scratch.names(), ["record.json"]);
    scratch.measured("object null: --op put --dkeys 50 --hosts local:2");
}

#[test]
fn hosts_share_a_bucket() {
    let scratch = Scratch::new();
    let server = S3Server::start(S3Options::default()).unwrap();
    let options = S3Options::default();
    let keys = [("AWS_ACCESS_KEY_ID", options.access), ("AWS_SECRET_ACCESS_KEY", options.secret)];
    let words = format!(
        "object s3://bucket/p/ --s3-endpoint {} --op put,get,put,stat,remove --dkeys 90 --value-size 1k --count 90 --verify --rank-shift 1 --depth 4 \
         --hosts local:3 --json record.json",
        server.endpoint()
    );
    let ended = scratch.start_in(&words, &keys).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    for name in ["put", "get", "stat", "remove"] {
        assert_eq!(class(&record, last(&record, name), name).0, 90, "{name}");
    }
    assert!(!server.store().has_bucket("bucket"), "the first host made it, and removed what all have put");
    assert_eq!(scratch.names(), ["record.json"]);
}
