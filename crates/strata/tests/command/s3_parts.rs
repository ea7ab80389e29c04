//! `--split-latency` on S3: connect, TLS, first byte, transfer, pauses, and what strata itself takes; with servers whose faults are declared.

use serde_json::Value;
use testkit::s3::{Fault, S3Options, S3Server};

use crate::support::{Ended, Scratch, latency_ns, part, parts_ns, read_record};

struct Site {
    scratch: Scratch,
    server: S3Server,
    environment: Vec<(&'static str, String)>,
}

impl Site {
    /// A server whose bucket has objects of 100 kB.
    fn new(options: S3Options) -> Self {
        let scratch = Scratch::new();
        let mut environment = vec![
            ("AWS_ACCESS_KEY_ID", options.access.clone()),
            ("AWS_SECRET_ACCESS_KEY", options.secret.clone()),
        ];
        let server = S3Server::start(options).unwrap();
        if let Some(certificate) = server.certificate() {
            std::fs::write(scratch.join("ca.pem"), certificate).unwrap();
            environment.push(("AWS_CA_BUNDLE", scratch.join("ca.pem").display().to_string()));
        }
        server.store().create_bucket("b");
        let site = Self { scratch, server, environment };
        let ended = site.run("--op put --dkeys 64 --value-size 100k --keep");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        site
    }

    fn run(&self, words: &str) -> Ended {
        let endpoint = self.server.endpoint();
        let words = format!("object s3://b {words} --s3-endpoint {endpoint} --json record.json");
        self.scratch.start_in(&words, &self.environment).end()
    }

    /// Gets of a run with parts told apart, and what was printed.
    fn gets(&self, words: &str) -> (Value, String) {
        let words = format!("--op get --dkeys 64 --value-size 100k --no-fill --split-latency {words}");
        let ended = self.run(&words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let record = read_record(&self.scratch.join("record.json"));
        (record["phases"][0]["summary"]["classes"][0].clone(), ended.stdout)
    }
}

#[test]
fn parts_add_up_to_the_latency_and_a_slow_server_is_named() {
    let site = Site::new(S3Options::default());
    let (class, text) = site.gets("--depth 2 --count 60");
    let whole = latency_ns(&class);
    assert!((parts_ns(&class) - whole).abs() < 1e-3 * whole, "{class}");
    assert_eq!(part(&class, "connect").0, 2, "a connection each: {class}");
    assert_eq!((part(&class, "first-byte").0, part(&class, "pause").0, part(&class, "tls").0), (60, 0, 0));
    assert!(text.contains("get first-byte ") && text.contains("spent "), "{text}");
    // Each answer comes a second later.
    site.server.faults().inject(Fault::Slow, 1);
    let (class, text) = site.gets("--depth 2 --count 4");
    site.server.faults().heal();
    let (count, wait_ns) = part(&class, "first-byte");
    assert!(count == 4 && wait_ns > 0.95 * 4e9 && wait_ns > 0.9 * parts_ns(&class), "{class}");
    assert!(text.contains("% of the time in the server (a network round trip"), "{text}");
}

#[test]
fn pauses_and_connections_that_are_made_anew_are_told_apart() {
    let site = Site::new(S3Options::default());
    site.server.faults().inject(Fault::SlowDown, 2);
    let (class, text) = site.gets("--count 20");
    site.server.faults().heal();
    let (count, pause_ns) = part(&class, "pause");
    // A pause is at least 5 ms long.
    assert!(count >= 10 && pause_ns >= count as f64 * 5e6, "{class}");
    assert!(text.contains("% of the time in pauses before retries"), "{text}");
    site.server.faults().inject(Fault::Close, 1);
    let (class, _) = site.gets("--count 20");
    assert_eq!(part(&class, "connect").0, 20, "each get has a connection of its own: {class}");
}

#[test]
fn tls_has_a_part_of_its_own() {
    let site = Site::new(S3Options { is_tls: true, ..S3Options::default() });
    let (class, _) = site.gets("--depth 2 --count 40");
    let (connections, tls_ns) = part(&class, "tls");
    assert!(connections == 2 && tls_ns > 0.0, "{class}");
    assert_eq!((part(&class, "connect").0, part(&class, "first-byte").0), (2, 40), "{class}");
}

#[test]
fn without_it_nothing_is_timed_apart() {
    let site = Site::new(S3Options::default());
    let ended = site.run("--op get --dkeys 64 --value-size 100k --no-fill --count 10");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&site.scratch.join("record.json"));
    let class = &record["phases"][0]["summary"]["classes"][0];
    assert!(class["latency_parts"].is_null() && class["completion"].is_null(), "{class}");
    assert!(!ended.stdout.contains("spent"), "{}", ended.stdout);
}
