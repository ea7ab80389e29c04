//! The pool of a directory.

use std::path::{Path, PathBuf};

use driver::Error;
use units::path_of;
use vos::Checksum;
use vos::ContainerInfo;
use vos::{
    ContainerFacts, ContainerProperties, OpenOptions, Pool, PoolOptions, PoolUsage, Standing, StoreError,
};

use super::{Admin, Held, PoolFacts};

/// A directory, and its pool once it is open.
pub(super) struct Directory {
    path: PathBuf,
    pool: Option<Pool>,
}

impl Directory {
    pub(super) fn new(path: &str) -> Self {
        Self { path: path_of(path).into_owned(), pool: None }
    }

    fn open(&mut self) -> Result<&Pool, Error> {
        if self.pool.is_none() {
            if !Pool::exists(&self.path) {
                return Err(none_in(&self.path));
            }
            self.pool = Some(Pool::open(&self.path, &OpenOptions::default())?);
        }
        self.pool.as_ref().ok_or_else(|| none_in(&self.path))
    }

    fn found(&mut self, label: &str) -> Result<ContainerFacts, Error> {
        let pool = self.open()?;
        pool.find_container(label).ok_or_else(|| {
            let known: Vec<String> = pool.containers().into_iter().map(|facts| facts.label).collect();
            let known = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", known.join(", "))
            };
            Error::usage("container", "the pool has no container with this label")
                .with("label", label)
                .remedy(known)
        })
    }
}

fn failed(what: &'static str, label: &str, error: StoreError) -> Error {
    Error::system("container", what, error).with("label", label)
}

fn none_in(path: &Path) -> Error {
    Error::usage("pool", "the directory contains no pool")
        .with("path", path.display())
        .remedy("use the directory of a pool, or create one: strata pool create vos:DIR")
}

impl Admin for Directory {
    fn pools(&mut self) -> Result<Vec<PoolFacts>, Error> {
        if Pool::exists(&self.path) { Ok(vec![self.pool()?]) } else { Ok(Vec::new()) }
    }

    fn pool(&mut self) -> Result<PoolFacts, Error> {
        self.open().map(PoolFacts::of)
    }

    fn usage(&mut self) -> Result<PoolUsage, Error> {
        let path = self.path.display().to_string();
        self.open()?
            .usage()
            .map_err(|error| Error::system("pool", "cannot read the log", error).with("path", path))
    }

    fn create_pool(&mut self, options: &PoolOptions) -> Result<PoolFacts, Error> {
        Ok(PoolFacts::of(self.pool.insert(Pool::create(&self.path, options)?)))
    }

    fn held(&mut self) -> Result<Held, Error> {
        // Not opened: what is damaged, was not finished or is of another version can be destroyed, too.
        let name = self.path.display().to_string();
        match Pool::standing(&self.path) {
            Standing::None => Err(none_in(&self.path)),
            Standing::Unfinished => Ok(Held { name, containers: Some(0) }),
            Standing::Made { containers } => Ok(Held { name, containers }),
        }
    }

    fn destroy_pool(&mut self) -> Result<(), Error> {
        // Closed first: no other process may have it open, this one neither.
        self.pool.take().map_or(Ok(()), Pool::close)?;
        Pool::destroy(&self.path)
    }

    fn containers(&mut self) -> Result<Vec<ContainerInfo>, Error> {
        Ok(self.open()?.containers().into_iter().map(ContainerInfo::from).collect())
    }

    fn container(&mut self, label: &str) -> Result<ContainerInfo, Error> {
        self.found(label).map(ContainerInfo::from)
    }

    fn create_container(&mut self, label: &str, checksum: Checksum) -> Result<ContainerInfo, Error> {
        self.open()?.create_container(label, &ContainerProperties { checksum, maker: None })?;
        self.container(label)
    }

    fn destroy_container(&mut self, label: &str) -> Result<(), Error> {
        self.found(label)?;
        self.open()?.destroy_container(label)
    }

    fn create_snapshot(&mut self, label: &str) -> Result<u64, Error> {
        let id = self.found(label)?.id;
        self.open()?.snapshot(id).map_err(|error| failed("cannot create the snapshot", label, error))
    }

    fn destroy_snapshot(&mut self, label: &str, epoch: u64) -> Result<(), Error> {
        let id = self.found(label)?.id;
        let done = self.open()?.destroy_snapshot(id, epoch);
        done.map_err(|error| failed("cannot destroy the snapshot", label, error))
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        self.pool.map_or(Ok(()), Pool::close)
    }
}
