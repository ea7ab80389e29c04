//! A mount from its checks to its end.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use dfs::FileSystem;
use dfs::local::{Change, LocalServer};
use dfs::mounts::{MOUNT_SUBTYPE, device_of, mounts};
use driver::{Error, ErrorKind};
use fuser::{Config, INodeNo, MountOption, Notifier, Session, SessionACL, SessionUnmounter};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::adapter::Adapter;
use crate::appending::Appending;
use crate::listing::Listings;
use crate::options::MountSpec;
use crate::requests::REQUEST_BYTES_MAX;
use crate::setid::Shown;

/// A file system that is mounted; unmounted when dropped.
pub struct Mounted {
    directory: PathBuf,
    unmounter: SessionUnmounter,
    server: Option<JoinHandle<()>>,
    end: Arc<Mutex<Option<io::Result<()>>>>,
}

/// How a mount went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// At once.
    Whole,
    /// It was in use: it is gone from the tree, and serves files that are open until they are closed.
    Detached,
}

fn refused(message: &str, directory: &Path) -> Error {
    Error::usage("mount", message).with("directory", directory.display())
}

/// The directory to mount on, as an absolute path; it is there, empty, and no mount of strata.
///
/// # Errors
/// Bad usage, with what would be accepted.
pub fn check(directory: &Path) -> Result<PathBuf, Error> {
    let listed = mounts().map_err(|error| Error::system("mount", "cannot list mounts", error))?;
    let known = |path: &Path| listed.iter().any(|mount| mount.is_strata() && mount.directory == path);
    let absolute = match directory.canonicalize() {
        Ok(absolute) => absolute,
        Err(error) => {
            let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
            if error.raw_os_error() == Some(libc::ENOTCONN) && known(&absolute) {
                return Err(stale(&absolute));
            }
            let message = "the mount directory does not exist";
            return Err(refused(message, directory)
                .with("error", &error)
                .remedy(format!("mkdir -p {}", directory.display())));
        }
    };
    if known(&absolute) {
        let is_dead = matches!(rustix::fs::statfs(&absolute), Err(Errno::NOTCONN));
        return Err(if is_dead {
            stale(&absolute)
        } else {
            refused("strata is already mounted there", &absolute).remedy(format!(
                "choose another directory, or unmount it first: fusermount3 -u {}",
                absolute.display()
            ))
        });
    }
    if !absolute.is_dir() {
        return Err(refused("the mount point is not a directory", &absolute).remedy("use an empty directory"));
    }
    let mut entries = std::fs::read_dir(&absolute).map_err(|error| {
        Error::system("mount", "cannot list the mount directory", error).with("directory", absolute.display())
    })?;
    if entries.next().is_some() {
        return Err(refused("the directory is not empty: the mount would hide its contents", &absolute)
            .remedy("use an empty directory"));
    }
    Ok(absolute)
}

/// The reason that this process cannot mount, with a remedy; none where it can.
#[must_use]
pub fn missing() -> Option<Error> {
    let lacks = |message: &str, remedy: &str| {
        Some(Error::new(ErrorKind::Unsupported, "mount", message).remedy(remedy))
    };
    if !Path::new("/dev/fuse").exists() {
        return lacks(
            "/dev/fuse is missing",
            "load the kernel module fuse, or add the device to the container",
        );
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let has_helper = || {
        std::env::split_paths(&paths)
            .any(|folder| ["fusermount3", "fusermount"].iter().any(|name| folder.join(name).is_file()))
    };
    if !rustix::process::geteuid().is_root() && !has_helper() {
        return lacks(
            "mounting without root requires fusermount3, which is missing",
            "install fuse3, or run as root",
        );
    }
    None
}

/// Unmounts a directory whose mount is dead: its process has ended.
pub fn clear_dead(directory: &Path) {
    if !matches!(rustix::fs::statfs(directory), Err(Errno::NOTCONN)) {
        return;
    }
    if rustix::mount::unmount(directory, UnmountFlags::DETACH).is_err() {
        // Who is not root unmounts by the helper; where that fails too, the mount stays, and the next use of the directory says so.
        let _ = std::process::Command::new("fusermount3").arg("-u").arg("-z").arg(directory).status();
    }
}

fn stale(directory: &Path) -> Error {
    refused("a strata mount without a running process is still there", directory)
        .remedy(format!("unmount it first: fusermount3 -u {0}, or umount {0}", directory.display()))
}

/// Serves programs with the interception library; the kernel forgets what they change.
fn serve_programs(
    file_system: &Arc<dyn FileSystem>,
    spec: &MountSpec,
    notifier: &Arc<OnceLock<Notifier>>,
) -> Result<LocalServer, Error> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let notifier = Arc::clone(notifier);
    LocalServer::begin(Arc::clone(file_system), &folder, spec.read_only, move |change| {
        let Some(notifier) = notifier.get() else { return };
        // The kernel refuses what it does not keep, and then there is nothing to forget.
        let _ = match change {
            Change::Entry(parent, name) => {
                // Of a name that the kernel does not know it forgets nothing, the times of the directory neither: these are
                // forgotten apart (a negative offset: attributes alone).
                let entry = notifier.inval_entry(INodeNo(parent.0), OsStr::from_bytes(name));
                notifier.inval_inode(INodeNo(parent.0), -1, 0).and(entry)
            }
            Change::Inode(inode) => notifier.inval_inode(INodeNo(inode.0), 0, 0),
        };
    })
}

/// Lets the kernel read as much ahead as one request moves: FUSE sets 128 KiB for a new mount, whatever the session agrees to. Only root may; for others it
/// stays so.
fn read_ahead(directory: &Path) {
    let Ok(Some(device)) = device_of(directory) else { return };
    let path = format!("/sys/class/bdi/{device}/read_ahead_kb");
    let _ = std::fs::write(path, format!("{}\n", REQUEST_BYTES_MAX >> 10));
}

impl Mounted {
    /// Mounts a file system on a directory that [`check`] has passed. `ended` is called when it is unmounted, by whomever.
    ///
    /// # Errors
    /// Where FUSE is missing, or the rights to it, and options that contradict each other.
    pub fn begin(
        file_system: Arc<dyn FileSystem>,
        url: &str,
        directory: PathBuf,
        spec: &MountSpec,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let caching = spec.caching()?;
        let notifier = Arc::new(OnceLock::new());
        let local = spec.intercept.then(|| serve_programs(&file_system, spec, &notifier)).transpose()?;
        let adapter = Adapter {
            file_system,
            caching,
            endpoint: local.as_ref().map(|local| local.socket().as_os_str().as_encoded_bytes().to_vec()),
            listings: Listings::default(),
            appending: Appending::default(),
            shown: Shown::default(),
            notifier: Arc::clone(&notifier),
        };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(url.to_owned()),
            MountOption::CUSTOM(format!("subtype={MOUNT_SUBTYPE}")),
            MountOption::DefaultPermissions,
            if spec.read_only { MountOption::RO } else { MountOption::RW },
            MountOption::NoAtime,
        ];
        config.acl = if spec.allow_other { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(spec.threads());
        config.clone_fd = true;
        let failed = |error: io::Error| {
            Error::system("mount", "cannot mount the file system", error)
                .with("directory", directory.display())
                .remedy("it requires /dev/fuse, and root or fusermount3")
        };
        let mut session = Session::new(adapter, &directory, &config).map_err(failed)?;
        read_ahead(&directory);
        let unmounter = session.unmount_callable();
        // It is set once, here.
        let _ = notifier.set(session.notifier());
        let end = Arc::new(Mutex::new(None));
        let server = std::thread::Builder::new().name("mount".to_owned()).spawn({
            let end = Arc::clone(&end);
            move || {
                let result = session.run();
                drop(local);
                *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                ended();
            }
        });
        Ok(Self { server: Some(server.map_err(failed)?), directory, unmounter, end })
    }

    /// Directory that it is mounted on.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts it. Where it is in use, it is detached: it goes when the last file is closed.
    ///
    /// # Errors
    /// When the kernel refuses both.
    pub fn unmount(&mut self) -> Result<Unmounted, Error> {
        if self.server.as_ref().is_none_or(JoinHandle::is_finished) {
            return Ok(Unmounted::Whole);
        }
        let failed = |error: io::Error| {
            Error::system("unmount", "cannot unmount the file system", error)
                .with("directory", self.directory.display())
        };
        match rustix::mount::unmount(&self.directory, UnmountFlags::empty()) {
            Ok(()) => Ok(Unmounted::Whole),
            Err(Errno::BUSY) => {
                let detached = rustix::mount::unmount(&self.directory, UnmountFlags::DETACH);
                detached.map_err(|error| failed(error.into()))?;
                Ok(Unmounted::Detached)
            }
            // Nothing is mounted there any more.
            Err(Errno::INVAL | Errno::NOENT) => Ok(Unmounted::Whole),
            // Who is not root unmounts by fusermount3, which detaches.
            Err(Errno::PERM) => self.unmounter.unmount().map(|()| Unmounted::Detached).map_err(failed),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Waits until nothing is served any more.
    ///
    /// # Errors
    /// The failure that ended the serving, besides an unmount.
    pub fn join(mut self) -> Result<(), Error> {
        self.wait();
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        match end {
            Some(Err(error)) if error.raw_os_error() != Some(libc::ECONNABORTED) => {
                Err(Error::system("mount", "cannot serve kernel requests", error)
                    .with("directory", self.directory.display()))
            }
            Some(_) => Ok(()),
            None => {
                Err(Error::new(ErrorKind::Run, "mount", "a thread that serves requests ended unexpectedly"))
            }
        }
    }

    fn wait(&mut self) {
        if let Some(server) = self.server.take() {
            // A panic leaves no result, which `join` tells.
            let _ = server.join();
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.server.is_some() && matches!(self.unmount(), Ok(Unmounted::Whole)) {
            self.wait();
        }
    }
}
