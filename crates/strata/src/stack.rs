//! `strata stack`: the same loads on every layer of this machine. Layers and loads are two tables; a new layer is a line.

mod objects;

use std::path::{Path, PathBuf};

use driver::Error;
use layer::{Planning, Runs, Seed};
use report::record::{StackRecord, StackRow};
use units::{ByteSize, Span, label_of};
use workload::options;
use workload::spec::Spec;
use workload::target::TargetKind;

use crate::options::{OutputSpec, StackSpec};
use crate::planning::{Layers, Planned};
use crate::saturate::ends_run;
use crate::session::{self, Session};
use objects::StackStores;

/// One load that every layer gets.
struct Load {
    name: &'static str,
    options: &'static [(&'static str, &'static str)],
    /// Writes to storage are made durable after each 64 MiB, whatever caches they pass.
    fsync: &'static str,
}

/// The four loads.
const LOADS: &[Load] = &[
    Load {
        name: "1 MiB sequential write",
        options: &[("op", "write"), ("block-size", "1m"), ("depth", "8")],
        fsync: "64",
    },
    Load {
        name: "1 MiB sequential read",
        options: &[("op", "read"), ("block-size", "1m"), ("depth", "8")],
        fsync: "",
    },
    Load {
        name: "4 KiB random write",
        options: &[("op", "randwrite"), ("block-size", "4k"), ("depth", "32")],
        fsync: "16384",
    },
    Load {
        name: "4 KiB random read",
        options: &[("op", "randread"), ("block-size", "4k"), ("depth", "32")],
        fsync: "",
    },
];

/// Where a layer's operations go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    Null,
    Memory,
    Storage,
}

/// One layer.
struct Layer {
    name: &'static str,
    place: Medium,
    options: &'static [(&'static str, &'static str)],
    /// Whether reads leave the range in a cache, so that a second pass would measure memory.
    is_cached: bool,
}

/// The layers, lowest first.
const LAYERS: &[Layer] = &[
    Layer { name: "null", place: Medium::Null, options: &[], is_cached: false },
    Layer {
        name: "memory",
        place: Medium::Memory,
        options: &[("depth", "1"), ("size", "256m")],
        is_cached: false,
    },
    Layer { name: "media", place: Medium::Storage, options: &[("direct", "true")], is_cached: false },
    Layer { name: "file", place: Medium::Storage, options: &[("cache", "drop")], is_cached: true },
];

/// Loads of the network: the name that each stands under, beside the same load of storage where there is one, its message sizes and what
/// is in flight.
const NETWORK_LOADS: &[(&str, &str, &str)] = &[
    ("1 MiB sequential write", "b1m 0", "8"),
    ("1 MiB sequential read", "0 b1m", "8"),
    ("empty RPC", "0 0", "16"),
];

/// A row of the waterfall, and its phase as planned or why it cannot be.
type Row = (StackRow, Result<Planned, Error>);

/// Bytes left free on the file system of the scratch file.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// Runs the stack.
pub(crate) fn run(words: &[String], spec: &StackSpec, output: &OutputSpec) -> Result<u8, Error> {
    let seed = spec.seed.unwrap_or_else(session::draw_seed);
    spec.device.as_deref().map_or(Ok(()), check_device)?;
    let scratch = scratch_file(spec)?;
    let mut layers = Layers::new(false);
    let mut rows = plan_rows(spec, &scratch, &mut layers.runs, seed)?;
    let mut targets = vec![label_of(scratch.as_os_str())];
    targets.extend(spec.device.clone());
    let mut session = Session::begin(words, output, &targets, seed, false, None)?;
    let mut stores = StackStores::beside(&scratch, size(spec).0, &layers);
    // The manifest stands before the stores are planned: the engine has a pool then.
    let adopted = session.adopt(layers);
    if adopted.is_ok() {
        rows.extend(stores.rows(&mut session.layers().runs, spec.quick, seed));
    }
    number(&mut rows);
    session.phase_count = rows.iter().filter(|(_, planned)| planned.is_ok()).count();
    session.record.stack = Some(StackRecord { rows: rows.iter().map(|(row, _)| row.clone()).collect() });
    let served = stores.served();
    session.ends_with(Box::new(|| served.remove()));
    let result = adopted.and_then(|()| run_rows(&mut session, &rows));
    drop(rows);
    session.finish(result)
}

fn run_rows(session: &mut Session, rows: &[Row]) -> Result<(), Error> {
    for (number, (_, planned)) in rows.iter().enumerate() {
        let Ok(planned) = planned else { continue };
        let outcome = session.fill(planned).and_then(|()| session.run_phase(planned));
        if session.is_interrupted() && outcome.is_err() {
            return outcome.map(|_| ());
        }
        let Some(row) = session.record.stack.as_mut().and_then(|stack| stack.rows.get_mut(number)) else {
            continue;
        };
        match outcome {
            Ok(at) => {
                row.phase = Some(at);
                if ends_run(session, at) {
                    return Ok(());
                }
            }
            // A layer that cannot be measured does not take the others with it; its row says why.
            Err(error) => row.missing = Some(error.to_string()),
        }
    }
    Ok(())
}

/// Refuses a `--device` that is none: a file in its place would be made and measured instead.
fn check_device(device: &str) -> Result<(), Error> {
    if media::probe::probe(device, false).is_ok_and(|facts| facts.kind == TargetKind::BlockDevice) {
        return Ok(());
    }
    Err(Error::usage("stack", "there is no such block device")
        .with("device", device)
        .remedy("give --device a block device, or leave it out"))
}

/// A name for the scratch file that nobody has yet, beside which there is room for it.
fn scratch_file(spec: &StackSpec) -> Result<PathBuf, Error> {
    let directory = spec.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    if !directory.is_dir() {
        return Err(Error::usage("stack", "there is no such directory")
            .with("dir", directory.display())
            .remedy("give --dir a directory"));
    }
    let free_bytes = rustix::fs::statvfs(&directory).map(|facts| facts.f_bavail * facts.f_frsize);
    let free_bytes =
        free_bytes.map_err(|error| Error::system("stack", "cannot examine the file system", error))?;
    // Two object stores lie beside it.
    let need_bytes = size(spec).0 * 3 + FREE_BYTES_MIN;
    if free_bytes < need_bytes {
        return Err(Error::new(driver::ErrorKind::Run, "stack", "not enough space for the scratch file")
            .with("dir", directory.display())
            .with("free", ByteSize(free_bytes).human())
            .remedy(format!(
                "free {} there, or give --dir another place or --size less",
                ByteSize(need_bytes).human()
            )));
    }
    Ok(directory.join(format!("strata-scratch-{}", std::process::id())))
}

fn size(spec: &StackSpec) -> ByteSize {
    spec.size.unwrap_or(ByteSize(if spec.quick { 256 << 20 } else { 1 << 30 }))
}

/// Every row of the waterfall, planned; what cannot be planned says why.
fn plan_rows(spec: &StackSpec, scratch: &Path, runs: &mut Runs, seed: u64) -> Result<Vec<Row>, Error> {
    let mut rows: Vec<Row> = Vec::new();
    let mut network = network_rows(spec, runs, seed)?;
    for (number, load) in LOADS.iter().enumerate() {
        for layer in LAYERS {
            // The floor is the same for every load.
            if layer.place == Medium::Null && number > 0 {
                continue;
            }
            let planned = plan_row(spec, layer, load, scratch, runs, seed);
            // The user's own device being refused is for the user to decide, not a missing row.
            if let Err(error) = &planned
                && error.exit_code() == 2
                && spec.device.is_some()
                && layer.name == "media"
            {
                return planned.map(|_| Vec::new());
            }
            let missing = planned.as_ref().err().map(ToString::to_string);
            let row =
                StackRow { layer: layer.name.to_owned(), load: load.name.to_owned(), phase: None, missing };
            rows.push((row, planned));
        }
        rows.extend(network.extract_if(.., |(row, _)| row.load == load.name));
    }
    rows.append(&mut network);
    Ok(rows)
}

/// Each row is a request of its own.
fn number(rows: &mut [Row]) {
    for (number, (_, planned)) in rows.iter_mut().enumerate() {
        if let Ok(planned) = planned {
            planned.request = number;
        }
    }
}

/// The rows of the network: over loopback, or to the engine that was named.
fn network_rows(spec: &StackSpec, runs: &mut Runs, seed: u64) -> Result<Vec<Row>, Error> {
    let mut refused = None;
    let mut rows = Vec::new();
    for (load, sizes, depth) in NETWORK_LOADS {
        let planned = match &refused {
            // What could not be reached for one load is not tried again.
            Some(why) => Err(Error::new(driver::ErrorKind::Run, "network", String::clone(why))),
            None => network_row(spec, load, sizes, depth, runs, seed),
        };
        if let Err(error) = &planned {
            // The user's own engine being refused is for the user to decide, not a missing row.
            if error.exit_code() == 2 && spec.engine.is_some() {
                return planned.map(|_| Vec::new());
            }
            refused.get_or_insert_with(|| error.to_string());
        }
        let missing = planned.as_ref().err().map(ToString::to_string);
        rows.push((
            StackRow { layer: "network".to_owned(), load: (*load).to_owned(), phase: None, missing },
            planned,
        ));
    }
    Ok(rows)
}

fn network_row(
    stack: &StackSpec,
    load: &str,
    sizes: &str,
    depth: &str,
    runs: &mut Runs,
    seed: u64,
) -> Result<Planned, Error> {
    let time_ns = if stack.quick { 300_000_000 } else { 3_000_000_000 };
    let mut row = Spec { layer: network::LAYER, time: Some(Span(time_ns)), ..Spec::default() };
    let name = format!("network: {load}");
    for (key, value) in [("message-sizes", sizes), ("depth", depth), ("name", name.as_str())] {
        apply(&mut row, key, value)?;
    }
    match &stack.engine {
        Some(uri) if uri.contains("://") => row.targets = vec![uri.clone()],
        Some(host) => apply(&mut row, "servers", host)?,
        None => row.targets = vec!["loopback:".to_owned()],
    }
    row.token_file.clone_from(&stack.token_file);
    only_phase(&row, runs, seed)
}

fn plan_row(
    spec: &StackSpec,
    layer: &Layer,
    load: &Load,
    scratch: &Path,
    runs: &mut Runs,
    seed: u64,
) -> Result<Planned, Error> {
    let measured_ns = if spec.quick { 600_000_000 } else { 6_000_000_000 };
    // Memory and the floor are steady at once; the time is better spent on the drive.
    let time_ns = if layer.place == Medium::Storage { measured_ns } else { measured_ns / 4 };
    let size = size(spec).to_string();
    let mut row = Spec {
        destroy_data: spec.destroy_data,
        time: Some(Span(time_ns)),
        layer: media::LAYER,
        ..Spec::default()
    };
    let is_storage = layer.place == Medium::Storage;
    let fsync = (is_storage && !load.fsync.is_empty()).then_some(("fsync", load.fsync));
    let reads_once = layer.is_cached && load.fsync.is_empty();
    let one_pass = reads_once.then_some(("bytes", size.as_str()));
    let is_scratch = is_storage && !(spec.device.is_some() && layer.name == "media");
    // Writes into space that was only allocated convert it: another load than the ones beside it.
    let layout = is_scratch.then_some(("layout", "fill"));
    let own = [fsync, one_pass, layout];
    let common = [("size", size.as_str()), ("name", layer.name)];
    for (key, value) in common.iter().chain(load.options).chain(layer.options).chain(own.iter().flatten()) {
        apply(&mut row, key, value)?;
    }
    row.name = Some(format!("{}: {}", layer.name, load.name));
    row.targets = vec![match (layer.place, &spec.device) {
        (Medium::Null, _) => "null:".to_owned(),
        (Medium::Memory, _) => "mem:".to_owned(),
        (Medium::Storage, Some(device)) if layer.name == "media" => device.clone(),
        (Medium::Storage, _) => label_of(scratch.as_os_str()),
    }];
    only_phase(&row, runs, seed)
}

fn apply(spec: &mut Spec, key: &str, value: &str) -> Result<(), Error> {
    options::apply(spec, key, value).map_err(|error| Error::usage("stack", error.to_string()))
}

/// The phase of a spec, without those that store for it: they come right before it. Every row has the same seed.
fn only_phase(spec: &Spec, runs: &mut Runs, seed: u64) -> Result<Planned, Error> {
    let planning = Planning { before: &[], number: 0, seed: Seed::Given(seed) };
    let mut phases = runs.of(spec.layer.name)?.phases(spec, &planning)?;
    phases.retain(|phase| !phase.plan.is_fill());
    match (phases.pop(), phases.len()) {
        (Some(phase), 0) => Ok(Planned::of(phase)),
        _ => Err(Error::usage("stack", "a row of the stack is one phase")),
    }
}
