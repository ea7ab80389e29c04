//! The driver of a file system that carries out one call at a time, whoever makes the calls: names, open directories and open files of one
//! worker.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::sync::Arc;

use driver::{Arena, Completions, Driver, Error, Submitted};
use rustix::io::Errno;

use crate::operation::{FsClass, FsOperation, NameKind};
use crate::phases::FsOp;
use crate::plan::{FsPlan, PathForm};
use crate::set::Shape;

/// Directories that a worker keeps open at most.
const DIRECTORIES_MAX: usize = 1024;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenMode {
    /// For writing too.
    pub write: bool,
    /// Makes it where it is missing.
    pub create: bool,
    /// It must not be there.
    pub exclusive: bool,
    /// Cuts it to nothing.
    pub truncate: bool,
    /// Past the page cache.
    pub direct: bool,
}

type Done = Result<(), Errno>;

/// Calls of a file system. Names are relative to a directory that is open.
pub(crate) trait Calls: Send + 'static {
    /// A directory that is open.
    type Directory: Send;
    /// A file that is open.
    type File: Send;

    /// Opens a directory below another one.
    fn open_directory(&self, at: &Self::Directory, path: &CStr) -> Result<Self::Directory, Errno>;
    /// Opens a file.
    fn open(&self, at: &Self::Directory, name: &CStr, mode: OpenMode) -> Result<Self::File, Errno>;
    /// Closes it.
    fn close(&self, file: Self::File) -> Done;
    /// Makes an empty file without opening it.
    fn make_node(&self, at: &Self::Directory, name: &CStr) -> Done;
    /// Reads at an offset.
    fn read(&self, file: &Self::File, into: &mut [u8], offset: u64) -> Result<usize, Errno>;
    /// Writes at an offset.
    fn write(&self, file: &Self::File, data: &[u8], offset: u64) -> Result<usize, Errno>;
    /// Makes a file durable.
    fn sync(&self, file: &Self::File) -> Done;
    /// Makes all of the file system durable that a directory lies in.
    fn sync_all(&self, _at: &Self::Directory) -> Done {
        Err(Errno::NOSYS)
    }
    /// Takes room for a file.
    fn allocate(&self, file: &Self::File, bytes: u64) -> Done;
    /// Sets the length of a file.
    fn truncate(&self, file: &Self::File, bytes: u64) -> Done;
    /// Locks a file as a whole, or unlocks it.
    fn lock(&self, file: &Self::File, locks: bool) -> Done;
    /// Says that a file will be read.
    fn advise(&self, file: &Self::File) -> Done;
    /// Attributes of a name.
    fn stat(&self, at: &Self::Directory, name: &CStr) -> Done;
    /// Lists a directory; how many entries it has.
    fn list(&self, at: &Self::Directory, path: &CStr) -> Result<u64, Errno>;
    /// Makes a directory.
    fn make_directory(&self, at: &Self::Directory, name: &CStr) -> Done;
    /// Removes an empty directory.
    fn remove_directory(&self, at: &Self::Directory, name: &CStr) -> Done;
    /// Removes a name.
    fn unlink(&self, at: &Self::Directory, name: &CStr) -> Done;
    /// Renames within a directory.
    fn rename(&self, at: &Self::Directory, from: &CStr, to: &CStr) -> Done;
    /// Makes a second name.
    fn link(&self, at: &Self::Directory, from: &CStr, to: &CStr) -> Done;
    /// Makes a symbolic link to a name of its directory.
    fn symlink(&self, at: &Self::Directory, to_name: &CStr, name: &CStr) -> Done;
    /// Reads it.
    fn read_link(&self, at: &Self::Directory, name: &CStr) -> Done;
    /// Sets an extended attribute of the name at this path below the root that `at` is.
    fn set_xattr(&self, at: &Self::Directory, path: &CStr) -> Done;
    /// Reads it.
    fn xattr(&self, at: &Self::Directory, path: &CStr) -> Done;
    /// Removes it.
    fn remove_xattr(&self, at: &Self::Directory, path: &CStr) -> Done;
}

/// Directory that a name is relative to.
#[derive(Clone, Copy)]
enum At {
    /// Root of a target.
    Root(usize),
    /// Place in the cache of open directories.
    Open(usize),
}

/// Rank and node of a directory that is open, and the directory.
type OpenDirectory<D> = ((u32, u64), D);

/// The driver of one worker.
pub(crate) struct Files<C: Calls> {
    calls: C,
    plan: Arc<FsPlan>,
    arena: Arc<Arena>,
    /// Root of each target: the directory itself, or of files without a tree the one that they lie in.
    roots: Vec<C::Directory>,
    /// Names of the one file of each rank, for sets that are no tree; NUL-terminated.
    names: Vec<Vec<u8>>,
    directories: Vec<Option<OpenDirectory<C::Directory>>>,
    handles: Vec<Option<C::File>>,
    /// First and second name, NUL-terminated.
    name: Vec<u8>,
    second: Vec<u8>,
    mode: OpenMode,
}

impl<C: Calls> Files<C> {
    /// The driver of a phase; `roots` are open, one a target.
    pub(crate) fn new(calls: C, plan: &Arc<FsPlan>, arena: &Arc<Arena>, roots: Vec<C::Directory>) -> Self {
        let names = match plan.set.shape {
            Shape::Tree => Vec::new(),
            Shape::Private | Shape::Shared => (0..plan.set.ranks).map(|rank| file_name(plan, rank)).collect(),
        };
        let directories =
            (plan.set.nodes() * u64::from(plan.set.trees())).clamp(1, DIRECTORIES_MAX as u64) as usize;
        let reads = matches!(plan.operation, FsOp::Read | FsOp::Fadvise);
        Self {
            calls,
            arena: Arc::clone(arena),
            roots,
            names,
            directories: (0..directories).map(|_| None).collect(),
            handles: (0..=plan.load.depth).map(|_| None).collect(),
            name: Vec::with_capacity(4096),
            second: Vec::with_capacity(4096),
            mode: OpenMode { write: !reads, direct: plan.direct, ..OpenMode::default() },
            plan: Arc::clone(plan),
        }
    }

    /// Writes the name of an operation, and its second name, into the buffers; the directory that it is relative to.
    fn locate(&mut self, operation: &FsOperation) -> Result<At, Errno> {
        let FsOperation { rank, item, kind, .. } = *operation;
        let root = rank as usize % self.roots.len();
        self.name.clear();
        let at = if self.plan.set.shape == Shape::Tree {
            let node = if kind == NameKind::Node { item } else { self.plan.set.node_of(item) };
            let is_relative = self.plan.paths == PathForm::Relative && kind != NameKind::Node;
            let at = if is_relative {
                At::Open(self.open_directory(root, rank, node)?)
            } else {
                self.plan.set.push_node(rank, node, &mut self.name);
                At::Root(root)
            };
            if kind != NameKind::Node {
                if !is_relative {
                    self.name.push(b'/');
                }
                self.plan.set.push_name(kind, rank, item, &mut self.name);
            }
            self.name.push(0);
            at
        } else {
            self.name.extend_from_slice(&self.names[rank as usize]);
            At::Root(root)
        };
        self.second.clear();
        self.second.extend_from_slice(&self.name[..self.name.len() - 1]);
        self.second.extend_from_slice(b"~\0");
        Ok(at)
    }

    /// Opens a directory of the tree, or finds it among those that are open.
    fn open_directory(&mut self, root: usize, rank: u32, node: u64) -> Result<usize, Errno> {
        let rank = if self.plan.set.shared_tree { rank % self.roots.len() as u32 } else { rank };
        let key = (rank, node);
        let place =
            ((u64::from(rank) * self.plan.set.nodes() + node) % self.directories.len() as u64) as usize;
        if self.directories[place].as_ref().is_some_and(|(known, _)| *known == key) {
            return Ok(place);
        }
        self.directories[place] = None;
        self.second.clear();
        self.plan.set.push_node(rank, node, &mut self.second);
        self.second.push(0);
        let opened = self.calls.open_directory(&self.roots[root], c_name(&self.second)?)?;
        self.directories[place] = Some((key, opened));
        Ok(place)
    }

    /// Path of an operation below the root of its target.
    fn path_below_root(&mut self, operation: &FsOperation) -> Result<usize, Errno> {
        let FsOperation { rank, item, kind, .. } = *operation;
        self.name.clear();
        if self.plan.set.shape == Shape::Tree {
            self.plan.set.push_node(rank, self.plan.set.node_of(item), &mut self.name);
            self.name.push(b'/');
            self.plan.set.push_name(kind, rank, item, &mut self.name);
            self.name.push(0);
        } else {
            self.name.extend_from_slice(&self.names[rank as usize]);
        }
        Ok(rank as usize % self.roots.len())
    }

    fn directory(&self, at: At) -> Result<&C::Directory, Errno> {
        match at {
            At::Root(root) => Ok(&self.roots[root]),
            At::Open(place) => self.directories[place].as_ref().map(|(_, open)| open).ok_or(Errno::BADF),
        }
    }

    fn file(&self, operation: &FsOperation) -> Result<&C::File, Errno> {
        self.handles[operation.handle as usize].as_ref().ok_or(Errno::BADF)
    }

    fn carry_out(&mut self, operation: &FsOperation) -> Result<u64, Errno> {
        use FsClass::{
            Close, Create, Fadvise, Fsync, Getxattr, Lock, Open, Read, Removexattr, Setxattr, Sync, Truncate,
            Unlock, Write,
        };
        let FsOperation { class, slot, offset_bytes: offset, length_bytes: length, .. } = *operation;
        match class {
            Read => {
                // SAFETY: the slot is the driver's from submit to completion, which is this call.
                let buffer = unsafe { self.arena.slot_mut(slot, length as usize) };
                self.calls.read(self.file(operation)?, buffer, offset).map(|read| read as u64)
            }
            Write => {
                // SAFETY: as above.
                let buffer = unsafe { self.arena.slot_mut(slot, length as usize) };
                self.calls.write(self.file(operation)?, buffer, offset).map(|written| written as u64)
            }
            Open | Create => self.open(operation).map(|()| 0),
            Close => {
                let file = self.handles[operation.handle as usize].take().ok_or(Errno::BADF)?;
                self.calls.close(file).map(|()| 0)
            }
            Fsync => self.calls.sync(self.file(operation)?).map(|()| 0),
            Sync => self.calls.sync_all(&self.roots[operation.rank as usize % self.roots.len()]).map(|()| 0),
            Fadvise => self.calls.advise(self.file(operation)?).map(|()| 0),
            Lock | Unlock => self.calls.lock(self.file(operation)?, class == Lock).map(|()| 0),
            Truncate => {
                let whole = self.plan.geometry.file_size_bytes;
                let bytes = if operation.is_second { whole } else { whole / 2 };
                self.calls.truncate(self.file(operation)?, bytes).map(|()| 0)
            }
            Setxattr | Getxattr | Removexattr => {
                let root = self.path_below_root(operation)?;
                let (root, path) = (&self.roots[root], c_name(&self.name)?);
                match class {
                    Setxattr => self.calls.set_xattr(root, path),
                    Getxattr => self.calls.xattr(root, path),
                    _ => self.calls.remove_xattr(root, path),
                }
                .map(|()| 0)
            }
            _ => self.on_name(operation),
        }
    }

    fn open(&mut self, operation: &FsOperation) -> Done {
        let creates = operation.class == FsClass::Create;
        let mode = OpenMode {
            create: creates,
            exclusive: creates && self.plan.exclusive,
            truncate: creates && self.plan.truncate_first,
            ..self.mode
        };
        let at = self.locate(operation)?;
        let file = self.calls.open(self.directory(at)?, c_name(&self.name)?, mode)?;
        if creates && self.plan.preallocate {
            let geometry = &self.plan.geometry;
            let ranks = if self.plan.set.shape == Shape::Shared { u64::from(self.plan.set.ranks) } else { 1 };
            self.calls.allocate(&file, geometry.file_size_bytes * geometry.segments * ranks)?;
        }
        self.handles[operation.handle as usize] = Some(file);
        Ok(())
    }

    /// Calls on names.
    fn on_name(&mut self, operation: &FsOperation) -> Result<u64, Errno> {
        use FsClass::{Link, Mkdir, Mknod, Readdir, Readlink, Rename, Rmdir, Stat, Symlink, Unlink};
        let at = self.locate(operation)?;
        let directory = self.directory(at)?;
        let (name, second) = (c_name(&self.name)?, c_name(&self.second)?);
        let own = if operation.is_second { second } else { name };
        let calls = &self.calls;
        match operation.class {
            Readdir => return calls.list(directory, name),
            Mknod => calls.make_node(directory, own),
            Stat => calls.stat(directory, own),
            Mkdir => calls.make_directory(directory, own),
            Rmdir => calls.remove_directory(directory, own),
            Unlink => calls.unlink(directory, own),
            Rename if operation.is_second => calls.rename(directory, name, second),
            Rename => calls.rename(directory, second, name),
            Link => calls.link(directory, name, second),
            Symlink => {
                let last = self.name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
                calls.symlink(directory, c_name(&self.name[last..])?, second)
            }
            Readlink => calls.read_link(directory, second),
            _ => return Err(Errno::NOSYS),
        }
        .map(|()| 0)
    }
}

/// Name of the one file of a rank below the root of its target, NUL-terminated.
fn file_name(plan: &FsPlan, rank: u32) -> Vec<u8> {
    let target = plan.target(rank);
    let path = plan.set.file_path(target, rank);
    let root = root_of(target);
    let below = path.strip_prefix(root).map_or(path.as_str(), |below| below.trim_start_matches('/'));
    let mut name = below.as_bytes().to_vec();
    name.push(0);
    name
}

/// Directory that the files of a target without a tree lie in, as typed.
pub(crate) fn root_of(target: &str) -> &str {
    match target.rsplit_once('/') {
        None => "",
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
    }
}

fn c_name(bytes: &[u8]) -> Result<&CStr, Errno> {
    CStr::from_bytes_with_nul(bytes).map_err(|_| Errno::INVAL)
}

impl<C: Calls> Driver<FsOperation> for Files<C> {
    #[inline]
    fn submit(&mut self, batch: &[FsOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        let result = match self.carry_out(operation) {
            Ok(count) => count as i64,
            Err(errno) => -i64::from(errno.raw_os_error()),
        };
        done.push(operation.slot, result);
        Ok(Submitted { accepted: 1 })
    }
}
