//! From a spec to plans.

use dfs::Url;
use driver::{Capabilities, Error};
use layer::CacheBefore;
use units::ByteSize;
use workload::plan::{LimitPlan, LoadPlan};
use workload::spec::{Refill, Spec};

use crate::drivers;
use crate::listed::{self, ListedTree, Reading};
use crate::memory;
use crate::operation::CLASSES;
use crate::phases::{FsOp, Over};
use crate::plan::{FindPlan, FsPlan, Geometry, PathForm, RankShift};
use crate::set::{FileSet, Naming, Shape};
use crate::spec::{self, FsSpec};
use crate::stores::is_store;

/// Default size of a file in a tree, in bytes.
const FILE_BYTES: u64 = 4096;
/// Default size of a worker's part of a file that is no tree, in bytes.
const PART_BYTES: u64 = 1 << 30;
/// Default size of a read or write, at most, in bytes.
const BLOCK_BYTES: u64 = 1 << 20;
/// Largest read or write, in bytes.
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// Most items of a rank: numbers of items stand in names and maps.
const ITEMS_MAX: u64 = 1 << 40;

fn usage(message: impl Into<String>) -> Error {
    Error::usage("plan", message)
}

/// Operations of a spec; where none is said, those of a whole life of small files.
pub(crate) fn operations(spec: &Spec) -> Vec<FsOp> {
    let own = spec::of(spec);
    match (&own.operations[..], own.shape.unwrap_or(Shape::Tree)) {
        ([], Shape::Tree) => {
            use FsOp::{Create, Read, Stat, TreeCreate, TreeRemove, Unlink, Write};
            vec![TreeCreate, Create, Stat, Write, Read, Unlink, TreeRemove]
        }
        ([], Shape::Private | Shape::Shared) => vec![FsOp::Write, FsOp::Read],
        (said, _) => said.to_vec(),
    }
}

/// The plan of one operation of a spec; its operations share the file set, `known` once it was settled.
///
/// # Errors
/// Options that do not go together, with what would be accepted.
pub(crate) fn plan(
    spec: &Spec,
    operation: FsOp,
    seed: u64,
    verify_run: u64,
    known: &mut Option<FileSet>,
) -> Result<FsPlan, Error> {
    let own = spec::of(spec);
    let depth = spec.depth.unwrap_or(1);
    let stores = spec.targets.iter().filter(|target| is_store(target)).count();
    let engine = own.engine.clone().unwrap_or_else(|| default_engine(own, stores, depth).to_owned());
    let capabilities = &drivers::find(&engine)?.capabilities;
    let depth_max = if capabilities.asynchronous { capabilities.depth_max } else { 1 };
    if depth > depth_max {
        return Err(usage(format!(
            "--depth {depth}: the engine {engine} supports at most {depth_max}: use --threads, or --engine io_uring"
        )));
    }
    check_stores(spec, own, &engine, stores)?;
    check_pairs(spec, own)?;
    check_calls(operation, &engine, capabilities)?;
    let mut load = workload::plan::load(spec, depth, None, seed).map_err(|error| usage(error.0))?;
    let set = match known {
        Some(set) => set.clone(),
        None => known.insert(file_set(spec, own, load.workers())?).clone(),
    };
    check_operation(operation, &set, spec)?;
    let geometry = geometry(spec, own, &set)?;
    check_direct(own, &geometry)?;
    let wear_out_ns = wear_out(own, &mut load, operation)?;
    let content =
        workload::plan::content(spec, spec.refill.unwrap_or(Refill::Once)).map_err(|error| usage(error.0))?;
    Ok(FsPlan {
        name: name(spec, operation),
        memory: memory::plan_of(own, &engine).map_err(usage)?,
        engine,
        targets: spec.targets.clone(),
        operation,
        transfers: own.transfers,
        geometry,
        item_order: own.item_order.unwrap_or_default(),
        item_passes: own.item_passes.filter(|_| is_repeatable(operation, &set)).unwrap_or(1),
        rank_shift: own.rank_shift.unwrap_or(RankShift::By(0)),
        paths: own.paths.unwrap_or(PathForm::Relative),
        direct: own.direct,
        fsync_every: own.fsync,
        end_fsync: own.end_fsync,
        truncate_first: own.truncate_first,
        truncate_to_size: own.truncate_to_size,
        ignore_missing: own.ignore_missing,
        exclusive: own.exclusive,
        preallocate: own.preallocate,
        verify: spec.verify,
        verify_run: own.verify_run.unwrap_or(verify_run),
        verify_expects: own.verify_run,
        cache: own.cache.unwrap_or_default(),
        replace: own.replace,
        barriers: own.barriers,
        phase_sync: own.phase_sync,
        keep_on_error: own.keep_on_error,
        wear_out_ns,
        find: find(own, operation)?,
        content,
        door: None,
        door_target: None,
        door_turn: None,
        is_fill: false,
        load,
        set,
    })
}

/// The driver where none is named.
fn default_engine(own: &FsSpec, stores: usize, depth: u32) -> &'static str {
    match (stores, depth) {
        (0, _) if own.memory.gpu_path == Some(gpu::GpuPath::Cufile) => memory::CUFILE_ENGINE,
        (0, 0..=1) => "posix",
        (0, _) => "io_uring",
        _ => "dfs",
    }
}

fn name(spec: &Spec, operation: FsOp) -> String {
    match &spec.name {
        Some(name) if operations(spec).len() > 1 => format!("{name} {}", operation.name()),
        Some(name) => name.clone(),
        None => operation.name().to_owned(),
    }
}

/// Refuses options that contradict each other.
fn check_pairs(spec: &Spec, own: &FsSpec) -> Result<(), Error> {
    if own.verify_run.is_some() && !spec.verify {
        return Err(usage("--verify-run requires --verify: add it"));
    }
    if own.truncate_to_size && own.truncate_first {
        return Err(usage(
            "--truncate-first and --truncate-to-size both set the length of a file: use one of them",
        ));
    }
    Ok(())
}

/// Refuses what files over objects do not have.
fn check_stores(spec: &Spec, own: &FsSpec, engine: &str, stores: usize) -> Result<(), Error> {
    if engine == "null" {
        return Ok(());
    }
    if stores > 0 && (engine != "dfs" || stores < spec.targets.len()) {
        return Err(usage("dfs+ targets require --engine dfs: use no other engine and no other targets"));
    }
    if stores == 0 {
        let remedy = "use dfs+vos:DIR, dfs+engine://HOST:PORT/POOL/CONTAINER or dfs+daos://POOL/CONTAINER";
        let other = || Err(usage(format!("--engine dfs requires a file system over objects: {remedy}")));
        return if engine == "dfs" { other() } else { Ok(()) };
    }
    let refused = [
        (own.direct, "--direct"),
        (own.tree_file.is_some(), "--tree-file"),
        (own.unique_directories, "--unique-directories"),
        (own.operations.contains(&FsOp::Find), "--op find"),
        (own.names == Some(Naming::Elbencho) && own.levels == Some(0), "--levels 0 with --names elbencho"),
    ];
    if own.cache == Some(CacheBefore::Drop) && spec.targets.iter().any(|target| is_daos(target)) {
        return Err(usage(
            "--cache drop does not support dfs+daos: DAOS clients cannot drop the caches of its engines: use dfs+vos: or dfs+engine:",
        ));
    }
    match refused.iter().find(|(is_said, _)| *is_said) {
        Some((_, name)) => Err(usage(format!(
            "{name} requires a path: mount the file system (strata mount) and use its path"
        ))),
        None => Ok(()),
    }
}

fn is_daos(target: &str) -> bool {
    matches!(target.parse(), Ok(Url::Daos { .. }))
}

/// Refuses operations whose calls the driver does not have.
fn check_calls(operation: FsOp, engine: &str, capabilities: &Capabilities) -> Result<(), Error> {
    let missing = operation
        .phase()
        .calls
        .iter()
        .find(|(class, _)| !capabilities.classes.contains(&CLASSES[*class as usize]));
    match missing {
        Some((class, _)) => Err(usage(format!(
            "--op {}: the engine {engine} does not support {}: omit it",
            operation.name(),
            CLASSES[*class as usize]
        ))),
        None => Ok(()),
    }
}

fn file_set(spec: &Spec, own: &FsSpec, ranks: u32) -> Result<FileSet, Error> {
    let shape = own.shape.unwrap_or(Shape::Tree);
    if shape != Shape::Tree {
        let tree = [
            (own.dirs.is_some(), "--dirs"),
            (own.files.is_some(), "--files"),
            (own.items.is_some(), "--items"),
            (own.branch.is_some(), "--branch"),
            (own.levels.is_some(), "--levels"),
            (own.leaves_only, "--leaves-only"),
            (own.shared_tree, "--shared-tree"),
            (own.names.is_some(), "--names"),
        ];
        if let Some((_, name)) = tree.iter().find(|(is_said, _)| *is_said) {
            return Err(usage(format!("{name} requires --shape tree")));
        }
    }
    check_set(spec, own, shape)?;
    let is_deep = own.branch.is_some() || own.levels.is_some();
    let (branch, levels, leaves_only) = if is_deep {
        (own.branch.unwrap_or(1), own.levels.unwrap_or(1), own.leaves_only)
    } else {
        (own.dirs.unwrap_or(1), 1, true)
    };
    let mut set = FileSet {
        shape,
        naming: own.names.unwrap_or_default(),
        ranks,
        items: 1,
        items_per_directory: 1,
        branch,
        levels,
        leaves_only,
        shared_tree: own.shared_tree,
        unique_directories: own.unique_directories,
        listed: None,
        suffix: own.file_suffix.clone(),
    };
    match own.tree_file {
        Some(_) => list_items(&mut set, spec, own)?,
        None if shape == Shape::Tree => deal_items(&mut set, own)?,
        None => {}
    }
    Ok(set)
}

/// Refuses options of file sets that do not go together.
fn check_set(spec: &Spec, own: &FsSpec, shape: Shape) -> Result<(), Error> {
    let of_lists = [
        (own.tree_scan.is_some(), "--tree-scan requires a file for its list: add --tree-file FILE"),
        (own.tree_round_up.is_some(), "--tree-round-up requires --tree-file: add it"),
        (own.share_size.is_some(), "--share-size requires --tree-file: add it"),
    ];
    if let Some((_, refusal)) = of_lists.iter().find(|(is_said, _)| *is_said && own.tree_file.is_none()) {
        return Err(usage(*refusal));
    }
    let of_files = [
        (own.transfers.is_some(), "--transfers"),
        (own.replace, "--replace"),
        (own.file_suffix.is_some(), "--file-suffix"),
        (own.barriers, "--barriers"),
    ];
    if let Some((_, name)) = of_files.iter().find(|(is_said, _)| *is_said && shape == Shape::Tree) {
        return Err(usage(format!("{name} requires --shape private or shared")));
    }
    if own.file_suffix.as_ref().is_some_and(|suffix| suffix.contains('/')) {
        return Err(usage("--file-suffix is part of a file name: use a suffix without /"));
    }
    if own.unique_directories && shape != Shape::Private {
        return Err(usage("--unique-directories requires --shape private"));
    }
    if own.dirs.is_some() && (own.branch.is_some() || own.levels.is_some()) {
        return Err(usage(
            "--dirs conflicts with --branch and --levels, which also define the directories: use one of them",
        ));
    }
    if spec.targets.iter().any(|target| target.is_empty()) {
        return Err(usage("a target is empty: name a directory or a file"));
    }
    Ok(())
}

/// Settles items from a list.
fn list_items(set: &mut FileSet, spec: &Spec, own: &FsSpec) -> Result<(), Error> {
    let Some(file) = &own.tree_file else { return Ok(()) };
    let others = [
        (own.dirs.is_some(), "--dirs"),
        (own.files.is_some(), "--files"),
        (own.items.is_some(), "--items"),
        (own.branch.is_some(), "--branch"),
        (own.levels.is_some(), "--levels"),
        (own.leaves_only, "--leaves-only"),
        (own.shared_tree, "--shared-tree"),
        (own.names.is_some(), "--names"),
        (own.file_size.is_some(), "--file-size"),
        (set.shape != Shape::Tree, "--shape private and shared"),
    ];
    if let Some((_, name)) = others.iter().find(|(is_said, _)| *is_said) {
        return Err(usage(format!(
            "{name}: --tree-file already defines the files and directories: use one of them"
        )));
    }
    if spec.targets.len() > 1 {
        return Err(usage(format!(
            "{} targets: --tree-file lists the contents of one target: use one",
            spec.targets.len()
        )));
    }
    if let Some(directory) = &own.tree_scan {
        listed::scan(directory, file)?;
    }
    let reading = Reading {
        ranks: set.ranks,
        block_size_bytes: block_size(spec)?.unwrap_or(BLOCK_BYTES),
        share_size_bytes: own.share_size.map(|size| size.0),
        round_up_bytes: own.tree_round_up.map_or(0, |size| size.0),
    };
    let tree = ListedTree::load(file, &reading)?;
    let is_shared = set.ranks > 1 && tree.largest_bytes >= tree.share_size_bytes;
    if is_shared && (own.truncate_first || own.exclusive) {
        return Err(usage(
            "--truncate-first and --exclusive do not support files that several workers write: raise --share-size above the largest file",
        ));
    }
    if spec::of(spec).direct && !tree.is_aligned(512) {
        return Err(usage("--direct: sizes in the list are not multiples of 512: add --tree-round-up 4k"));
    }
    (set.shared_tree, set.listed) = (true, Some(tree));
    set.items = (0..set.ranks).map(|rank| set.items_of(rank, true)).max().unwrap_or(0);
    set.items_per_directory = set.items;
    Ok(())
}

/// The block size that is said.
fn block_size(spec: &Spec) -> Result<Option<u64>, Error> {
    let Some(text) = &spec.block_size else { return Ok(None) };
    let size: Result<ByteSize, _> = text.parse();
    let bytes = size
        .map_err(|_| {
            usage(format!(
                "--block-size {text}: this layer supports one size per phase: use a size such as 1m"
            ))
        })?
        .0;
    if bytes == 0 || bytes > BLOCK_BYTES_MAX {
        return Err(usage(format!("--block-size: use 1 to {}", ByteSize(BLOCK_BYTES_MAX))));
    }
    Ok(Some(bytes))
}

/// Settles how many items there are, and how many lie in one directory.
fn deal_items(set: &mut FileSet, own: &FsSpec) -> Result<(), Error> {
    let holders = set.holders();
    if holders > ITEMS_MAX {
        return Err(usage(format!("{holders} directories per worker: use at most {ITEMS_MAX}")));
    }
    let (items, per) = match (own.items, own.files) {
        (None, files) => {
            let per = files.unwrap_or(1000);
            (per.saturating_mul(holders), per)
        }
        (Some(items), None) => (items, items.div_ceil(holders)),
        (Some(items), Some(per)) => (items, per),
    };
    if items > ITEMS_MAX {
        return Err(usage(format!("{items} items per worker: use at most {ITEMS_MAX}")));
    }
    if per.saturating_mul(holders) < items {
        return Err(usage(format!(
            "--items {items} do not fit into {holders} directories of --files {per}: use at most {} items",
            per.saturating_mul(holders)
        )));
    }
    (set.items, set.items_per_directory) = (items, per);
    Ok(())
}

fn check_operation(operation: FsOp, set: &FileSet, spec: &Spec) -> Result<(), Error> {
    let own = spec::of(spec);
    let is_of_tree =
        matches!(operation.phase().over, Over::Directories | Over::Nodes | Over::NodesReversed | Over::Walk);
    if set.shape != Shape::Tree && is_of_tree {
        return Err(usage(format!("--op {} requires --shape tree", operation.name())));
    }
    if set.listed.is_some() && operation.phase().over == Over::Directories {
        return Err(usage(format!(
            "--op {}: directories of --tree-file are not items: use tree-create, readdir and tree-remove",
            operation.name()
        )));
    }
    let is_said = own.find_name.is_some() || own.find_size.is_some() || own.find_newer.is_some();
    if is_said && !own.operations.contains(&FsOp::Find) {
        return Err(usage("--find-name, --find-size and --find-newer require --op find"));
    }
    if own.item_passes.is_some() && !operations(spec).into_iter().any(|op| is_repeatable(op, set)) {
        return Err(usage(
            "--item-passes has no effect: use --op stat, dir-stat, readdir, lock or fadvise, or read with --shape tree",
        ));
    }
    Ok(())
}

/// Whether an operation can be carried out on the same items again: it changes nothing, and goes over items.
fn is_repeatable(operation: FsOp, set: &FileSet) -> bool {
    let phase = operation.phase();
    let is_over_items = !matches!(phase.over, Over::Walk | Over::Targets);
    is_over_items && !phase.changes && (set.shape == Shape::Tree || !operation.moves_data())
}

fn geometry(spec: &Spec, own: &FsSpec, set: &FileSet) -> Result<Geometry, Error> {
    let file_size_bytes = match (&set.listed, own.file_size) {
        (Some(tree), _) => tree.largest_bytes,
        (None, Some(size)) => size.0,
        (None, None) if set.shape == Shape::Tree => FILE_BYTES,
        (None, None) => PART_BYTES,
    };
    let block_size_bytes = match (block_size(spec)?, &set.listed) {
        (Some(bytes), _) => bytes,
        (None, Some(tree)) => tree.block_size_bytes,
        (None, None) if file_size_bytes == 0 => BLOCK_BYTES,
        (None, None) => file_size_bytes.min(BLOCK_BYTES),
    };
    if set.shape != Shape::Tree && file_size_bytes == 0 {
        return Err(usage("--file-size 0 requires --shape tree: use 1 or more"));
    }
    let segments = own.segments.unwrap_or(1);
    if set.shape == Shape::Tree && segments > 1 {
        return Err(usage("--segments requires --shape private or shared"));
    }
    if set.shape != Shape::Tree && file_size_bytes == 0 {
        return Err(usage("--file-size 0 requires --shape tree: use 1 or more"));
    }
    if set.shape != Shape::Tree && !file_size_bytes.is_multiple_of(block_size_bytes) {
        return Err(usage(format!(
            "--file-size {} is not a multiple of --block-size {}: use a multiple",
            ByteSize(file_size_bytes),
            ByteSize(block_size_bytes)
        )));
    }
    let all = u128::from(file_size_bytes) * u128::from(segments) * u128::from(set.ranks);
    if all > i64::MAX as u128 {
        return Err(usage(
            "--file-size x --segments x workers exceeds the largest file size: use less than 8 EiB",
        ));
    }
    Ok(Geometry { block_size_bytes, file_size_bytes, segments, order: own.order.unwrap_or_default() })
}

fn check_direct(own: &FsSpec, geometry: &Geometry) -> Result<(), Error> {
    let is_aligned =
        geometry.block_size_bytes.is_multiple_of(512) && geometry.file_size_bytes.is_multiple_of(512);
    if own.direct && !is_aligned {
        return Err(usage(
            "--direct requires a --block-size and a --file-size that are multiples of 512 (some devices: 4096)",
        ));
    }
    Ok(())
}

/// The stonewall with wear-out: it takes the place of the limit in time, which would end the phase.
fn wear_out(own: &FsSpec, load: &mut LoadPlan, operation: FsOp) -> Result<Option<u64>, Error> {
    if !own.wear_out {
        return Ok(None);
    }
    let Some(time_ns) = load.limit.time_ns else {
        return Err(usage("--wear-out requires --time: add it"));
    };
    if operation == FsOp::Find {
        return Err(usage(
            "--wear-out does not support find: its work is not divided into shares per worker",
        ));
    }
    load.limit = LimitPlan { time_ns: None, ..load.limit };
    Ok(Some(time_ns))
}

fn find(own: &FsSpec, operation: FsOp) -> Result<FindPlan, Error> {
    if operation != FsOp::Find {
        return Ok(FindPlan::default());
    }
    Ok(FindPlan {
        name: own.find_name.clone(),
        size_bytes: own.find_size.map(|size| size.0),
        newer: own.find_newer.clone(),
    })
}
