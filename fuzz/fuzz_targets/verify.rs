//! Verified blocks: arbitrary bytes never panic; a block passes exactly when no byte of it was changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workload::content::verify::{BlockChecker, BlockWriter, Expected};

const INTERVALS: [u32; 5] = [64, 512, 520, 4096, 8192];
const RUN: u64 = 7;
const TARGET: u64 = 3;

fuzz_target!(|input: (u8, u8, u64, u64, Vec<(u16, u8)>, &[u8])| {
    let (interval, intervals, offset, sequence, edits, bytes) = input;
    // Offsets of files are signed: no block reaches beyond 2^63.
    let offset = offset >> 2;
    let interval = INTERVALS[usize::from(interval) % INTERVALS.len()];
    let length = interval as usize * (usize::from(intervals) % 4 + 1);
    let mut checker = BlockChecker::new(Some(RUN), TARGET, interval).expect("a good interval");

    let mut block = vec![0; length];
    BlockWriter::new(RUN, TARGET, interval)
        .expect("a good interval")
        .write_block(&mut block, offset, sequence);
    assert_eq!(checker.check_block(&block, offset, Expected::Exactly(sequence)), Ok(sequence));

    let written = block.clone();
    for (at, flip) in edits {
        block[usize::from(at) % length] ^= flip;
    }
    let checked = checker.check_block(&block, offset, Expected::Exactly(sequence));
    assert_eq!(checked.is_ok(), block == written);
    check_any(&mut checker, &block, offset, sequence);

    // A header that is sane, before bytes that are not.
    let kept = written[..length.min(48)].iter().chain(bytes).chain(std::iter::repeat(&0));
    let mixed: Vec<u8> = kept.take(length).copied().collect();
    check_any(&mut checker, &mixed, offset, sequence);
    let foreign: Vec<u8> = bytes.iter().chain(std::iter::repeat(&0)).take(length).copied().collect();
    check_any(&mut checker, &foreign, offset, sequence);
});

fn check_any(checker: &mut BlockChecker, block: &[u8], offset: u64, sequence: u64) {
    for expected in [Expected::Exactly(sequence), Expected::AtLeast(sequence), Expected::Any] {
        if let Err(mismatch) = checker.check_block(block, offset, expected) {
            assert!(!mismatch.to_string().is_empty());
        }
    }
}
