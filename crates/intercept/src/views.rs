//! Mounts of strata in the namespace of this process, and the file systems behind them.

#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use dfs::FileSystem;
use dfs::local::LocalFileSystem;
use dfs::mounts::Mount;
use driver::{Error, ErrorKind};

use crate::state::{self, Connection};
use crate::{hooks::kernel, report};

/// Attribute of a mount's root that names the socket of its process.
const ENDPOINT_ATTRIBUTE: &std::ffi::CStr = c"user.strata.endpoint";

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

/// The file system of a mount; none where it cannot be reached.
pub(crate) fn file_system(number: usize) -> Option<Arc<dyn FileSystem>> {
    match state::read().connections.get(&number) {
        Some(Connection::Open(file_system)) => return Some(Arc::clone(file_system)),
        Some(Connection::Failed) => return None,
        Some(Connection::None) | None => {}
    }
    let opened = open(all().get(number)?);
    let mut state = state::write();
    let connection = state.connections.entry(number).or_default();
    if let Connection::Open(file_system) = connection {
        // Another thread was first.
        return Some(Arc::clone(file_system));
    }
    match opened {
        Ok(file_system) => {
            *connection = Connection::Open(Arc::clone(&file_system));
            Some(file_system)
        }
        Err(error) => {
            *connection = Connection::Failed;
            drop(state);
            report::failed(&error);
            None
        }
    }
}

fn open(view: &View) -> Result<Arc<dyn FileSystem>, Error> {
    if let Some(socket) = endpoint(view) {
        let client = client_number();
        return Ok(Arc::new(LocalFileSystem::connect(Path::new(&socket), client)?));
    }
    Err(Error::new(ErrorKind::Unsupported, "connect", "the mount serves no programs")
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
