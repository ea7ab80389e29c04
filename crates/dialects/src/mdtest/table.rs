//! Every option of mdtest, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "mdtest";
/// The version whose text the output has.
pub(crate) const VERSION: &str = "4.1.0";

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("api", "API", "POSIX; DUMMY does no I/O and shows strata's overhead; all others are rejected with the closest alternative").short('a'),
    Flag::honoured("branch", "N", "number of subdirectories per directory of the tree; default 1").short('b'),
    Flag::refused("no-barriers", "N", "a phase always starts after the previous phase has ended on all tasks", "leave it out").short('B'),
    Flag::refused("collective-creates", "", "each task always creates its own items", "use --tasks 1 to create all items with one task").short('c'),
    Flag::honoured("create", "", "only creates; -C, -T, -E, -r and -U can be combined").short('C'),
    Flag::honoured("dir", "PATH", "directory of the tree, created if missing; a@b with -u distributes the tasks; default ./out").short('d'),
    Flag::honoured("dirs-only", "", "only directories").short('D'),
    Flag::honoured("read-bytes", "SIZE", "bytes to read from each file; default 0: files are only opened and closed").short('e'),
    Flag::honoured("read", "", "only reads").short('E'),
    Flag::honoured("first", "N", "number of tasks of the first test; default: all").short('f'),
    Flag::honoured("files-only", "", "only files").short('F'),
    Flag::honoured("data-number", "N", "data signature: written files contain it, and checked files must contain it").short('G'),
    Flag::honoured("iterations", "N", "number of iterations; default 1").short('i'),
    Flag::honoured("items-per-dir", "N", "items per task in each directory of the tree; with -n and without -u, -b and -z: items in each of -n / N directories").short('I'),
    Flag::honoured("mknod", "", "creates files with mknod(2)").short('k'),
    Flag::honoured("last", "N", "number of tasks of the last test").short('l'),
    Flag::honoured("leaf-only", "", "creates items only in the directories of the last level").short('L'),
    Flag::honoured("items", "N", "items per task, distributed to the directories of the tree; a remainder is left out, as in the tool").short('n'),
    Flag::honoured("stride", "N", "each task stats the items of the task N further on, reads those 2N further on and removes those 3N further on").short('N'),
    Flag::honoured("pre-delay", "SECONDS", "wait before each iteration").short('p'),
    Flag::honoured("print-rate-and-time", "", "prints both tables, rates and times").short('P'),
    Flag::honoured("remove", "", "only removes").short('r'),
    Flag::honoured("random", "", "stats and reads items in random order").short('R'),
    Flag::honoured("task-stride", "N", "step between numbers of tasks; default 1").short('s'),
    Flag::refused("shared-file", "", "each item belongs to one task", "use strata fs --shape shared, or ior").short('S'),
    Flag::accepted("time-unique-dir", "", "the time of a phase always includes the whole phase").short('t'),
    Flag::honoured("stat", "", "only stats").short('T'),
    Flag::honoured("unique-dir", "", "a separate tree for each task").short('u'),
    Flag::honoured("rename", "", "renames directories; included in a run of all phases").short('U'),
    Flag::accepted("verbose", "", "strata's record (strata as --json FILE mdtest ...) contains more than -v prints").short('v'),
    Flag::accepted("verbosity", "N", "strata's record contains more than -V prints").short('V'),
    Flag::honoured("write-bytes", "SIZE", "bytes to write to each file; default 0").short('w'),
    Flag::honoured("stonewall", "SECONDS", "creation ends after this time, once all tasks have created as many items as the fastest task").short('W'),
    Flag::honoured("status-file", "FILE", "file creation stores the number of files per task in this file; a run without creation uses that number").short('x'),
    Flag::honoured("verify-read", "", "checks the data that is read; wrong files are failures: counted, excluded from all rates, exit code 1").short('X'),
    Flag::honoured("fsync", "", "fsync(2) of each file after it is written").short('y'),
    Flag::honoured("sync", "", "each task ends each phase with syncfs(2), within the time of the phase").short('Y'),
    Flag::honoured("depth", "N", "levels of the tree below the first directory; default 0").short('z'),
    Flag::honoured("print-time", "", "prints the table of times instead of rates").short('Z'),
    Flag::honoured("random-seed", "N", "seed of -R"),
    Flag::refused("verify-write", "", "files are not read back individually", "use -X, which checks them in the read phase"),
    Flag::accepted("dataPacketType", "TYPE", "all content is random, differs between files and contains its owner"),
    Flag::refused("run-cmd-before-phase", "COMMAND", "strata does not run commands", "run the phases separately: -C, -T, -E, -r"),
    Flag::refused("run-cmd-after-phase", "COMMAND", "strata does not run commands", "run the phases separately: -C, -T, -E, -r"),
    Flag::accepted("warningAsErrors", "", "incorrect usage is always rejected, and failures always cause exit code 1"),
    Flag::refused("print-all-procs", "", "results per task are in the record", "use strata as --json FILE mdtest ..."),
    Flag::refused("saveRankPerformanceDetails", "FILE", "results per task are in the record", "use strata as --json FILE mdtest ..."),
    Flag::refused("savePerOpDataCSV", "PREFIX", "individual operations are not logged", "strata as --json FILE mdtest ... records the histograms of each task"),
    Flag::refused("showRankStatistics", "", "results per task are in the record", "use strata as --json FILE mdtest ..."),
    Flag::honoured("allocateBufferOnGPU", "0|3", "3: buffers are in GPU memory, and times include copies; managed memory (1, 2) is rejected"),
    Flag::honoured("GPUid", "N", "the GPU number; default -1: tasks take all GPUs in turn"),
    Flag::honoured("gpuDirect", "", "buffers are in GPU memory and use cuFile (GPUDirect Storage); strata reports whether transfers were direct"),
    Flag::honoured("posix.odirect", "", "bypasses the page cache; sizes must be multiples of 512"),
    Flag::refused("posix.rangelocks", "", "strata does not lock byte ranges here", "measure locks with strata fs --op lock"),
    Flag::honoured("tasks", "N", "number of tasks, run as threads of this process, like mpirun -n N; default 1; strata extension"),
    Flag::honoured("help", "", "shows this help").short('h'),
];
