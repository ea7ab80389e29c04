//! Uploads in parts.

use object::plan::ObjectOp;
use testkit::s3::Fault;

use crate::bed::{BUCKET, Bed, content, operation, server};

const PART: u64 = 1 << 20;

fn bed(server: &testkit::s3::S3Server, zero_copy: bool) -> Bed {
    Bed::new(server, |plan| {
        plan.options.s3_part_size_bytes = PART;
        plan.options.zero_copy = zero_copy;
        plan.options.retries = 2;
        plan.dataset.value_size_bytes_max = 4 * PART;
    })
}

#[test]
fn large_values_go_in_parts_and_small_ones_do_not() {
    let server = server();
    for zero_copy in [true, false] {
        let bed = bed(&server, zero_copy);
        bed.prepare().expect("prepared");
        let mut worker = bed.worker(1);
        for (bytes, requests) in [(PART - 1, 1), (PART, 3), (3 * PART + 17, 6)] {
            server.faults().inject(Fault::None, 1);
            assert_eq!(worker.put(1, bytes as usize), bytes as i64);
            assert_eq!(server.faults().requests(), requests, "{bytes} bytes");
            assert!(
                server.store().data(BUCKET, "blade-1") == Some(content(1, bytes as usize)),
                "{bytes} bytes"
            );
            assert_eq!(worker.get(1, bytes as usize), bytes as i64);
        }
        assert_eq!(worker.findings(), "");
        drop(worker);
        bed.backend.clean(&|_| ()).expect("cleaned");
    }
    assert_eq!(server.store().open_uploads(), 0);
}

#[test]
fn an_upload_that_fails_leaves_nothing() {
    let server = server();
    let bed = bed(&server, true);
    let mut worker = bed.worker(1);
    let failing = |fault, every, worker: &mut crate::bed::Worker| {
        worker.fill(0, &content(1, 3 << 20));
        server.faults().inject(fault, every);
        let result = worker.one(operation(ObjectOp::Put, 1, 3 * PART));
        server.faults().heal();
        result
    };
    assert_eq!(failing(Fault::WrongEtag, 2, &mut worker), -i64::from(libc::EINVAL));
    assert_eq!((server.store().open_uploads(), server.store().keys(BUCKET).len()), (0, 0));
    assert!(worker.findings().contains("400 InvalidPart"), "{}", worker.findings());
    // The fifth request puts the parts together; its two repetitions are the sixth and seventh.
    assert_eq!(failing(Fault::CompleteFails, 1, &mut worker), -i64::from(libc::EIO));
    assert_eq!((server.store().open_uploads(), server.store().keys(BUCKET).len()), (0, 0));
    assert!(worker.findings().contains("200 InternalError: 2 retried, 1 failed"), "{}", worker.findings());
    // Parts that are turned away for a while go through.
    assert_eq!(failing(Fault::SlowDown, 3, &mut worker), 3 * PART as i64);
    assert_eq!(failing(Fault::Cut, 4, &mut worker), 3 * PART as i64);
    assert!(server.store().data(BUCKET, "blade-1") == Some(content(1, 3 << 20)));
    assert_eq!(server.store().open_uploads(), 0);
}

#[test]
fn an_upload_in_flight_is_given_up_with_its_driver() {
    let server = server();
    let bed = bed(&server, true);
    let mut worker = bed.worker(1);
    worker.fill(0, &content(1, 3 << 20));
    // The third request never ends: the second part.
    server.faults().inject(Fault::Silence, 3);
    let mut done = driver::Completions::with_depth(1);
    worker.driver.submit(&[operation(ObjectOp::Put, 1, 3 * PART)], &mut done).expect("submitted");
    let begin = std::time::Instant::now();
    while server.faults().struck() == 0 {
        assert!(begin.elapsed().as_secs() < 20, "the second part was never sent");
        let wait = driver::Wait::Timeout { count: 1, timeout_ns: 10_000_000 };
        worker.driver.reap(wait, &mut done).expect("reaped");
    }
    server.faults().heal();
    assert_eq!((done.len(), server.store().open_uploads()), (0, 1));
    drop(worker);
    assert_eq!(server.store().open_uploads(), 0);
}

#[test]
fn more_parts_than_there_may_be_are_refused() {
    let server = server();
    let bed = Bed::new(&server, |plan| {
        plan.options.s3_part_size_bytes = 1000;
        plan.dataset.value_size_bytes_max = 10_000_001;
    });
    let error = bed.prepare().expect_err("refused");
    assert_eq!(error.exit_code(), 2);
    assert!(
        error.to_string().contains("need 10001 parts") && error.to_string().contains("parts of 1001 bytes"),
        "{error}"
    );
}
