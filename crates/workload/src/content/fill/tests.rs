use std::collections::{HashMap, HashSet};
use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};
use proptest::prelude::*;

use super::*;

const CHUNK: usize = 4096;

fn filler(spec: &ContentSpec) -> Filler {
    Filler::new(spec, Refill::Full, 42, 0).unwrap()
}

fn filled(spec: &ContentSpec, bytes: usize) -> Vec<u8> {
    let mut buf = vec![0xee; bytes];
    filler(spec).fill_block(&mut buf, 0, 1);
    buf
}

/// Percent that DEFLATE saves when each chunk is compressed alone, stored raw where that is shorter.
fn saved_percent(buf: &[u8], chunk: usize) -> f64 {
    let compressed: usize = buf
        .chunks(chunk)
        .map(|chunk| {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(chunk).unwrap();
            encoder.finish().unwrap().len().min(chunk.len())
        })
        .sum();
    100.0 - 100.0 * compressed as f64 / buf.len() as f64
}

fn distinct_chunks(buf: &[u8]) -> usize {
    buf.chunks(CHUNK).collect::<HashSet<_>>().len()
}

#[test]
fn compressible_content_saves_what_was_asked() {
    for percent in [0, 1, 10, 25, 50, 75, 90, 99, 100] {
        let saved = saved_percent(&filled(&ContentSpec::compressible(percent), 1 << 20), CHUNK);
        assert!((saved - f64::from(percent)).abs() < 2.5, "asked {percent} %, saved {saved:.2} %");
    }
}

#[test]
fn other_chunk_sizes_compress_as_asked() {
    for chunk_size_bytes in [8192, 65536, 131072] {
        let spec =
            ContentSpec::Reducible { compressible_percent: 60, dedupable_percent: 0, chunk_size_bytes };
        let saved = saved_percent(&filled(&spec, 1 << 20), chunk_size_bytes as usize);
        assert!((saved - 60.0).abs() < 2.5, "{chunk_size_bytes}: saved {saved:.2} %");
    }
}

#[test]
fn fully_compressible_chunks_are_still_unique() {
    let buf = filled(&ContentSpec::compressible(100), 1 << 20);
    assert_eq!(distinct_chunks(&buf), 256);
    assert!(buf.iter().any(|&byte| byte != 0));
}

#[test]
fn dedupable_content_has_the_copies_asked_for() {
    const CHUNKS: usize = 6000;
    for percent in [0u8, 10, 30, 50, 80, 100] {
        let buf = filled(&ContentSpec::dedupable(percent), CHUNKS * CHUNK);
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        buf.chunks(CHUNK).for_each(|chunk| *counts.entry(chunk).or_default() += 1);
        let copied: usize = counts.values().filter(|&&count| count > 1).sum();
        let share = 100.0 * copied as f64 / CHUNKS as f64;
        // 6000 choices: standard deviation at most 0.65 %.
        assert!((share - f64::from(percent)).abs() < 2.5, "asked {percent} %, copied {share:.2} %");
        let pool = counts.values().filter(|&&count| count > 1).count() as u64;
        assert_eq!(pool, if percent == 0 { 0 } else { DEDUP_POOL_CHUNKS });
        assert!(saved_percent(&buf[..1 << 20], CHUNK) < 1.0);
    }
}

#[test]
fn copies_are_shared_between_streams_and_generations() {
    let spec = ContentSpec::dedupable(100);
    let mut seen = HashSet::new();
    for (stream, generation) in [(0, 1), (1, 1), (1, 2), (9, 77)] {
        let mut buf = vec![0; 200 * CHUNK];
        Filler::new(&spec, Refill::Full, 42, stream).unwrap().fill_block(&mut buf, 0, generation);
        seen.extend(buf.chunks(CHUNK).map(<[u8]>::to_vec));
    }
    assert_eq!(seen.len() as u64, DEDUP_POOL_CHUNKS);
}

#[test]
fn compressible_and_dedupable_combine() {
    let spec = ContentSpec::Reducible {
        compressible_percent: 40,
        dedupable_percent: 50,
        chunk_size_bytes: CHUNK_SIZE_BYTES_DEFAULT,
    };
    let buf = filled(&spec, 4096 * CHUNK);
    let unique = 100.0 * distinct_chunks(&buf) as f64 / 4096.0;
    assert!((unique - 50.0).abs() < 4.0, "unique {unique:.1} %");
    let saved = saved_percent(&buf[..1 << 20], CHUNK);
    assert!((saved - 40.0).abs() < 2.5, "saved {saved:.2} %");
}

#[test]
fn random_content_is_unique_across_positions_generations_and_streams() {
    let mut seen = HashSet::new();
    for stream in 0..3 {
        let filler = Filler::new(&ContentSpec::Random, Refill::Full, 1, stream).unwrap();
        for generation in 0..3 {
            for block in 0..16 {
                let mut buf = [0; CHUNK];
                filler.fill_block(&mut buf, block * CHUNK as u64, generation);
                assert!(seen.insert(buf.to_vec()));
            }
        }
    }
}

#[test]
fn zero_and_pattern_are_exact() {
    assert!(filled(&ContentSpec::Zero, 10_000).iter().all(|&byte| byte == 0));
    let pattern = filler(&ContentSpec::Pattern { bytes: b"abc".to_vec() });
    for position in 0..7u64 {
        let mut buf = [0; 100];
        pattern.fill_block(&mut buf, position, 5);
        for (index, &byte) in buf.iter().enumerate() {
            assert_eq!(byte, b"abc"[(position as usize + index) % 3]);
        }
    }
    let mut short = [0; 2];
    pattern.fill_block(&mut short, 2, 0);
    assert_eq!(&short, b"ca");
}

#[test]
fn stamps_are_unique_and_touch_nothing_else() {
    let filler = Filler::new(&ContentSpec::Random, Refill::Stamp, 3, 0).unwrap();
    let original = filled(&ContentSpec::Random, 8 * CHUNK);
    let mut seen = HashSet::new();
    for generation in 0..8 {
        for position in [0, 8 * CHUNK as u64, 1 << 40] {
            let mut buf = original.clone();
            filler.refill_block(&mut buf, position, generation);
            for (chunk, old) in buf.chunks(CHUNK).zip(original.chunks(CHUNK)) {
                assert!(seen.insert(chunk[..16].to_vec()));
                assert_eq!(chunk[16..], old[16..]);
            }
        }
    }
}

#[test]
fn stamps_follow_the_address_space_of_unaligned_writes() {
    let filler = Filler::new(&ContentSpec::Random, Refill::Stamp, 3, 0).unwrap();
    let mut buf = vec![0; 2 * CHUNK];
    filler.stamp(&mut buf, 1024, 7);
    let stamped: Vec<usize> = (0..buf.len()).step_by(16).filter(|&at| buf[at..at + 16] != [0; 16]).collect();
    assert_eq!(stamped, [0, 3072, 7168]);
    let mut short = [0; 5];
    filler.stamp(&mut short, 0, 7);
    assert_ne!(short, [0; 5]);
}

#[test]
fn refill_decides_what_changes() {
    let change = |refill| {
        let filler = Filler::new(&ContentSpec::Random, refill, 3, 0).unwrap();
        let mut buf = [0; CHUNK];
        filler.fill_block(&mut buf, 0, 1);
        let before = buf;
        filler.refill_block(&mut buf, 0, 2);
        before.iter().zip(&buf).filter(|(old, new)| old != new).count()
    };
    assert!(change(Refill::Full) > CHUNK * 98 / 100);
    assert!((14..=16).contains(&change(Refill::Stamp)));
    assert_eq!(change(Refill::Once), 0);
}

#[test]
fn bad_specs_are_refused_with_what_is_accepted() {
    let refusal = |spec: ContentSpec, refill| Filler::new(&spec, refill, 0, 0).unwrap_err().to_string();
    assert_eq!(
        refusal(ContentSpec::compressible(101), Refill::Full),
        "compressible by 101 %: expected 0 to 100 %"
    );
    assert_eq!(refusal(ContentSpec::dedupable(255), Refill::Full), "dedupable by 255 %: expected 0 to 100 %");
    assert_eq!(
        refusal(ContentSpec::Pattern { bytes: vec![] }, Refill::Full),
        "the data pattern is empty: expected at least one byte"
    );
    let tiny = ContentSpec::Reducible { compressible_percent: 1, dedupable_percent: 1, chunk_size_bytes: 63 };
    assert_eq!(refusal(tiny, Refill::Full), "data chunk of 63 bytes: expected at least 64 bytes");
    for spec in [ContentSpec::Zero, ContentSpec::Pattern { bytes: vec![1] }, ContentSpec::dedupable(1)] {
        assert_eq!(spec.check(Refill::Stamp), Err(ContentError::StampRuins));
        assert_eq!(spec.check(Refill::Once), Ok(()));
    }
}

#[test]
fn specs_survive_json() {
    for spec in [ContentSpec::Random, ContentSpec::Pattern { bytes: vec![1, 2] }, ContentSpec::dedupable(20)]
    {
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<ContentSpec>(&text).unwrap(), spec);
    }
    assert_eq!(serde_json::to_string(&ContentSpec::Random).unwrap(), r#"{"kind":"random"}"#);
}

proptest! {
    /// A range of the address space has the same bytes whether written in one piece or in several.
    #[test]
    fn content_is_by_address(
        compressible_percent in 0u8..=100, dedupable_percent in 0u8..=100, chunk_size_bytes in 64u32..9000,
        base: u64, start in 0usize..9000, length in 0usize..9000,
    ) {
        let base = base >> 1;
        let filler = filler(&ContentSpec::Reducible { compressible_percent, dedupable_percent, chunk_size_bytes });
        let mut whole = vec![0; 18_000];
        filler.fill_block(&mut whole, base, 3);
        let mut part = vec![0; length];
        filler.fill_block(&mut part, base + start as u64, 3);
        prop_assert_eq!(&part[..], &whole[start..start + length]);
    }

    #[test]
    fn any_place_is_filled_without_a_panic(position: u64, generation: u64, length in 0usize..10_000) {
        let mut buf = vec![0; length];
        for spec in [
            ContentSpec::Random,
            ContentSpec::Zero,
            ContentSpec::Pattern { bytes: vec![1, 2, 3, 4, 5] },
            ContentSpec::Reducible { compressible_percent: 30, dedupable_percent: 30, chunk_size_bytes: 100 },
        ] {
            let filler = filler(&spec);
            filler.fill_block(&mut buf, position, generation);
            filler.stamp(&mut buf, position, generation);
        }
    }
}

#[test]
fn copies_are_of_a_set_of_the_size_asked_for_and_of_one_seed() {
    let spec = ContentSpec::dedupable(50);
    let set = |run: u64, seed: Option<u64>| {
        let filler = Filler::new(&spec, Refill::Full, run, 0).unwrap().with_copies_of(100, seed);
        let mut counts = std::collections::HashMap::new();
        for chunk in 0..10_000_u64 {
            let mut buf = [0; 64];
            filler.fill_block(&mut buf, chunk * u64::from(CHUNK_SIZE_BYTES_DEFAULT), 1);
            *counts.entry(buf).or_insert(0) += 1;
        }
        counts.retain(|_, count| *count > 1);
        counts.into_keys().collect::<std::collections::HashSet<_>>()
    };
    let first = set(1, Some(7));
    assert_eq!(first.len(), 100);
    assert_eq!(set(2, Some(7)), first, "another phase, the same set");
    assert!(set(2, None).is_disjoint(&first));
}
