//! Probe of a target's path. Touches nothing: no file is created, no device is opened for writing.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::target::TargetFacts;
use driver::Error;
use host::block::{BlockDevice, DeviceNumber};
use rustix::fs::{Access, AtFlags, Mode, OFlags, SeekFrom, StatxFlags};
use units::path_of;
use workload::target::TargetKind;

use crate::rbd::{self, Image, Use};

/// Smallest sector that any block device has, in bytes.
const SECTOR_BYTES: u64 = 512;

/// Finds out what `path` is. A file that does not exist is an error unless `create_ok`, and then its
/// directory must take it.
///
/// # Errors
/// Usage errors: missing, a directory, a pipe or socket, a directory that cannot take the file. System errors
/// of the calls. What keeps an image from being reached.
pub fn probe(path: &str, create_ok: bool) -> Result<TargetFacts, Error> {
    if let Some(kind) = without_place(path)? {
        return Ok(facts(path, kind, true, 0, 0, 1));
    }
    if rbd::is_image(path) {
        let size = Image::open(&path.parse()?, Use::Looked)?.size_bytes()?;
        // What of it has objects is asked where it matters: that takes a walk over all of them.
        return Ok(facts(path, TargetKind::Image, true, size, size, 1));
    }
    match std::fs::metadata(path_of(path)) {
        Ok(metadata) => probe_existing(path, &metadata),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => probe_missing(path, create_ok),
        Err(error) => {
            Err(Error::system("probe", "cannot read the metadata of the target", error).with("path", path))
        }
    }
}

/// Kinds that lie nowhere, and forms that are no path.
fn without_place(path: &str) -> Result<Option<TargetKind>, Error> {
    match path {
        "null:" => Ok(Some(TargetKind::Null)),
        "mem:" => Ok(Some(TargetKind::Memory)),
        "" => Err(Error::usage("probe", "the target's path is empty")
            .remedy("give a file, a device, rbd:POOL/IMAGE, null: or mem:")),
        _ if path.contains("://") => Err(Error::usage("probe", "not a target of the media layer")
            .with("path", path)
            .remedy("give a file, a device, rbd:POOL/IMAGE, null: or mem:")),
        _ => Ok(None),
    }
}

fn facts(
    path: &str,
    kind: TargetKind,
    exists: bool,
    size: u64,
    allocated: u64,
    alignment: u64,
) -> TargetFacts {
    TargetFacts {
        path: path.to_owned(),
        kind,
        exists,
        size_bytes: size,
        allocated_bytes: allocated,
        direct_alignment_bytes: alignment,
        free_bytes: None,
        zoned: None,
    }
}

fn probe_existing(path: &str, metadata: &Metadata) -> Result<TargetFacts, Error> {
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(Error::usage("probe", "is a directory")
            .with("path", path)
            .remedy("give the path of a file in it"));
    }
    if kind.is_block_device() {
        return probe_block_device(path, DeviceNumber::from_packed(metadata.rdev()));
    }
    if kind.is_char_device() {
        // Opening one can have effects (tapes rewind), so the kernel is not asked: almost none takes
        // O_DIRECT.
        return Ok(facts(path, TargetKind::CharacterDevice, true, 0, 0, 0));
    }
    if !metadata.is_file() {
        return Err(Error::usage("probe", "is a pipe or a socket")
            .with("path", path)
            .remedy("give a file, a block device or a character device"));
    }
    let place = &*path_of(path);
    let alignment = file_alignment(place, DeviceNumber::from_packed(metadata.dev()));
    let allocated = metadata.blocks() * SECTOR_BYTES;
    let mut found = facts(path, TargetKind::File, true, metadata.len(), allocated, alignment);
    found.free_bytes = free_bytes(place);
    Ok(found)
}

fn probe_block_device(path: &str, number: DeviceNumber) -> Result<TargetFacts, Error> {
    let failed = |message: &'static str, error| Error::system("probe", message, error).with("path", path);
    let file = File::open(path_of(path)).map_err(|error| failed("cannot open the device", error))?;
    let size = rustix::fs::seek(&file, SeekFrom::End(0))
        .map_err(|error| failed("cannot determine the size of the device", error.into()))?;
    if size == 0 {
        return Err(Error::usage("probe", "the device is empty: no medium, or not set up").with("path", path));
    }
    let alignment = direct_alignment(&file).unwrap_or_else(|| logical_block_size(number));
    let mut found = facts(path, TargetKind::BlockDevice, true, size, size, alignment);
    found.zoned = crate::zoned::facts(path, number)?;
    Ok(found)
}

fn probe_missing(path: &str, create_ok: bool) -> Result<TargetFacts, Error> {
    if std::fs::symlink_metadata(path_of(path)).is_ok() {
        return Err(Error::usage("probe", "is a dangling symbolic link")
            .with("path", path)
            .remedy("give the path of a file"));
    }
    if host::target::is_missing_device(&path_of(path)) {
        return Err(Error::usage("probe", "no such device; strata does not create files in /dev")
            .with("path", path)
            .remedy("lsblk lists the existing devices"));
    }
    if !create_ok {
        return Err(Error::usage("probe", "no such file")
            .with("path", path)
            .remedy("give --size to create it"));
    }
    if path.ends_with('/') {
        return Err(Error::usage("probe", "no such directory")
            .with("path", path)
            .remedy("give a file in an existing directory"));
    }
    let directory = directory_of(&path_of(path));
    let shown = directory.display();
    match std::fs::metadata(&directory) {
        Ok(metadata) if metadata.is_dir() => {}
        _ => {
            return Err(Error::usage("probe", "no such directory")
                .with("path", path)
                .with("directory", shown));
        }
    }
    rustix::fs::access(&directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        let message = "cannot create a file in this directory";
        Error::system("probe", message, error).with("path", path).with("directory", shown)
    })?;
    let mut found = facts(path, TargetKind::File, false, 0, 0, alignment_in(&directory));
    found.free_bytes = free_bytes(&directory);
    Ok(found)
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Free for this user, in bytes.
fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(path).ok().map(|space| space.f_bavail.saturating_mul(space.f_frsize))
}

/// Alignment for a file still to be created, asked of one without a name.
fn alignment_in(directory: &Path) -> u64 {
    let number = std::fs::metadata(directory).map(|metadata| DeviceNumber::from_packed(metadata.dev()));
    let fallback = number.map_or(SECTOR_BYTES, logical_block_size);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let Ok(unnamed) = rustix::fs::open(directory, flags, mode) else { return fallback };
    let unnamed = File::from(unnamed);
    direct_alignment(&unnamed).unwrap_or_else(|| {
        let opens = rustix::fs::open(directory, flags | OFlags::DIRECT, mode).is_ok();
        if opens { fallback } else { 0 }
    })
}

fn file_alignment(path: &Path, device: DeviceNumber) -> u64 {
    let open =
        |flags: OFlags| std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    // A file that cannot be read cannot be asked either.
    let Ok(file) = open(OFlags::empty()) else { return logical_block_size(device) };
    direct_alignment(&file).unwrap_or_else(|| match open(OFlags::DIRECT) {
        Ok(_) => logical_block_size(device),
        Err(_) => 0,
    })
}

/// Alignment that the file system reports (`STATX_DIOALIGN`, Linux 6.1); 0: no direct I/O. `None` where it says nothing.
fn direct_alignment(file: &File) -> Option<u64> {
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let told = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    told.then_some(u64::from(found.stx_dio_offset_align))
}

fn logical_block_size(device: DeviceNumber) -> u64 {
    BlockDevice::read(device).and_then(|device| device.logical_block_size_bytes).unwrap_or(SECTOR_BYTES)
}

/// Whether the path leads to a regular file that strata created (and marked) in this or an earlier run.
#[must_use]
pub fn is_own(path: &Path) -> bool {
    rustix::fs::getxattr_query(path, layer::MARK).is_ok_and(|length| length > 0)
}

#[cfg(test)]
mod tests {
    use driver::ErrorKind;

    use super::*;

    fn refused(path: &str, create_ok: bool) -> (ErrorKind, String) {
        let error = probe(path, create_ok).unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn kinds_without_a_place() {
        assert_eq!(probe("null:", false).unwrap().kind, TargetKind::Null);
        let memory = probe("mem:", false).unwrap();
        assert_eq!(
            (memory.kind, memory.exists, memory.direct_alignment_bytes),
            (TargetKind::Memory, true, 1)
        );
        let device = probe("/dev/null", false).unwrap();
        assert_eq!(
            (device.kind, device.size_bytes, device.direct_alignment_bytes),
            (TargetKind::CharacterDevice, 0, 0)
        );
    }

    #[test]
    fn bad_paths_get_one_clear_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let (kind, line) = refused(&path("none"), false);
        assert_eq!(kind, ErrorKind::Usage);
        assert!(line.contains("no such file") && line.ends_with("give --size to create it"), "{line}");
        assert!(refused(&path(""), true).1.contains("is a directory"));
        assert!(refused(&path(""), true).1.ends_with("give the path of a file in it"));
        assert!(refused(&path("no/file"), true).1.contains("no such directory"));
        assert!(refused(&path("new/"), true).1.contains("no such directory"));
        std::os::unix::fs::symlink("nowhere", path("link")).unwrap();
        assert!(refused(&path("link"), true).1.contains("dangling symbolic link"));
        let socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        assert!(refused(&path("socket"), true).1.contains("pipe or a socket"));
        drop(socket);
        for bad in ["", "tcp://host:1"] {
            assert_eq!(refused(bad, true).0, ErrorKind::Usage);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing was created");
    }

    #[test]
    fn file_and_file_to_be() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let text = path.to_str().unwrap();
        let before = probe(text, true).unwrap();
        assert!(!before.exists && before.size_bytes == 0 && before.free_bytes > Some(0));
        assert!(!path.exists());
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let after = probe(text, false).unwrap();
        assert_eq!((after.kind, after.exists, after.size_bytes), (TargetKind::File, true, 1 << 20));
        assert!(after.allocated_bytes < after.size_bytes, "sparse");
        assert_eq!(before.direct_alignment_bytes, after.direct_alignment_bytes);
        assert!([0, 1, 512, 4096].contains(&after.direct_alignment_bytes));
        assert!(!is_own(&path));
    }
}
