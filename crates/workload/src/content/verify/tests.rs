use proptest::prelude::*;

use super::*;

const RUN: u64 = 0x1122_3344_5566_7788;
const TARGET: u64 = 3;
const OFFSET: u64 = 1 << 20;
const BLOCK: usize = 4096;

fn block_of(run: u64, target: u64, offset: u64, sequence: u64, interval: u32, length: usize) -> Vec<u8> {
    let mut buf = vec![0xaa; length];
    BlockWriter::new(run, target, interval).unwrap().write_block(&mut buf, offset, sequence);
    buf
}

fn block(sequence: u64, interval: u32) -> Vec<u8> {
    block_of(RUN, TARGET, OFFSET, sequence, interval, BLOCK)
}

fn check(buf: &[u8], interval: u32, expected: Expected) -> Result<u64, Mismatch> {
    BlockChecker::new(Some(RUN), TARGET, interval).unwrap().check_block(buf, OFFSET, expected)
}

/// Where the fault begins and what it is.
fn fault(buf: &[u8], interval: u32, expected: Expected) -> (u64, Fault) {
    let mismatch = check(buf, interval, expected).unwrap_err();
    assert_eq!((mismatch.run, mismatch.target, mismatch.offset), (Some(RUN), TARGET, OFFSET));
    (mismatch.at_byte, mismatch.fault)
}

fn torn(head_sequence: impl Into<Option<u64>>, tail_sequence: impl Into<Option<u64>>) -> Fault {
    Fault::Torn { head_sequence: head_sequence.into(), tail_sequence: tail_sequence.into() }
}

const INTERVALS: [u32; 7] = [64, 128, 512, 1024, 2048, 4096, 256];

#[test]
fn sound_blocks_pass_whatever_their_layout() {
    for (interval, length, offset) in
        [(64, 64, 0), (64, 4096, 64), (520, 5200, 520), (1000, 9000, 8), (4096, 1 << 20, 4096)]
            .into_iter()
            .chain(INTERVALS.map(|interval| (interval, BLOCK, OFFSET)))
            .chain([(65536, 65536, 77), (9000, 18000, 4090), (1 << 20, 1 << 20, 512)])
    {
        let buf = block_of(RUN, TARGET, offset, 9, interval, length);
        for run in [Some(RUN), None] {
            let mut checker = BlockChecker::new(run, TARGET, interval).unwrap();
            for expected in [Expected::Exactly(9), Expected::AtLeast(9), Expected::AtLeast(1), Expected::Any]
            {
                assert_eq!(checker.check_block(&buf, offset, expected), Ok(9), "{interval} at {offset}");
            }
        }
    }
}

/// The checksum was computed by a bitwise CRC-32C elsewhere. The layout is part of what is stored on targets: a change of it must change the version.
#[test]
fn header_bytes_are_pinned() {
    let buf = block(7, 512);
    let hex: String = buf[..HEADER_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "53745662010030008877665544332211030000000000000000001000000000000700000000000000000200008b0fa301"
    );
    let tagged = block(7, 4096);
    assert_eq!(tagged[1024..1032], 7u64.to_le_bytes());
    assert_eq!(tagged[1032..1040], (OFFSET + 1024).to_le_bytes());
}

#[test]
fn blocks_are_unique_and_incompressible() {
    use std::io::Write;
    let mut all = Vec::new();
    for sequence in 0..64 {
        all.extend(block(sequence, 4096));
    }
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&all).unwrap();
    let share = encoder.finish().unwrap().len() as f64 / all.len() as f64;
    assert!(share > 0.95, "compressed to {share:.3}");
}

#[test]
fn unwritten_blocks_are_told() {
    for interval in INTERVALS {
        assert_eq!(fault(&[0; BLOCK], interval, Expected::Exactly(1)), (0, Fault::Unwritten));
        assert_eq!(fault(&[0; BLOCK], interval, Expected::Any), (0, Fault::Unwritten));
    }
}

#[test]
fn stale_and_newer_blocks_are_told() {
    for interval in INTERVALS {
        let buf = block(4, interval);
        let stale = Fault::Stale { found_sequence: 4, expected: 6 };
        assert_eq!(fault(&buf, interval, Expected::Exactly(6)), (0, stale));
        assert_eq!(fault(&buf, interval, Expected::AtLeast(6)), (0, stale));
        let newer = Fault::Newer { found_sequence: 4, expected: 3 };
        assert_eq!(fault(&buf, interval, Expected::Exactly(3)), (0, newer));
    }
}

#[test]
fn misplaced_swapped_and_foreign_blocks_are_told() {
    for interval in INTERVALS {
        let elsewhere = block_of(RUN, TARGET, OFFSET + 8192, 5, interval, BLOCK);
        let misplaced = Fault::Misplaced { found_offset: OFFSET + 8192 };
        assert_eq!(fault(&elsewhere, interval, Expected::Exactly(5)), (0, misplaced));
        let other = block_of(RUN, 4, OFFSET, 5, interval, BLOCK);
        assert_eq!(fault(&other, interval, Expected::Exactly(5)), (0, Fault::Swapped { found_target: 4 }));
        let old = block_of(99, TARGET, OFFSET, 5, interval, BLOCK);
        assert_eq!(fault(&old, interval, Expected::Any), (0, Fault::ForeignRun { found_run: 99 }));
        let found = Fault::OtherInterval { found_interval_bytes: interval };
        assert_eq!(
            fault(&block(5, interval), if interval == 64 { 128 } else { 64 }, Expected::Any),
            (0, found)
        );
    }
}

#[test]
fn a_misplaced_sector_or_interval_is_told_by_its_place() {
    let elsewhere = block_of(RUN, TARGET, OFFSET + 40960, 5, 4096, BLOCK);
    let mut buf = block(5, 4096);
    buf[1536..2048].copy_from_slice(&elsewhere[512..1024]);
    let misplaced = Fault::Misplaced { found_offset: OFFSET + 40960 + 512 };
    assert_eq!(fault(&buf, 4096, Expected::Exactly(5)), (1536, misplaced));

    let elsewhere = block_of(RUN, TARGET, OFFSET + 40960, 5, 1024, BLOCK);
    let mut buf = block(5, 1024);
    buf[2048..3072].copy_from_slice(&elsewhere[..1024]);
    let misplaced = Fault::Misplaced { found_offset: OFFSET + 40960 };
    assert_eq!(fault(&buf, 1024, Expected::Exactly(5)), (2048, misplaced));
}

/// A block of `head` up to byte `at` and of `tail` from there on (`None`: zeros).
fn spliced(head: Option<u64>, tail: Option<u64>, at: usize, interval: u32) -> Vec<u8> {
    let part = |sequence: Option<u64>| sequence.map_or(vec![0; BLOCK], |sequence| block(sequence, interval));
    let mut buf = part(head);
    buf[at..].copy_from_slice(&part(tail)[at..]);
    buf
}

#[test]
fn tears_at_every_sector_are_told() {
    for interval in INTERVALS {
        for at in (512..BLOCK).step_by(512) {
            for (head, tail) in [
                (Some(9), Some(8)),
                (Some(8), Some(9)),
                (Some(9), Some(1)),
                (Some(1), Some(1 << 40)),
                (Some(9), None),
                (None, Some(9)),
            ] {
                let buf = spliced(head, tail, at, interval);
                for expected in [Expected::Exactly(9), Expected::AtLeast(1), Expected::Any] {
                    assert_eq!(fault(&buf, interval, expected), (at as u64, torn(head, tail)), "{interval}");
                }
            }
        }
    }
}

/// A middle sector that kept its older content: torn where it begins.
#[test]
fn a_lost_sector_is_a_tear() {
    for interval in INTERVALS {
        for at in (512..BLOCK).step_by(512) {
            let mut buf = block(700, interval);
            buf[at..at + 512].copy_from_slice(&block(12, interval)[at..at + 512]);
            assert_eq!(fault(&buf, interval, Expected::Exactly(700)), (at as u64, torn(700, 12)));
        }
    }
}

/// Tears at any byte of the payload: found within the few bytes on which two streams agree by chance.
#[test]
fn tears_inside_sectors_are_told() {
    for interval in [512u32, 2048, 4096] {
        for at in (48..BLOCK - 32).step_by(5) {
            let in_interval = at % interval as usize;
            if in_interval < HEADER_BYTES && in_interval > 0 {
                continue;
            }
            for (head, tail) in [(9, Some(8)), (9, Some(3)), (9, None)] {
                let buf = spliced(Some(head), tail, at, interval);
                let (found_at, fault) = fault(&buf, interval, Expected::Exactly(9));
                // Without a later sector or interval of the tail, only neighbouring sequences are tried.
                let last_sector = at >= BLOCK - SECTOR_BYTES;
                if last_sector && tail == Some(3) {
                    continue;
                }
                assert_eq!(fault, torn(head, tail), "{interval}: torn at {at}, found at {found_at}");
                // Tags and headers of two sequences share their first bytes, or all but the sequence.
                assert!((at as u64..at as u64 + 64).contains(&found_at), "torn at {at}, found at {found_at}");
            }
        }
    }
}

#[test]
fn without_a_run_blocks_of_any_one_run_pass_and_mixtures_do_not() {
    let mut checker = BlockChecker::new(None, TARGET, 1024).unwrap();
    let mut buf = block_of(7, TARGET, OFFSET, 5, 1024, BLOCK);
    assert_eq!(checker.check_block(&buf, OFFSET, Expected::Any), Ok(5));
    assert_eq!(checker.check_block(&block(5, 1024), OFFSET, Expected::Any), Ok(5));
    buf[2048..].copy_from_slice(&block(5, 1024)[2048..]);
    let mismatch = checker.check_block(&buf, OFFSET, Expected::Any).unwrap_err();
    assert_eq!((mismatch.at_byte, mismatch.fault), (2048, Fault::ForeignRun { found_run: RUN }));
    assert_eq!(mismatch.run, None);
}

#[test]
fn damage_is_located_whether_or_not_the_sequence_is_known() {
    for at in [0, 5, 8, 20, 24, 30, 33, 41, 45, 48, 511, 512, 520, 1023, 4095] {
        let mut buf = block(5, 4096);
        buf[at] ^= 0x40;
        assert_eq!(fault(&buf, 4096, Expected::Exactly(5)), (at as u64, Fault::Corrupt));
        assert_eq!(fault(&buf, 4096, Expected::Any), (at as u64, Fault::Corrupt));
    }
}

#[test]
fn noise_is_corrupt() {
    let mut noise = vec![0; BLOCK];
    Stream::new(1, 1).fill(&mut noise, 1, 1);
    for interval in INTERVALS {
        assert_eq!(fault(&noise, interval, Expected::Any).1, Fault::Corrupt);
    }
}

#[test]
fn layouts_are_refused_with_what_is_accepted() {
    for (interval, block_size) in [(0, 4096), (56, 4096), (100, 4096), (3000, 4096), (8192, 4096), (512, 0)] {
        assert_eq!(
            check_layout(interval, block_size).unwrap_err().to_string(),
            format!(
                "verify interval of {interval} bytes with blocks of {block_size} bytes: expected at least 64, a \
                 multiple of 8, and a divisor of the block size"
            )
        );
    }
    assert!(BlockWriter::new(1, 1, 60).is_err());
    assert!(BlockChecker::new(None, 1, 68).is_err());
    assert_eq!(check_layout(512, 4096), Ok(()));
}

#[test]
fn a_mismatch_is_one_line_with_everything() {
    let mut buf = block(9, 4096);
    buf[1024..].copy_from_slice(&block(8, 4096)[1024..]);
    assert_eq!(
        check(&buf, 4096, Expected::Exactly(9)).unwrap_err().to_string(),
        "target 3 block at offset 1048576 of run 0x1122334455667788: at byte 1024: torn: sequence 9 before, sequence 8 \
         from there on"
    );
    let unwritten = check(&[0; BLOCK], 4096, Expected::Any).unwrap_err();
    let text = serde_json::to_string(&unwritten).unwrap();
    assert_eq!(serde_json::from_str::<Mismatch>(&text).unwrap(), unwritten);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// No flip of one bit is ever passed, and the byte is named.
    #[test]
    fn every_bit_flip_is_found(at in 0usize..BLOCK, bit in 0u32..8, index in 0usize..INTERVALS.len(), sequence: u64) {
        let interval = INTERVALS[index];
        let mut buf = block(sequence, interval);
        buf[at] ^= 1 << bit;
        prop_assert_eq!(fault(&buf, interval, Expected::Exactly(sequence)), (at as u64, Fault::Corrupt));
        prop_assert!(check(&buf, interval, Expected::Any).is_err());
        let mut any_run = BlockChecker::new(None, TARGET, interval).unwrap();
        prop_assert!(any_run.check_block(&buf, OFFSET, Expected::Any).is_err());
    }

    #[test]
    fn written_blocks_pass(
        run: u64, target: u64, sequence: u64, offset in 0u64..1 << 60,
        interval in (8u32..700).prop_map(|words| words * 8), count in 1usize..6,
    ) {
        let buf = block_of(run, target, offset, sequence, interval, interval as usize * count);
        let mut checker = BlockChecker::new(Some(run), target, interval).unwrap();
        prop_assert_eq!(checker.check_block(&buf, offset, Expected::Exactly(sequence)), Ok(sequence));
    }

    /// Any splice of two sequences is found, whatever the alignment.
    #[test]
    fn no_splice_passes(
        offset in 0u64..1 << 40, interval in (8u32..700).prop_map(|words| words * 8), count in 1usize..6,
        cut: prop::sample::Index,
    ) {
        let length = interval as usize * count;
        let whole = block_of(RUN, TARGET, offset, 5, interval, length);
        let other = block_of(RUN, TARGET, offset, 6, interval, length);
        // Up to the sequence field both are the same; in the last bytes they may agree by chance.
        let cut = 33 + cut.index(length - 33 - 8);
        let buf = [&whole[..cut], &other[cut..]].concat();
        // Behind the sequence of a tag at the very end both are the same, too: that is no splice.
        prop_assume!(buf != whole);
        let mut checker = BlockChecker::new(Some(RUN), TARGET, interval).unwrap();
        prop_assert!(checker.check_block(&buf, offset, Expected::Any).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic_or_pass(
        mut bytes in prop::collection::vec(any::<u8>(), 1..3000), interval in (8u32..300).prop_map(|words| words * 8),
        offset: u64, run: Option<u64>, header: bool, zeros in 0usize..3000,
    ) {
        bytes.resize(bytes.len().next_multiple_of(interval as usize), 0);
        let zeros = zeros.min(bytes.len());
        bytes[..zeros].fill(0);
        if header {
            let sane = Header { run: run.unwrap_or(1), target: TARGET, offset, sequence: 1, length: interval };
            bytes[..HEADER_BYTES].copy_from_slice(&sane.encode());
        }
        let mut checker = BlockChecker::new(run, TARGET, interval).unwrap();
        for expected in [Expected::Any, Expected::Exactly(offset), Expected::AtLeast(u64::MAX)] {
            let mismatch = checker.check_block(&bytes, offset, expected).unwrap_err();
            prop_assert!(!mismatch.to_string().contains('\n'));
        }
    }
}
