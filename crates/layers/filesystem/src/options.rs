//! Options of a load on files and directories.

mod common;

use units::{ByteSize, ParseError, parse_u64_in};
use workload::layers::{Layer, LayerDef};
use workload::options::OptionDef;
use workload::options::masters::token_file;
use workload::options::value::{nonzero_size, some_text, word};
use workload::plan::PlanKind;
use workload::spec::choice;
use workload::{as_shared, option, own_of, switch_of};

use common::{COMMON, REFUSED};

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
    targets: "A directory (created if missing), a file system over objects (dfs+vos:DIR, dfs+engine://HOST:PORT/POOL/CONTAINER, dfs+daos://POOL/CONTAINER), or a file for --shape private and shared; workers take several targets in turn",
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
        "tree-create, tree-remove (the directories that hold the items); create, mknod, write, read, stat, rename, link, symlink, truncate, xattr, lock, fadvise, unlink (files); mkdir, dir-stat, dir-rename, rmdir (directories as items); readdir, find; sync (all unwritten data of the targets' file systems); a list runs one phase per operation",
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
        "Files in a directory tree, one file per worker (TARGET.RANK), or one file with separate blocks for each worker",
        shape,
        |text| choice(
            "shape",
            text,
            &[("tree", Shape::Tree), ("private", Shape::Private), ("shared", Shape::Shared)]
        )
    ),
    own!("dirs", None, "N", "1", Workload, "Directories per worker that hold files", dirs, |text| positive(
        "dirs", text
    )),
    own!("files", None, "N", "1000", Workload, "Items per worker in one directory", files, |text| positive(
        "files", text
    )),
    own!(
        "items",
        None,
        "N",
        "files x directories",
        Workload,
        "Items per worker in all its directories",
        items,
        |text| positive("items", text)
    ),
    own!(
        "branch",
        None,
        "N",
        "1",
        Workload,
        "Subdirectories of each directory of the tree; replaces --dirs",
        branch,
        |text| positive("branch", text)
    ),
    own!(
        "levels",
        None,
        "N",
        "0",
        Workload,
        "Levels of directories below the first; replaces --dirs",
        levels,
        |text| parse_u64_in("levels", text, 0..=64).map(|levels| levels as u32)
    ),
    own_switch!("leaves-only", "off", Workload, "Only directories of the last level hold items", leaves_only),
    own_switch!(
        "shared-tree",
        "off: one tree per worker",
        Workload,
        "All workers share one tree",
        shared_tree
    ),
    own_switch!(
        "unique-directories",
        "off",
        Workload,
        "Each private file has its own directory",
        unique_directories
    ),
    own!(
        "names",
        None,
        "strata|elbencho|mdtest",
        "strata",
        Workload,
        "Naming scheme of files and directories: allows strata and the other tool to use the same trees",
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
        "Files and directories from a list; replaces --dirs and --files: a line `d PATH` for each directory and `f BYTES PATH` for each file, the format of elbencho's tree files; they are created in the target itself",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().tree_file = Some(some_text("tree-file", text)?);
            Ok(())
        }
    ),
    option!(
        "tree-scan",
        None,
        "DIRECTORY",
        "use the existing list",
        Workload,
        "Lists the contents of this directory in the new file --tree-file before the run",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().tree_scan = Some(some_text("tree-scan", text)?);
            Ok(())
        }
    ),
    own!(
        "tree-round-up",
        None,
        "SIZE",
        "sizes as listed",
        Workload,
        "Rounds the sizes of --tree-file up to multiples of this",
        tree_round_up,
        |text| nonzero_size("tree-round-up", text)
    ),
    own!(
        "share-size",
        None,
        "SIZE",
        "32 blocks",
        Workload,
        "All workers share files of --tree-file of at least this size, each with its own blocks; each smaller file belongs to one worker, assigned in turn by size",
        share_size,
        |text| nonzero_size("share-size", text)
    ),
    own!(
        "file-size",
        None,
        "SIZE",
        "4k in a tree, else 1g",
        Workload,
        "File size in a tree, 0 for empty files; otherwise bytes per worker in each segment",
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
        "Private and shared files: number of segments; in each, every worker has --file-size bytes, by rank",
        segments,
        |text| positive("segments", text)
    ),
    own!(
        "transfers",
        None,
        "N",
        "all blocks",
        Workload,
        "Private and shared files: blocks that each worker reads or writes; a number above all blocks repeats them",
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
        "Order of the items per worker",
        item_order,
        |text| choice("item-order", text, ORDERS)
    ),
    own!(
        "item-passes",
        None,
        "N",
        "1",
        Workload,
        "Passes of each worker over its items, in the operations that change nothing: stat, dir-stat, readdir, lock, fadvise, and read in a tree",
        item_passes,
        |text| positive("item-passes", text)
    ),
    own!(
        "rank-shift",
        None,
        "N|random",
        "0",
        Workload,
        "Uses the items of rank + N, so that no worker reads its own data, or assigns the ranks in random order",
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
        "Truncates files to 0 bytes when they are opened for writing",
        truncate_first
    ),
    own_switch!(
        "truncate-to-size",
        "off",
        Workload,
        "Sets the length of files when they are opened for writing (part of the creation time); cuts off data beyond it",
        truncate_to_size
    ),
    own_switch!(
        "replace",
        "off",
        Workload,
        "Private and shared files: removes existing files before a phase that writes them (not timed)",
        replace
    ),
    own!(
        "file-suffix",
        None,
        "TEXT",
        "none",
        Workload,
        "Private and shared files: suffix of their names, after the rank",
        file_suffix,
        |text| some_text("file-suffix", text)
    ),
    own_switch!(
        "barriers",
        "off",
        Workload,
        "Private and shared files: all workers open before any moves data, and all move their data before any closes",
        barriers
    ),
    own_switch!(
        "phase-sync",
        "off",
        Workload,
        "Each worker ends its part of a phase with syncfs(2), which is timed",
        phase_sync
    ),
    own_switch!("exclusive", "off", Workload, "Fails if a file to be created exists (O_EXCL)", exclusive),
    own_switch!(
        "preallocate",
        "off",
        Workload,
        "Allocates the space of a file before it is written (part of the creation time)",
        preallocate
    ),
    own_switch!(
        "ignore-missing",
        "off",
        Workload,
        "Removing a missing file or directory is not an error",
        ignore_missing
    ),
    own_switch!("no-fill", "off", Workload, "Skips creating the files that a phase needs", no_fill),
    option!(
        "find-name",
        None,
        "GLOB",
        "all",
        Workload,
        "find counts names that match this pattern (* and ?)",
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
        "find counts files of exactly this size",
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
        "find counts files modified after this file",
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
        "Stonewall: no new operation starts after this time"
    ),
    own_switch!(
        "wear-out",
        "off",
        Load,
        "After --time, each worker continues until it has done as much as the fastest worker had done by then",
        wear_out
    ),
    own!("engine", Some('e'), "NAME", "posix", Engine, "Driver: see `strata list`", engine, |text| word(
        "engine", text
    )),
    own_switch!("direct", "off", Engine, "Bypasses the page cache (O_DIRECT)", direct),
    token_file("dfs+engine: file with the secret; required by engines that are not on loopback"),
    own!(
        "paths",
        None,
        "relative|full",
        "relative",
        Engine,
        "Looks names up relative to the open directory, or by full path each time",
        paths,
        |text| choice("paths", text, &[("relative", PathForm::Relative), ("full", PathForm::Full)])
    ),
    own!(
        "cache",
        None,
        "keep|drop",
        "keep",
        Engine,
        "Caches before a phase: kept, or dropped for the files (including inodes and names where permitted); with dfs+vos:, dfs+engine: and strata mounts, also the store's memory",
        cache,
        |text| choice("cache", text, layer::CacheBefore::CHOICES)
    ),
    own_switch!(
        "keep-on-error",
        "off",
        Run,
        "Keeps the files of the run after a failed operation or a verification error",
        keep_on_error
    ),
    as_shared!(
        "verify",
        None,
        "",
        "off",
        Data,
        "Written blocks carry their owner and offset; blocks that are read are checked"
    ),
    own!(
        "verify-run",
        None,
        "N",
        "the run's number; reads accept any number",
        Data,
        "Number that verified blocks carry and that reads require: for files written by an earlier run",
        verify_run,
        |text| parse_u64_in("verify-run", text, 0..=u64::MAX)
    ),
];
