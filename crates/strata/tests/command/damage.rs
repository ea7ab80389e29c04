//! `--verify` finds damage, and tells one kind from another.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, Scratch, assert_partial, read_record};

const BLOCK_BYTES: usize = 4096;

fn read_block(path: &Path, block: usize) -> Vec<u8> {
    let mut content = vec![0; BLOCK_BYTES];
    let file = fs::File::open(path).unwrap();
    file.read_exact_at(&mut content, (block * BLOCK_BYTES) as u64).unwrap();
    content
}

fn write_block(path: &Path, block: usize, content: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(content, (block * BLOCK_BYTES) as u64).unwrap();
}

/// Causes and counts of the errors of a phase.
fn errors(record: &Value, phase: usize) -> Vec<(String, u64)> {
    let workers = record["phases"][phase]["samples"]["workers"].as_array().unwrap();
    let errors = workers.iter().flat_map(|worker| worker["errors"].as_array().unwrap());
    let facts =
        |error: &Value| (error["cause"].as_str().unwrap().to_owned(), error["count"].as_u64().unwrap());
    errors.map(facts).collect()
}

/// Two kept files of verified blocks, `a` and `b`.
fn written() -> Scratch {
    let scratch = Scratch::new();
    scratch.measured("media a b -s 256k --op write -b 4k --verify --keep");
    scratch
}

fn assert_found(scratch: &Scratch, expected: &str, blocks: u64) {
    let (ended, record): (Ended, Value) = scratch.measure("media a b --op read -b 4k --verify");
    assert_partial(scratch, &ended, &record, expected);
    assert_eq!(errors(&record, 0).len(), 1, "ended at the first");
    let (ended, record) = scratch.measure("media a b --op read -b 4k --verify --on-error continue");
    assert_partial(scratch, &ended, &record, expected);
    let found = errors(&record, 0);
    assert_eq!((found.len(), found[0].1), (1, blocks), "{found:?}");
    let good = &record["phases"][0]["summary"]["total"]["operations"];
    assert_eq!(good.as_u64().unwrap(), 128 - blocks, "went on to the end");
}

#[test]
fn a_flipped_bit() {
    let scratch = written();
    let path = scratch.join("a");
    let mut block = read_block(&path, 10);
    block[777] ^= 1;
    write_block(&path, 10, &block);
    assert_found(&scratch, "corrupt: a, block at offset 40960, from its byte 777", 1);
}

#[test]
fn two_blocks_in_each_others_place() {
    let scratch = written();
    let path = scratch.join("a");
    let (first, second) = (read_block(&path, 2), read_block(&path, 4));
    write_block(&path, 2, &second);
    write_block(&path, 4, &first);
    assert_found(
        &scratch,
        "misplaced: a, block at offset 8192, from its byte 0: misplaced: belongs at offset 16384",
        2,
    );
}

#[test]
fn a_block_of_another_target() {
    let scratch = written();
    write_block(&scratch.join("a"), 3, &read_block(&scratch.join("b"), 3));
    assert_found(&scratch, "swapped: a, block at offset 12288", 1);
    let (ended, _) = scratch.measure("media a b --op read -b 4k --verify");
    assert!(ended.stderr.trim_end().ends_with(", b"), "names the file it belongs to: {}", ended.stderr);
}

#[test]
fn a_zeroed_block() {
    let scratch = written();
    write_block(&scratch.join("b"), 63, &[0; BLOCK_BYTES]);
    assert_found(&scratch, "unwritten: b, block at offset 258048, from its byte 0: unwritten: all zero", 1);
}

#[test]
fn a_torn_block() {
    let scratch = written();
    write_block(&scratch.join("a"), 0, &[&read_block(&scratch.join("a"), 0)[..2048], &[0; 2048]].concat());
    assert_found(&scratch, "torn: a, block at offset 0, from its byte 2048", 1);
}

#[test]
fn a_lost_write_half_a_write_and_a_block_of_another_run() {
    let scratch = Scratch::new();
    let path = scratch.join("file");
    scratch.measured("media file -s 256k --op write -b 4k --verify --keep");
    let foreign = read_block(&path, 62);
    // Slow reads leave time to take a copy, and later to put it back where the last read comes by.
    let job = "targets = ['file']\nblock_size = '4k'\nverify = true\non_error = 'continue'\n\
               [[phase]]\nop = 'write'\n\
               [[phase]]\nname = 'copied'\nop = 'read'\nrate = 40\n\
               [[phase]]\nop = 'write'\n\
               [[phase]]\nname = 'restored'\nop = 'read'\nrate = 40\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    let mut running = scratch.start("run job.toml --live-csv - --json record.json");
    running.await_row("copied");
    running.signal(Signal::STOP);
    let (half, older) = (read_block(&path, 61), read_block(&path, 63));
    running.signal(Signal::CONT);
    running.await_row("restored");
    running.signal(Signal::STOP);
    assert!(read_block(&path, 63) != older);
    write_block(&path, 63, &older);
    write_block(&path, 62, &foreign);
    write_block(&path, 61, &[&half[..1024], &read_block(&path, 61)[1024..]].concat());
    running.signal(Signal::CONT);
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "3 operations failed in phase restored");
    let last = record["phases"].as_array().unwrap().len() - 1;
    let found: Vec<_> = errors(&record, last).into_iter().map(|(cause, _)| cause).collect();
    assert_eq!(
        found[0],
        "torn: file, block at offset 249856, from its byte 1024: torn: sequence 1 before, sequence 2 from there on"
    );
    assert!(found[1].starts_with("foreign_run: file, block at offset 253952, from its byte 0"), "{found:?}");
    assert_eq!(
        found[2],
        "stale: file, block at offset 258048, from its byte 0: stale: sequence 1, expected 2"
    );
}
