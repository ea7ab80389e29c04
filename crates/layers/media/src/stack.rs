//! Rows of the stack: strata's own overhead, memory, the drive, files on it through the page cache, and memory of GPUs.

mod gpu;

use driver::Error;
use layer::stack::{loads, spec};
use layer::{StackCarrier, StackKind, StackRequest, StackRowSpec};
use units::label_of;
use workload::spec::Spec;
use workload::target::TargetKind;

use crate::{LAYER, probe};

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
        window_share: 0.25,
    },
    Row {
        layer: "memory",
        called: "the memory",
        medium: Medium::Memory,
        kind: StackKind::Carrier,
        below: None,
        faster_by: None,
        window_share: 0.25,
    },
    Row {
        layer: "media",
        called: "the drive",
        medium: Medium::Drive,
        kind: StackKind::Hardware,
        below: Some("memory"),
        faster_by: None,
        window_share: 1.0,
    },
    Row {
        layer: "file",
        called: "the file system",
        medium: Medium::File,
        kind: StackKind::Software,
        below: Some("media"),
        faster_by: Some("the page cache"),
        window_share: 1.0,
    },
];

/// Rows of memory, drive and file.
pub(crate) fn rows(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    let mut rows = Vec::new();
    for row in ROWS {
        // The overhead is the same for every load.
        let loads = if row.medium == Medium::Null { &LOADS[3..] } else { LOADS };
        rows.extend(loads.iter().map(|load| StackRowSpec {
            layer: row.layer,
            called: row.called.to_owned(),
            load: load.name,
            kind: row.kind,
            stands_on: row.below.map(|below| StackCarrier::new(below, load.name)).into_iter().collect(),
            faster_by: row.faster_by,
            window_share: row.window_share,
            is_named: row.medium == Medium::Drive && request.device.is_some(),
            spec: planned(request, row, load),
        }));
    }
    rows.extend(gpu::rows(request));
    rows
}

fn planned(request: &StackRequest<'_>, row: &Row, load: &Load) -> Result<Spec, Error> {
    let size = request.size_bytes.to_string();
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
    let mut words = load.options.to_vec();
    let is_storage = matches!(row.medium, Medium::Drive | Medium::File);
    match row.medium {
        Medium::Null => words.push(("size", &size)),
        // A copy is done when it returns.
        Medium::Memory => words.extend([("depth", "1"), ("size", "256m")]),
        Medium::Drive => words.extend([("direct", "true"), ("size", &size)]),
        // A second pass over the range would measure memory.
        Medium::File if load.fsync.is_empty() => {
            words.extend([("cache", "drop"), ("size", &size), ("bytes", &size)]);
        }
        Medium::File => words.extend([("cache", "drop"), ("size", &size)]),
    }
    if is_storage && !load.fsync.is_empty() {
        words.push(("fsync", load.fsync));
    }
    // Writes into space that was only allocated convert it: another load than the ones beside it.
    if is_storage && target == scratch {
        words.push(("layout", "fill"));
    }
    let mut made = spec(LAYER, target, format!("{}: {}", row.layer, load.name), &words)?;
    made.destroy_data = request.destroy_data;
    Ok(made)
}

/// Refuses a device that is none: a file in its place would be made and measured instead.
fn check_device(device: &str) -> Result<(), Error> {
    if probe::probe(device, false).is_ok_and(|facts| facts.kind == TargetKind::BlockDevice) {
        return Ok(());
    }
    Err(Error::usage("stack", "there is no such block device")
        .with("device", device)
        .remedy("give --device a block device, or leave it out"))
}
