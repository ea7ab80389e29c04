//! How writes are made durable, by which call and when; and how the files are made that they go to.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::loads::engines;
use crate::support::{Scratch, class, skipped, tool, total};

/// System calls that strace(1) saw, all threads, one a line; `None` where processes cannot be traced.
fn traced(scratch: &Scratch, calls: &str, words: &str) -> Option<String> {
    tool(&["strace", "-o", "/dev/null", "true"])?;
    let trace = scratch.join("trace");
    let ended = Command::new("strace")
        .args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_strata"))
        .args(words.split_whitespace())
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{words}: {}", String::from_utf8_lossy(&ended.stderr));
    std::fs::read_to_string(trace).ok()
}

#[test]
fn the_call_that_syncs_is_chosen() {
    let scratch = Scratch::new();
    for (engine, _) in engines(&scratch) {
        for (option, engine_sees, other) in [
            ("", "fdatasync(", " fsync("),
            ("--sync-call fdatasync", "fdatasync(", " fsync("),
            ("--sync-call fsync", " fsync(", "fdatasync("),
        ] {
            // A file that is allocated needs no sync of the layout's own, and one that is kept none of the manifest's.
            let words = format!(
                "media f -s 64k -b 4k --op write --keep --engine {engine} --end-fsync {option} --live none"
            );
            let Some(trace) = traced(&scratch, "fsync,fdatasync,io_submit,msync", &words) else {
                return skipped("the_call_that_syncs_is_chosen", "strace cannot trace here");
            };
            let is_fsync = option.ends_with(" fsync");
            let count = |text: &str| trace.matches(text).count();
            match *engine {
                // strace does not see into a ring; a test of the driver does.
                "io_uring" => assert_eq!((count("fdatasync("), count(" fsync(")), (0, 0), "{words}: {trace}"),
                "libaio" => {
                    let (seen, unseen) = if is_fsync { ("FSYNC", "FDSYNC") } else { ("FDSYNC", "FSYNC") };
                    let opcode = |name: &str| count(&format!("IOCB_CMD_{name}"));
                    assert_eq!((opcode(seen), opcode(unseen)), (1, 0), "{words}: {trace}");
                }
                "mmap" => {
                    assert_eq!(
                        (count("msync("), count(" fsync(")),
                        (1, usize::from(is_fsync)),
                        "{words}: {trace}"
                    );
                }
                _ => assert_eq!((count(engine_sees), count(other)), (1, 0), "{words}: {trace}"),
            }
        }
    }
}

#[test]
fn time_ends_with_a_sync_too() {
    let scratch = Scratch::new();
    let record = scratch.measured("media a b -s 1m -b 4k --op randwrite --time 100ms --end-fsync -t 2");
    assert_eq!(class(&record, 0, "sync"), (4, 0), "each worker, each target");
    let (writes, bytes) = class(&record, 0, "write");
    assert!(writes > 0 && bytes == writes * 4096);
    let samples = &record["phases"][0]["samples"];
    assert_eq!(samples["window_ns"], 100_000_000);
    assert!(samples["elapsed_ns"].as_u64().unwrap() >= 100_000_000);
    assert_eq!(record["phases"][0]["plan"]["options"]["sync_call"], "fdatasync");
}

#[test]
fn files_are_made_as_asked() {
    let scratch = Scratch::new();
    // What lies on the medium before the phase: the phase touches one block.
    let made = |words: &str| {
        let record = scratch.measured(&format!("media f -s 1m -b 4k --count 1 {words} --keep"));
        let metadata = std::fs::metadata(scratch.join("f")).unwrap();
        assert_eq!(metadata.len(), 1 << 20, "{words}");
        std::fs::remove_file(scratch.join("f")).unwrap();
        (metadata.blocks() * 512, record["phases"][0]["observations"]["unwritten_fraction"].clone())
    };
    let whole = 1 << 20;
    assert!(made("--op write --layout sparse").0 < whole / 2);
    assert!(made("--op randread --layout sparse").0 < whole / 2);
    for words in ["--op write", "--op write --layout allocate", "--op write --layout fill", "--op randread"] {
        assert!(made(words).0 >= whole, "{words}");
    }
    assert_eq!(made("--op read --layout auto").1, json!(0.0));
    assert_eq!(made("--op read --layout fill").1, json!(0.0));
    assert_eq!(made("--op read --layout allocate").1, json!(1.0));
    assert_eq!(made("--op read --layout sparse").1, json!(1.0));
    let record = scratch.measured("media f -s 1m -b 4k --op read --layout sparse --keep");
    let kinds = record["phases"][0]["doubts"].as_array().unwrap().iter().map(|doubt| &doubt["kind"]);
    assert!(kinds.into_iter().any(|kind| kind == "unwritten_range"));
    // It is long enough now, and stays as it is.
    scratch.measured("media f -b 4k --op read --layout allocate");
    assert!(std::fs::metadata(scratch.join("f")).unwrap().blocks() * 512 < whole / 2);
    scratch.measured("media f -b 4k --op read");
    assert!(std::fs::metadata(scratch.join("f")).unwrap().blocks() * 512 >= whole);
}

#[test]
fn pauses_are_made() {
    let scratch = Scratch::new();
    let record = scratch.measured("media null: --op randread --count 40 --think-time 5ms --think-blocks 10");
    assert_eq!(total(&record, 0, "operations"), 40);
    let elapsed_ns = record["phases"][0]["samples"]["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed_ns >= 15_000_000, "three pauses between four lots: {elapsed_ns}");
    let load: &Value = &record["phases"][0]["plan"]["load"];
    let expected = json!({
        "pause_ns": 5_000_000, "blocks": 10, "after_ns": null, "spin_ns": 0, "moves_arrivals": false
    });
    assert_eq!(load["think"], expected);
}
