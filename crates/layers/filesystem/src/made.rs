//! Trees and files that a run made: noted before they are made, and the only things that are removed.

mod guest;
mod leftovers;
mod mounts;
mod own;
mod suite_control;
mod tops;

use guest::make_trees;
pub(crate) use guest::{trees_here, unseen};
pub(crate) use leftovers::FileSets;
use leftovers::read;
pub(crate) use mounts::{note_mount, remove_mount};
use own::is_own;
pub(crate) use suite_control::{SuiteControl, first_taken, has_sets};

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::sync::Arc;

use driver::{Error, ErrorKind};
use layer::{Journal, MARK, MadeFile, identity_of};
use rustix::fs::XattrFlags;
use serde::{Deserialize, Serialize};
use units::{label_of, path_of};

use crate::names::root_of;
use crate::operation::NameKind;
use crate::phases::FsOp;
use crate::plan::FsPlan;
use crate::progress::Progress;
use crate::set::{FileSet, Shape};
use crate::stores::is_store;

/// Key of the list of what a run made.
const JOURNAL_KEY: &str = "file_sets";

/// A file set of a run, and what of it the run made by itself: directories of targets, tops of trees, files without a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MadeSet {
    targets: Vec<String>,
    set: FileSet,
    made: Vec<MadeFile>,
    /// Directories that were empty and that the run took over: what it made in them is removed, they stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taken: Vec<MadeFile>,
    /// Ranks whose trees are removed; empty: those of all. Where hosts share their targets, each removes the trees of its own workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranks: Vec<u32>,
    /// The target is a directory that the run mounted a file system on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_mount: bool,
}

/// All that a run made.
pub(crate) struct Made {
    run_id: String,
    journal: Arc<dyn Journal>,
    sets: Vec<MadeSet>,
    /// Directories that are to go and were not empty yet: another host was still at it.
    due: Vec<(usize, String)>,
}

/// State of a path.
enum There {
    /// Nothing is there.
    Free,
    /// The run made it, or an earlier one did (its mark is on it).
    Own,
    /// It is others'.
    Foreign,
}

fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::system("files", what, error).with("path", path.display())
}

/// Paths as they are noted: absolute, because a later process may stand elsewhere.
fn absolute(path: &str) -> String {
    std::path::absolute(path_of(path)).map_or_else(|_| path.to_owned(), |path| label_of(path.as_os_str()))
}

impl Made {
    /// As much as the list of the run has: nothing, or what it took over from an earlier run.
    pub(crate) fn new(journal: &Arc<dyn Journal>) -> Self {
        let sets = read(&journal.noted(JOURNAL_KEY)).unwrap_or_default();
        Self {
            run_id: format!("{:016x}", journal.run()),
            journal: Arc::clone(journal),
            sets,
            due: Vec::new(),
        }
    }

    fn note(&self) -> Result<(), Error> {
        let made = serde_json::to_value(&self.sets).map_err(|error| {
            Error::new(ErrorKind::Run, "files", format!("cannot record the file sets: {error}"))
        })?;
        self.journal.note(JOURNAL_KEY, made)
    }

    fn look(&self, path: &str) -> Result<There, Error> {
        let at = path_of(path);
        let metadata = match std::fs::symlink_metadata(&at) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(There::Free),
            Err(error) => return Err(failed("cannot stat the path", &at)(error)),
        };
        let is_marked = rustix::fs::lgetxattr(&*at, MARK, &mut [0u8; 64][..]).is_ok();
        let is_own = is_marked || self.knows(path, &metadata);
        Ok(if is_own { There::Own } else { There::Foreign })
    }

    fn knows(&self, path: &str, metadata: &Metadata) -> bool {
        let (path, identity) = (absolute(path), identity_of(metadata));
        let mut made = self.sets.iter().flat_map(|set| set.made.iter().chain(&set.taken));
        made.any(|file| file.path == path && file.identity == Some(identity))
    }

    /// The set of a plan, where what was made of it is noted.
    fn set_of(&mut self, plan: &FsPlan) -> usize {
        let targets: Vec<String> = plan.targets.iter().map(|target| absolute(target)).collect();
        match self.sets.iter().position(|known| known.targets == targets && known.set == plan.set) {
            Some(at) => at,
            None => {
                self.sets.push(MadeSet {
                    targets,
                    set: plan.set.clone(),
                    made: Vec::new(),
                    taken: Vec::new(),
                    ranks: Vec::new(),
                    is_mount: false,
                });
                self.sets.len() - 1
            }
        }
    }

    /// Makes a directory and notes it, before and after.
    fn make_directory(&mut self, set: usize, path: &str) -> Result<(), Error> {
        self.announce(set, path)?;
        let at = path_of(path).into_owned();
        std::fs::create_dir(&at).map_err(failed("cannot create the directory", &at))?;
        self.adopt(set, path);
        self.note()
    }

    fn announce(&mut self, set: usize, path: &str) -> Result<(), Error> {
        let path = absolute(path);
        self.sets[set].made.retain(|file| file.path != path);
        self.sets[set].made.push(MadeFile { path, identity: None });
        self.note()
    }

    /// Marks what lies at a path that was announced, and notes its identity.
    fn adopt(&mut self, set: usize, path: &str) {
        let at = path_of(path);
        // A file system without extended attributes keeps no mark: then the list alone tells.
        let _ = rustix::fs::lsetxattr(&*at, MARK, self.run_id.as_bytes(), XattrFlags::empty());
        let identity = std::fs::symlink_metadata(&at).ok().map(|metadata| identity_of(&metadata));
        let path = absolute(path);
        if let Some(file) =
            self.sets[set].made.iter_mut().find(|file| file.path == path && file.identity.is_none())
        {
            file.identity = identity;
        }
    }

    /// Number of the run, as marks have it.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Notes a set that the run is about to make in file systems over objects.
    ///
    /// # Errors
    /// When it cannot be noted.
    pub(crate) fn note_store(&mut self, plan: &FsPlan) -> Result<(), Error> {
        if self.sets.iter().any(|known| known.targets == plan.targets && known.set == plan.set) {
            return Ok(());
        }
        let made =
            plan.targets.iter().map(|target| MadeFile { path: target.clone(), identity: None }).collect();
        self.sets.push(MadeSet {
            targets: plan.targets.clone(),
            set: plan.set.clone(),
            made,
            taken: Vec::new(),
            ranks: Vec::new(),
            is_mount: false,
        });
        self.note()
    }

    /// Gets a phase ready: what it changes is this run's, or an earlier one's, or the user allows it; directories that it needs are made.
    ///
    /// # Errors
    /// [`ErrorKind::Unsafe`] for what is others', bad usage for what is missing, and the system's.
    pub(crate) fn prepare(
        &mut self,
        plan: &FsPlan,
        destroy_data: bool,
        progress: &Progress,
    ) -> Result<(), Error> {
        if matches!(plan.engine.as_str(), "null" | "dfs") || !plan.operation.phase().changes {
            return Ok(());
        }
        let set = self.set_of(plan);
        let makes = plan.operation.makes() || plan.operation == FsOp::TreeCreate;
        if plan.set.shape != Shape::Tree {
            return self.prepare_files(plan, set, makes, destroy_data);
        }
        if plan.load.is_guest() {
            self.look_at_trees(plan, set, makes, destroy_data)?;
            return make_trees(plan, makes, progress);
        }
        for target in &plan.targets {
            if makes && matches!(self.look(target)?, There::Free) {
                self.make_directory(set, target)?;
            }
        }
        if plan.set.is_flat() {
            self.prepare_flat(plan, set, makes, destroy_data)?;
        } else {
            self.prepare_tops(plan, set, makes, destroy_data)?;
        }
        make_trees(plan, makes, progress)
    }

    /// Trees of ranks lie in directories that are strata's.
    fn prepare_tops(
        &mut self,
        plan: &FsPlan,
        set: usize,
        makes: bool,
        destroy_data: bool,
    ) -> Result<(), Error> {
        for rank in 0..plan.set.trees().max(plan.targets.len() as u32) {
            let top = format!("{}/{}", plan.target(rank), plan.set.top(rank));
            match self.look(&top)? {
                There::Free if plan.ignore_missing && plan.operation.removes() => {}
                There::Free if makes => self.make_directory(set, &top)?,
                There::Free => {
                    return Err(Error::usage("files", "no tree exists to change")
                        .with("path", &top)
                        .remedy("create one with --op tree-create,create"));
                }
                There::Foreign if !destroy_data => return Err(foreign(&top)),
                There::Own if makes => self.share_top(set, &top)?,
                There::Own | There::Foreign => {}
            }
        }
        Ok(())
    }

    /// Items lie in the targets themselves: these are strata's, or empty.
    fn prepare_flat(
        &mut self,
        plan: &FsPlan,
        set: usize,
        makes: bool,
        destroy_data: bool,
    ) -> Result<(), Error> {
        for target in &plan.targets {
            if destroy_data || !matches!(self.look(target)?, There::Foreign) {
                if makes {
                    self.share_top(set, target)?;
                }
                continue;
            }
            let at = path_of(target).into_owned();
            let mut entries = std::fs::read_dir(&at).map_err(failed("cannot list the directory", &at))?;
            if !makes || entries.next().is_some() {
                return Err(foreign(target));
            }
            let identity = std::fs::symlink_metadata(&at).ok().map(|metadata| identity_of(&metadata));
            self.sets[set].taken.push(MadeFile { path: absolute(target), identity });
            let _ = rustix::fs::lsetxattr(&*at, MARK, self.run_id.as_bytes(), XattrFlags::empty());
            self.note()?;
        }
        Ok(())
    }

    fn prepare_files(
        &mut self,
        plan: &FsPlan,
        set: usize,
        makes: bool,
        destroy_data: bool,
    ) -> Result<(), Error> {
        for path in file_paths(plan) {
            match self.look(&path)? {
                There::Foreign if !destroy_data => return Err(foreign(&path)),
                There::Own | There::Foreign if makes && plan.replace => {
                    let at = path_of(&path).into_owned();
                    std::fs::remove_file(&at).map_err(failed("cannot remove the file", &at))?;
                    self.announce(set, &path)?;
                }
                There::Free if makes => {
                    let root = root_of(&path).to_owned();
                    let has_own = plan.set.unique_directories || plan.door.is_some();
                    if has_own && matches!(self.look(&root)?, There::Free) {
                        self.make_directory(set, &root)?;
                    }
                    self.announce(set, &path)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes the identity of files that a phase made.
    ///
    /// # Errors
    /// When they cannot be noted.
    pub(crate) fn settle(&mut self, plan: &FsPlan) -> Result<(), Error> {
        if matches!(plan.engine.as_str(), "null" | "dfs") {
            return Ok(());
        }
        if plan.operation == FsOp::TreeRemove {
            return self.remove_tops(plan);
        }
        if plan.set.shape == Shape::Tree || !plan.operation.phase().changes {
            return Ok(());
        }
        if plan.load.is_guest() && plan.set.shape == Shape::Shared {
            return Ok(());
        }
        let set = self.set_of(plan);
        file_paths(plan).iter().for_each(|path| self.adopt(set, path));
        self.note()
    }

    /// Removes all of it.
    ///
    /// # Errors
    /// The first that could not be removed; the others are tried all the same.
    pub(crate) fn remove_all(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        // What was made last goes first: a directory may hold what a later set made.
        for set in std::mem::take(&mut self.sets).into_iter().rev() {
            result = result.and(remove_set(&set, &self.run_id).map(drop));
        }
        let noted = if result.is_ok() { self.note() } else { Ok(()) };
        result.and(noted)
    }
}

fn foreign(path: &str) -> Error {
    Error::new(ErrorKind::Unsafe, "safety", "it was not created by strata")
        .with("path", path)
        .remedy("use another directory, or --destroy-data to change existing data")
}

/// Paths of files without a tree that this host makes and removes, each once: those of its workers, and of one file of all that of the first host.
fn file_paths(plan: &FsPlan) -> Vec<String> {
    let ranks: Vec<u32> = match plan.set.shape {
        Shape::Shared if plan.load.is_guest() => Vec::new(),
        Shape::Shared => (0..plan.set.ranks).collect(),
        Shape::Private | Shape::Tree => plan.ranks_here().collect(),
    };
    let mut paths: Vec<String> =
        ranks.into_iter().map(|rank| plan.set.file_path(plan.target(rank), rank)).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Removes what a run made of a set: of trees the names of the set alone, so that what others put there stays. How many names.
fn remove_set(set: &MadeSet, run_id: &str) -> Result<u64, Error> {
    if set.is_mount {
        return set.targets.iter().map(|target| remove_mount(target)).sum();
    }
    if set.targets.iter().any(|target| is_store(target)) {
        // The run itself has removed it, as long as it had its file systems open.
        return Ok(0);
    }
    let mut removed = 0;
    let own: Vec<&MadeFile> = set.made.iter().filter(|file| is_own(file, run_id)).collect();
    if set.set.shape == Shape::Tree {
        let all = 0..set.set.trees().max(set.targets.len() as u32);
        let ranks = if set.ranks.is_empty() { all.collect() } else { set.ranks.clone() };
        for rank in ranks {
            let target = &set.targets[rank as usize % set.targets.len()];
            let top =
                if set.set.is_flat() { target.clone() } else { format!("{target}/{}", set.set.top(rank)) };
            let taken = set.taken.iter().filter(|file| is_own(file, run_id));
            if own.iter().copied().chain(taken).any(|file| file.path == top) {
                removed += remove_tree(&set.set, target, rank)?;
            }
        }
    }
    let mut result = Ok(());
    for file in own.iter().rev() {
        let at = path_of(&file.path).into_owned();
        let is_directory = std::fs::symlink_metadata(&at).is_ok_and(|metadata| metadata.is_dir());
        let gone = if is_directory { std::fs::remove_dir(&at) } else { std::fs::remove_file(&at) };
        match gone {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                let left = Error::new(
                    ErrorKind::Run,
                    "files",
                    "the directory is kept: it contains files that this run did not create",
                );
                result = result.and(Err(left.with("path", at.display())));
            }
            Err(error) => result = result.and(Err(failed("cannot remove files of this run", &at)(error))),
        }
    }
    result.map(|()| removed)
}

/// Removes the names of a tree that are of the set; how many.
fn remove_tree(set: &FileSet, target: &str, tree: u32) -> Result<u64, Error> {
    let mut removed = 0;
    if let Some(tree) = &set.listed {
        return tree.remove(set.ranks, target);
    }
    for node in (0..set.nodes()).rev() {
        let mut path = format!("{target}/").into_bytes();
        set.push_node(tree, node, &mut path);
        let path = String::from_utf8_lossy(&path).into_owned();
        let at = path_of(&path).into_owned();
        removed += remove_items(set, &at, tree, node)?;
        if set.is_flat() {
            // Items lie in the target itself, which is no part of the tree.
            continue;
        }
        match std::fs::remove_dir(&at) {
            Ok(()) => removed += 1,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {}
            Err(error) => return Err(failed("cannot remove files of this run", &at)(error)),
        }
    }
    Ok(removed)
}

/// Removes the items of the set from a directory of its tree; how many.
fn remove_items(set: &FileSet, directory: &Path, tree: u32, node: u64) -> Result<u64, Error> {
    let mut removed = 0;
    loop {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
            Err(error) => return Err(failed("cannot list the directory", directory)(error)),
        };
        let before = removed;
        for entry in entries {
            let entry = entry.map_err(failed("cannot list the directory", directory))?;
            let Some(kind) = set.item_named(tree, node, entry.file_name().as_encoded_bytes()) else {
                continue;
            };
            let path = entry.path();
            let gone = if kind == NameKind::Directory {
                std::fs::remove_dir(&path)
            } else {
                std::fs::remove_file(&path)
            };
            match gone {
                Ok(()) => removed += 1,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
                }
                Err(error) => return Err(failed("cannot remove files of this run", &path)(error)),
            }
        }
        // A listing may pass over names while others are removed.
        if removed == before {
            return Ok(removed);
        }
    }
}
