use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn available() -> impl Iterator<Item = Backend> {
    Backend::ALL.into_iter().filter(|backend| backend.is_available())
}

/// Known answer: the `aesenc` example of Intel's AES-NI white paper (Gueron, 2010).
#[test]
fn round_is_the_published_aes_round() {
    let state = 0x7b5b54657374566563746f725d53475d;
    let key = 0x48692853686179295b477565726f6e5d;
    assert_eq!(portable::round_of_block(state, key), 0xa8311c2f9fdba3c58b104b58ded7e595);
}

/// Computed by a separate AES of plain GF(2^8) arithmetic.
#[test]
fn bytes_are_pinned() {
    let mut buf = [0; 16];
    Stream::new(1, 2).fill(&mut buf, 3, 4096);
    let hex: String = buf.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "2c602de491981401ce68cbc5cc6e3b2d");
}

#[test]
fn streams_generations_positions_and_purposes_share_no_lane() {
    let mut seen = HashSet::new();
    let mut lanes = 0;
    for (seed, stream) in [(0, 0), (0, 1), (1, 0), (1, 1), (u64::MAX, 0)] {
        for purpose in [Purpose::Data, Purpose::DedupPool, Purpose::Stamp, Purpose::Verify] {
            let made = Stream::for_purpose(seed, stream, purpose);
            for generation in [0, 1, u64::MAX] {
                let mut buf = [0; 4096];
                made.fill(&mut buf, generation, 0);
                for lane in buf.chunks_exact(16) {
                    seen.insert(lane.to_vec());
                    lanes += 1;
                }
            }
        }
    }
    assert_eq!(seen.len(), lanes);
}

/// Chi-square of byte values over 1 MiB: 255 degrees of freedom, standard deviation 22.6.
#[test]
fn byte_values_are_evenly_spread_and_bits_balanced() {
    let mut buf = vec![0; 1 << 20];
    Stream::new(7, 0).fill(&mut buf, 0, 0);
    let mut counts = [0u32; 256];
    let mut bits = [0u32; 128];
    for lane in buf.chunks_exact(16) {
        for (index, byte) in lane.iter().enumerate() {
            counts[usize::from(*byte)] += 1;
            for bit in 0..8 {
                bits[index * 8 + bit] += u32::from(byte >> bit & 1);
            }
        }
    }
    let expected = buf.len() as f64 / 256.0;
    let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    assert!((255.0 - 5.0 * 22.6..255.0 + 5.0 * 22.6).contains(&chi_square), "chi-square {chi_square}");
    // 65536 lanes: the standard deviation of a bit's count is 128.
    assert!(bits.iter().all(|&ones| ones.abs_diff(32768) < 6 * 128), "{bits:?}");
}

/// Neighbouring counters and generations must differ in about half of their bits.
#[test]
fn a_counter_bit_reaches_every_output_bit() {
    let stream = Stream::new(3, 9);
    for flipped in 0..128u32 {
        let mut flips = [0u32; 128];
        for sample in 0..512u64 {
            let (generation, lane) = (sample * 3, sample);
            let block = counter_block(generation, lane) ^ 1 << flipped;
            let one = u128::from_le_bytes(stream.lane(generation, lane));
            let other = u128::from_le_bytes(stream.lane((block >> 64) as u64, block as u64));
            (0..128).for_each(|bit| flips[bit] += ((one ^ other) >> bit & 1) as u32);
        }
        // 512 fair coins: mean 256, standard deviation 11.3.
        assert!(flips.iter().all(|&count| count.abs_diff(256) < 80), "input bit {flipped}: {flips:?}");
    }
}

#[test]
fn random_bytes_do_not_compress() {
    use std::io::Write;
    let mut buf = vec![0; 1 << 20];
    Stream::new(5, 0).fill(&mut buf, 1, 0);
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&buf).unwrap();
    assert!(encoder.finish().unwrap().len() >= buf.len());
}

#[test]
fn a_backend_that_is_missing_is_refused() {
    let missing = Backend::ALL.into_iter().filter(|backend| !backend.is_available());
    for backend in missing {
        assert!(Stream::new(0, 0).with_backend(backend).is_none());
    }
    assert!(Backend::detect().is_available());
}

proptest! {
    #[test]
    fn all_backends_give_the_same_bytes(
        seed: u64, stream: u64, generation: u64, position: u64, length in 0usize..3000,
    ) {
        let reference = Stream::new(seed, stream).with_backend(Backend::Portable).unwrap();
        let mut expected = vec![0; length];
        reference.fill(&mut expected, generation, position);
        for backend in available() {
            let made = Stream::new(seed, stream).with_backend(backend).unwrap();
            let mut buf = vec![0xaa; length];
            made.fill(&mut buf, generation, position);
            prop_assert_eq!(&buf, &expected, "{:?}", backend);
            prop_assert_eq!(made.lane(generation, position), reference.lane(generation, position));
        }
    }

    #[test]
    fn any_range_is_a_slice_of_the_whole(start in 0usize..5000, length in 0usize..5000, base in 0u64..1 << 60) {
        let stream = Stream::new(11, 12);
        let mut whole = vec![0; 10_000];
        stream.fill(&mut whole, 1, base & !15);
        let mut part = vec![0; length];
        stream.fill(&mut part, 1, (base & !15) + start as u64);
        prop_assert_eq!(&part[..], &whole[start..start + length]);
    }
}
