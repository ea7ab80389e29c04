//! Failures at the server or on the way are told, and nothing short is taken for whole.

use object::plan::ObjectOp;
use testkit::s3::{Fault, S3Server};

use crate::bed::{BUCKET, Bed, Worker, content, operation, server};

const BYTES: usize = 40_000;

fn worker_of(server: &S3Server, retries: u32, zero_copy: bool) -> Worker {
    server.store().insert(BUCKET, "blade-1", content(1, BYTES));
    Bed::new(server, |plan| {
        plan.options.retries = retries;
        plan.options.zero_copy = zero_copy;
    })
    .worker(1)
}

#[test]
fn servers_that_ask_for_patience_get_it_and_it_is_counted() {
    let server = server();
    let mut worker = worker_of(&server, 3, true);
    server.faults().inject(Fault::SlowDown, 2);
    for _ in 0..12 {
        assert_eq!(worker.get(1, BYTES), BYTES as i64);
    }
    let struck = server.faults().struck();
    assert!(struck >= 11, "{struck}");
    assert_eq!(worker.findings(), format!("503 SlowDown: {struck} retried"));
    assert_eq!(worker.tally("s3_retries") as u64, struck);
    server.faults().inject(Fault::SlowDown, 1);
    assert_eq!(worker.get(1, BYTES), -i64::from(libc::EBUSY));
    let findings = worker.findings();
    assert!(findings.contains("1 failed (Please reduce your request rate.)"), "{findings}");
    server.faults().inject(Fault::InternalError, 1);
    assert_eq!(worker.put(2, 10), -i64::from(libc::EIO));
    assert_eq!(worker.one(operation(ObjectOp::Stat, 1, 0)), -i64::from(libc::EIO));
}

#[test]
fn connections_that_are_cut_are_made_again() {
    let server = server();
    for zero_copy in [true, false] {
        let mut worker = worker_of(&server, 3, zero_copy);
        for fault in [Fault::Cut, Fault::CutBody, Fault::Close] {
            server.faults().inject(fault, 2);
            for _ in 0..6 {
                assert_eq!(worker.get(1, BYTES), BYTES as i64, "{fault:?}");
                assert_eq!(worker.put(2, BYTES), BYTES as i64, "{fault:?}");
                assert_eq!(worker.one(operation(ObjectOp::Stat, 1, 0)), BYTES as i64, "{fault:?}");
            }
            assert!(server.store().data(BUCKET, "blade-2") == Some(content(2, BYTES)));
        }
        server.faults().heal();
        assert_eq!(worker.one(operation(ObjectOp::Remove, 2, 0)), 0);
        assert!(worker.tally("s3_connections_lost") > 0.0);
        let findings = worker.findings();
        assert!(
            findings.contains("retried (the server closed the connection before its answer was complete)"),
            "{findings}"
        );
    }
}

#[test]
fn what_is_cut_again_and_again_fails_and_is_never_short() {
    let server = server();
    let mut worker = worker_of(&server, 1, true);
    for fault in [Fault::Cut, Fault::CutBody] {
        server.faults().inject(fault, 1);
        assert_eq!(worker.get(1, BYTES), -i64::from(libc::ECONNRESET), "{fault:?}");
        assert_eq!(worker.put(3, BYTES), -i64::from(libc::ECONNRESET), "{fault:?}");
    }
    server.faults().inject(Fault::Short, 1);
    assert_eq!(worker.get(1, BYTES), BYTES as i64 - 1, "what came is what is told");
    server.faults().inject(Fault::Garbage, 1);
    assert_eq!(worker.get(1, BYTES), -i64::from(libc::EIO));
    assert!(
        worker.findings().contains("the server's answer is invalid: its Transfer-Encoding is not chunked")
    );
    server.faults().inject(Fault::NoRanges, 1);
    let mut read = operation(ObjectOp::Read, 1, BYTES as u64);
    read.offset_bytes = 5;
    assert_eq!(worker.one(read), -i64::from(libc::EIO));
    assert!(worker.findings().contains("another range than the requested one was returned"));
    server.faults().inject(Fault::Full, 1);
    assert_eq!(worker.put(3, 10), -i64::from(libc::ENOSPC));
    server.faults().heal();
    assert_eq!(worker.get(1, BYTES), BYTES as i64);
}

#[test]
fn chunks_are_put_together() {
    let server = server();
    for zero_copy in [true, false] {
        let mut worker = worker_of(&server, 0, zero_copy);
        // Counted and chunked in turn: what was guessed of the last answer is wrong for the next.
        for every in [1, 2, 3] {
            server.faults().inject(Fault::Chunked, every);
            for _ in 0..6 {
                assert_eq!(worker.get(1, BYTES), BYTES as i64);
                assert_eq!(worker.one(operation(ObjectOp::List, 0, 0)), 1);
                assert_eq!(worker.one(operation(ObjectOp::Get, 77, 10)), -i64::from(libc::ENOENT));
                assert_eq!(worker.one(operation(ObjectOp::Get, 1, 10)), -i64::from(libc::EMSGSIZE));
            }
        }
        assert!(worker.findings().contains("404 NoSuchKey: 18 failed"), "{}", worker.findings());
    }
}

#[test]
fn a_server_that_says_nothing_is_left_in_time() {
    let server = server();
    server.store().insert(BUCKET, "blade-1", content(1, BYTES));
    let bed = Bed::new(&server, |plan| plan.options.timeout_ns = 200_000_000);
    let connect = crate::bed::request(&bed.plan.options, crate::bed::key(&Default::default()));
    let bed = Bed { backend: object::connect(&connect).expect("a store"), ..bed };
    let mut worker = bed.worker(1);
    server.faults().inject(Fault::Silence, 1);
    let begin = std::time::Instant::now();
    assert_eq!(worker.get(1, BYTES), -i64::from(libc::ETIMEDOUT));
    assert!(begin.elapsed().as_millis() < 2000, "{:?}", begin.elapsed());
    assert!(worker.findings().contains("no answer in 200 ms"), "{}", worker.findings());
    server.faults().heal();
    assert_eq!(worker.get(1, BYTES), BYTES as i64);
}

#[test]
fn a_server_that_ends_is_named() {
    let server = server();
    let endpoint = server.endpoint();
    let mut worker = worker_of(&server, 1, true);
    assert_eq!(worker.get(1, BYTES), BYTES as i64);
    drop(server);
    let result = worker.get(1, BYTES);
    assert!([-libc::ECONNREFUSED, -libc::ECONNRESET].map(i64::from).contains(&result), "{result}");
    let findings = worker.findings();
    assert!(findings.contains(&endpoint) && findings.contains("1 failed"), "{findings}");
}
