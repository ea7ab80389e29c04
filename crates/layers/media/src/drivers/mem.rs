//! `mem`: the worker's own memory. What the copy alone can give: the ceiling of every other driver.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::engine::MemoryOperation;
use driver::{Arena, Capabilities, Error, ErrorKind, Opened, Registration};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use workload::target::{TargetKind, TargetPlan};

use crate::descriptor::{self, Bounds, INVALID, UNSUPPORTED};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "mem";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["read", "write", "nop"],
    asynchronous: false,
    depth_max: 1,
    targetless: true,
    direct: false,
    options: &["memory-operation"],
};

/// Byte that [`MemoryOperation::Fill`] stores: neither zero nor a pattern that a memory controller elides.
const FILL: u8 = 0xa5;

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "copies, fills or reads the worker's own memory: an upper bound",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let regions = request.targets.iter().map(Region::map).collect::<Result<Vec<_>, _>>()?;
    let driver = Memory {
        regions,
        arena: Arc::clone(&request.arena),
        bounds: Bounds::new(request),
        operation: request.options.memory_operation,
        sum: best_sum(),
    };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

/// The memory that stands for one target.
pub(super) struct Region {
    base: NonNull<u8>,
    size_bytes: usize,
    offset_bytes: u64,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Region {}

impl Region {
    pub(super) fn map(target: &TargetPlan) -> Result<Self, Error> {
        if target.kind != TargetKind::Memory {
            return Err(Error::usage("open", "engine mem works on memory, not on a file or a device")
                .with("target", &target.path)
                .remedy("use mem: as the target, or choose another engine"));
        }
        let size_bytes = usize::try_from(target.size_bytes).unwrap_or(usize::MAX);
        if size_bytes == 0 {
            return Err(Error::usage("open", "memory of 0 bytes").remedy("give a size"));
        }
        if let Some(available_bytes) = available_bytes().filter(|&bytes| bytes < target.size_bytes) {
            return Err(Error::new(ErrorKind::System, "open", "there is not enough free memory")
                .with("bytes", size_bytes)
                .with("available_bytes", available_bytes)
                .remedy("use a smaller size or fewer threads"));
        }
        // Populated, so that the run measures memory and not page faults.
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let address = unsafe {
            mmap_anonymous(std::ptr::null_mut(), size_bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
        }
        .map_err(|errno| {
            Error::system("open", "cannot map the memory", errno)
                .with("bytes", size_bytes)
                .remedy("use a smaller size or fewer threads")
        })?;
        let base = NonNull::new(address.cast::<u8>())
            .ok_or_else(|| Error::new(ErrorKind::System, "open", "the kernel mapped memory at address 0"))?;
        Ok(Self { base, size_bytes, offset_bytes: target.offset_bytes })
    }

    /// Where it begins, and its length in bytes.
    pub(super) fn whole(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.size_bytes)
    }

    /// Address and length of what the region holds of a range: 0 bytes from its end on.
    #[inline]
    pub(super) fn part(&self, offset: u64, length: u32) -> Option<(*mut u8, usize)> {
        let start = usize::try_from(offset.checked_sub(self.offset_bytes)?).ok()?;
        let length = self.size_bytes.saturating_sub(start).min(length as usize);
        // SAFETY: the start is cut to the end of the mapping.
        Some((unsafe { self.base.as_ptr().add(start.min(self.size_bytes)) }, length))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing points into it any more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.size_bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Memory that can be had without swapping, as the kernel reckons it.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

struct Memory {
    regions: Vec<Region>,
    arena: Arc<Arena>,
    bounds: Bounds,
    operation: MemoryOperation,
    sum: fn(&[u8]) -> u64,
}

impl CarryOut for Memory {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        if !matches!(operation.class, MediaClass::Read | MediaClass::Write) {
            return if operation.class == MediaClass::Nop { 0 } else { UNSUPPORTED };
        }
        let region = &self.regions[usize::from(operation.target)];
        let Some((memory, length)) = region.part(operation.offset, operation.length) else { return INVALID };
        let buffer = self.arena.slot_ptr(operation.slot);
        match (operation.class, self.operation) {
            (MediaClass::Read, MemoryOperation::Read) => {
                // SAFETY: inside the region by `part`; nobody writes it meanwhile.
                black_box((self.sum)(unsafe { std::slice::from_raw_parts(memory, length) }));
            }
            // SAFETY: inside the region by `part`, inside the slot by the bounds; the two are different mappings.
            (MediaClass::Read, _) => unsafe { memory.copy_to_nonoverlapping(buffer, length) },
            (_, _) if length == 0 && operation.length > 0 => return -i64::from(libc::ENOSPC),
            // SAFETY: inside the region by `part`.
            (_, MemoryOperation::Fill) => unsafe { memory.write_bytes(FILL, length) },
            // SAFETY: as for the copy that reads.
            (_, _) => unsafe { memory.copy_from_nonoverlapping(buffer, length) },
        }
        length as i64
    }
}

/// Sum of the bytes of a buffer, taken as words: loads everything, keeps nothing.
#[inline(always)]
fn sum_words(bytes: &[u8]) -> u64 {
    let mut lanes = [0_u64; 16];
    let (chunks, rest) = bytes.as_chunks::<128>();
    for chunk in chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.as_chunks::<8>().0) {
            *lane = lane.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    let tail = rest.iter().fold(0_u64, |sum, &byte| sum.wrapping_add(u64::from(byte)));
    lanes.iter().fold(tail, |sum, &lane| sum.wrapping_add(lane))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_words_avx2(bytes: &[u8]) -> u64 {
    sum_words(bytes)
}

/// The widest loads that this processor has.
fn best_sum() -> fn(&[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return |bytes| unsafe { sum_words_avx2(bytes) };
    }
    |bytes| sum_words(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_loads_every_byte() {
        for sum in [sum_words as fn(&[u8]) -> u64, best_sum()] {
            assert_eq!(sum(&[]), 0);
            assert_eq!(sum(&[3, 4]), 7);
            // 16 words of 0x0101..01, then one odd byte.
            assert_eq!(sum(&[1; 129]), 16 * 0x0101_0101_0101_0101 + 1);
        }
    }

    #[test]
    fn the_kernel_tells_available_memory() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
