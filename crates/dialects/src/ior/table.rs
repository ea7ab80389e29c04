//! Every option of IOR, and what becomes of it. Long names are those of the directives of `-O` and of scripts.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "ior";
/// The version whose text the output has.
pub(crate) const VERSION: &str = "4.1.0";

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: true, single_dash: false };

const ONE_FILE_SYSTEM: &str = "mount the file system and use -a POSIX";

/// Back ends that are refused, with the reason and the nearest.
pub(crate) const APIS_REFUSED: &[(&str, &str, &str)] = &[
    ("MPIIO", "strata has no MPI", "-a POSIX: on one host independent MPI-IO is POSIX"),
    ("HDF5", "strata writes no HDF5 files", "-a POSIX with the same -b, -t and -s"),
    ("NCMPI", "strata writes no netCDF files", "-a POSIX with the same -b, -t and -s"),
    ("MMAP", "the files of this load are not mapped", "strata media --engine mmap, or -a POSIX"),
    (
        "AIO",
        "this load has one transfer of a task in flight",
        "strata media --engine libaio, or -a POSIX with a larger -N",
    ),
    ("DFS", "this load knows no containers of DAOS by itself", "mount it with dfuse and use -a POSIX"),
    ("CEPHFS", "the client library of CephFS is not used", ONE_FILE_SYSTEM),
    ("LIBNFS", "the client library of NFS is not used", ONE_FILE_SYSTEM),
    ("HDFS", "the client of HDFS is not used", ONE_FILE_SYSTEM),
    ("GFARM", "the client of Gfarm is not used", ONE_FILE_SYSTEM),
    ("BEEGFS", "BeeGFS's own calls are not used", ONE_FILE_SYSTEM),
    ("FINCHFS", "the client of FINCHFS is not used", ONE_FILE_SYSTEM),
    ("CHFS", "the client of CHFS is not used", ONE_FILE_SYSTEM),
    ("IME", "the client of IME is not used", ONE_FILE_SYSTEM),
    ("PMDK", "libpmem is not used", "a file system with DAX and -a POSIX"),
    ("RADOS", "objects are another layer", "strata object rados://POOL"),
    ("S3", "objects are another layer", "strata object s3://BUCKET, or strata as elbencho"),
];

static FLAGS: &[Flag] = &[
    Flag::honoured("api", "API", "POSIX; DUMMY does nothing and shows strata's own cost; MPIIO, HDF5, NCMPI, MMAP, AIO, DFS and the rest are refused, each with the nearest").short('a'),
    Flag::honoured("refNum", "N", "a number of the user's own in the summary").short('A'),
    Flag::honoured("blockSize", "SIZE", "bytes of a task in a segment; default 1m").short('b'),
    Flag::refused("collective", "", "POSIX has no collective calls", "leave it out").short('c'),
    Flag::honoured("reorderTasks", "", "a task reads what the one -Q further on wrote").short('C'),
    Flag::honoured("interTestDelay", "SECONDS", "wait before each write and each read").short('d'),
    Flag::honoured("deadlineForStonewalling", "SECONDS", "no transfer begins after this long").short('D'),
    Flag::honoured("fsync", "", "fsync(2) of each file when all of it is written, in the time of the phase").short('e'),
    Flag::honoured("useExistingTestFile", "", "a file that is there is written over as it is; without it, it is removed before the write").short('E'),
    Flag::honoured("script", "FILE", "tests of a script: IOR START, directives, RUN, IOR STOP").short('f'),
    Flag::honoured("filePerProc", "", "a file for each task, FILE.00000000").short('F'),
    Flag::honoured("intraTestBarriers", "", "no task moves data before all have opened, none closes before all have moved theirs").short('g'),
    Flag::honoured("setTimeStampSignature", "N", "number of the data: blocks that are written carry it, and those that are checked must").short('G'),
    Flag::honoured("repetitions", "N", "repetitions; default 1").short('i'),
    Flag::honoured("outlierThreshold", "SECONDS", "warns of tasks that took so much longer or shorter than the mean").short('j'),
    Flag::honoured("keepFile", "", "files stay").short('k'),
    Flag::honoured("keepFileWithError", "", "files stay where data were wrong or a call failed").short('K'),
    Flag::accepted("dataPacketType", "TYPE", "all content is random, differs from block to block, and says whose it is and where").short('l'),
    Flag::honoured("multiFile", "", "each repetition has a file of its own, FILE.0").short('m'),
    Flag::refused("memoryPerNode", "SIZE", "strata takes no memory away from the page cache", "--posix.odirect, or a larger -b").short('M'),
    Flag::honoured("numTasks", "N", "tasks: threads of this process; default 1").short('N'),
    Flag::honoured("testFile", "FILE", "the file; a@b deals the files of -F out; default testFile").short('o'),
    Flag::honoured("directives", "NAME=VALUE", "directives, parted by commas; may be repeated; names are the long ones of this table").short('O'),
    Flag::honoured("taskPerNodeOffset", "N", "distance of -C; default 1").short('Q'),
    Flag::honoured("readFile", "", "reads; without -w, -r, -W and -R both are done").short('r'),
    Flag::honoured("checkRead", "", "checks each block that is read; wrong ones are failures: in no rate, counted, exit code 1").short('R'),
    Flag::honoured("segmentCount", "N", "segments; default 1").short('s'),
    Flag::honoured("transferSize", "SIZE", "bytes of one read or write; default 256k").short('t'),
    Flag::refused("maxTimeDuration", "MINUTES", "phases are planned before they run", "-D SECONDS ends each, -i N says how many there are").short('T'),
    Flag::honoured("uniqueDir", "", "with -F: each file in a directory of its own, DIR/0/FILE.00000000").short('u'),
    Flag::honoured("verbose", "", "shows more; repeatable").short('v'),
    Flag::honoured("writeFile", "", "writes").short('w'),
    Flag::honoured("checkWrite", "", "reads back what was written and checks it, in no rate").short('W'),
    Flag::accepted("singleXferAttempt", "", "a transfer that comes back short is a failure, with it and without").short('x'),
    Flag::honoured("reorderTasksRandomSeed", "N", "seed of -Z; below 0: another one each repetition").short('X'),
    Flag::refused("dualMount", "", "a path by processor is not made", "-o a@b deals the files of -F out").short('y'),
    Flag::honoured("fsyncPerWrite", "", "fsync(2) after each write").short('Y'),
    Flag::honoured("randomOffset", "", "transfers of a task in random order, each once; twice: random with repeats, in the whole of a file that is there").short('z'),
    Flag::honoured("reorderTasksRandom", "", "tasks read what those of a random order wrote, each once; the same with -ZZ").short('Z'),
    Flag::honoured("random-offset-seed", "N", "seed of -z"),
    Flag::refused("randomPrefill", "SIZE", "a write in random order begins with an empty file", "write it in sequence first (-w -k), then with -E -z"),
    Flag::accepted("warningAsErrors", "", "what would be wrong is refused, and what fails is exit code 1"),
    Flag::honoured("dryRun", "", "shows the options and touches nothing"),
    Flag::honoured("posix.odirect", "", "past the page cache"),
    Flag::refused("posix.rangelocks", "", "byte ranges are not locked", "strata fs --op lock measures locks"),
    Flag::honoured("stoneWallingWearOut", "0|1", "-O: after the deadline each task goes on until it has done as many transfers as the fastest had"),
    Flag::honoured("stoneWallingWearOutIterations", "N", "-O: each task ends after N transfers"),
    Flag::honoured("stoneWallingStatusFile", "FILE", "-O: a write notes here how many transfers each task did, a run that only reads reads as many"),
    Flag::refused("minTimeDuration", "SECONDS", "a file is not gone over again", "a larger -s with -D SECONDS, or -z -z"),
    Flag::honoured("interIODelay", "MICROSECONDS", "-O: wait after each transfer"),
    Flag::honoured("summaryFile", "FILE", "-O: the output goes into this file"),
    Flag::honoured("summaryFormat", "default|JSON|CSV", "-O: form of the output"),
    Flag::honoured("summaryAlways", "0|1", "-O: the summary of each test stands behind it, too"),
    Flag::honoured("saveRankPerformanceDetailsCSV", "FILE", "-O: times and bandwidth of each task"),
    Flag::refused("savePerOpDataCSV", "PREFIX", "operations are not written one by one", "strata as --json FILE ior ... has the histograms of each task"),
    Flag::honoured("allocateBufferOnGPU", "0|3", "-O: 3: buffers are memory of a GPU, copies count in the time; managed memory (1, 2) is refused"),
    Flag::honoured("GPUid", "N", "-O: the GPU; default -1: tasks take all in turn"),
    Flag::honoured("GPUDirect", "0|1", "-O: buffers are memory of a GPU, by cuFile (GPUDirect Storage); strata tells whether it was direct"),
    Flag::refused("memoryPerTask", "SIZE", "strata takes no memory away from the page cache", "--posix.odirect, or a larger -b"),
    Flag::accepted("platform", "TEXT", "the record names the machine"),
    Flag::accepted("numNodes", "N", "the tasks are on this machine"),
    Flag::accepted("numTasksOnNode0", "N", "the tasks are on this machine"),
    Flag::honoured("help", "", "shows this").short('h'),
];
