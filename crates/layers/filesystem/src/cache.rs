//! Caches before a phase.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dfs::FileSystem;
use dfs::mounts::Mount;
use driver::Error;
use rustix::fs::{Advice, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
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
        is_memory.then(|| format!("{} is in memory ({kind}): no storage is measured", clean(target)))
    };
    targets.into_iter().filter_map(note).collect()
}

/// Drops what the page cache holds of a file, if it is there.
///
/// # Errors
/// When an interruption ended it.
pub(crate) fn drop_file(path: &Path, interrupt: &AtomicBool) -> Result<(), Error> {
    if interrupt.load(Ordering::Relaxed) {
        let what = "interrupted while dropping the page cache";
        return Err(Error::new(driver::ErrorKind::Run, "cache", what));
    }
    if let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        // Only clean pages are dropped.
        let synced = rustix::fs::fdatasync(&file);
        let _ = synced.and_then(|()| rustix::fs::fadvise(&file, 0, None, Advice::DontNeed));
    }
    Ok(())
}

/// Drops what the memory of a store keeps of its data.
///
/// # Errors
/// When the store could not make them durable, or does not answer.
pub(crate) fn drop_store(store: &dyn FileSystem) -> Result<(), Error> {
    match store.drop_cache() {
        // Others' engines keep what they keep.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(Error::system("cache", "cannot drop the cache of the store", errno)),
    }
}

/// Drops what memory keeps of the files of a plan: the page cache, and that of the stores, or of the mounts of strata that the files are in. A note
/// for each that is left.
///
/// # Errors
/// When an interruption ended it, or a store failed.
pub(crate) fn drop_of(
    plan: &FsPlan,
    stores: &[Arc<dyn FileSystem>],
    interrupt: &AtomicBool,
) -> Result<Vec<String>, Error> {
    if plan.engine == "dfs" {
        return stores.iter().try_for_each(|store| drop_store(&**store)).map(|()| Vec::new());
    }
    let mut notes = Vec::from_iter(drop_files(plan, interrupt)?);
    // Once the kernel has written back what it had.
    let mounts = dfs::mounts::mounts().unwrap_or_default();
    let mut roots: Vec<_> = plan.targets.iter().filter_map(|target| mount_of(target, &mounts)).collect();
    roots.dedup();
    for root in roots {
        let told = rustix::fs::setxattr(root, mount::CACHE_ATTRIBUTE, mount::CACHE_DROP, XattrFlags::empty());
        notes.extend(told.err().map(|errno| {
            let root = clean(&root.to_string_lossy()).into_owned();
            format!("the store behind the mount {root} did not drop its memory cache: {errno}")
        }));
    }
    Ok(notes)
}

/// The mount of strata that a target is in.
fn mount_of<'a>(target: &str, mounts: &'a [Mount]) -> Option<&'a Path> {
    let path = path_of(target);
    let path = path.ancestors().find_map(|path| path.canonicalize().ok())?;
    let covering = mounts.iter().filter(|mount| path.starts_with(&mount.directory));
    let mount = covering.max_by_key(|mount| mount.directory.as_os_str().len())?;
    mount.is_strata().then_some(mount.directory.as_path())
}

/// Drops what the page cache holds of the files of a plan; a note where inodes and names stay in memory.
fn drop_files(plan: &FsPlan, interrupt: &AtomicBool) -> Result<Option<String>, Error> {
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
    Ok(is_tree.then(|| "the inode and name cache was not dropped: this requires root".to_owned()))
}
