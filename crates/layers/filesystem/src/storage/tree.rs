//! Directory that a run makes for the sets of a load: noted before it is made, and the only thing that is removed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dfs::{FileKind, FileSystem, Inode};
use driver::{Error, ErrorKind};
use layer::storage::StorageNeeds;
use layer::{CleanRequest, FileIdentity, Journal, Leftovers, MARK, RunContext, identity_of};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::{label_of, path_of};
use workload::plan::HostPlace;
use workload::spec::Spec;

use super::driver::ASIDE;
use super::{Root, is_store};
use crate::drivers::Held;
use crate::stores::{self, owner};

/// Key of the list of such directories.
const JOURNAL_KEY: &str = "file_storage";

/// A directory that a run made, or is about to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MadeTree {
    target: String,
    top: String,
    /// Names of its sets, and whether they are indexes.
    sets: Vec<(String, bool)>,
    /// By what it is known again on this machine; none: it was about to be made, or lies in a file system over objects.
    identity: Option<FileIdentity>,
}

/// The directory of a run on one target.
pub(super) struct Tree {
    made: Mutex<MadeTree>,
    is_made: Mutex<bool>,
    target: String,
    /// Number among the directories of the run.
    number: usize,
    indexes: Vec<u64>,
    /// Another host of the run makes and removes it.
    is_guest: bool,
    journal: Arc<dyn Journal>,
}

fn listed(made: &Value) -> Result<Vec<MadeTree>, Error> {
    if made.is_null() {
        return Ok(Vec::new());
    }
    serde_json::from_value(made.clone()).map_err(|error| {
        Error::new(ErrorKind::Usage, "clean", format!("the list of directories is not readable: {error}"))
    })
}

/// Puts an entry into the list of a run, in place of the one of the same directory, or (`is_gone`) takes it out.
fn note(journal: &Arc<dyn Journal>, tree: &MadeTree, is_gone: bool) -> Result<(), Error> {
    let mut all = listed(&journal.noted(JOURNAL_KEY))?;
    all.retain(|other| (&other.target, &other.top) != (&tree.target, &tree.top));
    if !is_gone {
        all.push(tree.clone());
    }
    let made = serde_json::to_value(&all).map_err(|error| {
        Error::new(ErrorKind::Run, "files", format!("cannot record the directories: {error}"))
    })?;
    journal.note(JOURNAL_KEY, made)
}

fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::system("files", what, error).with("path", path.display())
}

fn failed_in_store<'a>(what: &'static str, path: &'a str) -> impl Fn(Errno) -> Error + 'a {
    move |errno| Error::system("dfs", what, errno).with("path", path)
}

impl Tree {
    /// The directory for these sets on a target; not made yet.
    pub(super) fn new(spec: &Spec, needs: &StorageNeeds, context: &RunContext) -> Self {
        let target = spec.targets.first().map_or("", String::as_str);
        let sets = &needs.sets;
        let noted = if is_store(target) {
            target.to_owned()
        } else {
            std::path::absolute(path_of(target))
                .map_or_else(|_| target.to_owned(), |path| label_of(path.as_os_str()))
        };
        let names = sets.iter().map(|set| (set.name.clone(), set.is_index)).collect();
        let made = MadeTree { target: noted, top: String::new(), sets: names, identity: None };
        Self {
            made: Mutex::new(made),
            is_made: Mutex::new(false),
            target: target.to_owned(),
            number: needs.number,
            indexes: sets.iter().map(|set| if set.is_index { set.objects } else { 0 }).collect(),
            is_guest: spec.place.is_some_and(HostPlace::is_guest),
            journal: Arc::clone(&context.journal),
        }
    }

    /// Number of the run, as it is marked with; a run has it once it has begun.
    fn run_id(&self) -> String {
        format!("{:016x}", self.journal.run())
    }

    /// The target, as given.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Name of the directory in the target, which is the same for all hosts of the run.
    pub(super) fn top(&self) -> String {
        match (self.run_id(), self.number) {
            (run, 0) => format!("strata-app-{run}"),
            (run, number) => format!("strata-app-{run}-{number}"),
        }
    }

    /// Files of its sets on a path; those of indexes are not among them.
    ///
    /// # Errors
    /// When a directory cannot be listed.
    pub(super) fn files(&self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let sets = made.sets.iter().filter(|(_, is_index)| !is_index);
        let files = sets.map(|(name, _)| given_in(&path.join(self.top()).join(name)));
        Ok(files.collect::<Result<Vec<_>, Error>>()?.concat())
    }

    /// Makes it with the directories of the sets and their indexes, once.
    ///
    /// # Errors
    /// When it cannot be noted or made.
    pub(super) fn make(&self, place: &Root) -> Result<(), Error> {
        let mut is_made = self.is_made.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_made || self.is_guest {
            return Ok(());
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.top = self.top();
        let run_id = self.run_id();
        note(&self.journal, &made, false)?;
        match place {
            Root::Path(path) => {
                let top = path.join(&made.top);
                std::fs::create_dir(&top).map_err(failed("cannot create the directory of the run", &top))?;
                *is_made = true;
                // A file system without extended attributes keeps no mark: then its identity alone tells.
                let _ = rustix::fs::lsetxattr(&*top, MARK, run_id.as_bytes(), XattrFlags::empty());
                made.identity = std::fs::symlink_metadata(&top).ok().map(|metadata| identity_of(&metadata));
                note(&self.journal, &made, false)?;
                for ((name, _), indexes) in made.sets.iter().zip(&self.indexes) {
                    let set = top.join(name);
                    let paths = std::iter::once(set.clone())
                        .chain((0..*indexes).map(|index| set.join(index.to_string())));
                    for path in paths {
                        std::fs::create_dir(&path).map_err(failed("cannot create the directory", &path))?;
                    }
                }
            }
            Root::Store(store) => {
                let top = make_in(store, Inode::ROOT, &made.top)
                    .map_err(failed_in_store("cannot create the directory of the run", &made.top))?;
                *is_made = true;
                let marked = store.set_xattr(top.inode, MARK.as_bytes(), run_id.as_bytes(), false, false);
                marked.map_err(failed_in_store("cannot mark the directory of the run", &made.top))?;
                for ((name, _), indexes) in made.sets.iter().zip(&self.indexes) {
                    let failed = failed_in_store("cannot create the directory of a set", name);
                    let set = make_in(store, top.inode, name).map_err(&failed)?;
                    for index in 0..*indexes {
                        make_in(store, set.inode, &index.to_string()).map_err(&failed)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes it with what the run made in it.
    ///
    /// # Errors
    /// What could not be removed, and a directory that holds what the run did not make.
    pub(super) fn remove(&self, place: &Root) -> Result<(), Error> {
        let mut is_made = self.is_made.lock().unwrap_or_else(PoisonError::into_inner);
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_made {
            remove(&made, place, &self.run_id())?;
            *is_made = false;
        }
        if listed(&self.journal.noted(JOURNAL_KEY))?.is_empty() {
            return Ok(());
        }
        note(&self.journal, &made, true)
    }
}

fn make_in(store: &Arc<dyn FileSystem>, parent: Inode, name: &str) -> Result<Held, Errno> {
    let inode = store.make_directory(parent, name.as_bytes(), 0o755, owner())?.inode;
    Ok(Held { store: Arc::clone(store), inode })
}

/// Whether a name is one that the driver gives.
fn is_given(name: &[u8]) -> bool {
    let digits = name.strip_suffix(ASIDE).unwrap_or(name);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Removes a directory that a run made: the names that its driver gives alone. How many names.
fn remove(tree: &MadeTree, place: &Root, run_id: &str) -> Result<u64, Error> {
    match place {
        Root::Path(path) => remove_path(tree, &path.join(&tree.top), run_id),
        Root::Store(store) => remove_in_store(tree, store, run_id),
    }
}

/// Whether a directory is there and the run's own.
///
/// # Errors
/// When it cannot be looked at: it may be there.
fn is_own(tree: &MadeTree, top: &Path, run_id: &str) -> Result<bool, Error> {
    let metadata = match std::fs::symlink_metadata(top) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed("cannot stat the directory of the run", top)(error)),
    };
    if let Some(identity) = tree.identity {
        return Ok(identity == identity_of(&metadata));
    }
    let mut mark = [0; 64];
    let length = rustix::fs::lgetxattr(top, MARK, &mut mark[..]);
    Ok(length.is_ok_and(|length| mark[..length] == *run_id.as_bytes()))
}

/// Kinds of errors by which a directory is not there, or holds something.
const UNTOUCHED: &[io::ErrorKind] =
    &[io::ErrorKind::NotFound, io::ErrorKind::DirectoryNotEmpty, io::ErrorKind::NotADirectory];

fn remove_path(tree: &MadeTree, top: &Path, run_id: &str) -> Result<u64, Error> {
    if !is_own(tree, top, run_id)? {
        if tree.identity.is_some() {
            return Ok(0);
        }
        // A run that was killed before it could mark it has left it empty, and named after itself.
        return match std::fs::remove_dir(top) {
            Ok(()) => Ok(1),
            Err(error) if UNTOUCHED.contains(&error.kind()) => Ok(0),
            Err(error) => Err(failed("cannot remove the directory", top)(error)),
        };
    }
    let mut removed = 0;
    for (name, is_index) in &tree.sets {
        let set = top.join(name);
        let directories: Vec<PathBuf> = if *is_index { given_in(&set)? } else { Vec::new() };
        for directory in directories.iter().chain([&set]) {
            let is_set = directory == &set;
            let files = if is_set && *is_index { Vec::new() } else { given_in(directory)? };
            for file in &files {
                std::fs::remove_file(file).map_err(failed("cannot remove the file", file))?;
            }
            removed += files.len() as u64 + u64::from(remove_directory(directory)?);
        }
    }
    Ok(removed + u64::from(remove_directory(top)?))
}

/// Paths of a directory whose names the driver gives.
fn given_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    use std::os::unix::ffi::OsStrExt;
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("cannot list the directory", directory)(error)),
    };
    let mut given = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("cannot list the directory", directory))?;
        if is_given(entry.file_name().as_bytes()) {
            given.push(entry.path());
        }
    }
    Ok(given)
}

fn remove_directory(directory: &Path) -> Result<bool, Error> {
    match std::fs::remove_dir(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let left = "the directory is kept: it contains files that this run did not create";
            Err(Error::new(ErrorKind::Run, "files", left).with("path", directory.display()))
        }
        Err(error) => Err(failed("cannot remove the directory", directory)(error)),
    }
}

fn remove_in_store(tree: &MadeTree, store: &Arc<dyn FileSystem>, run_id: &str) -> Result<u64, Error> {
    let root = Held { store: Arc::clone(store), inode: Inode::ROOT };
    // A store that cannot be reached may hold it still.
    let failed = failed_in_store("cannot stat the directory of the run", &tree.top);
    let top = match root.below(tree.top.as_bytes()) {
        Err(Errno::NOENT) => return Ok(0),
        found => found.map_err(&failed)?,
    };
    match store.xattr(top.inode, MARK.as_bytes()) {
        Ok(mark) if mark == run_id.as_bytes() => {}
        Ok(_) => return Ok(0),
        Err(Errno::NODATA) => {
            drop(top);
            // As above: it was killed before it could mark it.
            return match store.remove_directory(Inode::ROOT, tree.top.as_bytes()) {
                Ok(()) => Ok(1),
                Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(0),
                Err(errno) => Err(failed(errno)),
            };
        }
        Err(errno) => return Err(failed(errno)),
    }
    let mut removed = 0;
    for (name, _) in &tree.sets {
        removed += remove_set(store, &top, name.as_bytes())
            .map_err(failed_in_store("cannot remove files of this run", name))?;
    }
    drop(top);
    match store.remove_directory(Inode::ROOT, tree.top.as_bytes()) {
        Ok(()) => Ok(removed + 1),
        Err(Errno::NOTEMPTY) => {
            let left = "the directory is kept: it contains files that this run did not create";
            Err(Error::new(ErrorKind::Run, "files", left).with("path", &tree.top))
        }
        Err(errno) => Err(failed_in_store("cannot remove files of this run", &tree.top)(errno)),
    }
}

/// Removes the directory of a set, or of an index, with what the driver made in it; how many names.
fn remove_set(store: &Arc<dyn FileSystem>, parent: &Held, name: &[u8]) -> Result<u64, Errno> {
    let directory = match parent.below(name) {
        Err(Errno::NOENT) => return Ok(0),
        found => found?,
    };
    let mut own: Vec<(Vec<u8>, FileKind)> = Vec::new();
    store.list(directory.inode, 0, &mut |entry| {
        if is_given(entry.name) {
            own.push((entry.name.to_vec(), entry.kind));
        }
        true
    })?;
    let mut removed = 1;
    for (entry, kind) in &own {
        if *kind == FileKind::Directory {
            removed += remove_set(store, &directory, entry)?;
        } else {
            store.unlink(directory.inode, entry)?;
            removed += 1;
        }
    }
    drop(directory);
    store.remove_directory(parent.inode, name).map(|()| removed)
}

/// Directories of loads made of file operations, as `strata clean` shows and removes them.
pub(crate) struct Trees;

impl Leftovers for Trees {
    fn key(&self) -> &'static str {
        JOURNAL_KEY
    }

    fn words(&self, made: &Value) -> Vec<String> {
        let trees = listed(made).unwrap_or_default();
        trees.iter().map(|tree| format!("directory {} in {}", tree.top, tree.target)).collect()
    }

    fn clean(&self, made: &Value, request: &CleanRequest<'_>) -> Result<(), Error> {
        let run_id = format!("{:016x}", request.journal.run());
        for tree in listed(made)? {
            let at = format!("{}/{}", tree.target, tree.top);
            if !request.removes {
                (request.print)(&format!("  {at}\n"))?;
                continue;
            }
            let place = if is_store(&tree.target) {
                let secret = layer::secret::shared_or_environment((request.file)("token-file").as_deref())?;
                Root::Store(stores::open(&tree.target, secret.as_ref())?)
            } else {
                Root::Path(path_of(&tree.target).into_owned())
            };
            let removed = remove(&tree, &place, &run_id)?;
            note(&request.journal, &tree, true)?;
            (request.print)(&format!("  {at}: removed {removed}\n"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_given;

    #[test]
    fn only_names_of_the_driver_are_removed() {
        assert!(is_given(b"0") && is_given(b"18446744073709551615") && is_given(b"7.tmp"));
        for other in [&b""[..], b".tmp", b"a", b"7.txt", b"7.tmp.tmp", b"-7"] {
            assert!(!is_given(other), "{other:?}");
        }
    }
}
