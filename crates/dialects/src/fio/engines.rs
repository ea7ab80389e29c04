//! The engines of fio: those that are spoken, and why the others are not.

const OF_FILES: &str = "making and removing count as writes, which they are to the owner of the files; fio counts them as rw says";

/// Engines, the engine here that carries them out, and what of them is different.
pub(crate) const ENGINES: &[(&str, &str, Option<&str>)] = &[
    ("psync", "psync", None),
    ("sync", "psync", Some("lseek and read are one pread here: one system call an operation, not two")),
    ("vsync", "psync", Some("each block is one pread or pwrite: neighbours are not put together")),
    ("pvsync", "psync", Some("preadv of one block is pread")),
    ("pvsync2", "pvsync2", None),
    ("libaio", "libaio", None),
    ("io_uring", "io_uring", None),
    ("mmap", "mmap", None),
    ("null", "null", None),
    (
        "posixaio",
        "io_uring",
        Some(
            "the C library has a thread for each file, which works off one operation after the other; io_uring does them at the same time",
        ),
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
        "it sends commands of NVMe through a character device; nearest: io_uring on the block device",
    ),
    ("sg", "it sends SCSI commands; nearest: psync or libaio on the block device"),
    ("splice", "it measures splice(2); nearest: psync"),
    ("libpmem", "it needs the library of PMDK; nearest: mmap on a file of the same file system"),
    (
        "pmemblk",
        "PMDK has withdrawn its library, and fio with it; nearest: mmap on a file of the same file system",
    ),
    ("dev-dax", "it maps a device-dax node; nearest: mmap on a file of a DAX file system"),
    ("cpp_null", "it is an example of an external engine; nearest: ioengine=null"),
    ("libzbc", "it drives zoned devices by SCSI commands; nearest: psync on the block device"),
    ("libzbd", "it drives zoned devices; nearest: psync on the block device"),
    ("windowsaio", "it is of another system; nearest: libaio or io_uring"),
    ("solarisaio", "it is of another system; nearest: libaio or io_uring"),
    (
        "net",
        "a stream of bytes without replies between two jobs is no load of the network layer, whose operations are RPCs; nearest: strata engine on one host and strata net on the other",
    ),
    ("netsplice", "it measures a network; nearest: strata net between two hosts"),
    ("rdma", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_apm_server", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_apm_client", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_gpspm_server", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_gpspm_client", "it measures a network; nearest: strata net with libfabric"),
    ("gfapi", "it needs the library of GlusterFS; nearest: psync or io_uring on the mounted volume"),
    ("gfapi_async", "it needs the library of GlusterFS; nearest: io_uring on the mounted volume"),
    ("libhdfs", "it needs the library of HDFS; nearest: psync on the volume mounted by FUSE"),
    ("libiscsi", "it speaks iSCSI itself; nearest: iscsiadm, and libaio or io_uring on the block device"),
    ("libnfs", "it speaks NFS itself; nearest: mount, and psync or io_uring on its files"),
    ("nfs", "it speaks NFS itself; nearest: mount, and psync or io_uring on its files"),
    ("nbd", "it speaks NBD itself; nearest: nbd-client, and libaio or io_uring on /dev/nbd0"),
    ("libblkio", "it needs the library libblkio; nearest: io_uring on the block device"),
    ("mtd", "raw flash has no block device; nearest: psync on a file of UBIFS"),
    ("e4defrag", "it moves extents of ext4; nearest: falloc"),
    ("ime_psync", "it needs the library of IME; nearest: psync on the mounted file system"),
    ("ime_aio", "it needs the library of IME; nearest: libaio on the mounted file system"),
    ("ime_psyncv", "it needs the library of IME; nearest: psync on the mounted file system"),
    ("xnvme", "it needs the library xNVMe; nearest: io_uring on the block device"),
    ("guasi", "it is withdrawn; nearest: io_uring"),
];
