//! A mount from its checks to its end.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use dfs::FileSystem;
use dfs::local::{Change, LocalServer};
use dfs::mounts::{MOUNT_SUBTYPE, mounts};
use driver::{Error, ErrorKind};
use fuser::{Config, INodeNo, MountOption, Notifier, Session, SessionACL, SessionUnmounter};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::adapter::Adapter;
use crate::appending::Appending;
use crate::listing::Listings;
use crate::options::MountSpec;

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
            let message = "there is no such directory to mount on";
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
            refused("strata is mounted there already", &absolute).remedy(format!(
                "choose another directory, or unmount it first: fusermount3 -u {}",
                absolute.display()
            ))
        });
    }
    if !absolute.is_dir() {
        return Err(refused("a file system is mounted on a directory, and this is none", &absolute)
            .remedy("give an empty directory"));
    }
    let mut entries = std::fs::read_dir(&absolute).map_err(|error| {
        Error::system("mount", "cannot list the directory to mount on", error)
            .with("directory", absolute.display())
    })?;
    if entries.next().is_some() {
        return Err(refused("the directory is not empty: the mount would hide what is in it", &absolute)
            .remedy("give an empty directory"));
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
            "there is no /dev/fuse here",
            "load the kernel's module fuse, or give the container the device",
        );
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let has_helper = || {
        std::env::split_paths(&paths)
            .any(|folder| ["fusermount3", "fusermount"].iter().any(|name| folder.join(name).is_file()))
    };
    if !rustix::process::geteuid().is_root() && !has_helper() {
        return lacks(
            "who is not root mounts by fusermount3, which is missing",
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
    refused("a mount of strata is left there whose process has ended", directory)
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
            Error::system("mount", "the file system cannot be mounted", error)
                .with("directory", directory.display())
                .remedy("it needs /dev/fuse, and root or fusermount3")
        };
        let mut session = Session::new(adapter, &directory, &config).map_err(failed)?;
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
            Error::system("unmount", "the file system cannot be unmounted", error)
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
                Err(Error::system("mount", "requests of the kernel cannot be served", error)
                    .with("directory", self.directory.display()))
            }
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::Run, "mount", "a thread that serves requests has ended early")),
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
