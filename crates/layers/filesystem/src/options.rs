//! Options of a load on files and directories.

use units::{ByteSize, ParseError, parse_u64_in};
use workload::layers::{Layer, LayerDef};
use workload::options::OptionDef;
use workload::options::masters::token_file;
use workload::options::value::{nonzero_size, some_text, word};
use workload::plan::PlanKind;
use workload::spec::choice;
use workload::{as_shared, option, own_of, switch_of};

use crate::doors::ACCESS_PATHS;
use crate::memory::{CUFILE, MEMORY};
use crate::phases::{PHASES, parse_operations};
use crate::plan::{FsPlan, OffsetOrder, PathForm, RankShift};
use crate::set::{Naming, Shape};
use crate::spec::{self, FsSpec};

/// The layer, as users see it.
pub const LAYER: Layer = Layer::of(&DEFINITION);

static DEFINITION: LayerDef = LayerDef {
    command: "fs",
    help: crate::help::HELP,
    operations: || PHASES.iter().map(|phase| phase.name).collect(),
    targets: "A directory (made where it is missing), a file system over objects (dfs+vos:DIR, dfs+engine://HOST:PORT/POOL/CONTAINER, dfs+daos://POOL/CONTAINER), or a file for --shape private and shared; several are dealt out to the workers in turn",
    target_count: (1, usize::MAX),
    options: &[FILES, MEMORY, CUFILE, ACCESS_PATHS],
    common: COMMON,
    refused: REFUSED,
    is_one_phase: |spec| spec::of(spec).operations.len() <= 1,
    set_size: |spec, size| spec.block_size = Some(size),
    ..LayerDef::new(
        "filesystem",
        "Measure a file system: data and metadata of files and directories",
        PlanKind::of::<FsPlan>("Files and directories."),
    )
};

/// Options of media that mean the same here.
const COMMON: &[&str] = &[
    "name",
    "threads",
    "depth",
    "count",
    "bytes",
    "warmup",
    "rate",
    "arrivals",
    "think-time",
    "think-blocks",
    "think-after",
    "think-spin",
    "no-catch-up",
    "start-delay",
    "concurrent",
    "end-others",
    "saturate",
    "ladder",
    "batch",
    "batch-min",
    "batch-max",
    "content",
    "compress",
    "dedupe",
    "dedupe-set",
    "dedupe-global",
    "refill",
    "seed",
    "cores",
    "cores-policy",
    "numa",
    "split-latency",
    "profile",
    "interval",
    "on-error",
    "keep",
    "destroy-data",
];

const DRIVER: &str = "it for media alone: it is an option of its drivers";

/// Options of media that this layer does not have, and their substitutes.
const REFUSED: &[(&str, &str)] = &[
    ("size", "--file-size, --files and --dirs: they say what there is to work on"),
    ("offset", "--segments and --file-size: workers have their places by rank"),
    ("sync-call", "--fsync or --end-fsync: files are made durable by fsync"),
    ("pattern", "--order for the blocks of a file, --item-order for the files"),
    ("mix", "--op with one operation a phase, and concurrent = true in a job file for several at once"),
    ("layout", "--no-fill to leave out files that are made before a phase that needs them"),
    ("sync", "--fsync or --end-fsync"),
    ("sqpoll", DRIVER),
    ("iopoll", DRIVER),
];

macro_rules! own {
    ($($option:tt)*) => {
        own_of!(FsSpec, $($option)*)
    };
}

macro_rules! own_switch {
    ($($option:tt)*) => {
        switch_of!(FsSpec, $($option)*)
    };
}

fn positive(name: &'static str, text: &str) -> Result<u64, ParseError> {
    parse_u64_in(name, text, 1..=u64::MAX)
}

const ORDERS: &[(&str, OffsetOrder)] = &[
    ("sequential", OffsetOrder::Sequential),
    ("backward", OffsetOrder::Backward),
    ("random", OffsetOrder::Random),
    ("random-repeats", OffsetOrder::RandomRepeats),
];

/// Options of a load on files and directories, besides those of [`COMMON`].
pub(crate) static FILES: &[OptionDef] = &[
    option!(
        "op",
        None,
        "OP[,OP...]",
        "tree-create,create,stat,write,read,unlink,tree-remove",
        Workload,
        "tree-create, tree-remove (the directories that hold the items); create, mknod, write, read, stat, rename, link, symlink, truncate, xattr, lock, fadvise, unlink (files); mkdir, dir-stat, dir-rename, rmdir (directories as items); readdir, find; sync (all that the file systems of the targets have not written yet); a list runs one phase after another",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().operations = parse_operations(text)?;
            Ok(())
        }
    ),
    own!(
        "shape",
        None,
        "tree|private|shared",
        "tree",
        Workload,
        "Files in a tree of directories, one file a worker (TARGET.RANK), or one file of which each worker has its own blocks",
        shape,
        |text| choice(
            "shape",
            text,
            &[("tree", Shape::Tree), ("private", Shape::Private), ("shared", Shape::Shared)]
        )
    ),
    own!("dirs", None, "N", "1", Workload, "Directories of a worker that hold files", dirs, |text| positive(
        "dirs", text
    )),
    own!("files", None, "N", "1000", Workload, "Items of a worker in one directory", files, |text| positive(
        "files", text
    )),
    own!(
        "items",
        None,
        "N",
        "files x directories",
        Workload,
        "Items of a worker in all its directories",
        items,
        |text| positive("items", text)
    ),
    own!(
        "branch",
        None,
        "N",
        "1",
        Workload,
        "Directories in each directory of the tree, in place of --dirs",
        branch,
        |text| positive("branch", text)
    ),
    own!(
        "levels",
        None,
        "N",
        "0",
        Workload,
        "Levels of directories below the first, in place of --dirs",
        levels,
        |text| parse_u64_in("levels", text, 0..=64).map(|levels| levels as u32)
    ),
    own_switch!("leaves-only", "off", Workload, "Only directories of the last level hold items", leaves_only),
    own_switch!(
        "shared-tree",
        "off: each worker has its own",
        Workload,
        "All workers share one tree",
        shared_tree
    ),
    own_switch!(
        "unique-directories",
        "off",
        Workload,
        "Private files lie in a directory of their own each",
        unique_directories
    ),
    own!(
        "names",
        None,
        "strata|elbencho|mdtest",
        "strata",
        Workload,
        "Names of files and directories, so that trees of other tools are worked on and theirs work on these",
        names,
        |text| choice(
            "names",
            text,
            &[("strata", Naming::Strata), ("elbencho", Naming::Elbencho), ("mdtest", Naming::Mdtest)]
        )
    ),
    option!(
        "tree-file",
        None,
        "FILE",
        "none",
        Workload,
        "Files and directories from a list, in place of --dirs and --files: a line `d PATH` for each directory and `f BYTES PATH` for each file, as elbencho's tree files have them; they lie in the target itself",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().tree_file = Some(some_text("tree-file", text)?);
            Ok(())
        }
    ),
    option!(
        "tree-scan",
        None,
        "DIRECTORY",
        "the list is there",
        Workload,
        "Lists what lies in a directory in the new file --tree-file before the run",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().tree_scan = Some(some_text("tree-scan", text)?);
            Ok(())
        }
    ),
    own!(
        "tree-round-up",
        None,
        "SIZE",
        "sizes as they are listed",
        Workload,
        "Sizes of --tree-file are rounded up to multiples of this",
        tree_round_up,
        |text| nonzero_size("tree-round-up", text)
    ),
    own!(
        "share-size",
        None,
        "SIZE",
        "32 blocks",
        Workload,
        "Files of --tree-file of at least this size are shared by all workers, each with its own blocks; smaller ones belong to one worker each, in turn by their size",
        share_size,
        |text| nonzero_size("share-size", text)
    ),
    own!(
        "file-size",
        None,
        "SIZE",
        "4k in a tree, else 1g",
        Workload,
        "Bytes of a file in a tree, 0 for empty ones; else bytes that a worker has in each segment",
        file_size,
        |text: &str| text.parse::<ByteSize>()
    ),
    as_shared!(
        "block-size",
        Some('b'),
        "SIZE",
        "the file size, at most 1m",
        Workload,
        "Bytes of one read or write"
    ),
    own!(
        "segments",
        None,
        "N",
        "1",
        Workload,
        "Private and shared files: parts of the file in each of which every worker has --file-size bytes, by rank",
        segments,
        |text| positive("segments", text)
    ),
    own!(
        "transfers",
        None,
        "N",
        "all blocks",
        Workload,
        "Private and shared files: blocks that each worker reads or writes; more than there are go over them again",
        transfers,
        |text| positive("transfers", text)
    ),
    own!(
        "order",
        None,
        "sequential|backward|random|random-repeats",
        "sequential",
        Workload,
        "Order of the blocks of a file",
        order,
        |text| choice("order", text, ORDERS)
    ),
    own!(
        "item-order",
        None,
        "sequential|backward|random|random-repeats",
        "sequential",
        Workload,
        "Order of the items of a worker",
        item_order,
        |text| choice("item-order", text, ORDERS)
    ),
    own!(
        "rank-shift",
        None,
        "N|random",
        "0",
        Workload,
        "Works on the items of the rank N further on (nobody reads what it wrote), or on those of ranks in random order",
        rank_shift,
        |text| match text {
            "random" => Ok(RankShift::Random),
            _ => parse_u64_in("rank-shift", text, 0..=u64::from(u32::MAX)).map(|by| RankShift::By(by as u32)),
        }
    ),
    own!(
        "fsync",
        None,
        "N",
        "never",
        Workload,
        "Makes a file durable after every N writes to it",
        fsync,
        |text| positive("fsync", text)
    ),
    own_switch!("end-fsync", "off", Workload, "Makes a file durable before it is closed", end_fsync),
    own_switch!(
        "truncate-first",
        "off",
        Workload,
        "Files that are written are cut to nothing when they are opened",
        truncate_first
    ),
    own_switch!(
        "truncate-to-size",
        "off",
        Workload,
        "Files that are written get their length when they are opened, in the time of their creation; what was beyond it is cut off",
        truncate_to_size
    ),
    own_switch!(
        "replace",
        "off",
        Workload,
        "Private and shared files that are there are removed before a phase that writes them, outside its time",
        replace
    ),
    own!(
        "file-suffix",
        None,
        "TEXT",
        "none",
        Workload,
        "Private and shared files: end of their names, behind the rank",
        file_suffix,
        |text| some_text("file-suffix", text)
    ),
    own_switch!(
        "barriers",
        "off",
        Workload,
        "Private and shared files: no worker moves data before all have opened, and none closes before all have moved theirs",
        barriers
    ),
    own_switch!(
        "phase-sync",
        "off",
        Workload,
        "Each worker ends its share of a phase with syncfs(2), in the time of the phase",
        phase_sync
    ),
    own_switch!("exclusive", "off", Workload, "Files that are made must not be there (O_EXCL)", exclusive),
    own_switch!(
        "preallocate",
        "off",
        Workload,
        "The space of a file is allocated before it is written, in the time of its creation",
        preallocate
    ),
    own_switch!(
        "ignore-missing",
        "off",
        Workload,
        "Files and directories that are gone already are removed without error",
        ignore_missing
    ),
    own_switch!("no-fill", "off", Workload, "Files that a phase needs are not made before it", no_fill),
    option!(
        "find-name",
        None,
        "GLOB",
        "all",
        Workload,
        "find counts names like this one (* and ?)",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().find_name = Some(some_text("find-name", text)?);
            Ok(())
        }
    ),
    option!(
        "find-size",
        None,
        "SIZE",
        "all",
        Workload,
        "find counts files of this many bytes",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().find_size = Some(text.parse::<ByteSize>()?);
            Ok(())
        }
    ),
    option!(
        "find-newer",
        None,
        "FILE",
        "all",
        Workload,
        "find counts files that were changed after this one was",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().find_newer = Some(some_text("find-newer", text)?);
            Ok(())
        }
    ),
    as_shared!(
        "time",
        None,
        "DURATION",
        "one pass over the items",
        Load,
        "Stonewall: no new operation begins after this long"
    ),
    own_switch!(
        "wear-out",
        "off",
        Load,
        "After --time each worker goes on until it has done as much as the one that had done most by then",
        wear_out
    ),
    own!("engine", Some('e'), "NAME", "posix", Engine, "Driver: see `strata list`", engine, |text| word(
        "engine", text
    )),
    own_switch!("direct", "off", Engine, "Past the page cache (O_DIRECT)", direct),
    token_file("dfs+engine: file with the secret that engines beyond loopback demand"),
    own!(
        "paths",
        None,
        "relative|full",
        "relative",
        Engine,
        "Names are looked up in the descriptor of their directory, or by their full path each time",
        paths,
        |text| choice("paths", text, &[("relative", PathForm::Relative), ("full", PathForm::Full)])
    ),
    own!(
        "cache",
        None,
        "keep|drop",
        "keep",
        Engine,
        "Caches before a phase: left, or dropped for the files (with their inodes and names where the rights allow it); of dfs+vos:, dfs+engine: and mounts of strata the store's memory too",
        cache,
        |text| choice("cache", text, layer::CacheBefore::CHOICES)
    ),
    own_switch!(
        "keep-on-error",
        "off",
        Run,
        "What the run made stays where an operation of a phase failed or data were not as they were written",
        keep_on_error
    ),
    as_shared!(
        "verify",
        None,
        "",
        "off",
        Data,
        "Blocks that are written say whose they are and where; blocks that are read are checked against it"
    ),
    own!(
        "verify-run",
        None,
        "N",
        "number of the run; any number is accepted",
        Data,
        "Number that verified blocks carry, and that blocks that are read must carry: for files written by an earlier run",
        verify_run,
        |text| parse_u64_in("verify-run", text, 0..=u64::MAX)
    ),
];
