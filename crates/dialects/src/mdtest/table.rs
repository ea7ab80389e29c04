//! Every option of mdtest, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "mdtest";
/// The version whose text the output has.
pub(crate) const VERSION: &str = "4.1.0";

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("api", "API", "POSIX; DUMMY does nothing and shows strata's own cost; others are refused, each with the nearest").short('a'),
    Flag::honoured("branch", "N", "directories in each directory of the tree; default 1").short('b'),
    Flag::refused("no-barriers", "N", "phases begin when the one before has ended everywhere", "leave it out").short('B'),
    Flag::refused("collective-creates", "", "each task makes its own items", "--tasks 1 has one task do all").short('c'),
    Flag::honoured("create", "", "creates alone; -C, -T, -E, -r and -U may stand together").short('C'),
    Flag::honoured("dir", "PATH", "where the tree lies, made where it is missing; a@b with -u deals the tasks out; default ./out").short('d'),
    Flag::honoured("dirs-only", "", "directories alone").short('D'),
    Flag::honoured("read-bytes", "SIZE", "bytes to read of each file; default 0: files are opened and closed").short('e'),
    Flag::honoured("read", "", "reads alone").short('E'),
    Flag::honoured("first", "N", "tasks of the first test; default: all").short('f'),
    Flag::honoured("files-only", "", "files alone").short('F'),
    Flag::honoured("data-number", "N", "number of the data: what is written carries it, and what is checked must").short('G'),
    Flag::honoured("iterations", "N", "iterations; default 1").short('i'),
    Flag::honoured("items-per-dir", "N", "items of a task in each directory of the tree; with -n, and without -u, -b and -z: so many in each of -n / N directories").short('I'),
    Flag::honoured("mknod", "", "files are made by mknod(2)").short('k'),
    Flag::honoured("last", "N", "tasks of the last test").short('l'),
    Flag::honoured("leaf-only", "", "items in the directories of the last level alone").short('L'),
    Flag::honoured("items", "N", "items of each task, dealt out to the directories of the tree; what does not go up is left out, as in the tool").short('n'),
    Flag::honoured("stride", "N", "a task looks at the items of the one N further on, reads those 2N and removes those 3N further on").short('N'),
    Flag::honoured("pre-delay", "SECONDS", "wait before the items of each iteration").short('p'),
    Flag::honoured("print-rate-and-time", "", "both tables").short('P'),
    Flag::honoured("remove", "", "removes alone").short('r'),
    Flag::honoured("random", "", "items are looked at and read in random order").short('R'),
    Flag::honoured("task-stride", "N", "from one number of tasks to the next; default 1").short('s'),
    Flag::refused("shared-file", "", "each item is of one task", "strata fs --shape shared, or ior").short('S'),
    Flag::accepted("time-unique-dir", "", "all of a phase is in its time, with it and without").short('t'),
    Flag::honoured("stat", "", "stats alone").short('T'),
    Flag::honoured("unique-dir", "", "a tree for each task").short('u'),
    Flag::honoured("rename", "", "renames directories; part of a run of all phases").short('U'),
    Flag::accepted("verbose", "", "strata's record (strata as --json FILE mdtest ...) has more than -v prints").short('v'),
    Flag::accepted("verbosity", "N", "strata's record has more than -V prints").short('V'),
    Flag::honoured("write-bytes", "SIZE", "bytes to write to each file; default 0").short('w'),
    Flag::honoured("stonewall", "SECONDS", "creation ends after this long, and when all tasks have made as many items as the fastest had").short('W'),
    Flag::honoured("status-file", "FILE", "creation of files notes here how many each task made, a run without creation works on as many").short('x'),
    Flag::honoured("verify-read", "", "checks what is read; wrong files are failures: in no rate, counted, exit code 1").short('X'),
    Flag::honoured("fsync", "", "fsync(2) of each file after it was written").short('y'),
    Flag::honoured("sync", "", "each task ends each phase on its items with syncfs(2), in its time").short('Y'),
    Flag::honoured("depth", "N", "levels of the tree below the first directory; default 0").short('z'),
    Flag::honoured("print-time", "", "the table of times in place of that of rates").short('Z'),
    Flag::honoured("random-seed", "N", "seed of -R"),
    Flag::refused("verify-write", "", "files are not read back one by one", "-X checks them in the read phase"),
    Flag::accepted("dataPacketType", "TYPE", "all content is random, differs from file to file, and says whose it is"),
    Flag::refused("run-cmd-before-phase", "COMMAND", "no commands are run", "run the phases one by one: -C, -T, -E, -r"),
    Flag::refused("run-cmd-after-phase", "COMMAND", "no commands are run", "run the phases one by one: -C, -T, -E, -r"),
    Flag::accepted("warningAsErrors", "", "what would be wrong is refused, and what fails is exit code 1"),
    Flag::refused("print-all-procs", "", "tasks are in the record", "strata as --json FILE mdtest ..."),
    Flag::refused("saveRankPerformanceDetails", "FILE", "tasks are in the record", "strata as --json FILE mdtest ..."),
    Flag::refused("savePerOpDataCSV", "PREFIX", "operations are not written one by one", "strata as --json FILE mdtest ... has the histograms of each task"),
    Flag::refused("showRankStatistics", "", "tasks are in the record", "strata as --json FILE mdtest ..."),
    Flag::honoured("allocateBufferOnGPU", "0|3", "3: buffers are memory of a GPU, copies count in the time; managed memory (1, 2) is refused"),
    Flag::honoured("GPUid", "N", "the GPU; default -1: tasks take all in turn"),
    Flag::honoured("gpuDirect", "", "buffers are memory of a GPU, by cuFile (GPUDirect Storage); strata tells whether it was direct"),
    Flag::honoured("posix.odirect", "", "past the page cache; sizes must be multiples of 512"),
    Flag::refused("posix.rangelocks", "", "byte ranges are not locked", "strata fs --op lock measures locks"),
    Flag::honoured("tasks", "N", "tasks: threads of this process, what mpirun -n N does; default 1; an addition of strata's"),
    Flag::honoured("help", "", "shows this").short('h'),
];
