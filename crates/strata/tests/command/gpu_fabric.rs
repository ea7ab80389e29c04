//! RDMA from and to GPUs through the binary, on the libraries of the tests (`testkit::gpu`, `testkit::fabric`).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;

use crate::engines::Engine;
use crate::gpu::variables;
use crate::support::{Ended, Scratch, class, read_record, skipped};

/// Words of a load on the engine, in memory of two devices.
const LOAD: &str = "net --path . -e 0:2 --interface lo --memory gpu --gpu-path rdma --json record.json";

/// The folder of the fabric of the tests; none without libfabric.
fn fabric() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let system = testkit::fabric::system_library()?;
        let compiled = testkit::fabric::compile(Path::new(env!("CARGO_TARGET_TMPDIR")), &system);
        Some(compiled.expect("the fabric of the tests compiles"))
    });
    made.as_deref()
}

fn environment(folder: &Path, gpu: &str, fabric: &str) -> Vec<(&'static str, String)> {
    let mut variables = variables(gpu);
    variables.push(("LD_LIBRARY_PATH", folder.display().to_string()));
    variables.push((testkit::fabric::SETTINGS_VARIABLE, fabric.to_owned()));
    variables
}

fn run(scratch: &Scratch, words: &str, environment: &[(&'static str, String)]) -> Ended {
    scratch.start_in(words, environment).end()
}

#[test]
fn bulk_goes_from_the_device_to_an_engine_and_back() {
    let Some(folder) = fabric() else {
        return skipped("bulk_goes_from_the_device_to_an_engine_and_back", "no libfabric.so.1");
    };
    let scratch = Scratch::new();
    let _engine = Engine::start(scratch.path(), "--provider ofi+tcp --interface lo");
    let on_gpu = environment(folder, "devices=2 lazy=1", "");
    for (sizes, more) in
        [("b256k", "--inflight 4 -t 2"), ("b9k", "--inflight 1"), ("b64k", "--inflight 8 --buffer-align 16")]
    {
        let words = format!("{LOAD} --count 96 --verify -s {sizes} {more}");
        let ended = run(&scratch, &words, &on_gpu);
        assert_eq!(ended.code, Some(0), "{words}: {}{}", ended.stdout, ended.stderr);
        let record = read_record(&scratch.join("record.json"));
        assert_eq!(class(&record, 0, "rpc").0, 96, "{words}");
        let phase = &record["phases"][0];
        assert_eq!(phase["plan"]["memory"]["path"], "rdma", "{words}");
        assert!(phase["notes"].to_string().contains("buffers on GPU 0"), "{words}: {}", phase["notes"]);
        let told = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("GPU memory, RDMA from and to the device"), "{told}");
    }
    // One direction alone, and a request that changes on its way to the device is found by the engine.
    for sizes in ["0 b64k", "b64k 0"] {
        let words: Vec<_> =
            LOAD.split_whitespace().chain(["--count", "32", "--verify", "-s", sizes]).collect();
        let ended = scratch.start_words_in(&words, &on_gpu).end();
        assert_eq!(ended.code, Some(0), "{sizes}: {}{}", ended.stdout, ended.stderr);
    }
    // Nothing is copied between host and device.
    let ended = run(&scratch, &format!("{LOAD} --count 32 -s b64k"), &on_gpu);
    assert!(
        ended.code == Some(0) && !ended.stdout.contains("gpu copied"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    let words = format!("{LOAD} --count 32 --verify -s b64k --inflight 1");
    let ended = run(&scratch, &words, &environment(folder, "flip=9", ""));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn memory_that_a_late_engine_may_write_to_is_set_apart() {
    let Some(folder) = fabric() else {
        return skipped("memory_that_a_late_engine_may_write_to_is_set_apart", "no libfabric.so.1");
    };
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--provider ofi+tcp --interface lo");
    let words = format!("{LOAD} --time 3s --verify -s b64k --inflight 8 --timeout 600ms --live-csv -");
    let mut running = scratch.start_in(&words, &environment(folder, "", ""));
    running.await_row("b64KiB");
    engine.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(900));
    engine.signal(Signal::CONT);
    let ended = running.end();
    // Those that timed out are errors; what was sent meanwhile went through other memory of the device, and is right.
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("endpoint 0:2: 8 (Connection timed out"), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert!(class(&record, 0, "rpc").0 > 16, "{}", ended.stdout);
}

#[test]
fn an_endpoint_that_stays_silent_is_lost() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--provider ofi+tcp --interface lo");
    let words =
        "net --path . -e 0:2 --interface lo --time 2s -s b64k --inflight 2 --timeout 200ms --live-csv -";
    let mut running = scratch.start(words);
    running.await_row("b64KiB");
    engine.signal(Signal::STOP);
    let ended = running.end();
    engine.signal(Signal::CONT);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("Connection timed out") && !last.contains("panicked"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_says_why() {
    let Some(folder) = fabric() else { return skipped("what_cannot_be_says_why", "no libfabric.so.1") };
    let scratch = Scratch::new();
    let _engine = Engine::start(scratch.path(), "--provider ofi+tcp --interface lo");
    let words = format!("{LOAD} --count 8 -s b64k");
    for (setting, told) in [
        ("without", "ofi+tcp does not support GPU memory (FI_HMEM); use --gpu-path staged"),
        ("refuse", "cannot register memory (provider=tcp"),
    ] {
        let ended = run(&scratch, &words, &environment(folder, "", setting));
        assert_eq!(ended.code, Some(1), "{setting}: {}", ended.stderr);
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(told) && last.contains("--gpu-path staged"), "{setting}: {}", ended.stderr);
    }
    for (words, told) in [
        (
            format!("{LOAD} -s i1k"),
            "i1KiB travels in the message, but --gpu-path rdma moves only bulk: use b1KiB",
        ),
        (
            "net loopback: -s b1m --memory gpu --gpu-path rdma".to_owned(),
            "--gpu-path rdma requires a fabric, but tcp is not one",
        ),
        ("net loopback: -s b1m --memory gpu --gpu-path cufile".to_owned(), "staged, rdma"),
        ("net loopback: -s b1m --gpu-path rdma".to_owned(), "give --memory gpu with it"),
        (format!("{LOAD} -s b1m --gpu-staging pinned"), "--gpu-staging is for --gpu-path staged"),
        (
            format!("{LOAD} -s b1m --gpu-register off"),
            "--gpu-path rdma: memory used by RDMA is always registered",
        ),
        ("media f -s 1m --op read --memory gpu --gpu-path rdma".to_owned(), "cufile-stream"),
    ] {
        let ended = run(&scratch, &words, &environment(folder, "", ""));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{words}: {}", ended.stderr);
    }
}
