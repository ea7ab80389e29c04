//! Manifest of the files that a run created: nothing else is ever deleted.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::{Error, ErrorKind};
use layer::{FileIdentity, MadeFile, identity_of};
use rustix::fs::FlockOperation;
use units::label_of;

/// Files that a run keeps locked: as many file descriptors are taken.
const HELD_MAX: usize = 128;

/// Keeps what a run makes, so that it can be removed also when the run was killed.
pub trait Journal: Send + Sync {
    /// Notes all that was made, or is about to be, in place of what was noted before. Durable when it returns.
    ///
    /// # Errors
    /// When it cannot be written: then nothing is made.
    fn note(&self, made: &[MadeFile]) -> Result<(), Error>;
}

/// A file or directory that the run created, and the identity by which it is known again.
#[derive(Debug)]
struct Created {
    path: PathBuf,
    identity: FileIdentity,
}

/// The files that a run created. Dropping it deletes them, unless they are to be kept.
pub struct Manifest {
    run_id: String,
    keep: bool,
    created: Vec<Created>,
    /// Paths of files that are about to be made.
    announced: Vec<PathBuf>,
    journal: Option<Arc<dyn Journal>>,
    /// Files that the run lays out or writes, locked as long as it lasts, so that no other run does at the same time: the first of them.
    held: Vec<(FileIdentity, File)>,
}

impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest")
            .field("run_id", &self.run_id)
            .field("created", &self.created)
            .finish_non_exhaustive()
    }
}

impl Manifest {
    /// An empty manifest of the run `run_id`. With `keep`, files outlive it once they are laid out.
    #[must_use]
    pub fn new(run_id: impl Into<String>, keep: bool) -> Self {
        Self {
            run_id: run_id.into(),
            keep,
            created: Vec::new(),
            announced: Vec::new(),
            journal: None,
            held: Vec::new(),
        }
    }

    /// Notes in `journal`, from now on, what it holds.
    pub fn keep_in(&mut self, journal: Arc<dyn Journal>) {
        self.journal = Some(journal);
    }

    /// The run's identifier, which marks its files.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Paths of the files created so far, absolute.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.created.iter().map(|created| created.path.as_path())
    }

    /// Whether this run created what lies at `path` now.
    #[must_use]
    pub fn owns(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|metadata| {
            let identity = identity_of(&metadata);
            self.created.iter().any(|created| created.identity == identity)
        })
    }

    /// Deletes what the run created. A path that leads to another file by now is left alone.
    ///
    /// # Errors
    /// The first deletion that failed; the others are tried all the same.
    pub fn remove_all(&mut self) -> Result<(), Error> {
        self.remove_from(0)
    }

    /// Leaves the files in place and returns their paths.
    #[must_use]
    pub fn into_kept(mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.created).into_iter().map(|created| created.path).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.created.len()
    }

    /// Notes those of the paths at which nothing is: they are about to be made.
    ///
    /// # Errors
    /// When they cannot be noted.
    pub(crate) fn announce<P: AsRef<Path>>(&mut self, paths: impl Iterator<Item = P>) -> Result<(), Error> {
        let is_free = |path: &P| {
            let found = std::fs::symlink_metadata(path.as_ref());
            found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let absolute = |path: P| std::path::absolute(path.as_ref()).ok();
        self.announced = paths.filter(is_free).filter_map(absolute).collect();
        self.announced.sort_unstable();
        self.announced.dedup();
        if self.announced.is_empty() { Ok(()) } else { self.note() }
    }

    /// Settles the announced files: they have been made, or will not be.
    ///
    /// # Errors
    /// When it cannot be noted.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.announced).is_empty() { Ok(()) } else { self.note() }
    }

    fn note(&self) -> Result<(), Error> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let label = |path: &Path| label_of(path.as_os_str());
        let created = self
            .created
            .iter()
            .map(|created| MadeFile { path: label(&created.path), identity: Some(created.identity) });
        let announced =
            self.announced.iter().filter(|path| !self.created.iter().any(|created| created.path == **path));
        let announced = announced.map(|path| MadeFile { path: label(path), identity: None });
        journal.note(&created.chain(announced).collect::<Vec<_>>())
    }

    pub(super) fn add(&mut self, path: &Path, file: &File) -> io::Result<()> {
        let remember = || {
            let identity = identity_of(&file.metadata()?);
            Ok(Created { path: std::path::absolute(path)?, identity })
        };
        match remember() {
            Ok(created) => {
                self.created.push(created);
                Ok(())
            }
            Err(error) => {
                // Not in the manifest, so nobody would delete it later.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Locks a file that this run lays out or writes (flock(2)), as long as the run lasts, as far as [`HELD_MAX`] goes. False: another run
    /// has it.
    pub(super) fn hold(&mut self, file: &File) -> io::Result<bool> {
        let identity = identity_of(&file.metadata()?);
        if self.held.iter().any(|(held, _)| *held == identity) {
            return Ok(true);
        }
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            // File systems without locks tell nobody who writes.
            Err(_) => return Ok(true),
            Ok(()) => {}
        }
        // The lock is that of the open file, which the copy shares: beyond the limit it ends with the layout.
        if self.held.len() < HELD_MAX {
            self.held.push((identity, file.try_clone()?));
        }
        Ok(true)
    }

    /// Remembers what lies at a path now as made by this run.
    pub(crate) fn adopt(&mut self, path: &Path) -> io::Result<()> {
        let identity = identity_of(&std::fs::symlink_metadata(path)?);
        self.created.push(Created { path: std::path::absolute(path)?, identity });
        Ok(())
    }

    /// Deletes all but the first `count` files.
    pub(super) fn remove_from(&mut self, count: usize) -> Result<(), Error> {
        let had_any = self.created.len() > count || !self.announced.is_empty();
        let mut result = Ok(());
        for created in self.created.drain(count..).rev() {
            let removed = remove(&created).map_err(|error| {
                Error::system("clean up", "cannot delete a file of this run", error)
                    .with("path", created.path.display())
            });
            result = result.and(removed);
        }
        self.announced.clear();
        // What could not be deleted is named by the error, and by the manifest as it was.
        if had_any && result.is_ok() { self.note() } else { result }
    }
}

impl Drop for Manifest {
    fn drop(&mut self) {
        if !self.keep {
            // Nobody is left to tell; `remove_all` is for those who want to know.
            let _ = self.remove_all();
        }
    }
}

fn remove(created: &Created) -> io::Result<()> {
    let result = std::fs::symlink_metadata(&created.path).and_then(|metadata| {
        match (identity_of(&metadata) == created.identity, metadata.is_dir()) {
            (false, _) => Ok(()),
            (true, false) => std::fs::remove_file(&created.path),
            (true, true) => std::fs::remove_dir(&created.path),
        }
    });
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A file that another run that is under way lays out or writes.
pub(super) fn in_use(path: &str) -> Error {
    Error::new(ErrorKind::Unsafe, "layout", "another active run uses the file")
        .with("path", path)
        .remedy("wait until it ends, use another name, or give --destroy-data to overwrite it anyway")
}

/// The path, or the directory that it will be created in.
pub(super) fn existing_place(path: &Path) -> PathBuf {
    if path.exists() {
        return path.to_owned();
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
