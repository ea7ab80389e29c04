//! What a run created: nothing else is ever deleted.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use driver::Error;

/// A file or directory that the run created, and the identity by which it is known again.
#[derive(Debug)]
struct Created {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// The files that a run created. Dropping it deletes them, unless they are to be kept.
#[derive(Debug)]
pub struct Manifest {
    run_id: String,
    keep: bool,
    created: Vec<Created>,
}

impl Manifest {
    /// An empty manifest of the run `run_id`. With `keep`, files outlive it once they are laid out.
    #[must_use]
    pub fn new(run_id: impl Into<String>, keep: bool) -> Self {
        Self { run_id: run_id.into(), keep, created: Vec::new() }
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
            self.created
                .iter()
                .any(|created| (created.device, created.inode) == (metadata.dev(), metadata.ino()))
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

    pub(super) fn add(&mut self, path: &Path, file: &File) -> io::Result<()> {
        let remember = || {
            let metadata = file.metadata()?;
            Ok(Created { path: std::path::absolute(path)?, device: metadata.dev(), inode: metadata.ino() })
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

    /// Remembers what lies at a path now as made by this run.
    pub(crate) fn adopt(&mut self, path: &Path) -> io::Result<()> {
        let metadata = std::fs::symlink_metadata(path)?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        self.created.push(Created { path: std::path::absolute(path)?, device, inode });
        Ok(())
    }

    /// Deletes all but the first `count` files.
    pub(super) fn remove_from(&mut self, count: usize) -> Result<(), Error> {
        let mut result = Ok(());
        for created in self.created.drain(count..).rev() {
            let removed = remove(&created).map_err(|error| {
                Error::system("clean up", "cannot delete a file of this run", error)
                    .with("path", created.path.display())
            });
            result = result.and(removed);
        }
        result
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
        let same = (metadata.dev(), metadata.ino()) == (created.device, created.inode);
        match (same, metadata.is_dir()) {
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
