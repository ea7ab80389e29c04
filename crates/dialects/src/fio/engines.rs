//! The engines of fio: those that are spoken, and why the others are not.

const OF_FILES: &str = "creating and removing files count as writes; fio counts them in the direction of rw";

/// Engines, the engine here that carries them out, and what of them is different.
pub(crate) const ENGINES: &[(&str, &str, Option<&str>)] = &[
    ("psync", "psync", None),
    ("sync", "psync", Some("each operation is one pread or pwrite instead of lseek and read")),
    ("vsync", "psync", Some("each block is one pread or pwrite; adjacent blocks are not merged")),
    ("pvsync", "psync", Some("a preadv of one block is the same as a pread")),
    ("pvsync2", "pvsync2", None),
    ("libaio", "libaio", None),
    ("io_uring", "io_uring", None),
    ("mmap", "mmap", None),
    ("null", "null", None),
    (
        "posixaio",
        "io_uring",
        Some("the C library's thread per file does one operation at a time; io_uring does them concurrently"),
    ),
    ("cpuio", "cpu", None),
    ("exec", "exec", None),
    ("filecreate", "filecreate", Some(OF_FILES)),
    ("dircreate", "dircreate", Some(OF_FILES)),
    ("dirstat", "dirstat", None),
    ("dirdelete", "dirdelete", Some(OF_FILES)),
    ("falloc", "falloc", None),
    ("ftruncate", "ftruncate", None),
    ("filestat", "filestat", None),
    ("filedelete", "filedelete", Some(OF_FILES)),
    ("http", "s3", None),
    ("rados", "rados", None),
    ("rbd", "rbd", None),
    ("libcufile", "cufile", None),
    ("dfs", "dfs", None),
];

/// Layer whose driver an engine is.
pub(crate) fn layer_of(ours: &str) -> &'static str {
    match ours {
        "s3" | "rados" => "object",
        "dfs" => "filesystem",
        _ => "media",
    }
}

/// Engines that are not spoken, and the nearest that is.
pub(crate) const OTHER_ENGINES: &[(&str, &str)] = &[
    (
        "io_uring_cmd",
        "strata sends no NVMe commands through a character device; alternative: io_uring on the block device",
    ),
    ("sg", "strata sends no SCSI commands; alternative: psync or libaio on the block device"),
    ("splice", "strata does not use splice(2); alternative: psync"),
    ("libpmem", "strata does not use the PMDK library; alternative: mmap on a file of the same file system"),
    (
        "pmemblk",
        "PMDK removed its library, and fio then removed the engine; alternative: mmap on a file of the same file system",
    ),
    ("dev-dax", "strata does not map device-dax nodes; alternative: mmap on a file of a DAX file system"),
    ("cpp_null", "it is only an example of an external engine; alternative: ioengine=null"),
    ("libzbc", "strata sends no SCSI commands to zoned devices; alternative: psync on the block device"),
    ("libzbd", "strata does not use libzbd; alternative: psync with zonemode=zbd on the block device"),
    ("windowsaio", "it exists only on another operating system; alternative: libaio or io_uring"),
    ("solarisaio", "it exists only on another operating system; alternative: libaio or io_uring"),
    (
        "net",
        "strata measures networks with RPCs, not with byte streams; alternative: strata engine on one host and strata net on the other",
    ),
    (
        "netsplice",
        "strata measures networks with its own commands; alternative: strata net between two hosts",
    ),
    ("rdma", "strata measures networks with its own commands; alternative: strata net with libfabric"),
    (
        "librpma_apm_server",
        "strata measures networks with its own commands; alternative: strata net with libfabric",
    ),
    (
        "librpma_apm_client",
        "strata measures networks with its own commands; alternative: strata net with libfabric",
    ),
    (
        "librpma_gpspm_server",
        "strata measures networks with its own commands; alternative: strata net with libfabric",
    ),
    (
        "librpma_gpspm_client",
        "strata measures networks with its own commands; alternative: strata net with libfabric",
    ),
    (
        "gfapi",
        "strata does not use the GlusterFS library; alternative: psync or io_uring on the mounted volume",
    ),
    ("gfapi_async", "strata does not use the GlusterFS library; alternative: io_uring on the mounted volume"),
    ("libhdfs", "strata does not use the HDFS library; alternative: psync on the volume mounted with FUSE"),
    (
        "libiscsi",
        "strata has no iSCSI client; alternative: iscsiadm, then libaio or io_uring on the block device",
    ),
    ("libnfs", "strata has no NFS client; alternative: mount, then psync or io_uring on its files"),
    ("nfs", "strata has no NFS client; alternative: mount, then psync or io_uring on its files"),
    ("nbd", "strata has no NBD client; alternative: nbd-client, then libaio or io_uring on /dev/nbd0"),
    ("libblkio", "strata does not use the library libblkio; alternative: io_uring on the block device"),
    ("mtd", "raw flash has no block device; alternative: psync on a file of UBIFS"),
    ("e4defrag", "strata does not defragment ext4 files; alternative: falloc"),
    ("ime_psync", "strata does not use the IME library; alternative: psync on the mounted file system"),
    ("ime_aio", "strata does not use the IME library; alternative: libaio on the mounted file system"),
    ("ime_psyncv", "strata does not use the IME library; alternative: psync on the mounted file system"),
    ("xnvme", "strata does not use the library xNVMe; alternative: io_uring on the block device"),
    ("guasi", "fio removed this engine; alternative: io_uring"),
];
