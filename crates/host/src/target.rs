//! Facts about the place that a target lies on.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::block::{self, BlockDevice, DeviceNumber};
use crate::mounts::{self, Mount};
use crate::overlay;

/// The file system that a target lies on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesystemFacts {
    /// Its type.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Source of the mount there.
    pub source: PathBuf,
    /// Options of the mount and of the file system.
    pub options: String,
    /// Size in bytes.
    pub total_bytes: Option<u64>,
    /// Free for this user, in bytes.
    pub free_bytes: Option<u64>,
    /// Size of its blocks in bytes.
    pub block_size_bytes: Option<u64>,
    /// Of an overlay: the file system that the file really lies on, where that can be seen from here.
    #[serde(default)]
    pub underlying: Option<Box<FilesystemFacts>>,
}

impl FilesystemFacts {
    /// The file system at the bottom: itself, where it is no overlay or nothing can be seen below it.
    #[must_use]
    pub fn bottom(&self) -> &Self {
        self.underlying.as_deref().unwrap_or(self)
    }
}

/// Directories below `/dev` that hold files: shared memory, message queues, huge pages.
const FILES_BELOW_DEV: [&str; 3] = ["/dev/shm", "/dev/mqueue", "/dev/hugepages"];

/// Whether nothing lies at `path` and its name is a device's: a file made there would be taken for one, and would lie in memory.
/// Other file systems that are mounted below `/dev` take files as any does.
#[must_use]
pub fn is_missing_device(path: &Path) -> bool {
    if path.symlink_metadata().is_ok() {
        return false;
    }
    let Ok(place) = std::path::absolute(path) else { return false };
    // Directories on the way may be missing too.
    let Some(above) = place.ancestors().skip(1).find_map(|above| above.canonicalize().ok()) else {
        return false;
    };
    let number = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    above.starts_with("/dev")
        && !FILES_BELOW_DEV.iter().any(|files| above.starts_with(files))
        && number(&above) == number(Path::new("/dev"))
}

/// A target's file, file system and device. For a file still to be created: those of its directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetEnvironment {
    /// Path as given; bytes that are no UTF-8 are spelled out ([`units::label_of`]).
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub file_size_bytes: Option<u64>,
    /// Bytes allocated for the file; below its size it is sparse (or compressed).
    pub file_allocated_bytes: Option<u64>,
    /// The file system; `None` for a device.
    pub filesystem: Option<FilesystemFacts>,
    /// The block device that it is or lies on; `None` for file systems without one.
    pub device: Option<BlockDevice>,
}

impl TargetEnvironment {
    /// Gathers the facts about `path`. All are `None` where nothing lies there (`null:`).
    #[must_use]
    pub fn gather(path: &Path) -> Self {
        let mut facts = Self {
            path: text(path),
            file_size_bytes: None,
            file_allocated_bytes: None,
            filesystem: None,
            device: None,
        };
        let metadata = std::fs::metadata(path).ok();
        if let Some(metadata) = &metadata {
            if metadata.file_type().is_block_device() {
                facts.device = BlockDevice::read(DeviceNumber::from_packed(metadata.rdev()));
                return facts;
            }
            if metadata.file_type().is_char_device() {
                return facts;
            }
            if metadata.is_file() {
                facts.file_size_bytes = Some(metadata.len());
                facts.file_allocated_bytes = Some(metadata.blocks() * 512);
            }
        }
        let Some(place) = existing_place(path, metadata.is_some()) else { return facts };
        facts.place(&place);
        facts
    }

    fn place(&mut self, place: &Path) {
        let mounts = mounts::mounts();
        self.filesystem = mounts::mount_of(&mounts, place).map(|mount| filesystem(place, mount));
        if let Some(facts) = self.filesystem.as_mut().filter(|facts| facts.kind == "overlay") {
            let real = overlay::real_place(&mounts, place);
            facts.underlying = real.map(|(real, mount)| Box::new(filesystem(&real, mount)));
        }
        self.device = block::numbers_of(place).first().and_then(|number| BlockDevice::read(*number));
    }
}

/// The path in a form that a record can hold.
fn text(path: &Path) -> PathBuf {
    units::label_of(path.as_os_str()).into()
}

/// The path itself, or the directory that it would be created in. Names with a scheme (`null:`) that do not
/// exist have none.
fn existing_place(path: &Path, exists: bool) -> Option<PathBuf> {
    if exists {
        return std::fs::canonicalize(path).ok();
    }
    if path.to_string_lossy().ends_with(':') {
        return None;
    }
    let parent = path.parent()?;
    std::fs::canonicalize(if parent.as_os_str().is_empty() { Path::new(".") } else { parent }).ok()
}

fn filesystem(place: &Path, mount: &Mount) -> FilesystemFacts {
    let space = rustix::fs::statvfs(place).ok();
    FilesystemFacts {
        kind: mount.filesystem.clone(),
        mount_point: text(&mount.mount_point),
        source: text(&mount.source),
        options: mount.options.clone(),
        total_bytes: space.as_ref().map(|space| space.f_blocks.saturating_mul(space.f_frsize)),
        free_bytes: space.as_ref().map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
        block_size_bytes: space.as_ref().map(|space| space.f_frsize),
        underlying: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_file_to_be_share_their_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let before = TargetEnvironment::gather(&path);
        std::fs::write(&path, vec![1; 10_000]).unwrap();
        let after = TargetEnvironment::gather(&path);
        assert_eq!((before.file_size_bytes, after.file_size_bytes), (None, Some(10_000)));
        let (before, after) = (before.filesystem.unwrap(), after.filesystem.unwrap());
        assert_eq!((&before.kind, &before.mount_point), (&after.kind, &after.mount_point));
        assert!(after.total_bytes >= after.free_bytes && after.free_bytes > Some(0));
    }

    #[test]
    fn nothing_lies_behind_null() {
        let empty = |path: &str| TargetEnvironment {
            path: path.into(),
            file_size_bytes: None,
            file_allocated_bytes: None,
            filesystem: None,
            device: None,
        };
        for path in ["null:", "mem:", "/nonexistent/directory/file", "/dev/null"] {
            assert_eq!(TargetEnvironment::gather(Path::new(path)), empty(path), "{path}");
        }
    }
}
