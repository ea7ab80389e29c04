//! AES rounds by table look-up (FIPS 197; one 1 KiB table, rotated for the other rows).

use super::{LANE_BYTES, RoundKeys, counter_block};

const S_BOX: [u8; 256] = s_box();
const ROUND_TABLE: [u32; 256] = round_table();

/// Multiplication by x in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
const fn double(value: u8) -> u8 {
    (value << 1) ^ (((value >> 7) & 1) * 0x1b)
}

/// `p` walks the powers of the generator 3 and `q` those of its inverse, so that q = 1/p at every step.
const fn s_box() -> [u8; 256] {
    let mut table = [0; 256];
    let (mut p, mut q) = (1u8, 1u8);
    loop {
        p ^= double(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        q ^= (q >> 7) * 0x09;
        let affine = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = affine ^ 0x63;
        if p == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
}

/// SubBytes and MixColumns of a byte in row 0 of its column.
const fn round_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let s = S_BOX[index];
        table[index] = u32::from_le_bytes([double(s), s, s, double(s) ^ s]);
        index += 1;
    }
    table
}

/// The four columns of a block.
type Columns = [u32; 4];

fn columns(block: u128) -> Columns {
    std::array::from_fn(|column| (block >> (32 * column)) as u32)
}

fn block(columns: Columns) -> u128 {
    columns.iter().rev().fold(0, |block, &column| block << 32 | u128::from(column))
}

/// One AES round as the x86 `aesenc` instruction defines it.
#[inline]
fn round(state: Columns, key: u128) -> Columns {
    let key = columns(key);
    std::array::from_fn(|column| {
        let at = |row: usize| {
            let byte = (state[(column + row) % 4] >> (8 * row)) as u8;
            ROUND_TABLE[usize::from(byte)].rotate_left(8 * row as u32)
        };
        at(0) ^ at(1) ^ at(2) ^ at(3) ^ key[column]
    })
}

#[cfg(test)]
pub(super) fn round_of_block(state: u128, key: u128) -> u128 {
    block(round(columns(state), key))
}

pub(super) fn lane(keys: &RoundKeys, counter: u128) -> u128 {
    let mut state = columns(counter ^ keys[0]);
    for &key in &keys[1..] {
        state = round(state, key);
    }
    block(state)
}

pub(super) fn fill(keys: &RoundKeys, buf: &mut [u8], generation: u64, first_lane: u64) {
    for (index, bytes) in (0..).zip(buf.chunks_mut(LANE_BYTES)) {
        let block = counter_block(generation, first_lane.wrapping_add(index));
        bytes.copy_from_slice(&lane(keys, block).to_le_bytes()[..bytes.len()]);
    }
}
