//! elbencho's words on a bucket, against an S3 server in this process.

use serde_json::Value;
use testkit::s3::{Fault, S3Options, S3Server};

use crate::support::{Ended, Scratch, read_record};

fn server() -> S3Server {
    S3Server::start(S3Options::default()).unwrap()
}

/// Runs elbencho's words behind the server and the keys.
fn elbencho(scratch: &Scratch, server: &S3Server, words: &str) -> Ended {
    let (endpoint, options) = (server.endpoint(), S3Options::default());
    scratch.run(&format!(
        "as --json record.json elbencho --s3endpoints {endpoint} --s3key {} --s3secret {} {words}",
        options.access, options.secret
    ))
}

#[test]
fn a_bucket_is_made_filled_listed_read_and_deleted() {
    let (scratch, server) = (Scratch::new(), server());
    let words =
        "-d -w --stat --s3listobj 100 -r -F -D -t 2 -n 3 -N 4 -s 64k -b 64k --lat --verify 1 s3://mybucket";
    let ended = elbencho(&scratch, &server, words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for row in ["WRITE ", "HEADOBJ ", "LISTOBJ ", "READ ", "RMOBJECTS ", "Objects/s ", "Objects latency"] {
        assert!(ended.stdout.contains(row), "{row}: {}", ended.stdout);
    }
    assert_eq!(ended.stdout.matches("Objects total    :").count(), 4, "{}", ended.stdout);
    assert!(!server.store().has_bucket("mybucket"), "it was made by the run, and -D was given");
    let text = std::fs::read_to_string(scratch.join("record.json")).unwrap();
    assert!(!text.contains(&S3Options::default().secret) && text.contains("***"));
    let record = read_record(&scratch.join("record.json"));
    let operations: Vec<&Value> = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| &phase["summary"]["total"]["operations"])
        .collect();
    assert_eq!(operations, [24, 24, 1, 24, 24]);
}

#[test]
fn objects_are_named_as_elbencho_names_them_and_stay() {
    let (scratch, server) = (Scratch::new(), server());
    server.store().create_bucket("b");
    let ended = elbencho(&scratch, &server, "-w -t 2 -n 1 -N 2 -s 1k -b 1k --s3objprefix run/ b");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut keys = server.store().keys("b");
    keys.sort_unstable();
    assert_eq!(keys, ["run/r0/d0/r0-f0", "run/r0/d0/r0-f1", "run/r1/d0/r1-f0", "run/r1/d0/r1-f1"]);
    let ended = elbencho(&scratch, &server, "-r -F -t 2 -n 1 -N 2 -s 1k -b 1k --s3objprefix run/ b");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(server.store().keys("b").is_empty() && server.store().has_bucket("b"));
}

#[test]
fn large_objects_go_up_in_parts_and_come_back_in_ranges() {
    let (scratch, server) = (Scratch::new(), server());
    let ended = elbencho(&scratch, &server, "-w -r -N 2 -s 15m -b 5m --log 1 big");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(server.store().data("big", "r0/d0/r0-f1").unwrap().len(), 15 << 20);
    assert_eq!(server.store().open_uploads(), 0);
    let ios: Vec<&str> = ended.stdout.lines().filter(|line| line.contains("IOs total")).collect();
    assert_eq!(ios.len(), 2, "{}", ended.stdout);
    assert!(ios.iter().all(|line| line.ends_with(" 6")), "{}", ended.stdout);
}

#[test]
fn wrong_keys_and_lost_objects_end_with_one_line() {
    let (scratch, server) = (Scratch::new(), server());
    let endpoint = server.endpoint();
    let words =
        format!("as elbencho --s3endpoints {endpoint} --s3key nobody --s3secret wrong -w -s 1k -b 1k b");
    let ended = scratch.run(&words);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("403") && !ended.stderr.contains("wrong"), "{}", ended.stderr);
    server.store().create_bucket("b");
    let ended = elbencho(&scratch, &server, "-r -N 3 -s 1k -b 1k b");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("get failed"), "{}", ended.stderr);
}

#[test]
fn busy_answers_are_sent_again() {
    let (scratch, server) = (Scratch::new(), server());
    server.store().create_bucket("b");
    server.faults().inject(Fault::SlowDown, 5);
    let ended = elbencho(&scratch, &server, "-w -N 40 -s 1k -b 1k b");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(server.faults().struck() > 0 && server.store().keys("b").len() == 40);
}
