//! The page cache of the targets before a phase.

use std::fs::File;
use std::os::unix::fs::FileExt;

use driver::Error;
use rustix::fs::{Advice, fadvise};
use workload::spec::CachePolicy;
use workload::target::{TargetKind, TargetPlan};

/// Bytes read at once to warm the cache.
const CHUNK_BYTES: usize = 1 << 20;

/// Leaves, drops or warms the page cache of the targets' ranges.
///
/// # Errors
/// When a target cannot be opened, written back or read.
pub fn prepare(targets: &[TargetPlan], policy: CachePolicy) -> Result<(), Error> {
    let cached = |target: &&TargetPlan| matches!(target.kind, TargetKind::File | TargetKind::BlockDevice);
    for target in targets.iter().filter(cached) {
        let failed = |error: std::io::Error| {
            Error::system("cache", "cannot prepare the page cache", error).with("path", &target.path)
        };
        match policy {
            CachePolicy::Keep => {}
            CachePolicy::Drop => drop_cache(target).map_err(failed)?,
            CachePolicy::Warm => warm_cache(target).map_err(failed)?,
        }
    }
    Ok(())
}

fn drop_cache(target: &TargetPlan) -> std::io::Result<()> {
    let file = File::open(&target.path)?;
    // Dirty pages stay in the cache whatever the advice, so they are written back first.
    file.sync_data()?;
    let length = std::num::NonZeroU64::new(target.size_bytes);
    fadvise(&file, target.offset_bytes, length, Advice::DontNeed)?;
    Ok(())
}

fn warm_cache(target: &TargetPlan) -> std::io::Result<()> {
    let file = File::open(&target.path)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let end = target.offset_bytes + target.size_bytes;
    let mut offset = target.offset_bytes;
    while offset < end {
        let length = CHUNK_BYTES.min((end - offset) as usize);
        match file.read_at(&mut buffer[..length], offset)? {
            0 => break,
            read => offset += read as u64,
        }
    }
    Ok(())
}
