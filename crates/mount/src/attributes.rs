//! Attributes in the words of FUSE.

use std::time::{Duration, SystemTime};

use dfs::{Attributes, FileKind, SetTime, Timestamp};
use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};

/// Unit of `st_blocks`, in bytes.
const BLOCK_BYTES: u64 = 512;

/// Kind of a file.
pub(crate) fn kind(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
        FileKind::CharacterDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
    }
}

/// Kind of a node by the type bits of its mode; none for those that are made by calls of their own.
pub(crate) fn node_kind(mode: u32) -> Option<FileKind> {
    match mode & libc::S_IFMT {
        // mknod(2): no type means a regular file.
        0 | libc::S_IFREG => Some(FileKind::File),
        libc::S_IFIFO => Some(FileKind::Fifo),
        libc::S_IFSOCK => Some(FileKind::Socket),
        libc::S_IFCHR => Some(FileKind::CharacterDevice),
        libc::S_IFBLK => Some(FileKind::BlockDevice),
        _ => None,
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = if time.seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    let part = Duration::from_nanos(time.nanoseconds.into());
    whole.and_then(|whole| whole.checked_add(part)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The time that a request sets.
pub(crate) fn set_time(time: TimeOrNow) -> SetTime {
    let TimeOrNow::SpecificTime(time) = time else { return SetTime::Now };
    SetTime::To(match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
        Err(before) => {
            let before = before.duration();
            let borrow = i64::from(before.subsec_nanos() > 0);
            let nanoseconds = (1_000_000_000 * borrow as u32) - before.subsec_nanos();
            Timestamp { seconds: -(before.as_secs() as i64) - borrow, nanoseconds }
        }
    })
}

/// Attributes as the kernel takes them.
pub(crate) fn file_attr(from: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(from.inode.0),
        size: from.size_bytes,
        blocks: from.stored_bytes.div_ceil(BLOCK_BYTES),
        atime: system_time(from.accessed),
        mtime: system_time(from.modified),
        ctime: system_time(from.changed),
        crtime: SystemTime::UNIX_EPOCH,
        kind: kind(from.kind),
        perm: from.permissions,
        nlink: from.links,
        uid: from.owner.user,
        gid: from.owner.group,
        rdev: from.device,
        blksize: from.block_size_bytes,
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_come_back() {
        for (seconds, nanoseconds) in [(0, 0), (5, 7), (-1, 0), (-1, 999_999_999), (-77, 1)] {
            let time = Timestamp { seconds, nanoseconds };
            assert_eq!(set_time(TimeOrNow::SpecificTime(system_time(time))), SetTime::To(time));
        }
        assert_eq!(set_time(TimeOrNow::Now), SetTime::Now);
    }
}
