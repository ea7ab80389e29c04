//! Making and removing pools. The superblock gets its name last: a pool without it was never finished, and holds nothing.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use driver::{Error, ErrorKind};
use rustix::fs::FallocateFlags;

use super::access::access_of;
use super::containers::Table;
use super::opening::open_targets;
use super::settled::{self, SETTLED_FILE};
use super::storage_target::file_error;
use super::superblock::{self, CONTAINERS_FILE, Lock, Superblock, target_dir};
use super::{Pool, PoolOptions, files};

/// Superblock of a pool that is being made, or was not finished.
const UNFINISHED_FILE: &str = "superblock.partial";
/// Space of the file system that is kept back for the table of containers.
pub(super) const RESERVE_FILE: &str = "reserve";
/// Its size in bytes.
const RESERVE_BYTES: u64 = 256 << 10;
/// Files in the directory of a pool, and of a target.
const OWN_FILES: [&str; 6] =
    [CONTAINERS_FILE, "containers.partial", RESERVE_FILE, SETTLED_FILE, UNFINISHED_FILE, superblock::FILE];
const TARGET_FILES: [&str; 6] = ["log", "data", "index", "index.partial", "loose", "loose.partial"];

/// Content of a directory that a pool may be made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No pool.
    None,
    /// One whose making was cut off: it holds nothing, and goes when another is made or with [`Pool::destroy`].
    Unfinished,
    /// A pool, with so many containers; none where their table cannot be read.
    Made {
        /// Containers.
        containers: Option<usize>,
    },
}

/// Shape that a pool was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Targets.
    pub targets: u32,
    /// Log of all targets together, in bytes.
    pub scm_bytes: u64,
    /// Data files of all targets together, in bytes; 0: none.
    pub nvme_bytes: u64,
    /// Values from this size on are in the data file, in bytes.
    pub threshold_bytes: u64,
}

impl Pool {
    /// Shape of the pool in `dir`; none where there is none that this release reads. Opens and locks nothing.
    #[must_use]
    pub fn layout(dir: &Path) -> Option<Layout> {
        let path = dir.join(superblock::FILE);
        let superblock = Superblock::decode(&std::fs::read(&path).ok()?, &path).ok()?;
        let targets = u64::from(superblock.targets);
        Some(Layout {
            targets: superblock.targets,
            scm_bytes: superblock.segment_bytes * u64::from(superblock.segments) * targets,
            nvme_bytes: superblock.nvme_bytes * targets,
            threshold_bytes: superblock.threshold_bytes,
        })
    }

    /// Makes a pool in `dir` (made if it is not there, empty if it is) and opens it. What is left of one that was not finished goes.
    ///
    /// # Errors
    /// There is one already, the directory holds other files, sizes too small, no space.
    pub fn create(dir: &Path, options: &PoolOptions) -> Result<Self, Error> {
        let superblock = Superblock::plan(options)?;
        refuse_standing(dir)?;
        if host::target::is_missing_device(dir) {
            let what = "no such device: /dev is for devices, so no pool can be created there";
            return Err(Error::usage("pool", what)
                .with("path", dir.display())
                .remedy("use another directory; /dev/shm is in memory"));
        }
        let is_made = !dir.exists();
        files::make_directories(dir)
            .map_err(|error| file_error("cannot create the directory", dir, error))?;
        if standing(dir) == Standing::None
            && let Some(other) = entries(dir)?.first()
        {
            return Err(others(other));
        }
        let access = access_of(dir, options.open.flush)?;
        let lock = begin(dir, &superblock)?;
        let made = (|| {
            for target in 0..superblock.targets {
                let target = target_dir(dir, target);
                files::make_directory(&target)
                    .map_err(|error| file_error("cannot create the directory", &target, error))?;
            }
            let path = dir.join(RESERVE_FILE);
            keep_back(dir)
                .map_err(|error| file_error("cannot reserve space for its tables", &path, error))?;
            let containers = Table::new(dir);
            containers.write_or_error()?;
            settled::make(dir, 0)?;
            let opened = open_targets(dir, &superblock, &options.open, access, &containers, true)?;
            finish(dir)?;
            Ok((opened, containers))
        })();
        match made {
            Ok((opened, containers)) => {
                Self::assemble(dir, superblock, opened, containers, lock, &options.open)
            }
            Err(error) => {
                remove_all(dir, is_made);
                Err(error)
            }
        }
    }

    /// Whether there is a pool in `dir`, of any version. One that was not finished is none.
    #[must_use]
    pub fn exists(dir: &Path) -> bool {
        matches!(standing(dir), Standing::Made { .. })
    }

    /// Whether what is in `dir` is what is left of a pool of this UUID that was not finished: its superblock says so, or the directory
    /// has nothing in it but an empty one. False where there is no directory.
    #[must_use]
    pub fn is_begun(dir: &Path, uuid: &str) -> bool {
        let Ok(found) = entries(dir) else { return false };
        let path = dir.join(UNFINISHED_FILE);
        if found.is_empty() {
            return true;
        }
        if dir.join(superblock::FILE).exists() || standing(dir) != Standing::Unfinished {
            return false;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        match Superblock::decode(&bytes, &path) {
            Ok(superblock) => superblock.uuid_text() == uuid,
            Err(_) => bytes.is_empty() && found.len() == 1,
        }
    }

    /// Removes what [`Pool::is_begun`] found.
    ///
    /// # Errors
    /// A process is making it, files that cannot be removed.
    pub fn destroy_begun(dir: &Path) -> Result<(), Error> {
        if entries(dir)?.is_empty() {
            return files::remove_directory(dir)
                .map_err(|error| file_error("cannot remove the directory", dir, error));
        }
        Self::destroy(dir)
    }

    /// Whether other users of the machine may read what is in `dir`: pools are made so that they may not, but modes can be changed.
    #[must_use]
    pub fn is_readable_by_others(dir: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let mode = |path: &Path| std::fs::metadata(path).map_or(0, |facts| facts.mode());
        mode(dir) & 0o011 != 0 && mode(&dir.join(superblock::FILE)) & 0o044 != 0
    }

    /// Content of `dir`. Opens nothing.
    #[must_use]
    pub fn standing(dir: &Path) -> Standing {
        standing(dir)
    }

    /// Removes the pool in `dir`: its own files, and the directory if nothing else is in it. One that was not finished, is damaged or of
    /// another version goes, too.
    ///
    /// # Errors
    /// There is none, another process has it open, files that cannot be removed.
    pub fn destroy(dir: &Path) -> Result<(), Error> {
        let named = match standing(dir) {
            Standing::Unfinished if !dir.join(superblock::FILE).exists() => UNFINISHED_FILE,
            _ => superblock::FILE,
        };
        let path = dir.join(named);
        let _lock = Superblock::lock_at(&path, dir)?;
        if named == superblock::FILE && standing(dir) != Standing::Unfinished {
            Superblock::check_magic(&path)?;
        }
        remove_pool(dir)
    }
}

/// Removes the files of a pool whose lock is held.
pub(super) fn remove_pool(dir: &Path) -> Result<(), Error> {
    remove_all(dir, true);
    if dir.join(superblock::FILE).exists() || dir.join(UNFINISHED_FILE).exists() {
        return Err(Error::new(ErrorKind::System, "pool", "the pool could not be removed")
            .with("path", dir.display())
            .remedy("check the permissions of its files"));
    }
    Ok(())
}

fn refuse_standing(dir: &Path) -> Result<(), Error> {
    match standing(dir) {
        Standing::Made { .. } => Err(Error::usage("pool", "the directory already contains a pool")
            .with("path", dir.display())
            .remedy("open it, destroy it first (strata pool destroy), or use another directory")),
        Standing::None | Standing::Unfinished => Ok(()),
    }
}

fn others(path: &Path) -> Error {
    Error::new(ErrorKind::Unsafe, "pool", "the directory contains other files")
        .with("path", path.display())
        .remedy("use an empty or new directory")
}

fn standing(dir: &Path) -> Standing {
    let superblock = dir.join(superblock::FILE);
    // Releases before made the file first, and wrote it last.
    let is_blank = std::fs::read(&superblock).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    if superblock.is_file() && !is_blank {
        let containers = Table::read(dir).ok().map(|table| table.rows.len());
        return Standing::Made { containers };
    }
    let is_begun = is_blank || dir.join(UNFINISHED_FILE).is_file();
    // Nothing but what a pool makes: else it is somebody else's directory.
    let is_own = || entries(dir).is_ok_and(|entries| entries.iter().all(|path| is_own(path)));
    if is_begun && is_own() { Standing::Unfinished } else { Standing::None }
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = std::fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    read.map_err(|error| file_error("cannot read the directory", dir, error))
}

fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    OWN_FILES.contains(&name) || is_target(path)
}

fn is_target(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("target.").is_some_and(|number| number.parse::<u32>().is_ok()) && path.is_dir()
}

/// Takes the lock of a pool that is made, and clears away what is left of one before. What it is going to be is on disk before the rest of it.
fn begin(dir: &Path, superblock: &Superblock) -> Result<Lock, Error> {
    let path = dir.join(UNFINISHED_FILE);
    let failed = |error| file_error("cannot create the superblock", &path, error);
    let opened = if path.exists() {
        OpenOptions::new().read(true).write(true).open(&path)
    } else {
        files::make(&path)
    };
    let mut lock = superblock::lock(opened.map_err(failed)?, dir)?;
    // Another process may have finished it meanwhile.
    refuse_standing(dir)?;
    for path in own_paths(dir).into_iter().filter(|own| *own != path) {
        remove(&path);
    }
    lock.0.set_len(0).map_err(failed)?;
    lock.0.write_all(&superblock.encode()).map_err(failed)?;
    files::sync(&lock.0, &path).map_err(failed)?;
    files::sync_directory(dir).map_err(failed)?;
    Ok(lock)
}

/// Gives the superblock its name, which makes the directory a pool.
fn finish(dir: &Path) -> Result<(), Error> {
    let (partial, path) = (dir.join(UNFINISHED_FILE), dir.join(superblock::FILE));
    // All other names in it first.
    let named = files::sync_directory(dir).and_then(|()| files::rename(&partial, &path));
    named.map_err(|error| file_error("cannot write the superblock", &path, error))
}

/// Keeps space of the file system back for the table of containers, where it is not kept yet.
pub(super) fn keep_back(dir: &Path) -> std::io::Result<()> {
    let path = dir.join(RESERVE_FILE);
    if path.exists() {
        return Ok(());
    }
    let file = files::make(&path)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
        // File systems without it have no space to keep back.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => {
            let _ = files::remove(&path);
            Err(errno.into())
        }
    }
}

/// Everything in the directory of a pool that is the pool's; the superblock last.
fn own_paths(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for target in entries(dir).unwrap_or_default().into_iter().filter(|path| is_target(path)) {
        paths.extend(TARGET_FILES.map(|name| target.join(name)));
        paths.push(target);
    }
    paths.extend(OWN_FILES.map(|name| dir.join(name)));
    paths
}

fn remove(path: &Path) {
    if path.is_dir() {
        // Only if nothing else is in it.
        let _ = files::remove_directory(path);
    } else if path.exists() {
        let _ = files::remove_unsynced(path);
    }
}

/// Removes the files of a pool.
fn remove_all(dir: &Path, with_directory: bool) {
    own_paths(dir).iter().for_each(|path| remove(path));
    let _ = files::sync_directory(dir);
    if with_directory && files::remove_directory(dir).is_ok() {
        let _ = files::sync_directory(files::directory_of(dir));
    }
}
