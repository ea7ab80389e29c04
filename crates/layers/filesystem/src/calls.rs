//! The driver of a file system that carries out one call at a time, whoever makes the calls.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::sync::Arc;

use driver::{Arena, Completions, Driver, Error, Submitted};
use rustix::io::Errno;

use crate::names::{At, Names};
use crate::operation::{FsClass, FsOperation};
use crate::phases::FsOp;
use crate::plan::FsPlan;

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

impl OpenMode {
    /// How an operation opens its file.
    pub(crate) fn of(plan: &FsPlan, operation: &FsOperation) -> Self {
        let creates = operation.class == FsClass::Create;
        Self {
            write: !matches!(plan.operation, FsOp::Read | FsOp::Fadvise),
            create: creates,
            exclusive: creates && plan.exclusive,
            truncate: creates && plan.truncate_first,
            direct: plan.direct,
        }
    }
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
    /// Makes data and size of a file durable; by default the whole file.
    fn sync_data(&self, file: &Self::File) -> Done {
        self.sync(file)
    }
    /// Makes all durable that the file system of a directory has not written yet; by default there is no such call.
    fn sync_all(&self, _at: &Self::Directory) -> Done {
        Err(Errno::OPNOTSUPP)
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

/// Writes a block. One that ends early does not say why: the rest is tried once, and an error of the storage is that of the block. Where the
/// rest can be written the block is short all the same.
pub(crate) fn write_or_tell<C: Calls>(
    calls: &C,
    file: &C::File,
    buffer: &[u8],
    offset: u64,
) -> Result<usize, Errno> {
    let written = calls.write(file, buffer, offset)?;
    if written == 0 || written >= buffer.len() {
        return Ok(written);
    }
    match calls.write(file, &buffer[written..], offset + written as u64) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => Err(errno),
        _ => Ok(written),
    }
}

/// The driver of one worker.
pub(crate) struct Files<C: Calls> {
    calls: C,
    plan: Arc<FsPlan>,
    arena: Arc<Arena>,
    names: Names<C::Directory>,
    handles: Vec<Option<C::File>>,
}

impl<C: Calls> Files<C> {
    /// The driver of a phase; `roots` are open, one a target.
    pub(crate) fn new(calls: C, plan: &Arc<FsPlan>, arena: &Arc<Arena>, roots: Vec<C::Directory>) -> Self {
        Self {
            calls,
            arena: Arc::clone(arena),
            names: Names::new(plan, roots, true),
            handles: (0..=plan.load.depth).map(|_| None).collect(),
            plan: Arc::clone(plan),
        }
    }

    /// Whoever makes the calls.
    pub(crate) fn calls(&self) -> &C {
        &self.calls
    }

    /// The open file of an operation.
    #[inline]
    pub(crate) fn file(&self, operation: &FsOperation) -> Result<&C::File, Errno> {
        self.handles[operation.handle as usize].as_ref().ok_or(Errno::BADF)
    }

    fn carry_out(&mut self, operation: &FsOperation) -> Result<u64, Errno> {
        use FsClass::{
            Close, Create, Fadvise, Fsync, Getxattr, Lock, Open, Read, Removexattr, Rmdir, Setxattr, Syncfs,
            Truncate, Unlink, Unlock, Write,
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
                write_or_tell(&self.calls, self.file(operation)?, buffer, offset)
                    .map(|written| written as u64)
            }
            Open | Create => self.open(operation).map(|()| 0),
            Close => {
                let file = self.handles[operation.handle as usize].take().ok_or(Errno::BADF)?;
                self.calls.close(file).map(|()| 0)
            }
            Fsync => self.calls.sync(self.file(operation)?).map(|()| 0),
            Fadvise => self.calls.advise(self.file(operation)?).map(|()| 0),
            Lock | Unlock => self.calls.lock(self.file(operation)?, class == Lock).map(|()| 0),
            Truncate => {
                let whole = self.plan.whole_file_bytes(operation.rank, operation.item);
                let bytes = if operation.is_second { whole } else { whole / 2 };
                self.calls.truncate(self.file(operation)?, bytes).map(|()| 0)
            }
            Setxattr | Getxattr | Removexattr => {
                let root = At::Root(self.names.locate_below_root(operation));
                let (root, path) = (self.names.directory(root)?, self.names.name()?);
                match class {
                    Setxattr => self.calls.set_xattr(root, path),
                    Getxattr => self.calls.xattr(root, path),
                    _ => self.calls.remove_xattr(root, path),
                }
                .map(|()| 0)
            }
            Syncfs => {
                let root = At::Root(self.names.locate_below_root(operation));
                self.calls.sync_all(self.names.directory(root)?).map(|()| 0)
            }
            Unlink | Rmdir if self.plan.ignore_missing => match self.on_name(operation) {
                Err(Errno::NOENT) => Ok(0),
                result => result,
            },
            _ => self.on_name(operation),
        }
    }

    fn locate(&mut self, operation: &FsOperation) -> Result<At, Errno> {
        let calls = &self.calls;
        self.names.locate(operation, &|at, path| calls.open_directory(at, path))
    }

    fn open(&mut self, operation: &FsOperation) -> Done {
        let mode = OpenMode::of(&self.plan, operation);
        let at = self.locate(operation)?;
        let file = self.calls.open(self.names.directory(at)?, self.names.name()?, mode)?;
        if mode.create {
            prepare_file(&self.calls, &self.plan, &file, operation)?;
        }
        self.handles[operation.handle as usize] = Some(file);
        Ok(())
    }

    /// Calls on names.
    fn on_name(&mut self, operation: &FsOperation) -> Result<u64, Errno> {
        use FsClass::{Link, Mkdir, Mknod, Readdir, Readlink, Rename, Rmdir, Stat, Symlink, Unlink};
        let at = self.locate(operation)?;
        let directory = self.names.directory(at)?;
        let (name, second) = (self.names.name()?, self.names.second()?);
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
            Symlink => calls.symlink(directory, self.names.last_part()?, second),
            Readlink => calls.read_link(directory, second),
            _ => return Err(Errno::NOSYS),
        }
        .map(|()| 0)
    }
}

/// Gives a file that was opened to be written its length and its room, where the plan asks for them.
pub(crate) fn prepare_file<C: Calls>(
    calls: &C,
    plan: &FsPlan,
    file: &C::File,
    operation: &FsOperation,
) -> Done {
    let whole_bytes = plan.whole_file_bytes(operation.rank, operation.item);
    if plan.truncate_to_size {
        calls.truncate(file, whole_bytes)?;
    }
    if plan.preallocate && whole_bytes > 0 {
        calls.allocate(file, whole_bytes)?;
    }
    Ok(())
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
