//! Opening a file system by its URL.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use driver::{Error, Secret};
use object_service::Location;
use vos::{Checksum, ContainerProperties, ObjectClass, Pool, PoolOptions};

use crate::dfs::{Dfs, check_format};
use crate::layout::CHUNK_BYTES;
use crate::libdfs::LibDfs;
use crate::store::engine::{Connecting, EngineStore};
use crate::store::vos::VosStore;
use crate::{FileSystem, Owner, Url};

/// Container of a pool in a directory, where nothing is said.
pub const CONTAINER: &str = "dfs";

/// Properties that a file system is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Class of the objects of directories: one without copies and parity.
    pub directory_class: ObjectClass,
    /// Class of the objects of files, likewise.
    pub file_class: ObjectClass,
    /// Bytes of a file under one dkey: a power of two from 4 KiB to 1 GiB.
    pub chunk_bytes: u64,
    /// Owner of the root directory.
    pub owner: Owner,
    /// Permission bits of the root directory.
    pub permissions: u16,
}

impl Default for Format {
    /// Directories on one target each, files over all; chunks of 1 MiB; the root is this user's.
    fn default() -> Self {
        let owner =
            Owner { user: rustix::process::getuid().as_raw(), group: rustix::process::getgid().as_raw() };
        let (directory_class, file_class) = (ObjectClass::S1, ObjectClass::SX);
        Self { directory_class, file_class, chunk_bytes: CHUNK_BYTES, owner, permissions: 0o755 }
    }
}

/// Options that a file system is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Pool (of `dfs+vos:`), container and file system are made where they are not there.
    pub create: bool,
    /// How a file system is made.
    pub format: Format,
    /// How a pool in a directory is made, and opened.
    pub pool: PoolOptions,
    /// Container of a pool in a directory; none: `dfs`.
    pub container: Option<String>,
    /// Checksum of the data of a container that is made.
    pub checksum: Checksum,
    /// Shared secret, where the engine demands one.
    pub secret: Option<Secret>,
    /// Longest wait for an engine: for a connection, and for each request.
    pub timeout: Duration,
}

impl Default for Options {
    /// Nothing is made; a wait of 30 s at most.
    fn default() -> Self {
        Self {
            create: false,
            format: Format::default(),
            pool: PoolOptions::default(),
            container: None,
            checksum: Checksum::default(),
            secret: None,
            timeout: Duration::from_secs(30),
        }
    }
}

/// Opens a file system.
///
/// # Errors
/// [`driver::ErrorKind::Usage`]: there is none, and it is not to be made; [`driver::ErrorKind::Unsafe`]: the container holds data of others; what the
/// store says.
pub fn open(url: &str, options: &Options) -> Result<Arc<dyn FileSystem>, Error> {
    check_format(&options.format)?;
    match url.parse()? {
        Url::Vos { directory } => open_directory(&directory, options),
        Url::Engine { address, pool, container } => on_engine(&address, &pool, &container, options),
        Url::Daos { pool, container } => Ok(Arc::new(LibDfs::connect(&pool, &container, options.create)?)),
    }
}

fn open_directory(directory: &Path, options: &Options) -> Result<Arc<dyn FileSystem>, Error> {
    let pool = match (Pool::exists(directory), options.create) {
        (true, _) => Pool::open(directory, &options.pool.open)?,
        (false, true) => Pool::create(directory, &options.pool)?,
        (false, false) => {
            return Err(Error::usage("dfs", "the directory contains no pool")
                .with("directory", directory.display())
                .remedy("create one with strata pool create"));
        }
    };
    on_pool(Arc::new(pool), options, true)
}

fn on_engine(
    address: &str,
    pool: &str,
    container: &str,
    options: &Options,
) -> Result<Arc<dyn FileSystem>, Error> {
    let store = EngineStore::connect(Connecting {
        location: Location::parse(&format!("engine://{address}"))?,
        pool,
        container,
        secret: options.secret.as_ref(),
        timeout: options.timeout,
        create: options.create.then_some(options.checksum),
    })?;
    let create = options.create.then_some(&options.format);
    let dfs =
        Dfs::open(Box::new(store), create, false).map_err(|error| error.with("container", container))?;
    Ok(Arc::new(dfs))
}

/// Opens the file system of a container of a pool that is open in this process: each opening is a client of its own.
///
/// # Errors
/// As [`open`].
pub fn open_on_pool(pool: &Arc<Pool>, options: &Options) -> Result<Arc<dyn FileSystem>, Error> {
    check_format(&options.format)?;
    on_pool(Arc::clone(pool), options, false)
}

fn on_pool(pool: Arc<Pool>, options: &Options, owns: bool) -> Result<Arc<dyn FileSystem>, Error> {
    let label = options.container.as_deref().unwrap_or(CONTAINER);
    if pool.find_container(label).is_none() && options.create {
        let properties = ContainerProperties { checksum: options.checksum, maker: None };
        // Another client may have made it meanwhile: it is there then.
        pool.create_container(label, &properties)
            .map(drop)
            .or_else(|error| pool.find_container(label).map(drop).ok_or(error))?;
    }
    let Some(facts) = pool.find_container(label) else {
        let known: Vec<_> = pool.containers().into_iter().map(|facts| facts.label).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Error::usage("dfs", "no container with this label exists")
            .with("container", label)
            .remedy(format!("create it, or name another; existing containers: {known}")));
    };
    let store = VosStore::new(pool, facts.id, owns);
    let create = options.create.then_some(&options.format);
    let dfs = Dfs::open(Box::new(store), create, owns).map_err(|error| error.with("container", label))?;
    Ok(Arc::new(dfs))
}
