//! Whether a file holds anything: what `dd if=/dev/zero`, `truncate` and `fallocate` leave is nobody's data.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Most that is read of one file, in bytes: holes and space that was never written are told by the file system and not read.
pub(super) const READ_BYTES_MAX: u64 = 4 << 30;
/// Read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Result of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zeros {
    /// Nothing but zeros.
    Only,
    /// Something else.
    Data,
    /// Zeros in the first [`READ_BYTES_MAX`] bytes of what is stored; the rest was not read.
    SoFar,
}

/// Reads the stored parts of the file until something is not zero.
pub(super) fn look(path: &Path) -> io::Result<Zeros> {
    look_within(&File::open(path)?, READ_BYTES_MAX)
}

fn look_within(file: &File, most_bytes: u64) -> io::Result<Zeros> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut left = most_bytes;
    let mut at = 0;
    while let Some(data) = next(file, SeekFrom::Data(at))? {
        let end = next(file, SeekFrom::Hole(data))?.unwrap_or(u64::MAX);
        at = data;
        while at < end {
            if left == 0 {
                return Ok(Zeros::SoFar);
            }
            let wanted = (end - at).min(left).min(CHUNK_BYTES as u64) as usize;
            let read = file.read_at(&mut buffer[..wanted], at)?;
            if read == 0 {
                return Ok(Zeros::Only);
            }
            if buffer[..read].iter().any(|&byte| byte != 0) {
                return Ok(Zeros::Data);
            }
            at += read as u64;
            left -= read as u64;
        }
    }
    Ok(Zeros::Only)
}

/// Where it is found; none behind the last data.
fn next(file: &File, from: SeekFrom) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, from) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &File) -> Zeros {
        look_within(file, 3 << 20).unwrap()
    }

    #[test]
    fn zeros_are_nothing_wherever_they_come_from() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(found(&file), Zeros::Only, "empty");
        file.set_len(1 << 40).unwrap();
        assert_eq!(found(&file), Zeros::Only, "all of it a hole");
        file.write_all_at(&vec![0; 2 << 20], 5 << 20).unwrap();
        assert_eq!(found(&file), Zeros::Only, "written zeros in a hole");
        file.write_all_at(&[1], (1 << 40) - 1).unwrap();
        assert_eq!(found(&file), Zeros::Data, "the last byte");
        file.set_len(8 << 20).unwrap();
        file.write_all_at(&vec![0; 8 << 20], 0).unwrap();
        assert_eq!(found(&file), Zeros::SoFar, "more than is read");
        file.write_all_at(&[9], 3000).unwrap();
        assert_eq!(found(&file), Zeros::Data);
    }
}
