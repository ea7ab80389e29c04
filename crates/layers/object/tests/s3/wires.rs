//! HTTPS, and connections by the thousand.

use std::io::Write as _;

use object::ObjectOperation;
use object::plan::ObjectOp;
use testkit::s3::{Fault, S3Options, S3Server};

use crate::bed::{BUCKET, Bed, content, key, operation, options, plan, request, server};

#[test]
fn values_travel_under_tls() {
    let server = S3Server::start(S3Options { is_tls: true, ..S3Options::default() }).expect("a server");
    let mut bundle = tempfile::NamedTempFile::new().expect("a file");
    bundle.write_all(server.certificate().expect("TLS").as_bytes()).expect("written");
    let options = options(&[server.endpoint()]);
    let mut connect = request(&options, key(&S3Options::default()));
    let backend = object::s3::connect_with(&connect, Some(bundle.path())).expect("a store");
    let bed = Bed { backend, plan: plan(&options, 1 << 20) };
    bed.prepare().expect("prepared");
    let mut worker = bed.worker(8);
    for (number, bytes) in [(1, 0), (2, 5), (3, 4096), (4, 1 << 20)] {
        assert_eq!((worker.put(number, bytes), worker.get(number, bytes)), (bytes as i64, bytes as i64));
    }
    for fault in [Fault::Cut, Fault::CutBody, Fault::Close, Fault::Chunked] {
        server.faults().inject(fault, 2);
        for _ in 0..3 {
            assert_eq!(worker.get(4, 1 << 20), 1 << 20, "{fault:?}");
        }
    }
    server.faults().heal();
    let batch: Vec<_> =
        (0..8).map(|slot| ObjectOperation { slot, ..operation(ObjectOp::Get, 4, 1 << 20) }).collect();
    assert!(worker.run(&batch).iter().all(|&(_, result)| result == 1 << 20));

    // A certificate that nobody vouches for is refused, not retried.
    let other = S3Server::start(S3Options { is_tls: true, ..S3Options::default() }).expect("a server");
    connect.options.s3_endpoints = vec![other.endpoint()];
    let stranger = object::s3::connect_with(&connect, Some(bundle.path())).expect("a store");
    let error = stranger.prepare(&plan(&connect.options, 4096)).expect_err("refused").to_string();
    assert!(error.contains("TLS") && error.contains("certificate"), "{error}");
    let missing = object::s3::connect_with(&connect, Some(std::path::Path::new("no-such.pem")));
    let error = missing.err().expect("refused").to_string();
    assert!(error.contains("AWS_CA_BUNDLE"), "{error}");
}

#[test]
fn a_thousand_connections_are_open_at_once() {
    let server = server();
    server.store().insert(BUCKET, "blade-5", content(5, 4096));
    let bed = Bed::new(&server, |plan| plan.dataset.value_size_bytes_max = 4096);
    let mut worker = bed.worker(1000);
    let batch: Vec<_> =
        (0..1000).map(|slot| ObjectOperation { slot, ..operation(ObjectOp::Get, 5, 4096) }).collect();
    for _ in 0..3 {
        assert!(worker.run(&batch).iter().all(|&(_, result)| result == 4096));
    }
    assert_eq!(worker.tally("s3_connections") as u64, 1000);
    assert!((0..1000).all(|slot| worker.read(slot, 4096) == content(5, 4096)));
}

#[test]
fn a_connection_that_was_closed_at_rest_is_made_again_at_once() {
    let first = server();
    let port = first.port();
    let bed = Bed::new(&first, |plan| plan.options.retries = 0);
    let mut worker = bed.worker(1);
    assert_eq!(worker.put(1, 100), 100);
    drop(first);
    let again = S3Server::start(S3Options { port, ..S3Options::default() }).expect("the same port");
    again.store().create_bucket(BUCKET);
    assert_eq!(worker.put(1, 100), 100);
    assert_eq!(worker.get(1, 100), 100);
}
