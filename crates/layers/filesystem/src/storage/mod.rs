//! Files for loads that are made of operations of files ([`layer::storage`]): each set is a directory, each object of it a file, each index a
//! directory with a file for each key. All of it lies in one directory of the run's own.

mod driver;
mod hdf5_driver;
mod together;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use ::driver::{Arena, Error, ErrorKind, Opened, Secret};
use dfs::{FileSystem, Inode};
use hdf5::{Hdf5, Ranks};
use layer::RunContext;
use layer::storage::{
    DatasetPlace, Storage, StorageCall, StorageFacts, StorageNeeds, StorageOperation, StorageSet,
};
use units::path_of;
use workload::spec::Spec;

pub(crate) use tree::Trees;

use crate::drivers::{Dfs, Directory, Held, Posix};
use crate::stores::{self, is_store, owner};
use crate::{cache, spec};
use driver::FilesDriver;
use hdf5_driver::{Hdf5Driver, Hdf5Set};
use together::Together;
use tree::Tree;

/// Options of this layer that an application's target takes.
pub(crate) const OPTIONS: &[&str] = &["direct", "token-file"];
/// Whether a target takes one of them: paths alone have a page cache to go past, and files behind an engine a secret.
pub(crate) fn takes_option(target: &str, option: &str) -> bool {
    match option {
        "direct" => !is_store(target),
        "token-file" => target.starts_with("dfs+engine:"),
        _ => false,
    }
}

/// Offsets and lengths of direct I/O, in bytes.
const DIRECT_BYTES: u64 = 4096;

/// Where files lie.
#[derive(Clone)]
enum Root {
    /// A directory of this machine.
    Path(PathBuf),
    /// A file system over objects.
    Store(Arc<dyn FileSystem>),
}

/// Files that serve the sets of a load.
pub(crate) struct FileStorage {
    /// None: a file system over objects that is not opened yet, because its container may have to be made.
    place: OnceLock<Root>,
    secret: Option<Secret>,
    tree: Tree,
    sets: Vec<StorageSet>,
    direct: bool,
    keep: bool,
    /// Sets of HDF5 files, of the workers together.
    hdf5: OnceLock<Arc<Vec<Option<Hdf5Set>>>>,
    /// The hosts, where they have HDF5 files open together.
    together: Option<Together>,
}

/// Whether a target is a path or a file system over objects.
pub(crate) fn serves(target: &str) -> bool {
    let scheme = target.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = target.contains("://") || matches!(scheme, "null" | "mem" | "rbd");
    is_store(target) || (!target.is_empty() && !is_scheme)
}

/// The library that makes HDF5 files in the directory of a spec, and its version; for so many hosts that have the files open together.
///
/// # Errors
/// Bad usage: a target that is no directory, direct I/O, a library that is missing, processes that are no ranks of MPI.
pub(crate) fn hdf5(spec: &Spec, hosts: u32) -> Result<String, Error> {
    let target = spec.targets.first().map_or("", String::as_str);
    let refused = |what: &str, remedy: &str| {
        Err(Error::usage("plan", what).with("target", target).remedy(remedy.to_owned()))
    };
    if is_store(target) {
        return refused(
            "libhdf5 writes files by system calls, which this target does not support",
            "use a directory, such as a mount of strata mount, or --format raw",
        );
    }
    if spec::of(spec).direct {
        return refused("HDF5 files do not support direct I/O", "omit direct, or use --format raw");
    }
    // What was asked for cannot be had here: nothing was touched.
    let missing = |error: Error| {
        let text = error.to_string();
        let words = text.split_once(": ").map_or(text.as_str(), |(_, words)| words);
        Error::new(ErrorKind::Usage, "plan", words).remedy("or use --format raw")
    };
    if hosts > 1 {
        Ranks::are_there(hosts).map_err(|error| match error.kind() {
            ErrorKind::Usage => error.remedy(NO_RANKS),
            _ => missing(error),
        })?;
    }
    let library = Hdf5::get().map_err(missing)?;
    let found = format!("HDF5 {} ({})", library.version(), library.file());
    if hosts == 1 {
        return Ok(found);
    }
    library.check_parallel().map_err(missing)?;
    Ok(format!("{found}, parallel over {hosts} ranks of MPI"))
}

/// Ways without ranks of MPI.
const NO_RANKS: &str = "start the ranks with Open MPI's mpirun, use one file per process if the application supports it (vpic, bd-cats: --set files=rank), one host, or --format raw";

impl FileStorage {
    /// Looks at the target of a spec of this layer; nothing is made.
    ///
    /// # Errors
    /// A directory that is not there, a store that cannot be opened.
    pub(crate) fn open(spec: &Spec, needs: &StorageNeeds, context: &RunContext) -> Result<Self, Error> {
        let target = spec.targets.first().map_or("", String::as_str);
        let own = spec::of(spec);
        let place = if is_store(target) {
            if own.direct {
                return Err(Error::usage("plan", "files over objects have no page cache to bypass")
                    .with("target", target)
                    .remedy("omit direct"));
            }
            target.parse::<dfs::Url>()?;
            None
        } else {
            let path = path_of(target).into_owned();
            if !path.is_dir() {
                return Err(Error::usage("plan", "an application requires an existing directory")
                    .with("target", target)
                    .remedy(format!("create one: mkdir -p {target}")));
            }
            Some(Root::Path(path))
        };
        let secret = layer::secret::shared_or_environment(spec.token_file.as_deref())?;
        let place = place.map_or_else(OnceLock::new, OnceLock::from);
        let tree = Tree::new(spec, needs, context);
        let (sets, direct, keep) = (needs.sets.clone(), own.direct, context.keep);
        let is_parallel = sets.iter().any(|set| set.parallel.is_some());
        let together = context.hosts.clone().filter(|_| is_parallel).map(Together::new);
        if sets.iter().any(|set| !set.format.is_raw()) {
            hdf5(spec, together.as_ref().map_or(1, Together::count))?;
        }
        Ok(Self { place, secret, tree, sets, direct, keep, hdf5: OnceLock::new(), together })
    }
}

impl FileStorage {
    /// The place, opened.
    fn place(&self) -> Result<&Root, Error> {
        if let Some(place) = self.place.get() {
            return Ok(place);
        }
        let store = stores::open(self.tree.target(), self.secret.as_ref())?;
        Ok(self.place.get_or_init(|| Root::Store(store)))
    }

    fn has_hdf5(&self) -> bool {
        self.sets.iter().any(|set| !set.format.is_raw())
    }

    /// The sets of HDF5 files below the directory of the run.
    fn hdf5_sets(&self, top: &Path) -> Result<&Arc<Vec<Option<Hdf5Set>>>, Error> {
        if let Some(sets) = self.hdf5.get() {
            return Ok(sets);
        }
        let ranks = self.together.as_ref().and_then(|_| Ranks::begun());
        let sets = self.sets.iter();
        let sets = sets.map(|set| (!set.format.is_raw()).then(|| Hdf5Set::new(top, set, ranks)).transpose());
        let sets = sets.collect::<Result<Vec<_>, Error>>()?;
        Ok(self.hdf5.get_or_init(|| Arc::new(sets)))
    }
}

impl Storage for FileStorage {
    fn facts(&self) -> StorageFacts {
        let (engine, free_bytes) = match self.place.get() {
            None => ("dfs", None),
            Some(Root::Path(path)) => {
                let space = rustix::fs::statvfs(path).ok();
                (
                    if self.has_hdf5() { "hdf5" } else { "posix" },
                    space.map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
                )
            }
            // A store that keeps no count says 0 of 0 bytes.
            Some(Root::Store(store)) => {
                let space = store.stat_fs().ok().filter(|space| space.bytes > 0);
                ("dfs", space.map(|space| space.free_bytes))
            }
        };
        StorageFacts {
            engine: engine.to_owned(),
            left_out: vec![StorageCall::OpenContainer, StorageCall::AllocateIds],
            refused: Vec::new(),
            only_whole: false,
            granularity_bytes: if self.direct { DIRECT_BYTES } else { 1 },
            free_bytes,
            is_cached: engine != "dfs" && !self.direct,
            is_in_process: self.tree.target().starts_with("dfs+vos"),
        }
    }

    fn prepare(&self) -> Result<(), Error> {
        let make = || self.tree.make(self.place()?);
        match &self.together {
            Some(together) => together.prepare(make),
            None => make(),
        }
    }

    fn drop_cache(&self, interrupt: &AtomicBool) -> Result<(), Error> {
        match self.place.get() {
            Some(Root::Path(path)) => {
                self.tree.files(path)?.iter().try_for_each(|file| cache::drop_file(file, interrupt))
            }
            Some(Root::Store(store)) => cache::drop_store(&**store),
            None => Ok(()),
        }
    }

    fn open(
        &self,
        _worker: u32,
        arena: &Arc<Arena>,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Opened<StorageOperation>, Error> {
        let top = self.tree.top();
        let driver: Box<dyn ::driver::Driver<StorageOperation>> = match self.place()? {
            Root::Path(path) => {
                let path = path.join(&top);
                let top = Directory::open(&path)?;
                let files = FilesDriver::new(Posix::default(), &top, &self.sets, arena, self.direct)?;
                match self.has_hdf5() {
                    true => Box::new(Hdf5Driver::new(files, self.hdf5_sets(&path)?, arena, interrupt)?),
                    false => Box::new(files),
                }
            }
            Root::Store(store) => {
                let root = Held { store: Arc::clone(store), inode: Inode::ROOT };
                let top = root.below(top.as_bytes()).map_err(|errno| {
                    Error::system("dfs", "cannot open the directory of the run", errno).with("path", &top)
                })?;
                Box::new(FilesDriver::new(Dfs { owner: owner() }, &top, &self.sets, arena, false)?)
            }
        };
        Ok(Opened { driver, notes: Vec::new() })
    }

    fn name(&self, operation: &StorageOperation) -> String {
        let set = &self.sets[usize::from(operation.set)];
        let (target, top, object) = (self.tree.target(), self.tree.top(), operation.object);
        if !set.format.is_raw() && operation.call.is_part() {
            let place = DatasetPlace::of(operation.offset_bytes, set.object_bytes, set.datasets.len());
            if let Some(dataset) = set.datasets.get(place.dataset) {
                let (name, element) = (&dataset.name, place.offset_bytes / dataset.element.bytes());
                return format!(
                    "{target}/{top}/{}/{object} dataset /{}/{name} element {element}",
                    set.name, set.name
                );
            }
        }
        match set.is_index {
            true => format!("{target}/{top}/{}/{object}/{}", set.name, operation.key),
            false => format!("{target}/{top}/{}/{object} offset {}", set.name, operation.offset_bytes),
        }
    }

    fn end(&self) -> Result<(), Error> {
        match self.place.get() {
            Some(place) if !self.keep => self.tree.remove(place),
            _ => Ok(()),
        }
    }
}
