//! Only what a run made is removed or written over, whoever else uses the bucket.

use object::plan::{ObjectOp, OpShare};
use testkit::fault_proxy::{FaultProxy, Meddling, good};
use testkit::s3::{S3Options, S3Server};

use crate::bed::{BUCKET, Bed, Worker, content, operation, server};

fn keys(server: &S3Server) -> usize {
    server.store().keys(BUCKET).len()
}

/// Prepared, and its driver.
fn begun(bed: &Bed) -> Worker {
    bed.prepare().expect("prepared");
    bed.worker(1)
}

#[test]
fn a_run_leaves_what_another_put_into_its_bucket() {
    let server = server();
    // B begins on an empty bucket, A puts 300 objects and keeps them, B ends.
    let (b, a) = (Bed::new(&server, |_| {}), Bed::new(&server, |_| {}));
    let (mut of_b, mut of_a) = (begun(&b), begun(&a));
    assert_eq!(of_b.put(1000, 10), 10);
    for number in 0..300 {
        assert_eq!(of_a.put(number, 10), 10, "{}", of_a.findings());
    }
    drop((of_a, of_b));
    let left = b.clean();
    assert!(left.contains("300 objects with names of this run belong to other clients"), "{left}");
    assert_eq!(keys(&server), 300);
    assert!(server.store().data(BUCKET, "blade-1000").is_none());
    assert_eq!((a.clean(), keys(&server)), (String::new(), 0));
}

#[test]
fn a_bucket_of_the_run_stays_when_others_use_it() {
    let server = S3Server::start(S3Options::default()).expect("a server");
    let bed = Bed::new(&server, |_| {});
    let mut worker = begun(&bed);
    assert_eq!((worker.put(1, 10), worker.put(2, 10)), (10, 10));
    server.store().insert(BUCKET, "theirs", b"x".to_vec());
    drop(worker);
    let left = bed.clean();
    assert!(left.contains("kept, because it contains objects of other clients"), "{left}");
    assert_eq!(server.store().keys(BUCKET), ["theirs"]);
}

#[test]
fn objects_of_others_are_not_written_over_nor_removed_without_leave() {
    let server = server();
    server.store().insert(BUCKET, "blade-7", b"theirs".to_vec());
    for operation in [ObjectOp::Put, ObjectOp::Remove] {
        let bed = Bed::new(&server, |plan| plan.mix = vec![OpShare { operation, percent: 100 }]);
        let error = bed.prepare().expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("blade-7") && text.contains("--destroy-data"), "{text}");
        assert_eq!(error.exit_code(), 2);
    }
    // They came while the run was under way.
    let bed = Bed::behind(&server.endpoint(), |_, plan| plan.options.s3_endpoints = vec![server.endpoint()]);
    let mut worker = bed.worker(1);
    assert_eq!(worker.put(7, 10), -i64::from(libc::EEXIST));
    assert_eq!(worker.one(operation(ObjectOp::Remove, 7, 0)), -i64::from(libc::EEXIST));
    assert!(
        worker.findings().contains("blade-7: kept, because this run did not create it"),
        "{}",
        worker.findings()
    );
    assert_eq!(server.store().data(BUCKET, "blade-7").as_deref(), Some(b"theirs".as_slice()));
    // What it has put itself it may put and remove again.
    assert_eq!((worker.put(8, 10), worker.put(8, 20), worker.get(8, 20)), (10, 20, 20));
    assert_eq!(worker.one(operation(ObjectOp::Remove, 8, 0)), 0);
    drop(worker);
    // With leave.
    let bed = Bed::behind(&server.endpoint(), |request, _| request.destroys = true);
    let mut worker = begun(&bed);
    assert_eq!((worker.put(7, 10), worker.get(7, 10)), (10, 10));
    drop(worker);
    assert_eq!((bed.clean(), keys(&server)), (String::new(), 0));
}

#[test]
fn parts_are_not_put_together_over_an_object_of_others() {
    let server = server();
    let bed = Bed::new(&server, |plan| {
        plan.options.s3_part_size_bytes = 1 << 16;
        plan.dataset.value_size_bytes_max = 1 << 18;
    });
    let mut worker = begun(&bed);
    server.store().insert(BUCKET, "blade-1", b"theirs".to_vec());
    assert_eq!(worker.put(1, 1 << 18), -i64::from(libc::EEXIST), "{}", worker.findings());
    assert_eq!(server.store().data(BUCKET, "blade-1").as_deref(), Some(b"theirs".as_slice()));
    assert_eq!((worker.put(2, 1 << 18), worker.put(2, 1 << 18)), (1 << 18, 1 << 18));
    drop(worker);
    assert_eq!(server.store().open_uploads(), 0);
    bed.clean();
    assert_eq!(server.store().keys(BUCKET), ["blade-1"]);
}

#[test]
fn the_run_knows_its_own_where_an_answer_was_lost_and_where_it_lost_count() {
    let server = server();
    let proxy = FaultProxy::start(&server.endpoint(), |line, number| {
        if line.starts_with("PUT") && number == 2 { Meddling::Lose } else { Meddling::None }
    });
    let proxy = proxy.expect("a proxy");
    let bed = Bed::behind(&proxy.endpoint(), |_, _| {});
    let mut worker = bed.worker(1);
    assert_eq!(worker.get(5, 10), -i64::from(libc::ENOENT));
    // The server has it, and refuses it the second time: it carries the mark of the run.
    assert_eq!(worker.put(5, 10), 10, "{}", worker.findings());
    assert!(server.store().data(BUCKET, "blade-5") == Some(content(5, 10)));
}

#[test]
fn two_listings_that_are_pages_of_html_cost_nobody_an_object() {
    let server = server();
    for number in 0..100 {
        server.store().insert(BUCKET, &format!("blade-{number}"), b"theirs".to_vec());
    }
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome<br></body></html>";
    let proxy = FaultProxy::start(&server.endpoint(), move |line, number| {
        let is_list = line.starts_with("GET") && line.contains("list-type=2");
        if is_list && number <= 2 { Meddling::Answer(good(page)) } else { Meddling::None }
    });
    let proxy = proxy.expect("a proxy");
    let bed = Bed::behind(&proxy.endpoint(), |_, _| {});
    let error = bed.prepare().expect_err("no list").to_string();
    assert!(error.contains("it is not a bucket listing"), "{error}");
    let error = bed.prepare().expect_err("no list").to_string();
    assert!(error.contains("it is not a bucket listing"), "{error}");
    let mut worker = bed.worker(1);
    assert_eq!(worker.put(3, 10), -i64::from(libc::EEXIST));
    drop(worker);
    bed.clean();
    assert_eq!(keys(&server), 100);
    assert!(server.store().data(BUCKET, "blade-3").as_deref() == Some(b"theirs"));
}
