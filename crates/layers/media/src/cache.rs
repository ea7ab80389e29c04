//! The page cache of the targets before a phase.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::spec::CachePolicy;
use driver::{Error, ErrorKind};
use rustix::fs::{Advice, fadvise};
use workload::target::TargetPlan;

/// Bytes read at once to warm the cache.
const CHUNK_BYTES: usize = 1 << 20;

/// Leaves, drops or warms the page cache of the targets' ranges.
///
/// # Errors
/// When a target cannot be opened, written back or read, and when `stop` is set in the middle of it.
pub fn prepare(targets: &[TargetPlan], policy: CachePolicy, stop: &AtomicBool) -> Result<(), Error> {
    let cached = |target: &&TargetPlan| target.kind.is_local_storage();
    for target in targets.iter().filter(cached) {
        let failed = |error: std::io::Error| {
            Error::system("cache", "cannot prepare the page cache", error).with("path", &target.path)
        };
        match policy {
            CachePolicy::Keep => {}
            CachePolicy::Drop => drop_cache(target).map_err(failed)?,
            CachePolicy::Warm => warm_cache(target, stop).map_err(failed)?,
        }
        if policy != CachePolicy::Keep && stop.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Run, "cache", "interrupted while the page cache was prepared"));
        }
    }
    Ok(())
}

fn drop_cache(target: &TargetPlan) -> std::io::Result<()> {
    let file = File::open(target.place())?;
    // Dirty pages stay in the cache whatever the advice, so they are written back first.
    file.sync_data()?;
    let length = std::num::NonZeroU64::new(target.size_bytes);
    fadvise(&file, target.offset_bytes, length, Advice::DontNeed)?;
    Ok(())
}

fn warm_cache(target: &TargetPlan, stop: &AtomicBool) -> std::io::Result<()> {
    let file = File::open(target.place())?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let end = target.offset_bytes + target.size_bytes;
    let mut offset = target.offset_bytes;
    while offset < end && !stop.load(Ordering::Relaxed) {
        let length = CHUNK_BYTES.min((end - offset) as usize);
        match file.read_at(&mut buffer[..length], offset)? {
            0 => break,
            read => offset += read as u64,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_ends_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, vec![1; 2 * CHUNK_BYTES]).unwrap();
        let targets = [TargetPlan {
            path: path.to_string_lossy().into_owned(),
            kind: workload::target::TargetKind::File,
            offset_bytes: 0,
            size_bytes: 2 * CHUNK_BYTES as u64,
            direct_alignment_bytes: 0,
        }];
        for policy in [CachePolicy::Drop, CachePolicy::Warm] {
            prepare(&targets, policy, &AtomicBool::new(false)).unwrap();
            let error = prepare(&targets, policy, &AtomicBool::new(true)).unwrap_err();
            assert_eq!(error.to_string(), "cache: interrupted while the page cache was prepared");
        }
        prepare(&targets, CachePolicy::Keep, &AtomicBool::new(true)).unwrap();
    }
}
