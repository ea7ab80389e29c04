//! Partition tables, file systems and other formats that can be told by their signatures. Places and values
//! are those of libblkid (util-linux), which every mount and installer trusts.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;

/// Signatures counted from the start lie within these bytes.
const HEAD_BYTES: u64 = (1 << 20) + 4096;
/// Signatures counted from the end lie within these bytes.
const TAIL_BYTES: u64 = 1 << 18;
/// Offset of the two bytes 0x55 0xAA and of the four entries before them in a DOS partition table.
const MBR_MARK: usize = 510;
const MBR_ENTRIES: usize = 446;

/// Contents found on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A partition table of this kind.
    PartitionTable(&'static str),
    /// A file system of this kind.
    Filesystem(&'static str),
    /// Something else that is not empty: RAID or volume member, encrypted device, swap, ...
    Other(&'static str),
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PartitionTable(kind) => write!(f, "has a partition table ({kind})"),
            Self::Filesystem(kind) => write!(f, "has a file system ({kind})"),
            Self::Other(kind) => write!(f, "contains {kind}"),
        }
    }
}

use Contents::{Filesystem, Other, PartitionTable};

/// Signatures by their offset from the start: contents, offset, bytes.
const FROM_START: &[(Contents, usize, &[u8])] = &[
    (Other("LUKS encryption"), 0, b"LUKS\xba\xbe"),
    (Other("LUKS encryption"), 0x4000, b"SKUL\xba\xbe"),
    (Other("BitLocker encryption"), 3, b"-FVE-FS-"),
    (Other("an LVM physical volume"), 0, b"LABELONE"),
    (Other("an LVM physical volume"), 512, b"LABELONE"),
    (Other("an LVM physical volume"), 1024, b"LABELONE"),
    (Other("an LVM physical volume"), 1536, b"LABELONE"),
    (Other("a RAID member (md 1.1)"), 0, b"\xfc\x4e\x2b\xa9"),
    (Other("a RAID member (md 1.2)"), 4096, b"\xfc\x4e\x2b\xa9"),
    (Other("bcache"), 0x1018, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    (Filesystem("bcachefs"), 0x1018, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    (Other("a Ceph BlueStore"), 0, b"bluestore block device"),
    (Other("an SPDK blobstore"), 0, b"SPDKBLOB"),
    (Other("a VDO volume"), 0, b"dmvdo001"),
    (Other("a Stratis pool"), 516, b"!Stra0tis\x86\xff\x02^Arh"),
    (Other("an Oracle ASM disk"), 32, b"ORCLDISK"),
    (Other("swap"), 4086, b"SWAPSPACE2"),
    (Other("swap"), 4086, b"SWAP-SPACE"),
    (Other("swap"), 8182, b"SWAPSPACE2"),
    (Other("swap"), 16_374, b"SWAPSPACE2"),
    (Other("swap"), 32_758, b"SWAPSPACE2"),
    (Other("swap"), 65_526, b"SWAPSPACE2"),
    (Other("a suspended system"), 4086, b"S1SUSPEND"),
    (Other("a suspended system"), 4086, b"S2SUSPEND"),
    (Filesystem("ext2, ext3 or ext4"), 0x438, b"\x53\xef"),
    (Filesystem("xfs"), 0, b"XFSB"),
    (Filesystem("btrfs"), 0x1_0040, b"_BHRfS_M"),
    (Filesystem("f2fs"), 0x400, b"\x10\x20\xf5\xf2"),
    (Filesystem("vfat"), 0x52, b"FAT32   "),
    (Filesystem("vfat"), 0x36, b"FAT16   "),
    (Filesystem("vfat"), 0x36, b"FAT12   "),
    (Filesystem("vfat"), 0x36, b"FAT     "),
    (Filesystem("exfat"), 3, b"EXFAT   "),
    (Filesystem("ntfs"), 3, b"NTFS    "),
    (Filesystem("ReFS"), 0, b"\0\0\0ReFS\0"),
    (Filesystem("iso9660"), 0x8001, b"CD001"),
    (Filesystem("udf"), 0x8001, b"BEA01"),
    (Filesystem("squashfs"), 0, b"hsqs"),
    (Filesystem("squashfs"), 0, b"sqsh"),
    (Filesystem("erofs"), 0x400, b"\xe2\xe1\xf5\xe0"),
    (Filesystem("cramfs"), 0, b"\x45\x3d\xcd\x28"),
    (Filesystem("romfs"), 0, b"-rom1fs-"),
    (Filesystem("jfs"), 0x8000, b"JFS1"),
    (Filesystem("reiserfs"), 0x1_0034, b"ReIsEr"),
    (Filesystem("reiserfs"), 0x2034, b"ReIsEr"),
    (Filesystem("reiser4"), 0x1_0000, b"ReIsEr4"),
    (Filesystem("gfs2"), 0x1_0000, b"\x01\x16\x19\x70"),
    (Filesystem("ocfs2"), 0x400, b"OCFSV2"),
    (Filesystem("ocfs2"), 0x800, b"OCFSV2"),
    (Filesystem("ocfs2"), 0x1000, b"OCFSV2"),
    (Filesystem("ocfs2"), 0x2000, b"OCFSV2"),
    (Filesystem("nilfs2"), 0x406, b"\x34\x34"),
    (Filesystem("apfs"), 0x20, b"NXSB"),
    (Filesystem("hfsplus"), 0x400, b"H+\0"),
    (Filesystem("hfsplus"), 0x400, b"HX\0"),
    (Filesystem("hfs"), 0x400, b"BD"),
    (Filesystem("ufs"), 0x255c, b"\x54\x19\x01\x00"),
    (Filesystem("ufs"), 0x1_055c, b"\x19\x01\x54\x19"),
    (Filesystem("minix"), 0x410, b"\x7f\x13"),
    (Filesystem("minix"), 0x410, b"\x8f\x13"),
    (Filesystem("minix"), 0x410, b"\x68\x24"),
    (Filesystem("minix"), 0x410, b"\x78\x24"),
    (Filesystem("vxfs"), 0x400, b"\xf5\xfc\x01\xa5"),
    (Filesystem("vmfs"), 0x10_0000, b"\x0d\xd0\x01\xc0"),
    (PartitionTable("gpt"), 512, b"EFI PART"),
    (PartitionTable("gpt"), 4096, b"EFI PART"),
    (PartitionTable("sun"), 508, b"\xda\xbe"),
    (PartitionTable("mac"), 512, b"PM\0\0"),
    (PartitionTable("bsd"), 512, b"\x57\x45\x56\x82"),
    (PartitionTable("sgi"), 0, b"\x0b\xe5\xa9\x41"),
];

/// Signatures by their distance from the end: contents, distance, bytes.
const FROM_END: &[(Contents, usize, &[u8])] = &[
    (PartitionTable("gpt"), 512, b"EFI PART"),
    (PartitionTable("gpt"), 4096, b"EFI PART"),
    (Other("a RAID member (Intel)"), 1024, b"Intel Raid ISM Cfg Sig. "),
    (Other("a RAID member (DDF)"), 512, b"\xde\x11\xde\x11"),
    (Other("a DRBD device"), 4096 - 60, b"\x83\x74\x02\x6b"),
    (Other("a DRBD device"), 4096 - 60, b"\x83\x74\x02\x6d"),
];

/// Uberblocks of a ZFS label: one a KiB, over the second 128 KiB of each label, in either byte order.
const ZFS_RING: std::ops::Range<usize> = 0x2_0000..0x4_0000;
const ZFS_MAGICS: [[u8; 8]; 2] = [0x00ba_b10c_u64.to_le_bytes(), 0x00ba_b10c_u64.to_be_bytes()];

/// Reads the start and the end of a device and says what it carries; `None` when nothing is known of it.
///
/// # Errors
/// The system's, when the device cannot be read.
pub fn recognise(device: &File) -> io::Result<Option<Contents>> {
    let size = rustix::fs::seek(device, SeekFrom::End(0))?;
    recognise_by(size, |buffer, offset| device.read_exact_at(buffer, offset))
}

/// The same of whatever `read` reads: buffer, offset in bytes.
pub(super) fn recognise_by<E>(
    size_bytes: u64,
    read: impl Fn(&mut [u8], u64) -> Result<(), E>,
) -> Result<Option<Contents>, E> {
    let mut head = vec![0; size_bytes.min(HEAD_BYTES) as usize];
    read(&mut head, 0)?;
    let mut tail = vec![0; size_bytes.min(TAIL_BYTES) as usize];
    let tail_start = size_bytes - tail.len() as u64;
    read(&mut tail, tail_start)?;
    Ok(recognise_bytes(&head, &tail, size_bytes))
}

/// `head` is the start of the device, `tail` its end, `size` its size in bytes.
fn recognise_bytes(head: &[u8], tail: &[u8], size: u64) -> Option<Contents> {
    let at_start = FROM_START
        .iter()
        .find(|(_, offset, magic)| head.get(*offset..).is_some_and(|rest| rest.starts_with(magic)));
    let from_end = |distance: usize, magic: &[u8]| {
        tail.len().checked_sub(distance).is_some_and(|offset| tail[offset..].starts_with(magic))
    };
    let at_end = || FROM_END.iter().find(|(_, distance, magic)| from_end(*distance, magic));
    at_start
        .or_else(at_end)
        .map(|(contents, ..)| *contents)
        .or_else(|| raid_at_end(tail, size))
        .or_else(|| zfs(head).or_else(|| zfs(&tail[tail.len().saturating_sub(ZFS_RING.end)..])))
        .or_else(|| dos_table(head))
}

/// md 1.0 lies at least 8 KiB before the end, on a 4 KiB boundary; md 0.90 in the last whole 64 KiB but one.
fn raid_at_end(tail: &[u8], size: u64) -> Option<Contents> {
    let found = |offset: Option<u64>| {
        let distance = size.checked_sub(offset?)?;
        let start = (tail.len() as u64).checked_sub(distance)?;
        Some(tail[start as usize..].starts_with(b"\xfc\x4e\x2b\xa9"))
    };
    let newer = (size & !511).checked_sub(8192).map(|offset| offset & !4095);
    let older = (size & !65_535).checked_sub(65_536);
    if found(newer) == Some(true) {
        return Some(Other("a RAID member (md 1.0)"));
    }
    (found(older) == Some(true)).then_some(Other("a RAID member (md 0.90)"))
}

fn zfs(label: &[u8]) -> Option<Contents> {
    let ring = label.get(ZFS_RING)?;
    let known = ring.chunks(1024).any(|block| ZFS_MAGICS.iter().any(|magic| block.starts_with(magic)));
    known.then_some(Other("a ZFS pool member"))
}

/// The mark alone is in every boot sector, so the four entries must make sense too: flags 0 or 0x80. No entry
/// in use is a table all the same.
fn dos_table(head: &[u8]) -> Option<Contents> {
    let marked = head.get(MBR_MARK..MBR_MARK + 2)? == b"\x55\xaa";
    let sane = head[MBR_ENTRIES..MBR_MARK].chunks(16).all(|entry| matches!(entry[0], 0 | 0x80));
    (marked && sane).then_some(PartitionTable("dos"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 4 << 20;

    fn with(offset: usize, magic: &[u8]) -> Option<Contents> {
        let mut device = vec![0; SIZE];
        device[offset..offset + magic.len()].copy_from_slice(magic);
        recognised(&device)
    }

    fn recognised(device: &[u8]) -> Option<Contents> {
        let head = &device[..device.len().min(HEAD_BYTES as usize)];
        let tail = &device[device.len() - device.len().min(TAIL_BYTES as usize)..];
        recognise_bytes(head, tail, device.len() as u64)
    }

    #[test]
    fn every_signature_is_in_reach() {
        assert_eq!(recognised(&[0; SIZE]), None);
        for (contents, offset, magic) in FROM_START {
            let found = with(*offset, magic).unwrap_or_else(|| panic!("{contents} at {offset}"));
            assert_eq!(
                std::mem::discriminant(&found),
                std::mem::discriminant(contents),
                "{contents}: {found}"
            );
        }
        for (contents, distance, magic) in FROM_END {
            assert_eq!(with(SIZE - distance, magic), Some(*contents));
        }
    }

    #[test]
    fn raid_zfs_and_dos() {
        assert_eq!(with(SIZE - 8192, b"\xfc\x4e\x2b\xa9"), Some(Other("a RAID member (md 1.0)")));
        assert_eq!(with(SIZE - 65_536, b"\xfc\x4e\x2b\xa9"), Some(Other("a RAID member (md 0.90)")));
        for magic in ZFS_MAGICS {
            assert_eq!(with(0x2_0000 + 5 * 1024, &magic), Some(Other("a ZFS pool member")));
            assert_eq!(with(SIZE - 0x4_0000 + 0x2_0000 + 1024, &magic), Some(Other("a ZFS pool member")));
        }
        assert_eq!(with(510, b"\x55\xaa"), Some(PartitionTable("dos")));
        let mut boot = vec![0; SIZE];
        boot[510..512].copy_from_slice(b"\x55\xaa");
        boot[446] = 0x42;
        assert_eq!(recognised(&boot), None, "a boot sector without a table");
        assert_eq!(with(0x52, b"FAT32   "), Some(Filesystem("vfat")));
    }

    #[test]
    fn short_devices_are_survived() {
        for size in [0, 1, 511, 512, 513, 4096, 8192, 65_536, 131_072, 262_143] {
            assert_eq!(recognised(&vec![0; size]), None, "{size}");
            let _ = recognised(&vec![0xff; size]);
        }
    }
}
