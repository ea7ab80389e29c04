//! AES rounds by the AArch64 cryptography extension.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::{LANE_BYTES, Stream, counter_block};

/// Fills `buf` from lane `first_lane` on.
pub(super) fn fill(stream: &Stream, buf: &mut [u8], generation: u64, first_lane: u64) {
    // SAFETY: a Stream holds this backend only after `Backend::is_available` found the instructions here.
    unsafe { arm_aes(&stream.keys, buf, generation, first_lane) }
}

/// `AESE` adds its key before SubBytes and ShiftRows where x86's `aesenc` adds it after MixColumns, so the keys enter
/// one instruction earlier and the last is added alone.
#[target_feature(enable = "aes")]
fn arm_aes(keys: &[u128; 5], buf: &mut [u8], generation: u64, first_lane: u64) {
    const IN_FLIGHT: usize = 8;
    let keys = keys.map(|key| vector(key));
    let mut lane = first_lane;
    for batch in buf.chunks_mut(IN_FLIGHT * LANE_BYTES) {
        let mut states = [keys[0]; IN_FLIGHT];
        for state in &mut states {
            *state = vector(counter_block(generation, lane));
            lane = lane.wrapping_add(1);
        }
        for key in &keys[..4] {
            for state in &mut states {
                *state = vaesmcq_u8(vaeseq_u8(*state, *key));
            }
        }
        for (bytes, state) in batch.chunks_mut(LANE_BYTES).zip(states) {
            let mut made = [0u8; LANE_BYTES];
            // SAFETY: `made` is exactly one register long and the store needs no alignment.
            unsafe { vst1q_u8(made.as_mut_ptr(), veorq_u8(state, keys[4])) };
            bytes.copy_from_slice(&made[..bytes.len()]);
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn vector(value: u128) -> uint8x16_t {
    vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(value as u64), vcreate_u64((value >> 64) as u64)))
}
