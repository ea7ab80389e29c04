//! Values of object stores on GPUs, through the binary, on the libraries of the tests (`testkit::gpu`).

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::gpu::{measure, run, variables};
use crate::support::{Ended, Scratch, class, read_record};

/// Loads on values, with the operations of each class that are done.
const LOADS: [(&str, &[(&str, u64)]); 5] = [
    ("--op put,get --dkeys 64 --value-size 8k --count 64", &[("put", 64), ("get", 64)]),
    (
        "--op update,fetch --dkeys 8 --akeys 4 --value-size 1k-9k --depth 8 --count 32",
        &[("update", 32), ("fetch", 32)],
    ),
    (
        "--op update,fetch --dkeys 4 --records 8 --value array --value-size 4k --stride 8k --depth 4 --count 32",
        &[("update", 32), ("fetch", 32)],
    ),
    (
        "--op write,read --records 32 --value-size 16k --chunk-size 64k --depth 2 --count 32",
        &[("write", 32), ("read", 32)],
    ),
    ("--op put,get --dkeys 64 --value-size 30 --count 64", &[("put", 64), ("get", 64)]),
];

/// Phases of a record that are no fills, in order.
fn phases(record: &Value) -> Vec<usize> {
    let phases = record["phases"].as_array().expect("phases");
    (0..phases.len()).filter(|&at| phases[at]["plan"]["is_fill"] != true).collect()
}

fn check(words: &str, ended: &Ended, record: &Value, wanted: &[(&str, u64)]) {
    assert_eq!(ended.code, Some(0), "{words}: {}{}", ended.stdout, ended.stderr);
    for (phase, (name, operations)) in phases(record).into_iter().zip(wanted) {
        assert_eq!(class(record, phase, name).0, *operations, "{words}");
        let phase = &record["phases"][phase];
        assert_eq!(phase["plan"]["memory"]["kind"], "gpu", "{words}");
        assert!(phase["notes"].to_string().contains("buffers on GPU 1"), "{words}: {}", phase["notes"]);
        assert_eq!(phase["observations"]["gpu"]["used"], serde_json::json!([0, 1]), "{words}");
    }
}

#[test]
fn values_go_from_the_device_into_the_embedded_store_and_back() {
    for (load, wanted) in LOADS {
        for more in ["--verify", "--verify --gpu-staging pageable", "--refill full", "--refill once"] {
            let scratch = Scratch::new();
            let words = format!("object {load} --threads 2 --memory gpu {more}");
            let (ended, record) = measure(&scratch, &words, "devices=2 lazy=1");
            check(&words, &ended, &record, wanted);
        }
    }
}

#[test]
fn values_go_through_an_engine_and_a_bucket() {
    let scratch = Scratch::new();
    let words = "--no-attach-info --interface lo --pool tank --dir pool --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").expect("tcp").to_owned();
    for (load, wanted) in LOADS {
        let words = format!("object engine://{address}/tank/box {load} --threads 2 --memory gpu --verify");
        let (ended, record) = measure(&scratch, &words, "devices=2 lazy=1");
        check(&words, &ended, &record, wanted);
    }
    let (server, options) = (S3Server::start(S3Options::default()).expect("a server"), S3Options::default());
    server.store().create_bucket("values");
    let mut variables = variables("devices=2");
    variables.push(("AWS_ACCESS_KEY_ID", options.access));
    variables.push(("AWS_SECRET_ACCESS_KEY", options.secret));
    let words = format!(
        "object s3://values --s3-endpoint {} --op put,get --dkeys 16 --count 16 --value-size 100k --depth 4 --threads 2 --memory gpu --verify --json record.json",
        server.endpoint()
    );
    let ended = scratch.start_in(&words, &variables).end();
    check(&words, &ended, &read_record(&scratch.join("record.json")), &[("put", 16), ("get", 16)]);
}

#[test]
fn a_bit_that_changes_on_the_way_is_found() {
    // The first copies bring what the buffers hold; then each value is brought, and fetched values come back.
    for (flip, wanted) in [(40, Some(1)), (0, Some(0))] {
        let scratch = Scratch::new();
        let words = "object --op put,get --dkeys 32 --count 32 --value-size 8k --memory gpu --verify";
        let (ended, record) = measure(&scratch, words, &format!("flip={flip}"));
        assert_eq!(ended.code, wanted, "{}{}", ended.stdout, ended.stderr);
        if flip > 0 {
            assert!(record["phases"].to_string().contains("corrupt"), "{}", record["phases"]);
        }
    }
}

#[test]
fn what_fails_and_what_cannot_be() {
    let words = "object --op put --dkeys 32 --count 32 --value-size 8k --memory gpu --verify";
    for (fault, wanted) in [
        ("cuMemAlloc_v2:1:2", "use a smaller block size"),
        ("cuMemHostRegister_v2:1:712", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
        ("cuMemcpyDtoHAsync_v2:5:700", "a copy from the device failed"),
        ("cuMemcpyHtoDAsync_v2:9:700", "a copy to the device failed"),
    ] {
        let scratch = Scratch::new();
        let ended = run(&scratch, words, &format!("fail={fault}"));
        assert_eq!(ended.code, Some(1), "{fault}: {}{}", ended.stdout, ended.stderr);
        let text =
            format!("{}{}", ended.stdout, ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted), "{fault}: {text}");
    }
    let scratch = Scratch::new();
    for (words, wanted) in [
        ("object --op put --gpu-staging pinned", "give --memory gpu with it"),
        ("object --op put --memory gpu --gpu-path cufile", "--gpu-staging"),
        ("object --op put --memory gpu:9", "GPU 9 does not exist; use one of 0"),
        ("object --op put --memory device", "host, pinned, gpu, or gpu:0,1"),
    ] {
        let ended = run(&scratch, words, "");
        assert_eq!(ended.code, Some(2), "{words}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(wanted), "{words}: {}", ended.stderr);
    }
    // Registered memory of the host, and operations that move no values.
    for words in [
        "object --op put,get --dkeys 32 --count 32 --value-size 8k --memory pinned --verify --depth 4",
        "object --op allocate-ids --count 8 --memory gpu",
        "object null: --op put --dkeys 64 --count 64 --value-size 1m --memory gpu",
    ] {
        let ended = run(&scratch, words, "");
        assert_eq!(ended.code, Some(0), "{words}: {}{}", ended.stdout, ended.stderr);
        let copied = ended.stdout.contains("counted   gpu copied 64 MiB");
        assert_eq!(copied, words.starts_with("object null:"), "{words}: {}", ended.stdout);
    }
}

#[test]
fn payloads_of_rpcs_go_from_the_device_and_back() {
    let scratch = Scratch::new();
    for (sizes, more) in [
        ("b1m b1m", "--inflight 4"),
        ("b64k i2k", "--inflight 1"),
        ("0 b256k", "--inflight 8 --gpu-staging pageable"),
        ("i4k 0", "--inflight 4 --buffer-align 16"),
    ] {
        let words = format!("net loopback: --count 64 --verify --memory gpu {more} --json record.json");
        let words: Vec<_> = words.split_whitespace().chain(["--message-sizes", sizes]).collect();
        let ended = scratch.start_words_in(&words, &variables("devices=2 lazy=1")).end();
        let words = words.join(" ");
        assert_eq!(ended.code, Some(0), "{words}: {}{}", ended.stdout, ended.stderr);
        let record = read_record(&scratch.join("record.json"));
        let phase = &record["phases"][0];
        assert_eq!(class(&record, 0, "rpc").0, 64, "{words}");
        assert_eq!(phase["plan"]["memory"]["kind"], "gpu", "{words}");
        assert!(phase["notes"].to_string().contains("buffers on GPU 0"), "{words}: {}", phase["notes"]);
        assert_eq!(phase["observations"]["gpu"]["used"], serde_json::json!([0]), "{words}");
    }
    // A reply whose bit changes on its way to the device.
    let words = "net loopback: --count 16 --inflight 1 --verify --memory gpu --message-sizes";
    let words: Vec<_> = words.split_whitespace().chain(["b64k b64k"]).collect();
    let ended = scratch.start_words_in(&words, &variables("flip=7")).end();
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    for (words, wanted) in [
        ("net loopback: --message-sizes b1m --memory gpu --gpu-path cufile", "staged, rdma"),
        ("net loopback: --message-sizes b1m --gpu-staging pinned", "give --memory gpu with it"),
        ("net loopback: --message-sizes b1m --memory gpu:3", "GPU 3 does not exist"),
    ] {
        let ended = run(&scratch, words, "");
        assert_eq!(ended.code, Some(2), "{words}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(wanted), "{words}: {}", ended.stderr);
    }
}
