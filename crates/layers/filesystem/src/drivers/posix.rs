//! `posix`: one system call an operation.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use driver::{Capabilities, Error, Opened, Operation, Registration};
use rustix::fs::{Advice, AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RawDir, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use super::OpenRequest;
use crate::calls::{Calls, Files, OpenMode};
use crate::operation::FsOperation;
use crate::plan::FsPlan;

/// Capabilities of drivers that make one call after the other on open files.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    classes: FsOperation::CLASSES,
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: true,
    options: &[],
};

/// The table line.
pub(super) const REGISTRATION: Registration<FsOperation, OpenRequest> = Registration {
    name: "posix",
    summary: "System calls, one at a time, on any mounted file system",
    capabilities: CAPABILITIES,
    open,
};

/// Extended attribute that is set, read and removed.
pub(super) const XATTR: &CStr = c"user.strata.measured";
pub(super) const XATTR_VALUE: &[u8] = &[7; 64];
pub(super) const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
pub(super) const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
/// Buffer of a listing, in bytes: entries of a large directory come in few calls.
pub(crate) const LIST_BYTES: usize = 128 << 10;

fn open(request: &OpenRequest) -> Result<Opened<FsOperation>, Error> {
    let roots = open_roots(&request.plan)?;
    let driver = Files::new(Posix::default(), &request.plan, &request.arena, roots);
    Ok(Opened { driver: Box::new(driver), notes: Vec::new() })
}

/// Opens the root of each target of a plan.
///
/// # Errors
/// The system's, with the path.
pub(super) fn open_roots(plan: &FsPlan) -> Result<Vec<Directory>, Error> {
    plan.targets.iter().map(|target| Directory::open(&units::path_of(plan.root(target)))).collect()
}

/// Flags of open(2).
#[inline]
pub(super) fn open_flags(mode: OpenMode) -> OFlags {
    let mut flags = OFlags::CLOEXEC | if mode.write { OFlags::RDWR } else { OFlags::RDONLY };
    flags.set(OFlags::CREATE, mode.create);
    flags.set(OFlags::EXCL, mode.exclusive);
    flags.set(OFlags::TRUNC, mode.truncate);
    flags.set(OFlags::DIRECT, mode.direct);
    flags
}

/// A directory that is open, and of a root its path as typed: extended attributes have no calls that are relative to a descriptor.
pub(crate) struct Directory {
    fd: OwnedFd,
    path: Option<CString>,
}

impl Directory {
    /// Opens the directory at a path.
    ///
    /// # Errors
    /// The system's, with the path.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| {
            Error::system("posix", "cannot open the directory", errno).with("path", path.display())
        })?;
        let whole = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::usage("posix", "a path contains a NUL byte").with("path", path.display()))?;
        Ok(Self { fd, path: Some(whole) })
    }

    /// Its descriptor.
    pub(super) fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The system calls of one worker.
#[derive(Default)]
pub(crate) struct Posix {
    /// Memory of listings, made when the first is wanted.
    listing: RefCell<Vec<MaybeUninit<u8>>>,
}

impl Posix {
    /// The path of a name below a root.
    pub(super) fn whole(at: &Directory, path: &CStr) -> Result<CString, Errno> {
        let mut whole = at.path.as_ref().ok_or(Errno::BADF)?.as_bytes().to_vec();
        whole.push(b'/');
        whole.extend_from_slice(path.to_bytes());
        CString::new(whole).map_err(|_| Errno::INVAL)
    }
}

impl Calls for Posix {
    type Directory = Directory;
    type File = OwnedFd;

    fn open_directory(&self, at: &Directory, path: &CStr) -> Result<Directory, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&at.fd, path, flags, Mode::empty()).map(|fd| Directory { fd, path: None })
    }

    #[inline]
    fn open(&self, at: &Directory, name: &CStr, mode: OpenMode) -> Result<OwnedFd, Errno> {
        let flags = open_flags(mode);
        retry_on_intr(|| rustix::fs::openat(&at.fd, name, flags, FILE_MODE))
    }

    fn sync_all(&self, at: &Directory) -> Result<(), Errno> {
        rustix::fs::syncfs(&at.fd)
    }

    #[inline]
    fn close(&self, file: OwnedFd) -> Result<(), Errno> {
        let raw = std::os::fd::IntoRawFd::into_raw_fd(file);
        // SAFETY: the descriptor was owned, and is given up here; close(2) tells what a drop would swallow (quota, NFS).
        match unsafe { libc::close(raw) } {
            0 => Ok(()),
            _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }

    #[inline]
    fn make_node(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        rustix::fs::mknodat(&at.fd, name, FileType::RegularFile, FILE_MODE, 0)
    }

    #[inline]
    fn read(&self, file: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::pread(file, &mut *into, offset))
    }

    #[inline]
    fn write(&self, file: &OwnedFd, data: &[u8], offset: u64) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::pwrite(file, data, offset))
    }

    #[inline]
    fn sync(&self, file: &OwnedFd) -> Result<(), Errno> {
        rustix::fs::fsync(file)
    }

    #[inline]
    fn sync_data(&self, file: &OwnedFd) -> Result<(), Errno> {
        rustix::fs::fdatasync(file)
    }

    fn allocate(&self, file: &OwnedFd, bytes: u64) -> Result<(), Errno> {
        rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes)
    }

    fn truncate(&self, file: &OwnedFd, bytes: u64) -> Result<(), Errno> {
        rustix::fs::ftruncate(file, bytes)
    }

    fn lock(&self, file: &OwnedFd, locks: bool) -> Result<(), Errno> {
        let kind = if locks { libc::F_WRLCK } else { libc::F_UNLCK };
        // SAFETY: all fields of the structure may be zero.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        // SAFETY: the structure lives as long as the call.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLKW, &raw const lock) } {
            0 => Ok(()),
            _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }

    fn advise(&self, file: &OwnedFd) -> Result<(), Errno> {
        rustix::fs::fadvise(file, 0, None, Advice::WillNeed)
    }

    #[inline]
    fn stat(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        rustix::fs::statat(&at.fd, name, AtFlags::SYMLINK_NOFOLLOW).map(drop)
    }

    fn list(&self, at: &Directory, path: &CStr) -> Result<u64, Errno> {
        let opened = self.open_directory(at, path)?;
        let mut buffer = self.listing.borrow_mut();
        if buffer.is_empty() {
            buffer.resize(LIST_BYTES, MaybeUninit::uninit());
        }
        let mut entries = RawDir::new(opened.fd.as_fd(), &mut buffer[..]);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            count += u64::from(!matches!(entry.file_name().to_bytes(), b"." | b".."));
        }
        Ok(count)
    }

    #[inline]
    fn make_directory(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        rustix::fs::mkdirat(&at.fd, name, DIRECTORY_MODE)
    }

    #[inline]
    fn remove_directory(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        rustix::fs::unlinkat(&at.fd, name, AtFlags::REMOVEDIR)
    }

    #[inline]
    fn unlink(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        rustix::fs::unlinkat(&at.fd, name, AtFlags::empty())
    }

    #[inline]
    fn rename(&self, at: &Directory, from: &CStr, to: &CStr) -> Result<(), Errno> {
        rustix::fs::renameat(&at.fd, from, &at.fd, to)
    }

    #[inline]
    fn link(&self, at: &Directory, from: &CStr, to: &CStr) -> Result<(), Errno> {
        rustix::fs::linkat(&at.fd, from, &at.fd, to, AtFlags::empty())
    }

    #[inline]
    fn symlink(&self, at: &Directory, to_name: &CStr, name: &CStr) -> Result<(), Errno> {
        rustix::fs::symlinkat(to_name, &at.fd, name)
    }

    fn read_link(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        let mut target = [MaybeUninit::<u8>::uninit(); 4096];
        rustix::fs::readlinkat_raw(&at.fd, name, &mut target[..]).map(drop)
    }

    fn set_xattr(&self, at: &Directory, path: &CStr) -> Result<(), Errno> {
        rustix::fs::lsetxattr(&*Self::whole(at, path)?, XATTR, XATTR_VALUE, XattrFlags::empty())
    }

    fn xattr(&self, at: &Directory, path: &CStr) -> Result<(), Errno> {
        let mut value = [0u8; 256];
        rustix::fs::lgetxattr(&*Self::whole(at, path)?, XATTR, &mut value[..]).map(drop)
    }

    fn remove_xattr(&self, at: &Directory, path: &CStr) -> Result<(), Errno> {
        rustix::fs::lremovexattr(&*Self::whole(at, path)?, XATTR)
    }
}

/// Opens a directory by its path, for walks.
pub(crate) fn open_path(path: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        CWD,
        path,
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )
}
