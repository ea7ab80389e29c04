//! Rows of memory of GPUs: the memory itself, the ways to it, and files by each path.

use driver::Error;
use gpu::GpuFacts;
use layer::stack::{loads, spec};
use layer::{StackCarrier, StackKind, StackRequest, StackRowSpec};
use units::label_of;
use workload::spec::Spec;

use crate::LAYER;

/// A row of two columns: 1 MiB to the device, and from it.
struct Row {
    layer: &'static str,
    called: &'static str,
    kind: StackKind,
    /// Rows that carry it.
    below: &'static [&'static str],
    faster_by: Option<&'static str>,
    /// Options beside those of the load; on the scratch file, or on memory of the host.
    options: &'static [(&'static str, &'static str)],
    is_file: bool,
}

const ROWS: &[Row] = &[
    Row {
        layer: "gpu-memory",
        called: "the memory of the GPU",
        kind: StackKind::Carrier,
        below: &[],
        faster_by: None,
        options: &[("engine", "gpu_mem")],
        is_file: false,
    },
    Row {
        layer: "gpu-copy",
        called: "the copy path to the GPU",
        kind: StackKind::Carrier,
        below: &["gpu-memory"],
        faster_by: None,
        options: &[("engine", "gpu_copy"), ("gpu-staging", "pinned")],
        is_file: false,
    },
    Row {
        layer: "gpu-pageable",
        called: "copies of unregistered memory",
        kind: StackKind::Carrier,
        below: &["gpu-copy"],
        faster_by: None,
        options: &[("engine", "gpu_copy"), ("gpu-staging", "pageable")],
        is_file: false,
    },
    Row {
        layer: "gpu-staged",
        called: "files staged to the GPU",
        kind: StackKind::Software,
        below: &["file", "gpu-copy"],
        faster_by: Some("the page cache"),
        options: &[("engine", "io_uring"), ("depth", "8"), ("gpu-path", "staged")],
        is_file: true,
    },
    Row {
        layer: "gpu-cufile",
        called: "files by GPUDirect Storage",
        kind: StackKind::Software,
        below: &["media", "gpu-copy"],
        faster_by: Some("the page cache"),
        options: &[("engine", "cufile"), ("depth", "1"), ("direct", "true")],
        is_file: true,
    },
    Row {
        layer: "gpu-batch",
        called: "files by batches of GPUDirect Storage",
        kind: StackKind::Software,
        below: &["media", "gpu-copy"],
        faster_by: Some("the page cache"),
        options: &[("engine", "cufile_batch"), ("depth", "8"), ("direct", "true")],
        is_file: true,
    },
    Row {
        layer: "gpu-stream",
        called: "files by GPUDirect Storage on streams",
        kind: StackKind::Software,
        below: &["media", "gpu-copy"],
        faster_by: Some("the page cache"),
        options: &[("engine", "cufile_stream"), ("depth", "8"), ("direct", "true")],
        is_file: true,
    },
];

/// Loads of each row: column, operation, and what makes a file's writes durable.
const LOADS: [(&str, &str, &str); 2] = [(loads::WRITE_LARGE, "write", "8"), (loads::READ_LARGE, "read", "")];

/// The rows, where GPUs were asked for.
pub(super) fn rows(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    let Some(memory) = request.gpu else { return Vec::new() };
    // A machine without GPUs is told before anything is touched.
    let missing = GpuFacts::read().err().map(|error| error.to_string());
    let row = |row: &'static Row, (load, operation, fsync): (&'static str, &str, &str)| StackRowSpec {
        called: row.called.to_owned(),
        kind: row.kind,
        stands_on: row.below.iter().map(|below| StackCarrier::new(below, load)).collect(),
        faster_by: row.faster_by,
        window_share: if row.is_file { 1.0 } else { 0.25 },
        is_named: row.layer == ROWS[0].layer,
        one_host: Some("GPU memory is measured in one process"),
        ..StackRowSpec::new(
            row.layer,
            load,
            match &missing {
                Some(error) => Err(Error::usage("stack", error.clone()).remedy("leave out --gpu")),
                None => {
                    planned(request, row, load, &[("op", operation), ("fsync", fsync), ("memory", memory)])
                }
            },
        )
    };
    ROWS.iter().flat_map(|of| LOADS.iter().map(move |load| row(of, *load))).collect()
}

fn planned(
    request: &StackRequest<'_>,
    row: &'static Row,
    load: &'static str,
    more: &[(&str, &str)],
) -> Result<Spec, Error> {
    let size = request.size_bytes.to_string();
    let scratch = label_of(request.scratch.as_os_str());
    let mut words = row.options.to_vec();
    words.push(("block-size", "1m"));
    words.extend(more.iter().filter(|(name, value)| *name != "fsync" || (row.is_file && !value.is_empty())));
    if row.is_file {
        words.extend([("cache", "drop"), ("size", &size), ("layout", "fill")]);
    } else {
        words.push(("size", "256m"));
    }
    if row.is_file && load == loads::READ_LARGE {
        // A second pass over the range would measure memory.
        words.push(("bytes", &size));
    }
    let target = if row.is_file { scratch.as_ref() } else { "mem:" };
    let mut made = spec(LAYER, target, format!("{}: {load}", row.layer), &words)?;
    made.destroy_data = request.destroy_data;
    Ok(made)
}
