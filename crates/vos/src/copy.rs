//! Copies out of the log.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256i, __m512i, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
};

/// A processor fetches ahead within a page, and few lines of one stream at a time: several streams keep more of memory busy than one.
#[cfg(target_arch = "x86_64")]
const STREAMS: usize = 4;
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;
/// Streams that begin a power of two apart share sets of the cache; these lines less in each keep them apart.
#[cfg(target_arch = "x86_64")]
const LINES_LESS: usize = 9;
/// Below this a copy ends before it could gain.
#[cfg(target_arch = "x86_64")]
const BYTES_MIN: usize = 32 << 10;

/// Copies from memory that is in no cache, as large values of a log are.
#[inline]
pub(super) fn copy_out(into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    let done = copied_in_streams(into, from);
    into[done..].copy_from_slice(&from[done..]);
}

/// Copies the begin of a long slice in streams, as this processor can; the bytes that are copied.
#[cfg(target_arch = "x86_64")]
#[inline]
fn copied_in_streams(into: &mut [u8], from: &[u8]) -> usize {
    if from.len() < BYTES_MIN {
        return 0;
    }
    let stream_bytes = (from.len() / (STREAMS * LINE_BYTES) - LINES_LESS) * LINE_BYTES;
    let (to, source) = (into.as_mut_ptr(), from.as_ptr());
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512F; both hold that many streams, and do not overlap.
        unsafe { in_streams_of_avx512(to, source, stream_bytes) };
    } else if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; else as above.
        unsafe { in_streams_of_avx2(to, source, stream_bytes) };
    } else {
        return 0;
    }
    STREAMS * stream_bytes
}

#[cfg(not(target_arch = "x86_64"))]
fn copied_in_streams(_into: &mut [u8], _from: &[u8]) -> usize {
    0
}

/// A copy of streams, which lie one behind the other, a line of each in turns, by registers of `$register` and the instructions for them.
#[cfg(target_arch = "x86_64")]
macro_rules! in_streams {
    ($name:ident, $feature:literal, $register:ty, $load:ident, $store:ident) => {
        #[target_feature(enable = $feature)]
        unsafe fn $name(into: *mut u8, from: *const u8, stream_bytes: usize) {
            for line in (0..stream_bytes).step_by(LINE_BYTES) {
                for stream in 0..STREAMS {
                    for part in (0..LINE_BYTES).step_by(size_of::<$register>()) {
                        let at = stream * stream_bytes + line + part;
                        // SAFETY: a part of a line of a stream, all of which the caller vouches for on both sides.
                        unsafe {
                            $store(into.add(at).cast::<$register>(), $load(from.add(at).cast::<$register>()))
                        };
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
in_streams!(in_streams_of_avx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_storeu_si512);
#[cfg(target_arch = "x86_64")]
in_streams!(in_streams_of_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256);

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

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn streams_of_every_kind_copy_what_they_are_given() {
        let source: Vec<u8> = (0..70_001u32).map(|number| ((number * 7) >> 5) as u8).collect();
        let stream_bytes = 100 * LINE_BYTES;
        let bytes = STREAMS * stream_bytes;
        type Copy = unsafe fn(*mut u8, *const u8, usize);
        let kinds: [(bool, Copy); 2] = [
            (std::arch::is_x86_feature_detected!("avx512f"), in_streams_of_avx512),
            (std::arch::is_x86_feature_detected!("avx2"), in_streams_of_avx2),
        ];
        for (_, copy) in kinds.into_iter().filter(|(is_there, _)| *is_there) {
            let mut into = vec![0xee; bytes + 2];
            // SAFETY: the processor has it; both hold the streams, which begin at odd places.
            unsafe { copy(into.as_mut_ptr().add(1), source.as_ptr().add(3), stream_bytes) };
            assert!(into[1..=bytes] == source[3..bytes + 3]);
            assert_eq!((into[0], into[bytes + 1]), (0xee, 0xee));
        }
    }
}
