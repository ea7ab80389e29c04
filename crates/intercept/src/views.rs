//! Mounts of strata in the namespace of this process, and the file systems behind them.

#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use dfs::local::LocalFileSystem;
use dfs::mounts::Mount;
use dfs::{FileSystem, Options, Url};
use driver::{Error, ErrorKind, Secret};

use crate::state::{self, Connection};
use crate::{hooks::kernel, report};

/// Attribute of a mount's root that names the socket of its process.
const ENDPOINT_ATTRIBUTE: &std::ffi::CStr = c"user.strata.endpoint";

/// Variable that names the file with the secret of engines.
const TOKEN_FILE: &str = "STRATA_TOKEN_FILE";

/// A mount of strata.
pub(crate) struct View {
    pub(crate) mount: Mount,
    /// Number of its device, as `stat` gives it.
    pub(crate) device: u64,
    /// Other mounts below it: their files are not its.
    pub(crate) holes: Vec<Vec<u8>>,
}

static VIEWS: OnceLock<Vec<View>> = OnceLock::new();

/// All of them.
pub(crate) fn all() -> &'static [View] {
    VIEWS.get().map_or(&[], Vec::as_slice)
}

/// Finds the mounts; whether there are any.
pub(crate) fn find() -> bool {
    let mounts = dfs::mounts::mounts().unwrap_or_default();
    let strata = mounts.iter().filter(|mount| mount.is_strata());
    let views = strata.filter_map(|mount| {
        let directory = CString::new(mount.directory.as_os_str().as_bytes()).ok()?;
        let device = kernel::device(&directory)?;
        let below = mounts.iter().filter_map(|other| other.directory.strip_prefix(&mount.directory).ok());
        let holes = below.filter(|path| !path.as_os_str().is_empty());
        let holes = holes.map(|path| path.as_os_str().as_bytes().to_vec()).collect();
        Some(View { mount: mount.clone(), device, holes })
    });
    let views: Vec<_> = views.collect();
    VIEWS.get_or_init(|| views);
    !all().is_empty()
}

/// The mount that an absolute path of names alone lies in, and the names of it there.
pub(crate) fn inside(path: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let found = all().iter().enumerate().filter_map(|(number, view)| {
        let rest = path.strip_prefix(&view.mount.directory).ok()?;
        Some((view.mount.directory.as_os_str().len(), number, rest))
    });
    let (_, number, rest) = found.max_by_key(|(length, ..)| *length)?;
    let names: Vec<Vec<u8>> = rest.iter().map(|name| name.as_bytes().to_vec()).collect();
    (!is_hole(number, &names)).then_some((number, names))
}

/// Whether these names of a mount lead into another one.
pub(crate) fn is_hole(number: usize, names: &[Vec<u8>]) -> bool {
    let holes = all().get(number).map_or(&[][..], |view| &view.holes);
    holes.iter().any(|hole| {
        let mut hole = hole.split(|byte| *byte == b'/');
        let mut names = names.iter();
        hole.all(|part| names.next().is_some_and(|name| name == part))
    })
}

/// Ways to the file system of a mount.
pub(crate) struct Ways {
    /// The mount's process: entries and attributes go through it, so that the kernel learns of changes.
    pub(crate) process: Arc<LocalFileSystem>,
    /// The store itself, for data, where several clients may have it open.
    store: OnceLock<Option<Arc<dyn FileSystem>>>,
    source: String,
}

impl Ways {
    /// The file system for data, and whether it is not the one of the mount's process.
    pub(crate) fn data(&self) -> (Arc<dyn FileSystem>, bool) {
        let store = self.store.get_or_init(|| {
            let is_shared = matches!(self.source.parse(), Ok(Url::Engine { .. } | Url::Daos { .. }));
            let opened = is_shared.then(|| open_store(&self.source))?;
            opened.map_err(|error| report::failed(&error, "data go through the mount process")).ok()
        });
        match store {
            Some(store) => (Arc::clone(store), true),
            None => (Arc::<LocalFileSystem>::clone(&self.process), false),
        }
    }
}

/// Opens a store that several clients may have open, with the secret of [`TOKEN_FILE`] where the user names one.
fn open_store(url: &str) -> Result<Arc<dyn FileSystem>, Error> {
    let secret = std::env::var_os(TOKEN_FILE).map(|path| secret(Path::new(&path))).transpose()?;
    dfs::open(url, &Options { secret, ..Options::default() })
}

fn secret(path: &Path) -> Result<Secret, Error> {
    let failed = |error| {
        Error::system("token", "cannot read the file with the shared token", error)
            .with("path", path.display())
    };
    let bytes = std::fs::read(path).map_err(failed)?;
    let mode = std::fs::metadata(path).map_err(failed)?.mode();
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Secret::new(&bytes[..end]).filter(|_| mode & 0o077 == 0).ok_or_else(|| {
        Error::new(
            ErrorKind::Unsafe,
            "token",
            "the shared token in the file is too short, or other users can access the file",
        )
        .with("path", path.display())
    })
}

/// The file system of a mount for entries and attributes; none where it cannot be reached.
pub(crate) fn file_system(number: usize) -> Option<Arc<dyn FileSystem>> {
    ways(number).map(|ways| Arc::<LocalFileSystem>::clone(&ways.process) as Arc<dyn FileSystem>)
}

/// Ways to a mount; none where it cannot be reached.
pub(crate) fn ways(number: usize) -> Option<Arc<Ways>> {
    match state::read().connections.get(&number) {
        Some(Connection::Open(ways)) => return Some(Arc::clone(ways)),
        Some(Connection::Failed) => return None,
        Some(Connection::None) | None => {}
    }
    let opened = open(all().get(number)?);
    let mut state = state::write();
    let connection = state.connections.entry(number).or_default();
    if let Connection::Open(ways) = connection {
        // Another thread was first.
        return Some(Arc::clone(ways));
    }
    match opened {
        Ok(ways) => {
            let ways = Arc::new(ways);
            *connection = Connection::Open(Arc::clone(&ways));
            Some(ways)
        }
        Err(error) => {
            *connection = Connection::Failed;
            drop(state);
            report::failed(&error, "calls go through the mount");
            None
        }
    }
}

fn open(view: &View) -> Result<Ways, Error> {
    if let Some(socket) = endpoint(view) {
        let process = Arc::new(LocalFileSystem::connect(Path::new(&socket), client_number())?);
        let source = view.mount.source.to_string_lossy().into_owned();
        return Ok(Ways { process, store: OnceLock::new(), source });
    }
    Err(Error::new(ErrorKind::Unsupported, "connect", "the mount does not support interception")
        .with("directory", view.mount.directory.display())
        .remedy("mount it with --intercept"))
}

/// The socket that the mount's process serves programs at.
fn endpoint(view: &View) -> Option<std::ffi::OsString> {
    let directory = CString::new(view.mount.directory.as_os_str().as_bytes()).ok()?;
    let mut value = [0_u8; 4096];
    let room = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: both names are strings of C, and the room is as large as said.
    let length = unsafe {
        libc::syscall(libc::SYS_getxattr, directory.as_ptr(), ENDPOINT_ATTRIBUTE.as_ptr(), room, value.len())
    };
    let value = value.get(..usize::try_from(length).ok()?)?;
    Some(std::ffi::OsStr::from_bytes(value).to_owned())
}

/// A number that no other client of the same server has.
fn client_number() -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: the room is as large as said.
    let drawn = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    let number = u64::from_ne_bytes(bytes);
    if drawn == 8 && number != 0 { number } else { u64::from(std::process::id()) | 1 << 63 }
}
