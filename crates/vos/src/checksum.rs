//! Checksums of data, in chunks, made while it is copied.
#![allow(unsafe_code)]

use crate::Checksum;
use crc_fast::CrcAlgorithm;

use super::copy::copy_out;
use super::flush::{Flusher, copy_durable};

/// A checksum covers so many bytes at most, so that a part of a large value can be verified.
pub(super) const CHUNK_BYTES: usize = 32 << 10;
/// Data is summed and copied to the log in pieces that stay in the first-level cache. On the way out a chunk stays in the second level.
const PIECE_BYTES: usize = 8 << 10;

/// Size of one checksum in bytes.
pub(super) fn width(kind: Checksum) -> usize {
    match kind {
        Checksum::Off => 0,
        Checksum::Crc16 => 2,
        Checksum::Crc32 | Checksum::Adler32 => 4,
        Checksum::Crc64 => 8,
        Checksum::Sha1 => 20,
        Checksum::Sha256 => 32,
        Checksum::Sha512 => 64,
    }
}

/// Number of a kind in records.
pub(super) fn number(kind: Checksum) -> u8 {
    match kind {
        Checksum::Off => 0,
        Checksum::Crc16 => 1,
        Checksum::Crc32 => 2,
        Checksum::Crc64 => 3,
        Checksum::Sha1 => 4,
        Checksum::Sha256 => 5,
        Checksum::Sha512 => 6,
        Checksum::Adler32 => 7,
    }
}

/// The kind of a number in records.
pub(super) fn of_number(number: u8) -> Option<Checksum> {
    use Checksum::{Adler32, Crc16, Crc32, Crc64, Off, Sha1, Sha256, Sha512};
    [Off, Crc16, Crc32, Crc64, Sha1, Sha256, Sha512, Adler32].get(usize::from(number)).copied()
}

/// How many checksums cover so many bytes.
pub(super) fn chunks(bytes: usize) -> usize {
    bytes.div_ceil(CHUNK_BYTES)
}

fn algorithm(kind: Checksum) -> Option<CrcAlgorithm> {
    match kind {
        Checksum::Crc16 => Some(CrcAlgorithm::Crc16T10Dif),
        Checksum::Crc32 => Some(CrcAlgorithm::Crc32Iscsi),
        Checksum::Crc64 => Some(CrcAlgorithm::Crc64Xz),
        _ => None,
    }
}

/// Adler-32 (RFC 1950).
fn adler32(data: &[u8]) -> u32 {
    // 5552 is the most bytes for which the sums stay in 32 bits.
    let (mut a, mut b) = (1u32, 0u32);
    for part in data.chunks(5552) {
        for &byte in part {
            a += u32::from(byte);
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    b << 16 | a
}

/// Checksum of one chunk into `sum`, whose length is [`width`].
pub(super) fn sum_chunk(kind: Checksum, chunk: &[u8], sum: &mut [u8]) {
    match kind {
        Checksum::Off => {}
        Checksum::Adler32 => sum.copy_from_slice(&adler32(chunk).to_le_bytes()),
        Checksum::Sha1 => digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, chunk, sum),
        Checksum::Sha256 => digest(&ring::digest::SHA256, chunk, sum),
        Checksum::Sha512 => digest(&ring::digest::SHA512, chunk, sum),
        Checksum::Crc16 | Checksum::Crc32 | Checksum::Crc64 => {
            let value = algorithm(kind).map_or(0, |algorithm| crc_fast::checksum(algorithm, chunk));
            put(value, sum);
        }
    }
}

fn digest(algorithm: &'static ring::digest::Algorithm, chunk: &[u8], sum: &mut [u8]) {
    sum.copy_from_slice(ring::digest::digest(algorithm, chunk).as_ref());
}

fn put(value: u64, sum: &mut [u8]) {
    let width = sum.len();
    sum.copy_from_slice(&value.to_le_bytes()[..width]);
}

/// Checksums of all chunks of data into `sums`.
pub(super) fn sum_all(kind: Checksum, data: &[u8], sums: &mut [u8]) {
    let width = width(kind);
    if width > 0 {
        for (chunk, sum) in data.chunks(CHUNK_BYTES).zip(sums.chunks_mut(width)) {
            sum_chunk(kind, chunk, sum);
        }
    }
}

/// Whether the checksums of all chunks match.
pub(super) fn verifies(kind: Checksum, data: &[u8], sums: &[u8]) -> bool {
    let width = width(kind);
    let mut found = [0; 64];
    width == 0
        || data.chunks(CHUNK_BYTES).zip(sums.chunks(width)).all(|(chunk, sum)| {
            sum_chunk(kind, chunk, &mut found[..width]);
            found[..width] == *sum
        })
}

/// Copies data to memory of the log, durable after a fence, and sums it on the way.
pub(super) fn copy_and_sum(kind: Checksum, flusher: Flusher, into: &mut [u8], data: &[u8], sums: &mut [u8]) {
    let width = width(kind);
    // One for all chunks: each new one copies the constants of its algorithm, which waits for the stores around the cache before it.
    let mut digest = algorithm(kind).filter(|_| data.len() > PIECE_BYTES).map(crc_fast::Digest::new);
    for (number, chunk) in data.chunks(CHUNK_BYTES).enumerate() {
        let into = &mut into[number * CHUNK_BYTES..][..chunk.len()];
        match &mut digest {
            Some(digest) if chunk.len() > PIECE_BYTES => {
                for (piece, into) in chunk.chunks(PIECE_BYTES).zip(into.chunks_mut(PIECE_BYTES)) {
                    digest.update(piece);
                    copy_durable(flusher, into, piece);
                }
                put(digest.finalize_reset(), &mut sums[number * width..][..width]);
            }
            _ => {
                sum_chunk(kind, chunk, &mut sums[number * width..][..width]);
                copy_durable(flusher, into, chunk);
            }
        }
    }
}

/// Copies whole chunks out of the log and tells whether they match their checksums. `into` may hold anything where they do not.
pub(super) fn copy_and_verify(kind: Checksum, data: &[u8], sums: &[u8], into: &mut [u8]) -> bool {
    let width = width(kind);
    if width == 0 {
        copy_out(&mut into[..data.len()], data);
        return true;
    }
    let mut found = [0; 64];
    for (number, chunk) in data.chunks(CHUNK_BYTES).enumerate() {
        let into = &mut into[number * CHUNK_BYTES..][..chunk.len()];
        match algorithm(kind) {
            Some(algorithm) if chunk.len() > PIECE_BYTES => {
                copy_out(into, chunk);
                put(crc_fast::checksum(algorithm, into), &mut found[..width]);
            }
            _ => {
                copy_out(into, chunk);
                // What was copied is summed, not what was there: so that what is returned is what was verified.
                sum_chunk(kind, into, &mut found[..width]);
            }
        }
        if found[..width] != sums[number * width..][..width] {
            return false;
        }
    }
    true
}

/// CRC-32C of a few bytes, going on from `state`: of headers, where the set-up of the wide one would cost more than the sum.
#[inline]
pub(super) fn crc32c(state: u32, bytes: &[u8]) -> u32 {
    small::crc32c(state, bytes)
}

mod small {

    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn crc32c(state: u32, bytes: &[u8]) -> u32 {
        if std::arch::is_x86_feature_detected!("sse4.2") {
            // SAFETY: the processor has SSE 4.2.
            unsafe { crc32c_sse42(state, bytes) }
        } else {
            crc32c_bitwise(state, bytes)
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn crc32c(state: u32, bytes: &[u8]) -> u32 {
        crc32c_bitwise(state, bytes)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "sse4.2")]
    fn crc32c_sse42(state: u32, bytes: &[u8]) -> u32 {
        use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};
        let mut state = u64::from(!state);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            state = _mm_crc32_u64(state, u64::from_le_bytes(*word));
        }
        let mut state = state as u32;
        for &byte in rest {
            state = _mm_crc32_u8(state, byte);
        }
        !state
    }

    pub(super) fn crc32c_bitwise(state: u32, bytes: &[u8]) -> u32 {
        let mut state = !state;
        for &byte in bytes {
            state ^= u32::from(byte);
            for _ in 0..8 {
                state = state >> 1 ^ (0x82f6_3b78 & (state & 1).wrapping_neg());
            }
        }
        !state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(Checksum, &[u8]); 8] = [
        (Checksum::Off, &[]),
        (Checksum::Crc16, &[0xdb, 0xd0]),
        (Checksum::Crc32, &[0x83, 0x92, 0x06, 0xe3]),
        (Checksum::Crc64, &[0xfa, 0x39, 0x19, 0xdf, 0xbb, 0xc9, 0x5d, 0x99]),
        (Checksum::Adler32, &[0xde, 0x01, 0x1e, 0x09]),
        (Checksum::Sha1, &[0xf7, 0xc3, 0xbc, 0x1d]),
        (Checksum::Sha256, &[0x15, 0xe2, 0xb0, 0xd3]),
        (Checksum::Sha512, &[0xd9, 0xe6, 0x76, 0x2d]),
    ];

    #[test]
    fn check_values_of_the_catalogues() {
        for (kind, expected) in KINDS {
            let mut sum = vec![0; width(kind)];
            sum_chunk(kind, b"123456789", &mut sum);
            assert_eq!(sum[..expected.len()], *expected, "{kind:?}");
            assert_eq!(of_number(number(kind)), Some(kind));
        }
        assert_eq!(of_number(8), None);
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
        assert_eq!(small::crc32c_bitwise(0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(crc32c(0, b"1234"), b"56789"), 0xe306_9283);
    }

    #[test]
    fn copies_sum_like_sums_and_notice_every_chunk() {
        let data: Vec<u8> = (0..100_000u32).map(|number| ((number * 7) >> 3) as u8).collect();
        for (kind, _) in KINDS {
            for length in [0, 1, 64, 8192, 8193, 32768, 32769, 100_000] {
                let data = &data[..length];
                let mut sums = vec![0; width(kind) * chunks(length)];
                let mut copied = vec![0; length];
                copy_and_sum(kind, Flusher::of_processor(), &mut copied, data, &mut sums);
                assert_eq!(copied, data);
                let mut expected = sums.clone();
                sum_all(kind, data, &mut expected);
                assert_eq!(sums, expected);
                let mut back = vec![0; length];
                assert!(verifies(kind, data, &sums) && copy_and_verify(kind, data, &sums, &mut back));
                assert_eq!(back, data);
                for at in (0..length).step_by(9973) {
                    copied[at] ^= 0x10;
                    let is_noticed =
                        !verifies(kind, &copied, &sums) && !copy_and_verify(kind, &copied, &sums, &mut back);
                    assert_eq!(is_noticed, kind != Checksum::Off);
                    copied[at] ^= 0x10;
                }
            }
        }
    }
}
