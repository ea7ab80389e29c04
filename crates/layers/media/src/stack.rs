//! Rows of the stack: strata's own overhead, memory, the drive, files on it through the page cache, and memory of GPUs.

mod gpu;

use driver::Error;
use layer::stack::{loads, spec};
use layer::{StackCarrier, StackKind, StackLoad, StackRequest, StackRowSpec};
use units::{Span, label_of};
use workload::plan::HostTargets;
use workload::spec::Spec;
use workload::target::TargetKind;

use crate::{LAYER, probe};

/// Bytes that direct I/O moves are multiples of so many.
const DIRECT_BYTES: u64 = 4096;

/// One load that memory, drive and file get.
struct Load {
    name: &'static str,
    options: &'static [(&'static str, &'static str)],
    /// Writes to storage are made durable after this many, whatever caches they pass: several times in a pass also on a slow drive.
    fsync: &'static str,
}

const LOADS: &[Load] = &[
    Load {
        name: loads::WRITE_LARGE,
        options: &[("op", "write"), ("block-size", "1m"), ("depth", "8")],
        fsync: "8",
    },
    Load {
        name: loads::READ_LARGE,
        options: &[("op", "read"), ("block-size", "1m"), ("depth", "8")],
        fsync: "",
    },
    Load {
        name: loads::WRITE_SMALL,
        options: &[("op", "randwrite"), ("block-size", "4k"), ("depth", "32")],
        fsync: "1024",
    },
    Load {
        name: loads::READ_SMALL,
        options: &[("op", "randread"), ("block-size", "4k"), ("depth", "32")],
        fsync: "",
    },
];

/// Where a row's operations go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    Null,
    Memory,
    Drive,
    File,
}

/// The rows of this layer, the lowest first.
struct Row {
    layer: &'static str,
    called: &'static str,
    medium: Medium,
    kind: StackKind,
    below: Option<&'static str>,
    faster_by: Option<&'static str>,
    by_design: &'static [&'static str],
    window_share: f64,
}

const ROWS: &[Row] = &[
    Row {
        layer: "null",
        called: "strata itself",
        medium: Medium::Null,
        kind: StackKind::Floor,
        below: None,
        faster_by: None,
        by_design: &[],
        window_share: 0.25,
    },
    Row {
        layer: "memory",
        called: "the memory",
        medium: Medium::Memory,
        kind: StackKind::Carrier,
        below: None,
        faster_by: None,
        by_design: &[],
        window_share: 0.25,
    },
    Row {
        layer: "media",
        called: "the drive",
        medium: Medium::Drive,
        kind: StackKind::Hardware,
        below: Some("memory"),
        faster_by: None,
        by_design: &[],
        window_share: 1.0,
    },
    Row {
        layer: "file",
        called: "the file system",
        medium: Medium::File,
        kind: StackKind::Software,
        below: Some("media"),
        faster_by: Some("the page cache"),
        // Its writes go through the page cache, where the kernel's workers carry out those of io_uring.
        by_design: &["buffered_writes", "kernel_workers"],
        window_share: 1.0,
    },
];

/// Rows of memory, drive and file.
pub(crate) fn rows(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    let mut rows = Vec::new();
    for row in ROWS {
        // The overhead is the same for every load.
        let loads = if row.medium == Medium::Null { &LOADS[3..] } else { LOADS };
        rows.extend(loads.iter().map(|load| made(request, row, &words_of(request, load))));
        if row.medium != Medium::Null {
            rows.extend(request.loads.loads.iter().map(|load| made_own(request, row, load)));
        }
    }
    rows.extend(gpu::rows(request));
    rows
}

/// A load in options of this layer.
struct Words {
    name: String,
    own: Vec<(&'static str, String)>,
    /// Bytes of the range of storage that it goes over.
    size_bytes: u64,
    /// Writes after which they are made durable; empty: never.
    fsync: String,
    /// Bytes after which it ends, with all of them durable where any are made so; none: with the window.
    bytes: Option<u64>,
}

/// The options of a load that every layer gets.
fn words_of(request: &StackRequest<'_>, load: &Load) -> Words {
    Words {
        name: load.name.to_owned(),
        own: load.options.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        size_bytes: request.size_bytes,
        fsync: load.fsync.to_owned(),
        bytes: None,
    }
}

/// The options of a load of another layer: as many workers, each with one operation at a time, and as many bytes.
fn words_of_own(request: &StackRequest<'_>, load: &StackLoad) -> Words {
    let operation = match (load.writes, load.is_random) {
        (true, false) => "write",
        (true, true) => "randwrite",
        (false, false) => "read",
        (false, true) => "randread",
    };
    let block_bytes = load.transfer_bytes.max(1).next_multiple_of(DIRECT_BYTES);
    // Each worker has a whole number of blocks.
    let turn_bytes = block_bytes.saturating_mul(u64::from(load.workers.max(1)));
    let size_bytes = (request.size_bytes / turn_bytes).max(1).saturating_mul(turn_bytes);
    let fsync = load.writes_per_sync.filter(|_| load.writes);
    let own = [
        ("op", operation.to_owned()),
        ("block-size", block_bytes.to_string()),
        ("depth", "1".to_owned()),
        ("threads", load.workers.to_string()),
    ];
    Words {
        name: load.name.clone(),
        own: own.to_vec(),
        size_bytes,
        fsync: fsync.map_or_else(String::new, |writes| writes.to_string()),
        bytes: Some(load.transfers().saturating_mul(turn_bytes).min(size_bytes)),
    }
}

fn made(request: &StackRequest<'_>, row: &Row, words: &Words) -> StackRowSpec {
    StackRowSpec {
        called: row.called.to_owned(),
        kind: row.kind,
        stands_on: row.below.map(|below| StackCarrier::new(below, &words.name)).into_iter().collect(),
        faster_by: row.faster_by,
        // Of writes io_uring leaves the syncs to the kernel's workers.
        by_design: match row.medium {
            Medium::Drive if !words.fsync.is_empty() => &["kernel_workers"],
            _ => row.by_design,
        },
        window_share: row.window_share,
        is_named: row.medium == Medium::Drive && request.device.is_some(),
        one_host: (row.medium == Medium::Null).then_some("it is strata's overhead in one process"),
        ..StackRowSpec::new(row.layer, &*words.name, planned(request, row, words))
    }
}

/// The row at a load of another layer: on storage it ends by itself.
fn made_own(request: &StackRequest<'_>, row: &Row, load: &StackLoad) -> StackRowSpec {
    let is_storage = matches!(row.medium, Medium::Drive | Medium::File);
    let mut made = made(request, row, &words_of_own(request, load)).at(load);
    if is_storage {
        made.window_share = 0.0;
        if let Ok(spec) = &mut made.spec {
            spec.time = Some(Span(StackLoad::TIME_NS_MAX));
        }
    }
    made
}

fn planned(request: &StackRequest<'_>, row: &Row, load: &Words) -> Result<Spec, Error> {
    let (size, bytes) = (load.size_bytes.to_string(), load.bytes.unwrap_or(load.size_bytes).to_string());
    let scratch = label_of(request.scratch.as_os_str());
    let target = match (row.medium, request.device) {
        (Medium::Null, _) => "null:",
        (Medium::Memory, _) => "mem:",
        (Medium::Drive, Some(device)) => {
            check_device(device)?;
            device
        }
        (Medium::Drive | Medium::File, _) => &scratch,
    };
    let mut words: Vec<(&str, &str)> = load.own.iter().map(|(name, value)| (*name, &**value)).collect();
    let is_storage = matches!(row.medium, Medium::Drive | Medium::File);
    let syncs = !load.fsync.is_empty();
    match row.medium {
        Medium::Null => words.push(("size", &size)),
        // A copy is done when it returns.
        Medium::Memory => words.extend([("depth", "1"), ("size", "256m")]),
        Medium::Drive => words.extend([("direct", "true"), ("size", &size)]),
        Medium::File => words.extend([("cache", "drop"), ("size", &size)]),
    }
    // A second pass over the range of a file would measure memory.
    if is_storage && (load.bytes.is_some() || (row.medium == Medium::File && !syncs)) {
        words.push(("bytes", &bytes));
    }
    if is_storage && syncs {
        words.push(("fsync", &load.fsync));
    }
    if is_storage && syncs && load.bytes.is_some() {
        words.push(("end-fsync", "true"));
    }
    // To fill a large buffer takes as long as the write where others have just read it, as the host of a virtual machine does: that is no part of the drive.
    if is_storage && load.name == loads::WRITE_LARGE {
        words.push(("refill", "stamp"));
    }
    // Writes into space that was only allocated convert it: another load than the ones beside it.
    if is_storage && target == scratch {
        words.push(("layout", "fill"));
    }
    let mut made = spec(LAYER, target, format!("{}: {}", row.layer, load.name), &words)?;
    // Memory is each host's own, also where they are processes of one machine.
    if row.medium == Medium::Memory && request.hosts.is_some() {
        made.host_targets = Some(HostTargets::Own);
    }
    made.destroy_data = request.destroy_data;
    Ok(made)
}

/// Refuses a device that is none: a file in its place would be made and measured instead.
fn check_device(device: &str) -> Result<(), Error> {
    if probe::probe(device, false).is_ok_and(|facts| facts.kind == TargetKind::BlockDevice) {
        return Ok(());
    }
    Err(Error::usage("stack", "the block device does not exist")
        .with("device", device)
        .remedy("give an existing block device with --device, or leave it out"))
}
