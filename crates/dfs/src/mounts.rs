//! Mounts of file systems over objects, as the kernel lists them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Type of such a mount in `/proc/self/mounts`.
pub const MOUNT_TYPE: &str = "fuse.strata";
/// Subtype of it, which mount options name.
pub const MOUNT_SUBTYPE: &str = "strata";

/// A mount in the mount namespace of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Source: of a mount of strata the URL of its file system.
    pub source: OsString,
    /// Directory that it covers.
    pub directory: PathBuf,
    /// Type.
    pub kind: OsString,
    /// Whether nothing can be changed through it.
    pub read_only: bool,
}

impl Mount {
    /// Whether it is one of strata.
    #[must_use]
    pub fn is_strata(&self) -> bool {
        self.kind == MOUNT_TYPE
    }
}

/// All mounts of this process's namespace, in the order of mounting.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn mounts() -> io::Result<Vec<Mount>> {
    std::fs::read("/proc/self/mounts").map(|text| parse(&text))
}

/// Number of the device of what is mounted on a directory last, as `MAJOR:MINOR`. The file system is not asked, so it need not answer yet.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn device_of(directory: &Path) -> io::Result<Option<String>> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse_device(&text, directory))
}

/// Words of a line: number of the mount, of its parent, the device, the directory in it, and the directory that it covers.
fn parse_device(text: &[u8], directory: &Path) -> Option<String> {
    text.split(|byte| *byte == b'\n').rev().find_map(|line| {
        let mut words = line.split(|byte| *byte == b' ').skip(2);
        let device = words.next()?;
        let covers = unescaped(words.nth(1)?);
        (Path::new(&covers) == directory).then(|| String::from_utf8_lossy(device).into_owned())
    })
}

fn parse(text: &[u8]) -> Vec<Mount> {
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            let mut words = line.split(|byte| *byte == b' ').map(unescaped);
            let (source, directory, kind) = (words.next()?, words.next()?, words.next()?);
            let options = words.next().unwrap_or_default();
            let read_only =
                options.as_encoded_bytes().split(|byte| *byte == b',').any(|option| option == b"ro");
            Some(Mount { source, directory: directory.into(), kind, read_only })
        })
        .collect()
}

/// Undoes the octal escapes of blanks, line ends and backslashes.
fn unescaped(word: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, behind)) = rest.split_first() {
        let digits =
            behind.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match (first, digits) {
            (b'\\', Some(digits)) => {
                let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                bytes.push(value as u8);
                rest = &behind[3..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_escapes_are_read() {
        let text = b"proc /proc proc rw 0 0\ndfs+vos:/a\\040b /mnt/x\\134y fuse.strata rw,nosuid 0 0\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert!(!found[0].is_strata() && found[1].is_strata());
        assert_eq!(
            (found[1].source.to_str(), found[1].directory.to_str()),
            (Some("dfs+vos:/a b"), Some("/mnt/x\\y"))
        );
    }

    #[test]
    fn the_device_is_that_of_the_last_mount_on_a_directory() {
        let text = b"22 1 0:21 / /proc rw - proc proc rw\n40 1 0:40 / /mnt/a\\040b rw - ext4 /dev/x rw\n\
            41 40 0:41 / /mnt/a\\040b rw,nosuid - fuse.strata dfs+vos:/p rw\n";
        assert_eq!(parse_device(text, Path::new("/mnt/a b")).as_deref(), Some("0:41"));
        assert_eq!(parse_device(text, Path::new("/proc")).as_deref(), Some("0:21"));
        assert_eq!(parse_device(text, Path::new("/mnt")), None);
        assert_eq!(parse_device(b"22\n\n", Path::new("/mnt")), None);
    }
}
