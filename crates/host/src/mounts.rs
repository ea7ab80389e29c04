//! Mounted file systems, from `/proc/self/mountinfo`.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::block::DeviceNumber;
use crate::source;

/// One line of mountinfo (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Identifier of the mount.
    pub id: u64,
    /// Identifier of the mount that it lies in.
    pub parent_id: u64,
    /// Device number of the files on it. Anonymous (major 0) for btrfs, overlayfs, tmpfs, network file
    /// systems.
    pub device: DeviceNumber,
    /// The part of the file system that forms the root of this mount.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of the mount, then those of the file system, separated by commas; doubles left out.
    pub options: String,
    /// Type of the file system.
    pub filesystem: String,
    /// Source of the mount: a device path for file systems on one device.
    pub source: PathBuf,
}

/// The mounts of this process, in the order in which the kernel lists them; empty when they cannot be read.
#[must_use]
pub fn mounts() -> Vec<Mount> {
    source::text("/proc/self/mountinfo").map_or_else(Vec::new, |text| parse_mountinfo(&text))
}

/// Parses mountinfo. Lines that do not have the form are left out.
#[must_use]
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    let id = fields.next()?.parse().ok()?;
    let parent_id = fields.next()?.parse().ok()?;
    let device = fields.next()?.parse().ok()?;
    let root = unescape(fields.next()?);
    let mount_point = unescape(fields.next()?);
    let mount_options = fields.next()?;
    // Any number of optional fields ends with a lone hyphen.
    fields.by_ref().find(|&field| field == "-")?;
    let filesystem = unescape(fields.next()?).to_string_lossy().into_owned();
    let source = unescape(fields.next()?);
    let options = merge_options(mount_options, fields.next().unwrap_or_default());
    Some(Mount { id, parent_id, device, root, mount_point, options, filesystem, source })
}

fn merge_options(mount: &str, filesystem: &str) -> String {
    let mut merged: Vec<&str> = Vec::new();
    for option in mount.split(',').chain(filesystem.split(',')) {
        if !option.is_empty() && !merged.contains(&option) {
            merged.push(option);
        }
    }
    merged.join(",")
}

/// Undoes the kernel's escapes of blank, tab, newline, backslash and hash: a backslash and three octal
/// digits.
fn unescape(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match octal(&bytes[at..]) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(plain))
}

fn octal(bytes: &[u8]) -> Option<u8> {
    let [b'\\', digits @ ..] = bytes.get(..4)? else { return None };
    digits.iter().try_fold(0u8, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(digit - b'0'),
        _ => None,
    })
}

/// The mount that an absolute path without symbolic links lies on: the deepest mount point above it, the
/// latest of several at the same point.
#[must_use]
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().as_bytes().len())
}

/// Device files and files in use as swap (proc_swaps(5)).
#[must_use]
pub fn parse_swaps(text: &str) -> Vec<PathBuf> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(unescape).collect()
}

/// Device files and files in use as swap now.
#[must_use]
pub fn swaps() -> Vec<PathBuf> {
    source::text("/proc/swaps").map_or_else(Vec::new, |text| parse_swaps(&text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 25 0:27 / /dev/shm rw,relatime shared:3 master:1 - tmpfs tmpfs rw,size=24684092k
36 27 8:17 /sub\\040dir /mnt/a\\040b\\134c\\011d rw,noatime shared:1 - xfs /dev/sd\\043b1 rw,noatime,attr2
broken line
40 27 0:27 / /dev/shm rw - tmpfs second rw
41 27 0:99 / /mnt/nosource rw - fuse  rw";

    #[test]
    fn mountinfo_known_answers() {
        let mounts = parse_mountinfo(TEXT);
        assert_eq!(mounts.len(), 5);
        assert_eq!(mounts[0].options, "rw,relatime,discard");
        assert_eq!(mounts[0].device, DeviceNumber { major: 254, minor: 0 });
        assert_eq!(mounts[1].filesystem, "tmpfs");
        assert_eq!(mounts[2].mount_point, Path::new("/mnt/a b\\c\td"));
        assert_eq!(mounts[2].root, Path::new("/sub dir"));
        assert_eq!(mounts[2].source, Path::new("/dev/sd#b1"));
        assert_eq!(mounts[2].options, "rw,noatime,attr2");
        assert_eq!((mounts[4].source.as_path(), mounts[4].filesystem.as_str()), (Path::new(""), "fuse"));
    }

    #[test]
    fn deepest_and_latest_mount_wins() {
        let mounts = parse_mountinfo(TEXT);
        assert_eq!(mount_of(&mounts, Path::new("/home/x")).unwrap().filesystem, "ext4");
        assert_eq!(mount_of(&mounts, Path::new("/dev/shm/x")).unwrap().source, Path::new("second"));
        assert_eq!(mount_of(&mounts, Path::new("/dev/shmx")).unwrap().filesystem, "ext4");
        assert!(mount_of(&[], Path::new("/x")).is_none());
    }

    #[test]
    fn swaps_known_answers() {
        let text = "Filename\t\t\tType\t\tSize\n/dev/sda2 partition 1 0 -2\n/swap\\040file file 5 0 -3\n";
        assert_eq!(parse_swaps(text), [PathBuf::from("/dev/sda2"), PathBuf::from("/swap file")]);
        assert!(parse_swaps("").is_empty());
    }

    #[test]
    fn own_mounts_have_a_root() {
        let mounts = mounts();
        assert!(mount_of(&mounts, Path::new("/")).is_some());
    }

    fn escape(path: &str) -> String {
        path.bytes()
            .map(|byte| match byte {
                b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{byte:03o}"),
                _ => (byte as char).to_string(),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,200}", lines in proptest::collection::vec("[0-9: /\\\\a-z,-]{0,60}", 0..6)) {
            let _ = parse_mountinfo(&text);
            let _ = parse_mountinfo(&lines.join("\n"));
            let _ = parse_swaps(&text);
        }

        #[test]
        fn escapes_round_trip(point in "/[ -~\t]{0,30}", major in 0u32..4096, minor in 0u32..1_000_000) {
            let line = format!("1 2 {major}:{minor} / {} rw shared:1 - ext4 {} rw", escape(&point), escape(&point));
            let mounts = parse_mountinfo(&line);
            prop_assert_eq!(mounts.len(), 1);
            prop_assert_eq!(&mounts[0].mount_point, Path::new(&point));
            prop_assert_eq!(&mounts[0].source, Path::new(&point));
            prop_assert_eq!(mounts[0].device, DeviceNumber { major, minor });
        }
    }
}
