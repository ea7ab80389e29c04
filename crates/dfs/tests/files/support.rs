//! Stores for file systems, and calls by path.

use std::path::Path;
use std::sync::Arc;

use dfs::{
    Attributes, Errno, FileKind, FileSystem, Format, Handle, Inode, OpenFlags, Options, Owner, open_on_pool,
};
use tempfile::TempDir;
use vos::{Pool, PoolOptions};

pub(crate) const OWNER: Owner = Owner { user: 7, group: 8 };
pub(crate) const READ: OpenFlags =
    OpenFlags { read: true, write: false, append: false, truncate: false, exclusive: false };
pub(crate) const READ_WRITE: OpenFlags = OpenFlags { write: true, ..READ };

/// A directory on tmpfs where there is one.
pub(crate) fn scratch() -> TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { TempDir::new_in(shm) } else { TempDir::new() }.expect("a directory")
}

/// A store that several clients have a file system in.
pub(crate) trait Ground {
    /// One more client.
    fn client(&self) -> Arc<dyn FileSystem>;
}

/// A pool in this process.
pub(crate) struct InProcess {
    pub(crate) pool: Arc<Pool>,
    options: Options,
    _dir: TempDir,
}

/// Small chunks, so that small files have many.
pub(crate) fn options(chunk_bytes: u64) -> Options {
    let format = Format {
        chunk_bytes,
        owner: OWNER,
        directory_class: "SX".parse().expect("a class"),
        ..Format::default()
    };
    Options { create: true, format, ..Options::default() }
}

pub(crate) fn pool_options(targets: u32) -> PoolOptions {
    PoolOptions { targets, scm_bytes: u64::from(targets) * (64 << 20), ..PoolOptions::default() }
}

impl InProcess {
    pub(crate) fn new(targets: u32, chunk_bytes: u64) -> Self {
        Self::of(&pool_options(targets), options(chunk_bytes))
    }

    pub(crate) fn of(pool: &PoolOptions, options: Options) -> Self {
        let dir = scratch();
        let pool = Pool::create(&dir.path().join("pool"), pool).expect("a pool");
        Self { pool: Arc::new(pool), options, _dir: dir }
    }
}

impl Ground for InProcess {
    fn client(&self) -> Arc<dyn FileSystem> {
        open_on_pool(&self.pool, &self.options).expect("a file system")
    }
}

/// Calls by path, from the root.
pub(crate) struct Paths<'a>(pub(crate) &'a dyn FileSystem);

impl Paths<'_> {
    /// Goes down to the directory of a path, and calls with it and the last name.
    pub(crate) fn at<R>(
        &self,
        path: &str,
        act: impl FnOnce(Inode, &[u8]) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let mut held = Vec::new();
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut walk = || {
            let mut inode = Inode::ROOT;
            for part in directories.split('/').filter(|part| !part.is_empty()) {
                let found = self.0.look_up(inode, part.as_bytes())?;
                inode = found.inode;
                held.push(inode);
                if found.kind != FileKind::Directory {
                    return Err(Errno::NOTDIR);
                }
            }
            Ok(inode)
        };
        let result = walk().and_then(|inode| act(inode, name.as_bytes()));
        held.into_iter().for_each(|inode| self.0.forget(inode, 1));
        result
    }

    /// Calls with the inode of a path.
    pub(crate) fn with<R>(
        &self,
        path: &str,
        act: impl FnOnce(&Attributes) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        if path.is_empty() {
            return act(&self.0.attributes(Inode::ROOT)?);
        }
        self.at(path, |parent, name| {
            let found = self.0.look_up(parent, name)?;
            let result = act(&found);
            self.0.forget(found.inode, 1);
            result
        })
    }

    pub(crate) fn create(&self, path: &str, flags: OpenFlags) -> Result<Handle, Errno> {
        self.at(path, |parent, name| {
            let (attributes, handle) = self.0.create(parent, name, 0o644, OWNER, flags)?;
            self.0.forget(attributes.inode, 1);
            Ok(handle)
        })
    }

    pub(crate) fn mkdir(&self, path: &str) -> Result<(), Errno> {
        self.at(path, |parent, name| {
            let made = self.0.make_directory(parent, name, 0o755, OWNER)?;
            self.0.forget(made.inode, 1);
            Ok(())
        })
    }

    pub(crate) fn put(&self, path: &str, content: &[u8]) -> Result<(), Errno> {
        let handle = self.create(path, OpenFlags { truncate: true, ..READ_WRITE })?;
        let written = self.0.write(handle, 0, content);
        self.0.release(handle)?;
        written.map(|bytes| assert_eq!(bytes, content.len()))
    }

    pub(crate) fn get(&self, path: &str) -> Result<Vec<u8>, Errno> {
        self.with(path, |attributes| {
            let handle = self.0.open(attributes.inode, READ)?;
            let mut content = vec![0xee; attributes.size_bytes as usize + 1];
            let read = self.0.read(handle, 0, &mut content);
            self.0.release(handle)?;
            content.truncate(read?);
            Ok(content)
        })
    }

    pub(crate) fn stat(&self, path: &str) -> Result<Attributes, Errno> {
        self.at(path, |parent, name| self.0.stat(parent, name))
    }

    /// Names of a directory, sorted; listed in parts of three.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<(Vec<u8>, FileKind)>, Errno> {
        self.with(path, |attributes| {
            let (mut all, mut after) = (Vec::new(), 0);
            loop {
                let before = all.len();
                self.0.list(attributes.inode, after, &mut |entry| {
                    all.push((entry.name.to_vec(), entry.kind));
                    after = entry.next;
                    all.len() < before + 3
                })?;
                if all.len() == before {
                    break;
                }
            }
            all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            Ok(all)
        })
    }
}
