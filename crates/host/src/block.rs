//! Block devices, from sysfs: what they are, what they are made of, and what is made of them.

use std::fmt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{mounts, overlay, source, zoned::ZonedQueue};

/// Layers of device mapper, RAID and loop devices that are followed.
const LAYERS_MAX: usize = 8;
/// Where sysfs is mounted.
const SYSTEM: &str = "/sys";
/// Sysfs counts sizes in sectors of this many bytes, whatever the device's own are.
const SECTOR_BYTES: u64 = 512;

/// Major and minor number of a device; printed as `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// From the kernel's packed form (`st_dev`, `st_rdev`).
    #[must_use]
    pub fn from_packed(packed: u64) -> Self {
        Self { major: rustix::fs::major(packed), minor: rustix::fs::minor(packed) }
    }

    /// The device that the block device file at `path` stands for; `None` when it is something else or
    /// missing.
    #[must_use]
    pub fn of_block_file(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        metadata.file_type().is_block_device().then(|| Self::from_packed(metadata.rdev()))
    }

    fn directory(self) -> Option<PathBuf> {
        self.directory_in(Path::new(SYSTEM))
    }

    fn directory_in(self, system: &Path) -> Option<PathBuf> {
        std::fs::canonicalize(system.join(format!("dev/block/{self}"))).ok()
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (major, minor) = text.split_once(':')?;
            Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
        };
        parse().ok_or_else(|| format!("not a device number such as 8:0: {text}"))
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> Self {
        number.to_string()
    }
}

/// A disk, or what acts as one, and the queue in front of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// The kernel's name of the disk, such as `nvme0n1`.
    pub name: String,
    /// The kernel's name of the partition, where the target lies on one.
    pub partition: Option<String>,
    /// Device number of the target: of the partition where there is one.
    pub number: DeviceNumber,
    /// Size of the target in bytes.
    pub size_bytes: Option<u64>,
    /// Model, or the name given to a mapped device.
    pub model: Option<String>,
    /// Vendor.
    pub vendor: Option<String>,
    /// How it is attached, guessed from its name and place in sysfs: `pcie`, `sata`, `sas`, `virtio`, `loop`,
    /// ...
    pub transport: Option<String>,
    /// Whether it spins, as the kernel sees it.
    pub rotational: Option<bool>,
    /// Smallest addressable unit in bytes.
    pub logical_block_size_bytes: Option<u64>,
    /// Smallest unit that is written without a read, in bytes.
    pub physical_block_size_bytes: Option<u64>,
    /// I/O scheduler.
    pub scheduler: Option<String>,
    /// Requests that the queue holds.
    pub nr_requests: Option<u64>,
    /// Largest request in bytes.
    pub request_size_bytes_max: Option<u64>,
    /// Read-ahead in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// `write back` (volatile cache, flushes cost) or `write through`: what the kernel takes it for, which an administrator
    /// may have changed.
    pub write_cache: Option<String>,
    /// The same as the drive itself says (SCSI, SATA).
    #[serde(default)]
    pub drive_write_cache: Option<String>,
    /// Whether it writes a block past its cache when asked to, so that a durable write needs no flush.
    #[serde(default)]
    pub forced_unit_access: Option<bool>,
    /// Whether it counts what it does.
    #[serde(default)]
    pub keeps_counters: Option<bool>,
    /// Whether it takes discards.
    pub discard: Option<bool>,
    /// Its zones, where it is a zoned block device.
    #[serde(default)]
    pub zoned: Option<ZonedQueue>,
    /// Whether it can be mapped without the page cache.
    pub dax: Option<bool>,
    /// Whether it has queues that are polled instead of interrupting.
    pub polling: Option<bool>,
    /// Whether it refuses writes.
    pub read_only: Option<bool>,
    /// NUMA node that it is attached to.
    pub numa_node: Option<u32>,
    /// File behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// Type of the file system that this file lies on.
    #[serde(default)]
    pub backing_filesystem: Option<String>,
    /// Of a loop device: whether it reads and writes its file past the page cache.
    #[serde(default)]
    pub backing_direct: Option<bool>,
    /// The devices that it is made of (device mapper, RAID, bcache, loop).
    pub underlying: Vec<BlockDevice>,
}

impl BlockDevice {
    /// Facts about the device with this number; `None` when sysfs has no such block device.
    #[must_use]
    pub fn read(number: DeviceNumber) -> Option<Self> {
        Self::read_layer(Path::new(SYSTEM), number, LAYERS_MAX)
    }

    fn read_layer(system: &Path, number: DeviceNumber, layers: usize) -> Option<Self> {
        let directory = number.directory_in(system)?;
        let disk = disk_directory(&directory);
        let name = file_name(&disk)?;
        let queue = disk.join("queue");
        let backing_file = source::text(disk.join("loop/backing_file")).map(PathBuf::from);
        let text = |file: &str| source::text(disk.join(file));
        Some(Self {
            partition: file_name(&directory).filter(|partition| *partition != name),
            number,
            size_bytes: source::value(directory.join("size"))
                .and_then(|count: u64| count.checked_mul(SECTOR_BYTES)),
            model: text("device/model").or_else(|| text("dm/name")).or_else(|| text("md/level")),
            vendor: text("device/vendor"),
            transport: transport(&disk, &name),
            rotational: source::switch(queue.join("rotational")),
            logical_block_size_bytes: source::value(queue.join("logical_block_size")),
            physical_block_size_bytes: source::value(queue.join("physical_block_size")),
            scheduler: source::text(queue.join("scheduler")).map(|text| source::chosen(&text).to_owned()),
            nr_requests: source::value(queue.join("nr_requests")),
            request_size_bytes_max: source::value(queue.join("max_sectors_kb")).map(|size: u64| size * 1024),
            read_ahead_bytes: source::value(queue.join("read_ahead_kb")).map(|size: u64| size * 1024),
            write_cache: source::text(queue.join("write_cache")),
            drive_write_cache: drive_write_cache(&disk),
            forced_unit_access: source::switch(queue.join("fua")),
            keeps_counters: source::switch(queue.join("iostats")),
            discard: source::switch(queue.join("discard_max_bytes")),
            zoned: ZonedQueue::read(&queue),
            dax: source::switch(queue.join("dax")),
            polling: source::switch(queue.join("io_poll")),
            read_only: source::switch(directory.join("ro")),
            numa_node: numa_node(&disk),
            underlying: underlying(system, &disk, backing_file.as_deref(), layers),
            backing_filesystem: backing_file.as_deref().and_then(filesystem_of),
            backing_file,
            backing_direct: source::switch(disk.join("loop/dio")),
            name,
        })
    }

    /// The devices at the bottom: those that are made of no others here.
    #[must_use]
    pub fn bottoms(&self) -> Vec<&Self> {
        if self.underlying.is_empty() {
            return vec![self];
        }
        self.underlying.iter().flat_map(Self::bottoms).collect()
    }

    /// The device and all that it is made of, from the top.
    #[must_use]
    pub fn layers(&self) -> Vec<&Self> {
        std::iter::once(self).chain(self.underlying.iter().flat_map(Self::layers)).collect()
    }
}

/// The directory of the disk that a partition lies on; a disk's own stays.
fn disk_directory(directory: &Path) -> PathBuf {
    let parent = directory.parent().filter(|_| directory.join("partition").exists());
    parent.unwrap_or(directory).to_owned()
}

fn file_name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn underlying(system: &Path, disk: &Path, backing_file: Option<&Path>, layers: usize) -> Vec<BlockDevice> {
    let Some(layers) = layers.checked_sub(1) else { return Vec::new() };
    let slaves = disk.join("slaves");
    let slaves =
        source::names(&slaves).into_iter().filter_map(|name| source::value(slaves.join(name).join("dev")));
    let behind = backing_file.map_or_else(Vec::new, numbers_of);
    slaves.chain(behind).filter_map(|number| BlockDevice::read_layer(system, number, layers)).collect()
}

/// The type of the file system that a file lies on; none for devices.
fn filesystem_of(file: &Path) -> Option<String> {
    let file = std::fs::canonicalize(file).ok().filter(|file| DeviceNumber::of_block_file(file).is_none())?;
    let mounts = mounts::mounts();
    let mount = overlay::real_place(&mounts, &file).map(|(_, mount)| mount);
    mount.or_else(|| mounts::mount_of(&mounts, &file)).map(|mount| mount.filesystem.clone())
}

/// Cache type that a drive of SCSI or SATA reports.
fn drive_write_cache(disk: &Path) -> Option<String> {
    let disks = disk.join("device/scsi_disk");
    source::names(&disks).iter().find_map(|name| source::text(disks.join(name).join("cache_type")))
}

/// The block devices under a path: the device itself, those that the file lies on, through overlays; several where the
/// file system has several. Empty where there is none, or it cannot be told.
#[must_use]
pub fn numbers_of(path: &Path) -> Vec<DeviceNumber> {
    if let Some(number) = DeviceNumber::of_block_file(path) {
        return vec![number];
    }
    let Ok(path) = std::fs::canonicalize(path) else { return Vec::new() };
    let mounts = mounts::mounts();
    let Some((path, mount)) = overlay::real_place(&mounts, &path) else { return Vec::new() };
    let Ok(metadata) = std::fs::metadata(&path) else { return Vec::new() };
    let number = DeviceNumber::from_packed(metadata.dev());
    if number.directory().is_some() {
        return vec![number];
    }
    // btrfs and others over several devices have a number of their own; what is mounted names one of the devices.
    let Some(named) = DeviceNumber::of_block_file(&mount.source) else { return Vec::new() };
    if mount.filesystem == "btrfs" { members_of_btrfs(Path::new(SYSTEM), named) } else { vec![named] }
}

/// All devices of the btrfs that one of its devices names.
fn members_of_btrfs(system: &Path, named: DeviceNumber) -> Vec<DeviceNumber> {
    let filesystems = system.join("fs/btrfs");
    let members = source::names(&filesystems).into_iter().map(|name| {
        let devices = filesystems.join(name).join("devices");
        let numbers = source::names(&devices).into_iter();
        numbers.filter_map(|name| source::value(devices.join(name).join("dev"))).collect::<Vec<_>>()
    });
    members.into_iter().find(|members| members.contains(&named)).unwrap_or_else(|| vec![named])
}

/// The nearest node number up the tree; -1 stands for none.
fn numa_node(disk: &Path) -> Option<u32> {
    let device = std::fs::canonicalize(disk.join("device")).unwrap_or_else(|_| disk.to_owned());
    device
        .ancestors()
        .take_while(|directory| directory.starts_with("/sys/devices"))
        .find_map(|directory| source::value::<i64>(directory.join("numa_node")))
        .and_then(|node| u32::try_from(node).ok())
}

fn transport(disk: &Path, name: &str) -> Option<String> {
    if name.starts_with("nvme") {
        let controllers = disk.join("device");
        let below = source::names(&controllers).into_iter().filter(|child| child.starts_with("nvme"));
        return source::text(controllers.join("transport"))
            .or_else(|| {
                below.into_iter().find_map(|child| source::text(controllers.join(child).join("transport")))
            })
            .or_else(|| Some("nvme".to_owned()));
    }
    let by_name = [
        ("loop", "loop"),
        ("zram", "memory"),
        ("ram", "memory"),
        ("dm-", "device mapper"),
        ("md", "raid"),
        ("nbd", "nbd"),
        ("rbd", "rbd"),
        ("drbd", "drbd"),
        ("mmcblk", "mmc"),
        ("pmem", "nvdimm"),
        ("xvd", "xen"),
        ("ublkb", "ublk"),
    ];
    let by_place = [
        ("/virtio", "virtio"),
        ("/usb", "usb"),
        ("/session", "iscsi"),
        ("/rport-", "fibre channel"),
        ("/end_device-", "sas"),
        ("/ata", "sata"),
        ("/vmbus", "hyper-v"),
    ];
    let place = disk.to_string_lossy();
    by_name
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .or_else(|| by_place.iter().find(|(part, _)| place.contains(part)))
        .map(|(_, transport)| (*transport).to_owned())
}

/// Numbers of the partitions of a device.
#[must_use]
pub fn partitions(number: DeviceNumber) -> Vec<DeviceNumber> {
    let Some(directory) = number.directory() else { return Vec::new() };
    source::names(&directory)
        .into_iter()
        .map(|name| directory.join(name))
        .filter(|child| child.join("partition").exists())
        .filter_map(|child| source::value(child.join("dev")))
        .collect()
}

/// Numbers of all devices that keep their data on this one, over any number of layers: its partitions, what
/// device mapper, RAID and bcache made of them, and loop devices over them. Itself left out.
#[must_use]
pub fn dependents(number: DeviceNumber) -> Vec<DeviceNumber> {
    let loops = loops_over_devices();
    let mut found = vec![number];
    let mut next = 0;
    while let Some(&current) = found.get(next) {
        next += 1;
        let holders = current.directory().map(|directory| directory.join("holders"));
        let holders = holders.into_iter().flat_map(|directory| {
            source::names(&directory)
                .into_iter()
                .filter_map(move |name| source::value(directory.join(name).join("dev")))
        });
        let loops = loops.iter().filter(|(_, below)| *below == current).map(|(over, _)| *over);
        let above: Vec<DeviceNumber> = partitions(current).into_iter().chain(holders).chain(loops).collect();
        for device in above {
            if !found.contains(&device) {
                found.push(device);
            }
        }
    }
    found.remove(0);
    found
}

/// Loop devices whose backing file is itself a block device, with that device.
fn loops_over_devices() -> Vec<(DeviceNumber, DeviceNumber)> {
    let names = source::names("/sys/block").into_iter().filter(|name| name.starts_with("loop"));
    names
        .filter_map(|name| {
            let directory = Path::new("/sys/block").join(name);
            let file = source::text(directory.join("loop/backing_file"))?;
            Some((source::value(directory.join("dev"))?, DeviceNumber::of_block_file(Path::new(&file))?))
        })
        .collect()
}

/// The kernel's name of a device, such as `sda1`.
#[must_use]
pub fn name(number: DeviceNumber) -> Option<String> {
    file_name(&number.directory()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_and_parse() {
        let number: DeviceNumber = "254:1048575".parse().unwrap();
        assert_eq!(number.to_string(), "254:1048575");
        assert_eq!(serde_json::to_string(&number).unwrap(), "\"254:1048575\"");
        assert_eq!(serde_json::from_str::<DeviceNumber>("\"254:1048575\"").unwrap(), number);
        for bad in ["", "8", "8:", ":0", "8:0:1", "a:b", "-1:0"] {
            assert!(bad.parse::<DeviceNumber>().is_err(), "{bad}");
        }
        assert_eq!(DeviceNumber::of_block_file(Path::new("/dev/null")), None);
    }

    /// A tree of sysfs with two disks, a mapped device over one of them and a bcache over that, and a RAID of the mapped device and the
    /// other disk, with a partition.
    fn made_up() -> tempfile::TempDir {
        let system = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = system.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let disks: [(&str, &str, &[&str]); 5] = [
            ("sda", "8:0", &[]),
            ("sdb", "8:16", &[]),
            ("dm-0", "252:0", &["sda"]),
            ("bcache0", "251:0", &["dm-0"]),
            ("md127", "9:127", &["dm-0", "sdb"]),
        ];
        for (name, number, layers) in disks {
            write(&format!("block/{name}/dev"), number);
            write(&format!("block/{name}/size"), "2048");
            write(&format!("block/{name}/queue/write_cache"), "write through");
            write(&format!("block/{name}/queue/fua"), "0");
            write(&format!("block/{name}/queue/iostats"), "1");
            std::fs::create_dir_all(system.path().join("dev/block")).unwrap();
            let block = system.path().join("block");
            std::os::unix::fs::symlink(block.join(name), system.path().join("dev/block").join(number))
                .unwrap();
            for below in layers {
                let slaves = block.join(name).join("slaves");
                std::fs::create_dir_all(&slaves).unwrap();
                std::os::unix::fs::symlink(block.join(below), slaves.join(below)).unwrap();
            }
        }
        write("block/sda/device/scsi_disk/0:0:0:0/cache_type", "write back\n");
        write("block/md127/md/level", "raid1\n");
        write("block/md127/md127p1/dev", "259:0");
        write("block/md127/md127p1/partition", "1");
        std::os::unix::fs::symlink(
            system.path().join("block/md127/md127p1"),
            system.path().join("dev/block/259:0"),
        )
        .unwrap();
        write("fs/btrfs/aa/devices/sda/dev", "8:0");
        write("fs/btrfs/aa/devices/sdb/dev", "8:16");
        system
    }

    #[test]
    fn the_bottom_is_found() {
        let system = made_up();
        let read = |number: &str| BlockDevice::read_layer(system.path(), number.parse().unwrap(), 8).unwrap();
        let names = |devices: Vec<&BlockDevice>| {
            devices.into_iter().map(|device| device.name.clone()).collect::<Vec<_>>()
        };
        let device = read("251:0");
        assert_eq!(names(device.bottoms()), ["sda"]);
        assert_eq!(names(device.layers()), ["bcache0", "dm-0", "sda"]);
        let bottom = device.bottoms()[0].clone();
        assert_eq!(bottom.drive_write_cache.as_deref(), Some("write back"));
        assert_eq!((bottom.forced_unit_access, bottom.keeps_counters), (Some(false), Some(true)));
        assert_eq!(names(read("8:16").bottoms()), ["sdb"]);
        // A RAID, and a partition of it, has the bottoms of all its members.
        for number in ["9:127", "259:0"] {
            let raid = read(number);
            assert_eq!(
                (raid.transport.as_deref(), raid.model.as_deref()),
                (Some("raid"), Some("raid1")),
                "{number}"
            );
            assert_eq!(names(raid.bottoms()), ["sda", "sdb"], "{number}");
            assert_eq!(names(raid.layers()), ["md127", "dm-0", "sda", "sdb"], "{number}");
        }
        let members = |number: &str| members_of_btrfs(system.path(), number.parse().unwrap()).len();
        assert_eq!((members("8:16"), members("252:0")), (2, 1));
    }

    #[test]
    fn every_disk_reads() {
        for name in source::names("/sys/block") {
            let directory = Path::new("/sys/block").join(&name);
            let number = source::value(directory.join("dev")).unwrap();
            let device = BlockDevice::read(number).unwrap();
            assert_eq!((device.name.as_str(), device.partition.as_deref()), (name.as_str(), None));
            assert!(
                device.size_bytes.is_some() && device.logical_block_size_bytes >= Some(512),
                "{device:?}"
            );
            for partition in partitions(number) {
                let part = BlockDevice::read(partition).unwrap();
                assert_eq!(part.name, name);
                assert!(part.partition.is_some() && part.number == partition);
            }
        }
    }
}
