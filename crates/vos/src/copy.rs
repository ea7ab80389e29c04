//! Copies out of the log.
#![allow(unsafe_code)]

/// A processor fetches ahead within a page, and few lines of one stream at a time: several streams keep more of memory busy than one.
#[cfg(target_arch = "x86_64")]
const STREAMS: usize = 4;
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;
/// Below this a copy ends before it could gain.
#[cfg(target_arch = "x86_64")]
const BYTES_MIN: usize = 32 << 10;

/// Copies from memory that is in no cache, as large values of a log are.
#[inline]
pub(super) fn copy_out(into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if from.len() >= BYTES_MIN && std::arch::is_x86_feature_detected!("avx512f") {
        let stream_bytes = from.len() / (STREAMS * LINE_BYTES) * LINE_BYTES;
        // SAFETY: the processor has AVX-512F; both hold that many streams, and do not overlap.
        unsafe { in_streams(into.as_mut_ptr(), from.as_ptr(), stream_bytes) };
        done = STREAMS * stream_bytes;
    }
    into[done..].copy_from_slice(&from[done..]);
}

/// Copies the streams, which lie one behind the other, a line of each in turns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn in_streams(into: *mut u8, from: *const u8, stream_bytes: usize) {
    use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_storeu_si512};
    for line in (0..stream_bytes).step_by(LINE_BYTES) {
        for stream in 0..STREAMS {
            let at = stream * stream_bytes + line;
            // SAFETY: a line of a stream, all of which the caller vouches for on both sides.
            unsafe {
                let part = _mm512_loadu_si512(from.add(at).cast::<__m512i>());
                _mm512_storeu_si512(into.add(at).cast::<__m512i>(), part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_whole_at_every_size_and_alignment() {
        let source: Vec<u8> = (0..300_000u32).map(|number| ((number * 7) >> 5) as u8).collect();
        for (at, length) in
            [(0, 0), (3, 100), (0, 32_768), (1, 32_769), (63, 65_535), (7, 262_144), (0, 299_999)]
        {
            let mut into = vec![0xee; length + 2];
            copy_out(&mut into[1..=length], &source[at..at + length]);
            assert!(into[1..=length] == source[at..at + length], "{at} {length}");
            assert_eq!((into[0], into[length + 1]), (0xee, 0xee));
        }
    }
}
