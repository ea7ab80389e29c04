//! Rows of the stack: names on the file system of the scratch directory, and files over objects by their library and through the kernel.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::{Error, ErrorKind};
use layer::stack::{ONE_PROCESS_OPENS, loads, spec};
use layer::{RunContext, StackCarrier, StackKind, StackLoad, StackRequest, StackRowSpec, StackServed};
use mount::{MountSpec, Mounted};
use units::{Span, label_of, path_of};
use workload::spec::Spec;

use crate::LAYER;
use crate::made::{note_mount, remove_mount};
use crate::stores;

/// Layers: the file system of a directory, files over objects by their library, and through the kernel.
const LOCAL: &str = "file";
const LIBRARY: &str = "dfs";
const MOUNT: &str = "mount";
/// Name of the second in a sentence.
const LIBRARY_CALLED: &str = "files over objects through the library";
/// Why several hosts cannot use the mount.
const OF_ONE_MOUNT: &str = "the run mounts them for one process";
/// Name under which the mount is served.
const MOUNT_SERVED: &str = "mount";
/// Length of the file of each data load.
const FILE_SIZE: &str = "64m";

/// One load: its column, and its options.
struct Load {
    name: &'static str,
    options: &'static [(&'static str, &'static str)],
}

/// Reads have files of their own: a store keeps data in records of the writes that brought them, and those of other rows go on.
const DATA: &[Load] = &[
    // The amount of writes is stated, so that a store has space for it before the window.
    Load {
        name: loads::WRITE_LARGE,
        options: &[
            ("op", "write"),
            ("block-size", "1m"),
            ("shape", "private"),
            ("file-size", FILE_SIZE),
            ("bytes", FILE_SIZE),
        ],
    },
    Load {
        name: loads::READ_LARGE,
        options: &[
            ("op", "read"),
            ("block-size", "1m"),
            ("shape", "private"),
            ("file-size", FILE_SIZE),
            ("file-suffix", ".read-1m"),
        ],
    },
    Load {
        name: loads::WRITE_SMALL,
        options: &[
            ("op", "write"),
            ("block-size", "4k"),
            ("order", "random"),
            ("shape", "private"),
            ("file-size", FILE_SIZE),
            ("bytes", FILE_SIZE),
        ],
    },
    Load {
        name: loads::READ_SMALL,
        options: &[
            ("op", "read"),
            ("block-size", "4k"),
            ("order", "random"),
            ("shape", "private"),
            ("file-size", FILE_SIZE),
            ("file-suffix", ".read-4k"),
        ],
    },
];

const NAMES: &[Load] = &[
    Load { name: loads::CREATE, options: &[("op", "create")] },
    // A pass over the files takes a millisecond or two: too short to be compared.
    Load { name: loads::STAT, options: &[("op", "stat"), ("item-passes", "1000000")] },
    Load { name: loads::REMOVE, options: &[("op", "unlink")] },
];

/// Files of a pass over names: fewer where each goes through the kernel. Of many, some would lie in a part of the store's log that has gone to the drive.
const FILES_LIBRARY: &str = "2000";
const FILES_KERNEL: &str = "1000";

/// Rows of names, of the library and of the mount.
pub(crate) fn rows(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    let directory = label_of(request.beside("-names").as_os_str());
    let store = request.served(StackServed::POOL).map(|pool| format!("dfs+vos:{pool}"));
    let mounted = request.served(MOUNT_SERVED).map(str::to_owned);
    let target = |served: &Result<String, Error>| match served {
        Ok(target) => Ok(target.clone()),
        Err(error) => Err(Error::new(ErrorKind::Run, "stack", error.to_string())),
    };
    let mut rows = Vec::new();
    for load in NAMES {
        rows.push(row(LOCAL, load, Ok(directory.clone()), &[("files", FILES_KERNEL)]));
    }
    for load in DATA {
        // Reads come from the drive in every pass, also what the store has in memory.
        rows.push(row(LIBRARY, load, target(&store), &[("cache", "drop")]));
        let file = target(&mounted).map(|directory| format!("{directory}/data"));
        rows.push(row(MOUNT, load, file, &[("cache", "drop")]));
    }
    for load in NAMES {
        rows.push(row(LIBRARY, load, target(&store), &[("files", FILES_LIBRARY)]));
        rows.push(row(MOUNT, load, target(&mounted), &[("files", FILES_KERNEL)]));
    }
    rows.extend(request.loads.loads.iter().map(|load| own_load(load, target(&store))));
    rows
}

fn row(
    layer: &'static str,
    load: &Load,
    target: Result<String, Error>,
    own: &[(&str, &str)],
) -> StackRowSpec {
    let reads_objects = layer == LIBRARY && load.name == loads::READ_LARGE;
    let below = match layer {
        MOUNT => Some(LIBRARY),
        _ => reads_objects.then_some("object"),
    };
    let called = match layer {
        LOCAL => "the file system",
        LIBRARY => LIBRARY_CALLED,
        _ => "files over objects through the kernel",
    };
    let planned = |target: String| -> Result<Spec, Error> {
        let words: Vec<(&str, &str)> = load.options.iter().chain(own).copied().collect();
        spec(LAYER, &target, format!("{layer}: {}", load.name), &words)
    };
    StackRowSpec {
        called: called.to_owned(),
        kind: if below.is_some() { StackKind::Software } else { StackKind::Carrier },
        stands_on: below.map(|below| StackCarrier::new(below, load.name)).into_iter().collect(),
        faster_by: (layer == MOUNT).then_some("the kernel's caches"),
        // Programs write to a mount through the page cache.
        by_design: if layer == MOUNT { &["not_durable"] } else { &[] },
        window_share: 0.8,
        one_host: match layer {
            LOCAL => None,
            LIBRARY => Some(ONE_PROCESS_OPENS),
            _ => Some(OF_ONE_MOUNT),
        },
        ..StackRowSpec::new(layer, load.name, target.and_then(planned))
    }
}

/// Files over objects by their library at a load of another layer: a file of each worker, with one call at a time.
fn own_load(load: &StackLoad, target: Result<String, Error>) -> StackRowSpec {
    let file_bytes = load.transfer_bytes.saturating_mul(load.transfers());
    let planned = |target: String| -> Result<Spec, Error> {
        let mut words = vec![
            ("op", if load.writes { "write" } else { "read" }.to_owned()),
            ("order", if load.is_random { "random" } else { "sequential" }.to_owned()),
            ("block-size", load.transfer_bytes.to_string()),
            ("threads", load.workers.to_string()),
            ("shape", "private".to_owned()),
            ("file-size", file_bytes.to_string()),
            ("bytes", file_bytes.saturating_mul(u64::from(load.workers.max(1))).to_string()),
            ("cache", "drop".to_owned()),
        ];
        if let Some(writes) = load.writes_per_sync.filter(|_| load.writes) {
            words.extend([("fsync", writes.to_string()), ("end-fsync", "true".to_owned())]);
        }
        let words: Vec<(&str, &str)> = words.iter().map(|(name, value)| (*name, &**value)).collect();
        let mut made = spec(LAYER, &target, format!("{LIBRARY}: {}", load.name), &words)?;
        made.time = Some(Span(StackLoad::TIME_NS_MAX));
        Ok(made)
    };
    StackRowSpec {
        called: LIBRARY_CALLED.to_owned(),
        kind: StackKind::Software,
        stands_on: vec![StackCarrier::new("object", &load.name)],
        window_share: 0.0,
        one_host: Some(ONE_PROCESS_OPENS),
        ..StackRowSpec::new(LIBRARY, &*load.name, target.and_then(planned)).at(load)
    }
}

/// Mounts files over objects on a directory beside the scratch file, for as long as the run goes on.
pub(crate) fn serve(request: &StackRequest<'_>, context: &RunContext) -> Vec<StackServed> {
    let served = |target, end| vec![StackServed { name: MOUNT_SERVED, target, end }];
    let pool = match request.served(StackServed::SECOND_POOL) {
        Ok(pool) => pool,
        Err(error) => return served(Err(error.to_string()), None),
    };
    match mounted(pool, request.beside("-mount"), context) {
        Ok((directory, mut mounted)) => {
            let end = move || {
                // The layer has unmounted it already, unless it failed.
                mounted.unmount()?;
                mounted.join()
            };
            served(Ok(directory), Some(Box::new(end)))
        }
        Err(error) => served(Err(error.to_string()), None),
    }
}

fn mounted(pool: &str, directory: PathBuf, context: &RunContext) -> Result<(String, Mounted), Error> {
    if !Path::new("/dev/fuse").exists() {
        return Err(Error::new(ErrorKind::Run, "stack", "this machine has no /dev/fuse"));
    }
    let url = format!("dfs+vos:{pool}");
    let directory = std::path::absolute(&directory)
        .map_err(|error| Error::system("stack", "cannot determine the mount directory", error))?;
    let label = label_of(directory.as_os_str());
    note_mount(&context.journal, &label)?;
    let made = || {
        std::fs::create_dir(path_of(&label)).map_err(|error| {
            Error::system("stack", "cannot create the mount directory", error).with("directory", &label)
        })?;
        let store = stores::open(&url, None)?;
        Mounted::begin(Arc::clone(&store), &url, directory.clone(), &MountSpec::default(), || {})
    };
    let mounted = made().inspect_err(|_| {
        // The error that led here is the one worth telling; `strata clean` knows the directory.
        let _ = remove_mount(&label);
    })?;
    Ok((label, mounted))
}
