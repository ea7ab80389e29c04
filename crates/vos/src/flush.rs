//! How stores to mapped memory become durable: cache lines are written back and a fence orders them; and the copies that do so at once.
#![allow(unsafe_code)]

/// How cache lines are written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flusher {
    /// `clwb`: written back, kept in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// `clflushopt`: written back and dropped, unordered.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// `clflush`: written back and dropped, in order.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// `dc cvac`: cleaned to the point of coherency.
    #[cfg(target_arch = "aarch64")]
    DcCvac,
    /// Not at all: caches are in the power-fail domain, a fence is enough.
    Fence,
    /// Neither flushed nor fenced: something else makes it durable.
    Nothing,
    /// Told to a disk of the tests that loses what was not flushed and fenced.
    #[cfg(test)]
    Recorded,
}

/// Size of a cache line.
const LINE_BYTES: usize = 64;

impl Flusher {
    /// The best that this processor has.
    pub(super) fn of_processor() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            // Leaf 7, EBX: bit 23 CLFLUSHOPT, bit 24 CLWB.
            let has_leaf = std::arch::x86_64::__get_cpuid_max(0).0 >= 7;
            let bits = if has_leaf { std::arch::x86_64::__cpuid_count(7, 0).ebx } else { 0 };
            match (bits >> 24 & 1, bits >> 23 & 1) {
                (1, _) => Self::Clwb,
                (_, 1) => Self::ClflushOpt,
                _ => Self::Clflush,
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            Self::DcCvac
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            Self::Fence
        }
    }

    /// In words, for records.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Clwb => "CPU flush (clwb)",
            #[cfg(target_arch = "x86_64")]
            Self::ClflushOpt => "CPU flush (clflushopt)",
            #[cfg(target_arch = "x86_64")]
            Self::Clflush => "CPU flush (clflush)",
            #[cfg(target_arch = "aarch64")]
            Self::DcCvac => "CPU flush (dc cvac)",
            Self::Fence => "fence (PMEM_NO_FLUSH=1: caches are assumed to survive a power failure)",
            Self::Nothing => "nothing until the store is closed",
            #[cfg(test)]
            Self::Recorded => "CPU flush of a test",
        }
    }

    /// Whether a copy should go around the cache.
    #[inline]
    pub(super) fn writes_back(self) -> bool {
        #[cfg(test)]
        if self == Self::Recorded {
            return false;
        }
        !matches!(self, Self::Fence | Self::Nothing)
    }

    /// Writes back the lines of a range of mapped memory.
    #[inline]
    pub(super) fn flush(self, bytes: &[u8]) {
        let from = bytes.as_ptr() as usize & !(LINE_BYTES - 1);
        let to = bytes.as_ptr() as usize + bytes.len();
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Clwb => {
                for line in (from..to).step_by(LINE_BYTES) {
                    // SAFETY: the line holds a byte of the slice; chosen only where CPUID tells of clwb.
                    unsafe {
                        std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags));
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::ClflushOpt => {
                for line in (from..to).step_by(LINE_BYTES) {
                    // SAFETY: as above, for clflushopt.
                    unsafe {
                        std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Clflush => {
                for line in (from..to).step_by(LINE_BYTES) {
                    // SAFETY: the line holds a byte of the slice; every x86-64 has clflush.
                    unsafe { std::arch::x86_64::_mm_clflush(line as *const u8) };
                }
            }
            #[cfg(target_arch = "aarch64")]
            Self::DcCvac => {
                for line in (from..to).step_by(LINE_BYTES) {
                    // SAFETY: the line holds a byte of the slice; user space may clean by address on Linux.
                    unsafe {
                        std::arch::asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags));
                    }
                }
            }
            Self::Fence | Self::Nothing => {}
            #[cfg(test)]
            Self::Recorded => super::cut::flushed(bytes),
        }
    }

    /// Orders what was flushed before what is stored after.
    #[inline]
    pub(super) fn fence(self) {
        match self {
            Self::Nothing => {}
            #[cfg(test)]
            Self::Recorded => super::cut::fenced(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: sfence is part of every x86-64.
            _ => unsafe { std::arch::x86_64::_mm_sfence() },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: a barrier has no operands.
            _ => unsafe { std::arch::asm!("dsb ish", options(nostack, preserves_flags)) },
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            _ => std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst),
        }
    }
}

/// Copies around the cache where both lengths and the destination allow it; what is at the edges is copied and flushed by `flusher`.
/// The destination is durable after the next fence.
#[inline]
pub(super) fn copy_durable(flusher: Flusher, into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len());
    #[cfg(target_arch = "x86_64")]
    if flusher.writes_back() && from.len() >= STREAM_BYTES_MIN {
        let head = into.as_ptr().align_offset(LINE_BYTES).min(into.len());
        let body = (into.len() - head) / LINE_BYTES * LINE_BYTES;
        into[..head].copy_from_slice(&from[..head]);
        flusher.flush(&into[..head]);
        stream(&mut into[head..head + body], &from[head..head + body]);
        into[head + body..].copy_from_slice(&from[head + body..]);
        flusher.flush(&into[head + body..]);
        return;
    }
    into.copy_from_slice(from);
    flusher.flush(into);
}

/// From this size on a copy goes around the cache.
#[cfg(target_arch = "x86_64")]
const STREAM_BYTES_MIN: usize = 512;

/// Copies whole lines to a line-aligned destination with non-temporal stores.
#[cfg(target_arch = "x86_64")]
#[inline]
fn stream(into: &mut [u8], from: &[u8]) {
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512F; lengths are equal multiples of a line and the destination is aligned to one.
        unsafe { stream_avx512(into.as_mut_ptr(), from.as_ptr(), into.len()) };
    } else {
        // SAFETY: SSE2 is part of x86-64; as above.
        unsafe { stream_sse2(into.as_mut_ptr(), from.as_ptr(), into.len()) };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_avx512(into: *mut u8, from: *const u8, bytes: usize) {
    use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_stream_si512};
    for at in (0..bytes).step_by(LINE_BYTES) {
        // SAFETY: the caller's ranges have `bytes` bytes, a multiple of the line; the destination is aligned.
        unsafe {
            let line = _mm512_loadu_si512(from.add(at).cast::<__m512i>());
            _mm512_stream_si512(into.add(at).cast::<__m512i>(), line);
        }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn stream_sse2(into: *mut u8, from: *const u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    for at in (0..bytes).step_by(16) {
        // SAFETY: as for the wider one.
        unsafe {
            let quarter = _mm_loadu_si128(from.add(at).cast::<__m128i>());
            _mm_stream_si128(into.add(at).cast::<__m128i>(), quarter);
        }
    }
}

/// Fetches the line of an address into the cache.
#[inline]
pub(super) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_whole_at_every_alignment() {
        let source: Vec<u8> = (0..5000u32).map(|number| number as u8 ^ (number >> 8) as u8).collect();
        for flusher in [Flusher::of_processor(), Flusher::Fence, Flusher::Nothing] {
            for (at, length) in [(0, 5000), (1, 700), (63, 513), (7, 4096), (3, 100), (64, 0)] {
                let mut into = vec![0xee; 5200];
                copy_durable(flusher, &mut into[at..at + length], &source[..length]);
                flusher.fence();
                assert_eq!(into[at..at + length], source[..length]);
                assert!(into[at + length..].iter().all(|&byte| byte == 0xee));
            }
        }
    }
}
