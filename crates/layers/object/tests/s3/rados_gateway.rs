//! Ceph's gateway, on a node that the tests start.

use object::plan::{Addressing, ObjectOp, ObjectOptions, ObjectPlan, S3Key, Signing};
use object::{ConnectRequest, ObjectOperation};

use crate::bed::{Bed, content, operation, options, plan, request};

struct Gateway {
    options: ObjectOptions,
    key: S3Key,
}

/// None, and a line that names the test, where Ceph is not installed.
fn gateway(test: &str) -> Option<Gateway> {
    let Some(node) = testkit::ceph_node(env!("CARGO_TARGET_TMPDIR")) else {
        println!("skipped: {test}");
        return None;
    };
    let key = S3Key { access: node.s3_access_key.clone(), secret: node.s3_secret_key.clone() };
    Some(Gateway { options: options(std::slice::from_ref(&node.s3_endpoint)), key })
}

impl Gateway {
    fn connect(&self, bucket: &str, change: impl FnOnce(&mut ObjectPlan)) -> Bed {
        let mut plan = plan(&self.options, 12 << 20);
        change(&mut plan);
        let connect = ConnectRequest {
            target: format!("s3://{bucket}"),
            ..request(&plan.options, Some(self.key.clone()))
        };
        Bed { backend: object::connect(&connect).expect("a store"), plan }
    }
}

fn bucket(test: &str) -> String {
    format!("strata-{test}-{}", std::process::id())
}

#[test]
fn every_operation_on_a_real_gateway() {
    let Some(gateway) = gateway("every_operation_on_a_real_gateway") else { return };
    for (signing, zero_copy) in [(Signing::Payload, true), (Signing::Headers, false)] {
        let bed = gateway.connect(&bucket("all"), |plan| {
            plan.options.s3_signing = signing;
            plan.options.s3_addressing = Addressing::Path;
            plan.options.zero_copy = zero_copy;
            // The least that S3 takes for a part.
            plan.options.s3_part_size_bytes = 5 << 20;
            plan.list_max = 7;
        });
        bed.prepare().expect("prepared");
        let mut worker = bed.worker(8);
        for (number, bytes) in [(0, 0), (1, 1), (2, 4096), (3, 5 << 20), (4, 12 << 20)] {
            assert_eq!(worker.put(number, bytes), bytes as i64, "{}", worker.findings());
            assert_eq!(worker.get(number, bytes), bytes as i64, "{}", worker.findings());
            assert_eq!(worker.one(operation(ObjectOp::Stat, number, 0)), bytes as i64);
        }
        let read = ObjectOperation { offset_bytes: 1 << 20, ..operation(ObjectOp::Read, 4, 65_536) };
        assert_eq!(worker.one(read), 65_536);
        assert!(worker.read(0, 65_536) == content(4, 12 << 20)[1 << 20..][..65_536]);
        for number in 5..20 {
            assert_eq!(worker.put(number, 10), 10);
        }
        let listed = [0; 3].map(|_| worker.one(operation(ObjectOp::List, 0, 0)));
        assert_eq!(listed, [7, 7, 6], "{}", worker.findings());
        assert_eq!(worker.one(operation(ObjectOp::Remove, 4, 0)), 0);
        assert_eq!(worker.one(operation(ObjectOp::Get, 4, 16)), -i64::from(libc::ENOENT));
        assert!(worker.findings().contains("404 NoSuchKey: 1 failed"), "{}", worker.findings());
        drop(worker);
        bed.backend.clean(&|_| ()).expect("cleaned");
    }
}

#[test]
fn a_real_gateway_refuses_wrong_keys_and_missing_buckets() {
    let Some(mut gateway) = gateway("a_real_gateway_refuses_wrong_keys_and_missing_buckets") else { return };
    let mut connect = request(&gateway.options, Some(gateway.key.clone()));
    (connect.creates, connect.target) = (false, format!("s3://{}", bucket("missing")));
    let missing = object::connect(&connect).expect("a store").prepare(&plan(&connect.options, 4096));
    let error = missing.expect_err("refused").to_string();
    assert!(error.contains("404 NoSuchBucket"), "{error}");
    gateway.key.secret = "wrong".to_owned();
    let error = gateway.connect(&bucket("keys"), |_| {}).prepare().expect_err("refused").to_string();
    assert!(error.contains("403 SignatureDoesNotMatch"), "{error}");
}
