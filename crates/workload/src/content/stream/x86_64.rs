//! AES rounds by AES-NI and VAES: eight registers in flight hide the latency of the round instruction.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Backend, LANE_BYTES, Stream, counter_block};

/// Fills `buf` from lane `first_lane` on with the stream's backend.
pub(super) fn fill(stream: &Stream, buf: &mut [u8], generation: u64, first_lane: u64) {
    let keys = &stream.keys;
    // SAFETY: a Stream holds a backend only after `Backend::is_available` found its instructions here.
    unsafe {
        match stream.backend {
            Backend::Vaes512 => vaes512(keys, buf, generation, first_lane),
            Backend::Vaes256 => vaes256(keys, buf, generation, first_lane),
            _ => aes_ni(keys, buf, generation, first_lane),
        }
    }
}

/// One lane by AES-NI, which every processor with VAES has too.
#[inline]
pub(super) fn lane(stream: &Stream, generation: u64, lane: u64) -> [u8; LANE_BYTES] {
    // SAFETY: a Stream has a backend other than portable only where the processor has AES-NI.
    unsafe { one_lane(&stream.keys, counter_block(generation, lane)) }.to_le_bytes()
}

#[inline]
#[target_feature(enable = "aes")]
fn one_lane(keys: &[u128; 5], block: u128) -> u128 {
    let vector = |value: u128| _mm_set_epi64x((value >> 64) as i64, value as i64);
    let mut state = vector(block ^ keys[0]);
    for &key in &keys[1..] {
        state = _mm_aesenc_si128(state, vector(key));
    }
    let low = _mm_cvtsi128_si64(state) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(state, state)) as u64;
    u128::from(low) | u128::from(high) << 64
}

/// A filler for one register width: the loop is the same, the intrinsics differ.
macro_rules! filler {
    ($name:ident, $features:literal, $lanes:literal, $broadcast:expr, $count:expr, $add:ident, $xor:ident,
     $round:ident, $store:expr) => {
        #[target_feature(enable = $features)]
        fn $name(keys: &[u128; 5], buf: &mut [u8], generation: u64, first_lane: u64) {
            const REGISTER_BYTES: usize = $lanes * LANE_BYTES;
            const IN_FLIGHT: usize = 8;
            let keys = keys.map($broadcast);
            let step = $broadcast($lanes);
            let mut counter = $add($broadcast(counter_block(generation, first_lane)), $count);

            let mut batches = buf.chunks_exact_mut(IN_FLIGHT * REGISTER_BYTES);
            for batch in &mut batches {
                let mut states = [counter; IN_FLIGHT];
                for state in &mut states {
                    *state = $xor(counter, keys[0]);
                    counter = $add(counter, step);
                }
                for key in &keys[1..] {
                    for state in &mut states {
                        *state = $round(*state, *key);
                    }
                }
                for (register, state) in batch.chunks_exact_mut(REGISTER_BYTES).zip(states) {
                    // SAFETY: the chunk is exactly one register long and the store needs no alignment.
                    unsafe { $store(register.as_mut_ptr(), state) };
                }
            }
            let one = |counter| {
                let mut state = $xor(counter, keys[0]);
                for key in &keys[1..] {
                    state = $round(state, *key);
                }
                state
            };
            let mut registers = batches.into_remainder().chunks_exact_mut(REGISTER_BYTES);
            for register in &mut registers {
                // SAFETY: the chunk is exactly one register long and the store needs no alignment.
                unsafe { $store(register.as_mut_ptr(), one(counter)) };
                counter = $add(counter, step);
            }
            let tail = registers.into_remainder();
            if !tail.is_empty() {
                let mut bytes = [0u8; REGISTER_BYTES];
                // SAFETY: `bytes` is exactly one register long and the store needs no alignment.
                unsafe { $store(bytes.as_mut_ptr(), one(counter)) };
                tail.copy_from_slice(&bytes[..tail.len()]);
            }
        }
    };
}

filler!(
    aes_ni,
    "aes",
    1,
    |value: u128| _mm_set_epi64x((value >> 64) as i64, value as i64),
    _mm_setzero_si128(),
    _mm_add_epi64,
    _mm_xor_si128,
    _mm_aesenc_si128,
    |at: *mut u8, value| _mm_storeu_si128(at.cast(), value)
);

filler!(
    vaes256,
    "aes,vaes,avx2",
    2,
    |value: u128| {
        let (high, low) = ((value >> 64) as i64, value as i64);
        _mm256_set_epi64x(high, low, high, low)
    },
    _mm256_set_epi64x(0, 1, 0, 0),
    _mm256_add_epi64,
    _mm256_xor_si256,
    _mm256_aesenc_epi128,
    |at: *mut u8, value| _mm256_storeu_si256(at.cast(), value)
);

filler!(
    vaes512,
    "aes,vaes,avx512f",
    4,
    |value: u128| {
        let (high, low) = ((value >> 64) as i64, value as i64);
        _mm512_set_epi64(high, low, high, low, high, low, high, low)
    },
    _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0),
    _mm512_add_epi64,
    _mm512_xor_si512,
    _mm512_aesenc_epi128,
    |at: *mut u8, value| _mm512_storeu_si512(at.cast(), value)
);
