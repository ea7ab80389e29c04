//! The walk of `--op find`: all workers take directories from one queue, list them, and look at what the conditions ask for.

mod dealt;

use std::collections::VecDeque;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use driver::{Completions, Driver, Error, Source, Submitted};
use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;

use crate::drivers::{LIST_BYTES, open_path};
use crate::operation::{FsClass, FsOperation, NameKind};
use crate::plan::FsPlan;

/// Conditions of a search, as a walk asks for them.
#[derive(Clone, Debug)]
struct Wanted {
    name: Option<Vec<u8>>,
    size_bytes: Option<u64>,
    newer_than: Option<(i64, u32)>,
}

/// A directory that is to be listed.
#[derive(Debug)]
pub(crate) struct Directory {
    path: CString,
    /// The directories in it are searched too; else somebody has them already.
    descends: bool,
}

/// A search that workers share.
#[derive(Debug)]
pub(crate) struct Search {
    wanted: Wanted,
    directories: Mutex<VecDeque<Directory>>,
    /// Directories that are queued or worked on.
    open: AtomicU64,
    /// Entries that were seen, and those that meet the conditions.
    entries: AtomicU64,
    matched: AtomicU64,
}

impl Search {
    /// A search from these directories on.
    ///
    /// # Errors
    /// A file to compare with that cannot be looked at, and paths with a NUL.
    pub(crate) fn new(of: &FsPlan) -> Result<Arc<Self>, Error> {
        let (plan, targets) = (&of.find, &of.targets);
        let newer = |path: &String| {
            rustix::fs::stat(&*units::path_of(path))
                .map(|found| (found.st_mtime, found.st_mtime_nsec as u32))
                .map_err(|errno| {
                    Error::system("find", "cannot stat the file of --find-newer", errno).with("path", path)
                })
        };
        let wanted = Wanted {
            name: plan.name.as_ref().map(|name| name.as_bytes().to_vec()),
            size_bytes: plan.size_bytes,
            newer_than: plan.newer.as_ref().map(newer).transpose()?,
        };
        let path = |target: &String| {
            let path = units::path_of(target).into_owned();
            CString::new(path.into_os_string().into_encoded_bytes())
                .map_err(|_| Error::usage("find", "a path contains a NUL byte").with("path", target))
        };
        let mut directories = targets.iter().map(path).collect::<Result<VecDeque<CString>, Error>>()?;
        directories.make_contiguous().sort();
        let mut seen = None;
        directories.retain(|directory| seen.replace(directory.clone()).as_ref() != Some(directory));
        let directories = match of.load.place.filter(|_| of.has_guests()) {
            Some(place) => dealt::of_host(directories.into(), place, of.load.workers()).into(),
            None => directories.into_iter().map(|path| Directory { path, descends: true }).collect(),
        };
        Ok(Arc::new(Self {
            open: AtomicU64::new(VecDeque::len(&directories) as u64),
            directories: Mutex::new(directories),
            wanted,
            entries: AtomicU64::new(0),
            matched: AtomicU64::new(0),
        }))
    }

    /// Entries that were seen, and those that meet the conditions.
    pub(crate) fn found(&self) -> (u64, u64) {
        (self.entries.load(Ordering::Relaxed), self.matched.load(Ordering::Relaxed))
    }

    fn take(&self) -> Option<Directory> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn put(&self, more: &mut Vec<CString>) {
        if !more.is_empty() {
            self.open.fetch_add(more.len() as u64, Ordering::Relaxed);
            self.directories
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(more.drain(..).map(|path| Directory { path, descends: true }));
        }
    }
}

/// Directories and counts that source and driver of one worker hand each other; both are on one thread.
#[derive(Debug, Default)]
struct Between {
    /// The directory to list next.
    directory: Mutex<Option<Directory>>,
    /// Entries of the last one that are to be looked at.
    to_stat: AtomicU64,
}

/// The source of one worker.
pub(crate) struct FindSource {
    search: Arc<Search>,
    between: Arc<Between>,
    looked_at: u64,
    is_in_directory: bool,
    is_listing: bool,
    waits: bool,
    waits_for_others: bool,
}

/// The driver of one worker.
pub(crate) struct FindDriver {
    search: Arc<Search>,
    between: Arc<Between>,
    directory: Option<OwnedFd>,
    /// Names that are looked at, one behind the other with their NULs, and where each begins.
    names: Vec<u8>,
    begins: Vec<usize>,
    more: Vec<CString>,
    buffer: Vec<MaybeUninit<u8>>,
}

/// Source and driver of one worker of a search.
pub(crate) fn worker(search: &Arc<Search>) -> (FindSource, FindDriver) {
    let between = Arc::new(Between::default());
    let source = FindSource {
        search: Arc::clone(search),
        between: Arc::clone(&between),
        looked_at: 0,
        is_in_directory: false,
        is_listing: false,
        waits: false,
        waits_for_others: false,
    };
    let driver = FindDriver {
        search: Arc::clone(search),
        between,
        directory: None,
        names: Vec::new(),
        begins: Vec::new(),
        more: Vec::new(),
        buffer: vec![MaybeUninit::uninit(); LIST_BYTES],
    };
    (source, driver)
}

impl Source<FsOperation> for FindSource {
    fn next(&mut self, slot: u32) -> Option<FsOperation> {
        (self.waits, self.waits_for_others) = (false, false);
        if self.is_listing {
            self.waits = true;
            return None;
        }
        let operation = |class, item| {
            let whole = FsOperation::new(class, NameKind::Found, slot, item);
            FsOperation { is_first: true, is_last: true, ..whole }
        };
        if self.looked_at < self.between.to_stat.load(Ordering::Relaxed) {
            self.looked_at += 1;
            return Some(operation(FsClass::Stat, self.looked_at - 1));
        }
        if std::mem::take(&mut self.is_in_directory) {
            self.search.open.fetch_sub(1, Ordering::AcqRel);
        }
        match self.search.take() {
            Some(directory) => {
                *self.between.directory.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
                (self.is_in_directory, self.is_listing, self.looked_at) = (true, true, 0);
                self.between.to_stat.store(0, Ordering::Relaxed);
                Some(operation(FsClass::Readdir, 0))
            }
            None => {
                // Another worker may still find directories.
                self.waits_for_others = self.search.open.load(Ordering::Acquire) > 0;
                self.waits = self.waits_for_others;
                None
            }
        }
    }

    fn waits(&self) -> bool {
        self.waits
    }

    fn waits_for_others(&self) -> bool {
        self.waits_for_others
    }

    fn checks(&self) -> bool {
        true
    }

    fn abandon(&mut self, operation: &FsOperation) {
        self.is_listing &= operation.class != FsClass::Readdir;
    }

    fn check(&mut self, operation: &FsOperation, _bytes: u64) -> Result<(), driver::Fault> {
        self.is_listing &= operation.class != FsClass::Readdir;
        Ok(())
    }
}

impl Drop for FindSource {
    fn drop(&mut self) {
        if self.is_in_directory {
            self.search.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl FindDriver {
    /// Lists the next directory; how many entries it has.
    fn list(&mut self) -> Result<u64, Errno> {
        let Directory { path, descends } = self
            .between
            .directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .ok_or(Errno::NOENT)?;
        let directory = open_path(&path)?;
        self.names.clear();
        self.begins.clear();
        let wanted = &self.search.wanted;
        let needs_stat = wanted.size_bytes.is_some() || wanted.newer_than.is_some();
        let (mut count, mut matched) = (0, 0);
        let mut entries = RawDir::new(directory.as_fd(), &mut self.buffer[..]);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            count += 1;
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(found.st_mode)
                }
                known => known,
            };
            if kind == FileType::Directory && descends {
                let mut below = path.as_bytes().to_vec();
                below.push(b'/');
                below.extend_from_slice(name.to_bytes());
                self.more.extend(CString::new(below).ok());
            }
            if wanted.name.as_ref().is_some_and(|glob| !is_like(glob, name.to_bytes())) {
                continue;
            }
            if needs_stat {
                self.begins.push(self.names.len());
                self.names.extend_from_slice(name.to_bytes_with_nul());
            } else {
                matched += 1;
            }
        }
        self.directory = Some(directory);
        self.search.entries.fetch_add(count, Ordering::Relaxed);
        self.search.matched.fetch_add(matched, Ordering::Relaxed);
        self.between.to_stat.store(self.begins.len() as u64, Ordering::Relaxed);
        self.search.put(&mut self.more);
        Ok(count)
    }

    /// Looks at an entry of the directory that was listed last.
    fn look(&self, number: u64) -> Result<u64, Errno> {
        let begin = *self.begins.get(number as usize).ok_or(Errno::INVAL)?;
        let name = std::ffi::CStr::from_bytes_until_nul(&self.names[begin..]).map_err(|_| Errno::INVAL)?;
        let directory = self.directory.as_ref().ok_or(Errno::BADF)?;
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let wanted = &self.search.wanted;
        let is_size = wanted.size_bytes.is_none_or(|bytes| found.st_size as u64 == bytes);
        let changed = (found.st_mtime, found.st_mtime_nsec as u32);
        let is_newer = wanted.newer_than.is_none_or(|than| changed > than);
        if is_size && is_newer {
            self.search.matched.fetch_add(1, Ordering::Relaxed);
        }
        Ok(0)
    }
}

impl Driver<FsOperation> for FindDriver {
    fn submit(&mut self, batch: &[FsOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        let result = match operation.class {
            FsClass::Readdir => self.list(),
            _ => self.look(operation.item),
        };
        done.push(
            operation.slot,
            result.map_or_else(|errno| -i64::from(errno.raw_os_error()), |count| count as i64),
        );
        Ok(Submitted { accepted: 1 })
    }
}

/// Whether a name is like a pattern in which `*` stands for any bytes and `?` for one.
fn is_like(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut begin) = (0, 0);
    // Where the last `*` was, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match glob.get(begin) {
            Some(b'*') => {
                star = Some((begin, at));
                begin += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[at] => {
                (at, begin) = (at + 1, begin + 1);
            }
            _ => match star {
                Some((stars, taken)) => {
                    star = Some((stars, taken + 1));
                    (at, begin) = (taken + 1, stars + 1);
                }
                None => return false,
            },
        }
    }
    glob[begin..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn globs_are_as_shells_have_them() {
        let is = |glob: &str, name: &str| is_like(glob.as_bytes(), name.as_bytes());
        assert!(is("*01*", "file.mdtest.0.1013") && !is("*01*", "file.mdtest.0.110"));
        assert!(is("*", "") && is("a?c", "abc") && !is("a?c", "ac") && is("**b", "aab") && !is("", "a"));
        assert!(is("a*b*c", "axxbyyc") && !is("a*b*c", "axxbyy"));
    }
}
