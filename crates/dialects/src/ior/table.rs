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
    ("MPIIO", "strata does not use MPI", "use -a POSIX: on one host independent MPI-IO is the same as POSIX"),
    ("HDF5", "strata does not write HDF5 files", "use -a POSIX with the same -b, -t and -s"),
    ("NCMPI", "strata does not write netCDF files", "use -a POSIX with the same -b, -t and -s"),
    ("MMAP", "this workload does not map files", "use strata media --engine mmap, or -a POSIX"),
    (
        "AIO",
        "this workload has only one transfer per task in flight",
        "use strata media --engine libaio, or -a POSIX with a larger -N",
    ),
    (
        "DFS",
        "this workload cannot open DAOS containers directly",
        "mount the container with dfuse and use -a POSIX",
    ),
    ("CEPHFS", "strata does not use the CephFS client library", ONE_FILE_SYSTEM),
    ("LIBNFS", "strata does not use the NFS client library", ONE_FILE_SYSTEM),
    ("HDFS", "strata does not use the HDFS client", ONE_FILE_SYSTEM),
    ("GFARM", "strata does not use the Gfarm client", ONE_FILE_SYSTEM),
    ("BEEGFS", "strata does not use BeeGFS calls", ONE_FILE_SYSTEM),
    ("FINCHFS", "strata does not use the FINCHFS client", ONE_FILE_SYSTEM),
    ("CHFS", "strata does not use the CHFS client", ONE_FILE_SYSTEM),
    ("IME", "strata does not use the IME client", ONE_FILE_SYSTEM),
    ("PMDK", "strata does not use libpmem", "use a file system with DAX and -a POSIX"),
    ("RADOS", "this workload does not measure objects", "use strata object rados://POOL"),
    ("S3", "this workload does not measure objects", "use strata object s3://BUCKET, or strata as elbencho"),
];

static FLAGS: &[Flag] = &[
    Flag::honoured("api", "API", "POSIX; DUMMY does no I/O and shows strata's overhead; MPIIO, HDF5, NCMPI, MMAP, AIO, DFS and all others are rejected with the closest alternative").short('a'),
    Flag::honoured("refNum", "N", "a user-defined number shown in the summary").short('A'),
    Flag::honoured("blockSize", "SIZE", "bytes per task in a segment; default 1m").short('b'),
    Flag::refused("collective", "", "POSIX has no collective calls", "leave it out").short('c'),
    Flag::honoured("reorderTasks", "", "each task reads the data that the task -Q further on wrote").short('C'),
    Flag::honoured("interTestDelay", "SECONDS", "wait before each write and read phase").short('d'),
    Flag::honoured("deadlineForStonewalling", "SECONDS", "no transfer starts after this time").short('D'),
    Flag::honoured("fsync", "", "fsync(2) of each file after all of its writes, within the time of the phase").short('e'),
    Flag::honoured("useExistingTestFile", "", "overwrites an existing file in place; default: it is removed before the write").short('E'),
    Flag::honoured("script", "FILE", "tests of a script: IOR START, directives, RUN, IOR STOP").short('f'),
    Flag::honoured("filePerProc", "", "one file per task, FILE.00000000").short('F'),
    Flag::honoured("intraTestBarriers", "", "all tasks wait for each other after open and before close").short('g'),
    Flag::honoured("setTimeStampSignature", "N", "data signature: written blocks contain it, and checked blocks must contain it").short('G'),
    Flag::honoured("repetitions", "N", "number of repetitions; default 1").short('i'),
    Flag::honoured("outlierThreshold", "SECONDS", "warns about tasks whose time differs from the mean by more than this").short('j'),
    Flag::honoured("keepFile", "", "keeps the files").short('k'),
    Flag::honoured("keepFileWithError", "", "keeps the files if data was wrong or a call failed").short('K'),
    Flag::accepted("dataPacketType", "TYPE", "all content is random, differs between blocks and contains its owner and position").short('l'),
    Flag::honoured("multiFile", "", "each repetition uses a separate file, FILE.0").short('m'),
    Flag::refused("memoryPerNode", "SIZE", "strata does not allocate memory to shrink the page cache", "use --posix.odirect, or a larger -b").short('M'),
    Flag::honoured("numTasks", "N", "number of tasks, which are threads of this process; default 1").short('N'),
    Flag::honoured("testFile", "FILE", "the file; with a@b the files of -F are distributed to both; default testFile").short('o'),
    Flag::honoured("directives", "NAME=VALUE", "directives, separated by commas; repeatable; their names are the long names in this table").short('O'),
    Flag::honoured("taskPerNodeOffset", "N", "task distance of -C; default 1").short('Q'),
    Flag::honoured("readFile", "", "reads; without -w, -r, -W and -R the run writes and reads").short('r'),
    Flag::honoured("checkRead", "", "checks each block read; wrong blocks are failures: counted, excluded from all rates, exit code 1").short('R'),
    Flag::honoured("segmentCount", "N", "number of segments; default 1").short('s'),
    Flag::honoured("transferSize", "SIZE", "bytes of one read or write; default 256k").short('t'),
    Flag::refused("maxTimeDuration", "MINUTES", "all phases are planned before the run starts", "limit each phase with -D SECONDS and set their number with -i N").short('T'),
    Flag::honoured("uniqueDir", "", "with -F: each file is in a separate directory, DIR/0/FILE.00000000").short('u'),
    Flag::honoured("verbose", "", "shows more; repeatable").short('v'),
    Flag::honoured("writeFile", "", "writes").short('w'),
    Flag::honoured("checkWrite", "", "reads the written data back and checks it; excluded from all rates").short('W'),
    Flag::accepted("singleXferAttempt", "", "a short transfer is always a failure").short('x'),
    Flag::honoured("reorderTasksRandomSeed", "N", "seed of -Z; below 0: a different seed in each repetition").short('X'),
    Flag::refused("dualMount", "", "strata does not create a path per CPU", "distribute the files of -F with -o a@b").short('y'),
    Flag::honoured("fsyncPerWrite", "", "fsync(2) after each write").short('Y'),
    Flag::honoured("randomOffset", "", "transfers of a task in random order, each once; given twice: random with repeats in a whole existing file").short('z'),
    Flag::honoured("reorderTasksRandom", "", "tasks read the data of all tasks in random order, each once; -ZZ does the same").short('Z'),
    Flag::honoured("random-offset-seed", "N", "seed of -z"),
    Flag::refused("randomPrefill", "SIZE", "a random write always starts with an empty file", "write the file sequentially first (-w -k), then with -E -z"),
    Flag::accepted("warningAsErrors", "", "incorrect usage is always rejected, and failures always cause exit code 1"),
    Flag::honoured("dryRun", "", "shows the options without accessing any file"),
    Flag::honoured("posix.odirect", "", "bypasses the page cache"),
    Flag::refused("posix.rangelocks", "", "strata does not lock byte ranges here", "measure locks with strata fs --op lock"),
    Flag::honoured("stoneWallingWearOut", "0|1", "-O: after the deadline each task continues until it has done as many transfers as the fastest task"),
    Flag::honoured("stoneWallingWearOutIterations", "N", "-O: each task stops after N transfers"),
    Flag::honoured("stoneWallingStatusFile", "FILE", "-O: a write stores the number of transfers per task in this file; a read-only run reads this many"),
    Flag::refused("minTimeDuration", "SECONDS", "strata does not repeat a file within a phase", "use a larger -s with -D SECONDS, or -z -z"),
    Flag::honoured("interIODelay", "MICROSECONDS", "-O: wait after each transfer"),
    Flag::honoured("summaryFile", "FILE", "-O: writes the output to this file"),
    Flag::honoured("summaryFormat", "default|JSON|CSV", "-O: format of the output"),
    Flag::honoured("summaryAlways", "0|1", "-O: also prints the summary of each test after the test"),
    Flag::honoured("saveRankPerformanceDetailsCSV", "FILE", "-O: times and bandwidth of each task"),
    Flag::refused("savePerOpDataCSV", "PREFIX", "individual operations are not logged", "strata as --json FILE ior ... records the histograms of each task"),
    Flag::honoured("allocateBufferOnGPU", "0|3", "-O: 3: buffers are in GPU memory, and times include copies; managed memory (1, 2) is rejected"),
    Flag::honoured("GPUid", "N", "-O: the GPU number; default -1: tasks take all GPUs in turn"),
    Flag::honoured("GPUDirect", "0|1", "-O: buffers are in GPU memory and use cuFile (GPUDirect Storage); strata reports whether transfers were direct"),
    Flag::refused("memoryPerTask", "SIZE", "strata does not allocate memory to shrink the page cache", "use --posix.odirect, or a larger -b"),
    Flag::accepted("platform", "TEXT", "the record already contains the machine name"),
    Flag::accepted("numNodes", "N", "all tasks run on this machine"),
    Flag::accepted("numTasksOnNode0", "N", "all tasks run on this machine"),
    Flag::honoured("help", "", "shows this help").short('h'),
];
