//! Place of a target on file systems and devices, as far as it decides on the meaning of a figure.

use std::path::Path;

use host::TargetEnvironment;
use host::block::BlockDevice;
use host::target::FilesystemFacts;

/// File systems that keep their files in memory and nowhere else.
const MEMORY_FILESYSTEMS: &[&str] = &["tmpfs", "ramfs", "hugetlbfs", "devtmpfs"];
/// Disks of the kernel that keep their data in memory (brd, zram), or drop it (null_blk).
const MEMORY_DISKS: &[&str] = &["ram", "zram", "nullb"];
/// File systems that compress when told to, and what their options say then.
const COMPRESSING_FILESYSTEMS: &[(&str, &str)] =
    &[("btrfs", "compress"), ("f2fs", "compress_algorithm"), ("bcachefs", "compression")];
/// Ways to attach a drive of this machine's own.
const LOCAL_TRANSPORTS: &[&str] = &["pcie", "nvme", "sata", "sas", "usb", "mmc", "nvdimm"];

/// The name of the memory that a target lies in; none when a drive, or who knows what, is behind it.
pub(super) fn memory_behind(place: &TargetEnvironment) -> Option<String> {
    match (&place.filesystem, &place.device) {
        (Some(filesystem), _) if is_memory_filesystem(&filesystem.bottom().kind) => {
            let below = &filesystem.bottom().kind;
            let is_below = filesystem.underlying.is_some();
            Some(if is_below { format!("{} over {below}", filesystem.kind) } else { below.clone() })
        }
        (_, Some(device)) => memory_of(device),
        _ => None,
    }
}

fn is_memory_filesystem(kind: &str) -> bool {
    MEMORY_FILESYSTEMS.contains(&kind)
}

fn memory_of(device: &BlockDevice) -> Option<String> {
    if is_disk(device, MEMORY_DISKS) {
        return Some(device.name.clone());
    }
    if let Some(filesystem) = device.backing_filesystem.as_ref().filter(|kind| is_memory_filesystem(kind)) {
        return Some(format!("{} over {filesystem}", device.name));
    }
    let below: Option<Vec<_>> = device.underlying.iter().map(memory_of).collect();
    Some(format!("{} over {}", device.name, below?.first()?))
}

/// Whether it is one of these disks: their names with a number.
fn is_disk(device: &BlockDevice, names: &[&str]) -> bool {
    names.iter().any(|name| {
        let number = device.name.strip_prefix(name);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Who may make less of what is written, in words; none where nobody can, because it stays as it is in memory.
pub(super) fn compressor(place: Option<&TargetEnvironment>) -> Option<String> {
    let unknown =
        || Some("storage with compression or deduplication stores less than it receives".to_owned());
    let Some(place) = place else { return unknown() };
    if let Some(text) = place.filesystem.as_ref().and_then(|filesystem| {
        let filesystem = filesystem.bottom();
        compressing_filesystem(&filesystem.kind, &filesystem.options, &filesystem.mount_point)
    }) {
        return Some(text);
    }
    if let Some(device) = place.device.as_ref().and_then(compressing_device) {
        return Some(format!("{device} compresses"));
    }
    if memory_behind(place).is_some() {
        return None;
    }
    match &place.device {
        Some(device) => Some(drive_words(device)),
        None => unknown(),
    }
}

/// Whether a file system or a device there is known to store less than it is given.
pub(super) fn shrinks(place: &TargetEnvironment) -> bool {
    let filesystem = place.filesystem.as_ref().map(FilesystemFacts::bottom);
    let shrinks = |filesystem: &FilesystemFacts| {
        compressing_filesystem(&filesystem.kind, &filesystem.options, &filesystem.mount_point).is_some()
    };
    filesystem.is_some_and(shrinks)
        || place.device.as_ref().is_some_and(|device| compressing_device(device).is_some())
}

fn compressing_filesystem(kind: &str, options: &str, mount_point: &Path) -> Option<String> {
    if kind == "zfs" {
        return Some("ZFS compresses by default".to_owned());
    }
    let (_, option) = COMPRESSING_FILESYSTEMS.iter().find(|(name, _)| *name == kind)?;
    let told = options.split(',').find(|word| word.starts_with(option))?;
    Some(format!("{kind} on {} compresses ({told})", mount_point.display()))
}

/// The device, at any depth, that is known to compress: zram, or a mapped one that is called VDO.
fn compressing_device(device: &BlockDevice) -> Option<String> {
    let name = device.model.as_deref().unwrap_or_default().to_lowercase();
    let is_vdo = device.transport.as_deref() == Some("device mapper") && name.contains("vdo");
    if is_vdo || is_disk(device, &["zram"]) {
        return Some(device.name.clone());
    }
    device.underlying.iter().find_map(compressing_device)
}

/// Sentence on a device that is not known to compress: drives may do so inside, and tell nobody.
fn drive_words(device: &BlockDevice) -> String {
    let bottom = bottom_of(device);
    let name = &bottom.name;
    let is_local = bottom.transport.as_ref().is_some_and(|way| LOCAL_TRANSPORTS.contains(&way.as_str()));
    let what = if is_local {
        format!("{name} may compress internally")
    } else {
        format!("the storage behind {name} may compress")
    };
    format!("{what}, which strata cannot detect")
}

fn bottom_of(device: &BlockDevice) -> &BlockDevice {
    device.underlying.first().map_or(device, bottom_of)
}
