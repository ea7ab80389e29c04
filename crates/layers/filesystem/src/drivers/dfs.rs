//! `dfs`: files over objects by the library, without the kernel: `dfs+vos:`, `dfs+engine:` and `dfs+daos:`.

use std::ffi::CStr;
use std::sync::Arc;

use dfs::{FileKind, FileSystem, Handle, Inode, NewNode, OpenFlags, Owner, RenameFlags, SetAttributes};
use driver::{Capabilities, Error, Opened, Registration};
use rustix::io::Errno;

use super::OpenRequest;
use crate::calls::{Calls, Files, OpenMode};
use crate::operation::FsOperation;
use crate::stores::owner;

/// No hard links, no locks and no advice: the library has none of them.
const CLASSES: &[&str] = &[
    "open",
    "create",
    "mknod",
    "read",
    "write",
    "fsync",
    "close",
    "stat",
    "readdir",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "symlink",
    "readlink",
    "truncate",
    "setxattr",
    "getxattr",
    "removexattr",
];

const CAPABILITIES: Capabilities = Capabilities {
    classes: CLASSES,
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: false,
    options: &["token-file"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<FsOperation, OpenRequest> = Registration {
    name: "dfs",
    summary: "Files over objects through the library: dfs+vos:DIR, dfs+engine://..., dfs+daos://...",
    capabilities: CAPABILITIES,
    open,
};

const XATTR: &[u8] = b"user.strata.measured";
const XATTR_VALUE: &[u8] = &[7; 64];

fn open(request: &OpenRequest) -> Result<Opened<FsOperation>, Error> {
    let roots =
        request.stores.iter().map(|store| Held { store: Arc::clone(store), inode: Inode::ROOT }).collect();
    let driver = Files::new(Dfs { owner: owner() }, &request.plan, &request.arena, roots);
    Ok(Opened { driver: Box::new(driver), notes: Vec::new() })
}

/// A reference to an inode, given back when it is dropped.
pub(crate) struct Held {
    pub(crate) store: Arc<dyn FileSystem>,
    pub(crate) inode: Inode,
}

impl Held {
    /// The entry at a path below.
    ///
    /// # Errors
    /// As for [`FileSystem::look_up`].
    pub(crate) fn below(&self, path: &[u8]) -> Result<Self, Errno> {
        let mut found: Option<Self> = None;
        for name in path.split(|&byte| byte == b'/') {
            let at = found.as_ref().map_or(self.inode, |found| found.inode);
            let inode = self.store.look_up(at, name)?.inode;
            found = Some(Self { store: Arc::clone(&self.store), inode });
        }
        found.ok_or(Errno::NOENT)
    }

    /// The directory that a path lies in, none where it is this one, and the last name of the path.
    ///
    /// # Errors
    /// As [`Held::below`].
    pub(crate) fn split<'a>(&self, path: &'a [u8]) -> Result<(Option<Self>, &'a [u8]), Errno> {
        match path.iter().rposition(|&byte| byte == b'/') {
            None => Ok((None, path)),
            Some(at) => Ok((Some(self.below(&path[..at])?), &path[at + 1..])),
        }
    }

    /// Does something with the directory and the last name of a path.
    ///
    /// # Errors
    /// Those of the way there, and of `act`.
    pub(crate) fn at<T>(
        &self,
        path: &[u8],
        act: impl FnOnce(&dyn FileSystem, Inode, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let (directory, name) = self.split(path)?;
        act(&*self.store, directory.as_ref().map_or(self.inode, |directory| directory.inode), name)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.inode != Inode::ROOT {
            self.store.forget(self.inode, 1);
        }
    }
}

/// A file that is open.
pub(crate) struct OpenFile {
    held: Held,
    handle: Handle,
}

/// The calls of a file system over objects.
pub(crate) struct Dfs {
    /// Owner of what is made.
    pub(crate) owner: Owner,
}

/// Gives the reference of an entry back that was made or looked up.
fn let_go(store: &dyn FileSystem, made: Result<dfs::Attributes, Errno>) -> Result<(), Errno> {
    made.map(|attributes| store.forget(attributes.inode, 1))
}

impl Calls for Dfs {
    type Directory = Held;
    type File = OpenFile;

    fn open_directory(&self, at: &Held, path: &CStr) -> Result<Held, Errno> {
        at.below(path.to_bytes())
    }

    fn open(&self, at: &Held, name: &CStr, mode: OpenMode) -> Result<OpenFile, Errno> {
        let flags = OpenFlags {
            read: true,
            write: mode.write,
            append: false,
            truncate: mode.truncate,
            exclusive: mode.exclusive,
        };
        at.at(name.to_bytes(), |store, directory, name| {
            let (inode, handle) = if mode.create {
                let (attributes, handle) = store.create(directory, name, 0o644, self.owner, flags)?;
                (attributes.inode, handle)
            } else {
                let inode = store.look_up(directory, name)?.inode;
                let opened = store.open(inode, flags);
                (inode, opened.inspect_err(|_| store.forget(inode, 1))?)
            };
            Ok(OpenFile { held: Held { store: Arc::clone(&at.store), inode }, handle })
        })
    }

    fn close(&self, file: OpenFile) -> Result<(), Errno> {
        let flushed = file.held.store.flush(file.handle);
        flushed.and(file.held.store.release(file.handle))
    }

    fn make_node(&self, at: &Held, name: &CStr) -> Result<(), Errno> {
        let node = NewNode { kind: FileKind::File, permissions: 0o644, owner: self.owner, device: 0 };
        at.at(name.to_bytes(), |store, directory, name| {
            let_go(store, store.make_node(directory, name, &node))
        })
    }

    #[inline]
    fn read(&self, file: &OpenFile, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        file.held.store.read(file.handle, offset, into)
    }

    #[inline]
    fn write(&self, file: &OpenFile, data: &[u8], offset: u64) -> Result<usize, Errno> {
        file.held.store.write(file.handle, offset, data)
    }

    fn sync(&self, file: &OpenFile) -> Result<(), Errno> {
        file.held.store.sync(file.handle, false)
    }

    fn sync_data(&self, file: &OpenFile) -> Result<(), Errno> {
        file.held.store.sync(file.handle, true)
    }

    fn allocate(&self, file: &OpenFile, bytes: u64) -> Result<(), Errno> {
        file.held.store.allocate(file.handle, 0, bytes, false, false)
    }

    fn truncate(&self, file: &OpenFile, bytes: u64) -> Result<(), Errno> {
        let to = SetAttributes { size_bytes: Some(bytes), ..SetAttributes::default() };
        file.held.store.set_attributes(file.held.inode, &to).map(drop)
    }

    fn lock(&self, _file: &OpenFile, _locks: bool) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn advise(&self, _file: &OpenFile) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    #[inline]
    fn stat(&self, at: &Held, name: &CStr) -> Result<(), Errno> {
        at.at(name.to_bytes(), |store, directory, name| store.stat(directory, name).map(drop))
    }

    fn list(&self, at: &Held, path: &CStr) -> Result<u64, Errno> {
        let directory = at.below(path.to_bytes())?;
        let mut count = 0;
        directory.store.list(directory.inode, 0, &mut |_| {
            count += 1;
            true
        })?;
        Ok(count)
    }

    fn make_directory(&self, at: &Held, name: &CStr) -> Result<(), Errno> {
        at.at(name.to_bytes(), |store, directory, name| {
            let_go(store, store.make_directory(directory, name, 0o755, self.owner))
        })
    }

    fn remove_directory(&self, at: &Held, name: &CStr) -> Result<(), Errno> {
        at.at(name.to_bytes(), |store, directory, name| store.remove_directory(directory, name))
    }

    #[inline]
    fn unlink(&self, at: &Held, name: &CStr) -> Result<(), Errno> {
        at.at(name.to_bytes(), |store, directory, name| store.unlink(directory, name))
    }

    fn rename(&self, at: &Held, from: &CStr, to: &CStr) -> Result<(), Errno> {
        let (directory, from) = at.split(from.to_bytes())?;
        let directory = directory.as_ref().map_or(at.inode, |directory| directory.inode);
        let to = to.to_bytes();
        let to = to.iter().rposition(|&byte| byte == b'/').map_or(to, |slash| &to[slash + 1..]);
        at.store.rename(directory, from, directory, to, RenameFlags::default())
    }

    fn link(&self, _at: &Held, _from: &CStr, _to: &CStr) -> Result<(), Errno> {
        Err(Errno::PERM)
    }

    fn symlink(&self, at: &Held, to_name: &CStr, name: &CStr) -> Result<(), Errno> {
        at.at(name.to_bytes(), |store, directory, name| {
            let_go(store, store.make_symlink(directory, name, to_name.to_bytes(), self.owner))
        })
    }

    fn read_link(&self, at: &Held, name: &CStr) -> Result<(), Errno> {
        let link = at.below(name.to_bytes())?;
        link.store.read_link(link.inode).map(drop)
    }

    fn set_xattr(&self, at: &Held, path: &CStr) -> Result<(), Errno> {
        let file = at.below(path.to_bytes())?;
        file.store.set_xattr(file.inode, XATTR, XATTR_VALUE, false, false)
    }

    fn xattr(&self, at: &Held, path: &CStr) -> Result<(), Errno> {
        let file = at.below(path.to_bytes())?;
        file.store.xattr(file.inode, XATTR).map(drop)
    }

    fn remove_xattr(&self, at: &Held, path: &CStr) -> Result<(), Errno> {
        let file = at.below(path.to_bytes())?;
        file.store.remove_xattr(file.inode, XATTR)
    }
}
