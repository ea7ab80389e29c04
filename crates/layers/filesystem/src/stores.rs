//! File sets over objects: the file systems that a run has open, and what it makes in them. The rules are those of paths
//! ([`crate::made`]): what it makes is noted before, carries the mark of the run, and is removed by the names of the set alone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dfs::{FileKind, FileSystem, Inode, Options, Owner, Url};
use driver::{Error, ErrorKind, Secret};
use layer::MARK;
use layer::server::SharedStores;
use rustix::io::Errno;
use workload::plan::ServedStore;

use crate::drivers::Held;
use crate::made::{trees_here, unseen};
use crate::phases::FsOp;
use crate::plan::FsPlan;
use crate::progress::Progress;
use crate::set::{FileSet, Shape};

/// Directory that files without a tree lie in.
pub(crate) const TOP: &str = "strata";
/// Beginning of their names.
pub(crate) const DATA: &str = "data";

/// Whether a target is a file system over objects.
pub(crate) fn is_store(target: &str) -> bool {
    target.starts_with("dfs+")
}

/// Opens a file system; a container that is not there is made in a pool that is.
pub(crate) fn open(url: &str, secret: Option<&Secret>) -> Result<Arc<dyn FileSystem>, Error> {
    let parsed: Url = url.parse()?;
    check_directory(&parsed)?;
    dfs::open(url, &Options { create: true, secret: secret.cloned(), ..Options::default() })
}

/// Refuses the URL of a pool in a directory that has none.
///
/// # Errors
/// Bad usage, also for a URL that is none.
pub(crate) fn check_pool(url: &str) -> Result<(), Error> {
    check_directory(&url.parse()?)
}

/// Whether a file system over objects lay in a pool of this machine that is not there any more.
pub(crate) fn is_gone(url: &str) -> bool {
    matches!(url.parse(), Ok(Url::Vos { directory }) if !is_pool(&directory))
}

/// The URL by which several processes of this machine use the file system of a pool in a directory; none for another target.
///
/// # Errors
/// A directory without a pool, and an engine that does not serve.
pub(crate) fn shared(target: &str, stores: &mut SharedStores) -> Result<Option<ServedStore>, Error> {
    if !is_store(target) {
        return Ok(None);
    }
    let url: Url = target.parse()?;
    check_directory(&url)?;
    let Url::Vos { directory } = &url else { return Ok(None) };
    let (directory, address) = stores.serve(target, directory)?;
    let (pool, container) = (SharedStores::POOL.to_owned(), dfs::CONTAINER.to_owned());
    Ok(Some(ServedStore {
        store: Url::Vos { directory }.to_string(),
        target: Url::Engine { address, pool, container }.to_string(),
    }))
}

fn check_directory(url: &Url) -> Result<(), Error> {
    match url {
        Url::Vos { directory } if !is_pool(directory) => {
            Err(Error::usage("dfs", "the directory contains no pool")
                .with("directory", directory.display())
                .remedy(format!("create one: strata pool create vos:{}", directory.display())))
        }
        _ => Ok(()),
    }
}

fn is_pool(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

fn failed<'a>(what: &'static str, url: &'a str, path: &'a str) -> impl Fn(Errno) -> Error + 'a {
    move |errno| Error::system("dfs", what, errno).with("target", url).with("path", path)
}

/// A set that a run made in file systems over objects.
struct MadeHere {
    targets: Vec<String>,
    set: FileSet,
}

/// File systems that a run has open.
#[derive(Default)]
pub(crate) struct Stores {
    open: Vec<(String, Arc<dyn FileSystem>)>,
    made: Vec<MadeHere>,
}

impl Stores {
    /// The file system of each target of a plan, opened once a run.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub(crate) fn of(
        &mut self,
        plan: &FsPlan,
        secret: Option<&Secret>,
    ) -> Result<Vec<Arc<dyn FileSystem>>, Error> {
        let mut found = Vec::new();
        for target in plan.targets.iter().filter(|target| is_store(target)) {
            let known = self.open.iter().find(|(url, _)| url == target).map(|(_, store)| Arc::clone(store));
            let store = match known {
                Some(store) => store,
                None => {
                    let store = open(target, secret)?;
                    self.open.push((target.clone(), Arc::clone(&store)));
                    store
                }
            };
            found.push(store);
        }
        Ok(found)
    }

    /// Gets a phase ready. `note` notes a set before anything of it is made.
    ///
    /// # Errors
    /// [`ErrorKind::Unsafe`] for what is others', bad usage for what is missing, and those of the file systems.
    pub(crate) fn prepare(
        &mut self,
        plan: &FsPlan,
        stores: &[Arc<dyn FileSystem>],
        destroy_data: bool,
        progress: &Progress,
        (run_id, note): (&str, &mut dyn FnMut() -> Result<(), Error>),
    ) -> Result<(), Error> {
        if !plan.operation.phase().changes {
            return Ok(());
        }
        let makes = plan.operation.makes() || plan.operation == FsOp::TreeCreate;
        for rank in 0..plan.set.trees().max(plan.targets.len() as u32) {
            let (url, store) = (plan.target(rank), &stores[rank as usize % stores.len()]);
            let top = top_of(&plan.set, rank);
            match is_marked_soon(store, &top) {
                Err(Errno::NOENT) if makes && plan.load.is_guest() => {
                    return Err(unseen(&format!("{url}/{top}")));
                }
                Err(Errno::NOENT) if makes => {
                    note()?;
                    // Where a run beside this one was faster, it is there by now.
                    make_top(store, &top, run_id)
                        .or_else(|errno| match is_marked_soon(store, &top) {
                            Ok(true) if errno == Errno::EXIST => Ok(()),
                            _ => Err(errno),
                        })
                        .map_err(failed("cannot create the directory", url, &top))?;
                }
                Err(Errno::NOENT) => {
                    return Err(Error::usage("files", "no tree exists to change")
                        .with("target", url)
                        .with("path", &top)
                        .remedy("create one with --op tree-create,create"));
                }
                Err(errno) => return Err(failed("cannot stat the directory", url, &top)(errno)),
                Ok(false) if !destroy_data => {
                    return Err(Error::new(ErrorKind::Unsafe, "safety", "it was not created by strata")
                        .with("target", url)
                        .with("path", &top)
                        .remedy("use another file system, or --destroy-data to change existing data"));
                }
                Ok(_) => {}
            }
        }
        if makes
            && !plan.load.is_guest()
            && !self.made.iter().any(|made| made.targets == plan.targets && made.set == plan.set)
        {
            self.made.push(MadeHere { targets: plan.targets.clone(), set: plan.set.clone() });
        }
        let has_tree = progress.has_tree.swap(makes, Ordering::Relaxed);
        if makes && plan.operation != FsOp::TreeCreate && !has_tree {
            make_nodes(plan, stores)?;
        }
        Ok(())
    }

    /// Closes all of them: nothing that the run made is left in them, or it stays.
    pub(crate) fn close(&mut self) {
        self.made.clear();
        self.open.clear();
    }

    /// Removes all that the run made.
    ///
    /// # Errors
    /// The first that could not be removed; the others are tried all the same.
    pub(crate) fn remove_all(&mut self, run_id: &str) -> Result<(), Error> {
        let sets = std::mem::take(&mut self.made);
        let remove = || {
            let mut result = Ok(());
            for made in &sets {
                for (url, store) in self.open.iter().filter(|(url, _)| made.targets.contains(url)) {
                    result = result.and(remove_set(&made.set, url, store, run_id).map(drop));
                }
            }
            result
        };
        // Sets may share the directory that holds them: it goes when the last has gone.
        remove().or_else(|_| remove())
    }
}

/// Owner of what this process makes.
pub(crate) fn owner() -> Owner {
    Owner { user: rustix::process::getuid().as_raw(), group: rustix::process::getgid().as_raw() }
}

/// File of a rank in a set without a tree.
pub(crate) fn file_of(set: &FileSet, rank: u32) -> String {
    set.file_path(DATA, rank)
}

fn root(store: &Arc<dyn FileSystem>) -> Held {
    Held { store: Arc::clone(store), inode: Inode::ROOT }
}

/// Directory that holds all that a rank has.
fn top_of(set: &FileSet, rank: u32) -> String {
    if set.shape == Shape::Tree { set.top(rank) } else { TOP.to_owned() }
}

/// Whether an entry of the root carries the mark of a run.
fn is_marked(store: &Arc<dyn FileSystem>, top: &str) -> Result<bool, Errno> {
    let found = root(store).below(top.as_bytes())?;
    Ok(store.xattr(found.inode, MARK.as_bytes()).is_ok())
}

/// The same, with a wait for a run beside this one that has made it and not marked it yet.
fn is_marked_soon(store: &Arc<dyn FileSystem>, top: &str) -> Result<bool, Errno> {
    for _ in 0..20 {
        match is_marked(store, top) {
            Ok(false) => std::thread::sleep(Duration::from_millis(20)),
            other => return other,
        }
    }
    is_marked(store, top)
}

fn make_top(store: &Arc<dyn FileSystem>, top: &str, run_id: &str) -> Result<(), Errno> {
    let inode = store.make_directory(Inode::ROOT, top.as_bytes(), 0o755, owner())?.inode;
    let made = Held { store: Arc::clone(store), inode };
    store.set_xattr(made.inode, MARK.as_bytes(), run_id.as_bytes(), false, false)
}

/// Makes the directories of the trees that this host is to make.
fn make_nodes(plan: &FsPlan, stores: &[Arc<dyn FileSystem>]) -> Result<(), Error> {
    for rank in trees_here(plan) {
        let store = &stores[rank as usize % stores.len()];
        let root = root(store);
        for node in 0..plan.set.nodes() {
            let mut path = Vec::new();
            plan.set.push_node(rank, node, &mut path);
            let made = root.at(&path, |store, directory, name| {
                store.make_directory(directory, name, 0o755, owner()).map(|made| store.forget(made.inode, 1))
            });
            if let Err(errno) = made
                && errno != Errno::EXIST
            {
                let path = String::from_utf8_lossy(&path).into_owned();
                return Err(failed("cannot create the directory", plan.target(rank), &path)(errno));
            }
        }
    }
    Ok(())
}

/// Removes what a run made of a set: the names of the set alone, below directories with the mark of the run. How many names.
///
/// # Errors
/// When the file system fails, and for directories that hold what the run did not make.
pub(crate) fn remove_set(
    set: &FileSet,
    url: &str,
    store: &Arc<dyn FileSystem>,
    run_id: &str,
) -> Result<u64, Error> {
    let mut removed = 0;
    let mut tops: Vec<String> = (0..set.trees()).map(|rank| top_of(set, rank)).collect();
    tops.dedup();
    for (rank, top) in tops.iter().enumerate() {
        let Ok(found) = root(store).below(top.as_bytes()) else { continue };
        let mark = store.xattr(found.inode, MARK.as_bytes());
        if !mark.is_ok_and(|mark| mark == run_id.as_bytes()) {
            continue;
        }
        let below = if set.shape == Shape::Tree {
            let trees = if tops.len() == 1 { 0..set.trees() } else { rank as u32..rank as u32 + 1 };
            trees.map(|tree| remove_tree(set, store, tree)).sum::<Result<u64, Errno>>()
        } else {
            remove_files(set, &**store, found.inode)
        };
        removed += below.map_err(failed("cannot remove files of this run", url, top))?;
        match store.remove_directory(Inode::ROOT, top.as_bytes()) {
            Ok(()) => removed += 1,
            Err(Errno::NOTEMPTY) => {
                let left = "the directory is kept: it contains files that this run did not create";
                return Err(Error::new(ErrorKind::Run, "files", left).with("target", url).with("path", top));
            }
            Err(errno) => return Err(failed("cannot remove files of this run", url, top)(errno)),
        }
    }
    Ok(removed)
}

fn remove_files(set: &FileSet, store: &dyn FileSystem, top: Inode) -> Result<u64, Errno> {
    let mut removed = 0;
    for rank in 0..set.ranks {
        match store.unlink(top, file_of(set, rank).as_bytes()) {
            Ok(()) => removed += 1,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(removed)
}

/// Removes the names of a tree that are of the set.
fn remove_tree(set: &FileSet, store: &Arc<dyn FileSystem>, tree: u32) -> Result<u64, Errno> {
    let (root, mut removed) = (root(store), 0);
    for node in (0..set.nodes()).rev() {
        let mut path = Vec::new();
        set.push_node(tree, node, &mut path);
        let Ok(directory) = root.below(&path) else { continue };
        let mut own = Vec::new();
        store.list(directory.inode, 0, &mut |entry| {
            own.extend(set.item_named(tree, node, entry.name).map(|_| (entry.name.to_vec(), entry.kind)));
            true
        })?;
        own.iter().try_for_each(|(name, kind)| match kind {
            FileKind::Directory => store.remove_directory(directory.inode, name),
            _ => store.unlink(directory.inode, name),
        })?;
        removed += own.len() as u64;
        drop(directory);
        // The directory that holds all of a tree is the caller's.
        if !path.contains(&b'/') {
            continue;
        }
        match root.at(&path, |store, parent, name| store.remove_directory(parent, name)) {
            Ok(()) => removed += 1,
            Err(Errno::NOTEMPTY | Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(removed)
}
