//! `libc`: one function of the C library an operation, as programs call it: what a library of `LD_PRELOAD` takes over is measured with it.
//!
//! The functions are looked up by name: in the process, or, behind the door `intercept`, in an interception library of its own.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use driver::foreign::{Library, LoadError, address};
use driver::{Error, ErrorKind, Opened, Registration};
use libc::{AT_FDCWD, DIR, dirent64, flock, mode_t, off_t, size_t, ssize_t};
use rustix::io::Errno;

use super::OpenRequest;
use super::posix::{self, DIRECTORY_MODE, FILE_MODE, XATTR, XATTR_VALUE, open_flags};
use crate::calls::{Calls, Files, OpenMode};
use crate::operation::FsOperation;

/// The table line.
pub(super) const REGISTRATION: Registration<FsOperation, OpenRequest> = Registration {
    name: "libc",
    summary: "C library functions, one call at a time, as programs call them: LD_PRELOAD libraries can intercept them",
    capabilities: posix::CAPABILITIES,
    open,
};

/// Name of this driver.
pub(crate) const NAME: &str = REGISTRATION.name;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),* $(,)?) -> $result:ty;)*) => {
        /// Functions of the C library, or of a library that has some in its place.
        pub(crate) struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
            /// Calls that the interception library has taken, where the functions are its.
            taken: Option<unsafe extern "C" fn() -> u64>,
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl Functions {
            fn of(library: Library) -> Result<Self, LoadError> {
                Ok(Self {
                    $($name: {
                        let address = address(&library, concat!(stringify!($name), "\0"))?;
                        // SAFETY: it is the function of that name, whose type is that of the C library.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> $result,
                            >(address)
                        }
                    },)*
                    // SAFETY: the type is that of the interception library's function.
                    taken: unsafe { library.get(b"strata_intercept_calls\0") }.ok().map(|found| *found),
                    _library: library,
                })
            }
        }
    };
}

functions! {
    openat: fn(c_int, *const c_char, c_int, mode_t) -> c_int;
    close: fn(c_int) -> c_int;
    pread: fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
    pwrite: fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
    fsync: fn(c_int) -> c_int;
    syncfs: fn(c_int) -> c_int;
    fallocate: fn(c_int, c_int, off_t, off_t) -> c_int;
    ftruncate: fn(c_int, off_t) -> c_int;
    fcntl: fn(c_int, c_int, *const flock) -> c_int;
    posix_fadvise: fn(c_int, off_t, off_t, c_int) -> c_int;
    fstatat: fn(c_int, *const c_char, *mut libc::stat, c_int) -> c_int;
    fdopendir: fn(c_int) -> *mut DIR;
    readdir64: fn(*mut DIR) -> *mut dirent64;
    closedir: fn(*mut DIR) -> c_int;
    mknodat: fn(c_int, *const c_char, mode_t, libc::dev_t) -> c_int;
    mkdirat: fn(c_int, *const c_char, mode_t) -> c_int;
    unlinkat: fn(c_int, *const c_char, c_int) -> c_int;
    renameat: fn(c_int, *const c_char, c_int, *const c_char) -> c_int;
    linkat: fn(c_int, *const c_char, c_int, *const c_char, c_int) -> c_int;
    symlinkat: fn(*const c_char, c_int, *const c_char) -> c_int;
    readlinkat: fn(c_int, *const c_char, *mut c_char, size_t) -> ssize_t;
    lsetxattr: fn(*const c_char, *const c_char, *const c_void, size_t, c_int) -> c_int;
    lgetxattr: fn(*const c_char, *const c_char, *mut c_void, size_t) -> ssize_t;
    lremovexattr: fn(*const c_char, *const c_char) -> c_int;
}

fn lacks(cause: &LoadError) -> Error {
    Error::new(ErrorKind::Unsupported, "libc", "the C library lacks a required function")
        .with("cause", cause)
        .remedy("use glibc 2.33 or later, or --engine posix, which makes the system calls itself")
}

impl Functions {
    /// Those that a program gets which calls them here: of a library of `LD_PRELOAD`, else of the C library.
    ///
    /// # Errors
    /// A C library that lacks one.
    pub(crate) fn of_process() -> Result<Arc<Self>, Error> {
        Self::of(Library::this()).map(Arc::new).map_err(|cause| lacks(&cause))
    }

    /// Those of an interception library, which looks for mounts as it does when a program starts. Each call loads the library anew.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub(crate) fn of_intercept(path: &Path) -> Result<Arc<Self>, Error> {
        let failed = |error: std::io::Error| {
            Error::system("intercept", "cannot load the interception library", error)
                .with("library", path.display())
        };
        // A library that is loaded already is not started again: a copy of it is.
        let name = c"libstrata_intercept.so";
        let copy: OwnedFd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)
            .map_err(|error| failed(error.into()))?;
        let mut copy = std::fs::File::from(copy);
        let mut library = std::fs::File::open(path).map_err(failed)?;
        std::io::copy(&mut library, &mut copy).map_err(failed)?;
        let place = format!("/proc/self/fd/{}", copy.as_raw_fd());
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: loading runs the library's constructor, which finds mounts; it is never unloaded, because its threads go on.
        let library = unsafe { Library::open(Some(&place), flags) };
        let unsupported = |cause: &LoadError| {
            Error::new(ErrorKind::Unsupported, "intercept", "cannot load the interception library")
                .with("library", path.display())
                .with("cause", cause)
        };
        let functions = library.and_then(Self::of).map_err(|cause| unsupported(&cause))?;
        if functions.taken.is_none() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "intercept",
                "it is not an interception library of strata",
            )
            .with("library", path.display())
            .remedy("build it: cargo build -p intercept, or name another one with STRATA_INTERCEPT"));
        }
        Ok(Arc::new(functions))
    }

    /// Calls that the interception library has taken so far.
    pub(crate) fn taken(&self) -> u64 {
        // SAFETY: the function is the library's, and has no arguments.
        self.taken.map_or(0, |taken| unsafe { taken() })
    }

    /// Whether the interception library takes calls on this path.
    pub(crate) fn takes(&self, path: &Path) -> bool {
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
        let before = self.taken();
        let root = Directory { file: File { fd: AT_FDCWD, functions: None }, path: None };
        self.stat_at(&root, &path).is_ok() && self.taken() > before
    }

    fn stat_at(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        // SAFETY: all fields of the structure may be zero.
        let mut facts: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the name is a string of C, and the structure lives as long as the call.
        done(unsafe { (self.fstatat)(at.file.fd, name.as_ptr(), &raw mut facts, libc::AT_SYMLINK_NOFOLLOW) })
    }
}

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[inline]
fn done(result: c_int) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(last()) }
}

#[inline]
fn length(result: ssize_t) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| last())
}

/// Whether a call is to be made again.
fn again<T>(result: &Result<T, Errno>) -> bool {
    matches!(result, Err(Errno::INTR))
}

/// A descriptor: it is given back to the library that has opened it.
pub(super) struct File {
    fd: c_int,
    /// None: it is not this one's to close.
    functions: Option<Arc<Functions>>,
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(functions) = self.functions.take() {
            // SAFETY: the descriptor is owned, and not used any more. What a close says is asked for by those who want to know.
            unsafe { (functions.close)(self.fd) };
        }
    }
}

/// A directory that is open, and of a root its path as typed.
pub(super) struct Directory {
    file: File,
    path: Option<CString>,
}

fn open(request: &OpenRequest) -> Result<Opened<FsOperation>, Error> {
    let functions = match &request.functions {
        Some(functions) => Arc::clone(functions),
        None => Functions::of_process()?,
    };
    let plan = &request.plan;
    let mut roots = Vec::new();
    for target in &plan.targets {
        let root = plan.root(target);
        let failed = |errno| Error::system("libc", "cannot open the directory", errno).with("path", root);
        let path = CString::new(units::path_of(root).as_os_str().as_bytes())
            .map_err(|_| Error::usage("libc", "a path contains a NUL byte").with("path", root))?;
        let file =
            open_at(&functions, AT_FDCWD, &path, libc::O_DIRECTORY | libc::O_CLOEXEC).map_err(failed)?;
        roots.push(Directory { file, path: Some(path) });
    }
    let driver = Files::new(CLibrary { functions }, plan, &request.arena, roots);
    Ok(Opened { driver: Box::new(driver), notes: Vec::new() })
}

fn open_at(functions: &Arc<Functions>, at: c_int, path: &CStr, flags: c_int) -> Result<File, Errno> {
    loop {
        // SAFETY: the path is a string of C.
        let fd = unsafe { (functions.openat)(at, path.as_ptr(), flags, FILE_MODE.as_raw_mode()) };
        let result = if fd >= 0 { Ok(fd) } else { Err(last()) };
        if !again(&result) {
            return result.map(|fd| File { fd, functions: Some(Arc::clone(functions)) });
        }
    }
}

/// The calls of one worker.
struct CLibrary {
    functions: Arc<Functions>,
}

impl CLibrary {
    /// The path of a name below a root.
    fn whole(at: &Directory, path: &CStr) -> Result<CString, Errno> {
        let mut whole = at.path.as_ref().ok_or(Errno::BADF)?.as_bytes().to_vec();
        whole.push(b'/');
        whole.extend_from_slice(path.to_bytes());
        CString::new(whole).map_err(|_| Errno::INVAL)
    }
}

// SAFETY of all calls here: names are strings of C, buffers are as long as said and live as long as the call, descriptors are open.
impl Calls for CLibrary {
    type Directory = Directory;
    type File = File;

    fn open_directory(&self, at: &Directory, path: &CStr) -> Result<Directory, Errno> {
        let file = open_at(&self.functions, at.file.fd, path, libc::O_DIRECTORY | libc::O_CLOEXEC)?;
        Ok(Directory { file, path: None })
    }

    fn open(&self, at: &Directory, name: &CStr, mode: OpenMode) -> Result<File, Errno> {
        open_at(&self.functions, at.file.fd, name, open_flags(mode).bits() as c_int)
    }

    fn close(&self, mut file: File) -> Result<(), Errno> {
        file.functions = None;
        // SAFETY: as above; the descriptor was owned, and is given up here.
        done(unsafe { (self.functions.close)(file.fd) })
    }

    fn make_node(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        let mode = libc::S_IFREG | FILE_MODE.as_raw_mode();
        // SAFETY: as above.
        done(unsafe { (self.functions.mknodat)(at.file.fd, name.as_ptr(), mode, 0) })
    }

    fn read(&self, file: &File, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        loop {
            // SAFETY: as above.
            let read = unsafe {
                (self.functions.pread)(file.fd, into.as_mut_ptr().cast(), into.len(), offset as off_t)
            };
            let result = length(read);
            if !again(&result) {
                return result;
            }
        }
    }

    fn write(&self, file: &File, data: &[u8], offset: u64) -> Result<usize, Errno> {
        loop {
            // SAFETY: as above.
            let written = unsafe {
                (self.functions.pwrite)(file.fd, data.as_ptr().cast(), data.len(), offset as off_t)
            };
            let result = length(written);
            if !again(&result) {
                return result;
            }
        }
    }

    fn sync(&self, file: &File) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.fsync)(file.fd) })
    }

    fn sync_all(&self, at: &Directory) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.syncfs)(at.file.fd) })
    }

    fn allocate(&self, file: &File, bytes: u64) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.fallocate)(file.fd, 0, 0, bytes as off_t) })
    }

    fn truncate(&self, file: &File, bytes: u64) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.ftruncate)(file.fd, bytes as off_t) })
    }

    fn lock(&self, file: &File, locks: bool) -> Result<(), Errno> {
        let kind = if locks { libc::F_WRLCK } else { libc::F_UNLCK };
        // SAFETY: all fields of the structure may be zero.
        let mut lock: flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        // SAFETY: as above.
        done(unsafe { (self.functions.fcntl)(file.fd, libc::F_OFD_SETLKW, &raw const lock) })
    }

    fn advise(&self, file: &File) -> Result<(), Errno> {
        // SAFETY: as above. The call returns its error.
        match unsafe { (self.functions.posix_fadvise)(file.fd, 0, 0, libc::POSIX_FADV_WILLNEED) } {
            0 => Ok(()),
            error => Err(Errno::from_raw_os_error(error)),
        }
    }

    fn stat(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        self.functions.stat_at(at, name)
    }

    fn list(&self, at: &Directory, path: &CStr) -> Result<u64, Errno> {
        let mut opened = self.open_directory(at, path)?;
        // SAFETY: as above.
        let stream = unsafe { (self.functions.fdopendir)(opened.file.fd) };
        if stream.is_null() {
            return Err(last());
        }
        // The stream has the descriptor now.
        opened.file.functions = None;
        let mut count = 0;
        let listed = loop {
            // SAFETY: errno is this thread's own.
            unsafe { *libc::__errno_location() = 0 };
            // SAFETY: as above.
            let entry = unsafe { (self.functions.readdir64)(stream) };
            if entry.is_null() {
                // SAFETY: as above.
                break match unsafe { *libc::__errno_location() } {
                    0 => Ok(count),
                    error => Err(Errno::from_raw_os_error(error)),
                };
            }
            // SAFETY: an entry lives until the next call, and its name ends in NUL.
            let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) };
            count += u64::from(!matches!(name.to_bytes(), b"." | b".."));
        };
        // SAFETY: as above.
        unsafe { (self.functions.closedir)(stream) };
        listed
    }

    fn make_directory(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.mkdirat)(at.file.fd, name.as_ptr(), DIRECTORY_MODE.as_raw_mode()) })
    }

    fn remove_directory(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.unlinkat)(at.file.fd, name.as_ptr(), libc::AT_REMOVEDIR) })
    }

    fn unlink(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.unlinkat)(at.file.fd, name.as_ptr(), 0) })
    }

    fn rename(&self, at: &Directory, from: &CStr, to: &CStr) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.renameat)(at.file.fd, from.as_ptr(), at.file.fd, to.as_ptr()) })
    }

    fn link(&self, at: &Directory, from: &CStr, to: &CStr) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.linkat)(at.file.fd, from.as_ptr(), at.file.fd, to.as_ptr(), 0) })
    }

    fn symlink(&self, at: &Directory, to_name: &CStr, name: &CStr) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe { (self.functions.symlinkat)(to_name.as_ptr(), at.file.fd, name.as_ptr()) })
    }

    fn read_link(&self, at: &Directory, name: &CStr) -> Result<(), Errno> {
        let mut target: [c_char; 4096] = [0; 4096];
        // SAFETY: as above.
        let read = unsafe {
            (self.functions.readlinkat)(at.file.fd, name.as_ptr(), target.as_mut_ptr(), target.len())
        };
        length(read).map(drop)
    }

    fn set_xattr(&self, at: &Directory, path: &CStr) -> Result<(), Errno> {
        let path = Self::whole(at, path)?;
        let value = XATTR_VALUE.as_ptr().cast();
        // SAFETY: as above.
        done(unsafe {
            (self.functions.lsetxattr)(path.as_ptr(), XATTR.as_ptr(), value, XATTR_VALUE.len(), 0)
        })
    }

    fn xattr(&self, at: &Directory, path: &CStr) -> Result<(), Errno> {
        let path = Self::whole(at, path)?;
        let mut value = [0u8; 256];
        let room = value.as_mut_ptr().cast();
        // SAFETY: as above.
        length(unsafe { (self.functions.lgetxattr)(path.as_ptr(), XATTR.as_ptr(), room, value.len()) })
            .map(drop)
    }

    fn remove_xattr(&self, at: &Directory, path: &CStr) -> Result<(), Errno> {
        let path = Self::whole(at, path)?;
        // SAFETY: as above.
        done(unsafe { (self.functions.lremovexattr)(path.as_ptr(), XATTR.as_ptr()) })
    }
}
