//! Where operations go and what they leave: looked up in the file.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{Scratch, total};

const BLOCK_BYTES: usize = 4096;
/// Mark that the writes of these tests carry.
const MARK: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];

/// Numbers of the blocks that carry the mark; the others must be zero.
fn marked(scratch: &Scratch) -> Vec<usize> {
    let content = fs::read(scratch.join("file")).unwrap();
    let is_marked = |(number, block): (usize, &[u8])| {
        let marked = block.chunks(4).all(|word| word == MARK);
        assert!(marked || block.iter().all(|&byte| byte == 0), "block {number} is neither");
        marked.then_some(number)
    };
    content.chunks(BLOCK_BYTES).enumerate().filter_map(is_marked).collect()
}

/// Blocks that a load marks in a file of 16 zero blocks.
fn blocks_of(words: &str) -> Vec<usize> {
    let scratch = Scratch::new();
    scratch.measured("media file -s 64k --op write -b 64k --content zero --keep");
    scratch.measured(&format!("media file -b 4k --content 0xdeadbeef {words}"));
    marked(&scratch)
}

#[test]
fn orders() {
    for (words, expected) in [
        ("--op write --count 4", vec![0, 1, 2, 3]),
        ("--op write --count 4 --pattern backward", vec![12, 13, 14, 15]),
        ("--op write --count 4 --pattern strided:4", vec![0, 4, 8, 12]),
        ("--op write --count 5 --pattern strided:4", vec![0, 1, 4, 8, 12]),
        ("--op write --count 4 --offset 16k -s 48k", vec![4, 5, 6, 7]),
        ("--op write --count 4 -t 2", vec![0, 1, 8, 9]),
        ("--op write --count 4 -t 2 --share whole", vec![0, 1]),
        ("--op write -s 12k", vec![0, 1, 2]),
        ("--op randwrite", (0..16).collect()),
        ("--op randwrite --count 16 --seed 4", (0..16).collect()),
        ("--op randwrite -t 2 --count 16", (0..16).collect()),
        ("--op randwrite --align 8k", (0..16).step_by(2).collect()),
    ] {
        assert_eq!(blocks_of(words), expected, "{words}");
    }
}

#[test]
fn random_orders_stay_inside() {
    for pattern in ["uniform", "zipf:1.1", "pareto:0.9", "normal:10", "zoned:80/50,20/50"] {
        let words = format!("--op randwrite --pattern {pattern} --count 500 --offset 16k -s 32k");
        let blocks = blocks_of(&words);
        assert!(
            !blocks.is_empty() && blocks.iter().all(|block| (4..12).contains(block)),
            "{words}: {blocks:?}"
        );
    }
    assert!(blocks_of("--op randwrite --count 4 --seed 1") != blocks_of("--op randwrite --count 4 --seed 2"));
}

#[test]
fn mapped_and_direct_writes_go_there_too() {
    for engine in ["psync --direct", "pvsync2", "libaio", "mmap"] {
        let blocks = blocks_of(&format!("--op write --count 4 --pattern strided:4 --engine {engine}"));
        assert_eq!(blocks, [0, 4, 8, 12], "{engine}");
    }
}

/// Content that a load leaves in a new file.
fn content_of(words: &str) -> Vec<u8> {
    let scratch = Scratch::new();
    scratch.measured(&format!("media file -s 1m --keep {words}"));
    fs::read(scratch.join("file")).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    for words in [
        "--op randwrite -b 4k --count 100",
        "--op randwrite -b 4k --count 300 --pattern zipf:1.2",
        "--op write -b 4k:50,16k:50",
        "--op randrw -b 4k --count 100",
        "--op randwrite -b 4k -t 2 -q 8 --refill full",
        "--op write -b 64k --compress 50 --dedupe 25",
    ] {
        let first = content_of(&format!("{words} --seed 5"));
        assert!(first == content_of(&format!("{words} --seed 5")), "{words}: differs");
        assert!(first != content_of(&format!("{words} --seed 6")), "{words}: the seed does not matter");
    }
}

#[test]
fn contents() {
    assert!(content_of("--op write -b 64k --content zero").iter().all(|&byte| byte == 0));
    assert!(content_of("--op write -b 64k --content 0xdeadbeef").chunks(4).all(|word| word == MARK));
    let random = content_of("--op write -b 64k");
    let mut counts = [0_u32; 256];
    random.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    // 4096 of each byte on average, give or take 64: twenty of these off is no chance.
    assert!(counts.iter().all(|count| count.abs_diff(4096) < 1280), "{counts:?}");
}

#[test]
fn files_are_laid_out_before_they_are_read() {
    for operation in ["read", "randread", "randrw"] {
        let scratch = Scratch::new();
        let record = scratch.measured(&format!("media file -s 4m --op {operation} -b 4k --count 10 --keep"));
        let metadata = fs::metadata(scratch.join("file")).unwrap();
        assert_eq!(metadata.len(), 4 << 20, "{operation}");
        assert!(metadata.blocks() * 512 >= 4 << 20, "{operation}: holes");
        let content = fs::read(scratch.join("file")).unwrap();
        assert!(content.chunks(BLOCK_BYTES).all(|block| block.iter().any(|&byte| byte != 0)), "{operation}");
        let unwritten = &record["phases"][0]["observations"]["unwritten_fraction"];
        assert!(unwritten.is_null() || *unwritten == 0.0, "{operation}: {unwritten}");
    }
}

#[test]
fn discards_punch_holes() {
    let scratch = Scratch::new();
    scratch.measured("media file -s 1m --op write -b 64k --content 0xdeadbeef --keep");
    let before = fs::metadata(scratch.join("file")).unwrap().blocks();
    let record = scratch.measured("media file --op discard -b 64k --count 8");
    assert_eq!(total(&record, 0, "bytes"), 512 << 10);
    assert_eq!(marked(&scratch), (128..256).collect::<Vec<_>>());
    let after = fs::metadata(scratch.join("file")).unwrap();
    assert_eq!(after.len(), 1 << 20);
    assert!(
        after.blocks() + (512 << 10) / 512 <= before,
        "{before} blocks of 512 bytes became {}",
        after.blocks()
    );
}
