//! Rules on the targets that may be written to. A mistyped device name must not cost anyone a file system.

mod signatures;
mod zeros;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::target::TargetFacts;
use driver::{Error, ErrorKind};
use host::block::{self, DeviceNumber};
use host::mounts::{self, Mount};
use units::path_of;
use workload::target::TargetKind;

pub use crate::probe::is_own;
use signatures::recognise_by;
pub use signatures::{Contents, recognise};
use zeros::Zeros;

use crate::rbd::{Image, Use};

/// Remedy that lets a refused target be written.
const REMEDY: &str = "--destroy-data overwrites it";
/// The system runs from a device that is mounted at one of these points, ...
const SYSTEM_MOUNT_POINTS: &[&str] = &["/", "/var"];
/// ... or anywhere below these: containers mount single files of the host's root device below /etc.
const SYSTEM_TREES: &[&str] = &["/boot", "/efi", "/usr", "/etc"];
/// Character devices that swallow whatever is written (major 1): null, zero, full, random, urandom.
const HARMLESS_MINORS: &[u32] = &[3, 5, 7, 8, 9];
/// Memory of the machine and I/O ports (major 1): mem, kmem, port.
const MEMORY_MINORS: &[u32] = &[1, 2, 4];

/// Whether a run may write to this target.
///
/// Refused without `destroy_data`: a block device in use (mounted, part of a RAID, a volume group, a loop
/// device over it) or with a partition table, a file system or another known signature; a file with content
/// that strata did not write and that is more than zeros; a character device that does more than swallow. Refused in any case: the device
/// that the system runs from, active swap, a device in use in a way that cannot be seen from here, `/dev/mem`
/// and its like. An image of Ceph is as a block device, in use where others have it open for writing.
///
/// # Errors
/// [`ErrorKind::Unsafe`] with the reason; a system error where the target cannot be examined.
pub fn check_writable(facts: &TargetFacts, destroy_data: bool) -> Result<(), Error> {
    match facts.kind {
        // Names are looked at by `names::probe`.
        TargetKind::Null | TargetKind::Memory | TargetKind::Name => Ok(()),
        TargetKind::File => check_file(facts, destroy_data),
        TargetKind::CharacterDevice => check_character_device(&facts.path, destroy_data),
        TargetKind::BlockDevice => check_block_device(&facts.path, destroy_data),
        TargetKind::Image => check_image(facts, destroy_data),
    }
}

fn refusal(path: &str, reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsafe, "safety", reason).with("path", path)
}

fn check_file(facts: &TargetFacts, destroy_data: bool) -> Result<(), Error> {
    let path = &*facts.place();
    if !facts.exists {
        return Ok(());
    }
    if let Some(swap) = same_file(path, &mounts::swaps()) {
        return Err(refusal(&facts.path, format!("is in use as swap ({})", swap.display()))
            .remedy("run swapoff on it first"));
    }
    if destroy_data || facts.size_bytes == 0 || is_own(path) {
        return Ok(());
    }
    let reason = match zeros::look(path) {
        Ok(Zeros::Only) => return Ok(()),
        Ok(Zeros::Data) | Err(_) => "the file holds data that strata did not write",
        Ok(Zeros::SoFar) => {
            "strata did not write the file, and checked only the first 4GiB of its data (all zeros)"
        }
    };
    Err(refusal(&facts.path, reason).remedy(REMEDY))
}

/// Whether nothing in the file can be lost: it is a regular file that is empty, or nothing but zeros as far as it was written
/// at all. At most 4 GiB are read to find out; with more than that the answer is no.
pub(crate) fn is_blank(path: &Path) -> bool {
    path.is_file() && zeros::look(path).is_ok_and(|found| found == Zeros::Only)
}

fn same_file(path: &Path, others: &[PathBuf]) -> Option<PathBuf> {
    let identity =
        |path: &Path| std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    let wanted = identity(path)?;
    others.iter().find(|other| identity(other) == Some(wanted)).cloned()
}

fn check_character_device(path: &str, destroy_data: bool) -> Result<(), Error> {
    let metadata = std::fs::metadata(path_of(path)).map_err(|error| {
        Error::system("safety", "cannot read the metadata of the target", error).with("path", path)
    })?;
    let number = DeviceNumber::from_packed(metadata.rdev());
    match number {
        DeviceNumber { major: 1, minor } if HARMLESS_MINORS.contains(&minor) => Ok(()),
        DeviceNumber { major: 1, minor } if MEMORY_MINORS.contains(&minor) => {
            Err(refusal(path, "is the memory of this machine").remedy("give another target"))
        }
        _ if destroy_data => Ok(()),
        _ => Err(refusal(path, "is a character device that may hold data or move hardware").remedy(REMEDY)),
    }
}

fn check_block_device(path: &str, destroy_data: bool) -> Result<(), Error> {
    let number = DeviceNumber::of_block_file(&path_of(path)).ok_or_else(|| {
        refusal(path, "is no longer a block device").remedy("give the path of a block device")
    })?;
    let usage = Usage::find(number);
    if let Some(reason) = usage.vital() {
        return Err(refusal(path, reason).remedy("give another target"));
    }
    let reason = usage.ordinary();
    if reason.is_none() && held_exclusively(path) {
        let message = "is held by the kernel for a use that strata cannot see";
        return Err(refusal(path, message).remedy("release it first, or give another target"));
    }
    if destroy_data {
        return Ok(());
    }
    let reason = match reason {
        Some(reason) => Some(reason),
        None if !block::partitions(number).is_empty() => Some("has a partition table".to_owned()),
        None => {
            let file = File::open(path_of(path)).map_err(|error| {
                Error::system("safety", "cannot open the device", error).with("path", path)
            })?;
            recognise(&file)
                .map_err(|error| Error::system("safety", "cannot read the device", error).with("path", path))?
                .map(|contents| contents.to_string())
        }
    };
    reason.map_or(Ok(()), |reason| Err(refusal(path, reason).remedy(REMEDY)))
}

fn check_image(facts: &TargetFacts, destroy_data: bool) -> Result<(), Error> {
    if destroy_data {
        return Ok(());
    }
    let image = Image::open(&facts.path.parse()?, Use::Looked)?;
    let reason = match image.watchers()?.as_slice() {
        [] => {
            let read = |buffer: &mut [u8], offset| image.read(offset, buffer);
            recognise_by(facts.size_bytes, read)?.map(|contents| contents.to_string())
        }
        watchers => Some(format!("is open for writing by other clients ({})", watchers.join(", "))),
    };
    reason.map_or(Ok(()), |reason| Err(refusal(&facts.path, reason).remedy(REMEDY)))
}

/// Whether the kernel has claimed the device: mounted in another namespace, a member of a RAID, swap. It then
/// refuses O_EXCL.
fn held_exclusively(path: &str) -> bool {
    let open = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path_of(path));
    open.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Who uses a device, as far as can be seen.
struct Usage {
    /// Devices above it that are more than partitions.
    holders: Vec<DeviceNumber>,
    mounts: Vec<Mount>,
    swap: Option<PathBuf>,
}

impl Usage {
    fn find(number: DeviceNumber) -> Self {
        // Writing to a loop device writes to the device behind it.
        let behind = block::BlockDevice::read(number)
            .and_then(|device| device.backing_file)
            .and_then(|file| DeviceNumber::of_block_file(&file));
        let mut devices = BTreeSet::from([number]);
        let mut holders = Vec::new();
        for lowest in [Some(number), behind].into_iter().flatten() {
            devices.insert(lowest);
            devices.extend(block::dependents(lowest));
        }
        let partitions: BTreeSet<DeviceNumber> =
            devices.iter().flat_map(|&device| block::partitions(device)).collect();
        for &device in &devices {
            if device != number && Some(device) != behind && !partitions.contains(&device) {
                holders.push(device);
            }
        }
        let is_part =
            |path: &Path| DeviceNumber::of_block_file(path).is_some_and(|device| devices.contains(&device));
        let mounts = mounts::mounts()
            .into_iter()
            .filter(|mount| devices.contains(&mount.device) || is_part(&mount.source))
            .collect();
        let swap = mounts::swaps().into_iter().find(|path| is_part(path));
        Self { holders, mounts, swap }
    }

    /// Why the device must not be written in any case.
    fn vital(&self) -> Option<String> {
        if let Some(swap) = &self.swap {
            return Some(format!("is in use as swap ({})", swap.display()));
        }
        let system = |mount: &&Mount| {
            SYSTEM_MOUNT_POINTS.iter().any(|&point| mount.mount_point == Path::new(point))
                || SYSTEM_TREES.iter().any(|&tree| mount.mount_point.starts_with(tree))
        };
        let mount = self.mounts.iter().find(system)?;
        Some(format!("the system runs from it (mounted at {})", mount.mount_point.display()))
    }

    /// Why it must not be written unless the user insists.
    fn ordinary(&self) -> Option<String> {
        if let Some(mount) = self.mounts.first() {
            return Some(format!("is mounted at {} ({})", mount.mount_point.display(), mount.filesystem));
        }
        let holder = self.holders.first()?;
        let name = block::name(*holder).unwrap_or_else(|| holder.to_string());
        Some(format!("is part of {name}"))
    }
}
