//! Mounts of file systems over objects, as the kernel lists them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

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
}
