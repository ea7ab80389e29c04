//! Buckets and keys of the user, before and after a run.

use object::plan::{ObjectOp, OpShare, S3Key, Scope, Signing};
use testkit::s3::{Fault, S3Options, S3Server};

use crate::bed::{BUCKET, Bed, key, operation, options, plan, request, server};

fn refusal(connect: &object::ConnectRequest) -> String {
    let backend = match object::connect(connect) {
        Ok(backend) => backend,
        Err(error) => return error.to_string(),
    };
    let error = backend.prepare(&plan(&connect.options, 4096)).expect_err("refused").to_string();
    assert!(!error.contains('\n') && !error.contains("secret-of-tests"), "{error}");
    error
}

#[test]
fn wrong_keys_are_told_before_the_run_and_in_it() {
    let server = server();
    let right = S3Options::default();
    let options = options(&[server.endpoint()]);
    let other =
        |access: &str, secret: &str| Some(S3Key { access: access.to_owned(), secret: secret.to_owned() });
    let wrong_secret = other(&right.access, "not-the-secret-of-tests");
    let error = refusal(&request(&options, wrong_secret.clone()));
    assert!(error.contains("403 SignatureDoesNotMatch: The request signature we calculated"), "{error}");
    assert!(error.contains("AWS_ACCESS_KEY_ID"), "{error}");
    let error = refusal(&request(&options, other("nobody", &right.secret)));
    assert!(error.contains("403 InvalidAccessKeyId"), "{error}");
    let error = refusal(&request(&options, None));
    assert!(error.contains("no access key is specified"), "{error}");
    let mut elsewhere = options.clone();
    elsewhere.s3_region = "eu-north-1".to_owned();
    let error = refusal(&request(&elsewhere, key(&right)));
    assert!(error.contains("AuthorizationHeaderMalformed") && error.contains("--s3-region"), "{error}");

    let plan = plan(&options, 4096);
    let bed = Bed { backend: object::connect(&request(&options, wrong_secret)).expect("a store"), plan };
    let mut worker = bed.worker(1);
    assert_eq!(worker.put(1, 16), -i64::from(libc::EACCES));
    let findings = worker.findings();
    assert!(findings.starts_with("403 SignatureDoesNotMatch: 1 failed ("), "{findings}");
    assert!(!findings.contains("secret-of-tests"), "{findings}");
}

#[test]
fn whoever_needs_no_keys_gives_none() {
    let open = S3Options { is_anonymous: true, ..S3Options::default() };
    let server = S3Server::start(open).expect("a server");
    server.store().create_bucket(BUCKET);
    let mut anonymous = options(&[server.endpoint()]);
    anonymous.s3_signing = Signing::None;
    let connect = request(&anonymous, None);
    let bed = Bed { backend: object::connect(&connect).expect("a store"), plan: plan(&anonymous, 4096) };
    bed.prepare().expect("prepared");
    let mut worker = bed.worker(1);
    assert_eq!((worker.put(1, 100), worker.get(1, 100)), (100, 100));
}

#[test]
fn a_missing_bucket_is_made_or_told() {
    let server = S3Server::start(S3Options::default()).expect("a server");
    let options = options(&[server.endpoint()]);
    let mut connect = request(&options, key(&S3Options::default()));
    connect.creates = false;
    let error = refusal(&connect);
    assert!(error.contains("bucket \"bench-1\" does not exist (404 NoSuchBucket)"), "{error}");
    assert!(!server.store().has_bucket(BUCKET));

    connect.creates = true;
    let bed = Bed { backend: object::connect(&connect).expect("a store"), plan: plan(&options, 4096) };
    bed.prepare().expect("prepared");
    bed.prepare().expect("prepared once more");
    let mut worker = bed.worker(1);
    for number in 0..40 {
        assert_eq!(worker.put(number, 10), 10);
    }
    assert_eq!(server.store().keys(BUCKET).len(), 40);
    bed.backend.clean(&|_| ()).expect("cleaned");
    assert!(!server.store().has_bucket(BUCKET));
    assert_eq!(worker.put(1, 10), -i64::from(libc::ENOENT));
    assert!(worker.findings().contains("404 NoSuchBucket: 1 failed"), "{}", worker.findings());
}

#[test]
fn only_what_the_run_made_is_deleted() {
    let server = server();
    for other in ["blade-x", "mine", "blade-1/2"] {
        server.store().insert(BUCKET, other, b"x".to_vec());
    }
    let bed = Bed::new(&server, |_| {});
    bed.prepare().expect("prepared");
    let mut worker = bed.worker(1);
    assert_eq!((worker.put(1, 10), worker.put(2, 10)), (10, 10));
    bed.backend.clean(&|_| ()).expect("cleaned");
    assert_eq!(server.store().keys(BUCKET), ["blade-1/2", "blade-x", "mine"]);
    // A run that reads alone makes nothing.
    let bed = Bed::new(&server, |plan| {
        plan.mix = vec![OpShare { operation: ObjectOp::Get, percent: 100 }];
    });
    bed.prepare().expect("prepared");
    bed.backend.clean(&|_| ()).expect("cleaned");
    assert_eq!(server.store().keys(BUCKET).len(), 3);
}

#[test]
fn what_a_bucket_cannot_do_is_refused() {
    let server = server();
    let refused = |change: fn(&mut object::plan::ObjectPlan)| {
        let error = Bed::new(&server, change).prepare().expect_err("refused");
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    assert!(refused(|plan| plan.containers = Scope::Private).contains("use --containers shared"));
    let error = refused(|plan| plan.mix[0].operation = ObjectOp::Update);
    assert!(error.contains("S3 does not support update") && error.contains("put, get"), "{error}");
}

#[test]
fn a_server_that_stumbles_before_the_run_is_asked_again() {
    let server = server();
    let bed = Bed::new(&server, |_| {});
    server.faults().inject(Fault::InternalError, 2);
    bed.prepare().expect("prepared");
    server.faults().inject(Fault::SlowDown, 1);
    let error = Bed::new(&server, |_| {}).prepare().expect_err("busy").to_string();
    assert!(error.contains("503 SlowDown"), "{error}");
}

#[test]
fn a_port_where_nobody_listens_is_named() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("an address").port()
    };
    let endpoint = format!("http://127.0.0.1:{port}");
    let error = refusal(&request(&options(std::slice::from_ref(&endpoint)), key(&S3Options::default())));
    assert!(error.contains(&endpoint) && error.contains("refused"), "{error}");
    let unknown = options(&["http://no-such-host.invalid:1".to_owned()]);
    let error = refusal(&request(&unknown, key(&S3Options::default())));
    assert!(error.contains("no-such-host.invalid"), "{error}");
}

#[test]
fn one_operation_more_than_a_page_is_deleted_too() {
    let server = S3Server::start(S3Options::default()).expect("a server");
    let bed = Bed::new(&server, |_| {});
    bed.prepare().expect("prepared");
    let mut worker = bed.worker(1);
    for number in 0..1001 {
        assert_eq!(worker.put(number, 3), 3);
    }
    assert_eq!(worker.one(operation(ObjectOp::Stat, 1000, 0)), 3);
    bed.backend.clean(&|_| ()).expect("cleaned");
    assert!(!server.store().has_bucket(BUCKET));
}
