//! The page cache before a phase.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::Error;
use rustix::fs::{Advice, Mode, OFlags};
use units::{clean, path_of};

use crate::content::path_of as name_of;
use crate::operation::NameKind;
use crate::plan::FsPlan;
use crate::set::Shape;
use crate::stores::is_store;

/// File systems that keep their files in memory and nowhere else.
const MEMORY_FILESYSTEMS: &[&str] = &["tmpfs", "ramfs", "hugetlbfs"];

/// A note for each target that lies in memory: no storage is measured there.
pub(crate) fn in_memory(plan: &FsPlan) -> Vec<String> {
    let is_path = |target: &&String| plan.engine != "null" && !is_store(target);
    let mut targets: Vec<&String> = plan.targets.iter().filter(is_path).collect();
    targets.dedup();
    let note = |target: &String| {
        let place = host::TargetEnvironment::gather(&path_of(plan.root(target)));
        let kind = place.filesystem?.bottom().kind.clone();
        let is_memory = MEMORY_FILESYSTEMS.contains(&kind.as_str());
        is_memory.then(|| format!("{} lies in memory ({kind}): no storage is measured", clean(target)))
    };
    targets.into_iter().filter_map(note).collect()
}

/// Drops what the page cache holds of a file, if it is there.
///
/// # Errors
/// When an interruption ended it.
pub(crate) fn drop_file(path: &Path, interrupt: &AtomicBool) -> Result<(), Error> {
    if interrupt.load(Ordering::Relaxed) {
        let what = "interrupted while the page cache was dropped";
        return Err(Error::new(driver::ErrorKind::Run, "cache", what));
    }
    if let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        // Only clean pages are dropped.
        let synced = rustix::fs::fdatasync(&file);
        let _ = synced.and_then(|()| rustix::fs::fadvise(&file, 0, None, Advice::DontNeed));
    }
    Ok(())
}

/// Drops what the page cache holds of the files of a plan; a note where inodes and names stay in memory.
///
/// # Errors
/// When an interruption ended it.
pub(crate) fn drop_of(plan: &FsPlan, interrupt: &AtomicBool) -> Result<Option<String>, Error> {
    if plan.set.shape == Shape::Tree {
        rustix::fs::sync();
        // 3: pages, and inodes with their names.
        if std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
            return Ok(None);
        }
    }
    for rank in plan.ranks_here() {
        let items = if plan.set.shape == Shape::Tree { plan.set.items_of(rank, true) } else { 1 };
        for item in 0..items {
            drop_file(&path_of(&name_of(plan, NameKind::File, rank, item)), interrupt)?;
        }
    }
    let is_tree = plan.set.shape == Shape::Tree;
    Ok(is_tree.then(|| "the cache of inodes and names stays as it was: dropping it needs root".to_owned()))
}
