//! Answers of status 200 that are not what they should be, answers that are lost, and answers that come before the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object::plan::{ObjectOp, OpShare};
use testkit::fault_proxy::{FaultProxy, Meddling, good};
use testkit::s3::S3Server;

use crate::bed::{BUCKET, Bed, operation, server};

const PART: u64 = 1 << 16;

/// A bed behind a proxy that meddles with the requests whose first line `matches`, in parts of 64 KiB.
fn meddled(
    server: &S3Server,
    matches: impl Fn(&str) -> bool + Send + Sync + 'static,
    meddling: impl Fn(u64) -> Meddling + Send + Sync + 'static,
) -> (FaultProxy, Bed) {
    let count = AtomicU64::new(0);
    let proxy = FaultProxy::start(&server.endpoint(), move |line, _| {
        if matches(line) { meddling(count.fetch_add(1, Ordering::Relaxed)) } else { Meddling::None }
    });
    let proxy = proxy.expect("a proxy");
    let bed = Bed::behind(&proxy.endpoint(), |_, plan| {
        plan.options.s3_part_size_bytes = PART;
        plan.dataset.value_size_bytes_max = 4 * PART;
        plan.options.retries = 2;
    });
    (proxy, bed)
}

fn is_list(line: &str) -> bool {
    line.starts_with("GET") && line.contains("list-type=2")
}

#[test]
fn what_is_no_list_is_an_error_and_no_empty_list() {
    let begin = "<?xml version=\"1.0\"?><ListBucketResult><Contents><Key>k</Key></Contents>";
    let cases = [
        ("<html><body>Hello</body></html>".to_owned(), "not a bucket listing"),
        (String::new(), "not a bucket listing"),
        (begin.to_owned(), "not a bucket listing"),
        (format!("{begin}<IsTruncated>true</IsTruncated></ListBucketResult>"), "no continuation token"),
        (
            format!(
                "{begin}<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
            ),
            "would never end",
        ),
    ];
    let server = server();
    for (body, why) in cases {
        let (shown, answer) = (body.clone(), good(&body));
        let (proxy, bed) = meddled(&server, is_list, move |_| Meddling::Answer(answer.clone()));
        let bed = Bed {
            plan: {
                let mut plan = bed.plan.clone();
                plan.mix = vec![OpShare { operation: ObjectOp::List, percent: 100 }];
                plan.list_max = u32::MAX;
                plan
            },
            ..bed
        };
        let mut worker = bed.worker(1);
        let result = worker.one(operation(ObjectOp::List, 0, 0));
        assert_eq!(result, -i64::from(libc::EIO), "{shown}");
        assert!(worker.findings().contains(why), "{shown}: {}", worker.findings());
        assert!(proxy.requests() < 6, "{shown}: {} requests", proxy.requests());
    }
}

#[test]
fn tokens_that_go_in_a_circle_end_with_an_error() {
    let server = server();
    let page = |number: u64| {
        let token = number % 5;
        good(&format!(
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t{token}</NextContinuationToken>\
             </ListBucketResult>"
        ))
    };
    let is_page = |line: &str| is_list(line) && !line.contains("max-keys=1&");
    let (proxy, bed) = meddled(&server, is_page, move |number| Meddling::Answer(page(number)));
    let error = bed.prepare().expect_err("no end").to_string();
    assert!(error.contains("would never end"), "{error}");
    let mut worker = bed.worker(1);
    assert_eq!(worker.one(operation(ObjectOp::List, 0, 0)), -i64::from(libc::EIO));
    assert!(proxy.requests() < 60, "{}", proxy.requests());
}

#[test]
fn an_empty_200_puts_no_parts_together() {
    let server = server();
    for body in ["", "<html></html>", "<CompleteMultipartUploadResult><Key>k</Key>"] {
        let answer = good(body);
        let is_end = |line: &str| line.starts_with("POST") && line.contains("uploadId=");
        let (_proxy, bed) = meddled(&server, is_end, move |_| Meddling::Answer(answer.clone()));
        let mut worker = bed.worker(1);
        assert_eq!(worker.put(1, 3 << 16), -i64::from(libc::EIO), "{body}");
        assert!(
            worker.findings().contains("does not confirm that the parts were combined"),
            "{}",
            worker.findings()
        );
        assert_eq!((server.store().open_uploads(), server.store().keys(BUCKET).len()), (0, 0));
    }
}

#[test]
fn an_upload_whose_beginning_was_not_answered_is_found_and_given_up_and_not_begun_again() {
    let server = server();
    let theirs = server.store().begin_upload(BUCKET, "blade-1", None);
    let begun = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&begun);
    let (_proxy, bed) = meddled(
        &server,
        |line| line.starts_with("POST") && line.contains("?uploads="),
        move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Meddling::Lose
        },
    );
    bed.prepare().expect("prepared");
    let mut worker = bed.worker(1);
    assert_eq!(worker.put(1, 3 << 16), -i64::from(libc::ECONNRESET), "{}", worker.findings());
    assert_eq!((begun.load(Ordering::Relaxed), server.store().open_uploads()), (1, 2));
    drop(worker);
    // Also where objects are kept: nobody wants parts of an upload that has no end.
    bed.backend.close().expect("closed");
    let left: Vec<String> = server.store().uploads(BUCKET, "").into_iter().map(|(id, _)| id).collect();
    assert_eq!(left, [theirs], "another's upload stays");
}

#[test]
fn parts_whose_end_was_not_answered_are_not_put_together_again() {
    let server = server();
    let (proxy, bed) =
        meddled(&server, |line| line.starts_with("POST") && line.contains("uploadId="), |_| Meddling::Lose);
    let mut worker = bed.worker(1);
    assert_eq!(worker.put(1, 3 << 16), -i64::from(libc::ECONNRESET), "{}", worker.findings());
    // Begin, three parts, their end, and the abort that finds nothing to give up.
    assert_eq!(proxy.requests(), 6);
    drop(worker);
    assert_eq!(server.store().open_uploads(), 0);
    // It is there, and the run's own.
    assert_eq!(server.store().keys(BUCKET), ["blade-1"]);
    bed.prepare().expect("it knows its own");
    assert_eq!((bed.clean(), server.store().keys(BUCKET).len()), (String::new(), 0));
}

#[test]
fn interim_answers_are_read_over() {
    let server = server();
    for interim in [
        "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
        "HTTP/1.1 103 Early Hints\r\nLink: </s>; rel=preload\r\n\r\n".repeat(3),
        format!("HTTP/1.1 103 Early Hints\r\nX-Long: {}\r\n\r\n", "x".repeat(900)),
    ] {
        for bytes in [0, 10, 40_000] {
            let before = interim.clone().into_bytes();
            let (_proxy, bed) = meddled(
                &server,
                |_| true,
                move |number| match number % 3 {
                    1 => Meddling::None,
                    _ => Meddling::Before(before.clone()),
                },
            );
            let mut worker = bed.worker(1);
            assert_eq!(worker.put(1, bytes), bytes as i64, "{}", worker.findings());
            for _ in 0..4 {
                assert_eq!(worker.get(1, bytes), bytes as i64, "{}", worker.findings());
            }
            assert_eq!(worker.one(operation(ObjectOp::Remove, 1, 0)), 0);
            assert_eq!(worker.findings(), "");
        }
    }
}
